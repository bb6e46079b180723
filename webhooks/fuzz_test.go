package webhooks

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// FuzzParse reads any body: valid JSON objects and nothing else are read, the scanner and the
// general reader agree, nothing is lost and nothing is printed.
func FuzzParse(f *testing.F) {
	for _, kind := range []EventType{DailySleepCreated, DailyActivityUpdated, DailyWorkoutStreamCreated, ProviderConnectionCreated,
		LabTestOrderUpdated, HistoricalSleepCreated, ContinuousQueryResultTableChanged, "a.b"} {
		for n := range envelopes {
			f.Add(wrap(n, kind, `{"id":"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","source":`+
				sources[n%2].text+`,"calendar_date":"2025-03-01","steps":1,"sport":{"id":1},"resource_availability":{"a":{"status":"b"}}}`))
		}
	}
	for _, text := range hostile(200) {
		f.Add([]byte(text))
	}
	for _, text := range []string{
		`{"id":"c4e1b2a3-9f80-4d76-b5c4-a3928170f6e5","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","team_id":7,"events":[]}`,
		"\ufeff" + `{"event_type":"daily.data.glucose.created","data":{"source":null,"data":null}}`,
		`{"event_type":"daily.data.glucose.created","data":[]}`, `{"event_type":"daily.data.sleep.created","data":{},"new":{}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) { checkPaths(t, body) })
}

// FuzzSamples reads a batch of any samples with the scanner and with the decoder.
func FuzzSamples(f *testing.F) {
	r := rand.New(rand.NewPCG(9, 9))
	for range 60 {
		body := string(randomBatch(r))
		lo, hi := strings.Index(body, `"data":[`)+len(`"data":`), strings.LastIndex(body, `],"source_id"`)+1
		f.Add([]byte(body[lo:hi]), r.IntN(2) == 0)
	}
	f.Add([]byte(`[{"timestamp":"2025-03-01T12:00:00Z","timestamp":null}]`), false)
	f.Add([]byte(`[{"a":1,"b":2},{"a":1,"a":2,"unit":"","unit":"x"}]`), true)
	f.Add([]byte(`[{"value":1,"unit":"a"},{"unit":"a","value":2},{"unit":"a","unit":"a"}]`), true)
	f.Fuzz(func(t *testing.T, list []byte, named bool) {
		source := providerSource
		if named {
			source = namedSource
		}
		checkPaths(t, wrap(1, DailyGlucoseCreated, `{"source":`+source+`,"data":`+string(list)+`}`))
	})
}

// FuzzParseEnvelope steps over lists whose elements are alike, with and without what differs: the
// scanner that compares an object with the one before it accepts what is valid and nothing else,
// and finds what Parse finds.
func FuzzParseEnvelope(f *testing.F) {
	for _, seed := range [][3]string{
		{`{"timestamp":"2025-03-01T12:00:00Z","value":1,"unit":"bpm"}`, `2`, `,"type":null`},
		{`{"a":[{"b":1},{"b":2}],"c":{"d":"x"}}`, `"x\u00e9"`, `{"b":3}`},
		{`{"a":"é","b":true}`, "\xff", `"`},
		{`{}`, ` `, `{},`},
		{`{"a":1,"a":{"a":-0.5e+3}}`, `}`, `1`},
	} {
		for at := range uint8(len(seed[0])) {
			f.Add([]byte(seed[0]), at, at/2, []byte(seed[1]), []byte(seed[2]))
		}
	}
	f.Fuzz(func(t *testing.T, object []byte, at, width uint8, change, insert []byte) {
		lo := min(int(at), len(object))
		hi := min(lo+int(width), len(object))
		var list []byte
		for i, part := range [][]byte{nil, object, object, object[:lo], change, object[hi:], object[:lo], insert, object[lo:], object} {
			switch {
			case i == 0:
				list = append(list, '[')
			case i != 4 && i != 5 && i != 7 && i != 8 && i > 1:
				list = append(list, ',')
			}
			list = append(list, part...)
		}
		list = append(list, ']')
		body := wrap(0, DailyGlucoseCreated, `{"user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","data":`+string(list)+`}`)
		e, err := Parse(body)
		envelope, err2 := ParseEnvelope(body)
		if (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() || (err == nil) != (jsonread.Valid(body) == nil) {
			t.Fatalf("%s: Parse: %v, ParseEnvelope: %v", body, err, err2)
		}
		if err == nil && envelope != (Envelope{e.Type, e.TeamID, e.UserID, e.ClientUserID}) {
			t.Fatalf("%s: %v", body, envelope)
		}
	})
}

// FuzzEventType reads an event of any type with any data.
func FuzzEventType(f *testing.F) {
	for _, kind := range constants {
		f.Add(string(kind), `{"data":[{"value":1}],"id":"c4e1b2a3-9f80-4d76-b5c4-a3928170f6e5"}`)
	}
	for _, kind := range []string{"", ".", "..", "daily.data.", "daily.data", "daily.data.a.b.c", "labtest.order.", "raw.a.b", "historical.data.\u00e9.created"} {
		f.Add(kind, `{"data":{}}`)
		f.Add(kind, `null`)
	}
	f.Fuzz(func(t *testing.T, kind, data string) {
		k := EventType(kind)
		if action, resource := k.Action(), k.Resource(); resource != "" && !strings.HasSuffix(kind, resource+"."+action) {
			t.Fatalf("%q: %q %q", kind, resource, action)
		}
		quoted := `"` + kind + `"`
		if jsonread.Valid([]byte(quoted)) != nil || jsonread.Valid([]byte(data)) != nil {
			return
		}
		body := []byte(`{"event_type":` + quoted + `,"data":` + data + `}`)
		checkPaths(t, body)
		e := mustParse(t, body)
		if u, ok := e.Data.(*Unknown); ok != (u != nil) || ok && (payloadTypeOf(e.Type) == nil) != (u.Err == nil) {
			t.Fatalf("%s: %v", body, e.Data)
		}
	})
}
