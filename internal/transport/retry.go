// The outcome of an attempt, and whether and when another one follows.

package transport

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labhealth/labhealth-go/internal/jitter"
)

// verdict is the assessment of one attempt.
type verdict struct {
	outcome       Outcome
	retryable     bool          // the kind of failure allows another attempt
	retryAfter    time.Duration // see parseRetryAfter
	hasRetryAfter bool          // it replaces the backoff
	renewed       bool          // other credentials may be accepted
}

// checkRetry is go-retryablehttp's CheckRetry. It is called after every attempt.
func (c *call) checkRetry(ctx context.Context, resp *http.Response, err error) (bool, error) {
	r := &c.result
	r.Attempts++
	r.Err = nil
	if c.proof != nil {
		_ = c.proof.judge() // a transport may continue even if it returned a response
	}
	if err != nil {
		r.Err = newFailure("the connection failed", err)
		return c.end(ctx, c.judgeError(err), false), nil
	}
	v := c.judgeResponse(resp)
	resp.Body = http.NoBody
	if c.received {
		return false, nil // the attempt ends when the response is decoded
	}
	return c.end(ctx, v, true), nil
}

// end completes the result of an attempt, and reports whether another one follows.
func (c *call) end(ctx context.Context, v verdict, responded bool) (repeat bool) {
	r := &c.result
	r.Fault = Fault{}
	if r.Err != nil || r.Response.truncated || ctx.Err() != nil {
		r.Fault = c.fault(ctx, responded)
	}
	if c.proof != nil {
		c.proof.cancel()
	}
	r.Outcome = c.outcome(v.outcome)
	r.RetryAfter = v.retryAfter
	// The context may just have ended. The response alone would not explain why there is no other
	// attempt.
	ended := ctx.Err() != nil
	c.waiting = v.retryable && r.Attempts < c.request.Policy.Attempts && (ended || c.mayRetry(ctx, v))
	repeat = c.waiting && !ended
	c.observe(responded, repeat)
	c.started, c.redirected = time.Time{}, false
	return repeat && ctx.Err() == nil // an observer may have canceled it
}

// observe passes the attempt to the observer.
func (c *call) observe(responded, repeat bool) {
	if c.request.Observe == nil {
		return
	}
	r := &c.result
	a := Attempt{Number: r.Attempts, Outcome: r.Outcome, Err: r.Err, Fault: r.Fault, Start: c.started}
	if a.Start.IsZero() {
		a.Start = time.Now() // it failed before its RoundTrip
	}
	a.Duration = time.Since(a.Start)
	if responded {
		a.StatusCode, a.Header, a.Body = r.Response.StatusCode, r.Response.Header, r.Response.Body
		a.RequestID = r.Response.RequestID
	}
	if repeat {
		a.Repeated, a.Wait = true, c.loop.RetryWaitMin
	}
	c.request.Observe(a)
}

// outcome returns the outcome of the call after an attempt with the outcome latest.
func (c *call) outcome(latest Outcome) Outcome {
	before := c.result.Outcome
	switch {
	case c.result.Attempts == 1, latest == Applied, latest == Rejected && !c.request.isWrite():
		return latest
	case before == Applied: // a read whose response was damaged
		return Applied
	case before == Unknown: // the service may have processed the earlier attempt
		return Unknown
	case before == Rejected && latest == NotSent: // the earlier attempt was sent
		return Rejected
	}
	return latest
}

// mayRetry decides on another attempt and sets how long to wait before it.
func (c *call) mayRetry(ctx context.Context, v verdict) bool {
	p, wait := &c.request.Policy, &c.loop.RetryWaitMin
	if v.renewed { // not because of an outage
		*wait = 0
		return true
	}
	// Full jitter: clients that failed together do not retry together.
	bound := p.BaseWait
	for i := 1; i < c.result.Attempts && bound < p.MaxWait; i++ {
		bound += min(bound, p.MaxWait-bound)
	}
	*wait = jitter.Within(max(1, min(bound, p.MaxWait)))
	if v.hasRetryAfter {
		if v.retryAfter < 0 || v.retryAfter > p.RetryAfterCap {
			return false
		}
		*wait = v.retryAfter
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= *wait {
		return false
	}
	if l := c.client.limiter; l != nil && l.isTooLate(ctx, *wait) {
		return false
	}
	return c.client.budget.withdraw()
}

func (c *call) judgeError(err error) verdict {
	v := verdict{outcome: Unknown}
	if c.proof != nil && c.proof.notSent() && !c.redirected {
		v.outcome = NotSent
	}
	v.retryable = !isPermanent(err) && (!c.request.isWrite() || v.outcome == NotSent || c.request.Repeatable)
	return v
}

func (c *call) judgeResponse(resp *http.Response) verdict {
	r := &c.first
	if c.result.Attempts > 1 {
		r = new(Response)
	}
	defer func() {
		if r.open == nil {
			resp.Body.Close()
		}
	}()
	*r = Response{StatusCode: resp.StatusCode, Header: resp.Header, RequestID: c.requestID(resp.Header), Attempt: c.result.Attempts}
	c.result.Response = r
	if r.StatusCode >= 200 && r.StatusCode <= 299 {
		c.responded(r.StatusCode)
		return c.judgeSuccess(resp, r)
	}
	v := verdict{outcome: Unknown}
	v.retryAfter, v.hasRetryAfter = parseRetryAfter(resp.Header)
	if l := c.client.limiter; l != nil && r.StatusCode == http.StatusTooManyRequests &&
		v.retryAfter > 0 && v.retryAfter <= c.request.Policy.RetryAfterCap {
		l.pause(v.retryAfter)
	}
	if r.StatusCode < 200 {
		return v // a 101: the body is another protocol, without an end
	}
	var err error
	r.Body, err = io.ReadAll(io.LimitReader(resp.Body, MaxErrorBody))
	r.truncated = err != nil
	if r.StatusCode < 400 {
		if to, err := resp.Location(); err == nil {
			c.result.Err = &RedirectError{r.StatusCode, to.Host}
		}
		return v
	}
	v.outcome, v.retryable = c.judgeStatus(resp)
	if c.responded(r.StatusCode) && !c.request.isWrite() {
		v.retryable, v.renewed = true, true
	}
	return v
}

// responded passes the status of a response to Request.Responded.
func (c *call) responded(statusCode int) (again bool) {
	return c.request.Responded != nil && c.request.Responded(statusCode)
}

// judgeSuccess receives a 2xx response. If that succeeds, it is judged again when it is decoded.
func (c *call) judgeSuccess(resp *http.Response, r *Response) verdict {
	err := c.receive(resp, r)
	c.received = err == nil
	return c.judgeRead(r, err)
}

// judgeRead judges a 2xx response that was read with the result err. A truncated body of a JSON
// media type proves that the service has responded. A complete body that cannot be decoded may be
// that of a proxy.
func (c *call) judgeRead(r *Response, err error) verdict {
	write := c.request.isWrite()
	c.result.Err = err
	if err == nil {
		return verdict{outcome: Applied}
	}
	if r.isJSON() && (r.truncated || errors.Is(err, ErrTooLarge)) {
		return verdict{outcome: Applied, retryable: r.truncated && !write}
	}
	return verdict{outcome: Unknown, retryable: r.truncated && (!write || c.request.Repeatable)}
}

// judgeStatus judges a 4xx or 5xx.
func (c *call) judgeStatus(resp *http.Response) (outcome Outcome, retryable bool) {
	write, code := c.request.isWrite(), resp.StatusCode
	switch {
	case code == http.StatusNotImplemented, code == http.StatusHTTPVersionNotSupported:
		return Unknown, false
	case code >= 500, code == http.StatusRequestTimeout:
		return Unknown, !write || c.request.Repeatable
	case write && !c.proof.sentOnce(resp):
		// A transport that sends a write more than once may return a later response, such as a
		// conflict with what the first request created. If no hook saw the request, nothing is
		// certain.
		return Unknown, code == http.StatusTooManyRequests && c.request.Repeatable
	case code == http.StatusTooManyRequests:
		return Rejected, !write || !c.request.Policy.Strict
	}
	return Rejected, false
}

// parseRetryAfter reads Retry-After as seconds or as an HTTP date in any form, and reports whether
// it replaces the backoff. A date is compared with the Date of the response, because the clock of
// the service may differ from this one's. A date that has passed is negative and does not replace
// the backoff. A number that overflows is the longest duration. Any other text counts as absent.
func parseRetryAfter(h http.Header) (wait time.Duration, replaces bool) {
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
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	wait = at.Sub(now) // which saturates
	return wait, wait > 0
}

// isPermanent reports whether another attempt would fail in the same way.
func isPermanent(err error) bool {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return dns.IsNotFound
	}
	return errors.Is(err, http.ErrSchemeMismatch) || IsCertificate(err)
}
