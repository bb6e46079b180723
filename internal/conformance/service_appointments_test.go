package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// homeOfAda is the address of the first invented patient.
var homeOfAda = labhealth.USAddress{FirstLine: "1 Main Street", City: "San Francisco", State: "CA", ZipCode: "94105"}

// orderFor adds an order of an invented patient.
func orderFor(t testing.TB, srv *labhealthtest.Server, labTest uuid.UUID) uuid.UUID {
	t.Helper()
	return must[uuid.UUID](t)(srv.AddOrder(srv.AddUser(fmt.Sprintf("user-%d", len(srv.Orders()))), labTest))
}

func homeSlots(t testing.TB, client *labhealth.Client) []labhealth.TimeSlot {
	t.Helper()
	availability := must[*labhealth.AppointmentAvailability](t)(client.Appointments.AtHomeAvailability(t.Context(), homeOfAda,
		labhealth.AtHomeAvailabilityParams{StartDate: days(1)}))
	equal(t, days(1), availability.Slots[0].Date)
	return availability.Slots[0].Slots
}

func siteSlots(t testing.TB, client *labhealth.Client, lab labhealth.PSCLab) []labhealth.TimeSlot {
	t.Helper()
	availability := must[*labhealth.AppointmentAvailability](t)(client.Appointments.WalkInAvailability(t.Context(),
		labhealth.WalkInAvailabilityParams{Lab: lab, ZipCode: "94105", StartDate: days(1)}))
	equal(t, "San Francisco Center", availability.Slots[0].Location.Name)
	return availability.Slots[0].Slots
}

// changes records the types of the events that a server sends, with the status of the order or the
// appointment.
func changes(t testing.TB, srv *labhealthtest.Server) func() []string {
	t.Helper()
	var mu sync.Mutex
	var list []string
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var order struct {
			Type string          `json:"event_type"`
			Data labhealth.Order `json:"data"`
		}
		var appointment struct {
			Data labhealth.Appointment `json:"data"`
		}
		if err := errors.Join(json.Unmarshal(body, &order), json.Unmarshal(body, &appointment)); err != nil {
			t.Error(err)
		}
		text := string(order.Data.CurrentStatus())
		if strings.Contains(order.Type, "appointment") {
			text = fmt.Sprintf("%s, %s, %d", appointment.Data.Status, appointment.Data.EventStatus, len(appointment.Data.Events))
		}
		mu.Lock()
		defer mu.Unlock()
		list = append(list, order.Type+" "+text)
	}))
	t.Cleanup(receiver.Close)
	if err := srv.DeliverTo(receiver.URL); err != nil {
		t.Fatal(err)
	}
	return func() []string {
		if err := srv.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		return list
	}
}

// A patient is visited at home: the area is served, the first time is booked, moved, canceled, and
// another is booked; the order follows.
func TestServiceAppointmentAtHome(t *testing.T) {
	srv, client := serve(t)
	ctx, appointments, kind := t.Context(), client.Appointments, labhealth.AppointmentAtHome
	events := changes(t, srv)
	area := must[*labhealth.AreaInfo](t)(appointments.Area(ctx, labhealth.AreaParams{ZipCode: "94105"}))
	if !area.Phlebotomy.IsServed || area.Phlebotomy.Providers[0].ServiceTypes[0] != labhealth.AppointmentServiceReady {
		t.Fatalf("%s", area.RawJSON())
	}
	order := orderFor(t, srv, srv.LabTests.AtHome)
	_, err := appointments.Get(ctx, kind, order)
	checkRejected(t, err, "GET /v3/order/{order_id}/phlebotomy/appointment", 404, "This order has no appointment")
	equal(t, true, errors.Is(err, labhealth.ErrNotFound))

	slots := homeSlots(t, client)
	booked := must[*labhealth.Appointment](t)(appointments.Book(ctx, kind, order, labhealth.BookAppointmentBody{
		BookingKey: *slots[0].BookingKey, AppointmentNotes: new("Ring twice"),
	}))
	equal(t, slots[0].Start, *booked.StartAt) // although it has no offset
	equal(t, slots[0].End, *booked.EndAt)
	equal(t, labhealth.AppointmentStatusConfirmed, booked.Status)
	equal(t, labhealth.AppointmentEventScheduled, booked.EventStatus)
	equal(t, "Ring twice", *booked.AppointmentNotes)
	if malformed := booked.Malformed(); malformed != nil {
		t.Error(malformed)
	}
	got := must[*labhealth.Order](t)(client.Orders.Get(ctx, order))
	equal(t, booked.ID, *got.Details.Data.(*labhealth.AtHomePhlebotomyOrder).AppointmentID)
	equal(t, labhealth.OrderStatusCollectingSampleAtHomePhlebotomyAppointmentScheduled, got.CurrentStatus())

	moved := must[*labhealth.Appointment](t)(appointments.Reschedule(ctx, kind, order, labhealth.RescheduleAppointmentBody{BookingKey: *slots[1].BookingKey}))
	equal(t, []any{booked.ID, slots[1].Start}, []any{moved.ID, *moved.StartAt})

	_, err = appointments.Cancel(ctx, kind, order, labhealth.CancelAppointmentBody{CancellationReasonID: order})
	checkRejected(t, err, "PATCH /v3/order/{order_id}/phlebotomy/appointment/cancel", 400, "The cancellation reason does not exist")
	reasons := must[[]labhealth.AppointmentCancellationReason](t)(appointments.CancellationReasons(ctx, kind))
	canceled := must[*labhealth.Appointment](t)(appointments.Cancel(ctx, kind, order,
		labhealth.CancelAppointmentBody{CancellationReasonID: reasons[0].ID, Notes: new("Traveling")}))
	equal(t, []any{labhealth.AppointmentStatusCancelled, false}, []any{canceled.Status, canceled.CanReschedule})
	equal(t, `{"cancellation_reason":"The patient is not available"}`, string(canceled.EventData))

	again := must[*labhealth.Appointment](t)(appointments.Book(ctx, kind, order, labhealth.BookAppointmentBody{BookingKey: *slots[0].BookingKey}))
	equal(t, *again, *must[*labhealth.Appointment](t)(appointments.Get(ctx, kind, order)))
	must[string](t)(srv.Advance(order))
	equal(t, labhealth.AppointmentStatusCompleted, must[*labhealth.Appointment](t)(appointments.Get(ctx, kind, order)).Status)

	equal(t, []string{
		"labtest.order.created received.at_home_phlebotomy.ordered",
		"labtest.appointment.created confirmed, scheduled, 1", "labtest.order.updated collecting_sample.at_home_phlebotomy.appointment_scheduled",
		"labtest.appointment.updated confirmed, scheduled, 2", "labtest.order.updated collecting_sample.at_home_phlebotomy.appointment_scheduled",
		"labtest.appointment.updated cancelled, cancelled, 3", "labtest.order.updated collecting_sample.at_home_phlebotomy.appointment_cancelled",
		"labtest.appointment.created confirmed, scheduled, 1", "labtest.order.updated collecting_sample.at_home_phlebotomy.appointment_scheduled",
		"labtest.appointment.updated completed, completed, 2", "labtest.order.updated collecting_sample.at_home_phlebotomy.draw_completed",
	}, events())
}

// A patient visits a patient service center of the order's lab, and does not get a time that is
// taken.
func TestServiceAppointmentWalkIn(t *testing.T) {
	srv, client := serve(t)
	ctx, appointments, kind := t.Context(), client.Appointments, labhealth.AppointmentWalkIn
	order, other := orderFor(t, srv, srv.LabTests.WalkIn), orderFor(t, srv, srv.LabTests.WalkIn)
	events := changes(t, srv)

	area := must[*labhealth.AreaInfo](t)(appointments.Area(ctx, labhealth.AreaParams{ZipCode: "94105", Labs: []labhealth.PSCLab{labhealth.PSCLabQuest}}))
	lab := area.CentralLabs[string(labhealth.PSCLabQuest)]
	sites := must[*labhealth.PSCInfo](t)(appointments.Sites(ctx, labhealth.SitesParams{
		ZipCode: "94105", LabID: lab.LabID, Capabilities: []labhealth.LabLocationCapability{labhealth.LabLocationScheduling},
	}))
	equal(t, []any{int64(2), 1}, []any{lab.PatientServiceCenters.WithinRadius, len(sites.PatientServiceCenters)})
	near := must[*labhealth.PSCInfo](t)(appointments.OrderSites(ctx, order, labhealth.OrderSitesParams{Radius: 10}))
	equal(t, sites.PatientServiceCenters, near.PatientServiceCenters)

	slots := siteSlots(t, client, sites.Slug)
	booked := must[*labhealth.Appointment](t)(appointments.Book(ctx, kind, order, labhealth.BookAppointmentBody{BookingKey: *slots[0].BookingKey}))
	equal(t, []any{labhealth.AppointmentWalkIn, labhealth.AppointmentProviderQuest, "10 Market Street"},
		[]any{booked.Type, booked.Provider, booked.Address.FirstLine})
	got := must[*labhealth.Order](t)(client.Orders.Get(ctx, order))
	equal(t, booked.ID, *got.Details.Data.(*labhealth.WalkInTestOrder).AppointmentID)

	_, err := appointments.Book(ctx, kind, other, labhealth.BookAppointmentBody{BookingKey: *slots[0].BookingKey})
	checkRejected(t, err, "POST /v3/order/{order_id}/psc/appointment/book", 400, "The appointment slot is no longer available")
	if again := siteSlots(t, client, sites.Slug)[0]; again.BookingKey != nil || again.NumAppointmentsAvailable != 0 {
		t.Errorf("%s", again.RawJSON())
	}
	_, err = appointments.Book(ctx, labhealth.AppointmentAtHome, other, labhealth.BookAppointmentBody{BookingKey: *slots[1].BookingKey})
	checkRejected(t, err, "POST /v3/order/{order_id}/phlebotomy/appointment/book", 400, "The collection method of this order is not at_home_phlebotomy")
	if err := srv.Cancel(other); err != nil {
		t.Fatal(err)
	}
	_, err = appointments.Book(ctx, kind, other, labhealth.BookAppointmentBody{BookingKey: *slots[1].BookingKey})
	checkRejected(t, err, "POST /v3/order/{order_id}/psc/appointment/book", 400, "Appointments can not be booked in the current status of the order")

	must[*labhealth.Appointment](t)(appointments.Reschedule(ctx, kind, order, labhealth.RescheduleAppointmentBody{BookingKey: *slots[1].BookingKey}))
	reasons := must[[]labhealth.AppointmentCancellationReason](t)(appointments.CancellationReasons(ctx, kind))
	must[*labhealth.Appointment](t)(appointments.Cancel(ctx, kind, order, labhealth.CancelAppointmentBody{CancellationReasonID: reasons[1].ID}))
	equal(t, []string{
		"labtest.appointment.created confirmed, scheduled, 1", "labtest.order.updated collecting_sample.walk_in_test.appointment_scheduled",
		"labtest.order.updated cancelled.walk_in_test.cancelled",
		"labtest.appointment.updated confirmed, scheduled, 2", "labtest.order.updated collecting_sample.walk_in_test.appointment_scheduled",
		"labtest.appointment.updated cancelled, cancelled, 3", "labtest.order.updated collecting_sample.walk_in_test.appointment_cancelled",
	}, events())
}

// A booking whose response is lost: with a key, the second attempt returns the appointment of the
// first. Without, there is one attempt, and the appointment can be found.
func TestServiceBookingResponseLost(t *testing.T) {
	srv, client := serve(t, labhealth.WithRetry(quick))
	order := orderFor(t, srv, srv.LabTests.WalkIn)
	body := labhealth.BookAppointmentBody{BookingKey: *siteSlots(t, client, labhealth.PSCLabQuest)[0].BookingKey}
	const op = "POST /v3/order/{order_id}/psc/appointment/book"
	if err := srv.FailAfter(op, 1, labhealthtest.FaultReset); err != nil {
		t.Fatal(err)
	}
	var response labhealth.Response
	booked := must[*labhealth.Appointment](t)(client.Appointments.Book(t.Context(), labhealth.AppointmentWalkIn, order, body,
		labhealth.WithIdempotencyKey("booking-1"), labhealth.WithResponse(&response)))
	equal(t, 2, response.Attempts)
	equal(t, *booked, *must[*labhealth.Appointment](t)(client.Appointments.Get(t.Context(), labhealth.AppointmentWalkIn, order)))
	equal(t, 1, len(booked.Events))

	other := orderFor(t, srv, srv.LabTests.WalkIn)
	body.BookingKey = *siteSlots(t, client, labhealth.PSCLabQuest)[1].BookingKey
	if err := srv.FailAfter(op, 1, labhealthtest.FaultReset); err != nil {
		t.Fatal(err)
	}
	_, err := client.Appointments.Book(t.Context(), labhealth.AppointmentWalkIn, other, body, labhealth.WithResponse(&response))
	equal(t, []any{labhealth.OutcomeUnknown, 1}, []any{labhealth.OutcomeOf(err), response.Attempts})
	found := must[*labhealth.Appointment](t)(client.Appointments.Get(t.Context(), labhealth.AppointmentWalkIn, other))
	equal(t, []any{other, labhealth.AppointmentStatusConfirmed}, []any{found.OrderID, found.Status})
}
