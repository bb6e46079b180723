package attack

import (
	"testing"
	"testing/synctest"
)

// Without faults, an iterator requests each page once.
func TestPages(t *testing.T) {
	const pages = 4
	for _, c := range calls {
		if !c.hasCursor() {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(&schedule{Calls: []callPlan{{Method: c.name, Pages: pages}}})
			results, broken := w.run()
			for _, b := range broken {
				t.Error(b)
			}
			if n := w.calls[0].requests; n != pages {
				t.Errorf("%s: %d requests for %d pages: %v", c.name, n, pages, results[0].err)
			}
		})
	}
}
