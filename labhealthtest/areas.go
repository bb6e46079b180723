// Areas and patient service centers.

package labhealthtest

import (
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// area is a region with providers and patient service centers: the ZIP codes with a prefix. These
// are the ZIP codes of the invented patients.
type area struct {
	prefix   string
	city     string
	state    string
	timezone string
	location lngLat
}

var areas = []*area{
	{"941", "San Francisco", "CA", "America/Los_Angeles", lngLat{-122.39, 37.79}},
	{"895", "Reno", "NV", "America/Los_Angeles", lngLat{-119.81, 39.53}},
	{"787", "Austin", "TX", "America/Chicago", lngLat{-97.74, 30.27}},
}

// areaOf returns the area of a ZIP code, or nil if it is not served.
func areaOf(zip string) *area {
	a, _ := first(areas, func(a *area) bool { return strings.HasPrefix(zip, a.prefix) })
	return a
}

// pscLab is a lab with patient service centers. The lab tests of the catalog are those of
// mainLab and otherLab, whose slugs are the same, so that an order leads to its sites.
type pscLab struct {
	id   int
	slug string
}

var pscLabs = []*pscLab{{mainLab.ID, mainLab.Slug}, {otherLab.ID, otherLab.Slug}}

func pscLabOf(match func(*pscLab) bool) *pscLab {
	l, _ := first(pscLabs, match)
	return l
}

// site is a patient service center.
type site struct {
	lab          *pscLab
	area         *area
	code         string
	name         string
	zip          string
	firstLine    string
	capabilities []string
}

// sites are two patient service centers of each lab in each area: one with bookings and, in
// another ZIP code, one without.
var sites = func() []*site {
	var list []*site
	for _, l := range pscLabs {
		code := strings.ToUpper(l.slug[:1]) + "-"
		for _, a := range areas {
			list = append(list,
				&site{l, a, code + a.prefix + "-1", a.city + " Center", a.prefix + "05", "10 Market Street",
					[]string{"stat", "appointment_scheduling_with_lab"}},
				&site{l, a, code + a.prefix + "-2", a.city + " North", a.prefix + "33", "20 Hill Street", []string{}})
		}
	}
	return list
}()

// distance returns an invented distance in miles: 1 in the same ZIP code, else 12.
func (s *site) distance(zip string) int {
	if strings.HasPrefix(zip, s.zip) {
		return 1
	}
	return 12
}

func (s *site) address() usAddress {
	return usAddress{FirstLine: s.firstLine, City: s.area.city, State: s.area.state, ZipCode: s.zip}
}

// sitesNear returns the sites of a lab within a radius that have all capabilities.
func sitesNear(l *pscLab, zip string, radius int, capabilities []string) []*site {
	return selectFunc(sites, func(s *site) bool {
		for _, c := range capabilities {
			if !slices.Contains(s.capabilities, c) {
				return false
			}
		}
		return s.lab == l && s.area == areaOf(zip) && s.distance(zip) <= radius
	})
}

type areaInfo struct {
	ZipCode    string `json:"zip_code"`
	Phlebotomy struct {
		IsServed  bool           `json:"is_served"`
		Providers []areaProvider `json:"providers"`
	} `json:"phlebotomy"`
	CentralLabs map[string]areaLab `json:"central_labs"`
}

type areaProvider struct {
	Name         string   `json:"name"`
	ServiceTypes []string `json:"service_types"`
}

type areaLab struct {
	PatientServiceCenters struct {
		WithinRadius int      `json:"within_radius"`
		Radius       string   `json:"radius"`
		Capabilities []string `json:"capabilities"`
	} `json:"patient_service_centers"`
	SupportedBillTypes []string `json:"supported_bill_types"`
	LabID              int      `json:"lab_id"`
}

// homeProviders are the providers of appointments at home: one that is booked, and one that is
// asked.
var homeProviders = []areaProvider{
	{"getlabs", []string{"appointment-ready"}},
	{"phlebfinders", []string{"appointment-request"}},
}

var siteBillTypes = []string{"client_bill", "patient_bill"}

// getAreaInfo reports all labs, or those of the parameters lab and labs.
func (s *Server) getAreaInfo(r *request) (any, error) {
	zip := r.queryOne("zip_code")
	wanted := r.queryList("labs")
	if lab := r.queryOne("lab"); lab != "" {
		wanted = append(wanted, lab)
	}
	info := areaInfo{ZipCode: zip, CentralLabs: map[string]areaLab{}}
	info.Phlebotomy.Providers = []areaProvider{}
	if areaOf(zip) != nil {
		info.Phlebotomy.IsServed, info.Phlebotomy.Providers = true, homeProviders
	}
	for _, l := range pscLabs {
		if len(wanted) > 0 && !slices.Contains(wanted, l.slug) {
			continue
		}
		near := sitesNear(l, zip, r.queryInt("radius"), nil)
		lab := areaLab{SupportedBillTypes: siteBillTypes, LabID: l.id}
		lab.PatientServiceCenters.WithinRadius = len(near)
		lab.PatientServiceCenters.Radius = r.queryOne("radius")
		lab.PatientServiceCenters.Capabilities = []string{}
		if len(near) > 0 {
			lab.PatientServiceCenters.Capabilities = near[0].capabilities
		}
		info.CentralLabs[l.slug] = lab
	}
	return info, nil
}

type pscInfo struct {
	LabID                 int       `json:"lab_id"`
	Slug                  string    `json:"slug"`
	PatientServiceCenters []pscSite `json:"patient_service_centers"`
}

type pscSite struct {
	Metadata struct {
		Name        string  `json:"name"`
		State       string  `json:"state"`
		City        string  `json:"city"`
		ZipCode     string  `json:"zip_code"`
		FirstLine   string  `json:"first_line"`
		SecondLine  *string `json:"second_line"`
		PhoneNumber *string `json:"phone_number"`
		FaxNumber   *string `json:"fax_number"`
		Hours       any     `json:"hours"`
		Website     *string `json:"website"`
	} `json:"metadata"`
	Distance           int      `json:"distance"`
	SiteCode           string   `json:"site_code"`
	SupportedBillTypes []string `json:"supported_bill_types"`
	Location           lngLat   `json:"location"`
	Capabilities       []string `json:"capabilities"`
}

var openingHours = map[string]string{"monday": "07:00-16:00", "saturday": "08:00-12:00"}

// newPSCInfo returns the sites of a lab that the request selects.
func newPSCInfo(r *request, l *pscLab, zip string) pscInfo {
	info := pscInfo{l.id, l.slug, []pscSite{}}
	for _, near := range sitesNear(l, zip, r.queryInt("radius"), r.queryList("capabilities")) {
		p := pscSite{
			Distance: near.distance(zip), SiteCode: near.code, SupportedBillTypes: siteBillTypes,
			Location: near.area.location, Capabilities: near.capabilities,
		}
		m := &p.Metadata
		m.Name, m.State, m.City, m.ZipCode, m.FirstLine = near.name, near.area.state, near.area.city, near.zip, near.firstLine
		m.PhoneNumber, m.Hours = new("+14155550160"), openingHours
		info.PatientServiceCenters = append(info.PatientServiceCenters, p)
	}
	return info
}

var noSites = reject(http.StatusBadRequest, "Lab has no patient service centers")

func (s *Server) getPSCInfo(r *request) (any, error) {
	l := pscLabOf(func(l *pscLab) bool { return l.id == r.queryInt("lab_id") })
	if l == nil {
		return nil, noSites
	}
	return newPSCInfo(r, l, r.queryOne("zip_code")), nil
}

func (s *Server) getOrderPSCInfo(r *request, o *order) (any, error) {
	l := labOfOrder(o)
	switch {
	case l == nil:
		return nil, noSites
	case o.PatientAddress == nil: // a testkit that is not registered
		return nil, reject(http.StatusBadRequest, "Order has no patient address")
	}
	return newPSCInfo(r, l, o.PatientAddress.Zip), nil
}

// labOfOrder returns the lab of an order, or nil if it has no patient service centers.
func labOfOrder(o *order) *pscLab {
	return pscLabOf(func(l *pscLab) bool { return o.LabTest.Lab != nil && l.id == o.LabTest.Lab.ID })
}

// cancellationReason is a reason to cancel an appointment.
type cancellationReason struct {
	ID           uuid.UUID `json:"id"`
	Name         string    `json:"name"`
	IsRefundable bool      `json:"is_refundable"`
}
