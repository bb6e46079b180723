package webhooks

// Source of this file: public API reference only.

import (
	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
)

// ParsingJob is a lab report that the service reads for the team: the data of
// lab_report.parsing_job.created and .updated. Printed or logged, it shows only its ID.
type ParsingJob struct {
	ID     uuid.UUID        `json:"id"`     // the job
	Status ParsingJobStatus `json:"status"` // how far it is
	// FailureReason is why the job failed; nil if it did not.
	FailureReason    *ParsingJobFailureReason `json:"failure_reason,omitzero"`
	Data             *ParsedLabReportData     `json:"data,omitzero"`      // what the report says; nil before the job completes
	NeedsHumanReview bool                     `json:"needs_human_review"` // a person should check Data
	IsReviewed       bool                     `json:"is_reviewed"`        // a person has checked Data

	labhealth.RawObject `json:"-"`
}

// ParsedLabReportData is the content of a lab report.
type ParsedLabReportData struct {
	Metadata ResultMetadata    `json:"metadata"` // the patient, the lab and the dates
	Results  []LabReportResult `json:"results"`  // the results in the order of the report

	labhealth.RawObject `json:"-"`
}

// ResultMetadata has the patient, the lab and the dates of a lab report, as the report spells them:
// dates may have any format. A value that is not in the report is nil.
type ResultMetadata struct {
	PatientFirstName *string          `json:"patient_first_name,omitzero"` // first name
	PatientLastName  *string          `json:"patient_last_name,omitzero"`  // last name
	DOB              *string          `json:"dob,omitzero"`                // date of birth
	Gender           labhealth.Gender `json:"gender" default:"other"`      // "other" if not in the report
	LabName          *string          `json:"lab_name,omitzero"`           // name of the lab
	DateReported     *string          `json:"date_reported,omitzero"`      // date of the report
	DateCollected    *string          `json:"date_collected,omitzero"`     // date of the collection
	SpecimenNumber   *string          `json:"specimen_number,omitzero"`    // number of the specimen

	labhealth.RawObject `json:"-"`
}

// LabReportResult is a result in a lab report. A value that is not in the report is nil.
type LabReportResult struct {
	TestName        string                    `json:"test_name"`                          // name of the test
	Value           string                    `json:"value"`                              // the result as text, also if it is a number
	Type            *LabReportResultType      `json:"type,omitzero"`                      // how to read Value
	Units           *string                   `json:"units,omitzero"`                     // unit of Value and of the range
	SourcePanelName *string                   `json:"source_panel_name,omitzero"`         // panel of the test
	SampleType      LabReportSampleType       `json:"sample_type" default:"unknown"`      // what was tested
	MeasurementKind LabReportMeasurementKind  `json:"measurement_kind" default:"unknown"` // how the result was found
	Sensitivity     LabReportSensitivity      `json:"sensitivity" default:"unknown"`      // of microbes to a drug
	Interpretation  *labhealth.Interpretation `json:"interpretation,omitzero"`            // values other than its constants occur

	MinReferenceRange *float64 `json:"min_reference_range,omitzero"` // lower end of the reference range
	MaxReferenceRange *float64 `json:"max_reference_range,omitzero"` // upper end of the reference range
	IsAboveMaxRange   *bool    `json:"is_above_max_range,omitzero"`  // Value is above the range
	IsBelowMinRange   *bool    `json:"is_below_min_range,omitzero"`  // Value is below the range

	LOINCMatches     []LOINCMatch      `json:"loinc_matches,omitzero"`      // codes that the test may have; nil if missing
	LOINCMatchStatus *LOINCMatchStatus `json:"loinc_match_status,omitzero"` // whether one of them is certain

	labhealth.RawObject `json:"-"`
}

// LOINCMatch is a code that the test of a [LabReportResult] may have.
type LOINCMatch struct {
	LOINCCode       string   `json:"loinc_code"`              // the code
	LOINCName       string   `json:"loinc_name"`              // name of the code
	DisplayName     string   `json:"display_name" default:""` // name for people; empty if missing
	Aliases         []string `json:"aliases,omitzero"`        // other names; nil if missing
	ConfidenceScore float64  `json:"confidence_score"`        // how certain the match is

	labhealth.RawObject `json:"-"`
}

// ParsingJobStatus is how far a [ParsingJob] is. Values other than the constants occur.
type ParsingJobStatus string

// The documented states of a parsing job.
const (
	ParsingJobUploadPending ParsingJobStatus = "upload_pending"
	ParsingJobStarted       ParsingJobStatus = "started"
	ParsingJobCompleted     ParsingJobStatus = "completed"
	ParsingJobFailed        ParsingJobStatus = "failed"
)

// ParsingJobFailureReason is why a [ParsingJob] failed. Values other than the constants occur.
type ParsingJobFailureReason string

// The documented reasons.
const (
	ParsingFailureInvalidInput    ParsingJobFailureReason = "invalid_input"
	ParsingFailureLowQuality      ParsingJobFailureReason = "low_quality"
	ParsingFailureNotEnglish      ParsingJobFailureReason = "not_english"
	ParsingFailureTooManyPages    ParsingJobFailureReason = "too_many_pages"
	ParsingFailureProcessingError ParsingJobFailureReason = "processing_error"
)

// LabReportResultType is the kind of the value of a [LabReportResult]. Values other than the
// constants occur.
type LabReportResultType string

// The documented kinds of values.
const (
	LabReportResultNumeric    LabReportResultType = "numeric"
	LabReportResultRange      LabReportResultType = "range"
	LabReportResultComment    LabReportResultType = "comment"
	LabReportResultBoolean    LabReportResultType = "boolean"
	LabReportResultDuration   LabReportResultType = "duration"
	LabReportResultPercentage LabReportResultType = "percentage"
	LabReportResultRatio      LabReportResultType = "ratio"
)

// LabReportSampleType is the material that was tested. Values other than the constants occur.
type LabReportSampleType string

// The documented materials.
const (
	LabReportSampleUrine            LabReportSampleType = "urine"
	LabReportSampleSerumPlasmaBlood LabReportSampleType = "serum_plasma_blood"
	LabReportSampleCapillaryBlood   LabReportSampleType = "capillary_blood"
	LabReportSampleStool            LabReportSampleType = "stool"
	LabReportSampleSaliva           LabReportSampleType = "saliva"
	LabReportSampleOther            LabReportSampleType = "other"
	LabReportSampleUnknown          LabReportSampleType = "unknown"
)

// LabReportMeasurementKind is how a [LabReportResult] was found. Values other than the constants
// occur.
type LabReportMeasurementKind string

// The documented kinds of measurements.
const (
	LabReportMeasurementDirect     LabReportMeasurementKind = "direct"
	LabReportMeasurementCalculated LabReportMeasurementKind = "calculated"
	LabReportMeasurementRatio      LabReportMeasurementKind = "ratio"
	LabReportMeasurementUnknown    LabReportMeasurementKind = "unknown"
)

// LabReportSensitivity is the sensitivity in a [LabReportResult]. Values other than the constants
// occur.
type LabReportSensitivity string

// The documented sensitivities.
const (
	LabReportSensitivitySensitive   LabReportSensitivity = "sensitive"
	LabReportSensitivityInsensitive LabReportSensitivity = "insensitive"
	LabReportSensitivityUnknown     LabReportSensitivity = "unknown"
)

// LOINCMatchStatus is whether a code of a [LabReportResult] is certain. Values other than the
// constants occur.
type LOINCMatchStatus string

// The documented states of a match.
const (
	LOINCMatchAutoMatch   LOINCMatchStatus = "auto_match"
	LOINCMatchNeedsReview LOINCMatchStatus = "needs_review"
	LOINCMatchNoMatch     LOINCMatchStatus = "no_match"
)
