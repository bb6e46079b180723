package labhealthtest_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

func TestAdvance(t *testing.T) {
	srv := newServer(t)
	user := srv.AddUser("ada")
	for _, test := range []struct {
		name    string
		labTest uuid.UUID
		set     string // an event before the first step
		want    []string
	}{
		{"testkit", srv.LabTests.Testkit, "", []string{
			"received.testkit.requisition_created", "collecting_sample.testkit.transit_customer",
			"collecting_sample.testkit.out_for_delivery", "collecting_sample.testkit.with_customer",
			"collecting_sample.testkit.transit_lab", "sample_with_lab.testkit.delivered_to_lab", "completed.testkit.completed"}},
		{"registrable testkit", srv.LabTests.Testkit, "received.testkit.awaiting_registration", []string{
			"collecting_sample.testkit.transit_customer", "collecting_sample.testkit.out_for_delivery",
			"collecting_sample.testkit.with_customer", "received.testkit.registered", "received.testkit.requisition_created",
			"collecting_sample.testkit.transit_lab", "sample_with_lab.testkit.delivered_to_lab", "completed.testkit.completed"}},
		{"imported testkit", srv.LabTests.Testkit, "received.testkit.requisition_bypassed", []string{
			"collecting_sample.testkit.transit_customer", "collecting_sample.testkit.out_for_delivery",
			"collecting_sample.testkit.with_customer", "collecting_sample.testkit.transit_lab",
			"sample_with_lab.testkit.delivered_to_lab", "completed.testkit.completed"}},
		{"walk-in", srv.LabTests.WalkIn, "", []string{
			"received.walk_in_test.requisition_created", "collecting_sample.walk_in_test.appointment_pending",
			"collecting_sample.walk_in_test.appointment_scheduled", "completed.walk_in_test.completed"}},
		{"walk-in with partial results", srv.LabTests.WalkIn, "sample_with_lab.walk_in_test.partial_results", []string{
			"completed.walk_in_test.completed"}},
		{"at home", srv.LabTests.AtHome, "", []string{
			"received.at_home_phlebotomy.requisition_created", "collecting_sample.at_home_phlebotomy.appointment_pending",
			"collecting_sample.at_home_phlebotomy.appointment_scheduled", "collecting_sample.at_home_phlebotomy.draw_completed",
			"completed.at_home_phlebotomy.completed"}},
		{"on site", srv.LabTests.OnSite, "", []string{
			"received.on_site_collection.requisition_created", "sample_with_lab.on_site_collection.draw_completed",
			"completed.on_site_collection.completed"}},
		{"unknown status", srv.LabTests.OnSite, "paused.on_site_collection.on_hold", nil},
		{"status without parts", srv.LabTests.OnSite, "paused", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			id, err := srv.AddOrder(user, test.labTest)
			noError(t, err)
			before := 1
			if test.set != "" {
				noError(t, srv.SetStatus(id, test.set))
				before = 2
			}
			var got []string
			for {
				status, err := srv.Advance(id)
				if err != nil {
					break
				}
				got = append(got, status)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			o := getOrder(t, srv, id)
			if diff := cmp.Diff(test.want, o.statuses()[before:]); diff != "" && len(test.want) > 0 {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if want := map[bool]string{true: "completed", false: "active"}[len(test.want) > 0]; o.Transaction.Status != want {
				t.Errorf("transaction is %s", o.Transaction.Status)
			}
		})
	}
	if _, err := srv.Advance(uuid.Nil); err == nil {
		t.Error("Advance succeeds for an unknown order")
	}
}

// NextStatuses are the statuses to which Advance moves an order.
func TestNextStatuses(t *testing.T) {
	srv := newServer(t)
	tests := srv.LabTests
	var ids []uuid.UUID
	for _, test := range []uuid.UUID{tests.Testkit, tests.WalkIn, tests.AtHome, tests.OnSite} {
		id, err := srv.AddOrder(srv.AddUser("ada"), test)
		noError(t, err)
		ids = append(ids, id)
	}
	registered, err := srv.AddOrder(srv.AddUser("ada"), tests.Testkit)
	noError(t, err)
	noError(t, srv.SetStatus(registered, "received.testkit.awaiting_registration"))
	for _, id := range append(ids, registered) {
		want, err := srv.NextStatuses(id)
		noError(t, err)
		var got []string
		for status, err := srv.Advance(id); err == nil; status, err = srv.Advance(id) {
			got = append(got, status)
		}
		if len(got) < 3 || !slices.Equal(got, want) {
			t.Errorf("Advance: %q, NextStatuses: %q", got, want)
		}
		if rest, err := srv.NextStatuses(id); err != nil || rest != nil {
			t.Errorf("after the last status: %q, %v", rest, err)
		}
	}
	noError(t, srv.SetStatus(ids[0], "unknown.testkit.unknown"))
	if next, err := srv.NextStatuses(ids[0]); err != nil || next != nil {
		t.Errorf("after an unknown status: %q, %v", next, err)
	}
	if _, err := srv.NextStatuses(uuid.Nil); err == nil {
		t.Error("an order that does not exist has statuses")
	}
}

func TestPartialResults(t *testing.T) {
	srv := newServer(t)
	ids := srv.AddOrders(2)
	testkit, walkIn := ids[0], ids[1]
	if err := srv.PartialResults(testkit); err == nil {
		t.Error("PartialResults succeeds for a testkit")
	}
	noError(t, srv.PartialResults(walkIn))
	noError(t, srv.PartialResults(walkIn))
	want := []string{"received.walk_in_test.ordered", "sample_with_lab.walk_in_test.partial_results", "sample_with_lab.walk_in_test.partial_results"}
	if got := getOrder(t, srv, walkIn); !cmp.Equal(got.statuses(), want) || got.Status != "sample_with_lab" {
		t.Errorf("%v, %s", got.statuses(), got.Status)
	}
}

// Partial results send an event if the team wants that, which it does not by default.
func TestPartialEvents(t *testing.T) {
	srv := newServer(t)
	noError(t, srv.DeliverTo(receiverURL, labhealthtest.WithTransport(always(200))))
	walkIn := srv.AddOrders(2)[1]
	deliveries := func() int {
		noError(t, srv.Flush(t.Context()))
		return len(srv.Deliveries())
	}
	noError(t, srv.PartialResults(walkIn))
	if n, o := deliveries(), getOrder(t, srv, walkIn); n != 0 || o.LastEvent.Status != "sample_with_lab.walk_in_test.partial_results" {
		t.Errorf("%d deliveries, %+v", n, o.LastEvent)
	}
	srv.SetPartialEvents(true)
	noError(t, srv.PartialResults(walkIn))
	if n := deliveries(); n != 1 {
		t.Errorf("%d deliveries after SetPartialEvents", n)
	}
	if got := manageOrg(t, srv, "PATCH", "ORG/team/TEAM", `{"sandbox":{"partial_webhooks_enabled":false}}`); got.status != 200 {
		t.Error(got)
	}
	noError(t, srv.PartialResults(walkIn))
	if n := deliveries(); n != 1 {
		t.Errorf("%d deliveries after the setting was changed back", n)
	}
}

func TestDeleteOrder(t *testing.T) {
	srv := newServer(t)
	ids := srv.AddOrders(2)
	redraw, err := srv.Redraw(ids[1])
	noError(t, err)
	noError(t, srv.DeleteOrder(ids[1]))
	check(t, do(t, srv, "GET", "/v3/order/"+ids[1].String(), ""), 404, `{"detail":"This order doesn't exist"}`)
	check(t, do(t, srv, "GET", "/v3/order/"+ids[1].String()+"/result", ""), 404, `{"detail":"This order doesn't exist"}`)
	list := decode[struct {
		Orders []order
		Total  int
	}](t, do(t, srv, "GET", "/v3/orders", ""))
	if list.Total != 2 || len(list.Orders) != 2 || list.Orders[0].ID != redraw || list.Orders[1].ID != ids[0] {
		t.Errorf("%+v", list)
	}
	transaction := decode[struct {
		Status string
		Orders []struct{ ID uuid.UUID }
	}](t, do(t, srv, "GET", "/v3/order_transaction/"+getOrder(t, srv, redraw).Transaction.ID.String(), ""))
	if len(transaction.Orders) != 1 || transaction.Status != "active" {
		t.Errorf("%+v", transaction)
	}
	if err := srv.DeleteOrder(ids[1]); err == nil {
		t.Error("DeleteOrder succeeds twice")
	}
}

func TestFail(t *testing.T) {
	srv := newServer(t)
	ids := srv.AddOrders(3)
	testkit, atHome := ids[0], ids[2]
	noError(t, srv.Fail(atHome, "sample_hemolyzed"))
	got := getOrder(t, srv, atHome)
	if got.LastEvent.Status != "failed.at_home_phlebotomy.sample_error" || got.LastEvent.StatusDetail == nil ||
		*got.LastEvent.StatusDetail != "sample_hemolyzed" || got.Status != "failed" || got.Transaction.Status != "active" {
		t.Errorf("%+v", got)
	}
	noError(t, srv.Fail(testkit, ""))
	if got := getOrder(t, srv, testkit); got.LastEvent.StatusDetail != nil {
		t.Errorf("%+v", got)
	}
}

func TestCancel(t *testing.T) {
	srv := newServer(t)
	ids := srv.AddOrders(4)
	walkIn, onSite := ids[1], ids[3]
	noError(t, srv.Cancel(onSite))
	if got := getOrder(t, srv, onSite); got.LastEvent.Status != "cancelled.on_site_collection.cancelled" || got.Transaction.Status != "cancelled" {
		t.Errorf("%+v", got)
	}
	if err := srv.Cancel(onSite); err == nil {
		t.Error("Cancel succeeds for a canceled order")
	}
	noError(t, srv.SetStatus(walkIn, "completed.walk_in_test.corrected"))
	if err := srv.Cancel(walkIn); err == nil {
		t.Error("Cancel succeeds for a completed order")
	}
}

func TestUnknownObjects(t *testing.T) {
	srv := newServer(t)
	for name, err := range map[string]error{
		"SetStatus":         srv.SetStatus(uuid.Nil, "x"),
		"PartialResults":    srv.PartialResults(uuid.Nil),
		"Fail":              srv.Fail(uuid.Nil, ""),
		"Cancel":            srv.Cancel(uuid.Nil),
		"CorrectResult":     srv.CorrectResult(uuid.Nil, 901, "1"),
		"SetInterpretation": srv.SetInterpretation(uuid.Nil, "normal"),
	} {
		if err == nil {
			t.Errorf("%s succeeds for an unknown order", name)
		}
	}
	if _, err := srv.AddOrder(uuid.Nil, srv.LabTests.WalkIn); err == nil {
		t.Error("AddOrder succeeds for an unknown user")
	}
	if _, err := srv.AddOrder(srv.AddUser("ada"), srv.LabTests.Inactive); err == nil {
		t.Error("AddOrder succeeds for an inactive lab test")
	}
}

func TestDetailsOfStatus(t *testing.T) {
	srv := newServer(t)
	ids := srv.AddOrders(2)
	noError(t, srv.SetStatus(ids[0], "collecting_sample.testkit.transit_customer"))
	noError(t, srv.SetStatus(ids[0], "collecting_sample.testkit.transit_lab"))
	shipment, _ := getOrder(t, srv, ids[0]).Details.Data["shipment"].(map[string]any)
	if shipment["outbound_tracking_number"] != "1Z000000003" || shipment["inbound_tracking_url"] != "https://example.com/track/1Z000000004" ||
		shipment["notes"] != nil {
		t.Errorf("shipment %v", shipment)
	}
	noError(t, srv.SetStatus(ids[1], "collecting_sample.walk_in_test.appointment_scheduled"))
	if id, _ := getOrder(t, srv, ids[1]).Details.Data["appointment_id"].(string); len(id) != 36 {
		t.Errorf("appointment_id %q", id)
	}
}
