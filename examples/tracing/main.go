// Tracing records OpenTelemetry spans of calls and of a delivery, with package labhealthotel:
//
//	go run .
//
// It prints each span below its parent. A real program exports them to a collector instead.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthotel"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
)

func main() {
	recorder := tracetest.NewSpanRecorder()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)))
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "tracing:", err)
		os.Exit(1)
	}
	printSpans(recorder.Ended(), trace.SpanID{}, "")
}

func run(ctx context.Context) error {
	service, err := labhealthtest.Start()
	if err != nil {
		return err
	}
	defer service.Close()
	// Each of these options traces and measures.
	client, err := labhealth.NewClient(service.APIKey, labhealth.WithBaseURL(service.URL), labhealthotel.Client())
	if err != nil {
		return err
	}
	handler, err := webhooks.NewHandler(webhooks.Unsigned, func(ctx context.Context, event *webhooks.Event) error {
		_, err := client.Users.Get(ctx, event.UserID) // a child of the delivery
		return err
	}, labhealthotel.Handler())
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/webhooks", handler)
	receiver := httptest.NewServer(mux)
	defer receiver.Close() // waits until the spans of deliveries have ended
	if err := service.DeliverTo(receiver.URL + "/webhooks"); err != nil {
		return err
	}

	// The first response to the list is a 429, so that there is a second attempt.
	if err := service.FailBefore("GET /v2/user/", 1, labhealthtest.FaultResponse(429, `{}`, "Retry-After", "0")); err != nil {
		return err
	}
	if _, err := client.Users.List(ctx, labhealth.ListUsersParams{}); err != nil {
		return err
	}
	if _, err := client.Users.Resolve(ctx, "nobody"); !errors.Is(err, labhealth.ErrNotFound) {
		return errors.New("an unknown user was found")
	}
	user := service.AddUser("user-1")
	if _, err := client.Link.ConnectDemo(ctx, labhealth.ConnectDemoBody{UserID: user, Provider: labhealth.ProviderOura}); err != nil {
		return err
	}
	return service.Flush(ctx) // waits for the delivery
}

// printSpans prints the children of parent with their events.
func printSpans(spans []sdktrace.ReadOnlySpan, parent trace.SpanID, indent string) {
	for _, span := range spans {
		if span.Parent().SpanID() != parent {
			continue
		}
		fmt.Println(indent+span.Name(), span.Status().Code, span.Status().Description)
		for _, event := range span.Events() {
			fmt.Println(indent+" -", event.Name, event.Attributes[0].Key, event.Attributes[0].Value.String())
		}
		printSpans(spans, span.SpanContext().SpanID(), indent+"  ")
	}
}
