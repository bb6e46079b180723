// Booking, requesting, rescheduling and canceling appointments.

package labhealthtest

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
)

// idempotencyPeriodOfBooking is how long the outcome of a walk-in booking with an idempotency key
// is kept.
const idempotencyPeriodOfBooking = 14 * 24 * time.Hour

// appointmentKind is what differs between appointments at home and walk-in appointments.
type appointmentKind struct {
	name     string // type of the appointments
	method   string // collection method of the orders
	provider string
	price    float64
	reasons  []cancellationReason
}

var (
	atHome = &appointmentKind{"phlebotomy", "at_home_phlebotomy", "getlabs", 79.5, []cancellationReason{
		{uuid.MustParse("c0d1f2a3-0b1c-4d2e-8f30-000000000001"), "The patient is not available", true},
		{uuid.MustParse("c0d1f2a3-0b1c-4d2e-8f30-000000000002"), "The patient did not open the door", false},
	}}
	walkIn = &appointmentKind{"patient_service_center", "walk_in_test", "quest", 0, []cancellationReason{
		{uuid.MustParse("c0d1f2a3-0b1c-4d2e-8f30-000000000011"), "The patient is not available", true},
		{uuid.MustParse("c0d1f2a3-0b1c-4d2e-8f30-000000000012"), "Another site is closer", true},
	}}
)

func kindOfOrder(o *order) *appointmentKind {
	kind, _ := first([]*appointmentKind{atHome, walkIn}, func(k *appointmentKind) bool { return k.method == o.Details.Type })
	return kind
}

// ofKind returns the handler of an operation that both kinds of appointments have.
func ofKind(kind *appointmentKind, handle handlerOf[*appointmentKind]) handler {
	return func(s *Server, r *request) (any, error) { return handle(s, r, kind) }
}

var (
	noAppointment   = reject(http.StatusNotFound, "This order has no appointment")
	hasAppointment  = reject(http.StatusBadRequest, "This order already has an appointment")
	cannotBeBooked  = reject(http.StatusBadRequest, "Appointments can not be booked in the current status of the order")
	invalidOffer    = reject(http.StatusBadRequest, "The booking key is invalid or has expired")
	slotIsTaken     = reject(http.StatusBadRequest, "The appointment slot is no longer available")
	cannotBeMoved   = reject(http.StatusBadRequest, "This appointment can not be rescheduled")
	closedAlready   = reject(http.StatusBadRequest, "This appointment can not be cancelled")
	unknownReason   = reject(http.StatusBadRequest, "The cancellation reason does not exist")
	addressUnserved = reject(http.StatusBadRequest, "The address is not served")
	cannotRequest   = reject(http.StatusBadRequest, "The provider does not accept appointment requests")
)

// orderOfKind returns the order in the path, if it has this kind of
// appointments.
func (s *Server) orderOfKind(r *request, kind *appointmentKind) (*order, error) {
	o, err := s.requestedOrder(r)
	if err == nil && kindOfOrder(o) != kind {
		return nil, reject(http.StatusBadRequest, "The collection method of this order is not "+kind.method)
	}
	return o, err
}

// bookableOrder also requires that the order has no open appointment and waits for one.
func (s *Server) bookableOrder(r *request, kind *appointmentKind) (*order, error) {
	o, err := s.orderOfKind(r, kind)
	if err != nil {
		return nil, err
	}
	if o.appointment.isOpen() && o.Status != "cancelled" {
		return nil, hasAppointment
	}
	switch o.lowLevelStatus() {
	case "ordered", "requisition_created", "requisition_bypassed", "appointment_pending", "appointment_cancelled", "redraw_available":
		return o, nil
	}
	return nil, cannotBeBooked
}

// validOffer returns the offer of a booking key, if the slot is free and suits the order.
func (s *Server) validOffer(key string, o *order, kind *appointmentKind, now time.Time) (offer, error) {
	f, ok := s.offers[key]
	switch {
	case !ok || f.kind != kind || !now.Before(f.expiresAt) || !now.Before(f.start):
		return f, invalidOffer
	case s.takenSlots[f.slot]:
		return f, slotIsTaken
	case f.site != nil && f.site.lab != labOfOrder(o):
		return f, reject(http.StatusBadRequest, "The site belongs to another lab")
	}
	return f, nil
}

type bookingRequest struct {
	BookingKey        string  `json:"booking_key"`
	AppointmentNotes  *string `json:"appointment_notes"`
	AsyncConfirmation bool    `json:"async_confirmation"`
}

// bookAppointment books a slot. With async_confirmation the appointment is pending until the order
// is advanced.
func (s *Server) bookAppointment(r *request, kind *appointmentKind) (any, error) {
	var body bookingRequest
	r.decode(&body)
	if kind == atHome { // has no idempotency key
		return s.book(r, kind, &body)
	}
	return s.once(r, "booking", idempotencyPeriodOfBooking, func() (any, error) { return s.book(r, kind, &body) })
}

func (s *Server) book(r *request, kind *appointmentKind, body *bookingRequest) (any, error) {
	o, err := s.bookableOrder(r, kind)
	if err != nil {
		return nil, err
	}
	f, err := s.validOffer(body.BookingKey, o, kind, r.now)
	if err != nil {
		return nil, err
	}
	a := s.newAppointment(o, kind)
	a.AppointmentNotes = body.AppointmentNotes
	s.take(a, f)
	event, low := "scheduled", "appointment_scheduled"
	if body.AsyncConfirmation {
		event, low = "pending", "appointment_pending"
	}
	s.changeAppointment(o, event, low, nil, r.now)
	return a, nil
}

// take sets the time and the place of an appointment to those of an offer.
func (s *Server) take(a *appointment, f offer) {
	delete(s.takenSlots, a.slot)
	s.takenSlots[f.slot] = true
	a.setTime(f.slot, f.start)
	a.Address, a.Location, a.IANATimezone = f.address, f.area.location, &f.area.timezone
	a.Provider = f.kind.provider
	if f.site != nil {
		a.Provider = f.site.lab.slug
	}
}

// changeAppointment adds an event to the appointment and to its order, unless that is canceled.
func (s *Server) changeAppointment(o *order, event, low string, data any, now time.Time) {
	s.addAppointmentEvent(o, event, data, now)
	if o.Status == "cancelled" {
		s.reportOrder(o)
		return
	}
	s.setStatus(o, "collecting_sample."+o.Details.Type+"."+low, "", now)
	s.emitOrder(o)
}

// requestAppointment adds an appointment without a time. [Server.Advance] schedules it.
func (s *Server) requestAppointment(r *request) (any, error) {
	var body struct {
		Address          usAddress `json:"address"`
		Provider         string    `json:"provider"`
		AppointmentNotes *string   `json:"appointment_notes"`
	}
	r.decode(&body)
	o, err := s.bookableOrder(r, atHome)
	if err != nil {
		return nil, err
	}
	area := areaOf(body.Address.ZipCode)
	if area == nil {
		return nil, addressUnserved
	}
	if !slices.ContainsFunc(homeProviders, func(p areaProvider) bool {
		return p.Name == body.Provider && slices.Contains(p.ServiceTypes, "appointment-request")
	}) {
		return nil, cannotRequest
	}
	a := s.newAppointment(o, atHome)
	a.Address, a.Location, a.IANATimezone = body.Address, area.location, &area.timezone
	a.Provider, a.AppointmentNotes = body.Provider, body.AppointmentNotes
	s.changeAppointment(o, "pending", "appointment_pending", nil, r.now)
	return a, nil
}

func (s *Server) rescheduleAppointment(r *request, kind *appointmentKind, o *order) (any, error) {
	var body bookingRequest
	r.decode(&body)
	a := o.appointment
	if !a.CanReschedule || o.Status == "cancelled" {
		return nil, cannotBeMoved
	}
	f, err := s.validOffer(body.BookingKey, o, kind, r.now)
	if err != nil {
		return nil, err
	}
	s.take(a, f)
	if body.AppointmentNotes != nil {
		a.AppointmentNotes = body.AppointmentNotes
	}
	s.changeAppointment(o, "scheduled", "appointment_scheduled", nil, r.now)
	return a, nil
}

// cancellationSchema accepts both forms of the public API reference, which does not say which
// operation requires which.
func cancellationSchema(v *validator, location []any, raw json.RawMessage) any {
	before := len(v.errors)
	value := object(
		optional("cancellation_reason_id", uuidSchema, nil),
		nullable("notes", stringSchema),
		optional("cancellationReasonId", uuidSchema, nil),
		nullable("note", stringSchema),
	)(v, location, raw)
	if len(v.errors) > before {
		return value
	}
	fields := value.(map[string]any)
	if fields["cancellation_reason_id"] == nil {
		fields["cancellation_reason_id"] = fields["cancellationReasonId"]
	}
	if fields["cancellation_reason_id"] == nil {
		v.add("missing", append(slices.Clone(location), "cancellation_reason_id"), "Field required", raw, nil)
	}
	return map[string]any{"cancellation_reason_id": fields["cancellation_reason_id"]}
}

func (s *Server) cancelAppointment(r *request, kind *appointmentKind, o *order) (any, error) {
	var body struct {
		ReasonID uuid.UUID `json:"cancellation_reason_id"`
	}
	r.decode(&body)
	reason, ok := first(kind.reasons, func(c cancellationReason) bool { return c.ID == body.ReasonID })
	switch {
	case !ok:
		return nil, unknownReason
	case !o.appointment.isOpen():
		return nil, closedAlready
	}
	s.changeAppointment(o, "cancelled", "appointment_cancelled", map[string]string{"cancellation_reason": reason.Name}, r.now)
	return o.appointment, nil
}

func (s *Server) listCancellationReasons(_ *request, kind *appointmentKind) (any, error) {
	return kind.reasons, nil
}

func (s *Server) getAppointment(_ *request, _ *appointmentKind, o *order) (any, error) {
	return o.appointment, nil
}

// onAppointment returns the handler of an operation on the appointment of the order in the path.
func onAppointment(kind *appointmentKind, handle func(*Server, *request, *appointmentKind, *order) (any, error)) handler {
	return func(s *Server, r *request) (any, error) {
		o, err := s.orderOfKind(r, kind)
		if err == nil && o.appointment == nil {
			err = noAppointment
		}
		if err != nil {
			return nil, err
		}
		return handle(s, r, kind, o)
	}
}
