package powercut_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go/integration/powercut/cutfs"
)

// system is what runs on the disk: the servers, which write to it, and the clients.
type system interface {
	// prepare makes the content of the disk from which every life starts, and stops everything.
	prepare(ctx context.Context) error
	// start starts the servers that do not run, and returns when they can be used.
	start(ctx context.Context) error
	// serve starts the clients, and returns when deliveries can be sent. What they have
	// acknowledged does not change until then.
	serve(ctx context.Context) error
	// kill kills the servers and perhaps clients, and does not wait for them.
	kill()
	// stop kills everything and waits.
	stop()
	// deliver returns nil if delivery n was acknowledged.
	deliver(ctx context.Context, n int) error
	// stored returns how often each delivery from the first one on is stored.
	stored(ctx context.Context, first int) (map[int]int, error)
	// finish applies what is stored and not applied, and then returns what is applied.
	finish(ctx context.Context, first int) (map[int]int, error)
}

// experiment is a system whose power is cut.
type experiment struct {
	name   string // a row of the table
	system system
	disk   *cutfs.Disk
	span   int64 // changes and syncs until a kill or a cut, at most
	cuts   int   // in the short form
	many   int   // in the long form
	life   int   // cuts after which it starts again with an empty system; 0 means 25
	unsafe bool  // it must be seen to lose what it acknowledged
	copies bool  // a delivery may be stored several times

	template *cutfs.Image // what prepare has made; nil if it was not called
	next     int          // number of the next delivery
	count    struct{ cuts, disks, kills, acknowledged, lost, lossy, broken int }
}

const (
	disksPerCut = 3
	clients     = 8
)

// run cuts the power until it has done so often enough, or has seen what it must see.
func (e *experiment) run(t *testing.T) {
	t.Helper()
	started := time.Now()
	cuts, seed := cutsOf(t, e.cuts, e.many), firstSeed(t)
	if e.template == nil {
		if err := e.system.prepare(t.Context()); err != nil {
			t.Fatalf("%s: %v", e.name, err)
		}
		e.template = e.disk.Save()
	}
	for ; e.count.cuts < cuts && !t.Failed() && !e.seen(); seed++ {
		newLife(e, seed).run(t, min(cmp.Or(e.life, 25), cuts-e.count.cuts))
	}
	t.Logf("%s in %.0f s, last seed %d", e.row(), time.Since(started).Seconds(), seed-1)
	c := e.count
	if e.unsafe && c.lost+c.broken == 0 {
		t.Errorf("%s: nothing was lost in %d cuts: the test does not find what it must find", e.name, c.cuts)
	}
}

// row is a row of the table of results.
func (e *experiment) row() string {
	c := e.count
	return fmt.Sprintf("%s | ext4 | %d cuts, %d disks, %d kills | %d acknowledged | %d lost in %d disks | %d not opened",
		e.name, c.cuts, c.disks, c.kills, c.acknowledged, c.lost, c.lossy, c.broken)
}

// seen reports whether an unsafe system has lost something. The long form goes on, to count.
func (e *experiment) seen() bool { return e.unsafe && !long && e.count.lost+e.count.broken > 0 }

// life is a system from the template on, through several cuts.
type life struct {
	*experiment
	seed  uint64
	rand  *rand.Rand
	first int // delivery

	mu           sync.Mutex
	acknowledged map[int]bool
	again        []int // deliveries that were sent and not acknowledged
}

func newLife(e *experiment, seed uint64) *life {
	return &life{experiment: e, seed: seed, rand: rand.New(rand.NewPCG(seed, 24)), first: e.next, acknowledged: map[int]bool{}}
}

func (l *life) run(t *testing.T, cuts int) {
	t.Helper()
	defer l.system.stop()
	l.disk.On(l.template, 0, cutfs.Drop)
	if err := l.up(t.Context(), true); err != nil {
		t.Fatalf("%s does not start: %v", l.name, err)
	}
	for n := range cuts {
		image := l.loadAndCut(t)
		if image == nil || !l.examine(t, n, image) {
			return
		}
		if long && l.count.cuts%10 == 0 {
			t.Logf("so far: %s; seed %d", l.row(), l.seed)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	applied, err := l.system.finish(ctx, l.first)
	if err != nil {
		l.report(t, "at the end", fmt.Sprintf("what is stored is not applied: %v", err))
		return
	}
	l.compare(t, "at the end", applied)
}

// up starts the servers and, if they are to be used, the clients. It ends when the power goes.
func (l *life) up(ctx context.Context, use bool) error {
	ctx, cancel := l.powered(ctx, nil)
	defer cancel()
	err := l.system.start(ctx)
	if err == nil && use {
		err = l.system.serve(ctx)
	}
	return err
}

// powered returns a context that ends when the power goes or a channel is closed, and after a
// minute.
func (l *life) powered(ctx context.Context, until <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	gone := l.disk.Gone()
	go func() {
		defer cancel()
		select {
		case <-until:
		case <-gone:
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// loadAndCut sends deliveries, kills the servers up to two times, and cuts the power: also while
// the servers start.
func (l *life) loadAndCut(t *testing.T) *cutfs.Image {
	t.Helper()
	gone, cutting := l.disk.Gone(), false
	for n := range l.rand.IntN(3) {
		if n > 0 {
			l.repeat(t)
		}
		l.load(t, l.disk.Hold(1+l.rand.Int64N(l.span/2), holds[l.rand.IntN(len(holds))]...))
		l.system.kill()
		l.disk.Release()
		l.count.kills++
		if cutting = l.rand.IntN(4) == 0; cutting {
			l.disk.CutAfter(l.cutAfter())
		}
		if err := l.up(t.Context(), true); err != nil {
			if isClosed(gone) {
				break
			}
			t.Errorf("%s: seed %d: after a kill without a cut: %v", l.name, l.seed, err)
			return nil
		}
	}
	if !cutting {
		l.disk.CutAfter(l.cutAfter())
	}
	l.repeat(t)
	l.load(t, gone)
	image := l.disk.Off()
	l.system.stop()
	l.count.cuts++
	return image
}

// holds are the operations in which servers are killed: before they change something, or in a sync.
var holds = [][]cutfs.Operation{nil, {cutfs.Sync}, {cutfs.Sync}}

// cutAfter is how many operations are left: in every second case so few that nothing but what is
// sent again can be acknowledged.
func (l *life) cutAfter() int64 {
	if l.rand.IntN(2) == 0 {
		return 1 + l.rand.Int64N(4)
	}
	return 1 + l.rand.Int64N(l.span)
}

// load sends deliveries until a channel is closed or the power is gone: first those that were not
// acknowledged. It ends after as many as a system may have operations: one that does not sync, for
// example, does not come to a certain sync.
func (l *life) load(t *testing.T, until <-chan struct{}) {
	t.Helper()
	gone := l.disk.Gone()
	ctx, cancel := l.powered(t.Context(), until)
	defer cancel()
	var sent atomic.Int64
	var sending sync.WaitGroup
	for range clients {
		sending.Go(func() {
			for ctx.Err() == nil && sent.Add(1) <= l.span {
				l.send(ctx, gone)
			}
		})
	}
	sending.Wait()
}

// repeat sends what was not acknowledged, one after the other, as the service does: the first one
// is what a server that was killed has perhaps written and not synced.
func (l *life) repeat(t *testing.T) {
	t.Helper()
	gone := l.disk.Gone()
	ctx, cancel := l.powered(t.Context(), nil)
	defer cancel()
	slices.Sort(l.again)
	for range len(l.again) {
		if isClosed(gone) {
			return
		}
		l.send(ctx, gone)
	}
}

// send sends a delivery. What is acknowledged without power does not count: servers that go on may
// say anything.
func (l *life) send(ctx context.Context, gone <-chan struct{}) {
	l.mu.Lock()
	n := l.next
	if len(l.again) > 0 {
		n, l.again = l.again[0], l.again[1:]
	} else {
		l.next++
	}
	l.mu.Unlock()
	err := l.system.deliver(ctx, n)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil && !isClosed(gone):
		l.acknowledged[n] = true
		l.count.acknowledged++
	case !errors.Is(err, errDuplicate):
		l.again = append(l.again, n)
	}
}

// examine starts the servers on disks that the cut may have left, and reports whether the life goes
// on, on the last one.
func (l *life) examine(t *testing.T, cut int, image *cutfs.Image) bool {
	t.Helper()
	for disk := range disksPerCut {
		seed := l.rand.Uint64()
		kept, dropped := l.disk.On(image, seed, cutfs.Any)
		where := fmt.Sprintf("cut %d, disk %d (%d of %d unsynced operations kept, seed %d)", cut+1, disk+1, kept, kept+dropped, seed)
		l.count.disks++
		stored, err := l.read(t.Context())
		if err != nil {
			l.count.broken++
			l.report(t, where, fmt.Sprintf("does not start: %v", err))
		} else if l.compare(t, where, stored) {
			if disk < disksPerCut-1 {
				l.system.stop()
			}
			continue
		}
		if disk == disksPerCut-1 || !l.unsafe {
			return false // the next life starts with an empty disk
		}
		l.system.stop()
	}
	if err := l.up(t.Context(), true); err != nil {
		l.report(t, fmt.Sprintf("cut %d", cut+1), err.Error())
		return false
	}
	return true
}

func (l *life) read(ctx context.Context) (map[int]int, error) {
	if err := l.up(ctx, false); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return l.system.stored(ctx, l.first)
}

// compare reports whether everything that was acknowledged is stored, and nothing twice.
func (l *life) compare(t *testing.T, where string, stored map[int]int) bool {
	t.Helper()
	var lost, twice []int
	for n := range l.acknowledged {
		if stored[n] == 0 {
			lost = append(lost, n)
		}
	}
	for n, times := range stored {
		if times > 1 && !l.copies {
			twice = append(twice, n)
		}
	}
	if len(twice) > 0 {
		slices.Sort(twice)
		l.report(t, where, "stored more than once: "+numbers(twice))
		return false
	}
	if len(lost) == 0 {
		return true
	}
	l.count.lossy++
	l.count.lost += len(lost)
	slices.Sort(lost)
	l.report(t, where, fmt.Sprintf("lost %d of %d acknowledged deliveries: %s", len(lost), len(l.acknowledged), numbers(lost)))
	return false
}

// report fails the test, unless the system is known to be unsafe.
func (l *life) report(t *testing.T, where, what string) {
	t.Helper()
	if l.unsafe {
		return
	}
	t.Errorf("%s: seed %d, %s: %s\nto repeat it, as far as the servers do the same again:\n\t%s", l.name, l.seed, where, what, replay(t, l.seed, cmp.Or(l.life, 25)))
}

// numbers prints the first few.
func numbers(all []int) string {
	more := ""
	if len(all) > 20 {
		all, more = all[:20], " …"
	}
	return fmt.Sprint(all) + more
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// idOf is the ID of a delivery, and numberOf its number.
func idOf(n int) string { return fmt.Sprintf("msg_%07d", n) }

func numberOf(id string) (int, error) { return strconv.Atoi(strings.TrimPrefix(id, "msg_")) }

// server is a program that runs and can be killed.
type server struct {
	name   string
	cmd    *exec.Cmd
	log    *tail
	killed atomic.Bool
	exited chan struct{} // closed after the end
}

// launch starts a program, which ends with this one.
func launch(name string, cmd *exec.Cmd) (*server, error) {
	p := &server{name: name, cmd: cmd, log: new(tail), exited: make(chan struct{})}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.Stdout, cmd.Stderr = p.log, p.log
	cmd.Dir = "/"
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.exited)
		_ = cmd.Wait() // it is killed, or prints why it ends
	}()
	return p, nil
}

// kill does not wait for the end. A process that is nil does not run.
func (p *server) kill() {
	if p != nil {
		p.killed.Store(true)
		_ = p.cmd.Process.Kill() // it may have ended
	}
}

// runs reports whether a process was started and not killed.
func (p *server) runs() bool { return p != nil && !p.killed.Load() }

// end kills a process and waits for its end.
func (p *server) end() {
	if p != nil {
		p.kill()
		<-p.exited
	}
}

// until waits until ready returns nil. It returns an error if the process ends before, or the
// context does.
func (p *server) until(ctx context.Context, ready func() error) error {
	return poll(ctx, func() (bool, error) {
		err := ready()
		if err != nil && isClosed(p.exited) {
			return true, fmt.Errorf("%s has ended: %w: %s", p.name, err, p.log.last())
		}
		if err != nil {
			err = fmt.Errorf("%w: %s", err, p.log.last())
		}
		return err == nil, err
	})
}

// prints waits until a process has printed a text, and returns what follows it in the line.
func (p *server) prints(ctx context.Context, text string) (rest string, err error) {
	err = p.until(ctx, func() error {
		_, after, found := strings.Cut(p.log.String(), text)
		line, _, complete := strings.Cut(after, "\n")
		if !found || !complete {
			return fmt.Errorf("%s has not printed %q", p.name, text)
		}
		rest = line
		return nil
	})
	return rest, err
}

// poll calls step until it is done, and returns its last error, also when the context ends.
func poll(ctx context.Context, step func() (done bool, err error)) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		done, err := step()
		if done {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
}

// tail is the output of a process, of which it keeps the end.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 64 << 10

func (o *tail) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p...)
	if len(o.text) > 2*tailSize {
		o.text = slices.Clone(o.text[len(o.text)-tailSize:])
	}
	return len(p), nil
}

func (o *tail) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text)
}

// last returns the last lines, for an error.
func (o *tail) last() string {
	lines := strings.Split(strings.TrimSpace(o.String()), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// merged adds up how often deliveries are stored in two places.
func merged(a, b map[int]int) map[int]int {
	sum := maps.Clone(a)
	for n, times := range b {
		sum[n] += times
	}
	return sum
}
