package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"github.com/google/uuid"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// heartrates is a delivery of samples, one for each value, a minute apart.
func heartrates(id string, u int, values ...string) webhooks.RawDelivery {
	var samples []string
	for i, v := range values {
		at := noon.Add(time.Duration(i) * time.Minute).Format(time.RFC3339)
		samples = append(samples, fmt.Sprintf(`{"timestamp":%q,"unit":"bpm","value":%s}`, at, v))
	}
	return webhooks.RawDelivery{
		ID: id, ReceivedAt: noon,
		Body: []byte(fmt.Sprintf(`{"event_type":"daily.data.heartrate.created","user_id":%q,"data":{"source":{"slug":"ring"},"data":[%s]}}`,
			user(u), strings.Join(samples, ","))),
	}
}

func ring(u int) webhooks.Series {
	return webhooks.Series{UserID: user(u), Resource: "heartrate", Provider: "ring"}
}

func receive(t *testing.T, store *sqlstore.Store, all ...webhooks.RawDelivery) {
	t.Helper()
	for _, d := range all {
		if err := store.Receive(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
}

// A delivery is in the inbox once for each ID, however many receive it at the same time; without an
// ID, each time.
func TestReceiveOnce(t *testing.T) {
	onAll(t, func(t *testing.T, d database) {
		stores := []*sqlstore.Store{d.store(t), d.store(t)}
		db := d.open(t)
		var all sync.WaitGroup
		for worker := range 8 {
			all.Go(func() {
				r := rand.New(rand.NewPCG(uint64(worker), 1))
				for _, i := range r.Perm(40) {
					id := fmt.Sprintf("msg_%d", i)
					if i >= 38 {
						id = ""
					}
					if err := stores[worker%2].Receive(t.Context(), heartrates(id, 1, "60")); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		wantCount(t, db, "labhealth_inbox", 38+2*8)
		wantCount(t, db, "labhealth_deliveries", 38)
		wantSeen(t, stores[0], "msg_37", true)
	})
}

// All stores of a database share the IDs, which expire.
func TestMarkSeen(t *testing.T) {
	onAll(t, func(t *testing.T, d database) {
		stores := []*sqlstore.Store{d.store(t), d.store(t)}
		db, store := d.open(t), stores[0]
		receive(t, store, heartrates("msg_1", 1, "60"))
		wantSeen(t, store, "msg_1", true)
		wantSeen(t, store, "msg_x", false)
		for range 2 {
			if err := store.MarkSeen(t.Context(), "msg_x"); err != nil {
				t.Error(err)
			}
		}
		wantSeen(t, stores[1], "msg_x", true)
		if err := store.Maintain(t.Context()); err != nil {
			t.Error(err)
		}
		wantCount(t, db, "labhealth_deliveries", 2)

		store.DuplicateWindow = time.Nanosecond
		wantSeen(t, store, "msg_x", false)
		receive(t, store, heartrates("msg_1", 1, "60"))
		wantCount(t, db, "labhealth_inbox", 2)
		if err := store.Maintain(t.Context()); err != nil {
			t.Error(err)
		}
		wantCount(t, db, "labhealth_deliveries", 0)
	})
}

func wantSeen(t *testing.T, store *sqlstore.Store, id string, want bool) {
	t.Helper()
	if seen, err := store.Seen(t.Context(), id); seen != want || err != nil {
		t.Errorf("%s: %v %v, want %v", id, seen, err, want)
	}
}

func wantCount(t *testing.T, db *sql.DB, table string, want int) {
	t.Helper()
	if n := count(t, db, table); n != want {
		t.Errorf("%d rows in %s, want %d", n, table, want)
	}
}

// ledger creates a table in which an application's function records each delivery.
func ledger(t *testing.T, d database) *sql.DB {
	db := d.open(t)
	if _, err := db.Exec("CREATE TABLE ledger (id text NOT NULL, changed integer NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	return db
}

func record(ctx context.Context, tx *sql.Tx, d webhooks.Delivery, c webhooks.Changes) error {
	// The function gets the transaction with the settings of the program, not those of the package.
	var modes string
	err := tx.QueryRowContext(ctx, "SELECT current_setting('plan_cache_mode') || ' ' || current_setting('enable_seqscan')").Scan(&modes)
	if err == nil && modes != "auto on" { // SQLite has no settings
		return errors.New(modes)
	}
	_, err = tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO ledger (id, changed) VALUES ('%s', %d)", d.ID, c.Added+c.Updated))
	return err
}

// drain takes steps until the inbox is empty.
func drain(t *testing.T, w *sqlstore.Worker, db *sql.DB) (sum sqlstore.Step) {
	t.Helper()
	for count(t, db, "labhealth_inbox") > 0 {
		step, err := w.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sum.Applied += step.Applied
		sum.Delayed += step.Delayed
		sum.Dead += step.Dead
		sum.Changes.Added += step.Changes.Added
		sum.Changes.Same += step.Changes.Same
		sum.Changes.Keyless += step.Changes.Keyless
	}
	return sum
}

// reference returns the content, and the IDs of those that are applied and of those that are dead
// letters. A delivery that cannot be read completely is both.
func reference(t *testing.T, all []webhooks.RawDelivery) (want contents, applied, dead []string) {
	t.Helper()
	var latest webhooks.Latest
	for _, raw := range all {
		d, err := raw.Parse()
		if err == nil {
			_, err = latest.Apply(d)
		}
		if err != nil {
			dead = append(dead, raw.ID)
		}
		if err == nil || errors.Is(err, webhooks.ErrUnreadable) {
			applied = append(applied, raw.ID)
		}
	}
	slices.Sort(applied)
	slices.Sort(dead)
	return contentsOfLatest(&latest), applied, dead
}

// check compares everything with the reference.
func check(t *testing.T, d database, store *sqlstore.Store, all []webhooks.RawDelivery) {
	t.Helper()
	want, applied, dead := reference(t, all)
	if diff := cmp.Diff(want, contentsOf(t, store)); diff != "" {
		t.Error(diff)
	}
	var recorded []string
	db := d.open(t)
	defer db.Close() // some tests check many times
	rows, err := db.Query("SELECT id FROM ledger")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		recorded = append(recorded, id)
	}
	slices.Sort(recorded)
	if diff := cmp.Diff(applied, recorded); diff != "" {
		t.Errorf("applied: %s", diff)
	}
	var deadLetters []string
	for letter, err := range store.DeadLetters(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		deadLetters = append(deadLetters, letter.Delivery.ID)
	}
	slices.Sort(deadLetters)
	if diff := cmp.Diff(dead, deadLetters); diff != "" {
		t.Errorf("dead letters: %s", diff)
	}
}

// A step that takes deliveries starts once, before Apply, whose context it sets, and ends once. An
// empty inbox is not observed.
func TestStepObserver(t *testing.T) {
	onAll(t, func(t *testing.T, d database) {
		store := d.store(t)
		type key struct{}
		var seen []string
		steps := 0
		worker := &sqlstore.Worker{Store: store, Attempts: 2, Delay: time.Hour, Observe: sqlstore.StepObserver{
			Start: func(ctx context.Context) context.Context {
				steps++
				seen = append(seen, fmt.Sprint("start ", steps))
				return context.WithValue(ctx, key{}, steps)
			},
			End: func(ctx context.Context, s sqlstore.Step, err error) {
				seen = append(seen, fmt.Sprintf("end %v: %d %d %d %v", ctx.Value(key{}), s.Applied, s.Delayed, s.Dead, err))
			},
		}}
		worker.Apply = func(ctx context.Context, _ *sql.Tx, d webhooks.Delivery, _ webhooks.Changes) error {
			seen = append(seen, fmt.Sprintf("apply %s in %v", d.ID, ctx.Value(key{})))
			if d.ID == "bad" {
				return errors.New("Ada")
			}
			return nil
		}
		step := func(ctx context.Context) { worker.Step(ctx) }
		step(t.Context())
		receive(t, store, heartrates("good", 1, "60"))
		step(t.Context())
		receive(t, store, heartrates("bad", 1, "61"), heartrates("fine", 1, "60", "62"))
		step(t.Context()) // once together, then one at a time
		step(t.Context())
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		step(canceled)
		if _, err := d.open(t).Exec("DROP TABLE labhealth_inbox"); err != nil {
			t.Fatal(err)
		}
		step(t.Context())
		want := []string{
			"start 1", "apply good in 1", "end 1: 1 0 0 <nil>",
			"start 2", "apply bad in 2", "apply bad in 2", "apply fine in 2", "end 2: 1 1 0 <nil>",
			"start 3",
		}
		last := "end 3: 0 0 0 sqlstore: step: the database failed: tables are missing, see Store.Migrate"
		if len(seen) != len(want)+1 || cmp.Diff(want, seen[:len(want)]) != "" || !strings.HasPrefix(seen[len(want)], last) {
			t.Error(cmp.Diff(append(want, last), seen))
		}
	})
}

// Several workers and receivers run at the same time: each delivery is applied once, and the
// content is that of Latest.
func TestWorkers(t *testing.T) {
	onAll(t, func(t *testing.T, d database) {
		store, db := d.store(t), ledger(t, d)
		all := history(rand.New(rand.NewPCG(7, 7)), 300)
		all = append(all, webhooks.RawDelivery{ID: "msg_bad", Body: []byte(`["Ada"]`), ReceivedAt: noon}, webhooks.RawDelivery{ID: "msg_worse", Body: []byte("\xff\x00"), ReceivedAt: noon})
		ctx, cancel := context.WithCancel(t.Context())
		var workers sync.WaitGroup
		for n := range 3 {
			own := store
			if n == 2 {
				own = d.store(t) // as in another process
			}
			worker := &sqlstore.Worker{Store: own, Apply: record, Batch: 7, Poll: 5 * time.Millisecond}
			worker.Observe.End = func(_ context.Context, _ sqlstore.Step, err error) {
				if err != nil && ctx.Err() == nil { // the last commit is visible before it returns
					t.Error(err)
				}
			}
			workers.Go(func() {
				if err := worker.Run(ctx); err != context.Canceled {
					t.Error(err)
				}
			})
		}
		var receivers sync.WaitGroup
		for n := range 4 {
			receivers.Go(func() {
				for _, i := range rand.New(rand.NewPCG(uint64(n), 2)).Perm(len(all)) {
					if err := store.Receive(ctx, all[i]); err != nil {
						t.Error(err)
					}
				}
			})
		}
		receivers.Wait()
		for count(t, db, "labhealth_inbox") > 0 {
			time.Sleep(time.Millisecond) // until the workers are through
		}
		cancel()
		workers.Wait()
		check(t, d, store, all)
	})
}

// A worker that dies before any operation, or after it without its result, has applied a batch or
// has not.
func TestCrashAnywhere(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, db := d.store(t), ledger(t, d)
		all := history(rand.New(rand.NewPCG(3, 3)), 12)
		all = append(all, webhooks.RawDelivery{ID: "msg_bad", Body: []byte(`[]`), ReceivedAt: noon})
		var f faults
		faulty, err := sqlstore.Open(d.openFaulty(t, &f), d.dialect)
		if err != nil {
			t.Fatal(err)
		}
		for _, after := range []bool{false, true} {
			for n := 0; ; n++ {
				clear(t, d)
				if _, err := db.Exec("DELETE FROM ledger"); err != nil {
					t.Fatal(err)
				}
				receive(t, store, all...)
				operations := 0
				crash := func(string) error {
					if operations++; operations > n {
						return errCrash
					}
					return nil
				}
				if after {
					f.set(nil, crash)
				} else {
					f.set(crash, nil)
				}
				worker := &sqlstore.Worker{Store: faulty, Apply: record, Batch: 5}
				step, err := worker.Step(t.Context())
				if err != nil && strings.Contains(err.Error(), "canary") {
					t.Fatalf("the driver's text: %v", err)
				}
				if err != nil && step.Applied+step.Delayed+step.Dead != 0 {
					// nothing may be claimed that was not committed
					t.Errorf("%d: %v and %v", n, step, err)
				}
				f.set(nil, nil)
				drain(t, &sqlstore.Worker{Store: store, Apply: record, Batch: 5}, db)
				check(t, d, store, all)
				if err == nil && operations <= n {
					if n < 5 {
						t.Errorf("only %d operations", n)
					}
					break
				}
			}
		}
	})
}

// failing is a function that fails for deliveries with certain IDs, until healthy is set.
type failing struct{ healthy bool }

func (f *failing) apply(ctx context.Context, tx *sql.Tx, d webhooks.Delivery, c webhooks.Changes) error {
	if f.healthy {
		return record(ctx, tx, d, c)
	}
	switch d.ID {
	case "fails":
		return errors.New("canary Ada")
	case "reads": // from a connection other than the transaction's
		return fmt.Errorf("canary Ada: %w", io.ErrUnexpectedEOF)
	case "calls":
		return fmt.Errorf("canary Ada: %w", &net.OpError{Op: "dial", Err: errors.New("refused")})
	case "panics":
		panic("canary Ada")
	case "statement":
		_, err := tx.ExecContext(ctx, "INSERT INTO ledger (id, changed) VALUES (NULL, 1)")
		return fmt.Errorf("canary Ada: %w", err)
	}
	return record(ctx, tx, d, c)
}

// poison returns deliveries of which some fail: those that failing knows, one that the database
// rejects, and one that is not an event.
func poison() []webhooks.RawDelivery {
	all := []webhooks.RawDelivery{
		heartrates("rejected", 0, "666"), {ID: "unreadable", Body: []byte(`{"canary":`), ReceivedAt: noon},
	}
	for i, id := range []string{"reads", "one", "fails", "two", "three", "panics", "four", "statement", "five", "calls"} {
		all = append(all, heartrates(id, i+1, "60"))
	}
	return all
}

// A delivery that fails, for any cause, does not delay the others, and becomes a dead letter whose
// reason quotes nothing of it. Requeued, it is applied when the cause is gone.
func TestPoison(t *testing.T) {
	onAll(t, func(t *testing.T, d database) {
		store, db := d.store(t), ledger(t, d)
		for _, s := range specificsOf[d.dialect].reject666 {
			if _, err := db.Exec(s); err != nil {
				t.Fatal(err)
			}
		}
		var function failing
		worker := &sqlstore.Worker{Store: store, Attempts: 3, Delay: time.Nanosecond, Apply: function.apply}
		receive(t, store, poison()...)
		step, err := worker.Step(t.Context())
		want := sqlstore.Step{Batch: 12, Applied: 5, Delayed: 6, Dead: 1, Changes: webhooks.Changes{Added: 5}, Reasons: map[string]int{
			"not an event": 1, "the application failed": 3, "the application panicked": 1,
		}}
		want.Reasons[specificsOf[d.dialect].notNull]++
		want.Reasons[specificsOf[d.dialect].rejected]++
		if diff := cmp.Diff(want, step); err != nil || diff != "" {
			t.Error(err, diff)
		}
		// Deliveries that fail are attempted again, and those that arrive meanwhile are applied.
		receive(t, store, heartrates("six", 20, "60"))
		if sum := drain(t, worker, db); sum.Applied != 1 || sum.Delayed != 6 || sum.Dead != 6 {
			t.Errorf("%+v", sum)
		}

		numbers := checkPoison(t, d, store)
		function.healthy = true
		for id, number := range numbers {
			for _, want := range []bool{true, false} {
				if found, err := store.Requeue(t.Context(), number); err != nil || found != want {
					t.Errorf("%s: %v %v, want %v", id, found, err, want)
				}
			}
		}
		if sum := drain(t, worker, db); sum.Applied != 5 || sum.Dead != 2 {
			t.Errorf("requeued: %+v", sum)
		}
	})
}

// checkPoison checks the dead letters of poison and returns their IDs.
func checkPoison(t *testing.T, d database, store *sqlstore.Store) map[string]uuid.UUID {
	t.Helper()
	bodies, attempts := map[string]string{}, map[string]int{}
	for _, raw := range poison() {
		bodies[raw.ID], attempts[raw.ID] = string(raw.Body), 3
	}
	attempts["unreadable"] = 1
	reasons, numbers := map[string]string{}, map[string]uuid.UUID{}
	for letter, err := range store.DeadLetters(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		id := letter.Delivery.ID
		reasons[id], numbers[id] = letter.Reason, letter.ID
		if string(letter.Delivery.Body) != bodies[id] || !letter.Delivery.ReceivedAt.Equal(noon) ||
			time.Since(letter.FailedAt) > time.Hour || letter.Attempts != attempts[id] {
			t.Errorf("%v: received %v, failed %v, %s", letter, letter.Delivery.ReceivedAt, letter.FailedAt, letter.Delivery.Body)
		}
		if text := fmt.Sprintf("%v %+v %#v %s", letter, letter, letter, []any{&letter}); strings.Contains(text, "canary") || strings.Contains(text, "event_type") {
			t.Error(text)
		}
	}
	want := map[string]string{
		"fails": "the application failed", "reads": "the application failed", "calls": "the application failed",
		"panics": "the application panicked", "statement": specificsOf[d.dialect].notNull, "rejected": specificsOf[d.dialect].rejected,
		"unreadable": "not an event: at byte 10: unexpected end of JSON",
	}
	if diff := cmp.Diff(want, reasons); diff != "" {
		t.Error(diff)
	}
	return numbers
}

// A connection that breaks in the function is an outage of the database: it counts for no delivery.
func TestFunctionLosesConnection(t *testing.T) {
	t.Parallel()
	for _, driver := range []string{"pgx", "postgres"} {
		t.Run(driver, func(t *testing.T) {
			d := postgres(t)
			d.driver = driver
			store, db := d.store(t), d.open(t)
			receive(t, store, heartrates("one", 1, "60"), heartrates("two", 2, "60"))
			broken := false
			worker := &sqlstore.Worker{Store: store, Attempts: 1, Apply: func(ctx context.Context, tx *sql.Tx, d webhooks.Delivery, c webhooks.Changes) error {
				if broken {
					return nil
				}
				broken = true
				tx.ExecContext(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
				_, err := tx.ExecContext(ctx, "SELECT 1")
				return fmt.Errorf("canary Ada: %w", err)
			}}
			step, err := worker.Step(t.Context())
			if err == nil || strings.Contains(err.Error(), "canary") || step.Applied+step.Delayed+step.Dead > 0 {
				t.Errorf("%+v %v", step, err)
			}
			if sum := drain(t, worker, db); sum.Applied != 2 || sum.Dead != 0 {
				t.Errorf("%+v", sum)
			}
		})
	}
}

// Receipts of one ID do not conflict where the default isolation of the database is stricter.
func TestReceiveIsolated(t *testing.T) {
	t.Parallel()
	d := postgres(t)
	d.source += "&default_transaction_isolation=serializable"
	store, db := d.store(t), d.open(t)
	const n = 20
	for i := range n {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if err := store.Receive(t.Context(), heartrates(fmt.Sprint("msg_", i), 1, "60")); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	if got := count(t, db, "labhealth_inbox"); got != n {
		t.Errorf("%d in the inbox, want %d", got, n)
	}
}

// A batch may have more deliveries than a statement of SQLite has parameters.
func TestLargeBatch(t *testing.T) {
	t.Parallel()
	d := sqliteFile(t)
	store, db := d.store(t), d.open(t)
	const n = 33_000
	if _, err := db.Exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO labhealth_inbox (slot, part, due, id, received_at, user_id, attempts, body)
			SELECT 55, 0, i, i, i, '00000000-0000-0000-0000-000000000000', 0, cast('{"event_type":"labtest.courier.called"}' AS blob) FROM n`, n); err != nil {
		t.Fatal(err)
	}
	worker := &sqlstore.Worker{Store: store, Batch: n}
	if step, err := worker.Step(t.Context()); err != nil || step.Applied != n {
		t.Errorf("%+v %v", step, err)
	}
	if n := count(t, db, "labhealth_inbox"); n != 0 {
		t.Errorf("%d are left", n)
	}
}

// An empty delivery is stored too.
func TestEmptyDelivery(t *testing.T) {
	onAll(t, func(t *testing.T, d database) {
		store, db := d.store(t), d.open(t)
		receive(t, store, webhooks.RawDelivery{}, webhooks.RawDelivery{Body: []byte{}})
		if sum := drain(t, &sqlstore.Worker{Store: store}, db); sum.Dead != 2 {
			t.Errorf("%+v", sum)
		}
		if err := store.DeadLetter(t.Context(), webhooks.RawDelivery{}, nil); err != nil {
			t.Error(err)
		}
		if n := count(t, db, "labhealth_dead_letters"); n != 3 {
			t.Errorf("%d dead letters", n)
		}
	})
}

// A program with a broker stores dead letters itself.
func TestDeadLetter(t *testing.T) {
	onAll(t, func(t *testing.T, d database) {
		store := d.store(t)
		ctx := t.Context()
		raw := heartrates("msg_1", 1, "60")
		for _, err := range []error{fmt.Errorf("canary: %w", stateError("22003")), errors.New("again")} {
			if err := store.DeadLetter(ctx, raw, err); err != nil {
				t.Fatal(err)
			}
		}
		raw.ID = ""
		for _, err := range []error{webhooks.ErrNoUser, webhooks.ErrNoID, errors.New("canary"), nil} {
			if err := store.DeadLetter(ctx, raw, err); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for letter, err := range store.DeadLetters(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, letter.Delivery.ID+" "+letter.Reason)
		}
		slices.Sort(got)
		want := []string{
			" the application failed", " the application failed", " the event has no readable user id", " the summary has no readable id",
			"msg_1 the application failed (SQLSTATE 22003)",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
