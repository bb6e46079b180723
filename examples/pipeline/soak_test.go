//go:build unix

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/postgrestest"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// TestSoak runs the pipeline for a long time while its shape changes and its processes are killed.
//
//	LABHEALTH_TEST_LONG=1 go test -run TestSoak -v .                        24 s of load
//	LABHEALTH_SOAK=1h go test -run TestSoak -v -timeout 3h .
//
// It measures the capacity, then delivers at 70 % of it (LABHEALTH_SOAK_RATE is another percentage)
// until LABHEALTH_SOAK is over, including the measurement; the check at the end takes minutes more.
// It kills a process every 30 s. With LABHEALTH_SOAK_OWN=1 it starts a broker and a PostgreSQL of
// its own, and kills these too. On the way it divides the users into two partitions, makes a
// partition of the samples and drops it, and moves half of the users to another database. Orders
// change meanwhile, some of their events are never delivered, and the program reacts to them. A
// process of each kind is never killed: its goroutines, descriptors and memory must not grow, nor
// the folder of the broker, nor the tables of what waits.
//
// At the end, both databases together have exactly the latest version of each sample of each
// acknowledged delivery. The reference is computed: every user gets deliveries one after the other,
// each after the one before it was acknowledged, and delivery n has samples from minute n·length/2
// on. So the latest version of every minute follows from the number of deliveries, without keeping
// them.
func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("LABHEALTH_SOAK"))
	switch {
	case err != nil && !long:
		t.Skip("neither LABHEALTH_SOAK nor LABHEALTH_TEST_LONG is set")
	case err != nil:
		length = 24 * time.Second
	}
	percent := 70
	if n, err := strconv.Atoi(os.Getenv("LABHEALTH_SOAK_RATE")); err == nil {
		percent = n
	}
	s := newSoak(t, length)
	s.startProcesses(t)
	s.send()
	stopWatching := s.watch(t)
	s.measure(t, percent)
	stopSampling := s.watchResources(t)
	stopChanging := s.orders.change(t, max(length/3600, 100*time.Millisecond))
	s.disturb(t)
	stopChanging()
	stopSampling()
	s.stopSending(t)
	s.drain(t)
	stopWatching()
	s.check(t)
	s.orders.check(t, s)
	s.gauges.check(t, length)
	s.summarize(t)
	if t.Failed() {
		t.Logf("what happened:\n%s", strings.Join(s.events, "\n"))
	}
}

const (
	soakUsers   = 240
	soakSenders = 24
)

// lane is a user, whose deliveries are sent one after the other.
type lane struct {
	user   uuid.UUID
	length int     // samples of a delivery, an even number
	acks   []int64 // when each delivery was acknowledged
}

// value returns the value of a minute in delivery n.
func (l *lane) value(n, minute int) float64 { return float64(n) + float64(minute%8)/8 }

// samples returns the number of minutes that the acknowledged deliveries have.
func (l *lane) samples() int {
	if len(l.acks) == 0 {
		return 0
	}
	return (len(l.acks) + 1) * l.length / 2
}

// latest returns the number of the last delivery that has a minute.
func (l *lane) latest(minute int) int { return min(minute/(l.length/2), len(l.acks)-1) }

func (l *lane) message(n int) message {
	minutes := make([]int, l.length)
	for i := range minutes {
		minutes[i] = n*l.length/2 + i
	}
	return message{fmt.Sprintf("msg_%s_%d", l.user, n), batch(l.user, minutes, func(i int) float64 { return l.value(n, minutes[i]) })}
}

// victim is a process to be killed.
type victim interface {
	kill()
	start(t testing.TB)
}

// postgresVictim is a PostgreSQL server to be killed.
type postgresVictim struct{ *postgrestest.Server }

func (v postgresVictim) kill()              { v.Kill() }
func (v postgresVictim) start(t testing.TB) { v.Start(t) }

type soak struct {
	at     *place
	other  *database
	length time.Duration
	start  time.Time
	lanes  []*lane
	client *http.Client

	addresses []string
	victims   map[string]victim
	own       bool   // the broker and PostgreSQL are killed too
	brokerDir string // if the broker is killed too

	orders   *soakOrders
	gauges   gauges
	steadyMu sync.Mutex
	steady   map[string]*process // are never killed, so that a leak shows

	stop     context.CancelFunc // of sending
	sending  context.Context
	senders  sync.WaitGroup
	pacing   sync.Mutex
	next     time.Time   // of the next delivery
	rate     float64     // samples per second, 0 without a limit
	throttle atomic.Bool // too much waits
	pause    atomic.Bool

	deliveries, attempts, samples, repeats atomic.Int64

	capacity                             float64
	kills                                map[string]int
	redelivered, applied                 float64 // by processes that were killed or stopped
	lag, lagSum, lagCount, throttledSecs int
	rss                                  int // kilobytes
	events                               []string
}

func newSoak(t *testing.T, length time.Duration) *soak {
	s := &soak{length: length, start: time.Now(), victims: map[string]victim{}, steady: map[string]*process{}, kills: map[string]int{}, client: newClient()}
	t.Cleanup(s.client.CloseIdleConnections)
	s.own = os.Getenv("LABHEALTH_SOAK_OWN") != ""
	if s.own {
		postgres, broker := postgrestest.New(t), startServer(t, "")
		s.victims["PostgreSQL"], s.victims["broker"] = postgresVictim{postgres}, broker
		t.Setenv("LABHEALTH_TEST_POSTGRES", postgres.URL)
		s.at, s.brokerDir = newPlaceOn(t, broker.address), broker.dir
	} else {
		s.at = newPlace(t, true)
	}
	s.at.ackWait = "10s"
	s.other, s.orders = s.at.another(t), newSoakOrders(t)
	for n := range soakUsers {
		s.lanes = append(s.lanes, &lane{user: uuid.New(), length: []int{2, 20, 100}[n%3]})
	}
	s.sending, s.stop = context.WithCancel(t.Context())
	t.Cleanup(s.stop)
	return s
}

// note records what happened, for a failure.
func (s *soak) note(format string, args ...any) {
	s.events = append(s.events, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// startProcesses starts two receivers and two workers for all users, and a receiver and a
// reconciler that are never killed.
func (s *soak) startProcesses(t *testing.T) {
	for _, name := range []string{"receiver 1", "receiver 2"} {
		address := freePort(t)
		s.addresses = append(s.addresses, address)
		s.victims[name] = launch(t, s.at.args("receive", "-addr", address)...)
	}
	s.victims["worker 1"] = launch(t, s.at.args("work", s.orders.arguments()...)...)
	s.victims["worker 2"] = launch(t, s.at.args("work", s.orders.arguments()...)...)
	receiver := launch(t, s.at.args("receive")...)
	s.addresses = append(s.addresses, receiver.events)
	s.replace(t, "receiver 3"+steadily, receiver)
	s.replace(t, "reconciler 0-127"+steadily, s.reconciler(s.at.postgres, "0-127")(t))
	s.orders.deliverTo(t, receiver.events)
}

// reconciler starts a process that reads from the service what was never delivered.
func (s *soak) reconciler(postgres, partition string) func(*testing.T) victim {
	return func(t *testing.T) victim {
		return launchWith(t, s.orders.book.environment(), append([]string{"-role", "reconcile", "-postgres", postgres, "-partition", partition,
			"-admin", "127.0.0.1:0", "-rate", "50", "-reconcile-every", "5s", "-walk-every", max(s.length/12, 5*time.Second).String()}, s.orders.arguments()...)...)
	}
}

// databases returns both databases.
func (s *soak) databases() []*sql.DB { return []*sql.DB{s.at.db, s.other.db} }

// send starts the senders.
func (s *soak) send() {
	for g := range soakSenders {
		s.senders.Go(func() {
			for {
				for n := g; n < len(s.lanes); n += soakSenders {
					l := s.lanes[n]
					if !s.pace(l.length) {
						return
					}
					m := l.message(len(l.acks))
					if !s.deliver(m) {
						return
					}
					l.acks = append(l.acks, time.Now().UnixNano())
					s.deliveries.Add(1)
					s.samples.Add(int64(l.length))
					// The service repeats a delivery whose acknowledgement it has missed. A
					// broker that was killed may have forgotten the ID, and an older version
					// would win.
					if !s.own && rand.IntN(50) == 0 {
						s.repeats.Add(1)
						if !s.deliver(m) {
							return
						}
					}
				}
			}
		})
	}
}

// pace waits until the next samples are due, and returns false when sending is over. What was not
// sent in time on a slow machine is not made up for.
func (s *soak) pace(samples int) bool {
	for (s.throttle.Load() || s.pause.Load()) && s.sending.Err() == nil {
		sleep(s.sending, 50*time.Millisecond)
	}
	s.pacing.Lock()
	rate, due := s.rate, time.Now()
	if rate > 0 {
		if earliest := due.Add(-time.Second); s.next.Before(earliest) {
			s.next = earliest
		}
		due = s.next
		s.next = s.next.Add(time.Duration(float64(samples) / rate * float64(time.Second)))
	}
	s.pacing.Unlock()
	if wait := time.Until(due); wait > 0 {
		sleep(s.sending, wait)
	}
	return s.sending.Err() == nil
}

// deliver delivers a message until it is acknowledged. It returns false if that takes ten minutes.
func (s *soak) deliver(m message) bool {
	for range 10 {
		tries, err := deliver(context.Background(), s.client, s.addresses, m)
		s.attempts.Add(int64(tries))
		if err == nil {
			return true
		}
	}
	return false
}

// left returns the number of deliveries that the workers have not acknowledged.
func (s *soak) left(ctx context.Context) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	stream, err := s.at.js.Stream(ctx, s.at.stream)
	if err != nil {
		return 0, err
	}
	list, consumers := stream.ListConsumers(ctx), 0
	for info := range list.Info() {
		n += int(info.NumPending) + info.NumAckPending
		consumers++
	}
	if list.Err() == nil && consumers == 0 {
		return 0, errors.New("the stream has no consumer")
	}
	return n, list.Err()
}

// watch records how many deliveries wait, and pauses the senders while there are too many for the
// workers.
func (s *soak) watch(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for ; ctx.Err() == nil; sleep(ctx, time.Second) {
			n, err := s.left(ctx)
			if err != nil {
				continue // the broker was killed
			}
			s.lag = max(s.lag, n)
			s.lagSum += n
			s.lagCount++
			s.pacing.Lock()
			limited := s.rate > 0
			s.pacing.Unlock()
			switch {
			case limited && n > 20_000:
				s.throttle.Store(true)
			case n < 5_000:
				s.throttle.Store(false)
			}
			if s.throttle.Load() {
				s.throttledSecs++
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
	}
}

func (s *soak) setRate(rate float64) {
	s.pacing.Lock()
	defer s.pacing.Unlock()
	s.rate, s.next = rate, time.Now()
}

// measure delivers as fast as possible for a while and waits until everything is applied.
func (s *soak) measure(t *testing.T, percent int) {
	began, before := time.Now(), s.samples.Load()
	time.Sleep(min(max(s.length/60, 3*time.Second), 20*time.Second)) // how long to measure
	s.pause.Store(true)
	sent := s.samples.Load() - before
	s.drain(t)
	s.capacity = float64(sent) / time.Since(began).Seconds()
	s.setRate(s.capacity * float64(percent) / 100)
	s.pause.Store(false)
	s.note("the capacity is %.0f samples per second; sending %d %% of it", s.capacity, percent)
	t.Logf("the capacity is %.0f samples per second; sending %d %% of it", s.capacity, percent)
}

// drain waits until the workers have acknowledged everything. It fails if that makes no progress.
func (s *soak) drain(t *testing.T) {
	t.Helper()
	least, since := int(^uint(0)>>1), time.Now()
	for zeros := 0; zeros < 2; time.Sleep(200 * time.Millisecond) {
		n, err := s.left(t.Context())
		switch {
		case err == nil && n == 0:
			zeros++
		case err == nil && n < least:
			least, since = n, time.Now()
			fallthrough
		default:
			zeros = 0
		}
		if time.Since(since) > 3*time.Minute {
			t.Errorf("%d deliveries wait in the broker (%v), and no worker has acknowledged any for three minutes", n, err)
			return
		}
	}
}

// disturb runs the steps, and kills processes meanwhile, until the time is over.
func (s *soak) disturb(t *testing.T) {
	end := s.start.Add(s.length)
	every := min(30*time.Second, s.length/8)
	rest := time.Until(end)
	steps := s.steps()
	for i := range steps {
		steps[i].at = end.Add(-rest + time.Duration(steps[i].share*float64(rest)))
	}
	var running chan error // of a step
	kill := time.Now().Add(every)
	for time.Now().Before(end) || len(steps) > 0 || running != nil {
		if running == nil && len(steps) > 0 && !time.Now().Before(steps[0].at) {
			step := steps[0]
			steps, running = steps[1:], make(chan error, 1)
			s.note("%s: starts", step.name)
			for name, change := range step.before {
				s.replace(t, name, change(t))
			}
			done := running
			go func() { done <- step.run(t) }()
			steps = append([]soakStep{{name: step.name, at: time.Now(), after: step.after, isAfter: true}}, steps...)
		}
		select {
		case err := <-running:
			running = nil
			s.note("%s: ends (%v)", steps[0].name, err)
			if err != nil {
				t.Errorf("%s: %v", steps[0].name, err)
			}
			for _, name := range steps[0].after {
				s.remove(t, name)
			}
			steps = steps[1:]
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(kill) {
			kill = time.Now().Add(every)
			s.killOne(t)
		}
		if time.Since(end) > 30*time.Minute {
			t.Errorf("%q is not over half an hour after the end", steps[0].name)
			return
		}
	}
}

// killOne kills a process, the one that was killed least, and starts it again.
func (s *soak) killOne(t *testing.T) {
	names := slices.Collect(maps.Keys(s.victims))
	rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	name := slices.MinFunc(names, func(a, b string) int { return s.kills[a] - s.kills[b] })
	v := s.victims[name]
	s.collect(v)
	v.kill()
	s.kills[name]++
	s.note("%s was killed", name)
	time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond) // how long it is away
	v.start(t)
	s.note("%s was started", name)
}

// steadily is the end of the names of processes that are never killed.
const steadily = ", never killed"

// replace adds a process.
func (s *soak) replace(t *testing.T, name string, v victim) {
	t.Helper()
	if strings.HasSuffix(name, steadily) {
		s.steadyMu.Lock()
		defer s.steadyMu.Unlock()
		s.steady[name] = v.(*process)
	} else {
		s.victims[name] = v
	}
	s.note("%s was started", name)
}

// remove stops a process for good.
func (s *soak) remove(t *testing.T, name string) {
	p := s.victims[name].(*process)
	delete(s.victims, name)
	s.collect(p)
	p.terminate(t)
	s.note("%s was stopped", name)
}

// collect adds the metrics of a process that is about to end.
func (s *soak) collect(v victim) {
	p, ok := v.(*process)
	if !ok {
		return
	}
	values, err := p.readMetrics()
	if err != nil {
		return
	}
	s.redelivered += values["labhealth_redelivered_total"]
	s.applied += appliedEvents(values)
	s.rss = max(s.rss, int(values["process_resident_memory_bytes"]/1024))
}

// soakStep changes the shape of the pipeline. Processes of before are started first, and those of
// after stopped at the end, if it succeeds.
type soakStep struct {
	name    string
	share   float64 // of the time, at which it starts
	at      time.Time
	before  map[string]func(t *testing.T) victim
	run     func(t *testing.T) error
	after   []string
	isAfter bool
}

func (s *soak) steps() []soakStep {
	worker := func(postgres, partition string) func(*testing.T) victim {
		return func(t *testing.T) victim {
			return launch(t, append([]string{"-role", "work", "-nats", s.at.nats, "-postgres", postgres, "-partition", partition,
				"-admin", "127.0.0.1:0", "-stream", s.at.stream, "-ack-wait", s.at.ackWait}, s.orders.arguments()...)...)
		}
	}
	return []soakStep{
		{name: "deliver expired samples", share: 0, run: s.deliverExpired},
		{
			name: "divide the users into two partitions", share: 0.12, after: []string{"worker 1", "worker 2"},
			before: map[string]func(*testing.T) victim{"worker 0-127": worker(s.at.postgres, "0-127"), "worker 128-255": worker(s.at.postgres, "128-255"),
				"worker 0-127" + steadily: worker(s.at.postgres, "0-127")},
			run: func(*testing.T) error {
				return s.again("-role", "repartition", "-nats", s.at.nats, "-partition", "0-127,128-255")
			},
		},
		{name: "make a partition of the samples", share: 0.25, run: s.makePartition},
		{
			name: "apply half of the users to another database", share: 0.4, after: []string{"worker 128-255"},
			before: map[string]func(*testing.T) victim{"worker 128-255 elsewhere": worker(s.other.postgres, "128-255"),
				"worker 128-255 elsewhere" + steadily: worker(s.other.postgres, "128-255")},
			run: func(*testing.T) error { return nil },
		},
		{name: "copy them", share: 0.45, run: s.transfer("copy")},
		{name: "move them", share: 0.5, run: s.transfer("move")},
		{
			name: "drop a partition of the samples", share: 0.75, run: s.dropPartition,
			before: map[string]func(*testing.T) victim{"reconciler 128-255": s.reconciler(s.other.postgres, "128-255")},
		},
	}
}

// transfer returns a function that copies or moves the second half of the users, some slots at a
// time: a copy that is interrupted starts again, and the database is killed every two minutes.
func (s *soak) transfer(role string) func(*testing.T) error {
	return func(*testing.T) error {
		for slot := 128; slot < 256; slot += 8 {
			err := s.again("-role", role, "-postgres", s.at.postgres, "-to", s.other.postgres, "-partition", fmt.Sprintf("%d-%d", slot, slot+7))
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// again runs a role that ends by itself until it succeeds: the database or the broker may be
// killed, and need minutes to start again, and it is killed once itself.
func (s *soak) again(args ...string) error {
	var last string
	start := time.Now()
	for n := 0; n == 0 || time.Since(start) < 20*time.Minute; n++ {
		cmd, out := s.at.command(args...)
		if err := cmd.Start(); err != nil {
			return err
		}
		if n == 0 {
			time.AfterFunc(300*time.Millisecond, func() { cmd.Process.Kill() })
		}
		err := cmd.Wait()
		if err == nil {
			return nil
		}
		last = fmt.Sprintf("%s: %v: %s", strings.Join(args[:2], " "), err, tail(out.String()))
		time.Sleep(time.Second)
	}
	return errors.New(last)
}

// stopSending waits until the deliveries in flight are acknowledged.
func (s *soak) stopSending(t *testing.T) {
	s.stop()
	done := make(chan struct{})
	go func() {
		s.senders.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(11 * time.Minute):
		t.Fatal("deliveries are not acknowledged for eleven minutes")
	}
	if n := s.attempts.Load(); n < s.deliveries.Load() || s.deliveries.Load() == 0 {
		t.Errorf("%d attempts for %d deliveries", n, s.deliveries.Load())
	}
}

// check compares both databases with what was acknowledged.
func (s *soak) check(t *testing.T) {
	byUser, seen := map[uuid.UUID]*lane{}, map[uuid.UUID][]uint64{}
	for _, l := range s.lanes {
		byUser[l.user], seen[l.user] = l, make([]uint64, l.samples()/64+1)
	}
	wrong := 0
	fail := func(format string, args ...any) {
		if wrong++; wrong <= 20 {
			t.Errorf(format, args...)
		}
	}
	for i, store := range []*sqlstore.Store{s.at.store, s.other.store} {
		n := 0
		for of, err := range store.Samples(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			n++
			l, minute := byUser[of.Key.UserID], int(time.Unix(0, of.Key.UnixNano).Sub(day)/time.Minute)
			slot := sqlstore.Slot(of.Key.UserID)
			switch {
			case l == nil:
				fail("database %d has a sample of an unknown user, or one that expired: minute %d", i, minute)
				continue
			case slot/128 != i:
				fail("database %d has a sample of user %s, slot %d", i, l.user, slot)
			case minute < 0 || minute >= l.samples():
				fail("database %d has minute %d of user %s, who was sent %d", i, minute, l.user, l.samples())
				continue
			case of.Sample.Value != l.value(l.latest(minute), minute):
				fail("database %d has %v for minute %d of user %s (slot %d), want %v of delivery %d, acknowledged at %s", i, of.Sample.Value,
					minute, l.user, slot, l.value(l.latest(minute), minute), l.latest(minute), clock(l.acks[l.latest(minute)]))
			}
			seen[l.user][minute/64] |= 1 << (minute % 64)
		}
		b, err := store.Backlog(t.Context())
		if err != nil || b.DeadLetters > 0 || b.Waiting+b.Delayed > 0 {
			t.Errorf("database %d has %d dead letters and %d deliveries in the inbox: %v", i, b.DeadLetters, b.Waiting+b.Delayed, err)
		}
		t.Logf("database %d: %d samples", i, n)
	}
	missing := 0
	for _, l := range s.lanes {
		for minute := range l.samples() {
			if seen[l.user][minute/64]&(1<<(minute%64)) == 0 {
				missing++
				n := l.latest(minute)
				fail("minute %d of user %s (slot %d) is missing: delivery %d of %d, acknowledged at %s", minute, l.user, sqlstore.Slot(l.user), n, len(l.acks), clock(l.acks[n]))
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d samples are wrong, %d of them missing", wrong, missing)
	}
}

func clock(nanoseconds int64) string { return time.Unix(0, nanoseconds).Format("15:04:05.000") }

// summarize logs what was done.
func (s *soak) summarize(t *testing.T) {
	for _, v := range s.victims {
		s.collect(v)
	}
	for _, p := range s.steady {
		s.collect(p)
	}
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	distinct := 0
	for _, l := range s.lanes {
		distinct += l.samples()
	}
	took := time.Since(s.start)
	t.Logf("%.0f s: capacity %.0f samples per second, sent %.0f per second; paused for %d s because too much waited",
		took.Seconds(), s.capacity, float64(s.samples.Load())/s.length.Seconds(), s.throttledSecs)
	t.Logf("%d deliveries acknowledged in %d attempts, %d repeated; %d samples in them, %d different ones",
		s.deliveries.Load(), s.attempts.Load(), s.repeats.Load(), s.samples.Load(), distinct)
	total := 0
	for _, n := range s.kills {
		total += n
	}
	t.Logf("%d kills: %v", total, s.kills)
	t.Logf("at least %.0f deliveries applied and %.0f redelivered (processes that were killed did not report the last ones)", s.applied, s.redelivered)
	t.Logf("waiting in the broker: at most %d deliveries, %d on average", s.lag, s.lagSum/max(s.lagCount, 1))
	t.Logf("memory: processes at most %d MB, this test %d MB", s.rss/1024, memory.HeapAlloc>>20)
}
