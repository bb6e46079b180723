package conformance

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/labhealth/labhealth-go"
)

// callAll makes one call of each method with the options.
func callAll(t testing.TB, client *labhealth.Client, opts ...labhealth.CallOption) map[string]error {
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

func TestInvalidCallOptions(t *testing.T) {
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
		{"negative attempts", labhealth.WithCallRetry(labhealth.RetryPolicy{MaxAttempts: -1}), " WithCallRetry RetryPolicy.MaxAttempts must not be negative"},
		{"negative wait", labhealth.WithCallRetry(labhealth.RetryPolicy{MaxWait: -1}), " WithCallRetry RetryPolicy.MaxWait must not be negative"},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, s := scripted(t, nil)
			errs := callAll(t, client, test.opt)
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

// calledOperations has the operation of each call of callAll.
var calledOperations = map[string]string{
	"Import": "POST /v3/order/import", "Create": "POST /v3/order", "Get": "GET /v3/order/{order_id}",
	"Orders.List": "GET /orders", "Orders.All": "GET /orders",
	"Update": "PATCH /v3/order/{order_id}", "Reschedule": "PATCH /v3/order/{order_id}", "Release": "PATCH /v3/order/{order_id}",
	"Users.List": "GET /v2/user/", "Users.All": "GET /v2/user/", "Users.Create": "POST /v2/user", "Do": "POST (Do)",
}

func TestIdempotencyKey(t *testing.T) {
	// The option is invalid for other operations, and with an invalid key.
	client, s := scripted(t, nil)
	errs := callAll(t, client, labhealth.WithIdempotencyKey("key-1"))
	delete(errs, "Create")
	if len(errs) != len(calledOperations)-1 {
		t.Fatalf("%d calls", len(errs))
	}
	for name, err := range errs {
		if want := "labhealth: " + calledOperations[name] + ": not sent: WithIdempotencyKey is for Orders.Create, Orders.CreateTestkit, and Appointments.Book with AppointmentWalkIn; after an unknown outcome of another operation, check whether it took effect before you repeat it"; errorText(err) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, key := range []string{"", "a b", "ü", "a\n", strings.Repeat("k", 256)} {
		_, err := client.Orders.Create(t.Context(), createBody(), labhealth.WithIdempotencyKey(key))
		equal(t, "labhealth: POST /v3/order: not sent: WithIdempotencyKey needs 1 to 255 printable ASCII characters", errorText(err))
	}
	equal(t, 1, len(s.sent)) // that of Create in callAll

	// With a key a write with an unknown outcome is repeated: same bytes, same key.
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
	client, s := respondingWith(t, 200, placedJSON)
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
	client, s := respondingWith(t, 200, `{"orders":[]}`)
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
		{"rejection", reply{status: 403, body: `{"detail":"no"}`, header: []string{"X-Request-Id", "abc-1"}}, labhealth.Response{
			StatusCode: 403, Header: http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"abc-1"}}, Body: []byte(`{"detail":"no"}`), Attempts: 1, RequestID: "abc-1",
		}, "labhealth: GET /orders: 403 Forbidden: rejected (the team or the key has no access to this; APIError.Message has the service's text) (request abc-1)"},
		{"request id that is none", reply{status: 403, header: []string{"X-Request-Id", "Ada Example"}}, labhealth.Response{
			StatusCode: 403, Header: http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"Ada Example"}}, Body: []byte{}, Attempts: 1,
		}, "labhealth: GET /orders: 403 Forbidden: rejected (the team or the key has no access to this)"},
		{"unreadable", reply{status: 200, body: `{`}, labhealth.Response{
			StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(`{`), Attempts: 1,
		}, "labhealth: GET /orders: 200 OK, but the response could not be read: applied (it is not valid JSON at byte 1: unexpected end of JSON)"},
		{"no response", reply{err: errors.New("lost")}, labhealth.Response{Attempts: 1},
			"labhealth: GET /orders: the http.RoundTripper failed (see TransportError.Cause)"},
		{"redirect to elsewhere", reply{status: 302, header: []string{"Location", "https://elsewhere.example.com/orders"}}, labhealth.Response{
			StatusCode: 302, Header: http.Header{"Content-Type": {"application/json"}, "Location": {"https://elsewhere.example.com/orders"}}, Attempts: 1,
		},
			"labhealth: GET /orders: 302 Found (only redirects to the same scheme, host and port are followed, at most five: check the scheme, the host and the path of the base URL)"},
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
		client, _ := respondingWith(t, 403, `{"detail":"no"}`)
		var got labhealth.Response
		_, err := client.Orders.List(t.Context(), labhealth.ListOrdersParams{}, labhealth.WithResponse(&got))
		got.Body[0] = 'x'
		equal(t, `"no"`, string(apiError(t, err).Detail()))
	})
}

// equateEmpty treats an empty slice of bytes like nil.
var equateEmpty = cmp.Transformer("text", func(b []byte) string { return string(b) })

func TestWithoutValidation(t *testing.T) {
	client, s := scripted(t, []reply{{status: 422, body: `{}`}, {status: 422, body: `{}`}, {status: 500}})
	_, err := client.Orders.Import(t.Context(), labhealth.ImportOrderBody{PatientDetails: labhealth.PatientDetailsWithValidation{DOB: future}}, labhealth.WithoutValidation())
	equal(t, "labhealth: POST /v3/order/import: 422 Unprocessable Entity: rejected (see APIError.Body)", errorText(err))
	past := labhealth.Date{Year: 2001, Month: time.January, Day: 31}
	_, err = client.Orders.Reschedule(t.Context(), orderID, past, labhealth.WithoutValidation())
	equal(t, "labhealth: PATCH /v3/order/{order_id}: 422 Unprocessable Entity: rejected (see APIError.Body)", errorText(err))
	_, err = client.Users.List(t.Context(), labhealth.ListUsersParams{Offset: -1, Limit: 501}, labhealth.WithoutValidation())
	equal(t, "labhealth: GET /v2/user/: 500 Internal Server Error (try again later)", errorText(err))

	equal(t, jsonData(t, `{"user_id":"00000000-0000-0000-0000-000000000000","billing_type":"","order_set":{},"collection_method":"","sample_id":"",
		"patient_details":{"first_name":"","last_name":"","dob":"2999-12-31","gender":"","phone_number":"","email":""},
		"patient_address":{"receiver_name":"","first_line":"","city":"","state":"","zip":"","country":""}}`), jsonData(t, s.sent[0].Body))
	equal(t, jsonData(t, `{"activate_by":"2001-01-31"}`), jsonData(t, s.sent[1].Body))
	equal(t, "https://api.example.com/v2/user/?limit=501&offset=-1", s.sent[2].URL)

	// Without validation, a path or body that cannot be sent is still an error.
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

// Keys and what the client manages are not set in another spelling, nor is a part asked for.
func TestReservedHeaders(t *testing.T) {
	for _, name := range []string{
		"Range", "range", "If-Range", "Content-Range", "Content-Encoding", "Keep-Alive", "Proxy-Connection", "HTTP2-Settings",
		"X_Service_Api_Key", "x_service-api_key", "X-SERVICE_API-KEY", "X_Management_Key", "x_service_org_key", "Proxy_Authorization",
		"X_Idempotency_Key", "idempotency_key", "User_Agent", "Content_Type", "content_length", "X-HTTP-Method-Override", "X_HTTP_Method", "x-method-override", "Transfer_Encoding",
	} {
		client, s := respondingWith(t, 200, `{}`)
		err := client.Do(t.Context(), "GET", "/", nil, nil, labhealth.WithHeader(name, "x"))
		if err == nil || !strings.Contains(err.Error(), "is set by the client") || len(s.sent) > 0 {
			t.Errorf("WithHeader accepts %s: %v", name, err)
		}
		if _, err := labhealth.NewClient(testKey, labhealth.WithBaseURL(testURL), labhealth.WithDefaultHeader(name, "x")); err == nil {
			t.Errorf("WithDefaultHeader accepts %s", name)
		}
	}
	for _, name := range []string{"X_Trace_Id", "X-Service", "Traceparent", "Accept-Language", "X-Ranges", "Baggage"} {
		client, s := respondingWith(t, 200, `{}`)
		err := client.Do(t.Context(), "GET", "/", nil, nil, labhealth.WithHeader(name, "x"))
		if err != nil || s.only(t).Header.Get(name) != "x" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
