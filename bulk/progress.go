package bulk

import "time"

// Progress is the progress of a run.
type Progress struct {
	Phase   Phase   // the current stage
	Records int64   // in the source; during PhaseChecking, the records read so far
	Done    int64   // records with nothing left to do
	Report  Report  // the current counts
	Rate    float64 // recent records per second; 0 if unknown
	// Left estimates the time until the import is finished at this rate, or until PhaseSettling
	// ends. It is 0 if unknown.
	Left time.Duration
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
	r.mu.Lock()
	p := Progress{Phase: r.phase, Records: r.records, Report: r.report()}
	settledAt := r.settledAt
	r.mu.Unlock()
	p.Done = p.Records - p.Report.Pending - p.Report.Unknown
	now := time.Now()
	rate := m.rate(p.Phase, measurement{now, p.Done})
	switch p.Phase {
	case PhaseImporting:
		p.Rate = rate
		if left := float64(p.Records-p.Done) / rate; rate > 0 && left < 1e9 {
			p.Left = time.Duration(left * float64(time.Second))
		}
	case PhaseSettling:
		p.Left = max(0, settledAt.Sub(now))
	case PhaseChecking, PhaseListing: // have no end that is known
	}
	return p
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
