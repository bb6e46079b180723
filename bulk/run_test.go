package bulk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
)

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, j := &service{}, new(bulk.Memory)
		report, err := bulk.Run(t.Context(), s.client(t), from(records("A", "B", "C")), j, bulk.Options{})
		if err != nil {
			t.Fatal(err)
		}
		checkCounts(t, report, bulk.Report{Records: 3, Applied: 3, Sent: 3})
		checkEqual(t, "orders", s.ordersBySample(), map[string]int{"A": 1, "B": 1, "C": 1})
		checkEqual(t, "journal", steps(t, j), []string{"A: intent applied", "B: intent applied", "C: intent applied"})

		report, err = bulk.Run(t.Context(), s.client(t), from(records("A", "B", "C")), j, bulk.Options{})
		if err != nil {
			t.Fatal(err)
		}
		checkCounts(t, report, bulk.Report{Records: 3, Applied: 3, Before: 3})
		if len(s.sent) != 3 || len(s.times["list"]) != 0 {
			t.Errorf("a second run sent %d imports and %d lists", len(s.sent)-3, len(s.times["list"]))
		}
	})
}

// Problems that are found before anything is sent.
func TestChecks(t *testing.T) {
	other, nobody, foreign := record("TWICE"), record(""), record("BAD")
	other.PatientDetails.LastName = "Another"
	foreign.PatientDetails.Email = "ada at example.com"
	foreign.PatientDetails.FirstName = "Ada\xff"
	list := []labhealth.ImportOrderBody{record("A"), record("TWICE"), record("A"), other, nobody, foreign}
	source := bulk.Source(func(yield func(bulk.Record, error) bool) {
		unreadable := &bulk.RecordError{Line: 7, SampleID: "C", Problems: []bulk.Problem{{Path: "body.user_id", Reason: "is not a valid uuid"}}}
		if yield(bulk.Record{}, unreadable) {
			from(list)(yield)
		}
	})
	want := `{"outcome":"invalid","record":1,"line":7,"sample_id":"C","fields":[{"path":"body.user_id","reason":"is not a valid uuid"}]}
{"outcome":"conflict","record":3,"sample_id":"TWICE","other_record":5}
{"outcome":"conflict","record":5,"sample_id":"TWICE","other_record":3}
{"outcome":"invalid","record":6,"fields":[{"path":"body.sample_id","reason":"is required"}]}
{"outcome":"invalid","record":7,"sample_id":"BAD","fields":[{"path":"body.patient_details.first_name","reason":"must be valid UTF-8"}]}
`
	for _, dry := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s, j := &service{}, new(bulk.Memory)
			var rejections bytes.Buffer
			report, err := bulk.Run(t.Context(), s.client(t), source, j, bulk.Options{DryRun: dry, Rejections: &rejections})
			if err != nil {
				t.Fatal(err)
			}
			checkEqual(t, "rejections", withoutReasons(rejections.String()), want)
			if dry {
				checkCounts(t, report, bulk.Report{Records: 7, Invalid: 5, Duplicates: 1, Pending: 1})
				checkEqual(t, "journal", steps(t, j), []string(nil))
			} else {
				checkCounts(t, report, bulk.Report{Records: 7, Invalid: 5, Duplicates: 1, Applied: 1, Sent: 1})
				checkEqual(t, "sent", s.sent, []string{"A"})
			}
		})
	}
}

// A rejected record is sent again if it was changed, or with RetryRejected. An applied record never
// is.
func TestSecondRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reject := true
		s, j := &service{}, new(bulk.Memory)
		s.onImport = func(_ int, body labhealth.ImportOrderBody) string {
			if reject && body.SampleID != "A" {
				return "422"
			}
			return ""
		}
		run := func(list []labhealth.ImportOrderBody, opts bulk.Options, want bulk.Report) {
			t.Helper()
			report, err := bulk.Run(t.Context(), s.client(t), from(list), j, opts)
			if err != nil {
				t.Fatal(err)
			}
			checkCounts(t, report, want)
		}
		list := records("A", "B", "C")
		run(list, bulk.Options{}, bulk.Report{Records: 3, Applied: 1, Rejected: 2, Sent: 3})
		reject = false
		run(list, bulk.Options{}, bulk.Report{Records: 3, Applied: 1, Rejected: 2, Before: 1})
		list[0].PatientAddress.City, list[1].PatientAddress.City = "Carmel", "Carmel"
		run(list, bulk.Options{}, bulk.Report{Records: 3, Applied: 1, Rejected: 1, Changed: 1, Sent: 1})
		run(list, bulk.Options{RetryRejected: true}, bulk.Report{Records: 3, Applied: 2, Changed: 1, Before: 1, Sent: 1})
		checkEqual(t, "orders", s.ordersBySample(), map[string]int{"A": 1, "B": 1, "C": 1})
	})
}

// A 429 pauses all workers for its Retry-After.
func TestPauseOfAllWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{latency: 10 * time.Millisecond}
		s.onImport = func(n int, _ labhealth.ImportOrderBody) string {
			if n == 10 {
				return "429 30"
			}
			return ""
		}
		start := time.Now()
		report, err := bulk.Run(t.Context(), s.client(t), from(numbered(40)), new(bulk.Memory), bulk.Options{})
		if err != nil {
			t.Fatal(err)
		}
		checkCounts(t, report, bulk.Report{Records: 40, Applied: 40, Sent: 41})
		var all []time.Duration
		for _, times := range s.times {
			for _, at := range times {
				all = append(all, at.Sub(start))
			}
		}
		slices.Sort(all)
		for i, at := range all[1:] {
			if at > 40*time.Millisecond && at < 30*time.Second {
				t.Errorf("request %d was sent after %v, during the pause", i+1, at)
			}
		}
		if took := time.Since(start); took < 30*time.Second || took > 31*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{latency: 100 * time.Millisecond}
		start := time.Now()
		if _, err := bulk.Run(t.Context(), s.client(t), from(numbered(101)), new(bulk.Memory), bulk.Options{Rate: 10}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < 10*time.Second || took > 10300*time.Millisecond {
			t.Errorf("101 records at 10 a second took %v", took)
		}
	})
}

func TestConcurrency(t *testing.T) {
	for _, n := range []int{0, 1, 16} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{latency: time.Second}
			start := time.Now()
			if _, err := bulk.Run(t.Context(), s.client(t), from(numbered(160)), new(bulk.Memory), bulk.Options{Concurrency: n}); err != nil {
				t.Fatal(err)
			}
			want := 160 * time.Second / time.Duration(max(n, 1))
			if n == 0 {
				want = 40 * time.Second
			}
			if took := time.Since(start); took < want || took > want+time.Second {
				t.Errorf("concurrency %d: took %v, want %v", n, took, want)
			}
		})
	}
}

// Responses that every record would get stop the run, as does an outage. The next run continues.
func TestStops(t *testing.T) {
	tests := []struct {
		name, fault, err string
		most             int // requests
		took             time.Duration
	}{
		{"wrong key", "401", "labhealth: POST /v3/order/import: 401 Unauthorized: rejected (the key is missing, invalid, expired, or of another region, environment or API; APIError.Message has the service's text) (request req-1)", 4, 0},
		{"not allowed", "403", "labhealth: POST /v3/order/import: 403 Forbidden: rejected (the team or the key has no access to this; APIError.Message has the service's text) (request req-1)", 4, 0},
		{"moved", "307", "labhealth: POST /v3/order/import: 307 Temporary Redirect: outcome unknown (it is a redirect: check the scheme, the host and the path of the base URL; APIError.Message has the service's text; check whether it took effect before you repeat it) (request req-1)", 4, 0},
		{"a day's pause", "429 86400", "bulk: the service asks for a pause of 24h0m0s: labhealth: POST /v3/order/import: 429 Too Many Requests: rejected (the rate limit is reached: see WithRateLimit; APIError.Message has the service's text; try again in 24h0m0s) (request req-1)", 4, 0},
		{"down", "503", "bulk: every request has failed for 10m", 120, 11 * time.Minute},
		{"rate limited without end", "429 60", "bulk: every request has failed for 10m", 80, 12 * time.Minute},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, j := &service{latency: time.Millisecond}, new(bulk.Memory)
				s.onImport = func(int, labhealth.ImportOrderBody) string { return test.fault }
				start := time.Now()
				report, err := bulk.Run(t.Context(), s.client(t), from(numbered(300)), j, bulk.Options{})
				if err == nil || !strings.HasPrefix(err.Error(), test.err) {
					t.Errorf("error %v\nwant  %s", err, test.err)
				}
				if took := time.Since(start); took > test.took+time.Second {
					t.Errorf("took %v", took)
				}
				if len(s.sent) > test.most || report.Applied+report.Rejected > 0 || report.Pending+report.Unknown != 300 || report.Done() {
					t.Errorf("%d requests, report: %v", len(s.sent), report)
				}
				s.onImport = nil
				if report, err = bulk.Run(t.Context(), s.client(t), from(numbered(300)), j, bulk.Options{}); err != nil {
					t.Fatal(err)
				}
				if report.Applied != 300 || !report.Done() {
					t.Errorf("second run: %v", report)
				}
				if len(s.orders) != 300 {
					t.Errorf("%d orders", len(s.orders))
				}
			})
		})
	}
}

// A record that never gets a definite response does not block the run.
func TestPoisonRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		s.onImport = func(_ int, body labhealth.ImportOrderBody) string {
			if body.SampleID == "S-00001" {
				return "500"
			}
			return ""
		}
		var rejections bytes.Buffer
		report, err := bulk.Run(t.Context(), s.client(t), from(numbered(3)), new(bulk.Memory), bulk.Options{Rejections: &rejections})
		if err != nil {
			t.Fatal(err)
		}
		checkCounts(t, report, bulk.Report{Records: 3, Applied: 2, Pending: 1, Sent: 7})
		checkEqual(t, "rejections", withoutReasons(rejections.String()), `{"outcome":"pending","record":2,"sample_id":"S-00001"}`+"\n")
	})
}

// After the end of the context, attempts in progress finish and no more are sent.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, j := &service{latency: 10 * time.Second}, new(bulk.Memory)
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		start := time.Now()
		report, err := bulk.Run(ctx, s.client(t), from(numbered(20)), j, bulk.Options{})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		checkCounts(t, report, bulk.Report{Records: 20, Applied: 12, Pending: 8, Sent: 12})
		if took := time.Since(start); took != 30*time.Second {
			t.Errorf("took %v", took)
		}
		report, err = bulk.Run(t.Context(), s.client(t), from(numbered(20)), j, bulk.Options{})
		if err != nil {
			t.Fatal(err)
		}
		checkCounts(t, report, bulk.Report{Records: 20, Applied: 20, Before: 12, Sent: 8})
		if n := len(s.times["list"]); n != 7 { // one list before it sends
			t.Errorf("%d pages of lists", n)
		}
	})
}

// ListByUser requests no other user's orders.
func TestListByUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		for i := range 50 {
			s.orders = append(s.orders, held{grace, grace, fmt.Sprintf(`"G%d"`, i)})
		}
		s.onImport = func(n int, body labhealth.ImportOrderBody) string {
			return map[string]string{"A": "lost", "B": "drop"}[body.SampleID]
		}
		var asked []string
		s.onList = func(_ int, query map[string][]string) string {
			s.onImport = nil
			asked = append(asked, fmt.Sprint(query["user_id"], query["page"], query["size"], query["start_date"]))
			return ""
		}
		opts := bulk.Options{ListByUser: true, List: labhealth.ListOrdersParams{StartDate: time.Date(2025, 1, 2, 0, 0, 0, 0, time.UTC)}}
		report, err := bulk.Run(t.Context(), s.client(t), from(records("A", "B")), new(bulk.Memory), opts)
		if err != nil {
			t.Fatal(err)
		}
		checkCounts(t, report, bulk.Report{Records: 2, Applied: 2, Found: 1, Sent: 3})
		page := func(n int) string { return fmt.Sprintf("[%s] [%d] [100] [2025-01-02T00:00:00Z]", ada, n) }
		checkEqual(t, "lists", asked, []string{page(1), page(2), page(1), page(2)})
	})
}

func TestOptions(t *testing.T) {
	s := &service{}
	source := from(records("A"))
	for _, test := range []struct {
		opts bulk.Options
		err  string
	}{
		{bulk.Options{Concurrency: -1}, "bulk: Options.Concurrency must not be negative"},
		{bulk.Options{Rate: -1}, "bulk: Options.Rate must not be negative"},
		{bulk.Options{Rate: math.NaN()}, "bulk: Options.Rate must not be negative"},
		{bulk.Options{Outage: -1}, "bulk: Options.Timeout, Settle and Outage must not be negative"},
		{bulk.Options{Settle: time.Minute}, "bulk: Options.Settle must be longer than Options.Timeout: an attempt could still be in progress"},
	} {
		if report, err := bulk.Run(t.Context(), s.client(t), source, new(bulk.Memory), test.opts); report != nil || fmt.Sprint(err) != test.err {
			t.Errorf("%v %v, want %s", report, err, test.err)
		}
	}
	if _, err := bulk.Run(t.Context(), s.client(t), source, nil, bulk.Options{}); fmt.Sprint(err) != "bulk: Run needs a context, a client of labhealth.NewClient, a source and a journal" {
		t.Error(err)
	}
	if report, err := bulk.Run(t.Context(), nil, source, nil, bulk.Options{DryRun: true}); err != nil || report.Pending != 1 {
		t.Error(report, err)
	}
	j := new(bulk.Memory)
	if _, err := bulk.Run(t.Context(), s.client(t), source, j, bulk.Options{Target: "sandbox"}); err != nil {
		t.Fatal(err)
	}
	_, err := bulk.Run(t.Context(), s.client(t), source, j, bulk.Options{Target: "production"})
	if fmt.Sprint(err) != `bulk: the journal belongs to an import into "sandbox", not "production"` {
		t.Error(err)
	}
}

// A source that changes during the run, or fails, stops it.
func TestSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		ranged := 0
		moving := bulk.Source(func(yield func(bulk.Record, error) bool) {
			ranged++
			from(records(fmt.Sprint("S", ranged)))(yield)
		})
		if _, err := bulk.Run(t.Context(), s.client(t), moving, new(bulk.Memory), bulk.Options{}); fmt.Sprint(err) != "bulk: the source did not yield the same records each time" {
			t.Error(err)
		}
		broken := errors.New("disk gone")
		failing := bulk.Source(func(yield func(bulk.Record, error) bool) {
			if yield(bulk.Record{Body: record("A")}, nil) {
				yield(bulk.Record{}, broken)
			}
		})
		report, err := bulk.Run(t.Context(), s.client(t), failing, new(bulk.Memory), bulk.Options{})
		if !errors.Is(err, broken) {
			t.Error(err)
		}
		checkCounts(t, report, bulk.Report{Records: 1, Pending: 1, Incomplete: true})

		// A run that could not read its source is not done.
		unreadable := bulk.CSV(strings.NewReader("no such column\n"), bulk.CSVOptions{})
		report, err = bulk.Run(t.Context(), s.client(t), unreadable, new(bulk.Memory), bulk.Options{})
		if err == nil || report.Done() || report.String() != "0 records: 0 applied; the source was not read to its end" {
			t.Errorf("%v, done: %t, %s", err, report.Done(), report)
		}
		if len(s.sent) != 0 {
			t.Errorf("sent %v", s.sent)
		}
	})
}

// brokenJournal fails from its nth Append on.
type brokenJournal struct {
	*bulk.Memory
	left int
}

var errDisk = errors.New("disk full")

func (b *brokenJournal) Append(entries []bulk.Entry) error {
	if b.left--; b.left < 0 {
		return errDisk
	}
	return b.Memory.Append(entries)
}

// A record is sent only if its intent is in the journal.
func TestJournalFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for appends := range 8 {
			s, j := &service{latency: time.Millisecond}, &brokenJournal{new(bulk.Memory), appends}
			_, err := bulk.Run(t.Context(), s.client(t), from(numbered(100)), j, bulk.Options{})
			if !errors.Is(err, errDisk) {
				t.Fatal(appends, err)
			}
			intents := map[string]bool{}
			for e := range j.Memory.Entries() {
				intents[e.SampleID] = intents[e.SampleID] || e.Step == bulk.StepIntent
			}
			for _, id := range s.sent {
				if !intents[id] {
					t.Fatalf("%s was sent without an intent in the journal", id)
				}
			}
			if report, err := bulk.Run(t.Context(), s.client(t), from(numbered(100)), j.Memory, bulk.Options{}); err != nil || report.Applied != 100 || len(s.orders) != 100 {
				t.Fatal(report, err, len(s.orders))
			}
		}
	})
}

// No output contains a value of a record.
func TestNothingLeaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := []string{"", "400", "422", "500", "lost", "drop", "cut", "429 1", "400 lost"}
		s, j := &service{}, new(bulk.Memory)
		s.onImport = func(n int, _ labhealth.ImportOrderBody) string { return faults[n%len(faults)] }
		s.onList = func(n int, _ map[string][]string) string { return []string{"", "404"}[n/5%2] }
		list := numbered(40)
		list[3].PatientDetails.Email = "ada-example.com"
		var rejections, printed, ids bytes.Buffer
		var mu sync.Mutex
		for range 3 {
			report, err := bulk.Run(t.Context(), s.client(t), from(list), j, bulk.Options{
				Rejections: &rejections,
				OnError: func(id string, err error) {
					mu.Lock()
					fmt.Fprintln(&ids, id)
					fmt.Fprintf(&printed, "%v %+v %#v\n", err, err, err)
					mu.Unlock()
				},
				Progress: func(p bulk.Progress) {
					mu.Lock()
					fmt.Fprintf(&printed, "%+v\n", p)
					mu.Unlock()
				},
			})
			mu.Lock()
			fmt.Fprintf(&printed, "%v %+v %#v %v %+v\n", report, report, *report, err, err)
			mu.Unlock()
		}
		for e := range j.Entries() {
			fmt.Fprintf(&printed, "%+v\n", e)
		}
		if bytes.Contains(printed.Bytes(), []byte("S-000")) {
			t.Error("a sample id is shown")
		}
		printed.Write(rejections.Bytes())
		printed.Write(ids.Bytes())
		for _, secret := range []string{"Ada", "Example", "ada@", "ada-example", "1955", "+1415", "Street", "Monterey", "93940", "sk_test", ada.String()} {
			if bytes.Contains(printed.Bytes(), []byte(secret)) {
				t.Errorf("%q is shown", secret)
			}
		}
		if !bytes.Contains(printed.Bytes(), []byte("S-00039")) {
			t.Error("nothing was searched")
		}
	})
}

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{latency: time.Second}
		s.onImport = func(n int, _ labhealth.ImportOrderBody) string {
			if n == 8 {
				return "lost"
			}
			return ""
		}
		var middle, settling, last bulk.Progress
		_, err := bulk.Run(t.Context(), s.client(t), from(numbered(80)), new(bulk.Memory), bulk.Options{Progress: func(p bulk.Progress) {
			switch last = p; {
			case p.Phase == bulk.PhaseImporting && p.Done >= 40 && middle.Phase == "":
				middle = p
			case p.Phase == bulk.PhaseSettling && settling.Phase == "":
				settling = p
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		near := func(what string, got, want, by float64) {
			t.Helper()
			if math.Abs(got-want) > by {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
		}
		near("rate in the middle", middle.Rate, 4, 0.5)
		near("seconds left in the middle", middle.Left.Seconds(), 10, 2)
		near("seconds left to settle", settling.Left.Seconds(), 101, 2) // 19 s after the attempt
		checkEqual(t, "while it settles", []int64{settling.Done, settling.Report.Unknown}, []int64{79, 1})
		checkEqual(t, "at the end", []int64{last.Done, last.Records, last.Report.Applied, last.Report.Found}, []int64{80, 80, 80, 1})
	})
}
