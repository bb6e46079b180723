package labhealthotel_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthotel"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// telemetry records spans and metrics.
type telemetry struct {
	spans  *tracetest.SpanRecorder
	tracer *sdktrace.TracerProvider
	reader *sdkmetric.ManualReader
	meter  *sdkmetric.MeterProvider
}

func newTelemetry() *telemetry {
	t := &telemetry{spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	t.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(t.spans))
	t.meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(t.reader))
	return t
}

func (r *telemetry) options(more ...labhealthotel.Option) []labhealthotel.Option {
	return append(more, labhealthotel.WithTracerProvider(r.tracer), labhealthotel.WithMeterProvider(r.meter))
}

// ended returns the spans that have ended since the last call, each with its events.
func (r *telemetry) ended(t *testing.T) (lines []string) {
	t.Helper()
	if started, ended := len(r.spans.Started()), len(r.spans.Ended()); started != ended {
		t.Errorf("%d spans have started and %d ended", started, ended)
	}
	for _, s := range r.spans.Ended() {
		line := fmt.Sprintf("%s (%s) %s", s.Name(), s.SpanKind(), values(s.Attributes()))
		if s.Status().Code != codes.Unset {
			line += fmt.Sprintf(" %s %q", s.Status().Code, s.Status().Description)
		}
		lines = append(lines, line)
		for _, e := range s.Events() {
			if e.Time.Before(s.StartTime()) || e.Time.After(s.EndTime()) {
				t.Errorf("%s: event at %s, span from %s to %s", s.Name(), e.Time, s.StartTime(), s.EndTime())
			}
			lines = append(lines, fmt.Sprintf("  %s %s", e.Name, values(e.Attributes)))
		}
	}
	r.spans.Reset()
	return lines
}

// values returns attributes by name. Those that differ from run to run are an asterisk.
func values(attributes []attribute.KeyValue) string {
	var parts []string
	for _, a := range attributes {
		value := a.Value.String()
		switch a.Key {
		case "server.port", "labhealth.request_id", "labhealth.attempt.duration", "labhealth.attempt.wait", "exception.stacktrace":
			value = "*"
		}
		parts = append(parts, fmt.Sprint(a.Key, "=", value))
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// metrics returns the series with their counts.
func (r *telemetry) metrics(t *testing.T) (lines []string) {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := r.reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					if p.Sum < 0 || p.Sum > 60 {
						t.Errorf("%s: %g s", m.Name, p.Sum)
					}
					lines = append(lines, fmt.Sprintf("%s [%s] %s: %d", m.Name, m.Unit, values(p.Attributes.ToSlice()), p.Count))
				}
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					lines = append(lines, fmt.Sprintf("%s [%s] %s: %d", m.Name, m.Unit, values(p.Attributes.ToSlice()), p.Value))
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					lines = append(lines, fmt.Sprintf("%s [%s] %s: %.0f", m.Name, m.Unit, values(p.Attributes.ToSlice()), p.Value))
				}
			default:
				t.Errorf("%s is a %T", m.Name, m.Data)
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func compare(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n%s\nwant:\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// importOrder imports an order with an invented patient.
func importOrder(ctx context.Context, client *labhealth.Client, user, test uuid.UUID) error {
	_, err := client.Orders.Import(ctx, labhealth.ImportOrderBody{
		UserID: user, BillingType: labhealth.BillingClientBill,
		OrderSet:         labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{test}},
		CollectionMethod: labhealth.CollectionMethodWalkInTest,
		PatientDetails: labhealth.PatientDetailsWithValidation{
			FirstName: "Canaryna", LastName: "Canaryson", DOB: labhealth.Date{Year: 1985, Month: time.December, Day: 10},
			Gender: labhealth.GenderFemale, PhoneNumber: "+14155550123", Email: "canaryna@example.com",
		},
		PatientAddress: labhealth.PatientAddress{
			ReceiverName: "Canaryna Canaryson", FirstLine: "1 Canary Street", City: "Monterey", State: "CA", Zip: "93940", Country: "US",
		},
		SampleID: "CANARY-0001",
	})
	return err
}

// The embedded service does what a call may meet.
func TestClient(t *testing.T) {
	srv := labhealthtest.NewServer(t)
	r := newTelemetry()
	client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL), labhealthotel.Client(r.options()...),
		labhealth.WithRetry(labhealth.RetryPolicy{BaseWait: time.Millisecond}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, user := t.Context(), srv.AddUser("user-1")
	fail := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	const at = " server.address=127.0.0.1 server.port=*"
	const get = "http.request.method=GET "

	fail(srv.FailBefore("GET /v2/user/", 1, labhealthtest.FaultResponse(429, `{}`, "Retry-After", "0")))
	if _, err := client.Users.List(ctx, labhealth.ListUsersParams{}); err != nil {
		t.Fatal(err)
	}
	compare(t, "a retry", r.ended(t),
		"GET /v2/user/ (client) "+get+"http.request.resend_count=1 http.response.status_code=200 labhealth.outcome=applied labhealth.request_id=*"+at+" url.template=/v2/user/",
		"  labhealth.attempt error.type=429 http.request.resend_count=0 http.response.status_code=429 labhealth.attempt.duration=*",
		"  labhealth.attempt http.request.resend_count=1 http.response.status_code=200 labhealth.attempt.duration=* labhealth.request_id=*")

	client.Orders.Get(ctx, uuid.New())
	compare(t, "an unknown order", mask(r.ended(t)),
		"GET /v3/order/{order_id} (client) error.type=404 "+get+"http.response.status_code=404 labhealth.outcome=rejected labhealth.request_id=*"+at+" url.template=/v3/order/{order_id} Error *",
		"  labhealth.attempt error.type=404 http.request.resend_count=0 http.response.status_code=404 labhealth.attempt.duration=* labhealth.request_id=*")

	fail(srv.FailAfter("POST /v3/order/import", 1, labhealthtest.FaultClosed))
	if err := importOrder(ctx, client, user, srv.LabTests.WalkIn); labhealth.OutcomeOf(err) != labhealth.OutcomeUnknown {
		t.Error(err)
	}
	const imports = "http.request.method=POST "
	compare(t, "a lost response", mask(r.ended(t)),
		"POST /v3/order/import (client) error.type=connection_closed "+imports+"labhealth.outcome=unknown"+at+" url.template=/v3/order/import Error *",
		"  labhealth.attempt error.type=connection_closed http.request.resend_count=0 labhealth.attempt.duration=* labhealth.attempt.error=*")

	client.Orders.Import(ctx, labhealth.ImportOrderBody{})
	compare(t, "an invalid body", mask(r.ended(t)),
		"POST /v3/order/import (client) error.type=invalid_request "+imports+"labhealth.outcome=not sent"+at+" url.template=/v3/order/import Error *")

	fail(srv.FailBefore("GET /v2/user/resolve/{client_user_id}", 1, labhealthtest.FaultResponse(200, `<html>`)))
	client.Users.Resolve(ctx, "canary-user")
	compare(t, "a proxy's page", mask(r.ended(t)),
		"GET /v2/user/resolve/{client_user_id} (client) error.type=response_unreadable "+get+"http.response.status_code=200 labhealth.outcome=failed"+at+" url.template=/v2/user/resolve/{client_user_id} Error *",
		"  labhealth.attempt error.type=response_unreadable http.request.resend_count=0 http.response.status_code=200 labhealth.attempt.duration=* labhealth.attempt.error=*")

	client.Do(ctx, http.MethodGet, "/v9/"+user.String(), nil, nil)
	compare(t, "a call of Do", mask(r.ended(t)),
		"GET (client) error.type=404 "+get+"http.response.status_code=404 labhealth.outcome=rejected labhealth.request_id=*"+at+" Error *",
		"  labhealth.attempt error.type=404 http.request.resend_count=0 http.response.status_code=404 labhealth.attempt.duration=* labhealth.request_id=*")

	const calls, requests = "labhealth.client.call.duration [s] ", "http.client.request.duration [s] "
	compare(t, "metrics", r.metrics(t),
		requests+"error.type=404 "+get+"http.response.status_code=404"+at+" url.template=/v3/order/{order_id}: 1",
		requests+"error.type=404 "+get+"http.response.status_code=404"+at+": 1",
		requests+"error.type=429 "+get+"http.response.status_code=429"+at+" url.template=/v2/user/: 1",
		requests+"error.type=connection_closed "+imports+at[1:]+" url.template=/v3/order/import: 1",
		requests+"error.type=response_unreadable "+get+"http.response.status_code=200"+at+" url.template=/v2/user/resolve/{client_user_id}: 1",
		requests+get+"http.response.status_code=200"+at+" url.template=/v2/user/: 1",
		calls+"error.type=404 "+get+"http.response.status_code=404 labhealth.outcome=rejected"+at+" url.template=/v3/order/{order_id}: 1",
		calls+"error.type=404 "+get+"http.response.status_code=404 labhealth.outcome=rejected"+at+": 1",
		calls+"error.type=connection_closed "+imports+"labhealth.outcome=unknown"+at+" url.template=/v3/order/import: 1",
		calls+"error.type=invalid_request "+imports+"labhealth.outcome=not sent"+at+" url.template=/v3/order/import: 1",
		calls+"error.type=response_unreadable "+get+"http.response.status_code=200 labhealth.outcome=failed"+at+" url.template=/v2/user/resolve/{client_user_id}: 1",
		calls+get+"http.response.status_code=200 labhealth.outcome=applied"+at+" url.template=/v2/user/: 1")
}

// mask replaces messages of errors, whose texts the tests of the client know.
func mask(lines []string) []string {
	for i, line := range lines {
		if before, text, ok := strings.Cut(line, ` Error "`); ok && text != `"` {
			lines[i] = before + " Error *"
		}
		if before, _, ok := strings.Cut(line, "labhealth.attempt.error="); ok {
			lines[i] = before + "labhealth.attempt.error=*"
		}
	}
	return lines
}

// Times are those of the attempts and of the wait between them.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTelemetry()
		calls := 0
		transport := roundTripper(func(q *http.Request) (*http.Response, error) {
			calls++
			time.Sleep(time.Duration(calls) * 250 * time.Millisecond)
			resp := &http.Response{StatusCode: 429, Header: http.Header{"Retry-After": {"3"}}, Body: http.NoBody, Request: q}
			if calls == 2 {
				resp.StatusCode = 200
			}
			return resp, nil
		})
		client, err := labhealth.NewClient("sk_key", labhealth.WithBaseURL("https://api.example.com"),
			labhealth.WithHTTPClient(&http.Client{Transport: transport}), labhealthotel.Client(r.options()...))
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := client.Do(t.Context(), http.MethodGet, "/v2/providers", nil, nil); err != nil {
			t.Fatal(err)
		}
		span := r.spans.Ended()[0]
		got := []string{fmt.Sprint(span.StartTime().Sub(start), " ", span.EndTime().Sub(start))}
		for _, e := range span.Events() {
			line := e.Time.Sub(start).String()
			for _, a := range e.Attributes {
				if a.Value.Type() == attribute.FLOAT64 {
					line += fmt.Sprintf(" %s=%g", a.Key, a.Value.AsFloat64())
				}
			}
			got = append(got, line)
		}
		compare(t, "times", got, "0s 3.75s",
			"0s labhealth.attempt.duration=0.25 labhealth.attempt.wait=3", "3.25s labhealth.attempt.duration=0.5")
		var all metricdata.ResourceMetrics
		if err := r.reader.Collect(t.Context(), &all); err != nil {
			t.Fatal(err)
		}
		var sums []string
		for _, m := range all.ScopeMetrics[0].Metrics {
			for _, p := range m.Data.(metricdata.Histogram[float64]).DataPoints {
				sums = append(sums, fmt.Sprintf("%s %g", m.Name, p.Sum))
			}
		}
		slices.Sort(sums)
		compare(t, "sums", sums, "http.client.request.duration 0.25", "http.client.request.duration 0.5", "labhealth.client.call.duration 3.75")
	})
}

// A trace context is sent only on request, and baggage only if its propagator was asked for.
func TestPropagation(t *testing.T) {
	for _, test := range []struct {
		name    string
		options []labhealthotel.Option
		sent    bool
	}{
		{"default", nil, false},
		{"opted in", []labhealthotel.Option{labhealthotel.WithPropagator(propagation.TraceContext{})}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newTelemetry()
			var headers []http.Header
			transport := roundTripper(func(q *http.Request) (*http.Response, error) {
				headers = append(headers, q.Header.Clone())
				status := http.StatusOK
				if len(headers) == 1 {
					status = http.StatusTooManyRequests
				}
				return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: q}, nil
			})
			client, err := labhealth.NewClient("sk_key", labhealth.WithBaseURL("https://api.example.com"),
				labhealth.WithHTTPClient(&http.Client{Transport: transport}), labhealthotel.Client(r.options(test.options...)...),
				labhealth.WithRetry(labhealth.RetryPolicy{BaseWait: time.Microsecond}))
			if err != nil {
				t.Fatal(err)
			}
			ctx, parent := r.tracer.Tracer("test").Start(t.Context(), "parent")
			if err := client.Do(ctx, http.MethodGet, "/v2/providers", nil, nil); err != nil {
				t.Fatal(err)
			}
			parent.End()
			span := r.spans.Ended()[0]
			if span.Parent().SpanID() != parent.SpanContext().SpanID() {
				t.Error("the span of the call is not a child")
			}
			if got := values(span.Attributes()); !strings.Contains(got, "server.address=api.example.com") {
				t.Error(got)
			}
			want := ""
			if test.sent {
				want = fmt.Sprintf("00-%s-%s-01", span.SpanContext().TraceID(), span.SpanContext().SpanID())
			}
			if len(headers) != 2 {
				t.Fatalf("%d attempts", len(headers))
			}
			for _, h := range headers {
				if got := h.Get("Traceparent"); got != want {
					t.Errorf("traceparent %q, want %q", got, want)
				}
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A server that invents status codes does not create a series for each.
func TestStatusCodes(t *testing.T) {
	r, status := newTelemetry(), 0
	client, err := labhealth.NewClient("key", labhealth.WithBaseURL("https://api.example.com"), labhealthotel.Client(r.options()...),
		labhealth.WithHTTPClient(&http.Client{Transport: roundTripper(func(q *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: q}, nil
		})}))
	if err != nil {
		t.Fatal(err)
	}
	for _, status = range []int{404, 520, 600, 601, 777, 999} {
		client.Do(t.Context(), http.MethodPost, "/x", nil, nil)
	}
	if lines := r.metrics(t); len(lines) != 6 { // three of attempts and three of calls
		t.Errorf("%d series: %q", len(lines), lines)
	}
}
