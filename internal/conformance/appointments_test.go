package conformance

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

// A kind of appointment that has no operations is not sent, and the error names the others.
func TestAppointmentKinds(t *testing.T) {
	for _, kind := range []labhealth.AppointmentType{"", "walk_in_test", "Phlebotomy", "psc"} {
		client, s := scripted(t, nil)
		ctx, a := t.Context(), client.Appointments
		_, booked := a.Book(ctx, kind, appointmentOrder, labhealth.BookAppointmentBody{BookingKey: "k"}, labhealth.WithoutValidation())
		_, moved := a.Reschedule(ctx, kind, appointmentOrder, labhealth.RescheduleAppointmentBody{BookingKey: "k"})
		_, canceled := a.Cancel(ctx, kind, appointmentOrder, labhealth.CancelAppointmentBody{CancellationReasonID: appointmentReason})
		_, listed := a.CancellationReasons(ctx, kind)
		_, got := a.Get(ctx, kind, appointmentOrder)
		for i, err := range []error{booked, moved, canceled, listed, got} {
			if want := "labhealth: not sent: kind must be AppointmentAtHome (phlebotomy) or AppointmentWalkIn (patient_service_center)"; errorText(err) != want {
				t.Errorf("%q, method %d: %v", kind, i, err)
			}
			equal(t, []any{true, labhealth.OutcomeNotSent}, []any{errors.Is(err, labhealth.ErrValidation), labhealth.OutcomeOf(err)})
		}
		equal(t, 0, len(s.sent))
	}
}

// What the public API reference rules out is not sent.
func TestAppointmentValidation(t *testing.T) {
	client, s := scripted(t, nil)
	ctx, a, long := t.Context(), client.Appointments, new(strings.Repeat("é", 1001))
	address := func(change func(*labhealth.USAddress)) labhealth.USAddress {
		home := homeOfAda
		change(&home)
		return home
	}
	availability := func(home labhealth.USAddress, params labhealth.AtHomeAvailabilityParams) error {
		_, err := a.AtHomeAvailability(ctx, home, params)
		return err
	}
	walkIn := func(params labhealth.WalkInAvailabilityParams) error {
		_, err := a.WalkInAvailability(ctx, params)
		return err
	}
	book := func(body labhealth.BookAppointmentBody) error {
		_, err := a.Book(ctx, labhealth.AppointmentAtHome, appointmentOrder, body)
		return err
	}
	area := func(params labhealth.AreaParams) error { _, err := a.Area(ctx, params); return err }
	sites := func(params labhealth.SitesParams) error { _, err := a.Sites(ctx, params); return err }
	_, request := a.Request(ctx, appointmentOrder, labhealth.RequestAppointmentBody{AppointmentNotes: long})
	_, moved := a.Reschedule(ctx, labhealth.AppointmentWalkIn, appointmentOrder, labhealth.RescheduleAppointmentBody{AppointmentNotes: long})
	_, canceled := a.Cancel(ctx, labhealth.AppointmentWalkIn, appointmentOrder, labhealth.CancelAppointmentBody{Notes: long})
	_, keyed := a.Book(ctx, labhealth.AppointmentAtHome, appointmentOrder, labhealth.BookAppointmentBody{BookingKey: "k"}, labhealth.WithIdempotencyKey("k"))
	_, noOrder := a.Get(ctx, labhealth.AppointmentWalkIn, uuid.Nil)
	for _, test := range []struct {
		err  error
		want string
	}{
		{availability(labhealth.USAddress{}, labhealth.AtHomeAvailabilityParams{StartDate: labhealth.Date{Year: 2030, Month: 2, Day: 30}}),
			"query.start_date must be a date that exists; body.first_line is required; body.city is required; body.state is required; " +
				"body.zip_code is required: five digits, such as 94105, or nine, such as 94105-1234"},
		{availability(address(func(a *labhealth.USAddress) { a.ZipCode, a.AccessNotes = "94105-12", long }), labhealth.AtHomeAvailabilityParams{}),
			"body.zip_code is required: five digits, such as 94105, or nine, such as 94105-1234; body.access_notes must have at most 1000 characters"},
		{walkIn(labhealth.WalkInAvailabilityParams{ZipCode: "94105-1234"}), "query.lab is required; query.zip_code must have five digits"},
		{book(labhealth.BookAppointmentBody{
			AppointmentNotes: long, SyncConfirmationTimeoutMillisecond: new(int64(10001)), AsyncConfirmationTimeoutMillisecond: new(int64(0)),
		}), "body.booking_key is required; body.appointment_notes must have at most 1000 characters; " +
			"body.sync_confirmation_timeout_millisecond must be left out or be between 1000 and 10000; " +
			"body.async_confirmation_timeout_millisecond must be left out or be between 60000 and 172800000"},
		{area(labhealth.AreaParams{}), "query.zip_code is required"},
		{area(labhealth.AreaParams{ZipCode: "٩٤١٠٥"}), "query.zip_code must have five digits"},
		{sites(labhealth.SitesParams{ZipCode: "9410\n"}), "query.zip_code must have five digits; query.lab_id is required"},
		{request, "body.address.first_line is required; body.address.city is required; body.address.state is required; " +
			"body.address.zip_code is required: five digits, such as 94105, or nine, such as 94105-1234; body.provider is required; " +
			"body.appointment_notes must have at most 1000 characters"},
		{moved, "body.booking_key is required; body.appointment_notes must have at most 1000 characters"},
		{canceled, "body.cancellation_reason_id is required: a UUID that is not nil"},
		{keyed, "WithIdempotencyKey is for Orders.Create, Orders.CreateTestkit, and Appointments.Book with AppointmentWalkIn; after an unknown outcome of another operation, check whether it took effect before you repeat it"},
		{noOrder, "path.order_id must not be the nil UUID"},
	} {
		_, text, _ := strings.Cut(errorText(test.err), ": not sent: ")
		equal(t, test.want, text)
	}
	equal(t, 0, len(s.sent))
}

// Values that the reference does not list are sent, and received.
func TestAppointmentOpenValues(t *testing.T) {
	client, s := respondingWith(t, 200, strings.NewReplacer(
		`"type":"phlebotomy"`, `"type":"drive_through"`, `"status":"confirmed"`, `"status":"moved"`, `"provider":"getlabs"`, `"provider":"new"`,
		`"start_at":"2030-05-02T16:00:00"`, `"start_at":null`, `"end_at":"2030-05-02T17:00:00"`, `"end_at":"2030-05-02"`,
	).Replace(appointmentJSON))
	got := must[*labhealth.Appointment](t)(client.Appointments.Request(t.Context(), appointmentOrder,
		labhealth.RequestAppointmentBody{Address: homeOfAda, Provider: "new"}))
	equal(t, []any{labhealth.AppointmentType("drive_through"), labhealth.AppointmentStatus("moved"), labhealth.AppointmentProvider("new")},
		[]any{got.Type, got.Status, got.Provider})
	equal(t, (*time.Time)(nil), got.StartAt)
	equal(t, time.Date(2030, 5, 2, 0, 0, 0, 0, time.UTC), *got.EndAt)
	equal(t, "labhealth.Appointment{a0a0a0a0-0001-4000-8000-000000000001 ?, redacted}", fmt.Sprintf("%+v", got))
	equal(t, `{"address":{"first_line":"1 Main Street","city":"San Francisco","state":"CA","zip_code":"94105"},"provider":"new"}`, s.only(t).Body)
}

// Booking is repeated only with an idempotency key, with the same key and body. Otherwise one
// attempt is made, and the outcome is unknown.
func TestBookingLost(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		for name, fault := range map[string]func(http.ResponseWriter){
			"aborted":   func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
			"500":       func(w http.ResponseWriter) { w.WriteHeader(500) },
			"503":       func(w http.ResponseWriter) { w.WriteHeader(503) },
			"truncated": func(w http.ResponseWriter) { w.Header().Set("Content-Length", "9"); io.WriteString(w, `{"id":`) },
		} {
			for _, test := range []struct {
				kind labhealth.AppointmentType
				key  string
			}{{labhealth.AppointmentAtHome, ""}, {labhealth.AppointmentWalkIn, ""}, {labhealth.AppointmentWalkIn, "k-1"}} {
				t.Run(fmt.Sprintf("%s/%v/%s/%s", name, h2, test.kind, test.key), func(t *testing.T) {
					srv, attempts := startBooking(t, h2, fault)
					var opts []labhealth.CallOption
					if test.key != "" {
						opts = append(opts, labhealth.WithIdempotencyKey(test.key))
					}
					got, err := faultClient(t, srv.URL, srv.Client().Transport).Appointments.Book(t.Context(), test.kind, appointmentOrder,
						labhealth.BookAppointmentBody{BookingKey: "bk_1", AppointmentNotes: new("Ring twice")}, opts...)
					one := test.key + ` {"booking_key":"bk_1","appointment_notes":"Ring twice"}`
					switch {
					case test.key != "" && name != "truncated":
						equal(t, []string{one, one}, attempts())
						equal(t, "", errorText(err))
						equal(t, *decodedAppointment(t), *got)
					default:
						equal(t, []string{one}, attempts())
						equal(t, (*labhealth.Appointment)(nil), got)
						if outcome := labhealth.OutcomeOf(err); name == "truncated" && outcome != labhealth.OutcomeApplied || name != "truncated" && outcome != labhealth.OutcomeUnknown {
							t.Errorf("%s: %v", outcome, err)
						}
					}
				})
			}
		}
	}
}

// startBooking starts a server that books every time, and injects fault into its first response.
// attempts returns the idempotency key and the body of each request.
func startBooking(t testing.TB, h2 bool, fault func(http.ResponseWriter)) (srv *httptest.Server, attempts func() []string) {
	var mu sync.Mutex
	var list []string
	srv = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		list = append(list, r.Header.Get("X-Idempotency-Key")+" "+string(body))
		n := len(list)
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if n == 1 {
			fault(w)
			return
		}
		io.WriteString(w, appointmentJSON)
	}))
	if srv.EnableHTTP2 = h2; h2 {
		srv.StartTLS()
	} else {
		srv.Start()
	}
	t.Cleanup(srv.Close)
	return srv, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return list
	}
}

func decodedAppointment(t testing.TB) *labhealth.Appointment {
	t.Helper()
	a := new(labhealth.Appointment)
	mustDecode(t, appointmentJSON, a)
	return a
}
