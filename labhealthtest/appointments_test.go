package labhealthtest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

const (
	homeAddress      = `{"first_line":"1 Main Street","city":"San Francisco","state":"CA","zip_code":"94105"}`
	homeAvailability = "/v3/order/phlebotomy/appointment/availability"
	siteAvailability = "/v3/order/psc/appointment/availability?lab=quest&zip_code=94105"

	homeReason = "c0d1f2a3-0b1c-4d2e-8f30-000000000001"
	siteReason = "c0d1f2a3-0b1c-4d2e-8f30-000000000012"
)

type availability struct {
	Slots []struct {
		Date     string
		Location *struct{ Code string }
		Slots    []timeSlot
	}
	Timezone *string
}

type timeSlot struct {
	BookingKey *string `json:"booking_key"`
	Start      time.Time
	Available  int `json:"num_appointments_available"`
}

type appointment struct {
	ID            uuid.UUID
	StartAt       *string `json:"start_at"`
	Status        string
	EventStatus   string `json:"event_status"`
	CanReschedule bool   `json:"can_reschedule"`
	Provider      string
	Events        []struct{ Status string }
}

// homeSlots returns the slots of the first day of appointments at home.
func homeSlots(t testing.TB, srv *labhealthtest.Server) []timeSlot {
	t.Helper()
	return decode[availability](t, do(t, srv, "POST", homeAvailability, homeAddress)).Slots[0].Slots
}

func siteSlots(t testing.TB, srv *labhealthtest.Server) []timeSlot {
	t.Helper()
	return decode[availability](t, do(t, srv, "POST", siteAvailability, "")).Slots[0].Slots
}

func addOrder(t testing.TB, srv *labhealthtest.Server, labTest uuid.UUID) string {
	t.Helper()
	id, err := srv.AddOrder(srv.AddUser("user-"+uuid.NewString()), labTest)
	noError(t, err)
	return id.String()
}

func book(t testing.TB, srv *labhealthtest.Server, orderID, kind, key string, header ...string) response {
	t.Helper()
	return do(t, srv, "POST", "/v3/order/"+orderID+"/"+kind+"/appointment/book", `{"booking_key":"`+key+`"}`, header...)
}

func TestAppointmentJSON(t *testing.T) {
	srv := newServer(t)
	id := addOrder(t, srv, srv.LabTests.AtHome)
	order := getOrder(t, srv, uuid.MustParse(id))
	got := do(t, srv, "POST", homeAvailability+"?start_date=2025-03-05", homeAddress)
	a := decode[availability](t, got)
	if a.Timezone == nil || *a.Timezone != "America/Los_Angeles" || len(a.Slots) != 7 || a.Slots[0].Date != "2025-03-05" || len(a.Slots[0].Slots) != 4 {
		t.Fatalf("%s", got.body)
	}
	slot := a.Slots[0].Slots[1]
	booked := do(t, srv, "POST", "/v3/order/"+id+"/phlebotomy/appointment/book",
		`{"booking_key":"`+*slot.BookingKey+`","appointment_notes":"Ring twice"}`)
	want := strings.NewReplacer(
		"APPOINTMENT", decode[appointment](t, booked).ID.String(), "SHORT", decode[appointment](t, booked).ID.String()[:8],
		"USER", order.UserID.String(), "ORDER", id, "TRANSACTION", order.Transaction.ID.String(),
	).Replace(`{
		"id": "APPOINTMENT", "user_id": "USER", "order_id": "ORDER", "order_transaction_id": "TRANSACTION",
		"address": {"first_line": "1 Main Street", "second_line": null, "city": "San Francisco", "state": "CA", "zip_code": "94105",
			"unit": null, "access_notes": null},
		"location": {"lng": -122.39, "lat": 37.79},
		"start_at": "2025-03-05T17:00:00", "end_at": "2025-03-05T18:00:00", "iana_timezone": "America/Los_Angeles",
		"type": "phlebotomy", "provider": "getlabs", "status": "confirmed", "provider_id": "APPT-SHORT", "external_id": null,
		"can_reschedule": true, "appointment_notes": "Ring twice", "event_status": "scheduled", "event_data": null,
		"events": [{"created_at": "2025-03-04T12:00:00+00:00", "status": "scheduled", "data": null}]
	}`)
	check(t, booked, 200, want)
	check(t, do(t, srv, "GET", "/v3/order/"+id+"/phlebotomy/appointment", ""), 200, want)
}

func TestAppointmentLifecycle(t *testing.T) {
	for _, test := range []struct {
		kind, method, reason string
		labTest              func(*labhealthtest.Server) uuid.UUID
		slots                func(testing.TB, *labhealthtest.Server) []timeSlot
	}{
		{"phlebotomy", "at_home_phlebotomy", homeReason, func(s *labhealthtest.Server) uuid.UUID { return s.LabTests.AtHome }, homeSlots},
		{"psc", "walk_in_test", siteReason, func(s *labhealthtest.Server) uuid.UUID { return s.LabTests.WalkIn }, siteSlots},
	} {
		t.Run(test.kind, func(t *testing.T) {
			srv, r := newServer(t), newReceiver(t)
			noError(t, srv.DeliverTo(r.URL))
			id := addOrder(t, srv, test.labTest(srv))
			path := "/v3/order/" + id + "/" + test.kind + "/appointment"
			cancel := func(reason string) response {
				return do(t, srv, "PATCH", path+"/cancel", `{"cancellation_reason_id":"`+reason+`"}`)
			}
			rejected := func(got response, status int, detail string) {
				t.Helper()
				check(t, got, status, `{"detail":"`+detail+`"}`)
			}
			rejected(do(t, srv, "GET", path, ""), 404, "This order has no appointment")
			rejected(cancel(test.reason), 404, "This order has no appointment")

			slots := test.slots(t, srv)
			booked := decode[appointment](t, book(t, srv, id, test.kind, *slots[0].BookingKey))
			if got := getOrder(t, srv, uuid.MustParse(id)).Details.Data["appointment_id"]; got != booked.ID.String() {
				t.Errorf("the order has the appointment %v", got)
			}
			rejected(book(t, srv, id, test.kind, *slots[1].BookingKey), 400, "This order already has an appointment")
			if again := test.slots(t, srv); again[0].BookingKey != nil || again[0].Available != 0 {
				t.Errorf("a taken slot is offered: %+v", again[0])
			}
			other := addOrder(t, srv, test.labTest(srv))
			rejected(book(t, srv, other, test.kind, *slots[0].BookingKey), 400, "The appointment slot is no longer available")
			rejected(do(t, srv, "PATCH", path+"/reschedule", `{"booking_key":"`+*slots[0].BookingKey+`"}`), 400, "The appointment slot is no longer available")

			moved := decode[appointment](t, do(t, srv, "PATCH", path+"/reschedule", `{"booking_key":"`+*slots[2].BookingKey+`"}`))
			if moved.ID != booked.ID || *moved.StartAt == *booked.StartAt {
				t.Errorf("rescheduled to %+v", moved)
			}
			// The first slot is free again.
			decode[appointment](t, book(t, srv, other, test.kind, *slots[0].BookingKey))

			rejected(cancel(unknownID), 400, "The cancellation reason does not exist")
			canceled := decode[appointment](t, cancel(test.reason))
			if canceled.Status != "cancelled" || canceled.CanReschedule {
				t.Errorf("canceled: %+v", canceled)
			}
			rejected(cancel(test.reason), 400, "This appointment can not be cancelled")
			rejected(do(t, srv, "PATCH", path+"/reschedule", `{"booking_key":"`+*slots[1].BookingKey+`"}`), 400, "This appointment can not be rescheduled")

			again := decode[appointment](t, book(t, srv, id, test.kind, *slots[2].BookingKey))
			if again.ID == booked.ID {
				t.Error("a canceled appointment was booked again")
			}
			noError(t, srv.Cancel(uuid.MustParse(id)))
			rejected(book(t, srv, id, test.kind, *slots[3].BookingKey), 400, "Appointments can not be booked in the current status of the order")

			noError(t, srv.Flush(t.Context()))
			prefix := "collecting_sample." + test.method
			want := []string{
				"labtest.order.created received." + test.method + ".ordered",
				"labtest.appointment.created confirmed", "labtest.order.updated " + prefix + ".appointment_scheduled",
				"labtest.appointment.updated confirmed", "labtest.order.updated " + prefix + ".appointment_scheduled",
				"labtest.appointment.updated cancelled", "labtest.order.updated " + prefix + ".appointment_cancelled",
				"labtest.appointment.created confirmed", "labtest.order.updated " + prefix + ".appointment_scheduled",
			}
			if test.kind == "phlebotomy" {
				want = append(want, "labtest.appointment.updated cancelled")
			}
			want = append(want, "labtest.order.updated cancelled."+test.method+".cancelled")
			if diff := cmp.Diff(want, appointmentEvents(t, r, id)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// appointmentEvents returns the events of an order and of its appointments, with their statuses.
func appointmentEvents(t testing.TB, r *receiver, orderID string) []string {
	t.Helper()
	var list []string
	for _, body := range bodies(r.take()) {
		var e struct {
			EventType string `json:"event_type"`
			Data      struct {
				ID, Status string
				OrderID    string `json:"order_id"`
				LastEvent  event  `json:"last_event"`
			}
		}
		noError(t, json.Unmarshal([]byte(body), &e))
		switch {
		case e.Data.OrderID == orderID:
			list = append(list, e.EventType+" "+e.Data.Status)
		case e.Data.ID == orderID:
			list = append(list, e.EventType+" "+e.Data.LastEvent.Status)
		}
	}
	return list
}

func TestBookingKeys(t *testing.T) {
	c := &clock{now: noon}
	srv := newServer(t, labhealthtest.WithClock(c.Now))
	atHome, walkIn := addOrder(t, srv, srv.LabTests.AtHome), addOrder(t, srv, srv.LabTests.WalkIn)
	home, site := homeSlots(t, srv), siteSlots(t, srv)
	for _, test := range []struct{ name, order, kind, key, want string }{
		{"unknown", atHome, "phlebotomy", "bk_unknown", "The booking key is invalid or has expired"},
		{"of a site", atHome, "phlebotomy", *site[0].BookingKey, "The booking key is invalid or has expired"},
		{"of a home", walkIn, "psc", *home[0].BookingKey, "The booking key is invalid or has expired"},
		{"walk-in order", walkIn, "phlebotomy", *home[0].BookingKey, "The collection method of this order is not at_home_phlebotomy"},
		{"order at home", atHome, "psc", *site[0].BookingKey, "The collection method of this order is not walk_in_test"},
		{"testkit", addOrder(t, srv, srv.LabTests.Testkit), "psc", *site[0].BookingKey, "The collection method of this order is not walk_in_test"},
		{"another lab", addOrder(t, srv, srv.LabTests.OtherLab), "psc", *site[0].BookingKey, "The site belongs to another lab"},
	} {
		t.Run(test.name, func(t *testing.T) {
			check(t, book(t, srv, test.order, test.kind, test.key), 400, `{"detail":"`+test.want+`"}`)
		})
	}
	check(t, book(t, srv, unknownID, "psc", *site[0].BookingKey), 404, `{"detail":"This order doesn't exist"}`)

	c.Set(noon.Add(15*time.Minute - time.Second))
	decode[appointment](t, book(t, srv, atHome, "phlebotomy", *home[0].BookingKey))
	c.Set(noon.Add(15 * time.Minute))
	check(t, book(t, srv, walkIn, "psc", *site[0].BookingKey), 400, `{"detail":"The booking key is invalid or has expired"}`)
}

func TestAppointmentBodies(t *testing.T) {
	srv := newServer(t)
	id := addOrder(t, srv, srv.LabTests.AtHome)
	path := "/v3/order/" + id + "/phlebotomy/appointment"
	for _, test := range []struct{ name, method, path, body, want string }{
		{"no key", "POST", path + "/book", `{}`, "missing body.booking_key"},
		{"timeouts", "POST", path + "/book",
			`{"booking_key":"k","sync_confirmation_timeout_millisecond":999,"async_confirmation_timeout_millisecond":172800001}`,
			"greater_than_equal body.sync_confirmation_timeout_millisecond less_than_equal body.async_confirmation_timeout_millisecond"},
		{"long notes", "POST", path + "/book", `{"booking_key":"k","appointment_notes":"` + strings.Repeat("a", 1001) + `"}`,
			"string_too_long body.appointment_notes"},
		{"no reason", "PATCH", path + "/cancel", `{}`, "missing body.cancellation_reason_id"},
		{"bad reason", "PATCH", path + "/cancel", `{"cancellationReasonId":"x"}`, "uuid_parsing body.cancellationReasonId"},
		{"bad ZIP code", "POST", homeAvailability, strings.Replace(homeAddress, "94105", "9410", 1), "string_pattern_mismatch body.zip_code"},
		{"request", "POST", path + "/request", `{"address":{},"provider":"x"}`,
			"missing body.address.first_line missing body.address.city missing body.address.state missing body.address.zip_code enum body.provider"},
		{"no lab", "POST", "/v3/order/psc/appointment/availability?start_date=x", "", "missing query.lab date_from_datetime_parsing query.start_date"},
		{"order", "GET", "/v3/order/x/psc/appointment", "", "uuid_parsing path.order_id"},
		{"once", "GET", "/v3/order/psc/info?zip_code=94105&lab_id=x&radius=y", "", "int_parsing query.lab_id enum query.radius"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := do(t, srv, test.method, test.path, test.body)
			var body struct {
				Detail []struct {
					Type string
					Loc  []any
				}
			}
			if got.status != 422 {
				t.Fatalf("status %d: %s", got.status, got.body)
			}
			noError(t, json.Unmarshal([]byte(got.body), &body))
			var list []string
			for _, d := range body.Detail {
				list = append(list, d.Type+" "+strings.ReplaceAll(strings.Trim(fmt.Sprint(d.Loc), "[]"), " ", "."))
			}
			if diff := cmp.Diff(test.want, strings.Join(list, " ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	check(t, do(t, srv, "POST", path+"/book", `{"booking_key":"k","async_confirmation_timeout_millisecond":172800001}`), 422,
		`{"detail":[{"type":"less_than_equal","loc":["body","async_confirmation_timeout_millisecond"],
			"msg":"Input should be less than or equal to 172800000","input":172800001,"ctx":{"le":172800000}}]}`)
	check(t, do(t, srv, "POST", "/v3/order/psc/appointment/availability?lab=quest", ""), 400, `{"detail":"zip_code or site_codes is required"}`)
}

func TestAppointmentRequest(t *testing.T) {
	srv := newServer(t)
	id := addOrder(t, srv, srv.LabTests.AtHome)
	path := "/v3/order/" + id + "/phlebotomy/appointment"
	request := func(zip, provider string) response {
		return do(t, srv, "POST", path+"/request",
			`{"address":`+strings.Replace(homeAddress, "94105", zip, 1)+`,"provider":"`+provider+`"}`)
	}
	check(t, request("10001", "phlebfinders"), 400, `{"detail":"The address is not served"}`)
	check(t, request("94105", "getlabs"), 400, `{"detail":"The provider does not accept appointment requests"}`)
	got := decode[appointment](t, request("94105", "phlebfinders"))
	if got.Status != "pending" || got.StartAt != nil || got.Provider != "phlebfinders" || got.CanReschedule {
		t.Errorf("requested: %+v", got)
	}
	check(t, request("94105", "phlebfinders"), 400, `{"detail":"This order already has an appointment"}`)
	if status := getOrder(t, srv, uuid.MustParse(id)).LastEvent.Status; status != "collecting_sample.at_home_phlebotomy.appointment_pending" {
		t.Error(status)
	}
	for range 3 { // scheduled, drawn, completed
		_, err := srv.Advance(uuid.MustParse(id))
		noError(t, err)
	}
	got = decode[appointment](t, do(t, srv, "GET", path, ""))
	if diff := cmp.Diff([]struct{ Status string }{{"pending"}, {"scheduled"}, {"completed"}}, got.Events); diff != "" || *got.StartAt != "2025-03-05T16:00:00" {
		t.Errorf("%s (-want +got):\n%s", *got.StartAt, diff)
	}
}

// An appointment that is confirmed later is pending until the order is advanced.
func TestAsyncConfirmation(t *testing.T) {
	srv := newServer(t)
	id := addOrder(t, srv, srv.LabTests.WalkIn)
	path := "/v3/order/" + id + "/psc/appointment"
	slot := siteSlots(t, srv)[0]
	got := decode[appointment](t, do(t, srv, "POST", path+"/book", `{"booking_key":"`+*slot.BookingKey+`","async_confirmation":true}`))
	if got.Status != "pending" || got.StartAt == nil || got.CanReschedule {
		t.Errorf("booked: %+v", got)
	}
	status, err := srv.Advance(uuid.MustParse(id))
	noError(t, err)
	confirmed := decode[appointment](t, do(t, srv, "GET", path, ""))
	if status != "collecting_sample.walk_in_test.appointment_scheduled" || confirmed.Status != "confirmed" || *confirmed.StartAt != *got.StartAt {
		t.Errorf("%s: %+v", status, confirmed)
	}
}

// An order that is advanced has an appointment that can be read.
func TestInventedAppointment(t *testing.T) {
	srv := newServer(t)
	id := addOrder(t, srv, srv.LabTests.WalkIn)
	for range 3 {
		_, err := srv.Advance(uuid.MustParse(id))
		noError(t, err)
	}
	got := decode[appointment](t, do(t, srv, "GET", "/v3/order/"+id+"/psc/appointment", ""))
	if want := getOrder(t, srv, uuid.MustParse(id)).Details.Data["appointment_id"]; got.ID.String() != want || got.Status != "confirmed" {
		t.Errorf("%+v, want %v", got, want)
	}
}

func TestBookingIdempotencyKey(t *testing.T) {
	c := &clock{now: noon}
	srv := newServer(t, labhealthtest.WithClock(c.Now))
	id := addOrder(t, srv, srv.LabTests.WalkIn)
	slots := siteSlots(t, srv)
	first := book(t, srv, id, "psc", *slots[0].BookingKey, "X-Idempotency-Key", "k1")
	decode[appointment](t, first)
	c.Set(noon.Add(13 * 24 * time.Hour)) // the outcome is repeated, although the booking key has expired
	if again := book(t, srv, id, "psc", *slots[0].BookingKey, "X-Idempotency-Key", "k1"); again.status != 200 || again.body != first.body {
		t.Errorf("status %d: %s", again.status, again.body)
	}
	c.Set(noon.Add(14 * 24 * time.Hour))
	check(t, book(t, srv, id, "psc", *slots[0].BookingKey, "X-Idempotency-Key", "k1"), 400, `{"detail":"This order already has an appointment"}`)

	// Failures are repeated too, unless the request rules that out.
	other := addOrder(t, srv, srv.LabTests.WalkIn)
	const invalid = `{"detail":"The booking key is invalid or has expired"}`
	check(t, book(t, srv, other, "psc", "bk_1", "X-Idempotency-Key", "k2", "X-Idempotency-Error", "no-cache"), 400, invalid)
	check(t, book(t, srv, other, "psc", "bk_1", "X-Idempotency-Key", "k3"), 400, invalid)
	fresh := *siteSlots(t, srv)[0].BookingKey
	check(t, book(t, srv, other, "psc", fresh, "X-Idempotency-Key", "k3"), 400, invalid)
	decode[appointment](t, book(t, srv, other, "psc", fresh, "X-Idempotency-Key", "k2"))

	// Appointments at home ignore the key.
	home := homeSlots(t, srv)
	a, b := addOrder(t, srv, srv.LabTests.AtHome), addOrder(t, srv, srv.LabTests.AtHome)
	decode[appointment](t, book(t, srv, a, "phlebotomy", *home[0].BookingKey, "X-Idempotency-Key", "k4"))
	check(t, book(t, srv, b, "phlebotomy", *home[0].BookingKey, "X-Idempotency-Key", "k4"), 400,
		`{"detail":"The appointment slot is no longer available"}`)
}

// One of many concurrent bookings of a slot succeeds, whether they have one booking key or several.
func TestConcurrentBookings(t *testing.T) {
	srv := labhealthtest.NewServer(t)
	var keys, orders []string
	for i := range 20 {
		if i < 10 {
			slots := decode[availability](t, do(t, srv, "POST", homeAvailability+"?start_date=2999-01-01", homeAddress)).Slots
			keys = append(keys, *slots[0].Slots[0].BookingKey)
		} else {
			keys = append(keys, keys[0])
		}
		orders = append(orders, addOrder(t, srv, srv.LabTests.AtHome))
	}
	var booked atomic.Int64
	var wg sync.WaitGroup
	for i := range orders {
		wg.Go(func() {
			if book(t, srv, orders[i], "phlebotomy", keys[i]).status == 200 {
				booked.Add(1)
			}
		})
	}
	wg.Wait()
	if n := booked.Load(); n != 1 {
		t.Errorf("%d bookings of one slot", n)
	}
}

// An appointment is over once a sample was drawn, also if the sample could not be used: it cannot
// be rescheduled, which would resume a failed order, and a redraw can be booked.
func TestAppointmentAfterDraw(t *testing.T) {
	for _, c := range []struct {
		kind, status string
		booking      int // status code of a further booking
	}{
		{"psc", "failed.walk_in_test.sample_error", 400},
		{"phlebotomy", "failed.at_home_phlebotomy.sample_error", 400},
		{"psc", "completed.walk_in_test.corrected", 400},
		{"psc", "collecting_sample.walk_in_test.redraw_available", 200},
	} {
		srv := newServer(t)
		labTest, slots := srv.LabTests.WalkIn, siteSlots(t, srv)
		if c.kind == "phlebotomy" {
			labTest, slots = srv.LabTests.AtHome, homeSlots(t, srv)
		}
		id, err := srv.AddOrder(srv.AddUser("ada"), labTest)
		noError(t, err)
		noError(t, srv.SetStatus(id, "collecting_sample."+strings.Split(c.status, ".")[1]+".appointment_scheduled"))
		noError(t, srv.SetStatus(id, c.status))

		path := "/v3/order/" + id.String() + "/" + c.kind + "/appointment"
		a := decode[appointment](t, do(t, srv, "GET", path, ""))
		if a.Status != "completed" || a.CanReschedule {
			t.Errorf("%s: %+v", c.status, a)
		}
		body := `{"booking_key":"` + *slots[0].BookingKey + `"}`
		if got := do(t, srv, "PATCH", path+"/reschedule", body); got.status != 400 {
			t.Errorf("%s: rescheduled: %+v", c.status, got)
		}
		if got := do(t, srv, "POST", path+"/book", body); got.status != c.booking {
			t.Errorf("%s: booked: %+v", c.status, got)
		}
	}
}
