package labhealth

import (
	"iter"
	"slices"

	"github.com/google/uuid"
)

// part is one page of a list as the iterators see it.
type part[E any, At comparable] struct {
	items   []E
	next    At     // where the next page begins
	last    bool   // whether there is none
	problem string // why the page cannot be the one that was asked for
}

// cursorPart is a page of a list that goes on at next.
func cursorPart[E any](items []E, next *string) part[E, string] {
	p := part[E, string]{items: items, last: next == nil || *next == ""}
	if !p.last {
		p.next = *next
	}
	return p
}

// noList is why an answer is not taken for an empty list: some deployments answer errors with 200.
const noList = "it has no list"

// paged ranges over all pages from start on. It never asks for more after a page that repeats the one before, that is empty
// although more is due, or that leads back to an earlier one: it ends with a *[DecodeError].
func paged[E any, At comparable](op string, start At, id func(*E) uuid.UUID, fetch func(At) (part[E, At], error)) iter.Seq2[*E, error] {
	return func(yield func(*E, error) bool) {
		var before []uuid.UUID
		// A cycle of pages is found by Brent's method: the places are compared with one of them, at distances that double.
		mark, steps, turn := start, 0, 1
		for at := start; ; {
			p, err := fetch(at)
			ids := make([]uuid.UUID, len(p.items))
			for i := range p.items {
				ids[i] = id(&p.items[i])
			}
			switch {
			case err != nil:
			case p.problem != "":
			case p.items == nil:
				p.problem = noList
			case slices.Equal(ids, before) && slices.ContainsFunc(ids, func(id uuid.UUID) bool { return id != uuid.Nil }):
				p.problem = "it repeats the page before"
			case len(ids) == 0 && !p.last:
				p.problem = "it is empty although more is to come"
			case (p.next == at || p.next == mark) && !p.last:
				p.problem = "it leads back to a page before it"
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
			at, before = p.next, ids
			if steps++; steps == turn {
				mark, steps, turn = at, 0, 2*turn
			}
		}
	}
}
