package console

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// usersBox is a console of users.
type usersBox struct {
	testing.TB
	server    *labhealthtest.Server // nil in listen mode
	inspector *inspect.Inspector
	console   *Console
}

const (
	usersHost   = "console.test"
	usersSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
)

// usersNow is the clock of the tests.
var usersNow = time.Date(2026, 11, 23, 9, 30, 0, 0, time.UTC)

func newUsersBox(t testing.TB, withServer bool) *usersBox {
	t.Helper()
	now := func() time.Time { return usersNow }
	box := &usersBox{TB: t}
	var err error
	box.inspector, err = inspect.Open(t.Context(), inspect.Config{Secrets: []string{usersSecret}, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { box.inspector.Close() })
	config := Config{Inspector: box.inspector, Token: "token", Hosts: []string{usersHost}, Now: now, Log: slog.New(slog.NewTextHandler(testWriter{t}, nil))}
	if withServer {
		box.server = labhealthtest.NewServer(t, labhealthtest.WithClock(now), labhealthtest.WithSeed(1))
		err = box.server.DeliverTo("http://inspector.invalid/", labhealthtest.WithSigningSecrets(usersSecret),
			labhealthtest.WithTransport(toHandler{box.inspector}))
		if err != nil {
			t.Fatal(err)
		}
		config.Server = box.server
		config.Client, err = labhealth.NewClient(box.server.APIKey, labhealth.WithBaseURL(box.server.URL),
			labhealth.WithHTTPClient(&http.Client{Transport: box.server.Direct()}))
		if err != nil {
			t.Fatal(err)
		}
	}
	if box.console, err = New(config); err != nil {
		t.Fatal(err)
	}
	return box
}

type testWriter struct{ testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.Errorf("the console logs: %s", p)
	return len(p), nil
}

// toHandler sends requests to a handler.
type toHandler struct{ handler http.Handler }

func (h toHandler) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	return w.Result(), nil
}

func (b *usersBox) do(method, path string, form url.Values) *http.Response {
	r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	r.Host = usersHost
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.AddCookie(cookie(r, "console", b.console.session(r)))
	w := httptest.NewRecorder()
	b.console.ServeHTTP(w, r)
	return w.Result()
}

// get returns a page that must exist.
func (b *usersBox) get(path string) string {
	b.Helper()
	resp := b.do("GET", path, nil)
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		b.Fatalf("%s: %v %s, %v", path, resp.Status, body, err)
	}
	return string(body)
}

// post does an action that must redirect, and returns the page after it.
func (b *usersBox) post(path string, form url.Values) (location, body string) {
	b.Helper()
	resp := b.do("POST", path, form)
	if resp.StatusCode != 303 {
		b.Fatalf("%s: %v", path, resp.Status)
	}
	location = resp.Header.Get("Location")
	r := httptest.NewRequest("GET", location, nil)
	r.Host = usersHost
	r.AddCookie(cookie(r, "console", b.console.session(r)))
	for _, other := range resp.Cookies() {
		r.AddCookie(other)
	}
	w := httptest.NewRecorder()
	b.console.ServeHTTP(w, r)
	return location, w.Body.String()
}

// apply stores an event.
func (b *usersBox) apply(userID uuid.UUID, resource, data string) {
	b.Helper()
	body := fmt.Sprintf(`{"event_type":"daily.data.%s.created","user_id":%q,"client_user_id":"member-0001","team_id":"6353bcab-3526-4838-8c92-063fa760fb6b","data":%s}`,
		resource, userID, data)
	event, err := webhooks.Parse([]byte(body))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := b.inspector.Store.Apply(b.Context(), webhooks.Delivery{Event: event}); err != nil {
		b.Fatalf("%s: %v", body, err)
	}
}

// applySamples stores samples, which are JSON.
func (b *usersBox) applySamples(userID uuid.UUID, resource, provider string, samples ...string) {
	b.Helper()
	b.apply(userID, resource, fmt.Sprintf(`{"user_id":%q,"source":{"provider":%q,"type":"unknown"},"source_id":1,"data":[%s]}`,
		userID, provider, strings.Join(samples, ",")))
}

// sampleJSON returns a sample; offset is null if it is empty.
func sampleJSON(at time.Time, offset string, value any, unit string) string {
	if offset == "" {
		offset = "null"
	}
	return fmt.Sprintf(`{"id":null,"timestamp":%q,"timezone_offset":%s,"type":"automatic","unit":%q,"value":%v}`,
		at.Format(time.RFC3339Nano), offset, unit, value)
}

// await waits until a page contains a text.
func (b *usersBox) await(path, text string) string {
	b.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		body := b.get(path)
		if strings.Contains(body, text) {
			return body
		}
		if time.Now().After(deadline) {
			b.Fatalf("%s does not contain %q: %s", path, text, body)
		}
	}
}

var _ = context.Background
