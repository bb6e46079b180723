// The progress of a run.

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
	counts, lastUnknown := r.writer.counts(), r.writer.sinceUnknown()
	p := r.reporter.progress(m, now, counts, lastUnknown.Add(r.opts.Settle))
	switch p.Phase {
	case PhaseImporting:
		p.Waiting = r.sender.pacer.waiting(now)
	case PhaseListing:
		p.Waiting = r.resolver.pacer.waiting(now)
	case PhaseChecking, PhaseSettling:
	}
	return p
}

// progress returns the progress, apart from what requests wait for. Records with an unknown outcome
// can be looked up at settledAt.
func (r *reporter) progress(m *meter, now time.Time, counts [categories]int64, settledAt time.Time) Progress {
	p := Progress{Report: r.report(counts)}
	r.mu.Lock()
	defer r.mu.Unlock()
	p.Phase, p.Records = r.phase, p.Report.Records
	p.Done = p.Records - p.Report.Pending - p.Report.Unknown
	completed := r.completed.Load()
	listing := 2 * time.Duration(r.listTook.Load())
	switch p.Phase {
	case PhaseChecking:
		p.Rate = m.rate(p.Phase, measurement{now, p.Records})
	case PhaseImporting:
		inProgress := r.queued.Load() - completed
		toSend := p.Report.Pending + inProgress - r.existingLeft.Load()
		p.Rate = m.rate(p.Phase, measurement{now, completed})
		p.Left = timeFor(toSend, p.Rate)
		p.LeftInTotal = p.Left
		if p.Report.Unknown > inProgress && (p.Left > 0 || toSend == 0) {
			p.LeftInTotal = max(p.Left, settledAt.Sub(now), 0) + listing
		}
	case PhaseSettling:
		p.Left = max(0, r.settledAt.Sub(now))
		p.LeftInTotal = p.Left + listing
		p.Waiting = fmt.Sprintf("the orders of %d records that may have been sent", r.settling)
	case PhaseListing:
		p.Listed, p.Orders = r.list.read, max(0, r.list.total)
		p.Rate = m.rate(p.Phase, measurement{now, r.listed.Load()})
		p.Left = timeFor(max(0, r.list.total-r.list.read)+int64(r.list.more)*r.list.total, p.Rate)
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
