// The columns of a sample.

package sqlstore

import (
	"cmp"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labhealth/labhealth-go/internal/jsonread"
	"github.com/labhealth/labhealth-go/internal/newest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// shape is a row of labhealth_shapes: fields shared by many samples.
type shape struct {
	newest.Shape
	seconds int32 // of an interval, or perSample
}

// perSample takes the place of the seconds of a shape if each sample has its own.
const perSample = -1

// isCommon reports whether many intervals have a length: whole minutes up to an hour, and whole
// hours up to a day.
func isCommon(seconds int32) bool {
	return seconds%60 == 0 && seconds <= 60*60 || seconds%(60*60) == 0 && seconds <= 24*60*60
}

// content is a version of a sample without its key and its version number: the columns of
// labhealth_samples.
type content struct {
	value    float64
	seconds  int32 // of an interval whose shape has perSample
	shape    shape
	document string // JSON; if it is not empty, the others are zero
}

// contentOf returns the content of a sample whose key has the time at.
func contentOf(s *webhooks.Sample, at int64) (content, error) {
	form, seconds := newest.FormOf(&s.Timestamp, &s.Start, &s.End, s.Extra, s.Text, s.Systolic, s.Diastolic)
	if form == newest.JSON {
		return jsonContent(s)
	}
	_, east := s.Timestamp.Zone()
	sh := shape{Shape: newest.Shape{
		Form:     form,
		HasValue: s.HasValue || s.Value != 0, HasTimezoneOffset: s.HasTimezoneOffset || s.TimezoneOffset != 0,
		TimezoneOffset: s.TimezoneOffset, East: int32(east), Type: s.Type, Unit: s.Unit,
	}}
	if fits := newest.FitsColumns(s.Value, seconds); !fits || s.Rounded {
		plain := sh.sample(at, s.Value, time.Duration(seconds)*time.Second) // as webhooks.Latest returns it
		c, err := jsonContent(&plain)
		if err != nil {
			return c, err
		}
		if s.Rounded { // unless the program set Value
			c.document = string(jsonread.ReplaceField([]byte(c.document), "value", string(s.Number())))
		}
		if !fits || s.Number() != plain.Number() {
			return c, nil
		}
	}
	c := content{value: s.Value, shape: sh}
	switch {
	case form != newest.Interval:
	case isCommon(int32(seconds)):
		c.shape.seconds = int32(seconds)
	default:
		c.shape.seconds, c.seconds = perSample, int32(seconds)
	}
	return c, nil
}

func jsonContent(s *webhooks.Sample) (content, error) {
	document, err := s.MarshalJSON()
	if err != nil {
		return content{}, errUnencodable
	}
	return content{document: string(document)}, nil
}

// sample returns the sample of a content.
func (c *content) sample(at int64) (s webhooks.Sample) {
	if c.document != "" {
		s.UnmarshalJSON([]byte(c.document)) // MarshalJSON wrote it
		return s
	}
	seconds := c.shape.seconds
	if seconds == perSample {
		seconds = c.seconds
	}
	return c.shape.sample(at, c.value, time.Duration(seconds)*time.Second)
}

func (sh *shape) sample(at int64, value float64, length time.Duration) webhooks.Sample {
	t := time.Unix(0, at).UTC()
	if sh.East != 0 {
		t = t.In(time.FixedZone("", int(sh.East)))
	}
	s := webhooks.Sample{
		Timestamp: t, Value: value, HasValue: sh.HasValue, Type: sh.Type, Unit: sh.Unit,
		TimezoneOffset: sh.TimezoneOffset, HasTimezoneOffset: sh.HasTimezoneOffset,
	}
	if sh.Form == newest.Interval {
		s.Start, s.End = t, t.Add(length)
	}
	return s
}

// json returns the JSON of a content, by which equal versions are ordered.
func (c *content) json(at int64) string {
	if c.document != "" {
		return c.document
	}
	document, _ := c.sample(at).MarshalJSON()
	return string(document)
}

// payload returns the summary that a document holds.
func payload(resource, document string) webhooks.Payload {
	data, err := webhooks.DecodeSummary(resource, []byte(document))
	if err != nil { // not written by this package: the caller gets an empty summary
		return &webhooks.Summary{}
	}
	return data
}

// digest is a key of bounded size for strings of any length.
func digest(fields ...string) []byte {
	var all []byte
	for _, f := range fields {
		all = binary.AppendUvarint(all, uint64(len(f)))
		all = append(all, f...)
	}
	sum := sha256.Sum256(all)
	return sum[:16]
}

// deliveryKey identifies a delivery. It starts as the ID does: IDs that start with a time, such as
// UUIDs of version 7, ULIDs and KSUIDs with a prefix, are added at the end of the index. Digests
// alone would change, and write to the WAL, a page of it for each delivery.
func deliveryKey(id string) []byte {
	const prefix, rest = 10, 12 // bytes; not more than a digest takes in the index
	return append([]byte(id[:min(len(id), prefix)]), digest(id)[:rest]...)
}

// seriesKey identifies a series of a user.
func seriesKey(of webhooks.Series) []byte { return digest(of.Resource, of.Provider, of.SourceType) }

// escape returns a string in a form that both databases accept: PostgreSQL accepts neither the byte
// 0 nor invalid UTF-8. Such bytes are written as \x00, and a backslash as two.
func escape(s string) string {
	if utf8.ValidString(s) && !strings.ContainsAny(s, "\\\x00") {
		return s
	}
	var escaped strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == '\\':
			escaped.WriteString(`\\`)
		case r == 0, r == utf8.RuneError && n == 1:
			escaped.WriteString(`\x` + hex.EncodeToString([]byte(s[:1])))
		default:
			escaped.WriteString(s[:n])
		}
		s = s[n:]
	}
	return escaped.String()
}

var escapePattern = regexp.MustCompile(`\\\\|\\x[0-9a-f]{2}`)

// unescape returns what escape was called with.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return escapePattern.ReplaceAllStringFunc(s, func(e string) string {
		b, _ := hex.DecodeString(strings.TrimLeft(e, `\x`))
		return cmp.Or(string(b), `\`)
	})
}

// notNull returns an empty body for nil, which drivers would write as NULL.
func notNull(body []byte) []byte {
	if body == nil {
		return []byte{}
	}
	return body
}

// orNull returns NULL for the zero value.
func orNull[T comparable](v T) sql.Null[T] {
	var zero T
	return sql.Null[T]{V: v, Valid: v != zero}
}
