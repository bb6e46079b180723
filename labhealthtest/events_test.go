package labhealthtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOrderEvents(t *testing.T) {
	srv := newServer(t)
	user := srv.AddUser("ada")
	quiet := srv.AddOrders(1)[0]
	rec := newReceiver(t)
	noError(t, srv.DeliverTo(rec.URL+"/events"))

	imported := decode[placed](t, do(t, srv, "POST", "/v3/order/import", bodyFor(t, importBody, user))).Order.ID
	created := decode[placed](t, do(t, srv, "POST", "/v3/order",
		replaceOnce(t, bodyFor(t, createBody, user), `"order_set"`, `"activate_by": "2025-03-05", "order_set"`))).Order.ID
	// Changing the date sends no event, clearing it does.
	do(t, srv, "PATCH", "/v3/order/"+created.String(), `{"activate_by":"2025-03-06"}`)
	do(t, srv, "PATCH", "/v3/order/"+created.String(), `{"activate_by":null}`)
	noError(t, srv.Cancel(imported))
	noError(t, srv.SetStatus(quiet, "received.testkit.awaiting_registration"))
	added, err := srv.AddOrder(user, srv.LabTests.OnSite)
	noError(t, err)
	noError(t, srv.SetInterpretation(added, "critical"))
	srv.AddOrders(3)
	noError(t, srv.Flush(t.Context()))

	received := rec.take()
	want := []string{
		"labtest.order.created received.testkit.ordered",
		"labtest.order.updated received.testkit.requisition_bypassed",
		"labtest.order.created received.walk_in_test.ordered",
		"labtest.order.updated received.walk_in_test.requisition_created",
		"labtest.order.updated cancelled.testkit.cancelled",
		"labtest.order.updated received.testkit.awaiting_registration",
		"labtest.order.created received.on_site_collection.ordered",
	}
	if diff := cmp.Diff(want, eventTypes(t, received)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if ct := received[0].header.Get("Content-Type"); ct != "application/json" {
		t.Errorf("content type %s", ct)
	}

	// The latest event of an order contains the order as it is now.
	got := do(t, srv, "GET", "/v3/order/"+imported.String(), "")
	checkEvent(t, []byte(received[4].body), fmt.Sprintf(
		`{"event_type":"labtest.order.updated","data":%s,"team_id":%q,"user_id":%q,"client_user_id":"ada"}`,
		got.body, srv.TeamID, user))

	deliveries := srv.Deliveries()
	if len(deliveries) != len(want) {
		t.Fatalf("%d deliveries", len(deliveries))
	}
	for i, d := range deliveries {
		if d.URL != rec.URL+"/events" || d.StatusCode != 204 || d.Err != nil || string(d.Body) != received[i].body {
			t.Errorf("delivery %d: %s %d %v", i, d.URL, d.StatusCode, d.Err)
		}
	}
}

func TestConnectionEvent(t *testing.T) {
	srv := newServer(t)
	user := srv.AddUser("ada")
	rec := newReceiver(t)
	noError(t, srv.DeliverTo(rec.URL))
	noError(t, srv.Connect(user, "oura"))
	noError(t, srv.Flush(t.Context()))
	const src = `{"name":"Oura","slug":"oura","logo":"https://example.com/logos/oura.png"}`
	checkEvent(t, []byte(rec.take()[0].body), fmt.Sprintf(`{
		"event_type":"provider.connection.created","data":{"user_id":%[1]q,"source":%[3]s,"provider":%[3]s,
			"external_user_id":"external-4ccfa2ba0367","resource_availability":{
				"profile":%[4]s,"activity":%[4]s,"sleep":%[4]s,"workouts":%[4]s,"heartrate":%[4]s,"hrv":%[4]s}},
		"team_id":%[2]q,"user_id":%[1]q,"client_user_id":"ada"}`, user, srv.TeamID, src,
		`{"status":"available","scope_requirements":null}`))
}

func TestSend(t *testing.T) {
	srv := newServer(t)
	if err := srv.Send([]byte(`{}`)); err == nil {
		t.Error("Send succeeds without a receiver")
	}
	for _, url := range []string{"", "127.0.0.1:80", "/events", "ftp://example.com", "http://", "http://\x00"} {
		if err := srv.DeliverTo(url); err == nil {
			t.Errorf("DeliverTo accepts %q", url)
		}
	}
	noError(t, srv.Flush(t.Context()))

	one, two := newReceiver(t), newReceiver(t)
	one.statusCode, two.statusCode = 302, 500
	noError(t, srv.DeliverTo(one.URL))
	noError(t, srv.DeliverTo(two.URL))
	events := []string{`{"event_type":"daily.data.glucose.created"}`, "no JSON", ""}
	for _, e := range events {
		noError(t, srv.Send([]byte(e)))
	}
	noError(t, srv.Flush(t.Context()))
	gotOne, gotTwo := bodies(one.take()), bodies(two.take())
	if !cmp.Equal(gotOne, events) || !cmp.Equal(gotTwo, events) {
		t.Errorf("received %q and %q", gotOne, gotTwo)
	}
	statuses := map[int]int{}
	for _, d := range srv.Deliveries() {
		statuses[d.StatusCode]++
	}
	if !cmp.Equal(statuses, map[int]int{302: 3, 500: 3}) {
		t.Errorf("statuses %v", statuses)
	}
}

func TestDeliveryFails(t *testing.T) {
	srv := newServer(t)
	rec := newReceiver(t)
	rec.Close()
	noError(t, srv.DeliverTo(rec.URL))
	noError(t, srv.Send([]byte("{}")))
	noError(t, srv.Flush(t.Context()))
	if d := srv.Deliveries(); len(d) != 1 || d[0].StatusCode != 0 || d[0].Err == nil {
		t.Errorf("deliveries %+v", d)
	}
}

func TestFlushCanceled(t *testing.T) {
	entered := make(chan struct{})
	release := make(chan struct{})
	rec := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		entered <- struct{}{}
		<-release
	}))
	defer rec.Close()
	defer close(release)

	srv := newServer(t)
	noError(t, srv.DeliverTo(rec.URL))
	noError(t, srv.Send([]byte("{}")))
	noError(t, srv.Send([]byte("{}")))
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := srv.Flush(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Flush: %v", err)
	}
	// Close does not wait for a receiver that does not respond.
	flushed := make(chan error)
	go func() { flushed <- srv.Flush(context.Background()) }()
	srv.Close()
	if err := <-flushed; err == nil {
		t.Error("Flush succeeded although an event was dropped")
	}
}
