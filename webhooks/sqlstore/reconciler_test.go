package sqlstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
)

// The requests of several passes have one rate.
func TestSpacing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rate := &spacing{interval: 500 * time.Millisecond}
		a, b := &pass{Reconciler: &Reconciler{}, rate: rate}, &pass{Reconciler: &Reconciler{}, rate: rate}
		start := time.Now()
		for range 10 {
			if err := errors.Join(a.admit(t.Context()), b.admit(t.Context())); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took != 9500*time.Millisecond || a.found.Requests != 10 {
			t.Error(took, a.found.Requests)
		}
		time.Sleep(time.Hour) // nothing is saved up
		start = time.Now()
		for range 3 {
			_ = a.admit(t.Context())
		}
		if took := time.Since(start); took != time.Second {
			t.Error(took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := a.admit(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// All requests of a Reconciler have one rate, also those of passes that have a lower one.
func TestRequestsPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Reconciler{RequestsPerSecond: 4}
		passes := []*pass{{Reconciler: r}, {Reconciler: r}, {Reconciler: r, rate: &spacing{interval: time.Second}}}
		start := time.Now()
		var all sync.WaitGroup
		for _, p := range passes {
			all.Go(func() {
				for time.Since(start) < 10*time.Second {
					_ = p.admit(t.Context())
				}
			})
		}
		all.Wait()
		n := passes[0].found.Requests + passes[1].found.Requests + passes[2].found.Requests
		if n < 40 || n > 43 || passes[2].found.Requests > 11 {
			t.Errorf("%d requests in 10 s, %d of them with a rate of their own", n, passes[2].found.Requests)
		}
	})
}

// A step that fails is repeated later each time, and the pass goes on from where it was.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unavailable := errors.New("unavailable")
		ctx, cancel := context.WithCancel(t.Context())
		var times []time.Duration
		start := time.Now()
		r := &Reconciler{Store: new(Store), Observe: func(_ context.Context, found Reconciled, err error) {
			times = append(times, time.Since(start))
			if !errors.Is(err, unavailable) || found.Pass != "changed" {
				t.Error(found, err)
			}
		}}
		failing := &pass{Reconciler: r, name: "changed", every: time.Minute, run: func(*pass, context.Context) (bool, error) {
			if len(times) == 12 {
				cancel()
			}
			return false, unavailable
		}}
		steps := 0
		healthy := &pass{Reconciler: r, name: "results", every: time.Second, run: func(*pass, context.Context) (bool, error) {
			steps++
			return true, nil
		}}
		loop(ctx, []*pass{failing, healthy}, func(error) { t.Error("it was ended") })
		for i, at := range times {
			before := time.Duration(0)
			if i > 0 {
				before = times[i-1]
			}
			limit := min(time.Second<<max(0, i-1), 5*time.Minute)
			if wait := at - before; i > 0 && (wait < limit/2 || wait > limit) {
				t.Errorf("step %d after %v, limit %v", i, wait, limit)
			}
		}
		if took := time.Since(start); len(times) != 12 || steps < int(took/time.Second) || steps > int(took/time.Second)+2 {
			t.Errorf("%d failures, %d steps in %v", len(times), steps, took)
		}
	})
}

// A service that says when it responds again is not asked before, for up to an hour.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for after, want := range map[time.Duration]time.Duration{10 * time.Minute: 10 * time.Minute, 5 * time.Hour: time.Hour} {
			p := new(pass)
			p.schedule(&labhealth.APIError{StatusCode: http.StatusServiceUnavailable, RetryAfter: after})
			if wait := time.Until(p.next); wait != want {
				t.Errorf("after %v: it waits for %v", after, wait)
			}
		}
	})
}

// A key that is rejected for a minute ends all passes, and is written to the log at once. An outage
// in between says nothing about it.
func TestRejectedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := &Reconciler{Store: &Store{Logger: slog.New(slog.NewTextHandler(&log, nil))}}
		ctx, cancel := context.WithCancelCause(t.Context())
		rejected := &labhealth.APIError{Op: "GET /orders", StatusCode: http.StatusUnauthorized}
		start := time.Now()
		loop(ctx, []*pass{{Reconciler: r, name: "changed", every: time.Minute, run: func(*pass, context.Context) (bool, error) {
			if d := time.Since(start); d > 2*time.Second && d < 10*time.Second {
				return false, &labhealth.TransportError{Op: "GET /orders"}
			}
			return false, rejected
		}}, {Reconciler: r, name: "results", every: time.Second, run: func(*pass, context.Context) (bool, error) {
			return true, nil // nothing is due: it says nothing about the key
		}}}, cancel)
		if took := time.Since(start); took < time.Minute || took > 3*time.Minute || context.Cause(ctx) != rejected {
			t.Errorf("after %v: %v", took, context.Cause(ctx))
		}
		const want = `level=WARN msg="sqlstore: the Reconciler cannot read from the service: neither results nor what was lost are read meanwhile" pass=changed error="labhealth: GET /orders: 401 Unauthorized`
		if lines := strings.Count(log.String(), "\n"); lines > 3 || !strings.Contains(log.String(), want) {
			t.Errorf("%d lines:\n%s", lines, log.String())
		}
	})
}

// Attempts are counted, and wait before the rate limit of the client.
func TestAdmission(t *testing.T) {
	attempts := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if attempts++; attempts < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		} else {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer srv.Close()
	client, err := labhealth.NewClient("sk_test", labhealth.WithBaseURL(srv.URL), labhealth.WithRetry(labhealth.RetryPolicy{BaseWait: time.Millisecond}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	p := &pass{Reconciler: &Reconciler{Client: client, Store: new(Store)}, name: "test"}
	p.run = func(p *pass, ctx context.Context) (bool, error) {
		_, err := client.Orders.Get(ctx, uuid.New())
		return true, err
	}
	if err := p.step(t.Context()); !errors.Is(err, labhealth.ErrNotFound) || p.found.Requests != 3 {
		t.Error(err, p.found.Requests)
	}
	ctx, cancel := context.WithCancel(t.Context())
	p.rate = &spacing{interval: time.Hour, next: time.Now().Add(time.Hour)}
	time.AfterFunc(10*time.Millisecond, cancel)
	if err := p.step(ctx); !errors.Is(err, context.Canceled) || labhealth.OutcomeOf(err) != labhealth.OutcomeNotSent {
		t.Error(err)
	}
}

// roundTripper is a function that responds to requests.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Elements fail alone if the service responds later. It is asked if it has not.
func TestFailAlone(t *testing.T) {
	unavailable, database := &labhealth.APIError{StatusCode: http.StatusServiceUnavailable}, &Error{}
	for _, c := range []struct {
		reads  string // of elements: + responds, . asks nothing, - fails, a fails alone, d cannot be stored
		lists  string // + responds, - fails, c is canceled
		failed string
		err    error
		read   int // elements
		asked  int // lists
	}{
		{"+.+", "", "[]", nil, 3, 0},
		{"+-+", "", "[1]", nil, 3, 0},
		{"+-", "+", "[1]", nil, 2, 1},
		{"+-", "-", "[]", unavailable, 2, 2},
		{"--+-+", "+", "[0 1 3]", nil, 5, 1},
		{"--+", "-", "[]", unavailable, 2, 2},
		{"-.", "+", "[0]", nil, 2, 1},
		{"-a", "", "[0 1]", nil, 2, 0},
		{"a+", "", "[0]", nil, 2, 0},
		{"+d+", "", "[]", database, 2, 0},
		{"-", "c", "[]", context.Canceled, 1, 1},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		asked, read := 0, 0
		client, err := labhealth.NewClient("sk_test", labhealth.WithBaseURL("http://127.0.0.1"), labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 1}),
			labhealth.WithHTTPClient(&http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				asked++
				w := httptest.NewRecorder()
				w.Header().Set("Content-Type", "application/json")
				switch c.lists {
				case "c":
					cancel()
				case "-":
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				_, _ = w.WriteString(`{"orders":[],"total":0,"page":1,"size":1}`)
				return w.Result(), ctx.Err()
			})}))
		if err != nil {
			t.Fatal(err)
		}
		p := &pass{Reconciler: &Reconciler{Client: client, Store: new(Store), Parallel: 1}, name: "results"}
		failed, err := p.each(ctx, len(c.reads), func(p *pass, _ context.Context, i int) error {
			read++
			if c.reads[i] != '.' {
				p.found.Requests++
			}
			return map[byte]error{'-': unavailable, 'a': &Error{Rejected: true}, 'd': database}[c.reads[i]]
		})
		cancel()
		slices.Sort(failed)
		if fmt.Sprint(failed) != c.failed || !errors.Is(err, c.err) || (err == nil) != (c.err == nil) || read != c.read || asked != c.asked ||
			p.found.Failed != len(failed) || (p.cause == nil) != (len(failed) == 0) {
			t.Errorf("%q %q: %v, %v, %d elements and %d lists, %+v, %v", c.reads, c.lists, failed, err, read, asked, p.found, p.cause)
		}
	}
}

// What a Reconciler cannot work with is an error of each method.
func TestReconcilerCheck(t *testing.T) {
	for _, r := range []*Reconciler{nil, {}, {Store: &Store{}}, {Store: &Store{}, Client: &labhealth.Client{}}, {Store: &Store{}, Client: &labhealth.Client{}, Rate: -1}} {
		_, since := r.Since(t.Context(), time.Time{})
		_, user := r.User(t.Context(), uuid.New(), time.Time{}, time.Time{})
		_, order := r.Order(t.Context(), uuid.New())
		for _, err := range []error{r.Run(t.Context()), since, user, order} {
			if err == nil {
				t.Errorf("%+v: no error", r)
			}
		}
	}
}
