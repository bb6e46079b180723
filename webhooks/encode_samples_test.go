package webhooks

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
)

// Every event is written the same, whether the samples are compared with its raw bytes in one pass
// or decoded again one by one.
func TestRewriteAgainstDecoder(t *testing.T) {
	n := 20_000
	if testing.Short() {
		n = 2_000
	}
	for seed := range uint64(n) {
		checkRewrite(t, seed, 1)
	}
}

func FuzzRewrite(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, seed*seed)
	}
	f.Fuzz(func(t *testing.T, seed1, seed2 uint64) { checkRewrite(t, seed1, seed2) })
}

func checkRewrite(t *testing.T, seed1, seed2 uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed1, seed2))
	body := randomBatch(r)
	e, err := Parse(body)
	if err != nil {
		return
	}
	s, ok := e.Data.(*Samples)
	if !ok {
		return
	}
	for range r.IntN(4) {
		changeEvent(r, e, s)
	}
	want, wantErr := writeSlowly(e)
	got, err := e.MarshalJSON()
	if compact(got) != compact(want) || (err == nil) != (wantErr == nil) {
		t.Fatalf("seeds %d, %d\nreceived %s\nwritten  %s, %v\nwant     %s, %v", seed1, seed2, body, got, err, want, wantErr)
	}
}

// compact removes the whitespace between fields: the decoder does so in objects that were changed.
func compact(text []byte) string {
	var b bytes.Buffer
	_ = json.Compact(&b, text) // nothing if there was an error
	return b.String()
}

// writeSlowly decodes the event once more, its batch and each sample, and writes the differences.
func writeSlowly(e *Event) ([]byte, error) {
	return e.encodeForm(func(data Payload) ([]byte, error) {
		s := data.(*Samples)
		return s.encodeForm(func(raw []byte) ([]byte, bool, error) {
			return encodeList(raw, len(s.Data), func(i int) ([]byte, error) { return s.Data[i].MarshalJSON() })
		})
	})
}

func changeEvent(r *rand.Rand, e *Event, s *Samples) {
	changes := []func(){
		func() { e.ClientUserID = "another" },
		func() { e.UserID = uuid.UUID{15: 1} },
		func() { e.TeamID = uuid.Nil },
		func() { s.UserID = uuid.UUID{15: 2} },
		func() { s.SourceID++ },
		func() { s.Source.Slug = "another" },
		func() { s.Source.AppID = new("app") },
		func() { s.Source = Source{} },
		func() { s.Provider = &Source{Name: "old"} },
		func() { s.Data = append(s.Data, Sample{Unit: "bpm", Value: 7}) },
		func() { s.Data = nil },
		func() { s.Data = s.Data[:0] },
	}
	if r.IntN(8) == 0 || len(s.Data) == 0 {
		changes[r.IntN(len(changes))]()
		return
	}
	i, j := r.IntN(len(s.Data)), r.IntN(len(s.Data))
	switch r.IntN(8) {
	case 0:
		s.Data = slices.Delete(s.Data, i, i+1)
	case 1:
		s.Data = slices.Insert(s.Data, i, s.Data[j])
	case 2:
		s.Data[i], s.Data[j] = s.Data[j], s.Data[i]
	case 3:
		s.Data = slices.Insert(s.Data, i, Sample{Unit: "bpm", Value: 7})
	case 4:
		other := Sample{}
		_ = other.UnmarshalJSON([]byte(`{"unit" : "other","x":1}`))
		s.Data[i] = other
	default:
		changeSample(r, &s.Data[i])
	}
}

func changeSample(r *rand.Rand, s *Sample) {
	moment := []time.Time{{}, noon, noon.Add(time.Microsecond), noon.In(time.FixedZone("", -5400)), noon.AddDate(9000, 0, 0), s.Timestamp.UTC()}[r.IntN(6)]
	number := []float64{0, 1, -2.5, 1e-9, 1e30, s.Value}[r.IntN(6)]
	text := []string{"", "x", "a<b", "é\u2028", "\xff", "automatic"}[r.IntN(6)]
	changes := []func(){
		func() { s.Timestamp = moment },
		func() { s.Start = moment },
		func() { s.End = moment },
		func() { s.Value = number },
		func() { s.HasValue = !s.HasValue },
		func() { s.Systolic = number },
		func() { s.Diastolic = number },
		func() { s.TimezoneOffset = int32(r.IntN(3)) },
		func() { s.HasTimezoneOffset = !s.HasTimezoneOffset },
		func() { s.Type = text },
		func() { s.Unit = text },
		func() { s.Text = text },
		func() { s.Rounded = !s.Rounded },
	}
	changes[r.IntN(len(changes))]()
}

// Of a batch that is longer than what is compared at once, only what was changed is written anew.
func TestRewriteLongBatch(t *testing.T) {
	sample := func(i int, unit string) string {
		return `{"timestamp":"2025-03-01T12:00:00Z","unit":"` + unit + `","value":` + string(rune('0'+i%10)) + `.50,"new":[ 1 ]}`
	}
	batch := func(units ...string) string {
		list := ""
		for i, unit := range units {
			if unit == "" { // removed
				continue
			}
			if list != "" {
				list += ","
			}
			list += sample(i, unit)
		}
		return string(wrap(0, DailyHeartrateCreated, `{ "source":{"slug":"ring"}, "data":[`+list+`] ,"more":null}`))
	}
	units := slices.Repeat([]string{"bpm"}, 100)
	for _, changed := range [][]int{{}, {0}, {31}, {32}, {99}, {0, 1, 50, 98, 99}} {
		for _, unit := range []string{"rpm", ""} {
			e := mustParse(t, []byte(batch(units...)))
			s, want := e.Data.(*Samples), slices.Clone(units)
			for _, i := range changed {
				want[i] = unit
				s.Data[i].Unit = unit
			}
			if unit == "" {
				s.Data = slices.DeleteFunc(s.Data, func(s Sample) bool { return s.Unit == "" })
			}
			if got, err := e.MarshalJSON(); err != nil || string(got) != batch(want...) {
				t.Errorf("%v %q: %v\n%s\nwant\n%s", changed, unit, err, got, batch(want...))
			}
			if len(changed) == 0 {
				if got, err := s.MarshalJSON(); err != nil || string(got) != string(s.RawJSON()) {
					t.Errorf("%s, %v", got, err)
				}
			}
		}
	}
}

// A batch that is unchanged takes few allocations, however long it is.
func TestRewriteAllocations(t *testing.T) {
	e := mustParse(t, wrap(0, DailyHeartrateCreated, `{"source":{"slug":"ring"},"data":[{"timestamp":"2025-03-01T12:00:00Z","unit":"bpm","value":1}]}`))
	e.Data.(*Samples).Data[0].Unit = "rpm"
	if n := testing.AllocsPerRun(100, func() { _, _ = e.MarshalJSON() }); n > 6 {
		t.Errorf("%v allocations", n)
	}
}
