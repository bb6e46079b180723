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

func TestSimulateOrder(t *testing.T) {
	srv := newServer(t)
	ada := srv.AddUser("ada")
	for _, test := range []struct{ query, want string }{
		{"", "received.on_site_collection.ordered received.on_site_collection.requisition_created sample_with_lab.on_site_collection.draw_completed completed.on_site_collection.completed"},
		{"?final_status=sample_with_lab.on_site_collection.draw_completed&delay=5", "received.on_site_collection.ordered received.on_site_collection.requisition_created sample_with_lab.on_site_collection.draw_completed"},
		{"?final_status=failed.on_site_collection.sample_error", "received.on_site_collection.ordered failed.on_site_collection.sample_error"},
	} {
		id, err := srv.AddOrder(ada, srv.LabTests.OnSite)
		noError(t, err)
		check(t, do(t, srv, "POST", "/v3/order/"+id.String()+"/test"+test.query, ""), 200, `"Success"`)
		if got := strings.Join(getOrder(t, srv, id).statuses(), " "); got != test.want {
			t.Errorf("%s, want %s", got, test.want)
		}
	}
	check(t, do(t, srv, "POST", "/v3/order/"+unknownID+"/test", ""), 404, `{"detail":"This order doesn't exist"}`)
	if got := do(t, srv, "POST", "/v3/order/x/test?delay=soon", ""); got.status != 422 {
		t.Errorf("status %d", got.status)
	}
}
