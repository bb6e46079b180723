package labhealthtest

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

// keyHeader carries the team API key of a request.
const keyHeader = "X-Service-Api-Key"

// secretHeaders never reach the log of requests.
var secretHeaders = []string{keyHeader, "X-Management-Key", "X-Service-Org-Key", "Authorization"}

const (
	// maxBody is the largest request body that is read; a larger one is answered with 413.
	maxBody = 16 << 20
	// maxRequests is the number of requests that the log always holds.
	maxRequests = 10_000
)

// Server is a running service. Its methods are safe for concurrent use; its fields are set by [Start] and must not be changed.
type Server struct {
	// URL is the base address, such as "http://127.0.0.1:43210", without a slash at its end.
	URL string
	// APIKey is the key that is let in, in the header x-service-api-key, unless others are created through the management API.
	APIKey string
	// TeamID is the team of every user and order. See [Server.Team] for others.
	TeamID uuid.UUID
	// OrgID is the organisation of all teams.
	OrgID uuid.UUID
	// OrgKey is an Org Management Key, which is let in to the management API in the header X-Management-Key. See
	// [Server.AddTeamManagementKey] for the other kind.
	OrgKey string
	// LabTests names the lab tests that an order can ask for.
	LabTests LabTests

	clock    func() time.Time
	listener net.Listener
	http     http.Server

	// running counts the accepting goroutine, the requests being answered and the delivering goroutines. It grows only under mu
	// and while closed is false.
	running sync.WaitGroup
	// ended stops deliveries when the server is closed.
	ended context.Context
	end   context.CancelFunc

	// mu guards what follows. A request is answered from its first check to its encoded answer under mu, so that no operation has
	// to think about the others.
	mu     sync.Mutex
	closed bool
	// ids and traces are two generators, so that reading does not change the ids of what is created next.
	ids, traces *rand.ChaCha8
	requests    []Request
	faults      []*scripted // in the order in which they strike

	users        []*user // by creation time, without the deleted ones
	userByID     map[uuid.UUID]*user
	userByClient map[string]*user
	deleted      []*user // by the time of deletion
	lastUser     int

	labTests    []*labTest // in the order in which they were added
	labTestByID map[uuid.UUID]*labTest
	panels      int // lab tests that AddLabTests made
	workouts    map[uuid.UUID][]byte

	orders       []*order // by creation time
	ordersOf     map[uuid.UUID][]*order
	orderByID    map[uuid.UUID]*order
	sampleIDs    map[string]bool
	lastEventID  int64
	seeded       int // orders that AddOrders made
	outcomes     map[string]outcome
	importDenied *answer

	endpoints  []*endpoint
	messages   int // events that were sent
	pending    int // events that wait for or are in delivery
	delivered  *sync.Cond
	deliveries []Delivery
	poster     *http.Client

	org *organisation
}

// Option changes how [Start] and [NewServer] set up a server.
type Option func(*Server)

// WithClock sets the clock that dates everything the server does; the default is [time.Now]. It decides what "today" is, in UTC,
// when the stored outcome of an idempotency key ends and until when a deletion can be undone. It is called while a request is
// answered: it must be safe for concurrent use and must not call the server.
func WithClock(now func() time.Time) Option {
	return func(s *Server) { s.clock = now }
}

// WithSeed makes the key, the team and all ids a function of the seed and of the order in which things are created. Without it
// they are random.
func WithSeed(seed uint64) Option {
	return func(s *Server) {
		var b [32]byte
		binary.LittleEndian.PutUint64(b[:], seed)
		s.seed(b)
	}
}

// WithListener makes the server accept on l, which it closes in the end, instead of on a free port of 127.0.0.1: a fixed port, or
// connections in memory.
func WithListener(l net.Listener) Option {
	return func(s *Server) { s.listener = l }
}

// NewServer starts a server that is closed when the test and its subtests are over. It ends the test when there is no port to
// listen on, and never fails it otherwise.
func NewServer(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s, err := Start(opts...)
	if err != nil {
		t.Fatalf("labhealthtest: %v", err)
	}
	t.Cleanup(s.Close)
	return s
}

// Start starts a server, which is to be closed with [Server.Close]. It fails only when there is no port to listen on.
func Start(opts ...Option) (*Server, error) {
	s := &Server{
		LabTests:     catalogueIDs,
		clock:        time.Now,
		userByID:     map[uuid.UUID]*user{},
		userByClient: map[string]*user{},
		labTestByID:  map[uuid.UUID]*labTest{},
		workouts:     map[uuid.UUID][]byte{},
		ordersOf:     map[uuid.UUID][]*order{},
		orderByID:    map[uuid.UUID]*order{},
		sampleIDs:    map[string]bool{},
		outcomes:     map[string]outcome{},
		poster:       newPoster(),
	}
	for _, t := range catalogue {
		s.addLabTest(t)
	}
	s.delivered = sync.NewCond(&s.mu)
	s.ended, s.end = context.WithCancel(context.Background())
	var seed [32]byte
	crand.Read(seed[:]) // It never returns an error.
	s.seed(seed)
	for _, opt := range opts {
		if opt != nil {
			opt(s)
		}
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	s.TeamID = s.newID()
	var key [20]byte
	s.ids.Read(key[:])
	s.APIKey = "sk_us_" + hex.EncodeToString(key[:])
	s.organise()

	if s.listener == nil {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			s.end()
			return nil, err
		}
		s.listener = l
	}
	s.URL = "http://" + s.listener.Addr().String()
	s.http.Handler = http.HandlerFunc(s.serve)
	s.running.Go(func() { s.http.Serve(s.listener) })
	return s, nil
}

// Close stops the server and returns when nothing of it runs any more: connections are cut, events that were not delivered yet
// are dropped (see [Server.Flush]). What the server recorded can still be read. Closing again does nothing.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.delivered.Broadcast()
	s.mu.Unlock()
	s.end()
	s.http.Close()
	s.running.Wait()
	s.closeTeams()
	s.poster.CloseIdleConnections()
}

// Request is one request that a client made.
type Request struct {
	// Method is that of HTTP.
	Method string
	// Path is the path as it was sent, escapes and raw query included.
	Path string
	// Header is without the headers that carry keys.
	Header http.Header
	// Body is as it came.
	Body []byte
	// Status is the status that was answered, 0 if a fault came before (see [Server.FailBefore]).
	Status int
}

// Requests returns the requests received so far, the refused ones included, oldest first: at least the newest 10,000. The caller
// must not change their headers and bodies.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// serve reads a request, has it answered and writes the answer.
func (s *Server) serve(w http.ResponseWriter, hr *http.Request) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.running.Add(1)
	s.mu.Unlock()
	defer s.running.Done()

	body, err := io.ReadAll(http.MaxBytesReader(w, hr.Body, maxBody))
	if f := s.nextFault(hr); f != nil {
		s.strike(f, w, hr, body, err)
		return
	}
	s.respond(hr, body, err).write(w)
}

// respond answers a request whose body was read, and logs it.
func (s *Server) respond(hr *http.Request, body []byte, err error) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	query, _ := url.ParseQuery(hr.URL.RawQuery) // What can be read counts, as on the service.
	r := &request{
		method:  hr.Method,
		path:    hr.URL.EscapedPath(),
		query:   query,
		header:  hr.Header,
		body:    body,
		checker: checker{now: s.now()},
	}
	a := s.dispatch(r, err)
	a.trace = s.newTrace()
	s.record(hr, body, a.status)
	return a
}

// record logs a request.
func (s *Server) record(hr *http.Request, body []byte, status int) {
	header := hr.Header.Clone()
	for _, name := range secretHeaders {
		header.Del(name)
	}
	if len(s.requests) >= 2*maxRequests {
		s.requests = slices.Delete(s.requests, 0, maxRequests)
	}
	s.requests = append(s.requests, Request{
		Method: hr.Method,
		Path:   hr.RequestURI,
		Header: header,
		Body:   body,
		Status: status,
	})
}

// dispatch checks the key and hands the request to the team that it opens.
func (s *Server) dispatch(r *request, readErr error) answer {
	if strings.HasPrefix(r.path, managementPath) {
		return s.manage(r, readErr)
	}
	team, refused := s.enter(r)
	switch team {
	case nil:
		return refused
	case s:
		return s.perform(r, readErr)
	}
	team.mu.Lock()
	defer team.mu.Unlock()
	return team.perform(r, readErr)
}

// perform hands the request to its operation.
func (s *Server) perform(r *request, readErr error) answer {
	if a, bad := unread(readErr); bad {
		return a
	}
	op, allow := find(r)
	switch {
	case op != nil:
		return op.handle(s, r)
	case allow != "":
		a := refuse(http.StatusMethodNotAllowed, "Method Not Allowed")
		a.allow = allow
		return a
	default:
		return refuse(http.StatusNotFound, "Not Found")
	}
}

// now is the server's time: UTC, in the microseconds that the service counts.
func (s *Server) now() time.Time {
	return s.clock().UTC().Truncate(time.Microsecond)
}

func (s *Server) seed(seed [32]byte) {
	s.ids = rand.NewChaCha8(seed)
	seed[31] ^= 1
	s.traces = rand.NewChaCha8(seed)
}

// newID makes a uuid of version 4.
func (s *Server) newID() uuid.UUID {
	var id uuid.UUID
	s.ids.Read(id[:]) // It never returns an error.
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}

// newTrace makes the value of a traceresponse header (W3C Trace Context), whose second part identifies the request.
func (s *Server) newTrace() string {
	var b [24]byte
	s.traces.Read(b[:])
	return fmt.Sprintf("00-%x-%x-01", b[:16], b[16:])
}

// answer is what goes back to a client.
type answer struct {
	status int
	body   []byte
	// contentType is application/json where it is empty.
	contentType string
	allow       string
	trace       string
}

func (a answer) write(w http.ResponseWriter) {
	h := w.Header()
	if a.contentType == "" {
		a.contentType = "application/json"
	}
	h.Set("Content-Type", a.contentType)
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	h.Set("Traceresponse", a.trace)
	if a.allow != "" {
		h.Set("Allow", a.allow)
	}
	w.WriteHeader(a.status)
	w.Write(a.body) // A client that has gone away misses nothing.
}

// reply answers 200 with v.
func reply(v any) answer {
	return answer{status: http.StatusOK, body: encode(v)}
}

// refuse answers with the service's usual shape of an error.
func refuse(status int, detail any) answer {
	return answer{status: status, body: encode(map[string]any{"detail": detail})}
}

// internalError is what the service answers where it checks nothing itself.
var internalError = answer{
	status:      http.StatusInternalServerError,
	contentType: "text/plain; charset=utf-8",
	body:        []byte("Internal Server Error"),
}
