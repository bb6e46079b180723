package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// call is what a client is asked to do. A command gets it as JSON.
type call struct {
	Row        string  `json:"row"`
	Call       string  `json:"call"`
	BaseURL    string  `json:"base_url"`
	APIKey     string  `json:"api_key"`
	Request    request `json:"request"`
	Warm       string  `json:"warm"`        // the path of a GET that precedes, empty for none
	TimeoutMS  int     `json:"timeout_ms"`  // of one attempt
	DeadlineMS int     `json:"deadline_ms"` // of the call with all its attempts

	MaxRetryAfterMS int `json:"max_retry_after_ms"` // a longer Retry-After ends the call
	MaxAttempts     int `json:"max_attempts"`       // 0 for the usual number
}

func (c call) timeout() time.Duration { return milliseconds(c.TimeoutMS) }

func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// retries returns how often a client may repeat a request that it usually repeats so often.
func (c call) retries(usual int) int {
	if c.MaxAttempts == 0 {
		return usual
	}
	return min(usual, c.MaxAttempts-1)
}

// report is what a client reports about a call.
type report struct {
	Outcome string `json:"outcome"` // empty for a client that does not report it
	ID      string `json:"id"`      // of the order, if there is one
}

// result is what a client did in a case.
type result struct {
	report
	requests, commits int
	leaked            []string // what another host received: "key", "patient", or other "bytes"
	violations        []string
	err               error // the client could not be run
}

// String returns the numbers of requests and commits, and the outcome, in the form of the tables.
func (r result) String() string {
	text := fmt.Sprintf("%d/%d", r.requests, r.commits)
	if r.Outcome != "" {
		text += " " + r.Outcome
	}
	if len(r.leaked) > 0 {
		text += ", sends " + strings.Join(r.leaked, ", ")
	}
	return text
}

// runAll runs a client in all cases, some of them at the same time.
func runAll(ctx context.Context, c client, cases []testCase, parallel int) []result {
	results := make([]result, len(cases))
	limit := make(chan struct{}, parallel)
	var running sync.WaitGroup
	for i := range cases {
		limit <- struct{}{}
		running.Go(func() {
			results[i] = run(ctx, c, cases[i])
			<-limit
		})
	}
	running.Wait()
	return results
}

// runAgain runs the cases with an unexpected result again, with longer timeouts: on a busy machine
// a request may take longer than the short timeout of a row in which the server is silent.
func runAgain(ctx context.Context, c client, cases []testCase, results []result, parallel int, isExpected func(int) bool) {
	for _, factor := range []int{8, 32} {
		var again []testCase
		var indexes []int
		for i := range cases {
			if !isExpected(i) {
				again = append(again, cases[i].slower(factor))
				indexes = append(indexes, i)
			}
		}
		for j, r := range runAll(ctx, c, again, parallel) {
			results[indexes[j]] = r
		}
	}
}

// run runs a client in one case.
func run(ctx context.Context, c client, tc testCase) result {
	s, err := startServer(tc)
	if err != nil {
		return result{err: err}
	}
	asked := call{
		Row: tc.Name, Call: tc.call, BaseURL: s.url(), APIKey: tc.suite.APIKey, Request: tc.suite.Calls[tc.call],
		TimeoutMS: tc.TimeoutMS, DeadlineMS: tc.DeadlineMS,
		MaxRetryAfterMS: tc.MaxRetryAfterMS, MaxAttempts: tc.MaxAttempts,
	}
	if tc.Warm {
		asked.Warm = tc.suite.Warm
	}
	limited, cancel := context.WithTimeout(ctx, milliseconds(tc.DeadlineMS))
	defer cancel()
	reported, err := c.do(limited, asked)
	s.stop()
	r := result{report: reported, requests: s.requests, commits: s.commits, err: err}
	if leaked := s.leaked.Bytes(); len(leaked) > 0 {
		for name, secret := range map[string]string{"key": tc.suite.APIKey, "patient": tc.suite.Patient} {
			if bytes.Contains(leaked, []byte(secret)) {
				r.leaked = append(r.leaked, name)
			}
		}
		if slices.Sort(r.leaked); len(r.leaked) == 0 {
			r.leaked = []string{"bytes"}
		}
	}
	if errors.Is(err, errLine) {
		r.err, r.violations = nil, []string{err.Error()}
		return r
	}
	r.judge(tc, s, c.reports)
	return r
}

// check is something that a client must not do, and whether it did it.
type check struct {
	violated bool
	text     string
}

// judge lists what a client did that it must not do. What it says counts if it reports an outcome.
func (r *result) judge(tc testCase, s *server, reports bool) {
	checks := r.checkRequests(tc.Expect[tc.call], s)
	if reports {
		checks = append(checks, r.checkOutcome(tc)...)
	}
	for _, c := range checks {
		if c.violated {
			r.violations = append(r.violations, c.text)
		}
	}
}

// checkRequests compares what a client sent, and the ID that it returned, with what the server saw.
func (r *result) checkRequests(want expectation, s *server) []check {
	return []check{
		{r.requests > want.MaxRequests, fmt.Sprintf("%d requests, at most %d are allowed", r.requests, want.MaxRequests)},
		{r.commits > want.MaxCommits, fmt.Sprintf("%d requests were processed, at most %d may be", r.commits, want.MaxCommits)},
		{len(r.leaked) > 0, "another host received: " + strings.Join(r.leaked, ", ")},
		{s.early, "a request came before the time of Retry-After"},
		{s.changed, "a repeated request has another body"},
		{r.ID != "" && !slices.Contains(s.ids, r.ID), fmt.Sprintf("the service has no order %q", r.ID)},
		{want.ID && r.ID == "", "the ID of the order is missing"},
	}
}

// checkOutcome compares the outcome with what is expected, and that of a write with what happened.
func (r *result) checkOutcome(tc testCase) []check {
	want := tc.Expect[tc.call].Outcomes
	isFalse := map[string]bool{"not sent": r.requests > 0, "rejected": r.commits > 0, "applied": r.commits == 0}
	return []check{
		{!slices.Contains(want, r.Outcome), fmt.Sprintf("the outcome is %q, allowed are %q", r.Outcome, want)},
		{tc.call != "read" && isFalse[r.Outcome],
			fmt.Sprintf("the outcome %q is false: %d requests, %d processed", r.Outcome, r.requests, r.commits)},
	}
}
