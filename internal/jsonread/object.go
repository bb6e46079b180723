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
	last, waiting, m := len(d.path), len(d.waiting), members{order: d.orders.of(p)}
	d.path = append(d.path, step{plan: p})
	for f := p.next(d, &m); f != nil; f = p.next(d, &m) {
		target := to.field(f.offset)
		d.path[last].number = int(f.number)
		if m.seen&f.bit != 0 { // a duplicate name: the last value counts
			d.settle(waiting)
			target.value(f.variable).SetZero()
			d.dropProblems(d.path[:last], f.name)
		}
		m.seen |= f.bit
		switch {
		case f.special:
			p.bindSpecial(d, f, target, &m.seen, &union)
		case f.how == asString:
			d.bindString(at[string](target), &f.binder)
		default:
			f.bind(d, target)
		}
	}
	if union.behind {
		p.bindDeferred(d, to, &union, last)
	}
	d.path = d.path[:last]
	return m.seen
}

// bindSpecial decodes a field with a default, a union, or the field that discriminates it.
func (p *plan) bindSpecial(d *decoder, f *field, target place, seen *uint64, union *unionState) {
	if f.union != nil {
		p.bindUnion(d, target, union)
		return
	}
	if f.unseen && d.peek() == 'n' {
		*seen &^= f.bit
	}
	f.bind(d, target)
	if int(f.number) == p.kind {
		union.kind, union.known, union.behind = d.current(at[string](target)), true, union.exists
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
