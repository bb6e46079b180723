// Records whose order does not exist or may not exist, as JSON lines and CSV.

package bulk

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/labhealth/labhealth-go"
)

// Rejection is a record whose order does not exist, or may not exist: see [Options.Rejections]. It
// holds the sample ID, paths and reasons, and no other value, unless [Options.KeepMessages] is set.
// Printed or logged, it shows the outcome and the number of the record; its JSON is not redacted.
type Rejection struct {
	// Outcome is one of:
	//
	//	rejected  rejected by the service, or its sample ID belongs to an order of another user
	//	invalid   not sent: the record is invalid
	//	conflict  not sent: another record has the same sample ID
	//	changed   not sent: its order exists and was imported from a different record
	//	unknown   it may have been applied
	//	pending   the next run sends it
	//	warning   with Options.DryRun: it can be sent, and Fields has what the service or a lab is
	//	          known to reject, from [labhealth.ImportOrderBody.Warnings]
	Outcome    string    `json:"outcome"`
	Record     int64     `json:"record,omitzero"`     // its number in the source, from 1; 0 if it is no longer there
	Line       int       `json:"line,omitzero"`       // where it starts in its file; see [Record]
	SampleID   string    `json:"sample_id,omitzero"`  // empty if it has none
	Reason     string    `json:"reason"`              // a sentence for people, without values
	StatusCode int       `json:"status,omitzero"`     // the HTTP status of the rejection
	RequestID  string    `json:"request_id,omitzero"` // the service's ID of the request
	Fields     []Problem `json:"fields,omitzero"`     // empty if the service named no fields

	// OtherRecord is the first other record with the same sample ID, if the two differ.
	OtherRecord int64 `json:"other_record,omitzero"`
	OtherLine   int   `json:"other_line,omitzero"` // where it starts in its file

	Message string `json:"message,omitzero"` // the service's text, with [Options.KeepMessages]
}

// reasons are the reasons of the outcomes.
var reasons = map[string]string{
	"rejected": "the service rejected it",
	"invalid":  "it is invalid and was not sent",
	"changed":  "its order exists, but was imported from other values, which are not changed",
	"unknown":  "its order may exist: the response was lost, and the next run looks it up",
	"pending":  "it has no order yet: the next run sends it",
	"warning":  "it can be sent, but may be rejected, by the service or later by the lab",
}

// fieldReasons says for people what the service's codes of field errors mean. The other codes say
// it themselves.
var fieldReasons = map[string]string{
	"missing":                    "the service requires it",
	"enum":                       "the service does not know the value",
	"literal_error":              "the service does not know the value",
	"value_error":                "the service does not accept the value",
	"assertion_error":            "the service does not accept the value",
	"string_pattern_mismatch":    "the service does not accept the characters, or the form of the value",
	"string_too_short":           "is too short",
	"string_too_long":            "is too long",
	"too_short":                  "has too few values",
	"too_long":                   "has too many values",
	"greater_than":               "is too small",
	"greater_than_equal":         "is too small",
	"less_than":                  "is too large",
	"less_than_equal":            "is too large",
	"extra_forbidden":            "is not a field that the service has",
	"uuid_parsing":               "is not an ID of the service",
	"date_parsing":               "is not a date",
	"date_from_datetime_parsing": "is not a date",
	"int_parsing":                "is not a whole number",
}

// setReason sets the reason, which depends on the other fields.
func (j *Rejection) setReason() {
	other := fmt.Sprintf("line %d", j.OtherLine)
	if j.OtherLine == 0 {
		other = fmt.Sprintf("record %d", j.OtherRecord)
	}
	switch j.Reason = reasons[j.Outcome]; {
	case j.Outcome == "conflict":
		j.Reason = other + " has the same sample ID and other values, so none of them is sent"
	case j.OtherRecord != 0:
		j.Reason += "; " + other + " has the same sample ID"
	case j.Outcome == "rejected" && j.StatusCode != 0:
		j.Reason += fmt.Sprintf(" with status %d", j.StatusCode)
	case j.Outcome == "rejected":
		j.Reason = "it cannot be imported"
	}
}

// rejectionWriter writes rejections as JSON lines and as CSV. Either writer may be nil.
type rejectionWriter struct {
	lines io.Writer
	table *csv.Writer
}

var rejectionColumns = []string{
	"line", "record", "sample_id", "outcome", "reason", "field", "column", "status", "request_id", "other_line", "other_record", "message",
}

func newRejectionWriter(opts *Options) (*rejectionWriter, error) {
	w := &rejectionWriter{lines: opts.Rejections}
	if opts.RejectionsCSV == nil {
		return w, nil
	}
	w.table = csv.NewWriter(opts.RejectionsCSV)
	return w, w.table.Write(rejectionColumns)
}

func (w *rejectionWriter) write(j *Rejection) error {
	j.setReason()
	if w.lines != nil {
		encoded, err := json.Marshal(j)
		if err == nil {
			_, err = w.lines.Write(append(encoded, '\n'))
		}
		if err != nil {
			return err
		}
	}
	if w.table == nil {
		return nil
	}
	problems := j.Fields
	if len(problems) == 0 {
		problems = []Problem{{}}
	}
	for _, p := range problems {
		if err := w.table.Write(j.row(p)); err != nil {
			return err
		}
	}
	return nil
}

// row returns the row of the CSV file for a problem of the record.
func (j *Rejection) row(p Problem) []string {
	number := func(n int64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	reason := j.Reason
	switch text := cmp.Or(fieldReasons[p.Reason], p.Reason); {
	case text != "" && j.OtherRecord == 0 && slices.Contains([]string{"invalid", "rejected", "warning"}, j.Outcome):
		reason = text
	case text != "":
		reason += ": " + text
	}
	row := []string{
		number(int64(j.Line)), number(j.Record), j.SampleID, j.Outcome, reason, strings.TrimPrefix(p.Path, "body."), p.Column,
		number(int64(j.StatusCode)), j.RequestID, number(int64(j.OtherLine)), number(j.OtherRecord), j.Message,
	}
	for i, cell := range row {
		row[i] = safeCell(cell)
	}
	return row
}

// safeCell returns a cell that no spreadsheet runs as a formula: an apostrophe precedes =, +, - and
// @ at its start, and after what some spreadsheets read as the end of a cell. Control characters
// become spaces.
func safeCell(s string) string {
	var b strings.Builder
	atStart := true
	for _, c := range s {
		switch {
		case unicode.IsControl(c), c == utf8.RuneError:
			c, atStart = ' ', true
		case strings.ContainsRune("=+-@\uff1d\uff0b\uff0d\uff20", c):
			if atStart {
				b.WriteByte('\'')
			}
			atStart = false
		default:
			atStart = strings.ContainsRune(";,|\"'", c) || atStart && (unicode.IsSpace(c) || unicode.Is(unicode.Cf, c))
		}
		b.WriteRune(c)
	}
	return b.String()
}

// rejectionWindow is the number of rejections that are in memory at once. Tests change it.
var rejectionWindow = 10_000

// rejectionPass ranges over the source and the journal and writes the rejections in order.
type rejectionPass struct {
	*sourcePass

	out    *rejectionWriter
	window []Rejection
	open   map[sampleKey]int // the rejections in the window that the journal completes
}

// writeRejections writes the rejections. If the run has failed, the source is read up to the record
// that the run has reached. It does not stop when the context ends.
func (r *run) writeRejections(failed bool) error {
	if r.opts.Rejections == nil && r.opts.RejectionsCSV == nil {
		return nil
	}
	out, err := newRejectionWriter(r.opts)
	if err == nil {
		p := rejectionPass{sourcePass: r.pass, out: out, open: map[sampleKey]int{}}
		err = cmp.Or(p.readSource(failed), p.flush(), p.addStrays())
	}
	if out.table != nil {
		out.table.Flush()
		err = cmp.Or(err, out.table.Error())
	}
	if err != nil {
		return fmt.Errorf("bulk: the rejections cannot be written: %w", err)
	}
	return nil
}

func (p *rejectionPass) readSource(failed bool) error {
	if c := p.writer.counts(); c[categoryPending]+c[categoryRejected]+c[categoryInvalid]+c[categoryChanged]+c[categoryUnknown] == 0 {
		return nil // nothing to report
	}
	p.writer.clearFlag(visited)
	number := int64(0)
	for record, err := range p.source {
		if number++; number > p.read {
			return nil
		}
		j, key, err := p.rejectionOf(record, err, number)
		switch {
		case err != nil && failed:
			return nil // the error with which the run failed, or the end of its context
		case err != nil:
			return err
		case j.Outcome == "":
			continue
		case j.Outcome == "rejected" || j.Outcome == "unknown" || j.Outcome == "pending":
			p.open[key] = len(p.window)
		}
		if p.window = append(p.window, j); len(p.window) == rejectionWindow {
			if err := p.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// rejectionOf returns the rejection of a record. Its outcome is empty if there is none.
func (p *rejectionPass) rejectionOf(record Record, err error, number int64) (j Rejection, key sampleKey, _ error) {
	j = Rejection{Record: number, SampleID: record.Body.SampleID, Line: record.Line}
	var recordErr *RecordError
	switch {
	case errors.As(err, &recordErr):
		j.SampleID = recordErr.SampleID
	case err != nil:
		return j, key, sourceError(err)
	}
	s := state{flags: invalid}
	first := true
	if j.SampleID != "" {
		key = p.writer.index.key(j.SampleID)
		s = p.writer.mark(key, visited)
		if !s.has(inSource) {
			return j, key, errChangedSource
		}
		first = !s.has(visited)
	}
	if s.has(conflict) {
		first = p.setOther(&j, key)
	}
	if s.has(invalid|conflict) || recordErr != nil {
		if _, err := p.checkRecord(&record, err, &j); err != nil {
			return j, key, err
		}
	}
	j.Outcome = rejectedOutcome(s, first, j.Fields != nil)
	if p.opts.DryRun && first && s.category() == categoryPending {
		j.setWarnings(&record)
	}
	return j, key, nil
}

// setWarnings sets what a dry run says about a record that can be sent.
func (j *Rejection) setWarnings(record *Record) {
	for _, f := range record.Body.Warnings() {
		j.Outcome = "warning"
		j.Fields = append(j.Fields, Problem{Path: f.Path(), Reason: f.Msg})
	}
	record.header.name(j.Fields)
}

// setOther names the first other record with the same sample ID, and reports whether this is the
// first one.
func (p *rejectionPass) setOther(j *Rejection, key sampleKey) (first bool) {
	pair := p.conflicts[key]
	if first = pair[0].record == 0 || pair[0].record == j.Record; first {
		pair[0] = position{j.Record, j.Line}
		p.conflicts[key] = pair
		j.OtherRecord, j.OtherLine = pair[1].record, pair[1].line
	} else {
		j.OtherRecord, j.OtherLine = pair[0].record, pair[0].line
	}
	return first
}

// rejectedOutcome returns the outcome of a record, and "" if its order exists.
func rejectedOutcome(s state, isFirst, isInvalid bool) string {
	switch {
	case s.has(conflict) && !(isFirst && s.isUnresolved()):
		if isInvalid {
			return "invalid"
		}
		return "conflict"
	case !isFirst:
		return "" // a duplicate
	case s.isUnresolved():
		return "unknown"
	case s.step == codeApplied && s.has(changed):
		return "changed"
	case s.step == codeApplied:
		return ""
	case s.has(invalid):
		return "invalid"
	case s.step == codeRejected:
		return "rejected"
	case s.step == codeAbsent || s.step == codePostponed:
		return "pending"
	}
	return "" // not reached
}

// flush completes the rejections in the window from the journal and writes them.
func (p *rejectionPass) flush() error {
	if len(p.open) > 0 {
		for e, err := range p.writer.lastEntries() {
			if err != nil {
				return err
			}
			at, ok := p.open[p.writer.index.key(e.SampleID)]
			if !ok {
				continue
			}
			j := &p.window[at]
			j.StatusCode, j.RequestID = e.StatusCode, e.RequestID
			if j.Fields == nil {
				j.Fields = e.Fields
			}
			if p.opts.KeepMessages {
				j.Message = e.Message
			}
		}
	}
	for i := range p.window {
		if err := p.out.write(&p.window[i]); err != nil {
			return err
		}
	}
	p.window = p.window[:0]
	clear(p.open)
	return nil
}

// addStrays writes the records that the source does not have, if it was read.
func (p *rejectionPass) addStrays() error {
	if p.writer.counts()[categoryStray] == 0 || !p.checked {
		return nil
	}
	for e, err := range p.writer.lastEntries() {
		if err == nil && e.state.category() == categoryStray {
			err = p.out.write(&Rejection{Outcome: "unknown", SampleID: e.SampleID, StatusCode: e.StatusCode, RequestID: e.RequestID})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// entryState is the last journal entry of a record, with the state of the record.
type entryState struct {
	Entry
	state state
}

// lastEntries ranges over the journal and yields the last entry of each record.
func (w *journalWriter) lastEntries() iter.Seq2[entryState, error] {
	return func(yield func(entryState, error) bool) {
		var number uint32
		for e, err := range w.journal.Entries() {
			if err != nil {
				yield(entryState{}, err)
				return
			}
			if !e.Step.isCounted() {
				continue
			}
			number++
			if e.Step == StepBegin {
				continue
			}
			if s := w.state(w.index.key(e.SampleID)); s.entry == number && !yield(entryState{e, s}, nil) {
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
