package labhealth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jarcoal/httpmock"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// exampleService starts the embedded service with one user, and a client for it. With a real service there is only the client:
// see ExampleNewClient.
func exampleService() (client *labhealth.Client, service *labhealthtest.Server, user uuid.UUID) {
	service, err := labhealthtest.Start(labhealthtest.WithSeed(1))
	if err != nil {
		panic(err)
	}
	client, err = labhealth.NewClient(service.APIKey, labhealth.WithBaseURL(service.URL))
	if err != nil {
		panic(err)
	}
	return client, service, service.AddUser("ada")
}

// ada is an invented patient.
var ada = labhealth.PatientDetailsWithValidation{
	FirstName:   "Ada",
	LastName:    "Example",
	DOB:         labhealth.Date{Year: 1990, Month: time.January, Day: 31},
	Gender:      labhealth.GenderFemale,
	PhoneNumber: "+14155550123",
	Email:       "ada@example.com",
}

// exampleImport is an order of Ada's, with its sample.
func exampleImport(service *labhealthtest.Server, user uuid.UUID) labhealth.ImportOrderBody {
	return labhealth.ImportOrderBody{
		UserID:           user,
		BillingType:      labhealth.BillingClientBill,
		OrderSet:         labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{service.LabTests.Testkit}},
		CollectionMethod: labhealth.CollectionMethodTestkit,
		PatientDetails:   ada,
		PatientAddress: labhealth.PatientAddress{
			ReceiverName: "Ada Example", FirstLine: "1 Main Street", City: "San Francisco", State: "CA", Zip: "94105", Country: "US",
		},
		SampleID: "SAMPLE-1",
	}
}

// The service has four environments, and the document publishes none of their addresses: write yours down once, and choose one
// by name.
func ExampleNewClient() {
	addresses := labhealth.BaseURLs{
		labhealth.ProductionUS: "https://api.us.example.com",
		labhealth.SandboxUS:    "https://api.sandbox.us.example.com",
	}
	_, err := labhealth.NewClient("sk_us_0123456789", labhealth.WithEnvironment(labhealth.SandboxUS, addresses))
	fmt.Println(err)

	_, err = labhealth.NewClient("sk_eu_0123456789", labhealth.WithEnvironment(labhealth.ProductionEU, addresses))
	fmt.Println(err)
	// Output:
	// <nil>
	// labhealth: no address for the environment "production EU": the addresses given are for ["production US" "sandbox US"]
}

// An order that exists already is brought into the service, with its sample.
func ExampleOrdersService_Import() {
	client, service, user := exampleService()
	defer service.Close()
	ctx := context.Background()

	resp, err := client.Orders.Import(ctx, labhealth.ImportOrderBody{
		UserID:           user,
		BillingType:      labhealth.BillingClientBill,
		OrderSet:         labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{service.LabTests.Testkit}},
		CollectionMethod: labhealth.CollectionMethodTestkit,
		PatientDetails: labhealth.PatientDetailsWithValidation{
			FirstName:   "Ada",
			LastName:    "Example",
			DOB:         labhealth.Date{Year: 1990, Month: time.January, Day: 31},
			Gender:      labhealth.GenderFemale,
			PhoneNumber: "+14155550123",
			Email:       "ada@example.com",
			Race:        labhealth.Ptr(labhealth.RaceAsian), // optional members are pointers
		},
		PatientAddress: labhealth.PatientAddress{
			ReceiverName: "Ada Example",
			FirstLine:    "1 Main Street",
			City:         "San Francisco",
			State:        "CA",
			Zip:          "94105",
			Country:      "US",
		},
		SampleID: "SAMPLE-1",
	})
	if err != nil {
		fmt.Println(err, "outcome:", labhealth.OutcomeOf(err))
		return
	}
	fmt.Println(resp.Message)
	fmt.Println(resp.Order.CurrentStatus())
	fmt.Println(resp.Order.PatientDetails) // patient data is not printed
	// Output:
	// Order created successfully
	// received.testkit.requisition_bypassed
	// labhealth.OrderPatientDetails{redacted}
}

// A mistake that the interface document rules out is refused before anything is sent, with all others.
func ExampleOrdersService_Import_refused() {
	client, service, user := exampleService()
	defer service.Close()

	body := exampleImport(service, user)
	body.PatientDetails.FirstName = ""
	body.PatientAddress.Zip = ""
	_, err := client.Orders.Import(context.Background(), body)

	var invalid *labhealth.ValidationError
	if errors.As(err, &invalid) {
		for _, field := range invalid.Fields {
			fmt.Println(field.Path(), field.Msg)
		}
	}
	fmt.Println("requests sent:", len(service.Requests()))
	// Output:
	// body.patient_details.first_name is required: 1 to 50 characters
	// body.patient_address.zip is required
	// requests sent: 0
}

// Only an order that was created with a date can be moved or released, and only while it has not been dispatched.
func ExampleOrdersService_Reschedule() {
	client, service, user := exampleService()
	defer service.Close()
	ctx := context.Background()

	nextWeek := labhealth.DateOf(time.Now().AddDate(0, 0, 7))
	placed, err := client.Orders.Create(ctx, labhealth.CreateOrderBody{
		UserID:         user,
		OrderSet:       &labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{service.LabTests.WalkIn}},
		PatientDetails: ada,
		PatientAddress: labhealth.PatientAddressWithValidation{
			FirstLine: "1 Main Street", City: "San Francisco", State: "CA", Zip: "94105", Country: "US",
		},
		ActivateBy: &nextWeek,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	id := placed.Order.ID
	fmt.Println(placed.Order.CurrentStatus(), "can be modified:", placed.Order.CurrentStatus().Modifiable())

	weekAfter := labhealth.DateOf(time.Now().AddDate(0, 0, 14))
	moved, err := client.Orders.Reschedule(ctx, id, weekAfter)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("moved:", *moved.Order.ActivateBy == weekAfter)

	released, err := client.Orders.Release(ctx, id) // sends null, which dispatches the order at once
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(released.Order.CurrentStatus(), "can be modified:", released.Order.CurrentStatus().Modifiable())

	_, err = client.Orders.Reschedule(ctx, id, weekAfter)
	fmt.Println("afterwards:", labhealth.OutcomeOf(err))
	// Output:
	// received.walk_in_test.ordered can be modified: true
	// moved: true
	// received.walk_in_test.requisition_created can be modified: false
	// afterwards: rejected
}

// The iterators read page by page and hold one page at a time.
func ExampleOrdersService_All() {
	client, service, _ := exampleService()
	defer service.Close()
	for _, order := range service.AddOrders(3) {
		if err := service.SetInterpretation(order, "abnormal"); err != nil {
			fmt.Println(err)
		}
	}
	service.AddOrders(200)

	abnormal := labhealth.ListOrdersParams{Interpretation: labhealth.InterpretationAbnormal}
	for order, err := range client.Orders.All(context.Background(), abnormal) {
		if err != nil {
			fmt.Println(err) // an error ends the list
			break
		}
		fmt.Println(*order.Interpretation, order.CurrentStatus())
	}
	// Output:
	// abnormal received.at_home_phlebotomy.ordered
	// abnormal received.walk_in_test.ordered
	// abnormal received.testkit.ordered
}

func ExampleUsersService_All() {
	client, service, _ := exampleService()
	defer service.Close()
	service.AddUser("grace")
	service.AddUser("alan")

	for user, err := range client.Users.All(context.Background(), labhealth.ListUsersParams{Limit: 2}) {
		if err != nil {
			fmt.Println(err) // an error ends the list
			break
		}
		fmt.Println(user.ClientUserID)
	}
	// Output:
	// ada
	// grace
	// alan
}

// Creating a user is idempotent: where the client user id is taken, the error says by whom. Users.GetOrCreate does the same in one
// call.
func ExampleUserConflictError() {
	client, service, _ := exampleService()
	defer service.Close()

	_, err := client.Users.Create(context.Background(), labhealth.CreateUserBody{ClientUserID: "ada"})
	var conflict *labhealth.UserConflictError
	if errors.As(err, &conflict) {
		fmt.Println("there already:", conflict.UserID)
	}
	// Output:
	// there already: d67084ca-af0e-4d36-8849-6db7fef55fe0
}

// Errors have classes, and what the service said about fields.
func ExampleAPIError() {
	client, service, user := exampleService()
	defer service.Close()
	ctx := context.Background()

	handle := func(err error) {
		var refused *labhealth.APIError
		switch {
		case errors.Is(err, labhealth.ErrNotFound):
			fmt.Println("no such order")
		case errors.Is(err, labhealth.ErrUnauthorized):
			fmt.Println("is the key right?")
		case errors.As(err, &refused) && len(refused.Fields()) > 0:
			for _, field := range refused.Fields() {
				fmt.Println(refused.StatusCode, field.Path(), field.Type)
			}
		case errors.As(err, &refused):
			fmt.Println(refused.StatusCode, string(refused.Detail())) // may echo what was sent: not for logs
		default:
			fmt.Println(err)
		}
	}

	_, err := client.Orders.Get(ctx, uuid.New())
	handle(err)

	body := exampleImport(service, user)
	body.PatientDetails.PhoneNumber = "none"
	_, err = client.Orders.Import(ctx, body)
	handle(err)

	service.RefuseImport(http.StatusForbidden, `{"detail":"This endpoint is in closed beta"}`)
	_, err = client.Orders.Import(ctx, exampleImport(service, user))
	handle(err)
	// Output:
	// no such order
	// 422 body.patient_details.phone_number value_error
	// 403 "This endpoint is in closed beta"
}

// After a failed import the outcome says what to do next. Only an unknown one needs a look at the service.
func ExampleOutcomeOf() {
	client, service, user := exampleService()
	defer service.Close()
	ctx := context.Background()
	service.RefuseImport(http.StatusBadGateway, "Bad Gateway") // is the order there or not?

	body := exampleImport(service, user)
	_, err := client.Orders.Import(ctx, body)
	switch labhealth.OutcomeOf(err) {
	case labhealth.OutcomeApplied:
		fmt.Println("imported") // with an error: only its answer is damaged
	case labhealth.OutcomeNotSent, labhealth.OutcomeRejected:
		fmt.Println("not imported:", err)
	case labhealth.OutcomeUnknown:
		found := false
		for order, err := range client.Orders.All(ctx, labhealth.ListOrdersParams{UserID: body.UserID}) {
			if err != nil {
				fmt.Println(err)
				return
			}
			found = found || order.SampleID != nil && *order.SampleID == body.SampleID
		}
		fmt.Println("not known; found among the user's orders:", found)
	}
	// Output:
	// not known; found among the user's orders: false
}

// Any endpoint that has no method yet, with the same safety: paths are checked, writes are not repeated, errors are the same.
func ExampleClient_Do() {
	client, service, user := exampleService()
	defer service.Close()

	var out struct {
		ClientUserID string `json:"client_user_id"`
	}
	err := client.Do(context.Background(), http.MethodGet, "/v2/user/"+user.String(), nil, &out)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out.ClientUserID)
	// Output:
	// ada
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

// The details of an order depend on how the sample is collected. What this version does not know keeps its bytes.
func ExampleOrderDetails() {
	var order labhealth.Order
	err := order.UnmarshalJSON([]byte(`{
		"id": "0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b",
		"details": {"type": "drone_collection", "data": {"drone": 7}},
		"last_event": {"status": "collecting_sample.drone_collection.in_flight"}
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	switch data := order.Details.Data.(type) {
	case *labhealth.TestkitOrder:
		fmt.Println("a kit, on its way:", data.Shipment != nil)
	case *labhealth.WalkInTestOrder:
		fmt.Println("appointment:", data.AppointmentID)
	case *labhealth.AtHomePhlebotomyOrder:
		fmt.Println("appointment:", data.AppointmentID)
	case *labhealth.OnSiteCollectionOrder:
		fmt.Println("collected on site")
	case *labhealth.UnknownOrderDetails:
		fmt.Println(order.Details.Type, string(data.RawJSON()))
	case nil:
		fmt.Println("no details")
	}

	// Enumerations may gain values: a switch over them needs a default case.
	switch status := order.CurrentStatus(); status.TopLevel() {
	case labhealth.TopLevelCompleted:
		fmt.Println("done")
	default:
		fmt.Println(status.TopLevel(), "/", status.LowLevel())
	}
	// Output:
	// drone_collection {"drone": 7}
	// collecting_sample / in_flight
}

// Where a script is enough for a test, an http.Client with a transport such as httpmock's gives the answers.
func Example_httpmock() {
	mock := httpmock.NewMockTransport()
	mock.RegisterResponder(http.MethodGet, "https://api.example.com/v3/order/0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b",
		httpmock.NewStringResponder(http.StatusNotFound, `{"detail":"This order doesn't exist"}`))

	client, err := labhealth.NewClient("sk_test_0123456789",
		labhealth.WithBaseURL("https://api.example.com"),
		labhealth.WithHTTPClient(&http.Client{Transport: mock}))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = client.Orders.Get(context.Background(), uuid.MustParse("0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b"))
	fmt.Println(err)
	fmt.Println("calls:", mock.GetTotalCallCount())
	// Output:
	// labhealth: GET /v3/order/{order_id}: 404 Not Found
	// calls: 1
}
