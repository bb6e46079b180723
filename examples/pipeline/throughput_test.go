//go:build unix

package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks"
)

// TestThroughput measures, and never fails for speed: the machine may be busy.
//
//	LABHEALTH_TEST_THROUGHPUT=1 go test -run TestThroughput -v .
//
// It compares the whole pipeline (received over HTTP, verified, published, fetched, parsed,
// applied) with the batched upsert of the same deliveries alone, in the same run and on the same
// machine, which also runs the sender, the broker and the database.
func TestThroughput(t *testing.T) {
	if os.Getenv("LABHEALTH_TEST_THROUGHPUT") == "" {
		t.Skip("LABHEALTH_TEST_THROUGHPUT is not set")
	}
	for _, c := range []struct{ users, rounds, perDelivery int }{{1000, 4, 100}, {1000, 20, 1}} {
		t.Run(fmt.Sprintf("%d samples in a delivery", c.perDelivery), func(t *testing.T) { throughput(t, c.users, c.rounds, c.perDelivery) })
	}
}

func throughput(t *testing.T, users, rounds, perDelivery int) {
	var messages []message
	var ids []uuid.UUID
	for range users {
		ids = append(ids, uuid.New())
	}
	for round := range rounds {
		for n, id := range ids {
			minutes := make([]int, perDelivery)
			for i := range minutes {
				minutes[i] = round*perDelivery + i
			}
			messages = append(messages, message{fmt.Sprintf("msg_%d_%d", round, n),
				batch(id, minutes, func(i int) float64 { return float64(i) / 8 })})
		}
	}
	samples := users * rounds * perDelivery
	t.Logf("%d deliveries of %d samples, %d bytes each; %d cores, %s", len(messages), perDelivery, len(messages[0].body), runtime.NumCPU(), runtime.Version())

	// Parsing alone.
	var deliveries []webhooks.Delivery
	start := ownCPU()
	for n, m := range messages {
		d, err := webhooks.RawDelivery{ID: m.id, Body: m.body, ReceivedAt: time.Unix(int64(n), 0)}.Parse()
		if err != nil {
			t.Fatal(err)
		}
		deliveries = append(deliveries, d)
	}
	report := func(what string, cpu time.Duration) {
		t.Logf("%-44s %7.1f µs of CPU per delivery: %9.0f deliveries, %9.0f samples per second and core", what,
			float64(cpu.Nanoseconds())/1000/float64(len(messages)), float64(len(messages))/cpu.Seconds(), float64(samples)/cpu.Seconds())
	}
	report("parse", ownCPU()-start)

	// Memory alone.
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var latest webhooks.Latest
	start = ownCPU()
	for _, d := range deliveries {
		if _, err := latest.Apply(d); err != nil {
			t.Fatal(err)
		}
	}
	report("apply to webhooks.Latest", ownCPU()-start)
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("webhooks.Latest: %.1f bytes per sample", float64(after.HeapAlloc-before.HeapAlloc)/float64(samples))
	runtime.KeepAlive(&latest)

	// The batched upsert alone, one batch at a time and two.
	alone := map[int]time.Duration{}
	for _, parallel := range []int{1, 2} {
		at := newPlace(t, true)
		wall, cpu := time.Now(), ownCPU()
		upsert(t, at, deliveries, parallel)
		alone[parallel] = time.Since(wall)
		report(fmt.Sprintf("upsert alone, %d at a time: client", parallel), ownCPU()-cpu)
		report(fmt.Sprintf("upsert alone, %d at a time: PostgreSQL", parallel), at.databaseCPU(t))
		t.Logf("upsert alone, %d at a time: %.0f samples per second", parallel, float64(samples)/alone[parallel].Seconds())
		var size int64
		if err := at.db.QueryRow("select sum(pg_total_relation_size(relid)) from pg_partition_tree('labhealth_samples')").Scan(&size); err != nil {
			t.Fatal(err)
		}
		t.Logf("PostgreSQL: %.1f bytes per sample, with its index", float64(size)/float64(samples))
	}

	// The whole, in one process with SQLite, and in two with PostgreSQL and NATS.
	at := newPlace(t, false)
	all := ready(t, at.args("all")...)
	wall := time.Now()
	sendAll(t, all.events, messages)
	received := time.Since(wall)
	at.drained(t)
	report("the pipeline with SQLite: all", time.Duration(all.metrics(t)["process_cpu_seconds_total"]*float64(time.Second)))
	t.Logf("the pipeline with SQLite: received after %.1f s, applied after %.1f s: %.0f samples per second",
		received.Seconds(), time.Since(wall).Seconds(), float64(samples)/time.Since(wall).Seconds())

	broker := startServer(t, "")
	at = newPlaceOn(t, broker.address)
	receiver, worker := ready(t, at.args("receive")...), ready(t, at.args("work")...)
	brokerCPU := cpuOf(broker.cmd.Process.Pid)
	wall, cpu := time.Now(), ownCPU()
	sendAll(t, receiver.events, messages)
	received = time.Since(wall)
	at.drained(t)
	whole := time.Since(wall)
	report("the pipeline: sender", ownCPU()-cpu)
	report("the pipeline: broker", cpuOf(broker.cmd.Process.Pid)-brokerCPU)
	report("the pipeline: PostgreSQL", at.databaseCPU(t))
	for what, p := range map[string]*process{"receiver": receiver, "worker": worker} {
		report("the pipeline: "+what, time.Duration(p.metrics(t)["process_cpu_seconds_total"]*float64(time.Second)))
	}
	t.Logf("the pipeline: received after %.1f s, applied after %.1f s in %.0f batches: %.0f samples per second",
		received.Seconds(), whole.Seconds(), worker.metrics(t)["labhealth_batch_events"], float64(samples)/whole.Seconds())
	for _, parallel := range []int{1, 2} {
		t.Logf("the pipeline does %.2f of what the upsert alone does, %d at a time", alone[parallel].Seconds()/whole.Seconds(), parallel)
	}
	if n := len(stored(t, at)); n != samples {
		t.Errorf("%d samples, want %d", n, samples)
	}
}

// TestPublishingThroughput compares brokers with sync_interval: always and without it, in turns on
// the disk of the temporary folder.
//
//	LABHEALTH_TEST_THROUGHPUT=1 go test -run TestPublishingThroughput -v .
func TestPublishingThroughput(t *testing.T) {
	if os.Getenv("LABHEALTH_TEST_THROUGHPUT") == "" {
		t.Skip("LABHEALTH_TEST_THROUGHPUT is not set")
	}
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := startServer(t, "")
	var always []*broker // with their own streams
	for range 4 {
		always = append(always, publisher(t, newPlaceOn(t, server.address)))
	}
	byDefault := publisher(t, newPlaceOn(t, startServer(t, binary).address))
	for _, samples := range []int{1, 100} {
		body := batch(uuid.New(), make([]int, samples), func(int) float64 { return 5 })
		for _, senders := range []int{1, 16, 64} {
			var synced, spread, plain []float64
			for range 5 {
				synced = append(synced, published(t, always[:1], senders, body))
				spread = append(spread, published(t, always, senders, body))
				plain = append(plain, published(t, []*broker{byDefault}, senders, body))
			}
			t.Logf("%5d bytes, %2d at a time: %5.0f deliveries per second with sync_interval: always, %5.0f in 4 streams, %6.0f with the default: %.2f (medians of 5)",
				len(body), senders, median(synced), median(spread), median(plain), median(synced)/median(plain))
		}
	}
}

// published publishes for a second and returns the number of acknowledgements per second.
func published(t *testing.T, to []*broker, senders int, body []byte) float64 {
	began, count := time.Now(), atomic.Int64{}
	var loops sync.WaitGroup
	for n := range senders {
		b := to[n%len(to)]
		loops.Go(func() {
			for time.Since(began) < time.Second {
				if err := b.publish(t.Context(), webhooks.RawDelivery{ID: "msg_" + uuid.NewString(), Body: body, ReceivedAt: began}); err != nil {
					t.Error(err)
				}
				count.Add(1)
			}
		})
	}
	loops.Wait()
	return float64(count.Load()) / time.Since(began).Seconds()
}

func median(values []float64) float64 { return slices.Sorted(slices.Values(values))[len(values)/2] }

// upsert applies deliveries in batches of 100.
func upsert(t *testing.T, at *place, deliveries []webhooks.Delivery, parallel int) {
	batches := make(chan []webhooks.Delivery, len(deliveries)/100)
	for batch := range slices.Chunk(deliveries, 100) {
		batches <- batch
	}
	close(batches)
	var loops sync.WaitGroup
	for range parallel {
		loops.Go(func() {
			for b := range batches {
				if _, err := at.store.ApplyAll(t.Context(), b); err != nil {
					t.Error(err)
				}
			}
		})
	}
	loops.Wait()
}

// sendAll delivers messages, 32 at a time.
func sendAll(t *testing.T, address string, messages []message) {
	client := newClient()
	defer client.CloseIdleConnections()
	var next atomic.Int64
	var senders sync.WaitGroup
	for range 32 {
		senders.Go(func() {
			for n := next.Add(1); n <= int64(len(messages)); n = next.Add(1) {
				if _, err := deliver(t.Context(), client, []string{address}, messages[n-1]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	senders.Wait()
}

// ownCPU returns the CPU time of this process.
func ownCPU() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// databaseCPU returns the CPU time of the connections of the place.
func (p *place) databaseCPU(t *testing.T) (sum time.Duration) {
	t.Helper()
	rows, err := p.db.Query("select pid from pg_stat_activity where application_name = $1", p.stream)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var pid int
		if err := rows.Scan(&pid); err != nil {
			t.Fatal(err)
		}
		sum += cpuOf(pid)
	}
	return sum
}

// cpuOf reads the time of a process in hundredths of a second; zero if there is none.
func cpuOf(pid int) time.Duration {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}
