package sqlstore_test

import (
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"

	labhealth "github.com/labhealth/labhealth-go"
)

// TestReconcileCost measures a comparison of LABHEALTH_TEST_ORDERS orders with an empty store, and
// another one with an equal store. The service is in the same process: the heap includes its own.
func TestReconcileCost(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("LABHEALTH_TEST_ORDERS"))
	if n == 0 {
		t.Skip("LABHEALTH_TEST_ORDERS is not set")
	}
	for _, d := range []struct {
		name string
		make func(testing.TB) database
	}{{"SQLite", sqliteFile}, {"PostgreSQL", postgres}} {
		t.Run(d.name, func(t *testing.T) {
			srv := labhealthtest.NewServer(t)
			srv.AddUser("ada")
			ids := srv.AddOrders(n)
			for _, id := range ids[:n/2] { // half of them have results
				for {
					if _, err := srv.Advance(id); err != nil {
						break
					}
				}
			}
			client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL))
			if err != nil {
				t.Fatal(err)
			}
			defer client.CloseIdleConnections()
			db := d.make(t)
			r := &sqlstore.Reconciler{Store: db.store(t), Client: client}
			for _, of := range []string{"an empty store", "an equal store"} {
				runtime.GC()
				var before runtime.MemStats
				runtime.ReadMemStats(&before)
				peak, stop := peakHeap()
				start, wal := cpuTime(t, db), walBytes(t, db)
				found, err := r.Since(t.Context(), time.Time{})
				took := cpuTime(t, db) - start
				wal = walBytes(t, db) - wal
				stop()
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%s: %d orders, %d requests (%.3f for each), %.1f s of CPU, %d bytes of WAL for each, peak heap %+.1f MiB: %+v", of, n, found.Requests,
					float64(found.Requests)/float64(n), took, wal/int64(n), float64(peak.Load()-int64(before.HeapAlloc))/(1<<20), found.Differences)
			}
		})
	}
}

// peakHeap watches the heap until stop is called.
func peakHeap() (peak *atomic.Int64, stop func()) {
	peak = new(atomic.Int64)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak.Store(max(peak.Load(), int64(m.HeapAlloc)))
			select {
			case <-done:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return peak, func() { close(done); <-ended }
}
