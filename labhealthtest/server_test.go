package labhealthtest_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

func TestKey(t *testing.T) {
	srv := newServer(t)
	for _, test := range []struct {
		name, key, path, body string
		status                int
	}{
		{"missing", "", "/v2/user/", `{"detail":"Missing token"}`, 401},
		{"invalid", "sk_us_wrong", "/v2/user/", `{"detail":"Invalid token"}`, 401},
		{"truncated", srv.APIKey[:20], "/v2/user/", `{"detail":"Invalid token"}`, 401},
		{"missing on an unknown path", "", "/nowhere", `{"detail":"Missing token"}`, 401},
		{"valid", srv.APIKey, "/v2/user/", `{"users":[],"total":0,"offset":0,"limit":100}`, 200},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := do(t, srv, "GET", test.path, "", "x-service-api-key", test.key)
			check(t, got, test.status, test.body)
			if test.key != "" && strings.Contains(got.body, test.key) {
				t.Error("the response contains the key")
			}
		})
	}
}

func TestRouting(t *testing.T) {
	srv := newServer(t)
	check(t, do(t, srv, "GET", "/v4/order", ""), 404, `{"detail":"Not Found"}`)
	check(t, do(t, srv, "GET", "/v3/order/", ""), 404, `{"detail":"Not Found"}`)
	check(t, do(t, srv, "GET", "/", ""), 404, `{"detail":"Not Found"}`)
	got := do(t, srv, "DELETE", "/v3/order/5b41f610-ebc5-4803-8f0c-a61c3bdc7f01", "")
	check(t, got, 405, `{"detail":"Method Not Allowed"}`)
	if allow := got.header.Get("Allow"); allow != "PATCH, GET" {
		t.Errorf("Allow: %s", allow)
	}
}

func TestHeaders(t *testing.T) {
	srv := newServer(t)
	trace := regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-01$`)
	seen := map[string]bool{}
	for _, path := range []string{"/v2/user/", "/nowhere", "/v2/user/?limit=x"} {
		got := do(t, srv, "GET", path, "")
		if ct := got.header.Get("Content-Type"); ct != "application/json" {
			t.Errorf("%s: content type %s", path, ct)
		}
		id := got.header.Get("traceresponse")
		if !trace.MatchString(id) || seen[id] {
			t.Errorf("%s: traceresponse %q", path, id)
		}
		seen[id] = true
	}
}

func TestRequests(t *testing.T) {
	srv := newServer(t)
	do(t, srv, "GET", "/v2/user/resolve/a%2Fb?x=%20y", "", "X-Test", "1", "Authorization", "Bearer secret")
	do(t, srv, "POST", "/v2/user", `{"client_user_id": "a/b"}`, "x-service-api-key", "wrong")
	got := srv.Requests()
	if srv.RequestCount() != len(got) {
		t.Errorf("%d requests, %d logged", srv.RequestCount(), len(got))
	}
	for i := range got {
		for name, values := range got[i].Header {
			if v := strings.Join(values, " "); strings.Contains(v, srv.APIKey) || strings.Contains(v, "secret") {
				t.Errorf("header %s contains a key", name)
			}
		}
		got[i].Header = http.Header{"X-Test": got[i].Header["X-Test"]}
	}
	want := []labhealthtest.Request{
		{
			Number: 1, Method: "GET", Path: "/v2/user/resolve/a%2Fb?x=%20y", Operation: "GET /v2/user/resolve/{client_user_id}",
			Header: http.Header{"X-Test": {"1"}}, Body: []byte{}, StatusCode: 404, ReceivedAt: noon,
		},
		{
			Number: 2, Method: "POST", Path: "/v2/user", Operation: "POST /v2/user",
			Header: http.Header{"X-Test": nil}, Body: []byte(`{"client_user_id": "a/b"}`), StatusCode: 401, ReceivedAt: noon,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// The log has the time of requests, what faults did, and the latest response bodies. No header that
// carries a key is logged, also of a request that fails.
func TestRequestLog(t *testing.T) {
	now := &clock{now: noon}
	srv := newServer(t, labhealthtest.WithClock(now.Now), labhealthtest.WithResponseLog(2))
	activities := srv.Watch(t.Context())
	keys := []string{
		"X-Service-Api-Key", srv.APIKey, "X-Management-Key", srv.OrgKey, "X-Service-Org-Key", srv.OrgKey, "Authorization", "Bearer " + srv.APIKey,
	}
	fault := labhealthtest.FaultResponse(503, "")
	do(t, srv, "GET", "/nowhere", "", keys...)
	noError(t, srv.FailAfter("POST /v2/user", 1, func(w http.ResponseWriter, r *http.Request, body []byte) {
		now.Set(noon.Add(time.Hour)) // is not part of Took
		fault(w, r, body)
	}))
	do(t, srv, "POST", "/v2/user", `{"client_user_id": 1}`, keys...)
	noError(t, srv.FailBefore("", 1, fault))
	do(t, srv, "DELETE", "/v2/user/"+unknownID, "", keys...)
	do(t, srv, "DELETE", "/v2/user/"+unknownID, "", keys...)

	const notFound = `{"detail":"User not found"}`
	const rejected = `{"detail":[{"type":"string_type","loc":["body","client_user_id"],"msg":"Input should be a valid string","input":1}]}`
	deleted := labhealthtest.Request{
		Method: "DELETE", Path: "/v2/user/" + unknownID, Operation: "DELETE /v2/user/{user_id}", Body: []byte{}, ReceivedAt: noon.Add(time.Hour),
	}
	failed, processed := deleted, deleted
	failed.Number, failed.Faulted = 3, true
	processed.Number, processed.StatusCode, processed.Response = 4, 404, []byte(notFound)
	want := []labhealthtest.Request{
		{Number: 1, Method: "GET", Path: "/nowhere", StatusCode: 404, Body: []byte{}, ReceivedAt: noon},
		{
			Number: 2, Method: "POST", Path: "/v2/user", Operation: "POST /v2/user", StatusCode: 422, Body: []byte(`{"client_user_id": 1}`),
			ReceivedAt: noon, Faulted: true,
		},
		failed,
		processed,
	}
	got := srv.Requests()
	for i, r := range got {
		if text := fmt.Sprint(r.Header); strings.Contains(text, srv.APIKey) || strings.Contains(text, srv.OrgKey) {
			t.Errorf("request %d has a key: %s", r.Number, text)
		}
		got[i].Header = nil
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}

	// Activities have all bodies.
	want[0].Response, want[1].Response = []byte(`{"detail":"Not Found"}`), []byte(rejected)
	srv.Close()
	got = nil
	for a := range activities {
		if text := fmt.Sprint(a.Request.Header); strings.Contains(text, srv.APIKey) || strings.Contains(text, srv.OrgKey) {
			t.Errorf("activity %d has a key: %s", a.Request.Number, text)
		}
		r := *a.Request
		r.Header = nil
		got = append(got, r)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("activities (-want +got):\n%s", diff)
	}
}

func TestOperations(t *testing.T) {
	names := labhealthtest.Operations()
	for _, want := range []string{"POST /v3/order/import", "GET /orders", "PATCH /v3/order/{order_id}", "POST /v1/org/{org_id}/team"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is missing", want)
		}
	}
	srv := newServer(t)
	for _, name := range names {
		if err := srv.FailAfter(name, 0, labhealthtest.FaultClosed); err != nil {
			t.Error(err)
		}
	}
	names[0] = "" // a copy
	if labhealthtest.Operations()[0] == "" {
		t.Error("callers share the list")
	}
}

func TestBodyTooLarge(t *testing.T) {
	srv := newServer(t)
	got := do(t, srv, "POST", "/v2/user", `{"client_user_id":"`+strings.Repeat("a", 16<<20)+`"}`)
	check(t, got, 413, `{"detail":"Request body too large"}`)
}

func TestSeed(t *testing.T) {
	a, b, c := newServer(t), newServer(t), newServer(t, labhealthtest.WithSeed(2))
	// Reads do not change the IDs of what is created next.
	do(t, a, "GET", "/v2/user/", "")
	for _, srv := range []*labhealthtest.Server{a, b, c} {
		srv.AddUsers(2)
		srv.AddOrders(2)
	}
	if a.APIKey != b.APIKey || a.TeamID != b.TeamID || !cmp.Equal(a.Orders(), b.Orders()) {
		t.Error("the same seed gave different ids")
	}
	if a.APIKey == c.APIKey || a.TeamID == c.TeamID || cmp.Equal(a.Orders(), c.Orders()) {
		t.Error("different seeds gave the same ids")
	}
	d, e := labhealthtest.NewServer(t), labhealthtest.NewServer(t)
	if d.APIKey == e.APIKey || d.TeamID == e.TeamID {
		t.Error("without a seed the ids are the same")
	}
}

func TestListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	srv := newServer(t, labhealthtest.WithListener(l))
	if want := "http://" + l.Addr().String(); srv.URL != want {
		t.Errorf("URL %s, want %s", srv.URL, want)
	}
	check(t, do(t, srv, "GET", "/v2/user", ""), 200, `{"users":[],"total":0,"offset":0,"limit":100}`)
}

// With connections in memory, the server runs in a synctest bubble with its clock.
func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newMemoryListener()
		srv := labhealthtest.NewServer(t, labhealthtest.WithListener(l))
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: l.dial}}
		time.Sleep(24 * time.Hour) // takes no time in a bubble
		srv.AddUser("ada")
		req, err := http.NewRequest("GET", srv.URL+"/v2/user/resolve/ada", nil)
		noError(t, err)
		req.Header.Set("x-service-api-key", srv.APIKey)
		resp, err := client.Do(req)
		noError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		noError(t, err)
		if !strings.Contains(string(body), `"created_on":"2000-01-02T00:00:00+00:00"`) {
			t.Errorf("%s", body)
		}
	})
}

func TestClose(t *testing.T) {
	srv, err := labhealthtest.Start()
	noError(t, err)
	client := &http.Client{Transport: &http.Transport{}} // with an idle connection
	get := func() error {
		req, err := http.NewRequest("GET", srv.URL+"/v2/user", nil)
		noError(t, err)
		resp, err := client.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	noError(t, get())
	srv.Close()
	srv.Close()
	if get() == nil {
		t.Error("the server responds after Close")
	}
	if n := len(srv.Requests()); n != 1 {
		t.Errorf("%d requests in the log", n)
	}
	if err := srv.DeliverTo("http://127.0.0.1:1"); err == nil {
		t.Error("DeliverTo succeeds after Close")
	}
	if err := srv.Send(nil); err == nil {
		t.Error("Send succeeds after Close")
	}
}

// For the race detector.
func TestConcurrent(t *testing.T) {
	srv := newServer(t)
	rec := newReceiver(t)
	noError(t, srv.DeliverTo(rec.URL))
	user := srv.AddUser("ada")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			sample := "S-" + string(rune('a'+i))
			got := do(t, srv, "POST", "/v3/order/import", replaceOnce(t, bodyFor(t, importBody, user), "SAMPLE-1", sample))
			id := decode[placed](t, got).Order.ID
			if _, err := srv.Advance(id); err != nil {
				t.Error(err)
			}
			do(t, srv, "GET", "/orders", "")
			srv.AddUsers(1)
			srv.AddOrders(1)
			srv.Requests()
			if err := srv.Connect(user, "oura"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	noError(t, srv.Flush(t.Context()))
	if n := len(srv.Orders()); n != 16 {
		t.Errorf("%d orders, want 16", n)
	}
	if n := len(srv.Deliveries()); n != 8*4 {
		t.Errorf("%d deliveries, want 32", n)
	}
}
