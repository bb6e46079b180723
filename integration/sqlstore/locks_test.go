package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// strict opens stores that report every error of the database, which they would repair by repeating
// a transaction.
func strict(t *testing.T, d database) *sqlstore.Store {
	t.Helper()
	f := &faults{seen: func(err error) { t.Errorf("the database: %v", err) }}
	store, err := sqlstore.Open(d.openFaulty(t, f), d.dialect)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// waiters returns how many sessions of the test wait for a lock of another one.
func waiters(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRow(`SELECT count(DISTINCT w.pid) FROM pg_locks AS w JOIN pg_locks AS h ON h.pid = w.pid
		JOIN pg_class AS c ON c.oid = h.relation JOIN pg_namespace AS s ON s.oid = c.relnamespace
		WHERE NOT w.granted AND s.nspname = current_schema()`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// eventually waits until a condition of the database holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("timeout: ", what)
		}
	}
}

// A batch can have more users than the server has places for locks (6,400 by default), and several
// such batches wait for each other without a deadlock.
func TestManyUsersInOneBatch(t *testing.T) {
	t.Parallel()
	d := postgres(t)
	d.store(t)
	const users = 7000
	var mu sync.Mutex
	var sum webhooks.Changes
	var all sync.WaitGroup
	for n := range 3 {
		store := strict(t, d)
		all.Go(func() {
			var raw []webhooks.RawDelivery
			for _, u := range rand.New(rand.NewPCG(uint64(n), 1)).Perm(users) {
				raw = append(raw, heartrates(fmt.Sprint("msg_", u), u, "60"))
			}
			applied, err := store.ApplyAll(t.Context(), parse(t, raw))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, a := range applied {
				sum.Added += a.Changes.Added
				sum.Same += a.Changes.Same
			}
		})
	}
	all.Wait()
	if sum.Added != users || sum.Same != 2*users {
		t.Errorf("added %d, same %d", sum.Added, sum.Same)
	}
}

// Workers with overlapping users wait for each other, and each change is counted once.
func TestOverlappingUsers(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		d.store(t)
		const users, minutes, workers, rounds = 12, 5, 8, 25
		var mu sync.Mutex
		var added, updated, rest int
		var all sync.WaitGroup
		for worker := range workers {
			store := strict(t, d)
			all.Go(func() {
				r := rand.New(rand.NewPCG(uint64(worker), 9))
				for range rounds {
					var raw []webhooks.RawDelivery
					for _, u := range r.Perm(users)[:1+r.IntN(users)] {
						one := heartrates("msg", u, slices.Repeat([]string{fmt.Sprint(r.IntN(3))}, minutes)...)
						one.ReceivedAt = noon.Add(time.Duration(r.IntN(3)) * time.Second)
						raw = append(raw, one)
					}
					applied, err := store.ApplyAll(t.Context(), parse(t, raw))
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					for _, a := range applied {
						added += a.Changes.Added
						updated += a.Changes.Updated
						rest += minutes - a.Changes.Added - a.Changes.Updated - a.Changes.Same - a.Changes.Older
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		// From the least version, each update of a sample is to a later second or a greater value.
		if added != users*minutes || rest != 0 || updated > 8*users*minutes {
			t.Errorf("added %d, updated %d, not counted %d", added, updated, rest)
		}
	})
}

// DeleteUser waits for deliveries in flight, those of a worker and those of a program that applies
// them itself, and deletes what they store.
func TestDeleteUserWaits(t *testing.T) {
	t.Parallel()
	d := postgres(t)
	store, db := d.store(t), d.open(t)
	for name, inFlight := range map[string]func(reached func()) error{
		"worker": func(reached func()) error {
			receive(t, store, heartrates(uuid.NewString(), 1, "60"))
			worker := &sqlstore.Worker{Store: store, Apply: func(context.Context, *sql.Tx, webhooks.Delivery, webhooks.Changes) error {
				reached()
				return nil
			}}
			_, err := worker.Step(t.Context())
			return err
		},
		"program": func(reached func()) error {
			f := &faults{before: func(operation string) error {
				if operation == "commit" {
					reached()
				}
				return nil
			}}
			own, err := sqlstore.Open(d.openFaulty(t, f), d.dialect)
			if err == nil {
				_, err = own.Apply(t.Context(), parse(t, []webhooks.RawDelivery{heartrates("msg_1", 1, "60")})[0])
			}
			return err
		},
	} {
		reached, finish := make(chan struct{}), make(chan struct{})
		var both sync.WaitGroup
		both.Go(func() {
			err := inFlight(func() {
				close(reached)
				<-finish
			})
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		<-reached
		both.Go(func() {
			if err := store.DeleteUser(t.Context(), user(1)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		eventually(t, "DeleteUser waits for the "+name, func() bool { return waiters(t, db) > 0 })
		close(finish)
		both.Wait()
		wantCount(t, db, "labhealth_samples", 0)
		wantCount(t, db, "labhealth_inbox", 0)
	}
}

// A program that stores a sample without the lock of its user, between the moment in which a
// transaction has looked for the sample and that in which it writes it, makes the transaction
// repeat itself.
func TestForeignWrite(t *testing.T) {
	t.Parallel()
	d := postgres(t)
	store, db := d.store(t), d.open(t)
	old, err := heartrates("msg_1", 1, "60").Parse()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Apply(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	late, err := heartrates("msg_2", 1, "61", "62").Parse()
	if err != nil {
		t.Fatal(err)
	}
	late.Event.ReceivedAt = noon.Add(time.Second)
	if _, err := db.Exec("DELETE FROM labhealth_samples"); err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec(`INSERT INTO labhealth_samples (slot, series, at, version, value, shape)
		SELECT f.slot, f.series, $1, 1, 50, f.shape FROM labhealth_shapes AS f`, noon.UnixNano()); err != nil {
		t.Fatal(err)
	}
	var applying sync.WaitGroup
	applying.Go(func() {
		changes, err := store.Apply(t.Context(), late)
		if changes.Added != 1 || changes.Updated != 1 || err != nil {
			t.Error(changes, err)
		}
	})
	eventually(t, "Apply waits", func() bool { return waiters(t, db) > 0 })
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	applying.Wait()
	samples := samplesOf(t, store.Range(t.Context(), ring(1), noon, noon.Add(time.Hour)))
	if len(samples) != 2 || samples[0].Value != 61 || samples[1].Value != 62 {
		t.Errorf("%d samples", len(samples))
	}
}
