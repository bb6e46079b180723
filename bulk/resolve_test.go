package bulk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
)

// One run after each fault of its first attempt.
func TestFirstAttemptFaults(t *testing.T) {
	tests := []struct {
		fault   string // of the first attempt
		journal string
		report  bulk.Report
		wait    time.Duration // minimum; the maximum is a second longer
	}{
		{"", "intent applied", bulk.Report{Applied: 1, Sent: 1}, 0},
		{"cut", "intent applied", bulk.Report{Applied: 1, Sent: 1}, 0},
		{"lost", "intent unknown applied", bulk.Report{Applied: 1, Found: 1, Sent: 1}, 2 * time.Minute},
		{"500 lost", "intent unknown applied", bulk.Report{Applied: 1, Found: 1, Sent: 1}, 2 * time.Minute},
		{"late 119s", "intent unknown applied", bulk.Report{Applied: 1, Found: 1, Sent: 1}, 2 * time.Minute},
		{"drop", "intent unknown absent intent applied", bulk.Report{Applied: 1, Sent: 2}, 2 * time.Minute},
		{"500", "intent unknown absent intent applied", bulk.Report{Applied: 1, Sent: 2}, 2 * time.Minute},
		{"503 30", "intent unknown absent intent applied", bulk.Report{Applied: 1, Sent: 2}, 2 * time.Minute},
		{"408", "intent unknown absent intent applied", bulk.Report{Applied: 1, Sent: 2}, 2 * time.Minute},
		{"429 7", "intent applied", bulk.Report{Applied: 1, Sent: 2}, 7 * time.Second},
		{"429", "intent applied", bulk.Report{Applied: 1, Sent: 2}, 0},
		{"400", "intent postponed rejected", bulk.Report{Rejected: 1, Sent: 1}, 0},
		{"409", "intent postponed rejected", bulk.Report{Rejected: 1, Sent: 1}, 0},
		{"422", "intent postponed rejected", bulk.Report{Rejected: 1, Sent: 1}, 0},
	}
	for _, test := range tests {
		t.Run(test.fault, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, j := &service{}, new(bulk.Memory)
				s.onImport = func(n int, _ labhealth.ImportOrderBody) string {
					if n == 1 {
						return test.fault
					}
					return ""
				}
				start := time.Now()
				report, err := bulk.Run(t.Context(), s.client(t), from(records("A")), j, bulk.Options{})
				if err != nil {
					t.Fatal(err)
				}
				test.report.Records = 1
				checkCounts(t, report, test.report)
				checkEqual(t, "journal", steps(t, j), []string{"A: " + test.journal})
				if took := time.Since(start); took < test.wait || took > test.wait+time.Second {
					t.Errorf("took %v, want %v", took, test.wait)
				}
				want := map[string]int{"A": 1}
				if test.report.Rejected > 0 {
					want = map[string]int{}
				}
				checkEqual(t, "orders", s.ordersBySample(), want)
				if strings.Contains(test.journal, "unknown") {
					// Two lists of one or two pages, the first after the attempt has settled.
					lists := s.times["list"]
					if len(lists) < 2 || lists[0].Sub(s.times["A"][0]) < 2*time.Minute {
						t.Errorf("lists at %v after an attempt at %v", lists, s.times["A"])
					}
				}
			})
		})
	}
}

// A killed process leaves an intent without an outcome.
func TestOrphans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, j := &service{}, new(bulk.Memory)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := bulk.Run(ctx, s.client(t), from(records("A", "B")), j, bulk.Options{}); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		digest := "0000000000"
		intents := []bulk.Entry{
			{Step: bulk.StepIntent, SampleID: "A", Digest: digest, At: time.Now()},
			{Step: bulk.StepIntent, SampleID: "B", Digest: digest, At: time.Now()},
			{Step: bulk.StepIntent, SampleID: "GONE", Digest: digest, At: time.Now()},
		}
		if err := j.Append(intents); err != nil {
			t.Fatal(err)
		}
		s.add(record("A"))
		time.Sleep(time.Hour) // the intents are old, but the process may have been killed just now
		start := time.Now()
		var rejections bytes.Buffer
		report, err := bulk.Run(t.Context(), s.client(t), from(records("A", "B", "C")), j, bulk.Options{Rejections: &rejections})
		if err != nil {
			t.Fatal(err)
		}
		checkCounts(t, report, bulk.Report{Records: 3, Applied: 2, Found: 0, Changed: 1, Sent: 2})
		checkEqual(t, "orders", s.ordersBySample(), map[string]int{"A": 1, "B": 1, "C": 1})
		checkEqual(t, "rejections", withoutReasons(rejections.String()), `{"outcome":"changed","record":1,"sample_id":"A"}
`)
		if s.times["C"][0] != start {
			t.Error("a new record waited for the old ones")
		}
		if lists := s.times["list"]; lists[1] != start || lists[2].Sub(start) != 2*time.Minute {
			t.Errorf("lists at %v of a run that started at %v", lists, start)
		}
		checkEqual(t, "journal", steps(t, j)[3:], []string{"GONE: intent absent"})
	})
}

// A list that fails or is incomplete decides nothing.
func TestNotCertain(t *testing.T) {
	const readFailed = "bulk: the list of orders could not be read in full, so that records whose outcome is unknown stay as they are: "
	tests := []struct {
		name string
		list func(n int, query map[string][]string) string
		err  string
		want bulk.Report // the order of A exists, that of B does not
	}{
		{"both lists rejected", func(int, map[string][]string) string { return "404" },
			readFailed + "labhealth: GET /orders: 404 Not Found: rejected (the path or an ID does not exist: check the base URL, WithPath, the IDs and the environment; APIError.Message has the service's text) (request req-1)", bulk.Report{Unknown: 2, Sent: 2}},
		{"second list rejected", func(n int, _ map[string][]string) string {
			if n > 2 {
				return "404"
			}
			return ""
		}, readFailed + "labhealth: GET /orders: 404 Not Found: rejected (the path or an ID does not exist: check the base URL, WithPath, the IDs and the environment; APIError.Message has the service's text) (request req-1)", bulk.Report{Applied: 1, Found: 1, Unknown: 1, Sent: 2}},
		{"first list rejected", func(n int, _ map[string][]string) string {
			if n == 1 {
				return "404"
			}
			return ""
		}, readFailed + "labhealth: GET /orders: 404 Not Found: rejected (the path or an ID does not exist: check the base URL, WithPath, the IDs and the environment; APIError.Message has the service's text) (request req-1)", bulk.Report{Applied: 1, Found: 1, Unknown: 1, Sent: 2}},
		{"down", func(int, map[string][]string) string { return "503" },
			readFailed + "labhealth: GET /orders: 503 Service Unavailable (overloaded or under maintenance; APIError.Message has the service's text; try again later) (request req-1)", bulk.Report{Unknown: 2, Sent: 2}},
		{"fewer orders than counted", func(int, map[string][]string) string { return "empty" },
			readFailed + "it ended before the number of orders that it reports", bulk.Report{Unknown: 2, Sent: 2}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, j := &service{onList: test.list}, new(bulk.Memory)
				s.onImport = func(n int, body labhealth.ImportOrderBody) string {
					return map[string]string{"A": "lost", "B": "drop"}[body.SampleID]
				}
				var rejections bytes.Buffer
				report, err := bulk.Run(t.Context(), s.client(t), from(records("A", "B")), j, bulk.Options{Rejections: &rejections})
				if fmt.Sprint(err) != test.err {
					t.Errorf("error %v\nwant  %s", err, test.err)
				}
				test.want.Records = 2
				checkCounts(t, report, test.want)
				if n := strings.Count(rejections.String(), `"outcome":"unknown"`); int64(n) != test.want.Unknown {
					t.Errorf("rejections:\n%s", &rejections)
				}

				s.onList, s.onImport = nil, nil
				report, err = bulk.Run(t.Context(), s.client(t), from(records("A", "B")), j, bulk.Options{})
				if err != nil {
					t.Fatal(err)
				}
				checkCounts(t, report, bulk.Report{Records: 2, Applied: 2, Before: test.want.Applied, Found: 1 - test.want.Found, Sent: 1})
				checkEqual(t, "orders", s.ordersBySample(), map[string]int{"A": 1, "B": 1})
			})
		})
	}
}

// An order that does not show its sample ID may be the missing one.
func TestListsThatDoNotShowSampleIDs(t *testing.T) {
	tests := []struct {
		name   string
		order  held
		sent   int64
		failed string
	}{
		{"null", held{ada, ada, "null"}, 1, "bulk: the list of orders does not show the user and sample id of every order: 1 records are not certain"},
		{"null, of another user", held{ada, grace, "null"}, 2, ""},
		{"absent", held{ada, ada, ""}, 1, "bulk: the list of orders does not show the user and sample id of every order: 1 records are not certain"},
		{"not a string", held{ada, ada, "7"}, 1, "bulk: the list of orders does not show the user and sample id of every order: 1 records are not certain"},
		{"absent, of another user", held{ada, grace, ""}, 2, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &service{orders: []held{test.order}}
				s.onImport = func(n int, _ labhealth.ImportOrderBody) string {
					return []string{"drop", ""}[n-1]
				}
				report, err := bulk.Run(t.Context(), s.client(t), from(records("A")), new(bulk.Memory), bulk.Options{})
				if got := fmt.Sprint(err); test.failed != "" && got != test.failed || test.failed == "" && err != nil {
					t.Errorf("error %v, want %q", err, test.failed)
				}
				if report.Sent != test.sent {
					t.Errorf("sent %d, want %d", report.Sent, test.sent)
				}
			})
		})
	}
}

// A list without an order that was applied, or with another sample ID, does not show that an order
// does not exist.
func TestListsWithoutAppliedOrders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{shown: func(id string) string { return "LAB-" + id }, twice: true}
		s.onImport = func(n int, _ labhealth.ImportOrderBody) string { return []string{"", "lost"}[n-1] }
		report, err := bulk.Run(t.Context(), s.client(t), from(records("A", "B")), new(bulk.Memory), bulk.Options{Concurrency: 1})
		if err == nil || report.Unknown != 1 || len(s.sent) != 2 {
			t.Error(report, err)
		}
	})
}

// mixedUp is a gateway that repeats its first response.
type mixedUp struct {
	*service
	first []byte
}

func (m *mixedUp) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := m.service.RoundTrip(req)
	if err != nil || req.Method == http.MethodGet {
		return resp, err
	}
	if m.first == nil {
		m.first, _ = io.ReadAll(resp.Body)
	}
	return newResponse(req, 200, string(m.first), ""), nil
}

// A response with the order of another record does not show that the record was applied.
func TestMixedUpResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &mixedUp{service: &service{twice: true}}
		client, err := labhealth.NewClient("sk_test_0123456789", labhealth.WithBaseURL("https://api.example.com"),
			labhealth.WithHTTPClient(&http.Client{Transport: m}))
		if err != nil {
			t.Fatal(err)
		}
		report, err := bulk.Run(t.Context(), client, from(records("A", "B", "C")), new(bulk.Memory), bulk.Options{Concurrency: 1})
		if err != nil || report.Applied != 3 || report.Found != 2 || report.Sent != 3 {
			t.Errorf("%v, %v, found %d", report, err, report.Found)
		}
	})
}

// A rejection after an unknown outcome is looked up, whatever its message.
func TestDisputed(t *testing.T) {
	tests := []struct {
		name    string
		first   string // fault of the first attempt
		behind  int    // number of lists that do not show it yet
		before  []held // existing orders
		journal string
		want    bulk.Report
	}{
		{"our own order became visible late", "lost", 2, nil,
			"intent unknown absent intent disputed applied", bulk.Report{Applied: 1, Found: 1, Sent: 2}},
		{"the sample id is another user's", "drop", 0, []held{{ada, grace, `"A"`}},
			"intent unknown rejected", bulk.Report{Rejected: 1, Sent: 1}},
		{"the sample id becomes another user's", "drop", 2, []held{{ada, grace, `"A"`}},
			"intent unknown absent intent disputed rejected", bulk.Report{Rejected: 1, Sent: 2}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, j := &service{orders: test.before}, new(bulk.Memory)
				s.onImport = func(n int, _ labhealth.ImportOrderBody) string {
					if n == 1 {
						return test.first
					}
					return ""
				}
				s.onList = func(n int, _ map[string][]string) string {
					if n <= test.behind {
						return "behind"
					}
					return ""
				}
				var rejections bytes.Buffer
				report, err := bulk.Run(t.Context(), s.client(t), from(records("A")), j, bulk.Options{Rejections: &rejections})
				if err != nil {
					t.Fatal(err)
				}
				test.want.Records = 1
				checkCounts(t, report, test.want)
				checkEqual(t, "journal", steps(t, j), []string{"A: " + test.journal})
				want := ""
				switch {
				case test.want.Rejected == 1 && test.want.Sent == 1:
					want = `{"outcome":"rejected","record":1,"sample_id":"A","fields":[{"path":"body.sample_id","reason":"belongs to an order of another user"}]}` + "\n"
				case test.want.Rejected == 1:
					want = `{"outcome":"rejected","record":1,"sample_id":"A","status":400,"request_id":"req-1"}` + "\n"
				}
				checkEqual(t, "rejections", withoutReasons(rejections.String()), want)
			})
		})
	}
}
