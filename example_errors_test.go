package labhealth_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// Every class of error, told apart in one switch. The most special come first.
func Example_errors() {
	client, service, user := exampleService()
	defer service.Close()
	ctx := context.Background()
	body := exampleImport(service, user)
	try := func() {
		_, err := client.Orders.Import(ctx, body)
		var invalid *labhealth.ValidationError
		var refused *labhealth.APIError
		switch {
		case err == nil:
			fmt.Println("imported")
		case errors.As(err, &invalid):
			fmt.Println("not sent:", invalid.Fields[0].Path(), invalid.Fields[0].Msg)
		case labhealth.OutcomeOf(err) == labhealth.OutcomeApplied:
			fmt.Println("imported, but its answer is damaged")
		case labhealth.OutcomeOf(err) == labhealth.OutcomeUnknown:
			fmt.Println("look for the sample before you send it again:", err)
		case errors.Is(err, labhealth.ErrUnauthorized), errors.Is(err, labhealth.ErrForbidden):
			fmt.Println("the key cannot do this:", err)
		case errors.Is(err, labhealth.ErrRateLimited) && errors.As(err, &refused):
			fmt.Println("too many requests, go on in", refused.RetryAfter)
		case errors.As(err, &refused):
			// The service's own words may quote the patient: show them, but do not log them.
			fmt.Println("refused:", string(refused.Detail()))
		default:
			fmt.Println("not sent:", err)
		}
	}

	const operation = "POST /v3/order/import"
	for _, fault := range []labhealthtest.Fault{
		labhealthtest.FaultResponse(http.StatusForbidden, `{"detail":"This endpoint is in closed beta"}`),
		labhealthtest.FaultResponse(http.StatusTooManyRequests, `{}`, "Retry-After", "120"), // more than a call waits by itself
		labhealthtest.FaultResponse(http.StatusBadGateway, "<html>Bad Gateway</html>", "Content-Type", "text/html"),
		labhealthtest.FaultClosed,
	} {
		if err := service.FailBefore(operation, 1, fault); err != nil {
			log.Fatal(err)
		}
		try()
	}
	if err := service.FailAfter(operation, 1, labhealthtest.FaultHalfBody); err != nil {
		log.Fatal(err)
	}
	try()
	try() // once more: the sample is taken
	body.SampleID = ""
	try()
	service.Close() // nobody listens any more
	client.CloseIdleConnections()
	body.SampleID = "SAMPLE-0002"
	try()
	// Output:
	// the key cannot do this: labhealth: POST /v3/order/import: 403 Forbidden
	// too many requests, go on in 2m0s
	// look for the sample before you send it again: labhealth: POST /v3/order/import: 502 Bad Gateway
	// look for the sample before you send it again: labhealth: POST /v3/order/import: the connection failed (1 attempt, outcome unknown)
	// imported, but its answer is damaged
	// refused: "An order with this sample_id already exists"
	// not sent: body.sample_id is required
	// not sent: labhealth: POST /v3/order/import: connection refused (3 attempts, outcome not sent)
}

// The service's refusal, with what it said about the members of the request.
func ExampleAPIError() {
	client, service, user := exampleService()
	defer service.Close()

	body := exampleImport(service, user)
	body.PatientDetails.PhoneNumber = "none"
	_, err := client.Orders.Import(context.Background(), body)
	var refused *labhealth.APIError
	if errors.As(err, &refused) {
		fmt.Println(refused.StatusCode, refused.Op)
		for _, field := range refused.Fields() {
			fmt.Println(field.Path(), field.Type) // field.Msg may quote what was sent
		}
	}
	// Output:
	// 422 POST /v3/order/import
	// body.patient_details.phone_number value_error
}

// After a failed import the outcome says what to do next. Only an unknown one needs a look at the service.
func ExampleOutcomeOf() {
	client, service, user := exampleService()
	defer service.Close()
	ctx := context.Background()
	service.RejectImports(http.StatusBadGateway, "Bad Gateway") // is the order there or not?

	_, err := client.Orders.Import(ctx, exampleImport(service, user))
	switch labhealth.OutcomeOf(err) {
	case labhealth.OutcomeApplied:
		fmt.Println("it is there, also if there is an error")
	case labhealth.OutcomeNotSent, labhealth.OutcomeRejected:
		fmt.Println("it is not there:", err)
	case labhealth.OutcomeUnknown:
		fmt.Println("it may be there: look for its sample id before importing it again")
	}
	// Output:
	// it may be there: look for its sample id before importing it again
}

// An import that is there once, whatever happens on the way. It has no idempotency key: when nobody knows whether it was carried
// out, its sample id tells.
func ExampleOrdersService_Import_reconcile() {
	client, service, user := exampleService()
	defer service.Close()
	ctx := context.Background()

	importOnce := func(body labhealth.ImportOrderBody) (uuid.UUID, error) {
		resp, err := client.Orders.Import(ctx, body)
		switch {
		case err == nil:
			return resp.Order.ID, nil
		case labhealth.OutcomeOf(err) == labhealth.OutcomeNotSent:
			return uuid.Nil, err
		}
		// Look for it, also if it was refused: the reason may be that an earlier attempt has made it.
		for order, listErr := range client.Orders.All(ctx, labhealth.ListOrdersParams{UserID: body.UserID}) {
			if listErr != nil {
				return uuid.Nil, errors.Join(err, listErr) // nobody knows: look again later
			}
			if order.UserID == body.UserID && order.SampleID != nil && *order.SampleID == body.SampleID {
				return order.ID, nil
			}
		}
		return uuid.Nil, err // if it was not refused, it may be made yet: look again before you import it again
	}

	// The order is made, and the answer is lost.
	if err := service.FailAfter("POST /v3/order/import", 1, labhealthtest.FaultReset); err != nil {
		log.Fatal(err)
	}
	id, err := importOnce(exampleImport(service, user))
	fmt.Println("found:", id == service.Orders()[0], err)
	id, err = importOnce(exampleImport(service, user)) // refused, as the service has the sample
	fmt.Println("found again:", id == service.Orders()[0], err)
	fmt.Println("orders at the service:", len(service.Orders()))
	// Output:
	// found: true <nil>
	// found again: true <nil>
	// orders at the service: 1
}

// Creating a user is idempotent: where the client user id is taken, the error says by whom. Users.GetOrCreate does the same in one
// call.
func ExampleUserConflictError() {
	client, service, _ := exampleService()
	defer service.Close()

	_, err := client.Users.Create(context.Background(), labhealth.CreateUserBody{ClientUserID: "ada"})
	var conflict *labhealth.UserConflictError
	if errors.As(err, &conflict) {
		fmt.Println("there already:", conflict.UserID)
	}
	// Output:
	// there already: d67084ca-af0e-4d36-8849-6db7fef55fe0
}
