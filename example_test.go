package labhealth_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// exampleService starts the embedded service with one user, and a client for it. With a real service there is only the client:
// see ExampleNewClient.
func exampleService() (client *labhealth.Client, service *labhealthtest.Server, user uuid.UUID) {
	service, err := labhealthtest.Start(labhealthtest.WithSeed(1))
	if err != nil {
		log.Fatal(err)
	}
	client, err = labhealth.NewClient(service.APIKey, labhealth.WithBaseURL(service.URL))
	if err != nil {
		log.Fatal(err)
	}
	return client, service, service.AddUser("ada")
}

// ada is an invented patient.
var ada = labhealth.PatientDetailsWithValidation{
	FirstName:   "Ada",
	LastName:    "Example",
	DOB:         labhealth.Date{Year: 1985, Month: time.December, Day: 10},
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
			ReceiverName: "Ada Example", FirstLine: "1 Example Street", City: "Monterey", State: "CA", Zip: "93940", Country: "US",
		},
		SampleID: "SAMPLE-0001",
	}
}

// The client in short: import an order, list orders and users.
func Example_overview() {
	service, err := labhealthtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer service.Close()
	apiKey, baseURL, ctx := service.APIKey, service.URL, context.Background()
	body := exampleImport(service, service.AddUser("user-1"))

	client, err := labhealth.NewClient(apiKey, labhealth.WithBaseURL(baseURL))
	if err != nil {
		log.Fatal(err)
	}
	resp, err := client.Orders.Import(ctx, body)
	if err != nil {
		log.Fatal(labhealth.OutcomeOf(err), ": ", err) // such as "unknown": look before you import it again
	}
	for order, err := range client.Orders.All(ctx, labhealth.ListOrdersParams{StartDate: time.Now().AddDate(0, 0, -1)}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(order.ID == resp.Order.ID, order.CurrentStatus())
	}
	for user, err := range client.Users.All(ctx, labhealth.ListUsersParams{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(user.ClientUserID)
	}
	// Output:
	// true received.testkit.requisition_bypassed
	// user-1
}

// From nothing to an order: a key, an address, a user, a lab test, and a sample that was taken. Here the embedded service gives
// them.
func Example() {
	service, err := labhealthtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer service.Close()
	apiKey, baseURL := service.APIKey, service.URL
	userID, labTestID := service.AddUser("user-1"), service.LabTests.WalkIn
	ctx := context.Background()

	client, err := labhealth.NewClient(apiKey, labhealth.WithBaseURL(baseURL))
	if err != nil {
		log.Fatal(err)
	}
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
		SampleID: "SAMPLE-0001", // finds the order again
	})
	if err != nil {
		log.Fatal(err, ": the order was ", labhealth.OutcomeOf(err))
	}
	fmt.Println(resp.Message+":", resp.Order.CurrentStatus())
	// Output:
	// Order created successfully: received.walk_in_test.requisition_bypassed
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
	// labhealth: no base URL for the environment "production EU": there are URLs for ["production US" "sandbox US"]
}

// An order that exists already is brought into the service, with its sample.
func ExampleOrdersService_Import() {
	client, service, user := exampleService()
	defer service.Close()

	resp, err := client.Orders.Import(context.Background(), labhealth.ImportOrderBody{
		UserID:           user,
		BillingType:      labhealth.BillingClientBill,
		OrderSet:         labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{service.LabTests.Testkit}},
		CollectionMethod: labhealth.CollectionMethodTestkit,
		PatientDetails: labhealth.PatientDetailsWithValidation{
			FirstName:   "Ada",
			LastName:    "Example",
			DOB:         labhealth.Date{Year: 1985, Month: time.December, Day: 10},
			Gender:      labhealth.GenderFemale,
			PhoneNumber: "+14155550123",
			Email:       "ada@example.com",
			Race:        new(labhealth.RaceAsian), // optional members are pointers
		},
		PatientAddress: labhealth.PatientAddress{
			ReceiverName: "Ada Example",
			FirstLine:    "1 Example Street",
			City:         "Monterey",
			State:        "CA",
			Zip:          "93940",
			Country:      "US",
		},
		SampleID: "SAMPLE-0001",
	})
	if err != nil {
		log.Fatal(err, ": the order was ", labhealth.OutcomeOf(err))
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

// exampleScheduled places an order that waits for its date.
func exampleScheduled(client *labhealth.Client, service *labhealthtest.Server, user uuid.UUID, date labhealth.Date) *labhealth.Order {
	placed, err := client.Orders.Create(context.Background(), labhealth.CreateOrderBody{
		UserID:         user,
		OrderSet:       &labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{service.LabTests.WalkIn}},
		PatientDetails: ada,
		PatientAddress: labhealth.PatientAddressWithValidation{
			FirstLine: "1 Example Street", City: "Monterey", State: "CA", Zip: "93940", Country: "US",
		},
		ActivateBy: &date,
	})
	if err != nil {
		log.Fatal(err)
	}
	return &placed.Order
}

// Only an order that was created with a date can be moved, and only while it has not been dispatched.
func ExampleOrdersService_Reschedule() {
	client, service, user := exampleService()
	defer service.Close()
	nextWeek, weekAfter := labhealth.DateOf(time.Now().AddDate(0, 0, 7)), labhealth.DateOf(time.Now().AddDate(0, 0, 14))
	order := exampleScheduled(client, service, user, nextWeek)
	fmt.Println(order.CurrentStatus(), "can be moved:", order.Reschedulable())

	moved, err := client.Orders.Reschedule(context.Background(), order.ID, weekAfter)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("moved:", *moved.Order.ActivateBy == weekAfter)
	// Output:
	// received.walk_in_test.ordered can be moved: true
	// moved: true
}

// Releasing sends null for the date, which dispatches the order at once. Afterwards it cannot be moved any more.
func ExampleOrdersService_Release() {
	client, service, user := exampleService()
	defer service.Close()
	ctx := context.Background()
	nextWeek := labhealth.DateOf(time.Now().AddDate(0, 0, 7))
	order := exampleScheduled(client, service, user, nextWeek)

	released, err := client.Orders.Release(ctx, order.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(released.Order.CurrentStatus(), "can be moved:", released.Order.Reschedulable())

	_, err = client.Orders.Reschedule(ctx, order.ID, nextWeek)
	fmt.Println("moving it now:", labhealth.OutcomeOf(err))
	// Output:
	// received.walk_in_test.requisition_created can be moved: false
	// moving it now: rejected
}

// The iterators read page by page and hold one page at a time.
func ExampleOrdersService_All() {
	client, service, _ := exampleService()
	defer service.Close()
	for _, order := range service.AddOrders(3) {
		if err := service.SetInterpretation(order, "abnormal"); err != nil {
			log.Fatal(err)
		}
	}
	service.AddOrders(200)

	abnormal := labhealth.ListOrdersParams{Interpretation: labhealth.InterpretationAbnormal}
	for order, err := range client.Orders.All(context.Background(), abnormal) {
		if err != nil {
			log.Fatal(err) // an error ends the list
		}
		fmt.Println(*order.Interpretation, order.CurrentStatus())
	}
	// Output:
	// abnormal received.at_home_phlebotomy.ordered
	// abnormal received.walk_in_test.ordered
	// abnormal received.testkit.ordered
}

// An order from its creation to its results. What moves the embedded service is the work of the patient and of the lab elsewhere.
func ExampleOrdersService_Results() {
	client, service, user := exampleService()
	defer service.Close()
	ctx := context.Background()

	placed, err := client.Orders.Create(ctx, labhealth.CreateOrderBody{
		UserID:         user,
		PatientDetails: ada,
		PatientAddress: labhealth.PatientAddressWithValidation{
			FirstLine: "1 Example Street", City: "Monterey", State: "CA", Zip: "93940", Country: "US",
		},
		OrderSet:   &labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{service.LabTests.WalkIn, service.LabTests.WithQuestions}},
		AoEAnswers: []labhealth.AoEAnswer{{MarkerID: 904, QuestionID: 1234567890251, Answer: "I"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	id := placed.Order.ID
	fmt.Println(placed.Order.CurrentStatus())

	_, err = client.Orders.Results(ctx, id)
	fmt.Println("not yet:", errors.Is(err, labhealth.ErrNotFound))

	for err = nil; err == nil; {
		_, err = service.Advance(id)
	}
	if err := service.SetMissing(id, 902, "quantity_not_sufficient_failure"); err != nil {
		log.Fatal(err)
	}

	results, err := client.Orders.Results(ctx, id)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range results.Results {
		switch v := r.Parse().(type) {
		case labhealth.NumericResult:
			fmt.Println(r.Slug, "is", v.Value, *r.Unit, r.Interpretation)
		case labhealth.RangeResult:
			if v.High != nil {
				fmt.Println(r.Slug, "is at most", *v.High, *r.Unit, r.Interpretation)
			}
		default:
			fmt.Println(r.Slug, "is text:", r.Result)
		}
	}
	for _, m := range results.MissingResults {
		fmt.Println(m.Slug, "is missing:", m.InferredFailureType)
	}
	// Output:
	// received.walk_in_test.ordered
	// not yet: true
	// total-cholesterol is 182 mg/dL normal
	// lead-blood is at most 1 ug/dL normal
	// hdl-cholesterol is missing: quantity_not_sufficient_failure
}

// The requisition goes to a file, to a response, or to anything else that is an io.Writer.
func ExampleOrdersService_RequisitionPDF() {
	client, service, user := exampleService()
	defer service.Close()
	id, err := service.AddOrder(user, service.LabTests.WalkIn)
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.Orders.RequisitionPDF(context.Background(), id, io.Discard)
	fmt.Println("not yet:", errors.Is(err, labhealth.ErrNotFound))

	if _, err := service.Advance(id); err != nil {
		log.Fatal(err)
	}
	var file bytes.Buffer
	n, err := client.Orders.RequisitionPDF(context.Background(), id, &file)
	fmt.Printf("%.8s, all of it: %v, error %v\n", &file, n == int64(file.Len()), err)
	// Output:
	// not yet: true
	// %PDF-1.4, all of it: true, error <nil>
}
