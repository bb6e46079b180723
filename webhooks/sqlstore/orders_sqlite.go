package sqlstore

import (
	"context"
	"database/sql"

	labhealth "github.com/labhealth/labhealth-go"
)

func (d *sqlite) readOrders(ctx context.Context, tx *sql.Tx, slots []*orderSlot) error {
	for _, s := range slots {
		if err := d.readOrder(ctx, tx, s); err != nil {
			return err
		}
	}
	return nil
}

func (*sqlite) readOrder(ctx context.Context, tx *sql.Tx, s *orderSlot) error {
	err := query(ctx, tx, func(rows *sql.Rows) error {
		s.found, s.isStored = true, true
		return scanOrder(rows, &s.row, &s.row.document)
	}, `SELECT `+orderColumns+`, CASE WHEN o.updated >= ? THEN o.text ELSE '' END FROM labhealth_orders AS o WHERE o.order_id = ?`,
		s.lowest, s.id.String())
	if err != nil {
		return err
	}
	err = query(ctx, tx, func(rows *sql.Rows) error {
		t, err := scanTransition(rows, s.id)
		s.timeline[t.ID] = t
		return err
	}, `SELECT id, at, status, detail FROM labhealth_order_events WHERE order_id = ?`, s.id.String())
	if err != nil {
		return err
	}
	return query(ctx, tx, func(rows *sql.Rows) error {
		var status string
		err := rows.Scan(&status)
		s.stored = labhealth.ResultsStatus(unescape(status))
		return err
	}, `SELECT status FROM labhealth_order_results WHERE order_id = ?`, s.id.String())
}

// writeOrders writes without a condition: there is one writer.
func (*sqlite) writeOrders(ctx context.Context, tx *sql.Tx, slots []*orderSlot) error {
	for _, s := range slots {
		r := &s.row
		_, err := tx.ExecContext(ctx, insertOrders+`VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`+updateOrders+`true`,
			s.id.String(), r.user.String(), r.updated, r.version, r.created, escape(r.status), r.since, string(r.results),
			orNull(idText(r.transaction)), orNull(idText(r.parent)), r.changed, orNull(r.missing), orNull(r.checkAt), orNull(r.resultAt), s.newDocument())
		if err != nil {
			return err
		}
		for _, t := range s.written {
			order, id, at, status, detail := transitionArgs(&t)
			if _, err := tx.ExecContext(ctx, insertTransitions+`VALUES (?, ?, ?, ?, ?)`+updateTransitions, order, id, at, status, detail); err != nil {
				return err
			}
		}
	}
	return nil
}
