package powercut_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go/integration/powercut/cutfs"
)

// outcomesPerCut is how many of the contents that a cut can leave behind are looked at.
const outcomesPerCut = 3

// storeRow is a setting of the store.
type storeRow struct {
	name        string
	model       cutfs.Model
	synchronous string
	lies        bool // the disk
	isUnsafe    bool // what it acknowledged must be seen to be lost
	cuts, long  int
}

var storeRows = []storeRow{
	{"full on strict", cutfs.Strict, "FULL", false, false, 40, 1000},
	{"full on ext4", cutfs.Ext4, "FULL", false, false, 10, 300},
	{"extra on strict", cutfs.Strict, "EXTRA", false, false, 5, 100},
	{"normal on strict", cutfs.Strict, "NORMAL", false, true, 40, 100},
	{"off on strict", cutfs.Strict, "OFF", false, true, 40, 100},
	{"full on a disk that lies", cutfs.Strict, "FULL", true, true, 40, 100},
}

// A store on SQLite loses nothing that it has acknowledged when the power fails, and opens again.
// With settings that are not safe, the same test sees losses.
func TestSQLite(t *testing.T) {
	mount(t, cutfs.New(cutfs.Strict)) // or skip
	for _, row := range storeRows {
		t.Run(strings.ReplaceAll(row.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			total, started, cuts := storeTally{}, time.Now(), cutsOf(t, row.cuts, row.long)
			inWorld := cutsPerWorld
			if row.isUnsafe && !long {
				inWorld = 2
			}
			for seed := firstSeed(t); total.cuts < cuts && !t.Failed(); seed++ {
				t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
					w := newStoreWorld(t, row, seed)
					w.run(min(inWorld, cuts-total.cuts))
					total.add(&w.tally)
				})
				if row.isUnsafe && !long && total.lost > 0 {
					break // that is enough
				}
			}
			t.Logf("SQLite, %s: %s in %.0f s", row.name, total, time.Since(started).Seconds())
			if row.isUnsafe && total.lost == 0 {
				t.Error("no loss is seen, although the setting is not safe: the test detects nothing")
			}
		})
	}
}

// cutsPerWorld is how often one database is cut. The next one is empty again.
const cutsPerWorld = 10

// storeTally counts what has happened.
type storeTally struct {
	cuts, kills, outcomes        int
	acknowledged, lost           int // deliveries
	lostIn, broken, inconsistent int // outcomes
}

func (s *storeTally) add(o *storeTally) {
	s.cuts += o.cuts
	s.kills += o.kills
	s.outcomes += o.outcomes
	s.acknowledged += o.acknowledged
	s.lost += o.lost
	s.lostIn += o.lostIn
	s.broken += o.broken
	s.inconsistent += o.inconsistent
}

func (s storeTally) String() string {
	return fmt.Sprintf("%d cuts after %d kills, %d outcomes, %d acknowledged, lost %d in %d outcomes, %d inconsistent, %d do not open",
		s.cuts, s.kills, s.outcomes, s.acknowledged, s.lost, s.lostIn, s.inconsistent, s.broken)
}

// storeWorld is one database and those who deliver to it. They are not cut.
type storeWorld struct {
	t     *testing.T
	row   storeRow
	seed  uint64
	r     *rand.Rand
	disk  *cutfs.Disk
	dir   string
	tally storeTally

	works   bool     // a worker and a reactor run, whose commits sync what others have left
	process *process // nil after it was killed
	url     string
	client  *http.Client

	mu           sync.Mutex
	next         int             // delivery
	repeat       []int           // deliveries that were not acknowledged
	acknowledged map[int]bool    // deliveries
	reactions    map[string]sets // that were called, by order
	outside      *httptest.Server
}

type sets = map[string]bool

func newStoreWorld(t *testing.T, row storeRow, seed uint64) *storeWorld {
	t.Helper()
	w := &storeWorld{
		t: t, row: row, seed: seed, r: rand.New(rand.NewPCG(seed, 2)), disk: cutfs.New(row.model),
		acknowledged: map[int]bool{}, reactions: map[string]sets{},
	}
	w.disk.Lies = row.lies
	w.dir = mount(t, w.disk)
	w.outside = httptest.NewServer(http.HandlerFunc(w.noteReaction))
	t.Cleanup(w.outside.Close)
	return w
}

// noteReaction stores that a reaction was called, unless the process that calls it has no power.
func (w *storeWorld) noteReaction(rw http.ResponseWriter, r *http.Request) {
	var called reacted
	if err := json.NewDecoder(r.Body).Decode(&called); err != nil {
		w.t.Error(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.disk.IsOn() {
		http.Error(rw, "too late", http.StatusServiceUnavailable)
		return
	}
	if w.reactions[called.Order] == nil {
		w.reactions[called.Order] = sets{}
	}
	w.reactions[called.Order][called.Reaction] = true
}

// run cuts the power some times.
func (w *storeWorld) run(cuts int) {
	defer w.kill()
	for cut := range cuts {
		w.works = w.r.IntN(3) == 0
		for range 1 + w.r.IntN(2) {
			w.loadAndKill()
		}
		image := w.loadAndCut(cut)
		w.tally.cuts++
		for outcome := range outcomesPerCut {
			isLast := outcome == outcomesPerCut-1 // the run goes on with it
			if !w.check(image, cut, w.r.Uint64(), isLast) && isLast {
				return // a store that does not open cannot go on
			}
		}
	}
}

// start starts the process, and reports whether it is ready.
func (w *storeWorld) start(held <-chan struct{}) error {
	env := []string{dirVariable + "=" + w.dir, synchronousVariable + "=" + w.row.synchronous, reactedVariable + "=" + w.outside.URL}
	if w.r.IntN(3) == 0 {
		env = append(env, migrateVariable+"=always")
	}
	if w.seed%2 == 0 {
		env = append(env, checkpointVariable+"=30") // pages, instead of 1000: most loads have checkpoints
	}
	p, err := start(w.disk, "sqlite", env...)
	if err != nil {
		return err
	}
	w.process, w.client = p, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: senders}}
	w.url, err = p.ready(w.disk.Gone(), held)
	return err
}

func (w *storeWorld) kill() {
	if w.process != nil {
		w.process.kill()
		w.client.CloseIdleConnections()
		w.process = nil
	}
}

// restart starts the process unless it runs. It reports whether neither the cut nor the hold came
// before that.
func (w *storeWorld) restart(held <-chan struct{}) bool {
	if w.process == nil {
		err := w.start(held)
		if err != nil {
			if !errors.Is(err, errStopped) && w.disk.IsOn() && !w.row.isUnsafe {
				w.fail(0, "the store does not open after a kill: %v", err)
			}
			return false
		}
	}
	if !w.works {
		return true
	}
	resp, err := w.client.Get(w.url + "/work")
	if err == nil {
		resp.Body.Close()
	}
	return err == nil
}

// loadAndKill kills the process before a change or a sync, or while a sync is in progress.
func (w *storeWorld) loadAndKill() {
	var held <-chan struct{}
	if w.row.isUnsafe || w.r.IntN(5) == 0 { // unsafe settings sync little or nothing
		held = w.disk.Hold(1 + w.r.Int64N(200))
	} else {
		held = w.disk.Hold(1+w.r.Int64N(30), cutfs.Sync)
	}
	w.tally.kills++
	if w.restart(held) {
		w.load(held)
	}
	w.kill()
}

// loadAndCut cuts the power after a kill: while the process opens the store, while it is sent again
// what it had not acknowledged, as soon as it has acknowledged some of that, or after more
// deliveries.
func (w *storeWorld) loadAndCut(cut int) *cutfs.Image {
	n, kind := 1+w.r.Int64N(600), w.r.IntN(8)
	if cut == cutsPerWorld-1 {
		n, kind = 1+w.r.Int64N(3000), 1
	}
	if kind == 0 {
		w.disk.CutAfter(1 + w.r.Int64N(60))
	}
	if !w.restart(nil) {
		return w.disk.Off()
	}
	switch kind {
	case 0:
		w.load(w.disk.Gone())
	case 1:
		w.disk.CutAfter(n)
		w.load(w.disk.Gone())
	case 2:
		w.disk.CutAfter(1 + w.r.Int64N(20))
		w.sendAgain(len(w.repeat))
	default:
		w.sendAgain(1 + w.r.IntN(len(w.repeat)+1))
	}
	return w.disk.Off()
}

const senders = 8

// load sends deliveries until the channel is closed, and kills the process.
func (w *storeWorld) load(stop <-chan struct{}) {
	stuck := time.NewTimer(time.Minute)
	defer stuck.Stop()
	var all sync.WaitGroup
	stopped := make(chan struct{})
	for range senders {
		all.Go(func() {
			for {
				select {
				case <-stopped:
					return
				default:
				}
				w.send(w.take())
			}
		})
	}
	select {
	case <-stop:
	case <-stuck.C:
		if !w.row.isUnsafe {
			w.fail(0, "the store takes no deliveries anymore: %s", &w.process.stderr)
		}
	}
	w.kill() // before the senders give up, so that its requests are in flight
	close(stopped)
	all.Wait()
}

// sendAgain sends some deliveries that were not acknowledged, one after the other: the commit of a
// new one syncs those before it. If one is acknowledged although the disk was not used, this may be
// the moment to cut the power.
func (w *storeWorld) sendAgain(some int) {
	slices.Sort(w.repeat)
	if w.r.IntN(4) == 0 {
		w.r.Shuffle(len(w.repeat), func(i, j int) { w.repeat[i], w.repeat[j] = w.repeat[j], w.repeat[i] })
	}
	again := w.repeat[:min(some, len(w.repeat))]
	w.repeat = slices.Clone(w.repeat[len(again):])
	for i, n := range again {
		before := w.disk.Operations()
		w.send(n)
		if w.acknowledged[n] && w.disk.Operations() == before && w.r.IntN(3) == 0 {
			w.repeat = append(w.repeat, again[i+1:]...)
			return
		}
	}
}

// take returns the number of a delivery that was not acknowledged, or of a new one.
func (w *storeWorld) take() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.repeat) > 0 {
		n := w.repeat[0]
		w.repeat = w.repeat[1:]
		return n
	}
	w.next++
	return w.next
}

// send sends a delivery. What the process responds without power does not count.
func (w *storeWorld) send(n int) {
	gone := w.disk.Gone()
	err := w.post(n)
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-gone:
		err = errStopped
	default:
	}
	if err != nil {
		w.repeat = append(w.repeat, n)
		return
	}
	if !w.acknowledged[n] {
		w.tally.acknowledged++
		w.acknowledged[n] = true
	}
}

func (w *storeWorld) post(n int) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+wayOf(n), strings.NewReader(eventOf(n)))
	if err != nil {
		return err
	}
	req.Header.Set("webhook-id", deliveryID(n))
	resp, err := w.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusNoContent {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

// check looks at one outcome of a cut, and reports whether the store has opened.
func (w *storeWorld) check(image *cutfs.Image, cut int, seed uint64, isLast bool) bool {
	w.kill()
	kept, lost := w.disk.On(image, seed, cutfs.Any)
	w.tally.outcomes++
	found, err := w.content()
	if err != nil {
		w.tally.broken++
		if !w.row.isUnsafe {
			w.fail(cut, "the store does not open, %d of %d changes are kept: %v", kept, kept+lost, err)
		}
		return false
	}
	missing, problems := w.compare(found)
	w.tally.lost += len(missing)
	if len(missing) > 0 {
		w.tally.lostIn++
	}
	if len(problems) > 0 {
		w.tally.inconsistent++
	}
	if len(missing)+len(problems) > 0 && !w.row.isUnsafe {
		w.fail(cut, "%d of %d changes are kept; acknowledged and lost: %d; %s", kept, kept+lost, missing, strings.Join(problems, "; "))
	}
	if isLast { // they stay lost
		for _, n := range missing {
			delete(w.acknowledged, n)
		}
	}
	return true
}

func (w *storeWorld) content() (found content, err error) {
	if err := w.start(nil); err != nil {
		return found, err
	}
	resp, err := w.client.Get(w.url + "/content")
	if err != nil {
		return found, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(string(body))
	}
	if err != nil {
		return found, err
	}
	return found, json.Unmarshal(body, &found)
}

// compare returns the deliveries that were acknowledged and are lost, and what is inconsistent.
func (w *storeWorld) compare(c content) (missing []int, problems []string) {
	for _, n := range slices.Sorted(maps.Keys(w.acknowledged)) {
		id := deliveryID(n)
		isApplied := c.Ledger[id] > 0 || wayOf(n) == applyWay
		if isApplied && !hasEffect(&c, n) || !isApplied && c.Inbox[id] == 0 {
			missing = append(missing, n)
		}
	}
	for n := 1; n <= w.next; n++ { // also those that were not acknowledged
		id := deliveryID(n)
		if times := c.Inbox[id] + c.Ledger[id]; times > 1 {
			problems = append(problems, fmt.Sprintf("%s is there %d times", id, times))
		}
		if c.Ledger[id] > 0 && !hasEffect(&c, n) {
			problems = append(problems, id+" was applied without its data")
		}
	}
	return missing, append(problems, w.compareOrders(&c)...)
}

// compareOrders checks that each transition has one reaction, which is queued or was called, and
// that none was called for a transition that is not there.
func (w *storeWorld) compareOrders(c *content) (problems []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.Orphans+c.DeadLetters > 0 {
		problems = append(problems, fmt.Sprintf("%d transitions without an order, %d dead letters", c.Orphans, c.DeadLetters))
	}
	orders := maps.Clone(c.PerOrder)
	for order := range w.reactions {
		orders[order] += 0
	}
	for order, transitions := range orders {
		reactions := maps.Clone(w.reactions[order])
		if reactions == nil {
			reactions = sets{}
		}
		for _, id := range c.Reactions[order] {
			reactions[id] = true
		}
		if len(reactions) != transitions {
			problems = append(problems, fmt.Sprintf("order %s has %d transitions and %d reactions", order, transitions, len(reactions)))
		}
	}
	return problems
}

// fail reports a loss and how to see it again.
func (w *storeWorld) fail(cut int, format string, args ...any) {
	w.t.Helper()
	w.t.Errorf("seed %d, cut %d: %s\nagain: %s", w.seed, cut+1, fmt.Sprintf(format, args...), replay(w.t, w.seed, cutsPerWorld))
}

// Deliveries are numbered. Each number has an ID, a way and an event.

func deliveryID(n int) string { return fmt.Sprintf("msg_%07d", n) }

func wayOf(n int) string {
	return [...]string{receiveWay, deduplicateWay, receiveWay, deduplicateWay, applyWay}[n/sameWay%5]
}

const sameWay = 30 // deliveries in a row, so that those that arrive together share a transaction

func isOrder(n int) bool { return n%3 == 0 }

const ordersOf = 40 // deliveries that share an order

// eventOf returns the event of a delivery: of a sample with its number as the value, or of an order
// with a transition that has its number as the ID.
func eventOf(n int) string {
	at := time.Date(2025, 3, 4, 12, 0, n, 0, time.UTC).Format(time.RFC3339)
	if isOrder(n) {
		return fmt.Sprintf(`{"event_type":"labtest.order.updated","data":{"id":"00000000-0000-4000-8000-%012d","user_id":%q,"updated_at":%q,
			"events":[{"id":%d,"created_at":%q,"status":"received.testkit.ordered"}]}}`, n/ordersOf, userOf(n/ordersOf), at, n, at)
	}
	return fmt.Sprintf(`{"event_type":"daily.data.heartrate.created","user_id":%q,"data":{"source":{"slug":"ring"},
		"data":[{"timestamp":%q,"unit":"bpm","value":%d}]}}`, userOf(n), at, n)
}

func userOf(n int) string { return fmt.Sprintf("00000000-0000-4000-9000-%012d", n%5) }

// hasEffect reports whether the data of a delivery is in the store, once.
func hasEffect(c *content, n int) bool {
	if isOrder(n) {
		return c.Transitions[fmt.Sprint(n)] == 1
	}
	return c.Samples[fmt.Sprint(n)] == 1
}
