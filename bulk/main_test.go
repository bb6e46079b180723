package bulk_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/http/httptrace"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(playRole(role))
	}
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

// from is a source of records that can all be read.
func from(list []labhealth.ImportOrderBody) bulk.Source {
	return func(yield func(labhealth.ImportOrderBody, error) bool) {
		for _, body := range list {
			if !yield(body, nil) {
				return
			}
		}
	}
}

// service answers imports and lists without a network. It fires no hooks of net/http, so that no failure is provably unsent.
type service struct {
	mu     sync.Mutex
	orders []held
	times  map[string][]time.Time // of the requests, by sample id; "list" for lists
	sent   []string               // sample ids of the imports, in their order

	// import and list say what is to happen to the nth request of their kind, from 1: see fates. Nil: nothing special.
	onImport func(n int, body labhealth.ImportOrderBody) string
	onList   func(n int, query map[string][]string) string
	latency  time.Duration
}

type held struct {
	id, user uuid.UUID
	sample   string // JSON
}

var errLost = errors.New("connection lost: Ada Example")

// RoundTrip knows these fates: "" (as it should be), "drop" (lost on its way there), "lost" (lost on its way back), "cut" (half an
// answer), "late 30s" (answers an error at once and takes effect later), or a status with an optional Retry-After in seconds, such
// as "429 7", that has no effect; "500 lost" is a status with effect.
func (s *service) RoundTrip(req *http.Request) (*http.Response, error) {
	var text []byte
	if req.Body != nil {
		text, _ = io.ReadAll(req.Body)
		req.Body.Close()
	}
	time.Sleep(s.latency)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.times == nil {
		s.times = map[string][]time.Time{}
	}
	if req.Method == http.MethodGet {
		s.times["list"] = append(s.times["list"], time.Now())
		fate := ""
		if s.onList != nil {
			fate = s.onList(len(s.times["list"]), req.URL.Query())
		}
		return s.list(req, fate)
	}
	var body labhealth.ImportOrderBody
	if err := json.Unmarshal(text, &body); err != nil {
		return nil, err
	}
	s.sent = append(s.sent, body.SampleID)
	s.times[body.SampleID] = append(s.times[body.SampleID], time.Now())
	fate := ""
	if s.onImport != nil {
		fate = s.onImport(len(s.sent), body)
	}
	status, extra, _ := strings.Cut(fate, " ")
	taken := slices.ContainsFunc(s.orders, func(o held) bool { return o.sample == strconv.Quote(body.SampleID) })
	if code, err := strconv.Atoi(status); err == nil {
		if extra == "lost" && !taken {
			s.add(body)
		}
		return answer(req, code, `{"detail":"not for Ada Example"}`, extra), nil
	}
	switch {
	case status == "drop":
		return nil, errLost
	case status == "late":
		d, _ := time.ParseDuration(extra)
		time.AfterFunc(d, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.add(body)
		})
		return nil, errLost
	case taken:
		return answer(req, 400, `{"detail":"An order with this sample_id already exists"}`, ""), nil
	}
	o := s.add(body)
	switch status {
	case "lost":
		return nil, errLost
	case "cut":
		return answer(req, 200, `{"order":{"id":"`, ""), nil
	}
	return answer(req, 200, `{"order":`+o.json()+`,"status":"success","message":"Order created successfully"}`, ""), nil
}

func (s *service) add(body labhealth.ImportOrderBody) held {
	o := held{uuid.New(), body.UserID, strconv.Quote(body.SampleID)}
	s.orders = append(s.orders, o)
	return o
}

func (o held) json() string {
	if o.sample == "" { // an answer that leaves it out
		return fmt.Sprintf(`{"id":"%s","user_id":"%s"}`, o.id, o.user)
	}
	return fmt.Sprintf(`{"id":"%s","user_id":"%s","sample_id":%s}`, o.id, o.user, o.sample)
}

// list gives pages of two, newest first. Fates: a status; "empty" (no orders, though it counts them); "uncounted" (no total);
// "behind" (it does not know of any order yet).
func (s *service) list(req *http.Request, fate string) (*http.Response, error) {
	if code, err := strconv.Atoi(fate); err == nil {
		return answer(req, code, `{"detail":"no"}`, ""), nil
	}
	var found []string
	for _, o := range slices.Backward(s.orders) {
		if fate == "behind" {
			break
		}
		if user := req.URL.Query().Get("user_id"); user == "" || user == o.user.String() {
			found = append(found, o.json())
		}
	}
	page, _ := strconv.Atoi(req.URL.Query().Get("page"))
	from, to := min(2*(page-1), len(found)), min(2*page, len(found))
	total := fmt.Sprintf(`,"total":%d`, len(found))
	shown := found[from:to]
	switch fate {
	case "empty":
		shown, total = nil, fmt.Sprintf(`,"total":%d`, len(found)+1)
	case "uncounted":
		total = ""
	}
	return answer(req, 200, fmt.Sprintf(`{"orders":[%s]%s,"page":%d,"size":2}`, strings.Join(shown, ","), total, page), ""), nil
}

// answer is the response to req. It fires the hooks that net/http fires when it sends a request.
func answer(req *http.Request, status int, body, retryAfter string) *http.Response {
	hooks := httptrace.ContextClientTrace(req.Context())
	hooks.GetConn(req.URL.Host)
	hooks.GotConn(httptrace.GotConnInfo{})
	hooks.WroteHeaderField("Host", []string{req.URL.Host})
	hooks.WroteHeaders()
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

// samples counts the orders by sample id.
func (s *service) samples() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := map[string]int{}
	for _, o := range s.orders {
		id, _ := strconv.Unquote(o.sample)
		count[id]++
	}
	return count
}

// steps lists the journal's steps by sample id: "A: intent applied".
func steps(t testing.TB, j bulk.Journal) []string {
	t.Helper()
	of := map[string]string{}
	for e, err := range j.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Step != bulk.StepBegin {
			of[e.SampleID] += " " + string(e.Step)
		}
	}
	var list []string
	for _, id := range slices.Sorted(maps.Keys(of)) {
		list = append(list, id+":"+of[id])
	}
	return list
}

var _ iter.Seq2[labhealth.ImportOrderBody, error] = bulk.Source(nil)
