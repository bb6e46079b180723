package main

import (
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// batchSize is the number of deliveries in a transaction, which the workers of a process share.
type batchSize struct {
	most int // -batch

	mu      sync.Mutex
	current int
	changed time.Time
}

func newBatchSize(most int) *batchSize { return &batchSize{most: most, current: most} }

func (s *batchSize) limit() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// shrink makes the size at most half of n, the size of a batch that ran out of time.
func (s *batchSize) shrink(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current, s.changed = min(s.current, max(1, n/2)), time.Now()
}

// grow doubles the size after a batch of n deliveries that needed little of its time. A smaller
// batch than there can be, because nothing more waits, shows less about a full one: then the size
// doubles only if it has been the same for pause.
func (s *batchSize) grow(n int, pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n >= s.current || time.Since(s.changed) >= pause {
		s.current, s.changed = min(s.most, 2*s.current), time.Now()
	}
}

// progress records since when workers have something to do and complete nothing.
type progress struct {
	mu      sync.Mutex
	held    int       // batches that workers have
	since   time.Time // zero if there is nothing to do
	cause   error     // of the last failure after since
	applied time.Time // when a batch was applied last
}

// start is called when a worker has taken a batch, and stop when it has finished.
func (p *progress) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held++
	if p.since.IsZero() {
		p.since = time.Now()
	}
}

func (p *progress) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held--
	if p.held == 0 && p.cause == nil {
		p.since = time.Time{}
	}
}

// idle is called when a worker has found nothing to do.
func (p *progress) idle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == 0 {
		p.since, p.cause = time.Time{}, nil
	}
}

// failed is called when a batch was not applied.
func (p *progress) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cause = err
}

// completed is called when deliveries were applied, or became dead letters.
func (p *progress) completed(applied bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since, p.cause = time.Now(), nil
	if applied {
		p.applied = p.since
	}
}

func (p *progress) appliedSince(t time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.applied.After(t)
}

// stalled returns what is wrong if there has been something to do for longer than most, and nothing
// was completed. It is empty otherwise.
func (p *progress) stalled(most time.Duration) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() || time.Since(p.since) <= most {
		return ""
	}
	text := fmt.Sprintf("nothing was applied for %s although deliveries wait", time.Since(p.since).Round(time.Second))
	if p.cause != nil {
		text += ": " + p.cause.Error() // errors of the store quote no data
	}
	return text
}

// drain records whether events leave the stream, by what those see who ask for it. A worker that
// finds nothing to do cannot tell a stream without events from a broker that hands none out.
type drain struct {
	mu      sync.Mutex
	removed uint64    // events that have left the stream
	since   time.Time // when the number changed, or nothing waited
}

// stalled returns what is wrong if events wait and none has left the stream for longer than most.
// It is empty otherwise.
func (d *drain) stalled(waiting, removed uint64, most time.Duration) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.since.IsZero() || waiting == 0 || removed != d.removed {
		d.removed, d.since = removed, time.Now()
	}
	if time.Since(d.since) <= most {
		return ""
	}
	return fmt.Sprintf("%d events wait, and no worker has applied one for %s", waiting, time.Since(d.since).Round(time.Second))
}

// quietTime is the interval at which a repeated record is logged.
const quietTime = 10 * time.Second

// quiet is a log that an outage does not flood.
type quiet struct {
	log *slog.Logger

	mu      sync.Mutex
	records map[string]*record
}

type record struct {
	written time.Time
	omitted int // since then
}

func newQuiet(log *slog.Logger) *quiet { return &quiet{log: log, records: map[string]*record{}} }

// warn logs a problem with its cause, which is one of a few phrases. If the same was logged just
// now, it is counted, and the next record has the number.
func (q *quiet) warn(problem, cause string, args ...any) {
	q.mu.Lock()
	key := problem + "\x00" + cause
	r := q.records[key]
	if r == nil {
		r = &record{}
		q.records[key] = r
	}
	if time.Since(r.written) < quietTime {
		r.omitted++
		q.mu.Unlock()
		return
	}
	omitted := r.omitted
	r.written, r.omitted = time.Now(), 0
	q.mu.Unlock()
	q.log.Warn(problem, append(args, "cause", cause, "omitted", omitted)...)
}
