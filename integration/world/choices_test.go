package world

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"
)

// choices makes all choices of a schedule. A choice depends on the seed and the name of the event
// that it is for, not on the order of the events: goroutines that run in another order get the same
// choices.
type choices struct{ seed uint64 }

// number returns a number for an event: a subject, such as a connection, and the number of one of
// its operations.
func (c choices) number(subject string, n int) uint64 {
	const prime = 1099511628211
	h := c.seed*0x9e3779b97f4a7c15 ^ 14695981039346656037
	for i := range len(subject) {
		h = (h ^ uint64(subject[i])) * prime
	}
	return mix(h ^ mix(uint64(n)+1))
}

// mix is the finalizer of SplitMix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// below returns a number in [0, limit).
func (c choices) below(limit int, subject string, n int) int {
	return int(c.number(subject, n) % uint64(limit))
}

// within returns a duration in [0, limit).
func (c choices) within(limit time.Duration, subject string, n int) time.Duration {
	return time.Duration(c.number(subject, n) % uint64(limit))
}

// event is something that happened in a schedule.
type event struct {
	at      time.Duration // since the start
	subject string
	n       int
	what    string
}

func (e event) String() string {
	return fmt.Sprintf("%12v %s %d: %s", e.at.Round(time.Microsecond), e.subject, e.n, e.what)
}

// history records the events of a schedule.
type history struct {
	mu     sync.Mutex
	start  time.Time
	events []event
}

func (h *history) add(subject string, n int, what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, event{time.Since(h.start), subject, n, what})
}

// hash identifies the history. Events at the same time have no order: package synctest runs their
// timers in a random one.
func (h *history) hash() uint64 {
	h.mu.Lock()
	sorted := slices.Clone(h.events)
	h.mu.Unlock()
	slices.SortFunc(sorted, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.subject, b.subject), cmp.Compare(a.n, b.n), cmp.Compare(a.what, b.what))
	})
	sum := fnv.New64a()
	for _, e := range sorted {
		fmt.Fprintln(sum, e)
	}
	return sum.Sum64()
}

// count adds the number of events of each kind.
func (h *history) count(kinds map[string]int) {
	for _, e := range h.events {
		switch {
		case strings.HasPrefix(e.subject, "import "):
			kinds["imports"]++
		case strings.HasPrefix(e.subject, "event "):
			kinds["deliveries"]++
		case strings.Contains(e.subject, " > "):
			kinds["network faults"]++
		case strings.HasPrefix(e.what, "fault: "):
			kind, _, _ := strings.Cut(e.what[len("fault: "):], " at ")
			kinds[kind+"s"]++
		case strings.HasPrefix(e.what, "clock is off"):
			kinds["clock jumps"]++
		}
	}
}

func (h *history) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b strings.Builder
	for _, e := range h.events {
		fmt.Fprintln(&b, e)
	}
	return b.String()
}
