// The records that wait for a worker.

package bulk

import "sync"

// queue holds rows for the workers. Its capacity starts at a few rows per worker and grows whenever
// the workers have to wait for a batch of intents to be written. So the journal keeps up with a
// fast service, and with a slow one few records are in progress if the process is killed.
type queue struct {
	mu       sync.Mutex
	changed  *sync.Cond
	rows     []*row
	capacity int
	used     bool
	closed   bool
}

const maxCapacity = 256

func newQueue(workers int) *queue {
	q := &queue{capacity: 4 * workers}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// waitForSpace waits until the queue is half empty, so that a batch is worth its sync, and returns
// the number of rows that it takes.
func (q *queue) waitForSpace() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.rows) > q.capacity/2 {
		q.changed.Wait()
	}
	return q.capacity - len(q.rows)
}

func (q *queue) put(rows []*row) {
	q.mu.Lock()
	if len(q.rows) == 0 && q.used {
		q.capacity = max(q.capacity, min(4*q.capacity, maxCapacity))
	}
	q.used = true
	q.rows = append(q.rows, rows...)
	q.mu.Unlock()
	q.changed.Broadcast()
}

// take waits for a row. It returns false when the queue is closed and empty.
func (q *queue) take() (r *row, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.rows) == 0 {
		if q.closed {
			return nil, false
		}
		q.changed.Wait()
	}
	r = q.rows[0]
	q.rows[0] = nil
	q.rows = q.rows[1:]
	if len(q.rows) <= q.capacity/2 {
		q.changed.Broadcast()
	}
	return r, true
}

func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.changed.Broadcast()
}
