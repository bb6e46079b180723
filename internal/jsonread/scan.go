// Package jsonread is the one reader behind every answer and every event.
//
// Its scanner accepts exactly what is valid JSON in valid UTF-8, up to a depth. Its binder matches member names exactly,
// keeps going over a member whose value does not fit its Go type, and remembers the bytes that came, so that [Marshal] gives
// back every member, known or not.
package jsonread

import (
	"errors"
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

// plain are the bytes that stand for themselves in a string and need no look at their neighbours.
var plain = func() (t [256]bool) {
	for c := 0x20; c < 0x80; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// str reads the string at i. The result is valid until the next call.
func (s *scanner) str() []byte {
	text := s.text
	i := s.i + 1
	start := i
	for i < len(text) && plain[text[i]] {
		i++
	}
	if i < len(text) && text[i] == '"' {
		s.i = i + 1
		return text[start:i]
	}
	return s.strSlow(start, i)
}

func (s *scanner) strSlow(start, i int) []byte {
	text := s.text
	out := append(s.esc[:0], text[start:i]...)
	stop := func(reason string) { s.i = min(i, len(text)); s.fail(reason) }
	for {
		if i >= len(text) {
			stop(endOfText)
		}
		switch c := text[i]; {
		case c == '"':
			s.i = i + 1
			s.esc = out
			return out
		case c < 0x20:
			stop(badString)
		case c == '\\':
			if i+1 >= len(text) {
				stop(endOfText)
			}
			switch text[i+1] {
			case '"', '\\', '/':
				out = append(out, text[i+1])
			case 'n':
				out = append(out, '\n')
			case 't':
				out = append(out, '\t')
			case 'r':
				out = append(out, '\r')
			case 'b':
				out = append(out, '\b')
			case 'f':
				out = append(out, '\f')
			case 'u':
				r := s.hex(i + 2)
				i += 4
				if utf16.IsSurrogate(r) && i+3 < len(text) && text[i+2] == '\\' && text[i+3] == 'u' {
					if pair := utf16.DecodeRune(r, s.hex(i+4)); pair != utf8.RuneError {
						r = pair
						i += 6
					}
				}
				out = utf8.AppendRune(out, r) // a lone surrogate becomes U+FFFD
			default:
				stop(badString)
			}
			i += 2
		case c < utf8.RuneSelf:
			out = append(out, c)
			i++
		default:
			r, n := utf8.DecodeRune(text[i:])
			if r == utf8.RuneError && n == 1 {
				if !utf8.FullRune(text[i:]) {
					stop(endOfText)
				}
				stop(badUTF8)
			}
			out = append(out, text[i:i+n]...)
			i += n
		}
	}
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
		s.str()
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
