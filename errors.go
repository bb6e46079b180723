// The errors of calls, and their outcomes.

package labhealth

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/jsonread"
	"github.com/labhealth/labhealth-go/internal/transport"
)

// Outcome reports whether the service processed a request. It matters after a failed write: do not
// send an import again while its outcome is unknown.
type Outcome uint8

const (
	// OutcomeUnknown means that the service may or may not have processed the request. Find out
	// before you send it again.
	OutcomeUnknown Outcome = Outcome(transport.Unknown)
	// OutcomeNotSent means that the request provably never reached the service.
	OutcomeNotSent Outcome = Outcome(transport.NotSent)
	// OutcomeRejected means that the service rejected the request.
	OutcomeRejected Outcome = Outcome(transport.Rejected)
	// OutcomeApplied means that the service processed the request.
	OutcomeApplied Outcome = Outcome(transport.Applied)
)

// String returns "unknown", "not sent", "rejected" or "applied".
func (o Outcome) String() string {
	switch o {
	case OutcomeNotSent:
		return "not sent"
	case OutcomeRejected:
		return "rejected"
	case OutcomeApplied:
		return "applied"
	default:
		return "unknown"
	}
}

// OutcomeOf returns the outcome of the request that returned err: OutcomeApplied if err is nil, and
// OutcomeUnknown if err is not an error of this package. Of joined errors the first one counts, so
// do not join the errors of two requests.
func OutcomeOf(err error) Outcome {
	if err == nil {
		return OutcomeApplied
	}
	var e interface{ requestOutcome() Outcome }
	if errors.As(err, &e) {
		return e.requestOutcome()
	}
	return OutcomeUnknown
}

// Errors that an [APIError] matches with errors.Is, depending on its status code. The interface
// specification documents no status for a missing or invalid key, for the closed beta or for an
// order that cannot be updated. The codes given for these are the ones in use. Source: public API
// reference only.
var (
	ErrUnauthorized = errors.New("unauthorized") // 401: the key is missing, invalid or expired
	ErrForbidden    = errors.New("forbidden")    // 403: the team has no access
	ErrNotFound     = errors.New("not found")    // 404, also of a proxy: see [APIError.FromService]
	ErrConflict     = errors.New("conflict")     // 409
	ErrValidation   = errors.New("validation")   // 422, an HTTPValidationError; also a *ValidationError
	ErrRateLimited  = errors.New("rate limited") // 429
	ErrServer       = errors.New("server error") // every 5xx
)

// ErrNoResults is matched by an [APIError] of a method that reads the results of an order, such as
// [OrdersService.Results] or [OrdersService.ResultsPDF], if the order has no results, or none yet.
// Such an error also matches [ErrNotFound], as do those for an unknown order and for a wrong path,
// which do not match ErrNoResults.
//
// No document describes this response: a 404 of these operations whose message is about results is
// taken for it, which is an inference. [Order.HasResults] does not depend on it.
var ErrNoResults = errors.New("no results")

var statusErrors = map[int]error{
	http.StatusUnauthorized:        ErrUnauthorized,
	http.StatusForbidden:           ErrForbidden,
	http.StatusNotFound:            ErrNotFound,
	http.StatusConflict:            ErrConflict,
	http.StatusUnprocessableEntity: ErrValidation,
	http.StatusTooManyRequests:     ErrRateLimited,
}

// APIError reports a response whose status is not 2xx, or a response to [LinkService] that reports
// an error with status 200. Its body may or may not be JSON.
//
// The text of the error says what to change if that is known, but it does not quote the response,
// which may echo patient data. [APIError.Message] returns the service's own words, and
// [APIError.Fields] returns the field errors of an HTTPValidationError, the body of a 422. Printing
// or encoding the error never shows what these methods return, or its Body, Detail and Header.
type APIError struct {
	Op         string // the operation, such as "POST /v3/order/import"
	StatusCode int    // the HTTP status code
	RequestID  string // the service's ID of the request; empty if it sent none
	// RetryAfter is the Retry-After of the response: 0 without one, and negative if its time has
	// passed. A date is compared with the Date of the response or, without one, with the clock of
	// this system.
	RetryAfter time.Duration
	Attempts   int // number of attempts

	outcome  Outcome
	reason   string // why, in place of what the response says; empty for none
	received *received
}

// received is the header and the body of a response. Errors have a pointer to it, because fmt
// prints the unexported fields of a wrapped error under a verb that is not for errors, such as %t,
// but not what a pointer in them points to. The nil pointer is an empty response.
type received struct {
	header http.Header
	body   []byte
}

// orZero returns p, or a pointer to the zero value if p is nil.
func orZero[T any](p *T) *T {
	if p == nil {
		p = new(T)
	}
	return p
}

// orNil returns e as an error, nil if it is nil.
func (e *APIError) orNil() error {
	if e == nil {
		return nil
	}
	return e
}

// orReason returns the message of e, or of an error with a reason if e is nil.
func (e *APIError) orReason(reason string) string {
	return cmp.Or(e, &APIError{reason: reason}).Error()
}

// document returns the received body from its first character on.
func (e *APIError) document() []byte { return jsonread.TrimStart(orZero(e).received.bytes()) }

func (r *received) bytes() []byte {
	if r == nil {
		return nil
	}
	return r.body
}

func (e *APIError) requestOutcome() Outcome { return orZero(e).outcome }

// Error returns one line: the operation, the status, the [Outcome], the reason and what to change
// if these are known, the paths and types of up to three field errors, the request ID and the
// number of attempts. The reason is a text of this package. It does not quote the response.
func (e *APIError) Error() string {
	e = orZero(e)
	what := formatStatus(e.StatusCode)
	if e.StatusCode == http.StatusOK {
		what += ", which reports an error"
	}
	text := formatError(e.Op, what, e.outcome, e.why())
	if fields := e.Fields(); len(fields) > 0 {
		text += ": " + formatFields(fields)
	}
	return text + formatRequest(e.RequestID, e.Attempts)
}

// formatError returns the start of the message of every error of a request: the operation, what
// happened, the [Outcome], unless it is unknown and the operation changes nothing, and in
// parentheses why, and what to change, as far as they are known.
func formatError(op, what string, outcome Outcome, why ...string) string {
	text := "labhealth: " + op + ": " + what
	if outcome != OutcomeUnknown || !isLookUp(op) { // a failed read changed nothing
		text += ": " + formatOutcome(outcome)
	}
	if all := joinParts(why); all != "" {
		text += " (" + all + ")"
	}
	return text
}

// formatStatus returns a status code with its name, if it has one.
func formatStatus(code int) string {
	return strings.TrimSuffix(strconv.Itoa(code)+" "+http.StatusText(code), " ")
}

// formatOutcome returns the text of an outcome that stands alone.
func formatOutcome(o Outcome) string {
	if o == OutcomeUnknown {
		return "outcome unknown"
	}
	return o.String()
}

// formatRequest returns the request ID, if there is one, and the number of attempts, if there were
// several, in parentheses.
func formatRequest(id string, attempts int) string {
	var parts []string
	if id != "" {
		parts = append(parts, "request "+id)
	}
	if attempts > 1 {
		parts = append(parts, strconv.Itoa(attempts)+" attempts")
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// Is reports whether target is the error of the status code, such as [ErrNotFound], or
// [ErrNoResults] if the order has no results.
func (e *APIError) Is(target error) bool {
	if target == ErrCredentialsDropped {
		return orZero(e).reason == target.Error()
	}
	if target == ErrNoResults {
		return e.lacksResults(e.Message())
	}
	e = orZero(e)
	err := statusErrors[e.StatusCode]
	if e.StatusCode >= 500 {
		err = ErrServer
	}
	return err != nil && target == err
}

// Body returns a copy of the response body, up to 64 KiB of it. It may echo patient data: do not
// log it.
func (e *APIError) Body() []byte { return slices.Clone(orZero(e).received.bytes()) }

// Header returns a copy of the response header.
func (e *APIError) Header() http.Header {
	if e == nil || e.received == nil {
		return nil
	}
	return e.received.header.Clone()
}

// Detail returns the field "detail" of the body as received: a string, an object or a list. It is
// nil if the body is not a JSON object or has no such field. [APIError.Message] returns its text.
// It may echo patient data: do not log it.
func (e *APIError) Detail() json.RawMessage {
	var body struct {
		Detail json.RawMessage `json:"detail"`
	}
	if jsonread.Unmarshal(e.document(), &body) != nil {
		return nil
	}
	return body.Detail
}

// DecodeError reports a 2xx response that could not be decoded: it is HTML, invalid JSON,
// truncated, too large, of the wrong JSON type, or has no readable ID where one is required. Its
// message never quotes the response.
type DecodeError struct {
	Op         string // the operation
	StatusCode int    // the HTTP status code, a 2xx
	RequestID  string // see [APIError]
	// Attempts is the number of attempts. It is 0 if an iterator rejected a page; RequestID and
	// Body are then empty.
	Attempts int
	Reason   string // a fixed phrase

	outcome  Outcome
	failure  Failure
	received *received
	cause    error
}

func (e *DecodeError) requestOutcome() Outcome { return orZero(e).outcome }

// Error returns one line: the operation, the status, the [Outcome], the reason, what to change and
// what to do after a write, the request ID and the number of attempts.
func (e *DecodeError) Error() string {
	e = orZero(e)
	what := formatStatus(e.StatusCode) + ", but the response could not be read"
	return formatError(e.Op, what, e.outcome, e.Reason, nextStep(e.outcome, e.Op)) + formatRequest(e.RequestID, e.Attempts)
}

// Unwrap returns the cause, such as the error of a canceled context. It may be nil.
func (e *DecodeError) Unwrap() error { return orZero(e).cause }

// Body returns a copy of the received body. It may hold patient data: do not log it.
func (e *DecodeError) Body() []byte { return slices.Clone(orZero(e).received.bytes()) }

// ValidationError reports an invalid request. Nothing was sent.
type ValidationError struct {
	Op string // the operation; empty if Validate was called directly
	// Fields lists everything that is invalid, with the same paths as in a 422 of the service.
	Fields []FieldError
}

func (*ValidationError) requestOutcome() Outcome { return OutcomeNotSent }

// Error returns the path of each invalid field and what would be valid, never the value.
func (e *ValidationError) Error() string {
	e = orZero(e)
	var b bytes.Buffer
	b.WriteString("labhealth: ")
	if e.Op != "" {
		b.WriteString(e.Op + ": ")
	}
	b.WriteString("not sent")
	for i, f := range e.Fields {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		b.WriteString(sep + f.Path() + " " + f.Msg)
	}
	return b.String()
}

// Is reports whether target is [ErrValidation].
func (e *ValidationError) Is(target error) bool { return target == ErrValidation }

// TransportError reports a request that received no response. Its message describes the kind of
// failure: see [TransportError.Cause].
type TransportError struct {
	Op       string // the operation
	Attempts int    // number of attempts

	outcome Outcome
	failure failure
	causes  *[]error // behind a pointer, because fmt prints unexported fields: see received
}

func (e *TransportError) requestOutcome() Outcome { return orZero(e).outcome }

// Error returns one line: the operation, the kind of failure, the [Outcome], what to check or to
// change if this is known, and the number of attempts.
func (e *TransportError) Error() string {
	e = orZero(e)
	return formatError(e.Op, e.failure.text, e.outcome, e.failure.advice, nextStep(e.outcome, e.Op)) + formatRequest("", e.Attempts)
}

// Unwrap returns the causes: the error of the context if it ended, the last failure, and the
// *[APIError] of the last response if an earlier attempt received one. The text of the failure is a
// fixed phrase, but errors.As finds what is behind it, which may quote addresses and received
// bytes.
func (e *TransportError) Unwrap() []error { return *orZero(orZero(e).causes) }

// Cause returns the last failure as it was: an error of net/http, or that of your
// [net/http.RoundTripper]. It is nil if the context ended before any failure. Its text may quote
// addresses, URLs with IDs, and sent or received bytes: show it only to people who may see patient
// data, and do not log it.
func (e *TransportError) Cause() error {
	for _, err := range e.Unwrap() {
		if !slices.Contains([]error{context.Canceled, context.DeadlineExceeded}, err) && !errors.As(err, new(*APIError)) {
			return transport.Cause(err)
		}
	}
	return nil
}

// RedirectError reports a redirect that was not followed: nothing was sent to its target. A GET
// follows at most five redirects to the same scheme, host and port. A write follows none.
type RedirectError struct {
	Op         string // the operation
	StatusCode int    // the HTTP status code, a 3xx
	// Host is the host and port of the target. It comes from the response and is not part of the
	// message.
	Host string `json:"-"`
}

func (*RedirectError) requestOutcome() Outcome { return OutcomeUnknown }

// Error returns the operation, the status, the [Outcome], and what to change.
func (e *RedirectError) Error() string {
	e = orZero(e)
	reason := "only redirects to the same scheme, host and port are followed, at most five"
	if isWrite(e.Op) {
		reason = "a write follows no redirect"
	}
	return formatError(e.Op, formatStatus(e.StatusCode), OutcomeUnknown, reason+": "+checkRedirect, nextStep(OutcomeUnknown, e.Op))
}

// Format prints the error message under every verb, so that %#v does not print the body.
func (e APIError) Format(s fmt.State, _ rune) { fmt.Fprint(s, e.Error()) }

// Format prints the error message under every verb, so that %#v does not print the body.
func (e DecodeError) Format(s fmt.State, _ rune) { fmt.Fprint(s, e.Error()) }

// Format prints the error message under every verb, so that %#v does not print the causes.
func (e TransportError) Format(s fmt.State, _ rune) { fmt.Fprint(s, e.Error()) }

// Format prints the error message under every verb, so that %#v does not print the host.
func (e RedirectError) Format(s fmt.State, _ rune) { fmt.Fprint(s, e.Error()) }

// conflict identifies the existing resource that a rejected request conflicts with.
type conflict struct {
	UserID    uuid.UUID `json:"user_id"`
	TeamID    uuid.UUID `json:"team_id"`
	CreatedOn time.Time `json:"created_on"`
}

// conflicts returns the conflicts in the detail of the body and at its top level, in this order.
func (e *APIError) conflicts() []conflict {
	var top conflict
	var body struct {
		Detail conflict `json:"detail"`
	}
	if jsonread.Unmarshal(e.document(), &top) != nil || jsonread.Unmarshal(e.document(), &body) != nil {
		return nil
	}
	return []conflict{body.Detail, top}
}
