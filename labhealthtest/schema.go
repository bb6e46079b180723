// Schemas, and the validation of values against them.

package labhealthtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A schema validates the JSON value raw, which the request has at location. It returns the value
// as encoding/json decodes it into an any, in normal form. Callers ignore the result if the schema
// reported an error to v.
type schema func(v *validator, location []any, raw json.RawMessage) any

// validator collects the validation errors of a request.
type validator struct {
	now    time.Time
	errors []validationError
	// unreadable replaces the validation errors of a body that cannot be decoded at all.
	unreadable error
}

// validationError is one element of the detail list of a 422 response.
type validationError struct {
	Type     string          `json:"type"`
	Location []any           `json:"loc"`
	Message  string          `json:"msg"`
	Input    json.RawMessage `json:"input"`
	Context  map[string]any  `json:"ctx,omitempty"`
}

var jsonNull = json.RawMessage("null")

func (v *validator) add(typ string, location []any, message string, raw []byte, context map[string]any) {
	var input bytes.Buffer
	if json.Compact(&input, raw) != nil {
		input.Write(jsonNull)
	}
	v.errors = append(v.errors, validationError{typ, location, message, input.Bytes(), context})
}

// addValueError reports a value that has the right type but is not allowed.
func (v *validator) addValueError(location []any, message string, raw []byte) {
	v.add("value_error", location, "Value error, "+message, raw, map[string]any{"error": map[string]any{}})
}

// err returns the response to an invalid request, or nil if the request is valid.
func (v *validator) err() error {
	switch {
	case v.unreadable != nil:
		return v.unreadable
	case len(v.errors) > 0:
		return reject(http.StatusUnprocessableEntity, v.errors)
	default:
		return nil
	}
}

// field describes one field of an object.
type field struct {
	name     string
	schema   schema
	optional bool
	nullable bool
	missing  any // value of an optional field that is missing
}

func required(name string, s schema) field { return field{name: name, schema: s} }

func optional(name string, s schema, missing any) field {
	return field{name: name, schema: s, optional: true, missing: missing}
}

func nullable(name string, s schema) field {
	return field{name: name, schema: s, optional: true, nullable: true}
}

// object is the schema of an object with these fields. It ignores other fields, like the service.
func object(fields ...field) schema { return objectSchema{fields: fields}.validate }

type objectSchema struct {
	fields        []field
	strict, patch bool
}

func (o objectSchema) validate(v *validator, location []any, raw json.RawMessage) any {
	if raw[0] != '{' {
		v.add("model_attributes_type", location,
			"Input should be a valid dictionary or object to extract fields from", raw, nil)
		return nil
	}
	var received map[string]json.RawMessage
	json.Unmarshal(raw, &received) // The body was validated as JSON.
	if o.strict {
		o.rejectUnknown(v, location, received)
	}
	values := make(map[string]any, len(o.fields))
	for _, f := range o.fields {
		at := append(slices.Clone(location), f.name)
		value, present := received[f.name]
		switch {
		case !present && !f.optional:
			v.add("missing", at, "Field required", raw, nil)
		case !present && o.patch:
		case !present:
			values[f.name] = f.missing
		case string(value) == "null" && f.nullable:
			values[f.name] = nil
		default:
			values[f.name] = f.schema(v, at, value)
		}
	}
	return values
}

func (o objectSchema) rejectUnknown(v *validator, location []any, received map[string]json.RawMessage) {
	for name, value := range received {
		if !slices.ContainsFunc(o.fields, func(f field) bool { return f.name == name }) {
			v.add("extra_forbidden", append(slices.Clone(location), name), "Extra inputs are not permitted", value, nil)
		}
	}
}

func arrayOf(element schema) schema {
	return func(v *validator, location []any, raw json.RawMessage) any {
		if raw[0] != '[' {
			v.add("list_type", location, "Input should be a valid list", raw, nil)
			return nil
		}
		var elements []json.RawMessage
		json.Unmarshal(raw, &elements)
		values := make([]any, len(elements))
		for i, e := range elements {
			values[i] = element(v, append(slices.Clone(location), i), e)
		}
		return values
	}
}

// mapOf is the schema of an object with any field names.
func mapOf(value schema) schema {
	return func(v *validator, location []any, raw json.RawMessage) any {
		if raw[0] != '{' {
			v.add("dict_type", location, "Input should be a valid dictionary", raw, nil)
			return nil
		}
		var received map[string]json.RawMessage
		json.Unmarshal(raw, &received)
		values := make(map[string]any, len(received))
		for _, name := range slices.Sorted(maps.Keys(received)) {
			values[name] = value(v, append(slices.Clone(location), name), received[name])
		}
		return values
	}
}

var objectOfAny = mapOf(anySchema)

// variant is one of the schemas of a union.
type variant struct {
	name   string
	schema schema
}

// anyOf is the schema of a value that fits one of the variants. It returns the value of the first
// that fits. If there is none, it reports the errors of all.
func anyOf(variants ...variant) schema {
	return func(v *validator, location []any, raw json.RawMessage) any {
		var all []validationError
		for _, one := range variants {
			tried := &validator{now: v.now}
			value := one.schema(tried, append(slices.Clone(location), one.name), raw)
			if len(tried.errors) == 0 {
				return value
			}
			all = append(all, tried.errors...)
		}
		v.errors = append(v.errors, all...)
		return nil
	}
}

// anySchema accepts every value and returns its JSON.
func anySchema(_ *validator, _ []any, raw json.RawMessage) any {
	return json.RawMessage(bytes.Clone(raw))
}

func unquote(raw json.RawMessage) (s string, ok bool) {
	if raw[0] != '"' {
		return "", false
	}
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}

func stringSchema(v *validator, location []any, raw json.RawMessage) any {
	s, ok := unquote(raw)
	if !ok {
		v.add("string_type", location, "Input should be a valid string", raw, nil)
	}
	return s
}

// stringOf is the schema of a string that check validates.
func stringOf(check func(v *validator, location []any, s string, raw json.RawMessage)) schema {
	return func(v *validator, location []any, raw json.RawMessage) any {
		s, ok := unquote(raw)
		if !ok {
			return stringSchema(v, location, raw)
		}
		check(v, location, s, raw)
		return s
	}
}

// boundedString is the schema of a string with a length in characters from shortest to longest
// that matches pattern, unless pattern is nil.
func boundedString(shortest, longest int, pattern *regexp.Regexp) schema {
	return stringOf(func(v *validator, location []any, s string, raw json.RawMessage) {
		switch n := utf8.RuneCountInString(s); {
		case n < shortest:
			v.add("string_too_short", location, "String should have at least "+characters(shortest), raw,
				map[string]any{"min_length": shortest})
		case n > longest:
			v.add("string_too_long", location, "String should have at most "+characters(longest), raw,
				map[string]any{"max_length": longest})
		case pattern != nil && !pattern.MatchString(s):
			v.add("string_pattern_mismatch", location, fmt.Sprintf("String should match pattern '%s'", pattern), raw,
				map[string]any{"pattern": pattern.String()})
		}
	})
}

func characters(n int) string {
	if n == 1 {
		return "1 character"
	}
	return strconv.Itoa(n) + " characters"
}

// enum is the schema of an enumeration. It accepts only the values of the interface specification,
// although later versions of the service may have more.
func enum(values ...string) schema {
	return func(v *validator, location []any, raw json.RawMessage) any {
		s, ok := unquote(raw)
		if !ok || !slices.Contains(values, s) {
			expected := quotedList(values)
			v.add("enum", location, "Input should be "+expected, raw, map[string]any{"expected": expected})
		}
		return s
	}
}

// quotedList formats values as "'a', 'b' or 'c'".
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

func integerSchema(v *validator, location []any, raw json.RawMessage) any {
	var n json.Number
	switch {
	case raw[0] == '"':
		v.addInvalidInteger(location, raw)
	case json.Unmarshal(raw, &n) != nil || n == "":
		v.add("int_type", location, "Input should be a valid integer", raw, nil)
	default:
		if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
			return i
		}
		if f, err := n.Float64(); err == nil && f == float64(int64(f)) {
			return int64(f)
		}
		v.add("int_from_float", location, "Input should be a valid integer, got a number with a fractional part", raw, nil)
	}
	return nil
}

// integerText is the schema of an integer in a path or a query, which are text.
func integerText(v *validator, location []any, raw json.RawMessage) any {
	text, _ := unquote(raw)
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		v.addInvalidInteger(location, raw)
	}
	return n
}

func (v *validator) addInvalidInteger(location []any, raw []byte) {
	v.add("int_parsing", location, "Input should be a valid integer, unable to parse string as an integer", raw, nil)
}

// numberText is the schema of a number in a query.
func numberText(v *validator, location []any, raw json.RawMessage) any {
	text, _ := unquote(raw)
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		v.add("float_parsing", location, "Input should be a valid number, unable to parse string as a number", raw, nil)
	}
	return n
}

// within is the schema of a number from smallest to largest.
func within(number schema, smallest, largest float64) schema {
	return func(v *validator, location []any, raw json.RawMessage) any {
		before := len(v.errors)
		value := number(v, location, raw)
		n, ok := value.(float64)
		if !ok {
			integer, _ := value.(int64)
			n = float64(integer)
		}
		switch {
		case len(v.errors) > before:
		case n < smallest:
			v.add("greater_than_equal", location, "Input should be greater than or equal to "+decimal(smallest), raw,
				map[string]any{"ge": smallest})
		case n > largest:
			v.add("less_than_equal", location, "Input should be less than or equal to "+decimal(largest), raw,
				map[string]any{"le": largest})
		}
		return value
	}
}

func decimal(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// booleanText is the schema of a boolean in a query.
func booleanText(v *validator, location []any, raw json.RawMessage) any {
	text, _ := unquote(raw)
	text = strings.ToLower(text)
	isTrue := slices.Contains([]string{"true", "1", "t", "yes", "y", "on"}, text)
	if !isTrue && !slices.Contains([]string{"false", "0", "f", "no", "n", "off"}, text) {
		v.add("bool_parsing", location, "Input should be a valid boolean, unable to interpret input", raw, nil)
	}
	return isTrue
}

func booleanSchema(v *validator, location []any, raw json.RawMessage) any {
	var b bool
	if raw[0] == 'n' || json.Unmarshal(raw, &b) != nil {
		v.add("bool_type", location, "Input should be a valid boolean", raw, nil)
	}
	return b
}
