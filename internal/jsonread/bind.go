package jsonread

import (
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"
)

// binder decodes the next value into a Go value of the type that it was made for.
type binder func(*decoder, reflect.Value)

var (
	timeType        = reflect.TypeFor[time.Time]()
	uuidType        = reflect.TypeFor[uuid.UUID]()
	numberType      = reflect.TypeFor[json.Number]()
	rawType         = reflect.TypeFor[json.RawMessage]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
)

// Binders of single types come before those of kinds.
var (
	typeBinders = map[reflect.Type]binder{timeType: bindTime, uuidType: bindUUID, numberType: bindNumber, rawType: bindRaw}
	kindBinders = map[reflect.Kind]binder{reflect.String: bindString, reflect.Bool: bindBool, reflect.Int64: bindInt64, reflect.Float64: bindFloat64}
)

// binderOf returns the binder of t. It does not support types that contain themselves.
func binderOf(t reflect.Type) binder {
	if bind, ok := typeBinders[t]; ok {
		return bind
	}
	if isObject(t) {
		return bindStruct(t)
	}
	if reflect.PointerTo(t).Implements(unmarshalerType) {
		return bindUnmarshaler(wantOf(t))
	}
	switch t.Kind() {
	case reflect.Pointer:
		return bindPointer(t)
	case reflect.Slice:
		return bindSlice(t)
	case reflect.Map:
		return bindMap(t)
	case reflect.String:
		if t.PkgPath() != "" {
			return bindEnum
		}
	}
	if bind, ok := kindBinders[t.Kind()]; ok {
		return bind
	}
	panic("jsonread: no binder for " + t.String())
}

func bindNumber(d *decoder, v reflect.Value) {
	if !startsNumber(d.peek()) {
		d.misfit("number")
		return
	}
	_, raw := d.number()
	v.SetString(d.newString(raw))
}

func bindRaw(d *decoder, v reflect.Value) {
	if d.skipNull() {
		return
	}
	start := d.i
	d.skip()
	v.SetBytes(slices.Clone(d.data[start:d.i]))
}

func bindUnmarshaler(want string) binder {
	return func(d *decoder, v reflect.Value) {
		start := d.i
		d.skip()
		if v.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(d.data[start:d.i]) != nil {
			v.SetZero()
			d.addProblem(start, want)
		}
	}
}

func bindString(d *decoder, v reflect.Value) {
	if d.peek() != '"' {
		d.misfit("string")
		return
	}
	v.SetString(d.newString(d.string()))
}

// bindEnum binds a named string type, of which few values are frequent.
func bindEnum(d *decoder, v reflect.Value) {
	if d.peek() != '"' {
		d.misfit("string")
		return
	}
	v.SetString(d.enum(d.string()))
}

func bindBool(d *decoder, v reflect.Value) {
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

func bindInt64(d *decoder, v reflect.Value) {
	if !startsNumber(d.peek()) {
		d.misfit("integer")
		return
	}
	start := d.i
	n, raw := d.number()
	if i, ok := n.int64(raw); ok {
		v.SetInt(i)
	} else {
		d.addProblem(start, "integer")
	}
}

func bindFloat64(d *decoder, v reflect.Value) {
	if !startsNumber(d.peek()) {
		d.misfit("number")
		return
	}
	start := d.i
	n, raw := d.number()
	if f, ok := n.float64(raw); ok {
		v.SetFloat(f)
	} else {
		d.addProblem(start, "number")
	}
}

func bindTime(d *decoder, v reflect.Value) {
	if d.peek() != '"' {
		d.misfit("date-time")
		return
	}
	start := d.i
	t, ok := ParseTime(d.string())
	if !ok {
		d.addProblem(start, "date-time")
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
	b := d.string()
	if len(b) != 36 || !parseUUID((*[36]byte)(b), v.Addr().Interface().(*uuid.UUID)) {
		d.addProblem(start, "uuid")
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
	return f.Anonymous && refs[f.Type] != nil
}

func bindPointer(t reflect.Type) binder {
	elem := t.Elem()
	bind := binderOf(elem)
	object := isObject(elem)
	return func(d *decoder, v reflect.Value) {
		switch {
		case d.skipNull():
			v.SetZero()
			return
		case object && d.peek() != '{':
			d.misfit("object")
			return
		}
		d.charge(elem.Size())
		misfits := d.misfits
		p := reflect.New(elem)
		bind(d, p.Elem())
		if object || d.misfits == misfits {
			v.Set(p)
		}
	}
}

// skipValue returns a binder that skips values that start with a byte.
func skipValue(first byte, bind binder) binder {
	return func(d *decoder, v reflect.Value) {
		if d.peek() == first {
			d.skip()
			return
		}
		bind(d, v)
	}
}

func bindSlice(t reflect.Type) binder {
	return bindElements(t, binderOf(t.Elem()), t.Elem().Size())
}

// bindOwnSlice returns the binder of a slice whose elements have documents of their own, and may be
// wrapped in an object whose field wrapper they are, unless wrapper is "".
func bindOwnSlice(t reflect.Type, wrapper string) binder {
	elem := t.Elem()
	bind := binderOf(elem)
	if wrapper != "" {
		bind = unwrap(bind, planOf(elem), wrapper)
	}
	size := elem.Size() + reflect.TypeFor[Document]().Size() + reflect.TypeFor[content]().Size()
	return bindElements(t, ownDocument(bind), size)
}

// bindElements returns the binder of a slice type, whose elements bind binds. Each takes size
// bytes.
func bindElements(t reflect.Type, bind binder, size uintptr) binder {
	return func(d *decoder, v reflect.Value) {
		if d.peek() != '[' {
			d.misfit("array")
			return
		}
		last := len(d.path)
		d.path = append(d.path, step{})
		n := 0
		for more := d.open(']'); more; more = d.more(']') {
			if n == v.Cap() {
				grow := max(2, n)
				d.charge(size * uintptr(grow))
				v.Grow(grow)
			}
			v.SetLen(n + 1)
			d.path[last].number = n
			bind(d, v.Index(n))
			n++
		}
		if n == 0 {
			v.Set(reflect.MakeSlice(t, 0, 0))
		}
		d.path = d.path[:last]
	}
}

// ownDocument returns a binder that gives each value a document of its own. The outer document has
// the value's problems too.
func ownDocument(bind binder) binder {
	return func(d *decoder, v reflect.Value) {
		doc, base, root, above, silent := d.doc, d.base, d.root, d.above, d.silent
		inner := NewDocument(nil)
		d.doc, d.base, d.root, d.above, d.silent = inner, d.i, len(d.path), 0, false
		bind(d, v)
		inner.in.data = slices.Clone(d.data[d.base:d.i])
		start := uint32(d.base - base)
		d.doc, d.base, d.root, d.above, d.silent = doc, base, root, above, silent
		if d.silent {
			return
		}
		for _, p := range inner.in.problems {
			p.at += start
			doc.addProblem(p, d.path[d.root:])
		}
	}
}

// unwrap returns a binder of structs with the plan p that may be wrapped. A wrapper is an object
// without the struct's first field and with an object in its field wrapper. The document contains
// the wrapper, so that it is encoded again.
func unwrap(bind binder, p *plan, wrapper string) binder {
	return func(d *decoder, v reflect.Value) {
		start, misfits := d.i, d.misfits
		bind(d, v)
		if d.data[start] != '{' || !v.Field(p.fields[0].index).IsZero() {
			return
		}
		end := d.i
		inner, ok := objectIn(d.data[start:end], wrapper)
		if !ok {
			return
		}
		v.SetZero()
		d.doc.in.problems, d.misfits = nil, misfits
		d.i = start + int(inner.Lo)
		d.path = append(d.path, step{wrapper, -1})
		bind(d, v)
		d.path = d.path[:len(d.path)-1]
		d.i = end
		p.refOf(v).wrapped = true
	}
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
			name := string(d.name())
			key := reflect.ValueOf(name).Convert(t.Key())
			if len(d.doc.in.problems) > 0 && v.MapIndex(key).IsValid() {
				d.dropProblems(name)
			}
			d.path = append(d.path, step{name, -1})
			d.charge(elem.Size() + 64)
			e := reflect.New(elem).Elem()
			bind(d, e)
			v.SetMapIndex(key, e)
			d.path = d.path[:len(d.path)-1]
		}
	}
}

func bindStruct(t reflect.Type) binder {
	p := planOf(t)
	return func(d *decoder, v reflect.Value) {
		start := d.i
		if d.peek() == '{' {
			p.bindFields(d, v)
		} else if p.isAny() {
			d.skip()
		} else if len(p.scalars) > 0 && d.peek() != '[' {
			p.bindScalar(d, v)
		} else {
			d.misfit("object")
		}
		if p.ref >= 0 {
			span := Span{uint32(start - d.base), uint32(d.i - d.base)}
			*p.refOf(v) = d.doc.Ref(span, len(d.path)-d.root+d.above)
		}
	}
}

// bindScalar decodes a value that is not an object into each of the fields that take one.
func (p *plan) bindScalar(d *decoder, v reflect.Value) {
	start, misfits := d.i, d.misfits
	for _, n := range p.scalars {
		if d.misfits > misfits {
			return
		}
		d.i = start
		p.fields[n].bind(d, v.Field(p.fields[n].index))
	}
}

// bindFields decodes the object that is next into v.
func (p *plan) bindFields(d *decoder, v reflect.Value) {
	var seen uint64
	var kind string
	kindKnown := false
	union, deferred := -1, -1 // where the union's value starts, and again if it precedes its kind
	next := 0
	for more := d.open('}'); more; more = d.more('}') {
		n, known := p.field(d, next)
		if !known {
			d.skip()
			continue
		}
		next = n + 1
		f, bit := &p.fields[n], uint64(1)<<n
		fv := v.Field(f.index)
		if seen&bit != 0 {
			fv.SetZero() // a duplicate name: the last value counts
			d.dropProblems(f.name)
		}
		seen |= bit
		if f.union != nil {
			union, deferred = d.i, -1
			if !kindKnown {
				deferred = d.i
				d.skip()
				continue
			}
			f.bindUnion(d, fv, kind)
			continue
		}
		if f.hasDefault && f.def.Kind() != reflect.Pointer && d.peek() == 'n' {
			seen &^= bit // null, where null has no meaning of its own, gives the default too
		}
		d.path = append(d.path, step{f.name, -1})
		f.bind(d, fv)
		d.path = d.path[:len(d.path)-1]
		if n == p.kind {
			kind, kindKnown, deferred = fv.String(), true, union
		}
	}
	if deferred >= 0 {
		end := d.i
		d.i = deferred
		f := &p.fields[p.data]
		v.Field(f.index).SetZero()
		d.dropProblems(f.name)
		f.bindUnion(d, v.Field(f.index), v.Field(p.fields[p.kind].index).String())
		d.i = end
	}
	p.setDefaults(v, seen)
}

// field reads a field's name and returns its index in the plan. It tries the likely one first.
func (p *plan) field(d *decoder, likely int) (n int, known bool) {
	if likely < len(p.fields) && d.skipName(p.fields[likely].quoted) {
		return likely, true
	}
	n, known = p.byName[string(d.name())]
	return n, known
}

func (f *field) bindUnion(d *decoder, v reflect.Value, kind string) {
	d.path = append(d.path, step{f.name, -1})
	f.union.bind(d, v, kind)
	d.path = d.path[:len(d.path)-1]
}

// setDefaults sets the fields that have a default and are not among the seen ones.
func (p *plan) setDefaults(v reflect.Value, seen uint64) {
	for _, n := range p.defaults {
		if f := &p.fields[n]; seen&(1<<n) == 0 {
			f.setDefault(v.Field(f.index))
		}
	}
}
