// Dates and date-times in all supported formats.

package jsonread

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"
	"time"
)

// ParseTime parses an ISO 8601 date-time as the service writes it: with any number of fraction
// digits (nanoseconds are kept), with an offset, with Z, without an offset (UTC), or a bare date
// (midnight UTC).
func ParseTime(b []byte) (time.Time, bool) {
	year, month, day, ok := ParseDate(b)
	if !ok {
		return time.Time{}, false
	}
	unix := midnight(year, month, day)
	if len(b) == 10 {
		return timeAt(unix, 0, 0), true
	}
	if len(b) < 19 || b[10]|0x20 != 't' && b[10] != ' ' {
		return time.Time{}, false
	}
	seconds, ok := parseTimeOfDay(binary.LittleEndian.Uint64(b[11:]))
	if !ok {
		return time.Time{}, false
	}
	i, nanos := 19, int64(0)
	if i < len(b) && b[i] == '.' {
		var digits int
		if nanos, digits = parseFraction(b[i+1:]); digits == 0 {
			return time.Time{}, false
		}
		i += 1 + digits
	}
	east, ok := parseOffset(b[i:])
	if !ok {
		return time.Time{}, false
	}
	return timeAt(unix+seconds, nanos, east), true
}

// ParseDate parses the YYYY-MM-DD that b starts with. The day must exist.
func ParseDate(b []byte) (year int, month time.Month, day int, ok bool) {
	if len(b) < 10 {
		return 0, 0, 0, false
	}
	return parseDate(binary.LittleEndian.Uint64(b), uint64(binary.LittleEndian.Uint16(b[8:])))
}

// parseDate parses the bytes of 2006-01- and those of 02, in little-endian order.
func parseDate(yearMonth, dd uint64) (year int, month time.Month, day int, ok bool) {
	w, d := yearMonth^0x2d30302d30303030, dd^0x3030 // digits become 0 to 9, dashes 0
	if (w|(w+0x7f76767f76767676)|d|(d+0x7676))&highBits != 0 {
		return 0, 0, 0, false
	}
	year = int(w&15*1000 + w>>8&15*100 + w>>16&15*10 + w>>24&15)
	month, day = time.Month(w>>40&15*10+w>>48&15), int(d&15*10+d>>8)
	ok = month-1 < 12 && day > 0 && (day <= 28 || day <= DaysIn(year, month))
	return year, month, day, ok && month > 0
}

// DaysIn returns the number of days of a month in the Gregorian calendar.
func DaysIn(year int, month time.Month) int {
	return time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// midnight returns the Unix time of the start of a date in UTC, as [time.Date] does, but in a
// fraction of its time. The date exists, and its year is not negative.
//
//go:noinline // as grow of orders
func midnight(year int, month time.Month, day int) int64 {
	// Years start in March here, so that a leap day is the last of its year.
	y, m := year, int(month)-int(time.March)
	if m < 0 {
		y, m = y-1, m+12
	}
	y += 400 // not negative either
	days := 365*y + y/4 - y/100 + y/400 + (153*m+2)/5 + day - 1
	const epoch = 865565 // the days from March of the year -400 to 1970
	return int64(days-epoch) * 24 * 60 * 60
}

// parseTimeOfDay parses 15:04:05, whose bytes are given in little-endian order, as seconds after
// midnight.
func parseTimeOfDay(bytes uint64) (seconds int64, ok bool) {
	w := bytes ^ 0x30303a30303a3030 // digits become 0 to 9, colons 0
	// What is added gives a byte its high bit if it is above its maximum: 29:59:59.
	if (w|(w+0x767a7f767a7f767d))&highBits != 0 {
		return 0, false
	}
	hour := w&15*10 + w>>8&15
	return int64(hour*3600 + (w>>24&15*10+w>>32&15)*60 + w>>48&15*10 + w>>56), hour < 24
}

// parseFraction parses the digits that b starts with as a fraction of a second. It ignores those
// after the ninth.
func parseFraction(b []byte) (nanos int64, digits int) {
	if len(b) >= 8 {
		bytes := binary.LittleEndian.Uint64(b)
		if found := notDigits(bytes); found != 0 { // fewer than eight digits, as most have
			digits = bits.TrailingZeros64(found) / 8
			return int64(10 * eightDigits((bytes^'0'*lowBits)&(1<<(8*digits)-1))), digits
		}
	}
	value, digits := scanDigits(b[:min(len(b), 9)], 0, 0)
	nanos = int64(value * powersOf10[9-digits])
	for digits < len(b) && b[digits]-'0' < 10 {
		digits++
	}
	return nanos, digits
}

// parseOffset parses "", "Z", "+02", "+0200" or "+02:00" as seconds east of UTC.
func parseOffset(b []byte) (seconds int, ok bool) {
	switch {
	case len(b) == 0, len(b) == 1 && b[0]|0x20 == 'z':
		return 0, true
	case len(b) == 6 && b[3] == ':':
		return offsetOf(b[0], b[1], b[2], b[4], b[5])
	case len(b) == 5:
		return offsetOf(b[0], b[1], b[2], b[3], b[4])
	case len(b) == 3:
		return offsetOf(b[0], b[1], b[2], '0', '0')
	}
	return 0, false
}

// offsetOf returns the offset with a sign, two digits of hours and two of minutes.
//
//go:noinline // as grow of orders
func offsetOf(sign, h1, h2, m1, m2 byte) (seconds int, ok bool) {
	h1, h2, m1, m2 = h1-'0', h2-'0', m1-'0', m2-'0'
	seconds = int(h1)*36000 + int(h2)*3600 + int(m1)*600 + int(m2)*60
	if sign == '-' {
		seconds = -seconds
	} else if sign != '+' {
		return 0, false
	}
	return seconds, h2 < 10 && m1 < 6 && m2 < 10 && h1*10+h2 < 24 && h1 < 3
}

// timeAt returns the time with the wall clock reading unix, in seconds as if it were UTC, in the
// zone east seconds east of UTC.
func timeAt(unix, nanos int64, east int) time.Time {
	t := time.Unix(unix-int64(east), nanos)
	if east == 0 {
		return t.UTC()
	}
	return t.In(Zone(east / 60))
}

// zones are the fixed zones in use, by minutes east of UTC, so that a process allocates each once.
var zones [2 * 24 * 60]atomic.Pointer[time.Location]

// Zone returns the fixed zone that is so many minutes east of UTC.
func Zone(minutes int) *time.Location {
	if minutes <= -24*60 || minutes >= 24*60 { // JSON has no such offset, but a program may use it
		return time.FixedZone("", minutes*60)
	}
	cached := &zones[minutes+24*60]
	if loc := cached.Load(); loc != nil {
		return loc
	}
	cached.CompareAndSwap(nil, time.FixedZone("", minutes*60))
	return cached.Load()
}

// DateCache keeps the date that was parsed last: many times of a document have the same one. The
// zero value is empty.
type DateCache struct {
	yearMonth uint64 // the bytes of 2006-01-
	day       uint32 // and of 02, with another bit that an empty cache lacks
	unix      int64  // midnight UTC of that date
}

// parse parses the date whose bytes are yearMonth and day.
func (c *DateCache) parse(yearMonth uint64, day uint32) bool {
	y, m, d, ok := parseDate(yearMonth, uint64(day&0xffff))
	if !ok {
		return false
	}
	*c = DateCache{yearMonth, day, midnight(y, m, d)}
	return true
}

// Time decodes a date-time, as [ParseTime] does, or null.
func (s *FastScanner) Time(to *time.Time, dates *DateCache) bool {
	data := s.Data[s.Pos:]
	// The form that most have: 2006-01-02T15:04:05, optionally a fraction, then Z or an offset with
	// a colon.
	if len(data) < len(`"2006-01-02T15:04:05Z"`) || data[0] != '"' || data[11] != 'T' {
		return s.anyTime(to)
	}
	yearMonth, day := binary.LittleEndian.Uint64(data[1:]), uint32(binary.LittleEndian.Uint16(data[9:]))|1<<16
	if (yearMonth != dates.yearMonth || day != dates.day) && !dates.parse(yearMonth, day) {
		return s.anyTime(to)
	}
	seconds, ok := parseTimeOfDay(binary.LittleEndian.Uint64(data[12:]))
	if !ok {
		return s.anyTime(to)
	}
	i, nanos := 20, int64(0)
	if data[i] == '.' {
		var digits int
		nanos, digits = parseFraction(data[i+1:])
		if i += 1 + digits; digits == 0 || i+1 >= len(data) {
			return s.anyTime(to)
		}
	}
	if data[i] == 'Z' && data[i+1] == '"' {
		*to = time.Unix(dates.unix+seconds, nanos).UTC()
		s.Pos += i + 2
		return true
	}
	if i+7 > len(data) {
		return s.anyTime(to)
	}
	zone := data[i : i+7]
	east, ok := offsetOf(zone[0], zone[1], zone[2], zone[4], zone[5])
	if !ok || zone[3] != ':' || zone[6] != '"' {
		return s.anyTime(to)
	}
	s.Pos += i + 7
	if east != 0 {
		*to = timeAt(dates.unix+seconds, nanos, east)
		return true
	}
	*to = time.Unix(dates.unix+seconds, nanos).UTC()
	return true
}

// anyTime is Time for all forms of date-times, and for null.
func (s *FastScanner) anyTime(to *time.Time) bool {
	if s.Peek() == 'n' {
		return s.Null()
	}
	content, escaped, ok := s.String()
	if !ok || escaped {
		return false
	}
	*to, ok = ParseTime(content.Of(s.Data))
	return ok
}
