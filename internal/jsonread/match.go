// Compares a value with its raw bytes, to find what the program changed.

package jsonread

import (
	"bytes"
	"encoding/json"
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
type matcher struct {
	scanner
	same int // how many elements of the list that was compared last are unchanged before another one
}

// object compares the struct at v with the next value.
func (m *matcher) object(p *encodingPlan, v place) match {
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
		if !v.value(p.variable).Field(i).IsZero() {
			return unknown
		}
	}
	if p.ref < 0 {
		return same
	}
	ref := p.refOf(v)
	if ref.doc == nil || ref.isWrapped() || !bytes.Equal(ref.Bytes(), m.data[start:m.i]) {
		return unknown
	}
	return same
}

// fields compares the fields of a struct with the next value, an object.
func (m *matcher) fields(p *encodingPlan, v place) match {
	var seen uint64
	next := 0
	for more := m.open('}'); more; more = m.more('}') {
		n := m.field(p, next)
		if n < 0 {
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
	m := matcher{scanner: value}
	m.skip()
	for more := m.more('}'); more; more = m.more('}') {
		if m.field(p, n) == n {
			return true
		}
		m.skip()
	}
	return false
}

// field reads a field's name and returns its index in the plan, -1 if it has none. It tries the
// likely one first.
func (m *matcher) field(p *encodingPlan, likely int) int {
	var f *field
	if len(m.data)-m.i > 2*ahead {
		here := bytesAt(m.data, m.i)
		if likely < len(p.fields) && p.plan.fields[likely].startsAt(here) {
			f = &p.plan.fields[likely]
		} else {
			f = p.findAt(here)
		}
	}
	if f == nil || f.long {
		if f = p.find(m.name()); f == nil {
			return -1
		}
	} else {
		m.i += int(f.length)
		m.space()
	}
	return int(f.number)
}

// absent compares field n of the struct at v with that of an object without it.
func (p *encodingPlan) absent(n int, v place) match {
	f := &p.fields[n]
	fv := v.field(f.offset)
	if f.hasDefault {
		return matchIf(f.isDefault(fv))
	}
	return matchIf(f.shape.isZero(fv) || f.shape.class == floatClass && *at[float64](fv) == 0)
}

// isDefault reports whether the field at v has its default.
func (f *encodedField) isDefault(v place) bool {
	switch f.shape.class {
	case boolClass:
		return *at[bool](v) == f.def.Bool()
	case stringClass:
		return *at[string](v) == f.def.String()
	default:
		return equal(f.def, v.value(f.variable))
	}
}

// fieldOf compares field n of the struct at v with the next value.
func (m *matcher) fieldOf(p *encodingPlan, n int, v place) match {
	f := &p.fields[n]
	fv := v.field(f.offset)
	switch {
	case f.union != nil:
		kind := &p.fields[p.kind]
		return m.union(f.union, fv, *at[string](v.field(kind.offset)))
	case f.shape.class == otherClass || m.peek() != 'n':
		return m.value(f.shape, fv, f.wrapped)
	case f.hasDefault && f.shape.class != pointerClass:
		m.literal("null")
		return matchIf(f.isDefault(fv))
	case f.shape.keepsRaw():
		return unknown
	}
	m.literal("null")
	return matchIf(f.shape.isZero(fv))
}

// union compares the variable of an interface type at v with the next value. discriminator is the
// value of the field that discriminates it.
func (m *matcher) union(u *union, v place, discriminator string) match {
	if m.peek() == 'n' {
		m.literal("null")
		return matchIf(v.isNil())
	}
	k, known := u.kinds[discriminator]
	if !known {
		k = u.unknown
	}
	to, ok := v.implementation(k.table)
	if !ok || known && m.peek() != '{' {
		return unknown
	}
	return m.object(encodingPlanOf(k.elem), to)
}

// value compares the value at v with the next value.
func (m *matcher) value(s *shape, v place, wrapped bool) match {
	next := m.peek()
	switch s.class {
	case pointerClass:
		return m.pointer(s, v)
	case objectClass:
		return m.object(s.plan, v)
	case rawClass:
		start := m.i
		m.skip()
		if next == 'n' { // it is decoded as absent
			return matchIf(v.isNil())
		}
		return matchIf(!v.isNil() && bytes.Equal(*at[[]byte](v), m.data[start:m.i]))
	case sliceClass:
		if next == '[' {
			return m.slice(s, v, wrapped)
		}
	case otherClass:
		return m.other(s, v)
	case boolClass:
		return m.bool(*at[bool](v))
	case stringClass, uuidClass, timeClass:
		if next == '"' {
			return m.text(s.class, v)
		}
	case intClass, floatClass:
		if startsNumber(next) {
			return m.numeric(s, v)
		}
	default:
	}
	return unknown // null, a map, or a value that does not fit
}

func (m *matcher) bool(v bool) match {
	switch m.peek() {
	case 't':
		m.literal("true")
		return matchIf(v)
	case 'f':
		m.literal("false")
		return matchIf(!v)
	}
	return unknown
}

func (m *matcher) pointer(s *shape, v place) match {
	switch {
	case m.peek() == 'n':
		m.literal("null")
		return matchIf(v.isNil())
	case v.isNil():
		return unknown // the value may not fit
	}
	return m.value(s.elem, v.target(), false)
}

// text compares with a string.
func (m *matcher) text(c class, v place) match {
	switch c {
	case stringClass:
		s := *at[string](v)
		// A string that is shared with the document has neither quotes nor escapes.
		if end := m.i + 1 + len(s); end < len(m.data) && m.data[end] == '"' && isTextAt(s, m.data, m.i+1) {
			m.i = end + 1
			return same
		}
		return matchIf(string(m.string()) == s)
	case uuidClass:
		var id uuid.UUID
		if b := m.string(); len(b) == 36 && parseUUID((*[36]byte)(b), &id) {
			return matchIf(id == *at[uuid.UUID](v))
		}
	case timeClass:
		if t, ok := ParseTime(m.string()); ok && t == *at[time.Time](v) {
			return same // times that are the same moment in the same zone can still differ
		}
	default:
	}
	return unknown
}

// numeric compares with a number.
func (m *matcher) numeric(s *shape, v place) match {
	n, raw := m.number()
	switch s.class {
	case intClass:
		if i, ok := n.int64(raw); ok {
			return matchIf(i == s.int(v))
		}
	case floatClass:
		if f, ok := n.float64(raw); ok {
			return matchIf(f == *at[float64](v))
		}
	default:
	}
	return unknown
}

func (m *matcher) slice(s *shape, v place, wrapped bool) match {
	if v.isNil() {
		return different
	}
	n, found := m.elements(s, at[list](v), wrapped)
	m.same = n
	return found
}

// elements compares the elements of a list, and returns how many are unchanged before another one.
func (m *matcher) elements(s *shape, l *list, wrapped bool) (n int, found match) {
	for more := m.open(']'); more; more = m.more(']') {
		if n == l.len {
			return n, different
		}
		element := l.element(n, s.elem.size)
		if wrapped {
			first := &s.elem.plan.fields[0]
			if first.shape.isZero(element.field(first.offset)) || s.elem.plan.refOf(element).isWrapped() {
				return n, unknown // what is next is or may be a wrapper
			}
		}
		if found := m.value(s.elem, element, false); found != same {
			return n, found
		}
		n++
	}
	return n, matchIf(n == l.len)
}

// other compares with what a type that unmarshals itself makes of the next value.
func (m *matcher) other(s *shape, v place) match {
	if s.compare != nil && m.peek() == '"' {
		return s.compare(m.string(), v)
	}
	start := m.i
	m.skip()
	raw := m.data[start:m.i]
	value := v.value(s.variable)
	if value.Type() == numberType && startsNumber(raw[0]) {
		return matchIf(string(raw) == value.String())
	}
	decoded := s.variable.new()
	if u, ok := decoded.Addr().Interface().(json.Unmarshaler); !ok || u.UnmarshalJSON(raw) != nil {
		return unknown
	}
	return matchIf(equal(decoded, value))
}
