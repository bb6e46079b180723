package bulk_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
)

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A run that cannot reach the service says why: in its log at once, and in its error. If waiting
// does not help, it stops at once.
func TestRunSaysWhyRequestsFail(t *testing.T) {
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(untrusted.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := gone.Addr().String()
	gone.Close()
	for _, test := range []struct {
		name, url string
		wait      time.Duration // of the context; 0 if the run stops by itself
		failure   labhealth.Failure
		text      string
	}{
		{"an untrusted certificate", untrusted.URL, 0, labhealth.FailureCertificate, "the server's certificate is from an unknown authority"},
		{"no TLS", strings.Replace(plain.URL, "http:", "https:", 1), 0, labhealth.FailureScheme, "the server does not speak HTTPS"},
		{"an unknown host", "https://labhealth.invalid", 0, labhealth.FailureUnknownHost, "unknown host"},
		{"nothing listens", "http://" + refused, 2 * time.Second, labhealth.FailureRefused, "connection refused"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			lookUp := func(_ context.Context, network, address string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Net: network, Err: &net.DNSError{Err: "no such host", Name: address, IsNotFound: true}}
			}
			transport := &http.Transport{}
			if test.failure == labhealth.FailureUnknownHost {
				transport.DialContext = lookUp
			}
			client, err := labhealth.NewClient("sk_us_canary", labhealth.WithBaseURL(test.url), labhealth.WithHTTPClient(&http.Client{Transport: transport}))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if test.wait > 0 {
				ctx, cancel = context.WithTimeout(t.Context(), test.wait)
				defer cancel()
			}
			log := new(lockedBuffer)
			source := from(numbered(20))
			report, err := bulk.Run(ctx, client, source, new(bulk.Memory), bulk.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
			if err == nil || !strings.Contains(err.Error(), test.text) || labhealth.FailureOf(err) != test.failure {
				t.Errorf("%v", err)
			}
			if timedOut := errors.Is(err, context.DeadlineExceeded); timedOut != (test.wait > 0) {
				t.Errorf("timed out: %v: %v", timedOut, err)
			}
			if report == nil || report.Applied != 0 || report.Pending != 20 {
				t.Errorf("%v", report)
			}
			text := log.String()
			if !strings.Contains(text, `level=WARN msg="bulk: requests fail: the run goes on, and waits if all of them do" error="labhealth: POST /v3/order/import: `+test.text) ||
				strings.Count(text, "\n") != 1 || strings.Contains(text, "canary") || strings.Contains(text, "Example") {
				t.Errorf("log:\n%s", text)
			}
		})
	}
}
