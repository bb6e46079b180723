package labhealthprom_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthprom"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// BenchmarkCost compares a call with and without metrics, over a transport in memory. The calls
// take turns, so that both have the same machine. metrics/without is the ratio of the median times,
// and metrics-allocs the number of further allocations of a call.
func BenchmarkCost(b *testing.B) {
	memory := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		body := io.NopCloser(strings.NewReader(`{"users":[],"total":0,"limit":50,"offset":0}`))
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Request: r}, nil
	})}
	var calls [2]func()
	for i, option := range []labhealth.Option{nil, labhealthprom.Client(prometheus.NewRegistry())} {
		client, err := labhealth.NewClient("sk_key", labhealth.WithBaseURL("https://api.example.com"), labhealth.WithHTTPClient(memory), option)
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
	var times [2][]time.Duration
	for b.Loop() {
		for i, call := range calls {
			start := time.Now()
			call()
			times[i] = append(times[i], time.Since(start))
		}
	}
	var medians [2]float64
	for i := range times {
		slices.Sort(times[i])
		medians[i] = float64(times[i][len(times[i])/2])
	}
	b.ReportMetric(0, "ns/op") // of both together
	b.ReportMetric(medians[0], "ns-without")
	b.ReportMetric(medians[1]/medians[0], "metrics/without")
	b.ReportMetric(testing.AllocsPerRun(200, calls[1])-testing.AllocsPerRun(200, calls[0]), "metrics-allocs")
}
