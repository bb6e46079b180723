// AppointmentsService: availability, booking, rescheduling, cancellation.

package labhealth

// Source of this file: public API reference only.

import (
	"context"
	"fmt"

	"github.com/google/uuid"
)

// AppointmentsService provides access to appointments at which samples are collected, and to the
// areas and sites where they are possible. See [Client.Appointments].
//
// There are two kinds of appointments, with the same operations: [AppointmentAtHome] for orders
// with the collection method at_home_phlebotomy, and [AppointmentWalkIn] for walk_in_test.
// [LabTestCollectionMethod.AppointmentType] returns the kind of a collection method. The steps are:
//
//  1. [AppointmentsService.AtHomeAvailability] or [AppointmentsService.WalkInAvailability] returns
//     the times that are free, each with a booking key, which expires.
//  2. [AppointmentsService.Book] books one of them for an order. The low-level status of the order
//     becomes appointment_scheduled, or appointment_pending until the provider has confirmed.
//     Providers without booking are asked with [AppointmentsService.Request], which leads to
//     appointment_pending.
//  3. [AppointmentsService.Reschedule] moves the appointment to another free time.
//     [AppointmentsService.Cancel] cancels it, which leads to appointment_cancelled: the order is
//     still open, and another appointment can be booked.
//
// Changes are reported by the events labtest.appointment.created and labtest.appointment.updated,
// and by labtest.order.updated. Walk-in appointments are not enabled for every team: the error is
// an *[APIError] with status 503 then. Source of its operations: public API reference only.
type AppointmentsService struct{ core *core }

const (
	opAtHomeAvailability = "POST /v3/order/phlebotomy/appointment/availability"
	opRequestAtHome      = "POST /v3/order/{order_id}/phlebotomy/appointment/request"
	opBookAtHome         = "POST /v3/order/{order_id}/phlebotomy/appointment/book"
	opRescheduleAtHome   = "PATCH /v3/order/{order_id}/phlebotomy/appointment/reschedule"
	opCancelAtHome       = "PATCH /v3/order/{order_id}/phlebotomy/appointment/cancel"
	opReasonsAtHome      = "GET /v3/order/phlebotomy/appointment/cancellation-reasons"
	opGetAtHome          = "GET /v3/order/{order_id}/phlebotomy/appointment"

	opWalkInAvailability = "POST /v3/order/psc/appointment/availability"
	opBookWalkIn         = "POST /v3/order/{order_id}/psc/appointment/book"
	opRescheduleWalkIn   = "PATCH /v3/order/{order_id}/psc/appointment/reschedule"
	opCancelWalkIn       = "PATCH /v3/order/{order_id}/psc/appointment/cancel"
	opReasonsWalkIn      = "GET /v3/order/psc/appointment/cancellation-reasons"
	opGetWalkIn          = "GET /v3/order/{order_id}/psc/appointment"
)

// operation returns the operation of the kind. The operations of an unknown kind are unknown, so
// this is an error even with WithoutValidation.
func (t AppointmentType) operation(atHome, walkIn string) (string, error) {
	switch t {
	case AppointmentAtHome:
		return atHome, nil
	case AppointmentWalkIn:
		return walkIn, nil
	}
	return "", invalid(fmt.Sprintf("must be AppointmentAtHome (%s) or AppointmentWalkIn (%s)", AppointmentAtHome, AppointmentWalkIn), "kind")
}

// AtHomeAvailabilityParams selects times of appointments at home.
type AtHomeAvailabilityParams struct {
	StartDate Date // the first day; zero for the service's default
}

func (p AtHomeAvailabilityParams) validate(v *validator) { v.startDate(p.StartDate) }

func (p AtHomeAvailabilityParams) query() queryValues {
	q := newQuery()
	q.setStartDate(p.StartDate)
	return q
}

// AtHomeAvailability returns the free times of appointments at an address: POST
// /v3/order/phlebotomy/appointment/availability. It changes nothing and can be called again after
// any error, but because it is a POST, the client itself retries it less often than a GET.
func (s *AppointmentsService) AtHomeAvailability(ctx context.Context, address USAddress, params AtHomeAvailabilityParams, opts ...CallOption) (*AppointmentAvailability, error) {
	return call(ctx, coreOf(s), new(AppointmentAvailability), request{op: opAtHomeAvailability, query: params, body: &address}, opts)
}

// WalkInAvailabilityParams selects times of walk-in appointments. Give the ZIP code to search the
// sites near it, or the codes of sites.
type WalkInAvailabilityParams struct {
	Redacted

	// Lab is [PSCLabQuest] or [PSCLabSonoraQuest]; required. For an order, take the Slug of the
	// [PSCInfo] that [AppointmentsService.OrderSites] returns. [Lab.Slug] may differ.
	Lab       PSCLab
	StartDate Date     // the first day; zero for the service's default
	SiteCodes []string // codes of sites, from [LabLocation]
	ZipCode   string   // five digits
	// Radius is the distance from the ZIP code: 10, 20, 25, 50 or 100, probably miles. The
	// service's default is 25.
	Radius     int
	AllowStale bool // whether the times may come from a cache; false by default
}

func (p WalkInAvailabilityParams) validate(v *validator) {
	v.required("lab", string(p.Lab))
	v.startDate(p.StartDate)
	v.zipCode("zip_code", p.ZipCode)
}

func (p WalkInAvailabilityParams) query() queryValues {
	q := newQuery()
	q.setString("lab", string(p.Lab))
	q.setStartDate(p.StartDate)
	addStrings(q, "site_codes", p.SiteCodes)
	q.setString("zip_code", p.ZipCode)
	q.setInt("radius", p.Radius)
	if p.AllowStale {
		q.Set("allow_stale", "true")
	}
	return q
}

// WalkInAvailability returns the free times at the patient service centers of a lab: POST
// /v3/order/psc/appointment/availability. It changes nothing and can be called again after any
// error, but because it is a POST, the client itself retries it less often than a GET.
func (s *AppointmentsService) WalkInAvailability(ctx context.Context, params WalkInAvailabilityParams, opts ...CallOption) (*AppointmentAvailability, error) {
	return call(ctx, coreOf(s), new(AppointmentAvailability), request{op: opWalkInAvailability, query: params}, opts)
}

// startDate validates a first day, unless it is zero.
func (v *validator) startDate(d Date) {
	if !d.IsZero() {
		v.date("start_date", d)
	}
}

func (q queryValues) setStartDate(d Date) {
	if !d.IsZero() {
		q.Set("start_date", d.String())
	}
}

// BookAppointmentBody is the request body of [AppointmentsService.Book].
type BookAppointmentBody struct {
	Redacted

	BookingKey string `json:"booking_key"` // of a [TimeSlot]
	// AppointmentNotes are for the provider. They have at most 1000 characters.
	AppointmentNotes *string `json:"appointment_notes,omitzero"`
	// AsyncConfirmation lets the service respond before the provider has confirmed the appointment.
	// It is omitted if false.
	AsyncConfirmation bool `json:"async_confirmation,omitzero"`
	// SyncConfirmationTimeoutMillisecond is how long the service waits for the confirmation before
	// it responds: 1000 to 10000, nil for its default.
	SyncConfirmationTimeoutMillisecond *int64 `json:"sync_confirmation_timeout_millisecond,omitzero"`
	// AsyncConfirmationTimeoutMillisecond is how long the service waits for the confirmation after
	// it has responded: 60000 (a minute) to 172800000 (two days), nil for its default.
	AsyncConfirmationTimeoutMillisecond *int64 `json:"async_confirmation_timeout_millisecond,omitzero"`
}

func (b *BookAppointmentBody) validate(v *validator) {
	v.required("booking_key", b.BookingKey)
	v.notes("appointment_notes", b.AppointmentNotes)
	v.optionalBetween("sync_confirmation_timeout_millisecond", b.SyncConfirmationTimeoutMillisecond, 1000, 10000)
	v.optionalBetween("async_confirmation_timeout_millisecond", b.AsyncConfirmationTimeoutMillisecond, 60000, 172800000)
}

func (v *validator) optionalBetween(name string, n *int64, minimum, maximum int64) {
	if n != nil && (*n < minimum || *n > maximum) {
		v.add(name, "value_error", fmt.Sprintf("must be left out or be between %d and %d", minimum, maximum))
	}
}

// Book books an appointment for an order: POST /v3/order/{order_id}/phlebotomy/appointment/book or
// POST /v3/order/{order_id}/psc/appointment/book. The booking key determines the time and the
// place. The key and the order's collection method must be of the given kind. Afterwards the
// details of the order have the ID of the appointment.
//
// One call books at most one appointment. It is never retried while an attempt may have been
// processed. If [OutcomeOf] its error is [OutcomeUnknown], call [AppointmentsService.Get] and
// compare the appointment with the slot before you book again. A second call with the same booking
// key is rejected if the first one has booked the slot (an inference).
//
// The booking of a walk-in appointment accepts [WithIdempotencyKey], which allows retries (closed
// beta). The service returns the first outcome of a key again for 14 days, so derive the key from
// the booking key. If the response may be an old one, call [AppointmentsService.Get].
func (s *AppointmentsService) Book(ctx context.Context, kind AppointmentType, orderID uuid.UUID, body BookAppointmentBody, opts ...CallOption) (*Appointment, error) {
	op, err := kind.operation(opBookAtHome, opBookWalkIn)
	if err != nil {
		return nil, err
	}
	r := request{op: op, ids: []string{orderID.String()}, body: &body, repeatable: kind == AppointmentWalkIn}
	return call(ctx, coreOf(s), new(Appointment), r, opts)
}

// RequestAppointmentBody is the request body of [AppointmentsService.Request].
type RequestAppointmentBody struct {
	Redacted

	Address  USAddress           `json:"address"`  // where the sample is collected
	Provider AppointmentProvider `json:"provider"` // one whose service type is appointment-request
	// AppointmentNotes are for the provider. They have at most 1000 characters.
	AppointmentNotes *string `json:"appointment_notes,omitzero"`
}

func (b *RequestAppointmentBody) validate(v *validator) {
	v.within("address", func() { b.Address.validate(v) })
	v.required("provider", string(b.Provider))
	v.notes("appointment_notes", b.AppointmentNotes)
}

// Request asks a provider to arrange an appointment at home with the patient: POST
// /v3/order/{order_id}/phlebotomy/appointment/request. It is for providers whose
// [PhlebotomyProviderInfo] has the service type appointment-request. The appointment is pending and
// has no time until the provider schedules it.
//
// It is never retried while an attempt may have been processed. If [OutcomeOf] its error is
// [OutcomeUnknown], call [AppointmentsService.Get] before you request again: there is an
// appointment if the request was accepted.
func (s *AppointmentsService) Request(ctx context.Context, orderID uuid.UUID, body RequestAppointmentBody, opts ...CallOption) (*Appointment, error) {
	return call(ctx, coreOf(s), new(Appointment), request{op: opRequestAtHome, ids: []string{orderID.String()}, body: &body}, opts)
}

// RescheduleAppointmentBody is the request body of [AppointmentsService.Reschedule].
type RescheduleAppointmentBody struct {
	Redacted

	BookingKey string `json:"booking_key"` // of the new [TimeSlot]
	// AppointmentNotes are for the provider. They have at most 1000 characters.
	AppointmentNotes *string `json:"appointment_notes,omitzero"`
}

func (b *RescheduleAppointmentBody) validate(v *validator) {
	v.required("booking_key", b.BookingKey)
	v.notes("appointment_notes", b.AppointmentNotes)
}

// Reschedule moves the appointment of an order to another time: PATCH
// /v3/order/{order_id}/phlebotomy/appointment/reschedule or PATCH
// /v3/order/{order_id}/psc/appointment/reschedule. Appointment.CanReschedule reports whether it is
// possible.
//
// It is never retried while an attempt may have been processed. If [OutcomeOf] its error is
// [OutcomeUnknown], call [AppointmentsService.Get] and compare StartAt with the new slot. A second
// call with the same booking key is rejected if the first one has moved the appointment (an
// inference), so a rejection does not mean that it has its old time.
func (s *AppointmentsService) Reschedule(ctx context.Context, kind AppointmentType, orderID uuid.UUID, body RescheduleAppointmentBody, opts ...CallOption) (*Appointment, error) {
	op, err := kind.operation(opRescheduleAtHome, opRescheduleWalkIn)
	if err != nil {
		return nil, err
	}
	return call(ctx, coreOf(s), new(Appointment), request{op: op, ids: []string{orderID.String()}, body: &body}, opts)
}

// CancelAppointmentBody is the request body of [AppointmentsService.Cancel].
type CancelAppointmentBody struct {
	Redacted

	// CancellationReasonID is the ID of an [AppointmentCancellationReason] of the same kind of
	// appointment.
	CancellationReasonID uuid.UUID `json:"cancellation_reason_id"`
	Notes                *string   `json:"notes,omitzero"` // nil for none
}

// cancelAppointment is a [CancelAppointmentBody] as sent. The public API reference has two forms of
// the body, and does not say which operation requires which. Both are sent.
type cancelAppointment struct {
	CancellationReasonID uuid.UUID `json:"cancellation_reason_id"`
	Notes                *string   `json:"notes,omitzero"`
	CamelCaseReasonID    uuid.UUID `json:"cancellationReasonId"`
	Note                 *string   `json:"note,omitzero"`
}

func (b *cancelAppointment) validate(v *validator) {
	v.requiredID("cancellation_reason_id", b.CancellationReasonID)
}

// Cancel cancels the appointment of an order, but not the order: PATCH
// /v3/order/{order_id}/phlebotomy/appointment/cancel or PATCH
// /v3/order/{order_id}/psc/appointment/cancel. The order may get another appointment.
// [AppointmentsService.CancellationReasons] returns the reasons.
//
// It is never retried while an attempt may have been processed. If [OutcomeOf] its error is
// [OutcomeUnknown], call [AppointmentsService.Get]: the status is [AppointmentStatusCancelled] if
// it was canceled. A second call is then rejected (an inference).
func (s *AppointmentsService) Cancel(ctx context.Context, kind AppointmentType, orderID uuid.UUID, body CancelAppointmentBody, opts ...CallOption) (*Appointment, error) {
	op, err := kind.operation(opCancelAtHome, opCancelWalkIn)
	if err != nil {
		return nil, err
	}
	sent := cancelAppointment{body.CancellationReasonID, body.Notes, body.CancellationReasonID, body.Notes}
	return call(ctx, coreOf(s), new(Appointment), request{op: op, ids: []string{orderID.String()}, body: &sent}, opts)
}

// CancellationReasons lists the reasons to cancel an appointment: GET
// /v3/order/phlebotomy/appointment/cancellation-reasons or GET
// /v3/order/psc/appointment/cancellation-reasons.
func (s *AppointmentsService) CancellationReasons(ctx context.Context, kind AppointmentType, opts ...CallOption) ([]AppointmentCancellationReason, error) {
	op, err := kind.operation(opReasonsAtHome, opReasonsWalkIn)
	if err != nil {
		return nil, err
	}
	return callList[AppointmentCancellationReason](ctx, coreOf(s), request{op: op}, opts)
}

// Get returns the appointment of an order: GET /v3/order/{order_id}/phlebotomy/appointment or GET
// /v3/order/{order_id}/psc/appointment. The error for an order without an appointment matches
// [ErrNotFound].
func (s *AppointmentsService) Get(ctx context.Context, kind AppointmentType, orderID uuid.UUID, opts ...CallOption) (*Appointment, error) {
	op, err := kind.operation(opGetAtHome, opGetWalkIn)
	if err != nil {
		return nil, err
	}
	return call(ctx, coreOf(s), new(Appointment), request{op: op, ids: []string{orderID.String()}}, opts)
}
