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
		if v.Type() == rawType {
			break
		}
		if v.IsNil() && nullable {
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
		return w.members(v)
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

func (w *writer) members(v reflect.Value) error {
	byName := map[string]reflect.Value{}
	for _, k := range v.MapKeys() {
		byName[k.String()] = v.MapIndex(k)
	}
	w.out = append(w.out, '{')
	for i, name := range slices.Sorted(maps.Keys(byName)) {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		if err := w.member(name, byName[name], false); err != nil {
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
		if ref := v.Field(p.ref).Convert(refType).Interface().(Ref); ref.doc != nil {
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
		scanner: scanner{text: ref.doc.text[:ref.hi], i: int(ref.lo)},
		doc:     ref.doc, above: int(ref.depth), silent: true, budget: growth*len(ref.doc.text) + spare,
	}
	then := reflect.New(v.Type()).Elem()
	err := came.run(func() { bindStruct(v.Type())(&came, then) })
	if err != nil {
		return err
	}
	raw := ref.doc.text[ref.lo:ref.hi]
	if reflect.DeepEqual(then.Interface(), v.Interface()) {
		w.out = append(w.out, raw...)
		return nil
	}
	if raw[0] != '{' {
		return w.plain(p, v)
	}
	var written uint64
	w.out = append(w.out, '{')
	first := len(w.out)
	sep := func() {
		if len(w.out) > first {
			w.out = append(w.out, ',')
		}
	}
	s := scanner{text: raw}
	for more := s.open('}'); more; more = s.more('}') {
		start := s.i
		name := s.key()
		n, known := p.byName[string(name)]
		value := s.i
		s.skip()
		if !known {
			sep()
			w.out = append(w.out, raw[start:s.i]...)
			continue
		}
		f, bit := &p.fields[n], uint64(1)<<n
		was, now := then.Field(f.index), v.Field(f.index)
		same := reflect.DeepEqual(was.Interface(), now.Interface())
		switch {
		case same:
			sep()
			w.out = append(w.out, raw[start:s.i]...)
		case written&bit != 0: // the name came twice, and its new value is written
		case f.omitZero && isZero(now):
		default:
			sep()
			if now.Kind() == reflect.Slice && !now.IsNil() && now.Type() != rawType {
				err = w.list(f.name, raw[value:s.i], was, now)
			} else {
				err = w.member(f.name, now, f.nullable)
			}
			if err != nil {
				return err
			}
		}
		written |= bit
	}
	for n := range p.fields {
		f := &p.fields[n]
		if written&(1<<n) != 0 {
			continue
		}
		was, now := then.Field(f.index), v.Field(f.index)
		if reflect.DeepEqual(was.Interface(), now.Interface()) || (f.omitZero && isZero(now)) {
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

// list writes a changed list: elements that are what came at their place are written as they came.
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
	for i := range now.Len() {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		e := now.Index(i)
		if i < len(came) && i < was.Len() && reflect.DeepEqual(was.Index(i).Interface(), e.Interface()) {
			w.out = append(w.out, came[i]...)
		} else if err := w.value(e, false); err != nil {
			return within(name, within(strconv.Itoa(i), err))
		}
	}
	w.out = append(w.out, ']')
	return nil
}
