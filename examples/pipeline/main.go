// Pipeline receives deliveries, keeps them in NATS JetStream, and applies them to a database with
// sqlstore. What it has acknowledged is never lost, and the latest version of every order, sample
// and summary wins.
//
//	LABHEALTH_WEBHOOK_SECRET=whsec_… go run . -nats nats://… -postgres postgres://…
//
// Receivers and workers can be separate processes, as many of each as needed:
//
//	LABHEALTH_WEBHOOK_SECRET=whsec_… go run . -role receive -nats nats://…
//	go run . -role work -nats nats://… -postgres postgres://…
//
// While a secret is being replaced, set both, separated by a space.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal stops the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stderr))
}

// run runs the program until ctx is done, and returns its exit status.
func run(ctx context.Context, args []string, out io.Writer) int {
	s, err := parseFlags(args, out)
	if err == nil {
		err = start(ctx, s, slog.New(slog.NewTextHandler(out, nil)))
	}
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	fmt.Fprintln(out, "pipeline:", err)
	return 1
}

// settings are the values of the flags, and the secrets.
type settings struct {
	role             string
	addr, admin      string
	secrets          []string
	unsigned         bool
	nats, monitors   string // URLs
	stream           string
	postgres, sqlite string
	keepDays         int
	batch, parallel  int
	ackWait          time.Duration
}

func (s *settings) receives() bool { return s.role != "work" }
func (s *settings) works() bool    { return s.role != "receive" }

func parseFlags(args []string, out io.Writer) (*settings, error) {
	s := &settings{secrets: strings.Fields(os.Getenv("LABHEALTH_WEBHOOK_SECRET"))}
	flags := flag.NewFlagSet("pipeline", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&s.role, "role", "all", "receive, work, or all for both")
	flags.StringVar(&s.addr, "addr", ":8080", "receive deliveries here, at /events")
	flags.StringVar(&s.admin, "admin", "127.0.0.1:8081", "serve /healthz, /readyz and /metrics here; must not be public")
	flags.BoolVar(&s.unsigned, "unsigned", false, "accept deliveries without a signature, from anyone")
	flags.StringVar(&s.nats, "nats", "nats://127.0.0.1:4222", "broker URL, several separated by commas")
	flags.StringVar(&s.monitors, "nats-monitor", "", "monitoring URL of the broker: http://host:8222, several separated by commas; "+
		"receive only if its servers have sync_interval: always")
	flags.StringVar(&s.stream, "stream", "events", "name of the stream, which is created if there is none")
	flags.StringVar(&s.postgres, "postgres", "", "database URL of the workers: postgres://user@host/database; PGPASSWORD and ~/.pgpass are read")
	flags.StringVar(&s.sqlite, "sqlite", "", "file of a SQLite database, in place of -postgres, for a single process that works")
	flags.IntVar(&s.keepDays, "keep-days", 0, "delete samples of months (UTC) that ended more than this many days ago; 0 keeps them for ever; the same for all workers")
	flags.IntVar(&s.batch, "batch", 100, "maximum number of deliveries in a transaction")
	flags.IntVar(&s.parallel, "parallel", 2, "transactions of a worker at the same time")
	flags.DurationVar(&s.ackWait, "ack-wait", 30*time.Second, "time after which other workers get the deliveries of one that was killed, "+
		"and twice the time of a transaction; the same for all workers")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case flags.NArg() > 0:
		return nil, errors.New("unexpected argument: there are flags only")
	case s.role != "all" && s.role != "receive" && s.role != "work":
		return nil, errors.New("-role is receive, work or all")
	case s.receives() && len(s.secrets) == 0 && !s.unsigned:
		return nil, errors.New("LABHEALTH_WEBHOOK_SECRET has no secret; use -unsigned for a service that does not sign")
	case s.works() && (s.postgres == "") == (s.sqlite == ""):
		return nil, errors.New("-role work and all need a database: -postgres or -sqlite")
	case s.batch < 1 || s.parallel < 1 || s.keepDays < 0 || s.ackWait < time.Second:
		return nil, errors.New("-batch and -parallel are at least 1, -keep-days is at least 0, and -ack-wait at least 1s")
	}
	return s, nil
}

// start runs the roles until ctx is done, and stops them in the order in which deliveries pass
// through them.
func start(ctx context.Context, s *settings, log *slog.Logger) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	b, err := connect(s, log, registry)
	if err != nil {
		return err
	}
	defer b.close()
	background, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { b.watch(background) })
	checks := map[string]check{}
	if s.works() {
		w, err := newWorker(b, registry)
		if err != nil {
			return err
		}
		checks["work"] = w.ready
		running.Go(func() { w.run(background) })
	}
	failed, events := make(chan error, 2), ""
	if s.receives() {
		handler, err := newHandler(b, registry)
		if err != nil {
			return err
		}
		mux := http.NewServeMux()
		mux.Handle("/events", handler)
		server, err := serve(s.addr, mux, failed)
		if err != nil {
			return err
		}
		defer shutdown(server, handler, log)
		checks["receive"], events = b.ready, server.Addr
	}
	admin, err := serve(s.admin, adminHandler(registry, checks), failed)
	if err != nil {
		return err
	}
	defer admin.Close()
	log.Info("running", "role", s.role, "events", events, "admin", admin.Addr)
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	return err
}

// serve starts a server. Its Addr is the address that it listens on, with the port.
func serve(address string, h http.Handler, failed chan<- error) (*http.Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &http.Server{Addr: listener.Addr().String(), Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	go func() {
		if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
		}
	}()
	return s, nil
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
