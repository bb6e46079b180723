package labhealthtest_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

// The state of an order has what follows, how far it is, and counts of its results, invented or
// set.
func TestOrderState(t *testing.T) {
	now := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	srv, err := labhealthtest.Start(labhealthtest.WithSeed(1), labhealthtest.WithClock(func() time.Time { return now }))
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	user := srv.AddUser("user-1")
	id, err := srv.AddOrder(user, srv.LabTests.WalkIn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := srv.Advance(id); err != nil {
		t.Fatal(err)
	}
	got, _ := srv.OrderState(id)
	want := labhealthtest.OrderState{
		ID: id, UserID: user, ClientUserID: "user-1", Method: "walk_in_test", LabTest: "Lipid Panel",
		Status: "received.walk_in_test.requisition_created", Since: now, CreatedAt: now,
		Next: []string{
			"collecting_sample.walk_in_test.appointment_pending", "collecting_sample.walk_in_test.appointment_scheduled", "completed.walk_in_test.completed",
		},
		Reached: 2, Markers: 2,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	redraw, err := srv.Redraw(id)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := srv.OrderState(redraw); got.RedrawOf != id {
		t.Errorf("redraw of %s, want %s", got.RedrawOf, id)
	}
	if err := srv.SetStatus(id, "completed.walk_in_test.completed"); err != nil {
		t.Fatal(err)
	}
	check := func(want *labhealthtest.ResultCounts) {
		t.Helper()
		got, _ := srv.OrderState(id)
		if diff := cmp.Diff(want, got.Results); diff != "" {
			t.Error(diff)
		}
	}
	check(&labhealthtest.ResultCounts{Total: 2})
	if err := srv.CorrectResult(id, 901, "412"); err != nil {
		t.Fatal(err)
	}
	check(&labhealthtest.ResultCounts{Total: 2, Abnormal: 1})
	for body, want := range map[string]*labhealthtest.ResultCounts{
		`{"metadata":{"interpretation":"critical"},"results":[{"interpretation":"critical"},{"is_below_min_range":true},{}],"missing_results":[{}]}`: {
			Total: 3, Abnormal: 1, Critical: 1, Missing: 1, Interpretation: "critical",
		},
		`no JSON`: nil,
	} {
		if err := srv.SetResults(id, body); err != nil {
			t.Fatal(err)
		}
		check(want)
	}
	if _, ok := srv.OrderState(uuid.New()); ok {
		t.Error("an order that does not exist has a state")
	}
}
