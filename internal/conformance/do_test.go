package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/labhealth/labhealth-go"
)

// HEAD is a read.
func TestDoHeadIsRepeated(t *testing.T) {
	client, s := scripted(t, []reply{{status: 503}, {status: 200}},
		labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 2, BaseWait: 1}))
	equal(t, nil, client.Do(t.Context(), "HEAD", "/v2/things", nil, nil))
	equal(t, 2, len(s.sent))
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

func TestInvalidDo(t *testing.T) {
	const (
		path    = "labhealth: GET (Do): not sent: path must start with one /"
		full    = "labhealth: GET (Do): not sent: path must start with /: the base URL is put before it"
		query   = "labhealth: GET (Do): not sent: path must have no query and no fragment: use WithQuery"
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
		{"GET", "https://evil.example.com/", nil, full},
		{"GET", "@evil.example.com/", nil, path},
		{"GET", "/v2/user?limit=1", nil, query},
		{"GET", "/v2/user#x", nil, query},
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
		{"POST", "/", func() {}, "labhealth: POST (Do): not sent: body cannot be written as JSON: it has a func()"},
		{"POST", "/", struct{ N labhealth.Nullable[string] }{}, "labhealth: POST (Do): not sent: body cannot be written as JSON: a MarshalJSON or MarshalText method failed"},
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

// An escaped value arrives unchanged, as one segment of the path.
func TestPathSafety(t *testing.T) {
	ids := []string{
		"plain", "a/b", "..a/b..", "a/.../b", "..%2f..", "%2e%2e", "%", "100%25", "a b", "a+b", "ü/ñ", "日本", "3Zru4O8cBEiwGTsXgUQGaQ==",
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
			for _, id := range []string{"", ".", "..", "../admin", "a/..", "a/../b", "a/./b", "/..", "..\\admin", "a\x00b", "a\nb", "\t", "\x7f", "\xff", "a\xc3"} {
				err := through.call(client, id)
				if id == "" && through.name == "Do" {
					continue // a path like another
				}
				if labhealth.OutcomeOf(err) != labhealth.OutcomeNotSent || !errors.Is(err, labhealth.ErrValidation) {
					t.Errorf("%q: %v", id, err)
				}
				if through.name == "Resolve" {
					equal(t, "labhealth: GET /v2/user/resolve/{client_user_id}: not sent: path.client_user_id must not be empty, "+
						"or hold dot segments or control characters", errorText(err))
				}
			}
		})
	}
}

// With Do, too, only an order ID proves that there is an order.
func TestDoRequiresOrderID(t *testing.T) {
	for _, out := range []any{&labhealth.PostOrderResponse{}, &labhealth.Order{}} {
		client, _ := respondingWith(t, 200, `{}`)
		err := client.Do(t.Context(), "POST", "/v3/order/import", map[string]int{}, out)
		var unreadable *labhealth.DecodeError
		if !errors.As(err, &unreadable) || labhealth.OutcomeOf(err) != labhealth.OutcomeUnknown {
			t.Errorf("%T: %v", out, err)
		}
	}
}

// The types of the package are decoded and verified as by the methods.
func TestDoIntoTypes(t *testing.T) {
	const id = `"6f1c9b1e-3d7a-4a55-9c0e-5b8f2d4e7a10"`
	for _, test := range []struct {
		out  any
		body string
		want string
	}{
		{new(labhealth.LabTest), `["a"]`, "it is not a JSON object"},
		{new(labhealth.OrderResults), ` 5`, "it is not a JSON object"},
		{new(labhealth.Order), `null`, "it is not a JSON object"},
		{new(labhealth.User), `{}`, "it has no readable user id"},
		{new(labhealth.OrderPage), `{"detail":"broken"}`, "it has no list"},
		{new(labhealth.OrderPage), `[{"id":` + id + `}]`, ""},
		{new(labhealth.User), `{"user_id":` + id + `}`, ""},
		{new([]labhealth.Order), `[{},{"id":` + id + `}]`, ""},
	} {
		client, _ := scripted(t, []reply{{status: 200, body: test.body}})
		err := client.Do(t.Context(), "GET", "/v3/anything", nil, test.out)
		want := ""
		if test.want != "" {
			want = unreadableText("GET (Do)", test.want, err)
		}
		if errorText(err) != want {
			t.Errorf("%T from %s: %v, want %q", test.out, test.body, err, want)
		}
	}
}

// Nothing is sent if the response could not be stored.
func TestDoNeedsPointer(t *testing.T) {
	for _, out := range []any{labhealth.Order{}, (*labhealth.Order)(nil), map[string]any{}, 5} {
		client, s := scripted(t, nil)
		err := client.Do(t.Context(), "POST", "/v3/anything", nil, out)
		if errorText(err) != "labhealth: POST (Do): not sent: out must be nil or a pointer that is not nil" || len(s.sent) > 0 {
			t.Errorf("%T: %v, %d requests", out, err, len(s.sent))
		}
	}
}
