package labhealthprom

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// Limits of the query of [Backlog].
const (
	backlogAge  = 5 * time.Second // how long a result is used
	backlogTime = 5 * time.Second // of the query
	scrapeTime  = time.Second     // how long a scrape waits for the query
)

// Backlog registers metrics of what s has not processed. They are read when they are scraped, at
// most every 5 s, with one query at a time that takes at most 5 s. A scrape waits for it for a
// second. If there is no result that is younger than 10 s, only labhealth_store_up is reported,
// with the value 0. Backlog returns an error if the metrics cannot be registered, for example
// because those of another store are: see [prometheus.WrapRegistererWith].
func Backlog(r prometheus.Registerer, s *sqlstore.Store) error {
	registry := newRegistry(r)
	if registry.err != nil {
		return registry.err
	}
	if err := r.Register(&backlogCollector{read: s.Backlog}); err != nil {
		return fmt.Errorf("labhealthprom: %w", err)
	}
	return nil
}

var (
	storeUp = prometheus.NewDesc("labhealth_store_up",
		"Whether the database responded to the query of the backlog.", nil, nil)
	inboxDeliveries = prometheus.NewDesc("labhealth_inbox_deliveries",
		"Deliveries in the inbox: waiting, or delayed after a failure.", []string{"state"}, nil)
	inboxOldest = prometheus.NewDesc("labhealth_inbox_oldest_age_seconds",
		"Time since the oldest delivery in the inbox was received; 0 if there is none.", nil, nil)
	deadLetters = prometheus.NewDesc("labhealth_dead_letters",
		"Deliveries that could not be processed, until they are requeued or deleted.", nil, nil)
	reactions = prometheus.NewDesc("labhealth_reactions",
		"Reactions that wait to be called, for the first time or again, or that were given up.", []string{"state"}, nil)
	reactionsOldest = prometheus.NewDesc("labhealth_reactions_oldest_age_seconds",
		"Time since the first reaction that waits was queued; 0 if there is none.", nil, nil)
)

// backlogCollector collects a Backlog.
type backlogCollector struct {
	read func(context.Context) (sqlstore.Backlog, error)

	mu      sync.Mutex
	running chan struct{} // closed at the end of the current query; nil if there is none
	started time.Time     // of the last query
	result  sqlstore.Backlog
	asOf    time.Time // start of the query that returned the result; zero if the last one failed
}

// Describe implements [prometheus.Collector].
func (c *backlogCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{storeUp, inboxDeliveries, inboxOldest, deadLetters, reactions, reactionsOldest} {
		descs <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *backlogCollector) Collect(metrics chan<- prometheus.Metric) {
	b, ok := c.latest()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	if !ok {
		gauge(storeUp, 0)
		return
	}
	gauge(storeUp, 1)
	gauge(inboxDeliveries, float64(b.Waiting), "waiting")
	gauge(inboxDeliveries, float64(b.Delayed), "delayed")
	gauge(inboxOldest, ageOf(b.Oldest))
	gauge(deadLetters, float64(b.DeadLetters))
	gauge(reactions, float64(b.Reactions), "waiting")
	gauge(reactions, float64(b.FailedReactions), "failed")
	gauge(reactionsOldest, ageOf(b.OldestReaction))
}

// ageOf returns the seconds since a time; 0 for none.
func ageOf(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return max(0, time.Since(t).Seconds())
}

// latest returns the latest result, and whether there is a recent one.
func (c *backlogCollector) latest() (sqlstore.Backlog, bool) {
	c.mu.Lock()
	if c.running == nil && time.Since(c.started) > backlogAge {
		c.running, c.started = make(chan struct{}), time.Now()
		go c.query(c.started, c.running)
	}
	if running := c.running; running != nil {
		c.mu.Unlock()
		timer := time.NewTimer(scrapeTime)
		select {
		case <-running:
		case <-timer.C:
		}
		timer.Stop()
		c.mu.Lock()
	}
	defer c.mu.Unlock()
	return c.result, !c.asOf.IsZero() && time.Since(c.asOf) < backlogAge+backlogTime
}

func (c *backlogCollector) query(started time.Time, done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), backlogTime)
	defer cancel()
	b, err := c.read(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.result, c.asOf = b, started
	if err != nil {
		c.asOf = time.Time{}
	}
	c.running = nil
	close(done)
}
