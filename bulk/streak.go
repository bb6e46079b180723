// Rejections in a row that stop a run.

package bulk

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
)

// streak is the sequence of rejections since the last order that either have no field errors and
// one status, or all name one field. At [Options.RejectionLimit] the run stops. Until then they are
// held back: they are recorded as postponed, and as rejected when the streak ends, so that none of
// them is recorded as rejected if the run stops.
//
// Rejections without field errors may have another cause, such as a wrong base URL. An order,
// another status or field errors show that the service reads the records; from then on they form no
// streak.
type streak struct {
	limit   int  // negative for none
	proven  bool // the service has shown that it reads the records
	entries []Entry
	common  []Problem // the fields that all of them name
	err     error     // of the last one
}

// isFull reports whether the limit is reached, so that the run is stopping.
func (s *streak) isFull() bool { return s.limit > 0 && len(s.entries) >= s.limit }

// add adds a rejection. It returns the entries to record, and an error if the run is to stop.
func (s *streak) add(e Entry, err error) (record []Entry, stop error) {
	switch {
	case s.limit < 0:
		return []Entry{e}, nil
	case s.isFull():
		return postponed(e), nil
	}
	common := e.Fields
	if len(s.entries) > 0 {
		common = commonFields(s.common, e.Fields)
		isAlike := len(common) > 0 || len(s.common)+len(e.Fields) == 0 && s.entries[0].StatusCode == e.StatusCode
		if !isAlike {
			record, common = s.end(), e.Fields
		}
	}
	if s.proven = s.proven || len(e.Fields) > 0; s.proven && len(e.Fields) == 0 {
		return append(record, e), nil
	}
	s.entries, s.common, s.err = append(s.entries, e), common, err
	if e.Step == StepRejected {
		record = append(record, postponed(e)...)
	}
	if s.isFull() {
		stop = s.stopError()
	}
	return record, stop
}

// end ends the streak, because the service has shown that it reads the records. It returns the
// entries that were held back.
func (s *streak) end() (record []Entry) {
	if s.isFull() {
		return nil
	}
	record, s.entries, s.proven = s.entries, nil, true
	return record
}

// finish ends the streak at the end of a pass. It returns the entries that were held back: as
// rejected if they name a field, or if the whole source was sent and the status can be due to a
// record. rightURL is true if earlier orders show that the base URL is right.
func (s *streak) finish(sourceDone, rightURL bool) (record []Entry, err error) {
	if len(s.entries) == 0 {
		return nil, nil
	}
	record = s.entries
	switch {
	case s.isFull(), len(s.common) == 0 && !sourceDone:
		record = postponed(record...)
	case len(s.common) == 0 && record[0].StatusCode == http.StatusNotFound && !rightURL:
		record, err = postponed(record...), s.stopError()
	}
	s.entries = nil
	return record, err
}

// postponed returns the entries as postponed ones.
func postponed(entries ...Entry) []Entry {
	entries = slices.Clone(entries)
	for i := range entries {
		entries[i].Step = StepPostponed
	}
	return entries
}

// stopError is the error of a run that ends with the streak.
func (s *streak) stopError() error {
	if len(s.common) > 0 {
		return fmt.Errorf("bulk: the last %d rejected records were all rejected for the same field, %s (%s), and none of them is recorded as rejected: "+
			"correct the field in the source; if each record is wrong by itself, see Options.RejectionLimit: %w",
			len(s.entries), s.common[0].Path, s.common[0].Reason, s.err)
	}
	return fmt.Errorf("bulk: every record so far (%d) was rejected with status %d and no field errors, and none is recorded as rejected: "+
		"check the base URL and whether the team may import orders; if the orders may exist already, start the run again with the same journal and Options.Reconcile; "+
		"if each record is wrong, see Options.RejectionLimit: %w", len(s.entries), s.entries[0].StatusCode, s.err)
}

var elementNumber = regexp.MustCompile(`\.\d+`)

// commonFields returns the problems in a whose field and type b has too, regardless of the numbers
// of list elements.
func commonFields(a, b []Problem) (common []Problem) {
	for _, p := range a {
		path := elementNumber.ReplaceAllString(p.Path, "")
		if slices.ContainsFunc(b, func(q Problem) bool {
			return q.Reason == p.Reason && elementNumber.ReplaceAllString(q.Path, "") == path
		}) {
			common = append(common, p)
		}
	}
	return common
}
