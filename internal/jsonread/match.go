package jsonread

import (
	"bytes"
	"encoding/json"
	"reflect"
	"time"

	"github.com/google/uuid"
)

// match says whether a value is what is decoded from its raw bytes.
type match uint8

const (
	unknown match = iota
	same
	different
)

func matchIf(equal bool) match {
	if equal {
		return same
	}
	return different
}

// matcher compares values with valid JSON, without decoding it. Where that is not simple, such as
// with values that do not fit their type, the result is unknown. After another result than same the
// matcher may be anywhere in the value.
type matcher struct{ scanner }

// object compares a struct with the next value.
func (m *matcher) object(p *encodingPlan, v reflect.Value) match {
	start := m.i
	switch {
	case m.peek() == '{':
		if found := m.fields(p, v); found != same {
			return found
		}
	case p.isAny():
		m.skip()
	default:
		return unknown
	}
	for _, i := range p.others {
		if !v.Field(i).IsZero() {
			return unknown
		}
	}
	if p.ref < 0 {
		return same
	}
	ref := p.refOf(v)
	if ref.doc == nil || ref.wrapped || !bytes.Equal(ref.raw(), m.data[start:m.i]) {
		return unknown
	}
	return same
}

// fields compares the fields of a struct with the next value, an object.
func (m *matcher) fields(p *encodingPlan, v reflect.Value) match {
	var seen uint64
	next := 0
	for more := m.open('}'); more; more = m.more('}') {
		n, known := m.field(p, next)
		if !known {
			m.skip()
			continue
		}
		if seen&(1<<n) != 0 {
			return unknown // a duplicate name
		}
		seen |= 1 << n
		next = n + 1
		value := m.scanner
		switch found := m.fieldOf(p, n, v); {
		case found == different && p.hasAgain(n, value):
			return unknown
		case found != same:
			return found
		}
	}
	for n := range p.fields {
		if seen&(1<<n) == 0 && p.absent(n, v) != same {
			return unknown
		}
	}
	return same
}

// hasAgain reports whether an object has field n once more after its value that is next.
func (p *encodingPlan) hasAgain(n int, value scanner) bool {
	m := matcher{value}
	m.skip()
	for more := m.more('}'); more; more = m.more('}') {
		if found, known := m.field(p, n); known && found == n {
			return true
		}
		m.skip()
	}
	return false
}

// field reads a field's name and returns its index in the plan. It tries the likely one first.
func (m *matcher) field(p *encodingPlan, likely int) (n int, known bool) {
	if likely < len(p.fields) && m.skipName(p.fields[likely].quoted) {
		return likely, true
	}
	n, known = p.byName[string(m.name())]
	return n, known
}

// absent compares field n of v with that of an object without it.
func (p *encodingPlan) absent(n int, v reflect.Value) match {
	f := &p.fields[n]
	fv := v.Field(f.index)
	if f.hasDefault {
		return matchIf(equal(f.def, fv))
	}
	return matchIf(fv.IsZero() || f.class == floatClass && fv.Float() == 0)
}

// fieldOf compares field n of v with the next value.
func (m *matcher) fieldOf(p *encodingPlan, n int, v reflect.Value) match {
	f := &p.fields[n]
	fv := v.Field(f.index)
	switch {
	case f.union != nil:
		return m.union(p, fv, v.Field(p.fields[p.kind].index).String())
	case f.class == otherClass || m.peek() != 'n':
		return m.value(f.class, fv, f.wrapped)
	case f.hasDefault && fv.Kind() != reflect.Pointer:
		m.literal("null")
		return matchIf(equal(f.def, fv))
	case f.class == objectClass && !p.isPlainObject(fv.Type()):
		return unknown
	}
	m.literal("null")
	return matchIf(fv.IsZero())
}

// isPlainObject reports whether null leaves a struct of the type zero.
func (p *encodingPlan) isPlainObject(t reflect.Type) bool { return planOf(t).ref < 0 }

// union compares a field of an interface type with the next value. kind is the value of the field
// that discriminates it.
func (m *matcher) union(p *encodingPlan, v reflect.Value, kind string) match {
	if m.peek() == 'n' {
		m.literal("null")
		return matchIf(v.IsNil())
	}
	u := p.fields[p.data].union
	k, known := u.kinds[kind]
	if !known {
		k = u.unknown
	}
	if v.IsNil() || v.Elem().Type() != reflect.PointerTo(k.elem) || v.Elem().IsNil() || known && m.peek() != '{' {
		return unknown
	}
	return m.object(encodingPlanOf(k.elem), v.Elem().Elem())
}

// value compares a value of a class with the next value.
func (m *matcher) value(c class, v reflect.Value, wrapped bool) match {
	switch next := m.peek(); {
	case c == pointerClass:
		return m.pointer(v)
	case c == objectClass:
		return m.object(encodingPlanOf(v.Type()), v)
	case c == rawClass:
		start := m.i
		m.skip()
		if next == 'n' { // it is decoded as absent
			return matchIf(v.IsNil())
		}
		return matchIf(!v.IsNil() && bytes.Equal(v.Bytes(), m.data[start:m.i]))
	case c == sliceClass && next == '[':
		return m.slice(v, wrapped)
	case c == otherClass:
		return m.other(v)
	case next == '"':
		return m.text(c, v)
	case startsNumber(next):
		return m.numeric(c, v)
	case c == boolClass && next == 't':
		m.literal("true")
		return matchIf(v.Bool())
	case c == boolClass && next == 'f':
		m.literal("false")
		return matchIf(!v.Bool())
	}
	return unknown // null, a map, or a value that does not fit
}

func (m *matcher) pointer(v reflect.Value) match {
	switch isNull := m.peek() == 'n'; {
	case v.Kind() != reflect.Pointer:
		return unknown
	case isNull:
		m.literal("null")
		return matchIf(v.IsNil())
	case v.IsNil():
		return unknown // the value may not fit
	}
	return m.value(classOf(v.Type().Elem()), v.Elem(), false)
}

// text compares with a string.
func (m *matcher) text(c class, v reflect.Value) match {
	switch c {
	case stringClass:
		return matchIf(string(m.string()) == v.String())
	case uuidClass:
		var id uuid.UUID
		if b := m.string(); len(b) == 36 && parseUUID((*[36]byte)(b), &id) {
			return matchIf(id == *pointerTo[uuid.UUID](v))
		}
	case timeClass:
		if t, ok := ParseTime(m.string()); ok && t == *pointerTo[time.Time](v) {
			return same // times that are the same moment in the same zone can still differ
		}
	}
	return unknown
}

// numeric compares with a number.
func (m *matcher) numeric(c class, v reflect.Value) match {
	n, raw := m.number()
	switch c {
	case intClass:
		if i, ok := n.int64(raw); ok {
			return matchIf(i == v.Int())
		}
	case floatClass:
		if f, ok := n.float64(raw); ok {
			return matchIf(f == v.Float())
		}
	}
	return unknown
}

func (m *matcher) slice(v reflect.Value, wrapped bool) match {
	if v.IsNil() {
		return different
	}
	c, n := classOf(v.Type().Elem()), 0
	for more := m.open(']'); more; more = m.more(']') {
		if n == v.Len() {
			return different
		}
		element := v.Index(n)
		if wrapped && element.Field(planOf(element.Type()).fields[0].index).IsZero() {
			return unknown // it may be a wrapper
		}
		if found := m.value(c, element, false); found != same {
			return found
		}
		n++
	}
	return matchIf(n == v.Len())
}

// other compares with what a type that unmarshals itself makes of the next value.
func (m *matcher) other(v reflect.Value) match {
	start := m.i
	m.skip()
	raw := m.data[start:m.i]
	if v.Type() == numberType && startsNumber(raw[0]) {
		return matchIf(string(raw) == v.String())
	}
	decoded := reflect.New(v.Type())
	if u, ok := decoded.Interface().(json.Unmarshaler); !ok || u.UnmarshalJSON(raw) != nil {
		return unknown
	}
	return matchIf(equal(decoded.Elem(), v))
}
