package labhealthprom

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// gathered returns the gauges of a registry, by name and label.
func gathered(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			name := f.GetName()
			for _, l := range m.Label {
				name += " " + l.GetValue()
			}
			values[name] = m.Gauge.GetValue()
		}
	}
	return values
}

func expect(t *testing.T, r *prometheus.Registry, want map[string]float64) {
	t.Helper()
	got := gathered(t, r)
	if len(got) != len(want) {
		t.Errorf("%v, want %v", got, want)
	}
	for name, v := range want {
		if g, ok := got[name]; !ok || g != v {
			t.Errorf("%s: %v, want %v", name, g, v)
		}
	}
}

func TestBacklogValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var err error
		queries := 0
		start := time.Now()
		b := sqlstore.Backlog{Waiting: 3, Delayed: 2, Oldest: start.Add(-time.Minute), DeadLetters: 1, Reactions: 4, FailedReactions: 5, OldestReaction: start.Add(-time.Second)}
		r := prometheus.NewRegistry()
		r.MustRegister(&backlogCollector{read: func(context.Context) (sqlstore.Backlog, error) {
			queries++
			return b, err
		}})
		expect(t, r, map[string]float64{"labhealth_store_up": 1, "labhealth_inbox_deliveries waiting": 3, "labhealth_inbox_deliveries delayed": 2,
			"labhealth_inbox_oldest_age_seconds": 60, "labhealth_dead_letters": 1,
			"labhealth_reactions waiting": 4, "labhealth_reactions failed": 5, "labhealth_reactions_oldest_age_seconds": 1})
		b = sqlstore.Backlog{} // of SQLite, when all is done
		for range 100 {
			time.Sleep(10 * time.Millisecond)
			gathered(t, r)
		}
		if queries != 1 {
			t.Errorf("%d queries in a second", queries)
		}
		time.Sleep(6 * time.Second)
		expect(t, r, map[string]float64{"labhealth_store_up": 1, "labhealth_inbox_deliveries waiting": 0, "labhealth_inbox_deliveries delayed": 0,
			"labhealth_inbox_oldest_age_seconds": 0, "labhealth_dead_letters": 0,
			"labhealth_reactions waiting": 0, "labhealth_reactions failed": 0, "labhealth_reactions_oldest_age_seconds": 0})
		err = errors.New("canary")
		time.Sleep(6 * time.Second)
		expect(t, r, map[string]float64{"labhealth_store_up": 0})
	})
}

// A query that hangs delays a scrape by a second, ends by itself, and is the only one.
func TestBacklogHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running, most := 0, 0
		r := prometheus.NewRegistry()
		r.MustRegister(&backlogCollector{read: func(ctx context.Context) (sqlstore.Backlog, error) {
			running++
			most = max(most, running)
			<-ctx.Done()
			running--
			return sqlstore.Backlog{}, ctx.Err()
		}})
		for range 20 {
			start := time.Now()
			expect(t, r, map[string]float64{"labhealth_store_up": 0})
			if took := time.Since(start); took > time.Second {
				t.Errorf("a scrape took %s", took)
			}
		}
		time.Sleep(5 * time.Second)
		if running != 0 || most != 1 {
			t.Errorf("%d queries run, there were up to %d at a time", running, most)
		}
	})
}

// A query that ignores its context delays a scrape by a second too.
func TestBacklogIgnoresContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := prometheus.NewRegistry()
		hang := make(chan struct{})
		r.MustRegister(&backlogCollector{read: func(context.Context) (sqlstore.Backlog, error) {
			<-hang
			return sqlstore.Backlog{}, nil
		}})
		for range 20 {
			expect(t, r, map[string]float64{"labhealth_store_up": 0})
		}
		close(hang)
		synctest.Wait()
	})
}
