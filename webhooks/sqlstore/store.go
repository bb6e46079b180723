package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/labhealth/labhealth-go/internal/jitter"
	"github.com/labhealth/labhealth-go/internal/newest"
	"github.com/labhealth/labhealth-go/internal/warn"
	"github.com/labhealth/labhealth-go/webhooks"
)

// Store stores summaries, samples and deliveries in a database. The package documentation states
// its guarantees. Create one with [Open]. It is safe for concurrent use, and any number of
// processes may use the same database.
//
// It is a [webhooks.Deduplicator], for handlers that apply events themselves. A handler that uses
// [Store.Receive] does not need it.
type Store struct {
	// Version, if not nil, returns the version of a delivery, in place of the time of receipt. The
	// greater version wins. It must always return the same value for the same message, in every
	// process, and must not be changed after the first use of the store.
	Version func(webhooks.Delivery) int64
	// DuplicateWindow is the time for which delivery IDs are stored. 0 means 72 hours, which is
	// longer than the sender repeats a message. It must not be changed after the first use of the
	// store.
	DuplicateWindow time.Duration
	// Keep is the time for which samples are kept after they were measured. [Store.Maintain]
	// deletes those of a calendar month (UTC) when the whole month is older. 0 keeps them for ever.
	// Summaries are always kept.
	Keep time.Duration
	// Expired, if not nil, is called after samples were deleted because of Keep. If a partition was
	// dropped, from and before limit the times of its samples, which are not counted: rows is 0. If
	// samples were deleted as rows, from is the zero time, and rows is their number. Several
	// goroutines may call it at the same time.
	Expired func(from, before time.Time, rows int64)
	// Reactions lists the kinds of changes that are queued for a [Reactor]; nil queues none. Set it
	// before the first use of the store: a change after a [Worker], a Reactor or a [Reconciler] was
	// started has no effect, and is an error of those that are started later. All processes that
	// write to the database must set the same, except one that fills a new database before the
	// others: see the package documentation.
	Reactions []ReactionKind

	// Logger is where warnings are written about what runs in the background: those of [Worker],
	// [Reactor] and [Reconciler], and of [Store.Receive]. A problem is written at once, and then
	// ever less often. No record holds patient data. nil means [slog.Default];
	// slog.New(slog.DiscardHandler) writes nothing. It must not be changed after the first use of
	// the store.
	Logger *slog.Logger

	warnings warn.Log
	failures [databaseUsers]warn.Log // of the database
	looked   atomic.Int64            // when Receive looked at the backlog, in nanoseconds

	db      *sql.DB
	name    Dialect
	dialect dialect
	now     func() time.Time
	shapes  shapeCache
	cursors [parts]*cursor // of the workers, by part of the inbox
	counted [parts]*cursor // of Backlog
	arrived chan struct{}  // wakes an idle worker of this process

	reactionCursors [reactionParts]*cursor // of the reactors
	reactionCounted [reactionParts]*cursor // of Backlog
	queued          chan struct{}          // wakes an idle reactor of this process

	fixed atomic.Pointer[[]ReactionKind] // Reactions, when something was started
}

// Open returns a store of db. It checks its arguments and runs no statement: see [Store.Migrate].
// The caller owns db and closes it. Any driver for the dialect can be used; the package
// documentation lists the tested ones.
func Open(db *sql.DB, dialect Dialect) (*Store, error) {
	known, ok := dialects[dialect]
	switch {
	case db == nil:
		return nil, errors.New("sqlstore: Open needs a database")
	case !ok:
		return nil, errors.New("sqlstore: Open needs a dialect, sqlstore.SQLite or sqlstore.PostgreSQL")
	}
	s := &Store{db: db, name: dialect, dialect: known.open(db), now: time.Now, arrived: make(chan struct{}, 1), queued: make(chan struct{}, 1)}
	for p := range reactionParts {
		s.reactionCursors[p], s.reactionCounted[p] = newCursor(p.start()), newCursor(p.start())
	}
	for p := range parts {
		s.cursors[p], s.counted[p] = newCursor(p.start()), newCursor(p.start())
	}
	return s, nil
}

// usable returns an error if s was not made by Open, or if there is no context.
func (s *Store) usable(ctx context.Context) error {
	switch {
	case s == nil || s.db == nil:
		return errors.New("sqlstore: the Store is nil or its zero value: create it with Open")
	case s.Keep < 0:
		return errors.New("sqlstore: Store.Keep must not be negative: 0 keeps samples for ever")
	case ctx == nil:
		return errors.New("sqlstore: ctx must not be nil: use context.Background() if there is no other")
	}
	return s.checkReactions()
}

func (s *Store) version(d webhooks.Delivery) int64 {
	if s.Version != nil {
		return s.Version(d)
	}
	return newest.ClampUnixNano(d.Event.ReceivedAt)
}

// transact runs f in a transaction, and again after a conflict with another one. f must do the same
// each time. The error is an [*Error].
func (s *Store) transact(ctx context.Context, op string, f func(*sql.Tx) error) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	return retry(ctx, op, func() error { return s.dialect.transact(ctx, f) })
}

// inTx runs f in a transaction, which f commits.
func inTx(ctx context.Context, db *sql.DB, options *sql.TxOptions, f func(*sql.Tx) error) error {
	return onConn(ctx, db, func(conn *sql.Conn) (begun bool, err error) {
		tx, err := conn.BeginTx(ctx, options)
		if err != nil {
			return false, err
		}
		defer tx.Rollback()
		return true, f(tx)
	})
}

// onConn runs f with a connection of the pool, and with the next one if the server has closed it
// and f has begun nothing, as package sql does. A connection that cannot write leaves the pool:
// after a failover, the sessions of the old primary stay read-only.
func onConn(ctx context.Context, db *sql.DB, f func(*sql.Conn) (begun bool, err error)) error {
	for idle := db.Stats().Idle; ; idle-- {
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		begun, err := f(conn)
		if isReadOnly(err, begun) {
			_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		}
		_ = conn.Close() // it is in the pool again, or discarded
		if begun || idle < 0 || !errors.Is(err, driver.ErrBadConn) {
			return err
		}
	}
}

// maxAttempts is the number of attempts of a transaction.
const maxAttempts = 10

// retry calls f until it returns something other than a conflict. The error is an [*Error].
func retry(ctx context.Context, op string, f func() error) error {
	for attempt := 1; ; attempt++ {
		err := f()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return failed(op, ctx.Err())
		case !isConflict(err) || attempt == maxAttempts:
			return failed(op, err)
		}
		if err := sleep(ctx, jitter.Within(time.Duration(attempt)*10*time.Millisecond)); err != nil {
			return failed(op, err)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// queryer is a database or a transaction.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// query calls scan with every row of a query.
func query(ctx context.Context, q queryer, scan func(*sql.Rows) error, statement string, args ...any) error {
	rows, err := q.QueryContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	return scanRows(rows, scan)
}

func scanRows(rows *sql.Rows, scan func(*sql.Rows) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
