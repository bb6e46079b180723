package inspect

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// inboxPrefix starts the IDs of deliveries in the inbox of the store: they name the row, also of a
// delivery without an ID.
const inboxPrefix = "inspector-"

// feed puts a stored delivery into the inbox. If it fails, feedWaiting does it again.
func (i *Inspector) feed(ctx context.Context, number int64, at time.Time, body []byte) error {
	return i.Store.Receive(ctx, webhooks.RawDelivery{ID: inboxPrefix + strconv.FormatInt(number, 10), Body: body, ReceivedAt: at})
}

// applied stores what a delivery changed, in the transaction that changed it.
func (i *Inspector) applied(ctx context.Context, tx *sql.Tx, d webhooks.Delivery, c webhooks.Changes) error {
	number, err := strconv.ParseInt(strings.TrimPrefix(d.ID, inboxPrefix), 10, 64)
	if err != nil {
		return fmt.Errorf("inspect: the inbox has a delivery of another program: %w", err)
	}
	transitions := 0
	if order, ok := d.Event.Data.(*webhooks.LabOrder); ok {
		for _, entry := range statuses(&order.Order) {
			result, err := tx.ExecContext(ctx, `INSERT INTO delivery_transitions (order_id, entry) VALUES (?, ?) ON CONFLICT DO NOTHING`, order.ID.String(), entry)
			if err != nil {
				return err
			}
			n, err := result.RowsAffected()
			if err != nil {
				return err
			}
			transitions += int(n)
		}
	}
	rev, err := nextRev(ctx, tx)
	if err != nil {
		return err
	}
	state := stored
	if d.Event.Err() != nil {
		state = unreadable
	}
	_, err = tx.ExecContext(ctx, `UPDATE deliveries SET rev = ?, state = ?, added = ?, updated = ?, same = ?, older = ?, repeated = ?, keyless = ?,
		transitions = ?, changed = ?, reason = CASE ? WHEN 3 THEN 'not all of it could be read' ELSE reason END WHERE number = ?`,
		rev, state, c.Added, c.Updated, c.Same, c.Older, c.Repeated, c.Keyless, transitions, c.Added+c.Updated+transitions > 0, state, number)
	return err
}

// stepped is called after a step of the worker.
func (i *Inspector) stepped(ctx context.Context, s sqlstore.Step) {
	if s.Dead > 0 {
		i.warn(ctx, "mark deliveries that cannot be applied", i.markDead(ctx))
	}
	if s.Batch > 0 {
		wake(i.watchers.woken)
	}
}

// markDead marks the deliveries that the store could not apply.
func (i *Inspector) markDead(ctx context.Context) error {
	type dead struct {
		number int64
		reason string
	}
	all, err := query(ctx, i.db, func(row scanner, one *dead) error { return row.Scan(&one.number, &one.reason) },
		`SELECT d.number, l.reason FROM deliveries AS d INDEXED BY deliveries_waiting
		JOIN labhealth_dead_letters AS l ON l.delivery_id = '`+inboxPrefix+`' || d.number WHERE d.state = 1`)
	if err != nil || len(all) == 0 {
		return err
	}
	return i.writer.write(func(ctx context.Context, tx *sql.Tx) error {
		for _, one := range all {
			rev, err := nextRev(ctx, tx)
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, `UPDATE deliveries SET rev = ?, state = 3, reason = ? WHERE number = ? AND state = 1`, rev, one.reason, one.number); err != nil {
				return err
			}
		}
		return nil
	})
}

// feedWaiting puts deliveries into the inbox that were stored by a process that was killed before
// it could do that.
func (i *Inspector) feedWaiting(ctx context.Context) error {
	if err := i.markDead(ctx); err != nil {
		return err
	}
	for after := int64(0); ; {
		var number, at int64
		var body []byte
		err := i.db.QueryRowContext(ctx, `SELECT d.number, d.received_at, b.body FROM deliveries AS d INDEXED BY deliveries_waiting
			JOIN delivery_bodies AS b ON b.number = d.number
			WHERE d.state = 1 AND d.number > ? AND d.received_at < ? AND
				NOT EXISTS (SELECT 1 FROM labhealth_inbox AS x WHERE x.delivery_id = '`+inboxPrefix+`' || d.number)
			ORDER BY d.number LIMIT 1`, after, i.config.Now().Add(-feedDelay).UnixNano()).Scan(&number, &at, &body)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := i.feed(ctx, number, time.Unix(0, at), body); err != nil {
			return err
		}
		after = number
	}
}

// feedDelay is how long a delivery may be in flight between its row and the inbox.
const feedDelay = 5 * time.Second
