// Package inspect receives webhook deliveries, stores what arrived and what became of it, forwards
// them to an application, and sends them again.
package inspect

import (
	"context"
	"database/sql"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// Config configures Open.
type Config struct {
	// File is the SQLite file, which is created with mode 0600. If it is empty, everything is in a
	// temporary file, which Close removes.
	File string
	// Secrets verify deliveries. Without any, every delivery is accepted as unsigned.
	Secrets []string
	// Admit, if not nil, returns why a request is not accepted, whatever its signature is.
	Admit func(*http.Request) error
	// Forward is the URL of the application, or empty.
	Forward string
	// Keep is how long deliveries are stored; 0 means 7 days. KeepAll deletes none.
	Keep time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Problem is called with what fails, such as storing deliveries on a full disk: at once, and as
	// long as it lasts once a minute. Texts have no patient data. Nil means slog.Default.
	Problem func(text string)
}

// KeepAll is for a program that leaves the retention to another one that uses the same file.
const KeepAll time.Duration = -1

// Inspector receives, stores, forwards and replays deliveries. It is an http.Handler for the
// deliveries. Its methods can be called concurrently.
type Inspector struct {
	// Store has the orders and the wearable data of the verified deliveries. Last write wins.
	Store *sqlstore.Store

	config    Config
	db        *sql.DB // for reading and for Store
	writer    *writer
	path      string // of the file
	temporary string // directory to remove
	instance  string // detects a forward to the inspector itself
	forwarder *http.Client
	patience  time.Duration // with the application
	worker    *sqlstore.Worker
	watchers  watchers
	problems  problems
	opened    int64        // the last change before Open
	memory    atomic.Int64 // of bodies in flight

	verifier atomic.Pointer[webhooks.Verifier] // webhooks.Unsigned without secrets
	secrets  atomic.Pointer[[]string]
	target   atomic.Pointer[string]

	mu       sync.Mutex // guards closed with respect to requests.Add
	closed   bool
	requests sync.WaitGroup
	stop     context.CancelFunc
	running  sync.WaitGroup

	connected context.Context // until HangUp
	hangUp    context.CancelFunc
}

// Verdict is whether a delivery was accepted.
type Verdict string

// The verdicts.
const (
	Verified Verdict = "verified"
	Unsigned Verdict = "unsigned" // accepted without verification
	Rejected Verdict = "rejected" // see Delivery.Reason; neither applied nor forwarded
)

// Delivery is a stored delivery. Each receipt is its own delivery, also of the same ID. Its JSON has
// no patient data.
type Delivery struct {
	Number     int64     `json:"number"`       // counts from 1
	ID         string    `json:"id,omitempty"` // the header svix-id or webhook-id
	ReceivedAt time.Time `json:"received_at"`  // when the request arrived
	Attempt    int       `json:"attempt"`      // how often the ID has been received, with this delivery
	Size       int       `json:"size"`         // of the body, in bytes

	Type         string    `json:"type,omitempty"` // empty if the body is no event
	UserID       uuid.UUID `json:"user_id,omitzero"`
	ClientUserID string    `json:"-"`
	OrderID      uuid.UUID `json:"order_id,omitzero"`
	About        string    `json:"about,omitempty"` // a few words without patient data: a status, a resource, a source

	Verdict   Verdict `json:"verdict"`
	Reason    string  `json:"reason,omitempty"`    // why it was rejected, or why it could not be read
	Checks    []Check `json:"-"`                   // what was verified, in order
	Malformed int     `json:"malformed,omitempty"` // fields of an unexpected type
	Unknown   int     `json:"unknown,omitempty"`   // fields that the library does not have

	DuplicateOf int64 `json:"duplicate_of,omitempty"` // the first accepted delivery with the ID, if this is another one
	ReplayOf    int64 `json:"replay_of,omitempty"`    // the delivery that was replayed, if this is a replay

	Applied     bool             `json:"-"` // whether the store has processed it; false while it waits and if it was rejected
	Changes     webhooks.Changes `json:"-"`
	Transitions int              `json:"-"` // new entries of the timeline of the order

	Forward    *Forward      `json:"-"`      // nil if it was not forwarded
	StatusCode int           `json:"status"` // the status code of our response
	Took       time.Duration `json:"-"`

	Header http.Header `json:"-"` // nil in lists
	Body   []byte      `json:"-"` // nil in lists and if it was too large to be kept
}

// Check is one step of the verification.
type Check struct {
	Passed bool   `json:"passed"`
	Text   string `json:"text"`
}

// Forward is how the application responded.
type Forward struct {
	URL        string        `json:"url"`
	StatusCode int           `json:"status_code,omitempty"` // 0 if there was no response
	Took       time.Duration `json:"took"`
	Err        string        `json:"err,omitempty"`
	Location   string        `json:"location,omitempty"` // where a redirect points to, without its query; it is not followed
}

// Filter selects deliveries. The zero value selects all.
type Filter struct {
	// Query has words, and terms such as type:glucose, user:, order:, id: and is:rejected.
	Query string
	// Is selects verified, unsigned, rejected, duplicate, replay, changed, failed, waiting,
	// malformed, unknown or unreadable deliveries. Any other value selects none.
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
	// Sent, if not nil, is called with each new delivery when it has a response, without header and
	// body.
	Sent func(Delivery)
	// DryRun calls Sent with the deliveries that would be sent again, and sends nothing.
	DryRun bool
}
