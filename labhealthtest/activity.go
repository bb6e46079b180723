package labhealthtest

import (
	"context"
	"iter"
	"sync"

	"github.com/google/uuid"
)

// Activity is something that happened in a [Server]: a request, an attempt to deliver an event, or
// a change of an order or a user.
type Activity struct {
	// Request is a request that was processed, or that a fault answered; nil for other activities.
	Request *Request
	// Delivery is an attempt to deliver an event; nil for other activities.
	Delivery *Delivery
	// OrderID is the order that was created, changed or deleted; zero for other activities.
	OrderID uuid.UUID
	// UserID is the user of OrderID, or the user that was created, deleted or restored, or whose
	// connections, devices or wearable data changed; zero for other activities.
	UserID uuid.UUID
}

// watcher is a queue of activities. Server.mu guards it.
type watcher struct {
	queue []Activity
	wake  chan struct{} // has room for one
}

// Watch returns the activities from now on, in the order in which they happen. The sequence can be
// ranged over once. It ends when ctx is done, and after the last activity of a server that was
// closed. Until then the server keeps the activities that were not read. Watch panics if ctx is
// nil.
func (s *Server) Watch(ctx context.Context) iter.Seq[Activity] {
	w := &watcher{wake: make(chan struct{}, 1)}
	s.mu.Lock()
	s.watchers[w] = true
	s.mu.Unlock()
	remove := sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, w)
	})
	stop := context.AfterFunc(ctx, remove)
	return func(yield func(Activity) bool) {
		defer remove()
		defer stop()
		for {
			for _, a := range s.takeActivities(w) {
				if ctx.Err() != nil || !yield(a) {
					return
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-w.wake:
			case <-s.deliveryCtx.Done():
				for _, a := range s.takeActivities(w) {
					if !yield(a) {
						return
					}
				}
				return
			}
		}
	}
}

func (s *Server) takeActivities(w *watcher) []Activity {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := w.queue
	w.queue = nil
	return taken
}

// report adds an activity to the queues of all watchers. The caller holds mu.
func (s *Server) report(a Activity) {
	for w := range s.watchers {
		w.queue = append(w.queue, a)
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}
