package main

import (
	"errors"
	"flag"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// settings are the values of the flags, and the secrets.
type settings struct {
	addr, admin    string
	data           string
	postgres, nats string
	monitors       []string
	role           string
	stream         string
	partition      string
	partitions     []partition // of -partition, in order
	to             string
	reason         string
	keep           time.Duration
	batch          int
	parallel       int
	attempts       int
	ackWait, dedup time.Duration
	stalled        time.Duration
	replicas       int
	unsigned       bool
	demo           bool
	length         time.Duration
	secrets        []string

	react         []sqlstore.ReactionKind
	reactURL      string
	reactAttempts int
	reactTimeout  time.Duration

	apiKey, baseURL string
	rate            float64 // requests per second
	interval, walk  time.Duration
}

func (s *settings) receives() bool { return s.role == "all" || s.role == "receive" }

func (s *settings) works() bool { return s.role == "all" || s.role == "work" }

// reconciles reports whether this process compares the database with the service. Without a broker
// it does so if there is a key.
func (s *settings) reconciles() bool {
	return s.role == "reconcile" || s.role == "all" && s.nats == "" && s.apiKey != ""
}

// isOnce reports whether the role ends by itself.
func (s *settings) isOnce() bool { return s.role == "repartition" || s.isOffline() }

// isOffline reports whether the role uses databases only.
func (s *settings) isOffline() bool { return s.role == "requeue" || s.transfers() }

func (s *settings) transfers() bool { return s.role == "copy" || s.role == "move" }

func parseFlags(args []string, out io.Writer) (*settings, error) {
	s := &settings{
		secrets: strings.Fields(os.Getenv("LABHEALTH_WEBHOOK_SECRET")),
		apiKey:  os.Getenv("LABHEALTH_API_KEY"), baseURL: os.Getenv("LABHEALTH_BASE_URL"),
	}
	flags := flag.NewFlagSet("pipeline", flag.ContinueOnError)
	flags.SetOutput(out)
	s.addFlags(flags)
	s.addBrokerFlags(flags)
	s.addOrderFlags(flags)
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, errors.New("unexpected argument: there are flags only")
	}
	if s.demo {
		s.addr, s.secrets, s.unsigned, s.apiKey = "127.0.0.1:0", []string{demoSecret}, false, ""
		if s.react == nil {
			s.react = []sqlstore.ReactionKind{sqlstore.ReactTransition}
		}
	} else if s.data == "" {
		s.data = "pipeline.db"
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	return s, s.checkPartitions()
}

// addFlags adds the flags of all forms, and those of the roles that end by themselves.
func (s *settings) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&s.addr, "addr", ":8080", "receive deliveries here, at /events")
	flags.StringVar(&s.admin, "admin", "127.0.0.1:8081", "serve /healthz, /readyz and /metrics here")
	flags.StringVar(&s.data, "data", "", "SQLite file, without -postgres and -nats; empty means pipeline.db, or a temporary file with -demo")
	flags.StringVar(&s.postgres, "postgres", "", "database URL: postgres://user@host/database; PGPASSWORD and ~/.pgpass are read")
	flags.StringVar(&s.role, "role", "all", "with -nats: receive, work, or all for both; with -postgres: reconcile; "+
		"or once: repartition the stream, copy or move users to another database, requeue dead letters and reactions")
	flags.StringVar(&s.partition, "partition", allSlots.String(), "slots of the users, such as 0-127: those that a worker applies, -role reconcile compares, or -role copy or move takes; "+
		"with -role repartition all ranges, separated by commas")
	flags.StringVar(&s.to, "to", "", "with -role copy or move: database URL of the target; the source is -postgres or -data")
	flags.StringVar(&s.reason, "reason", "", "with -role requeue: only dead letters and reactions whose reason starts with this")
	flags.Func("keep", "days for which samples are kept after they were measured, such as 90d, the same for all workers; a calendar month (UTC) is deleted when all of it is older; empty means for ever",
		func(value string) (err error) {
			s.keep, err = parseDays(value)
			return err
		})
	flags.IntVar(&s.batch, "batch", 100, "maximum number of events in a transaction")
	flags.DurationVar(&s.stalled, "stalled", 2*time.Minute, "not ready if events wait and none was applied for this time")
	flags.BoolVar(&s.unsigned, "unsigned", false, "accept deliveries without a signature, from anyone")
	flags.BoolVar(&s.demo, "demo", false, "receive invented events from an embedded service, and exit")
	flags.DurationVar(&s.length, "for", 10*time.Second, "how long the demo takes")
}

// addBrokerFlags adds the flags that need -nats.
func (s *settings) addBrokerFlags(flags *flag.FlagSet) {
	flags.StringVar(&s.nats, "nats", "", "broker URL: nats://host:4222, several separated by commas")
	flags.Func("nats-monitor", "monitoring URL of the broker: http://host:8222, several separated by commas; receive only if its servers have sync_interval: always", func(value string) error {
		s.monitors = strings.Split(value, ",")
		return nil
	})
	flags.StringVar(&s.stream, "stream", "events", "name of the stream, and first token of its subjects")
	flags.IntVar(&s.parallel, "parallel", 2, "batches that a worker has in flight; with -nats")
	flags.DurationVar(&s.ackWait, "ack-wait", 30*time.Second, "time to apply a batch, and time after which other workers get the events of a dead one; with -nats")
	flags.IntVar(&s.attempts, "attempts", 10, "attempts to apply an event that runs out of time on its own, after which it is a dead letter; with -nats")
	flags.DurationVar(&s.dedup, "dedup", 3*time.Hour, "how long the broker stores the IDs of deliveries; with -nats, when the stream is created")
	flags.IntVar(&s.replicas, "replicas", 1, "servers of the broker that store each event: with 3, one of them may fail; with -nats, when the stream is created")
}

// addOrderFlags adds the flags of reactions and of the comparison with the service.
func (s *settings) addOrderFlags(flags *flag.FlagSet) {
	flags.Func("react", "changes to react to: transition, results, summary, samples, several separated by commas; the same for all workers and -role reconcile; empty for none",
		func(value string) error {
			for kind := range strings.SplitSeq(value, ",") {
				s.react = append(s.react, sqlstore.ReactionKind(kind))
			}
			return nil
		})
	flags.StringVar(&s.reactURL, "react-url", "", "post each reaction here as JSON, with its ID as Idempotency-Key; empty logs it; with -react")
	flags.IntVar(&s.reactAttempts, "react-attempts", 40, "attempts after which a reaction is given up; 40 take 30 hours")
	flags.DurationVar(&s.reactTimeout, "react-timeout", 30*time.Second, "time for an attempt; twice that after a worker was killed, others repeat its reactions")
	flags.Float64Var(&s.rate, "rate", 5, "maximum number of requests per second to the service at LABHEALTH_BASE_URL, with LABHEALTH_API_KEY; "+
		"with -role reconcile, or without -nats")
	flags.DurationVar(&s.interval, "reconcile-every", 5*time.Minute, "how often to read the orders that the service has changed; as for -rate")
	flags.DurationVar(&s.walk, "walk-every", 24*time.Hour, "how often to read all orders, and the data of all users, with at most half of -rate; as for -rate")
}

// rule is what flags must satisfy.
type rule struct {
	holds   bool
	message string
}

// check returns an error for the first rule that the flags violate.
func (s *settings) check() error {
	for _, r := range slices.Concat(s.roleRules(), s.valueRules(), s.orderRules()) {
		if !r.holds {
			return errors.New(r.message)
		}
	}
	return nil
}

func (s *settings) roleRules() []rule {
	broker, database, reconciles := s.nats != "", s.postgres != "", s.role == "reconcile"
	secured := len(s.secrets) > 0 || s.unsigned
	return []rule{
		{slices.Contains([]string{"all", "receive", "work", "reconcile", "repartition", "copy", "move", "requeue"}, s.role), "-role is receive, work, reconcile or all, or repartition, copy, move or requeue"},
		{!reconciles || database, "-role reconcile needs -postgres; with SQLite, the process that receives also reconciles"},
		{!reconciles || !broker, "-role reconcile needs no -nats"},
		{broker || reconciles || s.isOffline() || !database && s.role == "all", "-postgres and -role need -nats"},
		{s.transfers() == (s.to != ""), "-role copy and move need -to, and other roles do not"},
		{s.reason == "" || s.role == "requeue", "-reason needs -role requeue"},
		{!broker || database || !s.works(), "-nats needs -postgres, except with -role receive"},
		{s.receives() || !s.demo, "-demo needs a role that receives"},
		{secured || !s.receives(), "LABHEALTH_WEBHOOK_SECRET holds no secret; use -unsigned for a service that does not sign"},
	}
}

func (s *settings) valueRules() []rule {
	isWord := s.stream != "" && !strings.ContainsAny(s.stream, ".*> \t/\\")
	return []rule{
		{s.nats != "" || len(s.monitors) == 0, "-nats-monitor needs -nats"},
		{!slices.ContainsFunc(s.monitors, notHTTP), "-nats-monitor is a URL such as http://127.0.0.1:8222, or several separated by commas"},
		{isWord, "-stream is one word without dots"},
		{within(s.batch, 1, 10_000), "-batch is 1 to 10000"},
		{within(s.parallel, 1, 100), "-parallel is 1 to 100"},
		{within(s.attempts, 1, 300), "-attempts is 1 to 300"},
		{s.stalled >= time.Second, "-stalled is at least a second"},
		{s.replicas >= 1, "-replicas is 1 or more"},
		{min(s.ackWait, s.dedup) >= time.Second && s.ackWait <= time.Hour, "-ack-wait is 1s to 1h, and -dedup at least 1s"},
	}
}

func (s *settings) orderRules() []rule {
	reacts := len(s.react) > 0
	return []rule{
		{!slices.ContainsFunc(s.react, isUnknown), "-react is transition, results, summary or samples, or several separated by commas"},
		{reacts || s.reactURL == "", "-react-url needs -react"},
		{s.reactURL == "" || !notHTTP(s.reactURL), "-react-url is a URL such as https://host/path"},
		{within(s.reactAttempts, 1, 1000), "-react-attempts is 1 to 1000"},
		{s.reactTimeout >= 100*time.Millisecond && s.reactTimeout <= time.Hour, "-react-timeout is 100ms to 1h"},
		{!s.reconciles() || s.apiKey != "" && s.baseURL != "", "LABHEALTH_API_KEY and LABHEALTH_BASE_URL are the key and the base URL of the service: set both"},
		{s.rate > 0 && s.rate <= 1000, "-rate is more than 0, up to 1000"},
		{min(s.interval, s.walk) > 0, "-reconcile-every and -walk-every are more than 0"},
	}
}

// owns reports whether a user is in -partition.
func (s *settings) owns(userID uuid.UUID) bool {
	slot := sqlstore.Slot(userID)
	return slices.ContainsFunc(s.partitions, func(p partition) bool { return p.has(slot) })
}

// checkPartitions reads -partition.
func (s *settings) checkPartitions() (err error) {
	s.partitions, err = parsePartitions(s.partition)
	switch {
	case err != nil:
		return err
	case s.role == "repartition":
		return complete(s.partitions)
	case len(s.partitions) > 1 && !s.transfers():
		return errors.New("-partition is one range for a worker")
	}
	return nil
}

// parseDays reads a number of days, such as 90d.
func parseDays(value string) (time.Duration, error) {
	number, ok := strings.CutSuffix(value, "d")
	days, err := strconv.Atoi(number)
	if !ok || err != nil || !within(days, 1, 100_000) {
		return 0, errors.New("-keep is 1d to 100000d")
	}
	return time.Duration(days) * 24 * time.Hour, nil
}

// notHTTP reports whether an address is no URL of a server.
func notHTTP(address string) bool {
	u, err := url.Parse(address)
	return err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == ""
}

// isUnknown reports whether there is no such kind of reaction.
func isUnknown(kind sqlstore.ReactionKind) bool {
	return !slices.Contains([]sqlstore.ReactionKind{sqlstore.ReactTransition, sqlstore.ReactResults, sqlstore.ReactSummary, sqlstore.ReactSamples}, kind)
}

func within(n, low, high int) bool { return low <= n && n <= high }
