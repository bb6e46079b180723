package attack

import (
	"encoding/json"
	"math/rand/v2"
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
	BodyLimit   int64         `json:",omitzero"`
}

// connPlan is what one connection does, from dialing to its end.
type connPlan struct {
	Dial      string        `json:",omitzero"` // of dialFaults
	DialDelay time.Duration `json:",omitzero"`
	Window    int           `json:",omitzero"` // bytes that the client can write ahead of the server; 0 is no limit
	Exchanges []exchange    `json:",omitzero"` // later ones are harmless
	HTTP2     *http2Plan    `json:",omitzero"`
}

// exchange is what a server does with one request. HTTP/2 servers use the answer, and their own
// plan for everything else.
type exchange struct {
	Answer answer     `json:",omitzero"`
	HTTP1  *http1Plan `json:",omitzero"`
}

// answer is the response to a request, in terms of any version of HTTP.
type answer struct {
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
	_ = r
	return s
}
