// Package safety counts the orders that a service creates from one import while the network fails,
// with this library and with its alternatives:
//
//	go test -C integration -v ./safety
package safety

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/labhealth/labhealth-go"
)

const (
	key  = "sk_test_0123456789"
	path = "/v3/order/import"
)

// timeout limits one attempt, for all clients.
const timeout = 500 * time.Millisecond

var order = labhealth.ImportOrderBody{
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

// faults are what a service does after it has created an order.
var faults = []struct {
	name  string
	times int64 // number of requests that fail
	do    func(http.ResponseWriter, *http.Request)
	want  [4]string // the cells of the table in docs/safety.md, by client
}{
	{"the response is lost: the connection is closed", 1, hangUp, [4]string{"1, unknown", "1", "1", "**2**"}},
	{"the response is lost: the connection is reset", 1, reset, [4]string{"1, unknown", "1", "1", "**2**"}},
	{"the response is lost on a kept-alive connection", 1, hangUp, [4]string{"1, unknown", "1", "**2**", "**2**"}},
	{"no response until the deadline", 1, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		[4]string{"1, unknown", "1", "1", "**2**"}},
	{"a proxy responds with 502", 1, status(http.StatusBadGateway), [4]string{"1, unknown", "1", "1", "**2**"}},
	{"503 to every request", 1000, status(http.StatusServiceUnavailable), [4]string{"1, unknown", "1", "1", "**5**"}},
	{"the response is truncated", 1, truncate, [4]string{"1, applied", "1", "1", "1"}},
}

const keptAlive = "the response is lost on a kept-alive connection"

func hangUp(w http.ResponseWriter, _ *http.Request) { hijack(w).Close() }

func reset(w http.ResponseWriter, _ *http.Request) {
	c := hijack(w)
	c.(*net.TCPConn).SetLinger(0)
	c.Close()
}

func hijack(w http.ResponseWriter) net.Conn {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	return c
}

func status(code int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

const response = `{"order":{"id":"3f0c9a52-7d1e-4b6a-9c58-2e41d7a6b803"},"status":"success","message":"done"}`

func truncate(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", fmt.Sprint(len(response)))
	io.WriteString(w, response[:40])
	http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// clients import the order once with a new client, after a successful request if warm is set. They
// return the outcome that the client reports, if it reports one.
var clients = []struct {
	name        string
	importOrder func(ctx context.Context, url string, warm bool) string
}{
	{"this library", func(ctx context.Context, url string, warm bool) string {
		client, err := labhealth.NewClient(key, labhealth.WithBaseURL(url), labhealth.WithRetry(labhealth.RetryPolicy{WriteTimeout: timeout}))
		if err != nil {
			panic(err)
		}
		defer client.CloseIdleConnections()
		if warm {
			client.Do(ctx, http.MethodGet, "/", nil, nil)
		}
		_, err = client.Orders.Import(ctx, order)
		return ", " + labhealth.OutcomeOf(err).String()
	}},
	{"net/http", func(ctx context.Context, url string, warm bool) string { return importPlain(ctx, url, warm, nil) }},
	{"net/http with an `Idempotency-Key` header", func(ctx context.Context, url string, warm bool) string {
		return importPlain(ctx, url, warm, http.Header{"Idempotency-Key": {"SAMPLE-1"}})
	}},
	{"go-retryablehttp with its default policy", func(ctx context.Context, url string, warm bool) string {
		client := retryablehttp.NewClient()
		client.Logger, client.RetryWaitMin, client.RetryWaitMax = nil, 1, 1
		client.HTTPClient.Timeout = timeout
		defer client.HTTPClient.CloseIdleConnections()
		if warm {
			drain(client.Get(url))
		}
		req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, url+path, body())
		if err != nil {
			panic(err)
		}
		req.Header = header()
		drain(client.Do(req))
		return ""
	}},
}

// importPlain imports the order with net/http.
func importPlain(ctx context.Context, url string, warm bool, extra http.Header) string {
	client := http.Client{Transport: &http.Transport{}, Timeout: timeout}
	defer client.CloseIdleConnections()
	if warm {
		drain(client.Get(url))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+path, bytes.NewReader(body()))
	if err != nil {
		panic(err)
	}
	req.Header = header()
	for name, values := range extra {
		req.Header[name] = values
	}
	drain(client.Do(req))
	return ""
}

func header() http.Header {
	return http.Header{"Content-Type": {"application/json"}, "X-Service-Api-Key": {key}}
}

func body() []byte {
	encoded, err := json.Marshal(order)
	if err != nil {
		panic(err)
	}
	return encoded
}

// drain reads a response, if there is one. The error of the client is not part of the table.
func drain(resp *http.Response, err error) {
	if err == nil {
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

// serve starts a service that creates an order for each complete import. The first responses are
// faults.
func serve(t *testing.T, times int64, fault func(http.ResponseWriter, *http.Request)) (url string, orders *atomic.Int64) {
	orders = &atomic.Int64{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path {
			return
		}
		if body, err := io.ReadAll(r.Body); err != nil || !json.Valid(body) {
			return
		}
		if orders.Add(1) <= times {
			fault(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, response)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return s.URL, orders
}

func TestOrdersOfOneImport(t *testing.T) {
	head, rule := "| orders created by one import |", "|---|"
	for _, client := range clients {
		head += " " + client.name + " |"
		rule += "---|"
	}
	table := []string{head, rule}
	for _, fault := range faults {
		line := "| " + fault.name + " |"
		for i, client := range clients {
			url, orders := serve(t, fault.times, fault.do)
			outcome := client.importOrder(t.Context(), url, fault.name == keptAlive)
			cell := fmt.Sprint(orders.Load()) + outcome
			if orders.Load() > 1 {
				cell = "**" + cell + "**"
			}
			if cell != fault.want[i] {
				t.Errorf("%s, %s: %s, want %s", fault.name, client.name, cell, fault.want[i])
			}
			line += " " + cell + " |"
		}
		table = append(table, line)
	}

	line := "| a redirect (307) to another host: data sent to it |"
	for i, client := range clients {
		cell := redirected(t, client.importOrder)
		if want := [4]string{"nothing", "**key, patient**", "**key, patient**", "**key, patient**"}[i]; cell != want {
			t.Errorf("redirect, %s: %s, want %s", client.name, cell, want)
		}
		line += " " + cell + " |"
	}
	table = append(table, line)
	markdown := strings.Join(table, "\n") + "\n"
	t.Log("\n" + markdown)

	page, err := os.ReadFile("../../docs/safety.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), markdown) {
		t.Error("docs/safety.md has another table")
	}
}

// redirected returns what of an import reaches the host that the service redirects to.
func redirected(t *testing.T, importOrder func(context.Context, string, bool) string) string {
	var reached []string
	otherHost := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Service-Api-Key") == key {
			reached = append(reached, "key")
		}
		if body, _ := io.ReadAll(r.Body); bytes.Contains(body, []byte("ada@example.com")) {
			reached = append(reached, "patient")
		}
		io.WriteString(w, response)
	}))
	t.Cleanup(otherHost.Close)
	// net/http treats another name of the loopback interface as another host.
	target := strings.Replace(otherHost.URL, "127.0.0.1", "localhost", 1)
	url, _ := serve(t, 1, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, target+path, http.StatusTemporaryRedirect)
	})
	importOrder(t.Context(), url, false)
	otherHost.Close() // waits for requests in flight
	if len(reached) == 0 {
		return "nothing"
	}
	return "**" + strings.Join(reached, ", ") + "**"
}
