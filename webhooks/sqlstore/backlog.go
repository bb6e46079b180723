// What waits in the inbox, and what an operator has to look at.

package sqlstore

import (
	"context"
	"database/sql"
	"slices"
	"time"
)

// Backlog is what a [Store] has not processed, and what an operator has to look at. Numbers up to
// 10,000 are exact, and so are those of delayed deliveries and dead letters up to 100,000.
type Backlog struct {
	// Waiting is the number of deliveries in the inbox that can be applied now, including those
	// that workers have in flight, except one that is tried alone, which counts as delayed. Above
	// 10,000, it is an estimate by the number in some slots.
	Waiting     int
	Delayed     int // deliveries that failed and will be attempted again later, at most 100,000
	DeadLetters int // deliveries that could not be processed, at most 100,000
	// Oldest is when the first delivery was received, of those that are the next of their slot: of
	// those that have not failed, of those that are due again, and of those that will be. It is
	// zero if the inbox is empty.
	Oldest time.Time
	// Reactions is the number of reactions that wait, are being called or will be called again, and
	// FailedReactions that of those that were given up; each at most 100,000, and exact below that.
	Reactions, FailedReactions int
	// OldestReaction is when the first reaction was queued, of those that are the next of their
	// slot. It is zero if none waits.
	OldestReaction time.Time
}

// These are the greatest numbers of rows that are counted: of those that wait, which can be
// estimated, and of others.
const (
	backlogLimit = 10_000
	othersLimit  = 100_000
)

// Backlog counts the deliveries that wait, the dead letters and the reactions. It reads at most
// 100,000 entries of an index for each number, and no bodies, so a program may call it every few
// seconds: of 100,000 delayed deliveries it reads 3 MB of the index, and 30 MB if the table has not
// been vacuumed since they were written. Like a [Worker], it passes rows that were deleted but not
// removed: a delivery that becomes visible late may not be counted until the next calls.
func (s *Store) Backlog(ctx context.Context) (Backlog, error) {
	if err := s.usable(ctx); err != nil {
		return Backlog{}, err
	}
	var b Backlog
	err := retry(ctx, "backlog", func() (err error) {
		// Else a delivery that a worker delays would be counted twice, or not at all.
		tx, err := s.beginRead(ctx)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		b, err = s.backlog(ctx, tx)
		return err
	})
	return b, err
}

func (s *Store) backlog(ctx context.Context, tx *sql.Tx) (b Backlog, err error) {
	now := s.now()
	for p := range parts {
		until := p.until(now)
		n, oldest, err := s.count(ctx, tx, inboxQueue, int(p), s.counted[p], start, until, backlogLimit)
		if err != nil {
			return b, err
		}
		b.Waiting += n
		b.Oldest = earlier(b.Oldest, oldest)
	}
	n, oldest, err := s.count(ctx, tx, inboxQueue, int(delayed), nil, now.UnixNano()+1, forever, othersLimit)
	if err != nil {
		return b, err
	}
	b.Delayed, b.Oldest = n, earlier(b.Oldest, oldest)
	b.Reactions, b.OldestReaction, err = s.count(ctx, tx, reactionQueue, 0, s.countedReactions, start, forever-1, othersLimit)
	if err != nil {
		return b, err
	}
	if b.FailedReactions, _, err = s.count(ctx, tx, reactionQueue, 0, nil, forever, forever, othersLimit); err != nil {
		return b, err
	}
	_, err = s.queryRow(ctx, tx, into{&b.DeadLetters}, `SELECT count(*) FROM (SELECT 1 FROM labhealth_dead_letters LIMIT $1::integer) AS dead`, othersLimit)
	return b, err
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// queue is a table of rows that wait, and what is counted of it.
type queue struct {
	rows string // the table, and the condition for its rows q from a position of a slot k on
	time string // the column with the time of a row
}

var (
	inboxQueue    = queue{`labhealth_inbox | q.slot = {slot} AND q.part = $1::smallint AND q.due >= k.due AND q.due <= $2::bigint`, "received_at"}
	reactionQueue = queue{`labhealth_reactions | q.slot = {slot} AND q.due >= k.due AND q.due <= $2::bigint AND $1::smallint = 0`, "queued"}
)

// count counts the rows of a part of a queue whose due is between two times, and returns the time
// of the first of them. If there are more than limit, the number is an estimate from those slots
// that were counted. c is the cursor that passes deleted rows, if not nil.
func (s *Store) count(ctx context.Context, tx *sql.Tx, q queue, part int, c *cursor, from, until int64, limit int) (n int, oldest time.Time, err error) {
	var all scan
	for i := range all.from {
		all.from[i] = from
	}
	if c != nil {
		all = c.next(time.Now(), true)
	}
	all.slots = allSlots.ints
	var heads []place
	for chunk := range slices.Chunk(all.slots, s.listSize()) {
		err = s.query(ctx, tx, func(rows *sql.Rows) error {
			var head place
			var at int64
			err := rows.Scan(&head.slot, &head.due, &at)
			heads, oldest = append(heads, head), earlier(oldest, time.Unix(0, at).UTC())
			return err
		}, `SELECT k.slot, q.due, q.`+q.time+` FROM {k: slot smallint, due bigint} {first q: q.due, q.`+q.time+` | `+q.rows+` | ORDER BY q.due, q.id}`,
			part, until, rowList{len(chunk), func(w *rowWriter, i int) { w.place(place{chunk[i], all.from[chunk[i]]}) }})
		if err != nil {
			break
		}
	}
	if c != nil {
		c.end(all, time.Now(), heads, false)
	}
	if err != nil {
		return 0, time.Time{}, err
	}
	slots := 0
	for chunk := range slices.Chunk(heads, min(sqliteChunk, s.listSize())) {
		var some int
		_, err = s.queryRow(ctx, tx, into{&some}, `SELECT count(*) FROM (SELECT 1 FROM {k: slot smallint, due bigint} {each q: q.due | `+q.rows+`} LIMIT $3::integer) AS counted`,
			part, until, limit-n, rowList{len(chunk), func(w *rowWriter, i int) { w.place(chunk[i]) }})
		if n, slots = n+some, slots+len(chunk); err != nil || n >= limit {
			break
		}
	}
	if n >= limit && limit == backlogLimit {
		n = n * len(heads) / slots
	}
	return n, oldest, err
}
