package sqlstore

import (
	"cmp"
	"context"
	"database/sql"

	"github.com/google/uuid"
)

func (*postgres) readOrders(ctx context.Context, tx *sql.Tx, slots []*orderSlot) error {
	var ids, lowest array
	for _, s := range slots {
		ids.text(s.id.String())
		lowest.int(s.lowest)
	}
	err := query(ctx, tx, func(rows *sql.Rows) error { return scanOrderSlot(rows, slots) }, `SELECT `+orderColumns+`, CASE WHEN o.updated >= k.lowest THEN o.text ELSE '' END, k.n
		FROM unnest($1::uuid[], $2::bigint[]) WITH ORDINALITY AS k (order_id, lowest, n)
		CROSS JOIN LATERAL (SELECT * FROM labhealth_orders WHERE order_id = k.order_id LIMIT 1 FOR UPDATE) AS o`, ids.String(), lowest.String())
	if err != nil {
		return err
	}
	// Another statement sees what was committed while this one waited for the locks.
	return query(ctx, tx, func(rows *sql.Rows) error { return scanOfOrder(rows, slots) }, `SELECT k.n, e.id, e.at, e.status, e.detail FROM unnest($1::uuid[]) WITH ORDINALITY AS k (order_id, n)
		CROSS JOIN LATERAL (SELECT * FROM labhealth_order_events WHERE order_id = k.order_id OFFSET 0) AS e
		UNION ALL SELECT k.n, '', 0, r.status, '' FROM unnest($1::uuid[]) WITH ORDINALITY AS k (order_id, n)
		CROSS JOIN LATERAL (SELECT status FROM labhealth_order_results WHERE order_id = k.order_id LIMIT 1) AS r`, ids.String())
}

// orNullID adds NULL for the zero ID.
func (a *array) orNullID(id uuid.UUID) {
	if id == uuid.Nil {
		a.null()
		return
	}
	a.text(id.String())
}

// orNullInt adds NULL for 0.
func (a *array) orNullInt(n int64) {
	if n == 0 {
		a.null()
		return
	}
	a.int(n)
}

func (*postgres) writeOrders(ctx context.Context, tx *sql.Tx, slots []*orderSlot) error {
	var stored array
	var c [15]array
	for _, s := range slots {
		r := &s.row
		c[0].text(s.id.String())
		c[1].text(r.user.String())
		c[2].int(r.updated)
		c[3].int(r.version)
		c[4].int(r.created)
		c[5].text(escape(r.status))
		c[6].int(r.since)
		c[7].text(string(r.results))
		c[8].orNullID(r.transaction)
		c[9].orNullID(r.parent)
		c[10].int(r.changed)
		c[11].orNullInt(r.missing)
		c[12].orNullInt(r.checkAt)
		c[13].orNullInt(r.resultAt)
		c[14].text(s.newDocument())
		if s.isStored {
			stored.text(s.id.String())
		}
	}
	args := make([]any, 0, len(c)+1)
	for i := range c {
		args = append(args, c[i].String())
	}
	result, err := tx.ExecContext(ctx, insertOrders+`SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bigint[], $5::bigint[],
		$6::text[], $7::bigint[], $8::text[], $9::uuid[], $10::uuid[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::text[])`+
		updateOrders+`o.order_id = ANY ($16::uuid[])`, append(args, stored.String())...)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n != int64(len(slots)) {
		return cmp.Or(err, error(newOrder{}))
	}
	var orders, ids, at, statuses, details array
	for _, s := range slots {
		for _, t := range sortedTimeline(s.written) {
			order, id, time, status, detail := transitionArgs(&t)
			orders.text(order)
			ids.text(id)
			at.int(time)
			statuses.text(status)
			details.text(detail)
		}
	}
	if len(orders) == 0 {
		return nil
	}
	_, err = tx.ExecContext(ctx, insertTransitions+`SELECT * FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::text[], $5::text[])`+
		updateTransitions, orders.String(), ids.String(), at.String(), statuses.String(), details.String())
	return err
}

// newOrder is the error of a transaction in which another one, of another user, has stored an order
// after this one looked for it. It is a conflict: the next attempt finds the order.
type newOrder struct{}

func (newOrder) Error() string { return "sqlstore: the order is new" }

func (newOrder) SQLState() string { return "40001" }
