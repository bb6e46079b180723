package webhooks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/labhealth/labhealth-go/webhooks"
)

const glucoseEvent = `{"event_type":"daily.data.glucose.created","data":{},"team_id":"8f0cd2c5-6b4e-4d0a-9a55-2f1f3f0f6c11",` +
	`"user_id":"1e9c0b37-54fd-43c6-9a5e-0c5e86d0a4de","client_user_id":"ada"}`

// application counts its calls. Each runs do, unless it is nil.
type application struct {
	calls atomic.Int64
	do    func(context.Context, *webhooks.Event) error
}

func (a *application) apply(ctx context.Context, e *webhooks.Event) error {
	a.calls.Add(1)
	if a.do == nil {
		return nil
	}
	return a.do(ctx, e)
}

// recorder is an observer that keeps the results.
type recorder struct {
	mu  sync.Mutex
	all []webhooks.DeliveryResult
}

func (r *recorder) add(_ context.Context, result webhooks.DeliveryResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, result)
}

// results returns status code and reason of each result, with an asterisk for duplicates and "late"
// for late calls.
func (r *recorder) results() (lines []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, result := range r.all {
		line := fmt.Sprint(result.StatusCode, " ", result.Reason)
		if result.Duplicate {
			line += "*"
		}
		if result.Late {
			line += " late"
		}
		lines = append(lines, line)
	}
	return lines
}

func newHandler(t testing.TB, v *webhooks.Verifier, app *application, opts ...webhooks.HandlerOption) (*webhooks.Handler, *recorder) {
	t.Helper()
	seen := new(recorder)
	h, err := webhooks.NewHandler(v, app.apply, append(opts, webhooks.WithObserver(seen.add))...)
	if err != nil {
		t.Fatal(err)
	}
	return h, seen
}

// wait waits for d or for the end of ctx.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// delivery returns the request of an unsigned delivery, without an ID if id is empty.
func delivery(id, body string) *http.Request {
	r := httptest.NewRequest("POST", "/events", strings.NewReader(body))
	if id != "" {
		r.Header.Set("svix-id", id)
	}
	return r
}

// deliver passes a request to the handler and returns the status code.
func deliver(h http.Handler, r *http.Request) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

func shutDown(t testing.TB, h *webhooks.Handler) {
	t.Helper()
	if err := h.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

func checkResults(t testing.TB, seen *recorder, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, seen.results()); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

// endless is a body without end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// broken is a truncated body.
type broken struct{ io.Reader }

func (b broken) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// forgetful is a Deduplicator that stores nothing and may fail.
type forgetful struct{ seen, markSeen error }

func (m forgetful) Seen(context.Context, string) (bool, error) { return false, m.seen }
func (m forgetful) MarkSeen(context.Context, string) error     { return m.markSeen }

func TestResponses(t *testing.T) {
	verifier := newVerifier(t, vectorSecret)
	now := func() time.Time { return vectorTime.Add(time.Second) }
	signed := func(body string, change ...func(*http.Request)) *http.Request {
		r := httptest.NewRequest("POST", "/events", strings.NewReader(body))
		r.Header = signedHeader("svix", "msg_1", vectorTimestamp, sign(t, verifier, "msg_1", vectorTime, body))
		r.Header.Set("Content-Type", "application/json")
		for _, f := range change {
			f(r)
		}
		return r
	}
	type request = *http.Request
	boom := errors.New("the database is unavailable")
	for _, test := range []struct {
		name   string
		r      request
		opts   []webhooks.HandlerOption
		do     func(context.Context, *webhooks.Event) error
		status int
		reason webhooks.Reason
		calls  int64
		kind   webhooks.EventType
	}{
		{name: "event", r: signed(glucoseEvent), status: 204, reason: "applied", calls: 1, kind: "daily.data.glucose.created"},
		{name: "unknown type", r: signed(`{"event_type":"moon.landed","data":[1]}`), status: 204, reason: "applied", calls: 1, kind: "moon.landed"},
		{name: "no type", r: signed(`{"type":"message.attempt.failing","data":{}}`), status: 204, reason: "applied", calls: 1},
		{name: "odd data", r: signed(`{"event_type":"daily.data.sleep.created","data":7}`), status: 204, reason: "applied", calls: 1, kind: "daily.data.sleep.created"},
		{name: "odd content type", r: signed(glucoseEvent, func(r request) { r.Header.Set("Content-Type", "text/plain") }),
			status: 204, reason: "applied", calls: 1, kind: "daily.data.glucose.created"},
		{name: "no content type", r: signed(glucoseEvent, func(r request) { r.Header.Del("Content-Type") }),
			status: 204, reason: "applied", calls: 1, kind: "daily.data.glucose.created"},
		{name: "unknown length", r: signed(glucoseEvent, func(r request) { r.ContentLength = -1 }),
			status: 204, reason: "applied", calls: 1, kind: "daily.data.glucose.created"},

		{name: "not JSON", r: signed("event_type=x"), status: 400, reason: "unreadable"},
		{name: "array", r: signed("[]"), status: 400, reason: "unreadable"},
		{name: "empty body", r: signed(""), status: 400, reason: "unreadable"},
		{name: "half a body", r: signed(glucoseEvent, func(r request) { r.Body = io.NopCloser(broken{strings.NewReader(glucoseEvent[:40])}) }),
			status: 400, reason: "incomplete"},
		{name: "dead letter", r: signed("not JSON"), opts: deadLetter("not JSON", nil), status: 204, reason: "dead-lettered"},
		{name: "empty dead letter", r: signed(""), opts: deadLetter("", nil), status: 204, reason: "dead-lettered"},
		{name: "dead letter fails", r: signed("not JSON"), opts: deadLetter("not JSON", boom), status: 503, reason: "failed"},

		{name: "no headers", r: signed(glucoseEvent, func(r request) { clear(r.Header) }), status: 401, reason: "headers"},
		{name: "no signature", r: signed(glucoseEvent, func(r request) { r.Header.Del("svix-signature") }), status: 401, reason: "headers"},
		{name: "no id", r: signed(glucoseEvent, func(r request) { r.Header.Del("svix-id") }), status: 401, reason: "headers"},
		{name: "wrong signature", r: signed(glucoseEvent, func(r request) { r.Header.Set("svix-signature", vectorSignature) }), status: 401, reason: "signature"},
		{name: "another body", r: signed(glucoseEvent, func(r request) { r.Body = io.NopCloser(strings.NewReader("{}")); r.ContentLength = 2 }),
			status: 401, reason: "signature"},
		{name: "another id", r: signed(glucoseEvent, func(r request) { r.Header.Set("svix-id", "msg_2") }), status: 401, reason: "signature"},
		{name: "old", r: signed(glucoseEvent, func(r request) { r.Header.Set("svix-timestamp", "1614265030") }), status: 401, reason: "timestamp"},
		{name: "bad headers and an endless body", r: signed(glucoseEvent, func(r request) {
			clear(r.Header)
			r.Body, r.ContentLength = io.NopCloser(endless{}), -1
		}), status: 401, reason: "headers"},
		{name: "wrong signature of a body that is not an event", r: signed("no", func(r request) { r.Header.Set("svix-signature", vectorSignature) }),
			opts: deadLetter("never", nil), status: 401, reason: "signature"},

		{name: "GET", r: signed("", func(r request) { r.Method = "GET" }), status: 405, reason: "method"},
		{name: "HEAD", r: signed("", func(r request) { r.Method = "HEAD" }), status: 405, reason: "method"},
		{name: "PUT", r: signed(glucoseEvent, func(r request) { r.Method = "PUT" }), status: 405, reason: "method"},
		{name: "OPTIONS", r: signed("", func(r request) { r.Method = "OPTIONS" }), status: 405, reason: "method"},

		{name: "16 MiB", r: signed("{}" + strings.Repeat(" ", 16<<20-2)), status: 204, reason: "applied", calls: 1},
		{name: "more than 16 MiB", r: signed("{}" + strings.Repeat(" ", 16<<20-1)), status: 413, reason: "too large"},
		{name: "16 MiB and endless", r: signed("{}", func(r request) { r.Body, r.ContentLength = io.NopCloser(endless{}), -1 }), status: 413, reason: "too large"},
		{name: "own limit", r: signed("{}"), opts: []webhooks.HandlerOption{webhooks.WithBodyLimit(2)}, status: 204, reason: "applied", calls: 1},
		{name: "above the own limit", r: signed("{} "), opts: []webhooks.HandlerOption{webhooks.WithBodyLimit(2)}, status: 413, reason: "too large"},
		{name: "above the own limit, length unknown", r: signed("{} ", func(r request) { r.ContentLength = -1 }),
			opts: []webhooks.HandlerOption{webhooks.WithBodyLimit(2)}, status: 413, reason: "too large"},

		{name: "failure", r: signed(glucoseEvent), do: func(context.Context, *webhooks.Event) error { return boom },
			status: 503, reason: "failed", calls: 1, kind: "daily.data.glucose.created"},
		{name: "permanent failure", r: signed(glucoseEvent), do: func(context.Context, *webhooks.Event) error { return webhooks.ErrNoUser },
			opts: deadLetter(glucoseEvent, nil), status: 204, reason: "dead-lettered", calls: 1, kind: "daily.data.glucose.created"},
		{name: "wrapped permanent failure", r: signed(glucoseEvent),
			do:   func(context.Context, *webhooks.Event) error { return fmt.Errorf("apply: %w", webhooks.ErrUnreadable) },
			opts: deadLetter(glucoseEvent, nil), status: 204, reason: "dead-lettered", calls: 1, kind: "daily.data.glucose.created"},
		{name: "permanent failure that is not kept", r: signed(glucoseEvent), do: func(context.Context, *webhooks.Event) error { return webhooks.ErrNoUser },
			opts: deadLetter(glucoseEvent, boom), status: 503, reason: "failed", calls: 1, kind: "daily.data.glucose.created"},
		{name: "permanent failure without a dead-letter function", r: signed(glucoseEvent),
			do:     func(context.Context, *webhooks.Event) error { return webhooks.ErrNoUser },
			status: 503, reason: "permanent", calls: 1, kind: "daily.data.glucose.created"},
		{name: "panic", r: signed(glucoseEvent), do: func(context.Context, *webhooks.Event) error { panic("ada@example.com") },
			status: 503, reason: "panicked", calls: 1, kind: "daily.data.glucose.created"},
		{name: "panic with an error", r: signed(glucoseEvent), do: func(context.Context, *webhooks.Event) error { panic(http.ErrAbortHandler) },
			status: 503, reason: "panicked", calls: 1, kind: "daily.data.glucose.created"},
		{name: "goroutine ended", r: signed(glucoseEvent), do: func(context.Context, *webhooks.Event) error { runtime.Goexit(); return nil },
			status: 503, reason: "panicked", calls: 1, kind: "daily.data.glucose.created"},
		{name: "deadline", r: signed(glucoseEvent), opts: []webhooks.HandlerOption{webhooks.WithDeadline(time.Millisecond)},
			do: func(ctx context.Context, _ *webhooks.Event) error { <-ctx.Done(); return ctx.Err() }, status: 503, reason: "deadline", calls: 1, kind: "daily.data.glucose.created"},
		{name: "deduplicator fails to look up", r: signed(glucoseEvent), opts: []webhooks.HandlerOption{webhooks.WithDeduplicator(forgetful{seen: boom})},
			status: 503, reason: "deduplicator"},
		{name: "deduplicator fails to store", r: signed(glucoseEvent), opts: []webhooks.HandlerOption{webhooks.WithDeduplicator(forgetful{markSeen: boom})},
			status: 204, reason: "not marked", calls: 1, kind: "daily.data.glucose.created"},
		{name: "deduplicator panics", r: signed(glucoseEvent), opts: []webhooks.HandlerOption{webhooks.WithDeduplicator(panicking{})}, status: 503, reason: "panicked"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				app := &application{do: test.do}
				h, seen := newHandler(t, verifier, app, append(test.opts, webhooks.WithClock(now))...)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, test.r)
				shutDown(t, h)

				if w.Code != test.status || app.calls.Load() != test.calls {
					t.Errorf("status %d after %d calls, want %d after %d", w.Code, app.calls.Load(), test.status, test.calls)
				}
				text, allow := http.StatusText(test.status)+"\n", ""
				if test.status == 204 {
					text = ""
				}
				if test.status == 405 {
					allow = "POST"
				}
				if w.Body.String() != text || w.Header().Get("Allow") != allow || w.Header().Get("Location") != "" {
					t.Errorf("body %q, header %v", w.Body, w.Header())
				}
				want := webhooks.DeliveryResult{StatusCode: test.status, Reason: test.reason, Type: test.kind, ReceivedAt: now(), DeliveryID: "msg_1"}
				if len(seen.all) != 1 {
					t.Fatalf("%d results were reported", len(seen.all))
				}
				want.DeliveryID = webhooks.DeliveryID(test.r.Header)
				if diff := cmp.Diff(want, seen.all[0], cmpopts.IgnoreFields(webhooks.DeliveryResult{}, "Duration", "Panic")); diff != "" {
					t.Errorf("result (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func deadLetter(want string, err error) []webhooks.HandlerOption {
	return []webhooks.HandlerOption{webhooks.WithDeadLetter(func(_ context.Context, body []byte) error {
		if string(body) != want {
			return fmt.Errorf("the body is %q", body)
		}
		return err
	})}
}

type panicking struct{ forgetful }

func (panicking) Seen(context.Context, string) (bool, error) { panic("the deduplicator broke") }

func TestNewHandlerErrors(t *testing.T) {
	apply := func(context.Context, *webhooks.Event) error { return nil }
	unset, _ := webhooks.NewVerifier("")
	for _, test := range []struct {
		name     string
		verifier *webhooks.Verifier
		apply    func(context.Context, *webhooks.Event) error
		opt      webhooks.HandlerOption
		want     string
	}{
		{"no verifier", nil, apply, nil, "webhooks: NewHandler needs a verifier of NewVerifier, or webhooks.Unsigned to do without"},
		{"a secret that was not set", unset, apply, nil, "webhooks: NewHandler needs a verifier of NewVerifier, or webhooks.Unsigned to do without"},
		{"zero verifier", &webhooks.Verifier{}, apply, nil, "webhooks: NewHandler needs a verifier of NewVerifier, or webhooks.Unsigned to do without"},
		{"no function", webhooks.Unsigned, nil, nil, "webhooks: NewHandler needs a function that is called with the events"},
		{"body limit", webhooks.Unsigned, apply, webhooks.WithBodyLimit(0), "webhooks: WithBodyLimit must be positive"},
		{"in flight 0", webhooks.Unsigned, apply, webhooks.WithInFlightLimit(0), "webhooks: WithInFlightLimit must be positive"},
		{"too little in flight", webhooks.Unsigned, apply, webhooks.WithInFlightLimit(64<<20 - 1), "webhooks: WithInFlightLimit must be at least four times the limit of a body, see WithBodyLimit"},
		{"little in flight", webhooks.Unsigned, apply, webhooks.WithInFlightLimit(64 << 20), ""},
		{"huge bodies", webhooks.Unsigned, apply, webhooks.WithBodyLimit(1<<63 - 1), ""},
		{"deadline 0", webhooks.Unsigned, apply, webhooks.WithDeadline(0), "webhooks: WithDeadline must be above 0 and below the 15s that the sender waits"},
		{"deadline 15s", webhooks.Unsigned, apply, webhooks.WithDeadline(15 * time.Second), "webhooks: WithDeadline must be above 0 and below the 15s that the sender waits"},
		{"dead letter", webhooks.Unsigned, apply, webhooks.WithDeadLetter(nil), "webhooks: WithDeadLetter needs a function"},
		{"deduplicator", webhooks.Unsigned, apply, webhooks.WithDeduplicator(nil), "webhooks: WithDeduplicator needs a Deduplicator"},
		{"no ids", webhooks.Unsigned, apply, webhooks.WithDuplicateWindow(0, time.Hour), "webhooks: WithDuplicateWindow must be positive"},
		{"no age", webhooks.Unsigned, apply, webhooks.WithDuplicateWindow(1, 0), "webhooks: WithDuplicateWindow must be positive"},
		{"observer", webhooks.Unsigned, apply, webhooks.WithObserver(nil), "webhooks: WithObserver needs a function"},
		{"delivery context", webhooks.Unsigned, apply, webhooks.WithDeliveryContext(nil), "webhooks: WithDeliveryContext needs a function"},
		{"logger", webhooks.Unsigned, apply, webhooks.WithLogger(nil), "webhooks: WithLogger needs a logger"},
		{"clock", webhooks.Unsigned, apply, webhooks.WithClock(nil), "webhooks: WithClock needs a clock"},
		{"nil option", webhooks.Unsigned, apply, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, err := webhooks.NewHandler(test.verifier, test.apply, test.opt)
			if test.want == "" {
				if h == nil || err != nil {
					t.Error(err)
				}
			} else if h != nil || err == nil || err.Error() != test.want {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
}

// A raw handler passes the received bytes to the store and acknowledges only what was stored.
func TestRawHandler(t *testing.T) {
	at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	full := errors.New("the disk is full")
	var stored []webhooks.RawDelivery
	seen := new(recorder)
	h, err := webhooks.NewRawHandler(webhooks.Unsigned, func(ctx context.Context, d webhooks.RawDelivery) error {
		if len(stored) == 3 {
			return full
		}
		if got := webhooks.DeliveryIDFrom(ctx); got != d.ID {
			t.Errorf("the context has id %q, the delivery %q", got, d.ID)
		}
		stored = append(stored, d)
		return nil
	}, webhooks.WithObserver(seen.add), webhooks.WithClock(func() time.Time { return at }))
	if err != nil {
		t.Fatal(err)
	}
	defer shutDown(t, h)
	for _, d := range []struct {
		id, body string
		status   int
	}{
		{"msg_1", glucoseEvent, 204},
		{"msg_2", "no event", 204},
		{"msg_1", glucoseEvent, 204},
		{"", "", 204},
		{"msg_3", glucoseEvent, 503},
	} {
		if got := deliver(h, delivery(d.id, d.body)); got != d.status {
			t.Errorf("%s: status %d, want %d", d.id, got, d.status)
		}
	}
	checkResults(t, seen, "204 stored", "204 stored", "204 duplicate*", "204 stored", "503 failed")
	want := []webhooks.RawDelivery{
		{ID: "msg_1", Body: []byte(glucoseEvent), ReceivedAt: at}, {ID: "msg_2", Body: []byte("no event"), ReceivedAt: at},
		{Body: []byte{}, ReceivedAt: at},
	}
	if diff := cmp.Diff(want, stored, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}

	d, err := stored[0].Parse()
	if err != nil {
		t.Fatal(err)
	}
	if d.ID != "msg_1" || !d.Event.ReceivedAt.Equal(at) || d.Event.Type != webhooks.DailyGlucoseCreated {
		t.Errorf("parsed: %s, received at %s, %s", d.ID, d.Event.ReceivedAt, d.Event.Type)
	}
	var unreadable *webhooks.ParseError
	if _, err := stored[1].Parse(); !errors.As(err, &unreadable) {
		t.Errorf("a body that is not an event: %v", err)
	}
}

func TestNewRawHandlerErrors(t *testing.T) {
	store := func(context.Context, webhooks.RawDelivery) error { return nil }
	for want, make := range map[string]func() (*webhooks.Handler, error){
		"webhooks: NewRawHandler needs a verifier of NewVerifier, or webhooks.Unsigned to do without": func() (*webhooks.Handler, error) {
			return webhooks.NewRawHandler(nil, store)
		},
		"webhooks: NewRawHandler needs a function that stores the deliveries": func() (*webhooks.Handler, error) {
			return webhooks.NewRawHandler(webhooks.Unsigned, nil)
		},
		"webhooks: WithDeadLetter is for NewHandler: NewRawHandler stores every body": func() (*webhooks.Handler, error) {
			return webhooks.NewRawHandler(webhooks.Unsigned, store,
				webhooks.WithDeadLetter(func(context.Context, []byte) error { return nil }))
		},
	} {
		if h, err := make(); h != nil || err == nil || err.Error() != want {
			t.Errorf("got %v, not %s", err, want)
		}
	}
}

// ReceivedAt is when the request arrives, not when its body is complete.
func TestReceivedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		app := &application{do: func(ctx context.Context, e *webhooks.Event) error {
			if !e.ReceivedAt.Equal(began) {
				t.Errorf("received at %s, want %s", e.ReceivedAt, began)
			}
			if d, ok := ctx.Deadline(); !ok || !d.Equal(began.Add(10*time.Second)) {
				t.Errorf("deadline %s", d)
			}
			if id := webhooks.DeliveryIDFrom(ctx); id != "msg_1" {
				t.Errorf("id %q", id)
			}
			return nil
		}}
		h, seen := newHandler(t, webhooks.Unsigned, app)
		r := delivery("msg_1", glucoseEvent)
		r.Body = io.NopCloser(io.MultiReader(pause(3*time.Second), strings.NewReader(glucoseEvent)))
		deliver(h, r)
		checkResults(t, seen, "204 applied")
		if d := seen.all[0].Duration; d != 3*time.Second {
			t.Errorf("duration %s", d)
		}
	})
}

// pause is a reader that returns io.EOF after a delay.
type pause time.Duration

func (p pause) Read([]byte) (int, error) {
	time.Sleep(time.Duration(p))
	return 0, io.EOF
}

func TestConcurrentDuplicates(t *testing.T) {
	const n = 1000
	release := make(chan struct{})
	app := &application{do: func(context.Context, *webhooks.Event) error { <-release; return nil }}
	h, seen := newHandler(t, webhooks.Unsigned, app)
	var wg sync.WaitGroup
	var statuses [n]int
	for i := range n {
		wg.Go(func() { statuses[i] = deliver(h, delivery("msg_1", glucoseEvent)) })
	}
	for app.calls.Load() == 0 {
		runtime.Gosched()
	}
	close(release)
	wg.Wait()
	if calls := app.calls.Load(); calls != 1 {
		t.Errorf("%d calls", calls)
	}
	if i := slices.IndexFunc(statuses[:], func(s int) bool { return s != 204 }); i >= 0 {
		t.Errorf("status %d", statuses[i])
	}
	firsts := 0
	for _, a := range seen.all {
		if !a.Duplicate {
			firsts++
		}
	}
	if len(seen.all) != n || firsts != 1 {
		t.Errorf("%d results, %d of them not duplicates", len(seen.all), firsts)
	}
	shutDown(t, h)
}

// Deliveries that wait for one that fails share its failure. The next one starts a new call.
func TestFailureIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := true
		app := &application{do: func(context.Context, *webhooks.Event) error {
			time.Sleep(time.Second)
			if fail {
				return errors.New("not now")
			}
			return nil
		}}
		h, seen := newHandler(t, webhooks.Unsigned, app)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { deliver(h, delivery("msg_1", glucoseEvent)) })
		}
		wg.Wait()
		fail = false
		deliver(h, delivery("msg_1", glucoseEvent))
		deliver(h, delivery("msg_1", glucoseEvent))
		deliver(h, delivery("msg_2", glucoseEvent))
		got := seen.results()
		slices.Sort(got[:3])
		want := []string{"503 failed", "503 failed*", "503 failed*", "204 applied", "204 duplicate*", "204 applied"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
		if calls := app.calls.Load(); calls != 3 {
			t.Errorf("%d calls", calls)
		}
	})
}

// A delivery that waits for a later one with the same ID keeps its own deadline.
func TestDuplicateHasItsOwnDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		app := &application{do: func(context.Context, *webhooks.Event) error { time.Sleep(9 * time.Second); return nil }}
		h, seen := newHandler(t, webhooks.Unsigned, app)
		var wg sync.WaitGroup
		wg.Go(func() {
			r := delivery("msg_1", glucoseEvent)
			r.Body = io.NopCloser(io.MultiReader(pause(9*time.Second), strings.NewReader(glucoseEvent)))
			deliver(h, r)
			if d := time.Since(began); d != 10*time.Second {
				t.Errorf("the slow delivery got its response after %s", d)
			}
		})
		time.Sleep(8 * time.Second)
		deliver(h, delivery("msg_1", glucoseEvent))
		wg.Wait()
		checkResults(t, seen, "503 deadline*", "204 applied")
	})
}

func TestNoID(t *testing.T) {
	app := &application{do: func(ctx context.Context, _ *webhooks.Event) error {
		if id := webhooks.DeliveryIDFrom(ctx); id != "" {
			t.Errorf("id %q", id)
		}
		return nil
	}}
	h, seen := newHandler(t, webhooks.Unsigned, app)
	deliver(h, delivery("", glucoseEvent))
	deliver(h, delivery("", glucoseEvent))
	deliver(h, delivery("not.an.id", glucoseEvent))
	deliver(h, delivery("not.an.id", glucoseEvent))
	checkResults(t, seen, "204 applied", "204 applied", "204 applied", "204 applied")
	if id := webhooks.DeliveryIDFrom(t.Context()); id != "" {
		t.Errorf("id %q in a foreign context", id)
	}
}

// An application that ignores its context does not delay the response. Its success counts when it
// returns.
func TestHungApplication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		calls := []struct {
			hang   time.Duration
			result error
		}{{30 * time.Second, errors.New("no")}, {30 * time.Second, nil}, {0, errors.New("no")}, {30 * time.Second, nil}}
		app := &application{}
		app.do = func(context.Context, *webhooks.Event) error {
			c := calls[app.calls.Load()-1]
			time.Sleep(c.hang)
			return c.result
		}
		h, seen := newHandler(t, webhooks.Unsigned, app)

		// The first call hangs and fails in the end.
		deliver(h, delivery("msg_1", glucoseEvent))
		if d := time.Since(began); d != 10*time.Second {
			t.Errorf("response after %s", d)
		}
		// The second does not wait for it, hangs and succeeds in the end. The third fails at once,
		// while both others are still running.
		deliver(h, delivery("msg_1", glucoseEvent))
		deliver(h, delivery("msg_1", glucoseEvent))
		if calls := app.calls.Load(); calls != 3 {
			t.Errorf("%d calls", calls)
		}
		time.Sleep(time.Minute)
		deliver(h, delivery("msg_1", glucoseEvent))
		if calls := app.calls.Load(); calls != 3 {
			t.Errorf("%d calls", calls)
		}
		checkResults(t, seen, "503 deadline", "503 deadline", "503 failed", "0 applied late", "204 duplicate*")
		want := webhooks.DeliveryResult{DeliveryID: "msg_1", Type: "daily.data.glucose.created", Reason: "applied", Late: true,
			ReceivedAt: began.Add(10 * time.Second), Duration: 30 * time.Second}
		if diff := cmp.Diff(want, seen.all[3]); diff != "" {
			t.Errorf("late result (-want +got):\n%s", diff)
		}
		if kind := seen.all[0].Type; kind != "daily.data.glucose.created" {
			t.Errorf("type %s", kind)
		}

		// Shutdown waits for a late call.
		deliver(h, delivery("msg_2", glucoseEvent))
		before := time.Now()
		shutDown(t, h)
		if d := time.Since(before); d != 20*time.Second {
			t.Errorf("Shutdown took %s", d)
		}
	})
}

func TestLatePanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := &application{do: func(context.Context, *webhooks.Event) error { time.Sleep(time.Minute); panic("ada@example.com") }}
		h, seen := newHandler(t, webhooks.Unsigned, app)
		deliver(h, delivery("msg_1", glucoseEvent))
		shutDown(t, h)
		checkResults(t, seen, "503 deadline", "0 panicked late")
	})
}

// A call continues after the sender has disconnected, and the repeated delivery is acknowledged.
func TestSenderDisconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		app := &application{do: func(ctx context.Context, _ *webhooks.Event) error {
			if v := ctx.Value(key{}); v != "trace" {
				t.Errorf("the value of the request's context is %v", v)
			}
			return wait(ctx, 5*time.Second)
		}}
		h, seen := newHandler(t, webhooks.Unsigned, app)
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "trace"), time.Second)
		defer cancel()
		deliver(h, delivery("msg_1", glucoseEvent).WithContext(ctx))
		deliver(h, delivery("msg_1", glucoseEvent))
		checkResults(t, seen, "204 applied", "204 duplicate*")
	})
}

// slowDeduplicator delays storing an ID.
type slowDeduplicator struct {
	forgetful
	takes  time.Duration
	panics bool
	ctxErr error
}

func (m *slowDeduplicator) MarkSeen(ctx context.Context, _ string) error {
	time.Sleep(m.takes)
	m.ctxErr = ctx.Err()
	if m.panics {
		panic("the deduplicator broke")
	}
	return nil
}

// An event that was applied is acknowledged, whether or not its ID is stored.
func TestSlowDeduplicator(t *testing.T) {
	for name, want := range map[string][]string{
		"slow":        {"204 not marked", "0 applied late"},
		"panics":      {"204 not marked"},
		"panics late": {"204 not marked", "0 panicked late"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				deduplicator := &slowDeduplicator{takes: 5 * time.Second, panics: strings.HasPrefix(name, "panics")}
				app := &application{do: func(context.Context, *webhooks.Event) error {
					if name != "panics" {
						time.Sleep(8 * time.Second)
					}
					return nil
				}}
				h, seen := newHandler(t, webhooks.Unsigned, app, webhooks.WithDeduplicator(deduplicator))
				if status := deliver(h, delivery("msg_1", glucoseEvent)); status != 204 {
					t.Errorf("status %d", status)
				}
				shutDown(t, h)
				checkResults(t, seen, want...)
				if deduplicator.ctxErr != nil {
					t.Errorf("storing the ID had no timeout of its own: %v", deduplicator.ctxErr)
				}
			})
		})
	}
}

// hungDeduplicator blocks lookups until release is closed.
type hungDeduplicator struct {
	forgetful
	release chan struct{}
}

func (m hungDeduplicator) Seen(context.Context, string) (bool, error) { <-m.release; return true, nil }

func TestHungDeduplicator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		deduplicator := hungDeduplicator{release: make(chan struct{})}
		h, seen := newHandler(t, webhooks.Unsigned, &application{}, webhooks.WithDeduplicator(deduplicator), webhooks.WithDeadline(3*time.Second))
		deliver(h, delivery("msg_1", glucoseEvent))
		if d := time.Since(began); d != 3*time.Second {
			t.Errorf("response after %s", d)
		}
		close(deduplicator.release)
		shutDown(t, h)
		checkResults(t, seen, "503 deadline", "0 duplicate* late")
	})
}

func TestDuplicateWindowSize(t *testing.T) {
	now := vectorTime
	h, seen := newHandler(t, webhooks.Unsigned, &application{},
		webhooks.WithClock(func() time.Time { return now }), webhooks.WithDuplicateWindow(3, time.Hour))
	for _, id := range []string{"a", "b", "c", "a", "d", "b", "a", "d"} {
		deliver(h, delivery(id, glucoseEvent))
	}
	now = now.Add(time.Hour)
	deliver(h, delivery("d", glucoseEvent))
	now = now.Add(1)
	deliver(h, delivery("d", glucoseEvent))
	checkResults(t, seen,
		"204 applied", "204 applied", "204 applied", "204 duplicate*",
		"204 applied",    // d, which replaces a
		"204 duplicate*", // b
		"204 applied",    // a, which replaces b
		"204 duplicate*", // d
		"204 duplicate*", // d, an hour later
		"204 applied")    // d, after that
}

// By default an ID is stored for 72 hours.
func TestDuplicateWindowAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHandler(t, webhooks.Unsigned, &application{})
		deliver(h, delivery("msg_1", glucoseEvent))
		time.Sleep(72 * time.Hour)
		deliver(h, delivery("msg_1", glucoseEvent))
		time.Sleep(time.Nanosecond)
		deliver(h, delivery("msg_1", glucoseEvent))
		checkResults(t, seen, "204 applied", "204 duplicate*", "204 applied")
	})
}

// shared is a memory that several handlers share.
type shared struct {
	mu  sync.Mutex
	ids []string
}

func (m *shared) Seen(_ context.Context, id string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.ids, id), nil
}

func (m *shared) MarkSeen(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ids = append(m.ids, id)
	return nil
}

func TestSharedMemory(t *testing.T) {
	deduplicator := new(shared)
	one, seenByOne := newHandler(t, webhooks.Unsigned, &application{}, webhooks.WithDeduplicator(deduplicator))
	two, seenByTwo := newHandler(t, webhooks.Unsigned, &application{}, webhooks.WithDeduplicator(deduplicator))
	deliver(one, delivery("msg_1", glucoseEvent))
	deliver(two, delivery("msg_1", glucoseEvent))
	deliver(two, delivery("msg_2", glucoseEvent))
	deliver(one, delivery("msg_2", glucoseEvent))
	deliver(one, delivery("", glucoseEvent))
	checkResults(t, seenByOne, "204 applied", "204 duplicate*", "204 applied")
	checkResults(t, seenByTwo, "204 duplicate*", "204 applied")
	if diff := cmp.Diff([]string{"msg_1", "msg_2"}, deduplicator.ids); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
}

func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := &application{do: func(ctx context.Context, _ *webhooks.Event) error { return wait(ctx, 5*time.Second) }}
		h, seen := newHandler(t, webhooks.Unsigned, app)
		began := time.Now()
		go deliver(h, delivery("msg_1", glucoseEvent))
		synctest.Wait()
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { shutDown(t, h) })
		}
		synctest.Wait()
		deliver(h, delivery("msg_2", glucoseEvent))
		wg.Wait()
		if d := time.Since(began); d != 5*time.Second {
			t.Errorf("Shutdown took %s", d)
		}
		shutDown(t, h)
		synctest.Wait()
		checkResults(t, seen, "503 shutdown", "204 applied")

		// A Shutdown whose context ends.
		h, seen = newHandler(t, webhooks.Unsigned, app)
		go deliver(h, delivery("msg_1", glucoseEvent))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := h.Shutdown(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || err.Error() != "webhooks: deliveries are still in flight: context deadline exceeded" {
			t.Errorf("%v", err)
		}
		synctest.Wait()
		checkResults(t, seen, "503 shutdown")
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if err := h.Shutdown(canceled); err != nil {
			t.Errorf("a handler that is idle: %v", err)
		}
	})
}

// pipes is a listener with in-memory connections, for synctest bubbles.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (p *pipes) Dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	p.conns <- there
	return here, nil
}

// Over connections: senders that are fast, slow, too slow, and that stop.
func TestSlowSender(t *testing.T) {
	for _, test := range []struct {
		name    string
		send    func(conn net.Conn)
		took    time.Duration
		status  string
		results []string
	}{
		{"quick", func(c net.Conn) { io.WriteString(c, glucoseEvent) }, 0, "204", []string{"204 applied"}},
		{"slow", func(c net.Conn) {
			for _, b := range []byte(glucoseEvent) {
				c.Write([]byte{b})
				time.Sleep(40 * time.Millisecond) // some 8 s in all
			}
		}, time.Duration(len(glucoseEvent)-1) * 40 * time.Millisecond, "204", []string{"204 applied"}},
		{"too slow", func(c net.Conn) {
			for _, b := range []byte(glucoseEvent) {
				c.Write([]byte{b})
				time.Sleep(time.Second)
			}
		}, 10 * time.Second, "400", []string{"400 incomplete"}},
		{"stops", func(c net.Conn) { io.WriteString(c, glucoseEvent[:20]) }, 10 * time.Second, "400", []string{"400 incomplete"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				app := &application{do: func(ctx context.Context, _ *webhooks.Event) error { return ctx.Err() }}
				h, seen := newHandler(t, webhooks.Unsigned, app)
				listener := newPipes()
				closed := make(chan struct{})
				server := &http.Server{Handler: h, ConnState: func(_ net.Conn, state http.ConnState) {
					if state == http.StateClosed {
						close(closed)
					}
				}}
				go server.Serve(listener)
				conn, err := listener.Dial(t.Context(), "", "")
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				var sender sync.WaitGroup
				sender.Go(func() {
					fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: %d\r\n\r\n", len(glucoseEvent))
					test.send(conn)
				})
				if got := readStatus(conn); got != test.status || time.Since(began) != test.took {
					t.Errorf("status %s after %s, want %s after %s", got, time.Since(began), test.status, test.took)
				}
				conn.Close()
				sender.Wait()
				<-closed // net/http may pause before it closes the connection
				checkResults(t, seen, test.results...)
				server.Close()
				shutDown(t, h)
				time.Sleep(time.Second) // net/http closes a connection half a second later
			})
		})
	}
}

func TestSenderDisconnectsDuringBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := &application{}
		h, seen := newHandler(t, webhooks.Unsigned, app)
		listener := newPipes()
		server := &http.Server{Handler: h}
		go server.Serve(listener)
		conn, _ := listener.Dial(t.Context(), "", "")
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 100\r\n\r\n{\"event_type\":")
		conn.Close()
		synctest.Wait()
		checkResults(t, seen, "400 incomplete")
		if calls := app.calls.Load(); calls != 0 {
			t.Errorf("%d calls", calls)
		}
		server.Close()
	})
}

// The deadline of a body affects neither the next request on a kept-alive connection nor the
// application.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := &application{do: func(ctx context.Context, _ *webhooks.Event) error { time.Sleep(9 * time.Second); return ctx.Err() }}
		h, seen := newHandler(t, webhooks.Unsigned, app)
		listener := newPipes()
		server := &http.Server{Handler: h}
		go server.Serve(listener)
		client := &http.Client{Transport: &http.Transport{DialContext: listener.Dial}}
		for range 3 {
			resp, err := client.Post("http://example.com/events", "application/json", strings.NewReader(glucoseEvent))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			time.Sleep(5 * time.Second)
		}
		checkResults(t, seen, "204 applied", "204 applied", "204 applied")
		client.CloseIdleConnections()
		server.Close()
	})
}

// The response is sent before an observer is called.
func TestSlowObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := webhooks.NewHandler(webhooks.Unsigned, new(application).apply,
			webhooks.WithObserver(func(context.Context, webhooks.DeliveryResult) { time.Sleep(time.Hour) }))
		if err != nil {
			t.Fatal(err)
		}
		listener := newPipes()
		server := &http.Server{Handler: h}
		go server.Serve(listener)
		client := &http.Client{Transport: &http.Transport{DialContext: listener.Dial, DisableKeepAlives: true}}
		began := time.Now()
		for _, body := range []string{glucoseEvent, "not JSON"} {
			resp, err := client.Post("http://example.com/events", "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(resp.Body)
			if err != nil || body == "not JSON" && string(text) != "Bad Request\n" {
				t.Errorf("%q %v", text, err)
			}
			resp.Body.Close()
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("response after %s", d)
		}
		shutDown(t, h)
		server.Close()
	})
}

// No output holds anything of a body, an error message or a panic value.
func TestNothingLeaks(t *testing.T) {
	const canary = "canary@example.com"
	body := strings.Replace(glucoseEvent, "ada", canary, 1)
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	modes := []func(context.Context, *webhooks.Event) error{
		func(context.Context, *webhooks.Event) error { return nil },
		func(context.Context, *webhooks.Event) error { return errors.New(canary) },
		func(context.Context, *webhooks.Event) error { panic(canary) },
		func(context.Context, *webhooks.Event) error { panic(fmt.Errorf("for %s", canary)) },
		func(context.Context, *webhooks.Event) error { panic(struct{ Name string }{canary}) },
	}
	for _, do := range modes {
		app := &application{do: do}
		h, seen := newHandler(t, webhooks.Unsigned, app, webhooks.WithLogger(logger),
			webhooks.WithObserver(func(context.Context, webhooks.DeliveryResult) { panic(canary) }))
		for _, r := range []*http.Request{
			delivery("msg_1", body), delivery("msg_1", body), delivery(canary, body), delivery("msg_2", body[:80]), delivery("", canary),
		} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			fmt.Fprintln(&out, w.Body, w.Header())
		}
		for _, a := range seen.all {
			fmt.Fprintf(&out, "%v %+v %#v\n", a, a, a)
		}
	}
	if strings.Contains(out.String(), "canary") {
		t.Errorf("it leaks:\n%s", out.String())
	}
	for _, want := range []string{"reason=applied", "reason=failed", "reason=panicked", "level=DEBUG", "level=WARN",
		"status=204", "status=503", "delivery_id=msg_1", "type=daily.data.glucose.created"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no record has %s", want)
		}
	}
}

// The contexts of WithDeliveryContext reach the application, the observers, also those of late
// calls and of deliveries that are rejected, and each other. Panics and nil contexts change
// nothing.
func TestDeliveryContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		add := func(s string) webhooks.HandlerOption {
			return webhooks.WithDeliveryContext(func(ctx context.Context, r *http.Request) context.Context {
				before, _ := ctx.Value(key{}).(string)
				return context.WithValue(ctx, key{}, before+s+r.Header.Get("X-Trace"))
			})
		}
		var mu sync.Mutex
		var seen []string
		see := func(ctx context.Context, at string) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, fmt.Sprint(at, " ", ctx.Value(key{})))
		}
		h, _ := newHandler(t, webhooks.Unsigned, &application{do: func(ctx context.Context, _ *webhooks.Event) error {
			see(ctx, "application")
			time.Sleep(15 * time.Second)
			return nil
		}},
			add("a"), add("b"),
			webhooks.WithDeliveryContext(func(context.Context, *http.Request) context.Context { panic("it broke") }),
			webhooks.WithDeliveryContext(func(context.Context, *http.Request) context.Context { return nil }),
			webhooks.WithObserver(func(ctx context.Context, r webhooks.DeliveryResult) {
				see(ctx, fmt.Sprint(r.StatusCode, " ", r.Reason))
			}))
		traced := delivery("msg_1", glucoseEvent)
		traced.Header.Set("X-Trace", "1")
		deliver(h, traced)
		get := delivery("msg_2", "")
		get.Method = http.MethodGet
		deliver(h, get)
		shutDown(t, h)
		deliver(h, delivery("msg_3", glucoseEvent))
		want := []string{"application a1b1", "503 deadline a1b1", "405 method ab", "0 applied a1b1", "503 shutdown ab"}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Error(diff)
		}
	})
}

// A panic is reported with its stack.
func TestPanicIsLocated(t *testing.T) {
	var m map[string]int
	app := &application{do: func(context.Context, *webhooks.Event) error { m["x"] = 1; return nil }}
	h, seen := newHandler(t, webhooks.Unsigned, app)
	deliver(h, delivery("msg_1", glucoseEvent))
	stack := seen.all[0].Panic
	if !strings.HasPrefix(stack, "runtime.plainError") && !strings.HasPrefix(stack, "runtime.") || !strings.Contains(stack, "webhooks_test.TestPanicIsLocated.func1 ") ||
		!strings.Contains(stack, "handler_test.go:") {
		t.Errorf("the stack of the panic:\n%s", stack)
	}
}

// Interleaved deliveries, failures and panics, for the race detector.
func TestParallel(t *testing.T) {
	var applied sync.Map
	var n atomic.Int64
	app := &application{do: func(ctx context.Context, _ *webhooks.Event) error {
		if n.Add(1)%3 == 0 {
			return errors.New("no")
		}
		if n.Load()%7 == 0 {
			panic("no")
		}
		if _, twice := applied.LoadOrStore(webhooks.DeliveryIDFrom(ctx), true); twice {
			t.Errorf("%s was applied twice", webhooks.DeliveryIDFrom(ctx))
		}
		return nil
	}}
	h, _ := newHandler(t, webhooks.Unsigned, app)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 200 {
				id := fmt.Sprint("msg_", i)
				for deliver(h, delivery(id, glucoseEvent)) != 204 {
				}
			}
		})
	}
	wg.Wait()
	shutDown(t, h)
	count := 0
	applied.Range(func(any, any) bool { count++; return true })
	if count != 200 {
		t.Errorf("%d ids were applied", count)
	}
}

// A log record is short and on one line, whatever the event type.
func TestLoggerBoundsTheType(t *testing.T) {
	for kind, want := range map[string]string{
		"daily.data.glucose.created":    "daily.data.glucose.created",
		"a." + strings.Repeat("a", 126): "a." + strings.Repeat("a", 126),
		"a." + strings.Repeat("a", 127): "?",
		"ada":                           "?",
		"Ada.Example":                   "?",
		strings.Repeat("a", 1<<20):      "?",
		"a\nlevel=ERROR msg=forged":     "?",
		"\x1b[2J":                       "?",
		"ada@example.com":               "?",
		"":                              "",
	} {
		var log bytes.Buffer
		h, _ := newHandler(t, webhooks.Unsigned, new(application),
			webhooks.WithLogger(slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
		name, err := json.Marshal(kind)
		if err != nil {
			t.Fatal(err)
		}
		deliver(h, delivery("msg_1", `{"event_type":`+string(name)+`,"data":{}}`))
		shutDown(t, h)
		var got struct{ Type string }
		if err := json.Unmarshal(log.Bytes(), &got); err != nil || got.Type != want || log.Len() > 1000 {
			t.Errorf("%.50q is logged as %.50q in %d bytes: %v", kind, got.Type, log.Len(), err)
		}
	}
}

// The error of Latest.Apply, returned unchanged, sends the delivery to the dead-letter function
// once and acknowledges it. The readable data is stored.
func TestUnreadableDeliveryIsKept(t *testing.T) {
	const body = `{"event_type":"daily.data.glucose.created","user_id":"1e9c0b37-54fd-43c6-9a5e-0c5e86d0a4de","data":{"data":[` +
		`{"timestamp":"2025-03-01T12:00:00Z","unit":"mmol/L","value":5},{"timestamp":1740830400,"unit":"mmol/L","value":6}]}}`
	var latest webhooks.Latest
	var kept []string
	app := &application{do: func(ctx context.Context, e *webhooks.Event) error {
		_, err := latest.Apply(webhooks.Delivery{Event: e, ID: webhooks.DeliveryIDFrom(ctx)})
		return err
	}}
	var log bytes.Buffer
	h, _ := newHandler(t, webhooks.Unsigned, app, webhooks.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
		webhooks.WithDeadLetter(func(ctx context.Context, body []byte) error {
			kept = append(kept, webhooks.DeliveryIDFrom(ctx)+" "+string(body))
			clear(body) // the function may keep it
			return nil
		}))
	for range 2 {
		if status := deliver(h, delivery("msg_1", body)); status != 204 {
			t.Errorf("status %d", status)
		}
	}
	shutDown(t, h)
	if diff := cmp.Diff([]string{"msg_1 " + body}, kept); diff != "" {
		t.Error(diff)
	}
	n := 0
	for _, s := range latest.Samples() {
		if n++; s.Value != 5 {
			t.Errorf("the value is %g", s.Value)
		}
	}
	if n != 1 || !strings.Contains(log.String(), "level=WARN") {
		t.Errorf("%d samples, log %s", n, &log)
	}
}

// Without a dead-letter function a permanent failure is not acknowledged, and it is logged as an
// error.
func TestUnreadableDeliveryWithoutDeadLetters(t *testing.T) {
	var log bytes.Buffer
	app := &application{do: func(context.Context, *webhooks.Event) error { return webhooks.ErrUnreadable }}
	h, seen := newHandler(t, webhooks.Unsigned, app, webhooks.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	for range 2 { // its ID is not stored
		deliver(h, delivery("msg_1", glucoseEvent))
	}
	shutDown(t, h)
	checkResults(t, seen, "503 permanent", "503 permanent")
	if !strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("log %s", &log)
	}
}

// The signature covers a byte order mark, which is stored with the body, but not part of the event.
func TestMarkedDelivery(t *testing.T) {
	const body = "\ufeff" + glucoseEvent
	now := time.Unix(1_700_000_000, 0)
	v := newVerifier(t, secretA)
	signed := func() *http.Request {
		r := delivery("", body)
		r.Header = signedHeader("svix", "msg_1", "1700000000", sign(t, v, "msg_1", now, body))
		return r
	}
	clock := webhooks.WithClock(func() time.Time { return now })
	var dead, stored string
	app := &application{do: func(_ context.Context, e *webhooks.Event) error {
		if string(e.RawJSON()) != glucoseEvent {
			t.Errorf("the event is %s", e.RawJSON())
		}
		return webhooks.ErrPermanent
	}}
	h, seen := newHandler(t, v, app, clock, webhooks.WithDeadLetter(func(_ context.Context, body []byte) error {
		dead = string(body)
		return nil
	}))
	deliver(h, signed())
	shutDown(t, h)
	checkResults(t, seen, "204 dead-lettered")
	if n := app.calls.Load(); n != 1 {
		t.Errorf("applied %d times", n)
	}
	raw, err := webhooks.NewRawHandler(v, func(_ context.Context, d webhooks.RawDelivery) error {
		stored = string(d.Body)
		return nil
	}, clock)
	if err != nil {
		t.Fatal(err)
	}
	if code := deliver(raw, signed()); code != 204 || dead != body || stored != body {
		t.Errorf("status %d, dead letter %q, stored %q", code, dead, stored)
	}
}
