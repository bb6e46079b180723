package bulk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

// send sends a record until its outcome is final or unknown, and logs it in the journal.
func (r *run) send(j job) {
	e := Entry{SampleID: j.body.SampleID, Record: j.record}
	// Attempts are not canceled with the run, which would leave their outcome unknown.
	ctx := r.withLease(context.WithoutCancel(r.ctx), e)
	for {
		if r.importPacer.wait(r.ctx) != nil {
			e.Step = StepPostponed
			r.addEntry(e)
			return
		}
		start := time.Now()
		resp, err := r.attempt(ctx, j)
		e.Step = r.stepOf(j, err)
		if err == nil && r.isOther(j, &resp.Order) {
			e.Step, resp, err = StepUnknown, nil, errOtherOrder
		}
		if e.Step != "" {
			r.recordAttempt(j, e, resp, err, start)
			return
		}
		if err := r.importPacer.failed(start, err); err != nil {
			r.stop(err)
		}
	}
}

// attempt sends one request.
func (r *run) attempt(ctx context.Context, j job) (*labhealth.PostOrderResponse, error) {
	resp, err := r.client.Orders.Import(ctx, j.body, labhealth.WithoutValidation(),
		labhealth.WithCallRetry(labhealth.RetryPolicy{MaxAttempts: 1, WriteTimeout: r.opts.Timeout}))
	r.mu.Lock()
	r.sent++
	r.mu.Unlock()
	if err != nil && r.opts.OnError != nil {
		r.opts.OnError(j.body.SampleID, err)
	}
	return resp, err
}

// stepOf returns the step for the outcome of an attempt, or "" if the record can be sent again
// immediately.
func (r *run) stepOf(j job, err error) Step {
	var local *labhealth.ValidationError
	switch labhealth.OutcomeOf(err) {
	case labhealth.OutcomeApplied:
		return StepApplied
	case labhealth.OutcomeNotSent:
		if errors.As(err, &local) {
			return StepRejected
		}
		return ""
	case labhealth.OutcomeRejected:
		switch {
		case errors.Is(err, labhealth.ErrRateLimited), errors.Is(err, labhealth.ErrCredentialsDropped):
			return ""
		case isFatal(err):
			return StepPostponed
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.index.states[r.index.key(j.body.SampleID)].has(wasUnknown) {
			return StepDisputed
		}
		return StepRejected
	default:
		return StepUnknown
	}
}

var errOtherOrder = errors.New("bulk: the response has the order of another record")

// isOther reports whether the order of a response is that of another user or record, as a gateway
// that mixes up responses returns it. A sample ID that no record has may be the service's form of
// this one.
func (r *run) isOther(j job, o *labhealth.Order) bool {
	if o.UserID != uuid.Nil && o.UserID != j.body.UserID {
		return true
	}
	if o.SampleID == nil || fold(*o.SampleID) == fold(j.body.SampleID) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.index.states[r.index.key(*o.SampleID)]
	return ok
}

// isFatal reports whether every record would get this error.
func isFatal(err error) bool {
	var redirect *labhealth.RedirectError
	var api *labhealth.APIError
	return errors.Is(err, labhealth.ErrUnauthorized) || errors.Is(err, labhealth.ErrForbidden) || errors.As(err, &redirect) ||
		errors.As(err, &api) && api.StatusCode/100 == 3
}

// recordAttempt completes the entry of an attempt and records it.
func (r *run) recordAttempt(j job, e Entry, resp *labhealth.PostOrderResponse, err error, start time.Time) {
	var api *labhealth.APIError
	switch {
	case e.Step == StepUnknown:
		if err := r.importPacer.failed(start, err); err != nil {
			r.stop(err)
		}
	case err == nil:
		e.OrderID = resp.Order.ID
	case errors.As(err, &api):
		e.StatusCode, e.RequestID, e.Fields = api.StatusCode, api.RequestID, problemsOf(err)
		if r.opts.KeepMessages {
			e.Message = api.Message()
		}
	default:
		e.Fields = problemsOf(err)
	}
	j.header.name(e.Fields)
	if e.Step != StepUnknown {
		r.importPacer.succeeded()
	}
	if isFatal(err) {
		r.stop(err)
	}
	r.recordOrHold(e, err)
}

// recordOrHold records an attempt, or defers it: until the service has shown that it processes
// records, a rejection may have another cause. A rejection is committed at once: if the process is
// killed, no list shows it, and the next run would wait for an order.
func (r *run) recordOrHold(e Entry, err error) {
	rejected := e.StatusCode != 0 && (e.Step == StepRejected || e.Step == StepDisputed)
	if rejected {
		defer r.commit() // an error stops the run
	}
	var released []Entry
	r.mu.Lock()
	switch {
	case r.proven:
	case e.Step == StepApplied, rejected && (len(e.Fields) > 0 || len(r.held) > 0 && r.held[0].StatusCode != e.StatusCode):
		released, r.held, r.proven = r.held, nil, true
	case rejected:
		r.held, r.lastRejection = append(r.held, e), err
		if len(r.held) == r.opts.RejectionLimit {
			r.stop(allRejected(r.held, err))
		}
		if e.Step == StepRejected {
			e.Step = StepPostponed // until it is released
			r.applyEntry(e)
		}
		r.mu.Unlock()
		return
	}
	r.mu.Unlock()
	for _, h := range released {
		r.addEntry(h)
	}
	r.addEntry(e)
}

// allRejected is the error of a run whose records were all rejected.
func allRejected(held []Entry, last error) error {
	return fmt.Errorf("bulk: every record so far (%d) was rejected with status %d and no field errors, and none is recorded as rejected: "+
		"check the base URL and whether the team may import orders; if the orders may exist already, start the run again with the same journal and Options.Reconcile; "+
		"if each record is wrong, see Options.RejectionLimit: %w", len(held), held[0].StatusCode, last)
}
