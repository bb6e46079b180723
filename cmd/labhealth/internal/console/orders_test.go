package console

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// ordersSite is a console of a sandbox, as a browser with the token sees it.
type ordersSite struct {
	t       testing.TB
	srv     *labhealthtest.Server
	console *Console
	now     atomic.Int64
}

func (s *ordersSite) clock() time.Time { return time.Unix(0, s.now.Load()).UTC() }

// wait advances the clock.
func (s *ordersSite) wait(d time.Duration) { s.now.Add(int64(d)) }

func newOrdersSite(t testing.TB) *ordersSite {
	t.Helper()
	s := &ordersSite{t: t}
	s.now.Store(time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC).UnixNano())
	srv, err := labhealthtest.Start(labhealthtest.WithSeed(1), labhealthtest.WithClock(s.clock), labhealthtest.WithResponseLog(2000))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL), labhealth.WithHTTPClient(&http.Client{Transport: srv.Direct()}))
	if err != nil {
		t.Fatal(err)
	}
	s.srv = srv
	inspector, err := inspect.Open(t.Context(), inspect.Config{Secrets: []string{ordersSecret}, Now: s.clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inspector.Close() })
	s.console, err = New(Config{Inspector: inspector, Server: srv, Client: client, Token: "token", Hosts: []string{"example.com"}, Now: s.clock})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const ordersSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"

// deliver delivers the events of the sandbox to the inspector from now on.
func (s *ordersSite) deliver() {
	s.t.Helper()
	transport := transportFunc(func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		s.console.Inspector.ServeHTTP(w, r)
		return w.Result(), nil
	})
	if err := s.srv.DeliverTo("http://inspector.invalid/", labhealthtest.WithSigningSecrets(ordersSecret), labhealthtest.WithTransport(transport)); err != nil {
		s.t.Fatal(err)
	}
}

// transportFunc is an http.RoundTripper.
type transportFunc func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (s *ordersSite) do(method, path string, form url.Values) *http.Response {
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

// get returns a page.
func (s *ordersSite) get(path string, status int) string {
	s.t.Helper()
	res := s.do("GET", path, nil)
	b := new(strings.Builder)
	if _, err := copyAll(b, res); err != nil || res.StatusCode != status {
		s.t.Fatalf("GET %s: %d %s", path, res.StatusCode, b)
	}
	return b.String()
}

// post sends a form and returns where it leads, and the flash.
func (s *ordersSite) post(path string, form url.Values) (to, text string) {
	s.t.Helper()
	res := s.do("POST", path, form)
	if res.StatusCode != 303 {
		s.t.Fatalf("POST %s: %d", path, res.StatusCode)
	}
	r := httptest.NewRequest("GET", "/console/orders", nil)
	for _, cookie := range res.Cookies() {
		r.AddCookie(cookie)
	}
	if f := s.console.flashOf(r); f != nil {
		text = f.Tone + ": " + f.Text
	}
	return res.Header.Get("Location"), text
}

func (s *ordersSite) order(test uuid.UUID) uuid.UUID {
	s.t.Helper()
	id, err := s.srv.AddOrder(s.srv.AddUser("user-1"), test)
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

func (s *ordersSite) status(id uuid.UUID) string {
	state, _ := s.srv.OrderState(id)
	return state.Status
}

func (s *ordersSite) contains(page string, wanted ...string) {
	s.t.Helper()
	for _, want := range wanted {
		if !strings.Contains(page, want) {
			s.t.Errorf("the page lacks %s", want)
		}
	}
	if s.t.Failed() && os.Getenv("SHOW") != "" {
		s.t.Log(page)
	}
}

func (s *ordersSite) lacks(page string, unwanted ...string) {
	s.t.Helper()
	for _, text := range unwanted {
		if strings.Contains(page, text) {
			s.t.Errorf("the page has %s", text)
		}
	}
}

func TestBoard(t *testing.T) {
	s := newOrdersSite(t)
	s.contains(s.get("/console/orders", 200), "The first order appears here", "labhealth orders import examples/order.json", "Fill with 20 users and 50 orders")

	walkIn, testkit := s.order(s.srv.LabTests.WalkIn), s.order(s.srv.LabTests.Testkit)
	page := s.get("/console/orders", 200)
	s.contains(page, `<small id="orders-count">2</small>`, `<span class="n" id="received-n">2</span>`,
		`<li class="card fresh" id="order-`+walkIn.String()+`"`, `<h3 class="cut">Lipid Panel Testkit</h3>`, `aria-label="0 of 5 steps are done"`,
		`action="/console/orders/`+walkIn.String()+`/advance"`, "Advance to Requisition created (a)")
	s.wait(4 * 24 * time.Hour)
	s.contains(s.get("/console/orders", 200), `<small id="orders-count">2, of which 2 are stuck</small>`, `<time class="age" data-since="1795424400">4 d</time>`, "stuck</span>")

	found := s.get("/console/orders?q=testkit+ordered", 200)
	s.contains(found, testkit.String(), `value="testkit ordered"`)
	s.lacks(found, `id="order-`+walkIn.String())
	found = s.get("/console/orders?method=walk_in_test", 200)
	s.contains(found, `id="order-`+walkIn.String(), `data-live="orders"`)
	s.lacks(found, `id="order-`+testkit.String())
	s.contains(s.get("/console/orders?q=nothing", 200), "data-none><div><h2>No order matches</h2>")

	to, text := s.post("/console/orders/"+walkIn.String()+"/advance", url.Values{"back": {"/console/orders?method=walk_in_test"}})
	if to != "/console/orders?method=walk_in_test" || text != "ok: The order advanced to “Requisition created”." {
		t.Errorf("to %s with %s", to, text)
	}
	if got := s.status(walkIn); got != "received.walk_in_test.requisition_created" {
		t.Errorf("got %s", got)
	}
	for _, back := range []string{"https://evil.example/console/orders", "//evil.example/", "/console/users"} {
		if to, _ := s.post("/console/orders/"+testkit.String()+"/advance", url.Values{"back": {back}}); to != "/console/orders" {
			t.Errorf("%s leads to %s", back, to)
		}
	}
}

func TestAddOrders(t *testing.T) {
	s := newOrdersSite(t)
	_, text := s.post("/console/orders", url.Values{"user": {"grace-1"}, "lab_test": {s.srv.LabTests.AtHome.String()}})
	states := s.srv.OrderStates()
	if len(states) != 1 || states[0].Method != "at_home_phlebotomy" || states[0].ClientUserID != "grace-1" || text != "ok: Order "+states[0].ID.String()[:8]+" was created." {
		t.Errorf("got %+v, %s", states, text)
	}
	for want, form := range map[string]url.Values{
		"bad: Nothing was changed: user must have 1 to 200 bytes: your own ID of a user, such as user-1.": {"lab_test": {s.srv.LabTests.AtHome.String()}},
		"bad: Nothing was changed: lab_test must be the ID of a lab test.":                                {"user": {"a"}, "lab_test": {"x"}},
	} {
		if _, text := s.post("/console/orders", form); text != want {
			t.Errorf("got %s", text)
		}
	}
	if _, text := s.post("/console/orders", url.Values{"user": {"a"}, "lab_test": {uuid.NewString()}}); !strings.HasPrefix(text, "bad: Nothing was changed: ") {
		t.Errorf("got %s", text)
	}
	if _, text := s.post("/console/orders/fill", nil); text != "ok: 20 users and 50 orders were added." || len(s.srv.Orders()) != 51 {
		t.Errorf("%s: %d orders", text, len(s.srv.Orders()))
	}
}

// Each action changes the sandbox, and says so.
func TestOrderActions(t *testing.T) {
	s := newOrdersSite(t)
	for _, test := range []struct {
		action       string
		form         url.Values
		status, text string
	}{
		{"advance", nil, "received.walk_in_test.requisition_created", "ok: The order advanced to “Requisition created”."},
		{"complete", nil, "completed.walk_in_test.completed", "ok: The order was completed. It has results."},
		{"partial", nil, "sample_with_lab.walk_in_test.partial_results", "ok: The order has partial results."},
		{"fail", url.Values{"detail": {"sample_hemolyzed"}}, "failed.walk_in_test.sample_error", "ok: The sample failed: sample hemolyzed."},
		{"fail", url.Values{"status": {"hovering.walk_in_test.over_reno"}}, "hovering.walk_in_test.over_reno", "ok: The status is “Over reno”."},
		{"fail", nil, "received.walk_in_test.ordered", "bad: Nothing was changed: status is empty: enter any text, such as failed.testkit.lost."},
		{"fail", url.Values{"status": {strings.Repeat("x", 301)}}, "received.walk_in_test.ordered", "bad: Nothing was changed: status is too long: at most 300 bytes are allowed."},
		{"cancel", nil, "cancelled.walk_in_test.cancelled", "ok: The order was canceled."},
		{"correct", url.Values{"marker": {"901"}, "value": {"1"}}, "received.walk_in_test.ordered", "bad: Nothing was changed: the order has no results."},
		{"delete", nil, "", ""},
	} {
		id := s.order(s.srv.LabTests.WalkIn)
		to, text := s.post(orderPath(id)+"/"+test.action, test.form)
		if test.action == "delete" {
			test.text = "ok: Order " + id.String()[:8] + " was deleted. The service sends no event of that."
			if to != "/console/orders" {
				t.Errorf("delete leads to %s", to)
			}
			s.contains(s.get(orderPath(id), 404), "There is no order "+id.String()+": it may have been deleted.")
		} else {
			s.get(to, 200)
		}
		if got := s.status(id); got != test.status || text != test.text {
			t.Errorf("%s: %s, %s", test.action, got, text)
		}
	}
	id := s.order(s.srv.LabTests.WalkIn)
	to, text := s.post(orderPath(id)+"/redraw", nil)
	if text != "ok: This order repeats order "+id.String()[:8]+"." || to == orderPath(id) {
		t.Errorf("redraw: %s, %s", to, text)
	}
	s.contains(s.get(to, 200), "Redraw of", orderPath(id))
	s.contains(s.get("/console/orders", 200), "redraw of "+id.String()[:8])
}

func TestUnknownOrders(t *testing.T) {
	s := newOrdersSite(t)
	id := s.order(s.srv.LabTests.WalkIn)
	missing := uuid.NewString()
	s.contains(s.get("/console/orders/"+missing, 404), "There is no order "+missing)
	s.contains(s.get("/console/orders/none", 404), "The ID of an order is a UUID, not “none”.")
	s.contains(s.get(orderPath(id)+"/other.pdf", 404), "has no such document")
	for _, path := range []string{"/console/orders/" + missing + "/advance", "/console/orders/none/advance", orderPath(id) + "/explode"} {
		if _, text := s.post(path, nil); !strings.HasPrefix(text, "bad: Nothing was changed: ") {
			t.Errorf("%s: %s", path, text)
		}
	}
}

// GET changes nothing.
func TestGetChangesNothing(t *testing.T) {
	s := newOrdersSite(t)
	id := s.order(s.srv.LabTests.WalkIn)
	for _, action := range []string{"advance", "complete", "fail", "cancel", "redraw", "delete", "correct", "reveal"} {
		if res := s.do("GET", orderPath(id)+"/"+action, nil); res.StatusCode < 300 {
			t.Errorf("%s: %d", action, res.StatusCode)
		}
	}
	s.get("/console/orders", 200)
	s.get(orderPath(id), 200)
	if states := s.srv.OrderStates(); len(states) != 1 || states[0].Status != "received.walk_in_test.ordered" {
		t.Errorf("got %+v", states)
	}
}

func TestOrderPage(t *testing.T) {
	s := newOrdersSite(t)
	s.deliver()
	id := s.order(s.srv.LabTests.WalkIn)
	for range 4 {
		s.wait(time.Hour)
		if _, err := s.srv.Advance(id); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.srv.CorrectResult(id, 901, "412"); err != nil {
		t.Fatal(err)
	}
	if err := s.srv.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	page := s.get(orderPath(id), 200)
	s.contains(page, `<a class="link" href="/console/deliveries/1">#1</a> · delivered</span>`, `<a class="link" href="/console/deliveries/7">#5</a> · delivered</span>`, `<h1>Lipid Panel <small class="state">`, "Completed, walk-in", "2 results", "<time>13:00</time>", "Mon 23 Nov · event ", "Appointment scheduled",
		"Total Cholesterol", `<span class="val">412</span> <span class="unit">mg/dL</span>`, "0–200", "2093-3", "≥ 40",
		`<rect class="usual" x="4.0" y="7" width="91.`, `<dt>User</dt><dd><a class="link" href="/console/users/`, "user-1", "requisition.pdf", "results.pdf",
		"completed.walk_in_test.completed", `<span class="k">&#34;patient_details&#34;</span>`, `&#34;•••••&#34;`)
	state := s.srv.OrderStates()[0]
	o, err := s.console.Client.Orders.Get(t.Context(), state.ID)
	if err != nil {
		t.Fatal(err)
	}
	secrets := []string{*o.PatientDetails.FirstName, *o.PatientDetails.PhoneNumber, *o.PatientDetails.Email, o.PatientAddress.FirstLine}
	s.lacks(page, append(secrets, o.PatientDetails.DOB.String())...)
	s.lacks(s.get("/console/orders", 200), secrets...)

	res := s.do("POST", orderPath(id)+"/reveal", nil)
	b := new(strings.Builder)
	if _, err := copyAll(b, res); err != nil || res.StatusCode != 200 {
		t.Fatalf("reveal: %d", res.StatusCode)
	}
	s.contains(b.String(), "Hide patient", *o.PatientDetails.FirstName+" "+*o.PatientDetails.LastName, o.PatientAddress.FirstLine)
	s.lacks(b.String(), "•••••")
	s.lacks(s.get(orderPath(id), 200), secrets...)

	for _, document := range []string{"requisition.pdf", "results.pdf"} {
		res := s.do("GET", orderPath(id)+"/"+document, nil)
		b := new(strings.Builder)
		copyAll(b, res)
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/pdf" || !strings.HasPrefix(b.String(), "%PDF-") {
			t.Errorf("%s: %d %s", document, res.StatusCode, b)
		}
	}
	if to, text := s.post(orderPath(id)+"/correct", url.Values{"marker": {"902"}, "value": {"31"}}); to != orderPath(id) ||
		text != "ok: The result was corrected. The service sends no event of that: read the results again to see it." {
		t.Errorf("%s, %s", to, text)
	}
	s.contains(s.get(orderPath(id), 200), `<span class="val">31</span>`)
}

// Whatever the service says, the pages show it as text.
func TestHostileOrders(t *testing.T) {
	s := newOrdersSite(t)
	const script = `<script>alert(1)</script>`
	const escaped = `&lt;script&gt;alert(1)&lt;/script&gt;`
	id, err := s.srv.AddOrder(s.srv.AddUser(`"><img src=x onerror=alert(1)>`+script), s.srv.LabTests.WalkIn)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.srv.SetStatus(id, "completed.walk_in_test."+script); err != nil {
		t.Fatal(err)
	}
	if err := s.srv.SetResults(id, `{"metadata":{"status":"`+script+`","patient":"Grace","age":"1","dob":"","specimen_number":"","date_reported":""},
		"results":[{"name":"`+script+`","slug":"a","result":"`+script+`","type":"`+script+`","unit":"`+script+`","reference_range":"`+script+`","loinc":"`+script+`","interpretation":"`+script+`"},
		{"name":"Huge","slug":"b","result":"1e308","type":"numeric","min_range_value":-1.7e308,"max_range_value":1.7e308},
		{"name":"Reversed","slug":"c","result":"5","type":"numeric","min_range_value":9,"max_range_value":1},
		{"name":"Bound","slug":"d","result":"<1.0","type":"range","min_range_value":0,"max_range_value":3.5}],
		"missing_results":[{"name":"`+script+`","slug":"x","inferred_failure_type":"`+script+`","note":"`+script+`"}]}`); err != nil {
		t.Fatal(err)
	}
	page := s.get(orderPath(id), 200) + s.get("/console/orders", 200) + s.get("/console/orders?q="+url.QueryEscape(script), 200) +
		s.get("/console/orders/"+url.PathEscape(script), 404)
	s.lacks(page, "<script>alert", "<img src=x")
	s.contains(page, escaped, `<rect class="span" x="0.0" y="8.500"`)
	for _, body := range []string{"not JSON", `{"results":{"old":[1,2]}}`, `{"results":null}`, "[]", `{"results":[{}]}`, "null"} {
		if err := s.srv.SetResults(id, body); err != nil {
			t.Fatal(err)
		}
		s.get(orderPath(id), 200)
		s.get("/console/orders", 200)
	}
	for _, status := range []string{"x", ".", "...", "received", "\u202e", strings.Repeat("a.b", 90)} {
		if err := s.srv.SetStatus(id, status); err != nil {
			t.Fatal(err)
		}
		s.get(orderPath(id), 200)
		s.get("/console/orders", 200)
	}
	s.contains(s.get("/console/orders", 200), "unknown status")
}

func copyAll(b *strings.Builder, res *http.Response) (int64, error) {
	defer res.Body.Close()
	return io.Copy(b, res.Body)
}

// A board of 5,000 orders shows the latest 50 of each lane.
func TestLargeBoard(t *testing.T) {
	s := newOrdersSite(t)
	for i, id := range s.srv.AddOrders(5000) {
		if i%500 == 0 {
			s.wait(time.Minute)
		}
		for range i % 7 {
			if _, err := s.srv.Advance(id); err != nil {
				break
			}
		}
	}
	start := time.Now()
	page := s.get("/console/orders", 200)
	t.Logf("5,000 orders: %v, %d bytes", time.Since(start), len(page))
	if n := strings.Count(page, `<li class="card`); n != 250 && n != 200 {
		t.Errorf("%d cards", n)
	}
	s.contains(page, "lane=received", " older</a>")
	older := s.get("/console/orders?from=50&lane=completed", 200)
	if n := strings.Count(older, `<li class="card`); n != 50 {
		t.Errorf("%d older cards", n)
	}
}

// Without a sandbox, the orders are those that deliveries brought, and nothing can be changed.
func TestListenedOrders(t *testing.T) {
	s := newOrdersSite(t)
	s.deliver()
	id := s.order(s.srv.LabTests.WalkIn)
	if err := s.srv.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.wait(time.Minute)
	if _, err := s.srv.Advance(id); err != nil {
		t.Fatal(err)
	}
	if err := s.srv.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	sandbox := s.console
	var err error
	s.console, err = New(Config{Inspector: sandbox.Inspector, Token: "token", Hosts: []string{"example.com"}, Now: sandbox.Now})
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 { // deliveries are applied in the background
		if s.console.countOrders(t.Context()) == 1 && strings.Contains(s.get(orderPath(id), 200), "Requisition created") {
			break
		}
		time.Sleep(50 * time.Millisecond)
		s.wait(2 * time.Second)
	}
	s.wait(2 * time.Second) // the states of orders are kept for a second
	page := s.get("/console/orders", 200)
	s.contains(page, `id="order-`+id.String()+`"`, "Requisition created", `<h3 class="cut">Lipid Panel</h3>`)
	s.lacks(page, "/advance", "Add an order")
	page = s.get(orderPath(id), 200)
	s.contains(page, `#2</a> · delivered`, "from the latest delivery", "Show patient")
	s.lacks(page, "/advance", "/cancel", "Fail", "Grace", "Ada")
	if res := s.do("POST", orderPath(id)+"/advance", nil); res.StatusCode != 404 && res.StatusCode != 405 {
		t.Errorf("advance: %d", res.StatusCode)
	}
	if res := s.do("POST", orderPath(id)+"/reveal", nil); res.StatusCode != 200 {
		t.Errorf("reveal: %d", res.StatusCode)
	}
	s.contains(s.get("/console/orders/"+uuid.NewString(), 404), "No delivery brought an order")
}

// The timeline says why an event has no delivery, and what the network did to it.
func TestTimelineOfLostEvents(t *testing.T) {
	s := newOrdersSite(t)
	s.deliver()
	set := func(n labhealthtest.NetworkConditions) {
		t.Helper()
		if err := s.srv.SetNetworkConditions(n); err != nil {
			t.Fatal(err)
		}
	}
	flush := func() {
		t.Helper()
		if err := s.srv.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	set(labhealthtest.NetworkConditions{LoseResponse: 1})
	id := s.order(s.srv.LabTests.WalkIn)
	flush()
	set(labhealthtest.NetworkConditions{Lose: 1})
	if _, err := s.srv.Advance(id); err != nil {
		t.Fatal(err)
	}
	flush()
	set(labhealthtest.NetworkConditions{})
	if err := s.srv.PartialResults(id); err != nil {
		t.Fatal(err)
	}
	flush()
	s.wait(time.Hour)
	page := s.get(orderPath(id), 200)
	s.contains(page, "#1</a> · delivered, 1 lost response</span>", "event #2 · lost, never delivered</span>",
		"event #3 · not sent: partial_webhooks_enabled is off</span>", `">1 h</time> so far</span>`)
}
