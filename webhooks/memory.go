package webhooks

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"
)

// Memory remembers the ids of the deliveries that were dealt with, so that none is dealt with twice. The one that a [Handler] has
// by itself is in its process and ends with it; a store that several processes share is given with [WithMemory]. It belongs to one
// endpoint: the service sends the same id to each of several endpoints.
//
// Its methods are called by several goroutines. The context ends in time for an answer.
type Memory interface {
	// Seen reports whether the id was remembered. With an error the delivery is answered with 503, and is sent again.
	Seen(ctx context.Context, id string) (bool, error)
	// Remember keeps an id for a while: 72 hours outlast the sender's attempts. Remembering an id again is no error. An error is
	// reported to the observers; the delivery is acknowledged all the same, because it was dealt with.
	Remember(ctx context.Context, id string) error
}

// recent is the memory of a process. It holds 16 bytes of a hash for each id, as ids can be long.
type recent struct {
	limit int
	age   time.Duration
	now   func() time.Time

	mu    sync.Mutex
	known map[idHash]struct{}
	queue []remembered // oldest first, from first on
	first int
}

type idHash [16]byte

type remembered struct {
	id idHash
	at int64 // UnixNano
}

func hashOf(id string) idHash {
	sum := sha256.Sum256([]byte(id))
	return idHash(sum[:16])
}

func (m *recent) Seen(_ context.Context, id string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget()
	_, seen := m.known[hashOf(id)]
	return seen, nil
}

func (m *recent) Remember(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget()
	h := hashOf(id)
	if _, seen := m.known[h]; seen {
		return nil
	}
	if len(m.known) == m.limit {
		m.drop()
	}
	m.known[h] = struct{}{}
	if m.first > len(m.queue)/2 {
		m.queue = append(m.queue[:0], m.queue[m.first:]...)
		m.first = 0
	}
	m.queue = append(m.queue, remembered{h, m.now().UnixNano()})
	return nil
}

// forget drops what is too old.
func (m *recent) forget() {
	oldest := m.now().Add(-m.age).UnixNano()
	for m.first < len(m.queue) && m.queue[m.first].at < oldest {
		m.drop()
	}
}

func (m *recent) drop() {
	delete(m.known, m.queue[m.first].id)
	m.first++
}
