// Finds the field of a struct that is next in an object, eight bytes at a time.

package jsonread

import (
	"encoding/binary"
	"math/bits"
)

// key is a field's name as it stands in a document, with its quotes and colon: its first 24 bytes,
// which are compared eight at once, and a mask of those that belong to it.
type key struct {
	words, mask [3]uint64
	length      uint8 // how many bytes it has
	long        bool  // they are more than 24
}

// ahead is how many bytes of a document are looked at for a key.
const ahead = 24

func newKey(name string) (k key) {
	quoted := `"` + name + `":`
	if len(quoted) > 1<<8-1 {
		panic("jsonread: a long name: " + name)
	}
	var words, mask [ahead]byte
	for i := range min(len(quoted), ahead) {
		words[i], mask[i] = quoted[i], 0xff
	}
	for i := range k.words {
		k.words[i], k.mask[i] = binary.LittleEndian.Uint64(words[8*i:]), binary.LittleEndian.Uint64(mask[8*i:])
	}
	k.length, k.long = uint8(len(quoted)), len(quoted) > ahead
	return k
}

// startsAt reports whether data has the key at i, or what is compared of a long one. It has as many
// bytes there as are looked at.
func (k *key) startsAt(data []byte, i int) bool {
	here := bytesAt(data, i)
	differ := (binary.LittleEndian.Uint64(here[0:]) ^ k.words[0]) & k.mask[0]
	differ |= (binary.LittleEndian.Uint64(here[8:]) ^ k.words[1]) & k.mask[1]
	differ |= (binary.LittleEndian.Uint64(here[16:]) ^ k.words[2]) & k.mask[2]
	return differ == 0
}

// isLongAt reports whether data has the whole key at i, which has more than ahead bytes, and after
// it as many as are looked at.
//
//go:noinline // few names are long
func (f *field) isLongAt(data []byte, i int) bool {
	end := i + int(f.length)
	return end+ahead <= len(data) && string(data[i+1:end-2]) == f.name && data[end-2] == '"' && data[end-1] == ':'
}

// fieldIndex finds the fields of a plan by their names: a table with open addressing, whose entries
// are indexes plus 1.
type fieldIndex []uint8

// hash returns the hash of a name: few bytes of it differ from those of all others of a plan.
func hash(name []byte) uint {
	var a, b uint64
	switch n := len(name); {
	case n >= 8:
		a, b = binary.LittleEndian.Uint64(name), binary.LittleEndian.Uint64(name[n-8:])
	case n >= 4:
		a, b = uint64(binary.LittleEndian.Uint32(name)), uint64(binary.LittleEndian.Uint32(name[n-4:]))
	case n > 0:
		a, b = uint64(name[0]), uint64(name[n-1])
	}
	return uint((a^bits.RotateLeft64(b, 29)+uint64(len(name)))*0x9e3779b97f4a7c15>>32) & (1<<31 - 1)
}

func newFieldIndex(fields []field) fieldIndex {
	t := make(fieldIndex, 1<<bits.Len(uint(2*len(fields))))
	for n := range fields {
		at := hash([]byte(fields[n].name)) % uint(len(t))
		for t[at] != 0 {
			at = (at + 1) % uint(len(t))
		}
		t[at] = uint8(n + 1)
	}
	return t
}

// find returns the index of the field with the name, or -1.
func (p *plan) find(name []byte) int {
	t := p.index
	mask := uint(len(t) - 1)
	for at := hash(name) & mask; at < uint(len(t)) && t[at] != 0; at = (at + 1) & mask {
		if n := int(t[at]) - 1; p.fields[n].name == string(name) {
			return n
		}
	}
	return -1
}

// order is in which order objects have their fields: after each field, and at first, the index of
// the one that came next in an object before. The service writes all objects of a type alike, but
// not in the order of our structs.
type order [2 * mostFields]uint8

// orderOf returns what is known of the order of the fields.
func (d *decoder) orderOf(p *plan) *order {
	if p.id < len(d.orders) && d.orders[p.id] != nil {
		return d.orders[p.id]
	}
	return d.newOrder(p)
}

//go:noinline // it is rare
func (d *decoder) newOrder(p *plan) *order {
	for p.id >= len(d.orders) {
		d.orders = append(d.orders, nil)
	}
	o := new(order)
	for n := range o {
		o[n] = uint8(n)
	}
	d.orders[p.id] = o
	return o
}

// members is what is known of the object that is decoded.
type members struct {
	order *order
	after int    // the index of the last field plus 1
	seen  uint64 // a bit for each field that had a value
	inner bool   // the scanner is behind a value
}

// What next returns instead of the index of a field.
const (
	skipped = -1 // there is no value to decode
	ended   = -2 // the object has no more fields
)

// null is null in little-endian order.
const null = 'n' | 'u'<<8 | 'l'<<16 | 'l'<<24

// next steps from the end of a value to that of the next field, and returns the index of the field.
// It steps over nulls, and over fields that the plan does not have.
func (p *plan) next(d *decoder, m *members) int {
	data, i, after := d.data, d.i, m.after
	if m.inner {
		if i >= len(data) || data[i] != ',' {
			if !d.more('}') {
				return ended
			}
			i = d.i
		} else {
			i++
		}
	}
	m.inner = true
	for len(data)-i > 2*ahead {
		n := int(m.order[after&(2*mostFields-1)])
		if n >= len(p.fields) || !p.fields[n].startsAt(data, i) {
			break
		}
		f := &p.fields[n]
		if f.long && !f.isLongAt(data, i) {
			break
		}
		i += int(f.length)
		after = n + 1
		value := bytesAt(data, i)
		if value[0] <= ' ' {
			i = skipSpace(data, i)
			d.i, m.after = i, after
			return n
		}
		bit := uint64(1) << (n & 63)
		if !f.skipsNull || binary.LittleEndian.Uint32(value[:]) != null || m.seen&bit != 0 {
			d.i, m.after = i, after
			return n
		}
		if !f.unseen {
			m.seen |= bit
		}
		i += 4
		if value[4] != ',' {
			d.i, m.after = i, after
			return skipped
		}
		i++
	}
	d.i, m.after = i, after
	return p.field(d, m)
}

// field is next for a field that is not the expected one.
func (p *plan) field(d *decoder, m *members) int {
	d.space()
	var name []byte
	fast := FastScanner{Data: d.data, Pos: d.i}
	name, ok := fast.name()
	if ok {
		d.i = fast.Pos
	} else {
		name = d.name()
	}
	n := p.find(name)
	if n < 0 {
		d.skip()
		return skipped
	}
	m.order[m.after] = uint8(n)
	m.after = n + 1
	return n
}
