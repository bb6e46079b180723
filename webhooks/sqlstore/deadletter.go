package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"time"

	"github.com/labhealth/labhealth-go/internal/newest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// DeadLetter is a delivery that could not be processed. It holds health data. Printed or logged, it
// shows all fields except the body.
type DeadLetter struct {
	Number   int64                // identifies it in [Store.Requeue]
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
	row := inboxRow{RawDelivery: d, user: userOf(d.Body)}
	return s.transact(ctx, "dead letter", func(tx *sql.Tx) error {
		return s.addDeadLetter(ctx, tx, row, err)
	})
}

// addDeadLetter stores a delivery whose last attempt failed with cause.
func (s *Store) addDeadLetter(ctx context.Context, tx *sql.Tx, row inboxRow, cause error) error {
	_, err := tx.ExecContext(ctx, s.dialect.bind(`INSERT INTO labhealth_dead_letters
		(delivery_id, received_at, user_id, attempts, failed_at, reason, body) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (delivery_id) DO NOTHING`),
		orNull(escape(row.ID)), newest.ClampUnixNano(row.ReceivedAt), row.user, row.attempts+1,
		s.now().UnixNano(), reasonOf(cause), notNull(row.Body))
	return err
}

// DeadLetters iterates over the dead letters, oldest first. It holds neither a transaction nor a
// connection between elements, so the program may requeue dead letters in the loop. It stops after
// an error.
func (s *Store) DeadLetters(ctx context.Context) iter.Seq2[DeadLetter, error] {
	const limit = 100 // a body can be large
	return pages(limit, 0, func(cursor int64) (page []DeadLetter, last int64, err error) {
		if err := s.usable(ctx); err != nil {
			return nil, 0, err
		}
		err = query(ctx, s.db, func(rows *sql.Rows) error {
			var d DeadLetter
			var id sql.Null[string]
			var received, failed int64
			if err := rows.Scan(&d.Number, &id, &received, &d.Attempts, &failed, &d.Reason, &d.Delivery.Body); err != nil {
				return err
			}
			d.Delivery.ID, d.Delivery.ReceivedAt, d.FailedAt = unescape(id.V), time.Unix(0, received).UTC(), time.Unix(0, failed).UTC()
			page, last = append(page, d), d.Number
			return nil
		}, s.dialect.bind(`SELECT number, delivery_id, received_at, attempts, failed_at, reason, body FROM labhealth_dead_letters
			WHERE number > ? ORDER BY number LIMIT ?`), cursor, limit)
		return page, last, s.failed(ctx, "dead letters", err)
	})
}

// Requeue moves a dead letter back to the inbox, as if it had just been received. Its time of
// receipt is unchanged. It returns false if there is none with that number.
func (s *Store) Requeue(ctx context.Context, number int64) (found bool, err error) {
	err = s.transact(ctx, "requeue", func(tx *sql.Tx) error {
		var id, user sql.Null[string]
		var received int64
		var body []byte
		err := tx.QueryRowContext(ctx, s.dialect.bind(`DELETE FROM labhealth_dead_letters WHERE number = ?
			RETURNING delivery_id, received_at, user_id, body`), number).Scan(&id, &received, &user, &body)
		if found = !errors.Is(err, sql.ErrNoRows); !found {
			return nil
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, s.dialect.bind(insertInbox+`VALUES (?, ?, ?, ?)`), id, received, user, notNull(body))
		}
		return err
	})
	if err != nil {
		return false, err
	}
	s.wake()
	return found, nil
}
