// The journal in an append-only file that survives damage.

package bulk

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/machine"
)

// ErrLocked is returned by [OpenFile] if the journal is already open, in this process or another
// one.
var ErrLocked = errors.New("bulk: the journal is in use by another run")

// File is a journal in an append-only file. Each line is a checksum, a mark and an [Entry] as JSON:
//
//	4f2b91c0+{"step":"intent",…}
//	77a0de35 {"step":"intent",…}
//
// The checksum is the CRC-32C of the rest of the line. The mark is + on the first line of a batch,
// which is written and synced as a whole, and a space on the others. Between two batches there can
// be lines of StepSending, which the next batch syncs. A crash can truncate or damage only the last
// batch, whose records have not been sent yet, and these lines before and after it. So [OpenFile]
// drops damaged lines if no more than one batch follows them, and returns an error otherwise.
//
// A run fails, and sends nothing more, if the file is removed, replaced or truncated meanwhile.
type File struct {
	labhealth.Redacted `json:"-"` // buf holds sample IDs

	f       machine.File
	path    string // absolute
	machine machine.Machine
	mu      *sync.Mutex // guards size, err and buf
	size    int64
	err     error // after it the file takes no more entries
	buf     bytes.Buffer
	unlock  func() error
	existed bool // before it was opened
	torn    bool // its end was dropped
	cut     bool // and was an incomplete line, such as one that was being written when the process was killed
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errNoFile = errors.New("bulk: the journal is a File that is nil or its zero value: create it with OpenFile")

// OpenFile opens the journal at path and locks it until [File.Close] or the end of the process. If
// the file does not exist, OpenFile creates it, readable by its owner only. It returns [ErrLocked]
// if the journal is in use, and an error if path is a directory, a device or a pipe.
func OpenFile(path string) (*File, error) { return openFile(system{}, path) }

func init() {
	machine.OpenJournal = func(m machine.Machine, path string) (any, error) { return openFile(m, path) }
}

func openFile(m machine.Machine, path string) (*File, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	f, existed, unlock, err := m.Open(path)
	if err != nil {
		return nil, err
	}
	j := &File{f: f, path: absolute, machine: m, mu: new(sync.Mutex), unlock: unlock, existed: existed}
	if err = j.recover(); err == nil {
		err = m.SyncDir(path) // whoever created the file may not have synced it
	}
	if err != nil {
		j.Close()
		return nil, err
	}
	return j, nil
}

// recover truncates the file after its last valid line and positions it there.
func (j *File) recover() error {
	fileSize, err := j.f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if j.size, err = j.validSize(fileSize); err != nil {
		return err
	}
	if j.size == 0 && fileSize > 0 && !j.isTornBegin(fileSize) {
		return errors.New("bulk: the file is not a journal: it was left as it is")
	}
	if j.size < fileSize {
		j.torn = true
		if err := j.f.Truncate(j.size); err != nil {
			return err
		}
	}
	if err := j.f.Sync(); err != nil { // a killed process may not have synced its last batch
		return err
	}
	_, err = j.f.Seek(j.size, io.SeekStart)
	return err
}

// validSize returns the size of the lines before the first damaged one. It returns an error if two
// batches follow a damaged line: the second was written when everything before the first was
// synced.
func (j *File) validSize(fileSize int64) (int64, error) {
	offset, damagedAt, number, allowed := int64(0), int64(-1), 0, 0
	for line, err := range j.lines(fileSize) {
		if err != nil {
			return 0, err
		}
		number++
		entry, startsBatch := parseLine(line)
		if damagedAt < 0 && bytes.Contains(entry, []byte(`"marks":true`)) {
			allowed = 1 // batch after a damaged line of StepSending
		}
		switch {
		case entry == nil && damagedAt < 0:
			damagedAt = offset
			j.cut = line[len(line)-1] != '\n'
		case entry != nil && damagedAt >= 0 && startsBatch:
			if allowed--; allowed >= 0 {
				break
			}
			return 0, fmt.Errorf("bulk: the journal is damaged at byte %d, before line %d, which a crash cannot cause; "+
				"a copy that is cut at that byte can be used: the next run looks for the orders that it does not show", damagedAt, number)
		}
		offset += int64(len(line))
	}
	if damagedAt >= 0 {
		return damagedAt, nil
	}
	return offset, nil
}

// isTornBegin reports whether a file without a complete line is a journal whose first line was
// truncated, or reads as zeros because only its length was written. Any other file is not a journal
// and must not be truncated.
func (j *File) isTornBegin(fileSize int64) bool {
	prefix := []byte(`+{"step":"begin"`)
	content := make([]byte, min(fileSize, 1<<10))
	if _, err := j.f.ReadAt(content, 0); err != nil || fileSize >= 1<<10 {
		return false
	}
	isZero := len(bytes.Trim(content, "\x00")) == 0
	return isZero || len(content) > 9 &&
		bytes.HasPrefix(prefix, content[8:min(len(content), 8+len(prefix))]) && !bytes.ContainsRune(content, '\n')
}

// lines ranges over the lines in the first bytes of the file, with their line breaks. A line is
// valid until the next one.
func (j *File) lines(size int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		r := bufio.NewReaderSize(io.NewSectionReader(j.f, 0, size), 64<<10)
		for number := 1; ; number++ {
			line, err := readLine(r)
			if errors.Is(err, errLineTooLong) {
				yield(nil, fmt.Errorf("bulk: line %d of the journal: %w", number, err))
				return
			}
			if len(line) > 0 && !yield(line, nil) {
				return
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					yield(nil, err)
				}
				return
			}
		}
	}
}

// parseLine returns the JSON of a line, or nil if the line is damaged, and whether the line starts
// a batch.
func parseLine(line []byte) (entry []byte, startsBatch bool) {
	var sum [4]byte
	if len(line) < 10 || line[len(line)-1] != '\n' {
		return nil, false
	}
	if _, err := hex.Decode(sum[:], line[:8]); err != nil || line[8] != '+' && line[8] != ' ' {
		return nil, false
	}
	marked := line[8 : len(line)-1]
	if crc32.Checksum(marked, castagnoli) != binary.BigEndian.Uint32(sum[:]) {
		return nil, false
	}
	return marked[1:], marked[0] == '+'
}

// Append implements [Journal]. After an error the file takes no more entries, because its content
// on the disk is unknown.
func (j *File) Append(entries []Entry) error {
	if j == nil || j.f == nil && j.err == nil {
		return errNoFile
	}
	if err := j.write(entries, '+'); err != nil {
		return err
	}
	return j.keepErr(j.f.Sync())
}

// mark appends an entry without a sync, also during an Append.
func (j *File) mark(e Entry) error { return j.write([]Entry{e}, ' ') }

// write appends lines, the first of them with the mark.
func (j *File) write(entries []Entry, mark byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return j.err
	}
	if err := j.inPlace(); err != nil {
		return err
	}
	j.buf.Reset()
	for _, e := range entries {
		encoded, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if len(encoded) > maxLine-10 {
			return fmt.Errorf("bulk: the journal entry of record %d: %w", e.Record, errLineTooLong)
		}
		var sum [4]byte
		binary.BigEndian.PutUint32(sum[:], crc32.Update(crc32.Checksum([]byte{mark}, castagnoli), castagnoli, encoded))
		line := append(hex.AppendEncode(j.buf.AvailableBuffer(), sum[:]), mark)
		j.buf.Write(append(append(line, encoded...), '\n'))
		mark = ' '
	}
	n, err := j.f.Write(j.buf.Bytes())
	j.size += int64(n)
	return j.setErr(err)
}

var errJournalGone = errors.New("bulk: the journal was removed, replaced or truncated while the run was using it, so that nothing more was sent: " +
	"put it back, or start the next run with a new journal and Options.Reconcile")

// inPlace returns an error if the next run would not find this file at its path, or not all of it.
// The caller holds j.mu.
func (j *File) inPlace() error {
	f, ok := j.f.(systemFile)
	if !ok || j.err != nil || runtime.GOOS == "windows" { // which shares the file with nobody
		return j.err
	}
	opened, err := f.Stat()
	if err != nil {
		return j.setErr(err)
	}
	found, err := os.Stat(j.path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && (!os.SameFile(opened, found) || found.Size() < j.size):
		j.err = errJournalGone
		return j.err
	}
	return j.setErr(err)
}

// checkInPlace is inPlace for a caller that does not hold j.mu. A nil File is in place.
func (j *File) checkInPlace() error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.inPlace()
}

// keepErr keeps the error of a write or a sync.
func (j *File) keepErr(err error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.setErr(err)
}

// setErr is keepErr for a caller that holds j.mu.
func (j *File) setErr(err error) error {
	if err != nil && j.err == nil {
		j.err = fmt.Errorf("bulk: the journal cannot be written: %w", err)
	}
	return j.err
}

// Entries implements [Journal].
func (j *File) Entries() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if j == nil || j.f == nil && j.err == nil {
			yield(Entry{}, errNoFile)
			return
		}
		j.mu.Lock()
		size := j.size
		j.mu.Unlock()
		for line, err := range j.lines(size) {
			if err != nil {
				if !errors.Is(err, errLineTooLong) {
					err = fmt.Errorf("bulk: the journal cannot be read: %w", err)
				}
				yield(Entry{}, err)
				return
			}
			var e Entry
			encoded, _ := parseLine(line)
			if encoded == nil || json.Unmarshal(encoded, &e) != nil {
				yield(Entry{}, errors.New("bulk: the journal contains a line that is not an entry"))
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Close closes the file and unlocks it. Closing it again does nothing.
func (j *File) Close() error {
	if j == nil || j.f == nil {
		return nil
	}
	err := j.f.Close()
	if j.unlock != nil {
		err = errors.Join(err, j.unlock())
	}
	j.f, j.err = nil, errors.New("bulk: the journal is closed")
	return err
}
