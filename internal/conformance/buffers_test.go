package conformance

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

// noteOf returns the note of the n-th order, up to 25 kB long.
func noteOf(n int) string { return strings.Repeat(fmt.Sprintf("note %d, ", n), 1+n%7*400) }

func noteIDOf(n int) uuid.UUID { return uuid.UUID{0: 1, 6: 0x40, 8: 0x80, 15: byte(n)} }

// notedOrder returns the response to the n-th order.
func notedOrder(n int) string {
	return strings.NewReplacer(`"notes": null`, `"notes": "`+noteOf(n)+`"`, orderID.String(), noteIDOf(n).String()).Replace(orderJSON)
}

// serveNotes responds to the n-th order in one of several framings. Every fifth is an APIError, the
// one after it a DecodeError. Some first attempts are truncated or a 503.
func serveNotes() http.Handler {
	var mu sync.Mutex
	attempts := map[string]int{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(uuid.MustParse(strings.TrimPrefix(r.URL.Path, "/v3/order/"))[15])
		mu.Lock()
		key := r.URL.Path + r.Header.Get("X-Call")
		attempts[key]++
		isFirst := attempts[key] == 1
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		body, status := notedOrder(n), http.StatusOK
		switch {
		case isFirst && n%32 == 7:
			w.Header().Set("Content-Length", strconv.Itoa(len(body)+1))
		case isFirst && n%32 == 13:
			status = http.StatusServiceUnavailable
		case n%5 == 0:
			body, status = `{"detail": "`+noteOf(n)+`"}`, http.StatusNotFound
		case n%5 == 1:
			body = `{"detail": "` + noteOf(n) + `",}`
		}
		var out io.Writer = w
		if n%3 == 0 && w.Header().Get("Content-Length") == "" {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			defer z.Close()
			out = z
		}
		w.WriteHeader(status)
		io.WriteString(out, body[:len(body)/2])
		if n%3 == 1 {
			_ = http.NewResponseController(w).Flush()
		}
		io.WriteString(out, body[len(body)/2:])
	})
}

// notedCall is what is left of the calls for the n-th order.
type notedCall struct {
	order    *labhealth.Order
	err      error
	response labhealth.Response
	raw      json.RawMessage
	kept     keptJSON
}

// keptJSON keeps what encoding/json passes to it, although it must not.
type keptJSON struct{ document []byte }

func (k *keptJSON) UnmarshalJSON(b []byte) error { k.document = b; return nil }

func (c *notedCall) run(ctx context.Context, client *labhealth.Client, n int) {
	path := "/v3/order/" + noteIDOf(n).String()
	name := func(call string) labhealth.CallOption { return labhealth.WithHeader("X-Call", call) }
	c.order, c.err = client.Orders.Get(ctx, noteIDOf(n), name("get"), labhealth.WithResponse(&c.response))
	_ = client.Do(ctx, "GET", path, nil, &c.raw, name("raw"))
	_ = client.Do(ctx, "GET", path, nil, &c.kept, name("kept"))
	abandoned, cancel := context.WithTimeout(ctx, time.Duration(n)*10*time.Microsecond)
	defer cancel()
	_, _ = client.Orders.Get(abandoned, noteIDOf(n), name("abandoned"))
}

func (c *notedCall) check(t *testing.T, n int) {
	var rejected *labhealth.APIError
	var unreadable *labhealth.DecodeError
	switch {
	case n%5 == 0:
		if !errors.As(c.err, &rejected) || string(rejected.Body()) != `{"detail": "`+noteOf(n)+`"}` || string(c.response.Body) != string(rejected.Body()) {
			t.Errorf("order %d: %v, %.100q", n, c.err, c.response.Body)
		}
	case n%5 == 1:
		if !errors.As(c.err, &unreadable) || string(unreadable.Body()) != `{"detail": "`+noteOf(n)+`",}` || string(c.response.Body) != string(unreadable.Body()) {
			t.Errorf("order %d: %v, %.100q", n, c.err, c.response.Body)
		}
	case c.err != nil:
		t.Errorf("order %d: %v", n, c.err)
	default:
		want := wantOrder()
		want.ID, want.Notes = noteIDOf(n), new(noteOf(n))
		equal(t, want, *c.order)
		for _, body := range [][]byte{c.order.RawJSON(), c.response.Body, c.raw, c.kept.document} {
			if string(body) != notedOrder(n) {
				t.Errorf("order %d: %.100q", n, body)
			}
		}
	}
}

// What calls return and report stays as it was received while other calls read into the buffers
// that were released, which the tests of this package overwrite.
func TestBodiesOutliveCalls(t *testing.T) {
	server := httptest.NewServer(serveNotes())
	defer server.Close()
	for _, native := range []bool{true, false} {
		var debugged safeBuffer
		transport := http.RoundTripper(nil)
		if !native {
			own := http.DefaultTransport.(*http.Transport).Clone()
			defer own.CloseIdleConnections()
			transport = roundTripper(own.RoundTrip)
		}
		client := faultClient(t, server.URL, transport, labhealth.WithDebug(&debugged))
		calls := make([]notedCall, 120)
		var all sync.WaitGroup
		for worker := range 8 {
			all.Go(func() {
				for n := worker; n < len(calls); n += 8 {
					calls[n].run(t.Context(), client, n)
				}
			})
		}
		all.Wait()
		for n := range calls {
			calls[n].check(t, n)
		}
		if strings.Count(debugged.String(), noteIDOf(2).String()) < 6 {
			t.Error("WithDebug did not write the path and the body of three responses")
		}
		server.Config.Handler = serveNotes()
	}
}
