package sqlstore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
	case "receive", "receive and reconcile", "reconcile":
		runReceiver(t, d, job)
	case "churn":
		churn(t, d.store(t), seed)
	case "react":
		reactUntilKilled(t, d)
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
