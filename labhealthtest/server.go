// Server, its options, Start and Close.

package labhealthtest

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
)

// A Server is an embedded imitation of the service. Its methods can be called concurrently. Callers
// must not modify its fields.
type Server struct {
	// URL is the base URL, such as "http://127.0.0.1:43210", without a trailing slash.
	URL string
	// APIKey is the team API key, for the header x-service-api-key. The management API can create
	// others.
	APIKey string
	// TeamID is the team of all users and orders. See [Server.Team] for other teams.
	TeamID uuid.UUID
	// OrgID is the organisation of all teams.
	OrgID uuid.UUID
	// OrgKey is the Org Management Key, for the header X-Management-Key. See
	// [Server.AddTeamManagementKey] for Team Management Keys.
	OrgKey string
	// DebugToken proves to labhealth.WithDebug that a response is from this server: every response
	// has it in the header X-Labhealthtest-Proof. It is random, even with [WithSeed].
	DebugToken string
	// LabTests are lab tests that can be ordered.
	LabTests LabTests
	// LabAccounts are the team's accounts with labs.
	LabAccounts LabAccounts

	clock    func() time.Time
	listener net.Listener
	http     http.Server

	// running counts the goroutines that accept connections, process requests and deliver events.
	// It increases only under mu while closed is false.
	running sync.WaitGroup
	// deliveryCtx is canceled when the server is closed.
	deliveryCtx      context.Context
	cancelDeliveries context.CancelFunc

	// mu guards the fields below. It is held while a request is processed, from authentication to
	// the encoded response, so that operations need no further locking.
	mu     sync.Mutex
	closed bool
	// Separate generators, so that reads do not change the IDs of objects created later.
	ids, traces *rand.ChaCha8
	requests    []Request
	// requestCount counts those that requests does not have anymore, too.
	requestCount int
	// responseLog is the number of requests whose response bodies are kept.
	responseLog int
	faults      []*plannedFault   // in the order in which they are used
	watchers    map[*watcher]bool // nil when the server has stopped
	stopped     chan struct{}     // closed when the server has stopped
	middleware  []func(http.Handler) http.Handler

	users        []*user // by creation time, without deleted ones
	userByID     map[uuid.UUID]*user
	userByClient map[string]*user
	deleted      []*user // by time of deletion
	lastUser     int

	labTests    []*labTest // in the order in which they were added
	labTestByID map[uuid.UUID]*labTest
	panels      int // number of lab tests that AddLabTests added
	workouts    map[uuid.UUID][]byte

	sleeps     map[uuid.UUID][]byte
	samplePage int

	pullPreferences map[string]providerPreferences // by provider

	orders         []*order // by creation time
	ordersOf       map[uuid.UUID][]*order
	orderByID      map[uuid.UUID]*order
	sampleIDs      map[string]bool
	lastEventID    int64
	addedOrders    int          // number of orders that AddOrders added
	delayed        []simulation // by the time at which they are due
	outcomes       map[string]outcome
	importRejected *response

	offers     map[string]offer // by booking key
	takenSlots map[slotID]bool

	endpoints  []*endpoint
	messages   int // number of events sent
	pending    int // number of events waiting for or in delivery
	delivered  *sync.Cond
	deliveries []Delivery
	// deliveryLog is how many deliveries are kept at least, or -1 for all.
	deliveryLog int
	// network applies to receivers that are added later.
	network NetworkConditions
	// partialEvents is the setting partial_webhooks_enabled of the team.
	partialEvents atomic.Bool
	poster        *http.Client

	linkTokens    map[string]*linkToken
	lastLinkToken string
	payors        []payor // those of the team
	unmatched     []*unmatchedResult
	testRuns      []*testRun
	parsingJobs   map[uuid.UUID]*parsingJob

	priorities []priorities

	org *organisation
	// parent has the management API. It is nil for the server that has it.
	parent *Server
}

// An Option configures [Start] and [NewServer].
type Option func(*Server)

// WithClock sets the clock of the server. The default is [time.Now]. It provides all timestamps,
// and determines the current date (in UTC), when an idempotency key expires and how long a deletion
// can be undone. The server calls now while it processes a request: now must be safe for concurrent
// use and must not call the server.
func WithClock(now func() time.Time) Option {
	return func(s *Server) { s.clock = now }
}

// WithSeed makes keys and IDs depend only on seed and the order in which objects are created. By
// default they are random.
func WithSeed(seed uint64) Option {
	return func(s *Server) {
		var b [32]byte
		binary.LittleEndian.PutUint64(b[:], seed)
		s.seed(b)
	}
}

// WithListener makes the server accept connections from l, for example on a fixed port or in
// memory. The default is a free port of 127.0.0.1. The server closes l.
func WithListener(l net.Listener) Option {
	return func(s *Server) { s.listener = l }
}

// NewServer starts a [Server] and closes it when the test and its subtests complete. If it cannot
// listen on a port, it fails the test immediately.
func NewServer(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s, err := Start(opts...)
	if err != nil {
		t.Fatalf("labhealthtest: %v", err)
	}
	t.Cleanup(s.Close)
	return s
}

// readHeaderTimeout ends connections that send no request after they started one.
const readHeaderTimeout = 10 * time.Second

// Start starts a [Server]. The caller must close it with [Server.Close]. Start returns an error
// only if it cannot listen on a port.
func Start(opts ...Option) (*Server, error) {
	s := newServer(opts...)
	if s.listener == nil {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			s.cancelDeliveries()
			return nil, err
		}
		s.listener = l
	}
	s.URL = "http://" + s.listener.Addr().String()
	s.http.Handler, s.http.ReadHeaderTimeout = s.newHandler(), readHeaderTimeout
	s.running.Go(func() { s.http.Serve(s.listener) })
	return s, nil
}

// newServer returns a server that does not listen.
func newServer(opts ...Option) *Server {
	s := &Server{
		DebugToken:   crand.Text() + crand.Text(),
		LabTests:     catalogIDs,
		LabAccounts:  accountIDs,
		clock:        time.Now,
		userByID:     map[uuid.UUID]*user{},
		userByClient: map[string]*user{},
		labTestByID:  map[uuid.UUID]*labTest{},
		workouts:     map[uuid.UUID][]byte{},
		sleeps:       map[uuid.UUID][]byte{},
		samplePage:   1000,
		ordersOf:     map[uuid.UUID][]*order{},
		orderByID:    map[uuid.UUID]*order{},
		sampleIDs:    map[string]bool{},
		outcomes:     map[string]outcome{},
		linkTokens:   map[string]*linkToken{},
		parsingJobs:  map[uuid.UUID]*parsingJob{},
		offers:       map[string]offer{},
		takenSlots:   map[slotID]bool{},
		poster:       newPoster(),
		deliveryLog:  -1,
		watchers:     map[*watcher]bool{},
		stopped:      make(chan struct{}),
	}
	for _, t := range catalog {
		s.addLabTest(t)
	}
	s.delivered = sync.NewCond(&s.mu)
	s.deliveryCtx, s.cancelDeliveries = context.WithCancel(context.Background())
	var seed [32]byte
	crand.Read(seed[:])
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
	s.createOrganisation()
	return s
}

// Close closes all connections, drops events that are not yet delivered (see [Server.Flush]) and
// returns when all goroutines of the server have stopped. What the server recorded remains
// readable. Further calls do nothing.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.delivered.Broadcast()
	s.mu.Unlock()
	s.cancelDeliveries()
	s.http.Close()
	s.running.Wait()
	s.stopWatching()
	s.closeTeams()
	s.poster.CloseIdleConnections()
}

// now returns the time of the server in UTC, in microseconds like the service.
func (s *Server) now() time.Time {
	return s.clock().UTC().Truncate(time.Microsecond)
}

func (s *Server) seed(seed [32]byte) {
	s.ids = rand.NewChaCha8(seed)
	seed[31] ^= 1
	s.traces = rand.NewChaCha8(seed)
}

func (s *Server) newID() uuid.UUID {
	var id uuid.UUID
	s.ids.Read(id[:])
	return version4(id)
}

// version4 sets the version and variant bits of a random UUID.
func version4(id uuid.UUID) uuid.UUID {
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}
