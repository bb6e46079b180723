package bulk

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/labhealth/labhealth-go"
)

// Report counts the records of a source by what became of them, in this run and the ones before. Each record counts once:
//
//	Records = Applied + Refused + Invalid + Duplicates + Changed + Unknown + Pending
type Report struct {
	Records    int64 // records in the source
	Applied    int64 // their orders exist
	Refused    int64 // the service refused them
	Invalid    int64 // not sent: unreadable, against the rules of the interface, or one of different records with one sample ID
	Duplicates int64 // not sent: equal to an earlier record of the source
	Changed    int64 // not sent: their orders exist, but were imported from a record that was different
	Unknown    int64 // they may have been applied, and it could not be found out; also if their row is invalid by now
	Pending    int64 // not applied and not refused: to be sent by the next run

	Before int64 // of Applied: by earlier runs
	Found  int64 // of Applied: the journal did not have the outcome, and a list of orders told this run that the order is there
	// Strays are records that the source no longer has, and of which neither the journal nor a list
	// of orders tells what became of them. They count nowhere else.
	Strays int64

	// Incomplete is true if the source was not read to its end: what stands behind counts nowhere.
	Incomplete bool

	Sent     int64         // how many requests this run has sent, tries of the same record included
	Duration time.Duration // of this run
}

// Done reports whether nothing is left to do: the source was read to its end, and another run would send nothing.
func (r *Report) Done() bool {
	return !r.Incomplete && r.Unknown == 0 && r.Pending == 0 && r.Strays == 0
}

// String gives the counts in one line.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d records: %d applied", r.Records, r.Applied)
	for _, c := range []struct {
		n    int64
		name string
	}{
		{r.Refused, "refused"}, {r.Invalid, "invalid"}, {r.Duplicates, "duplicates"}, {r.Changed, "changed since they were applied"},
		{r.Unknown, "unknown"}, {r.Pending, "pending"}, {r.Strays, "strays"},
	} {
		if c.n > 0 {
			fmt.Fprintf(&b, ", %d %s", c.n, c.name)
		}
	}
	if r.Incomplete {
		b.WriteString("; the source was not read to its end")
	}
	return b.String()
}

// Refusal is a line of the report's file: a record whose order does not exist, or may not. It holds
// the sample id, paths and reasons, and no other value. Printed or logged, it shows the outcome and
// the number of the record; encoded as JSON, it is complete.
type Refusal struct {
	// Outcome says why: "refused" by the service, "invalid" and not sent, "conflict" with another record of the same sample id and
	// not sent, "changed" since its order was imported and not sent, "unknown" if it may have been applied, or "pending" if the next
	// run has to send it.
	Outcome   string    `json:"outcome"`
	Record    int64     `json:"record,omitzero"`     // its number in the source, from 1
	Line      int       `json:"line,omitzero"`       // where it begins in its file, if it could not be read
	SampleID  string    `json:"sample_id,omitzero"`  // empty if it has none
	Status    int       `json:"status,omitzero"`     // the HTTP status of the service's refusal
	RequestID string    `json:"request_id,omitzero"` // the id under which the service knows the request
	Fields    []Problem `json:"fields,omitzero"`     // what is wrong; empty if the service named no members
}

// write adds a line to the file of refusals.
func (r *run) write(line Refusal) error {
	if r.opts.Refusals == nil {
		return nil
	}
	text, err := json.Marshal(line)
	if err == nil {
		_, err = r.opts.Refusals.Write(append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("bulk: the refusals cannot be written: %w", err)
	}
	return nil
}

// problems says what is wrong with a record, as far as that tells no value.
func problems(err error) []Problem {
	var list []Problem
	var local *labhealth.ValidationError
	var api *labhealth.APIError
	switch {
	case errors.As(err, &local):
		for _, f := range local.Fields {
			list = append(list, Problem{f.Path(), f.Msg})
		}
	case errors.As(err, &api):
		// Paths and codes come from the service, texts may quote the record.
		fields := api.Fields()
		for _, f := range fields[:min(len(fields), 20)] {
			path := make([]string, len(f.Loc))
			for i, l := range f.Loc {
				path[i] = plain(l)
			}
			list = append(list, Problem{strings.Join(path, "."), plain(f.Type)})
		}
	}
	return list
}

// rest writes what the journal knows of records that were refused or whose outcome is open.
func (r *run) rest() error {
	if r.opts.Refusals == nil {
		return nil
	}
	x := r.index
	var number uint32
	for e, err := range r.journal.Entries() {
		if err != nil {
			return err
		}
		number++
		s := x.states[x.key(e.SampleID)]
		if e.Step == StepBegin || s.entry != number {
			continue
		}
		outcome := ""
		switch {
		case s.unresolved():
			outcome = "unknown"
		case s.flags&seen == 0 || s.flags&(conflict|invalid) != 0:
		case s.step == refused:
			outcome = "refused"
		case s.step == absent || s.step == postponed:
			outcome = "pending"
		}
		if outcome == "" {
			continue
		}
		line := Refusal{Outcome: outcome, Record: e.Record, SampleID: e.SampleID, Status: e.Status, RequestID: e.RequestID, Fields: e.Fields}
		if err := r.write(line); err != nil {
			return err
		}
	}
	return nil
}

// Progress is how far a run is.
type Progress struct {
	Phase   Phase         // what the run is doing
	Records int64         // in the source; while it is being checked, those read so far
	Done    int64         // records of which nothing is left to do
	Report  Report        // the counts so far
	Rate    float64       // records per second of late; 0 if that cannot be told yet
	Left    time.Duration // until the import is through at that rate, or until the outcome of unknown attempts can be looked for; 0 if that cannot be told
}

// Phase is what a run is doing.
type Phase string

// The phases, in their order. The last two, and the import, are repeated as long as there are
// records whose outcome is unknown. A run that goes on with an earlier journal lists before it
// imports.
const (
	PhaseChecking  Phase = "checking"  // reading the source and validating it
	PhaseImporting Phase = "importing" // sending
	PhaseSettling  Phase = "settling"  // waiting until attempts whose outcome is unknown must have come to an end
	PhaseListing   Phase = "listing"   // looking for their orders
)

// report makes the counts of the moment. The caller holds r.mu.
func (r *run) report() Report {
	c := &r.index.counts
	return Report{
		Records: r.records, Applied: c[bApplied], Refused: c[bRefused], Invalid: c[bInvalid] + r.extraInvalid, Duplicates: r.duplicates,
		Changed: c[bChanged], Unknown: c[bUnknown], Pending: c[bPending],
		Before: r.before, Found: r.found, Sent: r.sent, Duration: time.Since(r.started),
	}
}

// show calls the progress function twice a second, until stop is closed, and once more then.
func (r *run) show(m *meter, stop <-chan struct{}) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.opts.Progress(r.progress(m))
		case <-stop:
			r.opts.Progress(r.progress(m))
			return
		}
	}
}

// meter remembers the last ten seconds or so of a phase.
type meter struct {
	phase   Phase
	samples []sample
}

type sample struct {
	at   time.Time
	done int64
}

// rate adds a sample and returns what is done in a second.
func (m *meter) rate(phase Phase, now sample) float64 {
	if phase != m.phase {
		*m = meter{phase: phase}
	}
	if m.samples = append(m.samples, now); len(m.samples) > 20 {
		m.samples = m.samples[1:]
	}
	first := m.samples[0]
	if d := now.at.Sub(first.at).Seconds(); d > 0 {
		return float64(now.done-first.done) / d
	}
	return 0
}

func (r *run) progress(m *meter) Progress {
	r.mu.Lock()
	p := Progress{Phase: r.phase, Records: r.records, Report: r.report()}
	until := r.until
	r.mu.Unlock()
	p.Done = p.Records - p.Report.Pending - p.Report.Unknown
	now := time.Now()
	rate := m.rate(p.Phase, sample{now, p.Done})
	switch p.Phase {
	case PhaseChecking, PhaseListing: // nobody knows how long
	case PhaseImporting:
		p.Rate = rate
		if left := float64(p.Records-p.Done) / rate; rate > 0 && left < 1e9 {
			p.Left = time.Duration(left * float64(time.Second))
		}
	case PhaseSettling:
		p.Left = max(0, until.Sub(now))
	}
	return p
}
