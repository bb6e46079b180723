// Documents of single elements, so that an order does not keep its page.

package jsonread

import (
	"slices"
	"sort"
)

// A program that keeps an order should not keep its page. An element of a list of orders therefore
// has a document of its own, with a copy of its bytes, and shares no memory with other elements.

// ownDocument returns a binder that gives each value a document of its own. The outer document has
// the value's problems too.
func ownDocument(b *binder) *binder {
	return &binder{variable: b.variable, size: b.size, custom: func(d *decoder, to place) {
		doc, base, root, silent, mode, waiting := d.doc, d.base, d.root, d.silent, d.strings, len(d.waiting)
		inner := NewDocument(nil)
		d.doc, d.base, d.root, d.silent, d.strings = inner, d.i, len(d.path), false, awaited
		d.document++
		b.bind(d, to)
		d.document++
		start := d.base
		inner.in.data = string(d.data[start:d.i])
		d.share(waiting, inner.in.data, start)
		d.doc, d.base, d.root, d.silent, d.strings = doc, base, root, silent, mode
		if d.copies && d.root == 0 {
			d.parts = append(d.parts, part{start, inner})
		}
		if d.silent {
			return
		}
		for _, p := range inner.in.problems() {
			p.at += uint32(start - base)
			doc.addProblem(p, d.path[d.root:])
		}
	}}
}

// keep gives the decoder's document, whose bytes are not kept, a copy of those that are not in the
// documents of its elements.
func (d *decoder) keep() {
	if len(d.parts) == 0 {
		d.doc.in.data = string(d.data)
		d.share(0, d.doc.in.data, 0)
		return
	}
	d.settle(0)
	// A union that precedes its kind is decoded late, and one with two kinds twice.
	sort.Sort(byStart(d.parts))
	size, end := len(d.data), 0
	d.parts = slices.DeleteFunc(d.parts, func(p part) bool {
		again := p.at < end
		if !again {
			end = p.at + len(p.doc.in.data)
			size -= len(p.doc.in.data)
		}
		return again
	})
	kept, from := make([]byte, 0, size), 0
	for _, p := range d.parts {
		kept = append(kept, d.data[from:p.at]...)
		from = p.at + len(p.doc.in.data)
	}
	d.doc.in.data = textOf(append(kept, d.data[from:]...))
	d.doc.in.rare = &rare{problems: d.doc.in.problems(), parts: d.parts}
}

// byStart sorts parts with code that net/http links anyway. The compiler would copy slices.SortFunc
// for them.
type byStart []part

func (b byStart) Len() int           { return len(b) }
func (b byStart) Less(i, j int) bool { return b[i].at < b[j].at }
func (b byStart) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }

// unwrap returns a binder of structs that may be wrapped. A wrapper is an object without the
// struct's first field and with an object in its field wrapper. The document contains the wrapper,
// so that it is encoded again.
func unwrap(b *binder, wrapper string) *binder {
	first := &b.plan.fields[0]
	return &binder{variable: b.variable, size: b.size, custom: func(d *decoder, to place) {
		start, misfits, waiting := d.i, d.misfits, len(d.waiting)
		b.bind(d, to)
		if d.data[start] != '{' || !to.field(first.offset).value(first.variable).IsZero() {
			return
		}
		end := d.i
		inner, ok := objectIn(d.data[start:end], wrapper)
		if !ok {
			return
		}
		d.settle(waiting)
		if !to.field(first.offset).value(first.variable).IsZero() {
			return // the first field was a string that waited
		}
		to.value(b.variable).SetZero()
		d.doc.in.rare, d.misfits = nil, misfits
		d.i = start + int(inner.Lo)
		d.path = append(d.path, step{name: wrapper, number: -1})
		b.bind(d, to)
		d.path = d.path[:len(d.path)-1]
		d.i = end
		d.doc.in.setWrapped(at[Ref](to.field(b.plan.refOffset)).span)
	}}
}

// objectIn returns where the object in the last field of this name of the object raw is.
func objectIn(raw []byte, name string) (inner Span, ok bool) {
	s := scanner{data: raw}
	for more := s.open('}'); more; more = s.more('}') {
		found := string(s.name()) == name
		start := s.i
		s.skip()
		if found {
			inner, ok = Span{uint32(start), uint32(s.i)}, raw[start] == '{'
		}
	}
	return inner, ok
}
