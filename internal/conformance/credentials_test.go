package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/httptracetest"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/management"
)

type credentialSource = func(context.Context) (labhealth.Credentials, error)

// errSource is the error of a source. Its message must not be part of ours.
type errSource struct{ secret string }

func (e *errSource) Error() string { return "vault token " + e.secret }

// credentialService responds with 401 unless the credentials are valid. It fires the hooks of one
// request.
type credentialService struct {
	mu    sync.Mutex
	valid map[string]bool // by the value of the header
	sent  []string        // method and credentials of each request
}

func newCredentialService(valid ...string) *credentialService {
	s := &credentialService{valid: map[string]bool{}}
	for _, v := range valid {
		s.valid[v] = true
	}
	return s
}

func (s *credentialService) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return nil, err
		}
		req.Body.Close()
	}
	httptracetest.SendRequest(req)
	s.mu.Lock()
	defer s.mu.Unlock()
	used := req.Header.Get("x-service-api-key") + req.Header.Get("X-Management-Key") + req.Header.Get("Authorization")
	s.sent = append(s.sent, req.Method+" "+used)
	status := http.StatusUnauthorized
	if s.valid[used] {
		status = http.StatusOK
	}
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(`{}`)), ContentLength: 2,
	}, nil
}

// requests returns the requests since the last call.
func (s *credentialService) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := s.sent
	s.sent = nil
	return sent
}

func (s *credentialService) replace(old, replacement string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.valid, old)
	s.valid[replacement] = true
}

func sourceClient(t testing.TB, transport http.RoundTripper, source credentialSource, opts ...labhealth.Option) *labhealth.Client {
	t.Helper()
	opts = append([]labhealth.Option{
		labhealth.WithEnvironment(labhealth.SandboxUS, testURL), labhealth.WithCredentials(source),
		labhealth.WithHTTPClient(&http.Client{Transport: transport}),
	}, opts...)
	return must[*labhealth.Client](t)(labhealth.NewClient("", opts...))
}

func read(ctx context.Context, c *labhealth.Client) error {
	return c.Do(ctx, http.MethodGet, "/v2/providers", nil, nil)
}

func write(ctx context.Context, c *labhealth.Client) error {
	return c.Do(ctx, http.MethodPost, "/v3/order", nil, nil)
}

func TestWithCredentialsErrors(t *testing.T) {
	source := func(context.Context) (labhealth.Credentials, error) { return labhealth.Credentials{}, nil }
	_, err := labhealth.NewClient("sk_hunter2", labhealth.WithEnvironment(labhealth.SandboxUS, testURL), labhealth.WithCredentials(source))
	equal(t, "labhealth: the API key must be empty with WithCredentials", errorText(err))
	_, err = labhealth.NewClient("", labhealth.WithEnvironment(labhealth.SandboxUS, testURL), labhealth.WithCredentials(nil))
	equal(t, "labhealth: WithCredentials needs a function", errorText(err))
}

// What a source returns is checked. Nothing is sent without credentials, and no message quotes them
// or the error of the source.
func TestCredentialsOfSource(t *testing.T) {
	const hidden = "hunter2"
	past := time.Now().Add(-time.Second)
	for _, test := range []struct {
		name   string
		source credentialSource
		want   string
	}{
		{"error", func(context.Context) (labhealth.Credentials, error) {
			return labhealth.Credentials{}, &errSource{hidden}
		}, "the source of credentials failed"},
		{"panic", func(context.Context) (labhealth.Credentials, error) { panic(hidden) }, "the source of credentials panicked"},
		{"panic with an error", func(context.Context) (labhealth.Credentials, error) { panic(&errSource{hidden}) }, "the source of credentials panicked"},
		{"exit", func(context.Context) (labhealth.Credentials, error) {
			runtime.Goexit()
			return labhealth.Credentials{}, nil
		}, "the source of credentials did not return"},
		{"nothing", returning(labhealth.Credentials{}), "the source of credentials returned neither a key nor a token"},
		{"both", returning(labhealth.Credentials{Key: hidden, Token: hidden}), "the source of credentials returned both a key and a token"},
		{"line end", returning(labhealth.Credentials{Key: hidden + "\n"}), "the source of credentials returned a key or a token that has a line break: remove it, for example with strings.TrimSpace"},
		{"space", returning(labhealth.Credentials{Token: "Bearer " + hidden}), "the source of credentials returned a key or a token that has a space, or a character that is not printable ASCII: remove it"},
		{"expired", returning(labhealth.Credentials{Key: hidden, Expires: past}), "the source of credentials returned expired credentials: check the clock of this system"},
	} {
		t.Run(test.name, func(t *testing.T) {
			service := newCredentialService()
			client := sourceClient(t, service, test.source)
			for _, do := range []func(context.Context, *labhealth.Client) error{read, write} {
				err := do(t.Context(), client)
				if got := errorText(err); !strings.HasSuffix(got, ": "+test.want+": not sent") {
					t.Errorf("error %q, want %q", got, test.want)
				}
				equal(t, labhealth.OutcomeNotSent, labhealth.OutcomeOf(err))
				equal(t, labhealth.FailureCredentials, labhealth.FailureOf(err))
				if text := fmt.Sprintf("%v %+v %#v %+v", err, err, err, client); strings.Contains(text, hidden) {
					t.Errorf("the error shows a secret: %s", text)
				}
				var own *errSource
				equal(t, strings.Contains(test.name, "error"), errors.As(err, &own))
			}
			equal(t, 0, len(service.requests()))
		})
	}
}

func returning(c labhealth.Credentials) credentialSource {
	return func(context.Context) (labhealth.Credentials, error) { return c, nil }
}

// Credentials are cached. A key is sent in the header for keys, a token as a bearer token.
func TestCredentialsSent(t *testing.T) {
	for _, test := range []struct {
		credentials        labhealth.Credentials
		key, authorization []string
	}{
		{labhealth.Credentials{Key: "sk_1"}, []string{"sk_1"}, nil},
		{labhealth.Credentials{Token: "at_1", Expires: time.Now().Add(time.Hour)}, nil, []string{"Bearer at_1"}},
	} {
		asked := 0
		s := &script{replies: []reply{{status: 200, body: `{}`}, {status: 200, body: `{}`}}}
		client := sourceClient(t, s, func(context.Context) (labhealth.Credentials, error) {
			asked++
			return test.credentials, nil
		})
		if err := errors.Join(read(t.Context(), client), write(t.Context(), client)); err != nil {
			t.Fatal(err)
		}
		equal(t, 1, asked)
		for _, sent := range s.sent {
			equal(t, test.key, sent.Header.Values("x-service-api-key"))
			equal(t, test.authorization, sent.Header.Values("Authorization"))
		}
		for _, text := range []string{fmt.Sprintf("%#v %v", test.credentials, &test.credentials), fmt.Sprintf("%#v %+v", client, *client)} {
			if strings.Contains(text, "sk_1") || strings.Contains(text, "at_1") {
				t.Errorf("printed: %s", text)
			}
		}
	}
}

// A slow source is asked once. Calls wait for it until their own deadline, and a canceled call does
// not affect the others.
func TestSlowSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		service := newCredentialService("sk_1")
		client := sourceClient(t, service, func(ctx context.Context) (labhealth.Credentials, error) {
			asked.Add(1)
			select {
			case <-time.After(10 * time.Second):
				return labhealth.Credentials{Key: "sk_1"}, nil
			case <-ctx.Done():
				return labhealth.Credentials{}, ctx.Err()
			}
		})
		start := time.Now()
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				err := write(ctx, client)
				equal(t, 50*time.Millisecond, time.Since(start))
				equal(t, "labhealth: POST /v3/order: the source of credentials did not return before the context ended: not sent", errorText(err))
				equal(t, labhealth.OutcomeNotSent, labhealth.OutcomeOf(err))
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Error("the error of the context is missing in the chain")
				}
			})
		}
		wg.Wait()
		equal(t, 0, len(service.requests()))
		if err := write(t.Context(), client); err != nil { // it has no deadline
			t.Error(err)
		}
		equal(t, 10*time.Second, time.Since(start))
		equal(t, int32(1), asked.Load())
		equal(t, []string{"POST sk_1"}, service.requests())
	})
}

// After a 401 a read is repeated at once, even if the attempt before it had to wait.
func TestRenewedAfterWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{replies: []reply{
			{status: 503, header: []string{"Retry-After", "5"}}, {status: 401}, {status: 200, body: `{}`},
		}}
		asked := 0
		client := sourceClient(t, s, func(context.Context) (labhealth.Credentials, error) {
			asked++
			return labhealth.Credentials{Key: labhealth.Secret(fmt.Sprintf("sk_%d", asked))}, nil
		})
		start := time.Now()
		equal(t, nil, read(t.Context(), client))
		equal(t, 5*time.Second, time.Since(start))
		equal(t, 2, asked)
	})
}

// A source that hangs once, or for ever, is asked again after 30 seconds, in which no call is
// blocked for longer. Few of its calls are left behind.
func TestSourceIsAskedAgain(t *testing.T) {
	t.Run("hangs once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			asked := make(chan time.Duration, 9)
			start, release := time.Now(), make(chan struct{})
			service := newCredentialService("sk_2")
			client := sourceClient(t, service, func(context.Context) (labhealth.Credentials, error) {
				at := time.Since(start)
				asked <- at
				if at == 0 {
					<-release
					return labhealth.Credentials{Key: "sk_1"}, nil
				}
				return labhealth.Credentials{Key: "sk_2"}, nil
			})
			for range 2 { // the second one in the pause after a failure
				err := write(t.Context(), client)
				equal(t, "labhealth: POST /v3/order: the source of credentials did not return in time: not sent", errorText(err))
				equal(t, 30*time.Second, time.Since(start))
				equal(t, true, errors.Is(err, context.DeadlineExceeded))
			}
			time.Sleep(250 * time.Millisecond)
			equal(t, "", errorText(write(t.Context(), client)))
			close(release) // what arrives late replaces nothing
			synctest.Wait()
			equal(t, "", errorText(write(t.Context(), client)))
			equal(t, []time.Duration{0, 30250 * time.Millisecond}, []time.Duration{<-asked, <-asked})
			equal(t, 0, len(asked))
			equal(t, []string{"POST sk_2", "POST sk_2"}, service.requests())
		})
	})
	t.Run("hangs while the credentials are still valid", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var asked atomic.Int32
			release := make(chan struct{})
			service := newCredentialService("sk_1", "sk_3", "sk_4")
			client := sourceClient(t, service, func(context.Context) (labhealth.Credentials, error) {
				n := asked.Add(1)
				if n == 2 {
					<-release
				}
				return labhealth.Credentials{Key: labhealth.Secret(fmt.Sprintf("sk_%d", n)), Expires: time.Now().Add(10 * time.Minute)}, nil
			})
			for range 20 * 60 {
				equal(t, "", errorText(write(t.Context(), client)))
				time.Sleep(time.Second)
			}
			equal(t, int32(4), asked.Load())
			close(release)
		})
	})
	t.Run("hangs for ever", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var running, most atomic.Int32
			release := make(chan struct{})
			service := newCredentialService("sk_1")
			client := sourceClient(t, service, func(context.Context) (labhealth.Credentials, error) {
				most.Store(max(most.Load(), running.Add(1)))
				defer running.Add(-1)
				<-release
				return labhealth.Credentials{Key: "sk_1"}, nil
			})
			for start := time.Now(); time.Since(start) < 24*time.Hour; time.Sleep(5 * time.Second) {
				equal(t, "labhealth: GET /v2/providers: the source of credentials did not return in time: not sent", errorText(read(t.Context(), client)))
			}
			equal(t, int32(10), most.Load())
			close(release)
			synctest.Wait()
			equal(t, "", errorText(read(t.Context(), client)))
			equal(t, int32(0), running.Load())
		})
	})
}

// Credentials that expire on arrival, as they do if the clock is wrong, are an error that says so.
// The source is not asked for others with each call.
func TestCredentialsThatExpireOnArrival(t *testing.T) {
	for _, test := range []struct {
		lifetime time.Duration
		want     string
	}{
		{-time.Hour, "returned expired credentials: check the clock of this system"},
		{0, "returned expired credentials: check the clock of this system"},
		{time.Millisecond, "returned credentials that expire in less than a second: check the clock of this system"},
		{999 * time.Millisecond, "returned credentials that expire in less than a second: check the clock of this system"},
		{time.Second, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			client := sourceClient(t, newCredentialService("sk_1"), func(context.Context) (labhealth.Credentials, error) {
				asked++
				return labhealth.Credentials{Key: "sk_1", Expires: time.Now().Add(test.lifetime)}, nil
			})
			for start := time.Now(); time.Since(start) < 10*time.Second; time.Sleep(time.Millisecond) {
				text := errorText(read(t.Context(), client))
				if test.want != "" {
					equal(t, "labhealth: GET /v2/providers: the source of credentials "+test.want+": not sent", text)
				} else {
					equal(t, "", text)
				}
			}
			if asked > 20 {
				t.Errorf("%v: asked %d times in ten seconds", test.lifetime, asked)
			}
		})
	}
}

// A source that ignores its context blocks no call for longer than 30 seconds, and what it returns
// later is used.
func TestHangingSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		release := make(chan struct{})
		client := sourceClient(t, newCredentialService("sk_1"), func(context.Context) (labhealth.Credentials, error) {
			asked.Add(1)
			<-release
			return labhealth.Credentials{Key: "sk_1"}, nil
		})
		start := time.Now()
		for range 2 {
			err := read(context.Background(), client)
			equal(t, "labhealth: GET /v2/providers: the source of credentials did not return in time: not sent", errorText(err))
			equal(t, 30*time.Second, time.Since(start))
		}
		close(release)
		synctest.Wait()
		if err := read(t.Context(), client); err != nil {
			t.Error(err)
		}
		equal(t, int32(1), asked.Load())
	})
}

// tokens is a source whose tokens are valid for ten minutes. It takes five seconds, except for the
// first token.
type tokens struct {
	service *credentialService
	asked   []time.Duration
	start   time.Time
	fail    error
}

func (s *tokens) next(context.Context) (labhealth.Credentials, error) {
	s.asked = append(s.asked, time.Since(s.start))
	if len(s.asked) > 1 {
		time.Sleep(5 * time.Second)
	}
	if s.fail != nil {
		return labhealth.Credentials{}, s.fail
	}
	token := fmt.Sprintf("at_%d", len(s.asked))
	s.service.replace("", "Bearer "+token)
	lifetime := 10 * time.Minute
	time.AfterFunc(lifetime, func() { s.service.replace("Bearer "+token, "") })
	return labhealth.Credentials{Token: labhealth.Secret(token), Expires: time.Now().Add(lifetime)}, nil
}

// Tokens are renewed in the background before they expire, so that no call waits.
func TestTokensAreRenewedEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newCredentialService()
		source := &tokens{service: service, start: time.Now()}
		client := sourceClient(t, service, source.next)
		for range 30 * 60 / 10 { // half an hour
			start := time.Now()
			if err := write(t.Context(), client); err != nil {
				t.Fatal(err)
			}
			equal(t, time.Duration(0), time.Since(start))
			time.Sleep(10 * time.Second)
		}
		equal(t, []time.Duration{0, 9 * time.Minute, 18*time.Minute + 10*time.Second, 27*time.Minute + 20*time.Second}, source.asked)

		// After a pause the token has expired: it is not sent, and the call waits.
		time.Sleep(time.Hour)
		service.requests()
		start := time.Now()
		if err := write(t.Context(), client); err != nil {
			t.Fatal(err)
		}
		equal(t, 5*time.Second, time.Since(start))
		equal(t, []string{"POST Bearer at_5"}, service.requests())
		time.Sleep(time.Hour) // for the functions that end tokens
	})
}

// While a source fails, it is asked after waits that double. A token that is still valid is used
// until shortly before it expires.
func TestFailingSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newCredentialService()
		source := &tokens{service: service, start: time.Now()}
		client := sourceClient(t, service, source.next)
		if err := read(t.Context(), client); err != nil {
			t.Fatal(err)
		}
		source.fail = &errSource{"hunter2"}
		time.Sleep(9*time.Minute + 50*time.Second)
		if err := read(t.Context(), client); err != nil {
			t.Error(err) // the source fails in the background
		}
		time.Sleep(5100 * time.Millisecond) // it failed at 9:55, when the token was no longer used
		err := read(t.Context(), client)
		equal(t, "labhealth: GET /v2/providers: the source of credentials failed: not sent", errorText(err))
		equal(t, 2, len(source.asked)) // the error is cached
		time.Sleep(150 * time.Millisecond)
		source.fail = nil
		if err := read(t.Context(), client); err != nil {
			t.Error(err)
		}
		equal(t, []time.Duration{0, 590 * time.Second, 595250 * time.Millisecond}, source.asked)
		time.Sleep(time.Hour)
	})
}

// The waits after failures of a source double up to ten seconds.
func TestSourceBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []time.Duration
		start := time.Now()
		client := sourceClient(t, newCredentialService(), func(context.Context) (labhealth.Credentials, error) {
			asked = append(asked, time.Since(start))
			return labhealth.Credentials{}, errors.New("failed")
		})
		for time.Since(start) < time.Minute {
			_ = read(t.Context(), client)
			time.Sleep(50 * time.Millisecond)
		}
		want := []time.Duration{0, 250, 750, 1750, 3750, 7750, 15750, 25750, 35750, 45750, 55750}
		for i := range want {
			want[i] *= time.Millisecond
		}
		equal(t, want, asked)
	})
}

// After a 401 the source is asked again. A read is repeated, a write is not.
func TestUnauthorizedCredentials(t *testing.T) {
	service := newCredentialService("sk_1")
	var key atomic.Pointer[string]
	key.Store(new("sk_1"))
	asked := 0
	client := sourceClient(t, service, func(context.Context) (labhealth.Credentials, error) {
		asked++
		return labhealth.Credentials{Key: labhealth.Secret(*key.Load())}, nil
	})
	rotate := func(old, replacement string) {
		service.replace(old, replacement)
		key.Store(&replacement)
	}
	if err := read(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	rotate("sk_1", "sk_2")
	if err := read(t.Context(), client); err != nil {
		t.Error(err)
	}
	equal(t, []string{"GET sk_1", "GET sk_1", "GET sk_2"}, service.requests())
	equal(t, 2, asked)

	rotate("sk_2", "sk_3")
	err := write(t.Context(), client)
	equal(t, "labhealth: POST /v3/order: 401 Unauthorized: rejected (the credentials were dropped: send it again)", errorText(err))
	equal(t, labhealth.OutcomeRejected, labhealth.OutcomeOf(err))
	equal(t, true, errors.Is(err, labhealth.ErrCredentialsDropped) && errors.Is(err, labhealth.ErrUnauthorized))
	if err := write(t.Context(), client); err != nil {
		t.Error(err)
	}
	equal(t, []string{"POST sk_2", "POST sk_3"}, service.requests())

	rotate("sk_3", "sk_4")
	key.Store(new("sk_3")) // the source is late
	err = read(t.Context(), client)
	equal(t, "labhealth: GET /v2/providers: 401 Unauthorized: rejected (the source of credentials returned the same credentials again)", errorText(err))
	equal(t, []string{"GET sk_3"}, service.requests())
	equal(t, labhealth.OutcomeRejected, labhealth.OutcomeOf(err))
	equal(t, false, errors.Is(err, labhealth.ErrCredentialsDropped))
}

// The source fails when it is asked for a replacement.
func TestUnauthorizedAndFailingSource(t *testing.T) {
	service := newCredentialService("sk_1")
	asked := 0
	client := sourceClient(t, service, func(context.Context) (labhealth.Credentials, error) {
		if asked++; asked > 1 {
			return labhealth.Credentials{}, &errSource{"hunter2"}
		}
		return labhealth.Credentials{Key: "sk_1"}, nil
	})
	if err := read(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	service.replace("sk_1", "sk_2")
	var resp labhealth.Response
	err := client.Do(t.Context(), http.MethodGet, "/v2/providers", nil, nil, labhealth.WithResponse(&resp))
	equal(t, "labhealth: GET /v2/providers: the source of credentials failed: rejected", errorText(err))
	var own *errSource
	if !errors.As(err, &own) || !errors.Is(err, labhealth.ErrUnauthorized) {
		t.Error("one of the two is missing in the chain")
	}
	equal(t, 401, resp.StatusCode)
}

// Credentials that never work cost the source one call per wait, whatever the number of calls.
func TestCredentialsThatNeverWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newCredentialService()
		asked := 0
		client := sourceClient(t, service, func(context.Context) (labhealth.Credentials, error) {
			asked++
			return labhealth.Credentials{Token: labhealth.Secret(fmt.Sprintf("at_%d", asked))}, nil
		})
		calls := 0
		for start := time.Now(); time.Since(start) < time.Minute; time.Sleep(50 * time.Millisecond) {
			calls++
			if err := read(t.Context(), client); !errors.Is(err, labhealth.ErrUnauthorized) {
				t.Fatal(err)
			}
		}
		if asked > 14 || len(service.requests()) > calls+14 {
			t.Errorf("the source was asked %d times for %d calls", asked, calls)
		}
	})
}

// Every attempt uses the current credentials, also after a wait.
func TestRetryWithCurrentCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := []string{"Retry-After", "50"}
		s := &script{replies: []reply{{status: 503, header: wait}, {status: 200, body: `{}`}, {status: 429, header: wait}, {status: 200, body: `{}`}}}
		asked := 0
		client := sourceClient(t, s, func(context.Context) (labhealth.Credentials, error) {
			asked++
			return labhealth.Credentials{Token: labhealth.Secret(fmt.Sprintf("at_%d", asked)), Expires: time.Now().Add(45 * time.Second)}, nil
		})
		if err := errors.Join(read(t.Context(), client), write(t.Context(), client)); err != nil {
			t.Fatal(err)
		}
		var used []string
		for _, sent := range s.sent {
			used = append(used, sent.Method+" "+sent.Header.Get("Authorization"))
		}
		equal(t, []string{"GET Bearer at_1", "GET Bearer at_2", "POST Bearer at_2", "POST Bearer at_3"}, used)
	})
}

// The keys of a management client are rotated in the same way. It accepts no tokens.
func TestManagementCredentials(t *testing.T) {
	service := newCredentialService("mk_1")
	credentials := labhealth.Credentials{Key: "mk_1"}
	client := must[*management.Client](t)(management.NewClient(testOrg, "", labhealth.WithBaseURL(managementURL),
		labhealth.WithHTTPClient(&http.Client{Transport: service}),
		labhealth.WithCredentials(func(context.Context) (labhealth.Credentials, error) { return credentials, nil })))
	get := func() error {
		return client.Do(t.Context(), http.MethodGet, "/v1/org/"+testOrg.String()+"/team", nil, nil)
	}
	if err := get(); err != nil {
		t.Fatal(err)
	}
	service.replace("mk_1", "mk_2")
	credentials.Key = "mk_2"
	if err := get(); err != nil {
		t.Fatal(err)
	}
	equal(t, []string{"GET mk_1", "GET mk_1", "GET mk_2"}, service.requests())
	service.replace("mk_2", "")
	credentials = labhealth.Credentials{Token: "at_1"}
	if err := get(); !strings.Contains(errorText(err), "returned a token: the management API accepts keys only") {
		t.Error(err)
	}
	equal(t, []string{"GET mk_2"}, service.requests())
}

// A source made from access tokens. The embedded service ends tokens by its clock.
func TestAccessTokenCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newMemoryListener()
		srv := labhealthtest.NewServer(t, labhealthtest.WithListener(l))
		transport := &http.Transport{DialContext: l.dial}
		defer transport.CloseIdleConnections()
		over := labhealth.WithHTTPClient(&http.Client{Transport: transport})
		admin := must[*management.Client](t)(management.NewClient(srv.OrgID, srv.OrgKey, labhealth.WithBaseURL(srv.URL), over))
		newClient := func(team uuid.UUID, env labhealth.TeamEnvironment) *labhealth.Client {
			return must[*labhealth.Client](t)(labhealth.NewClient("", labhealth.WithEnvironment(labhealth.SandboxUS, srv.URL), over,
				labhealth.WithCredentials(admin.Teams.Credentials(team, env))))
		}
		client := newClient(srv.TeamID, labhealth.TeamEnvironmentSandbox)
		srv.AddUser("ada")
		for range 100 {
			if _, err := client.Users.Resolve(t.Context(), "ada"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		count := 0
		for _, r := range srv.Requests() {
			if strings.HasSuffix(r.Path, "/create_api_access_token") {
				count++
			}
			if r.StatusCode != http.StatusOK {
				t.Error(r.Method, r.Path, r.StatusCode)
			}
		}
		equal(t, 12, count) // one for every nine minutes

		// A token of another environment is rejected by the service.
		_, err := newClient(srv.TeamID, labhealth.TeamEnvironmentProduction).Users.Resolve(t.Context(), "ada")
		if !errors.Is(err, labhealth.ErrUnauthorized) || labhealth.OutcomeOf(err) != labhealth.OutcomeRejected {
			t.Error(err)
		}
		// A team that does not exist has no tokens.
		_, err = newClient(secondTeam, labhealth.TeamEnvironmentSandbox).Users.Resolve(t.Context(), "ada")
		equal(t, "labhealth: GET /v2/user/resolve/{client_user_id}: the source of credentials failed: not sent", errorText(err))
		if !errors.Is(err, labhealth.ErrNotFound) {
			t.Error("the error of the source is missing in the chain")
		}
	})
}

// Keys that are rotated while many calls are in flight: no read fails, every write is sent once,
// and no outcome is false.
func TestRotationUnderLoad(t *testing.T) {
	var mu sync.Mutex
	valid, applied, received := "sk_0", map[string]bool{}, map[string]int{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.URL.Query().Get("id")
		mu.Lock()
		accepted := r.Header.Get("x-service-api-key") == valid
		received[id]++
		applied[id] = applied[id] || accepted
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if !accepted {
			w.WriteHeader(http.StatusUnauthorized)
		}
		fmt.Fprint(w, `{}`)
	}))
	defer srv.Close()
	client := must[*labhealth.Client](t)(labhealth.NewClient("", labhealth.WithBaseURL(srv.URL),
		labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 10}),
		labhealth.WithCredentials(func(context.Context) (labhealth.Credentials, error) {
			mu.Lock()
			defer mu.Unlock()
			return labhealth.Credentials{Key: labhealth.Secret(valid)}, nil
		})))
	defer client.CloseIdleConnections()
	var wg sync.WaitGroup
	var reads, rejected atomic.Int32
	for worker := range 16 {
		wg.Go(func() {
			for i := range 100 {
				id := fmt.Sprintf("%d-%d", worker, i)
				if i%10 == 0 && worker == 0 {
					mu.Lock()
					valid = "sk_" + id
					mu.Unlock()
				}
				method := []string{http.MethodGet, http.MethodPost}[i%2]
				err := client.Do(t.Context(), method, "/v2/providers", nil, nil, labhealth.WithQuery("id", id))
				mu.Lock()
				wasApplied, times := applied[id], received[id]
				mu.Unlock()
				switch outcome := labhealth.OutcomeOf(err); {
				case method == http.MethodGet:
					reads.Add(1)
					if err != nil {
						t.Error(err)
					}
				case times != 1, outcome == labhealth.OutcomeApplied != wasApplied, outcome == labhealth.OutcomeUnknown:
					t.Errorf("%v: outcome %s, applied %t, received %d times", err, outcome, wasApplied, times)
				case outcome == labhealth.OutcomeRejected:
					rejected.Add(1)
				}
			}
		})
	}
	wg.Wait()
	t.Log(reads.Load(), "reads,", rejected.Load(), "writes rejected")
}

// A source that fails while its credentials are still valid fails no call. The log says it.
func TestSourceFailsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		asked := 0
		source := func(context.Context) (labhealth.Credentials, error) {
			if asked++; asked > 1 && asked < 50 {
				return labhealth.Credentials{}, errors.New("Ada Example " + testKey)
			}
			return labhealth.Credentials{Key: testKey, Expires: time.Now().Add(10 * time.Minute)}, nil
		}
		s := &script{}
		for range 600 {
			s.replies = append(s.replies, reply{status: 200, body: `{"orders":[]}`})
		}
		client, err := labhealth.NewClient("", labhealth.WithBaseURL(testURL), labhealth.WithCredentials(source), labhealth.WithHTTPClient(&http.Client{Transport: s}),
			labhealth.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))))
		if err != nil {
			t.Fatal(err)
		}
		for range 590 {
			if _, err := client.Orders.List(t.Context(), labhealth.ListOrdersParams{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		const want = `level=WARN msg="labhealth: the source of credentials fails: log its errors in the function of WithCredentials" error="the source of credentials failed"`
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, want) || strings.Contains(text, "Ada") || strings.Contains(text, testKey) {
			t.Errorf("asked %d times, log:\n%s", asked, text)
		}
	})
}
