package sqlstore

import (
	"cmp"
	"database/sql"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks"
)

// memory keeps samples and summaries in maps.
type memory struct {
	series    map[webhooks.Series]storedSeries
	samples   map[sampleKey]sampleSlot
	summaries map[summaryKey]summarySlot
}

func newMemory() *memory {
	return &memory{map[webhooks.Series]storedSeries{}, map[sampleKey]sampleSlot{}, map[summaryKey]summarySlot{}}
}

// apply does with a batch what a Store does.
func (m *memory) apply(b *batch) ([]Applied, error) {
	b.reset()
	b.stored = make([]storedSeries, len(b.series))
	for i, of := range b.series {
		b.stored[i] = m.series[of]
		b.stored[i].slot = Slot(of.UserID)
	}
	for i := range b.sampleSlots {
		slot := &b.sampleSlots[i]
		of := &b.stored[slot.series]
		stored, found := m.samples[sampleKey{slot.at, int32(of.number)}]
		if !found || of.number == 0 {
			continue
		}
		row := sampleRow{version: stored.version, value: stored.content.value, shape: stored.shape}
		row.seconds.Int32 = stored.content.seconds
		row.document = sql.NullString{String: stored.content.document, Valid: stored.content.document != ""}
		slot.found, slot.stored, slot.version = true, true, stored.version
		if slot.content, found = row.content(of); !found {
			return nil, errNoShape
		}
	}
	for i := range b.summarySlots {
		slot := &b.summarySlots[i]
		if stored, found := m.summaries[summaryKey{slot.id, int32(b.stored[slot.series].number)}]; found {
			slot.found, slot.version, slot.content = true, stored.version, stored.content
		}
	}
	applied := b.decide()
	return applied, m.write(b)
}

func (m *memory) write(b *batch) error {
	for i, of := range b.series {
		if b.stored[i].number == 0 {
			b.stored[i].number = int64(len(m.series) + 1)
			m.series[of] = b.stored[i]
		}
	}
	b.numberShapes()
	for i, of := range b.series {
		m.series[of] = b.stored[i]
	}
	added, changed := b.written()
	for _, slots := range [][]int32{added, changed} {
		for n, i := range slots {
			slot := b.sampleSlots[i]
			key := sampleKey{slot.at, int32(b.stored[slot.series].number)}
			if _, found := m.samples[key]; found != slot.stored {
				return fmt.Errorf("%v is stored: %v", key, found)
			}
			if n > 0 {
				last := b.sampleSlots[slots[n-1]]
				x, y := b.stored[last.series], b.stored[slot.series]
				if cmp.Or(cmp.Compare(x.slot, y.slot), cmp.Compare(x.number, y.number), cmp.Compare(last.at, slot.at)) >= 0 {
					return fmt.Errorf("%v is written after %v", key, last.at)
				}
			}
			m.samples[key] = slot
		}
	}
	for _, slot := range b.summarySlots {
		if slot.dirty {
			m.summaries[summaryKey{slot.id, int32(b.stored[slot.series].number)}] = slot
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
	m, latest := newMemory(), webhooks.Latest{}
	s := store(t, SQLite)
	r := rand.New(rand.NewPCG(3, 1))
	for rest := randomDeliveries(t, r, 1500); len(rest) > 0; {
		n := min(1+r.IntN(8), len(rest))
		got, err := m.apply(newBatch(rest[:n], s.version))
		if err != nil {
			t.Fatal(err)
		}
		for i, d := range rest[:n] {
			changes, err := latest.Apply(d)
			if diff := gocmp.Diff(changes, got[i].Changes); diff != "" || got[i].Err != err {
				t.Fatalf("errors %v, %v, changes %s", err, got[i].Err, diff)
			}
		}
		rest = rest[n:]
	}
	checkMemory(t, m, &latest)
}

// The samples of a series in too many units are stored as JSON, with the same changes.
func TestManyShapes(t *testing.T) {
	m, latest := newMemory(), webhooks.Latest{}
	for round := range 3 {
		var all []webhooks.Delivery
		for n := range 300 {
			raw := webhooks.RawDelivery{ReceivedAt: noon.Add(time.Duration(round/2) * time.Second), Body: fmt.Appendf(nil,
				`{"event_type":"daily.data.glucose.created","user_id":"00000000-0000-4000-8000-000000000001","data":{"source":{"slug":"ring"},"data":[
				{"timestamp":%q,"unit":"unit %d","value":%d}]}}`, noon.Add(time.Duration(n)*time.Minute).Format(time.RFC3339), n, n)}
			d, err := raw.Parse()
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, d)
		}
		got, err := m.apply(newBatch(all, store(t, SQLite).version))
		if err != nil {
			t.Fatal(err)
		}
		for i, d := range all {
			changes, err := latest.Apply(d)
			if diff := gocmp.Diff(changes, got[i].Changes); diff != "" || err != nil {
				t.Fatal(round, i, err, diff)
			}
		}
	}
	documents := 0
	for key, want := range latest.Samples() {
		slot := m.samples[sampleKey{key.UnixNano, int32(m.series[key.Series()].number)}]
		if slot.content.document != "" {
			documents++
		}
		if diff := gocmp.Diff(want, slot.content.sample(slot.at)); diff != "" {
			t.Errorf("%v: %s", key, diff)
		}
	}
	if documents != 45 {
		t.Errorf("%d samples are stored as JSON, want 45", documents)
	}
}

func checkMemory(t *testing.T, m *memory, latest *webhooks.Latest) {
	t.Helper()
	samples, summaries := 0, 0
	for key, want := range latest.Samples() {
		slot := m.samples[sampleKey{key.UnixNano, int32(m.series[key.Series()].number)}]
		if diff := gocmp.Diff(want, slot.content.sample(slot.at)); diff != "" {
			t.Errorf("%v: %s", key, diff)
		}
		samples++
	}
	for key, want := range latest.Summaries() {
		slot := m.summaries[summaryKey{key.ID, int32(m.series[webhooks.Series{UserID: key.UserID, Resource: key.Resource}].number)}]
		if diff := gocmp.Diff(want, payload(key.Resource, slot.content)); diff != "" {
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
		if diff := gocmp.Diff(want, got.sample(at)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if _, err := contentOf(&webhooks.Sample{Timestamp: noon, Value: math.NaN()}, at); err != errUnencodable {
		t.Error(err)
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
	for body, want := range map[string]uuid.UUID{
		`{"event_type":"a","user_id":"` + adaID.String() + `"}`:    adaID,
		`{"event_type":"a","user_id":"` + uuid.Nil.String() + `"}`: {}, `{}`: {}, `[]`: {}, "\x00": {},
	} {
		if got := newInboxRow(webhooks.RawDelivery{Body: []byte(body)}); got.user != want || got.slot != int64(Slot(want)) {
			t.Errorf("%s: %v in slot %d", body, got.user, got.slot)
		}
	}
}
