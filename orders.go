package labhealth

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// OrdersService is the lab orders of the team: [Client.Orders].
type OrdersService struct{ core *core }

const (
	opImportOrder = "POST /v3/order/import"
	opCreateOrder = "POST /v3/order"
	opUpdateOrder = "PATCH /v3/order/{order_id}"
	opGetOrder    = "GET /v3/order/{order_id}"
	opListOrders  = "GET /orders"
)

// ImportOrderBody is the request of [OrdersService.Import]. It redacts itself when printed.
type ImportOrderBody struct {
	Redacted[ImportOrderBody]

	UserID           uuid.UUID                    `json:"user_id"`            // the service's id of the user
	BillingType      Billing                      `json:"billing_type"`       // who pays
	OrderSet         OrderSetRequest              `json:"order_set"`          // what is ordered
	CollectionMethod LabTestCollectionMethod      `json:"collection_method"`  // how the sample was taken
	Physician        *PhysicianCreateRequest      `json:"physician,omitzero"` // nil if none is named
	PatientDetails   PatientDetailsWithValidation `json:"patient_details"`    // whose sample it is
	PatientAddress   PatientAddress               `json:"patient_address"`    // where they live
	// SampleID is the ID of the sample. No two orders may have the same. Source of the rule: public API
	// reference only.
	SampleID     string     `json:"sample_id"`
	LabAccountID *uuid.UUID `json:"lab_account_id,omitzero"` // nil for the team's usual account
}

// OrderSetRequest is what is ordered. Every member is optional, and the empty set is sent as {}.
type OrderSetRequest struct {
	LabTestIDs   []uuid.UUID `json:"lab_test_ids,omitzero"`   // ids of lab tests
	AddOn        *AddOnOrder `json:"add_on,omitzero"`         // single markers on top
	LabAccountID *uuid.UUID  `json:"lab_account_id,omitzero"` // nil for the team's usual account
}

// AddOnOrder is single markers, by the service's ids or by the lab's.
type AddOnOrder struct {
	MarkerIDs   []int64  `json:"marker_ids,omitzero"`   // ids of markers
	ProviderIDs []string `json:"provider_ids,omitzero"` // the lab's codes of markers
}

// CreateOrderBody is the request of [OrdersService.Create]. It redacts itself when printed. Source of
// all but OrderSet, LabTestID and the rule of ActivateBy: public API reference only.
type CreateOrderBody struct {
	Redacted[CreateOrderBody]

	UserID         uuid.UUID                    `json:"user_id"`            // the service's id of the user
	PatientDetails PatientDetailsWithValidation `json:"patient_details"`    // whose sample is to be taken
	PatientAddress PatientAddressWithValidation `json:"patient_address"`    // where they live
	OrderSet       *OrderSetRequest             `json:"order_set,omitzero"` // what is ordered
	// LabTestID is what is ordered, if it is one lab test.
	//
	// Deprecated: use OrderSet.LabTestIDs.
	LabTestID        *uuid.UUID              `json:"lab_test_id,omitzero"`
	CollectionMethod LabTestCollectionMethod `json:"collection_method,omitzero"` // empty: that of the lab test; required with an add-on
	Physician        *PhysicianCreateRequest `json:"physician,omitzero"`         // nil if none is named
	Priority         bool                    `json:"priority,omitzero"`          // for some labs true means a STAT order
	BillingType      Billing                 `json:"billing_type,omitzero"`      // empty: client_bill
	ICDCodes         []string                `json:"icd_codes,omitzero"`         // diagnosis codes
	Consents         []Consent               `json:"consents,omitzero"`          // what the patient has agreed to
	// ActivateBy is the date on which the order is to be processed, nil to process it at once. Only an order that is created with
	// a date can be rescheduled or released.
	ActivateBy      *Date       `json:"activate_by,omitzero"`
	AoEAnswers      []AoEAnswer `json:"aoe_answers,omitzero"`       // answers to the questions of the markers
	Passthrough     *string     `json:"passthrough,omitzero"`       // text that comes back with the order
	ClinicalNotes   *string     `json:"clinical_notes,omitzero"`    // up to 1000 characters
	LabAccountID    *uuid.UUID  `json:"lab_account_id,omitzero"`    // nil for the team's usual account
	CreatorMemberID *uuid.UUID  `json:"creator_member_id,omitzero"` // who in the team creates the order
}

// Consent is something the patient has agreed to. Source: public API reference only.
type Consent struct {
	ConsentType   ConsentType `json:"consentType"`            // what
	Version       string      `json:"version,omitzero"`       // which version; empty: "1.0"
	TimeOfConsent *time.Time  `json:"timeOfConsent,omitzero"` // when
}

// AoEAnswer answers a question that a marker asks at order entry. It redacts itself when printed.
// Source: public API reference only.
type AoEAnswer struct {
	Redacted[AoEAnswer]

	MarkerID   int64  `json:"marker_id"`   // the marker that asks
	QuestionID int64  `json:"question_id"` // the question's id
	Answer     string `json:"answer"`      // the code of a chosen answer, free text, or a number as text
}

// UpdateOrderBody is the request of [OrdersService.Update].
type UpdateOrderBody struct {
	// ActivateBy is the date on which the order is dispatched to the lab: today or later. [Null] clears a scheduled date and
	// dispatches the order at once. The zero value would change nothing and is refused.
	ActivateBy Nullable[Date] `json:"activate_by,omitzero"`
}

// Validate returns everything in the request that the interface specification or the public API
// reference rules out, as a *[ValidationError]. [OrdersService.Import] calls it.
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

// Validate returns everything in the request that the interface specification or the public API
// reference rules out, as a *[ValidationError]. [OrdersService.Create] calls it.
func (b CreateOrderBody) Validate() error { return validate(&b) }

func (b *CreateOrderBody) validate(v *validator) {
	v.requiredID("user_id", b.UserID)
	v.within("patient_details", func() { b.PatientDetails.validate(v) })
	v.within("patient_address", func() {
		a := &b.PatientAddress
		v.address(a.FirstLine, a.City, a.State, a.Zip, a.Country, a.AccessNotes)
	})
	v.within("order_set", func() { b.OrderSet.validate(v) })
	v.optionalID("lab_test_id", b.LabTestID)
	v.within("physician", func() { b.Physician.validate(v) })
	if b.ActivateBy != nil { // it may be past: only an update is documented to reject that
		v.date("activate_by", *b.ActivateBy)
	}
	v.optionalID("lab_account_id", b.LabAccountID)
	v.optionalID("creator_member_id", b.CreatorMemberID)
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

// Validate returns everything in the request that the interface specification or the public API
// reference rules out, as a *[ValidationError]. [OrdersService.Update] calls it.
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
// It is never retried while an attempt may have been processed. After an error, [OutcomeOf] returns
// the outcome; if that is [OutcomeUnknown], look for the sample ID among the user's orders before you
// import it again.
//
// A team without access to the closed beta gets an *[APIError], whose status and detail are not
// documented. A duplicate sample ID is an *[APIError] too. Source of the latter: public API reference
// only.
//
// Experimental: the endpoint is in closed beta.
func (s *OrdersService) Import(ctx context.Context, body ImportOrderBody, opts ...CallOption) (*PostOrderResponse, error) {
	return call[PostOrderResponse](ctx, s.core, request{op: opImportOrder, body: &body}, opts)
}

// Create places a new order: POST /v3/order. The interface specification describes only the order set
// of its body. With [WithIdempotencyKey] it may be retried after an unknown outcome.
func (s *OrdersService) Create(ctx context.Context, body CreateOrderBody, opts ...CallOption) (*PostOrderResponse, error) {
	r := request{op: opCreateOrder, body: &body, repeatable: true}
	return call[PostOrderResponse](ctx, s.core, r, opts)
}

// Update changes or clears the date on which an order is processed: PATCH /v3/order/{order_id}. The
// service accepts it only while the order's low-level status is ordered or awaiting_registration, and
// only for orders that were created with a date: see [Order.Reschedulable]. Otherwise it responds with
// 400. [OrdersService.Reschedule] and [OrdersService.Release] are simpler. Source of the status: public
// API reference only.
func (s *OrdersService) Update(ctx context.Context, orderID uuid.UUID, body UpdateOrderBody, opts ...CallOption) (*PostOrderResponse, error) {
	if body.ActivateBy.IsZero() { // also with WithoutValidation: there is nothing to send
		return nil, withOp(opUpdateOrder, body.Validate())
	}
	r := request{op: opUpdateOrder, ids: []string{orderID.String()}, body: &body}
	return call[PostOrderResponse](ctx, s.core, r, opts)
}

// Reschedule sets the date on which a scheduled order is sent to the lab: today or later. Local
// validation accepts a date that is today in any time zone. See [OrdersService.Update].
func (s *OrdersService) Reschedule(ctx context.Context, orderID uuid.UUID, date Date, opts ...CallOption) (*PostOrderResponse, error) {
	return s.Update(ctx, orderID, UpdateOrderBody{ActivateBy: Value(date)}, opts...)
}

// Release clears the date of a scheduled order, which sends it to the lab at once. See
// [OrdersService.Update].
func (s *OrdersService) Release(ctx context.Context, orderID uuid.UUID, opts ...CallOption) (*PostOrderResponse, error) {
	return s.Update(ctx, orderID, UpdateOrderBody{ActivateBy: Null[Date]()}, opts...)
}

// Get returns one order: GET /v3/order/{order_id}. An unknown order is [ErrNotFound].
// Source: public API reference only.
func (s *OrdersService) Get(ctx context.Context, orderID uuid.UUID, opts ...CallOption) (*Order, error) {
	return call[Order](ctx, s.core, request{op: opGetOrder, ids: []string{orderID.String()}}, opts)
}

// ListOrdersParams selects orders. Zero fields are not sent. A deployment that does not know a parameter
// responds with all orders, so compare what must not be taken for another. It redacts itself when
// printed, because some parameters name the patient.
//
// Times are sent as date-times with their offset. The service takes a bare date too, which [WithQuery] sends:
// WithQuery("start_date", "2026-01-31").
type ListOrdersParams struct {
	Redacted[ListOrdersParams]

	Interpretation Interpretation // orders whose results are normal, abnormal or critical

	// Source of the fields below: public API reference only.

	UserID                uuid.UUID                 // orders of one user
	OrderIDs              []uuid.UUID               // these orders
	OrderTransactionID    uuid.UUID                 // orders of one transaction
	Status                []OrderLowLevelStatus     // orders in one of these states
	OrderType             []LabTestCollectionMethod // orders collected in one of these ways
	OrderActivationTypes  []string                  // "current", "scheduled"
	IsCritical            *bool                     // orders with, or without, critical results
	StartDate             time.Time                 // orders created since then
	EndDate               time.Time                 // orders created until then
	UpdatedStartDate      time.Time                 // orders changed since then
	UpdatedEndDate        time.Time                 // orders changed until then
	SearchInput           string                    // free text
	PatientName           string                    // orders of patients of this name
	ShippingRecipientName string                    // orders sent to people of this name
	OrderKey              string                    // sort by "created_at", "patient_name" or "last_status"
	OrderDirection        string                    // "asc" or "desc"

	Page int // number of the page, 1 for the first, which is the default
	Size int // orders on a page, 1 to 100; the service takes 50 if it is 0
}

func (p ListOrdersParams) validate(v *validator) {
	v.atLeast("page", p.Page, 0)
	v.between("size", p.Size, 0, 100)
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
	q.setInt("page", p.Page)
	q.setInt("size", p.Size)
	return q
}

// OrderPage is one page of the list of orders: the response of [OrdersService.List]. A bare list of
// orders is read as a page that holds it: RawJSON is then that page. It redacts itself when printed.
type OrderPage struct {
	Redacted[OrderPage]

	Orders []Order `json:"orders" jsonread:"own"` // the orders of the page
	Total  *int64  `json:"total,omitzero"`        // how many orders there are in all; nil if the service does not say
	Page   *int64  `json:"page,omitzero"`         // number of the page; nil if the service does not say
	Size   *int64  `json:"size,omitzero"`         // how many orders a page has; nil if the service does not say

	RawObject `json:"-"`
}

func (p *OrderPage) verify() error { return requireList(p.Orders) }

// fromList omits the total: there may be more orders.
func (*OrderPage) fromList(document []byte, _ []json.RawMessage) []byte {
	return fmt.Appendf(nil, `{"orders":%s}`, document)
}

// List returns one page of the team's orders: GET /orders. Deployments have it at /v3/orders too: see
// [WithPath]. Source of the other path: public API reference only.
func (s *OrdersService) List(ctx context.Context, params ListOrdersParams, opts ...CallOption) (*OrderPage, error) {
	return call[OrderPage](ctx, s.core, request{op: opListOrders, query: params}, opts)
}

// All returns an iterator over the orders, page by page, from params.Page on. It holds one page at a
// time, and each range over it starts again. An error stops it, and so does a service that repeats a
// page or ignores the page number.
//
// If the service does not report how many orders there are, a page that is empty or shorter than the
// page size is the last one. A service that returns all its orders as one list, whatever the page, is
// read completely too, at the cost of a second request; if there are exactly as many as the page size,
// the iterator stops with an error after the last one, because more may have been due.
func (s *OrdersService) All(ctx context.Context, params ListOrdersParams, opts ...CallOption) iter.Seq2[*Order, error] {
	return func(yield func(*Order, error) bool) {
		pages := orderPages{start: cmp.Or(params.Page, 1), size: int64(cmp.Or(params.Size, 50))}
		id := func(o *Order) uuid.UUID { return o.ID }
		fetch := func(number int) (page[Order, int], error) {
			params := params
			params.Page = number
			list, err := s.List(ctx, params, opts...)
			if err != nil {
				return page[Order, int]{}, err
			}
			return pages.next(number, list)
		}
		paginate(opListOrders, pages.start, id, fetch)(yield)
	}
}

// orderPages finds the end of a list of orders.
type orderPages struct {
	start   int
	size    int64 // orders on a page, as far as known
	unpaged bool  // the first page may be the whole list, whatever the page number
}

// next returns the page with the given number, which list is the response for.
func (o *orderPages) next(number int, list *OrderPage) (p page[Order, int], err error) {
	if list.Page != nil && *list.Page != int64(number) {
		return p, &unreadable{reason: "it is another page than the one that was asked for"}
	}
	p.items, p.next = list.Orders, number+1
	n, hasSize := int64(len(list.Orders)), list.Size != nil && *list.Size > 0
	if hasSize {
		o.size = *list.Size
	}
	switch {
	case list.Total != nil:
		p.last = int64(number-1)*o.size+n >= *list.Total
	case hasSize || number > o.start:
		p.last = n < o.size
	default:
		p.last = n == 0
	}
	if !hasSize && number == o.start && !p.last {
		o.unpaged = o.start == 1 && list.Total == nil && list.Page == nil && n != o.size
		o.size = n // the page size of the service, whatever was requested
	}
	p.repeatEnds = o.unpaged && number == o.start+1
	return p, nil
}
