// Imports, creation, changes and reads of orders.

package labhealthtest

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// idempotencyPeriod is how long the outcome of an idempotency key is kept.
const idempotencyPeriod = 24 * time.Hour

// outcome is the stored response for an idempotency key.
type outcome struct {
	response response
	at       time.Time
}

var (
	errNoUser    = errors.New("labhealthtest: no such user")
	errNoOrder   = errors.New("labhealthtest: no such order")
	errNoLabTest = errors.New("labhealthtest: no such lab test, or not active")
)

var (
	orderNotFound = reject(http.StatusNotFound, "This order doesn't exist")
	dateInPast    = reject(http.StatusBadRequest, "activate_by must be today or a future date")
)

// orderResponse is the response of the operations that create and change an order.
type orderResponse struct {
	Order   *order `json:"order"`
	Status  string `json:"status"`
	Message string `json:"message"`
}

// RejectImports makes every import respond with this status code and body, as for a team that is
// not enabled for the closed beta. Neither the status code nor the body is documented: servers have
// sent JSON since November 2025 and plain text before. A body that is not JSON is sent as plain
// text. Status code 0 enables the team again.
func (s *Server) RejectImports(statusCode int, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.importRejected = nil
	if statusCode != 0 {
		s.importRejected = &response{statusCode: statusCode, body: []byte(body), contentType: contentTypeOf(body)}
	}
}

// importOrder imports an existing order. Its last status is requisition_bypassed, in which it
// cannot be modified.
func (s *Server) importOrder(r *request) (any, error) {
	var body orderRequest
	r.decode(&body)
	u := s.user(body.UserID)
	if u == nil {
		return nil, userNotFound
	}
	if s.sampleIDs[*body.SampleID] {
		return nil, reject(http.StatusBadRequest, "An order with this sample_id already exists")
	}
	test, method, err := s.resolveTest(&body)
	if err != nil {
		return nil, err
	}
	if err := u.checkInsurance(&body); err != nil {
		return nil, err
	}
	s.sampleIDs[*body.SampleID] = true
	o := s.addOrder(u, test, method, &body, r.now)
	s.emitOrder(o)
	s.setStatus(o, "received."+method+".requisition_bypassed", "", r.now)
	s.emitOrder(o)
	return orderResponse{o, "success", "Order created successfully"}, nil
}

// createOrder supports X-Idempotency-Key: for 24 hours it repeats the response to a valid request,
// whatever later requests with the key contain.
func (s *Server) createOrder(r *request) (any, error) {
	var body orderRequest
	r.decode(&body)
	return s.once(r, "", idempotencyPeriod, func() (any, error) { return s.create(&body, r.now) })
}

// once processes a request, unless its X-Idempotency-Key was processed less than a period ago. Then
// it repeats the response. Operations with different scopes do not share keys.
func (s *Server) once(r *request, scope string, period time.Duration, process func() (any, error)) (any, error) {
	key := r.header.Get("X-Idempotency-Key")
	if key == "" {
		return process()
	}
	key = scope + "\x00" + key
	if stored, ok := s.outcomes[key]; ok && r.now.Sub(stored.at) < period {
		return &stored.response, nil
	}
	resp := respond(process())
	if resp.statusCode == http.StatusOK || r.header.Get("X-Idempotency-Error") != "no-cache" {
		s.outcomes[key] = outcome{resp, r.now}
	}
	return &resp, nil
}

func (s *Server) create(body *orderRequest, now time.Time) (any, error) {
	u := s.user(body.UserID)
	if u == nil {
		return nil, userNotFound
	}
	test, method, err := s.resolveTest(body)
	if err != nil {
		return nil, err
	}
	if err := checkAnswers(test, body); err != nil {
		return nil, err
	}
	if err := u.checkInsurance(body); err != nil {
		return nil, err
	}
	if isPast(body.ActivateBy, now) {
		return nil, dateInPast
	}
	o := s.addOrder(u, test, method, body, now)
	s.emitOrder(o)
	return orderResponse{o, "success", "Order created successfully"}, nil
}

func isPast(date *string, now time.Time) bool {
	return date != nil && *date < now.Format(time.DateOnly)
}

// updateOrder changes or clears the date of a scheduled order.
func (s *Server) updateOrder(r *request, o *order) (any, error) {
	var body struct {
		ActivateBy *string `json:"activate_by"`
	}
	r.decode(&body)
	low := o.lowLevelStatus()
	switch {
	case low != "ordered" && low != "awaiting_registration":
		return nil, reject(http.StatusBadRequest, "Order can not be modified in its current status")
	case !o.scheduled:
		return nil, reject(http.StatusBadRequest, "Order was created for immediate processing and can not be rescheduled")
	case isPast(body.ActivateBy, r.now):
		return nil, dateInPast
	}
	o.ActivateBy = body.ActivateBy
	o.UpdatedAt = timestamp(r.now)
	// An order without a date is dispatched immediately, unless a testkit awaits registration.
	if body.ActivateBy == nil && low == "ordered" {
		s.setStatus(o, "received."+o.Details.Type+".requisition_created", "", r.now)
		s.emitOrder(o)
	} else {
		s.reportOrder(o)
	}
	return orderResponse{o, "success", "order updated"}, nil
}

func (s *Server) getOrder(r *request) (any, error) { return s.requestedOrder(r) }

// requestedOrder returns the order in the path.
func (s *Server) requestedOrder(r *request) (*order, error) {
	if o := s.orderByID[r.pathUUID("order_id")]; o != nil {
		return o, nil
	}
	return nil, orderNotFound
}

// addOrder adds an order with the status ordered, in a new transaction.
func (s *Server) addOrder(u *user, test *labTest, method string, body *orderRequest, now time.Time) *order {
	return s.addOrderTo(nil, u, test, method, body, nil, now)
}

// addOrderTo adds an order with the status ordered to t, or to a new transaction if t is nil.
func (s *Server) addOrderTo(t *transaction, u *user, test *labTest, method string, body *orderRequest, parent *uuid.UUID, now time.Time) *order {
	o := &order{
		ID:             s.newID(),
		UserID:         u.UserID,
		TeamID:         s.TeamID,
		PatientAddress: body.PatientAddress,
		LabTest:        test,
		SampleID:       body.SampleID,
		ClinicalNotes:  body.ClinicalNotes,
		CreatedAt:      timestamp(now),
		Events:         make([]orderEvent, 0, 2),
		Physician:      body.Physician,
		Priority:       body.Priority,
		ActivateBy:     body.ActivateBy,
		Passthrough:    body.Passthrough,
		BillingType:    body.BillingType,
		ICDCodes:       body.ICDCodes,
		Origin:         "initial",
		scheduled:      body.ActivateBy != nil,
	}
	if parent != nil {
		o.Origin = "redraw"
	}
	if body.HealthInsurance != nil {
		o.HealthInsuranceID = new(s.newID())
	} else if v := u.insurance(true); v != nil && body.BillingType == commercialInsurance {
		o.HealthInsuranceID = &v.id
	}
	o.setPatient(body.PatientDetails)
	data := siteData{s.newID(), timestamp(now), timestamp(now)}
	o.Details.Type = method
	switch method {
	case "testkit":
		o.Details.Data = &testkitData{siteData: data}
	case "on_site_collection":
		o.Details.Data = &data
	default:
		o.Details.Data = &appointmentData{siteData: data}
	}
	if t == nil {
		t = &transaction{ID: s.newID()}
	}
	t.Orders = append(t.Orders, transactionOrder{ID: o.ID, CreatedAt: microTimestamp(now), Origin: o.Origin, ParentID: parent})
	o.Transaction = t
	s.setStatus(o, "received."+method+".ordered", "", now)

	s.orders = insertOrder(s.orders, o)
	s.ordersOf[u.UserID] = insertOrder(s.ordersOf[u.UserID], o)
	s.orderByID[o.ID] = o
	return o
}

// setPatient sets the patient of an order, nil for a testkit that is not registered yet.
func (o *order) setPatient(p *patientDetails) {
	if p != nil && p.searchName == "" {
		p.searchName = strings.ToLower(p.FirstName + " " + p.LastName)
	}
	o.PatientDetails = p
}

// patientName returns the full name of the patient in lower case.
func (o *order) patientName() string {
	if o.PatientDetails == nil {
		return ""
	}
	return o.PatientDetails.searchName
}

// Orders returns the IDs of all orders, oldest first. These are the orders that the server stored,
// regardless of the responses that its clients received.
func (s *Server) Orders() []uuid.UUID {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]uuid.UUID, len(s.orders))
	for i, o := range s.orders {
		ids[i] = o.ID
	}
	return ids
}

// insertOrder keeps orders sorted by creation time, even if the clock was set back.
func insertOrder(orders []*order, o *order) []*order {
	i := len(orders)
	if i > 0 && compareCreation(orders[i-1], o) > 0 {
		i, _ = slices.BinarySearchFunc(orders, o, compareCreation)
	}
	return slices.Insert(orders, i, o)
}

func compareCreation(a, b *order) int {
	return cmp.Or(
		time.Time(a.CreatedAt).Compare(time.Time(b.CreatedAt)),
		cmp.Compare(a.Events[0].ID, b.Events[0].ID))
}
