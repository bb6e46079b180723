package bulk

import (
	"sync"

	"github.com/labhealth/labhealth-go"
)

// job is a record whose intent is in the journal.
type job struct {
	position
	body   labhealth.ImportOrderBody
	header *header // names the columns of problems; nil if there are none
}

// queue holds jobs for the workers. Its capacity starts at a few jobs per worker and grows whenever
// the workers have to wait for a batch of intents to be written. So the journal keeps up with a
// fast service, and with a slow one few records are in progress if the process is killed.
type queue struct {
	mu       sync.Mutex
	changed  *sync.Cond
	jobs     []job
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
// the number of jobs that it takes.
func (q *queue) waitForSpace() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.jobs) > q.capacity/2 {
		q.changed.Wait()
	}
	return q.capacity - len(q.jobs)
}

func (q *queue) put(jobs []job) {
	q.mu.Lock()
	if len(q.jobs) == 0 && q.used {
		q.capacity = max(q.capacity, min(4*q.capacity, maxCapacity))
	}
	q.used = true
	q.jobs = append(q.jobs, jobs...)
	q.mu.Unlock()
	q.changed.Broadcast()
}

// take waits for a job. It returns false when the queue is closed and empty.
func (q *queue) take() (j job, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.jobs) == 0 {
		if q.closed {
			return job{}, false
		}
		q.changed.Wait()
	}
	j = q.jobs[0]
	q.jobs[0] = job{}
	q.jobs = q.jobs[1:]
	if len(q.jobs) <= q.capacity/2 {
		q.changed.Broadcast()
	}
	return j, true
}

func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.changed.Broadcast()
}
