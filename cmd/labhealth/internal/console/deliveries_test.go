package console

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
	"github.com/labhealth/labhealth-go/webhooks"
)

const (
	deliverySecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
	deliveryUser   = "19cf0ec1-8b15-42d0-b786-6cff8cd8464d"
)

// deliveriesSite is a console of deliveries only, with an application.
type deliveriesSite struct {
	t         testing.TB
	console   *Console
	inspector *inspect.Inspector
	app       *httptest.Server

	mu     sync.Mutex
	status int      // of the application
	bodies []string // that the application has received
	now    time.Time
}

func newDeliveriesSite(t testing.TB) *deliveriesSite {
	t.Helper()
	s := &deliveriesSite{t: t, status: 204, now: time.Date(2026, 11, 23, 14, 32, 7, 412e6, time.UTC)}
	s.app = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.bodies = append(s.bodies, string(b))
		w.WriteHeader(s.status)
	}))
	t.Cleanup(s.app.Close)
	clock := func() time.Time {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.now
	}
	var err error
	s.inspector, err = inspect.Open(t.Context(), inspect.Config{Secrets: []string{deliverySecret}, Now: clock, Forward: s.app.URL + "/webhooks"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.inspector.Close() })
	s.console, err = New(Config{Inspector: s.inspector, Token: "token", Hosts: []string{"example.com"}, Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.console.jobs.close)
	return s
}

// deliver delivers a body, signed with a secret some time ago, and waits until it was processed. It
// returns the number.
func (s *deliveriesSite) deliver(id, secret, body string, ago time.Duration) int64 {
	s.t.Helper()
	v, err := webhooks.NewVerifier(secret)
	if err != nil {
		s.t.Fatal(err)
	}
	at := s.console.Now().Add(-ago)
	signature, err := v.Sign(id, at, []byte(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r := httptest.NewRequest("POST", "/webhooks", strings.NewReader(body))
	r.Header.Set("Svix-Id", id)
	r.Header.Set("Svix-Timestamp", strconv.FormatInt(at.Unix(), 10))
	r.Header.Set("Svix-Signature", signature)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer of-the-application")
	s.inspector.ServeHTTP(httptest.NewRecorder(), r)
	list, err := s.inspector.List(s.t.Context(), inspect.Filter{}, 1)
	if err != nil || len(list) == 0 {
		s.t.Fatal(err)
	}
	s.settle(list[0].Number)
	return list[0].Number
}

// settle waits until the store has processed a delivery.
func (s *deliveriesSite) settle(number int64) {
	s.t.Helper()
	for range 10_000 {
		d, ok, err := s.inspector.Get(s.t.Context(), number)
		if err != nil || !ok {
			s.t.Fatal(err)
		}
		if d.Applied || d.Verdict == inspect.Rejected || d.DuplicateOf > 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	s.t.Fatalf("delivery %d was not processed", number)
}

func (s *deliveriesSite) do(method, path string, form url.Values) *http.Response {
	s.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	r.AddCookie(cookie(r, "console", s.console.session(r)))
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	s.console.ServeHTTP(w, r)
	return w.Result()
}

func (s *deliveriesSite) get(path string, status int) string {
	s.t.Helper()
	return s.read(s.do("GET", path, nil), status)
}

func (s *deliveriesSite) post(path string, form url.Values, status int) string {
	s.t.Helper()
	res := s.do("POST", path, form)
	if status == http.StatusSeeOther {
		if res.StatusCode != status {
			s.t.Fatalf("POST %s: status %d: %s", path, res.StatusCode, s.read(res, res.StatusCode))
		}
		return res.Header.Get("Location")
	}
	return s.read(res, status)
}

func (s *deliveriesSite) read(res *http.Response, status int) string {
	s.t.Helper()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if res.StatusCode != status {
		s.t.Fatalf("status %d, want %d: %.500s", res.StatusCode, status, b)
	}
	return string(b)
}

// contains checks that a page has all texts, with tags removed from both sides of the comparison if
// the text has none.
func (s *deliveriesSite) contains(page string, texts ...string) {
	s.t.Helper()
	plain := tags.ReplaceAllString(page, "")
	for _, text := range texts {
		if !strings.Contains(page, text) && !strings.Contains(plain, text) {
			s.t.Errorf("the page does not contain %q", text)
		}
	}
}

var tags = regexp.MustCompile(`<[^>]*>`)

func (s *deliveriesSite) lacks(page string, texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		if strings.Contains(page, text) {
			s.t.Errorf("the page contains %q", text)
		}
	}
}

func orderDelivery(statuses ...string) string {
	var events []string
	for i, status := range statuses {
		events = append(events, fmt.Sprintf(`{"id":%d,"created_at":"2026-11-20T10:0%d:00+00:00","status":%q}`, i+1, i, status))
	}
	return `{"event_type":"labtest.order.updated","user_id":"` + deliveryUser + `","client_user_id":"member-0192","data":{"id":"2435c390-6f52-4a88-8d0e-2f1f5a3c9e01",
		"user_id":"` + deliveryUser + `","patient_details":{"first_name":"Invented","last_name":"Person","dob":"1990-01-01"},"updated_at":"2026-11-20T11:00:00+00:00","events":[` + strings.Join(events, ",") + `]}}`
}

func TestDeliveriesEmpty(t *testing.T) {
	s := newDeliveriesSite(t)
	page := s.get("/console/deliveries", 200)
	s.contains(page, "Nothing was delivered yet", "none yet", `aria-label="0 deliveries in the last ten minutes, 0 rejected"`, "Point the webhook of your team at the URL that the command printed.")
	s.lacks(page, "Replay many", "Send a test event", "Rejected 3")
	s.contains(s.get("/console/deliveries/7", 404), "There is no delivery 7")
	s.get("/console/deliveries/x", 404)
	s.get("/console/deliveries/-1", 404)
	s.get("/console/deliveries/99999999999999999999", 404)
	s.get("/console/deliveries/send", 404)
}

func TestDeliveries(t *testing.T) {
	s := newDeliveriesSite(t)
	before := make([]int, 95)
	for i := range before {
		before[i] = 100 + i%10
	}
	after := append(append([]int{}, before...), 109)
	after[91], after[93] = 121, 114
	first := s.deliver("msg_first", deliverySecret, samplesBody(before...), 2*time.Second)
	second := s.deliver("msg_second", deliverySecret, samplesBody(after...), 2*time.Second)
	again := s.deliver("msg_first", deliverySecret, samplesBody(before...), 0)
	wrong := s.deliver("msg_wrong", "whsec_"+strings.Repeat("QUJD", 10), orderDelivery("received.walk_in_test.ordered"), 0)
	old := s.deliver("msg_old", deliverySecret, orderDelivery("received.walk_in_test.ordered"), 11*time.Minute)
	s.mu.Lock()
	s.status = 500
	s.mu.Unlock()
	order := s.deliver("msg_order", deliverySecret, orderDelivery("received.walk_in_test.ordered", "received.walk_in_test.requisition_created"), 0)

	page := s.get("/console/deliveries", 200)
	s.contains(page, "<title>Deliveries · labhealth listen</title>", "Deliveries 6", "All 6", "Rejected 2", "Duplicate 1", "Changed 3", "Failed 1",
		`<a class="skip"`, `aria-label="6 deliveries in the last ten minutes, 2 rejected"`, `data-live="deliveries" data-self="/console/deliveries?shown=6"`)
	row := func(number int64) string {
		t.Helper()
		_, rest, _ := strings.Cut(page, fmt.Sprintf(`<li id="d%d"`, number))
		row, _, _ := strings.Cut(rest, "</li>")
		return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(strings.ReplaceAll(row, "><", "> <"), ""))), " ")
	}
	for number, want := range map[int64]string{
		first:  "daily.data. glucose.updated 14:32:07 member-0192 +95 → 204",
		second: "daily.data. glucose.updated 14:32:07 member-0192 +1 ~2 =93 → 204",
		again:  "daily.data. glucose.updated 14:32:07 member-0192 duplicate of #1 → 204",
		wrong:  "labtest. order.updated 14:32:07 order 2435c390 no signature matches not stored",
		old:    "labtest. order.updated 14:32:07 order 2435c390 the timestamp is 11 min old not stored",
		order:  "labtest. order.updated 14:32:07 order 2435c390 requisition created → 500",
	} {
		if got := row(number); !strings.HasSuffix(got, want) {
			t.Errorf("row %d: got %q, want %q", number, got, want)
		}
	}

	page = s.get(fmt.Sprintf("/console/deliveries/%d?q=glucose", second), 200)
	s.contains(page, "Verified and stored", "a signature matches the body and the secret", "the timestamp is 2 s old", "14:32:07.412", "attempt 1, ", "3 of 96 new", "1 added, 2 updated, 93 same",
		"the sender is done", "against #1 of 14:32:07", "95 lines the same",
		`<del><span class="l">`, `<mark>121</mark>`,
		`<div class="detail open" id="detail">`, `href="/console/deliveries?q=glucose">`, `href="/console/deliveries/2?q=glucose&amp;tab=body"`,
		`<td><code>svix-signature</code></td>`, "14:32:05, 2 s before it was received")
	s.lacks(page, "of-the-application", deliverySecret)
	if strings.Count(page, "<li id=\"d") != 3 {
		t.Errorf("%d rows for glucose", strings.Count(page, "<li id=\"d"))
	}
	s.contains(s.get(fmt.Sprintf("/console/deliveries/%d", again), 200), "Verified, and a duplicate", "this ID was received at", "Nothing new", "each delivery counts once", "Why it came twice.", `href="/console/deliveries/1"`)
	page = s.get(fmt.Sprintf("/console/deliveries/%d", wrong), 200)
	s.contains(page, "Rejected: no signature matches", `<div class="verdict bad">`, "401 in", "the sender tries again", "Compare the secret.", "only accepted deliveries are", "it is only shown here")
	s.contains(s.get(fmt.Sprintf("/console/deliveries/%d", old), 200), "Rejected: the timestamp is 11 min old", "Compare the clocks.")
	page = s.get(fmt.Sprintf("/console/deliveries/%d", order), 200)
	s.contains(page, "2 new statuses", "500 in", "received.walk_in_test.requisition_created", "All of order 2435c390…", "Show hidden values")
	s.lacks(page, "Invented", "Person", "1990-01-01")
	page = s.post(fmt.Sprintf("/console/deliveries/%d/reveal?tab=body", order), nil, 200)
	s.contains(page, "Invented", "Person", "1990-01-01")
	for _, tab := range []string{"body", "diff", "other"} {
		s.lacks(s.get(fmt.Sprintf("/console/deliveries/%d?tab=%s", order, tab), 200), "Invented", "1990-01-01")
	}
	for path, want := range map[string]int{"?is=rejected": 2, "?is=failed": 1, "?q=order%3A2435c390-6f52-4a88-8d0e-2f1f5a3c9e01": 3, "?q=zzz": 0, "?before=3": 2, "?from=2026-11-23T14:32&to=2026-11-23T14:33": 6, "?to=2026-11-23T14:32": 0} {
		if got := strings.Count(s.get("/console/deliveries"+path, 200), `<li id="d`); got != want {
			t.Errorf("%s: %d rows, want %d", path, got, want)
		}
	}
	s.contains(s.get("/console/deliveries?q=zzz%3Cb%3E", 200), "No delivery matches “zzz&lt;b&gt;”", "6 deliveries are stored")
	s.contains(s.get("/console/deliveries?before=3", 200), "Show the latest")
}

func TestDeliveriesOlder(t *testing.T) {
	s := newDeliveriesSite(t)
	for i := range 130 {
		s.deliver(fmt.Sprintf("msg_%d", i), deliverySecret, samplesBody(i), 0)
	}
	page := s.get("/console/deliveries", 200)
	s.contains(page, `href="/console/deliveries?before=31">Older deliveries</a>`, "Deliveries 130")
	if n := strings.Count(page, `<li id="d`); n != 100 {
		t.Errorf("%d rows", n)
	}
	if n := strings.Count(s.get("/console/deliveries?before=31", 200), `<li id="d`); n != 30 {
		t.Errorf("%d older rows", n)
	}
	page = s.get("/console/deliveries/replay?order=shuffled", 200)
	s.contains(page, "130 selected", "Yes, send 130 deliveries", `name="before" value="131"`, `<option value="shuffled" selected>`)
	s.contains(s.post("/console/deliveries/replay", url.Values{"before": {"131"}, "order": {"shuffled"}}, 422), "Confirm that 130 deliveries are sent.")
	if n := len(s.bodies); n != 130 {
		t.Fatalf("the application has received %d", n)
	}
	s.contains(s.post("/console/deliveries/replay", url.Values{"from": {"yesterday"}}, 422), "From: &#34;yesterday&#34; is not a time such as 2026-11-23T09:30")
	s.contains(s.post("/console/deliveries/replay", url.Values{"order": {"random"}}, 422), "Order must be received, reversed or shuffled.")
	s.contains(s.post("/console/deliveries/replay", url.Values{"q": {"zzz"}}, 422), "No delivery is selected.")
	s.post("/console/deliveries/replay", url.Values{"before": {"11"}, "order": {"reversed"}}, 303)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.bodies); n != 140 || s.bodies[130] != samplesBody(9) || s.bodies[139] != samplesBody(0) {
		t.Errorf("the application has received %d", n)
	}
}

func TestDeliveryActions(t *testing.T) {
	s := newDeliveriesSite(t)
	n := s.deliver("msg_its", deliverySecret, `{"event_type":"x"}`, 0)
	if n != 1 {
		t.Fatal(n)
	}
	n = s.deliver("msg_a", deliverySecret, samplesBody(100), 0)
	path := fmt.Sprintf("/console/deliveries/%d", n)
	for as, want := range map[string]int{"again": 1, "twice": 2, "new": 1} {
		before := s.console.countDeliveries(t.Context())
		to := s.post(path+"/replay", url.Values{"as": {as}}, 303)
		if got := s.console.countDeliveries(t.Context()) - before; got != want || to != fmt.Sprintf("/console/deliveries/%d", before+1) {
			t.Errorf("%s: %d deliveries, to %s", as, got, to)
		}
	}
	before := s.console.countDeliveries(t.Context())
	for _, as := range []string{"later", "-1", "3601", ""} {
		if to := s.post(path+"/replay", url.Values{"as": {as}}, 303); to != path || s.console.countDeliveries(t.Context()) != before {
			t.Errorf("%q: to %s, %d deliveries", as, to, s.console.countDeliveries(t.Context()))
		}
	}
	if to := s.post(path+"/replay", url.Values{"as": {"3600"}}, 303); to != path {
		t.Errorf("to %s", to)
	}
	res := s.do("POST", path+"/replay", url.Values{"as": {"again"}})
	r := httptest.NewRequest("GET", res.Header.Get("Location"), nil)
	r.AddCookie(cookie(r, "console", s.console.session(r)))
	for _, c := range res.Cookies() {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	s.console.ServeHTTP(w, r)
	s.contains(w.Body.String(), "Replayed. The application responded 204 in ", "replay of #2")

	s.contains(s.get(path+"/edit", 200), "<textarea", "&#34;value&#34;: 100")
	s.contains(s.post(path+"/edit", url.Values{"body": {"{\r\n  \"a\": 1,\r\n  b\r\n}"}}, 422), "Line 3, column 3: invalid character", `&#34;a&#34;: 1,`)
	s.contains(s.post(path+"/edit", url.Values{"body": {" "}}, 422), "The body is empty.")
	s.contains(s.post(path+"/edit", url.Values{"body": {"{\n\"a\": 1"}}, 422), "Line 2, column 7: unexpected end of JSON input")
	to := s.post(path+"/edit", url.Values{"body": {strings.ReplaceAll(samplesBody(77), ",", ",\r\n")}}, 303)
	if got := s.bodies[len(s.bodies)-1]; got != strings.ReplaceAll(samplesBody(77), ",", ",\n") {
		t.Errorf("the application has received %s", got)
	}
	edited, _ := strconv.ParseInt(strings.TrimPrefix(to, "/console/deliveries/"), 10, 64)
	s.settle(edited)
	s.contains(s.get(to, 200), "<mark>77</mark>", "replay of #2")

	order := s.deliver("msg_order", deliverySecret, orderDelivery("received.walk_in_test.ordered"), 0)
	s.lacks(s.get(fmt.Sprintf("/console/deliveries/%d/edit", order), 200), "Invented", "<textarea")
	s.contains(s.post(fmt.Sprintf("/console/deliveries/%d/open", order), nil, 200), "Invented", "<textarea")

	for bad, want := range map[string]string{"ftp://x": "Not changed", "localhost:3000": "Not changed"} {
		s.post("/console/deliveries/forward", url.Values{"url": {bad}}, 303)
		if s.inspector.Forward() != s.app.URL+"/webhooks" {
			t.Errorf("%s: %s", bad, want)
		}
	}
	s.post("/console/deliveries/forward", url.Values{"url": {""}}, 303)
	s.contains(s.get("/console/deliveries", 200), "not forwarded")
}

func TestDeliveryCommand(t *testing.T) {
	h := http.Header{"Svix-Id": {"msg_a"}, "Svix-Signature": {"v1,a'b"}, "Authorization": {"Bearer x"}, "Content-Length": {"3"}}
	want := `curl -X POST 'http://localhost:3000/webhooks' \
  -H 'svix-id: msg_a' \
  -H 'svix-signature: v1,a'\''b' \
  --data-raw '{"a":"it'\''s $HOME"}'
`
	if got := curlOfDelivery("", h, []byte(`{"a":"it's $HOME"}`)).String(); got != want {
		t.Errorf("got %s", got)
	}
	for _, body := range []string{"\xff", "a\x00b", "a\r\nb", strings.Repeat("a", maxArgument+1)} {
		if got := curlOfDelivery("http://x/", nil, []byte(body)).String(); !strings.HasPrefix(got, "base64 -d <<'BODY' | curl ") || !strings.Contains(got, "--data-binary @-\n") {
			t.Errorf("%.10q: got %.200s", body, got)
		}
	}
	s := newDeliveriesSite(t)
	n := s.deliver("msg_a", deliverySecret, samplesBody(1), 4*time.Minute)
	got := s.post(fmt.Sprintf("/console/deliveries/%d/curl", n), nil, 200)
	s.contains(got, "-H 'svix-timestamp: 1795444327'", "--data-raw '"+samplesBody(1)+"'", "'"+s.app.URL+"/webhooks'")
	s.lacks(got, deliverySecret, "of-the-application")
	s.post("/console/deliveries/99/curl", nil, 409)
	if got := s.post(fmt.Sprintf("/console/deliveries/%d/body", n), nil, 200); got != samplesBody(1) {
		t.Errorf("got %s", got)
	}
}

// TestHostileDeliveries checks that bodies of strangers are shown, escaped and fast, in all views.
func TestHostileDeliveries(t *testing.T) {
	t.Parallel()
	s := newDeliveriesSite(t)
	text := `</script><script>alert(1)</script>"><img src=x onerror=alert(1)>` + "\u2028\u202e\u0000" + `'{{.}}`
	quoted := strings.ReplaceAll(strconv.QuoteToASCII(text), `\x00`, `\u0000`)
	samples := make([]int, 20_000)
	bodies := map[string]string{
		"every text":  `{"event_type":` + quoted + `,"client_user_id":` + quoted + `,"user_id":"` + deliveryUser + `","data":{` + quoted + `:[` + quoted + `]},` + quoted + `:1}`,
		"raw text":    text,
		"order":       `{"event_type":"labtest.order.created","client_user_id":` + quoted + `,"data":{"id":"` + uuid.NewString() + `","status":` + quoted + `,"events":[{"id":1,"created_at":` + quoted + `,"status":` + quoted + `}],` + quoted + `:` + quoted + `}}`,
		"samples":     `{"event_type":"daily.data.glucose.created","user_id":"` + deliveryUser + `","client_user_id":` + quoted + `,"data":{"source":{"provider":` + quoted + `,"type":` + quoted + `},"data":[{"timestamp":"2026-11-21T06:00:00Z","value":1,"unit":` + quoted + `,"type":` + quoted + `}]}}`,
		"summary":     `{"event_type":"daily.data.sleep.created","user_id":"` + deliveryUser + `","client_user_id":` + quoted + `,"data":{"id":"` + uuid.NewString() + `","source":{"provider":` + quoted + `},"state":` + quoted + `,"date":` + quoted + `}}`,
		"deep":        strings.Repeat(`[`, 10_000) + strings.Repeat(`]`, 10_000),
		"deep object": `{"event_type":"a","data":` + strings.Repeat(`{"a":`, 900) + `1` + strings.Repeat(`}`, 900) + `}`,
		"no UTF-8":    "{\"event_type\":\"\xff\xfe\"}",
		"empty":       "",
		"large":       samplesBody(samples...),
		"long line":   `{"event_type":"a.b.c","data":"` + strings.Repeat("<", 9<<20) + `"}`,
		"number":      `{"event_type":"daily.data.glucose.created","user_id":"` + deliveryUser + `","data":{"source":{"provider":"a"},"data":[{"timestamp":"2026-11-21T06:00:00Z","value":1e999}]}}`,
	}
	for name, body := range bodies {
		var numbers []int64
		for _, id := range []string{"msg_1_", "msg_2_"} {
			numbers = append(numbers, s.deliver(id+strings.ReplaceAll(name, " ", "_"), deliverySecret, body, 0))
		}
		for _, number := range numbers {
			for _, path := range []string{"?tab=diff", "?tab=body", "/edit"} {
				start := time.Now()
				page := s.get(fmt.Sprintf("/console/deliveries/%d%s", number, path), 200)
				if took := time.Since(start); took > 3*time.Minute {
					t.Errorf("%s%s took %v", name, path, took)
				}
				if strings.Contains(page, "<script>alert") || strings.Contains(page, "<img") || path != "/edit" && strings.ContainsAny(page, "\u2028\u202e") {
					t.Errorf("%s%s: the page has the text of the event as it is", name, path)
				}
				if len(page) > 3<<20 {
					t.Errorf("%s%s: %d bytes", name, path, len(page))
				}
			}
		}
		s.post(fmt.Sprintf("/console/deliveries/%d/curl", numbers[0]), nil, 200)
	}
	start := time.Now()
	s.get("/console/deliveries", 200)
	t.Logf("the list took %v", time.Since(start))
}
