package labhealth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/jsonread"
	"github.com/labhealth/labhealth-go/internal/transport"
)

// Outcome is what became of a request at the service. It matters after a failed write: an import must not be sent again while
// its outcome is unknown.
type Outcome uint8

const (
	// OutcomeUnknown means that the service may or may not have carried the request out. Look before you send it again.
	OutcomeUnknown Outcome = Outcome(transport.Unknown)
	// OutcomeNotSent means that the request provably never reached the service.
	OutcomeNotSent Outcome = Outcome(transport.NotSent)
	// OutcomeRejected means that the service answered that it refused the request.
	OutcomeRejected Outcome = Outcome(transport.Rejected)
	// OutcomeApplied means that the service carried the request out.
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

// OutcomeOf says what became of the request whose error err is. No error means applied; an error that is not of this package
// means unknown.
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

// Classes of [APIError], for errors.Is. The interface specification gives no status for a missing or wrong key, for the closed
// beta or for an order that cannot be changed; these are the statuses that are in use. Source: public API reference only.
var (
	ErrUnauthorized = errors.New("unauthorized") // 401: the key is missing, wrong or expired
	ErrForbidden    = errors.New("forbidden")    // 403: the team may not do this
	ErrNotFound     = errors.New("not found")    // 404
	ErrConflict     = errors.New("conflict")     // 409
	ErrValidation   = errors.New("validation")   // 422; also a *ValidationError
	ErrRateLimited  = errors.New("rate limited") // 429
	ErrServer       = errors.New("server error") // every 5xx
)

var classes = map[int]error{
	http.StatusUnauthorized:        ErrUnauthorized,
	http.StatusForbidden:           ErrForbidden,
	http.StatusNotFound:            ErrNotFound,
	http.StatusConflict:            ErrConflict,
	http.StatusUnprocessableEntity: ErrValidation,
	http.StatusTooManyRequests:     ErrRateLimited,
}

// APIError is an answer that is not 2xx, JSON or not.
//
// Its text holds the operation, the status, the paths and types of up to three field errors and the request id. Body, header and
// detail can echo what was sent, patient data included: they are reached by method and are never printed or encoded.
type APIError struct {
	Op         string        // the operation, such as "POST /v3/order/import"
	StatusCode int           // the HTTP status
	RequestID  string        // the id under which the service knows the request; empty if it sent none
	RetryAfter time.Duration // how long the service asked to wait; 0 if it did not, negative if that time has passed
	Attempts   int           // how often the request was tried

	outcome Outcome
	header  http.Header
	body    []byte
}

func (e *APIError) requestOutcome() Outcome { return e.outcome }

// Error names the operation, the status, the first field errors and the request id.
func (e *APIError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "labhealth: %s: %d", e.Op, e.StatusCode)
	if text := http.StatusText(e.StatusCode); text != "" {
		b.WriteString(" " + text)
	}
	if fields := e.Fields(); len(fields) > 0 {
		b.WriteString(": " + fieldText(fields))
	}
	if e.RequestID != "" {
		b.WriteString(" (request " + e.RequestID + ")")
	}
	return b.String()
}

// Is reports whether target is the class of the status, such as [ErrNotFound].
func (e *APIError) Is(target error) bool {
	class := classes[e.StatusCode]
	if e.StatusCode >= 500 {
		class = ErrServer
	}
	return class != nil && target == class
}

// Body returns a copy of the answer's body, up to 64 KiB of it. It may echo patient data: do not log it.
func (e *APIError) Body() []byte { return slices.Clone(e.body) }

// Header returns a copy of the answer's header.
func (e *APIError) Header() http.Header { return e.header.Clone() }

// Detail returns the body's member "detail" as it came: a string, an object or a list. It is nil if the body is not a JSON
// object or has no such member; then [APIError.Body] may say more, as answers with "error" and "message" occur. It may echo
// patient data: do not log it.
func (e *APIError) Detail() json.RawMessage {
	var b errorBody
	if jsonread.Unmarshal(e.body, &b) != nil {
		return nil
	}
	return b.Detail
}

// Fields returns the field errors of a detail that is a list, the usual form of a 422. It is nil for every other body.
func (e *APIError) Fields() []FieldError {
	var list struct {
		Detail []wireFieldError `json:"detail"`
	}
	if jsonread.Unmarshal(e.body, &list) != nil {
		return nil
	}
	var fields []FieldError
	for _, f := range list.Detail {
		field := FieldError{Type: f.Type, Msg: f.Msg}
		for _, l := range f.Loc {
			name := string(l)
			_ = json.Unmarshal(l, &name) // a number stays as it came
			field.Loc = append(field.Loc, name)
		}
		if len(field.Loc) > 0 || field.Type != "" || field.Msg != "" {
			fields = append(fields, field)
		}
	}
	return fields
}

type errorBody struct {
	Detail json.RawMessage `json:"detail"`
}

type wireFieldError struct {
	Type string            `json:"type"`
	Loc  []json.RawMessage `json:"loc"` // names and numbers
	Msg  string            `json:"msg"`
}

// FieldError says what is wrong with one member of a request. Printed, it shows its path and type.
type FieldError struct {
	Loc  []string // where: "body", "patient_details", "first_name"; numbers count the elements of a list
	Type string   // a short code: "missing", "string_too_long", "enum"
	Msg  string   // for people: in a ValidationError what is allowed; in an APIError the service's words, which may quote what was sent
}

// Path returns Loc joined by dots, such as "body.patient_details.first_name".
func (f FieldError) Path() string { return strings.Join(f.Loc, ".") }

// Format prints the path and the type.
func (f FieldError) Format(s fmt.State, _ rune) { fmt.Fprint(s, fieldText([]FieldError{f})) }

// LogValue shows what [FieldError.Format] prints.
func (f FieldError) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(f)) }

// fieldText shows up to three field errors. Both parts come from the service, so that only what looks like a member name or a
// code is shown.
func fieldText(fields []FieldError) string {
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

func codeOr(s, other string) string {
	if s == "" || len(s) > 64 || strings.Trim(s, codeChars) != "" {
		return other
	}
	return s
}

const codeChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

// requestID finds the id under which the service knows a request. It is shown in errors, so that only text that looks like an
// id counts.
func requestID(h http.Header) string {
	for _, name := range [...]string{"Traceresponse", "X-Request-Id"} {
		id := h.Get(name)
		if id != "" && len(id) <= 128 && strings.Trim(id, codeChars+"-.") == "" {
			return id
		}
	}
	return ""
}

// DecodeError is an answer that came and could not be read: not JSON, HTML, cut short, too large, of the wrong kind, or an
// order without a readable id. It never quotes the answer.
type DecodeError struct {
	Op         string // the operation
	StatusCode int    // the HTTP status, a 2xx
	RequestID  string // see [APIError]
	Attempts   int    // how often the request was tried; 0 if an iterator refused a page, which leaves RequestID and Body empty too
	Reason     string // a fixed phrase

	outcome Outcome
	body    []byte
	cause   error
}

func (e *DecodeError) requestOutcome() Outcome { return e.outcome }

// Error names the operation, the status, the reason and the request id.
func (e *DecodeError) Error() string {
	text := fmt.Sprintf("labhealth: %s: the response (status %d) could not be read: %s", e.Op, e.StatusCode, e.Reason)
	if e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	return text
}

// Unwrap returns what stopped the reading, if there is more to say, such as a context that ended.
func (e *DecodeError) Unwrap() error { return e.cause }

// Body returns a copy of what came. It may hold patient data: do not log it.
func (e *DecodeError) Body() []byte { return slices.Clone(e.body) }

// ValidationError is a request that was refused before anything was sent.
type ValidationError struct {
	Op     string       // the operation; empty if Validate was called directly
	Fields []FieldError // all that is wrong, with the paths of the service's own 422; Msg says what is allowed
}

func (*ValidationError) requestOutcome() Outcome { return OutcomeNotSent }

// Error lists the paths and what is allowed there, never what was given.
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

// Is reports true for [ErrValidation].
func (e *ValidationError) Is(target error) bool { return target == ErrValidation }

// TransportError is a request to which no answer came. Its text names the kind of failure; what errors.As finds in
// its causes may quote addresses and bytes that came.
type TransportError struct {
	Op       string // the operation
	Attempts int    // how often the request was tried

	outcome Outcome
	reason  string
	causes  []error
}

func (e *TransportError) requestOutcome() Outcome { return e.outcome }

// Error names the operation, the kind of failure and the outcome.
func (e *TransportError) Error() string {
	return fmt.Sprintf("labhealth: %s: %s (%s, outcome %s)", e.Op, e.reason, attempts(e.Attempts), e.outcome)
}

// Unwrap returns the causes: the context's error if it ended, the last failure, and the last answer, an *[APIError], if an
// earlier attempt got one.
func (e *TransportError) Unwrap() []error { return e.causes }

func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return strconv.Itoa(n) + " attempts"
}

// RedirectError is a redirect that is not followed: nothing was sent there. A GET is followed to the same scheme, host and port,
// five times at most; a write never is.
type RedirectError struct {
	Op         string // the operation
	StatusCode int    // a 3xx
	Host       string // the host and port to which it led; chosen by whoever answered, so it is not part of the text
}

func (*RedirectError) requestOutcome() Outcome { return OutcomeUnknown }

// Error names the operation and the status.
func (e *RedirectError) Error() string {
	return fmt.Sprintf("labhealth: %s: a redirect (status %d) was not followed: only a GET is, to the same origin, and five times at most", e.Op, e.StatusCode)
}

// transportReason names kinds of failure without their texts, which may quote what was sent or came.
func transportReason(err error) string {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.Is(err, transport.ErrSentAgain):
		return "the http.RoundTripper was stopped before it sent the write a second time"
	case errors.Is(err, transport.ErrOtherHost):
		return "the http.RoundTripper was stopped before it sent the request to another host"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.As(err, &dns) && dns.IsNotFound:
		return "the host is not known"
	case errors.As(err, &dns):
		return "the host's name could not be looked up"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, http.ErrSchemeMismatch):
		return "the server does not speak HTTPS"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "timed out"
	case transport.IsCertificate(err):
		return "the server's certificate is not trusted"
	}
	return "the connection failed"
}

// Format prints the error's text under every verb, so that %#v does not print the body.
func (e APIError) Format(s fmt.State, _ rune) { fmt.Fprint(s, e.Error()) }

// Format prints the error's text under every verb, so that %#v does not print the body.
func (e DecodeError) Format(s fmt.State, _ rune) { fmt.Fprint(s, e.Error()) }

// Format prints the error's text under every verb, so that %#v does not print the causes.
func (e TransportError) Format(s fmt.State, _ rune) { fmt.Fprint(s, e.Error()) }

// Format prints the error's text under every verb, so that %#v does not print the host.
func (e RedirectError) Format(s fmt.State, _ rune) { fmt.Fprint(s, e.Error()) }

// conflict identifies the existing resource that a rejected request conflicts with.
type conflict struct {
	UserID    uuid.UUID `json:"user_id"`
	TeamID    uuid.UUID `json:"team_id"`
	CreatedOn time.Time `json:"created_on"`
}

// conflicts returns what the body has inside detail and at its top, in this order.
func (e *APIError) conflicts() []conflict {
	var top conflict
	var body struct {
		Detail conflict `json:"detail"`
	}
	if jsonread.Unmarshal(e.body, &top) != nil || jsonread.Unmarshal(e.body, &body) != nil {
		return nil
	}
	return []conflict{body.Detail, top}
}
