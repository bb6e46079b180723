// The payload of parsing jobs: lab reports that the service reads.

package webhooks

// Source of this file: public API reference only.

import (
	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
)

// ParsingJob is a lab report that the service reads for the team: the data of
// lab_report.parsing_job.created and .updated. Client.LabReports creates and reads such jobs. What
// is said of [LabOrder] applies to it as well.
type ParsingJob struct {
	labhealth.ParsingJob
}

func (j *ParsingJob) apiObject() (any, *uuid.UUID) { return &j.ParsingJob, &j.ID }
