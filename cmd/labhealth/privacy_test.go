package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
)

// secretWord is in every value of a patient in these tests, followed by where it was.
const secretWord = "Zyxwv"

var secretValue = regexp.MustCompile(secretWord + `[\w.-]*`)

// crawl visits the paths and every kind of link from there, and returns the pages by their path.
func crawl(t *testing.T, b *box, cookies []*http.Cookie, paths ...string) map[string]string {
	t.Helper()
	pages, shapes, ofEachShape := map[string]string{}, map[string]int{}, 2
	if long() {
		ofEachShape = 6
	}
	for queue := slices.Clone(paths); len(queue) > 0 && len(pages) < 300; queue = queue[1:] {
		path := queue[0]
		if _, seen := pages[path]; seen || strings.HasPrefix(path, "/console/live") {
			continue
		}
		resp, text := visitConsole(t, b, visit{path: path, cookies: cookies})
		for name, values := range resp.Header {
			text += "\n" + name + ": " + strings.Join(values, " ")
		}
		pages[path] = text
		for _, link := range linksOf(text) {
			if shape := shapeOf(link); shapes[shape] < ofEachShape {
				shapes[shape]++
				queue = append(queue, link)
			}
		}
	}
	return pages
}

// listenLive returns what is sent to all pages that are open.
func listenLive(t *testing.T, b *box, cookies []*http.Cookie) (text func() string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.URL+"/console/live?since=", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, cookie := range cookies {
		req.AddCookie(cookie)
	}
	resp := roundTrip(t, req)
	var all lockedBuffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 8<<20)
		for lines.Scan() {
			fmt.Fprintln(&all, lines.Text())
		}
	}()
	return func() string {
		cancel()
		<-done
		resp.Body.Close()
		return all.String()
	}
}

// privateEvents are events with a secret value wherever a patient can be: in fields that the
// library has and in others, in malformed ones, and in bodies that are no events.
func privateEvents(user, order string) []string {
	n := 0
	var all []string
	add := func(event string) {
		event = strings.NewReplacer("USER", user, "ORDER", order, "NEW", uuid.NewString()).Replace(event)
		for strings.Contains(event, "SECRET") {
			n++
			event = strings.Replace(event, "SECRET", fmt.Sprintf("%s.%d.%d", secretWord, len(all), n), 1)
		}
		all = append(all, event)
	}
	const orderData = `{"id":"ORDER","user_id":"USER","status":"received","maiden_name":"SECRET","sample_id":"S1",
		"patient_details":{"first_name":"SECRET","last_name":"SECRET","dob":"SECRET","gender":"SECRET","phone_number":"SECRET","email":"SECRET","nick":"SECRET"},
		"patient_address":{"receiver_name":"SECRET","first_line":"SECRET","second_line":"SECRET","city":"SECRET","state":"SECRET","zip":"SECRET","country":"SECRET","floor":"SECRET"},
		"physician":{"first_name":"SECRET","npi":"SECRET"},"notes":"SECRET","clinical_notes":"SECRET","health_insurance_id":"x","icd_codes":["SECRET"],
		"details":{"type":"walk_in_test","data":{"id":"x","passport":"SECRET"}},"lab_test":{"name":"x","memo":"SECRET"},
		"insurance":{"member":"SECRET"},"responsible_party":"SECRET","created_at":"SECRET","activate_by":{"SECRET":"SECRET"},"has_abn":"SECRET",
		"events":[{"id":1,"status":"received.walk_in_test.ordered","created_at":"SECRET","by":"SECRET"}]}`
	add(`{"event_type":"labtest.order.updated","user_id":"USER","who":"SECRET","data":` + orderData + `}`)
	add(`{"event_type":"labtest.order.updated","user_id":"USER","data":` + orderData + `}`) // another version
	add(`{"event_type":"labtest.order.updated","user_id":"SECRET","team_id":"SECRET","data":{"id":"NEW","status":"received","events":"SECRET"}}`)
	add(`{"event_type":"labtest.result.critical","user_id":"USER","data":{"order_id":"ORDER","status":"new","results":[{"name":"x","result":"SECRET","value":"SECRET","notes":"SECRET"}],"patient":"SECRET","comment":"SECRET"}}`)
	add(`{"event_type":"labtest.appointment.updated","user_id":"USER","data":{"id":"NEW","order_id":"ORDER","status":"confirmed","appointment_notes":"SECRET","gate":"SECRET",
		"address":{"first_line":"SECRET","lot":"SECRET"},"location":{"lng":1,"hint":"SECRET"},"start_at":"SECRET","provider":"getlabs","data":{"x":"SECRET"}}}`)
	for _, typ := range []string{"labtest.order.archived", "patient.created", "", "daily.data.mood.created"} {
		add(`{"event_type":"` + typ + `","user_id":"USER","data":{"id":"NEW","given_name":"SECRET","family":{"name":"SECRET"},"list":["SECRET",{"ssn":"SECRET"}],"name":"SECRET"},"name":"SECRET"}`)
	}
	add(`{"event_type":"daily.data.sleep.created","user_id":"USER","data":{"id":"NEW","user_id":"USER","calendar_date":"2026-11-22","total":1,"diary":"SECRET","date":"SECRET",
		"source":{"provider":"oura","slug":"oura","type":"ring","name":"SECRET","app_id":"SECRET","device_id":"SECRET","owner":"SECRET"},"bedtime_start":"SECRET","nested":{"owner":"SECRET"}}}`)
	for range 2 {
		add(`{"event_type":"daily.data.glucose.created","user_id":"USER","data":{"user_id":"USER","source":{"provider":"oura","slug":"oura","type":"cgm","name":"SECRET","device_id":"SECRET","app_id":"SECRET"},"cohort":"SECRET",
		"data":[{"id":1,"timestamp":"2026-11-22T10:00:00Z","value":5,"unit":"mmol/L","type":"automatic","note":"SECRET","owner":"SECRET"},{"id":2,"timestamp":"2026-11-22T10:05:00Z","value":"SECRET","unit":"mmol/L"},{"timestamp":"SECRET"},"SECRET"]}}`)
	}
	add(`{"event_type":"daily.data.note.created","user_id":"USER","data":{"user_id":"USER","source":{"provider":"oura"},"data":[{"id":1,"timestamp":"2026-11-22T10:00:00Z","value":"SECRET","type":"x","content":"SECRET","tags":["SECRET"]}]}}`)
	add(`{"event_type":"provider.connection.error","user_id":"USER","data":{"provider":"oura","error_type":"token_refresh_failed","error_message":"SECRET","account":"SECRET"}}`)
	add(`{"event_type":"historical.data.sleep.created","user_id":"USER","data":{"user_id":"USER","provider":"oura","start_date":"SECRET","end_date":"SECRET","account":"SECRET"}}`)
	for _, text := range []string{`{"event_type":"labtest.order.updated","data":{"given":"SECRET","x":`, `given SECRET`, `<patient name="SECRET"/>`, `name=SECRET&dob=SECRET`, `["SECRET"]`, `"SECRET"`, `{"data":"SECRET"}`,
		`{"event_type":{"x":"SECRET"},"data":{"name":"SECRET"}}`, `{"event_type":"SECRET` + "\xff" + `"}`} {
		add(text)
	}
	return all
}

// checkPrivate checks that no page has a secret value.
func checkPrivate(t *testing.T, pages map[string]string) {
	t.Helper()
	leaks := map[string][]string{}
	for _, path := range slices.Sorted(maps.Keys(pages)) {
		for _, at := range secretValue.FindAllStringIndex(pages[path], -1) {
			text := pages[path]
			value := text[at[0]:at[1]]
			leaks[value] = append(leaks[value], fmt.Sprintf("%s: …%s…", path, strings.ReplaceAll(text[max(0, at[0]-120):min(len(text), at[1]+20)], "\n", " ")))
		}
	}
	for _, value := range slices.Sorted(maps.Keys(leaks)) {
		t.Errorf("%s is in %d places: %s", value, len(leaks[value]), leaks[value][0])
	}
}

// Whatever service and clients send of a patient, no page has it that was not asked for it by POST.
func TestPrivacySandbox(t *testing.T) {
	t.Parallel()
	s, err := startSandbox(t.Context(), sandboxFlags{addr: "127.0.0.1:0", users: 3, orders: 12, seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	b := &box{sandboxState: s.state(), t: t}
	cookies := login(t, b)
	order, user := s.server.Orders()[0], uuid.Nil
	for u := range allUsers(s) {
		user = u.UserID
	}
	live := listenLive(t, b, cookies)
	events := privateEvents(user.String(), fmt.Sprint(order))
	for _, event := range events {
		if err := s.server.Send([]byte(event)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.server.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	privateRequests(t, b)
	dump(t, s) // waits until the deliveries are applied
	time.Sleep(2 * time.Second)
	pages := crawl(t, b, cookies, "/console/", "/console/orders", "/console/users", "/console/deliveries", "/console/requests", "/console/faults", "/console/deliveries?is=malformed",
		"/console/orders/"+fmt.Sprint(order), "/console/users/"+user.String(), "/console/users/"+user.String()+"?day=2026-11-22", "/console/users/"+user.String()+"?day=2026-11-22&as=values")
	latest, err := s.inspector.List(t.Context(), inspect.Filter{}, len(events))
	if err != nil || len(latest) != len(events) {
		t.Fatal(len(latest), err)
	}
	for _, d := range latest {
		for _, page := range []string{"?tab=diff", "?tab=body", "/edit"} {
			maps.Copy(pages, crawlOne(t, b, cookies, fmt.Sprintf("/console/deliveries/%d%s", d.Number, page)))
		}
	}
	for number := range 12 {
		maps.Copy(pages, crawlOne(t, b, cookies, fmt.Sprintf("/console/requests/%d", 1+number)))
	}
	pages["live"] = live()
	t.Logf("%d pages, %d bytes of live changes", len(pages), len(pages["live"]))
	checkPrivate(t, pages)
}

func crawlOne(t *testing.T, b *box, cookies []*http.Cookie, path string) map[string]string {
	t.Helper()
	_, text := visitConsole(t, b, visit{path: path, cookies: cookies})
	return map[string]string{path: text}
}

// privateRequests sends requests to the service with secret values in all parts.
func privateRequests(t *testing.T, b *box) {
	t.Helper()
	for n, r := range []struct{ method, path, body string }{
		{"GET", "/v2/user/?email=SECRET&limit=SECRET&surname=SECRET", ""},
		{"GET", "/v3/orders?patient_name=SECRET&dob=SECRET&SECRET", ""},
		{"GET", "/nothing?a=SECRET;b=SECRET&%zz=SECRET", ""},
		{"POST", "/v2/user/", `{"client_user_id":"a","maiden":"SECRET"}`},
		{"POST", "/v3/order", `{"patient_details":{"first_name":"SECRET","dob":"SECRET"},"surname":"SECRET","patient_address":{"x":"SECRET"}}`},
		{"POST", "/v3/order", `{"patient_details":"SECRET","given":"SECRET","x":`},
		{"POST", "/v3/order", `given=SECRET`},
		{"PATCH", "/v2/user/x/info", `["SECRET",{"given":"SECRET"}]`},
	} {
		fill := func(s string) string { return strings.ReplaceAll(s, "SECRET", fmt.Sprintf("%s.r%d", secretWord, n)) }
		req, err := http.NewRequest(r.method, b.URL+fill(r.path), strings.NewReader(fill(r.body)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("x-service-api-key", b.APIKey)
		req.Header.Set("X-Patient", fill("SECRET"))
		req.Header.Set("Cookie", fill("a=SECRET"))
		req.Header.Set("Content-Type", "application/json")
		roundTrip(t, req).Body.Close()
	}
}

// Lines in the terminal have neither values of patients nor characters that control it.
func TestPrivacyTerminal(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/deliveries.db"
	user, order := uuid.NewString(), uuid.NewString()
	i, err := inspect.Open(t.Context(), inspect.Config{File: file})
	if err != nil {
		t.Fatal(err)
	}
	events := privateEvents(user, order)
	for _, secret := range []string{"provider", "slug", "status"} {
		const source = `{"event_type":"daily.data.glucose.created","user_id":"%s","data":{"source":{"provider":"oura","slug":"oura"},"status":"x","data":[{"value":1}]}}`
		events = append(events, strings.Replace(fmt.Sprintf(source, user), `"`+secret+`":"`, `"`+secret+`":"Zyxwv Given `, 1))
	}
	events = append(events, `{"event_type":"provider.connection.error","user_id":"`+user+`","data":{"provider":"Zyxwv Given","error_type":"Zyxwv Given"}}`,
		`{"event_type":"labtest.order.updated","user_id":"`+user+`","data":{"id":"`+order+`","status":"Zyxwv Given","last_event":{"status":"Zyxwv Given"}}}`,
		"{\"event_type\":\"a\x9b31m\u009b31m\u202e\\u001b[31m\"}")
	for n, event := range events {
		r := httptest.NewRequest(http.MethodPost, "/Zyxwv?name=Zyxwv", strings.NewReader(event))
		r.Header.Set("Svix-Id", fmt.Sprint("\u009b31m\u202e", n))
		r.Header.Set("X-Patient", "Zyxwv")
		i.ServeHTTP(httptest.NewRecorder(), r)
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"replay", "1-100", "--dry-run", "--file", file}, {"replay", "1-100", "--dry-run", "--file", file, "--json"}} {
		got := command(t, args...)
		if n := strings.Count(got.stdout, "\n"); n < len(events) || got.code != 0 {
			t.Errorf("%d lines, exit code %d: %s", n, got.code, got.stderr)
		}
		checkPrivate(t, map[string]string{strings.Join(args, " "): got.stdout + got.stderr})
		if at := strings.IndexAny(got.stdout+got.stderr, "\x1b\u009b\u202e"); at >= 0 {
			t.Errorf("%q controls the terminal: %.300s", args, got.stdout[at:])
		}
	}
}

// The keys of the default seed are public knowledge: other machines do not get in with them.
func TestSecurityPublicSeed(t *testing.T) {
	t.Parallel()
	known, public, chosen := startBox(t, "--users", "0", "--orders", "0"), startBox(t, "--users", "0", "--orders", "0", "--public"),
		startBox(t, "--users", "0", "--orders", "0", "--public", "--seed", "1")
	if public.APIKey == known.APIKey || public.OrgKey == known.OrgKey || public.WebhookSecret == known.WebhookSecret || chosen.APIKey != known.APIKey {
		t.Errorf("keys %s, %s, %s", known.APIKey, public.APIKey, chosen.APIKey)
	}
}

// Websites do not learn whether a port has a sandbox.
func TestSecurityProof(t *testing.T) {
	t.Parallel()
	b := startBox(t, "--users", "0", "--orders", "0")
	for site, want := range map[string]int{"": 204, "cross-site": 403, "same-site": 403} {
		header := map[string]string{"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}
		if site == "" {
			header = nil
		}
		if resp, _ := visitConsole(t, b, visit{path: proofPath, header: header}); resp.StatusCode != want || (resp.Header.Get(proofHeader) != "") != (want == 204) {
			t.Errorf("%q: %d %s", site, resp.StatusCode, resp.Header.Get(proofHeader))
		}
	}
}

// markup must never arrive on a page as it is, neither in text nor in an attribute.
const markup = `x'"><zyx onload=a>{{.}}javascript:b`

// Markup in every field of events and requests, in names and headers, stays text on every page,
// also where hidden values are shown.
func TestSecurityMarkup(t *testing.T) {
	t.Parallel()
	s, err := startSandbox(t.Context(), sandboxFlags{addr: "127.0.0.1:0", users: 2, orders: 6, seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	b := &box{sandboxState: s.state(), t: t}
	cookies := login(t, b)
	order, user := s.server.Orders()[0], s.server.AddUser(markup)
	live := listenLive(t, b, cookies)
	inJSON, _ := json.Marshal(markup)
	for _, event := range privateEvents(user.String(), fmt.Sprint(order)) {
		event = secretValue.ReplaceAllLiteralString(event, strings.Trim(string(inJSON), `"`))
		for _, typ := range []string{`"event_type":"`, `"event_type":` + strings.TrimSuffix(string(inJSON), `"`)} {
			if err := s.server.Send([]byte(strings.NewReplacer(`"event_type":"`, typ, `"oura"`, string(inJSON), `"status":"`, `"status":"`+strings.Trim(string(inJSON), `"`)).Replace(event))); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, path := range []string{"/v2/user/?a='\"><zyx>", "/'\"><zyx>/x", "/v3/order?x=%3Czyx%3E"} {
		raw(t, b, "<ZYX> "+path+" HTTP/1.1\r\nHost: "+strings.TrimPrefix(b.URL, "http://")+"\r\nConnection: close\r\n\r\n")
		raw(t, b, "POST "+path+" HTTP/1.1\r\nHost: "+strings.TrimPrefix(b.URL, "http://")+"\r\nx-service-api-key: "+b.APIKey+"\r\nUser-Agent: <zyx>'\"\r\n"+
			"X-Idempotency-Key: <zyx>'\"\r\nContent-Type: <zyx>\r\nContent-Length: 9\r\nConnection: close\r\n\r\n{\"<zyx>\":")
	}
	if err := s.server.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	dump(t, s)
	time.Sleep(2 * time.Second)
	query := url.QueryEscape(markup)
	pages := crawl(t, b, cookies, "/console/orders", "/console/users", "/console/deliveries", "/console/requests", "/console/faults", "/console/orders?q="+query,
		"/console/users?q="+query, "/console/deliveries?q="+query+"&is="+query+"&from="+query+"&to="+query, "/console/requests?q="+query+"&is="+query+"&as="+query,
		"/console/deliveries/replay?q="+query+"&order="+query, "/console/users/"+user.String()+"?day="+query+"&span="+query+"&as="+query, "/console/deliveries/send?type="+query+"&user="+query,
		"/console/orders/"+fmt.Sprint(order), "/console/orders/"+query, "/console/"+query)
	latest, err := s.inspector.List(t.Context(), inspect.Filter{}, 60)
	if err != nil {
		t.Fatal(err)
	}
	for n, d := range latest {
		tab := []string{"diff", "body", "go"}[n%3]
		path := fmt.Sprintf("/console/deliveries/%d/reveal?tab=%s", d.Number, tab)
		_, pages[path] = visitConsole(t, b, visit{method: "POST", path: path, cookies: cookies})
	}
	path := fmt.Sprintf("/console/deliveries/%d/open", latest[30].Number)
	_, pages[path] = visitConsole(t, b, visit{method: "POST", path: path, cookies: cookies})
	path = fmt.Sprintf("/console/deliveries/%d/edit", latest[30].Number)
	_, pages["POST "+path] = visitConsole(t, b, visit{method: "POST", path: path, body: "body=</textarea><zyx>", cookies: cookies})
	for number := range 8 {
		for _, as := range []string{"", "go", "http"} {
			path := fmt.Sprintf("/console/requests/%d/reveal?as=%s", 1+number, as)
			_, pages[path] = visitConsole(t, b, visit{method: "POST", path: path, cookies: cookies})
		}
	}
	// The script puts the announcements into the page as text.
	pages["live"] = strings.ReplaceAll(strings.ReplaceAll(regexp.MustCompile(`"say":".*`).ReplaceAllString(live(), ""), `\u003c`, "<"), `\"`, `"`)
	bad := regexp.MustCompile(`(?i)<zyx|="[^"<>]*x'"|(href|action|src)="javascript:|\sstyle=|\son[a-z]+="|<style|<script(?: defer)?>`)
	shown := 0
	for path, text := range pages {
		shown += strings.Count(strings.ToLower(text), "&lt;zyx")
		if at := bad.FindStringIndex(text); at != nil {
			t.Errorf("%s: …%s…", path, text[max(0, at[0]-150):min(len(text), at[1]+60)])
		}
	}
	t.Logf("%d pages show it %d times", len(pages), shown)
	if shown < 300 {
		t.Error("the markup is not shown")
	}
}
