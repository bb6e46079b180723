package webhooks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/jsonread"
	"github.com/labhealth/labhealth-go/internal/plain"
)

// newTestParser returns a parser as Parse uses it.
func newTestParser(body []byte) parser {
	memory := &eventMemory{}
	body = bytes.Clone(body)
	p := parser{FastScanner: jsonread.FastScanner{Data: body}, memory: memory, document: memory.document.Reset(body)}
	p.Share()
	return p
}

// parseSlow parses with the decoder only.
func parseSlow(body []byte) (*Event, error) {
	p := newTestParser(body)
	if err := p.decodeEnvelope(); err != nil {
		return nil, err
	}
	e := &p.memory.event
	e.Type, e.TeamID, e.UserID, e.ClientUserID = p.Type, p.TeamID, p.UserID, p.ClientUserID
	p.batch = batchFailed
	e.Data = p.payload()
	return e, nil
}

// sameData compares more strictly than go-cmp, for which equal times with different offsets are the
// same, and quicker.
func sameData(a, b Payload) bool {
	s, ok := a.(*Samples)
	o, ok2 := b.(*Samples)
	if !ok || !ok2 {
		return cmp.Equal(a, b, cmpopts.EquateErrors())
	}
	if !cmp.Equal(s.Source, o.Source) || !cmp.Equal(s.Provider, o.Provider) || s.UserID != o.UserID || s.SourceID != o.SourceID ||
		(s.Data == nil) != (o.Data == nil) || len(s.Data) != len(o.Data) {
		return false
	}
	for i := range s.Data {
		x, y := s.Data[i], o.Data[i]
		if !sameTime(x.Timestamp, y.Timestamp) || !sameTime(x.Start, y.Start) || !sameTime(x.End, y.End) ||
			math.Float64bits(x.Value) != math.Float64bits(y.Value) {
			return false
		}
		for _, s := range []*Sample{&x, &y} {
			s.Timestamp, s.Start, s.End, s.RawSample = time.Time{}, time.Time{}, time.Time{}, RawSample{}
		}
		if x != y {
			return false
		}
	}
	return true
}

// checkPaths checks that the scanner and the decoder agree on body, and that nothing of it
// is lost.
func checkPaths(t *testing.T, body []byte) {
	t.Helper()
	received := body
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	valid := jsonread.Valid(body) == nil && bytes.HasPrefix(bytes.TrimLeft(body, " \n\t\r"), []byte("{"))
	e, err := Parse(received)
	if (err == nil) != valid {
		t.Fatalf("valid %v, but Parse says %v", valid, err)
	}
	envelope, err2 := ParseEnvelope(received)
	if (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() {
		t.Fatalf("Parse: %v, ParseEnvelope: %v", err, err2)
	}
	if err != nil {
		return
	}
	if diff := cmp.Diff(Envelope{e.Type, e.TeamID, e.UserID, e.ClientUserID}, envelope); diff != "" {
		t.Fatal(diff)
	}
	g, err := parseSlow(body)
	if err != nil {
		t.Fatal(err)
	}
	if !sameData(g.Data, e.Data) {
		t.Fatal(cmp.Diff(g.Data, e.Data))
	}
	if s, ok := e.Data.(*Samples); ok {
		for i := range s.Data {
			want := g.Data.(*Samples).Data[i]
			if !bytes.Equal(want.RawJSON(), s.Data[i].RawJSON()) {
				t.Fatalf("sample %d: %s, want %s", i, s.Data[i].RawJSON(), want.RawJSON())
			}
		}
	}
	if diff := cmp.Diff(g.Data.Malformed(), e.Data.Malformed()); diff != "" {
		t.Fatal(diff)
	}
	if !bytes.Equal(e.RawJSON(), bytes.Trim(body, " \n\t\r")) {
		t.Fatalf("RawJSON: %s", e.RawJSON())
	}
	if text, err := e.MarshalJSON(); err != nil || !bytes.Equal(text, e.RawJSON()) {
		t.Fatalf("MarshalJSON: %v\n got %s\nwant %s", err, text, e.RawJSON())
	}
	e.Keys()
	if text := fmt.Sprintf("%+v", e); len(text) > 200+len(e.Type) {
		t.Fatal("it prints more than its short form")
	}
}

// randomBatch writes an event whose samples vary in what they hold, and now and then are odd.
func randomBatch(r *rand.Rand) []byte {
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	moment := func() string {
		return pick(`"`+pick("2025-03-01", "2025-03-02", "2024-02-29", "1969-12-31")+pick("T", "T", "T", "t", " ")+
			fmt.Sprintf("%02d:%02d:%02d", r.IntN(25), r.IntN(60), r.IntN(60))+pick("", "", ".5", ".123", ".123456", ".1234567890")+
			pick("Z", "Z", "+00:00", "+02:00", "-09:30", "", "+0200", "+25:00")+`"`, `"2025-03-01"`, "null", "17")
	}
	number := func() string {
		return pick("0", "-0", "1", "97", "5.4", "39.518054167148996", "-12.25e-3", "1E5", "123456789012345678901234567890", "null", `"text"`, "1e999", "true")
	}
	var b strings.Builder
	var order []int
	shape := func() { order = r.Perm(9)[:r.IntN(10)] }
	shape()
	comma, colon := pick(",", ", "), pick(":", ": ")
	odd := r.IntN(3) == 0
	for i := range r.IntN(12) {
		if i > 0 {
			b.WriteString(comma)
		}
		if r.IntN(4) == 0 {
			shape()
		}
		b.WriteByte('{')
		for k, m := range order {
			if k > 0 {
				b.WriteString(comma)
			}
			name := [...]string{"timestamp", "start", "end", "timezone_offset", "type", "unit", "value", "id", "systolic"}[m]
			if odd && r.IntN(30) == 0 {
				name = pick("unit", "value", "tim\\u0065stamp", "tags")
			}
			b.WriteString(`"` + name + `"` + colon)
			switch {
			case odd && r.IntN(30) == 0:
				b.WriteString(pick("{}", "[[1]]", "false", `"\u00b0"`, "-", "01"))
			case m < 3 && odd:
				b.WriteString(moment())
			case m < 3:
				b.WriteString(`"2025-03-01T12:` + fmt.Sprintf("%02d", r.IntN(60)) + `:00+00:00"`)
			case m == 3:
				b.WriteString(pick("0", "3600", "-3600", "null"))
			case m < 6:
				b.WriteString(pick(`"automatic"`, `"manual_scan"`, `"°C"`, `"\u00b0C"`, `""`, "null"))
			case odd:
				b.WriteString(number())
			default:
				b.WriteString(pick("1", "97.5", "39.518054167148996", "null"))
			}
		}
		b.WriteByte('}')
	}
	data := `{"source":` + pick(namedSource, providerSource, "null", `{"name":"\u00e9"}`) + `,"data":[` + b.String() + `],"source_id":` + pick("7", "null", "1.0", `"7"`) + `}`
	return wrap(r.IntN(len(envelopes)), EventType(pick("daily.data.glucose.created", "daily.data.sleep.updated", "daily.data.new.created")), data)
}

func TestScannerAgainstDecoder(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	r := rand.New(rand.NewPCG(4, 2))
	valid := 0
	for range 5000 {
		body := randomBatch(r)
		if json.Valid(body) {
			valid++
		}
		checkPaths(t, body)
	}
	if valid < 4000 {
		t.Errorf("only %d bodies were valid", valid)
	}
	for _, form := range []string{"uniform", "spaced", "mixed"} {
		checkPaths(t, plain.EventJSON(50, form))
	}
}

// The decoder is not needed for what the service sends every day.
func TestScannerReadsTheUsual(t *testing.T) {
	for _, r := range timeseries {
		for _, source := range sources {
			body := wrap(0, EventType("daily.data."+r.resource+".created"), `{"data":[{`+fmt.Sprintf(r.form, r.unit)+r.extra+`}],"source":`+source.text+`,"source_id":7}`)
			if p := newTestParser(body); !p.scanEnvelope() || p.batch != batchRead {
				t.Errorf("%s", body)
			}
		}
	}
}

// The decoder discards what the scanner read before: of duplicate fields the last one counts.
func TestScannedDataIsDiscarded(t *testing.T) {
	const first = `{"user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","source_id":7,"source":` + namedSource + `,"provider":` + providerSource +
		`,"data":[{"timestamp":"2025-03-01T12:00:00Z","timezone_offset":3600,"type":"automatic","unit":"bpm","value":63,"x":1}]}`
	for _, second := range []string{`{"data":[{"start":null}]}`, `{"data":[{}]}`, `{"data":[]}`, `{"data":1}`, `{"data":[{"value":1},{}]}`, `{}`, `null`} {
		for _, form := range []string{
			`{"event_type":"daily.data.glucose.created","data":%s,"data":%s}`,
			`{"data":%s,"event_type":"daily.data.glucose.created","data":%s}`,
			`{"event_type":"daily.data.glucose.created","data":%s,"d\u0061ta":%s}`,
		} {
			body := []byte(fmt.Sprintf(form, first, second))
			checkPaths(t, body)
			if s, ok := mustParse(t, body).Data.(*Samples); ok {
				for _, sample := range s.Data {
					sample.RawSample, sample.Value, sample.HasValue = RawSample{}, 0, false
					if sample != (Sample{}) {
						t.Errorf("%s: %+v", body, sample.Timestamp)
					}
				}
				if s.SourceID != 0 || s.UserID != uuid.Nil || s.Provider != nil || s.Source.Name != "" {
					t.Errorf("%s: the batch before it is still there", body)
				}
			}
		}
	}
}

// A batch takes an allocation for the body, one for the event with a sample, one for more samples,
// and in a large event one for the strings of the source and one for the user's reference.
func TestParseAllocations(t *testing.T) {
	for _, form := range []string{"uniform", "spaced", "mixed"} {
		for _, want := range []struct {
			samples     int
			allocations float64
		}{{1, 2}, {10, 3}, {30, 3}, {1000, 5}, {20000, 5}} {
			body := plain.EventJSON(want.samples, form)
			Parse(body)
			if got := testing.AllocsPerRun(3, func() { Parse(body) }); got > want.allocations {
				t.Errorf("%s, %d samples: %v allocations", form, want.samples, got)
			}
		}
	}
	body := wrap(0, DailyStepsCreated, `{"source":`+providerSource+`,"data":[`+strings.Repeat(`{"timestamp":"2025-03-01T12:00:00Z","start":"2025-03-01T12:00:00Z","end":"2025-03-01T12:01:00Z","unit":"count","value":5,"id":{"a":[1]}},`, 999)+`{}]}`)
	if got := testing.AllocsPerRun(3, func() { ParseEnvelope(body) }); got > 1 {
		t.Errorf("ParseEnvelope: %v allocations", got)
	}
}

// Words that the service is known to send take no memory.
func TestCommonWords(t *testing.T) {
	n := 0
	for _, word := range commonStrings {
		if word == "" {
			continue
		}
		n++
		text := []byte(`"` + word + `"`)
		if got := testing.AllocsPerRun(10, func() {
			var to string
			if s := (jsonread.FastScanner{Data: text}); !new(stringCache).read(&s, &to) || to != word {
				t.Errorf("%s: read as %q", word, to)
			}
		}); got > 0 {
			t.Errorf("%s: %v allocations", word, got)
		}
	}
	if n != 36 {
		t.Errorf("%d words: two have the same place", n)
	}
	// Words that are not common ones, but have the place of one.
	for _, word := range []string{"mmol/l", "mmHG", "kCal"} {
		var to string
		s := jsonread.FastScanner{Data: []byte(`"` + word + `"`)}
		if !new(stringCache).read(&s, &to) || to != word {
			t.Errorf("%s: read as %q", word, to)
		}
	}
}

// A program that keeps a string of a small event keeps the event's JSON, but that of a large event
// only as much as the string needs.
func TestParsedStringsShareMemory(t *testing.T) {
	const count = 200
	for _, test := range []struct {
		samples     int
		least, most int64 // bytes that a kept string takes
	}{{1, 1 << 8, 1 << 10}, {1000, math.MinInt64, 1 << 8}} {
		body := plain.EventJSON(test.samples, "uniform")
		kept := make([]string, count)
		before := liveHeap()
		for i := range kept {
			kept[i] = mustParse(t, body).ClientUserID
		}
		each := (int64(liveHeap()) - int64(before)) / count
		if each < test.least || each > test.most {
			t.Errorf("%d samples: a string takes %d bytes", test.samples, each)
		}
		runtime.KeepAlive(kept)
	}
}

// Strings of an event do not change with the body that was parsed.
func TestParseCopiesBody(t *testing.T) {
	for _, samples := range []int{1, 2, 1000} {
		body := plain.EventJSON(samples, "mixed")
		e := mustParse(t, body)
		want := *mustParse(t, bytes.Clone(body))
		for i := range body {
			body[i] = 'x'
		}
		got, err := e.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if expected, _ := want.MarshalJSON(); !bytes.Equal(got, expected) {
			t.Errorf("%d samples: the event changed with the body", samples)
		}
		if e.ClientUserID != "user-42" || e.Data.(*Samples).Source.Name != "Example Sensor" || e.Data.(*Samples).Data[0].Unit != "mmol/L" {
			t.Errorf("%d samples: strings changed with the body: %+v", samples, e.Data.(*Samples).Source)
		}
	}
}
