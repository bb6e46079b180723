// Deliveries of events, and the options of an endpoint.

package labhealthtest

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// retrySchedule is how long the service waits after each failed attempt.
var retrySchedule = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 10 * time.Hour,
}

// Delivery is an attempt to deliver an event to a URL of [Server.DeliverTo].
type Delivery struct {
	// URL is the URL of the receiver.
	URL string
	// ID is the ID of the event, as in the header svix-id.
	ID string
	// Body is the event.
	Body []byte
	// Attempt counts from 1.
	Attempt int
	// At is the time for which the attempt was scheduled. The server may make it later, after
	// earlier attempts to the same URL.
	At time.Time
	// StatusCode is the status code of the receiver's response, or 0 if there was none.
	StatusCode int
	// Err is the reason why there was no response.
	Err error
	// Lost reports whether the response was lost (see [NetworkConditions]), so that the server
	// treats the attempt as failed.
	Lost bool
	// Duplicate reports whether an earlier attempt had succeeded (see [NetworkConditions]).
	Duplicate bool
	// Dropped reports whether the event never arrived (see [NetworkConditions]). The server posted
	// nothing, treats the event as delivered and makes no further attempts.
	Dropped bool
}

// String describes the delivery without its body, such as "msg_1, attempt 2: 204".
func (d Delivery) String() string {
	text := fmt.Sprint(d.ID, ", attempt ", d.Attempt, ": ")
	switch {
	case d.Dropped:
		text += "dropped"
	case d.Err != nil:
		text += d.Err.Error()
	default:
		text += strconv.Itoa(d.StatusCode)
	}
	if d.Lost {
		text += ", lost"
	}
	if d.Duplicate {
		text += ", duplicate"
	}
	return text
}

// acknowledged reports whether the server treats the attempt as successful.
func (d Delivery) acknowledged() bool { return d.StatusCode >= 200 && d.StatusCode <= 299 && !d.Lost }

// WithDeliveryLog sets how many attempts [Server.Deliveries] returns at least: the latest n. The
// default is all, with their bodies, which is too much memory for millions of events.
func WithDeliveryLog(n int) Option {
	return func(s *Server) { s.deliveryLog = max(n, 0) }
}

// Deliveries returns the attempts made so far, or the latest ones (see [WithDeliveryLog]), in the
// order of their responses.
func (s *Server) Deliveries() []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.deliveries)
}

// logDelivery records an attempt for [Server.Deliveries].
func (s *Server) logDelivery(d Delivery) {
	if s.deliveryLog >= 0 && len(s.deliveries) > 2*s.deliveryLog {
		s.deliveries = slices.Delete(s.deliveries, 0, len(s.deliveries)-s.deliveryLog)
	}
	s.deliveries = append(s.deliveries, d)
	s.report(Activity{Delivery: &d})
}

// A DeliveryOption configures [Server.DeliverTo], which returns an error if the option is invalid.
type DeliveryOption func(*endpoint) error

// WithSigningSecrets signs each delivery with the headers svix-timestamp and svix-signature
// (Standard Webhooks, HMAC-SHA256). With several secrets, a delivery has several signatures, as it
// has while the service rotates a secret. The timestamp is the time of the server's clock. A secret
// is base64, with or without the prefix "whsec_".
func WithSigningSecrets(secrets ...string) DeliveryOption {
	return func(e *endpoint) error {
		if len(secrets) == 0 {
			return errors.New("WithSigningSecrets needs a secret")
		}
		for i, secret := range secrets {
			key, err := secretKey(secret)
			if err != nil || len(key) == 0 {
				return fmt.Errorf("secret %d of %d is not base64", i+1, len(secrets)) // without the secret
			}
			e.keys = append(e.keys, key)
		}
		return nil
	}
}

// WithRetries posts an event again until the receiver responds with 2xx. waits are the times
// between the attempts, by the server's clock. After the last one the server drops the event.
// Without waits it uses the schedule of the service: seven more attempts after 5 s, 5 min, 30 min,
// 2 h, 5 h, 10 h and 10 h. See [Server.Elapse] for a clock that stands still.
func WithRetries(waits ...time.Duration) DeliveryOption {
	return func(e *endpoint) error {
		if slices.ContainsFunc(waits, func(d time.Duration) bool { return d < 0 }) {
			return errors.New("WithRetries needs waits that are not negative")
		}
		e.waits = waits
		if len(waits) == 0 {
			e.waits = retrySchedule
		}
		return nil
	}
}

// WithTransport posts events with transport, for example to call a handler without a connection.
// The server does not close the transport.
func WithTransport(transport http.RoundTripper) DeliveryOption {
	return func(e *endpoint) error {
		if transport == nil {
			return errors.New("WithTransport needs a transport")
		}
		e.client = newPoster()
		e.client.Transport = transport
		return nil
	}
}

// NetworkConditions describes an unreliable network between the server and a receiver. Rates are
// from 0 (never) to 1 (always). With [WithSeed] the same events are affected in each run.
type NetworkConditions struct {
	// Lose is the rate of events that never arrive although the server treats them as delivered: it
	// does not post them, not even with [WithRetries]. [Delivery] has them as Dropped.
	Lose float64
	// LoseResponse is the rate of responses that are lost: the receiver has acknowledged the event,
	// but the server treats the attempt as failed.
	LoseResponse float64
	// Duplicate is the rate of acknowledged events that are posted again.
	Duplicate float64
	// Delay is the rate of events whose first attempt is delayed by up to MaxDelay, so that later
	// events arrive earlier. With a rate of 1, events that are sent at about the same time arrive
	// in random order: all that wait, if the clock stands still until [Server.Elapse].
	Delay float64
	// MaxDelay is required if Delay is not 0.
	MaxDelay time.Duration
}

// WithNetworkConditions delivers over an unreliable network.
func WithNetworkConditions(n NetworkConditions) DeliveryOption {
	return func(e *endpoint) error {
		e.network, e.ownNetwork = n, true
		return n.validate()
	}
}

func (n NetworkConditions) validate() error {
	for _, rate := range []float64{n.Lose, n.LoseResponse, n.Duplicate, n.Delay} {
		if !(rate >= 0 && rate <= 1) { // also rejects NaN
			return errors.New("the rates of NetworkConditions are from 0 to 1")
		}
	}
	if n.Delay > 0 && n.MaxDelay <= 0 {
		return errors.New("NetworkConditions with Delay need a MaxDelay")
	}
	return nil
}

// SetNetworkConditions changes the network to all receivers of the server's team: to those that it
// has, also with [WithNetworkConditions], and to those that are added later without. Events that
// are delayed already remain so. It returns an error if a rate is invalid, and changes nothing.
func (s *Server) SetNetworkConditions(n NetworkConditions) error {
	if err := n.validate(); err != nil {
		return fmt.Errorf("labhealthtest: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.network = n
	for _, e := range s.endpoints {
		e.network = n
	}
	return nil
}
