// The columns of a CSV file, and those that are unknown.

package bulk

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/labhealth/labhealth-go"
)

// userColumn is the column for [CSVOptions.Users]. It is not the path of a field.
const userColumn = "client_user_id"

// CSVColumns returns the names of all columns that [CSV] supports, sorted.
func CSVColumns() []string {
	names := append(slices.Collect(maps.Keys(columns())), userColumn)
	slices.Sort(names)
	return names
}

// column is what the cells of a CSV column set.
type column struct {
	header string // in the file
	path   string // of the field; userColumn; "" if nothing is set
	index  []int  // of the fields on the path
	field
}

// columns returns all columns by name.
var columns = sync.OnceValue(func() map[string]column {
	all := map[string]column{}
	var walk func(t reflect.Type, path string, index []int)
	walk = func(t reflect.Type, path string, index []int) {
		for _, f := range fieldsOf(t).list {
			c := column{path: path + f.name, index: append(slices.Clip(index), f.index), field: f}
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

// of returns the field of body that the column sets, and allocates the objects on its path.
func (c column) of(body *labhealth.ImportOrderBody) reflect.Value {
	v := reflect.ValueOf(body).Elem()
	for _, i := range c.index {
		if v = v.Field(i); v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
	}
	return v
}

// header is the first row of a CSV file.
type header struct {
	columns []column
	byPath  map[string]string // names in the file by path
	byName  map[string]int    // numbers by folded name; -1 if several columns have the name

	createsUsers bool     // rows may have created users
	missing      []string // fields without which every record is invalid
}

// newHeader returns the header with the given cells.
func newHeader(cells []string, rename map[string]string) (*header, error) {
	names, err := newRenames(rename)
	if err != nil {
		return nil, err
	}
	h := &header{byPath: map[string]string{}, byName: map[string]int{}}
	var unknown []UnknownColumn
	for i, cell := range cells {
		name := strings.TrimSpace(cell)
		if !utf8.ValidString(name) {
			return nil, fmt.Errorf("bulk: the name of column %s %w", columnNumber(i), errNotUTF8)
		}
		c, known := names.column(name)
		if !known {
			unknown = append(unknown, UnknownColumn{Number: i + 1, Name: name, Near: suggestion(name)})
		}
		if c.path != "" && h.byPath[c.path] != "" {
			return nil, fmt.Errorf("bulk: the CSV file has two columns for %s", c.path)
		}
		c.header = name
		h.columns = append(h.columns, c)
		if c.path != "" {
			h.byPath[c.path] = name
		}
		h.addName(name, i)
	}
	switch {
	case len(h.byPath) == 0:
		return nil, errors.New("bulk: no column of the CSV file is known: its first row must be the header, with names of CSVColumns or of CSVOptions.Rename")
	case len(unknown) > 0:
		return nil, &UnknownColumnsError{unknown}
	}
	return h, nil
}

func (h *header) addName(name string, i int) {
	if name == "" {
		return
	}
	name = foldName(name)
	if _, ok := h.byName[name]; ok {
		i = -1
	}
	h.byName[name] = i
}

// columnOf returns the name of the column that sets the field of a path such as
// "body.order_set.lab_test_ids.0", or "".
func (h *header) columnOf(path string) string {
	path = strings.TrimPrefix(path, "body.")
	for {
		if name := h.byPath[path]; name != "" {
			return name
		}
		dot := strings.LastIndexByte(path, '.')
		switch {
		case dot >= 0:
			path = path[:dot]
		case path == "user_id":
			return h.byPath[userColumn]
		default:
			return ""
		}
	}
}

// name sets the columns of problems.
func (h *header) name(problems []Problem) {
	if h == nil {
		return
	}
	for i := range problems {
		if p := &problems[i]; p.Column == "" && p.Path != "" {
			p.Column = h.columnOf(p.Path)
		}
	}
}

// foldName returns the form in which the names of columns are compared: without case, and with
// spaces and hyphens as underscores.
func foldName(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == ' ' || r == '_' || r == '-' || r == '\u00a0' })
	return strings.Join(words, "_")
}

// renames maps folded names in a file to columns.
type renames map[string]column

func newRenames(rename map[string]string) (renames, error) {
	names := renames{userColumn: {path: userColumn}}
	for path, c := range columns() {
		names[path] = c
	}
	seen := map[string]string{}
	for _, from := range slices.Sorted(maps.Keys(rename)) {
		to := rename[from]
		c, ok := columns()[to]
		switch {
		case to == userColumn:
			c, ok = column{path: userColumn}, true
		case to == "-":
			ok = true
		}
		if !ok {
			return nil, fmt.Errorf("bulk: CSVOptions.Rename: %q is not one of CSVColumns%s", to, maybe(suggestion(to)))
		}
		if other, ok := seen[foldName(from)]; ok && rename[other] != to {
			return nil, fmt.Errorf("bulk: CSVOptions.Rename: %q and %q are the same name", other, from)
		}
		seen[foldName(from)] = from
		names[foldName(from)] = c
	}
	return names, nil
}

// column returns the column with a name. A column without a name is known, and sets nothing.
func (r renames) column(name string) (column, bool) {
	if name == "" {
		return column{}, true
	}
	c, ok := r[foldName(name)]
	return c, ok
}

// columnNumber returns the number of a column as a person and a spreadsheet count: "28 (AB)".
func columnNumber(i int) string {
	return fmt.Sprintf("%d (%s)", i+1, UnknownColumn{Number: i + 1}.Letters())
}

// UnknownColumnsError reports columns of a CSV file whose values would not be sent. Its message has
// their numbers, and their names only if they are like those of fields: in a file that has its
// patients in columns, names are patient data.
type UnknownColumnsError struct {
	Columns []UnknownColumn // from left to right
}

// UnknownColumn is a column of a CSV file that [CSV] does not know. Printed or logged, it shows
// nothing.
type UnknownColumn struct {
	labhealth.Redacted `json:"-"`

	Number int    // from 1
	Name   string `json:"-"` // in the file
	Near   string // the name of [CSVColumns] that it may be; empty if there is none
}

// Letters returns the number as a spreadsheet shows it: "AB".
func (c UnknownColumn) Letters() (letters string) {
	for n := c.Number; n > 0; n = (n - 1) / 26 {
		letters = string(rune('A'+(n-1)%26)) + letters
	}
	return letters
}

// Error returns a message with the numbers of the columns, and what they may be.
func (e *UnknownColumnsError) Error() string {
	if e == nil {
		e = &UnknownColumnsError{}
	}
	var list []string
	for i, c := range e.Columns {
		if i == 50 {
			list = append(list, fmt.Sprintf("and %d others", len(e.Columns)-i))
			break
		}
		name := columnNumber(c.Number - 1)
		if c.Near != "" {
			name += fmt.Sprintf(" %q", c.Name)
		}
		list = append(list, name+maybe(c.Near))
	}
	return fmt.Sprintf("bulk: the CSV file has unknown columns, whose values would not be sent: %s; "+
		`map them in CSVOptions.Rename to one of CSVColumns, or to "-"`, strings.Join(list, ", "))
}

func maybe(near string) string {
	if near == "" {
		return ""
	}
	return " (" + near + "?)"
}

// suggestion returns the column that an unknown name ends like, without its path, or "". Of several
// it is that of the patient.
func suggestion(name string) (near string) {
	name = foldName(name)
	for _, column := range CSVColumns() {
		last := column[strings.LastIndexByte(column, '.')+1:]
		if name == last && (near == "" || strings.HasPrefix(column, "patient_") && strings.Count(column, ".") == 1) {
			near = column
		}
	}
	return near
}
