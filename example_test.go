package labhealth_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// exampleService starts the embedded service with one user, and returns a client for it. A program
// that calls the real service only creates the client: see ExampleWithEnvironment.
func exampleService() (client *labhealth.Client, srv *labhealthtest.Server, userID uuid.UUID) {
	srv, err := labhealthtest.Start(labhealthtest.WithSeed(1))
	if err != nil {
		log.Fatal(err)
	}
	client, err = labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL))
	if err != nil {
		log.Fatal(err)
	}
	return client, srv, srv.AddUser("ada")
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

// exampleImport returns the body of an import for ada.
func exampleImport(srv *labhealthtest.Server, userID uuid.UUID) labhealth.ImportOrderBody {
	return labhealth.ImportOrderBody{
		UserID:           userID,
		BillingType:      labhealth.BillingClientBill,
		OrderSet:         labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{srv.LabTests.Testkit}},
		CollectionMethod: labhealth.CollectionMethodTestkit,
		PatientDetails:   ada,
		PatientAddress: labhealth.PatientAddress{
			ReceiverName: "Ada Example", FirstLine: "1 Example Street",
			City: "Monterey", State: "CA", Zip: "93940", Country: "US",
		},
		SampleID: "SAMPLE-0001",
	}
}

// Create a client for one region, import an order, and print the order's ID.
func Example_overview() {
	srv, err := labhealthtest.Start(labhealthtest.WithSeed(1))
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	apiKey, baseURL := srv.APIKey, srv.URL
	ctx, order := context.Background(), exampleImport(srv, srv.AddUser("user-1"))

	client, err := labhealth.NewClient(apiKey, labhealth.WithEnvironment(labhealth.SandboxUS, baseURL))
	if err != nil {
		log.Fatal(err)
	}
	resp, err := client.Orders.Import(ctx, order)
	if err != nil {
		log.Fatal(err) // says what happened, the outcome, and what to change
	}
	fmt.Println(resp.Order.ID)
	// Output:
	// e125750a-a608-45e2-8ffc-2d1212f4a465
}

// Import an order from start to finish. The embedded service provides the API key, the base URL,
// the user and the lab test.
func Example() {
	srv, err := labhealthtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	userID, labTestID := srv.AddUser("user-1"), srv.LabTests.WalkIn

	order := labhealth.ImportOrderBody{
		UserID:           userID, // from client.Users.GetOrCreate
		BillingType:      labhealth.BillingClientBill,
		OrderSet:         labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{labTestID}}, // from client.LabTests.All
		CollectionMethod: labhealth.CollectionMethodWalkInTest,
		PatientDetails: labhealth.PatientDetailsWithValidation{
			FirstName: "Ada", LastName: "Example", DOB: labhealth.Date{Year: 1985, Month: time.December, Day: 10},
			Gender: labhealth.GenderFemale, PhoneNumber: "+14155550123", Email: "ada@example.com",
		},
		PatientAddress: labhealth.PatientAddress{
			ReceiverName: "Ada Example", FirstLine: "1 Example Street",
			City: "Monterey", State: "CA", Zip: "93940", Country: "US",
		},
		SampleID: "SAMPLE-0001", // identifies the order if the response is lost
	}

	client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL))
	if err != nil {
		log.Fatal(err)
	}
	resp, err := client.Orders.Import(context.Background(), order)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(resp.Message+":", resp.Order.CurrentStatus())
	// Output:
	// Order created successfully: received.walk_in_test.requisition_bypassed
}
