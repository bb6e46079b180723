// Command safety counts the orders that a service creates for one import while the network fails,
// with this library and with other clients, and writes the table of docs/promises.md:
//
//	go run -C integration ./safety
package main

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
	"net/http/httputil"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	restyv2 "github.com/go-resty/resty/v2"
	"github.com/hashicorp/go-retryablehttp"
	"github.com/imroc/req/v3"
	resty "resty.dev/v3"

	"github.com/labhealth/labhealth-go"
)

// document is relative to the module of this package.
const document = "../docs/promises.md"

var marked = regexp.MustCompile(`(?s)<!-- orders -->\n.*<!-- /orders -->`)

func main() {
	log.SetFlags(0)
	text, err := os.ReadFile(document)
	if err == nil {
		table := "<!-- orders -->\n" + table(context.Background()) + "<!-- /orders -->"
		err = os.WriteFile(document, marked.ReplaceAllLiteral(text, []byte(table)), 0o644)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// table measures each fault with each client, a row at a time.
func table(ctx context.Context) string {
	var b strings.Builder
	b.WriteString("| orders created by one import |")
	for _, c := range clients {
		b.WriteString(" " + c.label + " |")
	}
	b.WriteString("\n" + strings.Repeat("|---", len(clients)+1) + "|\n")
	for _, f := range faults {
		cells := make([]string, len(clients))
		var running sync.WaitGroup
		for i, c := range clients {
			running.Go(func() { cells[i] = measure(ctx, f, c) })
		}
		running.Wait()
		b.WriteString("| " + f.name + " | " + strings.Join(cells, " | ") + " |\n")
	}
	return b.String() + "\nMeasured with " + versions() + ".\n"
}

// versions names what go.mod requires.
func versions() string {
	text, err := os.ReadFile("go.mod")
	if err != nil {
		return err.Error()
	}
	list := []string{"Go 1.26 and 1.27"}
	for _, path := range []string{"github.com/hashicorp/go-retryablehttp", "resty.dev/v3", "github.com/go-resty/resty/v2", "github.com/imroc/req/v3"} {
		found := regexp.MustCompile(`(?m)^\s+` + path + ` v(\S+)$`).FindSubmatch(text)
		name := regexp.MustCompile(`(go-retryablehttp|resty|req)\b`).FindString(path)
		list = append(list, name+" "+string(found[1]))
	}
	return strings.Join(list, ", ")
}

// fault is what happens after the service has created the order of the first import, or of all.
type fault struct {
	name   string
	send   string         // the bytes of the response; {other} is the port of another service
	then   func(net.Conn) // what happens before the connection is closed; nil for nothing
	warm   bool           // the connection has served a request before
	always bool
	leaks  bool // the table has what another host received
}

const order = `{"order":{"id":"0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b"},"status":"success","message":"created"}`

var faults = []fault{
	{name: "the response is lost: the connection is closed"},
	{name: "the response is lost: the connection is reset", then: func(conn net.Conn) { conn.(*net.TCPConn).SetLinger(0) }},
	{name: "the response is lost on a kept-alive connection", warm: true},
	{name: "no response until the deadline", then: func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }}, // until the client closes it
	{name: "a proxy responds with 502", send: response("502 Bad Gateway", "", "{}")},
	{name: "503 to every request", send: response("503 Service Unavailable", "", "{}"), always: true},
	{name: "the response is truncated", send: response("200 OK", "", order)[:150]},
	{name: "a redirect (307) to another host: data sent to it", send: response("307 Temporary Redirect", "Location: http://localhost:{other}/\r\n", ""), leaks: true},
}

func response(status, header, body string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s", status, len(body), header, body)
}

// measure makes one import and returns the cell of the table.
func measure(ctx context.Context, f fault, c client) string {
	var mu sync.Mutex
	var orders int
	var leaked bytes.Buffer
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		received, _ := httputil.DumpRequest(r, true) // what was received before an error counts
		mu.Lock()
		defer mu.Unlock()
		leaked.Write(received)
	}))
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		mu.Lock()
		if r.Method == http.MethodPost && err == nil {
			orders++
		}
		fails := r.Method == http.MethodPost && (orders == 1 || f.always)
		mu.Unlock()
		if !fails {
			_, _ = io.WriteString(w, order) // the client may be gone
			return
		}
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, port, _ := net.SplitHostPort(other.Listener.Addr().String()) // of a TCP listener
		_, _ = io.WriteString(conn, strings.ReplaceAll(f.send, "{other}", port))
		if f.then != nil {
			f.then(conn)
		}
	}))
	outcome := c.do(ctx, service.URL, f.warm)
	service.Close() // when all that the client sent is counted
	other.Close()
	var secrets []string
	for _, secret := range [][2]string{{"key", apiKey}, {"patient", patient}} {
		if strings.Contains(leaked.String(), secret[1]) {
			secrets = append(secrets, secret[0])
		}
	}
	switch {
	case f.leaks && leaked.Len() == 0:
		return "nothing"
	case f.leaks:
		return "**" + strings.Join(secrets, ", ") + "**"
	case orders > 1:
		return fmt.Sprintf("**%d**", orders)
	case outcome != "":
		return fmt.Sprintf("%d, %s", orders, outcome)
	}
	return fmt.Sprint(orders)
}

// client imports one order with the defaults of its library, except for what its label says, and
// for shorter timeouts and waits. Only this library reports an outcome.
type client struct {
	label string
	do    func(ctx context.Context, url string, warm bool) (outcome string)
}

var clients = []client{
	{"this library", labhealthClient},
	{"net/http", plainClient("")},
	{"net/http with an `Idempotency-Key` header", plainClient("SAMPLE-1")},
	{"go-retryablehttp with its default policy", retryableClient},
	{"resty v3 with `SetRetryCount(3)`", restyClient},
	{"resty v2 with `SetRetryCount(3)`", restyV2Client},
	{"req with `SetCommonRetryCount(3)`", reqClient},
}

const (
	timeout = 2 * time.Second // of one attempt
	wait    = time.Millisecond
	apiKey  = "sk_us_canary"
	patient = "Canary"
	path    = "/v3/order/import"

	body = `{"user_id":"5f0f4a7e-8a3f-4b7b-9f0e-2f6d5c1b3a90","billing_type":"client_bill","sample_id":"SAMPLE-1",
		"order_set":{"lab_test_ids":["1d2e3f4a-5b6c-4d7e-8f90-a1b2c3d4e5f6"]},"collection_method":"testkit",
		"patient_details":{"first_name":"Canary","last_name":"Example","dob":"1990-05-06","gender":"female","phone_number":"+14155550123","email":"canary@example.com"},
		"patient_address":{"receiver_name":"Canary","first_line":"1 Example Street","city":"Monterey","state":"CA","zip":"93940","country":"US"}}`
)

func labhealthClient(ctx context.Context, url string, warm bool) string {
	client, err := labhealth.NewClient(apiKey, labhealth.WithBaseURL(url),
		labhealth.WithRetry(labhealth.RetryPolicy{BaseWait: wait, MaxWait: wait, ReadTimeout: timeout, WriteTimeout: timeout}))
	var order labhealth.ImportOrderBody
	if err == nil {
		err = json.Unmarshal([]byte(body), &order)
	}
	if err == nil && warm {
		err = client.Do(ctx, http.MethodGet, "/v2/providers", nil, nil)
	}
	if err != nil {
		return err.Error()
	}
	defer client.CloseIdleConnections()
	_, err = client.Orders.Import(ctx, order)
	return labhealth.OutcomeOf(err).String()
}

// plainClient uses net/http, with an idempotency key if there is one.
func plainClient(key string) func(context.Context, string, bool) string {
	return func(ctx context.Context, url string, warm bool) string {
		client := &http.Client{Transport: &http.Transport{}, Timeout: timeout}
		defer client.CloseIdleConnections()
		warmUp(ctx, client, url, warm)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+path, strings.NewReader(body))
		if err != nil {
			return err.Error()
		}
		r.Header.Set("X-Service-Api-Key", apiKey)
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		drain(client.Do(r))
		return ""
	}
}

// warmUp makes a request before the import, so that it has a connection to use.
func warmUp(ctx context.Context, client *http.Client, url string, warm bool) {
	if r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil); warm && err == nil {
		drain(client.Do(r))
	}
}

// drain reads a response, so that its connection can be used again.
func drain(resp *http.Response, err error) {
	if err == nil {
		_, _ = io.Copy(io.Discard, resp.Body) // a truncated response is one of the faults
		resp.Body.Close()
	}
}

func retryableClient(ctx context.Context, url string, warm bool) string {
	client := retryablehttp.NewClient()
	client.Logger, client.RetryWaitMin, client.RetryWaitMax, client.HTTPClient.Timeout = nil, wait, wait, timeout
	defer client.HTTPClient.CloseIdleConnections()
	warmUp(ctx, client.HTTPClient, url, warm)
	r, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, url+path, []byte(body))
	if err != nil {
		return err.Error()
	}
	r.Header.Set("X-Service-Api-Key", apiKey)
	drain(client.Do(r))
	return ""
}

func restyClient(ctx context.Context, url string, warm bool) string {
	client := resty.New().SetTimeout(timeout).SetRetryCount(3).SetRetryWaitTime(wait).SetRetryMaxWaitTime(wait).SetLogger(silent{})
	defer client.Client().CloseIdleConnections()
	warmUp(ctx, client.Client(), url, warm)
	_, _ = client.R().SetContext(ctx).SetHeader("X-Service-Api-Key", apiKey).SetBody([]byte(body)).Post(url + path) // the service counts
	return ""
}

func restyV2Client(ctx context.Context, url string, warm bool) string {
	client := restyv2.New().SetTimeout(timeout).SetRetryCount(3).SetRetryWaitTime(wait).SetRetryMaxWaitTime(wait).SetLogger(silent{})
	defer client.GetClient().CloseIdleConnections()
	warmUp(ctx, client.GetClient(), url, warm)
	_, _ = client.R().SetContext(ctx).SetHeader("X-Service-Api-Key", apiKey).SetBody([]byte(body)).Post(url + path) // the service counts
	return ""
}

func reqClient(ctx context.Context, url string, warm bool) string {
	client := req.C().SetTimeout(timeout).SetLogger(nil).SetCommonRetryCount(3).SetCommonRetryFixedInterval(wait)
	defer client.GetClient().CloseIdleConnections()
	warmUp(ctx, client.GetClient(), url, warm)
	_, _ = client.R().SetContext(ctx).SetHeader("X-Service-Api-Key", apiKey).SetBodyBytes([]byte(body)).Post(url + path) // the service counts
	return ""
}

// silent is a logger that writes nothing.
type silent struct{}

func (silent) Errorf(string, ...any) {}
func (silent) Warnf(string, ...any)  {}
func (silent) Debugf(string, ...any) {}
