package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labhealth/labhealth-go"
)

// observedCalls returns an observer and the calls that it has seen.
func observedCalls() (labhealth.Option, *[]labhealth.Call) {
	calls := &[]labhealth.Call{}
	return labhealth.WithCallObserver(labhealth.CallObserver{End: func(_ context.Context, c labhealth.Call) {
		*calls = append(*calls, c)
	}}), calls
}

// Observers nest: the first one starts first and ends last, each with its own context. The requests
// and the observers of attempts have the innermost one.
func TestCallObserversNest(t *testing.T) {
	type key struct{}
	var seen []string
	at := func(ctx context.Context) string { return fmt.Sprint(ctx.Value(key{})) }
	observer := func(name string) labhealth.Option {
		return labhealth.WithCallObserver(labhealth.CallObserver{
			Start: func(ctx context.Context, op string, _ http.Header) context.Context {
				seen = append(seen, fmt.Sprintf("start %s in %s: %s", name, at(ctx), op))
				return context.WithValue(ctx, key{}, name)
			},
			End: func(ctx context.Context, c labhealth.Call) {
				seen = append(seen, fmt.Sprintf("end %s in %s: %d attempts", name, at(ctx), len(c.Attempts)))
			},
		})
	}
	transport := roundTripper(func(r *http.Request) (*http.Response, error) {
		seen = append(seen, "request in "+at(r.Context()))
		return responseTo(r, 200, `{"orders":[]}`), nil
	})
	client := faultClient(t, testURL, transport,
		observing(func(ctx context.Context, _ labhealth.Attempt) { seen = append(seen, "attempt in "+at(ctx)) }),
		labhealth.WithCallObserver(labhealth.CallObserver{End: func(ctx context.Context, _ labhealth.Call) { seen = append(seen, "end only in "+at(ctx)) }}),
		observer("A"), observer("B"),
		labhealth.WithCallObserver(labhealth.CallObserver{Start: func(context.Context, string, http.Header) context.Context { return nil }}))
	_, err := client.Orders.List(context.WithValue(t.Context(), key{}, "caller"), labhealth.ListOrdersParams{})
	equal(t, nil, err)
	equal(t, []string{
		"start A in caller: GET /orders", "start B in A: GET /orders", "request in B", "attempt in B",
		"end B in B: 1 attempts", "end A in A: 1 attempts", "end only in B",
	}, seen)
}

func TestCallObserverFields(t *testing.T) {
	option, calls := observedCalls()
	const id = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
	client, _ := scripted(t, []reply{
		{status: 503, header: []string{"Retry-After", "0"}}, {status: 200, body: `{"orders":[]}`, header: []string{"Traceresponse", id}},
		{status: 404, body: "Ada Example"},
		{status: 503, header: []string{"Retry-After", "0"}}, {err: io.EOF},
		{status: 200, body: pdf},
	}, option, labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 2, BaseWait: 1, MaxWait: 1}))
	ctx := t.Context()
	_, _ = client.Orders.List(ctx, labhealth.ListOrdersParams{})
	_, _ = client.Orders.Get(ctx, orderID)
	_, _ = client.Orders.Get(ctx, orderID)
	_, _ = client.Orders.RequisitionPDF(ctx, orderID, io.Discard)
	_, _ = client.Orders.RequisitionPDF(ctx, orderID, nil)
	_, _ = client.Orders.Import(ctx, labhealth.ImportOrderBody{})
	_ = client.Do(ctx, "GET", "no/slash", nil, nil)
	_ = client.Do(ctx, "POST", "/", make(chan int), nil)
	got := []string{}
	for _, c := range *calls {
		if c.Start.IsZero() || c.Duration < 0 || c.Host != "api.example.com" {
			t.Errorf("%s at %v for %v to %s", c.Op, c.Start, c.Duration, c.Host)
		}
		attempts := []string{}
		for _, a := range c.Attempts {
			attempts = append(attempts, fmt.Sprint(a.Number, " ", a.StatusCode, " ", a.Repeated, " ", a.Wait))
		}
		got = append(got, fmt.Sprintf("%s | %s | %d | %s | %v | %v", c.Op, strings.Join(attempts, ", "), c.StatusCode, c.RequestID, c.Outcome, c.Err))
	}
	equal(t, []string{
		"GET /orders | 1 503 true 0s, 2 200 false 0s | 200 | " + id + " | applied | <nil>",
		"GET /v3/order/{order_id} | 1 404 false 0s | 404 |  | rejected | labhealth: GET /v3/order/{order_id}: 404 Not Found: rejected " +
			"(the path or an ID does not exist: check the base URL, WithPath, the IDs and the environment; APIError.Message has the service's text)",
		"GET /v3/order/{order_id} | 1 503 true 0s, 2 0 false 0s | 0 |  | unknown | labhealth: GET /v3/order/{order_id}: the connection was closed while waiting for the response (2 attempts)",
		"GET /v3/order/{order_id}/requisition/pdf | 1 200 false 0s | 200 |  | applied | <nil>",
		"GET /v3/order/{order_id}/requisition/pdf |  | 0 |  | not sent | labhealth: GET /v3/order/{order_id}/requisition/pdf: not sent: w must not be nil",
	}, got[:5])
	for i, want := range []string{"POST /v3/order/import |  | 0 |  | not sent | ", "GET (Do) |  | 0 |  | not sent | ", "POST (Do) |  | 0 |  | not sent | "} {
		if !strings.HasPrefix(got[5+i], want) {
			t.Errorf("%s, want %s", got[5+i], want)
		}
	}
}

// Attempts and calls in a record have the text of their error, also in handlers that encode JSON.
func TestLogValues(t *testing.T) {
	option, calls := observedCalls()
	client, _ := scripted(t, []reply{{err: errors.New("Ada Example")}}, option)
	_, _ = client.Orders.Import(t.Context(), importBody())
	call := (*calls)[0]
	call.Duration, call.Attempts[0].Duration, call.Attempts[0].Start = 0, 0, time.Time{}
	var logged bytes.Buffer
	l := slog.New(slog.NewJSONHandler(&logged, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	l.Info("m", "call", call, "attempt", call.Attempts[0], "attempts", call.Attempts)
	const failed = `the http.RoundTripper failed: see TransportError.Cause"`
	equal(t, `{"level":"INFO","msg":"m","call":{"op":"POST /v3/order/import","attempts":1,"duration":0,"outcome":"unknown","failure":"other",`+
		`"error":"labhealth: POST /v3/order/import: the http.RoundTripper failed: outcome unknown (see TransportError.Cause; check whether it took effect before you repeat it)"},`+
		`"attempt":{"op":"POST /v3/order/import","attempt":1,"duration":0,"outcome":"unknown","failure":"other","error":"`+failed+`},`+
		`"attempts":[{"Op":"POST /v3/order/import","Number":1,"StatusCode":0,"Start":"0001-01-01T00:00:00Z","Duration":0,"Wait":0,"Repeated":false,`+
		`"RequestID":"","Outcome":0,"Err":"`+failed+`}]}`+"\n", logged.String())
}

// Each page of an iterator is a call.
func TestCallObserverPages(t *testing.T) {
	option, calls := observedCalls()
	page := `{"users":[{"user_id":"%s"}],"total":2,"offset":%d,"limit":1}`
	client, _ := scripted(t, []reply{
		{status: 200, body: fmt.Sprintf(page, "c1b7e0d4-58a2-4f9e-8d36-90f5b2a4e617", 0)},
		{status: 200, body: fmt.Sprintf(page, "5d2a8f31-b6c4-4e07-a9d8-13f7c05e6b42", 1)},
	}, option)
	for _, err := range client.Users.All(t.Context(), labhealth.ListUsersParams{Limit: 1}) {
		equal(t, nil, err)
	}
	equal(t, 2, len(*calls))
}

// What an observer adds is sent with every attempt, unless the client or the call sets it.
func TestCallObserverHeaders(t *testing.T) {
	var kept http.Header
	start := func(ctx context.Context, _ string, h http.Header) context.Context {
		equal(t, http.Header{}, h)
		h["traceparent"] = []string{"00-01"}
		h.Set("X-Tenant", "observer")
		h.Set("X-Call", "observer")
		for _, name := range []string{"X-Service-Api-Key", "x-management-key", "Authorization", "Accept", "Content-Type", "X-Idempotency-Key", "Host"} {
			h[name] = []string{"observer"}
		}
		h["Bad Name"] = []string{"x"}
		h["X-Bad"] = []string{"a\r\nb"}
		kept = h
		return ctx
	}
	client, s := scripted(t, []reply{{status: 503, header: []string{"Retry-After", "0"}}, {status: 200, body: `{}`}},
		labhealth.WithDefaultHeader("x-tenant", "client"), labhealth.WithDefaultHeader("X-Many", "1"), labhealth.WithDefaultHeader("X-Many", "2"), labhealth.WithDefaultHeader("X-Call", "client"),
		labhealth.WithCallObserver(labhealth.CallObserver{Start: start}),
		observing(func(context.Context, labhealth.Attempt) { kept.Set("X-Late", "observer") }),
		labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 2, BaseWait: 1, MaxWait: 1}))
	equal(t, nil, client.Do(t.Context(), "GET", "/v2/providers", nil, nil, labhealth.WithHeader("X-Call", "a"), labhealth.WithHeader("x-call", "b")))
	equal(t, 2, len(s.sent))
	for _, sent := range s.sent {
		equal(t, http.Header{
			"Accept": {"application/json"}, "User-Agent": {"labhealth-go/0.1.0"}, "X-Service-Api-Key": {testKey},
			"Traceparent": {"00-01"}, "X-Tenant": {"observer"}, "X-Many": {"1", "2"}, "X-Call": {"a", "b"},
		}, sent.Header)
	}
}

func TestWithDefaultHeader(t *testing.T) {
	client, s := scripted(t, []reply{{status: 200, body: `{}`}, {status: 200, body: `{}`}}, labhealth.WithDefaultHeader("X-Tenant", "a"))
	equal(t, nil, client.Do(t.Context(), "GET", "/x", nil, nil, labhealth.WithHeader("X-Tenant", "b")))
	equal(t, nil, client.Do(t.Context(), "GET", "/x", nil, nil))
	equal(t, []string{"b"}, s.sent[0].Header["X-Tenant"])
	equal(t, []string{"a"}, s.sent[1].Header["X-Tenant"])
	for name, want := range map[string]string{
		"x-service-api-key": "labhealth: WithDefaultHeader: X-Service-Api-Key is set by the client",
		"Authorization":     "labhealth: WithDefaultHeader: Authorization is set by the client",
		"accept":            "labhealth: WithDefaultHeader: Accept is set by the client",
		"Ada Example":       "labhealth: WithDefaultHeader needs a name and a value that can be sent",
		"":                  "labhealth: WithDefaultHeader needs a name and a value that can be sent",
	} {
		_, err := labhealth.NewClient(testKey, labhealth.WithBaseURL(testURL), labhealth.WithDefaultHeader(name, "Ada Example"))
		equal(t, want, errorText(err))
	}
	_, err := labhealth.NewClient(testKey, labhealth.WithBaseURL(testURL), labhealth.WithDefaultHeader("X-Tenant", "Ada\nExample"))
	equal(t, "labhealth: WithDefaultHeader needs a name and a value that can be sent", errorText(err))
}

// A panic reaches the caller, and everything that was started ends.
func TestObserversPanic(t *testing.T) {
	for _, where := range []string{"start", "attempt", "end"} {
		t.Run(where, func(t *testing.T) {
			panicking := true
			fail := func(here string) {
				if panicking && here == where {
					panic("Ada Example")
				}
			}
			var ended []string
			end := func(_ context.Context, c labhealth.Call) {
				ended = append(ended, fmt.Sprint(len(c.Attempts), " ", c.Outcome, " ", c.Err))
			}
			client, _ := scripted(t, []reply{{status: 200, body: `{"orders":[]}`}, {status: 200, body: `{"orders":[]}`}},
				labhealth.WithCallObserver(labhealth.CallObserver{End: end}),
				labhealth.WithCallObserver(labhealth.CallObserver{
					Start: func(ctx context.Context, _ string, _ http.Header) context.Context { fail("start"); return ctx },
					End:   func(context.Context, labhealth.Call) { fail("end") },
				}),
				observing(func(context.Context, labhealth.Attempt) { fail("attempt") }))
			var recovered any
			func() {
				defer func() { recovered = recover() }()
				_, _ = client.Orders.List(t.Context(), labhealth.ListOrdersParams{})
			}()
			equal(t, any("Ada Example"), recovered)
			equal(t, []string{map[string]string{
				"start":   "0 unknown labhealth: the call did not return",
				"attempt": "1 unknown labhealth: the call did not return",
				"end":     "1 applied <nil>",
			}[where]}, ended)
			panicking = false
			_, err := client.Orders.List(t.Context(), labhealth.ListOrdersParams{})
			equal(t, nil, err)
		})
	}
}

// An observer may cancel the context: then no other attempt follows.
func TestObserverCancels(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client, s := scripted(t, []reply{{status: 503, header: []string{"Retry-After", "0"}}, {status: 200, body: `{"orders":[]}`}},
		observing(func(context.Context, labhealth.Attempt) { cancel() }), labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 3}))
	_, err := client.Orders.List(ctx, labhealth.ListOrdersParams{})
	equal(t, "labhealth: GET /orders: canceled before another attempt; the last response had status 503", errorText(err))
	equal(t, 1, len(s.sent))
	equal(t, true, errors.Is(err, context.Canceled) && errors.Is(err, labhealth.ErrServer))
}

// Do has the operation of the method with the same path, and never a part of the path.
func TestOperationOfDo(t *testing.T) {
	option, calls := observedCalls()
	transport := roundTripper(func(r *http.Request) (*http.Response, error) {
		*calls = append(*calls, labhealth.Call{Op: labhealth.Operation(r.Context())})
		return responseTo(r, 200, `{}`), nil
	})
	client := faultClient(t, testURL, transport, option, labhealth.WithPath("GET /orders", "/v3/orders"))
	id := orderID.String()
	for _, row := range []struct{ method, path, op string }{
		{"GET", "/v3/order/" + id, "GET /v3/order/{order_id}"},
		{"PATCH", "/v3/order/" + id, "PATCH /v3/order/{order_id}"},
		{"DELETE", "/v3/order/" + id, "DELETE (Do)"},
		{"GET", "/v3/order/" + id + "/", "GET (Do)"},
		{"GET", "/v3/orders", "GET /orders"},
		{"GET", "/orders", "GET (Do)"},
		{"HEAD", "/v3/orders", "HEAD (Do)"},
		{"GET", "/v3/order/something", "GET (Do)"}, // an operation that is not known
		{"POST", "/v3/order/import", "POST /v3/order/import"},
		{"GET", "/v2/user/resolve/ada", "GET /v2/user/resolve/{client_user_id}"},
		{"GET", "/v3/order/psc/info", "GET /v3/order/psc/info"},
		{"GET", "/v3/order/" + id + "/psc/info", "GET /v3/order/{order_id}/psc/info"},
		{"DELETE", "/v2/user/" + id + "/oura", "DELETE /v2/user/{user_id}/{provider}"},
		{"DELETE", "/v2/user/" + id + "/", "DELETE (Do)"},
		{"GET", "/%76%33/order/" + id, "GET (Do)"},
		{"GET", "/", "GET (Do)"},
	} {
		*calls = nil
		var body any
		if row.method != "GET" && row.method != "HEAD" {
			body = map[string]any{}
		}
		equal(t, nil, client.Do(t.Context(), row.method, row.path, body, nil))
		for _, call := range *calls {
			if call.Op != row.op {
				t.Errorf("%s %s: %s, want %s", row.method, row.path, call.Op, row.op)
			}
		}
	}
}

// logRecord is a record of the JSON handler, without the time and the duration.
func logRecords(t *testing.T, text string) []string {
	t.Helper()
	var records []string
	for line := range strings.Lines(text) {
		var record struct {
			Level, Msg string
			Labhealth  map[string]any
		}
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if _, ok := record.Labhealth["duration"].(float64); !ok {
			t.Errorf("no duration in %s", line)
		}
		attrs := []string{}
		for name, value := range record.Labhealth {
			if name != "duration" && name != "error" {
				attrs = append(attrs, fmt.Sprintf("%s=%v", name, value))
			}
		}
		slices.Sort(attrs)
		records = append(records, strings.Join(append([]string{record.Level, record.Msg}, attrs...), " "))
	}
	return records
}

// A failure is one warning. The attributes fit a group.
func TestLogLevels(t *testing.T) {
	ok, unavailable := reply{status: 200, body: `{"orders":[]}`}, reply{status: 503, header: []string{"Retry-After", "1"}}
	list := func(ctx context.Context, c *labhealth.Client) error {
		_, err := c.Orders.List(ctx, labhealth.ListOrdersParams{})
		return err
	}
	post := func(ctx context.Context, c *labhealth.Client) error { return c.Do(ctx, "POST", "/x", nil, nil) }
	canceling := func(call func(context.Context, *labhealth.Client) error) func(context.Context, *labhealth.Client) error {
		return func(ctx context.Context, c *labhealth.Client) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return call(ctx, c)
		}
	}
	for _, row := range []struct {
		name    string
		replies []reply
		call    func(context.Context, *labhealth.Client) error
		want    []string
	}{
		{"success", []reply{ok}, list, []string{
			"DEBUG labhealth attempt attempt=1 op=GET /orders outcome=applied status=200",
			"DEBUG labhealth call attempts=1 op=GET /orders outcome=applied status=200",
		}},
		{"repeated", []reply{unavailable, ok}, list, []string{
			"INFO labhealth attempt attempt=1 op=GET /orders status=503 wait=1e+09",
			"DEBUG labhealth attempt attempt=2 op=GET /orders outcome=applied status=200",
			"DEBUG labhealth call attempts=2 op=GET /orders outcome=applied status=200",
		}},
		{"failed", []reply{unavailable, {err: io.EOF}}, list, []string{
			"INFO labhealth attempt attempt=1 op=GET /orders status=503 wait=1e+09",
			"DEBUG labhealth attempt attempt=2 failure=connection_closed op=GET /orders",
			"WARN labhealth call attempts=2 failure=connection_closed op=GET /orders",
		}},
		{"404 of a read", []reply{{status: 404}}, list, []string{
			"DEBUG labhealth attempt attempt=1 op=GET /orders outcome=rejected status=404",
			"INFO labhealth call attempts=1 op=GET /orders outcome=rejected status=404",
		}},
		{"404 of a write", []reply{{status: 404}}, post, []string{
			"DEBUG labhealth attempt attempt=1 op=POST (Do) outcome=rejected status=404",
			"WARN labhealth call attempts=1 op=POST (Do) outcome=rejected status=404",
		}},
		{"unreadable", []reply{{status: 200, body: "<html>"}}, list, []string{
			"DEBUG labhealth attempt attempt=1 failure=response_unreadable op=GET /orders status=200",
			"WARN labhealth call attempts=1 failure=response_unreadable op=GET /orders status=200",
		}},
		{"canceled before", nil, canceling(post), []string{
			"INFO labhealth call attempts=0 failure=canceled op=POST (Do) outcome=not sent",
		}},
		{"canceled read", []reply{{err: context.Canceled}}, func(ctx context.Context, c *labhealth.Client) error {
			_, err := c.Orders.List(ctx, labhealth.ListOrdersParams{}, labhealth.WithCallRetry(labhealth.RetryPolicy{MaxAttempts: 1}))
			return err
		}, []string{
			"DEBUG labhealth attempt attempt=1 failure=canceled op=GET /orders",
			"INFO labhealth call attempts=1 failure=canceled op=GET /orders",
		}},
		{"canceled write", []reply{{err: context.Canceled}}, post, []string{
			"DEBUG labhealth attempt attempt=1 failure=canceled op=POST (Do) outcome=unknown",
			"WARN labhealth call attempts=1 failure=canceled op=POST (Do) outcome=unknown",
		}},
		{"invalid", nil, func(ctx context.Context, c *labhealth.Client) error { return c.Do(ctx, "GET", "x", nil, nil) }, []string{
			"WARN labhealth call attempts=0 op=GET (Do) outcome=not sent",
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var text bytes.Buffer
				logger := slog.New(slog.NewJSONHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))
				client, _ := scripted(t, row.replies, labhealth.WithLogger(logger.WithGroup("labhealth")), labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 2}))
				_ = row.call(t.Context(), client)
				equal(t, row.want, logRecords(t, text.String()))
			})
		})
	}
}

// strictHandler checks the records as testing/slogtest asks handlers to be used.
type strictHandler struct {
	t     *testing.T
	level slog.Level
	seen  *int
}

func (h strictHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return ctx != nil && level >= h.level
}

func (h strictHandler) Handle(_ context.Context, r slog.Record) error {
	*h.seen++
	if r.Level < h.level || r.Time.IsZero() {
		h.t.Errorf("a record of level %v at %v", r.Level, r.Time)
	}
	names := map[string]bool{}
	r.Attrs(func(a slog.Attr) bool {
		switch a.Value.Kind() {
		case slog.KindString, slog.KindInt64, slog.KindDuration:
		default:
			h.t.Errorf("%s is a %v", a.Key, a.Value.Kind()) // a handler would resolve, encode or unwrap it
		}
		if names[a.Key] {
			h.t.Errorf("%s occurs twice", a.Key)
		}
		names[a.Key] = true
		return true
	})
	return errors.New("the handler fails")
}

func (h strictHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h strictHandler) WithGroup(string) slog.Handler      { return h }

func TestLogHandlers(t *testing.T) {
	for level, want := range map[slog.Level]int{slog.LevelDebug: 3, slog.LevelInfo: 2, slog.LevelWarn: 1, slog.LevelError: 0} {
		seen := 0
		client, _ := scripted(t, []reply{{status: 503, header: []string{"Retry-After", "0"}}, {err: io.EOF}},
			labhealth.WithLogger(slog.New(strictHandler{t, level, &seen})), labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 2}))
		_, err := client.Orders.List(t.Context(), labhealth.ListOrdersParams{})
		if err == nil || seen != want {
			t.Errorf("%v: %d records, want %d", level, seen, want)
		}
	}
}

// A call ends with the context of its caller, also if an observer replaces it.
func TestObserverReplacesContext(t *testing.T) {
	for name, replacement := range map[string]func(context.Context) context.Context{
		"another":  func(context.Context) context.Context { return context.Background() },
		"detached": context.WithoutCancel,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := must[*labhealth.Client](t)(labhealth.NewClient(testKey, labhealth.WithBaseURL(testURL),
					labhealth.WithHTTPClient(&http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
						<-r.Context().Done()
						return nil, r.Context().Err()
					})}),
					labhealth.WithCallObserver(labhealth.CallObserver{Start: func(ctx context.Context, _ string, _ http.Header) context.Context { return replacement(ctx) }})))
				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				err := client.Do(ctx, "POST", "/x", nil, nil)
				equal(t, true, errors.Is(err, context.DeadlineExceeded))
				ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
				time.AfterFunc(time.Second, cancel)
				err = client.Do(ctx, "POST", "/x", nil, nil)
				equal(t, labhealth.FailureCanceled, labhealth.FailureOf(err))
				ctx, cancel = context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				err = client.Do(ctx, "POST", "/x", nil, nil)
				equal(t, labhealth.FailureCanceled, labhealth.FailureOf(err))
				equal(t, 3*time.Second, time.Since(start))
			})
		})
	}
}

// A handler of log/slog that encodes a call to JSON does not show whom a new user conflicts with.
func TestCallAsJSON(t *testing.T) {
	const id = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
	var out bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&out, nil))
	client := must[*labhealth.Client](t)(labhealth.NewClient(testKey, labhealth.WithBaseURL(testURL),
		labhealth.WithHTTPClient(&http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			return responseTo(r, 400, `{"detail":{"error_type":"INVALID_REQUEST","error_message":"Client user id already exists.","user_id":"`+id+`","created_on":"2024-01-31T00:00:00Z"}}`), nil
		})}),
		labhealth.WithCallObserver(labhealth.CallObserver{End: func(_ context.Context, c labhealth.Call) { logger.Info("call", "call", c) }})))
	_, err := client.Users.Create(t.Context(), labhealth.CreateUserBody{ClientUserID: "a"})
	conflict, ok := errors.AsType[*labhealth.UserConflictError](err)
	equal(t, true, ok && conflict.UserID.String() == id)
	if out.Len() == 0 || strings.Contains(out.String(), id) {
		t.Error(out.String())
	}
}
