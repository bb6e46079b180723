package main

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/labhealth/labhealth-go/webhooks"
)

// metrics are counted by a process for itself. Labels are from short lists: no ids, and nothing of what the events say.
type metrics struct {
	registry *prometheus.Registry

	deliveries     *prometheus.CounterVec // status, result
	answered       prometheus.Histogram   // seconds
	published      prometheus.Counter
	publishedAgain prometheus.Counter

	applied     prometheus.Counter
	changes     *prometheus.CounterVec // change
	deadLetters *prometheus.CounterVec // reason
	redelivered prometheus.Counter
	failed      prometheus.Counter
	batches     prometheus.Histogram // events
	applying    prometheus.Histogram // seconds
	latency     prometheus.Histogram // seconds
	pending     prometheus.Gauge
}

func newMetrics() *metrics {
	seconds := []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "labhealth_deliveries_total",
			Help: "Deliveries of the service, by how they were answered."}, []string{"status", "result"}),
		answered: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "labhealth_answer_seconds", Buckets: seconds,
			Help: "Time from the arrival of a delivery to its answer."}),
		published: prometheus.NewCounter(prometheus.CounterOpts{Name: "labhealth_published_total",
			Help: "Deliveries that the broker has stored."}),
		publishedAgain: prometheus.NewCounter(prometheus.CounterOpts{Name: "labhealth_published_duplicates_total",
			Help: "Deliveries that the broker had stored before."}),
		applied: prometheus.NewCounter(prometheus.CounterOpts{Name: "labhealth_applied_total",
			Help: "Events that were applied to the database and committed."}),
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "labhealth_changes_total",
			Help: "Samples and summaries that were applied, by what came of them."}, []string{"change"}),
		deadLetters: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "labhealth_dead_letters_total",
			Help: "Deliveries that were put aside."}, []string{"reason"}),
		redelivered: prometheus.NewCounter(prometheus.CounterOpts{Name: "labhealth_redelivered_total",
			Help: "Events that a worker got which some worker had got before."}),
		failed: prometheus.NewCounter(prometheus.CounterOpts{Name: "labhealth_failed_batches_total",
			Help: "Batches that could not be applied and were given back."}),
		batches: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "labhealth_batch_events", Buckets: []float64{1, 2, 5, 10, 20, 50, 100, 200, 500},
			Help: "Events that were applied in one transaction."}),
		applying: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "labhealth_apply_seconds", Buckets: seconds,
			Help: "Time to apply a batch and commit it."}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "labhealth_latency_seconds", Buckets: append(seconds, 30, 60, 300, 3600),
			Help: "Time from the arrival of a delivery to its commit, by the clocks of the receiver and the worker."}),
		pending: prometheus.NewGauge(prometheus.GaugeOpts{Name: "labhealth_pending_events",
			Help: "Events that wait for a worker, as of the last one that this worker got."}),
	}
	m.registry.MustRegister(m.deliveries, m.answered, m.published, m.publishedAgain, m.applied, m.changes, m.deadLetters, m.redelivered,
		m.failed, m.batches, m.applying, m.latency, m.pending,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// observe counts answers of the handler.
func (m *metrics) observe(_ context.Context, a webhooks.DeliveryResult) {
	if a.Late {
		return
	}
	m.deliveries.WithLabelValues(strconv.Itoa(a.StatusCode), string(a.Reason)).Inc()
	m.answered.Observe(a.Duration.Seconds())
}

// count counts an event that was applied.
func (m *metrics) count(received time.Time, c webhooks.Changes) {
	m.applied.Inc()
	m.latency.Observe(time.Since(received).Seconds())
	m.countChanges(c)
}

func (m *metrics) countChanges(c webhooks.Changes) {
	for _, change := range []struct {
		name string
		n    int
	}{
		{"added", c.Added}, {"updated", c.Updated}, {"same", c.Same}, {"older", c.Older}, {"repeated", c.Repeated}, {"keyless", c.Keyless},
	} {
		m.changes.WithLabelValues(change.name).Add(float64(change.n))
	}
}

// value returns a counter, the sum over its labels.
func (m *metrics) value(name string) (sum float64) {
	families, _ := m.registry.Gather()
	for _, f := range families {
		for _, metric := range f.Metric {
			if f.GetName() == name {
				sum += metric.GetCounter().GetValue()
			}
		}
	}
	return sum
}
