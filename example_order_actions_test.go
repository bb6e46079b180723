package labhealth_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/labhealth/labhealth-go"
)

// Cancel an order. After an unknown outcome, the order shows whether it was canceled.
func ExampleOrdersService_Cancel() {
	client, srv, userID := exampleService()
	defer srv.Close()
	ctx := context.Background()
	orderID, err := srv.AddOrder(userID, srv.LabTests.WalkIn)
	if err != nil {
		log.Fatal(err)
	}

	_, err = client.Orders.Cancel(ctx, orderID)
	if labhealth.OutcomeOf(err) == labhealth.OutcomeUnknown {
		if order, getErr := client.Orders.Get(ctx, orderID); getErr == nil && order.Canceled() {
			err = nil
		}
	}
	fmt.Println("error:", err)

	_, err = client.Orders.Cancel(ctx, orderID) // not twice
	fmt.Println("outcome:", labhealth.OutcomeOf(err))
	// Output:
	// error: <nil>
	// outcome: rejected
}

// Send a test kit to an address, and register it when the patient has received it.
func ExampleOrdersService_RegisterTestkit() {
	client, srv, userID := exampleService()
	defer srv.Close()
	ctx := context.Background()

	ordered, err := client.Orders.CreateTestkit(ctx, labhealth.CreateTestkitBody{
		UserID:    userID,
		LabTestID: srv.LabTests.Testkit,
		ShippingDetails: labhealth.ShippingAddress{
			ReceiverName: "Ada Example",
			FirstLine:    "1 Example Street",
			City:         "Monterey",
			State:        "CA",
			Zip:          "93940",
			Country:      "US",
			PhoneNumber:  "+14155550123",
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ordered.Order.CurrentStatus())

	example := exampleImport(srv, userID)
	registered, err := client.Orders.RegisterTestkit(ctx, labhealth.RegisterTestkitBody{
		SampleID:       *ordered.Order.SampleID, // printed on the kit
		PatientDetails: example.PatientDetails,
		PatientAddress: labhealth.PatientAddressWithValidation{
			FirstLine: "1 Example Street",
			City:      "Monterey",
			State:     "CA",
			Zip:       "93940",
			Country:   "US",
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(registered.Order.CurrentStatus())
	// Output:
	// received.testkit.awaiting_registration
	// received.testkit.requisition_created
}

// Simulate critical results in a sandbox, and read them with the lab report.
func ExampleOrdersService_Simulate() {
	client, srv, userID := exampleService()
	defer srv.Close()
	ctx := context.Background()
	orderID, err := srv.AddOrder(userID, srv.LabTests.OnSite)
	if err != nil {
		log.Fatal(err)
	}

	// The first simulation creates the requisition, the second one leads to the results.
	for range 2 {
		err = client.Orders.Simulate(ctx, orderID, labhealth.SimulateParams{
			Flags: labhealth.SimulationFlags{Interpretation: labhealth.InterpretationCritical},
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	results, err := client.Orders.Results(ctx, orderID)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range results.Results {
		fmt.Println(r.Name, r.Abnormal(), r.Critical())
	}

	var report bytes.Buffer
	if _, err := client.Orders.ResultsPDF(ctx, orderID, &report); errors.Is(err, labhealth.ErrNotFound) {
		fmt.Println("no report")
	}
	fmt.Printf("%.5s\n", report.String())
	// Output:
	// Total Cholesterol true true
	// HDL Cholesterol false false
	// %PDF-
}
