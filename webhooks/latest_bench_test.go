package webhooks

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
)

// filling holds the deliveries that fill a store: parsed events, in turn for each user. They are
// few, so that they stay in the cache of the processor, as in a receiver, and the benchmark
// measures Apply alone.
type filling struct {
	windows []*Event // one after the other in time, with samples of one series
	users   []uuid.UUID
	turns   []uint32 // of each delivery, the number of its window times the users plus the number of its user
}

// newFilling returns deliveries of size samples, as many as each says for each user: window after
// window for all users, or shuffled.
func newFilling(t testing.TB, users, each, size int, shuffled bool) *filling {
	f := &filling{windows: make([]*Event, each/size), users: make([]uuid.UUID, users), turns: make([]uint32, users*each/size)}
	for n := range f.windows {
		body := []byte(`{"event_type":"daily.data.glucose.created","data":{"source":{"slug":"example_sensor"},"data":[`)
		for i := n * size; i < (n+1)*size; i++ {
			body = fmt.Appendf(body, `{"timestamp":%q,"timezone_offset":3600,"type":"automatic","unit":"mmol/L","value":%.1f},`,
				noon.Add(time.Duration(i)*time.Minute).Format(time.RFC3339), 4+float64(i%50)/10)
		}
		f.windows[n] = mustParse(t, append(body[:len(body)-1], "]}}"...))
	}
	for i := range f.users {
		f.users[i] = uuid.NewSHA1(uuid.Nil, fmt.Append(nil, i))
	}
	for i := range f.turns {
		f.turns[i] = uint32(i)
	}
	if shuffled {
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(f.turns), func(i, j int) { f.turns[i], f.turns[j] = f.turns[j], f.turns[i] })
	}
	return f
}

// samples is how many the store has in the end.
func (f *filling) samples() int { return len(f.turns) * len(f.windows[0].Data.(*Samples).Data) }

// apply applies all deliveries. Each goroutine takes the next few, so that they are applied almost
// in order.
func (f *filling) apply(t testing.TB, l *Latest, goroutines int) {
	const few = 16
	var taken atomic.Int64
	var all sync.WaitGroup
	size := len(f.windows[0].Data.(*Samples).Data)
	for range goroutines {
		all.Go(func() {
			for first := int(taken.Add(few)) - few; first < len(f.turns); first = int(taken.Add(few)) - few {
				for i, turn := range f.turns[first:min(first+few, len(f.turns))] {
					event := *f.windows[int(turn)/len(f.users)]
					event.UserID, event.ReceivedAt = f.users[int(turn)%len(f.users)], noon.Add(time.Duration(first+i))
					if c, err := l.Apply(Delivery{Event: &event}); err != nil || c.Added != size {
						t.Error(c, err)
						return
					}
				}
			}
		})
	}
	all.Wait()
}

// BenchmarkLatest fills an empty store and measures samples per second and the heap that a stored
// sample takes. Batches have 100 samples; "single" has one sample in a delivery.
//
// Run the long ones by name: go test ./webhooks -run '^$' -bench 'Latest/^shuffled$/^10000000$/^1$'
// -benchtime 1x
func BenchmarkLatest(b *testing.B) {
	for _, form := range []struct {
		name       string
		each, size int
		shuffled   bool
	}{
		{"ordered", 1000, 100, false}, {"shuffled", 1000, 100, true},
		{"single-ordered", 1000, 1, false}, {"single-shuffled", 1000, 1, true}, {"series", 1, 1, true},
	} {
		for samples := 1000; samples <= 10_000_000; samples *= 10 {
			b.Run(fmt.Sprintf("%s/%d", form.name, samples), func(b *testing.B) {
				f := newFilling(b, samples/form.each, form.each, form.size, form.shuffled)
				for goroutines := 1; goroutines <= 64; goroutines *= 2 {
					b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
						var live uint64
						for b.Loop() {
							b.StopTimer()
							before := liveHeap()
							latest := new(Latest)
							b.StartTimer()
							f.apply(b, latest, goroutines)
							b.StopTimer()
							live = liveHeap() - before
							runtime.KeepAlive(latest)
							b.StartTimer()
						}
						b.ReportMetric(float64(b.N)*float64(samples)/b.Elapsed().Seconds()/1e6, "Msamples/s")
						b.ReportMetric(float64(live)/float64(samples), "B/sample")
					})
				}
			})
		}
	}
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
