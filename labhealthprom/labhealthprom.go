// Package labhealthprom measures the calls, the webhook handler, the worker, the reactor, the
// reconciler and the store of labhealth-go with Prometheus:
//
//	client, err := labhealth.NewClient(key, labhealth.WithBaseURL(url), labhealthprom.Client(prometheus.DefaultRegisterer))
//	handler, err := webhooks.NewHandler(verifier, apply, labhealthprom.Handler(prometheus.DefaultRegisterer))
//	worker.Observe, err = labhealthprom.Worker(prometheus.DefaultRegisterer)
//	reactor.Observe, err = labhealthprom.Reactor(prometheus.DefaultRegisterer)
//	reconciler.Observe, err = labhealthprom.Reconciler(prometheus.DefaultRegisterer)
//	err = labhealthprom.Backlog(prometheus.DefaultRegisterer, store)
//	http.Handle("/metrics", promhttp.Handler())
//
// Several clients, handlers and workers can share a registerer, and then share the metrics.
// [prometheus.WrapRegistererWith] adds a label that distinguishes them. Calls by package bulk,
// iterators and management clients count as calls.
//
// # Metrics
//
// Durations are histograms in seconds:
//
//	labhealth_client_request_duration_seconds   each attempt
//	    host, operation, code, error
//	labhealth_client_call_duration_seconds      each call with its waits
//	    host, operation, outcome, error
//	labhealth_webhook_request_duration_seconds  each delivery
//	    code
//	labhealth_webhook_deliveries_total          deliveries
//	    reason, event_type, duplicate, late
//	labhealth_worker_step_duration_seconds      each step of a worker
//	    error
//	labhealth_worker_deliveries_total           deliveries that a worker took
//	    result
//	labhealth_worker_changes_total              changes of the store
//	    change
//	labhealth_worker_last_success_timestamp_seconds  when deliveries were applied last; 0 before
//	labhealth_reactor_call_duration_seconds     each call of the function
//	    kind, result
//	labhealth_reactor_errors_total              errors of the database
//	    error
//	labhealth_reconciler_requests_total              requests to the service, with repeated attempts
//	    pass
//	labhealth_reconciler_read_total                  what was read
//	    pass, kind
//	labhealth_reconciler_differences_total           what the store did not have
//	    pass, kind
//	labhealth_reconciler_missing_total               orders and users that the service does not have anymore
//	    kind
//	labhealth_reconciler_failures_total              orders and users that could not be read, and steps that failed
//	    pass, error
//	labhealth_reconciler_last_complete_timestamp_seconds  when a pass was complete last
//	    pass
//	labhealth_store_up                          1 if the database responded, 0 if not; see Backlog for those that follow
//	labhealth_inbox_deliveries
//	    state
//	labhealth_inbox_oldest_age_seconds
//	labhealth_dead_letters
//	labhealth_reactions
//	    state
//	labhealth_reactions_oldest_age_seconds
//
// The labels have few values. They hold no IDs, no received texts and no patient data:
//
//	operation   such as "POST /v3/order/import", or "GET (Do)"
//	code        the HTTP status code, "other" for an unusual one; empty without a response
//	outcome     "applied", "rejected", "not sent" or "unknown"; for a read, "failed" instead of "unknown"
//	error       a labhealth.Failure, a status code, "invalid_request" or "other"; for the worker and the reactor an
//	            SQLSTATE, "canceled", "deadline" or "other"; for the reconciler any of these, or "element" for an
//	            order or a user that could not be read; empty without an error
//	reason      see webhooks.Reason
//	event_type  a constant of webhooks.EventType, or "other"; empty if no event was parsed
//	late        "true" if your function returned after the response: the delivery is counted again
//	result      "applied", "delayed" or "dead"; for the reactor a sqlstore.ReactionResult
//	change      "added", "updated", …, see webhooks.Changes
//	pass        see sqlstore.Reconciled; empty if the lease failed
//	kind        for the reactor a sqlstore.ReactionKind; for the reconciler "orders", "transitions", "results",
//	            "summaries", "samples" or "users"
//	state       "waiting" or "delayed", and of reactions "waiting" or "failed", see sqlstore.Backlog
package labhealthprom

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// registry registers metrics, and keeps the first error.
type registry struct {
	prometheus.Registerer
	err error
}

func newRegistry(r prometheus.Registerer) *registry {
	if r == nil {
		return &registry{err: errors.New("labhealthprom: a Registerer is missing, such as prometheus.DefaultRegisterer")}
	}
	return &registry{Registerer: r}
}

// register returns c, or the collector that was registered before with the same name and labels.
func register[C prometheus.Collector](r *registry, c C) C {
	if r.err != nil {
		return c
	}
	err := r.Register(c)
	var registered prometheus.AlreadyRegisteredError
	if errors.As(err, &registered) {
		if same, ok := registered.ExistingCollector.(C); ok {
			return same
		}
	}
	if err != nil {
		r.err = fmt.Errorf("labhealthprom: %w", err)
	}
	return c
}

func (r *registry) counter(name, help string, labels ...string) *prometheus.CounterVec {
	return register(r, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
}

// seconds returns a histogram of durations. The buckets are those of OpenTelemetry and more.
func (r *registry) seconds(name, help string, more []float64, labels ...string) *prometheus.HistogramVec {
	buckets := append([]float64{.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}, more...)
	return register(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels))
}

// slow are the buckets of durations that include waits.
var slow = []float64{30, 60, 120}

// Client returns an option that measures the calls of a client or of a management client.
// NewClient returns an error if the metrics cannot be registered.
func Client(r prometheus.Registerer) labhealth.Option {
	registry := newRegistry(r)
	requests := registry.seconds("labhealth_client_request_duration_seconds", "Duration of requests, by attempt.", nil,
		"host", "operation", "code", "error")
	calls := registry.seconds("labhealth_client_call_duration_seconds", "Duration of calls, with their attempts and the waits between them.", slow,
		"host", "operation", "outcome", "error")
	return withError(registry.err, labhealth.WithCallObserver(labhealth.CallObserver{End: func(_ context.Context, c labhealth.Call) {
		host := strings.ToValidUTF8(c.Host, "?") // otherwise it cannot be a label
		for _, a := range c.Attempts {
			requests.WithLabelValues(host, c.Op, codeOf(a.StatusCode), kindOf(a.StatusCode, a.Err)).Observe(a.Duration.Seconds())
		}
		calls.WithLabelValues(host, c.Op, outcomeOf(c), kindOf(c.StatusCode, c.Err)).Observe(c.Duration.Seconds())
	}}))
}

// outcomeOf returns the outcome of a call. A read that failed changed nothing: it has none.
func outcomeOf(c labhealth.Call) string {
	isRead := strings.HasPrefix(c.Op, "GET ") || strings.HasPrefix(c.Op, "HEAD ")
	if isRead && c.Outcome == labhealth.OutcomeUnknown {
		return "failed"
	}
	return c.Outcome.String()
}

// withError returns option, or one that returns err. The setting of an option of package labhealth
// has no exported name, but can be inferred.
func withError[C any](err error, option func(C) error) func(C) error {
	if err == nil {
		return option
	}
	return func(C) error { return err }
}

// codeOf returns the label of a status code, which is empty without a response. Those that nobody
// uses share one, so that a server cannot create a thousand series.
func codeOf(statusCode int) string {
	switch {
	case statusCode == 0:
		return ""
	case http.StatusText(statusCode) != "", statusCode == 499, statusCode >= 520 && statusCode <= 530: // of proxies
		return strconv.Itoa(statusCode)
	}
	return "other"
}

// kindOf returns the kind of error of an attempt or a call; empty if it succeeded.
func kindOf(statusCode int, err error) string {
	failure := labhealth.FailureOf(err)
	var invalid *labhealth.ValidationError
	switch {
	case failure != "":
		return string(failure)
	case statusCode >= 400:
		return codeOf(statusCode)
	case errors.As(err, &invalid):
		return "invalid_request"
	case err != nil:
		return "other"
	}
	return ""
}

// Handler returns an option that measures the deliveries of a handler. NewHandler returns an error
// if the metrics cannot be registered.
func Handler(r prometheus.Registerer) webhooks.HandlerOption {
	registry := newRegistry(r)
	requests := registry.seconds("labhealth_webhook_request_duration_seconds", "Time from the arrival of a delivery to its response.", nil, "code")
	deliveries := registry.counter("labhealth_webhook_deliveries_total", "Deliveries of events.", "reason", "event_type", "duplicate", "late")
	known := webhooks.EventTypes()
	slices.Sort(known)
	return withError(registry.err, webhooks.WithObserver(func(_ context.Context, d webhooks.DeliveryResult) {
		kind := string(d.Type)
		if _, ok := slices.BinarySearch(known, d.Type); !ok && kind != "" {
			kind = "other"
		}
		deliveries.WithLabelValues(string(d.Reason), kind, strconv.FormatBool(d.Duplicate), strconv.FormatBool(d.Late)).Inc()
		if !d.Late {
			requests.WithLabelValues(strconv.Itoa(d.StatusCode)).Observe(d.Duration.Seconds())
		}
	}))
}

// startKey is the context key of the time.Time at which a step started.
type startKey struct{}

// Worker returns the observer of a [sqlstore.Worker], and an error if the metrics cannot be
// registered.
func Worker(r prometheus.Registerer) (sqlstore.StepObserver, error) {
	registry := newRegistry(r)
	steps := registry.seconds("labhealth_worker_step_duration_seconds", "Duration of steps that took deliveries from the inbox or failed.", slow, "error")
	deliveries := registry.counter("labhealth_worker_deliveries_total", "Deliveries that steps processed.", "result")
	changes := registry.counter("labhealth_worker_changes_total", "Summaries and samples that steps processed.", "change")
	success := register(registry, prometheus.NewGauge(prometheus.GaugeOpts{Name: "labhealth_worker_last_success_timestamp_seconds",
		Help: "When a step applied deliveries last, in seconds since 1970; 0 if none has."}))
	if registry.err != nil {
		return sqlstore.StepObserver{}, registry.err
	}
	start := func(ctx context.Context) context.Context { return context.WithValue(ctx, startKey{}, time.Now()) }
	end := func(ctx context.Context, s sqlstore.Step, err error) {
		began, _ := ctx.Value(startKey{}).(time.Time)
		steps.WithLabelValues(stepFailure(err)).Observe(time.Since(began).Seconds())
		if s.Applied > 0 {
			success.SetToCurrentTime()
		}
		for _, c := range []struct {
			counter *prometheus.CounterVec
			label   string
			n       int
		}{
			{deliveries, "applied", s.Applied}, {deliveries, "delayed", s.Delayed}, {deliveries, "dead", s.Dead},
			{changes, "added", s.Changes.Added}, {changes, "updated", s.Changes.Updated}, {changes, "same", s.Changes.Same},
			{changes, "older", s.Changes.Older}, {changes, "repeated", s.Changes.Repeated}, {changes, "keyless", s.Changes.Keyless},
		} {
			c.counter.WithLabelValues(c.label).Add(float64(c.n))
		}
	}
	return sqlstore.StepObserver{Start: start, End: end}, nil
}

// Reactor returns the observer of a [sqlstore.Reactor], and an error if the metrics cannot be
// registered.
func Reactor(r prometheus.Registerer) (sqlstore.ReactionObserver, error) {
	registry := newRegistry(r)
	calls := registry.seconds("labhealth_reactor_call_duration_seconds", "Duration of calls of the function of a reactor.", slow, "kind", "result")
	failures := registry.counter("labhealth_reactor_errors_total", "Errors of the database in a reactor.", "error")
	if registry.err != nil {
		return sqlstore.ReactionObserver{}, registry.err
	}
	return sqlstore.ReactionObserver{
		Start: func(ctx context.Context, _ sqlstore.Reaction) context.Context {
			return context.WithValue(ctx, startKey{}, time.Now())
		},
		End: func(ctx context.Context, r sqlstore.Reaction, result sqlstore.ReactionResult, _ error) {
			began, _ := ctx.Value(startKey{}).(time.Time)
			calls.WithLabelValues(string(r.Kind), string(result)).Observe(time.Since(began).Seconds())
		},
		Fail: func(_ context.Context, err error) { failures.WithLabelValues(stepFailure(err)).Inc() },
	}, nil
}

// stepFailure returns the kind of error of a step; empty if it succeeded.
func stepFailure(err error) string {
	var failed *sqlstore.Error
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline"
	case errors.As(err, &failed) && failed.SQLState != "":
		return failed.SQLState
	}
	return "other"
}
