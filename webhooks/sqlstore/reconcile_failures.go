// Tells what fails alone from an unavailable service.

package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/transport"
	"github.com/labhealth/labhealth-go/webhooks"
)

// retryTime is the wait after which something is read again that could not be read.
const retryTime = 2 * time.Minute

// verdict is what the error of a request, or of storing its response, says.
type verdict int

const (
	responded   verdict = iota // no error
	failedAlone                // the service, or the database, rejects this one
	unclear                    // the service may be unavailable, or fail for this one only
	stops                      // the database is unavailable, or the context is done
)

func verdictOf(ctx context.Context, err error) verdict {
	if err == nil {
		return responded
	}
	if ctx.Err() != nil {
		return stops
	}
	if e, ok := errors.AsType[*Error](err); ok {
		if e.Rejected {
			return failedAlone
		}
		return stops
	}
	if e, ok := errors.AsType[*labhealth.APIError](err); ok {
		switch e.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusTooManyRequests:
			return unclear
		}
		if e.StatusCode < http.StatusInternalServerError && e.FromService() {
			return failedAlone
		}
		return unclear
	}
	if errors.Is(err, webhooks.ErrPermanent) || errors.Is(err, labhealth.ErrValidation) {
		return failedAlone
	}
	return unclear
}

// isMissing reports whether the service says that it does not have an order, a user or results. A
// proxy that says so knows nothing of them.
func isMissing(err error) bool {
	e, ok := errors.AsType[*labhealth.APIError](err)
	return ok && (e.StatusCode == http.StatusNotFound || e.StatusCode == http.StatusGone) && e.FromService()
}

// responds reports whether the service responds to requests for other orders or users. It asks for
// two lists of one: an order or user can also make a list fail.
func (p *pass) responds(ctx context.Context) bool {
	for n := range 2 {
		var err error
		if p.ofUsers {
			_, err = p.Client.Users.List(ctx, labhealth.ListUsersParams{Offset: n, Limit: 1})
		} else {
			_, err = p.Client.Orders.List(ctx, labhealth.ListOrdersParams{Page: n + 1, Size: 1})
		}
		if verdictOf(ctx, err) <= failedAlone {
			return true
		}
	}
	return false
}

// failsAlone reports whether a request failed although the service responds to others.
func (p *pass) failsAlone(ctx context.Context, err error) bool {
	v := verdictOf(ctx, err)
	return v == failedAlone || v == unclear && p.responds(ctx)
}

// elements are orders or users of which each is read on its own.
type elements struct {
	n    int
	read func(p *pass, ctx context.Context, i int) error

	mu     sync.Mutex
	next   int
	failed []int // those that failed although the service responds
	cause  error // why the latest of these did
	err    error // why the rest is not read
}

// each calls read for n elements, several at the same time unless the pass has a rate, each with
// its own counts. It returns and counts those that failed.
//
// An element has failed alone if the service responds to a later request, of another element or of
// a list. Otherwise the service is unavailable: each returns the error, and nobody knows whether
// the elements that failed since it responded last would fail again.
func (p *pass) each(ctx context.Context, n int, read func(p *pass, ctx context.Context, i int) error) (failed []int, err error) {
	e := &elements{n: n, read: read}
	parallel := orDefault(p.Parallel, 4)
	if p.rate != nil {
		parallel = 1
	}
	var all sync.WaitGroup
	for range min(n, parallel) {
		all.Go(func() {
			part := &pass{Reconciler: p.Reconciler, name: p.name, rate: p.rate, ofUsers: p.ofUsers, at: p.at}
			e.work(transport.WithAdmission(ctx, part.admit), part)
			e.mu.Lock()
			defer e.mu.Unlock()
			p.found.add(part.found)
		})
	}
	all.Wait()
	if e.err != nil {
		return nil, e.err
	}
	p.found.Failed += len(e.failed)
	p.cause = e.cause
	return e.failed, nil
}

// work reads elements one after the other: what the service responds to is later than what failed.
func (e *elements) work(ctx context.Context, p *pass) {
	const most = 2   // failures in a row until the service is asked whether it responds
	var doubts []int // elements that failed since it responded last
	var cause error  // why the latest of these did
	for {
		i, ok := e.take()
		if len(doubts) > 0 && (!ok || len(doubts) == most) {
			if !p.responds(ctx) {
				e.stop(cmp.Or(ctx.Err(), cause))
				return
			}
			e.fail(cause, doubts...)
			doubts = nil
		}
		if !ok {
			return
		}
		requests := p.found.Requests
		err := e.read(p, ctx, i)
		v := verdictOf(ctx, err)
		if v <= failedAlone && p.found.Requests > requests {
			e.fail(cause, doubts...)
			doubts = nil
		}
		switch v {
		case responded:
		case failedAlone:
			e.fail(err, i)
		case unclear:
			doubts, cause = append(doubts, i), err
		case stops:
			e.stop(err)
		}
	}
}

// take returns the next element, unless the rest is not read.
func (e *elements) take() (i int, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil || e.next == e.n {
		return 0, false
	}
	e.next++
	return e.next - 1, true
}

func (e *elements) fail(cause error, elements ...int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failed, e.cause = append(e.failed, elements...), cmp.Or(cause, e.cause)
}

func (e *elements) stop(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.err = cmp.Or(e.err, err)
}
