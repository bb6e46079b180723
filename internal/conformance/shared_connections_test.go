package conformance

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go"
)

// startHeld starts an HTTP/2 server whose response to the call "held" waits for release. held is
// closed when that call has arrived. Other calls get status.
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
		io.WriteString(w, faultResponse)
	}))
	srv.EnableHTTP2 = true
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv, held, release
}

// A write that a transport repeats is stopped, and other calls on the connection go on.
func TestStoppedWriteOnSharedConnection(t *testing.T) {
	srv, held, release := startHeld(t, http.StatusServiceUnavailable)
	client := faultClient(t, srv.URL, retrying(srv.Client().Transport))
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

// A write whose deadline passes while its headers are written does not affect other calls on the
// connection.
func TestLateHeadersOnSharedConnection(t *testing.T) {
	srv, held, release := startHeld(t, http.StatusNotFound)
	network := onLoopback
	network.buffer = 64 << 10
	path := newStallingPath(t, network, func() (net.Conn, error) { return net.Dial("tcp", srv.Listener.Addr().String()) })
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

// The connections of other calls survive a call that fails or is canceled.
func TestOtherConnectionsStayOpen(t *testing.T) {
	const warm = 20
	gate := make(chan bool)
	srv := startFaults(t, false, -1, func(x exchange) bool {
		switch x.req.URL.Path {
		case "/warm":
			<-gate
			x.respond(200, `{}`)
		case "/hang":
			x.hang()
		case "/close":
			x.raw().Close()
		default:
			x.respond(500, `{}`)
		}
		return true
	})
	client := faultClient(t, srv.URL, nil)
	// together makes calls that are all in flight when meanwhile is called.
	together := func(meanwhile func()) {
		var all sync.WaitGroup
		before := srv.commits.Load()
		for range warm {
			all.Go(func() {
				if err := client.Do(t.Context(), "GET", "/warm", nil, nil); err != nil {
					t.Error(err)
				}
			})
		}
		for srv.commits.Load() < before+warm {
			runtime.Gosched()
		}
		meanwhile()
		for range warm {
			gate <- true
		}
		all.Wait()
	}
	together(func() {
		for _, path := range []string{"/fail", "/close", "/hang"} {
			for _, method := range []string{"GET", "POST"} {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				if err := client.Do(ctx, method, path, nil, nil); err == nil {
					t.Error("no error")
				}
				cancel()
			}
		}
	})
	before := srv.conns.Load()
	together(func() {})
	client.Do(t.Context(), "GET", "/fail", nil, nil)
	together(func() {})
	if anew := srv.conns.Load() - before; anew != 0 {
		t.Errorf("%d connections of others were made anew", anew)
	}
}
