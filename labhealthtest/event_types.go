// Invented events of every type.

package labhealthtest

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/reference"
)

var errNoEndpoint = errors.New("labhealthtest: no URL to send to, see DeliverTo")

// formerTypes are types of events that the service no longer sends, with the data of present types.
var formerTypes = []reference.Event{
	{Type: "historical.data.hypnogram.created", Data: "HistoricalPullCompleted"},
	{Type: "historical.data.device.created", Data: "HistoricalPullCompleted"},
	{Type: "labtest.appointment.update", Data: "ClientFacingAppointment"},
}

// SendEvent sends an invented event of a user. The type is any of the public API reference, such as
// "daily.data.glucose.updated", "historical.data.sleep.created" or "labtest.result.critical", or
// one of three former types: historical.data.hypnogram.created, historical.data.device.created and
// labtest.appointment.update. The data of daily.data.hypnogram.created and .updated and of
// daily.data.workout_stream.unavailable is not documented: use [Server.Send] for these. The
// server stores the wearable data of the event: see [Server.AddSummary], [Server.AddSamples], which
// makes twelve samples, and [Server.AddWorkout]. labtest.order events have the latest order of the
// user, if there is one. The other events report what the server does not store. [Undelivered] has
// no effect.
//
// SendEvent returns an error if the user does not exist, the type is unknown, or no URL was given
// to [Server.DeliverTo].
func (s *Server) SendEvent(userID uuid.UUID, eventType string, opts ...DataOption) error {
	o := newDataOptions(opts)
	o.undelivered = false
	events := append(reference.Events(), formerTypes...)
	i := slices.IndexFunc(events, func(e reference.Event) bool { return e.Type == eventType })
	if i < 0 {
		return fmt.Errorf("labhealthtest: no event type %q", eventType)
	}
	return s.addData(userID, func(u *user, w *wearables) error {
		switch {
		case s.closed:
			return errClosed
		case len(s.endpoints) == 0:
			return errNoEndpoint
		}
		parts := strings.Split(eventType, ".")
		resource := parts[len(parts)-2]
		o.action = parts[len(parts)-1]
		switch {
		case !strings.HasPrefix(eventType, "daily.data."):
			s.emit(u, eventType, s.inventData(u, eventType, events[i].Data, o))
		case resource == "workout_stream":
			s.emitWorkoutStream(u, s.addWorkout(600), o)
		case inventedSummaries[resource] != nil:
			_, err := s.addSummary(u, w, resource, o)
			return err
		default:
			return s.addSamples(u, w, resource, 12, o)
		}
		return nil
	})
}

// inventData returns the data of an event that does not deliver wearable data. typ is its type in
// the reference.
func (s *Server) inventData(u *user, eventType, typ string, o *dataOptions) any {
	if orders := s.ordersOf[u.UserID]; strings.HasPrefix(eventType, "labtest.order.") && len(orders) > 0 {
		return orders[len(orders)-1]
	}
	id := s.derive("event", s.messages)
	g := reference.NewGenerator(binary.LittleEndian.Uint64(id[:8]))
	g.Plausible, g.Now = true, s.now()
	provider := sourceOf(o.provider)
	g.Fixed = map[string]any{
		"user_id": u.UserID, "team_id": s.TeamID,
		"ClientFacingCriticalResult.interpretation": "critical",
		"ClientFacingDevice.provider":               o.provider, "ClientFacingDevice.source_type": o.sourceType,
		"HistoricalPullCompleted.provider": o.provider, "ProviderConnectionError.provider": o.provider,
		"ProviderConnectionCreated.provider": provider, "ProviderConnectionCreated.source": provider,
	}
	return json.RawMessage(g.Document("team", typ))
}
