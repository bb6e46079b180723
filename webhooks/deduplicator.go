// Deduplicator and its default implementation.

package webhooks

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"
)

// Deduplicator stores the IDs of processed deliveries, so that repeated ones are not processed
// again. By default a [Handler] keeps them in memory. [WithDeduplicator] sets another store, for
// example one that several processes share. A Deduplicator belongs to one endpoint: the service
// sends the same ID to each of several endpoints.
//
// Its methods must be safe for concurrent use. The context ends early enough for the handler to
// respond.
type Deduplicator interface {
	// Seen reports whether the ID is stored. After an error the response is 503, and the sender
	// tries again.
	Seen(ctx context.Context, id string) (bool, error)
	// MarkSeen stores an ID for at least 72 hours, longer than the sender repeats a delivery.
	// Storing an ID again is not an error. After an error the delivery is still acknowledged, and
	// observers receive [ReasonNotMarked].
	MarkSeen(ctx context.Context, id string) error
}

// localDeduplicator is the Deduplicator of one process. It stores 16 bytes of a hash for each ID,
// because IDs can be long.
type localDeduplicator struct {
	maxIDs int
	maxAge time.Duration
	now    func() time.Time

	mu    sync.Mutex
	ids   map[idHash]struct{}
	queue []storedID // oldest first, starting at first
	first int
}

type idHash [16]byte

type storedID struct {
	id idHash
	at int64 // UnixNano
}

func hashOf(id string) idHash {
	sum := sha256.Sum256([]byte(id))
	return idHash(sum[:16])
}

func (m *localDeduplicator) Seen(_ context.Context, id string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.removeExpired()
	_, seen := m.ids[hashOf(id)]
	return seen, nil
}

func (m *localDeduplicator) MarkSeen(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.removeExpired()
	h := hashOf(id)
	if _, seen := m.ids[h]; seen {
		return nil
	}
	if len(m.ids) == m.maxIDs {
		m.removeOldest()
	}
	m.ids[h] = struct{}{}
	if m.first > len(m.queue)/2 {
		m.queue = append(m.queue[:0], m.queue[m.first:]...)
		m.first = 0
	}
	m.queue = append(m.queue, storedID{h, m.now().UnixNano()})
	return nil
}

func (m *localDeduplicator) removeExpired() {
	oldest := m.now().Add(-m.maxAge).UnixNano()
	for m.first < len(m.queue) && m.queue[m.first].at < oldest {
		m.removeOldest()
	}
}

func (m *localDeduplicator) removeOldest() {
	delete(m.ids, m.queue[m.first].id)
	m.first++
}
