package bulk

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/labhealth/labhealth-go"
)

// Rejection is a line of [Options.Rejections]: a record whose order does not exist, or may not
// exist. It holds the sample ID, paths and reasons, and no other value. Printed or logged, it shows
// the outcome and the number of the record; its JSON is not redacted.
type Rejection struct {
	// Outcome is one of:
	//
	//	rejected   rejected by the service
	//	invalid   not sent: the record is invalid
	//	conflict  not sent: another record has the same sample ID
	//	changed   not sent: its order exists and was imported from a different record
	//	unknown   it may have been applied
	//	pending   the next run sends it
	Outcome    string    `json:"outcome"`
	Record     int64     `json:"record,omitzero"`     // its number in the source, from 1
	Line       int       `json:"line,omitzero"`       // in its file, if it cannot be read
	SampleID   string    `json:"sample_id,omitzero"`  // empty if it has none
	StatusCode int       `json:"status,omitzero"`     // the HTTP status of the rejection
	RequestID  string    `json:"request_id,omitzero"` // the service's ID of the request
	Fields     []Problem `json:"fields,omitzero"`     // empty if the service named no fields
}

// writeRejection writes a line to [Options.Rejections].
func (r *run) writeRejection(line Rejection) error {
	if r.opts.Rejections == nil {
		return nil
	}
	encoded, err := json.Marshal(line)
	if err == nil {
		_, err = r.opts.Rejections.Write(append(encoded, '\n'))
	}
	if err != nil {
		return fmt.Errorf("bulk: the rejections cannot be written: %w", err)
	}
	return nil
}

// writeOpenRecords writes the records that the journal shows as rejected or undecided.
func (r *run) writeOpenRecords() error {
	if r.opts.Rejections == nil {
		return nil
	}
	for e, err := range r.lastEntries() {
		if err != nil {
			return err
		}
		outcome := openOutcome(e.state)
		if outcome == "" {
			continue
		}
		line := Rejection{Outcome: outcome, Record: e.Record, SampleID: e.SampleID, StatusCode: e.StatusCode, RequestID: e.RequestID, Fields: e.Fields}
		if err := r.writeRejection(line); err != nil {
			return err
		}
	}
	return nil
}

// openOutcome returns the outcome of a record that is rejected or undecided, and "" for other ones.
func openOutcome(s state) string {
	switch {
	case s.isUnresolved():
		return "unknown"
	case !s.has(inSource) || s.has(conflict|invalid):
		return ""
	case s.step == codeRejected:
		return "rejected"
	case s.step == codeAbsent || s.step == codePostponed:
		return "pending"
	}
	return ""
}

// entryState is the last journal entry of a record, with the state of the record.
type entryState struct {
	Entry
	state state
}

// lastEntries ranges over the journal and yields the last entry of each record.
func (r *run) lastEntries() iter.Seq2[entryState, error] {
	return func(yield func(entryState, error) bool) {
		var number uint32
		for e, err := range r.journal.Entries() {
			if err != nil {
				yield(entryState{}, err)
				return
			}
			number++
			if e.Step == StepBegin {
				continue
			}
			r.mu.Lock()
			s := r.index.states[r.index.key(e.SampleID)]
			r.mu.Unlock()
			if s.entry == number && !yield(entryState{e, s}, nil) {
				return
			}
		}
	}
}

// problemsOf returns the problems of a record from an error, without values.
func problemsOf(err error) (problems []Problem) {
	var local *labhealth.ValidationError
	var api *labhealth.APIError
	switch {
	case errors.As(err, &local):
		for _, f := range local.Fields {
			problems = append(problems, Problem{Path: f.Path(), Reason: f.Msg})
		}
	case errors.As(err, &api):
		// Paths and codes come from the service; messages may quote the record.
		fields := api.Fields()
		for _, f := range fields[:min(len(fields), 20)] {
			path := make([]string, len(f.Loc))
			for i, name := range f.Loc {
				path[i] = nameOrMark(name)
			}
			problems = append(problems, Problem{Path: strings.Join(path, "."), Reason: nameOrMark(f.Type)})
		}
	}
	return problems
}
