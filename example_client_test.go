package labhealth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/jarcoal/httpmock"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// Create a client for one region. The service does not publish its base URLs.
func ExampleWithEnvironment() {
	apiKey := "sk_us_0123456789"

	client, err := labhealth.NewClient(apiKey, labhealth.WithEnvironment(labhealth.SandboxUS, "https://api.sandbox.us.example.com"))
	fmt.Println(client != nil, err)
	// Output:
	// true <nil>
}

// Choose the environment that a configuration file names.
func ExampleParseEnvironment() {
	apiKey := "sk_eu_0123456789"
	config := map[string]string{"environment": "production-eu", "base_url": "https://api.eu.example.com"}

	env, err := labhealth.ParseEnvironment(config["environment"]) // "sandbox_us", "production-eu", "Sandbox US", …
	if err != nil {
		log.Fatal(err)
	}
	client, err := labhealth.NewClient(apiKey, labhealth.WithEnvironment(env, config["base_url"]))
	fmt.Println(client != nil, err, env)
	// Output:
	// true <nil> production_eu
}

// Decode the environment as a part of a configuration.
func ExampleEnvironment() {
	var config struct {
		Environment labhealth.Environment
		BaseURL     string
	}
	err := json.Unmarshal([]byte(`{"Environment": "Sandbox US", "BaseURL": "https://api.sandbox.us.example.com"}`), &config)
	fmt.Println(config.Environment, err)

	_, err = labhealth.ParseEnvironment("staging")
	fmt.Println(err)
	// Output:
	// sandbox_us <nil>
	// labhealth: the environment must be production_us, production_eu, sandbox_us or sandbox_eu
}

// Use a service that has no environments, such as a proxy. The URL must be https, except on the
// loopback interface.
func ExampleWithBaseURL() {
	apiKey := "sk_us_0123456789"

	client, err := labhealth.NewClient(apiKey, labhealth.WithBaseURL("https://api.example.com"))
	fmt.Println(client != nil, err)
	// Output:
	// true <nil>
}

// Read the key from a file that is replaced when the key is rotated, such as a mounted secret.
func ExampleWithCredentials() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "secret")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "api-key")
	rotate := func(key string) { // as a deployment does
		if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
			log.Fatal(err)
		}
	}
	rotate("sk_us_1")
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, _ := os.ReadFile(file)
		fmt.Println("received", r.Header.Get("x-service-api-key"))
		if r.Header.Get("x-service-api-key") != string(key) {
			w.WriteHeader(http.StatusUnauthorized)
		}
		fmt.Fprint(w, `{"providers": []}`)
	}))
	defer service.Close()
	baseURL := service.URL

	readKey := func(context.Context) (labhealth.Credentials, error) {
		key, err := os.ReadFile(file)
		return labhealth.Credentials{
			Key:     labhealth.Secret(bytes.TrimSpace(key)),
			Expires: time.Now().Add(time.Minute), // then the file is read again
		}, err
	}
	client, err := labhealth.NewClient("", labhealth.WithEnvironment(labhealth.SandboxUS, baseURL), labhealth.WithCredentials(readKey))
	if err != nil {
		log.Fatal(err)
	}
	defer client.CloseIdleConnections()
	var out any
	fmt.Println(client.Do(ctx, http.MethodGet, "/v2/user/providers", nil, &out))
	rotate("sk_us_2")
	fmt.Println(client.Do(ctx, http.MethodGet, "/v2/user/providers", nil, &out)) // repeated after a 401
	// Output:
	// received sk_us_1
	// <nil>
	// received sk_us_1
	// received sk_us_2
	// <nil>
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
	// {redacted}
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
	// labhealth: GET /v2/user/{user_id}: 503 Service Unavailable (overloaded or under maintenance; try again later)
}

// Observe every attempt, for metrics. Attempt.Op names the operation without IDs.
func ExampleWithCallObserver_attempts() {
	_, srv, userID := exampleService()
	defer srv.Close()

	client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL),
		labhealth.WithCallObserver(labhealth.CallObserver{Attempt: func(_ context.Context, a labhealth.Attempt) {
			fmt.Println(a.Op, "attempt", a.Number, "status", a.StatusCode, "timed:", a.Duration > 0)
		}}))
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

// Log, and count calls by operation, outcome and kind of failure. Neither records a URL, an ID or a
// body.
func Example_observability() {
	_, srv, userID := exampleService()
	defer srv.Close()
	apiKey, baseURL := srv.APIKey, srv.URL
	var calls expvar.Map // expvar.NewMap("labhealth_calls") publishes it

	client, err := labhealth.NewClient(apiKey, labhealth.WithEnvironment(labhealth.SandboxUS, baseURL),
		labhealth.WithLogger(slog.Default()), // a call that fails is one record, which says why
		labhealth.WithCallObserver(labhealth.CallObserver{End: func(_ context.Context, c labhealth.Call) {
			calls.Add(fmt.Sprint(c.Op, " ", c.Outcome, " ", labhealth.FailureOf(c.Err)), 1)
		}}))
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		if _, err := client.Users.Get(context.Background(), userID); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(&calls)
	// Output:
	// {"GET /v2/user/{user_id} applied ": 2}
}

// Observe calls, with all their attempts, and send a header with each of them.
func ExampleWithCallObserver() {
	_, srv, userID := exampleService()
	defer srv.Close()
	type span struct{}

	client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL),
		labhealth.WithCallObserver(labhealth.CallObserver{
			Start: func(ctx context.Context, op string, header http.Header) context.Context {
				header.Set("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
				return context.WithValue(ctx, span{}, op)
			},
			End: func(ctx context.Context, c labhealth.Call) {
				fmt.Println("end", ctx.Value(span{}), c.StatusCode, c.Outcome, "after", len(c.Attempts), "attempts")
			},
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
	// end GET /v2/user/{user_id} 200 applied after 2 attempts
}

// Send at most one request per second. A call that could not be sent before the deadline of its
// context returns at once.
func ExampleWithRateLimit() {
	_, srv, userID := exampleService()
	defer srv.Close()
	client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL), labhealth.WithRateLimit(1, 1))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := client.Users.Get(context.Background(), userID); err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err = client.Users.Get(ctx, userID)
	fmt.Println(labhealth.FailureOf(err), "-", labhealth.OutcomeOf(err))
	// Output:
	// client_rate_limit - not sent
}

// Log attempts and calls. The records hold no URL, no body and no ID of a user, an order or a sample.
func ExampleWithLogger() {
	_, srv, _ := exampleService()
	defer srv.Close()

	varies := map[string]bool{slog.TimeKey: true, "duration": true, "request_id": true, "error": true} // omitted from the example's output
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
	// level=INFO msg="labhealth call" op="GET /v2/user/resolve/{client_user_id}" attempts=1 status=404 outcome=rejected
	// true
}

// Trace each attempt with a custom transport. The transport passes on the request's context, whose
// httptrace hooks show whether a request was sent. For OpenTelemetry, see module labhealthotel.
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
