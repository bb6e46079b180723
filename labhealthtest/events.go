package labhealthtest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/google/uuid"
)

// errClosed is the error of what cannot be done after Close.
var errClosed = errors.New("labhealthtest: the server is closed")

// envelope is the shape of every event.
type envelope struct {
	EventType    string    `json:"event_type"`
	Data         any       `json:"data"`
	TeamID       uuid.UUID `json:"team_id"`
	UserID       uuid.UUID `json:"user_id"`
	ClientUserID string    `json:"client_user_id"`
}

// DeliverTo makes the server post its events to an http or https address from now on, beside the addresses it was given before:
// labtest.order.created for each new order, labtest.order.updated for each later event of an order, both with the whole order as
// it was then, and provider.connection.created.
//
// Events are posted in the background, one after the other, in the order in which they came about. Without options they are not
// signed and are posted once whatever the answer is; [Signed], [Retried] and [Unreliable] deliver as the service does over the
// real network. Every delivery has the header svix-id, which is the same each time an event is posted.
//
// The interface document shows neither the headers, nor the signature, nor the attempts: they are those of the service family.
func (s *Server) DeliverTo(address string, opts ...DeliverOption) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("labhealthtest: events are delivered to an http or https address")
	}
	e := &endpoint{url: address, client: s.poster}
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
	e.seed = s.derive("endpoint", len(s.endpoints))
	s.endpoints = append(s.endpoints, e)
	s.running.Go(func() { s.deliver(e) })
	return nil
}

// Send delivers an event as it is given, valid or not, such as a wearable event that a test made up: the body of a webhook, or a
// webhooks.Event encoded to JSON. It fails where [Server.DeliverTo] has named no address.
func (s *Server) Send(event []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if len(s.endpoints) == 0 {
		return errors.New("labhealthtest: no address to send to, see DeliverTo")
	}
	s.enqueue(bytes.Clone(event))
	return nil
}

// Flush waits until every event was delivered or given up: until nothing is left to post. It fails when ctx ends or the server is
// closed before that. Events that wait for another attempt are waited for; where the clock does not go by itself, [Server.Elapse]
// does not wait for ever.
func (s *Server) Flush(ctx context.Context) error { return s.drain(ctx, nil) }

// Elapse is [Server.Flush] for a clock that stands still until it is set. Whenever all that is left to post waits for its time,
// Elapse calls set with the time of the next attempt, and set has to set the clock of [WithClock] to that time or a later one. So
// the 28 hours of the service's attempts pass in an instant:
//
//	srv := labhealthtest.NewServer(t, labhealthtest.WithClock(clock.Now))
//	err := srv.DeliverTo(url, labhealthtest.Signed(secret), labhealthtest.Retried())
//	...
//	err = srv.Elapse(ctx, clock.Set)
//
// A receiver that checks timestamps needs the same clock.
func (s *Server) Elapse(ctx context.Context, set func(now time.Time)) error {
	if set == nil {
		return errors.New("labhealthtest: Elapse needs a function that sets the clock")
	}
	return s.drain(ctx, set)
}

func (s *Server) drain(ctx context.Context, set func(time.Time)) error {
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

// emitOrder sends the event of an order whose newest event is new.
func (s *Server) emitOrder(o *order) {
	eventType := "labtest.order.updated"
	if len(o.Events) == 1 {
		eventType = "labtest.order.created"
	}
	s.emit(s.userByID[o.UserID], eventType, o)
}

// emit sends an event about a user. Nothing is kept where nobody listens.
func (s *Server) emit(u *user, eventType string, data any) {
	if len(s.endpoints) > 0 {
		s.enqueue(encode(envelope{eventType, data, s.TeamID, u.UserID, u.ClientUserID}))
	}
}

func (s *Server) enqueue(event []byte) {
	if s.closed {
		return
	}
	s.messages++
	id := s.derive("message", s.messages)
	for _, e := range s.endpoints {
		if !e.takes(event) {
			continue
		}
		e.add(&message{id: "msg_" + base64.RawURLEncoding.EncodeToString(id[:20]), body: event, attempt: 1}, s.now())
		s.pending++
	}
	s.delivered.Broadcast()
}

func contentType(body string) string {
	if json.Valid([]byte(body)) {
		return "application/json"
	}
	return "text/plain; charset=utf-8"
}
