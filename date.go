// Date, a day without a time or a zone.

package labhealth

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// Date is a calendar date without a time or time zone: the type "date" of the interface
// specification. Dates are comparable with ==. The zero Date is not a valid date: it prints as
// "0000-00-00" and cannot be sent.
type Date struct {
	Year  int        // 1 to 9999
	Month time.Month // 1 to 12
	Day   int        // 1 to 31, at most the last day of the month
}

var errDate = errors.New("labhealth: not a date: want YYYY-MM-DD and a day that exists")

// ParseDate parses a date in the form "2006-01-02". It also accepts a date-time, because some
// deployments send a date of birth as midnight: the result is the date as written, regardless of
// the offset. The error does not quote s. See [Date.UnmarshalJSON] for dates of requests.
func ParseDate(s string) (Date, error) {
	return parseDate([]byte(s))
}

func parseDate(b []byte) (Date, error) {
	year, month, day, ok := jsonread.ParseDate(b)
	if ok && len(b) > 10 {
		_, ok = jsonread.ParseTime(b)
	}
	if !ok {
		return Date{}, errDate
	}
	return Date{year, month, day}, nil
}

var _ = jsonread.Text(parseDate)

// DateOf returns the date of t in t's location.
func DateOf(t time.Time) Date {
	year, month, day := t.Date()
	return Date{year, month, day}
}

// valid reports whether d exists, in the years 1 to 9999.
func (d Date) valid() bool {
	return d.Year >= 1 && d.Year <= 9999 && d.Month >= 1 && d.Month <= 12 && d.Day >= 1 &&
		(d.Day <= 28 || d.Day <= jsonread.DaysIn(d.Year, d.Month))
}

// IsZero reports whether d is the zero Date.
func (d Date) IsZero() bool { return d == Date{} }

// Compare returns -1 if d is before e, 0 if they are equal, and +1 if d is after e.
func (d Date) Compare(e Date) int {
	return cmp.Or(cmp.Compare(d.Year, e.Year), cmp.Compare(d.Month, e.Month), cmp.Compare(d.Day, e.Day))
}

// String returns the date in the form YYYY-MM-DD.
func (d Date) String() string { return fmt.Sprintf("%04d-%02d-%02d", d.Year, int(d.Month), d.Day) }

// MarshalJSON encodes d as a JSON string, and the zero Date as null.
func (d Date) MarshalJSON() ([]byte, error) {
	if d.IsZero() {
		return []byte("null"), nil
	}
	if !d.valid() {
		return nil, errDate
	}
	text := []byte(`"0000-00-00"`) // package time would take most of the time of a request
	setDigits(text[1:5], d.Year)
	setDigits(text[6:8], int(d.Month))
	setDigits(text[9:11], d.Day)
	return text, nil
}

// setDigits writes the last digits of n over zeros.
//
//go:noinline // or the compiler copies it three times
func setDigits(zeros []byte, n int) {
	for i := len(zeros) - 1; n > 0; i-- {
		zeros[i] += byte(n % 10)
		n /= 10
	}
}

// UnmarshalJSON decodes a JSON string like [ParseDate], but a date-time must be midnight, because
// JavaScript writes a midnight east of UTC as 23:00 of the day before. This applies to the requests
// of this package; its responses read a date-time as the date that is written. Null leaves d
// unchanged. The error is a *[json.UnmarshalTypeError], in which Go up to 1.26 names the field.
func (d *Date) UnmarshalJSON(b []byte) (err error) {
	if string(b) == "null" {
		return nil
	}
	var text string
	if len(b) == 0 || b[0] != '"' || json.Unmarshal(b, &text) != nil {
		return dateTypeError("what is not a date (want YYYY-MM-DD)")
	}
	date, err := ParseDate(text)
	if err != nil {
		return dateTypeError("what is not a date (want YYYY-MM-DD and a day that exists)")
	}
	if t, _ := jsonread.ParseTime([]byte(text)); !t.Equal(time.Date(date.Year, date.Month, date.Day, 0, 0, 0, 0, t.Location())) {
		return dateTypeError("a date with a time of day, which a time zone may have moved to another day (want YYYY-MM-DD),")
	}
	*d = date
	return nil
}

func dateTypeError(what string) error {
	return &json.UnmarshalTypeError{Value: what, Type: reflect.TypeFor[Date]()}
}
