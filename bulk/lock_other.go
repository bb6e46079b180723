// The lock of the journal on other systems: a lock file.

//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd || windows)

package bulk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// openLocked opens the file and locks it with a second file, which only one process can create.
// These systems have no lock that ends with the process, so that file has to be removed manually
// after a crash.
func openLocked(path string) (*os.File, func() error, error) {
	lock := path + ".lock"
	l, err := os.OpenFile(lock, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, nil, fmt.Errorf("%w; if none is running, remove %s", ErrLocked, lock)
	}
	if err != nil {
		return nil, nil, err
	}
	unlock := func() error { return os.Remove(lock) }
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		if err = l.Close(); err == nil {
			return f, unlock, nil
		}
		f.Close()
	}
	l.Close()
	return nil, nil, errors.Join(err, unlock())
}
