// The binders, which decode a JSON value into a Go value of a type.

package jsonread

import (
	"encoding/json"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// binder decodes the next value into a place of the type that it was made for. The place is zero.
type binder struct {
	how    how
	plan   *plan // of a struct
	elem   *binder
	memory *memory               // of what a pointer points to, and of short lists of strings
	custom func(*decoder, place) // decodes what no other method does
	size   uintptr               // of a value
	variable
	want string // the type that a value must have

	// Of a list.
	id     int            // index in decoder.lists
	charge uintptr        // what an element takes
	last   *atomic.Uint64 // of a list of documents: its length before, and the bytes of an element
}

// how says which method decodes a value.
type how uint8

const (
	asCustom how = iota
	asString
	asEnum // a named string type, of which few values are frequent
	asBool
	asInt64
	asFloat64
	asNumber
	asTime
	asUUID
	asStruct
	asPointer
	asList
)

var (
	timeType        = reflect.TypeFor[time.Time]()
	uuidType        = reflect.TypeFor[uuid.UUID]()
	numberType      = reflect.TypeFor[json.Number]()
	rawType         = reflect.TypeFor[json.RawMessage]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
)

// Binders of single types come before those of kinds.
var (
	scalarTypes = map[reflect.Type]binder{
		timeType: {how: asTime, want: "date-time"}, uuidType: {how: asUUID, want: "uuid"}, numberType: {how: asNumber, want: "number"},
	}
	scalarKinds = map[reflect.Kind]binder{
		reflect.String: {how: asString, want: "string"}, reflect.Bool: {how: asBool, want: "boolean"},
		reflect.Int64: {how: asInt64, want: "integer"}, reflect.Float64: {how: asFloat64, want: "number"},
	}
	scalarBinders sync.Map // reflect.Type → *binder
)

// binderOf returns the binder of t. It does not support types that contain themselves.
func binderOf(t reflect.Type) *binder {
	if b, ok := scalarBinders.Load(t); ok {
		return b.(*binder)
	}
	b := &binder{variable: variableOf(t), size: t.Size()}
	scalar, isScalar := scalarTypes[t]
	parse, isText := parsers[t]
	switch {
	case isScalar:
		return b.scalar(t, scalar)
	case t == rawType:
		b.custom = bindRaw
		return b
	case isObject(t):
		b.how, b.want, b.plan = asStruct, "object", planOf(t)
		return b
	case isText:
		b.custom = parse
		return b
	case reflect.PointerTo(t).Implements(unmarshalerType):
		b.custom = bindUnmarshaler(t)
		return b
	}
	return b.ofKind(t)
}

// ofKind completes the binder of a type that is decoded like all of its kind.
func (b *binder) ofKind(t reflect.Type) *binder {
	switch t.Kind() {
	case reflect.Pointer:
		b.how, b.elem, b.memory = asPointer, binderOf(t.Elem()), memoryOf(t.Elem())
		return b
	case reflect.Slice:
		return listOf(t, binderOf(t.Elem()), t.Elem().Size())
	case reflect.Map:
		b.custom = bindMap(t)
		return b
	}
	scalar, ok := scalarKinds[t.Kind()]
	if !ok {
		panic("jsonread: no binder for " + t.String())
	}
	if scalar.how == asString && t.PkgPath() != "" {
		scalar.how = asEnum
	}
	return b.scalar(t, scalar)
}

// scalar completes the binder of a scalar type, which all its values share.
func (b *binder) scalar(t reflect.Type, as binder) *binder {
	b.how, b.want = as.how, as.want
	shared, _ := scalarBinders.LoadOrStore(t, b)
	return shared.(*binder)
}

// ignoresNull reports whether null leaves the value zero, and nothing else.
func (b *binder) ignoresNull() bool { return b.how != asCustom && b.how != asStruct }

// bind decodes the next value into to.
func (b *binder) bind(d *decoder, to place) {
	switch b.how {
	case asString, asEnum:
		d.bindString(at[string](to), b)
	case asBool:
		d.bindBool(at[bool](to))
	case asInt64:
		d.bindInt64(at[int64](to))
	case asTime:
		d.bindTime(at[time.Time](to))
	case asUUID:
		d.bindUUID(at[uuid.UUID](to))
	case asStruct:
		b.plan.bind(d, to)
	case asPointer:
		b.bindPointer(d, to)
	case asList:
		b.bindList(d, to)
	case asFloat64:
		d.bindFloat64(at[float64](to))
	case asNumber:
		d.bindNumber(at[string](to))
	default:
		b.custom(d, to)
	}
}

// isObject reports whether t is a struct that is decoded field by field.
func isObject(t reflect.Type) bool {
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
	return f.Anonymous && refs[f.Type]
}

func (b *binder) bindPointer(d *decoder, to place) {
	elem := b.elem
	switch c := d.peek(); {
	case c == 'n':
		d.literal("null")
		return
	case elem.how == asStruct && c != '{':
		d.misfit("object")
		return
	}
	misfits := d.misfits
	p := d.take(b.memory)
	if elem.how == asString || elem.how == asEnum {
		d.bindString(at[string](p), elem)
	} else {
		elem.bind(d, p)
	}
	switch {
	case elem.how == asStruct || d.misfits == misfits:
		to.point(p)
	case elem.how != asList && elem.how != asCustom: // what did not fit left it zero
		d.giveBack(b.memory)
	}
}

// skipValue returns a binder that skips values that start with a byte.
//
//go:noinline // it is rare
func skipValue(first byte, b *binder) *binder {
	return &binder{variable: b.variable, size: b.size, custom: func(d *decoder, to place) {
		if d.peek() == first {
			d.skip()
			return
		}
		b.bind(d, to)
	}}
}

// orDigits returns a binder of a string that also accepts a number, as it was written.
func orDigits(b *binder) *binder {
	return &binder{variable: b.variable, size: b.size, custom: func(d *decoder, to place) {
		if startsNumber(d.peek()) {
			d.bindNumber(at[string](to))
			return
		}
		b.bind(d, to)
	}}
}

// listOf returns the binder of a slice type, whose elements take charge bytes each.
func listOf(t reflect.Type, elem *binder, charge uintptr) *binder {
	b := &binder{how: asList, want: "array", variable: variableOf(t), size: t.Size(), elem: elem, charge: charge, id: int(lastList.Add(1))}
	if t.Elem().Kind() == reflect.String {
		b.memory = &texts
	}
	return b
}

// ownListOf returns the binder of a slice whose elements have documents of their own, and may be
// wrapped in an object whose field wrapper they are, unless wrapper is "".
func ownListOf(t reflect.Type, wrapper string) *binder {
	elem := binderOf(t.Elem())
	if wrapper != "" {
		elem = unwrap(elem, wrapper)
	}
	b := listOf(t, ownDocument(elem), elem.size+reflect.TypeFor[Document]().Size()+reflect.TypeFor[content]().Size())
	b.memory, b.last = nil, new(atomic.Uint64)
	return b
}

// lists are the binders of the slice types that are decoded on their own: reflect.Type → *binder.
var lists sync.Map

// listBinderOf returns the binder of such a type.
func listBinderOf(t reflect.Type) *binder {
	if b, ok := lists.Load(t); ok {
		return b.(*binder)
	}
	b, _ := lists.LoadOrStore(t, ownListOf(t, ""))
	return b.(*binder)
}

// lengths are those of the last two lists of a field that had elements. If they differ, the length
// of the next one cannot be foreseen: it is decoded in spare, which is zero, and copied from there.
type lengths struct {
	last, before int
	spare        list
}

// mostSpare is how many bytes a list in lengths.spare can have.
const mostSpare = 8 << 10

// lengthsOf returns what is known of the lengths of lists. It is valid until another list is
// decoded.
//
//go:noinline // or the compiler copies append into every function that calls it
func (d *decoder) lengthsOf(b *binder) *lengths {
	if b.id >= len(d.lists) {
		d.lists = append(d.lists, make([]lengths, int(lastList.Load())+1-len(d.lists))...)
	}
	return &d.lists[b.id]
}

func (b *binder) bindList(d *decoder, to place) {
	if d.peek() != '[' {
		d.misfit(b.want)
		return
	}
	last := len(d.path)
	d.path = append(d.path, step{})
	elements, elem, width := at[list](to), b.elem, b.elem.size
	known := d.lengthsOf(b)
	foreseen := b.last != nil || known.last == known.before && known.last > 0
	if !foreseen {
		*elements, known.spare = known.spare, list{}
	}
	n, charged, start, waiting := 0, 0, d.i, len(d.waiting)
	for more := d.open(']'); more; more = d.more(']') {
		if n == charged || n == elements.cap {
			charged = n + b.extend(d, elements, n, start, waiting, foreseen)
		}
		elements.len = n + 1
		d.path[last].number = n
		elem.bind(d, elements.element(n, width))
		n++
	}
	d.path = d.path[:last]
	b.trim(d, elements, n, charged, waiting, foreseen)
	switch known = d.lengthsOf(b); {
	case n == 0:
		l := to.value(b.variable)
		l.Set(reflect.MakeSlice(l.Type(), 0, 0))
	case b.last == nil:
		known.last, known.before = n, known.last
	default:
		if now := uint64(n)<<32 | uint64((d.i-start)/n); now != b.last.Load() {
			b.last.Store(now)
		}
	}
}

// extend charges for the next elements of a list of n elements, and makes room for them if it is
// full. It returns how many it has charged for: of a room that is foreseen by the lists before only
// one, or these would decide whether a document takes too much memory.
func (b *binder) extend(d *decoder, l *list, n, start, waiting int, foreseen bool) (charged int) {
	room := 0
	if charged = 1; n == l.cap {
		room = b.room(d, n, start)
		if n > 0 || !foreseen {
			charged = room
		}
	}
	if d.charge(b.charge * uintptr(charged)); room > 0 {
		b.resize(d, l, n+room, waiting, foreseen)
	}
	return charged
}

// trim moves a list of n elements out of the spare list, or out of one that has more room than it
// needs.
func (b *binder) trim(d *decoder, l *list, n, charged, waiting int, foreseen bool) {
	decoded := *l
	isSpare := !foreseen && uintptr(decoded.cap)*b.elem.size <= mostSpare
	if n > 0 && (isSpare || decoded.cap-n > n/4) {
		d.budget += int(b.charge) * max(charged-n, 0)
		b.resize(d, l, n, waiting, true)
	}
	if isSpare {
		known := d.lengthsOf(b)
		known.spare = decoded
		known.spare.place().value(b.variable).Clear()
		known.spare.len = 0
	}
}

// room returns for how many more elements a list of n elements is made longer, which started at
// start.
func (b *binder) room(d *decoder, n, start int) int {
	switch {
	case n == 0 && b.last != nil:
		if guess := b.guess(d); guess > 0 && b.charge*uintptr(guess) < uintptr(d.budget)/16 {
			return guess
		}
	case n == 0:
		if known := d.lengthsOf(b); known.last == known.before && known.last > 0 {
			return min(known.last, mostShared)
		}
	case (b.elem.how == asStruct || b.last != nil) && len(d.path) <= 2 && (d.expected == 0 || d.expected == start+1):
		// The list is most of the document. A second one is not, and is not expected to be.
		d.expected = start + 1
		rest := (len(d.data)-d.i)/((d.i-start)/n) + 1
		if b.charge*uintptr(rest) < uintptr(d.budget)/2 {
			return max(rest, n/4) // elements that become smaller and smaller do not make it quadratic
		}
	}
	return max(2, n)
}

// guess returns how many elements a list of documents has that starts here, if the rest of the
// document is like the list before: the same number if that fits, because pages have a size.
func (b *binder) guess(d *decoder) int {
	last := b.last.Load()
	n, size := int(last>>32), int(last&(1<<32-1))
	if n == 0 {
		return 0
	}
	rest := len(d.data) - d.i
	if expected := rest / size; n < expected-expected/4 || n > expected+expected/4+1 {
		return expected + 1
	}
	return n
}

// resize moves a list to an allocation for a number of elements, together with the strings in it
// that wait, from the index waiting on. A short list of strings may share one, if it stays there.
func (b *binder) resize(d *decoder, l *list, elements, waiting int, stays bool) {
	old, grown := &d.moved[0], &d.moved[1]
	*old, *grown = *l, list{}
	v := grown.place().value(b.variable)
	if b.memory != nil && stays && elements <= mostShared {
		d.takeList(grown, b.memory, elements)
	} else {
		v.Grow(elements)
	}
	if grown.len = old.len; old.len > 0 {
		reflect.Copy(v, old.place().value(b.variable))
	}
	*l = *grown
	for i := range d.waiting[waiting:] {
		d.waiting[waiting+i].move(old.element(0, 0), uintptr(old.len)*b.elem.size, l.element(0, 0))
	}
	d.moved = [2]list{}
}

func bindMap(t reflect.Type) func(*decoder, place) {
	elem := binderOf(t.Elem())
	v := variableOf(t)
	return func(d *decoder, to place) {
		if d.peek() != '{' {
			d.misfit("object")
			return
		}
		m := reflect.MakeMap(t)
		to.value(v).Set(m)
		for more := d.open('}'); more; more = d.more('}') {
			name := string(d.name())
			key := reflect.ValueOf(name).Convert(t.Key())
			if len(d.doc.in.problems()) > 0 && m.MapIndex(key).IsValid() {
				d.dropProblems(d.path, name)
			}
			d.path = append(d.path, step{name: name, number: -1})
			d.charge(elem.size + 64)
			e, waiting := reflect.New(t.Elem()).Elem(), len(d.waiting)
			elem.bind(d, placeOf(e))
			d.settle(waiting)
			m.SetMapIndex(key, e)
			d.path = d.path[:len(d.path)-1]
		}
	}
}

// bind decodes the next value into the struct at to.
func (p *plan) bind(d *decoder, to place) {
	start := d.i
	if d.peek() == '{' {
		p.bindFields(d, to)
	} else if p.isAny() {
		d.skip()
	} else if len(p.scalars) > 0 && d.peek() != '[' {
		p.bindScalar(d, to)
	} else {
		d.misfit("object")
	}
	if p.ref >= 0 {
		span := Span{uint32(start - d.base), uint32(d.i - d.base)}
		*at[Ref](to.field(p.refOffset)) = Ref{doc: d.doc, span: span}
	}
}

// bindScalar decodes a value that is not an object into each of the fields that take one.
func (p *plan) bindScalar(d *decoder, to place) {
	start, misfits := d.i, d.misfits
	for _, n := range p.scalars {
		if d.misfits > misfits {
			return
		}
		d.i = start
		p.fields[n].bind(d, to.field(p.fields[n].offset))
	}
}

// step is an element's index, a name (number is -1), or a plan's field (number is its index).
type step struct {
	plan   *plan
	number int
	name   string
}

func (s step) String() string {
	switch {
	case s.plan != nil:
		return s.plan.fields[s.number].name
	case s.number < 0:
		return s.name
	}
	return strconv.Itoa(s.number)
}
