package bulk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// order is a line of a file of orders.
const order = `{"sample_id":"%s","user_id":"%s","billing_type":"client_bill","collection_method":"walk_in_test",` +
	`"order_set":{"lab_test_ids":["%s"]},` +
	`"patient_details":{"first_name":"Ada","last_name":"Example","dob":"1985-12-10","gender":"female","phone_number":"+14155550123","email":"%s"},` +
	`"patient_address":{"receiver_name":"Ada Example","first_line":"1 Example Street","city":"Monterey","state":"CA","zip":"93940","country":"US"}}` + "\n"

// An import that is interrupted after the second order and started again.
func Example() {
	srv, err := labhealthtest.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.CloseIdleConnections()
	dir, err := os.MkdirTemp("", "bulk")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	user := srv.AddUser("ada")
	var file strings.Builder
	for _, r := range []struct{ sample, email string }{
		{"SAMPLE-1", "ada@example.com"}, {"SAMPLE-2", "ada@example.com"}, {"SAMPLE-3", "none"}, {"SAMPLE-4", "ada@example.com"},
	} {
		fmt.Fprintf(&file, order, r.sample, user, srv.LabTests.WalkIn, r.email)
	}
	source := bulk.JSONLines(strings.NewReader(file.String()))

	run := func(ctx context.Context, opts bulk.Options) {
		journal, err := bulk.OpenFile(filepath.Join(dir, "run.journal"))
		if err != nil {
			fmt.Println(err)
			return
		}
		defer journal.Close()
		report, err := bulk.Run(ctx, client, source, journal, opts)
		if err != nil {
			fmt.Println("error:", err)
		}
		fmt.Println(report)
	}

	// The first run ends in the middle: the service refuses the key for a moment.
	if err := errors.Join(
		srv.FailAfter("POST /v3/order/import", 1, labhealthtest.FaultClosed), // carried out, but the answer is lost
		srv.FailBefore("POST /v3/order/import", 1, labhealthtest.FaultAnswer(401, `{"detail":"Invalid token"}`)),
	); err != nil {
		fmt.Println(err)
	}
	run(context.Background(), bulk.Options{Concurrency: 1})

	// The second finds the order whose answer was lost, and imports the rest.
	var refusals bytes.Buffer
	run(context.Background(), bulk.Options{Timeout: 50 * time.Millisecond, Settle: 100 * time.Millisecond, Refusals: &refusals})
	fmt.Print(&refusals)
	fmt.Println("orders:", len(srv.Orders()))
	// Output:
	// error: labhealth: POST /v3/order/import: 401 Unauthorized
	// 4 records: 0 applied, 1 invalid, 1 unknown, 2 pending
	// 4 records: 3 applied, 1 invalid
	// {"outcome":"invalid","record":3,"sample_id":"SAMPLE-3","fields":[{"path":"body.patient_details.email","reason":"must be an email address: one @ and no spaces"}]}
	// orders: 3
}

// A file from a spreadsheet, with a column name and a column of its own.
func ExampleCSV() {
	file := strings.NewReader(`Sample,user_id,patient_details.dob,Remarks
S-1,00000000-0000-4000-8000-00000000000a,1985-12-10,second visit
S-2,00000000-0000-4000-8000-00000000000a,10.12.1985,
`)
	for body, err := range bulk.CSV(file, map[string]string{"Sample": "sample_id", "Remarks": "-"}) {
		var unreadable *bulk.RecordError
		switch {
		case errors.As(err, &unreadable):
			fmt.Printf("line %d, %s: %s %s\n", unreadable.Line, unreadable.SampleID, unreadable.Problems[0].Path, unreadable.Problems[0].Reason)
		case err != nil:
			fmt.Println(err)
		default:
			fmt.Println(body.SampleID, body.PatientDetails.DOB)
		}
	}
	// Output:
	// S-1 1985-12-10
	// line 3, S-2: body.patient_details.dob is not a valid date
}

// A dry run says what would be wrong, without a client and without a journal.
func ExampleRun_dryRun() {
	file := `{"sample_id":"S-1","user_id":"00000000-0000-4000-8000-00000000000a","patient":{}}`
	var refusals bytes.Buffer
	report, err := bulk.Run(context.Background(), nil, bulk.JSONLines(strings.NewReader(file)), nil, bulk.Options{DryRun: true, Refusals: &refusals})
	fmt.Println(report, err)
	fmt.Print(&refusals)
	// Output:
	// 1 records: 0 applied, 1 invalid <nil>
	// {"outcome":"invalid","record":1,"line":1,"sample_id":"S-1","fields":[{"path":"body.patient","reason":"is not a member of the request"}]}
}
