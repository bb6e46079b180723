package sqlstore_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

// programStart and programEnd are around the program of README.md.
const (
	programStart = `package main

import (
	"context"
	"database/sql"
	"errors"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

func sendMessage(ctx context.Context, key, userID uuid.UUID) error {
	switch os.Getenv("FUNCTION") {
	case "fails":
		return errors.New("canary Ada")
	case "panics":
		panic("canary Ada")
	}
	file, err := os.OpenFile("sent", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := file.WriteString(key.String() + " " + userID.String() + "\n"); err != nil {
		return err
	}
	return file.Close()
}

func main() {
	ctx, webhookSecret := context.Background(), os.Getenv("SECRET")
	client, err := labhealth.NewClient(os.Getenv("KEY"), labhealth.WithBaseURL(os.Getenv("URL")))
	if err != nil {
		log.Fatal(err)
	}
`
	programEnd = "}\n"
)

// readmeProgram builds the program of README.md, which takes its address and its database from the
// environment, and returns its file.
var readmeProgram = sync.OnceValues(func() (string, error) {
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		return "", err
	}
	match := regexp.MustCompile("(?s)## Store events.*?```go\n(.*?)```").FindSubmatch(page)
	if match == nil {
		return "", fmt.Errorf("README.md has no program")
	}
	body := string(match[1])
	for _, change := range [][2]string{
		{`":8080"`, `os.Getenv("ADDR")`}, {`sql.Open("sqlite", "file:`, `sql.Open(os.Getenv("DRIVER"), os.Getenv("SOURCE")+"`},
		{`sqlstore.SQLite, `, `map[string]sqlstore.Dialect{"SQLite": sqlstore.SQLite, "PostgreSQL": sqlstore.PostgreSQL}[os.Getenv("DIALECT")], `},
	} {
		if !strings.Contains(body, change[0]) {
			return "", fmt.Errorf("the program has no %s", change[0])
		}
		body = strings.Replace(body, change[0], change[1], 1)
	}
	// The source name of SQLite is complete in README.md: only that of PostgreSQL takes its place.
	body = regexp.MustCompile(`os\.Getenv\("SOURCE"\)\+"labhealth\.db[^"]*"`).ReplaceAllString(body, `os.Getenv("SOURCE")`)
	dir, err := os.MkdirTemp("", "readme")
	if err != nil {
		return "", err
	}
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	source, overlay := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json")
	document, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(here, "readmeprogram", "main.go"): source}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(source, []byte(programStart+body+programEnd), 0o600); err != nil {
		return "", err
	}
	if err := os.WriteFile(overlay, document, 0o600); err != nil {
		return "", err
	}
	program := filepath.Join(dir, "program")
	if out, err := exec.Command("go", "build", "-overlay", overlay, "-o", program, "./readmeprogram").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return program, nil
})

// process is the program of README.md while it runs.
type process struct {
	dir, addr string
	log       *logRecord
	cmd       *exec.Cmd
	ended     chan error
}

const readmePragmas = "?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_pragma=synchronous(FULL)"

// secret is the secret of the endpoints of the tests.
var secret = "whsec_" + strings.Repeat("QUJD", 8)

// runProgram starts the program of README.md in a directory, with changes of its environment.
func runProgram(t *testing.T, dir string, s *labhealthtest.Server, env ...string) *process {
	t.Helper()
	program, err := readmeProgram()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") // a free port
	must(t, err)
	p := &process{dir: dir, addr: listener.Addr().String(), log: new(logRecord), cmd: exec.Command(program), ended: make(chan error, 1)}
	must(t, listener.Close())
	p.cmd.Dir, p.cmd.Stderr = dir, p.log
	p.cmd.Env = append(os.Environ(), "SECRET="+secret, "KEY="+s.APIKey, "URL="+s.URL, "ADDR="+p.addr, "DRIVER=sqlite", "DIALECT=SQLite",
		"SOURCE=file:labhealth.db"+readmePragmas)
	p.cmd.Env = append(p.cmd.Env, env...)
	must(t, p.cmd.Start())
	go func() { p.ended <- p.cmd.Wait() }()
	t.Cleanup(func() {
		p.kill()
		if strings.Contains(p.log.String(), "Ada") || strings.Contains(p.log.String(), s.APIKey) || strings.Contains(p.log.String(), secret[6:]) {
			t.Errorf("the log quotes the program, a key or the delivery:\n%s", p.log)
		}
	})
	return p
}

func (p *process) kill() {
	if p.cmd.Process.Kill() == nil {
		p.ended <- <-p.ended
	}
}

func (p *process) sent(t *testing.T) (lines []string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(p.dir, "sent"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Fields(string(bytes.ReplaceAll(content, []byte(" "), []byte("/"))))
}

// serve is a service whose orders are complete in a while, and that delivers to a program.
func (p *process) serve(t *testing.T, s *labhealthtest.Server, opts ...labhealthtest.DeliveryOption) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) { // until it listens
		conn, err := net.Dial("tcp", p.addr)
		if err == nil {
			conn.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatalf("it does not listen:\n%s", p.log)
		}
	}
	must(t, s.DeliverTo("http://"+p.addr, append([]labhealthtest.DeliveryOption{labhealthtest.WithSigningSecrets(secret)}, opts...)...))
}

// completeOne completes an order, whose events are delivered.
func completeOne(t *testing.T, s *labhealthtest.Server) {
	t.Helper()
	id := s.AddOrders(1)[0]
	for {
		if _, err := s.Advance(id); err != nil {
			return
		}
	}
}

// Each failure of the program of README.md is printed within ten seconds of its first occurrence.
// The table of what was printed is the log of the test.
func TestProgramSaysWhyItFails(t *testing.T) {
	started := func(t *testing.T, p *process) { wantLogged(t, p.log, "the Receiver has started") }
	for _, test := range []struct {
		name  string
		opts  []labhealthtest.Option
		env   []string
		cause func(t *testing.T, s *labhealthtest.Server, p *process) // what makes it fail
		want  []string                                                // parts of a line
		ends  bool                                                    // the process has ended then
	}{
		{name: "wrong key", env: []string{"KEY=sk_wrong"},
			want: []string{"WARN", "cannot read from the service", "401 Unauthorized"}},
		{name: "wrong region", // where the key is not known
			want: []string{"WARN", "cannot read from the service", "or of another region"}},
		{name: "service unreachable", env: []string{"URL=http://127.0.0.1:1"},
			want: []string{"WARN", "cannot read from the service", "connection refused"}},
		{name: "wrong secret", env: []string{"SECRET=whsec_" + strings.Repeat("REVG", 8)},
			cause: func(t *testing.T, s *labhealthtest.Server, p *process) { p.serve(t, s); completeOne(t, s) },
			want:  []string{"WARN", "not signed with a secret"}},
		{name: "no secret", env: []string{"SECRET="},
			want: []string{"ReceiverOptions.Secrets", "is empty"}, ends: true},
		{name: "no tables",
			cause: func(t *testing.T, s *labhealthtest.Server, p *process) {
				started(t, p)
				db := database{driver: "sqlite", source: "file:" + filepath.Join(p.dir, "labhealth.db") + readmePragmas}.open(t)
				_, err := db.Exec("DROP TABLE labhealth_inbox")
				must(t, err)
			},
			want: []string{"WARN", "the tables are missing"}},
		{name: "no database", env: []string{"SOURCE=file:missing/labhealth.db"},
			want: []string{"the database does not exist or cannot be opened"}, ends: true},
		{name: "database unreachable", env: []string{"DRIVER=pgx", "DIALECT=PostgreSQL", "SOURCE=postgres://postgres@127.0.0.1:1/test"},
			want: []string{"WARN", "the database refuses connections"}},
		{name: "wrong dialect", env: []string{"DIALECT=PostgreSQL"},
			want: []string{"the database is SQLite, and the dialect that was passed is PostgreSQL"}, ends: true},
		{name: "full disk", env: []string{"SOURCE=file:labhealth.db" + readmePragmas + "&_pragma=max_page_count(90)"},
			cause: func(t *testing.T, s *labhealthtest.Server, p *process) {
				started(t, p)
				p.serve(t, s)
				for range 60 {
					completeOne(t, s)
				}
			},
			want: []string{"WARN", "the disk of the database is full"}},
		{name: "clock off by ten minutes",
			opts: []labhealthtest.Option{labhealthtest.WithClock(func() time.Time { return time.Now().Add(10 * time.Minute) })},
			want: []string{"WARN", "the clocks of this machine and of the service differ by minutes", "ahead=-"}},
		{name: "clock off by ten minutes, delivery",
			opts:  []labhealthtest.Option{labhealthtest.WithClock(func() time.Time { return time.Now().Add(10 * time.Minute) })},
			cause: func(t *testing.T, s *labhealthtest.Server, p *process) { p.serve(t, s); completeOne(t, s) },
			want:  []string{"WARN", "the timestamp of a delivery is too old or too new"}},
		{name: "function fails", env: []string{"FUNCTION=fails"},
			cause: func(t *testing.T, s *labhealthtest.Server, p *process) {
				started(t, p)
				p.serve(t, s)
				completeOne(t, s)
			},
			want: []string{"WARN", "fails", "kind=results", "error_type=*errors.errorString"}},
		{name: "function panics", env: []string{"FUNCTION=panics"},
			cause: func(t *testing.T, s *labhealthtest.Server, p *process) {
				started(t, p)
				p.serve(t, s)
				completeOne(t, s)
			},
			want: []string{"WARN", "panicked", "main.sendMessage"}},
		{name: "port in use", env: []string{"ADDR=in use"},
			want: []string{"listen tcp", "address already in use"}, ends: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := labhealthtest.Start(test.opts...)
			must(t, err)
			defer s.Close()
			env := test.env
			if test.name == "wrong region" {
				other, err := labhealthtest.Start()
				must(t, err)
				defer other.Close()
				env = []string{"URL=" + other.URL}
			}
			if test.name == "port in use" {
				taken, err := net.Listen("tcp", "127.0.0.1:0")
				must(t, err)
				defer taken.Close()
				env = []string{"ADDR=" + taken.Addr().String()}
			}
			p := runProgram(t, t.TempDir(), s, env...)
			if test.cause != nil {
				test.cause(t, s, p)
			}
			caused := time.Now()
			wantLogged(t, p.log, test.want...) // waits for ten seconds
			for line := range strings.Lines(p.log.String()) {
				if strings.Contains(line, test.want[len(test.want)-1]) {
					t.Logf("after %.1f s: %s", time.Since(caused).Seconds(), line)
					break
				}
			}
			if !test.ends {
				return
			}
			select {
			case err := <-p.ended:
				p.ended <- err
				if err == nil {
					t.Error("it ended without an error")
				}
			case <-time.After(10 * time.Second):
				t.Error("it still runs")
			}
		})
	}
}

// The program of README.md, which is killed again and again while most events are lost, calls its
// function for the results of every order, with one key for each version of them.
func TestProgramIsKilled(t *testing.T) {
	if !long {
		t.Skip("LABHEALTH_TEST_LONG is not set: leases of killed processes last up to two minutes")
	}
	onBoth(t, func(t *testing.T, d database) {
		const rounds, each = 8, 5
		s, err := labhealthtest.Start()
		must(t, err)
		defer s.Close()
		dir := t.TempDir()
		env := []string{"DRIVER=" + d.driver, "DIALECT=" + d.dialect.String(), "SOURCE=" + d.source}
		p := runProgram(t, dir, s, env...)
		wantLogged(t, p.log, "the Receiver has started")
		addr := "ADDR=" + p.addr // of all of them
		for range rounds {
			for range each {
				userID := s.AddUser(fmt.Sprint("user ", s.RequestCount(), len(s.Orders())))
				id, err := s.AddOrder(userID, s.LabTests.WalkIn)
				must(t, err)
				for err == nil {
					_, err = s.Advance(id)
				}
			}
			if len(s.Deliveries()) == 0 {
				p.serve(t, s, labhealthtest.WithRetries(time.Second, time.Second, 5*time.Second),
					labhealthtest.WithNetworkConditions(labhealthtest.NetworkConditions{Lose: 0.7}))
			}
			time.Sleep(time.Duration(rand.IntN(3000)) * time.Millisecond)
			p.kill()
			p = runProgram(t, dir, s, append(env, addr)...)
		}
		orders := s.Orders()
		for end := time.Now().Add(15 * time.Minute); ; time.Sleep(time.Second) {
			if users := usersOf(p.sent(t)); len(users) == len(orders) || time.Now().After(end) {
				calls, keys := len(p.sent(t)), map[string]bool{}
				for user, of := range users {
					if len(of) != 1 {
						t.Errorf("%d keys for the order of %s", len(of), user)
					}
					for key := range of {
						keys[key] = true
					}
				}
				t.Logf("%d kills, %d orders, %d calls, %d keys", rounds, len(orders), calls, len(keys))
				if len(users) != len(orders) || len(keys) != len(orders) {
					t.Errorf("calls for %d orders, want %d:\n%s", len(users), len(orders), p.log)
				}
				return
			}
		}
	})
}

// usersOf returns the keys that were sent to each user.
func usersOf(lines []string) map[string]map[string]bool {
	users := map[string]map[string]bool{}
	for _, line := range lines {
		key, user, _ := strings.Cut(line, "/")
		if users[user] == nil {
			users[user] = map[string]bool{}
		}
		users[user][key] = true
	}
	return users
}
