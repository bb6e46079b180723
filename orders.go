package labhealth

import (
	"cmp"
	"context"
	"iter"
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

// Import brings an order into the service that exists already, with its sample: POST /v3/order/import.
//
// It is never sent twice while it may have been carried out. After an error, [OutcomeOf] says what became of it; if that is
// [OutcomeUnknown], look for the sample id among the user's orders before you import it again.
//
// A team that is not enabled for the closed beta gets an *[APIError]; neither its status nor its text is
// documented. A duplicate sample ID is an *[APIError] too. Source of the latter: public API reference
// only.
//
// Experimental: the endpoint is in closed beta.
func (s *OrdersService) Import(ctx context.Context, body ImportOrderBody, opts ...CallOption) (*PostOrderResponse, error) {
	r := request{op: opImportOrder, value: &body, problems: problemsOf(body.Validate())}
	return call(ctx, s.core, r, hasOrder, opts)
}

// Create places a new order: POST /v3/order. The interface specification describes only the order
// set of its body. With [WithIdempotencyKey] it may be repeated after an unknown outcome.
func (s *OrdersService) Create(ctx context.Context, body CreateOrderBody, opts ...CallOption) (*PostOrderResponse, error) {
	r := request{op: opCreateOrder, value: &body, problems: problemsOf(body.Validate()), repeatable: true}
	return call(ctx, s.core, r, hasOrder, opts)
}

// Update changes or clears the date on which an order is to be processed: PATCH /v3/order/{order_id}.
// The service accepts it only while the order's low-level status is ordered or awaiting_registration,
// and only for orders that were created with a date: see [Order.Reschedulable]. Otherwise it responds
// with 400. Source of the status: public API reference only. [OrdersService.Reschedule] and [OrdersService.Release] say what is meant.
func (s *OrdersService) Update(ctx context.Context, orderID uuid.UUID, body UpdateOrderBody, opts ...CallOption) (*PostOrderResponse, error) {
	r := request{op: opUpdateOrder, params: []string{orderID.String()}, value: &body, problems: problemsOf(body.Validate())}
	if body.ActivateBy.IsZero() {
		return nil, ofOperation(opUpdateOrder, body.Validate()) // also with WithoutValidation: there is nothing to send
	}
	return call(ctx, s.core, r, hasOrder, opts)
}

// Reschedule sets the date on which a scheduled order is dispatched to the lab: today or later, where a date that is today anywhere on
// earth passes the local check. See [OrdersService.Update].
func (s *OrdersService) Reschedule(ctx context.Context, orderID uuid.UUID, date Date, opts ...CallOption) (*PostOrderResponse, error) {
	return s.Update(ctx, orderID, UpdateOrderBody{ActivateBy: Value(date)}, opts...)
}

// Release clears the date of a scheduled order, which dispatches it at once. See [OrdersService.Update].
func (s *OrdersService) Release(ctx context.Context, orderID uuid.UUID, opts ...CallOption) (*PostOrderResponse, error) {
	return s.Update(ctx, orderID, UpdateOrderBody{ActivateBy: Null[Date]()}, opts...)
}

// Get reads one order: GET /v3/order/{order_id}. An unknown order is [ErrNotFound].
// Source: public API reference only.
func (s *OrdersService) Get(ctx context.Context, orderID uuid.UUID, opts ...CallOption) (*Order, error) {
	return call(ctx, s.core, request{op: opGetOrder, params: []string{orderID.String()}}, func(o *Order) string {
		return orderProblem(o)
	}, opts)
}

// orderProblem and hasOrder refuse an answer that shows no order: only an order id proves that there is one.
func orderProblem(o *Order) string {
	if o.ID == uuid.Nil {
		return "it has no readable order id"
	}
	return ""
}

func hasOrder(r *PostOrderResponse) string { return orderProblem(&r.Order) }

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

func (p ListOrdersParams) query() queryValues {
	q := newQuery()
	q.text("interpretation", string(p.Interpretation))
	q.id("user_id", p.UserID)
	for _, id := range p.OrderIDs {
		q.Add("order_ids", id.String())
	}
	q.id("order_transaction_id", p.OrderTransactionID)
	each(q, "status", p.Status)
	each(q, "order_type", p.OrderType)
	each(q, "order_activation_types", p.OrderActivationTypes)
	q.flag("is_critical", p.IsCritical)
	q.instant("start_date", p.StartDate)
	q.instant("end_date", p.EndDate)
	q.instant("updated_start_date", p.UpdatedStartDate)
	q.instant("updated_end_date", p.UpdatedEndDate)
	q.text("search_input", p.SearchInput)
	q.text("patient_name", p.PatientName)
	q.text("shipping_recipient_name", p.ShippingRecipientName)
	q.text("order_key", p.OrderKey)
	q.text("order_direction", p.OrderDirection)
	q.number("page", p.Page)
	q.number("size", p.Size)
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

// List reads one page of the team's orders: GET /orders. Deployments have it at /v3/orders too: see
// [WithPath]. Source of the other path: public API reference only.
func (s *OrdersService) List(ctx context.Context, params ListOrdersParams, opts ...CallOption) (*OrderPage, error) {
	var c checker
	c.atLeast("page", params.Page, 0)
	c.within("size", params.Size, 0, 100)
	r := request{op: opListOrders, query: params.query().Values, problems: c.in("query")}
	return call(ctx, s.core, r, func(p *OrderPage) string { return listProblem(p.Orders == nil) }, opts)
}

// All reads the orders page by page, from params.Page on. It can be ranged over again, which starts
// anew, and holds one page at a time. An error ends it; a service that repeats a page or ignores the
// page number is an error, not a loop.
//
// Where the service does not say how many orders there are, an empty page ends the list, and so does
// one that is shorter than the page size. A service that sends all its orders as one list, whatever
// the page, is read to its end too, at the cost of a second request; if they are exactly as many as a
// page has, the list ends with an error after the last one, because more may have been due.
func (s *OrdersService) All(ctx context.Context, params ListOrdersParams, opts ...CallOption) iter.Seq2[*Order, error] {
	return func(yield func(*Order, error) bool) {
		start, size := cmp.Or(params.Page, 1), int64(cmp.Or(params.Size, 50))
		unpaged := false // whether the first page may be the whole list, whatever the page number
		paged(opListOrders, start, func(o *Order) uuid.UUID { return o.ID }, func(number int) (p part[Order, int], err error) {
			params := params
			params.Page = number
			page, err := s.List(ctx, params, opts...)
			if err != nil {
				return p, err
			}
			if page.Page != nil && *page.Page != int64(number) {
				p.problem = "it is another page than the one that was asked for"
			}
			p.items, p.next = page.Orders, number+1
			n, said := int64(len(page.Orders)), page.Size != nil && *page.Size > 0
			if said {
				size = *page.Size
			}
			switch {
			case page.Total != nil:
				p.last = int64(number-1)*size+n >= *page.Total
			case said || number > start:
				p.last = n < size
			default:
				p.last = n == 0
			}
			if !said && number == start && !p.last {
				unpaged = start == 1 && page.Total == nil && page.Page == nil && n != size
				size = n // what the service takes as a page, whatever was asked for
			}
			p.repeatEnds = unpaged && number == start+1
			return p, nil
		})(yield)
	}
}
