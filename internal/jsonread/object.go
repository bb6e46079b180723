// Decodes the fields of an object into a struct.

package jsonread

import "math/bits"

// unionState is what is known of an object with a union.
type unionState struct {
	kind   string // the value of the field that discriminates the union
	known  bool
	start  int  // where the union's value is
	exists bool // it has one
	behind bool // the kind came after it, or did not come
}

// bindFields decodes the object that is next into the struct at to.
func (p *plan) bindFields(d *decoder, to place) {
	var seen uint64
	if d.open('}') {
		seen = p.bindEach(d, to)
	}
	for missing := p.defaults &^ seen; missing != 0; missing &= missing - 1 {
		f := &p.fields[bits.TrailingZeros64(missing)]
		f.setDefault(to.field(f.offset))
	}
}

// bindEach decodes the fields of an object, of which there is one, and returns which of them are
// set.
func (p *plan) bindEach(d *decoder, to place) (seen uint64) {
	var union unionState
	last, waiting, m := len(d.path), len(d.waiting), members{order: d.orderOf(p)}
	d.path = append(d.path, step{plan: p})
	for n := p.next(d, &m); n != ended; n = p.next(d, &m) {
		if n == skipped {
			continue
		}
		f, bit := &p.fields[n], uint64(1)<<(n&63)
		target := to.field(f.offset)
		d.path[last].number = n
		if m.seen&bit != 0 { // a duplicate name: the last value counts
			d.settle(waiting)
			target.value(f.variable).SetZero()
			d.dropProblems(d.path[:last], f.name)
		}
		m.seen |= bit
		if f.unseen && d.peek() == 'n' {
			m.seen &^= bit
		}
		switch {
		case f.how == asString:
			d.bindString(at[string](target), &f.binder)
		case f.union != nil:
			p.bindUnion(d, target, &union)
		default:
			f.bind(d, target)
		}
		if n == p.kind {
			union.kind, union.known, union.behind = d.current(at[string](target)), true, union.exists
		}
	}
	if union.behind {
		p.bindDeferred(d, to, &union, last)
	}
	d.path = d.path[:last]
	return m.seen
}

// bindUnion decodes the union's value, or skips it if its kind is not known yet.
func (p *plan) bindUnion(d *decoder, to place, u *unionState) {
	u.start, u.exists, u.behind = d.i, true, !u.known
	if u.behind {
		d.skip()
		return
	}
	p.fields[p.data].union.bind(d, to, u.kind)
}

// bindDeferred decodes the union's value that precedes its kind. The object's step in the path is
// at index last.
func (p *plan) bindDeferred(d *decoder, to place, u *unionState, last int) {
	end := d.i
	d.i = u.start
	f := &p.fields[p.data]
	target := to.field(f.offset)
	target.value(f.variable).SetZero()
	d.dropProblems(d.path[:last], f.name)
	d.path[last].number = p.data
	f.union.bind(d, target, u.kind)
	d.i = end
}
