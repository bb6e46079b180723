package jsonread

import "encoding/binary"

// firstField steps into the object that is next, and then does what nextField does.
func (p *plan) firstField(d *decoder) (n int, more bool) {
	if !d.open('}') {
		return 0, false
	}
	return p.field(d, 0), true
}

// nextField steps from the end of a value to that of the next field, and returns its index in the
// plan, or -1 if the plan does not have it. It tries the likely one and those behind it first,
// because the service omits fields more often than it changes their order. It reports false after
// the last field.
func (p *plan) nextField(d *decoder, likely int) (n int, more bool) {
	if rest := d.data[d.i:]; len(rest) > 25 && rest[0] == ',' && likely < len(p.names) {
		name := &p.names[likely]
		a, b, c := binary.LittleEndian.Uint64(rest[1:]), binary.LittleEndian.Uint64(rest[9:]), binary.LittleEndian.Uint64(rest[17:])
		if size := len(name.quoted); name.startsAs(a, b, c) && size <= 24 && rest[size+1] > ' ' { // the usual case
			d.i += size + 1
			return likely, true
		}
	}
	if !d.more('}') {
		return 0, false
	}
	return p.field(d, likely), true
}

// field steps to the value of the field that is next, and returns its index in the plan, or -1.
func (p *plan) field(d *decoder, likely int) int {
	if rest := d.data[d.i:]; len(rest) > 24 {
		n := p.names.findAny(rest, likely)
		if n == len(p.names) { // the order may be another one
			if n = p.names[:likely].findAny(rest, 0); n == likely {
				n = len(p.names)
			}
		}
		if n < len(p.names) {
			d.enter(&p.names[n])
			return n
		}
	}
	if n, known := p.byName[string(d.name())]; known {
		return n
	}
	return -1
}

// findAny is find for names that may be longer than what find compares.
func (f FieldNames) findAny(rest []byte, likely int) int {
	n := f.find(rest, likely)
	for n < len(f) && len(f[n].quoted) > 24 && !f[n].continues(rest) {
		n = f.find(rest, n+1)
	}
	return n
}

// enter steps over a name that is next to the field's value.
func (d *decoder) enter(name *fieldName) {
	d.i += len(name.quoted)
	if d.i < len(d.data) && d.data[d.i] <= ' ' {
		d.space()
	}
}

// null steps over null.
func (d *decoder) null() {
	if data, i := d.data, d.i; i+4 <= len(data) && string(data[i:i+4]) == "null" {
		d.i += 4
		return
	}
	d.literal("null")
}
