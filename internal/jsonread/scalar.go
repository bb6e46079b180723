// Decodes numbers, times, UUIDs and values that decode themselves.

package jsonread

import (
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"
)

var (
	parsers   = map[reflect.Type]func(*decoder, place){}
	comparers = map[reflect.Type]func([]byte, place) match{}
)

// Text registers how the JSON string of a type is parsed in place of its UnmarshalJSON. It is
// called from variable declarations, before anything is decoded.
func Text[T comparable](parse func([]byte) (T, error)) struct{} {
	want := wantOf(reflect.TypeFor[T]())
	parsers[reflect.TypeFor[T]()] = func(d *decoder, to place) {
		if d.peek() != '"' {
			d.misfit(want)
			return
		}
		start := d.i
		v, err := parse(d.string())
		if err != nil {
			d.addProblem(start, want)
			return
		}
		*at[T](to) = v
	}
	comparers[reflect.TypeFor[T]()] = func(text []byte, to place) match {
		v, err := parse(text)
		if err != nil {
			return unknown
		}
		return matchIf(v == *at[T](to))
	}
	return struct{}{}
}

func bindUnmarshaler(t reflect.Type) func(*decoder, place) {
	want, v := wantOf(t), variableOf(t)
	return func(d *decoder, to place) {
		start := d.i
		d.skip()
		if to.pointer(v).(json.Unmarshaler).UnmarshalJSON(d.data[start:d.i]) != nil {
			to.value(v).SetZero()
			d.addProblem(start, want)
		}
	}
}

func bindRaw(d *decoder, to place) {
	if d.skipNull() {
		return
	}
	start := d.i
	d.skip()
	*at[json.RawMessage](to) = slices.Clone(d.data[start:d.i])
}

func (d *decoder) bindNumber(to *string) {
	if !startsNumber(d.peek()) {
		d.misfit("number")
		return
	}
	start := d.i
	d.number()
	d.setString(to, start, d.i, false)
}

func (d *decoder) bindBool(to *bool) {
	switch d.peek() {
	case 't':
		d.literal("true")
		*to = true
	case 'f':
		d.literal("false")
	default:
		d.misfit("boolean")
	}
}

func (d *decoder) bindInt64(to *int64) {
	if !startsNumber(d.peek()) {
		d.misfit("integer")
		return
	}
	start := d.i
	n, raw := d.number()
	if i, ok := n.int64(raw); ok {
		*to = i
	} else {
		d.addProblem(start, "integer")
	}
}

func (d *decoder) bindFloat64(to *float64) {
	if !startsNumber(d.peek()) {
		d.misfit("number")
		return
	}
	start := d.i
	n, raw := d.number()
	if f, ok := n.float64(raw); ok {
		*to = f
	} else {
		d.addProblem(start, "number")
	}
}

func (d *decoder) bindTime(to *time.Time) {
	if d.peek() != '"' {
		d.misfit("date-time")
		return
	}
	fast := FastScanner{Data: d.data, Pos: d.i}
	if fast.Time(to, &d.dates) {
		d.i = fast.Pos
		return
	}
	start := d.i
	t, ok := ParseTime(d.string())
	if !ok {
		*to = time.Time{}
		d.addProblem(start, "date-time")
		return
	}
	*to = t
}

func (d *decoder) bindUUID(to *uuid.UUID) {
	if d.peek() != '"' {
		d.misfit("uuid")
		return
	}
	fast := FastScanner{Data: d.data, Pos: d.i}
	if fast.UUID(to) {
		d.i = fast.Pos
		return
	}
	start := d.i
	b := d.string()
	if len(b) != 36 || !parseUUID((*[36]byte)(b), to) {
		*to = uuid.UUID{}
		d.addProblem(start, "uuid")
	}
}
