package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Backlog is what a [Store] has not processed, and what an operator has to look at. Numbers up to
// 10,000 are exact, and so are those of delayed deliveries and dead letters up to 100,000.
type Backlog struct {
	// Waiting is the number of deliveries in the inbox that can be applied now, including those
	// that workers have in flight, except one that is tried alone, which counts as delayed. Above
	// 10,000, it is an estimate by the numbers of the first and last rows, and counts at most
	// 10,000 that had failed.
	Waiting     int
	Delayed     int // deliveries that failed and will be attempted again later, at most 100,000
	DeadLetters int // deliveries that could not be processed, at most 100,000
	// Oldest is when the first delivery was received, by the order in which they are attempted: of
	// those that have not failed, of those that are due again, or of those that will be, whichever
	// was received earliest. It is zero if the inbox is empty.
	Oldest time.Time
	// Reactions is the number of reactions that wait, are being called or will be called again, and
	// FailedReactions that of those that were given up; each at most 100,000, and exact below that.
	Reactions, FailedReactions int
	// OldestReaction is when the first reaction was queued, by the order in which they are called:
	// of those that have not been called, or of the others, whichever was queued earlier. It is zero
	// if none waits.
	OldestReaction time.Time
	// PartitionedUntil is the time until which the samples have partitions, without a gap from now
	// on; the current time if the default partition takes samples of now. It is zero with SQLite,
	// which has no partitions.
	PartitionedUntil time.Time
}

// These are the greatest numbers of rows that are counted: of those that wait, which can be
// estimated, and of others.
const (
	backlogLimit = 10_000
	othersLimit  = 100_000
)

// Backlog counts the deliveries that wait, the dead letters and the reactions. It reads at most 100,000
// entries of an index for each number, and no bodies, so a program may call it every few seconds:
// of 100,000 delayed deliveries it reads 3 MB of the index, and 30 MB if the table has not been
// vacuumed since they were written. Like a [Worker], it passes rows that were deleted but not
// removed: a delivery that becomes visible late may not be counted until the next calls.
func (s *Store) Backlog(ctx context.Context) (Backlog, error) {
	if err := s.usable(ctx); err != nil {
		return Backlog{}, err
	}
	var b Backlog
	err := retry(ctx, "backlog", func() (err error) {
		// Else a delivery that a worker delays would be counted twice, or not at all.
		tx, err := s.dialect.beginRead(ctx)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := s.dialect.preferIndexes(ctx, tx); err != nil {
			return err
		}
		if b, err = s.backlog(ctx, tx); err != nil {
			return err
		}
		return s.reactionBacklog(ctx, tx, &b)
	})
	if err != nil {
		return Backlog{}, err
	}
	b.PartitionedUntil, err = s.dialect.partitionedUntil(ctx, s.now())
	return b, s.failed(ctx, "backlog", err)
}

func (s *Store) backlog(ctx context.Context, tx *sql.Tx) (b Backlog, err error) {
	now := s.now()
	for p := range parts {
		n, oldest, err := s.countPart(ctx, tx, p, p.until(now))
		if err != nil {
			return b, err
		}
		b.Waiting += n
		if !oldest.IsZero() && (b.Oldest.IsZero() || oldest.Before(b.Oldest)) {
			b.Oldest = oldest
		}
	}
	counts := s.dialect.bind(`SELECT (SELECT count(*) FROM (SELECT 1 FROM labhealth_inbox WHERE due > ? LIMIT ?) AS later),
		(SELECT received_at FROM labhealth_inbox WHERE due > ? ORDER BY due, number LIMIT 1),
		(SELECT count(*) FROM (SELECT 1 FROM labhealth_dead_letters LIMIT ?) AS dead)`)
	first := sql.Null[int64]{}
	err = tx.QueryRowContext(ctx, counts, now.UnixNano(), othersLimit, now.UnixNano(), othersLimit).Scan(&b.Delayed, &first, &b.DeadLetters)
	if oldest := time.Unix(0, first.V).UTC(); first.Valid && (b.Oldest.IsZero() || oldest.Before(b.Oldest)) {
		b.Oldest = oldest
	}
	return b, err
}

// countPart counts the rows of a part of the inbox, and returns the time of receipt of the first.
func (s *Store) countPart(ctx context.Context, tx *sql.Tx, p part, until int64) (n int, oldest time.Time, err error) {
	scan := s.counted[p].next(time.Now(), true)
	var first position
	var received int64
	err = tx.QueryRowContext(ctx, s.dialect.bind(`SELECT due, number, received_at`+inPart), scan.from.due, scan.from.number, until, 1).
		Scan(&first.due, &first.number, &received)
	first.number-- // is behind the cursor the next time, too
	s.counted[p].end(scan, time.Now(), first, err == nil, true)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, time.Time{}, nil
	}
	if err != nil {
		return 0, time.Time{}, err
	}
	var counted sql.Null[int64]
	err = tx.QueryRowContext(ctx, s.dialect.bind(`SELECT count(*), max(number) FROM (SELECT number`+inPart+`) AS first`),
		first.due, first.number, until, backlogLimit).Scan(&n, &counted)
	if err == nil && n == backlogLimit && p == fresh {
		var last int64
		err = tx.QueryRowContext(ctx, `SELECT number FROM labhealth_inbox WHERE due = 0 ORDER BY number DESC LIMIT 1`).Scan(&last)
		n += int(max(0, last-counted.V)) // the numbers have few gaps
	}
	return n, time.Unix(0, received).UTC(), err
}

func (s *Store) reactionBacklog(ctx context.Context, tx *sql.Tx, b *Backlog) error {
	for p := range reactionParts {
		n, oldest, err := s.countReactions(ctx, tx, p)
		if err != nil {
			return err
		}
		b.Reactions = min(b.Reactions+n, othersLimit)
		if !oldest.IsZero() && (b.OldestReaction.IsZero() || oldest.Before(b.OldestReaction)) {
			b.OldestReaction = oldest
		}
	}
	return tx.QueryRowContext(ctx, s.dialect.bind(`SELECT count(*) FROM (SELECT 1 FROM labhealth_reactions WHERE due = ? LIMIT ?) AS failed`),
		int64(givenUp), othersLimit).Scan(&b.FailedReactions)
}

// countReactions counts the rows of a part, also those that cannot be taken yet, and returns when
// the first was queued.
func (s *Store) countReactions(ctx context.Context, tx *sql.Tx, p reactionPart) (n int, oldest time.Time, err error) {
	until := p.until(givenUp - 1)
	scan := s.reactionCounted[p].next(time.Now(), true)
	var first position
	var queued int64
	err = tx.QueryRowContext(ctx, s.dialect.bind(`SELECT r.due, r.number, r.queued`+inReactions), scan.from.due, scan.from.number, until, 1).
		Scan(&first.due, &first.number, &queued)
	first.number--
	s.reactionCounted[p].end(scan, time.Now(), first, err == nil, true)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, time.Time{}, nil
	}
	if err != nil {
		return 0, time.Time{}, err
	}
	err = tx.QueryRowContext(ctx, s.dialect.bind(`SELECT count(*) FROM (SELECT 1`+inReactions+`) AS first`),
		first.due, first.number, until, othersLimit).Scan(&n)
	return n, time.Unix(0, queued).UTC(), err
}
