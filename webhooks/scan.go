package webhooks

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// scanner steps over JSON text. Where its methods report false, the text is not JSON or is something that they leave to the
// general reader, which then says what it is.
type scanner struct {
	text []byte
	i    int
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

func (s *scanner) space() {
	text, i := s.text, s.i
	for i < len(text) && text[i] <= ' ' && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r') {
		i++
	}
	s.i = i
}

// is steps over c, if it stands here.
func (s *scanner) is(c byte) bool {
	if s.i < len(s.text) && s.text[s.i] == c {
		s.i++
		return true
	}
	return false
}

// has steps over word, if it stands here.
func (s *scanner) has(word string) bool {
	if end := s.i + len(word); end <= len(s.text) && string(s.text[s.i:end]) == word {
		s.i = end
		return true
	}
	return false
}

// at is the byte here, 0 at the end.
func (s *scanner) at() byte {
	if s.i < len(s.text) {
		return s.text[s.i]
	}
	return 0
}

// str steps over the string here. It is text[lo:hi] between its quotes, with escapes still in it if escaped is true.
func (s *scanner) str() (lo, hi int, escaped, ok bool) {
	text, lo := s.text, s.i+1
	if s.i >= len(text) || text[s.i] != '"' {
		return 0, 0, false, false
	}
	rest, n := text[lo:], 0
	for ; n <= len(rest)-8; n += 8 {
		if special := jsonread.Special(binary.LittleEndian.Uint64(rest[n:])); special != 0 {
			n += bits.TrailingZeros64(special) / 8
			if n < len(rest) && rest[n] == '"' {
				s.i = lo + n + 1
				return lo, lo + n, false, true
			}
			break
		}
	}
	return s.anyStr(lo, n)
}

// anyStr is str from text[lo+n] on, byte by byte.
func (s *scanner) anyStr(lo, n int) (_, hi int, escaped, ok bool) {
	text := s.text
	for i := lo + n; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			s.i = i + 1
			return lo, i, escaped, true
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRune(text[i:])
			if r == utf8.RuneError && n == 1 {
				return 0, 0, false, false
			}
			i += n
		case c == '\\':
			escaped = true
			n := escape(text[i:])
			if n == 0 {
				return 0, 0, false, false
			}
			i += n
		case c < ' ':
			return 0, 0, false, false
		default:
			i++
		}
	}
	return 0, 0, false, false
}

// escape returns how long the escape is that text begins with, 0 if it is none.
func escape(text []byte) int {
	if len(text) < 2 {
		return 0
	}
	switch text[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(text) < 6 {
			return 0
		}
		for _, c := range text[2:6] {
			if c-'0' > 9 && c|0x20-'a' > 5 {
				return 0
			}
		}
		return 6
	}
	return 0
}

// number steps over the number here.
func (s *scanner) number() bool {
	text, i := s.text, s.i
	if i < len(text) && text[i] == '-' {
		i++
	}
	first := i
	for i < len(text) && text[i]-'0' < 10 {
		i++
	}
	if i == first || i > first+1 && text[first] == '0' {
		return false
	}
	if i < len(text) && text[i] == '.' {
		i++
		first = i
		for i < len(text) && text[i]-'0' < 10 {
			i++
		}
		if i == first {
			return false
		}
	}
	if i < len(text) && text[i]|0x20 == 'e' {
		i++
		if i < len(text) && (text[i] == '+' || text[i] == '-') {
			i++
		}
		first = i
		for i < len(text) && text[i]-'0' < 10 {
			i++
		}
		if i == first {
			return false
		}
	}
	s.i = i
	return true
}

// key steps over a member's name, without escapes, and the colon.
func (s *scanner) key() (name []byte, ok bool) {
	lo, hi, escaped, ok := s.str()
	if !ok || escaped || !s.colon() {
		return nil, false
	}
	return s.text[lo:hi], true
}

// colon steps over the colon behind a member's name.
func (s *scanner) colon() bool {
	if text, i := s.text, s.i; i+1 < len(text) && text[i] == ':' && text[i+1] > ' ' {
		s.i = i + 1
		return true
	}
	s.space()
	if !s.is(':') {
		return false
	}
	s.space()
	return true
}

// member is the name of a member that is expected.
type member struct {
	name string // as it stands in a text, with its quotes and colon
	// The first 24 bytes, and which of them belong to the name: it is compared with eight bytes at once.
	bytes, mask [3]uint64
}

// expected are members by their names, which have at most 21 bytes.
func expected(names ...string) []member {
	list := make([]member, len(names))
	for n, name := range names {
		m := &list[n]
		m.name = `"` + name + `":`
		var bytes, mask [24]byte
		for i := range m.name {
			bytes[i], mask[i] = m.name[i], 0xff
		}
		for i := range m.bytes {
			m.bytes[i], m.mask[i] = binary.LittleEndian.Uint64(bytes[8*i:]), binary.LittleEndian.Uint64(mask[8*i:])
		}
	}
	return list
}

// oneOf steps over a member's name, without escapes, and the colon. The name is that of names[n], or of none if n is len(names).
// The one that is likely is looked for first, as members mostly come in the same order.
func (s *scanner) oneOf(names []member, likely int) (n int, ok bool) {
	if rest := s.text[s.i:]; len(rest) > 24 && likely < len(names) {
		m := &names[likely]
		if (binary.LittleEndian.Uint64(rest)^m.bytes[0])&m.mask[0]|
			(binary.LittleEndian.Uint64(rest[8:])^m.bytes[1])&m.mask[1]|
			(binary.LittleEndian.Uint64(rest[16:])^m.bytes[2])&m.mask[2] == 0 {
			s.i += len(m.name)
			if s.text[s.i] <= ' ' {
				s.space()
			}
			return likely, true
		}
	}
	name, ok := s.key()
	for n < len(names) && names[n].name[1:len(names[n].name)-2] != string(name) {
		n++
	}
	return n, ok
}

// more steps over what follows a member or element: more is true at the next one, false behind the closing one.
func (s *scanner) more(closing byte) (more, ok bool) {
	if text, i := s.text, s.i; i+1 < len(text) && text[i] == ',' && text[i+1] > ' ' {
		s.i = i + 1
		return true, true
	}
	s.space()
	if !s.is(',') {
		return false, s.is(closing)
	}
	s.space()
	return true, true
}

// open steps into an object or array that stands here: more is false if it is empty.
func (s *scanner) open(closing byte) (more bool) {
	s.i++
	s.space()
	return !s.is(closing)
}

// skip steps over the value here, which is inside depth objects and arrays.
func (s *scanner) skip(depth int) bool {
	switch s.at() {
	case '"':
		_, _, _, ok := s.str()
		return ok
	case '{':
		return depth < jsonread.MaxDepth && s.members(s.open('}'), depth, nil)
	case '[':
		if depth >= jsonread.MaxDepth {
			return false
		}
		more := s.open(']')
		if more && s.at() == '{' {
			return s.objects(depth + 1)
		}
		for more {
			if !s.skip(depth + 1) {
				return false
			}
			var ok bool
			if more, ok = s.more(']'); !ok {
				return false
			}
		}
		return true
	case 't':
		return s.has("true")
	case 'f':
		return s.has("false")
	case 'n':
		return s.has("null")
	}
	return s.number()
}

// members steps over the rest of an object that is inside depth objects and arrays, from a name on if more is true. If m is not
// nil, it notes where the values are.
func (s *scanner) members(more bool, depth int, m *model) bool {
	for more {
		if _, _, _, ok := s.str(); !ok || !s.colon() {
			return false
		}
		value := s.i
		if !s.skip(depth + 1) {
			return false
		}
		if m != nil {
			if m.n < len(m.values) {
				m.values[m.n] = span{uint32(value), uint32(s.i)}
			}
			m.n++
		}
		var ok bool
		if more, ok = s.more('}'); !ok {
			return false
		}
	}
	return true
}

// model is an object that others of its array are compared with.
type model struct {
	span            // its hi is 0 if there is no model
	values [16]span // of its members
	n      int      // members it has
}

// span is where something is in the text.
type span struct{ lo, hi uint32 }

// objects steps over the rest of an array from here on, where an object stands, inside depth objects and arrays. Objects of an
// array look alike, so each is compared with one before it.
func (s *scanner) objects(depth int) bool {
	var m model
	for more := true; more; {
		start := s.i
		var ok bool
		switch {
		case s.at() != '{':
			ok = s.skip(depth)
		case depth >= jsonread.MaxDepth:
			return false
		case m.hi > 0:
			ok = s.like(&m, depth)
		default:
			m.n = 0
			ok = s.members(s.open('}'), depth, &m)
			if m.n <= len(m.values) {
				m.span = span{uint32(start), uint32(s.i)}
			}
		}
		if !ok {
			return false
		}
		if more, ok = s.more(']'); !ok {
			return false
		}
	}
	return true
}

// like steps over an object that is compared with the model: what is the same needs no second look, and where the two differ in a
// value, only the value is stepped over. That is as strict as a look at every byte: the text between two values of the model
// led from behind the one to the other, and where the same text follows a value of an object of that array, it does so again.
// It never goes back to step over something once more, which in nested objects would double the time with each level.
func (s *scanner) like(m *model, depth int) bool {
	text, i, at := s.text, s.i, int(m.lo) // at is in the model where i is in the object
	for k := 0; ; k++ {
		n := same(text[at:m.hi], text[i:])
		if at+n == int(m.hi) {
			s.i = i + n
			return true
		}
		for k < m.n && int(m.values[k].hi) < at+n { // values with the byte behind them: 1 may go on here as 12
			k++
		}
		if k == m.n || at+n < int(m.values[k].lo) {
			// Another member: go on behind the last value that was as in the model. The next object is the next model.
			m.hi = 0
			if k == 0 {
				return s.members(s.open('}'), depth, nil)
			}
			s.i = i + int(m.values[k-1].hi) - at
			more, ok := s.more('}')
			return ok && s.members(more, depth, nil)
		}
		s.i = i + int(m.values[k].lo) - at
		if s.space(); !s.skip(depth + 1) {
			return false
		}
		i, at = s.i, int(m.values[k].hi)
	}
}

// same returns how many bytes a and b have in common from their first on.
func same(a, b []byte) (n int) {
	for n+8 <= len(a) && n+8 <= len(b) {
		if differ := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); differ != 0 {
			return n + bits.TrailingZeros64(differ)/8
		}
		n += 8
	}
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// rest returns how many elements an array has from the one that stands here on.
func (s *scanner) rest() (n int) {
	for more := true; more; n++ {
		if !s.skip(0) {
			return n // no JSON: whoever reads it will see
		}
		more, _ = s.more(']')
	}
	return n
}

// parser reads one event.
type parser struct {
	scanner
	Envelope
	doc            *jsonread.Document // nil if only the envelope is read
	samples        *Samples           // where a batch goes; nil if only the envelope is read
	one            []Sample           // memory for a batch of one
	isSamples      bool               // samples holds the data
	tried          bool               // the data was read as a batch, or cannot be
	lo, hi         int                // where the event is in the text
	dataLo, dataHi int                // where its data is; equal if it has none
}

// eventMembers are the members of an envelope, in the order in which they mostly come.
var eventMembers = expected("event_type", "data", "team_id", "user_id", "client_user_id")

// event reads an envelope and, if it is a batch of samples without anything unusual, its data.
func (p *parser) event() bool {
	p.space()
	p.lo = p.i
	if p.at() != '{' {
		return false
	}
	seen, n := 0, -1
	for more := p.open('}'); more; {
		var ok bool
		if n, ok = p.oneOf(eventMembers, n+1); !ok {
			return false
		}
		if n < len(eventMembers) {
			if seen&(1<<n) != 0 {
				return false // a name that comes twice is left to the general reader
			}
			seen |= 1 << n
		}
		switch n {
		case 0: // event_type
			var lo, hi int
			if lo, hi, ok = p.plain(); ok && hi > lo {
				p.Type = typeOf(p.text[lo:hi])
			}
		case 1: // data
			p.dataLo = p.i
			ok = p.data()
			p.dataHi = p.i
		case 2: // team_id
			ok = p.uuid(&p.TeamID)
		case 3: // user_id
			ok = p.uuid(&p.UserID)
		case 4: // client_user_id
			ok = p.nullOrString(&p.ClientUserID)
		default:
			ok = p.skip(1)
		}
		if !ok {
			return false
		}
		if more, ok = p.more('}'); !ok {
			return false
		}
	}
	p.hi = p.i
	p.space()
	return p.i == len(p.text)
}

// data steps over the data, or reads it if it is a batch of samples.
func (p *parser) data() bool {
	lo := p.i
	if p.samples != nil && kindOf(p.Type).mayBeSamples() {
		p.tried = true
		if p.isSamples = p.batch(p.samples); p.isSamples {
			return true
		}
		p.i = lo
	}
	return p.skip(1)
}

// plain steps over null, which is empty, or a string without escapes.
func (p *parser) plain() (lo, hi int, ok bool) {
	if p.at() == 'n' {
		return 0, 0, p.has("null")
	}
	lo, hi, escaped, ok := p.str()
	return lo, hi, ok && !escaped
}

// nullOrString reads null or a string.
func (p *parser) nullOrString(to *string) bool {
	if p.at() == 'n' {
		return p.has("null")
	}
	lo, hi, escaped, ok := p.str()
	if !ok {
		return false
	}
	*to = p.string(lo, hi, escaped)
	return true
}

// string returns the string between the quotes around text[lo:hi].
func (p *parser) string(lo, hi int, escaped bool) string {
	if escaped {
		s, _ := jsonread.String(p.text[lo-1 : hi+1])
		return s
	}
	return string(p.text[lo:hi])
}

// uuid reads null or a UUID.
func (p *parser) uuid(to *uuid.UUID) bool {
	if len(p.text) < p.i+38 || p.text[p.i] != '"' {
		return p.has("null")
	}
	text := (*[38]byte)(p.text[p.i:])
	p.i += len(text)
	// The digits, eight at once.
	first, wrong1 := hex(binary.LittleEndian.Uint64(text[1:]))
	second, wrong2 := hex(uint64(binary.LittleEndian.Uint32(text[10:])) | uint64(binary.LittleEndian.Uint32(text[15:]))<<32)
	third, wrong3 := hex(uint64(binary.LittleEndian.Uint32(text[20:])) | uint64(binary.LittleEndian.Uint32(text[25:]))<<32)
	fourth, wrong4 := hex(binary.LittleEndian.Uint64(text[29:]))
	if (wrong1|wrong2|wrong3|wrong4)&highs != 0 || text[9] != '-' || text[14] != '-' || text[19] != '-' || text[24] != '-' || text[37] != '"' {
		return false
	}
	binary.LittleEndian.PutUint64(to[:8], first|second<<32)
	binary.LittleEndian.PutUint64(to[8:], third|fourth<<32)
	return true
}

// hex reads eight hexadecimal digits, one in each byte, as four bytes. Unless each is one, wrong has the high bit of a byte.
func hex(digits uint64) (value, wrong uint64) {
	letter := digits >> 6 & ones // 1 for each
	digits |= letter << 5        // as a small one
	value = digits - '0'*ones - letter*('a'-'0')
	wrong = value | ('9'*ones + letter*('f'-'9') - digits) | digits // too small, too large, not ASCII
	value += letter * 10
	value = (value<<4 | value>>8) & 0x00ff00ff00ff00ff // two digits in every other byte
	value = (value | value>>8) & 0x0000ffff0000ffff
	return (value | value>>16) & 0xffffffff, wrong
}

// typeOf returns b as an EventType, without a new string if it is one of the constants.
func typeOf(b []byte) EventType {
	if t, ok := known[string(b)]; ok {
		return t
	}
	return EventType(b)
}
