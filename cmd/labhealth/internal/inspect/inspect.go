// Package inspect receives webhook deliveries, stores what arrived and what became of it, forwards
// them to an application, and sends them again.
package inspect

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// Config configures Open.
type Config struct {
	// File is the SQLite file, which is created with mode 0600. Empty keeps everything in memory.
	File string
	// Secrets verify deliveries. Without any, every delivery is accepted as unsigned.
	Secrets []string
	// Forward is the URL of the application, or empty.
	Forward string
	// Keep is how long deliveries are stored; 0 means 7 days.
	Keep time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Inspector receives, stores, forwards and replays deliveries. It is an http.Handler for the
// deliveries. Its methods can be called concurrently.
type Inspector struct {
	// Store has the orders and the wearable data of the verified deliveries. Last write wins.
	Store *sqlstore.Store

	config Config
	db     *sql.DB
}

// Verdict is whether a delivery was accepted.
type Verdict string

// The verdicts.
const (
	Verified Verdict = "verified"
	Unsigned Verdict = "unsigned" // accepted without verification
	Refused  Verdict = "refused"  // see Delivery.Reason; neither applied nor forwarded
)

// Delivery is a stored delivery. Each receipt is its own delivery, also of the same ID.
type Delivery struct {
	Number     int64     // counts from 1
	ID         string    // the header svix-id or webhook-id
	ReceivedAt time.Time // when the request arrived
	Attempt    int       // how often the ID has been received, with this delivery
	Size       int       // of the body, in bytes

	Type         string // empty if the body is no event
	UserID       uuid.UUID
	ClientUserID string
	OrderID      uuid.UUID
	About        string // a few words without patient data: a status, a resource, a source

	Verdict   Verdict
	Reason    string  // why it was refused, or why it could not be read
	Checks    []Check // what was verified, in order
	Malformed int     // fields of an unexpected type
	Unknown   int     // fields that the library does not have

	DuplicateOf int64 // the first delivery with the ID, if this is another one
	ReplayOf    int64 // the delivery that was replayed, if this is a replay

	Applied     bool // whether the store has it; false while it waits
	Changes     webhooks.Changes
	Transitions int // new entries of the timeline of the order

	Forward *Forward // nil if it was not forwarded
	Answer  int      // the status code of our response
	Took    time.Duration

	Header http.Header // nil in lists
	Body   []byte      // nil in lists
}

// Check is one step of the verification.
type Check struct {
	Passed bool
	Text   string
}

// Forward is how the application responded.
type Forward struct {
	URL        string
	StatusCode int // 0 if there was no response
	Took       time.Duration
	Err        string
}

// Filter selects deliveries. The zero value selects all.
type Filter struct {
	// Query has words, and terms such as type:glucose, user:, order:, id: and is:refused.
	Query string
	// Is selects refused, duplicate, changed or failed deliveries.
	Is       string
	UserID   uuid.UUID
	OrderID  uuid.UUID
	From, To time.Time // received from From until before To
	Before   int64     // with a smaller number
	After    int64     // with a greater number
}

// Replay describes how deliveries are sent again, through the inspector, with new timestamps and
// signatures.
type Replay struct {
	Numbers []int64 // the deliveries, or
	Filter  *Filter // all that it selects
	Order   string  // received, reversed or shuffled; empty means received
	Copies  int     // of each; 0 means 1
	Delay   time.Duration
	Body    []byte // replaces the body; needs one delivery. It has a new ID.
	NewID   bool   // gives each delivery a new ID, so that it is no duplicate
}

var errNotYet = errors.New("inspect: not yet")

// Open opens the file, or creates it.
func Open(ctx context.Context, c Config) (*Inspector, error) { return &Inspector{}, nil }

// Close waits for the deliveries in progress and closes the file.
func (i *Inspector) Close() error { return nil }

// ServeHTTP receives a delivery, verifies and stores it, forwards it, and responds with the status
// code of the application: the sender repeats what the application did not acknowledge.
func (i *Inspector) ServeHTTP(w http.ResponseWriter, r *http.Request) {}

// SetForward changes the URL of the application; empty stops forwarding.
func (i *Inspector) SetForward(url string) error { return nil }

// Forward returns the URL of the application, or "".
func (i *Inspector) Forward() string { return "" }

// List returns the latest deliveries that the filter selects, at most limit, latest first, without
// headers and bodies.
func (i *Inspector) List(ctx context.Context, f Filter, limit int) ([]Delivery, error) {
	return nil, errNotYet
}

// Count returns how many deliveries the filter selects.
func (i *Inspector) Count(ctx context.Context, f Filter) (int, error) { return 0, errNotYet }

// Get returns a delivery with its header and body.
func (i *Inspector) Get(ctx context.Context, number int64) (d Delivery, ok bool, err error) {
	return Delivery{}, false, errNotYet
}

// Previous returns the latest earlier accepted delivery about the same thing: the order, the
// summary, or the series of samples.
func (i *Inspector) Previous(ctx context.Context, number int64) (d Delivery, ok bool, err error) {
	return Delivery{}, false, errNotYet
}

// Replay sends deliveries again and returns the numbers of the new deliveries, of those that were
// sent before an error.
func (i *Inspector) Replay(ctx context.Context, r Replay) ([]int64, error) { return nil, errNotYet }

// Watch returns the numbers of deliveries that are stored or change from now on. The sequence ends
// when ctx is done.
func (i *Inspector) Watch(ctx context.Context) iter.Seq[int64] {
	return func(func(int64) bool) { <-ctx.Done() }
}
