// Store.Maintain: retention, and the deletion of old IDs.

package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"time"
)

// maintainLimit is the number of rows that one transaction deletes, so that others do not wait
// long.
const maintainLimit = 10_000

// Maintain keeps the tables in shape: it deletes IDs of deliveries that are older than
// [Store.DuplicateWindow], and samples that are older than [Store.Keep], up to 10,000 rows of a
// slot in a transaction. Summaries have no column with a time and are kept.
//
// [Worker.Run] calls it at the start and once an hour. Programs without a Worker call it
// themselves. Any number of processes may call it at the same time. Calling it again changes
// nothing.
//
// Deleting a sample costs the database about as much as half of storing it. To drop old samples by
// partitions instead, see docs/store.md.
func (s *Store) Maintain(ctx context.Context) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	if err := s.correctIDs(ctx); err != nil {
		return err
	}
	if err := s.deleteIDs(ctx); err != nil || s.Keep == 0 {
		return err
	}
	return s.deleteSamples(ctx, s.now().Add(-s.Keep).UnixNano())
}

// inSlots calls f with each slot that has rows, as slotsWith does. A slot that fails does not stop
// the others, if slots may fail.
func (s *Store) inSlots(ctx context.Context, op string, f func(slot int64) error, from string, params ...any) (failure error) {
	slots, err := s.slotsWith(ctx, s.db, from, params...)
	if err != nil {
		return s.failed(ctx, op, err)
	}
	for _, slot := range slots {
		if err := f(slot); err != nil {
			failure = cmp.Or(failure, err)
			if !s.OneSlot || ctx.Err() != nil {
				break
			}
		}
	}
	return failure
}

// correctIDs limits the time for which IDs are kept that were stored when the clock was ahead.
func (s *Store) correctIDs(ctx context.Context) error {
	now := s.now().UnixNano()
	ahead := now + int64(maxSkew)
	return s.inSlots(ctx, "maintain", func(slot int64) error {
		for {
			n, err := s.change(ctx, "maintain", `UPDATE labhealth_deliveries SET at = $2::bigint WHERE slot = $1::smallint AND id IN
				(SELECT d.id FROM labhealth_deliveries AS d WHERE d.slot = $1::smallint AND d.at > $3::bigint ORDER BY d.at LIMIT $4::integer{skip})`,
				slot, now, ahead, maintainLimit)
			if err != nil || n < maintainLimit {
				return err
			}
		}
	}, `labhealth_deliveries | o.slot = k.slot AND o.at > $1::bigint`, ahead)
}

// correctDue makes rows of a queue due that are due later than the longest delay: the clock of the
// process that delayed them was ahead.
func (s *Store) correctDue(ctx context.Context, table, where string, longest time.Duration) error {
	now := s.now()
	latest := now.Add(longest).UnixNano()
	return s.inSlots(ctx, "maintain", func(slot int64) error {
		_, err := s.change(ctx, "maintain", `UPDATE `+table+` SET due = $2::bigint WHERE slot = $1::smallint AND {row} IN
			(SELECT q.{row} FROM `+table+` AS q WHERE q.slot = $1::smallint AND q.due > $3::bigint AND `+where+`{skip})`, slot, now.UnixNano(), latest)
		return err
	}, table+` | o.slot = k.slot AND o.due > $1::bigint AND `+where, latest)
}

// maxSkew is how far ahead the clock of another process may be.
const maxSkew = time.Minute

// deleteIDs deletes the IDs of deliveries that are not needed anymore.
func (s *Store) deleteIDs(ctx context.Context) error {
	before := s.oldest()
	return s.inSlots(ctx, "maintain", func(slot int64) error {
		// Each transaction starts where the last one ended: the index still has what they deleted.
		for from := int64(math.MinInt64); ; {
			n, last := 0, from
			err := s.transact(ctx, "maintain", func(tx *sql.Tx) error {
				n, last = 0, from
				return s.query(ctx, tx, func(rows *sql.Rows) error {
					var at int64
					err := rows.Scan(&at)
					n, last = n+1, max(last, at)
					return err
				}, `DELETE FROM labhealth_deliveries WHERE slot = $1::smallint AND id IN (SELECT d.id FROM labhealth_deliveries AS d
					WHERE d.slot = $1::smallint AND d.at >= $2::bigint AND d.at < $3::bigint ORDER BY d.at LIMIT $4::integer{skip}) RETURNING at`,
					slot, from, before, maintainLimit)
			})
			if err != nil || n < maintainLimit {
				return err
			}
			from = last
		}
	}, `labhealth_deliveries | o.slot = k.slot AND o.at < $1::bigint`, before)
}

// deleteSamples deletes the samples before a time. It visits one series
// after the other, because no index has the time alone. It looks for those that have some outside
// of a transaction, because SQLite has one writer at a time.
func (s *Store) deleteSamples(ctx context.Context, before int64) error {
	const width = 10_000 // series that one transaction visits
	return s.inSlots(ctx, "maintain", func(slot int64) error {
		for from := int64(0); ; {
			var first int64
			found, err := s.queryRow(ctx, s.db, into{&first}, `SELECT r.series FROM labhealth_series AS r WHERE r.slot = $1::smallint AND r.series >= $2::integer
				AND EXISTS (SELECT 1 FROM labhealth_samples AS s WHERE s.slot = $1::smallint AND s.series = r.series AND s.at < $3::bigint) ORDER BY r.series LIMIT 1`,
				slot, from, before)
			if err != nil || !found {
				return s.failed(ctx, "maintain", err)
			}
			n, err := s.change(ctx, "maintain", `DELETE FROM labhealth_samples WHERE slot = $1::smallint AND (series, at) IN (SELECT s.series, s.at
				FROM labhealth_series AS r CROSS JOIN labhealth_samples AS s WHERE s.slot = $1::smallint AND s.series = r.series
				AND r.slot = $1::smallint AND r.series >= $2::integer AND r.series < $3::integer AND s.at < $4::bigint LIMIT $5::integer)`,
				slot, first, first+width, before, maintainLimit)
			if err != nil {
				return err
			}
			from = first
			if n < maintainLimit { // rows that are left are locked: they are for the next call
				from += width
			}
		}
	}, `labhealth_series | o.slot = k.slot`)
}
