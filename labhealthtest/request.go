// A request: its path, query and body, validated.

package labhealthtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// request is a request to an operation. The methods that read it report what is invalid to its
// validator. An operation reads everything, then calls err.
type request struct {
	validator
	method string
	path   string            // escaped
	vars   map[string]string // variables of the path, unescaped
	query  url.Values
	header http.Header
	body   []byte
	caller *managementKey // nil for the team API
	rules  *rules         // of the operation
}

// checkPath validates the path variables in the order of the pattern.
func (r *request) checkPath(pattern string) {
	for segment := range strings.SplitSeq(pattern, "/") {
		name := strings.Trim(segment, "{}")
		if check := r.rules.parameters[name].schema; check != nil && name != segment {
			check(&r.validator, []any{"path", name}, encode(r.vars[name]))
		}
	}
}

// pathUUID returns a path variable, or the nil UUID if it is invalid.
func (r *request) pathUUID(name string) uuid.UUID {
	id, _ := parseUUID(r.vars[name])
	return id
}

// pathInt returns a path variable, or 0 if it is invalid.
func (r *request) pathInt(name string) int {
	n, _ := strconv.Atoi(r.vars[name])
	return n
}

// decode validates the body and decodes it into v. It leaves v unchanged if the request is invalid.
func (r *request) decode(v any) { r.decodeAs(r.rules.body, v) }

// decodeAs is like decode for a body with another schema than that of the public API reference.
func (r *request) decodeAs(bodySchema schema, v any) {
	location := []any{"body"}
	body := bytes.TrimSpace(r.body)
	mediaType, _, err := mime.ParseMediaType(r.header.Get("Content-Type"))
	isJSON := err != nil || mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")
	var syntax *json.SyntaxError
	switch {
	case !utf8.Valid(body):
		r.unreadable = errInvalidBody
		return
	case len(body) == 0 || isJSON && string(body) == "null":
		r.add("missing", location, "Field required", jsonNull, nil)
		return
	case !isJSON:
		bodySchema(&r.validator, location, encode(string(body)))
		return
	case errors.As(json.Unmarshal(body, new(json.RawMessage)), &syntax):
		r.add("json_invalid", append(location, syntax.Offset-1), "JSON decode error", []byte("{}"),
			map[string]any{"error": "Expecting value"})
		return
	}
	valid := bodySchema(&r.validator, location, body)
	if len(r.errors) > 0 {
		return
	}
	// Decode the valid values, not the body: encoding/json ignores the case of field names and
	// merges duplicate fields.
	if err := json.Unmarshal(encode(valid), v); err != nil {
		r.unreadable = errInternal
	}
}

// queryValues returns the values of a parameter that can be repeated, either as name or as name[].
func (r *request) queryValues(name string) []string {
	return append(r.query[name], r.query[name+"[]"]...)
}

// queryList validates each value of a parameter that can be repeated. It returns nil if the
// parameter is missing or not one of the operation.
func (r *request) queryList(name string) []string {
	var values []string
	p := r.rules.parameters[name]
	if p.schema == nil {
		return nil
	}
	for i, text := range r.queryValues(name) {
		value, _ := p.schema(&r.validator, []any{"query", name, i}, encode(text)).(string)
		values = append(values, value)
	}
	if p.required && len(values) == 0 {
		r.addMissing(name)
	}
	return values
}

func (r *request) addMissing(parameter string) {
	r.add("missing", []any{"query", parameter}, "Field required", jsonNull, nil)
}

// queryInts returns the values of an integer parameter that can be repeated.
func (r *request) queryInts(name string) []int64 {
	var values []int64
	for i, text := range r.queryValues(name) {
		n, _ := integerText(&r.validator, []any{"query", name, i}, encode(text)).(int64)
		values = append(values, n)
	}
	return values
}

// queryLast returns the last value of a parameter.
func (r *request) queryLast(name string) (value string, ok bool) {
	values := r.query[name]
	if len(values) == 0 {
		return "", false
	}
	return values[len(values)-1], true
}

// queryOne validates a parameter. It returns "" if the parameter is missing or not one of the
// operation.
func (r *request) queryOne(name string) string {
	p := r.rules.parameters[name]
	text, ok := r.queryLast(name)
	if !ok && p.required {
		r.addMissing(name)
	}
	if !ok || p.schema == nil {
		return ""
	}
	value, _ := p.schema(&r.validator, []any{"query", name}, encode(text)).(string)
	return value
}

func (r *request) queryInt(name string, missing int) int {
	text, ok := r.queryLast(name)
	if !ok {
		return missing
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		r.addInvalidInteger([]any{"query", name}, encode(text))
	}
	return int(max(math.MinInt, min(n, math.MaxInt)))
}

// queryRange returns an integer parameter from smallest to largest. There is no upper limit if
// largest is 0.
func (r *request) queryRange(name string, missing, smallest, largest int) int {
	before := len(r.errors)
	n := r.queryInt(name, missing)
	text, _ := r.queryLast(name)
	switch {
	case len(r.errors) > before:
	case n < smallest:
		r.add("greater_than_equal", []any{"query", name},
			fmt.Sprintf("Input should be greater than or equal to %d", smallest), encode(text), map[string]any{"ge": smallest})
	case largest > 0 && n > largest:
		r.add("less_than_equal", []any{"query", name},
			fmt.Sprintf("Input should be less than or equal to %d", largest), encode(text), map[string]any{"le": largest})
	}
	return n
}

// queryBool returns nil if the parameter is missing.
func (r *request) queryBool(name string) *bool {
	text, ok := r.queryLast(name)
	if !ok {
		return nil
	}
	var b bool
	switch strings.ToLower(text) {
	case "true", "1", "t", "yes", "y", "on":
		b = true
	case "false", "0", "f", "no", "n", "off":
	default:
		r.add("bool_parsing", []any{"query", name},
			"Input should be a valid boolean, unable to interpret input", encode(text), nil)
	}
	return &b
}

// queryTime returns a date or date-time parameter.
func (r *request) queryTime(name string) (t time.Time, isDate, ok bool) {
	text, ok := r.queryLast(name)
	if !ok {
		return time.Time{}, false, false
	}
	t, isDate, ok = parseTime(text)
	if !ok {
		r.addInvalidDate([]any{"query", name}, encode(text))
	}
	return t, isDate, ok
}
