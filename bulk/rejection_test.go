package bulk_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
)

const allRejected = "bulk: every record so far (%d) was rejected with status %d and no field errors, and none is recorded as rejected: " +
	"check the base URL and whether the team may import orders; if the orders may exist already, start the run again with the same journal; " +
	"if each record is wrong, see Options.RejectionLimit: " +
	"labhealth: POST /v3/order/import: %d %s (request req-1)"

// A run whose first records are all rejected with the same status, as with a wrong base URL, stops
// and records none of them as rejected, so that the corrected run sends them.
func TestRejectionOfEveryRecord(t *testing.T) {
	tests := []struct {
		name    string
		status  int
		records int
		opts    bulk.Options
		before  int // records that an earlier run applied
		err     string
		want    bulk.Report
		most    int // requests
	}{
		{"wrong path", 404, 300, bulk.Options{}, 0, fmt.Sprintf(allRejected, 10, 404, 404, "Not Found: rejected (the path or an ID does not exist: check the base URL, WithPath, the IDs and the environment; APIError.Message has the service's text)"), bulk.Report{Pending: 300}, 13},
		{"wrong path, one worker", 404, 300, bulk.Options{Concurrency: 1}, 0, fmt.Sprintf(allRejected, 10, 404, 404, "Not Found: rejected (the path or an ID does not exist: check the base URL, WithPath, the IDs and the environment; APIError.Message has the service's text)"),
			bulk.Report{Pending: 300}, 10},
		{"wrong path, many workers", 404, 300, bulk.Options{Concurrency: 64}, 0, fmt.Sprintf(allRejected, 10, 404, 404, "Not Found: rejected (the path or an ID does not exist: check the base URL, WithPath, the IDs and the environment; APIError.Message has the service's text)"),
			bulk.Report{Pending: 300}, 73},
		{"not enabled", 400, 300, bulk.Options{}, 0, fmt.Sprintf(allRejected, 10, 400, 400, "Bad Request: rejected (APIError.Message has the service's text)"), bulk.Report{Pending: 300}, 13},
		{"another limit", 400, 300, bulk.Options{RejectionLimit: 3, Concurrency: 1}, 0, fmt.Sprintf(allRejected, 3, 400, 400, "Bad Request: rejected (APIError.Message has the service's text)"),
			bulk.Report{Pending: 300}, 3},
		{"resumed", 404, 300, bulk.Options{}, 100, fmt.Sprintf(allRejected, 10, 404, 404, "Not Found: rejected (the path or an ID does not exist: check the base URL, WithPath, the IDs and the environment; APIError.Message has the service's text)"),
			bulk.Report{Applied: 100, Before: 100, Pending: 200}, 13},
		{"wrong path, few records", 404, 3, bulk.Options{}, 0, fmt.Sprintf(allRejected, 3, 404, 404, "Not Found: rejected (the path or an ID does not exist: check the base URL, WithPath, the IDs and the environment; APIError.Message has the service's text)"), bulk.Report{Pending: 3}, 3},
		{"wrong method, one record", 405, 1, bulk.Options{}, 0, fmt.Sprintf(allRejected, 1, 405, 405, "Method Not Allowed: rejected (the path has no such method: check the base URL and WithPath; APIError.Message has the service's text)"), bulk.Report{Pending: 1}, 1},
		{"few records", 400, 3, bulk.Options{}, 0, "<nil>", bulk.Report{Rejected: 3}, 3},
		{"no limit", 404, 300, bulk.Options{RejectionLimit: -1}, 0, "<nil>", bulk.Report{Rejected: 300}, 300},
		{"field errors", 422, 300, bulk.Options{}, 0, "<nil>", bulk.Report{Rejected: 300}, 300},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, j := &service{latency: time.Millisecond}, new(bulk.Memory)
				list := numbered(test.records)
				if test.before > 0 {
					if _, err := bulk.Run(t.Context(), s.client(t), from(list[:test.before]), j, bulk.Options{}); err != nil {
						t.Fatal(err)
					}
				}
				sent := len(s.sent)
				fault := fmt.Sprint(test.status)
				if test.name == "field errors" {
					fault += " fields"
				}
				s.onImport = func(int, labhealth.ImportOrderBody) string { return fault }
				report, err := bulk.Run(t.Context(), s.client(t), from(list), j, test.opts)
				checkEqual(t, "error", fmt.Sprint(err), test.err)
				var api *labhealth.APIError
				if err != nil && !errors.As(err, &api) {
					t.Error("the error does not wrap the service's response")
				}
				if n := len(s.sent) - sent; n > test.most || int64(n) != report.Sent {
					t.Errorf("%d requests, want up to %d", n, test.most)
				}
				test.want.Records, test.want.Sent = int64(test.records), report.Sent
				checkCounts(t, report, test.want)
				if err == nil {
					return
				}
				for e := range j.Entries() {
					if e.Step == bulk.StepRejected {
						t.Fatal("the journal contains a rejection")
					}
				}
				s.onImport = nil
				report, err = bulk.Run(t.Context(), s.client(t), from(list), j, bulk.Options{})
				if err != nil || report.Applied != int64(test.records) || len(s.orders) != test.records || !report.Done() {
					t.Errorf("the corrected run: %v, %v, %d orders", report, err, len(s.orders))
				}
			})
		})
	}
}

// Rejections do not stop a run, and the records are not sent again, once an order, another status
// or field errors show that the service reads the records.
func TestRejectionOfFirstRecords(t *testing.T) {
	for name, fifth := range map[string]string{"an order": "", "an order in a truncated response": "cut", "another status": "409", "field errors": "400 fields"} {
		for _, workers := range []int{1, 4} {
			t.Run(fmt.Sprintf("%s, %d workers", name, workers), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					// The latency keeps a worker from getting ahead of the others by more
					// rejections than the limit.
					s, j := &service{latency: time.Millisecond}, new(bulk.Memory)
					s.onImport = func(n int, _ labhealth.ImportOrderBody) string {
						if n == 5 {
							return fifth
						}
						return "400"
					}
					report, err := bulk.Run(t.Context(), s.client(t), from(numbered(30)), j, bulk.Options{Concurrency: workers})
					if err != nil {
						t.Fatal(err)
					}
					applied := int64(0)
					if fifth == "" || fifth == "cut" {
						applied = 1
					}
					checkCounts(t, report, bulk.Report{Records: 30, Applied: applied, Rejected: 30 - applied, Sent: 30})
					report, err = bulk.Run(t.Context(), s.client(t), from(numbered(30)), j, bulk.Options{})
					if err != nil {
						t.Fatal(err)
					}
					checkCounts(t, report, bulk.Report{Records: 30, Applied: applied, Rejected: 30 - applied, Before: applied})
				})
			})
		}
	}
}

// The target may be corrected only as long as the journal shows that nothing was imported.
func TestCorrectedTarget(t *testing.T) {
	const wrong, right = "https://api.example.com/v3", "https://api.example.com"
	tests := []struct {
		fault string // of each record in the first run
		err   string // of the second run
	}{
		{"404", "<nil>"},
		{"401", "<nil>"},
		{"", `bulk: the journal belongs to an import into "https://api.example.com/v3", not "https://api.example.com"`},
		{"422 fields", `bulk: the journal belongs to an import into "https://api.example.com/v3", not "https://api.example.com"`},
		{"500", `bulk: the journal belongs to an import into "https://api.example.com/v3", not "https://api.example.com"`},
	}
	for _, test := range tests {
		t.Run(test.fault, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, j := &service{}, new(bulk.Memory)
				s.onImport = func(int, labhealth.ImportOrderBody) string { return test.fault }
				s.onList = func(int, map[string][]string) string { return "404" }
				bulk.Run(t.Context(), s.client(t), from(numbered(20)), j, bulk.Options{Target: wrong})
				s.onImport, s.onList = nil, nil
				for range 2 {
					report, err := bulk.Run(t.Context(), s.client(t), from(numbered(20)), j, bulk.Options{Target: right})
					checkEqual(t, "error", fmt.Sprint(err), test.err)
					if err == nil && (report.Applied != 20 || len(s.orders) != 20) {
						t.Errorf("%v, %d orders", report, len(s.orders))
					}
				}
				if test.err == "<nil>" {
					if _, err := bulk.Run(t.Context(), s.client(t), from(numbered(20)), j, bulk.Options{Target: wrong}); err == nil {
						t.Error("the target was changed after an import")
					}
				}
			})
		})
	}
}
