// Samples, and the forms of samples by resource.

package webhooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// Samples is a batch of samples of one resource and source: the data of
// daily.data.<resource>.created and .updated of every resource that is not a summary. Printed or
// logged, it shows only its IDs.
type Samples struct {
	UserID   uuid.UUID // the service's ID of the user; zero if the data does not repeat it
	Source   Source    // the origin of the samples
	SourceID int64     // the service's number of the source, 0 if it is missing
	// Provider is an older name of Source, nil in all but old events.
	// Source: public API reference only.
	Provider *Source
	// Data has the samples in the order of the event. It is empty if their list is missing, null or
	// an empty object, and the data holds nothing else. A program may add, change and remove
	// samples: encoding the batch to JSON writes unchanged ones as their raw bytes.
	Data []Sample

	labhealth.RawObject
}

// Sample is one measured value. Resources differ in what a sample has: some have Start and End, a
// note has Text instead of Value, a blood pressure has Systolic and Diastolic, and some have
// further fields, which [RawSample.Details] returns. Source of all values other than one number:
// public API reference only.
//
// Encoding a received sample to JSON gives its raw bytes; if the program changed it, the changed
// fields are encoded again, and all others stay as received. A field that is not zero is written
// regardless of its Has… flag; a zero one needs the flag. Value and Text share one JSON field: Text
// is written if the program set it, else the number if there is one.
type Sample struct {
	Timestamp time.Time // when it was measured; zero if it cannot be read. Some sources label local time as UTC
	Start     time.Time // start of the measured interval; zero if there is none
	End       time.Time // end of the measured interval; zero if there is none

	Value     float64 // the number in Unit; see HasValue
	Systolic  float64 // of a blood pressure, else 0
	Diastolic float64 // of a blood pressure, else 0

	// TimezoneOffset is the user's UTC offset in seconds east of UTC; see HasTimezoneOffset.
	TimezoneOffset    int32
	HasTimezoneOffset bool // the sample has an offset other than null; set it to write an offset of 0
	HasValue          bool // the sample has a number; set it to write a value of 0
	// Extra reports whether the received sample has malformed fields, further fields other than
	// null, or a blood pressure of zero.
	Extra bool
	// Rounded reports whether the received number has digits that Value does not hold: see
	// [Sample.Number]. It has no effect on a value that the program set.
	Rounded bool

	Type string // how it was measured, such as "automatic"; empty if it is empty, null or missing
	Unit string // the unit of the value, such as "mmol/L"
	Text string // the value of a note

	RawSample
}

// RawSample is embedded in [Sample], as [labhealth.RawObject] is in other types, and keeps the raw
// bytes of a received sample. All samples of an event share them: a program that keeps one sample
// keeps the whole event in memory.
type RawSample struct {
	labhealth.Redacted

	document *jsonread.Document
	span     jsonread.Span
}

func (r RawSample) ref() jsonread.Ref {
	if r.document == nil {
		return jsonread.Ref{}
	}
	return r.document.Ref(r.span)
}

// RawJSON returns a copy of the received JSON of the sample, or nil if the program created it.
func (r RawSample) RawJSON() json.RawMessage { return r.ref().Raw() }

// Malformed lists the malformed fields of the sample. See [labhealth.RawObject].
func (r RawSample) Malformed() []labhealth.Malformed {
	return labhealth.RawObject(r.ref()).Malformed()
}

// Decode decodes the received JSON of the sample into the value that v points to, as encoding/json
// does. Use it for fields that are neither in [Sample] nor in [SampleDetails]. The program's
// changes have no effect on it.
func (r RawSample) Decode(v any) error { return decode(r.ref(), v) }

// Equal exists for go-cmp and always reports true: two samples are the same if their fields are.
func (RawSample) Equal(RawSample) bool { return true }

var errNotReceived = errors.New("webhooks: the value was not received from the service")

func decode(r jsonread.Ref, v any) error {
	if r.IsZero() {
		return errNotReceived
	}
	return json.Unmarshal(r.Raw(), v)
}

// sampleForm is how a sample is decoded and encoded.
type sampleForm struct {
	Timestamp      time.Time `json:"timestamp,omitzero"`
	TimezoneOffset integer   `json:"timezone_offset,omitzero"`
	Type           enum      `json:"type,omitzero"`
	Unit           enum      `json:"unit"`
	Value          number    `json:"value,omitzero"`
	Systolic       number    `json:"systolic,omitzero"`
	Diastolic      number    `json:"diastolic,omitzero"`
	Start          time.Time `json:"start,omitzero"`
	End            time.Time `json:"end,omitzero"`

	labhealth.RawObject `json:"-"`
}

// enum is a string of which few values are frequent.
type enum string

// integer is an integer that may be missing. Its name, like that of number, is the type in
// [labhealth.Malformed].
type integer struct {
	n   int32
	set bool
}

func (v integer) IsZero() bool { return !v.set }

func (v integer) MarshalJSON() ([]byte, error) {
	return strconv.AppendInt(nil, int64(v.n), 10), nil
}

func (v *integer) UnmarshalJSON(b []byte) error {
	if b[0] == 'n' { // null
		return nil
	}
	n, ok := jsonread.Integer(b)
	if !ok || n != int64(int32(n)) {
		return errMisfit
	}
	*v = integer{int32(n), true}
	return nil
}

// number is a number, or the text of a note in its place.
type number struct {
	float   float64
	text    string
	kind    valueKind
	rounded bool // float is
}

type valueKind uint8

const (
	noValue valueKind = iota
	isNumber
	isText
)

func (v number) IsZero() bool { return v.kind == noValue }

func (v number) MarshalJSON() ([]byte, error) {
	if v.kind == isText {
		return json.Marshal(v.text)
	}
	return json.Marshal(v.float)
}

func (v *number) UnmarshalJSON(b []byte) error {
	switch b[0] {
	case 'n': // null
		return nil
	case '"':
		s, _ := jsonread.String(b)
		*v = noteOf(s)
		return nil
	}
	f, ok := jsonread.Float(b)
	if !ok {
		return errMisfit
	}
	*v = number{float: f, kind: isNumber, rounded: jsonread.Rounds(b, f)}
	return nil
}

// equalsZero reports whether v is a number that is 0.
func (v number) equalsZero() bool { return v.kind == isNumber && v.float == 0 }

var errMisfit = errors.New("webhooks: the value does not fit")

func numberOf(f float64) number { return number{float: f, kind: isNumber} }

func noteOf(s string) number { return number{text: s, kind: isText} }

// sample returns f as a Sample. Text in the place of a blood pressure is left out.
func (f *sampleForm) sample() Sample {
	return Sample{
		Timestamp: f.Timestamp, Start: f.Start, End: f.End,
		Value: f.Value.float, HasValue: f.Value.kind == isNumber, Rounded: f.Value.rounded, Text: f.Value.text,
		Systolic: f.Systolic.float, Diastolic: f.Diastolic.float,
		TimezoneOffset: f.TimezoneOffset.n, HasTimezoneOffset: f.TimezoneOffset.set,
		Type: string(f.Type), Unit: string(f.Unit),
	}
}

// MarshalJSON writes every received field, with the program's changes on top.
func (s Sample) MarshalJSON() ([]byte, error) {
	var f sampleForm
	var original Sample
	if ref := s.ref(); !ref.IsZero() {
		if err := ref.Original(&f); err != nil {
			return nil, err
		}
		original = f.sample()
	}
	setChangedTime(&f.Timestamp, original.Timestamp, s.Timestamp)
	setChangedTime(&f.Start, original.Start, s.Start)
	setChangedTime(&f.End, original.End, s.End)
	setChanged(&f.Type, enum(original.Type), enum(s.Type))
	setChanged(&f.Unit, enum(original.Unit), enum(s.Unit))
	setChanged(&f.TimezoneOffset, original.offset(), s.offset())
	setChanged(&f.Systolic, numberOf(original.Systolic), numberOf(s.Systolic))
	setChanged(&f.Diastolic, numberOf(original.Diastolic), numberOf(s.Diastolic))
	setChanged(&f.Value, original.value(), s.newValue(&original))
	return jsonread.Marshal(&f)
}

func (s *Sample) offset() integer { return integer{s.TimezoneOffset, s.hasOffset()} }

// hasOffset reports whether the sample has an offset: a program that sets one may not set the flag.
func (s *Sample) hasOffset() bool { return s.HasTimezoneOffset || s.TimezoneOffset != 0 }

// hasValue reports whether the sample has a number: a program that sets one may not set the flag.
func (s *Sample) hasValue() bool { return s.HasValue || s.Value != 0 }

func (s *Sample) value() number {
	switch {
	case s.hasValue():
		return numberOf(s.Value)
	case s.Text != "":
		return noteOf(s.Text)
	}
	return number{}
}

// newValue returns the value to write: the text if the program set it, else the number.
func (s *Sample) newValue(original *Sample) number {
	if s.Text != "" && s.Text != original.Text {
		return noteOf(s.Text)
	}
	return s.value()
}

// Number returns the number of the sample with all its digits, in the notation in which
// encoding/json writes a float64, such as 12345678901234567890 where Value is 12345678901234567000.
// It is Value if the program set that, and empty if there is no number. A number that is too large
// for a float64, such as 1e+400, is returned although HasValue is false and [RawSample.Malformed]
// lists it. The exponent can be so large that converting the number exactly takes more memory than
// there is.
func (s Sample) Number() json.Number {
	if s.document != nil {
		raw := jsonread.Lookup(s.span.Of(s.document.Data()), "value")
		if len(raw) > 0 && (raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9') {
			f, fits := jsonread.Float(raw)
			if fits && s.hasValue() && f == s.Value || !fits && !s.hasValue() && s.Text == "" {
				return json.Number(jsonread.Decimal(raw))
			}
		}
	}
	if !s.hasValue() {
		return ""
	}
	text, _ := json.Marshal(s.Value) // empty if it is not finite
	return json.Number(text)
}

func setChangedTime(field *time.Time, original, now time.Time) {
	if !sameTime(original, now) {
		*field = now
	}
}

// sameTime reports whether two times are written the same.
func sameTime(a, b time.Time) bool {
	_, east := a.Zone()
	_, east2 := b.Zone()
	return a.Equal(b) && east == east2
}

// UnmarshalJSON decodes a JSON value. It fails only if b is not JSON.
func (s *Sample) UnmarshalJSON(b []byte) error {
	if err := jsonread.Valid(b); err != nil {
		return err
	}
	document := jsonread.NewDocument(slices.Concat([]byte("["), b, []byte("]")))
	list, _ := decodeSampleList(document, document.Value(), 1)
	*s = list[0]
	return nil
}

// samplesForm is how a batch is decoded and encoded.
type samplesForm[D any] struct {
	UserID   uuid.UUID `json:"user_id,omitzero"`
	Source   Source    `json:"source,omitzero"`
	SourceID int64     `json:"source_id,omitzero"`
	Provider *Source   `json:"provider,omitzero"`
	Data     D         `json:"data,omitzero"`

	labhealth.RawObject `json:"-"`
}

// MarshalJSON writes every received field, with the program's changes on top. See
// [labhealth.RawObject].
func (s Samples) MarshalJSON() ([]byte, error) {
	if out, ok := s.rewrite(jsonread.Ref(s.RawObject).Span()); ok {
		return out, nil
	}
	return s.encodeForm(s.encodeList)
}

// encodeForm encodes the batch field by field. encodeList returns the array of the samples, or
// whether they are those of raw, the received array.
func (s *Samples) encodeForm(encodeList func(raw []byte) (list []byte, unchanged bool, err error)) ([]byte, error) {
	var f samplesForm[json.RawMessage]
	if ref := jsonread.Ref(s.RawObject); !ref.IsZero() {
		if err := ref.Original(&f); err != nil {
			return nil, err
		}
	}
	f.UserID, f.Source, f.SourceID, f.Provider = s.UserID, s.Source, s.SourceID, s.Provider
	if isList := len(f.Data) > 0 && f.Data[0] == '['; isList || s.Data != nil {
		list, unchanged, err := encodeList(f.Data)
		if err != nil {
			return nil, err
		}
		if !unchanged {
			f.Data = list
		}
	}
	return jsonread.Marshal(&f)
}

// encodeList encodes a list of n elements as an array. It is unchanged if they are those of raw,
// the received array.
func encodeList(raw []byte, n int, encode func(i int) ([]byte, error)) (list []byte, unchanged bool, err error) {
	received := slices.AppendSeq(make([][]byte, 0, n), jsonread.Elements(raw))
	unchanged = len(raw) > 0 && raw[0] == '[' && len(received) == n
	list = append(make([]byte, 0, len(raw)+2), '[')
	for i := range n {
		b, err := encode(i)
		if err != nil {
			return nil, false, err
		}
		unchanged = unchanged && string(b) == string(received[i])
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, b...)
	}
	return append(list, ']'), unchanged, nil
}

// UnmarshalJSON decodes a JSON value. It fails only if b is not JSON. Data stays nil if the value
// has no array of that name, or one that would take far more memory than its JSON.
func (s *Samples) UnmarshalJSON(b []byte) error {
	if err := jsonread.Valid(b); err != nil {
		return err
	}
	*s = Samples{}
	document := jsonread.NewDocument(bytes.Clone(b))
	s.decode(document, document.Value(), mostSamples(len(b)))
	return nil
}

// sampleSize is how many bytes a sample takes in memory beyond its JSON.
var sampleSize = int(reflect.TypeFor[Sample]().Size())

// mostSamples returns how many samples are read from a body of so many bytes: together with the
// body they take at most four times its size. The shortest sample that the service could send, with
// a timestamp, a unit and a value, has 57 bytes.
func mostSamples(body int) int { return 3*body/sampleSize + 64 }

// decode decodes the batch at span, of at most most samples. It reports false if the batch would
// take too much memory.
func (s *Samples) decode(document *jsonread.Document, span jsonread.Span, most int) bool {
	var f samplesForm[anyJSON]
	if document.Read(span, &f, budget(span.Len()), "data") != nil {
		return false
	}
	*s = Samples{UserID: f.UserID, Source: f.Source, SourceID: f.SourceID, Provider: f.Provider, RawObject: f.RawObject}
	list := jsonread.Ref(f.Data.RawObject).Span()
	if list.Len() == 0 || document.Data()[list.Lo] != '[' {
		return true
	}
	var ok bool
	s.Data, ok = decodeSampleList(document, list, most)
	return ok
}

// decodeSampleList decodes the array at span, unless it has more than most elements.
func decodeSampleList(document *jsonread.Document, span jsonread.Span, most int) ([]Sample, bool) {
	data := document.Data()
	n := 0
	if array := (jsonread.FastScanner{Data: data, Pos: int(span.Lo)}); array.Open(']') {
		n = array.Count()
	}
	if n > most {
		return nil, false
	}
	list := make([]Sample, 0, n)
	var f sampleForm
	document.ReadElements(span, &f, func(element jsonread.Span, fits bool) {
		s := f.sample()
		s.RawSample = RawSample{document: document, span: element}
		for _, v := range [...]struct {
			name string
			kind valueKind
		}{{"systolic", f.Systolic.kind}, {"diastolic", f.Diastolic.kind}} {
			if v.kind == isText {
				fits = false
				document.AddProblem(element.Lo+1, "number", "data", "data", strconv.Itoa(len(list)), v.name)
			}
		}
		s.Extra = !fits || f.Systolic.equalsZero() || f.Diastolic.equalsZero() || hasExtraFields(element.Of(data))
		list = append(list, s)
	}, "data", "data")
	return list, true
}

// hasExtraFields reports whether a sample has more than its fields show.
func hasExtraFields(raw []byte) bool {
	if raw[0] != '{' {
		return raw[0] != 'n'
	}
	var seen uint
	for name, value := range jsonread.Fields(raw) {
		field := sampleFields.Index(name)
		if field == len(sampleFields) {
			if string(value) != "null" {
				return true
			}
			continue
		}
		if seen&(1<<field) != 0 {
			return true
		}
		seen |= 1 << field
	}
	return false
}

// The fields of a sample in sampleFields.
const (
	timestampField uint8 = iota
	startField
	endField
	offsetField
	typeField
	unitField
	valueField
	systolicField
	diastolicField
	otherField
)

var sampleFields = jsonread.NewFieldNames("timestamp", "start", "end", "timezone_offset", "type", "unit", "value", "systolic", "diastolic")
