package console

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Intervals of the live changes.
const (
	liveHeartbeat = 15 * time.Second
	liveDeadline  = 10 * time.Second       // of a write to a page
	livePause     = 100 * time.Millisecond // between two messages to a page
)

// live tells open pages what has changed (server-sent events): orders, users, deliveries, faults or
// requests. It stores no change: a page fetches itself again.
type live struct {
	epoch    string // distinguishes the changes of this process from those of an earlier one
	closed   chan struct{}
	close    func()
	watching chan struct{} // is closed when run gets all changes

	mu     sync.Mutex
	last   int64            // number of the latest change
	topics map[string]int64 // number of the latest change of each topic
	wake   chan struct{}    // is closed by the next change
}

func newLive() *live {
	l := &live{epoch: rand.Text()[:8], closed: make(chan struct{}), watching: make(chan struct{}), topics: map[string]int64{}, wake: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	return l
}

// changed notes that a topic has changed.
func (l *live) changed(topic string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	l.topics[topic] = l.last
	close(l.wake)
	l.wake = make(chan struct{})
}

// since returns the topics that have changed after a number, the number of the latest change, and a
// channel that is closed by the next one. A negative number is before those of this process.
func (l *live) since(number int64) (topics []string, last int64, wake <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if number < 0 {
		return []string{"all"}, l.last, l.wake
	}
	for topic, n := range l.topics {
		if n > number {
			topics = append(topics, topic)
		}
	}
	slices.Sort(topics)
	return topics, l.last, l.wake
}

type liveKey struct{}

// stamp notes which changes a page includes that is made from now on.
func (l *live) stamp(r *http.Request) *http.Request {
	_, last, _ := l.since(0)
	return r.WithContext(context.WithValue(r.Context(), liveKey{}, l.id(last)))
}

// liveSince returns the note of stamp.
func liveSince(r *http.Request) string {
	since, _ := r.Context().Value(liveKey{}).(string)
	return since
}

func (l *live) id(number int64) string { return l.epoch + "-" + strconv.FormatInt(number, 10) }

// position returns the number of the latest change that a page includes, from the header of a
// reconnecting page or the query of a new one; it is negative if it is not of this process.
func (l *live) position(r *http.Request) int64 {
	since := r.Header.Get("Last-Event-Id")
	if since == "" {
		since = r.FormValue("since")
	}
	epoch, text, _ := strings.Cut(since, "-")
	number, err := strconv.ParseInt(text, 10, 64)
	if _, last, _ := l.since(0); err != nil || epoch != l.epoch || number > last {
		return -1
	}
	return number
}

// run watches the sandbox and the inspector until ctx is done. Then it ends the streams of all
// pages.
func (l *live) run(ctx context.Context, c *Console) {
	defer l.close()
	var running sync.WaitGroup
	defer running.Wait()
	deliveries := c.Inspector.Watch(ctx)
	running.Go(func() {
		for range deliveries {
			l.changed("deliveries")
		}
	})
	if c.sandbox() {
		activities := c.Server.Watch(ctx)
		running.Go(func() {
			for a := range activities {
				switch {
				case a.Request != nil:
					c.faults.log.all(c.Server)
					l.changed("requests")
				case a.Delivery != nil:
					if a.Delivery.Lost || a.Delivery.Dropped {
						l.changed("deliveries")
					}
				case a.OrderID != [16]byte{}:
					l.changed("orders")
				default:
					l.changed("users")
				}
			}
		})
	}
	close(l.watching)
	<-ctx.Done()
	l.close()
}

// serveLive tells a page what has changed until the page or the console is closed.
func (c *Console) serveLive(w http.ResponseWriter, r *http.Request) {
	l := c.live
	position := l.position(r)
	w.Header().Set("Content-Type", "text/event-stream")
	stream := &liveStream{w: w, control: http.NewResponseController(w)}
	stream.send("retry: 1000\n\nevent: ready\ndata: {}\n\n")
	heartbeat := time.NewTicker(liveHeartbeat)
	defer heartbeat.Stop()
	for stream.err == nil {
		topics, last, wake := l.since(position)
		var pause <-chan time.Time
		if position = last; len(topics) > 0 {
			stream.send(fmt.Sprintf("event: changed\nid: %s\ndata: %s\n\n", l.id(last), strings.Join(topics, " ")))
			wake, pause = nil, time.After(livePause)
		}
		select {
		case <-r.Context().Done():
			return
		case <-l.closed:
			return
		case <-heartbeat.C:
			stream.send("event: alive\ndata: {}\n\n")
		case <-pause:
		case <-wake:
		}
	}
}

// liveStream writes events. A page that does not read ends its stream by the deadline.
type liveStream struct {
	w       io.Writer
	control *http.ResponseController
	err     error
}

func (s *liveStream) send(text string) {
	for _, step := range []func() error{
		func() error { return s.control.SetWriteDeadline(time.Now().Add(liveDeadline)) },
		func() error { _, err := io.WriteString(s.w, text); return err },
		s.control.Flush,
	} {
		if s.err == nil {
			if s.err = step(); errors.Is(s.err, http.ErrNotSupported) {
				s.err = nil
			}
		}
	}
}
