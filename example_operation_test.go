package labhealth_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// A transport of the program's own measures or traces each attempt under the name of its operation: paths hold ids. The program in
// examples/tracing does so with OpenTelemetry.
func ExampleOperation() {
	service, err := labhealthtest.Start()
	if err != nil {
		panic(err)
	}
	defer service.Close()
	defer http.DefaultClient.CloseIdleConnections()

	client, err := labhealth.NewClient(service.APIKey, labhealth.WithBaseURL(service.URL), labhealth.WithHTTPClient(&http.Client{
		Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			resp, err := http.DefaultTransport.RoundTrip(r)
			if err == nil {
				fmt.Println(labhealth.Operation(r.Context()), resp.StatusCode)
			}
			return resp, err
		}),
	}))
	if err != nil {
		panic(err)
	}
	_, err = client.Orders.Get(context.Background(), uuid.New())
	fmt.Println(labhealth.OutcomeOf(err))
	// Output:
	// GET /v3/order/{order_id} 404
	// rejected
}

// roundTrip is a function that is a transport.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
