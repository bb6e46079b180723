package webhooks

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"sync/atomic"
	"time"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// A batch of samples is read here in one pass over its text. Samples of a batch look alike, so the reader remembers the text
// that stood before each value of the sample before, and where the same text comes again it goes straight to the value. What
// is not as usual, such as a value of the wrong kind, is left to the general reader (see generalSamples), which reads the same
// values from whatever this one reads.

// batchMembers are the members of a batch, in the order in which they mostly come.
var batchMembers = expected("user_id", "source_id", "source", "data", "provider")

const dataMember = 3 // in batchMembers

// batch reads the data here into s and p.one, which are zero. It reports false if it is no batch, or not for it.
func (p *parser) batch(s *Samples) bool {
	if p.at() != '{' {
		return false
	}
	lo := p.i
	seen, n := 0, -1
	for more := p.open('}'); more; {
		var ok bool
		if n, ok = p.oneOf(batchMembers, n+1); !ok {
			return false
		}
		if n < len(batchMembers) {
			if seen&(1<<n) != 0 {
				return false
			}
			seen |= 1 << n
		}
		switch n {
		case 0: // user_id
			ok = p.uuid(&s.UserID)
		case 1: // source_id
			ok = p.integer(&s.SourceID)
		case 2: // source
			ok = p.source(&s.Source)
		case dataMember:
			ok = p.at() == '[' && p.list(s)
		case 4: // provider
			if p.at() == 'n' {
				ok = p.has("null")
			} else {
				s.Provider = new(Source)
				ok = p.source(s.Provider)
			}
		default:
			ok = p.skip(2)
		}
		if !ok {
			return false
		}
		if more, ok = p.more('}'); !ok {
			return false
		}
	}
	s.RawObject = labhealth.RawObject(p.doc.Ref(lo, p.i, 1))
	return seen&(1<<dataMember) != 0
}

// integer reads null or a whole number as it is usually written.
func (p *parser) integer(to *int64) bool {
	if p.at() == 'n' {
		return p.has("null")
	}
	lo := p.i
	if !p.number() || p.i-lo > 18 {
		return false
	}
	n, digits := int64(0), p.text[lo:p.i]
	if digits[0] == '-' {
		digits = digits[1:]
	}
	for _, c := range digits {
		if c-'0' > 9 {
			return false
		}
		n = n*10 + int64(c-'0')
	}
	if p.text[lo] == '-' {
		n = -n
	}
	*to = n
	return true
}

// sourceMembers are the members of a Source. The first five are strings, the others pointers to strings.
var sourceMembers = expected("name", "slug", "logo", "provider", "type", "app_id", "device_id", "sport", "workout_id")

// source reads the source of the data. Its strings are parts of one.
func (p *parser) source(src *Source) bool {
	if p.at() != '{' {
		return false
	}
	start := p.i
	var places [9]struct {
		lo, hi                int
		seen, string, escaped bool
	}
	n := -1
	for more := p.open('}'); more; {
		var ok bool
		if n, ok = p.oneOf(sourceMembers, n+1); !ok {
			return false
		}
		switch {
		case n == len(sourceMembers):
			ok = p.skip(3)
		case places[n].seen:
			return false
		case p.at() == 'n':
			ok = p.has("null")
			places[n].seen = true
		default:
			at := &places[n]
			at.seen, at.string = true, true
			at.lo, at.hi, at.escaped, ok = p.str()
		}
		if !ok {
			return false
		}
		if more, ok = p.more('}'); !ok {
			return false
		}
	}
	all := string(p.text[start:p.i])
	for n := range places {
		at := &places[n]
		if !at.string {
			continue
		}
		text := all[at.lo-start : at.hi-start]
		if at.escaped {
			text = p.string(at.lo, at.hi, true)
		}
		switch n {
		case 0:
			src.Name = text
		case 1:
			src.Slug = text
		case 2:
			src.Logo = text
		case 3:
			src.Provider = text
		case 4:
			src.Type = SourceType(text)
		case 5:
			src.AppID = new(text)
		case 6:
			src.DeviceID = new(text)
		case 7:
			src.Sport = new(text)
		case 8:
			src.WorkoutID = new(text)
		}
	}
	src.RawObject = labhealth.RawObject(p.doc.Ref(start, p.i, 2))
	return true
}

// slot is what stands before one value of a sample: for the first, the end of the sample before it too.
type slot struct {
	lo, hi uint32 // where that text is; lo is 0 if it is not known
	field  uint8
}

// list reads the array of samples here.
func (p *parser) list(s *Samples) bool {
	if !p.open(']') {
		s.Data = []Sample{}
		return true
	}
	data, ok := p.room()
	if !ok || p.at() != '{' {
		return false
	}
	var (
		layout  [16]slot
		length  int // slots in use
		closing int // where in the text before layout[0] the sample before ends
		opening int // and where the next one begins
		m       int // members of this sample so far
		end     int // where the last value ended
		times   clock
		types   words
		units   words
	)
	data = data[:1]
	cur := &data[0]
	cur.doc, cur.lo = p.doc, uint32(p.i)
	for {
		// Here the text stands behind a value of cur, or at its opening brace if m is 0 and the layout is not known.
		var field uint8
		switch {
		case m > 0 && m < length && p.again(layout[m].lo, layout[m].hi):
			field = layout[m].field
			m++
		case m > 0 && m == length && layout[0].lo > 0 && p.again(layout[0].lo, layout[0].hi):
			cur.hi = uint32(end + closing)
			if len(data) == cap(data) {
				return false
			}
			data = data[:len(data)+1]
			cur = &data[len(data)-1]
			cur.doc, cur.lo = p.doc, uint32(end+opening)
			field = layout[0].field
			m = 1
		default:
			// Find the next name step by step, and remember the way.
			if m == 0 {
				if !p.open('}') {
					return false // an empty sample
				}
			} else {
				more, ok := p.more('}')
				if !ok {
					return false
				}
				if !more {
					cur.hi = uint32(p.i)
					length = m
					if more, ok = p.more(']'); !ok {
						return false
					}
					if !more {
						s.Data = trimmed(data)
						return true
					}
					if p.at() != '{' || len(data) == cap(data) {
						return false
					}
					closing, opening = int(cur.hi)-end, p.i-end
					data = data[:len(data)+1]
					cur = &data[len(data)-1]
					cur.doc, cur.lo = p.doc, uint32(p.i)
					if !p.open('}') {
						return false
					}
					m = 0
				}
			}
			likely, seen := 0, 0
			for _, l := range layout[:m] {
				likely = int(l.field) + 1
				seen |= 1 << l.field
			}
			n, ok := p.oneOf(sampleMembers, likely)
			if !ok || m == len(layout) {
				return false
			}
			field = uint8(n)
			if field != otherField && seen&(1<<field) != 0 {
				return false // a name that comes twice
			}
			if m > 0 || layout[0].field != field {
				length = m + 1
			}
			layout[m] = slot{uint32(end), uint32(p.i), field}
			m++
		}
		switch field {
		case timestampField:
			ok = p.time(&cur.Timestamp, &times)
		case valueField:
			ok = p.value(cur)
		case unitField:
			ok = p.word(&cur.Unit, &units)
		case typeField:
			ok = p.word(&cur.Type, &types)
		case offsetField:
			ok = p.offset(cur)
		case startField:
			ok = p.time(&cur.Start, &times)
		case endField:
			ok = p.time(&cur.End, &times)
		case systolicField:
			ok = p.numberOrNull(&cur.Systolic)
		case diastolicField:
			ok = p.numberOrNull(&cur.Diastolic)
		default:
			if p.at() == 'n' {
				ok = p.has("null")
			} else {
				cur.Extra = true
				ok = p.skip(4)
			}
		}
		if !ok {
			return false
		}
		end = p.i
	}
}

// room returns memory for the samples of the array here, whose first element stands here.
func (p *parser) room() ([]Sample, bool) {
	rest := p.text[p.i:]
	n := bytes.Count(rest, []byte{'{'}) // one in each sample, and seldom any other
	if n*sampleSize > 2*len(rest) {
		array := scanner{text: p.text, i: p.i}
		n = array.rest()
	}
	if n == 1 {
		return p.one[:0], true
	}
	if n == 0 || n > mostSamples(len(p.text)) {
		return nil, false
	}
	return make([]Sample, 0, n), true
}

// trimmed returns data in no more than twice the memory it needs.
func trimmed(data []Sample) []Sample {
	if 2*len(data) < cap(data) {
		return append(make([]Sample, 0, len(data)), data...)
	}
	return data
}

// again steps over text[lo:hi], if the same stands here.
func (s *scanner) again(lo, hi uint32) bool {
	if end := s.i + int(hi-lo); end <= len(s.text) && string(s.text[s.i:end]) == string(s.text[lo:hi]) {
		s.i = end
		return true
	}
	return false
}

// offset reads a timezone offset.
func (p *parser) offset(to *Sample) bool {
	if p.at() == 'n' {
		return p.has("null")
	}
	text, i := p.text, p.i
	negative := i < len(text) && text[i] == '-'
	if negative {
		i++
	}
	first, n := i, int32(0)
	for i < len(text) && text[i]-'0' < 10 {
		n = n*10 + int32(text[i]-'0')
		i++
	}
	if i == first || i > first+6 || i > first+1 && text[first] == '0' || i < len(text) && (text[i] == '.' || text[i]|0x20 == 'e') {
		return false
	}
	if negative {
		n = -n
	}
	p.i = i
	to.TimezoneOffset, to.HasTimezoneOffset = n, true
	return true
}

// value reads the value of a sample: a number, the text of a note, or null.
func (p *parser) value(to *Sample) (ok bool) {
	switch p.at() {
	case '"':
		return p.nullOrString(&to.Text)
	case 'n':
		return p.has("null")
	}
	to.HasValue = true
	to.Value, ok = p.float()
	return ok
}

func (p *parser) numberOrNull(to *float64) (ok bool) {
	if p.at() == 'n' {
		return p.has("null")
	}
	*to, ok = p.float()
	return ok
}

// tens are the powers of ten that a uint64 holds.
var tens = func() (t [20]uint64) {
	for i, n := 0, uint64(1); i < len(t); i, n = i+1, n*10 {
		t[i] = n
	}
	return t
}()

// float reads a number.
func (s *scanner) float() (float64, bool) {
	text, start := s.text, s.i
	i := start
	negative := i < len(text) && text[i] == '-'
	if negative {
		i++
	}
	first := i
	var mantissa uint64
	for i < len(text) && text[i]-'0' < 10 {
		mantissa = mantissa*10 + uint64(text[i]-'0')
		i++
	}
	digits, fraction := i-first, 0
	if digits == 0 || digits > 1 && text[first] == '0' {
		return 0, false
	}
	if i < len(text) && text[i] == '.' {
		i++
		point := i
		for i < len(text) && text[i]-'0' < 10 {
			mantissa = mantissa*10 + uint64(text[i]-'0')
			i++
		}
		if fraction = i - point; fraction == 0 {
			return 0, false
		}
	}
	if digits+fraction <= 19 && (i == len(text) || text[i]|0x20 != 'e') {
		s.i = i
		f := quotient(mantissa, tens[fraction])
		if negative {
			f = -f
		}
		return f, true
	}
	if !s.number() || s.i-start > 100 {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(text[start:s.i]), 64)
	return f, err == nil
}

// quotient returns the float64 that is nearest to m/d, where d is not 0.
func quotient(m, d uint64) float64 {
	const exact = 1 << 53
	if m <= exact && d <= exact {
		return float64(m) / float64(d) // both are exact, so this is rounded once
	}
	// With the highest bits of both set, m/d has 63 or 64 bits before the point if m is shifted by 63 bits. What remains counts
	// only as a bit below those that a float64 has, so that the conversion rounds as it should.
	up, down := bits.LeadingZeros64(m), bits.LeadingZeros64(d)
	m, d = m<<up, d<<down
	q, rest := bits.Div64(m>>1, m<<63, d)
	if rest != 0 {
		q |= 1
	}
	return float64(q) * math.Float64frombits(uint64(1023-63+down-up)<<52)
}

// words are strings that occur again and again, such as units: each is made once.
type words struct {
	last knownWord
	some [4]knownWord
}

type knownWord struct {
	lo, hi uint32 // where it is in the text, with its quotes; 0 if there is none
	word   string
}

// commonWords are words of which none is made: the units and types that the service is known to send.
var commonWords = func() (t [128]string) {
	for _, word := range []string{"automatic", "manual_scan", "unknown", "phone", "watch", "app", "multiple_sources", "fingerprick", "cuff", "insulin_pump",
		"scale", "chest_strap", "ring", "lab", "exercise_machine", "earphone", "%", "kg", "count", "kcal", "mmol/L", "bpm", "rmssd", "ml", "mV", "mmHg", "m", "g",
		"min", "mL/kg/min", "L", "L/min", "index", "°C", "cm", "unit"} {
		t[hashOfWord([]byte(word))] = word
	}
	return t
}()

// hashOfWord tells words apart well enough, and all of commonWords from each other. The word is not empty.
func hashOfWord(word []byte) int {
	return (27*len(word) + int(word[0]) + int(word[len(word)/2])) % 128
}

// word reads null or a string.
func (p *parser) word(to *string, seen *words) bool {
	if w := &seen.last; w.lo > 0 && p.again(w.lo, w.hi) {
		*to = w.word
		return true
	}
	if p.at() == 'n' {
		return p.has("null")
	}
	start := p.i
	lo, hi, escaped, ok := p.str()
	if !ok {
		return false
	}
	if lo == hi {
		return true
	}
	hash := hashOfWord(p.text[lo:hi])
	w := &seen.some[hash%len(seen.some)]
	if common := commonWords[hash]; common == string(p.text[lo:hi]) {
		*w = knownWord{uint32(start), uint32(p.i), common}
	} else if w.lo == 0 || string(p.text[w.lo:w.hi]) != string(p.text[start:p.i]) {
		*w = knownWord{uint32(start), uint32(p.i), p.string(lo, hi, escaped)}
	}
	seen.last = *w
	*to = w.word
	return true
}

// clock remembers the day that was read last.
type clock struct {
	date uint64 // the bytes of 2006-01-
	day  uint16 // and 02
	unix int64  // its first second in UTC
}

// time reads null or a date-time.
func (p *parser) time(to *time.Time, c *clock) bool {
	text := p.text[p.i:]
	if len(text) >= 32 && text[0] == '"' { // the longest that is read here, or what follows it, has as many bytes
		if n := c.read(to, text); n > 0 {
			p.i += n
			return true
		}
	}
	lo, hi, ok := p.plain()
	if !ok {
		return false
	}
	if p.text[p.i-1] == 'l' {
		return true // null
	}
	*to, ok = jsonread.ParseTime(p.text[lo:hi])
	return ok
}

// read reads a date-time between quotes, as most are written: 2006-01-02T15:04:05, perhaps a fraction, Z or an offset. It
// returns how long it is, or 0 if it is written in another way. The text has at least 32 bytes.
func (c *clock) read(to *time.Time, text []byte) int {
	_ = text[31]
	if date, day := binary.LittleEndian.Uint64(text[1:]), binary.LittleEndian.Uint16(text[9:]); date != c.date || day != c.day {
		year, month, mday, ok := jsonread.ParseDate(text[1:11])
		if !ok {
			return 0
		}
		c.date, c.day = date, day
		c.unix = time.Date(year, month, mday, 0, 0, 0, 0, time.UTC).Unix()
	}
	// All of 15:04:05 at once: bytes that should be digits become 0 to 9, colons 0.
	w := binary.LittleEndian.Uint64(text[12:]) ^ 0x30303a30303a3030
	if text[11] != 'T' || (w|(w+0x76767f76767f7676))&highs != 0 {
		return 0
	}
	hour := int64(w&15*10 + w>>8&15)
	minute := int64(w>>24&15*10 + w>>32&15)
	second := int64(w>>48&15*10 + w>>56)
	if hour > 23 || minute > 59 || second > 59 {
		return 0
	}
	i, nanos := 20, int64(0)
	if text[i] == '.' {
		for i++; i < 30 && text[i]-'0' < 10; i++ {
			nanos = nanos*10 + int64(text[i]-'0')
		}
		if i == 21 || i == 30 { // no digits, or perhaps more than nine of them
			return 0
		}
		nanos *= int64(tens[30-i])
	}
	unix := c.unix + hour*3600 + minute*60 + second
	if text[i] == 'Z' && text[i+1] == '"' {
		*to = time.Unix(unix, nanos).UTC()
		return i + 2
	}
	if i+7 > len(text) || text[i+3] != ':' || text[i+6] != '"' {
		return 0
	}
	h10, h1, m10, m1 := text[i+1]-'0', text[i+2]-'0', text[i+4]-'0', text[i+5]-'0'
	if h10 > 2 || h1 > 9 || m10 > 5 || m1 > 9 || h10 == 2 && h1 > 3 {
		return 0
	}
	east := int(h10)*600 + int(h1)*60 + int(m10)*10 + int(m1)
	switch text[i] {
	case '+':
	case '-':
		east = -east
	default:
		return 0
	}
	if east == 0 {
		*to = time.Unix(unix, nanos).UTC()
	} else {
		*to = time.Unix(unix-int64(east)*60, nanos).In(zone(east))
	}
	return i + 7
}

// zones are the fixed zones in use, by minutes east of UTC, so that each is made once in the life of the program.
var zones [2 * 24 * 60]atomic.Pointer[time.Location]

func zone(minutes int) *time.Location {
	at := &zones[minutes+24*60]
	if loc := at.Load(); loc != nil {
		return loc
	}
	at.CompareAndSwap(nil, time.FixedZone("", minutes*60))
	return at.Load()
}
