package conformance

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labhealth/labhealth-go"
)

// slowPages is a transport that serves users in pages of two. A response takes a second, and so
// does the end of a request that is canceled.
type slowPages struct {
	users int
	fails map[string]reply // by offset, in place of the page

	mu       sync.Mutex
	start    time.Time
	log      []string // requests and responses, with their times
	inFlight int
	most     int
}

func (p *slowPages) RoundTrip(r *http.Request) (*http.Response, error) {
	offset := r.URL.Query().Get("offset")
	p.note("request "+offset, 1)
	select {
	case <-r.Context().Done():
		time.Sleep(time.Second)
		p.note("canceled "+offset, -1)
		return nil, r.Context().Err()
	case <-time.After(time.Second):
	}
	p.note("response "+offset, -1)
	if failed, ok := p.fails[offset]; ok {
		if failed.err != nil {
			return nil, failed.err
		}
		return responseTo(r, failed.status, failed.body, failed.header...), nil
	}
	first, _ := strconv.Atoi(offset)
	body := fmt.Sprintf(`{"users":%s,"total":%d,"offset":%d,"limit":2}`, elements("user_id", first+1, min(first+2, p.users)), p.users, first)
	return responseTo(r, 200, body), nil
}

func (p *slowPages) note(text string, inFlight int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inFlight += inFlight
	p.most = max(p.most, p.inFlight)
	p.log = append(p.log, time.Since(p.start).String()+" "+text)
}

// client returns a client for a bubble of fake time.
func (p *slowPages) client(t *testing.T, opts ...labhealth.Option) *labhealth.Client {
	p.start = time.Now()
	opts = append([]labhealth.Option{labhealth.WithBaseURL(testURL), labhealth.WithHTTPClient(&http.Client{Transport: p}),
		labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 1})}, opts...)
	return must[*labhealth.Client](t)(labhealth.NewClient(testKey, opts...))
}

func prefetched(ctx context.Context, client *labhealth.Client, opts ...labhealth.CallOption) iter.Seq2[*labhealth.User, error] {
	return client.Users.All(ctx, labhealth.ListUsersParams{Limit: 2}, append(opts, labhealth.WithPrefetch())...)
}

// process ranges over users and takes half a second for each of the first n. Then it calls end.
func process(p *slowPages, users iter.Seq2[*labhealth.User, error], n int, end func()) {
	i := 0
	for user, err := range users {
		if err != nil {
			p.note("error", 0)
			continue // there is no other
		}
		p.note("user "+strconv.Itoa(int(user.UserID[15])), 0)
		if i++; i == n {
			if end == nil {
				return
			}
			end()
		}
		time.Sleep(time.Second / 2)
	}
}

// A page is requested as soon as the loop has the page before it, and one at a time.
func TestPrefetch(t *testing.T) {
	for _, test := range []struct {
		name string
		opts []labhealth.CallOption
		want []string
	}{
		{"without", nil, []string{
			"0s request ", "1s response ", "1s user 1", "1.5s user 2",
			"2s request 2", "3s response 2", "3s user 3", "3.5s user 4",
			"4s request 4", "5s response 4", "5s user 5"}},
		{"with", []labhealth.CallOption{labhealth.WithPrefetch()}, []string{
			"0s request ", "1s response ", "1s user 1", "1s request 2", "1.5s user 2",
			"2s response 2", "2s user 3", "2s request 4", "2.5s user 4",
			"3s response 4", "3s user 5"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &slowPages{users: 5}
				client := p.client(t)
				users := client.Users.All(t.Context(), labhealth.ListUsersParams{Limit: 2}, test.opts...)
				for range 2 { // the iterator can be used again
					p.log, p.start = nil, time.Now()
					process(p, users, 0, nil)
					sameEvents(t, test.want, p.log)
				}
				equal(t, 1, p.most)
			})
		})
	}
}

// sameEvents compares logs. The order of events at the same time is that of goroutines.
func sameEvents(t *testing.T, want, got []string) {
	t.Helper()
	equal(t, slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got)))
}

// An error of a page ahead is returned once, after the elements before it.
func TestPrefetchError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &slowPages{users: 5, fails: map[string]reply{"2": {status: 403}}}
		process(p, prefetched(t.Context(), p.client(t)), 0, nil)
		sameEvents(t, []string{"0s request ", "1s response ", "1s user 1", "1s request 2", "1.5s user 2", "2s response 2", "2s error"}, p.log)
	})
}

// However a loop ends, the request of the page ahead is canceled, and over.
func TestPrefetchLoopEnds(t *testing.T) {
	for name, end := range map[string]func(){
		"break":  nil,
		"panic":  func() { panic("loop") },
		"goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // which fails if a goroutine remains
				p := &slowPages{users: 5}
				client := p.client(t)
				var panicked any
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() { panicked = recover() }()
					defer func() { p.note("over", 0) }()
					process(p, prefetched(t.Context(), client), 2, end)
				}()
				<-done
				sameEvents(t, []string{"0s request ", "1s response ", "1s user 1", "1s request 2", "1.5s user 2", "2.5s canceled 2", "2.5s over"}, p.log)
				if name == "panic" {
					equal(t, any("loop"), panicked)
				} else {
					equal(t, nil, panicked)
				}
			})
		})
	}
}

func TestPrefetchPull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &slowPages{users: 5}
		next, stop := iter.Pull2(prefetched(t.Context(), p.client(t)))
		for want := range byte(3) {
			user, err, ok := next()
			if err != nil || !ok || user.UserID[15] != want+1 {
				t.Errorf("%v, %v, %v", user, err, ok)
			}
		}
		time.Sleep(time.Second / 2)
		stop()
		p.note("over", 0)
		sameEvents(t, []string{"0s request ", "1s response ", "1s request 2", "2s response 2", "2s request 4", "3.5s canceled 4", "3.5s over"}, p.log)
	})
}

// A panic of an observer in the call of the page ahead continues in the loop, as does Goexit.
func TestPrefetchObserverPanics(t *testing.T) {
	for name, test := range map[string]struct {
		ends func()
		want any
	}{
		"panic":  {func() { panic("observer") }, "observer"},
		"goexit": {runtime.Goexit, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				p := &slowPages{users: 5}
				client := p.client(t, labhealth.WithObserver(func(context.Context, labhealth.Attempt) {
					if calls++; calls == 2 {
						test.ends()
					}
				}))
				var panicked any
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() { panicked = recover() }()
					process(p, prefetched(t.Context(), client), 0, nil)
					t.Error("the loop continued")
				}()
				<-done
				equal(t, test.want, panicked)
				sameEvents(t, []string{"0s request ", "1s response ", "1s user 1", "1s request 2", "1.5s user 2", "2s response 2"}, p.log)
			})
		})
	}
}

// A context that ends in the loop ends the iterator after the page. The error is that of the next
// page: it was not requested, is in flight, or has been received and is not used. Observers see one
// call for each page.
func TestPrefetchContext(t *testing.T) {
	const notSent = "labhealth: GET /v2/user/: canceled before the request was sent: not sent"
	for name, test := range map[string]struct {
		after time.Duration
		want  [2]string // without and with the option
	}{
		"canceled, in flight": {1700 * time.Millisecond, [2]string{notSent, "labhealth: GET /v2/user/: canceled"}},
		"canceled, received":  {2700 * time.Millisecond, [2]string{notSent, "labhealth: GET /v2/user/: canceled after the response was received: applied"}},
	} {
		for _, opts := range withAndWithoutPrefetch {
			t.Run(fmt.Sprint(name, " ", len(opts)), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := &slowPages{users: 9}
					calls := 0
					client := p.client(t, labhealth.WithCallObserver(labhealth.CallObserver{End: func(context.Context, labhealth.Call) { calls++ }}))
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					time.AfterFunc(test.after, cancel)
					n, text := 0, ""
					for _, err := range client.Users.All(ctx, labhealth.ListUsersParams{Limit: 2}, opts...) {
						if err != nil {
							text = err.Error()
							var unsent *labhealth.TransportError
							equal(t, true, errors.As(err, &unsent))
							equal(t, len(opts), unsent.Attempts)
							equal(t, true, errors.Is(err, context.Canceled))
							continue
						}
						n++
						time.Sleep(time.Second)
					}
					equal(t, test.want[len(opts)], text)
					equal(t, 2, n)
					equal(t, 2, calls)
				})
			})
		}
	}
	// The deadline ends a request in flight that the loop waits for.
	for _, opts := range withAndWithoutPrefetch {
		synctest.Test(t, func(t *testing.T) {
			p := &slowPages{users: 9}
			ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
			defer cancel()
			got, text := numbers(p.client(t).Users.All(ctx, labhealth.ListUsersParams{Limit: 2}, opts...), userNumber)
			equal(t, upTo(1, 2), got)
			equal(t, "labhealth: GET /v2/user/: timed out (the context's deadline) (give it more time)", text)
		})
	}
}

// The response is that of the page that the loop processes.
func TestPrefetchResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &slowPages{users: 5, fails: map[string]reply{"4": {status: 403}}}
		var resp labhealth.Response
		var got []string
		for user, err := range prefetched(t.Context(), p.client(t), labhealth.WithResponse(&resp)) {
			time.Sleep(time.Second)
			if err != nil {
				got = append(got, fmt.Sprint("error ", resp.StatusCode))
				continue
			}
			got = append(got, fmt.Sprint(user.UserID[15], " ", resp.StatusCode, " ", string(resp.Body[len(resp.Body)-21:])))
		}
		equal(t, []string{
			`1 200 "offset":0,"limit":2}`, `2 200 "offset":0,"limit":2}`,
			`3 200 "offset":2,"limit":2}`, `4 200 "offset":2,"limit":2}`, "error 403",
		}, got)
	})
}

// Retries, and the rate limit of the client, hold for pages ahead.
func TestPrefetchSharesLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &slowPages{users: 5, fails: map[string]reply{"2": {status: 503}}}
		client := p.client(t, labhealth.WithRateLimit(0.1, 1),
			labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 2, BaseWait: 1, MaxWait: 1}))
		process(p, prefetched(t.Context(), client), 0, nil)
		sameEvents(t, []string{"0s request ", "1s response ", "1s user 1", "1.5s user 2",
			"10s request 2", "11s response 2", "20s request 2", "21s response 2", "21s error"}, p.log)
	})
}

// countingContext can be canceled, and counts the contexts that were made from it and would be
// canceled with it.
type countingContext struct {
	context.Context
	done     chan struct{}
	children atomic.Int64
}

func (c *countingContext) Done() <-chan struct{} { return c.done }

func (c *countingContext) AfterFunc(func()) (stop func() bool) {
	c.children.Add(1)
	return sync.OnceValue(func() bool { c.children.Add(-1); return true })
}

// However many pages there are, the context of the caller keeps nothing of those before.
func TestPrefetchReleasesContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := &countingContext{Context: t.Context(), done: make(chan struct{})}
		most := int64(0)
		for _, err := range prefetched(ctx, (&slowPages{users: 40}).client(t)) {
			equal(t, nil, err)
			most = max(most, ctx.children.Load())
		}
		equal(t, int64(1), most)
		equal(t, int64(0), ctx.children.Load())
	})
}

// The option is invalid for calls that are not iterators.
func TestPrefetchMisuse(t *testing.T) {
	client, s := scripted(t, nil)
	errs := callAll(t, client, labhealth.WithPrefetch())
	for name, op := range calledOperations {
		want := "labhealth: " + op + ": not sent: WithPrefetch is for iterators over pages, such as Users.All"
		if name == "Orders.All" || name == "Users.All" {
			want = "labhealth: " + op + ": the http.RoundTripper failed (see TransportError.Cause)"
		}
		equal(t, want, errorText(errs[name]))
	}
	equal(t, 2, len(s.sent))
}
