// Encoding, including changes to the received JSON.

package jsonread

import (
	"encoding"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Marshal encodes the struct that p points to (or is). Decoded fields that the caller did not
// change are written as their raw bytes, unknown and malformed ones included, with the caller's
// changes on top. A value that is unchanged as a whole gives its raw bytes.
//
//go:noinline // or the methods of values are not copied into those of pointers, which copy twice then
func Marshal(p any) ([]byte, error) { return marshal(p, true) }

// MarshalPlain encodes the fields of the Go types only: what a request may have.
func MarshalPlain(p any) ([]byte, error) { return marshal(p, false) }

func marshal(p any, lossless bool) ([]byte, error) {
	v := reflect.ValueOf(p)
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return []byte("null"), nil
		}
		v = v.Elem()
	}
	at := placeIn(p)
	if v.CanAddr() {
		at = placeOf(v)
	}
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	e.lossless = lossless
	out, err := e.object(e.out[:0], encodingPlanOf(v.Type()), at)
	if result := e.result; result != nil || err != nil {
		e.result = nil
		return result, err
	}
	if cap(out) > maxReused {
		e.out = nil
		return out, nil
	}
	e.out = out
	return slices.Clone(out), nil
}

// encoders are reused for their buffers, up to maxReused bytes each.
var encoders = sync.Pool{New: func() any { return new(encoder) }}

const maxReused = 1 << 16

// encoder appends JSON to a slice, which its methods take and return: one in a field would be read
// and written at each step.
type encoder struct {
	out      []byte // memory for it
	result   []byte // the raw bytes of an unchanged value, if that is all
	whole    []byte // memory for a document that lacks parts, up to 16*maxReused bytes
	lossless bool   // raw bytes are written too
	orders   orders
	dates    DateCache
}

// ValueError says which field of a value cannot be encoded, and why, without quoting it.
type ValueError struct {
	Path   []string
	Reason string
}

func (e *ValueError) Error() string { return strings.Join(e.Path, ".") + ": " + e.Reason }

// within puts the field's name before the path of err.
func within(name string, err error) error {
	var e *ValueError
	if errors.As(err, &e) {
		e.Path = slices.Insert(e.Path, 0, name)
	}
	return err
}

//go:noinline // or the compiler copies append into every function
func appendNull(out []byte) []byte { return append(out, "null"...) }

// appendComma separates a field or element from those before it, of the object or array whose
// content starts at first.
//
//go:noinline // as appendNull
func appendComma(out []byte, first int) []byte {
	if len(out) > first {
		return append(out, ',')
	}
	return out
}

// reflected encodes a value that may not have an address.
func (e *encoder) reflected(out []byte, v reflect.Value) ([]byte, error) {
	copied := reflect.New(v.Type()).Elem()
	copied.Set(v)
	return e.value(out, shapeOf(v.Type()), placeOf(copied), false)
}

// value encodes the value at a place.
func (e *encoder) value(out []byte, s *shape, v place, nullable bool) ([]byte, error) {
	switch s.class {
	case stringClass:
		return appendText(out, *at[string](v))
	case pointerClass:
		if v.isNil() {
			return appendNull(out), nil
		}
		return e.value(out, s.elem, v.target(), nullable)
	case interfaceClass:
		if v.isNil() {
			return appendNull(out), nil
		}
		return e.reflected(out, v.value(s.variable).Elem())
	case objectClass:
		return e.object(out, s.plan, v)
	case rawClass:
		return appendRaw(out, *at[[]byte](v))
	case sliceClass:
		return e.slice(out, s, v, nullable, false)
	case mapClass:
		if v.isNil() {
			return appendNull(out), nil
		}
		return e.mapFields(out, v.value(s.variable), nil)
	default:
		return appendScalar(out, s, v)
	}
}

// appendScalar encodes a value without parts of its own, as encoding/json does.
//
//go:noinline // as appendNull
func appendScalar(out []byte, s *shape, v place) ([]byte, error) {
	switch s.class {
	case boolClass:
		return strconv.AppendBool(out, *at[bool](v)), nil
	case intClass:
		return strconv.AppendInt(out, s.int(v), 10), nil
	case floatClass:
		if written, ok := AppendFloat(out, *at[float64](v)); ok {
			return written, nil
		}
	case uuidClass:
		return appendUUID(out, at[uuid.UUID](v)), nil
	case timeClass:
		if written, err := at[time.Time](v).AppendText(append(out, '"')); err == nil {
			return append(written, '"'), nil
		}
	default:
	}
	return appendMarshaled(out, s, v)
}

// appendMarshaled encodes a value by its own methods, or in the unusual way of encoding/json.
func appendMarshaled(out []byte, s *shape, v place) ([]byte, error) {
	value := v.value(s.variable)
	if value.Kind() == reflect.String && !utf8.ValidString(value.String()) {
		return nil, &ValueError{Reason: notUTF8}
	}
	if m, ok := v.pointer(s.variable).(json.Marshaler); ok && value.Kind() == reflect.Struct {
		b, err := m.MarshalJSON()
		if last := len(b) - 1; err == nil && last > 0 && b[0] == '"' && b[last] == '"' && isPlain(textOf(b[1:last])) {
			return append(out, b...), nil
		}
	}
	b, err := json.Marshal(value.Interface())
	if err != nil {
		return nil, &ValueError{Reason: "cannot be written as JSON"}
	}
	return append(out, b...), nil
}

const notUTF8 = "must be valid UTF-8"

// AppendString appends s as encoding/json encodes it. It reports false if s is not valid UTF-8.
func AppendString(out []byte, s string) ([]byte, bool) {
	if isPlain(s) {
		return append(append(append(out, '"'), s...), '"'), true
	}
	quoted, _ := json.Marshal(s)
	return append(out, quoted...), utf8.ValidString(s)
}

// appendText encodes a string. The error says that it is not valid UTF-8.
func appendText(out []byte, s string) ([]byte, error) {
	out, ok := AppendString(out, s)
	if !ok {
		return nil, &ValueError{Reason: notUTF8}
	}
	return out, nil
}

// isPlain reports whether s has only ASCII that encoding/json does not escape.
func isPlain(s string) bool {
	found, last := uint64(0), uint64(' '*lowBits)
	if n := len(s) - 8; n >= 0 {
		last = binary.LittleEndian.Uint64(bytesOf(s[n:]))
	} else {
		for i := range len(s) { // a copy could only be read again after a delay
			last = last<<8 | uint64(s[i])
		}
	}
	for ; len(s) > 8; s = s[8:] {
		found |= escaped(binary.LittleEndian.Uint64(bytesOf(s)))
	}
	return found|escaped(last) == 0
}

// escaped returns high bits if one of eight bytes is not plain ASCII.
func escaped(bytes uint64) uint64 {
	angle, ampersand := bytes&^(2*lowBits)^'<'*lowBits, bytes^'&'*lowBits // < and > differ in one bit
	return special(bytes) | ((angle-lowBits)|(ampersand-lowBits)|(bytes+lowBits))&highBits
}

// Quoted returns name n with its quotes and colon.
func (f FieldNames) Quoted(n int) string { return f[n].quoted }

// AppendFloat appends f as encoding/json encodes it. It reports false for a number that has an
// exponent or is none.
func AppendFloat(out []byte, f float64) ([]byte, bool) {
	if abs := math.Abs(f); abs != 0 && !(abs >= 1e-6 && abs < 1e21) {
		return out, false
	}
	return strconv.AppendFloat(out, f, 'f', -1, 64), true
}

//go:noinline // as appendNull
func appendUUID(out []byte, id *uuid.UUID) []byte {
	out = append(out, `"00000000-0000-0000-0000-000000000000"`...)
	formatUUID((*[36]byte)(out[len(out)-37:]), id)
	return out
}

// class says how a type is encoded.
type class uint8

const (
	otherClass class = iota // by encoding/json
	pointerClass
	interfaceClass
	objectClass
	rawClass
	sliceClass
	mapClass
	stringClass
	boolClass
	intClass
	floatClass
	numberClass
	uuidClass
	timeClass
)

// shape is a type as it is encoded.
type shape struct {
	class
	variable
	size    uintptr
	elem    *shape                    // what a pointer points to, or of a list
	plan    *encodingPlan             // of a struct
	compare func([]byte, place) match // compares with what is parsed from a string, if the type has a parser
}

var shapes sync.Map // reflect.Type → *shape

func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	s := &shape{class: findClass(t), variable: variableOf(t), size: t.Size(), compare: comparers[t]}
	switch s.class {
	case pointerClass, sliceClass:
		s.elem = shapeOf(t.Elem())
	case objectClass:
		s.plan = encodingPlanOf(t)
	default:
	}
	shapes.Store(t, s)
	return s
}

// keepsRaw reports whether the type is a struct that keeps its raw bytes.
func (s *shape) keepsRaw() bool { return s.class == objectClass && s.plan.ref >= 0 }

// int returns the integer at v.
func (s *shape) int(v place) int64 {
	if s.size == 8 {
		return *at[int64](v)
	}
	return v.value(s.variable).Int()
}

// isZero reports whether the value at v is zero.
func (s *shape) isZero(v place) bool {
	switch s.class {
	case pointerClass, interfaceClass, sliceClass, rawClass, mapClass:
		return v.isNil()
	case stringClass:
		return *at[string](v) == ""
	case uuidClass:
		return *at[uuid.UUID](v) == uuid.Nil
	case boolClass:
		return !*at[bool](v)
	default:
		return v.value(s.variable).IsZero()
	}
}

var (
	marshalerType     = reflect.TypeFor[json.Marshaler]()
	textMarshalerType = reflect.TypeFor[encoding.TextMarshaler]()

	kindClasses = map[reflect.Kind]class{
		reflect.String: stringClass, reflect.Bool: boolClass, reflect.Float64: floatClass,
		reflect.Int: intClass, reflect.Int8: intClass, reflect.Int16: intClass, reflect.Int32: intClass, reflect.Int64: intClass,
	}
	typeClasses = map[reflect.Type]class{rawType: rawClass, uuidType: uuidClass, timeType: timeClass, numberType: numberClass}
)

func findClass(t reflect.Type) class {
	if c, ok := typeClasses[t]; ok {
		return c
	}
	isMarshaler := t.Implements(marshalerType) || t.Implements(textMarshalerType)
	switch t.Kind() {
	case reflect.Pointer:
		return pointerClass
	case reflect.Interface:
		return interfaceClass
	case reflect.Struct:
		if isObject(t) && !isMarshaler || planOf(t).ref >= 0 {
			return objectClass
		}
	case reflect.Slice:
		return sliceClass
	case reflect.Map:
		return mapClass
	}
	if isMarshaler {
		return otherClass
	}
	return kindClasses[t.Kind()]
}

// encodingPlan has what the encoder needs of the fields of a plan, in the same order.
type encodingPlan struct {
	*plan
	variable
	fields []encodedField
	all    uint64 // a bit for each of them
}

type encodedField struct {
	key       // what stepping over it takes comes first
	offset    uintptr
	isPointer bool
	class     class  // of the value, or of what it points to
	to        *shape // the same

	*field
	shape     *shape
	quoted    string // the name with its colon, after a comma
	hasIsZero bool   // the type says itself what zero is
}

var encodingPlans sync.Map // reflect.Type → *encodingPlan

func encodingPlanOf(t reflect.Type) *encodingPlan {
	if p, ok := encodingPlans.Load(t); ok {
		return p.(*encodingPlan)
	}
	p := &encodingPlan{plan: planOf(t), variable: variableOf(t)}
	for i := range p.plan.fields {
		f := &p.plan.fields[i]
		ft := t.Field(f.index).Type
		hasIsZero := ft.Kind() != reflect.Pointer && ft.Implements(reflect.TypeFor[interface{ IsZero() bool }]())
		s := shapeOf(ft)
		to, isPointer := s, s.class == pointerClass
		if isPointer {
			to = s.elem
		}
		p.fields = append(p.fields, encodedField{f.key, f.offset, isPointer, to.class, to, f, s, `,"` + f.name + `":`, hasIsZero})
		p.all |= f.bit
	}
	encodingPlans.Store(t, p)
	return p
}

// refOf returns the Ref that the struct at v embeds, if its type has one.
func (p *encodingPlan) refOf(v place) *Ref { return at[Ref](v.field(p.refOffset)) }

//go:noinline // as appendNull
func appendRaw(out, data []byte) ([]byte, error) {
	if data == nil {
		return appendNull(out), nil
	}
	if Valid(data) != nil {
		return nil, &ValueError{Reason: "must be valid JSON"}
	}
	return append(out, data...), nil
}

// field encodes the value of a field at v.
func (e *encoder) field(out []byte, f *encodedField, v place) ([]byte, error) {
	if f.wrapped {
		return e.slice(out, f.shape, v, f.nullable, true)
	}
	return e.value(out, f.shape, v, f.nullable)
}

// element encodes an element of a list, in the wrapper that it was received in if wrapped is true.
func (e *encoder) element(out []byte, s *shape, v place, wrapped bool) ([]byte, error) {
	if !wrapped || !e.lossless {
		return e.value(out, s, v, false)
	}
	before, after := s.plan.refOf(v).wrapper()
	out, err := e.value(append(out, before...), s, v, false)
	return append(out, after...), err
}

func (e *encoder) slice(out []byte, s *shape, v place, nullable, wrapped bool) ([]byte, error) {
	if nullable && v.isNil() {
		return appendNull(out), nil
	}
	out, err := e.elements(append(out, '['), s.elem, at[list](v), 0, wrapped)
	return append(out, ']'), err
}

// elements encodes the elements of a list from one on.
func (e *encoder) elements(out []byte, elem *shape, l *list, from int, wrapped bool) (_ []byte, err error) {
	for i := from; i < l.len; i++ {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = e.element(out, elem, l.element(i, elem.size), wrapped); err != nil {
			return nil, within(strconv.Itoa(i), err)
		}
	}
	return out, nil
}

// mapFields encodes a map, and takes the fields in unchanged from there.
func (e *encoder) mapFields(out []byte, v reflect.Value, unchanged map[string][]byte) (_ []byte, err error) {
	keys := v.MapKeys()
	names := make([]string, len(keys))
	for i, k := range keys {
		if names[i] = k.String(); !utf8.ValidString(names[i]) {
			return nil, &ValueError{Reason: "must have names in valid UTF-8"}
		}
	}
	slices.Sort(names)
	out = append(out, '{')
	first := len(out)
	for _, name := range names {
		out, _ = AppendString(appendComma(out, first), name)
		out = append(out, ':')
		if raw, ok := unchanged[name]; ok {
			out = append(out, raw...)
		} else if out, err = e.reflected(out, v.MapIndex(keyOf(name, v))); err != nil {
			return nil, within(name, err)
		}
	}
	return append(out, '}'), nil
}

// keyOf returns a name as a key of a map.
func keyOf(name string, of reflect.Value) reflect.Value {
	return reflect.ValueOf(name).Convert(of.Type().Key())
}

// object encodes a struct.
func (e *encoder) object(out []byte, p *encodingPlan, v place) ([]byte, error) {
	if e.lossless && p.ref >= 0 {
		if ref := p.refOf(v); ref.doc != nil {
			return e.decoded(out, p, v, ref)
		}
		if p.isAny() { // made by the program, and without fields
			return appendNull(out), nil
		}
	}
	return e.plain(out, p, v)
}

// plain encodes a struct from its fields alone.
func (e *encoder) plain(out []byte, p *encodingPlan, v place) (_ []byte, err error) {
	start := len(out)
	for i := range p.fields {
		f := &p.fields[i]
		to := v.field(f.offset)
		if f.omits(to) {
			continue
		}
		if out = append(out, f.quoted...); f.shape.class == stringClass {
			out, err = appendText(out, *at[string](to))
		} else {
			out, err = e.field(out, f, to)
		}
		if err != nil {
			return nil, within(f.name, err)
		}
	}
	if len(out) == start {
		return append(out, "{}"...), nil
	}
	out[start] = '{' // in place of the first comma
	return append(out, '}'), nil
}

// omits reports whether the field is left out at this value.
func (f *encodedField) omits(v place) bool { return f.omitZero && f.isZero(v) }

// clears reports whether a changed field is left out at this value. A nil pointer with a default is
// null, because an absent field would be decoded as the default.
func (f *encodedField) clears(v place) bool { return f.omits(v) && !f.hasDefault }

// isZero is what omitzero of encoding/json means.
func (f *encodedField) isZero(v place) bool {
	if f.hasIsZero {
		return v.pointer(f.variable).(interface{ IsZero() bool }).IsZero()
	}
	return f.shape.isZero(v)
}
