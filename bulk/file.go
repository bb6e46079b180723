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
	"iter"
	"os"
	"path/filepath"
	"runtime"
)

// ErrLocked says that another process, or another part of this one, has the journal open.
var ErrLocked = errors.New("bulk: the journal is in use by another run")

// File is a journal in a file that is only ever appended to. Each line is a checksum, a mark and an [Entry] as JSON:
//
//	4f2b91c0+{"step":"intent",…}
//	77a0de35 {"step":"intent",…}
//
// The checksum is a CRC-32C of all that follows it. The mark is + on the first line of a group that was written, and forced to
// the disk, as one. A crash can cut off or spoil the last group only, and nothing was sent yet on the strength of it: so
// [OpenFile] drops what is damaged if no later group follows, and otherwise refuses the file.
type File struct {
	f     *os.File
	size  int64
	err   error
	buf   bytes.Buffer
	free  func() error
	found bool // the file was there before
	torn  bool // its end was dropped
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// OpenFile opens the journal at path, and makes it, for its owner only, if there is none. It is locked until [File.Close] or
// the end of the process, however that comes; if somebody else has it, the error is [ErrLocked].
func OpenFile(path string) (*File, error) {
	_, missing := os.Stat(path)
	f, unlock, err := openLocked(path)
	if err != nil {
		return nil, err
	}
	j := &File{f: f, free: unlock, found: missing == nil}
	if err = j.recover(); err == nil {
		err = syncDir(filepath.Dir(path)) // whoever made the file may have been killed before it was
	}
	if err != nil {
		j.Close()
		return nil, err
	}
	return j, nil
}

// force brings a file, or the names in a folder, to the disk. Tests replace it.
var force = (*os.File).Sync

// syncDir makes the names of files as lasting as their content.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" || runtime.GOOS == "plan9" || runtime.GOOS == "js" || runtime.GOOS == "wasip1" {
		return nil // directories cannot be synced there
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(force(d), d.Close())
}

// recover finds where the good lines end, and cuts off what a crash left behind them.
func (j *File) recover() error {
	end, err := j.f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	good, bad, number := int64(0), int64(-1), 0
	for l, err := range j.lines(end) {
		if err != nil {
			return err
		}
		number++
		entry, first := checked(l)
		switch {
		case entry == nil && bad < 0:
			bad = good
		case entry != nil && bad >= 0 && first:
			return fmt.Errorf("bulk: the journal is damaged at byte %d, before line %d: it is not what a crash leaves behind; "+
				"a copy that is cut at that byte can be used: the next run looks for the orders that it does not show", bad, number)
		}
		good += int64(len(l))
	}
	if bad < 0 {
		bad = good
	}
	if bad == 0 && end > 0 && !j.begun(end) {
		return errors.New("bulk: the file is not a journal: it was left as it is")
	}
	j.size = bad
	if bad < end {
		j.torn = true
		if err := j.f.Truncate(bad); err != nil {
			return err
		}
	}
	if err := force(j.f); err != nil { // a process that was killed may have left its last group in memory only
		return err
	}
	_, err = j.f.Seek(bad, io.SeekStart)
	return err
}

// begun reports whether a file without a whole line is a journal whose very first line was cut off. Anything else is somebody's
// file, which must not be cut.
func (j *File) begun(end int64) bool {
	start := []byte(`+{"step":"begin"`)
	text := make([]byte, min(end, 1<<10))
	_, err := j.f.ReadAt(text, 0)
	return err == nil && end < 1<<10 && len(text) > 9 && bytes.HasPrefix(start, text[8:min(len(text), 8+len(start))]) &&
		!bytes.ContainsRune(text, '\n')
}

// lines ranges over the lines up to end, with what ends them. They are valid until the next one.
func (j *File) lines(end int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		r := bufio.NewReaderSize(io.NewSectionReader(j.f, 0, end), 64<<10)
		for number := 1; ; number++ {
			l, err := line(r)
			if errors.Is(err, errLong) {
				yield(nil, fmt.Errorf("bulk: line %d of the journal: %w", number, errLong))
				return
			}
			if len(l) > 0 && !yield(l, nil) {
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

// checked returns the entry of a whole line, nil if it is not one, and whether it begins a group.
func checked(line []byte) (entry []byte, first bool) {
	var sum [4]byte
	if len(line) < 10 || line[len(line)-1] != '\n' {
		return nil, false
	}
	if _, err := hex.Decode(sum[:], line[:8]); err != nil || line[8] != '+' && line[8] != ' ' {
		return nil, false
	}
	text := line[8 : len(line)-1]
	if crc32.Checksum(text, castagnoli) != binary.BigEndian.Uint32(sum[:]) {
		return nil, false
	}
	return text[1:], text[0] == '+'
}

// Append implements [Journal]. After an error the file takes no more entries: what the disk holds is not known then.
func (j *File) Append(entries []Entry) error {
	if j.err != nil {
		return j.err
	}
	j.buf.Reset()
	mark := byte('+')
	for _, e := range entries {
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if len(text) > maxLine-10 {
			return fmt.Errorf("bulk: the journal's entry of record %d: %w", e.Record, errLong)
		}
		sum := crc32.Update(crc32.Checksum([]byte{mark}, castagnoli), castagnoli, text)
		var head [4]byte
		binary.BigEndian.PutUint32(head[:], sum)
		b := append(hex.AppendEncode(j.buf.AvailableBuffer(), head[:]), mark)
		j.buf.Write(append(append(b, text...), '\n'))
		mark = ' '
	}
	n, err := j.f.Write(j.buf.Bytes())
	j.size += int64(n)
	if err == nil {
		err = force(j.f)
	}
	if err != nil {
		j.err = fmt.Errorf("bulk: the journal cannot be written: %w", err)
	}
	return j.err
}

// Entries implements [Journal].
func (j *File) Entries() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for l, err := range j.lines(j.size) {
			if err != nil {
				if !errors.Is(err, errLong) {
					err = fmt.Errorf("bulk: the journal cannot be read: %w", err)
				}
				yield(Entry{}, err)
				return
			}
			var e Entry
			text, _ := checked(l)
			if text == nil || json.Unmarshal(text, &e) != nil {
				yield(Entry{}, errors.New("bulk: the journal holds a line that is no entry"))
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Close closes the file and gives it free. Closing again does nothing.
func (j *File) Close() error {
	if j.f == nil {
		return nil
	}
	err := j.f.Close()
	if j.free != nil {
		err = errors.Join(err, j.free())
	}
	j.f, j.err = nil, errors.New("bulk: the journal is closed")
	return err
}
