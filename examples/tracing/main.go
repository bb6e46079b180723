// Tracing records an OpenTelemetry span for each attempt of a call, with a custom transport:
//
//	go run .
//
// The name of a span is the operation, and its attributes are the method and the status. Paths,
// queries and bodies contain IDs and names of patients, which do not belong in a tracing system.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// tracingTransport is a transport that records a span for each request.
type tracingTransport struct {
	next   http.RoundTripper
	tracer trace.Tracer
}

func (t tracingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, span := t.tracer.Start(r.Context(), labhealth.Operation(r.Context()), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("http.request.method", r.Method)))
	defer span.End()
	r = r.Clone(ctx) // a transport must not modify its request
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(r.Header))
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		span.SetStatus(codes.Error, "no response") // the error message may contain the URL
		return nil, err
	}
	span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode))
	if resp.StatusCode >= 400 {
		span.SetStatus(codes.Error, "")
	}
	return resp, nil
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "tracing:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	service, err := labhealthtest.Start()
	if err != nil {
		return err
	}
	defer service.Close()

	recorder := tracetest.NewSpanRecorder() // a real program exports its spans to a collector
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	defer provider.Shutdown(ctx)

	base := http.DefaultTransport.(*http.Transport).Clone()
	defer base.CloseIdleConnections()
	client, err := labhealth.NewClient(service.APIKey, labhealth.WithBaseURL(service.URL),
		labhealth.WithHTTPClient(&http.Client{Transport: tracingTransport{base, provider.Tracer("example")}}))
	if err != nil {
		return err
	}

	// The first response to the list is a 429, so that there is a second attempt.
	if err := service.FailBefore("GET /v2/user/", 1, labhealthtest.FaultResponse(429, `{}`, "Retry-After", "0")); err != nil {
		return err
	}
	if _, err := client.Users.List(ctx, labhealth.ListUsersParams{}); err != nil {
		return err
	}
	if _, err := client.Orders.Get(ctx, uuid.New()); err == nil {
		return errors.New("an unknown order was found")
	}
	for _, span := range recorder.Ended() {
		fmt.Println(span.Name(), span.Attributes()[len(span.Attributes())-1].Value.AsInt64(), span.Status().Code)
	}
	return nil
}
