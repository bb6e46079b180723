package cutfs

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

const sIFDIR = syscall.S_IFDIR

type server struct {
	fuse.RawFileSystem
	*Disk
}

// Mount serves the disk at a folder. Without root and without fusermount3 it fails: skip the test then.
func (d *Disk) Mount(at string) (unmount func() error, err error) {
	s, err := fuse.NewServer(&server{fuse.NewDefaultRawFileSystem(), d}, at, &fuse.MountOptions{
		DirectMount: true, AllowOther: os.Getuid() == 0, Name: "cutfs", FsName: "cutfs", DisableXAttrs: true, DisableReadDirPlus: true,
		ExplicitDataCacheControl: true, Options: []string{"default_permissions"}, MaxWrite: 1 << 20, MaxBackground: 64,
	})
	if err != nil {
		return nil, err
	}
	// go-fuse opens /dev/fuse without O_CLOEXEC: a child that has it keeps the connection alive when this process dies, and whoever
	// waits for an answer, the child itself perhaps, waits for ever (umount2 with MNT_FORCE ends that).
	fds, _ := filepath.Glob("/proc/self/fd/*")
	for _, f := range fds {
		if to, _ := os.Readlink(f); to == "/dev/fuse" {
			fd, _ := strconv.Atoi(filepath.Base(f))
			syscall.CloseOnExec(fd)
		}
	}
	go s.Serve()
	return s.Unmount, s.WaitMount()
}

// at finds a node. A change counts down to the cut.
func (s *server) at(id uint64, change bool) (*node, fuse.Status) {
	if change && !s.off && s.left > 0 {
		if s.left--; s.left == 0 {
			s.turnOff()
		}
	}
	if s.off {
		return nil, fuse.EIO
	}
	if change && s.alive > 0 {
		if s.alive--; s.alive == 0 {
			s.kill()
			close(s.dead)
			return nil, fuse.EINTR
		}
	}
	if n := s.nodes[id]; n != nil {
		return n, fuse.OK
	}
	return nil, fuse.Status(syscall.ESTALE)
}

func (n *node) attr(a *fuse.Attr) {
	a.Ino, a.Mode, a.Nlink, a.Uid, a.Gid, a.Blksize = n.id, n.mode, 1, n.uid, n.gid, pageSize
	if n.live != nil {
		a.Size, a.Blocks = uint64(n.live.size), uint64(len(n.live.pages)*8)
	} else {
		a.Size = uint64(len(n.target))
	}
	t := time.Unix(0, n.mtime)
	a.SetTimes(&t, &t, &t)
}

const valid = 3600 // seconds: nobody changes it but through the kernel

func (s *server) entry(n *node, out *fuse.EntryOut) {
	s.register(n)
	n.lookups++
	out.NodeId, out.Generation, out.AttrValid = n.id, 1, valid
	n.attr(&out.Attr)
}

func (s *server) Lookup(_ <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir, st := s.at(h.NodeId, false)
	if st != fuse.OK {
		return st
	}
	n := dir.kids[name]
	if n == nil {
		return fuse.ENOENT
	}
	s.entry(n, out)
	return fuse.OK
}

func (s *server) Forget(id, times uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.nodes[id]; n != nil && id != 1 {
		if n.lookups -= min(times, n.lookups); n.lookups == 0 {
			delete(s.nodes, id)
		}
	}
}

func (s *server) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, st := s.at(in.NodeId, false)
	if st == fuse.OK {
		out.AttrValid = valid
		n.attr(&out.Attr)
	}
	return st
}

func (s *server) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	size, resize := in.GetSize()
	n, st := s.at(in.NodeId, resize)
	if st != fuse.OK {
		return st
	}
	if m, ok := in.GetMode(); ok {
		n.mode = n.mode&syscall.S_IFMT | m&0o7777
	}
	if v, ok := in.GetUID(); ok {
		n.uid = v
	}
	if v, ok := in.GetGID(); ok {
		n.gid = v
	}
	if t, ok := in.GetMTime(); ok {
		n.mtime = t.UnixNano()
	}
	if resize && n.live != nil {
		s.Count.Writes++
		n.mtime = time.Now().UnixNano()
		s.truncate(n, int64(size))
	}
	out.AttrValid = valid
	n.attr(&out.Attr)
	return fuse.OK
}

// add makes a node under a name.
func (s *server) add(h *fuse.InHeader, name string, n *node, out *fuse.EntryOut) fuse.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir, st := s.at(h.NodeId, true)
	if st != fuse.OK {
		return st
	}
	if dir.kids[name] != nil {
		return fuse.Status(syscall.EEXIST)
	}
	if n.id == 0 {
		n.uid, n.gid, n.mtime = h.Uid, h.Gid, time.Now().UnixNano()
	}
	s.Count.Names++
	s.names(set{dir, name, n})
	s.entry(n, out)
	return fuse.OK
}

func newFile(mode uint32) *node {
	return &node{mode: syscall.S_IFREG | mode&0o7777, live: newBlob(), disk: newBlob()}
}

func (s *server) Mknod(_ <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	n := newFile(in.Mode)
	if in.Mode&syscall.S_IFMT != 0 {
		n.mode = in.Mode // a socket
	}
	return s.add(&in.InHeader, name, n, out)
}

func (s *server) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	return s.add(&in.InHeader, name, newDir(in.Mode&0o7777|sIFDIR, 0, 0), out)
}

func (s *server) Symlink(_ <-chan struct{}, h *fuse.InHeader, to, name string, out *fuse.EntryOut) fuse.Status {
	return s.add(h, name, &node{mode: syscall.S_IFLNK | 0o777, target: to}, out)
}

func (s *server) Readlink(_ <-chan struct{}, h *fuse.InHeader) ([]byte, fuse.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, st := s.at(h.NodeId, false)
	if st != fuse.OK {
		return nil, st
	}
	return []byte(n.target), st
}

func (s *server) Link(_ <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	s.mu.Lock()
	n, st := s.at(in.Oldnodeid, false)
	s.mu.Unlock()
	if st != fuse.OK {
		return st
	}
	return s.add(&in.InHeader, name, n, out)
}

func (s *server) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	out.OpenFlags = fuse.FOPEN_KEEP_CACHE
	return s.add(&in.InHeader, name, newFile(in.Mode), &out.EntryOut)
}

func (s *server) remove(h *fuse.InHeader, name string) fuse.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir, st := s.at(h.NodeId, true)
	if st != fuse.OK {
		return st
	}
	n := dir.kids[name]
	if n == nil {
		return fuse.ENOENT
	}
	if len(n.kids) > 0 {
		return fuse.Status(syscall.ENOTEMPTY)
	}
	s.Count.Names++
	s.names(set{dir, name, nil})
	return fuse.OK
}

func (s *server) Unlink(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return s.remove(h, name)
}

func (s *server) Rmdir(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return s.remove(h, name)
}

func (s *server) Rename(_ <-chan struct{}, in *fuse.RenameIn, from, to string) fuse.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, st := s.at(in.NodeId, true)
	if st != fuse.OK {
		return st
	}
	b, st := s.at(in.Newdir, false)
	if st != fuse.OK {
		return st
	}
	n, old := a.kids[from], b.kids[to]
	switch {
	case n == nil:
		return fuse.ENOENT
	case in.Flags > 1:
		return fuse.EINVAL
	case old != nil && in.Flags == 1:
		return fuse.Status(syscall.EEXIST)
	case old != nil && len(old.kids) > 0:
		return fuse.Status(syscall.ENOTEMPTY)
	}
	s.Count.Names++
	s.names(set{a, from, nil}, set{b, to, n})
	return fuse.OK
}

func (s *server) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, st := s.at(in.NodeId, false)
	out.OpenFlags = fuse.FOPEN_KEEP_CACHE
	return st
}

func (s *server) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, st := s.at(in.NodeId, false)
	if st != fuse.OK {
		return nil, st
	}
	return fuse.ReadResultData(buf[:n.live.read(buf, int64(in.Offset))]), fuse.OK
}

func (s *server) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, st := s.at(in.NodeId, true)
	if st != fuse.OK {
		return 0, st
	}
	s.Count.Writes++
	s.Count.Bytes += int64(len(data))
	n.mtime = time.Now().UnixNano()
	s.write(n, data, int64(in.Offset))
	if in.Flags&(syscall.O_DSYNC|syscall.O_SYNC) != 0 {
		s.sync(n)
	}
	return uint32(len(data)), fuse.OK
}

func (s *server) Fallocate(_ <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, st := s.at(in.NodeId, true)
	if st == fuse.OK && in.Mode != 0 {
		return fuse.Status(syscall.EOPNOTSUPP)
	}
	if end := int64(in.Offset + in.Length); st == fuse.OK && end > n.live.size {
		s.truncate(n, end)
	}
	return st
}

func (s *server) fsync(cancel <-chan struct{}, id uint64) fuse.Status {
	if s.Delay > 0 { // who is killed meanwhile was promised nothing
		select {
		case <-cancel:
			return fuse.EINTR
		case <-time.After(s.Delay):
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n, st := s.at(id, true)
	if st == fuse.OK {
		s.sync(n)
	}
	return st
}

func (s *server) Fsync(c <-chan struct{}, in *fuse.FsyncIn) fuse.Status { return s.fsync(c, in.NodeId) }
func (s *server) FsyncDir(c <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return s.fsync(c, in.NodeId)
}
func (s *server) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status   { return fuse.OK } // close makes nothing durable
func (s *server) Release(<-chan struct{}, *fuse.ReleaseIn)           {}
func (s *server) Access(<-chan struct{}, *fuse.AccessIn) fuse.Status { return fuse.OK }

func (s *server) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, st := s.at(in.NodeId, false)
	s.seq++
	out.Fh = s.seq
	return st
}

func (s *server) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir, st := s.at(in.NodeId, false)
	if st != fuse.OK {
		return st
	}
	if in.Offset == 0 { // names that go while somebody reads must not move the others
		s.dirs[in.Fh] = slices.Sorted(maps.Keys(dir.kids))
	}
	list := s.dirs[in.Fh]
	for i := int(in.Offset); i < len(list); i++ {
		mode, ino := uint32(syscall.S_IFREG), uint64(1<<40)
		if n := dir.kids[list[i]]; n != nil {
			mode = n.mode
		}
		if !out.AddDirEntry(fuse.DirEntry{Mode: mode, Name: list[i], Ino: ino, Off: uint64(i + 1)}) {
			break
		}
	}
	return fuse.OK
}

func (s *server) ReleaseDir(in *fuse.ReleaseIn) {
	s.mu.Lock()
	delete(s.dirs, in.Fh)
	s.mu.Unlock()
}

func (s *server) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	out.Bsize, out.Frsize, out.NameLen = pageSize, pageSize, 255
	out.Blocks, out.Bfree, out.Bavail, out.Files, out.Ffree = 1<<22, 1<<22, 1<<22, 1<<20, 1<<20
	return fuse.OK
}
