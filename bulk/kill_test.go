package bulk_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// The kill test plays three roles in processes of their own, all of them the test's binary: this test, a service that does not
// fail to fail, and an importer that is killed again and again.
//
//	go test ./bulk                                            200 records, once
//	LABHEALTH_TEST_LONG=1 go test -run TestKill ./bulk        10,000 records, 3 rounds
//	LABHEALTH_KILL_ROUNDS=50 go test -run TestKill -timeout 2h ./bulk
const roleVariable = "LABHEALTH_BULK_ROLE"

func playRole(role string) int {
	switch role {
	case "service":
		return playService()
	case "importer":
		return playImporter()
	case "attacked":
		return playAttacked()
	}
	fmt.Fprintln(os.Stderr, "unknown role")
	return 2
}

const importOperation, listOperation = "POST /v3/order/import", "GET /orders"

// Faults that strike an import or a list. After those that are carried out, the client cannot know that, or is told in half an
// answer.
type killFault struct {
	name   string
	weight int
	after  bool
	times  int // at most, at random; 1 if 0
	fault  labhealthtest.Fault
}

var killFaults = []killFault{
	{"closed before", 10, false, 0, labhealthtest.FaultClosed},
	{"closed after", 20, true, 0, labhealthtest.FaultClosed},
	{"reset before", 10, false, 0, labhealthtest.FaultReset},
	{"reset after", 20, true, 0, labhealthtest.FaultReset},
	{"garbage after", 10, true, 0, labhealthtest.FaultGarbage},
	{"half a header after", 10, true, 0, labhealthtest.FaultHalfHeader},
	{"half a body after", 20, true, 0, labhealthtest.FaultHalfBody},
	{"500 before", 10, false, 3, labhealthtest.FaultResponse(500, "Internal Server Error", "Content-Type", "text/plain")},
	{"500 after", 10, true, 3, labhealthtest.FaultResponse(500, "Internal Server Error", "Content-Type", "text/plain")},
	{"502 after", 10, true, 3, labhealthtest.FaultResponse(502, "<html>bad gateway</html>", "Content-Type", "text/html")},
	{"504 after", 10, true, 3, labhealthtest.FaultResponse(504, "")},
	{"a proxy's page after", 10, true, 0, labhealthtest.FaultResponse(200, "<html>hello</html>", "Content-Type", "text/html")},
	{"empty after", 10, true, 0, labhealthtest.FaultResponse(200, "")},
	{"no order id after", 10, true, 0, labhealthtest.FaultResponse(200, `{"order":{},"status":"","message":""}`)},
	{"408 before", 10, false, 0, labhealthtest.FaultResponse(408, "")},
	{"429 before", 8, false, 4, labhealthtest.FaultResponse(429, `{"detail":"slow down"}`)},
	{"429 with a date before", 1, false, 6, func(w http.ResponseWriter, r *http.Request, _ []byte) {
		w.Header().Set("Retry-After", time.Now().Add(time.Second).UTC().Format(http.TimeFormat))
		w.WriteHeader(429)
	}},
	{"429 with seconds before", 1, false, 6, labhealthtest.FaultResponse(429, "", "Retry-After", "1")},
	{"503 with seconds before", 1, false, 4, labhealthtest.FaultResponse(503, "", "Retry-After", "1")},
	{"silence before", 1, false, 0, labhealthtest.FaultSilence},
	{"silence after", 2, true, 0, labhealthtest.FaultSilence},
	{"slow body after", 2, true, 0, labhealthtest.FaultSlowBody},
}

// misfortune scripts faults for an operation, without end: each waits until a few requests were answered well. least and most say
// how many.
type misfortune struct {
	srv         *labhealthtest.Server
	operation   string
	least, most int
	total       int
	ended       atomic.Bool
}

func (m *misfortune) next() {
	if m.ended.Load() {
		return
	}
	at := rand.IntN(m.total)
	for _, f := range killFaults {
		if at -= f.weight; at >= 0 {
			continue
		}
		times := 1 + rand.IntN(max(f.times, 1))
		var struck atomic.Int64
		fault := func(w http.ResponseWriter, r *http.Request, good []byte) {
			if struck.Add(1) == int64(times) {
				m.next()
			}
			// The service's own refusals come through: a half one would say that a record is applied which is not.
			if bytes.HasPrefix(good, []byte(`{"detail"`)) {
				pass(w, r, good)
			} else {
				f.fault(w, r, good)
			}
		}
		script := m.srv.FailBefore
		if f.after {
			script = m.srv.FailAfter
		}
		if err := errors.Join(m.srv.FailAfter(m.operation, m.least+rand.IntN(m.most-m.least), pass), script(m.operation, times, fault)); err != nil {
			panic(err)
		}
		return
	}
}

// pass answers as if there were no fault.
func pass(w http.ResponseWriter, r *http.Request, good []byte) {
	status := 200
	if bytes.HasPrefix(good, []byte(`{"detail"`)) {
		status = 400
	}
	labhealthtest.FaultResponse(status, string(good))(w, r, good)
}

// playService runs the service until its input ends. A line of input ends the faults.
func playService() int {
	srv, err := labhealthtest.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer srv.Close()
	users := srv.AddUsers(50)
	hello := killService{URL: srv.URL, Key: srv.APIKey, Users: users, Test: srv.LabTests.WalkIn, Inactive: srv.LabTests.Inactive}
	if err := json.NewEncoder(os.Stdout).Encode(hello); err != nil {
		return 1
	}
	total := 0
	for _, f := range killFaults {
		total += f.weight
	}
	imports := misfortune{srv: srv, operation: importOperation, least: 1, most: 40, total: total}
	lists := misfortune{srv: srv, operation: listOperation, least: 5, most: 100, total: total}
	if os.Getenv("LABHEALTH_BULK_FAULTS") != "none" {
		imports.next()
		lists.next()
	}
	in := bufio.NewScanner(os.Stdin)
	in.Scan()
	imports.ended.Store(true)
	lists.ended.Store(true)
	srv.ClearFaults()
	fmt.Println("mended")
	in.Scan()
	return 0
}

type killService struct {
	URL, Key       string
	Users          []uuid.UUID
	Test, Inactive uuid.UUID
}

// playImporter runs an import in the folder it is started in. Its exit status is 0 when nothing is left, 3 when another run has to
// go on.
func playImporter() int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	client, err := labhealth.NewClient(os.Getenv("LABHEALTH_API_KEY"), labhealth.WithBaseURL(os.Getenv("LABHEALTH_BASE_URL")),
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
	refusals, err := os.OpenFile("refusals.jsonl", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fail(err)
	}
	report, err := bulk.Run(context.Background(), client, bulk.JSONLines(in), journal, bulk.Options{
		Timeout: 500 * time.Millisecond, Settle: 700 * time.Millisecond, Refusals: refusals,
		ListByUser: rand.IntN(2) == 0, Target: os.Getenv("LABHEALTH_BASE_URL"),
	})
	if report == nil {
		return fail(err)
	}
	json.NewEncoder(os.Stdout).Encode(report)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || !report.Done() {
		return 3
	}
	return 0
}

func TestKill(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process that was killed looks like one that failed there")
	}
	records, rounds := 200, 1
	if os.Getenv("LABHEALTH_TEST_LONG") != "" {
		records, rounds = 10_000, 3
	}
	if n, err := strconv.Atoi(os.Getenv("LABHEALTH_KILL_ROUNDS")); err == nil {
		records, rounds = 10_000, n
	}
	for round := range rounds {
		if !t.Run(fmt.Sprintf("round %d", round+1), func(t *testing.T) { killRound(t, records) }) {
			return
		}
	}
}

func role(t *testing.T, name string, env ...string) *exec.Cmd {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary)
	cmd.Env = append(append(os.Environ(), roleVariable+"="+name), env...)
	return cmd
}

// startService starts the service in a process that ends with the test. mend ends its faults.
func startService(t *testing.T, env ...string) (at *killService, mend func()) {
	t.Helper()
	service := role(t, "service", env...)
	service.Stderr = os.Stderr
	stdin, err := service.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := service.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		service.Wait()
	})
	lines := bufio.NewReader(stdout)
	if text, err := lines.ReadBytes('\n'); err != nil || json.Unmarshal(text, &at) != nil {
		t.Fatal(err)
	}
	return at, func() {
		t.Helper()
		if _, err := io.WriteString(stdin, "\n"); err != nil {
			t.Fatal(err)
		}
		if text, err := lines.ReadString('\n'); err != nil || text != "mended\n" {
			t.Fatal(text, err)
		}
	}
}

func killRound(t *testing.T, n int) {
	began := time.Now()
	dir := t.TempDir()
	at, mend := startService(t)
	want := writeOrders(t, filepath.Join(dir, "orders.jsonl"), n, at)

	kills, unfinished := 0, 0
	var report bulk.Report
	for plan := 3 + n/1000 + rand.IntN(4+n/1000); ; {
		cmd := role(t, "importer", "LABHEALTH_BASE_URL="+at.URL, "LABHEALTH_API_KEY="+at.Key)
		cmd.Dir = dir
		var out, said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var timer *time.Timer
		if kills < plan {
			// Most of the time early: each start has its own dangers.
			most := time.Duration(100+n/4) * time.Millisecond
			timer = time.AfterFunc(time.Duration(rand.Float64()*rand.Float64()*float64(most)), func() { cmd.Process.Kill() })
		}
		err := cmd.Wait()
		if timer != nil {
			timer.Stop()
		}
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
				kills++
				continue
			}
			if exit.ExitCode() == 3 && unfinished < 30 {
				unfinished++
				continue
			}
		}
		if err != nil {
			t.Fatalf("importer: %v\n%s%s", err, &said, &out)
		}
		if err := json.Unmarshal(out.Bytes(), &report); err != nil {
			t.Fatal(err)
		}
		if kills >= plan || report.Before == int64(n) {
			break
		}
	}
	took := time.Since(began)

	mend()
	client, err := labhealth.NewClient(at.Key, labhealth.WithBaseURL(at.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	orders := map[string]uuid.UUID{}
	count := 0
	for o, err := range client.Orders.All(t.Context(), labhealth.ListOrdersParams{Size: 100}) {
		if err != nil {
			t.Fatal(err)
		}
		count++
		if o.SampleID == nil {
			t.Fatal("an order without a sample id")
		}
		orders[*o.SampleID] = o.UserID
	}
	if diff := cmp.Diff(want.orders, orders); diff != "" || count != n {
		t.Errorf("%d orders of %d; sample ids and users (-want +got):\n%s", count, n, diff)
	}

	text, err := os.ReadFile(filepath.Join(dir, "refusals.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string]string{}
	for line := range strings.Lines(string(text)) {
		var r bulk.Refusal
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		refused[r.SampleID] += r.Outcome + " "
	}
	if diff := cmp.Diff(want.refused, refused); diff != "" {
		t.Errorf("refusals (-want +got):\n%s", diff)
	}
	counts(t, &report, bulk.Report{
		Records: int64(n) + 75, Applied: int64(n), Refused: 40, Invalid: 30, Duplicates: 5,
		Before: report.Before, Found: report.Found, Sent: report.Sent,
	})

	steps := map[bulk.Step]int{}
	journal, err := bulk.OpenFile(filepath.Join(dir, "run.journal"))
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	for e, err := range journal.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		steps[e.Step]++
	}
	t.Logf("%d records in %.1f s: killed %d times, %d runs ended without being done; journal: %v", n, took.Seconds(), kills, unfinished, steps)
}

type killWant struct {
	orders  map[string]uuid.UUID
	refused map[string]string
}

// writeOrders writes n records that the service takes, 40 that it refuses, 20 that are invalid, 5 that are there twice, and 5 pairs
// of different records with one sample id, in random order.
func writeOrders(t *testing.T, path string, n int, at *killService) killWant {
	t.Helper()
	want := killWant{map[string]uuid.UUID{}, map[string]string{}}
	var list []labhealth.ImportOrderBody
	add := func(kind string, i int) *labhealth.ImportOrderBody {
		body := record(fmt.Sprintf("%s-%05d", kind, i))
		body.UserID = at.Users[rand.IntN(len(at.Users))]
		body.OrderSet.LabTestIDs = []uuid.UUID{at.Test}
		list = append(list, body)
		return &list[len(list)-1]
	}
	for i := range n {
		body := add("GOOD", i)
		want.orders[body.SampleID] = body.UserID
		if i < 5 {
			list = append(list, *body)
		}
	}
	for i := range 20 {
		body := add("STRANGER", i)
		body.UserID = uuid.New()
		want.refused[body.SampleID] = "refused "
		body = add("INACTIVE", i)
		body.OrderSet.LabTestIDs = []uuid.UUID{at.Inactive}
		want.refused[body.SampleID] = "refused "
		body = add("INVALID", i)
		body.PatientDetails.Email = "nonsense"
		want.refused[body.SampleID] = "invalid "
	}
	for i := range 5 {
		add("PAIR", i).PatientDetails.FirstName = "Grace"
		body := add("PAIR", i)
		want.refused[body.SampleID] = "conflict conflict "
	}
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	var text bytes.Buffer
	for _, body := range list {
		if err := json.NewEncoder(&text).Encode(body); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return want
}
