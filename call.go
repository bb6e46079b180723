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
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/jsonread"
	"github.com/labhealth/labhealth-go/internal/transport"
)

// core is what the services of a client share.
type core struct {
	base      string
	auth      func(http.Header)
	userAgent string
	http      *transport.Client
	policy    RetryPolicy
	maxBody   int64
	paths     map[string]string // operation → where this deployment has it
	observers []func(context.Context, Attempt)
}

// operations are those the methods call, as WithPath names them.
var operations = []string{
	opImportOrder, opCreateOrder, opUpdateOrder, opGetOrder, opListOrders,
	opOrderResults, opRequisitionPDF, opListUsers, opCreateUser, opGetUser, opResolveUser, opDeleteUser, opUndoDeletion, opPullStatus,
	opListLabTests, opListLabTestsOld, opWorkoutStream,
}

// request is one call before it is sent.
type request struct {
	op         string   // method and path of the specification or the reference
	params     []string // values of the path's parameters, in order
	query      url.Values
	value      any          // the body as a struct of this package
	problems   []FieldError // what is wrong with the request
	repeatable bool         // whether WithIdempotencyKey makes sense
	maxBody    int64        // a cap above the client's, for answers that are larger by nature

	method, path string // instead of those of op
	body         []byte // instead of value

	read   func(*transport.Answer) error
	stream func(a *transport.Answer, body io.Reader, limit int64) error // instead of read
	accept string                                                       // instead of application/json
}

// CallOption changes one call. An option that makes no sense is an error of the call, and nothing is sent.
type CallOption func(*callConfig) error

type callConfig struct {
	header     http.Header
	query      url.Values
	response   *Response
	unchecked  bool
	policy     RetryPolicy
	maxBody    int64
	key        string
	repeatable bool
}

// Response is what came over the wire for a call, beside the value it returned. It redacts itself when printed.
type Response struct {
	Redacted[Response]

	StatusCode int         // 0 if no answer came
	Header     http.Header // nil if no answer came
	Body       []byte      // as it came, after decompression; up to 64 KiB if the status is not 2xx
	Attempts   int         // how often the request was tried
	RequestID  string      // the id under which the service knows the request; empty if it sent none
}

// WithHeader adds a header to the request. Headers that carry keys, and those that the client or net/http sets, Accept excepted, are
// refused.
func WithHeader(name, value string) CallOption {
	name = textproto.CanonicalMIMEHeaderKey(name)
	return func(c *callConfig) error {
		if reserved[name] {
			return refused("is set by the client", "header", name)
		}
		if !validHeader(name, value) {
			return refused("must be a name and a value that can be sent", "header")
		}
		c.header.Add(name, value)
		return nil
	}
}

var reserved = map[string]bool{
	"X-Service-Api-Key": true, "X-Management-Key": true, "X-Service-Org-Key": true, "Authorization": true,
	"Proxy-Authorization": true, "Host": true, "Connection": true, "Content-Length": true, "Content-Type": true,
	"Transfer-Encoding": true, "Accept-Encoding": true, "Expect": true, "Te": true, "Trailer": true, "Upgrade": true,
	"X-Idempotency-Key": true, "Idempotency-Key": true, "User-Agent": true,
}

func validHeader(name, value string) bool {
	token := func(r rune) bool {
		return r > '~' || !strings.ContainsRune("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", r)
	}
	return name != "" && !strings.ContainsFunc(name, token) && !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// WithQuery adds a parameter to the query, for parameters that have no member yet. The same name may be given more than once.
func WithQuery(name, value string) CallOption {
	return func(c *callConfig) error {
		c.query.Add(name, value)
		return nil
	}
}

// WithResponse fills r with what came, also when the call fails. With an iterator, r holds the latest page.
func WithResponse(r *Response) CallOption {
	return func(c *callConfig) error {
		if r == nil {
			return refused("needs a *Response", "WithResponse")
		}
		*r = Response{}
		c.response = r
		return nil
	}
}

// WithoutValidation sends the request even if local checks would refuse it. Path parameters are checked all the same.
func WithoutValidation() CallOption {
	return func(c *callConfig) error {
		c.unchecked = true
		return nil
	}
}

// WithCallRetry changes the retry policy for one call. Members that are zero keep the client's values.
func WithCallRetry(p RetryPolicy) CallOption {
	return func(c *callConfig) (err error) {
		if c.policy, err = p.over(c.policy); err != nil {
			return refused(err.Error(), "WithCallRetry")
		}
		return nil
	}
}

// WithCallBodyLimit caps the body of the answer for one call, in bytes after decompression, in place of [WithBodyLimit].
func WithCallBodyLimit(n int64) CallOption {
	return func(c *callConfig) error {
		if n <= 0 {
			return refused("must be positive", "WithCallBodyLimit")
		}
		c.maxBody = n
		return nil
	}
}

// WithIdempotencyKey sends X-Idempotency-Key with the creation of an order, and allows that it is repeated after an unknown
// outcome. That is on the caller's word that the deployment honours the key, which the specification does not say: where
// it does, the first outcome is given again for 24 hours at least, success or failure. Other operations refuse this option.
// Source: public API reference only.
func WithIdempotencyKey(key string) CallOption {
	return func(c *callConfig) error {
		switch {
		case !c.repeatable:
			return refused("is for Orders.Create only; an import is known by its sample id", "WithIdempotencyKey")
		case key == "" || len(key) > 255 || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
			return refused("needs 1 to 255 printable ASCII characters", "WithIdempotencyKey")
		}
		c.key = key
		return nil
	}
}

// refused is the error of an option, or of a request that is wrong in one place.
func refused(msg string, loc ...string) *ValidationError {
	return &ValidationError{Fields: []FieldError{{Loc: loc, Type: "value_error", Msg: msg}}}
}

// call sends r and reads the answer into a T.
func call[T any](ctx context.Context, c *core, r request, check func(*T) string, opts []CallOption) (*T, error) {
	var v *T
	r.read = func(a *transport.Answer) error {
		if err := readable(a); err != nil {
			return err
		}
		v = new(T)
		text := a.Body
		if first := bytes.TrimLeft(text, " \t\r\n"); first[0] != '{' {
			if text = unwrapped(v, text); text == nil {
				if err := jsonread.Valid(a.Body); err != nil {
					return unreadableBy(a, err)
				}
				return &unreadable{reason: "it is not a JSON object"}
			}
		}
		if err := jsonread.UnmarshalOwned(text, v); err != nil {
			return unreadableBy(a, err)
		}
		if check != nil {
			if problem := check(v); problem != "" {
				return &unreadable{reason: problem}
			}
		}
		return nil
	}
	if err := c.do(ctx, r, opts); err != nil {
		return nil, err
	}
	return v, nil
}

// do sends r: options, checks, bytes, attempts, error, in this order.
func (c *core) do(ctx context.Context, r request, opts []CallOption) error {
	cfg := callConfig{header: http.Header{}, query: r.query, policy: c.policy, maxBody: max(c.maxBody, r.maxBody), repeatable: r.repeatable}
	if cfg.query == nil {
		cfg.query = url.Values{}
	}
	for _, opt := range opts {
		if opt == nil {
			continue
		}
		if err := opt(&cfg); err != nil {
			return ofOperation(r.op, err)
		}
	}
	if len(r.problems) > 0 && !cfg.unchecked {
		return &ValidationError{Op: r.op, Fields: r.problems}
	}
	method, path, err := c.resolve(r)
	if err != nil {
		return ofOperation(r.op, err)
	}
	body := r.body
	if r.value != nil {
		text, err := jsonread.MarshalPlain(r.value)
		if err != nil {
			loc, msg := []string{"body"}, "cannot be written as JSON"
			var at *jsonread.ValueError
			if errors.As(err, &at) {
				loc, msg = append(loc, at.Path...), at.Reason
			}
			return ofOperation(r.op, refused(msg, loc...))
		}
		body = text
	}
	target := c.base + path
	if len(cfg.query) > 0 {
		target += "?" + cfg.query.Encode()
	}
	h := cfg.header
	h.Set("User-Agent", c.userAgent)
	if h.Get("Accept") == "" {
		h.Set("Accept", cmp.Or(r.accept, "application/json"))
	}
	if body != nil {
		h.Set("Content-Type", "application/json")
	}
	if cfg.key != "" {
		h.Set("X-Idempotency-Key", cfg.key)
	}
	c.auth(h)
	p := cfg.policy
	q := &transport.Request{
		Method: method, URL: target, Header: h, Body: body, MaxBody: cfg.maxBody, Repeatable: cfg.key != "", Read: r.read,
		Policy: transport.Policy{
			Attempts: p.MaxAttempts, BaseWait: p.BaseWait, MaxWait: p.MaxWait, RetryAfterCap: p.MaxRetryAfter,
			ReadTimeout: p.ReadTimeout, WriteTimeout: p.WriteTimeout, Strict: p.Strict,
		},
	}
	if r.stream != nil {
		q.Stream = func(a *transport.Answer, body io.Reader) error { return r.stream(a, body, cfg.maxBody) }
	}
	if len(c.observers) > 0 {
		q.Observe = func(a transport.Attempt) {
			seen := Attempt{r.op, a.Number, a.Status, a.Duration, requestID(a.Header), Outcome(a.Outcome)}
			for _, observe := range c.observers {
				observe(ctx, seen)
			}
		}
	}
	result := c.http.Do(context.WithValue(ctx, operationKey{}, r.op), q)
	if cfg.response != nil {
		*cfg.response = Response{Attempts: result.Attempts}
		if a := result.Answer; a != nil {
			*cfg.response = Response{
				StatusCode: a.Status, Header: a.Header, Body: bytes.Clone(a.Body),
				Attempts: result.Attempts, RequestID: requestID(a.Header),
			}
		}
	}
	return resultError(r.op, result)
}

type operationKey struct{}

// Operation returns the operation that a request of this package is for, such as "PATCH /v3/order/{order_id}", out of the context of
// the [http.Request]; empty for other requests. A transport given with [WithHTTPClient] names spans and metrics with it: a path would hold the
// ids of orders and users.
func Operation(ctx context.Context) string {
	op, _ := ctx.Value(operationKey{}).(string)
	return op
}

// ofOperation says in a ValidationError which operation it stopped.
func ofOperation(op string, err error) error {
	var invalid *ValidationError
	if errors.As(err, &invalid) {
		invalid.Op = op
	}
	return err
}

// resolve returns the method and the path with its values filled in.
func (c *core) resolve(r request) (method, path string, err error) {
	if r.method != "" {
		return r.method, r.path, nil
	}
	method, path, _ = strings.Cut(r.op, " ")
	names := path
	if p, ok := c.paths[r.op]; ok {
		path = p
	}
	for _, value := range r.params {
		_, rest, _ := strings.Cut(names, "{")
		var name string
		name, names, _ = strings.Cut(rest, "}")
		switch {
		case value == uuid.Nil.String():
			return "", "", refused("must not be the nil UUID", "path", name)
		case value == "" || value == "." || value == ".." || hasControl(value):
			return "", "", refused("must not be empty, a dot segment or hold control characters", "path", name)
		}
		path = strings.Replace(path, "{"+name+"}", url.PathEscape(value), 1)
	}
	return method, path, nil
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' })
}

// unreadable is a 2xx answer that cannot be read, and why, in a fixed phrase.
type unreadable struct {
	reason string
	cause  error
}

func (e *unreadable) Error() string { return e.reason }

// readable looks at an answer from outside. The content type alone refuses nothing but HTML, because some deployments send
// odd ones.
func readable(a *transport.Answer) error {
	text := bytes.TrimLeft(a.Body, " \t\r\n")
	switch {
	case len(text) == 0:
		return &unreadable{reason: "it is empty"}
	case text[0] == '<', strings.HasPrefix(strings.ToLower(a.Header.Get("Content-Type")), "text/html"):
		return &unreadable{reason: "it is HTML, not JSON; something between here and the service may have sent it"}
	}
	return nil
}

// unreadableBy is why text that is not JSON cannot be read.
func unreadableBy(a *transport.Answer, err error) error {
	if jsonread.Truncated(err) {
		a.Truncated = true
	}
	var at *jsonread.SyntaxError
	if errors.As(err, &at) {
		return &unreadable{reason: fmt.Sprintf("it is not valid JSON at byte %d: %s", at.Offset, at.Reason)}
	}
	return &unreadable{reason: "it is not valid JSON"}
}

// resultError is the error of a call, nil if it succeeded.
func resultError(op string, r *transport.Result) error {
	a := r.Answer
	final := a != nil && a.Attempt == r.Attempts
	var answered error
	if a != nil && (a.Status < 200 || a.Status > 299) {
		api := &APIError{
			Op: op, StatusCode: a.Status, RequestID: requestID(a.Header), Attempts: r.Attempts,
			outcome: Outcome(r.Outcome), header: a.Header, body: a.Body,
		}
		if final {
			api.RetryAfter = r.RetryAfter
		}
		answered = api
		switch op {
		case opCreateUser:
			answered = userConflict(api)
		case opCreateTeam, opUpdateTeam:
			answered = teamConflict(api)
		}
	}
	if r.Err == nil && r.Ended == nil {
		return answered
	}
	var redirect *transport.RedirectError
	if errors.As(r.Err, &redirect) {
		return &RedirectError{Op: op, StatusCode: redirect.Status, Host: redirect.Host}
	}
	cause := r.Err
	var at *url.Error
	if errors.As(cause, &at) {
		cause = at.Err // the text of a url.Error holds the address, ids and names in it included
	}
	if final && answered == nil {
		return decodeError(op, r, cause)
	}
	e := &TransportError{Op: op, Attempts: r.Attempts, outcome: Outcome(r.Outcome)}
	for _, err := range []error{r.Ended, cause, answered} {
		if err != nil {
			e.causes = append(e.causes, err)
		}
	}
	e.reason = reason(e.causes[0])
	return e
}

func decodeError(op string, r *transport.Result, cause error) error {
	a := r.Answer
	e := &DecodeError{
		Op: op, StatusCode: a.Status, RequestID: requestID(a.Header), Attempts: r.Attempts,
		Reason: cause.Error(), outcome: Outcome(r.Outcome), body: a.Body,
	}
	var bad *unreadable
	switch {
	case errors.As(cause, &bad):
		e.cause = bad.cause
	case r.Ended != nil:
		e.cause = errors.Join(r.Ended, cause)
	default:
		e.cause = cause
	}
	return e
}

// queryValues sets the parameters that are given.
type queryValues struct{ url.Values }

func newQuery() queryValues { return queryValues{url.Values{}} }

func (q queryValues) text(name, v string) {
	if v != "" {
		q.Set(name, v)
	}
}

func (q queryValues) number(name string, v int) {
	if v != 0 {
		q.Set(name, fmt.Sprint(v))
	}
}

func (q queryValues) id(name string, v uuid.UUID) {
	if v != uuid.Nil {
		q.Set(name, v.String())
	}
}

func (q queryValues) instant(name string, v time.Time) {
	if !v.IsZero() {
		q.Set(name, v.Format(time.RFC3339Nano))
	}
}

func (q queryValues) flag(name string, v *bool) {
	if v != nil {
		q.Set(name, fmt.Sprint(*v))
	}
}

func each[T ~string](q queryValues, name string, list []T) {
	for _, v := range list {
		q.Add(name, string(v))
	}
}

// unwrapped returns the response in the form that v expects if it has another one in use: one order
// in a list of one, a bare list of orders, users, lab tests or pipelines. Otherwise it returns nil.
func unwrapped(v any, text []byte) []byte {
	var list []json.RawMessage
	if jsonread.Valid(text) != nil || json.Unmarshal(text, &list) != nil || list == nil {
		return nil
	}
	switch v.(type) {
	case *PostOrderResponse:
		if len(list) == 1 && list[0][0] == '{' {
			return list[0]
		}
	case *LabTestPage:
		return fmt.Appendf(nil, `{"data":%s,"next_cursor":null}`, text)
	case *OrderPage: // without a total: more may follow
		return fmt.Appendf(nil, `{"orders":%s}`, text)
	case *ETLPipelinePage:
		return fmt.Appendf(nil, `{"pipelines":%s,"next_cursor":null}`, text)
	case *UserPage:
		return fmt.Appendf(nil, `{"users":%s,"total":%d}`, text, len(list))
	}
	return nil
}
