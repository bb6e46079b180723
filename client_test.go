package labhealth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go"
)

const httpsOnly = "labhealth: the base URL must be https (http is for loopback addresses only)"
const noParts = "labhealth: the base URL must have no user info, query or fragment"
const notAddress = "labhealth: the base URL must look like https://host or https://host/path"

func TestNewClientRefuses(t *testing.T) {
	base := labhealth.WithBaseURL(testURL)
	type options = []labhealth.Option
	addresses := labhealth.BaseURLs{labhealth.SandboxUS: testURL, labhealth.ProductionEU: "https://eu.example.com"}
	const badPort = "labhealth: the port of the base URL must be between 1 and 65535"
	const badPath = "labhealth: the path of the base URL must be escaped and have no . or .. segments"
	const badOrdersPath = `labhealth: WithPath: the path of "GET /orders" must begin with one /, be escaped, have no query and no . or .. segments, and have the parameters []`
	const badKey = "labhealth: the API key must not be empty and may hold printable ASCII only"
	for _, test := range []struct {
		name, key string
		opts      options
		want      string
	}{
		{"empty key", "", options{base}, badKey},
		{"line end in the key", testKey + "\n", options{base}, badKey},
		{"space in the key", "sk test", options{base}, badKey},
		{"key that is not ASCII", "sk_tést", options{base}, badKey},
		{"no address", testKey, nil, `labhealth: no base URL: pass WithBaseURL("https://…") or WithEnvironment(environment, urls)`},
		{"two addresses", testKey, options{base, base}, "labhealth: more than one base URL: WithBaseURL and WithBaseURL"},
		{"address and environment", testKey, options{base, labhealth.WithEnvironment(labhealth.SandboxUS, addresses)},
			"labhealth: more than one base URL: WithBaseURL and WithEnvironment"},
		{"environment without address", testKey, options{labhealth.WithEnvironment(labhealth.ProductionUS, addresses)},
			`labhealth: no base URL for the environment "production US": there are URLs for ["production EU" "sandbox US"]`},
		{"environment without addresses", testKey, options{labhealth.WithEnvironment(labhealth.ProductionUS, nil)},
			`labhealth: no base URL for the environment "production US": there are URLs for []`},
		{"environment with an empty address", testKey, options{labhealth.WithEnvironment(labhealth.SandboxEU, labhealth.BaseURLs{labhealth.SandboxEU: ""})}, notAddress},

		{"empty address", testKey, options{labhealth.WithBaseURL("")}, notAddress},
		{"no scheme", testKey, options{labhealth.WithBaseURL("api.example.com")}, notAddress},
		{"no host", testKey, options{labhealth.WithBaseURL("https:///v3")}, notAddress},
		{"port only", testKey, options{labhealth.WithBaseURL("https://:443")}, notAddress},
		{"opaque", testKey, options{labhealth.WithBaseURL("https:api.example.com")}, notAddress},
		{"control character", testKey, options{labhealth.WithBaseURL("https://api.example.com\n")}, notAddress},
		{"bad port", testKey, options{labhealth.WithBaseURL("https://api.example.com:x")}, notAddress},
		{"port beyond the last", testKey, options{labhealth.WithBaseURL("https://api.example.com:65536")}, badPort},
		{"port with five nines", testKey, options{labhealth.WithBaseURL("https://api.example.com:99999/v1")}, badPort},
		{"port 0", testKey, options{labhealth.WithBaseURL("https://api.example.com:0")}, badPort},
		{"empty port", testKey, options{labhealth.WithBaseURL("https://api.example.com:/v1")}, badPort},
		{"parent", testKey, options{labhealth.WithBaseURL("https://api.example.com/..")}, badPath},
		{"dot segment", testKey, options{labhealth.WithBaseURL("https://api.example.com/a/./b/")}, badPath},
		{"escaped parent", testKey, options{labhealth.WithBaseURL("https://api.example.com/%2e%2E/v1")}, badPath},
		{"two slashes", testKey, options{labhealth.WithBaseURL("https://api.example.com//evil/v1")}, badPath},
		{"NUL in the path", testKey, options{labhealth.WithBaseURL("https://api.example.com/a%00")}, badPath},
		{"line end in the path", testKey, options{labhealth.WithBaseURL("https://api.example.com/a%0d%0aHost:b")}, badPath},
		{"user info", testKey, options{labhealth.WithBaseURL("https://user:hunter2@api.example.com")}, noParts},
		{"query", testKey, options{labhealth.WithBaseURL("https://api.example.com?team=hunter2")}, noParts},
		{"empty query", testKey, options{labhealth.WithBaseURL("https://api.example.com?")}, noParts},
		{"fragment", testKey, options{labhealth.WithBaseURL("https://api.example.com#hunter2")}, noParts},
		{"empty fragment", testKey, options{labhealth.WithBaseURL("https://api.example.com#")}, noParts},
		{"http", testKey, options{labhealth.WithBaseURL("http://api.example.com")}, httpsOnly},
		{"http to something like loopback", testKey, options{labhealth.WithBaseURL("http://127.0.0.1.example.com")}, httpsOnly},
		{"http to localhost's subdomain", testKey, options{labhealth.WithBaseURL("http://localhost.example.com")}, httpsOnly},
		{"http to a private address", testKey, options{labhealth.WithBaseURL("http://10.0.0.1")}, httpsOnly},
		{"other scheme", testKey, options{labhealth.WithBaseURL("ftp://api.example.com")}, httpsOnly},

		{"nil http.Client", testKey, options{base, labhealth.WithHTTPClient(nil)}, "labhealth: WithHTTPClient needs an http.Client"},
		{"nil observer", testKey, options{base, labhealth.WithObserver(nil)}, "labhealth: WithObserver needs a function"},
		{"nil logger", testKey, options{base, labhealth.WithLogger(nil)}, "labhealth: WithLogger needs a logger"},
		{"no body", testKey, options{base, labhealth.WithBodyLimit(0)}, "labhealth: WithBodyLimit must be positive"},
		{"negative body", testKey, options{base, labhealth.WithBodyLimit(-1)}, "labhealth: WithBodyLimit must be positive"},
		{"empty user agent", testKey, options{base, labhealth.WithUserAgent("")}, "labhealth: WithUserAgent needs text that can be sent in a header"},
		{"user agent of two lines", testKey, options{base, labhealth.WithUserAgent("a\r\nb: c")}, "labhealth: WithUserAgent needs text that can be sent in a header"},
		{"negative attempts", testKey, options{base, labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: -1})}, "labhealth: RetryPolicy.MaxAttempts must not be negative"},
		{"negative BaseWait", testKey, options{base, labhealth.WithRetry(labhealth.RetryPolicy{BaseWait: -1})}, "labhealth: RetryPolicy.BaseWait must not be negative"},
		{"negative MaxWait", testKey, options{base, labhealth.WithRetry(labhealth.RetryPolicy{MaxWait: -1})}, "labhealth: RetryPolicy.MaxWait must not be negative"},
		{"negative MaxRetryAfter", testKey, options{base, labhealth.WithRetry(labhealth.RetryPolicy{MaxRetryAfter: -1})}, "labhealth: RetryPolicy.MaxRetryAfter must not be negative"},
		{"negative ReadTimeout", testKey, options{base, labhealth.WithRetry(labhealth.RetryPolicy{ReadTimeout: -1})}, "labhealth: RetryPolicy.ReadTimeout must not be negative"},
		{"negative WriteTimeout", testKey, options{base, labhealth.WithRetry(labhealth.RetryPolicy{WriteTimeout: -1})}, "labhealth: RetryPolicy.WriteTimeout must not be negative"},

		{"path without its parameter", testKey, options{base, labhealth.WithPath("GET /v3/order/{order_id}", "/v4/order")},
			`labhealth: WithPath: the path of "GET /v3/order/{order_id}" must begin with one /, be escaped, have no query and no . or .. segments, and have the parameters ["order_id"]`},
		{"path with a wrong parameter", testKey, options{base, labhealth.WithPath("GET /v3/order/{order_id}", "/v4/order/{id}")},
			`labhealth: WithPath: the path of "GET /v3/order/{order_id}" must begin with one /, be escaped, have no query and no . or .. segments, and have the parameters ["order_id"]`},
		{"path with a parameter twice", testKey, options{base, labhealth.WithPath("GET /v3/order/{order_id}", "/v4/{order_id}/{order_id}")},
			`labhealth: WithPath: the path of "GET /v3/order/{order_id}" must begin with one /, be escaped, have no query and no . or .. segments, and have the parameters ["order_id"]`},
		{"path with a parameter too many", testKey, options{base, labhealth.WithPath("GET /orders", "/v4/{team_id}/orders")},
			`labhealth: WithPath: the path of "GET /orders" must begin with one /, be escaped, have no query and no . or .. segments, and have the parameters []`},
		{"path of a parent", testKey, options{base, labhealth.WithPath("GET /orders", "/../x")}, badOrdersPath},
		{"path of an escaped parent", testKey, options{base, labhealth.WithPath("GET /orders", "/%2e%2e/x")}, badOrdersPath},
		{"path with NUL", testKey, options{base, labhealth.WithPath("GET /orders", "/v3/orders%00")}, badOrdersPath},
		{"path with a line end", testKey, options{base, labhealth.WithPath("GET /orders", "/v3/orders%0d%0a")}, badOrdersPath},
		{"path that names a host", testKey, options{base, labhealth.WithPath("GET /orders", "//evil.example.org/orders")}, badOrdersPath},
		{"path without a slash", testKey, options{base, labhealth.WithPath("GET /orders", "v3/orders")},
			`labhealth: WithPath: the path of "GET /orders" must begin with one /, be escaped, have no query and no . or .. segments, and have the parameters []`},
		{"path with a query", testKey, options{base, labhealth.WithPath("GET /orders", "/v3/orders?x=1")},
			`labhealth: WithPath: the path of "GET /orders" must begin with one /, be escaped, have no query and no . or .. segments, and have the parameters []`},
		{"path that is not escaped", testKey, options{base, labhealth.WithPath("GET /orders", "/v3/%zz")},
			`labhealth: WithPath: the path of "GET /orders" must begin with one /, be escaped, have no query and no . or .. segments, and have the parameters []`},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, err := labhealth.NewClient(test.key, test.opts...)
			if client != nil || errorText(err) != test.want {
				t.Errorf("error %q\n want %q", errorText(err), test.want)
			}
			if strings.Contains(errorText(err), "hunter2") || strings.Contains(errorText(err), "example.com") {
				t.Error("the error shows the address")
			}
		})
	}
}

// The error names what there is, so that a misspelt operation is found.
func TestWithPathUnknownOperation(t *testing.T) {
	_, err := labhealth.NewClient(testKey, labhealth.WithBaseURL(testURL), labhealth.WithPath("GET /order", "/v3/orders"))
	want := `labhealth: WithPath: unknown operation "GET /order": want one of ["GET /orders" "GET /v2/introspect/historical_pull" ` +
		`"GET /v2/timeseries/workouts/{workout_id}/stream" "POST /v2/user" "GET /v2/user/" `
	if !strings.HasPrefix(errorText(err), want) {
		t.Errorf("error %q\n want %q", errorText(err), want)
	}
}

func TestAddresses(t *testing.T) {
	env := func(e labhealth.Environment) labhealth.Option {
		return labhealth.WithEnvironment(e, labhealth.BaseURLs{
			labhealth.ProductionUS: "https://us.example.com", labhealth.ProductionEU: "https://eu.example.com",
			labhealth.SandboxUS: "https://us.sandbox.example.com", labhealth.SandboxEU: "https://eu.sandbox.example.com",
		})
	}
	for _, test := range []struct {
		opt  labhealth.Option
		want string
	}{
		{labhealth.WithBaseURL("https://api.example.com"), "https://api.example.com/v3/order/import"},
		{labhealth.WithBaseURL("https://api.example.com/"), "https://api.example.com/v3/order/import"},
		{labhealth.WithBaseURL("https://api.example.com/lab//"), "https://api.example.com/lab/v3/order/import"},
		{labhealth.WithBaseURL("https://api.example.com:8443/a%2Fb"), "https://api.example.com:8443/a%2Fb/v3/order/import"},
		{labhealth.WithBaseURL("HTTPS://api.example.com"), "https://api.example.com/v3/order/import"},
		{labhealth.WithBaseURL("http://127.0.0.1:8080"), "http://127.0.0.1:8080/v3/order/import"},
		{labhealth.WithBaseURL("http://127.8.9.1"), "http://127.8.9.1/v3/order/import"},
		{labhealth.WithBaseURL("http://[::1]:8080"), "http://[::1]:8080/v3/order/import"},
		{labhealth.WithBaseURL("http://localhost:8080"), "http://localhost:8080/v3/order/import"},
		{env(labhealth.ProductionUS), "https://us.example.com/v3/order/import"},
		{env(labhealth.ProductionEU), "https://eu.example.com/v3/order/import"},
		{env(labhealth.SandboxUS), "https://us.sandbox.example.com/v3/order/import"},
		{env(labhealth.SandboxEU), "https://eu.sandbox.example.com/v3/order/import"},
	} {
		s := &script{replies: []reply{{status: 200, body: `{}`}}}
		client, err := labhealth.NewClient(testKey, nil, test.opt, labhealth.WithHTTPClient(&http.Client{Transport: s}))
		if err != nil {
			t.Errorf("%s: %v", test.want, err)
			continue
		}
		if err := client.Do(t.Context(), "POST", "/v3/order/import", nil, nil); err != nil {
			t.Error(err)
		}
		equal(t, test.want, s.only(t).URL)
	}
}

// A moved operation keeps its name in errors, and its parameters wherever the path has them.
func TestWithPath(t *testing.T) {
	client, s := scripted(t, []reply{{status: 404, body: `{}`}, {status: 404, body: `{}`}, {status: 404, body: `{}`}},
		labhealth.WithPath("GET /orders", "/v3/orders"),
		labhealth.WithPath("PATCH /v3/order/{order_id}", "/lab/{order_id}/update"),
		labhealth.WithPath("GET /v2/user/", "/v2/user"))
	_, err := client.Orders.List(t.Context(), labhealth.ListOrdersParams{Page: 2})
	equal(t, "labhealth: GET /orders: 404 Not Found", errorText(err))
	_, err = client.Orders.Release(t.Context(), orderID)
	equal(t, "labhealth: PATCH /v3/order/{order_id}: 404 Not Found", errorText(err))
	_, err = client.Users.List(t.Context(), labhealth.ListUsersParams{})
	equal(t, "labhealth: GET /v2/user/: 404 Not Found", errorText(err))
	var urls []string
	for _, r := range s.sent {
		urls = append(urls, r.Method+" "+r.URL)
	}
	equal(t, []string{
		"GET https://api.example.com/v3/orders?page=2",
		"PATCH https://api.example.com/lab/0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b/update",
		"GET https://api.example.com/v2/user",
	}, urls)
}

func TestWithHTTPClientIsCopied(t *testing.T) {
	jar := must[*cookiejar.Jar](t)(cookiejar.New(nil))
	base := must[*url.URL](t)(url.Parse(testURL))
	jar.SetCookies(base, []*http.Cookie{{Name: "region", Value: "us"}})
	s := &script{replies: []reply{{status: 302, header: []string{"Location", "/elsewhere"}}, {status: 200, body: `{"a":1}`}}}
	own := &http.Client{
		Transport: s, Jar: jar, Timeout: time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			t.Error("the caller's redirect policy was asked")
			return nil
		},
	}
	client := must[*labhealth.Client](t)(labhealth.NewClient(testKey, labhealth.WithBaseURL(testURL), labhealth.WithHTTPClient(own)))
	own.Transport = nil // A later change has no effect.
	var got json.RawMessage
	if err := client.Do(t.Context(), "GET", "/v2/anything", nil, &got); err != nil {
		t.Fatal(err)
	}
	equal(t, `{"a":1}`, string(got))
	equal(t, "https://api.example.com/elsewhere", s.sent[1].URL)
	equal(t, "region=us", s.sent[1].Header.Get("Cookie"))
	if own.Timeout != time.Minute || own.CheckRedirect == nil || own.Transport != nil {
		t.Error("the http.Client was changed")
	}
}

// counting counts how often its idle connections were closed.
type counting struct {
	*script
	closed int
}

func (c *counting) CloseIdleConnections() { c.closed++ }

// Neither a failing call nor the client closes connections that belong to somebody else.
func TestTransportsOfOthersAreLeftAlone(t *testing.T) {
	c := &counting{script: &script{replies: []reply{{err: errors.New("broken")}, {status: 500}}}}
	client := must[*labhealth.Client](t)(labhealth.NewClient(testKey, labhealth.WithBaseURL(testURL),
		labhealth.WithHTTPClient(&http.Client{Transport: c}), labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 1})))
	for range 2 {
		if err := client.Do(t.Context(), "POST", "/v2/anything", nil, nil); err == nil {
			t.Error("no error")
		}
	}
	client.CloseIdleConnections()
	equal(t, 0, c.closed)
}

// The client's own transport: one connection for many calls, closed on demand (goleak looks after the rest).
func TestOwnTransport(t *testing.T) {
	addresses := map[string]bool{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		addresses[r.RemoteAddr] = true
		fmt.Fprint(w, `{}`)
	}))
	defer srv.Close()
	client := must[*labhealth.Client](t)(labhealth.NewClient(testKey, labhealth.WithBaseURL(srv.URL)))
	for _, closeAfter := range []bool{false, true, false} {
		if err := client.Do(t.Context(), "GET", "/", nil, nil); err != nil {
			t.Fatal(err)
		}
		if closeAfter {
			client.CloseIdleConnections()
		}
	}
	equal(t, 2, len(addresses))
	client.CloseIdleConnections()
}

func TestObserversAndLogger(t *testing.T) {
	var seen []labhealth.Attempt
	var text bytes.Buffer
	type key struct{}
	observer := func(ctx context.Context, a labhealth.Attempt) {
		if ctx.Value(key{}) != "kept" {
			t.Error("the observer has another context")
		}
		a.Duration = 0
		seen = append(seen, a)
	}
	logger := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == "duration" || a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	var second int
	client, _ := scripted(t, []reply{
		{status: 200, body: `{"orders":[]}`, header: []string{"Traceresponse", "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"}},
		{status: 503, body: "Ada Example"},
		{err: errors.New("Ada Example")},
	}, labhealth.WithObserver(observer), labhealth.WithLogger(logger), labhealth.WithObserver(func(context.Context, labhealth.Attempt) { second++ }))
	ctx := context.WithValue(t.Context(), key{}, "kept")
	for range 3 {
		_, _ = client.Orders.List(ctx, labhealth.ListOrdersParams{PatientName: "Ada Example"})
	}
	equal(t, []labhealth.Attempt{
		{Op: "GET /orders", Number: 1, StatusCode: 200, RequestID: "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01", Outcome: labhealth.OutcomeApplied},
		{Op: "GET /orders", Number: 1, StatusCode: 503, Outcome: labhealth.OutcomeUnknown},
		{Op: "GET /orders", Number: 1, Outcome: labhealth.OutcomeUnknown},
	}, seen)
	equal(t, 3, second)
	equal(t, `level=DEBUG msg="labhealth request" op="GET /orders" attempt=1 status=200 request_id=00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01 outcome=applied
level=WARN msg="labhealth request" op="GET /orders" attempt=1 status=503 request_id="" outcome=unknown
level=WARN msg="labhealth request" op="GET /orders" attempt=1 status=0 request_id="" outcome=unknown
`, text.String())
}

func TestWithUserAgent(t *testing.T) {
	client, s := scripted(t, []reply{{status: 200, body: `{}`}}, labhealth.WithUserAgent("clinic/2.1 (+https://example.com)"))
	if err := client.Do(t.Context(), "GET", "/", nil, nil); err != nil {
		t.Fatal(err)
	}
	equal(t, []string{"clinic/2.1 (+https://example.com)"}, s.only(t).Header["User-Agent"])
}

func TestClientShowsNoKey(t *testing.T) {
	client, _ := scripted(t, nil)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		for _, v := range []any{client, *client, client.Orders, *client.Orders, client.Users} {
			if text := fmt.Sprintf(verb, v); strings.Contains(text, testKey) || strings.Contains(text, fmt.Sprintf("%x", testKey)) {
				t.Errorf("%s of %T shows the key", verb, v)
			}
		}
	}
}

func TestDo(t *testing.T) {
	type thing struct {
		Name string `json:"name"`
	}
	var plain thing
	var raw json.RawMessage
	var order labhealth.Order
	for _, test := range []struct {
		name, method, path string
		body, out          any
		opts               []labhealth.CallOption
		reply              reply
		url, sent          string
		check              func() any
		want               any
	}{
		{name: "value to value", method: "POST", path: "/v2/things", body: thing{"<Ada>"}, out: &plain,
			reply: reply{status: 201, body: `{"name":"made"}`}, url: "/v2/things", sent: `{"name":"<Ada>"}`,
			check: func() any { return plain }, want: thing{"made"}},
		{name: "bytes to bytes", method: "PUT", path: "/v2/things/1", body: []byte(` {"a" :1} `), out: &raw,
			reply: reply{status: 200, body: ` {"b" :2} `}, url: "/v2/things/1", sent: `{"a":1}`,
			check: func() any { return string(raw) }, want: `{"b" :2}`},
		{name: "raw message", method: "PATCH", path: "/v2/things/1", body: json.RawMessage(`[null]`),
			reply: reply{status: 200, body: `[]`}, url: "/v2/things/1", sent: `[null]`},
		{name: "type of this package", method: "GET", path: "/v3/order/1", out: &order,
			reply: reply{status: 200, body: `{"id":"0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b","new":1,"has_abn":"?"}`}, url: "/v3/order/1",
			check: func() any { return order.ID.String() + " " + fmt.Sprint(order.Malformed()) },
			want:  "0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b [{has_abn boolean}]"},
		{name: "query", method: "GET", path: "/v2/things", opts: []labhealth.CallOption{
			labhealth.WithQuery("b", "x&y=z #"), labhealth.WithQuery("a", "1"), labhealth.WithQuery("b", "ü")},
			reply: reply{status: 200, body: `{}`}, url: "/v2/things?a=1&b=x%26y%3Dz+%23&b=%C3%BC"},
		{name: "no content", method: "DELETE", path: "/v2/things/1", out: &plain, reply: reply{status: 204}, url: "/v2/things/1",
			check: func() any { return plain }, want: thing{"made"}},
		{name: "nothing to read", method: "POST", path: "/v2/things", reply: reply{status: 200}, url: "/v2/things"},
		{name: "head", method: "HEAD", path: "/v2/things", out: &plain, reply: reply{status: 200}, url: "/v2/things"},
		{name: "trailing slash", method: "GET", path: "/v2/things/", reply: reply{status: 200, body: `1`}, url: "/v2/things/"},
		{name: "root", method: "GET", path: "/", reply: reply{status: 200, body: `"x"`}, url: "/"},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, s := scripted(t, []reply{test.reply})
			if err := client.Do(t.Context(), test.method, test.path, test.body, test.out, test.opts...); err != nil {
				t.Fatal(err)
			}
			header := http.Header{
				"Accept": {"application/json"}, "User-Agent": {"labhealth-go/0.1.0"}, "X-Service-Api-Key": {testKey},
			}
			got := s.only(t)
			if test.sent != "" {
				header["Content-Type"] = []string{"application/json"}
				equal(t, jsonData(t, test.sent), jsonData(t, got.Body))
				got.Body = ""
			}
			equal(t, sent{Method: test.method, URL: testURL + test.url, Header: header}, got)
			if test.check != nil {
				equal(t, test.want, test.check())
			}
		})
	}
}

func TestDoRefuses(t *testing.T) {
	const (
		path    = "labhealth: GET (Do): not sent: path must begin with one / and have no query or fragment (see WithQuery)"
		segment = "labhealth: GET (Do): not sent: path must be escaped and have no . or .. segments"
		method  = "labhealth: Do: not sent: method must be GET, HEAD, POST, PUT, PATCH or DELETE"
		body    = "labhealth: POST (Do): not sent: body must be valid JSON in UTF-8"
	)
	for _, test := range []struct {
		method, path string
		body         any
		want         string
	}{
		{"get", "/", nil, method},
		{"", "/", nil, method},
		{"CONNECT", "/", nil, method},
		{"GET\r\nX: y", "/", nil, method},
		{"GET", "", nil, path},
		{"GET", "v2/user", nil, path},
		{"GET", "//evil.example.com/v2", nil, path},
		{"GET", "https://evil.example.com/", nil, path},
		{"GET", "@evil.example.com/", nil, path},
		{"GET", "/v2/user?limit=1", nil, path},
		{"GET", "/v2/user#x", nil, path},
		{"GET", "/v2/../v3", nil, segment},
		{"GET", "/v2/.", nil, segment},
		{"GET", "/..", nil, segment},
		{"GET", "/v2/%2e%2E/v3", nil, segment},
		{"GET", "/v2/%2e", nil, segment},
		{"GET", "/v2/.%2e", nil, segment},
		{"GET", "/v2/100%", nil, segment},
		{"GET", "/v2/%zz", nil, segment},
		{"GET", "/v2/a b", nil, segment},
		{"GET", "/v2/a\nb", nil, segment},
		{"GET", "/v2/a%0d%0ab", nil, segment},
		{"GET", "/v2/a%00", nil, segment},
		{"GET", "/v2/a\x7f", nil, segment},
		{"GET", "/v2/\xff", nil, segment},
		{"GET", "/v2/%ff", nil, segment},
		{"GET", "/", []byte(`{}`), "labhealth: GET (Do): not sent: body must be nil for GET and HEAD"},
		{"HEAD", "/", 1, "labhealth: HEAD (Do): not sent: body must be nil for GET and HEAD"},
		{"POST", "/", []byte(`{`), body},
		{"POST", "/", []byte(`{} {}`), body},
		{"POST", "/", []byte{}, body},
		{"POST", "/", json.RawMessage("\"\xff\""), body},
		{"POST", "/", func() {}, "labhealth: POST (Do): not sent: body cannot be written as JSON"},
		{"POST", "/", struct{ N labhealth.Nullable[string] }{}, "labhealth: POST (Do): not sent: body cannot be written as JSON"},
	} {
		client, s := scripted(t, nil)
		err := client.Do(t.Context(), test.method, test.path, test.body, nil)
		if errorText(err) != test.want {
			t.Errorf("Do(%q, %q): error %q\n want %q", test.method, test.path, errorText(err), test.want)
		}
		if labhealth.OutcomeOf(err) != labhealth.OutcomeNotSent || len(s.sent) != 0 {
			t.Errorf("Do(%q, %q): outcome %v, %d requests", test.method, test.path, labhealth.OutcomeOf(err), len(s.sent))
		}
	}
}

// What a caller escapes arrives as it was, and stays one segment of the path.
func TestPathSafety(t *testing.T) {
	ids := []string{
		"plain", "a/b", "../admin", "a/../b", "..%2f..", "%2e%2e", "%", "100%25", "a b", "a+b", "ü/ñ", "日本", "3Zru4O8cBEiwGTsXgUQGaQ==",
		"a?b", "a#b", "a;b", "a\\b", "a:b@c", "{user_id}", "…", "\u0085", "a\u2028b",
	}
	for _, through := range []struct {
		name string
		call func(*labhealth.Client, string) error
	}{
		{"Do", func(c *labhealth.Client, id string) error {
			return c.Do(t.Context(), "GET", "/v2/user/resolve/"+url.PathEscape(id), nil, nil)
		}},
		{"Resolve", func(c *labhealth.Client, id string) error {
			_, err := c.Users.Resolve(t.Context(), id)
			return err
		}},
	} {
		t.Run(through.name, func(t *testing.T) {
			var paths []string
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				raw, _, _ := strings.Cut(r.RequestURI, "?")
				paths = append(paths, raw)
				fmt.Fprint(w, `{"user_id":"0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b"}`)
			}))
			defer srv.Close()
			client := must[*labhealth.Client](t)(labhealth.NewClient(testKey, labhealth.WithBaseURL(srv.URL)))
			defer client.CloseIdleConnections()
			for i, id := range ids {
				if err := through.call(client, id); err != nil {
					t.Fatalf("%q: %v", id, err)
				}
				segment, ok := strings.CutPrefix(paths[i], "/v2/user/resolve/")
				back, err := url.PathUnescape(segment)
				if !ok || err != nil || back != id || strings.Contains(segment, "/") {
					t.Errorf("%q arrived as %q", id, paths[i])
				}
			}
			for _, id := range []string{"", ".", "..", "a\x00b", "a\nb", "\t", "\x7f", "\xff", "a\xc3"} {
				err := through.call(client, id)
				if id == "" && through.name == "Do" {
					continue // a path like another
				}
				if labhealth.OutcomeOf(err) != labhealth.OutcomeNotSent || !errors.Is(err, labhealth.ErrValidation) {
					t.Errorf("%q: %v", id, err)
				}
				if through.name == "Resolve" {
					equal(t, "labhealth: GET /v2/user/resolve/{client_user_id}: not sent: path.client_user_id must not be empty, "+
						"a dot segment or hold control characters", errorText(err))
				}
			}
		})
	}
}
