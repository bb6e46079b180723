// The last step: the error of a call.

package labhealth

import (
	"errors"
	"net/url"

	"github.com/labhealth/labhealth-go/internal/jsonread"
	"github.com/labhealth/labhealth-go/internal/transport"
)

// resultError returns the error of a call, nil if it succeeded.
func resultError(r *request, result *transport.Result) error {
	resp := result.Response
	isLast := isLastResponse(result)
	var rejected error
	if resp != nil && (resp.StatusCode < 200 || resp.StatusCode > 299) {
		rejected = newAPIError(r, result, isLast)
	}
	if result.Err == nil && result.ContextErr == nil {
		return rejected
	}
	var redirect *transport.RedirectError
	if errors.As(result.Err, &redirect) {
		return &RedirectError{Op: r.op, StatusCode: redirect.StatusCode, Host: redirect.Host}
	}
	cause := result.Err
	var at *url.Error
	if errors.As(cause, &at) {
		cause = at.Err // the message of a url.Error contains the URL, with IDs and names in it
	}
	if isLast && rejected == nil {
		if r.errorsIn200 && reportsError(resp.Body) {
			result.Outcome = transport.Rejected
			return newAPIError(r, result, isLast)
		}
		return newDecodeError(r.op, result, cause)
	}
	e := &TransportError{Op: r.op, Attempts: result.Attempts, outcome: Outcome(result.Outcome), causes: new([]error)}
	for _, err := range []error{result.ContextErr, cause, rejected} {
		if err != nil {
			*e.causes = append(*e.causes, err)
		}
	}
	e.failure = describeResult(result)
	return e
}

// isLastResponse reports whether the call ended with its response, and not with another attempt or
// because there were no credentials for one.
func isLastResponse(result *transport.Result) bool {
	if result.Response == nil || result.Response.Attempt != result.Attempts {
		return false
	}
	if result.Err == nil {
		return true
	}
	var unauthorized *credentialsError
	return !errors.As(result.Err, &unauthorized)
}

// reportsError reports whether the body of a 200 response is that of an error.
func reportsError(body []byte) bool {
	var e struct {
		State string `json:"state"`
	}
	return jsonread.Unmarshal(jsonread.TrimStart(body), &e) == nil && e.State == "error"
}

// newAPIError returns the error of a response that is not 2xx, or that reports an error.
func newAPIError(r *request, result *transport.Result, isLast bool) error {
	resp := result.Response
	e := &APIError{
		Op: r.op, StatusCode: resp.StatusCode, RequestID: resp.RequestID, Attempts: result.Attempts,
		outcome: Outcome(result.Outcome), received: &received{resp.Header, resp.Body},
	}
	if isLast {
		e.RetryAfter = result.RetryAfter
	}
	if r.refine != nil {
		return r.refine(e)
	}
	return e
}

// newDecodeError returns the error of a 2xx response that could not be read.
func newDecodeError(op string, result *transport.Result, cause error) error {
	resp := result.Response
	e := &DecodeError{
		Op: op, StatusCode: resp.StatusCode, RequestID: resp.RequestID, Attempts: result.Attempts,
		outcome: Outcome(result.Outcome), received: &received{body: resp.Body},
	}
	described := describe(cause, result.Fault)
	e.failure, e.Reason = described.kind, described.String()
	var u *unreadable
	switch {
	case errors.As(cause, &u):
		e.cause = u.cause
		if e.failure != FailureTimeout && e.failure != FailureCanceled {
			e.Reason = u.reason
		}
	case result.ContextErr != nil:
		e.cause = errors.Join(result.ContextErr, cause)
	default:
		e.cause = cause
	}
	return e
}
