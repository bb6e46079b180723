package world

import (
	"context"
	"fmt"
	"net"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labhealth/labhealth-go/internal/machine"
)

// computer is a machine: its disk survives its processes, and its clock its boots.
type computer struct {
	name   string
	world  *world
	disk   *disk
	boots  int
	booted time.Time    // when it was switched on
	offset atomic.Int64 // of its clock
	starts int          // processes

	mu         sync.Mutex
	operations int           // writes and syncs of its disk, and writes to its network
	faults     map[int]fault // by the number of the operation
	syncs      int
	killSyncs  map[int]bool // the syncs before which a process is killed, by number
}

// fault is what happens at an operation of a computer.
type fault struct {
	kind  faultKind
	after bool // the operation takes place
}

type faultKind int

const (
	kill faultKind = iota
	powerCut
	diskError
)

var faultKindNames = [...]string{kill: "kill", powerCut: "power cut", diskError: "disk error"}

func newComputer(w *world, name string) *computer {
	return &computer{name: name, world: w, disk: newDisk(w.choices, w.history, name), boots: 1, booted: time.Now().Add(-time.Hour), faults: map[int]fault{}}
}

// now returns the time of the clock of the computer, which can be wrong.
func (c *computer) now() time.Time { return time.Now().Round(0).Add(time.Duration(c.offset.Load())) }

// process is a process on a computer. When it is killed, its goroutines go on until they notice,
// without an effect: its network, its disk and its context fail.
type process struct {
	computer *computer
	name     string
	ctx      context.Context
	cancel   context.CancelFunc
	dead     atomic.Bool
	running  sync.WaitGroup

	mu    sync.Mutex
	conns map[*conn]bool
	ports []*listener
}

func (c *computer) start() *process {
	c.starts++
	p := &process{computer: c, name: fmt.Sprint(c.name, ".", c.starts), conns: map[*conn]bool{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

func (p *process) isDead() bool { return p.dead.Load() }

// kill ends a process. If the power is cut, its peers hear nothing of it; otherwise the operating
// system closes its connections.
func (p *process) kill(powerCut bool) {
	if p.dead.Swap(true) {
		return
	}
	c := p.computer
	what := "is killed"
	if powerCut {
		what = "has a power cut"
		c.boots++
		c.booted = time.Now()
		c.disk.cut()
	} else {
		c.disk.unlock(p)
	}
	c.world.history.add(p.name, 0, what)
	p.mu.Lock()
	conns, ports := p.conns, p.ports
	p.conns, p.ports = map[*conn]bool{}, nil
	p.mu.Unlock()
	for _, l := range ports {
		l.Close()
	}
	for conn := range conns {
		conn.abandon(powerCut)
	}
	p.cancel()
}

// do runs an operation of a process, with the fault of its number. op gets whether the disk fails.
func (p *process) do(what string, isDisk bool, op func(failed bool) error) error {
	if p.isDead() {
		return errDead
	}
	c := p.computer
	if c == nil { // a temporary file
		return op(false)
	}
	c.mu.Lock()
	c.operations++
	n := c.operations
	f, found := c.faults[n]
	if strings.HasPrefix(what, "sync") && !c.world.calm.Load() && c.isKilledAtSync() {
		f, found = fault{kind: kill}, true
	}
	c.mu.Unlock()
	if !found || c.world.calm.Load() {
		return op(false)
	}
	if f.kind == diskError && !isDisk {
		return op(false)
	}
	c.world.history.add(c.name, n, "fault: "+faultKindNames[f.kind]+" at "+what)
	switch {
	case f.kind == diskError:
		return op(true)
	case !f.after:
		p.kill(f.kind == powerCut)
		return errDead
	}
	err := op(false)
	p.kill(f.kind == powerCut)
	return err
}

// The methods of [machine.Machine].

func (p *process) Open(path string) (machine.File, bool, func() error, error) {
	f, existed, err := p.computer.disk.open(p, path, true)
	if err != nil {
		return nil, false, nil, err
	}
	d := p.computer.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if f.inode.locked != nil {
		return nil, existed, nil, errLocked
	}
	f.inode.locked = p
	return f, existed, func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if f.inode.locked == p {
			f.inode.locked = nil
		}
		return nil
	}, nil
}

func (p *process) SyncDir(name string) error { return p.computer.disk.syncDir(p, path.Dir(name)) }

func (p *process) BootID() string { return fmt.Sprint(p.computer.name, " boot ", p.computer.boots) }

func (p *process) Uptime() time.Duration {
	return (time.Since(p.computer.booted) + time.Second - 1).Truncate(time.Second)
}

// dial connects to a listener of another computer.
func (p *process) dial(ctx context.Context, _, address string) (net.Conn, error) {
	return p.computer.world.network.dial(ctx, p, address)
}

func (p *process) addConn(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isDead() {
		return false
	}
	p.conns[c] = true
	return true
}

func (p *process) removeConn(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}
