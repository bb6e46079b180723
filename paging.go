package labhealth

import (
	"fmt"
	"iter"
	"slices"

	"github.com/google/uuid"
)

// part is one page of a list as the iterators see it.
type part[E any, At comparable] struct {
	items      []E
	next       At     // where the next page starts
	last       bool   // whether there is none
	problem    string // why the page cannot be the requested one
	emptyIsOK  bool   // whether a page may be empty although it is not the last
	repeatEnds bool   // whether a page that repeats the one before ends the list
}

// maxEmptyPages is how many empty pages in a row an iterator reads before it gives up.
const maxEmptyPages = 100

// cursorPart is a page of a list that goes on at next. It may be empty: a service that filters while
// it pages sends what a stretch of its list has left over.
func cursorPart[E any](items []E, next *string) part[E, string] {
	p := part[E, string]{items: items, last: next == nil || *next == "", emptyIsOK: true}
	if !p.last {
		p.next = *next
	}
	return p
}

// noList rejects a 200 response without a list: some deployments report errors with status 200.
const noList = "it has no list"

// listProblem returns why the response of a list cannot be read, if there is none in it.
func listProblem(missing bool) string {
	if missing {
		return noList
	}
	return ""
}

// paged ranges over all pages from start on. It requests no further page after one that repeats an
// earlier one, that leads back to an earlier one, or that is empty although more is due; of cursor
// lists, after maxEmptyPages empty ones. It ends with a *[DecodeError] then.
func paged[E any, At comparable](op string, start At, id func(*E) uuid.UUID, fetch func(At) (part[E, At], error)) iter.Seq2[*E, error] {
	return func(yield func(*E, error) bool) {
		h := history[At]{mark: start, turn: 1}
		for at := start; ; {
			p, err := fetch(at)
			ids := make([]uuid.UUID, len(p.items))
			for i := range p.items {
				ids[i] = id(&p.items[i])
			}
			repeated := err == nil && p.problem == "" && same(ids, h.before)
			if repeated && p.repeatEnds {
				return
			}
			switch {
			case err != nil:
			case p.problem != "":
			case p.items == nil:
				p.problem = noList
			case repeated, same(ids, h.markIDs):
				p.problem = "it repeats an earlier page"
			case p.last:
			case len(ids) == 0 && !p.emptyIsOK:
				p.problem = "it is empty although more is to come"
			case p.next == at || p.next == h.mark:
				p.problem = "it leads back to a page before it"
			case len(ids) == 0 && h.empty+1 == maxEmptyPages:
				p.problem = fmt.Sprintf("it is the %dth empty page in a row although more is to come", maxEmptyPages)
			}
			if p.problem != "" {
				err = &DecodeError{Op: op, StatusCode: 200, Reason: p.problem, outcome: OutcomeApplied}
			}
			if err != nil {
				yield(nil, err)
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
			at = p.next
			h.add(at, ids)
		}
	}
}

// history is what paged stores of the pages before. It finds cycles with Brent's method: pages are
// compared with one of them, the mark, at distances that double.
type history[At comparable] struct {
	before []uuid.UUID // the elements of the latest page that had any
	empty  int         // how many empty pages came since

	mark        At
	markIDs     []uuid.UUID // the elements of the page before the mark
	steps, turn int
}

// add stores a page, which leads to next.
func (h *history[At]) add(next At, ids []uuid.UUID) {
	if h.empty++; len(ids) > 0 {
		h.before, h.empty = ids, 0
	}
	if h.steps++; h.steps == h.turn {
		h.mark, h.markIDs, h.steps, h.turn = next, h.before, 0, 2*h.turn
	}
}

// same reports whether two pages have the same elements, of which at least one has an ID.
func same(ids, others []uuid.UUID) bool {
	return slices.Equal(ids, others) && slices.ContainsFunc(ids, func(id uuid.UUID) bool { return id != uuid.Nil })
}
