// Encoding, including changes to the received JSON.

package jsonread

import (
	"encoding"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
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
	e.out, e.lossless = e.out[:0], lossless
	if err := e.object(encodingPlanOf(v.Type()), at); err != nil {
		return nil, err
	}
	if cap(e.out) > maxReused {
		out := e.out
		e.out = nil
		return out, nil
	}
	return slices.Clone(e.out), nil
}

// encoders are reused for their buffers, up to maxReused bytes each.
var encoders = sync.Pool{New: func() any { return new(encoder) }}

const maxReused = 1 << 16

// encoder appends JSON to out.
type encoder struct {
	out      []byte
	lossless bool       // raw bytes are written too
	fields   []rawField // of the objects that are encoded
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
func (e *encoder) null() error {
	e.out = append(e.out, "null"...)
	return nil
}

// name starts a field of the object that starts at first.
func (e *encoder) name(name string, first int) {
	e.comma(first)
	e.string(name)
	e.out = append(e.out, ':')
}

// comma separates a field or element from those before it, of the object or array whose content
// starts at first.
func (e *encoder) comma(first int) {
	if len(e.out) > first {
		e.out = append(e.out, ',')
	}
}

// reflected encodes a value that may not have an address.
func (e *encoder) reflected(v reflect.Value) error {
	copied := reflect.New(v.Type()).Elem()
	copied.Set(v)
	return e.value(shapeOf(v.Type()), placeOf(copied), false)
}

// value encodes the value at a place.
func (e *encoder) value(s *shape, v place, nullable bool) error {
	switch s.class {
	case pointerClass:
		if v.isNil() {
			return e.null()
		}
		return e.value(s.elem, v.target(), nullable)
	case interfaceClass:
		if v.isNil() {
			return e.null()
		}
		return e.reflected(v.value(s.variable).Elem())
	case objectClass:
		return e.object(s.plan, v)
	case rawClass:
		return e.raw(*at[[]byte](v))
	case sliceClass:
		return e.slice(s, v, nullable, false)
	case mapClass:
		if v.isNil() {
			return e.null()
		}
		return e.mapFields(v.value(s.variable), nil)
	default:
		return e.scalar(s, v)
	}
}

// scalar encodes a value without parts of its own, as encoding/json does.
func (e *encoder) scalar(s *shape, v place) error {
	switch s.class {
	case stringClass:
		out, ok := AppendString(e.out, *at[string](v))
		if e.out = out; !ok {
			return &ValueError{Reason: notUTF8}
		}
		return nil
	case boolClass:
		e.out = strconv.AppendBool(e.out, *at[bool](v))
		return nil
	case intClass:
		e.out = strconv.AppendInt(e.out, s.int(v), 10)
		return nil
	case floatClass:
		if out, ok := AppendFloat(e.out, *at[float64](v)); ok {
			e.out = out
			return nil
		}
	case uuidClass:
		e.uuid(at[uuid.UUID](v))
		return nil
	case timeClass:
		out, err := at[time.Time](v).AppendText(append(e.out, '"'))
		if err == nil {
			e.out = append(out, '"')
			return nil
		}
	default:
	}
	value := v.value(s.variable)
	if value.Kind() == reflect.String && !utf8.ValidString(value.String()) {
		return &ValueError{Reason: notUTF8}
	}
	b, err := json.Marshal(value.Interface())
	if err != nil {
		return &ValueError{Reason: "cannot be written as JSON"}
	}
	e.out = append(e.out, b...)
	return nil
}

const notUTF8 = "must be valid UTF-8"

// string encodes a string in valid UTF-8.
func (e *encoder) string(s string) { e.out = appendString(e.out, s) }

// appendString appends a string in valid UTF-8.
func appendString(out []byte, s string) []byte {
	for i := range len(s) {
		if !plainChars[s[i]] {
			quoted, _ := json.Marshal(s)
			return append(out, quoted...)
		}
	}
	return append(append(append(out, '"'), s...), '"')
}

// AppendString appends s as encoding/json encodes it. It reports false if s is not valid UTF-8.
func AppendString(out []byte, s string) ([]byte, bool) {
	if !utf8.ValidString(s) {
		return out, false
	}
	return appendString(out, s), true
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

// plainChars are the bytes that encoding/json does not escape. U+2028 and U+2029, which it does,
// start with 0xe2.
var plainChars = func() (plain [256]bool) {
	for c := range plain {
		plain[c] = c >= ' ' && c != 0xe2 && !strings.ContainsRune("\"\\<>&\x7f", rune(c))
	}
	return plain
}()

func (e *encoder) uuid(id *uuid.UUID) {
	e.out = append(e.out, '"')
	for i, part := range [][]byte{id[:4], id[4:6], id[6:8], id[8:10], id[10:]} {
		if i > 0 {
			e.out = append(e.out, '-')
		}
		e.out = hex.AppendEncode(e.out, part)
	}
	e.out = append(e.out, '"')
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
	typeClasses = map[reflect.Type]class{rawType: rawClass, uuidType: uuidClass, timeType: timeClass, numberType: otherClass}
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
	others []int // the fields of the struct that are not part of its JSON
}

type encodedField struct {
	*field
	shape     *shape
	quoted    string // the name with its colon
	hasIsZero bool   // the type says itself what zero is
}

var encodingPlans sync.Map // reflect.Type → *encodingPlan

func encodingPlanOf(t reflect.Type) *encodingPlan {
	if p, ok := encodingPlans.Load(t); ok {
		return p.(*encodingPlan)
	}
	p := &encodingPlan{plan: planOf(t), variable: variableOf(t)}
	inJSON := map[int]bool{p.ref: true}
	for i := range p.plan.fields {
		f := &p.plan.fields[i]
		ft := t.Field(f.index).Type
		hasIsZero := ft.Kind() != reflect.Pointer && ft.Implements(reflect.TypeFor[interface{ IsZero() bool }]())
		p.fields = append(p.fields, encodedField{f, shapeOf(ft), string(appendString(nil, f.name)) + ":", hasIsZero})
		inJSON[f.index] = true
	}
	for i := range t.NumField() {
		if !inJSON[i] && t.Field(i).Type.Size() > 0 {
			p.others = append(p.others, i)
		}
	}
	encodingPlans.Store(t, p)
	return p
}

// refOf returns the Ref that the struct at v embeds, if its type has one.
func (p *encodingPlan) refOf(v place) *Ref { return at[Ref](v.field(p.refOffset)) }

func (e *encoder) raw(data []byte) error {
	if data == nil {
		return e.null()
	}
	if Valid(data) != nil {
		return &ValueError{Reason: "must be valid JSON"}
	}
	e.out = append(e.out, data...)
	return nil
}

// field encodes the value of a field at v.
func (e *encoder) field(f *encodedField, v place) error {
	if f.wrapped {
		return e.slice(f.shape, v, f.nullable, true)
	}
	return e.value(f.shape, v, f.nullable)
}

// fieldName starts the field of an object whose content starts at first.
func (e *encoder) fieldName(f *encodedField, first int) {
	e.comma(first)
	e.out = append(e.out, f.quoted...)
}

// element encodes an element of a list, in the wrapper that it was received in if wrapped is true.
func (e *encoder) element(s *shape, v place, wrapped bool) error {
	if !wrapped || !e.lossless {
		return e.value(s, v, false)
	}
	before, after := s.plan.refOf(v).wrapper()
	e.out = append(e.out, before...)
	err := e.value(s, v, false)
	e.out = append(e.out, after...)
	return err
}

func (e *encoder) slice(s *shape, v place, nullable, wrapped bool) error {
	if nullable && v.isNil() {
		return e.null()
	}
	e.out = append(e.out, '[')
	first, l := len(e.out), at[list](v)
	for i := range l.len {
		e.comma(first)
		if err := e.element(s.elem, l.element(i, s.elem.size), wrapped); err != nil {
			return within(strconv.Itoa(i), err)
		}
	}
	e.out = append(e.out, ']')
	return nil
}

// mapFields encodes a map, and takes the fields in unchanged from there.
func (e *encoder) mapFields(v reflect.Value, unchanged map[string][]byte) error {
	byName := map[string]reflect.Value{}
	for _, k := range v.MapKeys() {
		if !utf8.ValidString(k.String()) {
			return &ValueError{Reason: "must have names in valid UTF-8"}
		}
		byName[k.String()] = v.MapIndex(k)
	}
	e.out = append(e.out, '{')
	first := len(e.out)
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		e.name(name, first)
		if raw, ok := unchanged[name]; ok {
			e.out = append(e.out, raw...)
		} else if err := e.reflected(byName[name]); err != nil {
			return within(name, err)
		}
	}
	e.out = append(e.out, '}')
	return nil
}

// object encodes a struct.
func (e *encoder) object(p *encodingPlan, v place) error {
	if e.lossless && p.ref >= 0 {
		if ref := p.refOf(v); ref.doc != nil {
			return e.decoded(p, v, ref)
		}
		if p.isAny() { // made by the program, and without fields
			return e.null()
		}
	}
	return e.plain(p, v)
}

// plain encodes a struct from its fields alone.
func (e *encoder) plain(p *encodingPlan, v place) error {
	e.out = append(e.out, '{')
	first := len(e.out)
	for i := range p.fields {
		f := &p.fields[i]
		fv := v.field(f.offset)
		if f.omits(fv) {
			continue
		}
		e.fieldName(f, first)
		if err := e.field(f, fv); err != nil {
			return within(f.name, err)
		}
	}
	e.out = append(e.out, '}')
	return nil
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

// decoded encodes a decoded struct: its raw bytes, with the caller's changes on top. It finds the
// changes by comparing the fields with those bytes, and decodes the bytes once more if that does
// not suffice.
func (e *encoder) decoded(p *encodingPlan, v place, ref *Ref) error {
	raw := ref.Bytes()
	o := original{ref: ref, variable: p.variable}
	if raw[0] == '{' {
		return e.merged(p, v, raw, &o)
	}
	before, err := o.value()
	if err != nil {
		return err
	}
	if equal(before, v.value(p.variable)) {
		e.out = append(e.out, raw...)
		return nil
	}
	return e.plain(p, v)
}

// original is a decoded struct as it was before the program changed it, decoded when it is needed.
type original struct {
	variable
	ref     *Ref
	decoded reflect.Value
}

func (o *original) value() (reflect.Value, error) {
	if o.decoded.IsValid() {
		return o.decoded, nil
	}
	o.decoded = o.variable.new()
	return o.decoded, o.ref.decodeOriginal(o.decoded)
}

// compare returns whether the field of the struct at v was changed.
func (o *original) compare(m match, f *encodedField, v place) (match, error) {
	if m != unknown {
		return m, nil
	}
	before, err := o.value()
	if err != nil {
		return unknown, err
	}
	return matchIf(equal(before.Field(f.index), v.field(f.offset).value(f.variable))), nil
}

// unchanged writes the raw bytes of ref, which are a copy already if its document has parts.
func (e *encoder) unchanged(raw []byte, ref *Ref) {
	if len(e.out) == 0 && len(raw) > maxReused && ref.doc.in.hasParts() {
		e.out = raw
		return
	}
	e.out = append(e.out, raw...)
}

// merged encodes a decoded struct field by field. raw is the object that was received.
func (e *encoder) merged(p *encodingPlan, v place, raw []byte, o *original) (err error) {
	start := len(e.fields)
	defer func() { e.fields = e.fields[:start] }()
	var all [mostFields]match
	matches, unchanged := all[:len(p.fields)], true
	e.fields = p.appendFields(e.fields, matches, raw, v)
	for i := range matches {
		if matches[i], err = o.compare(matches[i], &p.fields[i], v); err != nil {
			return err
		}
		unchanged = unchanged && matches[i] == same
	}
	if unchanged {
		e.unchanged(raw, o.ref)
		return nil
	}
	e.out = slices.Grow(e.out, len(raw))
	fields := e.fields[start:]
	last := p.lastOf(fields)
	e.out = append(e.out, '{')
	first := len(e.out)
	for i, rf := range fields {
		if rf.index < 0 || matches[rf.index] == same {
			e.comma(first)
			e.out = append(e.out, raw[rf.start:rf.end]...)
			continue
		}
		f := &p.fields[rf.index]
		if last[rf.index] != i || f.clears(v.field(f.offset)) {
			continue // a duplicate name, whose last value is the one to change, or the field is left out
		}
		e.fieldName(f, first)
		if err := e.changed(f, rf, raw, o, v.field(f.offset)); err != nil {
			return within(f.name, err)
		}
	}
	for i := range p.fields {
		if last[i] >= 0 || matches[i] == same {
			continue
		}
		if err := e.added(&p.fields[i], v, first); err != nil {
			return err
		}
	}
	e.out = append(e.out, '}')
	return nil
}

// added encodes a field of the struct at v that the object does not have.
func (e *encoder) added(f *encodedField, v place, first int) error {
	now := v.field(f.offset)
	if f.clears(now) {
		return nil
	}
	e.fieldName(f, first)
	if err := e.field(f, now); err != nil {
		return within(f.name, err)
	}
	return nil
}

func equal(a, b reflect.Value) bool { return reflect.DeepEqual(a.Interface(), b.Interface()) }

// changed encodes the value at now of a field that the caller changed. It is rf of the object.
func (e *encoder) changed(f *encodedField, rf rawField, object []byte, o *original, now place) error {
	raw := object[rf.value:rf.end]
	isSlice := f.shape.class == sliceClass && !now.isNil()
	if isSlice && raw[0] == '[' && f.shape.elem.keepsRaw() {
		return e.changedObjects(f, now, rf.same)
	}
	isMap := f.shape.class == mapClass && !now.isNil() && raw[0] == '{'
	if !isSlice && !isMap {
		return e.field(f, now)
	}
	before, err := o.value()
	if err != nil {
		return err
	}
	if isMap {
		return e.changedMap(raw, before.Field(f.index), now.value(f.variable))
	}
	return e.changedSlice(f, raw, before.Field(f.index), now)
}

// changedObjects encodes a list of structs that keep their raw bytes, of which the first ones are
// unchanged.
func (e *encoder) changedObjects(f *encodedField, now place, unchanged int) error {
	e.out = append(e.out, '[')
	first, l, elem := len(e.out), at[list](now), f.shape.elem
	for i := range l.len {
		e.comma(first)
		element := l.element(i, elem.size)
		if i < unchanged {
			e.out = append(e.out, elem.plan.refOf(element).Bytes()...)
		} else if err := e.element(elem, element, f.wrapped); err != nil {
			return within(strconv.Itoa(i), err)
		}
	}
	e.out = append(e.out, ']')
	return nil
}

// rawField is where a field of an object is in the raw bytes: from its name on, and its value.
type rawField struct {
	index             int // of the field in the plan; -1 if the type has no such field
	start, value, end int
	same              int // how many elements of a changed list are unchanged before another one
}

// appendFields appends the fields of an object to list. It sets for each field of the struct at v
// whether it is that of the object.
func (p *encodingPlan) appendFields(list []rawField, matches []match, raw []byte, v place) []rawField {
	m := matcher{scanner: scanner{data: raw}}
	var seen uint64
	next := 0
	for more := m.open('}'); more; more = m.more('}') {
		start := m.i
		n := m.field(p, next)
		rf := rawField{start: start, index: n, value: m.i}
		if n >= 0 {
			next = n + 1
			seen |= 1 << n
			m.same = 0
			matches[n] = m.fieldOf(p, n, v)
			rf.same = m.same
		}
		if n < 0 || matches[n] != same {
			skipped := FastScanner{Data: raw, Pos: rf.value}
			skipped.Skip(1)
			m.i, m.depth = skipped.Pos, 1
		}
		rf.end = m.i
		list = append(list, rf)
	}
	for n := range p.fields {
		if seen&(1<<n) == 0 {
			matches[n] = p.absent(n, v)
		}
	}
	if p.data >= 0 && matches[p.kind] != same {
		matches[p.data] = unknown
	}
	return list
}

// lastOf returns for each field of the plan the index of its last value in list, or -1.
func (p *encodingPlan) lastOf(list []rawField) []int {
	last := slices.Repeat([]int{-1}, len(p.fields))
	for i, rf := range list {
		if rf.index >= 0 {
			last[rf.index] = i
		}
	}
	return last
}

// changedMap encodes a changed map: the values that are unchanged are written as their raw bytes.
func (e *encoder) changedMap(raw []byte, original, now reflect.Value) error {
	unchanged := map[string][]byte{}
	for name, value := range Fields(raw) {
		key := reflect.ValueOf(string(name)).Convert(now.Type().Key())
		delete(unchanged, string(name)) // of duplicate names the last value counts
		if v := now.MapIndex(key); v.IsValid() && equal(original.MapIndex(key), v) {
			unchanged[string(name)] = value
		}
	}
	return e.mapFields(now, unchanged)
}

// changedSlice encodes a changed list: elements that are unchanged are written as their raw bytes,
// also at another index.
func (e *encoder) changedSlice(f *encodedField, raw []byte, original reflect.Value, now place) error {
	l, elem := at[list](now), f.shape.elem
	elements := slices.Collect(Elements(raw))
	e.out = append(e.out, '[')
	first := len(e.out)
	for i, from := range sources(original, now.value(f.variable)) {
		e.comma(first)
		if from >= 0 {
			e.out = append(e.out, elements[from]...)
		} else if err := e.element(elem, l.element(i, elem.size), f.wrapped); err != nil {
			return within(strconv.Itoa(i), err)
		}
	}
	e.out = append(e.out, ']')
	return nil
}

// sources returns for each element of now the index of the same element of original, or -1: equal
// ones from the start, equal ones from the end, and between them the first one of the same value.
// Structs that keep their raw bytes need not be searched for.
func sources(original, now reflect.Value) []int {
	m, n := original.Len(), now.Len()
	from := slices.Repeat([]int{-1}, n)
	head, tail := 0, 0
	for ; head < min(m, n) && equal(original.Index(head), now.Index(head)); head++ {
		from[head] = head
	}
	for ; tail < min(m, n)-head && equal(original.Index(m-1-tail), now.Index(n-1-tail)); tail++ {
		from[n-1-tail] = m - 1 - tail
	}
	if elem := now.Type().Elem(); isObject(elem) || !elem.Comparable() {
		return from
	}
	indexes := map[any][]int{}
	for j := head; j < m-tail; j++ {
		e := original.Index(j).Interface()
		indexes[e] = append(indexes[e], j)
	}
	for i := head; i < n-tail; i++ {
		e := now.Index(i).Interface()
		if found := indexes[e]; len(found) > 0 {
			from[i], indexes[e] = found[0], found[1:]
		}
	}
	return from
}
