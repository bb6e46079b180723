package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// orderBook is a service with orders, and the events that it sends of them: a test delivers them as
// it likes.
type orderBook struct {
	service *labhealthtest.Server
	events  [][]byte
}

// newOrderBook takes n orders through part of their life.
func newOrderBook(t testing.TB, n int) *orderBook {
	t.Helper()
	b := &orderBook{service: labhealthtest.NewServer(t)}
	sink := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer sink.Close()
	if err := b.service.DeliverTo(sink.URL); err != nil {
		t.Fatal(err)
	}
	users := b.service.AddUsers(10)
	tests := b.service.LabTests
	for i := range n {
		id, err := b.service.AddOrder(users[i%len(users)], []uuid.UUID{tests.Testkit, tests.WalkIn, tests.AtHome}[i%3])
		if err != nil {
			t.Fatal(err)
		}
		steps := rand.IntN(8)
		for range steps {
			if _, err := b.service.Advance(id); err != nil {
				break // it is completed
			}
		}
		switch i % 10 {
		case 8:
			err = b.service.Fail(id, "sample_hemolyzed")
		case 9:
			b.service.Cancel(id) // or it is completed
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := b.service.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, d := range b.service.Deliveries() {
		b.events = append(b.events, d.Body)
	}
	return b
}

// client returns a client of the service.
func (b *orderBook) client(t testing.TB) *labhealth.Client {
	t.Helper()
	client, err := labhealth.NewClient(b.service.APIKey, labhealth.WithBaseURL(b.service.URL))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// environment is that of a process that reconciles with the service.
func (b *orderBook) environment() []string {
	return []string{"LABHEALTH_BASE_URL=" + b.service.URL, "LABHEALTH_API_KEY=" + b.service.APIKey}
}

// endLease ends the lease of a process that reconciled, as its time would.
func (p *place) endLease(t testing.TB) {
	t.Helper()
	if _, err := p.db.Exec("delete from labhealth_reconciled where name = 'lease'"); err != nil {
		t.Fatal(err)
	}
}

// entry is an entry in the timeline of an order.
type entry struct {
	ID     string
	At     string
	Status labhealth.OrderStatus
}

// bookedOrder is what a service and a store must agree on.
type bookedOrder struct {
	Document string
	Timeline []entry
}

// truth returns the orders of the service.
func (b *orderBook) truth(t testing.TB) map[uuid.UUID]bookedOrder {
	t.Helper()
	orders := map[uuid.UUID]bookedOrder{}
	for order, err := range b.client(t).Orders.All(t.Context(), labhealth.ListOrdersParams{}) {
		if err != nil {
			t.Fatal(err)
		}
		booked := bookedOrder{Document: documentOf(t, order)}
		for _, e := range order.Events {
			booked.Timeline = append(booked.Timeline, entry{strconv.FormatInt(e.ID, 10), e.CreatedAt.UTC().Format(time.RFC3339Nano), e.Status})
		}
		orders[order.ID] = booked
	}
	return orders
}

// stored returns the orders of a database.
func storedOrders(t testing.TB, stores ...*sqlstore.Store) map[uuid.UUID]bookedOrder {
	t.Helper()
	orders := map[uuid.UUID]bookedOrder{}
	for _, store := range stores {
		for stored, err := range store.Orders(t.Context(), sqlstore.OrderFilter{}) {
			if err != nil {
				t.Fatal(err)
			}
			booked := bookedOrder{Document: documentOf(t, stored.Order)}
			timeline, err := store.Timeline(t.Context(), stored.Order.ID)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range timeline {
				booked.Timeline = append(booked.Timeline, entry{e.ID, e.At.UTC().Format(time.RFC3339Nano), e.Status})
			}
			orders[stored.Order.ID] = booked
		}
	}
	return orders
}

// documentOf returns the JSON of an order with its fields in the order of their names.
func documentOf(t testing.TB, order *labhealth.Order) string {
	t.Helper()
	text, err := order.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	if text, err = json.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// check waits until the stores together have the orders of the service.
func (b *orderBook) check(t testing.TB, stores ...*sqlstore.Store) {
	t.Helper()
	want := b.truth(t)
	for ended := time.After(time.Minute); !cmp.Equal(want, storedOrders(t, stores...)); {
		select {
		case <-ended:
			t.Fatalf("the orders (-want +got):\n%s", cmp.Diff(want, storedOrders(t, stores...)))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// reactions receives what -react-url gets. It fails some of the requests, unless it is reliable.
type reactions struct {
	server   *httptest.Server
	reliable bool

	mu       sync.Mutex
	notices  map[uuid.UUID]notice
	attempts int
	problems []string
}

func newReactions(t testing.TB) *reactions {
	r := &reactions{notices: map[uuid.UUID]notice{}}
	r.server = httptest.NewServer(http.HandlerFunc(r.receive))
	t.Cleanup(r.server.Close)
	return r
}

func (r *reactions) receive(w http.ResponseWriter, req *http.Request) {
	var n notice
	err := json.NewDecoder(req.Body).Decode(&n)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempts++
	if key := req.Header.Get("Idempotency-Key"); err != nil || key != n.ID.String() {
		r.problems = append(r.problems, fmt.Sprintf("%v, key %q, ID %v", err, key, n.ID))
	}
	if was, ok := r.notices[n.ID]; ok && was != n {
		r.problems = append(r.problems, fmt.Sprintf("ID %v: %+v and %+v", n.ID, was, n))
	}
	if !r.reliable && rand.IntN(100) == 0 { // now and then after it has been processed
		w.WriteHeader(http.StatusServiceUnavailable)
		if rand.IntN(2) == 0 {
			return
		}
	}
	r.notices[n.ID] = n
}

// transitions returns the timelines by which the program was called, each ID once.
func (r *reactions) transitions() map[uuid.UUID][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := map[uuid.UUID][]string{}
	for _, n := range r.notices {
		if n.Kind == sqlstore.ReactTransition {
			found[n.OrderID] = append(found[n.OrderID], n.At.UTC().Format(time.RFC3339Nano)+" "+n.Status)
		}
	}
	for _, list := range found {
		slices.Sort(list)
	}
	return found
}

// check waits until every transition of the orders was reacted to, and compares them.
func (r *reactions) check(t testing.TB, orders map[uuid.UUID]bookedOrder) {
	t.Helper()
	want := map[uuid.UUID][]string{}
	for id, order := range orders {
		for _, e := range order.Timeline {
			want[id] = append(want[id], e.At+" "+string(e.Status))
		}
		slices.Sort(want[id])
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ctx.Err() == nil && !cmp.Equal(want, r.transitions()) {
		sleep(ctx, 20*time.Millisecond)
	}
	if diff := cmp.Diff(want, r.transitions()); diff != "" {
		t.Errorf("the reactions (-want +got):\n%s", diff)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, problem := range r.problems {
		t.Error(problem)
	}
}
