package bulk

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
	"strings"

	"github.com/labhealth/labhealth-go"
)

// Source is a sequence of records to import. [Run] ranges over it several times, and it must yield
// the same records each time. It yields a *[RecordError] for a record that cannot be read, and
// continues with the next one. Any other error stops the run.
type Source = iter.Seq2[Record, error]

// Record is one order to import. Printed or logged, it shows nothing.
type Record struct {
	labhealth.Redacted `json:"-"`

	Body labhealth.ImportOrderBody // the request
	Line int                       // where the record starts in its file, from 1; 0 if it has no line

	header *header // names the columns of problems; nil if there are none
}

// RecordError reports a record of a source that cannot be read. It holds the sample ID and no other
// value. Its message, which is also printed under every verb, contains no value at all.
type RecordError struct {
	Line     int       // where the record starts in its file, from 1; 0 if it has no line
	SampleID string    // empty if it cannot be read
	Problems []Problem // all problems of the record
}

// Error returns a message with the line and the problems.
func (e *RecordError) Error() string {
	if e == nil {
		e = &RecordError{}
	}
	var b strings.Builder
	b.WriteString("bulk: a record cannot be read")
	if e.Line > 0 {
		fmt.Fprintf(&b, ", line %d", e.Line)
	}
	for _, p := range e.Problems {
		b.WriteString(": " + p.Error())
	}
	return b.String()
}

// maxLine limits a line of a source or a journal, and a row of a CSV file.
const maxLine = 16 << 20

var errLineTooLong = errors.New("longer than 16 MiB")

// rewind returns a reader that starts at the start of r, after a byte order mark. It returns an
// error for UTF-16, in which each ASCII character has a zero byte.
func rewind(r io.ReadSeeker) (*bufio.Reader, error) {
	if v := reflect.ValueOf(r); r == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, errors.New("bulk: the source needs a reader that is not nil")
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("bulk: the source cannot be read from its start: %w", err)
	}
	b := bufio.NewReaderSize(r, 64<<10)
	if start, err := b.Peek(2); err == nil && (string(start) == "\xFF\xFE" || string(start) == "\xFE\xFF" || (start[0] == 0) != (start[1] == 0)) {
		return nil, errors.New("bulk: the source is encoded in UTF-16: save it as UTF-8")
	}
	if mark, err := b.Peek(3); err == nil && string(mark) == "\uFEFF" {
		b.Discard(3)
	}
	return b, nil
}

// readLine returns the next line with its line break. The line is valid until the next call. After
// errLineTooLong the next call returns the line after it.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	long := slices.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = r.ReadSlice('\n')
		if len(long) <= maxLine {
			long = append(long, line...)
		}
	}
	if len(long) > maxLine && (err == nil || errors.Is(err, io.EOF)) {
		return nil, errLineTooLong
	}
	return long, err
}
