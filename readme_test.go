package labhealth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// What follows is the Go code of README.md, compiled and run. TestReadme holds the two together.

func readmeImport(ctx context.Context, apiKey, baseURL string, body labhealth.ImportOrderBody) error {
	client, err := labhealth.NewClient(apiKey, labhealth.WithBaseURL(baseURL))
	if err != nil {
		return err
	}
	resp, err := client.Orders.Import(ctx, body)
	if err != nil {
		return err // labhealth.OutcomeOf(err) says what became of the order
	}
	fmt.Println(resp.Order.ID, resp.Order.CurrentStatus())
	return nil
}

func readmeReceive(secret string) error {
	verifier, err := webhooks.NewVerifier(secret)
	if err != nil {
		return err
	}
	handler, err := webhooks.NewHandler(verifier, func(ctx context.Context, event *webhooks.Event) error {
		switch data := event.Data.(type) {
		case *webhooks.LabOrder:
			fmt.Println(data.ID, data.CurrentStatus())
		case *webhooks.Samples:
			fmt.Println(event.Type.Resource(), len(data.Data))
		}
		return nil // an error makes the sender try again
	})
	if err != nil {
		return err
	}
	http.Handle("/webhooks", handler)
	return nil
}

func readmeErrors(ctx context.Context, client *labhealth.Client, orderID uuid.UUID, date labhealth.Date) {
	_, err := client.Orders.Reschedule(ctx, orderID, date)
	var invalid *labhealth.ValidationError
	var answer *labhealth.APIError
	switch {
	case err == nil:
		fmt.Println("rescheduled")
	case errors.As(err, &invalid):
		fmt.Println("not sent:", invalid.Fields[0].Path(), invalid.Fields[0].Msg)
	case errors.Is(err, labhealth.ErrNotFound):
		fmt.Println("no such order")
	case labhealth.OutcomeOf(err) == labhealth.OutcomeUnknown:
		fmt.Println("look before you send it again")
	case errors.As(err, &answer):
		// The service's own words may quote the patient: show them, but do not log them.
		fmt.Println("refused:", string(answer.Detail()))
	default:
		fmt.Println(err)
	}
}

func readmeFind(ctx context.Context, client *labhealth.Client, userID uuid.UUID, sampleID string) (uuid.UUID, error) {
	for order, err := range client.Orders.All(ctx, labhealth.ListOrdersParams{UserID: userID}) {
		if err != nil {
			return uuid.Nil, err // still unknown
		}
		if order.SampleID != nil && *order.SampleID == sampleID {
			return order.ID, nil
		}
	}
	return uuid.Nil, errors.New("not there")
}

func readmeTesting(t *testing.T) (*labhealth.Client, *labhealthtest.Server) {
	srv := labhealthtest.NewServer(t)
	client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return client, srv
}

// TestReadme compares each Go block of README.md with this file, white space at the beginning of lines aside.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	this, err := os.ReadFile("readme_test.go")
	if err != nil {
		t.Fatal(err)
	}
	flat := func(b []byte) string {
		return string(regexp.MustCompile(`(?m)^[ \t]+`).ReplaceAll(b, nil))
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(readme, -1)
	for _, b := range blocks {
		if !strings.Contains(flat(this), flat(b[1])) {
			t.Errorf("this code of README.md is not compiled here:\n%s", b[1])
		}
	}
	if len(blocks) != 6 {
		t.Errorf("README.md has %d Go blocks, want 6", len(blocks))
	}
}

func TestReadmeCodeRuns(t *testing.T) {
	client, srv := readmeTesting(t)
	userID := srv.AddUser("user-ada")
	labTestID := srv.LabTests.WalkIn
	body := labhealth.ImportOrderBody{
		UserID:           userID,
		BillingType:      labhealth.BillingClientBill,
		OrderSet:         labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{labTestID}},
		CollectionMethod: labhealth.CollectionMethodWalkInTest,
		PatientDetails: labhealth.PatientDetailsWithValidation{
			FirstName: "Ada", LastName: "Example", DOB: labhealth.Date{Year: 1985, Month: 12, Day: 10},
			Gender: labhealth.GenderFemale, PhoneNumber: "+14155550123", Email: "ada@example.com",
		},
		PatientAddress: labhealth.PatientAddress{
			ReceiverName: "Ada Example", FirstLine: "1 Example Street", City: "Monterey", State: "CA", Zip: "93940", Country: "US",
		},
		SampleID: "SAMPLE-0001",
	}
	if err := readmeImport(t.Context(), srv.APIKey, srv.URL, body); err != nil {
		t.Fatal(err)
	}
	err := readmeImport(t.Context(), srv.APIKey, srv.URL, body)
	if labhealth.OutcomeOf(err) != labhealth.OutcomeRejected {
		t.Errorf("the second import of a sample: %v", err)
	}
	if id, err := readmeFind(t.Context(), client, userID, "SAMPLE-0001"); err != nil || id != srv.Orders()[0] {
		t.Errorf("found order %s, %v", id, err)
	}
	readmeErrors(t.Context(), client, srv.Orders()[0], labhealth.Date{})

	const secret = "whsec_cmVhZG1lIHJlYWRtZSByZWFkbWUgcmVhZG1l"
	if err := readmeReceive(secret); err != nil {
		t.Fatal(err)
	}
	receiver := httptest.NewServer(http.DefaultServeMux)
	t.Cleanup(receiver.Close)
	if err := srv.DeliverTo(receiver.URL+"/webhooks", labhealthtest.Signed(secret)); err != nil {
		t.Fatal(err)
	}
	if err := srv.Send([]byte(`{"event_type":"daily.data.glucose.created","data":{"source":{"provider":"example"},"data":[]}}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := srv.Advance(srv.Orders()[0]); err != nil {
		t.Fatal(err)
	}
	if err := srv.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, d := range srv.Deliveries() {
		if d.Status != http.StatusNoContent {
			t.Errorf("a delivery was answered with %d, %v", d.Status, d.Err)
		}
	}
	if n := len(srv.Deliveries()); n != 2 {
		t.Errorf("%d deliveries, want 2", n)
	}
}
