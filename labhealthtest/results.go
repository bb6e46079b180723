// Invented results.

package labhealthtest

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// The results of the markers of the catalog. Other markers have the result of the first one.
var (
	inventedResults = map[int64]inventedResult{
		901: {"182", "numeric", new(0.0), new(200.0), "2093-3"},
		902: {"58.5", "numeric", new(40.0), nil, "2085-9"},
		903: {"92", "numeric", new(70.0), new(99.0), "2345-7"},
		904: {"<1.0", "range", new(0.0), new(3.5), "5671-3"},
		905: {"101", "numeric", new(88.0), new(137.0), "2164-2"},
		907: {"96", "numeric", new(0.0), new(100.0), "13457-7"},
		908: {"118", "numeric", new(0.0), new(150.0), "2571-8"},
		909: {"5.4", "numeric", new(4.0), new(5.6), "4548-4"},
		910: {"<1.0", "range", new(0.0), new(3.5), "30522-7"},
		911: {"64", "numeric", new(15.0), new(150.0), "2276-4"},
		912: {"2.31", "numeric", new(0.45), new(4.5), "3016-3"},
		913: {"Negative", "coded_value", nil, nil, "6928-6"},
		914: {"38", "numeric", new(0.0), new(75.0), "10835-7"},
		915: {"92", "numeric", new(70.0), new(99.0), "1558-6"},
		916: {"34", "numeric", new(30.0), new(100.0), "1989-3"},
		917: {"421", "numeric", new(264.0), new(916.0), "2986-8"},
	}
	// outOfRange replaces the first result of an order whose interpretation is not normal.
	outOfRange = inventedResult{"412", "numeric", new(0.0), new(200.0), "2093-3"}
)

type inventedResult struct {
	value, kind string
	low, high   *float64
	loinc       string
}

func resultOf(m marker) inventedResult {
	if v, ok := inventedResults[m.ID]; ok {
		return v
	}
	return inventedResults[901]
}

// referenceRange formats the range of usual values.
func (v inventedResult) referenceRange() *string {
	if v.low == nil {
		return nil
	}
	if v.high == nil {
		return new(fmt.Sprintf(">=%g", *v.low))
	}
	return new(fmt.Sprintf("%g-%g", *v.low, *v.high))
}

// isOutside reports whether a number is above or below the range of usual values.
func (v inventedResult) isOutside() (above, below bool) {
	n, err := strconv.ParseFloat(v.value, 64)
	if err != nil {
		return false, false
	}
	return v.high != nil && n > *v.high, v.low != nil && n < *v.low
}

type orderResults struct {
	Metadata    resultsMetadata       `json:"metadata"`
	Results     []result              `json:"results"`
	Missing     []missingResult       `json:"missing_results"`
	Samples     map[string]sampleInfo `json:"sample_information"`
	Transaction *transaction          `json:"order_transaction"`
}

type resultsMetadata struct {
	Age            string    `json:"age"`
	DOB            string    `json:"dob"`
	CLIA           string    `json:"clia_#"`
	Patient        string    `json:"patient"`
	Provider       *string   `json:"provider"`
	Laboratory     string    `json:"laboratory"`
	DateReported   timestamp `json:"date_reported"`
	DateCollected  timestamp `json:"date_collected"`
	DateReceived   timestamp `json:"date_received"`
	SpecimenNumber string    `json:"specimen_number"`
	Status         string    `json:"status"`
	Interpretation *string   `json:"interpretation"`
	PatientID      *string   `json:"patient_id"`
	AccountID      *string   `json:"account_id"`
}

type result struct {
	Name   string `json:"name"`
	Slug   string `json:"slug"`
	Result string `json:"result"`
	// The interface specification has result_type, the public API reference has type.
	ResultType      string         `json:"result_type"`
	Type            string         `json:"type"`
	Unit            *string        `json:"unit"`
	Timestamp       timestamp      `json:"timestamp"`
	Notes           *string        `json:"notes"`
	ReferenceRange  *string        `json:"reference_range"`
	MinRangeValue   *float64       `json:"min_range_value"`
	MaxRangeValue   *float64       `json:"max_range_value"`
	IsAboveMaxRange bool           `json:"is_above_max_range"`
	IsBelowMinRange bool           `json:"is_below_min_range"`
	Interpretation  string         `json:"interpretation"`
	LOINC           string         `json:"loinc"`
	LOINCSlug       string         `json:"loinc_slug"`
	ProviderID      *string        `json:"provider_id"`
	SourceMarkers   []sourceMarker `json:"source_markers"`
	Laboratory      string         `json:"performing_laboratory"`
	SampleID        string         `json:"source_sample_id"`
}

type missingResult struct {
	Name          string         `json:"name"`
	Slug          string         `json:"slug"`
	FailureType   string         `json:"inferred_failure_type"`
	Note          *string        `json:"note"`
	LOINC         string         `json:"loinc"`
	LOINCSlug     string         `json:"loinc_slug"`
	ProviderID    *string        `json:"provider_id"`
	SourceMarkers []sourceMarker `json:"source_markers"`
}

type sourceMarker struct {
	MarkerID   int64   `json:"marker_id"`
	Name       string  `json:"name"`
	Slug       string  `json:"slug"`
	ProviderID *string `json:"provider_id"`
}

type sampleInfo struct {
	SampleID      string                          `json:"sample_id"`
	ControlNumber *string                         `json:"control_number"`
	DateCollected sampleTime                      `json:"date_collected"`
	DateReceived  sampleTime                      `json:"date_received"`
	DateReported  string                          `json:"date_reported"` // not in the other form, which occurs too
	Laboratories  map[string]performingLaboratory `json:"performing_laboratories"`
	Clinical      clinicalInformation             `json:"clinical_information"`
}

type sampleTime struct {
	Timestamp timestamp `json:"timestamp"`
	Offset    int       `json:"timezone_offset"`
}

type performingLaboratory struct {
	Name            string            `json:"name"`
	PhoneNumber     *string           `json:"phone_number"`
	MedicalDirector *string           `json:"medical_director"`
	Address         *guarantorAddress `json:"address"`
}

type clinicalInformation struct {
	Fasting     bool    `json:"fasting"`
	Notes       *string `json:"notes"`
	Information *string `json:"information"`
	TotalVolume *string `json:"total_volume"`
}

// sampleInfo describes the sample of an order, whose results were reported at a time.
func (o *order) sampleInfo(specimen string, at timestamp) sampleInfo {
	l := o.LabTest.Lab
	return sampleInfo{
		SampleID: specimen, DateCollected: sampleTime{Timestamp: o.CreatedAt}, DateReceived: sampleTime{Timestamp: at},
		DateReported: time.Time(at).Format(time.DateOnly), Clinical: clinicalInformation{Notes: o.ClinicalNotes},
		Laboratories: map[string]performingLaboratory{l.Slug: {Name: l.Name, Address: &guarantorAddress{
			FirstLine: l.FirstLineAddress, Country: "US", Zip: l.Zipcode, City: l.City, State: labStates[l.ID],
		}}},
	}
}

// labStates are the states of the labs of the catalog.
var labStates = map[int]string{mainLab.ID: "NV", otherLab.ID: "TX"}

// SetResults sets the response body of an order's results, valid or not, regardless of the status
// of the order. An empty body restores the invented results.
func (s *Server) SetResults(orderID uuid.UUID, body string) error {
	return s.editOrder(orderID, func(o *order) error {
		o.results = nil
		if body != "" {
			o.results = []byte(body)
		}
		return nil
	})
}

// SetInterpretation sets the interpretation of an order's results, such as "abnormal". It is null
// if empty. SetInterpretation sends no event.
func (s *Server) SetInterpretation(orderID uuid.UUID, interpretation string) error {
	return s.editOrder(orderID, func(o *order) error {
		o.Interpretation = nil
		if interpretation != "" {
			o.Interpretation = &interpretation
		}
		o.UpdatedAt = timestamp(s.now())
		return nil
	})
}

// CorrectResult replaces the value of a marker in the invented results of an order, as a lab that
// corrects a result. Neither the status nor updated_at of the order changes, and no event is sent:
// only reading the results shows the correction. CorrectResult returns an error if the order does
// not exist, does not have the marker, or has no results.
func (s *Server) CorrectResult(orderID uuid.UUID, markerID int64, value string) error {
	return s.editOrder(orderID, func(o *order) error {
		switch {
		case !o.hasMarker(markerID):
			return errNoMarker(markerID)
		case !o.hasResults():
			return errors.New("labhealthtest: the order has no results")
		}
		if o.corrected == nil {
			o.corrected = map[int64]string{}
		}
		o.corrected[markerID] = value
		return nil
	})
}

func (o *order) hasMarker(id int64) bool {
	return slices.ContainsFunc(o.LabTest.Markers, func(m marker) bool { return m.ID == id })
}

func errNoMarker(id int64) error {
	return fmt.Errorf("labhealthtest: marker %d is not part of the order", id)
}

// SetMissing reports a marker of an order as not measured, with a reason such as
// "quantity_not_sufficient_failure". SetMissing sends no event.
func (s *Server) SetMissing(orderID uuid.UUID, markerID int64, reason string) error {
	return s.editOrder(orderID, func(o *order) error {
		if !o.hasMarker(markerID) {
			return errNoMarker(markerID)
		}
		if o.missing == nil {
			o.missing = map[int64]string{}
		}
		o.missing[markerID] = reason
		o.HasMissingResults = new(true)
		o.UpdatedAt = timestamp(s.now())
		return nil
	})
}

func (s *Server) getResults(_ *request, o *order) (any, error) {
	if o.results != nil {
		return o.setResults(), nil
	}
	return o.inventResults(), nil
}

// setResults returns the response that SetResults has set.
func (o *order) setResults() *response {
	return &response{statusCode: http.StatusOK, body: o.results, contentType: contentTypeOf(string(o.results))}
}

func (s *Server) getResultsMetadata(_ *request, o *order) (any, error) {
	return o.inventResults().Metadata, nil
}

// requestedResults returns the order in the path, which has results.
func (s *Server) requestedResults(r *request) (*order, error) {
	o, err := s.requestedOrder(r)
	if err != nil {
		return nil, err
	}
	if !o.hasResults() {
		return nil, errNoResults
	}
	return o, nil
}

var errNoResults = reject(http.StatusNotFound, "Results are not available yet")

// hasResults reports whether an order has results: it was completed or had partial results before,
// and is not canceled.
func (o *order) hasResults() bool {
	switch {
	case o.results != nil:
		return true
	case o.Status == "cancelled" || o.PatientDetails == nil:
		return false
	}
	return slices.ContainsFunc(o.Events, func(e orderEvent) bool {
		return strings.HasPrefix(e.Status, "completed.") || strings.HasSuffix(e.Status, ".partial_results")
	})
}

// isPartial reports whether the results of an order are partial.
func (o *order) isPartial() bool {
	return !slices.ContainsFunc(o.Events, func(e orderEvent) bool {
		return strings.HasPrefix(e.Status, "completed.") && !strings.HasSuffix(e.Status, ".partial_results")
	})
}

// inventResults returns results for the markers of an order. Partial results lack the last of
// several markers.
func (o *order) inventResults() orderResults {
	specimen := o.ID.String()[:8]
	if o.SampleID != nil {
		specimen = *o.SampleID
	}
	at := o.LastEvent.CreatedAt
	all := orderResults{
		Metadata: resultsMetadata{
			Age: o.age(time.Time(at)), DOB: string(o.PatientDetails.DOB), CLIA: "99D0000000",
			Patient:    o.PatientDetails.FirstName + " " + o.PatientDetails.LastName,
			Laboratory: o.LabTest.Lab.Name, DateReported: at, DateCollected: o.CreatedAt, DateReceived: at,
			SpecimenNumber: specimen, Status: "final", Interpretation: o.Interpretation,
		},
		Results: []result{}, Missing: []missingResult{},
		Samples:     map[string]sampleInfo{specimen: o.sampleInfo(specimen, at)},
		Transaction: o.Transaction,
	}
	if o.Physician != nil {
		all.Metadata.Provider = new(o.Physician.FirstName + " " + o.Physician.LastName)
	}
	markers := o.LabTest.Markers
	if o.isPartial() {
		all.Metadata.Status = "partial"
		markers = markers[:max(len(markers)-1, 1)]
	}
	for i, m := range markers {
		v := resultOf(m)
		source := []sourceMarker{{m.ID, m.Name, m.Slug, m.ProviderID}}
		if reason := o.missing[m.ID]; reason != "" {
			all.Missing = append(all.Missing, missingResult{m.Name, m.Slug, reason, nil, v.loinc, m.Slug, m.ProviderID, source})
			continue
		}
		v, interpretation, above, below := o.interpret(i, m.ID, o.ofSimulatedType(i, v))
		all.Results = append(all.Results, result{
			Name: m.Name, Slug: m.Slug, Result: v.value, ResultType: v.kind, Type: v.kind, Unit: m.Unit, Timestamp: at,
			ReferenceRange: v.referenceRange(), MinRangeValue: v.low, MaxRangeValue: v.high,
			IsAboveMaxRange: above, IsBelowMinRange: below, Interpretation: interpretation,
			LOINC: v.loinc, LOINCSlug: m.Slug, ProviderID: m.ProviderID, SourceMarkers: source,
			Laboratory: o.LabTest.Lab.Name, SampleID: specimen,
		})
	}
	return all
}

// interpret returns the value of the marker at an index as it was simulated or corrected, its
// interpretation, and whether it is outside of its range.
func (o *order) interpret(i int, id int64, v inventedResult) (_ inventedResult, interpretation string, above, below bool) {
	normal := i > 0 || o.interpretation() == "" || o.interpretation() == "normal"
	interpretation = "normal"
	if !normal {
		interpretation = o.interpretation()
	}
	if !normal && (o.resultTypes == nil || v.kind == "numeric") {
		v = outOfRange
	}
	above = !normal && v.high != nil
	if value, ok := o.corrected[id]; ok {
		v.value = value
		above, below = v.isOutside()
		if normal && (above || below) {
			interpretation = "abnormal"
		}
	}
	return v, interpretation, above, below
}

// otherResults are simulated results of the types that no marker of the catalog has.
var otherResults = map[string]string{"comment": "See the report of the lab.", "coded_value": "Negative", "range": "<1.0"}

// ofSimulatedType returns the result of the i-th marker in one of the types that a simulation asked
// for, in turn.
func (o *order) ofSimulatedType(i int, v inventedResult) inventedResult {
	if len(o.resultTypes) == 0 {
		return v
	}
	kind := o.resultTypes[i%len(o.resultTypes)]
	if kind == v.kind {
		return v
	}
	if kind == "numeric" {
		return inventedResults[901]
	}
	return inventedResult{value: otherResults[kind], kind: kind, loinc: v.loinc}
}

// age returns the patient's age in years.
func (o *order) age(now time.Time) string {
	dob, err := time.Parse(time.DateOnly, string(o.PatientDetails.DOB))
	if err != nil {
		return ""
	}
	years := now.Year() - dob.Year()
	if now.Format("0102") < dob.Format("0102") {
		years--
	}
	return strconv.Itoa(years)
}
