package world

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	serviceAddress  = "127.0.0.1:8080"
	receiverAddress = "127.0.0.1:9090"
	secret          = "MDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1ub3BxcnN0dXY="
)

// settle is how long an import can take to create its order, at most.
const settle = 30 * time.Second

// service creates orders from imports, moves them through their statuses, and sends events. It
// knows nothing of the library, and counts what it commits.
type service struct {
	world   *world
	process *process
	client  *http.Client
	pending sync.WaitGroup // orders that are not created or not finished, and events that are not sent

	mu       sync.Mutex
	orders   []*serviceOrder // in the order of creation
	requests map[string]int  // imports, by sample ID
	lists    int
	lastID   int64           // of an event of an order
	created  map[string]bool // calls that have created an order
	acked    map[string]bool
	sent     map[string][]byte // the bodies of events, by ID
}

// serviceOrder is an order as the service has it.
type serviceOrder struct {
	ID        uuid.UUID    `json:"id"`
	UserID    uuid.UUID    `json:"user_id"`
	SampleID  string       `json:"sample_id"`
	CreatedAt time.Time    `json:"created_at"`
	UpdatedAt time.Time    `json:"updated_at"`
	Events    []orderEvent `json:"events"`
	LastEvent orderEvent   `json:"last_event"`
}

type orderEvent struct {
	ID        int64     `json:"id"`
	CreatedAt time.Time `json:"created_at"`
	Status    string    `json:"status"`
}

// statuses are what an order goes through.
var statuses = []string{
	"received.walk_in_test.ordered", "received.walk_in_test.requisition_created", "collecting_sample.walk_in_test.appointment_scheduled",
	"sample_with_lab.walk_in_test.draw_completed",
}

func newService(w *world) *service {
	s := &service{world: w, requests: map[string]int{}, created: map[string]bool{}, acked: map[string]bool{}, sent: map[string][]byte{}}
	s.process = newComputer(w, "service").start()
	s.client = newClient(s.process)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v3/order/import", s.importOrder)
	mux.HandleFunc("GET /orders", s.listOrders)
	mux.HandleFunc("GET /v3/order/{id}", s.getOrder)
	mux.HandleFunc("GET /v3/order/{id}/result", func(rw http.ResponseWriter, _ *http.Request) { respond(rw, 404, `{"detail":"no results"}`) })
	serve(s.process, serviceAddress, mux)
	return s
}

// newClient returns an HTTP client of a process.
func newClient(p *process) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: p.dial, MaxIdleConnsPerHost: 4}}
}

// serve starts an HTTP server of a process, which ends with it.
func serve(p *process, addr string, handler http.Handler) {
	l, err := p.computer.world.network.listen(p, addr)
	if err != nil {
		return
	}
	server := &http.Server{Handler: handler, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	p.running.Go(func() { server.Serve(l) })
	context.AfterFunc(p.ctx, func() { server.Close() })
}

func respond(rw http.ResponseWriter, status int, body string) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	io.WriteString(rw, body)
}

// importOrder creates an order, at once or later, even if its sender does not hear of it.
func (s *service) importOrder(rw http.ResponseWriter, req *http.Request) {
	w := s.world
	body, err := io.ReadAll(req.Body)
	var record struct {
		UserID   uuid.UUID `json:"user_id"`
		SampleID string    `json:"sample_id"`
	}
	if err != nil || json.Unmarshal(body, &record) != nil {
		panic(http.ErrAbortHandler)
	}
	s.mu.Lock()
	s.requests[record.SampleID]++
	n := s.requests[record.SampleID]
	isDuplicate := w.plan.unique && s.count(record.SampleID) > 0
	s.mu.Unlock()
	subject := "import " + record.SampleID
	delay, what := w.choices.within(200*time.Millisecond, subject, n), "created"
	fault := w.serviceFault(subject, n)
	switch {
	case strings.HasPrefix(record.SampleID, "R"), isDuplicate:
		w.history.add(subject, n, "rejected")
		respond(rw, 422, `{"detail":"no"}`)
		return
	case fault == 0:
		w.history.add(subject, n, "429")
		respond(rw, 429, `{"detail":"slow"}`)
		return
	case fault == 1:
		w.history.add(subject, n, "503")
		respond(rw, 503, `{"detail":"down"}`)
		return
	case fault >= 2 && fault <= 4:
		delay, what = w.choices.within(settle/2, subject, n), "created late"
	}
	if aimed, ok := w.killInFlight(record.SampleID, n); ok {
		delay, what = aimed, "created late"
	}
	w.history.add(subject, n, what)
	call := req.Header.Get(callHeader)
	s.pending.Go(func() { s.create(record.UserID, record.SampleID, call, n, delay) })
	switch fault {
	case 2:
		panic(http.ErrAbortHandler)
	case 3:
		respond(rw, 502, ``)
		return
	case 5:
		respond(rw, 200, `{"order":{"id":"`)
		return
	case 6:
		respond(rw, 200, `<html>`)
		return
	}
	time.Sleep(delay + time.Millisecond)
	respond(rw, 200, fmt.Sprintf(`{"order":{"id":%q},"status":"success","message":""}`, s.orderID(record.SampleID, n)))
}

func (s *service) orderID(sampleID string, n int) uuid.UUID {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:], s.world.choices.number("order "+sampleID, n))
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	id[6], id[8] = id[6]&0xf|0x40, id[8]&0x3f|0x80
	return id
}

func (s *service) count(sampleID string) (n int) {
	for _, o := range s.orders {
		if o.SampleID == sampleID {
			n++
		}
	}
	return n
}

// create creates an order after a delay, and moves it through its statuses.
func (s *service) create(user uuid.UUID, sampleID, call string, n int, delay time.Duration) {
	time.Sleep(delay)
	s.mu.Lock()
	if s.world.plan.unique && s.count(sampleID) > 0 {
		s.mu.Unlock()
		return
	}
	o := &serviceOrder{ID: s.orderID(sampleID, n), UserID: user, SampleID: sampleID, CreatedAt: time.Now().UTC()}
	s.orders = append(s.orders, o)
	s.created[call] = true
	s.mu.Unlock()
	subject := "order " + sampleID
	for i, status := range statuses[:1+s.world.choices.below(len(statuses), subject, n)] {
		if i > 0 {
			time.Sleep(s.world.choices.within(20*time.Second, subject, 100*n+i))
		}
		s.advance(o, i, status)
	}
}

// advance moves an order to a status, and sends the event of it.
func (s *service) advance(o *serviceOrder, i int, status string) {
	s.mu.Lock()
	s.lastID++
	o.UpdatedAt = time.Now().UTC()
	o.LastEvent = orderEvent{s.lastID, o.UpdatedAt, status}
	o.Events = append(slices.Clip(o.Events), o.LastEvent)
	s.world.history.add("order "+o.SampleID, i, status)
	kind := "labtest.order.updated"
	if i == 0 {
		kind = "labtest.order.created"
	}
	data, err := json.Marshal(o)
	s.mu.Unlock()
	if err != nil {
		panic(err)
	}
	s.send(fmt.Sprintf("order-%s-%d", o.ID, i), fmt.Appendf(nil, `{"event_type":%q,"user_id":%q,"data":%s}`, kind, o.UserID, data))
}

func (s *service) listOrders(rw http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	s.lists++
	n := s.lists
	s.mu.Unlock()
	if fault := s.world.serviceFault("list", n); fault >= 0 && fault < 3 {
		s.world.history.add("list", n, "503")
		respond(rw, 503, `{"detail":"down"}`)
		return
	}
	query := req.URL.Query()
	since := func(name string) time.Time {
		t, _ := time.Parse(time.RFC3339Nano, query.Get(name))
		return t
	}
	created, updated, ids := since("start_date"), since("updated_start_date"), query["order_ids"]
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*serviceOrder
	for _, o := range s.orders {
		isWanted := (query.Get("user_id") == "" || query.Get("user_id") == o.UserID.String()) &&
			(len(ids) == 0 || slices.Contains(ids, o.ID.String())) && !o.CreatedAt.Before(created) && !o.UpdatedAt.Before(updated)
		if isWanted {
			found = append(found, o)
		}
	}
	if query.Get("order_direction") != "asc" {
		slices.Reverse(found)
	}
	page, _ := strconv.Atoi(query.Get("page"))
	size := 3
	from, to := min(size*(max(page, 1)-1), len(found)), min(size*max(page, 1), len(found))
	document, err := json.Marshal(map[string]any{"orders": append([]*serviceOrder{}, found[from:to]...), "total": len(found), "page": max(page, 1), "size": size})
	if err != nil {
		panic(err)
	}
	respond(rw, 200, string(document))
}

func (s *service) getOrder(rw http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.orders {
		if o.ID.String() == req.PathValue("id") {
			document, err := json.Marshal(o)
			if err != nil {
				panic(err)
			}
			respond(rw, 200, string(document))
			return
		}
	}
	respond(rw, 404, `{"detail":"no order"}`)
}

// maxAttempts is the number of attempts to deliver an event.
const maxAttempts = 10

// send delivers an event: late, more than once, and in any order.
func (s *service) send(id string, body []byte) {
	if s.world.plan.importOnly {
		return
	}
	s.mu.Lock()
	s.sent[id] = body
	s.mu.Unlock()
	s.pending.Go(func() {
		c := s.world.choices
		if c.below(2, id+" wait", 0) == 0 {
			time.Sleep(c.within(30*time.Second, id+" wait", 1))
		}
		for attempt := 1; attempt <= maxAttempts; attempt++ {
			if s.deliver(id, body, attempt) {
				s.mu.Lock()
				s.acked[id] = true
				s.mu.Unlock()
				break
			}
			time.Sleep(time.Second<<min(attempt, 6) + c.within(time.Second, id+" backoff", attempt))
		}
		if c.below(4, id+" again", 0) == 0 {
			time.Sleep(c.within(time.Minute, id+" again", 1))
			s.deliver(id, body, maxAttempts+1)
		}
	})
}

// deliver reports whether the receiver has acknowledged the event.
func (s *service) deliver(id string, body []byte, attempt int) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+receiverAddress+"/", bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	req.GetBody = nil // so that net/http does not repeat it
	key, err := base64.StdEncoding.DecodeString(secret)
	if err != nil {
		panic(err)
	}
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	req.Header = http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {timestamp},
		"Webhook-Signature": {"v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))}}
	resp, err := s.client.Do(req)
	if err != nil {
		s.world.history.add("event "+id, attempt, "no response")
		return false
	}
	_, err = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	s.world.history.add("event "+id, attempt, resp.Status)
	isAcknowledged := err == nil && resp.StatusCode/100 == 2
	if isAcknowledged {
		s.world.cutAfterRepetition(attempt)
	}
	return isAcknowledged
}
