package inspect

import (
	"context"
	"database/sql"
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
		var old []int64
		err := i.writer.write(func(ctx context.Context, tx *sql.Tx) (err error) {
			old, err = queryNumbers(ctx, tx, `SELECT number FROM deliveries INDEXED BY deliveries_received WHERE received_at < ? ORDER BY received_at LIMIT ?`,
				before.UnixNano(), retainLimit)
			if err != nil {
				return err
			}
			return deleteRows(ctx, tx, old)
		})
		if err != nil {
			return err
		}
		if len(old) < retainLimit || ctx.Err() != nil {
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
	for table, at := range map[string]string{
		"labhealth_dead_letters": "received_at", "labhealth_inbox": "received_at", "labhealth_samples": "version", "labhealth_summaries": "version",
	} {
		if err := i.exec(`DELETE FROM `+table+` WHERE `+at+` < ?`, before.UnixNano()); err != nil {
			return err
		}
	}
	for _, table := range []string{"labhealth_order_events", "labhealth_order_results", "labhealth_orders", "delivery_transitions"} {
		if err := i.exec(`DELETE FROM ` + table + ` WHERE order_id NOT IN (SELECT order_id FROM deliveries WHERE order_id <> '')`); err != nil {
			return err
		}
	}
	users, err := i.usersWithoutDeliveries(ctx)
	if err != nil {
		return err
	}
	for _, user := range users {
		if user == uuid.Nil {
			continue
		}
		if err := i.Store.DeleteUser(ctx, user); err != nil {
			return err
		}
	}
	if len(users) == 0 {
		return nil
	}
	return i.exec(`DELETE FROM labhealth_reconciled_users`) // there is no Reconciler that would need them
}

// exec runs a statement in a transaction.
func (i *Inspector) exec(statement string, args ...any) error {
	return i.writer.write(func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, statement, args...)
		return err
	})
}

func (i *Inspector) usersWithoutDeliveries(ctx context.Context) ([]uuid.UUID, error) {
	return query(ctx, i.db, func(row scanner, user *uuid.UUID) error { return row.Scan(user) }, `SELECT user_id FROM labhealth_users
		WHERE user_id NOT IN (SELECT user_id FROM deliveries WHERE user_id <> '' AND verdict <> 'rejected')`)
}

// shrink returns free pages to the file system, and empties the write-ahead log, which still has
// the former content.
func (i *Inspector) shrink(ctx context.Context) error {
	for more := true; more; {
		// The statement has a row, without columns, for each page.
		pages, err := query(ctx, i.writer.db, func(scanner, *struct{}) error { return nil }, `PRAGMA incremental_vacuum(1000)`)
		if err != nil {
			return err
		}
		more = len(pages) > 0
	}
	var busy, log, done int
	return i.writer.db.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &log, &done)
}

// deleteRows deletes deliveries.
func deleteRows(ctx context.Context, tx *sql.Tx, numbers []int64) error {
	for _, number := range numbers {
		var d Delivery
		err := tx.QueryRowContext(ctx, `SELECT number, type, user_id, client_user_id, order_id, id, about FROM deliveries WHERE number = ?`, number).
			Scan(&d.Number, &d.Type, &d.UserID, &d.ClientUserID, &d.OrderID, &d.ID, &d.About)
		if err != nil {
			return err
		}
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
	type sized struct{ number, size int64 }
	rejected, err := query(ctx, tx, func(row scanner, one *sized) error { return row.Scan(&one.number, &one.size) },
		`SELECT number, `+kept+` FROM deliveries INDEXED BY deliveries_rejected WHERE verdict = 'rejected' ORDER BY number`, maxRejectedBody)
	if err != nil {
		return err
	}
	var old []int64
	for _, one := range rejected {
		if n <= maxRejected && size <= maxRejectedBytes {
			break
		}
		old = append(old, one.number)
		n, size = n-1, size-one.size
	}
	return deleteRows(ctx, tx, old)
}

func queryNumbers(ctx context.Context, q queryer, statement string, args ...any) ([]int64, error) {
	return query(ctx, q, func(row scanner, number *int64) error { return row.Scan(number) }, statement, args...)
}
