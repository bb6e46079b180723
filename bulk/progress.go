package bulk

import (
	"fmt"
	"time"
)

// Progress is the progress of a run.
type Progress struct {
	Phase   Phase  // the current stage
	Records int64  // in the source; during PhaseChecking, the records read so far
	Done    int64  // records with nothing left to do
	Report  Report // the current counts; Unknown includes the imports in progress
	Listed  int64  // orders read in PhaseListing
	Orders  int64  // orders that the current list has; 0 if unknown

	// Rate is per second and over the last ten seconds: records read in PhaseChecking, records sent
	// in PhaseImporting, orders read in PhaseListing. It is 0 if unknown.
	Rate float64
	// Left estimates the time until the phase ends, and LeftInTotal until the run ends if no more
	// responses are lost. Both are 0 if unknown.
	Left, LeftInTotal time.Duration
	// Waiting is what the run is waiting for, such as "the orders of 3 records that may
	// have been sent". It is empty if the run is not waiting.
	Waiting string
}

// Phase is a stage of a run.
type Phase string

// The phases, in order. The last three repeat as long as records have an unknown outcome. A resumed
// run lists orders before it imports.
const (
	PhaseChecking  Phase = "checking"  // reading and validating the source
	PhaseImporting Phase = "importing" // sending
	PhaseSettling  Phase = "settling"  // waiting for the end of attempts with an unknown outcome
	PhaseListing   Phase = "listing"   // looking up their orders
)

// reportProgress calls Options.Progress twice a second, and once more when finished is closed.
func (r *run) reportProgress(m *meter, finished <-chan struct{}) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.opts.Progress(r.progress(m))
		case <-finished:
			r.opts.Progress(r.progress(m))
			return
		}
	}
}

func (r *run) progress(m *meter) Progress {
	now := time.Now()
	r.mu.Lock()
	p := Progress{Phase: r.phase, Records: r.records, Report: r.report()}
	inProgress := r.queued - r.completed
	toSend := p.Report.Pending + inProgress - r.existingLeft
	listed, list := r.listed, r.list
	untilSettled := max(0, r.settledAt.Sub(now))
	if r.phase != PhaseSettling {
		untilSettled = max(0, r.lastUnknown.Add(r.opts.Settle).Sub(now))
	}
	listing, settling, completed := 2*r.listTook, r.settling, r.completed
	r.mu.Unlock()
	p.Done = p.Records - p.Report.Pending - p.Report.Unknown
	switch p.Phase {
	case PhaseChecking:
		p.Rate = m.rate(p.Phase, measurement{now, p.Records})
	case PhaseImporting:
		p.Rate = m.rate(p.Phase, measurement{now, completed})
		p.Left = timeFor(toSend, p.Rate)
		p.LeftInTotal = p.Left
		if p.Report.Unknown > inProgress && (p.Left > 0 || toSend == 0) {
			p.LeftInTotal = max(p.Left, untilSettled) + listing
		}
		p.Waiting = r.importPacer.waiting(now)
	case PhaseSettling:
		p.Left = untilSettled
		p.LeftInTotal = p.Left + listing
		p.Waiting = fmt.Sprintf("the orders of %d records that may have been sent", settling)
	case PhaseListing:
		p.Rate = m.rate(p.Phase, measurement{now, listed})
		p.Listed, p.Orders = list.read, max(0, list.total)
		p.Left = timeFor(max(0, list.total-list.read)+int64(list.more)*list.total, p.Rate)
		p.Waiting = r.listPacer.waiting(now)
	}
	return p
}

// timeFor returns the time that n steps take at a rate; 0 if it is unknown.
func timeFor(n int64, rate float64) time.Duration {
	left := float64(n) / rate
	if rate <= 0 || left <= 0 || left > 1e9 {
		return 0
	}
	return time.Duration(left * float64(time.Second))
}

// listProgress is the progress of a list of orders.
type listProgress struct {
	read, total int64 // total is 0 or less if unknown
	more        int   // lists that follow it
}

// meter measures the rate over the last ten seconds of a phase.
type meter struct {
	phase        Phase
	measurements []measurement
}

type measurement struct {
	at   time.Time
	done int64
}

// rate adds a measurement and returns the records per second.
func (m *meter) rate(phase Phase, now measurement) float64 {
	if phase != m.phase {
		*m = meter{phase: phase}
	}
	if m.measurements = append(m.measurements, now); len(m.measurements) > 20 {
		m.measurements = m.measurements[1:]
	}
	first := m.measurements[0]
	if d := now.at.Sub(first.at).Seconds(); d > 0 {
		return float64(now.done-first.done) / d
	}
	return 0
}
