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

// StoredSample is a sample with its key.
type StoredSample struct {
	Key    webhooks.SampleKey // identifies it
	Sample webhooks.Sample    // the latest version

	seriesID int64
}

// StoredSummary is a summary with its key.
type StoredSummary struct {
	Key  webhooks.SummaryKey // identifies it
	Data webhooks.Payload    // the latest version, such as a [*webhooks.Sleep]
}

// Range iterates over the latest versions of the samples of a series whose time is at or after from
// and before to, ordered by time. A zero time is no limit. [Store.Series] returns the series of a
// user, and [Store.UserSamples] iterates over several of them at once.
//
// It reads page by page, so that its memory does not depend on the number of samples. It holds
// neither a transaction nor a connection while the program processes a sample, and each loop over
// the iterator reads again. Samples that are written, replaced or deleted during the iteration may
// or may not be included, in the version before or after; all others are included exactly once. It
// stops after an error, which is an [*Error].
func (s *Store) Range(ctx context.Context, of webhooks.Series, from, to time.Time) iter.Seq2[StoredSample, error] {
	return pages(pageSize, newest.ClampUnixNano(from), func(start int64) ([]StoredSample, int64, error) {
		page, err := s.rangePage(ctx, of, start, newest.EndUnixNano(to), pageSize)
		return page, after(page), s.failed(ctx, "range", err)
	})
}

// UserSamples iterates over the latest versions of the samples of a user whose time is at or after
// from and before to, ordered by time. A zero time is no limit, and an empty resource means all
// resources: with neither, it exports the samples of the user. Samples of the same time are ordered
// by resource, provider and source type.
//
// It reads like [Store.Range], a page of each series at a time. A series whose first sample is
// stored during the iteration is not included.
func (s *Store) UserSamples(ctx context.Context, userID uuid.UUID, resource string, from, to time.Time) iter.Seq2[StoredSample, error] {
	return func(yield func(StoredSample, error) bool) {
		m, err := s.merge(ctx, userID, resource, newest.ClampUnixNano(from), newest.EndUnixNano(to))
		for err == nil {
			var ready []StoredSample
			if ready, err = m.next(ctx); err == nil && len(ready) == 0 {
				return
			}
			for i := range ready {
				if !yield(ready[i], nil) {
					return
				}
			}
		}
		yield(StoredSample{}, s.failed(ctx, "user samples", err))
	}
}

// merged reads several series, ordered by time.
type merged struct {
	store   *Store
	size    int // of a page of one series
	end     int64
	streams []stream
}

// stream is what was read of one series.
type stream struct {
	series   webhooks.Series
	start    int64          // of the next page
	page     []StoredSample // not returned yet
	complete bool           // there is no next page
}

// smallestPage is the number of rows that is read of a series among many.
const smallestPage = 100

func (s *Store) merge(ctx context.Context, userID uuid.UUID, resource string, start, end int64) (*merged, error) {
	all, err := s.seriesOf(ctx, userID)
	if err != nil {
		return nil, err
	}
	m := &merged{store: s, end: end}
	for _, of := range all {
		if resource == "" || of.Resource == resource {
			m.streams = append(m.streams, stream{series: of, start: start})
		}
	}
	m.size = max(smallestPage, pageSize/max(1, len(m.streams)))
	return m, nil
}

// next returns the next samples, none at the end. Up to the earliest end of a page, the pages have
// all samples there are.
func (m *merged) next(ctx context.Context) (ready []StoredSample, err error) {
	bound := int64(math.MaxInt64)
	for i := range m.streams {
		st := &m.streams[i]
		if len(st.page) == 0 && !st.complete {
			if st.page, err = m.store.rangePage(ctx, st.series, st.start, m.end, m.size); err != nil {
				return nil, err
			}
			st.start, st.complete = after(st.page), len(st.page) < m.size
		}
		if !st.complete {
			bound = min(bound, st.start-1)
		}
	}
	for i := range m.streams {
		st, n := &m.streams[i], 0
		for n < len(st.page) && st.page[n].Key.UnixNano <= bound {
			n++
		}
		ready, st.page = append(ready, st.page[:n]...), st.page[n:]
	}
	slices.SortStableFunc(ready, func(a, b StoredSample) int { return cmp.Compare(a.Key.UnixNano, b.Key.UnixNano) })
	return ready, nil
}

// after returns the first time after a page.
func after(page []StoredSample) int64 {
	if len(page) == 0 {
		return math.MaxInt64
	}
	return page[len(page)-1].Key.UnixNano + 1
}

// rangePage returns the first samples of a series from start to before end. The statement looks up
// the series each time: the ID of a deleted one can be given to another user.
func (s *Store) rangePage(ctx context.Context, of webhooks.Series, start, end int64, size int) ([]StoredSample, error) {
	return s.page(ctx, func(r *storedRow) []any {
		r.of = of
		return r.scan()
	}, `SELECT `+sampleColumns+` FROM labhealth_samples AS s
		WHERE s.series_id = (SELECT id FROM labhealth_series WHERE key = ?) AND s.at >= ? AND s.at < ? ORDER BY s.at LIMIT ?`,
		seriesKey(of), start, end, size)
}

// storedRow is a row of labhealth_samples with its series.
type storedRow struct {
	sampleRow
	seriesID int64
	of       webhooks.Series
}

// pageReads is how often a page is read before a shape that is missing is an error: it may have
// been deleted, together with the samples that had it, after the page was read.
const pageReads = 3

// page returns the samples that a statement selects. scan returns the destinations of its columns.
func (s *Store) page(ctx context.Context, scan func(*storedRow) []any, statement string, args ...any) (page []StoredSample, err error) {
	for range pageReads {
		if page, err = s.readPage(ctx, scan, statement, args...); !errors.Is(err, errNoShape) {
			break
		}
	}
	return page, err
}

func (s *Store) readPage(ctx context.Context, scan func(*storedRow) []any, statement string, args ...any) ([]StoredSample, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	var found []storedRow
	err := query(ctx, s.db, func(rows *sql.Rows) error {
		var r storedRow
		if err := rows.Scan(scan(&r)...); err != nil {
			return err
		}
		found = append(found, r)
		return nil
	}, s.dialect.bind(statement), args...)
	if err != nil {
		return nil, err
	}
	// Looking up a shape takes a connection, perhaps the only one, which has read the rows before.
	page := make([]StoredSample, len(found))
	for i := range found {
		r := &found[i]
		c := r.content()
		if c.document == "" {
			if c.shape, err = s.shape(ctx, s.db, r.shapeID); err != nil {
				return nil, err
			}
		}
		key := webhooks.SampleKey{UserID: r.of.UserID, Resource: r.of.Resource, Provider: r.of.Provider, SourceType: r.of.SourceType, UnixNano: r.at}
		page[i] = StoredSample{key, c.sample(r.at), r.seriesID}
	}
	return page, nil
}

// UserSummaries iterates over the latest versions of the summaries of a user, as [Store.Range] does
// over samples. An empty resource means all resources. They are ordered by resource and ID.
func (s *Store) UserSummaries(ctx context.Context, userID uuid.UUID, resource string) iter.Seq2[StoredSummary, error] {
	return func(yield func(StoredSummary, error) bool) {
		resources, err := []string{resource}, error(nil)
		if resource == "" {
			resources, err = s.summaryResources(ctx, userID)
		}
		if err != nil {
			yield(StoredSummary{}, s.failed(ctx, "user summaries", err))
			return
		}
		for _, resource := range resources {
			for of, err := range s.resourceSummaries(ctx, webhooks.Series{UserID: userID, Resource: resource}) {
				if !yield(of, err) {
					return
				}
			}
		}
	}
}

// summaryResources returns the resources of which a user may have summaries.
func (s *Store) summaryResources(ctx context.Context, userID uuid.UUID) (all []string, err error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	err = query(ctx, s.db, func(rows *sql.Rows) error {
		var resource string
		err := rows.Scan(&resource)
		all = append(all, unescape(resource))
		return err
	}, s.dialect.bind(`SELECT resource FROM labhealth_series WHERE user_id = ? AND provider = '' AND source_type = ''`), userID.String())
	slices.Sort(all)
	return all, err
}

func (s *Store) resourceSummaries(ctx context.Context, of webhooks.Series) iter.Seq2[StoredSummary, error] {
	return pages(summaryPageSize, uuid.Nil, func(last uuid.UUID) (page []StoredSummary, _ uuid.UUID, err error) {
		if err := s.usable(ctx); err != nil {
			return nil, last, err
		}
		err = query(ctx, s.db, func(rows *sql.Rows) error {
			var document string
			if err := rows.Scan(&last, &document); err != nil {
				return err
			}
			key := webhooks.SummaryKey{UserID: of.UserID, Resource: of.Resource, ID: last}
			page = append(page, StoredSummary{key, payload(of.Resource, document)})
			return nil
		}, s.dialect.bind(`SELECT id, text FROM labhealth_summaries
			WHERE series_id = (SELECT id FROM labhealth_series WHERE key = ?) AND id > ? ORDER BY id LIMIT ?`),
			seriesKey(of), last.String(), summaryPageSize)
		return page, last, s.failed(ctx, "user summaries", err)
	})
}

// These are the numbers of rows that are read at a time. A summary can have many kilobytes.
const (
	pageSize        = 2000
	summaryPageSize = 200
)

// pages iterates over pages of size elements. next returns the page at a cursor, and the cursor of
// the page after it. A page with fewer elements is the last.
func pages[T, C any](size int, start C, next func(C) ([]T, C, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for cursor := start; ; {
			page, following, err := next(cursor)
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
			cursor = following
		}
	}
}

type sampleCursor struct {
	seriesID int64
	at       int64
}

// Samples iterates over the latest versions of all samples, one series after the other, each
// ordered by time. It reads like [Store.Range].
func (s *Store) Samples(ctx context.Context) iter.Seq2[StoredSample, error] {
	start := sampleCursor{math.MinInt64, math.MinInt64}
	return pages(pageSize, start, func(c sampleCursor) ([]StoredSample, sampleCursor, error) {
		page, err := s.samplesPage(ctx, c)
		if n := len(page); n > 0 {
			c = sampleCursor{page[n-1].seriesID, page[n-1].Key.UnixNano}
		}
		return page, c, s.failed(ctx, "samples", err)
	})
}

// samplesPage returns the samples after a cursor.
func (s *Store) samplesPage(ctx context.Context, c sampleCursor) ([]StoredSample, error) {
	page, err := s.page(ctx, func(r *storedRow) []any {
		return append(r.scan(), &r.seriesID, &r.of.UserID, &r.of.Resource, &r.of.Provider, &r.of.SourceType)
	}, `SELECT `+sampleColumns+`, r.id, r.user_id, r.resource, r.provider, r.source_type
		FROM labhealth_samples AS s JOIN labhealth_series AS r ON r.id = s.series_id
		WHERE (s.series_id, s.at) > (?, ?) ORDER BY s.series_id, s.at LIMIT ?`, c.seriesID, c.at, pageSize)
	for i := range page {
		key := &page[i].Key
		key.Resource, key.Provider, key.SourceType = unescape(key.Resource), unescape(key.Provider), unescape(key.SourceType)
	}
	return page, err
}

type summaryCursor struct {
	seriesID int64
	id       uuid.UUID
}

// Summaries iterates over the latest versions of all summaries, ordered by ID for each resource of
// a user. It reads like [Store.Range].
func (s *Store) Summaries(ctx context.Context) iter.Seq2[StoredSummary, error] {
	start := summaryCursor{math.MinInt64, uuid.Nil}
	return pages(summaryPageSize, start, func(c summaryCursor) (page []StoredSummary, last summaryCursor, err error) {
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
			WHERE (s.series_id, s.id) > (?, ?) ORDER BY s.series_id, s.id LIMIT ?`), c.seriesID, c.id.String(), summaryPageSize)
		return page, last, s.failed(ctx, "summaries", err)
	})
}
