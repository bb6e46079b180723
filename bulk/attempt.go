package bulk

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
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
		case !isRejection(err):
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

// isRejection reports whether the service itself rejected a request because of its content. Any
// other 4xx is about the key, the team, the path or the size of requests, or was sent by a proxy,
// and shows nothing about the record.
func isRejection(err error) bool {
	var api *labhealth.APIError
	return errors.As(err, &api) && api.FromService() && slices.Contains([]int{
		http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity,
	}, api.StatusCode)
}

// isRedirect reports whether err is a redirect, which every request would get.
func isRedirect(err error) bool {
	var redirect *labhealth.RedirectError
	var api *labhealth.APIError
	return errors.As(err, &redirect) || errors.As(err, &api) && api.StatusCode/100 == 3
}

// stopError is the error of a run that ends because a response is not about its record.
func (j *job) stopError(err error) error {
	var api *labhealth.APIError
	isRefusal := errors.Is(err, labhealth.ErrUnauthorized) || errors.Is(err, labhealth.ErrForbidden)
	if isRedirect(err) || isRefusal && errors.As(err, &api) && api.FromService() {
		return err // it says what to change
	}
	where := fmt.Sprintf("line %d", j.line)
	if j.line == 0 {
		where = fmt.Sprintf("record %d", j.record)
	}
	return fmt.Errorf("bulk: the response to %s is not a rejection of the record by the service: check the proxies, gateways and firewalls on the way, "+
		"the base URL, and whether the team may import orders; the record is not recorded as rejected, and the next run sends it again; "+
		"if only this record gets such a response, change or remove it: %w", where, err)
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
	if e.Step == StepPostponed || isRedirect(err) {
		r.stop(j.stopError(err))
	}
	r.recordOutcome(e, err)
}

// recordOutcome records an attempt with what it shows about the rejections before it. A rejection
// is committed at once: if the process is killed, no list shows it, and the next run would wait for
// an order.
func (r *run) recordOutcome(e Entry, err error) {
	isRejected := e.StatusCode != 0 && (e.Step == StepRejected || e.Step == StepDisputed)
	if isRejected {
		defer r.commit() // an error stops the run
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	record := []Entry{e}
	switch {
	case isRejected:
		var stop error
		if record, stop = r.streak.add(e, err); stop != nil {
			r.stop(stop)
		}
	case e.Step == StepApplied:
		record = append(r.streak.end(), e)
	}
	for _, e := range record {
		r.applyEntry(e)
	}
}
