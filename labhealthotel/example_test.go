package labhealthotel_test

import (
	"context"
	"fmt"
	"log"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthotel"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// The option Client is all that a program with global providers needs. The recorder stands for an
// exporter, and the embedded service for the service.
func Example() {
	recorder := tracetest.NewSpanRecorder()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)))

	service, err := labhealthtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer service.Close()
	client, err := labhealth.NewClient(service.APIKey, labhealth.WithBaseURL(service.URL), labhealthotel.Client())
	if err != nil {
		log.Fatal(err)
	}
	if _, err := client.Users.List(context.Background(), labhealth.ListUsersParams{}); err != nil {
		log.Fatal(err)
	}
	for _, span := range recorder.Ended() {
		fmt.Println(span.Name(), span.Status().Code, len(span.Events()), "attempt")
	}
	// Output:
	// GET /v2/user/ Unset 1 attempt
}
