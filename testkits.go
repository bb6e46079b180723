// Test kits that patients register: order and registration.

package labhealth

// Source of this file: public API reference only.

import (
	"context"

	"github.com/google/uuid"
)

const (
	opCreateTestkit   = "POST /v3/order/testkit"
	opRegisterTestkit = "POST /v3/order/testkit/register"
)

// CreateTestkitBody is the request body of [OrdersService.CreateTestkit].
type CreateTestkitBody struct {
	Redacted

	UserID    uuid.UUID `json:"user_id"`     // the service's ID of the user
	LabTestID uuid.UUID `json:"lab_test_id"` // the ordered lab test
	// ShippingDetails is where the test kit is sent. Its zip must be a ZIP code, such as 94105 or
	// 94105-1234.
	ShippingDetails ShippingAddress `json:"shipping_details"`
	Passthrough     *string         `json:"passthrough,omitzero"`    // returned unchanged with the order
	LabAccountID    *uuid.UUID      `json:"lab_account_id,omitzero"` // nil for the team's default account
}

// RegisterTestkitBody is the request body of [OrdersService.RegisterTestkit].
type RegisterTestkitBody struct {
	Redacted

	UserID         *uuid.UUID                   `json:"user_id,omitzero"` // nil for the user of the order
	SampleID       string                       `json:"sample_id"`        // the ID on the test kit
	PatientDetails PatientDetailsWithValidation `json:"patient_details"`  // the patient
	PatientAddress PatientAddressWithValidation `json:"patient_address"`  // the patient's address
	// Physician is nil if there is none.
	Physician *PhysicianCreateRequestBase `json:"physician,omitzero"`
	// HealthInsurance is nil if there is none.
	HealthInsurance *HealthInsuranceCreateRequest `json:"health_insurance,omitzero"`
	Consents        []Consent                     `json:"consents,omitzero"` // the patient's consents
}

// PhysicianCreateRequestBase is the ordering physician in a [RegisterTestkitBody]: a
// [PhysicianCreateRequest] without a signature.
type PhysicianCreateRequestBase struct {
	Redacted

	FirstName      string   `json:"first_name"`               // given name
	LastName       string   `json:"last_name"`                // family name
	NPI            string   `json:"npi"`                      // National Provider Identifier
	Email          *string  `json:"email,omitzero"`           // nil if not given
	LicensedStates []string `json:"licensed_states,omitzero"` // omitted if nil
}

// Validate checks the request against the public API reference. Its error, if not nil, is a
// *[ValidationError] that lists every invalid field. [OrdersService.CreateTestkit] calls it.
func (b CreateTestkitBody) Validate() error { return validate(&b) }

func (b *CreateTestkitBody) validate(v *validator) {
	v.requiredID("user_id", b.UserID)
	v.requiredID("lab_test_id", b.LabTestID)
	v.within("shipping_details", func() {
		a := &b.ShippingDetails
		v.required("receiver_name", a.ReceiverName)
		v.address(a.FirstLine, a.City, a.State, a.Zip, a.Country, nil)
		v.zip("zip", a.Zip)
		v.required("phone_number", a.PhoneNumber)
	})
	v.optionalID("lab_account_id", b.LabAccountID)
}

// Validate checks the request against the interface specification and the public API reference. Its
// error, if not nil, is a *[ValidationError] that lists every invalid field.
// [OrdersService.RegisterTestkit] calls it.
func (b RegisterTestkitBody) Validate() error { return validate(&b) }

func (b *RegisterTestkitBody) validate(v *validator) {
	v.optionalID("user_id", b.UserID)
	v.required("sample_id", b.SampleID)
	v.within("patient_details", func() { b.PatientDetails.validate(v) })
	v.within("patient_address", func() { b.PatientAddress.validate(v) })
	v.within("physician", func() { b.Physician.validate(v) })
	v.within("health_insurance", func() { b.HealthInsurance.validate(v) })
	v.consents(b.Consents)
}

func (p *PhysicianCreateRequestBase) validate(v *validator) {
	if p == nil {
		return
	}
	v.required("first_name", p.FirstName)
	v.required("last_name", p.LastName)
	v.required("npi", p.NPI)
}

// CreateTestkit orders a test kit that the patient registers after receiving it: POST
// /v3/order/testkit. The order has no patient until then, and its low-level status is
// awaiting_registration before the kit is sent.
//
// It is never retried while an attempt may have been processed, unless [WithIdempotencyKey] is
// given: a new key for each kit. If [OutcomeOf] the error is [OutcomeUnknown], repeat the call with
// the same key and body, or look for the order among those of the user before you order another
// kit: a unique Passthrough identifies it.
func (s *OrdersService) CreateTestkit(ctx context.Context, body CreateTestkitBody, opts ...CallOption) (*PostOrderResponse, error) {
	r := request{op: opCreateTestkit, body: &body, repeatable: true}
	return call(ctx, coreOf(s), new(PostOrderResponse), r, opts)
}

// RegisterTestkit connects a test kit to its patient: POST /v3/order/testkit/register. The sample
// ID identifies the order.
//
// It is never retried while an attempt may have been processed. If [OutcomeOf] the error is
// [OutcomeUnknown], get the order: its PatientDetails is nil until the kit is registered.
func (s *OrdersService) RegisterTestkit(ctx context.Context, body RegisterTestkitBody, opts ...CallOption) (*PostOrderResponse, error) {
	return call(ctx, coreOf(s), new(PostOrderResponse), request{op: opRegisterTestkit, body: &body}, opts)
}
