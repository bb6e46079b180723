package labhealthtest

import (
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// Results that are made up for the markers of the catalogue. Others have the first.
var (
	made = map[int64]madeResult{
		901: {"182", "numeric", new(0.0), new(200.0), "2093-3"},
		902: {"58.5", "numeric", new(40.0), nil, "2085-9"},
		903: {"92", "numeric", new(70.0), new(99.0), "2345-7"},
		904: {"<1.0", "range", new(0.0), new(3.5), "5671-3"},
	}
	// beyond replaces the first result of an order that is not normal.
	beyond = madeResult{"412", "numeric", new(0.0), new(200.0), "2093-3"}
)

type madeResult struct {
	text, kind string
	low, high  *float64
	loinc      string
}

type orderResults struct {
	Metadata    resultsMetadata       `json:"metadata"`
	Results     []result              `json:"results"`
	Missing     []missingResult       `json:"missing_results"`
	Samples     map[string]sampleInfo `json:"sample_information"`
	Transaction transaction           `json:"order_transaction"`
}

type resultsMetadata struct {
	Age            string  `json:"age"`
	DOB            string  `json:"dob"`
	CLIA           string  `json:"clia_#"`
	Patient        string  `json:"patient"`
	Provider       *string `json:"provider"`
	Laboratory     string  `json:"laboratory"`
	DateReported   stamp   `json:"date_reported"`
	DateCollected  stamp   `json:"date_collected"`
	DateReceived   stamp   `json:"date_received"`
	SpecimenNumber string  `json:"specimen_number"`
	Status         string  `json:"status"`
	Interpretation *string `json:"interpretation"`
	PatientID      *string `json:"patient_id"`
	AccountID      *string `json:"account_id"`
}

type result struct {
	Name   string `json:"name"`
	Slug   string `json:"slug"`
	Result string `json:"result"`
	// The interface document says result_type, the public reference says type.
	ResultType      string         `json:"result_type"`
	Type            string         `json:"type"`
	Unit            *string        `json:"unit"`
	Timestamp       stamp          `json:"timestamp"`
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
	SampleID   string `json:"sample_id"`
	SampleType string `json:"sample_type"`
	ReceivedAt stamp  `json:"received_at"`
}

// SetResults replaces the results of an order, at any status, by a body as it is given, valid or not. An empty one brings back
// the results that are made up.
func (s *Server) SetResults(orderID uuid.UUID, body string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.orderByID[orderID]
	if o == nil {
		return errNoOrder
	}
	o.results = nil
	if body != "" {
		o.results = []byte(body)
	}
	return nil
}

// SetMissing makes a marker of an order one that could not be measured, for a reason such as "quantity_not_sufficient_failure".
// It sends no event.
func (s *Server) SetMissing(orderID uuid.UUID, markerID int64, reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.orderByID[orderID]
	if o == nil {
		return errNoOrder
	}
	for _, m := range o.LabTest.Markers {
		if m.ID != markerID {
			continue
		}
		if o.missing == nil {
			o.missing = map[int64]string{}
		}
		o.missing[markerID] = reason
		o.HasMissingResults = new(true)
		o.UpdatedAt = stamp(s.now())
		return nil
	}
	return fmt.Errorf("labhealthtest: marker %d is not part of the order", markerID)
}

func (s *Server) getResults(r *request) answer {
	o, a := s.orderWithResults(r)
	switch {
	case o == nil:
		return a
	case o.results != nil:
		return answer{status: http.StatusOK, body: o.results, contentType: contentType(string(o.results))}
	}
	return reply(o.makeResults())
}

func (s *Server) getResultsMetadata(r *request) answer {
	o, a := s.orderWithResults(r)
	if o == nil {
		return a
	}
	return reply(o.makeResults().Metadata)
}

// orderWithResults returns the order of a request, or the answer if there is none or if it has no results yet.
func (s *Server) orderWithResults(r *request) (*order, answer) {
	id := r.pathUUID("order_id")
	if a, bad := r.invalid(); bad {
		return nil, a
	}
	o := s.orderByID[id]
	switch {
	case o == nil:
		return nil, noOrder
	case o.results == nil && o.Status != "completed" && o.lowLevel() != "partial_results":
		return nil, refuse(http.StatusNotFound, "Results are not available yet")
	}
	return o, answer{}
}

// makeResults makes up the results of an order. The last marker of several has none as long as the results are partial.
func (o *order) makeResults() orderResults {
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
		Samples:     map[string]sampleInfo{specimen: {specimen, o.LabTest.SampleType, at}},
		Transaction: o.Transaction,
	}
	if o.Physician != nil {
		all.Metadata.Provider = new(o.Physician.FirstName + " " + o.Physician.LastName)
	}
	markers := o.LabTest.Markers
	if o.lowLevel() == "partial_results" {
		all.Metadata.Status = "partial"
		markers = markers[:max(len(markers)-1, 1)]
	}
	for i, m := range markers {
		v, known := made[m.ID]
		if !known {
			v = made[901]
		}
		source := []sourceMarker{{m.ID, m.Name, m.Slug, m.ProviderID}}
		if reason := o.missing[m.ID]; reason != "" {
			all.Missing = append(all.Missing, missingResult{m.Name, m.Slug, reason, nil, v.loinc, m.Slug, m.ProviderID, source})
			continue
		}
		meaning := "normal"
		if i == 0 && o.Interpretation != nil && *o.Interpretation != "normal" {
			v, meaning = beyond, *o.Interpretation
		}
		all.Results = append(all.Results, result{
			Name: m.Name, Slug: m.Slug, Result: v.text, ResultType: v.kind, Type: v.kind, Unit: m.Unit, Timestamp: at,
			ReferenceRange: v.usual(), MinRangeValue: v.low, MaxRangeValue: v.high, IsAboveMaxRange: meaning != "normal",
			Interpretation: meaning, LOINC: v.loinc, LOINCSlug: m.Slug, ProviderID: m.ProviderID, SourceMarkers: source,
			Laboratory: o.LabTest.Lab.Name, SampleID: specimen,
		})
	}
	return all
}

// usual writes what is usual for people.
func (v madeResult) usual() *string {
	if v.high == nil {
		return new(fmt.Sprintf(">=%g", *v.low))
	}
	return new(fmt.Sprintf("%g-%g", *v.low, *v.high))
}

// age is the patient's age in years.
func (o *order) age(now time.Time) string {
	dob, err := time.Parse(time.DateOnly, string(o.PatientDetails.DOB))
	if err != nil {
		return ""
	}
	years := now.Year() - dob.Year()
	if now.Format("0102") < dob.Format("0102") {
		years--
	}
	return fmt.Sprint(years)
}
