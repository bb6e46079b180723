// Markers, their questions and expected results, and the methods that list them.

package labhealth

// Source of this file, except for Marker and AoE: public API reference only.

import (
	"context"
	"encoding/binary"
	"iter"
	"strconv"

	"github.com/google/uuid"
)

// Marker is a biomarker or a panel of biomarkers.
type Marker struct {
	ID          int64       `json:"id"`                   // marker ID
	Name        string      `json:"name"`                 // human-readable name
	Slug        string      `json:"slug"`                 // stable identifier
	Description *string     `json:"description,omitzero"` // nil if there is none
	LabID       *int64      `json:"lab_id,omitzero"`      // ID of the lab, nil if not specific to one
	ProviderID  *string     `json:"provider_id,omitzero"` // the lab's code, nil if there is none
	Type        *MarkerType `json:"type,omitzero"`        // nil if unknown
	Unit        *string     `json:"unit,omitzero"`        // nil if there is none
	// Price is a string: "10.00" and "N/A" occur. It is nil if there is none.
	Price *string `json:"price,omitzero"`
	// AoE holds the questions to ask at order entry, nil if there are none.
	AoE *AoE `json:"aoe,omitzero"`
	// ALaCarteEnabled reports whether the marker can be ordered on its own; false by default.
	ALaCarteEnabled bool `json:"a_la_carte_enabled" default:"false"`
	// CommonTATDays is the common turnaround time in days, nil if unknown.
	CommonTATDays *int64 `json:"common_tat_days,omitzero"`
	// WorstCaseTATDays is the longest turnaround time in days, nil if unknown.
	WorstCaseTATDays *int64 `json:"worst_case_tat_days,omitzero"`
	// IsOrderable points to true if the field is absent, and is nil if it is null.
	IsOrderable *bool `json:"is_orderable" default:"true"`
	// ExpectedResults lists the results that the lab reports for the marker. It is nil for a marker
	// of a [LabTest]. Source: public API reference only.
	ExpectedResults []ExpectedResult `json:"expected_results,omitzero"`

	RawObject `json:"-"`
}

func (m *Marker) verify() error {
	if m.ID == 0 {
		return &unreadable{reason: "it has no readable marker id"}
	}
	return nil
}

// markerKey returns the marker's ID in the form of a UUID, which tells the pages of an iterator
// apart.
func markerKey(m *Marker) (key uuid.UUID) {
	binary.BigEndian.PutUint64(key[8:], uint64(m.ID))
	return key
}

// ExpectedResult is a result that the lab reports for a [Marker].
type ExpectedResult struct {
	ID         int64   `json:"id"`                   // result ID
	Name       string  `json:"name"`                 // human-readable name
	Slug       string  `json:"slug"`                 // stable identifier
	LabID      *int64  `json:"lab_id,omitzero"`      // ID of the lab, nil if not specific to one
	ProviderID *string `json:"provider_id,omitzero"` // the lab's code, nil if there is none
	Required   bool    `json:"required"`             // whether the marker is incomplete without it
	LOINC      *LOINC  `json:"loinc,omitzero"`       // nil if unknown

	RawObject `json:"-"`
}

// LOINC is an entry of the LOINC code system for measurements.
type LOINC struct {
	ID   int64   `json:"id"`            // the service's ID of the entry
	Name string  `json:"name"`          // human-readable name
	Slug string  `json:"slug"`          // stable identifier
	Code string  `json:"code"`          // LOINC code, such as "2093-3"
	Unit *string `json:"unit,omitzero"` // unit of the measurement, nil if there is none

	RawObject `json:"-"`
}

// AoE holds the questions that a lab asks at order entry.
type AoE struct {
	Questions []AoEQuestion `json:"questions"` // may be empty

	RawObject `json:"-"`
}

// AoEQuestion is a question that a lab asks at order entry. It is answered with an [AoEAnswer].
// Source of all but ID, Code and Value: public API reference only.
type AoEQuestion struct {
	ID    int64  `json:"id"`    // question ID; IDs above 32 bits occur
	Code  string `json:"code"`  // the lab's code
	Value string `json:"value"` // text of the question

	Required   *bool             `json:"required,omitzero"`   // whether an answer is required; nil if unknown
	Type       *AoEQuestionType  `json:"type,omitzero"`       // kind of answer; nil if unknown
	Sequence   *int64            `json:"sequence,omitzero"`   // position among the questions; nil if unknown
	Answers    []AoEAnswerOption `json:"answers,omitzero"`    // possible answers
	Constraint *string           `json:"constraint,omitzero"` // human-readable hint for free text; nil if none
	Default    *string           `json:"default,omitzero"`    // nil if there is none

	RawObject `json:"-"`
}

// AoEAnswerOption is a possible answer to an [AoEQuestion]. An order sends its Code as the answer.
// Source of the use of Code: public API reference only.
type AoEAnswerOption struct {
	ID    int64  `json:"id"`    // answer ID
	Code  string `json:"code"`  // sent as [AoEAnswer.Answer]
	Value string `json:"value"` // human-readable text

	RawObject `json:"-"`
}

const (
	opListMarkers           = "GET /v3/lab_tests/markers"
	opListMarkersOfTest     = "GET /v3/lab_tests/{lab_test_id}/markers"
	opListMarkersOfOrderSet = "POST /v3/lab_tests/list_order_set_markers"
	opGetMarker             = "GET /v3/lab_tests/{lab_id}/markers/{provider_id}"
)

// MarkerPage is one page of markers: the response of [LabTestsService.Markers],
// [LabTestsService.MarkersOfTest] and [LabTestsService.MarkersOfOrderSet].
type MarkerPage struct {
	Markers []Marker `json:"markers" jsonread:"own"` // the markers of the page
	Total   *int64   `json:"total"`                  // number of markers on all pages, nil if not reported
	Page    *int64   `json:"page"`                   // page number, nil if not reported
	Size    *int64   `json:"size"`                   // markers per page, nil if not reported
	Pages   *int64   `json:"pages"`                  // number of pages, nil if not reported
	// Pricing has the prices of the markers if [ListMarkersParams.IncludePricing] was set, else
	// nil.
	Pricing *MarkerPricing `json:"pricing,omitzero"`

	RawObject `json:"-"`
}

func (p *MarkerPage) verify() error { return requireList(p.Markers) }

func (p *MarkerPage) numbered() (items any, reported pageNumbers) {
	return p.Markers, pageNumbers{number: p.Page, size: p.Size, total: p.Total}
}

// ListMarkersParams selects markers. Zero fields are not sent.
type ListMarkersParams struct {
	LabIDs          []int64 // markers of these labs
	LabSlug         string  // markers of one lab
	Name            string  // markers with this name
	ALaCarteEnabled *bool   // markers that can, or cannot, be ordered on their own
	// IncludePricing requests [MarkerPage.Pricing]. Call [LabTestsService.Markers] to read it:
	// [LabTestsService.AllMarkers] discards it.
	IncludePricing bool
	LabAccountID   uuid.UUID // markers of one account

	Page int // page number; the first page is 1, the default
	Size int // markers per page, 1 to 100; the service's default is 50
}

func (p ListMarkersParams) validate(v *validator) { v.page(p.Page, p.Size) }

func (p ListMarkersParams) query() queryValues {
	q := accountQuery(p.LabAccountID)
	q.addInts("lab_id", p.LabIDs)
	q.setString("lab_slug", p.LabSlug)
	q.setString("name", p.Name)
	q.setBool("a_la_carte_enabled", p.ALaCarteEnabled)
	q.setTrue("include_pricing", p.IncludePricing)
	q.setPage(p.Page, p.Size)
	return q
}

// Markers returns one page of all markers: GET /v3/lab_tests/markers.
func (s *LabTestsService) Markers(ctx context.Context, params ListMarkersParams, opts ...CallOption) (*MarkerPage, error) {
	return call(ctx, coreOf(s), new(MarkerPage), request{op: opListMarkers, query: params}, opts)
}

// AllMarkers returns an iterator over all markers, page by page, starting at params.Page. It holds
// one page at a time, and each range over it starts again. Iteration stops at the first error. The
// iterator returns an error if the service repeats a page or ignores the page number. If the
// service does not report the total, the first page that is empty or shorter than the page size is
// the last one.
func (s *LabTestsService) AllMarkers(ctx context.Context, params ListMarkersParams, opts ...CallOption) iter.Seq2[*Marker, error] {
	return numberedPages(ctx, opts, opListMarkers, params.Page, params.Size, markerKey, func(ctx context.Context, number int, opts []CallOption) (numberedPage, error) {
		params := params
		params.Page = number
		return s.Markers(ctx, params, opts...)
	})
}

// ListMarkersOfTestParams selects a page of the markers of a lab test. Zero fields are not sent.
type ListMarkersOfTestParams struct {
	LabAccountID uuid.UUID // zero for the team's default account

	Page int // page number; the first page is 1, the default
	Size int // markers per page, 1 to 100; the service's default is 50
}

func (p ListMarkersOfTestParams) validate(v *validator) { v.page(p.Page, p.Size) }

func (p ListMarkersOfTestParams) query() queryValues {
	q := accountQuery(p.LabAccountID)
	q.setPage(p.Page, p.Size)
	return q
}

// MarkersOfTest returns one page of the markers of a lab test: GET
// /v3/lab_tests/{lab_test_id}/markers.
func (s *LabTestsService) MarkersOfTest(ctx context.Context, labTestID uuid.UUID, params ListMarkersOfTestParams, opts ...CallOption) (*MarkerPage, error) {
	r := request{op: opListMarkersOfTest, ids: []string{labTestID.String()}, query: params}
	return call(ctx, coreOf(s), new(MarkerPage), r, opts)
}

// AllMarkersOfTest returns an iterator over the markers of a lab test. See
// [LabTestsService.AllMarkers].
func (s *LabTestsService) AllMarkersOfTest(ctx context.Context, labTestID uuid.UUID, params ListMarkersOfTestParams, opts ...CallOption) iter.Seq2[*Marker, error] {
	return numberedPages(ctx, opts, opListMarkersOfTest, params.Page, params.Size, markerKey, func(ctx context.Context, number int, opts []CallOption) (numberedPage, error) {
		params := params
		params.Page = number
		return s.MarkersOfTest(ctx, labTestID, params, opts...)
	})
}

// ListMarkersOfOrderSetParams selects a page of the markers of an order set. Zero fields are not
// sent.
type ListMarkersOfOrderSetParams struct {
	Page int // page number; the first page is 1, the default
	Size int // markers per page, 1 to 100; the service's default is 50
}

func (p ListMarkersOfOrderSetParams) validate(v *validator) { v.page(p.Page, p.Size) }

func (p ListMarkersOfOrderSetParams) query() queryValues {
	q := newQuery()
	q.setPage(p.Page, p.Size)
	return q
}

// MarkersOfOrderSet returns one page of the markers that an order with this order set would have:
// POST /v3/lab_tests/list_order_set_markers. Their questions ([Marker.AoE]) are those that
// [CreateOrderBody.AoEAnswers] has to cover.
//
// The request creates no order. Because it is a POST, it is retried like other writes: only if it
// was provably not processed. After any other error the call can be made again.
func (s *LabTestsService) MarkersOfOrderSet(ctx context.Context, body OrderSetRequest, params ListMarkersOfOrderSetParams, opts ...CallOption) (*MarkerPage, error) {
	return call(ctx, coreOf(s), new(MarkerPage), request{op: opListMarkersOfOrderSet, query: params, body: &body}, opts)
}

// AllMarkersOfOrderSet returns an iterator over the markers that an order with this order set would
// have. See [LabTestsService.MarkersOfOrderSet] and [LabTestsService.AllMarkers].
func (s *LabTestsService) AllMarkersOfOrderSet(ctx context.Context, body OrderSetRequest, params ListMarkersOfOrderSetParams, opts ...CallOption) iter.Seq2[*Marker, error] {
	return numberedPages(ctx, opts, opListMarkersOfOrderSet, params.Page, params.Size, markerKey, func(ctx context.Context, number int, opts []CallOption) (numberedPage, error) {
		params := params
		params.Page = number
		return s.MarkersOfOrderSet(ctx, body, params, opts...)
	})
}

// GetMarkerParams selects the lab account of a marker.
type GetMarkerParams struct {
	LabAccountID uuid.UUID // zero for the team's default account
}

func (p GetMarkerParams) query() queryValues { return accountQuery(p.LabAccountID) }

// Marker returns the marker with a lab's code: GET /v3/lab_tests/{lab_id}/markers/{provider_id}.
// labID is [Lab.ID] and providerID is [Marker.ProviderID].
func (s *LabTestsService) Marker(ctx context.Context, labID int64, providerID string, params GetMarkerParams, opts ...CallOption) (*Marker, error) {
	r := request{op: opGetMarker, ids: []string{strconv.FormatInt(labID, 10), providerID}, query: params}
	return call(ctx, coreOf(s), new(Marker), r, opts)
}
