package webhooks

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A body that gives up waiting lets one that needs less continue at once.
func TestInFlightWaiterGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newInFlight(4<<20, 1<<20)
		held := &reservation{inFlight: f, large: true}
		lane := &reservation{inFlight: f, large: true}
		for _, acquired := range []error{held.acquire(t.Context(), f.common-1000), lane.acquire(t.Context(), 2000)} {
			if acquired != nil {
				t.Fatal(acquired)
			}
		}
		start := time.Now()
		var waiting sync.WaitGroup
		waiting.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := (&reservation{inFlight: f, large: true}).acquire(ctx, 2000); err == nil {
				t.Error("more memory than there is")
			}
		})
		synctest.Wait()
		waiting.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			b := &reservation{inFlight: f, large: true}
			if err := b.acquire(ctx, 500); err != nil || time.Since(start) != time.Second {
				t.Errorf("%v after %v", err, time.Since(start))
			}
			b.releaseAll()
		})
		waiting.Wait()
		held.releaseAll()
		lane.releaseAll()
	})
}

// Bodies that grow, wait, give up and are released never exceed the limit, leak no memory and never
// block forever.
func TestInFlightAccounting(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			const maxBody, maxBytes = 1 << 20, 4 << 20
			f := newInFlight(maxBytes, maxBody)
			small, common := f.small, f.common
			var mu sync.Mutex
			current, peak := int64(0), int64(0)
			add := func(n int64) {
				mu.Lock()
				defer mu.Unlock()
				current += n
				peak = max(peak, current)
			}
			var bodies sync.WaitGroup
			for n := range 60 {
				r := rand.New(rand.NewPCG(seed, uint64(n)))
				bodies.Go(func() {
					time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(2000))*time.Millisecond)
					defer cancel()
					b, held := &reservation{inFlight: f, large: r.IntN(2) == 0}, int64(0)
					defer func() { add(-held); b.releaseAll() }()
					size := int64(1 + r.IntN(maxBody))
					for buffer := min(initialBuffer, size); ; buffer = min(2*buffer, size) {
						if b.acquire(ctx, buffer) != nil {
							return
						}
						add(buffer)
						held += buffer
						if old := held - buffer; old > 0 {
							add(-old)
							held -= old
							b.release(old)
						}
						if buffer == size {
							break
						}
						time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
					}
					b.complete()
					time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
				})
			}
			bodies.Wait()
			if f.small != small || f.common != common || f.lanes != [2]*reservation{} || len(f.waiters[0])+len(f.waiters[1]) != 0 {
				t.Errorf("seed %d: %d and %d are left of %d and %d, lanes %v, %d wait", seed, f.small, f.common, small, common, f.lanes, len(f.waiters[0])+len(f.waiters[1]))
			}
			if peak > maxBytes || peak < maxBytes/2 {
				t.Errorf("seed %d: %d bytes at the peak", seed, peak)
			}
		})
	}
}
