package attack

import (
	"testing"
	"testing/synctest"
)

// Without faults, an iterator requests each page once, whether or not it requests pages ahead.
func TestPages(t *testing.T) {
	const pages = 4
	for _, c := range calls {
		if !c.hasCursor() {
			continue
		}
		for _, prefetch := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(&schedule{Calls: []callPlan{{Method: c.name, Pages: pages, Prefetch: prefetch}}})
				results, broken := w.run()
				for _, b := range broken {
					t.Errorf("prefetch %t: %s", prefetch, b)
				}
				if n := w.calls[0].requests; n != pages {
					t.Errorf("%s, prefetch %t: %d requests for %d pages: %v", c.name, prefetch, n, pages, results[0].err)
				}
			})
		}
	}
}
