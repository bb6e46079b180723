// The areas and patient service centers where appointments are possible.

package labhealth

// Source of this file: public API reference only.

import (
	"context"
	"encoding/json"
	"regexp"
	"strconv"

	"github.com/google/uuid"
)

// PSCLab is a lab with patient service centers. Each operation supports only some of the values.
//
// Values other than the constants occur.
type PSCLab string

// Values of [PSCLab].
const (
	PSCLabQuest        PSCLab = "quest"
	PSCLabLabcorp      PSCLab = "labcorp"
	PSCLabBioreference PSCLab = "bioreference"
	PSCLabSonoraQuest  PSCLab = "sonora_quest"
)

// LabLocationCapability is a service of a patient service center.
//
// Values other than the constants occur.
type LabLocationCapability string

// Values of [LabLocationCapability].
const (
	// LabLocationStat means that the site accepts STAT orders.
	LabLocationStat LabLocationCapability = "stat"
	// LabLocationScheduling means that appointments at the site can be booked with
	// [AppointmentsService.Book].
	LabLocationScheduling LabLocationCapability = "appointment_scheduling_with_lab"
)

// AppointmentServiceType is how appointments at home are made with a provider.
//
// Values other than the constants occur.
type AppointmentServiceType string

// Values of [AppointmentServiceType].
const (
	// AppointmentServiceReady means that times are booked with [AppointmentsService.Book].
	AppointmentServiceReady AppointmentServiceType = "appointment-ready"
	// AppointmentServiceRequest means that appointments are requested with
	// [AppointmentsService.Request].
	AppointmentServiceRequest AppointmentServiceType = "appointment-request"
)

const (
	opArea       = "GET /v3/order/area/info"
	opSites      = "GET /v3/order/psc/info"
	opOrderSites = "GET /v3/order/{order_id}/psc/info"
)

// AreaParams selects an area.
type AreaParams struct {
	Redacted

	ZipCode string // five digits; required
	// Radius is the distance from the ZIP code: 10, 20, 25, 50 or 100, probably miles. The
	// service's default is 25.
	Radius       int
	Lab          PSCLab    // one lab; all if Lab and Labs are empty
	Labs         []PSCLab  // several labs
	LabAccountID uuid.UUID // zero for the team's default account
}

func (p AreaParams) validate(v *validator) {
	v.required("zip_code", p.ZipCode)
	v.zipCode("zip_code", p.ZipCode)
}

func (p AreaParams) query() queryValues {
	q := newQuery()
	q.setString("zip_code", p.ZipCode)
	q.setInt("radius", p.Radius)
	q.setString("lab", string(p.Lab))
	addStrings(q, "labs", p.Labs)
	q.setID("lab_account_id", p.LabAccountID)
	return q
}

// AreaInfo reports how samples can be collected in an area: the response of
// [AppointmentsService.Area].
type AreaInfo struct {
	ZipCode    string             `json:"zip_code"`   // the ZIP code searched
	Phlebotomy PhlebotomyAreaInfo `json:"phlebotomy"` // collection at home
	// CentralLabs reports the patient service centers of each lab. The key is a [PSCLab].
	CentralLabs map[string]PSCAreaInfo `json:"central_labs"`

	RawObject `json:"-"`
}

func (a *AreaInfo) verify() error {
	if a.ZipCode == "" && a.CentralLabs == nil {
		return &unreadable{reason: "it has no ZIP code and no labs"}
	}
	return nil
}

// PhlebotomyAreaInfo reports who collects samples at home in an area.
type PhlebotomyAreaInfo struct {
	IsServed  bool                     `json:"is_served"` // whether there is a provider
	Providers []PhlebotomyProviderInfo `json:"providers"` // empty if IsServed is false

	RawObject `json:"-"`
}

// PhlebotomyProviderInfo is a provider of appointments at home.
type PhlebotomyProviderInfo struct {
	Name         AppointmentProvider      `json:"name"`          // the provider
	ServiceTypes []AppointmentServiceType `json:"service_types"` // how appointments are made

	RawObject `json:"-"`
}

// PSCAreaInfo reports the patient service centers of a lab in an area.
type PSCAreaInfo struct {
	PatientServiceCenters PSCAreaInfoDetails `json:"patient_service_centers"` // their number and services
	SupportedBillTypes    []Billing          `json:"supported_bill_types"`    // accepted billing types
	LabID                 int64              `json:"lab_id"`                  // lab ID, for [SitesParams]

	RawObject `json:"-"`
}

// PSCAreaInfoDetails sums up the patient service centers of a lab in an area.
type PSCAreaInfoDetails struct {
	WithinRadius int64  `json:"within_radius"` // number of sites within the radius
	Radius       string `json:"radius"`        // the radius searched
	// Capabilities are the services of the sites, nil if unknown.
	Capabilities []LabLocationCapability `json:"capabilities,omitzero"`

	RawObject `json:"-"`
}

// SitesParams selects patient service centers.
type SitesParams struct {
	Redacted

	ZipCode string // five digits; required
	LabID   int64  // lab ID, from [PSCAreaInfo]; required
	// Radius is the distance from the ZIP code: 10, 20, 25, 50 or 100, probably miles. The
	// service's default is 25.
	Radius       int
	Capabilities []LabLocationCapability // sites with these services
	LabAccountID uuid.UUID               // zero for the team's default account
}

func (p SitesParams) validate(v *validator) {
	v.required("zip_code", p.ZipCode)
	v.zipCode("zip_code", p.ZipCode)
	if p.LabID == 0 {
		v.add("lab_id", "missing", "is required")
	}
}

func (p SitesParams) query() queryValues {
	q := newQuery()
	q.setString("zip_code", p.ZipCode)
	if p.LabID != 0 {
		q.Set("lab_id", strconv.FormatInt(p.LabID, 10))
	}
	q.setInt("radius", p.Radius)
	addStrings(q, "capabilities", p.Capabilities)
	q.setID("lab_account_id", p.LabAccountID)
	return q
}

// OrderSitesParams selects patient service centers near the patient of an order.
type OrderSitesParams struct {
	// Radius is the distance from the patient's address: 10, 20, 25, 50 or 100, probably miles. The
	// service's default is 25.
	Radius       int
	Capabilities []LabLocationCapability // sites with these services
}

func (p OrderSitesParams) query() queryValues {
	q := newQuery()
	q.setInt("radius", p.Radius)
	addStrings(q, "capabilities", p.Capabilities)
	return q
}

// PSCInfo lists the patient service centers of a lab: the response of [AppointmentsService.Sites]
// and [AppointmentsService.OrderSites].
type PSCInfo struct {
	LabID                 int64         `json:"lab_id"`                  // lab ID
	Slug                  PSCLab        `json:"slug"`                    // the lab
	PatientServiceCenters []LabLocation `json:"patient_service_centers"` // may be empty

	RawObject `json:"-"`
}

func (p *PSCInfo) verify() error { return requireList(p.PatientServiceCenters) }

// LabLocation is a patient service center of a lab.
type LabLocation struct {
	Metadata           LabLocationMetadata     `json:"metadata"`             // name, address and contact
	Distance           int64                   `json:"distance"`             // no unit is documented; probably miles
	SiteCode           string                  `json:"site_code"`            // for [WalkInAvailabilityParams]
	SupportedBillTypes []Billing               `json:"supported_bill_types"` // accepted billing types
	Location           LngLat                  `json:"location"`             // position
	Capabilities       []LabLocationCapability `json:"capabilities"`         // services of the site

	RawObject `json:"-"`
}

// LabLocationMetadata is the name, the address and the contact of a patient service center.
type LabLocationMetadata struct {
	Name        string  `json:"name"`                  // human-readable name
	State       string  `json:"state"`                 // state, usually two letters
	City        string  `json:"city"`                  // city
	ZipCode     string  `json:"zip_code"`              // ZIP code
	FirstLine   string  `json:"first_line"`            // street and number
	SecondLine  *string `json:"second_line,omitzero"`  // nil if there is none
	PhoneNumber *string `json:"phone_number,omitzero"` // nil if unknown
	FaxNumber   *string `json:"fax_number,omitzero"`   // nil if unknown
	// Hours are the opening hours: an object without a fixed shape, nil if unknown.
	Hours   json.RawMessage `json:"hours,omitzero"`
	Website *string         `json:"website,omitzero"` // URL, nil if there is none

	RawObject `json:"-"`
}

// Area reports how samples can be collected in an area: GET /v3/order/area/info. Call it before an
// order is created, to choose a lab and a collection method.
func (s *AppointmentsService) Area(ctx context.Context, params AreaParams, opts ...CallOption) (*AreaInfo, error) {
	return call(ctx, coreOf(s), new(AreaInfo), request{op: opArea, query: params}, opts)
}

// Sites lists the patient service centers of a lab near a ZIP code: GET /v3/order/psc/info.
func (s *AppointmentsService) Sites(ctx context.Context, params SitesParams, opts ...CallOption) (*PSCInfo, error) {
	return call(ctx, coreOf(s), new(PSCInfo), request{op: opSites, query: params}, opts)
}

// OrderSites lists the patient service centers of an order's lab near the patient's address: GET
// /v3/order/{order_id}/psc/info.
func (s *AppointmentsService) OrderSites(ctx context.Context, orderID uuid.UUID, params OrderSitesParams, opts ...CallOption) (*PSCInfo, error) {
	return call(ctx, coreOf(s), new(PSCInfo), request{op: opOrderSites, ids: []string{orderID.String()}, query: params}, opts)
}

var (
	zipCode     = regexp.MustCompile(`^\d{5}$`)
	longZipCode = regexp.MustCompile(`^\d{5}(-\d{4})?$`)
)

// zipCode validates a ZIP code of five digits, unless it is empty.
func (v *validator) zipCode(name, s string) {
	if s != "" && !zipCode.MatchString(s) {
		v.add(name, "string_pattern_mismatch", "must have five digits")
	}
}

func (a *USAddress) validate(v *validator) {
	v.required("first_line", a.FirstLine)
	v.required("city", a.City)
	v.required("state", a.State)
	if !longZipCode.MatchString(a.ZipCode) {
		v.add("zip_code", "string_pattern_mismatch", "is required: five digits, such as 94105, or nine, such as 94105-1234")
	}
	v.notes("access_notes", a.AccessNotes)
}

// notes validates a text of at most 1000 characters.
func (v *validator) notes(name string, s *string) {
	if s != nil {
		v.length(name, *s, 0, 1000)
	}
}
