package attack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labhealth/labhealth-go"
)

// receipt is a request whose header arrived.
type receipt struct {
	at         time.Time
	text       string // what does not differ between the requests of a write
	key        string // for idempotency
	filler     int
	isLookup   bool
	status     int // that the server responds with, unless it gives up
	retryAfter string
}

// trip is a RoundTrip of the outermost http.RoundTripper, with the response until its body is
// closed.
type trip struct {
	ctx        context.Context
	isLookup   bool
	start, end time.Time // end is zero for a body that is open
	commits    int       // of the call when it started
	isLeft     bool      // its context had not ended when the call returned
}

// callKey is the context key of the number of a call.
type callKey struct{}

// observe is the observer of attempts.
func (w *world) observe(ctx context.Context, a labhealth.Attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i, ok := ctx.Value(callKey{}).(int); ok {
		w.calls[i].observed = append(w.calls[i].observed, a)
	}
}

// recorded records the requests that the client passes to a wrapper.
func (w *world) recorded(inner http.RoundTripper) roundTripper {
	return func(r *http.Request) (*http.Response, error) {
		i, ok := r.Context().Value(callKey{}).(int)
		if !ok {
			return inner.RoundTrip(r)
		}
		w.mu.Lock()
		record := &w.calls[i]
		isLookup := callNamed(w.plan.Calls[i].Method).isWrite() && (r.Method == http.MethodGet || r.Method == http.MethodHead)
		t := &trip{ctx: r.Context(), isLookup: isLookup, start: time.Now(), commits: len(record.commits)}
		record.trips = append(record.trips, t)
		w.mu.Unlock()
		end := func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			t.end = time.Now()
		}
		resp, err := inner.RoundTrip(r)
		if resp == nil || resp.Body == nil || resp.StatusCode == http.StatusSwitchingProtocols {
			end()
			return resp, err
		}
		resp.Body = &closing{resp.Body, end}
		return resp, err
	}
}

// leave records which contexts the call that has just returned leaves behind. Its own context ends
// later.
func (w *world) leave(i int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.calls[i].trips {
		t.isLeft = t.ctx.Err() == nil
	}
}

// requests returns the requests that arrived, apart from the reads of a write.
func (c *checkedCall) requests() []receipt {
	return slices.DeleteFunc(slices.Clone(c.record.received), func(r receipt) bool { return r.isLookup })
}

// A write is sent again only after a 429, not before its Retry-After has passed, and unchanged.
func (c *checkedCall) repeated() string {
	if !c.row.isWrite() || c.row.isIterator() || c.row.name == "Users.GetOrCreate" {
		return ""
	}
	requests := c.requests()
	for i, r := range requests {
		switch {
		case (r.key != "") != c.plan.Idempotency, r.filler != c.plan.Filler:
			return fmt.Sprintf("request %d has other options", i+1)
		case i == 0:
			continue
		case r.text != requests[0].text:
			return fmt.Sprintf("request %d differs from the first: %s, then %s", i+1, requests[0].text, r.text)
		}
		before := requests[i-1]
		earliest, never := c.retryTime(before)
		switch {
		case c.plan.Idempotency || c.w.wrapper() != nil:
		case before.status != http.StatusTooManyRequests:
			return fmt.Sprintf("repeated after a %d", before.status)
		case c.w.plan.Client.Strict:
			return "repeated although the policy is strict"
		case never, r.at.Before(earliest):
			return fmt.Sprintf("repeated %v after a 429 with Retry-After %s", r.at.Sub(before.at), before.retryAfter)
		}
	}
	return ""
}

// retryTime returns when a request may be sent again after r, whose Retry-After may also be one
// that a client does not wait for: it is negative, or too long.
func (c *checkedCall) retryTime(r receipt) (earliest time.Time, never bool) {
	if date, err := http.ParseTime(r.retryAfter); err == nil {
		return date, date.Sub(r.at) > cmp.Or(c.w.plan.Client.RetryAfter, time.Minute)
	}
	seconds, err := strconv.ParseInt(r.retryAfter, 10, 32)
	if err != nil {
		return r.at, errors.Is(err, strconv.ErrRange)
	}
	wait := time.Duration(seconds) * time.Second
	return r.at.Add(wait), wait < 0 || wait > cmp.Or(c.w.plan.Client.RetryAfter, time.Minute)
}

// Whatever a wrapper hides: no write is passed to it again after a commit, nor after the end of
// the call's context, and everything that it returned is closed. A redirect of a read may be
// followed after the end, if the wrapper ignores that.
func (c *checkedCall) mistreatedWrapper() string {
	wrapper, end := c.w.wrapper(), c.contextEnd()
	for i, t := range c.record.trips {
		isRepeated := i > 0 && c.row.isWrite() && !t.isLookup && !c.row.isIterator() && !c.plan.Idempotency
		switch {
		case isRepeated && !wrapper.misleading && t.commits > 0:
			return fmt.Sprintf("attempt %d started after %d commits", i+1, t.commits)
		case !c.w.real && c.row.isWrite() && end > 0 && t.start.Sub(c.result.start) > end:
			return fmt.Sprintf("attempt %d started after the end of the context", i+1)
		case t.end.IsZero():
			return fmt.Sprintf("the body of the response to attempt %d was not closed", i+1)
		case t.isLeft:
			return fmt.Sprintf("the context of attempt %d was not canceled", i+1)
		}
	}
	return ""
}

// contextEnd returns how long the context of a call lasts, 0 for no limit.
func (c *checkedCall) contextEnd() time.Duration {
	if c.plan.Timeout > 0 && c.plan.Cancel > 0 {
		return min(c.plan.Timeout, c.plan.Cancel)
	}
	return max(c.plan.Timeout, c.plan.Cancel)
}

var markOfCall = regexp.MustCompile(`mark-(\d+)-\d+`)

// maxErrorBody is how much of the body of an error is kept.
const maxErrorBody = 64 << 10

// limitedBody is a body that a call leaves behind.
type limitedBody struct {
	text  []byte
	limit int64 // of its bytes
}

// The bodies that a call leaves behind are its own, and within the limits.
func (c *checkedCall) filledAnother() string {
	success := cmp.Or(c.w.plan.Client.BodyLimit, 64<<20) // the largest limit of an operation
	response := c.result.response
	bodies := []limitedBody{{response.Body, maxErrorBody}}
	if response.StatusCode >= 200 && response.StatusCode <= 299 {
		bodies[0].limit = success
	}
	if e, ok := errors.AsType[*labhealth.APIError](c.result.err); ok {
		bodies = append(bodies, limitedBody{e.Body(), maxErrorBody})
	}
	if e, ok := errors.AsType[*labhealth.DecodeError](c.result.err); ok {
		bodies = append(bodies, limitedBody{e.Body(), success})
	}
	for i, b := range bodies {
		for _, mark := range markOfCall.FindAllSubmatch(b.text, -1) {
			if string(mark[1]) != strconv.Itoa(c.i) {
				return fmt.Sprintf("body %d is that of another call: %s", i, mark[0])
			}
		}
		if int64(len(b.text)) > b.limit {
			return fmt.Sprintf("body %d has %d bytes, the limit is %d", i, len(b.text), b.limit)
		}
	}
	if c.result.err == nil && !c.row.isIterator() && c.row.contentType() == "application/json" {
		if mark := aMark.FindString(encoded(c.result.value)); !strings.Contains(string(response.Body), mark) {
			return "the response is not that of the value"
		}
	}
	return ""
}

// attemptLimit returns how long an attempt may take, together with its redirects.
func (c *checkedCall) attemptLimit() time.Duration {
	p := &c.w.plan.Client
	wrapper := c.w.wrapper()
	if c.w.real || wrapper != nil && wrapper.ignoresContext {
		return math.MaxInt64
	}
	limit := cmp.Or(p.Timeout, time.Minute)
	if c.row.name == "Users.Refresh" {
		limit = max(limit, 25*time.Second) // the service may take 10 seconds
	}
	if p.HTTPTimeout > 0 {
		limit = min(limit, p.HTTPTimeout)
	}
	if c.w.plan.lingers() {
		limit += maxWriteWait
	}
	return limit
}

// An observer gets each attempt once, in order, and each ends at its deadline.
func (c *checkedCall) observedWrong() string {
	if !c.w.plan.Client.Observer {
		return ""
	}
	number, follows := 0, false
	for _, a := range c.record.observed {
		switch {
		case follows && a.Number != number+1, !follows && a.Number != 1:
			return fmt.Sprintf("attempt %d was observed after attempt %d", a.Number, number)
		case a.Duration > c.attemptLimit():
			return fmt.Sprintf("attempt %d took %v, the limit is %v", a.Number, a.Duration, c.attemptLimit())
		}
		number, follows = a.Number, a.Repeated
	}
	isOne := !c.row.isIterator() && c.row.name != "Users.GetOrCreate"
	if n := c.result.response.Attempts; isOne && n != len(c.record.observed) {
		return fmt.Sprintf("%d attempts, but %d were observed", n, len(c.record.observed))
	}
	return ""
}

// An iterator without an error has returned every page once.
func (c *checkedCall) lostPage() string {
	if c.result.err != nil || !c.row.hasCursor() || c.w.plan.hasOtherBodies() {
		return ""
	}
	list, _ := c.result.value.([]any)
	marks := map[string]bool{}
	for _, element := range list {
		marks[aMark.FindString(encoded(element))] = true
	}
	if want := max(1, c.plan.Pages); len(list) != want || len(marks) != want {
		return fmt.Sprintf("%d elements of %d pages, there are %d", len(list), len(marks), want)
	}
	return ""
}

// Limits of a client with RateLimit. An attempt may be early by the time that a slot may be unused.
const (
	rateInterval = 20 * time.Millisecond
	rateBurst    = 3
	maxUnused    = 10 * time.Millisecond
)

// rateExceeded returns what is wrong with the times of all attempts. A redirect changes them.
func (w *world) rateExceeded() string {
	if !w.plan.Client.RateLimit || !w.plan.Client.Observer || w.real {
		return ""
	}
	for _, conn := range w.plan.Conns {
		if slices.ContainsFunc(conn.Exchanges, func(x exchange) bool { return x.Response.Location != "" }) {
			return ""
		}
	}
	var starts []time.Time
	for i := range w.calls {
		for _, a := range w.calls[i].observed {
			starts = append(starts, a.Start)
		}
	}
	slices.SortFunc(starts, time.Time.Compare)
	for i := rateBurst; i < len(starts); i++ {
		if d := starts[i].Sub(starts[i-rateBurst]); d < rateInterval-maxUnused {
			return fmt.Sprintf("%d attempts within %v", rateBurst+1, d)
		}
	}
	return ""
}
