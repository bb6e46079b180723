// What waits in the inbox, and what an operator has to look at.

package sqlstore

import (
	"context"
	"database/sql"
	"slices"
	"time"
)

// Backlog is what a [Store] has not processed, and what an operator has to look at. Each number is
// at most 100,000, and exact below that.
type Backlog struct {
	// Waiting is the number of deliveries in the inbox that can be applied now, including those
	// that workers have in flight, except one that is tried alone, which counts as delayed.
	Waiting     int
	Delayed     int // deliveries that failed and will be attempted again later
	DeadLetters int // deliveries that could not be processed
	// Oldest is when the first delivery was received, of those that are the next of their slot: of
	// those that have not failed, of those that are due again, and of those that will be. It is
	// zero if the inbox is empty.
	Oldest time.Time
	// Reactions is the number of reactions that wait, are being called or will be called again, and
	// FailedReactions that of those that were given up.
	Reactions, FailedReactions int
	// OldestReaction is when the first reaction was queued, of those that are the next of their
	// slot. It is zero if none waits.
	OldestReaction time.Time
}

// backlogLimit is the greatest number of rows that are counted.
const backlogLimit = 100_000

// Backlog counts the deliveries that wait, the dead letters and the reactions. It reads at most
// 100,000 entries of an index for each number, and no bodies, so a program may call it every few
// seconds: of 100,000 delayed deliveries it reads 3 MB of the index, and 30 MB if the table has not
// been vacuumed since they were written. It passes rows that workers of this Store have deleted, as
// a [Worker] does: a delivery that becomes visible late may not be counted until the next calls.
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
	now := s.now().UnixNano()
	for _, of := range []struct {
		queue
		part         int // of the inbox
		c            *cursor
		after, until int64 // due
		n            *int
		oldest       *time.Time
	}{
		{inboxQueue, int(fresh), s.cursors[fresh], start, forever, &b.Waiting, &b.Oldest},
		{inboxQueue, int(failing), s.cursors[failing], start, now, &b.Waiting, &b.Oldest},
		{inboxQueue, int(failing), nil, now + 1, forever, &b.Delayed, &b.Oldest},
		{reactionQueue, 0, s.reactions, start, forever - 1, &b.Reactions, &b.OldestReaction},
		{reactionQueue, 0, nil, forever, forever, &b.FailedReactions, nil},
	} {
		n, oldest, err := s.count(ctx, tx, of.queue, of.part, of.c, of.after, of.until)
		if err != nil {
			return b, err
		}
		*of.n = min(*of.n+n, backlogLimit)
		if of.oldest != nil {
			*of.oldest = earlier(*of.oldest, oldest)
		}
	}
	_, err = s.queryRow(ctx, tx, into{&b.DeadLetters}, `SELECT count(*) FROM (SELECT 1 FROM labhealth_dead_letters LIMIT $1::integer) AS dead`, backlogLimit)
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
	table string
	rows  string // the condition for rows q from a position of a slot k on
	time  string // the column with the time of a row
}

var (
	inboxQueue    = queue{`labhealth_inbox`, `q.slot = {slot} AND q.part = $1::smallint AND q.due >= k.due AND q.due <= $2::bigint`, "received_at"}
	reactionQueue = queue{`labhealth_reactions`, `q.slot = {slot} AND q.due >= k.due AND q.due <= $2::bigint AND $1::smallint = 0`, "queued"}
)

// count counts the rows of a part of a queue whose due is between two times, and returns the time
// of the first of them. c is the cursor of those that delete rows, if not nil.
func (s *Store) count(ctx context.Context, tx *sql.Tx, q queue, part int, c *cursor, after, until int64) (n int, oldest time.Time, err error) {
	from := beginning
	if c != nil {
		from = c.positions()
	}
	for chunk := range slices.Chunk(allSlots, s.listSize()) {
		some, first := 0, sql.Null[int64]{}
		list := rowList{len(chunk), func(i int) []any { return []any{chunk[i], max(after, from[chunk[i]])} }}
		_, err = s.queryRow(ctx, tx, into{&first}, `SELECT min((SELECT q.`+q.time+` FROM `+q.table+` AS q WHERE `+q.rows+` ORDER BY q.due, q.id LIMIT 1))
			FROM {k: slot smallint, due bigint}`, part, until, list)
		if err != nil {
			return 0, time.Time{}, err
		}
		if first.Valid {
			oldest = earlier(oldest, time.Unix(0, first.V).UTC())
		}
		_, err = s.queryRow(ctx, tx, into{&some}, `SELECT count(*) FROM (SELECT 1 FROM {k: slot smallint, due bigint} {each q: q.due | `+q.table+` | `+q.rows+`} LIMIT $3::integer) AS counted`,
			part, until, backlogLimit-n, list)
		if n += some; err != nil || n >= backlogLimit {
			return n, oldest, err
		}
	}
	return n, oldest, nil
}
