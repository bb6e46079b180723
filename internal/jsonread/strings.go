// Strings that are parts of their document, and strings that are copied.

package jsonread

import (
	"encoding/binary"
	"math/bits"
)

// How strings get their memory. In a document that is kept they are parts of its bytes. If the
// bytes are a copy that is made when the document has been decoded, the strings wait until then.
// Strings of a large document are copied, so that one of them does not keep it all.
type stringMode uint8

const (
	copied stringMode = iota
	shared
	awaited
)

// mostKept is the size of the largest document that a string in it may keep.
const mostKept = 16 << 10

// waiting is a string that will be part of the copy of its document: data[lo:hi] of the decoder.
type waiting struct {
	to     *string
	lo, hi uint32
}

// chunk is how many bytes of copied strings share an allocation: few enough that a string that is
// kept for long keeps little else.
const chunk = 1 << 10

// newString returns b as a string. Short ones are written one after the other and share an
// allocation.
func (d *decoder) newString(b []byte) string {
	if len(b) > chunk/4 {
		return string(b)
	}
	if d.arena.Cap()-d.arena.Len() < len(b) {
		d.arena.Reset()
		d.arena.Grow(min(chunk, len(b)+len(d.data)-d.i))
	}
	start := d.arena.Len()
	d.arena.Write(b)
	return d.arena.String()[start:]
}

// enum returns b as a string, without a new allocation if it is one of the enum values seen last.
func (d *decoder) enum(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	cached := &d.enums[(len(b)*7+int(b[0])+int(b[len(b)-1])*3)%len(d.enums)]
	if *cached != string(b) {
		*cached = string(b)
	}
	return *cached
}

// bindString decodes the string at i into to, which is empty.
func (d *decoder) bindString(to *string, b *binder) {
	start, data := d.i+1, d.data
	if start > len(data) || data[start-1] != '"' {
		d.peek()
		d.misfit(b.want)
		return
	}
	for i := start; i <= len(data)-8; i += 8 {
		found := special(binary.LittleEndian.Uint64(data[i:]))
		if found == 0 {
			continue
		}
		if i += bits.TrailingZeros64(found) / 8; data[i] != '"' {
			break
		}
		d.i = i + 1
		if d.strings == awaited && i > start { // as setString does
			d.waiting = append(d.waiting, waiting{to, uint32(start), uint32(i)})
		} else {
			d.setString(to, start, i, b.how == asEnum)
		}
		return
	}
	if text := d.string(); len(text) == d.i-1-start {
		d.setString(to, start, d.i-1, b.how == asEnum)
	} else { // it has escapes, all of which are longer than what they stand for
		*to = d.newString(text)
	}
}

// setString sets a string to data[lo:hi].
func (d *decoder) setString(to *string, lo, hi int, isEnum bool) {
	switch {
	case lo == hi:
	case d.strings == awaited:
		d.waiting = append(d.waiting, waiting{to, uint32(lo), uint32(hi)})
	case d.strings == shared:
		*to = d.text[lo:hi]
	case isEnum:
		*to = d.enum(d.data[lo:hi])
	default:
		*to = d.newString(d.data[lo:hi])
	}
}

// current returns the string at to, which was decoded last. It is valid while the decoder's data
// is.
func (d *decoder) current(to *string) string {
	if n := len(d.waiting); n > 0 && d.waiting[n-1].to == to {
		return textOf(d.data[d.waiting[n-1].lo:d.waiting[n-1].hi])
	}
	return *to
}

// share sets the strings that wait, from the index on, to parts of kept: the copy of the document
// that starts at base.
func (d *decoder) share(from int, kept string, base int) {
	if len(kept) > mostKept {
		d.settle(from)
		return
	}
	for _, w := range d.waiting[from:] {
		*w.to = kept[int(w.lo)-base : int(w.hi)-base]
	}
	d.waiting = d.waiting[:from]
}

// settle copies the strings that wait, from the index on: before the memory that they are set in is
// cleared or copied.
func (d *decoder) settle(from int) {
	for _, w := range d.waiting[from:] {
		*w.to = d.newString(d.data[w.lo:w.hi])
	}
	d.waiting = d.waiting[:from]
}
