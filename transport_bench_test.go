package labhealth_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// bareGet is what a program does that has no client: net/http and encoding/json. It has the same limits as the client, in the
// least code: a time limit and a cap.
func bareGet(c *http.Client, url, key string, v any) error {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("x-service-api-key", key)
	req.Header.Set("Accept", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	if err != nil {
		return err
	}
	return json.Unmarshal(body, v)
}

// bareOrder has the members of an order as a program writes them down for encoding/json.
type bareOrder struct {
	ID             string       `json:"id"`
	UserID         string       `json:"user_id"`
	TeamID         string       `json:"team_id"`
	PatientDetails *barePerson  `json:"patient_details"`
	PatientAddress *bareAddress `json:"patient_address"`
	LabTest        bareLabTest  `json:"lab_test"`
	Details        struct {
		Type string `json:"type"`
		Data *struct {
			ID        string    `json:"id"`
			CreatedAt time.Time `json:"created_at"`
			UpdatedAt time.Time `json:"updated_at"`
			Shipment  *struct {
				ID                     string  `json:"id"`
				OutboundTrackingNumber *string `json:"outbound_tracking_number"`
				Notes                  *string `json:"notes"`
			} `json:"shipment"`
		} `json:"data"`
	} `json:"details"`
	SampleID           *string      `json:"sample_id"`
	Notes              *string      `json:"notes"`
	ClinicalNotes      *string      `json:"clinical_notes"`
	CreatedAt          time.Time    `json:"created_at"`
	UpdatedAt          time.Time    `json:"updated_at"`
	Events             []bareEvent  `json:"events"`
	Status             *string      `json:"status"`
	LastEvent          bareEvent    `json:"last_event"`
	Physician          *barePerson  `json:"physician"`
	RequisitionFormURL *string      `json:"requisition_form_url"`
	ShippingDetails    *bareAddress `json:"shipping_details"`
	Passthrough        *string      `json:"passthrough"`
	BillingType        string       `json:"billing_type"`
	ICDCodes           []string     `json:"icd_codes"`
	HasABN             bool         `json:"has_abn"`
	Origin             *string      `json:"origin"`
	Transaction        *struct {
		ID     string `json:"id"`
		Status string `json:"status"`
		Orders []struct {
			ID        string    `json:"id"`
			CreatedAt time.Time `json:"created_at"`
			UpdatedAt time.Time `json:"updated_at"`
			Status    *string   `json:"low_level_status"`
		} `json:"orders"`
	} `json:"order_transaction"`
}

type bareEvent struct {
	ID        int64     `json:"id"`
	CreatedAt time.Time `json:"created_at"`
	Status    string    `json:"status"`
}

type barePerson struct {
	FirstName *string      `json:"first_name"`
	LastName  *string      `json:"last_name"`
	NPI       *string      `json:"npi"`
	DOB       string       `json:"dob"`
	Gender    string       `json:"gender"`
	Phone     *string      `json:"phone_number"`
	Email     *string      `json:"email"`
	Proxy     *barePerson  `json:"medical_proxy"`
	Address   *bareAddress `json:"address"`
}

type bareAddress struct {
	ReceiverName string  `json:"receiver_name"`
	FirstLine    string  `json:"first_line"`
	SecondLine   *string `json:"second_line"`
	City         string  `json:"city"`
	State        string  `json:"state"`
	Zip          string  `json:"zip"`
	Country      string  `json:"country"`
	AccessNotes  *string `json:"access_notes"`
	Phone        *string `json:"phone_number"`
}

type bareLabTest struct {
	ID         string      `json:"id"`
	Slug       string      `json:"slug"`
	Name       string      `json:"name"`
	SampleType string      `json:"sample_type"`
	Method     string      `json:"method"`
	Price      json.Number `json:"price"`
	IsActive   bool        `json:"is_active"`
	Status     string      `json:"status"`
	Lab        *struct {
		ID      int64    `json:"id"`
		Slug    string   `json:"slug"`
		Name    string   `json:"name"`
		Address string   `json:"first_line_address"`
		City    string   `json:"city"`
		Zip     string   `json:"zipcode"`
		Methods []string `json:"collection_methods"`
		Samples []string `json:"sample_types"`
	} `json:"lab"`
	Markers []struct {
		ID          int64   `json:"id"`
		Name        string  `json:"name"`
		Slug        string  `json:"slug"`
		Description *string `json:"description"`
		LabID       *int64  `json:"lab_id"`
		ProviderID  *string `json:"provider_id"`
		Type        *string `json:"type"`
		Unit        *string `json:"unit"`
		Price       *string `json:"price"`
	} `json:"markers"`
}

// One call beside the same over bare net/http and encoding/json, on the same server, a pair at a time.
func BenchmarkGetOrder(b *testing.B) {
	srv := labhealthtest.NewServer(b)
	id, err := srv.AddOrder(srv.AddUser("ada"), srv.LabTests.OnSite)
	if err != nil {
		b.Fatal(err)
	}
	client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL))
	if err != nil {
		b.Fatal(err)
	}
	defer client.CloseIdleConnections()
	bare := &http.Client{Transport: &http.Transport{}, Timeout: 30 * time.Second}
	defer bare.CloseIdleConnections()
	address := srv.URL + "/v3/order/" + id.String()
	ours := func() {
		if o, err := client.Orders.Get(b.Context(), id); err != nil || o.ID != id {
			b.Fatal(err)
		}
	}
	theirs := func() {
		var o bareOrder
		if err := bareGet(bare, address, srv.APIKey, &o); err != nil || o.ID != id.String() {
			b.Fatal(err)
		}
	}
	compare(b, ours, theirs)
}

// What sending and receiving costs, without reading the answer into a type: both check that it is JSON and copy it.
func BenchmarkGetRaw(b *testing.B) {
	answer := []byte(canaryOrder)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(answer)
	}))
	defer srv.Close()
	client := faultClient(b, srv.URL, nil)
	bare := &http.Client{Transport: &http.Transport{}, Timeout: 30 * time.Second}
	defer bare.CloseIdleConnections()
	compare(b, func() {
		var raw json.RawMessage
		if err := client.Do(b.Context(), "GET", "/v3/order/x", nil, &raw); err != nil || len(raw) != len(answer) {
			b.Fatal(err)
		}
	}, func() {
		var raw json.RawMessage
		if err := bareGet(bare, srv.URL+"/v3/order/x", testKey, &raw); err != nil || len(raw) != len(answer) {
			b.Fatal(err)
		}
	})
}

// The same with an answer of a fixed server that does nothing else.
func BenchmarkGetOrderFixed(b *testing.B) {
	answer := []byte(canaryOrder)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(answer)
	}))
	defer srv.Close()
	client := faultClient(b, srv.URL, nil)
	bare := &http.Client{Transport: &http.Transport{}, Timeout: 30 * time.Second}
	defer bare.CloseIdleConnections()
	compare(b, func() {
		if _, err := client.Orders.Get(b.Context(), faultOrderID); err != nil {
			b.Fatal(err)
		}
	}, func() {
		var o bareOrder
		if err := bareGet(bare, srv.URL+"/v3/order/"+faultOrderID.String(), testKey, &o); err != nil {
			b.Fatal(err)
		}
	})
}

// compare reports how much longer ours takes than theirs, and how many more allocations it makes; each includes the server's.
func compare(b *testing.B, ours, theirs func()) {
	for range 100 {
		ours()
		theirs()
	}
	more := testing.AllocsPerRun(200, ours) - testing.AllocsPerRun(200, theirs)
	var mine, others time.Duration
	for i := 0; b.Loop(); i++ {
		first, second, a, z := ours, theirs, &mine, &others
		if i%2 == 1 {
			first, second, a, z = theirs, ours, &others, &mine
		}
		start := time.Now()
		first()
		middle := time.Now()
		second()
		*a += middle.Sub(start)
		*z += time.Since(middle)
	}
	b.ReportMetric(float64(mine)/float64(others), "ratio")
	b.ReportMetric(float64(mine.Microseconds())/float64(b.N), "µs/call")
	b.ReportMetric(float64(others.Microseconds())/float64(b.N), "µs/bare")
	b.ReportMetric(more, "more-allocs")
}

// Whatever Retry-After says, the call ends or waits within its bounds, and what is carried is not junk.
func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"", "0", "7", "-1", "99999999999999999999", "1.5", "Fri, 31 Dec 9999 23:59:59 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
		"Sun Nov  6 08:49:37 1994", " 3 ", "+4", "0x10", "1e3", "Fri, 31 Dec 10000 23:59:59 GMT", "\t"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		const limit = time.Millisecond
		attempts := 0
		client := faultClient(t, testURL, roundTripper(func(r *http.Request) (*http.Response, error) {
			attempts++
			return answerTo(r, 429, "{}", "Retry-After", s), nil
		}), labhealth.WithRetry(labhealth.RetryPolicy{MaxRetryAfter: limit, MinWait: 1, MaxWait: 1}))
		_, err := client.Orders.Import(t.Context(), faultImport())
		api := apiErrorOf(t, err)
		if api.Attempts != attempts || labhealth.OutcomeOf(err) != rejected {
			t.Errorf("%q: %d attempts: %v", s, attempts, err)
		}
		switch waited := api.RetryAfter; {
		case attempts == 1 && waited >= 0 && waited <= limit, attempts == 3 && (waited < 0 || waited > limit), attempts == 2:
			t.Errorf("%q: %d attempts, RetryAfter %v", s, attempts, waited)
		}
	})
}

func apiErrorOf(t *testing.T, err error) *labhealth.APIError {
	t.Helper()
	api, ok := err.(*labhealth.APIError)
	if !ok {
		t.Fatalf("%T: %v", err, err)
	}
	return api
}

// Whatever an error's body says, its methods neither panic nor show text of it.
func FuzzErrorBody(f *testing.F) {
	for _, s := range []string{"", "null", "{}", "[]", `{"detail":"x"}`, `{"detail":[{"type":"missing","loc":["body",1,"a b"],"msg":"m","input":{}}]}`,
		`{"detail":[1,null,{"loc":null}]}`, `{"detail":{"user_id":"3f0c9a52-7d1e-4b6a-9c58-2e41d7a6b803","created_on":"x"}}`, `{"user_id":{}}`,
		`{"detail":` + strings.Repeat("[", 100), "\xff", `{"detail":"\ud800"}`, `{"detail":[{"type":"a\nb","loc":["\u0000"]}]}`} {
		f.Add(400, []byte(s))
		f.Add(422, []byte(s))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 400 || status > 599 || status == 429 {
			status = 422
		}
		client := faultClient(t, testURL, roundTripper(func(r *http.Request) (*http.Response, error) {
			return answerTo(r, status, string(body)), nil
		}), labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 1}))
		_, err := client.Users.Create(t.Context(), labhealth.CreateUserBody{ClientUserID: "a"})
		var api *labhealth.APIError
		if conflict, ok := err.(*labhealth.UserConflictError); ok {
			api = conflict.Unwrap().(*labhealth.APIError)
		} else {
			api = apiErrorOf(t, err)
		}
		if !bytes.Equal(api.Body(), body[:min(len(body), 64<<10)]) {
			t.Error("another body")
		}
		if d := api.Detail(); d != nil && !json.Valid(d) {
			t.Errorf("Detail %q", d)
		}
		for _, field := range api.Fields() {
			_ = field.Path()
		}
		for _, text := range []string{err.Error(), fmt.Sprintf("%+v %#v", err, api.Fields()), fmt.Sprint(*api)} {
			if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Errorf("the text holds what it should not: %q", text)
			}
		}
	})
}

// Whatever the path, the request goes to that path of that host or nowhere.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"/", "/%2F\"", "/v2/user/a", "/a%2Fb", "//evil.example.com", "/../a", "/%2e%2e/a", "/a/./b", "/a?b", "/a#b", "/a b", "/%00", "/%zz",
		"/\xff", "/ü", "/a:80", "/@b", "/a;b=c", "/a\\b", "http://a/b", "", "/%2F%2Fevil", "/a//b", "/%25"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, path, user string) {
		sent := ""
		client := faultClient(t, testURL+"/base", roundTripper(func(r *http.Request) (*http.Response, error) {
			sent = r.URL.Scheme + "://" + r.URL.Host + r.URL.EscapedPath()
			if r.URL.RawQuery != "" || r.URL.Fragment != "" || r.URL.User != nil {
				t.Errorf("%q became %v", path, r.URL)
			}
			for segment := range strings.SplitSeq(r.URL.EscapedPath(), "/") {
				if plain, err := url.PathUnescape(segment); err != nil || plain == "." || plain == ".." {
					t.Errorf("%q became %v", path, r.URL)
				}
			}
			return answerTo(r, 200, `{"user_id":"`+faultOrderID.String()+`"}`), nil
		}))
		err := client.Do(t.Context(), "GET", path, nil, nil)
		switch {
		case sent == "" && labhealth.OutcomeOf(err) == notSent:
		case err != nil || !sameSegments(sent, testURL+"/base"+path):
			t.Errorf("%q was sent to %q: %v", path, sent, err)
		}
		sent = ""
		_, err = client.Users.Resolve(t.Context(), user)
		rest, ok := strings.CutPrefix(sent, testURL+"/base/v2/user/resolve/")
		switch {
		case sent == "" && labhealth.OutcomeOf(err) == notSent:
		case err != nil || !ok || strings.Contains(rest, "/"):
			t.Errorf("%q was sent to %q: %v", user, sent, err)
		}
	})
}

// sameSegments reports whether two paths have the same segments, however they are escaped.
func sameSegments(a, b string) bool {
	return slices.EqualFunc(strings.Split(a, "/"), strings.Split(b, "/"), func(a, b string) bool {
		a, err := url.PathUnescape(a)
		b, err2 := url.PathUnescape(b)
		return err == nil && err2 == nil && a == b
	})
}
