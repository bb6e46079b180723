package inspect

import (
	"context"
	"database/sql"
	"errors"
)

// writer writes in one goroutine. Writes that arrive while a transaction is written share the next
// one.
type writer struct {
	db    *sql.DB
	queue chan *write
	done  chan struct{} // closed by close
	files []openFile
}

type write struct {
	do  func(context.Context, *sql.Tx) error
	err chan error
}

var errClosed = errors.New("inspect: closed")

func newWriter(db *sql.DB) *writer {
	return &writer{db: db, queue: make(chan *write, 256), done: make(chan struct{})}
}

func (w *writer) close() { close(w.done) }

// write runs do in a transaction and returns when it is committed. It does not stop when the
// context of a caller ends: other writes share the transaction.
func (w *writer) write(do func(context.Context, *sql.Tx) error) error {
	one := &write{do, make(chan error, 1)}
	select {
	case w.queue <- one:
	case <-w.done:
		return errClosed
	}
	select {
	case err := <-one.err:
		return err
	case <-w.done:
		select {
		case err := <-one.err:
			return err
		default:
			return errClosed
		}
	}
}

// run writes until close is called.
func (w *writer) run() {
	for {
		select {
		case <-w.done:
			return
		case first := <-w.queue:
			all := []*write{first}
			for len(all) < cap(w.queue) && len(w.queue) > 0 {
				all = append(all, <-w.queue)
			}
			w.writeAll(all)
		}
	}
}

// writeAll writes a batch. A write that fails does not fail the others.
func (w *writer) writeAll(all []*write) {
	errs := make([]error, len(all))
	err := func() error {
		if err := w.checkFiles(); err != nil {
			return err
		}
		ctx := context.Background()
		tx, err := w.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		for n, one := range all {
			if errs[n], err = savepoint(ctx, tx, one.do); err != nil {
				return err
			}
		}
		return tx.Commit()
	}()
	for n, one := range all {
		if err != nil {
			errs[n] = err
		}
		one.err <- errs[n]
	}
}

// savepoint runs do and undoes what it wrote if it fails with failed. err fails the transaction.
func savepoint(ctx context.Context, tx *sql.Tx, do func(context.Context, *sql.Tx) error) (failed, err error) {
	if _, err := tx.ExecContext(ctx, `SAVEPOINT one`); err != nil {
		return nil, err
	}
	if failed = do(ctx, tx); failed != nil {
		if _, err := tx.ExecContext(ctx, `ROLLBACK TO one`); err != nil {
			return failed, failed // such as a full disk, which ends the transaction
		}
	}
	_, err = tx.ExecContext(ctx, `RELEASE one`)
	return failed, err
}

// nextRev returns the number of the next change.
func nextRev(ctx context.Context, tx *sql.Tx) (rev int64, err error) {
	err = tx.QueryRowContext(ctx, `UPDATE delivery_state SET rev = rev + 1 RETURNING rev`).Scan(&rev)
	return rev, err
}
