package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// parallel is high because most of the time is waiting.
const parallel = 24

func readRows(t *testing.T) *suite {
	t.Helper()
	s, err := readSuite(root + "/conformance/faults.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Rows) < 90 {
		t.Errorf("only %d rows", len(s.Rows))
	}
	return s
}

// The tables of the documentation are what is measured, and this library passes every case.
func TestTables(t *testing.T) {
	t.Parallel()
	_, documented, _, err := page{file: resultsFile, marker: resultsMarker}.old(root)
	if err != nil {
		t.Fatal(err)
	}
	m, err := measure(t.Context(), readRows(t), documented, parallel)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range m.results[0] {
		if len(r.violations) > 0 {
			t.Errorf("%s: %s: %s", m.cases[i], r, strings.Join(r.violations, "; "))
		}
	}
	text, err := versions(root)
	if err != nil {
		t.Fatal(err)
	}
	for file, count := range map[string]string{
		"conformance/README.md": fmt.Sprintf(": %d ways", len(m.suite.Rows)),
		"docs/safety.md":        fmt.Sprintf("[All %d cases]", len(m.cases)),
	} {
		if text, err := os.ReadFile(root + "/" + file); err != nil || !strings.Contains(string(text), count) {
			t.Errorf("%s does not say %q: %v", file, count, err)
		}
	}
	for _, p := range m.pages(text) {
		_, documented, _, err := p.old(root)
		if err != nil {
			t.Fatal(err)
		}
		compareLines(t, p.file, documented, p.content)
	}
}

// compareLines reports the lines that differ.
func compareLines(t *testing.T, file, documented, measured string) {
	t.Helper()
	old, now := strings.Split(documented, "\n"), strings.Split(measured, "\n")
	if len(old) != len(now) {
		t.Errorf("%s has %d lines between its markers, want %d: run go run -C integration ./conformance -write", file, len(old), len(now))
		return
	}
	for i := range old {
		if old[i] != now[i] {
			t.Errorf("%s:\n  has      %s\n  measured %s", file, old[i], now[i])
		}
	}
}

// python returns the path of python3, or skips the test.
func python(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	return path
}

// The example client passes every case in both modes.
func TestExampleClient(t *testing.T) {
	t.Parallel()
	line := []string{python(t), root + "/conformance/example/client.py"}
	s := readRows(t)
	inLines, stop := commands(line, 8)
	defer stop()
	checkClient(t, client{label: "lines", reports: true, do: inLines}, s.cases(regexp.MustCompile("")), 8)
	checkClient(t, client{label: "calls", reports: true, do: command(line)}, s.cases(regexp.MustCompile("^status 429$")), 2)
}

func checkClient(t *testing.T, c client, cases []testCase, parallel int) {
	t.Helper()
	results := runAll(t.Context(), c, cases, parallel)
	runAgain(t.Context(), c, cases, results, parallel, func(i int) bool { return len(results[i].violations) == 0 })
	for i, r := range results {
		if r.err != nil || len(r.violations) > 0 {
			t.Errorf("%s: %s: %s: %s %v", c.label, cases[i], r, strings.Join(r.violations, "; "), r.err)
		}
	}
}

func TestExampleVerifier(t *testing.T) {
	output, err := exec.CommandContext(t.Context(), python(t), root+"/conformance/example/verify.py", root+"/conformance/signatures.json").CombinedOutput()
	if err != nil {
		t.Errorf("%v:\n%s", err, output)
	}
	t.Logf("%s", output)
}

// claim is a client that makes the call like another one, and then says something else.
func claim(do func(context.Context, call) (report, error), change func(call, *report)) client {
	return client{label: "a wrong client", reports: true, do: func(ctx context.Context, c call) (report, error) {
		r, err := do(ctx, c)
		change(c, &r)
		return r, err
	}}
}

// Clients that do or say what is wrong are caught, each in some case for the stated reason.
func TestWrongClients(t *testing.T) {
	s := readRows(t)
	twice := func(ctx context.Context, c call) (report, error) {
		if _, err := labhealthClient(ctx, c); err != nil {
			return report{}, err
		}
		return labhealthClient(ctx, c)
	}
	always := func(outcome string) func(call, *report) {
		return func(_ call, r *report) { r.Outcome = outcome }
	}
	for _, wrong := range []struct {
		name   string
		client client
		rows   string
		caught string // the start of a violation
	}{
		{"calls twice", client{reports: true, do: twice}, "^no fault$", "2 requests were processed"},
		{"always not sent", claim(labhealthClient, always("not sent")), "^status 500$", `the outcome "not sent" is false`},
		{"always rejected", claim(labhealthClient, always("rejected")), "^status 500$", `the outcome "rejected" is false`},
		{"always applied", claim(labhealthClient, always("applied")), "^status 400$", `the outcome "applied" is false`},
		{"always unknown", claim(labhealthClient, always("unknown")), "^no fault$", `the outcome is "unknown"`},
		{"reports nothing", claim(labhealthClient, always("")), "^no fault$", `the outcome is ""`},
		{"invents an ID", claim(labhealthClient, func(_ call, r *report) { r.ID = "invented" }), "^status 500$", `the service has no order "invented"`},
		{"forgets the ID", claim(labhealthClient, func(_ call, r *report) { r.ID = "" }), "^no fault$", "the ID of the order is missing"},
		{"follows redirects", client{do: plain("")}, `^a redirect \(307\) to another host$`, "another host received: key, patient"},
		{"retries everything", client{do: retryableClient}, "^503 to every request$", "5 requests, at most 1"},
		{"does not wait for Retry-After", client{do: impatient}, "^status 429, Retry-After: 1$", "a request came before"},
		{"another body in each attempt", client{do: changingBodies}, "^no fault$", "a repeated request has another body"},
	} {
		t.Run(wrong.name, func(t *testing.T) {
			cases := s.cases(regexp.MustCompile(wrong.rows))
			if len(cases) != len(callNames) {
				t.Fatalf("%d cases", len(cases))
			}
			var found []string
			for _, r := range runAll(t.Context(), wrong.client, cases, parallel) {
				if r.err != nil {
					t.Fatal(r.err)
				}
				found = append(found, r.violations...)
			}
			if !slices.ContainsFunc(found, func(v string) bool { return strings.HasPrefix(v, wrong.caught) }) {
				t.Errorf("not caught: %q", found)
			}
		})
	}
}

// A command that writes no line, or another one, fails its cases and does not end the run.
func TestCommandWithoutLine(t *testing.T) {
	cases := readRows(t).cases(regexp.MustCompile("^no fault$"))
	for _, name := range []string{"true", "cat"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skip("there is no " + name)
		}
		line := []string{path}
		if name == "cat" {
			line = append(line, root+"/LICENSE")
		}
		for i, r := range runAll(t.Context(), client{reports: true, do: command(line)}, cases, 1) {
			if r.err != nil || len(r.violations) != 1 || !strings.HasPrefix(r.violations[0], errLine.Error()) {
				t.Errorf("%s: %s: %q %v", name, cases[i], r.violations, r.err)
			}
		}
	}
}

// changingBodies makes each call twice, the second time with another body.
func changingBodies(ctx context.Context, c call) (report, error) {
	if _, err := plain("")(ctx, c); err != nil {
		return report{}, err
	}
	c.Request.Body += " "
	return plain("")(ctx, c)
}

// impatient makes each call twice, without a wait.
func impatient(ctx context.Context, c call) (report, error) {
	if _, err := plain("")(ctx, c); err != nil {
		return report{}, err
	}
	return plain("")(ctx, c)
}

// A row outside the vocabulary is not run.
func TestRowsOutsideTheVocabulary(t *testing.T) {
	expect := map[string]expectation{}
	for _, name := range callNames {
		expect[name] = expectation{Outcomes: []string{"unknown"}}
	}
	for i, r := range []row{
		{Connect: "slowly", Expect: expect},
		{Network: []fault{{Then: "explode"}}, Expect: expect},
		{Network: []fault{{Read: "half", Then: "close"}}, Expect: expect},
		{Network: []fault{{Read: "header", Commit: true, Then: "close"}}, Expect: expect},
		{Network: []fault{{Send: &response{Stop: "trailer"}}}, Expect: expect},
		{Network: []fault{{Send: &response{Framing: "none"}}}, Expect: expect},
		{Network: []fault{{Commit: true}}, Expect: expect},
		{Expect: map[string]expectation{"read": {Outcomes: []string{"unknown"}}}},
		{Expect: map[string]expectation{"read": {Outcomes: []string{"fine"}}}},
	} {
		if err := r.check(); err == nil {
			t.Errorf("row %d is accepted: %s", i, fmt.Sprint(r))
		}
	}
}
