package labhealthtest_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// validImport returns a valid import.
func validImport(srv *labhealthtest.Server, user uuid.UUID, sample string) labhealth.ImportOrderBody {
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

// Each fault, after and before an import is processed, with the outcome that the client reports.
func TestFaults(t *testing.T) {
	respond := labhealthtest.FaultResponse
	for _, row := range []struct {
		name          string
		fault         labhealthtest.Fault
		after, before labhealth.Outcome
	}{
		{"closed", labhealthtest.FaultClosed, labhealth.OutcomeUnknown, labhealth.OutcomeUnknown},
		{"reset", labhealthtest.FaultReset, labhealth.OutcomeUnknown, labhealth.OutcomeUnknown},
		{"garbage", labhealthtest.FaultGarbage, labhealth.OutcomeUnknown, labhealth.OutcomeUnknown},
		{"half a header", labhealthtest.FaultHalfHeader, labhealth.OutcomeUnknown, labhealth.OutcomeUnknown},
		{"silence", labhealthtest.FaultSilence, labhealth.OutcomeUnknown, labhealth.OutcomeUnknown},
		// The start of a 200 response with JSON means that the import was processed.
		{"half a body", labhealthtest.FaultHalfBody, labhealth.OutcomeApplied, labhealth.OutcomeApplied},
		{"slow body", labhealthtest.FaultSlowBody, labhealth.OutcomeApplied, labhealth.OutcomeApplied},
		{"too large", labhealthtest.FaultTooLarge, labhealth.OutcomeApplied, labhealth.OutcomeApplied},
		{"HTML", respond(200, "<html>", "Content-Type", "text/html"), labhealth.OutcomeUnknown, labhealth.OutcomeUnknown},
		{"empty", respond(200, ""), labhealth.OutcomeUnknown, labhealth.OutcomeUnknown},
		{"no order id", respond(200, `{"order":{},"status":"","message":""}`), labhealth.OutcomeUnknown, labhealth.OutcomeUnknown},
		{"503", respond(503, ""), labhealth.OutcomeUnknown, labhealth.OutcomeUnknown},
		{"422", respond(422, `{"detail":[]}`), labhealth.OutcomeRejected, labhealth.OutcomeRejected},
		{"redirect", respond(307, "", "Location", "https://elsewhere.example"), labhealth.OutcomeUnknown, labhealth.OutcomeUnknown},
		{"429, and processed at the next attempt", respond(429, "{}"), labhealth.OutcomeRejected, labhealth.OutcomeApplied},
	} {
		for _, after := range []bool{true, false} {
			addFault, want := (*labhealthtest.Server).FailBefore, row.before
			if after {
				addFault, want = (*labhealthtest.Server).FailAfter, row.after
			}
			run := func(t *testing.T, srv *labhealthtest.Server, transport *http.Transport) {
				client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL),
					labhealth.WithHTTPClient(&http.Client{Transport: transport}),
					labhealth.WithRetry(labhealth.RetryPolicy{BaseWait: 1, MaxWait: 1}))
				if err != nil {
					t.Fatal(err)
				}
				defer client.CloseIdleConnections()
				user := srv.AddUser("ada")
				if err := addFault(srv, "POST /v3/order/import", 1, row.fault); err != nil {
					t.Fatal(err)
				}
				_, err = client.Orders.Import(t.Context(), validImport(srv, user, "SAMPLE-1"))
				if got := labhealth.OutcomeOf(err); got != want {
					t.Errorf("%v, want %v: %v", got, want, err)
				}
				orders := countOrders(t, client, user)
				wantOrders := 0
				if after || err == nil {
					wantOrders = 1
				}
				if orders != wantOrders {
					t.Errorf("%d orders, want %d", orders, wantOrders)
				}
			}
			t.Run(fmt.Sprintf("%s/after=%v", row.name, after), func(t *testing.T) {
				if row.name != "silence" && row.name != "slow body" {
					run(t, newServer(t), &http.Transport{})
					return
				}
				// The client waits for its timeout, which takes no time in a bubble.
				synctest.Test(t, func(t *testing.T) {
					listener := newMemoryListener()
					run(t, newServer(t, labhealthtest.WithListener(listener)), &http.Transport{DialContext: listener.dial})
				})
			})
		}
	}
}

// countOrders returns the number of orders of a user.
func countOrders(t *testing.T, client *labhealth.Client, user uuid.UUID) (n int) {
	t.Helper()
	for _, err := range client.Orders.All(t.Context(), labhealth.ListOrdersParams{UserID: user}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func TestPlannedFaults(t *testing.T) {
	srv := newServer(t)
	err := srv.FailBefore("POST /v3/orders/import", 1, labhealthtest.FaultClosed)
	if err == nil || !strings.Contains(err.Error(), `no such operation: "POST /v3/orders/import"`) ||
		!strings.Contains(err.Error(), `"POST /v3/order/import"`) {
		t.Errorf("unknown operation: %v", err)
	}
	teapot, gone := labhealthtest.FaultResponse(http.StatusTeapot, "{}"), labhealthtest.FaultResponse(http.StatusGone, "{}", "X-A", "b")
	for _, err := range []error{
		srv.FailBefore("GET /v3/order/{order_id}", 2, teapot),
		srv.FailBefore("GET /v3/order/{order_id}", 1, gone),
		srv.FailAfter("GET /v2/user/", 0, teapot),
		srv.FailAfter("POST /v2/user", -1, gone),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	path := "/v3/order/" + uuid.Nil.String()
	statuses := func(method, path string) (list [4]int) {
		for i := range list {
			list[i] = do(t, srv, method, path, `{"client_user_id":"ada"}`).status
		}
		return list
	}
	if got := statuses("GET", path); got != [4]int{418, 418, 410, 404} {
		t.Error(got)
	}
	if got := statuses("GET", "/v2/user/"); got != [4]int{200, 200, 200, 200} {
		t.Error(got)
	}
	if got := statuses("POST", "/v2/user"); got != [4]int{410, 410, 410, 410} {
		t.Error(got)
	}
	var logged []int
	for _, r := range srv.Requests() {
		logged = append(logged, r.StatusCode)
	}
	if want := []int{0, 0, 0, 404, 200, 200, 200, 200, 200, 400, 400, 400}; !slices.Equal(logged, want) {
		t.Errorf("logged %v, want %v", logged, want)
	}
	srv.ClearFaults()
	if got := statuses("POST", "/v2/user"); got != [4]int{400, 400, 400, 400} {
		t.Error(got)
	}
	if err := srv.FailBefore("", 1, teapot); err != nil || do(t, srv, "GET", "/nowhere", "").status != 418 {
		t.Error("a fault for all operations has no effect")
	}
}

// A fault can be removed, alone and repeatedly.
func TestAddFault(t *testing.T) {
	srv := newServer(t)
	plan := func(statusCode, times int) func() {
		remove, err := srv.AddFault(labhealthtest.FaultPlan{
			Name: fmt.Sprint("fault ", statusCode), Operation: "GET /v2/user", Times: times, Before: true, Fault: labhealthtest.FaultResponse(statusCode, "{}"),
		})
		noError(t, err)
		return remove
	}
	status := func() int { return do(t, srv, "GET", "/v2/user", "").status }
	first, second, third := plan(418, 2), plan(410, -1), plan(503, 1)
	got := []int{status()}
	first()
	got = append(got, status(), status())
	first() // has no effect on the others
	got = append(got, status())
	second()
	got = append(got, status(), status())
	third() // was used up
	if want := []int{418, 410, 410, 410, 503, 200}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for i, r := range srv.Requests() {
		want := fmt.Sprint("fault ", got[i])
		if !r.Faulted {
			want = ""
		}
		if r.Fault != want || r.Faulted != (got[i] != 200) {
			t.Errorf("request %d: %q", i, r.Fault)
		}
	}
	for _, p := range []labhealthtest.FaultPlan{{}, {Operation: "GET /", Fault: labhealthtest.FaultClosed}} {
		if _, err := srv.AddFault(p); err == nil {
			t.Errorf("%v is valid", p)
		}
	}
}

// A delay sends the response of the request, also a rejection. A request that was not processed has
// none.
func TestFaultDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const day = 24 * time.Hour
		l := newMemoryListener()
		srv := labhealthtest.NewServer(t, labhealthtest.WithListener(l))
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: l.dial}}
		request := func(path string) (int, string, error) {
			req, err := http.NewRequest("GET", srv.URL+path, nil)
			noError(t, err)
			req.Header.Set("x-service-api-key", srv.APIKey)
			resp, err := client.Do(req)
			if err != nil {
				return 0, "", err
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			return resp.StatusCode, string(body), err
		}
		start := time.Now()
		noError(t, srv.FailAfter("", 2, labhealthtest.FaultDelay(day)))
		noError(t, srv.FailBefore("", 1, labhealthtest.FaultDelay(day)))
		if status, body, err := request("/v2/user"); err != nil || status != 200 || body != `{"users":[],"total":0,"offset":0,"limit":100}` {
			t.Errorf("%d %s %v", status, body, err)
		}
		if status, body, err := request("/v2/user/" + unknownID); err != nil || status != 404 || body != `{"detail":"User not found"}` {
			t.Errorf("%d %s %v", status, body, err)
		}
		if status, body, err := request("/v2/user"); err == nil {
			t.Errorf("%d %s", status, body)
		}
		if took := time.Since(start); took != 3*day {
			t.Errorf("three requests took %v", took)
		}
	})
}

// Close ends requests that wait for a response.
func TestCloseDuringSilence(t *testing.T) {
	srv := newServer(t)
	started := make(chan bool)
	srv.FailBefore("", 1, func(w http.ResponseWriter, r *http.Request, body []byte) {
		close(started)
		labhealthtest.FaultSilence(w, r, body)
	})
	done := make(chan error)
	go func() {
		resp, err := httpClient.Get(srv.URL)
		if err == nil {
			resp.Body.Close()
			err = errors.New("no error")
		}
		done <- err
	}()
	<-started
	srv.Close()
	if err := <-done; err.Error() == "no error" {
		t.Error(err)
	}
}
