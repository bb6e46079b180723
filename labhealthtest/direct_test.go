package labhealthtest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

func directClient(t *testing.T, srv *labhealthtest.Server) *labhealth.Client {
	t.Helper()
	client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL), labhealth.WithHTTPClient(&http.Client{Transport: srv.Direct()}))
	noError(t, err)
	return client
}

// A client without a connection changes the server in spite of faults, and its requests are not
// logged. It works after Close.
func TestDirect(t *testing.T) {
	srv := newServer(t, labhealthtest.WithMiddleware(func(http.Handler) http.Handler {
		return http.NotFoundHandler()
	}))
	noError(t, srv.FailBefore("", -1, labhealthtest.FaultClosed))
	activities := srv.Watch(t.Context())
	client := directClient(t, srv)
	user := srv.AddUser("ada")
	placed, err := client.Orders.Import(t.Context(), validImport(srv, user, "SAMPLE-1"))
	noError(t, err)
	if _, err := client.Orders.Get(t.Context(), uuid.MustParse(unknownID)); !errors.Is(err, labhealth.ErrNotFound) {
		t.Errorf("%v", err)
	}
	if srv.RequestCount() != 0 || len(srv.Requests()) != 0 {
		t.Error("direct requests are logged")
	}
	got := activitiesOf(srv, activities, map[uuid.UUID]string{user: "ada"})
	if want := "user ada, order of ada, order of ada"; strings.Join(got, ", ") != want {
		t.Errorf("%q, want %s", got, want)
	}
	if _, err := client.Orders.Get(t.Context(), placed.Order.ID); err != nil {
		t.Errorf("after Close: %v", err)
	}
}

// The responses are those of the server.
func TestDirectResponses(t *testing.T) {
	srv := newServer(t)
	for _, test := range []struct{ method, path, body string }{
		{"GET", "/v2/user/resolve/a%2Fb?x=%20y", ""},
		{"POST", "/v2/user", `{"client_user_id": 1}`},
		{"DELETE", "/v3/order/" + unknownID, ""},
		{"HEAD", "/v2/user", ""},
		{"GET", "/nowhere", ""},
		{"POST", "/v2/user", `{"client_user_id":"` + strings.Repeat("a", 16<<20) + `"}`},
	} {
		want := do(t, srv, test.method, test.path, test.body)
		req, err := http.NewRequest(test.method, srv.URL+test.path, strings.NewReader(test.body))
		noError(t, err)
		req.Header.Set("x-service-api-key", srv.APIKey)
		resp, err := srv.Direct().RoundTrip(req)
		noError(t, err)
		body, err := io.ReadAll(resp.Body)
		noError(t, err)
		if resp.StatusCode != want.status || string(body) != want.body {
			t.Errorf("%s %s: %d %s, want %d %s", test.method, test.path, resp.StatusCode, body, want.status, want.body)
		}
		for _, name := range []string{"Content-Type", "Content-Length", "Allow", "X-Labhealthtest-Proof"} {
			if resp.Header.Get(name) != want.header.Get(name) {
				t.Errorf("%s %s: %s %q, want %q", test.method, test.path, name, resp.Header.Get(name), want.header.Get(name))
			}
		}
	}
}

// closeRecorder is a body that cannot be read.
type closeRecorder struct{ closed bool }

func (c *closeRecorder) Read([]byte) (int, error) { return 0, errors.New("broken") }
func (c *closeRecorder) Close() error             { c.closed = true; return nil }

// Requests that cannot be made are errors, and their bodies are closed.
func TestDirectErrors(t *testing.T) {
	srv := newServer(t)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, change := range map[string]func(*http.Request) *http.Request{
		"broken body": func(r *http.Request) *http.Request { return r },
		"no URL":      func(r *http.Request) *http.Request { r.URL = nil; return r },
		"canceled":    func(r *http.Request) *http.Request { return r.WithContext(canceled) },
	} {
		body := &closeRecorder{}
		req, err := http.NewRequest("POST", srv.URL+"/v2/user", body)
		noError(t, err)
		if resp, err := srv.Direct().RoundTrip(change(req)); err == nil {
			t.Errorf("%s: %s", name, resp.Status)
		}
		if !body.closed {
			t.Errorf("%s: the body is not closed", name)
		}
	}
}

func TestMiddleware(t *testing.T) {
	var order []string
	wrap := func(name string) labhealthtest.Option {
		return labhealthtest.WithMiddleware(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				order = append(order, name)
				if r.URL.Path == "/"+name {
					io.WriteString(w, `"`+name+`"`)
					return
				}
				next.ServeHTTP(w, r)
			})
		})
	}
	srv := newServer(t, wrap("first"), labhealthtest.WithMiddleware(nil),
		labhealthtest.WithMiddleware(func(http.Handler) http.Handler { return nil }), wrap("second"))
	check(t, do(t, srv, "GET", "/second", ""), 200, `"second"`)
	check(t, do(t, srv, "GET", "/v2/user", ""), 200, `{"users":[],"total":0,"offset":0,"limit":100}`)
	if got := strings.Join(order, " "); got != "first second first second" {
		t.Error(got)
	}
	if n := srv.RequestCount(); n != 1 {
		t.Errorf("%d requests of the service, want 1", n)
	}
}

// Close ends the requests of middleware and waits for it.
func TestCloseDuringMiddleware(t *testing.T) {
	started, ended := make(chan bool), false
	srv := newServer(t, labhealthtest.WithMiddleware(func(http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(started)
			<-r.Context().Done()
			ended = true
		})
	}))
	done := make(chan bool)
	go func() {
		defer close(done)
		if resp, err := httpClient.Get(srv.URL); err == nil {
			resp.Body.Close()
		}
	}()
	<-started
	srv.Close()
	if !ended {
		t.Error("Close does not wait for middleware")
	}
	<-done
}
