package sqlstore

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// DeleteUser deletes all data of a user: samples, the units and types that no other user has,
// summaries, orders with their timelines and results, reactions, and deliveries in the inbox and
// among the dead letters whose envelope names the user. It waits for deliveries that a worker has
// in flight. Delivery IDs are kept; they do not identify a user.
//
// It does not block the user: data that arrives later is stored as for a new user. So delete the
// user at the service first, then call DeleteUser, and call it again after the sender's last
// attempt, 28 hours later. A broker in front of the store may hold further deliveries.
//
// A [Reconciler] does not store what the service still lists, such as the orders of a deleted user:
// the ID of the user is kept for that, in labhealth_reconciled_users, until [Reconciler.User] is
// called.
func (s *Store) DeleteUser(ctx context.Context, userID uuid.UUID) error {
	user := userID.String()
	return s.transact(ctx, "delete user", func(tx *sql.Tx) error {
		// A worker moves deliveries from the inbox to the dead letters, and Requeue moves them
		// back. Deleting waits for both, and looks again where they may have stored something. It
		// has not locked the user yet, for whom a worker would wait.
		for _, table := range []string{"labhealth_dead_letters", "labhealth_inbox", "labhealth_dead_letters"} {
			if _, err := tx.ExecContext(ctx, s.dialect.bind(`DELETE FROM `+table+` WHERE user_id = ?`), user); err != nil {
				return err
			}
		}
		if err := s.dialect.lockUsers(ctx, tx, []string{user}); err != nil {
			return err
		}
		if err := s.deleteContent(ctx, tx, user); err != nil || userID == uuid.Nil {
			return err
		}
		now := s.now().UnixNano()
		_, err := tx.ExecContext(ctx, s.dialect.bind(`INSERT INTO labhealth_reconciled_users (user_id, at, deleted) VALUES (?, ?, ?)
			ON CONFLICT (user_id) DO UPDATE SET at = excluded.at, missing = NULL, deleted = excluded.deleted`), user, now, now)
		return err
	})
}

// deletedUsers returns those of users whom DeleteUser has deleted.
func (s *Store) deletedUsers(ctx context.Context, q queryer, users []string) (deleted []string, err error) {
	for chunk := range slices.Chunk(users, sqliteParameters) {
		args := make([]any, len(chunk))
		for i, user := range chunk {
			args[i] = user
		}
		err := query(ctx, q, func(rows *sql.Rows) error {
			var user uuid.UUID
			err := rows.Scan(&user)
			deleted = append(deleted, user.String())
			return err
		}, s.dialect.bind(`SELECT user_id FROM labhealth_reconciled_users WHERE deleted IS NOT NULL AND user_id IN (?`+
			strings.Repeat(", ?", len(chunk)-1)+`)`), args...)
		if err != nil {
			return nil, err
		}
	}
	return deleted, nil
}

// deleteContent deletes the samples, summaries and orders of a user, who is locked, and the shapes
// that nobody else has.
func (s *Store) deleteContent(ctx context.Context, tx *sql.Tx, user string) error {
	shapes, err := s.shapesOf(ctx, tx, user)
	if err != nil {
		return err
	}
	del := func(tables ...string) error {
		for _, where := range tables {
			if _, err := tx.ExecContext(ctx, s.dialect.bind(`DELETE FROM `+where), user); err != nil {
				return err
			}
		}
		return nil
	}
	err = del(`labhealth_samples WHERE series_id IN (SELECT id FROM labhealth_series WHERE user_id = ?)`,
		`labhealth_summaries WHERE series_id IN (SELECT id FROM labhealth_series WHERE user_id = ?)`,
		`labhealth_series WHERE user_id = ?`)
	if err != nil {
		return err
	}
	// After what can take long, because reactors wait for these locks.
	if err := s.deleteReactions(ctx, tx, user); err != nil {
		return err
	}
	if err := s.deleteOrders(ctx, tx, user); err != nil {
		return err
	}
	// An order that has another user now keeps its results.
	err = del(`labhealth_order_results WHERE user_id = ? AND NOT EXISTS (SELECT 1 FROM labhealth_orders AS o
			WHERE o.order_id = labhealth_order_results.order_id)`,
		`labhealth_reactions WHERE user_id = ?`, `labhealth_reconciled_users WHERE user_id = ?`, `labhealth_users WHERE user_id = ?`)
	if err != nil {
		return err
	}
	return s.deleteShapes(ctx, tx, shapes)
}

// deleteOrders deletes the orders of a user, and then what belongs to them: a delivery that names
// another user may add to an order until it is deleted.
func (s *Store) deleteOrders(ctx context.Context, tx *sql.Tx, user string) error {
	var ids []any
	err := query(ctx, tx, func(rows *sql.Rows) error {
		var id uuid.UUID
		err := rows.Scan(&id)
		ids = append(ids, id.String())
		return err
	}, s.dialect.bind(`DELETE FROM labhealth_orders WHERE user_id = ? RETURNING order_id`), user)
	if err != nil {
		return err
	}
	for chunk := range slices.Chunk(ids, sqliteParameters) {
		for _, table := range []string{"labhealth_order_events", "labhealth_order_results"} {
			_, err := tx.ExecContext(ctx, s.dialect.bind(`DELETE FROM `+table+` WHERE order_id IN (?`+strings.Repeat(", ?", len(chunk)-1)+`)`), chunk...)
			if err != nil {
				return err
			}
		}
	}
	return nil
}
