package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/labhealth/labhealth-go/webhooks"
)

// road is a connection to a server that can be cut.
type road struct {
	listener net.Listener

	mu    sync.Mutex
	to    string
	cut   bool
	conns map[net.Conn]bool
}

func newRoad(t testing.TB, to string) *road {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &road{listener: l, to: to, conns: map[net.Conn]bool{}}
	t.Cleanup(func() {
		l.Close()
		r.set(true)
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go r.carry(c)
		}
	}()
	return r
}

func (r *road) carry(c net.Conn) {
	defer c.Close()
	r.mu.Lock()
	to := r.to
	r.mu.Unlock()
	far, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer far.Close()
	r.mu.Lock()
	if r.cut {
		r.mu.Unlock()
		return
	}
	r.conns[c], r.conns[far] = true, true
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.conns, c)
		delete(r.conns, far)
	}()
	go func() {
		defer c.Close()
		defer far.Close()
		io.Copy(far, c)
	}()
	io.Copy(c, far)
}

// set cuts the road and its connections, or restores it.
func (r *road) set(cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = cut
	for c := range r.conns {
		if cut {
			c.Close()
		}
	}
}

// lead makes the road lead to another server, and cuts its connections.
func (r *road) lead(t testing.TB, address string) {
	t.Helper()
	r.mu.Lock()
	r.to = hostOf(t, address)
	r.mu.Unlock()
	r.set(true)
	r.set(false)
}

// through replaces the host in an address.
func (r *road) through(t testing.TB, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = r.listener.Addr().String()
	return u.String()
}

func hostOf(t testing.TB, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// load delivers messages, one every few milliseconds, until it is stopped.
type load struct {
	ctx    context.Context
	cancel context.CancelFunc
	client *http.Client
	done   sync.WaitGroup

	mu       sync.Mutex
	messages []message
	attempts int
}

func startLoad(t testing.TB, addresses ...string) *load {
	l := &load{client: newClient()}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	t.Cleanup(l.cancel)
	t.Cleanup(l.client.CloseIdleConnections)
	for range 4 {
		user := uuid.New()
		l.done.Go(func() {
			for n := 0; l.ctx.Err() == nil; n++ {
				m := message{"msg_" + uuid.NewString(), batch(user, []int{5 * n, 5*n + 1, 5*n + 2, 5*n + 3, 5*n + 4}, func(i int) float64 { return float64(n) })}
				if !l.send(t, addresses, m) {
					return
				}
			}
		})
	}
	return l
}

// send delivers a message until it is acknowledged, and then waits a little. It returns false if
// that fails.
func (l *load) send(t testing.TB, addresses []string, m message) bool {
	tries, err := deliver(t.Context(), l.client, addresses, m)
	if err != nil {
		t.Error(err)
		return false
	}
	l.mu.Lock()
	l.messages = append(l.messages, m)
	l.attempts += tries
	l.mu.Unlock()
	sleep(l.ctx, 5*time.Millisecond)
	return true
}

func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.messages)
}

// stop stops the load after the last deliveries are acknowledged.
func (l *load) stop() {
	l.cancel()
	l.done.Wait()
}

// difference compares the database with what was acknowledged. No sample was sent twice, so the
// order does not matter.
func (l *load) difference(t *testing.T, at *place) string {
	t.Helper()
	var want webhooks.Latest
	for _, m := range l.messages {
		d, err := webhooks.RawDelivery{ID: m.id, Body: m.body}.Parse()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := want.Apply(d); err != nil {
			t.Fatal(err)
		}
	}
	expected := map[webhooks.SampleKey]webhooks.Sample{}
	for k, s := range want.Samples() {
		expected[k] = s
	}
	return diffSamples(expected, stored(t, at))
}

func (l *load) check(t *testing.T, at *place) {
	t.Helper()
	if diff := l.difference(t, at); diff != "" {
		t.Errorf("the state (-want +got):\n%s", diff)
	}
	t.Logf("%d deliveries, %d attempts", len(l.messages), l.attempts)
}

// While the broker is unavailable, nothing is acknowledged. When it is available again, processing
// continues.
func TestBrokerAway(t *testing.T) { onBrokers(t, testBrokerAway) }

func testBrokerAway(t *testing.T, at *place) {
	r := newRoad(t, hostOf(t, at.nats))
	direct := at.nats
	at.nats = r.through(t, direct)
	receiver, worker := ready(t, at.args("receive")...), ready(t, at.args("work")...)
	l := startLoad(t, receiver.events)
	wait(t, time.Minute, "events", func() bool { return worker.metrics(t)["labhealth_worker_deliveries_total result=applied"] > 20 })
	if got := []int{receiver.status(t, "/readyz"), receiver.status(t, "/healthz"), worker.status(t, "/readyz")}; !cmp.Equal(got, []int{200, 200, 200}) {
		t.Errorf("receiver ready and healthy, worker ready: %v", got)
	}

	r.set(true)
	wait(t, time.Minute, "503", func() bool {
		return receiver.metrics(t)["labhealth_webhook_deliveries_total duplicate=false event_type= late=false reason=failed"] > 10
	})
	if got := []int{receiver.status(t, "/readyz"), receiver.status(t, "/healthz"), worker.status(t, "/readyz")}; !cmp.Equal(got, []int{503, 200, 503}) {
		t.Errorf("without the broker: receiver ready and healthy, worker ready: %v", got)
	}
	began, before := time.Now(), l.count()
	status := post(l.client, receiver.events, message{"msg_away", batch(uuid.New(), []int{1}, func(int) float64 { return 1 })})
	if took := time.Since(began); status != 503 || took > 8*time.Second {
		t.Errorf("%d after %v, want 503 before the service gives up waiting", status, took)
	}
	if l.count() != before {
		t.Errorf("%d deliveries were acknowledged without a broker", l.count()-before)
	}

	r.set(false)
	wait(t, time.Minute, "deliveries to be acknowledged again", func() bool { return l.count() > before+100 })
	l.stop()
	at.drained(t)
	l.check(t, at)
}

// limitStream limits the size of the stream, as an operator may.
func (at *place) limitStream(t *testing.T, bytes int64) {
	t.Helper()
	stream, err := at.js.Stream(t.Context(), at.stream)
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.MaxBytes = bytes
	if _, err := at.js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
}

// Whoever starts leaves a stream that is there as it is.
func TestStreamIsLeftAsItIs(t *testing.T) { onBrokers(t, testStreamIsLeftAsItIs) }

func testStreamIsLeftAsItIs(t *testing.T, at *place) {
	receiver := ready(t, at.args("receive")...)
	client := newClient()
	defer client.CloseIdleConnections()
	const most = 50_000_000
	at.limitStream(t, most)
	if status := post(client, receiver.events, message{"msg_1", batch(uuid.New(), []int{1}, func(int) float64 { return 5 })}); status != 204 {
		t.Errorf("%d, want 204", status)
	}
	ready(t, at.args("work")...)
	at.drained(t)
	stream, err := at.js.Stream(t.Context(), at.stream)
	if err != nil {
		t.Fatal(err)
	}
	if got := stream.CachedInfo().Config.MaxBytes; got != most {
		t.Errorf("the stream holds at most %d bytes now, not %d", got, most)
	}
}

// A broker without space rejects new messages and keeps the others.
func TestBrokerFull(t *testing.T) { onBrokers(t, testBrokerFull) }

func testBrokerFull(t *testing.T, at *place) {
	receiver := ready(t, at.args("receive")...)
	client := newClient()
	defer client.CloseIdleConnections()
	at.limitStream(t, 20_000)
	user, taken, status := uuid.New(), 0, 0
	next := func() message {
		return message{fmt.Sprintf("msg_%d", taken), batch(user, []int{taken}, func(int) float64 { return 5 })}
	}
	for taken < 1000 {
		if status = post(client, receiver.events, next()); status != 204 {
			break
		}
		taken++
	}
	if n := at.pending(t); status != 503 || taken < 10 || n != taken {
		t.Errorf("%d after %d deliveries, of which the broker has %d", status, taken, n)
	}
	at.limitStream(t, -1)
	if status := post(client, receiver.events, next()); status != 204 {
		t.Errorf("%d, want 204", status)
	}
	ready(t, at.args("work")...)
	at.drained(t)
	if n := len(stored(t, at)); n != taken+1 {
		t.Errorf("%d samples, want %d", n, taken+1)
	}
}

// A broker that is killed and restarted has lost nothing that it acknowledged.
func TestBrokerKilled(t *testing.T) {
	t.Run("required", func(t *testing.T) {
		t.Parallel()
		killBroker(t, startServer(t, ""))
	})
	t.Run("installed", func(t *testing.T) {
		program := installedServer()
		if program == "" {
			t.Skip("LABHEALTH_TEST_NATS is not set, or there is no nats-server on this machine to be killed")
		}
		t.Parallel()
		killBroker(t, startServer(t, program))
	})
}

func killBroker(t *testing.T, server *serverProcess) {
	at := newPlaceOn(t, server.address)
	p := ready(t, at.args("all")...)
	l := startLoad(t, p.events)
	kills := 2
	if long {
		kills = 20
	}
	for range kills {
		before := l.count()
		wait(t, time.Minute, "deliveries to be acknowledged", func() bool { return l.count() > before+50 })
		server.kill()
		server.start(t)
	}
	l.stop()
	wait(t, time.Minute, "the broker", func() bool { return p.status(t, "/readyz") == 200 })
	// The stream need not be empty: a server that was killed may keep messages that were
	// acknowledged.
	wait(t, time.Minute, "all events to be applied", func() bool { return l.difference(t, at) == "" })
	l.check(t, at)
}

// Deliveries are taken before the database is there, and applied when it is.
func TestDatabaseComesLater(t *testing.T) {
	t.Parallel()
	at := newPlace(t)
	r := newRoad(t, hostOf(t, at.postgres))
	at.postgres = r.through(t, at.postgres)
	r.set(true)
	p := launch(t, at.args("all")...)
	client := newClient()
	defer client.CloseIdleConnections()
	if _, err := deliver(t.Context(), client, []string{p.events}, message{"msg_early", batch(uuid.New(), []int{1}, func(int) float64 { return 5 })}); err != nil {
		t.Fatal(err)
	}
	if n := at.pending(t); n != 1 || p.status(t, "/readyz") != 503 {
		t.Errorf("%d events wait, ready: %d", n, p.status(t, "/readyz"))
	}
	r.set(false)
	at.drained(t)
	if n := len(stored(t, at)); n != 1 {
		t.Errorf("%d samples", n)
	}
}

// A receiver can start before its broker.
func TestBrokerComesLater(t *testing.T) {
	t.Parallel()
	at := newPlace(t)
	r := newRoad(t, hostOf(t, at.nats))
	at.nats = r.through(t, at.nats)
	r.set(true)
	p := launch(t, at.args("all")...)
	m := message{"msg_early", batch(uuid.New(), []int{1}, func(int) float64 { return 5 })}
	client := newClient()
	defer client.CloseIdleConnections()
	if status := post(client, p.events, m); status != 503 || p.status(t, "/readyz") != 503 {
		t.Errorf("%d, want 503", status)
	}
	logs(t, p, `level=ERROR msg="the broker cannot be used" error="the broker is unavailable"`)
	r.set(false)
	if _, err := deliver(t.Context(), client, []string{p.events}, m); err != nil {
		t.Fatal(err)
	}
	at.drained(t)
	if n := len(stored(t, at)); n != 1 {
		t.Errorf("%d samples", n)
	}
}

// While the database is unavailable, deliveries are acknowledged and wait in the broker.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	away := 2 * time.Second
	if long {
		away = 10 * time.Second
	}
	at := newPlace(t)
	receiver := ready(t, at.args("receive")...)
	r := newRoad(t, hostOf(t, at.postgres))
	direct := at.postgres
	at.postgres = r.through(t, direct)
	worker := ready(t, at.args("work")...)
	l := startLoad(t, receiver.events)
	wait(t, time.Minute, "events", func() bool { return worker.metrics(t)["labhealth_worker_deliveries_total result=applied"] > 20 })

	r.set(true)
	began, before := time.Now(), l.count()
	wait(t, time.Minute, "the worker to notice", func() bool { return worker.status(t, "/readyz") == 503 })
	sleep(t.Context(), away-time.Since(began))
	if receiver.status(t, "/readyz") != 200 || l.count() < before+100 {
		t.Errorf("%d deliveries were acknowledged while the database was away", l.count()-before)
	}
	if n := receiver.metrics(t)["labhealth_webhook_deliveries_total duplicate=false event_type= late=false reason=failed"]; n != 0 {
		t.Errorf("%v deliveries were rejected", n)
	}
	r.set(false)
	l.stop()
	at.drained(t)
	l.check(t, at)
	if failedBatches(worker.metrics(t)) == 0 {
		t.Error("the worker did not count that batches failed")
	}
}

// What can never be applied becomes a dead letter, and the rest is applied.
func TestPoison(t *testing.T) {
	onDatabases(t, func(t *testing.T, at *place) {
		p := ready(t, at.args("all")...)
		client := newClient()
		defer client.CloseIdleConnections()
		const canary = "5417.25"
		user := uuid.New()
		good := batch(user, []int{1, 2, 3}, func(i int) float64 { return float64(i) })
		for _, m := range []message{
			{"msg_1", good},
			{"msg_2", []byte(`{"event_type":"daily.data.glucose.updated","data":{"data":[{"value":` + canary + `}`)},
			{"msg_3", []byte(`{"event_type":"daily.data.glucose.updated","data":{"data":[{"timestamp":"2026-01-01T00:00:00Z","value":` + canary + `}]}}`)},
			{"msg_4", bytes.Replace(good, []byte(`"event_type":"daily.data.glucose.updated"`), []byte(`"event_type":"moon > phase.*..changed"`), 1)},
			{"msg_5", batch(user, []int{3, 4}, func(i int) float64 { return float64(i + 10) })},
		} {
			if status := post(client, p.events, m); status != 204 {
				t.Errorf("%s: %d, want 204", m.id, status)
			}
		}
		at.drained(t)
		if n := len(stored(t, at)); n != 4 {
			t.Errorf("%d samples, want 4", n)
		}
		var dead []string
		for d, err := range at.store.DeadLetters(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(d.Delivery.Body, []byte(canary)) || d.Delivery.ReceivedAt.IsZero() {
				t.Errorf("%s: the body or the time was not kept", d.Delivery.ID)
			}
			dead = append(dead, d.Delivery.ID)
			if strings.Contains(d.Reason, canary) {
				t.Errorf("%s: the reason quotes the body", d.Delivery.ID)
			}
		}
		slices.Sort(dead) // Two batches can be under way at a time.
		if diff := cmp.Diff([]string{"msg_2", "msg_3"}, dead); diff != "" {
			t.Errorf("dead letters (-want +got):\n%s", diff)
		}
		p.terminate(t)
		if log := p.log.String(); strings.Contains(log, canary) || strings.Contains(log, user.String()) || strings.Contains(log, testSecret) {
			t.Errorf("the log holds what it should not:\n%s", log)
		}
	})
}

// A batch that waits for a lock moves to the inbox, where the deliveries of other users are
// applied. None becomes a dead letter, and the locked one is applied when it can be.
func TestLock(t *testing.T) {
	t.Parallel()
	at := newPlace(t)
	at.ackWait = "2s"
	receiver := ready(t, at.args("receive")...)
	client := newClient()
	defer client.CloseIdleConnections()
	send := func(id string, user uuid.UUID, minute int) {
		t.Helper()
		if status := post(client, receiver.events, message{id, batch(user, []int{minute}, func(int) float64 { return 1 })}); status != 204 {
			t.Errorf("%s: %d, want 204", id, status)
		}
	}
	user, other := uuid.New(), uuid.New()
	send("msg_1", user, 1)
	first := ready(t, at.args("work")...)
	at.drained(t)
	first.terminate(t)
	tx, err := at.db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec("select from labhealth_users for update"); err != nil {
		t.Fatal(err)
	}
	send("msg_2", user, 2)
	for n := range 20 {
		send(fmt.Sprintf("msg_other_%d", n), other, n)
	}
	p := ready(t, at.args("work", "-parallel", "1")...) // which gets all of them at once, that one first
	wait(t, time.Minute, "the others to be applied", func() bool { return at.pending(t) == 1 && at.inbox(t) == 1 })
	if failedBatches(p.metrics(t)) == 0 {
		t.Error("the worker did not count that batches failed")
	}
	tx.Rollback()
	at.drained(t)
	if n := len(stored(t, at)); n != 22 {
		t.Errorf("%d samples, want 22", n)
	}
	if dead := at.deadLetters(t); len(dead) > 0 {
		t.Errorf("dead letters: %v", dead)
	}
}

// What the database rejects becomes a dead letter with its body, and the rest of its batch is
// applied.
func TestRejected(t *testing.T) {
	t.Parallel()
	at := newPlace(t)
	if _, err := at.db.Exec("alter table labhealth_samples add constraint invented check (value <> 7)"); err != nil {
		t.Fatal(err)
	}
	receiver := ready(t, at.args("receive")...)
	client := newClient()
	defer client.CloseIdleConnections()
	for n := range 20 {
		m := message{fmt.Sprintf("msg_%d", n), batch(uuid.New(), []int{n}, func(int) float64 { return float64(n) })}
		if status := post(client, receiver.events, m); status != 204 {
			t.Fatalf("%d, want 204", status)
		}
	}
	ready(t, at.args("work")...)
	wait(t, time.Minute, "the others to be applied", func() bool { return at.pending(t) == 1 && len(stored(t, at)) == 19 })
	var left string
	var attempts int
	if err := at.db.QueryRow("select delivery_id, attempts from labhealth_inbox").Scan(&left, &attempts); err != nil || left != "msg_7" {
		t.Errorf("%s is left after %d attempts: %v", left, attempts, err)
	}
	if _, err := at.db.Exec("update labhealth_inbox set attempts = 9, due = 1"); err != nil { // the last attempt, now
		t.Fatal(err)
	}
	wait(t, time.Minute, "a dead letter", func() bool { return cmp.Equal(at.deadLetters(t), []string{"msg_7"}) })
}

// While the broker hangs, a receiver holds at most 256 MiB of bodies, and acknowledges none.
func TestOverload(t *testing.T) {
	t.Parallel()
	server := startServer(t, "")
	p := ready(t, newPlaceOn(t, server.address).args("receive")...)
	client := newClient()
	client.Timeout = time.Minute
	defer client.CloseIdleConnections()
	body := bytes.Repeat([]byte("x"), 7<<20)
	server.cmd.Process.Signal(syscall.SIGSTOP)
	var sending sync.WaitGroup
	var ended, refused atomic.Int64
	for n := range 60 { // 420 MiB
		sending.Go(func() {
			switch status := post(client, p.events, message{fmt.Sprintf("msg_%d", n), body}); status {
			case http.StatusServiceUnavailable:
				refused.Add(1)
			case http.StatusBadRequest: // a body that is not complete by the deadline
			default:
				t.Errorf("%d, want 503", status)
			}
			ended.Add(1)
		})
	}
	most := 0.0
	wait(t, time.Minute, "60 responses", func() bool {
		most = max(most, p.metrics(t)["labhealth_webhook_in_flight_bytes"])
		return ended.Load() == 60
	})
	sending.Wait()
	if most < 100<<20 || most > 256<<20 || refused.Load() == 0 {
		t.Errorf("%.0f bytes were in flight, and %d deliveries were refused", most, refused.Load())
	}
	server.cmd.Process.Signal(syscall.SIGCONT)
	if _, err := deliver(t.Context(), client, []string{p.events}, message{"msg_after", body}); err != nil {
		t.Error(err)
	}
}

// Requeued dead letters are applied by the worker of the inbox.
func TestRequeue(t *testing.T) {
	onDatabases(t, func(t *testing.T, at *place) {
		ready(t, at.args("all")...)
		raw := webhooks.RawDelivery{ID: "msg_1", Body: batch(uuid.New(), []int{1}, func(int) float64 { return 5 }), ReceivedAt: day}
		if err := at.store.DeadLetter(t.Context(), raw, webhooks.ErrNoUser); err != nil {
			t.Fatal(err)
		}
		for d, err := range at.store.DeadLetters(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if found, err := at.store.Requeue(t.Context(), d.ID); !found || err != nil {
				t.Fatal(found, err)
			}
		}
		wait(t, time.Minute, "the sample", func() bool { return len(stored(t, at)) == 1 })
	})
}

// A shutdown under load rejects no delivery that it can process, finishes the current batches, and
// leaves no events to be repeated.
func TestShutdown(t *testing.T) {
	onDatabases(t, func(t *testing.T, at *place) {
		address := freePort(t)
		launched := []*process{ready(t, at.args("all", "-addr", address)...)}
		l := startLoad(t, address)
		for n := range 3 {
			p := launched[n]
			wait(t, time.Minute, "events", func() bool { return p.metrics(t)["labhealth_worker_deliveries_total result=applied"] > 50 })
			p.terminate(t)
			launched = append(launched, ready(t, at.args("all", "-addr", address)...))
		}
		l.stop()
		at.drained(t)
		l.check(t, at)
		if n := launched[3].metrics(t)["labhealth_worker_changes_total change=same"]; n != 0 {
			t.Errorf("%v samples were left to be applied again", n)
		}
	})
}

// The metrics count what happened.
func TestMetrics(t *testing.T) { onBrokers(t, testMetrics) }

func testMetrics(t *testing.T, at *place) {
	receiver, worker := ready(t, at.args("receive")...), ready(t, at.args("work")...)
	client := newClient()
	defer client.CloseIdleConnections()
	user := uuid.New()
	for n := range 10 {
		m := message{fmt.Sprintf("msg_%d", n), batch(user, []int{n, n + 1, n + 2}, func(int) float64 { return float64(n) })}
		if n == 9 {
			m.body = []byte("poison")
		}
		for range 2 {
			if status := post(client, receiver.events, m); status != 204 {
				t.Fatalf("%d, want 204", status)
			}
		}
		at.drained(t) // one after the other
	}
	resp, err := client.Post("http://"+receiver.events+"/events", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	// Another receiver has not stored its ID.
	other := ready(t, at.args("receive")...)
	again := message{"msg_0", batch(user, []int{0, 1, 2}, func(int) float64 { return 0 })}
	if status := post(client, other.events, again); status != 204 {
		t.Fatalf("%d, want 204", status)
	}

	pick := func(all map[string]float64, names ...string) map[string]float64 {
		picked := map[string]float64{}
		for name, v := range all {
			for _, n := range names {
				if v != 0 && strings.HasPrefix(name, n) {
					picked[name] = v
				}
			}
		}
		return picked
	}
	for what, c := range map[string]struct{ got, want map[string]float64 }{
		"receiver": {pick(receiver.metrics(t), "labhealth_webhook_"), map[string]float64{
			"labhealth_webhook_deliveries_total duplicate=false event_type= late=false reason=stored":   10,
			"labhealth_webhook_deliveries_total duplicate=true event_type= late=false reason=duplicate": 10,
			"labhealth_webhook_deliveries_total duplicate=false event_type= late=false reason=headers":  1,
			"labhealth_webhook_request_duration_seconds code=204":                                       20,
			"labhealth_webhook_request_duration_seconds code=401":                                       1,
		}},
		"other receiver": {pick(other.metrics(t), "labhealth_webhook_"), map[string]float64{
			"labhealth_webhook_deliveries_total duplicate=false event_type= late=false reason=stored": 1,
			"labhealth_webhook_request_duration_seconds code=204":                                     1,
		}},
		"worker": {pick(worker.metrics(t), "labhealth_worker_c", "labhealth_worker_d", "labhealth_worker_step"), map[string]float64{
			"labhealth_worker_deliveries_total result=applied": 9,
			"labhealth_worker_changes_total change=added":      11,
			"labhealth_worker_changes_total change=updated":    16,
			"labhealth_worker_deliveries_total result=dead":    1,
			"labhealth_worker_step_duration_seconds error=":    11, // one of the inbox
		}},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	if worker.metrics(t)["process_cpu_seconds_total"] == 0 {
		t.Error("there is nothing about the process")
	}
}

// What a receiver received whose clock is an hour behind counts as an hour old: it does not replace
// newer versions.
func TestClockBehind(t *testing.T) {
	t.Parallel()
	at := newPlace(t)
	ready(t, at.args("all")...)
	user := uuid.New()
	now := time.Now()
	publish := func(minutes []int, value float64, received time.Time) {
		t.Helper()
		body := batch(user, minutes, func(int) float64 { return value })
		msg := &nats.Msg{Subject: at.stream + ".delivery", Data: body, Header: nats.Header{receivedHeader: {received.Format(time.RFC3339Nano)}}}
		wait(t, time.Minute, "the stream", func() bool {
			_, err := at.js.PublishMsg(t.Context(), msg)
			return err == nil
		})
		at.drained(t)
	}
	publish([]int{1}, 5, now)
	publish([]int{1, 2}, 6, now.Add(time.Minute-time.Hour)) // a minute later, it thinks
	got := map[int64]float64{}
	for key, s := range stored(t, at) {
		got[time.Unix(0, key.UnixNano).Sub(day).Nanoseconds()/int64(time.Minute)] = s.Value
	}
	if diff := cmp.Diff(map[int64]float64{1: 5, 2: 6}, got); diff != "" {
		t.Errorf("values by minute (-want +got):\n%s", diff)
	}
}

// A body of several megabytes is applied. One that is larger than max_payload of nats.conf gets a
// 503, and the receiver stays ready for others.
func TestLargeBody(t *testing.T) {
	t.Parallel()
	at := newPlace(t)
	p := ready(t, at.args("all")...)
	client := newClient()
	defer client.CloseIdleConnections()
	minutes := make([]int, 30_000)
	for i := range minutes {
		minutes[i] = i
	}
	body := batch(uuid.New(), minutes, func(i int) float64 { return float64(i) / 8 })
	if len(body) < 2<<20 {
		t.Fatalf("%d bytes", len(body))
	}
	if status := post(client, p.events, message{"msg_large", body}); status != 204 {
		t.Errorf("%d, want 204", status)
	}
	if status := post(client, p.events, message{"msg_larger", bytes.Repeat([]byte("x"), 9<<20)}); status != 503 {
		t.Errorf("%d, want 503", status)
	}
	logs(t, p, `msg="the broker did not store a delivery" delivery_id=msg_larger bytes=9437184 error="nats: maximum payload exceeded"`)
	if code, text := p.page(t, "/readyz"); code != 200 {
		t.Errorf("%d %s", code, text)
	}
	at.drained(t)
	if n := len(stored(t, at)); n != len(minutes) {
		t.Errorf("%d samples", n)
	}
}

// Invalid flags are rejected before anything starts.
func TestFlags(t *testing.T) {
	for _, c := range []struct{ args, secret, want string }{
		{"-sqlite x.db", "", "LABHEALTH_WEBHOOK_SECRET has no secret"},
		{"-sqlite x.db", "tooshort", "LABHEALTH_WEBHOOK_SECRET"},
		{"-role sleep", testSecret, "-role is receive, work or all"},
		{"", testSecret, "-role work and all need a database"},
		{"-role work -sqlite x.db -postgres postgres://x", testSecret, "-role work and all need a database"},
		{"-sqlite x.db -batch 0", testSecret, "-batch"},
		{"-sqlite x.db -parallel 0", testSecret, "-parallel"},
		{"-sqlite x.db -ack-wait 1ms", testSecret, "-ack-wait"},
		{"-sqlite x.db -keep-days -1", testSecret, "-keep-days"},
		{"-role receive events", testSecret, "flags only"},
		{"-role receive -nats nats://me:hunter2@x:y", testSecret, "-nats: not a broker URL"},
		{"-role work -postgres postgres://me:hunter2@x:y/z", testSecret, "-postgres: not a database URL"},
	} {
		t.Setenv("LABHEALTH_WEBHOOK_SECRET", c.secret)
		t.Chdir(t.TempDir())
		var out bytes.Buffer
		args := append([]string{"-addr", "127.0.0.1:0", "-admin", "127.0.0.1:0"}, strings.Fields(c.args)...)
		if code := run(t.Context(), args, &out); code != 1 || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: %d %s, want %q", c.args, code, &out, c.want)
		}
		if strings.Contains(out.String(), "tooshort") || strings.Contains(out.String(), "hunter2") {
			t.Errorf("the secret is shown: %s", &out)
		}
	}
}

// Samples that are older than -keep-days are deleted.
func TestKeep(t *testing.T) {
	onDatabases(t, func(t *testing.T, at *place) {
		if err := at.store.Maintain(t.Context()); err != nil { // makes the partition of the old sample
			t.Fatal(err)
		}
		now := time.Now().UTC()
		body := fmt.Sprintf(`{"event_type":"daily.data.heartrate.created","user_id":%q,"data":{"source":{"provider":"oura"},"data":[`+
			`{"timestamp":%q,"unit":"bpm","value":1},{"timestamp":%q,"unit":"bpm","value":2}]}}`,
			uuid.New(), now.AddDate(0, -4, 0).Format(time.RFC3339), now.Format(time.RFC3339))
		if err := at.store.Receive(t.Context(), webhooks.RawDelivery{ID: "msg_1", Body: []byte(body), ReceivedAt: now}); err != nil {
			t.Fatal(err)
		}
		p := ready(t, at.args("work")...)
		wait(t, time.Minute, "2 samples", func() bool { return len(stored(t, at)) == 2 })
		p.terminate(t)
		ready(t, at.args("work", "-keep-days", "60")...)
		wait(t, time.Minute, "the old sample to be deleted", func() bool { return len(stored(t, at)) == 1 })
	})
}

// The metrics of README.md are those of a running program.
func TestDocumentedMetrics(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	at := newSQLitePlace(t)
	p := ready(t, at.args("all")...)
	client := newClient()
	defer client.CloseIdleConnections()
	if status := post(client, p.events, message{"msg_1", []byte("{}")}); status != 204 {
		t.Fatal(status)
	}
	at.drained(t)
	exists := map[string]bool{}
	for name := range p.metrics(t) {
		name, _, _ = strings.Cut(name, " ")
		exists[name] = true
	}
	names := regexp.MustCompile(`\blabhealth_(\w+_(total|age_seconds|bytes|up|deliveries|letters))\b`).FindAllString(string(page), -1)
	if len(names) < 8 {
		t.Errorf("the page has %d metrics", len(names))
	}
	for _, name := range names {
		if !exists[name] {
			t.Errorf("there is no metric %s", name)
		}
	}
}
