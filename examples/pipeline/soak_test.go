//go:build unix

package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/postgrestest"
)

// TestSoak runs the pipeline for a long time while its processes are killed.
//
//	LABHEALTH_TEST_LONG=1 go test -run TestSoak -v .                        24 s of load
//	LABHEALTH_SOAK=1h go test -run TestSoak -v -timeout 3h .
//
// It delivers LABHEALTH_SOAK_RATE deliveries per second (50 if it is not set) and kills a process
// every 30 s. With LABHEALTH_SOAK_OWN=1 it starts a broker and a PostgreSQL of its own, and kills
// these too. A receiver and a worker are never killed: their goroutines, descriptors and memory
// must not grow, nor the folder of the broker, nor the tables of what waits.
//
// At the end, the database has exactly the latest version of each sample of each acknowledged
// delivery. Every user gets deliveries one after the other, each after the one before it was
// acknowledged, and delivery n has samples from minute n·length/2 on. So the latest version of
// every minute follows from the number of deliveries, without keeping them.
func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("LABHEALTH_SOAK"))
	switch {
	case err != nil && !long:
		t.Skip("neither LABHEALTH_SOAK nor LABHEALTH_TEST_LONG is set")
	case err != nil:
		length = 24 * time.Second
	}
	s := newSoak(t)
	s.send()
	start, every := time.Now(), min(30*time.Second, length/8)
	kill, sample, n := time.Tick(every), time.Tick(max(length/240, 250*time.Millisecond)), 0
	for time.Since(start) < length {
		select {
		case <-kill:
			s.killOne(t)
		case <-sample:
			s.sample(t)
			if n++; n%10 == 0 {
				s.gauges.log(t)
			}
		}
	}
	s.stop()
	s.senders.Wait()
	s.drain(t)
	s.check(t)
	s.gauges.check(t, length)
	t.Logf("%.0f s: %d deliveries in %d attempts, kills: %v", time.Since(start).Seconds(), s.deliveries.Load(), s.attempts.Load(), s.kills)
}

const (
	soakUsers   = 240
	soakSenders = 24
)

// lane is a user, whose deliveries are sent one after the other.
type lane struct {
	user   uuid.UUID
	length int // samples of a delivery, an even number
	sent   int // deliveries that were acknowledged
}

// value returns the value of a minute in delivery n.
func (l *lane) value(n, minute int) float64 { return float64(n) + float64(minute%8)/8 }

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
	at        *place
	lanes     []*lane
	client    *http.Client
	addresses []string
	victims   map[string]victim
	kills     map[string]int
	brokerDir string              // if the broker is killed too
	steady    map[string]*process // are never killed, so that a leak shows
	gauges    gauges

	sending              context.Context
	stop                 context.CancelFunc // of sending
	senders              sync.WaitGroup
	rate                 float64 // deliveries per second
	deliveries, attempts atomic.Int64
}

func newSoak(t *testing.T) *soak {
	s := &soak{victims: map[string]victim{}, kills: map[string]int{}, client: newClient(), rate: 50}
	t.Cleanup(s.client.CloseIdleConnections)
	if n, err := strconv.ParseFloat(os.Getenv("LABHEALTH_SOAK_RATE"), 64); err == nil {
		s.rate = n
	}
	if os.Getenv("LABHEALTH_SOAK_OWN") != "" {
		postgres, broker := postgrestest.New(t), startServer(t, "")
		s.victims["PostgreSQL"], s.victims["broker"] = postgresVictim{postgres}, broker
		t.Setenv("LABHEALTH_TEST_POSTGRES", postgres.URL)
		s.at, s.brokerDir = newPlaceOn(t, broker.address), broker.dir
	} else {
		s.at = newPlace(t)
	}
	for n := range soakUsers {
		s.lanes = append(s.lanes, &lane{user: uuid.New(), length: []int{2, 20, 100}[n%3]})
	}
	receive := func() *process {
		address := freePort(t)
		s.addresses = append(s.addresses, address)
		return launch(t, s.at.args("receive", "-addr", address)...)
	}
	work := func() *process { return launch(t, s.at.args("work")...) }
	s.victims["receiver"], s.victims["worker"] = receive(), work()
	s.steady = map[string]*process{"receiver, never killed": receive(), "worker, never killed": work()}
	s.sending, s.stop = context.WithCancel(t.Context())
	t.Cleanup(s.stop)
	return s
}

// send starts the senders.
func (s *soak) send() {
	for g := range soakSenders {
		s.senders.Go(func() {
			for n := g; s.sending.Err() == nil; n += soakSenders {
				l := s.lanes[n%len(s.lanes)]
				for acknowledged := false; !acknowledged; {
					tries, err := deliver(context.Background(), s.client, s.addresses, l.message(l.sent))
					s.attempts.Add(int64(tries))
					acknowledged = err == nil
				}
				l.sent++
				s.deliveries.Add(1)
				sleep(s.sending, time.Duration(rand.Float64()*2*soakSenders/s.rate*float64(time.Second)))
			}
		})
	}
}

// killOne kills a process, the one that was killed least, and starts it again.
func (s *soak) killOne(t *testing.T) {
	names := slices.Sorted(maps.Keys(s.victims))
	name := slices.MinFunc(names, func(a, b string) int { return s.kills[a] - s.kills[b] })
	s.victims[name].kill()
	s.kills[name]++
	time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond) // how long it is away
	s.victims[name].start(t)
}

// sample measures the processes that are never killed, the broker's folder and the tables whose
// rows are deleted again.
func (s *soak) sample(t *testing.T) {
	for name, p := range s.steady {
		if metrics, err := p.readMetrics(); err == nil {
			s.gauges.addMetrics(name, metrics)
		}
	}
	if s.brokerDir != "" {
		s.gauges.add("broker", diskMB, sizeOf(s.brokerDir))
	}
	var bytes float64
	err := s.at.db.QueryRowContext(t.Context(), `SELECT pg_total_relation_size('labhealth_inbox') + pg_total_relation_size('labhealth_deliveries')
		+ pg_total_relation_size('labhealth_dead_letters')`).Scan(&bytes)
	if err == nil { // or the database was killed
		s.gauges.add("inbox", diskMB, bytes/(1<<20))
	}
}

// drain waits until the workers have nothing to do. A broker that was killed may keep messages that
// were acknowledged.
func (s *soak) drain(t *testing.T) {
	t.Helper()
	wait(t, 5*time.Minute, "all deliveries to be applied", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		consumer, err := s.at.js.Consumer(ctx, s.at.stream, "workers")
		if err != nil {
			return false
		}
		info, err := consumer.Info(ctx)
		return err == nil && info.NumPending == 0 && info.NumAckPending == 0 && s.at.inbox(t) == 0
	})
}

// check compares the database with what was acknowledged.
func (s *soak) check(t *testing.T) {
	missing := map[uuid.UUID]map[int]float64{} // values by minute
	total := 0
	for _, l := range s.lanes {
		missing[l.user] = map[int]float64{}
		for n := range l.sent {
			for minute := n * l.length / 2; minute < n*l.length/2+l.length; minute++ {
				missing[l.user][minute] = l.value(n, minute)
			}
		}
		total += len(missing[l.user])
	}
	wrong := 0
	for stored, err := range s.at.store.Samples(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		minute := int(time.Unix(0, stored.Key.UnixNano).Sub(day) / time.Minute)
		if value, ok := missing[stored.Key.UserID][minute]; !ok || value != stored.Sample.Value {
			wrong++
		}
		delete(missing[stored.Key.UserID], minute)
	}
	left := 0
	for _, minutes := range missing {
		left += len(minutes)
	}
	if wrong > 0 || left > 0 || total == 0 {
		t.Errorf("of %d samples %d are wrong, and %d are missing", total, wrong, left)
	}
	if dead := s.at.deadLetters(t); len(dead) > 0 {
		t.Errorf("dead letters: %v", dead)
	}
	t.Logf("%d samples", total)
}
