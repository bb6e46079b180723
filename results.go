// The results of an order, what they say, and Parse for a single one.

package labhealth

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/jsonread"
)

const (
	opOrderResults         = "GET /v3/order/{order_id}/result"
	opOrderResultsMetadata = "GET /v3/order/{order_id}/result/metadata"
)

// Results returns the results of an order: GET /v3/order/{order_id}/result. If the order is unknown
// or has no results, the error matches [ErrNotFound]. In the second case it also matches
// [ErrNoResults], if it can be distinguished. Of the results, the interface specification documents
// only result, result_type and value. Source of the rest, including the path: public API reference
// only.
func (s *OrdersService) Results(ctx context.Context, orderID uuid.UUID, opts ...CallOption) (*OrderResults, error) {
	return call(ctx, coreOf(s), new(OrderResults), request{op: opOrderResults, ids: []string{orderID.String()}}, opts)
}

// ResultsMetadata returns the header of an order's lab report, without the results: GET
// /v3/order/{order_id}/result/metadata. Source: public API reference only.
func (s *OrdersService) ResultsMetadata(ctx context.Context, orderID uuid.UUID, opts ...CallOption) (*ResultsMetadata, error) {
	return call(ctx, coreOf(s), new(ResultsMetadata), request{op: opOrderResultsMetadata, ids: []string{orderID.String()}}, opts)
}

// OrderResults holds the results of an order or of a transaction: the response of
// [OrdersService.Results] and [OrderTransactionsService.Results]. Source: public API reference
// only.
type OrderResults struct {
	// Metadata identifies the patient, the sample and the laboratory.
	Metadata ResultsMetadata `json:"metadata"`
	// Results has one element per measurement. It is nil for older orders, whose results are an
	// object: see [OrderResults.LegacyResults].
	Results []Result `json:"results" jsonread:"object"`
	// MissingResults lists the ordered measurements that could not be made.
	MissingResults []MissingResult `json:"missing_results,omitzero"`
	// SampleInformation describes the samples, by an ID of the sample.
	SampleInformation map[string]SampleData `json:"sample_information,omitzero"`
	// OrderTransaction links the order to its redraws and recreations. It is nil if unknown.
	OrderTransaction *OrderTransaction `json:"order_transaction,omitzero"`

	RawObject `json:"-"`
}

// LegacyResults returns the results of an older order, which are a JSON object of undocumented
// shape instead of a list. It returns a copy of the received JSON, or nil if Results is a list.
// Source: public API reference only.
func (r *OrderResults) LegacyResults() json.RawMessage {
	var results json.RawMessage
	for name, value := range jsonread.Fields(r.RawJSON()) {
		if string(name) == "results" {
			results = value // the last of duplicate fields counts
		}
	}
	if len(results) == 0 || results[0] != '{' {
		return nil
	}
	return results
}

// Abnormal reports whether a result is not normal: [Result.Abnormal] is true for one of
// Results, or Metadata has the interpretation abnormal or critical. Missing results do not count.
// Partial results are judged by what was reported so far, so false may become true. For the results
// of older orders (see [OrderResults.LegacyResults]), only Metadata counts.
func (r *OrderResults) Abnormal() bool {
	return r.Metadata.interpretedAs(InterpretationAbnormal, InterpretationCritical) ||
		slices.ContainsFunc(r.Results, func(v Result) bool { return v.Abnormal() })
}

// Critical reports whether a result is critical: [Result.Critical] is true for one of Results,
// or Metadata has the interpretation critical. See [OrderResults.Abnormal] for partial results
// and those of older orders.
func (r *OrderResults) Critical() bool {
	return r.Metadata.interpretedAs(InterpretationCritical) ||
		slices.ContainsFunc(r.Results, func(v Result) bool { return v.Critical() })
}

func (m *ResultsMetadata) interpretedAs(values ...Interpretation) bool {
	return m.Interpretation != nil && slices.Contains(values, *m.Interpretation)
}

// ResultsMetadata is the header of a lab report. Its strings are as the lab wrote them: dates may
// have the day first. An age that is a number is its digits. Source: public API reference only.
type ResultsMetadata struct {
	Age            string `json:"age" jsonread:"digits"` // age of the patient in years
	DOB            string `json:"dob"`                   // date of birth, in any format
	Patient        string `json:"patient"`               // name of the patient
	SpecimenNumber string `json:"specimen_number"`       // the lab's ID of the sample
	// DateReported is when the lab reported the results.
	//
	// Deprecated: no replacement is named. Source: public API reference only.
	DateReported string `json:"date_reported"`
	// CLIA is the laboratory's CLIA number, nil if not given.
	CLIA       *string `json:"clia_#,omitzero"`
	Provider   *string `json:"provider,omitzero"`   // the ordering physician, nil if not given
	Laboratory *string `json:"laboratory,omitzero"` // nil if not given
	// DateCollected is when the sample was collected, nil if not given.
	//
	// Deprecated: no replacement is named. Source: public API reference only.
	DateCollected *string `json:"date_collected,omitzero"`
	// DateReceived is when the lab received the sample, nil if not given.
	//
	// Deprecated: no replacement is named. Source: public API reference only.
	DateReceived   *string         `json:"date_received,omitzero"`
	Status         ResultsStatus   `json:"status" default:"final"`  // final by default
	Interpretation *Interpretation `json:"interpretation,omitzero"` // nil if there is none
	PatientID      *string         `json:"patient_id,omitzero"`     // nil if not given
	AccountID      *string         `json:"account_id,omitzero"`     // nil if not given

	RawObject `json:"-"`
}

// ResultsStatus distinguishes final results from partial ones. Values other than the constants
// occur. Source: public API reference only.
type ResultsStatus string

// Values of [ResultsStatus].
const (
	ResultsStatusFinal   ResultsStatus = "final"
	ResultsStatusPartial ResultsStatus = "partial"
)

// ResultType describes the string in [Result.Result], which [Result.Parse] interprets. Values other
// than the constants occur. Source of the values: public API reference only.
type ResultType string

// Values of [ResultType].
const (
	ResultTypeNumeric    ResultType = "numeric"     // a number
	ResultTypeRange      ResultType = "range"       // one or two bounds: "<0.5", ">= 90", "5-10"
	ResultTypeComment    ResultType = "comment"     // human-readable text
	ResultTypeCodedValue ResultType = "coded_value" // a code or a word, such as "Negative"
)

// Result is the result of one measurement. Source of all but Result, ResultType and Value: public
// API reference only.
type Result struct {
	Name   string `json:"name"`   // human-readable name
	Slug   string `json:"slug"`   // stable identifier; empty by default
	Result string `json:"result"` // the result as a string; see [Result.Parse]
	// ResultType is the type of Result: the field result_type of the interface specification. It is
	// nil if the response has the field type instead.
	ResultType *ResultType `json:"result_type,omitzero"`
	// Type is the type of Result: the field type of the public API reference. It is nil if the
	// response has the field result_type instead.
	Type *ResultType `json:"type,omitzero"`
	// Value is the result as a number, nil if there is none.
	//
	// Deprecated: use [Result.Parse], which interprets Result according to its type.
	Value *json.Number `json:"value,omitzero"`
	Unit  *string      `json:"unit,omitzero"` // nil if there is none
	// Timestamp is when the result was measured, nil if unknown.
	Timestamp *time.Time `json:"timestamp,omitzero"`
	Notes     *string    `json:"notes,omitzero"` // nil if there are none
	// ReferenceRange is a human-readable description of the normal range, nil if not given. As the
	// Result of a Result of [ResultTypeRange], [Result.Parse] interprets it.
	ReferenceRange *string `json:"reference_range,omitzero"`
	// MinRangeValue is the lower end of the normal range, nil if not given.
	MinRangeValue *float64 `json:"min_range_value,omitzero"`
	// MaxRangeValue is the upper end of the normal range, nil if not given.
	MaxRangeValue   *float64       `json:"max_range_value,omitzero"`
	IsAboveMaxRange *bool          `json:"is_above_max_range,omitzero"`     // nil if unknown
	IsBelowMinRange *bool          `json:"is_below_min_range,omitzero"`     // nil if unknown
	Interpretation  Interpretation `json:"interpretation" default:"normal"` // normal by default
	// SourceInterpretation is the lab's own interpretation; empty by default.
	SourceInterpretation string  `json:"source_interpretation"`
	LOINC                *string `json:"loinc,omitzero"` // LOINC code, nil if not given
	// LOINCSlug is a stable identifier of the LOINC code, nil if not given.
	LOINCSlug  *string `json:"loinc_slug,omitzero"`
	ProviderID *string `json:"provider_id,omitzero"` // the lab's code, nil if not given
	// SourceMarkers lists the ordered markers that the result belongs to.
	SourceMarkers        []SourceMarker `json:"source_markers,omitzero"`
	PerformingLaboratory *string        `json:"performing_laboratory,omitzero"` // nil if not given
	// SourceSampleID is the ID of the sample, nil if not given.
	SourceSampleID *string `json:"source_sample_id,omitzero"`

	RawObject `json:"-"`
}

// Abnormal reports whether the result is not normal: its interpretation is abnormal or critical,
// or the lab marked it as above or below the normal range. It does not compare the result with the
// range. An interpretation that is missing, unknown or new is not abnormal by itself.
func (r *Result) Abnormal() bool {
	return r.Interpretation == InterpretationAbnormal || r.Critical() ||
		r.IsAboveMaxRange != nil && *r.IsAboveMaxRange || r.IsBelowMinRange != nil && *r.IsBelowMinRange
}

// Critical reports whether the interpretation of the result is critical. A result far outside of
// the normal range is critical only if the service says so.
func (r *Result) Critical() bool { return r.Interpretation == InterpretationCritical }

// MissingResult reports a measurement that was ordered but could not be made. Source: public API
// reference only.
type MissingResult struct {
	Name string `json:"name"` // human-readable name
	Slug string `json:"slug"` // stable identifier
	// InferredFailureType is the reason why the result is missing.
	InferredFailureType FailureType `json:"inferred_failure_type"`
	// Note is a note of the lab, nil if there is none.
	Note  *string `json:"note,omitzero"`
	LOINC *string `json:"loinc,omitzero"` // LOINC code, nil if not given
	// LOINCSlug is a stable identifier of the LOINC code, nil if not given.
	LOINCSlug  *string `json:"loinc_slug,omitzero"`
	ProviderID *string `json:"provider_id,omitzero"` // the lab's code, nil if not given
	// SourceMarkers lists the ordered markers that the result belongs to.
	SourceMarkers []SourceMarker `json:"source_markers,omitzero"`

	RawObject `json:"-"`
}

// SourceMarker is an ordered marker that a result belongs to. Source: public API reference only.
type SourceMarker struct {
	MarkerID   int64   `json:"marker_id"`            // marker ID
	Name       string  `json:"name"`                 // human-readable name
	Slug       string  `json:"slug"`                 // stable identifier
	ProviderID *string `json:"provider_id,omitzero"` // the lab's code, nil if not given

	RawObject `json:"-"`
}

// FailureType is the reason why a result is missing, as inferred by the service. Values other than
// the constants occur. Source: public API reference only.
type FailureType string

// Values of [FailureType].
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

// ResultValue is returned by [Result.Parse]. It is a [NumericResult], [RangeResult],
// [CommentResult] or [CodedResult], or an [UnparsedResult] if the type is unknown or the string
// does not match it.
//
//sumtype:decl
type ResultValue interface{ isResultValue() }

// NumericResult is a number.
type NumericResult struct {
	Redacted

	Value float64 // in the unit of the [Result]
}

// RangeResult is a range with one or two bounds.
type RangeResult struct {
	Redacted

	Low, High             *float64 // the bounds in the unit of the [Result]; nil if there is none
	LowStrict, HighStrict bool     // whether the range excludes the bound
}

// CommentResult is human-readable text.
type CommentResult struct {
	Redacted

	Text string // as received
}

// CodedResult is a code or a word from a list.
type CodedResult struct {
	Redacted

	Code string // without surrounding spaces
}

// UnparsedResult is a result of an unknown type, or one whose string does not match its type.
type UnparsedResult struct {
	Redacted

	Type ResultType // as received; empty if there is none
	Text string     // as received
}

func (NumericResult) isResultValue()  {}
func (RangeResult) isResultValue()    {}
func (CommentResult) isResultValue()  {}
func (CodedResult) isResultValue()    {}
func (UnparsedResult) isResultValue() {}

// Parse interprets Result according to its type. A numeric result that is a bound, such as "<0.5"
// or "> OR = 60", is a [RangeResult].
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
		if n, ok := parseDecimal(text); ok && kind == ResultTypeNumeric {
			return NumericResult{Value: n}
		}
		if bounds, ok := parseRange(text); ok {
			return bounds
		}
	}
	return UnparsedResult{Type: kind, Text: r.Result}
}

const (
	decimal = `[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?`
	space   = `[\s\p{Z}]*`
)

var (
	decimalPattern  = regexp.MustCompile(`^` + decimal + `$`)
	boundPattern    = regexp.MustCompile(`(?i)^([<>≤≥])` + space + `((?:or|/)?` + space + `=)?` + space + `(` + decimal + `)$`)
	intervalPattern = regexp.MustCompile(`(?i)^(` + decimal + `)` + space + `(?:-|–|to)` + space + `(` + decimal + `)$`)
)

// parseRange parses a number, a bound such as "<0.5" or "> OR = 60", or an interval such as "5-10".
func parseRange(text string) (RangeResult, bool) {
	if n, ok := parseDecimal(text); ok {
		return RangeResult{Low: &n, High: &n}, true
	}
	if m := boundPattern.FindStringSubmatch(text); m != nil {
		n, ok := parseDecimal(m[3])
		isStrict := m[2] == "" && (m[1] == "<" || m[1] == ">")
		if m[1] == "<" || m[1] == "≤" {
			return RangeResult{High: &n, HighStrict: isStrict}, ok
		}
		return RangeResult{Low: &n, LowStrict: isStrict}, ok
	}
	if m := intervalPattern.FindStringSubmatch(text); m != nil {
		low, lowOK := parseDecimal(m[1])
		high, highOK := parseDecimal(m[2])
		return RangeResult{Low: &low, High: &high}, lowOK && highOK && low <= high
	}
	return RangeResult{}, false
}

// parseDecimal parses a decimal number. strconv.ParseFloat alone also accepts "Inf" and "0x1p-2".
func parseDecimal(text string) (float64, bool) {
	if !decimalPattern.MatchString(text) {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil
}
