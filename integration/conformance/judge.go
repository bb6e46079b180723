package main

import (
	"bytes"
	"context"
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
}

func (c call) timeout() time.Duration { return time.Duration(c.TimeoutMS) * time.Millisecond }

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
	}
	if tc.Warm {
		asked.Warm = tc.suite.Warm
	}
	limited, cancel := context.WithTimeout(ctx, time.Duration(tc.DeadlineMS)*time.Millisecond)
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
	r.judge(tc, s, c.reports)
	return r
}

// judge lists what a client did that it must not do.
func (r *result) judge(tc testCase, s *server, reports bool) {
	want := tc.Expect[tc.call]
	violate := func(format string, args ...any) { r.violations = append(r.violations, fmt.Sprintf(format, args...)) }
	if r.requests > want.MaxRequests {
		violate("%d requests, at most %d are allowed", r.requests, want.MaxRequests)
	}
	if r.commits > want.MaxCommits {
		violate("%d requests were processed, at most %d may be", r.commits, want.MaxCommits)
	}
	if len(r.leaked) > 0 {
		violate("another host received: %s", strings.Join(r.leaked, ", "))
	}
	if s.changed {
		violate("a repeated request has another body")
	}
	if r.ID != "" && !slices.Contains(s.ids, r.ID) {
		violate("the service has no order %q", r.ID)
	}
	if want.ID && r.ID == "" {
		violate("the ID of the order is missing")
	}
	if !reports {
		return
	}
	if !slices.Contains(want.Outcomes, r.Outcome) {
		violate("the outcome is %q, allowed are %q", r.Outcome, want.Outcomes)
	}
	if tc.call == "read" {
		return
	}
	switch {
	case r.Outcome == "not sent" && r.requests > 0, r.Outcome == "rejected" && r.commits > 0, r.Outcome == "applied" && r.commits == 0:
		violate("the outcome %q is false: %d requests, %d processed", r.Outcome, r.requests, r.commits)
	}
}
