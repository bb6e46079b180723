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
	if !v.CanAddr() { // methods and parts of a value that can be addressed need no copies
		copied := reflect.New(v.Type()).Elem()
		copied.Set(v)
		v = copied
	}
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	e.out, e.lossless = e.out[:0], lossless
	if err := e.object(v); err != nil {
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
	lossless bool // raw bytes are written too
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

func (e *encoder) value(v reflect.Value, nullable bool) error {
	return e.valueOf(classOf(v.Type()), v, nullable)
}

// valueOf encodes a value whose type has the given class.
func (e *encoder) valueOf(c class, v reflect.Value, nullable bool) error {
	switch c {
	case pointerClass:
		if v.IsNil() {
			return e.null()
		}
		return e.value(v.Elem(), nullable)
	case objectClass:
		return e.object(v)
	case rawClass:
		return e.raw(v.Bytes())
	case sliceClass:
		return e.slice(v, nullable, false)
	case mapClass:
		if v.IsNil() {
			return e.null()
		}
		return e.mapFields(v, nil)
	}
	return e.scalar(c, v)
}

// scalar encodes a value without parts of its own, as encoding/json does.
func (e *encoder) scalar(c class, v reflect.Value) error {
	switch c {
	case stringClass:
		if s := v.String(); utf8.ValidString(s) {
			e.string(s)
			return nil
		}
		return &ValueError{Reason: "must be valid UTF-8"}
	case boolClass:
		e.out = strconv.AppendBool(e.out, v.Bool())
		return nil
	case intClass:
		e.out = strconv.AppendInt(e.out, v.Int(), 10)
		return nil
	case floatClass:
		if f := math.Abs(v.Float()); f == 0 || f >= 1e-6 && f < 1e21 {
			e.out = strconv.AppendFloat(e.out, v.Float(), 'f', -1, 64)
			return nil
		}
	case uuidClass:
		e.uuid(v)
		return nil
	case timeClass:
		out, err := pointerTo[time.Time](v).AppendText(append(e.out, '"'))
		if err == nil {
			e.out = append(out, '"')
			return nil
		}
	}
	if v.Kind() == reflect.String && !utf8.ValidString(v.String()) {
		return &ValueError{Reason: "must be valid UTF-8"}
	}
	b, err := json.Marshal(v.Interface())
	if err != nil {
		return &ValueError{Reason: "cannot be written as JSON"}
	}
	e.out = append(e.out, b...)
	return nil
}

// string encodes a string in valid UTF-8.
func (e *encoder) string(s string) {
	for i := range len(s) {
		if !plainChars[s[i]] {
			quoted, _ := json.Marshal(s)
			e.out = append(e.out, quoted...)
			return
		}
	}
	e.out = append(append(append(e.out, '"'), s...), '"')
}

// plainChars are the bytes that encoding/json does not escape. U+2028 and U+2029, which it does,
// start with 0xe2.
var plainChars = func() (plain [256]bool) {
	for c := range plain {
		plain[c] = c >= ' ' && c != 0xe2 && !strings.ContainsRune("\"\\<>&\x7f", rune(c))
	}
	return plain
}()

func (e *encoder) uuid(v reflect.Value) {
	id := pointerTo[uuid.UUID](v)
	e.out = append(e.out, '"')
	for i, part := range [][]byte{id[:4], id[4:6], id[6:8], id[8:10], id[10:]} {
		if i > 0 {
			e.out = append(e.out, '-')
		}
		e.out = hex.AppendEncode(e.out, part)
	}
	e.out = append(e.out, '"')
}

// pointerTo returns a pointer to v, or to a copy of it if v cannot be addressed.
func pointerTo[T any](v reflect.Value) *T {
	if v.CanAddr() {
		return v.Addr().Interface().(*T)
	}
	return new(v.Interface().(T))
}

// class says how a type is encoded.
type class uint8

const (
	otherClass class = iota // by encoding/json
	pointerClass
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

var classes sync.Map // reflect.Type → class

func classOf(t reflect.Type) class {
	if c, ok := classes.Load(t); ok {
		return c.(class)
	}
	c := findClass(t)
	classes.Store(t, c)
	return c
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
	case reflect.Pointer, reflect.Interface:
		return pointerClass
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
	fields []encodedField
	others []int // the fields of the struct that are not part of its JSON
}

type encodedField struct {
	*field
	quoted    string // the name with its colon
	class     class
	hasIsZero bool // the type says itself what zero is
}

var encodingPlans sync.Map // reflect.Type → *encodingPlan

func encodingPlanOf(t reflect.Type) *encodingPlan {
	if p, ok := encodingPlans.Load(t); ok {
		return p.(*encodingPlan)
	}
	p := &encodingPlan{plan: planOf(t)}
	inJSON := map[int]bool{p.ref: true}
	for i := range p.plan.fields {
		f := &p.plan.fields[i]
		ft := t.Field(f.index).Type
		quoted, _ := json.Marshal(f.name)
		hasIsZero := ft.Kind() != reflect.Pointer && ft.Implements(reflect.TypeFor[interface{ IsZero() bool }]())
		p.fields = append(p.fields, encodedField{f, string(quoted) + ":", classOf(ft), hasIsZero})
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

// field encodes the value v of a field.
func (e *encoder) field(f *encodedField, v reflect.Value) error {
	if f.wrapped {
		return e.slice(v, f.nullable, true)
	}
	return e.valueOf(f.class, v, f.nullable)
}

// fieldName starts the field of an object whose content starts at first.
func (e *encoder) fieldName(f *encodedField, first int) {
	e.comma(first)
	e.out = append(e.out, f.quoted...)
}

// element encodes an element of a list, in the wrapper that it was received in if wrapped is true.
func (e *encoder) element(v reflect.Value, wrapped bool) error {
	var before, after []byte
	if wrapped && e.lossless {
		before, after = planOf(v.Type()).refOf(v).wrapper()
	}
	e.out = append(e.out, before...)
	err := e.value(v, false)
	e.out = append(e.out, after...)
	return err
}

func (e *encoder) slice(v reflect.Value, nullable, wrapped bool) error {
	if nullable && v.IsNil() {
		return e.null()
	}
	e.out = append(e.out, '[')
	first := len(e.out)
	for i := range v.Len() {
		e.comma(first)
		if err := e.element(v.Index(i), wrapped); err != nil {
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
		} else if err := e.value(byName[name], false); err != nil {
			return within(name, err)
		}
	}
	e.out = append(e.out, '}')
	return nil
}

// object encodes a struct.
func (e *encoder) object(v reflect.Value) error {
	p := encodingPlanOf(v.Type())
	if e.lossless && p.ref >= 0 {
		if ref := *p.refOf(v); ref.doc != nil {
			return e.decoded(p, v, ref)
		}
		if p.isAny() { // made by the program, and without fields
			return e.null()
		}
	}
	return e.plain(p, v)
}

// plain encodes a struct from its fields alone.
func (e *encoder) plain(p *encodingPlan, v reflect.Value) error {
	e.out = append(e.out, '{')
	first := len(e.out)
	for i := range p.fields {
		f := &p.fields[i]
		fv := v.Field(f.index)
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
func (f *encodedField) omits(v reflect.Value) bool { return f.omitZero && f.isZero(v) }

// clears reports whether a changed field is left out at this value. A nil pointer with a default is
// null, because an absent field would be decoded as the default.
func (f *encodedField) clears(v reflect.Value) bool { return f.omits(v) && !f.hasDefault }

// isZero is what omitzero of encoding/json means.
func (f *encodedField) isZero(v reflect.Value) bool {
	if !f.hasIsZero {
		return v.IsZero()
	}
	if v.CanAddr() {
		v = v.Addr()
	}
	return v.Interface().(interface{ IsZero() bool }).IsZero()
}

// decoded encodes a decoded struct: its raw bytes, with the caller's changes on top. It finds the
// changes by comparing the fields with those bytes, and decodes the bytes once more if that does
// not suffice.
func (e *encoder) decoded(p *encodingPlan, v reflect.Value, ref Ref) error {
	raw := ref.raw()
	m := matcher{scanner: scanner{data: raw}}
	if m.object(p, v) == same {
		e.out = append(e.out, raw...)
		return nil
	}
	o := original{ref: ref}
	if raw[0] == '{' {
		return e.merged(p, v, raw, &o)
	}
	before, err := o.value(v)
	if err != nil {
		return err
	}
	if equal(before, v) {
		e.out = append(e.out, raw...)
		return nil
	}
	return e.plain(p, v)
}

// original is a decoded struct as it was before the program changed it, decoded when it is needed.
type original struct {
	ref     Ref
	decoded reflect.Value
}

func (o *original) value(like reflect.Value) (reflect.Value, error) {
	if o.decoded.IsValid() {
		return o.decoded, nil
	}
	o.decoded = reflect.New(like.Type()).Elem()
	return o.decoded, o.ref.decodeOriginal(o.decoded)
}

// compare returns whether the field of v was changed.
func (o *original) compare(m match, f *encodedField, v reflect.Value) (match, error) {
	if m != unknown {
		return m, nil
	}
	before, err := o.value(v)
	if err != nil {
		return unknown, err
	}
	if equal(before.Field(f.index), v.Field(f.index)) {
		return same, nil
	}
	return different, nil
}

// merged encodes a decoded struct field by field. raw is the object that was received.
func (e *encoder) merged(p *encodingPlan, v reflect.Value, raw []byte, o *original) (err error) {
	fields, matches := p.fieldsOf(raw, v)
	for i := range matches {
		if matches[i], err = o.compare(matches[i], &p.fields[i], v); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(matches, func(m match) bool { return m != same }) {
		e.out = append(e.out, raw...)
		return nil
	}
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
		if last[rf.index] != i || f.clears(v.Field(f.index)) {
			continue // a duplicate name, whose last value is the one to change, or the field is left out
		}
		e.fieldName(f, first)
		if err := e.changed(f, raw[rf.value:rf.end], o, v); err != nil {
			return within(f.name, err)
		}
	}
	for i := range p.fields {
		f := &p.fields[i]
		now := v.Field(f.index)
		if last[i] >= 0 || matches[i] == same || f.clears(now) {
			continue
		}
		e.fieldName(f, first)
		if err := e.field(f, now); err != nil {
			return within(f.name, err)
		}
	}
	e.out = append(e.out, '}')
	return nil
}

func equal(a, b reflect.Value) bool { return reflect.DeepEqual(a.Interface(), b.Interface()) }

// changed encodes the value of a field of v that the caller changed, and that was decoded from raw.
func (e *encoder) changed(f *encodedField, raw []byte, o *original, v reflect.Value) error {
	now := v.Field(f.index)
	isSlice := f.class == sliceClass && !now.IsNil()
	if isSlice && raw[0] == '[' && classOf(now.Type().Elem()) == objectClass && planOf(now.Type().Elem()).ref >= 0 {
		return e.changedObjects(f, raw, now)
	}
	isMap := f.class == mapClass && !now.IsNil() && raw[0] == '{'
	if !isSlice && !isMap {
		return e.field(f, now)
	}
	before, err := o.value(v)
	if err != nil {
		return err
	}
	if isMap {
		return e.changedMap(raw, before.Field(f.index), now)
	}
	return e.changedSlice(f, raw, before.Field(f.index), now)
}

// changedObjects encodes a changed list of structs that keep their raw bytes.
func (e *encoder) changedObjects(f *encodedField, raw []byte, now reflect.Value) error {
	e.out = append(e.out, '[')
	first := len(e.out)
	for i := range now.Len() {
		e.comma(first)
		if err := e.element(now.Index(i), f.wrapped); err != nil {
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
}

// fieldsOf returns the fields of an object, and which fields of v are those of the object.
func (p *encodingPlan) fieldsOf(raw []byte, v reflect.Value) ([]rawField, []match) {
	list, matches := make([]rawField, 0, len(p.fields)), make([]match, len(p.fields))
	m := matcher{scanner: scanner{data: raw}}
	var seen uint64
	for more := m.open('}'); more; more = m.more('}') {
		rf := rawField{start: m.i, index: -1}
		n, known := m.field(p, len(list))
		if rf.value = m.i; known {
			rf.index = n
			seen |= 1 << n
			matches[n] = m.fieldOf(p, n, v)
			m.i, m.depth = rf.value, 1
		}
		m.skip()
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
	return list, matches
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
func (e *encoder) changedSlice(f *encodedField, raw []byte, original, now reflect.Value) error {
	elements := slices.Collect(Elements(raw))
	e.out = append(e.out, '[')
	first := len(e.out)
	for i, from := range sources(original, now) {
		e.comma(first)
		if from >= 0 {
			e.out = append(e.out, elements[from]...)
		} else if err := e.element(now.Index(i), f.wrapped); err != nil {
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
