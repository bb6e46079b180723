package attack

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"time"
)

// schedule is everything that happens to a few calls of one client. It is data: a seed gives a
// schedule, a schedule is printed as JSON, and shrinking removes parts of it. The zero value of
// every field is the harmless one, so that what is removed does nothing.
type schedule struct {
	Seed      uint64     `json:",omitzero"`
	Protocol  string     `json:",omitzero"` // of protocols; empty for HTTP/1
	Transport string     `json:",omitzero"` // of wrappers: the http.RoundTripper between; empty for none
	Client    clientPlan `json:",omitzero"`
	Calls     []callPlan `json:",omitzero"`
	Conns     []connPlan `json:",omitzero"` // in the order in which they are dialed; later ones are harmless
}

// clientPlan is how a client is configured.
type clientPlan struct {
	Attempts    int           `json:",omitzero"`
	BaseWait    time.Duration `json:",omitzero"`
	Timeout     time.Duration `json:",omitzero"` // of an attempt
	RetryAfter  time.Duration `json:",omitzero"` // the longest that is honored
	Strict      bool          `json:",omitzero"`
	RateLimit   bool          `json:",omitzero"`
	Credentials bool          `json:",omitzero"` // keys from a function, each valid until the next 401
	Observer    bool          `json:",omitzero"`
	BodyLimit   int64         `json:",omitzero"`

	// Of the http.Client and the http.Transport.
	HTTPTimeout    time.Duration `json:",omitzero"`
	HeaderTimeout  time.Duration `json:",omitzero"`
	MaxConns       int           `json:",omitzero"`
	NoKeepAlives   bool          `json:",omitzero"`
	NoCompression  bool          `json:",omitzero"`
	MaxHeaderBytes int64         `json:",omitzero"`
}

// callPlan is one call.
type callPlan struct {
	Method      string        // of calls
	After       time.Duration `json:",omitzero"` // when it starts, since the start of the previous one
	Concurrent  bool          `json:",omitzero"` // it does not wait for the end of the previous one
	Timeout     time.Duration `json:",omitzero"` // of its context
	Cancel      time.Duration `json:",omitzero"` // when its context is canceled
	Filler      int           `json:",omitzero"` // bytes of an extra header
	Idempotency bool          `json:",omitzero"`
	Attempts    int           `json:",omitzero"` // of WithCallRetry
	Pages       int           `json:",omitzero"` // of an iterator with cursors; 0 is 1
}

// connPlan is what one connection does, from dialing to its end.
type connPlan struct {
	Dial      string        `json:",omitzero"` // of dialFaults
	DialDelay time.Duration `json:",omitzero"`
	Window    int           `json:",omitzero"` // bytes that the client can write ahead of the server; 0 is no limit
	Linger    time.Duration `json:",omitzero"` // how much later a write returns than the server can read it
	Exchanges []exchange    `json:",omitzero"` // later ones are harmless
	HTTP2     *http2Plan    `json:",omitzero"`
	Network   *networkPlan  `json:",omitzero"`
}

// exchange is what a server does with one request. HTTP/2 servers use Response, and their own
// plan for everything else.
type exchange struct {
	Response responsePlan `json:",omitzero"`
	HTTP1    *http1Plan   `json:",omitzero"`
}

// responsePlan is the response to a request, in terms of any version of HTTP.
type responsePlan struct {
	Status     int           `json:",omitzero"` // 0 is 200
	Body       string        `json:",omitzero"` // of bodies; empty for the one that fits the call
	RetryAfter string        `json:",omitzero"`
	Location   string        `json:",omitzero"`
	Commit     string        `json:",omitzero"` // of commitTimes; empty for "after the request, if the response permits it"
	Delay      time.Duration `json:",omitzero"` // before the response
}

// When a server commits. A server is honest: it never commits what it rejects, and always what it
// accepts; for what it leaves open, such as a 502, both occur.
const (
	commitAtHeader = "at header" // before it has read the body
	commitNever    = "never"     // only if the status leaves it open
	commitLate     = "late"      // after the response, or when the connection has ended
)

func (s *schedule) String() string {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// newSchedule returns the schedule of a seed.
func newSchedule(seed uint64) *schedule {
	r := rand.New(rand.NewPCG(seed, 0))
	s := &schedule{Seed: seed}
	s.Protocol = pick(r, protocols...).name
	if oneIn(r, 3) {
		s.Transport = pick(r, wrappers...).name
	}
	s.Client = randomClient(r)
	management := oneIn(r, 4)
	for range 1 + r.IntN(4) {
		s.Calls = append(s.Calls, randomCall(r, management))
	}
	for range r.IntN(7) {
		s.Conns = append(s.Conns, randomConn(r, s.Protocol))
	}
	switch {
	case management:
	case oneIn(r, 16):
		slowWrite(r, s)
	case oneIn(r, 16):
		keyedWrites(r, s)
	}
	return s
}

// slowWrite makes the deadline of a write pass while its header is written, which over HTTP/2 the
// service has already. The deadline is that of the attempt, or of a wrapper.
func slowWrite(r *rand.Rand, s *schedule) {
	c := callPlan{Method: pick(r, "Orders.Import", "Orders.Cancel", "Do POST", "Do DELETE"), Filler: filler}
	s.Protocol, s.Transport, s.Calls = pick(r, "http1", "http2"), pick(r, "", ownDeadline, deadlineOnly), []callPlan{c}
	s.Client.Timeout, s.Client.Attempts = time.Second, 1 // another one would need the lock of the write: see canBlock
	if s.Transport == ownDeadline {
		s.Client.Timeout, s.Client.HTTPTimeout = 10*time.Second, 0
	}
	s.Conns = []connPlan{{
		// Over HTTP/2, the settings linger first.
		Linger:    time.Duration(400+r.IntN(800)) * time.Millisecond,
		HTTP2:     &http2Plan{LateSettings: true, Steps: []http2Step{{At: atConnect, Do: doStall, Value: uint32(r.IntN(1500))}}},
		Exchanges: []exchange{{Response: responsePlan{Commit: commitAtHeader}}},
	}}
}

// keyedWrites gives every write an idempotency key, so that it is repeated after any failure.
func keyedWrites(r *rand.Rand, s *schedule) {
	for i := range s.Calls {
		s.Calls[i].Method, s.Calls[i].Idempotency = pick(r, "Orders.Create", "Appointments.Book"), true
	}
}

// oneIn reports true once in n times.
func oneIn(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// pickLow returns a number below n; the lower, the likelier.
func pickLow(r *rand.Rand, n int) int { return r.IntN(1 + r.IntN(n)) }

// randomTime returns a time in whole microseconds, of any magnitude up to 10^n µs. Some times are
// frequent, so that different things happen at the same moment.
func randomTime(r *rand.Rand, n int) time.Duration {
	if oneIn(r, 3) {
		return pick(r, time.Millisecond, 2*time.Millisecond, 10*time.Millisecond, 100*time.Millisecond)
	}
	limit := 1
	for range 1 + r.IntN(n) {
		limit *= 10
	}
	return time.Duration(1+r.IntN(limit)) * time.Microsecond
}

func randomClient(r *rand.Rand) (p clientPlan) {
	if oneIn(r, 2) {
		p.Attempts = 1 + r.IntN(5)
	}
	if oneIn(r, 2) {
		p.BaseWait = randomTime(r, 5)
	}
	if oneIn(r, 2) {
		p.Timeout = randomTime(r, 7)
	}
	if oneIn(r, 4) {
		p.RetryAfter = randomTime(r, 8)
	}
	p.Strict = oneIn(r, 6)
	p.RateLimit = oneIn(r, 8)
	p.Credentials = oneIn(r, 8)
	p.Observer = oneIn(r, 2)
	if oneIn(r, 16) {
		p.HTTPTimeout = randomTime(r, 7)
	}
	if oneIn(r, 16) {
		p.HeaderTimeout = randomTime(r, 7)
	}
	if oneIn(r, 8) {
		p.MaxConns = 1 + r.IntN(2)
	}
	p.NoKeepAlives = oneIn(r, 16)
	p.NoCompression = oneIn(r, 16)
	if oneIn(r, 8) {
		p.BodyLimit = 1 + int64(pickLow(r, 10_000))
	}
	if oneIn(r, 16) {
		p.MaxHeaderBytes = 1 + int64(pickLow(r, 10_000))
	}
	return p
}

func randomCall(r *rand.Rand, management bool) (p callPlan) {
	for p.Method == "" || callNamed(p.Method).isManagement() != management {
		p.Method = pick(r, calls...).name
	}
	if oneIn(r, 2) {
		p.After = randomTime(r, 6)
	}
	p.Concurrent = oneIn(r, 3)
	if oneIn(r, 2) {
		p.Timeout = randomTime(r, 8)
	}
	if oneIn(r, 8) {
		p.Cancel = randomTime(r, 7)
	}
	if oneIn(r, 8) {
		p.Filler = pickLow(r, 50_000)
	}
	p.Idempotency = callNamed(p.Method).takesKey() && oneIn(r, 2) || callNamed(p.Method).hasKey()
	if oneIn(r, 8) {
		p.Attempts = 1 + r.IntN(4)
	}
	if callNamed(p.Method).hasCursor() {
		p.Pages = 1 + r.IntN(4)
	}
	return p
}

func randomConn(r *rand.Rand, name string) (p connPlan) {
	if oneIn(r, 8) {
		p.Dial = pick(r, dialRefused, dialDNS, dialUnknown, dialStall)
	}
	if oneIn(r, 8) {
		p.DialDelay = randomTime(r, 6)
	}
	if oneIn(r, 4) {
		p.Window = pick(r, 1, 7, 64, 512, 4096)
	}
	if oneIn(r, 16) {
		p.Linger = randomTime(r, 7)
	}
	for range r.IntN(4) {
		x := exchange{Response: randomResponse(r)}
		if oneIn(r, 2) {
			x.HTTP1 = randomHTTP1(r)
		}
		p.Exchanges = append(p.Exchanges, x)
	}
	if slices.ContainsFunc(networkProtocols, func(p protocol) bool { return p.name == name }) {
		randomNetwork(r, &p)
	}
	if protocolNamed(name).http2 {
		randomHTTP2(r, &p)
	}
	return p
}

func randomResponse(r *rand.Rand) (p responsePlan) {
	switch r.IntN(6) {
	case 0:
		p.Status = pick(r, 200, 201, 202, 203, 204, 205, 206, 226, 299)
	case 1:
		p.Status = pick(r, 400, 401, 401, 403, 404, 405, 407, 408, 409, 410, 413, 421, 422, 425, 426, 429, 429, 431, 451, 499)
	case 2:
		p.Status = pick(r, 500, 500, 501, 502, 503, 503, 504, 505, 507, 511, 520, 599, 600, 999)
	case 3:
		p.Status = pick(r, 101, 300, 301, 302, 303, 304, 305, 307, 308, 399)
		p.Location = pick(r, "", "/elsewhere", "/v3/order/import", "//other.example.com/v3/order/import", "http://other.example.com/",
			"https://other.example.com/"+patientCanary, "http://127.0.0.1:9090/", "http://sub.127.0.0.1:8080/", "https://127.0.0.1:8080/",
			"http://user:pass@127.0.0.1:8080/", "://", "javascript:alert(1)",
			"http://127.0.0.1:8080/v3/order?name="+patientCanary, "http://"+secureName+":443/", "http://"+secureName+"/", "https://"+secureName+":443/")
	}
	if oneIn(r, 5) {
		p.Body = pick(r, bodies...).name
	}
	if oneIn(r, 4) {
		p.RetryAfter = pick(r, "0", "1", "1", "2", "30", "61", "-1", "99999999999999999999", "1.5", "soon "+patientCanary, "Fri, 31 Dec 9999 23:59:59 GMT",
			"Thu, 01 Jan 1970 00:00:00 GMT", "Sat, 01 Jan 2000 00:00:02 GMT", "")
	}
	if oneIn(r, 3) {
		p.Commit = pick(r, commitAtHeader, commitNever, commitLate)
	}
	if oneIn(r, 6) {
		p.Delay = randomTime(r, 7)
	}
	return p
}
