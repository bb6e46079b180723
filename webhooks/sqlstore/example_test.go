package sqlstore_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// This receiver stores samples and orders, sends one message when the results of an order are there,
// and goes on after a restart. A program imports a driver for its side effect, here
// modernc.org/sqlite.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var client *labhealth.Client // of labhealth.NewClient
	webhookSecret := os.Getenv("LABHEALTH_WEBHOOK_SECRET")
	// sendMessage stands for a service that sends no second message with the same key.
	sendMessage := func(ctx context.Context, key, userID uuid.UUID) error { return nil }

	db, err := sql.Open("sqlite", "file:labhealth.db?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_pragma=synchronous(FULL)")
	if err != nil {
		log.Fatal(err)
	}
	receiver, err := sqlstore.NewReceiver(db, sqlstore.SQLite, sqlstore.ReceiverOptions{ // or sqlstore.PostgreSQL
		Secrets: []string{webhookSecret},
		Client:  client, // reads results, and what was never delivered
		OnResults: func(ctx context.Context, r sqlstore.StoredResults) error {
			return sendMessage(ctx, r.Key, r.Order.UserID) // after an error it is called again
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: ":8080", Handler: receiver, ReadHeaderTimeout: 10 * time.Second}
	go func() { log.Fatal(server.ListenAndServe()) }()
	log.Fatal(receiver.Run(ctx)) // returns when ctx is done, or on a permanent failure
}

// A program that uses the parts of a receiver on their own, such as in different processes.
func Example_parts() {
	var store *sqlstore.Store       // of Open
	var verifier *webhooks.Verifier // of webhooks.NewVerifier
	var client *labhealth.Client    // of labhealth.NewClient
	ctx := context.Background()

	store.Reactions = []sqlstore.ReactionKind{sqlstore.ReactTransition} // first, and in all processes that write
	if err := store.Migrate(ctx); err != nil {
		log.Fatal(err)
	}
	handler, err := webhooks.NewRawHandler(verifier, store.Receive) // acknowledges a delivery once it is stored
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/webhooks", handler)
	worker := &sqlstore.Worker{Store: store} // applies stored deliveries
	reactor := &sqlstore.Reactor{Store: store, React: func(context.Context, sqlstore.Reaction) error { return nil }}
	reconciler := &sqlstore.Reconciler{Store: store, Client: client} // reads what was never delivered
	for _, run := range []func(context.Context) error{worker.Run, reactor.Run, reconciler.Run} {
		go func() { log.Fatal(run(ctx)) }()
	}
}

// A program with two servers has a Store for each, and picks that of a user by the slot.
func ExampleSlot() {
	var lower, upper *sqlstore.Store // of Open
	var verifier *webhooks.Verifier  // of webhooks.NewVerifier

	stores := []*sqlstore.Store{lower, upper} // of slots 0 to 127, and 128 to 255
	storeOf := func(userID uuid.UUID) *sqlstore.Store {
		return stores[sqlstore.Slot(userID)*len(stores)/sqlstore.Slots]
	}
	handler, err := webhooks.NewRawHandler(verifier, func(ctx context.Context, d webhooks.RawDelivery) error {
		event, err := webhooks.ParseEnvelope(d.Body)
		if err != nil {
			return lower.Receive(ctx, d) // becomes a dead letter
		}
		return storeOf(event.UserID).Receive(ctx, d)
	})
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/webhooks", handler)
}

// The orders of which final results are stored.
func ExampleStore_Orders() {
	var store *sqlstore.Store // of Open
	filter := sqlstore.OrderFilter{Results: []sqlstore.ResultsState{sqlstore.ResultsFinal}}
	for order, err := range store.Orders(context.Background(), filter) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(order.Order.ID, order.Status, order.Since)
	}
}

// The heart rate of the last day of one user, from one source. [sqlstore.Store.UserSamples] merges
// those of all sources.
func ExampleStore_Range() {
	var store *sqlstore.Store // of Open
	ctx, userID := context.Background(), uuid.MustParse("0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4")

	ring := webhooks.Series{UserID: userID, Resource: "heartrate", Provider: "oura", SourceType: "ring"}
	for s, err := range store.Range(ctx, ring, time.Now().AddDate(0, 0, -1), time.Now()) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(s.Sample.Timestamp, s.Sample.Value, s.Sample.Unit)
	}
}

// Everything that is stored of one user as lines of JSON, such as for a request of access. Memory
// does not depend on how much that is.
func ExampleStore_UserSamples() {
	var store *sqlstore.Store // of Open
	ctx, userID := context.Background(), uuid.MustParse("0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4")

	lines := json.NewEncoder(os.Stdout)
	for s, err := range store.UserSamples(ctx, userID, "", time.Time{}, time.Time{}) {
		if err == nil {
			err = lines.Encode(map[string]any{"resource": s.Key.Resource, "provider": s.Key.Provider, "sample": s.Sample})
		}
		if err != nil {
			log.Fatal(err)
		}
	}
	for s, err := range store.UserSummaries(ctx, userID, "") {
		if err == nil {
			err = lines.Encode(map[string]any{"resource": s.Key.Resource, "summary": s.Data})
		}
		if err != nil {
			log.Fatal(err)
		}
	}
}

// What a worker's function writes is committed together with the samples.
func ExampleWorker() {
	var store *sqlstore.Store // of Open
	worker := &sqlstore.Worker{
		Store: store,
		Apply: func(ctx context.Context, tx *sql.Tx, d webhooks.Delivery, c webhooks.Changes) error {
			if c.Added+c.Updated == 0 {
				return nil
			}
			_, err := tx.ExecContext(ctx, `INSERT INTO to_compute (user_id) VALUES (?) ON CONFLICT DO NOTHING`, d.Event.UserID.String())
			return err
		},
		Observe: sqlstore.StepObserver{End: func(_ context.Context, s sqlstore.Step, err error) { fmt.Println(s.Applied, s.Dead, err) }},
	}
	worker.Run(context.Background())
}

// This program applies deliveries from a broker. Those of one transaction are acknowledged together
// after it. A batch that the database rejects is repeated one delivery at a time, to find the one
// at fault.
func ExampleStore_ApplyAll() {
	var store *sqlstore.Store // of Open

	// A nil error acknowledges all. After a Rejected [sqlstore.Error] they are applied one at a
	// time, and after any other error later.
	apply := func(ctx context.Context, raw []webhooks.RawDelivery) error {
		deliveries := make([]webhooks.Delivery, len(raw))
		failed := make([]error, len(raw))
		for i := range raw {
			deliveries[i], failed[i] = raw[i].Parse()
		}
		applied, err := store.ApplyAll(ctx, deliveries)
		if err != nil {
			return err
		}
		for i, a := range applied {
			if failed[i] == nil {
				failed[i] = a.Err // such as webhooks.ErrNoUser
			}
			if failed[i] != nil { // it will never be better
				if err := store.DeadLetter(ctx, raw[i], failed[i]); err != nil {
					return err
				}
			}
		}
		return nil
	}
	_ = apply
}

// A patient is notified once when results are there. The ID of the reaction is the idempotency key:
// a service that has seen it does nothing.
func ExampleReactor() {
	var store *sqlstore.Store // of Open
	send := func(ctx context.Context, idempotencyKey, userID uuid.UUID, text string) error { return nil }

	store.Reactions = []sqlstore.ReactionKind{sqlstore.ReactResults} // first, and in all processes that write
	reactor := &sqlstore.Reactor{Store: store, React: func(ctx context.Context, r sqlstore.Reaction) error {
		order, ok, err := store.Order(ctx, r.OrderID)
		if err != nil || !ok || order.Results != sqlstore.ResultsFinal {
			return err // nil: there is nothing to do
		}
		return send(ctx, r.ID, r.UserID, "Your results are there.")
	}}
	if err := reactor.Run(context.Background()); err != nil {
		log.Print(err)
	}
}
