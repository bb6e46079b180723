package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
)

// visit is a request to the console.
type visit struct {
	method, path, host, body string
	header                   map[string]string
	cookies                  []*http.Cookie
}

// visitConsole sends a request and returns the response with its body read.
func visitConsole(t *testing.T, b *box, v visit) (*http.Response, string) {
	t.Helper()
	if v.method == "" {
		v.method = http.MethodGet
	}
	req, err := http.NewRequest(v.method, b.URL+v.path, strings.NewReader(v.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = v.host
	if v.method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range v.header {
		req.Header.Set(name, value)
	}
	for _, cookie := range v.cookies {
		req.AddCookie(cookie)
	}
	resp := roundTrip(t, req)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// login returns the cookies of whoever opened the printed address.
func login(t *testing.T, b *box) []*http.Cookie {
	t.Helper()
	resp, _ := visitConsole(t, b, visit{path: strings.TrimPrefix(b.Console, b.URL)})
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/console/" {
		t.Fatalf("login: %d to %s", resp.StatusCode, resp.Header.Get("Location"))
	}
	return resp.Cookies()
}

func TestSecurityToken(t *testing.T) {
	t.Parallel()
	b := startBox(t, "--users", "1", "--orders", "1")
	port := b.URL[strings.LastIndex(b.URL, ":")+1:]
	cookies := login(t, b)
	if len(cookies) != 1 || cookies[0].Name != "labhealth_console_"+port || cookies[0].Path != "/console" || !cookies[0].HttpOnly ||
		cookies[0].SameSite != http.SameSiteStrictMode || cookies[0].Domain != "" || strings.Contains(b.Console, cookies[0].Value) {
		t.Fatalf("cookies %v", cookies)
	}
	token := b.Console[strings.Index(b.Console, "token=")+len("token="):]
	with := func(name, value string) []*http.Cookie { return []*http.Cookie{{Name: name, Value: value}} }
	other := cookies[0].Value[:63] + map[bool]string{true: "1", false: "0"}[cookies[0].Value[63] == '0']
	for _, test := range []struct {
		name string
		visit
		status int
	}{
		{"no cookie", visit{path: "/console/orders"}, 401},
		{"no cookie, root", visit{path: "/"}, 401},
		{"no cookie, live", visit{path: "/console/live?since="}, 401},
		{"no cookie, POST", visit{method: "POST", path: "/console/orders"}, 401},
		{"no cookie, unknown path", visit{path: "/console/x"}, 401},
		{"cookie", visit{path: "/console/orders", cookies: cookies}, 200},
		{"cookie, root", visit{path: "/", cookies: cookies}, 303},
		{"cookie, HEAD", visit{method: "HEAD", path: "/console/orders", cookies: cookies}, 200},
		{"another value", visit{path: "/console/orders", cookies: with(cookies[0].Name, other)}, 401},
		{"the token as the cookie", visit{path: "/console/orders", cookies: with(cookies[0].Name, token)}, 401},
		{"the cookie of another port", visit{path: "/console/orders", cookies: with("labhealth_console_1", cookies[0].Value)}, 401},
		{"two cookies", visit{path: "/console/orders", cookies: append(with(cookies[0].Name, "x"), cookies...)}, 200},
		{"a wrong token", visit{path: "/console/?token=x"}, 401},
		{"an empty token", visit{path: "/console/?token="}, 401},
		{"a wrong token with the cookie", visit{path: "/console/?token=x", cookies: cookies}, 401},
		{"the token in a POST", visit{method: "POST", path: "/console/orders?token=" + token}, 401},
		{"the token in a header", visit{path: "/console/orders", header: map[string]string{"Authorization": "Bearer " + token}}, 401},
		{"the key of the team", visit{path: "/console/orders", header: map[string]string{"x-service-api-key": b.APIKey}}, 401},
		{"the style sheet", visit{path: "/console/assets/console.css"}, 200},
		{"a template", visit{path: "/console/assets/../templates/layout.html", cookies: cookies}, 404},
		{"the assets", visit{path: "/console/assets/", cookies: cookies}, 404},
		{"assets in assets", visit{path: "/console/assets/x/console.css", cookies: cookies}, 404},
		{"PUT", visit{method: "PUT", path: "/console/orders", cookies: cookies}, 405},
		{"OPTIONS", visit{method: "OPTIONS", path: "/console/orders", cookies: cookies}, 405},
	} {
		resp, text := visitConsole(t, b, test.visit)
		if resp.StatusCode != test.status || strings.Contains(text, token) {
			t.Errorf("%s: %d, %.100s", test.name, resp.StatusCode, text)
		}
		checkHeaders(t, test.name, resp)
	}
	// A deep link with the token leads to its page, and nowhere else.
	for path, want := range map[string]string{"/console/users?token=": "/console/users", "/?token=": "/console/", "/console/?next=//evil.example&token=": "/console/"} {
		resp, _ := visitConsole(t, b, visit{path: path + token})
		if at := resp.Header.Get("Location"); at != want {
			t.Errorf("%s: to %s", path, at)
		}
	}
	b.stop()
	if text := b.errors.String(); strings.Contains(text, token) {
		t.Errorf("the token was logged: %s", text)
	}
}

// checkHeaders checks the headers of every response of the console.
func checkHeaders(t *testing.T, name string, resp *http.Response) {
	t.Helper()
	for header, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; " +
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
	} {
		if values := resp.Header.Values(header); len(values) != 1 || values[0] != want {
			t.Errorf("%s: %s is %q", name, header, values)
		}
	}
	if cache := resp.Header.Get("Cache-Control"); cache != "no-store" && !strings.HasPrefix(cache, "private, ") {
		t.Errorf("%s: Cache-Control is %q", name, cache)
	}
	for header := range resp.Header {
		if strings.HasPrefix(header, "Access-Control-") || header == "X-Labhealthtest-Proof" {
			t.Errorf("%s: it has %s", name, header)
		}
	}
}

// Another website cannot reach the console, by no name, with no form and no script.
func TestSecurityOrigin(t *testing.T) {
	t.Parallel()
	b := startBox(t, "--users", "1", "--orders", "1")
	cookies := login(t, b)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(b.URL, "http://"))
	for host, status := range map[string]int{
		"127.0.0.1:" + port: 200, "localhost:" + port: 401, "LOCALHOST:" + port: 401, "[::1]:" + port: 401, // the cookie is of another name
		"127.0.0.1": 403, "127.0.0.1:1": 403, "localhost": 403, "localhost.:" + port: 403, "0.0.0.0:" + port: 403, "[::]:" + port: 403, "127.1:" + port: 403,
		"attacker.example": 403, "attacker.example:" + port: 403, "localhost.attacker.example:" + port: 403, "user@127.0.0.1:" + port: 403,
	} {
		resp, _ := visitConsole(t, b, visit{path: "/console/orders", host: host, cookies: cookies})
		if resp.StatusCode != status && !(status == 403 && resp.StatusCode == 400) {
			t.Errorf("host %s: %d, not %d", host, resp.StatusCode, status)
		}
	}
	for _, test := range []struct {
		header map[string]string
		status int
	}{
		{nil, 303}, // no browser
		{map[string]string{"Origin": b.URL}, 303},
		{map[string]string{"Origin": b.URL, "Sec-Fetch-Site": "same-origin"}, 303},
		{map[string]string{"Origin": "null"}, 403},
		{map[string]string{"Origin": ""}, 403},
		{map[string]string{"Origin": "http://127.0.0.1:1"}, 403},
		{map[string]string{"Origin": "http://localhost:" + port}, 403},
		{map[string]string{"Origin": "http://attacker.example"}, 403},
		{map[string]string{"Origin": "http://attacker.example@127.0.0.1:" + port}, 403},
		{map[string]string{"Origin": b.URL + ".attacker.example"}, 403},
		{map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{map[string]string{"Sec-Fetch-Site": "same-site"}, 403}, // another port of this machine
		{map[string]string{"Sec-Fetch-Site": "none"}, 403},
		{map[string]string{"Origin": b.URL, "Sec-Fetch-Site": "cross-site"}, 403},
	} {
		resp, _ := visitConsole(t, b, visit{method: "POST", path: "/console/theme", body: "theme=dark&back=/console/users", header: test.header, cookies: cookies})
		if resp.StatusCode != test.status {
			t.Errorf("POST with %v: %d, not %d", test.header, resp.StatusCode, test.status)
		}
	}
	for _, test := range []struct {
		site, mode, dest string
		status           int
	}{
		{"none", "navigate", "document", 200}, {"same-origin", "cors", "empty", 200}, {"same-site", "navigate", "document", 200}, {"cross-site", "navigate", "document", 200},
		{"same-site", "no-cors", "script", 403}, {"same-site", "navigate", "iframe", 403}, {"cross-site", "no-cors", "image", 403}, {"same-site", "cors", "empty", 403}, {"same-site", "websocket", "websocket", 403},
	} {
		resp, _ := visitConsole(t, b, visit{path: "/console/orders", cookies: cookies, header: map[string]string{"Sec-Fetch-Site": test.site, "Sec-Fetch-Mode": test.mode, "Sec-Fetch-Dest": test.dest}})
		if resp.StatusCode != test.status {
			t.Errorf("GET with %+v: %d", test, resp.StatusCode)
		}
	}
	resp, _ := visitConsole(t, b, visit{method: "POST", path: "/console/theme", body: "theme=dark&back=//attacker.example", cookies: cookies})
	if at := resp.Header.Get("Location"); at != "/console/" {
		t.Errorf("the theme leads to %s", at)
	}
}

// Requests as no client sends them.
func TestSecurityRaw(t *testing.T) {
	t.Parallel()
	b := startBox(t, "--users", "1", "--orders", "1")
	cookie := login(t, b)[0]
	host := strings.TrimPrefix(b.URL, "http://")
	session := "Cookie: " + cookie.Name + "=" + cookie.Value + "\r\n"
	for _, test := range []struct{ name, request, status string }{
		{"two hosts", "GET /console/orders HTTP/1.1\r\nHost: " + host + "\r\nHost: attacker.example\r\n" + session, "400"},
		{"no host", "GET /console/orders HTTP/1.1\r\n" + session, "400"},
		{"no host, 1.0", "GET /console/orders HTTP/1.0\r\n" + session, "403"},
		{"another host in the line", "GET http://attacker.example/console/orders HTTP/1.1\r\nHost: " + host + "\r\n" + session, "403"},
		{"CONNECT", "CONNECT " + host + " HTTP/1.1\r\nHost: " + host + "\r\n" + session, "40"},
		{"X-Forwarded-Host", "GET /console/orders HTTP/1.1\r\nHost: attacker.example\r\nX-Forwarded-Host: " + host + "\r\n" + session, "403"},
		{"method override", "GET /console/theme HTTP/1.1\r\nHost: " + host + "\r\nX-HTTP-Method-Override: POST\r\n" + session, "40"},
		{"two origins", "POST /console/theme HTTP/1.1\r\nHost: " + host + "\r\nOrigin: " + b.URL + "\r\nOrigin: http://attacker.example\r\nContent-Length: 0\r\n" + session, "403"},
		{"escaped console", "GET /%63onsole/orders HTTP/1.1\r\nHost: " + host + "\r\n", "401"},
		{"escaped slash", "GET /console%2forders HTTP/1.1\r\nHost: " + host + "\r\n" + session, "40"},
		{"dots", "GET /console/../console/orders HTTP/1.1\r\nHost: " + host + "\r\n" + session, "404"},
		{"a null byte", "GET /console/assets/console.css%00.png HTTP/1.1\r\nHost: " + host + "\r\n" + session, "404"},
		{"a broken query", "GET /console/orders?q=%zz&lane=%ff HTTP/1.1\r\nHost: " + host + "\r\n" + session, "200"},
		{"a header in the path", "GET /console/?token=x%0d%0aSet-Cookie:%20a=b HTTP/1.1\r\nHost: " + host + "\r\n" + session, "401"},
	} {
		text := raw(t, b, test.request+"Connection: close\r\n\r\n")
		if !strings.HasPrefix(text, "HTTP/1.1 "+test.status) && !strings.HasPrefix(text, "HTTP/1.0 "+test.status) || strings.Contains(text, "\r\nSet-Cookie:") {
			t.Errorf("%s: %.300s", test.name, text)
		}
	}
}

// Two consoles on the ports of one machine do not log each other out.
func TestSecurityTwoConsoles(t *testing.T) {
	t.Parallel()
	first, second := startBox(t, "--users", "0", "--orders", "0"), startBox(t, "--users", "0", "--orders", "0")
	jar := append(login(t, first), login(t, second)...)
	for _, b := range []*box{first, second} {
		if resp, _ := visitConsole(t, b, visit{path: "/console/orders", cookies: jar}); resp.StatusCode != 200 {
			t.Errorf("%s: %d", b.URL, resp.StatusCode)
		}
	}
	if resp, _ := visitConsole(t, second, visit{path: "/console/orders", cookies: jar[:1]}); resp.StatusCode != 401 {
		t.Errorf("the cookie of one opens the other: %d", resp.StatusCode)
	}
}

// No GET changes anything: neither a page, nor a link on it, nor the path of an action.
func TestSecurityGetChangesNothing(t *testing.T) {
	t.Parallel()
	sandbox, err := startSandbox(t.Context(), sandboxFlags{addr: "127.0.0.1:0", users: 3, orders: 12, seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer sandbox.close()
	b := &box{sandboxState: sandbox.state(), t: t}
	cookies := login(t, b)
	if err := sandbox.server.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := sandbox.server.Send([]byte(`{"event_type":"labtest.order.updated","data":{}}`)); err != nil {
		t.Fatal(err)
	}
	if err := sandbox.server.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := dump(t, sandbox)
	paths := map[string]bool{}
	for _, path := range routes(t, sandbox) {
		paths[path] = true
	}
	visited, ofEachShape := map[string]int{}, 1
	if long() {
		ofEachShape = 3
	}
	for queue := slices.Sorted(maps.Keys(paths)); len(queue) > 0; queue = queue[1:] {
		path := queue[0]
		if strings.HasPrefix(path, "/console/live") {
			continue // it does not end
		}
		resp, text := visitConsole(t, b, visit{path: path, cookies: cookies})
		checkHeaders(t, path, resp)
		if resp.StatusCode >= 500 {
			t.Errorf("%s: %d %.200s", path, resp.StatusCode, text)
		}
		for _, link := range linksOf(text) {
			if shape := shapeOf(link); !paths[link] && visited[shape] < ofEachShape {
				paths[link] = true
				visited[shape]++
				queue = append(queue, link)
			}
		}
	}
	t.Logf("%d paths", len(paths))
	if len(paths) < 30 {
		t.Errorf("only %d paths", len(paths))
	}
	if after := dump(t, sandbox); after != before {
		at := 0
		for at < min(len(before), len(after)) && before[at] == after[at] {
			at++
		}
		t.Errorf("something has changed: …%.200s… is now …%.200s…", before[max(0, at-100):], after[max(0, at-100):])
	}
}

var linkInPage = regexp.MustCompile(`(?:href|action|formaction)="(/console[^"#]*)`)

// linksOf returns the links and the paths of the actions on a page.
func linksOf(page string) (links []string) {
	for _, m := range linkInPage.FindAllStringSubmatch(page, -1) {
		links = append(links, strings.ReplaceAll(m[1], "&amp;", "&"))
	}
	return links
}

var (
	idInPath     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)
	numberInPath = regexp.MustCompile(`\d+`)
)

// shapeOf returns a link with its IDs and numbers left out.
func shapeOf(link string) string {
	return numberInPath.ReplaceAllString(idInPath.ReplaceAllString(link, "*"), "0")
}

// routes returns the path of every route of the console, those of actions too.
func routes(t *testing.T, sandbox *sandbox) []string {
	t.Helper()
	files, err := filepath.Glob("internal/console/*.go")
	if err != nil {
		t.Fatal(err)
	}
	order := sandbox.server.Orders()[0]
	user := ""
	for u, err := range allUsers(sandbox) {
		if err != nil {
			t.Fatal(err)
		}
		user = u.UserID.String()
		break
	}
	var paths []string
	route := regexp.MustCompile(`"(?:GET|POST) (/console/[^"]*)"`)
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range route.FindAllSubmatch(b, -1) {
			path := strings.ReplaceAll(string(m[1]), "{$}", "")
			path = strings.ReplaceAll(path, "{number}", "1")
			actions := []string{"advance", "cancel", "fail", "complete", "delete"}
			if !long() && !strings.Contains(path, "{action}") {
				actions = actions[:1]
			}
			for _, action := range actions {
				p := strings.NewReplacer("{action}", action, "{document}", "results.pdf").Replace(path)
				if strings.Contains(p, "/users/") {
					p = strings.ReplaceAll(p, "{id}", user)
				}
				p = strings.ReplaceAll(p, "{id}", fmt.Sprint(order))
				paths = append(paths, p, p+"?go=1&action="+action+"&confirm=yes&q=x")
			}
		}
	}
	return paths
}

func allUsers(sandbox *sandbox) iter.Seq2[*labhealth.User, error] {
	client, _ := labhealth.NewClient(sandbox.server.APIKey, labhealth.WithBaseURL(sandbox.server.URL),
		labhealth.WithHTTPClient(&http.Client{Transport: sandbox.server.Direct()}))
	return client.Users.All(context.Background(), labhealth.ListUsersParams{})
}

// dump returns the state of the service and of the deliveries.
func dump(t *testing.T, sandbox *sandbox) string {
	t.Helper()
	client, err := labhealth.NewClient(sandbox.server.APIKey, labhealth.WithBaseURL(sandbox.server.URL),
		labhealth.WithHTTPClient(&http.Client{Transport: sandbox.server.Direct()}))
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	for o, err := range client.Orders.All(t.Context(), labhealth.ListOrdersParams{}) {
		if err != nil {
			t.Fatal(err)
		}
		all.Write(o.RawJSON())
	}
	for u, err := range allUsers(sandbox) {
		if err != nil {
			t.Fatal(err)
		}
		all.Write(u.RawJSON())
	}
	var deliveries []inspect.Delivery
	for range 6000 { // until all have been applied
		deliveries, err = sandbox.inspector.List(t.Context(), inspect.Filter{}, 10000)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(deliveries, func(d inspect.Delivery) bool { return d.Verdict == inspect.Verified && !d.Applied }) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := json.NewEncoder(&all).Encode(deliveries); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&all, "%d requests, %d deliveries, forwards to %q", sandbox.server.RequestCount(), len(sandbox.server.Deliveries()), sandbox.inspector.Forward())
	return all.String()
}
