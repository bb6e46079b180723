package webhooks

import (
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/labhealth/labhealth-go/internal/plain"
)

// What a program sets is written, whichever field it is and whatever the sample was before.
func TestSetFieldsAreWritten(t *testing.T) {
	const stamped = `"timestamp":"2025-03-01T12:00:00Z"`
	for _, test := range []struct {
		name   string
		came   string // empty for a sample that a program makes
		change func(*Sample)
		want   string
	}{
		{"offset", `{` + stamped + `,"unit":"bpm","value":1}`, func(s *Sample) { s.TimezoneOffset = 3600 },
			`{` + stamped + `,"unit":"bpm","value":1,"timezone_offset":3600}`},
		{"offset that was null", `{` + stamped + `,"timezone_offset":null,"unit":"bpm","value":1,"new":[1]}`, func(s *Sample) { s.TimezoneOffset = -60 },
			`{` + stamped + `,"timezone_offset":-60,"unit":"bpm","value":1,"new":[1]}`},
		{"offset that was malformed", `{` + stamped + `,"timezone_offset":"east","unit":"bpm"}`, func(s *Sample) { s.TimezoneOffset = 60 },
			`{` + stamped + `,"timezone_offset":60,"unit":"bpm"}`},
		{"offset that was another", `{` + stamped + `,"timezone_offset":3600,"unit":"bpm"}`, func(s *Sample) { s.TimezoneOffset = 7200 },
			`{` + stamped + `,"timezone_offset":7200,"unit":"bpm"}`},
		{"offset 0", `{` + stamped + `,"unit":"bpm"}`, func(s *Sample) { s.HasTimezoneOffset = true },
			`{` + stamped + `,"unit":"bpm","timezone_offset":0}`},
		{"offset taken away", `{` + stamped + `,"timezone_offset":3600,"unit":"bpm"}`, func(s *Sample) { s.TimezoneOffset, s.HasTimezoneOffset = 0, false },
			`{` + stamped + `,"unit":"bpm"}`},
		{"offset of a new sample", ``, func(s *Sample) { s.TimezoneOffset = 3600 }, `{"timezone_offset":3600,"unit":""}`},

		{"text of a number", `{` + stamped + `,"unit":"bpm","value":1}`, func(s *Sample) { s.Text = "after a run" },
			`{` + stamped + `,"unit":"bpm","value":"after a run"}`},
		{"text of 0", `{"value":0,` + stamped + `,"unit":"bpm"}`, func(s *Sample) { s.Text = "none" }, `{"value":"none",` + stamped + `,"unit":"bpm"}`},
		{"text of a sample without value", `{` + stamped + `,"unit":"bpm"}`, func(s *Sample) { s.Text = "none" },
			`{` + stamped + `,"unit":"bpm","value":"none"}`},
		{"another text", `{` + stamped + `,"unit":"","value":"one"}`, func(s *Sample) { s.Text = "two" }, `{` + stamped + `,"unit":"","value":"two"}`},
		{"number of a note", `{` + stamped + `,"unit":"","value":"one"}`, func(s *Sample) { s.Value = 2 }, `{` + stamped + `,"unit":"","value":2}`},
		{"number 0 of a note", `{` + stamped + `,"unit":"","value":"one"}`, func(s *Sample) { s.HasValue = true }, `{` + stamped + `,"unit":"","value":0}`},
		{"number and text", `{` + stamped + `,"unit":"","value":1}`, func(s *Sample) { s.Value, s.Text = 2, "two" }, `{` + stamped + `,"unit":"","value":"two"}`},
		{"number and text of a new sample", ``, func(s *Sample) { s.Value, s.Text = 2, "two" }, `{"unit":"","value":"two"}`},
		{"number", `{` + stamped + `,"unit":"bpm"}`, func(s *Sample) { s.Value = 5 }, `{` + stamped + `,"unit":"bpm","value":5}`},
		{"number 0", `{` + stamped + `,"unit":"bpm"}`, func(s *Sample) { s.HasValue = true }, `{` + stamped + `,"unit":"bpm","value":0}`},
		{"number that was malformed", `{` + stamped + `,"unit":"bpm","value":{}}`, func(s *Sample) { s.Value = 5 }, `{` + stamped + `,"unit":"bpm","value":5}`},
		{"number becomes 0", `{` + stamped + `,"unit":"bpm","value":5}`, func(s *Sample) { s.Value = 0 }, `{` + stamped + `,"unit":"bpm","value":0}`},
		{"number taken away", `{` + stamped + `,"unit":"bpm","value":5}`, func(s *Sample) { s.Value, s.HasValue = 0, false }, `{` + stamped + `,"unit":"bpm"}`},

		{"systolic", `{` + stamped + `,"unit":"mmHg"}`, func(s *Sample) { s.Systolic = 120 }, `{` + stamped + `,"unit":"mmHg","systolic":120}`},
		{"systolic that was malformed", `{` + stamped + `,"unit":"mmHg","systolic":"high"}`, func(s *Sample) { s.Systolic = 120 },
			`{` + stamped + `,"unit":"mmHg","systolic":120}`},
		{"diastolic", `{` + stamped + `,"unit":"mmHg","systolic":120}`, func(s *Sample) { s.Diastolic = 80 },
			`{` + stamped + `,"unit":"mmHg","systolic":120,"diastolic":80}`},
		{"type", `{` + stamped + `,"unit":"bpm","type":null}`, func(s *Sample) { s.Type = "manual" }, `{` + stamped + `,"unit":"bpm","type":"manual"}`},
		{"unit", `{` + stamped + `,"value":1}`, func(s *Sample) { s.Unit = "bpm" }, `{` + stamped + `,"value":1,"unit":"bpm"}`},
		{"timestamp", `{"unit":"bpm"}`, func(s *Sample) { s.Timestamp = noon }, `{"unit":"bpm",` + stamped + `}`},
		{"timestamp that was malformed", `{"timestamp":7,"unit":"bpm"}`, func(s *Sample) { s.Timestamp = noon }, `{` + stamped + `,"unit":"bpm"}`},
		{"timestamp elsewhere", `{` + stamped + `,"unit":"bpm"}`, func(s *Sample) { s.Timestamp = noon.In(time.FixedZone("", 3600)) },
			`{"timestamp":"2025-03-01T13:00:00+01:00","unit":"bpm"}`},
		{"start", `{` + stamped + `,"unit":"bpm"}`, func(s *Sample) { s.Start = noon }, `{` + stamped + `,"unit":"bpm","start":"2025-03-01T12:00:00Z"}`},
		{"end", `{` + stamped + `,"unit":"bpm"}`, func(s *Sample) { s.End = noon }, `{` + stamped + `,"unit":"bpm","end":"2025-03-01T12:00:00Z"}`},
		{"nothing", `{ "value" : 1.0, ` + stamped + ` , "new":1}`, func(*Sample) {}, `{ "value" : 1.0, ` + stamped + ` , "new":1}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var s Sample
			if test.came != "" {
				e := heartrates(t, test.came)
				s = e.Data.(*Samples).Data[0]
			}
			test.change(&s)
			got, err := s.MarshalJSON()
			if diff := gocmp.Diff(test.want, string(got)); err != nil || diff != "" {
				t.Fatalf("%v %s", err, diff)
			}
			if s.Timestamp.IsZero() && s.Start.IsZero() {
				return // it has no key
			}
			var l Latest
			if _, err := l.Apply(received(&Event{Type: DailyHeartrateCreated, UserID: adaID, Data: &Samples{Data: []Sample{s}}}, 1)); err != nil {
				t.Fatal(err)
			}
			var want Sample
			if err := want.UnmarshalJSON(got); err != nil {
				t.Fatal(err)
			}
			for _, stored := range l.Samples() {
				if diff := gocmp.Diff(want, stored); diff != "" {
					t.Errorf("stored (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// A sample that says the same is the same, whether or not a program set the flags.
func TestFlagsChangeNothing(t *testing.T) {
	var l Latest
	apply := func(seconds int, s Sample) Changes {
		c, err := l.Apply(received(&Event{Type: DailyHeartrateCreated, UserID: adaID, Data: &Samples{Data: []Sample{s}}}, seconds))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	apply(1, Sample{Timestamp: noon, Value: 1, HasValue: true, TimezoneOffset: 60, HasTimezoneOffset: true})
	if c := apply(2, Sample{Timestamp: noon, Value: 1, TimezoneOffset: 60}); c.Same != 1 {
		t.Errorf("%+v", c)
	}
}

// The source and samples of one batch can both be changed, at any position.
func TestSourceAndSampleChanged(t *testing.T) {
	for _, n := range []int{0, 1, 100, 199} {
		batch := mustParse(t, plain.EventJSON(200, "uniform")).Data.(*Samples)
		batch.Source.Name, batch.Data[n].Value = "New Sensor", 77
		encoded, err := batch.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var got Samples
		if err := got.UnmarshalJSON(encoded); err != nil || len(got.Data) != 200 {
			t.Fatalf("sample %d: %d samples, %v", n, len(got.Data), err)
		}
		if got.Source.Name != "New Sensor" || got.Data[n].Value != 77 || got.Data[(n+1)%200].Value != batch.Data[(n+1)%200].Value {
			t.Errorf("sample %d: encoded as %s", n, encoded)
		}
	}
}
