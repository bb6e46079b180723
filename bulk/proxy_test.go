package bulk_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
	"github.com/labhealth/labhealth-go/internal/httptracetest"
)

// proxied is a service behind a proxy that responds to some requests itself.
type proxied struct {
	service
	mu    sync.Mutex
	n     int // imports
	lists int
	// page returns the proxy's response to the nth import or list, or 0. It may be nil.
	page func(isList bool, n int, body string) (status int, text string)
	// forwards sends the request to the service all the same.
	forwards bool
}

func (p *proxied) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body = readBody(req)
		req.Body = http.NoBody
	}
	p.mu.Lock()
	isList, n := req.Method == http.MethodGet, &p.n
	if isList {
		n = &p.lists
	}
	*n++
	status, text := 0, ""
	if p.page != nil {
		status, text = p.page(isList, *n, string(body))
	}
	p.mu.Unlock()
	forward := req.Clone(req.Context())
	forward.Body = readCloser{strings.NewReader(string(body))}
	if status == 0 {
		return p.service.RoundTrip(forward)
	}
	if p.forwards {
		p.service.RoundTrip(forward)
	} else {
		httptracetest.SendRequest(req)
		time.Sleep(p.latency)
	}
	resp := newResponse(req, status, text, "")
	if !strings.HasPrefix(text, "{") {
		resp.Header.Set("Content-Type", "text/html")
	}
	return resp, nil
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

func (p *proxied) client(t *testing.T) *labhealth.Client {
	t.Helper()
	c, err := labhealth.NewClient("sk_test_0123456789", labhealth.WithBaseURL("https://api.example.com"),
		labhealth.WithHTTPClient(&http.Client{Transport: p}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// proxyPages are responses that the service does not give about a record.
func proxyPages() (pages [][2]any) {
	texts := []string{
		"<html><body>Blocked: Ada Example</body></html>", "", "blocked", `{"message":"Not Found"}`, `{"error":"denied"}`, `{"detail":"cut`,
		`{"type":"about:blank","title":"Blocked","status":400,"detail":"d"}`, `[]`, `null`,
	}
	for _, status := range []int{400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 413, 414, 415, 418, 421, 422, 423, 426, 428, 431, 451, 495} {
		for _, text := range texts {
			pages = append(pages, [2]any{status, text})
		}
		switch status {
		case 400, 404, 409, 422: // the service's own
		default:
			pages = append(pages, [2]any{status, `{"detail":"no"}`})
		}
	}
	return pages
}

// What a proxy responds in the middle of a run is no rejection: the run stops, and the next one
// creates the remaining orders.
func TestProxyInTheMiddle(t *testing.T) {
	for i, page := range proxyPages() {
		if testing.Short() && i%5 != 0 {
			continue
		}
		status, text := page[0].(int), page[1].(string)
		t.Run(fmt.Sprint(status, " ", text), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, j := &proxied{service: service{latency: time.Millisecond, twice: true}, forwards: i%3 == 0}, new(bulk.Memory)
				s.page = func(isList bool, n int, _ string) (int, string) {
					if isList || n < 30 || n >= 60 {
						return 0, ""
					}
					return status, text
				}
				opts := bulk.Options{Concurrency: []int{1, 4, 16}[i%3]}
				report, err := bulk.Run(t.Context(), s.client(t), from(numbered(100)), j, opts)
				var api *labhealth.APIError
				if !errors.As(err, &api) || api.StatusCode != status || report.Rejected != 0 || report.Pending < 50 {
					t.Errorf("%v, %v", report, err)
				}
				for e := range j.Entries() {
					if e.Step == bulk.StepRejected {
						t.Fatal("the journal has a rejection")
					}
				}
				s.page = nil
				report, err = bulk.Run(t.Context(), s.client(t), from(numbered(100)), j, opts)
				if err != nil || report.Applied != 100 || !report.Done() {
					t.Errorf("second run: %v, %v", report, err)
				}
				if orders := s.ordersBySample(); len(orders) != 100 || len(s.orders) != 100 {
					t.Errorf("%d orders of %d records", len(s.orders), len(orders))
				}
			})
		})
	}
}

// A record that a gateway rejects stops each run with its line, and is there for a person. The run
// goes on when it is corrected.
func TestRecordThatAGatewayRejects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, j := &proxied{}, new(bulk.Memory)
		s.page = func(_ bool, _ int, body string) (int, string) {
			if strings.Contains(body, "DROP TABLE") {
				return 403, "<html>Forbidden</html>"
			}
			return 0, ""
		}
		list := numbered(20)
		list[7].PatientDetails.LastName = "DROP TABLE"
		for range 3 {
			var table bytes.Buffer
			_, err := bulk.Run(t.Context(), s.client(t), withLines(list), j, bulk.Options{Concurrency: 1, RejectionsCSV: &table})
			checkEqual(t, "error", fmt.Sprint(err), "bulk: the response to line 9 is not a rejection of the record by the service: check the proxies, gateways and firewalls on the way, "+
				"the base URL, and whether the team may import orders; the record is not recorded as rejected, and the next run sends it again; "+
				"if only this record gets such a response, change or remove it: "+
				"labhealth: POST /v3/order/import: 403 Forbidden: rejected (the response is HTML: a proxy sent it, or the base URL is wrong) (request req-1)")
			if want := "9,8,S-00007,pending,it has no order yet: the next run sends it,,,403,req-1,,,"; !strings.Contains(table.String(), want) {
				t.Errorf("no %q in\n%s", want, &table)
			}
		}
		list[7].PatientDetails.LastName = "Example"
		report, err := bulk.Run(t.Context(), s.client(t), withLines(list), j, bulk.Options{})
		if err != nil || report.Applied != 20 || len(s.orders) != 20 {
			t.Errorf("%v, %v, %d orders", report, err, len(s.orders))
		}
	})
}

// A proxy's page is not the end of a list of orders.
func TestProxyInAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, j := &proxied{service: service{twice: true}}, new(bulk.Memory)
		if _, err := bulk.Run(t.Context(), s.client(t), from(numbered(4)), j, bulk.Options{}); err != nil {
			t.Fatal(err)
		}
		lists := s.lists
		s.page = func(isList bool, n int, _ string) (int, string) {
			if isList && n == lists+3 { // after the two pages that the total promises
				return 404, "<html>Not Found</html>"
			}
			return 0, ""
		}
		report, err := bulk.Run(t.Context(), s.client(t), from(numbered(8)), j, bulk.Options{})
		if err == nil || report.Sent != 0 || !strings.Contains(err.Error(), "so that nothing was sent") {
			t.Errorf("%v, %v", report, err)
		}
	})
}

// A run stops when the limit's number of records in a row are rejected for the same field.
func TestRejectionsOfOneField(t *testing.T) {
	const same = `{"detail":[{"type":"enum","loc":["body","billing_type"],"msg":"m"}]}`
	tests := []struct {
		name string
		page func(n int) string // of the nth import; empty for an order
		opts bulk.Options
		err  string
		want bulk.Report
	}{
		{"all", func(int) string { return same }, bulk.Options{}, "last 10 rejected records", bulk.Report{Pending: 300, Sent: 10}},
		{"almost all", func(n int) string {
			if n%17 == 1 {
				return ""
			}
			return same
		}, bulk.Options{}, "last 10 rejected records", bulk.Report{Applied: 1, Pending: 299, Sent: 11}},
		{"with others", func(n int) string {
			return fmt.Sprintf(`{"detail":[{"type":"enum","loc":["body","x%d"]},{"type":"enum","loc":["body","order_set","lab_test_ids",%d]}]}`, n, n)
		}, bulk.Options{}, "order_set.lab_test_ids.1 (enum)", bulk.Report{Pending: 300, Sent: 10}},
		{"after others", func(n int) string {
			if n <= 25 {
				return fmt.Sprintf(`{"detail":[{"type":"enum","loc":["body","x%d"]}]}`, n)
			}
			return same
		}, bulk.Options{}, "billing_type (enum)", bulk.Report{Rejected: 25, Pending: 275, Sent: 35}},
		{"no limit", func(int) string { return same }, bulk.Options{RejectionLimit: -1}, "", bulk.Report{Rejected: 300, Sent: 300}},
		{"orders in between", func(n int) string {
			if n%10 == 0 {
				return ""
			}
			return same
		}, bulk.Options{}, "", bulk.Report{Applied: 30, Rejected: 270, Sent: 300}},
		{"two types", func(n int) string { return strings.Replace(same, "enum", []string{"enum", "missing"}[n/9%2], 1) }, bulk.Options{}, "",
			bulk.Report{Rejected: 300, Sent: 300}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, j := &proxied{}, new(bulk.Memory)
				s.page = func(_ bool, n int, _ string) (int, string) {
					if text := test.page(n); text != "" {
						return 422, text
					}
					return 0, ""
				}
				test.opts.Concurrency = 1
				report, err := bulk.Run(t.Context(), s.client(t), from(numbered(300)), j, test.opts)
				if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v", err)
				}
				test.want.Records = 300
				checkCounts(t, report, test.want)
				if err == nil {
					return
				}
				s.page = nil
				test.want.Applied += test.want.Pending
				report, err = bulk.Run(t.Context(), s.client(t), from(numbered(300)), j, bulk.Options{})
				if err != nil || report.Applied != test.want.Applied || !report.Done() || int64(len(s.orders)) != test.want.Applied {
					t.Errorf("the corrected run: %v, %v, %d orders", report, err, len(s.orders))
				}
			})
		})
	}
}

// A user does not exist if the service says so, and not a proxy.
func TestUsersBehindAProxy(t *testing.T) {
	for text, want := range map[string]bool{`{"detail":"User not found"}`: true, `{"message":"Not Found"}`: false, "<html>Not Found</html>": false, "": false} {
		s := &proxied{page: func(bool, int, string) (int, string) { return 404, text }}
		id, err := bulk.NewUsers(t.Context(), s.client(t), bulk.Options{DryRun: true}).ID(labhealth.CreateUserBody{ClientUserID: "ada"})
		if (err == nil) != want || (id != uuid.Nil) != want {
			t.Errorf("%s: %v, %v", text, id, err)
		}
	}
}
