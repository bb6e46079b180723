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
	var union unionState
	last, waiting, next := len(d.path), len(d.waiting), 0
	d.path = append(d.path, step{plan: p})
	for more := d.open('}'); more; more = d.moreFields() {
		n, known := p.field(d, next)
		if !known {
			d.skip()
			continue
		}
		next = n + 1
		f, bit, target := &p.fields[n], uint64(1)<<n, to.field(p.fields[n].offset)
		d.path[last].number = n
		if seen&bit != 0 { // a duplicate name: the last value counts
			d.settle(waiting)
			target.value(f.variable).SetZero()
			d.dropProblems(d.path[:last], f.name)
		}
		seen |= bit
		switch c := d.peek(); {
		case c == 'n' && f.skipsNull:
			d.null()
			seen &^= f.unseen
		case f.union != nil:
			p.bindUnion(d, target, &union)
		default:
			if c == 'n' {
				seen &^= f.unseen
			}
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
	for missing := p.defaults &^ seen; missing != 0; missing &= missing - 1 {
		f := &p.fields[bits.TrailingZeros64(missing)]
		f.setDefault(to.field(f.offset))
	}
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
