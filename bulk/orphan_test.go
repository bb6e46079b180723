package bulk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
)

// A record with an unknown outcome is looked up and reported, however the source has changed since
// it was sent.
func TestUnknownOutcomeAfterSourceChange(t *testing.T) {
	different, invalid, moved := record("A"), record("A"), record("A")
	different.PatientAddress.City = "Carmel"
	invalid.PatientDetails.Email = "nonsense"
	moved.UserID = grace
	good := from(records("A"))
	unreadable := bulk.Source(func(yield func(bulk.Record, error) bool) {
		yield(bulk.Record{}, &bulk.RecordError{SampleID: "A", Problems: []bulk.Problem{{Reason: "is torn"}}})
	})
	const unsure = "bulk: the list of orders could not be read in full, so that records whose outcome is unknown stay as they are: " +
		"labhealth: GET /orders: 404 Not Found: rejected (the path or an ID does not exist: check the base URL, WithPath, the IDs and the environment; APIError.Message has the service's text) (request req-1)"
	tests := []struct {
		name   string
		source bulk.Source

		exists     bulk.Report // the order exists
		absent     bulk.Report // it does not
		unsure     bulk.Report // the list cannot be read
		sent       int64       // if it does not exist
		rejections string      // if it exists
	}{
		{"unchanged", good, bulk.Report{Records: 1, Applied: 1, Found: 1}, bulk.Report{Records: 1, Applied: 1, Sent: 1},
			bulk.Report{Records: 1, Unknown: 1}, 1, ""},
		{"twice", from(append(records("A"), record("A"))), bulk.Report{Records: 2, Applied: 1, Found: 1, Duplicates: 1},
			bulk.Report{Records: 2, Applied: 1, Duplicates: 1, Sent: 1}, bulk.Report{Records: 2, Unknown: 1, Duplicates: 1}, 1, ""},
		{"shared", from([]labhealth.ImportOrderBody{record("A"), different}), bulk.Report{Records: 2, Applied: 1, Found: 1, Invalid: 1},
			bulk.Report{Records: 2, Invalid: 2}, bulk.Report{Records: 2, Unknown: 1, Invalid: 1}, 0,
			`{"outcome":"conflict","record":1,"sample_id":"A","other_record":2}` + "\n" + `{"outcome":"conflict","record":2,"sample_id":"A","other_record":1}` + "\n"},
		{"shared, first another user's", from([]labhealth.ImportOrderBody{moved, record("A")}),
			bulk.Report{Records: 2, Changed: 1, Invalid: 1},
			bulk.Report{Records: 2, Invalid: 2}, bulk.Report{Records: 2, Unknown: 1, Invalid: 1}, 0,
			`{"outcome":"conflict","record":1,"sample_id":"A","other_record":2}` + "\n" + `{"outcome":"conflict","record":2,"sample_id":"A","other_record":1}` + "\n"},
		{"invalid", from([]labhealth.ImportOrderBody{invalid}), bulk.Report{Records: 1, Changed: 1}, bulk.Report{Records: 1, Invalid: 1},
			bulk.Report{Records: 1, Unknown: 1}, 0,
			`{"outcome":"changed","record":1,"sample_id":"A","fields":[{"path":"body.patient_details.email",` +
				`"reason":"must be an email address: one @ and no spaces"}]}` + "\n"},
		{"another user's", from([]labhealth.ImportOrderBody{moved}), bulk.Report{Records: 1, Changed: 1}, bulk.Report{Records: 1, Applied: 1, Sent: 1},
			bulk.Report{Records: 1, Unknown: 1}, 1, `{"outcome":"changed","record":1,"sample_id":"A"}` + "\n"},
		{"unreadable", unreadable, bulk.Report{Records: 1, Changed: 1}, bulk.Report{Records: 1, Invalid: 1}, bulk.Report{Records: 1, Unknown: 1}, 0,
			`{"outcome":"changed","record":1,"sample_id":"A","fields":[{"path":"","reason":"is torn"}]}` + "\n"},
		{"gone", from(nil), bulk.Report{}, bulk.Report{}, bulk.Report{Strays: 1}, 0, ""},
	}
	for _, test := range tests {
		for _, fate := range []string{"lost", "drop", "unsure"} {
			for _, byUser := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, by user %t", test.name, fate, byUser), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s, j := &service{}, new(bulk.Memory)
						s.onImport = func(n int, _ labhealth.ImportOrderBody) string {
							if n == 1 && fate == "unsure" {
								return "lost"
							} else if n == 1 {
								return fate
							}
							return ""
						}
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						_, err := bulk.Run(ctx, s.client(t), good, j, bulk.Options{OnError: func(string, error) { cancel() }})
						if !errors.Is(err, context.Canceled) {
							t.Fatal(err)
						}
						want, wantErr := test.exists, error(nil)
						orders := map[string]int{"A": 1}
						switch fate {
						case "drop":
							want = test.absent
							if test.sent == 0 {
								orders = map[string]int{}
							}
						case "unsure":
							want, wantErr = test.unsure, errors.New(unsure)
							s.onList = func(int, map[string][]string) string { return "404" }
						}
						var rejections bytes.Buffer
						report, err := bulk.Run(t.Context(), s.client(t), test.source, j, bulk.Options{Rejections: &rejections, ListByUser: byUser})
						checkEqual(t, "error", fmt.Sprint(err), fmt.Sprint(wantErr))
						checkCounts(t, report, want)
						checkEqual(t, "orders", s.ordersBySample(), orders)
						if report.Done() != (fate != "unsure") {
							t.Errorf("done: %t", report.Done())
						}
						if fate == "lost" {
							checkEqual(t, "rejections", withoutReasons(rejections.String()), test.rejections)
						}
						if fate != "unsure" { // the next run reads the same from the journal
							lists, sent := len(s.times["list"]), len(s.sent)
							report, err = bulk.Run(t.Context(), s.client(t), test.source, j, bulk.Options{})
							want.Before, want.Found, want.Sent = want.Applied, 0, 0
							checkCounts(t, report, want)
							if err != nil || len(s.times["list"]) != lists || len(s.sent) != sent {
								t.Errorf("the next run: %v, %d lists, %d requests", err, len(s.times["list"])-lists, len(s.sent)-sent)
							}
						}
					})
				})
			}
		}
	}
}
