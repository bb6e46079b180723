package webhooks

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Whatever bodies grow, wait, give up and are let go, the bound holds, no byte is lost, and all of them get an end.
func TestInFlightAccounts(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			const limit, bound = 1 << 20, 4 << 20
			f := newInFlight(bound, limit)
			small, common := f.small, f.common
			var mu sync.Mutex
			now, most := int64(0), int64(0)
			add := func(n int64) {
				mu.Lock()
				defer mu.Unlock()
				now += n
				most = max(most, now)
			}
			var bodies sync.WaitGroup
			for n := range 60 {
				r := rand.New(rand.NewPCG(seed, uint64(n)))
				bodies.Go(func() {
					time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(2000))*time.Millisecond)
					defer cancel()
					b, mine := &held{from: f, large: r.IntN(2) == 0}, int64(0)
					defer func() { add(-mine); b.release() }()
					size := int64(1 + r.IntN(limit))
					for buffer := min(firstBuffer, size); ; buffer = min(2*buffer, size) {
						if b.take(ctx, buffer) != nil {
							return
						}
						add(buffer)
						mine += buffer
						if old := mine - buffer; old > 0 {
							add(-old)
							mine -= old
							b.give(old)
						}
						if buffer == size {
							break
						}
						time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
					}
					b.finish()
					time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
				})
			}
			bodies.Wait()
			if f.small != small || f.common != common || f.lanes != [2]*held{} || len(f.wanted[0])+len(f.wanted[1]) != 0 {
				t.Errorf("seed %d: %d and %d are left of %d and %d, lanes %v, %d wait", seed, f.small, f.common, small, common, f.lanes, len(f.wanted[0])+len(f.wanted[1]))
			}
			if most > bound || most < bound/2 {
				t.Errorf("seed %d: %d bytes were held", seed, most)
			}
		})
	}
}
