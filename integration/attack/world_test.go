package attack

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/labhealth/labhealth-go"
)

// protocol is how requests reach the service.
type protocol struct {
	name    string
	base    string // URL of the service, the only one that may get a key
	address string // what is dialed for it, such as that of a proxy
	// configure adapts the http.Transport of a world, which dials with world.dial.
	configure func(w *world, t *http.Transport)
	// serve serves a connection until it ends. The other end was returned by world.dial.
	serve func(c net.Conn, w *world, p *connPlan)
	http2 bool
}

// protocols are chosen at random. Those that are named twice are chosen more often.
var protocols = slices.Concat([]protocol{
	{"http1", "http://127.0.0.1:8080", "127.0.0.1:8080", func(*world, *http.Transport) {}, serveHTTP1, false},
	{"http2", "http://127.0.0.1:8080", "127.0.0.1:8080", http2Protocol, serveHTTP2, true},
}, networkProtocols)

// world is a service, the networks before it, and one client of it.
type world struct {
	plan     *schedule
	protocol protocol
	real     bool // time is real: the world is not in a synctest bubble
	pair     func(window int) (client, server net.Conn, err error)
	late     sync.WaitGroup // what a wrapper does after it has returned
	ended    chan struct{}  // closed when the calls have returned: stalls end

	mu      sync.Mutex
	dialed  int
	open    map[net.Conn]bool // server ends that are served
	closed  *sync.Cond        // of mu: a server end is not served anymore. Connections may be dialed meanwhile
	calls   []callRecord
	foreign []byte // what arrived at other hosts
	faults  map[string]int
	abroad  int               // connections to other hosts
	issued  int               // credentials
	keys    map[string]string // idempotency key → mark
}

// callRecord is what the service knows of a call.
type callRecord struct {
	sent     int            // requests that a wrapper passed to an http.Transport
	requests int            // whose header arrived
	methods  map[string]int // of the requests
	commits  []string       // marks of what was processed
	lookups  []string       // marks of reads of a write: see isLookup
	received []receipt      // of the requests
	trips    []*trip        // through a wrapper
	observed []labhealth.Attempt
}

// arrival is a request whose header has arrived.
type arrival struct {
	w         *world
	call      int // -1 if it has no readable number
	n         int // of the request, from 1
	method    string
	key       string // for idempotency
	page      int    // that is requested, from 1
	mark      string
	committed bool
}

// callHeader has the number of the call.
const callHeader = "X-Call"

// arrive records a request. header returns the value of a header, whose name it compares without
// case.
func (w *world) arrive(method, path string, header func(name string) string) *arrival {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := &arrival{w: w, call: -1, method: method, key: header("X-Idempotency-Key"), page: pageOf(path)}
	if i, err := strconv.Atoi(header(callHeader)); err == nil && i >= 0 && i < len(w.calls) {
		a.call = i
		w.calls[i].requests++
		if w.calls[i].methods == nil {
			w.calls[i].methods = map[string]int{}
		}
		w.calls[i].methods[method]++
		a.n = w.calls[i].requests
		w.calls[i].received = append(w.calls[i].received, receipt{
			at: time.Now(), key: a.key, filler: len(header("X-Filler")), isLookup: a.isLookup(),
			text: strings.Join([]string{method, path, a.key, header("Accept"), header("Content-Type")}, " "),
		})
	}
	a.mark = "mark-" + strconv.Itoa(a.call) + "-" + strconv.Itoa(a.n)
	return a
}

// commit processes the request, once. A request with a known idempotency key gets the stored mark.
func (a *arrival) commit() {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	if a.committed || a.call < 0 {
		return
	}
	a.committed = true
	if stored, ok := a.w.keys[a.key]; ok && a.key != "" {
		a.mark = stored
		return
	}
	if a.key != "" {
		a.w.keys[a.key] = a.mark
	}
	record := &a.w.calls[a.call]
	if a.isLookup() {
		record.lookups = append(record.lookups, a.mark)
		return
	}
	record.commits = append(record.commits, a.mark)
}

// isLookup reports whether the request is a read of a write, such as that of Users.GetOrCreate,
// which looks for the user after an unknown outcome.
func (a *arrival) isLookup() bool {
	return a.call >= 0 && a.row().isWrite() && (a.method == http.MethodGet || a.method == http.MethodHead)
}

// honest returns the response to a request: nothing is found that was not committed, and the
// response to a HEAD has no body that could be that of a proxy.
func (a *arrival) honest(plan responsePlan) responsePlan {
	if a.method == http.MethodHead {
		plan.Body = ""
	}
	if !a.isLookup() {
		return plan
	}
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	if len(a.w.calls[a.call].commits) == 0 {
		return responsePlan{Status: http.StatusNotFound}
	}
	return plan
}

// count counts a fault that occurred.
func (w *world) count(fault string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults[fault]++
}

// stall waits for d, and no longer than to the end of the world. If d is not positive, it is longer
// than every deadline. All of the server's waits are stalls.
func (w *world) stall(d time.Duration) {
	if d <= 0 {
		d = longStall
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.ended:
	}
}

// longStall is longer than every deadline. It is not endless, because some transports ignore
// deadlines.
const longStall = time.Hour

// dial is the network between the client and every host.
func (w *world) dial(ctx context.Context, _, address string) (net.Conn, error) {
	w.mu.Lock()
	n := w.dialed
	w.dialed++
	w.mu.Unlock()
	plan := &connPlan{}
	if n < len(w.plan.Conns) {
		plan = &w.plan.Conns[n]
	}
	if err := w.dialFault(ctx, plan); err != nil {
		return nil, err
	}
	window, delay := plan.Window, plan.Linger
	if !w.canBlock(plan) {
		window, delay = 0, 0
	}
	client, server, err := w.pair(window)
	if err != nil {
		return nil, err
	}
	linger(client, delay)
	w.mu.Lock()
	w.open[server] = true
	w.mu.Unlock()
	go func() {
		defer func() {
			_ = server.Close()
			w.mu.Lock()
			delete(w.open, server)
			w.closed.Broadcast()
			w.mu.Unlock()
		}()
		if address != w.protocol.address {
			w.mu.Lock()
			w.abroad++
			w.mu.Unlock()
			w.serveForeign(server)
			return
		}
		w.protocol.serve(server, w, plan)
	}()
	return client, nil
}
