package console

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
)

const importOperation = "POST /v3/order/import"

func (s *callsSite) arm(kind, operation, times string, more ...string) string {
	s.t.Helper()
	form := url.Values{"arm": {kind}, "operation": {operation}, "times": {times}}
	for i := 0; i+1 < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	return s.post("/console/faults", form)
}

// Each kind of fault reaches clients, and is processed or not as the page says.
func TestArm(t *testing.T) {
	s := newCallsSite(t)
	s.contains(s.get("/console/faults"), "none armed", "No requests yet", "Lose the response")
	for i, test := range []struct {
		kind             string
		more             []string
		status, recorded int
	}{
		{"closed", nil, 0, 200},
		{"429", []string{"retry_after", "7"}, 429, 0},
		{"503", nil, 503, 0},
		{"503", []string{"after", "1"}, 503, 200},
		{"half", nil, 200, 200},
		{"delay", []string{"delay", "0"}, 200, 200},
		{"redirect", nil, 307, 0},
	} {
		page := s.arm(test.kind, importOperation, "1", test.more...)
		s.contains(page, "1 armed", "1 left", `aria-checked="true"`)
		if test.kind == "429" {
			s.contains(page, "Retry-After: 7")
		}
		if got := s.send("GET", "/v2/user/", ""); got != 200 {
			t.Errorf("%s: another operation: %d", test.kind, got)
		}
		if got := s.send("POST", "/v3/order/import", s.importBody(fmt.Sprint("SAMPLE-", i))); got != test.status {
			t.Errorf("%s: status %d, want %d", test.kind, got, test.status)
		}
		requests := s.srv.Requests()
		if r := requests[len(requests)-1]; r.StatusCode != test.recorded || !r.Faulted || r.Fault == "" {
			t.Errorf("%s: %d %q", test.kind, r.StatusCode, r.Fault)
		}
		s.contains(s.get("/console/faults"), "none armed")
	}
}

// Faults are counted, and disarmed alone, by kind and all at once.
func TestDisarm(t *testing.T) {
	s := newCallsSite(t)
	s.arm("429", "", "-1")
	s.arm("429", "GET /v2/user/", "2")
	page := s.arm("closed", importOperation, "2")
	s.contains(page, "3 armed", "2 left", "until disarmed", `<option selected>`+importOperation)
	s.send("GET", "/v3/lab_tests", "")
	if n := s.console.countFaults(); n != 3 {
		t.Errorf("%d faults are armed, want 3", n)
	}
	page = s.post("/console/faults", url.Values{"remove": {"1"}})
	s.contains(page, "2 armed", "GET /v2/user/")
	if got := s.send("GET", "/v3/lab_tests", ""); got != 200 {
		t.Errorf("a disarmed fault responds %d", got)
	}
	if got := s.send("GET", "/v2/user/", ""); got != 429 {
		t.Errorf("an armed fault responds %d", got)
	}
	s.contains(s.get("/console/faults"), "1 left")
	s.contains(s.post("/console/faults", url.Values{"disarm": {"429"}}), "1 armed")
	s.post("/console/faults/corrupt", url.Values{"key": {"body"}, "on": {"1"}})
	s.post("/console/faults/deliveries", url.Values{"on": {"1"}, "lose": {"100"}})
	s.contains(s.get("/console/faults"), "3 armed")
	s.contains(s.post("/console/faults/disarm", nil), "none armed", "Nothing is armed")

	for _, form := range []url.Values{
		{"arm": {"<script>"}, "times": {"1"}},
		{"arm": {"closed"}, "times": {"1"}, "operation": {"POST /<script>"}},
		{"arm": {"closed"}, "times": {"0"}},
		{"arm": {"closed"}, "times": {"1000000"}},
		{"arm": {"delay"}, "times": {"1"}, "delay": {"601"}},
		{"arm": {"429"}, "times": {"1"}, "retry_after": {"-1"}},
		{"arm": {"429"}, "times": {"1"}, "retry_after": {"1e9"}},
	} {
		page := s.post("/console/faults", form)
		s.contains(page, "Nothing was changed", "none armed")
		s.lacks(page, "<script>", "/<script")
	}
	s.contains(s.post("/console/faults/deliveries", url.Values{"on": {"1"}, "lose": {"101"}}), "lose must be a number from 0 to 100", "none armed")
	s.contains(s.post("/console/faults/corrupt", url.Values{"key": {"x"}, "on": {"1"}}), "there is no such fault", "none armed")
}

func TestTooManyFaults(t *testing.T) {
	s := newCallsSite(t)
	kind := faultKinds[0]
	var wg sync.WaitGroup
	failed := make(chan error, 150)
	for range 150 {
		wg.Go(func() {
			if err := s.console.arm(kind, "", 1, 0); err != nil {
				failed <- err
			}
		})
	}
	wg.Wait()
	if len(failed) != 50 || s.console.countFaults() != 100 {
		t.Errorf("%d errors, %d armed", len(failed), s.console.countFaults())
	}
	for range 100 {
		wg.Go(func() { s.send("GET", "/v2/user/", "") })
	}
	wg.Wait()
	if n := s.console.countFaults(); n != 0 {
		t.Errorf("%d faults are armed after as many requests", n)
	}
	if got := s.send("GET", "/v2/user/", ""); got != 200 {
		t.Errorf("status %d", got)
	}
}

// One call that created two orders is found, and is the first of all calls.
func TestTwoOrders(t *testing.T) {
	s := newCallsSite(t)
	body := fmt.Sprintf(createTwice, s.srv.AddUser("ada"))
	s.arm("closed", "POST /v3/order", "1")
	s.send("POST", "/v3/order", body)
	s.wait(2 * time.Second)
	s.send("POST", "/v3/order", body)
	s.send("POST", "/v3/order/import", s.importBody("SAMPLE-1"))
	page := s.get("/console/faults")
	s.contains(page, "One call created two orders.", "Twice: 2 orders", "3 received, 3 processed",
		"Request 1 met the fault “Lose the response” after it was processed; after 2 s it was sent again, without looking for the order.")
	for _, id := range s.srv.Orders()[:2] {
		s.contains(page, `<a class="link id" href="/console/orders/`+id.String())
	}
	if first, second := strings.Index(page, ">POST /v3/order</a>"), strings.Index(page, ">"+importOperation+"</a>"); first < 0 || first > second {
		t.Error("the odd call is not the first one")
	}
}

// Requests with an idempotency key, and imports with the same sample ID, are processed once.
func TestCallsAreGrouped(t *testing.T) {
	s := newCallsSite(t)
	create, imported := fmt.Sprintf(createTwice, s.srv.AddUser("ada")), s.importBody("SAMPLE-1")
	for range 2 {
		s.send("POST", "/v3/order", create, "X-Idempotency-Key", "key-1")
		s.send("POST", "/v3/order/import", imported)
		s.send("GET", "/v2/user/", "")
		s.send("DELETE", "/v2/user/x", "")
	}
	s.arm("closed", importOperation, "1")
	s.send("POST", "/v3/order/import", s.importBody("SAMPLE-2"))
	calls := groupCalls(s.console.faults.log.all(s.srv))
	var got []string
	for _, c := range calls {
		got = append(got, fmt.Sprintf("%s|%s|%d|%d|%s|%s", c.Name, c.Label, c.Received, c.Processed, c.Verdict, c.Text()))
	}
	want := []string{
		"POST /v3/order/import|SAMPLE-2|1|1|Once|Request 9 met the fault “Lose the response” after it was processed. It was not sent again.",
		"DELETE /v2/user/{user_id}||2|0|Rejected|The service responded 422. 1 field rejected",
		"POST /v3/order/import|SAMPLE-1|2|1|Once|It was sent again, and rejected with 400.",
		"POST /v3/order|key-1|2|1|Once|It was sent again with its idempotency key, which repeats the response.",
		"GET /v2/user/||2|2|Read|A read changes nothing.",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("calls:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The switches of deliveries change what is received, and nothing without them.
func TestDeliveryTransport(t *testing.T) {
	s := newCallsSite(t)
	verifier, err := webhooks.NewVerifier(ordersSecret)
	if err != nil {
		t.Fatal(err)
	}
	var errs []error
	next := transportFunc(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if int64(len(body)) != r.ContentLength {
			t.Errorf("content length %d of %d bytes", r.ContentLength, len(body))
		}
		errs = append(errs, verifier.VerifyAt(body, r.Header, s.clock()))
		return httptest.NewRecorder().Result(), nil
	})
	if err := s.srv.DeliverTo("http://receiver.invalid/", labhealthtest.WithSigningSecrets(ordersSecret), labhealthtest.WithTransport(s.console.DeliveryTransport(next))); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"", "signature", "timestamp", "body"} {
		s.post("/console/faults/corrupt", url.Values{"key": {key}, "on": {"1"}})
		if err := s.srv.Send([]byte(`{"a": 1}`)); err != nil {
			t.Fatal(err)
		}
		if err := s.srv.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if key != "" {
			s.contains(s.get("/console/faults"), "1 changed")
		}
		s.post("/console/faults/corrupt", url.Values{"key": {key}, "on": {"0"}})
	}
	for i, want := range []error{nil, webhooks.ErrSignature, webhooks.ErrTimestamp, webhooks.ErrSignature} {
		if !errors.Is(errs[i], want) {
			t.Errorf("delivery %d: %v, want %v", i, errs[i], want)
		}
	}
}

// The pages of 10,000 requests. Their times are limited generously: see the benchmarks.
func TestManyRequests(t *testing.T) {
	t.Parallel()
	n, shown := 2_000, "2,000"
	if os.Getenv("LABHEALTH_TEST_LONG") != "" {
		n, shown = 10_000, "10,000"
	}
	s := newCallsSite(t)
	fillRequests(s, n)
	for _, path := range []string{"/console/faults", "/console/requests", "/console/requests?q=sample", fmt.Sprint("/console/requests/", n-1)} {
		if page := s.get(path); len(page) > 400_000 {
			t.Errorf("%s: %d bytes", path, len(page))
		}
	}
	s.contains(s.get("/console/requests"), shown)
}

// fillRequests sends requests, without a connection.
func fillRequests(s *callsSite, n int) {
	body := s.importBody("SAMPLE-X")
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}}
	defer client.CloseIdleConnections()
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range n / 4 {
				req, _ := http.NewRequest("POST", s.srv.URL+"/v3/order/import", strings.NewReader(strings.Replace(body, "SAMPLE-X", fmt.Sprint("SAMPLE-", worker, "-", i), 1)))
				req.Header.Set("x-service-api-key", s.srv.APIKey)
				if resp, err := client.Do(req); err == nil {
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkPages(b *testing.B) {
	s := newCallsSite(b)
	fillRequests(s, 10_000)
	for _, path := range []string{"faults", "requests", "requests?q=sample-1", "requests/9999"} {
		b.Run(strings.ReplaceAll(path, "/", "-"), func(b *testing.B) {
			path := "/console/" + path
			for b.Loop() {
				s.get(path)
			}
		})
	}
}

// createTwice is a valid order without a sample ID.
const createTwice = `{
	"user_id": "%s",
	"order_set": {"lab_test_ids": ["5b41f610-ebc5-4803-8f0c-a61c3bdc7f02"]},
	"patient_details": {
		"first_name": "Ada", "last_name": "Example", "dob": "1990-01-31", "gender": "female",
		"phone_number": "+14155550123", "email": "ada@example.com"
	},
	"patient_address": {
		"first_line": "1 Main Street", "city": "San Francisco", "state": "CA", "zip": "94105", "country": "US",
		"phone_number": "+14155550123"
	}
}`

// tryImport returns a valid import.
func tryImport(srv *labhealthtest.Server, user uuid.UUID, sample string) labhealth.ImportOrderBody {
	return labhealth.ImportOrderBody{
		UserID: user, BillingType: labhealth.BillingClientBill, CollectionMethod: labhealth.CollectionMethodOnSiteCollection,
		OrderSet: labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{srv.LabTests.OnSite}},
		PatientDetails: labhealth.PatientDetailsWithValidation{
			FirstName: "Ada", LastName: "Example", DOB: labhealth.Date{Year: 1970, Month: time.January, Day: 31},
			Gender: labhealth.GenderFemale, PhoneNumber: "+14155550123", Email: "ada@example.com",
		},
		PatientAddress: labhealth.PatientAddress{
			ReceiverName: "Ada Example", FirstLine: "1 Main Street", City: "San Francisco", State: "CA", Zip: "94105", Country: "US",
		},
		SampleID: sample,
	}
}
