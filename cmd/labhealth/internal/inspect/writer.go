package inspect

import (
	"context"
	"database/sql"
	"errors"
)

// writer writes in one transaction after the other: its pool has one connection.
type writer struct {
	db    *sql.DB
	files []openFile
}

var errClosed = errors.New("inspect: closed")

// write runs do in a transaction. It does not stop when the context of a caller ends.
func (w *writer) write(do func(context.Context, *sql.Tx) error) error {
	if err := w.checkFiles(); err != nil {
		return err
	}
	ctx := context.Background()
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := do(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}

// nextRev returns the number of the next change.
func nextRev(ctx context.Context, tx *sql.Tx) (rev int64, err error) {
	err = tx.QueryRowContext(ctx, `UPDATE delivery_state SET rev = rev + 1 RETURNING rev`).Scan(&rev)
	return rev, err
}
