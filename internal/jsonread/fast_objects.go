// The fast scanner for consecutive objects of the same shape.

package jsonread

import (
	"encoding/binary"
	"math/bits"
)

// Objects of an array are mostly alike, so the fast scanner compares each with one before it.

// template is an object that later objects of its array are compared with.
type template struct {
	Span            // its Hi is 0 if there is no template
	values [16]Span // of its fields
	n      int      // fields it has
	differ uint16   // the values in which other objects differed, as a set of bits
}

// add stores the span of a field's value. An object with more fields than there is space for is no
// template.
func (t *template) add(value Span) {
	if t.n < len(t.values) {
		t.values[t.n] = value
	}
	t.n++
}

// skipObjects steps over the rest of an array from an object on, inside depth objects and arrays.
func (s *FastScanner) skipObjects(depth int) bool {
	var t template
	for more := true; more; {
		start := s.Pos
		var ok bool
		switch {
		case s.Peek() != '{':
			ok = s.Skip(depth)
		case depth >= MaxDepth:
			return false
		case t.Hi > 0:
			ok = s.skipAlike(&t, depth)
		default:
			t.n, t.differ = 0, 0
			ok = s.skipFields(s.Open('}'), depth, &t)
			if t.n <= len(t.values) {
				t.Span = Span{uint32(start), uint32(s.Pos)}
			}
		}
		if !ok {
			return false
		}
		if more, ok = s.More(']'); !ok {
			return false
		}
	}
	return true
}

// skipAlike steps over an object, and over those after it that differ from the template only in the
// values in which earlier ones did: between such values the bytes are compared all at once. Where
// an object differs in more, skipLike continues.
func (s *FastScanner) skipAlike(t *template, depth int) bool {
	data, i := s.Data, s.Pos
	for {
		at, next := int(t.Lo), 0
		for differ := t.differ; differ != 0; differ &= differ - 1 {
			k := bits.TrailingZeros16(differ)
			v := t.values[k&15]
			lo, hi := int(v.Lo), int(v.Hi)
			start := i + lo - at
			if start >= len(data) || string(data[i:start]) != string(data[at:lo]) {
				break
			}
			if i = skipSameLength(data, start, hi-lo); i < 0 {
				s.Pos = start
				if s.Space(); !s.Skip(depth + 1) {
					return false
				}
				i = s.Pos
			}
			at, next = hi, k+1
		}
		hi := int(t.Hi)
		end := i + hi - at
		if end+1 >= len(data) || data[end-1] != '}' || hi-at > 1 && string(data[i:end]) != string(data[at:hi]) {
			s.Pos = i
			return s.skipLike(t, at, next, depth)
		}
		if i = end + 1; data[end] != ',' || data[i] != '{' {
			s.Pos = end
			return true
		}
	}
}

// skipSameLength returns the index after the value at i, if that is a number, or a string without
// escapes of n bytes with its quotes. It returns -1 otherwise.
func skipSameLength(data []byte, i, n int) int {
	if data[i] != '"' {
		if end, ok := skipNumber(data, i); ok {
			return end
		}
		return -1
	}
	if n < 10 || i+n > len(data) {
		return -1
	}
	value := data[i : i+n]
	last := n - 9
	found := special(binary.LittleEndian.Uint64(value[last:]))
	for k := 1; k < last; k += 8 {
		found |= special(binary.LittleEndian.Uint64(value[k:]))
	}
	if found != 0 || value[n-1] != '"' {
		return -1
	}
	return i + n
}

// skipLike steps over the rest of an object that is compared with the template, of which at is the
// index that corresponds to s.Pos and next the first value after it: equal bytes need no second
// look, and where the two differ in a value, only that value is scanned. This is as strict as
// scanning every byte: the bytes between two values of the template led from the end of the one to
// the start of the other, and where they follow a value of an object of the same array, they do so
// again. It never goes back to scan something twice, which in nested objects would double the time
// with each level.
func (s *FastScanner) skipLike(t *template, at, next, depth int) bool {
	data, i := s.Data, s.Pos // at is in the template where i is in the object
	for k := next; ; k++ {
		n := equalBytes(data[at:t.Hi], data[i:])
		if at+n == int(t.Hi) {
			s.Pos = i + n
			return true
		}
		for k < t.n && int(t.values[k].Hi) < at+n { // values with the byte after them: 1 may continue here as 12
			k++
		}
		if k == t.n || at+n < int(t.values[k].Lo) {
			// Another field: continue after the last value that is as in the template. The next
			// object becomes the template.
			t.Hi = 0
			if k == 0 {
				return s.skipFields(s.Open('}'), depth, nil)
			}
			s.Pos = i + int(t.values[k-1].Hi) - at
			more, ok := s.More('}')
			return ok && s.skipFields(more, depth, nil)
		}
		t.differ |= 1 << k
		s.Pos = i + int(t.values[k].Lo) - at
		if s.Space(); !s.Skip(depth + 1) {
			return false
		}
		i, at = s.Pos, int(t.values[k].Hi)
	}
}

// equalBytes returns how many bytes a and b have in common from their first on.
func equalBytes(a, b []byte) (n int) {
	if len(a) > len(b) {
		a = a[:len(b)]
	}
	b = b[:len(a)]
	for ; n <= len(a)-8; n += 8 {
		if differ := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); differ != 0 {
			return n + bits.TrailingZeros64(differ)/8
		}
	}
	for n < len(a) && a[n] == b[n] {
		n++
	}
	return n
}
