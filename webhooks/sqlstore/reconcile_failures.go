// Tells what fails alone from an unavailable service.

package sqlstore

import (
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

	mu      sync.Mutex
	taken   int
	failed  []int   // those that failed although the service responds
	doubts  []doubt // those that failed since it responded last
	failure error   // of the first of these
	cause   error   // of the latest failure
	err     error   // why the rest is not read
}

// doubt is an element that failed when some elements had been taken.
type doubt struct{ element, taken int }

// maxDoubts is how many elements fail before the service is asked whether it responds to others.
const maxDoubts = 8

// each calls read for n elements, several at the same time unless the pass has a rate, each with
// its own counts. It returns and counts those that failed.
//
// A failure is the element's own if the service responds to a later request, of another element or
// of a list. Otherwise the service is unavailable: each returns the error, and nobody knows whether
// the elements that failed since it responded last would fail again.
func (p *pass) each(ctx context.Context, n int, read func(p *pass, ctx context.Context, i int) error) (failed []int, err error) {
	e := &elements{n: n, read: read}
	parallel := orDefault(p.Parallel, 4)
	if p.rate != nil {
		parallel = 1
	}
	var all sync.WaitGroup
	for range min(n, parallel) {
		all.Go(func() { e.work(ctx, p) })
	}
	all.Wait()
	e.resolve(ctx, p, 1)
	if e.err != nil {
		return nil, e.err
	}
	p.found.Failed += len(e.failed)
	p.cause = e.cause
	return e.failed, nil
}

func (e *elements) work(ctx context.Context, p *pass) {
	part := &pass{Reconciler: p.Reconciler, name: p.name, rate: p.rate, ofUsers: p.ofUsers, at: p.at}
	ctx = transport.WithAdmission(ctx, part.admit)
	for i, ok := e.take(); ok; i, ok = e.take() {
		requests := part.found.Requests
		err := e.read(part, ctx, i)
		e.end(ctx, i, err, part.found.Requests > requests)
		e.resolve(ctx, part, maxDoubts)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	p.found.add(part.found)
}

func (e *elements) take() (i int, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil || e.taken == e.n {
		return 0, false
	}
	e.taken++
	return e.taken - 1, true
}

// end records the result of an element.
func (e *elements) end(ctx context.Context, i int, err error, isAsked bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	v := verdictOf(ctx, err)
	if err != nil {
		e.cause = err
	}
	switch v {
	case responded, failedAlone:
		if isAsked {
			e.confirm(i)
		}
		if v == failedAlone {
			e.failed = append(e.failed, i)
		}
	case unclear:
		if len(e.doubts) == 0 {
			e.failure = err
		}
		e.doubts = append(e.doubts, doubt{i, e.taken})
	default:
		e.err = err
	}
}

// confirm is called when the service has responded to a request that was made after a number of
// elements had been taken: what failed before that has failed alone.
func (e *elements) confirm(taken int) {
	n := 0
	for ; n < len(e.doubts) && e.doubts[n].taken <= taken; n++ {
		e.failed = append(e.failed, e.doubts[n].element)
	}
	e.doubts = e.doubts[n:]
}

// resolve asks the service whether it responds if there are as many doubts.
func (e *elements) resolve(ctx context.Context, p *pass, doubts int) {
	e.mu.Lock()
	taken, isDue := e.taken, e.err == nil && len(e.doubts) >= doubts
	e.mu.Unlock()
	if !isDue {
		return
	}
	responds := p.responds(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case responds:
		e.confirm(taken)
	case e.err == nil && ctx.Err() != nil:
		e.err = ctx.Err()
	case e.err == nil:
		e.err = e.failure
	}
}
