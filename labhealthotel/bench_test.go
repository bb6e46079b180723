package labhealthotel_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthotel"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// discard is an exporter of spans.
type discard struct{}

func (discard) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (discard) Shutdown(context.Context) error                             { return nil }

// BenchmarkCost compares a call with each kind of observation with one without. The calls take
// turns, so that all of them have the same machine. A metric such as tracing/without is the ratio
// of the median times, and tracing-allocs the number of further allocations of a call.
func BenchmarkCost(b *testing.B) {
	tracer := sdktrace.NewTracerProvider(sdktrace.WithBatcher(discard{}))
	defer tracer.Shutdown(context.Background())
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	traced, measured := labhealthotel.WithTracerProvider(tracer), labhealthotel.WithMeterProvider(meter)
	logger := slog.New(slog.NewJSONHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug}))
	variants := []struct {
		name    string
		options []labhealth.Option
	}{
		{"without", nil},
		{"no-provider", []labhealth.Option{labhealthotel.Client()}},
		{"logger", []labhealth.Option{labhealth.WithLogger(logger)}},
		{"metrics", []labhealth.Option{labhealthotel.Client(measured)}},
		{"tracing", []labhealth.Option{labhealthotel.Client(traced)}},
		{"all", []labhealth.Option{labhealth.WithLogger(logger), labhealthotel.Client(traced, measured)}},
	}
	srv := labhealthtest.NewServer(b)
	srv.AddUser("user-1")
	var page labhealth.Response
	client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := client.Users.List(b.Context(), labhealth.ListUsersParams{}, labhealth.WithResponse(&page)); err != nil {
		b.Fatal(err)
	}
	memory := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: page.Header, Body: io.NopCloser(strings.NewReader(string(page.Body))), Request: r}, nil
	})}
	for _, transport := range []struct {
		name   string
		client *http.Client
	}{{"memory", memory}, {"loopback", nil}} {
		b.Run(transport.name, func(b *testing.B) {
			calls := make([]func(), len(variants))
			for i, v := range variants {
				options := append([]labhealth.Option{labhealth.WithBaseURL(srv.URL)}, v.options...)
				if transport.client != nil {
					options = append(options, labhealth.WithHTTPClient(transport.client))
				}
				client, err := labhealth.NewClient(srv.APIKey, options...)
				if err != nil {
					b.Fatal(err)
				}
				calls[i] = func() {
					if _, err := client.Users.List(context.Background(), labhealth.ListUsersParams{}); err != nil {
						b.Fatal(err)
					}
				}
				calls[i]()
			}
			times := make([][]time.Duration, len(variants))
			for b.Loop() {
				for i, call := range calls {
					start := time.Now()
					call()
					times[i] = append(times[i], time.Since(start))
				}
			}
			var base, allocations float64
			for i, v := range variants {
				slices.Sort(times[i])
				median := float64(times[i][len(times[i])/2])
				n := testing.AllocsPerRun(200, calls[i])
				if i == 0 {
					base, allocations = median, n
					b.ReportMetric(median, "ns-without")
					b.ReportMetric(n, "allocs-without")
					continue
				}
				b.ReportMetric(median/base, v.name+"/without")
				b.ReportMetric(n-allocations, v.name+"-allocs")
			}
			b.ReportMetric(0, "ns/op") // of all variants together
		})
	}
}
