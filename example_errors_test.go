package labhealth_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// Handle every kind of error in one switch, the most specific first.
func Example_errors() {
	client, srv, userID := exampleService()
	defer srv.Close()
	ctx := context.Background()
	body := exampleImport(srv, userID)
	importOrder := func() {
		_, err := client.Orders.Import(ctx, body)
		var invalid *labhealth.ValidationError
		var apiErr *labhealth.APIError
		switch {
		case err == nil:
			fmt.Println("imported")
		case errors.As(err, &invalid):
			fmt.Println("invalid:", invalid.Fields[0].Path(), invalid.Fields[0].Msg)
		case labhealth.OutcomeOf(err) == labhealth.OutcomeApplied:
			fmt.Println("imported, but the response cannot be decoded")
		case labhealth.OutcomeOf(err) == labhealth.OutcomeUnknown:
			fmt.Println("look for the sample ID before importing again:", err)
		case errors.Is(err, labhealth.ErrUnauthorized), errors.Is(err, labhealth.ErrForbidden):
			fmt.Println("not permitted:", err)
		case errors.Is(err, labhealth.ErrRateLimited) && errors.As(err, &apiErr):
			fmt.Println("rate limited: try again in", apiErr.RetryAfter)
		case labhealth.OutcomeOf(err) == labhealth.OutcomeRejected && errors.As(err, &apiErr):
			fmt.Println("rejected:", apiErr.Message()) // may quote the patient: show it, do not log it
		default:
			fmt.Println("not sent:", err)
		}
	}

	const operation = "POST /v3/order/import"
	for _, fault := range []labhealthtest.Fault{
		labhealthtest.FaultResponse(http.StatusForbidden, `{"detail":"This endpoint is in closed beta"}`),
		labhealthtest.FaultResponse(http.StatusTooManyRequests, `{}`, "Retry-After", "120"), // above RetryPolicy.MaxRetryAfter
		labhealthtest.FaultResponse(http.StatusBadGateway, "<html>Bad Gateway</html>", "Content-Type", "text/html"),
		labhealthtest.FaultClosed,
	} {
		if err := srv.FailBefore(operation, 1, fault); err != nil {
			log.Fatal(err)
		}
		importOrder()
	}
	if err := srv.FailAfter(operation, 1, labhealthtest.FaultHalfBody); err != nil {
		log.Fatal(err)
	}
	importOrder()
	importOrder() // a duplicate sample ID
	body.SampleID = ""
	importOrder()
	srv.Close() // from here on the connection is refused
	client.CloseIdleConnections()
	body.SampleID = "SAMPLE-0002"
	importOrder()
	// Output:
	// not permitted: labhealth: POST /v3/order/import: 403 Forbidden: rejected (the team is not enabled for this closed beta: ask the service for access)
	// rate limited: try again in 2m0s
	// look for the sample ID before importing again: labhealth: POST /v3/order/import: 502 Bad Gateway: outcome unknown (the response is HTML: a proxy sent it, or the base URL is wrong; check whether it took effect before you repeat it)
	// look for the sample ID before importing again: labhealth: POST /v3/order/import: the connection was closed while waiting for the response: outcome unknown (check whether it took effect before you repeat it)
	// imported, but the response cannot be decoded
	// rejected: An order with this sample_id already exists
	// invalid: body.sample_id is required
	// not sent: labhealth: POST /v3/order/import: connection refused: not sent (check the host and the port of the base URL) (3 attempts)
}

// Read the field errors of a response with status 422.
func ExampleAPIError() {
	client, srv, userID := exampleService()
	defer srv.Close()

	body := exampleImport(srv, userID)
	body.PatientDetails.PhoneNumber = "none"
	_, err := client.Orders.Import(context.Background(), body)
	var apiErr *labhealth.APIError
	if errors.As(err, &apiErr) {
		fmt.Println(apiErr.StatusCode, apiErr.Op)
		for _, field := range apiErr.Fields() {
			fmt.Println(field.Path(), field.Type) // field.Msg may quote patient data
		}
	}
	// Output:
	// 422 POST /v3/order/import
	// body.patient_details.phone_number value_error
}

// Decide by the outcome what to do after a failed import. Only an unknown outcome requires a look
// at the service.
func ExampleOutcomeOf() {
	client, srv, userID := exampleService()
	defer srv.Close()
	ctx := context.Background()
	order := exampleImport(srv, userID)
	importOrder := func() {
		_, err := client.Orders.Import(ctx, order)
		var apiErr *labhealth.APIError
		switch outcome := labhealth.OutcomeOf(err); {
		case outcome == labhealth.OutcomeApplied:
			fmt.Println("imported:", err) // nil, or a *DecodeError: the order exists, its response is unreadable
		case outcome == labhealth.OutcomeUnknown:
			fmt.Println("look for the sample ID before importing again:", err)
		case outcome == labhealth.OutcomeRejected && errors.As(err, &apiErr):
			fmt.Println(err)
			fmt.Println("the service says:", apiErr.Message()) // may quote the patient: show it, do not log it
		default:
			fmt.Println(err) // not sent: a *ValidationError, or a *TransportError if the service is unreachable
		}
	}

	badGateway := labhealthtest.FaultResponse(http.StatusBadGateway, "<html>Bad Gateway</html>", "Content-Type", "text/html")
	if err := srv.FailBefore("POST /v3/order/import", 1, badGateway); err != nil {
		log.Fatal(err)
	}
	importOrder()
	importOrder()
	duplicate := labhealthtest.FaultResponse(http.StatusBadRequest, `{"detail":"An order with this sample_id already exists"}`)
	if err := srv.FailBefore("POST /v3/order/import", 1, duplicate); err != nil { // as the service, but without a random request ID
		log.Fatal(err)
	}
	importOrder()
	order.SampleID = ""
	importOrder()
	// Output:
	// look for the sample ID before importing again: labhealth: POST /v3/order/import: 502 Bad Gateway: outcome unknown (the response is HTML: a proxy sent it, or the base URL is wrong; check whether it took effect before you repeat it)
	// imported: <nil>
	// labhealth: POST /v3/order/import: 400 Bad Request: rejected (an order with this sample ID exists: find it with Orders.All)
	// the service says: An order with this sample_id already exists
	// labhealth: POST /v3/order/import: not sent: body.sample_id is required
}
