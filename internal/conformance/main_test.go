package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/labhealth/labhealth-go"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testKey = "sk_test_0123456789"
	testURL = "https://api.example.com"
)

// sent is a request as a transport got it.
type sent struct {
	Method string
	URL    string
	Header http.Header
	Body   string
}

// reply is what a script answers: a failure, or a status, a body and headers given as names and values in turn. The content type
// is application/json unless header says otherwise.
type reply struct {
	status int
	body   string
	header []string
	err    error
}

// script is a transport that responds from a list and fails beyond its end. Its hooks say that it sends each request once.
type script struct {
	mu      sync.Mutex
	replies []reply
	sent    []sent
}

func (s *script) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		req.Body.Close()
	}
	sendOnce(req)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, sent{req.Method, req.URL.String(), req.Header.Clone(), string(body)})
	if len(s.sent) > len(s.replies) {
		return nil, errors.New("the script is over")
	}
	r := s.replies[len(s.sent)-1]
	if r.err != nil {
		return nil, r.err
	}
	h := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i+1 < len(r.header); i += 2 {
		h.Set(r.header[i], r.header[i+1])
	}
	return &http.Response{
		StatusCode: r.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h, Request: req,
		Body: io.NopCloser(strings.NewReader(r.body)), ContentLength: int64(len(r.body)),
	}, nil
}

// sendOnce fires the hooks that net/http fires when it sends a request.
func sendOnce(req *http.Request) {
	hooks := httptrace.ContextClientTrace(req.Context())
	hooks.GetConn(req.URL.Host)
	hooks.GotConn(httptrace.GotConnInfo{})
	hooks.WroteHeaderField("Host", []string{req.URL.Host})
	hooks.WroteHeaders()
}

// scripted returns a client whose requests are answered from replies, one attempt per call unless opts say otherwise.
func scripted(t testing.TB, replies []reply, opts ...labhealth.Option) (*labhealth.Client, *script) {
	t.Helper()
	s := &script{replies: replies}
	client, err := labhealth.NewClient(testKey, append([]labhealth.Option{
		labhealth.WithBaseURL(testURL),
		labhealth.WithHTTPClient(&http.Client{Transport: s}),
		labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 1}),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return client, s
}

// answering is scripted with one answer.
func answering(t testing.TB, status int, body string, header ...string) (*labhealth.Client, *script) {
	t.Helper()
	return scripted(t, []reply{{status: status, body: body, header: header}})
}

// only returns the one request that was sent.
func (s *script) only(t testing.TB) sent {
	t.Helper()
	if len(s.sent) != 1 {
		t.Fatalf("%d requests were sent, want 1", len(s.sent))
	}
	return s.sent[0]
}

// jsonData reads JSON for comparison; numbers keep their digits.
func jsonData(t testing.TB, text string) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

func equal(t testing.TB, want, got any, opts ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, opts...); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// errorText is the text of an error, empty if there is none.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
