// Pipeline receives events and stores the latest version of every order, sample and summary in a
// database. An event that was acknowledged is never lost. It reacts to changes with -react, and
// reads from the service what was never delivered. In one process, with SQLite in a file:
//
//	go run . -demo
//	LABHEALTH_WEBHOOK_SECRET=whsec_… go run . -addr :8080 -data pipeline.db
//
// In any number of processes, with NATS JetStream between those that receive and those that apply
// to PostgreSQL:
//
//	LABHEALTH_WEBHOOK_SECRET=whsec_… go run . -nats nats://… -role receive
//	go run . -nats nats://… -postgres postgres://… -role work
//	LABHEALTH_BASE_URL=https://… LABHEALTH_API_KEY=… go run . -postgres postgres://… -role reconcile
//
// While a secret is being replaced, set both, separated by a space.
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
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal stops the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stderr))
}

// run runs the program with the arguments until ctx is done, and returns its exit status.
func run(ctx context.Context, args []string, out io.Writer) int {
	s, err := parseFlags(args, out)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err == nil:
		log := slog.New(slog.NewTextHandler(out, nil))
		switch {
		case s.isOnce():
			err = once(ctx, s, log)
		case s.demo && s.data == "":
			err = demonstrate(ctx, s, log)
		default:
			err = start(ctx, s, log)
		}
		if err == nil {
			return 0
		}
	}
	fmt.Fprintln(out, "pipeline:", err)
	return 1
}

// open opens the database, which may not be available yet.
func open(s *settings) (*sql.DB, *sqlstore.Store, error) {
	db, dialect, err := openDatabase(s)
	if err != nil {
		return nil, nil, err
	}
	store, err := sqlstore.Open(db, dialect)
	if err != nil {
		db.Close()
		return nil, nil, err
	}
	store.Keep, store.Reactions = s.keep, s.react
	return db, store, nil
}

// sessionSettings makes statements fail that wait for a lock, so that they can be distinguished
// from slow ones, unless the database has its own limit. From version 14, it also ends the
// transaction of a worker that was killed, which would hold locks until its statement ends.
const sessionSettings = `SELECT set_config(name, CASE name WHEN 'lock_timeout' THEN $1 ELSE '5000' END, false) FROM pg_settings
	WHERE name IN ('lock_timeout', 'client_connection_check_interval') AND setting = '0'`

func openDatabase(s *settings) (*sql.DB, sqlstore.Dialect, error) {
	if s.postgres == "" {
		// A commit is synced to the disk: see "synchronous" in the documentation of SQLite.
		db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: s.data}).EscapedPath()+
			"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)&_txlock=immediate")
		return db, sqlstore.SQLite, err
	}
	config, err := pgx.ParseConfig(s.postgres)
	if err != nil { // which may quote a password
		return nil, 0, errors.New("-postgres: not a database URL, such as postgres://user@host/database")
	}
	db := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sessionSettings, fmt.Sprint((s.ackWait / 2).Milliseconds()))
		return err
	}))
	most := s.parallel + 2
	if len(s.react) > 0 || s.reconciles() {
		most += 2
	}
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	// A session stays read-only, or with a former primary, until it ends.
	db.SetConnMaxLifetime(time.Minute)
	return db, sqlstore.PostgreSQL, nil
}

// pipeline holds the components that run in this process.
type pipeline struct {
	*settings
	metrics *metrics
	log     *slog.Logger
	quiet   *quiet
	db      *sql.DB         // nil with -role receive
	store   *sqlstore.Store // nil with -role receive
	broker  *broker         // nil without -nats

	reconciler       *sqlstore.Reconciler // nil if this process does not reconcile
	observeReactions sqlstore.ReactionObserver

	receipts receipts
	size     *batchSize
	observe  sqlstore.StepObserver
	progress progress // of the workers of the broker
	state    *brokerCollector
	drain    drain
	inbox    progress // of the worker of the inbox
}

// start runs the parts that the settings select until ctx is done, and stops them in the order in
// which events pass through them.
func start(ctx context.Context, s *settings, log *slog.Logger) (err error) {
	p := &pipeline{settings: s, metrics: newMetrics(), log: log, quiet: newQuiet(log), size: newBatchSize(s.batch)}
	defer p.close()
	if err := p.prepare(ctx); err != nil {
		return err
	}

	failed := make(chan error, 2)
	admin, err := p.serve(s.admin, p.adminHandler(ctx), failed)
	if err != nil {
		return err
	}
	defer admin.Close()
	var receiver *receiver
	if s.receives() {
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

	// Take no new deliveries and respond to those in flight. Then commit and acknowledge what the
	// workers have started, and close the connections.
	shutdown, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if receiver != nil {
		err = errors.Join(err, receiver.shutdown(shutdown))
	}
	stopWork()
	workers.Wait()
	log.Info("stopped")
	return err
}

// prepare creates the components of the pipeline, which may not be available yet.
func (p *pipeline) prepare(ctx context.Context) (err error) {
	if p.works() || p.reconciles() {
		if p.db, p.store, err = open(p.settings); err != nil {
			return err
		}
		reportExpired(p.store, p.log)
	}
	if p.nats != "" {
		if p.broker, err = connect(p.settings, p.metrics, p.log); err != nil {
			return err
		}
	} else if p.postgres == "" {
		if err := p.store.Migrate(ctx); err != nil {
			return fmt.Errorf("-data: %w", err)
		}
	}
	if p.reconciles() {
		if p.reconciler, err = p.newReconciler(); err != nil {
			return err
		}
	}
	return p.registerMetrics()
}

// close closes the connections.
func (p *pipeline) close() {
	if p.broker != nil {
		p.broker.close()
	}
	if p.db != nil {
		p.db.Close()
	}
}

// work applies events, reacts and reconciles until ctx is done.
func (p *pipeline) work(ctx context.Context) {
	var workers sync.WaitGroup
	defer workers.Wait()
	if p.broker != nil { // receivers can start before the first worker
		workers.Go(func() {
			p.retry(ctx, "the stream cannot be created", p.broker.prepare)
			p.retry(ctx, "the broker cannot be used", p.broker.admit)
		})
	}
	if p.store == nil {
		return
	}
	p.retry(ctx, "the tables cannot be created", p.store.Migrate)
	if p.reconciler != nil {
		workers.Go(func() { p.reconciler.Run(ctx) })
	}
	if !p.works() {
		return
	}
	if p.postgres != "" {
		p.retry(ctx, "the settings of the database cannot be read", p.checkCommits)
	}
	if len(p.react) > 0 {
		workers.Go(func() { p.workReactions(ctx) })
	}
	// With a broker, the inbox holds requeued dead letters only: see sqlstore.Store.Requeue.
	workers.Go(func() { p.workInbox(ctx) })
	if p.broker != nil {
		for range p.parallel { // one batch is read while another is in the database
			workers.Go(func() { worker{p}.run(ctx) })
		}
	}
}

// retry calls do until it returns nil or ctx is done.
func (p *pipeline) retry(ctx context.Context, problem string, do func(context.Context) error) {
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
			p.log.Warn(problem, "error", err) // errors of the store and the broker quote no data
		}
		sleep(ctx, 250*time.Millisecond)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// workInbox applies the deliveries in the inbox until ctx is done.
func (p *pipeline) workInbox(ctx context.Context) {
	w := sqlstore.Worker{Store: p.store, Batch: p.batch}
	w.Observe.Start = func(ctx context.Context) context.Context {
		p.inbox.start()
		return p.observe.Start(ctx)
	}
	w.Observe.End = func(ctx context.Context, s sqlstore.Step, err error) {
		p.observe.End(ctx, s, err)
		if s.Applied > 0 {
			p.metrics.batches.Observe(float64(s.Applied))
		}
		if err != nil {
			p.inbox.failed(err)
			p.quiet.warn("a batch was not applied", err.Error())
		} else {
			p.inbox.completed(s.Applied > 0)
		}
		p.inbox.stop()
	}
	if p.broker != nil {
		w.Poll = 2 * time.Second
	}
	w.Run(ctx)
}
