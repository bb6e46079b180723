// The lock of the journal on Windows.

package bulk

import (
	"errors"
	"os"
	"syscall"
)

const sharingViolation = syscall.Errno(32)

// openLocked opens the file without sharing it until the process ends. Its directory determines who
// may read it.
func openLocked(path string) (*os.File, func() error, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, sharingViolation) {
		return nil, nil, ErrLocked
	}
	if err != nil {
		return nil, nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil, nil
}
