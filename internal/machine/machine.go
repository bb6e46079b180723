// Package machine is what package bulk needs from the operating system: the files of its journals,
// and a clock that counts since the boot. A simulation replaces it.
package machine

import (
	"io"
	"time"
)

// Machine is the machine of a run.
type Machine interface {
	// Open opens the journal at path, which it creates if it does not exist, and locks it. existed
	// reports whether it did. unlock may be nil.
	Open(path string) (file File, existed bool, unlock func() error, err error)
	// SyncDir makes the names in the directory of the journal durable.
	SyncDir(path string) error
	// BootID identifies the boot of the machine. It is empty if it is unknown.
	BootID() string
	// Uptime returns the time since the boot.
	Uptime() time.Duration
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriteSeeker
	io.Closer
	Truncate(size int64) error
	Sync() error
}

// OpenJournal opens a [*bulk.File] of another machine. Package bulk sets it.
var OpenJournal func(m Machine, path string) (journal any, err error)
