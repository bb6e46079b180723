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
	"net/http/httptest"
	"os"
	"slices"
	"time"

	_ "modernc.org/sqlite"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// receive returns a receiver that keeps orders in a file, reads from the service what was never
// delivered, and calls send when the results of an order are there.
func receive(client *labhealth.Client, file string, send func(sqlstore.StoredResults) error) *sqlstore.Receiver {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_pragma=synchronous(FULL)")
	check(err)
	receiver, err := sqlstore.NewReceiver(db, sqlstore.SQLite, sqlstore.ReceiverOptions{
		Verifier:  webhooks.Unsigned, // or Secrets
		Client:    client,
		OnResults: func(_ context.Context, r sqlstore.StoredResults) error { return send(r) },
	})
	check(err)
	receiver.Reconciler.Interval = time.Second // 5 minutes by default
	return receiver
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
	receiver := receive(client, dir+"/labhealth.db", func(r sqlstore.StoredResults) error {
		sent <- fmt.Sprintf("the results of order %v are there", r.Order.Order.ID)
		return nil
	})
	go func() { check(receiver.Run(ctx)) }()
	endpoint := httptest.NewServer(receiver)
	check(service.DeliverTo(endpoint.URL, labhealthtest.WithNetworkConditions(labhealthtest.NetworkConditions{Lose: 0.8})))

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
