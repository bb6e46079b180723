package labhealth

import (
	"context"
	"runtime"
	"time"

	"github.com/labhealth/labhealth-go/internal/pagetime"
	"github.com/labhealth/labhealth-go/internal/transport"
)

// WithPrefetch makes an iterator over pages, such as that of [UsersService.All], request the next
// page while the loop processes the elements of a page. It is a validation error for a call that is
// not an iterator over pages. Of package webhooks, ReadSamples and ReadOrders accept it, but not
// ReadSummaries and ReadAll.
//
// The iterator returns the same elements and errors in the same order, each error after the
// elements of the pages before it. Each loop has at most one request in flight, and at most two
// pages in memory: choose a page size for that. A page that is requested ahead counts toward
// [WithRateLimit], before the calls in the loop. The last page requests no further one. A loop that
// ends early, even by a panic, has requested up to one page more than it would otherwise: the
// request is canceled, and the iterator waits until it is over.
//
// Pages after the first are requested in another goroutine. The observers of the client are called
// there while the loop runs, so they must not wait for it, and need a lock for what the loop uses
// too. What the parameters point to must not be changed. A panic of an observer continues in the
// goroutine of the loop. [WithResponse] is filled before the first element of its page, as without
// the option.
//
// Once its context is done, the iterator returns no element of a further page, even if it has
// already been received, but the error of that page. Its outcome is that of the request, which may
// have been sent ahead: [OutcomeNotSent] only if it was not.
func WithPrefetch() CallOption {
	return func(c *callConfig) error {
		if c.page == nil {
			return invalid("is for iterators over pages, such as Users.All", "WithPrefetch")
		}
		c.page.prefetch = true
		return nil
	}
}

// pageOptions connects an iterator with the options of the call that requests a page.
type pageOptions struct {
	prefetch bool // WithPrefetch was given

	ahead    bool      // the loop still processes the page before
	target   *Response // of WithResponse, if the page is requested ahead; nil for none
	response Response  // what target receives when the loop is at the page
	attempts int       // of the call
}

// apply is the first option of each call for a page.
func (o *pageOptions) apply(c *callConfig) error {
	c.page = o
	return nil
}

// fetcher requests the page at a cursor. The options are those of the call.
type fetcher[C comparable] func(ctx context.Context, cursor C, opts []CallOption) (page[C], error)

// pageReader requests the pages of one iteration, in order and one at a time.
type pageReader[C comparable] struct {
	ctx   context.Context
	opts  []CallOption
	op    string
	fetch fetcher[C]

	prefetches bool          // see WithPrefetch; known after the first page
	ahead      *aheadPage[C] // the page that was requested ahead, nil for none
}

// read returns the page at cursor, which is the one that was requested ahead, if any.
func (r *pageReader[C]) read(cursor C) (page[C], error) {
	if r.ahead != nil {
		return r.take()
	}
	options, requested := pageOptions{}, time.Now()
	p, err := r.fetch(r.ctx, cursor, options.before(r.opts))
	r.prefetches = options.prefetch
	pagetime.Set(r.ctx, requested)
	return p, err
}

// before returns the options of a call.
func (o *pageOptions) before(opts []CallOption) []CallOption {
	return append([]CallOption{o.apply}, opts...)
}

// request requests the page at cursor in another goroutine.
func (r *pageReader[C]) request(cursor C) {
	ctx, cancel := context.WithCancel(r.ctx)
	r.ahead = &aheadPage[C]{cancel: cancel, done: make(chan struct{}), requested: time.Now()}
	r.ahead.options.ahead = true
	go r.ahead.fetch(ctx, cursor, r.ahead.options.before(r.opts), r.fetch)
}

// take waits for the page that was requested ahead, and returns it. If the context is done, it
// returns an error, even if the page was received.
func (r *pageReader[C]) take() (page[C], error) {
	ahead := r.ahead
	r.ahead = nil
	ahead.wait()
	if ahead.options.target != nil {
		*ahead.options.target = ahead.options.response
	}
	if ended := r.ctx.Err(); ended != nil && ahead.err == nil {
		return page[C]{}, unusedPage(r.op, ahead.options.attempts, ended)
	}
	pagetime.Set(r.ctx, ahead.requested)
	return ahead.page, ahead.err
}

// unusedPage is the error of a page that was received, and is not used because the context ended.
func unusedPage(op string, attempts int, ended error) error {
	e := &TransportError{Op: op, Attempts: attempts, outcome: OutcomeApplied, causes: &[]error{ended}}
	e.failure = describe(ended, transport.Fault{Context: ended})
	e.failure.text += " after the response was received"
	return e
}

// stop cancels the request of the page ahead, if any, and waits until it is over.
func (r *pageReader[C]) stop() {
	if ahead := r.ahead; ahead != nil {
		r.ahead = nil
		ahead.cancel()
		ahead.wait()
	}
}

// aheadPage is a page that is requested while the loop processes the one before.
type aheadPage[C comparable] struct {
	cancel    context.CancelFunc
	options   pageOptions
	requested time.Time // just before the request

	done     chan struct{} // closed when the fields below are set
	page     page[C]
	err      error
	returned bool // neither a panic nor runtime.Goexit ended the call
	panicked any
}

// fetch sets the page or the error. It runs in a goroutine of its own.
func (a *aheadPage[C]) fetch(ctx context.Context, cursor C, opts []CallOption, fetch fetcher[C]) {
	defer close(a.done)
	defer func() {
		if !a.returned {
			a.panicked = recover()
		}
	}()
	a.page, a.err = fetch(ctx, cursor, opts)
	a.returned = true
}

// wait returns when the call is over, and continues a panic or [runtime.Goexit] of an observer or
// of the transport in the goroutine of the loop.
func (a *aheadPage[C]) wait() {
	<-a.done
	a.cancel()
	switch {
	case a.panicked != nil:
		panic(a.panicked)
	case !a.returned:
		runtime.Goexit()
	}
}
