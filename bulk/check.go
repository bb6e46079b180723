package bulk

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/labhealth/labhealth-go"
)

// checkSource reads the source for the first time and finds all invalid records before anything is
// sent.
func (r *run) checkSource() error {
	r.number = 0
	for record, err := range r.source {
		r.number++
		if r.ctx.Err() != nil {
			return context.Cause(r.ctx)
		}
		line := Rejection{Record: r.number, SampleID: record.Body.SampleID, Line: record.Line}
		sum, err := r.checkRecord(&record.Body, err, &line)
		record.header.name(line.Fields)
		if err := cmp.Or(err, r.checkUsers(&record)); err != nil {
			return err
		}
		r.addRecord(&line, sum)
	}
	r.mu.Lock()
	r.appliedBefore = r.index.counts[categoryApplied]
	r.mu.Unlock()
	return nil
}

// checkRecord returns the digest of a record, or of the error that the source returned instead, and
// adds the problems of the record to line.
func (r *run) checkRecord(body *labhealth.ImportOrderBody, err error, line *Rejection) (sum digest, _ error) {
	if err == nil {
		sum, err = r.index.digest(body)
	}
	var recordErr *RecordError
	switch {
	case err == nil:
		line.Fields = problemsOfBody(body)
	case errors.As(err, &recordErr):
		line.SampleID, line.Line, line.Fields = recordErr.SampleID, cmp.Or(recordErr.Line, line.Line), recordErr.Problems
		rand.Read(sum[:]) // so that it differs from all other records
	default:
		return sum, sourceError(err)
	}
	return sum, nil
}

// problemsOfBody returns the problems of a record that can be encoded.
func problemsOfBody(body *labhealth.ImportOrderBody) []Problem {
	problems := appendTextProblems(problemsOf(body.Validate()), reflect.ValueOf(body).Elem(), "body")
	tomorrow := labhealth.DateOf(time.Now().AddDate(0, 0, 1)) // it may have begun elsewhere
	if body.PatientDetails.DOB.Compare(tomorrow) > 0 {
		problems = append(problems, Problem{Path: "body.patient_details.dob", Reason: "is in the future"})
	}
	return problems
}

func sourceError(err error) error { return fmt.Errorf("bulk: the source cannot be read: %w", err) }

// addRecord adds a record of the source, with its problems, to the index.
func (r *run) addRecord(record *Rejection, sum digest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records++
	if record.SampleID == "" {
		r.extraInvalid++
		return
	}
	x := r.index
	key := x.key(record.SampleID)
	s, inJournal := x.states[key]
	switch {
	case s.has(inSource) && s.digest == sum:
		r.duplicates++
		return
	case s.has(inSource):
		if !s.has(conflict) {
			r.conflicts[key] = [2]position{1: {record.Record, record.Line}}
		}
		s.flags |= conflict
		r.extraInvalid++
		x.set(key, s)
		return
	}
	if inJournal && s.digest != sum {
		s.flags |= changed
	}
	if record.Fields != nil && (s.step != codeApplied || s.has(changed)) {
		s.flags |= invalid
	}
	s.digest = sum
	s.flags |= inSource
	x.set(key, s)
}
