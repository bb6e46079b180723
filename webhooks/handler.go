package webhooks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// senderTimeout is how long the sender waits for an answer, body included.
const senderTimeout = 15 * time.Second

// Handler receives deliveries over HTTP, calls the application with each event and answers so that the sender repeats what failed
// and nothing else. Make one with [NewHandler] to deal with events at once, or with [NewRawHandler] to store them first. It fits
// any router; mount it where the router does not redirect, because the sender takes a redirect for a failure. The answers:
//
//	204  the application has applied the event, now or before, or stored it; or the dead-letter function has taken the body
//	400  the body did not come, or is not an event (see [Parse]) and there is no dead-letter function
//	401  the verifier does not believe the delivery
//	405  another method than POST
//	413  the body is above the limit
//	503  the application failed, panicked or took too long; the memory failed; too much is in flight; the handler is shutting down
//
// How a delivery is answered, and how the application is called:
//
//   - The application is called in a goroutine of its own. Its context has the values of the request's and ends at the deadline,
//     counted from the arrival of the request. It does not end when the sender hangs up: what is begun is finished, remembered, and
//     acknowledged without work when it is sent again.
//   - An application that does not heed its context is answered for, with 503, at the deadline. The call goes on, [Handler.Shutdown]
//     waits for it, and the next delivery of the event is a new call. If the late call succeeds after all, its id is remembered
//     from then on.
//   - An error that matches [ErrPermanent] is the same each time, so the body goes to the dead-letter function, and the delivery is
//     acknowledged. Without such a function there is nowhere to keep it, and nothing that is not kept is acknowledged: the response
//     is 503, and [WithLogger] writes an error. A sender that gets it for days may switch the receiver off, so set [WithDeadLetter].
//   - A panic of the application is contained and is a failure. [WithObserver] and [WithLogger] tell where it came about; without
//     them nobody hears of it. Its value is not shown to anybody, as it may hold what was received.
//   - A delivery with the id of one that is being dealt with waits for it and shares its answer. One with the id of one that
//     succeeded is acknowledged without work. What failed is not remembered. Deliveries without an id, which only [Unsigned] lets
//     in, are all dealt with.
//   - Bodies that were received and not let go by the application take up to 256 MiB ([WithInFlightLimit]), whoever sent them: a sender
//     must have sent the whole body before its signature can be checked. A delivery whose headers are malformed or whose timestamp is
//     too old gets its 401 before its body is read.
//
// The service delivers at least once and in any order. The memory makes doing something twice rare: it does not outlast a crash
// between the application's success and the note of it, and by default not the process. Events that are applied by last write wins
// can be applied again without harm.
type Handler struct {
	verifier   *Verifier
	apply      func(context.Context, *Event) error // nil if store is set
	store      func(context.Context, RawDelivery) error
	deadLetter func(context.Context, []byte) error
	memory     Memory
	maxIDs     int
	maxAge     time.Duration
	limit      int64
	bound      int64 // of inFlight; 0 means the default
	inFlight   *inFlight
	timeout    time.Duration
	now        func() time.Time
	observers  []func(context.Context, Answer)

	ended context.Context // ends the calls that Shutdown no longer waits for
	end   context.CancelFunc

	mu      sync.Mutex
	calls   map[string]*call // by the id of the delivery
	running int              // requests and calls
	closed  bool
	idle    chan struct{} // closed when the handler is closed and nothing runs
}

// Answer tells how a delivery was answered. It holds nothing of the event but its type, and no error text.
type Answer struct {
	DeliveryID string        // empty if there is none or it is malformed; not verified where the status is 401
	Type       EventType     // empty where no event was read
	StatusCode int           // what was answered, 0 if Late
	Result     AnswerResult  // why
	Duplicate  bool          // another delivery with this id did the work, or tried to
	Late       bool          // a second report, of a call that succeeded or panicked after it was answered for at its deadline
	Panic      string        // if the application panicked: the type of the value, and the functions and lines that led there
	ReceivedAt time.Time     // when the request arrived
	Duration   time.Duration // from then to the answer, or to the end of the late call
}

// AnswerResult says why a delivery was answered as it was. It serves as a label of metrics: there are no others than these.
type AnswerResult string

// Results of deliveries, with the status that each is answered with.
const (
	AnswerApplied      AnswerResult = "applied"       // 204: the application has dealt with the event
	AnswerStored       AnswerResult = "stored"        // 204: the function of [NewRawHandler] has stored the delivery
	AnswerRemembered   AnswerResult = "remembered"    // 204: it was dealt with before
	AnswerDeadLettered AnswerResult = "dead-lettered" // 204: the dead-letter function has taken the body
	AnswerNotNoted     AnswerResult = "not noted"     // 204: it was dealt with, but the memory did not take the note
	AnswerIncomplete   AnswerResult = "incomplete"    // 400: the body did not come in whole
	AnswerUnreadable   AnswerResult = "unreadable"    // 400: the body is not an event, and there is no dead-letter function
	AnswerHeaders      AnswerResult = "headers"       // 401: see [ErrHeaders]
	AnswerTimestamp    AnswerResult = "timestamp"     // 401: see [ErrTimestamp]
	AnswerSignature    AnswerResult = "signature"     // 401: see [ErrSignature]
	AnswerMethod       AnswerResult = "method"        // 405: another method than POST
	AnswerTooLarge     AnswerResult = "too large"     // 413: the body is above the limit
	AnswerFailed       AnswerResult = "failed"        // 503: the function that was called returned an error
	AnswerPermanent    AnswerResult = "permanent"     // 503: it returned [ErrPermanent], and there is no dead-letter function
	AnswerPanicked     AnswerResult = "panicked"      // 503: the function that was called, or the memory, panicked
	AnswerDeadline     AnswerResult = "deadline"      // 503: the function that was called took too long
	AnswerOverloaded   AnswerResult = "overloaded"    // 503: there was no room for the body until the deadline, see [WithInFlightLimit]
	AnswerMemory       AnswerResult = "memory"        // 503: the memory could not be asked
	AnswerShutdown     AnswerResult = "shutdown"      // 503: the handler is shutting down
)

// HandlerOption changes how a handler works. An option that makes no sense is an error of [NewHandler] or
// [NewRawHandler].
type HandlerOption func(*Handler) error

// NewHandler returns a handler that calls apply with each event whose sender the verifier believes.
// ReceivedAt of the event is the arrival of the request. A nil error acknowledges the event; any
// other error makes the sender try again later, at most seven times within 28 hours, unless it
// matches [ErrPermanent], see [WithDeadLetter]. Events of types that the application does not know
// should be acknowledged: a receiver that keeps failing is switched off.
//
// It fails for a nil verifier; a sender that does not sign takes the named value [Unsigned].
func NewHandler(verifier *Verifier, apply func(context.Context, *Event) error, opts ...HandlerOption) (*Handler, error) {
	if apply == nil {
		return nil, errors.New("webhooks: NewHandler needs a function that is called with the events")
	}
	return newHandler("NewHandler", &Handler{verifier: verifier, apply: apply}, opts)
}

// RawDelivery is a delivery as it came: whom it is from has been checked, what it says has not been read. It holds health data:
// printed or logged, it shows its id only.
type RawDelivery struct {
	ID         string    // the sender's id of the message, see [DeliveryID]; empty if it has none, which only [Unsigned] lets in
	Body       []byte    // the bytes that were signed
	ReceivedAt time.Time // when the request arrived
}

// Parse reads the event and dates it by when it was received. It fails as [Parse] does: with a *[ParseError], for a body that will
// never be an event.
func (d RawDelivery) Parse() (Delivery, error) {
	e, err := Parse(d.Body)
	if err != nil {
		return Delivery{}, err
	}
	e.ReceivedAt = d.ReceivedAt
	return Delivery{Event: e, ID: d.ID}, nil
}

// NewRawHandler returns a handler that stores deliveries and leaves it to others to parse and apply them: once it has
// acknowledged a delivery, the delivery outlasts the process, and a burst or a fault of the application delays events and does not
// refuse them. It calls store with each delivery whose sender the verifier believes; store must return nil only when the delivery
// is safe, such as committed to a database (see package sqlstore) or acknowledged by a broker. Its body belongs to store.
//
// Nothing is parsed, so a body that is not an event is stored like any other, and [WithDeadLetter] is an error. In all else it is
// a handler of [NewHandler], and fails as that does.
func NewRawHandler(verifier *Verifier, store func(context.Context, RawDelivery) error, opts ...HandlerOption) (*Handler, error) {
	if store == nil {
		return nil, errors.New("webhooks: NewRawHandler needs a function that stores the deliveries")
	}
	return newHandler("NewRawHandler", &Handler{verifier: verifier, store: store}, opts)
}

// newHandler completes a handler.
func newHandler(name string, h *Handler, opts []HandlerOption) (*Handler, error) {
	if h.verifier == nil || h.verifier.sign == nil && !h.verifier.unsigned {
		return nil, fmt.Errorf("webhooks: %s needs a verifier of NewVerifier, or webhooks.Unsigned to do without", name)
	}
	h.maxIDs, h.maxAge = 1_000_000, 72*time.Hour
	h.limit = 16 << 20
	h.timeout = 10 * time.Second
	h.now = time.Now
	h.calls = map[string]*call{}
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
	const defaultBound = 256 << 20
	switch {
	case h.bound == 0:
		h.bound = max(defaultBound, 4*min(h.limit, math.MaxInt64/4))
	case h.bound/4 < h.limit:
		return nil, errors.New("webhooks: WithInFlightLimit must be at least four times the limit of a body, see WithBodyLimit")
	}
	h.inFlight = newInFlight(h.bound, min(h.limit, h.bound/4))
	if h.memory == nil {
		h.memory = &recent{limit: h.maxIDs, age: h.maxAge, now: h.now, known: map[idHash]struct{}{}}
	}
	h.ended, h.end = context.WithCancel(context.Background())
	return h, nil
}

// WithBodyLimit caps the body of a delivery, in bytes. The default is 16 MiB.
func WithBodyLimit(n int64) HandlerOption {
	return func(h *Handler) error {
		if n <= 0 {
			return errors.New("WithBodyLimit must be positive")
		}
		h.limit = n
		return nil
	}
}

// WithInFlightLimit caps the memory of all bodies that the handler holds, in bytes: those that are
// arriving, and those that the application or the store has been given and not returned from.
// Deliveries for which there is no room wait, within their deadline, and then get a 503. The
// default is 256 MiB, or four times [WithBodyLimit] if that is more, which is the least. A quarter
// is for bodies of up to 64 KiB, so that large ones do not keep them out.
//
// Beside its body an event takes up to three times its size while it is applied, and each
// connection some 20 kB. The number of connections is for the server or what is in front of it to
// limit.
func WithInFlightLimit(n int64) HandlerOption {
	return func(h *Handler) error {
		if n <= 0 {
			return errors.New("WithInFlightLimit must be positive")
		}
		h.bound = n
		return nil
	}
}

// WithDeadline sets the time from the arrival of a request to its answer: for its body to come in and for the application to
// deal with it. The default is 10 s; it must be below the 15 s that the sender waits. While the body is read it takes the place of the
// server's ReadTimeout.
func WithDeadline(d time.Duration) HandlerOption {
	return func(h *Handler) error {
		if d <= 0 || d >= senderTimeout {
			return fmt.Errorf("WithDeadline must be above 0 and below the %s that the sender waits", senderTimeout)
		}
		h.timeout = d
		return nil
	}
}

// WithDeadLetter calls f with each body that the verifier believes and [Parse] cannot read, in
// place of the application, and with the body of each event for which the application returned an
// error that matches [ErrPermanent]. The rules are those of the application: a nil error
// acknowledges the delivery. The body belongs to f. Without a dead-letter function the response is
// 400 to a body that cannot be read, and 503 to an event that fails permanently.
func WithDeadLetter(f func(ctx context.Context, body []byte) error) HandlerOption {
	return func(h *Handler) error {
		if f == nil {
			return errors.New("WithDeadLetter needs a function")
		}
		h.deadLetter = f
		return nil
	}
}

// WithMemory replaces the memory of delivery ids, such as by one that several processes share.
func WithMemory(m Memory) HandlerOption {
	return func(h *Handler) error {
		if m == nil {
			return errors.New("WithMemory needs a memory")
		}
		h.memory = m
		return nil
	}
}

// WithMemoryLimit sets how many ids the handler's own memory holds, the oldest being dropped for a new one, and for how long. The
// default is 1,000,000 ids, 65 to 95 MB when it is full, for 72 hours.
func WithMemoryLimit(ids int, age time.Duration) HandlerOption {
	return func(h *Handler) error {
		if ids <= 0 || age <= 0 {
			return errors.New("WithMemoryLimit must be positive")
		}
		h.maxIDs, h.maxAge = ids, age
		return nil
	}
}

// WithObserver calls f after each answer. The answer has been sent by then; f is called in the goroutine of the request, or of the
// late call. It may be given more than once. A panic of f is contained.
func WithObserver(f func(context.Context, Answer)) HandlerOption {
	return func(h *Handler) error {
		if f == nil {
			return errors.New("WithObserver needs a function")
		}
		h.observers = append(h.observers, f)
		return nil
	}
}

// WithLogger writes a record for each answer: at debug level if it is 2xx, as an error if it is
// [AnswerPermanent], as a warning otherwise and for dead letters. The record holds what [Answer]
// holds and nothing else, the type as [Event.LogValue] shows it.
func WithLogger(l *slog.Logger) HandlerOption {
	return func(h *Handler) error {
		if l == nil {
			return errors.New("WithLogger needs a logger")
		}
		h.observers = append(h.observers, func(ctx context.Context, a Answer) {
			level := slog.LevelWarn
			switch {
			case a.Result == AnswerPermanent:
				level = slog.LevelError
			case a.Result != AnswerDeadLettered && a.StatusCode >= 200 && a.StatusCode <= 299:
				level = slog.LevelDebug
			}
			l.LogAttrs(ctx, level, "webhook delivery",
				slog.String("delivery_id", a.DeliveryID), slog.String("type", string(printable(a.Type))), slog.Int("status", a.StatusCode),
				slog.String("result", string(a.Result)), slog.Bool("duplicate", a.Duplicate), slog.Bool("late", a.Late),
				slog.String("panic", a.Panic), slog.Time("received_at", a.ReceivedAt), slog.Duration("duration", a.Duration))
		})
		return nil
	}
}

// WithClock sets the clock that dates the arrival of deliveries, judges their timestamps and ages the handler's own memory, for
// tests whose sender has a clock of its own (labhealthtest.WithClock). The default is [time.Now]. Deadlines follow the clock of the
// runtime whatever this one says.
func WithClock(now func() time.Time) HandlerOption {
	return func(h *Handler) error {
		if now == nil {
			return errors.New("WithClock needs a clock")
		}
		h.now = now
		return nil
	}
}

type deliveryIDKey struct{}

// DeliveryIDFrom returns the id of the delivery that the application was called for, out of its context; empty if the delivery has
// none. With it the event is a [Delivery], as [Latest.Apply] takes it:
//
//	latest.Apply(webhooks.Delivery{Event: event, ID: webhooks.DeliveryIDFrom(ctx)})
func DeliveryIDFrom(ctx context.Context) string {
	id, _ := ctx.Value(deliveryIDKey{}).(string)
	return id
}

// ServeHTTP receives a delivery. See [Handler] for the answers.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d := delivery{id: DeliveryID(r.Header), received: h.now(), begun: time.Now()}
	a := Answer{StatusCode: http.StatusServiceUnavailable, Result: AnswerShutdown}
	if h.enter() {
		defer h.leave()
		a = h.receive(w, r, &d)
	}
	// What is left of the body is read by the server before it sends the response, and a sender
	// could take for ever over it.
	connection := http.NewResponseController(w)
	if d.body == nil {
		connection.SetReadDeadline(d.begun.Add(h.timeout))
	}
	write(w, a.StatusCode)
	if len(h.observers) > 0 {
		connection.Flush() // An observer that takes its time holds up no answer. Not every writer can.
		connection.SetReadDeadline(time.Time{})
	}
	h.report(r.Context(), d, a)
}

func write(w http.ResponseWriter, status int) {
	if status == http.StatusNoContent {
		w.WriteHeader(status)
		return
	}
	text := http.StatusText(status) + "\n"
	header := w.Header()
	if status == http.StatusMethodNotAllowed {
		header.Set("Allow", http.MethodPost)
	}
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	io.WriteString(w, text) // A sender that has gone away misses nothing.
}

func (h *Handler) report(ctx context.Context, d delivery, a Answer) {
	a.DeliveryID, a.ReceivedAt, a.Duration = d.id, d.received, time.Since(d.begun)
	for _, f := range h.observers {
		func() {
			defer func() { recover() }()
			f(context.WithoutCancel(ctx), a)
		}()
	}
}

// delivery is what is known of a delivery.
type delivery struct {
	id       string    // empty if there is none
	body     []byte    // nil until it was received
	memory   *held     // of the body
	received time.Time // by the handler's clock
	begun    time.Time // the same moment by the clock of the runtime
}

// receive takes a delivery from its headers to its answer.
func (h *Handler) receive(w http.ResponseWriter, r *http.Request, d *delivery) Answer {
	if r.Method != http.MethodPost {
		return Answer{StatusCode: http.StatusMethodNotAllowed, Result: AnswerMethod}
	}
	// What is refused by its headers alone is not read.
	headers, err := h.verifier.admit(r.Header, d.received)
	if err != nil {
		return refused(err)
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(r.Context()), d.begun.Add(h.timeout))
	defer cancel()
	defer context.AfterFunc(h.ended, cancel)()
	d.memory = &held{from: h.inFlight, large: r.ContentLength > largestSmall}
	delivered := false
	defer func() {
		if !delivered { // A body that a middleware has wrapped may panic.
			d.memory.release()
		}
	}()
	err = h.read(ctx, w, r, d)
	if err == nil {
		err = h.verifier.match(headers, d.body)
	}
	if err != nil {
		return h.unread(err)
	}
	delivered = true
	return h.deliver(context.WithValue(ctx, deliveryIDKey{}, d.id), *d)
}

// unread is the answer to a delivery whose body was not received or not believed.
func (h *Handler) unread(err error) Answer {
	tooLarge := (*http.MaxBytesError)(nil)
	switch {
	case errors.As(err, &tooLarge):
		return Answer{StatusCode: http.StatusRequestEntityTooLarge, Result: AnswerTooLarge}
	case errors.Is(err, ErrSignature):
		return refused(err)
	case errors.Is(err, errNoRoom) && h.ended.Err() != nil:
		return Answer{StatusCode: http.StatusServiceUnavailable, Result: AnswerShutdown}
	case errors.Is(err, errNoRoom):
		return Answer{StatusCode: http.StatusServiceUnavailable, Result: AnswerOverloaded}
	}
	return Answer{StatusCode: http.StatusBadRequest, Result: AnswerIncomplete}
}

var errNoRoom = errors.New("webhooks: too much is in flight")

func refused(err error) Answer {
	result := AnswerSignature
	switch {
	case errors.Is(err, ErrHeaders):
		result = AnswerHeaders
	case errors.Is(err, ErrTimestamp):
		result = AnswerTimestamp
	}
	return Answer{StatusCode: http.StatusUnauthorized, Result: result}
}

// firstBuffer is the memory that a delivery takes before anything of its body was received. The
// length is what the sender says, so it is believed for small bodies only; each further buffer has
// twice the size of what was received.
const firstBuffer = 16 << 10

// read reads the body until the deadline, if the connection can be given one. It takes the memory
// for it.
func (h *Handler) read(ctx context.Context, w http.ResponseWriter, r *http.Request, d *delivery) error {
	if r.ContentLength > h.limit {
		return &http.MaxBytesError{Limit: h.limit}
	}
	connection := http.NewResponseController(w)
	connection.SetReadDeadline(d.begun.Add(h.timeout))
	source := http.MaxBytesReader(w, r.Body, h.limit)
	size := min(firstBuffer, h.limit)
	if r.ContentLength >= 0 {
		size = min(size, r.ContentLength)
	}
	if d.memory.take(ctx, size) != nil {
		return errNoRoom
	}
	body := make([]byte, 0, size)
	var next [1]byte // tells whether there is more, before a buffer is made for it
	for {
		room := body[len(body):cap(body)]
		if len(room) == 0 {
			room = next[:]
		}
		n, err := source.Read(room)
		if n > 0 && len(body) == cap(body) {
			size := min(2*max(int64(cap(body)), firstBuffer/2), h.limit)
			if r.ContentLength > int64(len(body)) {
				size = min(size, r.ContentLength)
			}
			if d.memory.take(ctx, size) != nil {
				return errNoRoom
			}
			was := int64(cap(body))
			body = append(append(make([]byte, 0, size), body...), next[0])
			d.memory.give(was)
		} else {
			body = body[:len(body)+n]
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	d.memory.finish()
	connection.SetReadDeadline(time.Time{}) // Left alone it would pass for the end of the connection.
	d.body = body
	return nil
}

// call is a delivery that is being dealt with.
type call struct {
	done   chan struct{} // closed when there is an answer
	answer Answer        // valid when done is closed

	// Guarded by the mutex of the handler.
	kind    EventType
	success bool // all is done but the note of it
}

// deliver deals with a delivery, or waits for the one that does.
func (h *Handler) deliver(ctx context.Context, d delivery) Answer {
	h.mu.Lock()
	c := h.calls[d.id]
	duplicate := c != nil
	if !duplicate {
		c = &call{done: make(chan struct{})}
		if d.id != "" {
			h.calls[d.id] = c
		}
		h.running++
		go h.run(ctx, c, d)
	}
	h.mu.Unlock()
	if duplicate {
		d.memory.release() // The other one has a body of its own.
	}

	select {
	case <-c.done:
	case <-ctx.Done():
		a := Answer{StatusCode: http.StatusServiceUnavailable, Result: h.overdue(), Duplicate: duplicate}
		if duplicate { // The other one may have come later and have more time.
			return a
		}
		h.finish(c, d.id, a)
	}
	a := c.answer
	a.Duplicate = a.Duplicate || duplicate
	return a
}

// overdue is the result of a call whose context ended.
func (h *Handler) overdue() AnswerResult {
	if h.ended.Err() != nil {
		return AnswerShutdown
	}
	return AnswerDeadline
}

// finish settles the answer to a delivery, unless it is settled. A delivery whose deadline passes while its success is being noted
// has succeeded.
func (h *Handler) finish(c *call, id string, a Answer) (settled bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-c.done:
		return false
	default:
	}
	if c.success && a.StatusCode != http.StatusNoContent {
		a.StatusCode, a.Result = http.StatusNoContent, AnswerNotNoted
	}
	a.Type = c.kind
	c.answer = a
	if h.calls[id] == c {
		delete(h.calls, id)
	}
	close(c.done)
	return true
}

// run is the goroutine of a call.
func (h *Handler) run(ctx context.Context, c *call, d delivery) {
	defer h.leave()
	defer d.memory.release()
	// This is the answer if work ends without one, by a panic or by runtime.Goexit.
	a := Answer{StatusCode: http.StatusServiceUnavailable, Result: AnswerPanicked}
	defer func() {
		if v := recover(); v != nil {
			a.Panic = describe(v)
		}
		if h.finish(c, d.id, a) || a.StatusCode != http.StatusNoContent && a.Result != AnswerPanicked {
			return
		}
		a.StatusCode, a.Type, a.Late = 0, c.answer.Type, true
		h.report(ctx, d, a)
	}()
	a = h.work(ctx, c, d)
}

// work looks whether a delivery was dealt with, else deals with it and notes that.
func (h *Handler) work(ctx context.Context, c *call, d delivery) Answer {
	if d.id != "" {
		seen, err := h.memory.Seen(ctx, d.id)
		if err != nil {
			return Answer{StatusCode: http.StatusServiceUnavailable, Result: AnswerMemory}
		}
		if seen {
			return Answer{StatusCode: http.StatusNoContent, Result: AnswerRemembered, Duplicate: true}
		}
	}
	result, err := h.handOver(ctx, c, d)
	done := Answer{StatusCode: http.StatusNoContent, Result: result}
	switch {
	case result == AnswerUnreadable:
		return Answer{StatusCode: http.StatusBadRequest, Result: result}
	case result == AnswerPermanent:
		return Answer{StatusCode: http.StatusServiceUnavailable, Result: result}
	case err != nil && ctx.Err() != nil:
		return Answer{StatusCode: http.StatusServiceUnavailable, Result: h.overdue()}
	case err != nil:
		return Answer{StatusCode: http.StatusServiceUnavailable, Result: AnswerFailed}
	case d.id == "":
		return done
	}
	h.mu.Lock()
	c.success = true
	h.mu.Unlock()
	// The success of a call that was late is noted too, so the note has time of its own.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.timeout)
	defer cancel()
	if err := h.memory.Remember(ctx, d.id); err != nil {
		done.Result = AnswerNotNoted
	}
	return done
}

// handOver gives a delivery to the application. The result is for the case that it takes it.
func (h *Handler) handOver(ctx context.Context, c *call, d delivery) (result AnswerResult, err error) {
	if h.store != nil {
		return AnswerStored, h.store(ctx, RawDelivery{d.id, d.body, d.received})
	}
	event, err := parse(d.body)
	unkept := AnswerUnreadable
	if err == nil {
		event.ReceivedAt = d.received
		h.mu.Lock()
		c.kind = event.Type
		h.mu.Unlock()
		if err = h.apply(ctx, event); !errors.Is(err, ErrPermanent) {
			return AnswerApplied, err
		}
		unkept = AnswerPermanent
	}
	if h.deadLetter == nil {
		return unkept, err
	}
	return AnswerDeadLettered, h.deadLetter(ctx, bytes.Clone(d.body)) // the application may hold the event, which shares the body
}

// describe names what a goroutine panicked with and where, without the value.
func describe(value any) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%T", value)
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers)])
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		fmt.Fprintf(&text, "\n%s %s:%d", f.Function, f.File, f.Line)
	}
	return text.String()
}

// Shutdown lets no delivery in any more, they are answered with 503, and waits until those that are in work have been answered and
// the application has returned from all calls, late ones too. If ctx ends before that, the contexts of the calls end and Shutdown
// returns the error of ctx. With an [http.Server], shut the server down first and the handler after it. A handler cannot be opened
// again.
func (h *Handler) Shutdown(ctx context.Context) error {
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
		h.end()
		return fmt.Errorf("webhooks: deliveries are still in work: %w", ctx.Err())
	}
}

func (h *Handler) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.running++
	}
	return !h.closed
}

func (h *Handler) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running--
	if h.closed && h.running == 0 {
		close(h.idle)
	}
}
