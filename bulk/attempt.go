// One import of a record, and the journal entry for its error.

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

// sendRow sends a record until its outcome is final or unknown, and logs it in the journal.
func (s *sender) sendRow(row *row) {
	e := row.entry("")
	// Attempts are not canceled with the run, which would leave their outcome unknown.
	ctx := s.writer.withLease(context.WithoutCancel(s.ctx), e)
	for {
		if s.pacer.wait(s.ctx) != nil {
			e.Step = StepPostponed
			s.writer.add(e)
			return
		}
		start := time.Now()
		resp, err := s.attempt(ctx, row)
		e.Step = s.stepOf(row, err)
		if err == nil && s.isOther(row, &resp.Order) {
			e.Step, resp, err = StepUnknown, nil, errOtherOrder
		}
		if e.Step != "" {
			s.recordAttempt(row, e, resp, err, start)
			return
		}
		if err := s.pacer.failed(start, err); err != nil {
			s.stop(err)
		}
	}
}

// attempt sends one request.
func (s *sender) attempt(ctx context.Context, row *row) (*labhealth.PostOrderResponse, error) {
	resp, err := s.client.Orders.Import(ctx, row.body, labhealth.WithoutValidation(),
		labhealth.WithCallRetry(labhealth.RetryPolicy{MaxAttempts: 1, WriteTimeout: s.opts.Timeout}))
	s.reporter.sent.Add(1)
	if err != nil && s.opts.OnError != nil {
		s.opts.OnError(row.body.SampleID, err)
	}
	return resp, err
}

// stepOf returns the step for the outcome of an attempt, or "" if the record can be sent again
// immediately.
func (s *sender) stepOf(row *row, err error) Step {
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
		case s.writer.state(row.key).has(wasUnknown):
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
func (s *sender) isOther(row *row, o *labhealth.Order) bool {
	if o.UserID != uuid.Nil && o.UserID != row.body.UserID {
		return true
	}
	if o.SampleID == nil || fold(*o.SampleID) == fold(row.body.SampleID) {
		return false
	}
	return s.writer.state(s.writer.index.key(*o.SampleID)) != state{}
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
func (r *row) stopError(err error) error {
	var api *labhealth.APIError
	isRefusal := errors.Is(err, labhealth.ErrUnauthorized) || errors.Is(err, labhealth.ErrForbidden)
	if isRedirect(err) || isRefusal && errors.As(err, &api) && api.FromService() {
		return err // it says what to change
	}
	where := fmt.Sprintf("line %d", r.line)
	if r.line == 0 {
		where = fmt.Sprintf("record %d", r.record)
	}
	return fmt.Errorf("bulk: the response to %s is not a rejection of the record by the service: check the proxies, gateways and firewalls on the way, "+
		"the base URL, and whether the team may import orders; the record is not recorded as rejected, and the next run sends it again; "+
		"if only this record gets such a response, change or remove it: %w", where, err)
}

// recordAttempt completes the entry of an attempt and records it.
func (s *sender) recordAttempt(row *row, e Entry, resp *labhealth.PostOrderResponse, err error, start time.Time) {
	var api *labhealth.APIError
	switch {
	case e.Step == StepUnknown:
		if err := s.pacer.failed(start, err); err != nil {
			s.stop(err)
		}
	case err == nil:
		e.OrderID = resp.Order.ID
	case errors.As(err, &api):
		e.StatusCode, e.RequestID, e.Fields = api.StatusCode, api.RequestID, problemsOf(err)
		if s.opts.KeepMessages {
			e.Message = api.Message()
		}
	default:
		e.Fields = problemsOf(err)
	}
	row.header.name(e.Fields)
	if e.Step != StepUnknown {
		s.pacer.succeeded()
	}
	if e.Step == StepUnknown || e.Step == StepDisputed {
		s.onUnknown(row)
	}
	if e.Step == StepPostponed || isRedirect(err) {
		s.stop(row.stopError(err))
	}
	s.recordOutcome(e, err)
}

// recordOutcome records an attempt with what it shows about the rejections before it. A rejection
// is committed at once: if the process is killed, no list shows it, and the next run would wait for
// an order.
func (s *sender) recordOutcome(e Entry, err error) {
	isRejected := e.StatusCode != 0 && (e.Step == StepRejected || e.Step == StepDisputed)
	if isRejected {
		defer s.writer.commit() // an error stops the run
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	record := []Entry{e}
	switch {
	case isRejected:
		var stop error
		if record, stop = s.streak.add(e, err); stop != nil {
			s.stop(stop)
		}
	case e.Step == StepApplied:
		record = append(s.streak.end(), e)
	}
	s.writer.add(record...)
}
