package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go"
)

// Whatever Retry-After is, the call returns or waits within its bounds, and RetryAfter is valid.
func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"", "0", "7", "-1", "99999999999999999999", "1.5", "Fri, 31 Dec 9999 23:59:59 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
		"Sun Nov  6 08:49:37 1994", " 3 ", "+4", "0x10", "1e3", "Fri, 31 Dec 10000 23:59:59 GMT", "\t"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		const limit = time.Millisecond
		attempts := 0
		client := faultClient(t, testURL, roundTripper(func(r *http.Request) (*http.Response, error) {
			attempts++
			return responseTo(r, 429, "{}", "Retry-After", s), nil
		}), labhealth.WithRetry(labhealth.RetryPolicy{MaxRetryAfter: limit, BaseWait: 1, MaxWait: 1}))
		_, err := client.Orders.Import(t.Context(), faultImport())
		api := apiErrorOf(t, err)
		if api.Attempts != attempts || labhealth.OutcomeOf(err) != rejected {
			t.Errorf("%q: %d attempts: %v", s, attempts, err)
		}
		switch waited := api.RetryAfter; {
		case attempts == 1 && waited >= 0 && waited <= limit, attempts == 3 && (waited == -1 || waited > limit), attempts == 2:
			t.Errorf("%q: %d attempts, RetryAfter %v", s, attempts, waited)
		}
	})
}

func apiErrorOf(t *testing.T, err error) *labhealth.APIError {
	t.Helper()
	api, ok := err.(*labhealth.APIError)
	if !ok {
		t.Fatalf("%T: %v", err, err)
	}
	return api
}

// Whatever the body of an error is, its methods do not panic, and its text does not quote the body.
func FuzzErrorBody(f *testing.F) {
	for _, s := range []string{"", "null", "{}", "[]", `{"detail":"x"}`, `{"detail":[{"type":"missing","loc":["body",1,"a b"],"msg":"m","input":{}}]}`,
		`{"detail":[1,null,{"loc":null}]}`, `{"detail":{"user_id":"3f0c9a52-7d1e-4b6a-9c58-2e41d7a6b803","created_on":"x"}}`, `{"user_id":{}}`,
		`{"detail":` + strings.Repeat("[", 100), "\xff", `{"detail":"\ud800"}`, `{"detail":[{"type":"a\nb","loc":["\u0000"]}]}`} {
		f.Add(400, []byte(s))
		f.Add(422, []byte(s))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 400 || status > 599 || status == 429 {
			status = 422
		}
		client := faultClient(t, testURL, roundTripper(func(r *http.Request) (*http.Response, error) {
			return responseTo(r, status, string(body)), nil
		}), labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 1}))
		_, err := client.Users.Create(t.Context(), labhealth.CreateUserBody{ClientUserID: "a"})
		var api *labhealth.APIError
		if conflict, ok := err.(*labhealth.UserConflictError); ok {
			api = conflict.Unwrap().(*labhealth.APIError)
		} else {
			api = apiErrorOf(t, err)
		}
		if !bytes.Equal(api.Body(), body[:min(len(body), 64<<10)]) {
			t.Error("another body")
		}
		if d := api.Detail(); d != nil && !json.Valid(d) {
			t.Errorf("Detail %q", d)
		}
		for _, field := range api.Fields() {
			_ = field.Path()
		}
		for _, text := range []string{err.Error(), fmt.Sprintf("%+v %#v", err, api.Fields()), fmt.Sprint(*api)} {
			if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Errorf("the text holds what it should not: %q", text)
			}
		}
	})
}

// Whatever the path is, the request goes to that path of that host, or is not sent.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"/", "/%2F\"", "/v2/user/a", "/a%2Fb", "//evil.example.com", "/../a", "/%2e%2e/a", "/a/./b", "/a?b", "/a#b", "/a b", "/%00", "/%zz",
		"/\xff", "/ü", "/a:80", "/@b", "/a;b=c", "/a\\b", "http://a/b", "", "/%2F%2Fevil", "/a//b", "/%25", "/..%2Fa", "/a%2F.%2Fb", "/..%5Ca"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, path, user string) {
		sent := ""
		client := faultClient(t, testURL+"/base", roundTripper(func(r *http.Request) (*http.Response, error) {
			sent = r.URL.Scheme + "://" + r.URL.Host + r.URL.EscapedPath()
			if r.URL.RawQuery != "" || r.URL.Fragment != "" || r.URL.User != nil {
				t.Errorf("%q became %v", path, r.URL)
			}
			plain, err := url.PathUnescape(r.URL.EscapedPath()) // as a proxy that decodes %2F sees it
			if err != nil {
				t.Errorf("%q became %v: %v", path, r.URL, err)
			}
			for segment := range strings.SplitSeq(plain, "/") {
				if segment == "." || segment == ".." {
					t.Errorf("%q became %v", path, r.URL)
				}
			}
			return responseTo(r, 200, `{"user_id":"`+faultOrderID.String()+`"}`), nil
		}))
		err := client.Do(t.Context(), "GET", path, nil, nil)
		switch {
		case sent == "" && labhealth.OutcomeOf(err) == notSent:
		case err != nil || !sameSegments(sent, testURL+"/base"+path):
			t.Errorf("%q was sent to %q: %v", path, sent, err)
		}
		sent = ""
		_, err = client.Users.Resolve(t.Context(), user)
		rest, ok := strings.CutPrefix(sent, testURL+"/base/v2/user/resolve/")
		switch {
		case sent == "" && labhealth.OutcomeOf(err) == notSent:
		case err != nil || !ok || strings.Contains(rest, "/"):
			t.Errorf("%q was sent to %q: %v", user, sent, err)
		}
	})
}

// sameSegments reports whether two paths have the same segments, however they are escaped.
func sameSegments(a, b string) bool {
	return slices.EqualFunc(strings.Split(a, "/"), strings.Split(b, "/"), func(a, b string) bool {
		a, err := url.PathUnescape(a)
		b, err2 := url.PathUnescape(b)
		return err == nil && err2 == nil && a == b
	})
}
