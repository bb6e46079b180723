package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/webhooks"
)

const listenSecret = "whsec_aW52ZW50ZWQgZm9yIHRoZSB0ZXN0cyBvZiBsaXN0ZW4="

// listener is a command listen that a test runs.
type listener struct {
	Receiver, Console, Forward, File string

	t      *testing.T
	lines  chan deliveryLine
	errors *lockedBuffer
	stop   func() int
}

// startListen runs the command listen until the test completes or calls stop.
func startListen(t *testing.T, args ...string) *listener {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	l := &listener{t: t, errors: &lockedBuffer{}, lines: make(chan deliveryLine, 1000)}
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, append([]string{"listen", "--addr", "127.0.0.1:0", "--json"}, args...), streams{strings.NewReader(""), in, l.errors})
		in.Close()
	}()
	l.stop = sync.OnceValue(func() int {
		cancel()
		return <-done
	})
	t.Cleanup(func() {
		if code := l.stop(); code != 0 {
			t.Errorf("listen ended with %d: %s", code, l.errors)
		}
	})
	lines := bufio.NewReader(out)
	first, err := lines.ReadBytes('\n')
	if err != nil {
		t.Fatalf("listen did not start: %s", l.errors)
	}
	if err := json.Unmarshal(first, l); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			line, err := lines.ReadBytes('\n')
			var d deliveryLine
			if err != nil || json.Unmarshal(line, &d) != nil {
				return
			}
			l.lines <- d
		}
	}()
	return l
}

func (l *listener) next() deliveryLine {
	l.t.Helper()
	select {
	case d := <-l.lines:
		return d
	case <-time.After(time.Minute):
		l.t.Fatal("no delivery was printed: ", l.errors)
		return deliveryLine{}
	}
}

// application verifies deliveries and counts them.
func application(t *testing.T, secret string) (url string, ids func() []string, status *atomic.Int64) {
	t.Helper()
	verifier, err := webhooks.NewVerifier(secret)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var got []string
	status = &atomic.Int64{}
	status.Store(200)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if verifier.Verify(body, r.Header) != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		mu.Lock()
		got = append(got, webhooks.DeliveryID(r.Header))
		mu.Unlock()
		w.WriteHeader(int(status.Load()))
	}))
	t.Cleanup(srv.Close)
	return srv.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), got...)
	}, status
}

func runCommand(t *testing.T, stdin string, args ...string) (code int, out, errors string) {
	t.Helper()
	var o, e lockedBuffer
	code = run(t.Context(), args, streams{strings.NewReader(stdin), &o, &e})
	return code, o.String(), e.String()
}

// The commands together: a sandbox that runs, a listener that registers itself, an application, and
// a replay beside the listener.
func TestListenToSandbox(t *testing.T) {
	setEnvironment(t, nil)
	box := startBox(t, "--users", "1", "--orders", "1", "--no-console")
	app, ids, status := application(t, box.WebhookSecret)
	l := startListen(t, "--sandbox", "--forward", app, "--file", filepath.Join(t.TempDir(), "d.db"))
	orders, err := box.client().Orders.List(t.Context(), listAll())
	if err != nil || len(orders.Orders) != 1 {
		t.Fatal(err)
	}
	if _, err := box.client().Orders.Cancel(t.Context(), orders.Orders[0].ID); err != nil {
		t.Fatal(err)
	}
	d := l.next()
	if d.Number != 1 || d.Verdict != "verified" || d.Type != "labtest.order.updated" || d.Forward == nil || d.Forward.StatusCode != 200 || d.StatusCode != 200 {
		t.Errorf("%+v", d)
	}
	code, out, errors := runCommand(t, "", "replay", "1", "--file", l.File, "--sandbox", "--copies", "2", "--json")
	if code != 0 || strings.Count(out, `"duplicate_of":1`) != 2 {
		t.Errorf("%d, %s, %s", code, out, errors)
	}
	for range 2 { // the listener shows what another process has stored
		if d := l.next(); d.ReplayOf != 1 || d.DuplicateOf != 1 {
			t.Errorf("%+v", d)
		}
	}
	code, out, errors = runCommand(t, `{"event_type":"labtest.order.updated"}`, "replay", "1", "--file", l.File, "--sandbox", "--edit", "-", "--json")
	if code != 0 || strings.Contains(out, "duplicate_of") {
		t.Errorf("%d, %s, %s", code, out, errors)
	}
	status.Store(500)
	code, _, errors = runCommand(t, "", "replay", "--order", orders.Orders[0].ID.String(), "--file", l.File, "--sandbox", "--shuffle", "--new-ids")
	if code != exitFailed || !strings.Contains(errors, "the application did not accept 3 of 3 deliveries") {
		t.Errorf("%d, %s", code, errors)
	}
	if got := ids(); len(got) != 7 || got[0] != got[1] || got[1] != got[2] || got[3] == got[0] {
		t.Errorf("%q", got)
	}
	if code := l.stop(); code != 0 {
		t.Error(code, l.errors)
	}
	var page struct{ Data []any }
	box.manage("GET", "/v1/org/"+box.OrgID.String()+"/team/"+box.TeamID.String()+"/sandbox/webhook", &page)
	if len(page.Data) != 0 {
		t.Errorf("%d webhooks are left", len(page.Data))
	}
}

func TestListenConsole(t *testing.T) {
	t.Setenv(secretVariable, listenSecret)
	file := filepath.Join(t.TempDir(), "dir", "d.db")
	l := startListen(t, "--file", file)
	for path, want := range map[string]int{"/": 401, "/console/deliveries": 401, "/webhooks": 405} {
		req, _ := http.NewRequest(http.MethodGet, l.Receiver+path, nil)
		resp := roundTrip(t, req)
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	for path, want := range map[string]int{"/": 401, "/any/path?x=1": 401, "/console/x": 403} { // as a tunnel does
		req, _ := http.NewRequest(http.MethodPost, l.Receiver+path, strings.NewReader("{}"))
		req.Host = "tunnel.example.com"
		resp := roundTrip(t, req)
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	if d := l.next(); d.Verdict != "rejected" || d.StatusCode != 401 {
		t.Errorf("%+v", d)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	if info, err := os.Stat(filepath.Dir(file)); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info.Mode(), err)
	}
}

// What cannot be stored or forwarded is printed once, and at the end with a count.
func TestPrintsWhatFails(t *testing.T) {
	t.Setenv(secretVariable, listenSecret)
	file := filepath.Join(t.TempDir(), "d.db")
	l := startListen(t, "--file", file)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	for range 57 {
		if status := post(t, l.Receiver, "", nil, listenSecret, `{"event_type":"x","data":{"name":"Ada Example"}}`); status != 503 {
			t.Fatal(status)
		}
	}
	warning := "warning: cannot store deliveries: " + file + " was removed or replaced: start labhealth again"
	if code := l.stop(); code != 0 || strings.Count(l.errors.String(), warning) != 2 || !strings.Contains(l.errors.String(), warning+" (57 times since ") ||
		strings.Contains(l.errors.String(), "Ada") {
		t.Errorf("%d, %s", code, l.errors)
	}
	b := startBox(t, "--users", "1", "--orders", "1", "--forward", "http://127.0.0.1:1/")
	orders, err := b.client().Orders.List(t.Context(), listAll())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.client().Orders.Cancel(t.Context(), orders.Orders[0].ID); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); !strings.Contains(b.errors.String(), "warning: cannot forward deliveries to http://127.0.0.1:1/: connection refused"); {
		if time.Now().After(deadline) {
			t.Fatal(b.errors)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Websites do not deliver: the secret of the sandbox is public, and a name of theirs can lead to
// this machine. A secret that is none of the sandbox may be used through a tunnel, under any host.
func TestListenForeignWebsite(t *testing.T) {
	setEnvironment(t, nil)
	b := startBox(t, "--users", "0", "--orders", "0", "--no-console")
	start := func(args ...string) *listener {
		return startListen(t, append(args, "--file", filepath.Join(t.TempDir(), "d.db"))...)
	}
	byFlag := start("--sandbox")
	t.Setenv(secretVariable, b.WebhookSecret)
	byEnvironment := start()
	public := start("--addr", "0.0.0.0:0", "--public")
	t.Setenv(secretVariable, listenSecret)
	secret, unsigned := start(), start("--unsigned")
	host, address := "tunnel.example.com", publicAddress(t)
	for name, l := range map[string]*listener{"--sandbox": byFlag, "environment": byEnvironment, "--public": public, "secret": secret, "--unsigned": unsigned} {
		key := b.WebhookSecret
		if l == secret {
			key = listenSecret
		}
		port := l.Receiver[strings.LastIndex(l.Receiver, ":"):]
		own := strings.TrimPrefix(l.Receiver, "http://")
		foreign, network := 403, 403
		if l == secret || l == unsigned {
			foreign, network = 204, 204
		}
		if l == public {
			network = 204
		}
		for _, c := range []struct {
			host, origin string
			want         int
		}{
			{own, "", 204}, {"localhost" + port, "", 204}, {"LOCALHOST.", "", 204}, {"[::1]" + port, "", 204}, {"127.0.0.5", "", 204}, {"app.localhost" + port, "", 204},
			{host, "", foreign}, {host + port, "", foreign}, {"localhost.attacker.example" + port, "", foreign}, {"127.0.0.1.nip.io" + port, "", foreign},
			{"attacker" + port, "", foreign}, {"10.1.2.3" + port, "", foreign}, {"printer.local" + port, "", foreign}, {net.JoinHostPort(address, port[1:]), "", network},
			{own, l.Receiver, 204}, {own, "http://localhost" + port, 204},
			{own, "http://attacker.example", 403}, {own, "null", 403}, {own, "http://localhost:1", 403}, {own, "https://" + own + ".attacker.example", 403},
			{host + port, "http://" + host + port, 403}, {own, "chrome-extension://abc", 403},
		} {
			header := map[string]string{}
			if c.origin != "" {
				header["Origin"] = c.origin
			}
			if got := post(t, l.Receiver, c.host, header, key, `{"event_type":"x","data":{}}`); got != c.want {
				t.Errorf("%s: host %s, origin %q: %d, want %d", name, c.host, c.origin, got, c.want)
			}
		}
		if text := l.errors.String(); !strings.Contains(text, "warning: cannot accept deliveries: a website sent one: the header Origin is not that of this receiver") &&
			!strings.Contains(text, "warning: cannot accept deliveries: one was sent to another host") {
			t.Errorf("%s: nothing was printed: %s", name, text)
		}
	}
}

// post sends a signed delivery to a host by its address, and returns the status code.
func post(t *testing.T, url, host string, header map[string]string, secret, body string) int {
	t.Helper()
	verifier, err := webhooks.NewVerifier(secret)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	id, now := "msg_"+rand.Text(), time.Now()
	signature, err := verifier.Sign(id, now, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"svix-id": id, "svix-timestamp": strconv.FormatInt(now.Unix(), 10), "svix-signature": signature} {
		req.Header.Set(name, value)
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	req.Host = host
	resp := roundTrip(t, req)
	resp.Body.Close()
	return resp.StatusCode
}

func TestListenInvalid(t *testing.T) {
	t.Setenv(secretVariable, "")
	file := filepath.Join(t.TempDir(), "d.db")
	open := filepath.Join(t.TempDir(), "open.db")
	if err := errors.Join(os.WriteFile(open, nil, 0o644), os.Chmod(open, 0o644)); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		want string
	}{
		{"listen", "no webhook secret is set"},
		{"replay 1 --file " + file, "no deliveries are stored"},
		{"listen --unsigned --sandbox", "--sandbox and --unsigned cannot be combined"},
		{"listen --sandbox", "no sandbox is running"},
		{"listen --unsigned --addr 0.0.0.0:0", "add --public"},
		{"listen --unsigned --addr 127.0.0.1:0 --keep 1s", "--keep"},
		{"listen --unsigned --addr 127.0.0.1:0 --forward localhost:3000 --file " + file, "must be like http"},
		{"listen --unsigned --addr 127.0.0.1:0 --file " + open, "can be accessed by other users"},
		{"replay 1 --unsigned --file /nonexistent/d.db", "no deliveries are stored"},
		{"replay --unsigned", "nothing is selected"},
		{"replay x --unsigned", "is not the number"},
		{"replay 5-x --unsigned", "is not the number"},
		{"replay 1 --order 7d2f8f2e-0a43-4f7f-9b2c-8f2d1f6f0a01", "either NUMBERs or flags"},
		{"replay --order 7", "must be a UUID"},
		{"replay --since yesterday", "--since must be a date"},
		{"replay 1 2 --edit x", "exactly one NUMBER"},
		{"replay 1 --copies 0", "--copies"},
		{"replay 1 --delay -1s", "--delay"},
		{"replay 1 --shuffle --reverse", "--reverse and --shuffle cannot be combined"},
		{"orders list --timeout 1", "--timeout must be a duration such as 30s or 2h, not \"1\""},
		{"orders list --sandbox=http://127.0.0.1:1", "--sandbox must be true or false"},
		{"sandbox --users many", "--users must be a whole number, not \"many\""},
		{"sandbox env", "no sandbox is running"},
		{"listen extra", "unexpected argument"},
		{"listen --unsigned --addr nowhere", "is not HOST:PORT"},
		{"sandbox --addr 0.0.0.0:0", "add --public"},
		{"sandbox --addr 127.0.0.1:0 --users -1", "--users and --orders"},
		{"sandbox --addr 127.0.0.1:0 --users 0 --orders 0 --forward localhost:3000", "must be like http"},
		{"sandbox --addr 127.0.0.1:0 --users 0 --orders 0 --deliver localhost:3000", "--deliver"},
		{"sandbox --addr 127.0.0.1:0 --users 0 --orders 0 --file " + open, "can be accessed by other users"},
	} {
		code, _, text := runCommand(t, "", strings.Fields(c.args)...)
		if code != exitUsage || !strings.Contains(text, c.want) || strings.Contains(text, listenSecret) {
			t.Errorf("%s: %d, %s", c.args, code, text)
		}
	}
	for secret, want := range map[string]string{"/nonexistent": "no such file", open: "all users can read or change", os.DevNull: "must be a file with the key"} {
		t.Setenv(secretVariable+"_FILE", secret)
		if code, _, text := runCommand(t, "", "listen"); code != exitUsage || !strings.Contains(text, secretVariable+"_FILE: ") || !strings.Contains(text, want) {
			t.Errorf("%s: %d, %s", secret, code, text)
		}
	}
}

func listAll() labhealth.ListOrdersParams { return labhealth.ListOrdersParams{} }

// manage reads with the management key.
func (b *box) manage(method, path string, v any) {
	b.t.Helper()
	req, err := http.NewRequest(method, b.URL+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("x-management-key", b.OrgKey)
	resp := roundTrip(b.t, req)
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(v); err != nil || resp.StatusCode != 200 {
		b.t.Fatal(resp.StatusCode, err)
	}
}
