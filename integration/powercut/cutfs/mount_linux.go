package cutfs

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// Mount serves the disk in a directory until unmount is called. It needs Linux, /dev/fuse and the
// right to mount, which root has: after an error, skip the test.
func (d *Disk) Mount(dir string) (unmount func() error, err error) {
	fs := &server{RawFileSystem: fuse.NewDefaultRawFileSystem(), Disk: d}
	options := &fuse.MountOptions{
		Name: "cutfs", FsName: "cutfs", DirectMountStrict: true, AllowOther: true, Options: []string{"default_permissions"},
		DisableXAttrs: true, DisableReadDirPlus: true, ExplicitDataCacheControl: true, MaxWrite: 1 << 20,
	}
	s, err := newServer(fs, dir, options)
	if err != nil {
		return nil, fmt.Errorf("mount a file system in memory: %w", err)
	}
	go s.Serve()
	if err := s.WaitMount(); err != nil {
		return nil, fmt.Errorf("mount a file system in memory: %w", err)
	}
	return s.Unmount, nil
}

// newServer mounts the file system. A child process must not inherit the descriptor of /dev/fuse,
// which package fuse leaves inheritable: the child would keep the file system alive after the end
// of this process, and wait for its responses.
func newServer(fs fuse.RawFileSystem, dir string, options *fuse.MountOptions) (*fuse.Server, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	s, err := fuse.NewServer(fs, dir, options)
	if err != nil {
		return nil, err
	}
	descriptors, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		return nil, err
	}
	for _, link := range descriptors {
		target, err := os.Readlink(link)
		if err != nil || target != "/dev/fuse" {
			continue // the error is that of a descriptor that was closed
		}
		fd, err := strconv.Atoi(filepath.Base(link))
		if err != nil {
			return nil, err
		}
		syscall.CloseOnExec(fd)
	}
	return s, nil
}
