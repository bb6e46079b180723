// A document whose values are decoded one by one, and Ref, which keeps its bytes.

package jsonread

import (
	"bytes"
	"math"
	"reflect"
	"slices"
)

// Document is a JSON document of which values are decoded one by one, by a caller that found them
// with a [FastScanner]. All values decoded from it share its bytes, which nobody may change, except
// the elements of lists marked `jsonread:"own"`: those get documents of their own, so that a
// program that keeps one order does not keep the page.
type Document struct{ in *content }

// content is behind a second pointer, because fmt follows the first one under verbs that do not fit
// a pointer, such as %s.
type content struct {
	data string
	rare *rare // nil if there is nothing of it
}

// rare is what few documents have: most take less memory without it.
type rare struct {
	problems []Problem
	parts    []part // what data lacks
	wrapped  Span   // the value whose wrapper the document is, empty if it is none
}

//go:noinline // as grow of orders
func (c *content) problems() []Problem {
	if c.rare == nil {
		return nil
	}
	return c.rare.problems
}

// setProblems sets the problems, of which there may be none.
//
//go:noinline // as grow of orders
func (c *content) setProblems(list []Problem) {
	if c.rare == nil {
		c.rare = &rare{}
	}
	c.rare.problems = list
}

// setWrapped sets where the value is whose wrapper the document is.
func (c *content) setWrapped(value Span) {
	if c.rare == nil {
		c.rare = &rare{}
	}
	c.rare.wrapped = value
}

// Problem is a field whose value does not fit its Go type.
type Problem struct {
	Path []string // field names and element indexes from the value that is asked
	Want string   // what was expected there

	at uint32 // where in its document
}

// maxProblems bounds the memory that a hostile document can take. The bytes themselves are kept in
// any case.
const maxProblems = 1000

// part is an element's own document, and where it is in the outer one.
type part struct {
	at  int
	doc *Document
}

// hasParts reports whether data lacks bytes that are in documents of elements.
func (c *content) hasParts() bool { return c.rare != nil && c.rare.parts != nil }

// whole returns the bytes of the document as they were received.
func (c *content) whole() []byte {
	if !c.hasParts() {
		return bytesOf(c.data)
	}
	return c.joined(nil)
}

// joined returns the bytes of a document that lacks parts, in the memory of whole if they fit.
//
//go:noinline // or the compiler copies it into every function that calls whole
func (c *content) joined(whole []byte) []byte {
	size, rest := len(c.data), c.data
	for _, p := range c.rare.parts {
		size += len(p.doc.in.data)
	}
	if whole = whole[:0]; cap(whole) < size {
		whole = make([]byte, 0, size)
	}
	for _, p := range c.rare.parts {
		n := p.at - len(whole)
		whole = append(append(whole, rest[:n]...), p.doc.in.data...)
		rest = rest[n:]
	}
	return append(whole, rest...)
}

// Buffer lets a caller allocate a Document inline.
type Buffer struct {
	document Document
	content  content
}

// Reset makes b the document of data, without problems.
func (b *Buffer) Reset(data []byte) *Document {
	b.content = content{data: textOf(data)}
	b.document.in = &b.content
	return &b.document
}

// NewDocument returns the document of data, which has at most [MaxSize] bytes.
func NewDocument(data []byte) *Document { return new(Buffer).Reset(data) }

// Data returns the document's bytes, not a copy.
func (d *Document) Data() []byte { return bytesOf(d.in.data) }

// Value returns the span of the document's value, without the whitespace around it.
func (d *Document) Value() Span {
	data := d.Data()
	lo, hi := skipSpace(data, 0), len(data)
	for hi > lo && skipSpace(data[:hi], hi-1) == hi {
		hi--
	}
	return Span{uint32(lo), uint32(hi)}
}

// Valid is [Valid] for the document.
func (d *Document) Valid() error {
	s := d.scanner(Span{0, uint32(len(d.in.data))})
	return s.run(s.skip)
}

// Ref returns the Ref of the value at span.
func (d *Document) Ref(span Span) Ref { return Ref{doc: d, span: span} }

// AddProblem adds a problem found under path. The byte at is within as many objects and arrays of
// the document as path has elements.
func (d *Document) AddProblem(at uint32, want string, path ...string) {
	if problems := d.in.problems(); len(problems) < maxProblems {
		d.in.setProblems(append(problems, Problem{Path: path, Want: want, at: at}))
	}
}

// scanner returns a scanner of the value at span.
func (d *Document) scanner(span Span) scanner {
	s := scanner{data: d.in.whole()[:span.Hi], i: int(span.Lo)}
	if span.Len() > 1<<16 && bytes.IndexByte(s.data[s.i:], '\\') >= 0 {
		s.unescaped = make([]byte, 0, span.Len()) // grown step by step, it would take several times as much
	}
	return s
}

// decoder returns a decoder of the value at span, which is under path. The decoded values may take
// budget bytes beyond the document.
func (d *Document) decoder(span Span, budget int, path []string) *decoder {
	dec := newDecoder(d, nil, budget)
	dec.scanner = d.scanner(span)
	if len(dec.data) <= mostKept {
		dec.strings, dec.text = shared, textOf(dec.data)
	}
	for _, name := range path {
		dec.path = append(dec.path, step{name: name, number: -1})
	}
	return dec
}

// Read decodes the value at span, which is under path, into the struct that p points to, as
// [Unmarshal] does.
func (d *Document) Read(span Span, p any, budget int, path ...string) error {
	return d.decoder(span, budget, path).decodeOnly(reflect.ValueOf(p).Elem())
}

// decodeOnly decodes the only value of the decoder.
func (d *decoder) decodeOnly(v reflect.Value) error {
	err := d.decode(v)
	if err == nil {
		d.release()
	}
	return err
}

// ReadElements decodes the elements of the array at span, which is under path, one after the other
// into the struct that p points to. After each it calls yield with the element's span and whether
// all values in it fit.
func (d *Document) ReadElements(span Span, p any, yield func(element Span, fits bool), path ...string) error {
	dec := d.decoder(span, math.MaxInt, path)
	v := reflect.ValueOf(p).Elem()
	plan, to := planOf(v.Type()), placeOf(v)
	last := len(dec.path)
	dec.path = append(dec.path, step{})
	err := dec.run(func() {
		for more := dec.open(']'); more; more = dec.more(']') {
			v.SetZero()
			start, misfits := dec.i, dec.misfits
			plan.bind(dec, to)
			yield(Span{uint32(start), uint32(dec.i)}, dec.misfits == misfits)
			dec.path[last].number++
		}
	})
	if err == nil {
		dec.release()
	}
	return err
}

// Ref is a decoded value's reference to its document. Types that keep their raw bytes embed a type
// whose underlying type is Ref. Printing a struct that embeds a Ref never prints the document.
type Ref struct {
	_    [0]func() // comparing two references compares no values; and the compiler need not generate it
	doc  *Document
	span Span
}

// IsZero reports whether the value was made by the program instead of decoded.
func (r Ref) IsZero() bool { return r.doc == nil }

// Span returns where in its document the value is.
func (r Ref) Span() Span { return r.span }

// Document returns the value's document, nil if it was made by the program.
func (r Ref) Document() *Document { return r.doc }

// Same reports whether both are the same value of the same document.
func (r Ref) Same(other Ref) bool { return r.doc == other.doc && r.span == other.span }

// Bytes returns the value's bytes, which nobody may change. It must have been decoded.
func (r Ref) Bytes() []byte { return r.span.Of(r.doc.in.whole()) }

// Raw returns a copy of the value's raw bytes, nil if it was not decoded.
//
//go:noinline // or the compiler copies it into every type that promotes it
func (r Ref) Raw() []byte {
	if r.doc == nil {
		return nil
	}
	return slices.Clone(r.Bytes())
}

// isWrapped reports whether the document is the value in its wrapper.
func (r Ref) isWrapped() bool {
	return r.doc != nil && r.doc.in.rare != nil && r.doc.in.rare.wrapped == r.span
}

// wrapper returns the bytes of the value's wrapper before and after it, nil if it has none.
func (r Ref) wrapper() (before, after []byte) {
	if !r.isWrapped() {
		return nil, nil
	}
	data := r.doc.Data()
	return data[:r.span.Lo], data[r.span.Hi:]
}

// Problems returns the problems of the value, with paths that start at the value.
func (r Ref) Problems() []Problem {
	if r.doc == nil {
		return nil
	}
	var found []Problem
	above := 0 // the elements of a path that lead to the value
	for _, p := range r.doc.in.problems() {
		if p.at < r.span.Lo || p.at >= r.span.Hi {
			continue
		}
		if found == nil {
			above = len(p.Path) - nesting(r.Bytes()[:p.at-r.span.Lo])
		}
		found = append(found, Problem{Path: slices.Clone(p.Path[above:]), Want: p.Want})
	}
	return found
}

// nesting returns how many objects and arrays are open at the end of data, with which a JSON value
// starts.
func nesting(data []byte) (open int) {
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			open++
		case '}', ']':
			open--
		case '"':
			end, _, err := skipString(data, i+1)
			if err != nil {
				return open
			}
			i = end - 1
		}
	}
	return open
}

// Original decodes the value's raw bytes into the struct that p points to: the value before the
// program changed it.
func (r Ref) Original(p any) error { return r.decodeOriginal(reflect.ValueOf(p).Elem()) }

func (r Ref) decodeOriginal(v reflect.Value) error {
	dec := r.doc.decoder(r.span, math.MaxInt, nil)
	dec.silent = true
	return dec.decodeOnly(v)
}
