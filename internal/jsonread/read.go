package jsonread

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Problem is a member whose value did not fit its Go type.
type Problem struct {
	Path []string // member names and element numbers from the value that is asked
	Want string   // what was expected there

	at uint32 // where in its document
}

// maxProblems bounds what a hostile text can make us remember. The bytes themselves are kept in any case.
const maxProblems = 1000

// A Go value may take this many bytes for each byte of its text, plus a constant: `{}` is two bytes, an order is 700. Answers of
// the service stay far below; a text built to exhaust memory is an error like one that is nested too deeply.
const (
	growth = 8
	spare  = 1 << 20
)

// document is one text as it came. All values read from it share it, except the elements of lists marked `jsonread:"own"`:
// those get documents of their own, so that a user who keeps one order does not keep the page.
type document struct{ in *content }

// content is behind a second pointer, because fmt follows the first one under verbs that do not fit a pointer, such as %s.
type content struct {
	text     []byte
	problems []Problem
}

// Ref is what a value remembers of the text it was read from. Types that keep their bytes embed a type whose underlying type
// is Ref. Printing a struct that embeds a Ref never prints the text.
type Ref struct {
	doc    *document
	lo, hi uint32
	depth  uint32 // path elements from the document's root to the value
}

// Raw returns a copy of the bytes the value came as, nil if it did not come from outside.
func (r Ref) Raw() []byte {
	if r.doc == nil {
		return nil
	}
	return slices.Clone(r.doc.in.text[r.lo:r.hi])
}

// Problems returns the members in the value that did not fit, with paths that begin at the value.
func (r Ref) Problems() []Problem {
	if r.doc == nil {
		return nil
	}
	var found []Problem
	for _, p := range r.doc.in.problems {
		if p.at >= r.lo && p.at < r.hi {
			found = append(found, Problem{Path: slices.Clone(p.Path[r.depth:]), Want: p.Want})
		}
	}
	return found
}

// Unmarshal reads text, which must be one JSON value, into the struct that p points to. What p held before is gone. Only text
// that is not JSON is an error; a member that does not fit is left zero and is named by [Ref.Problems].
func Unmarshal(text []byte, p any) error { return unmarshal(slices.Clone(text), p) }

// UnmarshalOwned is [Unmarshal] for a text that nobody will change: it is kept without a copy.
func UnmarshalOwned(text []byte, p any) error { return unmarshal(text, p) }

func unmarshal(text []byte, p any) error {
	if uint64(len(text)) > math.MaxUint32 {
		return &SyntaxError{Reason: tooLarge}
	}
	d := decoder{scanner: scanner{text: text}, doc: NewDocument(text), budget: growth*len(text) + spare}
	v := reflect.ValueOf(p).Elem()
	v.SetZero()
	bind := binderOf(v.Type())
	return d.run(func() { bind(&d, v) })
}

type decoder struct {
	scanner
	doc    *document
	base   int  // where doc begins in text
	root   int  // how many steps of path lead to doc
	above  int  // how many steps lead from doc to where this reading began: not 0 when a part is read again
	silent bool // what did not fit is known already
	misses int  // values that did not fit so far
	budget int
	path   []step

	arena strings.Builder // where strings are written one after the other
	words [32]string      // enum values seen last

	zone *time.Location
	east int // zone's offset
}

// step is a member name (number is -1) or an element number.
type step struct {
	name   string
	number int
}

func (d *decoder) problemAt(at int, want string) {
	d.misses++
	if !d.silent && len(d.doc.in.problems) < maxProblems {
		d.doc.in.problems = append(d.doc.in.problems, Problem{Path: pathOf(d.path[d.root:]), Want: want, at: uint32(at - d.base)})
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

// misfit steps over a value of the wrong kind. Null is never wrong: it reads as absent.
func (d *decoder) misfit(want string) {
	if d.isNull() {
		return
	}
	at := d.i
	d.skip()
	d.problemAt(at, want)
}

// charge takes n bytes of what the text may grow to.
func (d *decoder) charge(n uintptr) {
	if d.budget -= int(n); d.budget < 0 {
		d.fail(tooLarge)
	}
}

// chunk is how many bytes of strings share an allocation: few enough that a string which is kept for long keeps little else.
const chunk = 1 << 10

// newString returns b as a string. Short ones are written one after the other and share an allocation.
func (d *decoder) newString(b []byte) string {
	if len(b) > chunk/4 {
		return string(b)
	}
	if d.arena.Cap()-d.arena.Len() < len(b) {
		d.arena.Reset()
		d.arena.Grow(min(chunk, len(b)+len(d.text)-d.i))
	}
	start := d.arena.Len()
	d.arena.Write(b)
	return d.arena.String()[start:]
}

// word returns b as a string, without a new allocation if it is one of the enum values seen last.
func (d *decoder) word(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	w := &d.words[(len(b)*7+int(b[0])+int(b[len(b)-1])*3)%len(d.words)]
	if *w != string(b) {
		*w = string(b)
	}
	return *w
}

func (d *decoder) fixedZone(_ string, east int) *time.Location {
	if d.zone == nil || d.east != east {
		d.zone, d.east = time.FixedZone("", east), east
	}
	return d.zone
}

type binder func(*decoder, reflect.Value)

var (
	timeType        = reflect.TypeFor[time.Time]()
	uuidType        = reflect.TypeFor[uuid.UUID]()
	numberType      = reflect.TypeFor[json.Number]()
	rawType         = reflect.TypeFor[json.RawMessage]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
)

// binderOf builds the binder of t. Types that contain themselves are not supported; no answer has one.
func binderOf(t reflect.Type) binder {
	switch t {
	case timeType:
		return bindTime
	case uuidType:
		return bindUUID
	case numberType:
		return func(d *decoder, v reflect.Value) {
			if isNumber(d.peek()) {
				v.SetString(d.newString(d.number()))
			} else {
				d.misfit("number")
			}
		}
	case rawType:
		return func(d *decoder, v reflect.Value) {
			if d.isNull() {
				return
			}
			start := d.i
			d.skip()
			v.SetBytes(slices.Clone(d.text[start:d.i]))
		}
	}
	if isStructure(t) {
		return bindStruct(t)
	}
	if reflect.PointerTo(t).Implements(unmarshalerType) {
		want := wantOf(t)
		return func(d *decoder, v reflect.Value) {
			start := d.i
			d.skip()
			if v.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(d.text[start:d.i]) != nil {
				v.SetZero()
				d.problemAt(start, want)
			}
		}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return bindPointer(t)
	case reflect.Slice:
		return bindSlice(t, false)
	case reflect.Map:
		return bindMap(t)
	case reflect.String:
		plainString := t.PkgPath() == ""
		return func(d *decoder, v reflect.Value) {
			switch {
			case d.peek() != '"':
				d.misfit("string")
			case plainString:
				v.SetString(d.newString(d.str()))
			default:
				v.SetString(d.word(d.str()))
			}
		}
	case reflect.Bool:
		return func(d *decoder, v reflect.Value) {
			switch d.peek() {
			case 't':
				d.literal("true")
				v.SetBool(true)
			case 'f':
				d.literal("false")
				v.SetBool(false)
			default:
				d.misfit("boolean")
			}
		}
	case reflect.Int64:
		return func(d *decoder, v reflect.Value) {
			if !isNumber(d.peek()) {
				d.misfit("integer")
				return
			}
			start := d.i
			if n, ok := integer(d.number()); ok {
				v.SetInt(n)
			} else {
				d.problemAt(start, "integer")
			}
		}
	case reflect.Float64:
		return func(d *decoder, v reflect.Value) {
			if !isNumber(d.peek()) {
				d.misfit("number")
				return
			}
			start := d.i
			b := d.number()
			if f, err := strconv.ParseFloat(string(b[:min(len(b), maxNumber)]), 64); err == nil && len(b) <= maxNumber {
				v.SetFloat(f)
			} else {
				d.problemAt(start, "number")
			}
		}
	}
	panic("jsonread: no binder for " + t.String())
}

// integer reads 3, and 3.0 or 3e0, which some encoders write for it.
func integer(b []byte) (int64, bool) {
	if n, rest := digits(b); len(rest) == 0 && len(b) <= 18 {
		return n, true
	}
	if len(b) > maxNumber {
		return 0, false
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// digits reads the whole number that b begins with, and returns what follows it. It overflows beyond 18 digits.
func digits(b []byte) (n int64, rest []byte) {
	negative := b[0] == '-'
	if negative {
		b = b[1:]
	}
	for len(b) > 0 && b[0]-'0' < 10 {
		n, b = n*10+int64(b[0]-'0'), b[1:]
	}
	if negative {
		n = -n
	}
	return n, b
}

// maxNumber is how many digits are looked at: far more than a float64 can tell apart.
const maxNumber = 1000

func bindTime(d *decoder, v reflect.Value) {
	if d.peek() != '"' {
		d.misfit("date-time")
		return
	}
	start := d.i
	t, ok := parseTime(d.str(), d.fixedZone)
	if !ok {
		d.problemAt(start, "date-time")
		return
	}
	*v.Addr().Interface().(*time.Time) = t
}

func bindUUID(d *decoder, v reflect.Value) {
	if d.peek() != '"' {
		d.misfit("uuid")
		return
	}
	start := d.i
	b := d.str()
	// uuid also reads braces, URNs and bare digits, which are not what the document calls a UUID.
	u, err := uuid.ParseBytes(b)
	if err != nil || len(b) != 36 {
		d.problemAt(start, "uuid")
		return
	}
	*v.Addr().Interface().(*uuid.UUID) = u
}

// isStructure reports whether t is a struct that is read member by member.
func isStructure(t reflect.Type) bool {
	if t.Kind() != reflect.Struct || t == timeType {
		return false
	}
	for i := range t.NumField() {
		if isRef(t.Field(i)) {
			return true
		}
	}
	return !reflect.PointerTo(t).Implements(unmarshalerType)
}

func isRef(f reflect.StructField) bool {
	return f.Anonymous && refs[f.Type] != nil
}

func bindPointer(t reflect.Type) binder {
	elem := t.Elem()
	bind := binderOf(elem)
	structure := isStructure(elem)
	return func(d *decoder, v reflect.Value) {
		switch {
		case d.isNull():
			v.SetZero()
			return
		case structure && d.peek() != '{':
			d.misfit("object")
			return
		}
		d.charge(elem.Size())
		known := d.misses
		p := reflect.New(elem)
		bind(d, p.Elem())
		if structure || d.misses == known {
			v.Set(p)
		}
	}
}

// skipObject leaves the value alone if an object comes.
func skipObject(bind binder) binder {
	return func(d *decoder, v reflect.Value) {
		if d.peek() == '{' {
			d.skip()
			return
		}
		bind(d, v)
	}
}

func bindSlice(t reflect.Type, own bool) binder {
	elem := t.Elem()
	bind := binderOf(elem)
	size := elem.Size()
	if own {
		bind = ownDocument(bind)
		size += reflect.TypeFor[document]().Size() + reflect.TypeFor[content]().Size()
	}
	return func(d *decoder, v reflect.Value) {
		if d.peek() != '[' {
			d.misfit("array")
			return
		}
		at := len(d.path)
		d.path = append(d.path, step{})
		n := 0
		for more := d.open(']'); more; more = d.more(']') {
			if n == v.Cap() {
				room := max(2, n)
				d.charge(size * uintptr(room))
				v.Grow(room)
			}
			v.SetLen(n + 1)
			d.path[at].number = n
			bind(d, v.Index(n))
			n++
		}
		if n == 0 {
			v.Set(reflect.MakeSlice(t, 0, 0))
		}
		d.path = d.path[:at]
	}
}

// ownDocument gives what bind reads a document of its own. What did not fit in it is named by the outer document too.
func ownDocument(bind binder) binder {
	return func(d *decoder, v reflect.Value) {
		doc, base, root, above, silent := d.doc, d.base, d.root, d.above, d.silent
		inner := NewDocument(nil)
		d.doc, d.base, d.root, d.above, d.silent = inner, d.i, len(d.path), 0, false
		bind(d, v)
		inner.in.text = slices.Clone(d.text[d.base:d.i])
		start := uint32(d.base - base)
		d.doc, d.base, d.root, d.above, d.silent = doc, base, root, above, silent
		if d.silent {
			return
		}
		for _, p := range inner.in.problems[:min(len(inner.in.problems), maxProblems-len(d.doc.in.problems))] {
			d.doc.in.problems = append(d.doc.in.problems, Problem{append(pathOf(d.path[d.root:]), p.Path...), p.Want, p.at + start})
		}
	}
}

func bindMap(t reflect.Type) binder {
	elem := t.Elem()
	bind := binderOf(elem)
	return func(d *decoder, v reflect.Value) {
		if d.peek() != '{' {
			d.misfit("object")
			return
		}
		v.Set(reflect.MakeMap(t))
		for more := d.open('}'); more; more = d.more('}') {
			name := string(d.key())
			d.path = append(d.path, step{name, -1})
			d.charge(elem.Size() + 64)
			e := reflect.New(elem).Elem()
			bind(d, e)
			v.SetMapIndex(reflect.ValueOf(name).Convert(t.Key()), e)
			d.path = d.path[:len(d.path)-1]
		}
	}
}

func bindStruct(t reflect.Type) binder {
	p := planOf(t)
	return func(d *decoder, v reflect.Value) {
		start := d.i
		if d.peek() == '{' {
			p.bindMembers(d, v)
		} else if p.any() {
			d.skip()
		} else {
			d.misfit("object")
		}
		if p.ref >= 0 {
			*p.refOf(v) = Ref{doc: d.doc, lo: uint32(start - d.base), hi: uint32(d.i - d.base), depth: uint32(len(d.path) - d.root + d.above)}
		}
	}
}

func (p *plan) bindMembers(d *decoder, v reflect.Value) {
	var seen uint64
	var kind string
	var kindKnown bool
	data := -1 // where the union's data stands if its kind is not known yet
	next := 0
	for more := d.open('}'); more; more = d.more('}') {
		n := next
		if n >= len(p.fields) || !d.comes(p.fields[n].key) {
			var known bool
			if n, known = p.byName[string(d.key())]; !known {
				d.skip()
				continue
			}
		}
		next = n + 1
		f, bit := &p.fields[n], uint64(1)<<n
		fv := v.Field(f.index)
		if seen&bit != 0 {
			fv.SetZero() // a name that comes twice: the last one counts
		}
		seen |= bit
		if f.union != nil {
			if !kindKnown {
				data = d.i
				d.skip()
				continue
			}
			data = -1
		}
		d.path = append(d.path, step{f.name, -1})
		if f.union != nil {
			f.union.bind(d, fv, kind)
		} else {
			if f.hasDefault && f.def.Kind() != reflect.Pointer && d.peek() == 'n' {
				seen &^= bit // null, where null has no meaning of its own, gives the default too
			}
			f.bind(d, fv)
		}
		d.path = d.path[:len(d.path)-1]
		if n == p.kind {
			kind, kindKnown = fv.String(), true
		}
	}
	if data >= 0 {
		end := d.i
		f := &p.fields[p.data]
		d.i = data
		d.path = append(d.path, step{f.name, -1})
		f.union.bind(d, v.Field(f.index), v.Field(p.fields[p.kind].index).String())
		d.path = d.path[:len(d.path)-1]
		d.i = end
	}
	for _, n := range p.defaults {
		if f := &p.fields[n]; seen&(1<<n) == 0 {
			f.setDefault(v.Field(f.index))
		}
	}
}
