// The fast scanner, which reports only whether a document is valid.

package jsonread

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/google/uuid"
)

// FastScanner scans a document of which most values are skipped. Its methods report false for what
// is not JSON, and for what they leave to the decoder: the caller then decodes the document with
// [Document.Read], which says what is wrong. It accepts the same documents as [Valid]. The methods
// that decode a value leave their result alone at null.
type FastScanner struct {
	Data []byte // at most MaxSize bytes
	Pos  int    // index of the next byte

	shared bool // strings are parts of Data
}

// Share makes the strings that [FastScanner.Text] returns from now on parts of the document, which
// nobody changes any more. Strings of a large document are copied, so that one of them does not
// keep it all.
func (s *FastScanner) Share() { s.shared = len(s.Data) <= mostKept }

// Shared reports whether strings are parts of the document.
func (s *FastScanner) Shared() bool { return s.shared }

// Text returns the string of which [FastScanner.String] returned the content.
func (s *FastScanner) Text(content Span, escaped bool) string {
	switch {
	case escaped:
		text, _ := String(s.Data[content.Lo-1 : content.Hi+1])
		return text
	case s.shared:
		return textOf(content.Of(s.Data))
	}
	return string(content.Of(s.Data))
}

// Span is a part of a document: the bytes from Lo to before Hi.
type Span struct{ Lo, Hi uint32 }

// Of returns the bytes of the span.
func (s Span) Of(data []byte) []byte { return data[s.Lo:s.Hi] }

// Len returns the number of bytes.
func (s Span) Len() int { return int(s.Hi - s.Lo) }

// Space steps over whitespace.
//
//go:noinline // as grow of orders
func (s *FastScanner) Space() { s.Pos = skipSpace(s.Data, s.Pos) }

// Peek returns the next byte, 0 at the end.
func (s *FastScanner) Peek() byte {
	if s.Pos < len(s.Data) {
		return s.Data[s.Pos]
	}
	return 0
}

// accept steps over c, if it is next.
func (s *FastScanner) accept(c byte) bool {
	if s.Pos < len(s.Data) && s.Data[s.Pos] == c {
		s.Pos++
		return true
	}
	return false
}

// literal steps over true, false or null.
func (s *FastScanner) literal(word string) bool {
	if end := s.Pos + len(word); end <= len(s.Data) && string(s.Data[s.Pos:end]) == word {
		s.Pos = end
		return true
	}
	return false
}

// Null steps over null.
func (s *FastScanner) Null() bool { return s.literal("null") }

// SkipEqual steps over the next bytes if they equal those of an earlier span.
func (s *FastScanner) SkipEqual(earlier Span) bool {
	if end := s.Pos + earlier.Len(); end <= len(s.Data) && string(s.Data[s.Pos:end]) == string(earlier.Of(s.Data)) {
		s.Pos = end
		return true
	}
	return false
}

// String steps over a string. The span is what its quotes enclose, with escapes if escaped is true.
func (s *FastScanner) String() (content Span, escaped, ok bool) {
	data, lo := s.Data, s.Pos+1
	if s.Pos >= len(data) || data[s.Pos] != '"' {
		return Span{}, false, false
	}
	rest, n := data[lo:], 0
	for ; n <= len(rest)-8; n += 8 {
		if found := special(binary.LittleEndian.Uint64(rest[n:])); found != 0 {
			n += bits.TrailingZeros64(found) / 8
			if n < len(rest) && rest[n] == '"' {
				s.Pos = lo + n + 1
				return Span{uint32(lo), uint32(lo + n)}, false, true
			}
			break
		}
	}
	end, escaped, err := skipString(data, lo+n)
	if err != nil {
		return Span{}, false, false
	}
	s.Pos = end
	return Span{uint32(lo), uint32(end - 1)}, escaped, true
}

// Int64 decodes an integer or null.
func (s *FastScanner) Int64(to *int64) bool {
	if s.Peek() == 'n' {
		return s.Null()
	}
	n, ok := scanNumber(s.Data, s.Pos)
	if !ok {
		return false
	}
	start := s.Pos
	s.Pos = n.end
	if *to, ok = n.integer(); ok { // the most frequent form needs no call
		return true
	}
	*to, ok = n.int64(s.Data[start:n.end])
	return ok
}

// Float64 decodes a number or null.
func (s *FastScanner) Float64(to *float64) bool {
	if s.Peek() == 'n' {
		return s.Null()
	}
	n, ok := scanNumber(s.Data, s.Pos)
	if !ok {
		return false
	}
	start := s.Pos
	s.Pos = n.end
	if *to, ok = n.exact(); ok { // the most frequent form needs no call
		return true
	}
	*to, ok = n.float64(s.Data[start:n.end])
	return ok
}

// Number decodes a number or null, and sets rounded if [Rounds] reports so.
func (s *FastScanner) Number(to *float64, rounded *bool) bool {
	if s.Peek() == 'n' {
		return s.Null()
	}
	n, ok := scanNumber(s.Data, s.Pos)
	if !ok {
		return false
	}
	start := s.Pos
	s.Pos = n.end
	if *to, ok = n.exact(); ok && n.mantissa < 1<<52 { // as most are: it has up to 15 digits
		return true
	}
	raw := s.Data[start:n.end]
	if *to, ok = n.float64(raw); ok {
		*rounded = n.rounds(raw, *to)
	}
	return ok
}

// UUID decodes a UUID or null.
func (s *FastScanner) UUID(to *uuid.UUID) bool {
	if len(s.Data) < s.Pos+38 || s.Data[s.Pos] != '"' {
		return s.Null()
	}
	quoted := (*[38]byte)(s.Data[s.Pos:])
	s.Pos += len(quoted)
	return quoted[37] == '"' && parseUUID((*[36]byte)(quoted[1:]), to)
}

// Open steps into the object or array that is next and reports whether it has a field or element.
func (s *FastScanner) Open(closing byte) (more bool) {
	s.Pos++
	s.Space()
	return !s.accept(closing)
}

// More steps to the next field or element, or out of the object or array, and reports whether there
// is a next one.
func (s *FastScanner) More(closing byte) (more, ok bool) {
	if data, i := s.Data, s.Pos; i+1 < len(data) && data[i] == ',' && data[i+1] > ' ' {
		s.Pos = i + 1
		return true, true
	}
	s.Space()
	if !s.accept(',') {
		return false, s.accept(closing)
	}
	s.Space()
	return true, true
}

// colon steps over the colon after a field's name.
func (s *FastScanner) colon() bool {
	if data, i := s.Data, s.Pos; i+1 < len(data) && data[i] == ':' && data[i+1] > ' ' {
		s.Pos = i + 1
		return true
	}
	s.Space()
	if !s.accept(':') {
		return false
	}
	s.Space()
	return true
}

// name steps over a field's name without escapes and the colon.
func (s *FastScanner) name() (name []byte, ok bool) {
	content, escaped, ok := s.String()
	if !ok || escaped || !s.colon() {
		return nil, false
	}
	return content.Of(s.Data), true
}

// Skip steps over a value that is inside depth objects and arrays.
func (s *FastScanner) Skip(depth int) bool {
	switch s.Peek() {
	case '"':
		_, _, ok := s.String()
		return ok
	case '{':
		return depth < MaxDepth && s.skipFields(s.Open('}'), depth, nil)
	case '[':
		return depth < MaxDepth && s.skipElements(depth)
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	}
	var ok bool
	s.Pos, ok = skipNumber(s.Data, s.Pos)
	return ok
}

// skipElements steps over an array that is inside depth objects and arrays.
func (s *FastScanner) skipElements(depth int) bool {
	more := s.Open(']')
	if more && s.Peek() == '{' {
		return s.skipObjects(depth + 1)
	}
	for more {
		if !s.Skip(depth + 1) {
			return false
		}
		var ok bool
		if more, ok = s.More(']'); !ok {
			return false
		}
	}
	return true
}

// skipFields steps over the rest of an object that is inside depth objects and arrays, from a
// field's name on if more is true. It stores the spans of the values in t, if that is not nil.
func (s *FastScanner) skipFields(more bool, depth int, t *template) bool {
	for more {
		if _, _, ok := s.String(); !ok || !s.colon() {
			return false
		}
		start := s.Pos
		if !s.Skip(depth + 1) {
			return false
		}
		if t != nil {
			t.add(Span{uint32(start), uint32(s.Pos)})
		}
		var ok bool
		if more, ok = s.More('}'); !ok {
			return false
		}
	}
	return true
}

// Count returns the number of elements of the array whose first element is next, without moving the
// scanner. In invalid JSON it counts up to the error.
func (s FastScanner) Count() (n int) {
	for more := true; more; n++ {
		if !s.Skip(0) {
			return n
		}
		more, _ = s.More(']')
	}
	return n
}

// Lookup returns the value of the last field with the name, nil if there is none or the value is no
// object. It must be valid.
func Lookup(value []byte, name string) (found []byte) {
	s := FastScanner{Data: value}
	if s.Peek() != '{' {
		return nil
	}
	for more := s.Open('}'); more; {
		field, ok := s.name()
		if !ok { // a name with escapes
			return lookupEscaped(value, name)
		}
		start := s.Pos
		s.Skip(0)
		if string(field) == name {
			found = value[start:s.Pos]
		}
		more, _ = s.More('}')
	}
	return found
}

// ReplaceField returns an object with another value of the first field with the name. The object is
// valid and has no escapes in its names.
func ReplaceField(object []byte, name, value string) []byte {
	s := FastScanner{Data: object}
	for more := s.Open('}'); more; {
		field, _ := s.name()
		start := s.Pos
		s.Skip(0)
		if string(field) == name {
			return slices.Concat(object[:start], []byte(value), object[s.Pos:])
		}
		more, _ = s.More('}')
	}
	return object
}

func lookupEscaped(value []byte, name string) (found []byte) {
	for field, v := range Fields(value) {
		if string(field) == name {
			found = v
		}
	}
	return found
}

// FieldNames are the names of the fields that an object is expected to have, in their most frequent
// order.
type FieldNames []fieldName

// fieldName is a name, and how it stands in a document.
type fieldName struct {
	key
	quoted string // the name with its colon
}

// NewFieldNames returns the names, which have at most 21 bytes.
func NewFieldNames(names ...string) FieldNames {
	list := make(FieldNames, len(names))
	for n, name := range names {
		if list[n] = (fieldName{newKey(name), `"` + name + `":`}); list[n].long {
			panic("jsonread: a long name: " + name)
		}
	}
	return list
}

// Index returns the index of a name, the number of names if it is not among them.
func (f FieldNames) Index(name []byte) (n int) {
	for n < len(f) && f[n].quoted[1:len(f[n].quoted)-2] != string(name) {
		n++
	}
	return n
}

// FirstField steps into the object that is next and over its first field's name without escapes
// and the colon. It returns the name's index as [FieldNames.Index] does, -1 if there is no field:
// the scanner is after the object then.
func (s *FastScanner) FirstField(names FieldNames) (n int, ok bool) {
	if s.Peek() != '{' {
		return 0, false
	}
	if !s.Open('}') {
		return -1, true
	}
	return s.Field(names, 0)
}

// NextField steps from the end of a value over the comma, the next field's name without escapes and
// the colon, and returns what [FastScanner.FirstField] does. It tries the likely name first.
func (s *FastScanner) NextField(names FieldNames, likely int) (n int, ok bool) {
	if rest := s.Data[s.Pos:]; len(rest) > 25 && rest[0] == ',' {
		if n := names.find(rest[1:], likely); n < len(names) {
			s.Pos++
			s.enter(&names[n])
			return n, true
		}
	}
	more, ok := s.More('}')
	if !more {
		return -1, ok
	}
	return s.Field(names, likely)
}

// Field steps over a field's name without escapes and the colon, and returns the name's index as
// [FieldNames.Index] does. It tries the likely one first, then those after it.
func (s *FastScanner) Field(names FieldNames, likely int) (n int, ok bool) {
	if rest := s.Data[s.Pos:]; len(rest) > 24 {
		if n := names.find(rest, likely); n < len(names) {
			s.enter(&names[n])
			return n, true
		}
	}
	name, ok := s.name()
	return names.Index(name), ok
}

// find returns the index of the name that rest, of more than 24 bytes, starts with: likely or one
// after it, or the number of names if it is none of them.
func (f FieldNames) find(rest []byte, likely int) int {
	here := (*[ahead]byte)(rest)
	for likely < len(f) && !f[likely].startsAt(here) {
		likely++
	}
	return likely
}

// enter steps over a name that is next to the field's value.
func (s *FastScanner) enter(name *fieldName) {
	s.Pos += len(name.quoted)
	if s.Data[s.Pos] <= ' ' {
		s.Space()
	}
}
