package sqlstore_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// Some tests run this program in other processes. These variables are their parameters.
const (
	childJob     = "LABHEALTH_TEST_CHILD"
	childDialect = "LABHEALTH_TEST_CHILD_DIALECT"
	childDriver  = "LABHEALTH_TEST_CHILD_DRIVER"
	childSource  = "LABHEALTH_TEST_CHILD_SOURCE"
	childSeed    = "LABHEALTH_TEST_CHILD_SEED"
	childURL     = "LABHEALTH_TEST_CHILD_URL"
	childKey     = "LABHEALTH_TEST_CHILD_KEY"
)

func child(ctx context.Context, d database, job string, seed int) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestChild$", "-test.v")
	cmd.Env = append(os.Environ(), childJob+"="+job, childDialect+"="+strconv.Itoa(int(d.dialect)), childDriver+"="+d.driver,
		childSource+"="+d.source, childSeed+"="+strconv.Itoa(seed))
	cmd.Stderr = os.Stderr
	return cmd
}

// TestChild runs in the other processes.
func TestChild(t *testing.T) {
	job := os.Getenv(childJob)
	if job == "" {
		t.Skip("for processes that other tests start")
	}
	dialect, _ := strconv.Atoi(os.Getenv(childDialect))
	seed, _ := strconv.Atoi(os.Getenv(childSeed))
	d := database{sqlstore.Dialect(dialect), os.Getenv(childDriver), os.Getenv(childSource)}
	switch job {
	case "apply":
		var deadlocks atomic.Int64
		f := faults{seen: func(err error) {
			var state interface{ SQLState() string }
			if errors.As(err, &state) && state.SQLState() == "40P01" {
				deadlocks.Add(1)
			}
		}}
		store, err := sqlstore.Open(d.openFaulty(t, &f), d.dialect)
		if err != nil {
			t.Fatal(err)
		}
		deliveries := parse(t, crowd())
		r := rand.New(rand.NewPCG(uint64(seed), 9))
		r.Shuffle(len(deliveries), func(i, j int) { deliveries[i], deliveries[j] = deliveries[j], deliveries[i] })
		for len(deliveries) > 0 {
			n := min(1+r.IntN(40), len(deliveries))
			if _, err := store.ApplyAll(t.Context(), deliveries[:n]); err != nil {
				t.Fatal(err)
			}
			deliveries = deliveries[n:]
		}
		fmt.Printf("deadlocks %d\n", deadlocks.Load())
	case "receive", "receive and reconcile", "compare":
		runReceiver(t, d, job)
	case "reconcile":
		client, err := labhealth.NewClient(os.Getenv(childKey), labhealth.WithBaseURL(os.Getenv(childURL)))
		if err != nil {
			t.Fatal(err)
		}
		r := &sqlstore.Reconciler{Store: d.store(t), Client: client, Parallel: 1}
		if found, err := r.Since(t.Context(), time.Unix(int64(seed), 0)); err != nil || !found.Complete {
			t.Fatal(found, err)
		}
	case "churn":
		churn(t, d.store(t), seed)
	case "react":
		reactUntilKilled(t, d)
	case "work under attack":
		fmt.Println("working")
		hostileWorker(d.store(t), d).Run(t.Context())
	case "work":
		worker := &sqlstore.Worker{Store: d.store(t), Apply: record, Batch: 5, Poll: time.Millisecond}
		for { // an empty inbox is a success, too: others may have emptied it
			if _, err := worker.Step(t.Context()); err == nil {
				break
			}
		}
		fmt.Println("working")
		worker.Run(t.Context())
	}
}

// crowd returns the history that all processes apply.
func crowd() []webhooks.RawDelivery { return history(rand.New(rand.NewPCG(5, 5)), 400) }

// Eight processes that apply the same deliveries, each in its own order and batches, leave the
// content of one, without a deadlock.
func TestProcesses(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store := d.store(t)
		var all sync.WaitGroup
		for seed := range 8 {
			all.Go(func() {
				cmd := child(t.Context(), d, "apply", seed)
				out, err := cmd.StdoutPipe()
				if err != nil {
					t.Error(err)
					return
				}
				if err := cmd.Start(); err != nil {
					t.Error(err)
					return
				}
				deadlocks := "unknown"
				for lines := bufio.NewScanner(out); lines.Scan(); {
					fmt.Sscanf(lines.Text(), "deadlocks %s", &deadlocks)
				}
				if err := cmd.Wait(); err != nil || deadlocks != "0" {
					t.Errorf("%v, deadlocks: %s", err, deadlocks)
				}
			})
		}
		all.Wait()
		want, _, _ := reference(t, crowd())
		if diff := cmp.Diff(want, contentsOf(t, store)); diff != "" {
			t.Error(diff)
		}
	})
}

// Workers that are killed at any point lose nothing and apply nothing twice.
func TestKilledWorkers(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, db := d.store(t), ledger(t, d)
		maintain(t, store) // so that the workers, which are killed soon, have nothing to do but deliveries
		all := crowd()
		receive(t, store, all[:len(all)/4]...) // for the first step of the first worker
		kills := 6
		if long {
			kills = 60
		}
		var workers sync.WaitGroup
		var killed atomic.Int64
		for seed := range 3 {
			workers.Go(func() {
				r := rand.New(rand.NewPCG(uint64(seed), 1))
				for n := range kills / 3 {
					cmd := child(t.Context(), d, "work", seed)
					out, err := cmd.StdoutPipe()
					if err != nil {
						t.Error(err)
						return
					}
					if err := cmd.Start(); err != nil {
						t.Error(err)
						return
					}
					lines := bufio.NewScanner(out)
					for lines.Scan() && lines.Text() != "working" {
					}
					if n == 0 { // on a slow machine, the time below is too short
						eventually(t, "a worker to apply something", func() bool { return count(t, db, "ledger") > 0 })
					}
					time.Sleep(rand.N(100 * time.Millisecond)) // the moment is to be a random one
					cmd.Process.Kill()
					cmd.Wait()
					killed.Add(1)
					// What is left must be received while others work and die.
					for range len(all) / kills {
						if err := store.Receive(t.Context(), all[r.IntN(len(all))]); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		receive(t, store, all[:len(all)/2]...)
		workers.Wait()
		worked := count(t, db, "ledger") > 0
		receive(t, store, all...)
		drain(t, &sqlstore.Worker{Store: store, Apply: record}, db)
		check(t, d, store, all)
		if !worked {
			t.Error("the workers that were killed did nothing")
		}
	})
}

// hostileWorker is a worker whose function fails in every way now and then, also by a statement
// that takes too long and by ignoring its context.
func hostileWorker(store *sqlstore.Store, d database) *sqlstore.Worker {
	apply := func(ctx context.Context, tx *sql.Tx, delivery webhooks.Delivery, c webhooks.Changes) error {
		switch rand.IntN(60) {
		case 0:
			return errors.New("canary")
		case 1:
			panic("canary")
		case 2:
			_, err := tx.ExecContext(ctx, "INSERT INTO ledger (id, changed) VALUES (NULL, 1)")
			return err
		case 3:
			<-ctx.Done()
			return ctx.Err()
		case 4:
			<-time.After(2 * time.Second) // longer than the worker waits for it
		case 5:
			if d.dialect == sqlstore.PostgreSQL {
				_, err := tx.ExecContext(ctx, "SELECT pg_sleep(5)")
				return err
			}
		}
		return record(ctx, tx, delivery, c)
	}
	return &sqlstore.Worker{Store: store, Apply: apply, Batch: 8, Attempts: 1 << 20, Delay: time.Millisecond, Poll: time.Millisecond, Timeout: 500 * time.Millisecond}
}

// Whatever happens to workers at the same time, each delivery is applied once: some are killed, the
// function fails in every way, and the database is unavailable in between.
func TestWorkersUnderAttack(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, db := d.store(t), ledger(t, d)
		maintain(t, store)
		own, cut := store, func(bool) {}
		if d.dialect == sqlstore.PostgreSQL {
			u, err := url.Parse(d.source)
			if err != nil {
				t.Fatal(err)
			}
			p := newProxy(t, u.Host)
			u.Host, cut = p.listener.Addr().String(), p.cut
			if own, err = sqlstore.Open(database{d.dialect, d.driver, u.String() + "&statement_timeout=300"}.open(t), d.dialect); err != nil {
				t.Fatal(err)
			}
		}
		all := append(crowd()[:200], webhooks.RawDelivery{ID: "msg_bad", Body: []byte(`[]`), ReceivedAt: noon})
		kills := 3
		if long {
			all, kills = append(crowd(), all[200]), 60
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for range 2 {
			running.Go(func() { hostileWorker(own, d).Run(ctx) })
		}
		for n := range kills {
			receive(t, store, all[n*len(all)/kills:(n+1)*len(all)/kills]...)
			cmd := child(t.Context(), d, "work under attack", n)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "working"; {
			}
			cut(true)
			<-time.After(rand.N(500 * time.Millisecond)) // the moment is to be a random one
			cut(false)
			cmd.Process.Kill()
			cmd.Wait()
		}
		eventually(t, "all to be applied", func() bool { return count(t, db, "labhealth_inbox") == 0 })
		cancel()
		running.Wait()
		check(t, d, store, all)
	})
}
