package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks"
)

// The crash tests kill the program at random points while they deliver events, repeated, lost and
// out of order.
//
//	go test .                                               10,000 samples, once for each form
//	LABHEALTH_TEST_LONG=1 go test -run TestCrash .          100,000 samples, 5 rounds
//	LABHEALTH_KILL_ROUNDS=50 go test -run TestCrash -timeout 2h .
//
// What must hold at the end:
//
//   - Every delivery that was acknowledged is applied. Each has a sample that no other one has.
//   - Half of the users get their deliveries one after the other: each is sent after the previous
//     one was acknowledged. The last one counts, in whatever order the workers apply them, and
//     although older deliveries are repeated after newer ones.
//   - The deliveries of the other users overlap in time. The database has the time of receipt of
//     each as the version of its own sample. The content is that of webhooks.Latest after the
//     deliveries in the order of these times.
//   - Events of orders are among them, in any order. The database has the orders of the service
//     with their timelines.
func TestCrash(t *testing.T) {
	samples, rounds := 10_000, 1
	if long {
		samples, rounds = 100_000, 5
	}
	if n, err := strconv.Atoi(os.Getenv("LABHEALTH_KILL_ROUNDS")); err == nil {
		samples, rounds = 100_000, n
	}
	t.Parallel()
	for name, open := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for round := range rounds {
				if !t.Run(fmt.Sprintf("round %d", round+1), func(t *testing.T) { crashRound(t, open(t), samples) }) {
					return
				}
			}
		})
	}
}

const (
	crashUsers = 40
	ownMinutes = 10_000_000 // from here on, each delivery has a minute for itself
)

// traffic is what is sent. The numbers of deliveries are in the values of their samples.
type traffic struct {
	messages []message
	minutes  [][]int // of each delivery
	users    []uuid.UUID
	lanes    [][]int // numbers of the deliveries that are sent one after the other, by user
	free     []int   // numbers of those that are sent in any order
	poison   int
	orders   *orderBook
}

func newTraffic(t *testing.T, samples int) *traffic {
	tr := &traffic{lanes: make([][]int, crashUsers/2), orders: newOrderBook(t, samples/500)}
	for range crashUsers {
		tr.users = append(tr.users, uuid.New())
	}
	for n, sent := 0, 0; sent < samples; n++ {
		u := rand.IntN(crashUsers)
		if n%200 == 199 {
			tr.poison++
			body := []string{"not JSON", `{"event_type":"daily.data.glucose.updated","data":{"data":[{"timestamp":"2026-01-01T00:00:00Z","value":5}]}}`}[n/200%2]
			tr.add(u, n, body2message(n, []byte(body)), nil)
			continue
		}
		length := 20 + rand.IntN(100)
		sent += length
		minutes := make([]int, length)
		first := rand.IntN(max(samples/crashUsers/2, 1)) // so that a minute comes about twice
		for i := range minutes {
			minutes[i] = first + i
		}
		minutes[0] = ownMinutes + n
		if n%7 == 0 {
			rand.Shuffle(length, func(i, j int) { minutes[i], minutes[j] = minutes[j], minutes[i] })
		}
		body := batch(tr.users[u], minutes, func(i int) float64 { return float64(n) + float64(minutes[i]%1000)/1000 })
		tr.add(u, n, body2message(n, body), minutes)
	}
	for _, event := range tr.orders.events {
		n := len(tr.messages)
		tr.add(crashUsers, n, body2message(n, event), nil)
	}
	rand.Shuffle(len(tr.free), func(i, j int) { tr.free[i], tr.free[j] = tr.free[j], tr.free[i] })
	return tr
}

func body2message(n int, body []byte) message {
	return message{fmt.Sprintf("msg_%08d_%08x", n, rand.Uint32()), body}
}

func (tr *traffic) add(u, n int, m message, minutes []int) {
	tr.messages = append(tr.messages, m)
	tr.minutes = append(tr.minutes, minutes)
	if u < len(tr.lanes) {
		tr.lanes[u] = append(tr.lanes[u], n)
	} else {
		tr.free = append(tr.free, n)
	}
}

func crashRound(t *testing.T, at *place, samples int) {
	began := time.Now()
	tr := newTraffic(t, samples)

	// The addresses of the receivers stay the same when they come back.
	var all []*process
	var addresses []string
	roles := []string{"receive", "work", "receive", "work"}
	if at.sqlite != "" {
		roles = []string{"all"}
	}
	for _, role := range roles {
		address := freePort(t)
		if role != "work" {
			addresses = append(addresses, address)
		}
		all = append(all, launch(t, at.args(role, "-addr", address)...))
	}

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var sending, repeating sync.WaitGroup
	client := newClient()
	client.Timeout = 3 * time.Second
	defer client.CloseIdleConnections()
	var mu sync.Mutex
	attempts, repeats := 0, 0
	var acknowledged atomic.Int64
	send := func(n int) {
		tries, err := deliver(ctx, client, addresses, tr.messages[n])
		if err != nil {
			t.Errorf("delivery %d: %v", n, err)
		}
		acknowledged.Add(1)
		mu.Lock()
		defer mu.Unlock()
		attempts += tries
	}
	sendAndMaybeAgain := func(n int) {
		send(n)
		// The response was lost, or the service repeats the delivery later, after newer ones.
		for rand.IntN(8) == 0 {
			repeating.Go(func() {
				sleep(ctx, time.Duration(rand.Int64N(int64(time.Second))))
				send(n)
				mu.Lock()
				defer mu.Unlock()
				repeats++
			})
		}
		sleep(ctx, time.Duration(rand.Int64N(int64(20*time.Millisecond))))
	}
	for _, lane := range tr.lanes {
		sending.Go(func() {
			for _, n := range lane {
				sendAndMaybeAgain(n)
			}
		})
	}
	free := make(chan int, len(tr.free))
	for _, n := range tr.free {
		free <- n
	}
	close(free)
	for range crashUsers / 2 {
		sending.Go(func() {
			for n := range free {
				sendAndMaybeAgain(n)
			}
		})
	}

	sent := make(chan struct{})
	go func() {
		sending.Wait()
		repeating.Wait()
		close(sent)
	}()
	kills, took := 0, time.Duration(0)
	for left := 3; left > 0; { // kills after the last delivery, for what waits then
		awaitDeliveries(ctx, sent, &acknowledged, rand.Int64N(10))
		select {
		case <-time.After(time.Duration(20+rand.IntN(200)) * time.Millisecond):
			p := all[rand.IntN(len(all))]
			p.kill()
			kills++
			p.start(t)
		case <-ctx.Done():
			left = 0
		}
		select {
		case <-sent:
			if left--; took == 0 {
				took = time.Since(began)
			}
		default:
		}
	}
	if t.Failed() {
		return
	}
	at.drained(t)
	tr.orders.check(t, at.store)
	for _, p := range all {
		p.terminate(t)
	}
	tr.check(t, at)
	t.Logf("%d deliveries with %d samples in %.1f s, checked after %.1f s: %d attempts, %d repeated after they were acknowledged, %d kills",
		len(tr.messages), samples, took.Seconds(), time.Since(began).Seconds(), attempts, repeats, kills)
}

// awaitDeliveries waits until n more deliveries are acknowledged, or all were sent. Without it, a
// program that is slow, as with the race detector on a busy machine, would be killed again and
// again before its first acknowledgment.
func awaitDeliveries(ctx context.Context, sent <-chan struct{}, acknowledged *atomic.Int64, n int64) {
	for least := acknowledged.Load() + n; acknowledged.Load() < least; {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-sent:
			return
		case <-ctx.Done():
			return
		}
	}
}

// check compares what the database holds with what it should.
func (tr *traffic) check(t *testing.T, at *place) {
	t.Helper()
	// When was each delivery received?
	received := map[int]int64{}
	rows, err := at.db.Query("select value, version from labhealth_samples where at >= $1", day.Add(ownMinutes*time.Minute).UnixNano())
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var value float64
		var version int64
		if err := rows.Scan(&value, &version); err != nil {
			t.Fatal(err)
		}
		received[int(value)] = version
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for n := range tr.messages {
		if _, ok := received[n]; !ok && tr.minutes[n] != nil {
			t.Errorf("delivery %d was acknowledged and is not applied", n)
		}
	}

	var want webhooks.Latest
	apply := func(n int, receipt time.Time) {
		if tr.minutes[n] == nil {
			return
		}
		d, err := webhooks.RawDelivery{ID: tr.messages[n].id, Body: tr.messages[n].body, ReceivedAt: receipt}.Parse()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := want.Apply(d); err != nil {
			t.Fatal(err)
		}
	}
	for _, lane := range tr.lanes {
		for i, n := range lane {
			apply(n, time.Unix(int64(i), 0))
		}
	}
	slices.SortFunc(tr.free, func(a, b int) int { return int(received[a] - received[b]) })
	for _, n := range tr.free {
		apply(n, time.Unix(0, received[n]))
	}
	if diff := diffSamples(maps.Collect(want.Samples()), stored(t, at)); diff != "" {
		t.Errorf("the state (-want +got):\n%s", diff)
	}

	if dead := at.deadLetters(t); len(dead) != tr.poison {
		t.Errorf("%d dead letters, want %d", len(dead), tr.poison)
	}
}

// stored reads everything.
func stored(t *testing.T, at *place) map[webhooks.SampleKey]webhooks.Sample {
	t.Helper()
	got := map[webhooks.SampleKey]webhooks.Sample{}
	for s, err := range at.store.Samples(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got[s.Key] = s.Sample
	}
	return got
}

// diffSamples returns the first few differences.
func diffSamples(want, got map[webhooks.SampleKey]webhooks.Sample) string {
	type sample struct {
		Value                 float64
		Unit, Type, Timestamp string
	}
	plain := func(s webhooks.Sample) sample { return sample{s.Value, s.Unit, s.Type, s.Timestamp.String()} }
	different := 0
	a, b := map[webhooks.SampleKey]sample{}, map[webhooks.SampleKey]sample{}
	note := func(key webhooks.SampleKey) {
		if w, inWant := want[key]; inWant {
			a[key] = plain(w)
		}
		if g, inGot := got[key]; inGot {
			b[key] = plain(g)
		}
	}
	for key, w := range want {
		if g, ok := got[key]; !ok || plain(g) != plain(w) {
			if different++; different <= 5 {
				note(key)
			}
		}
	}
	for key := range got {
		if _, ok := want[key]; !ok {
			if different++; different <= 5 {
				note(key)
			}
		}
	}
	if different == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d keys differ, such as:\n%s", different, len(want), cmp.Diff(a, b))
}
