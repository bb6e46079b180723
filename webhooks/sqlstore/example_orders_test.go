package sqlstore_test

import (
	"context"
	"fmt"
	"log"
	"net/http"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// This receiver keeps orders, and sends a message once when the results of one are there, also if
// its events were lost.
func Example_orders() {
	var store *sqlstore.Store    // of Open
	var client *labhealth.Client // of labhealth.NewClient
	ctx := context.Background()
	// sendMessage stands for a service that sends no second message with the same key.
	sendMessage := func(ctx context.Context, idempotencyKey string, userID uuid.UUID) error { return nil }

	store.Reactions = []sqlstore.ReactionKind{sqlstore.ReactResults} // first: before a worker is started
	reactor := &sqlstore.Reactor{Store: store, React: func(ctx context.Context, r sqlstore.Reaction) error {
		order, _, err := store.Order(ctx, r.OrderID)
		if err != nil || order.Results == sqlstore.ResultsPartial {
			return err
		}
		return sendMessage(ctx, r.OrderID.String(), r.UserID) // after an error it is called again
	}}
	go reactor.Run(ctx)
	reconciler := &sqlstore.Reconciler{Store: store, Client: client} // reads what was never delivered
	go reconciler.Run(ctx)

	http.HandleFunc("GET /orders", func(_ http.ResponseWriter, r *http.Request) {
		for order, err := range store.Orders(r.Context(), sqlstore.OrderFilter{Results: []sqlstore.ResultsState{sqlstore.ResultsFinal}}) {
			if err != nil {
				log.Print(err)
				return
			}
			fmt.Println(order.Order.ID, order.Status, order.Since, order.Results)
		}
	})
}
