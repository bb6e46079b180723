package labhealth

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/jsonread"
	"github.com/labhealth/labhealth-go/internal/transport"
)

// core is the state that the services of a client share.
type core struct {
	base      string
	authorize authorizer
	userAgent []string
	http      *transport.Client
	policy    RetryPolicy
	maxBody   int64
	orgID     string            // the first path parameter; empty for the team API
	paths     map[string]string // operation → its path at this deployment
	observers []func(context.Context, Attempt)

	callObservers []CallObserver
	observed      func(*core, context.Context, request, []CallOption) error   // set with callObservers
	host          string                                                      // host and port of base
	header        http.Header                                                 // of every request
	operations    []string                                                    // that have methods
	debug         []func(context.Context, *core, request, *transport.Request) // see WithDebug
}

// request is one call before it is encoded. What an operation does differently is a field here.
type request struct {
	op     string      // method and path of the operation
	ids    []string    // values of the path parameters, in order, without core.orgID
	query  queryParams // nil for none
	body   any         // nil for none, json.RawMessage for a document, or a struct of this package
	accept string      // "application/json" if empty

	minTimeout  time.Duration         // raises the timeout of an attempt of a write
	errorsIn200 bool                  // a 200 response may report an error
	maxBody     int64                 // raises the client's body limit, for large responses
	repeatable  bool                  // accepts WithIdempotencyKey
	refine      func(*APIError) error // turns an APIError into a more specific error; nil for none

	read   func(*transport.Response) error                                // reads a 2xx response, copying what it keeps
	stream func(body io.Reader, limit int64) (rejected []byte, err error) // replaces read

	method, path string // in place of those of op, for Do
	misuse       error  // why the call cannot be sent; nil if it can
}

// validated is implemented by request bodies and parameters.
type validated interface{ validate(*validator) }

// call sends r, decodes the response, a JSON object, into the struct that v points to, and returns
// v, or nil with an error. Its type parameter is a pointer, because the compiler generates one
// function for all pointers, and one for each struct.
func call[P any](ctx context.Context, c *core, v P, r request, opts []CallOption) (P, error) {
	if err := c.callInto(ctx, r, v, opts); err != nil {
		var none P
		return none, err
	}
	return v, nil
}

// callList sends r and decodes the response, a JSON array of objects.
func callList[T any](ctx context.Context, c *core, r request, opts []CallOption) ([]T, error) {
	list := new([]T)
	err := c.callInto(ctx, r, list, opts)
	return *list, err
}

// callInto sends r and decodes the response into the struct or slice that v points to, which is
// zero after an error.
func (c *core) callInto(ctx context.Context, r request, v any, opts []CallOption) error {
	isList := reflect.TypeOf(v).Elem().Kind() == reflect.Slice
	errorsIn200 := r.errorsIn200 // a closure that refers to r would have each r allocated
	r.read = func(resp *transport.Response) error {
		if errorsIn200 && reportsError(resp.Body) {
			return errReported // even if the rest of it looks like a result
		}
		return readJSON(resp, func(document []byte) error {
			if isList && document[0] != '[' {
				return cmp.Or(jsonread.Valid(document), error(errNoList))
			}
			return decode(document, v, func(value []byte) error { return jsonread.Unmarshal(value, v) })
		})
	}
	err := c.do(ctx, r, opts)
	if err != nil {
		reflect.ValueOf(v).Elem().SetZero()
	}
	return err
}

// callEmpty sends r. The response must be empty or JSON, which is ignored.
func callEmpty(ctx context.Context, c *core, r request, opts []CallOption) error {
	r.read = readNothing
	return c.do(ctx, r, opts)
}

// coreOf returns the core of a service, nil if the service is nil or was not made by a client.
func coreOf[S ~struct{ core *core }](service *S) *core {
	if service == nil {
		return nil
	}
	return struct{ core *core }(*service).core
}

// usable returns an error if a call cannot start, because it has no client or no context.
func (c *core) usable(ctx context.Context) error {
	switch {
	case c == nil:
		return invalid("is nil or its zero value: create it with NewClient", "client")
	case ctx == nil:
		return invalid("must not be nil: use context.Background() if there is no other", "ctx")
	}
	return nil
}

// closeIdleConnections does nothing without a client.
func (c *core) closeIdleConnections() {
	if c != nil {
		c.http.CloseIdleConnections()
	}
}

// do performs every call: options, validation, encoding, attempts, error.
func (c *core) do(ctx context.Context, r request, opts []CallOption) error {
	if err := c.usable(ctx); err != nil {
		return withOp(r.op, err)
	}
	if c.observed != nil {
		return c.observed(c, ctx, r, opts)
	}
	return c.attempt(ctx, r, nil, opts)
}

// attempt sends r. The observation may be nil.
func (c *core) attempt(ctx context.Context, r request, o *observation, opts []CallOption) error {
	if r.misuse != nil {
		return withOp(r.op, r.misuse)
	}
	cfg, err := c.configure(r, opts)
	if err != nil {
		return withOp(r.op, err)
	}
	cfg.header = c.headers(o, cfg.header)
	if !cfg.skipValidation {
		if err := r.validate(); err != nil {
			return withOp(r.op, err)
		}
	}
	q, err := c.encode(r, cfg)
	if err != nil {
		return withOp(r.op, err)
	}
	if o != nil || len(c.observers) > 0 {
		q.Observe = c.observer(ctx, r.op, o)
	}
	auth := c.authorize(q)
	for _, debug := range c.debug {
		debug(ctx, c, r, q)
	}
	result := c.http.Do(ctx, q)
	if cfg.response != nil {
		*cfg.response = newResponse(result)
	}
	if cfg.page != nil {
		cfg.page.attempts = result.Attempts
	}
	if err := resultError(r, result); err != nil {
		return auth.explain(err)
	}
	result.Release() // what the call returns holds copies
	return nil
}

// configure applies the options of a call.
func (c *core) configure(r request, opts []CallOption) (*callConfig, error) {
	cfg := &callConfig{
		header: http.Header{}, policy: c.policy,
		maxBody: max(c.maxBody, r.maxBody), repeatable: r.repeatable,
	}
	if r.query != nil {
		cfg.query = r.query.query().Values
	}
	for _, opt := range opts {
		if opt == nil {
			continue
		}
		if err := opt(cfg); err != nil {
			return nil, err
		}
	}
	return cfg, nil
}

// validate returns a *ValidationError with everything that is wrong with the parameters and the
// body.
func (r request) validate() error {
	if r.query == nil && r.body == nil {
		return nil
	}
	var v validator
	v.validateAt("query", r.query)
	v.validateAt("body", r.body)
	return v.err()
}

// encode returns the HTTP request of r.
func (c *core) encode(r request, cfg *callConfig) (*transport.Request, error) {
	method, path, err := c.endpoint(r)
	if err != nil {
		return nil, err
	}
	body, err := encodeBody(r.body)
	if err != nil {
		return nil, err
	}
	if err := checkQuery(cfg.query); err != nil {
		return nil, err
	}
	target := c.base + path
	if len(cfg.query) > 0 {
		target += "?" + cfg.query.Encode()
	}
	h := cfg.header
	h["User-Agent"] = c.userAgent
	if h.Get("Accept") == "" {
		h["Accept"] = jsonType
		if r.accept != "" {
			h["Accept"] = []string{r.accept}
		}
	}
	if body != nil {
		h["Content-Type"] = jsonType
	}
	if cfg.idempotencyKey != "" {
		h.Set("X-Idempotency-Key", cfg.idempotencyKey)
	}
	p := cfg.policy
	q := &transport.Request{
		Operation: r.op, Method: method, URL: target, Header: h, Body: body, MaxBody: cfg.maxBody,
		Repeatable: cfg.idempotencyKey != "", Read: r.read,
		Policy: transport.Policy{
			Attempts: p.MaxAttempts, BaseWait: p.BaseWait, MaxWait: p.MaxWait, RetryAfterCap: p.MaxRetryAfter,
			ReadTimeout: p.ReadTimeout, WriteTimeout: max(p.WriteTimeout, r.minTimeout), Strict: p.Strict,
		},
	}
	if stream, limit := r.stream, cfg.maxBody; stream != nil {
		q.Stream = func(body io.Reader) ([]byte, error) { return stream(body, limit) }
	}
	return q, nil
}

// jsonType is the value of headers that many requests share. It is not modified.
var jsonType = []string{"application/json"}

// endpoint returns the method and the path with its parameters replaced.
func (c *core) endpoint(r request) (method, path string, err error) {
	if r.method != "" {
		return r.method, r.path, nil
	}
	method, documented, _ := strings.Cut(r.op, " ")
	ids := r.ids
	if c.orgID != "" {
		ids = append([]string{c.orgID}, ids...)
	}
	path, err = expandPath(cmp.Or(c.paths[r.op], documented), pathParameters(documented), ids)
	return method, path, err
}

func encodeBody(body any) ([]byte, error) {
	switch body := body.(type) {
	case nil:
		return nil, nil
	case json.RawMessage:
		if jsonread.Valid(body) != nil {
			return nil, invalid("must be valid JSON in UTF-8", "body")
		}
		return body, nil
	}
	encoded, err := jsonread.MarshalPlain(body)
	if err == nil {
		return encoded, nil
	}
	var at *jsonread.ValueError
	if errors.As(err, &at) {
		return nil, invalid(at.Reason, append([]string{"body"}, at.Path...)...)
	}
	return nil, invalid("cannot be written as JSON", "body")
}

func newResponse(result *transport.Result) Response {
	response := Response{Attempts: result.Attempts}
	if r := result.Response; r != nil {
		response.StatusCode, response.Header = r.StatusCode, r.Header
		response.Body, response.RequestID = bytes.Clone(r.Body), r.RequestID
	}
	return response
}

// unreadable reports a 2xx response that cannot be used, for a fixed reason.
type unreadable struct {
	reason    string
	cause     error   // nil if there is none
	truncated bool    // another attempt may get the whole response
	failure   Failure // in place of what the cause or the reason tell
}

// kind returns the kind of failure of a reason without a cause.
func (e *unreadable) kind() Failure {
	if e.truncated {
		return cmp.Or(e.failure, FailureTruncated)
	}
	return cmp.Or(e.failure, FailureUnreadable)
}

func (e *unreadable) Error() string        { return e.reason }
func (e *unreadable) Is(target error) bool { return e.truncated && target == transport.ErrTruncated }

var (
	errEmpty    = &unreadable{reason: "it is empty"}
	errHTML     = &unreadable{reason: "it is HTML, not JSON: a proxy sent it, or the base URL is wrong"}
	errNoObject = &unreadable{reason: "it is not a JSON object"}
	// errNoList rejects a 200 response whose body has no list: some deployments report errors that
	// way.
	errNoList = &unreadable{reason: "it has no list"}

	// errReported rejects a 200 response that reports an error. See request.errorsIn200.
	errReported = &unreadable{reason: "it reports an error"}
)

// readJSON decodes the body of a response with unmarshal. It rejects HTML. What looks like JSON is
// read whatever its content type, because some deployments send wrong ones.
func readJSON(resp *transport.Response, unmarshal func([]byte) error) error {
	document := jsonread.TrimStart(resp.Body)
	switch {
	case len(document) == 0:
		return errEmpty
	case isHTML(document, resp.Header):
		return errHTML
	}
	err := unmarshal(document)
	var syntax *jsonread.SyntaxError
	if errors.As(err, &syntax) {
		offset := syntax.Offset + len(resp.Body) - len(document)
		reason := fmt.Sprintf("it is not valid JSON at byte %d: %s", offset, syntax.Reason)
		return &unreadable{reason: reason, truncated: jsonread.Truncated(err)}
	}
	return err
}

// isHTML reports whether a body is HTML, or another document with tags: it looks like one, or its
// header says so and it does not look like JSON.
func isHTML(document []byte, h http.Header) bool {
	return bytes.HasPrefix(document, []byte("<")) ||
		strings.HasPrefix(strings.ToLower(h.Get("Content-Type")), "text/html") && !startsJSON(document)
}

// startsJSON reports whether a body starts as a JSON object, list or string does.
func startsJSON(document []byte) bool {
	return len(document) > 0 && strings.IndexByte(`{["`, document[0]) >= 0
}

// readNothing accepts an empty response, or JSON, which it ignores. Anything else may be the
// response of a proxy.
func readNothing(resp *transport.Response) error {
	if len(jsonread.TrimStart(resp.Body)) == 0 {
		return nil
	}
	return readJSON(resp, jsonread.Valid)
}

// listShaped is implemented by responses that some deployments send as a list. fromList returns the
// documented form of a list, nil if there is none.
type listShaped interface {
	fromList(document []byte, elements []json.RawMessage) []byte
}

// verified is implemented by responses that can be unusable although they are valid JSON objects.
type verified interface{ verify() error }

// requireList returns an error if a response has no list.
func requireList[E any](list []E) error {
	if list == nil {
		return errNoList
	}
	return nil
}

// requireID returns an error if a response has no readable ID of its resource.
func requireID(id uuid.UUID, resource string) error {
	if id == uuid.Nil {
		return &unreadable{reason: "it has no readable " + resource + " id"}
	}
	return nil
}

// decode decodes a document into v with unmarshal, and verifies it. The types of this package need
// an object.
func decode(document []byte, v any, unmarshal func([]byte) error) error {
	if v, ok := v.(listShaped); ok && document[0] == '[' {
		var elements []json.RawMessage
		if jsonread.Valid(document) == nil && json.Unmarshal(document, &elements) == nil {
			if object := v.fromList(document, elements); object != nil {
				document = object
			}
		}
	}
	if _, ok := v.(interface{ RawJSON() json.RawMessage }); ok && document[0] != '{' {
		return cmp.Or(jsonread.Valid(document), error(errNoObject))
	}
	if err := unmarshal(document); err != nil {
		return err
	}
	if v, ok := v.(verified); ok {
		return v.verify()
	}
	return nil
}

// withOp sets the operation of a *ValidationError.
func withOp(op string, err error) error {
	var v *ValidationError
	if errors.As(err, &v) {
		v.Op = op
	}
	return err
}

// resultError returns the error of a call, nil if it succeeded.
func resultError(r request, result *transport.Result) error {
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
func newAPIError(r request, result *transport.Result, isLast bool) error {
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
