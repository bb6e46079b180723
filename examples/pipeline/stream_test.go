package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"
)

// -role repartition creates no stream: the name may be wrong.
func TestRepartitionWithoutStream(t *testing.T) {
	t.Parallel()
	at := newPlace(t, true)
	cmd, out := at.command("-role", "repartition", "-nats", at.nats, "-partition", "0-127,128-255")
	err := cmd.Run()
	if want := "pipeline: the broker has no stream " + at.stream + "\n"; err == nil || !strings.HasSuffix(out.String(), want) {
		t.Errorf("%v\n%s, want %s", err, out, want)
	}
	if _, err := at.js.Stream(t.Context(), at.stream); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("the stream: %v", err)
	}
}

// A stream that disappears is not created again by those that have seen it, and everybody says so:
// in the log, by a metric and an alert, on the pages and in the responses to deliveries.
func TestStreamLost(t *testing.T) { onBrokers(t, testStreamLost) }

func testStreamLost(t *testing.T, at *place) {
	receiver, worker := ready(t, at.args("receive")...), ready(t, at.args("work")...)
	both := []*process{receiver, worker}
	client := newClient()
	defer client.CloseIdleConnections()
	m := message{"msg_1", batch(uuid.New(), []int{1}, func(int) float64 { return 5 })}
	stream, err := at.js.Stream(t.Context(), at.stream)
	if err != nil {
		t.Fatal(err)
	}
	lost := func(n float64) {
		t.Helper()
		for _, p := range both {
			wait(t, time.Minute, "the metric", func() bool { return p.metrics(t)["labhealth_stream_lost_total"] == n })
		}
	}
	lost(0)

	h := watch(t, both...)
	if err := at.js.DeleteStream(t.Context(), at.stream); err != nil {
		t.Fatal(err)
	}
	if status := post(client, receiver.events, m); status != 503 {
		t.Errorf("%d without a stream, want 503", status)
	}
	reason := "the broker has no stream " + at.stream
	logs(t, receiver, `level=WARN msg="a delivery was refused" delivery_id=msg_1 status=503 reason=failed cause="failed: `+reason+`"`)
	logs(t, worker, `level=WARN msg="events cannot be fetched" error="`+reason+`"`)
	lost(1)
	for _, p := range both {
		logs(t, p, `level=ERROR msg="the stream has disappeared, with all events in it" stream=`+at.stream)
		if code, text := p.page(t, "/readyz"); code != 503 || text != reason {
			t.Errorf("%d %s, want %s", code, text, reason)
		}
	}
	wait(t, time.Minute, "the metric of the broker", func() bool {
		return receiver.metrics(t)["labhealth_broker_up"] == 0 && worker.metrics(t)["labhealth_broker_up"] == 0
	})
	h.alerts(t, "LabhealthStreamLost", "LabhealthBrokerDown", "LabhealthDeliveriesRefused", "LabhealthWorkerNotReady")
	if _, err := at.js.Stream(t.Context(), at.stream); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Fatalf("the stream: %v", err)
	}

	create := func() {
		t.Helper()
		if _, err := at.js.CreateStream(t.Context(), stream.CachedInfo().Config); err != nil {
			t.Fatal(err)
		}
	}
	create()
	for _, p := range both {
		wait(t, time.Minute, "the process to be ready", func() bool { return p.status(t, "/readyz") == 200 })
		logs(t, p, `level=ERROR msg="there is a new stream, without the events of the one that has disappeared" stream=`+at.stream)
	}
	if status := post(client, receiver.events, m); status != 204 {
		t.Errorf("%d with a new stream, want 204", status)
	}
	wait(t, time.Minute, "the event to be applied", func() bool { return len(stored(t, at)) == 1 })
	lost(1)

	if err := at.js.DeleteStream(t.Context(), at.stream); err != nil {
		t.Fatal(err)
	}
	create() // whether they see that it was missing, or only that it is another one
	lost(2)
}

// A stream without a limit is full when the account is, and a receiver also sees the limit of the
// server.
func TestStorageLimits(t *testing.T) {
	t.Parallel()
	server := startServerWith(t, "", `
accounts { LIMITED { jetstream { max_file: 100000 }, users: [{ user: pipeline, password: invented }] } }
no_auth_user: pipeline
`)
	at := newPlaceOn(t, server.address)
	receiver := ready(t, at.args("receive", "-nats-monitor", server.monitor)...)
	h := watch(t, receiver)
	client := newClient()
	defer client.CloseIdleConnections()
	for n := 0; receiver.metrics(t)["labhealth_broker_storage_bytes"] < 81_000; n++ {
		if status := post(client, receiver.events, message{uuid.NewString(), batch(uuid.New(), make([]int, 50), func(int) float64 { return 1 })}); status != 204 && n < 10 {
			t.Fatalf("%d after %d deliveries", status, n)
		}
	}
	m := receiver.metrics(t)
	if m["labhealth_broker_storage_limit_bytes"] != 100_000 || m["labhealth_stream_limit_bytes"] < 1e18 {
		t.Errorf("the account is limited to %v bytes, the stream to %v", m["labhealth_broker_storage_limit_bytes"], m["labhealth_stream_limit_bytes"])
	}
	h.before[0] = receiver.scrape(t) // some deliveries may have been refused
	h.alerts(t, "LabhealthStreamFull", "LabhealthNothingApplied")

	unlimited := newPlace(t, true)
	monitored := ready(t, unlimited.args("receive", "-nats-monitor", shared.monitor)...)
	if limit := monitored.metrics(t)["labhealth_broker_storage_limit_bytes"]; limit < 1 || limit > 1e18 {
		t.Errorf("the server is limited to %v bytes", limit)
	}
}

// Events of a partition without a worker are reported, although others are applied: if it has lost
// its worker, and if it never had one.
func TestPartitionWithoutWorker(t *testing.T) {
	t.Parallel()
	at := newPlace(t, true)
	receiver, low, high := ready(t, at.args("receive")...), ready(t, at.args("work", "-partition", "0-127")...), ready(t, at.args("work", "-partition", "128-255")...)
	wait(t, time.Minute, "its consumer", func() bool {
		_, err := at.js.Consumer(t.Context(), at.stream, "workers-128-255")
		return err == nil
	})
	high.kill()
	h := watch(t, receiver, low)
	at.publish(t, receiver, 64, 1)
	events := func(p *process) (all, of float64) { // the killed one may have taken some
		m := p.metrics(t)
		return m["labhealth_stream_events"], m["labhealth_consumer_waiting_events consumer=workers-128-255"] + m["labhealth_consumer_in_flight_events consumer=workers-128-255"]
	}
	wait(t, time.Minute, "the other partition to be applied", func() bool {
		all, of := events(receiver)
		allLow, ofLow := events(low)
		return appliedEvents(low.metrics(t)) == 64-all && all == of && allLow == all && ofLow == of
	})
	h.alerts(t, "LabhealthPartitionWithoutWorker")

	if err := at.js.DeleteConsumer(t.Context(), at.stream, "workers-128-255"); err != nil {
		t.Fatal(err)
	}
	for _, p := range h.processes {
		wait(t, time.Minute, "the consumer to be missed", func() bool {
			all, of := events(p)
			return all > 0 && of == 0
		})
	}
	h.alerts(t) // they may be in the middle of something
	h.more = map[string]float64{"labhealth_stream_oldest_age_seconds": 700}
	h.alerts(t, "LabhealthPartitionWithoutWorker")
}

// A worker says if its database acknowledges what is not on its disk.
func TestUnsafeCommits(t *testing.T) {
	t.Parallel()
	at := newPlace(t, true)
	safe := ready(t, at.args("work")...)
	at.postgres += "&synchronous_commit=off"
	unsafe := ready(t, at.args("work")...)
	logs(t, unsafe, "level=WARN msg=\"a power failure of the database loses deliveries that were acknowledged")
	logs(t, unsafe, "synchronous_commit=off")
	if strings.Contains(safe.log.String(), "synchronous_commit") {
		t.Error("the other one says it too")
	}
}
