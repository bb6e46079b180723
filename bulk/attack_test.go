package bulk_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
	"github.com/labhealth/labhealth-go/internal/httptracetest"
)

// TestAttack tries to cause two orders for one sample, or none for one that is reported as applied.
// It kills runs, damages and restores their journals, adjusts their clocks and changes their
// sources. The service loses, delays and repeats at random and, in every second round, accepts
// duplicate sample IDs.
//
//	go test -run TestAttack ./bulk                                                     200 rounds
//	LABHEALTH_TEST_LONG=1 go test -run TestAttack ./bulk                               1,000 rounds
//	LABHEALTH_ATTACK_ROUNDS=20000 go test -run 'TestAttack$' -timeout 1h ./bulk        as many
//	LABHEALTH_ATTACK_SEED=7 go test -run TestAttack -v ./bulk                          one round
func TestAttack(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	bulk.SkipSync(t)
	first, rounds := uint64(1), uint64(200)
	if os.Getenv("LABHEALTH_TEST_LONG") != "" {
		first, rounds = rand.Uint64N(1<<40), 1000
	}
	if n, err := strconv.ParseUint(os.Getenv("LABHEALTH_ATTACK_ROUNDS"), 10, 64); err == nil {
		first, rounds = rand.Uint64N(1<<40), n
	}
	if seed, err := strconv.ParseUint(os.Getenv("LABHEALTH_ATTACK_SEED"), 10, 64); err == nil {
		first, rounds = seed, 1
	}
	var total tally
	for seed := first; seed < first+rounds && !t.Failed(); seed++ {
		dir, err := os.MkdirTemp("", "attack")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) { attack(t, seed, dir, &total) })
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d rounds from seed %d: %+v", rounds, first, total)
}

// tally counts what the attack did.
type tally struct{ Runs, Killed, Failed, Done, Damaged, Unreadable, Sent, Lists int }

// attackService creates orders for the current run. Earlier runs are dead: what they still send has
// no effect.
type attackService struct {
	mu      sync.Mutex
	random  *rand.Rand
	alive   int  // the number of the current run
	calm    bool // no more faults
	unique  bool // duplicate sample IDs are rejected
	upper   bool // lists show sample ids in upper case
	orders  []attackOrder
	settle  time.Duration
	sent    int
	pending sync.WaitGroup // orders that are not created yet
	lists   int
}

type attackOrder struct {
	id, user uuid.UUID
	sample   string
}

const attackTimeout, attackSettle = 10 * time.Second, 30 * time.Second

type attackClient struct {
	*attackService
	run int
}

func (c attackClient) RoundTrip(req *http.Request) (*http.Response, error) {
	requestBody := readBody(req)
	c.mu.Lock()
	dead := c.alive != c.run
	c.mu.Unlock()
	if dead {
		return nil, errors.New("killed")
	}
	httptracetest.SendRequest(req)
	status, body := c.respond(req, requestBody)
	if req.Context().Err() != nil {
		return nil, req.Context().Err()
	}
	if status == 0 {
		return nil, errors.New("connection lost")
	}
	return newResponse(req, status, body, ""), nil
}

// respond processes a request and returns its response after a delay. The status is 0 for a lost
// connection.
func (s *attackService) respond(req *http.Request, requestBody []byte) (status int, body string) {
	s.mu.Lock()
	creates, delay, fault := false, time.Duration(s.random.Int64N(int64(s.settle)/150)), s.random.IntN(20)
	if s.calm {
		fault = 19
	}
	switch {
	case req.Method == http.MethodGet && fault < 2:
		s.lists++
		status = 503
	case req.Method == http.MethodGet:
		s.lists++
		status, body = 200, s.page(req)
	default:
		s.sent++
		status, body, creates, delay = s.order(requestBody, fault, delay)
	}
	s.mu.Unlock()
	if creates {
		s.createAfter(delay, requestBody) // even if the sender is killed meanwhile
	}
	if status == 0 || status >= 500 {
		delay = min(delay, s.settle/30)
	}
	select {
	case <-time.After(delay):
	case <-req.Context().Done():
	}
	return status, body
}

// createAfter creates an order after a delay.
func (s *attackService) createAfter(delay time.Duration, requestBody []byte) {
	var body labhealth.ImportOrderBody
	if json.Unmarshal(requestBody, &body) != nil {
		return
	}
	s.pending.Add(1)
	time.AfterFunc(delay, func() {
		defer s.pending.Done()
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.unique || s.count(body.SampleID) == 0 {
			s.orders = append(s.orders, attackOrder{uuid.New(), body.UserID, body.SampleID})
		}
	})
}

// count returns the number of orders of a sample.
func (s *attackService) count(sampleID string) (n int) {
	for _, o := range s.orders {
		if strings.EqualFold(o.sample, sampleID) {
			n++
		}
	}
	return n
}

// checkUnique fails the test if a sample has two orders.
func (s *attackService) checkUnique(t *testing.T, log string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.orders {
		if n := s.count(o.sample); n != 1 {
			t.Errorf("%d orders for %s: %s", n, o.sample, log)
			return
		}
	}
}

// order returns the response to an import, and whether and when it creates an order.
func (s *attackService) order(requestBody []byte, fault int, delay time.Duration) (status int, body string, creates bool, after time.Duration) {
	var record labhealth.ImportOrderBody
	if json.Unmarshal(requestBody, &record) != nil {
		return 422, `{"detail":"no"}`, false, delay
	}
	const created = `{"order":{"id":"00000000-0000-4000-8000-000000000001"},"status":"success","message":""}`
	switch {
	case fault == 0:
		return 0, "", false, delay
	case fault == 1:
		return 429, `{"detail":"slow"}`, false, delay
	case fault == 2:
		return 503, `{"detail":"down"}`, false, delay
	case s.unique && s.count(record.SampleID) > 0, strings.HasPrefix(record.SampleID, "R"):
		return 400, `{"detail":"no"}`, false, delay
	case fault == 3:
		return 0, "", true, delay
	case fault == 4:
		return 502, "", true, time.Duration(s.random.Int64N(int64(s.settle / 2)))
	case fault == 5:
		return 200, `{"order":{"id":"`, true, delay
	case fault == 6:
		return 200, "<html>", true, delay
	}
	return 200, created, true, delay
}

// page returns up to three orders, newest first.
func (s *attackService) page(req *http.Request) string {
	query := req.URL.Query()
	var shown []string
	for _, o := range slices.Backward(s.orders) {
		if user := query.Get("user_id"); user == "" || user == o.user.String() {
			sample := o.sample
			if s.upper {
				sample = strings.ToUpper(sample)
			}
			shown = append(shown, fmt.Sprintf(`{"id":"%s","user_id":"%s","sample_id":%q}`, o.id, o.user, sample))
		}
	}
	n, _ := strconv.Atoi(query.Get("page"))
	from, to := min(3*(n-1), len(shown)), min(3*n, len(shown))
	return fmt.Sprintf(`{"orders":[%s],"total":%d,"page":%d,"size":3}`, strings.Join(shown[from:to], ","), len(shown), n)
}

// attack is one round.
func attack(t *testing.T, seed uint64, dir string, total *tally) {
	random := rand.New(rand.NewPCG(seed, 1))
	s := &attackService{random: rand.New(rand.NewPCG(seed, 2)), settle: attackSettle, unique: seed%2 == 0, upper: seed%3 == 0}
	rows := attackRows(random, 4+random.IntN(20))
	journalPath := func(n int) string { return filepath.Join(dir, fmt.Sprintf("%d.journal", n)) }
	var history [][]byte // of the journal
	var report *bulk.Report
	var err error
	var log []string
	last := 1 + random.IntN(5)
	boot, booted := seed, time.Now().Add(-time.Hour)
	bulk.BootClock(t, func() string { return fmt.Sprint(boot) }, func() time.Duration { return (time.Since(booted) + time.Second - 1).Truncate(time.Second) })
	for n := 1; n <= last+1; n++ {
		if random.IntN(2) == 0 {
			time.Sleep(time.Duration(random.Int64N(int64(3 * attackSettle)))) // how long ago earlier runs sent
		}
		if random.IntN(4) == 0 { // another machine, or a crash of this one
			boot, booted = boot+1, time.Now().Add(-time.Duration(random.Int64N(int64(100*time.Hour))))
			loseMarks(t, journalPath(n))
		}
		s.mu.Lock()
		s.alive, s.calm = n, n > last
		s.mu.Unlock()
		j, openErr := bulk.OpenFile(journalPath(n))
		if openErr != nil {
			total.Unreadable++
			log = append(log, openErr.Error())
			break
		}
		a := attackedRun{number: n, mayKill: n <= last, rows: rows, journal: j, journalPath: journalPath(n)}
		var content []byte
		report, content, err = a.run(t, s, random, total)
		log = append(log, fmt.Sprintf("run %d: %v, %v; %d bytes", n, report, err, len(content)))
		if n > last {
			if err != nil {
				total.Failed++
			}
			break
		}
		history = append(history, content)
		if random.IntN(2) == 0 {
			// Attempts that the journal is going to lose are finished: nobody can find others.
			s.pending.Wait()
			var description string
			if content, description = damage(random, content, history); description != "" {
				total.Damaged++
				log = append(log, description)
			}
		}
		if err := os.WriteFile(journalPath(n+1), content, 0o600); err != nil {
			t.Fatal(err)
		}
		if random.IntN(2) == 0 {
			rows = change(random, rows)
		}
	}
	s.pending.Wait()
	total.Sent += s.sent
	total.Lists += s.lists
	s.checkUnique(t, fmt.Sprintf("seed %d: %s", seed, strings.Join(log, "\n")))
	if err != nil || report == nil || !report.Done() || s.alive != 0 || len(history) != last {
		return
	}
	total.Done++
	if missing := s.missing(rows); missing != "" && report.Rejected == 0 {
		t.Errorf("seed %d: no order for %s, %v:\n%s", seed, missing, report, strings.Join(log, "\n"))
	}
}

// loseMarks removes the lines that are not synced from a journal, if it exists.
func loseMarks(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var kept []byte
	for line := range bytes.Lines(content) {
		if !bytes.Contains(line, []byte(`"step":"sending"`)) {
			kept = append(kept, line...)
		}
	}
	if err := errors.Join(err, os.WriteFile(path, kept, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// attackedRun is one run of a round.
type attackedRun struct {
	number      int
	mayKill     bool
	rows        []labhealth.ImportOrderBody
	journal     *bulk.File
	journalPath string
}

// run returns the content of the journal when the run was killed or finished.
func (a attackedRun) run(t *testing.T, s *attackService, random *rand.Rand, total *tally) (report *bulk.Report, content []byte, err error) {
	t.Helper()
	offset := clockOffset(random.Int64N)
	opts := bulk.Options{
		Timeout: attackTimeout, Settle: attackSettle, Concurrency: 1 + random.IntN(6), ListByUser: random.IntN(2) == 0,
		RetryRejected: random.IntN(3) == 0, RejectionLimit: -1, Outage: time.Hour, Reconcile: random.IntN(3) == 0,
		Now: func() time.Time { return time.Now().Round(0).Add(offset) },
	}
	client, err := labhealth.NewClient("sk_test_0123456789", labhealth.WithBaseURL("https://api.example.com"),
		labhealth.WithHTTPClient(&http.Client{Transport: attackClient{s, a.number}}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	source := from(slices.Clone(a.rows))
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		report, err = bulk.Run(ctx, client, source, a.journal, opts)
	}()
	total.Runs++
	if a.mayKill && random.IntN(4) > 0 {
		select {
		case <-finished:
		case <-time.After(time.Duration(random.Float64() * random.Float64() * float64(time.Minute))):
			total.Killed++
		}
	} else {
		<-finished
	}
	s.mu.Lock()
	s.alive = 0
	s.mu.Unlock()
	content, readErr := os.ReadFile(a.journalPath)
	if readErr != nil {
		t.Fatal(readErr)
	}
	cancel()
	<-finished
	a.journal.Close()
	return report, content, err
}

// missing returns the sample ID of a valid row without an order, or "".
func (s *attackService) missing(rows []labhealth.ImportOrderBody) string {
	ids := map[string]int{}
	for _, body := range rows {
		ids[strings.ToLower(body.SampleID)]++
	}
	for _, body := range rows {
		// Perhaps none of several rows with one sample ID is sent, and the service rejects those
		// with R.
		isUnique := ids[strings.ToLower(body.SampleID)] == 1
		if isUnique && body.Validate() == nil && !strings.HasPrefix(body.SampleID, "R") && s.count(body.SampleID) != 1 {
			return body.SampleID
		}
	}
	return ""
}

// attackRows returns records with sample IDs in both cases, some of which the service rejects.
func attackRows(random *rand.Rand, n int) (rows []labhealth.ImportOrderBody) {
	for i := range n {
		rows = append(rows, record(fmt.Sprintf("%c-%d", "sSR"[random.IntN(11)/5], i)))
	}
	return rows
}

var journalTime = regexp.MustCompile(`"at":"20\d\d`)

// damage returns a damaged journal and a description of the damage.
func damage(random *rand.Rand, content []byte, history [][]byte) ([]byte, string) {
	if len(content) == 0 {
		return content, ""
	}
	content = bytes.Clone(content)
	lines := slices.Collect(bytes.Lines(content))
	from, to := random.IntN(len(lines)), random.IntN(len(lines)+1)
	from, to = min(from, to), max(from, to)
	at := random.IntN(len(content))
	switch random.IntN(9) {
	case 0:
		return content[:at], fmt.Sprintf("cut at %d", at)
	case 1:
		content[at] ^= 1 << random.IntN(8)
		return content, fmt.Sprintf("byte %d changed", at)
	case 2:
		return bytes.Join(slices.Delete(slices.Clone(lines), from, to), nil), fmt.Sprintf("lines %d to %d deleted", from, to)
	case 3:
		return bytes.Join(slices.Concat(lines[:to], lines[from:]), nil), fmt.Sprintf("lines %d to %d twice", from, to)
	case 4:
		return bytes.Join(lines[:from], nil), fmt.Sprintf("cut after line %d", from)
	case 5:
		old := history[random.IntN(len(history))]
		return old, fmt.Sprintf("restored to %d bytes", len(old))
	case 6:
		clear(content[at:min(len(content), at+512)])
		return content, fmt.Sprintf("zeros from %d", at)
	case 7: // written by a clock in another year
		var all []byte
		year := []byte(fmt.Sprintf(`"at":"20%02d`, random.IntN(100)))
		for _, l := range lines {
			if len(l) < 10 {
				continue
			}
			l = journalTime.ReplaceAll(l[8:len(l)-1], year)
			var sum [4]byte
			binary.BigEndian.PutUint32(sum[:], crc32.Checksum(l, crc32.MakeTable(crc32.Castagnoli)))
			all = append(append(hex.AppendEncode(all, sum[:]), l...), '\n')
		}
		return all, "another year"
	default:
		random.Shuffle(to-from, func(i, j int) { lines[from+i], lines[from+j] = lines[from+j], lines[from+i] })
		return bytes.Join(lines, nil), fmt.Sprintf("lines %d to %d shuffled", from, to)
	}
}

// change returns an edited source.
func change(random *rand.Rand, rows []labhealth.ImportOrderBody) []labhealth.ImportOrderBody {
	rows = slices.Clone(rows)
	for range 1 + random.IntN(4) {
		i := random.IntN(len(rows))
		switch random.IntN(8) {
		case 0:
			rows[i].UserID = grace
		case 1:
			rows[i].PatientAddress.City = "Carmel"
		case 2:
			rows[i].PatientDetails.Email = "nonsense"
		case 3:
			rows[i].SampleID = strings.ToUpper(rows[i].SampleID)
		case 4:
			duplicate := rows[i]
			duplicate.SampleID = strings.ToLower(duplicate.SampleID)
			rows = append(rows, duplicate)
		case 5:
			rows = append(rows, record(fmt.Sprintf("s-%d", 100+random.IntN(100))))
		case 6:
			if len(rows) > 1 {
				rows = slices.Delete(rows, i, i+1)
			}
		case 7:
			random.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		}
	}
	return rows
}

// connections counts open connections. Unlike a sync.WaitGroup it may be incremented during wait.
type connections struct {
	mu   sync.Mutex
	n    int
	none chan bool // closed when n becomes 0; nil without a waiter
}

func (c *connections) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n += n; c.n == 0 && c.none != nil {
		close(c.none)
		c.none = nil
	}
}

// wait waits until no connection is open.
func (c *connections) wait() {
	c.mu.Lock()
	if c.n == 0 {
		c.mu.Unlock()
		return
	}
	if c.none == nil {
		c.none = make(chan bool)
	}
	none := c.none
	c.mu.Unlock()
	<-none
}

// TestAttackProcesses is like TestAttack with processes that are killed, and a service on the
// loopback interface:
//
//	go test -run TestAttackProcesses ./bulk                                             2 rounds
//	LABHEALTH_TEST_LONG=1 go test -run TestAttackProcesses ./bulk                       10 rounds
//	LABHEALTH_ATTACK_ROUNDS=100 go test -run TestAttackProcesses -timeout 1h ./bulk     as many
func TestAttackProcesses(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("a killed process looks like a failed one")
	}
	rounds := 2
	if os.Getenv("LABHEALTH_TEST_LONG") != "" {
		rounds = 10
	}
	if n, err := strconv.Atoi(os.Getenv("LABHEALTH_ATTACK_ROUNDS")); err == nil {
		rounds = n
	}
	for range rounds {
		seed := rand.Uint64N(1 << 40)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			attackProcesses(t, seed)
		})
	}
}

// attackedTimeout and attackedSettle are the options of the attacked process.
const attackedTimeout, attackedSettle = 300 * time.Millisecond, 600 * time.Millisecond

// playAttacked runs an import. Its exit status is 0 when the import is finished.
func playAttacked() int {
	offset := clockOffset(rand.Int64N)
	report, err := importHere(bulk.Options{
		Timeout: attackedTimeout, Settle: attackedSettle, RejectionLimit: -1,
		Now: func() time.Time { return time.Now().Round(0).Add(offset) },
	})
	if err != nil || !report.Done() {
		fmt.Fprintln(os.Stderr, errors.Join(err, errors.New("not done")))
		return 1
	}
	return 0
}

// clockOffset returns how far a clock is off: up to two days.
func clockOffset(int64N func(int64) int64) time.Duration {
	return time.Duration(int64N(int64(96*time.Hour))) - 48*time.Hour
}

func attackProcesses(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	s := &attackService{random: rand.New(rand.NewPCG(seed, 2)), settle: attackedSettle, upper: seed%2 == 0}
	var open connections
	server := s.serve(&open)
	defer server.Close()
	dir := t.TempDir()
	journalPath := filepath.Join(dir, "run.journal")
	rows := attackRows(random, 60)
	var log []string
	var history [][]byte
	for n, last := 1, 4+random.IntN(3); n <= last+1; n++ {
		writeLines(t, filepath.Join(dir, "orders.jsonl"), rows)
		s.mu.Lock()
		s.calm = n > last
		s.mu.Unlock()
		killAfter := 10 * time.Minute
		if n <= last {
			killAfter = time.Duration(random.Float64() * float64(attackedSettle))
		}
		outcome := runAttacked(t, dir, server.URL, killAfter)
		content, err := os.ReadFile(journalPath)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		log = append(log, fmt.Sprintf("run %d: %s; %d bytes", n, outcome, len(content)))
		if n > last || len(content) == 0 {
			continue
		}
		history = append(history, content)
		if random.IntN(2) == 0 {
			// Attempts that the journal is going to lose are finished: nobody can find others.
			open.wait()
			s.pending.Wait()
			damaged, description := damage(random, content, history)
			log = append(log, description)
			if err := os.WriteFile(journalPath, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if random.IntN(2) == 0 {
			rows = change(random, rows)
		}
	}
	open.wait()
	s.pending.Wait()
	s.checkUnique(t, strings.Join(log, "\n"))
	t.Logf("%d requests, %d orders, %d lists: %s", s.sent, len(s.orders), s.lists, strings.Join(log, "\n"))
}

// serve starts the service on the loopback interface and counts its open connections.
func (s *attackService) serve(open *connections) *httptest.Server {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		requestBody, err := io.ReadAll(req.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		status, body := s.respond(req, requestBody)
		if status == 0 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.add(1)
		case http.StateClosed, http.StateHijacked:
			open.add(-1)
		}
	}
	server.Start()
	return server
}

// runAttacked starts the attacked process, kills it after a while, and describes its exit.
func runAttacked(t *testing.T, dir, url string, killAfter time.Duration) string {
	t.Helper()
	cmd := role(t, "attacked", "LABHEALTH_URL="+url, "LABHEALTH_API_KEY=sk_test_0123456789")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(killAfter, func() { cmd.Process.Kill() })
	err := cmd.Wait()
	timer.Stop()
	return fmt.Sprintf("%v, %s", err, strings.TrimSpace(stderr.String()))
}
