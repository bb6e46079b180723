package labhealthprom

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// Reconciler returns the observer of a [sqlstore.Reconciler], and an error if the metrics cannot be
// registered.
func Reconciler(r prometheus.Registerer) (func(context.Context, sqlstore.Reconciled, error), error) {
	registry := newRegistry(r)
	requests := registry.counter("labhealth_reconciler_requests_total", "Requests to the service, including repeated attempts.", "pass")
	read := registry.counter("labhealth_reconciler_read_total", "Data that was read.", "pass", "kind")
	differences := registry.counter("labhealth_reconciler_differences_total", "Data that the store did not have.", "pass", "kind")
	missing := registry.counter("labhealth_reconciler_missing_total", "Stored orders and users that the service does not have anymore.", "kind")
	failures := registry.counter("labhealth_reconciler_failures_total", "Orders and users that could not be read, and steps that failed.", "pass", "error")
	complete := register(registry, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "labhealth_reconciler_last_complete_timestamp_seconds",
		Help: "When a pass was complete last, in seconds since 1970."}, []string{"pass"}))
	if registry.err != nil {
		return nil, registry.err
	}
	return func(_ context.Context, found sqlstore.Reconciled, err error) {
		requests.WithLabelValues(found.Pass).Add(float64(found.Requests))
		count(read, found.Pass, found.Read)
		count(differences, found.Pass, found.Differences)
		missing.WithLabelValues("orders").Add(float64(found.MissingOrders))
		missing.WithLabelValues("users").Add(float64(found.MissingUsers))
		failures.WithLabelValues(found.Pass, "element").Add(float64(found.Failed))
		if err != nil {
			failures.WithLabelValues(found.Pass, reconcileFailure(err)).Inc()
		}
		if found.Complete {
			complete.WithLabelValues(found.Pass).SetToCurrentTime()
		}
	}, nil
}

func count(counter *prometheus.CounterVec, pass string, c sqlstore.ReconciledCounts) {
	for kind, n := range map[string]int{"orders": c.Orders, "transitions": c.Transitions, "results": c.Results,
		"summaries": c.Summaries, "samples": c.Samples} {
		counter.WithLabelValues(pass, kind).Add(float64(n))
	}
}

// reconcileFailure returns the kind of error of a step, of the service or of the database.
func reconcileFailure(err error) string {
	if api, ok := errors.AsType[*labhealth.APIError](err); ok {
		return kindOf(api.StatusCode, err)
	}
	if failed, ok := errors.AsType[*sqlstore.Error](err); ok {
		return stepFailure(failed)
	}
	return kindOf(0, err)
}
