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
	text, i := s.text, s.i+1
	if s.i >= len(text) || text[s.i] != '"' {
		return 0, 0, false, false
	}
	lo = i
	for {
		if i+8 <= len(text) {
			w := binary.LittleEndian.Uint64(text[i:])
			quote, backslash := w^('"'*ones), w^('\\'*ones)
			// The high bit of the first byte that is a quote, a backslash, a control character or not ASCII. Bits above it can be wrong.
			special := ((w-0x20*ones)&^w | (quote-ones)&^quote | (backslash-ones)&^backslash | w) & highs
			if special == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(special) / 8
		} else {
			for i < len(text) && text[i] >= ' ' && text[i] < utf8.RuneSelf && text[i] != '"' && text[i] != '\\' {
				i++
			}
			if i == len(text) {
				return 0, 0, false, false
			}
		}
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
		default: // a control character
			return 0, 0, false, false
		}
	}
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
	if !ok || escaped {
		return nil, false
	}
	if !s.is(':') {
		s.space()
		if !s.is(':') {
			return nil, false
		}
	}
	if s.i < len(s.text) && s.text[s.i] <= ' ' {
		s.space()
	}
	return s.text[lo:hi], true
}

// more steps over what follows a member or element: more is true at the next one, false behind the closing one.
func (s *scanner) more(closing byte) (more, ok bool) {
	if s.i < len(s.text) && s.text[s.i] <= ' ' {
		s.space()
	}
	if s.is(',') {
		if s.i < len(s.text) && s.text[s.i] <= ' ' {
			s.space()
		}
		return true, true
	}
	return false, s.is(closing)
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
		if depth >= jsonread.MaxDepth {
			return false
		}
		for more := s.open('}'); more; {
			var ok bool
			if _, _, _, ok = s.str(); !ok {
				return false
			}
			s.space()
			if !s.is(':') {
				return false
			}
			s.space()
			if !s.skip(depth + 1) {
				return false
			}
			if more, ok = s.more('}'); !ok {
				return false
			}
		}
		return true
	case '[':
		if depth >= jsonread.MaxDepth {
			return false
		}
		for more := s.open(']'); more; {
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
	id             uuid.UUID          // the first one that was read
	idAt           int                // where it is, 0 if none was read
	isSamples      bool               // samples holds the data
	tried          bool               // the data was read as a batch, or cannot be
	lo, hi         int                // where the event is in the text
	dataLo, dataHi int                // where its data is; equal if it has none
}

// event reads an envelope and, if it is a batch of samples without anything unusual, its data.
func (p *parser) event() bool {
	const (
		typeBit = 1 << iota
		dataBit
		teamBit
		userBit
		clientBit
	)
	p.space()
	p.lo = p.i
	if p.at() != '{' {
		return false
	}
	seen := 0
	for more := p.open('}'); more; {
		name, ok := p.key()
		if !ok {
			return false
		}
		bit := 0
		switch string(name) {
		case "event_type":
			bit = typeBit
			var lo, hi int
			if lo, hi, ok = p.plain(); ok && hi > lo {
				p.Type = typeOf(p.text[lo:hi])
			}
		case "data":
			bit = dataBit
			p.dataLo = p.i
			ok = p.data()
			p.dataHi = p.i
		case "team_id":
			bit = teamBit
			ok = p.uuid(&p.TeamID)
		case "user_id":
			bit = userBit
			ok = p.uuid(&p.UserID)
		case "client_user_id":
			bit = clientBit
			ok = p.nullOrString(&p.ClientUserID)
		default:
			ok = p.skip(1)
		}
		if !ok || seen&bit != 0 { // a name that comes twice is left to the general reader
			return false
		}
		seen |= bit
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
	lo, hi, ok := p.plain()
	if !ok || lo == hi {
		return ok && p.text[p.i-1] == 'l' // an empty string is no UUID
	}
	if hi-lo != 36 { // uuid also reads braces, URNs and bare digits
		return false
	}
	if p.idAt == 0 || string(p.text[p.idAt:p.idAt+36]) != string(p.text[lo:hi]) { // the user's id comes twice
		id, err := uuid.ParseBytes(p.text[lo:hi])
		if err != nil {
			return false
		}
		if p.idAt == 0 {
			p.id, p.idAt = id, lo
		}
		*to = id
		return true
	}
	*to = p.id
	return true
}

// typeOf returns b as an EventType, without a new string if it is one of the constants.
func typeOf(b []byte) EventType {
	if t, ok := known[string(b)]; ok {
		return t
	}
	return EventType(b)
}
