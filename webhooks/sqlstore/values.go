package sqlstore

import (
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labhealth/labhealth-go/webhooks"
)

// shape is what many samples have in common.
type shape struct {
	interval  bool  // start is the timestamp, end some whole seconds later
	seconds   int32 // how many if that is a common length, else itsOwn
	hasValue  bool
	hasOffset bool
	offset    int32
	east      int32 // of the timestamp as it was written, in seconds
	kind      string
	unit      string
}

// itsOwn is in place of the seconds of a shape if each sample has them itself.
const itsOwn = -1

// isCommon reports whether many intervals last so many seconds: whole minutes up to an hour, whole hours up to a day.
func isCommon(seconds int32) bool {
	return seconds%60 == 0 && seconds <= 60*60 || seconds%(60*60) == 0 && seconds <= 24*60*60
}

func (sh shape) key() []byte {
	n := []byte{0, 0}
	if sh.interval {
		n[0] = 1
	}
	if sh.hasValue {
		n[1] |= 1
	}
	if sh.hasOffset {
		n[1] |= 2
	}
	n = binary.BigEndian.AppendUint32(n, uint32(sh.seconds))
	n = binary.BigEndian.AppendUint32(n, uint32(sh.offset))
	n = binary.BigEndian.AppendUint32(n, uint32(sh.east))
	return digest(string(n), sh.kind, sh.unit)
}

// content is a version of a sample but for its key and its version: columns, or its JSON if it does not fit them.
type content struct {
	value   float64
	seconds int32 // of an interval whose shape does not say them
	shape   shape
	text    string // JSON; if it is not empty, the others are zero
}

// contentOf returns the content of a sample whose key has the time at. The rules are those of [webhooks.Latest]: the two must agree
// on what is the same, and on what is greater.
func contentOf(s *webhooks.Sample, at int64) (content, error) {
	_, east := s.Timestamp.Zone()
	c := content{value: s.Value, shape: shape{
		hasValue: s.HasValue || s.Value != 0, hasOffset: s.HasTimezoneOffset || s.TimezoneOffset != 0, offset: s.TimezoneOffset,
		east: int32(east), kind: s.Type, unit: s.Unit,
	}}
	odd := s.Extra || s.Text != "" || s.Systolic != 0 || s.Diastolic != 0 || s.Timestamp.IsZero()
	seconds := time.Duration(0)
	if !odd && !(s.Start.IsZero() && s.End.IsZero()) {
		_, eastStart := s.Start.Zone()
		_, eastEnd := s.End.Zone()
		lasts := s.End.Sub(s.Start)
		seconds = lasts / time.Second
		odd = !s.Start.Equal(s.Timestamp) || eastStart != east || eastEnd != east || lasts < 0 || lasts%time.Second != 0 ||
			seconds > math.MaxUint32
		c.shape.interval = true
	}
	if odd {
		return written(s)
	}
	if seconds > math.MaxInt32 || math.IsInf(s.Value, 0) || math.IsNaN(s.Value) || s.Value == 0 && math.Signbit(s.Value) {
		// It does not fit the columns: what Latest would write of it is kept.
		whole := c.sample(at)
		if c.shape.interval {
			whole.End = whole.Start.Add(seconds * time.Second)
		}
		return written(&whole)
	}
	if c.shape.interval {
		if c.shape.seconds = int32(seconds); !isCommon(c.shape.seconds) {
			c.shape.seconds, c.seconds = itsOwn, c.shape.seconds
		}
	}
	return c, nil
}

func written(s *webhooks.Sample) (content, error) {
	text, err := s.MarshalJSON()
	if err != nil {
		return content{}, errUnwritable
	}
	return content{text: string(text)}, nil
}

// sample returns the sample of a content.
func (c *content) sample(at int64) (s webhooks.Sample) {
	if c.text != "" {
		s.UnmarshalJSON([]byte(c.text)) // it was written by MarshalJSON
		return s
	}
	t := time.Unix(0, at).UTC()
	if c.shape.east != 0 {
		t = t.In(time.FixedZone("", int(c.shape.east)))
	}
	s = webhooks.Sample{
		Timestamp: t, Value: c.value, HasValue: c.shape.hasValue, Type: c.shape.kind, Unit: c.shape.unit,
		TimezoneOffset: c.shape.offset, HasTimezoneOffset: c.shape.hasOffset,
	}
	if c.shape.interval {
		lasts := c.shape.seconds
		if lasts == itsOwn {
			lasts = c.seconds
		}
		s.Start, s.End = t, t.Add(time.Duration(lasts)*time.Second)
	}
	return s
}

// json is the text by which two contents of the same time and version are ordered.
func (c *content) json(at int64) string {
	if c.text != "" {
		return c.text
	}
	text, _ := c.sample(at).MarshalJSON()
	return string(text)
}

// digest is a key of bounded size for texts.
func digest(parts ...string) []byte {
	var all []byte
	for _, p := range parts {
		all = binary.AppendUvarint(all, uint64(len(p)))
		all = append(all, p...)
	}
	sum := sha256.Sum256(all)
	return sum[:16]
}

func seriesKey(of webhooks.Series) []byte {
	return digest(string(of.UserID[:]), of.Resource, of.Provider, of.SourceType)
}

// escape returns text as the databases take it: PostgreSQL has no byte 0, nor bytes that are not UTF-8. They are written as \x00;
// a backslash as two.
func escape(s string) string {
	if utf8.ValidString(s) && !strings.ContainsAny(s, "\\\x00") {
		return s
	}
	var text strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == '\\':
			text.WriteString(`\\`)
		case r == 0, r == utf8.RuneError && n == 1:
			text.WriteString(`\x` + hex.EncodeToString([]byte(s[:1])))
		default:
			text.WriteString(s[:n])
		}
		s = s[n:]
	}
	return text.String()
}

func unescape(s string) string {
	var text strings.Builder
	for {
		before, after, found := strings.Cut(s, `\`)
		text.WriteString(before)
		if !found {
			return text.String()
		}
		if b, err := hex.DecodeString(after[min(1, len(after)):min(3, len(after))]); strings.HasPrefix(after, "x") && err == nil && len(b) == 1 {
			text.WriteByte(b[0])
			s = after[3:]
			continue
		}
		text.WriteByte('\\')
		s = strings.TrimPrefix(after, `\`)
	}
}

// nanos returns t in nanoseconds since 1970; ok is false if they are too many for an int64.
func nanos(t time.Time) (unixNano int64, ok bool) {
	const most = math.MaxInt64/1_000_000_000 - 1
	s := t.Unix()
	return t.UnixNano(), -most <= s && s <= most
}

// clamped returns t in nanoseconds, or those nearest to it.
func clamped(t time.Time) int64 {
	n, ok := nanos(t)
	switch {
	case ok:
		return n
	case t.Unix() < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}

// array is the text of a PostgreSQL array, the one form in which every driver takes one.
type array []byte

func (a *array) next() {
	if len(*a) == 0 {
		*a = append(*a, '{')
		return
	}
	*a = append(*a, ',')
}

func (a *array) null() {
	a.next()
	*a = append(*a, "NULL"...)
}

func (a *array) int(n int64) {
	a.next()
	*a = strconv.AppendInt(*a, n, 10)
}

func (a *array) float(f float64) {
	a.next()
	*a = strconv.AppendFloat(*a, f, 'g', -1, 64)
}

func (a *array) bytes(b []byte) {
	a.next()
	*a = append(*a, `"\\x`...)
	*a = hex.AppendEncode(*a, b)
	*a = append(*a, '"')
}

func (a *array) text(s string) {
	a.next()
	*a = append(*a, '"')
	for i := 0; i < len(s); i++ {
		if s[i] == '"' || s[i] == '\\' {
			*a = append(*a, '\\')
		}
		*a = append(*a, s[i])
	}
	*a = append(*a, '"')
}

// String returns the whole array.
func (a array) String() string {
	if len(a) == 0 {
		return "{}"
	}
	return string(a) + "}"
}

// notNull is a body that is empty, but not NULL, for nil.
func notNull(body []byte) []byte {
	if body == nil {
		return []byte{}
	}
	return body
}

// orNull is NULL for the zero value.
func orNull[T comparable](v T) sql.Null[T] {
	var zero T
	return sql.Null[T]{V: v, Valid: v != zero}
}
