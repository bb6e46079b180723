package console

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

// hostileBodies are bodies that a shell, curl, a terminal or a browser could misread.
var hostileBodies = map[string]string{
	"none":        "",
	"JSON":        `{"a": "b"}`,
	"indented":    "{\n\t\"a\": \"b\"\r\n}\n",
	"quotes":      `{"a": "it's \"b\" ` + "`id`" + ` $(id) $HOME \\ !!"}`,
	"script":      `{"a": "<script>alert(1)</script></pre>"}`,
	"at":          "@/etc/passwd",
	"heredoc":     "BODY\nJSON\nEOF\n'\n",
	"line breaks": "\n\n a \n\n",
	"control":     "\x1b[201~\x03rm -rf /\r\n\x07",
	"no UTF-8":    "\xff\xfe\x00 ",
	"zero bytes":  "a\x00b",
	"direction":   "{\"a\":\"\u202e\u2066\"}",
	"options":     "--config x",
	"long":        strings.Repeat("a'", 200_000),
}

// The commands send the same bodies, headers and paths when a shell runs them, and nothing else.
func TestCurlInShell(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	var got *http.Request
	var gotBody []byte
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r
		gotBody, _ = io.ReadAll(r.Body)
	}))
	defer srv.Close()
	run := func(t *testing.T, r labhealthtest.Request) {
		t.Helper()
		got = nil
		command := curlOfRequest(srv.URL, r).String()
		file := filepath.Join(t.TempDir(), "request.sh")
		if err := os.WriteFile(file, []byte(command), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "sh", file)
		cmd.Env = append(cmd.Environ(), "LABHEALTH_API_KEY=key-1", "LABHEALTH_MANAGEMENT_KEY=key-2")
		if out, err := cmd.CombinedOutput(); err != nil || got == nil {
			t.Fatalf("%v: %s\n%.500s", err, out, command)
		}
	}
	for name, body := range hostileBodies {
		t.Run(name, func(t *testing.T) {
			header := http.Header{"Content-Type": {"application/json; x='$(id)'"}, "X-Idempotency-Key": {"`id`'\"$HOME"}, "Cookie": {"secret"}}
			run(t, labhealthtest.Request{Method: "POST", Path: "/v3/order/import?x='$(id)'&a[]={1}&b=`id`", Header: header, Body: []byte(body)})
			if string(gotBody) != body {
				t.Errorf("body %.200q, want %.200q", gotBody, body)
			}
			if got.Method != "POST" || got.RequestURI != "/v3/order/import?x='$(id)'&a[]={1}&b=`id`" {
				t.Errorf("%s %s", got.Method, got.RequestURI)
			}
			for name, want := range map[string]string{
				"X-Service-Api-Key": "key-1", "Content-Type": header.Get("Content-Type"), "X-Idempotency-Key": header.Get("X-Idempotency-Key"), "Cookie": "",
			} {
				if got.Header.Get(name) != want {
					t.Errorf("%s: %q, want %q", name, got.Header.Get(name), want)
				}
			}
		})
	}
	for path, want := range map[string]string{
		"/v2/../v3/./order":           "/v2/../v3/./order",
		"//evil.example/x":            "//evil.example/x",
		"http://evil.example/v2/user": "/v2/user",
		"*":                           "/",
		"/v1/org/x/team?":             "/v1/org/x/team?",
		"/v2/user/resolve/%2F%00%27?": "/v2/user/resolve/%2F%00%27?",
	} {
		run(t, labhealthtest.Request{Method: "GET", Path: path, Header: http.Header{}})
		if got.RequestURI != want {
			t.Errorf("%s: %s, want %s", path, got.RequestURI, want)
		}
		if strings.HasPrefix(path, "/v1/org") != (got.Header.Get("X-Management-Key") == "key-2") {
			t.Errorf("%s: headers %v", path, got.Header)
		}
	}
	run(t, labhealthtest.Request{Method: "X'$!`", Path: "/", Header: http.Header{}})
	if got.Method != "X'$!`" {
		t.Errorf("method %s", got.Method)
	}
	run(t, labhealthtest.Request{Method: "HEAD", Path: "/", Header: http.Header{}})
}

// callsSite is a console of a sandbox that is used by programs.
type callsSite struct{ *ordersSite }

func newCallsSite(t testing.TB) *callsSite {
	t.Helper()
	return &callsSite{newOrdersSite(t)}
}

func (s *callsSite) get(path string) string {
	s.t.Helper()
	return s.ordersSite.get(path, http.StatusOK)
}

// post posts a form and returns the response, or the page to which it redirects.
func (s *callsSite) post(path string, form url.Values) string {
	s.t.Helper()
	resp := s.do(http.MethodPost, path, form)
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusSeeOther {
		r := httptest.NewRequest(http.MethodGet, resp.Header.Get("Location"), nil)
		r.AddCookie(cookie(r, "console", s.console.session(r)))
		for _, set := range resp.Cookies() {
			r.AddCookie(set)
		}
		w := httptest.NewRecorder()
		s.console.ServeHTTP(w, r)
		return w.Body.String()
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s %s %v", path, resp.Status, body, err)
	}
	return string(body)
}

// send sends a request to the service, with the key of the team.
func (s *callsSite) send(method, path, body string, header ...string) int {
	s.t.Helper()
	req, err := http.NewRequest(method, s.srv.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("x-service-api-key", s.srv.APIKey)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// importBody is an import with patient data that no page has until it is asked for.
func (s *callsSite) importBody(sample string) string {
	b, err := json.Marshal(tryImport(s.srv, s.srv.AddUser("ada"), sample))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

func TestRequestsPage(t *testing.T) {
	s := newCallsSite(t)
	s.contains(s.get("/console/requests"), "No requests yet", "x-service-api-key: $LABHEALTH_API_KEY")
	s.send("POST", "/v3/order/import", s.importBody("SAMPLE-1"))
	s.send("POST", "/v3/order/import", s.importBody("SAMPLE-1"))
	s.send("POST", "/v3/order/import", `{"sample_id": "SAMPLE-2"}`)
	s.send("GET", "/v3/orders?patient_name=Example&size=5", "")
	s.send("GET", "/v2/user/", "", "Authorization", "Bearer secret-token")

	page := s.get("/console/requests")
	s.contains(page, ">5<", `id="request-5"`, "An order with this sample_id already exists", "fields rejected", "/v3/orders?patient_name=•••••&amp;size=5")
	order := s.srv.Orders()[0].String()
	s.contains(page, "order "+order[:8])
	for _, test := range []struct {
		query string
		rows  int
	}{{"q=sample-1", 2}, {"q=" + order, 1}, {"is=writes", 3}, {"is=rejected", 2}, {"is=fault", 0}, {"q=%3Cscript%3E", 0}, {"before=3", 2}, {"is=nonsense", 5}} {
		if n := strings.Count(s.get("/console/requests?"+test.query), `<li data-item`); n != test.rows {
			t.Errorf("%s: %d rows, want %d", test.query, n, test.rows)
		}
	}
	page = s.get("/console/requests/1")
	s.contains(page, "SAMPLE-1", "/console/orders/"+order, "•••••", "LABHEALTH_API_KEY", `<span class="l">  --data-raw &#39;</span>`)
	s.lacks(page, "1970-01-31", "14155550123", "1 Main Street", "ada@example.com", s.srv.APIKey)
	s.contains(s.post("/console/requests/1/reveal", nil), "1970-01-31", "14155550123", "Hide patient data")
	s.lacks(s.get("/console/requests/4"), "patient_name=Example", "Ada", "Ada Example")
	s.contains(s.post("/console/requests/4/reveal", nil), "patient_name=Example")
	s.lacks(s.get("/console/requests/5"), "secret-token", s.srv.APIKey)
	s.contains(s.post("/console/requests/1/curl", nil), "curl -X POST", "1970-01-31")
	script := s.post("/console/requests/script", nil)
	s.contains(script, "#!/bin/sh", "# 1. ", "# 5. ", "patient_name=Example")
	s.lacks(script, s.srv.APIKey)
	if n := strings.Count(s.post("/console/requests/script?is=rejected", nil), "curl "); n != 2 {
		t.Errorf("%d rejected requests in the script, want 2", n)
	}

	for path, want := range map[string]int{
		"/console/requests/x": 404, "/console/requests/-1": 404, "/console/requests/99999": 303, "/console/requests/1": 200,
	} {
		if got := s.do("GET", path, nil).StatusCode; got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	s.post("/console/requests/3/again", nil)
	if got := s.srv.Requests()[5]; got.StatusCode != 422 || got.Header.Get("User-Agent") != "labhealth-console" {
		t.Errorf("%+v", got)
	}
	s.post("/console/requests/clear", nil)
	s.contains(s.get("/console/requests"), "No requests yet")
	s.send("GET", "/v2/user/", "")
	if page := s.get("/console/requests"); strings.Count(page, "<li data-item") != 1 || !strings.Contains(page, `id="request-7"`) {
		t.Error("the request after the others were cleared is missing")
	}
}

// Nothing of a hostile request is interpreted by a browser, whatever its size.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	s := newCallsSite(t)
	const attack = `"'><script>alert(1)</script><img src=x onerror=alert(1)>`
	for name, body := range hostileBodies {
		s.send("POST", "/v3/order/import?name="+strings.ReplaceAll(name, " ", "+"), body, "User-Agent", attack, "X-Idempotency-Key", attack)
	}
	s.send("POST", "/v3/order/import", `{"sample_id": "`+strings.ReplaceAll(attack, `"`, `\"`)+`"}`, "User-Agent", attack)
	s.send("GET", "/%3Cscript%3E/"+strings.Repeat("x", 10_000), "")
	s.send("POST", "/v2/user", `{"client_user_id": "`+strings.Repeat("<b>", 5_500_000)+`"}`)
	s.send("POST", "/v2/user", strings.Repeat("[", 1<<20))
	paths := []string{"/console/requests", "/console/faults"}
	for n := range s.srv.RequestCount() {
		paths = append(paths, fmt.Sprintf("/console/requests/%d", n+1))
	}
	for _, path := range paths {
		page := s.get(path)
		for _, bad := range []string{"<script>alert", "<img", "<b>" + "<b>", "onerror=alert(1)>"} {
			if strings.Contains(page, bad) {
				t.Errorf("%s has %q", path, bad)
			}
		}
		if len(page) > 1<<20 {
			t.Errorf("%s has %d bytes", path, len(page))
		}
	}
}
