package webhooks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// secret is invented. A program reads its own from where it keeps secrets.
const secret = "whsec_bGFiaGVhbHRoLXRlc3Qtc2VjcmV0LWE9"

// exampleOrder makes the embedded service send the event of an order to a receiver, with faults
// more than once.
func exampleOrder(receiver string, opts ...labhealthtest.DeliveryOption) {
	service, err := labhealthtest.Start(labhealthtest.WithSeed(1))
	if err != nil {
		log.Fatal(err)
	}
	defer service.Close()
	if err := service.DeliverTo(receiver, append(opts, labhealthtest.WithSigningSecrets(secret), labhealthtest.WithRetries(time.Millisecond))...); err != nil {
		log.Fatal(err)
	}
	if _, err := service.AddOrder(service.AddUser("ada"), service.LabTests.Testkit); err != nil {
		log.Fatal(err)
	}
	if err := service.Flush(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// The function is called once for each verified event, even if the acknowledgement is lost and the
// event is sent again, as here. See the example of Handler for processing events.
func ExampleNewHandler() {
	verifier, err := webhooks.NewVerifier(secret)
	if err != nil {
		log.Fatal(err)
	}
	handler, err := webhooks.NewHandler(verifier, func(ctx context.Context, event *webhooks.Event) error {
		fmt.Println("received", event.Type, webhooks.DeliveryIDFrom(ctx) != "")
		return nil // an error makes the sender try again later
	}, webhooks.WithObserver(func(_ context.Context, r webhooks.DeliveryResult) {
		fmt.Println("responded", r.StatusCode, r.Reason)
	}))
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()

	exampleOrder(server.URL, labhealthtest.WithNetworkConditions(labhealthtest.NetworkConditions{LoseResponse: 1}))
	// Output:
	// received labtest.order.created true
	// responded 204 applied
	// responded 204 duplicate
}

// The handler in a mux with an application's other routes. Shut down the server first, so that
// nothing new arrives, and then the handler, which waits for the deliveries in flight.
func ExampleHandler() {
	verifier, err := webhooks.NewVerifier(secret)
	if err != nil {
		log.Fatal(err)
	}
	handler, err := webhooks.NewHandler(verifier, func(ctx context.Context, event *webhooks.Event) error {
		switch data := event.Data.(type) {
		case *webhooks.LabOrder:
			fmt.Println("order", data.ID, "is", data.CurrentStatus())
		case *webhooks.Samples:
			fmt.Println(len(data.Data), "samples of", event.Type.Resource(), "from", data.Source.ProviderSlug())
		}
		return nil // an error makes the sender try again later
	})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/webhooks", handler)
	mux.HandleFunc("/health", func(w http.ResponseWriter, r *http.Request) {})
	// In a program: http.Server{Addr: ":8080", Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	server := httptest.NewServer(mux)

	exampleOrder(server.URL + "/webhooks")

	server.Close() // in a program: server.Shutdown(ctx)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	fmt.Println(handler.Shutdown(ctx))
	// Output:
	// order e125750a-a608-45e2-8ffc-2d1212f4a465 is received.testkit.ordered
	// <nil>
}

// A durable receiver: a delivery is acknowledged when it is stored, and parsed and applied later,
// by this process or another one. The file stands for a table or a broker.
func ExampleNewRawHandler() {
	dir, err := os.MkdirTemp("", "inbox")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	inbox, err := os.Create(filepath.Join(dir, "inbox.jsonl"))
	if err != nil {
		log.Fatal(err)
	}
	defer inbox.Close()

	verifier, err := webhooks.NewVerifier(secret)
	if err != nil {
		log.Fatal(err)
	}
	var mu sync.Mutex
	handler, err := webhooks.NewRawHandler(verifier, func(ctx context.Context, d webhooks.RawDelivery) error {
		mu.Lock()
		defer mu.Unlock()
		if err := json.NewEncoder(inbox).Encode(d); err != nil {
			return err // not acknowledged: the sender tries again
		}
		return inbox.Sync()
	})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(handler)
	exampleOrder(server.URL)
	server.Close()

	// Later:
	stored, err := os.Open(inbox.Name())
	if err != nil {
		log.Fatal(err)
	}
	defer stored.Close()
	for d := json.NewDecoder(stored); d.More(); {
		var raw webhooks.RawDelivery
		if err := d.Decode(&raw); err != nil {
			log.Fatal(err)
		}
		delivery, err := raw.Parse() // as Latest and the stores take it
		if err != nil {
			fmt.Println(raw.ID, "is not an event:", err) // keep it as a dead letter
			continue
		}
		fmt.Println("apply", delivery.Event.Type, "received within the hour:", time.Since(delivery.Event.ReceivedAt) < time.Hour)
	}
	// Output:
	// apply labtest.order.created received within the hour: true
}

// A handler needs a secret. Unsigned accepts deliveries without signatures.
func ExampleNewHandler_unsigned() {
	apply := func(context.Context, *webhooks.Event) error { return nil }
	verifier, err := webhooks.NewVerifier("") // such as a variable that is not set
	fmt.Println(err)
	_, err = webhooks.NewHandler(verifier, apply)
	fmt.Println(err)
	_, err = webhooks.NewHandler(webhooks.Unsigned, apply)
	fmt.Println(err)
	// Output:
	// webhooks: secret 1 of 1 is empty: is its environment variable set?
	// webhooks: NewHandler needs a verifier of NewVerifier, or webhooks.Unsigned to do without
	// <nil>
}

// To rotate a secret, add the new one to the receiver, then switch the sender, and remove the old
// one a day later. WebhooksService.RotateSecret has a complete example.
func ExampleNewVerifier_rotation() {
	const next = "whsec_bGFiaGVhbHRoLXRlc3Qtc2VjcmV0LWI9"
	before, err := webhooks.NewVerifier(secret)
	if err != nil {
		log.Fatal(err)
	}
	during, err := webhooks.NewVerifier(secret, next)
	if err != nil {
		log.Fatal(err)
	}
	after, err := webhooks.NewVerifier(next)
	if err != nil {
		log.Fatal(err)
	}

	body, now := []byte(`{"event_type":"daily.data.glucose.created"}`), time.Now()
	for _, sender := range []*webhooks.Verifier{before, after} {
		signature, err := sender.Sign("msg_1", now, body)
		if err != nil {
			log.Fatal(err)
		}
		header := http.Header{"Webhook-Id": {"msg_1"}, "Webhook-Timestamp": {fmt.Sprint(now.Unix())}, "Webhook-Signature": {signature}}
		fmt.Println(before.Verify(body, header) == nil, during.Verify(body, header) == nil, after.Verify(body, header) == nil)
	}
	// Output:
	// true true false
	// false true true
}

// Verifying without the handler, as in a cloud function that gets headers and a body. Store the
// DeliveryID to detect repeated deliveries.
func ExampleVerifier_Verify() {
	verifier, err := webhooks.NewVerifier(secret)
	if err != nil {
		log.Fatal(err)
	}
	receive := func(body []byte, header http.Header) {
		err := verifier.Verify(body, header)
		switch {
		case err == nil:
			fmt.Println("verified:", webhooks.DeliveryID(header))
		case errors.Is(err, webhooks.ErrTimestamp):
			fmt.Println("too old, or a clock is wrong")
		default:
			fmt.Println(err)
		}
	}

	const body = `{"event_type":"daily.data.glucose.created"}`
	sign := func(at time.Time) http.Header {
		signature, err := verifier.Sign("msg_1", at, []byte(body))
		if err != nil {
			log.Fatal(err)
		}
		return http.Header{"Webhook-Id": {"msg_1"}, "Webhook-Timestamp": {fmt.Sprint(at.Unix())}, "Webhook-Signature": {signature}}
	}
	receive([]byte(body), sign(time.Now()))
	receive([]byte(body+" "), sign(time.Now()))
	receive([]byte(body), sign(time.Now().Add(-time.Hour)))
	receive([]byte(body), http.Header{})
	// Output:
	// verified: msg_1
	// webhooks: no signature of the delivery matches: check whether the secret is that of this endpoint, and what changes the body
	// too old, or a clock is wrong
	// webhooks: the signature headers are missing or malformed: check whether the service sent it, and what a proxy removes
}

// A signed body that is not an event is kept as a dead letter and acknowledged, so that it is not
// sent again for a day.
func ExampleWithDeadLetter() {
	handler, err := webhooks.NewHandler(webhooks.Unsigned,
		func(context.Context, *webhooks.Event) error { return nil },
		webhooks.WithDeadLetter(func(_ context.Context, body []byte) error {
			fmt.Println("dead letter:", len(body), "bytes")
			return nil
		}))
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	resp, err := server.Client().Post(server.URL, "application/json", strings.NewReader(`[1, 2`))
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	fmt.Println(resp.StatusCode)
	// Output:
	// dead letter: 5 bytes
	// 204
}
