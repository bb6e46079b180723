// The client-side rate limit: a token bucket with a queue.

package transport

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// ErrRateLimit reports a request that would have had to wait until after the deadline of its
// context.
var ErrRateLimit = errors.New("the rate limit leaves no time before the deadline")

// rateLimiter is implemented by *[limiter]. It is an interface, so that a program without a rate
// limit does not link the limiter.
type rateLimiter interface {
	wait(context.Context) error
	isTooLate(context.Context, time.Duration) bool
	pause(time.Duration)
}

// limiter is a token bucket with a queue: requests are sent in the order in which they asked. The
// state of the bucket is the time at which it will be full (GCRA), so that nothing has to fill it.
// It has no goroutine, and a timer only while requests wait.
type limiter struct {
	interval time.Duration // between requests
	slack    time.Duration // by how much requests may be early: that of the burst

	mu     sync.Mutex
	full   time.Time // when the bucket is full
	paused time.Time // nothing is sent before
	queue  []*waiter
	timer  *time.Timer // admits the first waiter; nil before the first wait
}

// waiter is a request in the queue.
type waiter struct {
	deadline time.Time  // zero for none
	ready    chan error // receives nil, or ErrRateLimit
}

func newLimiter(perSecond float64, burst int) *limiter {
	interval := max(1, time.Duration(float64(time.Second)/perSecond))
	return &limiter{interval: interval, slack: time.Duration(burst-1) * interval}
}

// wait returns when the next request may be sent. It returns ErrRateLimit at once if that is not
// before the deadline of ctx, and the error of ctx if it ends.
func (l *limiter) wait(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &waiter{}
	w.deadline, _ = ctx.Deadline()
	l.mu.Lock()
	now := time.Now()
	at := l.slot(now, len(l.queue))
	if len(l.queue) == 0 && !at.After(now) {
		l.take(now)
		l.mu.Unlock()
		return nil
	}
	if w.isTooLate(at) {
		l.mu.Unlock()
		return ErrRateLimit
	}
	w.ready = make(chan error, 1)
	l.queue = append(l.queue, w)
	if len(l.queue) == 1 {
		l.reschedule()
	}
	l.mu.Unlock()
	select {
	case err := <-w.ready:
		return err
	case <-ctx.Done():
		l.leave(w)
		return ctx.Err()
	}
}

// isTooLate reports whether a request that asks after d would have to wait until after the deadline
// of ctx.
func (l *limiter) isTooLate(ctx context.Context, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	if !ok {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.slot(time.Now().Add(d), len(l.queue)).Before(deadline)
}

func (w *waiter) isTooLate(at time.Time) bool { return !w.deadline.IsZero() && !at.Before(w.deadline) }

// slot returns when the request with n others before it may be sent.
func (l *limiter) slot(now time.Time, n int) time.Time {
	first := later(now, l.paused)
	return later(first, later(l.full, first).Add(time.Duration(n)*l.interval-l.slack))
}

// take takes a token.
func (l *limiter) take(now time.Time) { l.full = later(l.full, now).Add(l.interval) }

// admit lets those waiters go whose time has come. It may be called early.
func (l *limiter) admit() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for len(l.queue) > 0 && !l.slot(now, 0).After(now) {
		l.take(now)
		l.queue[0].ready <- nil
		l.queue = l.queue[1:]
	}
	l.reschedule()
}

// leave removes a waiter whose context has ended.
func (l *limiter) leave(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.queue, w); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
		l.reschedule()
	}
}

// reschedule sets the timer for the first waiter, if there is one.
func (l *limiter) reschedule() {
	if len(l.queue) == 0 {
		if l.queue = nil; l.timer != nil {
			l.timer.Stop()
		}
		return
	}
	now := time.Now()
	wait := l.slot(now, 0).Sub(now)
	if l.timer == nil {
		l.timer = time.AfterFunc(wait, l.admit)
		return
	}
	l.timer.Reset(wait)
}

// pause keeps all requests waiting for d, and those that cannot wait so long from waiting at all.
// After it the bucket is empty: the service has just reported too many requests.
func (l *limiter) pause(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.paused = later(l.paused, now.Add(d))
	l.full = later(l.full, l.paused.Add(l.slack))
	kept := l.queue[:0]
	for _, w := range l.queue {
		if w.isTooLate(l.slot(now, len(kept))) {
			w.ready <- ErrRateLimit
		} else {
			kept = append(kept, w)
		}
	}
	clear(l.queue[len(kept):])
	l.queue = kept
	l.reschedule()
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
