// Encodes a decoded value: its raw bytes, with the program's changes on top.

package jsonread

import (
	"encoding/json"
	"math/bits"
	"reflect"
	"slices"
	"strconv"
	"strings"
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

//go:noinline // as copyTo
func matchIf(equal bool) match {
	if equal {
		return same
	}
	return different
}

// merger walks through raw bytes, which are valid, and the fields that were decoded from them side
// by side. It replaces the bytes of values that were changed, and nothing else. Values are compared
// without decoding the bytes; where that is not simple, such as with values that do not fit their
// type, the object is decoded once more.
type merger struct {
	scanner
	e      *encoder
	out    []byte
	copied int // the bytes before it are in out

	// The document of the values that are compared: an element of a list may have its own.
	doc    *Document
	base   int     // where it starts in data
	origin uintptr // the address of its bytes, less base: that of a string in it, less its place in data
	parts  []part  // those of data that are not passed yet
}

// decoded encodes a decoded struct.
func (e *encoder) decoded(out []byte, p *encodingPlan, v place, ref *Ref) ([]byte, error) {
	lo, hi := int(ref.span.Lo), int(ref.span.Hi)
	m := merger{e: e, out: out, copied: lo}
	m.i, m.data = lo, ref.doc.Data()
	if ref.doc.in.hasParts() {
		m.data, m.parts = ref.doc.in.joined(e.whole), ref.doc.in.rare.parts
		e.whole = nil
	}
	m.data = m.data[:hi]
	m.enter(ref.doc, 0)
	if err := m.object(p, v); err != nil {
		return nil, err
	}
	if len(m.out) == 0 { // unchanged, and all that is encoded
		if e.result = m.data[lo:]; !ref.doc.in.hasParts() {
			e.result = slices.Clone(e.result)
		}
		return out, nil
	}
	m.copyTo(hi)
	if ref.doc.in.hasParts() && cap(m.data) <= 16*maxReused {
		e.whole = m.data[:0]
	}
	return m.out, nil
}

// enter sets the document of the values that are compared, which starts at base. No string is
// shared with one that lacks parts, and some places in it are not among its bytes.
//
//go:noinline // as copyTo
func (m *merger) enter(doc *Document, base int) {
	m.doc, m.base, m.origin = doc, base, addressOf(doc.in.data)-uintptr(base)
	if doc.in.hasParts() {
		m.origin = addressOf(textOf(m.data))
	}
}

// copyTo writes the raw bytes up to end.
//
//go:noinline // or the compiler copies it into every caller
func (m *merger) copyTo(end int) {
	if m.copied < end {
		m.out = append(slices.Grow(m.out, len(m.data)-m.copied), m.data[m.copied:end]...)
		m.copied = end
	}
}

//go:noinline // as copyTo
func (m *merger) skip() {
	fast := FastScanner{Data: m.data, Pos: m.i}
	fast.Skip(0)
	m.i = fast.Pos
}

// more steps into an object or array, or from the end of a value to the next field or element or
// out of the object or array. It reports whether there is a next one.
func (m *merger) more() bool {
	i := skipSpace(m.data, m.i)
	before := m.data[i]
	m.i = i + 1
	if before == '}' || before == ']' {
		return false
	}
	m.i = skipSpace(m.data, i+1)
	if next := m.data[m.i]; before == ',' || next != '}' && next != ']' {
		return true
	}
	m.i++
	return false
}

// object merges the value that is next, from which the struct at v was decoded.
func (m *merger) object(p *encodingPlan, v place) error {
	if m.data[m.i] == '{' && !p.isAny() {
		return m.fields(p, v, nil)
	}
	start := m.i
	if m.skip(); p.isAny() {
		return nil
	}
	o := original{plan: p, now: v}
	before, err := o.value()
	if err != nil || equal(before, v.value(p.variable)) {
		return err
	}
	m.copyTo(start)
	m.copied = m.i
	m.out, err = m.e.plain(m.out, p, v)
	return err
}

// progress says how far the fields of an object are merged.
type progress struct {
	after uint   // the number of the last field plus 1
	seen  uint64 // a bit for each field
	end   int    // where the last field that is kept ends
	comma int    // 0 if there is such a field, 1 otherwise
}

// fields merges the fields of an object.
func (m *merger) fields(p *encodingPlan, v place, twice *repeated) (err error) {
	start, copied, written := m.i, m.copied, len(m.out)
	w := progress{end: start + 1, comma: 1}
	o := original{plan: p, now: v}
	for {
		var f *encodedField
		if twice == nil {
			f = m.pass(p, v, &w)
		}
		if f == nil {
			if !m.more() {
				return m.add(p, v, &w)
			}
			if found := p.find(m.scanner.name()); found != nil {
				f = &p.fields[found.number]
			}
		}
		stays := true
		switch {
		case f == nil:
			m.skip()
		case twice != nil && twice.last[f.number] != m.i:
			m.skip()
			stays = twice.same&f.bit != 0
		case w.seen&f.bit != 0 && twice == nil:
			m.i, m.copied, m.out = start, copied, m.out[:written]
			if twice, err = m.repeated(p, &o); err != nil {
				return err
			}
			return m.fields(p, v, twice)
		default:
			w.seen |= f.bit
			w.after = uint(f.number) + 1
			if stays, err = m.field(f, v.field(f.offset), &o); err != nil {
				return within(f.name, err)
			}
		}
		if stays {
			w.end, w.comma = m.i, 0
		} else {
			m.remove(w.end, w.comma == 0)
		}
	}
}

// pass steps over fields whose values are simple and unchanged, as long as they are written in the
// usual way, from the start of the object or the end of a value on. The merger is at the value of
// the field that it returns, or at the end of a value if that is nil. For most fields it calls no
// function, so that its variables stay in registers.
func (m *merger) pass(p *encodingPlan, v place, w *progress) (next *encodedField) {
	data, i, after, seen := m.data, m.i, w.after, w.seen
	fields, order := p.fields, m.e.orders.of(p.plan)
	start, value, last := i, i, len(data)-ahead-2
	for i <= last {
		here := bytesAt(data, i+1)
		if here[0] != '"' {
			break
		}
		n := order[after%(2*mostFields)]
		f := &fields[n]
		if !f.startsAt(here) {
			found := p.findAt(here)
			if found == nil {
				break
			}
			n = found.number
			order[after%(2*mostFields)], f = n, &fields[n]
		}
		bit := uint64(1) << (n % mostFields)
		if seen&bit != 0 || f.long && !f.isAt(data, i+1) {
			break
		}
		value = i + 1 + int(f.length)
		end := 0
		switch now := f.in(v); {
		case now == place{}:
			if data[value] == 'n' {
				end = value + len("null")
			}
		case f.class == stringClass:
			end = m.textEnd(data, value, *at[string](now))
		case f.class > stringClass:
			end = m.scalarEnd(f.to, value, now)
		}
		if end == 0 {
			next, value = f, skipSpace(data, value)
			break
		}
		seen |= bit
		after = uint(n) + 1
		i, value = end, end
	}
	if i > start {
		w.end, w.comma = i, 0
	}
	w.after, w.seen, m.i = after, seen, value
	return next
}

// isAt reports whether data has the whole name of a field at i, and more after it.
//
//go:noinline // few names are long
func (f *encodedField) isAt(data []byte, i int) bool {
	end := i + int(f.length)
	return end < len(data) && string(data[i:end]) == f.quoted[1:]
}

// in returns the place of the field in a struct, or of what it points to.
func (f *encodedField) in(v place) place {
	v = v.field(f.offset)
	if f.isPointer {
		v = v.target()
	}
	return v
}

// textEnd returns where the string at data[i] ends, if now is shared with it, and 0 otherwise. A
// string that is shared with the document has neither quotes nor escapes.
func (m *merger) textEnd(data []byte, i int, now string) int {
	end := i + len(now) + 1
	if end < len(data) && data[end] == '"' && data[i] == '"' && (addressOf(now) == m.origin+uintptr(i+1) || now == "") {
		return end + 1
	}
	return 0
}

// intEnd returns where the integer at data[i] ends, if it is now and has a usual form.
func intEnd(data []byte, i int, now int64) int {
	n, end := int64(0), min(len(data), i+18) // of which none overflows
	for ; i < end && data[i]-'0' < 10; i++ {
		n = n*10 + int64(data[i]-'0')
	}
	if n != now || i == end || data[i] != ',' && data[i] != '}' {
		return 0
	}
	return i
}

// scalarEnd returns where the value at i ends, if it is that at now, and 0 otherwise or if it is
// null.
func (m *merger) scalarEnd(s *shape, i int, now place) int {
	next := m.data[i]
	if s.class == intClass {
		if end := intEnd(m.data, i, s.int(now)); end != 0 {
			return end
		}
	}
	if m.i = i; next != 'n' && m.simple(s, now, next) == same {
		return m.i
	}
	return 0
}

// remove leaves out the field that ends here, and one of the commas around it. The field before it
// ends at end, or the object has none if kept is false.
func (m *merger) remove(end int, kept bool) {
	m.copyTo(end)
	m.copied = m.i
	if next := skipSpace(m.data, m.i); !kept && m.data[next] == ',' {
		m.copied = skipSpace(m.data, next+1)
	}
}

// add writes the fields of the struct at v that are not seen in its object and have another value
// than an absent field.
func (m *merger) add(p *encodingPlan, v place, w *progress) (err error) {
	for missing := p.all &^ w.seen; missing != 0; missing &= missing - 1 {
		f := &p.fields[bits.TrailingZeros64(missing)]
		to := v.field(f.offset)
		if f.isAbsent(to) || f.clears(to) {
			continue
		}
		m.copyTo(w.end)
		m.out = append(m.out, f.quoted[w.comma:]...)
		w.comma = 0
		if m.out, err = m.e.field(m.out, f, to); err != nil {
			return within(f.name, err)
		}
	}
	return nil
}

// isAbsent reports whether the field at v is as in a struct that was decoded from an object without
// it.
func (f *encodedField) isAbsent(v place) bool {
	if f.hasDefault {
		return f.isDefault(v)
	}
	return f.shape.isZero(v) || f.shape.class == floatClass && *at[float64](v) == 0
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

// repeated is what is known of an object that has names more than once: where the last value of
// each field is, which counts, and which fields are unchanged.
type repeated struct {
	last [mostFields]int
	same uint64
}

func (m *merger) repeated(p *encodingPlan, o *original) (*repeated, error) {
	before, err := o.value()
	if err != nil {
		return nil, err
	}
	var r repeated
	start := m.i
	for m.more() {
		if f := p.find(m.scanner.name()); f != nil {
			r.last[f.number] = m.i
		}
		m.skip()
	}
	m.i = start
	for n := range p.fields {
		f := &p.fields[n]
		if equal(before.Field(f.index), o.now.field(f.offset).value(f.variable)) {
			r.same |= f.bit
		}
	}
	return &r, nil
}

// original is a decoded struct as it was before the program changed it, decoded when it is needed.
type original struct {
	plan    *encodingPlan
	now     place
	decoded reflect.Value
}

func (o *original) value() (reflect.Value, error) {
	if o.decoded.IsValid() {
		return o.decoded, nil
	}
	o.decoded = o.plan.variable.new()
	return o.decoded, o.plan.refOf(o.now).decodeOriginal(o.decoded)
}

//go:noinline // as copyTo
func equal(a, b reflect.Value) bool { return reflect.DeepEqual(a.Interface(), b.Interface()) }

// field merges a field whose value is at now. It reports whether the field stays.
func (m *merger) field(f *encodedField, now place, o *original) (stays bool, err error) {
	start, copied, written := m.i, m.copied, len(m.out)
	found, err := m.ofField(f, now)
	if found == same || err != nil {
		return true, err
	}
	m.i, m.copied, m.out = start, copied, m.out[:written]
	m.skip()
	if found == unknown {
		before, err := o.value()
		if err != nil || equal(before.Field(f.index), now.value(f.variable)) {
			return true, err
		}
	}
	if f.clears(now) {
		return false, nil
	}
	m.copyTo(start)
	m.copied = m.i
	return true, m.changed(f, m.data[start:m.i], o, now)
}

// changed encodes the value at now of a field that the program changed.
func (m *merger) changed(f *encodedField, raw []byte, o *original, now place) (err error) {
	isSlice := f.shape.class == sliceClass && !now.isNil()
	isMap := f.shape.class == mapClass && !now.isNil() && raw[0] == '{'
	if !isSlice && !isMap {
		m.out, err = m.e.field(m.out, f, now)
		return err
	}
	before, err := o.value()
	switch {
	case err != nil:
	case isMap:
		m.out, err = m.e.changedMap(m.out, raw, before.Field(f.index), now.value(f.variable))
	default:
		m.out, err = m.e.changedSlice(m.out, f, raw, before.Field(f.index), now)
	}
	return err
}

// ofField merges the value of a field at v.
func (m *merger) ofField(f *encodedField, v place) (match, error) {
	if m.data[m.i] != 'n' || f.shape.class == otherClass || f.shape.keepsRaw() {
		return m.value(f.shape, v, f.wrapped)
	}
	m.i += len("null")
	if f.hasDefault && f.shape.class != pointerClass {
		return matchIf(f.isDefault(v)), nil
	}
	return matchIf(f.shape.isZero(v)), nil
}

// value merges the value at v. After another result than same the merger may be anywhere in it.
func (m *merger) value(s *shape, v place, wrapped bool) (match, error) {
	next := m.data[m.i]
	if s.class == pointerClass {
		switch {
		case next == 'n':
			m.i += len("null")
			return matchIf(v.isNil()), nil
		case v.isNil():
			return unknown, nil // the value may not fit
		}
		s, v, wrapped = s.elem, v.target(), false
	}
	switch {
	case s.class == objectClass:
		return m.structure(s.plan, v, wrapped)
	case s.class == sliceClass && next == '[':
		return m.elements(s.elem, at[list](v), wrapped)
	case s.class == interfaceClass && next != 'n':
		if to := v.value(s.variable).Elem(); to.Kind() == reflect.Pointer && !to.IsNil() {
			return m.value(shapeOf(to.Type().Elem()), placeOf(to.Elem()), false)
		}
	}
	return m.simple(s, v, next), nil
}

// structure merges the struct at v, if it was decoded from the value that is next.
func (m *merger) structure(p *encodingPlan, v place, wrapped bool) (match, error) {
	if p.ref < 0 {
		return unknown, nil
	}
	ref := p.refOf(v)
	switch {
	case ref.doc == nil && m.data[m.i] == '{':
		return different, nil
	case ref.doc == nil:
		return unknown, nil // it may be a value that is skipped
	case ref.doc == m.doc && int(ref.span.Lo)+m.base == m.i:
		return same, m.object(p, v)
	}
	// It has a document of its own, or was moved here and has the same bytes.
	own, base := ref.Bytes(), m.i-int(ref.span.Lo)
	if wrapped && ref.isWrapped() {
		own, base = ref.doc.Data(), m.i
	}
	end := m.i + len(own)
	if !m.isPart(ref.doc, len(own)) {
		if end > len(m.data) || string(m.data[m.i:end]) != string(own) {
			return different, nil
		}
		if startsNumber(own[0]) && end < len(m.data) && strings.IndexByte(" \t\r\n,]}", m.data[end]) < 0 {
			return different, nil // 1 of 12
		}
	}
	outer, start := m.doc, m.base
	m.enter(ref.doc, base)
	m.i = base + int(ref.span.Lo)
	err := m.object(p, v)
	m.enter(outer, start)
	m.i = end
	return same, err
}

// isPart reports whether the document is the part of data that is next and has so many bytes.
func (m *merger) isPart(doc *Document, size int) bool {
	for len(m.parts) > 0 && m.parts[0].at < m.i {
		m.parts = m.parts[1:]
	}
	return len(m.parts) > 0 && m.parts[0] == part{m.i, doc} && len(doc.in.data) == size
}

// objects merges a list of structs that keep their raw bytes. From the first element on that was
// not decoded from the one that is next, it writes them one by one.
func (m *merger) objects(elem *shape, l *list, wrapped bool) (err error) {
	n, end := 0, m.i+1
	more := m.more()
	for ; more && n < l.len; more = m.more() {
		found, err := m.structure(elem.plan, l.element(n, elem.size), wrapped)
		if err != nil {
			return within(strconv.Itoa(n), err)
		}
		if found != same {
			break
		}
		n++
		end = m.i
	}
	if !more && n == l.len {
		return nil
	}
	for ; more; more = m.more() {
		m.skip()
	}
	m.copyTo(end)
	m.copied = m.i - 1
	m.out, err = m.e.elements(m.out, elem, l, n, wrapped)
	return err
}

// elements merges the elements of a list.
func (m *merger) elements(elem *shape, l *list, wrapped bool) (match, error) {
	switch {
	case l.place().isNil():
		return different, nil
	case elem.keepsRaw():
		return same, m.objects(elem, l, wrapped)
	}
	n := 0
	for ; m.more(); n++ {
		if n == l.len {
			return different, nil
		}
		if found, err := m.value(elem, l.element(n, elem.size), false); found != same {
			return found, err
		}
	}
	return matchIf(n == l.len), nil
}

// simple compares the value at v, which has no parts of its own. Null is as zero. The result is
// unknown for others, and for what does not fit.
func (m *merger) simple(s *shape, v place, next byte) match {
	switch {
	case s.class > boolClass:
		return m.scalar(s, v)
	case s.class == stringClass && next == '"':
		now := *at[string](v)
		if end := m.textEnd(m.data, m.i, now); end != 0 {
			m.i = end
			return same
		}
		return matchIf(string(m.scanner.string()) == now)
	case s.class == boolClass && (next == 't' || next == 'f'):
		m.i += len("true")
		if next == 'f' {
			m.i++
		}
		return matchIf(*at[bool](v) == (next == 't'))
	case s.compare != nil && next == '"':
		return s.compare(m.scanner.string(), v)
	case s.class == rawClass, s.class == otherClass:
		start := m.i
		m.skip()
		return m.other(s, v, m.data[start:m.i])
	}
	return unknown // a list, a map or a struct
}

// scalar compares the number, time or UUID at v.
func (m *merger) scalar(s *shape, v place) (found match) {
	fast := FastScanner{Data: m.data, Pos: m.i}
	switch s.class {
	case uuidClass:
		var id uuid.UUID
		if fast.UUID(&id) {
			found = matchIf(id == *at[uuid.UUID](v))
		}
	case timeClass:
		var t time.Time
		if fast.Time(&t, &m.e.dates) && t == *at[time.Time](v) {
			found = same // times that are the same moment in the same zone can still differ
		}
	case intClass:
		var i int64
		if fast.Int64(&i) {
			found = matchIf(i == s.int(v))
		}
	case floatClass:
		var f float64
		if fast.Float64(&f) {
			found = matchIf(f == *at[float64](v))
		}
	default: // json.Number
		if fast.Skip(0); startsNumber(m.data[m.i]) {
			found = matchIf(string(m.data[m.i:fast.Pos]) == *at[string](v))
		}
	}
	m.i = fast.Pos
	return found
}

// other compares with raw JSON, or what a type that unmarshals itself makes of it.
func (m *merger) other(s *shape, v place, raw []byte) match {
	switch {
	case s.class == rawClass && raw[0] == 'n': // it is decoded as absent
		return matchIf(v.isNil())
	case s.class == rawClass:
		return matchIf(!v.isNil() && string(*at[[]byte](v)) == string(raw))
	}
	decoded := s.variable.new()
	if u, ok := decoded.Addr().Interface().(json.Unmarshaler); !ok || u.UnmarshalJSON(raw) != nil {
		return unknown
	}
	return matchIf(equal(decoded, v.value(s.variable)))
}

// changedMap encodes a changed map: the values that are unchanged are written as their raw bytes.
func (e *encoder) changedMap(out, raw []byte, original, now reflect.Value) ([]byte, error) {
	unchanged := map[string][]byte{}
	for name, value := range Fields(raw) {
		key := keyOf(string(name), now)
		delete(unchanged, string(name)) // of duplicate names the last value counts
		if v := now.MapIndex(key); v.IsValid() && equal(original.MapIndex(key), v) {
			unchanged[string(name)] = value
		}
	}
	return e.mapFields(out, now, unchanged)
}

// changedSlice encodes a changed list: elements that are unchanged are written as their raw bytes,
// also at another index.
func (e *encoder) changedSlice(out []byte, f *encodedField, raw []byte, original reflect.Value, now place) (_ []byte, err error) {
	l, elem := at[list](now), f.shape.elem
	elements := slices.Collect(Elements(raw))
	out = append(out, '[')
	first := len(out)
	for i, from := range sources(original, now.value(f.variable)) {
		out = appendComma(out, first)
		if from >= 0 && from < len(elements) { // elements are others if the name comes again, and this is rolled back
			out = append(out, elements[from]...)
		} else if out, err = e.element(out, elem, l.element(i, elem.size), f.wrapped); err != nil {
			return nil, within(strconv.Itoa(i), err)
		}
	}
	return append(out, ']'), nil
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
	elem := now.Type().Elem()
	if elem.Kind() == reflect.Pointer { // they are others, but may point to the same
		elem = elem.Elem()
	}
	if isObject(elem) || !elem.Comparable() {
		return from
	}
	indexes := map[any][]int{}
	for j := head; j < m-tail; j++ {
		e := valueOf(original.Index(j))
		indexes[e] = append(indexes[e], j)
	}
	for i := head; i < n-tail; i++ {
		e := valueOf(now.Index(i))
		if found := indexes[e]; len(found) > 0 {
			from[i], indexes[e] = found[0], found[1:]
		}
	}
	return from
}

// valueOf returns the value that v has or points to, nil for a nil pointer.
func valueOf(v reflect.Value) any {
	if v = reflect.Indirect(v); !v.IsValid() {
		return nil
	}
	return v.Interface()
}
