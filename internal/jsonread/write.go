package jsonread

import (
	"encoding"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Marshal writes the struct that p points to (or is). Members that came and that the caller did not change are written as they
// came, unknown and malformed ones included; changes are on top of that. A value that is unchanged as a whole gives the bytes
// that came.
func Marshal(p any) ([]byte, error) { return marshal(p, true) }

// MarshalPlain writes only what the Go types know: what a request may hold.
func MarshalPlain(p any) ([]byte, error) { return marshal(p, false) }

func marshal(p any, keep bool) ([]byte, error) {
	v := reflect.ValueOf(p)
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return []byte("null"), nil
		}
		v = v.Elem()
	}
	w := writer{keep: keep}
	if err := w.structure(v); err != nil {
		return nil, err
	}
	return w.out, nil
}

type writer struct {
	out  []byte
	keep bool
}

// ValueError says which member of a value cannot be written, and why, without quoting it.
type ValueError struct {
	Path   []string
	Reason string
}

func (e *ValueError) Error() string { return strings.Join(e.Path, ".") + ": " + e.Reason }

// within puts the member's name before the path of err.
func within(name string, err error) error {
	var e *ValueError
	if errors.As(err, &e) {
		e.Path = slices.Insert(e.Path, 0, name)
	}
	return err
}

func (w *writer) value(v reflect.Value, nullable bool) error {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			w.out = append(w.out, "null"...)
			return nil
		}
		return w.value(v.Elem(), nullable)
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return &ValueError{Reason: "must be valid UTF-8"}
		}
	case reflect.Struct:
		if isStructure(v.Type()) && !isMarshaler(v) || planOf(v.Type()).ref >= 0 {
			return w.structure(v)
		}
	case reflect.Slice:
		if v.Type() == rawType && !v.IsNil() {
			if Valid(v.Bytes()) != nil {
				return &ValueError{Reason: "must be valid JSON"}
			}
			w.out = append(w.out, v.Bytes()...)
			return nil
		}
		if v.IsNil() && (nullable || v.Type() == rawType) {
			w.out = append(w.out, "null"...)
			return nil
		}
		w.out = append(w.out, '[')
		for i := range v.Len() {
			if i > 0 {
				w.out = append(w.out, ',')
			}
			if err := w.value(v.Index(i), false); err != nil {
				return within(strconv.Itoa(i), err)
			}
		}
		w.out = append(w.out, ']')
		return nil
	case reflect.Map:
		if v.IsNil() {
			w.out = append(w.out, "null"...)
			return nil
		}
		return w.members(v, nil)
	}
	b, err := json.Marshal(v.Interface())
	if err != nil {
		return &ValueError{Reason: "cannot be written as JSON"}
	}
	w.out = append(w.out, b...)
	return nil
}

func isMarshaler(v reflect.Value) bool {
	switch v.Interface().(type) {
	case json.Marshaler, encoding.TextMarshaler:
		return true
	}
	return false
}

// members writes a map, with the text of those members that have one in came.
func (w *writer) members(v reflect.Value, came map[string][]byte) error {
	byName := map[string]reflect.Value{}
	for _, k := range v.MapKeys() {
		if !utf8.ValidString(k.String()) {
			return &ValueError{Reason: "must have names in valid UTF-8"}
		}
		byName[k.String()] = v.MapIndex(k)
	}
	w.out = append(w.out, '{')
	for i, name := range slices.Sorted(maps.Keys(byName)) {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		if text, ok := came[name]; ok {
			quoted, _ := json.Marshal(name)
			w.out = append(append(append(w.out, quoted...), ':'), text...)
		} else if err := w.member(name, byName[name], false); err != nil {
			return err
		}
	}
	w.out = append(w.out, '}')
	return nil
}

func (w *writer) member(name string, v reflect.Value, nullable bool) error {
	quoted, _ := json.Marshal(name)
	w.out = append(append(w.out, quoted...), ':')
	if err := w.value(v, nullable); err != nil {
		return within(name, err)
	}
	return nil
}

func (w *writer) structure(v reflect.Value) error {
	p := planOf(v.Type())
	if w.keep && p.ref >= 0 {
		if ref := *p.refOf(v); ref.doc != nil {
			return w.kept(p, v, ref)
		}
		if p.any() { // nothing came and nothing is known
			w.out = append(w.out, "null"...)
			return nil
		}
	}
	return w.plain(p, v)
}

func (w *writer) plain(p *plan, v reflect.Value) error {
	w.out = append(w.out, '{')
	first := len(w.out)
	for i := range p.fields {
		f := &p.fields[i]
		fv := v.Field(f.index)
		if f.omitZero && isZero(fv) {
			continue
		}
		if len(w.out) > first {
			w.out = append(w.out, ',')
		}
		if err := w.member(f.name, fv, f.nullable); err != nil {
			return err
		}
	}
	w.out = append(w.out, '}')
	return nil
}

// isZero is what omitzero of encoding/json means.
func isZero(v reflect.Value) bool {
	if z, ok := v.Interface().(interface{ IsZero() bool }); ok && v.Kind() != reflect.Pointer {
		return z.IsZero()
	}
	return v.IsZero()
}

// kept writes v as the bytes it came as, with the caller's changes on top. What the caller changed is seen by reading those
// bytes a second time.
func (w *writer) kept(p *plan, v reflect.Value, ref Ref) error {
	came := decoder{
		scanner: scanner{text: ref.doc.in.text[:ref.hi], i: int(ref.lo)},
		doc:     ref.doc, above: int(ref.depth), silent: true, budget: math.MaxInt,
	}
	then := reflect.New(v.Type()).Elem()
	err := came.run(func() { bindStruct(v.Type())(&came, then) })
	if err != nil {
		return err
	}
	raw := ref.doc.in.text[ref.lo:ref.hi]
	if reflect.DeepEqual(then.Interface(), v.Interface()) {
		w.out = append(w.out, raw...)
		return nil
	}
	if raw[0] != '{' {
		return w.plain(p, v)
	}
	members, last := p.membersOf(raw)
	w.out = append(w.out, '{')
	first := len(w.out)
	sep := func() {
		if len(w.out) > first {
			w.out = append(w.out, ',')
		}
	}
	for i, m := range members {
		if m.field < 0 {
			sep()
			w.out = append(w.out, raw[m.start:m.end]...)
			continue
		}
		f := &p.fields[m.field]
		was, now := then.Field(f.index), v.Field(f.index)
		switch {
		case reflect.DeepEqual(was.Interface(), now.Interface()):
			sep()
			w.out = append(w.out, raw[m.start:m.end]...)
		case last[m.field] != i, f.omitZero && isZero(now):
			// The name comes again, and the new value is written there, or it is to be left out.
		case now.Kind() == reflect.Slice && !now.IsNil() && now.Type() != rawType:
			sep()
			err = w.list(f.name, raw[m.value:m.end], was, now)
		case now.Kind() == reflect.Map && !now.IsNil() && raw[m.value] == '{':
			sep()
			err = w.keptMap(f.name, raw[m.value:m.end], was, now)
		default:
			sep()
			err = w.member(f.name, now, f.nullable)
		}
		if err != nil {
			return err
		}
	}
	for n := range p.fields {
		f := &p.fields[n]
		now := v.Field(f.index)
		if _, came := last[n]; came || (f.omitZero && isZero(now)) || reflect.DeepEqual(then.Field(f.index).Interface(), now.Interface()) {
			continue
		}
		sep()
		if err := w.member(f.name, now, f.nullable); err != nil {
			return err
		}
	}
	w.out = append(w.out, '}')
	return nil
}

// member is where a member of an object stands in its text: from its name on, and its value.
type member struct {
	field             int // -1 if the type does not know it
	start, value, end int
}

// membersOf returns the members of raw, and for each field that is among them the last one: a name may come twice.
func (p *plan) membersOf(raw []byte) (list []member, last map[int]int) {
	last = map[int]int{}
	s := scanner{text: raw}
	for more := s.open('}'); more; more = s.more('}') {
		m := member{field: -1, start: s.i}
		if n, known := p.byName[string(s.key())]; known {
			m.field, last[n] = n, len(list)
		}
		m.value = s.i
		s.skip()
		m.end = s.i
		list = append(list, m)
	}
	return list, last
}

// keptMap writes a changed map: members that came and are the same are written as they came.
func (w *writer) keptMap(name string, raw []byte, was, now reflect.Value) error {
	same := map[string][]byte{}
	s := scanner{text: raw}
	for more := s.open('}'); more; more = s.more('}') {
		key := string(s.key())
		start := s.i
		s.skip()
		k := reflect.ValueOf(key).Convert(now.Type().Key())
		delete(same, key) // a name may come twice, and the last one counts
		if e := now.MapIndex(k); e.IsValid() && reflect.DeepEqual(was.MapIndex(k).Interface(), e.Interface()) {
			same[key] = raw[start:s.i]
		}
	}
	quoted, _ := json.Marshal(name)
	w.out = append(append(w.out, quoted...), ':')
	return within(name, w.members(now, same))
}

// list writes a changed list: elements that came are written as they came, also at another place.
func (w *writer) list(name string, raw []byte, was, now reflect.Value) error {
	var came [][]byte
	if raw[0] == '[' {
		s := scanner{text: raw}
		for more := s.open(']'); more; more = s.more(']') {
			start := s.i
			s.skip()
			came = append(came, raw[start:s.i])
		}
	}
	quoted, _ := json.Marshal(name)
	w.out = append(append(w.out, quoted...), ':', '[')
	for i, from := range sources(was, now) {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		if from >= 0 {
			w.out = append(w.out, came[from]...)
		} else if err := w.value(now.Index(i), false); err != nil {
			return within(name, within(strconv.Itoa(i), err))
		}
	}
	w.out = append(w.out, ']')
	return nil
}

// sources tells for each element of now which element of was it is, or -1: the same from the beginning, the same from the end,
// and between them the first one of the same value. Structs that keep their bytes need not be looked for.
func sources(was, now reflect.Value) []int {
	m, n := was.Len(), now.Len()
	from := slices.Repeat([]int{-1}, n)
	same := func(j, i int) bool { return reflect.DeepEqual(was.Index(j).Interface(), now.Index(i).Interface()) }
	head, tail := 0, 0
	for ; head < min(m, n) && same(head, head); head++ {
		from[head] = head
	}
	for ; tail < min(m, n)-head && same(m-1-tail, n-1-tail); tail++ {
		from[n-1-tail] = m - 1 - tail
	}
	if elem := now.Type().Elem(); isStructure(elem) || !elem.Comparable() {
		return from
	}
	places := map[any][]int{}
	for j := head; j < m-tail; j++ {
		e := was.Index(j).Interface()
		places[e] = append(places[e], j)
	}
	for i := head; i < n-tail; i++ {
		e := now.Index(i).Interface()
		if at := places[e]; len(at) > 0 {
			from[i], places[e] = at[0], at[1:]
		}
	}
	return from
}
