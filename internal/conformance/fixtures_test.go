//lint:file-ignore SA1019 Deprecated names are tested until they are removed.

package conformance

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/httptracetest"
	"github.com/labhealth/labhealth-go/internal/testform"
	"github.com/labhealth/labhealth-go/internal/transport"
)

// long reports whether tests run in their long forms.
var long = os.Getenv("LABHEALTH_TEST_LONG") == "1"

// faultOrderID is the ID of the order of fault servers.
var faultOrderID = uuid.MustParse("3f0c9a52-7d1e-4b6a-9c58-2e41d7a6b803")

// faultResponse serves every operation: it is an order, the response to a new order, and an object.
var faultResponse = fmt.Sprintf(`{"id":%q,"order":{"id":%[1]q},"status":"success","message":"done"}`, faultOrderID)

// faultImport is a valid import.
func faultImport() labhealth.ImportOrderBody {
	return labhealth.ImportOrderBody{
		UserID:           uuid.MustParse("c1b7e0d4-58a2-4f9e-8d36-90f5b2a4e617"),
		BillingType:      labhealth.BillingClientBill,
		OrderSet:         labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{uuid.MustParse("5d2a8f31-b6c4-4e07-a9d8-13f7c05e6b42")}},
		CollectionMethod: labhealth.CollectionMethodOnSiteCollection,
		PatientDetails: labhealth.PatientDetailsWithValidation{
			FirstName: "Ada", LastName: "Example", DOB: labhealth.Date{Year: 1950, Month: time.January, Day: 31},
			Gender: labhealth.GenderFemale, PhoneNumber: "+14155550123", Email: "ada@example.com",
		},
		PatientAddress: labhealth.PatientAddress{
			ReceiverName: "Ada Example", FirstLine: "1 Main Street", City: "San Francisco", State: "CA", Zip: "94105", Country: "US",
		},
		SampleID: "SAMPLE-1",
	}
}

// faultCall is a call of one HTTP method.
type faultCall struct {
	method string
	do     func(*testing.T, *labhealth.Client, ...labhealth.CallOption) error
}

// faultCalls has one call of each method.
var faultCalls = []faultCall{
	{"GET", func(t *testing.T, c *labhealth.Client, opts ...labhealth.CallOption) error {
		_, err := c.Orders.Get(t.Context(), faultOrderID, opts...)
		return err
	}},
	{"POST", func(t *testing.T, c *labhealth.Client, opts ...labhealth.CallOption) error {
		_, err := c.Orders.Import(t.Context(), faultImport(), opts...)
		return err
	}},
	{"PATCH", func(t *testing.T, c *labhealth.Client, opts ...labhealth.CallOption) error {
		_, err := c.Orders.Release(t.Context(), faultOrderID, opts...)
		return err
	}},
	{"DELETE", func(t *testing.T, c *labhealth.Client, opts ...labhealth.CallOption) error {
		var out map[string]any
		return c.Do(t.Context(), http.MethodDelete, "/v2/user/"+faultOrderID.String(), nil, &out, opts...)
	}},
}

// quick retries without waiting.
var quick = labhealth.RetryPolicy{BaseWait: 1, MaxWait: 1, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}

// faultClient returns a client of url that uses transport, or its own if transport is nil.
func faultClient(t testing.TB, url string, transport http.RoundTripper, opts ...labhealth.Option) *labhealth.Client {
	t.Helper()
	opts = append([]labhealth.Option{labhealth.WithBaseURL(url), labhealth.WithRetry(quick)}, opts...)
	if transport != nil {
		opts = append(opts, labhealth.WithHTTPClient(&http.Client{Transport: transport}))
	}
	client, err := labhealth.NewClient(testKey, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// exchange is a request that a fault server has processed and now responds to with a fault.
type exchange struct {
	http.ResponseWriter
	req  *http.Request
	conn net.Conn // under HTTP/2 shared with what net/http writes
	h2   bool
}

// raw returns the connection, to write to it what is not HTTP.
func (x exchange) raw() net.Conn {
	if x.h2 {
		return x.conn
	}
	c, _, err := http.NewResponseController(x.ResponseWriter).Hijack()
	if err != nil {
		panic(err)
	}
	return c
}

// respond writes a complete response. header has names and values in turn.
func (x exchange) respond(status int, body string, header ...string) {
	h := x.Header()
	h.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	x.WriteHeader(status)
	io.WriteString(x, body)
}

// hang waits until the client has given up.
func (x exchange) hang() { <-x.req.Context().Done() }

// faultServer counts the requests that arrived in full as commits, and first injects faults.
type faultServer struct {
	*httptest.Server
	commits, conns, ended atomic.Int64 // requests processed; connections made and closed

	response string        // to a request without a fault
	changed  chan struct{} // has an element after a connection was made or closed
}

// settle waits until at least conns connections were made and all are closed.
func (s *faultServer) settle(conns int64) {
	for s.conns.Load() < conns || s.ended.Load() < s.conns.Load() {
		<-s.changed
	}
}

type connKey struct{}

// warmPath is a path that fault servers respond to without a fault.
const warmPath = "/warm-up"

// startFaults starts a server on loopback that injects fault into the first bad requests, or into
// all if bad is negative. fault reports whether the server processes the request: it does not if it
// responds with 429 or another 4xx.
func startFaults(t testing.TB, h2 bool, bad int64, fault func(exchange) (committed bool)) *faultServer {
	return startFaultsOn(t, nil, h2, bad, fault)
}

// startFaultsOn is startFaults on a listener.
func startFaultsOn(t testing.TB, l net.Listener, h2 bool, bad int64, fault func(exchange) (committed bool)) *faultServer {
	return startFaultsWith(t, l, h2, bad, fault, faultResponse)
}

// startFaultsWith is startFaultsOn with a response to requests without a fault.
func startFaultsWith(t testing.TB, l net.Listener, h2 bool, bad int64, fault func(exchange) (committed bool), response string) *faultServer {
	s := &faultServer{changed: make(chan struct{}, 1), response: response}
	var served atomic.Int64
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == warmPath {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || (r.ContentLength > 0 && int64(len(body)) != r.ContentLength) {
			return
		}
		n := served.Add(1)
		conn, _ := r.Context().Value(connKey{}).(net.Conn)
		x := exchange{w, r, conn, r.ProtoMajor == 2}
		if bad >= 0 && n > bad {
			s.commits.Add(1)
			x.respond(http.StatusOK, s.response)
			return
		}
		s.commits.Add(1) // first, because the fault may end this goroutine
		if !fault(x) {
			s.commits.Add(-1)
		}
	}))
	if l != nil {
		s.Listener.Close()
		s.Listener = l
	}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			s.conns.Add(1)
		case http.StateClosed, http.StateHijacked:
			s.ended.Add(1)
		default:
			return
		}
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
	s.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }
	s.EnableHTTP2 = h2
	if h2 {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// acceptAll serves the connections of a new listener until the test ends.
func acceptAll(t testing.TB, serve func(net.Conn)) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			running.Go(func() {
				defer c.Close()
				serve(c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		running.Wait()
	})
	return l
}

// closedAddress returns an address at which nobody listens.
func closedAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	return l.Addr().String()
}

// roundTripper is a function as a transport. It fires no hooks of net/http.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// responseTo returns a response of a roundTripper, and fires the hooks of one request.
func responseTo(r *http.Request, status int, body string, header ...string) *http.Response {
	httptracetest.SendRequest(r)
	h := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{
		StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: h, Request: r,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// captureLog returns what the default logger writes until the test ends.
func captureLog(t testing.TB) *safeBuffer {
	out := &safeBuffer{}
	before := log.Writer()
	log.SetOutput(out)
	t.Cleanup(func() { log.SetOutput(before) })
	return out
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// tcpOf returns the TCP connection below c.
func tcpOf(c net.Conn) *net.TCPConn {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return c.(*net.TCPConn)
}

// gzipOf returns b compressed.
func gzipOf(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(b)
	z.Close()
	return out.Bytes()
}

func TestMain(m *testing.M) {
	testform.Choose()
	transport.Poison = true
	goleak.VerifyTestMain(m)
}

const (
	testKey = "sk_test_0123456789"
	testURL = "https://api.example.com"
)

// sent is a request as a transport received it.
type sent struct {
	Method string
	URL    string
	Header http.Header
	Body   string
}

// reply is an error, or a response. header has names and values in turn; the content type is
// application/json unless it is in header.
type reply struct {
	status int
	body   string
	header []string
	err    error
}

// script is a transport that responds from a list and fails after its end. It fires the hooks of
// one request each.
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
	httptracetest.SendRequest(req)
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

// only returns the one request that was sent.
func (s *script) only(t testing.TB) sent {
	t.Helper()
	if len(s.sent) != 1 {
		t.Fatalf("%d requests were sent, want 1", len(s.sent))
	}
	return s.sent[0]
}

// observing calls f after each attempt.
func observing(f func(context.Context, labhealth.Attempt)) labhealth.Option {
	return labhealth.WithCallObserver(labhealth.CallObserver{Attempt: f})
}

// scripted returns a client with a script. A call makes one attempt unless opts change that.
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

// respondingWith is scripted with one response.
func respondingWith(t testing.TB, status int, body string, header ...string) (*labhealth.Client, *script) {
	t.Helper()
	return scripted(t, []reply{{status: status, body: body, header: header}})
}

// jsonData decodes JSON for comparison. Numbers keep their digits.
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

// errorText returns the text of an error, "" for nil.
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

func apiError(t testing.TB, err error) *labhealth.APIError {
	t.Helper()
	var e *labhealth.APIError
	if !errors.As(err, &e) {
		t.Fatalf("%T is no *APIError: %v", err, err)
	}
	return e
}

var (
	orderID   = uuid.MustParse("0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b")
	userID    = uuid.MustParse("11111111-2222-4333-8444-555555555555")
	teamID    = uuid.MustParse("aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee")
	labTestID = uuid.MustParse("5b41f610-ebc5-4803-8f0c-a61c3bdc7f01")
	future    = labhealth.Date{Year: 2999, Month: time.December, Day: 31}
)

// importBody is an import with every field.
func importBody() labhealth.ImportOrderBody {
	return labhealth.ImportOrderBody{
		UserID:           userID,
		BillingType:      labhealth.BillingPatientBillPassthrough,
		CollectionMethod: labhealth.CollectionMethodTestkit,
		OrderSet: labhealth.OrderSetRequest{
			LabTestIDs:   []uuid.UUID{labTestID},
			AddOn:        &labhealth.AddOnOrder{MarkerIDs: []int64{901, 902}, ProviderIDs: []string{"P-903"}},
			LabAccountID: &teamID,
		},
		Physician: &labhealth.PhysicianCreateRequest{
			FirstName: "Jane", LastName: "Doctor", NPI: "1234567890", Email: new("jane@example.com"),
			LicensedStates: []string{"CA", "NV"}, SignatureImage: labhealth.NewPNG([]byte("not a picture")),
		},
		PatientDetails: labhealth.PatientDetailsWithValidation{
			FirstName: "Ada", LastName: "Example", DOB: labhealth.Date{Year: 1950, Month: time.January, Day: 31},
			Gender: labhealth.GenderFemale, PhoneNumber: "+14155550123", Email: "ada@example.com",
			MedicalProxy: &labhealth.GuarantorDetails{
				FirstName: "Grace", LastName: "Sample", PhoneNumber: "+14155550124", Email: new("grace@example.com"),
				HouseholdIncome: new(int64(0)), HouseholdSize: new(int64(2)),
				Address: labhealth.Address{FirstLine: "2 Oak Avenue", City: "Reno", State: "NV", Zip: "89501", Country: "US", SecondLine: new("")},
			},
			Race: new(labhealth.RaceAsian), Ethnicity: new(labhealth.EthnicityOther),
			SexualOrientation: new(labhealth.SexualOrientationDontKnow), GenderIdentity: new(labhealth.GenderIdentity("new value")),
			HouseholdIncome: new(int64(50000)), HouseholdSize: new(int64(3)),
		},
		PatientAddress: labhealth.PatientAddress{
			ReceiverName: "Ada Example", FirstLine: "1 Main Street", SecondLine: new("Apt <4>"), City: "San Francisco",
			State: "CA", Zip: "94105", Country: "US", AccessNotes: new("ring twice"),
		},
		SampleID:     "SAMPLE-1",
		LabAccountID: &teamID,
	}
}

const importJSON = `{
	"user_id": "11111111-2222-4333-8444-555555555555",
	"billing_type": "patient_bill_passthrough",
	"order_set": {
		"lab_test_ids": ["5b41f610-ebc5-4803-8f0c-a61c3bdc7f01"],
		"add_on": {"marker_ids": [901, 902], "provider_ids": ["P-903"]},
		"lab_account_id": "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"
	},
	"collection_method": "testkit",
	"physician": {
		"first_name": "Jane", "last_name": "Doctor", "npi": "1234567890", "email": "jane@example.com",
		"licensed_states": ["CA", "NV"], "signature_image": {"content": "bm90IGEgcGljdHVyZQ==", "content_type": "image/png"}
	},
	"patient_details": {
		"first_name": "Ada", "last_name": "Example", "dob": "1950-01-31", "gender": "female", "phone_number": "+14155550123",
		"email": "ada@example.com",
		"medical_proxy": {
			"first_name": "Grace", "last_name": "Sample", "phone_number": "+14155550124", "email": "grace@example.com",
			"household_income": 0, "household_size": 2,
			"address": {"first_line": "2 Oak Avenue", "second_line": "", "country": "US", "zip": "89501", "city": "Reno", "state": "NV"}
		},
		"race": "asian", "ethnicity": "other", "sexual_orientation": "dont_know", "gender_identity": "new value",
		"household_income": 50000, "household_size": 3
	},
	"patient_address": {
		"receiver_name": "Ada Example", "first_line": "1 Main Street", "second_line": "Apt <4>", "city": "San Francisco", "state": "CA",
		"zip": "94105", "country": "US", "access_notes": "ring twice"
	},
	"sample_id": "SAMPLE-1",
	"lab_account_id": "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"
}`

// createBody is a creation with the required fields.
func createBody() labhealth.CreateOrderBody {
	return labhealth.CreateOrderBody{
		UserID:   userID,
		OrderSet: &labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{labTestID}},
		PatientDetails: labhealth.PatientDetailsWithValidation{
			FirstName: "Ada", LastName: "Example", DOB: labhealth.Date{Year: 1950, Month: time.January, Day: 31},
			Gender: labhealth.GenderFemale, PhoneNumber: "+14155550123", Email: "ada@example.com",
		},
		PatientAddress: labhealth.PatientAddressWithValidation{
			FirstLine: "1 Main Street", City: "San Francisco", State: "CA", Zip: "94105", Country: "US",
		},
	}
}

const createJSON = `{
	"user_id": "11111111-2222-4333-8444-555555555555",
	"order_set": {"lab_test_ids": ["5b41f610-ebc5-4803-8f0c-a61c3bdc7f01"]},
	"patient_details": {
		"first_name": "Ada", "last_name": "Example", "dob": "1950-01-31", "gender": "female", "phone_number": "+14155550123",
		"email": "ada@example.com"
	},
	"patient_address": {"first_line": "1 Main Street", "city": "San Francisco", "state": "CA", "zip": "94105", "country": "US"}
}`

const orderJSON = `{
	"id": "0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b",
	"user_id": "11111111-2222-4333-8444-555555555555",
	"team_id": "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee",
	"patient_details": {"dob": "1950-01-31T00:00:00+00:00", "gender": "female", "first_name": "Ada", "last_name": null},
	"patient_address": null,
	"lab_test": {
		"id": "5b41f610-ebc5-4803-8f0c-a61c3bdc7f01", "slug": "lipid", "name": "Lipid Panel", "sample_type": "serum", "method": "testkit",
		"price": 45.10, "is_active": true, "status": "active", "lab": null, "markers": null
	},
	"details": {"type": "testkit", "data": {
		"id": "22222222-3333-4444-8555-666666666666", "shipment": null,
		"created_at": "2025-03-04T12:00:00+00:00", "updated_at": "2025-03-04T12:00:00.250000Z"
	}},
	"sample_id": "SAMPLE-1",
	"notes": null,
	"created_at": "2025-03-04T12:00:00+00:00",
	"updated_at": "2025-03-04T12:00:01+00:00",
	"events": [
		{"id": 1, "created_at": "2025-03-04T12:00:00+00:00", "status": "received.testkit.ordered"},
		{"id": 2, "created_at": "2025-03-04T12:00:01+00:00", "status": "received.testkit.requisition_bypassed", "status_detail": null}
	],
	"status": "received",
	"last_event": {"id": 2, "created_at": "2025-03-04T12:00:01+00:00", "status": "received.testkit.requisition_bypassed", "status_detail": null},
	"health_insurance_id": null,
	"requisition_form_url": null,
	"shipping_details": null,
	"activate_by": "2999-12-31",
	"has_abn": false,
	"origin": "initial"
}`

const placedJSON = `{"order": ` + orderJSON + `, "status": "success", "message": "Order created successfully"}`

// wantOrder returns the order of orderJSON.
func wantOrder() labhealth.Order {
	noon := time.Date(2025, time.March, 4, 12, 0, 0, 0, time.UTC)
	last := labhealth.OrderEvent{ID: 2, CreatedAt: noon.Add(time.Second), Status: "received.testkit.requisition_bypassed"}
	return labhealth.Order{
		ID: orderID, UserID: userID, TeamID: teamID,
		PatientDetails: &labhealth.OrderPatientDetails{
			DOB: labhealth.Date{Year: 1950, Month: time.January, Day: 31}, Gender: "female", FirstName: new("Ada"),
		},
		LabTest: labhealth.LabTest{
			ID: labTestID, Slug: "lipid", Name: "Lipid Panel", SampleType: "serum", Method: "testkit", Price: json.Number("45.10"),
			IsActive: true, Status: "active",
		},
		Details: labhealth.OrderDetails{Type: "testkit", Data: &labhealth.TestkitOrder{
			ID: uuid.MustParse("22222222-3333-4444-8555-666666666666"), CreatedAt: noon, UpdatedAt: noon.Add(250 * time.Millisecond),
		}},
		SampleID:  new("SAMPLE-1"),
		CreatedAt: noon, UpdatedAt: noon.Add(time.Second),
		Events: []labhealth.OrderEvent{
			{ID: 1, CreatedAt: noon, Status: "received.testkit.ordered"},
			last,
		},
		Status:      new(labhealth.OrderTopLevelStatus("received")),
		LastEvent:   last,
		ActivateBy:  &future,
		BillingType: "client_bill",
		Origin:      new(labhealth.OrderOrigin("initial")),
	}
}

const userJSON = `{
	"user_id": "11111111-2222-4333-8444-555555555555",
	"team_id": "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee",
	"client_user_id": "3Zru4O8cBEiwGTsXgUQGaQ==",
	"created_on": "2025-03-04T12:00:00.123456+00:00",
	"connected_sources": [{"created_on": "2025-03-05T12:00:00Z", "source": {"name": "Oura", "slug": "oura", "logo": "https://example.com/oura.png"}}],
	"fallback_birth_date": {"value": "1950-01-31", "source_slug": "manual", "updated_at": "2025-03-06T12:00:00"},
	"fallback_time_zone": {"id": "Europe/London", "source_slug": "oura", "updated_at": "2025-03-06T12:00:00+01:00"}
}`

func wantUser() labhealth.User {
	return labhealth.User{
		UserID: userID, TeamID: teamID, ClientUserID: "3Zru4O8cBEiwGTsXgUQGaQ==",
		CreatedOn: time.Date(2025, time.March, 4, 12, 0, 0, 123_456_000, time.UTC),
		ConnectedSources: []labhealth.ConnectedSource{{
			CreatedOn: time.Date(2025, time.March, 5, 12, 0, 0, 0, time.UTC),
			Source:    labhealth.Source{Name: "Oura", Slug: "oura", Logo: "https://example.com/oura.png"},
		}},
		FallbackBirthDate: &labhealth.FallbackBirthDate{
			Value: labhealth.Date{Year: 1950, Month: time.January, Day: 31}, SourceSlug: "manual",
			UpdatedAt: time.Date(2025, time.March, 6, 12, 0, 0, 0, time.UTC),
		},
		FallbackTimeZone: &labhealth.FallbackTimeZone{
			ID: "Europe/London", SourceSlug: "oura", UpdatedAt: time.Date(2025, time.March, 6, 11, 0, 0, 0, time.UTC),
		},
	}
}

// readHeader is the header of every request without a body.
var readHeader = http.Header{"Accept": {"application/json"}, "User-Agent": {"labhealth-go/0.1.0"}, "X-Service-Api-Key": {testKey}}

func cutOp(op string) (method, path string, ok bool) {
	for i := range op {
		if op[i] == ' ' {
			return op[:i], op[i+1:], true
		}
	}
	return op, "", false
}

const (
	unknown  = labhealth.OutcomeUnknown
	notSent  = labhealth.OutcomeNotSent
	rejected = labhealth.OutcomeRejected
	applied  = labhealth.OutcomeApplied
)

func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // what the first one's finalizers and pools let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// memoryListener is a listener of connections in memory, for servers in a bubble of fake time.
type memoryListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error { l.once.Do(func() { close(l.closed) }); return nil }

func (l *memoryListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (l *memoryListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-ctx.Done():
	case <-l.closed:
	}
	return nil, errors.Join(net.ErrClosed, client.Close(), server.Close())
}

func newMemoryListener() *memoryListener {
	return &memoryListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// mustDecode decodes JSON into what v points to.
func mustDecode(t testing.TB, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatal(err)
	}
}

// mustEncode returns v as JSON.
func mustEncode(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
