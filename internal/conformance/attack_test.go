package conformance

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go"
)

// halfHidden are transports that send a write, or look for a connection, where hooks see it, and
// send it again where they do not, or when the attempt is over. dead leads nowhere, and cut loses
// its connection within the headers.
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

// sendLater looks for a connection now and sends r when the attempt is over.
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
			for _, kind := range []struct {
				name string
				call func(context.Context, *labhealth.Client, ...labhealth.CallOption) error
			}{{"with a body", withBody}, {"without a body", withoutBody}} {
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

// startHeld starts a server whose response to the call "held" waits for release, and with HTTP/2
// all share one connection. held is closed when that call has arrived. The others get status.
func startHeld(t *testing.T, status int) (srv *httptest.Server, held, release chan struct{}) {
	held, release = make(chan struct{}), make(chan struct{})
	srv = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("X-Call") != "held" {
			w.WriteHeader(status)
			return
		}
		close(held)
		<-release
		io.WriteString(w, faultAnswer)
	}))
	srv.EnableHTTP2 = true
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv, held, release
}

// A write that a transport repeats is stopped, and the other calls on the connection go on.
func TestStoppedWriteLeavesOthersAlone(t *testing.T) {
	srv, held, release := startHeld(t, http.StatusServiceUnavailable)
	inner := srv.Client().Transport
	client := faultClient(t, srv.URL, roundTripper(func(r *http.Request) (resp *http.Response, err error) {
		for r = range copies(r, 3) {
			if resp, err = inner.RoundTrip(r); err == nil && resp.StatusCode < 500 {
				return resp, nil
			}
			if err == nil {
				resp.Body.Close()
			}
		}
		return resp, err
	}))
	other := make(chan error)
	go func() { other <- withBody(t.Context(), client, labhealth.WithHeader("X-Call", "held")) }()
	<-held
	if err := withBody(t.Context(), client); labhealth.OutcomeOf(err) != unknown {
		t.Error(err)
	}
	close(release)
	if err := <-other; err != nil {
		t.Error(err)
	}
}

// A write whose time is over while its headers are being written leaves the other calls on the
// connection alone.
func TestLateHeadersLeaveOthersAlone(t *testing.T) {
	srv, held, release := startHeld(t, http.StatusNotFound)
	path := newStallingPath(t, srv.Listener.Addr().String(), 64<<10)
	client := faultClient(t, srv.URL, path.transport(srv))
	other := make(chan error)
	go func() { other <- withBody(t.Context(), client, labhealth.WithHeader("X-Call", "held")) }()
	<-held
	path.allow(300) // within the headers
	err := withBody(t.Context(), client, labhealth.WithHeader("X-Filler", strings.Repeat("x", 900_000)),
		labhealth.WithCallRetry(labhealth.RetryPolicy{WriteTimeout: 50 * time.Millisecond}))
	if labhealth.OutcomeOf(err) != unknown {
		t.Error(err)
	}
	path.release()
	if err := withBody(t.Context(), client); err == nil { // its headers come after those
		t.Error("the server responds with 404")
	}
	close(release)
	if err := <-other; err != nil {
		t.Error(err)
	}
}

// A transport that is a client of its own does not take the key to another host when it follows a
// redirect.
func TestTransportThatFollowsRedirects(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			elsewhere := startFaults(t, h2, 0, nil)
			srv := startFaults(t, h2, -1, respond(status, "", "Location", elsewhere.URL+"/elsewhere"))
			client := &http.Client{Transport: srv.Client().Transport}
			transport := roundTripper(func(r *http.Request) (*http.Response, error) {
				r = r.Clone(r.Context())
				if r.Body != nil {
					r.GetBody = func() (io.ReadCloser, error) { return http.NoBody, nil }
				}
				return client.Do(r)
			})
			for _, kind := range faultCalls {
				err := kind.call(t, faultClient(t, srv.URL, transport))
				if n := elsewhere.commits.Load(); n > 0 || labhealth.OutcomeOf(err) != unknown {
					t.Errorf("%s, %d: %d requests elsewhere: %v", kind.method, status, n, err)
				}
			}
			client.CloseIdleConnections()
		}
	}
}

// foreignTLS is a connection with TLS that is no *tls.Conn.
type foreignTLS struct{ net.Conn }

func (c foreignTLS) ConnectionState() tls.ConnectionState {
	return c.Conn.(*tls.Conn).ConnectionState()
}

// A client speaks over the connections of DialTLSContext what net/http speaks over them: HTTP/2
// over those that are no *tls.Conn since Go 1.27.
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
