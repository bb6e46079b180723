package console

import (
	"context"
	"crypto/rand"
	"encoding/json"
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

// change is one live change of a page. The element with ID is replaced, moved into another parent,
// inserted or removed.
type change struct {
	ID   string `json:"id"`
	HTML string `json:"html"`           // empty removes the element
	Into string `json:"into,omitempty"` // ID of the parent; without it, only an existing element is replaced
	Say  string `json:"say,omitempty"`  // for screen readers
}

// Limits of the live changes.
const (
	maxLivePages   = 64
	maxLiveChanges = 1024    // stored for pages that are loading, slow or reconnecting
	maxLiveBytes   = 4 << 20 // of these
	liveHeartbeat  = 15 * time.Second
	liveDeadline   = 10 * time.Second // of a write to a page
	pageLoads      = 10 * time.Second // how long a page may take from its request until it is connected
	jobInterval    = time.Second
)

// live sends changes to open pages (server-sent events). Publishers never wait: the latest changes
// are stored once, and each page reads them at its own speed. A page that has missed some loads
// again.
type live struct {
	epoch  string // distinguishes the changes of this process from those of an earlier one
	closed chan struct{}
	close  func()

	watching chan struct{} // is closed when run gets all changes

	mu       sync.Mutex
	last     int64        // number of the latest change
	changes  []liveChange // the latest, in order
	bytes    int
	pages    []*livePage // in the order of their connection
	loading  time.Time   // when a page was last requested
	expected map[string]time.Time
	jobs     map[string]func(context.Context)
	wake     chan struct{} // there is a job
}

type liveChange struct {
	number int64
	topic  string
	data   []byte
}

// livePage is an open page.
type livePage struct {
	topics  []string
	wake    chan struct{} // there are changes
	evicted chan struct{} // too many pages are open
}

func newLive() *live {
	l := &live{epoch: rand.Text()[:8], closed: make(chan struct{}), watching: make(chan struct{}), expected: map[string]time.Time{},
		jobs: map[string]func(context.Context){}, wake: make(chan struct{}, 1)}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	return l
}

type liveKey struct{}

// stamp notes which changes a page includes that is made from now on.
func (l *live) stamp(r *http.Request) *http.Request {
	if r.URL.Path == "/console/live" {
		return r
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loading = time.Now()
	since := l.epoch + "-" + strconv.FormatInt(l.last, 10)
	return r.WithContext(context.WithValue(r.Context(), liveKey{}, since))
}

// liveSince returns the note of stamp.
func liveSince(r *http.Request) string {
	since, _ := r.Context().Value(liveKey{}).(string)
	return since
}

// expect announces that a page with the topic is loading.
func (l *live) expect(topic string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for topic, at := range l.expected {
		if now.Sub(at) > pageLoads {
			delete(l.expected, topic)
		}
	}
	if len(l.expected) < maxLivePages {
		l.expected[topic] = now
	}
}

// watched reports whether a page with the topic is open, or a page is loading.
func (l *live) watched(topic string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.loading) < pageLoads ||
		slices.ContainsFunc(l.pages, func(p *livePage) bool { return slices.Contains(p.topics, topic) })
}

// topics returns the topics with the prefix of pages that are open or loading.
func (l *live) topics(prefix string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for _, p := range l.pages {
		for _, topic := range p.topics {
			if strings.HasPrefix(topic, prefix) {
				found = append(found, topic)
			}
		}
	}
	for topic, at := range l.expected {
		if strings.HasPrefix(topic, prefix) && time.Since(at) < pageLoads {
			found = append(found, topic)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// publish sends a change to the pages with a topic. It does not wait for them.
func (l *live) publish(topic string, ch change) {
	ch.Say = visible(ch.Say)
	data, err := json.Marshal(ch)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	l.changes = append(l.changes, liveChange{l.last, topic, data})
	l.bytes += len(data)
	for len(l.changes) > maxLiveChanges || l.bytes > maxLiveBytes {
		l.bytes -= len(l.changes[0].data)
		l.changes[0] = liveChange{}
		l.changes = l.changes[1:]
	}
	for _, p := range l.pages {
		if slices.Contains(p.topics, topic) {
			signal(p.wake)
		}
	}
}

// signal wakes the reader of a channel with a buffer of one.
func signal(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// soon calls f at most once a second for each key, from one goroutine, while Run runs. Calls in
// between are replaced by the latest.
func (l *live) soon(key string, f func(context.Context)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.jobs[key] = f
	signal(l.wake)
}

// runJobs calls the functions of soon. They take at most half of the time.
func (l *live) runJobs(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		}
		l.mu.Lock()
		jobs := l.jobs
		l.jobs = map[string]func(context.Context){}
		l.mu.Unlock()
		started := time.Now()
		for _, job := range jobs {
			job(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(jobInterval, time.Since(started))):
		}
	}
}

// run watches the sandbox and the inspector and publishes what changes, until ctx is done. Then it
// ends the streams of all pages.
func (l *live) run(ctx context.Context, c *Console) {
	defer l.close()
	var running sync.WaitGroup
	running.Go(func() { l.runJobs(ctx) })
	deliveries := c.deliveries.Watch(ctx)
	running.Go(func() {
		for number := range deliveries {
			c.deliveryChanged(ctx, number)
			c.wearablesChanged(ctx, number)
			c.orderDelivered(ctx, number)
		}
	})
	if c.sandbox() {
		activities := c.Server.Watch(ctx)
		running.Go(func() {
			for a := range activities {
				switch {
				case a.Request != nil:
					c.requestReceived(*a.Request)
				case a.Delivery != nil && (a.Delivery.Lost || a.Delivery.Dropped):
					if id, _ := orderEventOf(a.Delivery.Body); c.live.watched("order-" + id.String()) {
						c.orderChanged(ctx, id)
					}
				case a.Delivery != nil:
				case a.OrderID != [16]byte{}:
					c.orderChanged(ctx, a.OrderID)
				default:
					c.userChanged(ctx, a.UserID)
				}
			}
		})
	}
	close(l.watching)
	<-ctx.Done()
	l.close()
	running.Wait()
}

// open adds a page. If too many are open, the oldest one is closed.
func (l *live) open(topics []string) *livePage {
	p := &livePage{topics: topics, wake: make(chan struct{}, 1), evicted: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pages) == maxLivePages {
		close(l.pages[0].evicted)
		l.pages = l.pages[1:]
	}
	l.pages = append(slices.Clip(l.pages), p)
	return p
}

func (l *live) remove(p *livePage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pages = slices.DeleteFunc(slices.Clone(l.pages), func(other *livePage) bool { return other == p })
}

// since returns the changes of a page after a number. It reports whether some of them, or others,
// are not stored anymore.
func (l *live) since(p *livePage, number int64) (changes []liveChange, last int64, missed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if number < l.last-int64(len(l.changes)) || number > l.last {
		return nil, l.last, true
	}
	for _, ch := range l.changes[len(l.changes)-int(l.last-number):] {
		if slices.Contains(p.topics, ch.topic) {
			changes = append(changes, ch)
		}
	}
	return changes, l.last, false
}

// position returns the number of the latest change that a page includes, from the header of a
// reconnecting page or the query of a new one. Without any, the page includes all.
func (l *live) position(r *http.Request) (number int64, ok bool) {
	since := r.Header.Get("Last-Event-Id")
	if since == "" {
		since = r.FormValue("since")
	}
	if since == "" {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.last, true
	}
	epoch, text, _ := strings.Cut(since, "-")
	number, err := strconv.ParseInt(text, 10, 64)
	return number, err == nil && epoch == l.epoch
}

// serveLive streams the changes of the topics in the query until the page or the console is closed.
func (c *Console) serveLive(w http.ResponseWriter, r *http.Request) {
	topics := strings.Fields(r.FormValue("topics"))
	if len(topics) > 16 {
		http.Error(w, "topics: at most 16 are allowed", http.StatusBadRequest)
		return
	}
	l := c.live
	position, ok := l.position(r)
	p := l.open(topics)
	defer l.remove(p)
	signal(p.wake) // what has changed since the page was made
	stream := &liveStream{w: w, control: http.NewResponseController(w), epoch: l.epoch}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(stream, "retry: 1000\n\n")
	stream.event("ready", position)
	if !ok {
		stream.event("reload", position)
	}
	heartbeat := time.NewTicker(liveHeartbeat)
	defer heartbeat.Stop()
	for ok && stream.flush() {
		select {
		case <-r.Context().Done():
			return
		case <-l.closed:
			return
		case <-p.evicted:
			stream.event("full", position)
			ok = false
		case <-heartbeat.C:
			stream.event("alive", position)
		case <-p.wake:
			changes, last, missed := l.since(p, position)
			if missed {
				stream.event("reload", last)
				ok = false
			}
			for _, ch := range changes {
				stream.change(ch)
			}
			position = last
		}
	}
	stream.flush()
}

// liveStream writes events. A page that does not read ends its stream by the deadline.
type liveStream struct {
	w       io.Writer
	control *http.ResponseController
	epoch   string
	err     error
}

func (s *liveStream) Write(b []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if err := s.control.SetWriteDeadline(time.Now().Add(liveDeadline)); err != nil && !isNotSupported(err) {
		s.err = err
		return 0, err
	}
	n, err := s.w.Write(b)
	s.err = err
	return n, err
}

func (s *liveStream) event(name string, position int64) {
	fmt.Fprintf(s, "event: %s\nid: %s-%d\ndata: {}\n\n", name, s.epoch, position)
}

func (s *liveStream) change(ch liveChange) {
	fmt.Fprintf(s, "id: %s-%d\ndata: %s\n\n", s.epoch, ch.number, ch.data)
}

func (s *liveStream) flush() bool {
	if s.err == nil {
		if err := s.control.Flush(); err != nil && !isNotSupported(err) {
			s.err = err
		}
	}
	return s.err == nil
}

func isNotSupported(err error) bool { return errors.Is(err, http.ErrNotSupported) }
