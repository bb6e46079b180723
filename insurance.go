// The insurance of users, payors and diagnosis codes: types and methods.

package labhealth

// Source of this file: public API reference only.

import (
	"context"
	"strconv"

	"github.com/google/uuid"
)

// InsuranceService looks up payors and diagnosis codes. See [Client.Insurance]. The insurance of a
// user is created with [UsersService.CreateInsurance].
type InsuranceService struct{ core *core }

const (
	opCreateInsurance        = "POST /v2/user/{user_id}/insurance"
	opLatestInsurance        = "GET /v2/user/{user_id}/insurance/latest"
	opSearchPayors           = "GET /v3/insurance/search/payor"
	opSearchPayorsDeprecated = "POST /v3/insurance/search/payor"
	opCreatePayor            = "POST /v3/payor"
	opSearchDiagnoses        = "GET /v3/insurance/search/diagnosis"
	opValidateICDCodes       = "POST /v3/insurance/validate_icd_codes"
)

// CreateInsuranceBody is the request of [UsersService.CreateInsurance].
type CreateInsuranceBody struct {
	Redacted

	PayorCode    string                  `json:"payor_code"`         // [Payor.PayorCode] of the insurer
	MemberID     string                  `json:"member_id"`          // the insurer's ID of the insured person
	GroupID      *string                 `json:"group_id,omitzero"`  // ID of the group, nil if there is none
	Relationship ResponsibleRelationship `json:"relationship"`       // of the patient to the insured person
	Insured      InsuredPerson           `json:"insured"`            // the insured person
	Guarantor    *GuarantorDetails       `json:"guarantor,omitzero"` // who pays what is not insured, nil if not given
	// IsPrimary is whether this is the user's primary insurance: true if nil.
	IsPrimary *bool `json:"is_primary,omitzero"`
}

func (b *CreateInsuranceBody) validate(v *validator) {
	v.required("payor_code", b.PayorCode)
	v.required("member_id", b.MemberID)
	v.required("relationship", string(b.Relationship))
	v.within("insured", func() { b.Insured.validate(v) })
	if b.Guarantor != nil {
		v.within("guarantor", func() { b.Guarantor.validate(v) })
	}
}

// InsuredPerson is the person whom an insurance covers, in requests and in responses.
type InsuredPerson struct {
	FirstName   string  `json:"first_name"`   // given name
	LastName    string  `json:"last_name"`    // family name
	Gender      Gender  `json:"gender"`       // values other than the constants may be accepted
	Address     Address `json:"address"`      // home address
	DOB         Date    `json:"dob"`          // date of birth
	Email       string  `json:"email"`        // one address
	PhoneNumber string  `json:"phone_number"` // no format is documented; +14155550123 is usual

	RawObject `json:"-"`
}

func (p *InsuredPerson) validate(v *validator) {
	v.required("first_name", p.FirstName)
	v.required("last_name", p.LastName)
	v.required("gender", string(p.Gender))
	v.within("address", func() { p.Address.validate(v) })
	v.date("dob", p.DOB)
	v.email("email", p.Email)
	v.required("phone_number", p.PhoneNumber)
}

// Insurance is the health insurance of a user.
type Insurance struct {
	PayorCode    string                  `json:"payor_code"`                // [Payor.PayorCode] of the insurer
	MemberID     string                  `json:"member_id"`                 // the insurer's ID of the insured person
	GroupID      *string                 `json:"group_id,omitzero"`         // ID of the group, nil if there is none
	Relationship ResponsibleRelationship `json:"relationship"`              // of the patient to the insured person
	Insured      InsuredPerson           `json:"insured"`                   // the insured person
	Guarantor    *GuarantorDetails       `json:"guarantor,omitzero"`        // who pays what is not insured, nil if not given
	Company      CompanyDetails          `json:"company"`                   // the insurer
	IsPrimary    bool                    `json:"is_primary" default:"true"` // the user's primary insurance; true by default

	RawObject `json:"-"`
}

func (i *Insurance) verify() error {
	if i.MemberID == "" {
		return &unreadable{reason: "it has no readable member id"}
	}
	return nil
}

// CompanyDetails is the company of an [Insurance].
type CompanyDetails struct {
	Name    string  `json:"name"`    // display name
	Address Address `json:"address"` // postal address

	RawObject `json:"-"`
}

// LatestInsuranceParams selects an insurance of a user.
type LatestInsuranceParams struct {
	IsPrimary *bool // false for the secondary insurance; the primary one if nil
}

func (p LatestInsuranceParams) query() queryValues {
	q := newQuery()
	q.setBool("is_primary", p.IsPrimary)
	return q
}

// Payor is an insurer.
type Payor struct {
	PayorCode  string      `json:"payor_code"`  // for [CreateInsuranceBody.PayorCode]
	Name       string      `json:"name"`        // display name
	Aliases    []string    `json:"aliases"`     // other names
	OrgAddress Address     `json:"org_address"` // postal address
	Source     PayorSource `json:"source"`      // who added it

	RawObject `json:"-"`
}

func (p *Payor) verify() error {
	if p.PayorCode == "" {
		return &unreadable{reason: "it has no readable payor code"}
	}
	return nil
}

// DeprecatedPayor is an insurer as [InsuranceService.SearchPayorsDeprecated] returns it.
//
// Deprecated: use [Payor].
type DeprecatedPayor struct {
	Code       string      `json:"code"`        // the payor code
	Name       string      `json:"name"`        // display name
	Aliases    []string    `json:"aliases"`     // other names
	OrgAddress Address     `json:"org_address"` // postal address
	Source     PayorSource `json:"source"`      // who added it

	RawObject `json:"-"`
}

// PayorSource is who added a [Payor]: the service or the team. Values other than the constants
// occur.
type PayorSource string

// Values of [PayorSource].
const (
	PayorSourcePlatform PayorSource = "platform"
	PayorSourceTeam     PayorSource = "team"
)

// PayorProvider is a clearing house that has its own codes of payors. Values other than the
// constants occur.
type PayorProvider string

// Values of [PayorProvider].
const (
	PayorProviderChangeHealthcare PayorProvider = "change_healthcare"
	PayorProviderAvaility         PayorProvider = "availity"
	PayorProviderStedi            PayorProvider = "stedi"
	PayorProviderWaystar          PayorProvider = "waystar"
	PayorProviderClaimMD          PayorProvider = "claim_md"
	PayorProviderApero            PayorProvider = "apero"
	PayorProviderPVerify          PayorProvider = "pverify"
)

// SearchPayorsParams selects payors, by name or by the code of a clearing house. Zero fields are
// not sent.
type SearchPayorsParams struct {
	Redacted

	InsuranceName   string        // part of the name
	Provider        PayorProvider // the clearing house of ProviderPayorID
	ProviderPayorID string        // its code of the payor
}

func (p SearchPayorsParams) query() queryValues {
	q := newQuery()
	q.setString("insurance_name", p.InsuranceName)
	q.setString("provider", string(p.Provider))
	q.setString("provider_payor_id", p.ProviderPayorID)
	return q
}

// searchPayors is the body of the deprecated search.
type searchPayors struct {
	InsuranceName *string        `json:"insurance_name,omitzero"`
	Provider      *PayorProvider `json:"provider,omitzero"`
	ProviderID    *string        `json:"provider_id,omitzero"`
}

// CreatePayorBody is the request of [InsuranceService.CreatePayor].
type CreatePayorBody struct {
	Redacted

	Name            string         `json:"name"`                       // display name
	Address         Address        `json:"address"`                    // postal address
	Provider        *PayorProvider `json:"provider,omitzero"`          // the clearing house of ProviderPayorID, nil for none
	ProviderPayorID *string        `json:"provider_payor_id,omitzero"` // its code of the payor, nil for none
}

func (b *CreatePayorBody) validate(v *validator) {
	v.required("name", b.Name)
	v.within("address", func() { b.Address.validate(v) })
}

// Diagnosis is a diagnosis with its code.
type Diagnosis struct {
	DiagnosisCode string `json:"diagnosis_code"`               // ICD-10 code, such as E11.9
	Description   string `json:"description"`                  // human-readable
	IsSecondary   bool   `json:"is_secondary" default:"false"` // not valid as the first code; false by default. An inference.

	RawObject `json:"-"`
}

// validateICDCodes is the body of [InsuranceService.ValidateICDCodes].
type validateICDCodes struct {
	Codes []string `json:"codes"`
}

func (b *validateICDCodes) validate(v *validator) {
	for i, code := range b.Codes {
		v.within("codes", func() { v.required(strconv.Itoa(i), code) })
	}
}

// ICDValidation is the response of [InsuranceService.ValidateICDCodes].
type ICDValidation struct {
	Valid      bool           `json:"valid"`      // whether an order can have the codes together
	Errors     []string       `json:"errors"`     // what is wrong, for people
	Violations []ICDViolation `json:"violations"` // codes that exclude each other
	Warnings   []ICDWarning   `json:"warnings"`   // codes that overlap

	RawObject `json:"-"`
}

// verify rejects the body of an error, which would mean that the codes are invalid.
func (r *ICDValidation) verify() error {
	if !r.Valid && r.Errors == nil && r.Violations == nil && r.Warnings == nil {
		return &unreadable{reason: "it has no readable result"}
	}
	return nil
}

// ICDViolation is a pair of codes that exclude each other.
type ICDViolation struct {
	Code          string `json:"code"`           // one code
	ConflictsWith string `json:"conflicts_with"` // the other one
	Type          string `json:"type"`           // kind of the rule; its values are not documented

	RawObject `json:"-"`
}

// ICDWarning is a pair of codes that overlap.
type ICDWarning struct {
	Code         string `json:"code"`          // one code
	OverlapsWith string `json:"overlaps_with"` // the other one
	Type         string `json:"type"`          // kind of the rule; its values are not documented

	RawObject `json:"-"`
}

// CreateInsurance adds a health insurance to a user: POST /v2/user/{user_id}/insurance. Orders with
// [BillingCommercialInsurance] need one.
func (s *UsersService) CreateInsurance(ctx context.Context, userID uuid.UUID, body CreateInsuranceBody, opts ...CallOption) (*Insurance, error) {
	return call(ctx, coreOf(s), new(Insurance), request{op: opCreateInsurance, ids: []string{userID.String()}, body: &body}, opts)
}

// LatestInsurance returns the insurance of a user that was added last: GET
// /v2/user/{user_id}/insurance/latest. The error for a user who has none matches [ErrNotFound];
// this status is an inference.
func (s *UsersService) LatestInsurance(ctx context.Context, userID uuid.UUID, params LatestInsuranceParams, opts ...CallOption) (*Insurance, error) {
	return call(ctx, coreOf(s), new(Insurance), request{op: opLatestInsurance, ids: []string{userID.String()}, query: params}, opts)
}

// SearchPayors returns the payors that match: GET /v3/insurance/search/payor.
func (s *InsuranceService) SearchPayors(ctx context.Context, params SearchPayorsParams, opts ...CallOption) ([]Payor, error) {
	return callList[Payor](ctx, coreOf(s), request{op: opSearchPayors, query: params}, opts)
}

// SearchPayorsDeprecated returns the payors that match: POST /v3/insurance/search/payor.
//
// Deprecated: use [InsuranceService.SearchPayors].
func (s *InsuranceService) SearchPayorsDeprecated(ctx context.Context, params SearchPayorsParams, opts ...CallOption) ([]DeprecatedPayor, error) {
	var body searchPayors
	if params.InsuranceName != "" {
		body.InsuranceName = &params.InsuranceName
	}
	if params.Provider != "" {
		body.Provider = &params.Provider
	}
	if params.ProviderPayorID != "" {
		body.ProviderID = &params.ProviderPayorID
	}
	return callList[DeprecatedPayor](ctx, coreOf(s), request{op: opSearchPayorsDeprecated, body: &body}, opts)
}

// CreatePayor adds a payor that the search does not find, for the team alone: POST /v3/payor.
func (s *InsuranceService) CreatePayor(ctx context.Context, body CreatePayorBody, opts ...CallOption) (*Payor, error) {
	return call(ctx, coreOf(s), new(Payor), request{op: opCreatePayor, body: &body}, opts)
}

// diagnosisQuery is the parameter of [InsuranceService.SearchDiagnoses].
type diagnosisQuery string

func (p diagnosisQuery) validate(v *validator) { v.required("diagnosis_query", string(p)) }

func (p diagnosisQuery) query() queryValues {
	q := newQuery()
	q.setString("diagnosis_query", string(p))
	return q
}

// SearchDiagnoses returns the diagnoses whose code or description matches query: GET
// /v3/insurance/search/diagnosis. Their codes are those of [CreateOrderBody.ICDCodes].
func (s *InsuranceService) SearchDiagnoses(ctx context.Context, query string, opts ...CallOption) ([]Diagnosis, error) {
	return callList[Diagnosis](ctx, coreOf(s), request{op: opSearchDiagnoses, query: diagnosisQuery(query)}, opts)
}

// ValidateICDCodes checks whether an order can have ICD codes together: POST
// /v3/insurance/validate_icd_codes. Check Valid of the result: it is no error if it is false.
func (s *InsuranceService) ValidateICDCodes(ctx context.Context, codes []string, opts ...CallOption) (*ICDValidation, error) {
	return call(ctx, coreOf(s), new(ICDValidation), request{op: opValidateICDCodes, body: &validateICDCodes{codes}}, opts)
}
