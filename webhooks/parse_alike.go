// Reading samples that differ from the one before in few values.

package webhooks

import (
	"math/bits"
	"time"

	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// Samples of a batch mostly differ in the same few values, such as the time and the number. What is
// between two of these values, other values included, is compared with an earlier sample at once,
// and the other values are copied from it.

// alike is what a batchReader knows about values that differ.
type alike struct {
	values [16]jsonread.Span // of the last sample that was read field by field
	differ uint16            // fields that did not have the same value in all of them, as a set of bits
	before int               // where the last value of the sample before it ends
	same   bool              // it has the layout of the sample before it
	misses int               // attempts to read samples after it that found few
}

// mostMisses is how often reading samples at once is tried in a batch where it fails.
const mostMisses = 8

// note stores where the value of the field that was read last starts and whether it differs from
// that of the sample before, if there is one.
func (r *batchReader) note(start int) {
	value := jsonread.Span{Lo: uint32(start), Hi: uint32(r.Pos)}
	last := &r.alike.values[(r.fields-1)%len(r.alike.values)]
	if r.layout[0].Lo > 0 && string(value.Of(r.Data)) != string(last.Of(r.Data)) {
		r.alike.differ |= 1 << (r.fields - 1)
	}
	*last = value
}

// differing returns the fields of the layout that are read one by one, as a set of bits. Those that
// few samples have are read together, because Extra depends on all of them.
func (r *batchReader) differing() uint16 {
	differ, rare := r.alike.differ&(1<<r.length-1)|1, uint16(0)
	for k, g := range r.layout[:r.length] {
		if g.field >= systolicField {
			rare |= 1 << k
		}
	}
	if differ&rare != 0 {
		differ |= rare
	}
	return differ
}

// readAlike reads the samples after the last one as long as they differ from it only in the values
// in which earlier ones did. Both before and after it, the last value of the last sample is the
// last that was read.
func (r *batchReader) readAlike() {
	model := *r.last()
	var parts [16]gap // before each value to be read: from the last such value of the sample before on
	n := 0
	differ := r.differing()
	values := &r.alike.values
	lastRead := int(values[bits.Len16(differ)-1].Hi)
	tail := r.end - lastRead // other values at the end of a sample
	lo := r.alike.before - tail
	toEnd, toStart := r.closing+tail, r.opening+tail
	for ; differ != 0; differ &= differ - 1 {
		k := bits.TrailingZeros16(differ)
		parts[n] = gap{jsonread.Span{Lo: uint32(lo), Hi: values[k].Lo}, r.layout[k].field}
		model.reset(parts[n].field)
		lo = int(values[k].Hi)
		n++
	}
	count := len(r.samples)
	r.Pos = lastRead
	for r.readNext(&model, parts[:n], toEnd, toStart) {
		r.end = lastRead + tail
		lastRead = r.Pos
	}
	if tail == 0 {
		r.end = lastRead
	} else if len(r.samples) > count { // the other values at its end are not compared yet
		r.dropLast()
	}
	r.Pos = r.end
	if len(r.samples) < count+4 {
		r.alike.misses++
	}
}

// readNext reads the next sample, which the model has but for the values after the parts. The
// scanner is after the last such value of the sample before.
func (r *batchReader) readNext(model *Sample, parts []gap, toEnd, toStart int) bool {
	n, at := len(r.samples), r.Pos
	if n == cap(r.samples) || !r.SkipEqual(parts[0].Span) {
		return false
	}
	r.last().span.Hi = uint32(at + toEnd)
	r.samples = r.samples[:n+1]
	sample := &r.samples[n]
	*sample = *model
	sample.span.Lo = uint32(at + toStart)
	for k := range parts {
		if k > 0 && !r.SkipEqual(parts[k].Span) || !r.readValue(sample, parts[k].field) {
			r.dropLast()
			return false
		}
	}
	return true
}

// dropLast removes the last sample.
func (r *batchReader) dropLast() {
	*r.last() = Sample{}
	r.samples = r.samples[:len(r.samples)-1]
}

// reset sets a field to what it is before it is read.
func (s *Sample) reset(field uint8) {
	switch field {
	case timestampField:
		s.Timestamp = time.Time{}
	case startField:
		s.Start = time.Time{}
	case endField:
		s.End = time.Time{}
	case offsetField:
		s.TimezoneOffset, s.HasTimezoneOffset = 0, false
	case typeField:
		s.Type = ""
	case unitField:
		s.Unit = ""
	case valueField:
		s.Value, s.HasValue, s.Rounded, s.Text = 0, false, false, ""
	default:
		s.Systolic, s.Diastolic, s.Extra = 0, 0, false
	}
}
