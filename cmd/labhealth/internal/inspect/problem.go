package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// problemInterval is how often a problem that lasts is reported.
const problemInterval = time.Minute

// problems reports what fails: at once, once a minute as long as it lasts, and at the end.
type problems struct {
	report func(text string)

	mu  sync.Mutex
	all map[string]*problem // by what fails
}

type problem struct {
	text     string
	failed   int
	reported int // failures that a report has counted
	first    time.Time
	last     time.Time // of the reports
}

// full is the text with how often it failed.
func (p *problem) full() string {
	if p.failed == 1 {
		return p.text
	}
	return fmt.Sprintf("%s (%d times since %s)", p.text, p.failed, p.first.Format(time.TimeOnly))
}

// note notes how something ended, such as "store deliveries".
func (p *problems) note(what string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, one := time.Now(), p.all[what]
	if one == nil {
		if err == nil {
			return
		}
		one = &problem{}
		if p.all == nil {
			p.all = map[string]*problem{}
		}
		p.all[what] = one
	}
	due := now.Sub(one.last) >= problemInterval
	switch {
	case err == nil && (one.reported > 0 || one.failed > 0 && due):
		p.report(fmt.Sprintf("can %s again: %d failed since %s", what, one.failed, one.first.Format(time.TimeOnly)))
		*one = problem{last: now}
	case err != nil:
		if one.failed++; one.failed == 1 {
			one.first = now
		}
		one.text = "cannot " + what + ": " + err.Error()
		if due {
			p.report(one.full())
			one.reported, one.last = one.failed, now
		}
	}
}

// close reports what was not counted.
func (p *problems) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.all {
		if one.failed > one.reported {
			p.report(one.full())
		}
	}
	p.all = nil
}

// explain returns an error that says what is wrong with the file, in place of the message of the
// database, which may have a part of a delivery.
func (i *Inspector) explain(err error) error {
	failed, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return err
	}
	switch failed.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("there is no space left for %s: free some, or choose another file with --file", i.path)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN:
		return fmt.Errorf("%s cannot be written: check its permissions, and that its file system is not read-only", i.path)
	case sqlite3.SQLITE_IOERR:
		return fmt.Errorf("%s cannot be read or written: check the space and the disk (SQLite error %d)", i.path, failed.Code())
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("another program has locked %s", i.path)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%s is not a database, or is damaged: move it away, and start labhealth again", i.path)
	}
	return fmt.Errorf("the database %s failed (SQLite error %d)", i.path, failed.Code())
}

// openFile is a file that SQLite has open.
type openFile struct {
	path string
	info fs.FileInfo
}

// watchFiles keeps which files are open, for checkFiles.
func (w *writer) watchFiles(file string) {
	for _, path := range []string{file, file + "-wal"} {
		if info, err := os.Stat(path); err == nil {
			w.files = append(w.files, openFile{path, info})
		}
	}
}

// checkFiles returns an error if a file was removed or replaced: what SQLite writes to it would be
// lost without an error.
func (w *writer) checkFiles() error {
	for _, f := range w.files {
		if info, err := os.Stat(f.path); errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(info, f.info) {
			return fmt.Errorf("%s was removed or replaced: start labhealth again", f.path)
		}
	}
	return nil
}
