// Package jsonread is the one reader behind every answer and every event.
//
// Its scanner accepts exactly what is valid JSON in valid UTF-8, up to a depth. Its binder matches member names exactly,
// keeps going over a member whose value does not fit its Go type, and remembers the bytes that came, so that [Marshal] gives
// back every member, known or not.
package jsonread

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxDepth is the deepest nesting of objects and arrays that is read. No answer of the service comes near it.
const MaxDepth = 1000

// SyntaxError says where text stops being JSON. It never quotes the text.
type SyntaxError struct {
	Offset int    // bytes before the place
	Reason string // a fixed phrase
}

func (e *SyntaxError) Error() string {
	return "not valid JSON at byte " + strconv.Itoa(e.Offset) + ": " + e.Reason
}

const (
	endOfText = "the text ends too early"
	badChar   = "unexpected character"
	badString = "invalid string"
	badUTF8   = "invalid UTF-8"
	badNumber = "invalid number"
	tooDeep   = "nested too deeply"
	trailing  = "more text after the value"
	tooLarge  = "it would take too much memory"
)

// Truncated reports whether err says that the text ended before the value did.
func Truncated(err error) bool {
	var e *SyntaxError
	return errors.As(err, &e) && e.Reason == endOfText
}

// scanner walks over one text. A place that is not JSON ends the walk with a panic of *SyntaxError, which [scanner.run] turns
// into an error; nothing else may panic with it.
type scanner struct {
	text  []byte
	i     int
	depth int
	esc   []byte // the last string that had escapes, reused
}

// Valid returns nil if text is one valid JSON value in valid UTF-8, nested at most MaxDepth deep.
func Valid(text []byte) error {
	s := &scanner{text: text}
	return s.run(s.skip)
}

func (s *scanner) run(value func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*SyntaxError)
			if !ok {
				panic(r)
			}
			err = e
		}
	}()
	s.space()
	value()
	s.space()
	if s.i != len(s.text) {
		s.fail(trailing)
	}
	return nil
}

func (s *scanner) fail(reason string) { panic(&SyntaxError{Offset: s.i, Reason: reason}) }

func (s *scanner) space() {
	for s.i < len(s.text) {
		switch s.text[s.i] {
		case ' ', '\n', '\t', '\r':
			s.i++
		default:
			return
		}
	}
}

func (s *scanner) peek() byte {
	if s.i >= len(s.text) {
		s.fail(endOfText)
	}
	return s.text[s.i]
}

func (s *scanner) literal(word string) {
	rest := s.text[s.i:]
	if len(rest) >= len(word) && string(rest[:len(word)]) == word {
		s.i += len(word)
		return
	}
	if len(rest) < len(word) && string(rest) == word[:len(rest)] {
		s.fail(endOfText)
	}
	s.fail(badChar)
}

func (s *scanner) isNull() bool {
	if s.peek() != 'n' {
		return false
	}
	s.literal("null")
	return true
}

// Special looks at eight bytes of a string at once. It returns the high bit of the first one, in little-endian order, that is a
// quote, a backslash, a control character or not ASCII. The bits above it can be wrong.
func Special(bytes uint64) uint64 {
	const ones = 0x0101010101010101
	// Exchanging '"' and space puts the quote right behind the control characters. What is less than zero has its high bit set, and
	// what is not ASCII has it still in one of the two.
	quote, backslash := bytes^('"'^' ')*ones, bytes^'\\'*ones
	return ((quote - (' '+1)*ones) | (backslash - ones)) & (0x80 * ones)
}

// plain are the bytes that stand for themselves in a string and need no look at their neighbours.
var plain = func() (t [256]bool) {
	for c := 0x20; c < 0x80; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// str reads the string at i. The result is valid until the next call.
func (s *scanner) str() []byte {
	start := s.i + 1
	i := s.unescaped(start)
	if s.text[i] == '"' {
		s.i = i + 1
		return s.text[start:i]
	}
	out := append(s.esc[:0], s.text[start:i]...)
	for s.text[i] != '"' {
		var r rune
		r, i = s.escape(i)
		out = utf8.AppendRune(out, r) // a lone surrogate becomes U+FFFD
		start, i = i, s.unescaped(i)
		out = append(out, s.text[start:i]...)
	}
	s.i, s.esc = i+1, out
	return out
}

// skipStr steps over the string at i.
func (s *scanner) skipStr() {
	i := s.unescaped(s.i + 1)
	for s.text[i] != '"' {
		_, i = s.escape(i)
		i = s.unescaped(i)
	}
	s.i = i + 1
}

// unescaped steps from i over what stands for itself in a string, to a quote or backslash.
func (s *scanner) unescaped(i int) int {
	text := s.text
	for {
		rest, n := text[i:], 0
		for ; n <= len(rest)-8; n += 8 {
			if special := Special(binary.LittleEndian.Uint64(rest[n:])); special != 0 {
				n += bits.TrailingZeros64(special) / 8
				break
			}
		}
		i += n
		for i < len(text) && plain[text[i]] {
			i++
		}
		if i < len(text) && (text[i] == '"' || text[i] == '\\') {
			return i
		}
		if i < len(text) && text[i] >= utf8.RuneSelf {
			r, n := utf8.DecodeRune(text[i:])
			if r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
		}
		s.i = i
		switch {
		case !utf8.FullRune(text[i:]):
			s.fail(endOfText)
		case text[i] < ' ':
			s.fail(badString)
		}
		s.fail(badUTF8)
	}
}

// simple are the escapes of one letter.
var simple = [256]rune{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escape reads the escape at i, and the place behind it.
func (s *scanner) escape(i int) (r rune, end int) {
	text := s.text
	if i+1 == len(text) {
		s.i = i
		s.fail(endOfText)
	}
	if r = simple[text[i+1]]; r != 0 {
		return r, i + 2
	}
	if text[i+1] != 'u' {
		s.i = i
		s.fail(badString)
	}
	r = s.hex(i + 2)
	i += 6
	if utf16.IsSurrogate(r) && i+1 < len(text) && text[i] == '\\' && text[i+1] == 'u' {
		if pair := utf16.DecodeRune(r, s.hex(i+2)); pair != utf8.RuneError {
			return pair, i + 6
		}
	}
	return r, i
}

func (s *scanner) hex(i int) (r rune) {
	for j := i; j < i+4; j++ {
		if j >= len(s.text) {
			s.i = len(s.text)
			s.fail(endOfText)
		}
		c := s.text[j]
		switch {
		case c-'0' < 10:
			c -= '0'
		case c|0x20-'a' < 6:
			c = c | 0x20 - 'a' + 10
		default:
			s.i = j
			s.fail(badString)
		}
		r = r<<4 | rune(c)
	}
	return r
}

// number reads the number at i and returns its text.
func (s *scanner) number() []byte {
	text, start := s.text, s.i
	i := start
	digits := func() {
		first := i
		for i < len(text) && text[i]-'0' < 10 {
			i++
		}
		if i == first {
			s.i = i
			if i == len(text) {
				s.fail(endOfText)
			}
			s.fail(badNumber)
		}
	}
	if i < len(text) && text[i] == '-' {
		i++
	}
	if i < len(text) && text[i] == '0' {
		i++
	} else {
		digits()
	}
	if i < len(text) && text[i] == '.' {
		i++
		digits()
	}
	if i < len(text) && text[i]|0x20 == 'e' {
		i++
		if i < len(text) && (text[i] == '+' || text[i] == '-') {
			i++
		}
		digits()
	}
	s.i = i
	return text[start:i]
}

func isNumber(c byte) bool { return c == '-' || c-'0' < 10 }

func (s *scanner) skip() {
	switch c := s.peek(); {
	case c == '"':
		s.skipStr()
	case c == '{':
		for more := s.open('}'); more; more = s.more('}') {
			s.key()
			s.skip()
		}
	case c == '[':
		for more := s.open(']'); more; more = s.more(']') {
			s.skip()
		}
	case c == 't':
		s.literal("true")
	case c == 'f':
		s.literal("false")
	case c == 'n':
		s.literal("null")
	case isNumber(c):
		s.number()
	default:
		s.fail(badChar)
	}
}

// open steps into the object or array at i and reports whether it holds anything.
func (s *scanner) open(closing byte) bool {
	if s.depth++; s.depth > MaxDepth {
		s.fail(tooDeep)
	}
	s.i++
	s.space()
	if s.peek() != closing {
		return true
	}
	s.i++
	s.depth--
	return false
}

// more steps over what follows a member or element and reports whether another one comes.
func (s *scanner) more(closing byte) bool {
	s.space()
	switch s.peek() {
	case ',':
		s.i++
		s.space()
		return true
	case closing:
		s.i++
		s.depth--
		return false
	}
	s.fail(badChar)
	return false
}

// key reads a member's name and the colon, and stands before its value. The result is valid until the next string is read.
func (s *scanner) key() []byte {
	if s.peek() != '"' {
		s.fail(badChar)
	}
	k := s.str()
	if s.i < len(s.text) && s.text[s.i] != ':' {
		s.space()
	}
	if s.peek() != ':' {
		s.fail(badChar)
	}
	s.i++
	s.space()
	return k
}

// comes steps over a member's name and colon if they are key, as the service writes them.
func (s *scanner) comes(key string) bool {
	rest := s.text[s.i:]
	if len(rest) < len(key) || string(rest[:len(key)]) != key {
		return false
	}
	s.i += len(key)
	s.space()
	return true
}
