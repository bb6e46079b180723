// Iterators over samples and summaries, page by page.

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

	series int64 // its number in the slot of the user
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
		return page, afterPage(page), s.failed(ctx, "range", err)
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
		streams, err := s.sampleStreams(ctx, userID, resource, newest.ClampUnixNano(from), newest.EndUnixNano(to))
		for sample, failure := range merged(ctx, streams, func(a, b *StoredSample) int { return cmp.Compare(a.Key.UnixNano, b.Key.UnixNano) }) {
			if err = failure; err != nil || !yield(*sample, nil) {
				break
			}
		}
		if err != nil {
			yield(StoredSample{}, s.failed(ctx, "user samples", err))
		}
	}
}

// smallestPage is the number of rows that is read of a series among many.
const smallestPage = 100

// sampleStreams returns streams of the series of a user.
func (s *Store) sampleStreams(ctx context.Context, userID uuid.UUID, resource string, start, end int64) (streams []*stream[StoredSample], err error) {
	all, err := s.seriesOf(ctx, userID)
	if err != nil {
		return nil, err
	}
	if resource != "" {
		all = slices.DeleteFunc(all, func(of webhooks.Series) bool { return of.Resource != resource })
	}
	size := max(smallestPage, pageSize/max(1, len(all)))
	for _, of := range all {
		streams = append(streams, &stream[StoredSample]{size: size, read: func(ctx context.Context, last *StoredSample) ([]StoredSample, error) {
			if last != nil {
				return s.rangePage(ctx, of, last.Key.UnixNano+1, end, size)
			}
			return s.rangePage(ctx, of, start, end, size)
		}})
	}
	return streams, nil
}

// stream reads elements page by page.
type stream[T any] struct {
	size int // of a page; one with less is the last
	read func(ctx context.Context, last *T) ([]T, error)

	page     []T // not returned yet
	last     *T  // of the page that was read last
	complete bool
}

// head returns the next element, and nil at the end.
func (st *stream[T]) head(ctx context.Context) (*T, error) {
	if len(st.page) == 0 && !st.complete {
		page, err := st.read(ctx, st.last)
		if err != nil {
			return nil, err
		}
		st.page, st.complete = page, len(page) < st.size
		if len(page) > 0 {
			st.last = &page[len(page)-1]
		}
	}
	if len(st.page) == 0 {
		return nil, nil
	}
	return &st.page[0], nil
}

// merged iterates over streams that are ordered, and returns the elements in that order or, without
// compare, one stream after the other.
func merged[T any](ctx context.Context, streams []*stream[T], compare func(a, b *T) int) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for {
			var first *stream[T]
			var least *T
			for _, st := range streams {
				head, err := st.head(ctx)
				if err != nil {
					yield(nil, err)
					return
				}
				if head != nil && (least == nil || compare(head, least) < 0) {
					first, least = st, head
				}
				if least != nil && compare == nil {
					break
				}
			}
			if least == nil || !yield(least, nil) {
				return
			}
			first.page = first.page[1:]
		}
	}
}

// afterPage returns the first time after a page.
func afterPage(page []StoredSample) int64 {
	if len(page) == 0 {
		return math.MaxInt64
	}
	return page[len(page)-1].Key.UnixNano + 1
}

// rangePage returns the first samples of a series from start to before end. The statement looks up
// the series each time: the number of one that was lost can be given to another user.
func (s *Store) rangePage(ctx context.Context, of webhooks.Series, start, end int64, size int) ([]StoredSample, error) {
	return s.page(ctx, func(r *storedRow) []any {
		r.of = of
		return append(r.scan(), &r.series)
	}, `SELECT `+sampleColumns+`, s.series FROM labhealth_samples AS s WHERE s.slot = $1::smallint AND s.series =
		(SELECT r.series FROM labhealth_series AS r WHERE r.slot = $1::smallint AND r.user_id = $2::uuid AND r.key = $3::bytea)
		AND s.at >= $4::bigint AND s.at < $5::bigint ORDER BY s.at LIMIT $6::integer`,
		Slot(of.UserID), of.UserID.String(), seriesKey(of), start, end, size)
}

// storedRow is a row of labhealth_samples with its series.
type storedRow struct {
	sampleRow
	series int64
	of     webhooks.Series
}

// pageReads is how often a page is read before a shape that is missing is an error: it may have
// been deleted, together with the samples that had it, after the page was read.
const pageReads = 3

// page returns the samples that a statement selects. scan returns the destinations of its columns.
func (s *Store) page(ctx context.Context, scan func(*storedRow) []any, statement string, params ...any) (page []StoredSample, err error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	for range pageReads {
		if page, err = s.readPage(ctx, scan, statement, params...); !errors.Is(err, errNoShape) {
			break
		}
	}
	return page, err
}

func (s *Store) readPage(ctx context.Context, scan func(*storedRow) []any, statement string, params ...any) ([]StoredSample, error) {
	var found []storedRow
	var series []webhooks.Series
	places := map[webhooks.Series]int{}
	err := s.query(ctx, s.db, func(rows *sql.Rows) error {
		var r storedRow
		if err := rows.Scan(scan(&r)...); err != nil {
			return err
		}
		found = append(found, r)
		return nil
	}, statement, params...)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	for i := range found {
		if i > 0 && found[i].isOf(&found[i-1]) {
			continue
		}
		if _, known := places[found[i].of]; !known {
			places[found[i].of] = len(series)
			series = append(series, found[i].of)
		}
	}
	// The shapes after the samples, which are stored after them.
	stored, err := s.findSeries(ctx, s.db, series, nil)
	if err != nil {
		return nil, err
	}
	var of *storedSeries
	page := make([]StoredSample, len(found))
	for i := range found {
		if i == 0 || !found[i].isOf(&found[i-1]) {
			of = &stored[places[found[i].of]]
		}
		var ok bool
		if page[i], ok = found[i].sample(of); !ok {
			return nil, errNoShape
		}
	}
	return page, nil
}

// isOf reports whether two rows are of the same series.
func (r *storedRow) isOf(other *storedRow) bool { return r.series == other.series && r.of == other.of }

// sample returns the sample of a row. It reports whether the series has its shape.
func (r *storedRow) sample(of *storedSeries) (StoredSample, bool) {
	c, ok := r.content(of)
	if !ok || of.number != r.series {
		return StoredSample{}, false
	}
	key := webhooks.SampleKey{UserID: r.of.UserID, Resource: r.of.Resource, Provider: r.of.Provider, SourceType: r.of.SourceType, UnixNano: r.at}
	return StoredSample{key, c.sample(r.at), r.series}, true
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
	err = s.query(ctx, s.db, func(rows *sql.Rows) error {
		var resource string
		err := rows.Scan(&resource)
		all = append(all, unescape(resource))
		return err
	}, `SELECT r.resource FROM labhealth_series AS r WHERE r.slot = $1::smallint AND r.user_id = $2::uuid AND r.provider = '' AND r.source_type = ''`,
		Slot(userID), userID.String())
	slices.Sort(all)
	return all, err
}

func (s *Store) resourceSummaries(ctx context.Context, of webhooks.Series) iter.Seq2[StoredSummary, error] {
	return pages(summaryPageSize, uuid.Nil, func(last uuid.UUID) (page []StoredSummary, _ uuid.UUID, err error) {
		if err := s.usable(ctx); err != nil {
			return nil, last, err
		}
		err = s.query(ctx, s.db, func(rows *sql.Rows) error {
			var document string
			if err := rows.Scan(&last, &document); err != nil {
				return err
			}
			key := webhooks.SummaryKey{UserID: of.UserID, Resource: of.Resource, ID: last}
			page = append(page, StoredSummary{key, payload(of.Resource, document)})
			return nil
		}, `SELECT m.id, m.text FROM labhealth_summaries AS m WHERE m.slot = $1::smallint AND m.series =
			(SELECT r.series FROM labhealth_series AS r WHERE r.slot = $1::smallint AND r.user_id = $2::uuid AND r.key = $3::bytea)
			AND m.id > $4::uuid ORDER BY m.id LIMIT $5::integer`, Slot(of.UserID), of.UserID.String(), seriesKey(of), last.String(), summaryPageSize)
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

// rowCursor is the place of a row after which a page starts.
type rowCursor struct {
	slot, series, at int64
	id               uuid.UUID
}

// Samples iterates over the latest versions of all samples, one series after the other, each
// ordered by time. It reads like [Store.Range].
func (s *Store) Samples(ctx context.Context) iter.Seq2[StoredSample, error] {
	start := rowCursor{at: math.MinInt64}
	return pages(pageSize, start, func(c rowCursor) ([]StoredSample, rowCursor, error) {
		page, err := s.samplesPage(ctx, c)
		if n := len(page); n > 0 {
			last := &page[n-1]
			c = rowCursor{slot: int64(Slot(last.Key.UserID)), series: last.series, at: last.Key.UnixNano}
		}
		return page, c, s.failed(ctx, "samples", err)
	})
}

// samplesPage returns the samples after a cursor.
func (s *Store) samplesPage(ctx context.Context, c rowCursor) ([]StoredSample, error) {
	return s.page(ctx, func(r *storedRow) []any {
		return append(r.scan(), &r.series, &r.of.UserID, unescaped{&r.of.Resource}, unescaped{&r.of.Provider}, unescaped{&r.of.SourceType})
	}, `SELECT `+sampleColumns+`, s.series, r.user_id, r.resource, r.provider, r.source_type
		FROM (SELECT * FROM labhealth_samples AS s WHERE (s.slot, s.series, s.at) > ($1::smallint, $2::integer, $3::bigint)
			ORDER BY s.slot, s.series, s.at LIMIT $4::integer) AS s
		{find r: * | labhealth_series | r.slot = s.slot AND r.series = s.series} ORDER BY s.slot, s.series, s.at`,
		c.slot, c.series, c.at, pageSize)
}

// unescaped is the destination of a text column.
type unescaped struct{ to *string }

// Scan implements sql.Scanner.
func (u unescaped) Scan(value any) error {
	var text sql.Null[string]
	err := text.Scan(value)
	*u.to = unescape(text.V)
	return err
}

// Summaries iterates over the latest versions of all summaries, ordered by ID for each resource of
// a user. It reads like [Store.Range].
func (s *Store) Summaries(ctx context.Context) iter.Seq2[StoredSummary, error] {
	return pages(summaryPageSize, rowCursor{}, func(c rowCursor) (page []StoredSummary, last rowCursor, err error) {
		if err := s.usable(ctx); err != nil {
			return nil, last, err
		}
		err = s.query(ctx, s.db, func(rows *sql.Rows) error {
			var of StoredSummary
			var document string
			if err := rows.Scan(&last.slot, &last.series, &of.Key.ID, &document, &of.Key.UserID, unescaped{&of.Key.Resource}); err != nil {
				return err
			}
			of.Data = payload(of.Key.Resource, document)
			page, last.id = append(page, of), of.Key.ID
			return nil
		}, `SELECT m.slot, m.series, m.id, m.text, r.user_id, r.resource
			FROM (SELECT * FROM labhealth_summaries AS m WHERE (m.slot, m.series, m.id) > ($1::smallint, $2::integer, $3::uuid)
				ORDER BY m.slot, m.series, m.id LIMIT $4::integer) AS m
			{find r: * | labhealth_series | r.slot = m.slot AND r.series = m.series} ORDER BY m.slot, m.series, m.id`,
			c.slot, c.series, c.id.String(), summaryPageSize)
		return page, last, s.failed(ctx, "summaries", err)
	})
}
