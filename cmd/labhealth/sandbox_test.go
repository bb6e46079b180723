package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/console"
)

// The service works for curl and other languages, without a console, and posts to --deliver.
func TestSandboxService(t *testing.T) {
	events := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var event struct {
			Type string `json:"event_type"`
		}
		json.NewDecoder(r.Body).Decode(&event)
		events <- event.Type
	}))
	defer receiver.Close()
	for _, args := range [][]string{nil, {"--no-console"}} {
		b := startBox(t, append(args, "--users", "7", "--orders", "30", "--deliver", receiver.URL)...)
		if b.Users != 7 || b.Orders < 30 || len(b.Proof) < 32 || (b.Console == "") != (args != nil) {
			t.Errorf("printed %+v", b)
		}
		var users struct{ Total int }
		b.call(http.MethodGet, "/v2/user/", "", &users)
		var orders struct {
			Total  int
			Orders []struct{ ID, Status string }
		}
		b.call(http.MethodGet, "/orders", "", &orders)
		var stream struct{ Time []int64 }
		b.call(http.MethodGet, "/v2/timeseries/workouts/"+b.Workout+"/stream", "", &stream)
		if users.Total != 7 || orders.Total != b.Orders || len(stream.Time) != 600 {
			t.Errorf("%d users, %d orders, %d seconds", users.Total, orders.Total, len(stream.Time))
		}
		var received string
		states := map[string]bool{}
		for _, o := range orders.Orders {
			states[o.Status] = true
			if o.Status == "received" {
				received = o.ID
			}
		}
		for _, state := range []string{"received", "collecting_sample", "sample_with_lab", "completed", "cancelled"} {
			if !states[state] {
				t.Errorf("no order is %s", state)
			}
		}
		var result string
		b.call(http.MethodPost, "/v3/order/"+received+"/test", "", &result)
		if event := <-events; result != "Success" || event != "labtest.order.updated" {
			t.Errorf("response %q, event %s", result, event)
		}
		if code := b.stop(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		if conn, err := net.Dial("tcp", strings.TrimPrefix(b.URL, "http://")); err == nil {
			conn.Close()
			t.Error("the server still listens")
		}
		for len(events) > 0 {
			<-events
		}
	}
}

// The printed lines have everything that a developer copies.
func TestSandboxPrints(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"sandbox", "--addr", "127.0.0.1:0", "--users=1", "--orders", "2"}, streams{strings.NewReader(""), in, io.Discard})
		in.Close()
	}()
	printed, lines := map[string]string{}, bufio.NewScanner(out)
	for printed["try"] == "" && lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), "  ")
		printed[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	cancel()
	rest, _ := io.ReadAll(out)
	if code := <-done; code != 0 || string(rest) != "" && !strings.HasSuffix(string(rest), "stopped\n") {
		t.Errorf("exit code %d, then %q", code, rest)
	}
	for name, want := range map[string]string{
		"base URL": "http://127.0.0.1:", "team key": "sk_us_", "management key": "mk_org_", "webhook secret": "whsec_",
		"holds": "1 users, 2 orders", "console": printed["base URL"] + "/console/?token=", "try": "curl -H 'x-service-api-key: " + printed["team key"] + "' " + printed["base URL"] + "/v2/user/",
	} {
		if value := printed[name]; !strings.HasPrefix(value, want) {
			t.Errorf("%s is %q, not %s…", name, value, want)
		}
	}
	for _, name := range []string{"team", "organisation", "workout"} {
		if len(printed[name]) != 36 {
			t.Errorf("%s is %q", name, printed[name])
		}
	}
}

// The keys and the webhook secret depend on the seed. Seed 0 is random, as is the token.
func TestSandboxSeed(t *testing.T) {
	var keys, tokens []string
	for _, args := range [][]string{nil, nil, {"--seed", "0"}, {"--seed", "2"}, {"--seed", "0"}} {
		b := startBox(t, append(args, "--users", "0", "--orders", "0")...)
		keys = append(keys, b.APIKey+" "+b.WebhookSecret)
		tokens = append(tokens, b.Console[strings.Index(b.Console, "token="):])
		b.stop()
	}
	if want := "sk_us_dbe5882e2579683432c1bfc525454add0cd87274 whsec_aHnDos7YXgyVvXhgJWpwgdK51NXXvDaZ"; keys[0] != want || keys[1] != want {
		t.Errorf("the keys of seed 1 are %q", keys[:2])
	}
	slices.Sort(keys)
	if len(slices.Compact(keys)) != 4 {
		t.Errorf("keys %q", keys)
	}
	slices.Sort(tokens)
	if len(slices.Compact(tokens)) != 5 {
		t.Errorf("tokens %q", tokens)
	}
}

func TestSandboxInvalidArguments(t *testing.T) {
	occupied, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer occupied.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--addr", occupied.Addr().String()}, "another program uses the port of 127.0.0.1:"},
		{[]string{"--addr", "nowhere"}, `--addr "nowhere" is not HOST:PORT, such as 127.0.0.1:8080`},
		{[]string{"--addr", ":0"}, "--addr :0 can be reached by other machines: use 127.0.0.1, localhost or [::1], or add --public"},
		{[]string{"--addr", "0.0.0.0:0"}, "add --public"},
		{[]string{"--addr=[::]:0"}, "add --public"},
		{[]string{"--addr", "192.0.2.1:0"}, "add --public"},
		{[]string{"--deliver", "ftp://example.com", "--addr", "127.0.0.1:0", "--users", "0", "--orders", "0"}, "--deliver"},
		{[]string{"--users", "-1"}, "--users and --orders must be 0 or more"},
		{[]string{"now"}, "now"},
		{[]string{"--users", "many"}, "--users"},
	} {
		var out, errs bytes.Buffer
		code := run(ctx, append([]string{"sandbox"}, test.args...), streams{strings.NewReader(""), &out, &errs})
		if code == 0 || !strings.Contains(errs.String(), test.want) || out.Len() > 0 {
			t.Errorf("%q: exit code %d, %q", test.args, code, errs.String())
		}
	}
}

// sandboxEnv runs sandbox env.
func sandboxEnv(t *testing.T, args ...string) result {
	t.Helper()
	return command(t, append([]string{"sandbox", "env"}, args...)...)
}

// Other commands find the sandbox that runs, and none that was killed. If several run, they say
// which, and how to choose.
func TestSandboxEnv(t *testing.T) {
	setEnvironment(t, nil)
	if got := sandboxEnv(t); got.code != exitUsage || got.stdout != "" || !strings.Contains(got.stderr, "no sandbox is running") {
		t.Errorf("without any: %+v", got)
	}
	first := startBox(t, "--users", "0", "--orders", "0")
	second := startBox(t, "--users", "0", "--orders", "0", "--seed", "2", "--no-console")
	several := "labhealth: several sandboxes are running: " + second.URL + ", " + first.URL + ": name one of them: "
	wantResult(t, sandboxEnv(t), result{exitUsage, "", several + "labhealth sandbox env URL\n"})
	wantResult(t, command(t, "--sandbox", "orders", "list"), result{exitUsage, "", several + "set LABHEALTH_URL to its URL\n"})
	wantResult(t, command(t, "listen", "--sandbox", "--addr", "127.0.0.1:0"), result{exitUsage, "", several + "set LABHEALTH_URL to its URL\n"})
	for _, b := range []*box{first, second} {
		wantResult(t, sandboxEnv(t, b.URL+"/"), result{0, "export LABHEALTH_URL='" + b.URL + "' LABHEALTH_API_KEY='" + b.APIKey +
			"' LABHEALTH_WEBHOOK_SECRET='" + b.WebhookSecret + "'\n", ""})
		t.Setenv("LABHEALTH_URL", b.URL)
		if got := command(t, "--sandbox", "keys", "list", "--json"); got.code != 0 || !strings.Contains(got.stdout, b.TeamID.String()) {
			t.Errorf("%+v", got)
		}
	}
	t.Setenv("LABHEALTH_URL", "")
	wantResult(t, sandboxEnv(t, "http://127.0.0.1:1"), result{exitUsage, "", "labhealth: no sandbox of this user is running at http://127.0.0.1:1\n"})
	names, err := filepath.Glob(filepath.Join(os.Getenv("XDG_STATE_HOME"), "labhealth", "*"))
	if err != nil || len(names) != 2 {
		t.Fatalf("%q, %v", names, err)
	}
	for _, name := range names {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	second.stop()
	var s sandboxState
	if got := sandboxEnv(t, "--json"); got.code != 0 || json.Unmarshal([]byte(got.stdout), &s) != nil || s.URL != first.URL || s.Console != first.Console {
		t.Errorf("%+v", got)
	}
	// Its process was killed, and another program has its port.
	s.Proof = strings.Repeat("X", 52)
	if _, err := s.save(); err != nil {
		t.Fatal(err)
	}
	if got := sandboxEnv(t); got.code != 0 || !strings.Contains(got.stdout, first.URL) {
		t.Errorf("%+v", got)
	}
	first.stop()
	if left, _ := filepath.Glob(filepath.Join(os.Getenv("XDG_STATE_HOME"), "labhealth", "*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// A sandbox that does not respond for a while, on a busy machine or in a debugger, is not taken for
// one that was killed: another one would be printed.
func TestSandboxEnvOfSilent(t *testing.T) {
	setEnvironment(t, nil)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never responds
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	other := startBox(t, "--users", "0", "--orders", "0", "--no-console")
	url := "http://" + silent.Addr().String()
	state := sandboxState{URL: url, PID: os.Getpid(), Proof: strings.Repeat("Y", 52), APIKey: "sk_us_silent", WebhookSecret: other.WebhookSecret}
	remove, err := state.save()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := sandboxEnv(t); got.code != exitUsage || !strings.Contains(got.stderr, url+", "+other.URL) {
			t.Errorf("%+v", got)
		}
	}
	other.stop()
	if got := sandboxEnv(t); got.code != 0 || !strings.Contains(got.stdout, "LABHEALTH_URL='"+url+"' LABHEALTH_API_KEY='sk_us_silent'") {
		t.Errorf("%+v", got)
	}
	remove()
	// Its process was killed, and a program has its port that does not respond.
	killed := exec.Command(os.Args[0], "-test.run=^$")
	if err := killed.Run(); err != nil {
		t.Fatal(err)
	}
	state.PID = killed.Process.Pid
	if _, err := state.save(); err != nil {
		t.Fatal(err)
	}
	if got := sandboxEnv(t); got.code != exitUsage || !strings.Contains(got.stderr, "no sandbox is running") {
		t.Errorf("%+v", got)
	}
}

// A request for the console never reaches the service, and the other way round.
func TestConsoleOrService(t *testing.T) {
	for _, test := range []struct {
		method, target string
		console        bool
	}{
		{"GET", "/", true}, {"HEAD", "/", true}, {"POST", "/", false}, {"GET", "/?token=x", true},
		{"GET", "/console", true}, {"GET", "/console/", true}, {"POST", "/console/orders", true}, {"DELETE", "/console/v2/user", true},
		{"GET", "/%63onsole/orders", true}, {"GET", "/console%2forders", true}, {"GET", "/console/../v2/user/", true},
		{"GET", "//console/orders", false}, {"GET", "/v2/../console/orders", false}, {"GET", "/Console/orders", false},
		{"GET", "/consoles", false}, {"GET", "/v2/user/", false}, {"GET", "/console.css", false}, {"GET", "/.//console/", false},
	} {
		r := httptest.NewRequest(test.method, test.target, nil)
		if got := console.IsConsole(r); got != test.console {
			t.Errorf("%s %s: %v", test.method, test.target, got)
		}
	}
	b := startBox(t, "--users", "1", "--orders", "0")
	for _, path := range []string{"//console/orders", "/v2/../console/orders", "/Console/orders", "/consoles", "/.//console/"} {
		if text := rawGet(t, b, path, "Host: "+strings.TrimPrefix(b.URL, "http://"), "x-service-api-key: "+b.APIKey); !strings.HasPrefix(text, "HTTP/1.1 404 ") || !strings.Contains(text, "X-Labhealthtest-Proof") {
			t.Errorf("%s: %.200s", path, text)
		}
	}
	for _, path := range []string{"/console/../v2/user/", "/console/..%2fv2/user/", "/console//../v2/user/"} {
		if text := rawGet(t, b, path, "Host: "+strings.TrimPrefix(b.URL, "http://"), "x-service-api-key: "+b.APIKey); strings.HasPrefix(text, "HTTP/1.1 2") || strings.HasPrefix(text, "HTTP/1.1 3") || strings.Contains(text, "X-Labhealthtest-Proof") {
			t.Errorf("%s: %.200s", path, text)
		}
	}
}

// Other websites cannot read the service by a name of theirs that leads to this machine: its keys
// are no secret.
func TestSandboxForeignHost(t *testing.T) {
	b := startBox(t, "--users", "1", "--orders", "0", "--no-console")
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(b.URL, "http://"))
	for host, want := range map[string]string{
		"127.0.0.1:" + port: "200", "localhost:" + port: "200", "[::1]:" + port: "200", "host.docker.internal:" + port: "200", "sandbox": "200", "labhealth.localhost": "200",
		"attacker.example:" + port: "403", "127.0.0.1.attacker.example": "403", "attacker.example.:" + port: "403", "localhost.attacker.example": "403", "1.2.3.4.nip.io": "403",
	} {
		text := rawGet(t, b, "/v2/user/", "Host: "+host, "x-service-api-key: "+b.APIKey)
		if !strings.HasPrefix(text, "HTTP/1.1 "+want+" ") {
			t.Errorf("%s: %.100s", host, text)
		}
		if strings.Contains(strings.ToLower(text), "access-control-") {
			t.Errorf("%s: the response has CORS headers: %s", host, text)
		}
	}
}

// rawGet sends a request line and headers as they are, and returns the whole response.
func rawGet(t *testing.T, b *box, target string, headers ...string) string {
	t.Helper()
	return raw(t, b, "GET "+target+" HTTP/1.1\r\n"+strings.Join(append(headers, "Connection: close"), "\r\n")+"\r\n\r\n")
}

func raw(t *testing.T, b *box, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(conn)
	return string(text)
}

// The application gets the events from the start of the sandbox on, and none of the invented
// history.
func TestHistoryIsNotForwarded(t *testing.T) {
	received := make(chan string, 1000)
	app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var event struct {
			Type string `json:"event_type"`
		}
		_ = json.NewDecoder(r.Body).Decode(&event)
		received <- event.Type
	}))
	defer app.Close()
	s, err := startSandbox(t.Context(), sandboxFlags{addr: "127.0.0.1:0", seed: 1, users: 2, orders: 3, forward: app.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	if err := s.server.Send([]byte(`{"event_type":"example.first.created","data":{}}`)); err != nil {
		t.Fatal(err)
	}
	if got := <-received; got != "example.first.created" {
		t.Errorf("the application received %s first", got)
	}
}

// With --forward, the terminal has a line for each delivery that the application got.
func TestSandboxPrintsForwarded(t *testing.T) {
	application := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }))
	defer application.Close()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"sandbox", "--addr", "127.0.0.1:0", "--users", "1", "--orders", "1", "--no-console", "--forward", application.URL}, streams{strings.NewReader(""), in, io.Discard})
		in.Close()
	}()
	lines := bufio.NewScanner(out)
	url, key := "", ""
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case fields[0] == "base":
			url = fields[2]
		case fields[0] == "team" && fields[1] == "key":
			key = fields[2]
		}
		if fields[0] == "try" {
			break
		}
	}
	b := &box{sandboxState: sandboxState{URL: url, APIKey: key}, t: t}
	for order, err := range b.client().Orders.All(t.Context(), labhealth.ListOrdersParams{}) {
		if err != nil {
			t.Fatal(err)
		}
		if err := b.client().Orders.Simulate(t.Context(), order.ID, labhealth.SimulateParams{}); err != nil {
			t.Fatal(err)
		}
	}
	if !lines.Scan() || !strings.Contains(lines.Text(), " -> 202 in ") {
		t.Errorf("%q", lines.Text())
	}
	cancel()
	go io.Copy(io.Discard, out)
	if code := <-done; code != 0 {
		t.Error(code)
	}
}
