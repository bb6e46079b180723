// JSON lines as a source.

package bulk

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// JSONLines returns a source that reads one [labhealth.ImportOrderBody] as JSON from each line of r
// that is not blank. Unlike the decoding of responses it is strict: a value of the wrong type makes
// its record invalid, and so does a field that is not in the interface specification, which would
// not be sent, or a date with a time of day other than midnight. A line longer than 16 MiB is an
// invalid record. Each iteration starts at the start of r, so iterations must not overlap.
func JSONLines(r io.ReadSeeker) Source {
	return func(yield func(Record, error) bool) {
		lines, err := rewind(r)
		if err != nil {
			yield(Record{}, err)
			return
		}
		for number := 1; ; number++ {
			line, readErr := readLine(lines)
			if errors.Is(readErr, errLineTooLong) {
				if !yield(Record{}, &RecordError{Line: number, Problems: []Problem{{Reason: "is longer than 16 MiB"}}}) {
					return
				}
				continue
			}
			if readErr != nil && !errors.Is(readErr, io.EOF) {
				yield(Record{}, fmt.Errorf("bulk: line %d: %w", number, readErr))
				return
			}
			if line = bytes.TrimSpace(line); len(line) > 0 {
				body, err := decodeRecord(line, number)
				if !yield(Record{Body: body, Line: number}, err) {
					return
				}
			}
			if readErr != nil {
				return
			}
		}
	}
}

// wrapper makes jsonread report malformed fields with the path of the request body.
type wrapper struct {
	Body labhealth.ImportOrderBody `json:"body"`

	labhealth.RawObject `json:"-"`
}

// decodeRecord decodes a record. The error is a *[RecordError] with all problems of its form.
func decodeRecord(document []byte, line int) (body labhealth.ImportOrderBody, _ error) {
	if err := jsonread.Valid(document); err != nil {
		reason := "is not valid JSON in UTF-8"
		var syntax *jsonread.SyntaxError
		if errors.As(err, &syntax) {
			reason = fmt.Sprintf("is not valid JSON in UTF-8 at byte %d: %s", syntax.Offset, syntax.Reason)
		}
		return body, &RecordError{Line: line, Problems: []Problem{{Reason: reason}}}
	}
	if document[0] != '{' {
		return body, &RecordError{Line: line, Problems: []Problem{{Reason: "is not a JSON object"}}}
	}
	wrapped := append(append(make([]byte, 0, len(document)+10), `{"body":`...), document...)
	wrapped = append(wrapped, '}')
	var w wrapper
	if err := jsonread.Unmarshal(wrapped, &w); err != nil {
		return body, &RecordError{Line: line, Problems: []Problem{{Reason: "cannot be read"}}}
	}
	var problems []Problem
	for _, m := range w.Malformed() {
		problems = append(problems, Problem{Path: m.Path, Reason: "is not a valid " + m.Want})
	}
	problems = appendFieldProblems(problems, document, bodyType, "body")
	if problems != nil {
		return body, &RecordError{Line: line, SampleID: w.Body.SampleID, Problems: problems}
	}
	return w.Body, nil
}
