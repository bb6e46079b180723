package sqlstore_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// A store that missed deliveries and read the data back has the content of one that missed none, in
// whatever order it applies what it has.
func TestReadBack(t *testing.T) {
	onAll(t, func(t *testing.T, d database) {
		store := d.store(t)
		clear(t, d)
		r := rand.New(rand.NewPCG(1, 1))
		srv := labhealthtest.NewServer(t, labhealthtest.WithSamplesPerPage(7))
		user := srv.AddUser("ada")
		client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL), labhealth.WithHTTPClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}))
		if err != nil {
			t.Fatal(err)
		}
		var complete webhooks.Latest
		var deliveries []webhooks.Delivery
		handler, err := webhooks.NewHandler(webhooks.Unsigned, func(_ context.Context, e *webhooks.Event) error {
			d := webhooks.Delivery{Event: e}
			if r.IntN(3) > 0 { // the others are lost
				deliveries = append(deliveries, d)
			}
			_, err := complete.Apply(d)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		receiver := httptest.NewServer(handler)
		defer receiver.Close()
		if err := srv.DeliverTo(receiver.URL); err != nil {
			t.Fatal(err)
		}

		start := time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)
		summaries := []labhealth.SummaryResource{"activity", "meal", "menstrual_cycle", "sleep", "workouts"}
		samples := []labhealth.SampleResource{"glucose", "blood_pressure", "body_weight", "note", "insulin_injection"}
		for range 100 {
			at := labhealthtest.StartingAt(start.AddDate(0, 0, 100*r.IntN(5)))
			_, err := srv.AddSummary(user, string(summaries[r.IntN(len(summaries))]), at)
			if err == nil {
				err = srv.AddSamples(user, string(samples[r.IntN(len(samples))]), 1+r.IntN(20), at)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := srv.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}

		add := func(e *webhooks.Event, err error) {
			if err != nil {
				t.Fatal(err)
			}
			deliveries = append(deliveries, webhooks.Delivery{Event: e})
		}
		for _, resource := range summaries {
			for e, err := range webhooks.ReadSummaries(t.Context(), client, user, resource, labhealth.ListSummariesParams{StartDate: labhealth.DateOf(start)}) {
				add(e, err)
			}
		}
		for _, resource := range samples {
			for e, err := range webhooks.ReadSamples(t.Context(), client, user, resource, labhealth.ListSamplesParams{StartDate: start}) {
				add(e, err)
			}
		}
		r.Shuffle(len(deliveries), func(i, j int) { deliveries[i], deliveries[j] = deliveries[j], deliveries[i] })
		for rest := deliveries; len(rest) > 0; {
			n := min(1+r.IntN(20), len(rest))
			if _, err := store.ApplyAll(t.Context(), rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		want := contentsOfLatest(&complete)
		if diff := cmp.Diff(want, contentsOf(t, store)); diff != "" || len(want) < 100 {
			t.Errorf("%d lines: %s", len(want), diff)
		}
	})
}
