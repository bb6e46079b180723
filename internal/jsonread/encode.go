package jsonread

import (
	"encoding"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Marshal encodes the struct that p points to (or is). Decoded fields that the caller did not
// change are written as their raw bytes, unknown and malformed ones included, with the caller's
// changes on top. A value that is unchanged as a whole gives its raw bytes.
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
	e := encoder{lossless: lossless}
	if err := e.object(v); err != nil {
		return nil, err
	}
	return e.out, nil
}

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
	quoted, _ := json.Marshal(name)
	e.out = append(append(e.out, quoted...), ':')
}

// comma separates a field or element from those before it, of the object or array whose content
// starts at first.
func (e *encoder) comma(first int) {
	if len(e.out) > first {
		e.out = append(e.out, ',')
	}
}

func (e *encoder) value(v reflect.Value, nullable bool) error {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return e.null()
		}
		return e.value(v.Elem(), nullable)
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return &ValueError{Reason: "must be valid UTF-8"}
		}
	case reflect.Struct:
		if isObject(v.Type()) && !isMarshaler(v) || planOf(v.Type()).ref >= 0 {
			return e.object(v)
		}
	case reflect.Slice:
		if v.Type() == rawType {
			return e.raw(v.Bytes())
		}
		return e.slice(v, nullable, false)
	case reflect.Map:
		if v.IsNil() {
			return e.null()
		}
		return e.mapFields(v, nil)
	}
	b, err := json.Marshal(v.Interface())
	if err != nil {
		return &ValueError{Reason: "cannot be written as JSON"}
	}
	e.out = append(e.out, b...)
	return nil
}

func isMarshaler(v reflect.Value) bool {
	switch v.Interface().(type) {
	case json.Marshaler, encoding.TextMarshaler:
		return true
	}
	return false
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
func (e *encoder) field(f *field, v reflect.Value) error {
	if f.wrapped {
		return e.slice(v, f.nullable, true)
	}
	return e.value(v, f.nullable)
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
	p := planOf(v.Type())
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
func (e *encoder) plain(p *plan, v reflect.Value) error {
	e.out = append(e.out, '{')
	first := len(e.out)
	for i := range p.fields {
		f := &p.fields[i]
		fv := v.Field(f.index)
		if f.omits(fv) {
			continue
		}
		e.name(f.name, first)
		if err := e.field(f, fv); err != nil {
			return within(f.name, err)
		}
	}
	e.out = append(e.out, '}')
	return nil
}

// omits reports whether the field is left out at this value.
func (f *field) omits(v reflect.Value) bool { return f.omitZero && isZero(v) }

// clears reports whether a changed field is left out at this value. A nil pointer with a default is
// null, because an absent field would be decoded as the default.
func (f *field) clears(v reflect.Value) bool { return f.omits(v) && !f.hasDefault }

// isZero is what omitzero of encoding/json means.
func isZero(v reflect.Value) bool {
	if z, ok := v.Interface().(interface{ IsZero() bool }); ok && v.Kind() != reflect.Pointer {
		return z.IsZero()
	}
	return v.IsZero()
}

// decoded encodes a decoded struct: its raw bytes, with the caller's changes on top. It finds the
// changes by decoding those bytes once more.
func (e *encoder) decoded(p *plan, v reflect.Value, ref Ref) error {
	original := reflect.New(v.Type()).Elem()
	if err := ref.decodeOriginal(original); err != nil {
		return err
	}
	raw := ref.raw()
	if equal(original, v) {
		e.out = append(e.out, raw...)
		return nil
	}
	if raw[0] != '{' {
		return e.plain(p, v)
	}
	e.out = append(e.out, '{')
	first := len(e.out)
	fields, last := p.fieldsOf(raw)
	for i, rf := range fields {
		var err error
		switch f := rf.field; {
		case f == nil, equal(original.Field(f.index), v.Field(f.index)):
			e.comma(first)
			e.out = append(e.out, raw[rf.start:rf.end]...)
		case last[f] != i, f.clears(v.Field(f.index)):
			// A duplicate name, whose last value is the one to change, or the field is left out.
		default:
			e.name(f.name, first)
			err = within(f.name, e.changed(f, raw[rf.value:rf.end], original.Field(f.index), v.Field(f.index)))
		}
		if err != nil {
			return err
		}
	}
	for n := range p.fields {
		f := &p.fields[n]
		now := v.Field(f.index)
		if _, exists := last[f]; exists || f.clears(now) || equal(original.Field(f.index), now) {
			continue
		}
		e.name(f.name, first)
		if err := e.field(f, now); err != nil {
			return within(f.name, err)
		}
	}
	e.out = append(e.out, '}')
	return nil
}

func equal(a, b reflect.Value) bool { return reflect.DeepEqual(a.Interface(), b.Interface()) }

// changed encodes the value of a field that the caller changed from original to now, and that was
// decoded from raw.
func (e *encoder) changed(f *field, raw []byte, original, now reflect.Value) error {
	switch {
	case now.Kind() == reflect.Slice && !now.IsNil() && now.Type() != rawType:
		return e.changedSlice(f, raw, original, now)
	case now.Kind() == reflect.Map && !now.IsNil() && raw[0] == '{':
		return e.changedMap(raw, original, now)
	}
	return e.field(f, now)
}

// rawField is where a field of an object is in the raw bytes: from its name on, and its value.
type rawField struct {
	*field            // nil if the type has no such field
	start, value, end int
}

// fieldsOf returns the fields of an object, and the index of the last one of each name that the
// type has.
func (p *plan) fieldsOf(raw []byte) (list []rawField, last map[*field]int) {
	last = map[*field]int{}
	s := scanner{data: raw}
	for more := s.open('}'); more; more = s.more('}') {
		rf := rawField{start: s.i}
		if n, known := p.byName[string(s.name())]; known {
			rf.field = &p.fields[n]
			last[rf.field] = len(list)
		}
		rf.value = s.i
		s.skip()
		rf.end = s.i
		list = append(list, rf)
	}
	return list, last
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
func (e *encoder) changedSlice(f *field, raw []byte, original, now reflect.Value) error {
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
