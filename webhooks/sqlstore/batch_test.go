package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks"
)

// memory is a dialect that keeps samples and summaries in maps. It has no transactions and no other
// statements.
type memory struct {
	dialect
	insertsFirst bool // like PostgreSQL
	inserted     map[sampleKey]bool
	series       indexes[webhooks.Series]
	samples      map[sampleKey]sampleSlot
	summaries    map[summaryKey]summarySlot
}

func newMemory(insertsFirst bool) *memory {
	return &memory{insertsFirst: insertsFirst, series: indexes[webhooks.Series]{},
		samples: map[sampleKey]sampleSlot{}, summaries: map[summaryKey]summarySlot{}}
}

func (*memory) hasShapes(context.Context, *sql.Tx, map[shape]int64) (bool, error) { return true, nil }

func (*memory) lockShapes(context.Context, *sql.Tx, bool) error { return nil }

func (*memory) addShapes(context.Context, *sql.Tx, []seriesShape) error { return nil }

func (*memory) lockUsers(_ context.Context, _ *sql.Tx, users []string) error {
	if !slices.IsSorted(users) {
		return fmt.Errorf("the users are not in ascending order: %q", users)
	}
	return nil
}

func (m *memory) insertNew(_ context.Context, _ *sql.Tx, b *batch) (bool, error) {
	m.inserted = map[sampleKey]bool{}
	for i := range b.sampleSlots {
		slot := b.sampleSlots[i]
		series, isNew := m.series.of(b.series[slot.series])
		key := sampleKey{slot.at, series}
		if _, found := m.samples[key]; !m.insertsFirst || found || isNew {
			continue
		}
		slot.shapeID = b.shapeID(&slot.content)
		m.samples[key], m.inserted[key] = slot, true
	}
	return len(m.inserted) == len(b.sampleSlots), nil
}

func (m *memory) read(_ context.Context, _ *sql.Tx, b *batch) error {
	for i, of := range b.series {
		n, _ := m.series.of(of)
		b.seriesIDs[i] = int64(n)
	}
	for i := range b.sampleSlots {
		slot := &b.sampleSlots[i]
		key := sampleKey{slot.at, int32(b.seriesIDs[slot.series])}
		stored, found := m.samples[key]
		if slot.inserted = m.inserted[key]; !found || slot.inserted {
			continue
		}
		row := sampleRow{version: stored.version, value: stored.content.value, shapeID: stored.shapeID}
		row.seconds.Int32 = stored.content.seconds
		row.document = sql.NullString{String: stored.content.document, Valid: stored.content.document != ""}
		slot.store(&row)
	}
	for i := range b.summarySlots {
		slot := &b.summarySlots[i]
		if stored, found := m.summaries[summaryKey{slot.id, int32(b.seriesIDs[slot.series])}]; found {
			slot.found, slot.version, slot.content = true, stored.version, stored.content
		}
	}
	m.inserted = nil
	return nil
}

func (m *memory) write(_ context.Context, _ *sql.Tx, b *batch) error {
	var last sampleKey
	for n, i := range b.changed() {
		slot := b.sampleSlots[i]
		key := sampleKey{slot.at, int32(b.seriesIDs[slot.series])}
		if n > 0 && (key.series < last.series || key.series == last.series && key.at <= last.at) {
			return fmt.Errorf("%v is written after %v", key, last)
		}
		slot.shapeID = b.shapeID(&slot.content)
		m.samples[key], last = slot, key
	}
	for _, slot := range b.summarySlots {
		if slot.dirty {
			m.summaries[summaryKey{slot.id, int32(b.seriesIDs[slot.series])}] = slot
		}
	}
	return nil
}

// randomDeliveries have few keys and few times of receipt.
func randomDeliveries(t *testing.T, r *rand.Rand, n int) []webhooks.Delivery {
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	all := make([]webhooks.Delivery, n)
	for i := range all {
		kind, data := "sleep", fmt.Sprintf(`{"id":"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c1%d","total":%d}`, r.IntN(3), r.IntN(3))
		if r.IntN(4) > 0 {
			samples := make([]string, r.IntN(6))
			for k := range samples {
				at := noon.Add(time.Duration(r.IntN(8)) * time.Minute).Format(time.RFC3339)
				samples[k] = fmt.Sprintf(`{"timestamp":%q,"unit":%q,"value":%s%s}`, at, pick("bpm", "1/min"), pick("7", "63", "-0.0", "9.5"),
					pick("", "", `,"tags":[]`, `,"timezone_offset":3600`, `,"start":"`+at+`","end":"2025-03-01T12:09:00Z"`,
						`,"start":"`+at+`","end":"2025-03-01T12:09:01Z"`, `,"start":"`+at+`","end":"2100-01-01T00:00:00Z"`))
			}
			kind, data = "heartrate", `{"source":`+pick(`{"slug":"ring"}`, `{"provider":"ring","type":"watch"}`)+`,"data":[`+strings.Join(samples, ",")+`]}`
		}
		raw := webhooks.RawDelivery{ReceivedAt: noon.Add(time.Duration(r.IntN(4)) * time.Second), Body: fmt.Appendf(nil,
			`{"event_type":"daily.data.%s.updated","user_id":"00000000-0000-4000-8000-00000000000%d","data":%s}`, kind, r.IntN(3), data)}
		var err error
		if all[i], err = raw.Parse(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// Batches of any size have the changes of Latest, and leave its content.
func TestBatches(t *testing.T) {
	for _, insertsFirst := range []bool{false, true} {
		m, latest := newMemory(insertsFirst), webhooks.Latest{}
		s := store(t, SQLite)
		s.dialect = m
		r := rand.New(rand.NewPCG(3, 1))
		for rest := randomDeliveries(t, r, 1500); len(rest) > 0; {
			n := min(1+r.IntN(8), len(rest))
			b := newBatch(rest[:n], s.version)
			for i := range b.samples { // nothing can be read from labhealth_shapes
				if sh := b.samples[i].content.shape; b.samples[i].content.document == "" && s.shapes.ids[sh] == 0 {
					s.shapes.add(map[shape]int64{sh: int64(len(s.shapes.ids) + 1)})
				}
			}
			got, err := s.apply(t.Context(), nil, b)
			if err != nil {
				t.Fatal(err)
			}
			for i, d := range rest[:n] {
				changes, err := latest.Apply(d)
				if diff := cmp.Diff(changes, got[i].Changes); diff != "" || got[i].Err != err {
					t.Fatalf("inserts first %v: errors %v, %v, changes %s", insertsFirst, err, got[i].Err, diff)
				}
			}
			rest = rest[n:]
		}
		checkMemory(t, m, &latest)
	}
}

func checkMemory(t *testing.T, m *memory, latest *webhooks.Latest) {
	t.Helper()
	samples, summaries := 0, 0
	for key, want := range latest.Samples() {
		slot := m.samples[sampleKey{key.UnixNano, m.series[key.Series()]}]
		if diff := cmp.Diff(want, slot.content.sample(slot.at)); diff != "" {
			t.Errorf("%v: %s", key, diff)
		}
		samples++
	}
	for key, want := range latest.Summaries() {
		slot := m.summaries[summaryKey{key.ID, m.series[webhooks.Series{UserID: key.UserID, Resource: key.Resource}]}]
		if diff := cmp.Diff(want, payload(key.Resource, slot.content)); diff != "" {
			t.Errorf("%v: %s", key, diff)
		}
		summaries++
	}
	if samples != len(m.samples) || summaries != len(m.summaries) || samples < 40 || summaries != 9 {
		t.Errorf("%d samples of %d, %d summaries of %d", len(m.samples), samples, len(m.summaries), summaries)
	}
}

// The columns of a sample, which give back the sample that Latest returns.
func TestContent(t *testing.T) {
	at := noon.UnixNano()
	interval := func(length time.Duration) webhooks.Sample {
		return webhooks.Sample{Timestamp: noon, Start: noon, End: noon.Add(length), Value: 1, HasValue: true}
	}
	for name, c := range map[string]struct {
		sample                webhooks.Sample
		shapeSeconds, seconds int32
		isJSON                bool
	}{
		"number":           {sample: webhooks.Sample{Timestamp: noon, Value: 1, HasValue: true}},
		"half-hour offset": {sample: webhooks.Sample{Timestamp: noon.In(time.FixedZone("", 19800)), Value: 1, HasValue: true}},
		"common length":    {sample: interval(time.Minute), shapeSeconds: 60},
		"hours":            {sample: interval(2 * time.Hour), shapeSeconds: 7200},
		"uncommon length":  {sample: interval(61 * time.Second), shapeSeconds: perSample, seconds: 61},
		"longest":          {sample: interval(math.MaxInt32 * time.Second), shapeSeconds: perSample, seconds: math.MaxInt32},
		"too long":         {sample: interval((math.MaxInt32 + 1) * time.Second), isJSON: true},
		"negative zero":    {sample: webhooks.Sample{Timestamp: noon, Value: math.Copysign(0, -1), HasValue: true}, isJSON: true},
		"note":             {sample: webhooks.Sample{Timestamp: noon, Text: "x"}, isJSON: true},
	} {
		got, err := contentOf(&c.sample, at)
		if err != nil || got.shape.seconds != c.shapeSeconds || got.seconds != c.seconds || (got.document != "") != c.isJSON {
			t.Errorf("%s: %+v %v", name, got, err)
		}
		var latest webhooks.Latest
		e := &webhooks.Event{Type: webhooks.DailyHeartrateCreated, UserID: adaID, Data: &webhooks.Samples{Data: []webhooks.Sample{c.sample}}}
		if _, err := latest.Apply(webhooks.Delivery{Event: e}); err != nil {
			t.Fatal(err)
		}
		want, _ := latest.Sample(webhooks.SampleKey{UserID: adaID, Resource: "heartrate", UnixNano: at})
		if diff := cmp.Diff(want, got.sample(at)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if _, err := contentOf(&webhooks.Sample{Timestamp: noon, Value: math.NaN()}, at); err != errUnencodable {
		t.Error(err)
	}
}

// Every field of a shape is part of its key.
func TestShapeKey(t *testing.T) {
	keys := map[string]bool{}
	for _, change := range []func(*shape){
		func(*shape) {}, func(s *shape) { s.Form = 1 }, func(s *shape) { s.seconds = 60 }, func(s *shape) { s.HasValue = true },
		func(s *shape) { s.HasTimezoneOffset = true }, func(s *shape) { s.TimezoneOffset = 60 }, func(s *shape) { s.East = 60 },
		func(s *shape) { s.Type = "a" }, func(s *shape) { s.Unit = "a" }, func(s *shape) { s.Type, s.Unit = "a", "a" },
	} {
		var sh shape
		change(&sh)
		keys[string(sh.key())] = true
	}
	if len(keys) != 10 {
		t.Errorf("%d keys of 10 shapes", len(keys))
	}
}

func TestSampleArrays(t *testing.T) {
	plain, long := shape{seconds: 60}, shape{seconds: perSample}
	b := &batch{
		shapeIDs: map[shape]int64{plain: 7, long: 8},
		sampleSlots: []sampleSlot{
			{at: 1, slot: slot[content]{version: 10, content: content{value: 1.5, shape: plain}}},
			{at: 2, slot: slot[content]{series: 1, version: 11, content: content{value: 2, shape: long, seconds: 61}}},
			{at: 3, slot: slot[content]{version: 12, content: content{document: `{"a":"b"}`}}},
		},
	}
	for _, c := range []struct {
		slots []int32
		want  []any
	}{
		{[]int32{0}, []any{"{4}", "{1}", "{10}", "{1.5}", "{7}", "{}", "{}"}},
		{[]int32{2, 0, 1}, []any{"{4,4,5}", "{3,1,2}", "{12,10,11}", "{0,1.5,2}", "{0,7,8}", "{NULL,NULL,61}", `{"{\"a\":\"b\"}",NULL,NULL}`}},
	} {
		if diff := cmp.Diff(c.want, b.sampleArrays(c.slots, []int64{4, 5})); diff != "" {
			t.Error(diff)
		}
	}
}

func TestDelayAfter(t *testing.T) {
	for earlier, want := range map[int]time.Duration{0: time.Second, 1: 2 * time.Second, 5: 32 * time.Second, 12: time.Hour, 1000: time.Hour} {
		if got := delayAfter(time.Second, earlier); got != want {
			t.Errorf("%d: %v, want %v", earlier, got, want)
		}
	}
}

func TestPages(t *testing.T) {
	for _, n := range []int{0, 1, 3, 4} {
		all := pages(2, 0, func(cursor int) ([]int, int, error) {
			page := []int{}
			for i := cursor; i < min(cursor+2, n); i++ {
				page = append(page, i)
			}
			return page, cursor + len(page), nil
		})
		for range 2 { // it can be used again
			count := 0
			for i, err := range all {
				if i != count || err != nil {
					t.Error(i, err)
				}
				count++
			}
			if count != n {
				t.Errorf("%d elements of %d", count, n)
			}
		}
		for range all {
			break
		}
	}
}

func TestUserOf(t *testing.T) {
	for body, want := range map[string]string{
		`{"event_type":"a","user_id":"` + adaID.String() + `"}`:    adaID.String(),
		`{"event_type":"a","user_id":"` + uuid.Nil.String() + `"}`: "", `{}`: "", `[]`: "", "\x00": "",
	} {
		if got := userOf([]byte(body)); got.V != want || got.Valid != (want != "") {
			t.Errorf("%s: %v", body, got)
		}
	}
}
