// A request, and its validation.

package labhealthtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// request is a request to an operation. It is validated before the operation handles it.
type request struct {
	validator
	method string
	path   string            // escaped
	vars   map[string]string // variables of the path, unescaped
	query  url.Values
	header http.Header
	body   []byte
	caller *managementKey      // nil for the team API
	rules  *rules              // of the operation
	values map[string][]string // of the query, in normal form, with defaults
	valid  any                 // what the schema of the body returned
}

// validate validates the parameters in one part of the request: path, header or query.
func (r *request) validate(part string) {
	for _, p := range r.rules.parameters {
		if p.in != part {
			continue
		}
		texts := r.texts(p)
		if p.required && len(texts) == 0 {
			r.add("missing", []any{part, p.name}, "Field required", jsonNull, nil)
		}
		var values []string
		for i, text := range texts {
			at := []any{part, p.name}
			if p.isList {
				at = append(at, i)
			}
			values = append(values, fmt.Sprint(p.schema(&r.validator, at, encode(text))))
		}
		if len(values) == 0 && p.missing != "" {
			values = []string{p.missing}
		}
		if part == "query" {
			r.values[p.name] = values
		}
	}
}

// validateRest validates all parts other than the path, which is validated first.
func (r *request) validateRest() error {
	r.validate("header")
	r.validate("query")
	r.validateBody()
	return r.err()
}

// texts returns the values of a parameter. One that can be repeated is called name or name[], and
// of any other the last value counts.
func (r *request) texts(p parameter) []string {
	switch {
	case p.in == "path":
		return []string{r.vars[p.name]}
	case p.in == "header":
		return r.header.Values(p.name)
	case p.isList:
		return append(r.query[p.name], r.query[p.name+"[]"]...)
	}
	return r.query[p.name][max(len(r.query[p.name])-1, 0):]
}

// pathUUID returns a path variable, or the nil UUID if it is invalid.
func (r *request) pathUUID(name string) uuid.UUID {
	id, _ := parseUUID(r.vars[name])
	return id
}

// validateBody validates the body, if the operation has one.
func (r *request) validateBody() {
	body := bytes.TrimSpace(r.body)
	if r.rules.body == nil || r.rules.optional && len(body) == 0 {
		return
	}
	location := []any{"body"}
	mediaType, _, err := mime.ParseMediaType(r.header.Get("Content-Type"))
	isJSON := err != nil || mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")
	var syntax *json.SyntaxError
	switch {
	case !utf8.Valid(body):
		r.unreadable = errInvalidBody
	case len(body) == 0 || isJSON && string(body) == "null":
		r.add("missing", location, "Field required", jsonNull, nil)
	case !isJSON:
		r.rules.body(&r.validator, location, encode(string(body)))
	case errors.As(json.Unmarshal(body, new(json.RawMessage)), &syntax):
		r.add("json_invalid", append(location, syntax.Offset-1), "JSON decode error", []byte("{}"),
			map[string]any{"error": "Expecting value"})
	default:
		r.valid = r.rules.body(&r.validator, location, body)
	}
}

// decode decodes the body into v, which is unchanged without a body. It decodes the valid values:
// encoding/json ignores the case of field names and merges duplicate fields.
func (r *request) decode(v any) {
	if r.valid != nil {
		json.Unmarshal(encode(r.valid), v)
	}
}

// queryList returns the values of a parameter that can be repeated.
func (r *request) queryList(name string) []string { return r.values[name] }

// queryLast returns a parameter.
func (r *request) queryLast(name string) (value string, ok bool) {
	if len(r.values[name]) == 0 {
		return "", false
	}
	return r.values[name][0], true
}

// queryOne returns a parameter, "" if it is missing.
func (r *request) queryOne(name string) string {
	value, _ := r.queryLast(name)
	return value
}

// queryInt returns an integer, 0 if it is missing.
func (r *request) queryInt(name string) int {
	n, _ := strconv.Atoi(r.queryOne(name))
	return n
}

func (r *request) queryBool(name string) bool { return r.queryOne(name) == "true" }

// queryTime returns a date or date-time; ok is false if it is missing.
func (r *request) queryTime(name string) (t time.Time, isDate, ok bool) {
	return parseTime(r.queryOne(name))
}

// cursor returns the cursor of a page by its present or its former name.
func (r *request) cursor() (cursor string, ok bool) {
	for _, name := range []string{"next_cursor", "cursor"} {
		if texts := r.texts(parameter{name: name}); len(texts) > 0 {
			return texts[0], true
		}
	}
	return "", false
}
