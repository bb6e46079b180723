// Sends events: signatures, retries, network faults.

package labhealthtest

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// deliveryTimeout is how long a receiver may take to respond.
const deliveryTimeout = 15 * time.Second

// endpoint is a URL to which the server posts events one at a time. Server.mu guards it.
type endpoint struct {
	url     string
	client  *http.Client
	keys    [][]byte // newest first
	waits   []time.Duration
	network NetworkConditions
	seed    [sha256.Size]byte
	// ownNetwork reports whether the endpoint was added with its network.
	ownNetwork bool

	ready   []*message // to be posted now
	waiting schedule   // to be posted later
	planned int        // number of messages that were added to waiting
	posting bool

	// The fields below are only set for webhooks of the management API.
	types        []string          // accepted event types, nil for all
	header       map[string]string // replaced on changes, never modified
	disabled     bool              // accepts no events
	removed      bool
	oldKeysUntil time.Time // until when the keys after the first sign too
}

// message is an event for one endpoint.
type message struct {
	id        string
	body      []byte
	attempt   int
	due       time.Time
	turn      int // order of messages that are due at the same time
	duplicate bool
}

// schedule is a heap of messages by time.
type schedule []*message

func (s schedule) Len() int      { return len(s) }
func (s schedule) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s schedule) Less(i, j int) bool {
	return cmp.Or(s[i].due.Compare(s[j].due), cmp.Compare(s[i].turn, s[j].turn)) < 0
}
func (s *schedule) Push(m any) { *s = append(*s, m.(*message)) }

func (s *schedule) Pop() any {
	last := len(*s) - 1
	m := (*s)[last]
	(*s)[last] = nil // release the body
	*s = (*s)[:last]
	return m
}

// newPoster returns the client that posts events. It uses no proxy and follows no redirects.
func newPoster() *http.Client {
	return &http.Client{
		Transport: &http.Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}

// addEndpoint adds an endpoint and starts to deliver its events.
func (s *Server) addEndpoint(e *endpoint) {
	s.endpoints = append(s.endpoints, e)
	s.running.Go(func() { s.deliver(e) })
}

// removeEndpoint stops the deliveries to an endpoint and drops its events.
func (s *Server) removeEndpoint(e *endpoint) {
	e.removed = true
	s.endpoints = slices.DeleteFunc(s.endpoints, func(other *endpoint) bool { return other == e })
	s.delivered.Broadcast()
}

// accepts reports whether an event is posted to the endpoint.
func (e *endpoint) accepts(event []byte) bool {
	if e.disabled || e.types == nil {
		return !e.disabled
	}
	var typed struct {
		Type string `json:"event_type"`
	}
	json.Unmarshal(event, &typed) // An invalid event has no type.
	return slices.Contains(e.types, typed.Type)
}

// add queues a new message.
func (e *endpoint) add(m *message, now time.Time) {
	m.due = now
	if e.random(m, "delay") < e.network.Delay {
		m.due = now.Add(time.Duration(e.random(m, "time") * float64(e.network.MaxDelay)))
		e.schedule(m)
		return
	}
	e.ready = append(e.ready, m)
}

// drops reports whether a new message never arrives.
func (e *endpoint) drops(m *message) bool { return e.random(m, "drop") < e.network.Lose }

// random returns a number in [0,1) that depends only on its arguments and the seed, so that
// concurrency does not change it.
func (e *endpoint) random(m *message, purpose string) float64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%x %s %d %s", e.seed, m.id, m.attempt, purpose))
	return float64(binary.LittleEndian.Uint64(sum[:])>>11) / (1 << 53)
}

// schedule queues a message after those that are due at the same time or earlier.
func (e *endpoint) schedule(m *message) {
	m.due = m.due.Add(time.Microsecond - 1).Truncate(time.Microsecond) // the precision of Server.now
	m.turn = e.planned
	e.planned++
	heap.Push(&e.waiting, m)
}

// isDue reports whether a waiting message is due. It calls the clock only if there is one.
func (s *Server) isDue(e *endpoint) bool {
	return len(e.waiting) > 0 && !e.waiting[0].due.After(s.now())
}

// next removes and returns the message to post now, or nil if there is none.
func (s *Server) next(e *endpoint) *message {
	for s.isDue(e) {
		e.ready = append(e.ready, heap.Pop(&e.waiting).(*message))
	}
	if len(e.ready) == 0 {
		return nil
	}
	m := e.ready[0]
	e.ready[0] = nil // release the body
	e.ready = e.ready[1:]
	return m
}

// nextAttempt returns the time of the next scheduled attempt. idle reports whether there is one and
// nothing can be posted before.
func (s *Server) nextAttempt() (next time.Time, idle bool) {
	for _, e := range s.endpoints {
		switch {
		case e.posting, len(e.ready) > 0, s.isDue(e):
			return time.Time{}, false
		case len(e.waiting) > 0 && (!idle || e.waiting[0].due.Before(next)):
			next, idle = e.waiting[0].due, true
		}
	}
	return next, idle
}

// deliver posts the events of an endpoint until the server is closed or the endpoint is removed.
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
		snapshot := e.snapshot(s.now)
		s.mu.Unlock()
		d.StatusCode, d.Err = s.post(snapshot, d, timestamp)
		s.mu.Lock()
		e.posting = false
		d.Lost = d.Err == nil && e.random(m, "lose") < e.network.LoseResponse
		s.logDelivery(d)
		s.complete(e, m, d)
		s.delivered.Broadcast()
	}
}

// complete reschedules a message after an attempt, or drops it.
func (s *Server) complete(e *endpoint, m *message, d Delivery) {
	acknowledged := d.acknowledged()
	switch {
	case m.duplicate:
		s.pending--
	case acknowledged && e.random(m, "duplicate") < e.network.Duplicate:
		m.duplicate = true
		m.attempt++
		e.ready = append(e.ready, m)
	case acknowledged || m.attempt > len(e.waits):
		s.pending--
	default:
		m.due = s.now().Add(e.waits[m.attempt-1])
		m.attempt++
		e.schedule(m)
	}
}

// drop drops the messages of a removed endpoint, and m unless it is nil.
func (s *Server) drop(e *endpoint, m *message) {
	s.pending -= len(e.ready) + len(e.waiting)
	if m != nil {
		s.pending--
	}
	e.ready, e.waiting = nil, nil
	s.delivered.Broadcast()
}

// sleep waits for a change, or until the next message of the endpoint may be due. It may not be due
// after that if the server's clock is not the system clock. Then the caller repeats the call.
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

// snapshot returns a copy for an attempt, without expired keys. It calls the clock only if needed.
func (e endpoint) snapshot(now func() time.Time) *endpoint {
	if len(e.keys) > 1 && !e.oldKeysUntil.IsZero() && !now().Before(e.oldKeysUntil) {
		e.keys = e.keys[:1]
	}
	return &e
}

// post makes one attempt to deliver an event. The timestamp is for the signature.
func (s *Server) post(e *endpoint, d Delivery, timestamp string) (statusCode int, err error) {
	ctx, cancel := context.WithTimeout(s.deliveryCtx, deliveryTimeout)
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
	io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be reused
	return resp.StatusCode, nil
}

// sign returns the value of the signature header.
func sign(keys [][]byte, id, timestamp string, body []byte) string {
	var signatures []string
	for _, key := range keys {
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(signatures, " ")
}

// derive returns pseudorandom bytes that depend on the team and the arguments. It does not use up
// the generator of IDs.
func (s *Server) derive(purpose string, number int) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%s %s %d", purpose, s.TeamID, number))
}
