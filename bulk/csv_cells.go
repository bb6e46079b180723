// The values of cells, and the damage that spreadsheets do to them.

package bulk

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

// The errors of this file are the reasons of a [Problem].

var (
	errNotUTF8     = errors.New(`is not valid UTF-8: the file may be in Windows-1252; save it as "CSV UTF-8"`)
	errScientific  = errors.New("is in scientific notation: a spreadsheet has dropped its digits")
	errDecimal     = errors.New("ends in .0: a spreadsheet has treated it as a number")
	errSpreadsheet = errors.New("is an error value of a spreadsheet")
	errFormula     = errors.New("is a formula of a spreadsheet, not its value")
	errQuoted      = errors.New("starts or ends with a quote")
	errLineBreak   = errors.New("has a line break or another control character: a quote before it may not be closed")
	errTimeOfDay   = errors.New("has a time of day, so that a time zone may have moved it to another day: want the date, or midnight")
	errLostZero    = errors.New("has fewer than 5 digits: a spreadsheet has dropped the leading zero")
)

var (
	// Spreadsheets keep text with these marks: ="02139" and '02139.
	textFormula = regexp.MustCompile(`^="((?:[^"]|"")*)"$`)
	apostrophe  = regexp.MustCompile(`^['‘’]([+-]?\d[^\s'‘’]*|[+-]?\d[\d ().-]*)$`)

	formula     = regexp.MustCompile(`^=+ *["A-Za-z0-9(+-]`)
	scientific  = regexp.MustCompile(`^[+-]?(\d([.,]\d+)?[eE]\+\d+|\d[.,]\d+[eE]-?\d+)$`)
	decimal     = regexp.MustCompile(`^\+?\d{5,}\.0+$`)
	spreadsheet = regexp.MustCompile(`^(#([\p{Lu}/0]+[!?]|N/A|NV|#+)|Err:5\d\d)$`)
	shortZIP    = regexp.MustCompile(`^\d{3,4}(\.0+|-\d{4})?$`)
)

// clean returns a cell as it was entered, without the spaces around it and the marks of
// spreadsheets. The error is the reason why the cell cannot be what was entered.
func clean(cell string) (string, error) {
	if !utf8.ValidString(cell) {
		return cell, errNotUTF8
	}
	cell = strings.TrimSpace(strings.Map(plainSpace, cell))
	if m := textFormula.FindStringSubmatch(cell); m != nil {
		cell = strings.TrimSpace(strings.ReplaceAll(m[1], `""`, `"`))
	}
	if m := apostrophe.FindStringSubmatch(cell); m != nil {
		cell = m[1]
	}
	switch {
	case formula.MatchString(cell):
		return cell, errFormula
	case scientific.MatchString(cell):
		return cell, errScientific
	case decimal.MatchString(cell):
		return cell, errDecimal
	case spreadsheet.MatchString(cell):
		return cell, errSpreadsheet
	}
	return cell, nil
}

// plainSpace returns a space for one that looks like it, such as a no-break space.
func plainSpace(r rune) rune {
	if unicode.Is(unicode.Zs, r) {
		return ' '
	}
	return r
}

// set sets the field of body from a clean cell.
func (c field) set(v reflect.Value, cell string, dates dateLayouts) error {
	if c.name != "access_notes" && strings.ContainsFunc(cell, unicode.IsControl) {
		return errLineBreak
	}
	if isCode(c.name) && strings.Trim(cell, "\"'`´‘’“”") != cell {
		return errQuoted
	}
	if c.kind != list {
		return setScalar(v, cell, dates)
	}
	for item := range strings.SplitSeq(cell, ";") {
		e := reflect.New(v.Type().Elem()).Elem()
		if err := setScalar(e, strings.TrimSpace(item), dates); err != nil {
			return err
		}
		v.Set(reflect.Append(v, e))
	}
	return nil
}

// isCode reports whether no value of a field starts or ends with a quote.
func isCode(name string) bool {
	return name == "sample_id" || name == "zip" || name == "phone_number" || name == "npi"
}

func setScalar(v reflect.Value, s string, dates dateLayouts) (err error) {
	switch p := v.Addr().Interface().(type) {
	case *uuid.UUID:
		id, err := uuid.Parse(s)
		if err != nil || len(s) != 36 {
			return errors.New("is not a valid uuid")
		}
		*p = id
		return nil
	case *labhealth.Date:
		*p, err = dates.parse(s)
		return err
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

// hasLostZero reports whether a US ZIP code has lost its leading zero.
func hasLostZero(zip, country string) bool {
	switch strings.ToUpper(strings.ReplaceAll(country, ".", "")) {
	case "", "US", "USA", "UNITED STATES":
		return shortZIP.MatchString(zip)
	}
	return false
}

// dateLayouts are the layouts in which a file has dates.
type dateLayouts struct {
	layouts []string // for time.Parse, with leading zeros optional
	form    string   // such as "MM/DD/YYYY"
}

// optionalZero matches a month or a day that is separated from other digits.
var optionalZero = regexp.MustCompile(`(^|[^0-9])0([12])($|[^0-9])`)

// timeOfDay matches the time at the end of a layout.
var timeOfDay = regexp.MustCompile(`[ T]*(15|0?3)[:.]?04.*$`)

// newDateLayouts returns the layouts of [CSVOptions.DateLayouts].
func newDateLayouts(layouts []string) (d dateLayouts, _ error) {
	if len(layouts) == 0 {
		layouts = []string{time.DateOnly}
	}
	// A date that shows which number is which, and what a layout omits.
	probe := time.Date(2003, time.April, 5, 0, 0, 0, 0, time.UTC)
	for _, layout := range layouts {
		parsed, err := time.Parse(layout, probe.Format(layout))
		if err != nil || !parsed.Equal(probe) || strings.Contains(strings.ReplaceAll(layout, "2006", ""), "06") {
			return d, fmt.Errorf("bulk: CSVOptions.DateLayouts: %q is not a layout of package time with a year of four digits, a month and a day", layout)
		}
		for _, other := range layouts {
			parsed, err := time.Parse(timeOfDay.ReplaceAllString(other, ""), probe.Format(timeOfDay.ReplaceAllString(layout, "")))
			if err == nil && !parsed.Equal(probe) {
				return d, fmt.Errorf("bulk: CSVOptions.DateLayouts: dates such as %s mean different days in %q and %q", probe.Format(layout), layout, other)
			}
		}
	}
	for _, layout := range layouts {
		relaxed := layout
		for range 2 { // because two matches share the separator between them
			relaxed = optionalZero.ReplaceAllString(relaxed, "$1$2$3")
		}
		d.layouts = append(d.layouts, relaxed)
	}
	if len(layouts) == 1 && layouts[0] == time.DateOnly {
		d.layouts = layouts // which is a standard
	}
	d.form = dateForm.Replace(strings.Join(layouts, " or "))
	return d, nil
}

// dateForm formats a layout for people who do not know package time.
var dateForm = strings.NewReplacer("2006", "YYYY", "January", "MMMM", "Jan", "MMM", "01", "MM", "02", "DD",
	"15", "hh", "04", "mm", "05", "ss", "1", "M", "2", "D")

var (
	dateAndTime = regexp.MustCompile(`^[^ T]+[ T]\d{1,2}:\d{2}`)
	onlyDigits  = regexp.MustCompile(`^\d{4,6}(\.\d+)?$`)
	dayAndMonth = regexp.MustCompile(`^(\d{1,2})([-/.])(\d{1,2})\b`)
	shortYear   = regexp.MustCompile(`^\d{1,2}[-/.]\d{1,2}[-/.]\d{2}$`)
)

func (d dateLayouts) parse(s string) (labhealth.Date, error) {
	t, ok := d.match(s)
	switch {
	case ok && !t.Equal(time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, t.Location())):
		return labhealth.Date{}, errTimeOfDay
	case ok && t.Year() < 1800:
		return labhealth.Date{}, errors.New("is a date before the year 1800")
	case ok:
		return labhealth.DateOf(t), nil
	}
	reason := "is not a valid date of the form " + d.form
	_, isSwapped := d.match(dayAndMonth.ReplaceAllString(s, "$3$2$1"))
	switch {
	case isSwapped:
		reason += ": day and month may be swapped, also in rows that have no problem"
	case dateAndTime.MatchString(s):
		reason += ": it has a time of day"
	case shortYear.MatchString(s):
		reason += ": its year has two digits"
	case onlyDigits.MatchString(s):
		reason += ": it is a number, as spreadsheets store dates"
	}
	return labhealth.Date{}, errors.New(reason)
}

// match parses a date of any layout.
func (d dateLayouts) match(s string) (t time.Time, ok bool) {
	for _, layout := range d.layouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return t, false
}
