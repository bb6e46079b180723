// Lists of markers, and their expected results.

package labhealthtest

import (
	"net/http"
	"strconv"
	"strings"
)

// listedMarker is a marker in lists of markers.
type listedMarker struct {
	marker
	ExpectedResults []expectedResult `json:"expected_results"`
}

type expectedResult struct {
	ID         int64   `json:"id"`
	Name       string  `json:"name"`
	Slug       string  `json:"slug"`
	LabID      *int    `json:"lab_id"`
	ProviderID *string `json:"provider_id"`
	Required   bool    `json:"required"`
	LOINC      loinc   `json:"loinc"`
}

type loinc struct {
	ID   int64   `json:"id"`
	Name string  `json:"name"`
	Slug string  `json:"slug"`
	Code string  `json:"code"`
	Unit *string `json:"unit"`
}

// listed returns m with the result that orders with m have.
func (m marker) listed() listedMarker {
	return listedMarker{m, []expectedResult{{
		ID: m.ID, Name: m.Name, Slug: m.Slug, LabID: m.LabID, ProviderID: m.ProviderID, Required: true,
		LOINC: loinc{ID: m.ID, Name: m.Name, Slug: m.Slug, Code: resultOf(m).loinc, Unit: m.Unit},
	}}}
}

// markerPage returns the page of markers that the request selects.
func markerPage(r *request, markers []marker) any {
	page, size := r.queryInt("page"), r.queryInt("size")
	from, to := pageBounds(page, size, len(markers))
	listed := []listedMarker{}
	for _, m := range markers[from:to] {
		listed = append(listed, m.listed())
	}
	return struct {
		Markers []listedMarker `json:"markers"`
		Total   int            `json:"total"`
		Page    int            `json:"page"`
		Size    int            `json:"size"`
		Pages   int            `json:"pages"`
		Pricing any            `json:"pricing"`
	}{
		listed, len(markers), page, size, (len(markers) + size - 1) / size,
		requestedPricing(r, func() any { return pricingOfMarkers(markers[from:to]) }),
	}
}

func (s *Server) listMarkers(r *request) (any, error) {
	account, err := s.queryAccount(r)
	if err != nil {
		return nil, err
	}
	found := selected(r, allMarkers, markerFilters)
	if account != nil {
		found = selectFunc(found, func(m marker) bool { return labOf(m).Slug == account.Lab })
	}
	return markerPage(r, found), nil
}

// markerFilters are the parameters that select markers.
var markerFilters = []filter[marker]{
	equals("lab_id", func(m marker) string { return strconv.Itoa(*m.LabID) }),
	equals("lab_slug", func(m marker) string { return labOf(m).Slug }),
	contains("name", func(m marker) string { return strings.ToLower(m.Name) }),
	equals("a_la_carte_enabled", func(m marker) string { return strconv.FormatBool(m.ALaCarteEnabled) }),
}

func (s *Server) listMarkersOfTest(r *request, t *labTest) (any, error) {
	return markerPage(r, t.Markers), nil
}

// listOrderSetMarkers returns the markers that an order with the order set in the body would have.
func (s *Server) listOrderSetMarkers(r *request) (any, error) {
	var set orderSet
	r.decode(&set)
	tests, err := s.testsByID(set.LabTestIDs)
	if err != nil {
		return nil, err
	}
	markers, err := set.addOnMarkers()
	if err != nil {
		return nil, err
	}
	var all []marker
	for _, t := range tests {
		all = append(all, t.Markers...)
	}
	all = withoutDuplicates(append(all, markers...))
	if len(all) > 0 {
		if _, err := s.usableAccount(set.LabAccountID, labOf(all[0])); err != nil {
			return nil, err
		}
	}
	return markerPage(r, all), nil
}

func (s *Server) getMarker(r *request) (any, error) {
	account, err := s.queryAccount(r)
	if err != nil {
		return nil, err
	}
	for _, m := range allMarkers {
		l := labOf(m)
		if r.vars["provider_id"] == *m.ProviderID && r.vars["lab_id"] == strconv.Itoa(l.ID) && (account == nil || account.Lab == l.Slug) {
			return m, nil
		}
	}
	return nil, reject(http.StatusNotFound, "Marker does not exist")
}
