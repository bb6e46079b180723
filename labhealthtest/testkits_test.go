package labhealthtest_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

const createTestkitBody = `{
	"user_id": "USER",
	"lab_test_id": "5b41f610-ebc5-4803-8f0c-a61c3bdc7f01",
	"shipping_details": {
		"receiver_name": "Ada Example", "first_line": "1 Main Street", "city": "San Francisco", "state": "CA", "zip": "94105-1234",
		"country": "US", "phone_number": "+14155550123"
	},
	"passthrough": "ours"
}`

const registerTestkitBody = `{
	"sample_id": "SAMPLE",
	"patient_details": {
		"first_name": "Ada", "last_name": "Example", "dob": "1990-01-31", "gender": "female",
		"phone_number": "+14155550123", "email": "ada@example.com"
	},
	"patient_address": {"first_line": "1 Main Street", "city": "San Francisco", "state": "CA", "zip": "94105", "country": "US"},
	"physician": {"first_name": "Jane", "last_name": "Doctor", "npi": "1234567890"},
	"health_insurance": {"payor_code": "P1", "responsible_relationship": "Self"},
	"consents": [{"consentType": "terms-of-use"}]
}`

// testkit has the fields of an order that a registration changes.
type testkit struct {
	order
	SampleID          string            `json:"sample_id"`
	PatientDetails    map[string]any    `json:"patient_details"`
	PatientAddress    map[string]any    `json:"patient_address"`
	Physician         map[string]any    `json:"physician"`
	ShippingDetails   map[string]string `json:"shipping_details"`
	HealthInsuranceID *uuid.UUID        `json:"health_insurance_id"`
	Passthrough       string
}

func createTestkit(t testing.TB, srv *labhealthtest.Server, userID uuid.UUID) testkit {
	t.Helper()
	return decode[struct{ Order testkit }](t, do(t, srv, "POST", "/v3/order/testkit", bodyFor(t, createTestkitBody, userID))).Order
}

func registration(t testing.TB, sampleID string) string {
	t.Helper()
	return replaceOnce(t, registerTestkitBody, "SAMPLE", sampleID)
}

func TestTestkit(t *testing.T) {
	rec := newReceiver(t)
	srv := newServer(t)
	noError(t, srv.DeliverTo(rec.URL))
	ada := srv.AddUser("ada")
	kit := createTestkit(t, srv, ada)
	if kit.PatientDetails != nil || kit.PatientAddress != nil || kit.ShippingDetails["receiver_name"] != "Ada Example" ||
		kit.ShippingDetails["zip"] != "94105-1234" || kit.SampleID == "" || kit.Passthrough != "ours" || kit.UserID != ada ||
		kit.LastEvent.Status != "received.testkit.awaiting_registration" {
		t.Errorf("%+v", kit)
	}
	// Lists and searches work with orders that have no patient.
	for _, query := range []string{"", "?order_key=patient_name", "?patient_name=ada", "?search_input=" + kit.SampleID} {
		if got := do(t, srv, "GET", "/v3/orders"+query, ""); got.status != 200 {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
	// The kit reaches the customer. It stays there until it is registered.
	path := "/v3/order/" + kit.ID.String()
	check(t, do(t, srv, "POST", path+"/test", ""), 200, `"Success"`)
	if got := getOrder(t, srv, kit.ID).LastEvent.Status; got != "collecting_sample.testkit.with_customer" {
		t.Error(got)
	}
	if _, err := srv.Advance(kit.ID); err == nil {
		t.Error("a testkit advances without a registration")
	}
	if _, err := srv.Redraw(kit.ID); err == nil {
		t.Error("a testkit without a patient is redrawn")
	}
	if got := do(t, srv, "POST", path+"/cancel", ""); got.status != 400 {
		t.Errorf("cancellation of a kit with the customer: %d", got.status)
	}

	got := decode[struct {
		Order           testkit
		Status, Message string
	}](t, do(t, srv, "POST", "/v3/order/testkit/register", registration(t, kit.SampleID)))
	o := got.Order
	if got.Status != "success" || o.ID != kit.ID || o.PatientDetails["first_name"] != "Ada" || o.PatientAddress["zip"] != "94105" ||
		o.Physician["npi"] != "1234567890" || o.ShippingDetails != nil || o.HealthInsuranceID == nil ||
		o.LastEvent.Status != "received.testkit.requisition_created" {
		t.Errorf("%+v", got)
	}
	check(t, do(t, srv, "POST", "/v3/order/testkit/register", registration(t, kit.SampleID)), 400, `{"detail":"Testkit is already registered"}`)
	if got := do(t, srv, "POST", path+"/cancel", ""); got.status != 400 {
		t.Errorf("cancellation of a registered kit: %d", got.status)
	}
	check(t, do(t, srv, "POST", path+"/test", ""), 200, `"Success"`)
	if got := do(t, srv, "GET", path+"/result/pdf", ""); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	want := "ordered awaiting_registration transit_customer out_for_delivery with_customer registered requisition_created transit_lab " +
		"delivered_to_lab completed"
	noError(t, srv.Flush(t.Context()))
	var low []string
	for _, e := range eventTypes(t, rec.take()) {
		low = append(low, e[strings.LastIndexByte(e, '.')+1:])
	}
	if got := strings.Join(low, " "); got != want {
		t.Errorf("events %s\nwant   %s", got, want)
	}
}

func TestInvalidTestkit(t *testing.T) {
	srv := newServer(t)
	ada, grace := srv.AddUser("ada"), srv.AddUser("grace")
	create := bodyFor(t, createTestkitBody, ada)
	for _, test := range []struct {
		old, new string
		status   int
		body     string
	}{
		{ada.String(), unknownID, 404, `{"detail":"User not found"}`},
		{"7f01", "7f99", 400, `{"detail":"Test does not exist"}`},
		{"7f01", "7f02", 400, `{"detail":"Test is not a testkit"}`},
		{"94105-1234", "941", 422, ""},
		{"+14155550123", "1", 422, ""},
		{`"receiver_name": "Ada Example", `, "", 422, ""},
	} {
		got := do(t, srv, "POST", "/v3/order/testkit", strings.Replace(create, test.old, test.new, 1))
		if got.status != test.status {
			t.Errorf("%s: %d %s", test.new, got.status, got.body)
		}
		if test.body != "" {
			check(t, got, test.status, test.body)
		}
	}
	if n := len(srv.Orders()); n != 0 {
		t.Errorf("%d orders", n)
	}

	kit, canceled := createTestkit(t, srv, ada), createTestkit(t, srv, ada)
	if kit.SampleID == canceled.SampleID {
		t.Error("two kits have the same sample ID")
	}
	if got := do(t, srv, "POST", "/v3/order/"+canceled.ID.String()+"/cancel", ""); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	register := registration(t, kit.SampleID)
	withUser := func(id string) string { return strings.Replace(register, "{", `{"user_id":"`+id+`",`, 1) }
	imported := bodyFor(t, importBody, ada)
	if got := do(t, srv, "POST", "/v3/order/import", imported); got.status != 200 {
		t.Fatal(got.body)
	}
	for _, test := range []struct {
		body   string
		status int
		detail string
	}{
		{registration(t, "KIT-0"), 404, "No testkit with this sample_id exists"},
		{registration(t, "SAMPLE-1"), 404, "No testkit with this sample_id exists"}, // an imported order
		{registration(t, canceled.SampleID), 400, "Testkit can not be registered in its current status"},
		{withUser(unknownID), 404, "User not found"},
		{withUser(grace.String()), 400, "Testkit belongs to another user"},
	} {
		check(t, do(t, srv, "POST", "/v3/order/testkit/register", test.body), test.status, `{"detail":"`+test.detail+`"}`)
	}
	for _, change := range [][2]string{{`"Self"`, `"Friend"`}, {`"zip": "94105"`, `"zip": "x"`}, {`"1990-01-31"`, `"2020-01-31"`}, {`"npi": "1234567890"`, `"npi": 1`}} {
		if got := do(t, srv, "POST", "/v3/order/testkit/register", replaceOnce(t, register, change[0], change[1])); got.status != 422 {
			t.Errorf("%s: %d %s", change[1], got.status, got.body)
		}
	}
	if got := do(t, srv, "POST", "/v3/order/testkit/register", withUser(ada.String())); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// A key repeats the response to the order of a kit, and is not that of another operation.
func TestTestkitIdempotency(t *testing.T) {
	var hours atomic.Int64
	srv := newServer(t, labhealthtest.WithClock(func() time.Time { return noon.Add(time.Duration(hours.Load()) * time.Hour) }))
	body := bodyFor(t, createTestkitBody, srv.AddUser("ada"))
	place := func(status, kits int, header ...string) string {
		t.Helper()
		got := do(t, srv, "POST", "/v3/order/testkit", body, header...)
		if got.status != status || len(srv.Orders()) != kits {
			t.Errorf("status %d and %d kits, want %d and %d", got.status, len(srv.Orders()), status, kits)
		}
		return got.body
	}
	first := place(200, 1, "X-Idempotency-Key", "a")
	if again := place(200, 1, "X-Idempotency-Key", "a"); again != first {
		t.Error("the second response differs")
	}
	place(200, 2, "X-Idempotency-Key", "b")
	place(200, 3)
	check(t, do(t, srv, "POST", "/v3/order", bodyFor(t, createBody, uuid.New()), "X-Idempotency-Key", "a"), 404, `{"detail":"User not found"}`)

	hours.Store(23)
	place(200, 3, "X-Idempotency-Key", "a")
	hours.Store(24)
	place(200, 4, "X-Idempotency-Key", "a")

	body = bodyFor(t, createTestkitBody, uuid.New())
	place(404, 4, "X-Idempotency-Key", "c", "X-Idempotency-Error", "no-cache")
	place(404, 4, "X-Idempotency-Key", "d")
	body = bodyFor(t, createTestkitBody, srv.AddUser("ada"))
	place(200, 5, "X-Idempotency-Key", "c")
	place(404, 5, "X-Idempotency-Key", "d")
}
