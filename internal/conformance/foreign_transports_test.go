package conformance

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/labhealth/labhealth-go"
)

// wrappedTransports wrap net/http's transport in ways that could send a write twice. inner connects
// to the server, dead to nothing.
var wrappedTransports = []struct {
	name   string
	hidden bool // it sends what no hook of net/http sees, so that nobody can stop it
	make   func(inner, dead http.RoundTripper) roundTripper
}{
	{"passes on", false, func(inner, _ http.RoundTripper) roundTripper { return inner.RoundTrip }},
	{"retries after 5xx and errors", false, func(inner, _ http.RoundTripper) roundTripper { return retrying(inner) }},
	{"retries, deaf to the end of the attempt", false, func(inner, _ http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			return retrying(inner)(r.WithContext(context.WithoutCancel(r.Context())))
		}
	}},
	{"fails over", false, func(inner, dead http.RoundTripper) roundTripper { return failingOver(dead, inner) }},
	{"fails over, unseen", true, func(inner, dead http.RoundTripper) roundTripper { return failingOver(dead, unseen(inner)) }},
	{"sends two at once", false, func(inner, _ http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			type result struct {
				resp *http.Response
				err  error
			}
			results := make(chan result, 2)
			for r := range copies(r, 2) {
				go func() {
					resp, err := inner.RoundTrip(r)
					results <- result{resp, err}
				}()
			}
			first, second := <-results, <-results
			if first.err != nil {
				first, second = second, first
			}
			if second.err == nil {
				second.resp.Body.Close()
			}
			return first.resp, first.err
		}
	}},
	{"sends each twice", false, func(inner, _ http.RoundTripper) roundTripper {
		return func(r *http.Request) (resp *http.Response, err error) {
			for r = range copies(r, 2) {
				if err == nil && resp != nil {
					resp.Body.Close()
				}
				resp, err = inner.RoundTrip(r)
			}
			return resp, err
		}
	}},
	{"returns before it has sent", false, func(inner, _ http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			for r := range copies(r.WithContext(context.WithoutCancel(r.Context())), 1) {
				late.Go(func() {
					if resp, err := inner.RoundTrip(r); err == nil {
						resp.Body.Close()
					}
				})
			}
			return nil, errors.New("out of patience")
		}
	}},
	{"turns 5xx into an error", false, func(inner, _ http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			resp, err := inner.RoundTrip(r)
			if err == nil && resp.StatusCode >= 500 {
				resp.Body.Close()
				return nil, errors.New("connection refused")
			}
			return resp, err
		}
	}},
	{"is a client of its own", false, func(inner, _ http.RoundTripper) roundTripper {
		client := &http.Client{Transport: inner}
		return func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.RequestURI = ""
			return client.Do(r)
		}
	}},
	{"retries, unseen", true, func(inner, _ http.RoundTripper) roundTripper { return retrying(unseen(inner)) }},
}

// retrying sends a request up to three times, until the response is not a 5xx.
func retrying(next http.RoundTripper) roundTripper {
	return func(r *http.Request) (resp *http.Response, err error) {
		for r = range copies(r, 3) {
			if resp, err = next.RoundTrip(r); err == nil && resp.StatusCode < 500 {
				return resp, nil
			}
			if err == nil {
				resp.Body.Close()
			}
		}
		return resp, err
	}
}

// failingOver sends a request through second if first fails.
func failingOver(first, second http.RoundTripper) roundTripper {
	return func(r *http.Request) (resp *http.Response, err error) {
		next := first
		for r = range copies(r, 2) {
			if resp, err = next.RoundTrip(r); err == nil {
				return resp, nil
			}
			next = second
		}
		return resp, err
	}
}

// late waits for what goes on after an http.RoundTripper has returned.
var late sync.WaitGroup

// copies yields n copies of a request whose body, if it has one, can be read.
func copies(r *http.Request, n int) func(func(*http.Request) bool) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	return func(yield func(*http.Request) bool) {
		for range n {
			c := r.Clone(r.Context())
			if r.Body != nil {
				c.Body = io.NopCloser(bytes.NewReader(body))
			}
			if !yield(c) {
				return
			}
		}
	}
}

// unseen sends requests with another context, which has no hooks.
func unseen(inner http.RoundTripper) roundTripper {
	return func(r *http.Request) (*http.Response, error) {
		return inner.RoundTrip(r.WithContext(context.Background()))
	}
}

// A write through a transport that retries, fails over, duplicates or goes on is processed at most
// once, and its outcome is true. What a transport hides from the hooks cannot be stopped, but its
// outcome is never rejected or not sent.
func TestWrappedTransports(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	calls := 1 // times 11 transports, 2 kinds and 12 servers, for each version of HTTP
	if long {
		calls = 10 // more than 2,000
	}
	for _, protocol := range []int{1, 2} {
		for _, first := range []int{200, 503, 429, 0} { // the response to the first request of a call; 0 closes the connection
			for _, again := range []int{200, 409, 429} { // to the later ones
				var mu sync.Mutex
				seen, commits := map[string]int{}, map[string]int{}
				srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if _, err := io.Copy(io.Discard, r.Body); err != nil {
						return
					}
					call := r.Header.Get("X-Call")
					status := again
					mu.Lock()
					if seen[call]++; seen[call] == 1 {
						status = first
					}
					if status < 400 || status >= 500 {
						commits[call]++
					}
					mu.Unlock()
					if status == 0 {
						panic(http.ErrAbortHandler)
					}
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(status)
					io.WriteString(w, faultResponse)
				}))
				srv.EnableHTTP2 = protocol == 2
				srv.Config.ErrorLog = log.New(io.Discard, "", 0)
				srv.StartTLS()
				inner := srv.Client().Transport.(*http.Transport)
				dead := &http.Transport{Proxy: proxyAt("http://" + closedAddress(t))}
				type made struct {
					id, what string
					hidden   bool
					outcome  labhealth.Outcome
				}
				var list []made
				for _, transport := range wrappedTransports {
					for _, kind := range writeCalls {
						client := faultClient(t, srv.URL, transport.make(inner, dead))
						for range calls {
							id := strconv.Itoa(len(list))
							err := kind.call(t.Context(), client, labhealth.WithHeader("X-Call", id))
							list = append(list, made{id, transport.name + ", " + kind.name, transport.hidden, labhealth.OutcomeOf(err)})
						}
					}
				}
				late.Wait()
				srv.Close() // when all that arrived is processed
				fieldLines := map[string]bool{}
				mu.Lock() // an HTTP/2 server does not wait for its handlers
				for _, m := range list {
					done := commits[m.id]
					if (done > 1 && !m.hidden) || (done > 0 && (m.outcome == notSent || m.outcome == rejected)) || (done == 0 && m.outcome == applied) {
						if !fieldLines[m.what] {
							t.Errorf("HTTP/%d, %d then %d, %s: %v, %d done", protocol, first, again, m.what, m.outcome, done)
						}
						fieldLines[m.what] = true
					}
				}
				mu.Unlock()
			}
		}
	}
}

// A transport sends a write on two connections at once, and neither has started when both are
// ready. The server gets one of them, or none.
func TestTwoReadyConnections(t *testing.T) {
	for _, kind := range writeCalls {
		srv := startFaults(t, false, -1, respond(200, faultResponse))
		client := faultClient(t, srv.URL, roundTripper(func(r *http.Request) (*http.Response, error) {
			var waiting atomic.Int64
			both := make(chan struct{})
			ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{WroteHeaderField: func(name string, _ []string) {
				if name == "Host" && waiting.Add(1) == 2 {
					close(both)
				}
				select {
				case <-both:
				case <-r.Context().Done():
				}
			}})
			var wg sync.WaitGroup
			for c := range copies(r.WithContext(ctx), 2) {
				wg.Go(func() {
					if resp, err := srv.Client().Transport.RoundTrip(c); err == nil {
						resp.Body.Close()
					}
				})
			}
			wg.Wait()
			return nil, errors.New("the responses are lost")
		}))
		err := kind.call(t.Context(), client)
		if done := srv.commits.Load(); done > 1 || labhealth.OutcomeOf(err) != unknown {
			t.Errorf("%s: %d done: %v", kind.name, done, err)
		}
	}
}

// A transport that dials without end is stopped.
func TestEndlessDials(t *testing.T) {
	for _, call := range faultCalls {
		var dials atomic.Int64
		inner := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			dials.Add(1)
			return nil, errors.New("there is no route")
		}}
		err := call.do(t, faultClient(t, "http://127.0.0.1", roundTripper(func(r *http.Request) (resp *http.Response, err error) {
			for r := range copies(r, 100) {
				if resp, err = inner.RoundTrip(r); err == nil {
					return resp, nil
				}
			}
			return nil, err
		})))
		if n := dials.Load(); n > mostConnections || labhealth.OutcomeOf(err) == applied {
			t.Errorf("%s: %d dials, want at most %d: %v", call.method, n, mostConnections, err)
		}
	}
}

// The responses of a transport that sends each request once, observed by hooks, are trusted.
func TestObservedTransports(t *testing.T) {
	srv := startFaults(t, false, -1, respond(422, `{}`))
	inner := srv.Client().Transport
	defer srv.Client().CloseIdleConnections()
	for _, row := range []struct {
		transport roundTripper
		want      labhealth.Outcome
	}{{inner.RoundTrip, rejected}, {unseen(inner), unknown}} {
		err := withBody(t.Context(), faultClient(t, srv.URL, row.transport))
		if got := labhealth.OutcomeOf(err); got != row.want || !errors.Is(err, labhealth.ErrValidation) {
			t.Errorf("%v, want %v: %v", got, row.want, err)
		}
	}
	retries := retrying(inner)
	unavailable := startFaults(t, false, -1, respond(503, `{}`))
	err := withBody(t.Context(), faultClient(t, unavailable.URL, retries))
	if want := "labhealth: POST /v3/order/import: the http.RoundTripper was stopped before it sent the write a second time: " +
		"outcome unknown (it must not repeat requests; check whether it took effect before you repeat it)"; errorText(err) != want {
		t.Errorf("%q, want %q", errorText(err), want)
	}
	dead := fmt.Sprintf("http://%s", closedAddress(t))
	for _, row := range []struct {
		transport roundTripper
		attempts  int
		want      labhealth.Outcome
	}{{inner.RoundTrip, 3, notSent}, {unseen(inner), 1, unknown}} {
		var r labhealth.Response
		err := withBody(t.Context(), faultClient(t, dead, row.transport), labhealth.WithResponse(&r))
		if got := labhealth.OutcomeOf(err); got != row.want || r.Attempts != row.attempts {
			t.Errorf("%v, %d attempts, want %v, %d: %v", got, r.Attempts, row.want, row.attempts, err)
		}
	}
}

// halfHidden are transports that send a write, or get a connection, observed by hooks, and then
// send it again without hooks or after the attempt. dead connects to nothing, and cut loses its
// connection within the headers.
var halfHidden = []struct {
	name string
	make func(inner, dead, cut http.RoundTripper) roundTripper
}{
	{"a hidden retry after a 503", func(inner, _, _ http.RoundTripper) roundTripper {
		return func(r *http.Request) (resp *http.Response, err error) {
			next := inner
			for r = range copies(r, 2) {
				if resp, err = next.RoundTrip(r); err != nil || resp.StatusCode < 500 {
					return resp, err
				}
				resp.Body.Close()
				next = unseen(inner)
			}
			return resp, err
		}
	}},
	{"a hidden failover that does not read an empty body", func(inner, dead, _ http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			_, err := dead.RoundTrip(r)
			if r.ContentLength == 0 {
				other := r.Clone(context.Background())
				other.Body = nil
				if resp, err := inner.RoundTrip(other); err == nil {
					resp.Body.Close()
				}
			}
			return nil, err
		}
	}},
	{"a hidden failover after half the headers", func(inner, _, cut http.RoundTripper) roundTripper {
		return func(r *http.Request) (resp *http.Response, err error) {
			next := cut
			for r = range copies(r, 2) {
				if resp, err = next.RoundTrip(r); err == nil {
					resp.Body.Close()
					err = errors.New("the response is lost")
				}
				next = unseen(inner)
			}
			return nil, err
		}
	}},
	{"neither a response nor an error", func(inner, _, _ http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			sendLater(inner, r)
			return nil, nil
		}
	}},
	{"a response without a body", func(inner, _, _ http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			sendLater(inner, r)
			return &http.Response{StatusCode: http.StatusServiceUnavailable, ContentLength: 5}, nil
		}
	}},
}

// sendLater fires the hook of a connection now, and sends r after the attempt.
func sendLater(inner http.RoundTripper, r *http.Request) {
	httptrace.ContextClientTrace(r.Context()).GetConn(r.URL.Host)
	over := r.Context().Done()
	r = r.WithContext(context.WithoutCancel(r.Context()))
	late.Go(func() {
		<-over
		if resp, err := inner.RoundTrip(r); err == nil {
			resp.Body.Close()
		}
	})
}

// cutTransport speaks HTTP/1 on connections that end after the first bytes.
func cutTransport() *http.Transport {
	dial := func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		late.Go(func() {
			io.ReadFull(there, make([]byte, 1000))
			there.Close()
		})
		return here, nil
	}
	return &http.Transport{DialContext: dial, DialTLSContext: dial}
}

func TestHalfHiddenTransports(t *testing.T) {
	for _, protocol := range []int{1, 2} {
		for _, transport := range halfHidden {
			for _, kind := range writeCalls {
				var commits atomic.Int32
				srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if _, err := io.Copy(io.Discard, r.Body); err != nil {
						return
					}
					if commits.Add(1) == 1 {
						w.WriteHeader(http.StatusServiceUnavailable)
						return
					}
					w.WriteHeader(http.StatusConflict)
				}))
				srv.EnableHTTP2 = protocol == 2
				srv.Config.ErrorLog = log.New(io.Discard, "", 0)
				srv.StartTLS()
				dead := &http.Transport{Proxy: proxyAt("http://" + closedAddress(t))}
				client := faultClient(t, srv.URL, transport.make(srv.Client().Transport, dead, cutTransport()))
				err := kind.call(t.Context(), client, labhealth.WithHeader("X-Filler", strings.Repeat("x", 50_000)))
				late.Wait()
				srv.Close()
				done, outcome := commits.Load(), labhealth.OutcomeOf(err)
				if (done > 0 && outcome != unknown) || (done == 0 && outcome == applied) {
					t.Errorf("HTTP/%d, %s, %s: %v, %d done: %v", protocol, transport.name, kind.name, outcome, done, err)
				}
			}
		}
	}
}

// An error of a transport without hooks proves nothing.
func TestTransportsWithoutHooks(t *testing.T) {
	srv := startFaults(t, false, -1, func(x exchange) bool { x.raw().Close(); return true })
	inner := &http.Transport{}
	defer inner.CloseIdleConnections()
	for name, transport := range map[string]http.RoundTripper{
		"mock": roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Body != nil {
				io.Copy(io.Discard, r.Body)
			}
			srv.commits.Add(1)
			return nil, errors.New("connection refused")
		}),
		"mock of a refused connection": roundTripper(func(r *http.Request) (*http.Response, error) {
			srv.commits.Add(1)
			return nil, &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
		}),
		"context of its own": roundTripper(func(r *http.Request) (*http.Response, error) {
			return inner.RoundTrip(r.WithContext(context.Background()))
		}),
		"response and error": roundTripper(func(r *http.Request) (*http.Response, error) {
			srv.commits.Add(1)
			return responseTo(r, 200, faultResponse), errors.New("both")
		}),
	} {
		for _, call := range faultCalls {
			t.Run(name+"/"+call.method, func(t *testing.T) {
				out := captureLog(t)
				before := srv.commits.Load()
				var r labhealth.Response
				err := call.do(t, faultClient(t, srv.URL, transport), labhealth.WithResponse(&r))
				got := result{int64(r.Attempts), srv.commits.Load() - before, labhealth.OutcomeOf(err)}
				want := result{1, 1, unknown}
				if call.method == "GET" {
					want = result{3, 3, unknown}
				}
				if got != want {
					t.Errorf("%v, want %v: %v", got, want, err)
				}
				if text := out.String(); text != "" {
					t.Errorf("written to the default logger: %q", text)
				}
			})
		}
	}
}

// foreignTLS is a TLS connection that is not a *tls.Conn.
type foreignTLS struct{ net.Conn }

func (c foreignTLS) ConnectionState() tls.ConnectionState {
	return c.Conn.(*tls.Conn).ConnectionState()
}

// A client uses the same protocol over connections of DialTLSContext as net/http: since Go 1.27,
// HTTP/2 also if they are not a *tls.Conn.
func TestForeignTLS(t *testing.T) {
	captureLog(t) // before, net/http wonders about the frames
	srv := startFaults(t, true, 0, nil)
	for _, protocol := range []string{"h2", "http/1.1"} {
		transport := &http.Transport{ForceAttemptHTTP2: true, DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			config := srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
			config.NextProtos, config.ServerName = []string{protocol}, "example.com"
			c, err := (&tls.Dialer{Config: config}).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return foreignTLS{c}, nil
		}}
		resp, err := (&http.Client{Transport: transport}).Get(srv.URL + warmPath)
		if err == nil {
			resp.Body.Close()
		}
		transport.CloseIdleConnections()
		if got := withBody(t.Context(), faultClient(t, srv.URL, transport)); (got == nil) != (err == nil) {
			t.Errorf("%s: %v; net/http alone: %v", protocol, got, err)
		}
	}
}

// A transport that fails over to another host, without TLS, is stopped before it sends the key
// there, even if both hosts are behind the same proxy and nothing was sent to the first one.
func TestFailoverBehindProxy(t *testing.T) {
	keys := make(chan string, 10)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if key := r.Header.Get("X-Service-Api-Key"); key != "" {
			keys <- key
		}
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer proxy.Close()
	inner := &http.Transport{Proxy: proxyAt(proxy.URL)}
	defer inner.CloseIdleConnections()
	failover := roundTripper(func(r *http.Request) (*http.Response, error) {
		if resp, err := inner.RoundTrip(r.Clone(r.Context())); err == nil {
			return resp, nil
		}
		r = r.Clone(r.Context())
		r.URL.Scheme, r.URL.Host, r.Host = "http", "other.example.com", ""
		return inner.RoundTrip(r)
	})
	client := faultClient(t, "https://service.example.com", failover)
	for _, call := range faultCalls {
		if err := call.do(t, client); err == nil {
			t.Errorf("%s: no error", call.method)
		}
	}
	if len(keys) > 0 {
		t.Errorf("the key was sent to the other host %d times", len(keys))
	}
}
