package bulk

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// Source is the records to import. It is ranged over several times and must give the same records each time. A record that
// cannot be read is a *[RecordError], after which the source goes on; any other error ends the run.
type Source = iter.Seq2[labhealth.ImportOrderBody, error]

// RecordError is a record of a source that cannot be read. It holds the sample id and no other
// value, and its text, which is also what it prints under every verb, has no value at all.
type RecordError struct {
	Line     int       // where it begins in its file, from 1; 0 if that means nothing
	SampleID string    // whose record it is; empty if not even that can be read
	Problems []Problem // all that is wrong
}

// Error says where the record is and what is wrong with it.
func (e *RecordError) Error() string {
	var b strings.Builder
	b.WriteString("bulk: a record cannot be read")
	if e.Line > 0 {
		fmt.Fprintf(&b, ", line %d", e.Line)
	}
	for _, p := range e.Problems {
		b.WriteString(": " + strings.TrimSpace(p.Path+" "+p.Reason))
	}
	return b.String()
}

const maxLine = 16 << 20

var errLong = errors.New("longer than 16 MiB")

// JSONLines reads one [labhealth.ImportOrderBody] as JSON from each line of r that is not blank. Unlike the reader of answers it
// is strict: a member that is not in the interface document would be left out in silence, so it is a problem of its record, as
// is a value of the wrong type. Each range begins at the start of r; two at a time are not possible.
func JSONLines(r io.ReadSeeker) Source {
	return func(yield func(labhealth.ImportOrderBody, error) bool) {
		lines, err := rewound(r)
		if err != nil {
			yield(labhealth.ImportOrderBody{}, err)
			return
		}
		for number := 1; ; number++ {
			text, err := line(lines)
			if err != nil && !errors.Is(err, io.EOF) {
				yield(labhealth.ImportOrderBody{}, fmt.Errorf("bulk: line %d: %w", number, err))
				return
			}
			if text = bytes.TrimSpace(text); len(text) > 0 {
				body, problem := readRecord(text)
				if problem != nil {
					problem.Line = number
					if !yield(labhealth.ImportOrderBody{}, problem) {
						return
					}
				} else if !yield(body, nil) {
					return
				}
			}
			if errors.Is(err, io.EOF) {
				return
			}
		}
	}
}

// rewound begins at the start of r and steps over a byte order mark.
func rewound(r io.ReadSeeker) (*bufio.Reader, error) {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("bulk: the source cannot be read from its start: %w", err)
	}
	b := bufio.NewReaderSize(r, 64<<10)
	if mark, err := b.Peek(3); err == nil && string(mark) == "\uFEFF" {
		b.Discard(3)
	}
	return b, nil
}

// line returns the next line. It is valid until the next call.
func line(r *bufio.Reader) ([]byte, error) {
	text, err := r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return text, err
	}
	long := slices.Clone(text)
	for errors.Is(err, bufio.ErrBufferFull) {
		text, err = r.ReadSlice('\n')
		if long = append(long, text...); len(long) > maxLine {
			return nil, errLong
		}
	}
	return long, err
}

// wrapped lets the reader of answers tell where a value did not fit.
type wrapped struct {
	Body labhealth.ImportOrderBody `json:"body"`

	labhealth.RawObject `json:"-"`
}

// readRecord reads a record and all that is wrong with its form.
func readRecord(text []byte) (labhealth.ImportOrderBody, *RecordError) {
	var w wrapped
	record := append(append(make([]byte, 0, len(text)+10), `{"body":`...), text...)
	record = append(record, '}')
	if err := jsonread.Valid(text); err != nil {
		reason := "is not valid JSON in UTF-8"
		var at *jsonread.SyntaxError
		if errors.As(err, &at) {
			reason = fmt.Sprintf("is not valid JSON in UTF-8 at byte %d: %s", at.Offset, at.Reason)
		}
		return w.Body, &RecordError{Problems: []Problem{{"", reason}}}
	}
	if text[0] != '{' {
		return w.Body, &RecordError{Problems: []Problem{{"", "is not a JSON object"}}}
	}
	if err := jsonread.UnmarshalOwned(record, &w); err != nil {
		return w.Body, &RecordError{Problems: []Problem{{"", "cannot be read"}}}
	}
	var problems []Problem
	for _, m := range w.Malformed() {
		problems = append(problems, Problem{m.Path, "is not a valid " + m.Want})
	}
	problems = unknownMembers(text, bodyType, "body", problems)
	if problems != nil {
		return labhealth.ImportOrderBody{}, &RecordError{SampleID: w.Body.SampleID, Problems: problems}
	}
	return w.Body, nil
}

var bodyType = reflect.TypeFor[labhealth.ImportOrderBody]()

// unknownMembers adds the members that t does not have.
func unknownMembers(text []byte, t reflect.Type, path string, problems []Problem) []Problem {
	of := membersOf(t)
	for name, value := range jsonread.Fields(text) {
		m, ok := of.byName[string(name)]
		if !ok {
			problems = append(problems, Problem{path + "." + plain(string(name)), "is not a member of the request"})
		} else if m.kind == group && value[0] == '{' {
			problems = unknownMembers(value, m.elem, path+"."+m.name, problems)
		}
	}
	return problems
}

// plain returns s if it looks like the name of a member or a code, and so holds nobody's data.
func plain(s string) string {
	if s == "" || len(s) > 64 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
		return "?"
	}
	return s
}

// member is a member of a request.
type member struct {
	name  string
	index int
	elem  reflect.Type // its type without the pointer
	kind  memberKind
}

type memberKind uint8

const (
	single memberKind = iota // text, a number, a date, an id
	group                    // an object
	list                     // an array of singles
)

// members are those of a request type.
type members struct {
	list   []member
	byName map[string]member
}

var known sync.Map // reflect.Type → *members

func membersOf(t reflect.Type) *members {
	if m, ok := known.Load(t); ok {
		return m.(*members)
	}
	all := &members{byName: map[string]member{}}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		m := member{name: name, index: i, elem: f.Type}
		if f.Type.Kind() == reflect.Pointer {
			m.elem = f.Type.Elem()
		}
		switch {
		case m.elem.Kind() == reflect.Slice:
			m.kind = list
		case m.elem.Kind() == reflect.Struct && m.elem != dateType:
			m.kind = group
		}
		all.list = append(all.list, m)
		all.byName[name] = m
	}
	known.Store(t, all)
	return all
}

var (
	dateType = reflect.TypeFor[labhealth.Date]()
)

// column is where the cells of a CSV column go.
type column struct {
	path  string
	index []int // of the fields, from the body on
	kind  memberKind
}

// columns are all that a CSV file can have, by name.
var columns = sync.OnceValue(func() map[string]column {
	all := map[string]column{}
	var walk func(t reflect.Type, path string, index []int)
	walk = func(t reflect.Type, path string, index []int) {
		for _, m := range membersOf(t).list {
			c := column{path: path + m.name, index: append(slices.Clip(index), m.index), kind: m.kind}
			if m.kind == group {
				walk(m.elem, c.path+".", c.index)
			} else {
				all[c.path] = c
			}
		}
	}
	walk(bodyType, "", nil)
	return all
})

// CSVColumns returns the names of all columns that [CSV] knows, sorted.
func CSVColumns() []string { return slices.Sorted(maps.Keys(columns())) }

// CSV reads one record from each row of r after the first, which names the columns. The name of a column is the path of its
// member in the interface document:
//
//	sample_id, user_id, collection_method, billing_type, lab_account_id
//	order_set.lab_test_ids, order_set.add_on.marker_ids, …
//	patient_details.first_name, patient_details.dob, …
//	patient_details.medical_proxy.first_name, patient_details.medical_proxy.address.zip, …
//	patient_address.first_line, …
//	physician.npi, physician.signature_image.content, …
//
// [CSVColumns] has them all. rename, which may be nil, gives other names that the file uses: {"Sample": "sample_id"}. A column
// renamed to "-" is not read. Any other column that is not known is an error: it would be left out in silence.
//
// An empty cell is a member that is left out. Cells that hold several ids or codes separate them by semicolons. Dates are
// 2006-01-02. Spaces around a cell do not count. Rows follow RFC 4180: fields with commas, quotes or line breaks are quoted.
func CSV(r io.ReadSeeker, rename map[string]string) Source {
	return func(yield func(labhealth.ImportOrderBody, error) bool) {
		fail := func(err error) { yield(labhealth.ImportOrderBody{}, err) }
		text, err := rewound(r)
		if err != nil {
			fail(err)
			return
		}
		limit := &rowReader{r: text}
		rows := csv.NewReader(limit)
		rows.ReuseRecord = true
		header, err := rows.Read()
		if err != nil {
			fail(fmt.Errorf("bulk: the CSV header cannot be read: %w", withoutText(err)))
			return
		}
		last, _ := rows.FieldPos(0)
		cells, err := cellsOf(header, rename)
		if err != nil {
			fail(err)
			return
		}
		for {
			limit.row = rows.InputOffset()
			row, err := rows.Read()
			if err == io.EOF {
				return
			}
			if rows.InputOffset()-limit.row > maxLine {
				err = errLong
			}
			var syntax *csv.ParseError
			if errors.As(err, &syntax) && errors.Is(err, csv.ErrFieldCount) {
				last = syntax.Line
				problem := &RecordError{Line: syntax.Line, Problems: []Problem{{"", "does not have as many cells as the header"}}}
				if !yield(labhealth.ImportOrderBody{}, problem) {
					return
				}
				continue
			}
			if errors.Is(err, errLong) {
				fail(fmt.Errorf("bulk: the row after line %d: %w", last, err))
				return
			}
			if err != nil { // where the next row begins cannot be told
				fail(fmt.Errorf("bulk: the CSV file cannot be read on: %w", withoutText(err)))
				return
			}
			start, _ := rows.FieldPos(0)
			last, _ = rows.FieldPos(len(row) - 1)
			var body labhealth.ImportOrderBody
			var problems []Problem
			for i, c := range cells {
				if cell := strings.TrimSpace(row[i]); cell != "" && c.index != nil {
					if reason := c.set(reflect.ValueOf(&body).Elem(), cell); reason != "" {
						problems = append(problems, Problem{"body." + c.path, reason})
					}
				}
			}
			if problems != nil {
				err = &RecordError{Line: start, SampleID: body.SampleID, Problems: problems}
				body = labhealth.ImportOrderBody{}
			}
			if !yield(body, err) {
				return
			}
		}
	}
}

// rowReader ends with an error when a row is too long, such as one whose quote is never closed:
// package csv would keep all of it.
type rowReader struct {
	r    io.Reader
	read int64
	row  int64 // where the row begins
}

func (r *rowReader) Read(b []byte) (int, error) {
	if r.read-r.row > maxLine {
		return 0, errLong
	}
	n, err := r.r.Read(b)
	r.read += int64(n)
	return n, err
}

// withoutText keeps of an error of package csv what it says of the place.
func withoutText(err error) error {
	var syntax *csv.ParseError
	if errors.As(err, &syntax) {
		return fmt.Errorf("line %d: %w", syntax.Line, syntax.Err)
	}
	return err
}

// cellsOf finds the columns that a header names.
func cellsOf(header []string, rename map[string]string) ([]column, error) {
	var cells []column
	used := map[string]bool{}
	for i, name := range header {
		name = strings.TrimSpace(name)
		if to, ok := rename[name]; ok {
			name = to
		}
		if name == "-" {
			cells = append(cells, column{})
			continue
		}
		c, ok := columns()[name]
		switch {
		case !ok:
			return nil, fmt.Errorf("bulk: column %d of the CSV file is not known: its name must be one of CSVColumns, or be renamed", i+1)
		case used[name]:
			return nil, fmt.Errorf("bulk: the CSV file has two columns for %s", name)
		}
		used[name] = true
		cells = append(cells, c)
	}
	return cells, nil
}

// set puts a cell into the body and returns why it cannot.
func (c column) set(v reflect.Value, cell string) (reason string) {
	if !utf8.ValidString(cell) {
		return "is not valid UTF-8"
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
		return setText(v, cell)
	}
	for text := range strings.SplitSeq(cell, ";") {
		e := reflect.New(v.Type().Elem()).Elem()
		if reason := setText(e, strings.TrimSpace(text)); reason != "" {
			return reason
		}
		v.Set(reflect.Append(v, e))
	}
	return ""
}

func setText(v reflect.Value, text string) (reason string) {
	switch p := v.Addr().Interface().(type) {
	case *uuid.UUID:
		id, err := uuid.Parse(text)
		if err != nil || len(text) != 36 {
			return "is not a valid uuid"
		}
		*p = id
		return ""
	case *labhealth.Date:
		d, err := labhealth.ParseDate(text)
		if err != nil {
			return "is not a valid date"
		}
		*p = d
		return ""
	}
	if v.Kind() == reflect.Int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return "is not a valid integer"
		}
		v.SetInt(n)
		return ""
	}
	v.SetString(text)
	return ""
}
