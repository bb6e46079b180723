package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// ahead are how far a clock was ahead that has been corrected.
var ahead = map[string]time.Duration{"a day": 24 * time.Hour, "a century": 100 * 365 * 24 * time.Hour}

// What a Reconciler stored while the clock was ahead does not keep anything from being read.
func TestReconcilerClockWasAhead(t *testing.T) {
	for name, by := range ahead {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, d database) {
				store, srv := d.store(t), newTruth(t)
				users := srv.AddUsers(2)
				srv.advance(t, srv.AddOrders(40))
				r := &sqlstore.Reconciler{Store: store, Client: srv.client, Rate: 1000}
				if _, err := r.Since(t.Context(), time.Time{}); err != nil {
					t.Fatal(err)
				}
				future := time.Now().Add(by)
				d.exec(t, `DELETE FROM labhealth_order_results`)
				d.exec(t, fmt.Sprintf(`UPDATE labhealth_orders SET results_at = %d WHERE results <> 'none'`, future.Add(40*24*time.Hour).UnixNano()))
				d.exec(t, fmt.Sprintf(`UPDATE labhealth_reconciled_users SET at = %d`, future.UnixNano()))
				for _, user := range users {
					if err := srv.AddSamples(user, "glucose", 3, labhealthtest.StartingAt(time.Now().AddDate(0, 0, -20))); err != nil {
						t.Fatal(err)
					}
				}
				d.exec(t, `DELETE FROM labhealth_reconciled`)
				value := fmt.Sprintf(`{"started":%q,"finished":%q}`, future.Format(time.RFC3339Nano), future.Add(time.Hour).Format(time.RFC3339Nano))
				d.exec(t, `INSERT INTO labhealth_reconciled (slot, name, value) VALUES (0, 'walk', '`+value+`'), (0, 'users', '`+value+`'), (0, 'changed', '`+value+`'),
					(0, 'lease', '{"holder":"other","until":"`+future.Format(time.RFC3339Nano)+`"}')`)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				complete := map[string]bool{}
				mu := make(chan struct{}, 1)
				db := d.open(t)
				r.Observe = func(_ context.Context, found sqlstore.Reconciled, err error) {
					mu <- struct{}{}
					defer func() { <-mu }()
					if err != nil {
						t.Error(found.Pass, err)
					}
					complete[found.Pass] = complete[found.Pass] || found.Complete
					if len(complete) == 4 && complete["users"] && complete["walk"] && count(t, db, "labhealth_samples") == 6 {
						cancel()
					}
				}
				if err := r.Run(ctx); !errors.Is(err, context.Canceled) {
					t.Error(err, complete)
				}
				srv.equal(t, store)
			})
		})
	}
}

// Results that were read, and an order that was missing, when the clock was ahead give way to what
// is read later.
func TestReadWhenClockWasAhead(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, srv := d.store(t), newTruth(t)
		id, err := srv.AddOrder(srv.AddUsers(1)[0], srv.LabTests.WalkIn)
		for err == nil {
			_, err = srv.Advance(id)
		}
		r := &sqlstore.Reconciler{Store: store, Client: srv.client}
		if _, err := r.Order(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		future := time.Now().Add(24 * time.Hour).UnixNano()
		d.exec(t, fmt.Sprintf(`UPDATE labhealth_order_results SET version = %d`, future))
		d.exec(t, fmt.Sprintf(`UPDATE labhealth_orders SET missing = %d`, future))
		if err := srv.CorrectResult(id, 901, "170"); err != nil {
			t.Fatal(err)
		}
		if found, err := r.Order(t.Context(), id); err != nil || found.Differences.Results != 1 {
			t.Errorf("%+v %v", found, err)
		}
		srv.equal(t, store)
		if order, _, err := store.Order(t.Context(), id); err != nil || !order.MissingSince.IsZero() {
			t.Errorf("%v %v", order.MissingSince, err)
		}
	})
}

// A delivery that was delayed, or taken, when the clock was ahead is applied.
func TestWorkerClockWasAhead(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, db := d.store(t), d.open(t)
		for n, by := range []time.Duration{24 * time.Hour, 24*time.Hour + 2*time.Minute, 100 * 365 * 24 * time.Hour} {
			body := fmt.Sprintf(`{"event_type":"daily.data.glucose.created","user_id":%q,"data":{"source":{"provider":"oura"},"data":[{"timestamp":"2025-03-01T12:00:00Z","value":%d,"unit":"mmol/L"}]}}`, user(n), n)
			if err := store.Receive(t.Context(), webhooks.RawDelivery{ID: fmt.Sprint(n), ReceivedAt: noon, Body: []byte(body)}); err != nil {
				t.Fatal(err)
			}
			d.exec(t, fmt.Sprintf(`UPDATE labhealth_inbox SET attempts = 1, part = 1, due = %d WHERE delivery_id = '%d'`, time.Now().Add(by).UnixNano(), n))
		}
		if err := store.Receive(t.Context(), webhooks.RawDelivery{ID: "later", ReceivedAt: noon, Body: []byte(`{"event_type":"x","user_id":"` + user(9).String() + `"}`)}); err != nil {
			t.Fatal(err)
		}
		d.exec(t, fmt.Sprintf(`UPDATE labhealth_inbox SET attempts = 9, part = 1, due = %d WHERE delivery_id = 'later'`, time.Now().Add(59*time.Minute).UnixNano()))
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		worker := &sqlstore.Worker{Store: store, Poll: time.Millisecond}
		worker.Observe.End = func(_ context.Context, _ sqlstore.Step, err error) {
			if err != nil {
				t.Error(err)
			}
			if count(t, db, "labhealth_samples") == 3 {
				cancel()
			}
		}
		if err := worker.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if n := count(t, db, "labhealth_inbox"); n != 1 { // it waits for its time
			t.Errorf("%d deliveries wait", n)
		}
	})
}

// Reactions that were taken, or have failed, when the clock was ahead are called, those of an order
// one after the other.
func TestReactorClockWasAhead(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, srv := d.store(t), newTruth(t)
		store.Reactions = []sqlstore.ReactionKind{sqlstore.ReactTransition, sqlstore.ReactResults, sqlstore.ReactSamples}
		users := srv.AddUsers(2)
		srv.advance(t, srv.AddOrders(20))
		if err := srv.AddSamples(users[0], "glucose", 3, labhealthtest.StartingAt(time.Now())); err != nil {
			t.Fatal(err)
		}
		if _, err := (&sqlstore.Reconciler{Store: store, Client: srv.client}).Since(t.Context(), time.Time{}); err != nil {
			t.Fatal(err)
		}
		db := d.open(t)
		want := count(t, db, "labhealth_reactions")
		d.exec(t, fmt.Sprintf(`UPDATE labhealth_reactions SET due = %d WHERE substr(CAST(id AS text), 1, 1) IN ('0', '1', '2', '3', '4')`, time.Now().Add(24*time.Hour).UnixNano()))
		d.exec(t, fmt.Sprintf(`UPDATE labhealth_reactions SET due = %d WHERE substr(CAST(id AS text), 1, 1) IN ('5', '6', '7', '8', '9')`, time.Now().Add(100*365*24*time.Hour).UnixNano()))
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		last := map[uuid.UUID]time.Time{}
		called := 0
		reactor := &sqlstore.Reactor{Store: store, Poll: time.Millisecond, Parallel: 1, React: func(_ context.Context, r sqlstore.Reaction) error {
			if r.Kind == sqlstore.ReactTransition && r.Transition.At.Before(last[r.OrderID]) {
				t.Errorf("%s is called after a later one", r.Transition.Status)
			}
			last[r.OrderID] = r.Transition.At
			if called++; called == want {
				cancel()
			}
			return nil
		}}
		if err := reactor.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if n := count(t, db, "labhealth_reactions"); n != 0 || called != want {
			t.Errorf("%d of %d reactions were called, %d wait", called, want, n)
		}
	})
}

// IDs of deliveries that were stored when the clock was ahead are kept as long as others.
func TestMaintainClockWasAhead(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store := d.store(t)
		if err := store.MarkSeen(t.Context(), "msg_1"); err != nil {
			t.Fatal(err)
		}
		d.exec(t, fmt.Sprintf(`UPDATE labhealth_deliveries SET at = %d`, time.Now().AddDate(100, 0, 0).UnixNano()))
		if err := store.Maintain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := count(t, d.open(t), fmt.Sprintf("labhealth_deliveries WHERE at <= %d", time.Now().UnixNano())); n != 1 {
			t.Error("the ID is kept for a century")
		}
		if seen, err := store.Seen(t.Context(), "msg_1"); err != nil || !seen {
			t.Error(seen, err)
		}
	})
}
