// Patients, addresses, guarantors and physicians of requests and responses.

package labhealth

import (
	"encoding/base64"
	"time"
)

// PatientDetailsWithValidation is the patient in a request.
type PatientDetailsWithValidation struct {
	Redacted

	// FirstName has 1 to 50 characters. Not every name is one that labs accept: see
	// [ImportOrderBody.Warnings].
	FirstName string `json:"first_name"`
	// LastName has 1 to 50 characters. See FirstName.
	LastName string `json:"last_name"`
	DOB      Date   `json:"dob"`    // date of birth
	Gender   Gender `json:"gender"` // values other than the constants may be accepted
	// PhoneNumber has no documented format. +14155550123 is usual.
	PhoneNumber string `json:"phone_number"`
	Email       string `json:"email"` // one address

	// MedicalProxy is the parent or proxy. It is required if the patient is a minor.
	MedicalProxy *GuarantorDetails `json:"medical_proxy,omitzero"`
	// Race is treated as 'Not Specified' if nil.
	Race *Race `json:"race,omitzero"`
	// Ethnicity is treated as 'Not Specified' if nil.
	Ethnicity *Ethnicity `json:"ethnicity,omitzero"`
	// SexualOrientation is treated as 'Not Specified' if nil.
	SexualOrientation *SexualOrientation `json:"sexual_orientation,omitzero"`
	// GenderIdentity is treated as 'Not Specified' if nil.
	GenderIdentity *GenderIdentity `json:"gender_identity,omitzero"`
	// HouseholdIncome is in USD, nil if not given.
	HouseholdIncome *int64 `json:"household_income,omitzero"`
	// HouseholdSize is the number of people, nil if not given.
	HouseholdSize *int64 `json:"household_size,omitzero"`
}

// GuarantorDetails is a parent or medical proxy, in requests and in orders.
type GuarantorDetails struct {
	FirstName       string  `json:"first_name"`                // given name
	LastName        string  `json:"last_name"`                 // family name
	Address         Address `json:"address"`                   // home address
	PhoneNumber     string  `json:"phone_number"`              // no format is documented
	HouseholdIncome *int64  `json:"household_income,omitzero"` // in USD; nil if not given
	HouseholdSize   *int64  `json:"household_size,omitzero"`   // number of people; nil if not given
	Email           *string `json:"email,omitzero"`            // nil if not given

	RawObject `json:"-"`
}

// Address is the address of a guarantor or of a [UserInfo], in requests and in responses.
type Address struct {
	FirstLine string `json:"first_line"` // street and number
	// SecondLine is omitted from a request if nil, which the service treats as the empty string. In
	// an order it points to the empty string if the field is absent, and is nil if it is null.
	SecondLine *string `json:"second_line,omitzero" default:""`
	Country    string  `json:"country"` // no format is documented; US is usual
	Zip        string  `json:"zip"`     // postal code
	City       string  `json:"city"`    // city
	State      string  `json:"state"`   // state, usually two letters
	// AccessNotes describes how to enter the building. It has at most 1000 characters, and is nil
	// if absent.
	AccessNotes *string `json:"access_notes,omitzero"`

	RawObject `json:"-"`
}

// PatientAddress is the patient's address in an import.
type PatientAddress struct {
	Redacted

	ReceiverName string  `json:"receiver_name"`        // recipient of the parcel
	FirstLine    string  `json:"first_line"`           // street and number
	City         string  `json:"city"`                 // city
	State        string  `json:"state"`                // state, usually two letters
	Zip          string  `json:"zip"`                  // postal code
	Country      string  `json:"country"`              // no format is documented; US is usual
	SecondLine   *string `json:"second_line,omitzero"` // nil if there is none
	// AccessNotes describes how to enter the building. It has at most 1000 characters, and is nil
	// if absent.
	AccessNotes *string `json:"access_notes,omitzero"`
}

// PatientAddressWithValidation is the patient's address in a [CreateOrderBody] and a
// [RegisterTestkitBody]. Source: public API reference only.
type PatientAddressWithValidation struct {
	Redacted

	ReceiverName string  `json:"receiver_name,omitzero"` // recipient of the parcel; omitted if empty
	FirstLine    string  `json:"first_line"`             // street and number
	City         string  `json:"city"`                   // city
	State        string  `json:"state"`                  // state, usually two upper-case letters
	Zip          string  `json:"zip"`                    // ZIP code, such as 94105 or 94105-1234
	Country      string  `json:"country"`                // no format is documented; US is usual
	SecondLine   *string `json:"second_line,omitzero"`   // nil if there is none
	// AccessNotes describes how to enter the building. It has at most 1000 characters, and is nil
	// if absent.
	AccessNotes *string `json:"access_notes,omitzero"`
	PhoneNumber *string `json:"phone_number,omitzero"` // nil if there is none
}

// PhysicianCreateRequest is the ordering physician in a request.
type PhysicianCreateRequest struct {
	Redacted

	FirstName      string   `json:"first_name"`               // given name
	LastName       string   `json:"last_name"`                // family name
	NPI            string   `json:"npi"`                      // National Provider Identifier
	Email          *string  `json:"email,omitzero"`           // nil if not given
	LicensedStates []string `json:"licensed_states,omitzero"` // omitted if nil

	// SignatureImage is an image of the physician's signature, which is used for health-insurance
	// billing. It is nil if there is none.
	SignatureImage *SignatureImage `json:"signature_image,omitzero"`
}

// SignatureImage is the Jpeg or Png object of the interface specification. The two differ only in
// their content type. [NewJPEG] and [NewPNG] create one from the bytes of a file. A
// [HealthInsuranceCreateRequest] has images of this type too.
type SignatureImage struct {
	Redacted

	// Content is sent unchanged. The specification declares it binary and documents no encoding.
	Content string `json:"content"`
	// ContentType is image/jpeg or image/png.
	ContentType string `json:"content_type"`
}

// NewJPEG returns a JPEG image with data encoded in base64. The encoding is an inference: none is
// documented.
func NewJPEG(data []byte) *SignatureImage {
	return &SignatureImage{Content: base64.StdEncoding.EncodeToString(data), ContentType: "image/jpeg"}
}

// NewPNG returns a PNG image with data encoded in base64. The encoding is an inference: none is
// documented.
func NewPNG(data []byte) *SignatureImage {
	return &SignatureImage{Content: base64.StdEncoding.EncodeToString(data), ContentType: "image/png"}
}

// OrderPatientDetails is the patient of an [Order].
type OrderPatientDetails struct {
	// DOB is the date of birth. The specification declares a date-time, and both date-times and
	// bare dates occur. DOB is the date as written, without conversion to another time zone.
	DOB Date `json:"dob"`
	// Gender is any string. See [Gender] for the usual values.
	Gender      string  `json:"gender"`
	FirstName   *string `json:"first_name,omitzero"`   // nil if absent
	LastName    *string `json:"last_name,omitzero"`    // nil if absent
	PhoneNumber *string `json:"phone_number,omitzero"` // nil if absent
	Email       *string `json:"email,omitzero"`        // nil if absent

	// MedicalProxy is the parent or proxy, nil if there is none.
	MedicalProxy *GuarantorDetails `json:"medical_proxy,omitzero"`
	// Race is nil if not specified.
	Race *Race `json:"race,omitzero"`
	// Ethnicity is nil if not specified.
	Ethnicity *Ethnicity `json:"ethnicity,omitzero"`
	// SexualOrientation is nil if not specified.
	SexualOrientation *SexualOrientation `json:"sexual_orientation,omitzero"`
	// GenderIdentity is nil if not specified.
	GenderIdentity *GenderIdentity `json:"gender_identity,omitzero"`

	RawObject `json:"-"`
}

// OrderPatientAddress is the patient's address in an [Order].
type OrderPatientAddress struct {
	ReceiverName string  `json:"receiver_name"`        // empty by default
	FirstLine    string  `json:"first_line"`           // street and number
	SecondLine   *string `json:"second_line,omitzero"` // nil if there is none
	City         string  `json:"city"`                 // city
	State        string  `json:"state"`                // state
	Zip          string  `json:"zip"`                  // postal code
	Country      string  `json:"country"`              // country
	// AccessNotes describes how to enter the building. It has at most 1000 characters, and is nil
	// if absent.
	AccessNotes *string `json:"access_notes,omitzero"`
	PhoneNumber *string `json:"phone_number,omitzero"` // nil if there is none

	RawObject `json:"-"`
}

// ShippingAddress is the address to which a test kit is sent before it is registered: in orders,
// and in a [CreateTestkitBody].
type ShippingAddress struct {
	ReceiverName string  `json:"receiver_name"`        // recipient of the parcel
	FirstLine    string  `json:"first_line"`           // street and number
	SecondLine   *string `json:"second_line,omitzero"` // nil if there is none
	City         string  `json:"city"`                 // city
	State        string  `json:"state"`                // state
	Zip          string  `json:"zip"`                  // postal code
	Country      string  `json:"country"`              // country
	PhoneNumber  string  `json:"phone_number"`         // for the courier

	RawObject `json:"-"`
}

func (p *PatientDetailsWithValidation) validate(v *validator) {
	v.length("first_name", p.FirstName, 1, 50)
	v.length("last_name", p.LastName, 1, 50)
	validDOB := v.date("dob", p.DOB)
	v.required("gender", string(p.Gender))
	v.required("phone_number", p.PhoneNumber)
	v.email("email", p.Email)
	if p.MedicalProxy == nil {
		if validDOB && isMinor(p.DOB) {
			v.add("medical_proxy", "missing", "is required for a patient under 18")
		}
		return
	}
	v.within("medical_proxy", func() { p.MedicalProxy.validate(v) })
}

func (g *GuarantorDetails) validate(v *validator) {
	v.required("first_name", g.FirstName)
	v.required("last_name", g.LastName)
	v.within("address", func() { g.Address.validate(v) })
	v.required("phone_number", g.PhoneNumber)
}

func (a *Address) validate(v *validator) {
	v.address(a.FirstLine, a.City, a.State, a.Zip, a.Country, a.AccessNotes)
}

// isMinor reports whether a person with this date of birth is under 18 in every time zone. A person
// born on 29 February may come of age on 28 February. It is false for a future date: neither the
// specification nor the reference rules one out, so the service decides.
func isMinor(dob Date) bool {
	adult := Date{dob.Year + 18, dob.Month, dob.Day}
	if dob.Month == time.February && dob.Day == 29 {
		adult.Day = 28
	}
	today := latestToday()
	return adult.Compare(today) > 0 && dob.Compare(today) <= 0
}

func (a *PatientAddressWithValidation) validate(v *validator) {
	v.address(a.FirstLine, a.City, a.State, a.Zip, a.Country, a.AccessNotes)
	v.zip("zip", a.Zip)
}

func (v *validator) address(firstLine, city, state, zip, country string, accessNotes *string) {
	v.required("first_line", firstLine)
	v.required("city", city)
	v.required("state", state)
	v.required("zip", zip)
	v.required("country", country)
	if accessNotes != nil {
		v.length("access_notes", *accessNotes, 0, 1000)
	}
}

func (p *PhysicianCreateRequest) validate(v *validator) {
	if p == nil {
		return
	}
	v.required("first_name", p.FirstName)
	v.required("last_name", p.LastName)
	v.required("npi", p.NPI)
	v.within("signature_image", func() { p.SignatureImage.validate(v) })
}

func (i *SignatureImage) validate(v *validator) {
	if i == nil {
		return
	}
	v.required("content", i.Content)
	if i.ContentType != "image/jpeg" && i.ContentType != "image/png" {
		v.add("content_type", "value_error", "must be image/jpeg or image/png")
	}
}
