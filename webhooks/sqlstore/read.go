package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/newest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// Summary returns the latest version of a summary, such as a [*webhooks.Sleep], which the caller
// owns. ok is false if there is none.
func (s *Store) Summary(ctx context.Context, key webhooks.SummaryKey) (data webhooks.Payload, ok bool, err error) {
	if err := s.usable(ctx); err != nil {
		return nil, false, err
	}
	var document string
	err = s.db.QueryRowContext(ctx, s.dialect.bind(`SELECT m.text FROM labhealth_series AS r JOIN labhealth_summaries AS m ON m.series_id = r.id
		WHERE r.key = ? AND m.id = ?`),
		seriesKey(webhooks.Series{UserID: key.UserID, Resource: key.Resource}), key.ID.String()).Scan(&document)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, false, nil
	case err != nil:
		return nil, false, s.failed(ctx, "summary", err)
	}
	return payload(key.Resource, document), true, nil
}

// Sample returns the latest version of a sample; ok is false if there is none.
func (s *Store) Sample(ctx context.Context, key webhooks.SampleKey) (sample webhooks.Sample, ok bool, err error) {
	found, err := s.samples(ctx, `WHERE r.key = ? AND s.at = ?`, seriesKey(key.Series()), key.UnixNano)
	if err != nil || len(found) == 0 {
		return webhooks.Sample{}, false, s.failed(ctx, "sample", err)
	}
	return found[0].Sample, true, nil
}

// Range returns the latest versions of the samples of a series whose time is at or after from and
// before to, ordered by time.
func (s *Store) Range(ctx context.Context, of webhooks.Series, from, to time.Time) ([]webhooks.Sample, error) {
	found, err := s.samples(ctx, `WHERE r.key = ? AND s.at >= ? AND s.at < ? ORDER BY s.at`,
		seriesKey(of), newest.ClampUnixNano(from), newest.ClampUnixNano(to))
	if err != nil {
		return nil, s.failed(ctx, "range", err)
	}
	var samples []webhooks.Sample
	for i := range found {
		samples = append(samples, found[i].Sample)
	}
	return samples, nil
}

// Series returns the series of a user that have samples, ordered by resource, provider and source
// type.
func (s *Store) Series(ctx context.Context, userID uuid.UUID) ([]webhooks.Series, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	var all []webhooks.Series
	err := query(ctx, s.db, func(rows *sql.Rows) error {
		of := webhooks.Series{UserID: userID}
		if err := rows.Scan(&of.Resource, &of.Provider, &of.SourceType); err != nil {
			return err
		}
		of.Resource, of.Provider, of.SourceType = unescape(of.Resource), unescape(of.Provider), unescape(of.SourceType)
		all = append(all, of)
		return nil
	}, s.dialect.bind(`SELECT r.resource, r.provider, r.source_type FROM labhealth_series AS r
		WHERE r.user_id = ? AND EXISTS (SELECT 1 FROM labhealth_samples AS s WHERE s.series_id = r.id)`), userID.String())
	if err != nil {
		return nil, s.failed(ctx, "series", err)
	}
	slices.SortFunc(all, func(a, b webhooks.Series) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.SourceType, b.SourceType))
	})
	return all, nil
}

// StoredSample is a sample with its key. It redacts itself when printed.
type StoredSample struct {
	Key    webhooks.SampleKey // identifies it
	Sample webhooks.Sample    // the latest version

	seriesID int32
}

// StoredSummary is a summary with its key. It redacts itself when printed.
type StoredSummary struct {
	Key  webhooks.SummaryKey // identifies it
	Data webhooks.Payload    // the latest version, such as a [*webhooks.Sleep]
}

// samples returns the samples that a WHERE clause selects.
func (s *Store) samples(ctx context.Context, where string, args ...any) ([]StoredSample, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	type row struct {
		sampleRow
		seriesID int32
		key      webhooks.SampleKey
	}
	var found []row
	err := query(ctx, s.db, func(rows *sql.Rows) error {
		var r row
		if err := rows.Scan(append(r.scan(), &r.seriesID, &r.key.UserID, &r.key.Resource, &r.key.Provider, &r.key.SourceType)...); err != nil {
			return err
		}
		found = append(found, r)
		return nil
	}, s.dialect.bind(`SELECT `+sampleColumns+`, r.id, r.user_id, r.resource, r.provider, r.source_type
		FROM labhealth_samples AS s JOIN labhealth_series AS r ON r.id = s.series_id `+where), args...)
	if err != nil {
		return nil, err
	}
	samples := make([]StoredSample, len(found))
	for i := range found {
		r := &found[i]
		c := r.content()
		if c.document == "" {
			if c.shape, err = s.shape(ctx, s.db, r.shapeID); err != nil {
				return nil, err
			}
		}
		r.key.Resource, r.key.Provider, r.key.SourceType = unescape(r.key.Resource), unescape(r.key.Provider), unescape(r.key.SourceType)
		r.key.UnixNano = r.at
		samples[i] = StoredSample{r.key, c.sample(r.at), r.seriesID}
	}
	return samples, nil
}

// pageSize is the number of rows that Samples and Summaries read at a time.
const pageSize = 5000

// pages iterates over pages of size elements. next returns the page after a cursor, and the cursor
// of its last element. A page with fewer elements is the last.
func pages[T, C any](size int, start C, next func(C) ([]T, C, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for cursor := start; ; {
			page, last, err := next(cursor)
			if err != nil {
				var zero T
				yield(zero, err)
				return
			}
			for i := range page {
				if !yield(page[i], nil) {
					return
				}
			}
			if len(page) < size {
				return
			}
			cursor = last
		}
	}
}

type sampleCursor struct {
	seriesID int32
	at       int64
}

// Samples iterates over the latest versions of all samples, one series after the other, each
// ordered by time. It reads page by page, and holds neither a transaction nor a connection while
// the program processes a sample. Changes made during the iteration may or may not be included. It
// stops after an error.
func (s *Store) Samples(ctx context.Context) iter.Seq2[StoredSample, error] {
	start := sampleCursor{math.MinInt32, math.MinInt64}
	return pages(pageSize, start, func(c sampleCursor) ([]StoredSample, sampleCursor, error) {
		page, err := s.samples(ctx, `WHERE (s.series_id, s.at) > (?, ?) ORDER BY s.series_id, s.at LIMIT ?`, c.seriesID, c.at, pageSize)
		if n := len(page); n > 0 {
			c = sampleCursor{page[n-1].seriesID, page[n-1].Key.UnixNano}
		}
		return page, c, s.failed(ctx, "samples", err)
	})
}

type summaryCursor struct {
	seriesID int32
	id       uuid.UUID
}

// Summaries iterates over the latest versions of all summaries as [Store.Samples] does, ordered by
// ID for each resource of a user.
func (s *Store) Summaries(ctx context.Context) iter.Seq2[StoredSummary, error] {
	start := summaryCursor{math.MinInt32, uuid.Nil}
	return pages(pageSize, start, func(c summaryCursor) (page []StoredSummary, last summaryCursor, err error) {
		if err := s.usable(ctx); err != nil {
			return nil, last, err
		}
		err = query(ctx, s.db, func(rows *sql.Rows) error {
			var of StoredSummary
			var document string
			if err := rows.Scan(&last.seriesID, &of.Key.ID, &document, &of.Key.UserID, &of.Key.Resource); err != nil {
				return err
			}
			of.Key.Resource = unescape(of.Key.Resource)
			of.Data = payload(of.Key.Resource, document)
			page, last.id = append(page, of), of.Key.ID
			return nil
		}, s.dialect.bind(`SELECT s.series_id, s.id, s.text, r.user_id, r.resource
			FROM labhealth_summaries AS s JOIN labhealth_series AS r ON r.id = s.series_id
			WHERE (s.series_id, s.id) > (?, ?) ORDER BY s.series_id, s.id LIMIT ?`), c.seriesID, c.id.String(), pageSize)
		return page, last, s.failed(ctx, "summaries", err)
	})
}
