package bulk

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

// CSVColumns returns the names of all columns that [CSV] supports, sorted.
func CSVColumns() []string { return slices.Sorted(maps.Keys(columns())) }

// CSV returns a source that reads one record from each row of r after the header. The name of a
// column is the path of its field in the interface specification:
//
//	sample_id, user_id, collection_method, billing_type, lab_account_id
//	order_set.lab_test_ids, order_set.add_on.marker_ids, …
//	patient_details.first_name, patient_details.dob, …
//	patient_details.medical_proxy.first_name, patient_details.medical_proxy.address.zip, …
//	patient_address.first_line, …
//	physician.npi, physician.signature_image.content, …
//
// [CSVColumns] returns all names. rename, which may be nil, maps other names in the file to these:
// {"Sample": "sample_id"}. A column renamed to "-" is ignored. Any other unknown column is an
// error, because its values would not be sent.
//
// An empty cell omits the field. Cells with several IDs or codes separate them by semicolons. Dates
// are formatted as 2006-01-02. Spaces around a cell are ignored. Rows follow RFC 4180: cells with
// commas, quotes or line breaks are quoted.
func CSV(r io.ReadSeeker, rename map[string]string) Source {
	return func(yield func(Record, error) bool) {
		rows, err := newCSVReader(r, rename)
		if err != nil {
			yield(Record{}, err)
			return
		}
		for {
			record, err := rows.next()
			var recordErr *RecordError
			if errors.Is(err, io.EOF) || !yield(record, err) || err != nil && !errors.As(err, &recordErr) {
				return
			}
		}
	}
}

// csvReader reads records from a CSV file.
type csvReader struct {
	rows     *csv.Reader
	limit    *rowLimiter
	columns  []column
	lastLine int // of the last row
}

// newCSVReader reads the header.
func newCSVReader(r io.ReadSeeker, rename map[string]string) (*csvReader, error) {
	buffered, err := rewind(r)
	if err != nil {
		return nil, err
	}
	limit := &rowLimiter{r: buffered}
	rows := csv.NewReader(limit)
	rows.ReuseRecord = true
	header, err := rows.Read()
	if err != nil {
		return nil, fmt.Errorf("bulk: the CSV header cannot be read: %w", withoutContent(err))
	}
	lastLine, _ := rows.FieldPos(0)
	columns, err := columnsOf(header, rename)
	if err != nil {
		return nil, err
	}
	return &csvReader{rows, limit, columns, lastLine}, nil
}

// next returns the next record, or io.EOF. After an error other than a *[RecordError] the start of
// the next row is unknown.
func (c *csvReader) next() (record Record, err error) {
	c.limit.rowStart = c.rows.InputOffset()
	row, err := c.rows.Read()
	if err == io.EOF {
		return record, err
	}
	if c.rows.InputOffset()-c.limit.rowStart > maxLine {
		err = errLineTooLong
	}
	var syntax *csv.ParseError
	switch {
	case errors.Is(err, csv.ErrFieldCount) && errors.As(err, &syntax):
		c.lastLine = syntax.Line
		return record, &RecordError{Line: syntax.Line, Problems: []Problem{{Reason: "does not have as many cells as the header"}}}
	case errors.Is(err, errLineTooLong):
		return record, fmt.Errorf("bulk: the row after line %d: %w", c.lastLine, err)
	case err != nil:
		return record, fmt.Errorf("bulk: the CSV file cannot be read: %w", withoutContent(err))
	}
	record.Line, _ = c.rows.FieldPos(0)
	c.lastLine, _ = c.rows.FieldPos(len(row) - 1)
	if problems := c.decode(row, &record.Body); problems != nil {
		return Record{}, &RecordError{Line: record.Line, SampleID: record.Body.SampleID, Problems: problems}
	}
	return record, nil
}

// decode sets the fields of body from the cells of a row.
func (c *csvReader) decode(row []string, body *labhealth.ImportOrderBody) (problems []Problem) {
	v := reflect.ValueOf(body).Elem()
	for i, column := range c.columns {
		cell := strings.TrimSpace(row[i])
		if cell == "" || column.index == nil {
			continue
		}
		if err := column.set(v, cell); err != nil {
			problems = append(problems, Problem{Path: "body." + column.path, Reason: err.Error()})
		}
	}
	return problems
}

// rowLimiter returns an error for a row that is too long, such as one with an unclosed quote, which
// package csv would keep in memory.
type rowLimiter struct {
	r        io.Reader
	offset   int64
	rowStart int64
}

func (r *rowLimiter) Read(b []byte) (int, error) {
	if r.offset-r.rowStart > maxLine {
		return 0, errLineTooLong
	}
	n, err := r.r.Read(b)
	r.offset += int64(n)
	return n, err
}

// withoutContent reduces an error of package csv to the line and the kind of error.
func withoutContent(err error) error {
	var syntax *csv.ParseError
	if errors.As(err, &syntax) {
		return fmt.Errorf("line %d: %w", syntax.Line, syntax.Err)
	}
	return err
}

// column is the field that the cells of a CSV column set.
type column struct {
	path  string
	index []int // of the fields on the path; nil if the column is ignored
	kind  fieldKind
}

// columns returns all columns by name.
var columns = sync.OnceValue(func() map[string]column {
	all := map[string]column{}
	var walk func(t reflect.Type, path string, index []int)
	walk = func(t reflect.Type, path string, index []int) {
		for _, f := range fieldsOf(t).list {
			c := column{path: path + f.name, index: append(slices.Clip(index), f.index), kind: f.kind}
			if f.kind == object {
				walk(f.elem, c.path+".", c.index)
			} else {
				all[c.path] = c
			}
		}
	}
	walk(bodyType, "", nil)
	return all
})

// columnsOf returns the columns of a header.
func columnsOf(header []string, rename map[string]string) ([]column, error) {
	var list []column
	used := map[string]bool{}
	for i, name := range header {
		name = strings.TrimSpace(name)
		if to, ok := rename[name]; ok {
			name = to
		}
		if name == "-" {
			list = append(list, column{})
			continue
		}
		c, ok := columns()[name]
		switch {
		case !ok:
			return nil, fmt.Errorf("bulk: column %d of the CSV file is unknown: its name must be one of CSVColumns, or be renamed", i+1)
		case used[name]:
			return nil, fmt.Errorf("bulk: the CSV file has two columns for %s", name)
		}
		used[name] = true
		list = append(list, c)
	}
	return list, nil
}

// set sets the field of v from a cell. The error is the reason of a [Problem].
func (c column) set(v reflect.Value, cell string) error {
	if !utf8.ValidString(cell) {
		return errors.New("is not valid UTF-8")
	}
	for _, i := range c.index {
		if v = v.Field(i); v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
	}
	if c.kind != list {
		return setScalar(v, cell)
	}
	for item := range strings.SplitSeq(cell, ";") {
		e := reflect.New(v.Type().Elem()).Elem()
		if err := setScalar(e, strings.TrimSpace(item)); err != nil {
			return err
		}
		v.Set(reflect.Append(v, e))
	}
	return nil
}

func setScalar(v reflect.Value, s string) error {
	switch p := v.Addr().Interface().(type) {
	case *uuid.UUID:
		id, err := uuid.Parse(s)
		if err != nil || len(s) != 36 {
			return errors.New("is not a valid uuid")
		}
		*p = id
		return nil
	case *labhealth.Date:
		d, err := labhealth.ParseDate(s)
		if err != nil {
			return errors.New("is not a valid date")
		}
		*p = d
		return nil
	}
	if v.Kind() == reflect.Int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return errors.New("is not a valid integer")
		}
		v.SetInt(n)
		return nil
	}
	v.SetString(s)
	return nil
}
