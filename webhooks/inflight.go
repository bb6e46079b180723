// The memory limit of all bodies in flight.

package webhooks

import (
	"context"
	"math"
	"slices"
	"sync"
)

// inFlight limits the memory of the bodies that a handler holds. Memory is acquired as bytes
// arrive: beyond its first buffer, a body takes a small multiple of the received bytes. A quarter
// is reserved for small bodies, so that large ones, however slow, do not block them.
//
// Partly received bodies that use up the limit would wait for each other. So each class has a lane:
// enough memory for one body of the class, which one body at a time may use.
type inFlight struct {
	mu      sync.Mutex
	small   int64           // available to small bodies only
	common  int64           // available to all
	held    int64           // by all bodies
	lanes   [2]*reservation // by class, the body that uses the lane
	waiters [2][]*waiter    // by class, in order of arrival
}

// Classes of bodies, by the memory that they hold.
const (
	smallBody = iota // up to maxSmallMemory
	largeBody
)

// maxSmallBody is the size of the largest small body, and maxSmallMemory the memory that it takes:
// its buffer and, while it grows, the previous one, which has at most half the size.
const (
	maxSmallBody   = 64 << 10
	maxSmallMemory = maxSmallBody + maxSmallBody/2
)

// reservation is the memory of one body, by the pool that it comes from.
type reservation struct {
	inFlight      *inFlight
	small, common int64
	lanes         [2]int64
	large         bool // by its Content-Length; others become large as they grow
	completed     bool // it needs no more memory
}

type waiter struct {
	*reservation
	n     int64
	ready chan struct{} // closed when the memory is acquired
}

// newInFlight returns a limit of maxBytes for bodies of up to maxBody bytes, which is at most a
// quarter of maxBytes.
func newInFlight(maxBytes, maxBody int64) *inFlight {
	lanes := [2]int64{smallBody: min(maxSmallMemory, 2*maxBody)}
	if maxBody > maxSmallBody {
		lanes[largeBody] = 2 * maxBody
	}
	small := max(0, maxBytes/4-lanes[smallBody])
	return &inFlight{small: small, common: maxBytes - small - lanes[smallBody] - lanes[largeBody]}
}

// acquire waits for n bytes until ctx ends.
func (b *reservation) acquire(ctx context.Context, n int64) error {
	f := b.inFlight
	f.mu.Lock()
	class := b.class(n)
	if (f.lanes[class] == b || len(f.waiters[class]) == 0) && b.tryAcquire(n, class) {
		f.mu.Unlock()
		return nil
	}
	w := &waiter{b, n, make(chan struct{})}
	f.waiters[class] = append(f.waiters[class], w)
	f.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	default:
	}
	f.waiters[class] = slices.DeleteFunc(f.waiters[class], func(other *waiter) bool { return other == w })
	f.notifyWaiters() // the next one may need less
	return ctx.Err()
}

func (b *reservation) total() int64 {
	return b.small + b.common + b.lanes[smallBody] + b.lanes[largeBody]
}

// class returns the class of the body when it holds n more bytes.
func (b *reservation) class(n int64) int {
	if b.large || b.total()+n > maxSmallMemory {
		return largeBody
	}
	return smallBody
}

// tryAcquire acquires n bytes if they are available. The caller holds the mutex.
func (b *reservation) tryAcquire(n int64, class int) bool {
	f := b.inFlight
	switch {
	case class == smallBody && f.small >= n:
		f.small -= n
		b.small += n
	case f.common >= n:
		f.common -= n
		b.common += n
	case f.lanes[class] == nil || f.lanes[class] == b:
		f.lanes[class] = b
		b.lanes[class] += n
	default:
		return false
	}
	f.held += n
	return true
}

// releaseAll returns all bytes.
func (b *reservation) releaseAll() { b.release(math.MaxInt64) }

// release returns n bytes, or all if there are fewer. Memory for small bodies is returned first, so
// that a large body does not keep it; the lane of large bodies last, because its user can always
// proceed.
func (b *reservation) release(n int64) {
	f := b.inFlight
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, origin := range [...]struct{ held, available *int64 }{
		{&b.small, &f.small}, {&b.lanes[smallBody], new(int64)}, {&b.common, &f.common}, {&b.lanes[largeBody], new(int64)},
	} {
		returned := min(n, *origin.held)
		*origin.held -= returned
		*origin.available += returned
		f.held -= returned
		n -= returned
	}
	f.notifyWaiters()
}

// complete declares that the body needs no more memory, so that it leaves its lane as soon as other
// memory is available.
func (b *reservation) complete() {
	b.inFlight.mu.Lock()
	defer b.inFlight.mu.Unlock()
	b.completed = true
	b.inFlight.notifyWaiters()
}

// notifyWaiters frees unused lanes and serves waiters in order. The caller holds the mutex.
func (f *inFlight) notifyWaiters() {
	for class, b := range f.lanes {
		if b == nil {
			continue
		}
		if b.completed {
			moved := min(f.common, b.lanes[class])
			f.common -= moved
			b.common += moved
			b.lanes[class] -= moved
		}
		if b.lanes[class] == 0 {
			f.lanes[class] = nil
		}
	}
	for class := range f.waiters {
		for len(f.waiters[class]) > 0 {
			first := f.waiters[class][0]
			if !first.tryAcquire(first.n, class) {
				break
			}
			close(first.ready)
			f.waiters[class] = f.waiters[class][1:]
		}
	}
}
