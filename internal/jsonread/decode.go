// Decodes a document, field by field, with defaults and malformed fields.

package jsonread

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Unmarshal decodes data, which must be one JSON value, into the struct or slice that p points to,
// which it zeroes before, and again if it fails. It keeps a copy of data, of which each element of
// a page has its own part. It fails with a *[SyntaxError] if data is not JSON. A field whose value
// does not fit is left zero and listed by [Ref.Problems].
//
//go:noinline // or the compiler copies it into every type that calls it
func Unmarshal(data []byte, p any) error {
	if uint64(len(data)) > MaxSize {
		return &SyntaxError{Reason: tooLarge}
	}
	v := reflect.ValueOf(p)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return errors.New("jsonread: the value must be a pointer that is not nil")
	}
	d := newDecoder(NewDocument(nil), data, growth*len(data)+spare)
	d.copies = true
	if len(data) <= mostKept {
		d.strings = awaited
	}
	if err := d.decode(v.Elem()); err != nil {
		return err
	}
	d.keep()
	d.release()
	return nil
}

// Decoded values may take this many bytes for each byte of their document, plus a constant: `{}` is
// two bytes, an order is 700. Responses of the service stay far below; a document built to exhaust
// memory is an error like one that is nested too deeply.
const (
	growth = 8
	spare  = 1 << 20
)

// decoder decodes one document, or one value of it.
type decoder struct {
	scanner
	doc      *Document
	base     int  // where doc starts in data
	root     int  // how many steps of path lead to doc
	silent   bool // doc has its problems already
	misfits  int  // values that did not fit so far
	budget   int  // bytes that may still be allocated
	compared int  // problems that dropProblems looked at
	dropped  int  // problems that dropProblems dropped
	path     []step

	copies   bool      // data is not kept: the document at its start gets a copy
	parts    []part    // of that document
	document int       // number of the document among those in data
	expected int       // start of the list that is expected to be the rest of data, plus 1, or 0
	slabs    []slab    // by the ids of memories
	lists    []lengths // by the ids of lists
	touched  []int     // indexes of the slabs in use
	orders   orders
	moved    [2]list // a list that is moved, before and after

	strings stringMode
	text    string // data, if strings are shared
	waiting []waiting
	arena   strings.Builder // where copied strings are written one after the other
	enums   [32]string      // copied enum values seen last
	dates   DateCache
}

// decoders are decoders that are not in use. They hold nothing of the documents that they decoded.
var decoders = sync.Pool{New: func() any { return new(decoder) }}

// newDecoder returns a decoder of data, whose values may take budget bytes.
func newDecoder(doc *Document, data []byte, budget int) *decoder {
	d := decoders.Get().(*decoder)
	d.data, d.doc, d.budget, d.document = data, doc, budget, 1
	return d
}

// release makes d available to other documents. It is not called after an error.
func (d *decoder) release() {
	const most = 1 << 8
	if cap(d.waiting) > most || cap(d.path) > most {
		return
	}
	for _, id := range d.touched {
		d.slabs[id] = slab{}
	}
	slabs, touched, waiting, path := d.slabs, d.touched, d.waiting[:cap(d.waiting)], d.path[:cap(d.path)]
	clear(waiting)
	clear(path)
	*d = decoder{slabs: slabs, touched: touched[:0], waiting: waiting[:0], path: path[:0], orders: d.orders, lists: d.lists}
	decoders.Put(d)
}

// decode decodes the decoder's value into the struct or slice v.
func (d *decoder) decode(v reflect.Value) error {
	v.SetZero()
	var err error
	if v.Kind() == reflect.Slice {
		list := listBinderOf(v.Type())
		err = d.run(func() { list.bind(d, placeOf(v)) })
	} else {
		plan := planOf(v.Type())
		err = d.run(func() { plan.bind(d, placeOf(v)) })
	}
	if err != nil {
		v.SetZero()
	}
	return err
}

// addProblem adds the problem of the value at byte at, whose path is the current one.
func (d *decoder) addProblem(at int, want string) {
	d.misfits++
	if !d.silent && d.dropped < maxProblems {
		d.doc.addProblem(Problem{Want: want, at: uint32(at - d.base)}, d.path[d.root:])
	}
}

// dropProblems drops the problems of an earlier value of a field that is next, of the object whose
// path is steps. It stops after a number of comparisons that only a document of duplicate names
// needs.
func (d *decoder) dropProblems(steps []step, name string) {
	problems := d.doc.in.problems()
	if d.silent || len(problems) == 0 || d.compared > growth*len(d.data)+spare {
		return
	}
	d.compared += len(problems)
	kept := slices.DeleteFunc(problems, func(p Problem) bool { return p.isUnder(steps[d.root:], name) })
	d.dropped += len(problems) - len(kept)
	d.doc.in.setProblems(kept)
}

// isUnder reports whether the problem is in the field of an object whose path is steps.
func (p Problem) isUnder(steps []step, name string) bool {
	if len(p.Path) <= len(steps) || p.Path[len(steps)] != name {
		return false
	}
	for i, s := range steps {
		if s.String() != p.Path[i] {
			return false
		}
	}
	return true
}

// addProblem adds p, with steps before its path.
func (d *Document) addProblem(p Problem, steps []step) {
	if problems := d.in.problems(); len(problems) < maxProblems {
		p.Path = append(pathOf(steps), p.Path...)
		d.in.setProblems(append(problems, p))
	}
}

func pathOf(steps []step) []string {
	path := make([]string, len(steps))
	for i, s := range steps {
		path[i] = s.String()
	}
	return path
}

// misfit steps over a value of the wrong kind. Null always fits: it reads as absent.
func (d *decoder) misfit(want string) {
	if d.skipNull() {
		return
	}
	start := d.i
	d.skip()
	d.addProblem(start, want)
}

// charge takes n bytes of the budget.
func (d *decoder) charge(n uintptr) {
	if d.budget -= int(n); d.budget < 0 {
		d.fail(tooLarge)
	}
}
