// OrdersService: the bodies and methods that import, create, change, read and list orders.

package labhealth

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// OrdersService provides access to the team's lab orders. See [Client.Orders].
type OrdersService struct{ core *core }

const (
	opImportOrder = "POST /v3/order/import"
	opCreateOrder = "POST /v3/order"
	opUpdateOrder = "PATCH /v3/order/{order_id}"
	opGetOrder    = "GET /v3/order/{order_id}"
	opListOrders  = "GET /orders"
)

// ImportOrderBody is the request body of [OrdersService.Import].
type ImportOrderBody struct {
	Redacted

	// UserID is the service's ID of the user.
	UserID      uuid.UUID       `json:"user_id"`
	BillingType Billing         `json:"billing_type"` // who pays
	OrderSet    OrderSetRequest `json:"order_set"`    // what is ordered
	// CollectionMethod is how the sample was collected.
	CollectionMethod LabTestCollectionMethod `json:"collection_method"`
	// Physician is nil if there is none.
	Physician      *PhysicianCreateRequest      `json:"physician,omitzero"`
	PatientDetails PatientDetailsWithValidation `json:"patient_details"` // the patient
	// PatientAddress is the patient's address.
	PatientAddress PatientAddress `json:"patient_address"`
	// SampleID is the ID of the sample. No two orders may have the same. Source of the rule: public
	// API reference only.
	SampleID     string     `json:"sample_id"`
	LabAccountID *uuid.UUID `json:"lab_account_id,omitzero"` // nil for the team's default account
}

// OrderSetRequest is the set of tests to order. Every field is optional. An empty set is sent as
// {}.
type OrderSetRequest struct {
	LabTestIDs   []uuid.UUID `json:"lab_test_ids,omitzero"`   // IDs of lab tests
	AddOn        *AddOnOrder `json:"add_on,omitzero"`         // additional markers
	LabAccountID *uuid.UUID  `json:"lab_account_id,omitzero"` // nil for the team's default account
}

// AddOnOrder selects additional markers, by the service's IDs or by the lab's codes.
type AddOnOrder struct {
	MarkerIDs   []int64  `json:"marker_ids,omitzero"`   // IDs of markers
	ProviderIDs []string `json:"provider_ids,omitzero"` // the lab's codes of markers
}

// CreateOrderBody is the request body of [OrdersService.Create]. Source of all but OrderSet,
// LabTestID and the rule of ActivateBy: public API reference only.
type CreateOrderBody struct {
	Redacted

	// UserID is the service's ID of the user.
	UserID         uuid.UUID                    `json:"user_id"`
	PatientDetails PatientDetailsWithValidation `json:"patient_details"`    // the patient
	PatientAddress PatientAddressWithValidation `json:"patient_address"`    // the patient's address
	OrderSet       *OrderSetRequest             `json:"order_set,omitzero"` // what is ordered
	// LabTestID is the ordered lab test, if there is only one.
	//
	// Deprecated: use OrderSet.LabTestIDs.
	LabTestID *uuid.UUID `json:"lab_test_id,omitzero"`
	// CollectionMethod is required with an add-on. If it is empty, the collection method of the lab
	// test is used.
	CollectionMethod LabTestCollectionMethod `json:"collection_method,omitzero"`
	Physician        *PhysicianCreateRequest `json:"physician,omitzero"` // nil if there is none
	// Priority is omitted if false. For some labs, true means a STAT order.
	Priority    bool      `json:"priority,omitzero"`
	BillingType Billing   `json:"billing_type,omitzero"` // client_bill if empty
	ICDCodes    []string  `json:"icd_codes,omitzero"`    // diagnosis codes
	Consents    []Consent `json:"consents,omitzero"`     // the patient's consents
	// ActivateBy is the date on which the order is processed, nil to process it immediately. Only
	// an order that was created with a date can be rescheduled or released.
	ActivateBy *Date `json:"activate_by,omitzero"`
	// HealthInsurance is nil if there is none.
	//
	// Deprecated: no replacement is named. Source: public API reference only.
	HealthInsurance *HealthInsuranceCreateRequest `json:"health_insurance,omitzero"`
	// AoEAnswers answers the questions of the markers: see [LabTestsService.MarkersOfOrderSet].
	AoEAnswers  []AoEAnswer `json:"aoe_answers,omitzero"`
	Passthrough *string     `json:"passthrough,omitzero"` // returned unchanged with the order
	// ClinicalNotes has at most 1000 characters.
	ClinicalNotes *string `json:"clinical_notes,omitzero"`
	// LabAccountID is nil for the team's default account.
	LabAccountID *uuid.UUID `json:"lab_account_id,omitzero"`
	// CreatorMemberID is the ID of the team member who creates the order.
	CreatorMemberID *uuid.UUID `json:"creator_member_id,omitzero"`
}

// Consent records a consent of the patient. Source: public API reference only.
type Consent struct {
	ConsentType ConsentType `json:"consentType"` // what the patient agreed to
	// Version is the version of the document, "1.0" if empty.
	Version       string     `json:"version,omitzero"`
	TimeOfConsent *time.Time `json:"timeOfConsent,omitzero"` // nil if not given
}

// AoEAnswer answers a question that a marker asks at order entry. Source: public API reference
// only.
type AoEAnswer struct {
	Redacted

	MarkerID   int64 `json:"marker_id"`   // ID of the marker that asks
	QuestionID int64 `json:"question_id"` // ID of the question
	// Answer is the code of an [AoEAnswerOption], free text, or a number as a string.
	Answer string `json:"answer"`
}

// UpdateOrderBody is the request body of [OrdersService.Update].
type UpdateOrderBody struct {
	// ActivateBy is the date on which the order is dispatched to the lab: today or later. [Null]
	// clears a scheduled date and dispatches the order immediately. The zero value is invalid,
	// because it would change nothing.
	ActivateBy Nullable[Date] `json:"activate_by,omitzero"`
}

// Validate checks the request against the interface specification and the public API reference. Its
// error, if not nil, is a *[ValidationError] that lists every invalid field. [OrdersService.Import]
// calls it.
func (b ImportOrderBody) Validate() error { return validate(&b) }

func (b *ImportOrderBody) validate(v *validator) {
	v.requiredID("user_id", b.UserID)
	v.required("billing_type", string(b.BillingType))
	v.within("order_set", func() { b.OrderSet.validate(v) })
	v.required("collection_method", string(b.CollectionMethod))
	v.within("physician", func() { b.Physician.validate(v) })
	v.within("patient_details", func() { b.PatientDetails.validate(v) })
	v.within("patient_address", func() {
		a := &b.PatientAddress
		v.required("receiver_name", a.ReceiverName)
		v.address(a.FirstLine, a.City, a.State, a.Zip, a.Country, a.AccessNotes)
	})
	v.required("sample_id", b.SampleID)
	v.optionalID("lab_account_id", b.LabAccountID)
}

// Validate checks the request against the interface specification and the public API reference. Its
// error, if not nil, is a *[ValidationError] that lists every invalid field. [OrdersService.Create]
// calls it.
func (b CreateOrderBody) Validate() error { return validate(&b) }

func (b *CreateOrderBody) validate(v *validator) {
	v.requiredID("user_id", b.UserID)
	v.within("patient_details", func() { b.PatientDetails.validate(v) })
	v.within("patient_address", func() { b.PatientAddress.validate(v) })
	v.within("order_set", func() { b.OrderSet.validate(v) })
	v.optionalID("lab_test_id", b.LabTestID)
	v.within("physician", func() { b.Physician.validate(v) })
	v.within("health_insurance", func() { b.HealthInsurance.validate(v) })
	v.consents(b.Consents)
	if b.ActivateBy != nil { // a past date is valid: only an update is documented to reject it
		v.date("activate_by", *b.ActivateBy)
	}
	v.optionalID("lab_account_id", b.LabAccountID)
	v.optionalID("creator_member_id", b.CreatorMemberID)
}

func (v *validator) consents(consents []Consent) {
	v.within("consents", func() {
		for i, c := range consents {
			v.within(strconv.Itoa(i), func() { v.required("consentType", string(c.ConsentType)) })
		}
	})
}

func (s *OrderSetRequest) validate(v *validator) {
	if s == nil {
		return
	}
	v.within("lab_test_ids", func() {
		for i, id := range s.LabTestIDs {
			v.optionalID(strconv.Itoa(i), &id)
		}
	})
	v.optionalID("lab_account_id", s.LabAccountID)
}

// Validate checks the request against the interface specification and the public API reference. Its
// error, if not nil, is a *[ValidationError] that lists every invalid field. [OrdersService.Update]
// calls it.
func (b UpdateOrderBody) Validate() error { return validate(&b) }

func (b *UpdateOrderBody) validate(v *validator) {
	if d, ok := b.ActivateBy.Get(); ok {
		if v.date("activate_by", d) && d.Compare(earliestToday()) < 0 {
			v.add("activate_by", "value_error", "must be today or later")
		}
	} else if !b.ActivateBy.IsNull() {
		v.add("activate_by", "missing", "must be set: a date, or Null to release the order")
	}
}

// Import creates an order for a sample that already exists: POST /v3/order/import.
//
// Experimental: the endpoint is in closed beta. A team without access gets an *[APIError] whose
// status and detail are not documented.
//
// It is retried only if no attempt can have been processed. If the outcome is [OutcomeUnknown],
// look for the sample ID among the user's orders, which [OrdersService.All] lists, before you
// import again.
//
// What to know before the first import. Source: public API reference only.
//
//   - The lab identifies its results by SampleID: the requisition or control number at Labcorp, the
//     lab's reference ID at Quest. With another ID the service accepts the order, but its results
//     never arrive. A duplicate is rejected with an *[APIError].
//   - The new order's status is requisition_bypassed. The order goes on like one with
//     requisition_created, but has no requisition: [OrdersService.RequisitionPDF] fails.
//   - The patient gets no message about the import, but messages about later events: see
//     [OrdersService.UpdateCommunicationSettings].
//   - Physician is required if the lab account is delegated: see [LabAccountDelegatedFlow].
//     LabAccountID may be omitted if the team has a default account. The account may still be
//     pending.
//   - Labs validate the address, the NPI and the physician's licensed states; the service does not:
//     see [ImportOrderBody.Warnings].
func (s *OrdersService) Import(ctx context.Context, body ImportOrderBody, opts ...CallOption) (*PostOrderResponse, error) {
	return call(ctx, coreOf(s), new(PostOrderResponse), request{op: opImportOrder, body: &body}, opts)
}

// Create places a new order: POST /v3/order. For the sources of its body, see [CreateOrderBody].
//
// It is retried only if no attempt can have been processed, or with [WithIdempotencyKey]. Use a new
// key for each order: for a used key the service returns the first outcome again. If the outcome is
// [OutcomeUnknown], repeat a call that had a key, with its key and the same body. Without a key,
// look for the order among those of the user first.
func (s *OrdersService) Create(ctx context.Context, body CreateOrderBody, opts ...CallOption) (*PostOrderResponse, error) {
	r := request{op: opCreateOrder, body: &body, repeatable: true}
	return call(ctx, coreOf(s), new(PostOrderResponse), r, opts)
}

// Update changes or clears the date on which an order is processed: PATCH /v3/order/{order_id}. The
// service accepts it only while the order's low-level status is ordered or awaiting_registration,
// and only for orders that were created with a date: see [Order.Reschedulable]. Otherwise it
// responds with 400. [OrdersService.Reschedule] and [OrdersService.Release] are simpler. Source of
// the status: public API reference only.
func (s *OrdersService) Update(ctx context.Context, orderID uuid.UUID, body UpdateOrderBody, opts ...CallOption) (*PostOrderResponse, error) {
	if body.ActivateBy.IsZero() { // nothing to send, even with WithoutValidation
		return nil, withOp(opUpdateOrder, body.Validate())
	}
	r := request{op: opUpdateOrder, ids: []string{orderID.String()}, body: &body}
	return call(ctx, coreOf(s), new(PostOrderResponse), r, opts)
}

// Reschedule sets the date on which a scheduled order is dispatched to the lab: today or later.
// Local validation accepts a date that is today in any time zone. See [OrdersService.Update]. The
// date is not that of an appointment, which [AppointmentsService.Reschedule] moves.
func (s *OrdersService) Reschedule(ctx context.Context, orderID uuid.UUID, date Date, opts ...CallOption) (*PostOrderResponse, error) {
	return s.Update(ctx, orderID, UpdateOrderBody{ActivateBy: Value(date)}, opts...)
}

// Release clears the date of a scheduled order, so that it is dispatched to the lab immediately.
// See [OrdersService.Update].
func (s *OrdersService) Release(ctx context.Context, orderID uuid.UUID, opts ...CallOption) (*PostOrderResponse, error) {
	return s.Update(ctx, orderID, UpdateOrderBody{ActivateBy: Null[Date]()}, opts...)
}

// Get returns one order: GET /v3/order/{order_id}. The error for an unknown order matches
// [ErrNotFound]. Source: public API reference only.
func (s *OrdersService) Get(ctx context.Context, orderID uuid.UUID, opts ...CallOption) (*Order, error) {
	return call(ctx, coreOf(s), new(Order), request{op: opGetOrder, ids: []string{orderID.String()}}, opts)
}

// ListOrdersParams selects orders. Zero fields are not sent. A deployment that does not support a
// parameter returns all orders, so check the returned orders if a wrong match would do harm.
//
// Times are sent as date-times with their offset. The service also accepts bare dates, which
// [WithQuery] can send: WithQuery("start_date", "2026-01-31"). Source of all but Interpretation:
// public API reference only.
type ListOrdersParams struct {
	Redacted

	Interpretation Interpretation // normal, abnormal or critical results

	UserID                uuid.UUID                 // orders of one user
	OrderIDs              []uuid.UUID               // orders with these IDs
	OrderTransactionID    uuid.UUID                 // orders of one transaction
	Status                []OrderLowLevelStatus     // orders with one of these statuses
	OrderType             []LabTestCollectionMethod // orders with one of these collection methods
	OrderActivationTypes  []OrderActivationType     // orders that are current, or scheduled
	IsCritical            *bool                     // orders with, or without, critical results
	StartDate             time.Time                 // orders created since this time
	EndDate               time.Time                 // orders created until this time
	UpdatedStartDate      time.Time                 // orders updated since this time
	UpdatedEndDate        time.Time                 // orders updated until this time
	SearchInput           string                    // free text
	PatientName           string                    // orders of patients with this name
	ShippingRecipientName string                    // orders sent to recipients with this name
	// OrderKey is the sort key: "created_at", "patient_name" or "last_status".
	OrderKey       string
	OrderDirection string // "asc" or "desc"

	Page int // page number; the first page is 1, the default
	Size int // orders per page, 1 to 100; the service's default is 50
}

func (p ListOrdersParams) validate(v *validator) {
	v.validIDs("order_ids", p.OrderIDs)
	v.time("start_date", p.StartDate)
	v.time("end_date", p.EndDate)
	v.time("updated_start_date", p.UpdatedStartDate)
	v.time("updated_end_date", p.UpdatedEndDate)
	v.page(p.Page, p.Size)
}

func (p ListOrdersParams) query() queryValues {
	q := newQuery()
	q.setString("interpretation", string(p.Interpretation))
	q.setID("user_id", p.UserID)
	q.addIDs("order_ids", p.OrderIDs)
	q.setID("order_transaction_id", p.OrderTransactionID)
	addStrings(q, "status", p.Status)
	addStrings(q, "order_type", p.OrderType)
	addStrings(q, "order_activation_types", p.OrderActivationTypes)
	q.setBool("is_critical", p.IsCritical)
	q.setTime("start_date", p.StartDate)
	q.setTime("end_date", p.EndDate)
	q.setTime("updated_start_date", p.UpdatedStartDate)
	q.setTime("updated_end_date", p.UpdatedEndDate)
	q.setString("search_input", p.SearchInput)
	q.setString("patient_name", p.PatientName)
	q.setString("shipping_recipient_name", p.ShippingRecipientName)
	q.setString("order_key", p.OrderKey)
	q.setString("order_direction", p.OrderDirection)
	q.setPage(p.Page, p.Size)
	return q
}

// OrderPage is one page of orders: the response of [OrdersService.List]. A response that is a bare
// list is decoded as {"orders": […]}, which RawJSON returns.
type OrderPage struct {
	Orders []Order `json:"orders" jsonread:"own"` // the orders of the page
	// Total is the number of orders on all pages, nil if not reported.
	Total *int64 `json:"total,omitzero"`
	Page  *int64 `json:"page,omitzero"` // page number, nil if not reported
	Size  *int64 `json:"size,omitzero"` // orders per page, nil if not reported

	RawObject `json:"-"`
}

func (p *OrderPage) verify() error { return requireList(p.Orders) }

func (p *OrderPage) numbered() (items any, reported pageNumbers) {
	return p.Orders, pageNumbers{number: p.Page, size: p.Size, total: p.Total}
}

// fromList omits the total, because there may be more orders.
func (*OrderPage) fromList(document []byte, _ []json.RawMessage) []byte {
	return fmt.Appendf(nil, `{"orders":%s}`, document)
}

// List returns one page of the team's orders: GET /orders. Some deployments serve it at /v3/orders:
// see [WithPath]. Source of the other path: public API reference only.
func (s *OrdersService) List(ctx context.Context, params ListOrdersParams, opts ...CallOption) (*OrderPage, error) {
	return call(ctx, coreOf(s), new(OrderPage), request{op: opListOrders, query: params}, opts)
}

// All returns an iterator over the orders, page by page, starting at params.Page. It holds one page
// at a time, and each range over it starts again. Iteration stops at the first error. The iterator
// returns an error if the service repeats a page or ignores the page number.
//
// Orders that are created or change during the iteration can move others between pages. When the
// total becomes smaller, because orders no longer match, the iterator reads the affected pages
// again and skips the last thousand orders that it has returned. In all other cases an order may be
// returned twice, or not at all.
//
// A page that is shorter than the page size is no error, nor are fewer orders than the total that
// the service reports. If the service does not report the total, the first page that is empty or
// shorter than the page size is the last one. A service that returns all orders as one list for
// every page is supported too, at the cost of a second request. If that list has exactly as many
// orders as the page size, the iterator returns an error after the last one, because it cannot
// determine whether there are more.
func (s *OrdersService) All(ctx context.Context, params ListOrdersParams, opts ...CallOption) iter.Seq2[*Order, error] {
	id := func(o *Order) uuid.UUID { return o.ID }
	return numberedPages(ctx, opts, opListOrders, params.Page, params.Size, id, func(ctx context.Context, number int, opts []CallOption) (numberedPage, error) {
		params := params
		params.Page = number
		return s.List(ctx, params, opts...)
	})
}
