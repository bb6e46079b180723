package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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

// A delivery is in the inbox once for each id, however many receive it at once; without an id, each time.
func TestReceiveOnce(t *testing.T) {
	onAll(t, func(t *testing.T, d database) {
		stores := []*sqlstore.Store{d.store(t), d.store(t)}
		db := d.open(t)
		ctx := t.Context()
		var all sync.WaitGroup
		for worker := range 8 {
			all.Go(func() {
				r := rand.New(rand.NewPCG(uint64(worker), 1))
				for _, i := range r.Perm(40) {
					id := fmt.Sprintf("msg_%d", i)
					if i >= 38 {
						id = ""
					}
					if err := stores[worker%2].Receive(ctx, heartrates(id, 1, "60")); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if n := count(t, db, "labhealth_inbox"); n != 38+2*8 {
			t.Errorf("%d in the inbox", n)
		}
		if n := count(t, db, "labhealth_deliveries"); n != 38 {
			t.Errorf("%d ids", n)
		}

		store := stores[0]
		if seen, err := store.Seen(ctx, "msg_37"); !seen || err != nil {
			t.Error(seen, err)
		}
		if seen, err := store.Seen(ctx, "msg_x"); seen || err != nil {
			t.Error(seen, err)
		}
		for range 2 {
			if err := store.Remember(ctx, "msg_x"); err != nil {
				t.Error(err)
			}
		}
		if seen, err := stores[1].Seen(ctx, "msg_x"); !seen || err != nil {
			t.Error(seen, err)
		}
		if err := store.Prune(ctx); err != nil {
			t.Error(err)
		}
		if n := count(t, db, "labhealth_deliveries"); n != 39 {
			t.Errorf("%d ids after Prune", n)
		}
		// An id is forgotten in time.
		store.RememberFor = time.Nanosecond
		if seen, err := store.Seen(ctx, "msg_x"); seen || err != nil {
			t.Error(seen, err)
		}
		receive(t, store, heartrates("msg_1", 1, "60"))
		if n := count(t, db, "labhealth_inbox"); n != 38+2*8+1 {
			t.Errorf("%d in the inbox, with one that came again", n)
		}
		if err := store.Prune(ctx); err != nil {
			t.Error(err)
		}
		if n := count(t, db, "labhealth_deliveries"); n != 0 {
			t.Errorf("%d ids after all were forgotten", n)
		}
	})
}

// ledger makes a table in which an application's function notes each delivery.
func ledger(t *testing.T, d database) *sql.DB {
	db := d.open(t)
	if _, err := db.Exec("CREATE TABLE ledger (id text NOT NULL, changed integer NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	return db
}

func note(ctx context.Context, tx *sql.Tx, d webhooks.Delivery, c webhooks.Changes) error {
	// The function has the transaction as the program set it up, whatever the package does for itself.
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

// reference is what becomes of deliveries: the content, and the ids of those that are applied and of those that are dead letters. One
// that cannot be read whole is both.
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
	var noted []string
	rows, err := d.open(t).Query("SELECT id FROM ledger")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		noted = append(noted, id)
	}
	slices.Sort(noted)
	if diff := cmp.Diff(applied, noted); diff != "" {
		t.Errorf("applied: %s", diff)
	}
	var buried []string
	for letter, err := range store.DeadLetters(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		buried = append(buried, letter.Delivery.ID)
	}
	slices.Sort(buried)
	if diff := cmp.Diff(dead, buried); diff != "" {
		t.Errorf("dead letters: %s", diff)
	}
}

// Several workers and receivers at once: each delivery is applied once, and the content is that of Latest.
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
			worker := &sqlstore.Worker{Store: own, Apply: note, Batch: 7, Poll: 5 * time.Millisecond, Observe: func(_ sqlstore.Step, err error) {
				if err != nil {
					t.Error(err)
				}
			}}
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

// A worker that dies at whatever moment, before an operation or after it and before it learns so, has done a batch or has not.
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
				worker := &sqlstore.Worker{Store: faulty, Apply: note, Batch: 5}
				step, err := worker.Step(t.Context())
				if err != nil && strings.Contains(err.Error(), "canary") {
					t.Fatalf("the driver's text: %v", err)
				}
				if err != nil && step.Applied+step.Delayed+step.Dead != 0 {
					// nothing may be claimed that was not committed
					t.Errorf("%d: %v and %v", n, step, err)
				}
				f.set(nil, nil)
				drain(t, &sqlstore.Worker{Store: store, Apply: note, Batch: 5}, db)
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

// One delivery that fails, in each way there is, does not hold up the others, and becomes a dead letter whose reason says nothing of
// the delivery; put back, it is applied when its cause has gone.
func TestPoison(t *testing.T) {
	onAll(t, func(t *testing.T, d database) {
		store, db := d.store(t), ledger(t, d)
		refuse := []string{`CREATE TRIGGER refuse BEFORE INSERT ON labhealth_samples WHEN new.value = 666 BEGIN SELECT RAISE(ABORT, 'canary Ada'); END`}
		if d.dialect == sqlstore.PostgreSQL {
			refuse = []string{`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
				$$ BEGIN IF new.value = 666 THEN RAISE 'canary Ada' USING ERRCODE = '22023'; END IF; RETURN new; END $$`,
				`CREATE TRIGGER refuse BEFORE INSERT ON labhealth_samples FOR EACH ROW EXECUTE FUNCTION refuse()`}
		}
		for _, s := range refuse {
			if _, err := db.Exec(s); err != nil {
				t.Fatal(err)
			}
		}
		statement := map[sqlstore.Dialect][2]string{
			sqlstore.SQLite:     {"INSERT INTO ledger (id, changed) VALUES (NULL, 1)", "the application failed"},
			sqlstore.PostgreSQL: {"INSERT INTO ledger (id, changed) VALUES (NULL, 1)", "the application failed (SQLSTATE 23502)"},
		}[d.dialect]
		refused := map[sqlstore.Dialect]string{
			sqlstore.SQLite: "the database refused the content", sqlstore.PostgreSQL: "the database refused the content (SQLSTATE 22023)",
		}[d.dialect]
		well := false
		worker := &sqlstore.Worker{Store: store, Attempts: 3, Delay: time.Nanosecond, Apply: func(ctx context.Context, tx *sql.Tx, d webhooks.Delivery, c webhooks.Changes) error {
			if !well {
				switch d.ID {
				case "fails":
					return errors.New("canary Ada")
				case "reads": // what is no connection of the transaction's
					return fmt.Errorf("canary Ada: %w", io.ErrUnexpectedEOF)
				case "calls":
					return fmt.Errorf("canary Ada: %w", &net.OpError{Op: "dial", Err: errors.New("refused")})
				case "panics":
					panic("canary Ada")
				case "statement":
					_, err := tx.ExecContext(ctx, statement[0])
					return fmt.Errorf("canary Ada: %w", err)
				}
			}
			return note(ctx, tx, d, c)
		}}
		var all []webhooks.RawDelivery
		for i, id := range []string{"reads", "one", "fails", "two", "refused", "three", "panics", "four", "statement", "five", "calls"} {
			value := "60"
			if id == "refused" {
				value = "666"
			}
			all = append(all, heartrates(id, i, value))
		}
		all = append(all, webhooks.RawDelivery{ID: "unreadable", Body: []byte(`{"canary":`), ReceivedAt: noon})
		receive(t, store, all...)

		step, err := worker.Step(t.Context())
		want := sqlstore.Step{Applied: 5, Delayed: 6, Dead: 1, Changes: webhooks.Changes{Added: 5}}
		if diff := cmp.Diff(want, step); err != nil || diff != "" {
			t.Error(err, diff)
		}
		// An inbox that holds nothing but what fails is tried all the same, and what comes meanwhile is applied.
		receive(t, store, heartrates("six", 20, "60"))
		sum := drain(t, worker, db)
		if sum.Applied != 1 || sum.Delayed != 6 || sum.Dead != 6 {
			t.Errorf("%+v", sum)
		}
		reasons := map[string]string{}
		numbers := map[string]int64{}
		for letter, err := range store.DeadLetters(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			reasons[letter.Delivery.ID] = letter.Reason
			numbers[letter.Delivery.ID] = letter.Number
			i := slices.IndexFunc(all, func(d webhooks.RawDelivery) bool { return d.ID == letter.Delivery.ID })
			if diff := cmp.Diff(all[i].Body, letter.Delivery.Body); diff != "" || !letter.Delivery.ReceivedAt.Equal(noon) || time.Since(letter.FailedAt) > time.Hour {
				t.Errorf("%v: %s", letter, diff)
			}
			if letter.Delivery.ID != "unreadable" && letter.Attempts != 3 || letter.Delivery.ID == "unreadable" && letter.Attempts != 1 {
				t.Errorf("%v", letter)
			}
			if text := fmt.Sprintf("%v %+v %#v %s", letter, letter, letter, []any{&letter}); strings.Contains(text, "canary") || strings.Contains(text, "event_type") {
				t.Error(text)
			}
		}
		if diff := cmp.Diff(map[string]string{
			"fails": "the application failed", "reads": "the application failed", "calls": "the application failed", "panics": "the application panicked", "statement": statement[1], "refused": refused,
			"unreadable": "not an event: at byte 10: unexpected end of JSON",
		}, reasons); diff != "" {
			t.Error(diff)
		}

		well = true
		for id, number := range numbers {
			found, err := store.Requeue(t.Context(), number)
			if err != nil || !found {
				t.Errorf("%s: %v %v", id, found, err)
			}
			if found, err := store.Requeue(t.Context(), number); err != nil || found {
				t.Errorf("%s, again: %v %v", id, found, err)
			}
		}
		if sum := drain(t, worker, db); sum.Applied != 5 || sum.Dead != 2 {
			t.Errorf("put back: %+v", sum)
		}
	})
}

// A connection that breaks under the function is the database's trouble, for which no delivery is blamed.
func TestFunctionLosesConnection(t *testing.T) {
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

// Receipts of one id do not fail for each other where the database isolates more by default.
func TestReceiveIsolated(t *testing.T) {
	d := postgres(t)
	d.address += "&default_transaction_isolation=serializable"
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

// A batch may be larger than what a statement of SQLite has parameters for.
func TestLargeBatch(t *testing.T) {
	d := sqliteFile(t)
	store, db := d.store(t), d.open(t)
	const n = 33_000
	if _, err := db.Exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO labhealth_inbox (received_at, body) SELECT i, cast('{"event_type":"labtest.appointment.updated"}' AS blob) FROM n`, n); err != nil {
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

// A delivery without anything is one too.
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

// A program with a broker puts aside by itself.
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
		want := []string{
			"msg_1 the application failed (SQLSTATE 22003)", " the event has no readable user id", " the summary has no readable id",
			" the application failed", " the application failed",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
