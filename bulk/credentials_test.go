package bulk_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
	"github.com/labhealth/labhealth-go/internal/httptracetest"
)

// rotating is a service that revokes the key after every twenty requests.
type rotating struct {
	service
	mu       sync.Mutex
	requests int
	rejected int
}

func (r *rotating) key() string { return fmt.Sprintf("sk_%d", r.requests/20) }

func (r *rotating) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	accepted := req.Header.Get("x-service-api-key") == r.key()
	if accepted {
		r.requests++
	} else {
		r.rejected++
	}
	r.mu.Unlock()
	if !accepted {
		readBody(req)
		httptracetest.SendRequest(req)
		return newResponse(req, http.StatusUnauthorized, `{"detail":"Invalid token"}`, ""), nil
	}
	return r.service.RoundTrip(req)
}

// A run continues while keys are rotated. Without a source, a 401 stops it.
func TestRotatedKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &rotating{service: service{latency: 10 * time.Millisecond}}
		client, err := labhealth.NewClient("", labhealth.WithEnvironment(labhealth.SandboxUS, "https://api.example.com"),
			labhealth.WithHTTPClient(&http.Client{Transport: s}),
			labhealth.WithCredentials(func(context.Context) (labhealth.Credentials, error) {
				s.mu.Lock()
				defer s.mu.Unlock()
				return labhealth.Credentials{Key: labhealth.Secret(s.key())}, nil
			}))
		if err != nil {
			t.Fatal(err)
		}
		report, err := bulk.Run(t.Context(), client, from(numbered(200)), new(bulk.Memory), bulk.Options{})
		if err != nil {
			t.Fatal(err)
		}
		checkCounts(t, report, bulk.Report{Records: 200, Applied: 200, Sent: 200 + int64(s.rejected)})
		if s.rejected < 9 {
			t.Errorf("only %d requests were rejected", s.rejected)
		}
		for id, n := range s.ordersBySample() {
			if n != 1 {
				t.Errorf("%s has %d orders", id, n)
			}
		}
	})
}
