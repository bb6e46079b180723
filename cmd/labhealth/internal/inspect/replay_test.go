package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/labhealth/labhealth-go/webhooks"
)

func TestReplayMany(t *testing.T) {
	t.Parallel()
	var ids []string
	app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { ids = append(ids, r.Header.Get("Svix-Id")) }))
	defer app.Close()
	i := open(t, Config{})
	const n = 57
	for k := range n {
		r := Delivery{ID: fmt.Sprint("msg_", k)}
		one := record{Delivery: Delivery{ID: r.ID, ReceivedAt: time.Now(), Verdict: Verified, Body: []byte("{}"), Size: 2}}
		if err := i.insert(&one); err != nil {
			t.Fatal(err)
		}
	}
	deliver(i, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("forged")))
	if err := i.SetForward(app.URL); err != nil {
		t.Fatal(err)
	}
	some := Filter{After: 40, Before: 44}
	for _, c := range []struct {
		name string
		r    Replay
		want []string
	}{
		{"range", Replay{Filter: &some}, []string{"msg_40", "msg_41", "msg_42"}},
		{"reversed", Replay{Filter: &some, Order: "reversed"}, []string{"msg_42", "msg_41", "msg_40"}},
		{"copies", Replay{Filter: &some, Copies: 2}, []string{"msg_40", "msg_40", "msg_41", "msg_41", "msg_42", "msg_42"}},
		{"numbers", Replay{Numbers: []int64{3, 1, 2}}, []string{"msg_2", "msg_0", "msg_1"}},
		{"numbers reversed", Replay{Numbers: []int64{3, 1, 2}, Order: "reversed"}, []string{"msg_2", "msg_1", "msg_0"}},
		{"query", Replay{Filter: &Filter{Query: "id:msg_33 ", Before: 100}}, []string{"msg_33"}},
	} {
		ids = nil
		if _, err := i.Replay(t.Context(), c.r); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, ids); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	// What a replay adds is not replayed by it, nor is a rejected delivery.
	ids = nil
	if got, err := i.Replay(t.Context(), Replay{Filter: &Filter{Before: n + 2}, Order: "shuffled", NewID: true}); err != nil || len(got) != n || slices.IsSorted(ids) {
		t.Errorf("%d, %v", len(got), err)
	}
	// A delivery that was rejected is replayed on explicit wish.
	ids = nil
	if _, err := i.Replay(t.Context(), Replay{Numbers: []int64{n + 1}}); err != nil || len(ids) != 1 || !strings.HasPrefix(ids[0], "msg_") {
		t.Error(ids, err)
	}
	ids = nil
	if _, err := i.Replay(t.Context(), Replay{Filter: &Filter{Query: "is:rejected"}}); err != nil || len(ids) != 1 {
		t.Error(ids, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	sent := 0
	_, err := i.Replay(ctx, Replay{Filter: &Filter{}, Delay: time.Millisecond, Sent: func(Delivery) {
		if sent++; sent == 3 {
			cancel()
		}
	}})
	if sent != 3 || !errors.Is(err, context.Canceled) {
		t.Error(sent, err)
	}
	for _, r := range []Replay{{}, {Numbers: []int64{1}, Filter: &Filter{}}, {Numbers: []int64{1}, Order: "x"}, {Numbers: []int64{1}, Copies: -1},
		{Numbers: []int64{1}, Copies: maxCopies + 1}, {Numbers: []int64{1, 2}, Body: []byte("{}")}, {Numbers: []int64{1}, Delay: -1}, {Numbers: []int64{1 << 40}}} {
		if got, err := i.Replay(t.Context(), r); err == nil || len(got) != 0 {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

func TestReplayUnsigned(t *testing.T) {
	var header http.Header
	app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { header = r.Header }))
	defer app.Close()
	i := open(t, Config{Secrets: []string{}, Forward: app.URL})
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(glucoseBody(testUser, time.Now(), 5)))
	r.Header.Set("Webhook-Id", "msg_1")
	deliver(i, r)
	if _, err := i.Replay(t.Context(), Replay{Numbers: []int64{1}}); err != nil {
		t.Fatal(err)
	}
	if header.Get("Webhook-Id") != "msg_1" || header.Get("Webhook-Signature") != "" || header.Get("Webhook-Timestamp") == "" {
		t.Error(header)
	}
	if d := await(t, i, 2); d.Verdict != Unsigned || d.DuplicateOf != 1 {
		t.Errorf("%+v", d)
	}
	// A secret that is set later signs what was received without.
	if err := i.SetSecrets(testSecret); err != nil {
		t.Fatal(err)
	}
	if got, err := i.Replay(t.Context(), Replay{Numbers: []int64{1}}); err != nil || await(t, i, got[0]).Verdict != Verified || header.Get("Webhook-Signature") == "" {
		t.Error(got, err, header)
	}
	if i.SetSecrets("x") == nil || i.SetForward("ftp://x") == nil {
		t.Error("invalid values are accepted")
	}
}

func TestPrevious(t *testing.T) {
	i := open(t, Config{})
	for n, body := range []string{
		orderBody("received.walk_in_test.ordered"),
		glucoseBody(testUser, time.Now(), 5),
		orderBody("received.walk_in_test.ordered", "received.walk_in_test.requisition_created"),
		glucoseBody(testUser, time.Now(), 6),
		strings.ReplaceAll(glucoseBody(testUser, time.Now(), 6), "freestyle_libre", "dexcom_v3"),
	} {
		deliver(i, request(t, fmt.Sprint("msg_", n), body))
	}
	deliver(i, request(t, "msg_2", orderBody("received.walk_in_test.ordered"))) // a duplicate has the same predecessor
	for number, want := range map[int64]int64{1: 0, 2: 0, 3: 1, 4: 2, 5: 0, 6: 1, 99: 0} {
		d, ok, err := i.Previous(t.Context(), number)
		if err != nil || d.Number != want || ok != (want != 0) || ok && len(d.Body) == 0 {
			t.Errorf("%d: %d, %v, %v", number, d.Number, ok, err)
		}
	}
	for number, want := range map[int64]int{1: 1, 3: 1} {
		if d := await(t, i, number); d.Transitions != want {
			t.Errorf("%d: %d transitions", number, d.Transitions)
		}
	}
	buckets, err := i.Histogram(t.Context(), time.Now().Add(-time.Hour), 10*time.Minute)
	if err != nil || len(buckets) != 7 || buckets[6].Total+buckets[5].Total != 6 {
		t.Errorf("%+v, %v", buckets, err)
	}
	if _, err := i.Histogram(t.Context(), time.Now().Add(-time.Hour), time.Second); err == nil {
		t.Error("3,601 intervals are accepted")
	}
}

func TestUnknownFields(t *testing.T) {
	for body, want := range map[string]int{
		`{}`: 0,
		// An order without an envelope.
		`{"id":"00000000-0000-4000-8000-000000000001","user_id":"00000000-0000-4000-8000-000000000002","team_id":"00000000-0000-4000-8000-000000000003","events":[],"new":1}`:             1,
		`{"event_type":"labtest.order.updated","new":1,"data":{"id":"b1a7c9de-6f52-4a88-8d0e-2f1f5a3c9e01","new":1,"lab_test":{"new":{"deep":1}},"events":[{"id":1,"new":1},{"new":2}]}}`: 5,
		glucoseBody(testUser, time.Now(), 5): 0,
		strings.Replace(glucoseBody(testUser, time.Now(), 5), `"source":{`, `"new":1,"source":{"new":1,`, 1):           2,
		`{"event_type":"daily.data.sleep.created","data":{"id":"b1a7c9de-6f52-4a88-8d0e-2f1f5a3c9e01","new":{"a":1}}}`: 1,
		`{"event_type":"other","data":{"new":1}}`: 0,
	} {
		e, err := webhooks.Parse([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if got := len(UnknownFields(e)); got != want {
			t.Errorf("%.60s: %d unknown fields, want %d", body, got, want)
		}
	}
}

func TestFindings(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }))
	defer app.Close()
	i := open(t, Config{Forward: app.URL})
	finding := func() string {
		text, err := i.Finding(t.Context())
		if err != nil {
			t.Error(err)
		}
		return text
	}
	for range 3 {
		r := request(t, "msg_1", "{}")
		r.Body = io.NopCloser(strings.NewReader("{ }"))
		deliver(i, r)
	}
	if got := finding(); !strings.Contains(got, "none of the latest 3 deliveries has a valid signature") {
		t.Error(got)
	}
	for n := range 3 {
		deliver(i, request(t, fmt.Sprint("msg_", n), "{}"))
	}
	if got := finding(); !strings.Contains(got, "all of the latest 3 forwarded deliveries") {
		t.Error(got)
	}
	i.SetForward("")
	if got := deliver(i, request(t, "msg_4", "{}")); got != 204 || !strings.Contains(finding(), "all of the latest 3") {
		t.Error(got, finding())
	}
	// Rejected for its time: another check fails than for its signature.
	r := request(t, "msg_5", "{}")
	signAt(t, r, "msg_5", "{}", time.Now().Add(-time.Hour))
	deliver(i, r)
	list, _ := i.List(t.Context(), Filter{Is: "rejected"}, 1)
	if c := list[0].Checks; len(c) != 3 || !c[0].Passed || c[1].Passed || !c[2].Passed || !strings.Contains(c[1].Text, "60 min old") {
		t.Errorf("%+v", c)
	}
}

func TestTransport(t *testing.T) {
	i := open(t, Config{})
	client := &http.Client{Transport: i.Transport()}
	r := request(t, "msg_1", glucoseBody(testUser, time.Now(), 5))
	r.RequestURI = ""
	response, err := client.Do(r)
	if err != nil || response.StatusCode != http.StatusNoContent {
		t.Fatal(response, err)
	}
	response.Body.Close()
}

// What a process that was killed has stored and not put into the inbox is applied later.
func TestFeedWaiting(t *testing.T) {
	var offset atomic.Int64
	i := open(t, Config{Now: func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }})
	body := glucoseBody(testUser, time.Now(), 5)
	d := record{Delivery: Delivery{ID: "msg_1", ReceivedAt: time.Now(), Verdict: Verified, Body: []byte(body), Size: len(body)}}
	if err := i.insert(&d); err != nil {
		t.Fatal(err)
	}
	if err := i.feedWaiting(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := i.Get(t.Context(), 1); got.Applied {
		t.Error("it is still in flight")
	}
	offset.Store(int64(time.Minute))
	for range 3 {
		if err := i.feedWaiting(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := await(t, i, 1); got.Changes.Added != 1 {
		t.Errorf("%+v", got.Changes)
	}
}
