package bulk_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
	"github.com/labhealth/labhealth-go/internal/httptracetest"
	"github.com/labhealth/labhealth-go/internal/testform"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(playRole(role))
	}
	testform.Choose()
	goleak.VerifyTestMain(m)
}

var (
	ada   = uuid.MustParse("00000000-0000-4000-8000-00000000000a")
	grace = uuid.MustParse("00000000-0000-4000-8000-00000000000b")
)

// record returns an invented record.
func record(sampleID string) labhealth.ImportOrderBody {
	return labhealth.ImportOrderBody{
		UserID:           ada,
		BillingType:      labhealth.BillingClientBill,
		OrderSet:         labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{uuid.MustParse("5b41f610-ebc5-4803-8f0c-a61c3bdc7f02")}},
		CollectionMethod: labhealth.CollectionMethodWalkInTest,
		PatientDetails: labhealth.PatientDetailsWithValidation{
			FirstName: "Ada", LastName: "Example", DOB: labhealth.Date{Year: 1955, Month: 12, Day: 10}, Gender: labhealth.GenderFemale,
			PhoneNumber: "+14155550123", Email: "ada@example.com",
		},
		PatientAddress: labhealth.PatientAddress{
			ReceiverName: "Ada Example", FirstLine: "1 Example Street", City: "Monterey", State: "CA", Zip: "93940", Country: "US",
		},
		SampleID: sampleID,
	}
}

func records(sampleIDs ...string) []labhealth.ImportOrderBody {
	var list []labhealth.ImportOrderBody
	for _, id := range sampleIDs {
		list = append(list, record(id))
	}
	return list
}

// numbered returns n records.
func numbered(n int) []labhealth.ImportOrderBody {
	var ids []string
	for i := range n {
		ids = append(ids, fmt.Sprintf("S-%05d", i))
	}
	return records(ids...)
}

// from returns a source of readable records.
func from(list []labhealth.ImportOrderBody) bulk.Source {
	return func(yield func(bulk.Record, error) bool) {
		for _, body := range list {
			if !yield(bulk.Record{Body: body}, nil) {
				return
			}
		}
	}
}

// service is a transport that responds to imports and lists without a network.
type service struct {
	mu     sync.Mutex
	orders []held
	times  map[string][]time.Time // of the requests, by sample ID; "list" for lists
	sent   []string               // sample IDs of the imports, in order

	// onImport and onList return the fault of the nth import or list, from 1. They may be nil. See
	// RoundTrip and list for the faults.
	onImport func(n int, body labhealth.ImportOrderBody) string
	onList   func(n int, query map[string][]string) string
	latency  time.Duration
	twice    bool                         // it accepts duplicate sample IDs
	shown    func(sampleID string) string // changes sample IDs in lists, unless it is nil
}

type held struct {
	id, user uuid.UUID
	sample   string // JSON
}

var errLost = errors.New("connection lost: Ada Example")

// RoundTrip supports these faults of imports:
//
//	""          none
//	drop        the request is lost
//	lost        the response is lost
//	cut         the response is truncated
//	late 30s    the connection is lost, and the order is created after 30 s
//	429 7       a status, with an optional Retry-After in seconds; no order is created
//	400 fields  a status with field errors
//	500 lost    a status, although the order is created
func (s *service) RoundTrip(req *http.Request) (*http.Response, error) {
	requestBody := readBody(req)
	httptracetest.SendRequest(req)
	time.Sleep(s.latency)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.times == nil {
		s.times = map[string][]time.Time{}
	}
	if req.Method == http.MethodGet {
		s.times["list"] = append(s.times["list"], time.Now())
		fault := ""
		if s.onList != nil {
			fault = s.onList(len(s.times["list"]), req.URL.Query())
		}
		return s.list(req, fault)
	}
	var body labhealth.ImportOrderBody
	if err := json.Unmarshal(requestBody, &body); err != nil {
		return nil, err
	}
	s.sent = append(s.sent, body.SampleID)
	s.times[body.SampleID] = append(s.times[body.SampleID], time.Now())
	fault := ""
	if s.onImport != nil {
		fault = s.onImport(len(s.sent), body)
	}
	kind, extra, _ := strings.Cut(fault, " ")
	duplicate := slices.ContainsFunc(s.orders, func(o held) bool { return o.sample == strconv.Quote(body.SampleID) })
	if code, err := strconv.Atoi(kind); err == nil {
		if extra == "lost" && (!duplicate || s.twice) {
			s.add(body)
		}
		detail := `{"detail":"not for Ada Example"}`
		if extra == "fields" {
			detail = `{"detail":[{"type":"missing","loc":["body","user_id"],"msg":"Ada Example"}]}`
		}
		return newResponse(req, code, detail, extra), nil
	}
	switch {
	case kind == "drop":
		return nil, errLost
	case kind == "late":
		d, _ := time.ParseDuration(extra)
		time.AfterFunc(d, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.add(body)
		})
		return nil, errLost
	case duplicate && !s.twice:
		return newResponse(req, 400, `{"detail":"An order with this sample_id already exists"}`, ""), nil
	}
	o := s.add(body)
	switch kind {
	case "lost":
		return nil, errLost
	case "cut":
		return newResponse(req, 200, `{"order":{"id":"`, ""), nil
	}
	return newResponse(req, 200, `{"order":`+o.json()+`,"status":"success","message":"Order created successfully"}`, ""), nil
}

func (s *service) add(body labhealth.ImportOrderBody) held {
	o := held{uuid.New(), body.UserID, strconv.Quote(body.SampleID)}
	s.orders = append(s.orders, o)
	return o
}

func (o held) json() string {
	if o.sample == "" { // a list that omits it
		return fmt.Sprintf(`{"id":"%s","user_id":"%s"}`, o.id, o.user)
	}
	return fmt.Sprintf(`{"id":"%s","user_id":"%s","sample_id":%s}`, o.id, o.user, o.sample)
}

// list returns pages of two orders, newest first. It supports these faults: a status; "empty" (a
// total without orders); "uncounted" (no total); "behind" (no order is visible yet).
func (s *service) list(req *http.Request, fault string) (*http.Response, error) {
	if code, err := strconv.Atoi(fault); err == nil {
		return newResponse(req, code, `{"detail":"no"}`, ""), nil
	}
	var found []string
	for _, o := range slices.Backward(s.orders) {
		if fault == "behind" {
			break
		}
		if user := req.URL.Query().Get("user_id"); user == "" || user == o.user.String() {
			if s.shown != nil {
				id, _ := strconv.Unquote(o.sample)
				o.sample = strconv.Quote(s.shown(id))
			}
			found = append(found, o.json())
		}
	}
	page, _ := strconv.Atoi(req.URL.Query().Get("page"))
	from, to := min(2*(page-1), len(found)), min(2*page, len(found))
	total := fmt.Sprintf(`,"total":%d`, len(found))
	shown := found[from:to]
	switch fault {
	case "empty":
		shown, total = nil, fmt.Sprintf(`,"total":%d`, len(found)+1)
	case "uncounted":
		total = ""
	}
	return newResponse(req, 200, fmt.Sprintf(`{"orders":[%s]%s,"page":%d,"size":2}`, strings.Join(shown, ","), total, page), ""), nil
}

func newResponse(req *http.Request, status int, body, retryAfter string) *http.Response {
	h := http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"req-1"}}
	if _, err := strconv.Atoi(retryAfter); err == nil {
		h.Set("Retry-After", retryAfter)
	}
	return &http.Response{
		StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: h, Body: io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body)), Request: req,
	}
}

func (s *service) client(t testing.TB) *labhealth.Client {
	t.Helper()
	c, err := labhealth.NewClient("sk_test_0123456789", labhealth.WithBaseURL("https://api.example.com"),
		labhealth.WithHTTPClient(&http.Client{Transport: s}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ordersBySample counts the orders by sample ID.
func (s *service) ordersBySample() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := map[string]int{}
	for _, o := range s.orders {
		id, _ := strconv.Unquote(o.sample)
		count[id]++
	}
	return count
}

// steps returns the steps of the journal by sample ID: "A: intent applied".
func steps(t testing.TB, j bulk.Journal) []string {
	t.Helper()
	of := map[string]string{}
	for e, err := range j.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		if e.SampleID != "" && e.Step != bulk.StepSending {
			of[e.SampleID] += " " + string(e.Step)
		}
	}
	var list []string
	for _, id := range slices.Sorted(maps.Keys(of)) {
		list = append(list, id+":"+of[id])
	}
	return list
}

// readBody reads and closes the body of a request.
func readBody(req *http.Request) []byte {
	if req.Body == nil {
		return nil
	}
	defer req.Body.Close()
	body, _ := io.ReadAll(req.Body)
	return body
}

var sentence = regexp.MustCompile(`,"reason":"(it|its|the service|line|record) [^"]*"`)

// withoutReasons removes the reasons of rejections, which TestRejections checks.
func withoutReasons(rejections string) string { return sentence.ReplaceAllString(rejections, "") }

// checkCounts compares a report, without its duration.
func checkCounts(t *testing.T, got *bulk.Report, want bulk.Report) {
	t.Helper()
	if diff := cmp.Diff(&want, got, cmpopts.IgnoreFields(bulk.Report{}, "Duration", "Waited", "WaitedFor")); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if sum := got.Applied + got.Rejected + got.Invalid + got.Duplicates + got.Changed + got.Unknown + got.Pending; sum != got.Records {
		t.Errorf("the counts add up to %d of %d", sum, got.Records)
	}
}

func checkEqual(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// readReasons returns the reasons of rejections by line. lines are the lines of the records.
func readReasons(t *testing.T, content []byte, lines []int) map[int]string {
	t.Helper()
	reasons := map[int]string{}
	for line := range strings.Lines(string(content)) {
		var r bulk.Rejection
		if err := json.Unmarshal([]byte(line), &r); err != nil || len(r.Fields) != 1 {
			t.Fatalf("%v: %s", err, line)
		}
		if r.Line == 0 {
			r.Line = lines[r.Record-1]
		}
		reasons[r.Line] += r.Fields[0].Column + ": " + r.Fields[0].Reason
	}
	return reasons
}
