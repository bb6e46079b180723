package conformance

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

func TestContext(t *testing.T) {
	t.Run("cancelled before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		client, s := scripted(t, nil)
		_, err := client.Orders.Import(ctx, importBody())
		equal(t, "labhealth: POST /v3/order/import: canceled before the request was sent: not sent", errorText(err))
		if !errors.Is(err, context.Canceled) || labhealth.OutcomeOf(err) != labhealth.OutcomeNotSent || len(s.sent) != 0 {
			t.Errorf("outcome %v, %d requests", labhealth.OutcomeOf(err), len(s.sent))
		}
		for _, err := range client.Users.All(ctx, labhealth.ListUsersParams{}) {
			equal(t, "labhealth: GET /v2/user/: canceled before the request was sent: not sent", errorText(err))
		}
	})
	t.Run("deadline before", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), -time.Second)
		defer cancel()
		client, _ := scripted(t, nil)
		_, err := client.Orders.Import(ctx, importBody())
		equal(t, "labhealth: POST /v3/order/import: timed out before the request was sent (the context's deadline): not sent (give it more time)", errorText(err))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error("not the context's error")
		}
	})
	// While the client waits for the next attempt: the context's error and the last response.
	t.Run("cancelled while waiting", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			client, s := scripted(t, []reply{{status: 429, header: []string{"Retry-After", "30"}, body: `{"detail":"slow down"}`}})
			start := time.Now()
			go func() {
				<-time.After(10 * time.Second)
				cancel()
			}()
			_, err := client.Orders.Import(ctx, importBody(), labhealth.WithCallRetry(labhealth.RetryPolicy{MaxAttempts: 5}))
			equal(t, 10*time.Second, time.Since(start))
			equal(t, "labhealth: POST /v3/order/import: canceled before another attempt; the last response had status 429: rejected", errorText(err))
			if !errors.Is(err, context.Canceled) || !errors.Is(err, labhealth.ErrRateLimited) {
				t.Error("one of the two is missing in the chain")
			}
			equal(t, `"slow down"`, string(apiError(t, err).Detail()))
			equal(t, labhealth.OutcomeRejected, labhealth.OutcomeOf(err))
			s.only(t)
		})
	})
	// The client does not wait if the deadline is before the end of the wait.
	t.Run("deadline before the wait ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			client, _ := scripted(t, []reply{{status: 429, header: []string{"Retry-After", "30"}}})
			start := time.Now()
			_, err := client.Orders.Import(ctx, importBody(), labhealth.WithCallRetry(labhealth.RetryPolicy{MaxAttempts: 5}))
			equal(t, time.Duration(0), time.Since(start))
			equal(t, "labhealth: POST /v3/order/import: 429 Too Many Requests: rejected (the rate limit is reached: see WithRateLimit; try again in 30s)", errorText(err))
			equal(t, 30*time.Second, apiError(t, err).RetryAfter)
			equal(t, labhealth.OutcomeRejected, labhealth.OutcomeOf(err))
		})
	})
	// In flight: the outcome of a write is unknown.
	t.Run("during", func(t *testing.T) {
		for _, test := range []struct {
			ctx  func(context.Context) (context.Context, context.CancelFunc)
			want string
			is   error
		}{
			{func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(time.Second, cancel)
				return ctx, cancel
			}, "labhealth: POST /v3/order/import: canceled: outcome unknown (check whether it took effect before you repeat it)", context.Canceled},
			{func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, time.Second)
			},
				"labhealth: POST /v3/order/import: timed out (the context's deadline): outcome unknown (give it more time; check whether it took effect before you repeat it)", context.DeadlineExceeded},
		} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := test.ctx(t.Context())
				defer cancel()
				client := must[*labhealth.Client](t)(labhealth.NewClient(testKey, labhealth.WithBaseURL(testURL),
					labhealth.WithHTTPClient(&http.Client{Transport: silent{}})))
				start := time.Now()
				_, err := client.Orders.Import(ctx, importBody())
				equal(t, time.Second, time.Since(start))
				equal(t, test.want, errorText(err))
				if !errors.Is(err, test.is) {
					t.Error("not the context's error")
				}
			})
		}
	})
	// The client's own timeout is no error of the context. A read is repeated.
	t.Run("attempt timeout", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := must[*labhealth.Client](t)(labhealth.NewClient(testKey, labhealth.WithBaseURL(testURL),
				labhealth.WithHTTPClient(&http.Client{Transport: silent{}}),
				labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 2, ReadTimeout: time.Second, WriteTimeout: 5 * time.Second})))
			start := time.Now()
			_, err := client.Orders.Import(t.Context(), importBody())
			equal(t, 5*time.Second, time.Since(start))
			equal(t, "labhealth: POST /v3/order/import: timed out (RetryPolicy.WriteTimeout, 5s): outcome unknown (raise it; check whether it took effect before you repeat it)", errorText(err))
			_, err = client.Orders.Get(t.Context(), orderID)
			equal(t, "labhealth: GET /v3/order/{order_id}: timed out (RetryPolicy.ReadTimeout, 1s) (raise it) (2 attempts)", errorText(err))
		})
	})
}

// silent does not respond until the request's context ends.
type silent struct{}

func (silent) RoundTrip(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}

// A canceled call returns promptly in every phase. Each phase reports when the client has reached
// it.
func TestCancelPromptly(t *testing.T) {
	hang := func(x exchange) { x.hang() }
	stalled := startFaults(t, false, -1, func(x exchange) bool { hang(x); return true })
	slow := startFaults(t, false, -1, cut(hang))
	slowError := startFaults(t, false, -1, func(x exchange) bool {
		x.respond(503, "{")
		http.NewResponseController(x.ResponseWriter).Flush()
		hang(x)
		return true
	})
	limited := startFaults(t, false, -1, respond(429, `{}`, "Retry-After", "59"))
	over := make(chan bool)
	defer close(over) // net/http leaves a connection that is being made to itself
	// watched returns a client of url that calls there when it reaches the phase. The context of
	// the call must have the trace.
	type watched func(url string, there func()) (*labhealth.Client, *httptrace.ClientTrace)
	through := func(url string, transport http.RoundTripper) *labhealth.Client { return faultClient(t, url, transport) }
	connecting := func(url string, there func()) (*labhealth.Client, *httptrace.ClientTrace) {
		return through(url, &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			there()
			<-over
			return nil, errors.New("too late")
		}}), &httptrace.ClientTrace{}
	}
	handshake := func(_ string, there func()) (*labhealth.Client, *httptrace.ClientTrace) {
		silent := acceptAll(t, func(c net.Conn) {
			c.Read(make([]byte, 1)) // of the client's hello
			there()
			io.Copy(io.Discard, c)
		})
		return through("https://"+silent.Addr().String(), nil), &httptrace.ClientTrace{}
	}
	sending := func(url string, there func()) (*labhealth.Client, *httptrace.ClientTrace) { // to a server that does not read
		return through(url, &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			c, _ := net.Pipe()
			return watchedConn{c, there}, nil
		}}), &httptrace.ClientTrace{}
	}
	waiting := func(url string, there func()) (*labhealth.Client, *httptrace.ClientTrace) {
		return through(url, nil), &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { there() }}
	}
	reading := func(url string, there func()) (*labhealth.Client, *httptrace.ClientTrace) {
		transport := &http.Transport{}
		t.Cleanup(transport.CloseIdleConnections)
		return through(url, roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := transport.RoundTrip(r)
			if err == nil {
				resp.Body = watchedBody{resp.Body, there}
			}
			return resp, err
		})), &httptrace.ClientTrace{}
	}
	retrying := func(url string, there func()) (*labhealth.Client, *httptrace.ClientTrace) {
		return faultClient(t, url, nil, observing(func(context.Context, labhealth.Attempt) { there() })), &httptrace.ClientTrace{}
	}
	for _, phase := range []struct {
		name    string
		url     string
		client  watched
		outcome labhealth.Outcome // of a write
		joined  bool              // whether the last response is joined
	}{
		{"connecting", "http://localhost", connecting, notSent, false},
		{"TLS handshake", "", handshake, notSent, false},
		{"sending", "http://localhost", sending, unknown, false},
		{"waiting for the response", stalled.URL, waiting, unknown, false},
		{"reading the response", slow.URL, reading, applied, false},
		{"reading an error", slowError.URL, reading, unknown, true},
		{"waiting to retry", limited.URL, retrying, rejected, true},
	} {
		var took []time.Duration
		for i := range 20 {
			call := faultCalls[i%len(faultCalls)]
			ctx, cancel := context.WithCancel(t.Context())
			var at time.Time
			there := sync.OnceFunc(func() {
				go func() { // so that the client goes on
					at = time.Now()
					cancel()
				}()
			})
			client, trace := phase.client(phase.url, there)
			traced := httptrace.WithClientTrace(ctx, trace)
			var err error
			if call.method == "GET" {
				_, err = client.Orders.Get(traced, faultOrderID)
			} else {
				_, err = client.Orders.Import(traced, faultImport())
			}
			<-ctx.Done()
			took = append(took, time.Since(at))
			var api *labhealth.APIError
			if !errors.Is(err, context.Canceled) || errors.As(err, &api) != phase.joined {
				t.Errorf("%s: %v", phase.name, err)
			}
			if got := labhealth.OutcomeOf(err); call.method != "GET" && got != phase.outcome {
				t.Errorf("%s: %v, want %v", phase.name, got, phase.outcome)
			}
		}
		slices.Sort(took)
		t.Logf("%-24s median %v, most %v", phase.name, took[len(took)/2].Round(time.Microsecond), took[len(took)-1].Round(time.Microsecond))
		if took[len(took)/2] > 50*time.Millisecond {
			t.Errorf("%s: median %v", phase.name, took[len(took)/2])
		}
	}
}

// watchedConn and watchedBody call there before they are used.
type watchedConn struct {
	net.Conn
	there func()
}

func (c watchedConn) Write(b []byte) (int, error) {
	c.there()
	return c.Conn.Write(b)
}

type watchedBody struct {
	io.ReadCloser
	there func()
}

func (b watchedBody) Read(p []byte) (int, error) {
	b.there()
	return b.ReadCloser.Read(p)
}

// The context ends while the service responds with 429. The service, the client and the clock are
// in one bubble.
func TestServiceContextWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newMemoryListener()
		srv := labhealthtest.NewServer(t, labhealthtest.WithListener(l))
		transport := &http.Transport{DialContext: l.dial}
		defer transport.CloseIdleConnections()
		newClient := func() *labhealth.Client {
			return must[*labhealth.Client](t)(labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL),
				labhealth.WithHTTPClient(&http.Client{Transport: transport}),
				labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 100, BaseWait: time.Second, MaxWait: time.Second})))
		}
		srv.RejectImports(429, `{"detail":"slow down"}`)
		body := plainImport(srv, srv.AddUser("ada"), "SAMPLE-1")

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, cancel)
		start := time.Now()
		_, err := newClient().Orders.Import(ctx, body)
		equal(t, 500*time.Millisecond, time.Since(start))
		if !errors.Is(err, context.Canceled) || !errors.Is(err, labhealth.ErrRateLimited) {
			t.Error("one of the two is missing in the chain")
		}
		e := apiError(t, err)
		equal(t, `"slow down"`, string(e.Detail()))
		equal(t, len(srv.Requests()), e.Attempts)
		equal(t, labhealth.OutcomeRejected, labhealth.OutcomeOf(err))

		// The service accepts imports again while the client waits: the import succeeds once.
		time.AfterFunc(500*time.Millisecond, func() { srv.RejectImports(0, "") })
		if _, err := newClient().Orders.Import(t.Context(), body); err != nil {
			t.Error(err)
		}
		equal(t, 1, len(srv.Orders()))
	})
}
