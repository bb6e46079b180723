package webhooks

import (
	"context"
	"iter"
	"time"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
)

// EventOfOrder returns the event that delivers an order, with the type labtest.order.updated: store
// it as if it had been delivered, for example after [labhealth.OrdersService.Import] or
// [labhealth.OrdersService.Get]. receivedAt is the time just before the request. TeamID is that of
// the order, and ClientUserID empty. The error says that the order is nil, has no ID, or cannot be
// encoded as JSON.
func EventOfOrder(order *labhealth.Order, receivedAt time.Time) (*Event, error) {
	if order == nil || order.ID == uuid.Nil {
		return nil, errNoOrder
	}
	data, err := order.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return eventOf("labtest.order.updated", order.UserID, receivedAt, data)
}

const errNoOrder = permanentError("webhooks: EventOfOrder needs an order with an ID")

// ReadOrders reads orders from the API and returns an iterator over them, each as the event of
// [EventOfOrder]. ReceivedAt is a time before the request of its page. What is said of the iterator
// at [ReadSummaries] holds here too.
func ReadOrders(ctx context.Context, client *labhealth.Client, params labhealth.ListOrdersParams, opts ...labhealth.CallOption) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		receivedAt := time.Now()
		for order, err := range orZero(client).Orders.All(ctx, params, opts...) {
			if err != nil {
				yield(nil, err)
				return
			}
			event, err := EventOfOrder(order, receivedAt)
			if !yield(event, err) || err != nil {
				return
			}
		}
	}
}
