// Store, and its transactions with retries.

package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/labhealth/labhealth-go/internal/newest"
	"github.com/labhealth/labhealth-go/internal/warn"
	"github.com/labhealth/labhealth-go/webhooks"
)

// Store stores orders, summaries, samples and deliveries in a database. The package documentation
// states its guarantees. Create one with [Open]. It is safe for concurrent use, and any number of
// processes may use the same database.
//
// It is also a [webhooks.Deduplicator], for handlers that apply events themselves. A handler that
// uses [Store.Receive] needs none.
type Store struct {
	// Version, if not nil, returns the version of a delivery, in place of the time of receipt. The
	// greater version wins. It must always return the same value for the same delivery, in every
	// process, and must not be changed after the first use of the store.
	Version func(webhooks.Delivery) int64
	// DuplicateWindow is the time for which delivery IDs are stored. 0 means 72 hours, which is
	// longer than the sender repeats a delivery. It must not be changed after the first use of the
	// store.
	DuplicateWindow time.Duration
	// Keep is the time for which samples are kept after they were measured. [Store.Maintain]
	// deletes older ones. 0 keeps them for ever. Summaries are always kept.
	Keep time.Duration
	// OneSlot makes each transaction touch one slot of users only: see [Slot]. Set it for a
	// database that distributes the tables by their column slot: there, a transaction over several
	// nodes costs more, and fails if one of them fails. With OneSlot, a failing slot delays no
	// other. But each slot of a batch takes a transaction, and Seen does not find deliveries of
	// Receive, nor Receive those of MarkSeen. It has no effect with SQLite, and must not be changed
	// after the first use of the store.
	OneSlot bool
	// Reactions lists the kinds of changes that are queued for a [Reactor]; nil queues none. Set it
	// before the first use of the store. A change after a [Worker], Reactor or [Reconciler] was
	// started has no effect, and any that is started later returns an error. All processes that
	// write to the database must set the same kinds, except one that fills a new database first:
	// see docs/store.md.
	Reactions []ReactionKind

	// Logger receives the warnings of [Worker], [Reactor], [Reconciler] and [Store.Receive]. A
	// problem is written at once, and then ever less often. No record holds patient data. nil means
	// [slog.Default]; slog.New(slog.DiscardHandler) writes nothing. It must not be changed after
	// the first use of the store.
	Logger *slog.Logger

	warnings warn.Log
	failures [databaseUsers]warn.Log // of the database
	looked   atomic.Int64            // when Receive looked at the backlog, in nanoseconds

	db      *sql.DB
	name    Dialect
	writer  sqliteWriter
	now     func() time.Time
	cursors [parts]*cursor // of the workers, by part of the inbox
	arrived chan struct{}  // wakes an idle worker of this process

	reactions *cursor       // of the reactors
	queued    chan struct{} // wakes an idle reactor of this process

	failing failingSlots

	fixed atomic.Pointer[[]ReactionKind] // Reactions, when something was started
	past  atomic.Int64                   // what orders had reached by then, by the service's clock, queues no reactions; 0 for none
}

// Open returns a store of db. It checks its arguments and runs no statement: see [Store.Migrate].
// The caller owns db and closes it. Any driver for the dialect can be used; the package
// documentation lists the tested ones.
func Open(db *sql.DB, dialect Dialect) (*Store, error) {
	switch {
	case db == nil:
		return nil, errors.New("sqlstore: Open needs a database")
	case dialectNames[dialect] == "":
		return nil, errors.New("sqlstore: Open needs a dialect, sqlstore.SQLite or sqlstore.PostgreSQL")
	}
	s := &Store{
		db: db, name: dialect, writer: sqliteWriter{writing: make(chan struct{}, 1)}, now: time.Now,
		arrived: make(chan struct{}, 1), queued: make(chan struct{}, 1), reactions: newCursor(),
	}
	if dialect == SQLite {
		s.writer.prepared.known = map[string]*sql.Stmt{}
	}
	for p := range parts {
		s.cursors[p] = newCursor()
	}
	return s, nil
}

// Dialect identifies the database. The zero value is invalid.
type Dialect int

// The databases that a [Store] supports.
const (
	SQLite     Dialect = iota + 1 // 3.35 or newer
	PostgreSQL                    // 12 or newer, and databases that are compatible with it
)

var dialectNames = map[Dialect]string{SQLite: "SQLite", PostgreSQL: "PostgreSQL"}

// String returns the name of the dialect.
func (d Dialect) String() string {
	return cmp.Or(dialectNames[d], fmt.Sprintf("Dialect(%d)", int(d)))
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
