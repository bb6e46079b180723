package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/management"
)

const httpsOnly = "labhealth: the base URL must be https (http is for loopback addresses, and for the host of WithInsecureHTTP)"
const noParts = "labhealth: the base URL must have no user info, query or fragment"
const notAddress = "labhealth: the base URL must look like https://host or https://host/path"

const badEnvironment = "labhealth: the environment must be production_us, production_eu, sandbox_us or sandbox_eu"

func TestNewClientErrors(t *testing.T) {
	base := labhealth.WithBaseURL(testURL)
	type options = []labhealth.Option
	const badPort = "labhealth: the port of the base URL must be between 1 and 65535"
	const badPath = "labhealth: the path of the base URL must be escaped and have no . or .. segments"
	const badOrdersPath = `labhealth: WithPath: the path of "GET /orders" must begin with one /, be escaped, have no query, no escaped slash and no . or .. segments, and have the parameters []`
	const otherKey = "labhealth: the API key has a space, or a character that is not printable ASCII: remove it"
	const emptyURL = "the base URL is empty: is its environment variable set?"
	const noScheme = "the base URL has no scheme: it must look like https://host or https://host/path"
	const badInsecure = "labhealth: WithInsecureHTTP needs the name of a host or its IP address, without scheme and port"
	throughProxy := labhealth.WithHTTPClient(&http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "127.0.0.1:1"})}})
	const badHost = "labhealth: the host of the base URL is not valid"
	for _, test := range []struct {
		name, key string
		opts      options
		want      string
	}{
		{"empty key", "", options{base}, "labhealth: the API key is empty: is its environment variable set?"},
		{"line end in the key", testKey + "\n", options{base}, "labhealth: the API key has a line break: remove it, for example with strings.TrimSpace"},
		{"quoted key", "'" + testKey + "'", options{base}, "labhealth: the API key is in quotes: remove them"},
		{"space in the key", "sk test", options{base}, otherKey},
		{"key that is not ASCII", "sk_tést", options{base}, otherKey},
		{"no address", testKey, nil, `labhealth: no base URL: pass WithEnvironment(labhealth.SandboxUS, "https://…") or WithBaseURL`},
		{"two addresses", testKey, options{base, base}, "labhealth: more than one base URL: WithBaseURL and WithBaseURL: pass one of these options, once"},
		{"address and environment", testKey, options{base, labhealth.WithEnvironment(labhealth.SandboxUS, testURL)},
			"labhealth: more than one base URL: WithBaseURL and WithEnvironment: pass one of these options, once"},
		{"two regions", testKey, options{labhealth.WithEnvironment(labhealth.SandboxUS, testURL), labhealth.WithEnvironment(labhealth.ProductionEU, testURL)},
			"labhealth: more than one base URL: WithEnvironment and WithEnvironment: pass one of these options, once"},
		{"no environment", testKey, options{labhealth.WithEnvironment("", testURL)}, badEnvironment},
		{"key as the environment", testKey, options{labhealth.WithEnvironment("hunter2", testURL)}, badEnvironment},
		{"environment without address", testKey, options{labhealth.WithEnvironment(labhealth.ProductionUS, "")},
			"labhealth: production_us: " + emptyURL},
		{"address without scheme of a region", testKey, options{labhealth.WithEnvironment(labhealth.SandboxEU, "eu.example.com")},
			"labhealth: sandbox_eu: " + noScheme},

		{"empty address", testKey, options{labhealth.WithBaseURL("")}, "labhealth: " + emptyURL},
		{"no scheme", testKey, options{labhealth.WithBaseURL("api.example.com")}, "labhealth: " + noScheme},
		{"no host", testKey, options{labhealth.WithBaseURL("https:///v3")}, notAddress},
		{"port only", testKey, options{labhealth.WithBaseURL("https://:443")}, notAddress},
		{"opaque", testKey, options{labhealth.WithBaseURL("https:api.example.com")}, "labhealth: " + noScheme},
		{"line end", testKey, options{labhealth.WithBaseURL("https://api.example.com\n")}, "labhealth: the base URL has a space, a line break or a control character: remove it"},
		{"quotes", testKey, options{labhealth.WithBaseURL(`"https://api.example.com"`)}, "labhealth: the base URL is in quotes: remove them"},
		{"host that is not UTF-8", testKey, options{labhealth.WithBaseURL("https://\xff.example.com")}, badHost},
		{"escaped host that is not UTF-8", testKey, options{labhealth.WithBaseURL("https://%ff.example.com")}, badHost},
		{"host with quotes", testKey, options{labhealth.WithBaseURL("https://a\"b.example.com")}, badHost},
		{"version", testKey, options{labhealth.WithBaseURL("https://api.example.com/v3/")}, "labhealth: the base URL ends in /v3: remove it, because every path has its version"},
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
		{"http to another host", testKey, options{labhealth.WithBaseURL("http://api.example.com"), labhealth.WithInsecureHTTP("example.com")}, httpsOnly},
		{"http to another host of a region", testKey, options{labhealth.WithEnvironment(labhealth.SandboxEU, "http://api.example.com"), labhealth.WithInsecureHTTP("sandbox")},
			strings.Replace(httpsOnly, ": ", ": sandbox_eu: ", 1)},
		{"http with a port", testKey, options{labhealth.WithBaseURL("http://sandbox:80"), labhealth.WithInsecureHTTP("sandbox:80")}, badInsecure},
		{"http with a scheme", testKey, options{labhealth.WithBaseURL("http://sandbox"), labhealth.WithInsecureHTTP("http://sandbox")}, badInsecure},
		{"http to any host", testKey, options{labhealth.WithBaseURL("http://sandbox"), labhealth.WithInsecureHTTP("*")}, badInsecure},
		{"http without a host", testKey, options{labhealth.WithBaseURL("http://sandbox"), labhealth.WithInsecureHTTP("")}, badInsecure},
		{"https with WithInsecureHTTP", testKey, options{labhealth.WithBaseURL("https://sandbox"), labhealth.WithInsecureHTTP("sandbox")},
			"labhealth: WithInsecureHTTP: the base URL is not http, or of a loopback host: remove the option"},
		{"http through a proxy", testKey, options{labhealth.WithBaseURL("http://sandbox"), labhealth.WithInsecureHTTP("sandbox"), throughProxy},
			"labhealth: WithInsecureHTTP: requests would pass through a proxy, which reads them: add the host to NO_PROXY, or pass WithHTTPClient a transport without a proxy"},
		{"other scheme", testKey, options{labhealth.WithBaseURL("ftp://api.example.com")}, httpsOnly},

		{"nil http.Client", testKey, options{base, labhealth.WithHTTPClient(nil)}, "labhealth: WithHTTPClient needs an http.Client"},
		{"nil observer", testKey, options{base, labhealth.WithCallObserver(labhealth.CallObserver{})}, "labhealth: WithCallObserver needs Start, Attempt or End"},
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
			`labhealth: WithPath: the path of "GET /v3/order/{order_id}" must begin with one /, be escaped, have no query, no escaped slash and no . or .. segments, and have the parameters ["order_id"]`},
		{"path with a wrong parameter", testKey, options{base, labhealth.WithPath("GET /v3/order/{order_id}", "/v4/order/{id}")},
			`labhealth: WithPath: the path of "GET /v3/order/{order_id}" must begin with one /, be escaped, have no query, no escaped slash and no . or .. segments, and have the parameters ["order_id"]`},
		{"path with a parameter twice", testKey, options{base, labhealth.WithPath("GET /v3/order/{order_id}", "/v4/{order_id}/{order_id}")},
			`labhealth: WithPath: the path of "GET /v3/order/{order_id}" must begin with one /, be escaped, have no query, no escaped slash and no . or .. segments, and have the parameters ["order_id"]`},
		{"path with a parameter too many", testKey, options{base, labhealth.WithPath("GET /orders", "/v4/{team_id}/orders")},
			`labhealth: WithPath: the path of "GET /orders" must begin with one /, be escaped, have no query, no escaped slash and no . or .. segments, and have the parameters []`},
		{"path of a parent", testKey, options{base, labhealth.WithPath("GET /orders", "/../x")}, badOrdersPath},
		{"path of an escaped parent", testKey, options{base, labhealth.WithPath("GET /orders", "/%2e%2e/x")}, badOrdersPath},
		{"path of a parent with a parameter", testKey, options{base, labhealth.WithPath("GET /orders", "/..;/x")}, badOrdersPath},
		{"path of a parent with a value", testKey, options{base, labhealth.WithPath("GET /orders", "/v3/..;a=b/x")}, badOrdersPath},
		{"path of an escaped parent with a parameter", testKey, options{base, labhealth.WithPath("GET /orders", "/v3/%2e.%3b/x")}, badOrdersPath},
		{"path of itself with a parameter", testKey, options{base, labhealth.WithPath("GET /orders", "/.;/x")}, badOrdersPath},
		{"path with an escaped slash", testKey, options{base, labhealth.WithPath("GET /orders", "/a%2Fb")}, badOrdersPath},
		{"path with an escaped slash in lower case", testKey, options{base, labhealth.WithPath("GET /orders", "/a%2fb")}, badOrdersPath},
		{"path with an escaped backslash", testKey, options{base, labhealth.WithPath("GET /orders", "/a%5Cb")}, badOrdersPath},
		{"path with NUL", testKey, options{base, labhealth.WithPath("GET /orders", "/v3/orders%00")}, badOrdersPath},
		{"path with a line end", testKey, options{base, labhealth.WithPath("GET /orders", "/v3/orders%0d%0a")}, badOrdersPath},
		{"path that names a host", testKey, options{base, labhealth.WithPath("GET /orders", "//evil.example.org/orders")}, badOrdersPath},
		{"path without a slash", testKey, options{base, labhealth.WithPath("GET /orders", "v3/orders")},
			`labhealth: WithPath: the path of "GET /orders" must begin with one /, be escaped, have no query, no escaped slash and no . or .. segments, and have the parameters []`},
		{"path with a query", testKey, options{base, labhealth.WithPath("GET /orders", "/v3/orders?x=1")},
			`labhealth: WithPath: the path of "GET /orders" must begin with one /, be escaped, have no query, no escaped slash and no . or .. segments, and have the parameters []`},
		{"path that is not escaped", testKey, options{base, labhealth.WithPath("GET /orders", "/v3/%zz")},
			`labhealth: WithPath: the path of "GET /orders" must begin with one /, be escaped, have no query, no escaped slash and no . or .. segments, and have the parameters []`},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, err := labhealth.NewClient(test.key, test.opts...)
			if client != nil || errorText(err) != test.want {
				t.Errorf("error %q\n want %q", errorText(err), test.want)
			}
			equal(t, labhealth.OutcomeNotSent, labhealth.OutcomeOf(err))
			if strings.Contains(errorText(err), "hunter2") || strings.Contains(errorText(err), "example.com") {
				t.Error("the error shows the address")
			}
		})
	}
}

// The error names the operation that is most similar.
func TestWithPathUnknownOperation(t *testing.T) {
	for operation, meant := range map[string]string{
		"GET /order": "GET /orders", "GET /v3/orders": "GET /orders", "get /v2/user/": "GET /v2/user/", "GET /v2/users": "GET /v2/user/",
		"POST /v3/orders/import": "POST /v3/order/import", "GET /v3/order/{id}/result": "GET /v3/order/{order_id}/result",
	} {
		_, err := labhealth.NewClient(testKey, labhealth.WithBaseURL(testURL), labhealth.WithPath(operation, "/x"))
		equal(t, fmt.Sprintf("labhealth: WithPath: unknown operation %q: did you mean %q?", operation, meant), errorText(err))
	}
}

func TestAddresses(t *testing.T) {
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
		{labhealth.WithEnvironment(labhealth.ProductionUS, "https://us.example.com"), "https://us.example.com/v3/order/import"},
		{labhealth.WithEnvironment(labhealth.ProductionEU, "https://eu.example.com"), "https://eu.example.com/v3/order/import"},
		{labhealth.WithEnvironment(labhealth.SandboxUS, "https://us.sandbox.example.com"), "https://us.sandbox.example.com/v3/order/import"},
		{labhealth.WithEnvironment(labhealth.SandboxEU, "https://eu.sandbox.example.com"), "https://eu.sandbox.example.com/v3/order/import"},
		{labhealth.WithEnvironment("Sandbox EU", "https://eu.sandbox.example.com"), "https://eu.sandbox.example.com/v3/order/import"},
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

// An operation with another path keeps its name in errors, and its parameters.
func TestWithPath(t *testing.T) {
	client, s := scripted(t, []reply{{status: 404, body: `{}`}, {status: 404, body: `{}`}, {status: 404, body: `{}`}},
		labhealth.WithPath("GET /orders", "/v3/orders"),
		labhealth.WithPath("PATCH /v3/order/{order_id}", "/lab/{order_id}/update"),
		labhealth.WithPath("GET /v2/user/", "/v2/user"))
	_, err := client.Orders.List(t.Context(), labhealth.ListOrdersParams{Page: 2})
	equal(t, "labhealth: GET /orders: 404 Not Found: rejected (the path or an ID does not exist: check the base URL, WithPath, the IDs and the environment)", errorText(err))
	_, err = client.Orders.Release(t.Context(), orderID)
	equal(t, "labhealth: PATCH /v3/order/{order_id}: 404 Not Found: rejected (the path or an ID does not exist: check the base URL, WithPath, the IDs and the environment)", errorText(err))
	_, err = client.Users.List(t.Context(), labhealth.ListUsersParams{})
	equal(t, "labhealth: GET /v2/user/: 404 Not Found: rejected (the path or an ID does not exist: check the base URL, WithPath, the IDs and the environment)", errorText(err))
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

// counting counts calls of CloseIdleConnections.
type counting struct {
	*script
	closed int
}

func (c *counting) CloseIdleConnections() { c.closed++ }

// Neither a failing call nor the client closes the connections of a caller's transport.
func TestCallersTransportIsNotClosed(t *testing.T) {
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

// The client's own transport uses one connection for many calls and closes it on demand.
func TestOwnTransport(t *testing.T) {
	var addresses map[string]bool
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		addresses[r.RemoteAddr] = true
		fmt.Fprint(w, `{}`)
	}))
	defer srv.Close()
	for _, client := range []interface {
		Do(ctx context.Context, method, path string, body, out any, opts ...labhealth.CallOption) error
		CloseIdleConnections()
	}{
		must[*labhealth.Client](t)(labhealth.NewClient(testKey, labhealth.WithBaseURL(srv.URL))),
		must[*management.Client](t)(management.NewClient(testOrg, managementKey, labhealth.WithBaseURL(srv.URL))),
	} {
		addresses = map[string]bool{}
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
}

func TestObserversAndLogger(t *testing.T) {
	var seen []labhealth.Attempt
	var text bytes.Buffer
	type key struct{}
	observer := func(ctx context.Context, a labhealth.Attempt) {
		if ctx.Value(key{}) != "kept" {
			t.Error("the observer has another context")
		}
		if a.Start.IsZero() || time.Since(a.Start) > time.Minute {
			t.Errorf("the attempt started at %v", a.Start)
		}
		a.Start, a.Duration = time.Time{}, 0
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
	}, observing(observer), labhealth.WithLogger(logger), observing(func(context.Context, labhealth.Attempt) { second++ }))
	ctx := context.WithValue(t.Context(), key{}, "kept")
	for range 3 {
		_, _ = client.Orders.List(ctx, labhealth.ListOrdersParams{PatientName: "Ada Example"})
	}
	const failed = "the http.RoundTripper failed: see TransportError.Cause"
	equal(t, failed, errorText(seen[2].Err))
	equal(t, labhealth.FailureOther, labhealth.FailureOf(seen[2].Err))
	seen[2].Err = nil
	equal(t, []labhealth.Attempt{
		{Op: "GET /orders", Number: 1, StatusCode: 200, RequestID: "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01", Outcome: labhealth.OutcomeApplied},
		{Op: "GET /orders", Number: 1, StatusCode: 503, Outcome: labhealth.OutcomeUnknown},
		{Op: "GET /orders", Number: 1, Outcome: labhealth.OutcomeUnknown},
	}, seen)
	equal(t, 3, second)
	const id = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
	equal(t, `level=DEBUG msg="labhealth attempt" op="GET /orders" attempt=1 status=200 request_id=`+id+` outcome=applied
level=DEBUG msg="labhealth call" op="GET /orders" attempts=1 status=200 request_id=`+id+` outcome=applied
level=DEBUG msg="labhealth attempt" op="GET /orders" attempt=1 status=503
level=WARN msg="labhealth call" op="GET /orders" attempts=1 status=503 error="labhealth: GET /orders: 503 Service Unavailable (overloaded or under maintenance; APIError.Message has the service's text; try again later)"
level=DEBUG msg="labhealth attempt" op="GET /orders" attempt=1 failure=other error="`+failed+`"
level=WARN msg="labhealth call" op="GET /orders" attempts=1 failure=other error="labhealth: GET /orders: the http.RoundTripper failed (see TransportError.Cause)"
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

// The requests as a server receives them.
func TestOnTheWire(t *testing.T) {
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var header []string
		for _, name := range slices.Sorted(maps.Keys(r.Header)) {
			header = append(header, name+": "+strings.Join(r.Header[name], ","))
		}
		got = append(got, fmt.Sprintf("%s %s %s %d %v\n%s", r.Method, r.RequestURI, r.Proto, len(body), r.TransferEncoding, strings.Join(header, "\n")))
		fmt.Fprint(w, placedJSON)
	}))
	defer srv.Close()
	client := must[*labhealth.Client](t)(labhealth.NewClient(testKey, labhealth.WithBaseURL(srv.URL)))
	defer client.CloseIdleConnections()
	if _, err := client.Orders.Release(t.Context(), orderID); err != nil {
		t.Error(err)
	}
	if err := client.Do(t.Context(), "POST", "/v2/anything", nil, nil); err != nil {
		t.Error(err)
	}
	if err := client.Do(t.Context(), "GET", "/v2/anything", nil, nil); err != nil {
		t.Error(err)
	}
	equal(t, []string{
		"PATCH /v3/order/0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b HTTP/1.1 20 []\n" +
			"Accept: application/json\nAccept-Encoding: gzip\nContent-Length: 20\nContent-Type: application/json\n" +
			"User-Agent: labhealth-go/0.1.0\nX-Service-Api-Key: sk_test_0123456789",
		// An empty body of a write is chunked, so that net/http does not repeat it by itself.
		"POST /v2/anything HTTP/1.1 0 [chunked]\n" +
			"Accept: application/json\nAccept-Encoding: gzip\n" +
			"User-Agent: labhealth-go/0.1.0\nX-Service-Api-Key: sk_test_0123456789",
		"GET /v2/anything HTTP/1.1 0 []\n" +
			"Accept: application/json\nAccept-Encoding: gzip\n" +
			"User-Agent: labhealth-go/0.1.0\nX-Service-Api-Key: sk_test_0123456789",
	}, got)
}

// Many goroutines share one client.
func TestConcurrentCalls(t *testing.T) {
	var mu sync.Mutex
	imports := map[string]int{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			mu.Lock()
			imports[r.Header.Get("X-Caller")]++
			mu.Unlock()
			fmt.Fprint(w, placedJSON)
			return
		}
		fmt.Fprintf(w, `{"users":[],"total":0,"offset":%s,"limit":100}`, r.URL.Query().Get("offset"))
	}))
	defer srv.Close()
	client := must[*labhealth.Client](t)(labhealth.NewClient(testKey, labhealth.WithBaseURL(srv.URL),
		observing(func(context.Context, labhealth.Attempt) {})))
	defer client.CloseIdleConnections()
	shared := labhealth.WithHeader("X-Shared", "1")
	refused := labhealth.WithHeader("Host", "x")
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			for range 4 {
				var resp labhealth.Response
				if _, err := client.Orders.Import(t.Context(), importBody(), shared, labhealth.WithResponse(&resp), labhealth.WithHeader("X-Caller", fmt.Sprint(i))); err != nil || resp.StatusCode != 200 {
					t.Error(err)
				}
				if page, err := client.Users.List(t.Context(), labhealth.ListUsersParams{Offset: i + 1}, shared); err != nil || page.Offset != int64(i+1) {
					t.Error(err)
				}
				if _, err := client.Orders.Release(t.Context(), orderID, refused); errorText(err) != "labhealth: PATCH /v3/order/{order_id}: not sent: header.Host is set by the client" {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	equal(t, 50, len(imports))
	for caller, n := range imports {
		if n != 4 {
			t.Errorf("caller %s: %d imports", caller, n)
		}
	}
}

func TestParseEnvironment(t *testing.T) {
	for _, test := range []struct {
		text              string
		want              labhealth.Environment
		environment, area string
	}{
		{"sandbox_us", labhealth.SandboxUS, "sandbox", "us"},
		{"Sandbox US", labhealth.SandboxUS, "sandbox", "us"},
		{"SandboxUS", labhealth.SandboxUS, "sandbox", "us"},
		{"us-sandbox", labhealth.SandboxUS, "sandbox", "us"},
		{"sandbox/eu", labhealth.SandboxEU, "sandbox", "eu"},
		{"EU.SANDBOX", labhealth.SandboxEU, "sandbox", "eu"},
		{"production-us", labhealth.ProductionUS, "production", "us"},
		{" prod us ", labhealth.ProductionUS, "production", "us"},
		{"us_prod", labhealth.ProductionUS, "production", "us"},
		{"PRODUCTION_EU", labhealth.ProductionEU, "production", "eu"},
		{"eu-production", labhealth.ProductionEU, "production", "eu"},
		{"productionus", labhealth.ProductionUS, "production", "us"},
		{"usproduction", labhealth.ProductionUS, "production", "us"},
		{"produs", labhealth.ProductionUS, "production", "us"},
		{"usprod", labhealth.ProductionUS, "production", "us"},
		{"productioneu", labhealth.ProductionEU, "production", "eu"},
		{"euproduction", labhealth.ProductionEU, "production", "eu"},
		{"prodeu", labhealth.ProductionEU, "production", "eu"},
		{"euprod", labhealth.ProductionEU, "production", "eu"},
		{"sandboxus", labhealth.SandboxUS, "sandbox", "us"},
		{"ussandbox", labhealth.SandboxUS, "sandbox", "us"},
		{"sandboxeu", labhealth.SandboxEU, "sandbox", "eu"},
		{"eusandbox", labhealth.SandboxEU, "sandbox", "eu"},
	} {
		env, err := labhealth.ParseEnvironment(test.text)
		if env != test.want || err != nil {
			t.Errorf("%q: %q, %v, want %q", test.text, env, err, test.want)
		}
		equal(t, test.environment, string(env.TeamEnvironment()))
		equal(t, test.area, string(env.Region()))
		again, err := labhealth.ParseEnvironment(string(env))
		if again != env || err != nil {
			t.Errorf("%q is not parsed: %v", env, err)
		}
	}
	for _, text := range []string{"", " ", "sandbox", "us", "production", "sandbox_us_east", "sandbox_us sandbox_us", "sk_us_hunter2", "sandbox_ca", "sandbox\nus",
		"produ", "prod", "eu", "sandus", "ussand", "eupro", "prodeuus", "euprodeu", "uspr0d"} {
		env, err := labhealth.ParseEnvironment(text)
		if env != "" || errorText(err) != badEnvironment {
			t.Errorf("%q: %q, %v", text, env, err)
		}
	}
}

// Environments in configuration files and flags.
func TestEnvironmentText(t *testing.T) {
	var config map[labhealth.Environment]string
	if err := json.Unmarshal([]byte(`{"us-sandbox": "https://api.example.com"}`), &config); err != nil {
		t.Fatal(err)
	}
	equal(t, "https://api.example.com", config[labhealth.SandboxUS])
	err := json.Unmarshal([]byte(`{"hunter2": ""}`), &config)
	equal(t, badEnvironment, errorText(err))

	var env labhealth.Environment
	flags := flag.NewFlagSet("test", flag.ContinueOnError)
	flags.TextVar(&env, "env", labhealth.SandboxEU, "the environment")
	equal(t, labhealth.SandboxEU, env)
	if err := flags.Parse([]string{"-env", "Production US"}); err != nil {
		t.Fatal(err)
	}
	equal(t, labhealth.ProductionUS, env)
}

// Plain http goes to the named host alone, is warned about once, and no redirect leaves the host.
func TestInsecureHTTP(t *testing.T) {
	var hosts []string
	transport := roundTripper(func(r *http.Request) (*http.Response, error) {
		hosts = append(hosts, r.URL.Scheme+"://"+r.URL.Host)
		w := httptest.NewRecorder()
		w.Header().Set("Location", "http://other.internal"+r.URL.Path)
		w.WriteHeader(http.StatusFound)
		return w.Result(), nil
	})
	for _, host := range []string{"sandbox", "SANDBOX"} {
		var log bytes.Buffer
		client, err := labhealth.NewClient(testKey, labhealth.WithInsecureHTTP(host), labhealth.WithEnvironment(labhealth.SandboxUS, "http://sandbox:8080"),
			labhealth.WithHTTPClient(&http.Client{Transport: transport}), labhealth.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		if err != nil {
			t.Fatal(err)
		}
		warnings := strings.Count(log.String(), `level=WARN msg="labhealth: the key and the data of patients are sent unencrypted" host=sandbox:8080`)
		equal(t, 1, warnings)
		hosts = nil
		_, err = client.Orders.Get(t.Context(), orderID)
		var redirect *labhealth.RedirectError
		equal(t, true, errors.As(err, &redirect))
		equal(t, []string{"http://sandbox:8080"}, hosts)
	}
	if _, err := labhealth.NewClient(testKey, labhealth.WithBaseURL("http://[fd00::1]:8080"), labhealth.WithInsecureHTTP("fd00::1")); err != nil {
		t.Error(err)
	}
}
