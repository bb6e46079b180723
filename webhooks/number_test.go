package webhooks

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

// Numbers keep their digits, in the batch and in Latest, in whatever notation they are received.
func TestNumbersKeepTheirDigits(t *testing.T) {
	for text, c := range map[string]struct {
		value   float64
		rounded bool
		number  json.Number
	}{
		"1":                                 {1, false, "1"},
		"1.50":                              {1.5, false, "1.5"},
		"0.1":                               {0.1, false, "0.1"},
		"0.30000000000000004":               {0.30000000000000004, false, "0.30000000000000004"},
		"0.10000000000000001":               {0.1, true, "0.10000000000000001"},
		"0.1234567890123456789":             {0.12345678901234568, true, "0.1234567890123456789"},
		"0.12345678901234567890":            {0.12345678901234568, true, "0.1234567890123456789"},
		"1.234567890123456789e-1":           {0.12345678901234568, true, "0.1234567890123456789"},
		"12345678901234567890":              {12345678901234567000, true, "12345678901234567890"},
		"-12345678901234567890":             {-12345678901234567000, true, "-12345678901234567890"},
		"9007199254740992":                  {1 << 53, false, "9007199254740992"},
		"9007199254740993":                  {1 << 53, true, "9007199254740993"},
		"8.000000000000001":                 {8.000000000000002, true, "8.000000000000001"},
		"1e22":                              {1e22, false, "1e+22"},
		"100000000000000000000000000000001": {1e32, true, "1.00000000000000000000000000000001e+32"},
		"1e-400":                            {0, true, "1e-400"},
		"-0.0":                              {math.Copysign(0, -1), false, "-0"},
		"0e999999999999999999999":           {0, false, "0"},
		"1e-99999999999999999999":           {0, true, "1e-99999999999999999999"},
		"0.000001":                          {1e-6, false, "0.000001"},
		"0.00000012":                        {1.2e-7, false, "1.2e-7"},
	} {
		// One sample is read by the fast reader, and an escaped name by the other.
		for _, name := range []string{`"value"`, `"\u0076alue"`} {
			data := `{"source":{"slug":"ring"},"data":[{"timestamp":"2025-03-01T12:00:00Z","unit":"bpm",` + name + `:` + text + `}]}`
			e := mustParse(t, wrap(0, "daily.data.heartrate.created", data))
			s := e.Data.(*Samples).Data[0]
			if math.Float64bits(s.Value) != math.Float64bits(c.value) || !s.HasValue || s.Rounded != c.rounded || s.Extra || s.Number() != c.number {
				t.Errorf("%s %s: %v, rounded %v, extra %v, number %s", name, text, s.Value, s.Rounded, s.Extra, s.Number())
			}
			var l Latest
			mustApply(t, &l, e)
			stored, _ := l.Sample(SampleKey{adaID, "heartrate", "ring", "", noon.UnixNano()})
			if stored.Number() != c.number || stored.Rounded != c.rounded || stored.Extra {
				t.Errorf("%s is stored as %s, rounded %v", text, stored.Number(), stored.Rounded)
			}
			// A program's value replaces the number.
			s.Value = 7
			if got, err := s.MarshalJSON(); s.Number() != "7" || err != nil {
				t.Errorf("%s: %s %s %v", text, s.Number(), got, err)
			}
			e.Data.(*Samples).Data[0] = s
			l = Latest{}
			mustApply(t, &l, e)
			if stored, _ := l.Sample(SampleKey{adaID, "heartrate", "ring", "", noon.UnixNano()}); stored.Number() != "7" || stored.Rounded {
				t.Errorf("%s changed to 7 is stored as %s", text, stored.Number())
			}
		}
	}
}

func mustApply(t *testing.T, l *Latest, e *Event) Changes {
	t.Helper()
	c, err := l.Apply(Delivery{Event: e})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The same number in another notation changes nothing, and one that differs in a digit does.
func TestRoundedVersions(t *testing.T) {
	sample := func(fields string) *Event {
		return mustParse(t, wrap(0, "daily.data.heartrate.created", `{"source":{"slug":"ring"},"data":[{"timestamp":"2025-03-01T12:00:00Z",`+fields+`}]}`))
	}
	var l Latest
	for _, c := range []struct {
		fields string
		want   Changes
	}{
		{`"unit":"bpm","value":0.1234567890123456789`, Changes{Added: 1, Samples: []int{0}}},
		{`"value" : 1234567890.1234567890e-10,"unit":"bpm"`, Changes{Same: 1}},
		{`"unit":"bpm","value":0.12345678901234567890`, Changes{Same: 1}},
		{`"unit":"bpm","value":0.12345678901234568`, Changes{Updated: 1, Samples: []int{0}}},
		{`"unit":"bpm","value":0.12345678901234567`, Changes{Updated: 1, Samples: []int{0}}},
	} {
		if diff := gocmp.Diff(c.want, mustApply(t, &l, sample(c.fields))); diff != "" {
			t.Errorf("%s: %s", c.fields, diff)
		}
	}
}

// A number that no float64 holds is malformed, and keeps its digits.
func TestNumbersOutOfRange(t *testing.T) {
	e := mustParse(t, wrap(0, "daily.data.heartrate.created", `{"data":[{"timestamp":"2025-03-01T12:00:00Z","unit":"bpm","value":10e400}]}`))
	s := e.Data.(*Samples).Data[0]
	if s.HasValue || !s.Extra || s.Number() != "1e+401" || len(e.Malformed()) != 1 {
		t.Error(s.HasValue, s.Extra, s.Number(), e.Malformed())
	}
	var l Latest
	if _, err := l.Apply(Delivery{Event: e}); err == nil {
		t.Error("the event was read")
	}
	stored, ok := l.Sample(SampleKey{adaID, "heartrate", "", "", noon.UnixNano()})
	if !ok || stored.Number() != "1e+401" {
		t.Error(ok, stored.Number())
	}
	for want, s := range map[json.Number]Sample{
		"": {Text: "7"}, "0": {HasValue: true}, "1.5": {Value: 1.5, Rounded: true},
	} {
		if s.Number() != want {
			t.Errorf("%s, want %s", s.Number(), want)
		}
	}
}

// A value that JSON does not have is no sample.
func TestNotFinite(t *testing.T) {
	for _, value := range []float64{math.Inf(1), math.Inf(-1), math.NaN()} {
		e := mustParse(t, wrap(0, "daily.data.heartrate.created", `{"data":[]}`))
		e.Data.(*Samples).Data = []Sample{{Timestamp: noon, Value: 1}, {Timestamp: noon.Add(time.Second), Value: value}}
		var l Latest
		if c, err := l.Apply(Delivery{Event: e}); !gocmp.Equal(c, Changes{}) || err == nil {
			t.Errorf("%v: %v", value, err)
		}
		for range l.Samples() {
			t.Error("part of it is stored")
		}
	}
}

// A blood pressure of zero is not lost.
func TestZeroPressure(t *testing.T) {
	for _, name := range []string{`"systolic"`, `"\u0073ystolic"`, `"diastolic"`} {
		for text, want := range map[string]bool{"0": true, "-0.0": true, "1e-400": true, "null": false} {
			e := mustParse(t, wrap(0, "daily.data.blood_pressure.created", `{"data":[{"timestamp":"2025-03-01T12:00:00Z","unit":"mmHg",`+name+`:`+text+`}]}`))
			if s := e.Data.(*Samples).Data[0]; s.Extra != want {
				t.Errorf("%s %s: %v", name, text, s.Extra)
			}
		}
	}
}
