// Dead letters: stored, listed, requeued.

package sqlstore

import (
	"context"
	"database/sql"
	"iter"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/newest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// DeadLetter is a delivery that could not be processed. It holds health data. Printed or logged, it
// shows all fields except the body.
type DeadLetter struct {
	ID       uuid.UUID            // identifies it in [Store.Requeue]
	Delivery webhooks.RawDelivery // as it was received
	Attempts int                  // number of attempts
	FailedAt time.Time            // time of the last attempt
	Reason   string               // a fixed phrase, with the SQLSTATE if there is one; no part of the delivery
}

// DeadLetter stores a delivery that cannot be processed, for a program that receives deliveries
// from a broker. A [Worker] stores dead letters itself. It stores err as a fixed phrase, with the
// SQLSTATE if there is one. It does nothing if there is a dead letter with the same delivery ID
// already.
func (s *Store) DeadLetter(ctx context.Context, d webhooks.RawDelivery, err error) error {
	row := newInboxRow(d)
	return s.transact(ctx, "dead letter", func(tx *sql.Tx) error { return s.addDeadLetter(ctx, tx, row, err) })
}

// deadLetterID returns the ID of a dead letter, which starts with its slot.
func deadLetterID(row *inboxRow) uuid.UUID {
	id := uuid.New()
	if row.ID != "" {
		id = uuid.UUID(digest(row.ID))
	}
	id[0] = byte(row.slot)
	return id
}

// addDeadLetter stores a delivery whose last attempt failed with cause.
func (s *Store) addDeadLetter(ctx context.Context, tx *sql.Tx, row inboxRow, cause error) error {
	_, err := s.exec(ctx, tx, `INSERT INTO labhealth_dead_letters (slot, id, delivery_id, received_at, user_id, attempts, failed_at, reason, body)
		VALUES ($1::smallint, $2::uuid, $3::text, $4::bigint, $5::uuid, $6::integer, $7::bigint, $8::text, $9::bytea) ON CONFLICT (slot, id) DO NOTHING`,
		row.slot, deadLetterID(&row).String(), orNull(escape(row.ID)), newest.ClampUnixNano(row.ReceivedAt), row.user.String(), row.attempts+1,
		s.now().UnixNano(), reasonOf(cause), notNull(row.Body))
	return err
}

// DeadLetters iterates over the dead letters. It holds neither a transaction nor a connection
// between elements, so the program may requeue dead letters in the loop. It stops after an error.
func (s *Store) DeadLetters(ctx context.Context) iter.Seq2[DeadLetter, error] {
	const limit = 100 // a body can be large
	return pages(limit, rowCursor{}, func(c rowCursor) (page []DeadLetter, last rowCursor, err error) {
		if err := s.usable(ctx); err != nil {
			return nil, c, err
		}
		err = s.query(ctx, s.db, func(rows *sql.Rows) error {
			var d DeadLetter
			var received, failed int64
			if err := rows.Scan(&last.slot, &d.ID, unescaped{&d.Delivery.ID}, &received, &d.Attempts, &failed, &d.Reason, &d.Delivery.Body); err != nil {
				return err
			}
			d.Delivery.ReceivedAt, d.FailedAt = time.Unix(0, received).UTC(), time.Unix(0, failed).UTC()
			page, last.id = append(page, d), d.ID
			return nil
		}, `SELECT d.slot, d.id, d.delivery_id, d.received_at, d.attempts, d.failed_at, d.reason, d.body FROM labhealth_dead_letters AS d
			WHERE (d.slot, d.id) > ($1::smallint, $2::uuid) ORDER BY d.slot, d.id LIMIT $3::integer`, c.slot, c.id.String(), limit)
		return page, last, s.failed(ctx, "dead letters", err)
	})
}

// Requeue moves a dead letter back to the inbox, as if it had just been received. Its time of
// receipt is unchanged. It returns false if there is none with that ID.
func (s *Store) Requeue(ctx context.Context, id uuid.UUID) (found bool, err error) {
	row := inboxRow{slot: int64(id[0])}
	err = s.transact(ctx, "requeue", func(tx *sql.Tx) error {
		var d webhooks.RawDelivery
		var received int64
		found, err = s.queryRow(ctx, tx, into{unescaped{&d.ID}, &received, &d.Body}, `DELETE FROM labhealth_dead_letters
			WHERE slot = $1::smallint AND id = $2::uuid RETURNING delivery_id, received_at, body`, row.slot, id.String())
		if err != nil || !found {
			return err
		}
		d.ReceivedAt = time.Unix(0, received).UTC()
		row = newInboxRow(d)
		row.due = s.now().UnixNano()
		return s.addInbox(ctx, tx, &row)
	})
	if err != nil {
		return false, err
	}
	if found {
		s.arrive(row)
	}
	return found, nil
}
