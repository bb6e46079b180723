package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/labhealth/labhealth-go"
)

func TestRedirects(t *testing.T) {
	var touched atomic.Int64
	target := acceptAll(t, func(net.Conn) { touched.Add(1) })
	_, port, _ := net.SplitHostPort(target.Addr().String())
	var location atomic.Value
	var keys atomic.Int64
	statuses := []int{301, 302, 303, 307, 308}
	var status atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Service-Api-Key") == testKey {
			keys.Add(1)
		}
		hop, isHop := strings.CutPrefix(r.URL.Path, "/hop/")
		n, _ := strconv.Atoi(hop)
		switch {
		case isHop && n > 0:
			w.Header().Set("Location", fmt.Sprintf("/hop/%d", n-1))
			w.WriteHeader(int(status.Load()))
		case isHop || r.URL.Path == "/there":
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, faultResponse)
		default:
			w.Header().Set("Location", strings.NewReplacer("SELF", r.Host, "PORT", port).Replace(location.Load().(string)))
			w.WriteHeader(int(status.Load()))
		}
	}))
	defer srv.Close()
	self := strings.TrimPrefix(srv.URL, "http://")
	for _, row := range []struct {
		name, location string
		host           string // in the error; empty if a GET follows
		requests       int64  // of a GET to the service
	}{
		{"path", "/there", "", 2},
		{"relative path", "../../there", "", 2},
		{"same origin", "http://SELF/there", "", 2},
		{"same origin in capitals", "HTTP://SELF/there", "", 2},
		{"no scheme, same host", "//SELF/there", "", 2},
		{"five hops", "/hop/4", "", 6},
		{"six hops", "/hop/5", self, 6},
		{"other port", "http://127.0.0.1:PORT/there", "127.0.0.1:" + port, 1},
		{"other host", "http://localhost:PORT/there", "localhost:" + port, 1},
		{"same host by another name", "http://localhost:" + portOf(srv.URL) + "/there", "localhost:" + portOf(srv.URL), 1},
		{"other scheme", "https://SELF/there", self, 1},
		{"no scheme, other host", "//127.0.0.1:PORT/there", "127.0.0.1:" + port, 1},
		{"user info", "http://ada:secret@SELF/there", self, 1},
		{"user info that looks like the host", "http://SELF@127.0.0.1:PORT/there", "127.0.0.1:" + port, 1},
		{"strange scheme", "ftp://SELF/there", self, 1},
	} {
		for _, code := range statuses {
			for _, call := range faultCalls {
				location.Store(row.location)
				status.Store(int64(code))
				keys.Store(0)
				var r labhealth.Response
				err := call.do(t, faultClient(t, srv.URL, nil), labhealth.WithResponse(&r))
				name := fmt.Sprintf("%s, %d, %s", row.name, code, call.method)
				requests, host := row.requests, row.host
				if call.method != "GET" {
					requests = 1
					if host == "" || strings.Contains(row.name, "hops") {
						host = self
					}
				}
				if keys.Load() != requests {
					t.Errorf("%s: %d requests, want %d", name, keys.Load(), requests)
				}
				if host == "" {
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
					continue
				}
				var refused *labhealth.RedirectError
				if !errors.As(err, &refused) || refused.StatusCode != code || refused.Host != host || labhealth.OutcomeOf(err) != unknown {
					t.Errorf("%s: %v (%T), want a redirect to %s", name, err, err, host)
				}
				if r.StatusCode != code || r.Attempts != 1 {
					t.Errorf("%s: response %d after %d attempts", name, r.StatusCode, r.Attempts)
				}
			}
		}
	}
	// An invalid location is not shown.
	location.Store("http://[Ada Example/")
	for _, call := range faultCalls {
		if err := call.do(t, faultClient(t, srv.URL, nil)); err == nil || strings.Contains(fmt.Sprintf("%+v", err), "Ada") {
			t.Errorf("%s: %v", call.method, err)
		}
	}
	if n := touched.Load(); n != 0 {
		t.Errorf("the target was touched %d times", n)
	}
}

// A redirect that is not followed is a response, with a body.
func TestRedirectHasBody(t *testing.T) {
	client, _ := respondingWith(t, 302, "moved", "Location", "https://elsewhere.example.com/")
	var r labhealth.Response
	_, err := client.Orders.Get(t.Context(), orderID, labhealth.WithResponse(&r))
	var refused *labhealth.RedirectError
	equal(t, true, errors.As(err, &refused))
	equal(t, "moved", string(r.Body))
}

// What follows a 101 is another protocol, without an end: it is not read.
func TestSwitchingProtocols(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body, protocol := io.Pipe()
		defer protocol.Close()
		client := faultClient(t, testURL, roundTripper(func(r *http.Request) (*http.Response, error) {
			resp := responseTo(r, 101, "")
			resp.Body = body
			return resp, nil
		}))
		_, err := client.Orders.Import(t.Context(), faultImport())
		equal(t, 101, apiError(t, err).StatusCode)
		equal(t, unknown, labhealth.OutcomeOf(err))
	})
}

// A transport that follows redirects itself does not send the key to another host.
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
			for _, call := range faultCalls {
				err := call.do(t, faultClient(t, srv.URL, transport))
				if n := elsewhere.commits.Load(); n > 0 || labhealth.OutcomeOf(err) != unknown {
					t.Errorf("%s, %d: %d requests elsewhere: %v", call.method, status, n, err)
				}
			}
			client.CloseIdleConnections()
		}
	}
}

// A transport that fails over to another host does not send the key there, even if it keeps the
// Host header, even if the first host refuses the connection, and even if it ignores that the
// request was canceled.
func TestTransportThatFailsOver(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	for i := range 8 {
		changesHost, refuses, ignores := i&1 > 0, i&2 > 0, i&4 > 0
		var elsewhere atomic.Int64
		backup := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
		primary := startFaults(t, false, -1, respond(503, ""))
		url := primary.URL
		if refuses {
			url = closed.URL
		}
		inner := &http.Transport{}
		transport := roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := inner.RoundTrip(r)
			if err == nil && resp.StatusCode < 500 {
				return resp, nil
			}
			if err == nil {
				resp.Body.Close()
			}
			ctx := r.Context()
			if ignores {
				ctx = context.WithoutCancel(ctx)
			}
			r = r.Clone(ctx)
			r.URL.Host = backup.Listener.Addr().String()
			if changesHost {
				r.Host = r.URL.Host
			}
			if r.Body != nil {
				r.Body = io.NopCloser(strings.NewReader("{}"))
			}
			return inner.RoundTrip(r)
		})
		for _, call := range faultCalls {
			if err := call.do(t, faultClient(t, url, transport)); err == nil || elsewhere.Load() > 0 {
				t.Errorf("%s, changes host %v, refused %v, ignores %v: %d requests elsewhere, %v", call.method, changesHost, refuses, ignores, elsewhere.Load(), err)
			}
		}
		inner.CloseIdleConnections()
		backup.Close()
	}
}
