package main

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// respond returns the URL of a server that always responds in the same way.
func respond(t *testing.T, status int, contentType, body string, headers ...string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// Each problem is reported in words that say what to change, without names of Go and without keys.
func TestDoctorProblems(t *testing.T) {
	service := newService(t)
	const users = `{"users":[],"total":0,"limit":1,"offset":0}`
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	multiline := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(multiline, []byte("a\nb"), 0o600); err != nil {
		t.Fatal(err)
	}
	url := func(s string) map[string]string { return map[string]string{"LABHEALTH_URL": s} }
	key := func(s string) map[string]string { return map[string]string{"LABHEALTH_API_KEY": s} }
	hour := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	for name, c := range map[string]struct {
		set  map[string]string
		want []string
	}{
		"no URL":         {url(""), []string{"failed   settings  no base URL is set: set LABHEALTH_URL"}},
		"no scheme":      {map[string]string{"LABHEALTH_URL": "api.example.com", "LABHEALTH_ENVIRONMENT": "sandbox-us"}, []string{"failed   settings  the base URL must be an https URL, such as https://api.example.com"}},
		"no TLS":         {map[string]string{"LABHEALTH_URL": "http://api.example.com", "LABHEALTH_ENVIRONMENT": "sandbox-us"}, []string{"failed   settings  ", "https"}},
		"no environment": {url("https://api.example.com"), []string{"set LABHEALTH_ENVIRONMENT or --environment"}},
		"version":        {url(service.URL + "/v3"), []string{"failed   settings  the base URL ends in /v3: remove it"}},
		"no key":         {key(""), []string{"no team API key is set: set LABHEALTH_API_KEY"}},
		"line break":     {key("sk_us_a\nb"), []string{"failed   key       the API key has a line break: remove it\n"}},
		"quotes":         {key("'sk_us_a'"), []string{"is in quotes: remove them"}},
		"wrong key":      {key("sk_us_a"), []string{"the service rejects the key", "labhealth keys create makes a new one"}},
		"management key": {key("mk_org_a"), []string{"this is a management key (mk_)"}},
		"webhook secret": {key("whsec_abcd"), []string{"this is a webhook secret (whsec_)"}},
		"region":         {map[string]string{"LABHEALTH_API_KEY": "sk_eu_a", "LABHEALTH_ENVIRONMENT": "sandbox-us"}, []string{"the key is of the region eu, and the environment is sandbox_us"}},
		"key file":       {map[string]string{"LABHEALTH_API_KEY": "", "LABHEALTH_API_KEY_FILE": multiline}, []string{"must have the key in one line"}},
		"http at https":  {url(strings.Replace(secure.URL, "https", "http", 1)), []string{"failed   key ", "must start with https)\n"}},
		"https at http":  {url(strings.Replace(service.URL, "http", "https", 1)), []string{"failed   service   ", "the server does not speak HTTPS"}},
		"HTML":           {url(respond(t, 200, "text/html", "<html>")), []string{"it is HTML, not JSON", "check that the base URL"}},
		"rate limit":     {url(respond(t, 429, "application/json", `{"detail":"Zelda"}`)), []string{"429", "the rate limit is reached: orders import has --rate"}},
		"broken":         {url(respond(t, 502, "text/html", "<html>")), []string{"502", "try again later"}},
		"redirect":       {url(respond(t, 302, "text/html", "", "Location", "https://login.example.com/")), []string{"302", "check the scheme, the host and the path of the base URL"}},
		"clock":          {url(respond(t, 200, "application/json", users, "Date", hour)), []string{"failed   clock     differs by ", "for example by NTP"}},
		"secret":         {map[string]string{"LABHEALTH_WEBHOOK_SECRET": "whsec_!"}, []string{"failed   secret    ", "labhealth webhooks secret"}},
	} {
		t.Run(name, func(t *testing.T) {
			for name, value := range c.set {
				t.Setenv(name, value)
			}
			got := command(t, "doctor", "--timeout", "5s")
			text := got.stdout + got.stderr
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in %s", want, text)
				}
			}
			if got.code != exitFailed || apiName.MatchString(text) || strings.Contains(text, "Zelda") || strings.Contains(text, service.APIKey) || strings.Contains(text, "sk_us_a") {
				t.Errorf("%d: %s", got.code, text)
			}
		})
	}
	t.Setenv("LABHEALTH_URL", "")
	if got := command(t, "doctor", "--sandbox"); got.code != exitFailed || strings.Count(got.stdout, "no sandbox is running") != 1 {
		t.Errorf("%+v", got)
	}
}

// A key that cannot be read again is not replaced.
func TestKeysCreateNewFile(t *testing.T) {
	newService(t)
	file := filepath.Join(t.TempDir(), "a.key")
	if got := command(t, "keys", "create", "--label", "a", "-o", file); got.code != 0 {
		t.Fatal(got)
	}
	first, _ := os.ReadFile(file)
	got := command(t, "keys", "create", "--label", "a", "-o", file)
	if second, _ := os.ReadFile(file); got.code != exitUsage || !strings.Contains(got.stderr, "exists: name another file") || string(second) != string(first) {
		t.Errorf("%+v", got)
	}
}
