package labhealth

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/google/uuid"
)

// page is one page of a list as the iterators see it. A cursor is whatever the list is paged by: a
// page number, an offset or text.
type page[E any, C comparable] struct {
	items []E
	next  C    // the cursor of the next page
	last  bool // there is no next page

	allowEmpty bool // the page may be empty although it is not the last
	repeatEnds bool // a page that repeats the previous one ends the list
}

// maxEmptyPages is the number of consecutive empty pages after which an iterator stops.
const maxEmptyPages = 100

// cursorPage is a page that has the cursor of the next one, nil or empty at the end of the list.
type cursorPage[E any] interface {
	elements() (items []E, next *string)
}

// cursorPages returns an iterator over a list whose pages have the cursor of the next one. A page
// may be empty: a service that filters while it pages returns what remains of each range.
func cursorPages[E any, P cursorPage[E]](op, start string, id func(*E) uuid.UUID, list func(cursor string) (P, error)) iter.Seq2[*E, error] {
	return paginate(op, start, id, func(cursor string) (p page[E, string], err error) {
		current, err := list(cursor)
		if err != nil {
			return p, err
		}
		items, next := current.elements()
		p = page[E, string]{items: items, last: next == nil || *next == "", allowEmpty: true}
		if !p.last {
			p.next = *next
		}
		return p, nil
	})
}

// paginate returns an iterator over all pages from start on. An error stops it, and so does a page
// that repeats an earlier one, that leads back to an earlier one, or that is empty although more is
// due: these are a *DecodeError.
func paginate[E any, C comparable](op string, start C, id func(*E) uuid.UUID, fetch func(C) (page[E, C], error)) iter.Seq2[*E, error] {
	return func(yield func(*E, error) bool) {
		h := history[C]{mark: start, turn: 1}
		for cursor := start; ; {
			p, err := fetch(cursor)
			ids := make([]uuid.UUID, len(p.items))
			for i := range p.items {
				ids[i] = id(&p.items[i])
			}
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
			for _, item := range p.items { // a copy each, so that keeping one does not keep the page
				if !yield(&item, nil) {
					return
				}
			}
			if p.last {
				return
			}
			cursor = p.next
			h.add(cursor, ids)
		}
	}
}

// checkPage returns why the page at cursor must end a list, which has the given IDs.
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

// pageError returns a page that is not the requested one as a *DecodeError, and other errors as
// they are.
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

	mark        C
	markIDs     []uuid.UUID // the IDs of the page before the mark
	steps, turn int
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

// equalPages reports whether two pages have the same elements, of which at least one has an ID.
func equalPages(ids, others []uuid.UUID) bool {
	return slices.Equal(ids, others) && slices.ContainsFunc(ids, func(id uuid.UUID) bool { return id != uuid.Nil })
}
