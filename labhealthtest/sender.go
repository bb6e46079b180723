package labhealthtest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// deliveryTimeout is how long a receiver may take to answer.
const deliveryTimeout = 15 * time.Second

// retrySchedule is how long the service waits after each attempt that failed.
var retrySchedule = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 10 * time.Hour,
}

// Delivery is one attempt to deliver an event to an address of [Server.DeliverTo].
type Delivery struct {
	// URL is the address it was posted to.
	URL string
	// ID is the id of the event, as in the header svix-id.
	ID string
	// Body is the event.
	Body []byte
	// Attempt counts from 1.
	Attempt int
	// At is when the attempt was due. It is made then, or as soon as those before it are answered.
	At time.Time
	// Status is what the receiver answered, 0 where it did not.
	Status int
	// Err tells why there is no status.
	Err error
	// Lost is true where the receiver's answer got lost, see [DeliveryFaults], so that the server takes the attempt for a
	// failure.
	Lost bool
	// Duplicate is true where the event had been acknowledged before, see [DeliveryFaults].
	Duplicate bool
}

// String shows everything but the body: "msg_1, attempt 2: 204".
func (d Delivery) String() string {
	text := fmt.Sprint(d.ID, ", attempt ", d.Attempt, ": ")
	if d.Err != nil {
		text += d.Err.Error()
	} else {
		text += strconv.Itoa(d.Status)
	}
	if d.Lost {
		text += ", lost"
	}
	if d.Duplicate {
		text += ", duplicate"
	}
	return text
}

// DeliverOption changes how [Server.DeliverTo] delivers. One that makes no sense is an error of DeliverTo.
type DeliverOption func(*endpoint) error

// Signed signs each delivery in the headers svix-timestamp and svix-signature (Standard Webhooks, HMAC-SHA256), once with each
// secret, as the service does while a secret is being exchanged. The timestamp is that of the server's clock. A secret is base64
// with or without "whsec_" in front.
func Signed(secrets ...string) DeliverOption {
	return func(e *endpoint) error {
		if len(secrets) == 0 {
			return errors.New("Signed needs a secret")
		}
		for i, secret := range secrets {
			key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
			if err != nil || len(key) == 0 {
				return fmt.Errorf("secret %d of %d is not base64", i+1, len(secrets)) // without the secret
			}
			e.keys = append(e.keys, key)
		}
		return nil
	}
}

// Retried posts an event again until it is acknowledged with 2xx, after these waits by the clock of the server, and then gives it
// up. Without waits it does as the service does: seven more attempts after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h. See
// [Server.Elapse] for a clock that stands still.
func Retried(waits ...time.Duration) DeliverOption {
	return func(e *endpoint) error {
		if slices.ContainsFunc(waits, func(d time.Duration) bool { return d < 0 }) {
			return errors.New("Retried cannot wait for less than no time")
		}
		e.waits = waits
		if len(waits) == 0 {
			e.waits = retrySchedule
		}
		return nil
	}
}

// DeliveryFaults is what goes wrong between the service and a receiver. Shares are from 0, never, to 1, always. With [WithSeed]
// the same events meet the same faults in every run.
type DeliveryFaults struct {
	// LoseAnswer is the share of answers that get lost: the receiver has acknowledged and the server does not know.
	LoseAnswer float64
	// Duplicate is the share of acknowledged events that are posted once more.
	Duplicate float64
	// Delay is the share of events that are held back before the first attempt, so that later ones overtake them, for a time of
	// up to MaxDelay.
	Delay float64
	// MaxDelay is required with Delay.
	MaxDelay time.Duration
}

// Unreliable delivers with faults.
func Unreliable(f DeliveryFaults) DeliverOption {
	return func(e *endpoint) error {
		for _, share := range []float64{f.LoseAnswer, f.Duplicate, f.Delay} {
			if !(share >= 0 && share <= 1) {
				return errors.New("the shares of DeliveryFaults are from 0 to 1")
			}
		}
		if f.Delay > 0 && f.MaxDelay <= 0 {
			return errors.New("DeliveryFaults with Delay need a MaxDelay")
		}
		e.faults = f
		return nil
	}
}

// Through posts through a transport of the caller's: with connections in memory, or none at all. The server does not close it.
func Through(transport http.RoundTripper) DeliverOption {
	return func(e *endpoint) error {
		if transport == nil {
			return errors.New("Through needs a transport")
		}
		e.client = newPoster()
		e.client.Transport = transport
		return nil
	}
}

// newPoster makes the client that posts events: no proxy, and a redirect is an answer like any other.
func newPoster() *http.Client {
	return &http.Client{
		Transport: &http.Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}

// Deliveries returns the attempts made so far, in the order of the answers.
func (s *Server) Deliveries() []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.deliveries)
}

// endpoint is an address that events are posted to, one after the other. The mutex of the server guards it.
type endpoint struct {
	url    string
	client *http.Client
	keys   [][]byte
	waits  []time.Duration
	faults DeliveryFaults
	seed   [sha256.Size]byte

	ready   []*message // to be posted at once, in this order
	waiting []*message // to be posted when they are due, the next one first
	posting bool

	// What follows is set for webhooks of the management API.
	types    []string          // event types that are posted, nil for all
	header   map[string]string // sent with each event; replaced, never changed
	off      bool              // nothing new is posted
	removed  bool
	oldUntil time.Time // until when the keys after the first sign
}

// message is an event on its way to one endpoint.
type message struct {
	id        string
	body      []byte
	attempt   int
	due       time.Time
	duplicate bool
}

// add takes a new message.
func (e *endpoint) add(m *message, now time.Time) {
	m.due = now
	if e.chance(m, "delay") < e.faults.Delay {
		m.due = now.Add(time.Duration(e.chance(m, "time") * float64(e.faults.MaxDelay)))
		e.wait(m)
		return
	}
	e.ready = append(e.ready, m)
}

// chance returns a number from 0 to 1, without the 1, that is the same whenever it is asked for, so that the order of what
// happens at once changes nothing.
func (e *endpoint) chance(m *message, what string) float64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%x %s %d %s", e.seed, m.id, m.attempt, what))
	return float64(binary.LittleEndian.Uint64(sum[:])>>11) / (1 << 53)
}

// wait puts a message behind those that are due no later.
func (e *endpoint) wait(m *message) {
	m.due = m.due.Add(time.Microsecond - 1).Truncate(time.Microsecond) // as the server counts
	i, _ := slices.BinarySearchFunc(e.waiting, m.due, func(w *message, due time.Time) int {
		if w.due.After(due) {
			return 1
		}
		return -1
	})
	e.waiting = slices.Insert(e.waiting, i, m)
}

// next takes the message that is to be posted now, nil if there is none. It asks for the time only if a message waits for it.
func (s *Server) next(e *endpoint) *message {
	for len(e.waiting) > 0 && !e.waiting[0].due.After(s.now()) {
		e.ready = append(e.ready, e.waiting[0])
		e.waiting = e.waiting[1:]
	}
	if len(e.ready) == 0 {
		return nil
	}
	m := e.ready[0]
	e.ready = e.ready[1:]
	return m
}

// nextAttempt returns when the next attempt is due, if nothing can be posted before that.
func (s *Server) nextAttempt() (next time.Time, idle bool) {
	for _, e := range s.endpoints {
		switch {
		case e.posting, len(e.ready) > 0, len(e.waiting) > 0 && !e.waiting[0].due.After(s.now()):
			return time.Time{}, false
		case len(e.waiting) > 0 && (!idle || e.waiting[0].due.Before(next)):
			next, idle = e.waiting[0].due, true
		}
	}
	return next, idle
}

// deliver posts the events of an endpoint until the server is closed.
func (s *Server) deliver(e *endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		m := s.next(e)
		for m == nil && !s.closed && !e.removed {
			s.sleep(e)
			m = s.next(e)
		}
		if e.removed {
			s.drop(e, m)
		}
		if s.closed || e.removed {
			return
		}
		e.posting = true
		d := Delivery{URL: e.url, ID: m.id, Body: m.body, Attempt: m.attempt, At: m.due, Duplicate: m.duplicate}
		timestamp := ""
		if len(e.keys) > 0 {
			timestamp = strconv.FormatInt(s.now().Unix(), 10)
		}
		now := e.at(s.now)
		s.mu.Unlock()
		d.Status, d.Err = s.post(now, d, timestamp)
		s.mu.Lock()
		e.posting = false
		d.Lost = d.Err == nil && e.chance(m, "lose") < e.faults.LoseAnswer
		s.deliveries = append(s.deliveries, d)
		s.settle(e, m, d)
		s.delivered.Broadcast()
	}
}

// settle decides what becomes of a message after an attempt.
func (s *Server) settle(e *endpoint, m *message, d Delivery) {
	acknowledged := d.Status >= 200 && d.Status <= 299 && !d.Lost
	switch {
	case m.duplicate:
		s.pending--
	case acknowledged && e.chance(m, "duplicate") < e.faults.Duplicate:
		m.duplicate = true
		m.attempt++
		e.ready = append(e.ready, m)
	case acknowledged || m.attempt > len(e.waits):
		s.pending--
	default:
		m.due = s.now().Add(e.waits[m.attempt-1])
		m.attempt++
		e.wait(m)
	}
}

// sleep waits until something happens or the next message of the endpoint may be due. If the clock is not that of the runtime, it
// may not be; then this is repeated.
func (s *Server) sleep(e *endpoint) {
	if len(e.waiting) > 0 {
		timer := time.AfterFunc(max(e.waiting[0].due.Sub(s.now()), time.Millisecond), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.delivered.Broadcast()
		})
		defer timer.Stop()
	}
	s.delivered.Wait()
}

// post makes one attempt to deliver an event. The timestamp is for the signature.
func (s *Server) post(e *endpoint, d Delivery, timestamp string) (status int, err error) {
	ctx, cancel := context.WithTimeout(s.ended, deliveryTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL, bytes.NewReader(d.Body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "labhealthtest")
	req.Header.Set("Svix-Id", d.ID)
	for name, value := range e.header {
		req.Header.Set(name, value)
	}
	if len(e.keys) > 0 {
		req.Header.Set("Svix-Timestamp", timestamp)
		req.Header.Set("Svix-Signature", sign(e.keys, d.ID, timestamp, d.Body))
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	// Read, so that the connection is used again; not for ever, as nobody needs it.
	io.CopyN(io.Discard, resp.Body, 64<<10)
	return resp.StatusCode, nil
}

// sign makes the value of a signature header.
func sign(keys [][]byte, id, timestamp string, body []byte) string {
	var signatures []string
	for _, key := range keys {
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(signatures, " ")
}

// derive makes what looks random and is the same for the same team, so that it does not change what else the seed decides.
func (s *Server) derive(what string, number int) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%s %s %d", what, s.TeamID, number))
}
