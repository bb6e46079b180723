// Values that stand for others, fields of several columns, and columns that are missing.

package bulk

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/labhealth/labhealth-go"
)

// set sets the field of a column from a clean cell, or from the value that stands for it.
func (c *csvReader) set(body *labhealth.ImportOrderBody, column column, cell string) error {
	if value, ok := c.values[column.path][strings.ToLower(cell)]; ok {
		cell = value
	}
	return column.set(column.of(body), cell, c.dates)
}

// foldValues returns [CSVOptions.Values] with cells in the form in which they are compared.
func foldValues(values map[string]map[string]string) (map[string]map[string]string, error) {
	folded := map[string]map[string]string{}
	for path, of := range values {
		if _, ok := columns()[path]; !ok {
			return nil, fmt.Errorf("bulk: CSVOptions.Values: %q is not one of CSVColumns%s", path, maybe(suggestion(path)))
		}
		folded[path] = map[string]string{}
		for cell, value := range of {
			folded[path][strings.ToLower(strings.TrimSpace(cell))] = value
		}
	}
	return folded, nil
}

// composed is a field of [CSVOptions.Compose].
type composed struct {
	column

	template string
	columns  map[string]int // numbers of the columns, by their names in the template with braces
}

var columnInBraces = regexp.MustCompile(`\{[^{}]*\}`)

func newComposed(templates map[string]string, h *header) (all []composed, _ error) {
	for _, path := range slices.Sorted(maps.Keys(templates)) {
		c := composed{template: templates[path], columns: map[string]int{}}
		var ok bool
		if c.column, ok = columns()[path]; !ok {
			return nil, fmt.Errorf("bulk: CSVOptions.Compose: %q is not one of CSVColumns%s", path, maybe(suggestion(path)))
		}
		for _, name := range columnInBraces.FindAllString(c.template, -1) {
			i, ok := h.byName[foldName(strings.Trim(name, "{}"))]
			if !ok || i < 0 {
				return nil, fmt.Errorf("bulk: CSVOptions.Compose: the file does not have exactly one column %q", strings.Trim(name, "{}"))
			}
			c.columns[name] = i
		}
		if len(c.columns) == 0 {
			return nil, fmt.Errorf("bulk: CSVOptions.Compose: %q has no column in braces", c.template)
		}
		all = append(all, c)
	}
	return all, nil
}

// compose sets the fields of CSVOptions.Compose that have no cell.
func (c *csvReader) compose(problems []Problem, cells []string, body *labhealth.ImportOrderBody) []Problem {
	for _, field := range c.composed {
		isEmpty := true
		text := columnInBraces.ReplaceAllStringFunc(field.template, func(name string) string {
			i := field.columns[name]
			cell, err := clean(cells[i])
			if err != nil {
				problems = append(problems, Problem{Path: field.problemPath(), Reason: err.Error(), Column: c.header.columns[i].header})
			}
			isEmpty = isEmpty && cell == ""
			return cell
		})
		if isEmpty || !field.of(body).IsZero() {
			continue
		}
		if err := c.set(body, field.column, strings.Join(strings.Fields(text), " ")); err != nil {
			problems = append(problems, Problem{Path: field.problemPath(), Reason: err.Error()})
		}
	}
	return problems
}

// missingColumns returns the fields without which every record is invalid, and that neither a
// column nor an option can set.
func (c *csvReader) missingColumns() (missing []string) {
	if c.opts.Row != nil {
		return nil
	}
	var body labhealth.ImportOrderBody
	setDefaults(&body, c.opts.Defaults)
	isSet := func(path string) bool {
		return c.header.byPath[path] != "" || path == "user_id" && c.header.byPath[userColumn] != "" || c.opts.Compose[path] != ""
	}
	for _, p := range problemsOf(body.Validate()) {
		path := strings.TrimPrefix(p.Path, "body.")
		if _, isColumn := columns()[path]; !isColumn || isSet(path) {
			continue
		}
		if path == "user_id" && c.opts.Users != nil {
			path = "user_id or client_user_id"
		}
		missing = append(missing, path)
	}
	return missing
}

// missingErr returns an error if columns are missing. A nil header has none.
func (h *header) missingErr() error {
	if h == nil || len(h.missing) == 0 {
		return nil
	}
	return sourceError(fmt.Errorf("bulk: the CSV file has no column for %s, and without it every record is invalid: "+
		"name the column in CSVOptions.Rename, or set the field with CSVOptions.Compose or CSVOptions.Defaults", strings.Join(h.missing, ", ")))
}
