// The stored form of a sample and its shape.

package newest

import (
	"math"
	"time"
)

// Form is the form in which the content of a sample is stored.
type Form uint8

// The forms.
const (
	Point    Form = iota // a number at a timestamp
	Interval             // also a start, which is the timestamp, and an end whole seconds later
	JSON                 // anything else: its JSON
)

// FormOf returns the form of a webhooks.Sample that has these fields, and the seconds of an
// Interval. The times are pointers because copying them is slower than comparing them.
func FormOf(timestamp, start, end *time.Time, extra bool, text string, systolic, diastolic float64) (form Form, seconds uint32) {
	switch {
	case extra || text != "" || systolic != 0 || diastolic != 0 || timestamp.IsZero():
		return JSON, 0
	case start.IsZero() && end.IsZero():
		return Point, 0
	}
	length := end.Sub(*start)
	if !start.Equal(*timestamp) || eastOf(start) != eastOf(timestamp) || eastOf(end) != eastOf(timestamp) ||
		length < 0 || length%time.Second != 0 || length/time.Second > math.MaxUint32 {
		return JSON, 0
	}
	return Interval, uint32(length / time.Second)
}

func eastOf(t *time.Time) int {
	_, east := t.Zone()
	return east
}

// Shape holds the fields that many samples of the form Point or Interval share. Samples of the form
// JSON have no other field set.
type Shape struct {
	Form              Form
	HasValue          bool
	HasTimezoneOffset bool
	TimezoneOffset    int32
	East              int32 // offset of the received timestamp, in seconds east of UTC
	Type              string
	Unit              string
}

// FitsColumns reports whether databases store a value and the seconds of an interval unchanged:
// they have signed integers of 32 bits, no sign of a zero, and no infinities or NaN. A sample that
// does not fit is stored as JSON.
func FitsColumns(value float64, seconds uint32) bool {
	isNegativeZero := value == 0 && math.Signbit(value)
	return seconds <= math.MaxInt32 && !math.IsInf(value, 0) && !math.IsNaN(value) && !isNegativeZero
}
