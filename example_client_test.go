package labhealth_test

import (
	"context"
	"errors"
	"expvar"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/jarcoal/httpmock"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// Any endpoint that has no method yet, with the same safety: paths are checked, writes are not repeated, errors are the same.
func ExampleClient_Do() {
	client, service, user := exampleService()
	defer service.Close()

	var out struct {
		ClientUserID string `json:"client_user_id"`
	}
	err := client.Do(context.Background(), http.MethodGet, "/v2/user/"+user.String(), nil, &out)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(out.ClientUserID)
	// Output:
	// ada
}

// Cancelling has no method: it goes through Do, and the answer is read as that of the other operations on orders.
func ExampleClient_Do_cancel() {
	client, service, user := exampleService()
	defer service.Close()
	id, err := service.AddOrder(user, service.LabTests.Testkit)
	if err != nil {
		log.Fatal(err)
	}
	var cancelled labhealth.PostOrderResponse
	path := "/v3/order/" + id.String() + "/cancel"
	if err := client.Do(context.Background(), http.MethodPost, path, nil, &cancelled); err != nil {
		log.Fatal(err)
	}
	fmt.Println(cancelled.Order.CurrentStatus())

	err = client.Do(context.Background(), http.MethodPost, path, nil, nil)
	fmt.Println("again:", labhealth.OutcomeOf(err))
	// Output:
	// cancelled.testkit.cancelled
	// again: rejected
}

// The document has the list of orders at /orders. A deployment that has it elsewhere is told so once, when the client is made.
func ExampleWithPath() {
	_, service, _ := exampleService()
	defer service.Close()
	service.AddOrders(1)

	client, err := labhealth.NewClient(service.APIKey, labhealth.WithBaseURL(service.URL),
		labhealth.WithPath("GET /orders", "/v3/orders"))
	if err != nil {
		log.Fatal(err)
	}
	page, err := client.Orders.List(context.Background(), labhealth.ListOrdersParams{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(page.Orders), "order from", service.Requests()[0].Path)
	// Output:
	// 1 order from /v3/orders
}

// What came over the wire, also when the call fails.
func ExampleWithResponse() {
	client, service, _ := exampleService()
	defer service.Close()

	var resp labhealth.Response
	_, err := client.Users.Resolve(context.Background(), "nobody", labhealth.WithResponse(&resp))
	fmt.Println(errors.Is(err, labhealth.ErrNotFound))
	fmt.Println(resp.StatusCode, resp.Header.Get("Content-Type"), string(resp.Body))
	fmt.Println(resp.Attempts, "attempt, request id of", len(resp.RequestID), "characters")
	fmt.Println(resp) // patient data is not printed
	// Output:
	// true
	// 404 application/json {"detail":"User not found"}
	// 1 attempt, request id of 55 characters
	// labhealth.Response{redacted}
}

// A request may be tried less often, or for a shorter time, than the client's policy says.
func ExampleWithCallRetry() {
	client, service, user := exampleService()
	defer service.Close()
	if err := service.FailBefore("GET /v2/user/{user_id}", 1, labhealthtest.FaultResponse(http.StatusServiceUnavailable, `{}`)); err != nil {
		log.Fatal(err)
	}
	once := labhealth.RetryPolicy{MaxAttempts: 1, ReadTimeout: 2 * time.Second}
	_, err := client.Users.Get(context.Background(), user, labhealth.WithCallRetry(once))
	fmt.Println(err)
	// Output:
	// labhealth: GET /v2/user/{user_id}: 503 Service Unavailable
}

// The attempts of every call, for metrics: the operation names them, without ids.
func ExampleWithObserver() {
	_, service, user := exampleService()
	defer service.Close()

	client, err := labhealth.NewClient(service.APIKey, labhealth.WithBaseURL(service.URL),
		labhealth.WithObserver(func(_ context.Context, a labhealth.Attempt) {
			fmt.Println(a.Op, "attempt", a.Number, "status", a.StatusCode, "took time:", a.Duration > 0)
		}))
	if err != nil {
		log.Fatal(err)
	}
	if err := service.FailBefore("GET /v2/user/{user_id}", 1, labhealthtest.FaultResponse(http.StatusServiceUnavailable, `{}`, "Retry-After", "0")); err != nil {
		log.Fatal(err)
	}
	if _, err = client.Users.Get(context.Background(), user); err != nil {
		log.Fatal(err)
	}
	// Output:
	// GET /v2/user/{user_id} attempt 1 status 503 took time: true
	// GET /v2/user/{user_id} attempt 2 status 200 took time: true
}

// A record for each attempt. It holds no address, no body and no name.
func ExampleWithLogger() {
	_, service, _ := exampleService()
	defer service.Close()

	varies := map[string]bool{slog.TimeKey: true, "duration": true, "request_id": true} // left out of this example's output
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if varies[a.Key] {
			return slog.Attr{}
		}
		return a
	}}))
	client, err := labhealth.NewClient(service.APIKey, labhealth.WithBaseURL(service.URL), labhealth.WithLogger(logger))
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.Users.Resolve(context.Background(), "ada@example.com") // not a good reference for a user
	fmt.Println(errors.Is(err, labhealth.ErrNotFound))
	// Output:
	// level=WARN msg="labhealth request" op="GET /v2/user/resolve/{client_user_id}" attempt=1 status=404 outcome=rejected
	// true
}

// A transport of the program's own traces each attempt. It passes the request's context on, whose hooks tell a request that was
// never sent from one that got lost. The program in examples/tracing does this with OpenTelemetry.
func ExampleWithHTTPClient() {
	_, service, _ := exampleService()
	defer service.Close()
	defer http.DefaultClient.CloseIdleConnections()

	traced := roundTrip(func(r *http.Request) (*http.Response, error) {
		span := labhealth.Operation(r.Context())
		r = r.Clone(r.Context()) // a transport must not change the request it is given
		r.Header.Set("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		resp, err := http.DefaultTransport.RoundTrip(r)
		fmt.Println("end of the span", span, "error:", err != nil)
		return resp, err
	})
	client, err := labhealth.NewClient(service.APIKey, labhealth.WithBaseURL(service.URL),
		labhealth.WithHTTPClient(&http.Client{Transport: traced}))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := client.Users.List(context.Background(), labhealth.ListUsersParams{}); err != nil {
		log.Fatal(err)
	}
	fmt.Println("received with", service.Requests()[0].Header.Get("traceparent"))
	// Output:
	// end of the span GET /v2/user/ error: false
	// received with 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
}

// Metrics by operation: a path would hold the ids of orders and users.
func ExampleOperation() {
	_, service, user := exampleService()
	defer service.Close()
	defer http.DefaultClient.CloseIdleConnections()

	var requests expvar.Map // expvar.NewMap("labhealth_requests") publishes it
	counted := roundTrip(func(r *http.Request) (*http.Response, error) {
		status := "no answer"
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err == nil {
			status = fmt.Sprint(resp.StatusCode)
		}
		requests.Add(labhealth.Operation(r.Context())+" "+status, 1)
		return resp, err
	})
	client, err := labhealth.NewClient(service.APIKey, labhealth.WithBaseURL(service.URL),
		labhealth.WithHTTPClient(&http.Client{Transport: counted}))
	if err != nil {
		log.Fatal(err)
	}
	for _, id := range []uuid.UUID{user, user, uuid.New()} {
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

// roundTrip is a function that is a transport.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Where a script is enough for a test, an http.Client with a transport such as httpmock's gives the answers.
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
	// labhealth: GET /v3/order/{order_id}: 404 Not Found
	// calls: 1
}
