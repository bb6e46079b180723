package labhealth_test

import (
	"context"
	"errors"
	"expvar"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/jarcoal/httpmock"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// List the base URLs of your environments once, and choose one by name. The service does not
// publish them.
func ExampleWithEnvironment() {
	apiKey := "sk_us_0123456789"

	baseURLs := labhealth.BaseURLs{
		labhealth.ProductionUS: "https://api.us.example.com",
		labhealth.ProductionEU: "https://api.eu.example.com",
		labhealth.SandboxUS:    "https://api.sandbox.us.example.com",
		labhealth.SandboxEU:    "https://api.sandbox.eu.example.com",
	}
	client, err := labhealth.NewClient(apiKey, labhealth.WithEnvironment(labhealth.SandboxUS, baseURLs))
	fmt.Println(client != nil, err)
	// Output:
	// true <nil>
}

// Use a single base URL. It must be https, except on the loopback interface.
func ExampleWithBaseURL() {
	apiKey := "sk_us_0123456789"

	client, err := labhealth.NewClient(apiKey, labhealth.WithBaseURL("https://api.example.com"))
	fmt.Println(client != nil, err)
	// Output:
	// true <nil>
}

// Call an endpoint that has no method. Do checks paths, retries and reports errors like a method.
func ExampleClient_Do() {
	ctx := context.Background()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"total_users": 2}`) // invented
	}))
	defer service.Close()
	client, err := labhealth.NewClient("sk_us_0123456789", labhealth.WithBaseURL(service.URL))
	if err != nil {
		log.Fatal(err)
	}

	var metrics map[string]any // or a struct of yours
	if err := client.Do(ctx, http.MethodGet, "/v2/user/metrics", nil, &metrics); err != nil {
		log.Fatal(err)
	}
	fmt.Println(metrics)
	// Output:
	// map[total_users:2]
}

// Configure another path for an operation. Some deployments list orders at /v3/orders.
func ExampleWithPath() {
	_, srv, _ := exampleService()
	defer srv.Close()
	srv.AddOrders(1)

	client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL),
		labhealth.WithPath("GET /orders", "/v3/orders"))
	if err != nil {
		log.Fatal(err)
	}
	page, err := client.Orders.List(context.Background(), labhealth.ListOrdersParams{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(page.Orders), "order from", srv.Requests()[0].Path)
	// Output:
	// 1 order from /v3/orders
}

// Read the HTTP response of a call, even of one that fails.
func ExampleWithResponse() {
	client, srv, _ := exampleService()
	defer srv.Close()

	var resp labhealth.Response
	_, err := client.Users.Resolve(context.Background(), "nobody", labhealth.WithResponse(&resp))
	fmt.Println(errors.Is(err, labhealth.ErrNotFound))
	fmt.Println(resp.StatusCode, resp.Header.Get("Content-Type"), string(resp.Body))
	fmt.Println("attempts:", resp.Attempts, "request ID:", resp.RequestID != "")
	fmt.Println(resp) // redacted
	// Output:
	// true
	// 404 application/json {"detail":"User not found"}
	// attempts: 1 request ID: true
	// labhealth.Response{redacted}
}

// Override the client's retry policy for one call.
func ExampleWithCallRetry() {
	client, srv, userID := exampleService()
	defer srv.Close()
	unavailable := labhealthtest.FaultResponse(http.StatusServiceUnavailable, `{}`)
	if err := srv.FailBefore("GET /v2/user/{user_id}", 1, unavailable); err != nil {
		log.Fatal(err)
	}
	once := labhealth.RetryPolicy{MaxAttempts: 1, ReadTimeout: 2 * time.Second}
	_, err := client.Users.Get(context.Background(), userID, labhealth.WithCallRetry(once))
	fmt.Println(err)
	// Output:
	// labhealth: GET /v2/user/{user_id}: 503 Service Unavailable: outcome unknown (overloaded or under maintenance; try again later)
}

// Observe every attempt, for metrics. Attempt.Op names the operation without IDs.
func ExampleWithObserver() {
	_, srv, userID := exampleService()
	defer srv.Close()

	client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL),
		labhealth.WithObserver(func(_ context.Context, a labhealth.Attempt) {
			fmt.Println(a.Op, "attempt", a.Number, "status", a.StatusCode, "timed:", a.Duration > 0)
		}))
	if err != nil {
		log.Fatal(err)
	}
	unavailable := labhealthtest.FaultResponse(http.StatusServiceUnavailable, `{}`, "Retry-After", "0")
	if err := srv.FailBefore("GET /v2/user/{user_id}", 1, unavailable); err != nil {
		log.Fatal(err)
	}
	if _, err = client.Users.Get(context.Background(), userID); err != nil {
		log.Fatal(err)
	}
	// Output:
	// GET /v2/user/{user_id} attempt 1 status 503 timed: true
	// GET /v2/user/{user_id} attempt 2 status 200 timed: true
}

// Log every attempt, and count attempts by operation and status. Neither records a URL, an ID or
// a body.
func Example_observability() {
	_, srv, userID := exampleService()
	defer srv.Close()
	apiKey, baseURLs := srv.APIKey, labhealth.BaseURLs{labhealth.SandboxUS: srv.URL}
	var attempts expvar.Map // expvar.NewMap("labhealth_attempts") publishes it

	client, err := labhealth.NewClient(apiKey, labhealth.WithEnvironment(labhealth.SandboxUS, baseURLs),
		labhealth.WithLogger(slog.Default()), // 2xx at debug level, everything else as a warning
		labhealth.WithObserver(func(_ context.Context, a labhealth.Attempt) {
			attempts.Add(fmt.Sprint(a.Op, " ", a.StatusCode), 1)
		}))
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		if _, err := client.Users.Get(context.Background(), userID); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(&attempts)
	// Output:
	// {"GET /v2/user/{user_id} 200": 2}
}

// Log every attempt. The record holds no URL, no body and no ID of a user, an order or a sample.
func ExampleWithLogger() {
	_, srv, _ := exampleService()
	defer srv.Close()

	varies := map[string]bool{slog.TimeKey: true, "duration": true, "request_id": true} // omitted from the example's output
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if varies[a.Key] {
			return slog.Attr{}
		}
		return a
	}}))
	client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL), labhealth.WithLogger(logger))
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.Users.Resolve(context.Background(), "ada@example.com")
	fmt.Println(errors.Is(err, labhealth.ErrNotFound))
	// Output:
	// level=WARN msg="labhealth request" op="GET /v2/user/resolve/{client_user_id}" attempt=1 status=404 outcome=rejected
	// true
}

// Trace each attempt with a custom transport. The transport passes on the request's context, whose
// httptrace hooks show whether a request was sent. See examples/tracing for OpenTelemetry.
func ExampleWithHTTPClient() {
	_, srv, _ := exampleService()
	defer srv.Close()
	defer http.DefaultClient.CloseIdleConnections()

	traced := roundTrip(func(r *http.Request) (*http.Response, error) {
		span := labhealth.Operation(r.Context())
		r = r.Clone(r.Context()) // a RoundTripper must not modify the request
		r.Header.Set("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		resp, err := http.DefaultTransport.RoundTrip(r)
		fmt.Println("end span", span, "error:", err != nil)
		return resp, err
	})
	client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL),
		labhealth.WithHTTPClient(&http.Client{Transport: traced}))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := client.Users.List(context.Background(), labhealth.ListUsersParams{}); err != nil {
		log.Fatal(err)
	}
	fmt.Println("traceparent:", srv.Requests()[0].Header.Get("traceparent"))
	// Output:
	// end span GET /v2/user/ error: false
	// traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
}

// Count requests by operation in a custom transport. Paths contain the IDs of orders and users.
func ExampleOperation() {
	_, srv, userID := exampleService()
	defer srv.Close()
	defer http.DefaultClient.CloseIdleConnections()

	var requests expvar.Map // expvar.NewMap("labhealth_requests") publishes it
	counted := roundTrip(func(r *http.Request) (*http.Response, error) {
		status := "no response"
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err == nil {
			status = fmt.Sprint(resp.StatusCode)
		}
		requests.Add(labhealth.Operation(r.Context())+" "+status, 1)
		return resp, err
	})
	client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL),
		labhealth.WithHTTPClient(&http.Client{Transport: counted}))
	if err != nil {
		log.Fatal(err)
	}
	for _, id := range []uuid.UUID{userID, userID, uuid.New()} {
		_, err := client.Users.Get(context.Background(), id)
		fmt.Println(labhealth.OutcomeOf(err))
	}
	fmt.Println(&requests)
	// Output:
	// applied
	// applied
	// rejected
	// {"GET /v2/user/{user_id} 200": 2, "GET /v2/user/{user_id} 404": 1}
}

// roundTrip is an http.RoundTripper made from a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Mock a single response with httpmock.
func ExampleWithHTTPClient_httpmock() {
	mock := httpmock.NewMockTransport()
	mock.RegisterResponder(http.MethodGet, "https://api.example.com/v3/order/0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b",
		httpmock.NewStringResponder(http.StatusNotFound, `{"detail":"This order doesn't exist"}`))

	client, err := labhealth.NewClient("sk_test_0123456789",
		labhealth.WithBaseURL("https://api.example.com"),
		labhealth.WithHTTPClient(&http.Client{Transport: mock}))
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.Orders.Get(context.Background(), uuid.MustParse("0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b"))
	fmt.Println(err)
	fmt.Println("calls:", mock.GetTotalCallCount())
	// Output:
	// labhealth: GET /v3/order/{order_id}: 404 Not Found: rejected (no such order: check the ID and the environment)
	// calls: 1
}
