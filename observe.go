// Observers and logs of attempts and calls.

package labhealth

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/labhealth/labhealth-go/internal/transport"
)

// Attempt describes one attempt of a call to an observer. It holds no URL, key or patient data.
type Attempt struct {
	Op         string        // the operation, such as "POST /v3/order/import"
	Number     int           // 1 for the first attempt
	StatusCode int           // 0 without a response
	Start      time.Time     // when the attempt began, after a wait for [WithRateLimit]
	Duration   time.Duration // until the response was read
	Wait       time.Duration // planned until the next attempt, if Repeated
	Repeated   bool          // another attempt follows, unless the context ends before
	RequestID  string        // the service's ID of the request; empty if it sent none
	Outcome    Outcome       // of the call so far
	// Err is why there is no response, or why a 2xx response cannot be used, and nil otherwise. Its
	// message names what to change, and holds no address and no part of the response; see
	// [FailureOf]. The message of an error of a custom [http.RoundTripper] is not part of it.
	Err error
}

// Call describes a call, with all its attempts, to a [CallObserver]. Except for what errors.As
// finds in Err, it holds no URL, key or patient data.
type Call struct {
	Op         string        // the operation, such as "POST /v3/order/import"
	Host       string        // host and port of the base URL
	Attempts   []Attempt     // in order; empty if nothing was sent
	StatusCode int           // of the last attempt; 0 if it received no response
	RequestID  string        // the service's ID of the last attempt; empty if it sent none
	Start      time.Time     // when the call began
	Duration   time.Duration // of the call, including the waits between attempts
	Outcome    Outcome       // see [OutcomeOf]
	// Err is the error that the call returns, nil if it succeeded. It is not part of the JSON of a
	// call, because that of a [UserConflictError] has the ID of the user.
	Err error `json:"-"`
}

// CallObserver observes the calls of a client: see [WithCallObserver]. Its functions may be nil.
type CallObserver struct {
	// Start is called before a call is validated. The context that it returns is that of the
	// requests, of Attempt and of End. It should be derived from ctx, with which
	// the requests end in any case; nil is replaced by ctx. What Start adds to header, such as a
	// traceparent, is sent with every attempt, unless [WithHeader] sets the same header. A header
	// that WithHeader does not accept, and Accept, are not sent.
	Start func(ctx context.Context, op string, header http.Header) context.Context
	// Attempt is called after each attempt, with the context of the requests.
	Attempt func(ctx context.Context, attempt Attempt)
	// End is called when the call is over, even if it panics, with the context that Start returned.
	// If Start is nil, it receives the context of the requests.
	End func(ctx context.Context, call Call)
}

// WithCallObserver calls the functions of o before and after each call and after each attempt, in
// the goroutine of the call. Their panics are not recovered. It may be given more than once: the
// first observer starts first and ends last. Each page of an iterator is a call. Errors that an
// iterator finds between pages are not observed.
func WithCallObserver(o CallObserver) Option {
	return func(c *config) error {
		if o.Start == nil && o.Attempt == nil && o.End == nil {
			return errors.New("WithCallObserver needs Start, Attempt or End")
		}
		c.core.addObserver(o)
		return nil
	}
}

// addObserver adds an observer of calls. It sets the function that observes, so that a program
// without observers does not link it.
func (c *core) addObserver(o CallObserver) {
	c.callObservers = append(c.callObservers, o)
	c.observed = (*core).observeCall
}

// observation is a call that is observed.
type observation struct {
	observers []CallObserver
	call      Call
	header    http.Header       // as the observers left it
	ctx       context.Context   // of the requests
	contexts  []context.Context // of the observers that were started
}

// start calls the Start of each observer, and returns the context of the requests.
func (o *observation) start(ctx context.Context) context.Context {
	o.ctx = cmp.Or(ctx, context.Background())
	for _, observer := range o.observers {
		if observer.Start != nil {
			o.ctx = cmp.Or(observer.Start(o.ctx, o.call.Op, o.header), o.ctx)
		}
		o.contexts = append(o.contexts, o.ctx)
	}
	if ctx == nil {
		return nil
	}
	return o.ctx
}

// end calls the End of each observer that was started, the last one first.
func (o *observation) end(err error) {
	o.call.Duration, o.call.Outcome, o.call.Err = time.Since(o.call.Start), OutcomeOf(err), err
	for i, ctx := range o.contexts {
		switch observer := o.observers[i]; {
		case observer.End == nil:
		case observer.Start == nil:
			defer observer.End(o.ctx, o.call)
		default:
			defer observer.End(ctx, o.call)
		}
	}
}

// errUnfinished is the error of a call that panicked.
var errUnfinished = errors.New("labhealth: the call did not return")

// observeCall performs r for the observers of calls.
func (c *core) observeCall(ctx context.Context, r request, opts []CallOption) error {
	o := &observation{observers: c.callObservers, header: http.Header{}}
	o.call = Call{Op: r.op, Host: c.host, Start: time.Now()}
	err := errUnfinished
	defer func() { o.end(err) }()
	started := o.start(ctx)
	sending, cancel := within(started, ctx)
	defer cancel()
	err = c.perform(sending, r, o, opts)
	return err
}

// within returns ctx, which an observer may have made from another context, so that it ends with
// the context of the caller.
func within(ctx, caller context.Context) (context.Context, context.CancelFunc) {
	if ctx.Done() == caller.Done() || caller.Done() == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	limited, release := ctx, cancel
	if deadline, ok := caller.Deadline(); ok {
		limited, release = context.WithDeadline(ctx, deadline)
	}
	stop := context.AfterFunc(caller, func() {
		if limited == ctx || errors.Is(caller.Err(), context.Canceled) { // otherwise the deadline ends it
			cancel()
		}
	})
	return limited, func() { stop(); release(); cancel() }
}

// observe passes an attempt to the observers. ctx is the context of the requests.
func (o *observation) observe(ctx context.Context, a transport.Attempt) {
	attempt := Attempt{
		Op: o.call.Op, Number: a.Number, StatusCode: a.StatusCode, RequestID: a.RequestID, Start: a.Start,
		Duration: a.Duration, Wait: a.Wait, Repeated: a.Repeated, Outcome: Outcome(a.Outcome), Err: attemptError(&a),
	}
	o.call.Attempts = append(o.call.Attempts, attempt)
	o.call.StatusCode, o.call.RequestID = attempt.StatusCode, attempt.RequestID
	for _, observer := range o.observers {
		if observer.Attempt != nil {
			observer.Attempt(ctx, attempt)
		}
	}
}

// WithLogger logs each attempt and the end of each call:
//
//	message            when                                        level
//	labhealth attempt  an attempt that is not repeated             debug
//	labhealth attempt  an attempt that is repeated after a "wait"  info
//	labhealth call     a call that succeeded                       debug
//	labhealth call     a read that returned 404                    info
//	labhealth call     a canceled call, unless it is a write with  info
//	                   an unknown outcome
//	labhealth call     any other call that failed                  warning
//
// A failed call is thus one "labhealth call", however many attempts it made. The attributes are
// fields of [Attempt] and [Call], in lower case with underscores, and "failure" and "error": see
// [FailureOf]. Zero values are left out, apart from "duration". The record holds no URL, no key, no
// body and no ID of a patient, and its values are strings, numbers and durations, which a
// [slog.JSONHandler] writes in nanoseconds.
func WithLogger(l *slog.Logger) Option {
	return func(c *config) error {
		if l == nil {
			return errors.New("WithLogger needs a logger")
		}
		c.logger = l
		c.core.addObserver(CallObserver{
			Attempt: func(ctx context.Context, a Attempt) { logAttempt(ctx, l, a) },
			End:     func(ctx context.Context, call Call) { logCall(ctx, l, call) },
		})
		return nil
	}
}

func logAttempt(ctx context.Context, l *slog.Logger, a Attempt) {
	level := slog.LevelDebug
	if a.Repeated {
		level = slog.LevelInfo
	}
	if !l.Enabled(ctx, level) {
		return
	}
	l.LogAttrs(ctx, level, "labhealth attempt", a.attrs()...)
}

// LogValue returns the attributes that [WithLogger] logs.
func (a Attempt) LogValue() slog.Value { return slog.GroupValue(a.attrs()...) }

func (a Attempt) attrs() []slog.Attr {
	attrs := append(make([]slog.Attr, 0, 10), slog.String("op", a.Op), slog.Int("attempt", a.Number))
	attrs = appendAttrs(attrs, a.Op, a.StatusCode, a.RequestID, a.Duration, a.Outcome, a.Err)
	if a.Repeated {
		attrs = append(attrs, slog.Duration("wait", a.Wait))
	}
	return attrs
}

func logCall(ctx context.Context, l *slog.Logger, call Call) {
	level := slog.LevelWarn
	switch {
	case call.Err == nil:
		level = slog.LevelDebug
	case errors.Is(call.Err, ErrNotFound) && isRead(call.Op),
		FailureOf(call.Err) == FailureCanceled && (isRead(call.Op) || call.Outcome != OutcomeUnknown):
		level = slog.LevelInfo
	}
	if !l.Enabled(ctx, level) {
		return
	}
	l.LogAttrs(ctx, level, "labhealth call", call.attrs()...)
}

// LogValue returns the attributes that [WithLogger] logs.
func (c Call) LogValue() slog.Value { return slog.GroupValue(c.attrs()...) }

func (c Call) attrs() []slog.Attr {
	attrs := append(make([]slog.Attr, 0, 10), slog.String("op", c.Op), slog.Int("attempts", len(c.Attempts)))
	return appendAttrs(attrs, c.Op, c.StatusCode, c.RequestID, c.Duration, c.Outcome, c.Err)
}

// appendAttrs appends what the records of attempts and calls have in common. The error is its
// message, because a handler would find the causes of an error.
func appendAttrs(attrs []slog.Attr, op string, status int, requestID string, duration time.Duration, outcome Outcome, err error) []slog.Attr {
	if status != 0 {
		attrs = append(attrs, slog.Int("status", status))
	}
	attrs = append(attrs, slog.Duration("duration", duration))
	if requestID != "" {
		attrs = append(attrs, slog.String("request_id", requestID))
	}
	if outcome != OutcomeUnknown || !isLookUp(op) {
		attrs = append(attrs, slog.String("outcome", outcome.String()))
	}
	if failure := FailureOf(err); failure != "" {
		attrs = append(attrs, slog.String("failure", string(failure)))
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	return attrs
}

func isRead(op string) bool { return strings.HasPrefix(op, "GET ") || strings.HasPrefix(op, "HEAD ") }

// Operation returns the operation of a request of this package from the context of its
// [http.Request], such as "PATCH /v3/order/{order_id}". It is empty for other requests. A transport
// passed to [WithHTTPClient] names spans and metrics with it, because the path of the URL contains
// the IDs of orders and users.
func Operation(ctx context.Context) string {
	if ctx == nil {
		return ""
	}
	op, _ := ctx.Value(transport.OperationKey{}).(string)
	return op
}
