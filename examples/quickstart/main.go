// Quickstart shows the main tasks of the client, with an embedded service instead of an account:
//
//	go run ./examples/quickstart
//
// With -live it only imports one file into a real deployment:
//
//	LABHEALTH_URL=https://… LABHEALTH_API_KEY=… go run ./examples/quickstart -live -in order.json
package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// orderJSON is an order of an invented patient. It is never sent to a real service.
//
//go:embed order.json
var orderJSON []byte

func main() {
	live := flag.Bool("live", false, "import the file given with -in into the deployment at LABHEALTH_URL")
	in := flag.String("in", "", "file with the order to import, with -live")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	err := errors.New("-live and -in must be used together")
	switch {
	case *live && *in != "":
		err = importLive(ctx, *in)
	case !*live && *in == "":
		err = tour(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func importLive(ctx context.Context, file string) error {
	orderFile, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	body, err := decodeOrder(orderFile)
	if err != nil {
		return err
	}
	client, err := labhealth.NewClient(os.Getenv("LABHEALTH_API_KEY"), labhealth.WithBaseURL(os.Getenv("LABHEALTH_URL")))
	if err != nil {
		return err
	}
	resp, err := client.Orders.Import(ctx, body)
	if err != nil {
		return fmt.Errorf("%w\noutcome: %s", err, labhealth.OutcomeOf(err))
	}
	fmt.Printf("imported order %s, now %s\n", resp.Order.ID, resp.Order.CurrentStatus())
	return nil
}

// decodeOrder rejects unknown fields: a misspelled field would be ignored silently.
func decodeOrder(data []byte) (body labhealth.ImportOrderBody, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&body); err != nil {
		// The error of the decoder can quote patient data.
		return body, fmt.Errorf("the order file is not a valid ImportOrderBody, at or before byte %d", d.InputOffset())
	}
	return body, nil
}

// tour runs all steps against an embedded service.
func tour(ctx context.Context) error {
	service, err := labhealthtest.Start()
	if err != nil {
		return err
	}
	defer service.Close()
	client, err := labhealth.NewClient(service.APIKey, labhealth.WithBaseURL(service.URL))
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()

	body, err := decodeOrder(orderJSON)
	if err != nil {
		return err
	}
	body.UserID = service.AddUser("user-ada")
	imported, err := importOrder(ctx, client, body)
	if err != nil {
		return err
	}
	created, err := scheduleOrder(ctx, client, body, service.LabTests.Testkit)
	if err != nil {
		return err
	}
	if err := rejectedReschedule(ctx, client, imported); err != nil {
		return err
	}
	if err := invalidImport(ctx, client, body); err != nil {
		return err
	}
	service.AddUsers(6)
	if err := listUsers(ctx, client); err != nil {
		return err
	}
	return receiveEvent(ctx, service, created.ID)
}

func importOrder(ctx context.Context, client *labhealth.Client, body labhealth.ImportOrderBody) (*labhealth.Order, error) {
	title("Import an existing order with its sample")
	imported, err := client.Orders.Import(ctx, body)
	if err != nil {
		return nil, err
	}
	fmt.Printf("%s: %s\n", imported.Status, imported.Message)
	show(&imported.Order)
	return &imported.Order, nil
}

// scheduleOrder creates an order for the patient of body.
func scheduleOrder(ctx context.Context, client *labhealth.Client, body labhealth.ImportOrderBody, labTest uuid.UUID) (*labhealth.Order, error) {
	title("Create an order for next week, reschedule it by a week, release it")
	created, err := client.Orders.Create(ctx, labhealth.CreateOrderBody{
		UserID:         body.UserID,
		PatientDetails: body.PatientDetails,
		PatientAddress: labhealth.PatientAddressWithValidation{
			ReceiverName: "Ada Example", FirstLine: "1 Example Street", City: "Monterey", State: "CA", Zip: "93940", Country: "US",
		},
		OrderSet:   &labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{labTest}},
		ActivateBy: new(daysFromNow(7)),
	})
	if err != nil {
		return nil, err
	}
	show(&created.Order)
	rescheduled, err := client.Orders.Reschedule(ctx, created.Order.ID, daysFromNow(14))
	if err != nil {
		return nil, err
	}
	show(&rescheduled.Order)
	released, err := client.Orders.Release(ctx, created.Order.ID)
	if err != nil {
		return nil, err
	}
	show(&released.Order)
	return &released.Order, nil
}

func rejectedReschedule(ctx context.Context, client *labhealth.Client, imported *labhealth.Order) error {
	title("Rescheduling the imported order is rejected")
	_, err := client.Orders.Reschedule(ctx, imported.ID, daysFromNow(7))
	var rejected *labhealth.APIError
	if !errors.As(err, &rejected) {
		return fmt.Errorf("got error %v, want an APIError", err)
	}
	fmt.Printf("reschedulable: %t\nerror:         %v\nmessage:       %s\noutcome:       %s\n",
		imported.Reschedulable(), err, rejected.Message(), labhealth.OutcomeOf(err))
	return nil
}

func invalidImport(ctx context.Context, client *labhealth.Client, body labhealth.ImportOrderBody) error {
	title("An invalid import is not sent")
	body.PatientDetails.FirstName = ""
	body.PatientDetails.Email = "ada at example.com"
	body.SampleID = ""
	_, err := client.Orders.Import(ctx, body)
	var invalid *labhealth.ValidationError
	if !errors.As(err, &invalid) {
		return fmt.Errorf("got error %v, want a ValidationError", err)
	}
	for _, f := range invalid.Fields {
		fmt.Printf("%s %s\n", f.Path(), f.Msg)
	}
	fmt.Printf("outcome: %s\n", labhealth.OutcomeOf(err))
	return nil
}

func listUsers(ctx context.Context, client *labhealth.Client) error {
	title("List the users, page by page")
	for user, err := range client.Users.All(ctx, labhealth.ListUsersParams{Limit: 3}) {
		if err != nil {
			return err
		}
		fmt.Printf("%s  %s\n", user.UserID, user.ClientUserID)
	}
	return nil
}

// webhookSecret is an invented signing secret. Read a real one from a secret store.
const webhookSecret = "whsec_cXVpY2tzdGFydCBxdWlja3N0YXJ0IHF1aWNr"

// receiveEvent makes the service deliver one event to an HTTP server.
func receiveEvent(ctx context.Context, service *labhealthtest.Server, orderID uuid.UUID) error {
	title("Receive an event about the order")
	verifier, err := webhooks.NewVerifier(webhookSecret)
	if err != nil {
		return err
	}
	handler, err := webhooks.NewHandler(verifier, func(_ context.Context, event *webhooks.Event) error {
		switch data := event.Data.(type) {
		case *webhooks.LabOrder:
			fmt.Printf("%s: order %s is %s\n", event.Type, data.ID, data.CurrentStatus())
		default:
			fmt.Printf("%s: ignored\n", event.Type)
		}
		return nil
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	receiver := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go receiver.Serve(listener)
	defer receiver.Close()

	if err := service.DeliverTo("http://"+listener.Addr().String(), labhealthtest.WithSigningSecrets(webhookSecret)); err != nil {
		return err
	}
	if _, err := service.Advance(orderID); err != nil {
		return err
	}
	return service.Flush(ctx)
}

func daysFromNow(days int) labhealth.Date {
	return labhealth.DateOf(time.Now().UTC().AddDate(0, 0, days))
}

func title(text string) { fmt.Printf("\n== %s\n", text) }

func show(o *labhealth.Order) {
	date := "immediately"
	if o.ActivateBy != nil {
		date = o.ActivateBy.String()
	}
	fmt.Printf("order %s  %-45s  processed: %s\n", o.ID, o.CurrentStatus(), date)
}
