// Handler: its constructors, ServeHTTP and Shutdown.

package webhooks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/labhealth/labhealth-go/internal/warn"
)

// senderTimeout is how long the sender waits for a complete response.
const senderTimeout = 15 * time.Second

// Handler is an [http.Handler] that receives deliveries and calls your function with each event.
// [NewHandler] returns one that processes events during the request, [NewRawHandler] one that
// stores them first. Mount it where the router does not redirect: the sender treats a redirect as a
// failure. It responds with these status codes:
//
//	204  the event was applied or stored, now or earlier, or the dead-letter function accepted it
//	400  the body is incomplete, or it is not an event and there is no dead-letter function
//	401  the delivery failed verification
//	405  the method is not POST
//	413  the body exceeds the limit
//	503  your function failed, panicked or timed out; the deduplicator failed; too much is in
//	     flight; the handler is shutting down
//
// Deliveries are processed as follows:
//
//   - Your function runs in its own goroutine. Its context has the values of the request's context
//     and ends at the deadline, counted from the arrival of the request. It does not end when the
//     sender disconnects: the event is still processed, and its ID is stored, so that the repeated
//     delivery is acknowledged without processing.
//   - If your function does not return by the deadline, the response is 503 and the call continues.
//     [Handler.Shutdown] waits for it. The next delivery of the event starts a new call. If the
//     late call succeeds, the ID is stored then.
//   - An error that matches [ErrPermanent] would recur in each attempt: the body goes to the
//     dead-letter function and the delivery is acknowledged. Without a dead-letter function the
//     body would be lost, so the response is 503. Set [WithDeadLetter]: the sender may disable a
//     receiver that fails for days.
//   - A panic of your function is recovered and treated as a failure. Its stack is reported. The
//     panic value may hold patient data and is never shown.
//   - A delivery whose ID is in another open request shares the response of that request. A
//     delivery whose ID has succeeded is acknowledged without processing. IDs of failed deliveries
//     are not stored. Deliveries without an ID, which only [Unsigned] accepts, are always
//     processed.
//   - An event that a person sends again from the sender's portal has the same ID. While the ID is
//     stored, the response is 204 and the event is not processed: the reason is [ReasonDuplicate].
//     To apply it again, pass its body to [Parse] and the event to your function, read the data
//     back (see Lost events in the package documentation), or remove the ID from the
//     [Deduplicator]. The default one is empty after a restart.
//   - Bodies that are being received or processed use up to 256 MiB of memory
//     ([WithInFlightLimit]). The limit includes unverified bodies: a signature can be checked only
//     when its body is complete. A delivery with malformed signature headers or an expired
//     timestamp gets a 401 before its body is read.
//
// Problems are written to [slog.Default] as warnings that name what to change: at once, then ever
// less often, with their number. They hold no patient data. [WithWarnings] sets another logger, and
// [WithLogger] logs each delivery instead.
//
// Events are delivered at least once (see Delivery in the package documentation). The
// [Deduplicator] makes repeated processing rare, not impossible: a crash can come between the
// success of your function and the storing of the ID, and by default IDs are only in memory. If the
// last write wins, repetition is harmless.
type Handler struct {
	verifier     *Verifier
	apply        func(context.Context, *Event) error // nil if store is set
	store        func(context.Context, RawDelivery) error
	deadLetter   func(context.Context, []byte) error
	deduplicator Deduplicator
	maxIDs       int
	maxAge       time.Duration
	maxBody      int64
	maxBytes     int64 // of inFlight; 0 means the default
	inFlight     *inFlight
	timeout      time.Duration
	now          func() time.Time
	contexts     []func(context.Context, *http.Request) context.Context
	observers    []func(context.Context, DeliveryResult)
	warnings     *warn.Log    // nil with WithLogger
	logger       *slog.Logger // of warnings; nil for slog.Default

	aborted context.Context // canceled when Shutdown stops waiting
	abort   context.CancelFunc

	mu      sync.Mutex
	calls   map[string]*call // by delivery ID
	running int              // requests and calls
	closed  bool
	idle    chan struct{} // closed when the handler is closed and nothing runs
}

// NewHandler returns a handler that calls apply with each event that passes verification. The
// ReceivedAt of the event is the time at which the request arrived. A nil error acknowledges the
// event. After an error the sender tries again, at most seven times within 28 hours, unless the
// error matches [ErrPermanent]; see [WithDeadLetter]. Acknowledge events of unknown types: the
// sender disables a receiver that keeps failing.
//
// NewHandler returns an error if verifier is nil. Pass [Unsigned] for a sender that does not sign.
func NewHandler(verifier *Verifier, apply func(context.Context, *Event) error, opts ...HandlerOption) (*Handler, error) {
	if apply == nil {
		return nil, errors.New("webhooks: NewHandler needs a function that is called with the events")
	}
	return newHandler("NewHandler", &Handler{verifier: verifier, apply: apply}, opts)
}

// NewRawHandler returns a handler that stores deliveries, to be parsed and applied later. An
// acknowledged delivery survives a crash of the process. Bursts, and failures of what applies the
// deliveries later, delay events but reject none. The handler calls store with each delivery that
// passes verification. store must return nil only when the delivery is durable, such as committed
// to a database (see package sqlstore) or acknowledged by a broker. It may keep the body.
//
// Bodies are not parsed, so a body that is not an event is stored like any other, and the option
// [WithDeadLetter] is an error. Otherwise NewRawHandler behaves like [NewHandler].
func NewRawHandler(verifier *Verifier, store func(context.Context, RawDelivery) error, opts ...HandlerOption) (*Handler, error) {
	if store == nil {
		return nil, errors.New("webhooks: NewRawHandler needs a function that stores the deliveries")
	}
	return newHandler("NewRawHandler", &Handler{verifier: verifier, store: store}, opts)
}

// newHandler sets the defaults of h, applies the options and checks the result.
func newHandler(constructor string, h *Handler, opts []HandlerOption) (*Handler, error) {
	if h.verifier == nil || h.verifier.sign == nil && !h.verifier.unsigned {
		return nil, fmt.Errorf("webhooks: %s needs a verifier of NewVerifier, or webhooks.Unsigned to do without", constructor)
	}
	h.maxIDs, h.maxAge = 1_000_000, 72*time.Hour
	h.maxBody = 16 << 20
	h.timeout = 10 * time.Second
	h.now = time.Now
	h.calls = map[string]*call{}
	h.warnings = new(warn.Log)
	h.idle = make(chan struct{})
	for _, opt := range opts {
		if opt == nil {
			continue
		}
		if err := opt(h); err != nil {
			return nil, fmt.Errorf("webhooks: %w", err)
		}
	}
	if h.store != nil && h.deadLetter != nil {
		return nil, errors.New("webhooks: WithDeadLetter is for NewHandler: NewRawHandler stores every body")
	}
	const defaultMaxBytes = 256 << 20
	switch {
	case h.maxBytes == 0:
		h.maxBytes = max(defaultMaxBytes, 4*min(h.maxBody, math.MaxInt64/4))
	case h.maxBytes/4 < h.maxBody:
		return nil, errors.New("webhooks: WithInFlightLimit must be at least four times the limit of a body, see WithBodyLimit")
	}
	h.inFlight = newInFlight(h.maxBytes, min(h.maxBody, h.maxBytes/4))
	if h.deduplicator == nil {
		h.deduplicator = &localDeduplicator{maxIDs: h.maxIDs, maxAge: h.maxAge, now: h.now, ids: map[idHash]struct{}{}}
	}
	h.aborted, h.abort = context.WithCancel(context.Background())
	return h, nil
}

var errNotMade = errors.New("webhooks: the Handler is nil or its zero value: create it with NewHandler or NewRawHandler")

// isMade reports whether h was made by one of the two functions.
func (h *Handler) isMade() bool { return h != nil && h.calls != nil }

// ServeHTTP receives a delivery. See [Handler] for the responses.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.isMade() {
		http.Error(w, errNotMade.Error(), http.StatusInternalServerError)
		return
	}
	d := delivery{receivedAt: h.now(), start: time.Now()}
	r = h.deriveContext(r)
	result := DeliveryResult{StatusCode: http.StatusServiceUnavailable, Reason: ReasonShutdown}
	if h.enter() {
		defer h.leave()
		result = h.receive(w, r, &d)
	}
	// The server reads the rest of the body before it sends the response, which a sender could
	// delay forever.
	connection := http.NewResponseController(w)
	if d.body == nil {
		connection.SetReadDeadline(d.start.Add(h.timeout))
	}
	writeStatus(w, result.StatusCode)
	if len(h.observers) > 0 {
		connection.Flush() // a slow observer must not delay it; not all writers can
		connection.SetReadDeadline(time.Time{})
	}
	if d.id == "" && len(h.observers) > 0 { // it was not verified
		d.id = DeliveryID(r.Header)
	}
	h.report(r.Context(), d, result)
}

// Shutdown stops accepting deliveries, which get a 503 from then on. It waits until all deliveries
// in flight have been responded to and all calls of your function, including late ones, have
// returned. If ctx ends first, Shutdown cancels the contexts of the calls and returns the error of
// ctx. With an [http.Server], shut down the server first and then the handler. A handler cannot be
// reused after Shutdown.
func (h *Handler) Shutdown(ctx context.Context) error {
	switch {
	case !h.isMade():
		return errNotMade
	case ctx == nil:
		return errors.New("webhooks: ctx must not be nil: use context.Background() if there is no other")
	}
	h.mu.Lock()
	if !h.closed {
		h.closed = true
		if h.running == 0 {
			close(h.idle)
		}
	}
	h.mu.Unlock()
	select {
	case <-h.idle:
		return nil
	default:
	}
	select {
	case <-h.idle:
		return nil
	case <-ctx.Done():
		h.abort()
		return fmt.Errorf("webhooks: deliveries are still in flight: %w", ctx.Err())
	}
}

// InFlightBytes returns the memory of the bodies that the handler holds, in bytes: bodies being
// received, and bodies passed to your function, until it returns. See [WithInFlightLimit]. It is 0
// if h is nil or its zero value. It is safe for concurrent use.
func (h *Handler) InFlightBytes() int64 {
	if !h.isMade() {
		return 0
	}
	h.inFlight.mu.Lock()
	defer h.inFlight.mu.Unlock()
	return h.inFlight.held
}

// enter counts a request, unless the handler is closed.
func (h *Handler) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.running++
	}
	return !h.closed
}

// leave is called when a request or a call has finished.
func (h *Handler) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running--
	if h.closed && h.running == 0 {
		close(h.idle)
	}
}
