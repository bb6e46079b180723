package webhooks_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// A receiver, and the embedded service as the sender. The acknowledgement of each event gets lost once, so that it is sent again.
func ExampleNewHandler() {
	const secret = "whsec_bGFiaGVhbHRoLXRlc3Qtc2VjcmV0LWE9" // an invented one

	verifier, err := webhooks.NewVerifier(secret)
	if err != nil {
		fmt.Println(err)
		return
	}
	handler, err := webhooks.NewHandler(verifier, func(ctx context.Context, e *webhooks.Event) error {
		switch data := e.Data.(type) {
		case *webhooks.LabOrder:
			fmt.Println("apply", e.Type, data.CurrentStatus())
		case *webhooks.Samples:
			fmt.Println("apply", e.Type, len(data.Data), "samples")
		default:
			// What is not known is acknowledged: a receiver that keeps failing is switched off.
		}
		return nil // An error makes the sender try again later.
	}, webhooks.WithObserver(func(_ context.Context, a webhooks.Answer) {
		fmt.Println("answer", a.StatusCode, a.Result)
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(handler)
	defer server.Close()

	service, err := labhealthtest.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer service.Close()
	err = service.DeliverTo(server.URL, labhealthtest.Signed(secret), labhealthtest.Retried(time.Millisecond),
		labhealthtest.Unreliable(labhealthtest.Faults{LoseAnswer: 1}))
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := service.AddOrder(service.AddUser("ada"), service.LabTests.Testkit); err != nil {
		fmt.Println(err)
		return
	}
	if err := service.Flush(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	// Wait for what is in work before the program ends.
	if err := handler.Shutdown(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// apply labtest.order.created received.testkit.ordered
	// answer 204 applied
	// answer 204 remembered
}

// Without a secret there is no handler. To do without signatures takes a name.
func ExampleNewHandler_unsigned() {
	apply := func(context.Context, *webhooks.Event) error { return nil }
	verifier, err := webhooks.NewVerifier("") // such as a variable that nobody set
	fmt.Println(err)
	_, err = webhooks.NewHandler(verifier, apply)
	fmt.Println(err)
	_, err = webhooks.NewHandler(webhooks.Unsigned, apply)
	fmt.Println(err)
	// Output:
	// webhooks: secret 1 of 1 is empty
	// webhooks: NewHandler needs a verifier of NewVerifier, or webhooks.Unsigned to do without
	// <nil>
}

// Verifying without the handler, as in a function of a cloud that gets headers and a body. DeliveryID is what was signed, and is to be
// remembered.
func ExampleVerifier_Verify() {
	verifier, err := webhooks.NewVerifier("whsec_bGFiaGVhbHRoLXRlc3Qtc2VjcmV0LWE9") // an invented one
	if err != nil {
		fmt.Println(err)
		return
	}
	receive := func(r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 16<<20))
		if err == nil {
			err = verifier.Verify(body, r.Header)
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("believed:", webhooks.DeliveryID(r.Header))
	}

	const body = `{"event_type":"daily.data.glucose.created"}`
	request := httptest.NewRequest(http.MethodPost, "/events", strings.NewReader(body))
	receive(request)

	now := time.Now()
	signature, err := verifier.Sign("msg_1", now, []byte(body))
	if err != nil {
		fmt.Println(err)
		return
	}
	request = httptest.NewRequest(http.MethodPost, "/events", strings.NewReader(body))
	request.Header.Set("webhook-id", "msg_1")
	request.Header.Set("webhook-timestamp", fmt.Sprint(now.Unix()))
	request.Header.Set("webhook-signature", signature)
	receive(request)
	// Output:
	// webhooks: the signature headers are missing or malformed
	// believed: msg_1
}
