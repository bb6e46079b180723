// Deletes a user's data.

package sqlstore

import (
	"context"
	"database/sql"

	"github.com/google/uuid"
)

// DeleteUser deletes all data of a user: samples, summaries, orders with their timelines and
// results, reactions, and deliveries in the inbox and among the dead letters whose envelope names
// the user. It waits for deliveries that a worker has in flight. Delivery IDs are kept; they do not
// identify a user.
//
// It does not block the user: data that arrives later is stored as for a new user. So delete the
// user at the service first, then call DeleteUser, and call it again after the sender's last
// attempt, 28 hours later. A broker in front of the store may hold further deliveries.
//
// A [Reconciler] does not store what the service still lists, such as the orders of a deleted user:
// the ID of the user is kept for that, in labhealth_reconciled_users, until [Reconciler.User] is
// called.
func (s *Store) DeleteUser(ctx context.Context, userID uuid.UUID) error {
	user := keyOf(userID)
	return s.transact(ctx, "delete user", func(tx *sql.Tx) error {
		del := func(statements ...string) error {
			for _, from := range statements {
				if _, err := s.exec(ctx, tx, `DELETE FROM `+from, user.slot, user.id); err != nil {
					return err
				}
			}
			return nil
		}
		const ofUser = ` WHERE slot = $1::smallint AND user_id = $2::uuid`
		const ofSeries = ` WHERE slot = $1::smallint AND series IN (SELECT r.series FROM labhealth_series AS r WHERE r.slot = $1::smallint AND r.user_id = $2::uuid)`
		// A worker moves deliveries from the inbox to the dead letters, and Requeue moves them
		// back. Deleting waits for both, and looks again where they may have stored something. It
		// has not locked the user yet, for whom a worker would wait.
		err := del(`labhealth_dead_letters`+ofUser, `labhealth_inbox`+ofUser, `labhealth_dead_letters`+ofUser)
		if err == nil {
			err = s.lockUsers(ctx, tx, []userKey{user})
		}
		if err == nil {
			err = del(`labhealth_samples`+ofSeries, `labhealth_summaries`+ofSeries, `labhealth_shapes`+ofSeries, `labhealth_series`+ofUser,
				`labhealth_orders`+ofUser, `labhealth_order_events`+ofUser, `labhealth_order_results`+ofUser)
		}
		if err == nil { // after what can take long, because reactors wait for these locks
			err = s.lockUserReactions(ctx, tx, user)
		}
		if err == nil {
			err = del(`labhealth_reactions`+ofUser, `labhealth_reconciled_users`+ofUser, `labhealth_users`+ofUser)
		}
		if err != nil || userID == uuid.Nil {
			return err
		}
		_, err = s.exec(ctx, tx, `INSERT INTO labhealth_reconciled_users (slot, user_id, at, deleted) VALUES ($1::smallint, $2::uuid, $3::bigint, $3::bigint)
			ON CONFLICT (slot, user_id) DO UPDATE SET at = excluded.at, missing = NULL, deleted = excluded.deleted`, user.slot, user.id, s.now().UnixNano())
		return err
	})
}

// deletedUsers returns those of users whom DeleteUser has deleted.
func (s *Store) deletedUsers(ctx context.Context, q queryer, users []userKey) (deleted []userKey, err error) {
	err = s.query(ctx, q, func(rows *sql.Rows) error {
		var n int
		err := rows.Scan(&n)
		deleted = append(deleted, users[n-1])
		return err
	}, `SELECT k.n FROM {k: slot smallint, user_id uuid}
		{find u: deleted | labhealth_reconciled_users | u.slot = {slot} AND u.user_id = k.user_id} WHERE u.deleted IS NOT NULL`,
		rowList{len(users), func(i int) []any { return []any{users[i].slot, users[i].id} }})
	return deleted, err
}
