package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks"
)

const testSecret = "whsec_aW52ZW50ZWQgZm9yIHRoZSB0ZXN0cyBvZiBpbnNwZWN0"

var (
	testUser  = uuid.MustParse("7d2f8f2e-0a43-4f7f-9b2c-8f2d1f6f0a01")
	testOrder = uuid.MustParse("b1a7c9de-6f52-4a88-8d0e-2f1f5a3c9e01")
)

// open returns an inspector with the secret of the tests, in a new file.
func open(t testing.TB, c Config) *Inspector {
	t.Helper()
	if c.File == "" {
		c.File = filepath.Join(t.TempDir(), "deliveries.db")
	}
	if c.Secrets == nil {
		c.Secrets = []string{testSecret}
	}
	i, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	return i
}

// request returns a signed delivery.
func request(t testing.TB, id, body string) *http.Request {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/webhooks", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	signAt(t, r, id, body, time.Now())
	return r
}

func signAt(t testing.TB, r *http.Request, id, body string, at time.Time) {
	t.Helper()
	v, err := webhooks.NewVerifier(testSecret)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := v.Sign(id, at, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Svix-Id", id)
	r.Header.Set("Svix-Timestamp", strconv.FormatInt(at.Unix(), 10))
	r.Header.Set("Svix-Signature", signature)
}

// deliver passes a request to the inspector and returns the status code.
func deliver(i http.Handler, r *http.Request) int {
	w := httptest.NewRecorder()
	i.ServeHTTP(w, r)
	return w.Code
}

func glucoseBody(user uuid.UUID, at time.Time, value float64) string {
	return fmt.Sprintf(`{"event_type":"daily.data.glucose.created","user_id":%q,"client_user_id":"patient-17","data":{"user_id":%q,
		"source":{"provider":"freestyle_libre","type":"automatic"},"data":[{"timestamp":%q,"value":%g,"unit":"mmol/L","type":"automatic"}]}}`,
		user, user, at.Format(time.RFC3339), value)
}

func orderBody(status ...string) string {
	var events []string
	for n, s := range status {
		events = append(events, fmt.Sprintf(`{"id":%d,"created_at":"2026-11-20T10:0%d:00+00:00","status":%q}`, n+1, n, s))
	}
	last := events[len(events)-1]
	return fmt.Sprintf(`{"event_type":"labtest.order.updated","user_id":%q,"data":{"id":%q,"user_id":%q,"updated_at":"2026-11-20T11:0%d:00+00:00",
		"events":[%s],"last_event":%s}}`, testUser, testOrder, testUser, len(status), strings.Join(events, ","), last)
}

// await waits until the store has applied a delivery.
func await(t testing.TB, i *Inspector, number int64) Delivery {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		d, ok, err := i.Get(context.Background(), number)
		if err != nil {
			t.Fatal(err)
		}
		if ok && d.Applied {
			return d
		}
	}
	t.Fatalf("delivery %d was not applied", number)
	return Delivery{}
}

func TestReceive(t *testing.T) {
	var forwarded []*http.Request
	var bodies []string
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		forwarded, bodies = append(forwarded, r), append(bodies, string(b))
		w.WriteHeader(http.StatusAccepted)
	}))
	defer app.Close()
	i := open(t, Config{Forward: app.URL + "/hooks"})
	body := orderBody("received.walk_in_test.ordered", "received.walk_in_test.requisition_created")
	r := request(t, "msg_1", body)
	r.Header.Set("Authorization", "Bearer invented")
	r.Header.Set("Connection", "X-Hop")
	r.Header.Set("X-Hop", "1")
	if got := deliver(i, r); got != http.StatusAccepted {
		t.Fatalf("status %d", got)
	}
	d := await(t, i, 1)
	if d.Verdict != Verified || d.Type != "labtest.order.updated" || d.UserID != testUser || d.OrderID != testOrder || d.Transitions != 2 ||
		d.Changes.Added != 1 || d.StatusCode != 202 || d.Forward == nil || d.Forward.StatusCode != 202 || d.About != "received.walk_in_test.requisition_created" ||
		string(d.Body) != body || d.ID != "msg_1" || d.Attempt != 1 {
		b, _ := json.MarshalIndent(d, "", " ")
		t.Errorf("%s", b)
	}
	if d.Header.Get("Authorization") != "" {
		t.Error("the authorization is stored")
	}
	got := forwarded[0]
	if bodies[0] != body || got.Header.Get("Svix-Signature") != r.Header.Get("Svix-Signature") || got.Header.Get("Authorization") == "" ||
		got.Header.Get("X-Hop") != "" || got.URL.Path != "/hooks" || got.Host != strings.TrimPrefix(app.URL, "http://") {
		t.Errorf("forwarded %s %s %v", got.Host, got.URL, got.Header)
	}
	if got := deliver(i, request(t, "msg_1", body)); got != http.StatusAccepted {
		t.Fatalf("status %d", got)
	}
	if d := await(t, i, 2); d.DuplicateOf != 1 || d.Attempt != 2 || d.Changes.Added != 0 || len(forwarded) != 2 {
		t.Errorf("duplicate of %d, attempt %d, %d forwarded", d.DuplicateOf, d.Attempt, len(forwarded))
	}
}

func TestReject(t *testing.T) {
	i := open(t, Config{})
	wrong := request(t, "msg_1", glucoseBody(testUser, time.Now(), 5.1))
	wrong.Body = io.NopCloser(strings.NewReader(glucoseBody(testUser, time.Now(), 5.2)))
	if got := deliver(i, wrong); got != http.StatusUnauthorized {
		t.Errorf("status %d", got)
	}
	if got := deliver(i, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("x"))); got != http.StatusUnauthorized {
		t.Errorf("status %d", got)
	}
	list, err := i.List(t.Context(), Filter{Is: "rejected"}, 10)
	if err != nil || len(list) != 2 {
		t.Fatalf("%d, %v", len(list), err)
	}
	if !strings.Contains(list[1].Reason, "no signature matches") || !strings.Contains(list[0].Reason, "no signature headers") {
		t.Errorf("%q, %q", list[0].Reason, list[1].Reason)
	}
	if got := deliver(i, request(t, "msg_2", "no JSON")); got != http.StatusNoContent {
		t.Errorf("status %d", got)
	}
	if d, _, _ := i.Get(t.Context(), 3); d.Verdict != Verified || !strings.HasPrefix(d.Reason, "not an event: at byte 0") || !d.Applied {
		t.Errorf("%s %q", d.Verdict, d.Reason)
	}
}

func TestReplayOne(t *testing.T) {
	var ids []string
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, _ := webhooks.NewVerifier(testSecret)
		b, _ := io.ReadAll(r.Body)
		if err := v.Verify(b, r.Header); err != nil {
			t.Error(err)
		}
		ids = append(ids, r.Header.Get("Svix-Id"))
	}))
	defer app.Close()
	i := open(t, Config{Forward: app.URL})
	deliver(i, request(t, "msg_1", glucoseBody(testUser, time.Now(), 5.1)))
	for n, r := range []Replay{{Numbers: []int64{1}}, {Numbers: []int64{1}, NewID: true}, {Numbers: []int64{1}, Body: []byte(glucoseBody(testUser, time.Now(), 6))}} {
		got, err := i.Replay(t.Context(), r)
		if err != nil || len(got) != 1 || got[0] != int64(n+2) {
			t.Fatalf("%v, %v", got, err)
		}
		d := await(t, i, got[0])
		if d.ReplayOf != 1 || d.Verdict != Verified || (d.DuplicateOf == 1) != (n == 0) || d.StatusCode != 200 {
			t.Errorf("%+v", d)
		}
	}
	if len(ids) != 4 || ids[1] != "msg_1" || ids[2] == "msg_1" || ids[3] == "msg_1" || ids[2] == ids[3] {
		t.Error(ids)
	}
}

func TestSearch(t *testing.T) {
	i := open(t, Config{})
	deliver(i, request(t, "msg_1", glucoseBody(testUser, time.Now(), 5.1)))
	deliver(i, request(t, "msg_2", orderBody("received.walk_in_test.ordered")))
	await(t, i, 1)
	await(t, i, 2)
	for query, want := range map[string]int{
		"": 2, "glucose": 1, "gluc": 1, "type:glucose": 1, "type:labtest.order": 1, "user:7d2f8f2e": 2, "user:7d2f8f2e-0a43-4f": 2, "user:patient-17": 1,
		"order:b1a7c9de": 1, "id:msg_2": 1, "is:verified": 2, "is:rejected": 0, "is:nonsense": 0, "freestyle": 1, "walk_in ordered": 1,
		`"`: 2, `glucose" OR "`: 0, "AND": 0, "NEAR(a b)": 0, "*": 2, "type:": 2, "words:x": 0, "-": 2, "\x00": 2, "a\x00b": 0, "^gl": 1, "{type}:x": 0,
		strings.Repeat("x ", 10_000): 0, strings.Repeat("ü", 10_000): 0, "'; DROP TABLE deliveries; --": 0, "is:changed gluc": 1,
	} {
		n, err := i.Count(t.Context(), Filter{Query: query})
		if err != nil || n != want {
			t.Errorf("%.40q: %d, %v; want %d", query, n, err, want)
		}
		list, err := i.List(t.Context(), Filter{Query: query}, 10)
		if err != nil || len(list) != want {
			t.Errorf("%.40q: list of %d, %v; want %d", query, len(list), err, want)
		}
	}
}

func TestWatch(t *testing.T) {
	i := open(t, Config{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	seen := i.Watch(ctx)
	deliver(i, request(t, "msg_1", glucoseBody(testUser, time.Now(), 5.1)))
	for number := range seen {
		if d, _, _ := i.Get(ctx, number); d.Applied {
			return
		}
	}
	t.Error("no change was seen")
}
