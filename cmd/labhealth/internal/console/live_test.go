package console

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// liveChanges returns a function that waits until a topic changes.
func liveChanges(t testing.TB, l *live, topic string) func() {
	t.Helper()
	_, position, _ := l.since(0)
	return func() {
		t.Helper()
		for {
			topics, last, wake := l.since(position)
			position = last
			for _, changed := range topics {
				if changed == topic {
					return
				}
			}
			select {
			case <-wake:
			case <-time.After(time.Minute):
				t.Fatalf("%s has not changed within a minute", topic)
			}
		}
	}
}

// stream connects to a console as a page does.
type stream struct {
	t      testing.TB
	lines  *bufio.Scanner
	cancel func()
}

func connect(t testing.TB, url, since string) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, "GET", url+"/console/live?since="+since, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	s := &stream{t: t, lines: bufio.NewScanner(res.Body), cancel: func() { cancel(); res.Body.Close() }}
	t.Cleanup(s.cancel)
	if got := s.next(); got != "ready  {}" {
		t.Fatalf("got %s", got)
	}
	return s
}

// next returns the next event as "name id data", or "end".
func (s *stream) next() string {
	s.t.Helper()
	name, id, data := "message", "", ""
	for s.lines.Scan() {
		line := s.lines.Text()
		switch key, value, _ := strings.Cut(line, ": "); key {
		case "event":
			name = value
		case "id":
			id = value
		case "data":
			data = value
		case "":
			if data != "" {
				return name + " " + id + " " + data
			}
		}
	}
	return "end"
}

// liveServer serves the live changes alone.
func liveServer(t testing.TB) (*live, string) {
	c := &Console{live: newLive()}
	c.live.epoch = "epoch"
	srv := httptest.NewServer(http.HandlerFunc(c.serveLive))
	t.Cleanup(srv.Close)
	t.Cleanup(c.live.close)
	return c.live, srv.URL
}

// A page is told what has changed since it was made, and a page of another process that everything
// may have. Streams end with the console.
func TestLive(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("", func(t *testing.T) {
		t.Cleanup(http.DefaultClient.CloseIdleConnections)
		l, url := liveServer(t)
		s := connect(t, url, "epoch-0")
		l.changed("orders")
		if got := s.next(); got != "changed epoch-1 orders" {
			t.Fatalf("got %s", got)
		}
		for range 1000 { // nobody waits for pages
			l.changed("users")
		}
		for got := ""; !strings.HasPrefix(got, "changed epoch-1001 users"); got = s.next() {
			if got == "end" {
				t.Fatal(got)
			}
		}
		s.cancel()
		for since, want := range map[string]string{
			"epoch-0": "changed epoch-1001 orders users", "epoch-1": "changed epoch-1001 users",
			"another-3": "changed epoch-1001 all", "epoch-1002": "changed epoch-1001 all", "epoch-x": "changed epoch-1001 all", "": "changed epoch-1001 all",
		} {
			if got := connect(t, url, since).next(); got != want {
				t.Errorf("since %q: got %s, want %s", since, got, want)
			}
		}
		s = connect(t, url, "epoch-1001")
		l.close()
		var all sync.WaitGroup
		for _, s := range []*stream{s, connect(t, url, "epoch-1001")} {
			all.Go(func() {
				if got := s.next(); got != "end" {
					t.Errorf("got %s", got)
				}
			})
		}
		all.Wait()
	})
}

// TestLiveStuckPage checks that a page that never reads ends by the deadline of its writes.
func TestLiveStuckPage(t *testing.T) {
	w := &stuckWriter{header: http.Header{}}
	s := &liveStream{w: w, control: http.NewResponseController(w)}
	s.send("first")
	if w.deadline.IsZero() || time.Until(w.deadline) > liveDeadline || s.err != nil {
		t.Errorf("deadline %v, %v", w.deadline, s.err)
	}
	if s.send("second"); s.err == nil {
		t.Error("the stream goes on after an error")
	}
}

type stuckWriter struct {
	header   http.Header
	deadline time.Time
	writes   int
}

func (w *stuckWriter) Header() http.Header                 { return w.header }
func (w *stuckWriter) WriteHeader(int)                     {}
func (w *stuckWriter) SetWriteDeadline(at time.Time) error { w.deadline = at; return nil }
func (w *stuckWriter) Write(b []byte) (int, error) {
	if w.writes++; w.writes > 1 {
		return 0, errors.New("deadline exceeded")
	}
	return len(b), nil
}

// What happens in the sandbox, and every delivery, reaches the pages that show it.
func TestLiveTopics(t *testing.T) {
	s := newOrdersSite(t)
	s.deliver()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.console.Run(ctx) })
	defer running.Wait()
	defer stop()
	<-s.console.live.watching
	waits := map[string]func(){}
	for _, topic := range []string{"orders", "users", "deliveries", "requests", "faults"} {
		waits[topic] = liveChanges(t, s.console.live, topic)
	}
	s.order(s.srv.LabTests.WalkIn)
	s.do("POST", "/console/faults/disarm", nil)
	if res, err := http.Get(s.srv.URL + "/v2/user/"); err != nil {
		t.Error(err)
	} else {
		res.Body.Close()
	}
	for _, wait := range waits {
		wait()
	}
	for path, want := range map[string]string{"orders": "orders", "users": "users deliveries", "deliveries": "deliveries", "faults": "faults requests", "requests": "requests"} {
		page := s.get("/console/"+path, 200)
		s.contains(page, `data-live="`+want+`"`, `data-since="`+s.console.live.epoch+`-`)
	}
	s.contains(s.get("/console/nav", 200), `<nav class="nav" id="nav"`, `<span id="count-orders" class="n">1</span>`)
}

// A page that shows a detail which its address does not name fetches itself with it.
func TestLiveDetail(t *testing.T) {
	s := newDeliveriesSite(t)
	s.deliver("msg_a", deliverySecret, samplesBody(1), 0)
	s.contains(s.get("/console/deliveries?q=glucose", 200), `data-self="/console/deliveries?q=glucose&amp;shown=1"`)
	s.deliver("msg_b", deliverySecret, samplesBody(2), 0)
	page := s.get("/console/deliveries?q=glucose&shown=1", 200)
	s.contains(page, `id="delivery-1"`, `<li id="d1" data-item="verified" class="on">`, `<li id="d2" data-item="verified"><a`, `<div class="detail" id="detail">`)
	s.contains(s.get("/console/deliveries/1?tab=body", 200), `data-self="/console/deliveries/1?tab=body"`)
	s.contains(s.post("/console/deliveries/1/reveal?tab=body", nil, 200), `data-self="/console/deliveries/1?tab=body"`, `id="detail" data-asked>`)
}
