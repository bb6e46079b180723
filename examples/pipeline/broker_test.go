package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	dto "github.com/prometheus/client_model/go"

	"github.com/labhealth/labhealth-go/webhooks"
)

// publisher returns the broker of a receiver in the test process, with a new stream.
func publisher(t *testing.T, at *place) *broker {
	t.Helper()
	b, err := connect(&settings{nats: at.nats, stream: at.stream, replicas: 1, dedup: time.Hour, role: "receive"}, newMetrics(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	wait(t, time.Minute, "the stream", func() bool { return b.prepare(t.Context()) == nil })
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
	b := publisher(t, at)
	body := batch(uuid.MustParse("6f0f9ad7-9f0e-4f8c-8e0e-0a4f0f4d8c11"), []int{1}, func(int) float64 { return 5 })
	received := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	first := nats.Msg{Subject: subject(at.stream, body), Data: body, Header: nats.Header{"Nats-Msg-Id": {"msg_1"}, "Received-At": {"2026-01-02T03:04:05.000000678Z"}}}
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
	var counted dto.Metric
	if err := b.metrics.publishedAgain.Write(&counted); err != nil || counted.GetCounter().GetValue() != 3 {
		t.Errorf("%v duplicates, %v, want 3", counted.GetCounter().GetValue(), err)
	}
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
		if n := p.metrics(t)["labhealth_stream_lost_total"]; n != 0 {
			t.Errorf("the stream was lost %v times: %s", n, p.log)
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
		at := newPlace(t, true)
		p := ready(t, at.args("receive")...)
		logs(t, p, `level=WARN msg="-nats-monitor is not set: whether the broker syncs what it acknowledges (sync_interval: always) is not verified"`)
	})
	t.Run("always", func(t *testing.T) {
		at := newPlace(t, true)
		p := ready(t, at.args("receive", "-nats-monitor", shared.monitor)...)
		logs(t, p, `msg="the broker syncs each event before it acknowledges it"`)
		acknowledges(t, p, 204)
	})
	t.Run("another server", func(t *testing.T) {
		other := startServer(t, "")
		at := newPlace(t, true)
		p := launch(t, at.args("receive", "-nats-monitor", other.monitor)...)
		logs(t, p, "-nats-monitor does not have the server that -nats connects to")
		says(t, p, "-nats-monitor does not have the server that -nats connects to")
		acknowledges(t, p, 503)
		at.works(t)
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
		const reason = "acknowledges events before they are on its disk: it needs sync_interval: always, and nats-server 2.10 or later"
		logs(t, p, reason)
		says(t, p, reason)
		acknowledges(t, p, 503)
		logs(t, p, `msg="a delivery was refused" delivery_id=msg_1 status=503 reason=failed cause="failed: -nats-monitor: `+strings.TrimPrefix(server.monitor, "http://")+" "+reason)
	})
}

func TestCannotSync(t *testing.T) {
	for version, want := range map[string]bool{"2.9.10": true, "2.9.25-RC.1": true, "1.4.1": true, "2.10.0": false, "2.15.2": false, "3.0.0": false, "": false, "unknown": false} {
		if cannotSync(version) != want {
			t.Errorf("%q: %v, want %v", version, !want, want)
		}
	}
}

// works checks that workers do not depend on what receivers check.
func (at *place) works(t *testing.T) {
	t.Helper()
	ready(t, at.args("work", "-nats-monitor", "http://127.0.0.1:1")...)
}

// logs waits until the log of a process has a text.
func logs(t *testing.T, p *process, text string) {
	t.Helper()
	wait(t, time.Minute, "the log to have "+text, func() bool { return strings.Contains(p.log.String(), text) })
}

// says waits until a process is not ready for a reason.
func says(t *testing.T, p *process, reason string) {
	t.Helper()
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
		return serve(200, fmt.Sprintf(`{"server_id":"ID%s","server_name":%q,"version":"2.15.2","jetstream":{"config":%s}}`, name, name, config))
	}
	const always, interval, before2_10 = `{"sync_interval":120000000000,"sync_always":true}`, `{"sync_interval":120000000000}`, `{}`
	a, b, c := server("a", always), server("b", always)+"/", server("c", always)
	cluster := &jetstream.ClusterInfo{Name: "abc", Leader: "b", Replicas: []*jetstream.PeerInfo{{Name: "a"}, {Name: "c"}}}
	for name, test := range map[string]struct {
		monitors []string
		cluster  *jetstream.ClusterInfo
		want     string
	}{
		"one":                  {[]string{a}, nil, ""},
		"one, with its name":   {[]string{a}, &jetstream.ClusterInfo{Leader: "a"}, ""},
		"another":              {[]string{b}, nil, "-nats-monitor does not have the server that -nats connects to"},
		"cluster":              {[]string{a, b, c}, cluster, ""},
		"one of the cluster":   {[]string{a}, cluster, `-nats-monitor does not have the server "b", which stores the stream`},
		"two of the cluster":   {[]string{a, b}, cluster, `-nats-monitor does not have the server "c", which stores the stream`},
		"an interval":          {[]string{server("a", interval)}, nil, `sync_interval: always, and nats-server 2.10 or later (it is "2.15.2")`},
		"no setting":           {[]string{server("a", before2_10)}, nil, "sync_interval: always"},
		"one with an interval": {[]string{a, b, server("c", interval)}, cluster, "sync_interval: always"},
		"no JetStream":         {[]string{serve(200, `{"server_id":"IDa"}`)}, nil, "sync_interval: always"},
		"something else":       {[]string{serve(200, `{"status":"ok"}`)}, nil, "status 200, which is not that of a nats-server"},
		"no JSON":              {[]string{serve(200, `<html>`)}, nil, "status 200, which is not that of a nats-server"},
		"no page":              {[]string{serve(404, `{"server_id":"IDa"}`)}, nil, "status 404, which is not that of a nats-server"},
		"nobody":               {[]string{"http://operator:hunter2@127.0.0.1:1"}, nil, "-nats-monitor: 127.0.0.1:1: no response"},
	} {
		t.Run(name, func(t *testing.T) {
			receiver := &broker{monitors: test.monitors, log: slog.New(slog.DiscardHandler)}
			err := receiver.checkServers(t.Context(), test.cluster, "IDa")
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
	at := newPlace(t, true)
	b := publisher(t, at)
	stream, err := at.js.Stream(t.Context(), at.stream)
	if err != nil {
		t.Fatal(err)
	}
	created := stream.CachedInfo().Config
	if err := checkStream(created); err != nil {
		t.Errorf("the stream that was created: %v", err)
	}
	for want, change := range map[string]func(c *jetstream.StreamConfig){
		"retention":               func(c *jetstream.StreamConfig) { c.Retention = jetstream.LimitsPolicy },
		"storage":                 func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage },
		"persist_mode":            func(c *jetstream.StreamConfig) { c.PersistMode = jetstream.AsyncPersistMode },
		"no_ack":                  func(c *jetstream.StreamConfig) { c.NoAck = true },
		"max_age":                 func(c *jetstream.StreamConfig) { c.MaxAge = 48 * time.Hour },
		"discard has":             func(c *jetstream.StreamConfig) { c.Discard, c.MaxBytes = jetstream.DiscardOld, 1<<30 },
		"max_msgs_per_subject":    func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 10 },
		"allow_direct":            func(c *jetstream.StreamConfig) { c.AllowDirect = true },
		"":                        func(c *jetstream.StreamConfig) { c.MaxBytes, c.MaxMsgs, c.Replicas = 1<<30, 1_000_000, 3 },
		"discard_new_per_subject": func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 10 },
	} {
		changed := created
		change(&changed)
		if err := checkStream(changed); (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}

	d := webhooks.RawDelivery{ID: "msg_1", Body: batch(uuid.New(), []int{1}, func(int) float64 { return 5 }), ReceivedAt: day}
	aging := created
	aging.MaxAge = 48 * time.Hour
	if _, err := at.js.UpdateStream(t.Context(), aging); err != nil {
		t.Fatal(err)
	}
	if err := b.publish(t.Context(), d); err == nil || !strings.Contains(err.Error(), "max_age") || len(waiting(t, at)) > 0 {
		t.Errorf("%v, and %d messages", err, len(waiting(t, at)))
	}
	if _, err := at.js.UpdateStream(t.Context(), created); err != nil {
		t.Fatal(err)
	}
	if err := b.publish(t.Context(), d); err != nil || len(waiting(t, at)) != 1 {
		t.Errorf("%v, and %d messages", err, len(waiting(t, at)))
	}
}

// A receiver that finds a server without the setting after a reconnection stops acknowledging.
func TestMonitorAfterReconnection(t *testing.T) {
	t.Parallel()
	always := true
	var id string
	monitor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(object{"server_id": id, "jetstream": object{"config": object{"sync_always": always}}})
	}))
	defer monitor.Close()
	at := newPlace(t, true)
	r := newRoad(t, hostOf(t, at.nats))
	at.nats = r.through(t, at.nats)
	b := publisher(t, at)
	b.monitors, id = []string{monitor.URL}, b.conn.ConnectedServerId()
	publish := func(n int) error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		return b.publish(ctx, webhooks.RawDelivery{ID: fmt.Sprint("msg_", n), Body: []byte("{}"), ReceivedAt: day})
	}
	if err := publish(1); err != nil {
		t.Fatal(err)
	}
	always = false
	if err := publish(2); err != nil { // it is still the same server
		t.Fatal(err)
	}
	other := startServer(t, "")
	there := &place{}
	there.useBroker(t, other.address)
	wait(t, time.Minute, "the stream of the other server", func() bool {
		_, err := there.js.CreateStream(t.Context(), b.stream)
		return err == nil
	})
	r.mu.Lock()
	r.to = hostOf(t, other.address)
	r.mu.Unlock()
	r.set(true)
	r.set(false)
	wait(t, time.Minute, "the other server", func() bool {
		now := b.conn.ConnectedServerId()
		return now != "" && now != id && b.prepare(t.Context()) == nil
	})
	id = b.conn.ConnectedServerId()
	if err := publish(3); err == nil || !strings.Contains(err.Error(), "sync_interval: always") {
		t.Errorf("%v", err)
	}
	always = true
	if err := publish(3); err != nil {
		t.Error(err)
	}
}
