package cutfs

import (
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// server responds to the requests of the kernel.
type server struct {
	fuse.RawFileSystem // responds with ENOSYS
	*Disk
}

// statuses that package fuse does not name.
const (
	errExists   = fuse.Status(syscall.EEXIST)
	errNotEmpty = fuse.Status(syscall.ENOTEMPTY)
	errStale    = fuse.Status(syscall.ESTALE)
)

// attributesValid is how long the kernel caches attributes, in seconds: it makes all changes.
const attributesValid = 3600

// find returns a node for a request that changes nothing. The caller holds s.mu, as for begin.
func (s *server) find(id uint64) (*node, fuse.Status) {
	if s.isOff {
		return nil, fuse.EIO
	}
	if n := s.nodes[id]; n != nil {
		return n, fuse.OK
	}
	return nil, errStale // since the power went
}

// begin returns the node of an operation, unless the power goes before it. It gives s.mu up while
// the operation is held.
func (s *server) begin(id uint64, op Operation) (*node, fuse.Status) {
	n, status := s.find(id)
	if status != fuse.OK {
		return nil, status
	}
	if s.left > 0 {
		if s.left--; s.left == 0 {
			s.turnOff()
			return nil, fuse.EIO
		}
	}
	s.operations++
	h := s.countToHold(op)
	if h == nil {
		return n, fuse.OK
	}
	gone := s.gone
	s.mu.Unlock()
	select {
	case <-h.released:
	case <-gone:
	}
	s.mu.Lock()
	return nil, fuse.EIO
}

func (n *node) attributes(a *fuse.Attr) {
	a.Ino, a.Mode, a.Nlink, a.Uid, a.Gid, a.Blksize = n.id, n.mode, 1, n.uid, n.gid, pageSize
	a.Size = uint64(len(n.target))
	if n.live != nil {
		a.Size, a.Blocks = uint64(n.live.size), uint64(len(n.live.pages)*pageSize/sectorSize)
	}
	a.SetTimes(&n.modified, &n.modified, &n.modified)
}

func (s *server) entry(n *node, out *fuse.EntryOut) {
	s.register(n)
	n.lookups++
	out.NodeId, out.Generation, out.AttrValid = n.id, 1, attributesValid
	n.attributes(&out.Attr)
}

func (s *server) Lookup(_ <-chan struct{}, in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir, status := s.find(in.NodeId)
	if status != fuse.OK {
		return status
	}
	n := dir.entries[name]
	if n == nil {
		return fuse.ENOENT
	}
	s.entry(n, out)
	return fuse.OK
}

func (s *server) Forget(id, lookups uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[id]
	if n == nil || id == rootID {
		return
	}
	if n.lookups -= min(lookups, n.lookups); n.lookups == 0 {
		delete(s.nodes, id)
	}
}

func (s *server) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, status := s.find(in.NodeId)
	if status != fuse.OK {
		return status
	}
	out.AttrValid = attributesValid
	n.attributes(&out.Attr)
	return fuse.OK
}

func (s *server) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, status := s.find(in.NodeId)
	size, resizes := in.GetSize()
	if resizes {
		n, status = s.begin(in.NodeId, Write)
	}
	if status != fuse.OK {
		return status
	}
	if mode, ok := in.GetMode(); ok {
		n.mode = n.mode&syscall.S_IFMT | mode&0o7777
	}
	if uid, ok := in.GetUID(); ok {
		n.uid = uid
	}
	if gid, ok := in.GetGID(); ok {
		n.gid = gid
	}
	if modified, ok := in.GetMTime(); ok {
		n.modified = modified
	}
	if resizes && n.live != nil {
		s.truncate(n, int64(size))
	}
	out.AttrValid = attributesValid
	n.attributes(&out.Attr)
	return fuse.OK
}

// add gives a node a name.
func (s *server) add(in *fuse.InHeader, name string, n *node, out *fuse.EntryOut) fuse.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir, status := s.begin(in.NodeId, Name)
	if status != fuse.OK {
		return status
	}
	if dir.entries[name] != nil {
		return errExists
	}
	if n.id == 0 {
		n.uid, n.gid, n.modified = in.Uid, in.Gid, time.Now()
	}
	s.changeNames(nameChange{dir: dir, name: name, node: n})
	s.entry(n, out)
	return fuse.OK
}

func (s *server) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	out.OpenFlags = fuse.FOPEN_KEEP_CACHE
	return s.add(&in.InHeader, name, newFile(in.Mode), &out.EntryOut)
}

func (s *server) Mknod(_ <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	n := newFile(in.Mode)
	if in.Mode&syscall.S_IFMT != 0 {
		n.mode = in.Mode // such as a socket
	}
	return s.add(&in.InHeader, name, n, out)
}

func (s *server) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	return s.add(&in.InHeader, name, newDirectory(in.Mode), out)
}

func (s *server) Symlink(_ <-chan struct{}, in *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	return s.add(in, name, &node{mode: syscall.S_IFLNK | 0o777, target: target}, out)
}

func (s *server) Readlink(_ <-chan struct{}, in *fuse.InHeader) ([]byte, fuse.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, status := s.find(in.NodeId)
	if status != fuse.OK {
		return nil, status
	}
	return []byte(n.target), fuse.OK
}

func (s *server) Link(_ <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	s.mu.Lock()
	n, status := s.find(in.Oldnodeid)
	s.mu.Unlock()
	if status != fuse.OK {
		return status
	}
	return s.add(&in.InHeader, name, n, out)
}

func (s *server) Unlink(_ <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	return s.remove(in, name)
}

func (s *server) Rmdir(_ <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	return s.remove(in, name)
}

func (s *server) remove(in *fuse.InHeader, name string) fuse.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir, status := s.begin(in.NodeId, Name)
	if status != fuse.OK {
		return status
	}
	n := dir.entries[name]
	if n == nil {
		return fuse.ENOENT
	}
	if len(n.entries) > 0 {
		return errNotEmpty
	}
	s.changeNames(nameChange{dir: dir, name: name})
	return fuse.OK
}

func (s *server) Rename(_ <-chan struct{}, in *fuse.RenameIn, oldName, newName string) fuse.Status {
	const noReplace = 1 // the flag of renameat2
	s.mu.Lock()
	defer s.mu.Unlock()
	from, status := s.begin(in.NodeId, Name)
	if status != fuse.OK {
		return status
	}
	to, status := s.find(in.Newdir)
	if status != fuse.OK {
		return status
	}
	n, replaced := from.entries[oldName], to.entries[newName]
	switch {
	case n == nil:
		return fuse.ENOENT
	case in.Flags&^noReplace != 0:
		return fuse.EINVAL
	case replaced != nil && in.Flags == noReplace:
		return errExists
	case replaced != nil && len(replaced.entries) > 0:
		return errNotEmpty
	case replaced == n:
		return fuse.OK // both are names of the same file, and stay
	}
	s.changeNames(nameChange{dir: from, name: oldName}, nameChange{dir: to, name: newName, node: n})
	return fuse.OK
}

func (s *server) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	out.OpenFlags = fuse.FOPEN_KEEP_CACHE
	_, status := s.find(in.NodeId)
	return status
}

func (s *server) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, status := s.find(in.NodeId)
	if status != fuse.OK {
		return nil, status
	}
	return fuse.ReadResultData(buf[:n.live.read(buf, int64(in.Offset))]), fuse.OK
}

func (s *server) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (written uint32, status fuse.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, status := s.begin(in.NodeId, Write)
	if status != fuse.OK {
		return 0, status
	}
	s.write(n, data, int64(in.Offset))
	if in.Flags&(syscall.O_DSYNC|syscall.O_SYNC) != 0 {
		s.sync(n)
	}
	return uint32(len(data)), fuse.OK
}

// Fallocate extends a file. Like ext4, it keeps the space only with the size.
func (s *server) Fallocate(_ <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, status := s.begin(in.NodeId, Write)
	if status != fuse.OK {
		return status
	}
	if in.Mode != 0 {
		return fuse.Status(syscall.EOPNOTSUPP)
	}
	if size := int64(in.Offset + in.Length); size > n.live.size {
		s.truncate(n, size)
	}
	return fuse.OK
}

func (s *server) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return s.syncNode(in.NodeId, Sync)
}

func (s *server) FsyncDir(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return s.syncNode(in.NodeId, SyncDir)
}

func (s *server) syncNode(id uint64, op Operation) fuse.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, status := s.begin(id, op)
	if status != fuse.OK {
		return status
	}
	s.sync(n)
	return fuse.OK
}

// Flush makes nothing durable: closing a file does not sync it.
func (s *server) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status { return fuse.OK }

// Release does nothing: the server has no state of open files.
func (s *server) Release(<-chan struct{}, *fuse.ReleaseIn) {}

// Access permits everything: the kernel checks permissions.
func (s *server) Access(<-chan struct{}, *fuse.AccessIn) fuse.Status { return fuse.OK }

func (s *server) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, status := s.find(in.NodeId)
	s.lastRead++
	out.Fh = s.lastRead
	return status
}

func (s *server) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir, status := s.find(in.NodeId)
	if status != fuse.OK {
		return status
	}
	if in.Offset == 0 { // a name that is removed while the directory is read must not move the others
		s.readers[in.Fh] = slices.Sorted(maps.Keys(dir.entries))
	}
	names := s.readers[in.Fh]
	for i := int(in.Offset); i < len(names); i++ {
		n := dir.entries[names[i]]
		if n == nil {
			continue
		}
		if !out.AddDirEntry(fuse.DirEntry{Mode: n.mode, Name: names[i], Ino: n.id, Off: uint64(i + 1)}) {
			break
		}
	}
	return fuse.OK
}

func (s *server) ReleaseDir(in *fuse.ReleaseIn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.readers, in.Fh)
}

// StatFs reports a disk with 16 GiB of space.
func (s *server) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	out.Bsize, out.Frsize, out.NameLen = pageSize, pageSize, 255
	out.Blocks, out.Bfree, out.Bavail, out.Files, out.Ffree = 1<<22, 1<<22, 1<<22, 1<<20, 1<<20
	return fuse.OK
}
