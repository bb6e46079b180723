package bulk_test

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
)

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
