package conformance

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go"
	"go.uber.org/goleak"
)

// The limit counts bytes, and the largest is no special case.
func TestBodyLimits(t *testing.T) {
	page := `{"orders":[],"padding":"` + strings.Repeat("x", 1000) + `"}`
	for _, test := range []struct {
		limit int64
		fits  bool
	}{{100, false}, {2000, true}, {int64(len(page)), true}, {int64(len(page)) - 1, false}, {math.MaxInt64, true}} {
		client, _ := scripted(t, []reply{{status: 200, body: page}}, labhealth.WithBodyLimit(test.limit))
		_, err := client.Orders.List(t.Context(), labhealth.ListOrdersParams{})
		want := ""
		if !test.fits {
			want = "labhealth: GET /orders: 200 OK, but the response could not be read: applied (the response is larger than the limit: raise it with WithBodyLimit)"
		}
		equal(t, want, errorText(err))
		equal(t, labhealth.OutcomeApplied, labhealth.OutcomeOf(err))
	}
}

// The limit counts decompressed bytes.
func TestCompressedResponses(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		fmt.Fprintf(z, `{"orders":[],"padding":"%s"}`, strings.Repeat("x", 1<<20))
		z.Close()
	}))
	defer srv.Close()
	client := must[*labhealth.Client](t)(labhealth.NewClient(testKey, labhealth.WithBaseURL(srv.URL)))
	defer client.CloseIdleConnections()
	if _, err := client.Orders.List(t.Context(), labhealth.ListOrdersParams{}); err != nil {
		t.Error(err)
	}
	limited := must[*labhealth.Client](t)(labhealth.NewClient(testKey, labhealth.WithBaseURL(srv.URL), labhealth.WithBodyLimit(1<<20)))
	defer limited.CloseIdleConnections()
	_, err := limited.Orders.List(t.Context(), labhealth.ListOrdersParams{})
	equal(t, "labhealth: GET /orders: 200 OK, but the response could not be read: applied (the response is larger than the limit: raise it with WithBodyLimit)", errorText(err))
}

// peakHeap returns by how much the heap grows while f runs.
func peakHeap(f func()) int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before, peak := m.HeapAlloc, m.HeapAlloc
	done := make(chan bool)
	go func() {
		defer close(done)
		f()
	}()
	tick := time.NewTicker(500 * time.Microsecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return int64(peak - before)
		case <-tick.C:
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapAlloc)
		}
	}
}

// A hostile response takes at most four times the limit in memory.
func TestMemoryIsBounded(t *testing.T) {
	const limit = 8 << 20 // the default
	bomb := gzipOf(make([]byte, 1<<20))
	chunk := bytes.Repeat([]byte("x"), 64<<10)
	nested := bytes.Repeat([]byte("["), limit-1)
	objects := bytes.Repeat([]byte(`{"a":`), (limit-1)/5)
	header := []byte("X-Filler: " + strings.Repeat("x", 4000) + "\r\n")
	hints := []byte("HTTP/1.1 103 Early Hints\r\n" + string(header) + "\r\n")
	for _, row := range []struct {
		name   string
		most   int64
		inject func(exchange) bool
	}{
		{"gzip bomb of 1 GiB", 4 * limit, func(x exchange) bool {
			x.Header().Set("Content-Encoding", "gzip")
			x.Header().Set("Content-Type", "application/json")
			for range 1 << 10 {
				if _, err := x.Write(bomb); err != nil {
					break
				}
			}
			return true
		}},
		{"gzip bomb in an error", 1 << 20, func(x exchange) bool {
			x.Header().Set("Content-Encoding", "gzip")
			x.WriteHeader(422)
			for range 1 << 10 {
				if _, err := x.Write(bomb); err != nil {
					break
				}
			}
			return true
		}},
		{"endless body", 4 * limit, func(x exchange) bool {
			x.Header().Set("Content-Type", "application/json")
			for {
				if _, err := x.Write(chunk); err != nil {
					return true
				}
			}
		}},
		{"endless body of a length", 4 * limit, func(x exchange) bool {
			x.Header().Set("Content-Type", "application/json")
			x.Header().Set("Content-Length", "1000000000000")
			for {
				if _, err := x.Write(chunk); err != nil {
					return true
				}
			}
		}},
		{"endless error", 1 << 20, func(x exchange) bool {
			x.WriteHeader(404)
			for {
				if _, err := x.Write(chunk); err != nil {
					return true
				}
			}
		}},
		{"20 MB of headers", 1 << 20, func(x exchange) bool {
			c := x.raw()
			defer c.Close()
			io.WriteString(c, "HTTP/1.1 200 OK\r\n")
			for range 5000 {
				if _, err := c.Write(header); err != nil {
					return true
				}
			}
			io.WriteString(c, "\r\n")
			return true
		}},
		{"20 MB of interim responses", 1 << 20, func(x exchange) bool {
			c := x.raw()
			defer c.Close()
			for range 5000 {
				if _, err := c.Write(hints); err != nil {
					return true
				}
			}
			return true
		}},
		{"deep arrays", 4 * limit, func(x exchange) bool { x.respond(200, ""); x.Write(nested); return true }},
		{"deep objects", 4 * limit, func(x exchange) bool { x.respond(200, ""); x.Write(objects); return true }},
	} {
		srv := startFaults(t, false, -1, row.inject)
		client := faultClient(t, srv.URL, nil, labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 1}))
		var err error
		grown := peakHeap(func() { _, err = client.Orders.Get(t.Context(), faultOrderID) })
		t.Logf("%-26s %6.2f MiB: %v", row.name, float64(grown)/(1<<20), err)
		if err == nil || grown > row.most {
			t.Errorf("%s: the heap grew by %d bytes, want at most %d: %v", row.name, grown, row.most, err)
		}
		client.CloseIdleConnections()
		srv.Close()
	}
}

// openFiles returns the number of file descriptors of the process, -1 where it is not available.
func openFiles() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(list)
}

// Failing calls leak no goroutine, file or memory.
func TestFailuresLeakNothing(t *testing.T) {
	calls := 1_000
	if long {
		calls = 10_000
	}
	faults := []func(exchange) bool{
		respond(200, faultResponse), respond(500, "x"), respond(422, `{}`), respond(429, `{}`, "Retry-After", "100"),
		respond(200, "<html>"), cut(abort), func(x exchange) bool { x.raw().Close(); return true },
		respond(302, "", "Location", "https://elsewhere.example.com"), respond(302, "", "Location", "/self"),
		respond(200, strings.Repeat(" ", 5000)), respond(404, strings.Repeat("x", 100_000)), respond(204, ""),
		func(x exchange) bool { x.hang(); return true },
		func(x exchange) bool {
			c := x.raw()
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\n")
			c.Close()
			return true
		},
	}
	var n atomic.Int64
	srv := startFaults(t, false, -1, func(x exchange) bool { return faults[n.Add(1)%int64(len(faults))](x) })
	refused := "http://" + closedAddress(t)
	policy := labhealth.RetryPolicy{MaxAttempts: 2, BaseWait: 1, MaxWait: 1, ReadTimeout: 20 * time.Millisecond, WriteTimeout: 20 * time.Millisecond}
	run := func(calls int) {
		client := faultClient(t, srv.URL, nil, labhealth.WithRetry(policy), labhealth.WithBodyLimit(4000))
		nobody := faultClient(t, refused, nil, labhealth.WithRetry(policy))
		var all sync.WaitGroup
		for w := range 8 {
			all.Go(func() {
				for i := range calls / 8 {
					switch {
					case i%50 == 7:
						faultCalls[w%4].do(t, nobody)
					case i%20 == 3:
						ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
						client.Orders.Import(ctx, faultImport())
						cancel()
					default:
						faultCalls[(w+i)%4].do(t, client)
					}
				}
			})
		}
		all.Wait()
		client.CloseIdleConnections()
		nobody.CloseIdleConnections()
	}
	state := func() (goroutines, files int, heap int64) {
		srv.CloseClientConnections()
		srv.settle(0)
		for range 200 {
			goroutines = runtime.NumGoroutine()
			runtime.Gosched()
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return goroutines, openFiles(), int64(m.HeapAlloc)
	}
	ignore := goleak.IgnoreCurrent()
	run(400) // pools, caches
	goroutines, files, heap := state()
	run(calls)
	if err := goleak.Find(ignore); err != nil {
		t.Error(err)
	}
	goroutines2, files2, heap2 := state()
	t.Logf("after %d calls: goroutines %d to %d, files %d to %d, heap %d to %d KiB", calls, goroutines, goroutines2, files, files2, heap>>10, heap2>>10)
	if goroutines2 > goroutines+2 || files2 > files+2 || heap2 > heap+512<<10 {
		t.Error("something was left behind")
	}
}
