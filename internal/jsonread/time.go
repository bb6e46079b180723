package jsonread

import "time"

// ParseTime reads an ISO 8601 date-time as the service writes it: with any number of fraction digits (nanoseconds are kept),
// with an offset, with Z, without an offset (UTC), or a bare date (midnight UTC).
func ParseTime(b []byte) (time.Time, bool) { return parseTime(b, time.FixedZone) }

func parseTime(b []byte, zone func(string, int) *time.Location) (time.Time, bool) {
	year, month, day, ok := ParseDate(b)
	if !ok {
		return time.Time{}, false
	}
	if len(b) == 10 {
		return time.Date(year, month, day, 0, 0, 0, 0, time.UTC), true
	}
	if len(b) < 19 || (b[10]|0x20 != 't' && b[10] != ' ') || b[13] != ':' || b[16] != ':' {
		return time.Time{}, false
	}
	hour, minute, second := two(b, 11), two(b, 14), two(b, 17)
	if hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59 {
		return time.Time{}, false
	}
	i, nanos := 19, 0
	if i < len(b) && b[i] == '.' {
		unit := 100_000_000
		for i++; i < len(b) && b[i]-'0' < 10; i++ {
			nanos += int(b[i]-'0') * unit
			unit /= 10
		}
		if b[i-1] == '.' {
			return time.Time{}, false
		}
	}
	offset, ok := parseOffset(b[i:])
	if !ok {
		return time.Time{}, false
	}
	loc := time.UTC
	if offset != 0 {
		loc = zone("", offset)
	}
	return time.Date(year, month, day, hour, minute, second, nanos, loc), true
}

// parseOffset reads "", "Z", "+02", "+0200" or "+02:00" as seconds east of UTC.
func parseOffset(b []byte) (seconds int, ok bool) {
	if len(b) == 0 || (len(b) == 1 && b[0]|0x20 == 'z') {
		return 0, true
	}
	if b[0] != '+' && b[0] != '-' {
		return 0, false
	}
	hours, minutes := -1, 0
	switch {
	case len(b) == 3:
		hours = two(b, 1)
	case len(b) == 5:
		hours, minutes = two(b, 1), two(b, 3)
	case len(b) == 6 && b[3] == ':':
		hours, minutes = two(b, 1), two(b, 4)
	}
	if hours < 0 || hours > 23 || minutes < 0 || minutes > 59 {
		return 0, false
	}
	seconds = hours*3600 + minutes*60
	if b[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}

// ParseDate reads the YYYY-MM-DD that b begins with. The day must exist.
func ParseDate(b []byte) (year int, month time.Month, day int, ok bool) {
	if len(b) < 10 || b[4] != '-' || b[7] != '-' {
		return 0, 0, 0, false
	}
	century, rest, m, d := two(b, 0), two(b, 2), two(b, 5), two(b, 8)
	if century < 0 || rest < 0 || m < 1 || m > 12 || d < 1 {
		return 0, 0, 0, false
	}
	year, month, day = century*100+rest, time.Month(m), d
	return year, month, day, day <= 28 || day <= DaysIn(year, month)
}

// DaysIn returns the number of days of a month in the Gregorian calendar.
func DaysIn(year int, month time.Month) int {
	return time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// two reads two digits, or returns -1.
func two(b []byte, i int) int {
	tens, ones := b[i]-'0', b[i+1]-'0'
	if tens > 9 || ones > 9 {
		return -1
	}
	return int(tens)*10 + int(ones)
}
