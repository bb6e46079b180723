// Testkits: order and registration.

package labhealthtest

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// createTestkit orders a testkit without a patient. It has the sample ID that is printed on the
// kit, with which the patient registers it. It supports X-Idempotency-Key, like createOrder.
func (s *Server) createTestkit(r *request) (any, error) {
	var body testkitRequest
	r.decode(&body)
	return s.once(r, "testkit", idempotencyPeriod, func() (any, error) { return s.orderTestkit(&body, r.now) })
}

type testkitRequest struct {
	UserID          uuid.UUID        `json:"user_id"`
	LabTestID       uuid.UUID        `json:"lab_test_id"`
	ShippingDetails *shippingAddress `json:"shipping_details"`
	Passthrough     *string          `json:"passthrough"`
}

func (s *Server) orderTestkit(body *testkitRequest, now time.Time) (any, error) {
	u := s.user(body.UserID)
	if u == nil {
		return nil, userNotFound
	}
	test, method, err := s.resolveTest(&orderRequest{LabTestID: &body.LabTestID})
	switch {
	case err != nil:
		return nil, err
	case method != "testkit":
		return nil, reject(http.StatusBadRequest, "Test is not a testkit")
	}
	sampleID := "KIT-" + strings.ToUpper(s.newID().String()[:8])
	s.sampleIDs[sampleID] = true
	o := s.addOrder(u, test, method, &orderRequest{
		SampleID: &sampleID, BillingType: "client_bill", Passthrough: body.Passthrough,
	}, now)
	o.ShippingDetails = body.ShippingDetails
	s.emitOrder(o)
	s.setStatus(o, "received.testkit.awaiting_registration", "", now)
	s.emitOrder(o)
	return orderResponse{o, "success", "Order created successfully"}, nil
}

// registrable are the low-level statuses in which a testkit can be registered.
var registrable = []string{"awaiting_registration", "transit_customer", "out_for_delivery", "with_customer", "problem_in_transit_customer"}

// registerTestkit connects a testkit to its patient. The requisition is created immediately.
func (s *Server) registerTestkit(r *request) (any, error) {
	var body struct {
		orderRequest
		UserID *uuid.UUID `json:"user_id"`
	}
	r.decode(&body)
	if body.UserID != nil && s.user(*body.UserID) == nil {
		return nil, userNotFound
	}
	i := slices.IndexFunc(s.orders, func(o *order) bool { return o.SampleID != nil && *o.SampleID == *body.SampleID && o.isRegistrable() })
	if i < 0 {
		return nil, reject(http.StatusNotFound, "No testkit with this sample_id exists")
	}
	o := s.orders[i]
	switch {
	case o.PatientDetails != nil:
		return nil, reject(http.StatusBadRequest, "Testkit is already registered")
	case body.UserID != nil && *body.UserID != o.UserID:
		return nil, reject(http.StatusBadRequest, "Testkit belongs to another user")
	case !slices.Contains(registrable, o.lowLevelStatus()):
		return nil, reject(http.StatusBadRequest, "Testkit can not be registered in its current status")
	}
	o.setPatient(body.PatientDetails)
	o.PatientAddress, o.Physician, o.ShippingDetails = body.PatientAddress, body.Physician, nil
	if body.HealthInsurance != nil {
		o.HealthInsuranceID = new(s.newID())
	}
	for _, low := range []string{"registered", "requisition_created"} {
		s.setStatus(o, "received.testkit."+low, "", r.now)
		s.emitOrder(o)
	}
	return orderResponse{o, "success", "Testkit registered successfully"}, nil
}
