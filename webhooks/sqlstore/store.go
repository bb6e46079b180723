package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/labhealth/labhealth-go/webhooks"
)

// Dialect is the kind of the database. The zero value is none.
type Dialect int

// The databases that a [Store] works on.
const (
	SQLite     Dialect = iota + 1 // 3.35 or newer
	PostgreSQL                    // 12 or newer, and what speaks its SQL
)

// String returns the name of the dialect.
func (d Dialect) String() string {
	switch d {
	case SQLite:
		return "SQLite"
	case PostgreSQL:
		return "PostgreSQL"
	}
	return fmt.Sprintf("Dialect(%d)", int(d))
}

// Store is a database as the package uses it; see the package for what it guarantees. Make one with [Open]. It is safe for any
// number of goroutines, and any number of processes may have stores of one database.
//
// It is a [webhooks.Memory], for handlers that apply events themselves; with [Store.Receive] a handler needs no other memory.
type Store struct {
	// Version, if it is not nil, says which version of its content a delivery is, in place of the time of receipt: the greater
	// one wins. It must give the same answer whenever and in whatever process it is asked about a message, and must not be changed
	// once the store was used.
	Version func(webhooks.Delivery) int64
	// RememberFor is how long ids of deliveries are remembered. 0 means 72 hours, which outlast the sender's attempts. It must not
	// be changed once the store was used.
	RememberFor time.Duration

	db      *sql.DB
	dialect Dialect
	now     func() time.Time
	writing chan struct{} // SQLite: holds a token while a transaction of this store writes
	arrived chan struct{} // tells one idle worker of this process that the inbox has something

	shapes shapes

	mu      sync.Mutex
	waiting []*receipt // SQLite: deliveries that wait for the next transaction
}

// Open returns a store of db. It checks its arguments and runs nothing: see [Store.Migrate]. The database stays the caller's,
// who closes it, and any driver of the dialect will do: the package documentation names those it is tested with.
func Open(db *sql.DB, dialect Dialect) (*Store, error) {
	switch {
	case db == nil:
		return nil, errors.New("sqlstore: Open needs a database")
	case dialect != SQLite && dialect != PostgreSQL:
		return nil, errors.New("sqlstore: Open needs a dialect, sqlstore.SQLite or sqlstore.PostgreSQL")
	}
	return &Store{
		db: db, dialect: dialect, now: time.Now,
		writing: make(chan struct{}, 1), arrived: make(chan struct{}, 1),
	}, nil
}

// transact runs f in a transaction, and again if the database gave it up for the sake of another one. f must do the same each time.
func (s *Store) transact(ctx context.Context, op string, f func(*sql.Tx) error) error {
	return s.retry(ctx, op, func() error { return s.once(ctx, f) })
}

// retry calls f until it succeeds or fails for another reason than what else the database does.
func (s *Store) retry(ctx context.Context, op string, f func() error) error {
	for attempt := 1; ; attempt++ {
		err := f()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return failed(op, ctx.Err())
		case !isConflict(err) || attempt == mostConflicts:
			return failed(op, err)
		}
		if err := pause(ctx, rand.N(time.Duration(attempt)*10*time.Millisecond)); err != nil {
			return failed(op, err)
		}
	}
}

const mostConflicts = 10

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Store) once(ctx context.Context, f func(*sql.Tx) error) error {
	if s.dialect == SQLite {
		if err := s.write(ctx); err != nil {
			return err
		}
		defer s.written()
	}
	return s.tx(ctx, f)
}

func (s *Store) tx(ctx context.Context, f func(*sql.Tx) error) error {
	opts := &sql.TxOptions{}
	if s.dialect == PostgreSQL {
		opts.Isolation = sql.LevelReadCommitted // each statement sees what was committed before it, also after it waited for a lock
	}
	tx, err := s.db.BeginTx(ctx, opts)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if s.dialect == SQLite {
		// The writer's lock is taken before anything is read: two transactions that both read first could not both go on.
		if _, err := tx.ExecContext(ctx, `UPDATE labhealth_schema SET version = version WHERE false`); err != nil {
			return err
		}
	}
	if err := f(tx); err != nil {
		return err
	}
	if s.dialect == SQLite {
		if err := leaveCommit(ctx, tx); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// leaveCommit gives a transaction of SQLite something to commit if it has changed nothing. What it found, such as the id of a
// delivery, may be the work of a process that was killed before it synced its log: then it is in the cache of the system and not on
// the disk, and a loss of power would take it although it was acknowledged. A commit syncs the whole log, whoever wrote it. A
// checkpoint would, too, but waits for readers, and would have to be made whenever the last connection of all processes was closed.
func leaveCommit(ctx context.Context, tx *sql.Tx) error {
	changed := 0 // by the last statement that changes rows, which is that of the lock if there was no other
	if err := tx.QueryRowContext(ctx, `SELECT changes()`).Scan(&changed); err != nil || changed > 0 {
		return err
	}
	for _, statement := range []string{`INSERT INTO labhealth_schema (version) VALUES (0)`, `DELETE FROM labhealth_schema WHERE version = 0`} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// write waits until no other transaction of this store writes. SQLite has one writer at a time; the goroutines of a process
// take turns here, and processes by SQLite's own lock.
func (s *Store) write(ctx context.Context) error {
	select {
	case s.writing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Store) written() { <-s.writing }

// sql returns a statement with the placeholders of the dialect in place of question marks.
func (s *Store) sql(statement string) string {
	if s.dialect == SQLite {
		return statement
	}
	var text strings.Builder
	for n := 1; ; n++ {
		before, after, found := strings.Cut(statement, "?")
		text.WriteString(before)
		if !found {
			return text.String()
		}
		text.WriteString("$" + strconv.Itoa(n))
		statement = after
	}
}
