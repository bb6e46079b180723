// Iterators over the fields and elements of a valid document.

package jsonread

import "iter"

// Fields iterates over the fields of an object, duplicate names included. The names and values are
// not copies, and a name is valid until the next one. Other values have no fields.
func Fields(data []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		iterate(data, '{', '}', func(s *scanner) bool {
			name := s.name()
			start := s.i
			value := scanner{data: data, i: start, depth: s.depth} // it does not overwrite the name
			value.skip()
			s.i = value.i
			return yield(name, data[start:s.i])
		})
	}
}

// Elements iterates over the elements of an array. They are not copies. Other values have no
// elements.
func Elements(data []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		iterate(data, '[', ']', func(s *scanner) bool {
			start := s.i
			s.skip()
			return yield(data[start:s.i])
		})
	}
}

// iterate calls next at every field or element until it returns false, or until the end of valid
// JSON.
func iterate(data []byte, opening, closing byte, next func(*scanner) bool) {
	s := &scanner{data: data}
	s.run(func() {
		if s.peek() != opening {
			return
		}
		for more := s.open(closing); more; more = s.more(closing) {
			if !next(s) {
				return
			}
		}
	})
}

// String decodes a JSON string.
func String(data []byte) (value string, ok bool) {
	s := scanner{data: data}
	if len(data) > 64 {
		s.unescaped = make([]byte, 0, len(data))
	}
	err := s.run(func() {
		if s.peek() != '"' {
			s.fail(badChar)
		}
		value = string(s.string())
	})
	return value, err == nil
}
