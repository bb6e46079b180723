package world

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
	"github.com/labhealth/labhealth-go/internal/jitter"
	"github.com/labhealth/labhealth-go/webhooks"
)

// world is one schedule.
type world struct {
	choices  choices
	history  *history
	network  *network
	plan     plan
	service  *service
	importer *computer
	receiver *computer
	calm     atomic.Bool    // no more faults
	settling atomic.Bool    // the last fault is about to take place
	ended    atomic.Bool    // the receiver is not restarted anymore
	dying    sync.WaitGroup // receivers that were killed

	importing atomic.Pointer[process] // the current importer
	calls     atomic.Int64            // of clients

	mu          sync.Mutex
	running     *receiver
	isRunning   *sync.Cond
	finalReport *bulk.Report
	claims      map[string]labhealth.Outcome // of imports, by call
	receipts    map[string][]time.Time       // when deliveries were received, by ID
	accepted    map[string]bool              // deliveries that the store has accepted
	problems    []string                     // violations of the invariants
}

// plan is what happens in a schedule, besides the choices at each event.
type plan struct {
	aim          aim
	importOnly   bool // there is no receiver, which costs most of the time
	records      []labhealth.ImportOrderBody
	events       int // with samples
	concurrency  int
	batch        int
	listByUser   bool
	trustJournal bool
	unique       bool // the service rejects duplicate sample IDs
	reconcile    bool // in the background
	lateWorker   bool // the worker starts after the last fault: until then only receipts are written
	network      int  // faults in 1,000 writes
	service      int  // faults in 100 requests
	calmAt       time.Duration
	lastCut      int // what happens to the receiver at the end: 0 nothing, 1 a kill, 2 a power cut
}

func newPlan(c choices) plan {
	n := 0
	next := func(limit int) int {
		n++
		return c.below(limit, "plan", n)
	}
	p := plan{
		importOnly: next(3) == 0, events: next(4), concurrency: 1 + next(3), batch: 1 + next(4), listByUser: next(2) == 0, trustJournal: next(4) == 0,
		unique: next(4) == 0, reconcile: next(8) == 0, network: []int{0, 20, 60, 150}[next(4)], service: []int{0, 10, 40}[next(3)],
		calmAt: time.Duration(10+next(80)) * time.Second, lastCut: next(3),
	}
	if p.lateWorker = next(3) == 0; p.lateWorker {
		p.lastCut, p.reconcile = 2, false
	}
	p.aim = []aim{aimNone, aimNone, aimNone, aimNone, aimInFlight, aimUnsynced}[next(6)]
	p.concentrate(c)
	for i := range 1 + next(3) {
		p.records = append(p.records, record(fmt.Sprintf("%c-%d", "SSSSSR"[next(6)], i), users[next(2)]))
	}
	return p
}

func newWorld(seed uint64) *world {
	w := &world{
		choices: choices{seed}, history: &history{start: time.Now()}, claims: map[string]labhealth.Outcome{},
		receipts: map[string][]time.Time{}, accepted: map[string]bool{},
	}
	w.isRunning = sync.NewCond(&w.mu)
	w.network = &network{world: w, listeners: map[string]*listener{}}
	w.plan = newPlan(w.choices)
	return w
}

// run runs a schedule in a bubble.
func (w *world) run(database content) {
	jitter.Replace(func(limit time.Duration) time.Duration {
		return w.choices.within(limit, "jitter", int(time.Since(w.history.start)))
	})
	defer jitter.Replace(nil)
	w.service = newService(w)
	w.importer, w.receiver = newComputer(w, "importer"), newComputer(w, "receiver")
	i := &inode{content: database.clone()}
	i.synced = i.clone()
	w.receiver.disk.files[databasePath], w.receiver.disk.durable[databasePath] = i, i
	w.planFaults()
	w.planAim()
	var receiving, importing sync.WaitGroup
	importing.Go(w.runImporter)
	if !w.plan.importOnly {
		receiving.Go(w.runReceiver)
		for n := range w.plan.events {
			w.service.pending.Go(func() { w.sendSamples(n) })
		}
	}
	time.Sleep(w.plan.calmAt)
	w.calm.Store(true)
	w.importer.offset.Store(0)
	w.receiver.offset.Store(0)
	w.history.add("world", 0, "calm")
	importing.Wait()
	w.service.pending.Wait()
	w.checkOrders()
	if !w.plan.importOnly {
		w.settle()
	}
	w.ended.Store(true)
	if r := w.current(); r != nil {
		r.process.kill(false)
	}
	receiving.Wait()
	w.dying.Wait()
	w.service.process.kill(false)
	w.service.process.running.Wait()
}

// planFaults chooses two to six faults, or up to one besides those of an aim.
func (w *world) planFaults() {
	const subject = "fault"
	var last struct {
		*computer
		at int
	}
	count := 2 + w.choices.below(5, subject, 0)
	if w.plan.aim != aimNone {
		count = w.choices.below(2, subject, 0)
	}
	for i := range count {
		n := 10 * (i + 1)
		c, operations := w.importer, 6 // up to 2 to the power of
		if !w.plan.importOnly && w.choices.below(2, subject, n) == 0 {
			c, operations = w.receiver, 8
		}
		at := 1 + w.choices.below(2<<w.choices.below(operations, subject, n+1), subject, n+2)
		if last.computer != nil && w.choices.below(2, subject, n+3) == 0 { // soon after another one
			c, at = last.computer, last.at+1+w.choices.below(10, subject, n+2)
		}
		kind := w.choices.below(4, subject, n+4)
		if kind < 3 {
			c.faults[at] = fault{faultKind(kind), w.choices.below(2, subject, n+5) == 0}
			last.computer, last.at = c, at
			continue
		}
		offset := w.choices.within(8*time.Minute, subject, n+5) - 4*time.Minute
		time.AfterFunc(w.choices.within(time.Minute, subject, n+6), func() {
			if !w.calm.Load() {
				w.history.add(c.name, n, fmt.Sprint("clock is off by ", offset))
				c.offset.Store(int64(offset))
			}
		})
	}
}

// networkFault returns the fault of an operation of a connection, or -1.
func (w *world) networkFault(subject string, n int) int {
	if w.calm.Load() || w.choices.below(1000, subject, ^n) >= w.plan.network {
		return -1
	}
	kind := w.choices.below(faultKinds, subject, 1<<50+n)
	w.history.add(subject, n, faultNames[kind])
	return kind
}

// serviceFault returns the fault of a request to the service, or -1.
func (w *world) serviceFault(subject string, n int) int {
	if w.calm.Load() || w.choices.below(100, subject, ^n) >= w.plan.service {
		return -1
	}
	return w.choices.below(7, subject, 1<<20+n)
}

// sendSamples sends an event with samples, which replace those of other events.
func (w *world) sendSamples(n int) {
	subject := fmt.Sprint("samples-", n)
	time.Sleep(w.choices.within(time.Minute, subject, 0))
	user := users[w.choices.below(2, subject, 1)]
	first := w.choices.below(3, subject, 2)
	body := fmt.Appendf(nil, `{"event_type":"daily.data.heartrate.created","user_id":%q,"data":{"source":{"slug":"ring"},"data":[`, user)
	for i := range 1 + w.choices.below(3, subject, 3) {
		if i > 0 {
			body = append(body, ',')
		}
		at := sampleStart.Add(time.Duration(first+i) * time.Minute)
		body = fmt.Appendf(body, `{"timestamp":%q,"unit":"bpm","value":%d}`, at.Format(time.RFC3339), 50+w.choices.below(100, subject, 10+i))
	}
	w.service.send(subject, append(body, "]}}"...))
}

var sampleStart = time.Date(1999, time.December, 1, 0, 0, 0, 0, time.UTC)

// settle lets the receiver process what it has, after a last fault, and checks the invariants.
func (w *world) settle() {
	w.settling.Store(true)
	if r := w.current(); w.plan.lastCut > 0 && r != nil {
		r.process.kill(w.plan.lastCut == 2)
	}
	r := w.waitForReceiver()
	if err := r.drain(r.process.ctx); err != nil {
		w.report("the receiver does not settle: " + err.Error())
		return
	}
	w.checkStore(r)
}

func (w *world) setRunning(r *receiver) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = r
	w.isRunning.Broadcast()
}

func (w *world) current() *receiver {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.running
}

func (w *world) waitForReceiver() *receiver {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.running == nil || w.running.process.isDead() {
		w.isRunning.Wait()
	}
	return w.running
}

func (w *world) hadDiskError() bool { return !w.calm.Load() }

func (w *world) report(problem string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = append(w.problems, problem)
	w.history.add("VIOLATION", len(w.problems), problem)
}

func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.problems) > 0
}

// claim records what an import says about its outcome.
func (w *world) claim(call string, outcome labhealth.Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.claims[call] = outcome
}

func (w *world) noteReceipt(d webhooks.RawDelivery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.receipts[d.ID] = append(w.receipts[d.ID], d.ReceivedAt)
}

func (w *world) noteAccepted(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.accepted[id] = true
}
