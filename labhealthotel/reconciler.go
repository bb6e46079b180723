package labhealthotel

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

const (
	passKey = attribute.Key("labhealth.reconciler.pass")
	kindKey = attribute.Key("labhealth.reconciler.kind")
)

// Reconciler returns the observer of a [sqlstore.Reconciler].
func Reconciler(opts ...Option) func(context.Context, sqlstore.Reconciled, error) {
	i := newInstruments(opts)
	r := reconciler{
		requests:    i.counter("labhealth.reconciler.requests", "{request}", "Requests to the service, including repeated attempts."),
		read:        i.counter("labhealth.reconciler.read", "{item}", "Data that was read."),
		differences: i.counter("labhealth.reconciler.differences", "{item}", "Data that the store did not have."),
		missing:     i.counter("labhealth.reconciler.missing", "{item}", "Stored orders and users that the service does not have anymore."),
		failed:      i.counter("labhealth.reconciler.failed", "{item}", "Orders, users and pages that could not be read."),
		errors:      i.counter("labhealth.reconciler.errors", "{error}", "Steps that failed."),
	}
	complete, err := i.meter.Float64Gauge("labhealth.reconciler.last_complete", metric.WithUnit("s"),
		metric.WithDescription("When a pass was complete last, in seconds since 1970."))
	if err != nil {
		otel.Handle(err) // it is usable and records nothing
	}
	r.complete = complete
	return r.observe
}

type reconciler struct {
	requests, read, differences, missing, failed, errors metric.Int64Counter
	complete                                             metric.Float64Gauge
}

func (r reconciler) observe(ctx context.Context, found sqlstore.Reconciled, err error) {
	pass := passKey.String(found.Pass)
	add := func(counter metric.Int64Counter, n int, attributes ...attribute.KeyValue) {
		if n > 0 {
			counter.Add(ctx, int64(n), metric.WithAttributes(attributes...))
		}
	}
	add(r.requests, found.Requests, pass)
	addCounts := func(counter metric.Int64Counter, c sqlstore.ReconciledCounts) {
		add(counter, c.Orders, pass, kindKey.String("orders"))
		add(counter, c.Transitions, pass, kindKey.String("transitions"))
		add(counter, c.Results, pass, kindKey.String("results"))
		add(counter, c.Summaries, pass, kindKey.String("summaries"))
		add(counter, c.Samples, pass, kindKey.String("samples"))
	}
	addCounts(r.read, found.Read)
	addCounts(r.differences, found.Differences)
	add(r.missing, found.MissingOrders, kindKey.String("orders"))
	add(r.missing, found.MissingUsers, kindKey.String("users"))
	add(r.failed, found.Failed, pass)
	if err != nil {
		r.errors.Add(ctx, 1, with(reconcileFailure(err), pass))
	}
	if found.Complete {
		r.complete.Record(ctx, float64(time.Now().UnixNano())/1e9, metric.WithAttributes(pass))
	}
}

// reconcileFailure returns the error.type of a step, of the service or of the database.
func reconcileFailure(err error) []attribute.KeyValue {
	if failed, ok := errors.AsType[*sqlstore.Error](err); ok {
		return stepFailure(failed)
	}
	status := 0
	if api, ok := errors.AsType[*labhealth.APIError](err); ok {
		status = api.StatusCode
	}
	return []attribute.KeyValue{semconv.ErrorTypeKey.String(errorType(status, err))}
}
