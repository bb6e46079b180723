package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks"
)

// Seen reports whether an id was remembered, by whatever process.
func (s *Store) Seen(ctx context.Context, id string) (bool, error) {
	var found int
	err := s.db.QueryRowContext(ctx, s.sql(`SELECT count(*) FROM labhealth_deliveries WHERE id = ? AND at >= ?`), digest(id), s.oldest()).
		Scan(&found)
	if err == nil && found > 0 && s.dialect == SQLite {
		// The caller acknowledges what it is told, so that has to be on the disk.
		return true, s.transact(ctx, "seen", func(*sql.Tx) error { return nil })
	}
	return found > 0, s.failed(ctx, "seen", err)
}

// remember writes an id, unless it is remembered.
const remember = `INSERT INTO labhealth_deliveries AS d (id, at) VALUES (?, ?)
	ON CONFLICT (id) DO UPDATE SET at = excluded.at WHERE d.at < ?`

// Remember keeps an id for [Store.RememberFor].
func (s *Store) Remember(ctx context.Context, id string) error {
	return s.transact(ctx, "remember", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, s.sql(remember), digest(id), s.now().UnixNano(), s.oldest())
		return err
	})
}

// oldest is since when ids are remembered.
func (s *Store) oldest() int64 {
	age := s.RememberFor
	if age == 0 {
		age = 72 * time.Hour
	}
	return s.now().Add(-age).UnixNano()
}

// Prune forgets ids that are older than [Store.RememberFor]. [Worker.Run] does it once an hour.
func (s *Store) Prune(ctx context.Context) error {
	const atOnce = 10_000 // so that nobody waits long
	lock := ""
	if s.dialect == PostgreSQL {
		lock = ` FOR UPDATE SKIP LOCKED` // another process may be at it
	}
	for {
		var n int64
		err := s.transact(ctx, "prune", func(tx *sql.Tx) error {
			result, err := tx.ExecContext(ctx, s.sql(`DELETE FROM labhealth_deliveries WHERE id IN
				(SELECT id FROM labhealth_deliveries WHERE at < ? ORDER BY at LIMIT ?`+lock+`)`), s.oldest(), atOnce)
			if err != nil {
				return err
			}
			n, err = result.RowsAffected()
			return err
		})
		if err != nil || n < atOnce {
			return err
		}
	}
}

// Receive puts a delivery into the inbox, where a [Worker] finds it, and remembers its id, in one transaction: when it returns nil,
// the delivery outlasts the process. A delivery whose id is remembered is nothing new, and Receive returns nil without work. One
// without an id is always stored. Give it to [webhooks.NewRawHandler]:
//
//	handler, err := webhooks.NewRawHandler(verifier, store.Receive)
//
// With SQLite, deliveries that come while another transaction is written share the next one.
func (s *Store) Receive(ctx context.Context, d webhooks.RawDelivery) error {
	r := &receipt{delivery: d, user: userOf(d.Body), done: make(chan struct{})}
	if s.dialect == SQLite {
		if err := s.receiveTogether(ctx, r); err != nil {
			return s.failed(ctx, "receive", err)
		}
	} else {
		// The database's default may be another isolation than READ COMMITTED, which gives up one of two that have the same id.
		if err := s.retry(ctx, "receive", func() error { return s.receive(ctx, r) }); err != nil {
			return err
		}
	}
	s.wake()
	return nil
}

// receipt is a delivery on its way into the inbox.
type receipt struct {
	delivery webhooks.RawDelivery
	user     sql.Null[string]
	done     chan struct{} // closed when it is written, or not
	err      error         // valid when done is closed
}

// userOf returns the user that a body names, NULL if none can be read.
func userOf(body []byte) sql.Null[string] {
	e, err := webhooks.ParseEnvelope(body)
	if err != nil || e.UserID == uuid.Nil {
		return sql.Null[string]{}
	}
	return sql.Null[string]{V: e.UserID.String(), Valid: true}
}

func (r *receipt) row() []any {
	return []any{orNull(escape(r.delivery.ID)), clamped(r.delivery.ReceivedAt), r.user, notNull(r.delivery.Body)}
}

// intoInbox needs the values of a row.
const intoInbox = `INSERT INTO labhealth_inbox (delivery_id, received_at, user_id, body) `

// receive writes a delivery with one statement, which is a transaction.
func (s *Store) receive(ctx context.Context, r *receipt) error {
	if r.delivery.ID == "" {
		_, err := s.db.ExecContext(ctx, intoInbox+`VALUES ($1, $2, $3, $4)`, r.row()...)
		return err
	}
	_, err := s.db.ExecContext(ctx, `WITH new AS (INSERT INTO labhealth_deliveries AS d (id, at) VALUES ($5, $6)
		ON CONFLICT (id) DO UPDATE SET at = excluded.at WHERE d.at < $7 RETURNING 1) `+
		intoInbox+`SELECT $1::text, $2::bigint, $3::uuid, $4::bytea FROM new`,
		append(r.row(), digest(r.delivery.ID), s.now().UnixNano(), s.oldest())...)
	return err
}

// receiveTogether writes a delivery together with those that wait too, or waits for a goroutine that does.
func (s *Store) receiveTogether(ctx context.Context, r *receipt) error {
	s.mu.Lock()
	s.waiting = append(s.waiting, r)
	s.mu.Unlock()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done(): // It may be in work and get written all the same. Then the next attempt finds its id.
		s.mu.Lock()
		s.waiting = slices.DeleteFunc(s.waiting, func(other *receipt) bool { return other == r })
		s.mu.Unlock()
		return ctx.Err()
	case s.writing <- struct{}{}:
	}
	s.mu.Lock()
	all := s.waiting
	s.waiting = nil
	s.mu.Unlock()
	if len(all) > 0 { // else another goroutine was faster, and wrote r
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second) // It is not for this delivery alone.
		err := s.retry(ctx, "receive", func() error {
			return s.tx(ctx, func(tx *sql.Tx) error { return s.receiveAll(ctx, tx, all) })
		})
		cancel()
		for _, other := range all {
			other.err = err
			close(other.done)
		}
	}
	s.written()
	<-r.done
	return r.err
}

func (s *Store) receiveAll(ctx context.Context, tx *sql.Tx, all []*receipt) error {
	for _, r := range all {
		if r.delivery.ID != "" {
			result, err := tx.ExecContext(ctx, remember, digest(r.delivery.ID), s.now().UnixNano(), s.oldest())
			if err != nil {
				return err
			}
			if n, err := result.RowsAffected(); err != nil || n == 0 {
				if err != nil {
					return err
				}
				continue
			}
		}
		if _, err := tx.ExecContext(ctx, intoInbox+`VALUES (?, ?, ?, ?)`, r.row()...); err != nil {
			return err
		}
	}
	return nil
}

// wake tells an idle worker of this store that there is something to do.
func (s *Store) wake() {
	select {
	case s.arrived <- struct{}{}:
	default: // it has been told
	}
}

// DeadLetter is a delivery that could not be dealt with. It holds health data: printed, it shows everything but that.
type DeadLetter struct {
	Number   int64                // names it for [Store.Requeue]
	Delivery webhooks.RawDelivery // as it came
	Attempts int                  // how often it was tried
	FailedAt time.Time            // the last time
	Reason   string               // a fixed phrase, and the SQLSTATE if there is one; nothing of the delivery
}

// DeadLetter puts a delivery aside that cannot be dealt with, for a program that takes deliveries from a broker; a [Worker] does it by
// itself. Of err, a fixed phrase is kept and the SQLSTATE if there is one. To put aside a delivery again whose id is there already
// changes nothing.
func (s *Store) DeadLetter(ctx context.Context, d webhooks.RawDelivery, err error) error {
	return s.transact(ctx, "dead letter", func(tx *sql.Tx) error {
		return s.bury(ctx, tx, d, userOf(d.Body), 1, reasonOf(err))
	})
}

func (s *Store) bury(ctx context.Context, tx *sql.Tx, d webhooks.RawDelivery, user sql.Null[string], attempts int, reason string) error {
	_, err := tx.ExecContext(ctx, s.sql(`INSERT INTO labhealth_dead_letters
		(delivery_id, received_at, user_id, attempts, failed_at, reason, body) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (delivery_id) DO NOTHING`),
		orNull(escape(d.ID)), clamped(d.ReceivedAt), user, attempts, s.now().UnixNano(), reason, notNull(d.Body))
	return err
}

// DeadLetters goes over the deliveries that could not be dealt with, oldest first. It holds neither a transaction nor a connection
// meanwhile, so the program may put them back as it goes. It ends after an error.
func (s *Store) DeadLetters(ctx context.Context) iter.Seq2[DeadLetter, error] {
	return func(yield func(DeadLetter, error) bool) {
		const inPage = 100 // a body can be large
		for last := int64(0); ; {
			var page []DeadLetter
			err := each(ctx, s.db, func(rows *sql.Rows) error {
				var d DeadLetter
				var id sql.Null[string]
				var received, at int64
				if err := rows.Scan(&d.Number, &id, &received, &d.Attempts, &at, &d.Reason, &d.Delivery.Body); err != nil {
					return err
				}
				d.Delivery.ID, d.Delivery.ReceivedAt, d.FailedAt = unescape(id.V), time.Unix(0, received).UTC(), time.Unix(0, at).UTC()
				page = append(page, d)
				return nil
			}, s.sql(`SELECT number, delivery_id, received_at, attempts, failed_at, reason, body FROM labhealth_dead_letters
				WHERE number > ? ORDER BY number LIMIT ?`), last, inPage)
			if err != nil {
				yield(DeadLetter{}, s.failed(ctx, "dead letters", err))
				return
			}
			for _, d := range page {
				if !yield(d, nil) {
					return
				}
				last = d.Number
			}
			if len(page) < inPage {
				return
			}
		}
	}
}

// Requeue puts a dead letter back into the inbox, to be tried as if it had just come; its time of receipt stays. It returns false
// if there is none of that number.
func (s *Store) Requeue(ctx context.Context, number int64) (found bool, err error) {
	err = s.transact(ctx, "requeue", func(tx *sql.Tx) error {
		var id, user sql.Null[string]
		var received int64
		var body []byte
		err := tx.QueryRowContext(ctx, s.sql(`DELETE FROM labhealth_dead_letters WHERE number = ?
			RETURNING delivery_id, received_at, user_id, body`), number).Scan(&id, &received, &user, &body)
		if found = !errors.Is(err, sql.ErrNoRows); !found {
			return nil
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, s.sql(intoInbox+`VALUES (?, ?, ?, ?)`), id, received, user, notNull(body))
		}
		return err
	})
	if err != nil {
		return false, err
	}
	s.wake()
	return found, nil
}
