// The passes over the source: the check of all records, and the records that are still wanted.

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

// sourcePass ranges over the source: once to check all records, and then over those that are to be
// sent, looked up or reported.
type sourcePass struct {
	control

	source    Source
	writer    *journalWriter
	read      int64                     // records that check has read
	checked   bool                      // the source was read to its end
	conflicts map[sampleKey][2]position // the first two records of each sample ID with a conflict
}

// position is where a record is in its source.
type position struct {
	record int64
	line   int
}

// row is a record of the source, with what is known of it.
type row struct {
	position
	body   labhealth.ImportOrderBody
	header *header // names the columns of problems; nil if there are none
	key    sampleKey
	state  state
}

var errChangedSource = errors.New("bulk: the source did not yield the same records each time")

func sourceError(err error) error { return fmt.Errorf("bulk: the source cannot be read: %w", err) }

// check reads the source for the first time and finds all invalid records before anything is sent.
func (p *sourcePass) check() error {
	for record, err := range p.source {
		if p.ctx.Err() != nil {
			return context.Cause(p.ctx)
		}
		line := Rejection{Record: p.read + 1, SampleID: record.Body.SampleID, Line: record.Line}
		sum, err := p.checkRecord(&record, err, &line)
		if err := cmp.Or(err, record.checkUsers(p.opts.DryRun)); err != nil {
			return err
		}
		if isFirstConflict := p.writer.addRecord(&line, sum); isFirstConflict {
			p.conflicts[p.writer.index.key(line.SampleID)] = [2]position{1: {line.Record, line.Line}}
		}
		p.read++
	}
	p.checked = true
	return nil
}

// checkRecord returns the digest of a record, or of the error that the source returned instead, and
// adds the problems of the record to line.
func (p *sourcePass) checkRecord(record *Record, err error, line *Rejection) (sum digest, _ error) {
	if err == nil {
		sum, err = p.writer.index.digest(&record.Body)
	}
	var recordErr *RecordError
	switch {
	case err == nil:
		line.Fields = problemsOfBody(&record.Body)
		record.header.name(line.Fields)
		return sum, record.header.missingErr()
	case errors.As(err, &recordErr):
		line.SampleID, line.Line, line.Fields = recordErr.SampleID, cmp.Or(recordErr.Line, line.Line), recordErr.Problems
		rand.Read(sum[:]) // so that it differs from all other records
		return sum, recordErr.header.missingErr()
	}
	return sum, sourceError(err)
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

// each calls f for the records whose state is wanted, once per sample ID, and reads the source as
// far as they go.
func (p *sourcePass) each(wanted func(state) bool, f func(*row) error) error {
	left := p.writer.count(wanted)
	if left == 0 {
		return nil
	}
	p.writer.clearFlag(visited)
	number := int64(0)
	for record, err := range p.source {
		number++
		if p.ctx.Err() != nil {
			return context.Cause(p.ctx)
		}
		row, err := p.rowOf(&record, err, number)
		if err != nil {
			return err
		}
		if row == nil || row.state.has(visited) || !wanted(row.state) {
			continue
		}
		if err := f(row); err != nil {
			return err
		}
		if left--; left == 0 {
			return nil
		}
	}
	return nil
}

// rowOf returns the row of a record, or nil for a record that cannot be read or has no sample ID,
// which check has reported.
func (p *sourcePass) rowOf(record *Record, err error, number int64) (*row, error) {
	if err == nil && record.Body.SampleID == "" {
		return nil, nil
	}
	var sum digest
	if err == nil {
		sum, err = p.writer.index.digest(&record.Body)
	}
	var recordErr *RecordError
	switch {
	case errors.As(err, &recordErr):
		return nil, nil
	case err != nil:
		return nil, sourceError(err)
	}
	key := p.writer.index.key(record.Body.SampleID)
	s := p.writer.mark(key, visited)
	if !s.has(inSource) || s.digest != sum && !s.has(conflict) {
		return nil, errChangedSource
	}
	return &row{position{number, record.Line}, record.Body, record.header, key, s}, nil
}
