package console

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

// liveChanges opens a page and returns a function that waits for its next change.
func liveChanges(t testing.TB, l *live, topics ...string) func() change {
	t.Helper()
	p := l.open(topics)
	t.Cleanup(func() { l.remove(p) })
	l.mu.Lock()
	position := l.last
	l.mu.Unlock()
	var queue []liveChange
	return func() change {
		t.Helper()
		for len(queue) == 0 {
			select {
			case <-p.wake:
			case <-time.After(time.Minute):
				t.Fatal("no change within a minute")
			}
			var missed bool
			if queue, position, missed = l.since(p, position); missed {
				t.Fatal("the page has missed changes")
			}
		}
		var ch change
		if err := json.Unmarshal(queue[0].data, &ch); err != nil {
			t.Fatal(err)
		}
		queue = queue[1:]
		return ch
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
	r, err := http.NewRequestWithContext(ctx, "GET", url+"/console/live?topics=nav+orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	if since != "" {
		r.Header.Set("Last-Event-ID", since)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	s := &stream{t: t, lines: bufio.NewScanner(res.Body), cancel: func() { cancel(); res.Body.Close() }}
	s.lines.Buffer(nil, 1<<20)
	t.Cleanup(s.cancel)
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

func TestLiveReconnect(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("", func(t *testing.T) {
		t.Cleanup(http.DefaultClient.CloseIdleConnections)
		l, url := liveServer(t)
		s := connect(t, url, "")
		if got := s.next(); got != "ready epoch-0 {}" {
			t.Fatalf("got %s", got)
		}
		l.publish("orders", change{ID: "a", HTML: "<p>1</p>", Into: "b", Say: "new"})
		l.publish("users", change{ID: "other"})
		l.publish("nav", change{ID: "c"})
		if got, want := s.next(), `message epoch-1 {"id":"a","html":"\u003cp\u003e1\u003c/p\u003e","into":"b","say":"new"}`; got != want {
			t.Errorf("got %s", got)
		}
		if got := s.next(); got != `message epoch-3 {"id":"c","html":""}` {
			t.Errorf("got %s", got)
		}
		s.cancel()
		l.publish("nav", change{ID: "d"})
		s = connect(t, url, "epoch-3") // nothing is missed
		if s.next(); true {
			if got := s.next(); got != `message epoch-4 {"id":"d","html":""}` {
				t.Errorf("got %s", got)
			}
		}
		for _, since := range []string{"another-3", "epoch-99", "epoch-x", "epoch--1"} {
			s = connect(t, url, since)
			s.next()
			if got := s.next(); !strings.HasPrefix(got, "reload epoch-") {
				t.Errorf("since %s: got %s", since, got)
			}
			if got := s.next(); got != "end" {
				t.Errorf("since %s: got %s after the reload", since, got)
			}
		}
		for range 2 * maxLiveChanges {
			l.publish("users", change{ID: "e"})
		}
		s = connect(t, url, "epoch-4")
		s.next()
		if got := s.next(); !strings.HasPrefix(got, "reload epoch-") {
			t.Errorf("after many changes: got %s", got)
		}
	})
}

// TestLiveLimits checks that publishers do not wait for pages that do not read, that the changes
// that are stored are bounded, and that the oldest page makes room for a new one.
func TestLiveLimits(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("", func(t *testing.T) {
		t.Cleanup(http.DefaultClient.CloseIdleConnections)
		l, url := liveServer(t)
		first := connect(t, url, "")
		first.next()
		for range 20 {
			connect(t, url, "") // does not read
		}
		start := time.Now()
		large := strings.Repeat("x", 64<<10)
		for range 500 {
			l.publish("orders", change{ID: "a", HTML: large})
		}
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("publishing took %v", took)
		}
		if l.bytes > maxLiveBytes || len(l.changes) > maxLiveChanges {
			t.Errorf("%d bytes in %d changes are stored", l.bytes, len(l.changes))
		}
		for range maxLivePages {
			l.remove(l.open([]string{"nav"}))
		}
		var pages []*livePage
		for range maxLivePages {
			pages = append(pages, l.open([]string{"nav"}))
		}
		for got := ""; got != "end"; got = first.next() {
		}
		if n := len(l.pages); n != maxLivePages {
			t.Errorf("%d pages are open", n)
		}
		for _, p := range pages {
			l.remove(p)
		}
	})
}

// TestLiveClose checks that streams end with the console, and that later ones end at once.
func TestLiveClose(t *testing.T) {
	l, url := liveServer(t)
	streams := make([]*stream, 10)
	for i := range streams {
		streams[i] = connect(t, url, "")
		streams[i].next()
	}
	l.close()
	var all sync.WaitGroup
	for _, s := range streams {
		all.Go(func() {
			if got := s.next(); got != "end" {
				t.Errorf("got %s", got)
			}
		})
	}
	all.Wait()
	s := connect(t, url, "")
	s.next()
	if got := s.next(); got != "end" {
		t.Errorf("a stream after the end: %s", got)
	}
}

// TestLiveStuckPage checks that a page that never reads ends by the deadline of its writes.
func TestLiveStuckPage(t *testing.T) {
	w := &stuckWriter{header: http.Header{}}
	s := &liveStream{w: w, control: http.NewResponseController(w), epoch: "epoch"}
	fmt.Fprint(s, "first")
	if w.deadline.IsZero() || time.Until(w.deadline) > liveDeadline {
		t.Errorf("deadline %v", w.deadline)
	}
	if fmt.Fprint(s, "second"); s.flush() || s.err == nil {
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

// TestSoon checks that calls for one key are combined.
func TestSoon(t *testing.T) { synctest.Test(t, testSoon) }

func testSoon(t *testing.T) {
	l := newLive()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { l.runJobs(ctx) })
	calls := make(chan int, 100)
	for i := range 50 {
		l.soon("a", func(context.Context) { calls <- i })
	}
	time.Sleep(jobInterval * 3 / 2) // of the fake time
	cancel()
	running.Wait()
	close(calls)
	var got []int
	for i := range calls {
		got = append(got, i)
	}
	if len(got) == 0 || len(got) > 2 || got[len(got)-1] != 49 {
		t.Errorf("called with %v", got)
	}
}
