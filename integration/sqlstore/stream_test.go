package sqlstore_test

import (
	"cmp"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// samplesOf returns the samples of an iterator that returns no error.
func samplesOf(t testing.TB, all iter.Seq2[sqlstore.StoredSample, error]) (samples []webhooks.Sample) {
	t.Helper()
	for of, err := range all {
		if err != nil {
			t.Fatal(err)
		}
		samples = append(samples, of.Sample)
	}
	return samples
}

// spread returns a delivery of n samples of a series of a user, at every step from noon on.
func spread(u int, resource, provider, sourceType string, n int, step time.Duration) webhooks.RawDelivery {
	samples := make([]string, n)
	for i := range samples {
		samples[i] = fmt.Sprintf(`{"timestamp":%q,"unit":"bpm","value":%d}`, noon.Add(time.Duration(i)*step).Format(time.RFC3339Nano), i)
	}
	body := fmt.Sprintf(`{"event_type":"daily.data.%s.created","user_id":%q,"data":{"source":{"provider":%q,"type":%q},"data":[%s]}}`,
		resource, user(u), provider, sourceType, strings.Join(samples, ","))
	return webhooks.RawDelivery{ID: fmt.Sprint("msg_", u, resource, provider, sourceType), ReceivedAt: noon, Body: []byte(body)}
}

// lines returns the keys of samples, without the user.
func lines(t testing.TB, all iter.Seq2[sqlstore.StoredSample, error]) (list []string) {
	t.Helper()
	for of, err := range all {
		if err != nil {
			t.Fatal(err)
		}
		k := of.Key
		list = append(list, fmt.Sprint(k.Resource, " ", k.Provider, " ", k.SourceType, " ", time.Duration(k.UnixNano-noon.UnixNano())))
	}
	return list
}

// Samples of several series are ordered by time, and those of the same time by series.
func TestUserSamples(t *testing.T) {
	onAll(t, func(t *testing.T, d database) {
		store, ctx := d.store(t), t.Context()
		_, err := store.ApplyAll(ctx, parse(t, []webhooks.RawDelivery{
			spread(1, "heartrate", "ring", "watch", 3, 2*time.Second), spread(1, "heartrate", "ring", "", 3, 3*time.Second),
			spread(1, "heartrate", "band", "watch", 2, time.Second), spread(1, "glucose", "sensor", "", 2, 3*time.Second),
			spread(2, "heartrate", "ring", "watch", 9, time.Second),
		}))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			u        int
			resource string
			from, to time.Time
			want     []string
		}{
			{1, "heartrate", time.Time{}, time.Time{}, []string{
				"heartrate band watch 0s", "heartrate ring  0s", "heartrate ring watch 0s", "heartrate band watch 1s",
				"heartrate ring watch 2s", "heartrate ring  3s", "heartrate ring watch 4s", "heartrate ring  6s"}},
			{1, "heartrate", noon.Add(time.Second), noon.Add(4 * time.Second), []string{
				"heartrate band watch 1s", "heartrate ring watch 2s", "heartrate ring  3s"}},
			{1, "", noon.Add(3 * time.Second), time.Time{}, []string{
				"glucose sensor  3s", "heartrate ring  3s", "heartrate ring watch 4s", "heartrate ring  6s"}},
			{1, "", time.Time{}, noon.Add(1), []string{
				"glucose sensor  0s", "heartrate band watch 0s", "heartrate ring  0s", "heartrate ring watch 0s"}},
			{1, "", noon, noon, nil},
			{1, "steps", time.Time{}, time.Time{}, nil},
			{3, "", time.Time{}, time.Time{}, nil},
		} {
			all := store.UserSamples(ctx, user(c.u), c.resource, c.from, c.to)
			for range 2 { // it can be repeated
				if diff := gocmp.Diff(c.want, lines(t, all)); diff != "" {
					t.Errorf("user %d, %q from %v to %v: %s", c.u, c.resource, c.from, c.to, diff)
				}
			}
		}
		of := webhooks.Series{UserID: user(1), Resource: "heartrate", Provider: "ring", SourceType: "watch"}
		for range store.UserSamples(ctx, user(1), "", time.Time{}, time.Time{}) {
			break
		}
		want := []string{"heartrate ring watch 2s", "heartrate ring watch 4s"}
		if diff := gocmp.Diff(want, lines(t, store.Range(ctx, of, noon.Add(1), time.Time{}))); diff != "" {
			t.Error(diff)
		}
	})
}

// Series of many pages, with and without common times, are merged completely and in order.
func TestUserSamplesOfManyPages(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store := d.store(t)
		r := rand.New(rand.NewPCG(3, 3))
		type at struct {
			nano     int64
			provider string
		}
		var want []at
		var all []webhooks.RawDelivery
		for s := range 30 { // so many that each has small pages
			provider := fmt.Sprintf("p%02d", s)
			n, step := r.IntN(400), time.Duration(1+r.IntN(3))*time.Second
			all = append(all, spread(1, "heartrate", provider, "", n, step))
			for i := range n {
				want = append(want, at{noon.Add(time.Duration(i) * step).UnixNano(), provider})
			}
		}
		slices.SortFunc(want, func(a, b at) int { return cmp.Or(cmp.Compare(a.nano, b.nano), cmp.Compare(a.provider, b.provider)) })
		if _, err := store.ApplyAll(t.Context(), parse(t, all)); err != nil {
			t.Fatal(err)
		}
		var got []at
		for s, err := range store.UserSamples(t.Context(), user(1), "heartrate", time.Time{}, time.Time{}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, at{s.Key.UnixNano, s.Key.Provider})
		}
		if !slices.Equal(want, got) {
			t.Errorf("%d samples, want %d in another order", len(got), len(want))
		}
	})
}

// Summaries of a user are ordered by resource and ID.
func TestUserSummaries(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, ctx := d.store(t), t.Context()
		id := func(n int) string { return fmt.Sprintf("00000000-0000-4000-9000-%012d", n) }
		var all []webhooks.RawDelivery
		for n := range 450 { // more than a page
			for u, resource := range []string{"sleep", "sleep", "activity"} {
				all = append(all, webhooks.RawDelivery{ReceivedAt: noon, Body: []byte(fmt.Sprintf(
					`{"event_type":"daily.data.%s.created","user_id":%q,"data":{"id":%q}}`, resource, user(min(1, u)), id(n)))})
			}
		}
		if _, err := store.ApplyAll(ctx, parse(t, append(all, spread(1, "heartrate", "", "", 3, 1)))); err != nil {
			t.Fatal(err)
		}
		for resource, resources := range map[string][]string{"": {"activity", "sleep"}, "sleep": {"sleep"}, "body": nil} {
			var want, got []string
			for _, resource := range resources {
				for n := range 450 {
					want = append(want, resource+" "+id(n))
				}
			}
			for of, err := range store.UserSummaries(ctx, user(1), resource) {
				if err != nil {
					t.Fatal(err)
				}
				if of.Key.UserID != user(1) || of.Data == nil {
					t.Fatal(of)
				}
				got = append(got, of.Key.Resource+" "+of.Key.ID.String())
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("%q: %s", resource, diff)
			}
		}
	})
}

// While a program processes a sample, it can use the only connection, write, and delete the user,
// whose place another user takes. It never reads a sample of that one, or one twice.
func TestChangesWhileReading(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		db := d.open(t)
		db.SetMaxOpenConns(1)
		store, err := sqlstore.Open(db, d.dialect)
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		if err := store.Migrate(ctx); err != nil {
			t.Fatal(err)
		}
		apply := func(all ...webhooks.RawDelivery) {
			t.Helper()
			if _, err := store.ApplyAll(ctx, parse(t, all)); err != nil {
				t.Fatal(err)
			}
		}
		of := webhooks.Series{UserID: user(1), Resource: "heartrate", Provider: "ring"}
		for name, read := range map[string]func() iter.Seq2[sqlstore.StoredSample, error]{
			"range": func() iter.Seq2[sqlstore.StoredSample, error] { return store.Range(ctx, of, time.Time{}, time.Time{}) },
			"user samples": func() iter.Seq2[sqlstore.StoredSample, error] {
				return store.UserSamples(ctx, user(1), "", noon, time.Time{})
			},
			"samples": func() iter.Seq2[sqlstore.StoredSample, error] { return store.Samples(ctx) },
		} {
			apply(spread(1, "heartrate", "ring", "", 4500, time.Second))
			seen, last := 0, int64(0)
			for s, err := range read() {
				if err != nil {
					t.Fatal(name, err)
				}
				if s.Key.UserID != user(1) || s.Key.UnixNano <= last {
					t.Fatalf("%s: %v after %d samples", name, s, seen)
				}
				last = s.Key.UnixNano
				if seen++; seen == 1 {
					apply(heartrates("late", 1, "666")) // replaces the first
				}
				if seen == 2500 {
					if err := store.DeleteUser(ctx, user(1)); err != nil {
						t.Fatal(err)
					}
					if name != "samples" {
						apply(spread(2, "heartrate", "ring", "", 4500, time.Second))
					}
				}
			}
			if seen < 2500 || seen > 4000 {
				t.Errorf("%s: %d samples", name, seen)
			}
			if err := store.DeleteUser(ctx, user(2)); err != nil {
				t.Fatal(err)
			}
		}
	})
}
