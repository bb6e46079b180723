// Package labhealthotel records OpenTelemetry traces and metrics of calls, the webhook handler, and
// sqlstore's worker, reactor and (metrics only) reconciler:
//
//	client, err := labhealth.NewClient(key, labhealth.WithBaseURL(url), labhealthotel.Client())
//	handler, err := webhooks.NewHandler(verifier, apply, labhealthotel.Handler())
//	worker := &sqlstore.Worker{Store: store, Observe: labhealthotel.Worker()}
//	reactor := &sqlstore.Reactor{Store: store, React: react, Observe: labhealthotel.Reactor()}
//	reconciler := &sqlstore.Reconciler{Store: store, Client: client, Observe: labhealthotel.Reconciler()}
//
// Spans and metrics go to the global providers of package otel, unless an option names others.
// Calls by package bulk, iterators and management clients count as calls.
//
// # Privacy
//
// Spans and metrics contain operations, status codes, kinds of failures and counts. They contain no
// key, body, header, URL, query, database statement or ID of a patient, user or order: url.full,
// url.path and url.query, which the semantic conventions ask for, are omitted on purpose. Error
// messages are those of this library, which quote neither the request nor the response; messages of
// other errors are replaced by their kind. The service's ID of a request and the ID of a delivery
// are in spans, for support requests, and not in metrics.
//
// By default, no trace context is sent to the service, and none is accepted from deliveries: see
// [WithPropagator].
//
// # Calls
//
// Each call is a client span with an event for each attempt. Spans of a custom transport are its
// children. The call's span is named by the operation, such as "POST /v3/order/import". A call of
// Do to another endpoint is named by its method, because its path can contain IDs. Attributes:
//
//	http.request.method        of the operation
//	url.template               the documented path, with parameters such as {order_id}
//	server.address, .port      of the base URL; set at the end of the call
//	http.response.status_code  of the last attempt
//	http.request.resend_count  further attempts, if there were any
//	error.type                 see below
//	labhealth.outcome          "applied", "rejected", "not sent" or "unknown"; for a read, "failed" instead of "unknown"
//	labhealth.request_id       the service's ID of the last request
//
// If a call returns an error, also for a 404, its span has the status Error and the message of the
// error. error.type is a [labhealth.Failure], a status code, "invalid_request" for a request that
// failed local validation, or "_OTHER". Metrics leave out unusual status codes.
//
// An event "labhealth.attempt" has http.request.resend_count, http.response.status_code, error.type
// and labhealth.request_id of the attempt, its duration and the wait that follows it
// (labhealth.attempt.duration and .wait, in seconds), and why it failed (labhealth.attempt.error).
//
// Metrics, with the attributes above except for the resend count and the ID:
//
//	http.client.request.duration    histogram, s: each attempt, as in the semantic conventions
//	labhealth.client.call.duration  histogram, s: each call with its waits, by labhealth.outcome
//
// # Deliveries
//
// Each delivery is a server span, the parent of the spans of your function. Its name is the method
// and the route of the [net/http.ServeMux]. A span ends with the response; a function that runs
// longer is counted with labhealth.webhook.late. Attributes:
//
//	http.request.method, url.scheme, http.route, http.response.status_code
//	error.type                     the reason of a 5xx
//	labhealth.webhook.reason       see [webhooks.Reason]
//	labhealth.webhook.event_type   a constant of [webhooks.EventType], or "other"
//	labhealth.webhook.duplicate    whether the delivery was repeated
//	labhealth.webhook.delivery_id  in the span only, of deliveries that passed verification
//
// A panic is an event "exception" with the type of its value and the stack. Metrics:
//
//	http.server.request.duration   histogram, s: each delivery, by the HTTP attributes
//	labhealth.webhook.deliveries   counter: by reason, event type, duplicate and late
//
// If the server is instrumented already, as by otelhttp, the span is a child, and
// http.server.request.duration is recorded twice: exclude the route from that instrumentation.
//
// # Worker
//
// Each step that takes deliveries is an internal span "labhealth.worker.step", the parent of the
// spans of Apply, with labhealth.worker.applied, .delayed and .dead. Metrics:
//
//	labhealth.worker.step.duration  histogram, s: with error.type (an SQLSTATE, "canceled", "deadline" or "_OTHER") of failed steps
//	labhealth.worker.deliveries     counter: by labhealth.worker.result ("applied", "delayed", "dead")
//	labhealth.worker.changes        counter: by labhealth.worker.change ("added", "updated", …), see [webhooks.Changes]
//
// # Reactor
//
// Each call of React is an internal span "labhealth.reactor.call", the parent of the spans of the
// function, with labhealth.reaction.kind, .id, .attempt and .result. The error of the function is
// not recorded. Metrics:
//
//	labhealth.reactor.call.duration  histogram, s: by labhealth.reaction.kind and .result, see [sqlstore.ReactionResult]
//	labhealth.reactor.errors         counter: errors of the database, by error.type
//
// # Reconciler
//
// Only its calls have spans. Metrics, by labhealth.reconciler.pass (see [sqlstore.Reconciled]):
//
//	labhealth.reconciler.requests       counter: with repeated attempts
//	labhealth.reconciler.read           counter: by labhealth.reconciler.kind ("orders", "transitions", "results", "summaries", "samples")
//	labhealth.reconciler.differences    counter: what the store did not have, by labhealth.reconciler.kind
//	labhealth.reconciler.missing        counter: by labhealth.reconciler.kind ("orders", "users"), of all passes
//	labhealth.reconciler.failed         counter: orders, users and pages that could not be read
//	labhealth.reconciler.errors         counter: steps that failed, by error.type
//	labhealth.reconciler.last_complete  gauge, s: the time of the last complete pass, since 1970
package labhealthotel

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/labhealth/labhealth-go"
)

// Option configures [Client], [Handler], [Worker], [Reactor] and [Reconciler].
type Option func(*config)

// WithTracerProvider sets the provider of the tracer. The default is that of
// [otel.GetTracerProvider].
func WithTracerProvider(p trace.TracerProvider) Option { return func(c *config) { c.tracers = p } }

// WithMeterProvider sets the provider of the meter. The default is that of [otel.GetMeterProvider].
func WithMeterProvider(p metric.MeterProvider) Option { return func(c *config) { c.meters = p } }

// WithPropagator makes [Client] add the trace context to its requests, and [Handler] continue the
// trace in the headers of a delivery, unless the context of the request has a span already. The
// default is not to propagate, whatever [otel.SetTextMapPropagator] has set: both sides of a call
// are different companies, a propagator of [propagation.Baggage] would send what a program attaches
// to its own requests, and the headers of a delivery are not signed. labhealth.request_id links a
// span to the service without it.
//
// [propagation.TraceContext] is safe: it sends random IDs (traceparent), and the tracestate of the
// tracing system.
func WithPropagator(p propagation.TextMapPropagator) Option {
	return func(c *config) { c.propagator = p }
}

// config is what the options set.
type config struct {
	tracers    trace.TracerProvider
	meters     metric.MeterProvider
	propagator propagation.TextMapPropagator // nil for none
}

// scope is the name of the tracer and of the meter.
const scope = "github.com/labhealth/labhealth-go/labhealthotel"

// instruments creates what a [Client], [Handler] or [Worker] records with.
type instruments struct {
	trace.Tracer
	meter      metric.Meter
	propagator propagation.TextMapPropagator
}

func newInstruments(opts []Option) instruments {
	var c config
	for _, opt := range opts {
		if opt != nil {
			opt(&c)
		}
	}
	if c.tracers == nil {
		c.tracers = otel.GetTracerProvider()
	}
	if c.meters == nil {
		c.meters = otel.GetMeterProvider()
	}
	return instruments{
		c.tracers.Tracer(scope, trace.WithInstrumentationVersion(labhealth.Version), trace.WithSchemaURL(semconv.SchemaURL)),
		c.meters.Meter(scope, metric.WithInstrumentationVersion(labhealth.Version), metric.WithSchemaURL(semconv.SchemaURL)),
		c.propagator,
	}
}

// seconds returns a histogram of durations with the buckets of the semantic conventions and more.
func (i instruments) seconds(name, description string, more ...float64) metric.Float64Histogram {
	buckets := append([]float64{.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}, more...)
	h, err := i.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description),
		metric.WithExplicitBucketBoundaries(buckets...))
	if err != nil {
		otel.Handle(err) // h is usable and records nothing
	}
	return h
}

func (i instruments) counter(name, unit, description string) metric.Int64Counter {
	c, err := i.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
	if err != nil {
		otel.Handle(err)
	}
	return c
}

// The attributes that have no semantic convention.
const (
	outcomeKey   = attribute.Key("labhealth.outcome")
	requestIDKey = attribute.Key("labhealth.request_id")
	durationKey  = attribute.Key("labhealth.attempt.duration")
	waitKey      = attribute.Key("labhealth.attempt.wait")
	errorKey     = attribute.Key("labhealth.attempt.error")
)

// Client returns an option that records the calls of a client or of a management client.
func Client(opts ...Option) labhealth.Option {
	i := newInstruments(opts)
	c := &client{
		instruments: i,
		requests:    i.seconds("http.client.request.duration", "Duration of HTTP client requests."),
		calls:       i.seconds("labhealth.client.call.duration", "Duration of calls, with their attempts and the waits between them.", 30, 60, 120),
	}
	return labhealth.WithCallObserver(labhealth.CallObserver{Start: c.start, End: c.end})
}

type client struct {
	instruments
	requests, calls metric.Float64Histogram
	operations      sync.Map // string → *operation
	series          sync.Map // series → []metric.RecordOption
}

// operation is how the spans of an operation start.
type operation struct {
	name       string
	attributes []attribute.KeyValue
	options    []trace.SpanStartOption
}

// series identifies a series of the metrics, of which there are few.
type series struct {
	op, host   string
	statusCode int
	errorType  string
	outcome    string // empty for attempts
}

func (c *client) operation(op string) *operation {
	if o, ok := c.operations.Load(op); ok {
		return o.(*operation)
	}
	method, template, _ := strings.Cut(op, " ")
	o := &operation{name: op, attributes: []attribute.KeyValue{semconv.HTTPRequestMethodKey.String(method)}}
	if strings.HasPrefix(template, "/") {
		o.attributes = append(o.attributes, semconv.URLTemplate(template))
	} else { // of Do, whose path can contain IDs
		o.name = method
	}
	o.options = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(o.attributes...)}
	c.operations.Store(op, o)
	return o
}

func (c *client) start(ctx context.Context, op string, header http.Header) context.Context {
	o := c.operation(op)
	ctx, _ = c.Start(ctx, o.name, o.options...)
	if c.propagator != nil {
		c.propagator.Inject(ctx, propagation.HeaderCarrier(header))
	}
	return ctx
}

func (c *client) end(ctx context.Context, call labhealth.Call) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		endSpan(span, call)
	}
	if c.requests.Enabled(ctx) {
		for _, a := range call.Attempts {
			c.record(ctx, c.requests, a.Duration, series{call.Op, call.Host, a.StatusCode, errorType(a.StatusCode, a.Err), ""})
		}
	}
	if c.calls.Enabled(ctx) {
		c.record(ctx, c.calls, call.Duration,
			series{call.Op, call.Host, call.StatusCode, errorType(call.StatusCode, call.Err), outcomeOf(call)})
	}
}

func (c *client) record(ctx context.Context, h metric.Float64Histogram, d time.Duration, s series) {
	if !isUsual(s.statusCode) {
		s.statusCode = 0
	}
	options, ok := c.series.Load(s)
	if !ok {
		attributes := append(server(s.host), c.operation(s.op).attributes...)
		attributes = append(attributes, result(s.statusCode, s.errorType)...)
		if s.outcome != "" {
			attributes = append(attributes, outcomeKey.String(s.outcome))
		}
		options = []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attributes...))}
		c.series.Store(s, options)
	}
	h.Record(ctx, d.Seconds(), options.([]metric.RecordOption)...)
}

// outcomeOf returns the outcome of a call. A read that failed changed nothing: it has none.
func outcomeOf(c labhealth.Call) string {
	isRead := strings.HasPrefix(c.Op, "GET ") || strings.HasPrefix(c.Op, "HEAD ")
	if isRead && c.Outcome == labhealth.OutcomeUnknown {
		return "failed"
	}
	return c.Outcome.String()
}

func endSpan(span trace.Span, call labhealth.Call) {
	for _, a := range call.Attempts {
		span.AddEvent("labhealth.attempt", trace.WithTimestamp(a.Start), trace.WithAttributes(attempt(a)...))
	}
	attributes := append(server(call.Host), result(call.StatusCode, errorType(call.StatusCode, call.Err))...)
	attributes = append(attributes, outcomeKey.String(outcomeOf(call)))
	if n := len(call.Attempts); n > 1 {
		attributes = append(attributes, semconv.HTTPRequestResendCount(n-1))
	}
	if call.RequestID != "" {
		attributes = append(attributes, requestIDKey.String(call.RequestID))
	}
	span.SetAttributes(attributes...)
	if call.Err != nil {
		span.SetStatus(codes.Error, message(call.Err))
	}
	span.End()
}

// attempt returns the attributes of the event of an attempt.
func attempt(a labhealth.Attempt) []attribute.KeyValue {
	attributes := append(result(a.StatusCode, errorType(a.StatusCode, a.Err)),
		semconv.HTTPRequestResendCount(a.Number-1), durationKey.Float64(a.Duration.Seconds()))
	if a.Wait > 0 {
		attributes = append(attributes, waitKey.Float64(a.Wait.Seconds()))
	}
	if a.RequestID != "" {
		attributes = append(attributes, requestIDKey.String(a.RequestID))
	}
	if a.Err != nil {
		attributes = append(attributes, errorKey.String(a.Err.Error()))
	}
	return attributes
}

// server returns the attributes of the base URL, whose scheme is https unless its host is the
// loopback interface, where it has a port.
func server(hostPort string) []attribute.KeyValue {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		host, port = strings.Trim(hostPort, "[]"), "443"
	}
	n, _ := strconv.Atoi(port)
	host = strings.ToValidUTF8(host, "?") // otherwise it cannot be exported
	return append(make([]attribute.KeyValue, 0, 8), semconv.ServerAddress(host), semconv.ServerPort(n))
}

// result returns the attributes of the status code and of the kind of error.
func result(statusCode int, errorType string) []attribute.KeyValue {
	attributes := make([]attribute.KeyValue, 0, 8)
	if statusCode != 0 {
		attributes = append(attributes, semconv.HTTPResponseStatusCode(statusCode))
	}
	if errorType != "" {
		attributes = append(attributes, semconv.ErrorTypeKey.String(errorType))
	}
	return attributes
}

// errorType returns the error.type of an attempt or a call; empty if it succeeded.
func errorType(statusCode int, err error) string {
	failure := labhealth.FailureOf(err)
	var invalid *labhealth.ValidationError
	switch {
	case failure != "":
		return string(failure)
	case statusCode >= 400 && isUsual(statusCode):
		return strconv.Itoa(statusCode)
	case errors.As(err, &invalid):
		return "invalid_request"
	case err != nil, statusCode >= 400:
		return semconv.ErrorTypeOther.Value.AsString()
	}
	return ""
}

// isUsual reports whether a status code has a name or is one of proxies. Others are not in metrics,
// so that a server cannot create a thousand series.
func isUsual(statusCode int) bool {
	return http.StatusText(statusCode) != "" || statusCode == 499 || statusCode >= 520 && statusCode <= 530
}

// message returns the message of an error of this library. Others may have any message, and so may
// an error that wraps one.
func message(err error) string {
	var rejected *labhealth.APIError
	var redirect *labhealth.RedirectError
	var failed *labhealth.TransportError
	var decode *labhealth.DecodeError
	var invalid *labhealth.ValidationError
	switch {
	case errors.As(err, &failed): // which wraps the APIError of an earlier attempt
		return failed.Error()
	case errors.As(err, &redirect):
		return redirect.Error()
	case errors.As(err, &decode):
		return decode.Error()
	case errors.As(err, &rejected):
		return rejected.Error()
	case errors.As(err, &invalid):
		return invalid.Error()
	}
	return ""
}

// with returns attributes of a measurement.
func with(common []attribute.KeyValue, more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(common[:len(common):len(common)], more...)...))
}
