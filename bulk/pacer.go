// The pace of imports, and the pause after failures.

package bulk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/jitter"
	"github.com/labhealth/labhealth-go/internal/warn"
)

// pacer applies the rate limit and the backoff to the requests of all workers. Imports and lists
// have their own.
type pacer struct {
	interval time.Duration // between requests
	outage   time.Duration // the longest sequence of failures
	workers  int

	logger   *slog.Logger
	warnings warn.Log

	mu           sync.Mutex
	last         error     // of the latest request; nil if it succeeded
	worked       bool      // a request succeeded
	nextAt       time.Time // when the rate allows the next request
	pausedUntil  time.Time
	probeUntil   time.Time // after a pause, when a second request may follow the first
	failingSince time.Time // the first of the consecutive failures
	failures     int       // consecutive ones
	pauses       int       // consecutive ones
}

const (
	minPause = 250 * time.Millisecond
	maxPause = 30 * time.Second
	maxBurst = 50 * time.Millisecond
)

// newPacer returns a pacer that more workers than 0 share.
func newPacer(opts *Options, workers int) *pacer {
	p := &pacer{outage: opts.Outage, workers: workers, logger: opts.Logger}
	if opts.Rate > 0 {
		p.interval = time.Duration(float64(time.Second) / opts.Rate)
	}
	return p
}

// wait waits until a request may be sent. It returns an error when ctx ends.
func (p *pacer) wait(ctx context.Context) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		delay := p.reserve()
		if delay <= 0 {
			return nil
		}
		if err := sleep(ctx, delay); err != nil {
			return err
		}
	}
}

// reserve allows a request now, or returns how long to wait before the next try.
func (p *pacer) reserve() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	at := p.pausedUntil
	for _, t := range []time.Time{p.nextAt, p.probeUntil} {
		if t.After(at) {
			at = t
		}
	}
	if at.After(now) {
		return at.Sub(now)
	}
	// Timers fire late, so a short delay is compensated.
	if earliest := now.Add(-max(p.interval, maxBurst)); p.nextAt.Before(earliest) {
		p.nextAt = earliest
	}
	p.nextAt = p.nextAt.Add(p.interval)
	if p.pauses > 0 {
		p.probeUntil = now.Add(minPause) // one request probes whether the service has recovered
	}
	return 0
}

// waiting returns why no request may be sent now, or "".
func (p *pacer) waiting(now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.pausedUntil.Sub(now)
	switch {
	case left <= 0:
		return ""
	case p.failures > 1:
		return fmt.Sprintf("the end of a pause in %v: the last %d requests failed", left.Round(time.Second), p.failures)
	}
	return fmt.Sprintf("the end of a pause in %v: the service asked for it", left.Round(time.Second))
}

// sleep waits for d. It returns an error when ctx ends.
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

// succeeded records that the service processed a request.
func (p *pacer) succeeded() {
	p.mu.Lock()
	p.failingSince, p.probeUntil, p.failures, p.pauses = time.Time{}, time.Time{}, 0, 0
	p.last, p.worked = nil, true
	p.mu.Unlock()
	p.warnings.Resolved(p.logger, requestsFail)
}

const requestsFail = "bulk: requests fail: the run goes on, and waits if all of them do"

// lastError returns the error of the latest request.
func (p *pacer) lastError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// isSetup reports whether a failure does not heal by waiting, if no request has succeeded.
func isSetup(err error) bool {
	setup := []labhealth.Failure{labhealth.FailureUnknownHost, labhealth.FailureCertificate, labhealth.FailureScheme}
	return slices.Contains(setup, labhealth.FailureOf(err))
}

// failed records a failed request that was sent at start. All workers pause if the service asks for
// it or has stopped responding. It returns an error if the run should stop.
func (p *pacer) failed(start time.Time, err error) error {
	var api *labhealth.APIError
	var pause time.Duration
	if errors.As(err, &api) {
		pause = api.RetryAfter
	}
	p.warnings.Warn(p.logger, requestsFail, warn.Cause(err))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last = err; !p.worked && isSetup(err) {
		return fmt.Errorf("bulk: no request has reached the service: %w", err)
	}
	now := time.Now()
	if p.failingSince.IsZero() {
		p.failingSince = now
	}
	p.failures++
	switch failing := now.Sub(p.failingSince); {
	case pause > p.outage:
		return fmt.Errorf("bulk: the service asks for a pause of %v: %w", pause, err)
	case failing > p.outage:
		return fmt.Errorf("bulk: every request has failed for %v: %w", failing.Round(time.Second), err)
	}
	// Single failures cause no pause, unless the service asks for one. Nor do requests sent before
	// the last pause.
	isOutage := errors.Is(err, labhealth.ErrRateLimited) || p.failures > p.workers
	if pause <= 0 && isOutage && !start.Before(p.pausedUntil) {
		backoff := min(maxPause, minPause<<min(p.pauses, 10))
		pause = 1 + jitter.Within(backoff)
		p.pauses++
	}
	if end := now.Add(pause); pause > 0 && end.After(p.pausedUntil) {
		p.pausedUntil = end
	}
	return nil
}
