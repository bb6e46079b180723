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
	case "work":
		worker := &sqlstore.Worker{Store: d.store(t), Apply: record, Batch: 5, Poll: time.Millisecond}
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
		all := crowd()
		kills := 6
		if long {
			kills = 60
		}
		var workers sync.WaitGroup
		var killed atomic.Int64
		for seed := range 3 {
			workers.Go(func() {
				r := rand.New(rand.NewPCG(uint64(seed), 1))
				for range kills / 3 {
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
		receive(t, store, all...)
		left := count(t, db, "labhealth_inbox")
		drain(t, &sqlstore.Worker{Store: store, Apply: record}, db)
		check(t, d, store, all)
		if left == len(all) {
			t.Error("the workers that were killed did nothing")
		}
	})
}
