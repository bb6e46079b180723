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
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labhealth/labhealth-go"
)

// stallNetwork is the network under a stallingPath: a listener for the server, and pairs of
// connected ends for the clients.
type stallNetwork struct {
	name   string
	buffer int // from client to server, in bytes, of each connection
	run    func(*testing.T, func(*testing.T))
	listen func(testing.TB) (l net.Listener, dial func() (net.Conn, error))
	pair   func(buffer int) (client, path net.Conn, err error)
}

// inMemory is a network in a bubble of fake time.
var inMemory = stallNetwork{"memory", 4 << 10, synctest.Test, func(testing.TB) (net.Listener, func() (net.Conn, error)) {
	l := newMemoryListener()
	return l, func() (net.Conn, error) { return l.dial(context.Background(), "", "") }
}, func(int) (client, path net.Conn, err error) {
	client, path = net.Pipe()
	return client, path, nil
}}

// onLoopback is TCP with small buffers, in real time.
var onLoopback = stallNetwork{"TCP", 4 << 10, func(t *testing.T, f func(*testing.T)) { f(t) }, func(t testing.TB) (net.Listener, func() (net.Conn, error)) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l, func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) }
}, func(buffer int) (client, path net.Conn, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		return nil, nil, err
	}
	if path, err = l.Accept(); err != nil {
		client.Close()
		return nil, nil, err
	}
	client.(*net.TCPConn).SetWriteBuffer(buffer)
	path.(*net.TCPConn).SetReadBuffer(buffer)
	return client, path, nil
}}

// stallNetworks returns the networks of this run: memory, and TCP in the long form.
func stallNetworks() []stallNetwork {
	if long {
		return []stallNetwork{inMemory, onLoopback}
	}
	return []stallNetwork{inMemory}
}

const chunkSize = 4 << 10 // of what a stallingPath forwards, in bytes

// stallingPath forwards connections to a server and stops forwarding what clients send after a
// number of bytes, with a small buffer on the way. It knows nothing of HTTP.
type stallingPath struct {
	network stallNetwork
	server  func() (net.Conn, error)

	mu      sync.Mutex
	changed *sync.Cond
	left    int64 // bytes to forward before the next stall
	open    bool  // no more stalls
}

func newStallingPath(t testing.TB, network stallNetwork, server func() (net.Conn, error)) *stallingPath {
	p := &stallingPath{network: network, server: server, left: 1 << 40}
	p.changed = sync.NewCond(&p.mu)
	t.Cleanup(p.release)
	return p
}

// connect returns the client's end of a new connection to the server.
func (p *stallingPath) connect() (net.Conn, error) {
	server, err := p.server()
	if err != nil {
		return nil, err
	}
	client, path, err := p.network.pair(p.network.buffer)
	if err != nil {
		server.Close()
		return nil, err
	}
	go func() {
		io.Copy(path, server)
		path.Close()
		io.Copy(io.Discard, server) // or the server would hold its locks until its last write times out
	}()
	chunks := make(chan []byte, p.network.buffer/chunkSize) // what is on the way
	go func() {
		defer close(chunks)
		for {
			chunk := make([]byte, chunkSize)
			n, err := path.Read(chunk)
			chunks <- chunk[:n]
			if err != nil {
				return
			}
		}
	}()
	go func() {
		defer server.Close()
		for chunk := range chunks {
			for len(chunk) > 0 {
				n := p.take(len(chunk))
				server.Write(chunk[:n]) // after an error there is nobody left to tell
				chunk = chunk[n:]
			}
		}
	}()
	return client, nil
}

// take waits until some of n bytes may be forwarded and returns how many.
func (p *stallingPath) take(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.left == 0 && !p.open {
		p.changed.Wait()
	}
	if p.open {
		return n
	}
	n = int(min(int64(n), p.left))
	if p.left -= int64(n); p.left == 0 {
		p.changed.Broadcast()
	}
	return n
}

// allow sets how many bytes are forwarded before the next stall.
func (p *stallingPath) allow(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = n
	p.changed.Broadcast()
}

// awaitStall waits until nothing more is forwarded. It reports false if there will be no more
// stalls.
func (p *stallingPath) awaitStall() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.left > 0 && !p.open {
		p.changed.Wait()
	}
	return !p.open
}

// release ends all stalls.
func (p *stallingPath) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = true
	p.changed.Broadcast()
}

// transport connects to the server through the path.
func (p *stallingPath) transport(srv *httptest.Server) *http.Transport {
	t := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return p.connect()
	}, ForceAttemptHTTP2: true}
	if theirs := srv.Client().Transport.(*http.Transport); srv.TLS != nil {
		t.TLSClientConfig = theirs.TLSClientConfig.Clone()
	}
	return t
}

// writeCalls are writes with and without a body.
var writeCalls = []struct {
	name string
	call func(context.Context, *labhealth.Client, ...labhealth.CallOption) error
}{{"with a body", withBody}, {"without a body", withoutBody}}

func withoutBody(ctx context.Context, c *labhealth.Client, opts ...labhealth.CallOption) error {
	return c.Do(ctx, http.MethodPost, "/v2/user/undo_delete", nil, nil, opts...)
}

func withBody(ctx context.Context, c *labhealth.Client, opts ...labhealth.CallOption) error {
	_, err := c.Orders.Import(ctx, faultImport(), opts...)
	return err
}

// The deadline passes while the request is half written, and the rest arrives later. The server
// processes a write at most once, and the outcome of the error is true.
func TestStallWithinARequest(t *testing.T) {
	for _, network := range stallNetworks() {
		for _, protocol := range []int{1, 2} {
			for _, kind := range writeCalls {
				// 0 bytes are before the request line or the frame, 300 and 90,000 within the
				// headers, 100,500 within the body if there is one.
				for _, bytes := range []int64{0, 300, 90_000, 100_500} {
					t.Run(fmt.Sprintf("%s/HTTP%d/%s/%d bytes", network.name, protocol, kind.name, bytes), func(t *testing.T) {
						network.run(t, func(t *testing.T) { stallWithinRequest(t, network, protocol, kind.call, bytes) })
					})
				}
			}
		}
	}
}

func stallWithinRequest(t *testing.T, network stallNetwork, protocol int, call func(context.Context, *labhealth.Client, ...labhealth.CallOption) error, bytes int64) {
	l, dial := network.listen(t)
	srv := startFaultsOn(t, l, protocol == 2, 0, nil)
	path := newStallingPath(t, network, dial)
	client := faultClient(t, srv.URL, path.transport(srv.Server))
	if err := client.Do(t.Context(), http.MethodHead, warmPath, nil, nil); err != nil {
		t.Fatal(err)
	}
	path.allow(bytes)
	var r labhealth.Response
	err := call(t.Context(), client, labhealth.WithResponse(&r), labhealth.WithHeader("X-Filler", strings.Repeat("x", 100_000)),
		labhealth.WithCallRetry(labhealth.RetryPolicy{WriteTimeout: 50 * time.Millisecond}))
	path.release()
	for srv.ended.Load() < srv.conns.Load() {
		client.CloseIdleConnections() // a connection is idle once the rest has arrived
		time.Sleep(time.Millisecond)
	}
	commits, outcome := srv.commits.Load(), labhealth.OutcomeOf(err)
	// HTTP/2 compresses the headers, so that all of the request may fit before the last stall.
	if commits > 1 || outcome == rejected || (outcome == notSent && commits > 0) || (outcome == applied && commits != 1) {
		t.Errorf("%d attempts, %d commits, %v: %v", r.Attempts, commits, outcome, err)
	}
	t.Logf("%d attempts, %d commits, %v", r.Attempts, commits, outcome)
}

// Many calls share connections that stall repeatedly, each time for as long as an attempt may take.
// The calls on one HTTP/2 connection wait for each other's locks, with which fake time does not
// advance: they use TCP.
func TestStallsUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second")
	}
	for _, row := range []struct {
		protocol int
		network  stallNetwork
		buffer   int
		calls    int
		long     bool
	}{
		{1, inMemory, 128 << 10, 192, false},
		{1, onLoopback, 128 << 10, 1000, true},
		{2, onLoopback, 128 << 10, 72, false},
		{2, onLoopback, 128 << 10, 1000, true},
	} {
		if row.long != long {
			continue
		}
		row.network.buffer = row.buffer
		t.Run(fmt.Sprintf("%s/HTTP%d", row.network.name, row.protocol), func(t *testing.T) {
			row.network.run(t, func(t *testing.T) { stallsUnderLoad(t, row.network, row.protocol, row.calls) })
		})
	}
}

func stallsUnderLoad(t *testing.T, network stallNetwork, protocol, calls int) {
	const timeout = 250 * time.Millisecond
	filler := strings.Repeat("x", 200_000)
	commits := make([]atomic.Int32, calls)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == warmPath {
			return
		}
		io.Copy(io.Discard, r.Body)
		n, _ := strconv.Atoi(r.Header.Get("X-Call"))
		commits[n].Add(1)
	}))
	srv.Listener.Close()
	l, dial := network.listen(t)
	srv.Listener = l
	srv.EnableHTTP2 = protocol == 2
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	path := newStallingPath(t, network, dial)
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
		seen[fmt.Sprintf("%v, %d commits", outcomes[n], done)]++
		if done > 1 || (outcomes[n] == notSent && done > 0) || (outcomes[n] == applied && done == 0) || outcomes[n] == rejected {
			t.Errorf("%v, %d commits", outcomes[n], done)
		}
	}
	t.Logf("%d calls: %v", calls, seen)
}
