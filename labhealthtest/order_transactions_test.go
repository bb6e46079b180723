package labhealthtest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// A redraw belongs to the transaction of its order, and completes what the first sample lacks.
func TestRedraw(t *testing.T) {
	rec := newReceiver(t)
	srv := newServer(t)
	id, err := srv.AddOrder(srv.AddUser("ada"), srv.LabTests.WalkIn)
	noError(t, err)
	path := "/v3/order_transaction/" + getOrder(t, srv, id).Transaction.ID.String()
	type summary struct {
		Status string
		Orders []struct {
			ID       uuid.UUID
			Origin   string
			ParentID *uuid.UUID `json:"parent_id"`
			Last     string     `json:"last_status"`
		}
	}
	status := func() string {
		t.Helper()
		got := decode[summary](t, do(t, srv, "GET", path, ""))
		text := got.Status
		for _, o := range got.Orders {
			text += " " + o.Origin + ":" + o.Last
			if (o.ParentID != nil) != (o.Origin == "redraw") || o.ParentID != nil && *o.ParentID != id {
				t.Errorf("%+v", got)
			}
		}
		return text
	}
	expect := func(want string) {
		t.Helper()
		if got := status(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	expect("active initial:ordered")
	check(t, do(t, srv, "GET", path+"/result", ""), 404, `{"detail":"Results are not available yet"}`)
	check(t, do(t, srv, "GET", path+"/result/pdf", ""), 404, `{"detail":"Results are not available yet"}`)

	noError(t, srv.SetMissing(id, 902, "quantity_not_sufficient_failure"))
	noError(t, srv.PartialResults(id))
	noError(t, srv.SetStatus(id, "collecting_sample.walk_in_test.redraw_available"))
	results := func() string {
		t.Helper()
		got := decode[struct {
			Results []struct{ Slug string }
			Missing []struct{ Slug string } `json:"missing_results"`
		}](t, do(t, srv, "GET", path+"/result", ""))
		return fmt.Sprint(got.Results, got.Missing)
	}
	if got := results(); got != "[{total-cholesterol}] []" {
		t.Error(got)
	}
	noError(t, srv.DeliverTo(rec.URL))
	redraw, err := srv.Redraw(id)
	noError(t, err)
	if _, err := srv.Redraw(id); err == nil {
		t.Error("redrawn twice")
	}
	if _, err := srv.Redraw(uuid.New()); err == nil {
		t.Error("an unknown order is redrawn")
	}
	expect("active initial:redraw_available redraw:ordered")
	if a, b := getOrder(t, srv, id), getOrder(t, srv, redraw); a.Transaction != b.Transaction || b.UserID != a.UserID || b.LabTest.Name != a.LabTest.Name {
		t.Errorf("%+v, %+v", a, b)
	}
	got := decode[struct{ Orders []struct{ ID uuid.UUID } }](t, do(t, srv, "GET", "/v3/orders?order_transaction_id="+strings.TrimPrefix(path, "/v3/order_transaction/"), ""))
	if len(got.Orders) != 2 {
		t.Errorf("%v", got)
	}
	check(t, simulate(t, srv, redraw, ""), 200, `"Success"`)
	check(t, simulate(t, srv, redraw, ""), 200, `"Success"`)
	expect("completed initial:redraw_available redraw:completed")
	if got := results(); got != "[{total-cholesterol} {hdl-cholesterol}] []" {
		t.Error(got)
	}
	if got := do(t, srv, "GET", path+"/result/pdf", ""); got.status != 200 || !strings.HasPrefix(got.body, "%PDF-") {
		t.Errorf("%d %s", got.status, got.body)
	}
	noError(t, srv.SetResults(redraw, `{"results":[]}`))
	check(t, do(t, srv, "GET", path+"/result", ""), 200, `{"results":[]}`)
	noError(t, srv.Flush(t.Context()))
	if types := eventTypes(t, rec.take()); types[0] != "labtest.order.created received.walk_in_test.ordered" {
		t.Errorf("%v", types)
	}
}

// A transaction is canceled only if all of its orders are.
func TestCanceledRedraw(t *testing.T) {
	srv := newServer(t)
	ada := srv.AddUser("ada")
	for _, test := range []struct {
		first, second string
		want          string
	}{
		{"", "cancelled.on_site_collection.cancelled", "active"},
		{"completed.on_site_collection.completed", "cancelled.on_site_collection.cancelled", "completed"},
		{"failed.on_site_collection.sample_error", "completed.on_site_collection.corrected", "completed"},
		{"completed.on_site_collection.completed", "", "active"},
		{"cancelled.on_site_collection.cancelled", "cancelled.on_site_collection.cancelled", "cancelled"},
	} {
		first, err := srv.AddOrder(ada, srv.LabTests.OnSite)
		noError(t, err)
		second, err := srv.Redraw(first)
		noError(t, err)
		for id, status := range map[uuid.UUID]string{first: test.first, second: test.second} {
			if status != "" {
				noError(t, srv.SetStatus(id, status))
			}
		}
		if got := getOrder(t, srv, first).Transaction.Status; got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
	}
	canceled, err := srv.AddOrder(ada, srv.LabTests.OnSite)
	noError(t, err)
	noError(t, srv.Cancel(canceled))
	if _, err := srv.Redraw(canceled); err == nil {
		t.Error("a canceled order is redrawn")
	}
	for _, path := range []string{"", "/result", "/result/pdf"} {
		check(t, do(t, srv, "GET", "/v3/order_transaction/"+unknownID+path, ""), 404, `{"detail":"This order transaction doesn't exist"}`)
		if got := do(t, srv, "GET", "/v3/order_transaction/x"+path, ""); got.status != 422 {
			t.Errorf("%d", got.status)
		}
	}
}
