// Quickstart shows the main job from one end to the other, on an embedded service that needs nothing but Go:
//
//	go run ./examples/quickstart
//
// With -live it imports one file into a real deployment and does nothing else:
//
//	LABHEALTH_BASE_URL=https://… LABHEALTH_API_KEY=… go run ./examples/quickstart -live -in order.json
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

// orderJSON is an order of an invented patient. It never reaches a real service.
//
//go:embed order.json
var orderJSON []byte

func main() {
	live := flag.Bool("live", false, "import the file given with -in into the deployment at LABHEALTH_BASE_URL")
	in := flag.String("in", "", "file with the order to import, with -live")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	err := errors.New("-live and -in belong together")
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
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	body, err := readOrder(text)
	if err != nil {
		return err
	}
	client, err := labhealth.NewClient(os.Getenv("LABHEALTH_API_KEY"), labhealth.WithBaseURL(os.Getenv("LABHEALTH_BASE_URL")))
	if err != nil {
		return err
	}
	resp, err := client.Orders.Import(ctx, body)
	if err != nil {
		return fmt.Errorf("%w\nwhat became of the order: %s", err, labhealth.OutcomeOf(err))
	}
	fmt.Printf("imported order %s, now %s\n", resp.Order.ID, resp.Order.CurrentStatus())
	return nil
}

// readOrder refuses members it does not know: a misspelt one would be left out in silence.
func readOrder(text []byte) (body labhealth.ImportOrderBody, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&body); err != nil {
		// The decoder's own text can quote the patient.
		return body, fmt.Errorf("the order file does not fit ImportOrderBody, at or before byte %d", d.InputOffset())
	}
	return body, nil
}

func tour(ctx context.Context) error {
	service, err := labhealthtest.Start()
	if err != nil {
		return err
	}
	defer service.Close()
	ada := service.AddUser("user-ada")

	client, err := labhealth.NewClient(service.APIKey, labhealth.WithBaseURL(service.URL))
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()

	title("Import an order that exists already, with its sample")
	body, err := readOrder(orderJSON)
	if err != nil {
		return err
	}
	body.UserID = ada
	imported, err := client.Orders.Import(ctx, body)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %s\n", imported.Status, imported.Message)
	show(&imported.Order)

	title("Place an order for next week, move it by a week, release it")
	nextWeek := labhealth.DateOf(time.Now().UTC().AddDate(0, 0, 7))
	placed, err := client.Orders.Create(ctx, labhealth.CreateOrderBody{
		UserID:         ada,
		PatientDetails: body.PatientDetails,
		PatientAddress: labhealth.PatientAddressWithValidation{
			ReceiverName: "Ada Example", FirstLine: "1 Example Street", City: "Monterey", State: "CA", Zip: "93940", Country: "US",
		},
		OrderSet:   &labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{service.LabTests.Testkit}},
		ActivateBy: &nextWeek,
	})
	if err != nil {
		return err
	}
	show(&placed.Order)
	moved, err := client.Orders.Reschedule(ctx, placed.Order.ID, labhealth.DateOf(time.Now().UTC().AddDate(0, 0, 14)))
	if err != nil {
		return err
	}
	show(&moved.Order)
	released, err := client.Orders.Release(ctx, placed.Order.ID)
	if err != nil {
		return err
	}
	show(&released.Order)

	title("The imported order cannot be rescheduled: it is past the point, and was never scheduled")
	_, err = client.Orders.Reschedule(ctx, imported.Order.ID, nextWeek)
	var refusal *labhealth.APIError
	if !errors.As(err, &refusal) {
		return fmt.Errorf("expected a refusal, got %v", err)
	}
	fmt.Printf("reschedulable: %t\nerror:         %v\ndetail:        %s\noutcome:       %s\n",
		imported.Order.Reschedulable(), err, refusal.Detail(), labhealth.OutcomeOf(err))

	title("An import with mistakes never leaves the program")
	wrong := body
	wrong.PatientDetails.FirstName = ""
	wrong.PatientDetails.Email = "ada at example.com"
	wrong.SampleID = ""
	_, err = client.Orders.Import(ctx, wrong)
	var invalid *labhealth.ValidationError
	if !errors.As(err, &invalid) {
		return fmt.Errorf("expected a refusal, got %v", err)
	}
	for _, f := range invalid.Fields {
		fmt.Printf("%s %s\n", f.Path(), f.Msg)
	}
	fmt.Printf("outcome: %s\n", labhealth.OutcomeOf(err))

	title("List the users, page by page")
	service.AddUsers(6)
	for user, err := range client.Users.All(ctx, labhealth.ListUsersParams{Limit: 3}) {
		if err != nil {
			return err
		}
		fmt.Printf("%s  %s\n", user.UserID, user.ClientUserID)
	}

	title("Receive an event: the service says that the order went on")
	return receive(ctx, service, placed.Order.ID)
}

// webhookSecret is what the service signs with and the receiver checks. A real one is read where secrets are kept.
const webhookSecret = "whsec_cXVpY2tzdGFydCBxdWlja3N0YXJ0IHF1aWNr"

// receive lets the service deliver one event to a small HTTP server.
func receive(ctx context.Context, service *labhealthtest.Server, orderID uuid.UUID) error {
	verifier, err := webhooks.NewVerifier(webhookSecret)
	if err != nil {
		return err
	}
	handler, err := webhooks.NewHandler(verifier, func(_ context.Context, event *webhooks.Event) error {
		switch data := event.Data.(type) {
		case *webhooks.LabOrder:
			fmt.Printf("%s: order %s is %s\n", event.Type, data.ID, data.CurrentStatus())
		default:
			fmt.Printf("%s: not for us, and no reason to fail\n", event.Type)
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

func title(text string) { fmt.Printf("\n== %s\n", text) }

func show(o *labhealth.Order) {
	date := "at once"
	if o.ActivateBy != nil {
		date = o.ActivateBy.String()
	}
	fmt.Printf("order %s  %-45s  processed: %s\n", o.ID, o.CurrentStatus(), date)
}
