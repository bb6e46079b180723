package transport

import (
	"net/http"
	"testing"
	"time"
)

// An escaped slash stays one, or nothing is sent.
func TestAddressIsSentAsItIs(t *testing.T) {
	var sent string
	c := NewClient(&http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		sent = r.URL.RequestURI()
		return &http.Response{StatusCode: 204, Body: http.NoBody, Request: r}, nil
	})})
	for _, test := range []struct{ path, want string }{
		{"/v2/user/a", "/v2/user/a"},
		{"/v2/user/a%2Fb", "/v2/user/a%2Fb"},
		{"/v2/user/%C3%BC:@;=&+$,!*'()~-_.", "/v2/user/%C3%BC:@;=&+$,!*'()~-_."},
		{"/a?b=c%2Fd&e=+f", "/a?b=c%2Fd&e=+f"},
		{`/v2/user/a%2Fb"`, ""}, // net/url would make two segments of it
		{"/v2/user/ü", ""},
		{"/v2/user/a b", ""},
		{"/v2/%zz", ""},
		{"/\n", ""},
	} {
		sent = ""
		r := send(c, "GET", "https://api.example.com"+test.path)
		if sent != test.want || (sent == "" && (r.Outcome != NotSent || r.Err == nil)) {
			t.Errorf("%q was sent to %q, want %q; %v, %v", test.path, sent, test.want, r.Outcome, r.Err)
		}
	}
}

// A call that succeeds at once allocates what net/http needs, the hooks of the proof and the
// deadline: the loop for other attempts is part of the call.
func TestAllocations(t *testing.T) {
	header := http.Header{"Content-Type": {"application/json"}}
	c := NewClient(&http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: header, Body: http.NoBody, Request: r}, nil
	})})
	q := &Request{
		Method: "GET", URL: "https://api.example.com/v3/order/x", Header: http.Header{"Accept": {"application/json"}},
		MaxBody: 1 << 20, Policy: Policy{Attempts: 3, ReadTimeout: time.Minute},
	}
	got := testing.AllocsPerRun(200, func() { c.Do(t.Context(), q, accept).Release() })
	if got > 30 { // 29, and under the race detector, a pool that drops elements on purpose
		t.Errorf("%v allocations, want at most 30", got)
	}
}

// accept decodes nothing.
func accept(*Response) error { return nil }

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
