package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
)

// suite is conformance/faults.json. conformance/README.md describes its fields.
type suite struct {
	Version    int    `json:"version"`
	APIKey     string `json:"api_key"`
	Patient    string `json:"patient"` // is in the bodies, and must not reach another host
	TimeoutMS  int    `json:"timeout_ms"`
	DeadlineMS int    `json:"deadline_ms"`

	MaxRetryAfterMS int `json:"max_retry_after_ms"`

	Warm  string             `json:"warm"` // the path of the request before those of a warm row
	Calls map[string]request `json:"calls"`
	Rows  []row              `json:"rows"`
}

// callNames are the calls in the order of the tables.
var callNames = []string{"read", "import", "create", "write"}

// request is what a client sends.
type request struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"` // empty for none
}

// row describes a network, and what a client must do about it in each call.
type row struct {
	Name       string  `json:"name"`
	Connect    string  `json:"connect"` // how connections fail; empty if they do not
	Warm       bool    `json:"warm"`    // another request precedes, on a connection that is kept alive
	Network    []fault `json:"network"`
	Always     bool    `json:"always"` // the last fault repeats
	TimeoutMS  int     `json:"timeout_ms"`
	DeadlineMS int     `json:"deadline_ms"`

	MaxRetryAfterMS int `json:"max_retry_after_ms"`
	MaxAttempts     int `json:"max_attempts"` // 0 for the usual number

	Expect map[string]expectation `json:"expect"`
}

// fault is what happens to one request.
type fault struct {
	Read    string    `json:"read"`   // how much of the request is read: all of it if empty
	Commit  bool      `json:"commit"` // the service processes the request first
	DelayMS int       `json:"delay_ms"`
	WaitMS  int       `json:"wait_ms"` // how long the client must wait before the next request
	Send    *response `json:"send"`
	Then    string    `json:"then"` // what happens to the connection: it is kept if empty
}

// response is what is sent for one request.
type response struct {
	Raw     string            `json:"raw"`   // these bytes, and nothing else
	Hints   int               `json:"hints"` // informational responses before the response
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    *string           `json:"body"`    // nil for the usual response of the call
	Framing string            `json:"framing"` // how the end of the body is marked: Content-Length if empty
	Stop    string            `json:"stop"`    // the part that is sent by half, and nothing after it; empty for none
}

// expectation limits what a client may do.
type expectation struct {
	MaxRequests int      `json:"max_requests"`
	MaxCommits  int      `json:"max_commits"`
	Outcomes    []string `json:"outcomes"`
	ID          bool     `json:"id"` // the client must return the ID of the order
}

// vocabulary has the values of each field.
var vocabulary = map[string][]string{
	"connect": {"", "refused", "self-signed", "no tls", "closed in handshake", "silent in handshake"},
	"read":    {"", "nothing", "byte", "header"},
	"then":    {"", "close", "reset", "stall"},
	"framing": {"", "chunked", "close"},
	"stop":    {"", "status", "header", "body"},
	"outcome": {"not sent", "rejected", "applied", "unknown"},
}

// readSuite reads and checks a file.
func readSuite(name string) (*suite, error) {
	encoded, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.DisallowUnknownFields()
	s := new(suite)
	if err := decoder.Decode(s); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	seen := map[string]bool{}
	for i := range s.Rows {
		r := &s.Rows[i]
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", name, r.Name, err)
		}
		if seen[r.Name] {
			return nil, fmt.Errorf("%s: %s occurs twice", name, r.Name)
		}
		seen[r.Name] = true
		if r.TimeoutMS == 0 {
			r.TimeoutMS = s.TimeoutMS
		}
		if r.DeadlineMS == 0 {
			r.DeadlineMS = s.DeadlineMS
		}
		if r.MaxRetryAfterMS == 0 {
			r.MaxRetryAfterMS = s.MaxRetryAfterMS
		}
	}
	return s, nil
}

// check reports values that are not in the vocabulary, and combinations without a meaning.
func (r row) check() error {
	words := [][2]string{{"connect", r.Connect}}
	for _, f := range r.Network {
		if err := f.check(r.Warm); err != nil {
			return err
		}
		words = append(words, f.words()...)
	}
	for _, name := range callNames {
		e, ok := r.Expect[name]
		if !ok || len(e.Outcomes) == 0 {
			return fmt.Errorf("nothing is expected of %s", name)
		}
		for _, outcome := range e.Outcomes {
			words = append(words, [2]string{"outcome", outcome})
		}
	}
	for _, w := range words {
		if !slices.Contains(vocabulary[w[0]], w[1]) {
			return fmt.Errorf("%s %q is not one of %q", w[0], w[1], vocabulary[w[0]])
		}
	}
	return nil
}

// words returns the values of a fault with their fields.
func (f fault) words() [][2]string {
	words := [][2]string{{"read", f.Read}, {"then", f.Then}}
	if f.Send != nil {
		words = append(words, [2]string{"framing", f.Send.Framing}, [2]string{"stop", f.Send.Stop})
	}
	return words
}

// check reports combinations without a meaning. A warm connection has been read from.
func (f fault) check(warm bool) error {
	switch {
	case f.Read != "" && (f.Commit || f.Send != nil), warm && (f.Read == "nothing" || f.Read == "byte"):
		return fmt.Errorf("read %q excludes what else is said of the fault", f.Read)
	case f.Send == nil && f.Then == "" && f.DelayMS == 0:
		return errors.New("a fault does nothing")
	}
	return nil
}

// testCase is one call in one row.
type testCase struct {
	suite *suite
	row
	call string
}

func (c testCase) String() string { return c.Name + " (" + c.call + ")" }

// hasOwnTimes reports whether the timeouts are not the usual ones.
func (c testCase) hasOwnTimes() bool {
	return c.TimeoutMS != c.suite.TimeoutMS || c.DeadlineMS != c.suite.DeadlineMS
}

// slower returns the case with longer timeouts, if they are not the usual ones.
func (c testCase) slower(factor int) testCase {
	if c.hasOwnTimes() {
		c.TimeoutMS *= factor
		c.DeadlineMS *= factor
	}
	return c
}

// cases returns the cases of the rows whose names match.
func (s *suite) cases(names *regexp.Regexp) (list []testCase) {
	for _, r := range s.Rows {
		for _, call := range callNames {
			if names.MatchString(r.Name) {
				list = append(list, testCase{s, r, call})
			}
		}
	}
	return list
}
