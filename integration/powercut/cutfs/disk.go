package cutfs

import (
	"maps"
	"slices"
	"sync"
	"syscall"
)

// Model is what a file system promises.
type Model int

// The models.
const (
	// Strict promises no more than POSIX: a sync of a file makes its content durable, a sync of a
	// directory its names, and neither anything else.
	Strict Model = iota
	// Ext4 makes the names in all directories durable with any sync, in the order in which they
	// changed. A file that replaces another one by a rename takes its content along.
	Ext4
)

// String returns strict or ext4.
func (m Model) String() string { return [...]string{"strict", "ext4"}[m] }

// Operation is a kind of request that changes or syncs a [Disk].
type Operation int

// The operations.
const (
	Write   Operation = iota // of the content or the size of a file
	Name                     // a file is created, renamed or removed
	Sync                     // of a file
	SyncDir                  // of a directory
)

// Disk is a file system whose power can be cut. It is on at first.
type Disk struct {
	// Lies makes each sync return without an effect. Set it before Mount.
	Lies bool

	mu       sync.Mutex
	model    Model
	root     *node
	nodes    map[uint64]*node
	lastID   uint64
	readers  map[uint64][]string // the names in open directories
	lastRead uint64

	unsynced   map[*node]bool // files with pending changes
	names      []*change      // of names: not synced
	changes    int64          // the number of the last change
	operations int64

	isOff bool
	left  int64         // operations until the power goes, if it is not 0
	gone  chan struct{} // closed when the power goes
	hold  *hold
}

// hold is an operation that waits.
type hold struct {
	left              int64 // operations until then
	of                []Operation
	reached, released chan struct{}
}

// rootID is the ID that FUSE gives the root.
const rootID = 1

// New returns an empty disk.
func New(m Model) *Disk {
	d := &Disk{model: m, lastID: rootID, readers: map[uint64][]string{}}
	d.load(newDirectory(0o755))
	return d
}

func newDirectory(mode uint32) *node {
	return &node{mode: syscall.S_IFDIR | mode&0o7777, entries: map[string]*node{}, durableEntries: map[string]*node{}}
}

func newFile(mode uint32) *node {
	return &node{mode: syscall.S_IFREG | mode&0o7777, live: newContent(), durable: newContent()}
}

// CutAfter cuts the power before the n-th change or sync from now, which fails. 0 cancels that.
func (d *Disk) CutAfter(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = n
}

// Gone returns a channel that is closed when the power goes.
func (d *Disk) Gone() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gone
}

// IsOn reports whether there is power.
func (d *Disk) IsOn() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.isOff
}

// Operations returns the number of changes and syncs since New.
func (d *Disk) Operations() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.operations
}

// Hold makes the n-th of the given operations from now wait, of all if none is given, and returns a
// channel that is closed when it waits. So a test can kill a process before a change, or while a
// sync is in progress. The operation never takes effect: it fails when [Disk.Release] is called or
// the power goes. Other operations go on.
func (d *Disk) Hold(n int64, of ...Operation) (reached <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.release()
	d.hold = &hold{left: n, of: of, reached: make(chan struct{}), released: make(chan struct{})}
	return d.hold.reached
}

// Release ends a hold, whether or not the operation has been reached. Call it after the process was
// sent a signal that kills it: it cannot end while its operation waits.
func (d *Disk) Release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.release()
}

func (d *Disk) release() {
	if d.hold != nil {
		close(d.hold.released)
		d.hold = nil
	}
}

// countToHold counts an operation, and returns the hold if the operation is to wait.
func (d *Disk) countToHold(op Operation) *hold {
	h := d.hold
	if h == nil || h.left == 0 || len(h.of) > 0 && !slices.Contains(h.of, op) {
		return nil
	}
	if h.left--; h.left > 0 {
		return nil
	}
	close(h.reached)
	return h
}

// Off cuts the power: all requests fail, and nothing becomes durable anymore. The image can be used
// for [Disk.On] any number of times.
func (d *Disk) Off() *Image {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turnOff()
	changes := slices.Clone(d.names)
	for n := range d.unsynced {
		changes = append(changes, n.pending...)
	}
	slices.SortFunc(changes, func(a, b *change) int { return int(a.number - b.number) })
	return (&Image{model: d.model, root: d.root, changes: changes}).clone()
}

func (d *Disk) turnOff() {
	if !d.isOff {
		d.isOff = true
		close(d.gone)
	}
}

// Save makes everything durable and returns an image of it, such as of an initialized database.
func (d *Disk) Save() *Image {
	d.mu.Lock()
	defer d.mu.Unlock()
	for n := range d.unsynced {
		d.syncContent(n)
	}
	for _, c := range d.names {
		c.apply()
	}
	d.names = nil
	return (&Image{model: d.model, root: d.root}).clone()
}

// On gives power to a disk as the cut has left it behind: loss and seed decide which of the changes
// that were not synced are kept. It returns how many of them are kept, at least in part, and how
// many are lost. No process may have files of the disk open.
func (d *Disk) On(i *Image, seed uint64, loss Loss) (kept, lost int) {
	i = i.clone()
	kept, lost = i.lose(seed, loss)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.load(i.root)
	return kept, lost
}

// load makes a tree the content of the disk. Its nodes get new IDs, so that nothing that the kernel
// has cached is used.
func (d *Disk) load(root *node) {
	d.release()
	d.root, d.nodes = root, map[uint64]*node{rootID: root}
	d.unsynced, d.names = map[*node]bool{}, nil
	d.isOff, d.left, d.gone = false, 0, make(chan struct{})
	root.id = rootID
	d.start(root)
}

// start sets what programs see of a node to what is durable.
func (d *Disk) start(n *node) {
	if n.durable != nil {
		n.live = n.durable.clone()
	}
	if n.durableEntries == nil {
		return
	}
	n.entries = maps.Clone(n.durableEntries)
	for _, child := range n.entries {
		if child.id == 0 { // otherwise it has several names
			d.register(child)
			d.start(child)
		}
	}
}

// register gives a node an ID by which the kernel finds it, unless it has one.
func (d *Disk) register(n *node) {
	if n.id == 0 {
		d.lastID++
		n.id = d.lastID
	}
	d.nodes[n.id] = n
}
