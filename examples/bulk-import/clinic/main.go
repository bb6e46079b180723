// Clinic imports the orders of clinic.csv, as a clinic has exported them from a spreadsheet: US
// dates, its own column names, and patients who are not users of the service yet. After an
// interruption it is started again. Rows without an order are in clinic.rejections.csv, with line,
// column and reason.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
)

func main() {
	ctx := context.Background()
	client := must(labhealth.NewClient(os.Getenv("LABHEALTH_API_KEY"), labhealth.WithBaseURL(os.Getenv("LABHEALTH_BASE_URL"))))
	file := must(os.Open("clinic.csv"))
	journal := must(bulk.OpenFile("clinic.journal"))
	opts := bulk.Options{RejectionsCSV: must(os.Create("clinic.rejections.csv"))}
	source := bulk.CSV(file, bulk.CSVOptions{
		DateLayouts: []string{"01/02/2006"},
		Rename: map[string]string{
			"Kit": "sample_id", "Client ID": "client_user_id", "Consent": "-", "Notes": "-",
			"First Name": "patient_details.first_name", "Last Name": "patient_details.last_name", "DOB": "patient_details.dob",
			"Sex": "patient_details.gender", "Phone": "patient_details.phone_number", "Email": "patient_details.email",
			"Street": "patient_address.first_line", "City": "patient_address.city", "State": "patient_address.state", "Zip": "patient_address.zip",
		},
		Defaults: labhealth.ImportOrderBody{
			BillingType: labhealth.BillingClientBill, CollectionMethod: labhealth.CollectionMethodWalkInTest,
			OrderSet:       labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{uuid.MustParse(os.Getenv("LABHEALTH_TEST_ID"))}},
			PatientAddress: labhealth.PatientAddress{Country: "US"},
		},
		Row: func(row bulk.Row, body *labhealth.ImportOrderBody) error {
			if row.Get("Consent") != "yes" {
				return bulk.Problem{Column: "Consent", Reason: "must be yes"}
			}
			body.PatientAddress.ReceiverName = body.PatientDetails.FirstName + " " + body.PatientDetails.LastName
			return nil
		},
		Users: bulk.NewUsers(ctx, client, opts),
	})
	fmt.Println(must(bulk.Run(ctx, client, source, journal, opts)))
}

// must ends the program after an error. The next start resumes the import.
func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
