package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// slow makes PostgreSQL take a time to write a sample: 25 ms, and for the value 999 until the time
// limit.
func slow(t *testing.T, db *sql.DB) {
	t.Helper()
	for _, statement := range []string{`CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN PERFORM pg_sleep(CASE new.value WHEN 999 THEN 3600 ELSE 0.025 END); RETURN new; END $$`,
		`CREATE TRIGGER slow BEFORE INSERT ON labhealth_samples FOR EACH ROW EXECUTE FUNCTION slow()`} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
}

// outcomes runs a worker until nothing is left in the inbox. It returns the sum and the number of
// steps that failed.
func outcomes(t *testing.T, w *sqlstore.Worker, db *sql.DB) (sum sqlstore.Step, failed int) {
	t.Helper()
	sum.Reasons = map[string]int{}
	for count(t, db, "labhealth_inbox") > 0 {
		step, err := w.Step(t.Context())
		if err != nil {
			var e *sqlstore.Error
			// On a slow machine, a step may take nothing within the limit.
			if failed++; !errors.As(err, &e) || !e.TimedOut || step.Batch == 1 || failed > 50 {
				t.Fatalf("%+v %v", step, err)
			}
		}
		sum.Batch = max(sum.Batch, step.Batch)
		sum.Applied += step.Applied
		sum.Delayed += step.Delayed
		sum.Dead += step.Dead
		for reason, n := range step.Reasons {
			sum.Reasons[reason] += n
		}
	}
	return sum, failed
}

// Batches that exceed a time limit become smaller until they fit. A delivery that exceeds it alone
// becomes a dead letter, and no other is counted.
func TestStatementTimeout(t *testing.T) {
	t.Parallel()
	for _, driver := range []string{"pgx", "postgres"} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			d := postgres(t)
			d.driver = driver
			db := d.open(t)
			d.store(t)
			slow(t, db)
			limited := d
			limited.source += "&statement_timeout=400"
			store := limited.store(t)
			for n := range 40 {
				receive(t, store, heartrates(fmt.Sprint("msg_", n), n, "60"))
			}
			sum, failed := outcomes(t, &sqlstore.Worker{Store: store}, db)
			if sum.Batch != 40 || sum.Applied != 40 || sum.Dead != 0 || failed < 1 || failed > 10 {
				t.Errorf("%+v, %d steps failed", sum, failed)
			}

			for n := range 8 {
				receive(t, store, heartrates(fmt.Sprint("new_", n), n, []string{"61", "999"}[n/5%2])) // three huge ones
			}
			sum, failed = outcomes(t, &sqlstore.Worker{Store: store, Attempts: 2, Delay: time.Nanosecond}, db)
			const reason = "it took too long (SQLSTATE 57014)"
			if sum.Applied != 5 || sum.Delayed < 3 || sum.Dead != 3 || sum.Reasons[reason] != sum.Delayed+3 || failed > 12 {
				t.Errorf("%+v, %d steps failed", sum, failed)
			}
			for letter := range store.DeadLetters(t.Context()) {
				if letter.Reason != reason || letter.Attempts != 2 {
					t.Error(letter)
				}
			}
		})
	}
}

// A worker has a limit of its own, which includes the function. In the end a delivery that exceeds
// it alone is a dead letter.
func TestWorkerTimeout(t *testing.T) {
	onAll(t, func(t *testing.T, d database) {
		store, db := d.store(t), ledger(t, d)
		for n := range 7 {
			receive(t, store, heartrates(fmt.Sprint("msg_", n), n, "60"))
		}
		worker := &sqlstore.Worker{Store: store, Attempts: 3, Delay: time.Nanosecond, Timeout: 700 * time.Millisecond}
		worker.Apply = func(ctx context.Context, tx *sql.Tx, d webhooks.Delivery, c webhooks.Changes) error {
			if d.ID == "msg_5" {
				<-ctx.Done()
				return errors.New("canary Ada")
			}
			return record(ctx, tx, d, c)
		}
		sum, failed := outcomes(t, worker, db)
		if sum.Batch != 7 || sum.Applied != 6 || sum.Delayed < 2 || sum.Dead != 1 || sum.Reasons["it took too long"] != sum.Delayed+1 || failed > 10 {
			t.Errorf("%+v, %d steps failed", sum, failed)
		}
		if n := count(t, db, "ledger"); n != 6 {
			t.Errorf("%d applied, want 6", n)
		}
	})
}

// A function that hangs for one user holds up the others for the limit of a call, and with SQLite
// also those who receive, for less than they wait. The log says so.
func TestHangingFunction(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, db := d.store(t), ledger(t, d)
		w := logTo(t, store)
		for n := range 9 {
			receive(t, store, heartrates(fmt.Sprint("msg_", n), n, "60"))
		}
		hangs, ctx := make(chan struct{}, 9), t.Context()
		ctx, cancel := context.WithCancel(ctx)
		worker := &sqlstore.Worker{Store: store, Apply: func(ctx context.Context, tx *sql.Tx, d webhooks.Delivery, c webhooks.Changes) error {
			if id := webhooks.DeliveryIDFrom(ctx); id != d.ID {
				t.Errorf("the ID %q, want %q", id, d.ID)
			}
			if d.ID == "msg_5" {
				hangs <- struct{}{}
				<-ctx.Done()
				return errors.New("canary Ada")
			}
			return record(ctx, tx, d, c)
		}}
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		running.Go(func() { worker.Run(ctx) })
		<-hangs
		start := time.Now()
		receive(t, store, heartrates("msg_9", 9, "60"))
		eventually(t, "the others to be applied", func() bool { return count(t, db, "ledger") == 9 })
		if took := time.Since(start); took > 12*time.Second { // of a minute for the transaction
			t.Errorf("others waited for %v", took)
		}
		wantLogged(t, w, "level=WARN", `msg="sqlstore: Worker.Apply or OnEvent takes too long, and others wait for it: `, "limit=6s")
		if strings.Contains(w.String(), "the database takes too long") {
			t.Error("the log names the database:\n", w)
		}
	})
}

// endless is a function that never ends for deliveries with an ID.
type endless struct {
	mu    sync.Mutex
	calls map[string]int // by time of receipt, or ID
}

func (e *endless) apply(ctx context.Context, _ *sql.Tx, d webhooks.Delivery, _ webhooks.Changes) error {
	name := d.ID
	if name == "" {
		name = d.Event.ReceivedAt.String()
	}
	e.mu.Lock()
	e.calls[name]++
	e.mu.Unlock()
	if d.ID != "" {
		<-ctx.Done()
	}
	return ctx.Err()
}

// Deliveries that never end spoil one batch each, and are tried alone afterwards, by any number of
// workers. The others of the batch are applied at the next attempt, and all others at the first.
func TestNeverEnding(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, db := d.store(t), d.open(t)
		bad, attempts := 5, 2
		if d.dialect == sqlstore.SQLite && !long { // nobody writes while one of them runs
			bad, attempts = 2, 1
		}
		receive(t, store, heartrates("first", 0, "60")) // else the others wait for each other to store its unit
		drain(t, &sqlstore.Worker{Store: store}, db)
		for n := range bad {
			receive(t, store, heartrates(fmt.Sprint("endless_", n), 1+n, "60"))
		}
		const good = 2000
		fill(t, db, good, time.Time{})
		e := endless{calls: map[string]int{}}
		var spoiled, applied atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var workers sync.WaitGroup
		for n := range 4 {
			own := store
			if n%2 == 1 {
				own = d.store(t) // as in another process
			}
			worker := &sqlstore.Worker{Store: own, Apply: e.apply, Attempts: attempts, Delay: time.Nanosecond, Poll: 20 * time.Millisecond, Timeout: time.Second}
			worker.Observe.End = func(_ context.Context, s sqlstore.Step, err error) {
				if applied.Add(int64(s.Applied)); err != nil && s.Batch > 1 {
					spoiled.Add(1)
				}
			}
			workers.Go(func() { worker.Run(ctx) })
		}
		eventually(t, "an empty inbox", func() bool { return count(t, db, "labhealth_inbox") == 0 })
		eventually(t, "all to be applied", func() bool { return applied.Load() >= good }) // a commit is visible before it returns
		cancel()
		workers.Wait()
		if n := applied.Load(); n != good {
			t.Errorf("%d applied, want %d", n, good)
		}
		if n := int(spoiled.Load()); n > bad*attempts {
			t.Errorf("%d batches exceeded the limit, want at most %d", n, bad*attempts)
		}
		for name, n := range e.calls {
			if n > 2*attempts+3 { // another worker may take it again before it is marked
				t.Errorf("%s was tried %d times", name, n)
			}
		}
		letters := 0
		for letter, err := range store.DeadLetters(t.Context()) {
			if letters++; err != nil || letter.Attempts != attempts || letter.Reason != "it took too long" {
				t.Error(letter, err)
			}
		}
		if letters != bad {
			t.Errorf("%d dead letters, want %d", letters, bad)
		}
	})
}

// While another transaction holds a lock, no attempt is counted, and the deliveries are applied
// when it ends.
func TestLockTimeout(t *testing.T) {
	t.Parallel()
	t.Run("of the database", func(t *testing.T) { t.Parallel(); lockTimeout(t, "&lock_timeout=50", time.Minute) })
	t.Run("of the worker", func(t *testing.T) { t.Parallel(); lockTimeout(t, "", 400*time.Millisecond) })
}

func lockTimeout(t *testing.T, parameters string, timeout time.Duration) {
	d := postgres(t)
	db := d.open(t)
	limited := d
	limited.source += parameters
	store := limited.store(t)
	for n := range 4 {
		receive(t, store, heartrates(fmt.Sprint("msg_", n), n, "60"))
	}
	lock, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Rollback()
	if _, err := lock.Exec("LOCK TABLE labhealth_samples"); err != nil {
		t.Fatal(err)
	}
	worker := &sqlstore.Worker{Store: store, Attempts: 1, Delay: time.Nanosecond, Timeout: timeout}
	var sizes []int
	delayed := 0
	for range 12 {
		step, err := worker.Step(t.Context())
		if delayed += step.Delayed; step.Applied+step.Dead != 0 || (err == nil) != (step.Delayed == 1) || step.Reasons["it took too long (SQLSTATE 55P03)"] != step.Delayed {
			t.Errorf("%+v %v", step, err)
		}
		sizes = append(sizes, step.Batch)
	}
	if !slices.Equal(sizes[:2], []int{4, 1}) || delayed < 6 || count(t, db, "labhealth_inbox WHERE attempts > 0") != 0 {
		t.Errorf("batches of %v, %d delayed", sizes, delayed)
	}
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	worker.Timeout = time.Minute
	if sum, _ := outcomes(t, worker, db); sum.Applied != 4 {
		t.Errorf("%+v", sum)
	}
}

// An error of the function whose text is that of another database is a failed attempt.
func TestFunctionErrorText(t *testing.T) {
	t.Parallel()
	d := postgres(t)
	store := d.store(t)
	receive(t, store, heartrates("msg_1", 1, "60"))
	calls := 0
	worker := &sqlstore.Worker{Store: store, Apply: func(context.Context, *sql.Tx, webhooks.Delivery, webhooks.Changes) error {
		calls++
		return errors.New("database is locked")
	}}
	step, err := worker.Step(t.Context())
	want := sqlstore.Step{Batch: 1, Delayed: 1, Reasons: map[string]int{"the application failed": 1}}
	if diff := cmp.Diff(want, step); err != nil || diff != "" || calls != 2 {
		t.Error(err, diff, calls)
	}
}
