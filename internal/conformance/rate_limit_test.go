package conformance

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labhealth/labhealth-go"
)

// paced is a transport that records when requests were sent.
type paced struct {
	mu      sync.Mutex
	start   time.Time
	sent    []time.Duration
	ops     []string // the client user IDs, in the order of the requests
	replies []reply  // of the first requests
}

func (p *paced) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.sent)
	p.sent = append(p.sent, time.Since(p.start))
	p.ops = append(p.ops, r.Header.Get("X-Name"))
	if n < len(p.replies) {
		return responseTo(r, p.replies[n].status, p.replies[n].body, p.replies[n].header...), nil
	}
	return responseTo(r, 200, `{}`), nil
}

// pacedClient returns a client with a rate limit, for a bubble of fake time.
func pacedClient(t *testing.T, perSecond float64, burst int, replies ...reply) (*labhealth.Client, *paced) {
	p := &paced{start: time.Now(), replies: replies}
	client := must[*labhealth.Client](t)(labhealth.NewClient(testKey, labhealth.WithBaseURL(testURL),
		labhealth.WithRetry(labhealth.RetryPolicy{BaseWait: 1, MaxWait: 1, ReadTimeout: time.Second, WriteTimeout: time.Second}),
		labhealth.WithHTTPClient(&http.Client{Transport: p}), labhealth.WithRateLimit(perSecond, burst)))
	return client, p
}

func pacedCall(ctx context.Context, c *labhealth.Client, name string) error {
	return c.Do(ctx, "POST", "/x", nil, nil, labhealth.WithHeader("X-Name", name))
}

// Requests are sent at the given pace, in the order of their calls, however long they wait.
func TestRateLimitPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, p := pacedClient(t, 0.5, 2)
		var calls sync.WaitGroup
		names := []string{}
		for i := range 6 {
			name := fmt.Sprint("call ", i)
			names = append(names, name)
			calls.Go(func() {
				if err := pacedCall(t.Context(), client, name); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		calls.Wait()
		equal(t, names, p.ops)
		equal(t, []time.Duration{0, 0, 2 * time.Second, 4 * time.Second, 6 * time.Second, 8 * time.Second}, p.sent)
		time.Sleep(time.Minute) // the bucket holds the burst, and no more
		p.start, p.sent = time.Now(), nil
		for range 3 {
			equal(t, nil, pacedCall(t.Context(), client, ""))
		}
		equal(t, []time.Duration{0, 0, 2 * time.Second}, p.sent)
	})
}

// A call that could not be sent before its deadline returns at once, and takes no place.
func TestRateLimitDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, p := pacedClient(t, 1, 1)
		equal(t, nil, pacedCall(t.Context(), client, "first"))
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err := pacedCall(ctx, client, "too late")
			cancel()
			equal(t, "labhealth: POST (Do): the rate limit leaves no time before the context's deadline: not sent (raise the limit of WithRateLimit, or the deadline)", errorText(err))
			equal(t, labhealth.FailureRateLimit, labhealth.FailureOf(err))
			equal(t, labhealth.OutcomeNotSent, labhealth.OutcomeOf(err))
		}
		equal(t, time.Duration(0), time.Since(p.start))
		equal(t, nil, pacedCall(t.Context(), client, "second"))
		equal(t, []string{"first", "second"}, p.ops)
		equal(t, []time.Duration{0, time.Second}, p.sent)
	})
}

// A canceled call leaves the queue at once, and the next one moves up.
func TestRateLimitCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, p := pacedClient(t, 1, 1)
		equal(t, nil, pacedCall(t.Context(), client, "first"))
		var calls sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		for range 3 {
			calls.Go(func() {
				err := pacedCall(ctx, client, "canceled")
				equal(t, "labhealth: POST (Do): canceled before the request was sent: not sent", errorText(err))
				equal(t, 500*time.Millisecond, time.Since(p.start))
			})
			synctest.Wait()
		}
		calls.Go(func() { equal(t, nil, pacedCall(t.Context(), client, "last")) })
		time.Sleep(500 * time.Millisecond)
		cancel()
		calls.Wait()
		equal(t, []string{"first", "last"}, p.ops)
		equal(t, []time.Duration{0, time.Second}, p.sent)
	})
}

// After a 429 all calls wait, and those that cannot wait so long return. Then there is no burst.
func TestRateLimitRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, p := pacedClient(t, 1, 5, reply{status: 429, header: []string{"Retry-After", "30"}})
		var calls sync.WaitGroup
		calls.Go(func() { equal(t, nil, pacedCall(t.Context(), client, "limited")) })
		synctest.Wait()
		for _, name := range []string{"a", "b"} {
			calls.Go(func() { equal(t, nil, pacedCall(t.Context(), client, name)) })
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		equal(t, labhealth.FailureRateLimit, labhealth.FailureOf(pacedCall(ctx, client, "impatient")))
		equal(t, time.Duration(0), time.Since(p.start))
		calls.Wait()
		equal(t, []string{"limited", "a", "b", "limited"}, p.ops)
		equal(t, []time.Duration{0, 30 * time.Second, 31 * time.Second, 32 * time.Second}, p.sent)
	})
}

// A 429 also returns calls that wait already and have a deadline before the end of the pause.
func TestRateLimitPauseEndsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, p := pacedClient(t, 1, 1, reply{status: 200, body: `{}`}, reply{status: 429, header: []string{"Retry-After", "30"}})
		equal(t, nil, pacedCall(t.Context(), client, "first"))
		var calls sync.WaitGroup
		calls.Go(func() { equal(t, nil, pacedCall(t.Context(), client, "limited")) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		for range 2 {
			calls.Go(func() {
				equal(t, labhealth.FailureRateLimit, labhealth.FailureOf(pacedCall(ctx, client, "impatient")))
				equal(t, time.Second, time.Since(p.start))
			})
			synctest.Wait()
		}
		// It is the next one after the pause, because those before it have returned.
		patient, cancelPatient := context.WithTimeout(t.Context(), 32*time.Second)
		defer cancelPatient()
		calls.Go(func() { equal(t, nil, pacedCall(patient, client, "patient")) })
		calls.Wait()
		equal(t, []string{"first", "limited", "patient", "limited"}, p.ops)
		equal(t, []time.Duration{0, time.Second, 31 * time.Second, 32 * time.Second}, p.sent)
	})
}

// A Retry-After that the client does not wait for does not stop other calls, and neither does one
// that is not about the rate of requests.
func TestRateLimitOtherRetryAfter(t *testing.T) {
	for status, after := range map[int]string{429: "3600", 503: "30"} {
		synctest.Test(t, func(t *testing.T) {
			client, p := pacedClient(t, 1, 5, reply{status: status, header: []string{"Retry-After", after}})
			equal(t, status, apiError(t, pacedCall(t.Context(), client, "failed")).StatusCode)
			equal(t, nil, pacedCall(t.Context(), client, "next"))
			equal(t, []time.Duration{0, 0}, p.sent)
		})
	}
}

// Retries and redirects count, and the wait counts toward no timeout.
func TestRateLimitCountsEveryRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts []labhealth.Attempt
		p := &paced{start: time.Now(), replies: []reply{{status: 503}, {status: 302, header: []string{"Location", "/y"}}}}
		client := must[*labhealth.Client](t)(labhealth.NewClient(testKey, labhealth.WithBaseURL(testURL),
			labhealth.WithRetry(labhealth.RetryPolicy{BaseWait: 1, MaxWait: 1, ReadTimeout: time.Second}),
			observing(func(_ context.Context, a labhealth.Attempt) { attempts = append(attempts, a) }),
			labhealth.WithHTTPClient(&http.Client{Transport: p}), labhealth.WithRateLimit(0.1, 1)))
		equal(t, nil, client.Do(t.Context(), "GET", "/x", nil, nil))
		equal(t, []time.Duration{0, 10 * time.Second, 20 * time.Second}, p.sent)
		equal(t, 2, len(attempts))
		for _, a := range attempts {
			if a.Duration > 10*time.Millisecond {
				t.Errorf("attempt %d took %v", a.Number, a.Duration)
			}
		}
	})
}

// A retry that would be too late is not waited for.
func TestRateLimitRetryTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &paced{start: time.Now(), replies: []reply{{status: 503}}}
		client := must[*labhealth.Client](t)(labhealth.NewClient(testKey, labhealth.WithBaseURL(testURL), labhealth.WithRateLimit(0.1, 1),
			labhealth.WithHTTPClient(&http.Client{Transport: p}),
			observing(func(_ context.Context, a labhealth.Attempt) { equal(t, false, a.Repeated) })))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err := client.Do(ctx, "GET", "/x", nil, nil)
		equal(t, 503, apiError(t, err).StatusCode)
		equal(t, time.Duration(0), time.Since(p.start))
		equal(t, 1, len(p.sent))
	})
}

// Neither is one that would be too late because other calls wait.
func TestRateLimitRetryBehindOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		client := faultClient(t, testURL, roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/next" {
				return responseTo(r, 200, `{}`), nil
			}
			time.Sleep(time.Second)
			return responseTo(r, 503, `{}`, "Retry-After", "5"), nil
		}), labhealth.WithRateLimit(0.1, 1))
		var calls sync.WaitGroup
		calls.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			defer cancel()
			equal(t, 503, apiError(t, client.Do(ctx, "GET", "/x", nil, nil)).StatusCode)
			equal(t, time.Second, time.Since(start))
		})
		synctest.Wait()
		calls.Go(func() {
			equal(t, nil, client.Do(t.Context(), "GET", "/next", nil, nil))
			equal(t, 10*time.Second, time.Since(start))
		})
		calls.Wait()
	})
}

func TestWithRateLimitErrors(t *testing.T) {
	for _, row := range []struct {
		perSecond float64
		burst     int
	}{{0, 1}, {-1, 1}, {math.NaN(), 1}, {math.Inf(1), 1}, {1e-9, 1}, {1, 0}, {1, -1}, {1, math.MaxInt}} {
		_, err := labhealth.NewClient(testKey, labhealth.WithBaseURL(testURL), labhealth.WithRateLimit(row.perSecond, row.burst))
		equal(t, "labhealth: WithRateLimit needs at least one request per hour, and a burst between 1 and 1,000,000", errorText(err))
	}
	client := must[*labhealth.Client](t)(labhealth.NewClient(testKey, labhealth.WithBaseURL("http://"+closedAddress(t)), labhealth.WithRateLimit(1./3600, 1e6)))
	defer client.CloseIdleConnections()
	if err := pacedCall(t.Context(), client, ""); labhealth.FailureOf(err) != labhealth.FailureRefused {
		t.Error(err)
	}
}

// A server that permits a burst, and then a number of requests per second, has no reason for a 429.
// Without the limit it has.
func TestRateLimitAgainstServer(t *testing.T) {
	const perSecond, burst, calls = 50, 20, 200
	for _, limited := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			tokens, last, limitedRequests := float64(burst), time.Now(), 0
			l := newMemoryListener()
			srv := startFaultsOn(t, l, false, -1, func(x exchange) bool {
				mu.Lock()
				defer mu.Unlock()
				tokens, last = min(burst, tokens+perSecond*time.Since(last).Seconds()), time.Now()
				if tokens < 1-1e-6 {
					limitedRequests++
					x.respond(http.StatusTooManyRequests, `{}`)
					return false
				}
				tokens--
				x.respond(http.StatusOK, `{}`)
				return true
			})
			var opts []labhealth.Option
			if limited {
				opts = append(opts, labhealth.WithRateLimit(perSecond, burst))
			}
			client := faultClient(t, srv.URL, &http.Transport{DialContext: l.dial}, opts...)
			defer client.CloseIdleConnections()
			var group sync.WaitGroup
			for range calls {
				group.Go(func() {
					err := client.Do(t.Context(), "POST", "/x", nil, nil, labhealth.WithCallRetry(labhealth.RetryPolicy{MaxAttempts: 1}))
					if limited && err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
			if want := map[bool]int{true: 0, false: calls - burst}[limited]; limitedRequests != want {
				t.Errorf("limited %v: %d responses are 429, want %d", limited, limitedRequests, want)
			}
		})
	}
}

// Whatever calls do, the pace is kept, calls return by their deadlines, and nothing waits for ever.
func TestRateLimitRandom(t *testing.T) {
	rounds := 50
	if long {
		rounds = 1000
	}
	for seed := range rounds {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, uint64(seed)))
			burst, interval := 1+random.IntN(5), time.Duration(1+random.IntN(300))*time.Millisecond
			p := &paced{start: time.Now()}
			for range random.IntN(20) {
				if p.replies = append(p.replies, reply{status: 200, body: `{}`}); random.IntN(8) == 0 {
					p.replies[len(p.replies)-1] = reply{status: 429, header: []string{"Retry-After", fmt.Sprint(random.IntN(4))}}
				}
			}
			client := must[*labhealth.Client](t)(labhealth.NewClient(testKey, labhealth.WithBaseURL(testURL),
				labhealth.WithHTTPClient(&http.Client{Transport: p}), labhealth.WithRateLimit(float64(time.Second)/float64(interval), burst)))
			var calls sync.WaitGroup
			var notSent atomic.Int64
			for range 100 {
				time.Sleep(time.Duration(random.IntN(2)*random.IntN(100)) * time.Millisecond)
				ctx, cancel := context.WithCancel(t.Context())
				limit := time.Duration(0)
				switch kind := random.IntN(4); kind {
				case 0, 1:
					limit = time.Duration(1+random.IntN(3000)) * time.Millisecond
					if ctx, cancel = context.WithTimeout(t.Context(), limit); kind == 1 {
						ctx, cancel = context.WithCancel(t.Context())
						time.AfterFunc(limit, cancel)
					}
				}
				start := time.Now()
				calls.Go(func() {
					defer cancel()
					err := pacedCall(ctx, client, "")
					if d := time.Since(start); limit > 0 && d > limit || limit == 0 && err != nil && labhealth.OutcomeOf(err) != rejected {
						t.Errorf("seed %d: %v after %v of %v", seed, err, d, limit)
					}
					if labhealth.OutcomeOf(err) == labhealth.OutcomeNotSent {
						notSent.Add(1)
					}
				})
			}
			calls.Wait()
			for i := range p.sent {
				for j := i; j < len(p.sent); j++ {
					// The interval is rounded to nanoseconds.
					if most := float64(burst) + float64(p.sent[j]-p.sent[i]+time.Microsecond)/float64(interval); float64(j-i+1) > most {
						t.Fatalf("seed %d: %d requests within %v, with a burst of %d and %v between them", seed, j-i+1, p.sent[j]-p.sent[i], burst, interval)
					}
				}
			}
			if len(p.sent) < 100-int(notSent.Load()) {
				t.Errorf("seed %d: %d requests, %d calls not sent", seed, len(p.sent), notSent.Load())
			}
		})
	}
}

// Credentials that expire while a call waits for the rate limit are not sent.
func TestRateLimitOutlastsCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, asked := newCredentialService("sk_1", "sk_2"), 0
		client := sourceClient(t, service, func(context.Context) (labhealth.Credentials, error) {
			asked++
			key := labhealth.Secret(fmt.Sprintf("sk_%d", asked))
			return labhealth.Credentials{Key: key, Expires: time.Now().Add(10 * time.Second)}, nil
		}, labhealth.WithRateLimit(0.05, 1))
		for range 2 {
			equal(t, nil, write(t.Context(), client))
		}
		equal(t, []string{"POST sk_1", "POST sk_2"}, service.requests())
	})
}

// Calls that waited for the credentials together are not sent together.
func TestRateLimitAndSlowSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &paced{start: time.Now()}
		client := must[*labhealth.Client](t)(labhealth.NewClient("", labhealth.WithBaseURL(testURL), labhealth.WithHTTPClient(&http.Client{Transport: p}),
			labhealth.WithRateLimit(10, 1), labhealth.WithCredentials(func(context.Context) (labhealth.Credentials, error) {
				time.Sleep(5 * time.Second)
				return labhealth.Credentials{Key: "k", Expires: time.Now().Add(3 * time.Second)}, nil // before the last call is sent
			})))
		var calls sync.WaitGroup
		for range 50 {
			calls.Go(func() {
				if err := pacedCall(t.Context(), client, ""); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		equal(t, 50, len(p.sent))
		for i, at := range p.sent {
			if i > 0 && at-p.sent[i-1] < 100*time.Millisecond {
				t.Errorf("requests %d and %d are sent %v apart", i, i+1, at-p.sent[i-1])
			}
		}
	})
}
