package bulk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// exampleService starts the embedded service and returns a client and a file of orders.
func exampleService() (client *labhealth.Client, service *labhealthtest.Server, ordersFile string, end func()) {
	service, err := labhealthtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	client, err = labhealth.NewClient(service.APIKey, labhealth.WithBaseURL(service.URL))
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "bulk")
	if err != nil {
		log.Fatal(err)
	}
	var lines strings.Builder
	user := service.AddUser("ada")
	for i, email := range []string{"ada@example.com", "ada@example.com", "none", "ada@example.com"} {
		fmt.Fprintf(&lines, order, i+1, user, service.LabTests.WalkIn, email)
	}
	ordersFile = filepath.Join(dir, "orders.jsonl")
	if err := os.WriteFile(ordersFile, []byte(lines.String()), 0o600); err != nil {
		log.Fatal(err)
	}
	return client, service, ordersFile, func() {
		client.CloseIdleConnections()
		service.Close()
		os.RemoveAll(dir)
	}
}

// order is a line of a file of orders.
const order = `{"sample_id":"SAMPLE-%d","user_id":"%s","billing_type":"client_bill","collection_method":"walk_in_test",` +
	`"order_set":{"lab_test_ids":["%s"]},` +
	`"patient_details":{"first_name":"Ada","last_name":"Example","dob":"1985-12-10","gender":"female","phone_number":"+14155550123","email":"%s"},` +
	`"patient_address":{"receiver_name":"Ada Example","first_line":"1 Example Street","city":"Monterey","state":"CA","zip":"93940","country":"US"}}` + "\n"

// A file with an order on each line. With the journal the run can be interrupted and resumed.
func ExampleRun() {
	client, _, ordersFile, end := exampleService()
	defer end()
	ctx := context.Background()

	orders, err := os.Open(ordersFile)
	if err != nil {
		log.Fatal(err)
	}
	defer orders.Close()
	journal, err := bulk.OpenFile(ordersFile + ".journal")
	if err != nil {
		log.Fatal(err)
	}
	defer journal.Close()
	var rejections bytes.Buffer // a file, to be corrected and imported later
	report, err := bulk.Run(ctx, client, bulk.JSONLines(orders), journal, bulk.Options{Rejections: &rejections})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report)
	fmt.Print(&rejections)
	// Output:
	// 4 records: 3 applied, 1 invalid
	// {"outcome":"invalid","record":3,"line":3,"sample_id":"SAMPLE-3","reason":"it is invalid and was not sent","fields":[{"path":"body.patient_details.email","reason":"must be an email address: one @ and no spaces"}]}
}

// An import that is interrupted after the second order and resumed.
func ExampleRun_resume() {
	client, service, ordersFile, end := exampleService()
	defer end()
	orders, err := os.Open(ordersFile)
	if err != nil {
		log.Fatal(err)
	}
	defer orders.Close()

	run := func(opts bulk.Options) {
		journal, err := bulk.OpenFile(ordersFile + ".journal")
		if err != nil {
			log.Fatal(err)
		}
		defer journal.Close()
		report, err := bulk.Run(context.Background(), client, bulk.JSONLines(orders), journal, opts)
		if err != nil {
			fmt.Println("error:", err)
		}
		fmt.Println(report)
	}

	// The first run stops early: a response is lost, and then the service rejects the key once.
	if err := errors.Join(
		service.FailAfter("POST /v3/order/import", 1, labhealthtest.FaultClosed),
		service.FailBefore("POST /v3/order/import", 1, labhealthtest.FaultResponse(401, `{"detail":"Invalid token"}`)),
	); err != nil {
		log.Fatal(err)
	}
	run(bulk.Options{Concurrency: 1})

	// The second finds the order whose response was lost, and imports the rest.
	run(bulk.Options{Timeout: 50 * time.Millisecond, Settle: 100 * time.Millisecond})
	fmt.Println("orders:", len(service.Orders()))
	// Output:
	// error: labhealth: POST /v3/order/import: 401 Unauthorized: rejected (the key is invalid, expired, or of another region, environment or API)
	// 4 records: 0 applied, 1 invalid, 1 unknown, 2 pending
	// 4 records: 3 applied, 1 invalid
	// orders: 3
}

// A dry run reports invalid records. It needs neither a client nor a journal.
func ExampleRun_dryRun() {
	file := `{"sample_id":"S-1","user_id":"00000000-0000-4000-8000-00000000000a","patient":{}}`
	var rejections bytes.Buffer
	report, err := bulk.Run(context.Background(), nil, bulk.JSONLines(strings.NewReader(file)), nil, bulk.Options{DryRun: true, Rejections: &rejections})
	fmt.Println(report, err)
	fmt.Print(&rejections)
	// Output:
	// 1 records: 0 applied, 1 invalid <nil>
	// {"outcome":"invalid","record":1,"line":1,"sample_id":"S-1","reason":"it is invalid and was not sent","fields":[{"path":"body.patient","reason":"is not a field of the request"}]}
}

// A file from a spreadsheet, with another column name and an additional column.
func ExampleCSV() {
	file := strings.NewReader(`Sample,user_id,patient_details.dob,Remarks
S-1,00000000-0000-4000-8000-00000000000a,1985-12-10,second visit
S-2,00000000-0000-4000-8000-00000000000a,10.12.1985,
`)
	for record, err := range bulk.CSV(file, bulk.CSVOptions{Rename: map[string]string{"Sample": "sample_id", "Remarks": "-"}}) {
		var unreadable *bulk.RecordError
		switch {
		case errors.As(err, &unreadable):
			fmt.Printf("line %d, %s: %s %s\n", unreadable.Line, unreadable.SampleID, unreadable.Problems[0].Path, unreadable.Problems[0].Reason)
		case err != nil:
			log.Fatal(err)
		default:
			fmt.Println(record.Body.SampleID, record.Body.PatientDetails.DOB)
		}
	}
	// Output:
	// S-1 1985-12-10
	// line 3, S-2: body.patient_details.dob is not a valid date of the form YYYY-MM-DD
}
