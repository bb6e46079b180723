// The strict scanner, which reports where and why a document is invalid.

package jsonread

import (
	"bytes"
	"unicode/utf8"
)

// Valid returns nil if data is one valid JSON value in valid UTF-8, nested at most [MaxDepth] deep.
// It returns a *[SyntaxError] otherwise.
func Valid(data []byte) error {
	s := &scanner{data: data}
	return s.run(s.skip)
}

// TrimStart returns a received body from the start of its value on: without a UTF-8 byte order
// mark, which RFC 8259 allows readers to ignore, and without space. Valid and Unmarshal accept no
// mark.
func TrimStart(body []byte) []byte {
	return bytes.TrimLeft(bytes.TrimPrefix(body, []byte("\uFEFF")), " \t\r\n")
}

// scanner is the strict scanner of one document. It panics with a *SyntaxError where the document
// is not JSON; [scanner.run] turns that into an error.
type scanner struct {
	data      []byte
	i         int
	depth     int
	unescaped []byte // the last string that had escapes, reused
}

// run calls value, which scans the only value of the document.
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
	if s.i != len(s.data) {
		s.fail(trailing)
	}
	return nil
}

//go:noinline // or the compiler copies it into every function
func (s *scanner) fail(reason string) { panic(&SyntaxError{Offset: s.i, Reason: reason}) }

func (s *scanner) space() { s.i = skipSpace(s.data, s.i) }

// peek returns the byte at i.
func (s *scanner) peek() byte {
	if s.i >= len(s.data) {
		s.fail(unexpectedEnd)
	}
	return s.data[s.i]
}

// literal steps over true, false or null.
func (s *scanner) literal(word string) {
	rest := s.data[s.i:]
	if len(rest) >= len(word) && string(rest[:len(word)]) == word {
		s.i += len(word)
		return
	}
	if len(rest) < len(word) && string(rest) == word[:len(rest)] {
		s.fail(unexpectedEnd)
	}
	s.fail(badChar)
}

// skipNull steps over null, if the value is null.
func (s *scanner) skipNull() bool {
	if s.peek() != 'n' {
		return false
	}
	s.literal("null")
	return true
}

// string decodes the string at i. The result is valid until the next call.
func (s *scanner) string() []byte {
	start := s.i + 1
	i, err := skipPlain(s.data, start)
	if err != nil {
		panic(err)
	}
	if s.data[i] == '"' {
		s.i = i + 1
		return s.data[start:i]
	}
	out := append(s.unescaped[:0], s.data[start:i]...)
	for s.data[i] != '"' {
		var r rune
		if r, start, err = scanEscape(s.data, i); err != nil {
			panic(err)
		}
		out = utf8.AppendRune(out, r) // a lone surrogate becomes U+FFFD
		if i, err = skipPlain(s.data, start); err != nil {
			panic(err)
		}
		out = append(out, s.data[start:i]...)
	}
	s.i, s.unescaped = i+1, out
	return out
}

// skipString steps over the string at i.
func (s *scanner) skipString() {
	fast := FastScanner{Data: s.data, Pos: s.i}
	if _, _, ok := fast.String(); ok {
		s.i = fast.Pos
		return
	}
	end, _, err := skipString(s.data, s.i+1)
	if err != nil {
		panic(err)
	}
	s.i = end
}

// number scans the number at i, and returns its bytes too.
func (s *scanner) number() (n number, raw []byte) {
	start := s.i
	n, ok := scanNumber(s.data, start)
	s.i = n.end
	if !ok {
		if s.i == len(s.data) {
			s.fail(unexpectedEnd)
		}
		s.fail(badNumber)
	}
	return n, s.data[start:n.end]
}

// skip steps over the value at i.
func (s *scanner) skip() {
	switch c := s.peek(); {
	case c == '"':
		s.skipString()
	case c == '{':
		for more := s.open('}'); more; more = s.more('}') {
			s.name()
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
	case startsNumber(c):
		s.number()
	default:
		s.fail(badChar)
	}
}

// open steps into the object or array at i and reports whether it has a field or element.
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

// more steps to the next field or element, or out of the object or array, and reports whether there
// is a next one.
func (s *scanner) more(closing byte) bool {
	if s.i < len(s.data) && s.data[s.i] <= ' ' {
		s.space()
	}
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

// name decodes a field's name and steps to the field's value. The result is valid until the next
// string is decoded.
func (s *scanner) name() []byte {
	if s.peek() != '"' {
		s.fail(badChar)
	}
	name := s.string()
	if s.i < len(s.data) && s.data[s.i] != ':' {
		s.space()
	}
	if s.peek() != ':' {
		s.fail(badChar)
	}
	s.i++
	s.space()
	return name
}
