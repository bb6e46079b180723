package attack

import (
	"testing"
	"testing/synctest"
)

func TestAttack(t *testing.T) {
	for _, name := range []string{"Orders.Import", "Orders.Get", "Do GET", "Do POST"} {
		synctest.Test(t, func(t *testing.T) {
			results, broken := newWorld(&schedule{Calls: []callPlan{{Method: name}}}).run()
			for _, b := range broken {
				t.Error(b)
			}
			for _, r := range results {
				if r.err != nil {
					t.Errorf("%s: %v", name, r.err)
				}
			}
		})
	}
}
