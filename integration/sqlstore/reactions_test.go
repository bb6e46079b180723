package sqlstore_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

var allKinds = []sqlstore.ReactionKind{sqlstore.ReactTransition, sqlstore.ReactResults, sqlstore.ReactSummary, sqlstore.ReactSamples}

// reactive returns a store that queues reactions.
func reactive(t testing.TB, d database, kinds ...sqlstore.ReactionKind) *sqlstore.Store {
	t.Helper()
	store := d.store(t)
	store.Reactions = kinds
	return store
}

// orderEvent is a delivery of an order of a user with these entries of its timeline: the entry n is
// the status n, reached n seconds after noon.
func orderEvent(order, u int, entries ...int) webhooks.RawDelivery {
	statuses := []string{"", "received.testkit.ordered", "collecting_sample.testkit.in_transit_customer", "sample_with_lab.testkit.delivered_to_lab", "completed.testkit.completed"}
	var events []string
	for _, n := range entries {
		events = append(events, fmt.Sprintf(`{"id":%d,"created_at":%q,"status":%q}`, n, second(n), statuses[n]))
	}
	return webhooks.RawDelivery{ReceivedAt: noon, Body: []byte(fmt.Sprintf(
		`{"event_type":"labtest.order.updated","data":{"id":%q,"user_id":%q,"updated_at":%q,"events":[%s]}}`,
		orderID(order), user(u), second(entries[len(entries)-1]), strings.Join(events, ",")))}
}

func raw(all ...webhooks.RawDelivery) []webhooks.RawDelivery { return all }

// calls records the calls of a Reactor.
type calls struct {
	mu   sync.Mutex
	all  []sqlstore.Reaction
	byID map[uuid.UUID]int
}

func (c *calls) react(_ context.Context, r sqlstore.Reaction) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, r)
	if c.byID == nil {
		c.byID = map[uuid.UUID]int{}
	}
	c.byID[r.ID]++
	return nil
}

func (c *calls) lines() (lines []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.all {
		line := fmt.Sprintf("%s %s", r.Kind, r.UserID)
		switch r.Kind {
		case sqlstore.ReactTransition:
			line += fmt.Sprintf(" %s %s %s %s", r.OrderID, r.Transition.ID, r.Transition.Status, r.Transition.At.Format(time.RFC3339))
		case sqlstore.ReactSummary:
			line += fmt.Sprintf(" %s %s", r.Summary.Resource, r.Summary.ID)
		case sqlstore.ReactSamples:
			line += fmt.Sprintf(" %s %s %s %s", r.Series.Resource, r.Series.Provider, r.From.Format(time.RFC3339), r.To.Format(time.RFC3339))
		}
		lines = append(lines, line)
	}
	return lines
}

// reactAll runs steps until no reaction waits.
func reactAll(t *testing.T, r *sqlstore.Reactor) {
	t.Helper()
	eventually(t, "all reactions to be called", func() bool {
		if _, err := r.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		b, err := r.Store.Backlog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return b.Reactions == 0
	})
}

// What is queued: one for each transition, one for each summary, and one for the samples of a
// series in a transaction, if they were added or updated.
func TestReactionsQueued(t *testing.T) {
	onAll(t, func(t *testing.T, d database) {
		store := reactive(t, d, allKinds...)
		sleep := webhooks.RawDelivery{ReceivedAt: noon, Body: []byte(fmt.Sprintf(
			`{"event_type":"daily.data.sleep.created","user_id":%q,"data":{"id":"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11","duration":1}}`, user(1)))}
		apply(t, store, parse(t, raw(heartrates("", 1, "60"), heartrates("", 1, "60", "61", "62"), sleep, sleep, orderEvent(1, 1, 2))))
		apply(t, store, parse(t, raw(heartrates("", 1, "60", "61", "62"), sleep, orderEvent(1, 1, 1, 2)))) // the same, and an entry that was missing
		c := &calls{}
		reactAll(t, &sqlstore.Reactor{Store: store, React: c.react, Parallel: 1})
		got := c.lines()
		slices.Sort(got)
		const u = "00000000-0000-4000-8000-000000000001 "
		want := []string{
			"samples " + u + "heartrate ring 2025-03-01T12:00:00Z 2025-03-01T12:02:00Z",
			"summary " + u + "sleep 3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11",
			"transition " + u + "00000000-0000-4000-9000-000000000001 1 received.testkit.ordered 2025-03-01T12:00:01Z",
			"transition " + u + "00000000-0000-4000-9000-000000000001 2 collecting_sample.testkit.in_transit_customer 2025-03-01T12:00:02Z",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		wantCount(t, d.open(t), "labhealth_reactions", 0)
	})
}

// Without kinds, nothing is done. With them, reactions cost one statement of PostgreSQL.
func TestReactionStatements(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		d.store(t)
		var f faults
		store, err := sqlstore.Open(d.openFaulty(t, &f), d.dialect)
		if err != nil {
			t.Fatal(err)
		}
		statements := func(first int) (n int) {
			apply(t, store, parse(t, raw(heartrates("", first, "60")))) // so that the series is not new
			f.set(func(operation string) error { n++; return nil }, nil)
			defer f.set(nil, nil)
			apply(t, store, parse(t, raw(heartrates("", first, "60", "61", "62"), orderEvent(first, 1, 1), orderEvent(first+1, 1, 1))))
			return n
		}
		statements(10) // whatever is done once
		without := statements(20)
		store.Reactions = allKinds
		if with := statements(30); with != without+1 {
			t.Errorf("%d statements with reactions, %d without", with, without)
		}
		wantCount(t, d.open(t), "labhealth_reactions", 4)
		store.Reactions = []sqlstore.ReactionKind{sqlstore.ReactSummary}
		if with := statements(40); with != without {
			t.Errorf("%d statements with reactions of another kind, %d without", with, without)
		}
		wantCount(t, d.open(t), "labhealth_reactions", 4)
	})
}

// An unknown kind is an error of every method, and a Reactor without kinds is an error.
func TestReactionKinds(t *testing.T) {
	t.Parallel()
	store := reactive(t, sqliteFile(t), "transitions")
	const want = `sqlstore: Store.Reactions has an unknown kind: ["transition" "results" "summary" "samples"] are known`
	if err := store.Receive(t.Context(), heartrates("", 1, "60")); err == nil || err.Error() != want {
		t.Error(err)
	}
	store.Reactions = nil
	r := &sqlstore.Reactor{Store: store, React: new(calls).react}
	if err := r.Run(t.Context()); err == nil || err.Error() != "sqlstore: Store.Reactions is empty: nothing is queued for the Reactor" {
		t.Error(err)
	}
}

// Reactions that are changed after a worker was started are an error. The worker goes on with what
// was selected before, and does not read the field again.
func TestReactionsChangedLater(t *testing.T) {
	t.Parallel()
	d := sqliteFile(t)
	store := reactive(t, d, sqlstore.ReactTransition)
	ctx, cancel := context.WithCancel(t.Context())
	applied := make(chan struct{}, 10)
	worker := &sqlstore.Worker{Store: store, Poll: time.Millisecond}
	worker.Observe.End = func(context.Context, sqlstore.Step, error) { applied <- struct{}{} }
	var running sync.WaitGroup
	running.Go(func() { worker.Run(ctx) })
	for _, d := range raw(orderEvent(1, 1, 1), heartrates("", 1, "60")) {
		if err := store.Receive(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		<-applied
		store.Reactions = allKinds
	}
	reactor := &sqlstore.Reactor{Store: store, React: new(calls).react}
	_, worked := (&sqlstore.Worker{Store: store}).Step(t.Context())
	_, reacted := reactor.Step(t.Context())
	for _, err := range []error{worked, reacted, reactor.Run(t.Context()), (&sqlstore.Worker{Store: store}).Run(t.Context()), (&sqlstore.Reconciler{Store: store, Client: new(labhealth.Client)}).Run(t.Context())} {
		if err == nil || !strings.Contains(err.Error(), "Store.Reactions was changed") {
			t.Error(err)
		}
	}
	cancel()
	running.Wait()
	db := d.open(t)
	if n, samples := count(t, db, "labhealth_reactions"), count(t, db, "labhealth_samples"); n != 1 || samples != 1 {
		t.Errorf("%d reactions, %d samples", n, samples)
	}
}

// Whatever a function does, the others are called, and it is called again until it is given up.
func TestFailingReactions(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store := reactive(t, d, sqlstore.ReactSamples)
		var deliveries []webhooks.RawDelivery
		for u := range 40 {
			deliveries = append(deliveries, heartrates("", u, "60"))
		}
		apply(t, store, parse(t, deliveries))
		c := &calls{}
		hang := make(chan struct{})
		var mu sync.Mutex
		results := map[sqlstore.ReactionResult]int{}
		r := &sqlstore.Reactor{
			Store: store, Parallel: 3, Attempts: 2, Delay: time.Millisecond, Poll: time.Millisecond, Timeout: 2 * time.Second,
			React: func(ctx context.Context, r sqlstore.Reaction) error {
				c.react(ctx, r)
				switch r.UserID {
				case user(0):
					return errors.New("canary Ada")
				case user(1):
					panic("canary Ada")
				case user(2):
					runtime.Goexit()
				case user(3):
					return fmt.Errorf("canary Ada: %w", webhooks.ErrPermanent)
				case user(4):
					<-ctx.Done()
					return ctx.Err()
				case user(5):
					<-hang
				case user(6):
					if r.Attempt == 1 {
						return errors.New("once")
					}
				}
				return nil
			},
			Observe: sqlstore.ReactionObserver{End: func(_ context.Context, _ sqlstore.Reaction, result sqlstore.ReactionResult, _ error) {
				mu.Lock()
				defer mu.Unlock()
				results[result]++
			}},
		}
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan error)
		go func() { stopped <- r.Run(ctx) }()
		db := d.open(t)
		eventually(t, "all to be called or given up", func() bool { return count(t, db, "labhealth_reactions WHERE failed_at IS NULL") == 0 })
		cancel()
		if err := <-stopped; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		close(hang)
		var failed []string
		ids := map[uuid.UUID]uuid.UUID{}
		for f, err := range store.FailedReactions(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			ids[f.Reaction.UserID] = f.Reaction.ID
			failed = append(failed, fmt.Sprintf("%s %d %s", f.Reaction.UserID, f.Attempts, f.Reason))
			if time.Since(f.FailedAt) > time.Hour || strings.Contains(fmt.Sprint(f), "canary") {
				t.Error(f)
			}
		}
		slices.Sort(failed)
		if diff := cmp.Diff([]string{
			user(0).String() + " 2 the application failed",
			user(1).String() + " 2 the application panicked",
			user(2).String() + " 2 the application panicked",
			user(3).String() + " 1 the application rejected it",
			user(4).String() + " 2 it took too long",
			user(5).String() + " 2 it took too long",
		}, failed); diff != "" {
			t.Error(diff)
		}
		for id, n := range c.byID {
			if n > 2 {
				t.Errorf("%s was called %d times", id, n)
			}
		}
		mu.Lock()
		if diff := cmp.Diff(map[sqlstore.ReactionResult]int{"done": 34, "delayed": 6, "failed": 6}, results); diff != "" {
			t.Error(diff)
		}
		mu.Unlock()
		b, err := store.Backlog(t.Context())
		if err != nil || b.Reactions != 0 || b.FailedReactions != 6 || !b.OldestReaction.IsZero() {
			t.Error(b, err)
		}
		if found, err := store.RequeueReaction(t.Context(), ids[user(0)]); !found || err != nil {
			t.Error(found, err)
		}
		if found, err := store.RequeueReaction(t.Context(), ids[user(0)]); found || err != nil {
			t.Error(found, err)
		}
		if b, err = store.Backlog(t.Context()); err != nil || b.Reactions != 1 || b.FailedReactions != 5 || b.OldestReaction.IsZero() {
			t.Error(b, err)
		}
		again := &calls{}
		reactAll(t, &sqlstore.Reactor{Store: store, React: again.react})
		if len(again.all) != 1 || again.all[0].Attempt != 1 || c.byID[again.all[0].ID] != 2 {
			t.Error(again.all)
		}
	})
}

// The reactions of an order are called one at a time, in the order of the timeline, however they
// arrive, by several reactors, and after failures.
func TestReactionsOfAnOrder(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store := reactive(t, d, sqlstore.ReactTransition)
		const orders = 30
		r := rand.New(rand.NewPCG(7, 7))
		for o := range orders {
			for _, entry := range r.Perm(4) {
				apply(t, store, parse(t, raw(orderEvent(o, o, entry+1))))
			}
		}
		var mu sync.Mutex
		running, called := map[uuid.UUID]int{}, map[uuid.UUID][]string{}
		react := func(ctx context.Context, r sqlstore.Reaction) error {
			mu.Lock()
			running[r.OrderID]++
			if running[r.OrderID] > 1 {
				t.Error("two reactions of an order are called at the same time")
			}
			mu.Unlock()
			runtime.Gosched()
			mu.Lock()
			defer mu.Unlock()
			running[r.OrderID]--
			if fails := rand.IntN(3) == 0; fails && r.Attempt < 3 || r.OrderID == orderID(3) && r.Transition.ID == "2" {
				return errors.New("once")
			}
			called[r.OrderID] = append(called[r.OrderID], r.Transition.ID)
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				store := reactive(t, d, sqlstore.ReactTransition)
				(&sqlstore.Reactor{Store: store, React: react, Attempts: 4, Delay: time.Millisecond, Poll: time.Millisecond}).Run(ctx)
			})
		}
		db := d.open(t)
		eventually(t, "all to be called", func() bool { return count(t, db, "labhealth_reactions WHERE failed_at IS NULL") == 0 })
		cancel()
		all.Wait()
		for o := range orders {
			want := []string{"1", "2", "3", "4"}
			if o == 3 {
				want = []string{"1", "3", "4"} // 2 was given up
			}
			if diff := cmp.Diff(want, called[orderID(o)]); diff != "" {
				t.Errorf("order %d: %s", o, diff)
			}
		}
	})
}

// Processes that are killed lose no reaction, and receiving goes on while they work. After
// deduplication by ID, each transition was called once.
func TestKilledReactors(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, db := reactive(t, d, sqlstore.ReactTransition), d.open(t)
		if _, err := db.ExecContext(t.Context(), `CREATE TABLE reacted (id TEXT, what TEXT)`); err != nil {
			t.Fatal(err)
		}
		orders, kills := 100, 6
		if long {
			orders, kills = 3000, 60
		}
		receiveOrders := func(first int) {
			var deliveries []webhooks.RawDelivery
			for o := first; o < first+orders/2; o++ {
				deliveries = append(deliveries, orderEvent(o, o%20, 1, 2), orderEvent(o, o%20, 1, 2, 3, 4), orderEvent(o, o%20, 1, 2))
			}
			apply(t, store, parse(t, deliveries))
		}
		receiveOrders(0)
		var processes sync.WaitGroup
		for seed := range 2 {
			processes.Go(func() {
				for n := range kills / 2 {
					cmd := child(t.Context(), d, "react", seed)
					out, err := cmd.StdoutPipe()
					if err != nil {
						t.Error(err)
						return
					}
					if err := cmd.Start(); err != nil {
						t.Error(err)
						return
					}
					for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "reacting"; {
					}
					time.Sleep(rand.N(100 * time.Millisecond)) // the moment is to be a random one
					cmd.Process.Kill()
					cmd.Wait()
					if seed == 0 && n == 0 {
						receiveOrders(orders / 2)
					}
				}
			})
		}
		processes.Wait()
		c := &calls{}
		last := &sqlstore.Reactor{Store: store, Parallel: 20, React: func(ctx context.Context, r sqlstore.Reaction) error {
			c.react(ctx, r)
			return reacted(ctx, db, d, r)
		}}
		reactAll(t, last)
		var ids, distinct, transitions int
		err := db.QueryRowContext(t.Context(), `SELECT count(DISTINCT id), count(DISTINCT what), (SELECT count(*) FROM labhealth_order_events) FROM reacted`).
			Scan(&ids, &distinct, &transitions)
		if err != nil || ids != 4*orders || distinct != 4*orders || transitions != 4*orders {
			t.Errorf("%d IDs of %d reactions to %d transitions, want %d, %v", ids, distinct, transitions, 4*orders, err)
		}
		t.Logf("%d calls for %d transitions, %d of them by the last reactor", count(t, db, "reacted"), transitions, len(c.all))
	})
}

// reacted records a call, in a transaction of its own.
func reacted(ctx context.Context, db *sql.DB, d database, r sqlstore.Reaction) error {
	p := specificsOf[d.dialect].placeholder
	_, err := db.ExecContext(ctx, `INSERT INTO reacted (id, what) VALUES (`+p(1)+`, `+p(2)+`)`, r.ID.String(), r.OrderID.String()+" "+r.Transition.ID)
	return err
}

// reactUntilKilled is the job of another process.
func reactUntilKilled(t *testing.T, d database) {
	db := d.open(t)
	var once sync.Once
	reacting := func() { once.Do(func() { fmt.Println("reacting") }) }
	time.AfterFunc(time.Second, reacting) // there may be nothing left
	r := &sqlstore.Reactor{
		Store: reactive(t, d, sqlstore.ReactTransition), Timeout: time.Second, Poll: time.Millisecond,
		React: func(ctx context.Context, r sqlstore.Reaction) error {
			reacting()
			return reacted(ctx, db, d, r)
		},
	}
	r.Run(t.Context())
}

// A function that never returns holds up neither what is received nor what workers apply.
func TestReactorHoldsNothingUp(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store := reactive(t, d, sqlstore.ReactSamples)
		apply(t, store, parse(t, raw(heartrates("", 1, "60"), heartrates("", 2, "60"))))
		entered, leave := make(chan struct{}, 10), make(chan struct{})
		r := &sqlstore.Reactor{Store: store, Grace: time.Minute, React: func(context.Context, sqlstore.Reaction) error {
			entered <- struct{}{}
			<-leave
			return nil
		}}
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan error)
		go func() { stopped <- r.Run(ctx) }()
		<-entered
		<-entered
		db := d.open(t)
		var deliveries []webhooks.RawDelivery
		for i := range 20 {
			deliveries = append(deliveries, heartrates(fmt.Sprint(i), 1, fmt.Sprint(70+i))) // greater than what is stored
		}
		receive(t, store, deliveries...)
		drain(t, &sqlstore.Worker{Store: store}, db)
		<-entered // the reaction to them is called
		// Deleting a user while the function is called does not wait for it either.
		if err := store.DeleteUser(t.Context(), user(2)); err != nil {
			t.Fatal(err)
		}
		cancel() // the calls in flight may end
		close(leave)
		if err := <-stopped; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		wantCount(t, db, "labhealth_reactions WHERE attempts > 0", 0)
	})
}

// Reactions that were given up or wait for later cost those that can be called nothing.
func TestReactionPlans(t *testing.T) {
	t.Parallel()
	d := postgres(t)
	d.store(t)
	db := d.open(t)
	n := 2000
	if long {
		n = 100_000
	}
	for _, due := range []string{"9223372036854775807", "4000000000000000000 + n"} {
		if _, err := db.ExecContext(t.Context(), fmt.Sprintf(`INSERT INTO labhealth_reactions (slot, id, kind, user_id, order_id, at, queued, due, attempts, failed_at, body)
			SELECT n %% 256, gen_random_uuid(), 'transition', gen_random_uuid(), gen_random_uuid(), 1, 1, %s, 1, CASE WHEN %s = 9223372036854775807 THEN 1 END, '{}'
			FROM generate_series(1, %d) AS n`, due, due, n)); err != nil {
			t.Fatal(err)
		}
	}
	var f faults
	store, err := sqlstore.Open(d.openFaulty(t, &f), d.dialect)
	if err != nil {
		t.Fatal(err)
	}
	store.Reactions = allKinds
	var statements []string
	f.set(func(operation string) error {
		if strings.Contains(operation, "labhealth_reactions") && !slices.Contains(statements, operation) {
			statements = append(statements, operation)
		}
		return nil
	}, nil)
	apply(t, store, parse(t, raw(orderEvent(1, 1, 1, 2, 3), orderEvent(2, 2, 1), heartrates("", 3, "60"))))
	fails := true
	r := &sqlstore.Reactor{Store: store, Delay: time.Nanosecond, Parallel: 1, React: func(context.Context, sqlstore.Reaction) error {
		if fails = !fails; fails {
			return errors.New("every second")
		}
		return nil
	}}
	eventually(t, "all to be called", func() bool {
		if _, err := r.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		return count(t, db, "labhealth_reactions WHERE due < 4000000000000000000") == 0
	})
	if err := store.DeleteUser(t.Context(), user(1)); err != nil {
		t.Fatal(err)
	}
	f.set(nil, nil)
	if len(statements) < 8 {
		t.Errorf("only %d statements: %q", len(statements), statements)
	}
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), "SELECT set_config('plan_cache_mode', 'force_generic_plan', false)"); err != nil {
		t.Fatal(err)
	}
	for i, statement := range statements {
		if !strings.Contains(statement, "INSERT INTO labhealth_reactions") {
			checkPlan(t, conn, fmt.Sprint("r", i), statement)
		}
	}
}

// parameters returns how many parameters a statement has.
func parameters(statement string) (n int) {
	for strings.Contains(statement, fmt.Sprintf("$%d:", n+1)) {
		n++
	}
	return n
}

func checkPlan(t *testing.T, conn *sql.Conn, name, statement string) {
	t.Helper()
	if _, err := conn.ExecContext(t.Context(), "PREPARE "+name+" AS "+statement); err != nil {
		t.Fatal(err)
	}
	call := "EXPLAIN EXECUTE " + name
	if n := parameters(statement); n > 0 {
		call += "(" + strings.TrimSuffix(strings.Repeat("NULL, ", n), ", ") + ")"
	}
	rows, err := conn.QueryContext(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	plan, isScanned := "", false
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		// A scan without a condition reads the whole index.
		if isScanned && !strings.Contains(line, "Cond: ") {
			t.Errorf("%s\n%s%s", statement, plan, line)
		}
		isScanned = strings.Contains(line, "Scan") && strings.Contains(line, "labhealth_reactions") && !strings.Contains(line, "Bitmap Heap")
		plan += line + "\n"
	}
	if strings.Contains(plan, "Seq Scan on labhealth_reactions") || !strings.Contains(plan, "Index Cond: ") && !strings.Contains(plan, "TID Cond: ") {
		t.Errorf("%s\n%s", statement, plan)
	}
}
