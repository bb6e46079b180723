package powercut_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go/bulk"
	"github.com/labhealth/labhealth-go/integration/powercut/cutfs"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

type bulkRow struct {
	name       string
	model      cutfs.Model
	lies       bool // the disk
	cuts, long int
}

var bulkRows = []bulkRow{
	{"strict", cutfs.Strict, false, 40, 1000},
	{"ext4", cutfs.Ext4, false, 10, 300},
	{"a disk that lies", cutfs.Strict, true, 100, 100},
}

// importsAtOnce is how many imports run at the same time. They mostly wait for Settle.
const importsAtOnce = 4

// An import that is killed and loses its power asks for no order that exists, and its journal opens
// again. On a disk that lies, the same test sees orders that are asked for again.
func TestBulk(t *testing.T) {
	mount(t, cutfs.New(cutfs.Strict)) // or skip
	for _, row := range bulkRows {
		t.Run(strings.ReplaceAll(row.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			total, started, cuts := bulkTally{}, time.Now(), cutsOf(t, row.cuts, row.long)
			for seed := firstSeed(t); total.cuts < cuts && !t.Failed(); seed += importsAtOnce {
				t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
					for _, w := range runImports(t, row, seed) {
						total.add(&w.tally)
					}
				})
				if row.lies && !long && total.again > 0 {
					break // that is enough
				}
			}
			t.Logf("bulk, %s: %s in %.0f s", row.name, total, time.Since(started).Seconds())
			if row.lies && total.again == 0 {
				t.Error("no order is asked for again, although the disk lies: the test detects nothing")
			}
		})
	}
}

// runImports runs imports at the same time, or the only one that is asked for.
func runImports(t *testing.T, row bulkRow, seed uint64) (worlds []*bulkWorld) {
	atOnce := uint64(importsAtOnce)
	if os.Getenv("LABHEALTH_CUT_SEED") != "" {
		atOnce = 1
	}
	var all sync.WaitGroup
	defer all.Wait()
	for i := range atOnce {
		w := newBulkWorld(t, row, seed+i)
		worlds = append(worlds, w)
		all.Go(w.run)
	}
	return worlds
}

// bulkTally counts what has happened.
type bulkTally struct{ imports, cuts, kills, early, outcomes, orders, again, wrong, rejected int }

func (b *bulkTally) add(o *bulkTally) {
	b.imports += o.imports
	b.cuts += o.cuts
	b.kills += o.kills
	b.early += o.early
	b.outcomes += o.outcomes
	b.orders += o.orders
	b.again += o.again
	b.wrong += o.wrong
	b.rejected += o.rejected
}

func (b bulkTally) String() string {
	return fmt.Sprintf("%d imports, %d cuts and %d kills (%d while the directory of a new journal was synced), "+
		"%d outcomes, %d orders, %d asked for again, %d not there once, %d journals rejected",
		b.imports, b.cuts, b.kills, b.early, b.outcomes, b.orders, b.again, b.wrong, b.rejected)
}

// bulkWorld is one import. The service is not cut.
type bulkWorld struct {
	t        *testing.T
	row      bulkRow
	seed     uint64
	r        *rand.Rand
	disk     *cutfs.Disk
	dir      string
	outside  string // a directory on another disk
	orders   int
	boots    int
	tally    bulkTally
	service  *labhealthtest.Server
	front    *httptest.Server
	idle     sync.Cond // signals that connections is 0
	mu       sync.Mutex
	connects map[net.Conn]bool // of the process to the service
	made     map[string]int    // orders by sample ID
}

func newBulkWorld(t *testing.T, row bulkRow, seed uint64) *bulkWorld {
	t.Helper()
	w := &bulkWorld{
		t: t, row: row, seed: seed, r: rand.New(rand.NewPCG(seed, 3)), disk: cutfs.New(row.model), outside: t.TempDir(),
		connects: map[net.Conn]bool{}, made: map[string]int{},
	}
	w.idle.L = &w.mu
	w.disk.Lies = row.lies
	w.dir = mount(t, w.disk)
	w.orders = 60
	if seed%50 == 49 {
		w.orders = 2000 // for cuts after thousands of operations
	}
	service, err := labhealthtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(service.Close)
	w.service = service
	w.startFront()
	w.writeOrders()
	return w
}

// startFront starts the server that the process sends its requests to.
func (w *bulkWorld) startFront() {
	w.front = httptest.NewUnstartedServer(http.HandlerFunc(w.serve))
	w.front.Config.ConnState = func(c net.Conn, state http.ConnState) {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch state {
		case http.StateNew:
			w.connects[c] = true
		case http.StateClosed:
			delete(w.connects, c)
			w.idle.Broadcast()
		}
	}
	w.front.Start()
	w.t.Cleanup(w.front.Close)
}

// serve passes a request on to the service, which processes it also if the process that has sent it
// is killed.
func (w *bulkWorld) serve(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the process was killed before it had sent the request
	}
	resp, err := w.process(r, body)
	if err != nil {
		w.t.Error(err)
		return
	}
	defer resp.Body.Close()
	maps.Copy(rw.Header(), resp.Header)
	rw.WriteHeader(resp.StatusCode)
	io.Copy(rw, resp.Body)
}

// process counts orders: the service must have none of the sample ID of an import.
func (w *bulkWorld) process(r *http.Request, body []byte) (*http.Response, error) {
	passed := r.Clone(context.WithoutCancel(r.Context()))
	passed.Body = io.NopCloser(bytes.NewReader(body))
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.Method != http.MethodPost {
		return w.service.Direct().RoundTrip(passed)
	}
	var order struct {
		SampleID string `json:"sample_id"`
	}
	if err := json.Unmarshal(body, &order); err != nil {
		return nil, err
	}
	if w.made[order.SampleID] > 0 {
		w.tally.again++
		if !w.row.lies {
			w.t.Errorf("seed %d: %s is asked for again\nagain: %s", w.seed, order.SampleID, replay(w.t, w.seed, 1))
		}
	}
	resp, err := w.service.Direct().RoundTrip(passed)
	if err == nil && resp.StatusCode == http.StatusOK {
		w.made[order.SampleID]++
	}
	return resp, err
}

// bulkOrder is an order as JSON, without its sample ID, user and lab test.
const bulkOrder = `{"sample_id":%q,"user_id":%q,"billing_type":"client_bill","collection_method":"walk_in_test","order_set":{"lab_test_ids":[%q]},` +
	`"patient_details":{"first_name":"Ada","last_name":"Example","dob":"1985-12-10","gender":"female","phone_number":"+14155550123","email":"ada@example.com"},` +
	`"patient_address":{"receiver_name":"Ada Example","first_line":"1 Example Street","city":"Monterey","state":"CA","zip":"93940","country":"US"}}` + "\n"

func (w *bulkWorld) writeOrders() {
	user := w.service.AddUser("ada")
	var text strings.Builder
	for n := range w.orders {
		fmt.Fprintf(&text, bulkOrder, sampleID(n), user, w.service.LabTests.WalkIn)
	}
	w.write("orders.jsonl", text.String())
}

func sampleID(n int) string { return fmt.Sprintf("SAMPLE-%05d", n) }

// write writes a file that is not on the disk, and returns its path.
func (w *bulkWorld) write(name, text string) {
	if err := os.WriteFile(filepath.Join(w.outside, name), []byte(text), 0o600); err != nil {
		w.t.Error(err)
	}
}

// boot sets the ID that processes from now on see.
func (w *bulkWorld) boot() {
	w.boots++
	w.write("boot_id", fmt.Sprintf("00000000-0000-4000-8000-%012d\n", w.boots))
}

// faultsPerImport is how often an import is killed or cut before it may finish.
const faultsPerImport = 8

// run imports all orders, over kills and cuts.
func (w *bulkWorld) run() {
	w.boot()
	w.tally.imports, w.tally.orders = 1, w.orders
	killed := false
	for attempt := range 50 {
		kill := attempt < faultsPerImport && !killed && (attempt == 0 || w.r.IntN(2) == 0)
		if w.attempt(attempt, kill, killed) {
			w.checkOrders()
			return
		}
		killed = kill
	}
	w.t.Errorf("seed %d: the import does not finish", w.seed)
}

// attempt starts the process, and reports whether it has finished the import.
func (w *bulkWorld) attempt(attempt int, kill, wasKilled bool) (done bool) {
	w.disk.CutAfter(0)
	var held <-chan struct{}
	span := int64(w.orders) / 2
	switch {
	case attempt >= faultsPerImport:
	case kill && attempt == 0 && w.r.IntN(2) == 0:
		held = w.disk.Hold(1, cutfs.SyncDir) // of the new journal
		w.tally.early++
	case kill && w.r.IntN(3) > 0:
		held = w.disk.Hold(1+w.r.Int64N(8), cutfs.Sync)
	case kill:
		held = w.disk.Hold(1 + w.r.Int64N(span))
	case wasKilled && w.r.IntN(4) > 0:
		w.disk.CutAfter(1 + w.r.Int64N(6)) // while what the killed process wrote may not be synced
	default:
		w.disk.CutAfter(1 + w.r.Int64N(span))
	}
	p, err := start(w.disk, "bulk", dirVariable+"="+w.dir, baseURLVariable+"="+w.front.URL, apiKeyVariable+"="+w.service.APIKey,
		ordersVariable+"="+filepath.Join(w.outside, "orders.jsonl"), bootVariable+"="+filepath.Join(w.outside, "boot_id"))
	if err != nil {
		w.t.Error(err)
		return false
	}
	last := w.lastLine(p, held)
	w.disk.CutAfter(0) // or what follows here is cut
	if !w.disk.IsOn() {
		image := w.disk.Off()
		w.end(p)
		w.tally.cuts++
		w.openJournals(image)
		w.disk.On(image, w.r.Uint64(), cutfs.Any)
		w.boot()
		return false
	}
	w.end(p)
	switch {
	case last == "": // killed
		w.tally.kills++
	case strings.HasPrefix(last, bulkDone):
		return true
	case strings.HasPrefix(last, bulkRejected):
		w.reject(last)
		if err := os.Remove(filepath.Join(w.dir, "run.journal")); err != nil {
			w.t.Error(err)
		}
	case !strings.HasPrefix(last, bulkNotDone):
		w.t.Errorf("seed %d, attempt %d: the process has ended: %q %s", w.seed, attempt, last, &p.stderr)
	}
	return false
}

// journalsPerCut is how many of the journals that a cut can leave behind are opened.
const journalsPerCut = 20

// openJournals opens them: the next process has only one of them.
func (w *bulkWorld) openJournals(image *cutfs.Image) {
	for range journalsPerCut {
		w.disk.On(image, w.r.Uint64(), cutfs.Subset)
		w.tally.outcomes++
		journal, err := bulk.OpenFile(filepath.Join(w.dir, "run.journal"))
		if err != nil {
			w.reject(err.Error())
			continue
		}
		if err := journal.Close(); err != nil {
			w.t.Error(err)
		}
	}
}

func (w *bulkWorld) reject(reason string) {
	w.tally.rejected++
	if !w.row.lies {
		w.t.Errorf("seed %d: a journal is rejected: %s\nagain: %s", w.seed, reason, replay(w.t, w.seed, 1))
	}
}

// lastLine returns the last line of a process that ends, and nothing if it is held. It also returns
// when the power goes.
func (w *bulkWorld) lastLine(p *process, held <-chan struct{}) (last string) {
	gone := w.disk.Gone()
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				return last
			}
			last = line
		case <-gone:
			return ""
		case <-held:
			return ""
		}
	}
}

// end kills a process, and waits until the service has processed its requests.
func (w *bulkWorld) end(p *process) {
	p.kill()
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.connects) > 0 {
		w.idle.Wait()
	}
}

func (w *bulkWorld) checkOrders() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for n := range w.orders {
		if w.made[sampleID(n)] != 1 {
			w.tally.wrong++
		}
	}
	if w.tally.wrong > 0 && !w.row.lies {
		w.t.Errorf("seed %d: %d orders are not there once\nagain: %s", w.seed, w.tally.wrong, replay(w.t, w.seed, 1))
	}
}
