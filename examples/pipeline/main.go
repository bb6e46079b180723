// Pipeline receives events and keeps the newest version of everything in a database, so that an event that was acknowledged is
// never lost. In one process, with SQLite in a file:
//
//	go run . -demo
//	LABHEALTH_WEBHOOK_SECRET=whsec_… go run . -addr :8080 -data pipeline.db
//
// In any number of processes, with NATS JetStream between those that receive and those that apply to PostgreSQL:
//
//	LABHEALTH_WEBHOOK_SECRET=whsec_… go run . -nats nats://… -role receive
//	go run . -nats nats://… -postgres postgres://… -role work
//
// While a secret is being exchanged, give both, separated by a space.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// settings are what the flags say.
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

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // A second signal ends the program at once.
	os.Exit(run(ctx, os.Args[1:], os.Stderr))
}

// run does what the arguments say until ctx ends.
func run(ctx context.Context, args []string, out io.Writer) int {
	s, err := parseFlags(args, out)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err == nil:
		log := slog.New(slog.NewTextHandler(out, nil))
		if s.demo && s.data == "" {
			err = demonstrate(ctx, s, log)
		} else {
			err = start(ctx, s, log)
		}
		if err == nil {
			return 0
		}
	}
	fmt.Fprintln(out, "pipeline:", err)
	return 1
}

func parseFlags(args []string, out io.Writer) (*settings, error) {
	s := &settings{secrets: strings.Fields(os.Getenv("LABHEALTH_WEBHOOK_SECRET"))}
	flags := flag.NewFlagSet("pipeline", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&s.addr, "addr", ":8080", "receive deliveries here, at /events")
	flags.StringVar(&s.admin, "admin", "127.0.0.1:8081", "serve /healthz, /readyz and /metrics here")
	flags.StringVar(&s.data, "data", "", "file of the database, without -postgres and -nats; empty means pipeline.db, or one that the demo removes")
	flags.StringVar(&s.postgres, "postgres", "", "address of the database: postgres://user@host/database; PGPASSWORD and ~/.pgpass are read")
	flags.StringVar(&s.nats, "nats", "", "address of the broker: nats://host:4222, several with commas between them")
	flags.StringVar(&s.role, "role", "all", "with -nats: receive, work, or all for both")
	flags.StringVar(&s.stream, "stream", "events", "name of the stream, and first part of its subjects")
	flags.IntVar(&s.partition, "partition", -1, fmt.Sprintf("work on one part of the users, 0 to %d, or -1 for all; with -nats", partitions-1))
	flags.IntVar(&s.batch, "batch", 100, "events that are applied in one transaction, at most")
	flags.IntVar(&s.parallel, "parallel", 2, "batches that a worker has under way; with -nats")
	flags.DurationVar(&s.ackWait, "ack-wait", 30*time.Second, "time to apply a batch, after which other workers get it; with -nats")
	flags.DurationVar(&s.dedup, "dedup", 3*time.Hour, "how long the broker knows the ids of deliveries; with -nats, when the stream is made")
	flags.IntVar(&s.replicas, "replicas", 1, "servers of the broker that store each event: with 3, one of them may fail; with -nats, when the stream is made")
	flags.BoolVar(&s.unsigned, "unsigned", false, "believe everybody who knows the address")
	flags.BoolVar(&s.demo, "demo", false, "have an embedded service send invented events, and end")
	flags.DurationVar(&s.length, "for", 10*time.Second, "how long the demo takes")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if s.demo {
		s.addr, s.secrets, s.unsigned = "127.0.0.1:0", []string{demoSecret}, false
	} else if s.data == "" {
		s.data = "pipeline.db"
	}
	receives, works := s.role != "work", s.role != "receive"
	switch {
	case flags.NArg() > 0:
		return nil, errors.New("there are flags only")
	case !slices.Contains([]string{"all", "receive", "work"}, s.role):
		return nil, errors.New("-role is receive, work or all")
	case s.nats == "" && (s.postgres != "" || s.role != "all"):
		return nil, errors.New("-postgres and -role need -nats")
	case s.nats != "" && works && s.postgres == "":
		return nil, errors.New("-nats needs -postgres, but for -role receive")
	case s.demo && !receives:
		return nil, errors.New("-demo needs a role that receives")
	case s.stream == "" || strings.ContainsAny(s.stream, ".*> \t/\\"):
		return nil, errors.New("-stream is one word without dots")
	case s.partition < -1 || s.partition >= partitions:
		return nil, fmt.Errorf("-partition is 0 to %d, or -1 for all", partitions-1)
	case s.batch < 1 || s.batch > 10_000 || s.parallel < 1 || s.parallel > 100 || s.replicas < 1:
		return nil, errors.New("-batch is 1 to 10000, -parallel is 1 to 100, -replicas is 1 or more")
	case s.ackWait < time.Second || s.dedup < time.Second:
		return nil, errors.New("-ack-wait and -dedup are at least a second")
	case receives && len(s.secrets) == 0 && !s.unsigned:
		return nil, errors.New("LABHEALTH_WEBHOOK_SECRET holds no secret; -unsigned does without, for a service that does not sign")
	}
	return s, nil
}

// open opens the database. It need not be there yet.
func open(s *settings) (db *sql.DB, store *sqlstore.Store, err error) {
	dialect := sqlstore.PostgreSQL
	if s.postgres != "" {
		config, err := pgx.ParseConfig(s.postgres)
		if err != nil {
			return nil, nil, errors.New("-postgres: this is no address of a database, such as postgres://user@host/database") // It may hold a password.
		}
		db = stdlib.OpenDB(*config)
		db.SetMaxOpenConns(s.parallel + 2)
		db.SetMaxIdleConns(s.parallel + 2)
	} else {
		dialect = sqlstore.SQLite
		// What is committed was synced to the disk: see "synchronous" in the documentation of SQLite.
		if db, err = sql.Open("sqlite", "file:"+(&url.URL{Path: s.data}).EscapedPath()+
			"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)&_txlock=immediate"); err != nil {
			return nil, nil, err
		}
	}
	if store, err = sqlstore.Open(db, dialect); err != nil {
		db.Close()
		return nil, nil, err
	}
	return db, store, nil
}

// pipeline is what runs in this process.
type pipeline struct {
	*settings
	metrics *metrics
	log     *slog.Logger
	db      *sql.DB         // nil with -role receive
	store   *sqlstore.Store // nil with -role receive
	broker  *broker         // nil without -nats
}

// start runs what the settings ask for until ctx ends, and ends it in the order in which events pass it.
func start(ctx context.Context, s *settings, log *slog.Logger) (err error) {
	p := &pipeline{settings: s, metrics: newMetrics(), log: log}
	if s.role != "receive" {
		if p.db, p.store, err = open(s); err != nil {
			return err
		}
		defer p.db.Close()
	}
	if s.nats != "" {
		if p.broker, err = connect(s, p.metrics, log); err != nil {
			return err
		}
		defer p.broker.close()
	} else if err := p.store.Migrate(ctx); err != nil {
		return fmt.Errorf("-data: %w", err)
	}

	failed := make(chan error, 2)
	admin, err := p.serve(s.admin, p.adminPage(ctx), failed)
	if err != nil {
		return err
	}
	defer admin.Close()
	var receiver *receiver
	if s.role != "work" {
		if receiver, err = p.receive(failed); err != nil {
			return err
		}
	}
	work, stopWork := context.WithCancel(context.Background())
	defer stopWork()
	var workers sync.WaitGroup
	workers.Go(func() { p.work(work) })

	log.Info("running", "role", s.role, "events", receiver.address(), "admin", admin.Addr)
	if s.demo {
		err = p.play(ctx, receiver.address())
	} else {
		select {
		case <-ctx.Done():
		case err = <-failed:
		}
	}

	// No delivery comes in any more, those that are in work are answered, what the workers have begun is committed and acknowledged.
	// Then the connections are closed.
	patience, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if receiver != nil {
		err = errors.Join(err, receiver.shutdown(patience))
	}
	stopWork()
	workers.Wait()
	log.Info("ended")
	return err
}

// work applies events until ctx ends.
func (p *pipeline) work(ctx context.Context) {
	var workers sync.WaitGroup
	defer workers.Wait()
	if p.broker != nil { // Receivers can begin, though no worker be there yet.
		workers.Go(func() { p.insist(ctx, "the stream cannot be made", p.broker.prepare) })
	}
	if p.store == nil {
		return
	}
	p.insist(ctx, "the tables cannot be made", p.store.Migrate)
	// With a broker, the inbox holds only what somebody has taken out of the dead letters: see sqlstore.Store.Requeue.
	workers.Go(func() { p.workInbox(ctx) })
	if p.broker != nil {
		for range p.parallel { // While one batch is in the database, another is read.
			workers.Go(func() { worker{p}.run(ctx) })
		}
	}
}

// insist goes on trying until it is done, or ctx ends.
func (p *pipeline) insist(ctx context.Context, problem string, do func(context.Context) error) {
	for n := 0; ctx.Err() == nil; n++ {
		err := func() error {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			return do(ctx)
		}()
		if err == nil {
			return
		}
		if n%40 == 0 && ctx.Err() == nil {
			p.log.Warn(problem, "error", err) // Neither the store nor the broker says what it was to keep.
		}
		pause(ctx, 250*time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// workInbox applies what [sqlstore.Store.Receive] has stored.
func (p *pipeline) workInbox(ctx context.Context) {
	w := sqlstore.Worker{Store: p.store, Batch: p.batch, Observe: func(s sqlstore.Step, err error) {
		p.metrics.applied.Add(float64(s.Applied))
		p.metrics.deadLetters.WithLabelValues("inbox").Add(float64(s.Dead))
		p.metrics.countChanges(s.Changes)
		if s.Applied > 0 {
			p.metrics.batches.Observe(float64(s.Applied))
		}
		if err != nil {
			p.metrics.failed.Inc()
			p.log.Warn("a batch was not applied", "error", err)
		}
	}}
	if p.broker != nil {
		w.Poll = 2 * time.Second
	}
	w.Run(ctx)
}
