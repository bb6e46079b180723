package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// settings are the values of the flags, and the secrets.
type settings struct {
	addr, admin    string
	data           string
	postgres, nats string
	role           string
	stream         string
	partition      int
	batch          int
	parallel       int
	ackWait, dedup time.Duration
	replicas       int
	unsigned       bool
	demo           bool
	length         time.Duration
	secrets        []string
}

func (s *settings) receives() bool { return s.role != "work" }

func (s *settings) works() bool { return s.role != "receive" }

func parseFlags(args []string, out io.Writer) (*settings, error) {
	s := &settings{secrets: strings.Fields(os.Getenv("LABHEALTH_WEBHOOK_SECRET"))}
	flags := flag.NewFlagSet("pipeline", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&s.addr, "addr", ":8080", "receive deliveries here, at /events")
	flags.StringVar(&s.admin, "admin", "127.0.0.1:8081", "serve /healthz, /readyz and /metrics here")
	flags.StringVar(&s.data, "data", "", "SQLite file, without -postgres and -nats; empty means pipeline.db, or a temporary file with -demo")
	flags.StringVar(&s.postgres, "postgres", "", "database URL: postgres://user@host/database; PGPASSWORD and ~/.pgpass are read")
	flags.StringVar(&s.nats, "nats", "", "broker URL: nats://host:4222, several separated by commas")
	flags.StringVar(&s.role, "role", "all", "with -nats: receive, work, or all for both")
	flags.StringVar(&s.stream, "stream", "events", "name of the stream, and first token of its subjects")
	flags.IntVar(&s.partition, "partition", -1, fmt.Sprintf("apply events of one partition of the users, 0 to %d, or -1 for all; with -nats", partitions-1))
	flags.IntVar(&s.batch, "batch", 100, "maximum number of events in a transaction")
	flags.IntVar(&s.parallel, "parallel", 2, "batches that a worker has in flight; with -nats")
	flags.DurationVar(&s.ackWait, "ack-wait", 30*time.Second, "time to apply a batch, after which other workers get it; with -nats")
	flags.DurationVar(&s.dedup, "dedup", 3*time.Hour, "how long the broker stores the IDs of deliveries; with -nats, when the stream is created")
	flags.IntVar(&s.replicas, "replicas", 1, "servers of the broker that store each event: with 3, one of them may fail; with -nats, when the stream is created")
	flags.BoolVar(&s.unsigned, "unsigned", false, "accept deliveries without a signature, from anyone")
	flags.BoolVar(&s.demo, "demo", false, "receive invented events from an embedded service, and exit")
	flags.DurationVar(&s.length, "for", 10*time.Second, "how long the demo takes")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, errors.New("unexpected argument: there are flags only")
	}
	if s.demo {
		s.addr, s.secrets, s.unsigned = "127.0.0.1:0", []string{demoSecret}, false
	} else if s.data == "" {
		s.data = "pipeline.db"
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	return s, nil
}

// check returns an error for the first rule that the flags violate.
func (s *settings) check() error {
	broker, database := s.nats != "", s.postgres != ""
	isWord := s.stream != "" && !strings.ContainsAny(s.stream, ".*> \t/\\")
	secured := len(s.secrets) > 0 || s.unsigned
	for _, rule := range []struct {
		holds   bool
		message string
	}{
		{slices.Contains([]string{"all", "receive", "work"}, s.role), "-role is receive, work or all"},
		{broker || !database && s.role == "all", "-postgres and -role need -nats"},
		{!broker || database || !s.works(), "-nats needs -postgres, except with -role receive"},
		{s.receives() || !s.demo, "-demo needs a role that receives"},
		{isWord, "-stream is one word without dots"},
		{within(s.partition, -1, partitions-1), fmt.Sprintf("-partition is 0 to %d, or -1 for all", partitions-1)},
		{within(s.batch, 1, 10_000), "-batch is 1 to 10000"},
		{within(s.parallel, 1, 100), "-parallel is 1 to 100"},
		{s.replicas >= 1, "-replicas is 1 or more"},
		{min(s.ackWait, s.dedup) >= time.Second, "-ack-wait and -dedup are at least a second"},
		{secured || !s.receives(), "LABHEALTH_WEBHOOK_SECRET holds no secret; use -unsigned for a service that does not sign"},
	} {
		if !rule.holds {
			return errors.New(rule.message)
		}
	}
	return nil
}

func within(n, low, high int) bool { return low <= n && n <= high }
