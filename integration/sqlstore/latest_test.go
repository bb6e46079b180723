package sqlstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// history returns deliveries with few keys and few times of receipt, so that content is repeated
// and versions are equal. They have both shapes of sources, every kind of sample, and events
// without a key.
func history(r *rand.Rand, n int) []webhooks.RawDelivery {
	pick := func(texts ...string) string { return texts[r.IntN(len(texts))] }
	sample := func() string {
		at := noon.Add(time.Duration(r.IntN(12)) * time.Minute)
		zone := time.FixedZone("", 60*60*r.IntN(2))
		timestamp := fmt.Sprintf(`"timestamp":%q,`, at.In(zone).Format(time.RFC3339))
		value := fmt.Sprintf(`"value":%s`, pick("1", "1.5", "10", "9", "1e21", "0", "-0.0", "0.1", "123456789.125",
			"0.12345678901234567890", "0.1234567890123456789", "12345678901234567890", "1e-400"))
		more := pick(`"unit":"bpm",`, `"unit":"bpm","type":"automatic",`, `"unit":"bpm","type":"","timezone_offset":null,`,
			`"unit":"bpm","timezone_offset":3600,`, `"unit":"\u0000\\","type":"a\u0000b",`)
		switch r.IntN(12) {
		case 0:
			return `{` + more + value + `}`
		case 1:
			return `{` + timestamp + more + `"value":"a note \u0000 with \"quotes\" and \\ 'these'"}`
		case 2:
			return `{` + timestamp + more + `"systolic":` + pick("120", "130", "0") + `,"diastolic":80}`
		case 3:
			return `{` + timestamp + more + value + `,"tags":["x",{"y":null}],"id":` + pick("1", "2") + `}`
		case 4:
			return fmt.Sprintf(`{%s"start":%q,"end":%q,%s%s}`, timestamp, at.In(zone).Format(time.RFC3339),
				at.Add(time.Duration(r.IntN(4)*30)*time.Second).In(zone).Format(time.RFC3339), more, value)
		case 5: // longer than the column for seconds can store
			return fmt.Sprintf(`{%s"start":%q,"end":"2100-01-01T00:00:00Z",%s%s}`,
				timestamp, at.In(zone).Format(time.RFC3339), more, value)
		case 6:
			return fmt.Sprintf(`{"start":%q,%s%s}`, at.Format(time.RFC3339), more, value)
		case 7:
			return `{` + timestamp + more + `"unit":"bpm"}`
		}
		return `{` + timestamp + more + value + `}`
	}
	all := make([]webhooks.RawDelivery, n)
	for i := range all {
		id := fmt.Sprintf(`,"user_id":%q`, user(r.IntN(3)))
		if r.IntN(20) == 0 {
			id = ""
		}
		var kind, data string
		switch r.IntN(6) {
		case 0:
			kind = pick("daily.data.sleep.created", "daily.data.sleep.updated", "daily.data.activity.created", "daily.data.body.created")
			data = fmt.Sprintf(`{"id":%s,"steps":%d,"note":"\u0000","new":{"a":[%d]}}`,
				pick(`"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11"`, `"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c12"`, `"nonsense"`), r.IntN(3), r.IntN(2))
		case 1:
			kind, data = pick("provider.device.paired", "provider.connection.created", "some.new.thing"), `{"id":"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11"}`
		default:
			kind = pick("daily.data.heartrate.created", "daily.data.heartrate.updated", "daily.data.note.created", `daily.data.od\u0000d\\.created`)
			source := pick(`{"name":"R","slug":"ring","logo":""}`, `{"provider":"ring","type":"automatic"}`, `{"provider":"ring","type":"unknown"}`,
				`{"provider":"r\u0000ng","type":"\\x00"}`, `null`)
			samples := make([]string, r.IntN(8))
			for k := range samples {
				samples[k] = sample()
			}
			data = fmt.Sprintf(`{"source":%s,"data":[%s]}`, source, strings.Join(samples, ","))
		}
		all[i] = webhooks.RawDelivery{
			ID:         fmt.Sprintf("msg_%d", i),
			Body:       []byte(fmt.Sprintf(`{"event_type":"%s","team_id":"00000000-0000-4000-8000-00000000000a"%s,"data":%s}`, kind, id, data)),
			ReceivedAt: noon.Add(time.Duration(r.IntN(5)) * time.Second),
		}
	}
	return all
}

func parse(t testing.TB, all []webhooks.RawDelivery) []webhooks.Delivery {
	t.Helper()
	deliveries := make([]webhooks.Delivery, len(all))
	for i := range all {
		var err error
		if deliveries[i], err = all[i].Parse(); err != nil {
			t.Fatal(err)
		}
	}
	return deliveries
}

// contents are the samples and summaries of a store as sorted lines.
type contents []string

func sampleLine(key webhooks.SampleKey, s webhooks.Sample) string {
	text, _ := s.MarshalJSON()
	return fmt.Sprintf("%v %q %q %q %d %s %v", key.UserID, key.Resource, key.Provider, key.SourceType, key.UnixNano, text, s.Extra)
}

func summaryLine(key webhooks.SummaryKey, data webhooks.Payload) string {
	text, _ := data.MarshalJSON()
	return fmt.Sprintf("%v %q %v %T %s", key.UserID, key.Resource, key.ID, data, text)
}

func contentsOf(t testing.TB, s *sqlstore.Store) (all contents) {
	t.Helper()
	for of, err := range s.Samples(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, sampleLine(of.Key, of.Sample))
	}
	for of, err := range s.Summaries(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, summaryLine(of.Key, of.Data))
	}
	slices.Sort(all)
	return all
}

func contentsOfLatest(l *webhooks.Latest) (all contents) {
	for key, s := range l.Samples() {
		all = append(all, sampleLine(key, s))
	}
	for key, data := range l.Summaries() {
		all = append(all, summaryLine(key, data))
	}
	slices.Sort(all)
	return all
}

func latestOf(all []webhooks.Delivery) contents {
	var latest webhooks.Latest
	for _, d := range all {
		latest.Apply(d)
	}
	return contentsOfLatest(&latest)
}

// apply applies deliveries in batches.
func apply(t testing.TB, store *sqlstore.Store, all []webhooks.Delivery) {
	t.Helper()
	for batch := range slices.Chunk(all, 20) {
		if _, err := store.ApplyAll(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
}

// The store has the content, the changes and the errors of Latest after each delivery, for batches
// of any size.
func TestSameAsLatest(t *testing.T) {
	size := 150
	if long {
		size = 400
	}
	onAll(t, func(t *testing.T, d database) {
		for seed := range uint64(4) {
			store := d.store(t)
			clear(t, d)
			r := rand.New(rand.NewPCG(seed, 1))
			deliveries := parse(t, history(r, size))
			var latest webhooks.Latest
			if seed == 2 { // clocks beyond the nanoseconds of 64 bits
				for i := range deliveries {
					deliveries[i].Event.ReceivedAt = []time.Time{
						{}, deliveries[i].Event.ReceivedAt, time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC),
					}[r.IntN(3)]
				}
			}
			if seed == 3 {
				version := func(d webhooks.Delivery) int64 { return int64(len(d.ID)) }
				store.Version, latest.Version = version, version
			}
			for rest := deliveries; len(rest) > 0; {
				n := min(1+r.IntN(30), len(rest))
				applied, err := store.ApplyAll(t.Context(), rest[:n])
				if err != nil {
					t.Fatal(err)
				}
				for i, d := range rest[:n] {
					changes, err := latest.Apply(d)
					if diff := cmp.Diff(changes, applied[i].Changes); diff != "" || err != applied[i].Err {
						t.Fatalf("%s: errors %v, %v, changes %s", d.Event.RawJSON(), err, applied[i].Err, diff)
					}
				}
				rest = rest[n:]
			}
			want := contentsOfLatest(&latest)
			if diff := cmp.Diff(want, contentsOf(t, store)); diff != "" || len(want) < 100 {
				t.Errorf("seed %d, %d lines: %s", seed, len(want), diff)
			}
			read(t, store, &latest)
		}
	})
}

// The same deliveries leave the same content in Latest, SQLite and PostgreSQL, although each store
// gets them in its own order, with its own repetitions and in its own batches.
func TestStoresAgree(t *testing.T) {
	t.Parallel()
	databases := []database{sqliteFile(t), postgres(t)}
	seeds := uint64(6)
	if long {
		seeds = 60
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 23))
		deliveries := parse(t, history(r, 150))
		repeated := func() []webhooks.Delivery {
			all := slices.Clone(deliveries)
			for range r.IntN(len(deliveries)) {
				all = append(all, deliveries[r.IntN(len(deliveries))])
			}
			r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			return all
		}
		var latest webhooks.Latest
		for _, d := range repeated() {
			latest.Apply(d) // with errors: TestSameAsLatest compares them
		}
		want := contentsOfLatest(&latest)
		for _, d := range databases {
			store := d.store(t)
			clear(t, d)
			for rest := repeated(); len(rest) > 0; {
				n := min(1+r.IntN(25), len(rest))
				if _, err := store.ApplyAll(t.Context(), rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if diff := cmp.Diff(want, contentsOf(t, store)); diff != "" || len(want) < 100 {
				t.Errorf("seed %d, %v, %d lines: %s", seed, d.dialect, len(want), diff)
			}
		}
	}
}

// read compares what a store returns for keys with Latest.
func read(t *testing.T, store *sqlstore.Store, latest *webhooks.Latest) {
	ctx := t.Context()
	series := map[webhooks.Series]bool{}
	for key, want := range latest.Samples() {
		series[key.Series()] = true
		got, ok, err := store.Sample(ctx, key)
		if err != nil || !ok || sampleLine(key, got) != sampleLine(key, want) {
			t.Fatalf("%v %v %v", key, ok, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	for key, want := range latest.Summaries() {
		got, ok, err := store.Summary(ctx, key)
		if err != nil || !ok || summaryLine(key, got) != summaryLine(key, want) {
			t.Fatalf("%v %v %v", key, ok, err)
		}
	}
	readSeries(t, store, latest, series)
	if _, ok, err := store.Sample(ctx, webhooks.SampleKey{}); ok || err != nil {
		t.Error(ok, err)
	}
	if _, ok, err := store.Summary(ctx, webhooks.SummaryKey{}); ok || err != nil {
		t.Error(ok, err)
	}
}

func readSeries(t *testing.T, store *sqlstore.Store, latest *webhooks.Latest, series map[webhooks.Series]bool) {
	ctx := t.Context()
	for of := range series {
		for _, span := range [][2]time.Time{{{}, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}, {}, {noon.Add(2 * time.Minute), noon.Add(5 * time.Minute)}} {
			got := samplesOf(t, store.Range(ctx, of, span[0], span[1]))
			if diff := cmp.Diff(latest.Range(of, span[0], span[1]), got); diff != "" {
				t.Error(diff)
			}
		}
	}
	found := 0
	for n := range 4 {
		all, err := store.Series(ctx, user(n))
		if err != nil {
			t.Fatal(err)
		}
		for _, of := range all {
			if !series[of] {
				t.Errorf("unexpected series %v", of)
			}
			found++
		}
	}
	if found != len(series) {
		t.Errorf("%d series of %d", found, len(series))
	}
}

// clear empties the tables.
func clear(t *testing.T, d database) {
	db := d.open(t)
	defer db.Close() // some tests clear many times
	for _, table := range []string{"samples", "summaries", "series", "users", "deliveries", "inbox", "dead_letters",
		"orders", "order_events", "order_results", "reactions", "reconciled_users", "reconciled"} {
		if _, err := db.Exec(specificsOf[d.dialect].empty + "labhealth_" + table); err != nil {
			t.Fatal(err)
		}
	}
}
