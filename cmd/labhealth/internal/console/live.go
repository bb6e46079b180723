package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
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

// live sends changes to open pages (server-sent events).
type live struct {
	mu    sync.Mutex
	pages map[*livePage]bool
	users userViews
}

type livePage struct {
	topics  map[string]bool
	changes chan change
	missed  bool // too slow: reload
}

func newLive() *live { return &live{pages: map[*livePage]bool{}} }

// watched reports whether a page with one of the topics is open.
func (l *live) watched(topic string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.pages {
		if p.topics[topic] {
			return true
		}
	}
	return false
}

// publish sends a change to the pages with a topic.
func (l *live) publish(topic string, ch change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.pages {
		if !p.topics[topic] {
			continue
		}
		select {
		case p.changes <- ch:
		default:
			p.missed = true
		}
	}
}

// run watches the sandbox and the inspector and publishes what changes, until ctx is done.
func (l *live) run(ctx context.Context, c *Console) {
	var running sync.WaitGroup
	running.Go(func() {
		for number := range c.Inspector.Watch(ctx) {
			c.deliveryChanged(ctx, number)
			c.wearablesChanged(ctx, number)
		}
	})
	if c.sandbox() {
		running.Go(func() {
			for a := range c.Server.Watch(ctx) {
				switch {
				case a.Request != nil:
					c.requestReceived(*a.Request)
				case a.Delivery != nil:
				case a.OrderID != [16]byte{}:
					c.orderChanged(ctx, a.OrderID)
				default:
					c.userChanged(ctx, a.UserID)
				}
			}
		})
	}
	running.Wait()
}

// serveLive streams the changes of the topics in the query.
func (c *Console) serveLive(w http.ResponseWriter, r *http.Request) {
	p := &livePage{topics: map[string]bool{}, changes: make(chan change, 256)}
	for topic := range strings.FieldsSeq(r.FormValue("topics")) {
		p.topics[topic] = true
	}
	c.live.mu.Lock()
	c.live.pages[p] = true
	c.live.mu.Unlock()
	defer func() {
		c.live.mu.Lock()
		defer c.live.mu.Unlock()
		delete(c.live.pages, p)
	}()
	flush := http.NewResponseController(w).Flush
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, "retry: 1000\n\nevent: ready\ndata: {}\n\n")
	flush()
	alive := time.NewTicker(15 * time.Second)
	defer alive.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-alive.C:
			fmt.Fprint(w, ": alive\n\n")
		case ch := <-p.changes:
			c.live.mu.Lock()
			missed := p.missed
			p.missed = false
			c.live.mu.Unlock()
			if missed {
				fmt.Fprint(w, "event: reload\ndata: {}\n\n")
			}
			b, err := json.Marshal(ch)
			if err != nil {
				return
			}
			fmt.Fprintf(w, "data: %s\n\n", b)
		}
		if flush() != nil {
			return
		}
	}
}
