package webhooks

import (
	"context"
	"slices"
	"sync"
)

// inFlight bounds the memory of the bodies that a handler holds. Memory is taken as bytes arrive, so a sender holds no more than it
// has sent. A quarter is for small bodies only: senders of large ones, however slow, do not keep them out. One large body at a time
// may take what is set aside for it, so that bodies that are there in part, and fill the rest, do not wait for each other.
type inFlight struct {
	mu     sync.Mutex
	small  int64 // left for small bodies only
	common int64 // left for all
	lane   *held // the one that may take what is set aside: twice the largest body, for while it moves to a larger buffer
	wanted [2][]*request
}

// Classes of requests, by what a body holds with them.
const (
	smallBody = iota // up to smallHeld
	largeBody
)

// largestSmall is the largest small body, and smallHeld the memory that it takes: its buffer, and the one before while it moves.
const (
	largestSmall = 64 << 10
	smallHeld    = 2 * largestSmall
)

// held is the memory of one body, by where it was taken.
type held struct {
	from                *inFlight
	small, common, lane int64
	large               bool // the sender says so; another becomes it when it is larger than a small one
	complete            bool // it takes no more
}

type request struct {
	*held
	n       int64
	granted chan struct{}
}

// newInFlight returns a bound for bodies of up to limit bytes, which is at most a quarter of bound.
func newInFlight(bound, limit int64) *inFlight {
	return &inFlight{small: bound / 4, common: bound - bound/4 - 2*limit}
}

// take waits for n bytes until ctx ends.
func (b *held) take(ctx context.Context, n int64) error {
	f := b.from
	f.mu.Lock()
	class := b.class(n)
	if (f.lane == b || len(f.wanted[class]) == 0) && b.grant(n, class) {
		f.mu.Unlock()
		return nil
	}
	r := &request{b, n, make(chan struct{})}
	f.wanted[class] = append(f.wanted[class], r)
	f.mu.Unlock()
	select {
	case <-r.granted:
		return nil
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-r.granted:
		return nil
	default:
	}
	f.wanted[class] = slices.DeleteFunc(f.wanted[class], func(other *request) bool { return other == r })
	f.serve() // those behind it may want less
	return ctx.Err()
}

func (b *held) class(n int64) int {
	if b.large || b.small+b.common+b.lane+n > smallHeld {
		return largeBody
	}
	return smallBody
}

// grant takes n bytes if there are as many. The mutex is held.
func (b *held) grant(n int64, class int) bool {
	f := b.from
	switch {
	case class == smallBody && f.small >= n:
		f.small -= n
		b.small += n
	case f.common >= n:
		f.common -= n
		b.common += n
	case class == largeBody && (f.lane == nil || f.lane == b):
		f.lane = b
		b.lane += n
	default:
		return false
	}
	return true
}

// give returns n of the bytes that the body holds.
func (b *held) give(n int64) {
	b.from.mu.Lock()
	defer b.from.mu.Unlock()
	b.put(n)
}

// release returns all that the body holds.
func (b *held) release() {
	b.from.mu.Lock()
	defer b.from.mu.Unlock()
	b.put(b.small + b.common + b.lane)
}

// put returns n bytes. The mutex is held. What only small bodies take goes first, so that a large one does not keep it; the lane goes
// last, as whoever has it can go on.
func (b *held) put(n int64) {
	f := b.from
	for _, place := range [...]struct{ mine, left *int64 }{{&b.small, &f.small}, {&b.common, &f.common}, {&b.lane, new(int64)}} {
		some := min(n, *place.mine)
		*place.mine -= some
		*place.left += some
		n -= some
	}
	if f.lane == b && b.lane == 0 {
		f.lane = nil
	}
	f.serve()
}

// finish says that the body takes no more, so that others get the lane as soon as there is room elsewhere.
func (b *held) finish() {
	b.from.mu.Lock()
	defer b.from.mu.Unlock()
	b.complete = true
	b.from.serve()
}

// serve grants what has been waited for longest. The mutex is held.
func (f *inFlight) serve() {
	if b := f.lane; b != nil && b.complete {
		some := min(f.common, b.lane)
		f.common -= some
		b.common += some
		b.lane -= some
		if b.lane == 0 {
			f.lane = nil
		}
	}
	for class := range f.wanted {
		for len(f.wanted[class]) > 0 && f.wanted[class][0].grant(f.wanted[class][0].n, class) {
			close(f.wanted[class][0].granted)
			f.wanted[class] = f.wanted[class][1:]
		}
	}
}
