// Finds the field of a struct that is next in an object, eight bytes at a time.

package jsonread

import (
	"encoding/binary"
	"math/bits"
)

// key is a field's name as it stands in a document, with its quotes and colon: its first 24 bytes,
// which are compared eight at once, and a mask of those that belong to it.
type key struct {
	words, mask keyWords
	length      uint8 // how many bytes it has
	long        bool  // they are more than 24
}

// ahead is how many bytes of a document are looked at for a key.
const ahead = 24

// keyWords are these bytes. An array of them would not be kept in registers.
type keyWords struct{ first, second, third uint64 }

func wordsAt(here *[ahead]byte) keyWords {
	return keyWords{binary.LittleEndian.Uint64(here[0:]), binary.LittleEndian.Uint64(here[8:]), binary.LittleEndian.Uint64(here[16:])}
}

func (w keyWords) and(mask *keyWords) keyWords {
	return keyWords{w.first & mask.first, w.second & mask.second, w.third & mask.third}
}

// quoted returns the first bytes of a name in quotes, with end as the second one.
func quoted(name []byte, end string) keyWords {
	var bytes [ahead]byte
	bytes[0] = '"'
	n := 1 + copy(bytes[1:], name)
	copy(bytes[n:], end)
	return wordsAt(&bytes)
}

func newKey(name string) key {
	length := len(name) + len(`"":`)
	if length > 1<<8-1 {
		panic("jsonread: a long name: " + name)
	}
	var mask [ahead]byte
	for i := range min(length, ahead) {
		mask[i] = 0xff
	}
	return key{quoted([]byte(name), `":`), wordsAt(&mask), uint8(length), length > ahead}
}

// startsAt reports whether a document has the key here, or what is compared of a long one.
func (k *key) startsAt(here *[ahead]byte) bool {
	w := wordsAt(here).and(&k.mask)
	return (w.first^k.words.first)|(w.second^k.words.second)|(w.third^k.words.third) == 0 // ^ and | have the same precedence
}

// isLongAt reports whether data has the whole key at i, which has more than ahead bytes, and after
// it as many as are looked at.
//
//go:noinline // few names are long
func (f *field) isLongAt(d *decoder, i int) bool {
	data, end := d.data, i+int(f.length)
	return end+ahead <= len(data) && string(data[i+1:end-2]) == f.name && data[end-2] == '"' && data[end-1] == ':'
}

// fieldIndex finds the fields of a plan by their names: a table with open addressing, whose entries
// are indexes plus 1. It is four times as large as it must be, so that there are few collisions.
type fieldIndex [4 * mostFields]uint8

// slot returns where a fieldIndex has the name of which these are the first bytes, in quotes.
func slot(w keyWords) uint8 {
	return uint8((w.first ^ bits.RotateLeft64(w.second, 23) ^ bits.RotateLeft64(w.third, 43)) * 0x9e3779b97f4a7c15 >> 56)
}

// findAt returns the field of which a document has the key here, or what is compared of a long one,
// and nil if there is none or if it is written with escapes or spaces. It has few instructions that
// wait for each other, because the order of the fields that are looked up cannot be foreseen.
func (p *plan) findAt(here *[ahead]byte) *field {
	w := wordsAt(here)
	first, second, third := quotes(w.first|1), quotes(w.second), quotes(w.third) // not the quote before the name
	inFirst := int64(first|-first) >> 63
	inSecond := int64(second|-second) >> 63
	w.first &= first ^ (first - 1)
	w.second &= (second ^ (second - 1)) &^ uint64(inFirst)
	w.third &= (third ^ (third - 1)) &^ uint64(inFirst|inSecond)
	for at := slot(w); p.index[at] != 0; at++ {
		if f := &p.fields[p.index[at]-1]; f.startsAt(here) {
			return f
		}
	}
	return nil
}

// quotes returns the high bit of the first byte, in little-endian order, that is a quote. The bits
// above it can be wrong.
func quotes(bytes uint64) uint64 {
	bytes ^= '"' * lowBits
	return (bytes - lowBits) &^ bytes & highBits
}

func (p *plan) addToIndex(f *field) {
	at := slot(quoted([]byte(f.name), `"`))
	for p.index[at] != 0 {
		at++
	}
	p.index[at] = f.number + 1
}

// find returns the field with the name, nil if there is none.
func (p *plan) find(name []byte) *field {
	for at := slot(quoted(name, `"`)); p.index[at] != 0; at++ {
		if f := &p.fields[p.index[at]-1]; f.name == string(name) {
			return f
		}
	}
	return nil
}

// order is in which order objects have their fields: after each field, and at first, the number of
// the one that came next in an object before. The service writes all objects of a type alike, but
// not in the order of our structs. They are numbers, not pointers, so that the next one is found
// without waiting for the field before.
type order [2 * mostFields]uint8

// orders are those of all plans.
type orders []order

// of returns what is known of the order of the fields, at first nothing.
func (o *orders) of(p *plan) *order {
	if p.id >= len(*o) {
		o.grow(p.id + 1)
	}
	return &(*o)[p.id]
}

//go:noinline // or the compiler copies it into every caller
func (o *orders) grow(size int) { *o = append(*o, make([]order, size-len(*o))...) }

// members is what is known of the object that is decoded.
type members struct {
	order *order
	after int    // the number of the last field plus 1
	seen  uint64 // a bit for each field that had a value
	inner bool   // the scanner is behind a value
}

// null is null in little-endian order.
const null = 'n' | 'u'<<8 | 'l'<<16 | 'l'<<24

// next steps from the end of a value to that of the next field, and returns the field, nil at the
// end of the object. It steps over nulls, and over fields that the plan does not have.
func (p *plan) next(d *decoder, m *members) *field {
	data, i, after := d.data, d.i, m.after
	for {
		if !m.inner {
			m.inner = true
		} else if i < len(data) && data[i] == ',' {
			i++
		} else {
			d.i = i
			if !d.more('}') {
				return nil
			}
			i = d.i
		}
		var f *field
		expected := &m.order[after&(2*mostFields-1)]
		if len(data)-i > 2*ahead {
			here := bytesAt(data, i)
			if n := int(*expected); n < len(p.fields) {
				f = &p.fields[n]
			}
			if f == nil || !f.startsAt(here) {
				if f = p.findAt(here); f != nil {
					*expected = f.number
				}
			}
		}
		if f == nil || f.long && !f.isLongAt(d, i) {
			d.i, m.after = i, after
			if f := p.field(d, m); f != nil {
				return f
			}
			i = d.i
			continue
		}
		i += int(f.length)
		after = int(*expected) + 1
		value := bytesAt(data, i)
		if !f.skipsNull || binary.LittleEndian.Uint32(value[:]) != null || m.seen&f.bit != 0 {
			d.i, m.after = i, after
			if value[0] <= ' ' {
				d.space()
			}
			return f
		}
		if !f.unseen {
			m.seen |= f.bit
		}
		i += len("null")
	}
}

// field is next for a field that is written in an unusual way or not among those of the plan. It
// steps over the latter and returns nil.
func (p *plan) field(d *decoder, m *members) *field {
	d.space()
	f := p.find(d.name())
	if f == nil {
		d.skip()
		return nil
	}
	m.order[m.after] = f.number
	m.after = int(f.number) + 1
	return f
}
