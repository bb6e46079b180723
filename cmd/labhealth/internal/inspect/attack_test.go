package inspect

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"
)

// serveVariable makes the test binary an inspector, in a process that a test kills.
const serveVariable = "LABHEALTH_TEST_SERVE"

func TestMain(m *testing.M) {
	if file := os.Getenv(serveVariable); file != "" {
		serve(file)
		return
	}
	code := m.Run()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}

func serve(file string) {
	i, err := Open(context.Background(), Config{File: file, Secrets: []string{testSecret}})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		os.Exit(1)
	}
	fmt.Println("http://" + listener.Addr().String())
	go func() { // not longer than the test
		io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	http.Serve(listener, i)
}

func long() bool { return os.Getenv("LABHEALTH_TEST_LONG") != "" }

// What was acknowledged is stored and applied once, whenever the process was killed.
func TestKill(t *testing.T) {
	rounds, total := 3, 150
	if long() {
		rounds, total = 12, 5000
	}
	file := filepath.Join(t.TempDir(), "d.db")
	var mu sync.Mutex
	acknowledged := map[string]bool{}
	for round := range rounds {
		process := exec.Command(os.Args[0])
		process.Env = append(os.Environ(), serveVariable+"="+file)
		in, _ := process.StdinPipe()
		out, _ := process.StdoutPipe()
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "http") {
			t.Fatal(line, err)
		}
		url := strings.TrimSpace(line)
		var sent atomic.Int64
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 20}}
		killAt := int64(total/rounds/4 + rand.N(total/rounds*3/4))
		var senders sync.WaitGroup
		for range 20 {
			senders.Go(func() {
				for {
					n := sent.Add(1)
					if n > int64(total/rounds) {
						return
					}
					id := fmt.Sprintf("msg_%d_%d", round, n)
					r := request(t, id, glucoseBody(testUser, time.Unix(1_700_000_000+int64(round)*100_000+n*60, 0), 5))
					out, _ := http.NewRequest(http.MethodPost, url, r.Body)
					out.Header = r.Header
					response, err := client.Do(out)
					if err == nil {
						response.Body.Close()
						if response.StatusCode/100 == 2 {
							mu.Lock()
							acknowledged[id] = true
							mu.Unlock()
						}
					}
					if n == killAt {
						process.Process.Kill()
					}
				}
			})
		}
		senders.Wait()
		process.Process.Kill()
		process.Wait()
		in.Close()
		client.CloseIdleConnections()
	}
	i := open(t, Config{File: file, Now: func() time.Time { return time.Now().Add(2 * feedDelay) }})
	i.feedWaiting(t.Context())
	stored := map[string]Delivery{}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		n, err := i.Count(t.Context(), Filter{Is: "waiting"})
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d deliveries are still waiting", n)
		}
	}
	list, err := i.List(t.Context(), Filter{}, 100_000)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range list {
		stored[d.ID] = d
		if !d.Applied || d.Changes.Added != 1 {
			t.Errorf("%s: applied %v, %+v", d.ID, d.Applied, d.Changes)
		}
	}
	for id := range acknowledged {
		if _, ok := stored[id]; !ok {
			t.Errorf("%s was acknowledged and is not stored", id)
		}
	}
	samples := 0
	for _, err := range i.Store.UserSamples(t.Context(), testUser, "", time.Time{}, time.Time{}) {
		if err != nil {
			t.Fatal(err)
		}
		samples++
	}
	if samples != len(list) {
		t.Errorf("%d samples of %d deliveries", samples, len(list))
	}
	t.Logf("%d acknowledged, %d stored, %d rounds", len(acknowledged), len(list), rounds)
}

func TestConcurrentSenders(t *testing.T) {
	var forwarded atomic.Int64
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { forwarded.Add(1) }))
	defer app.Close()
	i := open(t, Config{Forward: app.URL})
	const each, senders = 3, 50
	watched := map[int64]bool{}
	ctx, cancel := context.WithCancel(t.Context())
	changes := i.Watch(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		for number := range changes {
			if watched[number] = true; len(watched) == each*senders {
				return
			}
		}
	})
	var running sync.WaitGroup
	for s := range senders {
		running.Go(func() {
			for n := range each {
				id := fmt.Sprintf("msg_%d_%d", s, n)
				if n == 0 {
					id = "msg_same"
				}
				if got := deliver(i, request(t, id, glucoseBody(uuid.New(), time.Now(), 5))); got != 200 {
					t.Errorf("status %d", got)
				}
			}
		})
	}
	running.Wait()
	for n := range each * senders {
		await(t, i, int64(n+1))
	}
	list, err := i.List(t.Context(), Filter{Query: "id:msg_same"}, 1000)
	if err != nil || len(list) != senders {
		t.Fatal(len(list), err)
	}
	attempts := map[int]bool{}
	for n, d := range list {
		first := n == len(list)-1
		if first != (d.DuplicateOf == 0) || !first && d.DuplicateOf != list[len(list)-1].Number {
			t.Errorf("%d is a duplicate of %d", d.Number, d.DuplicateOf)
		}
		attempts[d.Attempt] = true
	}
	if len(attempts) != senders || forwarded.Load() != each*senders {
		t.Errorf("%d attempts, %d forwarded", len(attempts), forwarded.Load())
	}
	time.AfterFunc(time.Minute, cancel)
	watching.Wait()
	cancel()
	if len(watched) != each*senders {
		t.Errorf("%d watched", len(watched))
	}
}

// The application does what it should not.
func TestHostileApplication(t *testing.T) {
	release := make(chan struct{})
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hang":
			<-release
		case "/hang-body":
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			<-release
		case "/reset":
			c, _, _ := w.(http.Hijacker).Hijack()
			c.(*net.TCPConn).SetLinger(0)
			c.Close()
		case "/endless":
			for b := make([]byte, 1<<16); ; {
				if _, err := w.Write(b); err != nil {
					return
				}
			}
		case "/garbage":
			c, _, _ := w.(http.Hijacker).Hijack()
			fmt.Fprint(c, "no HTTP\r\n\r\n")
			c.Close()
		case "/redirect":
			http.Redirect(w, r, "/redirect/?token=secret", http.StatusPermanentRedirect)
		default:
			status, _ := strconv.Atoi(r.URL.Path[1:])
			w.WriteHeader(status)
		}
	}))
	defer app.Close()
	defer close(release)
	i := open(t, Config{})
	for n, c := range []struct {
		path    string
		answer  int
		finding string
	}{
		{"/hang", 502, "no complete response within 15 s"},
		{"/hang-body", 502, "no complete response within 15 s"},
		{"/reset", 502, "closed the connection"},
		{"/endless", 200, ""},
		{"/garbage", 502, "malformed HTTP"},
		{"/redirect", 308, "slash at the end"},
		{"/401", 401, "another secret"},
		{"/404", 404, "path of the URL"},
		{"/500", 500, "responded 500"},
		{"/204", 204, ""},
		{"/304", 304, "redirect"},
	} {
		i.patience = time.Minute
		if strings.HasPrefix(c.path, "/hang") {
			i.patience = 300 * time.Millisecond
		}
		if err := i.SetForward(app.URL + c.path); err != nil {
			t.Fatal(err)
		}
		if got := deliver(i, request(t, fmt.Sprint("msg_", n), glucoseBody(testUser, time.Now(), 5))); got != c.answer {
			t.Errorf("%s: status %d", c.path, got)
		}
		d, ok, err := i.Get(t.Context(), int64(n+1))
		if err != nil || !ok || d.StatusCode != c.answer || !strings.Contains(d.Finding(), c.finding) || (c.finding == "") != (d.Finding() == "") {
			t.Errorf("%s: %d, %q, %v", c.path, d.StatusCode, d.Finding(), err)
		}
		if strings.Contains(fmt.Sprint(*d.Forward), "secret") {
			t.Errorf("%s: %v", c.path, *d.Forward)
		}
	}
	closed := httptest.NewServer(nil)
	closed.Close()
	i.SetForward(closed.URL)
	if got := deliver(i, request(t, "msg_x", glucoseBody(testUser, time.Now(), 5))); got != 502 {
		t.Errorf("status %d", got)
	}
	own := httptest.NewServer(i)
	defer own.Close()
	i.SetForward(own.URL)
	if got := deliver(i, request(t, "msg_y", glucoseBody(testUser, time.Now(), 5))); got != 508 {
		t.Errorf("status %d", got)
	}
	if list, _ := i.List(t.Context(), Filter{}, 2); len(list) != 2 || list[0].Finding() != errLoop.Error() || !strings.Contains(list[1].Finding(), "refused") {
		t.Errorf("%+v", list)
	}
}

// The sender does what it should not.
func TestHostileSender(t *testing.T) {
	i := open(t, Config{})
	srv := httptest.NewServer(i)
	defer srv.Close()
	// Bodies that are announced and do not arrive take no memory, and nothing is stored.
	for range 100 {
		c, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n{")
	}
	time.Sleep(50 * time.Millisecond)
	if used := i.memory.Load(); used > 2<<20 {
		t.Errorf("%d bytes are reserved", used)
	}
	body := glucoseBody(testUser, time.Now(), 5)
	r := request(t, "msg_1", body)
	out, _ := http.NewRequest(http.MethodPost, srv.URL, io.MultiReader(strings.NewReader(body[:10]), strings.NewReader(body[10:]))) // chunked
	out.Header = r.Header
	response, err := http.DefaultClient.Do(out)
	if err != nil || response.StatusCode != http.StatusNoContent {
		t.Error(response, err)
	}
	response.Body.Close()
	out, _ = http.NewRequest(http.MethodPost, srv.URL, io.LimitReader(zeros{}, 1<<30))
	if response, err := http.DefaultClient.Do(out); err == nil {
		if response.StatusCode != http.StatusRequestEntityTooLarge {
			t.Error(response.Status)
		}
		response.Body.Close()
	}
	// Text that is not meant for a terminal or a database.
	hostile := `{"event_type":"\u001b[31mdaily.data.\u202e<script>\u0000\ud800","client_user_id":"a\u0000b\u001b]0;x\u0007","user_id":"x","data":[{"a":` +
		strings.Repeat("[", 900) + strings.Repeat("]", 900) + `}]}`
	r = request(t, "msg_2", hostile)
	r.Header["X-Bad"] = []string{"\xff\xfe", strings.Repeat("x", 100_000)}
	if got := deliver(i, r); got != http.StatusNoContent {
		t.Errorf("status %d", got)
	}
	list, err := i.List(t.Context(), Filter{Query: "id:msg_2"}, 1)
	if err != nil || len(list) != 1 || strings.ContainsFunc(list[0].Type+list[0].ClientUserID+list[0].About, func(r rune) bool { return r < ' ' || r == '\u202e' }) {
		t.Errorf("%+v, %v", list, err)
	}
	if d, _, err := i.Get(t.Context(), list[0].Number); err != nil || string(d.Body) != hostile || len(d.Header.Get("X-Bad")) > maxHeader {
		t.Error(err)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// A full disk is an error of the sender's attempt: it repeats the delivery.
func TestDiskFull(t *testing.T) {
	var forwarded atomic.Int64
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { forwarded.Add(1) }))
	defer app.Close()
	i := open(t, Config{Forward: app.URL})
	var pages int
	i.writer.db.QueryRow(`PRAGMA page_count`).Scan(&pages)
	if _, err := i.writer.db.Exec(fmt.Sprintf(`PRAGMA max_page_count = %d`, pages+40)); err != nil {
		t.Fatal(err)
	}
	accepted, rejected := 0, 0
	for n := range 60 {
		body := strings.Replace(glucoseBody(testUser, time.Now(), 5), "{", "{"+strings.Repeat(" ", 8000), 1)
		switch got := deliver(i, request(t, fmt.Sprint("msg_", n), body)); got {
		case 200:
			accepted++
		case 503:
			rejected++
		default:
			t.Errorf("status %d", got)
		}
	}
	n, err := i.Count(t.Context(), Filter{})
	if err != nil || n != accepted || accepted == 0 || rejected == 0 || forwarded.Load() != int64(accepted) {
		t.Errorf("%d stored, %d accepted, %d rejected, %d forwarded, %v", n, accepted, rejected, forwarded.Load(), err)
	}
	if _, err := i.writer.db.Exec(`PRAGMA max_page_count = 1000000`); err != nil {
		t.Fatal(err)
	}
	if got := deliver(i, request(t, "msg_0", glucoseBody(testUser, time.Now(), 5))); got != 200 {
		t.Errorf("status %d", got)
	}
	await(t, i, int64(n))
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	os.WriteFile(target, nil, 0o600)
	os.Symlink(target, filepath.Join(dir, "link"))
	os.WriteFile(filepath.Join(dir, "open"), nil, 0o640)
	os.Mkdir(filepath.Join(dir, "directory"), 0o700)
	os.WriteFile(filepath.Join(dir, "text"), []byte(strings.Repeat("no database ", 100)), 0o600)
	os.WriteFile(filepath.Join(dir, "wal"), nil, 0o600)
	os.Symlink(target, filepath.Join(dir, "wal-wal"))
	for name, want := range map[string]string{"link": "symbolic link", "open": "chmod 600", "directory": "not a regular file", "text": "not a database", "wal": "symbolic link"} {
		if i, err := Open(t.Context(), Config{File: filepath.Join(dir, name)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
			if err == nil {
				i.Close()
			}
		}
	}
	// Others can put a file beside a new one, which SQLite would write to.
	os.WriteFile(filepath.Join(dir, "planted-wal"), nil, 0o600)
	os.Chmod(filepath.Join(dir, "planted-wal"), 0o666)
	if _, err := Open(t.Context(), Config{File: filepath.Join(dir, "planted")}); err == nil || !strings.Contains(err.Error(), "planted-wal can be accessed") {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "planted")); !os.IsNotExist(err) {
		t.Error(err)
	}
	file := filepath.Join(dir, "new dir?x=1#", "d.db")
	old := umask(0)
	i, err := Open(t.Context(), Config{File: file})
	if err != nil {
		t.Fatal(err)
	}
	deliver(i, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}")))
	umask(old)
	all, _ := filepath.Glob(file + "*")
	if len(all) != 3 {
		t.Error(all)
	}
	for _, name := range append(all, filepath.Dir(file)) {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Error(name, info.Mode(), err)
		}
	}
	second, err := Open(t.Context(), Config{File: file}) // by two at once
	if err != nil {
		t.Fatal(err)
	}
	if n, err := second.Count(t.Context(), Filter{}); n != 1 || err != nil {
		t.Error(n, err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	if err := i.Close(); err != nil {
		t.Error(err)
	}
	if got := deliver(i, httptest.NewRequest(http.MethodPost, "/", nil)); got != 503 {
		t.Errorf("status %d", got)
	}
	temporary, err := Open(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	name := temporary.temporary
	if err := temporary.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(name); !os.IsNotExist(err) || name == "" {
		t.Error(name, err)
	}
}

// Two inspectors that forward to each other do not send a delivery around forever.
func TestLoopOfTwo(t *testing.T) {
	var inspectors [2]*Inspector
	var received atomic.Int64
	var urls [2]string
	for n := range 2 {
		var err error
		if inspectors[n], err = Open(t.Context(), Config{}); err != nil {
			t.Fatal(err)
		}
		defer inspectors[n].Close()
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if received.Add(1) > 50 {
				w.WriteHeader(http.StatusTeapot)
				return
			}
			inspectors[n].ServeHTTP(w, r)
		}))
		defer server.Close()
		urls[n] = server.URL
	}
	for n := range 2 {
		if err := inspectors[n].SetForward(urls[1-n]); err != nil {
			t.Fatal(err)
		}
	}
	response, err := http.Post(urls[0], "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if n := received.Load(); n > 4 || response.StatusCode != http.StatusLoopDetected {
		t.Errorf("%d deliveries, status %d", n, response.StatusCode)
	}
}
