package labhealthotel

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// The attributes of deliveries and of the worker.
const (
	reasonKey     = attribute.Key("labhealth.webhook.reason")
	eventTypeKey  = attribute.Key("labhealth.webhook.event_type")
	duplicateKey  = attribute.Key("labhealth.webhook.duplicate")
	lateKey       = attribute.Key("labhealth.webhook.late")
	deliveryIDKey = attribute.Key("labhealth.webhook.delivery_id")

	appliedKey        = attribute.Key("labhealth.worker.applied")
	delayedKey        = attribute.Key("labhealth.worker.delayed")
	deadKey           = attribute.Key("labhealth.worker.dead")
	resultKey         = attribute.Key("labhealth.worker.result")
	reactionKindKey   = attribute.Key("labhealth.reaction.kind")
	reactionIDKey     = attribute.Key("labhealth.reaction.id")
	reactionResultKey = attribute.Key("labhealth.reaction.result")
	attemptKey        = attribute.Key("labhealth.reaction.attempt")

	changeKey = attribute.Key("labhealth.worker.change")
)

// Handler returns an option that records the deliveries of a handler.
func Handler(opts ...Option) webhooks.HandlerOption {
	i := newInstruments(opts)
	h := &handler{
		i, i.seconds("http.server.request.duration", "Duration of HTTP server requests."),
		i.counter("labhealth.webhook.deliveries", "{delivery}", "Deliveries of events."), map[webhooks.EventType]bool{},
	}
	for _, t := range webhooks.EventTypes() {
		h.eventTypes[t] = true
	}
	return func(wh *webhooks.Handler) error {
		return errors.Join(webhooks.WithDeliveryContext(h.start)(wh), webhooks.WithObserver(h.end)(wh))
	}
}

type handler struct {
	instruments
	requests   metric.Float64Histogram
	deliveries metric.Int64Counter
	eventTypes map[webhooks.EventType]bool
}

// delivery is what a handler keeps in the context, with itself as the key: a context can have the
// spans of others too.
type delivery struct {
	span       trace.Span
	attributes []attribute.KeyValue
}

func (h *handler) start(ctx context.Context, r *http.Request) context.Context {
	name, attributes := describeRequest(r)
	if h.propagator != nil && !trace.SpanContextFromContext(ctx).IsValid() {
		ctx = h.propagator.Extract(ctx, propagation.HeaderCarrier(r.Header))
	}
	ctx, span := h.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attributes...))
	return context.WithValue(ctx, h, delivery{span, attributes})
}

// describeRequest returns the name of a delivery's span and its attributes. Anyone can send any
// method, so that only that of deliveries counts.
func describeRequest(r *http.Request) (name string, attributes []attribute.KeyValue) {
	method, name := semconv.HTTPRequestMethodOther.Value.AsString(), "HTTP"
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		method, name = r.Method, r.Method
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	attributes = []attribute.KeyValue{semconv.HTTPRequestMethodKey.String(method), semconv.URLScheme(scheme)}
	if i := strings.IndexByte(r.Pattern, '/'); i >= 0 { // after a method and a host
		attributes = append(attributes, semconv.HTTPRoute(r.Pattern[i:]))
		name += " " + r.Pattern[i:]
	}
	return name, attributes
}

func (h *handler) end(ctx context.Context, r webhooks.DeliveryResult) {
	own := []attribute.KeyValue{reasonKey.String(string(r.Reason)), duplicateKey.Bool(r.Duplicate)}
	if r.Type != "" {
		kind := "other"
		if h.eventTypes[r.Type] {
			kind = string(r.Type)
		}
		own = append(own, eventTypeKey.String(kind))
	}
	h.deliveries.Add(ctx, 1, with(own, lateKey.Bool(r.Late)))
	if r.Late {
		return // the span is over
	}
	d, ok := ctx.Value(h).(delivery)
	if !ok {
		return
	}
	status := []attribute.KeyValue{semconv.HTTPResponseStatusCode(r.StatusCode)}
	if r.StatusCode >= 500 {
		status = append(status, semconv.ErrorTypeKey.String(string(r.Reason)))
	}
	if h.requests.Enabled(ctx) {
		h.requests.Record(ctx, r.Duration.Seconds(), with(d.attributes, status...))
	}
	defer d.span.End()
	d.span.SetAttributes(status...)
	d.span.SetAttributes(own...)
	if r.DeliveryID != "" && isVerified(r.Reason) {
		d.span.SetAttributes(deliveryIDKey.String(r.DeliveryID))
	}
	if kind, stack, ok := strings.Cut(r.Panic, "\n"); ok {
		d.span.AddEvent("exception", trace.WithAttributes(semconv.ExceptionType(kind), semconv.ExceptionStacktrace(stack)))
	}
	if r.StatusCode >= 500 {
		d.span.SetStatus(codes.Error, string(r.Reason))
	}
}

// isVerified reports whether a delivery passed verification, so that its ID is that of the service.
func isVerified(r webhooks.Reason) bool {
	return !slices.Contains([]webhooks.Reason{
		webhooks.ReasonMethod, webhooks.ReasonHeaders, webhooks.ReasonTimestamp, webhooks.ReasonSignature,
		webhooks.ReasonTooLarge, webhooks.ReasonIncomplete, webhooks.ReasonOverloaded, webhooks.ReasonShutdown,
	}, r)
}

// Worker returns the observer of a [sqlstore.Worker].
func Worker(opts ...Option) sqlstore.StepObserver {
	i := newInstruments(opts)
	w := worker{
		i, i.seconds("labhealth.worker.step.duration", "Duration of steps that took deliveries from the inbox or failed.", 30, 60, 120),
		i.counter("labhealth.worker.deliveries", "{delivery}", "Deliveries that steps processed."),
		i.counter("labhealth.worker.changes", "{change}", "Summaries and samples that steps processed."),
	}
	return sqlstore.StepObserver{Start: w.start, End: w.end}
}

// startKey is the context key of the time.Time at which a step started.
type startKey struct{}

type worker struct {
	instruments
	steps               metric.Float64Histogram
	deliveries, changes metric.Int64Counter
}

func (w worker) start(ctx context.Context) context.Context {
	start := time.Now()
	ctx, _ = w.Start(ctx, "labhealth.worker.step", trace.WithTimestamp(start))
	return context.WithValue(ctx, startKey{}, start)
}

func (w worker) end(ctx context.Context, s sqlstore.Step, err error) {
	failure := stepFailure(err)
	start, _ := ctx.Value(startKey{}).(time.Time)
	w.steps.Record(ctx, time.Since(start).Seconds(), with(failure))
	for _, c := range []struct {
		counter metric.Int64Counter
		kind    attribute.KeyValue
		n       int
	}{
		{w.deliveries, resultKey.String("applied"), s.Applied},
		{w.deliveries, resultKey.String("delayed"), s.Delayed},
		{w.deliveries, resultKey.String("dead"), s.Dead},
		{w.changes, changeKey.String("added"), s.Changes.Added},
		{w.changes, changeKey.String("updated"), s.Changes.Updated},
		{w.changes, changeKey.String("same"), s.Changes.Same},
		{w.changes, changeKey.String("older"), s.Changes.Older},
		{w.changes, changeKey.String("repeated"), s.Changes.Repeated},
		{w.changes, changeKey.String("keyless"), s.Changes.Keyless},
	} {
		if c.n > 0 {
			c.counter.Add(ctx, int64(c.n), metric.WithAttributes(c.kind))
		}
	}
	span := trace.SpanFromContext(ctx)
	defer span.End()
	span.SetAttributes(appliedKey.Int(s.Applied), delayedKey.Int(s.Delayed), deadKey.Int(s.Dead))
	span.SetAttributes(failure...)
	if failed := (*sqlstore.Error)(nil); errors.As(err, &failed) {
		span.SetStatus(codes.Error, failed.Error())
	} else if err != nil {
		span.SetStatus(codes.Error, "")
	}
}

// Reactor returns the observer of a [sqlstore.Reactor].
func Reactor(opts ...Option) sqlstore.ReactionObserver {
	i := newInstruments(opts)
	r := reactor{
		i, i.seconds("labhealth.reactor.call.duration", "Duration of calls of the function of a reactor.", 30, 60, 120),
		i.counter("labhealth.reactor.errors", "{error}", "Errors of the database in a reactor."),
	}
	return sqlstore.ReactionObserver{Start: r.start, End: r.end, Fail: r.fail}
}

type reactor struct {
	instruments
	calls    metric.Float64Histogram
	failures metric.Int64Counter
}

func (r reactor) start(ctx context.Context, of sqlstore.Reaction) context.Context {
	start := time.Now()
	ctx, _ = r.Start(ctx, "labhealth.reactor.call", trace.WithTimestamp(start),
		trace.WithAttributes(reactionKindKey.String(string(of.Kind)), reactionIDKey.String(of.ID.String()), attemptKey.Int(of.Attempt)))
	return context.WithValue(ctx, startKey{}, start)
}

// end does not record the error, which can contain anything.
func (r reactor) end(ctx context.Context, of sqlstore.Reaction, result sqlstore.ReactionResult, _ error) {
	start, _ := ctx.Value(startKey{}).(time.Time)
	r.calls.Record(ctx, time.Since(start).Seconds(), with([]attribute.KeyValue{
		reactionKindKey.String(string(of.Kind)), reactionResultKey.String(string(result)),
	}))
	span := trace.SpanFromContext(ctx)
	defer span.End()
	span.SetAttributes(reactionResultKey.String(string(result)))
	if result != sqlstore.ReactionDone {
		span.SetStatus(codes.Error, "")
	}
}

func (r reactor) fail(ctx context.Context, err error) {
	r.failures.Add(ctx, 1, with(stepFailure(err)))
}

// stepFailure returns the error.type of a step that failed.
func stepFailure(err error) []attribute.KeyValue {
	var failed *sqlstore.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return []attribute.KeyValue{semconv.ErrorTypeKey.String("canceled")}
	case errors.Is(err, context.DeadlineExceeded):
		return []attribute.KeyValue{semconv.ErrorTypeKey.String("deadline")}
	case errors.As(err, &failed) && failed.SQLState != "":
		return []attribute.KeyValue{semconv.ErrorTypeKey.String(failed.SQLState)}
	}
	return []attribute.KeyValue{semconv.ErrorTypeOther}
}
