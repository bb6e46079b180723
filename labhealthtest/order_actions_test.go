package labhealthtest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

func TestCancelOrder(t *testing.T) {
	srv := newServer(t)
	id, err := srv.AddOrder(srv.AddUser("ada"), srv.LabTests.Testkit)
	noError(t, err)
	path := "/v3/order/" + id.String() + "/cancel"
	got := decode[placed](t, do(t, srv, "POST", path, ""))
	if got.Status != "success" || got.Message != "order cancelled" || got.Order.LastEvent.Status != "cancelled.testkit.cancelled" ||
		got.Order.Transaction.Status != "cancelled" {
		t.Errorf("%+v", got)
	}
	const rejection = `{"error":"Bad Request","message":"Order can not be cancelled in its current status","status_code":400}`
	check(t, do(t, srv, "POST", path, ""), 400, rejection)
	check(t, do(t, srv, "POST", "/v3/order/"+completeOrder(t, srv, srv.LabTests.OnSite).String()+"/cancel", ""), 400, rejection)
	check(t, do(t, srv, "POST", "/v3/order/"+unknownID+"/cancel", ""), 404, `{"detail":"This order doesn't exist"}`)
	if got := do(t, srv, "POST", "/v3/order/x/cancel", ""); got.status != 422 {
		t.Errorf("status %d", got.status)
	}
}

// Orders can be canceled until the sample is on its way, and a canceled one ends there.
func TestCancelOrderByStatus(t *testing.T) {
	srv := newServer(t)
	ada := srv.AddUser("ada")
	for _, test := range []struct {
		labTest    uuid.UUID
		status     string
		cancelable bool
	}{
		{srv.LabTests.Testkit, "received.testkit.ordered", true},
		{srv.LabTests.Testkit, "received.testkit.requisition_bypassed", true},
		{srv.LabTests.Testkit, "collecting_sample.testkit.transit_customer", false},
		{srv.LabTests.Testkit, "cancelled.testkit.do_not_process", false},
		{srv.LabTests.WalkIn, "received.walk_in_test.requisition_created", true},
		{srv.LabTests.Testkit, "received.testkit.awaiting_registration", true},
		{srv.LabTests.Testkit, "collecting_sample.testkit.with_customer", false},
		{srv.LabTests.Testkit, "failed.testkit.lost", false},
		{srv.LabTests.WalkIn, "collecting_sample.walk_in_test.appointment_pending", true},
		{srv.LabTests.WalkIn, "collecting_sample.walk_in_test.appointment_scheduled", true},
		{srv.LabTests.WalkIn, "collecting_sample.walk_in_test.redraw_available", false},
		{srv.LabTests.WalkIn, "completed.walk_in_test.corrected", false},
		{srv.LabTests.WalkIn, "collecting_sample.walk_in_test.appointment_cancelled", true},
		{srv.LabTests.WalkIn, "sample_with_lab.walk_in_test.partial_results", false},
		{srv.LabTests.AtHome, "collecting_sample.at_home_phlebotomy.appointment_pending", true},
		{srv.LabTests.AtHome, "collecting_sample.at_home_phlebotomy.appointment_scheduled", true},
		{srv.LabTests.AtHome, "collecting_sample.at_home_phlebotomy.appointment_cancelled", true},
		{srv.LabTests.AtHome, "collecting_sample.at_home_phlebotomy.draw_completed", true},
		{srv.LabTests.AtHome, "sample_with_lab.at_home_phlebotomy.partial_results", false},
		{srv.LabTests.OnSite, "received.on_site_collection.ordered", true},
		{srv.LabTests.OnSite, "sample_with_lab.on_site_collection.draw_completed", false},
		{srv.LabTests.OnSite, "failed.on_site_collection.sample_error", false},
	} {
		id, err := srv.AddOrder(ada, test.labTest)
		noError(t, err)
		noError(t, srv.SetStatus(id, test.status))
		path := "/v3/order/" + id.String()
		got := do(t, srv, "POST", path+"/cancel", "")
		if (got.status == 200) != test.cancelable {
			t.Errorf("%s: %d %s", test.status, got.status, got.body)
		}
		if got.status != 200 {
			continue
		}
		for _, request := range []struct{ method, path, body string }{
			{"POST", "/cancel", ""}, {"POST", "/test", ""}, {"PATCH", "/draw_completed", ""}, {"PATCH", "", `{"activate_by":null}`},
			{"GET", "/result", ""}, {"GET", "/result/pdf", ""}, {"GET", "/labels/pdf?collection_date=2025-03-04T12:00:00Z", ""},
		} {
			if got := do(t, srv, request.method, path+request.path, request.body); got.status != 400 && got.status != 404 {
				t.Errorf("%s of a canceled order: %d %s", request.path, got.status, got.body)
			}
		}
		if _, err := srv.Advance(id); err == nil {
			t.Error("a canceled order advances")
		}
	}
}

// The cancellation of an order cancels an appointment at home, but not one at a site, which the
// patient cancels without an effect on the order.
func TestCancelOrderWithAppointment(t *testing.T) {
	srv := newServer(t)
	for _, test := range []struct {
		kind, method, key, reason, appointment string
		labTest                                uuid.UUID
	}{
		{"phlebotomy", "at_home_phlebotomy", *homeSlots(t, srv)[0].BookingKey, homeReason, "cancelled", srv.LabTests.AtHome},
		{"psc", "walk_in_test", *siteSlots(t, srv)[0].BookingKey, siteReason, "confirmed", srv.LabTests.WalkIn},
	} {
		id := addOrder(t, srv, test.labTest)
		path := "/v3/order/" + id
		decode[appointment](t, book(t, srv, id, test.kind, test.key))
		decode[placed](t, do(t, srv, "POST", path+"/cancel", ""))
		if got := decode[appointment](t, do(t, srv, "GET", path+"/"+test.kind+"/appointment", "")).Status; got != test.appointment {
			t.Errorf("%s: the appointment is %s, want %s", test.method, got, test.appointment)
		}
		change := func(name, body string) int {
			return do(t, srv, "PATCH", path+"/"+test.kind+"/appointment/"+name, body).status
		}
		if got := change("reschedule", `{"booking_key":"`+test.key+`"}`); got != 400 {
			t.Errorf("%s: rescheduled with %d", test.method, got)
		}
		want := map[string]int{"cancelled": 400, "confirmed": 200}[test.appointment]
		if got := change("cancel", `{"cancellation_reason_id":"`+test.reason+`"}`); got != want {
			t.Errorf("%s: canceled with %d, want %d", test.method, got, want)
		}
		if got := getOrder(t, srv, uuid.MustParse(id)).LastEvent.Status; got != "cancelled."+test.method+".cancelled" {
			t.Errorf("%s: %s", test.method, got)
		}
		if got := decode[appointment](t, do(t, srv, "GET", path+"/"+test.kind+"/appointment", "")).Status; got != "cancelled" {
			t.Errorf("%s: the appointment is %s at last", test.method, got)
		}
	}
}

func TestMarkDrawCompleted(t *testing.T) {
	srv := newServer(t)
	ada := srv.AddUser("ada")
	id, err := srv.AddOrder(ada, srv.LabTests.OnSite)
	noError(t, err)
	path := "/v3/order/" + id.String() + "/draw_completed"
	got := decode[placed](t, do(t, srv, "PATCH", path, ""))
	if got.Status != "success" || got.Order.LastEvent.Status != "sample_with_lab.on_site_collection.draw_completed" {
		t.Errorf("%+v", got)
	}
	check(t, do(t, srv, "PATCH", path, ""), 400, `{"detail":"Draw can not be completed in the current status of the order"}`)
	walkIn, err := srv.AddOrder(ada, srv.LabTests.WalkIn)
	noError(t, err)
	check(t, do(t, srv, "PATCH", "/v3/order/"+walkIn.String()+"/draw_completed", ""), 400, `{"detail":"Order is not an on-site collection"}`)
	check(t, do(t, srv, "PATCH", "/v3/order/"+unknownID+"/draw_completed", ""), 404, `{"detail":"This order doesn't exist"}`)
}

func TestCommunicationSettings(t *testing.T) {
	srv := newServer(t)
	ids := srv.AddOrders(2)
	path := "/v3/order/" + ids[0].String() + "/communication_settings"
	on, off := fmt.Sprintf(`{"order_id":%q,"sms_enabled":true}`, ids[0]), fmt.Sprintf(`{"order_id":%q,"sms_enabled":false}`, ids[0])
	check(t, do(t, srv, "GET", path, ""), 200, on)
	check(t, do(t, srv, "PATCH", path, `{"sms_enabled":false}`), 200, off)
	check(t, do(t, srv, "GET", path, ""), 200, off)
	check(t, do(t, srv, "GET", strings.Replace(path, ids[0].String(), ids[1].String(), 1), ""), 200, strings.Replace(on, ids[0].String(), ids[1].String(), 1))
	check(t, do(t, srv, "PATCH", path, `{"sms_enabled":true}`), 200, on)
	for _, body := range []string{`{}`, `{"sms_enabled":null}`, `{"sms_enabled":"no"}`} {
		if got := do(t, srv, "PATCH", path, body); got.status != 422 {
			t.Errorf("%s: status %d", body, got.status)
		}
	}
	check(t, do(t, srv, "GET", "/v3/order/"+unknownID+"/communication_settings", ""), 404, `{"detail":"This order doesn't exist"}`)
}

func TestResendEvents(t *testing.T) {
	rec := newReceiver(t)
	now := noon
	srv := newServer(t, labhealthtest.WithClock(func() time.Time { return now }))
	ada := srv.AddUser("ada")
	var ids []uuid.UUID
	for range 3 {
		id, err := srv.AddOrder(ada, srv.LabTests.OnSite)
		noError(t, err)
		ids = append(ids, id)
		now = now.Add(24 * time.Hour)
	}
	_, err := srv.Advance(ids[0]) // on the fourth day
	noError(t, err)
	noError(t, srv.DeliverTo(rec.URL))
	for _, test := range []struct{ body, want string }{
		{fmt.Sprintf(`{"order_ids":[%q]}`, ids[0]), "updated 0"},
		{fmt.Sprintf(`{"order_ids":[%q,%q]}`, ids[2], ids[1]), "created 1; created 2"},
		{`{"order_ids":["0b7d3c52-6f0a-4f7e-9d0c-2f1d8a5e6b31"]}`, ""},
		{`{"start_at":"2025-03-05T12:00:00Z","end_at":"2025-03-06T11:59:59Z"}`, "created 1"},
		{`{"start_at":"2025-03-05T12:00:00Z"}`, "updated 0; created 1; created 2"},
		{fmt.Sprintf(`{"start_at":"2025-03-07T00:00:00Z","order_ids":[%q,%q]}`, ids[1], ids[0]), "updated 0; created 1"},
	} {
		before := len(srv.Deliveries())
		response := decode[struct {
			OrderIDs []uuid.UUID `json:"order_ids"`
		}](t, do(t, srv, "POST", "/v3/order/resend_events", test.body))
		noError(t, srv.Flush(t.Context()))
		var got []string
		for i, d := range srv.Deliveries()[before:] {
			var event struct {
				Type string `json:"event_type"`
				Data struct{ ID uuid.UUID }
			}
			noError(t, json.Unmarshal(d.Body, &event))
			for n, id := range ids {
				if event.Data.ID == id && response.OrderIDs[i] == id {
					got = append(got, fmt.Sprint(strings.TrimPrefix(event.Type, "labtest.order."), " ", n))
				}
			}
		}
		if s := strings.Join(got, "; "); s != test.want || len(response.OrderIDs) != len(got) {
			t.Errorf("%s: sent %s, want %s; response %v", test.body, s, test.want, response)
		}
	}
	check(t, do(t, srv, "POST", "/v3/order/resend_events", `{}`), 400, `{"detail":"order_ids or a time range is required"}`)
	check(t, do(t, srv, "POST", "/v3/order/resend_events", `{"start_at":"2025-01-01"}`), 400, `{"detail":"The time range must not exceed 60 days"}`)
	if got := do(t, srv, "POST", "/v3/order/resend_events", `{"order_ids":["x"],"start_at":"soon"}`); got.status != 422 {
		t.Errorf("status %d", got.status)
	}
}
