package labhealthtest_test

import (
	"errors"
	"fmt"
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

// importOf is a valid import.
func importOf(srv *labhealthtest.Server, user uuid.UUID, sample string) labhealth.ImportOrderBody {
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

// Every fault, after and before an import is carried out, with the outcome the client reports.
func TestFaults(t *testing.T) {
	answer := labhealthtest.FaultResponse
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
		// What begins like the answer of a service that has done it counts as that.
		{"half a body", labhealthtest.FaultHalfBody, labhealth.OutcomeApplied, labhealth.OutcomeApplied},
		{"slow body", labhealthtest.FaultSlowBody, labhealth.OutcomeApplied, labhealth.OutcomeApplied},
		{"too large", labhealthtest.FaultTooLarge, labhealth.OutcomeApplied, labhealth.OutcomeApplied},
		{"HTML", answer(200, "<html>", "Content-Type", "text/html"), labhealth.OutcomeUnknown, labhealth.OutcomeUnknown},
		{"empty", answer(200, ""), labhealth.OutcomeUnknown, labhealth.OutcomeUnknown},
		{"no order id", answer(200, `{"order":{},"status":"","message":""}`), labhealth.OutcomeUnknown, labhealth.OutcomeUnknown},
		{"503", answer(503, ""), labhealth.OutcomeUnknown, labhealth.OutcomeUnknown},
		{"422", answer(422, `{"detail":[]}`), labhealth.OutcomeRejected, labhealth.OutcomeRejected},
		{"redirect", answer(307, "", "Location", "https://elsewhere.example"), labhealth.OutcomeUnknown, labhealth.OutcomeUnknown},
		{"429, and carried out at the next attempt", answer(429, "{}"), labhealth.OutcomeRejected, labhealth.OutcomeApplied},
	} {
		for _, after := range []bool{true, false} {
			script, want := (*labhealthtest.Server).FailBefore, row.before
			if after {
				script, want = (*labhealthtest.Server).FailAfter, row.after
			}
			try := func(t *testing.T, srv *labhealthtest.Server, transport *http.Transport) {
				client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL),
					labhealth.WithHTTPClient(&http.Client{Transport: transport}),
					labhealth.WithRetry(labhealth.RetryPolicy{BaseWait: 1, MaxWait: 1}))
				if err != nil {
					t.Fatal(err)
				}
				defer client.CloseIdleConnections()
				user := srv.AddUser("ada")
				if err := script(srv, "POST /v3/order/import", 1, row.fault); err != nil {
					t.Fatal(err)
				}
				_, err = client.Orders.Import(t.Context(), importOf(srv, user, "SAMPLE-1"))
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
					try(t, newServer(t), &http.Transport{})
					return
				}
				// The client waits for its deadline, which takes no time in a bubble.
				synctest.Test(t, func(t *testing.T) {
					listener := newMemoryListener()
					try(t, newServer(t, labhealthtest.WithListener(listener)), &http.Transport{DialContext: listener.dial})
				})
			})
		}
	}
}

// countOrders returns how many orders the user has.
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
		t.Errorf("an operation that does not exist: %v", err)
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
		t.Error("a fault for all operations does not strike")
	}
}

// A server that is closed lets go of those who wait for an answer.
func TestCloseDuringSilence(t *testing.T) {
	srv := newServer(t)
	began := make(chan bool)
	srv.FailBefore("", 1, func(w http.ResponseWriter, r *http.Request, good []byte) {
		close(began)
		labhealthtest.FaultSilence(w, r, good)
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
	<-began
	srv.Close()
	if err := <-done; err.Error() == "no error" {
		t.Error(err)
	}
}
