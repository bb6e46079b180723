// Source, and errors of its records.

package bulk

import (
	"bufio"
	"bytes"
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

	header *header // of its file; nil if it has none
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
// error for a file that is not text in UTF-8.
func rewind(r io.ReadSeeker) (*bufio.Reader, error) {
	if v := reflect.ValueOf(r); r == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, errors.New("bulk: the source needs a reader that is not nil")
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("bulk: the source cannot be read from its start: %w", err)
	}
	b := bufio.NewReaderSize(r, 64<<10)
	if mark, err := b.Peek(3); err == nil && string(mark) == "\uFEFF" {
		b.Discard(3)
	}
	start, _ := b.Peek(512) // an error is that of the next read
	if format := formatOf(start); format != "" {
		return nil, errors.New("bulk: the source is " + format)
	}
	return b, nil
}

// formats are the files that people take for CSV files, by their first bytes.
var formats = []struct{ start, what string }{
	{"PK\x03\x04", workbook}, {"PK\x05\x06", workbook},
	{"\xD0\xCF\x11\xE0", "an Excel workbook (.xls), or protected by a password" + saveAsCSV},
	{"\x1F\x8B", "compressed with gzip: decompress it"},
	{"%PDF-", "a PDF file" + saveAsCSV},
	{"{\\rtf", "an RTF file" + saveAsCSV},
	{"<", "HTML or XML" + saveAsCSV},
	{"\xFF\xFE", utf16}, {"\xFE\xFF", utf16},
}

const (
	saveAsCSV = `: save it as "CSV UTF-8"`
	workbook  = "an Excel workbook (.xlsx) or another ZIP file, such as .ods or .numbers" + saveAsCSV
	utf16     = "encoded in UTF-16: save it as UTF-8"
)

// formatOf returns what a file is that is not text in UTF-8, by its first bytes, and what to do.
func formatOf(start []byte) string {
	trimmed := bytes.TrimLeft(start, " \t\r\n")
	for _, f := range formats {
		if bytes.HasPrefix(trimmed, []byte(f.start)) {
			return f.what
		}
	}
	if len(start) > 1 && (start[0] == 0) != (start[1] == 0) { // each ASCII character has a zero byte
		return utf16
	}
	return ""
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
