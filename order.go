package labhealth

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// PostOrderResponse is the answer of [OrdersService.Import], [OrdersService.Create] and [OrdersService.Update].
type PostOrderResponse struct {
	// Order is the order as it is now. The answer of an update may hold only a few of its members, such as ID, TeamID, UserID,
	// ActivateBy and Status; [RawObject.RawJSON] shows what came.
	Order Order `json:"order"`
	// Status is a word such as "success".
	Status string `json:"status"`
	// Message is meant for people.
	Message string `json:"message"`

	RawObject `json:"-"`
}

// LogValue shows what [Order.LogValue] shows of the order.
func (v PostOrderResponse) LogValue() slog.Value {
	return slog.StringValue("labhealth.PostOrderResponse{" + v.Order.LogValue().String() + ", redacted}")
}

// Format prints what [PostOrderResponse.LogValue] returns.
func (v PostOrderResponse) Format(s fmt.State, _ rune) { printLogValue(s, v) }

func (r *PostOrderResponse) verify() error { return r.Order.verify() }

// fromList accepts a list of one order.
func (*PostOrderResponse) fromList(_ []byte, elements []json.RawMessage) []byte {
	if len(elements) == 1 && elements[0][0] == '{' {
		return elements[0]
	}
	return nil
}

// Order is a lab order, the specification's ClientFacingOrder.
//
// It holds patient data: printed or logged, it shows its id and status only. Encoding it to JSON is complete.
type Order struct {
	// ID is the order's id.
	ID uuid.UUID `json:"id"`
	// UserID is the service's id of the user.
	UserID uuid.UUID `json:"user_id"`
	// TeamID is the team's id.
	TeamID uuid.UUID `json:"team_id"`
	// PatientDetails may be nil.
	PatientDetails *OrderPatientDetails `json:"patient_details"`
	// PatientAddress may be nil.
	PatientAddress *OrderPatientAddress `json:"patient_address"`
	// LabTest is what is tested.
	LabTest LabTest `json:"lab_test"`
	// Details depend on the collection method.
	Details OrderDetails `json:"details"`
	// SampleID is the id of the sample, nil if there is none yet. It is the key by which an imported order is found again.
	SampleID *string `json:"sample_id"`
	// Notes may be nil.
	Notes *string `json:"notes"`
	// ClinicalNotes are nil if there are none.
	ClinicalNotes *string `json:"clinical_notes,omitzero"`
	// CreatedAt is when the order was created.
	CreatedAt time.Time `json:"created_at"`
	// UpdatedAt is when the order last changed.
	UpdatedAt time.Time `json:"updated_at"`
	// Events is the order's history. A status may occur more than once.
	Events []OrderEvent `json:"events"`
	// Status is the top-level part of the current status, nil if it did not come.
	//
	// Deprecated: use LastEvent, or [Order.CurrentStatus].
	Status *OrderTopLevelStatus `json:"status,omitzero"`
	// LastEvent is the latest event of the order's life. It is zero if it did not come; [Order.CurrentStatus] then looks at
	// Events.
	LastEvent OrderEvent `json:"last_event"`
	// Physician is nil if none is named.
	Physician *OrderPhysician `json:"physician,omitzero"`
	// HealthInsuranceID may be nil.
	HealthInsuranceID *uuid.UUID `json:"health_insurance_id"`
	// RequisitionFormURL is a signed address, valid for 7 days: whoever has it can read the requisition. It may be nil.
	//
	// Deprecated: use [OrdersService.RequisitionPDF].
	RequisitionFormURL *string `json:"requisition_form_url"`
	// Priority is false by default; for some labs true means a STAT order.
	Priority bool `json:"priority" default:"false"`
	// ShippingDetails belong to testkit orders that are not registered yet; nil otherwise.
	ShippingDetails *ShippingAddress `json:"shipping_details"`
	// ActivateBy is the date on which the order is to be processed, nil if it is processed at once.
	ActivateBy *Date `json:"activate_by,omitzero"`
	// Passthrough is the text the application sent along, nil if none.
	Passthrough *string `json:"passthrough,omitzero"`
	// BillingType is client_bill by default.
	BillingType Billing `json:"billing_type" default:"client_bill"`
	// ICDCodes are diagnosis codes, nil if there are none.
	ICDCodes []string `json:"icd_codes,omitzero"`
	// HasABN says whether an Advanced Beneficiary Notice form exists.
	HasABN bool `json:"has_abn"`
	// Interpretation is that of the whole result, nil while there is none.
	Interpretation *Interpretation `json:"interpretation,omitzero"`
	// HasMissingResults says whether the result lacks biomarkers, nil while that is not known.
	HasMissingResults *bool `json:"has_missing_results,omitzero"`
	// ExpectedResultByDate is when results come in the common case, nil if not known.
	ExpectedResultByDate *Date `json:"expected_result_by_date,omitzero"`
	// WorstCaseResultByDate is when results come at the latest, nil if not known.
	WorstCaseResultByDate *Date `json:"worst_case_result_by_date,omitzero"`
	// Origin says whether the order is a first one, a redraw or a recreation; nil if not known.
	Origin *OrderOrigin `json:"origin,omitzero"`
	// OrderTransaction ties an order to its redraws and recreations; nil if not known.
	OrderTransaction *OrderTransaction `json:"order_transaction,omitzero"`

	RawObject `json:"-"`
}

// LogValue shows the order's id and status.
func (v Order) LogValue() slog.Value {
	return slog.StringValue("labhealth.Order{" + v.ID.String() + " " + statusText(v.CurrentStatus()) + ", redacted}")
}

// statusText shows a status that looks like one: it comes from outside, and any text may come.
func statusText(s OrderStatus) string {
	if len(s) > 128 || strings.Trim(string(s), codeChars+".") != "" {
		return "?"
	}
	return string(s)
}

// Format prints what [Order.LogValue] returns.
func (v Order) Format(s fmt.State, _ rune) { printLogValue(s, v) }

// verify requires an ID: nothing else proves that there is an order.
func (o *Order) verify() error { return requireID(o.ID, "order") }

// CurrentStatus returns the status of LastEvent or, if that did not come, of the newest event by CreatedAt (the later one in
// the list if two are of the same time). It is empty if there are no events.
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

// Reschedulable reports whether the order can be rescheduled or released: it has an ActivateBy, and its
// current status is modifiable. An order that was created without activate_by, for immediate
// processing, cannot be rescheduled, whatever its status. It is false if the order has no status, as
// in the reduced response of an update. The service decides; an order may have changed since.
func (o *Order) Reschedulable() bool {
	return o.ActivateBy != nil && o.CurrentStatus().Modifiable()
}

// OrderEvent is a step in an order's life.
type OrderEvent struct {
	// ID is the event's id.
	ID int64 `json:"id"`
	// CreatedAt is when the order reached the status.
	CreatedAt time.Time `json:"created_at"`
	// Status is the order's status from then on.
	Status OrderStatus `json:"status"`
	// StatusDetail describes the status further; nil if there is nothing to add. Nothing depends on it.
	StatusDetail *OrderStatusDetail `json:"status_detail,omitzero"`

	RawObject `json:"-"`
}

// OrderPhysician is the physician an order names. It redacts itself when printed.
type OrderPhysician struct {
	Redacted[OrderPhysician]

	FirstName string `json:"first_name"` // given name
	LastName  string `json:"last_name"`  // family name
	NPI       string `json:"npi"`        // National Provider Identifier

	RawObject `json:"-"`
}

// OrderDetails is what belongs to one way of collecting the sample.
type OrderDetails struct {
	Redacted[OrderDetails]

	// Type tells what Data holds. Types other than the constants occur.
	Type LabTestCollectionMethod `json:"type"`
	// Data is a *WalkInTestOrder, *TestkitOrder, *AtHomePhlebotomyOrder or *OnSiteCollectionOrder, or an *UnknownOrderDetails if
	// Type is none of theirs. It is nil if the service sent null or nothing.
	Data OrderDetailsData `json:"data"`

	RawObject `json:"-"`
}

// OrderDetailsData is a [*WalkInTestOrder], [*TestkitOrder], [*AtHomePhlebotomyOrder], [*OnSiteCollectionOrder] or
// [*UnknownOrderDetails]: see [OrderDetails.Data].
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

// WalkInTestOrder is the details of an order whose sample is taken at a patient service centre.
type WalkInTestOrder struct {
	ID            uuid.UUID  `json:"id"`             // id of the details
	CreatedAt     time.Time  `json:"created_at"`     // when they were created
	UpdatedAt     time.Time  `json:"updated_at"`     // when they last changed
	AppointmentID *uuid.UUID `json:"appointment_id"` // nil if there is no appointment

	RawObject `json:"-"`
}

// TestkitOrder is the details of an order whose sample is taken with a kit that is sent to the patient.
type TestkitOrder struct {
	Redacted[TestkitOrder]

	ID        uuid.UUID `json:"id"`         // id of the details
	Shipment  *Shipment `json:"shipment"`   // nil if nothing is on its way yet
	CreatedAt time.Time `json:"created_at"` // when they were created
	UpdatedAt time.Time `json:"updated_at"` // when they last changed

	RawObject `json:"-"`
}

// AtHomePhlebotomyOrder is the details of an order whose sample is taken by a phlebotomist who comes to the patient.
type AtHomePhlebotomyOrder struct {
	ID            uuid.UUID  `json:"id"`             // id of the details
	AppointmentID *uuid.UUID `json:"appointment_id"` // nil if there is no appointment
	CreatedAt     time.Time  `json:"created_at"`     // when they were created
	UpdatedAt     time.Time  `json:"updated_at"`     // when they last changed

	RawObject `json:"-"`
}

// OnSiteCollectionOrder is the details of an order whose sample is taken where the customer is.
type OnSiteCollectionOrder struct {
	ID        uuid.UUID `json:"id"`         // id of the details
	CreatedAt time.Time `json:"created_at"` // when they were created
	UpdatedAt time.Time `json:"updated_at"` // when they last changed

	RawObject `json:"-"`
}

// UnknownOrderDetails is the details of a type this version does not know. [RawObject.RawJSON] has them, and encoding them to JSON
// gives the same text.
type UnknownOrderDetails struct {
	Redacted[UnknownOrderDetails]

	RawObject `json:"-"`
}

// Shipment is the way of a test kit. Outbound means to the customer, inbound to the lab. Every member but the id may be nil.
// It redacts itself when printed, because a tracking number leads to an address.
type Shipment struct {
	Redacted[Shipment]

	ID                     uuid.UUID `json:"id"`                       // the shipment's id
	OutboundTrackingNumber *string   `json:"outbound_tracking_number"` // the courier's number, to the customer
	OutboundTrackingURL    *string   `json:"outbound_tracking_url"`    // where to follow it
	InboundTrackingNumber  *string   `json:"inbound_tracking_number"`  // the courier's number, to the lab
	InboundTrackingURL     *string   `json:"inbound_tracking_url"`     // where to follow it
	OutboundCourier        *string   `json:"outbound_courier"`         // who carries it to the customer
	InboundCourier         *string   `json:"inbound_courier"`          // who carries it to the lab
	Notes                  *string   `json:"notes"`                    // remarks

	RawObject `json:"-"`
}

// OrderTransaction ties together an order and those that follow from it.
type OrderTransaction struct {
	ID     uuid.UUID              `json:"id"`     // the transaction's id
	Status OrderTransactionStatus `json:"status"` // active, completed or cancelled
	Orders []OrderInTransaction   `json:"orders"` // the orders, the one at hand included

	RawObject `json:"-"`
}

// OrderInTransaction is one order of a transaction.
type OrderInTransaction struct {
	ID                      uuid.UUID            `json:"id"`                          // the order's id
	CreatedAt               time.Time            `json:"created_at"`                  // when it was created
	UpdatedAt               time.Time            `json:"updated_at"`                  // when it last changed
	LowLevelStatus          *OrderLowLevelStatus `json:"low_level_status"`            // nil if not known
	LowLevelStatusCreatedAt *time.Time           `json:"low_level_status_created_at"` // when it reached that, nil if not known
	Origin                  *OrderOrigin         `json:"origin"`                      // nil if not known
	ParentID                *uuid.UUID           `json:"parent_id"`                   // the order it follows from, nil for the first

	RawObject `json:"-"`
}
