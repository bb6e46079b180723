// Orders that are read from the API, as events.

package webhooks

import (
	"context"
	"iter"
	"time"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/pagetime"
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
	event, err := eventOf(LabTestOrderUpdated, order.UserID, receivedAt, data)
	if err == nil {
		event.TeamID = order.TeamID
	}
	return event, err
}

const errNoOrder = permanentError("webhooks: EventOfOrder needs an order with an ID")

// ReadOrders reads orders from the API, page by page, and returns an iterator over them, each as
// the event of [EventOfOrder]. ReceivedAt is a time before the request of its page. Package
// sqlstore stores the events as if they had been delivered: an order that has changed at the
// service since the page was requested wins over the one of the page, and the other way round,
// because the service's own times are compared first.
//
// Pages are numbered, so an order that changes while they are read may be on two of them, or on
// none. To read what has changed, sort by created_at, which never changes, or read a little more
// than the period. What is said of the iterator at [ReadSummaries] holds here too.
func ReadOrders(ctx context.Context, client *labhealth.Client, params labhealth.ListOrdersParams, opts ...labhealth.CallOption) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		var requested time.Time
		ctx := pagetime.Store(ctx, &requested)
		for order, err := range orZero(client).Orders.All(ctx, params, opts...) {
			if err != nil {
				yield(nil, err)
				return
			}
			event, err := EventOfOrder(order, requested)
			if !yield(event, err) || err != nil {
				return
			}
		}
	}
}
