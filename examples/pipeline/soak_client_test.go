//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// TestSoakClient uses one client for a long time, in rounds. In each, a service starts on the same
// port, a file is imported by bulk runs that are interrupted, all orders and users are listed with
// the next page requested ahead, and the service stops. One response in ten is lost, half sent, an
// error or no HTTP.
//
//	LABHEALTH_SOAK=1h go test -run TestSoakClient -v -timeout 3h .
func TestSoakClient(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("LABHEALTH_SOAK"))
	if err != nil {
		t.Skip("LABHEALTH_SOAK is not set")
	}
	c := newClientSoak(t)
	rounds := 0
	for start := time.Now(); time.Since(start) < length && !t.Failed(); rounds++ {
		c.round(t)
		c.sample()
		if rounds%20 == 0 {
			c.gauges.log(t)
		}
	}
	c.gauges.check(t, length)
	t.Logf("%d rounds: %d orders imported by %d requests and %d runs, of which %d were interrupted; %d elements listed",
		rounds, c.imported, c.sent, c.runs, c.interrupted, c.listed)
}

// clientSoak is a client and what it has done.
type clientSoak struct {
	address string
	dir     string
	client  *labhealth.Client
	gauges  gauges

	runs, interrupted      int
	imported, sent, listed int64
}

// soakRecords is the number of orders of a round.
const soakRecords = 300

func newClientSoak(t *testing.T) *clientSoak {
	c := &clientSoak{address: freePort(t), dir: t.TempDir()}
	srv := c.service(t) // whose key is that of all others
	srv.Close()
	var err error
	c.client, err = labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.client.CloseIdleConnections)
	return c
}

// service starts a service with the same key and port as before.
func (c *clientSoak) service(t *testing.T) *labhealthtest.Server {
	t.Helper()
	l, err := net.Listen("tcp", c.address)
	if err != nil {
		t.Fatal(err)
	}
	srv, err := labhealthtest.Start(labhealthtest.WithListener(l), labhealthtest.WithSeed(1))
	if err != nil {
		t.Fatal(err)
	}
	return srv
}

// unreliable replaces one response in ten.
func unreliable(w http.ResponseWriter, r *http.Request, body []byte) {
	faults := []labhealthtest.Fault{labhealthtest.FaultClosed, labhealthtest.FaultReset, labhealthtest.FaultHalfBody, labhealthtest.FaultHalfHeader,
		labhealthtest.FaultGarbage, labhealthtest.FaultSilence, labhealthtest.FaultResponse(http.StatusBadGateway, "")}
	if rand.IntN(10) == 0 {
		faults[rand.IntN(len(faults))](w, r, body)
		return
	}
	labhealthtest.FaultDelay(0)(w, r, body)
}

func (c *clientSoak) round(t *testing.T) {
	srv := c.service(t)
	defer srv.Close()
	name := c.write(t, srv)
	journal := name + ".journal"
	const operation = "POST /v3/order/import"
	err := errors.Join(srv.FailBefore(operation, 3, labhealthtest.FaultResponse(http.StatusTooManyRequests, "", "Retry-After", "1")),
		srv.FailAfter(operation, -1, unreliable))
	if err != nil {
		t.Fatal(err)
	}
	interrupted, cancel := context.WithTimeout(t.Context(), time.Duration(rand.Int64N(int64(4*time.Second))))
	defer cancel()
	report, err := c.run(interrupted, srv, name, journal)
	if interrupted.Err() != nil {
		c.interrupted++
		report, err = c.run(t.Context(), srv, name, journal)
	}
	if err != nil || !report.Done() || report.Applied != soakRecords {
		t.Errorf("the import: %v: %v", report, err)
	}
	if n := len(srv.Orders()); n != soakRecords {
		t.Errorf("%d orders, want %d", n, soakRecords)
	}
	c.imported += soakRecords
	c.list(t)
	for _, file := range []string{name, journal} {
		if err := os.Remove(file); err != nil {
			t.Error(err)
		}
	}
}

// write writes the orders to be imported.
func (c *clientSoak) write(t *testing.T, srv *labhealthtest.Server) (name string) {
	t.Helper()
	name = filepath.Join(c.dir, "orders.jsonl")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	users, encoder := srv.AddUsers(50), json.NewEncoder(file)
	for n := range soakRecords {
		body := labhealth.ImportOrderBody{
			UserID: users[n%len(users)], BillingType: labhealth.BillingClientBill,
			OrderSet:         labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{srv.LabTests.Testkit}},
			CollectionMethod: labhealth.CollectionMethodTestkit,
			PatientDetails: labhealth.PatientDetailsWithValidation{
				FirstName: "Ada", LastName: "Example", DOB: labhealth.Date{Year: 1985, Month: time.December, Day: 10},
				Gender: labhealth.GenderFemale, Email: "ada@example.com", PhoneNumber: "+14155550123",
			},
			PatientAddress: labhealth.PatientAddress{
				ReceiverName: "Ada Example", FirstLine: "1 Example Street",
				City: "Monterey", State: "CA", Zip: "93940", Country: "US",
			},
			SampleID: fmt.Sprintf("SAMPLE-%04d", n),
		}
		if err := encoder.Encode(body); err != nil {
			t.Fatal(err)
		}
	}
	return name
}

// run imports the file, or what an interrupted run has left.
func (c *clientSoak) run(ctx context.Context, srv *labhealthtest.Server, name, journal string) (*bulk.Report, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	j, err := bulk.OpenFile(journal)
	if err != nil {
		return nil, err
	}
	c.runs++
	report, err := bulk.Run(ctx, c.client, bulk.JSONLines(file), j, bulk.Options{Target: srv.URL, Timeout: 2 * time.Second, Settle: 3 * time.Second})
	if report != nil {
		c.sent += report.Sent
	}
	return report, errors.Join(err, j.Close())
}

// list lists everything, and a part of it.
func (c *clientSoak) list(t *testing.T) {
	t.Helper()
	samples := map[string]bool{}
	for order, err := range c.client.Orders.All(t.Context(), labhealth.ListOrdersParams{}) {
		if err != nil {
			t.Error(err)
			return
		}
		if order.SampleID != nil {
			samples[*order.SampleID] = true
		}
		c.listed++
	}
	if len(samples) != soakRecords {
		t.Errorf("%d sample IDs are listed, want %d", len(samples), soakRecords)
	}
	n := 0
	for _, err := range c.client.Users.All(t.Context(), labhealth.ListUsersParams{}) {
		if err != nil {
			t.Error(err)
			return
		}
		c.listed++
		if n++; n == 10 {
			break
		}
	}
}

func (c *clientSoak) sample() {
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	c.gauges.add("client", heapMB, float64(memory.HeapAlloc)/(1<<20))
	c.gauges.add("client", goroutines, float64(runtime.NumGoroutine()))
	c.gauges.add("client", descriptors, openDescriptors())
	c.gauges.add("client", diskMB, sizeOf(c.dir))
}
