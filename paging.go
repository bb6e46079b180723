package labhealth

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/google/uuid"
)

// page is one page of a list. Its cursor is a page number, an offset or an opaque string.
type page[E any, C comparable] struct {
	items []E
	next  C     // the cursor of the next page
	last  bool  // there is no next page
	err   error // why there is none, after the items

	allowEmpty bool // the page may be empty even if it is not the last
	repeatEnds bool // a page that repeats the previous one ends the list
}

// maxEmptyPages is the number of consecutive empty pages after which an iterator stops.
const maxEmptyPages = 100

// cursorPage is a page that has the cursor of the next one. The cursor of the last page is nil or
// empty.
type cursorPage[E any] interface {
	elements() (items []E, next *string)
	Malformed() []Malformed
}

// cursorPages returns an iterator over a list whose pages have the cursor of the next one. A page
// may be empty, because a service may filter each page after it is read.
func cursorPages[E any, P cursorPage[E]](op, start string, id func(*E) uuid.UUID, list func(cursor string) (P, error)) iter.Seq2[*E, error] {
	return paginate(op, start, id, func(cursor string) (p page[E, string], err error) {
		current, err := list(cursor)
		if err != nil {
			return p, err
		}
		items, next := current.elements()
		p = page[E, string]{items: items, last: next == nil || *next == "", allowEmpty: true}
		for _, field := range current.Malformed() {
			if field.Path == "next_cursor" { // it is nil, as at the end of the list
				p.err = &unreadable{reason: "its next cursor is malformed"}
			}
		}
		if !p.last {
			p.next = *next
		}
		return p, nil
	})
}

// pageNumbers is what a page of a list that is read by page number reports. Fields that it does not
// report are nil.
type pageNumbers struct{ number, size, total *int64 }

// numberedPages returns an iterator over a list that is read by page number. It starts at page
// start, 1 if 0, with size elements per page, 50 if 0.
func numberedPages[E any](op string, start, size int, id func(*E) uuid.UUID, list func(number int) ([]E, pageNumbers, error)) iter.Seq2[*E, error] {
	return func(yield func(*E, error) bool) {
		counter := pageCounter{start: cmp.Or(start, 1), size: int64(cmp.Or(size, 50))}
		fetch := func(number int) (p page[E, int], err error) {
			items, reported, err := list(number)
			if err != nil {
				return p, err
			}
			p = page[E, int]{items: items, next: number + 1}
			p.last, p.repeatEnds, err = counter.next(number, int64(len(items)), reported)
			return p, err
		}
		paginate(op, counter.start, id, fetch)(yield)
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

// next adds the page with the given number, which has n elements. It returns whether it is the last
// one, and whether it ends the list if it repeats the page before it.
func (c *pageCounter) next(number int, n int64, reported pageNumbers) (last, repeatEnds bool, err error) {
	if reported.number != nil && *reported.number != int64(number) {
		return false, false, &unreadable{reason: "it is not the requested page"}
	}
	hasSize := reported.size != nil && *reported.size > 0
	if hasSize {
		c.size = *reported.size
	}
	if reported.total != nil && *reported.total > 0 { // a list with elements and a total of 0 does not report it
		c.total = *reported.total
	}
	last = c.isLast(number, n, hasSize)
	if !hasSize && number == c.start && !last {
		c.unpaged = c.start == 1 && reported.total == nil && reported.number == nil && n != c.size
		c.size = n // the service's page size may differ from the requested one
	}
	return last, c.unpaged && number == c.start+1, nil
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

// paginate returns an iterator over all pages, starting at start. It stops at the first error. A
// page that repeats an earlier one, leads back to an earlier one, or is empty although it is not
// the last, is a *DecodeError.
func paginate[E any, C comparable](op string, start C, id func(*E) uuid.UUID, fetch func(C) (page[E, C], error)) iter.Seq2[*E, error] {
	return func(yield func(*E, error) bool) {
		h := history[C]{mark: start, turn: 1}
		for cursor := start; ; {
			p, err := fetch(cursor)
			ids := pageIDs(p.items, id)
			if err == nil {
				if p.repeatEnds && equalPages(ids, h.previous) {
					return
				}
				err = checkPage(&h, p, cursor, ids)
			}
			if err != nil {
				yield(nil, pageError(op, err))
				return
			}
			for _, item := range p.items { // a copy, so that keeping it does not keep the page
				if !yield(&item, nil) {
					return
				}
			}
			if p.err != nil {
				yield(nil, pageError(op, p.err))
			}
			if p.last {
				return
			}
			cursor = p.next
			h.add(cursor, ids)
		}
	}
}

// checkPage returns an error if the page at cursor, whose elements have the given IDs, is not a
// valid successor of the earlier pages.
func checkPage[E any, C comparable](h *history[C], p page[E, C], cursor C, ids []uuid.UUID) error {
	reason := ""
	switch {
	case p.items == nil:
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
		return &DecodeError{Op: op, StatusCode: 200, Reason: u.reason, outcome: OutcomeApplied}
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
// page in another order. An element without a readable ID is identified by its JSON.
func pageIDs[E any](items []E, id func(*E) uuid.UUID) []uuid.UUID {
	ids := make([]uuid.UUID, len(items))
	for i := range items {
		ids[i] = id(&items[i])
		if received, ok := any(&items[i]).(interface{ RawJSON() json.RawMessage }); ok && ids[i] == uuid.Nil {
			ids[i] = uuid.NewSHA1(uuid.Nil, received.RawJSON())
		}
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	return ids
}

// equalPages reports whether two pages have the same elements, of which there is at least one.
func equalPages(ids, others []uuid.UUID) bool { return len(ids) > 0 && slices.Equal(ids, others) }
