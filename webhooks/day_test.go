package webhooks_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// near is a transport that calls a handler after a millisecond, so that no two deliveries arrive at
// the same time.
type near struct{ http.Handler }

func (n near) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(time.Millisecond)
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	n.ServeHTTP(w, r)
	return w.Result(), nil
}

// dayOfEvents returns the events of a day: batches of samples, of which later ones correct earlier
// ones, and summaries that are sent repeatedly. The client_user_id of each is its index.
func dayOfEvents(chance *rand.Rand) (events []string) {
	users, summaries := make([]uuid.UUID, 4), make([]uuid.UUID, 8)
	for i := range users {
		users[i] = uuid.UUID{6: 0x40, 8: 0x80, 15: byte(i + 1)}
	}
	for i := range summaries {
		summaries[i] = uuid.UUID{6: 0x40, 8: 0x80, 15: byte(i + 101)}
	}
	day := time.Date(2025, time.March, 4, 0, 0, 0, 0, time.UTC)
	for n := range 24 * 60 {
		user := users[chance.IntN(len(users))]
		source := `{"name":"Oura","slug":"oura","logo":""}`
		if chance.IntN(2) == 0 { // the same source in its other shape
			source = `{"provider":"oura","type":"unknown"}`
		}
		var kind, data string
		switch chance.IntN(3) {
		case 0:
			kind = "activity"
			data = fmt.Sprintf(`{"id":%q,"user_id":%q,"source":%s,"calendar_date":"2025-03-04","steps":%d}`,
				summaries[chance.IntN(len(summaries))], user, source, chance.IntN(10_000))
		case 1:
			kind = "sleep"
			data = fmt.Sprintf(`{"id":%q,"user_id":%q,"source":%s,"calendar_date":"2025-03-04","score":%d}`,
				summaries[chance.IntN(len(summaries))], user, source, chance.IntN(100))
		case 2:
			kind = "glucose"
			first := day.Add(time.Duration(n/30*30) * time.Minute) // batches of the same half hour overlap
			var samples []json.RawMessage
			for i := range 1 + chance.IntN(20) {
				samples = append(samples, fmt.Appendf(nil, `{"timestamp":%q,"timezone_offset":3600,"type":"automatic","unit":"mmol/L","value":%d.5}`,
					first.Add(time.Duration(i)*5*time.Minute).Format(time.RFC3339), chance.IntN(20)))
			}
			list, _ := json.Marshal(samples)
			data = fmt.Sprintf(`{"user_id":%q,"source":%s,"source_id":7,"data":%s}`, user, source, list)
		}
		action := []string{"created", "updated"}[chance.IntN(2)]
		events = append(events, fmt.Sprintf(
			`{"event_type":"daily.data.%s.%s","data":%s,"team_id":"8f0cd2c5-6b4e-4d0a-9a55-2f1f3f0f6c11","user_id":%q,"client_user_id":"%d"}`,
			kind, action, data, user, n))
	}
	return events
}

// number returns the index of an event in dayOfEvents.
func number(e *webhooks.Event) int {
	n, err := strconv.Atoi(e.ClientUserID)
	if err != nil {
		return -1
	}
	return n
}

// state is the content of a store as JSON by key.
type state map[any]string

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// reference applies events one after the other: the last one wins.
func reference(t *testing.T, events []*webhooks.Event) state {
	s := state{}
	for _, e := range events {
		keys, err := e.Keys()
		if err != nil {
			t.Fatal(err)
		}
		if keys.Summary != (webhooks.SummaryKey{}) {
			s[keys.Summary] = text(e.Data)
		}
		for i, key := range keys.Samples {
			s[key] = text(e.Data.(*webhooks.Samples).Data[i])
		}
	}
	return s
}

func contents(l *webhooks.Latest) state {
	s := state{}
	for key, data := range l.Summaries() {
		s[key] = text(data)
	}
	for key, sample := range l.Samples() {
		s[key] = text(sample)
	}
	return s
}

func checkState(t *testing.T, by string, want, got state) {
	t.Helper()
	if !maps.Equal(want, got) { // cmp takes long over a large map
		t.Errorf("the newest by %s (-want +got):\n%s", by, gocmp.Diff(want, got))
	}
}

func day(t *testing.T, seed uint64) {
	chance := rand.New(rand.NewPCG(seed, 5))
	events := dayOfEvents(chance)

	var mu sync.Mutex
	calls, outcomes := 0, map[webhooks.Reason]int{}
	applied := map[int]int{}
	var log []*webhooks.Event
	// The latest versions by time of receipt, and by the number that the sender gave.
	byReceipt := new(webhooks.Latest)
	byNumber := &webhooks.Latest{Version: func(d webhooks.Delivery) int64 { return int64(number(d.Event)) }}

	apply := func(ctx context.Context, e *webhooks.Event) error {
		mu.Lock()
		calls++
		what := chance.IntN(1000)
		mu.Unlock()
		switch {
		case what < 50:
			return errors.New("the database is away")
		case what < 60:
			panic("a mistake")
		case what < 70: // hangs and fails
			time.Sleep(12 * time.Second)
			return errors.New("the database is away")
		case what < 80: // succeeds after the response, and before the next attempt
			time.Sleep(12 * time.Second)
		}
		mu.Lock()
		defer mu.Unlock()
		applied[number(e)]++
		log = append(log, e)
		d := webhooks.Delivery{Event: e, ID: webhooks.DeliveryIDFrom(ctx)}
		for _, l := range []*webhooks.Latest{byReceipt, byNumber} {
			if _, err := l.Apply(d); err != nil {
				t.Error(err)
			}
		}
		return nil
	}
	h, err := webhooks.NewHandler(newVerifier(t, secretA), apply, webhooks.WithObserver(func(_ context.Context, a webhooks.DeliveryResult) {
		mu.Lock()
		defer mu.Unlock()
		outcomes[a.Reason]++
	}))
	if err != nil {
		t.Fatal(err)
	}
	srv := labhealthtest.NewServer(t, labhealthtest.WithSeed(seed), labhealthtest.WithListener(newPipes()))
	err = srv.DeliverTo("http://receiver.example.com/events",
		labhealthtest.WithSigningSecrets(secretA), labhealthtest.WithRetries(), labhealthtest.WithTransport(near{h}),
		labhealthtest.WithNetworkConditions(labhealthtest.NetworkConditions{LoseResponse: 0.05, Duplicate: 0.02, Delay: 0.3, MaxDelay: time.Hour}))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if err := srv.Send([]byte(e)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
	}
	if err := srv.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	shutDown(t, h)

	for n := range events {
		if applied[n] != 1 {
			t.Errorf("event %d was applied %d times", n, applied[n])
		}
	}
	overtaken := 0
	for i := 1; i < len(log); i++ {
		if number(log[i]) < number(log[i-1]) {
			overtaken++
		}
	}
	lost, again := 0, 0
	for _, d := range srv.Deliveries() {
		if d.Lost {
			lost++
		}
		if d.Duplicate {
			again++
		}
	}
	t.Logf("%d events, %d attempts, %d calls, %d answers lost, %d duplicates, %d events out of order, answers %v",
		len(events), len(srv.Deliveries()), calls, lost, again, overtaken, outcomes)
	if lost < 30 || again < 10 || overtaken < 100 || outcomes["failed"] < 30 || outcomes["deadline"] < 10 || outcomes["panicked"] < 5 ||
		outcomes["duplicate"] < lost/2 {
		t.Error("the day was too quiet to show anything")
	}

	slices.SortFunc(log, func(a, b *webhooks.Event) int { return a.ReceivedAt.Compare(b.ReceivedAt) })
	checkState(t, "receipt", reference(t, log), contents(byReceipt))
	slices.SortFunc(log, func(a, b *webhooks.Event) int { return cmp.Compare(number(a), number(b)) })
	checkState(t, "number", reference(t, log), contents(byNumber))
}
