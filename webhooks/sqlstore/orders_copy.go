package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"strconv"
	"strings"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
)

// orders copies the orders of the user with their timelines.
func (t *transferring) orders(ctx context.Context) error {
	read := t.from.dialect.bind(`SELECT ` + orderColumns + `, o.text FROM labhealth_orders AS o
		WHERE o.user_id = ? AND o.order_id >= ? ORDER BY o.order_id LIMIT ?`)
	for next := uuid.Nil; ; {
		b := t.newBatch()
		err := query(ctx, t.q, func(rows *sql.Rows) error {
			row := new(orderRow)
			if err := scanOrder(rows, row, &row.document); err != nil {
				return err
			}
			b.orders = append(b.orders, copiedOrder(row))
			b.orderSlots = append(b.orderSlots, b.orders[len(b.orders)-1].slot)
			return nil
		}, read, t.user.String(), next.String(), copyDocuments)
		if err != nil || len(b.orders) == 0 {
			return t.from.failed(ctx, "copy, source", err)
		}
		if err := t.timelines(ctx, b); err != nil {
			return t.from.failed(ctx, "copy, source", err)
		}
		if err := t.write(ctx, b, &t.n.Orders); err != nil {
			return err
		}
		last := b.orders[len(b.orders)-1].slot.id
		if next = successor(last); len(b.orders) < copyDocuments || bytes.Compare(next[:], last[:]) < 0 {
			return nil
		}
	}
}

// successor returns the ID after another one.
func successor(id uuid.UUID) uuid.UUID {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i]++; id[i] != 0 {
			break
		}
	}
	return id
}

// copiedOrder returns the order of a row of another store. It has what only an earlier version
// said.
func copiedOrder(row *orderRow) *receivedOrder {
	r := newReceivedOrder(&orderSlot{id: row.id, lowest: row.updated}, decodeOrder(row.document), row.document)
	r.order.ID, r.updated, r.version, r.user, r.timeline, r.copied = row.id, row.updated, row.version, row.user, nil, row
	return r
}

// timelines reads the timelines of the orders of a batch.
func (t *transferring) timelines(ctx context.Context, b *batch) error {
	byID := map[uuid.UUID]*receivedOrder{}
	var ids []any
	for _, r := range b.orders {
		byID[r.slot.id] = r
		ids = append(ids, r.slot.id.String())
	}
	return query(ctx, t.q, func(rows *sql.Rows) error {
		var order uuid.UUID
		e, err := scanTransition(rows, uuid.Nil, &order)
		if r := byID[order]; r != nil {
			e.OrderID = order
			r.timeline = append(r.timeline, e)
		}
		return err
	}, t.from.dialect.bind(`SELECT order_id, id, at, status, detail FROM labhealth_order_events WHERE order_id IN (?`+
		strings.Repeat(", ?", len(ids)-1)+`)`), ids...)
}

// results copies the results of orders of the user, whether or not these are stored.
func (t *transferring) results(ctx context.Context) error {
	read := t.from.dialect.bind(`SELECT order_id, user_id, version, revision, status, text FROM labhealth_order_results WHERE order_id >= ?
		AND (user_id = ? OR order_id IN (SELECT order_id FROM labhealth_orders WHERE user_id = ?)) ORDER BY order_id LIMIT ?`)
	for next := uuid.Nil; ; {
		var page []receivedResults
		err := query(ctx, t.q, func(rows *sql.Rows) error {
			var r receivedResults
			var status string
			err := rows.Scan(&r.orderID, &r.userID, &r.version, &r.revision, &status, &r.document)
			r.status = labhealth.ResultsStatus(unescape(status))
			page = append(page, r)
			return err
		}, read, next.String(), t.user.String(), t.user.String(), copyDocuments)
		if err != nil || len(page) == 0 {
			return t.from.failed(ctx, "copy, source", err)
		}
		if err := t.writeResults(ctx, page); err != nil {
			return err
		}
		last := page[len(page)-1].orderID
		if next = successor(last); len(page) < copyDocuments || bytes.Compare(next[:], last[:]) < 0 {
			return nil
		}
	}
}

// writeResults writes results to the target, twice to verify them: the second time changes nothing.
func (t *transferring) writeResults(ctx context.Context, page []receivedResults) error {
	for range 2 {
		hasChanged := false
		err := t.inTarget(ctx, func(ctx context.Context, tx *sql.Tx) error {
			hasChanged = false // after a conflict
			for _, r := range page {
				changed, err := t.to.applyResults(ctx, tx, r, true)
				if err != nil {
					return err
				}
				hasChanged = hasChanged || changed
			}
			return nil
		})
		if err != nil || !hasChanged || !t.verify {
			return err
		}
	}
	return errNotVerified
}

const movedColumns = "id, kind, user_id, order_id, at, queued, due, attempts, failed_at, reason, body"

// reactions moves the reactions of the user as deliveries does with deliveries. The due of one that
// is being called is in the future: the target calls it again.
func (t *transferring) reactions(ctx context.Context, tx *sql.Tx) error {
	user := t.user.String()
	if err := t.from.lockUserReactions(ctx, tx, user); err != nil {
		return err
	}
	remove := t.from.dialect.bind(`DELETE FROM labhealth_reactions WHERE (due, number) IN (SELECT r.due, r.number` + userReactions +
		` ORDER BY r.number LIMIT ?) RETURNING number, ` + movedColumns)
	insert := t.to.dialect.bind(`INSERT INTO labhealth_reactions (` + movedColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	for {
		var page [][]any
		var digests [][]byte
		err := query(ctx, tx, func(rows *sql.Rows) error {
			var id, kind, user, body string
			var order, reason sql.Null[string]
			var number, at, queued, due, attempts int64
			var failedAt sql.Null[int64]
			err := rows.Scan(&number, &id, &kind, &user, &order, &at, &queued, &due, &attempts, &failedAt, &reason, &body)
			page = append(page, []any{id, kind, user, order, at, queued, due, attempts, failedAt, reason, body})
			digests = append(digests, digest("moved reaction", strconv.FormatInt(number, 10), id))
			return err
		}, remove, user, uuid.Nil.String(), user, copyDocuments)
		if err != nil || len(page) == 0 {
			return err
		}
		err = t.inTarget(ctx, func(ctx context.Context, tx *sql.Tx) error {
			for i, row := range page {
				if err := t.insertDelivery(ctx, tx, insert, digests[i], row); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
}
