// The lock of the journal on Unix.

//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package bulk

import (
	"errors"
	"os"
	"syscall"
)

// openLocked opens the file and takes an exclusive flock, which ends with the process.
func openLocked(path string) (*os.File, func() error, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, nil, ErrLocked
		}
		return nil, nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	if err := f.Chmod(0o600); err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, nil, nil
}
