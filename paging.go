package labhealth

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"

	"github.com/google/uuid"
)

// page is one page of a list. Its cursor is a page number, an offset or an opaque string.
//
// Neither the page nor paginate has the type of the elements as a type parameter: the compiler
// would generate all of their code for each.
type page[C comparable] struct {
	items any   // a slice of elements
	next  C     // the cursor of the next page
	last  bool  // there is no next page
	err   error // why there is none, after the items

	allowEmpty bool // the page may be empty even if it is not the last
	repeatEnds bool // a page that repeats the previous one ends the list
}

// maxEmptyPages is the number of consecutive empty pages after which an iterator stops.
const maxEmptyPages = 100

// cursorPage is a page that has the cursor of the next one. The cursor of the last page is nil or
// empty. The items are a slice.
type cursorPage interface {
	elements() (items any, next *string)
	Malformed() []Malformed
}

// cursorPages returns an iterator over a list whose pages have the cursor of the next one. P is a
// pointer to an element. A page may be empty, because a service may filter each page after it is
// read.
func cursorPages[P any](ctx context.Context, opts []CallOption, op, start string, id func(P) uuid.UUID, list func(ctx context.Context, cursor string, opts []CallOption) (cursorPage, error)) iter.Seq2[P, error] {
	return paginate(ctx, opts, op, start, id, func(ctx context.Context, cursor string, opts []CallOption) (page[string], error) {
		current, err := list(ctx, cursor, opts)
		if err != nil {
			return page[string]{}, err
		}
		return pageWithCursor(current), nil
	})
}

func pageWithCursor(current cursorPage) page[string] {
	items, next := current.elements()
	p := page[string]{items: items, last: next == nil || *next == "", allowEmpty: true}
	for _, field := range current.Malformed() {
		// It is nil, as at the end of the list. Field next is an older name of it.
		if field.Path == "next_cursor" || field.Path == "next" && p.last {
			p.err = &unreadable{reason: "its next cursor is malformed"}
		}
	}
	if !p.last {
		p.next = *next
	}
	return p
}

// pageNumbers is what a page of a list that is read by page number reports. Fields that it does not
// report are nil.
type pageNumbers struct{ number, size, total *int64 }

// numberedPage is a page of a list that is read by page number. The items are a slice.
type numberedPage interface {
	numbered() (items any, reported pageNumbers)
}

// numberedPages returns an iterator over a list that is read by page number. P is a pointer to an
// element. The iterator starts at page start, 1 if 0, with size elements per page, 50 if 0.
func numberedPages[P any](ctx context.Context, opts []CallOption, op string, start, size int, id func(P) uuid.UUID, list func(ctx context.Context, number int, opts []CallOption) (numberedPage, error)) iter.Seq2[P, error] {
	start = cmp.Or(start, 1)
	return func(yield func(P, error) bool) {
		counter := pageCounter{start: start, size: int64(cmp.Or(size, 50))}
		paginate(ctx, opts, op, start, id, func(ctx context.Context, number int, opts []CallOption) (page[int], error) {
			current, err := list(ctx, number, opts)
			if err != nil {
				return page[int]{}, err
			}
			return counter.next(number, current)
		})(yield)
	}
}

// pageCounter detects the last page of a list that is read by page number.
type pageCounter struct {
	start   int
	size    int64 // elements per page: as requested, reported or observed
	total   int64 // as last reported; 0 if it was not
	seen    int64 // elements on the pages so far
	reached bool  // full pages would have reached the total: an empty page ends the list
	unpaged bool  // the service may return the whole list for every page number
}

// next returns the page with the given number, whose response is current.
func (c *pageCounter) next(number int, current numberedPage) (p page[int], err error) {
	items, reported := current.numbered()
	if reported.number != nil && *reported.number != int64(number) {
		return p, &unreadable{reason: "it is not the requested page"}
	}
	p.items, p.next = items, number+1
	n, hasSize := int64(reflect.ValueOf(items).Len()), reported.size != nil && *reported.size > 0
	if hasSize {
		c.size = *reported.size
	}
	if reported.total != nil && *reported.total > 0 { // a list with elements and a total of 0 does not report it
		c.total = *reported.total
	}
	p.last = c.isLast(number, n, hasSize)
	if !hasSize && number == c.start && !p.last {
		c.unpaged = c.start == 1 && reported.total == nil && reported.number == nil && n != c.size
		c.size = n // the service's page size may differ from the requested one
	}
	p.repeatEnds = c.unpaged && number == c.start+1
	return p, nil
}

// isLast reports whether a page of n elements is the last one.
func (c *pageCounter) isLast(number int, n int64, hasSize bool) bool {
	c.seen += n
	switch {
	case c.total > 0:
		wasReached := c.reached
		c.reached = int64(number-1)*c.size+n >= c.total
		return int64(c.start-1)*c.size+c.seen >= c.total || wasReached && n == 0
	case hasSize || number > c.start:
		return n < c.size
	}
	return n == 0
}

// paginate returns an iterator over all pages, starting at start. P is a pointer to an element. The
// iterator stops at the first error. A page that repeats an earlier one, leads back to an earlier
// one, or is empty although it is not the last, is a *DecodeError.
func paginate[P any, C comparable](ctx context.Context, opts []CallOption, op string, start C, id func(P) uuid.UUID, fetch fetcher[C]) iter.Seq2[P, error] {
	return func(yield func(P, error) bool) {
		reader := pageReader[C]{ctx: ctx, opts: opts, op: op, fetch: fetch}
		defer reader.stop() // also if yield panics
		if err := yieldPages(&reader, start, id, yield); err != nil {
			var none P
			yield(none, pageError(op, err))
		}
	}
}

// yieldPages yields the elements of all pages. It returns nil after the last page, or when yield
// reports false.
func yieldPages[P any, C comparable](reader *pageReader[C], start C, id func(P) uuid.UUID, yield func(P, error) bool) error {
	h := history[C]{mark: start, turn: 1}
	for cursor := start; ; {
		p, err := reader.read(cursor)
		if err != nil {
			return err
		}
		items := reflect.ValueOf(p.items)
		ids := pageIDs(items, id)
		if p.repeatEnds && equalPages(ids, h.previous) {
			return nil
		}
		if err := checkPage(&h, p, cursor, ids); err != nil {
			return err
		}
		isLast := p.last || p.err != nil
		if !isLast && reader.prefetches {
			reader.request(p.next)
		}
		for i := range items.Len() {
			item := reflect.New(items.Type().Elem()) // a copy, so that keeping it does not keep the page
			item.Elem().Set(items.Index(i))
			if !yield(item.Interface().(P), nil) {
				return nil
			}
		}
		if isLast {
			return p.err
		}
		cursor = p.next
		h.add(cursor, ids)
	}
}

// checkPage returns an error if the page at cursor, whose elements have the given IDs, is not a
// valid successor of the earlier pages.
func checkPage[C comparable](h *history[C], p page[C], cursor C, ids []uuid.UUID) error {
	reason := ""
	switch {
	case ids == nil:
		return errNoList
	case equalPages(ids, h.previous), equalPages(ids, h.markIDs):
		reason = "it repeats an earlier page"
	case p.last:
	case len(ids) == 0 && !p.allowEmpty:
		reason = "it is empty although more is to come"
	case p.next == cursor, p.next == h.mark:
		reason = "it leads back to a page before it"
	case len(ids) == 0 && h.empty+1 == maxEmptyPages:
		reason = fmt.Sprintf("it is the %dth empty page in a row although more is to come", maxEmptyPages)
	}
	if reason == "" {
		return nil
	}
	return &unreadable{reason: reason}
}

// pageError converts an *unreadable to a *DecodeError, and returns other errors unchanged.
func pageError(op string, err error) error {
	if u, ok := errors.AsType[*unreadable](err); ok {
		return &DecodeError{Op: op, StatusCode: 200, Reason: u.reason, outcome: OutcomeApplied, failure: u.kind()}
	}
	return err
}

// history holds what paginate needs of earlier pages. It finds cycles with Brent's algorithm: pages
// are compared with one of them, the mark, at distances that double.
type history[C comparable] struct {
	previous []uuid.UUID // the IDs of the latest page that had any
	empty    int         // the empty pages since

	mark    C
	markIDs []uuid.UUID // the IDs of the page before the mark
	steps   int         // pages since the mark
	turn    int         // the number of steps after which the mark moves
}

// add records a page that leads to next.
func (h *history[C]) add(next C, ids []uuid.UUID) {
	if h.empty++; len(ids) > 0 {
		h.previous, h.empty = ids, 0
	}
	if h.steps++; h.steps == h.turn {
		h.mark, h.markIDs, h.steps, h.turn = next, h.previous, 0, 2*h.turn
	}
}

// pageIDs returns the IDs of the elements of a page, sorted, because a service may return the same
// page in another order. An element without a readable ID is identified by its JSON. There are none
// if the response has no list.
func pageIDs[P any](items reflect.Value, id func(P) uuid.UUID) []uuid.UUID {
	if items.IsNil() {
		return nil
	}
	ids := make([]uuid.UUID, items.Len())
	for i := range ids {
		item := items.Index(i).Addr().Interface()
		ids[i] = id(item.(P))
		if received, ok := item.(interface{ RawJSON() json.RawMessage }); ok && ids[i] == uuid.Nil {
			ids[i] = uuid.NewSHA1(uuid.Nil, received.RawJSON())
		}
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	return ids
}

// equalPages reports whether two pages have the same elements, of which there is at least one.
func equalPages(ids, others []uuid.UUID) bool { return len(ids) > 0 && slices.Equal(ids, others) }
