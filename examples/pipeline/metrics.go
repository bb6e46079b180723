package main

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/labhealth/labhealth-go/labhealthprom"
	"github.com/labhealth/labhealth-go/webhooks"
)

// metrics are those of one process, in addition to the ones of package labhealthprom. Labels have
// few values, none of which are IDs or data of events.
type metrics struct {
	registry *prometheus.Registry

	published      prometheus.Counter
	publishedAgain prometheus.Counter
	streamLost     prometheus.Counter
	redelivered    prometheus.Counter
	batches        prometheus.Histogram // events
	latency        prometheus.Histogram // seconds
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		published: prometheus.NewCounter(prometheus.CounterOpts{Name: "labhealth_published_total",
			Help: "Deliveries that the broker has stored."}),
		publishedAgain: prometheus.NewCounter(prometheus.CounterOpts{Name: "labhealth_published_duplicates_total",
			Help: "Deliveries that the broker had stored before."}),
		streamLost: prometheus.NewCounter(prometheus.CounterOpts{Name: "labhealth_stream_lost_total",
			Help: "How often the stream that this process has used was missing, or another one was in its place."}),
		redelivered: prometheus.NewCounter(prometheus.CounterOpts{Name: "labhealth_redelivered_total",
			Help: "Events that were delivered to a worker before."}),
		batches: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "labhealth_batch_events",
			Buckets: []float64{1, 2, 5, 10, 20, 50, 100, 200, 500}, Help: "Events that were applied in one transaction."}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "labhealth_latency_seconds",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 3600},
			Help:    "Time from the arrival of a delivery to its commit, by the clocks of the receiver and the worker."}),
	}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// registerMetrics registers the metrics of the components that this process has.
func (p *pipeline) registerMetrics() (err error) {
	m := p.metrics
	p.registerReady()
	if p.receives() && p.broker != nil {
		m.registry.MustRegister(m.published, m.publishedAgain)
	}
	if p.broker != nil {
		p.state = &brokerCollector{broker: p.broker}
		m.registry.MustRegister(p.state, m.streamLost)
	}
	if p.store == nil {
		return nil
	}
	if err := labhealthprom.Backlog(m.registry, p.store); err != nil || !p.works() {
		return err
	}
	m.registry.MustRegister(m.batches)
	if p.broker != nil {
		m.registry.MustRegister(m.redelivered, m.latency, gauge("labhealth_batch_limit_events",
			"Events that the next transaction takes at most. It shrinks when batches run out of time.",
			func() float64 { return float64(p.size.limit()) }))
	}
	if p.observe, err = labhealthprom.Worker(m.registry); err != nil || len(p.react) == 0 {
		return err
	}
	p.observeReactions, err = labhealthprom.Reactor(m.registry)
	return err
}

// registerReady registers what /readyz reports, which says more than whether servers respond.
func (p *pipeline) registerReady() {
	for component, find := range map[string]func(context.Context) string{"receive": p.cannotReceive, "work": p.cannotWork} {
		if component == "receive" && !p.receives() || component == "work" && !p.works() {
			continue
		}
		p.metrics.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "labhealth_ready",
			Help: "1 if /readyz of this component is 200.", ConstLabels: prometheus.Labels{"component": component}},
			func() float64 {
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
				defer cancel()
				if find(ctx) != "" {
					return 0
				}
				return 1
			}))
	}
}

// registerHandler registers the memory of a handler.
func (m *metrics) registerHandler(h *webhooks.Handler) {
	m.registry.MustRegister(gauge("labhealth_webhook_in_flight_bytes", "Memory of the bodies that are being received or stored.",
		func() float64 { return float64(h.InFlightBytes()) }))
}

func gauge(name, help string, value func() float64) prometheus.GaugeFunc {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// value returns the sum of the counters of a metric that have a value of a label.
func (m *metrics) value(name, label string) (sum float64) {
	families, _ := m.registry.Gather()
	for _, f := range families {
		for _, metric := range f.Metric {
			for _, l := range metric.Label {
				if f.GetName() == name && l.GetValue() == label {
					sum += metric.GetCounter().GetValue()
				}
			}
		}
	}
	return sum
}

// addChanges adds changes to a sum.
func addChanges(sum *webhooks.Changes, c webhooks.Changes) {
	sum.Added += c.Added
	sum.Updated += c.Updated
	sum.Same += c.Same
	sum.Older += c.Older
	sum.Repeated += c.Repeated
	sum.Keyless += c.Keyless
}

// brokerCollector reads the state of the stream and of its consumers when it is scraped, at most
// every two seconds.
type brokerCollector struct {
	broker *broker

	mu        sync.Mutex
	read      time.Time
	stream    *jetstream.StreamInfo // nil if the broker did not respond
	storage   *storage              // nil if it is not known
	consumers []*jetstream.ConsumerInfo
}

var (
	brokerUp        = prometheus.NewDesc("labhealth_broker_up", "Whether the broker responded and has the stream.", nil, nil)
	streamEvents    = prometheus.NewDesc("labhealth_stream_events", "Events in the stream, which are not applied yet.", nil, nil)
	streamBytes     = prometheus.NewDesc("labhealth_stream_bytes", "Size of the stream.", nil, nil)
	streamLimit     = prometheus.NewDesc("labhealth_stream_limit_bytes", "Size at which the stream rejects new events; +Inf if it has no limit.", nil, nil)
	storageBytes    = prometheus.NewDesc("labhealth_broker_storage_bytes", "Size of all streams of the account or, with -nats-monitor, of a server: of the one that is fullest.", nil, nil)
	storageLimit    = prometheus.NewDesc("labhealth_broker_storage_limit_bytes", "Size at which this account or server rejects new events; +Inf if no limit is known.", nil, nil)
	streamOldest    = prometheus.NewDesc("labhealth_stream_oldest_age_seconds", "Time since the oldest event in the stream was stored; 0 if there is none.", nil, nil)
	consumerWaiting = prometheus.NewDesc("labhealth_consumer_waiting_events", "Events that no worker has taken yet.", []string{"consumer"}, nil)
	consumerFlight  = prometheus.NewDesc("labhealth_consumer_in_flight_events", "Events that workers have taken and not acknowledged, or that wait for another attempt.", []string{"consumer"}, nil)
)

// Describe implements [prometheus.Collector].
func (c *brokerCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{brokerUp, streamEvents, streamBytes, streamLimit, storageBytes, storageLimit, streamOldest, consumerWaiting, consumerFlight} {
		descs <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *brokerCollector) Collect(metrics chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.read) > 2*time.Second {
		c.refresh()
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	if c.stream == nil {
		gauge(brokerUp, 0)
		return
	}
	gauge(brokerUp, 1)
	state := c.stream.State
	gauge(streamEvents, float64(state.Msgs))
	gauge(streamBytes, float64(state.Bytes))
	gauge(streamLimit, limitOf(c.stream.Config.MaxBytes))
	if c.storage != nil {
		gauge(storageBytes, float64(c.storage.used))
		gauge(storageLimit, limitOf(c.storage.limit))
	}
	age := 0.0
	if state.Msgs > 0 {
		age = max(0, time.Since(state.FirstTime).Seconds())
	}
	gauge(streamOldest, age)
	for _, info := range c.consumers {
		gauge(consumerWaiting, float64(info.NumPending), info.Name)
		gauge(consumerFlight, float64(info.NumAckPending), info.Name)
	}
}

// counts returns the number of events that wait or are in flight, and the number of those that have
// left the stream. It is 0 if the broker does not respond.
func (c *brokerCollector) counts() (waiting, removed uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.read) > 2*time.Second {
		c.refresh()
	}
	if c.stream == nil {
		return 0, 0
	}
	for _, info := range c.consumers {
		waiting += info.NumPending + uint64(info.NumAckPending)
	}
	return waiting, c.stream.State.LastSeq - c.stream.State.Msgs
}

// refresh asks the broker, which has a second to respond.
func (c *brokerCollector) refresh() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	c.stream, c.storage, c.consumers, c.read = nil, nil, nil, time.Now()
	stream, err := c.broker.find(ctx)
	if err != nil {
		return
	}
	list := stream.ListConsumers(ctx)
	for info := range list.Info() {
		c.consumers = append(c.consumers, info)
	}
	if list.Err() != nil {
		return
	}
	c.stream = stream.CachedInfo()
	if s, err := c.broker.storage(ctx, c.stream.Config.Replicas); err == nil {
		c.storage = &s
	}
}
