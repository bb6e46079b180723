// Events: which are sent, when, and to whom.

package labhealthtest

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// errClosed is the error of methods that do not work after Close.
var errClosed = errors.New("labhealthtest: the server is closed")

// envelope is the JSON of every event.
type envelope struct {
	EventType    string    `json:"event_type"`
	Data         any       `json:"data"`
	TeamID       uuid.UUID `json:"team_id"`
	UserID       uuid.UUID `json:"user_id"`
	ClientUserID string    `json:"client_user_id"`
}

// DeliverTo makes the server post future events to an http or https URL, in addition to the URLs of
// earlier calls: labtest.order.created for each new order and labtest.order.updated for each later
// event of an order, except partial results (see [Server.SetPartialEvents]), both with the whole
// order at that time, labtest.appointment.created and labtest.appointment.updated likewise for
// appointments, and the events of connections, devices and added wearable data.
//
// The server posts events in the background, one at a time, in the order in which they occurred. By
// default it does not sign them and posts them once, regardless of the response.
// [WithSigningSecrets], [WithRetries] and [WithNetworkConditions] make it deliver like the service.
// Each delivery has the header svix-id, which is the same for all attempts of an event.
//
// The interface specification describes neither the headers, nor the signature, nor the attempts.
// They follow other services of the same family.
func (s *Server) DeliverTo(url string, opts ...DeliveryOption) error {
	if !isHTTPURL(url) {
		return errors.New("labhealthtest: events are delivered to an http or https URL")
	}
	e := &endpoint{url: url, client: s.poster}
	for _, opt := range opts {
		if opt == nil {
			continue
		}
		if err := opt(e); err != nil {
			return fmt.Errorf("labhealthtest: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if !e.ownNetwork {
		e.network = s.network
	}
	e.seed = s.derive("endpoint", len(s.endpoints))
	s.addEndpoint(e)
	return nil
}

// Send delivers an event unchanged, whether it is valid or not. The event is the body of a webhook,
// for example a wearable event or a webhooks.Event encoded to JSON. Send returns an error if no URL
// was given to [Server.DeliverTo].
func (s *Server) Send(event []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if len(s.endpoints) == 0 {
		return errNoEndpoint
	}
	s.enqueue(bytes.Clone(event))
	return nil
}

// Flush waits until each event is delivered or has no attempts left. It returns an error if ctx is
// done or the server is closed first. Flush also waits for scheduled attempts: with a clock that
// stands still, use [Server.Elapse].
func (s *Server) Flush(ctx context.Context) error { return s.flush(ctx, nil) }

// Elapse is like [Server.Flush] for a clock that stands still. When all remaining attempts are
// scheduled for later, Elapse calls set with the time of the next one. set must set the clock of
// [WithClock] to this time or a later one. So the 28 hours of the service's retry schedule elapse
// immediately:
//
//	srv := labhealthtest.NewServer(t, labhealthtest.WithClock(clock.Now))
//	err := srv.DeliverTo(url, labhealthtest.WithSigningSecrets(secret), labhealthtest.WithRetries())
//	...
//	err = srv.Elapse(ctx, clock.Set)
//
// A receiver that verifies timestamps needs the same clock.
func (s *Server) Elapse(ctx context.Context, set func(now time.Time)) error {
	if set == nil {
		return errors.New("labhealthtest: Elapse needs a function that sets the clock")
	}
	return s.flush(ctx, set)
}

func (s *Server) flush(ctx context.Context, set func(time.Time)) error {
	if ctx == nil {
		return errors.New("labhealthtest: ctx must not be nil: use context.Background() if there is no other")
	}
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.delivered.Broadcast()
	})
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.pending > 0 {
		if s.closed {
			return errClosed
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("labhealthtest: %d events not delivered: %w", s.pending, err)
		}
		next, idle := s.nextAttempt()
		if set == nil || !idle {
			s.delivered.Wait()
			continue
		}
		s.mu.Unlock()
		set(next)
		s.mu.Lock()
		if s.now().Before(next) {
			return errors.New("labhealthtest: Elapse was given a function that does not set the server's clock")
		}
		s.delivered.Broadcast()
	}
	return nil
}

// emitOrder sends the event of the latest change of an order.
func (s *Server) emitOrder(o *order) {
	eventType := "labtest.order.updated"
	switch {
	case len(o.Events) == 1:
		eventType = "labtest.order.created"
	case o.lowLevelStatus() == "partial_results" && !s.partialEvents.Load():
		return
	}
	s.emit(s.userByID[o.UserID], eventType, o)
}

// emit sends an event of a user. Without endpoints the event is dropped.
func (s *Server) emit(u *user, eventType string, data any) {
	if len(s.endpoints) > 0 {
		s.enqueue(encode(envelope{eventType, data, s.TeamID, u.UserID, u.ClientUserID}))
	}
}

func (s *Server) enqueue(event []byte) {
	if s.closed {
		return
	}
	s.countSent(event)
	s.messages++
	id := s.derive("message", s.messages)
	for _, e := range s.endpoints {
		if !e.accepts(event) {
			continue
		}
		m := &message{id: "msg_" + base64.RawURLEncoding.EncodeToString(id[:20]), body: event, attempt: 1}
		if e.drops(m) {
			s.logDelivery(Delivery{URL: e.url, ID: m.id, Body: event, Attempt: 1, At: s.now(), Dropped: true})
			continue
		}
		e.add(m, s.now())
		s.pending++
	}
	s.delivered.Broadcast()
}
