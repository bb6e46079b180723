// Package jsonread decodes and encodes every response and every event.
//
// It has two scanners for one grammar: valid JSON in valid UTF-8, nested at most [MaxDepth] deep.
// The strict one says where and why a document is invalid; [FastScanner] only says that it is.
// Decoding matches field names exactly, continues after a field whose value does not fit its Go
// type, and keeps the raw bytes, so that [Marshal] writes every field again, known or not.
package jsonread

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// The rules that both scanners share: whitespace, strings, escapes, numbers and the limits.

// MaxDepth is the deepest nesting of objects and arrays that is read. Responses of the service stay
// far below it.
const MaxDepth = 1000

// MaxSize is the length of the longest document in bytes.
const MaxSize = math.MaxUint32

// SyntaxError says where a document stops being JSON. It never quotes the document.
type SyntaxError struct {
	Offset int    // bytes before the error
	Reason string // a fixed phrase
}

func (e *SyntaxError) Error() string {
	return "not valid JSON at byte " + strconv.Itoa(e.Offset) + ": " + e.Reason
}

const (
	unexpectedEnd = "unexpected end of JSON"
	badChar       = "unexpected character"
	badString     = "invalid string"
	badUTF8       = "invalid UTF-8"
	badNumber     = "invalid number"
	tooDeep       = "nested too deeply"
	trailing      = "data after the JSON value"
	tooLarge      = "it would take too much memory"
)

// Truncated reports whether err says that the document ended before its value did.
func Truncated(err error) bool {
	var e *SyntaxError
	return errors.As(err, &e) && e.Reason == unexpectedEnd
}

// skipSpace returns the index of the first byte from i on that is not whitespace.
func skipSpace(data []byte, i int) int {
	for i < len(data) && data[i] <= ' ' && (data[i] == ' ' || data[i] == '\n' || data[i] == '\t' || data[i] == '\r') {
		i++
	}
	return i
}

// special looks at eight bytes of a string at once. It returns the high bit of the first one, in
// little-endian order, that is a quote, a backslash, a control character or not ASCII. The bits
// above it can be wrong.
func special(bytes uint64) uint64 {
	// Exchanging '"' and space puts the quote next to the control characters. What is less than
	// zero has its high bit set, and what is not ASCII still has it in one of the two.
	quote, backslash := bytes^('"'^' ')*lowBits, bytes^'\\'*lowBits
	return ((quote - (' '+1)*lowBits) | (backslash - lowBits)) & highBits
}

// The lowest and the highest bit of each of eight bytes.
const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// plain reports for each ASCII byte whether it stands for itself in a string.
var plain = func() (t [256]bool) {
	for c := 0x20; c < 0x80; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// skipPlain returns the index of the first quote or backslash of a string from i on.
func skipPlain(data []byte, i int) (end int, err *SyntaxError) {
	for {
		for i <= len(data)-8 {
			if found := special(binary.LittleEndian.Uint64(data[i:])); found != 0 {
				i += bits.TrailingZeros64(found) / 8
				break
			}
			i += 8
		}
		for i < len(data) && plain[data[i]] {
			i++
		}
		if i < len(data) && (data[i] == '"' || data[i] == '\\') {
			return i, nil
		}
		r, n := utf8.DecodeRune(data[i:])
		if r < utf8.RuneSelf || r == utf8.RuneError && n <= 1 {
			return i, stringError(data, i)
		}
		i += n
	}
}

// stringError says why a string cannot continue with the byte at i.
func stringError(data []byte, i int) *SyntaxError {
	switch {
	case !utf8.FullRune(data[i:]):
		return &SyntaxError{i, unexpectedEnd}
	case data[i] < utf8.RuneSelf:
		return &SyntaxError{i, badString}
	}
	return &SyntaxError{i, badUTF8}
}

// skipString returns the index after the closing quote of a string of which i is inside.
func skipString(data []byte, i int) (end int, escaped bool, err *SyntaxError) {
	for {
		if i, err = skipPlain(data, i); err != nil {
			return i, escaped, err
		}
		if data[i] == '"' {
			return i + 1, escaped, nil
		}
		escaped = true
		if _, i, err = scanEscape(data, i); err != nil {
			return i, escaped, err
		}
	}
}

// escapes are the escapes of one letter.
var escapes = [256]rune{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// scanEscape decodes the escape at i, a pair of surrogates at once. A lone surrogate is valid.
func scanEscape(data []byte, i int) (r rune, end int, err *SyntaxError) {
	if i+1 == len(data) {
		return 0, i, &SyntaxError{i, unexpectedEnd}
	}
	if r = escapes[data[i+1]]; r != 0 {
		return r, i + 2, nil
	}
	if data[i+1] != 'u' {
		return 0, i, &SyntaxError{i, badString}
	}
	if r, err = scanHex(data, i+2); err != nil {
		return 0, i, err
	}
	i += 6
	if utf16.IsSurrogate(r) && i+1 < len(data) && data[i] == '\\' && data[i+1] == 'u' {
		low, err := scanHex(data, i+2)
		if err != nil {
			return 0, i, err
		}
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, i + 6, nil
		}
	}
	return r, i, nil
}

// scanHex decodes the four hexadecimal digits at i.
func scanHex(data []byte, i int) (r rune, err *SyntaxError) {
	for end := i + 4; i < end; i++ {
		if i >= len(data) {
			return 0, &SyntaxError{len(data), unexpectedEnd}
		}
		c := data[i]
		switch {
		case c-'0' < 10:
			c -= '0'
		case c|0x20-'a' < 6:
			c = c | 0x20 - 'a' + 10
		default:
			return 0, &SyntaxError{i, badString}
		}
		r = r<<4 | rune(c)
	}
	return r, nil
}

// number is a scanned number.
type number struct {
	end      int    // index of the byte after it
	mantissa uint64 // its digits as an integer
	fraction int    // how many of them follow the point; inexact if the mantissa does not have all of the number
	negative bool
}

// inexact is the fraction of a number with an exponent or more than 19 digits.
const inexact = -1

// startsNumber reports whether a number can start with c.
func startsNumber(c byte) bool { return c == '-' || c-'0' < 10 }

// scanNumber scans the number at start. If it reports false, n.end is the index of the error. Like
// every scanner of JSON it ends the number after a leading zero, where no digit may follow.
func scanNumber(data []byte, start int) (n number, ok bool) {
	rest, i := data[start:], 0
	if len(rest) > 0 && rest[0] == '-' {
		n.negative = true
		i = 1
	}
	first := i
	if i < len(rest) && rest[i] == '0' {
		i++
	} else {
		n.mantissa, i = scanDigits(rest, i, 0)
	}
	ok = i > first
	digits := i - first
	if ok && i < len(rest) && rest[i] == '.' {
		point := i + 1
		if last := point + 7; last < len(rest) && rest[last]-'0' < 10 {
			n.mantissa, i = scanManyDigits(rest, point, n.mantissa)
		} else {
			n.mantissa, i = scanDigits(rest, point, n.mantissa)
		}
		n.fraction = i - point
		digits += n.fraction
		ok = i > point
	}
	if digits > 19 {
		n.fraction = inexact
	}
	if ok && i < len(rest) && rest[i]|0x20 == 'e' {
		n.fraction = inexact
		i, ok = scanExponent(rest, i+1)
	}
	n.end = start + i
	return n, ok
}

// scanExponent returns the index after the exponent at i, or that of the error.
func scanExponent(rest []byte, i int) (end int, ok bool) {
	if i < len(rest) && (rest[i] == '+' || rest[i] == '-') {
		i++
	}
	_, end = scanDigits(rest, i, 0)
	return end, end > i
}

// skipNumber is scanNumber without the value.
func skipNumber(data []byte, i int) (end int, ok bool) {
	if i < len(data) && data[i] == '-' {
		i++
	}
	first := i
	if i < len(data) && data[i] == '0' {
		i++
	} else if i = skipDigits(data, i); i == first {
		return i, false
	}
	if i < len(data) && data[i] == '.' {
		point := i + 1
		if i = skipDigits(data, point); i == point {
			return i, false
		}
	}
	if i < len(data) && data[i]|0x20 == 'e' {
		return scanExponent(data, i+1)
	}
	return i, true
}

// skipDigits returns the index after the digits at i.
func skipDigits(data []byte, i int) int {
	for i <= len(data)-8 {
		if found := notDigits(binary.LittleEndian.Uint64(data[i:])); found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
		i += 8
	}
	for i < len(data) && data[i]-'0' < 10 {
		i++
	}
	return i
}

// notDigits looks at eight bytes at once. It returns the high bit of the first one, in
// little-endian order, that is no digit. The bits above it can be wrong.
func notDigits(bytes uint64) uint64 {
	bytes ^= '0' * lowBits // digits become 0 to 9
	return (bytes | (bytes + (0x80-10)*lowBits)) & highBits
}

// eightDigits returns the number whose digits, from 0 to 9, are the bytes in little-endian order.
func eightDigits(digits uint64) uint64 {
	const pair = 0x000000ff000000ff
	digits = digits*10 + digits>>8 // two digits in every other byte
	return ((digits&pair)*(100+1000000<<32) + (digits>>16&pair)*(1+10000<<32)) >> 32
}

// scanManyDigits is scanDigits for numbers of which many have eight digits or more.
func scanManyDigits(data []byte, i int, value uint64) (uint64, int) {
	for i <= len(data)-8 {
		bytes := binary.LittleEndian.Uint64(data[i:])
		if notDigits(bytes) != 0 {
			break
		}
		value = value*1e8 + eightDigits(bytes^'0'*lowBits)
		i += 8
	}
	return scanDigits(data, i, value)
}

// scanDigits appends the digits at i to value, and returns the index after them.
func scanDigits(data []byte, i int, value uint64) (uint64, int) {
	for i < len(data) && data[i]-'0' < 10 {
		value = value*10 + uint64(data[i]-'0')
		i++
	}
	return value, i
}
