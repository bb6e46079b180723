package labhealth

import (
	"context"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/jsonread"
)

const opOrderResults = "GET /v3/order/{order_id}/result"

// Results reads the results of an order: GET /v3/order/{order_id}/result. An unknown order is
// [ErrNotFound]; the response for one that has no results yet is not documented. Of results the
// interface specification gives only result, result_type and value. Source of the rest, the path
// included: public API reference only.
func (s *OrdersService) Results(ctx context.Context, orderID uuid.UUID, opts ...CallOption) (*OrderResults, error) {
	return call[OrderResults](ctx, s.core, request{op: opOrderResults, ids: []string{orderID.String()}}, opts)
}

// OrderResults is what the lab found: the response of [OrdersService.Results]. It redacts itself when
// printed. Source: public API reference only.
type OrderResults struct {
	Redacted[OrderResults]

	// Metadata says whose results these are, and of what.
	Metadata ResultsMetadata `json:"metadata"`
	// Results has one element for each thing that was measured. It is nil for older orders whose results
	// are an object: see [OrderResults.LegacyResults].
	Results []Result `json:"results" jsonread:"object"`
	// MissingResults has what was ordered and could not be measured.
	MissingResults []MissingResult `json:"missing_results,omitzero"`
	// SampleInformation is by sample id, of no fixed shape.
	SampleInformation map[string]json.RawMessage `json:"sample_information,omitzero"`
	// OrderTransaction ties the order to its redraws and recreations; nil if not known.
	OrderTransaction *OrderTransaction `json:"order_transaction,omitzero"`

	RawObject `json:"-"`
}

// LegacyResults returns the results of an older order, which are a JSON object of no published shape
// in place of the list: a copy of the received JSON. It is nil if Results is a list. Source: public
// API reference only.
func (r *OrderResults) LegacyResults() json.RawMessage {
	var results json.RawMessage
	for name, value := range jsonread.Fields(r.RawJSON()) {
		if string(name) == "results" {
			results = value // of a name that comes twice the last one counts
		}
	}
	if len(results) == 0 || results[0] != '{' {
		return nil
	}
	return results
}

// ResultsMetadata heads a report. Its texts are as the lab wrote them: dates occur with the day first, and an age as a number,
// which [RawObject.Malformed] names then. It redacts itself when printed. Source: public API reference only.
type ResultsMetadata struct {
	Redacted[ResultsMetadata]

	Age            string `json:"age"`             // in years, as text
	DOB            string `json:"dob"`             // date of birth, in any form
	Patient        string `json:"patient"`         // the patient's name
	SpecimenNumber string `json:"specimen_number"` // the lab's number of the sample
	// DateReported is when the results came.
	//
	// Deprecated: no replacement is named. Source: public API reference only.
	DateReported string  `json:"date_reported"`
	CLIA         *string `json:"clia_#,omitzero"`     // the laboratory's CLIA number, nil if not given
	Provider     *string `json:"provider,omitzero"`   // the ordering physician, nil if not given
	Laboratory   *string `json:"laboratory,omitzero"` // nil if not given
	// DateCollected is when the sample was taken, nil if not given.
	//
	// Deprecated: no replacement is named. Source: public API reference only.
	DateCollected *string `json:"date_collected,omitzero"`
	// DateReceived is when the lab had the sample, nil if not given.
	//
	// Deprecated: no replacement is named. Source: public API reference only.
	DateReceived   *string         `json:"date_received,omitzero"`
	Status         ResultsStatus   `json:"status" default:"final"`  // final by default
	Interpretation *Interpretation `json:"interpretation,omitzero"` // nil if there is none
	PatientID      *string         `json:"patient_id,omitzero"`     // nil if not given
	AccountID      *string         `json:"account_id,omitzero"`     // nil if not given

	RawObject `json:"-"`
}

// ResultsStatus says whether more results are to come. Values other than the constants occur.
// Source: public API reference only.
type ResultsStatus string

// States of results.
const (
	ResultsStatusFinal   ResultsStatus = "final"
	ResultsStatusPartial ResultsStatus = "partial"
)

// ResultType says how [Result.Result] is to be read. Values other than the constants occur. Source of the
// values: public API reference only.
type ResultType string

// Kinds of results.
const (
	ResultTypeNumeric    ResultType = "numeric"     // a number
	ResultTypeRange      ResultType = "range"       // a bound or two: "<0.5", ">= 90", "5-10"
	ResultTypeComment    ResultType = "comment"     // text for people
	ResultTypeCodedValue ResultType = "coded_value" // a code or a word, such as "Negative"
)

// Result is one thing that was measured. It redacts itself when printed. Source of all
// but Result, ResultType and Value: public API reference only.
type Result struct {
	Redacted[Result]

	Name   string `json:"name"`   // what was measured
	Slug   string `json:"slug"`   // the same, for programs; empty by default
	Result string `json:"result"` // what was found, as text: [Result.Parse] reads it
	// ResultType says how to read Result, under the name that the interface specification uses; nil if the other name came.
	ResultType *ResultType `json:"result_type,omitzero"`
	// Type is ResultType under the name that the public API reference uses; nil if the other name came.
	Type *ResultType `json:"type,omitzero"`
	// Value is the result as a number, nil if there is none.
	//
	// Deprecated: removed in favour of Result, which is parsed according to its type: use [Result.Parse].
	Value                *json.Number   `json:"value,omitzero"`
	Unit                 *string        `json:"unit,omitzero"`                   // nil if there is none
	Timestamp            *time.Time     `json:"timestamp,omitzero"`              // when it was measured, nil if not known
	Notes                *string        `json:"notes,omitzero"`                  // nil if there are none
	ReferenceRange       *string        `json:"reference_range,omitzero"`        // what is usual, for people; nil if not given
	MinRangeValue        *float64       `json:"min_range_value,omitzero"`        // lower end of what is usual, nil if not given
	MaxRangeValue        *float64       `json:"max_range_value,omitzero"`        // upper end of what is usual, nil if not given
	IsAboveMaxRange      *bool          `json:"is_above_max_range,omitzero"`     // nil if not known
	IsBelowMinRange      *bool          `json:"is_below_min_range,omitzero"`     // nil if not known
	Interpretation       Interpretation `json:"interpretation" default:"normal"` // normal by default
	SourceInterpretation string         `json:"source_interpretation"`           // the lab's own word for it; empty by default
	LOINC                *string        `json:"loinc,omitzero"`                  // code of the measurement, nil if not given
	LOINCSlug            *string        `json:"loinc_slug,omitzero"`             // the same, for programs; nil if not given
	ProviderID           *string        `json:"provider_id,omitzero"`            // the lab's own code, nil if not given
	SourceMarkers        []SourceMarker `json:"source_markers,omitzero"`         // the ordered markers it belongs to
	PerformingLaboratory *string        `json:"performing_laboratory,omitzero"`  // nil if not given
	SourceSampleID       *string        `json:"source_sample_id,omitzero"`       // the sample it was measured in, nil if not given

	RawObject `json:"-"`
}

// MissingResult is something that was ordered and could not be measured. It redacts itself when printed.
// Source: public API reference only.
type MissingResult struct {
	Redacted[MissingResult]

	Name                string         `json:"name"`                    // what is missing
	Slug                string         `json:"slug"`                    // the same, for programs
	InferredFailureType FailureType    `json:"inferred_failure_type"`   // why
	Note                *string        `json:"note,omitzero"`           // the lab's words, nil if there are none
	LOINC               *string        `json:"loinc,omitzero"`          // code of the measurement, nil if not given
	LOINCSlug           *string        `json:"loinc_slug,omitzero"`     // the same, for programs; nil if not given
	ProviderID          *string        `json:"provider_id,omitzero"`    // the lab's own code, nil if not given
	SourceMarkers       []SourceMarker `json:"source_markers,omitzero"` // the ordered markers it belongs to

	RawObject `json:"-"`
}

// SourceMarker is an ordered marker that a result belongs to. Source: public API reference only.
type SourceMarker struct {
	MarkerID   int64   `json:"marker_id"`            // the marker's id
	Name       string  `json:"name"`                 // what people call it
	Slug       string  `json:"slug"`                 // the same, for programs
	ProviderID *string `json:"provider_id,omitzero"` // the lab's own code, nil if not given

	RawObject `json:"-"`
}

// FailureType says why a result is missing, as the service infers it. Values other than the constants
// occur. Source: public API reference only.
type FailureType string

// Reasons for missing results.
const (
	FailureTypeQuantityNotSufficient FailureType = "quantity_not_sufficient_failure"
	FailureTypeCollectionProcess     FailureType = "collection_process_failure"
	FailureTypeDropOff               FailureType = "drop_off_failure"
	FailureTypeInternalLab           FailureType = "internal_lab_failure"
	FailureTypeOrderEntry            FailureType = "order_entry_failure"
	FailureTypeNone                  FailureType = "non_failure"
	FailureTypeUnknown               FailureType = "unknown_failure"
	FailureTypePatientCondition      FailureType = "patient_condition_failure"
	FailureTypeMissingResultCalc     FailureType = "missing_result_calc_failure"
	FailureTypeMissingDemoAoECalc    FailureType = "missing_demo_aoe_calc_failure"
	FailureTypeInsufficientVolume    FailureType = "insufficient_volume"
)

// ResultValue is what [Result.Parse] made of a result: a [NumericResult], [RangeResult], [CommentResult], [CodedResult] or, if
// the type is not known or the text does not fit it, an [UnparsedResult]. They redact themselves when printed.
//
//sumtype:decl
type ResultValue interface{ isResultValue() }

// NumericResult is a number.
type NumericResult struct {
	Redacted[NumericResult]

	Value float64 // in the unit of the [Result]
}

// RangeResult is what lies between two bounds, in the unit of the [Result].
type RangeResult struct {
	Redacted[RangeResult]

	Low, High             *float64 // the bounds; nil if the range is open to that side
	LowStrict, HighStrict bool     // whether the bound itself is not part of the range
}

// CommentResult is text for people.
type CommentResult struct {
	Redacted[CommentResult]

	Text string // as it came
}

// CodedResult is a code or a word of a list.
type CodedResult struct {
	Redacted[CodedResult]

	Code string // without spaces around it
}

// UnparsedResult is a result of a type that is not known, or whose text does not fit its type.
type UnparsedResult struct {
	Redacted[UnparsedResult]

	Type ResultType // as it came; empty if none did
	Text string     // as it came
}

func (NumericResult) isResultValue()  {}
func (RangeResult) isResultValue()    {}
func (CommentResult) isResultValue()  {}
func (CodedResult) isResultValue()    {}
func (UnparsedResult) isResultValue() {}

var (
	bound    = regexp.MustCompile(`^(<=|>=|<|>|≤|≥)\s*(` + decimal + `)$`)
	interval = regexp.MustCompile(`^(` + decimal + `)\s*(?:-|–|to)\s*(` + decimal + `)$`)
)

const decimal = `[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?`

// Parse reads Result according to its type. A numeric result that came as a bound, such as "<0.5", is a [RangeResult].
func (r *Result) Parse() ResultValue {
	var kind ResultType
	switch {
	case r.ResultType != nil:
		kind = *r.ResultType
	case r.Type != nil:
		kind = *r.Type
	}
	text := strings.TrimSpace(r.Result)
	switch kind {
	case ResultTypeComment:
		return CommentResult{Text: r.Result}
	case ResultTypeCodedValue:
		return CodedResult{Code: text}
	case ResultTypeNumeric, ResultTypeRange:
		if n, ok := finite(text); ok {
			if kind == ResultTypeNumeric {
				return NumericResult{Value: n}
			}
			return RangeResult{Low: &n, High: &n}
		}
		if m := bound.FindStringSubmatch(text); m != nil {
			if n, ok := finite(m[2]); ok {
				strict := m[1] == "<" || m[1] == ">"
				if m[1] == "<" || m[1] == "<=" || m[1] == "≤" {
					return RangeResult{High: &n, HighStrict: strict}
				}
				return RangeResult{Low: &n, LowStrict: strict}
			}
		}
		if m := interval.FindStringSubmatch(text); m != nil {
			low, ok1 := finite(m[1])
			high, ok2 := finite(m[2])
			if ok1 && ok2 && low <= high {
				return RangeResult{Low: &low, High: &high}
			}
		}
	}
	return UnparsedResult{Type: kind, Text: r.Result}
}

// finite reads a decimal number; ParseFloat alone would also take "Inf" and "0x1p-2".
func finite(text string) (float64, bool) {
	if !wholeDecimal.MatchString(text) {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil
}

var wholeDecimal = regexp.MustCompile(`^` + decimal + `$`)
