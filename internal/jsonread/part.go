package jsonread

import (
	"bytes"
	"iter"
	"math"
	"reflect"
)

// Document is a text that is read in parts, by a caller that found the parts with a scanner of its own. All values read from
// it share the text, which nobody may change, and name in [Ref.Problems] what did not fit in them.
type Document = document

// Fits reports whether a text is short enough to be a [Document].
func Fits(text []byte) bool { return uint64(len(text)) <= math.MaxUint32 }

// Room is the memory of a Document, for a caller that has it in one piece with what it reads.
type Room struct {
	document
	content
}

// Keep makes r the document of text and forgets what did not fit in an earlier one.
func (r *Room) Keep(text []byte) *Document {
	r.content = content{text: text}
	r.in = &r.content
	return &r.document
}

// NewDocument returns the document of text.
func NewDocument(text []byte) *Document { return new(Room).Keep(text) }

// Text returns the document's bytes, not a copy.
func (d *document) Text() []byte { return d.in.text }

// Valid is [Valid] for the document's text.
func (d *document) Valid() error {
	dec := d.part(0, len(d.in.text), 0, nil)
	return dec.run(dec.skip)
}

// Ref returns what a value remembers that is at text[lo:hi], depth path elements below the document.
func (d *document) Ref(lo, hi, depth int) Ref {
	return Ref{doc: d, lo: uint32(lo), hi: uint32(hi), depth: uint32(depth)}
}

// Problem notes that the value at byte at, found under path, is not what it should be.
func (d *document) Problem(at int, want string, path ...string) {
	if len(d.in.problems) < maxProblems {
		d.in.problems = append(d.in.problems, Problem{Path: path, Want: want, at: uint32(at)})
	}
}

// part is a decoder of text[lo:hi], a value under path. What it makes may take budget bytes beyond the text.
func (d *document) part(lo, hi, budget int, path []string) decoder {
	dec := decoder{scanner: scanner{text: d.in.text[:hi], i: lo}, doc: d, budget: budget}
	if hi-lo > 1<<16 && bytes.IndexByte(d.in.text[lo:hi], '\\') >= 0 {
		dec.esc = make([]byte, 0, hi-lo) // grown step by step, it would take several times the text
	}
	for _, name := range path {
		dec.path = append(dec.path, step{name, -1})
	}
	return dec
}

// Read reads the value at text[lo:hi], which is under path, into the struct that p points to, as [UnmarshalOwned] does.
func (d *document) Read(lo, hi int, p any, budget int, path ...string) error {
	dec := d.part(lo, hi, budget, path)
	v := reflect.ValueOf(p).Elem()
	v.SetZero()
	bind := bindStruct(v.Type())
	return dec.run(func() { bind(&dec, v) })
}

// ReadElements reads the elements of the array at text[lo:hi], which is under path, one after the other into the struct that p
// points to. After each it calls each with the place of the element and whether something in it did not fit.
func (d *document) ReadElements(lo, hi int, p any, each func(lo, hi int, misfit bool), path ...string) error {
	dec := d.part(lo, hi, math.MaxInt, path)
	v := reflect.ValueOf(p).Elem()
	bind := bindStruct(v.Type())
	at := len(dec.path)
	dec.path = append(dec.path, step{})
	return dec.run(func() {
		for more := dec.open(']'); more; more = dec.more(']') {
			v.SetZero()
			start, misses := dec.i, dec.misses
			bind(&dec, v)
			each(start, dec.i, dec.misses > misses)
			dec.path[at].number++
		}
	})
}

// Span returns the place of the value in its document; ok is false if it did not come from outside.
func (r Ref) Span() (lo, hi int, ok bool) { return int(r.lo), int(r.hi), r.doc != nil }

// Again reads the value once more, into the struct that p points to: what it was before a program changed it.
func (r Ref) Again(p any) error {
	dec := r.doc.part(int(r.lo), int(r.hi), math.MaxInt, nil)
	dec.above, dec.silent = int(r.depth), true
	v := reflect.ValueOf(p).Elem()
	v.SetZero()
	bind := bindStruct(v.Type())
	return dec.run(func() { bind(&dec, v) })
}

// String returns the string that text, a JSON string, stands for.
func String(text []byte) (s string, ok bool) {
	sc := scanner{text: text}
	if len(text) > 64 {
		sc.esc = make([]byte, 0, len(text))
	}
	err := sc.run(func() {
		if sc.peek() != '"' {
			sc.fail(badChar)
		}
		s = string(sc.str())
	})
	return s, err == nil
}

// Integer reads a number without a fraction: 3, and 3.0 or 3e0, which some encoders write for it.
func Integer(text []byte) (int64, bool) { return integer(text) }

// Members goes over the members of an object, a name that comes twice included. The names and values are not copies, and the name
// is valid until the next one. Text that is no object has none.
func Members(text []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		walk(text, '{', '}', func(s *scanner) bool {
			name := s.key()
			start := s.i
			value := scanner{text: text, i: start, depth: s.depth}
			value.skip()
			s.i = value.i
			return yield(name, text[start:s.i])
		})
	}
}

// Elements goes over the elements of an array. They are not copies. Text that is no array has none.
func Elements(text []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		walk(text, '[', ']', func(s *scanner) bool {
			start := s.i
			s.skip()
			return yield(text[start:s.i])
		})
	}
}

// walk calls each at every member or element, until it returns false.
func walk(text []byte, opening, closing byte, each func(*scanner) bool) {
	s := &scanner{text: text}
	s.run(func() {
		if s.peek() != opening {
			return
		}
		for more := s.open(closing); more; more = s.more(closing) {
			if !each(s) {
				return
			}
		}
	})
}
