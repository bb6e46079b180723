package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// invisible are characters that control a terminal, are invisible, or change the order of others.
const invisible = "\x01\x1b[31m\x7f\u0085\u009b31m\u00ad\u061c\u180e\u200b\u200d\u200e\u200f\u2028\u2029\u202a\u202e\u2060\u2066\u2069\ufeff\ufff9\U000e0041"

// spoiled is a service whose texts have what no output may have: names of unknown fields that are
// names of people, and invisible characters.
func spoiled(t *testing.T) {
	t.Helper()
	service := newService(t)
	order := newOrder(t, service, true)
	text := strings.NewReplacer("\x01", `\u0001`, "\x1b", `\u001b`).Replace(invisible)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Scheme, r.URL.Host, r.RequestURI = "http", strings.TrimPrefix(service.URL, "http://"), ""
		transport := &http.Transport{DisableKeepAlives: true}
		resp, err := transport.RoundTrip(r)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		changed := strings.NewReplacer("Lipid Panel", "Lipid"+text, `"status":"`, `"ada_example":{"1985-12-09":"x","Ada `+text+`":{"ada":1}},"status":"`,
			`"low_level_status":"completed"`, `"low_level_status":"completed`+text+`"`, `"label":"`, `"ada_example":1,"label":"`+text).Replace(string(body))
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		w.WriteHeader(resp.StatusCode)
		io.WriteString(w, changed)
	}))
	t.Cleanup(proxy.Close)
	t.Setenv("LABHEALTH_URL", proxy.URL)
	t.Setenv("LABHEALTH_TEST_ORDER", order.String())
}

// people are the names of unknown fields.
var people = regexp.MustCompile(`(?i)\bada\b|ada_|1985`)

func hasInvisible(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && r != ' ' && !unicode.IsPrint(r) })
}

// No output has the name of a field that the library does not have, which may be that of a person,
// or characters that control a terminal. The JSON is that of the service apart from that.
func TestNamesAndCharacters(t *testing.T) {
	spoiled(t)
	order := setting("", "LABHEALTH_TEST_ORDER")
	event := `{"event_type":"labtest.order.updated","ada_example":1,"data":{"id":"` + order + `","ada_example":{"ada":1},"Ada Example":2,"details":{"type":"walk_in_test","data":{"ada@example.com":1}}}}`
	commands := []struct {
		args, input, want, shown string
	}{
		{"orders list", "", "Lipid�", ""},
		{"orders list --json", "", `"***":{"***":"***","***2":{"***":"***"}},"status":"`, `"ada_example":{"1985-12-09":"x","Ada \u0001`},
		{"orders get " + order + " --json", "", `\u202e`, `\udb40\udc41`},
		{"orders results " + order + " --json", "", `"results":`, `"results":`},
		{"keys list --json", "", `"label":"\u0001`, `"ada_example":1`},
		{"users list --json", "", `"user_id":`, ""},
		{"events show -", event, "unknown  ***\nunknown  data.***\nunknown  data.details.data.***.***\n", "unknown  data.details.data.ada@example.com\n"},
		{"events show - --json", event, `"unknown":["***","data.***","data.details.data.***.***"]`, `"data.Ada Example"`},
		{"events show - --json", `{"event_type":"a` + "\u202e\u009b" + `"}`, `"type":"a\u202e\u009b"`, ""},
	}
	for _, c := range commands {
		for _, show := range []bool{false, true} {
			args := strings.Fields(c.args)
			want := c.want
			if show {
				args, want = append(args, "--show-patient"), c.shown
			}
			got := commandWith(t.Context(), t, c.input, args...)
			if out := got.stdout + got.stderr; hasInvisible(out) || !strings.Contains(out, want) || !show && people.MatchString(out) {
				t.Errorf("%q: want %s, got %q", args, want, out)
			}
		}
	}
}

// The pages of the console have neither, too, until hidden values are asked for.
func TestConsoleNamesAndCharacters(t *testing.T) {
	t.Parallel()
	s, b := startOpenBox(t)
	cookies := login(t, b)
	user := s.server.AddUser("user-1" + invisible)
	order, err := s.server.AddOrder(user, s.server.LabTests.WalkIn)
	if err != nil {
		t.Fatal(err)
	}
	live := listenLive(t, b, cookies)
	const unknown = `"zyx_example":1,"Zyx Example":{"zyx":1},"zyx@example.com":[{"1985-12-09":"zyx"}]`
	source := `"source":{"provider":"oura` + invisible[5:] + `","slug":"oura","zyx":1}`
	for n, event := range []string{
		`{"event_type":"labtest.order.updated","user_id":"USER",` + unknown + `,"data":{"id":"ORDER",` + unknown + `,"status":"x"}}`,
		`{"event_type":"daily.data.sleep.created","user_id":"USER","data":{"id":"00000000-0000-4000-8000-000000000001","date":"2026-11-20","zyx_example":1,` + source + `}}`,
		`{"event_type":"daily.data.sleep.created","user_id":"USER","data":{"id":"00000000-0000-4000-8000-000000000001","date":"2026-11-20","zyx_example":2,"score":3,` + source + `}}`,
		`{"event_type":"daily.data.glucose.created","user_id":"USER","data":{"zyx":1,` + source + `,"data":[{"timestamp":"2026-11-20T10:00:00Z","value":5,"unit":"` + invisible[7:] + `","zyx":1}]}}`,
		`{"event_type":"a` + invisible[5:] + `","data":{"zyx":1}}`,
	} {
		event = strings.NewReplacer("USER", user.String(), "ORDER", order.String(), "\x7f", "").Replace(event)
		if err := s.server.Send([]byte(event)); err != nil {
			t.Fatal(n, err)
		}
	}
	for _, request := range []string{"POST /v2/user/", "POST /v3/order"} {
		raw(t, b, request+" HTTP/1.1\r\nHost: "+strings.TrimPrefix(b.URL, "http://")+"\r\nx-service-api-key: "+b.APIKey+"\r\nUser-Agent: \u202e\u200b\u061c\r\nContent-Type: application/json\r\n"+
			"Content-Length: 50\r\nConnection: close\r\n\r\n"+fmt.Sprintf("%-50s", `{"client_user_id":"x`+"\u202e\u061c"+`","zyx":{"zyx":1}}`)[:50])
	}
	if err := s.server.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	dump(t, s)
	pages := crawl(t, b, cookies, "/console/orders", "/console/users", "/console/deliveries", "/console/requests", "/console/faults", "/console/orders?q=%E2%80%AE",
		"/console/deliveries?q=%E2%80%AE", "/console/users?q=%D8%9C", "/console/requests?q=%D8%9C", "/console/orders/"+order.String(), "/console/users/"+user.String()+"?day=2026-11-20",
		"/console/users/"+user.String()+"?day=2026-11-20&as=values", "/console/%E2%80%AE", "/console/orders/%E2%80%AE")
	count := 0
	for number := 1; ; number++ {
		path := fmt.Sprintf("/console/deliveries/%d", number)
		resp, _ := visitConsole(t, b, visit{path: path, cookies: cookies})
		if resp.StatusCode != 200 {
			break
		}
		for _, tab := range []string{"", "?tab=diff", "?tab=body", "?tab=go"} {
			_, pages[path+tab] = visitConsole(t, b, visit{path: path + tab, cookies: cookies})
			count++
		}
	}
	pages["live"] = live()
	for path, text := range pages {
		if at := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && r != '\r' && !unicode.IsPrint(r) }); at >= 0 {
			t.Errorf("%s: …%q…", path, text[max(0, at-100):min(len(text), at+40)])
		}
		if at := strings.Index(strings.ToLower(text), "zyx"); at >= 0 {
			t.Errorf("%s: …%q…", path, text[max(0, at-150):min(len(text), at+40)])
		}
	}
	if count < 20 {
		t.Errorf("%d pages of deliveries", count)
	}
}
