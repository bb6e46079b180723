// Package cutfs is a disk in memory, mounted with FUSE, whose power can be cut. Every node has what programs see (live) and what
// would be there after a loss of power (disk); what is between waits in a list of operations until somebody syncs it.
package cutfs

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const pageSize, sector = 4096, 512

type page struct {
	gen uint64 // of the blob that may write into it; others share it
	b   [pageSize]byte
}

type blob struct {
	gen   uint64
	size  int64
	pages map[int64]*page
}

var gens atomic.Uint64

func newBlob() *blob { return &blob{gen: gens.Add(1), pages: map[int64]*page{}} }

func (b *blob) clone() *blob { // shares all pages
	b.gen = gens.Add(1)
	return &blob{gens.Add(1), b.size, maps.Clone(b.pages)}
}

func (b *blob) write(p []byte, off int64) {
	b.size = max(b.size, off+int64(len(p)))
	for len(p) > 0 {
		n, at := off/pageSize, off%pageSize
		pg := b.pages[n]
		if pg == nil {
			pg = &page{gen: b.gen}
			b.pages[n] = pg
		} else if pg.gen != b.gen {
			pg = &page{b.gen, pg.b}
			b.pages[n] = pg
		}
		c := copy(pg.b[at:], p)
		p, off = p[c:], off+int64(c)
	}
}

func (b *blob) read(p []byte, off int64) int {
	p = p[:max(0, min(int64(len(p)), b.size-off))]
	for done := 0; done < len(p); {
		at := (off + int64(done)) % pageSize
		chunk := p[done:min(len(p), done+int(pageSize-at))]
		if pg := b.pages[(off+int64(done))/pageSize]; pg != nil {
			copy(chunk, pg.b[at:])
		} else {
			clear(chunk)
		}
		done += len(chunk)
	}
	return len(p)
}

func (b *blob) truncate(size int64) {
	if size < b.size {
		maps.DeleteFunc(b.pages, func(n int64, _ *page) bool { return n*pageSize >= size })
		if at := size % pageSize; at > 0 && b.pages[size/pageSize] != nil {
			b.write(make([]byte, pageSize-at), size)
		}
	}
	b.size = size
}

type node struct {
	id, lookups    uint64
	mode, uid, gid uint32 // durable at once
	mtime          int64
	live, disk     *blob            // of a file
	kids, dkids    map[string]*node // of a folder
	target         string           // of a link
	pend           []*op            // of a file, not synced
}

// op is a change that is not durable: of a file's content or of names.
type op struct {
	seq  uint64
	n    *node
	off  int64
	data []byte // nil: truncate to off
	sets []set
}

type set struct {
	dir  *node
	name string
	n    *node // nil: the name goes
}

func (o *op) apply() {
	switch {
	case o.sets != nil:
		for _, s := range o.sets {
			if s.n == nil {
				delete(s.dir.dkids, s.name)
			} else {
				s.dir.dkids[s.name] = s.n
			}
		}
	case o.data == nil:
		o.n.disk.truncate(o.off)
	default:
		o.n.disk.write(o.data, o.off)
	}
}

// Model is what a file system promises beyond POSIX.
type Model int

const (
	Strict Model = iota // fsync of a file makes its content durable, fsync of a folder its names, nothing else anything
	Ext4                // any fsync makes all names durable, in their order; a rename over a file takes its content along
)

// How is what becomes of operations that nobody synced.
type How int

const (
	Drop   How = iota // none is there
	Prefix            // as many as come first, the last one torn
	Subset            // any, split into pages, some torn between sectors (Ext4: of the names, as many as come first)
	Any               // one of them, by the seed
)

// Disk is the whole of it.
type Disk struct {
	Model Model
	Lies  bool          // a sync does nothing
	Delay time.Duration // of a sync

	mu    sync.Mutex
	root  *node
	nodes map[uint64]*node
	dirs  map[uint64][]string // open folders
	dirty map[*node]bool
	meta  []*op
	seq   uint64
	ids   uint64
	off   bool
	left  int64 // operations until the power goes, if > 0
	cut   chan struct{}
	kill  func()
	alive int64 // operations until kill is called, if > 0
	dead  chan struct{}
	Count struct{ Writes, Syncs, Names, Bytes int64 }
}

func New(m Model) *Disk {
	d := &Disk{Model: m, dirs: map[uint64][]string{}}
	d.load(newDir(0o755|sIFDIR, 0, 0))
	return d
}

func newDir(mode, uid, gid uint32) *node {
	return &node{mode: mode, uid: uid, gid: gid, kids: map[string]*node{}, dkids: map[string]*node{}}
}

func (d *Disk) write(n *node, data []byte, off int64) {
	n.live.write(data, off)
	d.data(&op{n: n, off: off, data: slices.Clone(data)})
}

func (d *Disk) truncate(n *node, size int64) {
	n.live.truncate(size)
	d.data(&op{n: n, off: size})
}

func (d *Disk) data(o *op) {
	d.seq++
	o.seq = d.seq
	o.n.pend = append(o.n.pend, o)
	d.dirty[o.n] = true
}

func (d *Disk) names(sets ...set) {
	for _, s := range sets {
		if s.n == nil {
			delete(s.dir.kids, s.name)
		} else {
			s.dir.kids[s.name] = s.n
		}
	}
	d.seq++
	d.meta = append(d.meta, &op{seq: d.seq, sets: sets})
}

func (d *Disk) syncData(n *node) {
	for _, o := range n.pend {
		o.apply()
	}
	n.pend = nil
	delete(d.dirty, n)
}

func (d *Disk) sync(n *node) {
	if d.Count.Syncs++; d.Lies {
		return
	}
	if n.live != nil {
		d.syncData(n)
		if d.Model == Strict {
			return
		}
	}
	rest := d.meta[:0:0]
	for i, o := range d.meta {
		if d.Model == Strict && !slices.ContainsFunc(o.sets, func(s set) bool { return s.dir == n }) {
			rest = append(rest, o)
			continue
		}
		for _, s := range o.sets {
			if old := s.dir.dkids[s.name]; d.Model == Ext4 && s.n != nil && old != nil && old != s.n && s.n.live != nil {
				d.syncData(s.n)
			}
			for _, before := range d.meta[:i] { // what was decided earlier about this name is history
				before.sets = slices.DeleteFunc(before.sets, func(b set) bool { return b.dir == s.dir && b.name == s.name && before != o })
			}
		}
		o.apply()
	}
	d.meta = rest
}

// Image is a disk without power: what is durable and what was on its way. It may be looked at often.
type Image struct {
	model Model
	root  *node
	ops   []*op // by seq
}

// Off takes the power away: from now on every request fails, and nothing becomes durable.
func (d *Disk) Off() *Image {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turnOff()
	ops := slices.Clone(d.meta)
	for n := range d.dirty {
		ops = append(ops, n.pend...)
	}
	slices.SortFunc(ops, func(a, b *op) int { return int(int64(a.seq) - int64(b.seq)) })
	return (&Image{d.Model, d.root, ops}).copy()
}

// Save returns an image of all there is, as if everything had been synced: a template.
func (d *Disk) Save() *Image {
	d.mu.Lock()
	defer d.mu.Unlock()
	for n := range d.dirty {
		d.syncData(n)
	}
	for _, o := range d.meta {
		o.apply()
	}
	d.meta = nil
	return (&Image{d.Model, d.root, nil}).copy()
}

func (d *Disk) turnOff() {
	if !d.off {
		d.off = true
		close(d.cut)
	}
}

// CutAfter takes the power away before the n-th change or sync from now.
func (d *Disk) CutAfter(n int64) {
	d.mu.Lock()
	d.left = n
	d.mu.Unlock()
}

// KillAfter calls kill before the n-th change or sync from now, which then fails. kill must kill, and
// not wait for, every process that writes to the disk, and must not use the disk. The channel is
// closed after the call.
func (d *Disk) KillAfter(n int64, kill func()) (killed <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.alive, d.kill, d.dead = n, kill, make(chan struct{})
	return d.dead
}

// IsOn reports whether there is power.
func (d *Disk) IsOn() bool { d.mu.Lock(); defer d.mu.Unlock(); return !d.off }

// Gone is closed when the power is gone.
func (d *Disk) Gone() <-chan struct{} { d.mu.Lock(); defer d.mu.Unlock(); return d.cut }

// On gives power again, to a disk as a cut leaves it. No process may have files of the mount open.
func (d *Disk) On(i *Image, seed uint64, how How) (kept, lost int) {
	i = i.copy()
	kept, lost = i.crash(rand.New(rand.NewPCG(seed, 1)), how)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.load(i.root)
	return kept, lost
}

// load makes a tree the content. Its nodes get numbers that were never used, so that the kernel's caches know nothing of them.
func (d *Disk) load(root *node) {
	d.root, d.nodes, d.dirty, d.meta, d.off, d.left, d.alive, d.cut = root, map[uint64]*node{}, map[*node]bool{}, nil, false, 0, 0, make(chan struct{})
	root.id = 1
	d.nodes[1] = root
	var walk func(n *node)
	walk = func(n *node) {
		n.kids, n.pend, n.lookups = maps.Clone(n.dkids), nil, 0
		if n.disk != nil {
			n.live = n.disk.clone()
		}
		for _, k := range n.kids {
			d.register(k)
			walk(k)
		}
	}
	d.ids = max(d.ids, 1)
	walk(root)
}

func (d *Disk) register(n *node) *node {
	if d.nodes[n.id] != n || n.id == 0 {
		d.ids++
		n.id = d.ids
		d.nodes[n.id] = n
	}
	return n
}

func (i *Image) copy() *Image {
	seen := map[*node]*node{}
	var of func(n *node) *node
	of = func(n *node) *node {
		if n == nil || seen[n] != nil {
			return seen[n]
		}
		c := &node{mode: n.mode, uid: n.uid, gid: n.gid, mtime: n.mtime, target: n.target}
		seen[n] = c
		if n.disk != nil {
			c.disk = n.disk.clone()
		}
		if n.dkids != nil {
			c.dkids = make(map[string]*node, len(n.dkids))
			for name, k := range n.dkids {
				c.dkids[name] = of(k)
			}
		}
		return c
	}
	out := &Image{model: i.model, root: of(i.root)}
	for _, o := range i.ops {
		c := &op{seq: o.seq, n: of(o.n), off: o.off, data: o.data}
		for _, s := range o.sets {
			c.sets = append(c.sets, set{of(s.dir), s.name, of(s.n)})
		}
		out.ops = append(out.ops, c)
	}
	return out
}

// crash decides about every operation that was on its way.
func (i *Image) crash(r *rand.Rand, how How) (kept, lost int) {
	if how == Any {
		how = How(r.IntN(int(Any)))
	}
	switch how {
	case Drop:
		return 0, len(i.ops)
	case Prefix:
		k := r.IntN(len(i.ops) + 1)
		for _, o := range i.ops[:k] {
			o.apply()
		}
		if k < len(i.ops) && len(i.ops[k].data) > 1 {
			o := i.ops[k]
			unit := []int64{sector, pageSize}[r.IntN(2)]
			end := (o.off + r.Int64N(int64(len(o.data)))) / unit * unit
			if end > o.off {
				o.n.disk.write(o.data[:end-o.off], o.off)
			}
		}
		return k, len(i.ops) - k
	}
	p := []float64{0.1, 0.5, 0.9}[r.IntN(3)]
	names := 0
	for _, o := range i.ops {
		if o.sets != nil {
			names++
		}
	}
	names = r.IntN(names + 1) // Ext4: so many
	for _, o := range i.ops {
		keep := r.Float64() < p
		switch {
		case o.sets != nil:
			if i.model == Ext4 {
				keep = names > 0
				names--
			}
			if keep {
				o.apply()
			}
		case o.data == nil:
			if keep {
				o.apply()
			}
		default:
			for from := int64(0); from < int64(len(o.data)); {
				unit := int64(pageSize)
				tear := r.IntN(4) == 0
				if tear {
					unit = sector
				}
				to := min(int64(len(o.data)), ((o.off+from)/unit+1)*unit-o.off)
				if r.Float64() < p {
					keep = true
					o.n.disk.write(o.data[from:to], o.off+from)
				} else if i.model == Strict && r.IntN(10) == 0 { // the length came, the content did not
					o.n.disk.size = max(o.n.disk.size, o.off+to)
				}
				from = to
			}
		}
		if keep {
			kept++
		} else {
			lost++
		}
	}
	return kept, lost
}
