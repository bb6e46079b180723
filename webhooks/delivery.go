// RawDelivery, and the ID of a delivery.

package webhooks

import (
	"context"
	"time"

	"github.com/labhealth/labhealth-go/internal/newest"
)

// RawDelivery is a verified delivery whose body has not been parsed. It holds health data: printed
// or logged, it shows only its ID.
type RawDelivery struct {
	ID         string    // see [DeliveryID]; empty if it has none, which only [Unsigned] accepts
	Body       []byte    // the signed bytes
	ReceivedAt time.Time // when the request arrived
}

// Parse parses the body and sets the ReceivedAt of the event. It returns a *[ParseError] for a body
// that is not an event, as [Parse] does.
func (d RawDelivery) Parse() (Delivery, error) {
	e, err := Parse(d.Body)
	if err != nil {
		return Delivery{}, err
	}
	e.ReceivedAt = d.ReceivedAt
	return Delivery{Event: e, ID: d.ID}, nil
}

// DeliveryIDFrom returns the ID of the delivery from the context passed to your function, or "" if
// the delivery has none. The functions of package sqlstore that get an event find it there, too.
// Use it to set the ID of the [Delivery] passed to [Latest.Apply]:
//
//	latest.Apply(webhooks.Delivery{Event: event, ID: webhooks.DeliveryIDFrom(ctx)})
func DeliveryIDFrom(ctx context.Context) string {
	if ctx == nil {
		return ""
	}
	id, _ := ctx.Value(newest.DeliveryIDKey{}).(string)
	return id
}

// delivery is a delivery in the handler.
type delivery struct {
	id         string       // empty if there is none
	body       []byte       // nil until it is complete
	memory     *reservation // of the body
	receivedAt time.Time    // by the handler's clock
	start      time.Time    // the same moment by the clock of the runtime
}
