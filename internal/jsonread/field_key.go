package jsonread

import "encoding/binary"

// fieldKey is a field's name as the service writes it, in quotes and with its colon.
type fieldKey struct {
	key   string
	first uint64 // its first eight bytes
	mask  uint64 // of those that it has
	last  uint64 // its last eight bytes, if it has more
}

func newFieldKey(name string) fieldKey {
	k := fieldKey{key: `"` + name + `":`}
	var b [8]byte
	copy(b[:], k.key)
	k.first, k.mask = binary.LittleEndian.Uint64(b[:]), ^uint64(0)
	if n := len(k.key); n < 8 {
		k.mask >>= 64 - 8*n
	} else {
		k.last = binary.LittleEndian.Uint64([]byte(k.key[n-8:]))
	}
	return k
}

// field steps to the value of the field that is next, and returns its index in the plan. It tries
// the likely one and those behind it first, because the service omits fields more often than it
// changes their order.
func (p *plan) field(d *decoder, likely int) (n int, known bool) {
	data, i := d.data, d.i
	if len(data)-i >= 8 {
		word := binary.LittleEndian.Uint64(data[i:])
		for n := likely; n < len(p.fields); n++ {
			k := &p.fields[n].fieldKey
			if (word^k.first)&k.mask == 0 && k.follows(data[i:]) {
				d.i += len(k.key)
				if d.i < len(data) && data[d.i] <= ' ' {
					d.space()
				}
				return n, true
			}
		}
	}
	n, known = p.byName[string(d.name())]
	return n, known
}

// follows reports whether data, which starts with the first bytes of the key, starts with all of
// it.
func (k *fieldKey) follows(data []byte) bool {
	n := len(k.key)
	switch {
	case n <= 8:
		return true
	case n > len(data) || binary.LittleEndian.Uint64(data[n-8:]) != k.last:
		return false
	}
	return n <= 16 || string(data[8:n-8]) == k.key[8:n-8]
}

// moreFields is more of an object, with the usual case first.
func (d *decoder) moreFields() bool {
	if data, i := d.data, d.i; i+1 < len(data) && data[i] == ',' && data[i+1] == '"' {
		d.i++
		return true
	}
	return d.more('}')
}

// null steps over null.
func (d *decoder) null() {
	if data, i := d.data, d.i; i+4 <= len(data) && string(data[i:i+4]) == "null" {
		d.i += 4
		return
	}
	d.literal("null")
}
