package labhealthotel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthotel"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// echo is a response that quotes the whole request, with its key, as a service may do.
func echo(status int) labhealthtest.Fault {
	return func(w http.ResponseWriter, r *http.Request, body []byte) {
		quoted, _ := json.Marshal(fmt.Sprint(r.URL, r.Header, string(body)))
		w.Header().Set("X-Request-Id", "Canaryna Canaryson")
		w.Header().Set("Location", "https://canary.example.com/"+r.URL.Path)
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"detail":[{"loc":["body",%s],"type":%s,"msg":%s}],"message":%s}`, quoted, quoted, quoted, quoted)
	}
}

// No span, metric or log contains the key, an ID of a resource or data of a patient, whatever the
// service responds, however the network fails and whatever the application does.
func TestCanary(t *testing.T) {
	srv := labhealthtest.NewServer(t)
	r := newTelemetry()
	var logs bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL), labhealth.WithLogger(logger),
		labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 2, BaseWait: time.Millisecond, ReadTimeout: 100 * time.Millisecond, WriteTimeout: 100 * time.Millisecond}),
		labhealthotel.Client(r.options(labhealthotel.WithPropagator(propagation.TraceContext{}))...))
	if err != nil {
		t.Fatal(err)
	}
	member, _ := baggage.NewMember("patient", "Canaryna")
	bag, _ := baggage.New(member)
	ctx := baggage.ContextWithBaggage(t.Context(), bag)
	user, order := srv.AddUser("canary-user"), uuid.New()

	faults := []labhealthtest.Fault{labhealthtest.FaultClosed, labhealthtest.FaultReset, labhealthtest.FaultGarbage, labhealthtest.FaultHalfHeader,
		labhealthtest.FaultHalfBody, labhealthtest.FaultTooLarge, labhealthtest.FaultSilence}
	for _, status := range []int{200, 307, 400, 401, 403, 404, 409, 422, 429, 500, 503} {
		faults = append(faults, echo(status))
	}
	calls := 0
	for _, fault := range faults {
		for _, c := range []struct {
			op   string
			call func() error
		}{
			{"POST /v3/order/import", func() error { return importOrder(ctx, client, user, srv.LabTests.WalkIn) }},
			{"GET /v3/order/{order_id}", func() error { _, err := client.Orders.Get(ctx, order); return err }},
			{"GET /v2/user/resolve/{client_user_id}", func() error { _, err := client.Users.Resolve(ctx, "canary-user"); return err }},
			{"GET /v2/user/{user_id}", func() error {
				return client.Do(ctx, http.MethodGet, "/v2/user/"+user.String(), nil, nil, labhealth.WithQuery("q", "Canaryna"))
			}},
		} {
			if err := srv.FailAfter(c.op, 2, fault); err != nil {
				t.Fatal(err)
			}
			c.call()
			calls++
			srv.ClearFaults()
		}
	}
	// The error of a transport, or of a proxy, may quote anything.
	quoting, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL), labhealth.WithLogger(logger), labhealthotel.Client(r.options()...),
		labhealth.WithHTTPClient(&http.Client{Transport: roundTripper(func(q *http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("Canaryna: %s %v", q.URL, q.Header)
		})}))
	if err != nil {
		t.Fatal(err)
	}
	importOrder(ctx, quoting, user, srv.LabTests.WalkIn)
	deliverCanaries(t, r, logger)
	values := []string{srv.APIKey, user.String(), order.String(), "anaryna", "anaryson", "canary", "CANARY", "4155550123", "1985-12-10", "Monterey"}
	output := logs.String() + dump(t, r)
	for _, value := range values {
		if i := strings.Index(output, value); i >= 0 {
			t.Errorf("it leaks %s: %.200s", value, output[max(0, i-100):])
		}
	}
	if !strings.Contains(output, "labhealth.attempt") || !strings.Contains(output, "labhealth.webhook.reason") || len(output) < 100_000 {
		t.Errorf("only %d bytes were searched", len(output))
	}
	t.Logf("%d calls, %d values searched in %d bytes of spans, metrics and logs", calls+1, len(values), len(output))
}

// deliverCanaries delivers events to applications that fail in several ways.
func deliverCanaries(t *testing.T, r *telemetry, logger *slog.Logger) {
	for _, do := range []func(context.Context, *webhooks.Event) error{
		func(context.Context, *webhooks.Event) error { return nil },
		func(context.Context, *webhooks.Event) error { return errors.New("Canaryna") },
		func(context.Context, *webhooks.Event) error { panic("Canaryna") },
		func(context.Context, *webhooks.Event) error { panic(errors.New("Canaryna")) },
	} {
		h, err := webhooks.NewHandler(webhooks.Unsigned, do, webhooks.WithLogger(logger), labhealthotel.Handler(r.options()...))
		if err != nil {
			t.Fatal(err)
		}
		mux := http.NewServeMux()
		mux.Handle("POST /hooks/{secret}", h)
		for _, body := range []string{event("labtest.order.created"), event("of Canaryna"), `["Canaryna"]`, "Canaryna"} {
			post(mux, "POST", "msg_1", body, "Traceparent", "00-Canaryna")
			post(h, "CANARYNA", "msg_1", body)
		}
	}
}

// dump returns everything that was recorded.
func dump(t *testing.T, r *telemetry) string {
	var metrics metricdata.ResourceMetrics
	if err := r.reader.Collect(t.Context(), &metrics); err != nil {
		t.Fatal(err)
	}
	spans, err := json.Marshal(tracetest.SpanStubsFromReadOnlySpans(r.spans.Ended()))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %+v", spans, metrics)
}
