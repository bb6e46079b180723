package labhealth_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/labhealth/labhealth-go"
)

// everyCall makes one call of each method with the options.
func everyCall(t testing.TB, client *labhealth.Client, opts ...labhealth.CallOption) map[string]error {
	ctx := t.Context()
	errs := map[string]error{}
	_, errs["Import"] = client.Orders.Import(ctx, importBody(), opts...)
	_, errs["Create"] = client.Orders.Create(ctx, createBody(), opts...)
	_, errs["Get"] = client.Orders.Get(ctx, orderID, opts...)
	_, errs["Orders.List"] = client.Orders.List(ctx, labhealth.ListOrdersParams{}, opts...)
	for _, err := range client.Orders.All(ctx, labhealth.ListOrdersParams{}, opts...) {
		errs["Orders.All"] = err
	}
	_, errs["Update"] = client.Orders.Update(ctx, orderID, labhealth.UpdateOrderBody{ActivateBy: labhealth.Null[labhealth.Date]()}, opts...)
	_, errs["Reschedule"] = client.Orders.Reschedule(ctx, orderID, future, opts...)
	_, errs["Release"] = client.Orders.Release(ctx, orderID, opts...)
	_, errs["Users.List"] = client.Users.List(ctx, labhealth.ListUsersParams{}, opts...)
	for _, err := range client.Users.All(ctx, labhealth.ListUsersParams{}, opts...) {
		errs["Users.All"] = err
	}
	_, errs["Users.Create"] = client.Users.Create(ctx, labhealth.CreateUserBody{ClientUserID: "ada"}, opts...)
	errs["Do"] = client.Do(ctx, "POST", "/v2/anything", nil, nil, opts...)
	return errs
}

func TestCallOptionsRefused(t *testing.T) {
	const header = " header must be a name and a value that can be sent"
	reserved := func(name string) string { return " header." + name + " is set by the client" }
	for _, test := range []struct {
		name string
		opt  labhealth.CallOption
		want string
	}{
		{"team key", labhealth.WithHeader("x-service-api-key", "hunter2"), reserved("X-Service-Api-Key")},
		{"management key", labhealth.WithHeader("X-MANAGEMENT-KEY", "hunter2"), reserved("X-Management-Key")},
		{"old management key", labhealth.WithHeader("X-Service-Org-Key", "hunter2"), reserved("X-Service-Org-Key")},
		{"authorization", labhealth.WithHeader("authorization", "Bearer hunter2"), reserved("Authorization")},
		{"proxy authorization", labhealth.WithHeader("proxy-authorization", "hunter2"), reserved("Proxy-Authorization")},
		{"host", labhealth.WithHeader("Host", "evil.example.com"), reserved("Host")},
		{"connection", labhealth.WithHeader("Connection", "close"), reserved("Connection")},
		{"content length", labhealth.WithHeader("Content-Length", "1"), reserved("Content-Length")},
		{"content type", labhealth.WithHeader("Content-Type", "text/plain"), reserved("Content-Type")},
		{"transfer encoding", labhealth.WithHeader("Transfer-Encoding", "chunked"), reserved("Transfer-Encoding")},
		{"accept encoding", labhealth.WithHeader("Accept-Encoding", "br"), reserved("Accept-Encoding")},
		{"expect", labhealth.WithHeader("Expect", "100-continue"), reserved("Expect")},
		{"te", labhealth.WithHeader("TE", "trailers"), reserved("Te")},
		{"trailer", labhealth.WithHeader("Trailer", "X"), reserved("Trailer")},
		{"upgrade", labhealth.WithHeader("Upgrade", "h2c"), reserved("Upgrade")},
		{"idempotency key", labhealth.WithHeader("X-Idempotency-Key", "1"), reserved("X-Idempotency-Key")},
		{"other idempotency key", labhealth.WithHeader("Idempotency-Key", "1"), reserved("Idempotency-Key")},
		{"user agent", labhealth.WithHeader("User-Agent", "mine"), reserved("User-Agent")},
		{"no header name", labhealth.WithHeader("", "x"), header},
		{"header name with a space", labhealth.WithHeader("Host ", "x"), header},
		{"header name with a line end", labhealth.WithHeader("A\r\nB", "x"), header},
		{"header name with a colon", labhealth.WithHeader("A:B", "x"), header},
		{"header name that is not ASCII", labhealth.WithHeader("Ä", "x"), header},
		{"header value with a line end", labhealth.WithHeader("A", "hunter2\r\nB: c"), header},
		{"header value with a zero", labhealth.WithHeader("A", "hunter2\x00"), header},
		{"nil response", labhealth.WithResponse(nil), " WithResponse needs a *Response"},
		{"no body", labhealth.WithCallBodyLimit(0), " WithCallBodyLimit must be positive"},
		{"negative body", labhealth.WithCallBodyLimit(-1), " WithCallBodyLimit must be positive"},
		{"negative attempts", labhealth.WithCallRetry(labhealth.RetryPolicy{MaxAttempts: -1}), " WithCallRetry RetryPolicy.MaxAttempts must not be negative"},
		{"negative wait", labhealth.WithCallRetry(labhealth.RetryPolicy{MaxWait: -1}), " WithCallRetry RetryPolicy.MaxWait must not be negative"},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, s := scripted(t, nil)
			errs := everyCall(t, client, test.opt)
			for name, op := range calledOperations {
				err := errs[name]
				if want := "labhealth: " + op + ": not sent:" + test.want; errorText(err) != want {
					t.Errorf("%s: error %q\n want %q", name, errorText(err), want)
				}
				if labhealth.OutcomeOf(err) != labhealth.OutcomeNotSent {
					t.Errorf("%s: outcome %v", name, labhealth.OutcomeOf(err))
				}
			}
			equal(t, 0, len(s.sent))
		})
	}
}

// calledOperations is what errors call the operations of everyCall.
var calledOperations = map[string]string{
	"Import": "POST /v3/order/import", "Create": "POST /v3/order", "Get": "GET /v3/order/{order_id}",
	"Orders.List": "GET /orders", "Orders.All": "GET /orders",
	"Update": "PATCH /v3/order/{order_id}", "Reschedule": "PATCH /v3/order/{order_id}", "Release": "PATCH /v3/order/{order_id}",
	"Users.List": "GET /v2/user/", "Users.All": "GET /v2/user/", "Users.Create": "POST /v2/user", "Do": "POST (Do)",
}

func TestIdempotencyKey(t *testing.T) {
	// Refused where it makes no sense, and where it is none.
	client, s := scripted(t, nil)
	errs := everyCall(t, client, labhealth.WithIdempotencyKey("key-1"))
	delete(errs, "Create")
	if len(errs) != len(calledOperations)-1 {
		t.Fatalf("%d calls", len(errs))
	}
	for name, err := range errs {
		if want := "labhealth: " + calledOperations[name] + ": not sent: WithIdempotencyKey is for Orders.Create only; an import is identified by its sample id"; errorText(err) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, key := range []string{"", "a b", "ü", "a\n", strings.Repeat("k", 256)} {
		_, err := client.Orders.Create(t.Context(), createBody(), labhealth.WithIdempotencyKey(key))
		equal(t, "labhealth: POST /v3/order: not sent: WithIdempotencyKey needs 1 to 255 printable ASCII characters", errorText(err))
	}
	equal(t, 1, len(s.sent)) // that of Create in everyCall

	// With a key an unknown outcome is repeated: the same bytes, the same key.
	synctest.Test(t, func(t *testing.T) {
		client, s := scripted(t, []reply{{status: 502}, {err: errors.New("lost")}, {status: 200, body: placedJSON}})
		_, err := client.Orders.Create(t.Context(), createBody(), labhealth.WithIdempotencyKey(strings.Repeat("k", 255)),
			labhealth.WithCallRetry(labhealth.RetryPolicy{MaxAttempts: 3}))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, 3, len(s.sent))
		equal(t, s.sent[0], s.sent[1])
		equal(t, s.sent[0], s.sent[2])
		equal(t, []string{strings.Repeat("k", 255)}, s.sent[0].Header["X-Idempotency-Key"])
		equal(t, jsonData(t, createJSON), jsonData(t, s.sent[0].Body))
	})
}

func TestWithHeader(t *testing.T) {
	client, s := answering(t, 200, placedJSON)
	_, err := client.Orders.Create(t.Context(), createBody(), nil,
		labhealth.WithHeader("x-idempotency-error", "no-cache"), labhealth.WithHeader("X-A", "1"), labhealth.WithHeader("x-a", "2"),
		labhealth.WithHeader("Accept", "application/vnd.example+json"))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, http.Header{
		"Accept": {"application/vnd.example+json"}, "Content-Type": {"application/json"}, "User-Agent": {"labhealth-go/0.1.0"},
		"X-Service-Api-Key": {testKey}, "X-Idempotency-Error": {"no-cache"}, "X-A": {"1", "2"},
	}, s.only(t).Header)
}

func TestWithQuery(t *testing.T) {
	client, s := answering(t, 200, `{"orders":[]}`)
	_, err := client.Orders.List(t.Context(), labhealth.ListOrdersParams{Size: 10}, labhealth.WithQuery("new", "a b"), labhealth.WithQuery("new", "&"))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "https://api.example.com/orders?new=a+b&new=%26&size=10", s.only(t).URL)
}

func TestWithResponse(t *testing.T) {
	const id = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
	stale := labhealth.Response{StatusCode: 999, Body: []byte("stale"), Attempts: 9, RequestID: "stale", Header: http.Header{"A": {"b"}}}
	for _, test := range []struct {
		name  string
		reply reply
		want  labhealth.Response
		err   string
	}{
		{"success", reply{status: 200, body: `{"orders":[]} `, header: []string{"Traceresponse", id}}, labhealth.Response{
			StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}, "Traceresponse": {id}}, Body: []byte(`{"orders":[]} `), Attempts: 1, RequestID: id,
		}, ""},
		{"refusal", reply{status: 403, body: `{"detail":"no"}`, header: []string{"X-Request-Id", "abc-1"}}, labhealth.Response{
			StatusCode: 403, Header: http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"abc-1"}}, Body: []byte(`{"detail":"no"}`), Attempts: 1, RequestID: "abc-1",
		}, "labhealth: GET /orders: 403 Forbidden (request abc-1)"},
		{"request id that is none", reply{status: 403, header: []string{"X-Request-Id", "Ada Example"}}, labhealth.Response{
			StatusCode: 403, Header: http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"Ada Example"}}, Body: []byte{}, Attempts: 1,
		}, "labhealth: GET /orders: 403 Forbidden"},
		{"unreadable", reply{status: 200, body: `{`}, labhealth.Response{
			StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(`{`), Attempts: 1,
		}, "labhealth: GET /orders: the response (status 200) could not be read: it is not valid JSON at byte 1: unexpected end of JSON"},
		{"no answer", reply{err: errors.New("lost")}, labhealth.Response{Attempts: 1},
			"labhealth: GET /orders: the connection failed (1 attempt, outcome unknown)"},
		{"redirect to elsewhere", reply{status: 302, header: []string{"Location", "https://elsewhere.example.com/orders"}}, labhealth.Response{
			StatusCode: 302, Header: http.Header{"Content-Type": {"application/json"}, "Location": {"https://elsewhere.example.com/orders"}}, Attempts: 1,
		},
			"labhealth: GET /orders: the redirect (status 302) was not followed: only a GET follows redirects, at most five and to the same origin"},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, _ := scripted(t, []reply{test.reply})
			got := stale
			_, err := client.Orders.List(t.Context(), labhealth.ListOrdersParams{}, labhealth.WithResponse(&got))
			equal(t, test.err, errorText(err))
			equal(t, test.want, got, equateEmpty)
		})
	}
	t.Run("not sent", func(t *testing.T) {
		client, _ := scripted(t, nil)
		got := stale
		_, err := client.Orders.List(t.Context(), labhealth.ListOrdersParams{Size: 101}, labhealth.WithResponse(&got))
		equal(t, "labhealth: GET /orders: not sent: query.size must be between 0 and 100", errorText(err))
		equal(t, labhealth.Response{}, got)
	})
	t.Run("attempts", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client, _ := scripted(t, []reply{{status: 503}, {err: errors.New("lost")}, {status: 200, body: `{"orders":[]}`}})
			var got labhealth.Response
			_, err := client.Orders.List(t.Context(), labhealth.ListOrdersParams{}, labhealth.WithResponse(&got),
				labhealth.WithCallRetry(labhealth.RetryPolicy{MaxAttempts: 3}))
			if err != nil || got.Attempts != 3 || got.StatusCode != 200 {
				t.Errorf("%v, %d attempts, status %d", err, got.Attempts, got.StatusCode)
			}
		})
	})
	t.Run("the caller's own bytes", func(t *testing.T) {
		client, _ := answering(t, 403, `{"detail":"no"}`)
		var got labhealth.Response
		_, err := client.Orders.List(t.Context(), labhealth.ListOrdersParams{}, labhealth.WithResponse(&got))
		got.Body[0] = 'x'
		equal(t, `"no"`, string(apiError(t, err).Detail()))
	})
}

// equateEmpty takes no bytes and nil for the same.
var equateEmpty = cmp.Transformer("text", func(b []byte) string { return string(b) })

func apiError(t testing.TB, err error) *labhealth.APIError {
	t.Helper()
	var e *labhealth.APIError
	if !errors.As(err, &e) {
		t.Fatalf("%T is no *APIError: %v", err, err)
	}
	return e
}

func TestWithoutValidation(t *testing.T) {
	client, s := scripted(t, []reply{{status: 422, body: `{}`}, {status: 422, body: `{}`}, {status: 500}})
	_, err := client.Orders.Import(t.Context(), labhealth.ImportOrderBody{PatientDetails: labhealth.PatientDetailsWithValidation{DOB: future}}, labhealth.WithoutValidation())
	equal(t, "labhealth: POST /v3/order/import: 422 Unprocessable Entity", errorText(err))
	past := labhealth.Date{Year: 2001, Month: time.January, Day: 31}
	_, err = client.Orders.Reschedule(t.Context(), orderID, past, labhealth.WithoutValidation())
	equal(t, "labhealth: PATCH /v3/order/{order_id}: 422 Unprocessable Entity", errorText(err))
	_, err = client.Users.List(t.Context(), labhealth.ListUsersParams{Offset: -1, Limit: 501}, labhealth.WithoutValidation())
	equal(t, "labhealth: GET /v2/user/: 500 Internal Server Error", errorText(err))

	equal(t, jsonData(t, `{"user_id":"00000000-0000-0000-0000-000000000000","billing_type":"","order_set":{},"collection_method":"","sample_id":"",
		"patient_details":{"first_name":"","last_name":"","dob":"2999-12-31","gender":"","phone_number":"","email":""},
		"patient_address":{"receiver_name":"","first_line":"","city":"","state":"","zip":"","country":""}}`), jsonData(t, s.sent[0].Body))
	equal(t, jsonData(t, `{"activate_by":"2001-01-31"}`), jsonData(t, s.sent[1].Body))
	equal(t, "https://api.example.com/v2/user/?limit=501&offset=-1", s.sent[2].URL)

	// What cannot be a request is refused all the same.
	for name, err := range map[string]error{
		"labhealth: PATCH /v3/order/{order_id}: not sent: path.order_id must not be the nil UUID": func() error {
			_, err := client.Orders.Release(t.Context(), [16]byte{}, labhealth.WithoutValidation())
			return err
		}(),
		"labhealth: PATCH /v3/order/{order_id}: not sent: body.activate_by must be set: a date, or Null to release the order": func() error {
			_, err := client.Orders.Update(t.Context(), orderID, labhealth.UpdateOrderBody{}, labhealth.WithoutValidation())
			return err
		}(),
	} {
		equal(t, name, errorText(err))
	}
	equal(t, 3, len(s.sent))
}

func TestWithCallRetry(t *testing.T) {
	down := []reply{{status: 503}, {status: 503}, {status: 503}, {status: 503}, {status: 503}}
	list := func(t *testing.T, client *labhealth.Client, opts ...labhealth.CallOption) {
		t.Helper()
		_, err := client.Orders.List(t.Context(), labhealth.ListOrdersParams{}, opts...)
		equal(t, "labhealth: GET /orders: 503 Service Unavailable", errorText(err))
	}
	synctest.Test(t, func(t *testing.T) {
		client, s := scripted(t, down, labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 2, MaxRetryAfter: time.Hour}))
		list(t, client)
		equal(t, 2, len(s.sent)) // the client's
		list(t, client, labhealth.WithCallRetry(labhealth.RetryPolicy{MaxAttempts: 1}))
		equal(t, 3, len(s.sent))
		list(t, client, labhealth.WithCallRetry(labhealth.RetryPolicy{BaseWait: time.Second}))
		equal(t, 5, len(s.sent)) // zero keeps the client's
	})
	for _, test := range []struct {
		name    string
		policy  labhealth.RetryPolicy
		asks    string
		waits   time.Duration
		repeats bool
	}{
		{"what was asked for", labhealth.RetryPolicy{MaxAttempts: 2}, "7", 7 * time.Second, true},
		{"beyond the default cap", labhealth.RetryPolicy{MaxAttempts: 2}, "61", 0, false},
		{"within a cap of one's own", labhealth.RetryPolicy{MaxAttempts: 2, MaxRetryAfter: time.Hour}, "61", 61 * time.Second, true},
		{"strict", labhealth.RetryPolicy{MaxAttempts: 2, Strict: true}, "7", 0, false},
		{"one attempt", labhealth.RetryPolicy{MaxAttempts: 1}, "7", 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, s := scripted(t, []reply{{status: 429, header: []string{"Retry-After", test.asks}}, {status: 200, body: placedJSON}})
				start := time.Now()
				_, err := client.Orders.Import(t.Context(), importBody(), labhealth.WithCallRetry(test.policy))
				equal(t, test.waits, time.Since(start))
				if test.repeats {
					equal(t, "", errorText(err))
					equal(t, s.sent[0], s.sent[1])
					return
				}
				equal(t, "labhealth: POST /v3/order/import: 429 Too Many Requests", errorText(err))
				equal(t, test.asks+"s", fmt.Sprint(apiError(t, err).RetryAfter.Seconds())+"s")
				equal(t, labhealth.OutcomeRejected, labhealth.OutcomeOf(err))
			})
		})
	}
}

// A call may take less or more than the client allows.
func TestBodyLimits(t *testing.T) {
	page := `{"orders":[],"padding":"` + strings.Repeat("x", 1000) + `"}`
	for _, test := range []struct {
		client, call int64
		fits         bool
	}{{100, 0, false}, {2000, 0, true}, {100, 2000, true}, {2000, 100, false}, {int64(len(page)), 0, true}, {int64(len(page)) - 1, 0, false}} {
		client, _ := scripted(t, []reply{{status: 200, body: page}}, labhealth.WithBodyLimit(test.client))
		var opts []labhealth.CallOption
		if test.call > 0 {
			opts = append(opts, labhealth.WithCallBodyLimit(test.call))
		}
		_, err := client.Orders.List(t.Context(), labhealth.ListOrdersParams{}, opts...)
		want := ""
		if !test.fits {
			want = "labhealth: GET /orders: the response (status 200) could not be read: the response is larger than the limit"
		}
		equal(t, want, errorText(err))
		equal(t, labhealth.OutcomeApplied, labhealth.OutcomeOf(err))
	}
}

// The cap counts what a compressed answer grows to.
func TestCompressedAnswers(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		fmt.Fprintf(z, `{"orders":[],"padding":"%s"}`, strings.Repeat("x", 1<<20))
		z.Close()
	}))
	defer srv.Close()
	client := must[*labhealth.Client](t)(labhealth.NewClient(testKey, labhealth.WithBaseURL(srv.URL)))
	defer client.CloseIdleConnections()
	if _, err := client.Orders.List(t.Context(), labhealth.ListOrdersParams{}); err != nil {
		t.Error(err)
	}
	_, err := client.Orders.List(t.Context(), labhealth.ListOrdersParams{}, labhealth.WithCallBodyLimit(1<<20))
	equal(t, "labhealth: GET /orders: the response (status 200) could not be read: the response is larger than the limit", errorText(err))
}

// What goes over the wire beside what a RoundTripper sees.
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
		// A body that net/http must not send again by itself has no length it knows.
		"POST /v2/anything HTTP/1.1 0 [chunked]\n" +
			"Accept: application/json\nAccept-Encoding: gzip\n" +
			"User-Agent: labhealth-go/0.1.0\nX-Service-Api-Key: sk_test_0123456789",
		"GET /v2/anything HTTP/1.1 0 []\n" +
			"Accept: application/json\nAccept-Encoding: gzip\n" +
			"User-Agent: labhealth-go/0.1.0\nX-Service-Api-Key: sk_test_0123456789",
	}, got)
}

// A 2xx that cannot be read says why in a fixed phrase, and whether it proves that the service has carried the request out.
func TestUnreadableAnswers(t *testing.T) {
	const (
		html    = "it is HTML, not JSON; something between here and the service may have sent it"
		empty   = "it is empty"
		object  = "it is not a JSON object"
		noID    = "it has no readable order id"
		unknown = labhealth.OutcomeUnknown
		applied = labhealth.OutcomeApplied
	)
	for _, test := range []struct {
		name, contentType, body string
		reason                  string
		outcome                 labhealth.Outcome
	}{
		{"empty", "application/json", "", empty, unknown},
		{"spaces", "application/json", " \r\n\t", empty, unknown},
		{"HTML", "text/html; charset=utf-8", "<html>Ada Example</html>", html, unknown},
		{"HTML as JSON", "application/json", " <html>", html, unknown},
		{"JSON as HTML", "Text/HTML", placedJSON, html, unknown},
		{"text", "text/plain", "Ada Example", "it is not valid JSON at byte 0: unexpected character", unknown},
		{"text as JSON", "application/json", "Ada Example", "it is not valid JSON at byte 0: unexpected character", unknown},
		{"cut short", "application/json", placedJSON[:40], "it is not valid JSON at byte 40: unexpected end of JSON", applied},
		{"cut short, odd type", "text/plain", placedJSON[:40], "it is not valid JSON at byte 40: unexpected end of JSON", unknown},
		{"two documents", "application/json", "{} {}", "it is not valid JSON at byte 3: data after the JSON value", unknown},
		{"invalid UTF-8", "application/json", "{\"a\":\"\xff\"}", "it is not valid JSON at byte 6: invalid UTF-8", unknown},
		{"byte order mark", "application/json", "\ufeff{}", "it is not valid JSON at byte 0: unexpected character", unknown},
		{"null", "application/json", "null", object, unknown},
		{"number", "application/json", "1", object, unknown},
		{"text in JSON", "application/json", `"Ada Example"`, object, unknown},
		{"list", "application/json", "[]", object, unknown},
		{"list of two", "application/json", "[" + placedJSON + "," + placedJSON + "]", object, unknown},
		{"list of null", "application/json", "[null]", object, unknown},
		{"no order", "application/json", `{"status":"success","message":"order updated"}`, noID, unknown},
		{"null order", "application/json", `{"order":null}`, noID, unknown},
		{"bad order id", "application/json", `{"order":{"id":"Ada Example"}}`, noID, unknown},
		{"nil order id", "application/json", `{"order":{"id":"00000000-0000-0000-0000-000000000000"}}`, noID, unknown},
		{"failure with 200", "application/json", `{"state":"error","error_type":"x","error":"Ada Example"}`, noID, unknown},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, s := answering(t, 200, test.body, "Content-Type", test.contentType, "X-Request-Id", "r-1")
			got, err := client.Orders.Import(t.Context(), importBody())
			var e *labhealth.DecodeError
			if got != nil || !errors.As(err, &e) {
				t.Fatalf("%v, %T: %v", got, err, err)
			}
			equal(t, "labhealth: POST /v3/order/import: the response (status 200) could not be read: "+test.reason+" (request r-1)", errorText(err))
			equal(t, test.outcome, labhealth.OutcomeOf(err))
			equal(t, test.body, string(e.Body()))
			equal(t, []any{"POST /v3/order/import", 200, "r-1", 1, test.reason}, []any{e.Op, e.StatusCode, e.RequestID, e.Attempts, e.Reason})
			s.only(t)
		})
	}
	t.Run("order", func(t *testing.T) {
		client, _ := answering(t, 200, `{}`)
		_, err := client.Orders.Get(t.Context(), orderID)
		equal(t, "labhealth: GET /v3/order/{order_id}: the response (status 200) could not be read: it has no readable order id", errorText(err))
	})
	t.Run("user", func(t *testing.T) {
		client, _ := answering(t, 200, `{"client_user_id":"ada"}`)
		_, err := client.Users.Create(t.Context(), labhealth.CreateUserBody{ClientUserID: "ada"})
		equal(t, "labhealth: POST /v2/user: the response (status 200) could not be read: it has no readable user id", errorText(err))
	})
	t.Run("lists", func(t *testing.T) {
		for _, body := range []string{"null", "1", `"x"`, "[1", "true"} {
			client, _ := scripted(t, []reply{{status: 200, body: body}, {status: 200, body: body}, {status: 200, body: body}})
			_, err := client.Users.List(t.Context(), labhealth.ListUsersParams{})
			var e *labhealth.DecodeError
			if !errors.As(err, &e) {
				t.Errorf("users: %s: %v", body, err)
			}
			if _, err = client.Orders.List(t.Context(), labhealth.ListOrdersParams{}); !errors.As(err, &e) {
				t.Errorf("orders: %s: %v", body, err)
			}
			if _, err = client.LabTests.List(t.Context(), labhealth.ListLabTestsParams{}); !errors.As(err, &e) {
				t.Errorf("lab tests: %s: %v", body, err)
			}
		}
	})
	t.Run("Do", func(t *testing.T) {
		for body, want := range map[string]string{
			`{"a":`: "it is not valid JSON at byte 5: unexpected end of JSON", `<p>`: html, "OK": "it is not valid JSON at byte 0: unexpected character",
			`{"a":"Ada Example"}`: "it does not fit the Go type it is to be read into", "": empty,
		} {
			client, _ := answering(t, 200, body)
			var out struct {
				A int `json:"a"`
			}
			err := client.Do(t.Context(), "GET", "/", nil, &out)
			equal(t, "labhealth: GET (Do): the response (status 200) could not be read: "+want, errorText(err))
		}
	})
}

// The form of an answer that deployments have used too.
func TestCreateAnswerInAList(t *testing.T) {
	client, _ := answering(t, 200, " [ "+placedJSON+" ] ")
	got, err := client.Orders.Create(t.Context(), createBody())
	if err != nil {
		t.Fatal(err)
	}
	equal(t, orderID, got.Order.ID)
}

func TestContext(t *testing.T) {
	t.Run("cancelled before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		client, s := scripted(t, nil)
		_, err := client.Orders.Import(ctx, importBody())
		equal(t, "labhealth: POST /v3/order/import: canceled (0 attempts, outcome not sent)", errorText(err))
		if !errors.Is(err, context.Canceled) || labhealth.OutcomeOf(err) != labhealth.OutcomeNotSent || len(s.sent) != 0 {
			t.Errorf("outcome %v, %d requests", labhealth.OutcomeOf(err), len(s.sent))
		}
		for _, err := range client.Users.All(ctx, labhealth.ListUsersParams{}) {
			equal(t, "labhealth: GET /v2/user/: canceled (0 attempts, outcome not sent)", errorText(err))
		}
	})
	t.Run("deadline before", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), -time.Second)
		defer cancel()
		client, _ := scripted(t, nil)
		_, err := client.Orders.Import(ctx, importBody())
		equal(t, "labhealth: POST /v3/order/import: timed out (0 attempts, outcome not sent)", errorText(err))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error("not the context's error")
		}
	})
	// While waiting for another attempt: the context's error and the last answer.
	t.Run("cancelled while waiting", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			client, s := scripted(t, []reply{{status: 429, header: []string{"Retry-After", "30"}, body: `{"detail":"slow down"}`}})
			start := time.Now()
			go func() {
				<-time.After(10 * time.Second)
				cancel()
			}()
			_, err := client.Orders.Import(ctx, importBody(), labhealth.WithCallRetry(labhealth.RetryPolicy{MaxAttempts: 5}))
			equal(t, 10*time.Second, time.Since(start))
			equal(t, "labhealth: POST /v3/order/import: canceled (1 attempt, outcome rejected)", errorText(err))
			if !errors.Is(err, context.Canceled) || !errors.Is(err, labhealth.ErrRateLimited) {
				t.Error("one of the two is missing in the chain")
			}
			equal(t, `"slow down"`, string(apiError(t, err).Detail()))
			equal(t, labhealth.OutcomeRejected, labhealth.OutcomeOf(err))
			s.only(t)
		})
	})
	// Nothing waits if the time would be over before: the answer comes back at once.
	t.Run("deadline before the wait ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			client, _ := scripted(t, []reply{{status: 429, header: []string{"Retry-After", "30"}}})
			start := time.Now()
			_, err := client.Orders.Import(ctx, importBody(), labhealth.WithCallRetry(labhealth.RetryPolicy{MaxAttempts: 5}))
			equal(t, time.Duration(0), time.Since(start))
			equal(t, "labhealth: POST /v3/order/import: 429 Too Many Requests", errorText(err))
			equal(t, 30*time.Second, apiError(t, err).RetryAfter)
			equal(t, labhealth.OutcomeRejected, labhealth.OutcomeOf(err))
		})
	})
	// In flight: what a write did is not known.
	t.Run("during", func(t *testing.T) {
		for _, test := range []struct {
			ctx  func(context.Context) (context.Context, context.CancelFunc)
			want string
			is   error
		}{
			{func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(time.Second, cancel)
				return ctx, cancel
			}, "labhealth: POST /v3/order/import: canceled (1 attempt, outcome unknown)", context.Canceled},
			{func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, time.Second)
			},
				"labhealth: POST /v3/order/import: timed out (1 attempt, outcome unknown)", context.DeadlineExceeded},
		} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := test.ctx(t.Context())
				defer cancel()
				client := must[*labhealth.Client](t)(labhealth.NewClient(testKey, labhealth.WithBaseURL(testURL),
					labhealth.WithHTTPClient(&http.Client{Transport: silent{}})))
				start := time.Now()
				_, err := client.Orders.Import(ctx, importBody())
				equal(t, time.Second, time.Since(start))
				equal(t, test.want, errorText(err))
				if !errors.Is(err, test.is) {
					t.Error("not the context's error")
				}
			})
		}
	})
	// The client's own limit is no error of the context; a read is tried again.
	t.Run("attempt timeout", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := must[*labhealth.Client](t)(labhealth.NewClient(testKey, labhealth.WithBaseURL(testURL),
				labhealth.WithHTTPClient(&http.Client{Transport: silent{}}),
				labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 2, ReadTimeout: time.Second, WriteTimeout: 5 * time.Second})))
			start := time.Now()
			_, err := client.Orders.Import(t.Context(), importBody())
			equal(t, 5*time.Second, time.Since(start))
			equal(t, "labhealth: POST /v3/order/import: timed out (1 attempt, outcome unknown)", errorText(err))
			_, err = client.Orders.Get(t.Context(), orderID)
			equal(t, "labhealth: GET /v3/order/{order_id}: timed out (2 attempts, outcome unknown)", errorText(err))
		})
	})
}

// silent answers nothing until the request's time is over.
type silent struct{}

func (silent) RoundTrip(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}

// One client, many goroutines: go test -race looks on.
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
		labhealth.WithObserver(func(context.Context, labhealth.Attempt) {})))
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
