package conformance

import (
	"testing"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/reference"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// Order.Cancelable says of every status what the embedded service does.
func TestCancelable(t *testing.T) {
	srv, client := serve(t)
	tests := map[labhealth.LabTestCollectionMethod]uuid.UUID{
		"testkit": srv.LabTests.Testkit, "walk_in_test": srv.LabTests.WalkIn, "at_home_phlebotomy": srv.LabTests.AtHome, "on_site_collection": srv.LabTests.OnSite,
	}
	cancelable := 0
	check := func(id uuid.UUID) {
		t.Helper()
		order := must[*labhealth.Order](t)(client.Orders.Get(t.Context(), id))
		_, err := client.Orders.Cancel(t.Context(), id)
		if order.Cancelable() != (err == nil) {
			t.Errorf("%s: %v, but %v", order.CurrentStatus(), order.Cancelable(), err)
		}
		if err == nil {
			cancelable++
		}
	}
	for _, status := range reference.Enumerations()["OrderStatus"] {
		id := orderFor(t, srv, tests[labhealth.OrderStatus(status).Method()])
		noErr(t, srv.SetStatus(id, status))
		check(id)
	}
	equal(t, 20, cancelable)
	checkShipped(t, srv, check)
	if new(labhealth.Order).Cancelable() {
		t.Error("an order without a status is cancelable")
	}
}

// checkShipped checks a test kit that was registered after it was shipped.
func checkShipped(t *testing.T, srv *labhealthtest.Server, check func(uuid.UUID)) {
	t.Helper()
	id := orderFor(t, srv, srv.LabTests.Testkit)
	for _, status := range []string{"received.testkit.awaiting_registration", "collecting_sample.testkit.transit_customer", "received.testkit.registered", "received.testkit.requisition_created"} {
		noErr(t, srv.SetStatus(id, status))
	}
	check(id)
}
