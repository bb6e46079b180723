// Times in the format of the service.

package labhealthtest

import "time"

// timestamp is a date-time as most responses write it: in whole seconds or microseconds, with the
// offset +00:00.
type timestamp time.Time

// MarshalText writes the date-time.
func (t timestamp) MarshalText() ([]byte, error) {
	layout := "2006-01-02T15:04:05+00:00"
	if time.Time(t).Nanosecond() != 0 {
		layout = "2006-01-02T15:04:05.000000+00:00"
	}
	return time.Time(t).AppendFormat(nil, layout), nil
}

// microTimestamp is a date-time as order transactions write it, with Z instead of an offset.
type microTimestamp time.Time

// MarshalText writes the date-time.
func (t microTimestamp) MarshalText() ([]byte, error) {
	return time.Time(t).AppendFormat(nil, "2006-01-02T15:04:05.000000Z"), nil
}

// birthDate is a date that responses write as a date-time.
type birthDate string

// MarshalText writes the date-time.
func (d birthDate) MarshalText() ([]byte, error) {
	return []byte(d + "T00:00:00+00:00"), nil
}

// localTimestamp is a date-time as appointments write it: in UTC, without an offset.
type localTimestamp time.Time

// MarshalText writes the date-time.
func (t localTimestamp) MarshalText() ([]byte, error) {
	return time.Time(t).AppendFormat(nil, "2006-01-02T15:04:05"), nil
}
