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

	createsUsers bool // rows may have created users
}

// newHeader returns the header with the given cells.
func newHeader(cells []string, rename map[string]string) (*header, error) {
	names, err := newRenames(rename)
	if err != nil {
		return nil, err
	}
	h := &header{byPath: map[string]string{}, byName: map[string]int{}}
	var unknown []int
	for i, cell := range cells {
		name := strings.TrimSpace(cell)
		if !utf8.ValidString(name) {
			return nil, fmt.Errorf("bulk: the name of column %s %w", columnNumber(i), errNotUTF8)
		}
		c, known := names.column(name)
		if !known {
			unknown = append(unknown, i)
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
		return nil, unknownColumns(cells, unknown)
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
			return nil, fmt.Errorf("bulk: CSVOptions.Rename: %q is not one of CSVColumns%s", to, suggestion(to))
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
	letters := ""
	for n := i + 1; n > 0; n = (n - 1) / 26 {
		letters = string(rune('A'+(n-1)%26)) + letters
	}
	return fmt.Sprintf("%d (%s)", i+1, letters)
}

// unknownColumns returns the error that names the unknown columns of a header. It does not show a
// name that could be patient data, as in a file that has patients in columns.
func unknownColumns(cells []string, unknown []int) error {
	var list []string
	hidden := false
	for n, i := range unknown {
		if n == 50 {
			list = append(list, fmt.Sprintf("and %d others", len(unknown)-n))
			break
		}
		name := strings.TrimSpace(cells[i])
		near := suggestion(name)
		if near == "" && !isColumnName(name) {
			hidden = true
			list = append(list, columnNumber(i))
			continue
		}
		list = append(list, fmt.Sprintf("%s %q%s", columnNumber(i), name, near))
	}
	note := ""
	if hidden {
		note = "; a name that could be patient data is not shown"
	}
	return fmt.Errorf("bulk: the CSV file has unknown columns, whose values would not be sent: %s; "+
		`map them in CSVOptions.Rename to one of CSVColumns, or to "-"%s`, strings.Join(list, ", "), note)
}

// suggestion returns the column whose name is nearest to an unknown one, as " (sample_id?)", or "".
func suggestion(name string) string {
	name = foldName(name)
	best, bestDistance := "", 3
	for _, column := range CSVColumns() {
		last := column[strings.LastIndexByte(column, '.')+1:]
		d := distance(name, column)
		if patients := strings.HasPrefix(column, "patient_"); last == name {
			d = 1 // without its path
			if patients && strings.Count(column, ".") == 1 {
				d = 0
			}
		}
		if d < bestDistance && 4*d < len(name) {
			best, bestDistance = column, d
		}
	}
	if best == "" {
		return ""
	}
	return " (" + best + "?)"
}

// distance returns the number of characters that are added, removed, changed or swapped between two
// names.
func distance(a, b string) int {
	if d := len(a) - len(b); d > 2 || d < -2 || len(a) > 100 {
		return 100
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			switch {
			case i == 0 || j == 0:
				rows[i][j] = i + j
				continue
			case a[i-1] == b[j-1]:
				rows[i][j] = rows[i-1][j-1]
			default:
				rows[i][j] = 1 + min(rows[i-1][j], rows[i][j-1], rows[i-1][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// isColumnName reports whether all words of a name occur in names of columns, so that it cannot be
// patient data.
func isColumnName(name string) bool {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return strings.ContainsRune(" _-./#()?:\u00a0", r) })
	for _, word := range words {
		if !columnWords()[strings.TrimSuffix(word, "s")] {
			return false
		}
	}
	return len(words) > 0
}

// columnWords returns the words that isColumnName accepts, without a final s.
var columnWords = sync.OnceValue(func() map[string]bool {
	words := map[string]bool{}
	names := append(CSVColumns(), strings.Fields(`
		account age allergy amount appointment approved area at authorized balance bar barcode batch
		billing biological birth birthday birthdate blood bmi booking branch by campaign cell chart
		client clinic clinician code cohort collected collection comment company complete condition
		consent contact copay county created currency customer data date datetime day delivered
		department description diagnosis doctor document dob draw drawn due email emergency employer
		encounter enrollment event expiration external facility family fasting fax file flag form
		full gender given group guarantor health height history home hour icd identifier imported
		initial insurance insurer internal invoice is key kit lab label language last legal letter
		line link list local location mail marital marker medical medication member middle mobile
		modified month mrn name nation national new nickname note notification npi number nurse of
		office old on order ordered ordering organization other owner panel parent partner passport
		patient payer payment pcp person phone physician plan policy postal postcode practice
		preferred prefix prescription price primary priority program project provider purchase
		purpose reason received record ref reference referral referring region relation relationship
		remark reminder requested requisition result row salutation sample schedule scheduled
		secondary sent sequence serial service sex shipping signature site source specimen
		spreadsheet ssn start state status street study subject submitted suffix surname symptom
		system tag tax team telephone test time timestamp timezone title to tracking type
		unit updated url user value version visit vendor weight work year zip zipcode`)...)
	for _, name := range names {
		for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '.' || r == '_' }) {
			words[strings.TrimSuffix(word, "s")] = true
		}
	}
	return words
})
