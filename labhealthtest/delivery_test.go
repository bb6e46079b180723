package labhealthtest_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// Invented secrets.
const (
	oldSecret = "whsec_bGFiaGVhbHRoLXRlc3Qtc2VjcmV0LWE9"
	newSecret = "bGFiaGVhbHRoLXRlc3Qtc2VjcmV0LWItMzItYnl0ZXM="
)

const receiverURL = "http://receiver.example.com/events"

// attempts describes each attempt: the body, the number, the time since noon and the result.
func attempts(srv *labhealthtest.Server) (texts []string) {
	for _, d := range srv.Deliveries() {
		text := fmt.Sprintf("%s %d %s %d", d.Body, d.Attempt, d.At.Sub(noon), d.StatusCode)
		if d.Err != nil {
			text += " error"
		}
		if d.Lost {
			text += " lost"
		}
		if d.Duplicate {
			text += " duplicate"
		}
		texts = append(texts, text)
	}
	return texts
}

// history describes the deliveries of an event.
func history(srv *labhealthtest.Server, body string) (text string) {
	for _, d := range srv.Deliveries() {
		if string(d.Body) == body {
			text += fmt.Sprint(d.ID, d.Attempt, d.Lost, d.Duplicate, " ")
		}
	}
	return text
}

func checkAttempts(t testing.TB, srv *labhealthtest.Server, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, attempts(srv)); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

func send(t testing.TB, srv *labhealthtest.Server, events ...string) {
	t.Helper()
	for _, e := range events {
		noError(t, srv.Send([]byte(e)))
	}
}

// One event is never acknowledged, another one at the third attempt.
func TestRetrySchedule(t *testing.T) {
	c := &clock{now: noon}
	srv := newServer(t, labhealthtest.WithClock(c.Now))
	tries := 0
	noError(t, srv.DeliverTo(receiverURL, labhealthtest.WithRetries(), labhealthtest.WithTransport(transportFunc(func(_ *http.Request, body string) (int, error) {
		switch {
		case body == "third":
			tries++
			return []int{500, 302, 200}[tries-1], nil
		case c.Now().Sub(noon) > time.Hour:
			return 0, errors.New("no connection")
		}
		return 400, nil
	}))))
	send(t, srv, "never", "third")
	noError(t, srv.Elapse(t.Context(), c.Set))
	checkAttempts(t, srv,
		"never 1 0s 400",
		"third 1 0s 500",
		"never 2 5s 400",
		"third 2 5s 302",
		"never 3 5m5s 400",
		"third 3 5m5s 200",
		"never 4 35m5s 400",
		"never 5 2h35m5s 0 error",
		"never 6 7h35m5s 0 error",
		"never 7 17h35m5s 0 error",
		"never 8 27h35m5s 0 error",
	)
	noError(t, srv.Flush(t.Context()))
	ids := map[string]bool{}
	for _, d := range srv.Deliveries() {
		ids[string(d.Body)+" "+d.ID] = true
	}
	if len(ids) != 2 {
		t.Errorf("IDs change between attempts: %v", ids)
	}
}

func TestDeliveryString(t *testing.T) {
	for want, d := range map[string]labhealthtest.Delivery{
		"msg_1, attempt 2: 503":                  {ID: "msg_1", Attempt: 2, StatusCode: 503, Body: []byte("{}")},
		"msg_1, attempt 3: 204, lost, duplicate": {ID: "msg_1", Attempt: 3, StatusCode: 204, Lost: true, Duplicate: true},
		"msg_1, attempt 1: dropped":              {ID: "msg_1", Attempt: 1, Dropped: true},
		"msg_1, attempt 1: gone":                 {ID: "msg_1", Attempt: 1, Err: errors.New("gone")},
	} {
		if got := fmt.Sprintf("%+v", d); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestCustomSchedule(t *testing.T) {
	c := &clock{now: noon}
	srv := newServer(t, labhealthtest.WithClock(c.Now))
	noError(t, srv.DeliverTo(receiverURL, labhealthtest.WithRetries(0, time.Minute),
		labhealthtest.WithTransport(always(503))))
	send(t, srv, "a")
	noError(t, srv.Elapse(t.Context(), c.Set))
	checkAttempts(t, srv, "a 1 0s 503", "a 2 0s 503", "a 3 1m0s 503")
}

// With the system clock, here of a synctest bubble, attempts are made at the scheduled time.
func TestRetriesWithSystemClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := labhealthtest.NewServer(t, labhealthtest.WithListener(newMemoryListener()))
		start := time.Now()
		noError(t, srv.DeliverTo(receiverURL, labhealthtest.WithRetries(),
			labhealthtest.WithTransport(transportFunc(func(*http.Request, string) (int, error) { time.Sleep(time.Second); return 503, nil }))))
		send(t, srv, "a")
		noError(t, srv.Flush(t.Context()))
		// Each wait starts after the response.
		if d, want := time.Since(start), 27*time.Hour+35*time.Minute+5*time.Second+8*time.Second; d != want {
			t.Errorf("elapsed time %s, want %s", d, want)
		}

		send(t, srv, "b")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := srv.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Flush: %v", err)
		}
	})
}

func TestReceiverTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := labhealthtest.NewServer(t, labhealthtest.WithListener(newMemoryListener()))
		start := time.Now()
		noError(t, srv.DeliverTo(receiverURL, labhealthtest.WithTransport(transportFunc(func(r *http.Request, _ string) (int, error) {
			<-r.Context().Done()
			return 0, r.Context().Err()
		}))))
		send(t, srv, "a")
		noError(t, srv.Flush(t.Context()))
		if d := srv.Deliveries()[0]; time.Since(start) != 15*time.Second || !errors.Is(d.Err, context.DeadlineExceeded) {
			t.Errorf("%v after %s", d.Err, time.Since(start))
		}
	})
}

func TestElapse(t *testing.T) {
	c := &clock{now: noon}
	srv := newServer(t, labhealthtest.WithClock(c.Now))
	noError(t, srv.Elapse(t.Context(), c.Set))
	if err := srv.Elapse(t.Context(), nil); err == nil {
		t.Error("Elapse succeeds without a function")
	}
	noError(t, srv.DeliverTo(receiverURL, labhealthtest.WithRetries(),
		labhealthtest.WithTransport(always(503))))
	send(t, srv, "a")
	if err := srv.Elapse(t.Context(), func(time.Time) {}); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("Elapse with a clock that stands still: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := srv.Elapse(ctx, func(now time.Time) { c.Set(now); cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Elapse: %v", err)
	}
	// The clock may be set to a later time.
	noError(t, srv.Elapse(t.Context(), func(now time.Time) { c.Set(now.Add(time.Hour)) }))
	if n := len(srv.Deliveries()); n != 8 {
		t.Errorf("%d attempts", n)
	}
	send(t, srv, "b")
	err = srv.Elapse(t.Context(), func(time.Time) { srv.Close() })
	if err == nil {
		t.Error("Elapse succeeded although an event was dropped")
	}
}

// Package webhooks, which shares no code with this package, verifies the signatures.
func TestSigningSecrets(t *testing.T) {
	srv := newServer(t)
	type received struct {
		header http.Header
		body   string
	}
	var got []received
	noError(t, srv.DeliverTo(receiverURL, labhealthtest.WithSigningSecrets(oldSecret, newSecret), labhealthtest.WithTransport(transportFunc(func(r *http.Request, body string) (int, error) {
		got = append(got, received{r.Header, body})
		return 200, nil
	}))))
	var plain http.Header
	noError(t, srv.DeliverTo(receiverURL, labhealthtest.WithTransport(transportFunc(func(r *http.Request, body string) (int, error) {
		plain = r.Header
		return 200, nil
	}))))
	send(t, srv, "{}", "")
	noError(t, srv.Flush(t.Context()))

	for _, secret := range []string{oldSecret, newSecret} {
		v, err := webhooks.NewVerifier(secret)
		noError(t, err)
		for _, r := range got {
			noError(t, v.VerifyAt([]byte(r.body), r.header, noon))
			if err := v.VerifyAt([]byte(r.body+" "), r.header, noon); err == nil {
				t.Error("the signature is valid for another body")
			}
		}
	}
	id := got[1].header.Get("svix-id")
	if plain.Get("svix-id") != id || plain.Get("svix-timestamp") != "" || plain.Get("svix-signature") != "" {
		t.Errorf("headers of an unsigned delivery: %v", plain)
	}
	if d := srv.Deliveries(); d[len(d)-1].ID != id || got[0].header.Get("svix-id") == id {
		t.Error("two events have the same ID, or Deliveries has another ID")
	}
}

// Lost responses and duplicates repeat the ID of an earlier delivery.
func TestNetworkConditions(t *testing.T) {
	c := &clock{now: noon}
	srv := newServer(t, labhealthtest.WithClock(c.Now))
	taken := labhealthtest.WithTransport(always(200))
	noError(t, srv.DeliverTo(receiverURL, taken, labhealthtest.WithRetries(time.Second), labhealthtest.WithNetworkConditions(labhealthtest.NetworkConditions{LoseResponse: 1})))
	send(t, srv, "a", "b")
	noError(t, srv.Elapse(t.Context(), c.Set))
	checkAttempts(t, srv, "a 1 0s 200 lost", "b 1 0s 200 lost", "a 2 1s 200 lost", "b 2 1s 200 lost")

	c = &clock{now: noon}
	srv = newServer(t, labhealthtest.WithClock(c.Now))
	noError(t, srv.DeliverTo(receiverURL, taken, labhealthtest.WithRetries(time.Second), labhealthtest.WithNetworkConditions(labhealthtest.NetworkConditions{Duplicate: 1})))
	send(t, srv, "a")
	noError(t, srv.Flush(t.Context()))
	checkAttempts(t, srv, "a 1 0s 200", "a 2 0s 200 duplicate")

	// With the same seed the same events are affected.
	var logs, perEvent [2][]string
	for i := range logs {
		c := &clock{now: noon}
		srv := newServer(t, labhealthtest.WithClock(c.Now))
		noError(t, srv.DeliverTo(receiverURL, taken, labhealthtest.WithRetries(), labhealthtest.WithNetworkConditions(
			labhealthtest.NetworkConditions{LoseResponse: 0.2, Duplicate: 0.2, Delay: 0.5, MaxDelay: time.Hour})))
		for j := range 100 {
			send(t, srv, fmt.Sprint(j))
			if j%10 == 9 {
				noError(t, srv.Elapse(t.Context(), c.Set))
			}
		}
		logs[i] = attempts(srv)
		for j := range 100 {
			perEvent[i] = append(perEvent[i], history(srv, fmt.Sprint(j)))
		}
	}
	if diff := cmp.Diff(perEvent[0], perEvent[1]); diff != "" {
		t.Errorf("the same seed affected other events:\n%s", diff)
	}
	count := func(what string) (n int) {
		for _, attempt := range logs[0] {
			if strings.Contains(attempt, what) {
				n++
			}
		}
		return n
	}
	lost, duplicates := count("lost"), count("duplicate")
	if lost < 10 || lost > 40 || duplicates < 10 || duplicates > 40 {
		t.Errorf("%d responses lost, %d duplicates", lost, duplicates)
	}
	first := func(j int) int {
		return slices.IndexFunc(logs[0], func(s string) bool { return strings.HasPrefix(s, fmt.Sprint(j, " 1 ")) })
	}
	reordered := 0
	for j := range 99 {
		if first(j) > first(j+1) {
			reordered++
		}
	}
	if reordered < 10 {
		t.Errorf("%d events arrived after a later one", reordered)
	}
}

// The conditions can be changed for receivers that exist and for those that are added later, also
// by the management API.
func TestSetNetworkConditions(t *testing.T) {
	srv := newServer(t)
	attemptsOf := func(event string) (list []string) {
		send(t, srv, event)
		noError(t, srv.Flush(t.Context()))
		for _, d := range srv.Deliveries() {
			if string(d.Body) == event {
				list = append(list, fmt.Sprint(d.URL[len("http://"):], " ", d.StatusCode, " ", d.Dropped))
			}
		}
		slices.Sort(list)
		return list
	}
	deliverTo := func(url string, opts ...labhealthtest.DeliveryOption) {
		noError(t, srv.DeliverTo("http://"+url, append(opts, labhealthtest.WithTransport(always(200)))...))
	}
	losing := labhealthtest.NetworkConditions{Lose: 1}
	deliverTo("a")
	deliverTo("b", labhealthtest.WithNetworkConditions(losing))
	if got, want := attemptsOf("1"), []string{"a 200 false", "b 0 true"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	noError(t, srv.SetNetworkConditions(losing))
	deliverTo("c")
	deliverTo("d", labhealthtest.WithNetworkConditions(labhealthtest.NetworkConditions{}))
	decode[any](t, manageOrg(t, srv, "POST", "ORG/team/TEAM/sandbox/webhook", `{"url": "http://example.com"}`))
	want := []string{"a 0 true", "b 0 true", "c 0 true", "d 200 false", "example.com 0 true"}
	if got := attemptsOf("2"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, invalid := range []labhealthtest.NetworkConditions{{Lose: 1.1}, {Duplicate: math.NaN()}, {Delay: 0.5}} {
		if err := srv.SetNetworkConditions(invalid); err == nil || !strings.HasPrefix(err.Error(), "labhealthtest: ") {
			t.Errorf("%v: %v", invalid, err)
		}
	}
	if got := attemptsOf("3"); !slices.Equal(got, want) {
		t.Errorf("invalid conditions have an effect: %q, want %q", got, want)
	}
}

// Lost events are not posted, and the others arrive in random order, some of them twice.
func TestLostEvents(t *testing.T) {
	var arrived [2]string
	for run := range arrived {
		c := &clock{now: noon}
		srv := newServer(t, labhealthtest.WithClock(c.Now))
		noError(t, srv.DeliverTo(receiverURL, labhealthtest.WithRetries(), labhealthtest.WithNetworkConditions(
			labhealthtest.NetworkConditions{Lose: 0.3, Duplicate: 0.2, Delay: 1, MaxDelay: time.Hour}),
			labhealthtest.WithTransport(transportFunc(func(_ *http.Request, body string) (int, error) {
				arrived[run] += body
				return 200, nil
			}))))
		send(t, srv, strings.Split("abcdefghijklmnopqrst", "")...)
		noError(t, srv.Elapse(t.Context(), c.Set))
		var dropped string
		for _, d := range srv.Deliveries() {
			if d.Dropped {
				dropped += string(d.Body)
			}
		}
		if dropped != "cgijlmn" || strings.ContainsAny(arrived[run], dropped) {
			t.Errorf("dropped %q, arrived %q", dropped, arrived[run])
		}
	}
	if want := "erbbaahpkkfodqqstt"; arrived[0] != want || arrived[1] != want {
		t.Errorf("arrived %q, want %q twice", arrived, want)
	}
}

func TestDeliveryLog(t *testing.T) {
	for n, want := range map[int]string{-1: "", 0: "", 2: "de", 9: "abcde"} {
		srv := newServer(t, labhealthtest.WithDeliveryLog(n))
		noError(t, srv.DeliverTo(receiverURL, labhealthtest.WithTransport(always(200))))
		send(t, srv, strings.Split("abcde", "")...)
		noError(t, srv.Flush(t.Context()))
		var got string
		for _, d := range srv.Deliveries() {
			got += string(d.Body)
		}
		if !strings.HasSuffix(got, want) || len(got) > max(2*n, len(want))+1 {
			t.Errorf("%d: %q", n, got)
		}
	}
}

func TestInvalidDeliveryOptions(t *testing.T) {
	srv := newServer(t)
	for want, opt := range map[string]labhealthtest.DeliveryOption{
		"labhealthtest: WithSigningSecrets needs a secret":                labhealthtest.WithSigningSecrets(),
		"labhealthtest: secret 1 of 1 is not base64":                      labhealthtest.WithSigningSecrets(""),
		"labhealthtest: secret 2 of 2 is not base64":                      labhealthtest.WithSigningSecrets(oldSecret, "whsec_?"),
		"labhealthtest: WithRetries needs waits that are not negative":    labhealthtest.WithRetries(1, -1),
		"labhealthtest: the rates of NetworkConditions are from 0 to 1":   labhealthtest.WithNetworkConditions(labhealthtest.NetworkConditions{Duplicate: 5}),
		"labhealthtest: the rates of NetworkConditions are from 0 to 1  ": labhealthtest.WithNetworkConditions(labhealthtest.NetworkConditions{Lose: -1}),
		"labhealthtest: the rates of NetworkConditions are from 0 to 1 ":  labhealthtest.WithNetworkConditions(labhealthtest.NetworkConditions{LoseResponse: math.NaN()}),
		"labhealthtest: NetworkConditions with Delay need a MaxDelay":     labhealthtest.WithNetworkConditions(labhealthtest.NetworkConditions{Delay: 1}),
		"labhealthtest: WithTransport needs a transport":                  labhealthtest.WithTransport(nil),
	} {
		if err := srv.DeliverTo(receiverURL, opt); err == nil || err.Error() != strings.TrimRight(want, " ") {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := srv.Send(nil); err == nil {
		t.Error("DeliverTo with an invalid option added a URL")
	}
	noError(t, srv.DeliverTo(receiverURL, nil, labhealthtest.WithTransport(always(200))))
}

func ExampleServer_Elapse() {
	clock := &clock{now: time.Date(2025, time.March, 4, 12, 0, 0, 0, time.UTC)}
	srv, err := labhealthtest.Start(labhealthtest.WithSeed(1), labhealthtest.WithClock(clock.Now))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()

	// A receiver that is unavailable until 18:00.
	receiver := transportFunc(func(*http.Request, string) (int, error) {
		if clock.Now().Hour() < 18 {
			return 0, errors.New("connection refused")
		}
		return http.StatusNoContent, nil
	})
	err = srv.DeliverTo("https://receiver.example.com/events", labhealthtest.WithSigningSecrets(oldSecret), labhealthtest.WithRetries(), labhealthtest.WithTransport(receiver))
	if err != nil {
		fmt.Println(err)
		return
	}
	srv.AddUser("ada")
	if err := srv.Send([]byte(`{"event_type":"daily.data.glucose.created"}`)); err != nil {
		fmt.Println(err)
		return
	}
	if err := srv.Elapse(context.Background(), clock.Set); err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range srv.Deliveries() {
		fmt.Println(d.Attempt, d.At.Format("15:04:05"), d.StatusCode)
	}
	// Output:
	// 1 12:00:00 0
	// 2 12:00:05 0
	// 3 12:05:05 0
	// 4 12:35:05 0
	// 5 14:35:05 0
	// 6 19:35:05 204
}
