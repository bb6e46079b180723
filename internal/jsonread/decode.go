package jsonread

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Unmarshal decodes data, which must be one JSON value, into the struct or slice that p points to,
// which it zeroes before. The elements of a slice are documents of their own. It fails with a
// *[SyntaxError] if data is not JSON. A field whose value does not fit is left zero and listed by
// [Ref.Problems].
//
//go:noinline // or the compiler copies it into every type that calls it
func Unmarshal(data []byte, p any) error { return UnmarshalOwned(slices.Clone(data), p) }

// UnmarshalOwned is [Unmarshal] for data that nobody will change: it is kept without a copy.
func UnmarshalOwned(data []byte, p any) error {
	if uint64(len(data)) > MaxSize {
		return &SyntaxError{Reason: tooLarge}
	}
	v := reflect.ValueOf(p)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return errors.New("jsonread: the value must be a pointer that is not nil")
	}
	d := decoder{scanner: scanner{data: data}, doc: NewDocument(data), budget: growth*len(data) + spare}
	return d.decode(v.Elem())
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
	above    int  // how many steps lead from doc to the start of path: not 0 when a value in it is decoded a second time
	silent   bool // doc has its problems already
	misfits  int  // values that did not fit so far
	budget   int  // bytes that may still be allocated
	compared int  // problems that dropProblems looked at
	dropped  int  // problems that dropProblems dropped
	path     []step

	arena strings.Builder // where strings are written one after the other
	enums [32]string      // enum values seen last
}

// decode decodes the decoder's value into the struct or slice v.
func (d *decoder) decode(v reflect.Value) error {
	v.SetZero()
	var bind binder
	if v.Kind() == reflect.Slice {
		bind = bindOwnSlice(v.Type(), "")
	} else {
		bind = bindStruct(v.Type())
	}
	return d.run(func() { bind(d, v) })
}

// step is a field name (number is -1) or an element's index.
type step struct {
	name   string
	number int
}

// addProblem adds the problem of the value at byte at, whose path is the current one.
func (d *decoder) addProblem(at int, want string) {
	d.misfits++
	if !d.silent && d.dropped < maxProblems {
		d.doc.addProblem(Problem{Want: want, at: uint32(at - d.base)}, d.path[d.root:])
	}
}

// dropProblems drops the problems of an earlier value of the field that is next. It stops after a
// number of comparisons that only a document of duplicate names needs.
func (d *decoder) dropProblems(name string) {
	problems := d.doc.in.problems
	if d.silent || len(problems) == 0 || d.compared > growth*len(d.data)+spare {
		return
	}
	d.compared += len(problems)
	kept := slices.DeleteFunc(problems, func(p Problem) bool { return p.isUnder(d.path[d.root:], name) })
	d.dropped += len(problems) - len(kept)
	d.doc.in.problems = kept
}

// isUnder reports whether the problem is in the field of an object whose path is steps.
func (p Problem) isUnder(steps []step, name string) bool {
	if len(p.Path) <= len(steps) || p.Path[len(steps)] != name {
		return false
	}
	for i, s := range steps {
		if s.number < 0 && s.name != p.Path[i] || s.number >= 0 && strconv.Itoa(s.number) != p.Path[i] {
			return false
		}
	}
	return true
}

// addProblem adds p, with steps before its path.
func (d *Document) addProblem(p Problem, steps []step) {
	if len(d.in.problems) < maxProblems {
		p.Path = append(pathOf(steps), p.Path...)
		d.in.problems = append(d.in.problems, p)
	}
}

func pathOf(steps []step) []string {
	path := make([]string, len(steps))
	for i, s := range steps {
		if path[i] = s.name; s.number >= 0 {
			path[i] = strconv.Itoa(s.number)
		}
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

// chunk is how many bytes of strings share an allocation: few enough that a string that is kept for
// long keeps little else.
const chunk = 1 << 10

// newString returns b as a string. Short ones are written one after the other and share an
// allocation.
func (d *decoder) newString(b []byte) string {
	if len(b) > chunk/4 {
		return string(b)
	}
	if d.arena.Cap()-d.arena.Len() < len(b) {
		d.arena.Reset()
		d.arena.Grow(min(chunk, len(b)+len(d.data)-d.i))
	}
	start := d.arena.Len()
	d.arena.Write(b)
	return d.arena.String()[start:]
}

// enum returns b as a string, without a new allocation if it is one of the enum values seen last.
func (d *decoder) enum(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	cached := &d.enums[(len(b)*7+int(b[0])+int(b[len(b)-1])*3)%len(d.enums)]
	if *cached != string(b) {
		*cached = string(b)
	}
	return *cached
}
