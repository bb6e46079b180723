package webhooks

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

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
