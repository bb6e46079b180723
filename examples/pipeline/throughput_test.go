//go:build unix

package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
)

// TestThroughput measures the CPU time of each part of the pipeline, and never fails for speed: the
// machine may be busy, and also runs the sender, the broker and the database.
//
//	LABHEALTH_TEST_THROUGHPUT=1 go test -run TestThroughput -v .
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
	for n := range users {
		id := uuid.New()
		for round := range rounds {
			minutes := make([]int, perDelivery)
			for i := range minutes {
				minutes[i] = round*perDelivery + i
			}
			messages = append(messages, message{fmt.Sprintf("msg_%d_%d", round, n), batch(id, minutes, func(i int) float64 { return float64(i) / 8 })})
		}
	}
	samples := users * rounds * perDelivery
	t.Logf("%d deliveries of %d samples, %d bytes each; %d cores, %s", len(messages), perDelivery, len(messages[0].body), runtime.NumCPU(), runtime.Version())
	report := func(what string, cpu time.Duration) {
		t.Logf("%-10s %7.1f µs of CPU per delivery: %9.0f deliveries, %9.0f samples per second and core", what,
			float64(cpu.Nanoseconds())/1000/float64(len(messages)), float64(len(messages))/cpu.Seconds(), float64(samples)/cpu.Seconds())
	}

	broker := startServer(t, "")
	at := newPlaceOn(t, broker.address)
	receiver, worker := ready(t, at.args("receive")...), ready(t, at.args("work")...)
	brokerCPU := cpuOf(broker.cmd.Process.Pid)
	wall, cpu := time.Now(), ownCPU()
	sendAll(t, receiver.events, messages)
	received := time.Since(wall)
	at.drained(t)
	whole := time.Since(wall)
	report("sender", ownCPU()-cpu)
	report("broker", cpuOf(broker.cmd.Process.Pid)-brokerCPU)
	report("PostgreSQL", at.databaseCPU(t))
	for what, p := range map[string]*process{"receiver": receiver, "worker": worker} {
		report(what, time.Duration(p.metrics(t)["process_cpu_seconds_total"]*float64(time.Second)))
	}
	t.Logf("received after %.1f s, applied after %.1f s in %.0f batches: %.0f samples per second", received.Seconds(), whole.Seconds(),
		worker.metrics(t)["labhealth_worker_step_duration_seconds error="], float64(samples)/whole.Seconds())
	if n := len(stored(t, at)); n != samples {
		t.Errorf("%d samples, want %d", n, samples)
	}
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
