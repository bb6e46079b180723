// Cancellation, draws, resent events, communication settings and simulation of orders.

package labhealth

// Source of this file: public API reference only.

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"
)

const (
	opCancelOrder       = "POST /v3/order/{order_id}/cancel"
	opMarkDrawCompleted = "PATCH /v3/order/{order_id}/draw_completed"
	opResendEvents      = "POST /v3/order/resend_events"
	opSimulateOrder     = "POST /v3/order/{order_id}/test"

	opCommunicationSettings       = "GET /v3/order/{order_id}/communication_settings"
	opUpdateCommunicationSettings = "PATCH /v3/order/{order_id}/communication_settings"
)

// Cancel cancels an order: POST /v3/order/{order_id}/cancel. The service accepts it only before the
// sample is on its way: which statuses that are depends on the collection method, so let the
// service decide. Otherwise it responds with 400. The appointment of a walk-in order remains:
// cancel it with [AppointmentsService.Cancel].
//
// It is never retried while an attempt may have been processed. If [OutcomeOf] its error is
// [OutcomeUnknown], get the order and test it with [Order.Canceled]. Canceling it again is
// harmless: the service rejects it if the order is already canceled. An *[APIError] therefore does
// not tell whether the order is canceled already or can no longer be canceled. [Order.Canceled]
// does.
func (s *OrdersService) Cancel(ctx context.Context, orderID uuid.UUID, opts ...CallOption) (*PostOrderResponse, error) {
	return call(ctx, coreOf(s), new(PostOrderResponse), request{op: opCancelOrder, ids: []string{orderID.String()}}, opts)
}

// MarkDrawCompleted reports that the sample of an order with on-site collection was drawn: PATCH
// /v3/order/{order_id}/draw_completed.
func (s *OrdersService) MarkDrawCompleted(ctx context.Context, orderID uuid.UUID, opts ...CallOption) (*PostOrderResponse, error) {
	return call(ctx, coreOf(s), new(PostOrderResponse), request{op: opMarkDrawCompleted, ids: []string{orderID.String()}}, opts)
}

// maxResendWindow is the longest time range whose events can be sent again.
const maxResendWindow = 60 * 24 * time.Hour

// ResendEventsBody is the request body of [OrdersService.ResendEvents]. It selects orders by ID, by
// time range, or both.
type ResendEventsBody struct {
	OrderIDs []uuid.UUID `json:"order_ids,omitzero"` // orders with these IDs
	// StartAt and EndAt limit the time range. They are at most 60 days apart.
	StartAt *time.Time `json:"start_at,omitzero"`
	EndAt   *time.Time `json:"end_at,omitzero"` // see StartAt
}

// Validate checks the request against the public API reference. Its error, if not nil, is a
// *[ValidationError] that lists every invalid field. [OrdersService.ResendEvents] calls it. A body
// that selects nothing is invalid, because the service might select every order.
func (b ResendEventsBody) Validate() error { return validate(&b) }

func (b *ResendEventsBody) validate(v *validator) {
	if len(b.OrderIDs) == 0 && b.StartAt == nil && b.EndAt == nil {
		v.add("order_ids", "missing", "or a time range is required")
	}
	v.within("order_ids", func() {
		for i, id := range b.OrderIDs {
			v.requiredID(strconv.Itoa(i), id)
		}
	})
	if b.StartAt != nil && b.EndAt != nil && b.EndAt.Sub(*b.StartAt) > maxResendWindow {
		v.add("end_at", "value_error", "must be at most 60 days after start_at")
	}
}

// ResendEventsResponse is the response of [OrdersService.ResendEvents].
type ResendEventsResponse struct {
	OrderIDs []uuid.UUID `json:"order_ids"` // orders whose events are sent again

	RawObject `json:"-"`
}

func (r *ResendEventsResponse) verify() error { return requireList(r.OrderIDs) }

// ResendEvents makes the service send the latest webhook event of the selected orders again: POST
// /v3/order/resend_events. It recovers events that a receiver has missed.
func (s *OrdersService) ResendEvents(ctx context.Context, body ResendEventsBody, opts ...CallOption) (*ResendEventsResponse, error) {
	return call(ctx, coreOf(s), new(ResendEventsResponse), request{op: opResendEvents, body: &body}, opts)
}

// CommunicationSettings controls how the service contacts the patient of an order: the response of
// [OrdersService.CommunicationSettings] and [OrdersService.UpdateCommunicationSettings].
type CommunicationSettings struct {
	OrderID    uuid.UUID `json:"order_id"`    // order ID
	SMSEnabled bool      `json:"sms_enabled"` // whether the service sends text messages

	RawObject `json:"-"`
}

func (c *CommunicationSettings) verify() error { return requireID(c.OrderID, "order") }

// UpdateCommunicationSettingsBody is the request body of
// [OrdersService.UpdateCommunicationSettings].
type UpdateCommunicationSettingsBody struct {
	SMSEnabled bool `json:"sms_enabled"` // always sent: false disables text messages
}

// CommunicationSettings returns how the service contacts the patient of an order: GET
// /v3/order/{order_id}/communication_settings.
func (s *OrdersService) CommunicationSettings(ctx context.Context, orderID uuid.UUID, opts ...CallOption) (*CommunicationSettings, error) {
	return call(ctx, coreOf(s), new(CommunicationSettings), request{op: opCommunicationSettings, ids: []string{orderID.String()}}, opts)
}

// UpdateCommunicationSettings changes how the service contacts the patient of an order: PATCH
// /v3/order/{order_id}/communication_settings.
func (s *OrdersService) UpdateCommunicationSettings(ctx context.Context, orderID uuid.UUID, body UpdateCommunicationSettingsBody, opts ...CallOption) (*CommunicationSettings, error) {
	r := request{op: opUpdateCommunicationSettings, ids: []string{orderID.String()}, body: &body}
	return call(ctx, coreOf(s), new(CommunicationSettings), r, opts)
}

// SimulateParams controls [OrdersService.Simulate]. The zero value simulates an order up to normal
// results.
type SimulateParams struct {
	FinalStatus OrderStatus // where the simulation stops; empty for the last status
	// Delay is how long the service waits, nil for the default. Its unit is not documented. The
	// embedded service uses seconds.
	Delay *int64
	Flags SimulationFlags // properties of the simulated results
}

func (p SimulateParams) query() queryValues {
	q := newQuery()
	q.setString("final_status", string(p.FinalStatus))
	if p.Delay != nil {
		q.Set("delay", strconv.FormatInt(*p.Delay, 10))
	}
	return q
}

// SimulationFlags describes the results of a simulated order. See [SimulateParams].
type SimulationFlags struct {
	Interpretation Interpretation `json:"interpretation,omitzero"` // normal if empty
	ResultTypes    []ResultType   `json:"result_types,omitzero"`   // types of results; all types if nil
	// HasMissingResults is whether the results lack biomarkers, nil for the default.
	HasMissingResults *bool `json:"has_missing_results,omitzero"`
}

// Simulate advances an order through its statuses: POST /v3/order/{order_id}/test. It exists in
// sandbox environments only.
//
// A nil error means that the service has accepted the simulation, not how far it leads: call
// [OrdersService.Get] to read the status. These observations of the sandbox are not documented, and
// the embedded service follows them:
//
//   - The first simulation of a new order leads to requisition_created, whatever FinalStatus is.
//     Call Simulate again to continue.
//   - An at-home order ignores simulations after that, until an appointment is booked.
//   - A walk-in order is completed without partial results.
//   - With a delay, the statuses follow when the order is read after it, not on their own.
//
// A test kit that is not registered stops before the registration, and an order that is completed
// may stay as it is.
func (s *OrdersService) Simulate(ctx context.Context, orderID uuid.UUID, params SimulateParams, opts ...CallOption) error {
	r := request{op: opSimulateOrder, ids: []string{orderID.String()}, query: params, body: &params.Flags}
	return callEmpty(ctx, coreOf(s), r, opts)
}
