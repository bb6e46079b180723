// Package jitter draws the random parts of waits.
package jitter

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

var source atomic.Pointer[func(limit time.Duration) time.Duration]

// Within returns a random duration of at least 0 and less than limit, which must be positive.
func Within(limit time.Duration) time.Duration {
	if draw := source.Load(); draw != nil {
		return (*draw)(limit)
	}
	return rand.N(limit)
}

// Replace replaces the source for a simulation, whose waits follow from its seed. nil restores the
// random one.
func Replace(draw func(limit time.Duration) time.Duration) {
	if draw == nil {
		source.Store(nil)
		return
	}
	source.Store(&draw)
}
