package labhealthtest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// A connection has a device, breaks, is repaired and ends.
func TestConnections(t *testing.T) {
	rec := newReceiver(t)
	srv := newServer(t)
	ada := srv.AddUser("ada")
	path := "/v2/user/" + ada.String()
	connected := func() response { return do(t, srv, "GET", "/v2/user/providers/"+ada.String(), "") }
	check(t, connected(), 200, `{"providers":[]}`)
	check(t, do(t, srv, "GET", path+"/device", ""), 200, `[]`)
	noError(t, srv.Connect(ada, "omron_ble"))
	noError(t, srv.DeliverTo(rec.URL))

	provider := func(status, details, availability string) string {
		return strings.NewReplacer("STATUS", status, "DETAILS", details, "AVAILABILITY", availability).Replace(`{"providers":[{
			"name":"Omron Ble","slug":"omron_ble","logo":"https://example.com/logos/omron_ble.png",
			"created_on":"2025-03-04T12:00:00+00:00","status":"STATUS","external_user_id":"external-89dc0e96536b","error_details":DETAILS,
			"resource_availability":{"blood_pressure":{"status":"AVAILABILITY","scope_requirements":null}}}]}`)
	}
	check(t, connected(), 200, provider("connected", "null", "available"))
	noError(t, srv.SetConnectionError(ada, "omron_ble", "token_refresh_failed"))
	check(t, connected(), 200, provider("error", `{"error_type":"token_refresh_failed",
		"error_message":"The connection to Omron Ble does not work.","errored_at":"2025-03-04T12:00:00+00:00"}`, "unavailable"))
	noError(t, srv.Connect(ada, "omron_ble"))
	check(t, connected(), 200, provider("connected", "null", "available"))

	added, err := srv.AddDevice(ada, "omron_ble", "Complete")
	noError(t, err)
	devices := decode[[]struct {
		ID uuid.UUID
	}](t, do(t, srv, "GET", path+"/device", ""))
	if len(devices) != 2 || devices[0].ID == added || devices[1].ID != added {
		t.Fatalf("devices %v, added %s", devices, added)
	}
	device := fmt.Sprintf(`{"id":%q,"user_id":%q,"provider":"omron_ble","source_type":"cuff","app_id":null,
		"device_manufacturer":"OMRON","device_model":"Complete","device_version":null,"device_id":"serial-%.8s"}`, added, ada, added)
	check(t, do(t, srv, "GET", path+"/device/"+added.String(), ""), 200, device)
	check(t, do(t, srv, "GET", path+"/device/"+unknownID, ""), 404, `{"detail":"Device not found"}`)

	check(t, do(t, srv, "DELETE", path+"/oura", ""), 404, `{"detail":"Provider is not connected"}`)
	check(t, do(t, srv, "DELETE", path+"/omron_ble", ""), 200, `{"success":true}`)
	check(t, connected(), 200, `{"providers":[]}`)
	check(t, do(t, srv, "GET", path+"/device/"+added.String(), ""), 404, `{"detail":"Device not found"}`)
	check(t, do(t, srv, "GET", "/v2/introspect/historical_pull", ""), 200, `{"data":[],"next":null,"next_cursor":null}`)
	if got := do(t, srv, "DELETE", path+"/sundial", ""); got.status != 422 || !strings.Contains(got.body, `"enum"`) {
		t.Errorf("%d %s", got.status, got.body)
	}

	noError(t, srv.Flush(t.Context()))
	var events []string
	for _, e := range rec.take() {
		events = append(events, decode[struct {
			Type string `json:"event_type"`
		}](t, response{status: 200, body: e.body}).Type)
	}
	if got := strings.Join(events, ", "); got != "provider.connection.error, provider.connection.created, provider.device.created" {
		t.Errorf("events %s", got)
	}
	for _, err := range []error{
		srv.SetConnectionError(ada, "oura", "unknown"), srv.SetConnectionError(uuid.New(), "oura", "unknown"),
	} {
		if err == nil {
			t.Error("SetConnectionError succeeds for an unknown user or source")
		}
	}
	for _, user := range []uuid.UUID{ada, uuid.New()} {
		if _, err := srv.AddDevice(user, "oura", "x"); err == nil {
			t.Error("AddDevice succeeds for an unknown user or source")
		}
	}
}

func TestProviders(t *testing.T) {
	srv := newServer(t)
	check(t, do(t, srv, "GET", "/v2/providers?source_type=ble", ""), 200, `[{"name":"Omron Ble","slug":"omron_ble",
		"logo":"https://example.com/logos/omron_ble.png","description":"Data of Omron Ble.","auth_type":"","supported_resources":["blood_pressure"]}]`)
	check(t, do(t, srv, "GET", "/v2/providers?source_type=lab", ""), 200, `[]`)
	if all := decode[[]any](t, do(t, srv, "GET", "/v2/providers", "")); len(all) != 10 {
		t.Errorf("%d providers", len(all))
	}
}
