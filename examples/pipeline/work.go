package main

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	_ "modernc.org/sqlite"

	"github.com/labhealth/labhealth-go/labhealthprom"
	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// worker takes deliveries from the broker, applies them to the database, and acknowledges them
// after the commit. If it dies, the broker delivers its messages to another one after -ack-wait:
// applying a delivery twice changes nothing.
//
// What cannot be applied like this moves to the inbox of sqlstore: a delivery that cannot be read
// completely, and a batch that the database rejects or that takes too long. There a
// [sqlstore.Worker] makes it a dead letter, or tries the deliveries of the batch one at a time, so
// that a bad one does not stop the others. While the database is unavailable, deliveries stay in
// the broker.
type worker struct {
	*broker
	db      *sql.DB
	store   *sqlstore.Store
	observe sqlstore.StepObserver
	started atomic.Bool
}

func newWorker(b *broker, registry *prometheus.Registry) (*worker, error) {
	db, store, err := open(b.settings)
	if err != nil {
		return nil, err
	}
	observe, err := labhealthprom.Worker(registry)
	if err != nil {
		return nil, err
	}
	return &worker{broker: b, db: db, store: store, observe: observe}, labhealthprom.Backlog(registry, store)
}

// open opens the database, which may not be available yet.
func open(s *settings) (*sql.DB, *sqlstore.Store, error) {
	driver, source, dialect := "pgx", s.postgres, sqlstore.PostgreSQL
	if s.sqlite != "" {
		// A commit is synced to the disk: see "synchronous" in the documentation of SQLite.
		driver, source, dialect = "sqlite", "file:"+(&url.URL{Path: s.sqlite}).EscapedPath()+
			"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)&_txlock=immediate", sqlstore.SQLite
	} else if _, err := pgx.ParseConfig(source); err != nil { // which may quote a password
		return nil, nil, errors.New("-postgres: not a database URL, such as postgres://user@host/database")
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxIdleConns(s.parallel + 2)
	db.SetConnMaxLifetime(time.Minute) // after a failover, a session may stay with the former primary
	store, err := sqlstore.Open(db, dialect)
	if err != nil {
		return nil, nil, err
	}
	store.Keep = time.Duration(s.keepDays) * 24 * time.Hour
	return db, store, nil
}

// ready returns why deliveries cannot be applied.
func (w *worker) ready(ctx context.Context) error {
	switch {
	case w.db.PingContext(ctx) != nil:
		return errors.New("the database is unavailable")
	case !w.started.Load():
		return errors.New("the tables are not created yet")
	}
	return w.broker.ready(ctx)
}

// run applies deliveries until ctx is done, and then finishes the current batches.
func (w *worker) run(ctx context.Context) {
	defer w.db.Close()
	for !w.started.Load() && ctx.Err() == nil {
		err := w.start(ctx)
		w.started.Store(err == nil)
		w.pause(ctx, err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		inbox := sqlstore.Worker{Store: w.store, Batch: w.batch, Observe: w.observe}
		inbox.Run(ctx)
	})
	for range w.parallel { // one batch is read while another is in the database
		running.Go(func() {
			for ctx.Err() == nil {
				w.pause(ctx, w.applyBatches(ctx))
			}
		})
	}
	running.Wait()
}

// pause logs an error, unless watch does, and waits. Errors of the store and the broker quote no
// data.
func (w *worker) pause(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	if !errors.Is(err, nats.ErrReconnectBufExceeded) && !errors.Is(err, jetstream.ErrStreamNotFound) {
		w.log.Warn("deliveries are not applied", "error", err)
	}
	sleep(ctx, time.Second)
}

// unsafeSettings are the settings of a session with which PostgreSQL commits what is not on its
// disk.
const unsafeSettings = `SELECT coalesce(string_agg(name || '=' || setting, ' ' ORDER BY name), '') FROM pg_settings
	WHERE name IN ('synchronous_commit', 'fsync', 'full_page_writes') AND setting = 'off'`

// start creates the tables, and logs if a power failure of the database can lose what was
// acknowledged: deliveries are removed from the broker after the commit.
func (w *worker) start(ctx context.Context) error {
	if err := w.store.Migrate(ctx); err != nil || w.sqlite != "" {
		return err
	}
	var found string
	err := w.db.QueryRowContext(ctx, unsafeSettings).Scan(&found)
	if found != "" {
		w.log.Warn("a power failure of the database loses deliveries that were acknowledged: these settings must be on for the user of -postgres", "settings", found)
	}
	return err
}

// applyBatches applies batches of the broker until one cannot be applied or ctx is done.
func (w *worker) applyBatches(ctx context.Context) error {
	consumer, err := w.js.CreateOrUpdateConsumer(ctx, w.stream, jetstream.ConsumerConfig{
		Durable:       "workers", // all of them share it
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       w.ackWait,
		MaxDeliver:    -1, // for as long as the database is unavailable
		MaxAckPending: 100 * w.batch,
	})
	for err == nil && ctx.Err() == nil {
		err = w.applyNext(context.WithoutCancel(ctx), consumer)
	}
	return err
}

// applyNext applies the next batch, and acknowledges its messages or has them delivered again.
func (w *worker) applyNext(ctx context.Context, consumer jetstream.Consumer) error {
	// Waiting for more makes fewer transactions.
	fetched, err := consumer.Fetch(w.batch, jetstream.FetchMaxWait(500*time.Millisecond))
	if err != nil {
		return err
	}
	var msgs []jetstream.Msg
	var raws []webhooks.RawDelivery
	for msg := range fetched.Messages() {
		msgs, raws = append(msgs, msg), append(raws, rawOf(msg))
	}
	if len(msgs) == 0 {
		return fetched.Error()
	}
	rest, err := w.apply(ctx, raws)
	if failure := (*sqlstore.Error)(nil); errors.As(err, &failure) && (failure.Rejected || failure.TimedOut) {
		rest, err = raws, nil
	}
	if err == nil {
		err = w.moveToInbox(ctx, rest)
	}
	for _, msg := range msgs {
		if err == nil {
			msg.Ack() // if it is lost, the message is delivered again
		} else {
			msg.NakWithDelay(time.Second)
		}
	}
	return err
}

// apply applies deliveries in one transaction, and returns those that cannot be read completely.
func (w *worker) apply(ctx context.Context, raws []webhooks.RawDelivery) (rest []webhooks.RawDelivery, err error) {
	ctx, cancel := context.WithTimeout(ctx, w.ackWait/2)
	defer cancel()
	var deliveries []webhooks.Delivery
	var readable []webhooks.RawDelivery // of deliveries
	for _, raw := range raws {
		if d, err := raw.Parse(); err != nil {
			rest = append(rest, raw)
		} else {
			deliveries, readable = append(deliveries, d), append(readable, raw)
		}
	}
	step := sqlstore.Step{Batch: len(deliveries)}
	ctx = w.observe.Start(ctx)
	applied, err := w.store.ApplyAll(ctx, deliveries)
	for i, a := range applied {
		if a.Err != nil {
			rest = append(rest, readable[i])
			continue
		}
		step.Applied++
		step.Changes.Added += a.Changes.Added
		step.Changes.Updated += a.Changes.Updated
		step.Changes.Same += a.Changes.Same
		step.Changes.Older += a.Changes.Older
		step.Changes.Repeated += a.Changes.Repeated
	}
	w.observe.End(ctx, step, err)
	return rest, err
}

// moveToInbox stores deliveries in the inbox of the database.
func (w *worker) moveToInbox(ctx context.Context, raws []webhooks.RawDelivery) error {
	ctx, cancel := context.WithTimeout(ctx, w.ackWait/4)
	defer cancel()
	for _, raw := range raws {
		if err := w.store.Receive(ctx, raw); err != nil {
			return err
		}
	}
	return nil
}
