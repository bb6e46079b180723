// What happens in a server, for those who watch it.

package labhealthtest

import (
	"context"
	"iter"

	"github.com/google/uuid"
)

// Activity is something that happened in a [Server]: a request, an attempt to deliver an event, or
// a change of an order or a user. It has one of Request, Delivery, OrderID with UserID, and UserID.
// Callers must not modify what it points to.
type Activity struct {
	// Request is a request that was processed, or whose response was replaced by a fault. What it
	// changed was reported before.
	Request *Request
	// Delivery is an attempt to deliver an event.
	Delivery *Delivery
	// OrderID is the order that was created, changed or deleted, also without an event.
	OrderID uuid.UUID
	// UserID is the user of OrderID, or the user that was created, changed, deleted or restored.
	// Changes of a user include those of its sources, devices and wearable data.
	UserID uuid.UUID
}

// watcher is a queue of activities. Server.mu guards it.
type watcher struct {
	queue  []Activity
	ranged bool
	wake   chan struct{} // has room for one
}

// Watch returns the activities from now on, in the order in which they happened. It reports a
// change after it was made: a reader may find a later one. Like [Server.Requests], the server of
// another team ([Server.Team]) has its own orders, users and deliveries but no requests.
//
// The sequence ends when ctx is done, or after the last activity when the server is closed. A nil
// ctx is never done. The sequence can be ranged over once. Until it ends, or the loop breaks, the
// server stores the activities that were not read yet, with the bodies of requests and events:
// cancel ctx if nothing reads them.
func (s *Server) Watch(ctx context.Context) iter.Seq[Activity] {
	if ctx == nil {
		ctx = context.Background()
	}
	w := &watcher{wake: make(chan struct{}, 1)}
	s.mu.Lock()
	if s.watchers != nil {
		s.watchers[w] = true
	}
	s.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { s.removeWatcher(w) })
	return func(yield func(Activity) bool) {
		defer s.removeWatcher(w)
		defer stop()
		s.watch(ctx, w, yield)
	}
}

// watch yields the activities of a watcher until ctx is done or the server is closed.
func (s *Server) watch(ctx context.Context, w *watcher, yield func(Activity) bool) {
	if !s.rangeOnce(w) {
		return
	}
	for {
		closed := false
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-s.stopped:
			closed = true
		}
		for _, a := range s.takeActivities(w) {
			if ctx.Err() != nil || !yield(a) {
				return
			}
		}
		if closed || ctx.Err() != nil {
			return
		}
	}
}

// rangeOnce reports whether the watcher is ranged over for the first time.
func (s *Server) rangeOnce(w *watcher) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !w.ranged
	w.ranged = true
	return first
}

func (s *Server) removeWatcher(w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watchers, w)
	w.queue = nil
}

func (s *Server) takeActivities(w *watcher) []Activity {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := w.queue
	w.queue = nil
	return taken
}

// stopWatching ends all sequences of Watch after the activities that were reported.
func (s *Server) stopWatching() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watchers != nil {
		s.watchers = nil
		close(s.stopped)
	}
}

// report adds an activity to the queues of all watchers.
func (s *Server) report(a Activity) {
	for w := range s.watchers {
		w.queue = append(w.queue, a)
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

func (s *Server) reportOrder(o *order) { s.report(Activity{OrderID: o.ID, UserID: o.UserID}) }

func (s *Server) reportUser(u *user) { s.report(Activity{UserID: u.UserID}) }
