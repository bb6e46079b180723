package sqlstore

import (
	"context"
	"database/sql"
)

// readOrders reads a chunk of orders with two statements.
func (*sqlite) readOrders(ctx context.Context, tx *sql.Tx, slots []*orderSlot) error {
	err := inChunks(ctx, tx, slots, `WITH k (n, lowest, order_id) AS (VALUES `, `(?, ?, ?)`, `)
		SELECT `+orderColumns+`, CASE WHEN o.updated >= k.lowest THEN o.text ELSE '' END, k.n
		FROM k CROSS JOIN labhealth_orders AS o ON o.order_id = k.order_id`,
		func(statement *sql.Stmt, chunk []*orderSlot) error {
			args := make([]any, 0, 3*len(chunk))
			for n, s := range chunk {
				args = append(args, n+1, s.lowest, s.id.String())
			}
			return queryPrepared(ctx, statement, func(rows *sql.Rows) error { return scanOrderSlot(rows, chunk) }, args)
		})
	if err != nil {
		return err
	}
	return inChunks(ctx, tx, slots, `WITH k (n, order_id) AS (VALUES `, `(?, ?)`, `)
		SELECT k.n, e.id, e.at, e.status, e.detail FROM k CROSS JOIN labhealth_order_events AS e ON e.order_id = k.order_id
		UNION ALL SELECT k.n, '', 0, r.status, '' FROM k CROSS JOIN labhealth_order_results AS r ON r.order_id = k.order_id`,
		func(statement *sql.Stmt, chunk []*orderSlot) error {
			args := make([]any, 0, 2*len(chunk))
			for n, s := range chunk {
				args = append(args, n+1, s.id.String())
			}
			return queryPrepared(ctx, statement, func(rows *sql.Rows) error { return scanOfOrder(rows, chunk) }, args)
		})
}

// writeOrders writes without a condition: there is one writer.
func (*sqlite) writeOrders(ctx context.Context, tx *sql.Tx, slots []*orderSlot) error {
	var confirmed, others []*orderSlot
	var transitions []Transition
	for _, s := range slots {
		if s.isConfirmed() {
			confirmed = append(confirmed, s)
		} else {
			others = append(others, s)
		}
		for _, t := range s.written {
			transitions = append(transitions, t)
		}
	}
	if err := confirmOrders(ctx, tx, confirmed); err != nil {
		return err
	}
	err := inChunks(ctx, tx, others, insertOrders+`VALUES `, `(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, updateOrders+`true`,
		func(statement *sql.Stmt, chunk []*orderSlot) error {
			args := make([]any, 0, 15*len(chunk))
			for _, s := range chunk {
				r := &s.row
				args = append(args, s.id.String(), r.user.String(), r.updated, r.version, r.created, escape(r.status), r.since, string(r.results),
					orNull(idText(r.transaction)), orNull(idText(r.parent)), r.changed, orNull(r.missing), orNull(r.checkAt), orNull(r.resultAt), s.newDocument())
			}
			_, err := statement.ExecContext(ctx, args...)
			return err
		})
	if err != nil {
		return err
	}
	return inChunks(ctx, tx, transitions, insertTransitions+`VALUES `, `(?, ?, ?, ?, ?)`, updateTransitions,
		func(statement *sql.Stmt, chunk []Transition) error {
			args := make([]any, 0, 5*len(chunk))
			for i := range chunk {
				order, id, at, status, detail := transitionArgs(&chunk[i])
				args = append(args, order, id, at, status, detail)
			}
			_, err := statement.ExecContext(ctx, args...)
			return err
		})
}

// confirmOrders writes orders of which only the version or the document has changed. SQLite would
// write every index of a column that is set, also to the same value.
func confirmOrders(ctx context.Context, tx *sql.Tx, slots []*orderSlot) error {
	if len(slots) == 0 {
		return nil
	}
	statement, err := tx.PrepareContext(ctx, `UPDATE labhealth_orders SET version = ?, text = coalesce(?, text) WHERE order_id = ?`)
	if err != nil {
		return err
	}
	defer statement.Close()
	for _, s := range slots {
		if _, err := statement.ExecContext(ctx, s.row.version, orNull(s.newDocument()), s.id.String()); err != nil {
			return err
		}
	}
	return nil
}
