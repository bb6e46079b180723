package bulk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
)

// importSpreadsheet imports the orders of a file that a clinic has exported from a spreadsheet. If
// it was interrupted, it is called again.
func importSpreadsheet(ctx context.Context, client *labhealth.Client, name string, test uuid.UUID, opts bulk.Options) (*bulk.Report, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	journal, err := bulk.OpenFile(name + ".journal")
	if err != nil {
		return nil, err
	}
	defer journal.Close()
	source := bulk.CSV(file, bulk.CSVOptions{
		DateLayouts: []string{"01/02/2006"},
		Rename: map[string]string{
			"Kit": "sample_id", "Client ID": "client_user_id", "First Name": "patient_details.first_name", "Last Name": "patient_details.last_name",
			"DOB": "patient_details.dob", "Sex": "patient_details.gender", "Phone": "patient_details.phone_number", "Email": "patient_details.email",
			"Street": "patient_address.first_line", "City": "patient_address.city", "State": "patient_address.state", "Zip": "patient_address.zip",
			"Consent": "-", "Notes": "-",
		},
		Values:  map[string]map[string]string{"patient_details.gender": {"F": "female", "M": "male"}},
		Compose: map[string]string{"patient_address.receiver_name": "{First Name} {Last Name}"},
		Defaults: labhealth.ImportOrderBody{
			BillingType: labhealth.BillingClientBill, CollectionMethod: labhealth.CollectionMethodWalkInTest,
			OrderSet: labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{test}}, PatientAddress: labhealth.PatientAddress{Country: "US"},
		},
		Row: func(row bulk.Row, _ *labhealth.ImportOrderBody) error {
			if row.Get("Consent") != "yes" {
				return bulk.Problem{Column: "Consent", Reason: "must be yes"}
			}
			return nil
		},
		Users: bulk.NewUsers(ctx, client, opts),
	})
	return bulk.Run(ctx, client, source, journal, opts)
}

// A file from a spreadsheet: dates as in the United States, columns with other names, values that
// are the same for all rows, and users whom the service does not have yet.
func ExampleCSV_spreadsheet() {
	client, service, ordersFile, end := exampleService()
	defer end()
	name := filepath.Join(filepath.Dir(ordersFile), "clinic.csv")
	const content = `Kit,Client ID,First Name,Last Name,DOB,Sex,Phone,Email,Street,City,State,Zip,Consent,Notes
K-1,c-1,Ada,Example,12/10/1985,F,+14155550123,ada@example.com,1 Example Street,Monterey,CA,93940,yes,"first, and ""urgent"""
K-2,c-1,Ada,Example,12/10/1985,F,+14155550123,ada@example.com,1 Example Street,Monterey,CA,93940,yes,
K-3,c-2,Bo,Example,12/10/85,M,+14155550124,bo@example.com,2 Example Street,Boston,MA,2139,yes,
K-4,c-3,Cy,Example,1/5/1990,M,+14155550125,cy@example.com,3 Example Street,Monterey,CA,93940,no,
`
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		log.Fatal(err)
	}
	var rejections bytes.Buffer
	report, err := importSpreadsheet(context.Background(), client, name, service.LabTests.WalkIn, bulk.Options{Rejections: &rejections})
	fmt.Println(report, err)
	for lines := json.NewDecoder(&rejections); lines.More(); {
		var r bulk.Rejection
		if err := lines.Decode(&r); err != nil {
			log.Fatal(err)
		}
		for _, p := range r.Fields {
			fmt.Printf("line %d, %s %s\n", r.Line, p.Column, p.Reason)
		}
	}
	// Output:
	// 4 records: 2 applied, 2 invalid <nil>
	// line 4, DOB is not a valid date of the form MM/DD/YYYY: its year has two digits
	// line 4, Zip has fewer than 5 digits: a spreadsheet has dropped the leading zero
	// line 5, Consent must be yes
}
