package labhealth

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/labhealth/labhealth-go/internal/transport"
)

// Attempt describes one attempt of a call to an observer. It holds no URL, key or patient data.
type Attempt struct {
	Op         string        // the operation, such as "POST /v3/order/import"
	Number     int           // 1 for the first attempt
	StatusCode int           // 0 without a response
	Duration   time.Duration // until the response was read
	RequestID  string        // the service's ID of the request; empty if it sent none
	Outcome    Outcome       // of the call so far
	// Err is why there is no response, or why a 2xx response cannot be used, and nil otherwise. Its
	// message holds no address and no part of the response; see [FailureOf].
	Err error
}

// Call describes a call, with all its attempts, to a [CallObserver]. Except for what errors.As finds
// in Err, it holds no URL, key or patient data.
type Call struct {
	Op         string        // the operation, such as "POST /v3/order/import"
	Host       string        // host and port of the base URL
	Attempts   []Attempt     // in order; empty if nothing was sent
	StatusCode int           // of the last response; 0 without one
	RequestID  string        // the service's ID of the last request; empty if it sent none
	Duration   time.Duration // of the call, including the waits between attempts
	Outcome    Outcome       // see [OutcomeOf]
	Err        error         // the error that the call returns; nil if it succeeded
}

// CallObserver observes the calls of a client: see [WithCallObserver]. Either function may be nil.
type CallObserver struct {
	// Start is called before a call is validated. The context that it returns is that of the
	// requests and of End, and must be derived from ctx. What it adds to header is sent with every
	// attempt, such as a traceparent.
	Start func(ctx context.Context, op string, header http.Header) context.Context
	// End is called when the call is over, with the context that Start returned.
	End func(ctx context.Context, call Call)
}

// WithCallObserver calls the functions of o before and after each call, in the goroutine of the
// call. A page of an iterator is a call. It may be given more than once.
func WithCallObserver(o CallObserver) Option {
	return func(c *config) error {
		if o.Start == nil && o.End == nil {
			return errors.New("WithCallObserver needs Start or End")
		}
		c.core.callObservers = append(c.core.callObservers, o)
		return nil
	}
}

// observation is a call that is observed.
type observation struct {
	call     Call
	started  time.Time
	contexts []context.Context // of the observers, in their order
}

// startCall calls the Start of each observer, and returns the context of the requests. The
// observation is nil if there is no observer.
func (c *core) startCall(ctx context.Context, op string, header http.Header) (context.Context, *observation) {
	if len(c.callObservers) == 0 {
		return ctx, nil
	}
	o := &observation{call: Call{Op: op}, started: time.Now()}
	if u, err := url.Parse(c.base); err == nil {
		o.call.Host = u.Host
	}
	for _, observer := range c.callObservers {
		if observer.Start != nil {
			ctx = observer.Start(ctx, op, header)
		}
		o.contexts = append(o.contexts, ctx)
	}
	return ctx, o
}

// endCall calls the End of each observer, the last one first.
func (c *core) endCall(o *observation, err error) {
	if o == nil {
		return
	}
	o.call.Duration, o.call.Outcome, o.call.Err = time.Since(o.started), OutcomeOf(err), err
	for i, observer := range slices.Backward(c.callObservers) {
		if observer.End != nil {
			observer.End(o.contexts[i], o.call)
		}
	}
}

// observe passes an attempt to the observers.
func (c *core) observe(ctx context.Context, op string, o *observation, a transport.Attempt) {
	attempt := Attempt{
		Op: op, Number: a.Number, StatusCode: a.StatusCode, Duration: a.Duration, RequestID: requestID(a.Header),
		Outcome: Outcome(a.Outcome), Err: attemptError(a.Err),
	}
	if o != nil {
		o.call.Attempts = append(o.call.Attempts, attempt)
		o.call.StatusCode, o.call.RequestID = attempt.StatusCode, attempt.RequestID
	}
	for _, observe := range c.observers {
		observe(ctx, attempt)
	}
}

// WithObserver calls f after each attempt, in the goroutine of the call. It may be given more than
// once.
func WithObserver(f func(context.Context, Attempt)) Option {
	return func(c *config) error {
		if f == nil {
			return errors.New("WithObserver needs a function")
		}
		c.core.observers = append(c.core.observers, f)
		return nil
	}
}

// WithLogger logs each attempt: at debug level if the response is 2xx, as a warning otherwise. The
// record holds the fields of [Attempt] and nothing else.
func WithLogger(l *slog.Logger) Option {
	if l == nil {
		return func(*config) error { return errors.New("WithLogger needs a logger") }
	}
	return WithObserver(func(ctx context.Context, a Attempt) {
		level := slog.LevelWarn
		if a.StatusCode >= 200 && a.StatusCode <= 299 {
			level = slog.LevelDebug
		}
		l.LogAttrs(ctx, level, "labhealth request",
			slog.String("op", a.Op), slog.Int("attempt", a.Number), slog.Int("status", a.StatusCode),
			slog.Duration("duration", a.Duration), slog.String("request_id", a.RequestID),
			slog.String("outcome", a.Outcome.String()))
	})
}

// operationKey is the context key of the operation of a request.
type operationKey struct{}

// Operation returns the operation of a request of this package from the context of its
// [http.Request], such as "PATCH /v3/order/{order_id}". It is empty for other requests. A transport
// passed to [WithHTTPClient] names spans and metrics with it, because the path of the URL contains
// the IDs of orders and users.
func Operation(ctx context.Context) string {
	if ctx == nil {
		return ""
	}
	op, _ := ctx.Value(operationKey{}).(string)
	return op
}
