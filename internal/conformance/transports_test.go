package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	"github.com/labhealth/labhealth-go"
)

// foreignTransports are what programs put around net/http's transport, in forms that could carry a
// write out twice. Each makes its http.RoundTripper of inner, which leads to the server, and dead,
// which leads nowhere.
var foreignTransports = []struct {
	name   string
	hidden bool // it sends what no hook of net/http sees, so that nobody can stop it
	make   func(inner, dead http.RoundTripper) roundTripper
}{
	{"passes on", false, func(inner, _ http.RoundTripper) roundTripper { return inner.RoundTrip }},
	{"retries after 5xx and errors", false, func(inner, _ http.RoundTripper) roundTripper {
		return func(r *http.Request) (resp *http.Response, err error) {
			for r = range copies(r, 3) {
				if resp, err = inner.RoundTrip(r); err == nil && resp.StatusCode < 500 {
					return resp, nil
				}
				if err == nil {
					resp.Body.Close()
				}
			}
			return resp, err
		}
	}},
	{"retries, deaf to the end of the attempt", false, func(inner, _ http.RoundTripper) roundTripper {
		return func(r *http.Request) (resp *http.Response, err error) {
			for r = range copies(r.WithContext(context.WithoutCancel(r.Context())), 3) {
				if resp, err = inner.RoundTrip(r); err == nil && resp.StatusCode < 500 {
					return resp, nil
				}
				if err == nil {
					resp.Body.Close()
				}
			}
			return resp, err
		}
	}},
	{"fails over", false, func(inner, dead http.RoundTripper) roundTripper {
		return func(r *http.Request) (resp *http.Response, err error) {
			next := dead
			for r = range copies(r, 2) {
				if resp, err = next.RoundTrip(r); err == nil {
					return resp, nil
				}
				next = inner
			}
			return resp, err
		}
	}},
	{"fails over, unseen", true, func(inner, dead http.RoundTripper) roundTripper {
		return func(r *http.Request) (resp *http.Response, err error) {
			next := dead
			for r = range copies(r, 2) {
				if resp, err = next.RoundTrip(r); err == nil {
					return resp, nil
				}
				next = unseen(inner)
			}
			return resp, err
		}
	}},
	{"sends two at once", false, func(inner, _ http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			type result struct {
				resp *http.Response
				err  error
			}
			results := make(chan result, 2)
			for r := range copies(r, 2) {
				go func() {
					resp, err := inner.RoundTrip(r)
					results <- result{resp, err}
				}()
			}
			first, second := <-results, <-results
			if first.err != nil {
				first, second = second, first
			}
			if second.err == nil {
				second.resp.Body.Close()
			}
			return first.resp, first.err
		}
	}},
	{"sends each twice", false, func(inner, _ http.RoundTripper) roundTripper {
		return func(r *http.Request) (resp *http.Response, err error) {
			for r = range copies(r, 2) {
				if err == nil && resp != nil {
					resp.Body.Close()
				}
				resp, err = inner.RoundTrip(r)
			}
			return resp, err
		}
	}},
	{"returns before it has sent", false, func(inner, _ http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			for r := range copies(r.WithContext(context.WithoutCancel(r.Context())), 1) {
				late.Go(func() {
					if resp, err := inner.RoundTrip(r); err == nil {
						resp.Body.Close()
					}
				})
			}
			return nil, errors.New("out of patience")
		}
	}},
	{"turns 5xx into an error", false, func(inner, _ http.RoundTripper) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			resp, err := inner.RoundTrip(r)
			if err == nil && resp.StatusCode >= 500 {
				resp.Body.Close()
				return nil, errors.New("connection refused")
			}
			return resp, err
		}
	}},
	{"is a client of its own", false, func(inner, _ http.RoundTripper) roundTripper {
		client := &http.Client{Transport: inner}
		return func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.RequestURI = ""
			return client.Do(r)
		}
	}},
	{"retries, unseen", true, func(inner, _ http.RoundTripper) roundTripper {
		return func(r *http.Request) (resp *http.Response, err error) {
			for r = range copies(r, 3) {
				if resp, err = unseen(inner).RoundTrip(r); err == nil && resp.StatusCode < 500 {
					return resp, nil
				}
				if err == nil {
					resp.Body.Close()
				}
			}
			return resp, err
		}
	}},
}

// late is what goes on after its http.RoundTripper has returned.
var late sync.WaitGroup

// copies yields n copies of a request whose body can be read.
func copies(r *http.Request, n int) func(func(*http.Request) bool) {
	body, _ := io.ReadAll(r.Body)
	return func(yield func(*http.Request) bool) {
		for range n {
			c := r.Clone(r.Context())
			c.Body = io.NopCloser(bytes.NewReader(body))
			if !yield(c) {
				return
			}
		}
	}
}

// unseen sends with a context of its own.
func unseen(inner http.RoundTripper) roundTripper {
	return func(r *http.Request) (*http.Response, error) {
		return inner.RoundTrip(r.WithContext(context.Background()))
	}
}

// Transports that retry, fail over, duplicate or go on do not make two of one write, and the
// outcome claims nothing false. What a transport hides from the hooks cannot be stopped, but is not
// claimed to be rejected or not sent either.
func TestForeignTransports(t *testing.T) {
	calls := 1 // times 11 transports, 2 kinds and 12 servers, for each version of HTTP
	if long {
		calls = 10 // more than 2,000
	}
	for _, protocol := range []int{1, 2} {
		for _, first := range []int{200, 503, 429, 0} { // the response to the first request of a call; 0 closes the connection
			for _, again := range []int{200, 409, 429} { // to the later ones
				var mu sync.Mutex
				seen, commits := map[string]int{}, map[string]int{}
				srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if _, err := io.Copy(io.Discard, r.Body); err != nil {
						return
					}
					call := r.Header.Get("X-Call")
					status := again
					mu.Lock()
					if seen[call]++; seen[call] == 1 {
						status = first
					}
					if status < 400 || status >= 500 {
						commits[call]++
					}
					mu.Unlock()
					if status == 0 {
						panic(http.ErrAbortHandler)
					}
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(status)
					io.WriteString(w, faultAnswer)
				}))
				srv.EnableHTTP2 = protocol == 2
				srv.Config.ErrorLog = log.New(io.Discard, "", 0)
				srv.StartTLS()
				inner := srv.Client().Transport.(*http.Transport)
				dead := &http.Transport{Proxy: proxyAt("http://" + closedAddress(t))}
				type made struct {
					id, what string
					hidden   bool
					outcome  labhealth.Outcome
				}
				var list []made
				for _, transport := range foreignTransports {
					for _, kind := range []struct {
						name string
						call func(context.Context, *labhealth.Client, ...labhealth.CallOption) error
					}{{"with a body", withBody}, {"without a body", withoutBody}} {
						client := faultClient(t, srv.URL, transport.make(inner, dead))
						for range calls {
							id := strconv.Itoa(len(list))
							err := kind.call(t.Context(), client, labhealth.WithHeader("X-Call", id))
							list = append(list, made{id, transport.name + ", " + kind.name, transport.hidden, labhealth.OutcomeOf(err)})
						}
					}
				}
				late.Wait()
				srv.Close() // when all that arrived is processed
				told := map[string]bool{}
				mu.Lock() // an HTTP/2 server does not wait for its handlers
				for _, m := range list {
					done := commits[m.id]
					if (done > 1 && !m.hidden) || (done > 0 && (m.outcome == notSent || m.outcome == rejected)) || (done == 0 && m.outcome == applied) {
						if !told[m.what] {
							t.Errorf("HTTP/%d, %d then %d, %s: %v, %d done", protocol, first, again, m.what, m.outcome, done)
						}
						told[m.what] = true
					}
				}
				mu.Unlock()
			}
		}
	}
}

// A transport that is seen to send each request once is believed.
func TestForeignTransportsThatAreSeen(t *testing.T) {
	srv := startFaults(t, false, -1, respond(422, `{}`))
	inner := srv.Client().Transport
	defer srv.Client().CloseIdleConnections()
	for _, row := range []struct {
		transport roundTripper
		want      labhealth.Outcome
	}{{inner.RoundTrip, rejected}, {unseen(inner), unknown}} {
		err := withBody(t.Context(), faultClient(t, srv.URL, row.transport))
		if got := labhealth.OutcomeOf(err); got != row.want || !errors.Is(err, labhealth.ErrValidation) {
			t.Errorf("%v, want %v: %v", got, row.want, err)
		}
	}
	retries := foreignTransports[1].make(inner, nil)
	unavailable := startFaults(t, false, -1, respond(503, `{}`))
	err := withBody(t.Context(), faultClient(t, unavailable.URL, retries))
	if want := "labhealth: POST /v3/order/import: the http.RoundTripper was stopped before it sent the write a second time " +
		"(1 attempt, outcome unknown)"; errorText(err) != want {
		t.Errorf("%q, want %q", errorText(err), want)
	}
	dead := fmt.Sprintf("http://%s", closedAddress(t))
	for _, row := range []struct {
		transport roundTripper
		attempts  int
		want      labhealth.Outcome
	}{{inner.RoundTrip, 3, notSent}, {unseen(inner), 1, unknown}} {
		var r labhealth.Response
		err := withBody(t.Context(), faultClient(t, dead, row.transport), labhealth.WithResponse(&r))
		if got := labhealth.OutcomeOf(err); got != row.want || r.Attempts != row.attempts {
			t.Errorf("%v, %d attempts, want %v, %d: %v", got, r.Attempts, row.want, row.attempts, err)
		}
	}
}
