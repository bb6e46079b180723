package transport

import "sync"

// budget keeps an outage from doubling the load: each call brings a little of a retry, a few are there from the start.
// A thousand calls that all fail cost at most a hundred extra requests.
type budget struct {
	mu     sync.Mutex
	tokens float64
}

const (
	tokensMost    = 10
	tokensPerCall = 0.09
)

func newBudget() *budget { return &budget{tokens: tokensMost} }

func (b *budget) deposit() {
	b.mu.Lock()
	b.tokens = min(b.tokens+tokensPerCall, tokensMost)
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
