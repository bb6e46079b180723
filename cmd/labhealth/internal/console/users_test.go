package console

import (
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// usersBox is a console of users.
type usersBox struct {
	testing.TB
	server    *labhealthtest.Server // nil in listen mode
	inspector *inspect.Inspector
	console   *Console
}

const (
	usersHost   = "console.test"
	usersSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
)

// usersNow is the clock of the tests.
var usersNow = time.Date(2026, 11, 23, 9, 30, 0, 0, time.UTC)

func newUsersBox(t testing.TB, withServer bool) *usersBox {
	t.Helper()
	now := func() time.Time { return usersNow }
	box := &usersBox{TB: t}
	var err error
	box.inspector, err = inspect.Open(t.Context(), inspect.Config{Keep: inspect.KeepAll, Secrets: []string{usersSecret}, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { box.inspector.Close() })
	config := Config{Inspector: box.inspector, Token: "token", Hosts: []string{usersHost}, Now: now, Log: slog.New(slog.NewTextHandler(testWriter{t}, nil))}
	if withServer {
		box.server = labhealthtest.NewServer(t, labhealthtest.WithClock(now), labhealthtest.WithSeed(1))
		err = box.server.DeliverTo("http://inspector.invalid/", labhealthtest.WithSigningSecrets(usersSecret),
			labhealthtest.WithTransport(box.inspector.Transport()))
		if err != nil {
			t.Fatal(err)
		}
		config.Server = box.server
		config.Client, err = labhealth.NewClient(box.server.APIKey, labhealth.WithBaseURL(box.server.URL),
			labhealth.WithHTTPClient(&http.Client{Transport: box.server.Direct()}))
		if err != nil {
			t.Fatal(err)
		}
	}
	if box.console, err = New(config); err != nil {
		t.Fatal(err)
	}
	return box
}

type testWriter struct{ testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.Errorf("the console logs: %s", p)
	return len(p), nil
}

func (b *usersBox) do(method, path string, form url.Values) *http.Response {
	r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	r.Host = usersHost
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.AddCookie(cookie(r, "console", b.console.session(r)))
	w := httptest.NewRecorder()
	b.console.ServeHTTP(w, r)
	return w.Result()
}

// get returns a page that must exist.
func (b *usersBox) get(path string) string {
	b.Helper()
	resp := b.do("GET", path, nil)
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		b.Fatalf("%s: %v %s, %v", path, resp.Status, body, err)
	}
	return string(body)
}

// post does an action that must redirect, and returns the page after it.
func (b *usersBox) post(path string, form url.Values) (location, body string) {
	b.Helper()
	resp := b.do("POST", path, form)
	if resp.StatusCode != 303 {
		b.Fatalf("%s: %v", path, resp.Status)
	}
	location = resp.Header.Get("Location")
	r := httptest.NewRequest("GET", location, nil)
	r.Host = usersHost
	r.AddCookie(cookie(r, "console", b.console.session(r)))
	for _, other := range resp.Cookies() {
		r.AddCookie(other)
	}
	w := httptest.NewRecorder()
	b.console.ServeHTTP(w, r)
	return location, w.Body.String()
}

// apply stores an event.
func (b *usersBox) apply(userID uuid.UUID, resource, data string) {
	b.Helper()
	body := fmt.Sprintf(`{"event_type":"daily.data.%s.created","user_id":%q,"client_user_id":"member-0001","team_id":"6353bcab-3526-4838-8c92-063fa760fb6b","data":%s}`,
		resource, userID, data)
	event, err := webhooks.Parse([]byte(body))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := b.inspector.Store.Apply(b.Context(), webhooks.Delivery{Event: event}); err != nil && !errors.Is(err, webhooks.ErrUnreadable) {
		b.Fatalf("%s: %v", body, err)
	}
}

// applySamples stores samples, which are JSON.
func (b *usersBox) applySamples(userID uuid.UUID, resource, provider string, samples ...string) {
	b.Helper()
	b.apply(userID, resource, fmt.Sprintf(`{"user_id":%q,"source":{"provider":%q,"type":"unknown"},"source_id":1,"data":[%s]}`,
		userID, provider, strings.Join(samples, ",")))
}

// sampleJSON returns a sample; offset is null if it is empty.
func sampleJSON(at time.Time, offset string, value any, unit string) string {
	if offset == "" {
		offset = "null"
	}
	return fmt.Sprintf(`{"id":null,"timestamp":%q,"timezone_offset":%s,"type":"automatic","unit":%q,"value":%v}`,
		at.Format(time.RFC3339Nano), offset, unit, value)
}

// await waits until a page contains a text.
func (b *usersBox) await(path, text string) string {
	b.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		body := b.get(path)
		if strings.Contains(body, text) {
			return body
		}
		if time.Now().After(deadline) {
			b.Fatalf("%s does not contain %q: %s", path, text, body)
		}
	}
}

// dataOfPlot returns the data of a plot for the script.
func dataOfPlot(t testing.TB, plot string) string {
	t.Helper()
	_, rest, _ := strings.Cut(plot, `data-plot="`)
	data, _, ok := strings.Cut(rest, `"`)
	if !ok {
		t.Fatalf("no data in %s", plot)
	}
	return html.UnescapeString(data)
}

// plotOf returns the HTML of the plot with a number.
func plotOf(t testing.TB, body string, n int) string {
	t.Helper()
	_, plot, found := strings.Cut(body, fmt.Sprintf(`id="plot-%d"`, n))
	if !found {
		t.Fatalf("there is no plot %d in %s", n, body)
	}
	plot, _, _ = strings.Cut(plot, "</section>")
	return plot
}

func contains(t testing.TB, body string, want ...string) {
	t.Helper()
	for _, text := range want {
		if !strings.Contains(body, text) {
			t.Errorf("%q is missing", text)
		}
	}
}

// TestPlotNow checks that the present is at the time of the user in all plots.
func TestPlotNow(t *testing.T) {
	b := newUsersBox(t, true)
	id := b.server.AddUser("member-0001")
	at := usersNow.Add(-time.Hour) // 00:30 of the user
	b.applySamples(id, "heartrate", "oura", sampleJSON(at, "-28800", 60, "bpm"))
	b.applySamples(id, "glucose", "freestyle_libre", sampleJSON(at, "-28800", 5, "mmol/L"))
	body := b.get("/console/users/" + id.String() + "?day=2026-11-23")
	for i := range 2 {
		contains(t, dataOfPlot(t, plotOf(t, body, i)), `,"now":1795397400}`)
	}
}

// TestPlotData checks what is drawn of a small series.
func TestPlotData(t *testing.T) {
	b := newUsersBox(t, true)
	id := b.server.AddUser("member-0001")
	var samples []string
	day := date(2026, 11, 20).Add(8 * time.Hour) // midnight of the user
	for i, v := range []int{60, 70, 80, 70, 60, 50} {
		samples = append(samples, sampleJSON(day.Add(time.Duration(i)*5*time.Minute), "-28800", v, "bpm"))
	}
	samples = append(samples, sampleJSON(day.Add(26*time.Minute), "-28800", 90, "bpm")) // a second one in its slot
	for i, v := range []int{60, 62} {
		samples = append(samples, sampleJSON(day.Add(time.Duration(60+i*5)*time.Minute), "-28800", v, "bpm"))
	}
	b.applySamples(id, "heartrate", "oura", samples...)
	body := b.get("/console/users/" + id.String() + "?day=2026-11-20")
	plot := plotOf(t, body, 0)
	contains(t, body, "Friday 20 November 2026", "times of the user, UTC-08:00")
	contains(t, plot,
		`<h3>Heart rate</h3><span class="count">oura · 2 gaps, 23 h</span>`,
		`<span>low 50</span><span>high 90</span><span><b>67</b> bpm mean, low to high shaded</span>`,
		`aria-label="Heart rate: 50 to 90 bpm, 2 gaps, 23 h"`,
		`data-unit="bpm"`)
	if got, want := dataOfPlot(t, plot), `{"from":1795132800,"to":1795219200,"step":300,"usual":300,"x":[1795132950,1795133250,1795133550,1795133850,1795134150,1795134450,1795134750,1795136550,1795136850,1795137150],"y":[[60,70,80,70,60,70,null,60,62,null],[60,70,80,70,60,50,null,60,62,null],[60,70,80,70,60,90,null,60,62,null]],"gaps":[[1795134600,1795136400],[1795137000,1795219200]]}`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	week := plotOf(t, b.get("/console/users/"+id.String()+"?day=2026-11-20&span=week"), 0)
	contains(t, dataOfPlot(t, week), `{"from":1794614400,"to":1795219200,"step":3600,"usual":3600,`, `1795134600,1795138200`, `[null,69,61`)
	values := b.get("/console/users/" + id.String() + "?day=2026-11-20&as=values")
	contains(t, values, `<tr><td class="nowrap"><span class="faint">Fri 20</span> 00:25</td><td class="num">50</td><td class="num">70</td><td class="num">90</td><td class="num">2</td></tr>`)
	for path, want := range map[string]int{"?day=x": 400, "?span=month": 400, "?day=9999-12-31": 400, "?day=0002-01-01": 200, "?day=9998-12-31&span=week": 200} {
		if resp := b.do("GET", "/console/users/"+id.String()+path, nil); resp.StatusCode != want {
			t.Errorf("%s: %v", path, resp.Status)
		}
	}
}

// TestPlotKinds checks bars, the usual range of glucose, blood pressure, texts and several sources.
func TestPlotKinds(t *testing.T) {
	b := newUsersBox(t, true)
	id := b.server.AddUser("member-0001")
	at := func(minute int) time.Time { return date(2026, 11, 20).Add(time.Duration(minute) * time.Minute) }
	b.applySamples(id, "glucose", "dexcom_v3", sampleJSON(at(0), "", 5.6, "mmol/L"), sampleJSON(at(5), "", 8.4, "mmol/L"))
	b.applySamples(id, "glucose", "libre", sampleJSON(at(0), "", 100, "mg/dL"), sampleJSON(at(5), "", 110, "mg/dL"))
	b.applySamples(id, "steps", "oura", sampleJSON(at(600), "", 100, "count"), sampleJSON(at(615), "", 1100, "count"), sampleJSON(at(630), "", 0, "count"))
	b.applySamples(id, "blood_pressure", "withings", `{"timestamp":"2026-11-20T08:00:00Z","timezone_offset":null,"unit":"mmHg","systolic":120,"diastolic":80}`)
	b.applySamples(id, "note", "oura", sampleJSON(at(700), "", `"<script>alert(1)</script>"`, ""))
	body := b.get("/console/users/" + id.String())
	contains(t, body, "times in UTC", "Note (oura): no numbers.")
	contains(t, plotOf(t, body, 0), `<h3>Glucose</h3><span class="count">dexcom_v3</span>`, `in range 50 %`, `usual 3.9–7.8 shaded`,
		`<span>low 5.6</span><span>high 8.4</span>`, `&#34;target&#34;:[3.9,7.8]`)
	contains(t, plotOf(t, body, 1), `<span class="count">libre</span>`, `usual 70–140 shaded`, `in range 100 %`, `<b>105</b> mg/dL mean`)
	contains(t, plotOf(t, body, 2), `<h3>Steps</h3><span class="count">oura · 2 gaps, 23 h</span>`, `<b>1,200</b> steps</span>`, `&#34;step&#34;:900,`, `&#34;bars&#34;:true`, `null,100,1100,0,null`)
	contains(t, plotOf(t, body, 3), `<b>120/80</b> mmHg mean`, `&#34;y&#34;:[[120],[120],[120],[80],[80],[80]]`)
}

// TestPlotHostile checks that no value and no name breaks a page.
func TestPlotHostile(t *testing.T) {
	b := newUsersBox(t, true)
	id := b.server.AddUser(`<script>alert("user")</script>`)
	at := func(minute int) string {
		return date(2026, 11, 20).Add(time.Duration(minute) * time.Minute).Format(time.RFC3339)
	}
	one := func(minute int, value string) string {
		return fmt.Sprintf(`{"timestamp":%q,"timezone_offset":null,"unit":"<b>\"'","value":%s}`, at(minute), value)
	}
	for resource, samples := range map[string][]string{
		"huge":     {one(0, "1e308"), one(1, "-1e308"), one(2, "1.7976931348623157e308"), one(9, "-1.7976931348623157e308")},
		"steps":    {one(0, "1e308"), one(1, "1e308"), one(2, "1e308"), one(60, "-5")},
		"tiny":     {one(0, "5e-324"), one(5, "-5e-324"), one(10, "0")},
		"equal":    {one(0, "42"), one(5, "42"), one(10, "42")},
		"close":    {one(0, "1000000000000000"), one(5, "1000000000000000.1")},
		"single":   {one(0, "-7.25")},
		"nan":      {one(0, `"NaN"`), one(5, `"Infinity"`), one(10, `null`), one(15, `{}`), one(20, `1e400`)},
		"twice":    {one(0, "1"), one(0, "2"), one(0, "3")},
		"glucose":  {one(0, "-1e300"), one(5, "0")},
		"far":      {`{"timestamp":"0001-01-02T00:00:00Z","value":1,"unit":""}`, `{"timestamp":"9999-12-31T23:00:00Z","value":1,"unit":""}`, `{"timestamp":"2026-11-20T00:00:00Z","timezone_offset":2147483647,"value":1,"unit":""}`},
		"<script>": {one(0, "1")},
	} {
		b.applySamples(id, resource, `<img src=x>"`, samples...)
	}
	for _, query := range []string{"?day=2026-11-20", "?day=2026-11-20&span=week", "?day=2026-11-20&as=values", "", "?day=0003-01-01", "?day=9998-12-30&span=week"} {
		body := b.get("/console/users/" + id.String() + query)
		for _, bad := range []string{"NaN.", "NaN ", "Inf ", "+Inf", "<img", "<script>a", "<b>\"", "ZgotmplZ", "style="} {
			if strings.Contains(strings.ReplaceAll(body, ">NaN<", ""), bad) {
				t.Errorf("%s: %q in %s", query, bad, body)
			}
		}
	}
	contains(t, b.get("/console/users/"+id.String()+"?day=2026-11-20"), `<h3>Tiny</h3>`, `<h3>Huge</h3>`, `<h3>Equal</h3>`, `<b>42</b>`, `<b>−7.25</b>`, `<span>low −7.25</span>`)
}

// TestUserEmptyStates checks what is shown without users, sources, samples, and for a deleted user.
func TestUserEmptyStates(t *testing.T) {
	b := newUsersBox(t, true)
	contains(t, b.get("/console/users"), "No users yet", "labhealth users create member-0001")
	id := b.server.AddUser("member-0388")
	contains(t, b.get("/console/users"), "member-0388 has no source", "no source", "1, of which 0 have a source")
	b.applySamples(id, "heartrate", "oura", sampleJSON(date(2026, 11, 19).Add(12*time.Hour), "", 60, "bpm"))
	contains(t, b.get("/console/users/"+id.String()+"?day=2026-11-22"), "No samples on this day", "Another day with heart rate is Thursday 19 November 2026.",
		`href="/console/users/`+id.String()+`?day=2026-11-19"`)
	contains(t, b.get("/console/users/"+id.String()+"?day=2026-11-10&span=week"), "No samples in this week", `?day=2026-11-19&amp;span=week"`)
	contains(t, b.get("/console/users/"+id.String()), "Thursday 19 November 2026") // the last day with data
	location, body := b.post("/console/users/"+id.String()+"/delete", nil)
	if location != "/console/users/"+id.String() {
		t.Error(location)
	}
	contains(t, body, "The user was deleted.", "There is no user "+id.String()[:8], "Undo the deletion")
	_, body = b.post("/console/users/"+id.String()+"/undo", nil)
	contains(t, body, "The user is back.", "member-0388")
	if resp := b.do("GET", "/console/users/x", nil); resp.StatusCode != 404 {
		t.Error(resp.Status)
	}
}

// TestUserActions checks every action, and what it sends.
func TestUserActions(t *testing.T) {
	b := newUsersBox(t, true)
	location, body := b.post("/console/users", url.Values{"client_user_id": {"member-0001"}})
	contains(t, body, "The user was created.")
	again, body := b.post("/console/users", url.Values{"client_user_id": {"member-0001"}})
	contains(t, body, "There is such a user already")
	if again != location {
		t.Errorf("%s, %s", location, again)
	}
	_, body = b.post("/console/users", url.Values{"client_user_id": {" "}})
	contains(t, body, "the client user ID must have 1 to 200 bytes.")
	oura := url.Values{"provider": {"oura"}}
	_, body = b.post(location+"/connect", oura)
	contains(t, body, "oura is connected.", "oura, since 23 Nov")
	_, body = b.post(location+"/break", oura)
	contains(t, body, "oura, token_refresh_failed", "The connection to oura does not work.", `aria-label="oura is broken"`)
	_, body = b.post(location+"/connect", oura)
	contains(t, body, "oura, since 23 Nov")
	id := uuid.MustParse(strings.TrimPrefix(location, "/console/users/"))
	if err := b.server.SetHistoricalPull(id, "oura", "sleep", "retrying", "provider_unavailable"); err != nil {
		t.Fatal(err)
	}
	contains(t, b.get(location), "Sleep before 23 Nov is missing.", "The historical pull from oura is retrying: provider_unavailable.", `aria-label="historical pull: retrying"`)
	_, body = b.post(location+"/pull", url.Values{"provider": {"oura"}, "resource": {"sleep"}})
	if strings.Contains(body, "is missing") {
		t.Error("the pull is still missing")
	}
	_, body = b.post(location+"/samples", url.Values{"resource": {"glucose"}, "n": {"24"}, "day": {"2026-11-20"}})
	contains(t, body, "24 samples of glucose added")
	contains(t, b.await(location, "<h3>Glucose</h3>"), "Friday 20 November 2026", "times of the user, UTC&#43;01:00", `<span class="count">oura · 2 gaps, 22 h`)
	_, body = b.post(location+"/samples", url.Values{"resource": {"glucose"}, "n": {"0"}})
	contains(t, body, "n must be a number from 1 to 5,000.")
	_, body = b.post(location+"/summary", url.Values{"resource": {"nothing"}})
	contains(t, body, "nothing")
	for _, resource := range summaryResources {
		_, body = b.post(location+"/summary", url.Values{"resource": {resource}, "day": {"2026-11-20"}})
		contains(t, body, "A summary of "+resource+" was added and sent.")
	}
	_, _ = b.post(location+"/summary", url.Values{"resource": {"activity"}, "day": {"2026-11-20"}})
	for _, title := range []string{"Sleep", "Activity", "Workout", "Body", "Profile"} { // events are applied in any order
		b.await(location, "<h3>"+title+"</h3>")
	}
	body = b.await(location, "Version 2")
	contains(t, body, "<h3>Sleep</h3>", "<h3>Activity</h3>", "<h3>Workout</h3>", "<h3>Body</h3>", `<p class="big">43:00 <small>min cycling</small></p>`,
		`<rect class="bar" x="6" y="0"`, `href="/console/deliveries/`, "<dt>birth_date</dt><dd>•••••</dd>")
	_, body = b.post(location+"/refresh", nil)
	contains(t, body, "Refreshed: ")
	_, body = b.post(location+"/disconnect", oura)
	contains(t, body, "oura is disconnected.")
	_, body = b.post(location+"/disconnect", url.Values{"provider": {"../x"}})
	contains(t, body, "the provider must be a slug, such as oura.")
	for name := range map[string]bool{"connect": true, "delete": true, "samples": true} {
		if resp := b.do("GET", location+"/"+name, nil); resp.StatusCode != 405 {
			t.Errorf("GET %s: %v", name, resp.Status)
		}
	}
}

// TestUsersListen checks the pages without a service: users are those of whom data is stored.
func TestUsersListen(t *testing.T) {
	b := newUsersBox(t, false)
	contains(t, b.get("/console/users"), "Users appear with the first delivery about them.")
	id := uuid.MustParse("19cf0ec1-8b15-42d0-b786-6cff8cd8464d")
	b.applySamples(id, "heartrate", "oura", sampleJSON(usersNow.Add(-2*time.Minute), "", 60, "bpm"))
	body := b.get("/console/users")
	contains(t, body, "<h3>Heart rate</h3>", "19cf0ec1", `<span class="tag cut">oura</span>`, ">2 min</time>", `<small id="users-total">1</small>`)
	for _, bad := range []string{"<button class=\"btn danger\"", "Connect", "Add a user", "/delete"} {
		if strings.Contains(body, bad) {
			t.Errorf("listen mode shows %q", bad)
		}
	}
	if resp := b.do("POST", "/console/users/"+id.String()+"/delete", nil); resp.StatusCode != 404 && resp.StatusCode != 405 {
		t.Error(resp.Status)
	}
	resp := b.do("GET", "/console/users/"+uuid.NewString(), nil)
	if resp.StatusCode != 404 {
		t.Error(resp.Status)
	}
}

// TestUsersFilter checks the filter and the limit of the list.
func TestUsersFilter(t *testing.T) {
	b := newUsersBox(t, true)
	b.server.AddUsers(120)
	id := b.server.AddUser("needle-0001")
	body := b.get("/console/users?q=needle")
	contains(t, body, "needle-0001", `<small id="users-total">121, of which`)
	if n := strings.Count(body, "data-item="); n != 1 {
		t.Errorf("%d rows match", n)
	}
	body = b.get("/console/users/" + id.String())
	if n := strings.Count(body, "data-item="); n != 100 || !strings.Contains(body, `class="on"><a href="/console/users/`+id.String()) {
		t.Errorf("%d rows, or the user of the page is not one of them", n)
	}
	contains(t, body, "21 more match.")
	contains(t, b.get("/console/users?q=nothing"), "No user matches.")
}

// BenchmarkUserPage is the page of a user with 10,000 samples in view and 200,000 stored.
func BenchmarkUserPage(b *testing.B) {
	box := newUsersBox(b, true)
	id := box.server.AddUser("member-0001")
	if err := box.server.Connect(id, "oura"); err != nil {
		b.Fatal(err)
	}
	const inView, stored = 10_000, 200_000
	week := 7 * 24 * time.Hour
	at := date(2026, 11, 14)
	step := week / (inView / 2)
	for i := 0; i < stored/2; i += 5000 {
		var heart, glucose []string
		for n := i; n < i+5000; n++ {
			t := at.Add(time.Duration(inView/2-1-n) * step)
			heart = append(heart, sampleJSON(t, "0", 50+n%90, "bpm"))
			glucose = append(glucose, sampleJSON(t, "0", 70+n%110, "mg/dL"))
		}
		box.applySamples(id, "heartrate", "oura", heart...)
		box.applySamples(id, "glucose", "oura", glucose...)
	}
	for _, query := range []string{"?day=2026-11-20&span=week", "?day=2026-11-20", "?day=2026-11-20&span=week&as=values"} {
		b.Run(query, func(b *testing.B) {
			box.TB = b
			size := 0
			for b.Loop() {
				size = len(box.get("/console/users/" + id.String() + query))
			}
			b.ReportMetric(float64(size), "B/page")
		})
	}
}
