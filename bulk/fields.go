// The fields of a record that a source may have.

package bulk

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// field is a field of a request type.
type field struct {
	name  string // in JSON
	index int
	elem  reflect.Type // without the pointer
	kind  fieldKind
}

type fieldKind uint8

const (
	scalar fieldKind = iota // a string, number, date or UUID
	object
	list // of scalars
)

// fields are the fields of a request type.
type fields struct {
	list   []field
	byName map[string]field
}

var (
	bodyType = reflect.TypeFor[labhealth.ImportOrderBody]()
	dateType = reflect.TypeFor[labhealth.Date]()

	fieldsCache sync.Map // reflect.Type → *fields
)

// fieldsOf returns the fields of a request type.
func fieldsOf(t reflect.Type) *fields {
	if cached, ok := fieldsCache.Load(t); ok {
		return cached.(*fields)
	}
	all := &fields{byName: map[string]field{}}
	for i := range t.NumField() {
		structField := t.Field(i)
		name, _, _ := strings.Cut(structField.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		f := field{name: name, index: i, elem: structField.Type}
		if f.elem.Kind() == reflect.Pointer {
			f.elem = f.elem.Elem()
		}
		switch {
		case f.elem.Kind() == reflect.Slice:
			f.kind = list
		case f.elem.Kind() == reflect.Struct && f.elem != dateType:
			f.kind = object
		}
		all.list = append(all.list, f)
		all.byName[name] = f
	}
	fieldsCache.Store(t, all)
	return all
}

// appendFieldProblems appends a problem for each field of a JSON object that t does not have, and
// for each date with a time of day, which is not malformed in a response.
func appendFieldProblems(problems []Problem, document []byte, t reflect.Type, path string) []Problem {
	known := fieldsOf(t).byName
	for name, value := range jsonread.Fields(document) {
		f, ok := known[string(name)]
		switch {
		case !ok:
			problems = append(problems, Problem{Path: path + "." + nameOrMark(string(name)), Reason: "is not a field of the request"})
		case f.kind == object && value[0] == '{':
			problems = appendFieldProblems(problems, value, f.elem, path+"."+f.name)
		case f.elem == dateType && hasTimeOfDay(value):
			problems = append(problems, Problem{Path: path + "." + f.name, Reason: errTimeOfDay.Error()})
		}
	}
	return problems
}

// hasTimeOfDay reports whether a JSON value is a date with a time of day other than midnight.
func hasTimeOfDay(value []byte) bool {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return false
	}
	_, err := labhealth.ParseDate(text)
	return err == nil && new(labhealth.Date).UnmarshalJSON(value) != nil
}

// nameOrMark returns s if it looks like a field name or a code, which cannot be patient data, and a
// question mark otherwise.
func nameOrMark(s string) string {
	if s == "" || len(s) > 64 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
		return "?"
	}
	return s
}
