package bulk

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/labhealth/labhealth-go"
)

// job is a record whose intent is in the journal.
type job struct {
	record int64
	body   labhealth.ImportOrderBody
}

// queue holds jobs for the workers. It begins with a few for each worker and grows when they had to wait for a group of intents to
// be written: so the journal keeps up with a fast service, and few records are open at a kill with a slow one.
type queue struct {
	mu      sync.Mutex
	changed *sync.Cond
	jobs    []job
	want    int
	used    bool
	closed  bool
}

const mostAhead = 256

func newQueue(workers int) *queue {
	q := &queue{want: 4 * workers}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// room waits until jobs are wanted and says how many.
func (q *queue) room() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.jobs) > q.want/2 { // so that a group is worth its sync
		q.changed.Wait()
	}
	return q.want - len(q.jobs)
}

func (q *queue) put(jobs []job) {
	q.mu.Lock()
	if len(q.jobs) == 0 && q.used {
		q.want = max(q.want, min(4*q.want, mostAhead))
	}
	q.used = true
	q.jobs = append(q.jobs, jobs...)
	q.mu.Unlock()
	q.changed.Broadcast()
}

func (q *queue) take() (j job, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.jobs) == 0 {
		if q.closed {
			return job{}, false
		}
		q.changed.Wait()
	}
	j = q.jobs[0]
	q.jobs[0] = job{}
	q.jobs = q.jobs[1:]
	if len(q.jobs) <= q.want/2 {
		q.changed.Broadcast()
	}
	return j, true
}

func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.changed.Broadcast()
}

// pacer decides when the next request may leave, for all workers at once. Imports have one and lists have another.
type pacer struct {
	interval time.Duration // between requests
	outage   time.Duration // how long there may be nothing but failures
	workers  int

	mu       sync.Mutex
	next     time.Time // when the rate allows another request
	until    time.Time // when the pause is over
	probe    time.Time // when another request may follow the first one after a pause
	since    time.Time // of the first failure in a row
	failures int       // in a row
	level    int       // pauses in a row
}

const (
	leastPause = 250 * time.Millisecond
	mostPause  = 30 * time.Second
	mostBehind = 50 * time.Millisecond
)

// wait returns when a request may leave. It fails when ctx ends.
func (p *pacer) wait(ctx context.Context) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p.mu.Lock()
		now := time.Now()
		at := p.until
		for _, t := range []time.Time{p.next, p.probe} {
			if t.After(at) {
				at = t
			}
		}
		if !at.After(now) {
			// Timers are late; a little of what was missed is made up for.
			if behind := now.Add(-max(p.interval, mostBehind)); p.next.Before(behind) {
				p.next = behind
			}
			p.next = p.next.Add(p.interval)
			if p.level > 0 {
				p.probe = now.Add(leastPause) // one goes first and sees whether the service is back
			}
			p.mu.Unlock()
			return nil
		}
		p.mu.Unlock()
		if err := sleep(ctx, at.Sub(now)); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// answered notes that the service decided about a request.
func (p *pacer) answered() {
	p.mu.Lock()
	p.since, p.probe, p.failures, p.level = time.Time{}, time.Time{}, 0, 0
	p.mu.Unlock()
}

// failed notes a failure of a request that left at began, and makes all workers wait if the service asked for that, or has
// stopped answering. It returns an error if it makes no sense to go on.
func (p *pacer) failed(began time.Time, err error) error {
	var api *labhealth.APIError
	var after time.Duration
	if errors.As(err, &api) {
		after = api.RetryAfter
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.since.IsZero() {
		p.since = now
	}
	p.failures++
	switch {
	case after > p.outage:
		return fmt.Errorf("bulk: the service asks to come back in %v: %w", after, err)
	case now.Sub(p.since) > p.outage:
		return fmt.Errorf("bulk: for %v the service has done nothing but fail: %w", now.Sub(p.since).Round(time.Second), err)
	}
	// Single failures among answers are no reason to wait, unless the service asks for it.
	if after <= 0 && (errors.Is(err, labhealth.ErrRateLimited) || p.failures > p.workers) && !began.Before(p.until) {
		after = 1 + time.Duration(rand.Int64N(int64(min(mostPause, leastPause<<min(p.level, 10)))))
		p.level++
	}
	if end := now.Add(after); after > 0 && end.After(p.until) {
		p.until = end
	}
	return nil
}

// fatal reports whether an answer would be the same for every record.
func fatal(err error) bool {
	var redirect *labhealth.RedirectError
	var api *labhealth.APIError
	return errors.Is(err, labhealth.ErrUnauthorized) || errors.Is(err, labhealth.ErrForbidden) || errors.As(err, &redirect) ||
		errors.As(err, &api) && api.StatusCode/100 == 3
}

// send sends a record until it is known what became of it, or known that this is not known.
func (r *run) send(j job) {
	e := Entry{SampleID: j.body.SampleID, Record: j.record}
	for {
		if r.pace.wait(r.ctx) != nil {
			e.Step = StepPostponed
			break
		}
		began := time.Now()
		// What has begun is finished, also when the run is to end: otherwise its outcome would be unknown.
		resp, err := r.client.Orders.Import(context.WithoutCancel(r.ctx), j.body, labhealth.WithoutValidation(),
			labhealth.WithCallRetry(labhealth.RetryPolicy{MaxAttempts: 1, WriteTimeout: r.opts.Timeout}))
		r.mu.Lock()
		r.sent++
		r.mu.Unlock()
		if err != nil && r.opts.OnError != nil {
			r.opts.OnError(j.body.SampleID, err)
		}
		if e.Step = r.judge(j, err); e.Step == "" {
			if err := r.pace.failed(began, err); err != nil {
				r.stop(err)
			}
			continue
		}
		var api *labhealth.APIError
		switch {
		case e.Step == StepUnknown:
			if err := r.pace.failed(began, err); err != nil {
				r.stop(err)
			}
		case err == nil:
			e.OrderID = resp.Order.ID
		case errors.As(err, &api):
			e.Status, e.RequestID, e.Fields = api.StatusCode, api.RequestID, problems(err)
		default:
			e.Fields = problems(err)
		}
		if e.Step != StepUnknown {
			r.pace.answered()
		}
		if fatal(err) {
			r.stop(err)
		}
		r.weigh(e, err)
		return
	}
	r.record(e)
}

// weigh records what an attempt came to, or holds it back: as long as nothing shows that the
// service reads the records, a rejection may be due to something else.
func (r *run) weigh(e Entry, err error) {
	rejected := e.Status != 0 && (e.Step == StepRefused || e.Step == StepDisputed)
	var free []Entry
	r.mu.Lock()
	switch {
	case r.proven:
	case e.Step == StepApplied, rejected && (len(e.Fields) > 0 || len(r.held) > 0 && r.held[0].Status != e.Status):
		free, r.held, r.proven = r.held, nil, true
	case rejected:
		r.held, r.rejection = append(r.held, e), err
		if len(r.held) == r.opts.RejectionLimit {
			r.stop(allRejected(r.held, err))
		}
		r.mu.Unlock()
		return
	}
	r.mu.Unlock()
	for _, h := range free {
		r.record(h)
	}
	r.record(e)
}

// release records the rejections that are still held back when a wave is over: as such if the
// source was sent to its end and the status is about records, otherwise as postponed.
func (r *run) release(complete bool) error {
	r.mu.Lock()
	held := r.held
	r.held = nil
	r.mu.Unlock()
	if len(held) == 0 {
		return nil
	}
	// These two say nothing about a record: they are what a wrong base URL gives.
	nowhere := held[0].Status == http.StatusNotFound || held[0].Status == http.StatusMethodNotAllowed
	for _, e := range held {
		if nowhere || !complete {
			e.Step = StepPostponed
		}
		r.record(e)
	}
	if nowhere && complete {
		return allRejected(held, r.rejection)
	}
	return nil
}

// allRejected is the error of a run that got nothing but rejections.
func allRejected(held []Entry, last error) error {
	return fmt.Errorf("bulk: every record so far (%d) was rejected with status %d and no field errors, and none is recorded as rejected: "+
		"check the base URL and whether the team may import orders; if the orders may exist already, start the run again with the same journal; "+
		"if each record is wrong, see Options.RejectionLimit: %w", len(held), held[0].Status, last)
}

// judge returns the step that an attempt came to, nothing if the same record may be sent again at once.
func (r *run) judge(j job, err error) Step {
	var local *labhealth.ValidationError
	switch labhealth.OutcomeOf(err) {
	case labhealth.OutcomeApplied:
		return StepApplied
	case labhealth.OutcomeNotSent:
		if errors.As(err, &local) {
			return StepRefused
		}
		return ""
	case labhealth.OutcomeRejected:
		switch {
		case errors.Is(err, labhealth.ErrRateLimited):
			return ""
		case fatal(err):
			return StepPostponed
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.index.states[r.index.key(j.body.SampleID)].flags&doubted != 0 {
			return StepDisputed
		}
		return StepRefused
	default:
		return StepUnknown
	}
}
