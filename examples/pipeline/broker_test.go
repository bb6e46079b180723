package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/labhealth/labhealth-go/webhooks"
)

// publisher returns the broker of a receiver in the test process, which has created the stream.
func publisher(t *testing.T, at *place, monitors string) *broker {
	t.Helper()
	b, err := connect(&settings{nats: at.nats, stream: at.stream, role: "receive", monitors: monitors}, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { b.watch(ctx) })
	t.Cleanup(func() {
		stop()
		watching.Wait()
		b.close()
	})
	wait(t, time.Minute, "the stream", func() bool { return b.ready(t.Context()) == nil })
	return b
}

// waiting returns the messages in the stream, without the headers of the client library.
func waiting(t *testing.T, at *place) (all []nats.Msg) {
	t.Helper()
	stream, err := at.js.Stream(t.Context(), at.stream)
	if err != nil {
		t.Fatal(err)
	}
	state := stream.CachedInfo().State
	for n := max(state.FirstSeq, 1); n <= state.LastSeq; n++ {
		m, err := stream.GetMsg(t.Context(), n)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		m.Header.Del(jetstream.ExpectedStreamHeader)
		all = append(all, nats.Msg{Subject: m.Subject, Data: m.Data, Header: m.Header})
	}
	return all
}

// A delivery whose acknowledgement was lost is published again, as it was received first, until a
// worker has applied it: that the broker has it does not mean that it is on the disk.
func TestDuplicateIsStoredAgain(t *testing.T) { onBrokers(t, testDuplicateIsStoredAgain) }

func testDuplicateIsStoredAgain(t *testing.T, at *place) {
	b := publisher(t, at, "")
	body := batch(uuid.MustParse("6f0f9ad7-9f0e-4f8c-8e0e-0a4f0f4d8c11"), []int{1}, func(int) float64 { return 5 })
	received := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	first := nats.Msg{Subject: at.stream + ".delivery", Data: body, Header: nats.Header{"Nats-Msg-Id": {"msg_1"}, "Received-At": {"2026-01-02T03:04:05.000000678Z"}}}
	again := nats.Msg{Subject: first.Subject, Data: body, Header: nats.Header{"Delivery-Id": {"msg_1"}, "Received-At": {"2026-01-02T03:04:05.000000678Z"}}}
	publish := func(later time.Duration, want ...nats.Msg) {
		t.Helper()
		if err := b.publish(t.Context(), webhooks.RawDelivery{ID: "msg_1", Body: body, ReceivedAt: received.Add(later)}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, waiting(t, at), cmp.AllowUnexported(nats.Msg{}), cmp.Comparer(func(a, b *nats.Subscription) bool { return a == b })); diff != "" {
			t.Errorf("%v later, the stream has (-want +got):\n%s", later, diff)
		}
	}
	publish(0, first)
	publish(time.Minute, first, again)
	publish(time.Hour, first, again, again)

	ready(t, at.args("work")...)
	at.drained(t)
	publish(2 * time.Hour) // it is in the database
}

// A delivery that is repeated because its acknowledgement was lost counts as received when it was
// received first: what was received in between wins.
func TestDuplicateKeepsItsTime(t *testing.T) { onBrokers(t, testDuplicateKeepsItsTime) }

func testDuplicateKeepsItsTime(t *testing.T, at *place) {
	receivers := []*process{ready(t, at.args("receive")...), ready(t, at.args("receive")...)}
	client := newClient()
	defer client.CloseIdleConnections()
	user := uuid.New()
	older := message{"msg_1", batch(user, []int{1}, func(int) float64 { return 5 })}
	newer := message{"msg_2", batch(user, []int{1}, func(int) float64 { return 6 })}
	for i, m := range []message{older, newer, older} { // the second receiver has not seen the first delivery
		if status := post(client, receivers[i/2].events, m); status != 204 {
			t.Fatalf("%d, want 204", status)
		}
	}
	if n := at.pending(t); n != 3 {
		t.Errorf("%d messages, want 3", n)
	}
	ready(t, at.args("work")...)
	at.drained(t)
	for _, s := range stored(t, at) {
		if s.Value != 6 {
			t.Errorf("the value is %v, want that of the delivery that was received last, 6", s.Value)
		}
	}
}

// A broker is killed and restarted before a delivery is repeated that it has: the delivery is
// acknowledged only after the server that runs now has stored it.
func TestDuplicateAfterRestart(t *testing.T) {
	t.Parallel()
	server := startServer(t, "")
	at := newPlaceOn(t, server.address)
	receivers := []*process{ready(t, at.args("receive")...), ready(t, at.args("receive")...)}
	client := newClient()
	defer client.CloseIdleConnections()
	m := message{"msg_1", batch(uuid.New(), []int{1}, func(int) float64 { return 5 })}
	if status := post(client, receivers[0].events, m); status != 204 {
		t.Fatalf("%d, want 204", status)
	}
	server.kill()
	server.start(t)
	if _, err := deliver(t.Context(), client, []string{receivers[1].events}, m); err != nil {
		t.Fatal(err)
	}
	for _, p := range receivers {
		if strings.Contains(p.log.String(), "the stream has been replaced") {
			t.Errorf("the stream was lost: %s", p.log)
		}
	}
	all := waiting(t, at)
	if len(all) != 2 {
		t.Fatalf("%d messages, want 2", len(all))
	}
	if a, b := all[0].Header.Get("Received-At"), all[1].Header.Get("Received-At"); a == "" || a != b {
		t.Errorf("received at %q and %q", a, b)
	}
}

// What a receiver says about the broker at its start, with and without the monitoring address.
func TestMonitor(t *testing.T) {
	t.Parallel()
	t.Run("not given", func(t *testing.T) {
		at := newPlace(t)
		p := ready(t, at.args("receive")...)
		logs(t, p, `level=WARN msg="-nats-monitor is not set: whether the broker syncs what it acknowledges (sync_interval: always) is not verified"`)
	})
	t.Run("always", func(t *testing.T) {
		at := newPlace(t)
		p := ready(t, at.args("receive", "-nats-monitor", shared.monitor)...)
		acknowledges(t, p, 204)
	})
	t.Run("another server", func(t *testing.T) {
		other := startServer(t, "")
		at := newPlace(t)
		p := launch(t, at.args("receive", "-nats-monitor", other.monitor)...)
		says(t, p, "-nats-monitor does not have the server")
		acknowledges(t, p, 503)
		ready(t, at.args("work", "-nats-monitor", "http://127.0.0.1:1")...) // workers do not depend on it
	})
	t.Run("installed", func(t *testing.T) {
		program := installedServer()
		if program == "" {
			t.Skip("LABHEALTH_TEST_NATS is not set, or there is no nats-server on this machine")
		}
		server := startServer(t, program)
		at := newPlaceOn(t, server.address)
		logs(t, ready(t, at.args("receive")...), "and no setting changes that: a power failure loses them; use nats-server 2.10 or later")
		p := launch(t, at.args("receive", "-nats-monitor", server.monitor)...)
		says(t, p, "acknowledges deliveries before they are on its disk: it needs sync_interval: always, and nats-server 2.10 or later")
		acknowledges(t, p, 503)
	})
}

// logs waits until the log of a process has a text.
func logs(t *testing.T, p *process, text string) {
	t.Helper()
	wait(t, time.Minute, "the log to have "+text, func() bool { return strings.Contains(p.log.String(), text) })
}

// says waits until a process logs and shows the reason why it is not ready.
func says(t *testing.T, p *process, reason string) {
	t.Helper()
	logs(t, p, reason)
	for _, page := range []string{"/readyz", "/readyz/receive"} {
		wait(t, time.Minute, page+" to have "+reason, func() bool {
			code, text := p.page(t, page)
			return code == 503 && strings.Contains(text, reason)
		})
	}
}

// acknowledges sends a delivery to a receiver and compares the status, and whether it is ready.
func acknowledges(t *testing.T, p *process, want int) {
	t.Helper()
	client := newClient()
	defer client.CloseIdleConnections()
	status := post(client, p.events, message{"msg_1", batch(uuid.New(), []int{1}, func(int) float64 { return 5 })})
	if status != want || (p.status(t, "/readyz") == 200) != (want == 204) {
		t.Errorf("status %d, want %d; ready: %d", status, want, p.status(t, "/readyz"))
	}
}

// The servers of a cluster all have to sync, and those that store the stream have to be among those
// that were asked.
func TestMonitoredServers(t *testing.T) {
	t.Parallel()
	serve := func(status int, content string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/varz" {
				t.Errorf("%s is requested", r.URL.Path)
			}
			w.WriteHeader(status)
			io.WriteString(w, content)
		}))
		t.Cleanup(s.Close)
		return strings.Replace(s.URL, "http://", "http://operator:hunter2@", 1)
	}
	server := func(name, config string) string {
		return serve(200, fmt.Sprintf(`{"server_name":%q,"version":"2.15.2","jetstream":{"config":%s}}`, name, config))
	}
	const always, interval, before2_10 = `{"sync_interval":120000000000,"sync_always":true}`, `{"sync_interval":120000000000}`, `{}`
	a, b, c := server("a", always), server("b", always)+"/", server("c", always)
	cluster := []string{"b", "a", "c"}
	for name, test := range map[string]struct {
		monitors []string
		stores   []string
		want     string
	}{
		"one":                  {[]string{a}, []string{"a"}, ""},
		"another":              {[]string{b}, []string{"a"}, `-nats-monitor does not have the server "a"`},
		"cluster":              {[]string{a, b, c}, cluster, ""},
		"one of the cluster":   {[]string{a}, cluster, `-nats-monitor does not have the server "b", which stores the stream`},
		"two of the cluster":   {[]string{a, b}, cluster, `-nats-monitor does not have the server "c", which stores the stream`},
		"an interval":          {[]string{server("a", interval)}, nil, `sync_interval: always, and nats-server 2.10 or later (it is "2.15.2")`},
		"no setting":           {[]string{server("a", before2_10)}, nil, "sync_interval: always"},
		"one with an interval": {[]string{a, b, server("c", interval)}, cluster, "sync_interval: always"},
		"no JetStream":         {[]string{serve(200, `{"server_name":"a"}`)}, nil, "sync_interval: always"},
		"something else":       {[]string{serve(200, `{"status":"ok"}`)}, nil, "responds with status 200, and is not a nats-server"},
		"no JSON":              {[]string{serve(200, `<html>`)}, nil, "responds with status 200, and is not a nats-server"},
		"no page":              {[]string{serve(404, `{"server_name":"a"}`)}, nil, "responds with status 404, and is not a nats-server"},
		"no URL":               {[]string{"http://operator:hunter2@%"}, nil, "-nats-monitor: not a URL"},
		"another scheme":       {[]string{"nats://operator:hunter2@127.0.0.1:1"}, nil, "-nats-monitor: 127.0.0.1:1 does not respond"},
		"nobody":               {[]string{"http://operator:hunter2@127.0.0.1:1"}, nil, "-nats-monitor: 127.0.0.1:1 does not respond"},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkSynced(t.Context(), strings.Join(test.monitors, ","), test.stores)
			got := fmt.Sprint(err)
			if test.want == "" && err != nil || !strings.Contains(got, test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if strings.Contains(got, "hunter2") || strings.Contains(got, "operator") {
				t.Errorf("the error has the password: %v", err)
			}
		})
	}
}

// A stream from which events can disappear before they are applied is not used, and one that
// prepare creates is.
func TestUnsafeStream(t *testing.T) {
	t.Parallel()
	at := newPlace(t)
	b := publisher(t, at, "")
	stream, err := at.js.Stream(t.Context(), at.stream)
	if err != nil {
		t.Fatal(err)
	}
	created := stream.CachedInfo().Config
	if err := checkStream(created); err != nil {
		t.Errorf("the stream that was created: %v", err)
	}
	for setting, change := range map[string]func(c *jetstream.StreamConfig){
		"retention":            func(c *jetstream.StreamConfig) { c.Retention = jetstream.LimitsPolicy },
		"storage":              func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage },
		"persist_mode":         func(c *jetstream.StreamConfig) { c.PersistMode = jetstream.AsyncPersistMode },
		"no_ack":               func(c *jetstream.StreamConfig) { c.NoAck = true },
		"max_age":              func(c *jetstream.StreamConfig) { c.MaxAge = 48 * time.Hour },
		"discard":              func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld },
		"max_msgs_per_subject": func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 10 },
		"allow_direct":         func(c *jetstream.StreamConfig) { c.AllowDirect = true },
	} {
		changed := created
		change(&changed)
		if err := checkStream(changed); err == nil || !strings.Contains(err.Error(), setting) {
			t.Errorf("%s: %v", setting, err)
		}
	}
	limited := created
	limited.MaxBytes, limited.MaxMsgs, limited.Replicas, limited.Duplicates = 1<<30, 1_000_000, 3, time.Hour
	if err := checkStream(limited); err != nil {
		t.Error(err)
	}

	d := webhooks.RawDelivery{ID: "msg_1", Body: batch(uuid.New(), []int{1}, func(int) float64 { return 5 }), ReceivedAt: day}
	aging := created
	aging.MaxAge = 48 * time.Hour
	if _, err := at.js.UpdateStream(t.Context(), aging); err != nil {
		t.Fatal(err)
	}
	wait(t, time.Minute, "the stream to be refused", func() bool { return b.ready(t.Context()) != nil })
	if err := b.publish(t.Context(), d); err == nil || !strings.Contains(err.Error(), "max_age") || len(waiting(t, at)) > 0 {
		t.Errorf("%v, and %d messages", err, len(waiting(t, at)))
	}
	if _, err := at.js.UpdateStream(t.Context(), created); err != nil {
		t.Fatal(err)
	}
	wait(t, time.Minute, "the stream to be used", func() bool { return b.ready(t.Context()) == nil })
	if err := b.publish(t.Context(), d); err != nil || len(waiting(t, at)) != 1 {
		t.Errorf("%v, and %d messages", err, len(waiting(t, at)))
	}
}

// A receiver that finds a server without the setting after a reconnection stops acknowledging.
func TestMonitorAfterReconnection(t *testing.T) {
	t.Parallel()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	safe, unsafe := startServer(t, ""), startServer(t, binary) // which has no configuration
	at := newPlaceOn(t, safe.address)
	client, monitor := newRoad(t, hostOf(t, safe.address)), newRoad(t, hostOf(t, safe.monitor))
	at.nats = client.through(t, at.nats)
	b := publisher(t, at, monitor.through(t, safe.monitor))
	publish := func() error {
		return b.publish(t.Context(), webhooks.RawDelivery{ID: "msg_" + uuid.NewString(), Body: []byte("{}"), ReceivedAt: day})
	}
	if err := publish(); err != nil {
		t.Fatal(err)
	}
	there := &place{stream: at.stream}
	there.useBroker(t, unsafe.address)
	publisher(t, there, "") // creates the stream
	monitor.lead(t, unsafe.monitor)
	client.lead(t, unsafe.address)
	if err := publish(); err == nil {
		t.Error("the other server was used before it was checked")
	}
	wait(t, time.Minute, "the other server to be refused", func() bool {
		err := publish()
		if err == nil {
			t.Fatal("the other server was used")
		}
		return strings.Contains(err.Error(), "sync_interval: always")
	})
	monitor.lead(t, safe.monitor)
	client.lead(t, safe.address)
	wait(t, time.Minute, "the first server to be used", func() bool { return publish() == nil })
}

// A server is not used before it is checked, even if the one before it was safe.
func TestUncheckedServer(t *testing.T) {
	t.Parallel()
	at := newSQLitePlace(t)
	b, err := connect(&settings{nats: at.nats, stream: at.stream, role: "receive"}, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	b.state.Store(b.look(t.Context(), b.state.Load()))
	d := webhooks.RawDelivery{ID: "msg_1", Body: []byte("{}"), ReceivedAt: day}
	if err := b.publish(t.Context(), d); err != nil {
		t.Error(err)
	}
	checked := *b.state.Load()
	checked.server = "another"
	b.state.Store(&checked)
	if err := b.publish(t.Context(), d); !errors.Is(err, errNotChecked) {
		t.Errorf("%v, want %v", err, errNotChecked)
	}
}

// A stream that disappears is not created again by those that have seen it: its deliveries were
// acknowledged, so everybody says so.
func TestStreamLost(t *testing.T) { onBrokers(t, testStreamLost) }

func testStreamLost(t *testing.T, at *place) {
	both := []*process{ready(t, at.args("receive")...), ready(t, at.args("work")...)}
	stream, err := at.js.Stream(t.Context(), at.stream)
	if err != nil {
		t.Fatal(err)
	}
	if err := at.js.DeleteStream(t.Context(), at.stream); err != nil {
		t.Fatal(err)
	}
	for _, p := range both {
		logs(t, p, "level=ERROR msg=\"the broker cannot be used\" error=\"the broker does not have the stream "+at.stream)
		if code, text := p.page(t, "/readyz"); code != 503 || !strings.Contains(text, at.stream) {
			t.Errorf("%d %s", code, text)
		}
	}
	client := newClient()
	defer client.CloseIdleConnections()
	m := message{"msg_1", batch(uuid.New(), []int{1}, func(int) float64 { return 5 })}
	if status := post(client, both[0].events, m); status != 503 {
		t.Errorf("%d without a stream, want 503", status)
	}
	if _, err := at.js.Stream(t.Context(), at.stream); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Fatalf("the stream: %v", err)
	}

	if _, err := at.js.CreateStream(t.Context(), stream.CachedInfo().Config); err != nil {
		t.Fatal(err)
	}
	for _, p := range both {
		logs(t, p, `level=ERROR msg="the stream has been replaced by a new one, without its deliveries"`)
	}
	if _, err := deliver(t.Context(), client, []string{both[0].events}, m); err != nil {
		t.Error(err)
	}
	wait(t, time.Minute, "the delivery to be applied", func() bool { return len(stored(t, at)) == 1 })
}

// A worker says if its database acknowledges what is not on its disk.
func TestUnsafeCommits(t *testing.T) {
	t.Parallel()
	at := newPlace(t)
	safe := ready(t, at.args("work")...)
	at.postgres += "&synchronous_commit=off"
	unsafe := ready(t, at.args("work")...)
	logs(t, unsafe, "level=WARN msg=\"a power failure of the database loses deliveries that were acknowledged")
	logs(t, unsafe, "synchronous_commit=off")
	if strings.Contains(safe.log.String(), "synchronous_commit") {
		t.Error("the other one says it too")
	}
}
