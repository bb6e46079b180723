//go:build unix

package main

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

// soakOrders is a service whose orders change during a soak. One event in twenty is never
// delivered: the reconcilers find what it had said. There is a reaction to every transition.
type soakOrders struct {
	book    *orderBook
	reacted *reactions
	users   []uuid.UUID
	open    []uuid.UUID
	orders  int
	changes int
}

func newSoakOrders(t *testing.T) *soakOrders {
	o := &soakOrders{book: &orderBook{service: labhealthtest.NewServer(t)}, reacted: newReactions(t)}
	o.users = o.book.service.AddUsers(20)
	return o
}

// arguments are those of a process that reacts.
func (o *soakOrders) arguments() []string {
	return []string{"-react", "transition", "-react-url", o.reacted.server.URL, "-react-timeout", "5s"}
}

// deliverTo sends the events of the orders to a receiver.
func (o *soakOrders) deliverTo(t *testing.T, address string) {
	t.Helper()
	err := o.book.service.DeliverTo("http://"+address+"/events",
		labhealthtest.WithSigningSecrets(testSecret),
		labhealthtest.WithRetries(time.Second, 5*time.Second, 20*time.Second, time.Minute),
		labhealthtest.WithNetworkConditions(labhealthtest.NetworkConditions{Lose: 0.05, LoseResponse: 0.05, Duplicate: 0.05, Delay: 0.2, MaxDelay: 2 * time.Second}))
	if err != nil {
		t.Fatal(err)
	}
}

// change creates orders and takes them through their life until the returned function is called.
func (o *soakOrders) change(t *testing.T, every time.Duration) (stop func()) {
	ended := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if err := o.changeOne(); err != nil {
					t.Error(err)
					return
				}
			case <-ended:
				return
			}
		}
	})
	return func() {
		close(ended)
		done.Wait()
	}
}

func (o *soakOrders) changeOne() error {
	service := o.book.service
	o.changes++
	if len(o.open) == 0 || rand.IntN(6) == 0 {
		tests := service.LabTests
		id, err := service.AddOrder(o.users[rand.IntN(len(o.users))], []uuid.UUID{tests.Testkit, tests.WalkIn, tests.AtHome}[rand.IntN(3)])
		if err != nil {
			return err
		}
		o.open = append(o.open, id)
		o.orders++
		return nil
	}
	i := rand.IntN(len(o.open))
	if _, err := service.Advance(o.open[i]); err != nil { // it is completed
		o.open[i] = o.open[len(o.open)-1]
		o.open = o.open[:len(o.open)-1]
	}
	return nil
}

// check compares the orders and the reactions with the service.
func (o *soakOrders) check(t *testing.T, s *soak) {
	o.book.check(t, s.at.store, s.other.store)
	o.reacted.check(t, o.book.truth(t))
	t.Logf("%d orders with %d changes, %d attempts of %d reactions", o.orders, o.changes, o.reacted.attempts, len(o.reacted.notices))
}
