// The machine that the process runs on: files of journals, and the clock since the boot.

package bulk

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/labhealth/labhealth-go/internal/machine"
)

// system is the machine that the process runs on.
type system struct{}

func (system) Open(path string) (file machine.File, existed bool, unlock func() error, err error) {
	info, statErr := os.Stat(path)
	if statErr == nil && !info.Mode().IsRegular() { // openLocked would change its permissions
		return nil, true, nil, &os.PathError{Op: "open", Path: path, Err: errors.New("a journal must be a regular file")}
	}
	f, unlock, err := openLocked(path)
	if err != nil {
		return nil, statErr == nil, nil, err
	}
	return systemFile{f}, statErr == nil, unlock, nil
}

// syncFile syncs a file or a directory. Tests replace it.
var syncFile = (*os.File).Sync

type systemFile struct{ *os.File }

func (f systemFile) Sync() error { return syncFile(f.File) }

// SyncDir syncs the directory of a file, so that the names in it survive a crash like their
// content.
func (system) SyncDir(path string) error {
	if runtime.GOOS == "windows" || runtime.GOOS == "plan9" || runtime.GOOS == "js" || runtime.GOOS == "wasip1" {
		return nil // directories cannot be synced
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(syncFile(d), d.Close())
}

// The clock of the leases. Tests replace it.
var (
	bootID = systemBoot
	uptime = systemUptime
)

func (system) BootID() string { return bootID() }

func (system) Uptime() time.Duration { return uptime() }
