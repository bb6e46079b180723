package world

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"sync"
)

// pageSize is the unit in which contents are copied.
const pageSize = 4096

// sectorSize is the unit that a disk writes as a whole.
const sectorSize = 512

// content is the content of a file. Copies share pages until one is written.
type content struct {
	pages [][]byte // each of pageSize bytes
	owned []bool   // pages that no copy shares
	size  int64
}

func (c *content) clone() content {
	clear(c.owned)
	return content{slices.Clone(c.pages), make([]bool, len(c.pages)), c.size}
}

func (c *content) readAt(p []byte, offset int64) (n int) {
	for n < len(p) && offset < c.size {
		from := offset % pageSize
		part := c.pages[offset/pageSize][from:min(pageSize, from+c.size-offset)]
		copied := copy(p[n:], part)
		n, offset = n+copied, offset+int64(copied)
	}
	return n
}

func (c *content) writeAt(p []byte, offset int64) {
	c.grow(offset + int64(len(p)))
	for len(p) > 0 {
		n := copy(c.page(offset / pageSize)[offset%pageSize:], p)
		p, offset = p[n:], offset+int64(n)
	}
}

// page returns a page to be written.
func (c *content) page(i int64) []byte {
	if !c.owned[i] {
		c.pages[i], c.owned[i] = bytes.Clone(c.pages[i]), true
	}
	return c.pages[i]
}

func (c *content) grow(size int64) {
	for int64(len(c.pages))*pageSize < size {
		c.pages, c.owned = append(c.pages, make([]byte, pageSize)), append(c.owned, true)
	}
	c.size = max(c.size, size)
}

func (c *content) truncate(size int64) {
	if size >= c.size {
		c.grow(size)
		return
	}
	kept := (size + pageSize - 1) / pageSize
	c.pages, c.owned = c.pages[:kept], c.owned[:kept]
	if rest := size % pageSize; rest > 0 {
		clear(c.page(kept - 1)[rest:])
	}
	c.size = size
}

// change is a write or, if data is nil, a truncation.
type change struct {
	offset int64
	data   []byte
}

// inode is a file on a disk.
type inode struct {
	content          // what processes see
	synced  content  // what a power cut leaves
	pending []change // since the last sync
	locked  *process // the process that has locked it
}

func (i *inode) apply(c change) {
	if c.data == nil {
		i.truncate(c.offset)
	} else {
		i.writeAt(c.data, c.offset)
	}
	i.pending = append(i.pending, c)
}

func (i *inode) sync() {
	if len(i.pending) > 0 {
		i.synced, i.pending = i.clone(), nil
	}
}

// disk is a disk in memory. It keeps what processes see and what is durable apart.
type disk struct {
	mu      sync.Mutex
	choices choices
	history *history
	name    string
	files   map[string]*inode // as processes see them
	durable map[string]*inode // as a power cut leaves them
	cuts    int
}

func newDisk(c choices, h *history, name string) *disk {
	return &disk{choices: c, history: h, name: name, files: map[string]*inode{}, durable: map[string]*inode{}}
}

var (
	errDead   = errors.New("world: the process is dead")
	errDisk   = errors.New("world: input/output error")
	errLocked = errors.New("world: the file is locked")
)

// open returns a file, which it creates if create is set.
func (d *disk) open(p *process, name string, create bool) (file *file, existed bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.isDead() {
		return nil, false, errDead
	}
	i, existed := d.files[name]
	if !existed && !create {
		return nil, false, fs.ErrNotExist
	}
	if !existed {
		i = new(inode)
		d.files[name] = i
	}
	return newFile(d, i, p), existed, nil
}

func (d *disk) remove(p *process, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.isDead() {
		return errDead
	}
	if d.files[name] == nil {
		return fs.ErrNotExist
	}
	delete(d.files, name)
	return nil
}

func (d *disk) exists(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.files[name] != nil
}

// syncDir makes the names of a directory durable.
func (d *disk) syncDir(p *process, dir string) error {
	return p.do("sync "+dir, true, func(failed bool) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		switch {
		case p.isDead():
			return errDead
		case failed:
			return errDisk
		}
		d.syncNames(dir)
		return nil
	})
}

func (d *disk) syncNames(dir string) {
	for name, i := range d.files {
		if path.Dir(name) == dir {
			d.durable[name] = i
		}
	}
	for name := range d.durable {
		if d.files[name] == nil && path.Dir(name) == dir {
			delete(d.durable, name)
		}
	}
}

// unlock releases the locks of a dead process.
func (d *disk) unlock(p *process) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, i := range d.files {
		if i.locked == p {
			i.locked = nil
		}
	}
}

// cut cuts the power. Of the writes since the last sync of a file, each is kept, lost or torn, and
// of the names since the last sync of the directory each is kept or lost.
func (d *disk) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cuts++
	names := map[string]bool{}
	for name := range d.files {
		names[name] = true
	}
	for name := range d.durable {
		names[name] = true
	}
	after := map[string]*inode{}
	for name := range names {
		subject := fmt.Sprint(d.name, " cut ", d.cuts, " ", name)
		i := d.durable[name]
		if i != d.files[name] && d.choices.below(2, subject, -1) == 0 {
			i = d.files[name]
		}
		if i != nil {
			d.tear(i, subject)
			after[name] = i
		}
	}
	d.files, d.durable = after, map[string]*inode{}
	for name, i := range after {
		d.durable[name] = i
	}
}

// tear decides about the writes of a file that are not synced.
func (d *disk) tear(i *inode, subject string) {
	all := d.choices.below(4, subject, -2) // also all or none, as most disks do
	kept := 0
	for n, c := range i.pending {
		choice := d.choices.below(4, subject, n)
		switch {
		case all == 0 || all > 1 && choice == 0: // lost
		case all == 1 || choice == 1 || c.data == nil:
			i.keep(c)
			kept++
		default:
			d.keepSectors(i, c, subject, n)
			kept++
		}
	}
	if len(i.pending) > 0 {
		d.history.add(subject, len(i.pending), fmt.Sprintf("keeps %d unsynced writes", kept))
	}
	i.content, i.pending, i.locked = i.synced.clone(), nil, nil
}

func (i *inode) keep(c change) {
	if c.data == nil {
		i.synced.truncate(c.offset)
	} else {
		i.synced.writeAt(c.data, c.offset)
	}
}

// keepSectors keeps some of the sectors of a write.
func (d *disk) keepSectors(i *inode, c change, subject string, n int) {
	for at := c.offset; at < c.offset+int64(len(c.data)); {
		end := min((at/sectorSize+1)*sectorSize, c.offset+int64(len(c.data)))
		if d.choices.below(2, subject+" sector", n<<20|int(at/sectorSize)) == 0 {
			i.synced.writeAt(c.data[at-c.offset:end-c.offset], at)
		}
		at = end
	}
}

// file is an open file of a process. It implements [machine.File].
type file struct {
	disk    *disk
	inode   *inode
	process *process
	offset  int64
}

func newFile(d *disk, i *inode, p *process) *file { return &file{disk: d, inode: i, process: p} }

func (f *file) ReadAt(p []byte, offset int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.process.isDead() {
		return 0, errDead
	}
	n := f.inode.readAt(p, offset)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) WriteAt(p []byte, offset int64) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	err = f.process.do("write", true, func(failed bool) error {
		f.disk.mu.Lock()
		defer f.disk.mu.Unlock()
		if f.process.isDead() {
			return errDead
		}
		if n = len(p); failed {
			n /= 2
		}
		if n > 0 {
			f.inode.apply(change{offset, bytes.Clone(p[:n])})
		}
		if failed {
			return errDisk
		}
		return nil
	})
	return n, err
}

func (f *file) Write(p []byte) (int, error) {
	n, err := f.WriteAt(p, f.offset)
	f.offset += int64(n)
	return n, err
}

func (f *file) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.offset
	case io.SeekEnd:
		offset += f.size()
	}
	f.offset = offset
	return offset, nil
}

func (f *file) size() int64 {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return f.inode.size
}

func (f *file) Truncate(size int64) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.process.isDead() {
		return errDead
	}
	f.inode.apply(change{offset: size})
	return nil
}

func (f *file) Sync() error {
	return f.process.do("sync", true, func(failed bool) error {
		f.disk.mu.Lock()
		defer f.disk.mu.Unlock()
		switch {
		case f.process.isDead():
			return errDead
		case failed:
			return errDisk
		}
		f.inode.sync()
		return nil
	})
}

func (f *file) Close() error { return nil }
