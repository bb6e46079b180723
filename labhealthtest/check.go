package labhealthtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// request is what an operation sees of a request.
type request struct {
	checker
	method string
	path   string            // escaped
	vars   map[string]string // of the path, unescaped
	query  url.Values
	header http.Header
	body   []byte
}

// checker collects what is wrong with a request.
type checker struct {
	now      time.Time
	problems []problem
	// unreadable is the answer to a body that is no text at all.
	unreadable *answer
}

// problem is one element of the detail list of a 422.
type problem struct {
	Type  string          `json:"type"`
	Loc   []any           `json:"loc"`
	Msg   string          `json:"msg"`
	Input json.RawMessage `json:"input"`
	Ctx   map[string]any  `json:"ctx,omitempty"`
}

func (c *checker) add(typ string, loc []any, msg string, in []byte, ctx map[string]any) {
	var input bytes.Buffer
	if json.Compact(&input, in) != nil {
		input.WriteString("null")
	}
	c.problems = append(c.problems, problem{typ, loc, msg, input.Bytes(), ctx})
}

// addValueError adds the refusal of a value that has the right form.
func (c *checker) addValueError(loc []any, msg string, in []byte) {
	c.add("value_error", loc, "Value error, "+msg, in, map[string]any{"error": map[string]any{}})
}

// invalid returns the answer to a request that did not pass its checks.
func (c *checker) invalid() (a answer, bad bool) {
	switch {
	case c.unreadable != nil:
		return *c.unreadable, true
	case len(c.problems) > 0:
		return refuse(http.StatusUnprocessableEntity, c.problems), true
	default:
		return answer{}, false
	}
}

// kind checks the JSON value in, found at loc, and returns it in its one usual form: string, bool, json.Number, []any,
// map[string]any or nil. What it returns after it added a problem is never used.
type kind func(c *checker, loc []any, in json.RawMessage) any

// field is a member of an object. Members that are not named are ignored, as the service ignores them.
type field struct {
	name string
	need need
	kind kind
	// absent is the value of a member that is absent, or null if it may not be null.
	absent any
}

type need uint8

const (
	required need = 0
	optional need = 1 << (iota - 1)
	nullable
)

// object is the kind of an object with these members.
func object(fields ...field) kind {
	return func(c *checker, loc []any, in json.RawMessage) any {
		var members map[string]json.RawMessage
		if in[0] != '{' {
			c.add("model_attributes_type", loc, "Input should be a valid dictionary or object to extract fields from", in, nil)
			return nil
		}
		json.Unmarshal(in, &members) // The whole body is known to be JSON.
		values := make(map[string]any, len(fields))
		for _, f := range fields {
			at := append(slices.Clone(loc), f.name)
			value, present := members[f.name]
			switch {
			case !present && f.need&optional == 0:
				c.add("missing", at, "Field required", in, nil)
			case !present:
				values[f.name] = f.absent
			case string(value) == "null" && f.need&nullable != 0:
				values[f.name] = nil
			default:
				values[f.name] = f.kind(c, at, value)
			}
		}
		return values
	}
}

// list is the kind of an array.
func list(element kind) kind {
	return func(c *checker, loc []any, in json.RawMessage) any {
		if in[0] != '[' {
			c.add("list_type", loc, "Input should be a valid list", in, nil)
			return nil
		}
		var elements []json.RawMessage
		json.Unmarshal(in, &elements)
		values := make([]any, len(elements))
		for i, e := range elements {
			values[i] = element(c, append(slices.Clone(loc), i), e)
		}
		return values
	}
}

// unquote reads a JSON string.
func unquote(in json.RawMessage) (s string, ok bool) {
	if in[0] != '"' {
		return "", false
	}
	return s, json.Unmarshal(in, &s) == nil
}

// text is the kind of a string without limits.
func text(c *checker, loc []any, in json.RawMessage) any {
	s, ok := unquote(in)
	if !ok {
		c.add("string_type", loc, "Input should be a valid string", in, nil)
	}
	return s
}

// limited is the kind of a string of least to most characters that matches pattern, if there is one.
func limited(least, most int, pattern *regexp.Regexp) kind {
	return func(c *checker, loc []any, in json.RawMessage) any {
		s, ok := unquote(in)
		switch n := utf8.RuneCountInString(s); {
		case !ok:
			return text(c, loc, in)
		case n < least:
			c.add("string_too_short", loc, fmt.Sprintf("String should have at least %s", characters(least)), in,
				map[string]any{"min_length": least})
		case n > most:
			c.add("string_too_long", loc, fmt.Sprintf("String should have at most %s", characters(most)), in,
				map[string]any{"max_length": most})
		case pattern != nil && !pattern.MatchString(s):
			c.add("string_pattern_mismatch", loc, fmt.Sprintf("String should match pattern '%s'", pattern), in,
				map[string]any{"pattern": pattern.String()})
		}
		return s
	}
}

func characters(n int) string {
	if n == 1 {
		return "1 character"
	}
	return strconv.Itoa(n) + " characters"
}

// oneOf is the kind of an enumeration. Requests are held to the values of the interface document, although later versions may
// know more.
func oneOf(values ...string) kind {
	return func(c *checker, loc []any, in json.RawMessage) any {
		s, ok := unquote(in)
		if !ok || !slices.Contains(values, s) {
			expected := quotedList(values)
			c.add("enum", loc, "Input should be "+expected, in, map[string]any{"expected": expected})
		}
		return s
	}
}

// quotedList writes 'a', 'b' or 'c'.
func quotedList(values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = "'" + v + "'"
	}
	last := len(quoted) - 1
	if last < 1 {
		return strings.Join(quoted, "")
	}
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}

// parseUUID reads the two forms that are in use, with hyphens and without. uuid.Parse alone reads more, and does not check all of
// it.
func parseUUID(s string) (uuid.UUID, bool) {
	if len(s) != 36 && len(s) != 32 {
		return uuid.UUID{}, false
	}
	id, err := uuid.Parse(s)
	return id, err == nil
}

func (c *checker) addBadUUID(loc []any, s string, in []byte) {
	why := "invalid character"
	if len(s) != 36 {
		why = fmt.Sprintf("invalid length: expected length 32 for simple format, found %d", len(s))
	}
	c.add("uuid_parsing", loc, "Input should be a valid UUID, "+why, in, map[string]any{"error": why})
}

func aUUID(c *checker, loc []any, in json.RawMessage) any {
	s, ok := unquote(in)
	if !ok {
		c.add("uuid_type", loc, "UUID input should be a string, bytes or UUID object", in, nil)
		return nil
	}
	id, ok := parseUUID(s)
	if !ok {
		c.addBadUUID(loc, s, in)
	}
	return id.String()
}

// parseTime reads a date-time, with or without an offset, or a date.
func parseTime(s string) (t time.Time, isDate, ok bool) {
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		return t, true, true
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, false, true
		}
	}
	return time.Time{}, false, false
}

// aDate is the kind of a date; a date-time at midnight is read as its date.
func aDate(c *checker, loc []any, in json.RawMessage) any {
	s, ok := unquote(in)
	if !ok {
		c.add("date_type", loc, "Input should be a valid date", in, nil)
		return nil
	}
	t, isDate, ok := parseTime(s)
	switch {
	case !ok:
		c.addBadDate(loc, in)
	case !isDate && !t.Equal(time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, t.Location())):
		c.add("date_from_datetime_inexact", loc,
			"Datetimes provided to dates should have zero time - e.g. be exact dates", in, nil)
	}
	return t.Format(time.DateOnly)
}

func (c *checker) addBadDate(loc []any, in []byte) {
	const why = "input is not a date or datetime"
	c.add("date_from_datetime_parsing", loc, "Input should be a valid date or datetime, "+why, in, map[string]any{"error": why})
}

func aDateTime(c *checker, loc []any, in json.RawMessage) any {
	s, ok := unquote(in)
	if !ok {
		c.add("datetime_type", loc, "Input should be a valid datetime", in, nil)
		return nil
	}
	if _, _, ok := parseTime(s); !ok {
		const why = "input is not a datetime"
		c.add("datetime_from_date_parsing", loc, "Input should be a valid datetime or date, "+why, in, map[string]any{"error": why})
	}
	return s
}

func anInteger(c *checker, loc []any, in json.RawMessage) any {
	var n json.Number
	switch {
	case in[0] == '"':
		c.add("int_parsing", loc, "Input should be a valid integer, unable to parse string as an integer", in, nil)
	case json.Unmarshal(in, &n) != nil || n == "":
		c.add("int_type", loc, "Input should be a valid integer", in, nil)
	default:
		if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
			return i
		}
		if f, err := n.Float64(); err == nil && f == float64(int64(f)) {
			return int64(f)
		}
		c.add("int_from_float", loc, "Input should be a valid integer, got a number with a fractional part", in, nil)
	}
	return nil
}

func aBoolean(c *checker, loc []any, in json.RawMessage) any {
	var b bool
	if in[0] == 'n' || json.Unmarshal(in, &b) != nil {
		c.add("bool_type", loc, "Input should be a valid boolean", in, nil)
	}
	return b
}

var emailPattern = regexp.MustCompile(`^[^@\s]+@[^@\s.]+(\.[^@\s.]+)+$`)

func anEmail(c *checker, loc []any, in json.RawMessage) any {
	s, ok := unquote(in)
	if !ok {
		return text(c, loc, in)
	}
	if !emailPattern.MatchString(s) {
		const why = "An email address must have a name, an @-sign and a domain."
		c.add("value_error", loc, "value is not a valid email address: "+why, in, map[string]any{"reason": why})
	}
	return s
}

// aPhone is the kind of a phone number. No rule is published; what is refused here was seen to be refused: fewer than 10 or more
// than 15 digits, and letters.
func aPhone(c *checker, loc []any, in json.RawMessage) any {
	s, ok := unquote(in)
	if !ok {
		return text(c, loc, in)
	}
	digits := 0
	for _, r := range s {
		switch {
		case '0' <= r && r <= '9':
			digits++
		case !strings.ContainsRune("+-(). ", r):
			digits = -len(s)
		}
	}
	if digits < 10 || digits > 15 {
		c.addValueError(loc, "Phone number is not correct", in)
	}
	return s
}

// decode checks the body against shape and reads it into v. It changes v only if nothing is wrong with the request.
func (r *request) decode(shape kind, v any) {
	loc := []any{"body"}
	body := bytes.TrimSpace(r.body)
	mediaType, _, err := mime.ParseMediaType(r.header.Get("Content-Type"))
	isJSON := err != nil || mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")
	var syntax *json.SyntaxError
	switch {
	case !utf8.Valid(body):
		a := refuse(http.StatusBadRequest, "There was an error parsing the body")
		r.unreadable = &a
		return
	case len(body) == 0 || isJSON && string(body) == "null":
		r.add("missing", loc, "Field required", []byte("null"), nil)
		return
	case !isJSON:
		shape(&r.checker, loc, encode(string(body)))
		return
	case errors.As(json.Unmarshal(body, new(json.RawMessage)), &syntax):
		r.add("json_invalid", append(loc, syntax.Offset-1), "JSON decode error", []byte("{}"),
			map[string]any{"error": "Expecting value"})
		return
	}
	checked := shape(&r.checker, loc, body)
	if len(r.problems) > 0 {
		return
	}
	// By way of the checked value, because encoding/json would also take members of other spellings, and mixes members that are
	// given twice.
	if err := json.Unmarshal(encode(checked), v); err != nil {
		a := internalError
		r.unreadable = &a
	}
}

// pathUUID reads a variable of the path.
func (r *request) pathUUID(name string) uuid.UUID {
	id, ok := parseUUID(r.vars[name])
	if !ok {
		r.addBadUUID([]any{"path", name}, r.vars[name], encode(r.vars[name]))
	}
	return id
}

// queryValues returns the values of a query parameter that may be repeated, in both spellings that are in use: name and name[].
func (r *request) queryValues(name string) []string {
	return append(r.query[name], r.query[name+"[]"]...)
}

// queryList reads a query parameter that may be repeated, each value of kind k.
func (r *request) queryList(name string, k kind) []string {
	var values []string
	for i, s := range r.queryValues(name) {
		v, _ := k(&r.checker, []any{"query", name, i}, encode(s)).(string)
		values = append(values, v)
	}
	return values
}

// queryLast returns the value of a query parameter; of a repeated one the last counts.
func (r *request) queryLast(name string) (s string, ok bool) {
	values := r.query[name]
	if len(values) == 0 {
		return "", false
	}
	return values[len(values)-1], true
}

// queryOne reads a query parameter of kind k; it returns "" where there is none.
func (r *request) queryOne(name string, k kind) string {
	s, ok := r.queryLast(name)
	if !ok {
		return ""
	}
	v, _ := k(&r.checker, []any{"query", name}, encode(s)).(string)
	return v
}

// queryInt reads an integer of a query parameter.
func (r *request) queryInt(name string, absent int) int {
	s, ok := r.queryLast(name)
	if !ok {
		return absent
	}
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil {
		r.add("int_parsing", []any{"query", name},
			"Input should be a valid integer, unable to parse string as an integer", encode(s), nil)
	}
	return n
}

// queryRange reads an integer of a query parameter that must not be less than least or, unless most is zero, more than most.
func (r *request) queryRange(name string, absent, least, most int) int {
	before := len(r.problems)
	n := r.queryInt(name, absent)
	s, _ := r.queryLast(name)
	switch {
	case len(r.problems) > before:
	case n < least:
		r.add("greater_than_equal", []any{"query", name},
			fmt.Sprintf("Input should be greater than or equal to %d", least), encode(s), map[string]any{"ge": least})
	case most > 0 && n > most:
		r.add("less_than_equal", []any{"query", name},
			fmt.Sprintf("Input should be less than or equal to %d", most), encode(s), map[string]any{"le": most})
	}
	return n
}

// queryBool reads a boolean of a query parameter; nil where there is none.
func (r *request) queryBool(name string) *bool {
	s, ok := r.queryLast(name)
	if !ok {
		return nil
	}
	var b bool
	switch strings.ToLower(s) {
	case "true", "1", "t", "yes", "y", "on":
		b = true
	case "false", "0", "f", "no", "n", "off":
	default:
		r.add("bool_parsing", []any{"query", name},
			"Input should be a valid boolean, unable to interpret input", encode(s), nil)
	}
	return &b
}

// queryTime reads a date or date-time of a query parameter; ok is false where there is none.
func (r *request) queryTime(name string) (t time.Time, isDate, ok bool) {
	s, ok := r.queryLast(name)
	if !ok {
		return time.Time{}, false, false
	}
	t, isDate, ok = parseTime(s)
	if !ok {
		r.addBadDate([]any{"query", name}, encode(s))
	}
	return t, isDate, ok
}

// encode writes v as the service does: compact, and < > & unescaped.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return []byte("null") // Nothing that is encoded here can fail.
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
