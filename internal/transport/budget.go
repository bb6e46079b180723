// The retry budget that all calls of a client share.

package transport

import "sync"

// budget is a token bucket that keeps an outage from doubling the load: each call adds a fraction
// of a retry. A thousand calls that all fail cost at most a hundred extra requests.
type budget struct {
	mu     sync.Mutex
	tokens float64
}

const (
	maxTokens     = 10
	tokensPerCall = 0.09
)

func newBudget() *budget { return &budget{tokens: maxTokens} }

func (b *budget) deposit() {
	b.mu.Lock()
	b.tokens = min(b.tokens+tokensPerCall, maxTokens)
	b.mu.Unlock()
}

func (b *budget) withdraw() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
