// Field errors, and which of their paths and types are printed.

package labhealth

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// Fields returns the field errors of an HTTPValidationError, the usual body of a 422: a detail that
// is a list. It returns nil for any other body.
func (e *APIError) Fields() []FieldError {
	var body struct {
		Detail []json.RawMessage `json:"detail"`
	}
	if jsonread.Unmarshal(e.document(), &body) != nil {
		return nil
	}
	var fields []FieldError
	for _, element := range body.Detail {
		if field, ok := fieldError(element); ok {
			fields = append(fields, field)
		}
	}
	return fields
}

// fieldError returns the field error of a JSON value, if it is one.
func fieldError(element json.RawMessage) (field FieldError, ok bool) {
	var f struct {
		Type string            `json:"type"`
		Loc  []json.RawMessage `json:"loc"` // names and numbers
		Msg  string            `json:"msg"`
	}
	if jsonread.Unmarshal(element, &f) != nil {
		return field, false
	}
	field = FieldError{Type: f.Type, Msg: f.Msg}
	for _, l := range f.Loc {
		name := string(l)
		_ = json.Unmarshal(l, &name) // a number is kept as received
		field.Loc = append(field.Loc, name)
	}
	return field, len(field.Loc) > 0 || field.Type != "" || field.Msg != ""
}

// FieldError describes an invalid field of a request. [APIError.Fields] returns those of an
// HTTPValidationError, the usual body of a 422, and [ValidationError.Fields] has those found before
// the request was sent. Printed or logged, it shows only its path and type, and only names and
// types that this package knows, because a service may put values of the request there.
type FieldError struct {
	Loc  []string // path: "body", "patient_details", "first_name"; numbers are indexes of a list
	Type string   // short code, such as "missing", "string_too_long" or "enum"
	// Msg is human-readable. In a [ValidationError] it describes what is valid. In an [APIError] it
	// is the service's message, which may quote the request.
	Msg string
}

// Path returns Loc joined by dots, such as "body.patient_details.first_name". In an [APIError] it
// is as received, and may quote the request.
func (f FieldError) Path() string { return strings.Join(f.Loc, ".") }

// Format prints the path and the type under every verb.
func (f FieldError) Format(s fmt.State, _ rune) { fmt.Fprint(s, formatFields([]FieldError{f})) }

// LogValue returns the path and the type.
func (f FieldError) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(f)) }

// formatFields formats up to three field errors, with the reasons that are known. Paths and types
// come from the service, so that those that are unknown are replaced.
func formatFields(fields []FieldError) string {
	var parts []string
	for _, f := range fields[:min(len(fields), 3)] {
		path := make([]string, len(f.Loc))
		for i, l := range f.Loc {
			path[i] = "?"
			if isName(l) || i > 0 && isIndex(l) {
				path[i] = l
			}
		}
		kind := "invalid"
		if isListed(fieldTypes, f.Type) {
			kind = f.Type
		}
		reason := knownReason(f.Msg)
		if reason == "" && (kind == "enum" || kind == "literal_error") {
			reason = "use a constant of its type"
		}
		if reason != "" {
			kind += ": " + reason
		}
		parts = append(parts, strings.Join(path, ".")+" ("+kind+")")
	}
	if more := len(fields) - len(parts); more > 0 {
		parts = append(parts, strconv.Itoa(more)+" more")
	}
	return strings.Join(parts, ", ")
}

// isName reports whether s is the name of a field or parameter of this package.
func isName(s string) bool { return isListed(fieldNames, s) || isListed(otherNames, s) }

// isIndex reports whether s is an index of a list. Longer numbers may be values, such as ZIP codes.
func isIndex(s string) bool { return s != "" && len(s) <= 3 && strings.Trim(s, "0123456789") == "" }

// isListed reports whether word is one of the words in list, which are separated by white space.
func isListed(list, word string) bool {
	if word == "" || strings.Trim(word, codeChars) != "" {
		return false
	}
	for rest := list; ; {
		_, after, found := strings.Cut(rest, word)
		if !found {
			return false
		}
		start := len(rest) - len(after) - len(word)
		if (start == 0 || isSpace(rest[start-1])) && (after == "" || isSpace(after[0])) {
			return true
		}
		rest = rest[start+1:]
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' }

const codeChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

// otherNames are the names in paths of field errors that are not fields of the public API
// reference.
const otherNames = `
	WithCallRetry WithIdempotencyKey WithResponse body client cookie ctx
	environment header kind lists method out path query resource result_type team w`

// fieldTypes are the types of field errors: those of Pydantic, which the service uses, and those of
// local validation.
const fieldTypes = `
	arguments_type assertion_error bool_parsing bool_type bytes_invalid_encoding bytes_too_long
	bytes_too_short bytes_type callable_type complex_str_parsing complex_type dataclass_exact_type
	dataclass_type date date_from_datetime_inexact date_from_datetime_parsing date_future date_parsing
	date_past date_type datetime datetime_from_date_parsing datetime_future datetime_object_invalid
	datetime_parsing datetime_past datetime_type decimal_max_digits decimal_max_places decimal_parsing
	decimal_type decimal_whole_digits default_factory_not_called dict_type enum extra_forbidden
	finite_number float_parsing float_type frozen_field frozen_instance frozen_set_type
	get_attribute_error greater_than greater_than_equal int_from_float int_parsing int_parsing_size
	int_type invalid invalid_key is_instance_of is_subclass_of iterable_type iteration_error
	json_invalid json_type less_than less_than_equal list_type literal_error mapping_type missing
	missing_argument missing_keyword_only_argument missing_positional_only_argument
	missing_sentinel_error model_attributes_type model_type multiple_argument_values multiple_of
	needs_python_object no_such_attribute none_required recursion_loop set_item_not_hashable set_type
	string_pattern_mismatch string_sub_type string_too_long string_too_short string_type
	string_unicode time_delta_parsing time_delta_type time_parsing time_type timezone_aware
	timezone_naive timezone_offset too_long too_short tuple_type unexpected_keyword_argument
	unexpected_positional_argument union_tag_invalid union_tag_not_found url_parsing url_scheme
	url_syntax_violation url_too_long url_type uuid uuid_parsing uuid_type uuid_version value_error`
