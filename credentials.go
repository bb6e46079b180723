// Credentials from a source: cached, renewed, dropped after a 401.

package labhealth

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labhealth/labhealth-go/internal/transport"
	"github.com/labhealth/labhealth-go/internal/warn"
)

// Credentials authenticates requests, with a key or with a token: see [WithCredentials].
type Credentials struct {
	Redacted

	Key   Secret // a team API key or a management key
	Token Secret // an access token of the team API, sent in the Authorization header
	// Expires is the time at which the credentials become invalid. If it is zero, they are used
	// until the service rejects them.
	Expires time.Time
}

// WithCredentials is for a client with an empty key: it asks source for credentials when it needs
// them. Use it to rotate keys, or for access tokens (Teams.Credentials of package management). The
// management API accepts keys only. source must not use the client itself.
//
// The credentials are cached. They are renewed in the background, in the last fifth of their
// lifetime, but at most a minute before they expire. Without valid credentials a call waits for
// source, at most until its own context ends. If it gets none, the error is a *[TransportError]
// with [OutcomeNotSent] and [FailureCredentials]. It wraps the error of source, but never quotes
// it: log failures in source.
//
// Each attempt uses the current credentials. After a 401 the client drops them and asks source
// again. A GET is then repeated, if the credentials are different. A write is not: its error
// matches [ErrCredentialsDropped], its outcome is [OutcomeRejected], and it can be sent again.
//
// source is called by one goroutine at a time, with a context that ends after 30 seconds. Calls
// that ignore its end may still run beside the next one, up to ten. After an error source is not
// asked again for 250 ms, and longer each time, up to 10 s; until then calls fail with the same
// error. Credentials that expire in less than a second count as an error. After three rejections in
// a row of credentials that never worked, the client asks again only after such a wait. Failures
// are warnings in the log of [WithLogger] or else [slog.Default], without the text of source's
// error, at once and then ever less often. No call fails while the old credentials are valid.
func WithCredentials(source func(context.Context) (Credentials, error)) Option {
	return func(c *config) error {
		if source == nil {
			return errors.New("WithCredentials needs a function")
		}
		// A function, so that a program without this option does not link the cache.
		c.source = func(keyHeader string) authorizer {
			return (&credentialCache{source: source, keyHeader: keyHeader, logger: c.logger}).authorize
		}
		return nil
	}
}

// ErrCredentialsDropped matches the *[APIError] of a 401 after which the client dropped the
// credentials that it had from [WithCredentials]: the request can be sent again, and the next one
// has other credentials.
var ErrCredentialsDropped = errors.New("the credentials were dropped: send it again")

const (
	sourceTimeout  = 30 * time.Second       // of one call of a source
	minSourceWait  = 250 * time.Millisecond // after a failure; it doubles
	maxSourceWait  = 10 * time.Second
	maxRenewEarly  = time.Minute     // before the end of the lifetime
	maxUnusedEarly = 5 * time.Second // time for a request to reach the service
	maxRejections  = 2               // in a row, until the source is no longer asked at once
	minLifetime    = time.Second     // also bounds how often a source is asked
	maxAbandoned   = 10              // calls of a source that have not returned in time
)

// isSecret reports whether s can be sent in a header as a key or a token.
func isSecret(s string) bool { return whyNoSecret(s) == "" }

// whyNoSecret returns what is wrong with a key or a token, without quoting it, "" if it is valid.
func whyNoSecret(s string) string {
	switch {
	case s == "":
		return "is empty: is its environment variable set?"
	case strings.ContainsAny(s, "\r\n"):
		return "has a line break: remove it, for example with strings.TrimSpace"
	case isQuoted(s):
		return "is in quotes: remove them"
	case strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "has a space, or a character that is not printable ASCII: remove it"
	}
	return ""
}

// isQuoted reports whether s starts and ends with the same quote, as it may in a file of variables.
func isQuoted(s string) bool {
	return len(s) > 1 && strings.ContainsRune("\"'`", rune(s[0])) && s[0] == s[len(s)-1]
}

// credentialsError reports why there are no credentials. Its cause is behind a function, because
// fmt prints unexported fields.
type credentialsError struct {
	reason string
	cause  func() error
}

func newCredentialsError(reason string, cause error) *credentialsError {
	return &credentialsError{reason, func() error { return cause }}
}

func (e *credentialsError) Error() string { return e.reason }
func (e *credentialsError) Unwrap() error { return e.cause() }

// credential is one result of a source.
type credential struct {
	header  func() (name, value string) // behind a function, because fmt prints unexported fields
	renewAt time.Time                   // when to ask for another; zero for never
	until   time.Time                   // when it must not be used anymore; zero for never
	worked  atomic.Bool                 // the service accepted it
}

func (c *credential) equal(other *credential) bool {
	name, value := c.header()
	otherName, otherValue := other.header()
	return name == otherName && value == otherValue
}

// isDue reports whether t has come.
func isDue(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

// renewal is one call of a source.
type renewal struct {
	start time.Time
	ctx   context.Context // ends when callers stop waiting for it
	done  chan struct{}   // closed when the results are set

	credential *credential
	err        error
}

// credentialCache holds the current credential of a source.
type credentialCache struct {
	source    func(context.Context) (Credentials, error)
	keyHeader string
	logger    *slog.Logger
	warnings  warn.Log

	mu         sync.Mutex
	current    *credential // nil if there is none
	renewal    *renewal    // nil if the source is not being asked
	abandoned  int         // renewals that ignore the end of their context
	err        error       // of the latest renewal
	retryAt    time.Time   // after an error
	failures   int         // of the source, in a row
	keepUntil  time.Time   // after a 401 for a credential that never worked
	rejections int         // of credentials that never worked, in a row
}

// get returns the current credential, or waits for one until ctx ends.
func (c *credentialCache) get(ctx context.Context) (*credential, error) {
	current, r, err := c.lookUp(time.Now())
	if current != nil || err != nil {
		return current, err
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		return nil, newCredentialsError("the source of credentials did not return before the context ended", ctx.Err())
	case <-r.ctx.Done():
		select {
		case <-r.done:
		default:
			return nil, errHangs(r)
		}
	}
	return r.credential, r.err
}

func errHangs(r *renewal) error {
	return newCredentialsError("the source of credentials did not return in time", r.ctx.Err())
}

// lookUp returns a valid credential, a renewal to wait for, or the error of the latest renewal.
func (c *credentialCache) lookUp(now time.Time) (*credential, *renewal, error) {
	var hangs error
	defer func() { c.warn(hangs) }() // without the lock
	c.mu.Lock()
	defer c.mu.Unlock()
	isValid := c.current != nil && !isDue(c.current.until, now)
	if isValid && !isDue(c.current.renewAt, now) {
		return c.current, nil, nil
	}
	if r := c.renewal; r != nil && r.ctx.Err() != nil {
		c.abandoned++
		hangs = errHangs(r)
		c.failed(hangs, r.start.Add(sourceTimeout))
	}
	if c.renewal == nil && !now.Before(c.retryAt) && c.abandoned < maxAbandoned {
		c.renew()
	}
	switch {
	case isValid:
		return c.current, nil, nil
	case c.renewal == nil:
		return nil, nil, c.err
	}
	return nil, c.renewal, nil
}

// renew asks the source in its own goroutine. The caller holds the lock.
func (c *credentialCache) renew() {
	ctx, cancel := context.WithTimeout(context.Background(), sourceTimeout)
	r := &renewal{start: time.Now(), ctx: ctx, done: make(chan struct{})}
	c.renewal = r
	go func() {
		defer cancel()
		defer c.finish(r) // also if the source calls runtime.Goexit
		r.credential, r.err = c.ask(ctx)
	}()
}

// ask calls the source and checks what it returns.
func (c *credentialCache) ask(ctx context.Context) (cred *credential, err error) {
	defer func() {
		if v := recover(); v != nil {
			cause, _ := v.(error)
			cred, err = nil, newCredentialsError("the source of credentials panicked", cause)
		}
	}()
	v, err := c.source(ctx)
	if err != nil {
		return nil, newCredentialsError("the source of credentials failed", err)
	}
	return c.newCredential(v, time.Now())
}

// newCredential returns the credential for what a source returned.
func (c *credentialCache) newCredential(v Credentials, now time.Time) (*credential, error) {
	var reason string
	switch lifetime := v.Expires.Sub(now); {
	case v.Key == "" && v.Token == "":
		reason = "the source of credentials returned neither a key nor a token"
	case v.Key != "" && v.Token != "":
		reason = "the source of credentials returned both a key and a token"
	case !isSecret(string(v.Key + v.Token)):
		reason = "the source of credentials returned a key or a token that " + whyNoSecret(string(v.Key+v.Token))
	case v.Token != "" && c.keyHeader != teamKeyHeader:
		reason = "the source of credentials returned a token: the management API accepts keys only"
	case !v.Expires.IsZero() && lifetime <= 0:
		reason = "the source of credentials returned expired credentials" + checkClock
	case !v.Expires.IsZero() && lifetime < minLifetime:
		reason = "the source of credentials returned credentials that expire in less than a second" + checkClock
	default:
		name, value := c.keyHeader, string(v.Key)
		if v.Token != "" {
			name, value = "Authorization", "Bearer "+string(v.Token)
		}
		cred := &credential{header: func() (string, string) { return name, value }}
		if expires := v.Expires.Round(0); !expires.IsZero() { // the monotonic clock stops while a machine sleeps
			cred.renewAt = expires.Add(-min(lifetime/5, maxRenewEarly))
			cred.until = expires.Add(-min(lifetime/20, maxUnusedEarly))
		}
		return cred, nil
	}
	return nil, newCredentialsError(reason, nil)
}

const checkClock = ": check the clock of this system"

// finish ends a renewal and stores its result. One that was abandoned replaces no valid credential.
func (c *credentialCache) finish(r *renewal) {
	if r.credential == nil && r.err == nil {
		r.err = newCredentialsError("the source of credentials did not return", nil)
	}
	c.mu.Lock()
	now, isCurrent := time.Now(), c.renewal == r
	if !isCurrent {
		c.abandoned--
	}
	switch {
	case isCurrent && r.err != nil:
		c.failed(r.err, now)
	case isCurrent:
		c.renewal, c.err, c.retryAt, c.failures, c.current = nil, nil, time.Time{}, 0, r.credential
	case r.err == nil && (c.current == nil || isDue(c.current.until, now)):
		c.current = r.credential
	}
	c.mu.Unlock()
	close(r.done)
	if isCurrent && r.err == nil {
		c.warnings.Resolved(c.logger, sourceFails)
	} else if isCurrent {
		c.warn(r.err)
	}
}

const sourceFails = "labhealth: the source of credentials fails: log its errors in the function of WithCredentials"

// warn writes a warning about an error of a renewal, whose text quotes nothing.
func (c *credentialCache) warn(err error) {
	if err != nil {
		c.warnings.Warn(c.logger, sourceFails, slog.String("error", err.Error()))
	}
}

// failed ends the current renewal with an error. The caller holds the lock.
func (c *credentialCache) failed(err error, at time.Time) {
	c.failures++
	c.renewal, c.err, c.retryAt = nil, err, at.Add(sourceWait(c.failures))
}

// sourceWait returns how long a source is not asked after n failures.
func sourceWait(n int) time.Duration {
	return min(minSourceWait<<min(n-1, 10), maxSourceWait)
}

// drop removes a credential that the service rejected, unless another has replaced it. It reports
// whether the next call may get another one.
func (c *credentialCache) drop(rejected *credential) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != rejected {
		return true
	}
	if !rejected.worked.Load() {
		now := time.Now()
		if now.Before(c.keepUntil) {
			return false
		}
		if c.rejections++; c.rejections > maxRejections {
			c.keepUntil = now.Add(sourceWait(c.rejections - maxRejections))
		}
	}
	c.current = nil
	return true
}

// accept records that the service accepted a credential.
func (c *credentialCache) accept(accepted *credential) {
	if accepted.worked.Load() {
		return
	}
	accepted.worked.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rejections, c.keepUntil = 0, time.Time{}
}

// authorizer sets the key of a request, or lets each of its attempts ask for the credentials. The
// authorization is nil for a key that is fixed.
type authorizer func(*transport.Request) *authorization

// authorization provides the credentials for the attempts of one call.
type authorization struct {
	cache    *credentialCache
	sent     *credential // by the latest attempt
	rejected *credential // by a 401; nil if there was none
	note     string      // explains the last 401
}

// authorize sets the credential of an attempt.
func (a *authorization) authorize(ctx context.Context, h http.Header) error {
	cred, err := a.cache.get(ctx)
	if err != nil {
		return err
	}
	if a.rejected != nil && cred.equal(a.rejected) {
		a.note = "the source of credentials returned the same credentials again"
		return transport.ErrUnchanged
	}
	a.sent = cred
	h.Set(cred.header())
	return nil
}

// responded evaluates the status of an attempt. It reports whether the call may be repeated with
// another credential.
func (a *authorization) responded(statusCode int) (again bool) {
	a.note = ""
	switch {
	case statusCode == http.StatusUnauthorized:
		dropped := a.cache.drop(a.sent)
		if dropped {
			a.note = ErrCredentialsDropped.Error()
		}
		again, a.rejected = dropped, a.sent
	case statusCode >= 200 && statusCode <= 299:
		a.cache.accept(a.sent)
	}
	return again
}

// authorize is an [authorizer].
func (c *credentialCache) authorize(q *transport.Request) *authorization {
	a := &authorization{cache: c}
	q.Authorize, q.Responded = a.authorize, a.responded
	return a
}

// explain adds to the error of a call why it ended with a 401. A nil authorization adds nothing.
func (a *authorization) explain(err error) error {
	e, ok := err.(*APIError) //nolint:errorlint // not the cause of a source's error
	if a != nil && ok && e.StatusCode == http.StatusUnauthorized && e.outcome == OutcomeRejected {
		e.reason = a.note
	}
	return err
}
