// LabReportsService: reads lab reports into results.

package labhealth

// Source of this file: public API reference only.

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strconv"

	"github.com/google/uuid"
)

// LabReportsService reads lab reports, such as PDFs, into results. See [Client.LabReports].
type LabReportsService struct{ core *core }

const (
	opCreateParsingJob = "POST /lab_report/v1/parser/job"
	opGetParsingJob    = "GET /lab_report/v1/parser/job/{job_id}"
)

// CreateParsingJobBody is the request of [LabReportsService.Create]. It is sent as
// multipart/form-data.
type CreateParsingJobBody struct {
	Redacted

	Files  []LabReportFile // the pages of one report, in order: a PDF or images, at least one
	UserID uuid.UUID       // the user whose report it is
	// NeedsHumanReview is whether a person checks what was read. It is omitted if false.
	NeedsHumanReview bool
}

// LabReportFile is a file of a lab report.
type LabReportFile struct {
	Redacted

	Name    string // with the extension, such as report.pdf
	Content []byte // must not change until the call returns
}

func (b *CreateParsingJobBody) validate(v *validator) {
	v.requiredID("user_id", b.UserID)
	if len(b.Files) == 0 {
		v.add("file", "missing", "is required: at least one file")
	}
	v.within("file", func() {
		for i, f := range b.Files {
			v.within(strconv.Itoa(i), func() {
				v.required("name", f.Name)
				if len(f.Content) == 0 {
					v.add("content", "missing", "is required")
				}
			})
		}
	})
}

// form returns the body as multipart/form-data, with its media type.
func (b *CreateParsingJobBody) form() (body []byte, mediaType string, err error) {
	var buffer bytes.Buffer
	w := multipart.NewWriter(&buffer)
	err = w.WriteField("user_id", b.UserID.String())
	if b.NeedsHumanReview {
		err = errors.Join(err, w.WriteField("needs_human_review", "true"))
	}
	for _, f := range b.Files {
		part, partErr := w.CreatePart(textproto.MIMEHeader{
			"Content-Disposition": {multipart.FileContentDisposition("file", f.Name)},
			"Content-Type":        {http.DetectContentType(f.Content)},
		})
		if partErr != nil {
			return nil, "", partErr
		}
		_, partErr = part.Write(f.Content)
		err = errors.Join(err, partErr)
	}
	err = errors.Join(err, w.Close())
	return buffer.Bytes(), w.FormDataContentType(), err
}

// Create starts to read a lab report: POST /lab_report/v1/parser/job. [LabReportsService.Get]
// returns how far it is, and so do the events lab_report.parsing_job.created and .updated.
func (s *LabReportsService) Create(ctx context.Context, body CreateParsingJobBody, opts ...CallOption) (*ParsingJob, error) {
	return call(ctx, coreOf(s), new(ParsingJob), request{op: opCreateParsingJob, body: &body}, opts)
}

// Get returns a job with what was read, once it is completed: GET
// /lab_report/v1/parser/job/{job_id}.
func (s *LabReportsService) Get(ctx context.Context, jobID uuid.UUID, opts ...CallOption) (*ParsingJob, error) {
	return call(ctx, coreOf(s), new(ParsingJob), request{op: opGetParsingJob, ids: []string{jobID.String()}}, opts)
}

// ParsingJob is a lab report that the service reads for the team. Printed or logged, it shows only
// its ID.
type ParsingJob struct {
	ID     uuid.UUID        `json:"id"`     // the job
	Status ParsingJobStatus `json:"status"` // how far it is
	// FailureReason is why the job failed; nil if it did not.
	FailureReason    *ParsingJobFailureReason `json:"failure_reason,omitzero"`
	Data             *ParsedLabReportData     `json:"data,omitzero"`      // what the report says; nil before the job completes
	NeedsHumanReview bool                     `json:"needs_human_review"` // a person should check Data
	IsReviewed       bool                     `json:"is_reviewed"`        // a person has checked Data

	RawObject `json:"-"`
}

// LogValue returns the ID of the job.
func (v ParsingJob) LogValue() slog.Value {
	return slog.StringValue("labhealth.ParsingJob{" + v.ID.String() + ", redacted}")
}

func (j *ParsingJob) verify() error { return requireID(j.ID, "job") }

// ParsedLabReportData is the content of a lab report.
type ParsedLabReportData struct {
	Metadata ResultMetadata    `json:"metadata"` // the patient, the lab and the dates
	Results  []LabReportResult `json:"results"`  // the results in the order of the report

	RawObject `json:"-"`
}

// ResultMetadata has the patient, the lab and the dates of a lab report, as the report spells them:
// dates may have any format. A value that is not in the report is nil.
type ResultMetadata struct {
	PatientFirstName *string `json:"patient_first_name,omitzero"` // first name
	PatientLastName  *string `json:"patient_last_name,omitzero"`  // last name
	DOB              *string `json:"dob,omitzero"`                // date of birth
	Gender           Gender  `json:"gender" default:"other"`      // "other" if not in the report
	LabName          *string `json:"lab_name,omitzero"`           // name of the lab
	DateReported     *string `json:"date_reported,omitzero"`      // date of the report
	DateCollected    *string `json:"date_collected,omitzero"`     // date of the collection
	SpecimenNumber   *string `json:"specimen_number,omitzero"`    // number of the specimen

	RawObject `json:"-"`
}

// LabReportResult is a result in a lab report. A value that is not in the report is nil.
type LabReportResult struct {
	TestName        string                   `json:"test_name"`                          // name of the test
	Value           string                   `json:"value"`                              // the result as text, also if it is a number
	Type            *LabReportResultType     `json:"type,omitzero"`                      // how to read Value
	Units           *string                  `json:"units,omitzero"`                     // unit of Value and of the range
	SourcePanelName *string                  `json:"source_panel_name,omitzero"`         // panel of the test
	SampleType      LabReportSampleType      `json:"sample_type" default:"unknown"`      // what was tested
	MeasurementKind LabReportMeasurementKind `json:"measurement_kind" default:"unknown"` // how the result was found
	Sensitivity     LabReportSensitivity     `json:"sensitivity" default:"unknown"`      // of microbes to a drug
	Interpretation  *Interpretation          `json:"interpretation,omitzero"`            // values other than its constants occur

	MinReferenceRange *float64 `json:"min_reference_range,omitzero"` // lower end of the reference range
	MaxReferenceRange *float64 `json:"max_reference_range,omitzero"` // upper end of the reference range
	IsAboveMaxRange   *bool    `json:"is_above_max_range,omitzero"`  // Value is above the range
	IsBelowMinRange   *bool    `json:"is_below_min_range,omitzero"`  // Value is below the range

	LOINCMatches     []LOINCMatch      `json:"loinc_matches,omitzero"`      // codes that the test may have; nil if missing
	LOINCMatchStatus *LOINCMatchStatus `json:"loinc_match_status,omitzero"` // whether one of them is certain

	RawObject `json:"-"`
}

// LOINCMatch is a code that the test of a [LabReportResult] may have.
type LOINCMatch struct {
	LOINCCode       string   `json:"loinc_code"`              // the code
	LOINCName       string   `json:"loinc_name"`              // name of the code
	DisplayName     string   `json:"display_name" default:""` // name for people; empty if missing
	Aliases         []string `json:"aliases,omitzero"`        // other names; nil if missing
	ConfidenceScore float64  `json:"confidence_score"`        // how certain the match is

	RawObject `json:"-"`
}

// ParsingJobStatus is how far a [ParsingJob] is. Values other than the constants occur.
type ParsingJobStatus string

// Values of [ParsingJobStatus].
const (
	ParsingJobUploadPending ParsingJobStatus = "upload_pending"
	ParsingJobStarted       ParsingJobStatus = "started"
	ParsingJobCompleted     ParsingJobStatus = "completed"
	ParsingJobFailed        ParsingJobStatus = "failed"
)

// ParsingJobFailureReason is why a [ParsingJob] failed. Values other than the constants occur.
type ParsingJobFailureReason string

// Values of [ParsingJobFailureReason].
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

// Values of [LabReportResultType].
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

// Values of [LabReportSampleType].
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

// Values of [LabReportMeasurementKind].
const (
	LabReportMeasurementDirect     LabReportMeasurementKind = "direct"
	LabReportMeasurementCalculated LabReportMeasurementKind = "calculated"
	LabReportMeasurementRatio      LabReportMeasurementKind = "ratio"
	LabReportMeasurementUnknown    LabReportMeasurementKind = "unknown"
)

// LabReportSensitivity is the sensitivity in a [LabReportResult]. Values other than the constants
// occur.
type LabReportSensitivity string

// Values of [LabReportSensitivity].
const (
	LabReportSensitivitySensitive   LabReportSensitivity = "sensitive"
	LabReportSensitivityInsensitive LabReportSensitivity = "insensitive"
	LabReportSensitivityUnknown     LabReportSensitivity = "unknown"
)

// LOINCMatchStatus is whether a code of a [LabReportResult] is certain. Values other than the
// constants occur.
type LOINCMatchStatus string

// Values of [LOINCMatchStatus].
const (
	LOINCMatchAutoMatch   LOINCMatchStatus = "auto_match"
	LOINCMatchNeedsReview LOINCMatchStatus = "needs_review"
	LOINCMatchNoMatch     LOINCMatchStatus = "no_match"
)
