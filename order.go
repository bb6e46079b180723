// Order, its parts, and the union of its details.

package labhealth

import (
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// PostOrderResponse is the response of [OrdersService.Import], [OrdersService.Create],
// [OrdersService.Update] and of the other methods that create or change an order.
//
// Printed or logged, it shows only the ID and the status of the order.
type PostOrderResponse struct {
	// Order is the order after the call. The response of an update may hold only some of its
	// fields, such as ID, TeamID, UserID, ActivateBy and Status; [RawObject.RawJSON] shows which
	// were received.
	Order Order `json:"order"`
	// Status describes the result of the call, such as "success".
	Status string `json:"status"`
	// Message is a human-readable message.
	Message string `json:"message"`

	RawObject `json:"-"`
}

// LogValue returns the ID and the status of the order.
func (v PostOrderResponse) LogValue() slog.Value {
	return slog.StringValue("labhealth.PostOrderResponse{" + v.Order.LogValue().String() + ", redacted}")
}

func (r *PostOrderResponse) verify() error { return r.Order.verify() }

// fromList accepts a list of one order.
func (*PostOrderResponse) fromList(_ []byte, elements []json.RawMessage) []byte {
	if len(elements) == 1 && elements[0][0] == '{' {
		return elements[0]
	}
	return nil
}

// Order is a lab order: the ClientFacingOrder of the interface specification.
//
// Printed or logged, it shows only its ID and status. Its JSON encoding is not redacted.
type Order struct {
	// ID is the order ID.
	ID uuid.UUID `json:"id"`
	// UserID is the service's ID of the user.
	UserID uuid.UUID `json:"user_id"`
	// TeamID is the team ID.
	TeamID uuid.UUID `json:"team_id"`
	// PatientDetails may be nil.
	PatientDetails *OrderPatientDetails `json:"patient_details"`
	// PatientAddress may be nil.
	PatientAddress *OrderPatientAddress `json:"patient_address"`
	// LabTest is the ordered test or panel.
	LabTest LabTest `json:"lab_test"`
	// Details holds what depends on the collection method.
	Details OrderDetails `json:"details"`
	// SampleID is the ID of the sample, nil if there is none yet. It identifies an imported order.
	SampleID *string `json:"sample_id"`
	// Notes may be nil.
	Notes *string `json:"notes"`
	// ClinicalNotes is nil if there are none.
	ClinicalNotes *string `json:"clinical_notes,omitzero"`
	// CreatedAt is when the order was created.
	CreatedAt time.Time `json:"created_at"`
	// UpdatedAt is when the order was last changed.
	UpdatedAt time.Time `json:"updated_at"`
	// Events is the order's history. A status may occur more than once.
	Events []OrderEvent `json:"events"`
	// Status is the top-level part of the current status, nil if the response has none.
	//
	// Deprecated: use LastEvent, or [Order.CurrentStatus].
	Status *OrderTopLevelStatus `json:"status,omitzero"`
	// LastEvent is the latest event. It is zero if the response has none; [Order.CurrentStatus]
	// then uses Events.
	LastEvent OrderEvent `json:"last_event"`
	// Physician is the ordering physician, nil if there is none.
	Physician *OrderPhysician `json:"physician,omitzero"`
	// HealthInsuranceID may be nil.
	HealthInsuranceID *uuid.UUID `json:"health_insurance_id"`
	// RequisitionFormURL is a signed URL, valid for 7 days. Anyone with the URL can read the
	// requisition. It may be nil.
	//
	// Deprecated: use [OrdersService.RequisitionPDF].
	RequisitionFormURL *string `json:"requisition_form_url"`
	// ShippingDetails is set for testkit orders that are not registered yet, and nil otherwise.
	ShippingDetails *ShippingAddress `json:"shipping_details"`
	// ActivateBy is the date on which the order is processed, nil if it is processed immediately.
	ActivateBy *Date `json:"activate_by,omitzero"`
	// Passthrough is the string that the application sent with the order, nil if there is none.
	Passthrough *string `json:"passthrough,omitzero"`
	// BillingType is client_bill by default.
	BillingType Billing `json:"billing_type" default:"client_bill"`
	// ICDCodes is the list of diagnosis codes, nil if there are none.
	ICDCodes []string `json:"icd_codes,omitzero"`
	// HasABN reports whether an Advanced Beneficiary Notice form exists.
	HasABN bool `json:"has_abn"`
	// Priority is false by default. For some labs, true means a STAT order.
	Priority bool `json:"priority" default:"false"`
	// Interpretation summarizes all results, nil if there is none yet.
	Interpretation *Interpretation `json:"interpretation,omitzero"`
	// HasMissingResults reports whether the results lack biomarkers, nil while unknown.
	HasMissingResults *bool `json:"has_missing_results,omitzero"`
	// ExpectedResultByDate is the date by which results are usually available, nil if unknown.
	ExpectedResultByDate *Date `json:"expected_result_by_date,omitzero"`
	// WorstCaseResultByDate is the latest date by which results are available, nil if unknown.
	WorstCaseResultByDate *Date `json:"worst_case_result_by_date,omitzero"`
	// Origin distinguishes initial orders, redraws and recreations. It is nil if unknown.
	Origin *OrderOrigin `json:"origin,omitzero"`
	// OrderTransaction links the order to its redraws and recreations. It is nil if unknown.
	OrderTransaction *OrderTransaction `json:"order_transaction,omitzero"`

	RawObject `json:"-"`
}

// LogValue returns the ID and the status of the order.
func (v Order) LogValue() slog.Value {
	return slog.StringValue("labhealth.Order{" + v.ID.String() + " " + printableStatus(v.CurrentStatus()) + ", redacted}")
}

// printableStatus returns s, or "?" if s does not have the form of a status with a known top-level
// part: the service may send any string, also a name.
func printableStatus(s OrderStatus) string {
	switch s.TopLevel() {
	case TopLevelReceived, TopLevelCollectingSample, TopLevelSampleWithLab, TopLevelCompleted, TopLevelCancelled, TopLevelFailed:
		if len(s) <= 128 && strings.Trim(string(s), "abcdefghijklmnopqrstuvwxyz_.") == "" {
			return string(s)
		}
	}
	if s == "" {
		return ""
	}
	return "?"
}

// verify requires an ID, because nothing else proves that the order exists.
func (o *Order) verify() error { return requireID(o.ID, "order") }

// CurrentStatus returns the status of LastEvent. If the response has no LastEvent, it returns the
// status of the newest event by CreatedAt, or of the later one in the list if two have the same
// time. It returns the empty string if there are no events.
func (o *Order) CurrentStatus() OrderStatus {
	if o.LastEvent.Status != "" {
		return o.LastEvent.Status
	}
	var newest OrderEvent
	for _, e := range o.Events {
		if e.Status != "" && !e.CreatedAt.Before(newest.CreatedAt) {
			newest = e
		}
	}
	return newest.Status
}

// Reschedulable reports whether the order can be rescheduled or released: it has an ActivateBy, and
// its current status is modifiable. An order that was created without activate_by, for immediate
// processing, cannot be rescheduled in any status. It is false if the order has no status, as in
// the reduced response of an update. The result is based on the received order: the service
// decides, and the order may have changed since.
func (o *Order) Reschedulable() bool {
	return o.ActivateBy != nil && o.CurrentStatus().Modifiable()
}

// Cancelable reports whether [OrdersService.Cancel] is documented for the current status of the
// order: before the sample is collected, at home also after the draw, and for a test kit only
// before it is shipped. Canceling a walk-in order does not cancel its appointment. The result is
// based on the received order: the service decides, and the order may have changed since. Source:
// public API reference only.
func (o *Order) Cancelable() bool {
	status := o.CurrentStatus()
	_, method, _ := status.parts()
	atHome := method == string(CollectionMethodAtHomePhlebotomy)
	switch status.LowLevel() {
	case LowLevelOrdered, LowLevelAwaitingRegistration, LowLevelRequisitionBypassed:
		return true
	case LowLevelRequisitionCreated: // of a test kit that is registered, only after it was shipped
		return !slices.ContainsFunc(o.Events, func(e OrderEvent) bool {
			return e.Status.LowLevel() == LowLevelRegistered || e.Status.LowLevel() == LowLevelTransitCustomer
		})
	case LowLevelAppointmentPending, LowLevelAppointmentScheduled, LowLevelAppointmentCancelled:
		return atHome || method == string(CollectionMethodWalkInTest)
	case LowLevelDrawCompleted:
		return atHome
	}
	return false
}

// Canceled reports whether the order was canceled: the top-level part of its current status is
// cancelled. For a reduced response without events, such as that of an update, it uses the
// deprecated Status.
func (o *Order) Canceled() bool { return o.topLevel() == TopLevelCancelled }

// HasResults reports whether the lab has reported results of the order, complete or partial, which
// [OrdersService.Results] returns. It is true if the order is completed or corrected, or has an
// event with such a status or with partial results, whatever has happened since: a redraw and an
// error of another sample do not withdraw results. It is false if the order is canceled. A result
// that arrives later, and one that corrects an earlier one, update the same results: fetch them
// again after each event. The documents do not say when results are available, so this is an
// inference from the names of the statuses.
func (o *Order) HasResults() bool {
	top := o.topLevel()
	if top == TopLevelCancelled {
		return false
	}
	hasResults := func(e OrderEvent) bool { return e.Status.hasResults() }
	return top == TopLevelCompleted || hasResults(o.LastEvent) || slices.ContainsFunc(o.Events, hasResults)
}

// hasResults reports whether an order that reached the status has results.
func (s OrderStatus) hasResults() bool {
	switch s.LowLevel() {
	case LowLevelPartialResults, LowLevelCompleted, LowLevelCorrected:
		return true
	}
	return s.TopLevel() == TopLevelCompleted
}

// topLevel returns the top-level part of the current status, also of a response without events.
func (o *Order) topLevel() OrderTopLevelStatus {
	if s := o.CurrentStatus(); s != "" || o.Status == nil {
		return s.TopLevel()
	}
	return *o.Status
}

// OrderEvent records that an order reached a status.
type OrderEvent struct {
	// ID is the event ID.
	ID int64 `json:"id"`
	// CreatedAt is when the order reached the status.
	CreatedAt time.Time `json:"created_at"`
	// Status is the status that the order reached.
	Status OrderStatus `json:"status"`
	// StatusDetail describes the status further, nil if there is no detail. It does not affect the
	// state of the order.
	StatusDetail *OrderStatusDetail `json:"status_detail,omitzero"`

	RawObject `json:"-"`
}

// OrderPhysician is the ordering physician of an [Order], or one of [TeamService.Physicians].
type OrderPhysician struct {
	FirstName string `json:"first_name"` // given name
	LastName  string `json:"last_name"`  // family name
	NPI       string `json:"npi"`        // National Provider Identifier

	RawObject `json:"-"`
}

// OrderDetails holds the details of an order that depend on its collection method.
type OrderDetails struct {
	// Type is the collection method, which determines the type of Data. Values other than the
	// constants occur.
	Type LabTestCollectionMethod `json:"type"`
	// Data is a *WalkInTestOrder, *TestkitOrder, *AtHomePhlebotomyOrder or *OnSiteCollectionOrder,
	// or an *UnknownOrderDetails if Type is any other value. It is nil if it is null or absent in
	// the response.
	Data OrderDetailsData `json:"data"`

	RawObject `json:"-"`
}

// OrderDetailsData is implemented by [*WalkInTestOrder], [*TestkitOrder], [*AtHomePhlebotomyOrder],
// [*OnSiteCollectionOrder] and [*UnknownOrderDetails]. See [OrderDetails].
//
//sumtype:decl
type OrderDetailsData interface{ isOrderDetailsData() }

func (*WalkInTestOrder) isOrderDetailsData()       {}
func (*TestkitOrder) isOrderDetailsData()          {}
func (*AtHomePhlebotomyOrder) isOrderDetailsData() {}
func (*OnSiteCollectionOrder) isOrderDetailsData() {}
func (*UnknownOrderDetails) isOrderDetailsData()   {}

var _ = jsonread.Union[OrderDetailsData]("type", (*UnknownOrderDetails)(nil), map[string]OrderDetailsData{
	string(CollectionMethodWalkInTest):       (*WalkInTestOrder)(nil),
	string(CollectionMethodTestkit):          (*TestkitOrder)(nil),
	string(CollectionMethodAtHomePhlebotomy): (*AtHomePhlebotomyOrder)(nil),
	string(CollectionMethodOnSiteCollection): (*OnSiteCollectionOrder)(nil),
})

// WalkInTestOrder holds the details of an order whose sample is collected at a patient service
// center.
type WalkInTestOrder struct {
	ID            uuid.UUID  `json:"id"`             // ID of the details
	CreatedAt     time.Time  `json:"created_at"`     // when the details were created
	UpdatedAt     time.Time  `json:"updated_at"`     // when the details were last changed
	AppointmentID *uuid.UUID `json:"appointment_id"` // nil if there is no appointment

	RawObject `json:"-"`
}

// TestkitOrder holds the details of an order whose sample is collected with a kit that is sent to
// the patient.
type TestkitOrder struct {
	ID        uuid.UUID `json:"id"`         // ID of the details
	Shipment  *Shipment `json:"shipment"`   // nil if there is no shipment yet
	CreatedAt time.Time `json:"created_at"` // when the details were created
	UpdatedAt time.Time `json:"updated_at"` // when the details were last changed

	RawObject `json:"-"`
}

// AtHomePhlebotomyOrder holds the details of an order whose sample is collected by a phlebotomist
// at the patient's home.
type AtHomePhlebotomyOrder struct {
	ID            uuid.UUID  `json:"id"`             // ID of the details
	AppointmentID *uuid.UUID `json:"appointment_id"` // nil if there is no appointment
	CreatedAt     time.Time  `json:"created_at"`     // when the details were created
	UpdatedAt     time.Time  `json:"updated_at"`     // when the details were last changed

	RawObject `json:"-"`
}

// OnSiteCollectionOrder holds the details of an order whose sample is collected at the customer's
// site.
type OnSiteCollectionOrder struct {
	ID        uuid.UUID `json:"id"`         // ID of the details
	CreatedAt time.Time `json:"created_at"` // when the details were created
	UpdatedAt time.Time `json:"updated_at"` // when the details were last changed

	RawObject `json:"-"`
}

// UnknownOrderDetails holds details of a type that this version does not support.
// [RawObject.RawJSON] returns them, and encoding them returns the same JSON.
type UnknownOrderDetails struct {
	RawObject `json:"-"`
}

// Shipment tracks a test kit in both directions: outbound to the customer and inbound to the lab.
// Every field but ID may be nil. Tracking numbers and URLs can reveal the patient's address.
type Shipment struct {
	ID                     uuid.UUID `json:"id"`                       // shipment ID
	OutboundTrackingNumber *string   `json:"outbound_tracking_number"` // to the customer
	// OutboundTrackingURL is the courier's tracking page.
	OutboundTrackingURL   *string `json:"outbound_tracking_url"`
	InboundTrackingNumber *string `json:"inbound_tracking_number"` // to the lab
	// InboundTrackingURL is the courier's tracking page.
	InboundTrackingURL *string `json:"inbound_tracking_url"`
	OutboundCourier    *string `json:"outbound_courier"` // courier to the customer
	InboundCourier     *string `json:"inbound_courier"`  // courier to the lab
	Notes              *string `json:"notes"`            // remarks

	RawObject `json:"-"`
}

// OrderTransaction groups an order with its redraws and recreations.
type OrderTransaction struct {
	ID     uuid.UUID              `json:"id"`     // transaction ID
	Status OrderTransactionStatus `json:"status"` // active, completed or cancelled
	Orders []OrderInTransaction   `json:"orders"` // all orders, including the current one

	RawObject `json:"-"`
}

// OrderInTransaction is one order of a transaction.
type OrderInTransaction struct {
	ID        uuid.UUID `json:"id"`         // order ID
	CreatedAt time.Time `json:"created_at"` // when the order was created
	UpdatedAt time.Time `json:"updated_at"` // when the order was last changed
	// LowLevelStatus is nil if unknown.
	LowLevelStatus *OrderLowLevelStatus `json:"low_level_status"`
	// LowLevelStatusCreatedAt is when the order reached LowLevelStatus, nil if unknown.
	LowLevelStatusCreatedAt *time.Time `json:"low_level_status_created_at"`
	// Origin is nil if unknown.
	Origin *OrderOrigin `json:"origin"`
	// ParentID is the order that this one follows, nil for the first.
	ParentID *uuid.UUID `json:"parent_id"`

	RawObject `json:"-"`
}
