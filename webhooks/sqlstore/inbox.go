// Delivery IDs, and deliveries that are stored before they are applied.

package sqlstore

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
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
	_, err := s.queryRow(ctx, s.db, into{&found}, `SELECT count(*) FROM labhealth_deliveries AS d
		WHERE d.slot = $1::smallint AND d.id = $2::bytea AND d.at >= $3::bigint`, slotOfID(id), deliveryKey(id), s.oldest())
	if err == nil && found > 0 { // the caller acknowledges the delivery
		return true, s.confirm(ctx)
	}
	return found > 0, s.failed(ctx, "seen", err)
}

// MarkSeen stores an ID for [Store.DuplicateWindow].
func (s *Store) MarkSeen(ctx context.Context, id string) error {
	return s.transact(ctx, "mark seen", func(tx *sql.Tx) error {
		_, err := s.addID(ctx, tx, slotOfID(id), id)
		return err
	})
}

// slotOfID returns the slot of the ID of a delivery.
func slotOfID(id string) int { return int(digest(id)[0]) }

// addID stores the ID of a delivery and the time, unless it is stored. It reports whether it was
// not.
func (s *Store) addID(ctx context.Context, tx *sql.Tx, slot int, id string) (isNew bool, err error) {
	n, err := s.exec(ctx, tx, `INSERT INTO labhealth_deliveries AS d (slot, id, at) VALUES ($1::smallint, $2::bytea, $3::bigint)
		ON CONFLICT (slot, id) DO UPDATE SET at = excluded.at WHERE d.at < $4::bigint`, slot, deliveryKey(id), s.now().UnixNano(), s.oldest())
	return n > 0, err
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
	err := s.usable(ctx)
	if err != nil {
		return err
	}
	r := &receipt{id: d.ID, row: newInboxRow(d), done: make(chan struct{})}
	if s.name == SQLite {
		err = s.writer.receive(ctx, s, r)
	} else {
		err = s.transact(ctx, "receive", func(tx *sql.Tx) error { return s.receive(ctx, tx, r) })
	}
	if err != nil {
		err = s.failed(ctx, "receive", err)
		s.checkDatabase(receiving, err)
		return err
	}
	s.checkDatabase(receiving, nil)
	s.arrive(r.row)
	s.lookAtBacklog(ctx)
	return nil
}

// receipt is a delivery that is being stored in the inbox.
type receipt struct {
	id   string
	row  inboxRow
	done chan struct{} // closed when it was written or failed
	err  error         // valid after done is closed
}

// receive stores a delivery in a transaction.
func (s *Store) receive(ctx context.Context, tx *sql.Tx, r *receipt) error {
	if r.id != "" {
		slot := slotOfID(r.id)
		if s.OneSlot && s.name == PostgreSQL {
			slot = int(r.row.slot)
		}
		if isNew, err := s.addID(ctx, tx, slot, r.id); err != nil || !isNew {
			return err
		}
	}
	r.row.due = s.now().UnixNano()
	return s.addInbox(ctx, tx, &r.row)
}

func (s *Store) addInbox(ctx context.Context, tx *sql.Tx, row *inboxRow) error {
	_, err := s.exec(ctx, tx, `INSERT INTO labhealth_inbox (slot, part, due, id, received_at, user_id, attempts, delivery_id, body)
		VALUES ($1::smallint, $2::smallint, $3::bigint, $4::integer, $5::bigint, $6::uuid, $7::integer, $8::text, $9::bytea)`,
		row.slot, row.part, row.due, row.id, newest.ClampUnixNano(row.ReceivedAt), row.user.String(), row.attempts, orNull(escape(row.ID)), notNull(row.Body))
	return err
}

// arrive wakes an idle worker of this store, for a delivery.
func (s *Store) arrive(row inboxRow) {
	s.cursors[row.part].found(row.place())
	s.wake()
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
	slot     int64
	part     part
	due, id  int64
	user     uuid.UUID // zero if the body names none
	attempts int
	alone    bool   // it exceeded a time limit, or was in a batch that did
	row      string // where it is, while it is locked
}

func (r *inboxRow) place() place { return place{r.slot, r.due} }

// newInboxRow returns the row of a delivery that has not failed.
func newInboxRow(d webhooks.RawDelivery) inboxRow {
	row := inboxRow{RawDelivery: d, part: fresh, id: int64(rand.Int32())}
	if e, err := webhooks.ParseEnvelope(d.Body); err == nil {
		row.user = e.UserID
	}
	if d.ID != "" {
		row.id = int64(binary.BigEndian.Uint32(digest(d.ID)) >> 1)
	}
	row.slot = int64(Slot(row.user))
	return row
}

// part is one of the parts of the inbox: deliveries that have not failed, and those that failed, or
// were in a batch that exceeded a time limit, which are taken when they are due.
type part int

const (
	fresh part = iota
	failing
	parts
)

// until returns the greatest due of the rows of a part that can be taken.
func (p part) until(now time.Time) int64 {
	if p == failing {
		return now.UnixNano()
	}
	return forever
}

const forever = math.MaxInt64 // as a due

// maxBytes is the size of the bodies after which a batch gets no more deliveries.
const maxBytes = 32 << 20

// errEnough ends a query whose further rows are not needed.
var errEnough = errors.New("sqlstore: enough rows")

// take reads and locks rows of a part of the inbox that no other worker has. The caller gives them
// back to the cursor if it does not process them. slot is the only one to look at, or anySlot.
func (s *Store) take(ctx context.Context, tx *sql.Tx, p part, limit int, slot int64) (rows []inboxRow, err error) {
	until := p.until(s.now())
	err = s.cursors[p].take(slot, func(scan *scan) (found []place, enough bool, err error) {
		rows, err = s.selectRows(ctx, tx, p, scan, until, limit)
		for i := range rows {
			found = append(found, rows[i].place())
		}
		return found, len(rows) == limit || sizeOf(rows) >= maxBytes, err
	})
	return rows, err
}

const inboxColumns = `i.slot, CAST(i.{row} AS text), i.part, i.due, i.id, i.received_at, i.user_id, i.attempts, i.alone, i.delivery_id, i.body`

// selectRows reads and locks rows of a part, slot by slot. Most slots to scan have rows: as many of
// them as rows are needed come first, so that a statement for a few rows has a short list.
func (s *Store) selectRows(ctx context.Context, tx *sql.Tx, p part, scan *scan, until int64, limit int) (taken []inboxRow, err error) {
	size := min(limit, s.listSize())
	for rest := scan.slots; len(rest) > 0 && len(taken) < limit && sizeOf(taken) < maxBytes; size = s.listSize() {
		chunk := rest[:min(size, len(rest))]
		rest = rest[len(chunk):]
		err := s.scanRows(ctx, tx, &taken, `SELECT `+inboxColumns+` FROM {k: slot smallint, due bigint}
			{each i: {row}, i.* | labhealth_inbox | i.slot = {slot} AND i.part = $1::smallint AND i.due >= k.due AND i.due <= $2::bigint | ORDER BY i.due, i.id LIMIT $3::integer{skip}}
			LIMIT $3::integer`, p, until, limit-len(taken), rowList{len(chunk), func(i int) []any {
			return []any{chunk[i], scan.from[chunk[i]]}
		}})
		if err != nil {
			return nil, err
		}
	}
	return taken, nil
}

// takeThese reads and locks rows that were read before, unless another worker has them, or has
// processed or delayed them.
func (s *Store) takeThese(ctx context.Context, tx *sql.Tx, rows []inboxRow) (taken []inboxRow, err error) {
	err = s.scanRows(ctx, tx, &taken, `SELECT `+inboxColumns+` FROM {k: slot smallint, part smallint, due bigint, id integer}
		{find i: {row}, i.* | labhealth_inbox | i.slot = {slot} AND i.part = k.part AND i.due = k.due AND i.id = k.id | {skip}}`,
		rowList{len(rows), func(i int) []any { return rows[i].key() }})
	return taken, err
}

// atRow is the condition for a row, with the parameters of key.
const atRow = ` WHERE i.slot = $1::smallint AND i.part = $2::smallint AND i.due = $3::bigint AND i.id = $4::integer`

func (r *inboxRow) key() []any { return []any{r.slot, int64(r.part), r.due, r.id} }

// scanRows adds the rows of a statement, until their bodies are large enough.
func (s *Store) scanRows(ctx context.Context, tx *sql.Tx, taken *[]inboxRow, text string, params ...any) error {
	size := sizeOf(*taken)
	err := s.query(ctx, tx, func(rows *sql.Rows) error {
		var row inboxRow
		var id sql.Null[string]
		var received int64
		if err := rows.Scan(&row.slot, &row.row, &row.part, &row.due, &row.id, &received, &row.user, &row.attempts, &row.alone, &id, &row.Body); err != nil {
			return err
		}
		row.ID, row.ReceivedAt = unescape(id.V), time.Unix(0, received).UTC()
		*taken = append(*taken, row)
		if size += len(row.Body); size >= maxBytes {
			return errEnough
		}
		return nil
	}, text, params...)
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// finish deletes rows that are locked.
func (s *Store) finish(ctx context.Context, tx *sql.Tx, rows []inboxRow) error {
	slots, places := placesOf(rows)
	_, err := s.exec(ctx, tx, `DELETE FROM labhealth_inbox WHERE {in: slot} AND {row} IN {any: tid}`, slots, places)
	return err
}

// delay changes when rows that are locked are due.
func (s *Store) delay(ctx context.Context, tx *sql.Tx, rows []inboxRow, due int64) error {
	slots, places := placesOf(rows)
	_, err := s.exec(ctx, tx, `UPDATE labhealth_inbox SET due = $1::bigint WHERE {in: slot} AND {row} IN {any: tid}`, due, slots, places)
	for i := range rows {
		rows[i].due = due
	}
	return err
}

// placesOf returns the slots of rows that are locked, and where they are.
func placesOf(rows []inboxRow) (slots, places inList) {
	for i := range rows {
		if !slices.Contains(slots, any(rows[i].slot)) {
			slots = append(slots, rows[i].slot)
		}
		places = append(places, rows[i].row)
	}
	return slots, places
}

// giveBack returns rows that were taken and not processed.
func (s *Store) giveBack(rows []inboxRow) {
	for i := range rows {
		s.cursors[rows[i].part].found(rows[i].place())
	}
}

// delayUser delays the deliveries of a user who is locked that failed and are due. Otherwise each
// of them would be tried, and others wait.
func (s *Store) delayUser(ctx context.Context, tx *sql.Tx, user uuid.UUID, due int64) error {
	_, err := s.exec(ctx, tx, `UPDATE labhealth_inbox SET due = $3::bigint WHERE slot = $1::smallint AND {row} IN (SELECT i.{row} FROM labhealth_inbox AS i
		WHERE i.slot = $1::smallint AND i.part = 1 AND i.user_id = $2::uuid AND i.due <= $4::bigint{skip})`, Slot(user), user.String(), due, s.now().UnixNano())
	return err
}

func sizeOf(rows []inboxRow) (size int) {
	for i := range rows {
		size += len(rows[i].Body)
	}
	return size
}
