package sqlstore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// One function that never returns occupies one call, however often it is attempted: it is given up,
// and the others are called, also those of the same order.
func TestHangingReaction(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, db := reactive(t, d, sqlstore.ReactTransition), d.open(t)
		apply(t, store, parse(t, raw(orderEvent(1, 1, 1, 2))))
		hang, c := make(chan struct{}), &calls{}
		defer close(hang)
		r := &sqlstore.Reactor{
			Store: store, Parallel: 2, Attempts: 3, Delay: time.Millisecond, Poll: time.Millisecond, Timeout: 200 * time.Millisecond, Grace: time.Millisecond,
			React: func(ctx context.Context, r sqlstore.Reaction) error {
				c.react(ctx, r)
				if r.OrderID == orderID(1) && r.Transition.ID == "1" {
					<-hang
				}
				return nil
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan error)
		go func() { stopped <- r.Run(ctx) }()
		eventually(t, "the reaction to be given up", func() bool { return count(t, db, "labhealth_reactions WHERE failed_at IS NOT NULL") == 1 })
		apply(t, store, parse(t, raw(orderEvent(2, 2, 1, 2, 3))))
		eventually(t, "the others to be called", func() bool { return count(t, db, "labhealth_reactions WHERE failed_at IS NULL") == 0 })
		cancel()
		if err := <-stopped; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		for f, err := range store.FailedReactions(t.Context()) {
			if err != nil || f.Attempts != 3 || f.Reason != "it took too long" || c.byID[f.Reaction.ID] != 1 {
				t.Error(f, err, c.byID)
			}
		}
		if len(c.byID) != 5 {
			t.Errorf("%d reactions were called, want 5", len(c.byID))
		}
	})
}

// As many functions that never return as there are calls at the same time do not stop a Reactor:
// each is abandoned after its limit, and another call takes its place.
func TestHangingReactionsStopNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, db := reactive(t, d, sqlstore.ReactTransition), d.open(t)
		w := logTo(t, store)
		hang, c := make(chan struct{}), &calls{}
		r := &sqlstore.Reactor{
			Store: store, Attempts: 1, Poll: time.Millisecond, Timeout: 100 * time.Millisecond, Grace: time.Millisecond,
			React: func(ctx context.Context, r sqlstore.Reaction) error {
				if r.UserID == user(1) {
					<-hang
					return nil
				}
				c.react(ctx, r)
				return nil
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan error)
		go func() { stopped <- r.Run(ctx) }()
		for o := range 8 {
			apply(t, store, parse(t, raw(orderEvent(o, 1, 1))))
		}
		apply(t, store, parse(t, raw(orderEvent(8, 2, 1), orderEvent(9, 2, 1))))
		eventually(t, "the others to be called", func() bool { return count(t, db, "labhealth_reactions WHERE failed_at IS NULL") == 0 })
		wantLogged(t, w, `msg="sqlstore: the function of a Reactor or a Receiver ignores its context and does not return: it is abandoned`, "hanging=1")
		close(hang)
		apply(t, store, parse(t, raw(orderEvent(10, 2, 1))))
		eventually(t, "the next to be called", func() bool { return len(c.lines()) == 3 })
		cancel()
		if err := <-stopped; !errors.Is(err, context.Canceled) || count(t, db, "labhealth_reactions WHERE failed_at IS NOT NULL") != 8 {
			t.Error(err)
		}
	})
}

// A Reactor whose calls all hang stops, so that its program can be restarted.
func TestTooManyHangingReactions(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store := reactive(t, d, sqlstore.ReactTransition)
		w := logTo(t, store)
		hang := make(chan struct{})
		defer close(hang)
		var deliveries []webhooks.RawDelivery
		for o := range 150 {
			deliveries = append(deliveries, orderEvent(o, o, 1))
		}
		apply(t, store, parse(t, deliveries))
		r := &sqlstore.Reactor{Store: store, Parallel: 50, Poll: time.Millisecond, Timeout: 100 * time.Millisecond, Grace: time.Millisecond,
			React: func(context.Context, sqlstore.Reaction) error { <-hang; return nil }}
		const want = "sqlstore: 100 calls of Reactor.React ignore their contexts and do not return"
		if err := r.Run(t.Context()); err == nil || err.Error() != want {
			t.Error(err)
		}
		wantLogged(t, w, "level=ERROR", want)
	})
}

// Each change of the stored results is a reaction with its own ID, also one back to what they were.
// The same results, and older ones, are none.
func TestResultsReactions(t *testing.T) {
	onAll(t, func(t *testing.T, d database) {
		store := reactive(t, d, sqlstore.ReactResults)
		order := orderOf(t, fmt.Sprintf(`{"id":%q,"user_id":%q}`, orderID(1), user(1)))
		apply(t, store, parse(t, raw(orderEvent(1, 1, 1, 4))))
		for i, document := range []string{`{"results":[],"a":1}`, `{"results":[],"a":1}`, `{"results":[],"a":2}`, `{"results":[],"a":1}`} {
			changed, err := store.ApplyResults(t.Context(), order, resultsOf(t, document), noon.Add(time.Duration(i)*time.Minute))
			if err != nil || changed != (i != 1) {
				t.Fatal(i, changed, err)
			}
		}
		if changed, err := store.ApplyResults(t.Context(), order, resultsOf(t, `{"results":[],"a":3}`), noon); changed || err != nil {
			t.Error(changed, err)
		}
		c := &calls{}
		reactAll(t, &sqlstore.Reactor{Store: store, React: c.react})
		if len(c.byID) != 3 {
			t.Errorf("%d IDs, want 3", len(c.byID))
		}
		want := "results " + user(1).String()
		if diff := cmp.Diff([]string{want, want, want}, c.lines()); diff != "" || c.all[0].OrderID != orderID(1) {
			t.Error(diff, c.all)
		}
	})
}

// A turn takes reactions of as many orders as it may, although the first rows are of few orders.
func TestReactionsOfManyOrders(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, db := reactive(t, d, sqlstore.ReactTransition), d.open(t)
		var deliveries []webhooks.RawDelivery
		for o := range 40 {
			deliveries = append(deliveries, orderEvent(o, o, 1, 2, 3, 4))
		}
		apply(t, store, parse(t, deliveries))
		c := &calls{}
		r := &sqlstore.Reactor{Store: store, Parallel: 40, React: c.react}
		if results, err := r.Step(t.Context()); err != nil || results[sqlstore.ReactionDone] < 25 {
			t.Errorf("%v %v, want at least 25 calls: the first 40 rows have 10 orders", results, err)
		}
		steps := 1
		for ; count(t, db, "labhealth_reactions") > 0; steps++ {
			if _, err := r.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		// 8 on a server of its own: snapshots of other tests keep deleted rows.
		if steps > 20 || len(c.byID) != 160 {
			t.Errorf("%d steps for %d reactions", steps, len(c.byID))
		}
		last := map[uuid.UUID]string{}
		for _, r := range c.all {
			if r.Transition.ID <= last[r.OrderID] {
				t.Errorf("%s after %s", r.Transition.ID, last[r.OrderID])
			}
			last[r.OrderID] = r.Transition.ID
		}
	})
}

// Receiving and applying go on while reactors are killed.
func TestReceiveWhileReactorsAreKilled(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, db := reactive(t, d, sqlstore.ReactTransition), d.open(t)
		if _, err := db.ExecContext(t.Context(), `CREATE TABLE reacted (id TEXT, what TEXT)`); err != nil {
			t.Fatal(err)
		}
		orders := 60
		if long {
			orders = 100
		}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { (&sqlstore.Worker{Store: store, Poll: time.Millisecond}).Run(ctx) })
		for seed := range 2 {
			all.Go(func() {
				for ctx.Err() == nil {
					killReactor(ctx, t, d, seed)
				}
			})
		}
		for o := range orders { // each entry of the timeline comes late, and double
			for _, entry := range []int{2, 1, 4, 3, 4} {
				receiveAgain(t, store, orderEvent(o, o%20, entry))
			}
		}
		eventually(t, "all to be applied", func() bool { return count(t, db, "labhealth_inbox") == 0 })
		cancel()
		all.Wait()
		reactAll(t, &sqlstore.Reactor{Store: store, Parallel: 200, React: func(ctx context.Context, r sqlstore.Reaction) error {
			return reacted(ctx, db, d, r)
		}})
		var ids, distinct, transitions int
		err := db.QueryRowContext(t.Context(), `SELECT count(DISTINCT id), count(DISTINCT what), (SELECT count(*) FROM labhealth_order_events) FROM reacted`).
			Scan(&ids, &distinct, &transitions)
		if err != nil || ids != 4*orders || distinct != 4*orders || transitions != 4*orders {
			t.Errorf("%d IDs of %d reactions to %d transitions, want %d, %v", ids, distinct, transitions, 4*orders, err)
		}
	})
}

// receiveAgain receives a delivery until it is accepted, as from a sender.
func receiveAgain(t *testing.T, store *sqlstore.Store, d webhooks.RawDelivery) {
	t.Helper()
	for attempt := 1; ; attempt++ {
		err := store.Receive(t.Context(), d)
		if err == nil {
			return
		}
		if attempt == 10 {
			t.Fatal(err)
		}
	}
}

// killReactor runs a process with a Reactor and kills it after it has called some reactions.
func killReactor(ctx context.Context, t *testing.T, d database, seed int) {
	cmd := child(ctx, d, "react", seed)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		if ctx.Err() == nil {
			t.Error(err)
		}
		return
	}
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "reacting"; {
	}
	db := d.open(t)
	for before, n := count(t, db, "reacted"), 0; n < 1000 && ctx.Err() == nil && count(t, db, "reacted") < before+10; n++ {
		time.Sleep(time.Millisecond)
	}
	db.Close()
	cmd.Process.Kill()
	cmd.Wait()
}

// DeleteUser has the locks for which reactors wait as late as possible: many samples take long.
func TestDeleteUserLocksReactionsLast(t *testing.T) {
	t.Parallel()
	d := postgres(t)
	d.store(t)
	var f faults
	store, err := sqlstore.Open(d.openFaulty(t, &f), d.dialect)
	if err != nil {
		t.Fatal(err)
	}
	store.Reactions = allKinds
	apply(t, store, parse(t, raw(heartrates("", 1, "60"), orderEvent(1, 1, 1))))
	var statements []string
	f.set(func(operation string) error {
		for _, name := range []string{"r.id FOR UPDATE", "DELETE FROM labhealth_samples", "DELETE FROM labhealth_summaries"} {
			if strings.Contains(operation, name) && !slices.Contains(statements, name) {
				statements = append(statements, name)
			}
		}
		return nil
	}, nil)
	if err := store.DeleteUser(t.Context(), user(1)); err != nil {
		t.Fatal(err)
	}
	f.set(nil, nil)
	want := []string{"DELETE FROM labhealth_samples", "DELETE FROM labhealth_summaries", "r.id FOR UPDATE"}
	if diff := cmp.Diff(want, statements); diff != "" {
		t.Error(diff)
	}
	wantCount(t, d.open(t), "labhealth_reactions", 0)
}
