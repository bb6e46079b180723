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

// Import an existing order together with its sample. Optional fields are pointers.
func ExampleOrdersService_Import() {
	client, srv, userID := exampleService()
	defer srv.Close()

	resp, err := client.Orders.Import(context.Background(), labhealth.ImportOrderBody{
		UserID:           userID,
		BillingType:      labhealth.BillingClientBill,
		OrderSet:         labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{srv.LabTests.Testkit}},
		CollectionMethod: labhealth.CollectionMethodTestkit,
		PatientDetails: labhealth.PatientDetailsWithValidation{
			FirstName:   "Ada",
			LastName:    "Example",
			DOB:         labhealth.Date{Year: 1985, Month: time.December, Day: 10},
			Gender:      labhealth.GenderFemale,
			PhoneNumber: "+14155550123",
			Email:       "ada@example.com",
			Race:        new(labhealth.RaceAsian),
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
		log.Fatal(err)
	}
	fmt.Println(resp.Message)
	fmt.Println(resp.Order.CurrentStatus())
	fmt.Println(resp.Order.PatientDetails) // redacted
	// Output:
	// Order created successfully
	// received.testkit.requisition_bypassed
	// {redacted}
}

// Invalid requests are not sent. The error lists every invalid field.
func ExampleOrdersService_Import_invalid() {
	client, srv, userID := exampleService()
	defer srv.Close()

	body := exampleImport(srv, userID)
	body.PatientDetails.FirstName = ""
	body.PatientAddress.Zip = ""
	_, err := client.Orders.Import(context.Background(), body)

	var invalid *labhealth.ValidationError
	if errors.As(err, &invalid) {
		for _, field := range invalid.Fields {
			fmt.Println(field.Path(), field.Msg)
		}
	}
	fmt.Println("requests sent:", len(srv.Requests()))
	// Output:
	// body.patient_details.first_name is required: 1 to 50 characters
	// body.patient_address.zip is required
	// requests sent: 0
}

// Import an order and, if the response is lost, find the order by its sample ID. The import
// endpoint has no idempotency key.
func ExampleOrdersService_Import_reconcile() {
	client, srv, userID := exampleService()
	defer srv.Close()
	ctx := context.Background()

	importOnce := func(body labhealth.ImportOrderBody) (uuid.UUID, error) {
		resp, err := client.Orders.Import(ctx, body)
		if err == nil {
			return resp.Order.ID, nil
		}
		if labhealth.OutcomeOf(err) == labhealth.OutcomeNotSent {
			return uuid.Nil, err
		}
		// Even a rejection may mean that an earlier attempt created the order.
		for order, listErr := range client.Orders.All(ctx, labhealth.ListOrdersParams{UserID: body.UserID}) {
			if listErr != nil {
				return uuid.Nil, fmt.Errorf("look for the sample again: %v; %v", err, listErr) // wraps neither: the outcome is unknown
			}
			if order.UserID == body.UserID && order.SampleID != nil && *order.SampleID == body.SampleID {
				return order.ID, nil
			}
		}
		return uuid.Nil, err // if the outcome is unknown, look again before the next import
	}

	// The service creates the order, but the connection is reset before the response arrives.
	if err := srv.FailAfter("POST /v3/order/import", 1, labhealthtest.FaultReset); err != nil {
		log.Fatal(err)
	}
	id, err := importOnce(exampleImport(srv, userID))
	fmt.Println("found:", id == srv.Orders()[0], err)
	id, err = importOnce(exampleImport(srv, userID)) // rejected: the sample ID is a duplicate
	fmt.Println("found:", id == srv.Orders()[0], err)
	fmt.Println("orders:", len(srv.Orders()))
	// Output:
	// found: true <nil>
	// found: true <nil>
	// orders: 1
}

// exampleScheduled creates an order that is scheduled for a date.
func exampleScheduled(client *labhealth.Client, userID, labTestID uuid.UUID, date labhealth.Date) *labhealth.Order {
	resp, err := client.Orders.Create(context.Background(), labhealth.CreateOrderBody{
		UserID:         userID,
		OrderSet:       &labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{labTestID}},
		PatientDetails: ada,
		PatientAddress: labhealth.PatientAddressWithValidation{
			FirstLine: "1 Example Street", City: "Monterey", State: "CA", Zip: "93940", Country: "US",
		},
		ActivateBy: &date,
	})
	if err != nil {
		log.Fatal(err)
	}
	return &resp.Order
}

// Move a scheduled order to a later date, then release it.
func Example_reschedule() {
	client, srv, userID := exampleService()
	defer srv.Close()
	ctx := context.Background()
	order := exampleScheduled(client, userID, srv.LabTests.WalkIn, labhealth.DateOf(time.Now().AddDate(0, 0, 7)))

	if order.Reschedulable() {
		_, err := client.Orders.Reschedule(ctx, order.ID, labhealth.DateOf(time.Now().AddDate(0, 0, 14)))
		if err != nil {
			log.Fatal(err)
		}
	}
	resp, err := client.Orders.Release(ctx, order.ID) // clears the date: the order is dispatched at once
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(resp.Order.CurrentStatus())
	// Output:
	// received.walk_in_test.requisition_created
}

// Only an order that was created with a date can be rescheduled, and only until it is dispatched.
func ExampleOrdersService_Reschedule() {
	client, srv, userID := exampleService()
	defer srv.Close()
	nextWeek := labhealth.DateOf(time.Now().AddDate(0, 0, 7))
	weekAfter := labhealth.DateOf(time.Now().AddDate(0, 0, 14))
	order := exampleScheduled(client, userID, srv.LabTests.WalkIn, nextWeek)
	fmt.Println(order.CurrentStatus(), "reschedulable:", order.Reschedulable())

	resp, err := client.Orders.Reschedule(context.Background(), order.ID, weekAfter)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("rescheduled:", *resp.Order.ActivateBy == weekAfter)
	// Output:
	// received.walk_in_test.ordered reschedulable: true
	// rescheduled: true
}

// Release clears the date of a scheduled order. The order can then no longer be rescheduled.
func ExampleOrdersService_Release() {
	client, srv, userID := exampleService()
	defer srv.Close()
	ctx := context.Background()
	nextWeek := labhealth.DateOf(time.Now().AddDate(0, 0, 7))
	order := exampleScheduled(client, userID, srv.LabTests.WalkIn, nextWeek)

	resp, err := client.Orders.Release(ctx, order.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(resp.Order.CurrentStatus(), "reschedulable:", resp.Order.Reschedulable())

	_, err = client.Orders.Reschedule(ctx, order.ID, nextWeek)
	fmt.Println("reschedule:", labhealth.OutcomeOf(err))
	// Output:
	// received.walk_in_test.requisition_created reschedulable: false
	// reschedule: rejected
}

// List the orders with abnormal results. All fetches one page at a time.
func ExampleOrdersService_All() {
	client, srv, _ := exampleService()
	defer srv.Close()
	for _, order := range srv.AddOrders(3) {
		if err := srv.SetInterpretation(order, "abnormal"); err != nil {
			log.Fatal(err)
		}
	}
	srv.AddOrders(200)

	params := labhealth.ListOrdersParams{Interpretation: labhealth.InterpretationAbnormal}
	for order, err := range client.Orders.All(context.Background(), params) {
		if err != nil {
			log.Fatal(err) // the iterator stops after an error
		}
		fmt.Println(*order.Interpretation, order.CurrentStatus())
	}
	// Output:
	// abnormal received.at_home_phlebotomy.ordered
	// abnormal received.walk_in_test.ordered
	// abnormal received.testkit.ordered
}

// Create an order and read its results. Calls to the embedded service stand in for the work of the
// patient and the lab.
func ExampleOrdersService_Results() {
	client, srv, userID := exampleService()
	defer srv.Close()
	ctx := context.Background()

	created, err := client.Orders.Create(ctx, labhealth.CreateOrderBody{
		UserID:         userID,
		PatientDetails: ada,
		PatientAddress: labhealth.PatientAddressWithValidation{
			FirstLine: "1 Example Street", City: "Monterey", State: "CA", Zip: "93940", Country: "US",
		},
		OrderSet:   &labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{srv.LabTests.WalkIn, srv.LabTests.WithQuestions}},
		AoEAnswers: []labhealth.AoEAnswer{{MarkerID: 904, QuestionID: 1234567890251, Answer: "I"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	id := created.Order.ID
	fmt.Println(created.Order.CurrentStatus())

	_, err = client.Orders.Results(ctx, id)
	fmt.Println("not available yet:", errors.Is(err, labhealth.ErrNoResults))

	for err = nil; err == nil; {
		_, err = srv.Advance(id)
	}
	if err := srv.SetMissing(id, 902, "quantity_not_sufficient_failure"); err != nil {
		log.Fatal(err)
	}

	results, err := client.Orders.Results(ctx, id)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range results.Results {
		switch v := r.Parse().(type) {
		case labhealth.NumericResult:
			fmt.Println(r.Slug, "=", v.Value, *r.Unit, r.Interpretation)
		case labhealth.RangeResult:
			if v.High != nil {
				fmt.Println(r.Slug, "≤", *v.High, *r.Unit, r.Interpretation)
			}
		default:
			fmt.Println(r.Slug, "=", r.Result)
		}
	}
	for _, m := range results.MissingResults {
		fmt.Println(m.Slug, "is missing:", m.InferredFailureType)
	}
	// Output:
	// received.walk_in_test.ordered
	// not available yet: true
	// total-cholesterol = 182 mg/dL normal
	// lead-blood ≤ 1 ug/dL normal
	// hdl-cholesterol is missing: quantity_not_sufficient_failure
}

// Read the results of an order and its lab report, for example after an event of the order.
func Example_results() {
	client, srv, userID := exampleService()
	defer srv.Close()
	ctx := context.Background()
	orderID, err := srv.AddOrder(userID, srv.LabTests.WalkIn)
	if err != nil {
		log.Fatal(err)
	}
	for err == nil { // the embedded service completes the order
		_, err = srv.Advance(orderID)
	}
	if err := srv.SetInterpretation(orderID, "critical"); err != nil {
		log.Fatal(err)
	}

	var report bytes.Buffer // or any other io.Writer, such as a file
	order, err := client.Orders.Get(ctx, orderID)
	if err != nil {
		log.Fatal(err)
	}
	if order.HasResults() {
		results, err := client.Orders.Results(ctx, orderID)
		if err != nil {
			log.Fatal(err)
		}
		for _, r := range results.Results {
			fmt.Println(r.Name, r.Result, "abnormal:", r.Abnormal(), "critical:", r.Critical())
		}
		if _, err := client.Orders.ResultsPDF(ctx, orderID, &report); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Printf("%.5s\n", report.String())
	// Output:
	// Total Cholesterol 412 abnormal: true critical: true
	// HDL Cholesterol 58.5 abnormal: false critical: false
	// %PDF-
}

// Write the requisition to any io.Writer, such as a file or an HTTP response.
func ExampleOrdersService_RequisitionPDF() {
	client, srv, userID := exampleService()
	defer srv.Close()
	id, err := srv.AddOrder(userID, srv.LabTests.WalkIn)
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.Orders.RequisitionPDF(context.Background(), id, io.Discard)
	fmt.Println("not available yet:", errors.Is(err, labhealth.ErrNotFound))

	if _, err := srv.Advance(id); err != nil {
		log.Fatal(err)
	}
	var file bytes.Buffer
	n, err := client.Orders.RequisitionPDF(context.Background(), id, &file)
	fmt.Printf("%.8s, complete: %v, error: %v\n", &file, n == int64(file.Len()), err)
	// Output:
	// not available yet: true
	// %PDF-1.4, complete: true, error: <nil>
}

// List the lab tests that can be ordered. All fetches one page at a time.
func ExampleLabTestsService_All() {
	client, srv, _ := exampleService()
	defer srv.Close()

	params := labhealth.ListLabTestsParams{
		Status:           labhealth.LabTestStatusActive,
		CollectionMethod: labhealth.CollectionMethodWalkInTest,
		LabTestLimit:     2,
	}
	for labTest, err := range client.LabTests.All(context.Background(), params) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s, %s, %s:", labTest.Name, labTest.Lab.Name, labTest.Price)
		for _, marker := range labTest.Markers {
			fmt.Printf(" %d %s", marker.ID, marker.Slug)
		}
		fmt.Println()
	}
	// Output:
	// Lipid Panel, Example Laboratories, 45.00: 901 total-cholesterol 902 hdl-cholesterol
	// Glucose, Other Laboratories, 45.00: 903 glucose
	// Lead, Example Laboratories, 45.00: 904 lead-blood
}
