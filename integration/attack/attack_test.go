package attack

import (
	"strings"
	"testing"
	"testing/synctest"
)

// Without faults, every call sends one request with the method of its row, and returns its commit.
func TestCalls(t *testing.T) {
	for _, c := range calls {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(&schedule{Calls: []callPlan{{Method: c.name}}})
			results, broken := w.run()
			for _, b := range broken {
				t.Error(b)
			}
			for _, r := range results {
				record := &w.calls[0]
				if r.err != nil {
					t.Errorf("%s: %v", c.name, r.err)
				} else if record.requests != 1 || len(record.commits) != 1 || record.methods[c.method] != 1 {
					t.Errorf("%s: %d requests, %d commits, %v", c.name, record.requests, len(record.commits), record.methods)
				} else if strings.Contains(c.response, "$MARK") != strings.Contains(encoded(r.value), record.commits[0]) {
					t.Errorf("%s: the value is not that of its commit: %s", c.name, encoded(r.value))
				}
			}
		})
	}
}
