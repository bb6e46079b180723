package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labhealth/labhealth-go"
)

func TestWithCallRetry(t *testing.T) {
	down := []reply{{status: 503}, {status: 503}, {status: 503}, {status: 503}, {status: 503}}
	list := func(t *testing.T, client *labhealth.Client, opts ...labhealth.CallOption) {
		t.Helper()
		_, err := client.Orders.List(t.Context(), labhealth.ListOrdersParams{}, opts...)
		const text = "labhealth: GET /orders: 503 Service Unavailable (overloaded or under maintenance; try again later)"
		equal(t, text, strings.TrimSuffix(errorText(err), " (2 attempts)"))
	}
	synctest.Test(t, func(t *testing.T) {
		client, s := scripted(t, down, labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 2, MaxRetryAfter: time.Hour}))
		list(t, client)
		equal(t, 2, len(s.sent)) // the client's
		list(t, client, labhealth.WithCallRetry(labhealth.RetryPolicy{MaxAttempts: 1}))
		equal(t, 3, len(s.sent))
		list(t, client, labhealth.WithCallRetry(labhealth.RetryPolicy{BaseWait: time.Second}))
		equal(t, 5, len(s.sent)) // zero keeps the client's
	})
	for _, test := range []struct {
		name    string
		policy  labhealth.RetryPolicy
		asks    string
		waits   time.Duration
		repeats bool
	}{
		{"what was asked for", labhealth.RetryPolicy{MaxAttempts: 2}, "7", 7 * time.Second, true},
		{"beyond the default cap", labhealth.RetryPolicy{MaxAttempts: 2}, "61", 0, false},
		{"within a cap of one's own", labhealth.RetryPolicy{MaxAttempts: 2, MaxRetryAfter: time.Hour}, "61", 61 * time.Second, true},
		{"strict", labhealth.RetryPolicy{MaxAttempts: 2, Strict: true}, "7", 0, false},
		{"one attempt", labhealth.RetryPolicy{MaxAttempts: 1}, "7", 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, s := scripted(t, []reply{{status: 429, header: []string{"Retry-After", test.asks}}, {status: 200, body: placedJSON}})
				start := time.Now()
				_, err := client.Orders.Import(t.Context(), importBody(), labhealth.WithCallRetry(test.policy))
				equal(t, test.waits, time.Since(start))
				if test.repeats {
					equal(t, "", errorText(err))
					equal(t, s.sent[0], s.sent[1])
					return
				}
				equal(t, "labhealth: POST /v3/order/import: 429 Too Many Requests: rejected (the rate limit is reached: see WithRateLimit; try again in "+apiError(t, err).RetryAfter.String()+")", errorText(err))
				equal(t, test.asks+"s", fmt.Sprint(apiError(t, err).RetryAfter.Seconds())+"s")
				equal(t, labhealth.OutcomeRejected, labhealth.OutcomeOf(err))
			})
		})
	}
}

// Retries can be turned off for a client, for a call, and for writes after a 429.
func TestRetryOff(t *testing.T) {
	for _, row := range []struct {
		name   string
		client labhealth.RetryPolicy
		call   labhealth.RetryPolicy
		get    int
		write  int
	}{
		{"off for the client", labhealth.RetryPolicy{MaxAttempts: 1}, labhealth.RetryPolicy{}, 1, 1},
		{"off for the call", labhealth.RetryPolicy{}, labhealth.RetryPolicy{MaxAttempts: 1}, 1, 1},
		{"strict", labhealth.RetryPolicy{Strict: true}, labhealth.RetryPolicy{}, 3, 1},
		{"strict for the call", labhealth.RetryPolicy{}, labhealth.RetryPolicy{Strict: true}, 3, 1},
		{"two", labhealth.RetryPolicy{MaxAttempts: 2}, labhealth.RetryPolicy{}, 2, 2},
	} {
		for _, call := range faultCalls {
			row.client.BaseWait, row.client.MaxWait = 1, 1
			srv := startFaults(t, false, -1, respond(429, `{}`))
			var r labhealth.Response
			err := call.do(t, faultClient(t, srv.URL, nil, labhealth.WithRetry(row.client)), labhealth.WithCallRetry(row.call), labhealth.WithResponse(&r))
			want := row.write
			if call.method == "GET" {
				want = row.get
			}
			if r.Attempts != want || labhealth.OutcomeOf(err) != rejected {
				t.Errorf("%s, %s: %d attempts, want %d: %v", row.name, call.method, r.Attempts, want, err)
			}
		}
	}
}

func TestRetryWaits(t *testing.T) {
	at := func(d time.Duration, layout string) func() string {
		return func() string { return time.Now().Add(d).UTC().Format(layout) }
	}
	text := func(s string) func() string { return func() string { return s } }
	for _, row := range []struct {
		name    string
		after   func() string // nil for none
		waits   time.Duration // -1 for a backoff with jitter, -2 for returning immediately
		carried func(time.Duration) bool
	}{
		{"none", nil, -1, func(d time.Duration) bool { return d == 0 }},
		{"seconds", text("7"), 7 * time.Second, nil},
		{"seconds with spaces", text(" 7 "), 7 * time.Second, nil},
		{"none at all", text("0"), 0, nil},
		{"the cap", text("60"), time.Minute, nil},
		{"beyond the cap", text("61"), -2, func(d time.Duration) bool { return d == 61*time.Second }},
		{"IMF-fixdate", at(30*time.Second, http.TimeFormat), 30 * time.Second, nil},
		{"RFC 850", at(30*time.Second, "Monday, 02-Jan-06 15:04:05 GMT"), 30 * time.Second, nil},
		{"asctime", at(30*time.Second, time.ANSIC), 30 * time.Second, nil},
		{"date beyond the cap", at(2*time.Minute, http.TimeFormat), -2, func(d time.Duration) bool { return d == 2*time.Minute }},
		{"date in the past", at(-time.Hour, http.TimeFormat), -1, nil},
		{"the zero date", text("Thu, 01 Jan 1970 00:00:00 GMT"), -1, nil},
		{"year 9999", text("Fri, 31 Dec 9999 23:59:59 GMT"), -2, func(d time.Duration) bool { return d > 290*365*24*time.Hour }},
		{"negative", text("-5"), -2, func(d time.Duration) bool { return d < 0 }},
		{"overflow of a duration", text("9223372037"), -2, func(d time.Duration) bool { return d > 290*365*24*time.Hour }},
		{"overflow of 64 bits", text("99999999999999999999"), -2, func(d time.Duration) bool { return d > 290*365*24*time.Hour }},
		{"negative overflow", text("-99999999999999999999"), -2, func(d time.Duration) bool { return d < 0 }},
		{"fraction", text("1.5"), -1, nil},
		{"junk", text("soon"), -1, nil},
		{"date without zone", text("Fri, 31 Dec 2027 23:59:59"), -1, nil},
	} {
		for _, call := range faultCalls {
			t.Run(row.name+"/"+call.method, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					header := []string{}
					if row.after != nil {
						header = []string{"Retry-After", row.after()}
					}
					attempts := 0
					client := faultClient(t, testURL, roundTripper(func(r *http.Request) (*http.Response, error) {
						if attempts++; attempts == 1 {
							return responseTo(r, 429, `{}`, header...), nil
						}
						return responseTo(r, 200, faultResponse), nil
					}), labhealth.WithRetry(labhealth.RetryPolicy{BaseWait: 2 * time.Second, MaxWait: 3 * time.Second}))
					start := time.Now()
					err := call.do(t, client)
					took := time.Since(start)
					var api *labhealth.APIError
					switch {
					case row.waits == -2:
						if !errors.As(err, &api) || took != 0 || attempts != 1 || !row.carried(api.RetryAfter) {
							t.Errorf("%d attempts, %v, %v", attempts, took, err)
						}
					case row.waits == -1:
						if err != nil || took >= 2*time.Second || attempts != 2 {
							t.Errorf("%d attempts, %v, %v", attempts, took, err)
						}
					case err != nil || took != row.waits || attempts != 2:
						t.Errorf("%d attempts, %v, %v", attempts, took, err)
					}
				})
			})
		}
	}
}

// A date in Retry-After is one of the clock that the response has in its Date, however wrong it is.
func TestRetryAfterOfAnotherClock(t *testing.T) {
	const untilBackoff = -1
	imf := func(t time.Time) string { return t.UTC().Format(http.TimeFormat) }
	for _, row := range []struct {
		name   string
		behind time.Duration // the clock of the server
		after  time.Duration // of its clock
		date   func(time.Time) string
		waits  time.Duration
		error  time.Duration // RetryAfter of the error of a single attempt
	}{
		{"two seconds behind", 2 * time.Second, time.Second, imf, time.Second, time.Second},
		{"an hour behind", time.Hour, 30 * time.Second, imf, 30 * time.Second, 30 * time.Second},
		{"years behind", 30 * 8766 * time.Hour, 30 * time.Second, imf, 30 * time.Second, 30 * time.Second},
		{"30 seconds ahead", -30 * time.Second, 2 * time.Second, imf, 2 * time.Second, 2 * time.Second},
		{"a day ahead", -24 * time.Hour, 2 * time.Second, imf, 2 * time.Second, 2 * time.Second},
		{"a Date of RFC 850", time.Hour, 5 * time.Second, func(t time.Time) string { return t.UTC().Format("Monday, 02-Jan-06 15:04:05 GMT") }, 5 * time.Second, 5 * time.Second},
		{"a Date of asctime", time.Hour, 5 * time.Second, func(t time.Time) string { return t.UTC().Format(time.ANSIC) }, 5 * time.Second, 5 * time.Second},
		{"it has passed there", -time.Hour, -time.Second, imf, untilBackoff, -time.Second},
		{"it is now there", time.Hour, 0, imf, untilBackoff, 0},
		{"no Date", 0, 5 * time.Second, nil, 5 * time.Second, 5 * time.Second},
		{"no Date, and it has passed", 2 * time.Second, time.Second, nil, untilBackoff, -time.Second},
		{"an unreadable Date", 0, 5 * time.Second, func(time.Time) string { return "yesterday" }, 5 * time.Second, 5 * time.Second},
		{"a Date of another form", 0, 5 * time.Second, func(t time.Time) string { return t.Add(-time.Hour).Format(time.RFC3339) }, 5 * time.Second, 5 * time.Second},
	} {
		for _, call := range faultCalls {
			t.Run(row.name+"/"+call.method, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					attempts := 0
					client := faultClient(t, testURL, roundTripper(func(r *http.Request) (*http.Response, error) {
						if attempts++; attempts == 1 {
							clock := time.Now().Add(-row.behind)
							header := []string{"Retry-After", imf(clock.Add(row.after))}
							if row.date != nil {
								header = append(header, "Date", row.date(clock))
							}
							return responseTo(r, 429, `{}`, header...), nil
						}
						return responseTo(r, 200, faultResponse), nil
					}), labhealth.WithRetry(labhealth.RetryPolicy{BaseWait: 500 * time.Millisecond, MaxWait: 500 * time.Millisecond}))
					start := time.Now()
					err := call.do(t, client)
					took := time.Since(start)
					if row.waits == untilBackoff && took <= 500*time.Millisecond {
						took = untilBackoff
					}
					if err != nil || attempts != 2 || took != row.waits {
						t.Errorf("%d attempts, %v, want %v; %v", attempts, took, row.waits, err)
					}
					attempts = 0
					time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // a date has no fraction
					err = call.do(t, client, labhealth.WithCallRetry(labhealth.RetryPolicy{MaxAttempts: 1}))
					equal(t, row.error, apiError(t, err).RetryAfter)
				})
			})
		}
	}
}

// The pause of all calls after a 429 is that of the service's clock too.
func TestRateLimitPauseOfAnotherClock(t *testing.T) {
	for _, behind := range []time.Duration{time.Hour, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			attempts := 0
			client := faultClient(t, testURL, roundTripper(func(r *http.Request) (*http.Response, error) {
				if attempts++; attempts == 1 {
					clock := time.Now().Add(-behind).UTC()
					return responseTo(r, 429, `{}`, "Retry-After", clock.Add(7*time.Second).Format(http.TimeFormat), "Date", clock.Format(http.TimeFormat)), nil
				}
				return responseTo(r, 200, faultResponse), nil
			}), labhealth.WithRateLimit(1000, 10), labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 1}))
			start := time.Now()
			_, err := client.Orders.Get(t.Context(), faultOrderID)
			equal(t, true, errors.Is(err, labhealth.ErrRateLimited))
			_, err = client.Orders.Get(t.Context(), faultOrderID)
			equal(t, "", errorText(err))
			equal(t, 7*time.Second, time.Since(start))
		})
	}
}

func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now().UTC()
		for _, test := range []struct {
			status int
			header string
			want   time.Duration
		}{
			{429, "5", 5 * time.Second},
			{503, "120", 2 * time.Minute},
			{400, "1", time.Second},
			{429, now.Add(time.Hour).Format(http.TimeFormat), time.Hour},
			{429, now.Add(-time.Hour).Format(http.TimeFormat), -time.Hour},
			{429, "-7", -1},
			{429, "0", 0},
			{429, "soon", 0},
			{429, "", 0},
			{429, "99999999999999999999", 1<<63 - 1},
		} {
			client, s := respondingWith(t, test.status, "", "Retry-After", test.header)
			_, err := client.Orders.Import(t.Context(), importBody())
			equal(t, test.want, apiError(t, err).RetryAfter)
			s.only(t)
		}
	})
}

// The Retry-After of an error is that of the last response.
func TestRetryAfterOfLastResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := scripted(t, []reply{{status: 503, header: []string{"Retry-After", "5"}}, {status: 503}},
			labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 2}))
		_, err := client.Orders.Get(t.Context(), orderID)
		equal(t, 2, apiError(t, err).Attempts)
		equal(t, time.Duration(0), apiError(t, err).RetryAfter)
	})
}

// The backoff grows up to its bound, and is spread over all of it.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits [6][]time.Duration
		for range 300 {
			var last time.Time
			n := 0
			client := faultClient(t, testURL, roundTripper(func(r *http.Request) (*http.Response, error) {
				if n > 0 {
					waits[n-1] = append(waits[n-1], time.Since(last))
				}
				n++
				last = time.Now()
				return responseTo(r, 503, ``), nil
			}), labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 7, BaseWait: time.Second, MaxWait: 6 * time.Second}))
			client.Orders.Get(t.Context(), faultOrderID)
		}
		for i, most := range []time.Duration{1, 2, 4, 6, 6, 6} {
			most *= time.Second
			slices.Sort(waits[i])
			low, high := waits[i][0], waits[i][len(waits[i])-1]
			if high > most || high < most*9/10 || low > most/10 {
				t.Errorf("wait %d is from %v to %v, want 0 to %v", i+1, low, high, most)
			}
		}
		for _, p := range []labhealth.RetryPolicy{
			{BaseWait: 1<<63 - 1, MaxWait: 1<<63 - 1}, {BaseWait: 1 << 62, MaxWait: 1<<63 - 1, MaxAttempts: 100}, {BaseWait: time.Hour, MaxWait: 1},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			faultClient(t, testURL, roundTripper(func(r *http.Request) (*http.Response, error) { return responseTo(r, 503, ``), nil }),
				labhealth.WithRetry(p)).Orders.Get(ctx, faultOrderID)
			cancel()
		}
	})
}

// A wait beyond the deadline returns its response immediately.
func TestNoWaitPastDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := faultClient(t, testURL, roundTripper(func(r *http.Request) (*http.Response, error) {
			return responseTo(r, 429, `{}`, "Retry-After", "20"), nil
		}))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		start := time.Now()
		_, err := client.Orders.Import(ctx, faultImport())
		if time.Since(start) != 0 || !errors.Is(err, labhealth.ErrRateLimited) || labhealth.OutcomeOf(err) != rejected {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// All attempts send the bytes as they were at the call.
func TestRetrySendsSameBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bodies := make(chan string)
		attempt := 0
		client := faultClient(t, testURL, roundTripper(func(r *http.Request) (*http.Response, error) {
			body, _ := io.ReadAll(r.Body)
			bodies <- string(body)
			if attempt++; attempt == 1 {
				return responseTo(r, 429, `{}`, "Retry-After", "1"), nil
			}
			return responseTo(r, 200, faultResponse), nil
		}))
		body := faultImport()
		raw := []byte(`{"note":"before"}`)
		for _, call := range []func() error{
			func() error { _, err := client.Orders.Import(t.Context(), body); return err },
			func() error { return client.Do(t.Context(), "POST", "/v2/any", raw, nil) },
		} {
			attempt = 0
			done := make(chan error)
			go func() { done <- call() }()
			was := <-bodies
			synctest.Wait() // the retry waits now
			body.OrderSet.LabTestIDs[0][0] ^= 0xff
			copy(raw, `{"note":"after!"}`)
			if is := <-bodies; was != is {
				t.Errorf("first %s\nthen %s", was, is)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// A cookie jar changes the header of each attempt, and not that of later attempts.
func TestRetrySendsSameHeader(t *testing.T) {
	var headers []http.Header
	transport := roundTripper(func(r *http.Request) (*http.Response, error) {
		headers = append(headers, r.Header.Clone())
		return responseTo(r, 503, `{}`), nil
	})
	client := faultClient(t, testURL, nil, labhealth.WithHTTPClient(&http.Client{Transport: transport, Jar: oneCookie{}}))
	client.Orders.Get(t.Context(), faultOrderID)
	if len(headers) != 3 {
		t.Fatalf("%d attempts", len(headers))
	}
	equal(t, headers[0], headers[1])
	equal(t, headers[0], headers[2])
}

type oneCookie struct{ http.CookieJar }

func (oneCookie) Cookies(*url.URL) []*http.Cookie { return []*http.Cookie{{Name: "a", Value: "b"}} }

func (oneCookie) SetCookies(*url.URL, []*http.Cookie) {}

// With a key, the creation of an order is repeated, with the same key and bytes.
func TestIdempotencyKeyRepeats(t *testing.T) {
	for _, row := range []struct {
		fault   string
		inject  func(exchange) bool
		outcome labhealth.Outcome
	}{
		{"closed", func(x exchange) bool { x.raw().Close(); return true }, unknown},
		{"503", respond(503, `{}`), unknown},
		{"408", respond(408, `{}`), unknown},
		{"429", respond(429, `{}`), rejected},
	} {
		var mu sync.Mutex
		sent := map[string]int{}
		inject := func(x exchange) bool {
			mu.Lock()
			sent[x.req.Header.Get("X-Idempotency-Key")+" "+x.req.Header.Get("Content-Length")]++
			mu.Unlock()
			return row.inject(x)
		}
		srv := startFaults(t, false, -1, inject)
		var r labhealth.Response
		body := labhealth.CreateOrderBody{}
		_, err := faultClient(t, srv.URL, nil).Orders.Create(t.Context(), body, labhealth.WithoutValidation(), labhealth.WithIdempotencyKey("k-1"), labhealth.WithResponse(&r))
		mu.Lock()
		if r.Attempts != 3 || labhealth.OutcomeOf(err) != row.outcome || len(sent) != 1 {
			t.Errorf("%s: %d attempts, %v, sent %v", row.fault, r.Attempts, labhealth.OutcomeOf(err), sent)
		}
		mu.Unlock()
	}
}

// After an attempt with an unknown outcome, only success changes the outcome of a write.
func TestOutcomeOverAttempts(t *testing.T) {
	refused := func(r *http.Request) (*http.Response, error) {
		return (&http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("refused")
		}}).RoundTrip(r)
	}
	status := func(n int) roundTripper {
		return func(r *http.Request) (*http.Response, error) { return responseTo(r, n, `{}`), nil }
	}
	for _, row := range []struct {
		name  string
		steps [2]roundTripper
		get   labhealth.Outcome
		write labhealth.Outcome
	}{
		{"429, then refused", [2]roundTripper{status(429), refused}, rejected, rejected},
		{"429, then 500", [2]roundTripper{status(429), status(500)}, unknown, unknown},
		{"refused, then 422", [2]roundTripper{refused, status(422)}, rejected, rejected},
		{"refused, then refused", [2]roundTripper{refused, refused}, notSent, notSent},
		{"503, then 404", [2]roundTripper{status(503), status(404)}, rejected, unknown},
		{"503, then refused", [2]roundTripper{status(503), refused}, unknown, unknown},
	} {
		for _, write := range []bool{false, true} {
			n := -1
			client := faultClient(t, testURL, roundTripper(func(r *http.Request) (*http.Response, error) {
				n++
				return row.steps[n](r)
			}), labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 2}))
			want := row.get
			var err error
			if write {
				want = row.write
				_, err = client.Orders.Create(t.Context(), labhealth.CreateOrderBody{}, labhealth.WithoutValidation(), labhealth.WithIdempotencyKey("k"))
			} else {
				_, err = client.Orders.Get(t.Context(), faultOrderID)
			}
			if got := labhealth.OutcomeOf(err); got != want || n != 1 {
				t.Errorf("%s, write %v: %v after %d attempts, want %v", row.name, write, got, n+1, want)
			}
		}
	}
}

// A retry that is not made takes nothing from the budget.
func TestBudgetOfOtherCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		client := faultClient(t, testURL, roundTripper(func(r *http.Request) (*http.Response, error) {
			attempts++
			return responseTo(r, 503, `{}`, "Retry-After", "20"), nil
		}))
		for range 30 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			client.Orders.Get(ctx, faultOrderID)
			cancel()
		}
		equal(t, 30, attempts)
		client.Orders.Get(t.Context(), faultOrderID)
		equal(t, 33, attempts)
	})
}

// A total outage costs at most a hundred extra requests per thousand calls.
func TestOutage(t *testing.T) {
	srv := startFaults(t, false, -1, respond(503, `{}`))
	client := faultClient(t, srv.URL, nil)
	var calls sync.WaitGroup
	for range 10 {
		calls.Go(func() {
			for range 100 {
				client.Orders.Get(t.Context(), faultOrderID)
			}
		})
	}
	calls.Wait()
	extra := srv.commits.Load() - 1000
	t.Logf("%d extra requests", extra)
	if extra < 50 || extra > 100 {
		t.Errorf("%d extra requests, want 50 to 100", extra)
	}
}
