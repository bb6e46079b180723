package world

import (
	"bytes"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// The VFS lets SQLite use the simulated disks. The path of a file starts with the number of a
// process, such as /7/labhealth.db.

const vfsName = "world"

// mounts are the processes that use SQLite, by their numbers.
var mounts struct {
	mu   sync.Mutex
	last int
	all  map[int]*mount
}

// mount is the file system of a process: its disk, and what its connections share.
type mount struct {
	process *process
	number  int
	mu      sync.Mutex
	locks   map[string]*fileLocks
	shared  map[string]*sharedMemory
}

func newMount(p *process) *mount {
	m := &mount{process: p, locks: map[string]*fileLocks{}, shared: map[string]*sharedMemory{}}
	mounts.mu.Lock()
	defer mounts.mu.Unlock()
	mounts.last++
	m.number = mounts.last
	if mounts.all == nil {
		mounts.all = map[int]*mount{}
	}
	mounts.all[m.number] = m
	return m
}

func (m *mount) remove() {
	mounts.mu.Lock()
	defer mounts.mu.Unlock()
	delete(mounts.all, m.number)
}

// dataSource returns the name of a database for [sql.Open].
func (m *mount) dataSource(name string) string {
	return fmt.Sprintf("file:/%d%s?vfs=%s&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)", m.number, name, vfsName)
}

// split returns the mount and the name of a path.
func split(path string) (*mount, string) {
	number, name, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	n, err := strconv.Atoi(number)
	if err != nil {
		return nil, ""
	}
	mounts.mu.Lock()
	defer mounts.mu.Unlock()
	return mounts.all[n], "/" + name
}

// fileLocks are the locks of the connections of a process to a database.
type fileLocks struct {
	shared                       int
	reserved, pending, exclusive *openFile
}

// sharedMemory is the index of a write-ahead log. It ends with the process.
type sharedMemory struct {
	users     int
	regions   []uintptr
	shared    [8]int
	exclusive [8]*openFile
}

// openFile is a file that SQLite has opened.
type openFile struct {
	*file
	mount   *mount
	name    string
	flags   int32
	level   int32 // of its lock
	isNew   bool  // its name is synced with its content
	mapped  *sharedMemory
	shmHeld [8]int8 // 1 shared, 2 exclusive
}

// cFile is the sqlite3_file of an openFile.
type cFile struct {
	methods uintptr
	number  uintptr
}

var openFiles struct {
	mu   sync.Mutex
	last uintptr
	all  map[uintptr]*openFile
}

// pointer converts an address of C.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

func fileAt(address uintptr) *openFile {
	openFiles.mu.Lock()
	defer openFiles.mu.Unlock()
	return openFiles.all[(*cFile)(pointer(address)).number]
}

func memory(address uintptr, n int32) []byte { return unsafe.Slice((*byte)(pointer(address)), n) }

// function returns the address of a function for C. F is a struct with the function.
func function[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

type (
	fileFunc struct {
		f func(*libc.TLS, uintptr) int32
	}
	fileIntFunc struct {
		f func(*libc.TLS, uintptr, int32) int32
	}
	filePointerFunc struct {
		f func(*libc.TLS, uintptr, uintptr) int32
	}
	transferFunc struct {
		f func(*libc.TLS, uintptr, uintptr, int32, int64) int32
	}
)

var ioMethods = sqlite3.Tsqlite3_io_methods{
	FiVersion: 2,
	FxClose:   function(fileFunc{vfsClose}),
	FxRead:    function(transferFunc{vfsRead}),
	FxWrite:   function(transferFunc{vfsWrite}),
	FxTruncate: function(struct {
		f func(*libc.TLS, uintptr, int64) int32
	}{vfsTruncate}),
	FxSync:     function(fileIntFunc{vfsSync}),
	FxFileSize: function(filePointerFunc{vfsFileSize}),
	FxLock:     function(fileIntFunc{vfsLock}),
	FxUnlock:   function(fileIntFunc{vfsUnlock}),

	FxCheckReservedLock: function(filePointerFunc{vfsCheckReservedLock}),
	FxFileControl: function(struct {
		f func(*libc.TLS, uintptr, int32, uintptr) int32
	}{vfsFileControl}),
	FxSectorSize:            function(fileFunc{vfsSectorSize}),
	FxDeviceCharacteristics: function(fileFunc{vfsDeviceCharacteristics}),
	FxShmMap: function(struct {
		f func(*libc.TLS, uintptr, int32, int32, int32, uintptr) int32
	}{vfsShmMap}),
	FxShmLock: function(struct {
		f func(*libc.TLS, uintptr, int32, int32, int32) int32
	}{vfsShmLock}),
	FxShmBarrier: function(struct{ f func(*libc.TLS, uintptr) }{vfsShmBarrier}),
	FxShmUnmap:   function(fileIntFunc{vfsShmUnmap}),
}

// registerVFS registers the VFS once. It must be called outside of any bubble.
var registerVFS = sync.OnceFunc(func() {
	tls := libc.NewTLS()
	name, err := libc.CString(vfsName)
	if err != nil {
		panic(err)
	}
	address := libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(sqlite3.Tsqlite3_vfs{})))
	*(*sqlite3.Tsqlite3_vfs)(pointer(address)) = sqlite3.Tsqlite3_vfs{
		FiVersion: 2, FszOsFile: int32(unsafe.Sizeof(cFile{})), FmxPathname: 512, FzName: name,
		FxOpen: function(struct {
			f func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32
		}{vfsOpen}),
		FxDelete: function(struct {
			f func(*libc.TLS, uintptr, uintptr, int32) int32
		}{vfsDelete}),
		FxAccess: function(struct {
			f func(*libc.TLS, uintptr, uintptr, int32, uintptr) int32
		}{vfsAccess}),
		FxFullPathname: function(struct {
			f func(*libc.TLS, uintptr, uintptr, int32, uintptr) int32
		}{vfsFullPathname}),
		FxRandomness: function(struct {
			f func(*libc.TLS, uintptr, int32, uintptr) int32
		}{vfsRandomness}),
		FxSleep:       function(fileIntFunc{vfsSleep}),
		FxCurrentTime: function(filePointerFunc{vfsCurrentTime}),
		FxGetLastError: function(struct {
			f func(*libc.TLS, uintptr, int32, uintptr) int32
		}{vfsGetLastError}),
		FxCurrentTimeInt64: function(filePointerFunc{vfsCurrentTimeInt64}),
	}
	if code := sqlite3.Xsqlite3_vfs_register(tls, address, 0); code != sqlite3.SQLITE_OK {
		panic(code)
	}
})

func vfsOpen(_ *libc.TLS, _, zName, pFile uintptr, flags int32, pOutFlags uintptr) int32 {
	*(*cFile)(pointer(pFile)) = cFile{}
	f := &openFile{flags: flags}
	if zName == 0 { // a temporary file
		f.mount = &mount{process: &process{}, locks: map[string]*fileLocks{}, shared: map[string]*sharedMemory{}}
		f.file = newFile(newDisk(choices{}, new(history), "temporary"), new(inode), f.mount.process)
	} else {
		f.mount, f.name = split(libc.GoString(zName))
		if f.mount == nil {
			return sqlite3.SQLITE_CANTOPEN
		}
		opened, _, err := f.mount.process.computer.disk.open(f.mount.process, f.name, flags&sqlite3.SQLITE_OPEN_CREATE != 0)
		if err != nil {
			return sqlite3.SQLITE_CANTOPEN
		}
		f.file = opened
		// As in the VFS of Unix, which syncs the directory with the log or journal, once.
		f.isNew = flags&sqlite3.SQLITE_OPEN_CREATE != 0 && flags&(sqlite3.SQLITE_OPEN_WAL|sqlite3.SQLITE_OPEN_MAIN_JOURNAL|sqlite3.SQLITE_OPEN_SUPER_JOURNAL) != 0
	}
	if pOutFlags != 0 {
		*(*int32)(pointer(pOutFlags)) = flags
	}
	openFiles.mu.Lock()
	defer openFiles.mu.Unlock()
	openFiles.last++
	if openFiles.all == nil {
		openFiles.all = map[uintptr]*openFile{}
	}
	openFiles.all[openFiles.last] = f
	*(*cFile)(pointer(pFile)) = cFile{uintptr(unsafe.Pointer(&ioMethods)), openFiles.last}
	return sqlite3.SQLITE_OK
}

func vfsClose(tls *libc.TLS, pFile uintptr) int32 {
	vfsUnlock(tls, pFile, sqlite3.SQLITE_LOCK_NONE)
	openFiles.mu.Lock()
	defer openFiles.mu.Unlock()
	delete(openFiles.all, (*cFile)(pointer(pFile)).number)
	return sqlite3.SQLITE_OK
}

func vfsRead(_ *libc.TLS, pFile, buf uintptr, n int32, offset int64) int32 {
	f, p := fileAt(pFile), memory(buf, n)
	got, err := f.ReadAt(p, offset)
	switch {
	case err == errDead:
		return sqlite3.SQLITE_IOERR_READ
	case got < int(n):
		clear(p[got:])
		return sqlite3.SQLITE_IOERR_SHORT_READ
	}
	return sqlite3.SQLITE_OK
}

func vfsWrite(_ *libc.TLS, pFile, buf uintptr, n int32, offset int64) int32 {
	if _, err := fileAt(pFile).WriteAt(memory(buf, n), offset); err != nil {
		return sqlite3.SQLITE_IOERR_WRITE
	}
	return sqlite3.SQLITE_OK
}

func vfsTruncate(_ *libc.TLS, pFile uintptr, size int64) int32 {
	if fileAt(pFile).Truncate(size) != nil {
		return sqlite3.SQLITE_IOERR_TRUNCATE
	}
	return sqlite3.SQLITE_OK
}

func vfsSync(_ *libc.TLS, pFile uintptr, _ int32) int32 {
	f := fileAt(pFile)
	if f.Sync() != nil {
		return sqlite3.SQLITE_IOERR_FSYNC
	}
	if f.isNew {
		if f.disk.syncDir(f.process, "/") != nil {
			return sqlite3.SQLITE_IOERR_DIR_FSYNC
		}
		f.isNew = false
	}
	return sqlite3.SQLITE_OK
}

func vfsFileSize(_ *libc.TLS, pFile, size uintptr) int32 {
	*(*int64)(pointer(size)) = fileAt(pFile).size()
	return sqlite3.SQLITE_OK
}

func vfsLock(_ *libc.TLS, pFile uintptr, level int32) int32 {
	f := fileAt(pFile)
	m := f.mount
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.locks[f.name]
	if l == nil {
		l = new(fileLocks)
		m.locks[f.name] = l
	}
	isFree := func(owner *openFile) bool { return owner == nil || owner == f }
	switch {
	case level <= f.level:
		return sqlite3.SQLITE_OK
	case level == sqlite3.SQLITE_LOCK_SHARED:
		if l.pending != nil || l.exclusive != nil {
			return sqlite3.SQLITE_BUSY
		}
		l.shared++
	case level == sqlite3.SQLITE_LOCK_RESERVED:
		if !isFree(l.reserved) {
			return sqlite3.SQLITE_BUSY
		}
		l.reserved = f
	default: // exclusive
		if !isFree(l.reserved) || !isFree(l.pending) {
			return sqlite3.SQLITE_BUSY
		}
		l.pending = f
		f.level = max(f.level, sqlite3.SQLITE_LOCK_PENDING)
		if l.shared > 1 {
			return sqlite3.SQLITE_BUSY
		}
		l.exclusive = f
	}
	f.level = level
	return sqlite3.SQLITE_OK
}

func vfsUnlock(_ *libc.TLS, pFile uintptr, level int32) int32 {
	f := fileAt(pFile)
	m := f.mount
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.locks[f.name]; l != nil && f.level > level {
		for _, owner := range []**openFile{&l.reserved, &l.pending, &l.exclusive} {
			if *owner == f {
				*owner = nil
			}
		}
		if level == sqlite3.SQLITE_LOCK_NONE {
			l.shared--
		}
		f.level = level
	}
	return sqlite3.SQLITE_OK
}

func vfsCheckReservedLock(_ *libc.TLS, pFile, result uintptr) int32 {
	f := fileAt(pFile)
	f.mount.mu.Lock()
	defer f.mount.mu.Unlock()
	l := f.mount.locks[f.name]
	*(*int32)(pointer(result)) = libc.Bool32(l != nil && l.reserved != nil)
	return sqlite3.SQLITE_OK
}

func vfsFileControl(*libc.TLS, uintptr, int32, uintptr) int32 { return sqlite3.SQLITE_NOTFOUND }

func vfsSectorSize(*libc.TLS, uintptr) int32 { return pageSize }

func vfsDeviceCharacteristics(*libc.TLS, uintptr) int32 {
	return sqlite3.SQLITE_IOCAP_POWERSAFE_OVERWRITE
}

func vfsShmMap(tls *libc.TLS, pFile uintptr, region, size, extend int32, result uintptr) int32 {
	f := fileAt(pFile)
	m := f.mount
	m.mu.Lock()
	defer m.mu.Unlock()
	if f.mapped == nil {
		if m.shared[f.name] == nil {
			m.shared[f.name] = new(sharedMemory)
		}
		f.mapped = m.shared[f.name]
		f.mapped.users++
	}
	s := f.mapped
	for len(s.regions) <= int(region) {
		if extend == 0 {
			*(*uintptr)(pointer(result)) = 0
			return sqlite3.SQLITE_OK
		}
		s.regions = append(s.regions, libc.Xcalloc(tls, 1, libc.Tsize_t(size)))
	}
	*(*uintptr)(pointer(result)) = s.regions[region]
	return sqlite3.SQLITE_OK
}

func vfsShmLock(_ *libc.TLS, pFile uintptr, offset, n, flags int32) int32 {
	f := fileAt(pFile)
	f.mount.mu.Lock()
	defer f.mount.mu.Unlock()
	s := f.mapped
	if flags&sqlite3.SQLITE_SHM_LOCK != 0 {
		for i := offset; i < offset+n; i++ {
			busy := s.exclusive[i] != nil && s.exclusive[i] != f
			if flags&sqlite3.SQLITE_SHM_EXCLUSIVE != 0 {
				busy = busy || s.shared[i] > int(f.shmHeld[i]&1)
			}
			if busy {
				return sqlite3.SQLITE_BUSY
			}
		}
	}
	for i := offset; i < offset+n; i++ {
		f.setShmLock(i, flags)
	}
	return sqlite3.SQLITE_OK
}

// setShmLock changes one lock. The caller holds the mutex of the mount.
func (f *openFile) setShmLock(i, flags int32) {
	s := f.mapped
	switch f.shmHeld[i] {
	case 1:
		s.shared[i]--
	case 2:
		s.exclusive[i] = nil
	}
	f.shmHeld[i] = 0
	switch {
	case flags&sqlite3.SQLITE_SHM_LOCK == 0:
	case flags&sqlite3.SQLITE_SHM_EXCLUSIVE != 0:
		f.shmHeld[i], s.exclusive[i] = 2, f
	default:
		f.shmHeld[i] = 1
		s.shared[i]++
	}
}

func vfsShmBarrier(_ *libc.TLS, pFile uintptr) {
	m := fileAt(pFile).mount
	m.mu.Lock()
	defer m.mu.Unlock()
}

func vfsShmUnmap(tls *libc.TLS, pFile uintptr, _ int32) int32 {
	f := fileAt(pFile)
	f.mount.mu.Lock()
	defer f.mount.mu.Unlock()
	s := f.mapped
	if s == nil {
		return sqlite3.SQLITE_OK
	}
	for i := range int32(len(f.shmHeld)) {
		f.setShmLock(i, 0)
	}
	f.mapped = nil
	if s.users--; s.users == 0 {
		for _, region := range s.regions {
			libc.Xfree(tls, region)
		}
		delete(f.mount.shared, f.name)
	}
	return sqlite3.SQLITE_OK
}

func vfsDelete(_ *libc.TLS, _, zName uintptr, syncDir int32) int32 {
	m, name := split(libc.GoString(zName))
	if m == nil {
		return sqlite3.SQLITE_IOERR_DELETE
	}
	d := m.process.computer.disk
	switch err := d.remove(m.process, name); {
	case err == fs.ErrNotExist:
		return sqlite3.SQLITE_IOERR_DELETE_NOENT
	case err != nil:
		return sqlite3.SQLITE_IOERR_DELETE
	case syncDir != 0 && d.syncDir(m.process, "/") != nil:
		return sqlite3.SQLITE_IOERR_DIR_FSYNC
	}
	return sqlite3.SQLITE_OK
}

func vfsAccess(_ *libc.TLS, _, zName uintptr, _ int32, result uintptr) int32 {
	m, name := split(libc.GoString(zName))
	*(*int32)(pointer(result)) = libc.Bool32(m != nil && m.process.computer.disk.exists(name))
	return sqlite3.SQLITE_OK
}

func vfsFullPathname(_ *libc.TLS, _, zName uintptr, n int32, out uintptr) int32 {
	name := append([]byte(libc.GoString(zName)), 0)
	if len(name) > int(n) {
		return sqlite3.SQLITE_CANTOPEN
	}
	copy(memory(out, n), name)
	return sqlite3.SQLITE_OK
}

func vfsRandomness(_ *libc.TLS, _ uintptr, n int32, out uintptr) int32 {
	copy(memory(out, n), bytes.Repeat([]byte{7}, int(n)))
	return n
}

func vfsSleep(_ *libc.TLS, _ uintptr, microseconds int32) int32 {
	time.Sleep(time.Duration(microseconds) * time.Microsecond)
	return microseconds
}

// julianEpoch is 1970 in milliseconds since the start of the Julian days.
const julianEpoch = 210866760000000

func vfsCurrentTime(_ *libc.TLS, _, out uintptr) int32 {
	*(*float64)(pointer(out)) = float64(julianEpoch+time.Now().UnixMilli()) / 86400000
	return sqlite3.SQLITE_OK
}

func vfsCurrentTimeInt64(_ *libc.TLS, _, out uintptr) int32 {
	*(*int64)(pointer(out)) = julianEpoch + time.Now().UnixMilli()
	return sqlite3.SQLITE_OK
}

func vfsGetLastError(*libc.TLS, uintptr, int32, uintptr) int32 { return 0 }
