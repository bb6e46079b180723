// Package transport sends one call and says what became of it. It keeps the loop, the waiting and the body rewind of
// go-retryablehttp and replaces what is harmful in its defaults: which attempts are repeated, how long it waits, and what it
// reports. A write is repeated only if it provably never reached the service, or if the service refused it with a 429.
package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// Outcome is what became of a request at the service.
type Outcome uint8

const (
	Unknown  Outcome = iota // it may have been carried out
	NotSent                 // it provably never reached the service
	Rejected                // the service refused it
	Applied                 // the service carried it out
)

// Policy is how a call is repeated and how long it may take.
type Policy struct {
	Attempts          int           // at most, the first included
	BaseWait, MaxWait time.Duration // bounds of the back-off
	RetryAfterCap     time.Duration // a longer Retry-After is not waited for
	ReadTimeout       time.Duration // of one attempt of a GET or HEAD; positive
	WriteTimeout      time.Duration // of one attempt of anything else; positive
	Strict            bool          // a write is repeated only if it was provably not sent
}

// Limits of what is read.
const (
	MaxErrorBody = 64 << 10
	maxHeader    = 256 << 10
	maxRedirects = 5
)

// Client sends requests through one http.Client and shares a retry budget among them.
type Client struct {
	http           http.Client
	direct, tunnel *http.Transport                       // see watch; nil if the http.RoundTripper is no *http.Transport
	proxy          func(*http.Request) (*url.URL, error) // which proxy a request goes through, if any
	budget         *budget
}

// NewClient returns a Client over a copy of user, or over a transport of its own if user is nil. A
// *http.Transport is copied too, because it has to be watched.
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

// CloseIdleConnections closes idle connections of the client's own transports. One that was passed
// in is left alone.
func (c *Client) CloseIdleConnections() {
	if c.direct != nil {
		c.direct.CloseIdleConnections()
		c.tunnel.CloseIdleConnections()
	}
}

// Request is one call.
type Request struct {
	Method     string
	URL        string
	Header     http.Header
	Body       []byte
	MaxBody    int64 // cap of a 2xx body, after decompression
	Policy     Policy
	Repeatable bool // a write that carries an idempotency key: an unknown outcome may be repeated

	// Read reads a 2xx answer whose body came in full. An error makes the call fail.
	Read func(*Answer) error
	// Stream takes a 2xx body instead of Read. It sets Truncated if the body failed before anything was passed on, which is when
	// another attempt makes sense.
	Stream func(*Answer, io.Reader) error
	// Observe is told of each attempt when it is over; it may be nil.
	Observe func(Attempt)
}

func (q *Request) isWrite() bool { return q.Method != http.MethodGet && q.Method != http.MethodHead }

// Answer is what the service answered.
type Answer struct {
	Status    int
	Header    http.Header
	Body      []byte
	Attempt   int  // which attempt it answered
	Truncated bool // the body ended too early; Read may set it too
}

// IsJSON reports whether the content type is a JSON one.
func (a *Answer) IsJSON() bool {
	t, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	return t == "application/json" || strings.HasSuffix(t, "+json")
}

// Attempt is one attempt, for observers.
type Attempt struct {
	Number   int
	Status   int // 0 if no answer came
	Header   http.Header
	Duration time.Duration
	Outcome  Outcome
}

// Result is what became of a call.
type Result struct {
	Outcome    Outcome
	Attempts   int
	Answer     *Answer       // the last answer that came, if any
	Err        error         // why the last attempt failed, if it was not for the answer's status
	Ended      error         // the context's error, if the call failed because it ended
	RetryAfter time.Duration // what the last answer asked for; negative if that time has passed
}

// ErrTooLarge says that a body is larger than the cap.
var ErrTooLarge = errors.New("the answer is larger than the limit")

// failure is an error of net/http without its text, which may quote addresses and bytes that came. errors.Is and errors.As find
// what caused it. The closure hides that from fmt, which prints unexported fields.
type failure struct {
	text  string
	cause func() error
}

func failed(text string, err error) *failure {
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	return &failure{text, func() error { return err }}
}

func (f *failure) Error() string        { return f.text }
func (f *failure) Is(target error) bool { return errors.Is(f.cause(), target) }
func (f *failure) As(target any) bool   { return errors.As(f.cause(), target) }

// RedirectError says that the service answered with a redirect that was not followed.
type RedirectError struct {
	Status int
	Host   string // where it led
}

func (e *RedirectError) Error() string { return "redirect not followed" }

// Do sends q until it succeeds, fails for good, or may not be repeated.
func (c *Client) Do(ctx context.Context, q *Request) *Result {
	call := &call{client: c, request: q}
	c.budget.deposit()
	if err := ctx.Err(); err != nil {
		return &Result{Outcome: NotSent, Ended: err}
	}
	// The body is a reader that net/http does not know, also when there is nothing to say: net/http sends a request again by
	// itself if it has no body or knows how to get it anew.
	var body any
	if q.isWrite() {
		text := bytes.Clone(q.Body) // the caller may change its own while a retry waits
		body = retryablehttp.ReaderFunc(func() (io.Reader, error) { return &once{r: bytes.NewReader(text)}, nil })
	}
	req, err := retryablehttp.NewRequestWithContext(ctx, q.Method, q.URL, body)
	if err != nil || req.Request.URL.String() != q.URL { // net/url drops escapes from a path that has any character it escapes itself
		return &Result{Outcome: NotSent, Err: errors.New("the address is not valid")}
	}
	req.GetBody = nil
	if q.isWrite() && len(q.Body) == 0 {
		req.ContentLength = -1 // a transport that replaces the body has to read it to see that it is empty
	}
	req.Header = q.Header.Clone()
	hc := c.http
	hc.Transport = call
	hc.CheckRedirect = call.redirect
	call.timeout = q.Policy.ReadTimeout
	if q.isWrite() {
		call.timeout = q.Policy.WriteTimeout
	}
	if hc.Timeout > 0 {
		call.timeout = min(call.timeout, hc.Timeout)
	}
	hc.Timeout = 0 // RoundTrip sets the deadline
	loop := retryablehttp.Client{
		HTTPClient:   &hc,
		RetryMax:     math.MaxInt32, // check decides
		CheckRetry:   call.check,
		Backoff:      func(_, _ time.Duration, _ int, _ *http.Response) time.Duration { return call.wait },
		ErrorHandler: func(r *http.Response, err error, _ int) (*http.Response, error) { return r, err },
		PrepareRetry: func(r *http.Request) error {
			r.Header = q.Header.Clone() // a cookie jar adds to it at each attempt
			return nil
		},
	}
	_, _ = loop.Do(req) // check has seen all there is
	if r := &call.result; call.waiting || r.Err != nil || (r.Answer != nil && r.Answer.Truncated) {
		r.Ended = ctx.Err()
	}
	return &call.result
}

// once is the body of one attempt. It hides what kind of reader it holds.
type once struct {
	r    *bytes.Reader
	read atomic.Bool
}

func (o *once) Read(p []byte) (int, error) {
	o.read.Store(true)
	return o.r.Read(p)
}

func (o *once) Len() int     { return o.r.Len() }
func (o *once) Close() error { return nil }

// wasRead reports whether anybody has read the body, even if there is nothing in it.
func (o *once) wasRead() bool { return o != nil && o.read.Load() }

// call is the state of one call. Its attempts follow one another.
type call struct {
	client  *Client
	request *Request
	result  Result
	timeout time.Duration // of an attempt
	started time.Time     // of the attempt; zero before it
	proof   *proof
	wait    time.Duration
	waiting bool
}

// redirect follows a GET to the same origin and nothing else.
func (c *call) redirect(req *http.Request, via []*http.Request) error {
	if c.request.isWrite() || len(via) > maxRedirects || req.URL.User != nil || origin(req.URL) != origin(via[0].URL) {
		return http.ErrUseLastResponse
	}
	return nil
}

// origin is the scheme, the host and the port.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// verdict is what one attempt came to.
type verdict struct {
	outcome Outcome
	again   bool          // whether the kind of failure allows another attempt
	after   time.Duration // Retry-After
	asked   bool          // whether there was one
}

// check is go-retryablehttp's CheckRetry.
func (c *call) check(ctx context.Context, resp *http.Response, err error) (bool, error) {
	r := &c.result
	r.Attempts++
	r.Err, r.RetryAfter = nil, 0
	if c.proof != nil {
		_ = c.proof.judge() // a transport may go on without an error, and without a response
	}
	var v verdict
	if err != nil {
		r.Err = failed("the connection failed", err)
		v = c.judgeError(err)
	} else {
		v = c.judgeAnswer(resp)
		resp.Body = http.NoBody
	}
	if c.proof != nil {
		c.proof.cancel()
	}
	r.Outcome = c.outcome(v.outcome)
	r.RetryAfter = v.after
	if c.request.Observe != nil {
		a := Attempt{Number: r.Attempts, Duration: time.Since(c.started), Outcome: r.Outcome}
		if err == nil {
			a.Status, a.Header = r.Answer.Status, r.Answer.Header
		}
		c.request.Observe(a)
	}
	c.started = time.Time{}
	ended := ctx.Err() != nil // perhaps just now; the answer alone would not say why there was no other attempt
	c.waiting = v.again && r.Attempts < c.request.Policy.Attempts && (ended || c.mayRepeat(ctx, v))
	return c.waiting && !ended, nil
}

// outcome is what became of the call after an attempt with the outcome now.
func (c *call) outcome(now Outcome) Outcome {
	before := c.result.Outcome
	switch {
	case c.result.Attempts == 1, now == Applied, now == Rejected && !c.request.isWrite():
		return now
	case before == Unknown: // that attempt may have been carried out, whatever became of this one
		return Unknown
	case before == Rejected && now == NotSent: // it was sent
		return Rejected
	}
	return now
}

// mayRepeat decides on another attempt and how long to wait before it.
func (c *call) mayRepeat(ctx context.Context, v verdict) bool {
	p := &c.request.Policy
	// Full jitter: clients that failed together do not come back together.
	most := p.BaseWait
	for i := 1; i < c.result.Attempts && most < p.MaxWait; i++ {
		most += min(most, p.MaxWait-most)
	}
	c.wait = time.Duration(rand.Int64N(max(1, int64(min(most, p.MaxWait)))))
	if v.asked {
		if v.after < 0 || v.after > p.RetryAfterCap {
			return false
		}
		c.wait = v.after
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= c.wait {
		return false
	}
	return c.client.budget.withdraw()
}

func (c *call) judgeError(err error) verdict {
	v := verdict{outcome: Unknown}
	if c.proof != nil && c.proof.notSent() {
		v.outcome = NotSent
	}
	v.again = !permanent(err) && (!c.request.isWrite() || v.outcome == NotSent || c.request.Repeatable)
	return v
}

func (c *call) judgeAnswer(resp *http.Response) verdict {
	defer resp.Body.Close()
	write := c.request.isWrite()
	a := &Answer{Status: resp.StatusCode, Header: resp.Header, Attempt: c.result.Attempts}
	c.result.Answer = a
	if a.Status >= 200 && a.Status <= 299 {
		err := c.readBody(resp, a)
		c.result.Err = err
		// A body that began as the JSON of a 2xx answer shows that the service has answered. A whole one that makes no sense
		// may come from anybody on the way.
		shown := a.IsJSON() && (a.Truncated || errors.Is(err, ErrTooLarge))
		if err == nil || shown {
			return verdict{outcome: Applied, again: err != nil && a.Truncated && !write}
		}
		return verdict{outcome: Unknown, again: a.Truncated && (!write || c.request.Repeatable)}
	}
	v := verdict{outcome: Unknown}
	v.after, v.asked = retryAfter(resp.Header)
	if a.Status < 200 {
		return v // another protocol follows, without end
	}
	var err error
	a.Body, err = io.ReadAll(io.LimitReader(resp.Body, MaxErrorBody))
	a.Truncated = err != nil
	switch {
	case a.Status < 400:
		if to, err := resp.Location(); err == nil {
			c.result.Err = &RedirectError{a.Status, to.Host}
		}
	case a.Status >= 500 || a.Status == http.StatusRequestTimeout:
		v.again = a.Status != http.StatusNotImplemented && a.Status != http.StatusHTTPVersionNotSupported &&
			(!write || c.request.Repeatable)
	case write && !c.proof.sentOnce(resp):
		// A transport that sends a write more than once may return a later response, such as a
		// conflict with what the first one made. What it did with one that no hook saw is not
		// known.
		v.again = a.Status == http.StatusTooManyRequests && c.request.Repeatable
	case a.Status == http.StatusTooManyRequests:
		v.outcome = Rejected
		v.again = !write || !c.request.Policy.Strict
	case a.Status >= 400:
		v.outcome = Rejected
	}
	return v
}

// readBody reads a 2xx body and what it says.
func (c *call) readBody(resp *http.Response, a *Answer) (err error) {
	if c.request.Stream != nil {
		return c.request.Stream(a, resp.Body)
	}
	a.Body, err = readAll(resp, c.request.MaxBody)
	switch {
	case errors.Is(err, ErrTooLarge):
		return err
	case err != nil:
		a.Truncated = true
		return failed("the answer ended too early", err)
	}
	return c.request.Read(a)
}

// readAll reads the body to its end, so that the connection can be used again. It takes no more than three times the limit of
// memory, however much comes.
func readAll(resp *http.Response, limit int64) ([]byte, error) {
	size := int64(4 << 10)
	if n := resp.ContentLength; n >= 0 {
		size = min(n, 1<<20) + 1 // one more, so that the end is found without growing
	}
	limit = min(limit, math.MaxInt-1)
	b := make([]byte, 0, min(size, limit+1))
	for {
		n, err := resp.Body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case int64(len(b)) > limit:
			return nil, ErrTooLarge
		case err == io.EOF:
			return b, nil
		case err != nil:
			return b, err
		case len(b) == cap(b):
			b = append(make([]byte, 0, min(2*int64(cap(b)), limit+1)), b...)
		}
	}
}

// retryAfter reads Retry-After as seconds or as a date in any form of HTTP. A time that has passed is negative; one too far
// away to be told is the longest there is. Other text is as if there were none.
func retryAfter(h http.Header) (time.Duration, bool) {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if text == "" {
		return 0, false
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		switch {
		case n < 0:
			return -1, true
		case n > int64(math.MaxInt64/time.Second):
			return math.MaxInt64, true
		}
		return time.Duration(n) * time.Second, true
	}
	if t, err := http.ParseTime(text); err == nil {
		return time.Until(t), true // Until saturates
	}
	return 0, false
}
