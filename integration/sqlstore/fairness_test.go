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

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// A function that ignores the error of a statement, with which PostgreSQL rolls back, spoils its
// own delivery only.
func TestFunctionIgnoresError(t *testing.T) {
	onAll(t, func(t *testing.T, d database) {
		store, db := d.store(t), ledger(t, d)
		for n := range 20 {
			receive(t, store, heartrates(fmt.Sprint("msg_", n), n, "60"))
		}
		ignoring := func(ctx context.Context, tx *sql.Tx, d webhooks.Delivery, c webhooks.Changes) error {
			if d.ID == "msg_7" {
				_, _ = tx.ExecContext(ctx, "INSERT INTO ledger (id, changed) VALUES (NULL, 0)")
				return nil
			}
			return record(ctx, tx, d, c)
		}
		worker := &sqlstore.Worker{Store: store, Apply: ignoring, Attempts: 2, Delay: time.Nanosecond}
		sum := drain(t, worker, db)
		letters := 0
		for letter, err := range store.DeadLetters(t.Context()) {
			if letters++; err != nil || letter.Delivery.ID != "msg_7" || letter.Reason != "the application failed" {
				t.Error(letter, err)
			}
		}
		want := 1
		if d.dialect == sqlstore.SQLite { // undoes the statement alone
			want = 0
		}
		if letters != want || sum.Applied != 20-want || count(t, db, "ledger") != 19 {
			t.Errorf("%+v, %d dead letters, %d in the ledger", sum, letters, count(t, db, "ledger"))
		}
	})
}

// A function that ignores its context is abandoned. The worker goes on with the others.
func TestFunctionIgnoresContext(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, db := d.store(t), ledger(t, d)
		for n := range 10 {
			receive(t, store, heartrates(fmt.Sprint("msg_", n), n, "60"))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		release := make(chan struct{})
		var abandoned sync.WaitGroup
		endless := func(ctx context.Context, tx *sql.Tx, d webhooks.Delivery, c webhooks.Changes) error {
			if d.ID == "msg_7" {
				abandoned.Add(1)
				defer abandoned.Done()
				<-release
			}
			return record(ctx, tx, d, c)
		}
		context.AfterFunc(ctx, func() { close(release) })
		worker := &sqlstore.Worker{Store: store, Apply: endless, Attempts: 2, Delay: time.Nanosecond, Timeout: 400 * time.Millisecond}
		for ctx.Err() == nil && count(t, db, "labhealth_inbox") > 0 {
			_, _ = worker.Step(ctx) // some exceed the limit
		}
		if err := ctx.Err(); err != nil || count(t, db, "ledger") != 9 || count(t, db, "labhealth_dead_letters WHERE reason = 'it took too long'") != 1 {
			t.Errorf("%d in the ledger, %d dead letters, %v", count(t, db, "ledger"), count(t, db, "labhealth_dead_letters"), err)
		}
		cancel()
		abandoned.Wait()
		wantCount(t, db, "ledger", 9) // its transaction was over
	})
}

// Suspects are tried in the order in which batches exceeded the limit: of each, the small ones
// first. A large one does not wait for ever, while the one that spoiled a batch waits longer.
func TestOrderOfSuspects(t *testing.T) {
	t.Parallel()
	d := postgres(t) // with SQLite, one batch exceeds the limit at a time
	store, db := d.store(t), d.open(t)
	large := strings.Repeat("60 ", 300) + "60"
	for n := range 2 {
		receive(t, store, heartrates(fmt.Sprint("spoils_", n), n, "60"), heartrates(fmt.Sprint("large_", n), n, strings.Fields(large)...),
			heartrates(fmt.Sprint("small_", n), n, "60")) // a batch has one slot
	}
	var workers sync.WaitGroup
	for n := range 2 {
		started := make(chan struct{})
		worker := &sqlstore.Worker{Store: store, Batch: 3, Timeout: time.Duration(4+4*n) * time.Second}
		worker.Apply = func(ctx context.Context, _ *sql.Tx, _ webhooks.Delivery, _ webhooks.Changes) error {
			close(started)
			<-ctx.Done()
			return ctx.Err()
		}
		ended := make(chan struct{})
		workers.Go(func() {
			defer close(ended)
			if step, err := worker.Step(t.Context()); err == nil || step.Batch != 3 {
				t.Error(step, err)
			}
		})
		select {
		case <-started:
		case <-ended:
			t.Fatal("the batch exceeded the limit before its end")
		}
	}
	workers.Wait()
	rows, err := db.Query("SELECT delivery_id FROM labhealth_inbox ORDER BY due")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var got []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		got = append(got, id)
	}
	want := []string{"small_0", "large_0", "small_1", "large_1", "spoils_0", "spoils_1"}
	if len(got) > 0 && got[0] == "small_1" { // the slot of user 1 was first
		want = []string{"small_1", "large_1", "small_0", "large_0", "spoils_1", "spoils_0"}
	}
	if err := rows.Err(); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, want %v, %v", got, want, err)
	}
}

// The deliveries of a user who is locked are delayed together, and others are tried.
func TestLockedUser(t *testing.T) {
	t.Parallel()
	d := postgres(t)
	store, db := d.store(t), d.open(t)
	for n := range 20 {
		receive(t, store, heartrates(fmt.Sprint("locked_", n), 1, "60"))
	}
	receive(t, store, heartrates("good", 2, "60", "61", "62")) // larger
	lock, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Rollback()
	if _, err := lock.Exec("INSERT INTO labhealth_users (slot, user_id) VALUES ($1, $2)", sqlstore.Slot(user(1)), user(1).String()); err != nil {
		t.Fatal(err)
	}
	worker := &sqlstore.Worker{Store: store, Attempts: 1, Delay: time.Hour, Timeout: 2 * time.Second}
	applied := 0
	for range 4 { // the batch, one of the user, the other one
		step, _ := worker.Step(t.Context())
		applied += step.Applied
	}
	if applied != 1 || count(t, db, "labhealth_inbox WHERE attempts = 0 AND part = 1") != 20 {
		t.Errorf("%d applied, %d delayed", applied, count(t, db, "labhealth_inbox WHERE part = 1"))
	}
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("UPDATE labhealth_inbox SET due = 0"); err != nil {
		t.Fatal(err)
	}
	worker.Timeout = time.Minute
	if sum := drain(t, worker, db); sum.Applied != 20 {
		t.Errorf("%+v", sum)
	}
}

// Workers that wait for a worker that waits for a lock have waited for a lock.
func TestLockQueue(t *testing.T) {
	t.Parallel()
	d := postgres(t)
	store, db := d.store(t), d.open(t)
	const n = 3
	for i := range n {
		receive(t, store, heartrates(fmt.Sprint("msg_", i), 1, "60"))
	}
	if _, err := db.Exec("INSERT INTO labhealth_users (slot, user_id) VALUES ($1, $2)", sqlstore.Slot(user(1)), user(1).String()); err != nil {
		t.Fatal(err)
	}
	lock, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Rollback()
	if _, err := lock.Exec("SELECT 1 FROM labhealth_users FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	var workers sync.WaitGroup
	for range n {
		workers.Go(func() {
			worker := &sqlstore.Worker{Store: store, Batch: 1, Attempts: 1, Delay: time.Hour, Timeout: 4 * time.Second}
			if step, err := worker.Step(t.Context()); err != nil || step.Delayed != 1 {
				t.Error(step, err)
			}
		})
	}
	workers.Wait()
	wantCount(t, db, "labhealth_inbox WHERE attempts = 0", n)
	wantCount(t, db, "labhealth_dead_letters", 0)
}

// A delivery that a worker delays is counted once.
func TestBacklogWhileDelaying(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, db := d.store(t), d.open(t)
		const n = 500
		fill(t, db, n, time.Time{})
		worker := &sqlstore.Worker{Store: d.store(t), Batch: 1, Attempts: 1 << 30, Delay: time.Nanosecond, Poll: time.Millisecond}
		var failures atomic.Int64
		worker.Apply = func(context.Context, *sql.Tx, webhooks.Delivery, webhooks.Changes) error {
			failures.Add(1)
			return errors.New("canary")
		}
		ctx, cancel := context.WithCancel(t.Context())
		var workers sync.WaitGroup
		workers.Go(func() { worker.Run(ctx) })
		for calls, wrong := 0, 0; (calls < 300 || failures.Load() < 100) && wrong < 5; calls++ {
			b, err := store.Backlog(t.Context())
			if err != nil {
				t.Error(err)
				break
			}
			if b.Waiting+b.Delayed != n {
				wrong++
				t.Errorf("%d waiting and %d delayed, want %d", b.Waiting, b.Delayed, n)
			}
		}
		cancel()
		workers.Wait()
	})
}
