// Package transport sends a request and reports its outcome at the service. It uses the loop, the
// waits and the body rewind of go-retryablehttp, and replaces defaults that are unsafe for writes:
// which attempts are retried, how long to wait, and which error is returned. A write is retried
// only if it provably never reached the service, or if the service rejected it with a 429.
package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// Outcome reports whether the service processed a request.
type Outcome uint8

const (
	Unknown  Outcome = iota // the service may have processed it
	NotSent                 // it provably never reached the service
	Rejected                // the service rejected it
	Applied                 // the service processed it
)

// Policy limits the attempts of a call.
type Policy struct {
	Attempts          int           // at most, the first included
	BaseWait, MaxWait time.Duration // bounds of the backoff
	RetryAfterCap     time.Duration // a longer Retry-After ends the call
	ReadTimeout       time.Duration // of one attempt of a GET or HEAD; positive
	WriteTimeout      time.Duration // of one attempt of any other method; positive
	Strict            bool          // retry a write only if it was provably not sent
}

// Limits of responses.
const (
	MaxErrorBody = 64 << 10
	maxHeader    = 256 << 10
	maxRedirects = 5
)

// Client sends requests with one http.Client. The requests share a retry budget.
type Client struct {
	http http.Client // of the caller
	// direct and tunnel are nil unless the http.RoundTripper is an *http.Transport. See watch.
	direct, tunnel *http.Transport
	proxy          func(*http.Request) (*url.URL, error) // the proxy of a request, if any
	budget         *budget
	limiter        rateLimiter // nil for no limit
}

// NewClient returns a Client that uses a copy of user, or its own transport if user is nil. An
// *http.Transport is copied too, because its connections are watched.
func NewClient(user *http.Client) *Client {
	c := &Client{budget: newBudget(), proxy: func(*http.Request) (*url.URL, error) { return nil, nil }}
	if user != nil {
		c.http = *user
	}
	switch {
	case user == nil:
		c.http.Transport = ownTransport()
	case c.http.Transport == nil:
		c.http.Transport = http.DefaultTransport
	}
	if t, ok := c.http.Transport.(*http.Transport); ok {
		c.direct, c.tunnel = watch(t)
		if t.Proxy != nil {
			c.proxy = t.Proxy
		}
	}
	return c
}

// LimitRate limits the requests per second, after a burst. It must be called before the first
// request.
func (c *Client) LimitRate(perSecond float64, burst int) { c.limiter = newLimiter(perSecond, burst) }

// CloseIdleConnections closes idle connections of the client's own transports. A transport that was
// passed to NewClient is not affected.
func (c *Client) CloseIdleConnections() {
	if c.direct != nil {
		c.direct.CloseIdleConnections()
		c.tunnel.CloseIdleConnections()
	}
}

// OperationKey is the context key of Request.Operation.
type OperationKey struct{}

// Request is one call.
type Request struct {
	Operation  string // value of OperationKey in the contexts of its attempts
	Method     string
	URL        string
	Header     http.Header
	Body       []byte
	MaxBody    int64 // cap of a 2xx body, after decompression
	Policy     Policy
	Repeatable bool // a write with an idempotency key: it may be retried after an unknown outcome

	// Complete returns an error that matches ErrTruncated, which allows another attempt, if the
	// body of a 2xx response is only the start of a document. It may be nil.
	Complete func(*Response) error
	// Open, for a read whose body is not held in memory, reads the start of a 2xx body in place of
	// Complete, and returns a reader of all of it, Response.Stream. With an error, it may return
	// what it read of a body that it rejects. One that matches ErrTruncated allows another attempt.
	Open func(body io.Reader) (stream io.Reader, rejected []byte, err error)
	// Observe is called after each attempt; it may be nil.
	Observe func(Attempt)

	// Authorize, if not nil, adds the credentials to the header of each attempt. It may wait. Its
	// error ends the call; [ErrUnchanged] ends it with the result of the previous attempt.
	Authorize func(context.Context, http.Header) error
	// Responded is called with the status of each response if Authorize is set. It reports whether
	// a read that was unauthorized is repeated with other credentials.
	Responded func(statusCode int) (again bool)
}

func (q *Request) isWrite() bool { return q.Method != http.MethodGet && q.Method != http.MethodHead }

// Response is the response to one attempt.
type Response struct {
	StatusCode int
	Header     http.Header
	RequestID  string    // the service's ID of the request; empty for none
	Body       []byte    // valid until Result.Release
	Stream     io.Reader // in place of Body: see Request.Open
	Attempt    int       // the number of its attempt

	truncated bool
	buffer    *buffer   // of Body, if it can be reused
	open      io.Closer // the body that Stream reads; nil for none
}

// Retain keeps Body from being reused.
func (r *Response) Retain() { r.buffer = nil }

// isJSON reports whether the media type is a JSON one.
func (r *Response) isJSON() bool {
	t, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return t == "application/json" || strings.HasSuffix(t, "+json")
}

// Attempt describes one attempt to an observer.
type Attempt struct {
	Number     int
	StatusCode int // 0 without a response
	Header     http.Header
	RequestID  string // see Response
	Start      time.Time
	Body       []byte // of the response, as far as it was read; nil for a stream
	Duration   time.Duration
	Wait       time.Duration // before the next attempt
	Repeated   bool          // there will be a next attempt
	Outcome    Outcome       // of the call so far
	Err        error         // why there is no response, or why it cannot be used
	Fault      Fault         // how it ended, if Err is not nil
}

// Result is the result of a call.
type Result struct {
	Outcome    Outcome
	Attempts   int
	Response   *Response     // the last response, if there was one
	Err        error         // why the last attempt failed, if its status does not tell
	Fault      Fault         // of the last attempt, if Err is not nil
	ContextErr error         // the context's error, if the call failed because the context ended
	Waiting    bool          // the call ended between two attempts
	RetryAfter time.Duration // of the last response; negative for a time that has passed
}

// Release makes the memory of the body of the last response available to other calls, if nothing
// can refer to it: it was decoded without an error and without Retain. The body is nil afterwards.
func (r *Result) Release() {
	if r.Response != nil && r.Response.buffer != nil {
		read := r.Response.buffer
		r.Response.Body, r.Response.buffer = nil, nil
		read.release()
	}
}

var (
	// ErrTooLarge reports a body above the cap.
	ErrTooLarge = errors.New("the response is larger than the limit")
	// ErrPartial reports a 206: no request asks for a part.
	ErrPartial = errors.New("the response is only a part")
	// ErrURL reports a URL that net/url would change.
	ErrURL = errors.New("the URL is not valid")
	// ErrTruncated is matched by errors that report a body that ended too early.
	ErrTruncated = errors.New("the response ended too early")
	// ErrUnchanged is an error of Request.Authorize: there are no other credentials.
	ErrUnchanged = errors.New("the credentials are the same")
)

// RedirectError reports a redirect that was not followed.
type RedirectError struct {
	StatusCode int
	Host       string // of its target
}

func (e *RedirectError) Error() string { return "redirect not followed" }

// Do sends q until it succeeds, fails permanently, or must not be retried. A 2xx response that was
// received completely ends the attempts, and decode then decodes it. Its error fails the call. What
// decode keeps of the body it copies, or it calls Response.Retain.
func (c *Client) Do(ctx context.Context, q *Request, decode func(*Response) error) *Result {
	call := &call{client: c, request: q, timeout: q.Policy.ReadTimeout, limit: "RetryPolicy.ReadTimeout"}
	call.ctx = operationContext{ctx, q.Operation}
	c.budget.deposit()
	if err := ctx.Err(); err != nil {
		return &Result{Outcome: NotSent, ContextErr: err}
	}
	if err := call.newRequest(); err != nil {
		return &Result{Outcome: NotSent, Err: err}
	}
	if err := call.admit(call.repeated.Request); err != nil {
		result := &Result{Outcome: NotSent, Err: err}
		if !call.unauthorized { // otherwise Err has the context's error
			result.ContextErr = ctx.Err()
		}
		return result
	}
	if q.isWrite() {
		call.timeout, call.limit = q.Policy.WriteTimeout, "RetryPolicy.WriteTimeout"
	}
	if limit := c.http.Timeout; limit > 0 && limit < call.timeout {
		call.timeout, call.limit = limit, "http.Client.Timeout"
	}
	call.http = http.Client{Transport: call, CheckRedirect: call.redirect, Jar: c.http.Jar} // RoundTrip sets the deadline
	call.loop = retryablehttp.Client{
		HTTPClient:   &call.http,
		RetryMax:     math.MaxInt32, // checkRetry decides
		CheckRetry:   call.checkRetry,
		Backoff:      func(wait, _ time.Duration, _ int, _ *http.Response) time.Duration { return wait },
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
		PrepareRetry: call.prepareRetry,
	}
	_, _ = call.loop.Do(&call.repeated) // checkRetry fills the result
	if call.received {
		call.decode(decode)
	}
	if call.unauthorized {
		return &call.result // Err has the context's error
	}
	if r := &call.result; call.waiting || r.Err != nil || (r.Response != nil && r.Response.truncated) {
		r.ContextErr = ctx.Err()
		r.Waiting = call.waiting
	}
	return &call.result
}

// prepareRetry is go-retryablehttp's PrepareRetry. It is called before every attempt but the first.
func (c *call) prepareRetry(r *http.Request) error {
	r.Header = c.request.Header.Clone() // a cookie jar adds to it at each attempt
	return c.admit(r)
}

// admissionKey is the context key of a function: see WithAdmission.
type admissionKey struct{}

// WithAdmission returns a context for calls. Before each attempt, and before it waits for the rate
// limit of its client, admit is called with the context of the call. It may wait. Its error ends
// the call.
func WithAdmission(ctx context.Context, admit func(context.Context) error) context.Context {
	return context.WithValue(ctx, admissionKey{}, admit)
}

// maxIdle is how long the slot of a request in the rate limit may stay unused.
const maxIdle = 10 * time.Millisecond

const maxAdmissions = 3 // of one attempt

// admit waits for the credentials of the next attempt and for the rate limit. The credentials come
// first, because requests that wait for them together would then be sent together, whenever their
// slots were. They are renewed after the wait; if that takes long, the request waits again.
func (c *call) admit(r *http.Request) error {
	if admit, _ := r.Context().Value(admissionKey{}).(func(context.Context) error); admit != nil {
		if err := admit(r.Context()); err != nil {
			return err
		}
	}
	err := c.authorize(r)
	for range maxAdmissions {
		if err != nil || c.client.limiter == nil {
			return err
		}
		if err := c.client.limiter.wait(r.Context()); err != nil {
			return err
		}
		start := time.Now()
		if err = c.authorize(r); time.Since(start) <= maxIdle {
			return err
		}
	}
	return err
}

// authorize adds the credentials of the next attempt.
func (c *call) authorize(r *http.Request) error {
	c.sent = r.Header
	if c.request.Authorize == nil {
		return nil
	}
	err := c.request.Authorize(r.Context(), r.Header)
	if err != nil && !errors.Is(err, ErrUnchanged) {
		c.result.Err, c.unauthorized = err, true
	}
	return err
}

// newRequest sets the request of every attempt. A write always has a body, of a type that
// net/http cannot rewind, even if it is empty: net/http itself retries a request that has no body
// or one that it can rewind.
func (c *call) newRequest() error {
	q := c.request
	req, err := http.NewRequestWithContext(&c.ctx, q.Method, q.URL, nil)
	// net/url re-escapes a path that contains a character that it would escape itself.
	if err != nil || req.URL.String() != q.URL {
		return ErrURL
	}
	copyHeader(req.Header, q.Header)
	c.repeated.Request = req
	if !q.isWrite() {
		return nil
	}
	own := bytes.Clone(q.Body) // the caller may change q.Body while a retry waits
	err = c.repeated.SetBody(retryablehttp.ReaderFunc(func() (io.Reader, error) { return &attemptBody{r: bytes.NewReader(own)}, nil }))
	if err != nil {
		return ErrURL
	}
	req.GetBody = nil
	if len(q.Body) == 0 {
		req.ContentLength = -1 // a transport that replaces the body must read it to find it empty
	}
	return nil
}

// copyHeader adds a copy of the values of from to the empty header to.
func copyHeader(to, from http.Header) {
	n := 0
	for _, values := range from {
		n += len(values)
	}
	all := make([]string, 0, n)
	for name, values := range from {
		start := len(all)
		all = append(all, values...)
		to[name] = all[start:len(all):len(all)]
	}
}

// attemptBody is the body of one attempt. It hides the type of its reader from net/http.
type attemptBody struct {
	r    *bytes.Reader
	read atomic.Bool
}

func (b *attemptBody) Read(p []byte) (int, error) {
	b.read.Store(true)
	return b.r.Read(p)
}

func (b *attemptBody) Len() int     { return b.r.Len() }
func (b *attemptBody) Close() error { return nil }

// wasRead reports whether Read was called, even if the body is empty.
func (b *attemptBody) wasRead() bool { return b != nil && b.read.Load() }

// call is the state of one call. Its attempts follow one another. It has no CloseIdleConnections,
// which go-retryablehttp would use to close the connections of other calls.
type call struct {
	client   *Client
	request  *Request
	ctx      operationContext      // of its requests
	repeated retryablehttp.Request // of every attempt
	loop     retryablehttp.Client  // repeats what http does
	http     http.Client           // follows the redirects of RoundTrip
	result   Result
	first    Response      // to the first attempt
	sent     http.Header   // of the latest attempt
	timeout  time.Duration // of an attempt
	limit    string        // the setting that timeout comes from
	started  time.Time     // of the attempt; zero before it
	proof    *proof
	received bool // the loop ended with a 2xx response, which is still to be decoded
	waiting  bool // the failure allows another attempt

	redirected   bool // the attempt follows a redirect, so that it was sent
	unauthorized bool // there are no credentials for the next attempt
}

// operationContext is the context of the requests of a call.
type operationContext struct {
	context.Context
	operation string
}

func (c *operationContext) Value(key any) any {
	if key == (OperationKey{}) {
		return c.operation
	}
	return c.Context.Value(key)
}

// redirect follows the redirects of a GET to the same origin only.
func (c *call) redirect(req *http.Request, via []*http.Request) error {
	if c.request.isWrite() || len(via) > maxRedirects || req.URL.User != nil || origin(req.URL) != origin(via[0].URL) {
		return http.ErrUseLastResponse
	}
	c.redirected = true
	if c.client.limiter == nil {
		return nil
	}
	start := time.Now()
	err := c.client.limiter.wait(req.Context())
	c.started = c.started.Add(time.Since(start)) // the wait is not part of the attempt
	return err
}

// origin returns the scheme, host and port of u.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}
