package attack

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/labhealth/labhealth-go"
)

// check returns what violated an invariant.
func (w *world) check(results []outcome) (broken []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range results {
		c := &checkedCall{w: w, i: i, plan: &w.plan.Calls[i], row: callNamed(w.plan.Calls[i].Method), result: &results[i], record: &w.calls[i]}
		for _, invariant := range invariants {
			if problem := invariant(c); problem != "" {
				broken = append(broken, fmt.Sprintf("call %d, %s: %s: %v, %v", i, c.row.name, problem, c.outcome(), c.result.err))
			}
		}
	}
	for _, canary := range []string{keyCanary, patientCanary} {
		if strings.Contains(string(w.foreign), canary) {
			broken = append(broken, "another host got "+canary)
		}
	}
	if w.wrapper() == nil && w.abroad > 0 {
		broken = append(broken, fmt.Sprintf("%d connections to other hosts", w.abroad))
	}
	if problem := w.rateExceeded(); problem != "" {
		broken = append(broken, problem)
	}
	return broken
}

// checkedCall is a call that has ended, and what the service knows of it.
type checkedCall struct {
	w      *world
	i      int
	plan   *callPlan
	row    *call
	result *outcome
	record *callRecord
}

func (c *checkedCall) outcome() labhealth.Outcome { return labhealth.OutcomeOf(c.result.err) }

// invariants return what is wrong with a call, or nothing.
var invariants = []func(*checkedCall) string{
	(*checkedCall).committedTwice, (*checkedCall).falseOutcome, (*checkedCall).returnedAnother, (*checkedCall).returnedBoth,
	(*checkedCall).leaked, (*checkedCall).sentTooOften, (*checkedCall).tookTooLong,
	(*checkedCall).repeated, (*checkedCall).mistreatedWrapper, (*checkedCall).filledAnother, (*checkedCall).observedWrong, (*checkedCall).lostPage,
}

// A write is committed once, however often a wrapper tries; unless it hides what it sends.
func (c *checkedCall) committedTwice() string {
	limit := 1
	if wrapper := c.w.wrapper(); wrapper != nil && wrapper.hidden {
		limit = max(1, c.record.sent)
	}
	if commits := len(c.record.commits); c.row.isWrite() && !c.row.isIterator() && commits > limit {
		return fmt.Sprintf("%d commits", commits)
	}
	return ""
}

// An outcome never claims what is false.
func (c *checkedCall) falseOutcome() string {
	commits := len(c.record.commits)
	// Nothing is stopped that a wrapper does with a read.
	wrapper := c.w.wrapper()
	certain := (wrapper == nil || c.row.isWrite() && !wrapper.misleading) && !c.row.isIterator()
	switch o := c.outcome(); {
	case o == labhealth.OutcomeNotSent && commits > 0 && certain, o == labhealth.OutcomeRejected && commits > 0 && certain && c.row.isWrite():
		return fmt.Sprintf("%v, but %d commits", o, commits)
	case o == labhealth.OutcomeNotSent && len(c.requests()) > 0 && certain:
		return "not sent, but a request arrived"
	case o == labhealth.OutcomeApplied && commits == 0:
		return "applied, but no commit"
	}
	return ""
}

// A value is that of a commit of its call.
func (c *checkedCall) returnedAnother() string {
	if c.result.err != nil || !strings.Contains(c.row.response, "$MARK") {
		return ""
	}
	text := encoded(c.result.value)
	isIn := func(mark string) bool { return strings.Contains(text, mark+"!") }
	switch {
	case slices.ContainsFunc(c.record.commits, isIn), slices.ContainsFunc(c.record.lookups, isIn):
		return ""
	case aMark.MatchString(text):
		return "the value is that of another request: " + text
	case !c.w.plan.hasOtherBodies():
		return "the value is not that of its commit: " + text
	}
	return ""
}

var aMark = regexp.MustCompile(`mark-\d+-\d+!`)

// hasOtherBodies reports whether a body may be another one than that of a commit, or be cut so that
// nobody can see it.
func (s *schedule) hasOtherBodies() bool {
	for _, conn := range s.Conns {
		for _, x := range conn.Exchanges {
			if x.Response.Body != "" || x.Response.Status == http.StatusNoContent || x.HTTP1 != nil && x.HTTP1.hidesCuts() {
				return true
			}
		}
		if conn.HTTP2 != nil {
			return true
		}
	}
	return false
}

// A call returns a value or an error. An iterator may return elements first, and a PDF the part
// that was written.
func (c *checkedCall) returnedBoth() string {
	if _, isList := c.result.value.([]any); c.result.err == nil || c.result.value == nil || isList {
		return ""
	}
	switch encoded(c.result.value) {
	case "", "null", "0":
		return ""
	}
	if c.row.contentType() == "application/pdf" {
		return ""
	}
	return "a value beside an error: " + encoded(c.result.value)
}

// No error contains what the service sent, a key, or data of the patient.
func (c *checkedCall) leaked() string {
	if c.result.err == nil {
		return ""
	}
	text := fmt.Sprintf("%v %+v %#v", c.result.err, c.result.err, c.result.err)
	for _, canary := range []string{keyCanary, patientCanary, strings.ToLower(patientCanary), "mark-"} {
		if strings.Contains(text, canary) {
			return "the error contains " + canary
		}
	}
	return ""
}

// The attempts of a call are bounded, and a write is sent once in each.
func (c *checkedCall) sentTooOften() string {
	const maxRedirects, maxSent = 5, 2 // in one attempt of a read
	limit := c.w.plan.Client.Attempts
	if c.plan.Attempts > 0 {
		limit = c.plan.Attempts
	}
	if limit == 0 {
		limit = 3
	}
	attempts := c.result.response.Attempts
	if attempts > limit {
		return fmt.Sprintf("%d attempts, the limit is %d", attempts, limit)
	}
	if !c.row.isWrite() {
		limit *= (1 + maxRedirects) * maxSent
	}
	if requests := c.record.requests - len(c.record.lookups); c.w.wrapper() == nil && requests > limit && c.row.name != "Users.GetOrCreate" && !c.row.isIterator() {
		return fmt.Sprintf("%d requests, the limit is %d", requests, limit)
	}
	return ""
}

// A call ends when its context does, apart from the time that a wrapper takes which ignores it.
func (c *checkedCall) tookTooLong() string {
	if c.w.real {
		return ""
	}
	limit := 20 * time.Minute // of all attempts and waits
	for _, d := range []time.Duration{c.plan.Timeout, c.plan.Cancel} {
		if d > 0 {
			limit = min(limit, d)
		}
	}
	if list, ok := c.result.value.([]any); ok {
		limit += time.Duration(len(list)) * thinkTime
	}
	if c.w.plan.lingers() {
		limit += maxWriteWait
	}
	if wrapper := c.w.wrapper(); wrapper != nil && wrapper.ignoresContext {
		for _, t := range c.record.trips {
			limit += t.end.Sub(t.start)
		}
	}
	if c.result.took > limit {
		return fmt.Sprintf("it took %v, the limit is %v", c.result.took, limit)
	}
	return ""
}
