package labhealth

import (
	"encoding/base64"
	"time"
)

// PatientDetailsWithValidation is the patient in a request. It redacts itself when printed.
type PatientDetailsWithValidation struct {
	Redacted[PatientDetailsWithValidation]

	FirstName   string `json:"first_name"`   // 1 to 50 characters; labs have further rules, which are not documented
	LastName    string `json:"last_name"`    // 1 to 50 characters; see FirstName
	DOB         Date   `json:"dob"`          // date of birth
	Gender      Gender `json:"gender"`       // values other than the constants may be accepted
	PhoneNumber string `json:"phone_number"` // no format is documented; +14155550123 is the usual one
	Email       string `json:"email"`        // one address

	// MedicalProxy is the parent or proxy. It is required if the patient is a minor.
	MedicalProxy *GuarantorDetails `json:"medical_proxy,omitzero"`
	// Race is taken as 'Not Specified' if nil.
	Race *Race `json:"race,omitzero"`
	// Ethnicity is taken as 'Not Specified' if nil.
	Ethnicity *Ethnicity `json:"ethnicity,omitzero"`
	// SexualOrientation is taken as 'Not Specified' if nil.
	SexualOrientation *SexualOrientation `json:"sexual_orientation,omitzero"`
	// GenderIdentity is taken as 'Not Specified' if nil.
	GenderIdentity *GenderIdentity `json:"gender_identity,omitzero"`
	// HouseholdIncome is in USD; none if nil.
	HouseholdIncome *int64 `json:"household_income,omitzero"`
	// HouseholdSize is a number of people; none if nil.
	HouseholdSize *int64 `json:"household_size,omitzero"`
}

// GuarantorDetails is a parent or medical proxy, in requests and in orders. It redacts itself when printed.
type GuarantorDetails struct {
	Redacted[GuarantorDetails]

	FirstName       string  `json:"first_name"`                // given name
	LastName        string  `json:"last_name"`                 // family name
	Address         Address `json:"address"`                   // where they live
	PhoneNumber     string  `json:"phone_number"`              // no format is documented
	HouseholdIncome *int64  `json:"household_income,omitzero"` // in USD; nil if not given
	HouseholdSize   *int64  `json:"household_size,omitzero"`   // a number of people; nil if not given
	Email           *string `json:"email,omitzero"`            // nil if not given

	RawObject `json:"-"`
}

// Address is the address of a guarantor, in requests and in orders. It redacts itself when printed.
type Address struct {
	Redacted[Address]

	FirstLine string `json:"first_line"` // street and number
	// SecondLine points to the empty string if an order has no second line, and is nil if it has null.
	// In a request nil leaves it out, which means the empty string.
	SecondLine  *string `json:"second_line,omitzero" default:""`
	Country     string  `json:"country"`               // no format is documented; US is the usual one
	Zip         string  `json:"zip"`                   // postal code
	City        string  `json:"city"`                  // city
	State       string  `json:"state"`                 // state, usually as two letters
	AccessNotes *string `json:"access_notes,omitzero"` // how to get in: up to 1000 characters

	RawObject `json:"-"`
}

// PatientAddress is the patient's address in an import. It redacts itself when printed.
type PatientAddress struct {
	Redacted[PatientAddress]

	ReceiverName string  `json:"receiver_name"`         // whose name stands on the parcel
	FirstLine    string  `json:"first_line"`            // street and number
	City         string  `json:"city"`                  // city
	State        string  `json:"state"`                 // state, usually as two letters
	Zip          string  `json:"zip"`                   // postal code
	Country      string  `json:"country"`               // no format is documented; US is the usual one
	SecondLine   *string `json:"second_line,omitzero"`  // nil if there is none
	AccessNotes  *string `json:"access_notes,omitzero"` // how to get in: up to 1000 characters
}

// PatientAddressWithValidation is the patient's address when an order is created. It redacts itself when
// printed. Source: public API reference only.
type PatientAddressWithValidation struct {
	Redacted[PatientAddressWithValidation]

	ReceiverName string  `json:"receiver_name,omitzero"` // left out if empty
	FirstLine    string  `json:"first_line"`             // street and number
	City         string  `json:"city"`                   // city
	State        string  `json:"state"`                  // state, usually as two upper-case letters
	Zip          string  `json:"zip"`                    // five digits, or five and four: 94105-1234
	Country      string  `json:"country"`                // no format is documented; US is the usual one
	SecondLine   *string `json:"second_line,omitzero"`   // nil if there is none
	AccessNotes  *string `json:"access_notes,omitzero"`  // how to get in: up to 1000 characters
	PhoneNumber  *string `json:"phone_number,omitzero"`  // nil if there is none
}

// PhysicianCreateRequest is the ordering physician in a request. It redacts itself when printed.
type PhysicianCreateRequest struct {
	Redacted[PhysicianCreateRequest]

	FirstName      string   `json:"first_name"`               // given name
	LastName       string   `json:"last_name"`                // family name
	NPI            string   `json:"npi"`                      // National Provider Identifier
	Email          *string  `json:"email,omitzero"`           // nil if not given
	LicensedStates []string `json:"licensed_states,omitzero"` // left out if nil

	// SignatureImage is an image of the physician's signature, used for health-insurance billing; nil if there is none.
	SignatureImage *SignatureImage `json:"signature_image,omitzero"`
}

// SignatureImage is the specification's Jpeg and Png objects, which differ in nothing but the content type. [NewJPEG] and [NewPNG]
// make one from the bytes of a file.
type SignatureImage struct {
	Redacted[SignatureImage]

	// Content is sent as it is. The specification calls it binary and does not say how the bytes become text.
	Content string `json:"content"`
	// ContentType is image/jpeg or image/png.
	ContentType string `json:"content_type"`
}

// NewJPEG returns a JPEG image with its bytes in base64. The encoding is an inference: none is documented.
func NewJPEG(data []byte) *SignatureImage {
	return &SignatureImage{Content: base64.StdEncoding.EncodeToString(data), ContentType: "image/jpeg"}
}

// NewPNG returns a PNG image with its bytes in base64. The encoding is an inference: none is documented.
func NewPNG(data []byte) *SignatureImage {
	return &SignatureImage{Content: base64.StdEncoding.EncodeToString(data), ContentType: "image/png"}
}

// OrderPatientDetails is the patient as an order shows them. It redacts itself when printed.
type OrderPatientDetails struct {
	Redacted[OrderPatientDetails]

	// DOB is the date of birth. The specification calls it a date-time; both that and a bare date occur, and the day as written counts.
	DOB         Date    `json:"dob"`
	Gender      string  `json:"gender"`                // any text; see [Gender] for the usual ones
	FirstName   *string `json:"first_name,omitzero"`   // nil if not shown
	LastName    *string `json:"last_name,omitzero"`    // nil if not shown
	PhoneNumber *string `json:"phone_number,omitzero"` // nil if not shown
	Email       *string `json:"email,omitzero"`        // nil if not shown

	MedicalProxy      *GuarantorDetails  `json:"medical_proxy,omitzero"`      // parent or proxy, nil if none
	Race              *Race              `json:"race,omitzero"`               // nil if not specified
	Ethnicity         *Ethnicity         `json:"ethnicity,omitzero"`          // nil if not specified
	SexualOrientation *SexualOrientation `json:"sexual_orientation,omitzero"` // nil if not specified
	GenderIdentity    *GenderIdentity    `json:"gender_identity,omitzero"`    // nil if not specified

	RawObject `json:"-"`
}

// OrderPatientAddress is the patient's address as an order shows it. It redacts itself when printed.
type OrderPatientAddress struct {
	Redacted[OrderPatientAddress]

	ReceiverName string  `json:"receiver_name"`         // empty by default
	FirstLine    string  `json:"first_line"`            // street and number
	SecondLine   *string `json:"second_line,omitzero"`  // nil if there is none
	City         string  `json:"city"`                  // city
	State        string  `json:"state"`                 // state
	Zip          string  `json:"zip"`                   // postal code
	Country      string  `json:"country"`               // country
	AccessNotes  *string `json:"access_notes,omitzero"` // up to 1000 characters, nil if there are none
	PhoneNumber  *string `json:"phone_number,omitzero"` // nil if there is none

	RawObject `json:"-"`
}

// ShippingAddress is where a test kit is sent that nobody has registered yet. It redacts itself when printed.
type ShippingAddress struct {
	Redacted[ShippingAddress]

	ReceiverName string  `json:"receiver_name"`        // whose name stands on the parcel
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
	v.within("medical_proxy", func() {
		g := p.MedicalProxy
		v.required("first_name", g.FirstName)
		v.required("last_name", g.LastName)
		v.within("address", func() {
			a := &g.Address
			v.address(a.FirstLine, a.City, a.State, a.Zip, a.Country, a.AccessNotes)
		})
		v.required("phone_number", g.PhoneNumber)
	})
}

// isMinor reports whether a person with this birth date is under 18 in every time zone. A person born
// on 29 February may come of age on 28 February. A birth date in the future makes nobody a minor: it is
// another mistake, which neither the specification nor the reference rules out, so the service decides.
func isMinor(dob Date) bool {
	adult := Date{dob.Year + 18, dob.Month, dob.Day}
	if dob.Month == time.February && dob.Day == 29 {
		adult.Day = 28
	}
	today := latestToday()
	return adult.Compare(today) > 0 && dob.Compare(today) <= 0
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
	if image := p.SignatureImage; image != nil {
		v.within("signature_image", func() {
			v.required("content", image.Content)
			if image.ContentType != "image/jpeg" && image.ContentType != "image/png" {
				v.add("content_type", "value_error", "must be image/jpeg or image/png")
			}
		})
	}
}
