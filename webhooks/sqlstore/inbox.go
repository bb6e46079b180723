package sqlstore

import (
	"context"
	"database/sql"
	"math"
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
		deliveryKey(id), s.oldest()).Scan(&found)
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
	return []any{deliveryKey(id), s.now().UnixNano(), s.oldest()}
}

// oldest returns the time since which IDs count as stored.
func (s *Store) oldest() int64 {
	age := s.DuplicateWindow
	if age == 0 {
		age = 72 * time.Hour
	}
	return s.now().Add(-age).UnixNano()
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
		err = s.failed(ctx, "receive", err)
		s.checkDatabase(receiving, err)
		return err
	}
	s.checkDatabase(receiving, nil)
	s.wake()
	s.lookAtBacklog(ctx)
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
	due, number int64
	user        sql.Null[string]
	attempts    int
}

// before returns the position before that of the row.
func (r *inboxRow) before() position { return position{r.due, r.number - 1} }

// part is one of the parts of the inbox: deliveries that have not failed, those of batches that
// exceeded a time limit, and those that failed and are due.
type part int

const (
	fresh part = iota
	suspect
	delayed
	parts
)

// lastSuspect is the greatest due of suspects. That of delayed rows is a time in nanoseconds, which
// is far greater.
const lastSuspect = 1 << 52

// suspectDue is the due of a suspect: a time in microseconds. Each byte counts as 10 of them, so
// that small ones come first, and one row gets more. But none waits for ever behind those that are
// suspects later.
const suspectDue = `? + 10 * CAST(length(body) AS bigint) + CASE number WHEN ? THEN CAST(? AS bigint) ELSE 0 END`

// start returns the position before the rows of a part.
func (p part) start() position {
	return [parts]position{{math.MinInt64, math.MinInt64}, {0, math.MaxInt64}, {lastSuspect, math.MaxInt64}}[p]
}

// until returns the greatest due of the rows of a part that can be taken.
func (p part) until(now time.Time) int64 { return [parts]int64{0, lastSuspect, now.UnixNano()}[p] }

// partOf returns the part of a row that was taken.
func partOf(row *inboxRow) part {
	switch {
	case row.due <= 0:
		return fresh
	case row.due <= lastSuspect:
		return suspect
	}
	return delayed
}

// inPart selects the rows of a part behind a position.
const inPart = ` FROM labhealth_inbox WHERE (due, number) > (?, ?) AND due <= ? ORDER BY due, number LIMIT ?`

// maxBytes is the size of the bodies after which a batch gets no more deliveries.
const maxBytes = 32 << 20

// take reads and locks rows of a part of the inbox that no other worker has. The caller gives them
// back to the cursor if it does not process them.
func (s *Store) take(ctx context.Context, tx *sql.Tx, p part, limit int) (rows []inboxRow, err error) {
	for _, idle := range []bool{false, true} {
		scan := s.cursors[p].next(time.Now(), idle)
		if idle && !scan.isRescan {
			break
		}
		rows, err = s.selectRows(ctx, tx, inPart, scan.from.due, scan.from.number, p.until(s.now()), limit)
		found, last := err == nil && len(rows) > 0, position{}
		if found {
			last = position{rows[len(rows)-1].due, rows[len(rows)-1].number}
		}
		s.cursors[p].end(scan, time.Now(), last, found, len(rows) == limit || sizeOf(rows) >= maxBytes)
		if err != nil || found || scan.whole {
			break
		}
	}
	return rows, err
}

// takeOne reads and locks a row that was read before, unless another worker has it, or has
// processed or delayed it.
func (s *Store) takeOne(ctx context.Context, tx *sql.Tx, row inboxRow) ([]inboxRow, error) {
	return s.selectRows(ctx, tx, ` FROM labhealth_inbox WHERE due = ? AND number = ?`, row.due, row.number)
}

func (s *Store) selectRows(ctx context.Context, tx *sql.Tx, from string, args ...any) (taken []inboxRow, err error) {
	rows, err := tx.QueryContext(ctx, s.dialect.bind(`SELECT due, number, delivery_id, received_at, user_id, attempts, body`+
		from+s.dialect.skipLocked()), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for size := 0; size < maxBytes && rows.Next(); {
		var row inboxRow
		var id sql.Null[string]
		var received int64
		if err := rows.Scan(&row.due, &row.number, &id, &received, &row.user, &row.attempts, &row.Body); err != nil {
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

// giveBack returns rows that were taken and not processed.
func (s *Store) giveBack(rows []inboxRow) {
	if len(rows) == 0 {
		return
	}
	s.cursors[partOf(&rows[0])].giveBack(rows[0].before())
}

// delayUser delays the suspects and the delayed rows of a user who is locked. Otherwise each of
// them would be tried alone, and others wait.
func (s *Store) delayUser(ctx context.Context, tx *sql.Tx, user string, due int64) error {
	_, err := tx.ExecContext(ctx, s.dialect.bind(`UPDATE labhealth_inbox SET due = ? WHERE (due, number) IN (
		SELECT due, number FROM labhealth_inbox WHERE due > 0 AND due <= ? AND user_id = ?`+s.dialect.skipLocked()+`)`),
		due, s.now().UnixNano(), user)
	return err
}

func sizeOf(rows []inboxRow) (size int) {
	for i := range rows {
		size += len(rows[i].Body)
	}
	return size
}
