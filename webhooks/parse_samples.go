// The parser of batches of samples, in one pass with the envelope.

package webhooks

import (
	"bytes"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// batchReader reads a batch of samples in one pass. Samples of a batch are mostly alike, so it
// stores the bytes before each value of a sample, and where the next sample has the same bytes it
// goes straight to the value. It fails at what is unusual: [Samples.decode] reads the batch then.
type batchReader struct {
	jsonread.FastScanner
	document *jsonread.Document
	batch    *Samples
	one      []Sample      // memory for a batch of one, or for all that are read until full is called
	full     func()        // takes the samples, if it is not nil
	array    jsonread.Span // where the samples are

	layout  [16]gap
	length  int // fields in the layout
	fields  int // fields of this sample so far
	end     int // where the last value ends
	closing int // from the last value of a sample to the sample's end
	opening int // and to the start of the next sample
	samples []Sample
	alike   alike

	dates jsonread.DateCache
	types stringCache
	units stringCache
}

// gap is what precedes one value of a sample: for the first, the end of the sample before it too.
type gap struct {
	jsonread.Span       // its Lo is 0 if it is not known
	field         uint8 // index of the field in sampleFields
}

// batchFields are the fields of a batch, in their most frequent order.
var batchFields = jsonread.NewFieldNames("user_id", "source_id", "source", "data", "provider")

const batchData = 3 // in batchFields

// read reads the batch that is next into batch and one, which are zero.
func (r *batchReader) read() bool {
	start, seen := r.Pos, 0
	n, ok := r.FirstField(batchFields)
	for ; ok && n >= 0; n, ok = r.NextField(batchFields, n+1) {
		if n < len(batchFields) && seen&(1<<n) != 0 {
			return false
		}
		seen |= 1 << n
		switch n {
		case 0: // user_id
			ok = r.UUID(&r.batch.UserID)
		case 1: // source_id
			ok = r.Int64(&r.batch.SourceID)
		case 2: // source
			ok = r.readSource(&r.batch.Source)
		case batchData:
			r.array.Lo = uint32(r.Pos)
			ok = r.readSamples()
			r.array.Hi = uint32(r.Pos)
		case 4: // provider
			ok = r.readProvider()
		default:
			ok = r.Skip(2)
		}
		if !ok {
			return false
		}
	}
	r.batch.RawObject = r.ref(start)
	return ok && seen&(1<<batchData) != 0
}

// ref returns the RawObject of the value from start to the scanner's position.
func (r *batchReader) ref(start int) labhealth.RawObject {
	return labhealth.RawObject(r.document.Ref(jsonread.Span{Lo: uint32(start), Hi: uint32(r.Pos)}))
}

// readProvider reads a source or null.
func (r *batchReader) readProvider() bool {
	if r.Peek() == 'n' {
		return r.Null()
	}
	r.batch.Provider = new(Source)
	return r.readSource(r.batch.Provider)
}

// sourceFields are the fields of a Source.
var sourceFields = jsonread.NewFieldNames("name", "slug", "logo", "provider", "type", "app_id", "device_id", "sport", "workout_id")

// readSource reads the source that is next.
func (r *batchReader) readSource(source *Source) bool {
	start := r.Pos
	if r.Shared() {
		if !readSource(&r.FastScanner, source) {
			return false
		}
	} else { // its strings share a copy of it
		if !r.Skip(2) {
			return false
		}
		s := jsonread.FastScanner{Data: bytes.Clone(r.Data[start:r.Pos])}
		s.Share()
		if !readSource(&s, source) {
			return false
		}
	}
	source.RawObject = r.ref(start)
	return true
}

// readSource reads the source that is next, without its RawObject.
func readSource(s *jsonread.FastScanner, source *Source) bool {
	seen := 0
	n, ok := s.FirstField(sourceFields)
	for ; ok && n >= 0; n, ok = s.NextField(sourceFields, n+1) {
		if n < len(sourceFields) && seen&(1<<n) != 0 {
			return false
		}
		seen |= 1 << n
		if !readSourceField(s, source, n) {
			return false
		}
	}
	return ok
}

// readSourceField reads the value of a field of a source.
func readSourceField(s *jsonread.FastScanner, source *Source, field int) bool {
	switch field {
	case 0:
		return scanString(s, &source.Name)
	case 1:
		return scanString(s, &source.Slug)
	case 2:
		return scanString(s, &source.Logo)
	case 3:
		return scanString(s, &source.Provider)
	case 4:
		return scanString(s, (*string)(&source.Type))
	case 5:
		return scanOptional(s, &source.AppID)
	case 6:
		return readOptionalUUID(s, &source.DeviceID)
	case 7:
		return scanOptional(s, &source.Sport)
	case 8:
		return readOptionalUUID(s, &source.WorkoutID)
	}
	return s.Skip(3)
}

// scanOptional reads a string or null.
func scanOptional(s *jsonread.FastScanner, to **string) bool {
	if s.Peek() == 'n' {
		return s.Null()
	}
	*to = new(string)
	return scanString(s, *to)
}

// readOptionalUUID reads a UUID or null.
func readOptionalUUID(s *jsonread.FastScanner, to **uuid.UUID) bool {
	if s.Peek() == 'n' {
		return s.Null()
	}
	*to = new(uuid.UUID)
	return s.UUID(*to)
}

// endOfSamples is not a field: the array is read.
const endOfSamples = otherField + 1

// readSamples reads the array of samples that is next.
func (r *batchReader) readSamples() bool {
	if r.Peek() != '[' {
		return false
	}
	if !r.Open(']') {
		r.batch.Data = []Sample{}
		return true
	}
	var ok bool
	if r.samples, ok = r.allocate(); !ok {
		return false
	}
	if cap(r.samples) == 1 {
		return r.readOne()
	}
	if !r.openSample() {
		return false
	}
	field, ok := r.scanField()
	for ok && field != endOfSamples {
		start := r.Pos
		if !r.readValue(r.last(), field) {
			return false
		}
		r.end = r.Pos
		if r.alike.misses < mostMisses {
			r.note(start)
		}
		if g := &r.layout[r.fields%len(r.layout)]; r.fields < r.length && r.SkipEqual(g.Span) {
			field = g.field
			r.fields++
			continue
		}
		if r.layout[0].Lo > 0 {
			field, ok = r.nextSample()
		} else {
			field, ok = r.scanField()
		}
	}
	if ok {
		r.batch.Data = trim(r.samples)
	}
	return ok
}

// readOne reads the only sample of an array. One without fields is left to the decoder.
func (r *batchReader) readOne() bool {
	if !r.addSample(r.Pos) {
		return false
	}
	sample, seen := r.last(), 0
	n, ok := r.FirstField(sampleFields)
	for ; ok && n >= 0; n, ok = r.NextField(sampleFields, n+1) {
		if n < len(sampleFields) && seen&(1<<n) != 0 {
			return false
		}
		seen |= 1 << n
		if !r.readValue(sample, uint8(n)) {
			return false
		}
	}
	sample.span.Hi = uint32(r.Pos)
	if !ok || seen == 0 {
		return false
	}
	if more, ok := r.More(']'); more || !ok {
		return false
	}
	r.batch.Data = r.samples
	return true
}

// readValue reads the value of a field of a sample.
func (r *batchReader) readValue(sample *Sample, field uint8) bool {
	switch field {
	case timestampField:
		return r.Time(&sample.Timestamp, &r.dates)
	case valueField:
		return r.readSampleValue(sample)
	case unitField:
		return r.units.read(&r.FastScanner, &sample.Unit)
	case typeField:
		return r.types.read(&r.FastScanner, &sample.Type)
	case offsetField:
		return r.readOffset(sample)
	case startField:
		return r.Time(&sample.Start, &r.dates)
	case endField:
		return r.Time(&sample.End, &r.dates)
	}
	return r.readRareValue(sample, field)
}

// allocate returns memory for the samples of the array whose first element is next.
func (r *batchReader) allocate() ([]Sample, bool) {
	if r.full != nil {
		return r.one, true
	}
	rest := r.Data[r.Pos:]
	n := bytes.Count(rest, []byte{'{'}) // one in each sample, and seldom any other
	if n*sampleSize > 2*len(rest) {
		n = r.Count()
	}
	if n == 1 {
		return r.one, true
	}
	if n == 0 || n > mostSamples(len(r.Data)) {
		return nil, false
	}
	return make([]Sample, 0, n), true
}

// trim returns list in at most twice the memory it needs.
func trim(list []Sample) []Sample {
	if 2*len(list) < cap(list) {
		return append(make([]Sample, 0, len(list)), list...)
	}
	return list
}

// openSample steps into the next sample. A sample without fields is left to the decoder.
func (r *batchReader) openSample() bool {
	if r.Peek() != '{' || !r.addSample(r.Pos) {
		return false
	}
	r.fields = 0
	return r.Open('}')
}

// addSample adds a sample that starts at start, if there is memory for it.
func (r *batchReader) addSample(start int) bool {
	if len(r.samples) == cap(r.samples) {
		if r.full == nil {
			return false
		}
		r.full()
	}
	r.samples = r.samples[:len(r.samples)+1]
	s := r.last()
	s.document, s.span.Lo = r.document, uint32(start)
	return true
}

// last returns the last sample.
func (r *batchReader) last() *Sample { return &r.samples[len(r.samples)-1] }

// nextSample steps from the last value of a sample to the first one of the next, as the samples
// before did. It is scanField if this sample differs.
func (r *batchReader) nextSample() (field uint8, ok bool) {
	if r.fields == r.length && r.alike.same && r.alike.misses < mostMisses {
		r.readAlike()
	}
	if first := &r.layout[0]; r.fields == r.length && r.SkipEqual(first.Span) {
		r.alike.before, r.alike.same = r.end, true
		r.last().span.Hi = uint32(r.end + r.closing)
		r.fields = 1
		return first.field, r.addSample(r.end + r.opening)
	}
	return r.scanField()
}

// scanField scans the next field's name, of this sample or the next, and stores in the layout what
// precedes its value.
func (r *batchReader) scanField() (field uint8, ok bool) {
	r.alike.same = false
	if r.fields > 0 {
		more, ok := r.More('}')
		if ok && !more {
			more, ok = r.closeSample()
		}
		if !ok || !more {
			return endOfSamples, ok
		}
	}
	likely, seen := 0, 0
	for _, g := range r.layout[:r.fields] {
		likely = int(g.field) + 1
		seen |= 1 << g.field
	}
	n, ok := r.Field(sampleFields, likely)
	if !ok || r.fields == len(r.layout) {
		return 0, false
	}
	field = uint8(n)
	if field != otherField && seen&(1<<field) != 0 {
		return 0, false // a duplicate name
	}
	if r.fields > 0 || r.layout[0].field != field {
		r.length = r.fields + 1
	}
	r.layout[r.fields] = gap{jsonread.Span{Lo: uint32(r.end), Hi: uint32(r.Pos)}, field}
	r.fields++
	return field, true
}

// closeSample steps from the end of a sample into the next one, if there is one.
func (r *batchReader) closeSample() (more, ok bool) {
	r.last().span.Hi = uint32(r.Pos)
	r.length, r.closing = r.fields, r.Pos-r.end
	if more, ok = r.More(']'); !ok || !more {
		return false, ok
	}
	r.opening = r.Pos - r.end
	return true, r.openSample()
}

// readRareValue reads the value of a field that few samples have.
func (r *batchReader) readRareValue(s *Sample, field uint8) bool {
	if r.Peek() == 'n' {
		return r.Null()
	}
	pressure := &s.Systolic
	switch field {
	case diastolicField:
		pressure = &s.Diastolic
	case systolicField:
	default:
		s.Extra = true
		return r.Skip(4)
	}
	ok := r.Float64(pressure)
	s.Extra = s.Extra || *pressure == 0 // a zero does not show that there is a number
	return ok
}

// readOffset reads a timezone offset or null.
func (r *batchReader) readOffset(s *Sample) bool {
	if r.Peek() == 'n' {
		return r.Null()
	}
	var seconds int64
	if !r.Int64(&seconds) || seconds != int64(int32(seconds)) {
		return false
	}
	s.TimezoneOffset, s.HasTimezoneOffset = int32(seconds), true
	return true
}

// readSampleValue reads the value of a sample: a number, the text of a note, or null.
func (r *batchReader) readSampleValue(s *Sample) bool {
	switch r.Peek() {
	case '"':
		return scanString(&r.FastScanner, &s.Text)
	case 'n':
		return r.Null()
	}
	s.HasValue = true
	return r.Number(&s.Value, &s.Rounded)
}

// stringCache keeps strings that are frequent in a batch, such as units: each is allocated once.
type stringCache struct {
	last  cachedString
	table [4]cachedString
}

type cachedString struct {
	quoted jsonread.Span // where it is in the document, with its quotes; its Lo is 0 if there is none
	value  string
}

// commonStrings are strings that are never allocated: the units and types that the service is known
// to send, by their hash.
var commonStrings = func() (t [128]string) {
	for _, s := range []string{
		"automatic", "manual_scan", "unknown", "phone", "watch", "app", "multiple_sources", "fingerprick", "cuff", "insulin_pump",
		"scale", "chest_strap", "ring", "lab", "exercise_machine", "earphone", "%", "kg", "count", "kcal", "mmol/L", "bpm", "rmssd",
		"ml", "mV", "mmHg", "m", "g", "min", "mL/kg/min", "L", "L/min", "index", "°C", "cm", "unit",
	} {
		t[hashString([]byte(s))] = s
	}
	return t
}()

// hashString distinguishes most strings, and all commonStrings. The string is not empty.
func hashString(s []byte) int {
	return (27*len(s) + int(s[0]) + int(s[len(s)/2])) % 128
}

// read reads a string or null.
func (c *stringCache) read(s *jsonread.FastScanner, to *string) bool {
	if last := &c.last; last.quoted.Lo > 0 && s.SkipEqual(last.quoted) {
		*to = last.value
		return true
	}
	if s.Peek() == 'n' {
		return s.Null()
	}
	content, escaped, ok := s.String()
	if !ok {
		return false
	}
	if content.Len() == 0 {
		return true
	}
	raw := content.Of(s.Data)
	hash := hashString(raw)
	cached := &c.table[hash%len(c.table)]
	quoted := jsonread.Span{Lo: content.Lo - 1, Hi: content.Hi + 1}
	if common := commonStrings[hash]; common == string(raw) {
		*cached = cachedString{quoted, common}
	} else if cached.quoted.Lo == 0 || string(cached.quoted.Of(s.Data)) != string(quoted.Of(s.Data)) {
		*cached = cachedString{quoted, s.Text(content, escaped)}
	}
	c.last = *cached
	*to = cached.value
	return true
}
