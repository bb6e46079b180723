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

// Samples is a batch of samples of one resource and source: the data of daily.data.<resource>.created and .updated of every
// resource that is no summary. It redacts itself when printed, but for its ids.
type Samples struct {
	UserID   uuid.UUID // the service's id of the user; zero if the data does not repeat it
	Source   Source    // where the samples come from
	SourceID int64     // the service's number of the source, 0 if it did not come
	// Provider is an older name of Source, nil in all but old events.
	// Source: public API reference only.
	Provider *Source
	// Data are the samples in the order in which they came. A program may change, remove and add some: encoding the batch to
	// JSON writes those that it did not change as they came.
	Data []Sample

	labhealth.RawObject
}

// Sample is one measured value. Resources differ in what a sample has: some have Start and End, a note
// has Text instead of Value, a blood pressure has Systolic and Diastolic, and some have further fields,
// which [KeptSample.Decode] reads. Source of all values other than one number:
// public API reference only.
//
// Encoding a sample that came from the service to JSON gives the bytes that came; of one that a program changed, those members
// that hold what was changed are written anew, and all others as they came. A field that is not zero is written whatever its Has…
// flag says; a zero one needs the flag. Value and Text are one field of the JSON: Text is written if the program set it, else the
// number if there is one.
//
// It redacts itself when printed.
type Sample struct {
	Timestamp time.Time // when it was measured; zero if it cannot be read. Some sources label a wall clock as UTC
	Start     time.Time // of what was measured over a time; zero otherwise
	End       time.Time // of what was measured over a time; zero otherwise

	Value     float64 // the number in Unit; see HasValue
	Systolic  float64 // of a blood pressure, else 0
	Diastolic float64 // of a blood pressure, else 0

	// TimezoneOffset is where the user was, in seconds east of UTC; see HasTimezoneOffset.
	TimezoneOffset    int32
	HasTimezoneOffset bool // an offset came that is not null; set it to write an offset of 0
	HasValue          bool // a number came as value; set it to write a value of 0
	// Extra says that the sample came with more than the fields here show: further members, or some that are malformed.
	Extra bool

	Type string // how it was measured, such as "automatic"; empty if it came so, or as null, or not at all
	Unit string // the unit of the value, such as "mmol/L"
	Text string // the value of a note

	KeptSample
}

// KeptSample is embedded in [Sample], as [labhealth.RawObject] is in other types, and keeps the bytes the sample came as. They are
// shared by all samples of an event: a sample that a program holds on to holds the whole event in memory.
type KeptSample struct {
	doc    *jsonread.Document
	lo, hi uint32
}

func (k KeptSample) ref() jsonread.Ref {
	if k.doc == nil {
		return jsonread.Ref{}
	}
	return k.doc.Ref(int(k.lo), int(k.hi), sampleDepth)
}

// sampleDepth is the length of the path to a sample: data, data and its number.
const sampleDepth = 3

// RawJSON returns a copy of the bytes the sample came as, nil if it did not come from the service.
func (k KeptSample) RawJSON() json.RawMessage { return k.ref().Raw() }

// Malformed names the members of the sample whose value does not fit. See [labhealth.RawObject].
func (k KeptSample) Malformed() []labhealth.Malformed {
	return labhealth.RawObject(k.ref()).Malformed()
}

// Decode reads the sample as it came into what v points to, as encoding/json does: for members that have no field in [Sample],
// such as sensor_location or tags. Changes that the program made are not seen.
func (k KeptSample) Decode(v any) error { return decode(k.ref(), v) }

// Equal reports true: two samples are the same if their fields are, whatever bytes they came as. go-cmp calls it.
func (KeptSample) Equal(KeptSample) bool { return true }

var errNotReceived = errors.New("webhooks: the value did not come from the service")

// sampleForm is a sample as jsonread reads and writes it.
type sampleForm struct {
	Timestamp      time.Time `json:"timestamp,omitzero"`
	TimezoneOffset integer   `json:"timezone_offset,omitzero"`
	Type           word      `json:"type,omitzero"`
	Unit           word      `json:"unit"`
	Value          number    `json:"value,omitzero"`
	Systolic       number    `json:"systolic,omitzero"`
	Diastolic      number    `json:"diastolic,omitzero"`
	Start          time.Time `json:"start,omitzero"`
	End            time.Time `json:"end,omitzero"`

	labhealth.RawObject `json:"-"`
}

// word is text that occurs again and again.
type word string

// integer is a member that may be null.
type integer struct {
	n   int32
	set bool
}

func (v integer) IsZero() bool { return !v.set }

func (v integer) MarshalJSON() ([]byte, error) { return strconv.AppendInt(nil, int64(v.n), 10), nil }

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
	f    float64
	text string
	kind uint8
}

const (
	noNumber uint8 = iota
	aNumber
	aText
)

func (v number) IsZero() bool { return v.kind == noNumber }

func (v number) MarshalJSON() ([]byte, error) {
	if v.kind == aText {
		return json.Marshal(v.text)
	}
	return json.Marshal(v.f)
}

func (v *number) UnmarshalJSON(b []byte) error {
	switch b[0] {
	case 'n': // null
		return nil
	case '"':
		s, _ := jsonread.String(b)
		*v = number{text: s, kind: aText}
		return nil
	}
	f, err := strconv.ParseFloat(string(b[:min(len(b), maxNumber)]), 64)
	if err != nil || len(b) > maxNumber {
		return errMisfit
	}
	*v = number{f: f, kind: aNumber}
	return nil
}

var errMisfit = errors.New("webhooks: the value does not fit")

// maxNumber is the longest number that is read: far longer than a float64 can tell apart.
const maxNumber = 1000

// sample returns f as a Sample. Text in the place of a blood pressure is left out.
func (f *sampleForm) sample() Sample {
	return Sample{
		Timestamp: f.Timestamp, Start: f.Start, End: f.End,
		Value: f.Value.f, HasValue: f.Value.kind == aNumber, Text: f.Value.text,
		Systolic: f.Systolic.f, Diastolic: f.Diastolic.f,
		TimezoneOffset: f.TimezoneOffset.n, HasTimezoneOffset: f.TimezoneOffset.set,
		Type: string(f.Type), Unit: string(f.Unit),
	}
}

func numberOf(f float64) number { return number{f: f, kind: aNumber} }

// MarshalJSON writes every member that came, with the changes made since.
func (s Sample) MarshalJSON() ([]byte, error) {
	var f sampleForm
	var was Sample
	if s.doc != nil {
		if err := s.ref().Again(&f); err != nil {
			return nil, err
		}
		was = f.sample()
	}
	putTime(&f.Timestamp, was.Timestamp, s.Timestamp)
	putTime(&f.Start, was.Start, s.Start)
	putTime(&f.End, was.End, s.End)
	put(&f.Type, word(was.Type), word(s.Type))
	put(&f.Unit, word(was.Unit), word(s.Unit))
	put(&f.TimezoneOffset, offsetOf(&was), offsetOf(&s))
	put(&f.Systolic, numberOf(was.Systolic), numberOf(s.Systolic))
	put(&f.Diastolic, numberOf(was.Diastolic), numberOf(s.Diastolic))
	value := valueOf(&s)
	if s.Text != "" && s.Text != was.Text {
		value = textOfNote(&s)
	}
	put(&f.Value, valueOf(&was), value)
	return jsonread.Marshal(&f)
}

func offsetOf(s *Sample) integer { return integer{s.TimezoneOffset, s.hasOffset()} }

// hasOffset reports whether the sample has an offset: a program that sets one may not set the flag.
func (s *Sample) hasOffset() bool { return s.HasTimezoneOffset || s.TimezoneOffset != 0 }

// hasValue reports whether the sample has a number: a program that sets one may not set the flag.
func (s *Sample) hasValue() bool { return s.HasValue || s.Value != 0 }

func valueOf(s *Sample) number {
	switch {
	case s.hasValue():
		return numberOf(s.Value)
	case s.Text != "":
		return textOfNote(s)
	}
	return number{}
}

func textOfNote(s *Sample) number { return number{text: s.Text, kind: aText} }

func putTime(p *time.Time, was, now time.Time) {
	if !sameTime(was, now) {
		*p = now
	}
}

// sameTime reports whether two times are written the same.
func sameTime(a, b time.Time) bool {
	_, east := a.Zone()
	_, east2 := b.Zone()
	return a.Equal(b) && east == east2
}

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error.
func (s *Sample) UnmarshalJSON(b []byte) error {
	if err := jsonread.Valid(b); err != nil {
		return err
	}
	list := append(append(append(make([]byte, 0, len(b)+2), '['), b...), ']')
	one, _ := readSamples(jsonread.NewDocument(list), 0, len(list), 1)
	*s = one[0]
	return nil
}

// samplesForm is a batch as jsonread reads and writes it.
type samplesForm[D any] struct {
	UserID   uuid.UUID `json:"user_id,omitzero"`
	Source   Source    `json:"source,omitzero"`
	SourceID int64     `json:"source_id,omitzero"`
	Provider *Source   `json:"provider,omitzero"`
	Data     D         `json:"data,omitzero"`

	labhealth.RawObject `json:"-"`
}

// MarshalJSON writes every member that came, with the changes made since. See [labhealth.RawObject].
func (s Samples) MarshalJSON() ([]byte, error) {
	var f samplesForm[json.RawMessage]
	ref := jsonread.Ref(s.RawObject)
	if came(ref) {
		if err := ref.Again(&f); err != nil {
			return nil, err
		}
	}
	f.UserID, f.Source, f.SourceID, f.Provider = s.UserID, s.Source, s.SourceID, s.Provider
	elements, sameElements, err := s.elements(f.Data)
	if err != nil {
		return nil, err
	}
	if !sameElements {
		f.Data = elements
	}
	return jsonread.Marshal(&f)
}

// elements writes the samples as an array. It is the same as raw, the array that came, if nobody touched it.
func (s *Samples) elements(raw []byte) (text []byte, same bool, err error) {
	out := append(make([]byte, 0, len(raw)+2), '[')
	var each [][]byte
	if len(raw) > 0 && raw[0] == '[' {
		each = make([][]byte, 0, len(s.Data))
		for e := range jsonread.Elements(raw) {
			each = append(each, e)
		}
	}
	same = each != nil && len(each) == len(s.Data) || each == nil && s.Data == nil
	for i := range s.Data {
		b, err := s.Data[i].MarshalJSON()
		if err != nil {
			return nil, false, err
		}
		same = same && string(b) == string(each[i])
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, b...)
	}
	return append(out, ']'), same, nil
}

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. Data stays nil if the value has no array of that
// name, or one that would take far more memory than its text.
func (s *Samples) UnmarshalJSON(b []byte) error {
	if err := jsonread.Valid(b); err != nil {
		return err
	}
	p := parser{scanner: scanner{text: bytes.Clone(b)}}
	p.doc = jsonread.NewDocument(p.text)
	p.dataLo, p.dataHi = trim(p.text)
	p.samples = s
	*s = Samples{}
	p.generalSamples()
	return nil
}

// sampleSize is what a sample takes in memory beside its text.
var sampleSize = int(reflect.TypeFor[Sample]().Size())

// mostSamples is how many samples are read from a body of so many bytes: together with the body they take four times its size.
// The shortest sample that the service could send, with a timestamp, a unit and a value, has 57 bytes.
func mostSamples(body int) int { return 3*body/sampleSize + 64 }

// generalSamples reads a batch that the scanner of samples did not read.
func (p *parser) generalSamples() Payload {
	var f samplesForm[anyJSON]
	if p.doc.Read(p.dataLo, p.dataHi, &f, budget(p.dataHi-p.dataLo), "data") != nil {
		return p.unknown(errAbsurd)
	}
	s := p.samples
	*s = Samples{UserID: f.UserID, Source: f.Source, SourceID: f.SourceID, Provider: f.Provider, RawObject: f.RawObject}
	lo, hi, ok := jsonread.Ref(f.Data.RawObject).Span()
	if !ok || p.text[lo] != '[' {
		return s
	}
	if s.Data, ok = readSamples(p.doc, lo, hi, mostSamples(len(p.text))); !ok {
		return p.unknown(errAbsurd)
	}
	return s
}

// readSamples reads the array at text[lo:hi], unless it has more than most elements.
func readSamples(doc *jsonread.Document, lo, hi, most int) ([]Sample, bool) {
	text := doc.Text()
	n := 0
	if array := (scanner{text: text, i: lo}); array.open(']') {
		n = array.rest()
	}
	if n > most {
		return nil, false
	}
	list := make([]Sample, 0, n)
	var f sampleForm
	doc.ReadElements(lo, hi, &f, func(lo, hi int, misfit bool) {
		s := f.sample()
		s.KeptSample = KeptSample{doc, uint32(lo), uint32(hi)}
		for _, v := range [...]struct {
			name string
			number
		}{{"systolic", f.Systolic}, {"diastolic", f.Diastolic}} {
			if v.kind == aText {
				misfit = true
				doc.Problem(lo, "number", "data", "data", strconv.Itoa(len(list)), v.name)
			}
		}
		s.Extra = misfit || f.extra(text[lo:hi])
		list = append(list, s)
	}, "data", "data")
	return list, true
}

// extra reports whether a sample has more than its fields show.
func (f *sampleForm) extra(text []byte) bool {
	if text[0] != '{' {
		return text[0] != 'n'
	}
	var seen uint
	for name, value := range jsonread.Members(text) {
		field := slices.IndexFunc(sampleMembers, func(m member) bool { return m.name[1:len(m.name)-2] == string(name) })
		if field < 0 && string(value) != "null" || field >= 0 && seen&(1<<field) != 0 {
			return true
		}
		if field >= 0 {
			seen |= 1 << field
		}
	}
	return false
}

// The members of a sample that have a field.
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

// sampleMembers are their names, in that order.
var sampleMembers = expected("timestamp", "start", "end", "timezone_offset", "type", "unit", "value", "systolic", "diastolic")
