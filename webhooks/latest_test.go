package webhooks

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/newest"
	"github.com/labhealth/labhealth-go/internal/plain"
)

func TestKeys(t *testing.T) {
	sample := func(at, kind string) string {
		return `{"timestamp":` + at + `,"type":` + kind + `,"unit":"bpm","value":1}`
	}
	moment := `"2025-03-01T12:00:00Z"`
	for _, c := range []struct {
		name, source, more, sample string
		provider, kind             string
		at                         int64
	}{
		{"old shape", `{"name":"R","slug":"ring"}`, ``, sample(moment, `"automatic"`), "ring", "automatic", noon.UnixNano()},
		{"new shape", `{"provider":"ring","type":"automatic"}`, ``, sample(moment, `null`), "ring", "automatic", noon.UnixNano()},
		{"both shapes", `{"name":"","slug":"","provider":"ring","type":"automatic"}`, ``, sample(moment, `"other"`), "ring", "automatic", noon.UnixNano()},
		{"unknown source type", `{"provider":"ring","type":"unknown"}`, ``, sample(moment, `"watch"`), "ring", "watch", noon.UnixNano()},
		{"unknown types", `{"provider":"ring","type":"unknown"}`, ``, sample(moment, `"unknown"`), "ring", "", noon.UnixNano()},
		{"no types", `{"slug":"ring","type":null}`, ``, sample(moment, `""`), "ring", "", noon.UnixNano()},
		{"unknown provider", `{"provider":"unknown","slug":"ring"}`, ``, sample(moment, `null`), "ring", "", noon.UnixNano()},
		{"provider beside it", `{}`, `,"provider":{"name":"R","slug":"ring"}`, sample(moment, `null`), "ring", "", noon.UnixNano()},
		{"no provider", `null`, ``, sample(moment, `null`), "", "", noon.UnixNano()},
		{"offset", `{"slug":"ring"}`, ``, sample(`"2025-03-01T14:00:00+02:00"`, `null`), "ring", "", noon.UnixNano()},
		{"start", `{"slug":"ring"}`, ``, `{"start":"2025-03-01T12:00:00.000000001Z","value":1}`, "ring", "", noon.UnixNano() + 1},
	} {
		e := mustParse(t, wrap(0, DailyHeartrateUpdated, `{"source":`+c.source+c.more+`,"data":[`+c.sample+`,{"value":2},{"timestamp":"0001-01-01T00:00:00Z"},{"timestamp":"2500-01-01T00:00:00Z"}]}`))
		keys, err := e.Keys()
		want := Keys{Samples: []SampleKey{{adaID, "heartrate", c.provider, c.kind, c.at}, {}, {}, {}}}
		if diff := gocmp.Diff(want, keys); err != nil || diff != "" {
			t.Errorf("%s: %v %s", c.name, err, diff)
		}
	}

	summary := `{"id":"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11"}`
	for _, kind := range []EventType{DailySleepCreated, DailySleepUpdated} {
		keys, err := mustParse(t, wrap(0, kind, summary)).Keys()
		if diff := gocmp.Diff(Keys{Summary: SummaryKey{adaID, "sleep", summaryID}}, keys); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	}
	for _, c := range []struct {
		body []byte
		want error
	}{
		{wrap(1, DailySleepCreated, summary), ErrNoUser},
		{wrap(1, DailyActivityCreated, summary), ErrNoUser},
		{wrap(1, DailyStepsCreated, `{"data":[]}`), ErrNoUser},
		{wrap(0, DailySleepCreated, `{"id":"482gh249-0000-4000-8000-000000000000"}`), ErrNoID},
		{wrap(0, DailyActivityCreated, `{"steps":1}`), ErrNoID},
		{wrap(0, DailyWorkoutStreamCreated, `{}`), nil},
		{wrap(1, ProviderConnectionCreated, `{}`), nil},
		{wrap(0, "a.b", `{}`), nil},
	} {
		e := mustParse(t, c.body)
		keys, err := e.Keys()
		if diff := gocmp.Diff(Keys{}, keys); !errors.Is(err, c.want) || diff != "" {
			t.Errorf("%s: %v %s", c.body, err, diff)
		}
		var l Latest
		if changes, err := l.Apply(Delivery{Event: e}); !errors.Is(err, c.want) || !gocmp.Equal(changes, Changes{}) {
			t.Errorf("%s: Apply: %v %v", c.body, err, changes)
		}
	}
}

// received sets the time of receipt of an event.
func received(e *Event, seconds int) Delivery {
	e.ReceivedAt = noon.Add(time.Duration(seconds) * time.Second)
	return Delivery{Event: e}
}

func heartrates(t *testing.T, samples string) *Event {
	return mustParse(t, wrap(0, DailyHeartrateCreated, `{"source":{"slug":"ring"},"data":[`+samples+`]}`))
}

func TestLatestSamples(t *testing.T) {
	at := func(minute int, more string) string {
		return fmt.Sprintf(`{"timestamp":"2025-03-01T12:%02d:00Z","unit":"bpm"%s}`, minute, more)
	}
	var l Latest
	apply := func(seconds int, want Changes, samples string) {
		t.Helper()
		var wantErr error
		if want.Keyless > 0 {
			wantErr = ErrUnreadable
		}
		got, err := l.Apply(received(heartrates(t, samples), seconds))
		if diff := gocmp.Diff(want, got); err != wantErr || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	}
	series := Series{adaID, "heartrate", "ring", ""}
	check := func(want string) {
		t.Helper()
		var got []byte
		for _, s := range l.Range(series, time.Time{}, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)) {
			text, err := s.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			got = append(append(got, text...), '\n')
		}
		if diff := gocmp.Diff(want, string(got)); diff != "" {
			t.Error(diff)
		}
	}

	apply(10, Changes{Added: 2, Samples: []int{0, 1}}, at(2, `,"value":62`)+","+at(1, `,"value":61`))
	check("{\"timestamp\":\"2025-03-01T12:01:00Z\",\"unit\":\"bpm\",\"value\":61}\n{\"timestamp\":\"2025-03-01T12:02:00Z\",\"unit\":\"bpm\",\"value\":62}\n")
	apply(20, Changes{Same: 1, Updated: 1, Samples: []int{1}}, at(2, `,"value":62`)+","+at(1, `,"value":71`))
	apply(15, Changes{Older: 2}, at(2, `,"value":99`)+","+at(1, `,"value":99`))
	// Within a batch the later one wins, and a sample without a time is not kept.
	apply(30, Changes{Added: 1, Repeated: 1, Keyless: 1, Samples: []int{2}}, at(3, `,"value":1`)+`,{"value":5},`+at(3, `,"value":2`))
	// Of one version, the greater content.
	apply(30, Changes{Older: 1}, at(3, `,"value":1`))
	apply(30, Changes{Updated: 1, Samples: []int{0}}, at(3, `,"value":3`))
	// Another offset is the same key, and other content.
	apply(31, Changes{Updated: 1, Samples: []int{0}}, `{"timestamp":"2025-03-01T14:03:00+02:00","unit":"bpm","value":3}`)
	// Members that have no field are kept.
	apply(40, Changes{Updated: 1, Samples: []int{0}}, at(2, `,"value":62,"id":5,"tags":["x"]`))
	apply(41, Changes{Same: 1}, at(2, `,"value":62,"id":5,"tags":["x"]`))
	apply(42, Changes{Added: 1, Samples: []int{0}}, `{"timestamp":"2025-03-01T12:04:00+00:00","start":"2025-03-01T12:04:00+00:00","end":"2025-03-01T12:05:30+00:00","unit":"bpm","timezone_offset":-3600,"type":"","value":1}`)
	apply(43, Changes{Added: 1, Samples: []int{0}}, `{"start":"2025-03-01T12:06:00+00:00","unit":"bpm","value":1}`)
	check(`{"timestamp":"2025-03-01T12:01:00Z","unit":"bpm","value":71}
{"timestamp":"2025-03-01T12:02:00Z","unit":"bpm","value":62,"id":5,"tags":["x"]}
{"timestamp":"2025-03-01T14:03:00+02:00","unit":"bpm","value":3}
{"timestamp":"2025-03-01T12:04:00Z","timezone_offset":-3600,"unit":"bpm","value":1,"start":"2025-03-01T12:04:00Z","end":"2025-03-01T12:05:30Z"}
{"start":"2025-03-01T12:06:00+00:00","unit":"bpm","value":1}
`)
	// A sample that was odd and is not any more.
	apply(50, Changes{Updated: 1, Samples: []int{0}}, at(2, `,"value":63`))
	key := series.key(noon.Add(2 * time.Minute).UnixNano())
	s, ok := l.Sample(key)
	if diff := gocmp.Diff(Sample{Timestamp: noon.Add(2 * time.Minute), Unit: "bpm", Value: 63, HasValue: true}, s); !ok || diff != "" {
		t.Error(ok, diff)
	}
	s.Value = 0 // it is a copy
	if s, _ := l.Sample(key); s.Value != 63 {
		t.Error("the store returned its own copy")
	}
	if _, ok := l.Sample(series.key(5)); ok {
		t.Error("a sample that is not there")
	}
	// A sample with nothing but a time.
	apply(60, Changes{Added: 2, Samples: []int{0, 1}}, `{"timestamp":"2025-03-01T11:00:00Z"},{"timestamp":"2025-03-01T11:01:00Z"}`)
	for minute := range 2 {
		at := noon.Add(time.Duration(minute-60) * time.Minute)
		s, ok := l.Sample(series.key(at.UnixNano()))
		if diff := gocmp.Diff(Sample{Timestamp: at}, s); !ok || diff != "" {
			t.Error(ok, diff)
		}
	}
	if got := l.Range(series, noon.Add(2*time.Minute), noon.Add(4*time.Minute)); len(got) != 2 || got[1].Value != 3 {
		t.Errorf("%d samples in the range", len(got))
	}
	if got := l.Range(series, noon.Add(2*time.Minute), time.Time{}); len(got) != 4 || got[1].Value != 3 {
		t.Error(len(got))
	}
	if got := l.Range(Series{}, noon, halfPast); got != nil {
		t.Error("a series that is not there")
	}
}

func TestLatestSummaries(t *testing.T) {
	sleep := func(action, more string) *Event {
		return mustParse(t, wrap(0, EventType("daily.data.sleep."+action), `{"id":"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11"`+more+`}`))
	}
	var l Latest
	key := SummaryKey{adaID, "sleep", summaryID}
	for _, c := range []struct {
		seconds int
		e       *Event
		want    Changes
		stored  string
	}{
		{10, sleep("updated", `,"total":2`), Changes{Added: 1}, `,"total":2`},
		{5, sleep("created", `,"total":1`), Changes{Older: 1}, `,"total":2`},
		{11, sleep("created", `,"total":2`), Changes{Same: 1}, `,"total":2`},
		{10, sleep("updated", `,"total":9`), Changes{Older: 1}, `,"total":2`},
		{11, sleep("updated", `,"total":1`), Changes{Older: 1}, `,"total":2`},
		{11, sleep("updated", `,"total":3`), Changes{Updated: 1}, `,"total":3`},
		{12, sleep("created", `,"total":1,"new":[]`), Changes{Updated: 1}, `,"total":1,"new":[]`},
	} {
		got, err := l.Apply(received(c.e, c.seconds))
		if diff := gocmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
		data, ok := l.Summary(key)
		if !ok || string(data.RawJSON()) != `{"id":"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11"`+c.stored+`}` {
			t.Errorf("stored: %s", data.RawJSON())
		}
	}
	e := mustParse(t, wrap(0, DailyActivityCreated, `{"id":"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11","steps":5}`))
	if _, err := l.Apply(received(e, 1)); err != nil {
		t.Fatal(err)
	}
	a, ok := l.Summary(SummaryKey{adaID, "activity", summaryID})
	if !ok || *a.(*Activity).Steps != 5 {
		t.Errorf("%v %T", ok, a)
	}
	n := 0
	for key, data := range l.Summaries() {
		n++
		if again, ok := l.Summary(key); !ok || !gocmp.Equal(again, data) {
			t.Errorf("%v", key)
		}
	}
	if n != 2 {
		t.Errorf("%d summaries", n)
	}
	if _, ok := l.Summary(SummaryKey{}); ok {
		t.Error("a summary that is not there")
	}
}

func TestLatestVersion(t *testing.T) {
	l := Latest{Version: func(d Delivery) int64 { return d.Event.UpdatedAt().UnixNano() }}
	version := func(minute int) *Event {
		return mustParse(t, wrap(0, DailySleepUpdated, fmt.Sprintf(`{"id":"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11","updated_at":"2025-03-01T12:%02d:00Z"}`, minute)))
	}
	l.Apply(received(version(5), 1))
	if got, _ := l.Apply(received(version(4), 2)); got.Older != 1 {
		t.Errorf("an older version that was received later: %+v", got)
	}
	if got, _ := l.Apply(received(version(6), 0)); got.Updated != 1 {
		t.Errorf("a newer version: %+v", got)
	}
}

func TestLatestReceiptTimes(t *testing.T) {
	var l Latest
	// An int64 of nanoseconds ends in 1677 and 2262.
	for i, year := range []int{1, 2000, 2261, 9999} {
		e := heartrates(t, fmt.Sprintf(`{"timestamp":"2025-03-01T12:00:00Z","value":%d,"unit":"bpm"}`, 9-i))
		e.ReceivedAt = time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC)
		if c, err := l.Apply(Delivery{Event: e}); err != nil || c.Older != 0 {
			t.Errorf("received in the year %d: %+v, %v", year, c, err)
		}
	}
}

func TestLatestRejectsWhatCannotBeWritten(t *testing.T) {
	at := time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, s := range map[string]Sample{
		"unit":     {Timestamp: at, Value: 1, HasValue: true, Unit: "\xff"},
		"type":     {Timestamp: at, Value: 1, HasValue: true, Unit: "bpm", Type: "\xff"},
		"infinity": {Timestamp: at, Value: math.Inf(1), HasValue: true, Unit: "bpm"},
	} {
		good := Sample{Timestamp: at.Add(time.Second), Value: 1, HasValue: true, Unit: "bpm"}
		for _, batch := range [][]Sample{{s}, {good, s}} {
			var l Latest
			e := &Event{Type: DailyHeartrateCreated, UserID: adaID, Data: &Samples{Data: batch}}
			if _, err := l.Apply(Delivery{Event: e}); !errors.Is(err, ErrPermanent) {
				t.Errorf("%s, %d samples: %v", name, len(batch), err)
			}
			for key := range l.Samples() {
				t.Errorf("%s, %d samples: %v is stored", name, len(batch), key)
			}
		}
	}
}

func TestLatestSnapshot(t *testing.T) {
	var l Latest
	l.Apply(received(heartrates(t, `{"timestamp":"2025-03-01T12:00:00Z","value":1},{"timestamp":"2025-03-01T12:01:00Z","value":1,"id":1}`), 1))
	l.Apply(received(mustParse(t, wrap(0, DailySleepUpdated, `{"id":"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11"}`)), 1))
	before := contentOf(&l)
	s := l.Snapshot()
	l.Apply(received(heartrates(t, `{"timestamp":"2025-03-01T12:00:00Z","value":2,"unit":"new"},{"timestamp":"2025-03-01T12:01:00Z","value":2,"id":2},{"timestamp":"2025-03-01T12:02:00Z"}`), 2))
	if diff := gocmp.Diff(before, contentOf(s)); diff != "" {
		t.Error(diff)
	}
	if gocmp.Equal(before, contentOf(&l)) {
		t.Error("nothing was applied")
	}
	s.Apply(received(heartrates(t, `{"timestamp":"2025-03-01T12:00:00Z","value":3,"unit":"newer"}`), 3))
}

// A snapshot of a long series does not change with the store.
func TestLatestSnapshotOfLongSeries(t *testing.T) {
	var l Latest
	apply := func(first time.Time, value, version int) {
		batch := &Samples{Source: Source{Provider: "ring"}}
		for i := range 2000 {
			at := first.Add(time.Duration(i) * time.Minute)
			batch.Data = append(batch.Data, Sample{Timestamp: at, Value: float64(value), HasValue: true})
		}
		if _, err := l.Apply(received(&Event{Type: DailyStepsCreated, UserID: adaID, Data: batch}, version)); err != nil {
			t.Fatal(err)
		}
	}
	apply(noon, 1, 1)
	before, s := contentOf(&l), l.Snapshot()
	apply(noon, 2, 2)
	apply(noon.Add(time.Second), 3, 2)
	if diff := gocmp.Diff(before, contentOf(s)); diff != "" {
		t.Error(diff)
	}
}

// A snapshot that has a delivery has all deliveries that were applied before it, of other users
// too.
func TestLatestSnapshotIsConsistent(t *testing.T) {
	first, between, second := uuid.UUID{15: 1}, uuid.UUID{15: 2}, uuid.UUID{15: 3} // in this order of shards
	event := func(user uuid.UUID, n, value int) *Event {
		batch := &Samples{Source: Source{Provider: "ring"}}
		for i := range n {
			batch.Data = append(batch.Data, Sample{Timestamp: noon.Add(time.Duration(i) * time.Minute), Value: float64(value), HasValue: true})
		}
		return &Event{Type: DailyStepsCreated, UserID: user, Data: batch}
	}
	var l Latest
	valueOf := func(s *Latest, user uuid.UUID) float64 {
		sample, _ := s.Sample(SampleKey{UserID: user, Resource: "steps", Provider: "ring", UnixNano: noon.UnixNano()})
		return sample.Value
	}
	l.Apply(received(event(between, 20_000, 0), 0)) // takes a while to copy
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := 1; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			l.Apply(received(event(first, 1, n), n))
			l.Apply(received(event(second, 1, n), n))
		}
	})
	for range 200 {
		s := l.Snapshot()
		if before, after := valueOf(s, first), valueOf(s, second); after > before {
			t.Errorf("it has delivery %v of a user, and not those after %v of another", after, before)
			break
		}
	}
	close(stop)
	writer.Wait()
}

// contentOf returns everything in a store as JSON.
func contentOf(l *Latest) map[string]string {
	all := map[string]string{}
	for key, s := range l.Samples() {
		text, _ := s.MarshalJSON()
		all[fmt.Sprint(key)] = string(text)
	}
	for key, s := range l.Summaries() {
		all[fmt.Sprint(key)] = string(s.RawJSON())
	}
	return all
}

// lastWrite is the rule as it is written down, without any of the store's cleverness.
type lastWrite map[string]struct {
	version int64
	text    string
}

func (r lastWrite) apply(e *Event) (c Changes) {
	keys, err := e.Keys()
	if err != nil {
		return c
	}
	put := func(key any, text []byte) newest.Outcome {
		k, version := fmt.Sprint(key), e.ReceivedAt.UnixNano()
		was, found := r[k]
		switch {
		case found && version < was.version, found && version == was.version && string(text) < was.text:
			return newest.Older
		case found && string(text) == was.text:
			was.version = version
			r[k] = was
			return newest.Same
		}
		was.version, was.text = version, string(text)
		r[k] = was
		if found {
			return newest.Updated
		}
		return newest.Added
	}
	if keys.Summary != (SummaryKey{}) {
		text, _ := e.Data.MarshalJSON()
		c.count(put(keys.Summary, text))
	}
	for i, key := range keys.Samples {
		switch {
		case key == (SampleKey{}):
			c.Keyless++
			continue
		case slices.Contains(keys.Samples[i+1:], key):
			c.Repeated++
			continue
		}
		s := e.Data.(*Samples).Data[i]
		outcome := put(key, storedText(s))
		if c.count(outcome); outcome == newest.Added || outcome == newest.Updated {
			c.Samples = append(c.Samples, i)
		}
	}
	return c
}

var valueInText = regexp.MustCompile(`"value":[^,}]+`)

// storedText returns the JSON of a sample as a store returns it. It keeps what most samples say,
// and not how it was spelt; numbers keep all their digits.
func storedText(s Sample) []byte {
	number := s.Number()
	if shape, _ := shapeOf(&s); shape.Form != newest.JSON {
		s.RawSample = RawSample{}
	}
	text, _ := s.MarshalJSON()
	if s.Rounded {
		text = valueInText.ReplaceAll(text, []byte(`"value":`+string(number)))
	}
	return text
}

// randomLog makes deliveries of few users and times, so that many meet.
func randomLog(t testing.TB, r *rand.Rand, n int) []*Event {
	users := make([]uuid.UUID, 3)
	for i := range users {
		users[i] = uuid.NewSHA1(uuid.Nil, []byte{byte(i)})
	}
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	var log []*Event
	for range n {
		user := users[r.IntN(len(users))]
		var data string
		kind := pick("glucose", "steps", "sleep", "activity") + pick(".created", ".updated")
		if kind[0] == 's' && kind[1] == 'l' || kind[0] == 'a' {
			data = fmt.Sprintf(`{"id":"%s","total":%d}`, users[r.IntN(len(users))], r.IntN(5))
		} else {
			var b bytes.Buffer
			// Some batches are as they usually are, some are full of odd samples.
			odd, minute := r.IntN(4) == 0, r.IntN(3000)
			for i := range 1 + r.IntN(40) {
				if i > 0 {
					b.WriteByte(',')
				}
				if odd {
					minute = r.IntN(3000)
				} else {
					minute += 1 + r.IntN(2)
				}
				at := noon.Add(time.Duration(minute) * time.Minute)
				if odd {
					at = at.In(time.FixedZone("", 3600*r.IntN(2)))
				}
				text := at.Format(time.RFC3339)
				fmt.Fprintf(&b, `{"timestamp":"%s","unit":"u","value":%d`, text, r.IntN(3))
				if odd {
					b.WriteString(pick("", `,"type":"a"`, `,"type":"unknown"`, `,"type":"b"`))
					b.WriteString(pick("", "", `,"timezone_offset":60`, `,"tags":[1]`, `,"id":7`, `,"start":"`+text+`","end":"`+at.Add(time.Minute).Format(time.RFC3339)+`"`,
						`,"start":"`+text+`"`, `,"systolic":120,"diastolic":80`))
				}
				b.WriteByte('}')
			}
			data = `{"source":` + pick(`{"slug":"ring"}`, `{"provider":"ring"}`, `{"provider":"ring","type":"a"}`, `{"provider":"watch","type":"unknown"}`) + `,"data":[` + b.String() + `]}`
		}
		e := mustParse(t, []byte(fmt.Sprintf(`{"event_type":"daily.data.%s","data":%s,"user_id":"%s"}`, kind, data, user)))
		e.ReceivedAt = noon.Add(time.Duration(r.IntN(n/2+1)) * time.Second)
		log = append(log, e)
	}
	return log
}

// Any order, any repetitions and any number of goroutines give the same content: that of the plain
// rule.
func TestLatestAgainstReference(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 7))
		log := randomLog(t, r, 150)
		want := lastWrite{}
		for _, e := range log {
			want.apply(e)
		}
		texts := map[string]string{}
		for k, v := range want {
			texts[k] = v.text
		}
		for _, appliers := range []int{1, 4} {
			var all []*Event
			for range 1 + r.IntN(2) {
				all = append(all, log...)
			}
			r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			l := new(Latest)
			var wg sync.WaitGroup
			for a := range appliers {
				wg.Go(func() {
					for i := a; i < len(all); i += appliers {
						c, err := l.Apply(Delivery{Event: all[i]})
						if s, ok := all[i].Data.(*Samples); err != nil || ok && c.Added+c.Updated+c.Same+c.Older+c.Repeated+c.Keyless != len(s.Data) ||
							ok && (len(c.Samples) != c.Added+c.Updated || !slices.IsSorted(c.Samples)) {
							t.Errorf("%v %+v", err, c)
						}
						if i%100 == 0 {
							l.Snapshot()
							contentOf(l)
						}
					}
				})
			}
			wg.Wait()
			if diff := gocmp.Diff(texts, contentOf(l)); diff != "" {
				t.Fatalf("seed %d, %d appliers: %s", seed, appliers, diff)
			}
		}
	}
}

// hardBatch makes samples of two series whose times are close to each other, at the borders of
// windows and at both ends of what a key can hold, and whose values are hard to tell apart.
func hardBatch(r *rand.Rand) string {
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	var b []byte
	for range 1 + r.IntN(12) {
		at := time.Unix(0, int64(r.IntN(5)-2)<<windowBits+int64(r.IntN(5)-2)).UTC()
		switch r.IntN(8) {
		case 0:
			at = time.Date(1677, 9, 21, 0, 12, 40+r.IntN(6), 0, time.UTC)
		case 1:
			at = time.Date(2262, 4, 11, 23, 47, 12+r.IntN(6), 0, time.UTC)
		case 2:
			at = noon.Add(time.Duration(r.IntN(400)) * time.Minute) // three windows
		}
		zone, moment, unit, more := 0, "timestamp", "u", pick(``, `"end":`)
		if r.IntN(2) == 0 {
			zone, unit = r.IntN(2), pick("u", "v")
			moment = pick("timestamp", "timestamp", "start", "other")
			more = pick(`"type":"a",`, `"type":"unknown",`, `"timezone_offset":0,`, `"tags":[1],`, `"systolic":120,`, ``)
		}
		at = at.In(time.FixedZone("", 3600*zone))
		text := at.Format(time.RFC3339Nano)
		if more == `"end":` {
			more = fmt.Sprintf(`"start":%q,"end":%q,`, text, at.Add(time.Duration(60+r.IntN(2))*time.Second).Format(time.RFC3339Nano))
		}
		b = fmt.Appendf(b, `{%q:%q,"unit":%q,%s"value":%s},`, moment, text, unit, more,
			pick("0", "-0.0", "1", "1.0", "10", "9", "0.1", "0.1000000000000000055511151231257827", "12345678901234567890", `"1"`, "null", "{}"))
	}
	return `{"source":` + pick(`{"slug":"ring"}`, `{"provider":"ring","type":"watch"}`) + `,"data":[` + string(b[:len(b)-1]) + `]}`
}

// The changes of each delivery, and what can be read afterwards, are those of the plain rule.
func TestLatestChanges(t *testing.T) {
	deliveries := 4000
	if testing.Short() {
		deliveries = 1000
	}
	r := rand.New(rand.NewPCG(1, 40))
	var l Latest
	want := lastWrite{}
	for n := range deliveries {
		if r.IntN(300) == 0 {
			l, want = Latest{}, lastWrite{}
		}
		e := mustParse(t, wrap(0, DailyHeartrateCreated, hardBatch(r)))
		e.ReceivedAt = noon.Add(time.Duration(r.IntN(20)))
		var before *Latest
		var old map[string]string
		if n%10 == 0 {
			before = l.Snapshot()
			old = contentOf(before)
		}
		changes, err := l.Apply(Delivery{Event: e})
		expected := want.apply(e)
		if diff := gocmp.Diff(expected, changes); diff != "" || (err != nil) != (expected.Keyless > 0 || e.Err() != nil) {
			t.Fatalf("delivery %d: %v %s\n%s", n, err, diff, e.RawJSON())
		}
		if before == nil {
			continue
		}
		texts := map[string]string{}
		for k, v := range want {
			texts[k] = v.text
		}
		if diff := gocmp.Diff(texts, contentOf(&l)) + gocmp.Diff(old, contentOf(before)); diff != "" {
			t.Fatalf("after delivery %d: %s", n, diff)
		}
		checkRanges(t, r, &l)
	}
}

// checkRanges compares what Sample and Range return with all samples.
func checkRanges(t *testing.T, r *rand.Rand, l *Latest) {
	t.Helper()
	var keys []SampleKey
	all := map[Series][]SampleKey{}
	for key, s := range l.Samples() {
		keys = append(keys, key)
		all[key.Series()] = append(all[key.Series()], key)
		if got, ok := l.Sample(key); !ok || !gocmp.Equal(got, s) {
			t.Fatalf("%v: %v, %+v", key, ok, got)
		}
		key.UnixNano++
		if got, ok := l.Sample(key); ok && got.Timestamp.Equal(s.Timestamp) && got.Start.Equal(s.Start) {
			t.Fatalf("%v: %+v", key, got)
		}
	}
	for of, keys := range all {
		if !slices.IsSortedFunc(keys, func(a, b SampleKey) int { return cmp.Compare(a.UnixNano, b.UnixNano) }) {
			t.Fatalf("%v: not in ascending order", of)
		}
		from, to := time.Unix(0, keys[r.IntN(len(keys))].UnixNano+r.Int64N(3)-1), time.Unix(0, keys[r.IntN(len(keys))].UnixNano+r.Int64N(3)-1)
		if r.IntN(4) == 0 {
			from = time.Time{}
		}
		if r.IntN(4) == 0 {
			to = time.Time{}
		}
		want := 0
		for _, key := range keys {
			if at := time.Unix(0, key.UnixNano); !at.Before(from) && (to.IsZero() || at.Before(to)) {
				want++
			}
		}
		if got := l.Range(of, from, to); len(got) != want {
			t.Fatalf("%v from %v to %v: %d samples, want %d", of, from, to, len(got), want)
		}
	}
}

// Long series, filled in any order, with runs that fall between and over what is there.
func TestLatestLongSeries(t *testing.T) {
	for _, size := range []int{1, 7, 100, 2000} {
		for _, order := range []string{"ascending", "descending", "shuffled"} {
			const n = 6000
			var starts []int
			for i := 0; i < n; i += size {
				starts = append(starts, i)
			}
			switch order {
			case "descending":
				slices.Reverse(starts)
			case "shuffled":
				rand.New(rand.NewPCG(1, 1)).Shuffle(len(starts), func(i, j int) { starts[i], starts[j] = starts[j], starts[i] })
			}
			var l Latest
			for _, step := range []int{2, 1} { // the second time between and over those of the first
				for _, start := range starts {
					batch := &Samples{Source: Source{Provider: "ring"}}
					for i := start; i < min(start+size, n); i += step {
						batch.Data = append(batch.Data, Sample{Timestamp: noon.Add(time.Duration(i) * time.Minute), Value: float64(i), HasValue: true})
					}
					if _, err := l.Apply(received(&Event{Type: DailyStepsCreated, UserID: adaID, Data: batch}, step)); err != nil {
						t.Fatal(err)
					}
				}
			}
			i := 0
			for _, s := range l.Range(Series{adaID, "steps", "ring", ""}, time.Time{}, noon.Add(n*time.Hour)) {
				if s.Value != float64(i) || !s.Timestamp.Equal(noon.Add(time.Duration(i)*time.Minute)) {
					t.Fatalf("%d %s: sample %d is %v", size, order, i, s.Value)
				}
				i++
			}
			if i != n {
				t.Fatalf("%d %s: %d samples", size, order, i)
			}
		}
	}
}

// Many series, and many kinds of them, with single samples, applied by several goroutines.
func TestLatestManySeries(t *testing.T) {
	const count, appliers = 20_000, 4
	event := func(i int) *Event {
		user := uuid.NewSHA1(uuid.Nil, fmt.Append(nil, i/7)) // seven series each
		return &Event{
			Type: EventType("daily.data." + []string{"glucose", "steps", "heartrate"}[i%3] + ".created"), UserID: user,
			Data: &Samples{Source: Source{Provider: "ring", Type: "watch"}, Data: []Sample{{
				Timestamp: noon.Add(time.Duration(i%7) * time.Minute), Value: float64(i), HasValue: true,
				Unit: fmt.Sprint(i % 1000), TimezoneOffset: int32(i % 5),
			}}},
		}
	}
	var l Latest
	var wg sync.WaitGroup
	for a := range appliers {
		wg.Go(func() {
			for i := a; i < count; i += appliers {
				e := event(i)
				e.Data.(*Samples).Source.Type = SourceType(fmt.Sprint(i % 7)) // a series of its own
				if c, err := l.Apply(received(e, 1)); err != nil || c.Added != 1 {
					t.Error(c, err)
				}
			}
		})
	}
	wg.Wait()
	for _, l := range []*Latest{&l, l.Snapshot()} {
		n := 0
		for range l.Samples() {
			n++
		}
		if n != count {
			t.Errorf("%d samples, want %d", n, count)
		}
		for i := range count {
			e := event(i)
			key := SampleKey{e.UserID, e.Type.Resource(), "ring", fmt.Sprint(i % 7), noon.Add(time.Duration(i%7) * time.Minute).UnixNano()}
			s, ok := l.Sample(key)
			want := e.Data.(*Samples).Data[0]
			if !ok || s.Value != want.Value || s.Unit != want.Unit || s.TimezoneOffset != want.TimezoneOffset {
				t.Fatalf("sample %d: %t %v %q %d", i, ok, s.Value, s.Unit, s.TimezoneOffset)
			}
			key.SourceType = "none"
			if _, ok := l.Sample(key); ok {
				t.Fatal("a series that is not there")
			}
		}
	}
}

// What the store keeps does not hold the events in memory.
func TestLatestHoldsNoEvents(t *testing.T) {
	var l Latest
	before := liveHeap()
	for i := range 200 {
		e := mustParse(t, plain.EventJSON(1000, "uniform"))
		if _, err := l.Apply(received(e, i)); err != nil {
			t.Fatal(err)
		}
	}
	if grown := int64(liveHeap()) - int64(before); grown > 1<<20 {
		t.Errorf("%d bytes for 1,000 samples", grown)
	}
	if s, ok := l.Sample(SampleKey{adaID, "glucose", "example_sensor", "automatic", time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC).UnixNano()}); !ok || s.Value != 4 {
		t.Error(ok)
	}
}

// A sample takes the memory that the documentation states, and none is lost, with any number of
// goroutines.
func TestLatestIsSmall(t *testing.T) {
	for _, shuffled := range []bool{false, true} {
		for _, goroutines := range []int{1, 8} {
			f := newFilling(t, 100, 1000, 100, shuffled)
			before := liveHeap()
			l := new(Latest)
			f.apply(t, l, goroutines)
			each := float64(liveHeap()-before) / float64(f.samples())
			n := 0
			for _, user := range f.users {
				for i, s := range l.Range(Series{user, "glucose", "example_sensor", "automatic"}, noon, noon.AddDate(0, 0, 1)) {
					if n++; s.Value != 4+float64(i%50)/10 || !s.Timestamp.Equal(noon.Add(time.Duration(i)*time.Minute)) {
						t.Fatalf("sample %d of %s is %v at %s", i, user, s.Value, s.Timestamp)
					}
				}
			}
			if n != f.samples() || each > 80 {
				t.Errorf("shuffled %t, %d goroutines: %d samples of %d, %.1f bytes each", shuffled, goroutines, n, f.samples(), each)
			}
		}
	}
}

// A program may use an offset that JSON does not have.
func TestLatestExtremeZones(t *testing.T) {
	for _, hours := range []int{-25, -24, 24, 1000} {
		var l Latest
		at := time.Date(2025, 3, 4, 12, 0, 0, 0, time.FixedZone("", hours*3600))
		event := &Event{
			Type: "daily.data.glucose.created", UserID: uuid.UUID{1}, ReceivedAt: at,
			Data: &Samples{Data: []Sample{{Timestamp: at, Value: 1}}},
		}
		if _, err := l.Apply(Delivery{Event: event}); err != nil {
			t.Fatal(err)
		}
		for _, sample := range l.Samples() {
			if !sample.Timestamp.Equal(at) {
				t.Errorf("%d hours: %v, want %v", hours, sample.Timestamp, at)
			}
		}
	}
}
