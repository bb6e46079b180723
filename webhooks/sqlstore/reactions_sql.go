package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// orderKey identifies the reactions that are called one after the other.
type orderKey struct{ user, order uuid.UUID }

func (r *reactionRow) orderKey() orderKey { return orderKey{r.user, r.order.UUID} }

// locksOf returns the IDs to lock before rows that were taken are changed: those of the orders, and
// of the users of others.
func locksOf(rows []reactionRow) (ids []uuid.UUID) {
	for i := range rows {
		if rows[i].order.Valid {
			ids = append(ids, rows[i].order.UUID)
		} else {
			ids = append(ids, rows[i].user)
		}
	}
	return ids
}

// ofOrder selects the reactions of an order k that wait.
const ofOrder = `labhealth_reactions AS r WHERE r.user_id = k.user_id AND r.order_id = k.order_id AND r.failed_at IS NULL`

// PostgreSQL

// addReactions inserts all rows with one statement. The user of an order is the stored one.
func (*postgres) addReactions(ctx context.Context, tx *sql.Tx, rows []reactionRow, queued int64) error {
	var ids, kinds, users, orders, at, bodies array
	for i := range rows {
		r := &rows[i]
		ids.text(r.id.String())
		kinds.text(string(r.kind))
		users.text(r.user.String())
		if r.order.Valid {
			orders.text(r.order.UUID.String())
		} else {
			orders.null()
		}
		at.int(r.at)
		bodies.text(r.body)
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO labhealth_reactions (id, kind, user_id, order_id, at, queued, body)
		SELECT i.id, i.kind, coalesce((SELECT user_id FROM labhealth_orders WHERE order_id = i.order_id), i.user_id), i.order_id, i.at, $7::bigint, i.body
		FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::uuid[], $5::bigint[], $6::text[])
			WITH ORDINALITY AS i (id, kind, user_id, order_id, at, body, n) ORDER BY i.n`,
		ids.String(), kinds.String(), users.String(), orders.String(), at.String(), bodies.String(), queued)
	return err
}

// reactionLock is the key of the advisory lock of an ID. Two IDs with the same key share a lock,
// which costs time and does no harm.
const reactionLock = `hashtextextended('labhealth ' || id::text, 0)`

// tryOrder locks the order of each row that is looked at, so that no two reactors take reactions of
// one order.
func (*postgres) tryOrder() string {
	return ` AND (r.order_id IS NULL OR pg_try_advisory_xact_lock(` + strings.Replace(reactionLock, "id::", "r.order_id::", 1) + `))`
}

// lockReactions takes the locks in ascending order.
func (*postgres) lockReactions(ctx context.Context, tx *sql.Tx, ids []uuid.UUID) error {
	var all array
	for _, id := range ids {
		all.text(id.String())
	}
	_, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(key) FROM
		(SELECT DISTINCT `+reactionLock+` AS key FROM unnest($1::uuid[]) AS id ORDER BY key) AS keys`, all.String())
	return err
}

// ofOrders reads the reactions of orders that wait. It skips those that another transaction
// deletes.
func (d *postgres) ofOrders(ctx context.Context, tx *sql.Tx, orders []orderKey) ([]reactionRow, error) {
	var users, ids array
	for _, o := range orders {
		users.text(o.user.String())
		ids.text(o.order.String())
	}
	return scanReactions(ctx, tx, `SELECT r.* FROM unnest($1::uuid[], $2::uuid[]) AS k (user_id, order_id) CROSS JOIN LATERAL (SELECT `+
		reactionColumns+` FROM `+ofOrder+d.skipLocked()+`) AS r`,
		users.String(), ids.String())
}

// changeReactions looks for every time with every number, because a plan for pairs may read the
// whole index. Rows that are changed together have few different times.
func (d *postgres) changeReactions(ctx context.Context, tx *sql.Tx, rows []reactionRow, statement string, args ...any) error {
	var due, numbers array
	times := make([]int64, len(rows))
	for i := range rows {
		numbers.int(rows[i].number)
		times[i] = rows[i].due
	}
	slices.Sort(times)
	for _, t := range slices.Compact(times) {
		due.int(t)
	}
	_, err := tx.ExecContext(ctx, d.bind(statement+` WHERE due = ANY(?::bigint[]) AND number = ANY(?::bigint[])`),
		append(slices.Clone(args), due.String(), numbers.String())...)
	return err
}

// SQLite

func (*sqlite) addReactions(ctx context.Context, tx *sql.Tx, rows []reactionRow, queued int64) error {
	return inChunks(ctx, tx, rows, `INSERT INTO labhealth_reactions (id, kind, user_id, order_id, at, queued, body) VALUES `,
		`(?, ?, coalesce((SELECT user_id FROM labhealth_orders WHERE order_id = ?), ?), ?, ?, ?, ?)`, "",
		func(statement *sql.Stmt, chunk []reactionRow) error {
			args := make([]any, 0, 8*len(chunk))
			for i := range chunk {
				r := &chunk[i]
				args = append(args, r.id.String(), string(r.kind), r.order, r.user.String(), r.order, r.at, queued, r.body)
			}
			_, err := statement.ExecContext(ctx, args...)
			return err
		})
}

// tryOrder and lockReactions do nothing: the transaction has the whole database.
func (*sqlite) tryOrder() string { return "" }

func (*sqlite) lockReactions(context.Context, *sql.Tx, []uuid.UUID) error { return nil }

func (*sqlite) ofOrders(ctx context.Context, tx *sql.Tx, orders []orderKey) (all []reactionRow, err error) {
	err = inChunks(ctx, tx, orders, `WITH k (user_id, order_id) AS (VALUES `, `(?, ?)`, `)
		SELECT `+reactionColumns+` FROM k CROSS JOIN `+ofOrder,
		func(statement *sql.Stmt, chunk []orderKey) error {
			args := make([]any, 0, 2*len(chunk))
			for _, o := range chunk {
				args = append(args, o.user.String(), o.order.String())
			}
			return queryPrepared(ctx, statement, func(rows *sql.Rows) error {
				r, err := scanReaction(rows)
				all = append(all, r)
				return err
			}, args)
		})
	return all, err
}

func (*sqlite) changeReactions(ctx context.Context, tx *sql.Tx, rows []reactionRow, statement string, args ...any) error {
	return inChunks(ctx, tx, rows, statement+` WHERE (due, number) IN (VALUES `, `(?, ?)`, `)`,
		func(statement *sql.Stmt, chunk []reactionRow) error {
			all := slices.Clone(args)
			for i := range chunk {
				all = append(all, chunk[i].due, chunk[i].number)
			}
			_, err := statement.ExecContext(ctx, all...)
			return err
		})
}

// sortReactions sorts rows by order, and those of an order by the place among them. Transitions of
// the same time have the order of the timeline.
func sortReactions(rows []reactionRow) {
	slices.SortFunc(rows, func(a, b reactionRow) int {
		c := cmp.Or(slices.Compare(a.user[:], b.user[:]), slices.Compare(a.order.UUID[:], b.order.UUID[:]), cmp.Compare(a.at, b.at))
		if c == 0 && a.kind == ReactTransition && b.kind == ReactTransition {
			c = compareTransitions(a.reaction().Transition, b.reaction().Transition)
		}
		return cmp.Or(c, cmp.Compare(a.number, b.number))
	})
}
