package labhealth_test

import (
	"context"
	"fmt"
	"log"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

// Before an order is created, list the markers of its order set and answer the questions that they
// ask.
func ExampleLabTestsService_AllMarkersOfOrderSet() {
	client, srv, userID := exampleService()
	defer srv.Close()
	ctx := context.Background()

	set := labhealth.OrderSetRequest{
		LabTestIDs: []uuid.UUID{srv.LabTests.WalkIn, srv.LabTests.WithQuestions},
		AddOn:      &labhealth.AddOnOrder{ProviderIDs: []string{"P-905"}},
	}
	// ask is what the application does to get an answer: here it takes the first choice.
	ask := func(q labhealth.AoEQuestion) string {
		fmt.Println("-", q.Value)
		switch {
		case len(q.Answers) > 0:
			return q.Answers[0].Code
		case q.Type != nil && *q.Type == labhealth.AoEQuestionTypeNumeric:
			return "1200"
		default:
			return "none" // free text
		}
	}
	var answers []labhealth.AoEAnswer
	for marker, err := range client.LabTests.AllMarkersOfOrderSet(ctx, set, labhealth.ListMarkersOfOrderSetParams{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(marker.Name)
		if marker.AoE == nil {
			continue
		}
		for _, q := range marker.AoE.Questions {
			if q.Required != nil && *q.Required {
				answers = append(answers, labhealth.AoEAnswer{MarkerID: marker.ID, QuestionID: q.ID, Answer: ask(q)})
			}
		}
	}

	resp, err := client.Orders.Create(ctx, labhealth.CreateOrderBody{
		UserID:           userID,
		OrderSet:         &set,
		CollectionMethod: labhealth.CollectionMethodWalkInTest,
		PatientDetails:   ada,
		PatientAddress: labhealth.PatientAddressWithValidation{
			FirstLine: "1 Example Street", City: "Monterey", State: "CA", Zip: "93940", Country: "US",
		},
		AoEAnswers: answers,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(resp.Order.CurrentStatus())
	// Output:
	// Total Cholesterol
	// HDL Cholesterol
	// Lead, Blood
	// - Purpose of the test
	// Creatinine Clearance
	// - Volume of the sample in mL
	// received.walk_in_test.ordered
}

// Create a lab test from markers of a lab, for a lab account of the team.
func ExampleLabTestsService_Create() {
	client, srv, _ := exampleService()
	defer srv.Close()
	ctx := context.Background()

	accounts, err := client.LabTests.LabAccounts(ctx, labhealth.ListLabAccountsParams{Status: labhealth.LabAccountStatusActive})
	if err != nil {
		log.Fatal(err)
	}
	account := accounts[0]
	var markers []int64
	params := labhealth.ListMarkersParams{LabAccountID: account.ID, Name: "cholesterol", ALaCarteEnabled: new(true)}
	for marker, err := range client.LabTests.AllMarkers(ctx, params) {
		if err != nil {
			log.Fatal(err)
		}
		markers = append(markers, marker.ID)
	}
	test, err := client.LabTests.Create(ctx, labhealth.CreateLabTestBody{
		Name:         "Cholesterol",
		Description:  "Total and HDL cholesterol",
		Method:       labhealth.CollectionMethodTestkit,
		MarkerIDs:    markers,
		LabAccountID: &account.ID,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(test.Name, test.Status, len(test.Markers), test.Lab.Name)
	// Output:
	// Cholesterol active 2 Example Laboratories
}
