// Notify sends a message when the results of an order are there, although most events are lost:
//
//	go run ./notify
package main

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"time"

	"github.com/google/uuid"
	_ "modernc.org/sqlite"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// receive returns a handler of events. It keeps orders in a file, reads from the service what was
// never delivered, and calls send when the results of an order are there. After an error or a crash
// it calls send again, and so it does after a correction: by the ID of the order, as the key of the
// message, a mail service recognizes what it has sent.
func receive(ctx context.Context, client *labhealth.Client, file string, send func(orderID uuid.UUID) error) http.Handler {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_pragma=synchronous(FULL)")
	check(err)
	store, err := sqlstore.Open(db, sqlstore.SQLite)
	check(err)
	store.Reactions = []sqlstore.ReactionKind{sqlstore.ReactResults}
	check(store.Migrate(ctx))

	worker := &sqlstore.Worker{Store: store}
	reactor := &sqlstore.Reactor{Store: store, React: func(ctx context.Context, r sqlstore.Reaction) error {
		order, _, err := store.Order(ctx, r.OrderID)
		if err != nil || order.Results == sqlstore.ResultsPartial {
			return err
		}
		return send(r.OrderID)
	}}
	reconciler := &sqlstore.Reconciler{Store: store, Client: client, Interval: time.Second} // 5 minutes by default
	go worker.Run(ctx)
	go reactor.Run(ctx)
	go reconciler.Run(ctx)

	handler, err := webhooks.NewRawHandler(webhooks.Unsigned, store.Receive) // or webhooks.NewVerifier(secret)
	check(err)
	return handler
}

//go:embed order.json
var orderJSON []byte // of an invented patient

// main imports an order into an embedded service, which completes it and loses most events.
func main() {
	ctx := context.Background()
	today := time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)
	service, err := labhealthtest.Start(labhealthtest.WithSeed(2), labhealthtest.WithClock(func() time.Time { return today }))
	check(err)
	client, err := labhealth.NewClient(service.APIKey, labhealth.WithBaseURL(service.URL))
	check(err)
	dir, err := os.MkdirTemp("", "notify")
	check(err)
	defer os.RemoveAll(dir)
	sent := make(chan string)
	receiver := httptest.NewServer(receive(ctx, client, dir+"/labhealth.db", func(orderID uuid.UUID) error {
		sent <- fmt.Sprintf("the results of order %v are there", orderID)
		return nil
	}))
	check(service.DeliverTo(receiver.URL, labhealthtest.WithNetworkConditions(labhealthtest.NetworkConditions{Lose: 0.8})))

	var order labhealth.ImportOrderBody
	check(json.Unmarshal(orderJSON, &order))
	order.UserID = service.AddUser("ada")
	imported, err := client.Orders.Import(ctx, order)
	check(err)
	for err == nil {
		_, err = service.Advance(imported.Order.ID) // until it is completed
	}
	check(service.Flush(ctx))
	arrived := slices.DeleteFunc(service.Deliveries(), func(d labhealthtest.Delivery) bool { return d.Dropped })
	fmt.Println(len(arrived), "of", len(service.Deliveries()), "events have arrived")
	fmt.Println(<-sent)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
