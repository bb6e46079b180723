package labhealth

import (
	"net/http"
	"testing"

	"github.com/labhealth/labhealth-go/internal/transport"
)

// instant responds with an empty body, without hooks.
type instant struct{}

func (instant) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// A call without options allocates little apart from what the transport and the decoder do.
func TestCallAllocations(t *testing.T) {
	client, err := NewClient("sk_test_0123456789", WithBaseURL("https://api.example.com"), WithHTTPClient(&http.Client{Transport: instant{}}))
	if err != nil {
		t.Fatal(err)
	}
	r := request{
		op: opGetOrder, ids: []string{"0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b"},
		read: func(*transport.Response) error { return nil },
	}
	got := testing.AllocsPerRun(200, func() {
		if err := client.core.do(t.Context(), r, nil); err != nil {
			t.Fatal(err)
		}
	})
	if got > 34 { // 33, and under the race detector, a pool that drops elements on purpose
		t.Errorf("%v allocations, want at most 34", got)
	}
}
