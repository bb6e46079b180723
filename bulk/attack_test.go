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
)

// The attack tries to get two orders for one sample, or none for one that is reported as applied:
// it kills runs, damages and sets back their journals, sets their clocks and changes their sources,
// with a service that loses, delays and repeats at random and, in every second round, takes a
// sample as often as it comes.
//
//	go test -run TestAttack ./bulk                                                     200 rounds
//	LABHEALTH_TEST_LONG=1 go test -run TestAttack ./bulk                               1,000 rounds
//	LABHEALTH_ATTACK_ROUNDS=20000 go test -run 'TestAttack$' -timeout 1h ./bulk        as many
//	LABHEALTH_ATTACK_SEED=7 go test -run TestAttack -v ./bulk                          one round
func TestAttack(t *testing.T) {
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

// attackService makes orders for the run of the moment; those before it are dead, and what they
// still send has no effect.
type attackService struct {
	mu      sync.Mutex
	random  *rand.Rand
	alive   int  // the number of the run that lives
	calm    bool // no faults any more
	unique  bool // a sample that has an order is rejected
	upper   bool // lists show sample ids in upper case
	orders  []attackOrder
	settle  time.Duration
	sent    int
	pending sync.WaitGroup // orders that are still to come into being
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
	var text []byte
	if req.Body != nil {
		text, _ = io.ReadAll(req.Body)
		req.Body.Close()
	}
	c.mu.Lock()
	dead := c.alive != c.run
	c.mu.Unlock()
	if dead {
		return nil, errors.New("killed")
	}
	sendOnce(req)
	status, body := c.respond(req, text)
	if req.Context().Err() != nil {
		return nil, req.Context().Err()
	}
	if status == 0 {
		return nil, errors.New("connection lost")
	}
	return answer(req, status, body, ""), nil
}

// respond decides what becomes of a request, and returns its response when that is due; the status
// is 0 if it gets none.
func (s *attackService) respond(req *http.Request, text []byte) (status int, body string) {
	s.mu.Lock()
	effect, delay, fate := false, time.Duration(s.random.Int64N(int64(s.settle)/150)), s.random.IntN(20)
	if s.calm {
		fate = 19
	}
	switch {
	case req.Method == http.MethodGet && fate < 2:
		s.lists++
		status = 503
	case req.Method == http.MethodGet:
		s.lists++
		status, body = 200, s.page(req)
	default:
		s.sent++
		status, body, effect, delay = s.order(text, fate, delay)
	}
	s.mu.Unlock()
	if effect {
		s.late(text, delay) // even if the sender is killed meanwhile
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

// late makes an order after a while.
func (s *attackService) late(text []byte, delay time.Duration) {
	var body labhealth.ImportOrderBody
	if json.Unmarshal(text, &body) != nil {
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

func (s *attackService) count(sampleID string) (n int) {
	for _, o := range s.orders {
		if strings.EqualFold(o.sample, sampleID) {
			n++
		}
	}
	return n
}

// judge fails the test if a sample has two orders.
func (s *attackService) judge(t *testing.T, log string) {
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

// order decides about an import: its response, and whether and when it takes effect.
func (s *attackService) order(text []byte, fate int, delay time.Duration) (status int, body string, effect bool, late time.Duration) {
	var record labhealth.ImportOrderBody
	if json.Unmarshal(text, &record) != nil {
		return 422, `{"detail":"no"}`, false, delay
	}
	const made = `{"order":{"id":"00000000-0000-4000-8000-000000000001"},"status":"success","message":""}`
	switch {
	case fate == 0:
		return 0, "", false, delay
	case fate == 1:
		return 429, `{"detail":"slow"}`, false, delay
	case fate == 2:
		return 503, `{"detail":"down"}`, false, delay
	case s.unique && s.count(record.SampleID) > 0, strings.HasPrefix(record.SampleID, "R"):
		return 400, `{"detail":"no"}`, false, delay
	case fate == 3:
		return 0, "", true, delay
	case fate == 4:
		return 502, "", true, time.Duration(s.random.Int64N(int64(s.settle / 2)))
	case fate == 5:
		return 200, `{"order":{"id":"`, true, delay
	case fate == 6:
		return 200, "<html>", true, delay
	}
	return 200, made, true, delay
}

// page shows up to three orders, newest first.
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
	journal := func(n int) string { return filepath.Join(dir, fmt.Sprintf("%d.journal", n)) }
	var history [][]byte // of the journal
	var report *bulk.Report
	var err error
	var log []string
	last := 1 + random.IntN(5)
	for n := 1; n <= last+1; n++ {
		s.mu.Lock()
		s.alive, s.calm = n, n > last
		s.mu.Unlock()
		j, openErr := bulk.OpenFile(journal(n))
		if openErr != nil {
			total.Unreadable++
			log = append(log, openErr.Error())
			break
		}
		clock := time.Duration(random.Int64N(int64(96*time.Hour))) - 48*time.Hour
		opts := bulk.Options{
			Timeout: attackTimeout, Settle: attackSettle, Concurrency: 1 + random.IntN(6), ListByUser: random.IntN(2) == 0,
			RetryRefused: random.IntN(3) == 0, RejectionLimit: -1, Outage: time.Hour,
			Now: func() time.Time { return time.Now().Round(0).Add(clock) },
		}
		client, clientErr := labhealth.NewClient("sk_test_0123456789", labhealth.WithBaseURL("https://api.example.com"),
			labhealth.WithHTTPClient(&http.Client{Transport: attackClient{s, n}}))
		if clientErr != nil {
			t.Fatal(clientErr)
		}
		ctx, cancel := context.WithCancel(t.Context())
		source := from(slices.Clone(rows))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			report, err = bulk.Run(ctx, client, source, j, opts)
		}()
		total.Runs++
		if n <= last && random.IntN(4) > 0 {
			select {
			case <-ended:
			case <-time.After(time.Duration(random.Float64() * random.Float64() * float64(time.Minute))):
				total.Killed++
			}
		} else {
			<-ended
		}
		s.mu.Lock()
		s.alive = 0
		s.mu.Unlock()
		text, readErr := os.ReadFile(journal(n))
		if readErr != nil {
			t.Fatal(readErr)
		}
		cancel()
		<-ended
		j.Close()
		log = append(log, fmt.Sprintf("run %d: %v, %v; %d bytes", n, report, err, len(text)))
		if n > last {
			if err != nil {
				total.Failed++
			}
			break
		}
		history = append(history, text)
		if random.IntN(2) == 0 {
			// Attempts that the journal is going to lose are over: nobody can find those that are
			// not.
			s.pending.Wait()
			var what string
			if text, what = damage(random, text, history); what != "" {
				total.Damaged++
				log = append(log, what)
			}
		}
		if err := os.WriteFile(journal(n+1), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if random.IntN(2) == 0 {
			rows = change(random, rows)
		}
	}
	s.pending.Wait()
	total.Sent += s.sent
	total.Lists += s.lists
	s.judge(t, fmt.Sprintf("seed %d: %s", seed, strings.Join(log, "\n")))
	if err != nil || report == nil || !report.Done() || s.alive != 0 || len(history) != last {
		return
	}
	total.Done++
	ids := map[string]int{}
	for _, body := range rows {
		ids[strings.ToLower(body.SampleID)]++
	}
	for _, body := range rows {
		// Of rows with one sample id perhaps none is sent.
		if ids[strings.ToLower(body.SampleID)] == 1 && body.Validate() == nil && !strings.HasPrefix(body.SampleID, "R") && s.count(body.SampleID) != 1 &&
			report.Refused == 0 {
			t.Errorf("seed %d: no order for %s, %v:\n%s", seed, body.SampleID, report, strings.Join(log, "\n"))
			return
		}
	}
}

// attackRows returns records with sample ids in both cases, some of which the service rejects.
func attackRows(random *rand.Rand, n int) (rows []labhealth.ImportOrderBody) {
	for i := range n {
		rows = append(rows, record(fmt.Sprintf("%c-%d", "sSR"[random.IntN(11)/5], i)))
	}
	return rows
}

var journalTime = regexp.MustCompile(`"at":"20\d\d`)

// damage returns what became of a journal, and what was done to it.
func damage(random *rand.Rand, text []byte, history [][]byte) ([]byte, string) {
	if len(text) == 0 {
		return text, ""
	}
	text = bytes.Clone(text)
	lines := slices.Collect(bytes.Lines(text))
	from, to := random.IntN(len(lines)), random.IntN(len(lines)+1)
	from, to = min(from, to), max(from, to)
	at := random.IntN(len(text))
	switch random.IntN(9) {
	case 0:
		return text[:at], fmt.Sprintf("cut at %d", at)
	case 1:
		text[at] ^= 1 << random.IntN(8)
		return text, fmt.Sprintf("byte %d changed", at)
	case 2:
		return bytes.Join(slices.Delete(slices.Clone(lines), from, to), nil), fmt.Sprintf("lines %d to %d deleted", from, to)
	case 3:
		return bytes.Join(slices.Concat(lines[:to], lines[from:]), nil), fmt.Sprintf("lines %d to %d twice", from, to)
	case 4:
		return bytes.Join(lines[:from], nil), fmt.Sprintf("cut after line %d", from)
	case 5:
		old := history[random.IntN(len(history))]
		return old, fmt.Sprintf("set back to %d bytes", len(old))
	case 6:
		clear(text[at:min(len(text), at+512)])
		return text, fmt.Sprintf("zeros from %d", at)
	case 7: // whoever wrote it had another year
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

// change returns a source that somebody has edited.
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
			again := rows[i]
			again.SampleID = strings.ToLower(again.SampleID)
			rows = append(rows, again)
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

// connections counts the open ones. Unlike a sync.WaitGroup it may be waited for while one is made.
type connections struct {
	mu   sync.Mutex
	n    int
	none chan bool // closed when n becomes 0; nil if nobody waits
}

func (c *connections) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n += n; c.n == 0 && c.none != nil {
		close(c.none)
		c.none = nil
	}
}

// wait waits until there is none.
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

// TestAttackProcesses is the attack with processes that are killed by the system, and a service on
// the loopback interface:
//
//	go test -run TestAttackProcesses ./bulk                                             2 rounds
//	LABHEALTH_TEST_LONG=1 go test -run TestAttackProcesses ./bulk                       10 rounds
//	LABHEALTH_ATTACK_ROUNDS=100 go test -run TestAttackProcesses -timeout 1h ./bulk     as many
func TestAttackProcesses(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process that was killed looks like one that failed there")
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

// attackedTimes are the timeout and the settling time of an importer that is attacked.
const attackedTimeout, attackedSettle = 300 * time.Millisecond, 600 * time.Millisecond

// playAttacked runs an import in the folder it is started in. Its exit status is 0 when nothing is
// left.
func playAttacked() int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	client, err := labhealth.NewClient("sk_test_0123456789", labhealth.WithBaseURL(os.Getenv("LABHEALTH_BASE_URL")),
		labhealth.WithRetry(labhealth.RetryPolicy{ReadTimeout: 2 * time.Second}))
	if err != nil {
		return fail(err)
	}
	in, err := os.Open("orders.jsonl")
	if err != nil {
		return fail(err)
	}
	journal, err := bulk.OpenFile("run.journal")
	if err != nil {
		return fail(err)
	}
	clock := time.Duration(rand.Int64N(int64(96*time.Hour))) - 48*time.Hour
	report, err := bulk.Run(context.Background(), client, bulk.JSONLines(in), journal, bulk.Options{
		Timeout: attackedTimeout, Settle: attackedSettle, RejectionLimit: -1, ListByUser: rand.IntN(2) == 0,
		Now: func() time.Time { return time.Now().Round(0).Add(clock) },
	})
	if err != nil || !report.Done() {
		return fail(errors.Join(err, errors.New("not done")))
	}
	return 0
}

func attackProcesses(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	s := &attackService{random: rand.New(rand.NewPCG(seed, 2)), settle: attackedSettle, upper: seed%2 == 0}
	var open connections
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		text, err := io.ReadAll(req.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		status, body := s.respond(req, text)
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
	defer server.Close()
	dir := t.TempDir()
	path := filepath.Join(dir, "run.journal")
	rows := attackRows(random, 60)
	var log []string
	var history [][]byte
	for n, last := 1, 4+random.IntN(3); n <= last+1; n++ {
		var source bytes.Buffer
		for _, body := range rows {
			if err := json.NewEncoder(&source).Encode(body); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "orders.jsonl"), source.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		s.calm = n > last
		s.mu.Unlock()
		cmd := role(t, "attacked", "LABHEALTH_BASE_URL="+server.URL)
		cmd.Dir = dir
		var said bytes.Buffer
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(10*time.Minute, func() {})
		if n <= last {
			timer = time.AfterFunc(time.Duration(random.Float64()*float64(attackedSettle)), func() { cmd.Process.Kill() })
		}
		err := cmd.Wait()
		timer.Stop()
		text, readErr := os.ReadFile(path)
		if readErr != nil && !errors.Is(readErr, fs.ErrNotExist) {
			t.Fatal(readErr)
		}
		log = append(log, fmt.Sprintf("run %d: %v, %s; %d bytes", n, err, strings.TrimSpace(said.String()), len(text)))
		if n > last || len(text) == 0 {
			continue
		}
		history = append(history, text)
		if random.IntN(2) == 0 {
			// Attempts that the journal is going to lose are over: nobody can find those that are
			// not.
			open.wait()
			s.pending.Wait()
			damaged, what := damage(random, text, history)
			log = append(log, what)
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if random.IntN(2) == 0 {
			rows = change(random, rows)
		}
	}
	open.wait()
	s.pending.Wait()
	s.judge(t, strings.Join(log, "\n"))
	t.Logf("%d requests, %d orders, %d lists: %s", s.sent, len(s.orders), s.lists, strings.Join(log, "\n"))
}
