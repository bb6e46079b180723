package conformance

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go/internal/transport"
)

// BenchmarkTransport measures sending without a network: the loop, the limits and the proof of the
// outcome, over an http.RoundTripper that responds immediately.
func BenchmarkTransport(b *testing.B) {
	header := http.Header{"Content-Type": {"application/json"}}
	client := transport.NewClient(&http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: header, Body: io.NopCloser(strings.NewReader("{}")), ContentLength: 2, Request: r}, nil
	})})
	policy := transport.Policy{Attempts: 3, ReadTimeout: time.Minute}
	read := func(*transport.Response) error { return nil }
	b.ReportAllocs()
	for b.Loop() {
		r := client.Do(b.Context(), &transport.Request{Method: "GET", URL: testURL + "/v3/order/x", MaxBody: 1 << 20, Policy: policy}, read)
		if r.Outcome != transport.Applied {
			b.Fatal(r.Err)
		}
		r.Release()
	}
}
