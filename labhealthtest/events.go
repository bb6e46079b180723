package labhealthtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/google/uuid"
)

// deliveryTimeout is how long a receiver may take to answer.
const deliveryTimeout = 15 * time.Second

// errClosed is the error of what cannot be done after Close.
var errClosed = errors.New("labhealthtest: the server is closed")

// Delivery is one event that was posted to an address of [Server.DeliverTo].
type Delivery struct {
	URL  string
	Body []byte
	// Status is what the receiver answered, 0 where it did not.
	Status int
	// Err tells why there is no status.
	Err error
}

// endpoint is an address that events are posted to, one after the other.
type endpoint struct {
	url   string
	queue [][]byte
}

// envelope is the shape of every event.
type envelope struct {
	EventType    string    `json:"event_type"`
	Data         any       `json:"data"`
	TeamID       uuid.UUID `json:"team_id"`
	UserID       uuid.UUID `json:"user_id"`
	ClientUserID string    `json:"client_user_id"`
}

// DeliverTo makes the server post its events to an http or https address from now
// on, beside the addresses it was given before: labtest.order.created for each new
// order, labtest.order.updated for each later event of an order, both with the
// whole order as it was then, and provider.connection.created. Events are posted
// in the background in the order in which they came about, once each whatever the
// answer is, and are not signed.
func (s *Server) DeliverTo(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("labhealthtest: events are delivered to an http or https address")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	e := &endpoint{url: address}
	s.endpoints = append(s.endpoints, e)
	s.running.Go(func() { s.deliver(e) })
	return nil
}

// Send delivers an event as it is given, valid or not, such as a wearable event
// that a test made up. It fails where [Server.DeliverTo] has named no address.
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

// Flush waits until every event was posted and answered, or could not be. It fails
// when ctx ends or the server is closed before that.
func (s *Server) Flush(ctx context.Context) error {
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
		s.delivered.Wait()
	}
	return nil
}

// Deliveries returns what was posted so far, in the order of the answers.
func (s *Server) Deliveries() []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.deliveries)
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
	for _, e := range s.endpoints {
		e.queue = append(e.queue, event)
		s.pending++
	}
	s.delivered.Broadcast()
}

// deliver posts the events of an endpoint until the server is closed.
func (s *Server) deliver(e *endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for len(e.queue) == 0 && !s.closed {
			s.delivered.Wait()
		}
		if s.closed {
			return
		}
		event := e.queue[0]
		e.queue = e.queue[1:]
		s.mu.Unlock()
		status, err := s.post(e.url, event)
		s.mu.Lock()
		s.deliveries = append(s.deliveries, Delivery{URL: e.url, Body: event, Status: status, Err: err})
		s.pending--
		s.delivered.Broadcast()
	}
}

// post makes one attempt to deliver an event.
func (s *Server) post(address string, event []byte) (status int, err error) {
	ctx, cancel := context.WithTimeout(s.ended, deliveryTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(event))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "labhealthtest")
	resp, err := s.poster.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	// Read, so that the connection is used again; not for ever, as nobody needs it.
	io.CopyN(io.Discard, resp.Body, 64<<10)
	return resp.StatusCode, nil
}

// newPoster makes the client that posts events: no proxy, and a redirect is an
// answer like any other.
func newPoster() *http.Client {
	return &http.Client{
		Transport: &http.Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}

func contentType(body string) string {
	if json.Valid([]byte(body)) {
		return "application/json"
	}
	return "text/plain; charset=utf-8"
}
