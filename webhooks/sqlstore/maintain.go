package sqlstore

import (
	"context"
	"database/sql"
	"math"
	"time"
)

// maintainLimit is the number of rows that one transaction deletes, so that others do not wait
// long.
const maintainLimit = 10_000

// Maintain keeps the tables in shape:
//
//   - It deletes IDs of deliveries that are older than [Store.DuplicateWindow].
//   - It deletes samples that are older than [Store.Keep]. With PostgreSQL it drops the partitions
//     that have only such samples. It deletes others, such as those that arrived after their
//     partition was dropped, 10,000 rows at a time. Summaries have no column with a time and are
//     kept.
//   - With PostgreSQL it makes partitions of labhealth_samples, one for each calendar month (UTC):
//     those of the last 12 months and of the next 3, and those of which the default partition has
//     10,000 samples or more. It moves the samples of such a month in one transaction.
//
// [Worker.Run] calls it at the start and once an hour. Programs without a Worker call it
// themselves. Any number of processes may call it at the same time. Partitions are made and dropped
// by one of them, while the calls of others skip that. Calling it again changes nothing.
//
// Only the owner of labhealth_samples with the privilege to create tables in its schema can make
// and drop partitions. Without it everything else works: the default partition takes the samples of
// months without a partition, and old samples are deleted as rows. Partitions that somebody else
// has made are used, whatever their range, and gaps between them are filled.
//
// Making and dropping a partition locks labhealth_samples in ACCESS EXCLUSIVE mode. Maintain waits
// 100 ms for the lock, which is how long others may have to wait behind it, and tries again up to
// 20 times. It then returns an error and leaves the partition to the next call. The lock is held
// for some milliseconds or, if samples are moved, for several seconds per million. A transaction of
// isolation level REPEATABLE READ that has begun before that and has not read labhealth_samples yet
// may miss the samples that are moved.
func (s *Store) Maintain(ctx context.Context) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	if err := s.correctIDs(ctx); err != nil {
		return err
	}
	if err := s.deleteIDs(ctx); err != nil {
		return err
	}
	before := s.oldestSample()
	if err := s.dialect.partition(ctx, s.now(), partitionsPast, before, s.dropped); err != nil {
		return s.failed(ctx, "maintain", err)
	}
	if before == math.MinInt64 {
		return nil
	}
	rows, err := s.deleteSamples(ctx, before)
	if rows > 0 && s.Expired != nil {
		s.Expired(time.Time{}, time.Unix(0, before).UTC(), rows)
	}
	return err
}

// dropped reports a partition that was dropped.
func (s *Store) dropped(of span) {
	if s.Expired != nil {
		s.Expired(time.Unix(0, of.from).UTC(), time.Unix(0, of.to).UTC(), 0)
	}
}

// oldestSample returns the time before which samples are deleted.
func (s *Store) oldestSample() int64 {
	if s.Keep == 0 {
		return math.MinInt64
	}
	return monthOf(s.now().Add(-s.Keep)).UnixNano()
}

// monthOf returns the start of the calendar month of t.
func monthOf(t time.Time) time.Time {
	year, month, _ := t.UTC().Date()
	return time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
}

// correctIDs limits the time for which IDs are kept that were stored when the clock was ahead.
func (s *Store) correctIDs(ctx context.Context) error {
	statement := s.dialect.bind(`UPDATE labhealth_deliveries SET at = ? WHERE id IN
		(SELECT id FROM labhealth_deliveries WHERE at > ? ORDER BY at LIMIT ?` + s.dialect.skipLocked() + `)`)
	for {
		now := s.now()
		n, err := s.changeSome(ctx, statement, now.UnixNano(), now.Add(maxSkew).UnixNano(), maintainLimit)
		if err != nil || n < maintainLimit {
			return err
		}
	}
}

// maxSkew is how far ahead the clock of another process may be.
const maxSkew = time.Minute

// deleteIDs deletes the IDs of deliveries that are not needed anymore.
func (s *Store) deleteIDs(ctx context.Context) error {
	// Each transaction starts where the last one ended: the index still has what they deleted.
	statement := s.dialect.bind(`DELETE FROM labhealth_deliveries WHERE id IN
		(SELECT id FROM labhealth_deliveries WHERE at >= ? AND at < ? ORDER BY at LIMIT ?` + s.dialect.skipLocked() + `)
		RETURNING at`)
	for from := int64(math.MinInt64); ; {
		n, last := 0, from
		err := s.transact(ctx, "maintain", func(tx *sql.Tx) error {
			if err := s.dialect.preferIndexes(ctx, tx); err != nil {
				return err
			}
			n, last = 0, from
			return query(ctx, tx, func(rows *sql.Rows) error {
				var at int64
				err := rows.Scan(&at)
				n, last = n+1, max(last, at)
				return err
			}, statement, from, s.oldest(), maintainLimit)
		})
		if err != nil || n < maintainLimit {
			return err
		}
		from = last
	}
}

// deleteSamples deletes the samples before a time, and returns their number. It looks for series
// that have some outside of a transaction, because SQLite has one writer at a time.
func (s *Store) deleteSamples(ctx context.Context, before int64) (deleted int64, err error) {
	const width = 10_000 // series that one transaction visits
	find, remove := s.dialect.oldSamples()
	for from := int64(0); ; {
		var first sql.Null[int64]
		if err := s.db.QueryRowContext(ctx, find, from, before).Scan(&first); err != nil {
			return deleted, s.failed(ctx, "maintain", err)
		}
		if !first.Valid {
			return deleted, nil
		}
		n, err := s.changeSome(ctx, remove, first.V, first.V+width, before, maintainLimit)
		if err != nil {
			return deleted, err
		}
		deleted += n
		from = first.V
		if n < maintainLimit { // rows that are left are locked: they are for the next call
			from += width
		}
	}
}

// changeSome runs a DELETE or UPDATE in its own transaction and returns the number of rows.
func (s *Store) changeSome(ctx context.Context, statement string, args ...any) (n int64, err error) {
	err = s.transact(ctx, "maintain", func(tx *sql.Tx) error {
		if err := s.dialect.preferIndexes(ctx, tx); err != nil {
			return err
		}
		result, err := tx.ExecContext(ctx, statement, args...)
		if err != nil {
			return err
		}
		n, err = result.RowsAffected()
		return err
	})
	return n, err
}
