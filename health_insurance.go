// The health insurance of a patient in requests.

package labhealth

// Source of this file: public API reference only.

// HealthInsuranceCreateRequest is the patient's health insurance in a request. Every field is
// optional.
type HealthInsuranceCreateRequest struct {
	Redacted

	FrontImage            *SignatureImage `json:"front_image,omitzero"`             // front of the insurance card
	BackImage             *SignatureImage `json:"back_image,omitzero"`              // back of the insurance card
	PatientSignatureImage *SignatureImage `json:"patient_signature_image,omitzero"` // the patient's signature
	Subjective            *string         `json:"subjective,omitzero"`              // what the patient reports
	AssessmentPlan        *string         `json:"assessment_plan,omitzero"`         // assessment and plan
	PayorCode             *string         `json:"payor_code,omitzero"`              // code of the insurer
	InsuranceID           *string         `json:"insurance_id,omitzero"`            // ID of the insured person
	// ResponsibleRelationship is the patient's relationship to the responsible person.
	ResponsibleRelationship *ResponsibleRelationship `json:"responsible_relationship,omitzero"`
	ResponsibleDetails      *PersonDetails           `json:"responsible_details,omitzero"` // the responsible person
	DiagnosisCodes          []string                 `json:"diagnosis_codes,omitzero"`     // ICD codes
}

// PersonDetails is the person who is responsible for a bill.
type PersonDetails struct {
	Redacted

	FirstName   string  `json:"first_name"`          // given name
	LastName    string  `json:"last_name"`           // family name
	Address     Address `json:"address"`             // home address
	PhoneNumber string  `json:"phone_number"`        // no format is documented
	PhoneType   string  `json:"phone_type,omitzero"` // Mobile if empty
}

// ResponsibleRelationship is the patient's relationship to the person in
// [HealthInsuranceCreateRequest.ResponsibleDetails].
//
// Values other than the constants occur.
type ResponsibleRelationship string

// Values of [ResponsibleRelationship].
const (
	ResponsibleRelationshipSelf   ResponsibleRelationship = "Self"
	ResponsibleRelationshipSpouse ResponsibleRelationship = "Spouse"
	ResponsibleRelationshipOther  ResponsibleRelationship = "Other"
)

func (h *HealthInsuranceCreateRequest) validate(v *validator) {
	if h == nil {
		return
	}
	v.within("front_image", func() { h.FrontImage.validate(v) })
	v.within("back_image", func() { h.BackImage.validate(v) })
	v.within("patient_signature_image", func() { h.PatientSignatureImage.validate(v) })
	if p := h.ResponsibleDetails; p != nil {
		v.within("responsible_details", func() {
			v.required("first_name", p.FirstName)
			v.required("last_name", p.LastName)
			v.within("address", func() { p.Address.validate(v) })
			v.required("phone_number", p.PhoneNumber)
		})
	}
}
