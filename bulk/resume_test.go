package bulk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
	"github.com/labhealth/labhealth-go/internal/httptracetest"
)

// A run that was killed in the middle of 300 records, whose requests in progress were processed, is
// finished at once by the next one: what was sent is found, and what was not is known.
func TestResumeAtOnce(t *testing.T) {
	bulk.SkipSync(t)
	for _, concurrency := range []int{1, 4, 32} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			s := &service{latency: 20 * time.Millisecond, twice: true}
			path := filepath.Join(dir, "run.journal")
			opts := bulk.Options{Concurrency: concurrency}
			killed := kill(t, s, numbered(300), path, opts, 3*time.Second/time.Duration(concurrency))
			if err := os.WriteFile(path+".killed", killed, 0o600); err != nil {
				t.Fatal(err)
			}
			before, start := len(s.sent), time.Now()
			report, err := bulk.Run(t.Context(), s.client(t), from(numbered(300)), open(t, path+".killed"), opts)
			if err != nil || report.Applied != 300 || report.Found == 0 || report.Waited != 0 || !report.Done() {
				t.Errorf("%d workers: %v, %v, found %d", concurrency, report, err, report.Found)
			}
			if before == 300 || before+int(report.Sent) != 300 {
				t.Errorf("%d workers: sent %d and then %d records", concurrency, before, report.Sent)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("%d workers: took %v", concurrency, took)
			}
			for id, n := range s.ordersBySample() {
				if n != 1 {
					t.Errorf("%d orders for %s", n, id)
				}
			}
		})
	}
}

// kill starts a run and returns the content of its journal after a while. The requests in progress
// then are processed, and no others are sent.
func kill(t *testing.T, s *service, list []labhealth.ImportOrderBody, path string, opts bulk.Options, after time.Duration) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), after)
	defer cancel()
	journal := open(t, path)
	var content []byte
	finished := make(chan error)
	go func() {
		_, err := bulk.Run(ctx, s.client(t), from(list), journal, opts)
		finished <- err
	}()
	time.Sleep(after - time.Millisecond)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-finished; !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	return content
}

// A rejection is in the journal as soon as it is received, so that a run that was killed afterwards
// is resumed without a wait: also a rejection that is held back until an order shows that the
// service processes records.
func TestKillAfterRejection(t *testing.T) {
	bulk.SkipSync(t)
	for _, rejected := range []string{"S-00000", "S-00010"} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			s := &service{latency: 20 * time.Millisecond}
			s.onImport = func(_ int, body labhealth.ImportOrderBody) string {
				if body.SampleID == rejected {
					return "422"
				}
				return ""
			}
			path := filepath.Join(dir, "run.journal")
			journal := open(t, path)
			ctx, cancel := context.WithCancel(t.Context())
			var killed []byte
			opts := bulk.Options{Concurrency: 1, OnError: func(string, error) {
				time.AfterFunc(time.Millisecond, func() {
					killed, _ = os.ReadFile(path)
					cancel()
				})
			}}
			if _, err := bulk.Run(ctx, s.client(t), from(numbered(20)), journal, opts); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if err := os.WriteFile(path+".killed", killed, 0o600); err != nil {
				t.Fatal(err)
			}
			report, err := bulk.Run(t.Context(), s.client(t), from(numbered(20)), open(t, path+".killed"), bulk.Options{})
			if err != nil || report.Applied != 19 || report.Rejected != 1 || report.Waited != 0 {
				t.Errorf("%s: %v, %v", rejected, report, err)
			}
		})
	}
}

// A run that was killed while it wrote to the journal is resumed without a wait, except after a
// crash of the system, which may have damaged more.
func TestKillWhileWriting(t *testing.T) {
	bulk.SkipSync(t)
	for _, crashed := range []bool{false, true} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			boot, start := "b", time.Now()
			bulk.BootClock(t, func() string { return boot }, func() time.Duration { return time.Hour + time.Since(start) })
			s := &service{latency: 20 * time.Millisecond}
			path := filepath.Join(dir, "run.journal")
			content := kill(t, s, numbered(20), path, bulk.Options{Concurrency: 1}, 205*time.Millisecond)
			if err := os.WriteFile(path+".killed", append(content, "5ab0"...), 0o600); err != nil {
				t.Fatal(err)
			}
			if crashed {
				boot = "c"
			}
			report, err := bulk.Run(t.Context(), s.client(t), from(numbered(20)), open(t, path+".killed"), bulk.Options{})
			if err != nil || report.Applied != 20 || (report.Waited != 0) != crashed {
				t.Errorf("crashed: %t: %v, %v", crashed, report, err)
			}
		})
	}
}

// How long a run waits for a record that a killed run may have sent, and that is not found.
func TestWaitAfterKill(t *testing.T) {
	const uptime = 1000 * time.Second // when the lease ends
	tests := []struct {
		name    string
		lease   bulk.Entry
		sending bool
		boot    string        // when the run is resumed
		uptime  time.Duration // when the run is resumed
		wait    time.Duration // before the lists that decide; negative if it does not wait for them
	}{
		{"at once", bulk.Entry{Boot: "b", Marks: true}, true, "b", uptime - 60*time.Second, 120 * time.Second},
		{"when the lease ends", bulk.Entry{Boot: "b", Marks: true}, true, "b", uptime, 120 * time.Second},
		{"a minute later", bulk.Entry{Boot: "b", Marks: true}, true, "b", uptime + 61*time.Second, 60 * time.Second},
		{"a day later", bulk.Entry{Boot: "b", Marks: true}, true, "b", uptime + 24*time.Hour, 10 * time.Second},
		{"a day later, without marks", bulk.Entry{Boot: "b"}, false, "b", uptime + 24*time.Hour, 10 * time.Second},
		{"on another boot", bulk.Entry{Boot: "b", Marks: true}, true, "c", uptime + 24*time.Hour, 120 * time.Second},
		{"on another boot, not marked", bulk.Entry{Boot: "b", Marks: true}, false, "c", uptime + 24*time.Hour, 120 * time.Second},
		{"on an unknown boot", bulk.Entry{Boot: "b", Marks: true}, true, "", uptime + 24*time.Hour, 120 * time.Second},
		{"both unknown", bulk.Entry{Marks: true}, false, "", uptime + 24*time.Hour, 120 * time.Second},
		{"not sent", bulk.Entry{Boot: "b", Marks: true}, false, "b", uptime, -1},
		{"no lease", bulk.Entry{}, false, "b", uptime + 24*time.Hour, 120 * time.Second},
	}
	for _, test := range tests {
		for _, clock := range []time.Duration{0, -24 * time.Hour, 24 * time.Hour} { // of the entries
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				bulk.BootClock(t, func() string { return test.boot }, func() time.Duration { return test.uptime + time.Since(start) })
				s, j := &service{}, new(bulk.Memory)
				test.lease.Step, test.lease.Lease = bulk.StepLease, uptime
				list := []bulk.Entry{
					{Step: bulk.StepBegin, Version: 1, Key: make([]byte, 32)}, test.lease,
					{Step: bulk.StepIntent, SampleID: "A", Record: 1, Digest: "0000000000"},
				}
				if test.name == "no lease" {
					list = slices.Delete(list, 1, 2)
				}
				if test.sending {
					list = append(list, bulk.Entry{Step: bulk.StepSending, SampleID: "A", Record: 1})
				}
				for i := range list {
					list[i].At = start.Add(clock)
				}
				j.Append(list)
				report, err := bulk.Run(t.Context(), s.client(t), from(records("A")), j, bulk.Options{})
				if err != nil {
					t.Fatal(err)
				}
				lists := s.times["list"]
				if test.wait < 0 {
					checkCounts(t, report, bulk.Report{Records: 1, Applied: 1, Sent: 1})
					if len(lists) != 1 || report.WaitedFor != 0 {
						t.Errorf("%s: lists at %v", test.name, lists)
					}
					return
				}
				checkCounts(t, report, bulk.Report{Records: 1, Applied: 1, Sent: 1})
				if len(lists) != 3 || lists[0] != start || lists[1].Sub(start) != test.wait || s.times["A"][0].Before(lists[2]) {
					t.Errorf("%s: lists after %v and %v, want %v", test.name, lists[0].Sub(start), lists[1].Sub(start), test.wait)
				}
				checkEqual(t, test.name, report.String(), fmt.Sprintf("1 records: 1 applied; waited %v for 1 records that may have been sent", test.wait))
			})
		}
	}
}

// leaseService checks that each request is covered by the journal when it is sent.
type leaseService struct {
	*service
	t       *testing.T
	path    string
	uptime  func() time.Duration
	connect func() // called before each connection
}

func (l leaseService) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet {
		return l.service.RoundTrip(req)
	}
	if l.connect != nil {
		l.connect()
	}
	httptracetest.SendRequest(req) // waits for the lease
	content, err := os.ReadFile(l.path)
	if err != nil {
		l.t.Error(err)
	}
	end := time.Duration(0)
	for line := range strings.Lines(string(content)) {
		if _, lease, ok := strings.Cut(line, `"lease":`); ok {
			fmt.Sscan(lease, (*int64)(&end))
		}
	}
	if now := l.uptime(); now > end {
		l.t.Errorf("sent at %v, %v after the end of the lease", now, now-end)
	}
	if n := bytes.Count(content, []byte(`"step":"sending"`)); n <= len(l.sent) {
		l.t.Errorf("request %d was sent after %d marks", len(l.sent)+1, n)
	}
	return l.service.RoundTrip(req)
}

// A record is sent only after its mark and within the lease of the run, also if the run was stopped
// for an hour while it was connecting.
func TestLease(t *testing.T) {
	bulk.SkipSync(t)
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		start, stopped := time.Now(), time.Duration(0)
		uptime := func() time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return (time.Since(start) + stopped + 1000*time.Second).Truncate(time.Second)
		}
		bulk.BootClock(t, func() string { return "b" }, uptime)
		path := filepath.Join(dir, "run.journal")
		s := &service{latency: 300 * time.Millisecond}
		client, err := labhealth.NewClient("sk_test_0123456789", labhealth.WithBaseURL("https://api.example.com"),
			labhealth.WithHTTPClient(&http.Client{Transport: leaseService{s, t, path, uptime, func() {
				time.Sleep(10 * time.Second)
				mu.Lock()
				stopped += time.Hour
				mu.Unlock()
			}}}))
		if err != nil {
			t.Fatal(err)
		}
		report, err := bulk.Run(t.Context(), client, from(numbered(8)), open(t, path), bulk.Options{Concurrency: 1})
		if err != nil || report.Applied != 8 {
			t.Error(report, err)
		}
		if content, err := os.ReadFile(path); err != nil || bytes.Count(content, []byte(`"step":"lease"`)) > 200 {
			t.Errorf("%v, or too many leases", err)
		}
	})
}

// A resumed run whose list does not show an order that was applied waits for the list, and sends
// nothing until it shows it.
func TestResumeBehindList(t *testing.T) {
	for _, behind := range []time.Duration{time.Minute, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			s, j, start := &service{twice: true}, new(bulk.Memory), time.Now()
			if _, err := bulk.Run(t.Context(), s.client(t), from(records("A")), j, bulk.Options{}); err != nil {
				t.Fatal(err)
			}
			s.onList = func(int, map[string][]string) string {
				if time.Since(start) < behind {
					return "behind"
				}
				return ""
			}
			report, err := bulk.Run(t.Context(), s.client(t), from(records("A", "B")), j, bulk.Options{})
			if shown := behind == time.Minute; (err == nil) != shown || report.Done() != shown || len(s.sent) != int(report.Applied) {
				t.Errorf("%v: %v, %v", behind, report, err)
			}
		})
	}
}

// Without its journal, an import finds its orders by sample ID and user before it sends anything.
func TestReconcile(t *testing.T) {
	tests := []struct {
		name    string
		orders  []held
		late    bool // the order of D is created a minute later
		want    bulk.Report
		wait    time.Duration
		orderOf map[string]int
	}{
		{"all exist", []held{{uuid.New(), ada, `"A"`}, {uuid.New(), ada, `"b"`}, {uuid.New(), ada, `"C"`}, {uuid.New(), ada, `"D"`}}, false,
			bulk.Report{Applied: 4, Found: 4}, 0, map[string]int{"A": 1, "b": 1, "C": 1, "D": 1}},
		{"one does not exist", []held{{uuid.New(), ada, `"A"`}, {uuid.New(), ada, `"B"`}, {uuid.New(), ada, `"C"`}}, false,
			bulk.Report{Applied: 4, Found: 3, Sent: 1}, 2 * time.Minute, map[string]int{"A": 1, "B": 1, "C": 1, "D": 1}},
		{"one is late", []held{{uuid.New(), ada, `"A"`}, {uuid.New(), ada, `"B"`}, {uuid.New(), ada, `"C"`}}, true,
			bulk.Report{Applied: 4, Found: 4}, 2 * time.Minute, map[string]int{"A": 1, "B": 1, "C": 1, "D": 1}},
		{"one is another user's", []held{{uuid.New(), ada, `"A"`}, {uuid.New(), grace, `"B"`}, {uuid.New(), ada, `"C"`}, {uuid.New(), ada, `"D"`}}, false,
			bulk.Report{Applied: 3, Found: 3, Rejected: 1}, 0, map[string]int{"A": 1, "B": 1, "C": 1, "D": 1}},
		{"one is of two users", []held{{uuid.New(), ada, `"A"`}, {uuid.New(), ada, `"B"`}, {uuid.New(), grace, `"B"`}, {uuid.New(), ada, `"C"`}, {uuid.New(), ada, `"D"`}}, false,
			bulk.Report{Applied: 4, Found: 4}, 0, map[string]int{"A": 1, "B": 2, "C": 1, "D": 1}},
	}
	for _, test := range tests {
		for _, unique := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s, j := &service{orders: slices.Clone(test.orders), twice: !unique}, new(bulk.Memory)
				if test.late {
					time.AfterFunc(time.Minute, func() {
						s.mu.Lock()
						defer s.mu.Unlock()
						s.add(record("D"))
					})
				}
				start := time.Now()
				var rejections bytes.Buffer
				opts := bulk.Options{Reconcile: true, Rejections: &rejections, RetryRejected: true}
				report, err := bulk.Run(t.Context(), s.client(t), from(records("A", "B", "C", "D")), j, opts)
				if err != nil {
					t.Fatal(err)
				}
				test.want.Records = 4
				checkCounts(t, report, test.want)
				checkEqual(t, test.name, s.ordersBySample(), test.orderOf)
				if took := time.Since(start); took != test.wait || report.Waited != test.wait {
					t.Errorf("%s: took %v, want %v", test.name, took, test.wait)
				}
				want := ""
				if test.want.Rejected > 0 {
					want = `{"outcome":"rejected","record":2,"sample_id":"B","reason":"it cannot be imported",` +
						`"fields":[{"path":"body.sample_id","reason":"belongs to an order of another user"}]}` + "\n"
				}
				checkEqual(t, test.name, rejections.String(), want)
				sent := len(s.sent)
				for _, opts := range []bulk.Options{{}, {Reconcile: true}, {RetryRejected: true}, {Reconcile: true, RetryRejected: true}} {
					if report, err := bulk.Run(t.Context(), s.client(t), from(records("A", "B", "C", "D")), j, opts); err != nil || len(s.sent) != sent || !report.Done() {
						t.Errorf("%s: the next run: %v, %v", test.name, report, err)
					}
				}
			})
		}
	}
}

// A list that cannot be read, or hides sample IDs, keeps a reconciling run from sending.
func TestReconcileWithoutList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, s := range map[string]*service{
			"rejected": {onList: func(int, map[string][]string) string { return "404" }},
			"hidden":   {orders: []held{{uuid.New(), ada, ""}}},
		} {
			report, err := bulk.Run(t.Context(), s.client(t), from(records("A")), new(bulk.Memory), bulk.Options{Reconcile: true})
			if err == nil || len(s.sent) > 0 || report.Pending != 1 {
				t.Errorf("%s: %v, %v", name, report, err)
			}
		}
	})
}

// A run whose journal was lost starts without Reconcile, and the service rejects the orders that
// exist. The next run with the same journal sets it, and waits for what the lost run sent last.
func TestReconcileAfterRejections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, j := &service{}, new(bulk.Memory)
		s.add(record("A"))
		s.add(record("B"))
		opts := bulk.Options{Concurrency: 1, RejectionLimit: 2}
		if report, err := bulk.Run(t.Context(), s.client(t), from(records("A", "B", "C")), j, opts); err == nil || report.Pending != 3 {
			t.Fatal(report, err)
		}
		s.twice = true
		time.AfterFunc(time.Minute, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.add(record("C"))
		})
		opts.Reconcile = true
		report, err := bulk.Run(t.Context(), s.client(t), from(records("A", "B", "C")), j, opts)
		if err != nil || report.Found != 3 || report.Waited != 2*time.Minute {
			t.Error(report, err)
		}
		checkEqual(t, "orders", s.ordersBySample(), map[string]int{"A": 1, "B": 1, "C": 1})
	})
}

// Progress of a resumed run: the records that are found do not count as sent.
func TestProgressResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, j := &service{latency: time.Second}, new(bulk.Memory)
		for _, body := range numbered(100)[:50] {
			s.add(body)
		}
		var listing, importing bulk.Progress
		report, err := bulk.Run(t.Context(), s.client(t), from(numbered(100)), j, bulk.Options{Reconcile: true, Settle: 61 * time.Second,
			Progress: func(p bulk.Progress) {
				switch {
				case p.Phase == bulk.PhaseListing && p.Listed == 20:
					listing = p
				case p.Phase == bulk.PhaseImporting && p.Done >= 60 && importing.Done == 0:
					importing = p
				}
			}})
		if err != nil || report.Found != 50 {
			t.Fatal(report, err)
		}
		checkEqual(t, "orders", []int64{listing.Orders, importing.Done / 4}, []int64{50, 15})
		for what, got := range map[string][3]float64{ // value, expected, tolerance
			"orders per second":  {listing.Rate, 2, 0.5},
			"left of the list":   {listing.Left.Seconds(), 15, 3},
			"records per second": {importing.Rate, 4, 1.5},
			"left":               {importing.Left.Seconds(), 10, 4},
			"left in total":      {importing.LeftInTotal.Seconds(), 10, 4},
		} {
			if math.Abs(got[0]-got[1]) > got[2] {
				t.Errorf("%s: %v, want %v", what, got[0], got[1])
			}
		}
	})
}

// A run that waits because entries are missing from the journal is interrupted. The next run does
// not know less.
func TestInterruptedReconciliation(t *testing.T) {
	bulk.SkipSync(t)
	for _, torn := range []bool{false, true} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(dir, "run.journal")
			s := &service{twice: true}
			if torn {
				if _, err := bulk.Run(t.Context(), s.client(t), from(nil), open(t, path), bulk.Options{}); err != nil {
					t.Fatal(err)
				}
				content, err := os.ReadFile(path)
				if err := errors.Join(err, os.WriteFile(path+".torn", append(content, "5ab0"...), 0o600)); err != nil {
					t.Fatal(err)
				}
				path += ".torn"
			}
			time.AfterFunc(100*time.Second, func() { // what the lost entries would show
				s.mu.Lock()
				defer s.mu.Unlock()
				s.add(record("A"))
			})
			for n, wait := range []time.Duration{0, 5 * time.Second, 0} {
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if wait > 0 || n == 0 {
					ctx, cancel = context.WithTimeout(ctx, wait)
				}
				j := open(t, path)
				report, err := bulk.Run(ctx, s.client(t), from(records("A")), j, bulk.Options{Reconcile: !torn && n < 2})
				cancel()
				j.Close()
				if last := n == 2; last && (err != nil || report.Found != 1) || !last && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("torn: %t, run %d: %v, %v", torn, n+1, report, err)
				}
			}
			checkEqual(t, "orders", s.ordersBySample(), map[string]int{"A": 1})
			checkEqual(t, "requests", len(s.sent), 0)
		})
	}
}
