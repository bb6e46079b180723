package conformance

import (
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go"
)

// stallingPath forwards TCP connections to a server and stops forwarding what clients send when
// told so, with little room for bytes on their way. It knows nothing of HTTP.
type stallingPath struct {
	addr   string
	buffer int // of each side of a connection

	mu    sync.Mutex
	moves *sync.Cond
	room  int64 // bytes that may still be forwarded
	open  bool  // all are, for good
}

func newStallingPath(t testing.TB, to string, buffer int) *stallingPath {
	p := &stallingPath{room: 1 << 40, buffer: buffer}
	p.moves = sync.NewCond(&p.mu)
	l := acceptAll(t, func(from net.Conn) {
		from.(*net.TCPConn).SetReadBuffer(buffer)
		server, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		var both sync.WaitGroup
		both.Go(func() {
			io.Copy(from, server)
			from.Close()
		})
		both.Go(func() {
			defer server.Close()
			buf := make([]byte, buffer)
			for {
				n, err := from.Read(buf)
				for sent := 0; sent < n; {
					may := p.take(n - sent)
					if _, err := server.Write(buf[sent : sent+may]); err != nil {
						return
					}
					sent += may
				}
				if err != nil {
					return
				}
			}
		})
		both.Wait()
	})
	t.Cleanup(p.release)
	p.addr = l.Addr().String()
	return p
}

// take waits until some of n bytes may be forwarded and returns how many.
func (p *stallingPath) take(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.room == 0 && !p.open {
		p.moves.Wait()
	}
	if p.open {
		return n
	}
	n = int(min(int64(n), p.room))
	if p.room -= int64(n); p.room == 0 {
		p.moves.Broadcast()
	}
	return n
}

// allow sets how many bytes are forwarded before the next stall.
func (p *stallingPath) allow(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.room = n
	p.moves.Broadcast()
}

// awaitStall waits until nothing more is forwarded. It reports false if there will be no more
// stalls.
func (p *stallingPath) awaitStall() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.room > 0 && !p.open {
		p.moves.Wait()
	}
	return !p.open
}

// release ends all stalls.
func (p *stallingPath) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = true
	p.moves.Broadcast()
}

// transport leads to the server through the path.
func (p *stallingPath) transport(srv *httptest.Server) *http.Transport {
	t := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, p.addr)
		if err == nil {
			c.(*net.TCPConn).SetWriteBuffer(p.buffer)
		}
		return c, err
	}, ForceAttemptHTTP2: true}
	if theirs := srv.Client().Transport.(*http.Transport); srv.TLS != nil {
		t.TLSClientConfig = theirs.TLSClientConfig.Clone()
	}
	return t
}

// withoutBody is a write that has nothing to say.
func withoutBody(ctx context.Context, c *labhealth.Client, opts ...labhealth.CallOption) error {
	return c.Do(ctx, http.MethodPost, "/v2/user/undo_delete", nil, nil, opts...)
}

func withBody(ctx context.Context, c *labhealth.Client, opts ...labhealth.CallOption) error {
	_, err := c.Orders.Import(ctx, faultImport(), opts...)
	return err
}

// The deadline passes while the request is half written, and the rest arrives later. The server
// processes a write once at most, and what the error says is true.
func TestStallWithinARequest(t *testing.T) {
	filler := strings.Repeat("x", 100_000)
	for _, protocol := range []int{1, 2} {
		for _, kind := range []struct {
			name string
			call func(context.Context, *labhealth.Client, ...labhealth.CallOption) error
		}{{"with a body", withBody}, {"without a body", withoutBody}} {
			// 0 bytes are before the request line or the frame, 300 and 90,000 within the headers,
			// 101,000 within the body if there is one.
			for _, room := range []int64{0, 300, 90_000, 101_000} {
				t.Run(fmt.Sprintf("HTTP%d/%s/%d bytes", protocol, kind.name, room), func(t *testing.T) {
					t.Parallel()
					srv := startFaults(t, protocol == 2, 0, nil)
					path := newStallingPath(t, srv.Listener.Addr().String(), 4<<10)
					client := faultClient(t, srv.URL, path.transport(srv.Server))
					if err := client.Do(t.Context(), http.MethodHead, warmPath, nil, nil); err != nil {
						t.Fatal(err)
					}
					path.allow(room)
					var r labhealth.Response
					err := kind.call(t.Context(), client, labhealth.WithResponse(&r), labhealth.WithHeader("X-Filler", filler),
						labhealth.WithCallRetry(labhealth.RetryPolicy{WriteTimeout: 50 * time.Millisecond}))
					path.release()
					for srv.ended.Load() < srv.conns.Load() {
						client.CloseIdleConnections() // once the rest has arrived
						runtime.Gosched()
					}
					commits, outcome := srv.commits.Load(), labhealth.OutcomeOf(err)
					// HTTP/2 compresses the headers, so that all of the request may fit before the
					// last stall.
					if commits > 1 || outcome == rejected || (outcome == notSent && commits > 0) || (outcome == applied && commits != 1) {
						t.Errorf("%d attempts, %d commits, %v: %v", r.Attempts, commits, outcome, err)
					}
				})
			}
		}
	}
}

// Many calls share connections that stall for as long as an attempt may take, again and again.
func TestStallsUnderLoad(t *testing.T) {
	calls := 96
	if long {
		calls = 1000
	}
	filler := strings.Repeat("x", 200_000)
	for _, protocol := range []int{1, 2} {
		t.Run(fmt.Sprintf("HTTP%d", protocol), func(t *testing.T) {
			const timeout = 250 * time.Millisecond
			commits := make([]atomic.Int32, calls)
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == warmPath {
					return
				}
				io.Copy(io.Discard, r.Body)
				n, _ := strconv.Atoi(r.Header.Get("X-Call"))
				commits[n].Add(1)
			}))
			srv.EnableHTTP2 = protocol == 2
			srv.Config.ErrorLog = log.New(io.Discard, "", 0)
			srv.StartTLS()
			defer srv.Close()
			path := newStallingPath(t, srv.Listener.Addr().String(), 128<<10)
			client := faultClient(t, srv.URL, path.transport(srv))
			if err := client.Do(t.Context(), http.MethodHead, warmPath, nil, nil); err != nil {
				t.Fatal(err)
			}
			var stalls sync.WaitGroup
			stalls.Go(func() {
				path.allow(rand.N[int64](8_000_000))
				for path.awaitStall() {
					time.Sleep(timeout) // as long as an attempt may take
					path.allow(rand.N[int64](8_000_000))
				}
			})
			outcomes := make([]labhealth.Outcome, calls)
			var next atomic.Int32
			var all sync.WaitGroup
			for range 24 {
				all.Go(func() {
					for n := int(next.Add(1)) - 1; n < calls; n = int(next.Add(1)) - 1 {
						outcomes[n] = labhealth.OutcomeOf(withoutBody(t.Context(), client, labhealth.WithHeader("X-Filler", filler),
							labhealth.WithHeader("X-Call", strconv.Itoa(n)), labhealth.WithCallRetry(labhealth.RetryPolicy{WriteTimeout: timeout})))
					}
				})
			}
			all.Wait()
			path.release()
			stalls.Wait()
			client.CloseIdleConnections()
			srv.Close()
			seen := map[string]int{}
			for n := range calls {
				done := commits[n].Load()
				seen[fmt.Sprintf("%v, %d done", outcomes[n], done)]++
				if done > 1 || (outcomes[n] == notSent && done > 0) || (outcomes[n] == applied && done == 0) || outcomes[n] == rejected {
					t.Errorf("%v, %d done", outcomes[n], done)
				}
			}
			t.Logf("%d calls: %v", calls, seen)
		})
	}
}
