package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks"
)

// slowDown makes PostgreSQL take the time for each new sample.
func (at *place) slowDown(t testing.TB, perSample time.Duration) {
	t.Helper()
	for _, statement := range []string{
		fmt.Sprintf(`create or replace function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(%g); return new; end $$`, perSample.Seconds()),
		`drop trigger if exists slow on labhealth_samples`,
		`create trigger slow before insert on labhealth_samples for each row execute function slow()`,
	} {
		if _, err := at.db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
}

// publish sends deliveries with consecutive samples, each of another user, and returns their IDs.
func (at *place) publish(t testing.TB, receiver *process, deliveries, samples int) {
	t.Helper()
	client := newClient()
	defer client.CloseIdleConnections()
	minutes := make([]int, samples)
	for i := range minutes {
		minutes[i] = i
	}
	for range deliveries {
		user := uuid.New()
		m := message{"msg_" + user.String(), batch(user, minutes, func(i int) float64 { return float64(i) })}
		if _, err := deliver(t.Context(), client, []string{receiver.events}, m); err != nil {
			t.Fatal(err)
		}
	}
}

// Deliveries that take longer than a batch may are applied in smaller batches, and none of them is
// delivered again. When they are fast again, the batches grow.
func TestSlowBatches(t *testing.T) {
	t.Parallel()
	at := newPlace(t, true)
	perSample := 20 * time.Millisecond
	at.ackWait = "2s"
	if long {
		perSample, at.ackWait = 300*time.Millisecond, "5s"
	}
	at.slowDown(t, perSample) // a batch of 100 takes 2 s, of which it has 1.5
	receiver := ready(t, at.args("receive")...)
	const deliveries = 300
	at.publish(t, receiver, deliveries, 1)
	worker := ready(t, at.args("work")...)
	at.drained(t)
	m := worker.metrics(t)
	if got := m["labhealth_worker_deliveries_total result=applied"]; got != deliveries {
		t.Errorf("%v deliveries were applied, want %d", got, deliveries)
	}
	if got := m["labhealth_redelivered_total"]; got > deliveries/10 {
		t.Errorf("%v deliveries were delivered again", got)
	}
	if failedBatches(m) == 0 { // else they were halved: a batch of 100 can never succeed
		t.Error("no batch failed")
	}

	if _, err := at.db.Exec("drop trigger slow on labhealth_samples"); err != nil {
		t.Fatal(err)
	}
	wait(t, time.Minute, "batches of 100", func() bool {
		at.publish(t, receiver, 1, 1) // far fewer than a batch can have
		return worker.metrics(t)["labhealth_batch_limit_events"] == 100
	})
	at.drained(t)
}

// A delivery that takes longer than -ack-wait is applied, without being delivered again. One that
// takes far longer becomes a dead letter. The others are not delayed.
func TestHugeDelivery(t *testing.T) {
	t.Parallel()
	at := newPlace(t, true)
	at.ackWait = "3s" // of which a busy machine may need half for something else
	at.slowDown(t, 10*time.Millisecond)
	attempts := "1"
	if long {
		attempts = "3"
	}
	receiver := ready(t, at.args("receive")...)
	at.publish(t, receiver, 1, 260) // needs 2.6 s, and gets 6
	worker := ready(t, at.args("work", "-attempts", attempts)...)
	at.drained(t)
	if m := worker.metrics(t); m["labhealth_redelivered_total"] != 0 || m["labhealth_worker_deliveries_total result=applied"] != 1 {
		t.Errorf("%v were delivered again, %v applied", m["labhealth_redelivered_total"], m["labhealth_worker_deliveries_total result=applied"])
	}

	at.publish(t, receiver, 1, 5000) // needs 50 s, and gets 6, then 12, then 24
	others := 0
	h := watch(t, receiver, worker)
	wait(t, time.Minute, "a dead letter", func() bool {
		at.publish(t, receiver, 1, 1)
		others++
		return worker.metrics(t)["labhealth_worker_deliveries_total result=dead"] == 1
	})
	at.drained(t)
	var reasons []string
	for d, err := range at.store.DeadLetters(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		reasons = append(reasons, d.Reason)
	}
	if diff := cmp.Diff([]string{"it took too long"}, reasons); diff != "" {
		t.Errorf("dead letters (-want +got):\n%s", diff)
	}
	wait(t, time.Minute, "the metric", func() bool { return worker.metrics(t)["labhealth_dead_letters"] == 1 })
	h.alerts(t, "LabhealthDeadLetters")
	if sum := worker.scrape(t)[`labhealth_worker_step_duration_seconds_sum{error=""}`]; sum > 600 {
		t.Errorf("batches took %v s", sum)
	}
	if n := len(stored(t, at)); n != 260+others {
		t.Errorf("%d samples, want %d", n, 260+others)
	}
}

// A lock is no reason for a dead letter, whatever it delays. The worker is not ready, and the
// receiver is.
func TestLockedTable(t *testing.T) {
	t.Parallel()
	at := newPlace(t, true)
	at.ackWait = "1s"
	receiver, worker := ready(t, at.args("receive")...), ready(t, at.args("work", "-attempts", "1", "-stalled", "2s")...)
	h := watch(t, receiver, worker)
	tx, err := at.db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec("lock table labhealth_samples in access exclusive mode"); err != nil {
		t.Fatal(err)
	}
	old := webhooks.RawDelivery{ID: "msg_old", Body: batch(uuid.New(), []int{1}, func(int) float64 { return 1 }), ReceivedAt: day}
	if err := at.store.Receive(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	at.publish(t, receiver, 5, 1)
	wait(t, time.Minute, "the worker to be not ready", func() bool {
		code, text := worker.page(t, "/readyz")
		return code == 503 && strings.HasPrefix(text, "nothing was applied for ") && strings.HasSuffix(text, "(SQLSTATE 55P03)")
	})
	if code, text := receiver.page(t, "/readyz"); code != 200 {
		t.Errorf("the receiver: %d %s", code, text)
	}
	wait(t, time.Minute, "the metrics", func() bool {
		m := worker.metrics(t)
		return m["labhealth_redelivered_total"] > 0 && m["labhealth_batch_limit_events"] == 1 && m["labhealth_inbox_oldest_age_seconds"] > 0 &&
			m["labhealth_stream_events"] == 5
	})
	h.alerts(t, "LabhealthWorkerNotReady", "LabhealthNothingApplied", "LabhealthBacklogOld", "LabhealthBatchesFail", "LabhealthBatchesSmall", "LabhealthRedelivered")
	tx.Rollback()
	wait(t, time.Minute, "the worker to be ready", func() bool { return worker.status(t, "/readyz") == 200 })
	at.drained(t)
	for d := range at.store.DeadLetters(t.Context()) {
		t.Errorf("%v became a dead letter", d)
	}
	wait(t, time.Minute, "6 samples", func() bool { return len(stored(t, at)) == 6 })
}

// A shutdown does not wait for a long transaction.
func TestShutdownWhileSlow(t *testing.T) {
	if !long {
		t.Skip("LABHEALTH_TEST_LONG is not set")
	}
	t.Parallel()
	at := newPlace(t, true)
	at.ackWait = "20s"
	at.slowDown(t, time.Second)
	receiver := ready(t, at.args("receive")...)
	at.publish(t, receiver, 1, 1000)
	worker := ready(t, at.args("work")...)
	wait(t, time.Minute, "the transaction", func() bool {
		var n int
		if err := at.db.QueryRow("select count(*) from pg_stat_activity where wait_event = 'PgSleep' and application_name = current_setting('application_name')").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n > 0
	})
	worker.terminate(t)
	if n := at.pending(t); n != 1 {
		t.Errorf("%d events are left, want 1", n)
	}
}

// What counts as progress, by the clock.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p progress
		expect := func(what, want string) {
			t.Helper()
			if got := p.stalled(time.Minute); got != want {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
		time.Sleep(5 * time.Hour)
		expect("idle", "")
		p.start()
		expect("just started", "")
		time.Sleep(2 * time.Minute)
		expect("busy", "nothing was applied for 2m0s although deliveries wait")
		p.completed(true)
		expect("applied", "")
		p.failed(errors.New("no disk"))
		p.stop()
		time.Sleep(time.Hour)
		expect("failing", "nothing was applied for 1h0m0s although deliveries wait: no disk")
		p.idle() // another worker has applied it
		expect("idle after a failure", "")
		p.start()
		p.completed(true)
		p.stop()
		time.Sleep(5 * time.Hour)
		expect("idle after a success", "")
	})
}

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d drain
		for _, step := range []struct {
			after            time.Duration
			waiting, removed uint64
			want             string
		}{
			{0, 5, 100, ""},
			{2 * time.Minute, 4, 101, ""},
			{time.Minute, 4, 101, ""},
			{time.Minute, 9, 101, "9 events wait, and no worker has applied one for 2m0s"},
			{time.Minute, 8, 102, ""},
			{5 * time.Hour, 0, 110, ""},
			{5 * time.Hour, 0, 110, ""}, // idle
			{time.Second, 1, 110, ""},
		} {
			time.Sleep(step.after)
			if got := d.stalled(step.waiting, step.removed, time.Minute); got != step.want {
				t.Errorf("after %s: %q, want %q", step.after, got, step.want)
			}
		}
	})
}

// The size of batches.
func TestBatchSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBatchSize(100)
		expect := func(want int) {
			t.Helper()
			if n := s.limit(); n != want {
				t.Errorf("%d, want %d", n, want)
			}
		}
		expect(100)
		s.shrink(100)
		s.shrink(100) // by another worker, whose batch was started before
		expect(50)
		for range 10 {
			s.shrink(s.limit())
		}
		expect(1)
		grow := func(n int) { s.grow(n, time.Minute) }
		grow(1)
		grow(1) // less than the limit: nothing more was there
		expect(2)
		for range 10 {
			grow(100)
		}
		expect(100)

		s.shrink(50)
		time.Sleep(time.Minute)
		grow(1)
		grow(1)
		expect(50)
		time.Sleep(59 * time.Second)
		s.shrink(50)
		time.Sleep(59 * time.Second)
		grow(1)
		expect(25)
		for range 10 {
			time.Sleep(time.Second)
			grow(1)
		}
		expect(50)
	})
}

func TestTimeAlone(t *testing.T) {
	var alone []time.Duration
	for _, delivered := range []int{1, 2, 5, 6, 1000} {
		alone = append(alone, (&settings{ackWait: 30 * time.Second}).timeAlone(delivered))
	}
	if diff := cmp.Diff([]time.Duration{time.Minute, 2 * time.Minute, 16 * time.Minute, 16 * time.Minute, 16 * time.Minute}, alone); diff != "" {
		t.Errorf("time alone (-want +got):\n%s", diff)
	}
}

// Repeated records are counted.
func TestQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		q := newQuiet(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})))
		for n := range 1000 {
			q.warn("refused", "no disk", "n", n)
		}
		q.warn("refused", "no network", "n", 1000)
		time.Sleep(10 * time.Second)
		q.warn("refused", "no disk", "n", 1001)
		const want = `level=WARN msg=refused n=0 cause="no disk" omitted=0
level=WARN msg=refused n=1000 cause="no network" omitted=0
level=WARN msg=refused n=1001 cause="no disk" omitted=999
`
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("the log (-want +got):\n%s", diff)
		}
	})
}
