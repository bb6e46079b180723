package inspect

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
)

const (
	retainInterval = 10 * time.Minute
	retainLimit    = 200 // deliveries that one transaction deletes
)

// maintain deletes what is older than Keep, and does what was interrupted, until ctx is done.
func (i *Inspector) maintain(ctx context.Context) {
	feed, retain := time.NewTicker(feedDelay), time.NewTicker(retainInterval)
	defer feed.Stop()
	defer retain.Stop()
	i.warn(ctx, "pass deliveries to the store", i.feedWaiting(ctx))
	i.warn(ctx, "delete old deliveries", i.retain(ctx))
	for {
		select {
		case <-ctx.Done():
			return
		case <-feed.C:
			i.warn(ctx, "pass deliveries to the store", i.feedWaiting(ctx))
		case <-retain.C:
			i.warn(ctx, "delete old deliveries", i.retain(ctx))
		}
	}
}

// retain deletes deliveries that are older than Keep, and what the store has of them: samples and
// summaries received before, and the orders and users without any delivery that is left. It returns
// the space to the file system. Deleted content is overwritten in the file (secure_delete).
func (i *Inspector) retain(ctx context.Context) error {
	if i.config.Keep == KeepAll {
		return nil
	}
	before := i.config.Now().Add(-i.config.Keep)
	for {
		n := 0
		err := i.writer.write(func(ctx context.Context, tx *sql.Tx) error {
			old, err := queryNumbers(ctx, tx, `SELECT number FROM deliveries INDEXED BY deliveries_received WHERE received_at < ? ORDER BY received_at LIMIT ?`,
				before.UnixNano(), retainLimit)
			n = len(old)
			if err != nil {
				return err
			}
			return deleteRows(ctx, tx, old)
		})
		if err != nil {
			return err
		}
		if n < retainLimit || ctx.Err() != nil {
			break
		}
	}
	if err := i.retainStore(ctx, before); err != nil {
		return err
	}
	return i.shrink(ctx)
}

// retainStore deletes from the tables of the store.
func (i *Inspector) retainStore(ctx context.Context, before time.Time) error {
	for _, s := range []struct {
		statement string
		args      []any
	}{
		{`DELETE FROM labhealth_dead_letters WHERE received_at < ?`, []any{before.UnixNano()}},
		{`DELETE FROM labhealth_inbox WHERE received_at < ?`, []any{before.UnixNano()}},
		{`DELETE FROM labhealth_samples WHERE version < ?`, []any{before.UnixNano()}},
		{`DELETE FROM labhealth_summaries WHERE version < ?`, []any{before.UnixNano()}},
		{`DELETE FROM labhealth_order_events WHERE order_id NOT IN (SELECT order_id FROM deliveries WHERE order_id <> '')`, nil},
		{`DELETE FROM labhealth_order_results WHERE order_id NOT IN (SELECT order_id FROM deliveries WHERE order_id <> '')`, nil},
		{`DELETE FROM labhealth_orders WHERE order_id NOT IN (SELECT order_id FROM deliveries WHERE order_id <> '')`, nil},
		{`DELETE FROM delivery_transitions WHERE order_id NOT IN (SELECT order_id FROM deliveries WHERE order_id <> '')`, nil},
	} {
		err := i.writer.write(func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, s.statement, s.args...)
			return err
		})
		if err != nil {
			return err
		}
	}
	gone, err := i.usersWithoutDeliveries(ctx)
	if err != nil {
		return err
	}
	for _, user := range gone {
		if err := i.Store.DeleteUser(ctx, user); err != nil {
			return err
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return i.writer.write(func(ctx context.Context, tx *sql.Tx) error { // there is no Reconciler that would need them
		_, err := tx.ExecContext(ctx, `DELETE FROM labhealth_reconciled_users`)
		return err
	})
}

func (i *Inspector) usersWithoutDeliveries(ctx context.Context) (users []uuid.UUID, err error) {
	rows, err := i.db.QueryContext(ctx, `SELECT user_id FROM labhealth_users
		WHERE user_id NOT IN (SELECT user_id FROM deliveries WHERE user_id <> '' AND verdict <> 'rejected')`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		if user, err := uuid.Parse(text); err == nil && user != uuid.Nil {
			users = append(users, user)
		}
	}
	return users, rows.Err()
}

// shrink returns free pages to the file system, and empties the write-ahead log, which still has
// the former content.
func (i *Inspector) shrink(ctx context.Context) error {
	for range 1000 {
		var free int
		err := i.writer.db.QueryRowContext(ctx, `PRAGMA freelist_count`).Scan(&free)
		if err != nil || free == 0 {
			return errors.Join(err, i.checkpoint(ctx))
		}
		if err := i.vacuum(ctx); err != nil {
			return err
		}
	}
	return i.checkpoint(ctx)
}

// vacuum returns 1,000 pages. The statement has a row for each.
func (i *Inspector) vacuum(ctx context.Context) error {
	rows, err := i.writer.db.QueryContext(ctx, `PRAGMA incremental_vacuum(1000)`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		continue
	}
	return rows.Err()
}

func (i *Inspector) checkpoint(ctx context.Context) error {
	var busy, log, done int
	return i.writer.db.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &log, &done)
}

// deleteRows deletes deliveries.
func deleteRows(ctx context.Context, tx *sql.Tx, numbers []int64) error {
	for _, number := range numbers {
		var d Delivery
		var user, order string
		err := tx.QueryRowContext(ctx, `SELECT number, type, user_id, client_user_id, order_id, id, about FROM deliveries WHERE number = ?`, number).
			Scan(&d.Number, &d.Type, &user, &d.ClientUserID, &order, &d.ID, &d.About)
		if err != nil {
			return err
		}
		d.UserID, d.OrderID = parseID(user), parseID(order)
		_, err = tx.ExecContext(ctx, `INSERT INTO delivery_search (delivery_search, rowid, type, user, orders, id, words) VALUES ('delete', ?, ?, ?, ?, ?, ?)`,
			d.searchRow()...)
		if err != nil {
			return err
		}
		for _, statement := range []string{`DELETE FROM delivery_bodies WHERE number = ?`, `DELETE FROM deliveries WHERE number = ?`} {
			if _, err := tx.ExecContext(ctx, statement, number); err != nil {
				return err
			}
		}
	}
	return nil
}

// limitRejected deletes the oldest rejected deliveries while there are too many.
func limitRejected(ctx context.Context, tx *sql.Tx) error {
	const kept = `CASE WHEN size > ? THEN 0 ELSE size END`
	var n int
	var size int64
	err := tx.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(`+kept+`), 0) FROM deliveries INDEXED BY deliveries_rejected WHERE verdict = 'rejected'`,
		maxRejectedBody).Scan(&n, &size)
	if err != nil || n <= maxRejected && size <= maxRejectedBytes {
		return err
	}
	rows, err := tx.QueryContext(ctx, `SELECT number, `+kept+` FROM deliveries INDEXED BY deliveries_rejected WHERE verdict = 'rejected' ORDER BY number`, maxRejectedBody)
	if err != nil {
		return err
	}
	defer rows.Close()
	var old []int64
	for (n > maxRejected || size > maxRejectedBytes) && rows.Next() {
		var number, bytes int64
		if err := rows.Scan(&number, &bytes); err != nil {
			return err
		}
		old = append(old, number)
		n, size = n-1, size-bytes
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	return deleteRows(ctx, tx, old)
}

func queryNumbers(ctx context.Context, tx *sql.Tx, query string, args ...any) (numbers []int64, err error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var number int64
		if err := rows.Scan(&number); err != nil {
			return nil, err
		}
		numbers = append(numbers, number)
	}
	return slices.Clip(numbers), rows.Err()
}
