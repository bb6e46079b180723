package sqlstore

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
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
			if !errors.Is(err, unavailable) || found.Pass != "due" {
				t.Error(found, err)
			}
		}}
		failing := &pass{Reconciler: r, name: "due", every: time.Minute, run: func(*pass, context.Context) (bool, error) {
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
