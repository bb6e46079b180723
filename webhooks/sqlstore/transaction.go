// Transactions, and their retries.

package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/labhealth/labhealth-go/internal/jitter"
)

// transact runs f in a transaction, and again after a conflict with another one. f must do the same
// each time. The error is an [*Error].
func (s *Store) transact(ctx context.Context, op string, f func(*sql.Tx) error) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	return retry(ctx, op, func() error { return s.runTx(ctx, f) })
}

// runTx runs f in a transaction in which each statement sees the transactions committed before it,
// even after it has waited for a lock. With SQLite, its writes cannot conflict with its reads. The
// error is that of the driver.
func (s *Store) runTx(ctx context.Context, f func(*sql.Tx) error) error {
	if s.name == SQLite {
		return s.writer.transact(ctx, s.db, f)
	}
	return inTx(ctx, s.db, &sql.TxOptions{Isolation: sql.LevelReadCommitted}, func(tx *sql.Tx) error {
		if err := f(tx); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// beginRead begins a transaction whose statements see the same content.
func (s *Store) beginRead(ctx context.Context) (*sql.Tx, error) {
	if s.name == SQLite {
		return s.db.BeginTx(ctx, nil)
	}
	return s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
}

// confirm returns when everything that was read so far is durable.
func (s *Store) confirm(ctx context.Context) error {
	if s.name == PostgreSQL { // what is visible was committed
		return nil
	}
	return s.transact(ctx, "seen", func(*sql.Tx) error { return nil })
}

// change runs a statement in a transaction of its own.
func (s *Store) change(ctx context.Context, op, text string, params ...any) (changed int64, err error) {
	err = s.transact(ctx, op, func(tx *sql.Tx) error {
		changed, err = s.exec(ctx, tx, text, params...)
		return err
	})
	return changed, err
}

// limitLocks makes a statement of tx that waits longer for a lock fail with an error of its own. It
// keeps a lower limit of the connection. With SQLite, the transaction has the only lock.
func (s *Store) limitLocks(ctx context.Context, tx *sql.Tx, limit time.Duration) error {
	if s.name == SQLite {
		return nil
	}
	_, err := tx.ExecContext(ctx, `SELECT set_config('lock_timeout', CASE WHEN current_setting('lock_timeout') = '0'
		OR current_setting('lock_timeout')::interval > $1::text::interval THEN $1::text ELSE current_setting('lock_timeout') END, true)`,
		strconv.FormatInt(max(1, limit.Milliseconds()), 10)+"ms")
	return err
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

// backoff returns how long to wait after a number of earlier failures in a row: first, doubled with
// each, up to longest, or up to half of that less.
func backoff(first time.Duration, failures int, longest time.Duration) time.Duration {
	wait := min(first<<min(failures, 10), longest)
	return wait/2 + jitter.Within(wait/2)
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

// sqliteWriter lets the goroutines of a process take turns in writing: SQLite has one writer at a
// time. Processes wait for SQLite's own lock.
type sqliteWriter struct {
	writing chan struct{} // holds a token while a transaction writes

	mu      sync.Mutex
	waiting []*receipt // deliveries for the next transaction

	prepared preparedStatements
}

func (w *sqliteWriter) transact(ctx context.Context, db *sql.DB, f func(*sql.Tx) error) error {
	select {
	case w.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer w.release()
	return w.writeTx(ctx, db, f)
}

func (w *sqliteWriter) release() { <-w.writing }

// writeTx runs f in a transaction. The caller holds the write token.
func (w *sqliteWriter) writeTx(ctx context.Context, db *sql.DB, f func(*sql.Tx) error) error {
	err := inTx(ctx, db, nil, func(tx *sql.Tx) error {
		// Take the write lock before reading: of two transactions that have both read, only one
		// could write.
		if _, err := tx.ExecContext(ctx, `UPDATE labhealth_schema SET version = version WHERE false`); err != nil {
			return err
		}
		if err := f(tx); err != nil {
			return err
		}
		if err := ensureCommit(ctx, tx); err != nil {
			return err
		}
		return tx.Commit()
	})
	if err == nil {
		w.prepared.prepare(ctx, db)
	}
	return err
}

// ensureCommit makes a change in a transaction that has changed nothing, so that its commit is
// synced. The data that it read, such as the ID of a delivery, may have been written by a process
// that was killed before it synced the log. Then it is only in the cache of the operating system,
// and a power failure would lose it although it was acknowledged. A commit syncs the whole log. So
// would a checkpoint, but it waits for readers, and would be necessary whenever the last connection
// of all processes was closed.
func ensureCommit(ctx context.Context, tx *sql.Tx) error {
	changed := 0 // by the last statement that changes rows, which takes the lock if there was no other
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

// receive writes a delivery together with those that wait, or waits until another goroutine has
// written it.
func (w *sqliteWriter) receive(ctx context.Context, s *Store, r *receipt) error {
	w.mu.Lock()
	w.waiting = append(w.waiting, r)
	w.mu.Unlock()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done(): // It may be in flight and written all the same. Then the next attempt finds its ID.
		w.mu.Lock()
		w.waiting = slices.DeleteFunc(w.waiting, func(other *receipt) bool { return other == r })
		w.mu.Unlock()
		return ctx.Err()
	case w.writing <- struct{}{}:
	}
	w.mu.Lock()
	all := w.waiting
	w.waiting = nil
	w.mu.Unlock()
	if len(all) > 0 { // else another goroutine has taken r
		w.receiveAll(ctx, s, all)
	}
	w.release()
	<-r.done
	return r.err
}

// receiveAll writes deliveries and wakes their goroutines. The caller holds the write token.
func (w *sqliteWriter) receiveAll(ctx context.Context, s *Store, all []*receipt) {
	// ctx belongs to one of the deliveries only.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := retry(ctx, "receive", func() error {
		return w.writeTx(ctx, s.db, func(tx *sql.Tx) error {
			for _, r := range all {
				if err := s.receive(ctx, tx, r); err != nil {
					return err
				}
			}
			return nil
		})
	})
	for _, r := range all {
		r.err = err
		close(r.done)
	}
}
