package labhealth

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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
	ErrNotFound     = errors.New("not found")    // 404
	ErrConflict     = errors.New("conflict")     // 409
	ErrValidation   = errors.New("validation")   // 422; also a *ValidationError
	ErrRateLimited  = errors.New("rate limited") // 429
	ErrServer       = errors.New("server error") // every 5xx
)

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
// Its message contains the operation, the status, the paths and types of up to three field errors
// and the request ID. The body, the header and the detail may echo the request, including patient
// data. They are available through methods, and are never printed or encoded.
type APIError struct {
	Op         string // the operation, such as "POST /v3/order/import"
	StatusCode int    // the HTTP status code
	RequestID  string // the service's ID of the request; empty if it sent none
	// RetryAfter is the Retry-After of the response. It is 0 if there is none, and negative if that
	// time has passed.
	RetryAfter time.Duration
	Attempts   int // number of attempts

	outcome  Outcome
	note     string // see [authorization]
	received *received
}

// received is the header and the body of a response. Errors have a pointer to it, because fmt
// prints the unexported fields of a wrapped error under a verb that is not for errors, such as %t,
// but not what a pointer in them points to. The nil pointer is an empty response.
type received struct {
	header http.Header
	body   []byte
}

func (r *received) bytes() []byte {
	if r == nil {
		return nil
	}
	return r.body
}

func (e *APIError) requestOutcome() Outcome { return e.outcome }

// Error returns the operation, the status, the first field errors and the request ID.
func (e *APIError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "labhealth: %s: %d", e.Op, e.StatusCode)
	if text := http.StatusText(e.StatusCode); text != "" {
		b.WriteString(" " + text)
	}
	if e.StatusCode == http.StatusOK {
		b.WriteString(", which reports an error")
	}
	if fields := e.Fields(); len(fields) > 0 {
		b.WriteString(": " + formatFields(fields))
	}
	if e.note != "" {
		b.WriteString(": " + e.note)
	}
	if e.RequestID != "" {
		b.WriteString(" (request " + e.RequestID + ")")
	}
	return b.String()
}

// Is reports whether target is the error of the status code, such as [ErrNotFound].
func (e *APIError) Is(target error) bool {
	if target == ErrCredentialsDropped {
		return e.note == target.Error()
	}
	err := statusErrors[e.StatusCode]
	if e.StatusCode >= 500 {
		err = ErrServer
	}
	return err != nil && target == err
}

// Body returns a copy of the response body, up to 64 KiB of it. It may echo patient data: do not
// log it.
func (e *APIError) Body() []byte { return slices.Clone(e.received.bytes()) }

// Header returns a copy of the response header.
func (e *APIError) Header() http.Header {
	if e.received == nil {
		return nil
	}
	return e.received.header.Clone()
}

// Detail returns the field "detail" of the body as received: a string, an object or a list. It is
// nil if the body is not a JSON object or has no such field. Some responses have "error" and
// "message" instead: see [APIError.Body]. It may echo patient data: do not log it.
func (e *APIError) Detail() json.RawMessage {
	var body struct {
		Detail json.RawMessage `json:"detail"`
	}
	if jsonread.Unmarshal(e.received.bytes(), &body) != nil {
		return nil
	}
	return body.Detail
}

// Fields returns the field errors of a detail that is a list, the usual form of a 422. It returns
// nil for any other body.
func (e *APIError) Fields() []FieldError {
	var body struct {
		Detail []struct {
			Type string            `json:"type"`
			Loc  []json.RawMessage `json:"loc"` // names and numbers
			Msg  string            `json:"msg"`
		} `json:"detail"`
	}
	if jsonread.Unmarshal(e.received.bytes(), &body) != nil {
		return nil
	}
	var fields []FieldError
	for _, f := range body.Detail {
		field := FieldError{Type: f.Type, Msg: f.Msg}
		for _, l := range f.Loc {
			name := string(l)
			_ = json.Unmarshal(l, &name) // a number is kept as received
			field.Loc = append(field.Loc, name)
		}
		if len(field.Loc) > 0 || field.Type != "" || field.Msg != "" {
			fields = append(fields, field)
		}
	}
	return fields
}

// FieldError describes an invalid field of a request. Printed or logged, it shows only its path and
// type.
type FieldError struct {
	Loc  []string // path: "body", "patient_details", "first_name"; numbers are indexes of a list
	Type string   // short code, such as "missing", "string_too_long" or "enum"
	// Msg is human-readable. In a [ValidationError] it describes what is valid. In an [APIError] it
	// is the service's message, which may quote the request.
	Msg string
}

// Path returns Loc joined by dots, such as "body.patient_details.first_name".
func (f FieldError) Path() string { return strings.Join(f.Loc, ".") }

// Format prints the path and the type under every verb.
func (f FieldError) Format(s fmt.State, _ rune) { fmt.Fprint(s, formatFields([]FieldError{f})) }

// LogValue returns the path and the type.
func (f FieldError) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(f)) }

// formatFields formats up to three field errors. Paths and types come from the service, so anything
// that does not look like a name or a code is replaced.
func formatFields(fields []FieldError) string {
	var parts []string
	for _, f := range fields[:min(len(fields), 3)] {
		path := make([]string, len(f.Loc))
		for i, l := range f.Loc {
			path[i] = codeOr(l, "?")
		}
		parts = append(parts, strings.Join(path, ".")+" ("+codeOr(f.Type, "invalid")+")")
	}
	if more := len(fields) - len(parts); more > 0 {
		parts = append(parts, strconv.Itoa(more)+" more")
	}
	return strings.Join(parts, ", ")
}

// codeOr returns s if it looks like a name or a code, and fallback otherwise.
func codeOr(s, fallback string) string {
	if s == "" || len(s) > 64 || strings.Trim(s, codeChars) != "" {
		return fallback
	}
	return s
}

const codeChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

// requestID returns the service's ID of a request. It appears in error messages, so anything that
// does not look like an ID is ignored.
func requestID(h http.Header) string {
	for _, name := range [...]string{"Traceresponse", "X-Request-Id"} {
		id := h.Get(name)
		if id != "" && len(id) <= 128 && strings.Trim(id, codeChars+"-.") == "" {
			return id
		}
	}
	return ""
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

func (e *DecodeError) requestOutcome() Outcome { return e.outcome }

// Error returns the operation, the status, the reason and the request ID.
func (e *DecodeError) Error() string {
	text := fmt.Sprintf("labhealth: %s: the response (status %d) could not be read: %s", e.Op, e.StatusCode, e.Reason)
	if e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	return text
}

// Unwrap returns the cause, such as the error of a canceled context. It may be nil.
func (e *DecodeError) Unwrap() error { return e.cause }

// Body returns a copy of the received body. It may hold patient data: do not log it.
func (e *DecodeError) Body() []byte { return slices.Clone(e.received.bytes()) }

// ValidationError reports an invalid request. Nothing was sent.
type ValidationError struct {
	Op string // the operation; empty if Validate was called directly
	// Fields lists everything that is invalid, with the same paths as in a 422 of the service.
	Fields []FieldError
}

func (*ValidationError) requestOutcome() Outcome { return OutcomeNotSent }

// Error returns the path of each invalid field and what would be valid, never the value.
func (e *ValidationError) Error() string {
	var b strings.Builder
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
// failure. The causes that errors.As finds may quote addresses and received bytes.
type TransportError struct {
	Op       string // the operation
	Attempts int    // number of attempts

	outcome Outcome
	failure Failure
	reason  string
	causes  []error
}

func (e *TransportError) requestOutcome() Outcome { return e.outcome }

// Error returns the operation, the kind of failure and the outcome.
func (e *TransportError) Error() string {
	return fmt.Sprintf("labhealth: %s: %s (%s, outcome %s)", e.Op, e.reason, formatAttempts(e.Attempts), e.outcome)
}

// Unwrap returns the causes: the error of the context if it ended, the last failure, and the
// *[APIError] of the last response if an earlier attempt received one.
func (e *TransportError) Unwrap() []error { return e.causes }

func formatAttempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return strconv.Itoa(n) + " attempts"
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

// Error returns the operation and the status.
func (e *RedirectError) Error() string {
	return fmt.Sprintf("labhealth: %s: the redirect (status %d) was not followed: only a GET follows redirects, at most five and to the same origin", e.Op, e.StatusCode)
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
	if jsonread.Unmarshal(e.received.bytes(), &top) != nil || jsonread.Unmarshal(e.received.bytes(), &body) != nil {
		return nil
	}
	return []conflict{body.Detail, top}
}
