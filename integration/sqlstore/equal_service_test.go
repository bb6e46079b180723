package sqlstore_test

// What happens at the embedded service in TestEqualToService, and the network between it and the
// receiver.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

// The resources of the users. They have the same names in the API and in events.
var (
	sampleResources  = []string{"glucose", "heartrate", "steps"}
	summaryResources = []string{"sleep", "activity", "workouts", "body"}
)

// busyService is the embedded service with everything that happens there.
type busyService struct {
	*labhealthtest.Server
	clock   *serviceClock
	network *network
	random  *rand.Rand
	start   time.Time
	users   []uuid.UUID
	live    []*orderLife
	deleted []uuid.UUID // orders
}

// serviceClock is the clock of the service, which only the test moves.
type serviceClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *serviceClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *serviceClock) Set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

// startService starts a service that loses, doubles and reorders deliveries. Its time is in the
// last weeks, because a Reconciler reads those of wearable data.
func startService(t *testing.T, seed uint64, users int) *busyService {
	t.Helper()
	start := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -20)
	s := &busyService{clock: &serviceClock{now: start}, start: start, random: rand.New(rand.NewPCG(seed, 2)), network: newNetwork(t)}
	s.Server = labhealthtest.NewServer(t, labhealthtest.WithSeed(seed), labhealthtest.WithClock(s.clock.Now), labhealthtest.WithDeliveryLog(0))
	err := s.DeliverTo("http://receiver.example.com/", labhealthtest.WithTransport(s.network), labhealthtest.WithNetworkConditions(
		labhealthtest.NetworkConditions{Lose: 0.3, Duplicate: 0.2, Delay: 1, MaxDelay: time.Hour}))
	if err != nil {
		t.Fatal(err)
	}
	s.users = s.AddUsers(users)
	return s
}

// orderLife is an order with what will happen to it.
type orderLife struct {
	id   uuid.UUID
	plan []func(*busyService, *orderLife) error
}

func advance(s *busyService, l *orderLife) error {
	_, err := s.Advance(l.id)
	return err
}

func partial(s *busyService, l *orderLife) error     { return s.PartialResults(l.id) }
func cancelOrder(s *busyService, l *orderLife) error { return s.Cancel(l.id) }
func fail(s *busyService, l *orderLife) error        { return s.Fail(l.id, "sample_hemolyzed") }

// interpret changes the order without an event.
func interpret(s *busyService, l *orderLife) error { return s.SetInterpretation(l.id, "abnormal") }

// correct changes the results without a change of the order.
func correct(s *busyService, l *orderLife) error {
	return s.CorrectResult(l.id, 901, fmt.Sprint(150+s.random.IntN(90)))
}

// redraw adds an order, which completes after the others.
func redraw(s *busyService, l *orderLife) error {
	id, err := s.Redraw(l.id)
	s.live = append(s.live, &orderLife{id, repeat(advance, 3)})
	return err
}

// status returns a function that sets a status of walk-in tests.
func status(status string) func(*busyService, *orderLife) error {
	return func(s *busyService, l *orderLife) error { return s.SetStatus(l.id, status) }
}

func repeat(f func(*busyService, *orderLife) error, n int) (all []func(*busyService, *orderLife) error) {
	for range n {
		all = append(all, f)
	}
	return all
}

// plans are the lives of orders, in turn, with the collection method. The end of a life repeats
// advance until there is no next status.
var plans = []struct {
	method string
	plan   []func(*busyService, *orderLife) error
}{
	{"testkit", repeat(advance, 7)},
	{"walk-in", repeat(advance, 4)},
	{"at home", repeat(advance, 5)},
	{"on site", repeat(advance, 3)},
	{"testkit", []func(*busyService, *orderLife) error{advance, cancelOrder}},
	{"walk-in", []func(*busyService, *orderLife) error{advance, advance, partial, correct, partial, advance}},
	{"walk-in", []func(*busyService, *orderLife) error{advance, advance, advance, advance, interpret, correct, status("completed.walk_in_test.corrected")}},
	{"walk-in", []func(*busyService, *orderLife) error{advance, advance, partial}}, // still partial at the end
	{"on site", []func(*busyService, *orderLife) error{advance, advance, fail, redraw}},
	{"testkit", repeat(advance, 7)},
	{"testkit", repeat(advance, 4)}, // not complete at the end
	{"at home", []func(*busyService, *orderLife) error{advance, advance, status("collecting_sample.at_home_phlebotomy.appointment_cancelled"), advance, advance, advance, advance}},
	{"testkit", repeat(advance, 7)},
	{"walk-in", []func(*busyService, *orderLife) error{advance, advance, advance, advance, correct}}, // without an event
}

func (s *busyService) test(method string) uuid.UUID {
	switch method {
	case "testkit":
		return s.LabTests.Testkit
	case "walk-in":
		return s.LabTests.WalkIn
	case "at home":
		return s.LabTests.AtHome
	}
	return s.LabTests.OnSite
}

// wave adds orders and data, lives through all orders, and delivers their events in random order.
func (s *busyService) wave(t *testing.T, number, orders, samples int) {
	t.Helper()
	for i := range orders {
		s.clock.Set(s.clock.Now().Add(time.Millisecond))
		p := plans[i%len(plans)]
		id, err := s.AddOrder(s.users[s.random.IntN(len(s.users))], s.test(p.method))
		if err != nil {
			t.Fatal(err)
		}
		s.live = append(s.live, &orderLife{id, p.plan})
	}
	if err := s.addWearables(number, samples); err != nil {
		t.Fatal(err)
	}
	for len(s.live) > 0 {
		s.clock.Set(s.clock.Now().Add(time.Second))
		all := s.live
		s.live = nil
		for _, l := range all {
			if len(l.plan) == 0 {
				continue
			}
			if err := l.plan[0](s, l); err != nil {
				t.Fatalf("%v at %d steps before the end", err, len(l.plan))
			}
			l.plan = l.plan[1:]
			s.live = append(s.live, l)
		}
	}
	if err := s.Elapse(t.Context(), s.clock.Set); err != nil {
		t.Fatal(err)
	}
	s.network.flush(t)
}

// addWearables adds samples and summaries of every user. Some replace those of the wave before.
func (s *busyService) addWearables(wave, samples int) error {
	for i, id := range s.users {
		resource := sampleResources[i%len(sampleResources)]
		from := s.start.Add(time.Duration(wave*samples) * 5 * time.Minute)
		if err := s.AddSamples(id, resource, samples, labhealthtest.StartingAt(from)); err != nil {
			return err
		}
		if wave > 0 && s.random.IntN(4) == 0 {
			if err := s.AddSamples(id, resource, samples/2, labhealthtest.StartingAt(from.Add(-time.Hour))); err != nil {
				return err
			}
		}
		summary := summaryResources[(i+wave)%len(summaryResources)]
		for range 1 + s.random.IntN(2) {
			if _, err := s.AddSummary(id, summary, labhealthtest.StartingAt(s.start.AddDate(0, 0, wave/2))); err != nil {
				return err
			}
		}
	}
	return nil
}

// delete deletes some orders and a user.
func (s *busyService) delete(t *testing.T) {
	t.Helper()
	for i, id := range s.Orders() {
		if i%100 == 7 {
			if err := s.DeleteOrder(id); err != nil {
				t.Fatal(err)
			}
			s.deleted = append(s.deleted, id)
		}
	}
	s.request(t, http.MethodDelete, "/v2/user/"+s.users[0].String())
}

// request returns the body of a response, nil for 404.
func (s *busyService) request(t *testing.T, method, path string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("x-service-api-key", s.APIKey)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	switch {
	case err == nil && resp.StatusCode == http.StatusNotFound:
		return nil
	case err != nil || resp.StatusCode != http.StatusOK:
		t.Fatalf("%s %s: %d, %v", method, path, resp.StatusCode, err)
	}
	return body
}

// get decodes a response. ok is false for 404.
func get[T any](t *testing.T, s *busyService, path string) (v T, ok bool) {
	t.Helper()
	body := s.request(t, http.MethodGet, path)
	if body == nil {
		return v, false
	}
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	return v, true
}

// network delivers to a receiver that is killed and started again at another address. It accepts
// an event at once, posts several at the same time, and repeats what the receiver has not
// acknowledged.
type network struct {
	receiver atomic.Pointer[string] // URL
	posted   atomic.Int64           // acknowledged by the receiver
	pending  atomic.Int64
	queue    chan *http.Request
	client   *http.Client
}

func newNetwork(t *testing.T) *network {
	n := &network{queue: make(chan *http.Request, 200), client: &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}}
	var posters sync.WaitGroup
	for range 16 {
		posters.Go(func() {
			for r := range n.queue {
				for n.post(r) != nil && t.Context().Err() == nil {
					time.Sleep(time.Millisecond) // the receiver is being started
				}
				n.posted.Add(1)
				n.pending.Add(-1)
			}
		})
	}
	t.Cleanup(func() {
		close(n.queue)
		posters.Wait()
		n.client.CloseIdleConnections()
	})
	return n
}

// RoundTrip accepts a request of the service.
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	copied := &http.Request{Method: r.Method, Header: r.Header}
	copied.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	n.pending.Add(1)
	n.queue <- copied
	return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: r}, nil
}

// post posts an event once.
func (n *network) post(r *http.Request) error {
	url := n.receiver.Load()
	if url == nil {
		return io.EOF
	}
	body, _ := r.GetBody()
	req, err := http.NewRequest(r.Method, *url, body)
	if err != nil {
		return err
	}
	req.Header = r.Header
	resp, err := n.client.Do(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

// flush waits until the receiver has acknowledged all events.
func (n *network) flush(t *testing.T) {
	t.Helper()
	for before, since := n.posted.Load(), time.Now(); n.pending.Load() > 0; time.Sleep(time.Millisecond) {
		if now := n.posted.Load(); now != before {
			before, since = now, time.Now()
		}
		if time.Since(since) > time.Minute {
			t.Fatalf("the receiver has acknowledged nothing for a minute, and %d events wait", n.pending.Load())
		}
	}
}

// canonical returns JSON with sorted fields.
func canonical(t *testing.T, document []byte) string {
	t.Helper()
	var v any
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
