package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
)

// Reactions whose URL fails are given up, and requeued by an operator. Then there is one for each
// transition, with the same ID as before. Deliveries do not wait for them.
func TestReactions(t *testing.T) {
	for name, scaled := range map[string]bool{"SQLite": false, "PostgreSQL and NATS": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, book, reacted := newPlace(t, scaled), newOrderBook(t, 10), newReactions(t)
			var fails atomic.Bool
			fails.Store(true)
			url := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if fails.Load() {
					http.Redirect(w, r, reacted.server.URL, http.StatusFound)
					return
				}
				reacted.receive(w, r)
			}))
			t.Cleanup(url.Close)
			p := ready(t, at.args("all", "-react", "transition", "-react-url", url.URL, "-react-attempts", "1")...)
			h := watch(t, p)
			book.deliver(t, p)
			at.drained(t)
			book.check(t, at.store)
			transitions := 0
			for _, order := range book.truth(t) {
				transitions += len(order.Timeline)
			}
			given := func() int { return int(p.metrics(t)["labhealth_reactions state=failed"]) }
			wait(t, time.Minute, "the reactions to be given up", func() bool { return given() == transitions })
			h.alerts(t, "LabhealthReactionsGivenUp")
			if len(reacted.transitions()) > 0 {
				t.Error("a redirect was followed")
			}

			fails.Store(false)
			reacted.reliable = true
			args := []string{"-role", "requeue", "-data", at.data}
			if scaled {
				args = []string{"-role", "requeue", "-postgres", at.postgres}
			}
			at.once(t, args...)
			reacted.check(t, book.truth(t))
			if reacted.attempts != transitions {
				t.Errorf("%d requests, want %d", reacted.attempts, transitions)
			}
		})
	}
	(&history{more: map[string]float64{"labhealth_reactions_oldest_age_seconds": 1000}}).alerts(t, "LabhealthReactionsOld")
}

// fromStart watches a process from its start, at which its counters are zero.
func fromStart(p *process) *history {
	return &history{processes: []*process{p}, before: []map[string]float64{{}}}
}

// deliver delivers the events to a process.
func (b *orderBook) deliver(t testing.TB, p *process) {
	t.Helper()
	client := newClient()
	defer client.CloseIdleConnections()
	for _, event := range b.events {
		if _, err := deliver(t.Context(), client, []string{p.events}, message{"msg_" + uuid.NewString(), event}); err != nil {
			t.Fatal(err)
		}
	}
}

// A process that reconciles finds orders of which nothing was delivered. Its metrics say so, and
// when it cannot. With SQLite it is the process that receives.
func TestReconcile(t *testing.T) {
	for name, scaled := range map[string]bool{"SQLite": false, "PostgreSQL": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, book, reacted := newPlace(t, scaled), newOrderBook(t, 30), newReactions(t)
			role := "all"
			if scaled {
				role = "reconcile"
			}
			args := at.args(role, "-react", "transition", "-react-url", reacted.server.URL)
			denied := launchWith(t, []string{"LABHEALTH_BASE_URL=" + book.service.URL, "LABHEALTH_API_KEY=wrong"}, args...)
			h := fromStart(denied)
			wait(t, time.Minute, "the comparison to fail", func() bool {
				return denied.metrics(t)["labhealth_reconciler_failures_total error=401 pass=changed"] > 0
			})
			h.alerts(t, "LabhealthNotCompared")
			if !strings.Contains(denied.log.String(), "the comparison with the service failed") || strings.Contains(denied.log.String(), "wrong") {
				t.Errorf("the log is\n%s", denied.log)
			}
			denied.kill()
			at.endLease(t)

			p := launchWith(t, book.environment(), append(args, "-rate", "1000")...)
			h = fromStart(p)
			book.check(t, at.store)
			wait(t, time.Minute, "the passes to be complete", func() bool {
				return p.metrics(t)["labhealth_reconciler_last_complete_timestamp_seconds pass=changed"] > 0
			})
			h.alerts(t, "LabhealthDifferences")
			if !scaled {
				reacted.check(t, book.truth(t))
			}
			p.terminate(t)
		})
	}
}
