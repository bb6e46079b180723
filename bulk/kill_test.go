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

// TestKill uses three processes that all run the test binary: the test, a faulty service, and an
// importer that is killed repeatedly.
//
//	go test ./bulk                                            200 records, once
//	LABHEALTH_TEST_LONG=1 go test -run TestKill ./bulk        10,000 records, 3 rounds
//	LABHEALTH_KILL_ROUNDS=50 go test -run TestKill -timeout 2h ./bulk
const roleVariable = "LABHEALTH_BULK_ROLE"

// playRole runs the process of a role and returns its exit status.
func playRole(role string) int {
	switch role {
	case "service":
		return playService()
	case "importer":
		return playImporter()
	case "attacked":
		return playAttacked()
	case "spreadsheet":
		return playSpreadsheet()
	case "stopped":
		return playStopped()
	}
	fmt.Fprintln(os.Stderr, "unknown role")
	return 2
}

const importOperation, listOperation = "POST /v3/order/import", "GET /orders"

// killFault is a fault of an import or a list.
type killFault struct {
	name   string
	weight int
	after  bool // the request is processed first
	times  int  // maximum; 1 if 0
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

// faultScript makes an operation fail at random, with minOK to maxOK successful requests between
// two faults.
type faultScript struct {
	srv          *labhealthtest.Server
	operation    string
	minOK, maxOK int
	totalWeight  int
	stopped      atomic.Bool
}

// next schedules the next fault.
func (m *faultScript) next() {
	if m.stopped.Load() {
		return
	}
	at := rand.IntN(m.totalWeight)
	for _, f := range killFaults {
		if at -= f.weight; at >= 0 {
			continue
		}
		times := 1 + rand.IntN(max(f.times, 1))
		var count atomic.Int64
		fault := func(w http.ResponseWriter, r *http.Request, good []byte) {
			if count.Add(1) == int64(times) {
				m.next()
			}
			// Rejections of the service pass: a truncated one would look like an applied record.
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
		if err := errors.Join(m.srv.FailAfter(m.operation, m.minOK+rand.IntN(m.maxOK-m.minOK), pass), script(m.operation, times, fault)); err != nil {
			panic(err)
		}
		return
	}
}

// pass sends the response as if there were no fault.
func pass(w http.ResponseWriter, r *http.Request, good []byte) {
	status := 200
	if bytes.HasPrefix(good, []byte(`{"detail"`)) {
		status = 400
	}
	labhealthtest.FaultResponse(status, string(good))(w, r, good)
}

// playService runs the service until its input ends. A line of input stops the faults.
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
	imports := faultScript{srv: srv, operation: importOperation, minOK: 1, maxOK: 40, totalWeight: total}
	lists := faultScript{srv: srv, operation: listOperation, minOK: 5, maxOK: 100, totalWeight: total}
	if os.Getenv("LABHEALTH_BULK_FAULTS") != "none" {
		imports.next()
		lists.next()
	}
	in := bufio.NewScanner(os.Stdin)
	in.Scan()
	imports.stopped.Store(true)
	lists.stopped.Store(true)
	srv.ClearFaults()
	fmt.Println("cleared")
	in.Scan()
	return 0
}

type killService struct {
	URL, Key       string
	Users          []uuid.UUID
	Test, Inactive uuid.UUID
}

// importHere runs an import in the working directory, from orders.jsonl with run.journal, into the
// service of the environment.
func importHere(opts bulk.Options) (*bulk.Report, error) {
	client, err := labhealth.NewClient(os.Getenv("LABHEALTH_API_KEY"), labhealth.WithBaseURL(os.Getenv("LABHEALTH_URL")),
		labhealth.WithRetry(labhealth.RetryPolicy{ReadTimeout: 2 * time.Second}))
	if err != nil {
		return nil, err
	}
	in, err := os.Open("orders.jsonl")
	if err != nil {
		return nil, err
	}
	journal, err := bulk.OpenFile("run.journal")
	if err != nil {
		return nil, err
	}
	opts.ListByUser = rand.IntN(2) == 0
	return bulk.Run(context.Background(), client, bulk.JSONLines(in), journal, opts)
}

// playImporter runs an import. Its exit status is 0 when the import is finished, and 3 when another
// run has to resume it.
func playImporter() int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	rejections, err := os.OpenFile("rejections.jsonl", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fail(err)
	}
	report, err := importHere(bulk.Options{
		Timeout: 500 * time.Millisecond, Settle: 700 * time.Millisecond, Rejections: rejections, Target: os.Getenv("LABHEALTH_URL"),
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
	t.Parallel()
	if testing.Short() {
		t.Skip("takes long")
	}
	if runtime.GOOS == "windows" {
		t.Skip("a killed process looks like a failed one")
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

// role returns the command that runs a role.
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

// startService starts the service in a process that ends with the test. clearFaults stops its
// faults.
func startService(t *testing.T, env ...string) (at *killService, clearFaults func()) {
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
	if line, err := lines.ReadBytes('\n'); err != nil || json.Unmarshal(line, &at) != nil {
		t.Fatal(err)
	}
	return at, func() {
		t.Helper()
		if _, err := io.WriteString(stdin, "\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := lines.ReadString('\n'); err != nil || line != "cleared\n" {
			t.Fatal(line, err)
		}
	}
}

func killRound(t *testing.T, n int) {
	start := time.Now()
	dir := t.TempDir()
	at, clearFaults := startService(t)
	want := writeOrders(t, filepath.Join(dir, "orders.jsonl"), n, at)
	report, kills, unfinished := runAndKill(t, dir, n, at)
	took := time.Since(start)

	clearFaults()
	orders, count := listOrders(t, at)
	if diff := cmp.Diff(want.orders, orders); diff != "" || count != n {
		t.Errorf("%d orders of %d; sample IDs and users (-want +got):\n%s", count, n, diff)
	}
	if diff := cmp.Diff(want.rejected, readOutcomes(t, filepath.Join(dir, "rejections.jsonl"))); diff != "" {
		t.Errorf("rejections (-want +got):\n%s", diff)
	}
	checkCounts(t, report, bulk.Report{
		Records: int64(n) + 75, Applied: int64(n), Rejected: 40, Invalid: 30, Duplicates: 5,
		Before: report.Before, Found: report.Found, Sent: report.Sent,
	})

	steps := map[bulk.Step]int{}
	for _, e := range entries(t, open(t, filepath.Join(dir, "run.journal"))) {
		steps[e.Step]++
	}
	t.Logf("%d records in %.1f s: killed %d times, %d runs unfinished; journal: %v", n, took.Seconds(), kills, unfinished, steps)
}

// runAndKill starts the importer and kills it until it has been killed a random number of times,
// and returns the report of the run that finished the import.
func runAndKill(t *testing.T, dir string, n int, at *killService) (report *bulk.Report, kills, unfinished int) {
	t.Helper()
	for plan := 3 + n/1000 + rand.IntN(4+n/1000); ; {
		cmd := role(t, "importer", "LABHEALTH_URL="+at.URL, "LABHEALTH_API_KEY="+at.Key)
		cmd.Dir = dir
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var timer *time.Timer
		if kills < plan {
			// Mostly early, because each start has its own dangers.
			longest := time.Duration(100+n/4) * time.Millisecond
			timer = time.AfterFunc(time.Duration(rand.Float64()*rand.Float64()*float64(longest)), func() { cmd.Process.Kill() })
		}
		err := cmd.Wait()
		if timer != nil {
			timer.Stop()
		}
		if wasKilled(err) {
			kills++
			continue
		}
		if cmd.ProcessState.ExitCode() == 3 && unfinished < 30 {
			unfinished++
			continue
		}
		if err != nil {
			t.Fatalf("importer: %v\n%s%s", err, &stderr, &stdout)
		}
		report = new(bulk.Report)
		if err := json.Unmarshal(stdout.Bytes(), report); err != nil {
			t.Fatal(err)
		}
		if kills >= plan || report.Before == int64(n) {
			return report, kills, unfinished
		}
	}
}

// wasKilled reports whether a process was ended by a signal.
func wasKilled(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}

// listOrders returns the users of all orders by sample ID, and the number of orders.
func listOrders(t *testing.T, at *killService) (users map[string]uuid.UUID, count int) {
	t.Helper()
	client, err := labhealth.NewClient(at.Key, labhealth.WithBaseURL(at.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	users = map[string]uuid.UUID{}
	for o, err := range client.Orders.All(t.Context(), labhealth.ListOrdersParams{Size: 100}) {
		if err != nil {
			t.Fatal(err)
		}
		count++
		if o.SampleID == nil {
			t.Fatal("an order without a sample ID")
		}
		users[*o.SampleID] = o.UserID
	}
	return users, count
}

// readOutcomes returns the outcomes in a file of rejections by sample ID.
func readOutcomes(t *testing.T, path string) map[string]string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]string{}
	for line := range strings.Lines(string(content)) {
		var r bulk.Rejection
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		outcomes[r.SampleID] += r.Outcome + " "
	}
	return outcomes
}

type killWant struct {
	orders   map[string]uuid.UUID
	rejected map[string]string
}

// writeOrders writes n records that the service accepts, 40 that it rejects, 20 that are invalid, 5
// duplicates, and 5 pairs of different records with one sample ID, in random order.
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
		want.rejected[body.SampleID] = "rejected "
		body = add("INACTIVE", i)
		body.OrderSet.LabTestIDs = []uuid.UUID{at.Inactive}
		want.rejected[body.SampleID] = "rejected "
		body = add("INVALID", i)
		body.PatientDetails.Email = "nonsense"
		want.rejected[body.SampleID] = "invalid "
	}
	for i := range 5 {
		add("PAIR", i).PatientDetails.FirstName = "Grace"
		body := add("PAIR", i)
		want.rejected[body.SampleID] = "conflict conflict "
	}
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	writeLines(t, path, list)
	return want
}

// writeLines writes records as a file of JSON Lines.
func writeLines(t *testing.T, path string, list []labhealth.ImportOrderBody) {
	t.Helper()
	var lines bytes.Buffer
	for _, body := range list {
		if err := json.NewEncoder(&lines).Encode(body); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, lines.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
