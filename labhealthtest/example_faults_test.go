package labhealthtest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// importOnce imports an order so that it is there once, whatever happens on the way. An import has no idempotency key: when
// nobody knows whether it was carried out, the sample id tells.
func importOnce(ctx context.Context, client *labhealth.Client, body labhealth.ImportOrderBody) (uuid.UUID, error) {
	resp, err := client.Orders.Import(ctx, body)
	switch labhealth.OutcomeOf(err) {
	case labhealth.OutcomeApplied:
		if err == nil {
			return resp.Order.ID, nil
		}
		// It was carried out, but the answer was lost: look for it.
	case labhealth.OutcomeUnknown:
		// It may have been carried out: look for it.
	default:
		return uuid.Nil, err // It was not. This error says why, and sending it again is safe.
	}
	for order, listErr := range client.Orders.All(ctx, labhealth.ListOrdersParams{UserID: body.UserID}) {
		if listErr != nil {
			return uuid.Nil, errors.Join(err, listErr) // still unknown: look again later, and do not import
		}
		if order.SampleID != nil && *order.SampleID == body.SampleID {
			return order.ID, nil
		}
	}
	// It is not there. An import may still be under way at the service: wait longer than it ever takes before importing again.
	return uuid.Nil, err
}

// An application that tests what it does when an import's connection is lost after the order was made.
func ExampleServer_FailAfter() {
	srv, err := labhealthtest.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.CloseIdleConnections()
	if err := srv.FailAfter("POST /v3/order/import", 1, labhealthtest.FaultClosed); err != nil {
		fmt.Println(err)
		return
	}

	user := srv.AddUser("ada")
	id, err := importOnce(context.Background(), client, importOf(srv, user, "SAMPLE-1"))
	fmt.Println("found:", id != uuid.Nil, err)
	page, err := client.Orders.List(context.Background(), labhealth.ListOrdersParams{UserID: user})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("orders:", len(page.Orders))
	// Output:
	// found: true <nil>
	// orders: 1
}
