package webhooks

import (
	"context"
	"slices"
	"sync"
)

// inFlight bounds the memory of the bodies that a handler holds. Memory is taken as bytes arrive:
// beyond its first buffer a sender holds a few times what it has sent. A quarter is for small
// bodies only: senders of large ones, however slow, do not keep them out. Of each class, one body
// at a time may take what is set aside for it, the lane, so that bodies that are there in part, and
// fill the rest, do not wait for each other.
type inFlight struct {
	mu     sync.Mutex
	small  int64    // left for small bodies only
	common int64    // left for all
	lanes  [2]*held // by class, the body that has the lane: as much as a body of the class can hold, so it never waits
	wanted [2][]*request
}

// Classes of requests, by what a body holds with them.
const (
	smallBody = iota // up to smallHeld
	largeBody
)

// largestSmall is the largest small body, and smallHeld the memory that it takes: its buffer, and
// while it moves the one before, which has at most half the size.
const (
	largestSmall = 64 << 10
	smallHeld    = largestSmall + largestSmall/2
)

// held is the memory of one body, by where it was taken.
type held struct {
	from          *inFlight
	small, common int64
	lanes         [2]int64
	large         bool // the sender says so; another becomes it when it is larger than a small one
	complete      bool // it takes no more
}

func (b *held) all() int64 { return b.small + b.common + b.lanes[smallBody] + b.lanes[largeBody] }

type request struct {
	*held
	n       int64
	granted chan struct{}
}

// newInFlight returns a bound for bodies of up to limit bytes, which is at most a quarter of bound.
func newInFlight(bound, limit int64) *inFlight {
	lanes := [2]int64{smallBody: min(smallHeld, 2*limit)}
	if limit > largestSmall {
		lanes[largeBody] = 2 * limit
	}
	small := max(0, bound/4-lanes[smallBody])
	return &inFlight{small: small, common: bound - small - lanes[smallBody] - lanes[largeBody]}
}

// take waits for n bytes until ctx ends.
func (b *held) take(ctx context.Context, n int64) error {
	f := b.from
	f.mu.Lock()
	class := b.class(n)
	if (f.lanes[class] == b || len(f.wanted[class]) == 0) && b.grant(n, class) {
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
	if b.large || b.all()+n > smallHeld {
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
	case f.lanes[class] == nil || f.lanes[class] == b:
		f.lanes[class] = b
		b.lanes[class] += n
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
	b.put(b.all())
}

// put returns n bytes. The mutex is held. What only small bodies take goes first, so that a large
// one does not keep it; the lane of large ones goes last, as whoever has it can go on.
func (b *held) put(n int64) {
	f := b.from
	for _, place := range [...]struct{ mine, left *int64 }{
		{&b.small, &f.small}, {&b.lanes[smallBody], new(int64)}, {&b.common, &f.common}, {&b.lanes[largeBody], new(int64)},
	} {
		some := min(n, *place.mine)
		*place.mine -= some
		*place.left += some
		n -= some
	}
	f.serve()
}

// finish says that the body takes no more, so that others get its lane as soon as there is room
// elsewhere.
func (b *held) finish() {
	b.from.mu.Lock()
	defer b.from.mu.Unlock()
	b.complete = true
	b.from.serve()
}

// serve grants what has been waited for longest. The mutex is held.
func (f *inFlight) serve() {
	for class, b := range f.lanes {
		if b == nil {
			continue
		}
		if b.complete {
			some := min(f.common, b.lanes[class])
			f.common -= some
			b.common += some
			b.lanes[class] -= some
		}
		if b.lanes[class] == 0 {
			f.lanes[class] = nil
		}
	}
	for class := range f.wanted {
		for len(f.wanted[class]) > 0 && f.wanted[class][0].grant(f.wanted[class][0].n, class) {
			close(f.wanted[class][0].granted)
			f.wanted[class] = f.wanted[class][1:]
		}
	}
}
