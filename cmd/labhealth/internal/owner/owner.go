// Package owner checks whose files are. In directories that several users share, such as /tmp,
// others can put files where a program will look for its own.
package owner

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"
)

// Check returns an error if a file belongs to another user.
func Check(name string, info fs.FileInfo) error {
	if !isOwn(info) {
		return fmt.Errorf("%s belongs to another user", name)
	}
	return nil
}

// Directory creates a directory that only the user can use, and returns an error if it exists and
// others own it. If others can write to it, they cannot anymore.
func Directory(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if err := Check(dir, info); err != nil {
		return err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		return os.Chmod(dir, 0o700) //nolint:gosec // a directory
	}
	return nil
}
