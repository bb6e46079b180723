//go:build unix

package bulk_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
)

// slowService creates orders some time after it has received their requests, even if the sender is
// gone, and accepts duplicate sample IDs.
type slowService struct {
	mu      sync.Mutex
	orders  []string // as JSON
	count   map[string]int
	pending sync.WaitGroup
	slowest time.Duration
}

func (s *slowService) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if req.Method == http.MethodGet {
		s.mu.Lock()
		defer s.mu.Unlock()
		page, _ := strconv.Atoi(req.URL.Query().Get("page"))
		from, to := min(100*(page-1), len(s.orders)), min(100*page, len(s.orders))
		fmt.Fprintf(w, `{"orders":[%s],"total":%d,"page":%d,"size":100}`, strings.Join(s.orders[from:to], ","), len(s.orders), page)
		return
	}
	var body labhealth.ImportOrderBody
	content, err := io.ReadAll(req.Body)
	if err != nil || json.Unmarshal(content, &body) != nil {
		return
	}
	created := make(chan bool)
	delay := s.slowest
	if rand.IntN(4) > 0 {
		delay = time.Duration(rand.Int64N(int64(30 * time.Millisecond)))
	}
	s.pending.Add(1)
	time.AfterFunc(delay, func() {
		defer s.pending.Done()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.orders = append(s.orders, fmt.Sprintf(`{"id":"%s","user_id":"%s","sample_id":%q}`, uuid.New(), body.UserID, body.SampleID))
		s.count[body.SampleID]++
		close(created)
	})
	select {
	case <-created:
		io.WriteString(w, `{"order":{"id":"00000000-0000-4000-8000-000000000001"},"status":"success","message":""}`)
	case <-req.Context().Done():
	}
}

// stoppedSettle is longer than the slowest order of the service.
const stoppedTimeout, stoppedSettle, slowestOrder = 300 * time.Millisecond, 4 * time.Second, 2500 * time.Millisecond

// playStopped runs an import. Its exit status is 0 when the import is finished.
func playStopped() int {
	bulk.ShortenLeases(time.Second, 100*time.Millisecond)
	report, err := importHere(bulk.Options{Timeout: stoppedTimeout, Settle: stoppedSettle, RejectionLimit: -1})
	if err != nil || !report.Done() {
		fmt.Fprintln(os.Stderr, errors.Join(err, errors.New("not done")))
		return 1
	}
	fmt.Println(report)
	return 0
}

// TestStoppedProcess kills imports into a slow service. Before that it stops some of them for up to
// longer than Settle, so that they continue when their attempts seem to have ended long ago.
//
//	go test -run TestStoppedProcess ./bulk                             2 rounds
//	LABHEALTH_TEST_LONG=1 go test -run TestStoppedProcess ./bulk       2 rounds, longer ones
//	LABHEALTH_STOP_ROUNDS=12 go test -run TestStoppedProcess ./bulk    as many
func TestStoppedProcess(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes long")
	}
	rounds, kills := 2, 1
	if os.Getenv("LABHEALTH_TEST_LONG") != "" {
		kills = 4
	}
	if n, err := strconv.Atoi(os.Getenv("LABHEALTH_STOP_ROUNDS")); err == nil {
		rounds, kills = n, 6
	}
	for round := range rounds {
		t.Run(fmt.Sprint("round ", round+1), func(t *testing.T) {
			t.Parallel()
			stopRound(t, kills)
		})
	}
}

func stopRound(t *testing.T, kills int) {
	s := &slowService{count: map[string]int{}, slowest: slowestOrder}
	server := httptest.NewServer(s)
	defer server.Close()
	dir := t.TempDir()
	const n = 100
	writeLines(t, filepath.Join(dir, "orders.jsonl"), numbered(n))
	between := func(longest time.Duration) time.Duration { return time.Duration(rand.Int64N(int64(longest))) }
	var log []string
	for killed := 0; ; killed++ {
		cmd := role(t, "stopped", "LABHEALTH_URL="+server.URL, "LABHEALTH_API_KEY=sk_test_0123456789")
		cmd.Dir = dir
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if killed >= kills {
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v: %s", err, &out)
			}
			log = append(log, strings.TrimSpace(out.String()))
			break
		}
		time.Sleep(50*time.Millisecond + between(300*time.Millisecond))
		stopped, until := time.Duration(0), time.Duration(0)
		if killed%2 == 0 {
			stopped, until = between(2*stoppedSettle), between(20*time.Millisecond)
			cmd.Process.Signal(syscall.SIGSTOP)
			time.Sleep(stopped)
			cmd.Process.Signal(syscall.SIGCONT)
			time.Sleep(until)
		}
		cmd.Process.Kill()
		cmd.Wait()
		after := between(stoppedSettle)
		log = append(log, fmt.Sprintf("stopped for %v, killed %v later, resumed after %v", stopped, until, after))
		time.Sleep(after)
	}
	s.pending.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, body := range numbered(n) {
		if s.count[body.SampleID] != 1 {
			t.Errorf("%d orders for %s", s.count[body.SampleID], body.SampleID)
		}
	}
	t.Log(strings.Join(log, "\n"))
}

// A device or a pipe as a journal would lose every entry, and opening it must not change it.
func TestJournalIsRegularFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := errors.Join(syscall.Mkfifo(path, 0o644), os.Chmod(path, 0o644)); err != nil {
		t.Fatal(err)
	}
	j, err := bulk.OpenFile(path)
	if err == nil {
		j.Close()
	}
	if want := "open " + path + ": a journal must be a regular file"; fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Error("OpenFile changed the mode", err)
	}
}
