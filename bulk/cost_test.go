package bulk_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
)

// TestThroughput compares Run with a plain loop of the same concurrency and without a journal. Both
// use the same service in its own process:
//
//	LABHEALTH_TEST_THROUGHPUT=1 go test -run TestThroughput -v ./bulk
func TestThroughput(t *testing.T) {
	if os.Getenv("LABHEALTH_TEST_THROUGHPUT") == "" {
		t.Skip("a measurement: set LABHEALTH_TEST_THROUGHPUT")
	}
	const n, rounds, concurrency = 3000, 9, 4
	at, _ := startService(t, "LABHEALTH_BULK_FAULTS=none")
	client, err := labhealth.NewClient(at.Key, labhealth.WithBaseURL(at.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	dir := t.TempDir()
	source := func(name string) bulk.Source {
		var lines strings.Builder
		for i := range n {
			fmt.Fprintf(&lines, `{"sample_id":"%s-%05d","user_id":"%s","order_set":{"lab_test_ids":["%s"]},`+
				`"billing_type":"client_bill","collection_method":"walk_in_test","patient_details":{"first_name":"Ada","last_name":"Example",`+
				`"dob":"1955-12-10","gender":"female","phone_number":"+14155550123","email":"ada@example.com"},`+
				`"patient_address":{"receiver_name":"Ada Example","first_line":"1 Example Street","city":"Monterey","state":"CA",`+
				`"zip":"93940","country":"US"}}`+"\n", name, i, at.Users[i%len(at.Users)], at.Test)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(lines.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return bulk.JSONLines(f)
	}
	plain := func(source bulk.Source) {
		jobs := make(chan labhealth.ImportOrderBody, concurrency)
		var workers sync.WaitGroup
		for range concurrency {
			workers.Go(func() {
				for body := range jobs {
					if _, err := client.Orders.Import(context.Background(), body); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for record, err := range source {
			if err != nil {
				t.Error(err)
			}
			jobs <- record.Body
		}
		close(jobs)
		workers.Wait()
	}
	journaled := func(name string, source bulk.Source) {
		journal, err := bulk.OpenFile(filepath.Join(dir, name+".journal"))
		if err != nil {
			t.Fatal(err)
		}
		defer journal.Close()
		report, err := bulk.Run(t.Context(), client, source, journal, bulk.Options{Concurrency: concurrency})
		if err != nil || report.Applied != n {
			t.Fatal(report, err)
		}
	}
	var ratios []float64
	for round := range rounds + 1 {
		var loop, run time.Duration
		for turn := range 2 {
			name := fmt.Sprint("round", round, "turn", turn)
			records := source(name)
			start := time.Now()
			if (round+turn)%2 == 0 { // the service slows down with more orders
				plain(records)
				loop = time.Since(start)
			} else {
				journaled(name, records)
				run = time.Since(start)
			}
		}
		if round > 0 { // the first warms up
			t.Logf("plain loop %.0f records/s, bulk.Run %.0f records/s", n/loop.Seconds(), n/run.Seconds())
			ratios = append(ratios, loop.Seconds()/run.Seconds())
		}
	}
	slices.Sort(ratios) // only logged, because the machine may be busy
	t.Logf("ratio %.3f, the median of %.2f", ratios[rounds/2], ratios)
}

// TestListCost measures the list that a resumed run reads, compared with the import of the listed
// orders:
//
//	LABHEALTH_TEST_THROUGHPUT=1 go test -run TestListCost -v ./bulk
func TestListCost(t *testing.T) {
	if os.Getenv("LABHEALTH_TEST_THROUGHPUT") == "" {
		t.Skip("a measurement: set LABHEALTH_TEST_THROUGHPUT")
	}
	at, _ := startService(t, "LABHEALTH_BULK_FAULTS=none")
	client, err := labhealth.NewClient(at.Key, labhealth.WithBaseURL(at.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	journal := new(bulk.Memory)
	for _, n := range []int{1_000, 1_001, 10_000, 10_001} {
		list := numbered(n)
		for i := range list {
			list[i].UserID, list[i].OrderSet.LabTestIDs[0] = at.Users[i%len(at.Users)], at.Test
		}
		start := time.Now()
		report, err := bulk.Run(t.Context(), client, from(list), journal, bulk.Options{})
		if err != nil || report.Applied != int64(n) {
			t.Fatal(report, err)
		}
		t.Logf("%d records, %d of them sent, in %.2f s", n, report.Sent, time.Since(start).Seconds())
	}
}

// instantService responds to every import without a network and keeps nothing.
type instantService struct{ sent atomic.Int64 }

func (a *instantService) RoundTrip(req *http.Request) (*http.Response, error) {
	readBody(req)
	a.sent.Add(1)
	return newResponse(req, 200, `{"order":{"id":"00000000-0000-4000-8000-000000000001"},"status":"success","message":""}`, ""), nil
}

// TestMemory measures the memory per record, and checks that nothing else grows:
//
//	LABHEALTH_MEMORY_RECORDS=1000000 go test -run TestMemory -timeout 1h -v ./bulk
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	sizes := []int{1_000, 20_000}
	if os.Getenv("LABHEALTH_TEST_LONG") != "" {
		sizes = []int{1_000, 100_000}
	}
	if n, err := strconv.Atoi(os.Getenv("LABHEALTH_MEMORY_RECORDS")); err == nil {
		sizes = []int{1_000, 10_000, 100_000, n}
	}
	for _, n := range sizes {
		client, err := labhealth.NewClient("sk_test_0123456789", labhealth.WithBaseURL("https://api.example.com"),
			labhealth.WithHTTPClient(&http.Client{Transport: new(instantService)}))
		if err != nil {
			t.Fatal(err)
		}
		used := func() float64 {
			// The workers end what is on its way while this collects, and a collection frees only
			// what was garbage at its start: what is kept is what many collections leave.
			least := math.Inf(1)
			for unchanged := 0; unchanged < 10; unchanged++ {
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				if used := float64(m.HeapAlloc); used < least {
					least, unchanged = used, 0
				}
			}
			return least
		}
		before, peak := 0.0, 0.0
		source := bulk.Source(func(yield func(bulk.Record, error) bool) {
			body := record("")
			for i := range n {
				body.SampleID = fmt.Sprintf("S-%09d", i)
				body.UserID = uuid.UUID{1, byte(i), byte(i >> 8)}
				if !yield(bulk.Record{Body: body}, nil) {
					return
				}
				if i%(n/4) == n/4-1 { // the run waits for its source
					peak = max(peak, used()-before)
				}
			}
		})
		journal, err := bulk.OpenFile(filepath.Join(t.TempDir(), "run.journal"))
		if err != nil {
			t.Fatal(err)
		}
		for _, what := range []string{"first run", "second run"} {
			before, peak = used(), 0
			start := time.Now()
			report, err := bulk.Run(t.Context(), client, source, journal, bulk.Options{})
			if err != nil || report.Applied != int64(n) {
				t.Fatal(report, err)
			}
			t.Logf("%9d records, %s: %6.2f MB at the peak, %.1f bytes a record, %.1f s", n, what, peak/1e6, peak/float64(n), time.Since(start).Seconds())
			// Half a megabyte is for what does not grow.
			if n >= 20_000 && peak/float64(n) > 64+5e5/float64(n) {
				t.Errorf("%.1f bytes a record, want up to 64", peak/float64(n))
			}
		}
		journal.Close()
	}
}
