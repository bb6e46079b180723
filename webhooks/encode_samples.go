// Encodes batches of samples, which are mostly unchanged.

package webhooks

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// A received batch is encoded by reading its raw bytes once more, a few samples at a time, and
// comparing them with those that the program has: what is unchanged is copied. Changes of anything
// but the samples, and what the fast reader does not read, are left to package jsonread.

// rewriter encodes the samples of a received batch.
type rewriter struct {
	batchReader
	received Samples
	window   [32]Sample // the received samples that were read last

	whole jsonread.Span // what is encoded: the event or the batch; empty for the list alone
	now   []Sample      // the samples to encode
	next  int           // the index of the first of them that is not encoded
	count int           // how many were received, as far as they are compared
	kept  int           // how many of them are unchanged

	same   jsonread.Span // unchanged samples that are next in out, with the commas between them
	out    []byte        // nil as long as there is nothing else
	first  int           // where the samples start in out
	sample []byte        // memory for a changed one
	err    error
}

// rewriters has rewriters that are not in use. They hold nothing of what they encoded.
var rewriters = sync.Pool{New: func() any {
	w := new(rewriter)
	w.full = w.compare
	return w
}}

// rewrite encodes an event with samples, if nothing but the samples was changed.
func (e *Event) rewrite() ([]byte, bool) {
	s, ok := e.Data.(*Samples)
	ref := jsonread.Ref(e.RawObject)
	if !ok || s == nil || ref.IsZero() || ref.Document() != jsonread.Ref(s.RawObject).Document() {
		return nil, false
	}
	p := parser{FastScanner: jsonread.FastScanner{Data: ref.Document().Data()}, data: jsonread.Ref(s.RawObject).Span()}
	data := p.data
	if !p.scanEnvelope() || p.event != ref.Span() || p.data != data {
		return nil, false
	}
	if p.UserID == uuid.Nil {
		p.UserID = s.UserID // as in the received batch, or that is not encoded here
	}
	if p.Envelope != (Envelope{e.Type, e.TeamID, e.UserID, e.ClientUserID}) {
		return nil, false
	}
	return s.rewrite(p.event)
}

// rewrite encodes the batch within whole, the span of the event or of the batch, if nothing but the
// samples was changed.
func (s *Samples) rewrite(whole jsonread.Span) (out []byte, ok bool) {
	w := rewriters.Get().(*rewriter)
	defer w.release()
	if !w.encode(jsonread.Ref(s.RawObject), s.Data, whole) || !s.isUnchanged(&w.received) {
		return nil, false
	}
	return w.end(), true
}

// encodeList encodes the samples alone. They are unchanged if they are those of raw, the received
// array.
func (s *Samples) encodeList(raw []byte) (list []byte, unchanged bool, err error) {
	w := rewriters.Get().(*rewriter)
	defer w.release()
	if !w.encode(jsonread.Ref(s.RawObject), s.Data, jsonread.Span{}) {
		return encodeList(raw, len(s.Data), func(i int) ([]byte, error) { return s.Data[i].MarshalJSON() })
	}
	if w.isUnchanged() {
		return nil, true, nil
	}
	return w.end(), false, nil
}

// isUnchanged reports whether nothing but the samples was changed. If it is not certain, the
// encoder of package jsonread finds out.
func (s *Samples) isUnchanged(received *Samples) bool {
	return s.UserID == received.UserID && s.SourceID == received.SourceID &&
		s.Source.isUnchanged(&received.Source) && (s.Provider == nil) == (received.Provider == nil) &&
		(s.Provider == nil || s.Provider.isUnchanged(received.Provider))
}

func (s *Source) isUnchanged(received *Source) bool {
	return jsonread.Ref(s.RawObject).Same(jsonread.Ref(received.RawObject)) &&
		s.Name == received.Name && s.Slug == received.Slug && s.Logo == received.Logo &&
		s.Provider == received.Provider && s.Type == received.Type &&
		equalValues(s.AppID, received.AppID) && equalValues(s.DeviceID, received.DeviceID) &&
		equalValues(s.Sport, received.Sport) && equalValues(s.WorkoutID, received.WorkoutID)
}

// equalValues reports whether both pointers are nil or point to equal values.
func equalValues[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// isUnchanged reports whether s is certainly what was received. If it is not certain,
// [Sample.MarshalJSON] finds out.
func (s *Sample) isUnchanged(received *Sample) bool {
	return s.Value == received.Value && unchangedTime(&s.Timestamp, &received.Timestamp) &&
		unchangedTime(&s.Start, &received.Start) && unchangedTime(&s.End, &received.End) &&
		s.Systolic == received.Systolic && s.Diastolic == received.Diastolic &&
		s.offset() == received.offset() && s.hasValue() == received.hasValue() &&
		s.Type == received.Type && s.Unit == received.Unit && s.Text == received.Text
}

func unchangedTime(now, received *time.Time) bool {
	return *now == *received || sameTime(*now, *received)
}

// encode encodes the samples of the batch of ref. It reports false for what is left to the encoder
// of package jsonread.
func (w *rewriter) encode(ref jsonread.Ref, now []Sample, whole jsonread.Span) bool {
	if ref.IsZero() {
		return false
	}
	w.document, w.batch, w.one = ref.Document(), &w.received, w.window[:0]
	w.Data, w.Pos = w.document.Data(), int(ref.Span().Lo)
	w.Share()
	w.now, w.whole = now, whole
	if !w.read() || w.Pos != int(ref.Span().Hi) {
		return false
	}
	w.compare()
	w.addUntil(math.MaxUint32)
	return w.err == nil
}

// compare encodes the samples up to those in the window, and empties it.
func (w *rewriter) compare() {
	w.count += len(w.samples)
	for i := range w.samples {
		received := &w.samples[i]
		w.addUntil(received.span.Lo)
		if w.next == len(w.now) || w.now[w.next].span != received.span {
			continue // it was removed, or is later in the list
		}
		s := &w.now[w.next]
		w.next++
		if s.isUnchanged(received) {
			w.keep(received.span)
		} else {
			w.change(s, received)
		}
	}
	clear(w.samples)
	w.samples = w.samples[:0]
}

// addUntil encodes samples up to one of the batch that does not start before lo.
func (w *rewriter) addUntil(lo uint32) {
	for ; w.next < len(w.now); w.next++ {
		s := &w.now[w.next]
		if s.document == w.document && s.span.Lo >= lo {
			return
		}
		b, err := s.MarshalJSON()
		w.add(b, err)
	}
}

// keep encodes an unchanged sample.
func (w *rewriter) keep(span jsonread.Span) {
	w.kept++
	if w.same.Len() > 0 && w.same.Hi+1 == span.Lo {
		w.same.Hi = span.Hi
		return
	}
	w.copySame()
	w.same = span
}

// copySame writes the unchanged samples that are next.
func (w *rewriter) copySame() {
	if w.same.Len() > 0 {
		w.comma()
		w.out = append(w.out, w.same.Of(w.Data)...)
		w.same = jsonread.Span{}
	}
}

// add writes a sample, unless encoding it failed.
func (w *rewriter) add(sample []byte, err error) {
	w.err = errors.Join(w.err, err)
	w.copySame()
	w.comma()
	w.out = append(w.out, sample...)
}

// comma starts the list, or separates a sample from those before it.
func (w *rewriter) comma() {
	switch {
	case w.out == nil:
		w.start()
	case len(w.out) > w.first:
		w.out = append(w.out, ',')
	}
}

// start writes what precedes the samples.
func (w *rewriter) start() {
	size := w.whole.Len()
	if size == 0 { // the array alone, of which the end is not known yet
		w.whole = jsonread.Span{Lo: w.array.Lo, Hi: w.array.Lo}
		size = len(w.Data) - int(w.array.Lo)
	}
	w.out = append(make([]byte, 0, size+128), w.Data[w.whole.Lo:w.array.Lo]...)
	w.out = append(w.out, '[')
	w.first = len(w.out)
}

// isUnchanged reports whether the samples are the received ones.
func (w *rewriter) isUnchanged() bool { return w.kept == w.count && w.kept == len(w.now) }

// end returns what was encoded.
func (w *rewriter) end() []byte {
	if w.isUnchanged() {
		return bytes.Clone(w.whole.Of(w.Data))
	}
	w.copySame()
	if w.out == nil {
		w.start()
	}
	w.out = append(w.out, ']')
	return append(w.out, w.Data[w.array.Hi:max(w.array.Hi, w.whole.Hi)]...)
}

// release makes w available to other batches.
func (w *rewriter) release() {
	clear(w.samples)
	full, sample := w.full, w.sample[:0]
	w.batchReader = batchReader{full: full}
	w.received, w.now, w.out, w.err = Samples{}, nil, nil, nil
	w.whole, w.same = jsonread.Span{}, jsonread.Span{}
	w.next, w.count, w.kept, w.first, w.sample = 0, 0, 0, 0, sample
	rewriters.Put(w)
}

// change encodes a sample that may have been changed.
func (w *rewriter) change(s, received *Sample) {
	raw := received.span.Of(w.Data)
	var ok bool
	if w.sample, ok = s.appendChanged(w.sample[:0], raw, received); ok {
		w.add(w.sample, nil)
		return
	}
	b, err := s.MarshalJSON()
	if string(b) == string(raw) {
		w.keep(received.span)
		return
	}
	w.add(b, err)
}

// appendChanged appends the raw bytes of a received sample with the changed values. It reports
// false if that takes more than other values of fields that the sample has.
func (s *Sample) appendChanged(out, raw []byte, received *Sample) ([]byte, bool) {
	changed := s.changes(received)
	if changed == 0 {
		return out, false
	}
	f := jsonread.FastScanner{Data: raw}
	out = append(out, '{')
	for more, n := f.Open('}'), -1; more; {
		var ok bool
		start := f.Pos
		if n, ok = f.Field(sampleFields, n+1); !ok {
			return out, false
		}
		f.Skip(1)
		if bit := uint16(1) << n; changed&bit == 0 {
			out = append(out, raw[start:f.Pos]...)
		} else {
			changed &^= bit
			out = append(out, sampleFields.Quoted(n)...)
			if out, ok = s.appendValue(out, uint8(n), received); !ok {
				return out, false
			}
		}
		if more, _ = f.More('}'); more {
			out = append(out, ',')
		}
	}
	return append(out, '}'), changed == 0
}

// changes returns the fields that are not as received, as a set of bits.
func (s *Sample) changes(received *Sample) (set uint16) {
	for field, same := range [...]bool{
		timestampField: sameTime(s.Timestamp, received.Timestamp),
		startField:     sameTime(s.Start, received.Start),
		endField:       sameTime(s.End, received.End),
		offsetField:    s.offset() == received.offset(),
		typeField:      s.Type == received.Type,
		unitField:      s.Unit == received.Unit,
		valueField:     s.newValue(received) == received.value(),
		systolicField:  s.Systolic == received.Systolic,
		diastolicField: s.Diastolic == received.Diastolic,
	} {
		if !same {
			set |= 1 << field
		}
	}
	return set
}

// appendValue appends the value of a changed field. It reports false if there is none, or it is an
// unusual one.
func (s *Sample) appendValue(out []byte, field uint8, received *Sample) ([]byte, bool) {
	switch field {
	case timestampField:
		return appendTime(out, s.Timestamp)
	case startField:
		return appendTime(out, s.Start)
	case endField:
		return appendTime(out, s.End)
	case offsetField:
		return strconv.AppendInt(out, int64(s.TimezoneOffset), 10), s.hasOffset()
	case typeField:
		return appendText(out, s.Type)
	case unitField:
		return appendText(out, s.Unit)
	case systolicField:
		return jsonread.AppendFloat(out, s.Systolic)
	case diastolicField:
		return jsonread.AppendFloat(out, s.Diastolic)
	}
	if v := s.newValue(received); v.kind != isNumber {
		return appendText(out, v.text)
	}
	return jsonread.AppendFloat(out, s.Value)
}

func appendTime(out []byte, t time.Time) ([]byte, bool) {
	out, err := t.AppendText(append(out, '"'))
	return append(out, '"'), err == nil && !t.IsZero()
}

func appendText(out []byte, s string) ([]byte, bool) {
	out, ok := jsonread.AppendString(out, s)
	return out, ok && s != ""
}
