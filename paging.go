// Iterators over pages, and the check that a list advances.

package labhealth

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/pagetime"
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

	total   int64                  // elements on all pages; negative if it is not reported
	earlier func(elements int64) C // the cursor of a page so many elements before; set with a total

	allowEmpty bool // the page may be empty even if it is not the last
	repeatEnds bool // a page that repeats the previous one ends the list
}

const (
	maxEmptyPages = 100  // consecutive empty pages after which an iterator stops
	maxRereads    = 100  // consecutive pages without a new element, of a list that becomes shorter
	minRecent     = 1000 // elements that are recognized if they are read again
)

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
	p := page[string]{items: items, last: next == nil || *next == "", total: -1, allowEmpty: true}
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
	p.items, p.next, p.total = items, number+1, -1
	n, hasSize := int64(reflect.ValueOf(items).Len()), reported.size != nil && *reported.size > 0
	if hasSize {
		c.size = *reported.size
	}
	if total := reported.total; total != nil && (*total > 0 || n == 0) { // otherwise it is not reported
		c.total, p.total = *total, *total
		p.earlier = func(elements int64) int { return c.back(number, elements) }
	}
	p.last = c.isLast(number, n, hasSize)
	if !hasSize && number == c.start && !p.last {
		c.unpaged = c.start == 1 && reported.total == nil && reported.number == nil && n != c.size
		c.size = n // the service's page size may differ from the requested one
	}
	p.repeatEnds = c.unpaged && number == c.start+1
	return p, nil
}

// back returns the number of the page that is so many elements before another page, and continues
// there.
func (c *pageCounter) back(number int, elements int64) int {
	pages := min((elements-1)/max(c.size, 1)+1, int64(number-c.start))
	number -= int(pages)
	c.seen, c.reached = int64(number-c.start)*c.size, false
	return number
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
func paginate[P any, C comparable](ctx context.Context, opts []CallOption, op string, start C, id func(P) uuid.UUID, fetch func(ctx context.Context, cursor C, opts []CallOption) (page[C], error)) iter.Seq2[P, error] {
	return func(yield func(P, error) bool) {
		read := func(cursor C) (page[C], error) {
			requested := time.Now()
			p, err := fetch(ctx, cursor, opts)
			pagetime.Set(ctx, requested)
			return p, err
		}
		if err := yieldPages(read, start, id, yield); err != nil {
			var none P
			yield(none, pageError(op, err))
		}
	}
}

// yieldPages yields the elements of all pages. It returns nil after the last page, or when yield
// reports false.
func yieldPages[P any, C comparable](read func(cursor C) (page[C], error), start C, id func(P) uuid.UUID, yield func(P, error) bool) error {
	h := history[C]{mark: start, turn: 1}
	for cursor := start; ; {
		p, err := read(cursor)
		if err != nil {
			return err
		}
		if earlier, shorter := h.goBack(p, cursor); shorter {
			if h.rereads++; h.rereads == maxRereads {
				return &unreadable{reason: "its total becomes smaller with every request"}
			}
			cursor = earlier
			continue
		}
		items := reflect.ValueOf(p.items)
		ids := pageIDs(items, id)
		if p.repeatEnds && equalPages(ids, h.previous) {
			return nil
		}
		if err := checkPage(&h, p, cursor, ids); err != nil {
			return err
		}
		isNew, goesOn := yieldItems(&h, items, id, yield)
		if !goesOn {
			return nil
		}
		if p.last || p.err != nil {
			return p.err
		}
		cursor = p.next
		h.add(cursor, ids, isNew)
	}
}

// yieldItems yields the elements of a page that were not yielded before. It reports whether there
// were any, and whether yield wants more.
func yieldItems[P any, C comparable](h *history[C], items reflect.Value, id func(P) uuid.UUID, yield func(P, error) bool) (isNew, goesOn bool) {
	for i := range items.Len() {
		if h.rereads > 0 && slices.Contains(h.recent, elementID(items.Index(i), id)) {
			continue
		}
		isNew = true
		item := reflect.New(items.Type().Elem()) // a copy, so that keeping it does not keep the page
		item.Elem().Set(items.Index(i))
		if !yield(item.Interface().(P), nil) {
			return true, false
		}
	}
	return isNew, true
}

// checkPage returns an error if the page at cursor, whose elements have the given IDs, is not a
// valid successor of the earlier pages.
func checkPage[C comparable](h *history[C], p page[C], cursor C, ids []uuid.UUID) error {
	reason := ""
	switch {
	case ids == nil:
		return errNoList
	case h.rereads == 0 && (equalPages(ids, h.previous) || equalPages(ids, h.markIDs)):
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

	total   *int64      // as the latest page reports it; nil before the first
	recent  []uuid.UUID // the IDs of the latest elements
	rereads int         // pages that were read again since the latest new element
}

// goBack reports whether the list has become shorter since the page before p, the page at cursor,
// so that elements may have moved to pages before it. It returns where they are.
func (h *history[C]) goBack(p page[C], cursor C) (earlier C, shorter bool) {
	before := h.total
	h.total = &p.total
	if before == nil || p.total < 0 || p.total >= *before {
		return cursor, false
	}
	if earlier = p.earlier(*before - p.total); earlier == cursor {
		return cursor, false
	}
	h.mark, h.markIDs, h.steps, h.turn = earlier, nil, 0, 1 // pages before are not a cycle
	return earlier, true
}

// add records a page that leads to next, and whether it had new elements.
func (h *history[C]) add(next C, ids []uuid.UUID, isNew bool) {
	if h.empty++; len(ids) > 0 {
		h.previous, h.empty = ids, 0
	}
	if isNew {
		h.rereads = 0
	}
	h.recent = append(slices.Delete(h.recent, 0, max(0, len(h.recent)-minRecent)), ids...)
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
		ids[i] = elementID(items.Index(i), id)
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	return ids
}

func elementID[P any](element reflect.Value, id func(P) uuid.UUID) uuid.UUID {
	item := element.Addr().Interface()
	key := id(item.(P))
	if received, ok := item.(interface{ RawJSON() json.RawMessage }); ok && key == uuid.Nil {
		return contentID(received.RawJSON())
	}
	return key
}

// contentID returns an ID that two texts share only if they are equal. SHA-1, which uuid.NewSHA1
// uses, panics in FIPS 140-only mode.
func contentID(content []byte) uuid.UUID {
	sum := sha256.Sum256(content)
	return uuid.UUID(sum[:16])
}

// equalPages reports whether two pages have the same elements, of which there is at least one.
func equalPages(ids, others []uuid.UUID) bool { return len(ids) > 0 && slices.Equal(ids, others) }
