package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/newest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// Seen reports whether the ID of a delivery is stored, by any process.
func (s *Store) Seen(ctx context.Context, id string) (bool, error) {
	if err := s.usable(ctx); err != nil {
		return false, err
	}
	var found int
	err := s.db.QueryRowContext(ctx, s.dialect.bind(`SELECT count(*) FROM labhealth_deliveries WHERE id = ? AND at >= ?`),
		digest(id), s.oldest()).Scan(&found)
	if err == nil && found > 0 { // the caller acknowledges the delivery
		return true, retry(ctx, "seen", func() error { return s.dialect.confirm(ctx) })
	}
	return found > 0, s.failed(ctx, "seen", err)
}

// MarkSeen stores an ID for [Store.DuplicateWindow].
func (s *Store) MarkSeen(ctx context.Context, id string) error {
	return s.transact(ctx, "mark seen", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, s.dialect.bind(insertID), s.idArgs(id)...)
		return err
	})
}

// idArgs returns the arguments of insertID.
func (s *Store) idArgs(id string) []any {
	return []any{digest(id), s.now().UnixNano(), s.oldest()}
}

// oldest returns the time since which IDs count as stored.
func (s *Store) oldest() int64 {
	age := s.DuplicateWindow
	if age == 0 {
		age = 72 * time.Hour
	}
	return s.now().Add(-age).UnixNano()
}

// Prune deletes IDs that are older than [Store.DuplicateWindow]. [Worker.Run] calls it once an
// hour.
func (s *Store) Prune(ctx context.Context) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	const limit = 10_000 // so that other transactions do not wait long
	statement := s.dialect.bind(`DELETE FROM labhealth_deliveries WHERE id IN
		(SELECT id FROM labhealth_deliveries WHERE at < ? ORDER BY at LIMIT ?` + s.dialect.skipLocked() + `)`)
	for {
		var n int64
		err := s.transact(ctx, "prune", func(tx *sql.Tx) error {
			result, err := tx.ExecContext(ctx, statement, s.oldest(), limit)
			if err != nil {
				return err
			}
			n, err = result.RowsAffected()
			return err
		})
		if err != nil || n < limit {
			return err
		}
	}
}

// Receive stores a delivery in the inbox, for a [Worker], and its ID, in one transaction. When it
// returns nil, the delivery survives a crash of the process. For an ID that is already stored,
// Receive does nothing and returns nil. A delivery without an ID is always stored. Pass Receive to
// [webhooks.NewRawHandler]:
//
//	handler, err := webhooks.NewRawHandler(verifier, store.Receive)
//
// With SQLite, deliveries that arrive while another transaction is written share the next one.
func (s *Store) Receive(ctx context.Context, d webhooks.RawDelivery) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	r := &receipt{done: make(chan struct{}), row: []any{
		orNull(escape(d.ID)), newest.ClampUnixNano(d.ReceivedAt), userOf(d.Body), notNull(d.Body),
	}}
	if d.ID != "" {
		r.id = s.idArgs(d.ID)
	}
	if err := s.dialect.receive(ctx, r); err != nil {
		return s.failed(ctx, "receive", err)
	}
	s.wake()
	return nil
}

// receipt is a delivery that is being stored in the inbox.
type receipt struct {
	row  []any         // arguments of insertInbox
	id   []any         // arguments of insertID; nil if the delivery has no ID
	done chan struct{} // closed when it was written or failed
	err  error         // valid after done is closed
}

// userOf returns the user in a body, or NULL if there is no readable one.
func userOf(body []byte) sql.Null[string] {
	e, err := webhooks.ParseEnvelope(body)
	if err != nil || e.UserID == uuid.Nil {
		return sql.Null[string]{}
	}
	return sql.Null[string]{V: e.UserID.String(), Valid: true}
}

// wake wakes an idle worker of this store.
func (s *Store) wake() {
	select {
	case s.arrived <- struct{}{}:
	default: // one is being woken
	}
}

// inboxRow is a row of labhealth_inbox.
type inboxRow struct {
	webhooks.RawDelivery
	number   int64
	user     sql.Null[string]
	attempts int
}

// take reads and locks rows of the inbox that no other worker has. It stops after some megabytes.
func (s *Store) take(ctx context.Context, tx *sql.Tx, where string, args ...any) ([]inboxRow, error) {
	const maxBytes = 32 << 20
	if err := s.dialect.preferIndexes(ctx, tx); err != nil {
		return nil, err
	}
	rows, err := tx.QueryContext(ctx, s.dialect.bind(`SELECT number, delivery_id, received_at, user_id, attempts, body
		FROM labhealth_inbox WHERE `+where+s.dialect.skipLocked()), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var taken []inboxRow
	for size := 0; size < maxBytes && rows.Next(); {
		var row inboxRow
		var id sql.Null[string]
		var received int64
		if err := rows.Scan(&row.number, &id, &received, &row.user, &row.attempts, &row.Body); err != nil {
			return nil, err
		}
		row.ID, row.ReceivedAt = unescape(id.V), time.Unix(0, received).UTC()
		taken = append(taken, row)
		size += len(row.Body)
	}
	if err := rows.Close(); err != nil {
		return nil, err
	}
	return taken, rows.Err()
}

// discard deletes rows of the inbox.
func (s *Store) discard(ctx context.Context, tx *sql.Tx, rows []inboxRow) error {
	numbers := make([]int64, len(rows))
	for i := range rows {
		numbers[i] = rows[i].number
	}
	return s.dialect.discard(ctx, tx, numbers)
}
