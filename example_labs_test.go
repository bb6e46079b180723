package labhealth_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/labhealth/labhealth-go"
)

// An order that an insurance pays needs an insurance of the user.
func ExampleUsersService_CreateInsurance() {
	client, srv, userID := exampleService()
	defer srv.Close()
	ctx := context.Background()

	payors, err := client.Insurance.SearchPayors(ctx, labhealth.SearchPayorsParams{InsuranceName: "example"})
	if err != nil {
		log.Fatal(err)
	}
	insurance, err := client.Users.CreateInsurance(ctx, userID, labhealth.CreateInsuranceBody{
		PayorCode: payors[0].PayorCode, MemberID: "M-0001", Relationship: labhealth.ResponsibleRelationshipSelf,
		Insured: labhealth.InsuredPerson{
			FirstName: ada.FirstName, LastName: ada.LastName, Gender: ada.Gender, DOB: ada.DOB, Email: ada.Email, PhoneNumber: ada.PhoneNumber,
			Address: labhealth.Address{FirstLine: "1 Example Street", City: "Monterey", State: "CA", Zip: "93940", Country: "US"},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	order := exampleImport(srv, userID)
	order.BillingType = labhealth.BillingCommercialInsurance
	resp, err := client.Orders.Import(ctx, order)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(insurance.Company.Name, resp.Order.HealthInsuranceID != nil)
	// Output: Example Health Plan true
}

// Check the diagnosis codes of an order before it is created.
func ExampleInsuranceService_ValidateICDCodes() {
	client, srv, _ := exampleService()
	defer srv.Close()
	result, err := client.Insurance.ValidateICDCodes(context.Background(), []string{"E10.9", "E11.9"})
	if err != nil {
		log.Fatal(err)
	}
	for _, v := range result.Violations {
		fmt.Println(v.Code, "excludes", v.ConflictsWith)
	}
	// Output: E10.9 excludes E11.9
}

// Decide to which order a result belongs that the lab sent without one. The sandbox makes such a
// result.
func ExampleUnmatchedResultsService_Accept() {
	client, srv, _ := exampleService()
	defer srv.Close()
	ctx := context.Background()
	_, err := client.UnmatchedResults.CreateTest(ctx, "test-1", labhealth.CreateUnmatchedResultTestBody{
		Case: labhealth.UnmatchedResultTestMatchDemo, OrderSource: labhealth.UnmatchedResultTestManaged,
	})
	if err != nil {
		log.Fatal(err)
	}

	waiting := labhealth.ListUnmatchedResultsParams{Status: labhealth.MatchReviewPendingCustomerReview}
	for result, err := range client.UnmatchedResults.All(ctx, waiting) {
		if err != nil {
			log.Fatal(err)
		}
		candidate := result.CandidateGroups[0].Candidates[0] // a person compares the patient first
		order, err := client.UnmatchedResults.Accept(ctx, result.ID, labhealth.AcceptUnmatchedResultBody{OrderID: candidate.OrderID})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(order.CurrentStatus())
	}
	// Output: completed.walk_in_test.completed
}

// Read a lab report of another lab. The event lab_report.parsing_job.updated reports when it is
// read.
func ExampleLabReportsService_Create() {
	client, srv, userID := exampleService()
	defer srv.Close()
	ctx := context.Background()

	job, err := client.LabReports.Create(ctx, labhealth.CreateParsingJobBody{
		UserID: userID, Files: []labhealth.LabReportFile{{Name: "report.pdf", Content: []byte("%PDF-1.7 …")}},
	})
	if err != nil {
		log.Fatal(err)
	}
	job, err = client.LabReports.Get(ctx, job.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(job.Status, len(job.Data.Results))
	// Output: completed 2
}

// The backend of an app gets a token with which the app sends the user's health data.
func ExampleUsersService_CreateSignInToken() {
	client, srv, userID := exampleService()
	defer srv.Close()
	token, err := client.Users.CreateSignInToken(context.Background(), userID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(token.SignInToken) // string(token.SignInToken) goes to the user's device, and nowhere else
	// Output: [redacted]
}

// Some providers need the user's password there, and some then ask for a code.
func ExampleLinkService_ConnectPassword() {
	client, srv, userID := exampleService()
	defer srv.Close()
	ctx := context.Background()
	if _, err := client.Link.CreateToken(ctx, labhealth.CreateLinkTokenBody{UserID: userID}); err != nil {
		log.Fatal(err)
	}

	link, err := client.Link.ConnectPassword(ctx, labhealth.ProviderWhoop, labhealth.ConnectPasswordBody{Username: "mfa-ada", Password: "from a form"})
	if err != nil {
		log.Fatal(err)
	}
	if link.State == labhealth.ProviderLinkPendingMFA {
		_, err = client.Link.CompletePasswordMFA(ctx, labhealth.ProviderWhoop, "000000") // from the user
	}
	fmt.Println(errors.As(err, new(*labhealth.APIError)), labhealth.OutcomeOf(err)) // the code is wrong
	// Output: true rejected
}
