// Lab reports that are read.

package labhealthtest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/reference"
)

// parsingJob is a lab report that is read. It is over when it is read for the first time.
type parsingJob struct {
	ID               uuid.UUID       `json:"id"`
	Status           string          `json:"status"`
	FailureReason    *string         `json:"failure_reason"`
	Data             json.RawMessage `json:"data"`
	NeedsHumanReview bool            `json:"needs_human_review"`
	IsReviewed       bool            `json:"is_reviewed"`

	user     *user
	readable bool
}

// form returns the values and the files of a multipart body by name. A body of another kind has
// none.
func (r *request) form() (values map[string]string, files map[string][][]byte) {
	values, files = map[string]string{}, map[string][][]byte{}
	_, params, _ := mime.ParseMediaType(r.header.Get("Content-Type"))
	parts := multipart.NewReader(bytes.NewReader(r.body), params["boundary"])
	for {
		part, err := parts.NextPart()
		if err != nil {
			return values, files
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return values, files
		}
		if part.FileName() != "" {
			files[part.FormName()] = append(files[part.FormName()], content)
		} else {
			values[part.FormName()] = string(content)
		}
	}
}

// reportTypes are the media types of the files that can be read.
var reportTypes = []string{"application/pdf", "image/jpeg", "image/png"}

// createParsingJob accepts any file. One that is no PDF, JPEG or PNG fails later.
func (s *Server) createParsingJob(r *request) (any, error) {
	values, files := r.form()
	if len(files["file"]) == 0 {
		r.add("missing", []any{"body", "file"}, "Field required", jsonNull, nil)
	}
	id, _ := uuidSchema(&r.validator, []any{"body", "user_id"}, encode(values["user_id"])).(string)
	if err := r.err(); err != nil {
		return nil, err
	}
	u := s.user(uuid.MustParse(id))
	if u == nil {
		return nil, userNotFound
	}
	j := &parsingJob{ID: s.newID(), Status: "started", Data: jsonNull, NeedsHumanReview: values["needs_human_review"] == "true", user: u}
	j.readable = !slices.ContainsFunc(files["file"], func(content []byte) bool {
		return !slices.Contains(reportTypes, http.DetectContentType(content))
	})
	s.parsingJobs[j.ID] = j
	s.emit(u, "lab_report.parsing_job.created", j)
	return j, nil
}

// getParsingJob invents what was read.
func (s *Server) getParsingJob(r *request) (any, error) {
	j := s.parsingJobs[r.pathUUID("job_id")]
	if j == nil {
		return nil, reject(http.StatusNotFound, "Parsing job not found")
	}
	if j.Status != "started" {
		return j, nil
	}
	j.Status = "failed"
	j.FailureReason = new("invalid_input")
	if j.readable {
		g := reference.NewGenerator(binary.LittleEndian.Uint64(j.ID[:8]))
		g.Plausible, g.Now = true, s.now()
		j.Status, j.FailureReason, j.Data = "completed", nil, g.Document("team", "ParsedLabReportData")
	}
	s.emit(j.user, "lab_report.parsing_job.updated", j)
	return j, nil
}
