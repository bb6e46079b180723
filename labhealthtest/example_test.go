package labhealthtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// exampleT replaces the *testing.T of a test.
type exampleT struct {
	testing.TB
	cleanup []func()
}

func (t *exampleT) Helper()                      {}
func (t *exampleT) Cleanup(f func())             { t.cleanup = append(t.cleanup, f) }
func (t *exampleT) Context() context.Context     { return context.Background() }
func (t *exampleT) Fatal(args ...any)            { log.Fatal(args...) }
func (t *exampleT) Errorf(f string, args ...any) { fmt.Printf(f+"\n", args...) }
func (t *exampleT) done() {
	for i := range t.cleanup {
		t.cleanup[len(t.cleanup)-1-i]()
	}
}

// placeOrder is application code. It imports an order and returns its ID.
func placeOrder(ctx context.Context, client *labhealth.Client, userID, labTestID uuid.UUID) (uuid.UUID, error) {
	resp, err := client.Orders.Import(ctx, labhealth.ImportOrderBody{
		UserID:           userID,
		BillingType:      labhealth.BillingClientBill,
		OrderSet:         labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{labTestID}},
		CollectionMethod: labhealth.CollectionMethodWalkInTest,
		PatientDetails: labhealth.PatientDetailsWithValidation{
			FirstName: "Ada", LastName: "Example", DOB: labhealth.Date{Year: 1985, Month: time.December, Day: 10},
			Gender: labhealth.GenderFemale, PhoneNumber: "+14155550123", Email: "ada@example.com",
		},
		PatientAddress: labhealth.PatientAddress{
			ReceiverName: "Ada Example", FirstLine: "1 Example Street", City: "Monterey", State: "CA", Zip: "93940", Country: "US",
		},
		SampleID: "SAMPLE-0001",
	})
	if err != nil {
		return uuid.Nil, err
	}
	return resp.Order.ID, nil
}

// A test of application code, placeOrder, with a server that is closed when the test completes.
func ExampleNewServer() {
	testOrder := func(t testing.TB) { // in a _test.go file: func TestOrder(t *testing.T)
		srv := labhealthtest.NewServer(t)
		client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL))
		if err != nil {
			t.Fatal(err)
		}
		id, err := placeOrder(t.Context(), client, srv.AddUser("user-1"), srv.LabTests.WalkIn)
		if err != nil {
			t.Fatal(err)
		}
		if orders := srv.Orders(); len(orders) != 1 || orders[0] != id {
			t.Errorf("got orders %v, want %s", orders, id)
		}
		sent := srv.Requests()[0]
		fmt.Println(sent.Method, sent.Path, sent.StatusCode)
	}

	t := &exampleT{}
	testOrder(t)
	t.done()
	// Output:
	// POST /v3/order/import 200
}

// The connection is closed after the order was created, before the response. See the example of
// OrdersService.Import for how an application handles this.
func ExampleServer_FailAfter() {
	srv, err := labhealthtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL))
	if err != nil {
		log.Fatal(err)
	}
	defer client.CloseIdleConnections()

	if err := srv.FailAfter("POST /v3/order/import", 1, labhealthtest.FaultClosed); err != nil {
		log.Fatal(err)
	}
	_, err = placeOrder(context.Background(), client, srv.AddUser("user-1"), srv.LabTests.WalkIn)
	fmt.Println("outcome:", labhealth.OutcomeOf(err))
	fmt.Println("orders of the service:", len(srv.Orders()))
	// Output:
	// outcome: unknown
	// orders of the service: 1
}

// An application receives the events of an order until it is completed.
func ExampleServer_DeliverTo() {
	const secret = "whsec_bGFiaGVhbHRoLXRlc3Qtc2VjcmV0LWE9" // invented
	verifier, err := webhooks.NewVerifier(secret)
	if err != nil {
		log.Fatal(err)
	}
	handler, err := webhooks.NewHandler(verifier, func(_ context.Context, event *webhooks.Event) error {
		if order, ok := event.Data.(*webhooks.LabOrder); ok {
			fmt.Println(event.Type.Action(), order.CurrentStatus())
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	application := httptest.NewServer(handler)
	defer application.Close()

	srv, err := labhealthtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	if err := srv.DeliverTo(application.URL, labhealthtest.WithSigningSecrets(secret)); err != nil {
		log.Fatal(err)
	}
	order, err := srv.AddOrder(srv.AddUser("user-1"), srv.LabTests.OnSite)
	for range 3 {
		if err == nil {
			_, err = srv.Advance(order)
		}
	}
	if err != nil {
		log.Fatal(err)
	}
	if err := srv.Flush(context.Background()); err != nil {
		log.Fatal(err)
	}
	for _, d := range srv.Deliveries() {
		if d.StatusCode != http.StatusNoContent {
			fmt.Println("not acknowledged:", d.StatusCode, d.Err)
		}
	}
	// Output:
	// created received.on_site_collection.ordered
	// updated received.on_site_collection.requisition_created
	// updated sample_with_lab.on_site_collection.draw_completed
	// updated completed.on_site_collection.completed
}

// A wearable event, which no operation of the server sends.
func ExampleServer_Send() {
	handler, err := webhooks.NewHandler(webhooks.Unsigned, func(_ context.Context, event *webhooks.Event) error {
		if batch, ok := event.Data.(*webhooks.Samples); ok {
			fmt.Println(event.Type.Resource(), batch.Data[0].Value, batch.Data[0].Unit)
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	application := httptest.NewServer(handler)
	defer application.Close()

	srv, err := labhealthtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	if err := srv.DeliverTo(application.URL); err != nil {
		log.Fatal(err)
	}
	body, err := json.Marshal(webhooks.Event{
		Type: webhooks.DailyGlucoseCreated, UserID: srv.AddUser("user-1"),
		Data: &webhooks.Samples{
			Source: webhooks.Source{Provider: "freestyle_libre"},
			Data:   []webhooks.Sample{{Timestamp: time.Now(), Value: 5.5, Unit: "mmol/L"}},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := srv.Send(body); err != nil {
		log.Fatal(err)
	}
	if err := srv.Flush(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output: glucose 5.5 mmol/L
}

// A program that shows what happens in a server, without requests of its own in the log.
func ExampleServer_Watch() {
	srv, err := labhealthtest.Start(labhealthtest.WithSeed(1))
	if err != nil {
		log.Fatal(err)
	}
	client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL), labhealth.WithHTTPClient(httpClient))
	if err != nil {
		log.Fatal(err)
	}
	direct, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL),
		labhealth.WithHTTPClient(&http.Client{Transport: srv.Direct()}))
	if err != nil {
		log.Fatal(err)
	}
	activities := srv.Watch(context.Background())

	userID := srv.AddUser("ada")
	if _, err := placeOrder(context.Background(), client, userID, srv.LabTests.WalkIn); err != nil {
		log.Fatal(err)
	}
	srv.Close() // ends the sequence
	for a := range activities {
		switch {
		case a.Request != nil:
			fmt.Println("request:", a.Request.Operation, a.Request.StatusCode)
		case a.OrderID != uuid.Nil:
			order, err := direct.Orders.Get(context.Background(), a.OrderID)
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println("order changed:", *order.SampleID)
		case a.UserID != uuid.Nil:
			fmt.Println("user changed")
		}
	}
	// Output: user changed
	// order changed: SAMPLE-0001
	// order changed: SAMPLE-0001
	// request: POST /v3/order/import 200
}

// A server for any HTTP client. With a seed and a fixed clock its responses are the same in each
// run.
func ExampleStart() {
	srv, err := labhealthtest.Start(
		labhealthtest.WithSeed(1),
		labhealthtest.WithClock(func() time.Time { return time.Date(2025, time.March, 4, 12, 0, 0, 0, time.UTC) }),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	srv.AddUser("user-1")

	req, err := http.NewRequest(http.MethodGet, srv.URL+"/v2/user/resolve/user-1", nil)
	if err != nil {
		log.Fatal(err)
	}
	req.Header.Set("x-service-api-key", srv.APIKey)
	resp, err := httpClient.Do(req)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(resp.Status)
	fmt.Println(string(body))
	// Output: 200 OK
	// {"user_id":"d67084ca-af0e-4d36-8849-6db7fef55fe0","team_id":"6ae6783f-4fbd-491b-aeb8-8b73a48ed247","client_user_id":"user-1","created_on":"2025-03-04T12:00:00+00:00","connected_sources":[]}
}
