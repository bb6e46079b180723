package bulk_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
)

// A wall clock that is wrong, or adjusted between two runs or during one, does not change how long
// an attempt with an unknown outcome settles: until then its order may still be created, and must
// not be created again.
func TestClockSkew(t *testing.T) {
	const day = 24 * time.Hour
	tests := []struct {
		name          string
		first, second time.Duration // the error of the clock in each run
		jump          time.Duration // its adjustment one second after the start of the second run
	}{
		{"right", 0, 0, 0},
		{"behind when the journal was written", -day, 0, 0},
		{"ahead when the journal was written", day, 0, 0},
		{"behind when the journal is read", 0, -day, 0},
		{"ahead when the journal is read", 0, day, 0},
		{"set forward", 0, 0, day},
		{"set back", 0, 0, -day},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, j := &service{}, new(bulk.Memory)
				s.onImport = func(n int, _ labhealth.ImportOrderBody) string {
					return []string{"late 100s", "", ""}[n-1]
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				_, err := bulk.Run(ctx, s.client(t), from(records("A")), j, bulk.Options{
					OnError: func(string, error) { cancel() },
					Now:     func() time.Time { return time.Now().Round(0).Add(test.first) },
				})
				if !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				start := time.Now()
				report, err := bulk.Run(t.Context(), s.client(t), from(records("A")), j, bulk.Options{
					Now: func() time.Time {
						now := time.Now().Round(0).Add(test.second)
						if time.Since(start) > time.Second {
							now = now.Add(test.jump)
						}
						return now
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				checkCounts(t, report, bulk.Report{Records: 1, Applied: 1, Found: 1})
				checkEqual(t, "orders", s.ordersBySample(), map[string]int{"A": 1})
				// The first list is for orders that exist already. It has one page, as the others
				// have two.
				if lists := s.times["list"]; lists[0] != start || lists[1].Sub(start) != 2*time.Minute {
					t.Errorf("lists at %v of a run that started at %v", lists, start)
				}
			})
		})
	}
}
