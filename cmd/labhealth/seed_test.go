package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// TestSeed checks that seeded orders are in all kinds of statuses and of all ages, and that the
// receivers get the events at the times at which they happened.
func TestSeed(t *testing.T) {
	t.Parallel()
	clock := &seedClock{}
	srv, err := labhealthtest.Start(labhealthtest.WithSeed(1), labhealthtest.WithClock(clock.Now))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	secret := webhookSecret(1)
	inspector, err := inspect.Open(t.Context(), inspect.Config{Secrets: []string{secret}, Now: clock.Now, Keep: 30 * 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inspector.Close() })
	err = srv.DeliverTo("http://inspector.invalid/", labhealthtest.WithSigningSecrets(secret), labhealthtest.WithRetries(),
		labhealthtest.WithTransport(inspector.Transport()))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := seed(t.Context(), srv, clock, 20, 50); err != nil {
		t.Fatal(err)
	}
	n, err := inspector.Count(t.Context(), inspect.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%v for %d deliveries", time.Since(start), n)
	if rejected, err := inspector.Count(t.Context(), inspect.Filter{Is: "rejected"}); rejected != 0 || err != nil {
		t.Errorf("%d deliveries are rejected, %v", rejected, err)
	}
	if n := len(srv.Orders()); n != 50 {
		t.Errorf("%d orders", n)
	}
	var tops, methods []string
	oldest := time.Now()
	for _, o := range srv.OrderStates() {
		top, _, _ := strings.Cut(o.Status, ".")
		tops, methods = append(tops, top), append(methods, o.Method)
		if o.CreatedAt.Before(oldest) {
			oldest = o.CreatedAt
		}
	}
	t.Logf("orders since %v: %v", oldest, count(tops))
	for _, top := range []string{"received", "collecting_sample", "sample_with_lab", "completed", "cancelled", "failed"} {
		if !slices.Contains(tops, top) {
			t.Errorf("no order is %s", top)
		}
	}
	for _, method := range []string{"testkit", "walk_in_test", "at_home_phlebotomy", "on_site_collection"} {
		if !slices.Contains(methods, method) {
			t.Errorf("no order has the method %s", method)
		}
	}
	if d := time.Since(oldest); d < 10*24*time.Hour || d > 15*24*time.Hour {
		t.Errorf("the oldest order is of %v", oldest)
	}
	if id := srv.OrderStates()[0].ID.String(); id != "55e1147f-f612-4d79-b70c-661abbd4f696" {
		t.Errorf("the first order is %s: it must be the same in each run", id)
	}
	if d := time.Since(clock.Now()); d > time.Minute {
		t.Errorf("the clock is %v behind", d)
	}
}

func count(values []string) map[string]int {
	n := map[string]int{}
	for _, v := range values {
		n[v]++
	}
	return n
}

// TestSeedNow checks that invented data can be added to a server that runs, more than once.
func TestSeedNow(t *testing.T) {
	t.Parallel()
	srv, err := labhealthtest.Start(labhealthtest.WithSeed(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	for range 2 {
		if err := seed(t.Context(), srv, &seedClock{}, 2, 12); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(srv.Orders()); n != 24 {
		t.Errorf("%d orders", n)
	}
	if err := seed(t.Context(), srv, &seedClock{}, 0, 18); err != nil { // the last one is not redrawn
		t.Fatal(err)
	}
	if n := len(srv.Orders()); n != 24+18 {
		t.Errorf("%d orders", n)
	}
	for _, users := range []int{0, 3} {
		if err := seed(t.Context(), srv, &seedClock{}, users, 0); err != nil {
			t.Error(err)
		}
	}
}
