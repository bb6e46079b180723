package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	restyv2 "github.com/go-resty/resty/v2"
	"github.com/google/uuid"
	"github.com/hashicorp/go-retryablehttp"
	"github.com/imroc/req/v3"
	resty "resty.dev/v3"

	"github.com/labhealth/labhealth-go"
)

// client makes calls. Each call has a new client, with the defaults of its library except for what
// its label says, and except for shorter timeouts and waits.
type client struct {
	flag    string
	label   string // in the tables
	module  string // whose version the tables name
	reports bool   // it reports an outcome
	do      func(context.Context, call) (report, error)
}

var clients = []client{
	{"labhealth", "this library", "", true, labhealthClient},
	{"nethttp", "net/http", "", false, plain("")},
	{"nethttp-key", "net/http with an `Idempotency-Key` header", "", false, plain("SAMPLE-1")},
	{"retryablehttp", "go-retryablehttp with its default policy", "github.com/hashicorp/go-retryablehttp", false, retryableClient},
	{"resty-plain", "resty v3", "resty.dev/v3", false, restyClient(0)},
	{"resty", "resty v3 with `SetRetryCount(3)`", "resty.dev/v3", false, restyClient(3)},
	{"resty-v2", "resty v2 with `SetRetryCount(3)`", "github.com/go-resty/resty/v2", false, restyV2Client},
	{"req-plain", "req", "github.com/imroc/req/v3", false, reqClient(0)},
	{"req", "req with `SetCommonRetryCount(3)`", "github.com/imroc/req/v3", false, reqClient(3)},
}

// labhealthClient calls the methods of this library.
func labhealthClient(ctx context.Context, c call) (report, error) {
	policy := labhealth.RetryPolicy{
		BaseWait: 1, MaxWait: 1, ReadTimeout: c.timeout(), WriteTimeout: c.timeout(),
		MaxRetryAfter: milliseconds(c.MaxRetryAfterMS), MaxAttempts: c.MaxAttempts,
	}
	client, err := labhealth.NewClient(c.APIKey, labhealth.WithBaseURL(c.BaseURL), labhealth.WithRetry(policy))
	if err != nil {
		return report{}, err
	}
	defer client.CloseIdleConnections()
	if c.Warm != "" {
		if err := client.Do(ctx, http.MethodGet, c.Warm, nil, nil); err != nil {
			return report{}, err
		}
	}
	id, err := callMethod(ctx, client, c)
	r := report{Outcome: labhealth.OutcomeOf(err).String()}
	if err == nil {
		r.ID = id.String()
	}
	return r, nil
}

// callMethod makes the call with the method for it, and returns the ID of the order.
func callMethod(ctx context.Context, client *labhealth.Client, c call) (uuid.UUID, error) {
	var resp *labhealth.PostOrderResponse
	var err error
	switch c.Call {
	case "read":
		order, err := client.Orders.Get(ctx, orderID(c.Request.Path))
		if err != nil {
			return uuid.Nil, err
		}
		return order.ID, nil
	case "import":
		var body labhealth.ImportOrderBody
		if err := json.Unmarshal([]byte(c.Request.Body), &body); err != nil {
			return uuid.Nil, err
		}
		resp, err = client.Orders.Import(ctx, body)
	case "create":
		var body labhealth.CreateOrderBody
		if err := json.Unmarshal([]byte(c.Request.Body), &body); err != nil {
			return uuid.Nil, err
		}
		key := labhealth.WithIdempotencyKey(c.Request.Headers["X-Idempotency-Key"])
		resp, err = client.Orders.Create(ctx, body, key)
	case "write":
		resp, err = client.Orders.Cancel(ctx, orderID(c.Request.Path))
	default:
		return uuid.Nil, fmt.Errorf("there is no call %q", c.Call)
	}
	if err != nil {
		return uuid.Nil, err
	}
	return resp.Order.ID, nil
}

// orderID returns the ID in the path of an order.
func orderID(path string) uuid.UUID {
	return uuid.MustParse(strings.Split(strings.TrimPrefix(path, "/v3/order/"), "/")[0])
}

// plain returns a client that uses net/http, with an idempotency key for imports if there is one.
func plain(key string) func(context.Context, call) (report, error) {
	return func(ctx context.Context, c call) (report, error) {
		client := http.Client{Transport: &http.Transport{}, Timeout: c.timeout()}
		defer client.CloseIdleConnections()
		if err := warm(ctx, &client, c); err != nil {
			return report{}, err
		}
		var body io.Reader
		if c.Request.Body != "" {
			body = strings.NewReader(c.Request.Body)
		}
		r, err := http.NewRequestWithContext(ctx, c.Request.Method, c.BaseURL+c.Request.Path, body)
		if err != nil {
			return report{}, err
		}
		for name, value := range c.headers() {
			r.Header.Set(name, value)
		}
		if key != "" && c.Call == "import" {
			r.Header.Set("Idempotency-Key", key)
		}
		return read(client.Do(r))
	}
}

// headers returns the headers of a request, with the API key.
func (c call) headers() map[string]string {
	headers := map[string]string{"X-Service-Api-Key": c.APIKey}
	for name, value := range c.Request.Headers {
		headers[name] = value
	}
	return headers
}

// warm makes the request that precedes the call, so that it has a connection to use.
func warm(ctx context.Context, client *http.Client, c call) error {
	if c.Warm == "" {
		return nil
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.BaseURL+c.Warm, nil)
	if err != nil {
		return err
	}
	_, err = read(client.Do(r))
	return err
}

// read reads a response. An error of the client is a report without an ID.
func read(resp *http.Response, err error) (report, error) {
	if err != nil {
		return report{}, nil //nolint:nilerr // the client does not say what happened
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return reportOf(resp.StatusCode, body, err), nil
}

// reportOf returns the ID of the order in a successful response.
func reportOf(statusCode int, body []byte, err error) report {
	var document struct {
		Order struct {
			ID string `json:"id"`
		} `json:"order"`
	}
	if err != nil || statusCode < 200 || statusCode > 299 || json.Unmarshal(body, &document) != nil {
		return report{}
	}
	return report{ID: document.Order.ID}
}

func retryableClient(ctx context.Context, c call) (report, error) {
	client := retryablehttp.NewClient()
	client.Logger, client.RetryWaitMin, client.RetryWaitMax = nil, time.Millisecond, time.Millisecond
	client.RetryMax = c.retries(client.RetryMax)
	client.HTTPClient.Timeout = c.timeout()
	defer client.HTTPClient.CloseIdleConnections()
	if err := warm(ctx, client.HTTPClient, c); err != nil {
		return report{}, err
	}
	var body any
	if c.Request.Body != "" {
		body = []byte(c.Request.Body)
	}
	r, err := retryablehttp.NewRequestWithContext(ctx, c.Request.Method, c.BaseURL+c.Request.Path, body)
	if err != nil {
		return report{}, err
	}
	for name, value := range c.headers() {
		r.Header.Set(name, value)
	}
	return read(client.Do(r))
}

func restyClient(retries int) func(context.Context, call) (report, error) {
	return func(ctx context.Context, c call) (report, error) {
		client := resty.New().SetTimeout(c.timeout()).SetRetryCount(c.retries(retries)).SetLogger(silent{}).
			SetRetryWaitTime(time.Millisecond).SetRetryMaxWaitTime(time.Millisecond)
		defer client.Client().CloseIdleConnections()
		if err := warm(ctx, client.Client(), c); err != nil {
			return report{}, err
		}
		// resty does not apply its timeout to a context that has a deadline.
		r := client.R().SetContext(withoutDeadline{ctx}).SetHeaders(c.headers())
		if c.Request.Body != "" {
			r.SetBody([]byte(c.Request.Body))
		}
		resp, err := r.Execute(c.Request.Method, c.BaseURL+c.Request.Path)
		if err != nil {
			return report{}, nil //nolint:nilerr // as in read
		}
		return reportOf(resp.StatusCode(), resp.Bytes(), nil), nil
	}
}

func restyV2Client(ctx context.Context, c call) (report, error) {
	client := restyv2.New().SetTimeout(c.timeout()).SetRetryCount(c.retries(3)).SetLogger(silent{}).
		SetRetryWaitTime(time.Millisecond).SetRetryMaxWaitTime(time.Millisecond)
	defer client.GetClient().CloseIdleConnections()
	if err := warm(ctx, client.GetClient(), c); err != nil {
		return report{}, err
	}
	r := client.R().SetContext(ctx).SetHeaders(c.headers())
	if c.Request.Body != "" {
		r.SetBody([]byte(c.Request.Body))
	}
	resp, err := r.Execute(c.Request.Method, c.BaseURL+c.Request.Path)
	if err != nil {
		return report{}, nil //nolint:nilerr // as in read
	}
	return reportOf(resp.StatusCode(), resp.Body(), nil), nil
}

func reqClient(retries int) func(context.Context, call) (report, error) {
	return func(ctx context.Context, c call) (report, error) {
		client := req.C().SetTimeout(c.timeout()).SetLogger(nil)
		if retries > 0 {
			client.SetCommonRetryCount(c.retries(retries)).SetCommonRetryFixedInterval(time.Millisecond)
		}
		defer client.GetClient().CloseIdleConnections()
		if c.Warm != "" {
			if _, err := client.R().SetContext(ctx).Get(c.BaseURL + c.Warm); err != nil {
				return report{}, err
			}
		}
		r := client.R().SetContext(ctx).SetHeaders(c.headers())
		if c.Request.Body != "" {
			r.SetBodyBytes([]byte(c.Request.Body))
		}
		resp, err := r.Send(c.Request.Method, c.BaseURL+c.Request.Path)
		if err != nil {
			return report{}, nil //nolint:nilerr // as in read
		}
		return reportOf(resp.StatusCode, resp.Bytes(), nil), nil
	}
}

// withoutDeadline is a context that ends without saying when.
type withoutDeadline struct{ context.Context }

func (withoutDeadline) Deadline() (time.Time, bool) { return time.Time{}, false }

// silent is a logger that writes nothing.
type silent struct{}

func (silent) Errorf(string, ...any) {}
func (silent) Warnf(string, ...any)  {}
func (silent) Debugf(string, ...any) {}
