package main

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
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
func storedOrders(t testing.TB, store *sqlstore.Store) map[uuid.UUID]bookedOrder {
	t.Helper()
	orders := map[uuid.UUID]bookedOrder{}
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

// check compares the orders of a store with those of the service.
func (b *orderBook) check(t testing.TB, store *sqlstore.Store) {
	t.Helper()
	if diff := cmp.Diff(b.truth(t), storedOrders(t, store)); diff != "" {
		t.Errorf("the orders (-want +got):\n%s", diff)
	}
}
