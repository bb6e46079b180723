package referencetest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/labhealth/labhealth-go/internal/reference"
)

var rawMessage = reflect.TypeFor[json.RawMessage]()

// shape is how a field can be absent or null.
type shape struct {
	typ      reflect.Type // without the pointer or Nullable around it
	pointer  bool
	nullable bool // a Nullable
	nilable  bool // a slice, map or interface
	omitzero bool
	fallback string // of the tag default
	filled   bool   // has the tag default
	jsonread string
}

func shapeOf(f reflect.StructField) shape {
	s := shape{typ: f.Type, jsonread: f.Tag.Get("jsonread")}
	_, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	s.omitzero = slices.Contains(strings.Split(options, ","), "omitzero")
	s.fallback, s.filled = f.Tag.Lookup("default")
	if s.pointer = f.Type.Kind() == reflect.Pointer; s.pointer {
		s.typ = f.Type.Elem()
	} else if s.nullable = strings.HasPrefix(f.Type.Name(), "Nullable["); s.nullable {
		value, _ := f.Type.FieldByName("value")
		s.typ = value.Type
	}
	switch s.typ.Kind() {
	case reflect.Slice, reflect.Map, reflect.Interface:
		s.nilable = true
	}
	return s
}

// fieldProblems returns how a field of a Go type differs from the reference.
func (c *checker) fieldProblems(f *field, owner reflect.Type, goField reflect.StructField, direction reference.Direction) []string {
	s := shapeOf(goField)
	var problems []string
	if want := c.typeProblem(f, s); want != "" {
		problems = append(problems, fmt.Sprintf("%s %s: the reference has %s, so the type is %s", goField.Name, goField.Type, f.Type, want))
	}
	for _, problem := range shapeProblems(f, s, direction, c.reduced) {
		problems = append(problems, fmt.Sprintf("%s %s `%s` %s", goField.Name, goField.Type, goField.Tag, problem))
	}
	if declared, ok := c.source.deprecated(owner, goField.Name); ok && declared != f.deprecated {
		problems = append(problems, fmt.Sprintf("%s has a Deprecated paragraph: %v, deprecated in the reference: %v", goField.Name, declared, f.deprecated))
	}
	return problems
}

func shapeProblems(f *field, s shape, direction reference.Direction, reduced bool) []string {
	var problems []string
	wrong := func(bad bool, text string) {
		if bad {
			problems = append(problems, text)
		}
	}
	if s.nullable {
		wrong(direction != reference.Request || !f.Nullable, "is Nullable, which is for nullable fields of requests")
	}
	if f.Required {
		wrong(f.Nullable && !s.pointer && !s.nilable && !s.nullable, "may be null, so it is a pointer")
		wrong(!f.Nullable && s.pointer && !reduced, "is required and never null, so it is no pointer")
		wrong(s.omitzero && !reduced, "is required, so it has no omitzero")
		wrong(direction == reference.Response && !reduced && f.Nullable && s.typ.Kind() == reflect.Slice && s.typ != rawMessage &&
			s.jsonread != "nullable", `is an array that may be null, so it has the tag jsonread:"nullable"`)
		return problems
	}
	fallback := defaultTag(f.Default)
	zero := fallback == "" || fallback == "0" || s.nilable
	switch {
	case direction == reference.Request:
		plain := f.Default != "" || s.typ.Kind() == reflect.String && s.typ.PkgPath() != ""
		wrong(!s.pointer && !s.nilable && !s.nullable && !plain, "is optional, so it is a pointer")
		wrong(!s.omitzero, "is optional, so it has omitzero")
		return problems
	case direction == reference.Response && f.Default != "":
		wrong(!f.Nullable && s.pointer, "has a default and is never null, so it is no pointer")
		wrong(f.Nullable && !s.pointer && !s.nilable && !reduced, "may be null, so it is a pointer")
		wrong(s.omitzero && !zero && !s.pointer, "has a default, so it has no omitzero")
	default:
		wrong(!s.pointer && !s.nilable && !reduced, "is optional, so it is a pointer")
		wrong(!s.omitzero && !reduced, "is optional, so it has omitzero")
	}
	if f.Default != "" && !s.nilable {
		wrong(s.filled && s.fallback != fallback || !s.filled && !zero, fmt.Sprintf("lacks the tag default:%q", fallback))
	} else {
		wrong(s.filled, "has a default that the reference does not have")
	}
	return problems
}

// defaultTag returns a default as it is written in a tag.
func defaultTag(text string) string {
	var value string
	if json.Unmarshal([]byte(text), &value) == nil {
		return value
	}
	return text
}

// typeProblem returns the type that a field should have, "" if it has it.
func (c *checker) typeProblem(f *field, s shape) string {
	want := ""
	for _, typ := range f.types {
		if want = c.wantType(f, typ, s.typ, s.jsonread); want == "" {
			return ""
		}
	}
	if len(f.types) > 1 {
		return c.wantType(f, reference.Type{Kind: reference.Union, Variants: f.types}, s.typ, s.jsonread)
	}
	return want
}

// basicTypes are the Go types of the basic types of the tables.
var basicTypes = map[string][]string{
	"uuid": {"uuid.UUID"}, "uuid4": {"uuid.UUID"}, "integer": {"int64"}, "int64": {"int64"}, "number": {"float64", "json.Number"}, "boolean": {"bool"},
	"date": {"labhealth.Date"}, "date-time": {"time.Time"}, "any": {"json.RawMessage"}, "object": {"json.RawMessage", "map[string]json.RawMessage"},
}

var money = regexp.MustCompile(`(^|_)(price|cost|fee|amount)(_|$)`)

// wantType returns the Go type of a type of the tables, "" if got is one.
func (c *checker) wantType(f *field, want reference.Type, got reflect.Type, jsonread string) string {
	isString := got.Kind() == reflect.String && got != reflect.TypeFor[json.Number]()
	switch want.Kind {
	case reference.Basic:
		if types := basicTypes[want.Name]; types != nil {
			if want.Name == "number" && money.MatchString(f.Name) {
				types = types[1:]
			}
			return unless(slices.Contains(types, typeName(got)), strings.Join(types, " or "))
		}
		return unless(isString, "string")
	case reference.Const:
		switch value := want.Values[0]; {
		case value == "true" || value == "false":
			return unless(got.Kind() == reflect.Bool, "bool")
		case value[0] == '"':
			return unless(isString, "string")
		}
		return unless(typeName(got) == "int64", "int64")
	case reference.Inline:
		return c.wantInline(f, want, got)
	case reference.Enumeration:
		if typ := c.enums[want.Key()]; typ != nil {
			return unless(typ == got, typ.String())
		}
		return unless(isString || got.Kind() == reflect.Int64, "string")
	case reference.Component:
		if typ := c.components[want.Key()]; typ != nil {
			return unless(typ == got, typ.String())
		}
		return unless(got == rawMessage || got.Kind() == reflect.Struct || got.Kind() == reflect.Interface, "a struct")
	case reference.Array:
		if got.Kind() != reflect.Slice || got == rawMessage {
			return "a slice"
		}
		elem := got.Elem()
		if elem.Kind() == reflect.Pointer && want.Elem.Kind == reference.Basic {
			elem = elem.Elem() // elements of streams may be null
		}
		return prefixed("[]", c.wantType(f, *want.Elem, elem, ""))
	case reference.Map:
		if got.Kind() != reflect.Map || got.Key().Kind() != reflect.String {
			return "a map with strings as keys"
		}
		return prefixed("map[string]", c.wantType(f, *want.Elem, got.Elem(), ""))
	default:
		return c.wantUnion(f, want, got, jsonread)
	}
}

// wantInline is wantType for an enumeration without a name.
func (c *checker) wantInline(f *field, want reference.Type, got reflect.Type) string {
	for _, name := range f.names {
		if typ := c.enums[name]; typ != nil {
			return unless(typ == got, typ.String())
		}
	}
	if got.Kind() != reflect.String {
		return "a string"
	}
	if got.PkgPath() == "" {
		return ""
	}
	for name, typ := range c.enums {
		values := reference.Enumerations()[name]
		if values == nil {
			values = inlineValues(name)
		}
		if typ == got && slices.Equal(values, want.Values) {
			return ""
		}
	}
	return fmt.Sprintf("string, or a type listed as the enumeration %q", f.names[0])
}

// inlineValues returns the values of the inline enumeration of a field.
func inlineValues(name string) []string {
	i := strings.LastIndex(name, ".")
	if i < 0 {
		return nil
	}
	for _, f := range reference.Components()[name[:i]] {
		typ := f.ParsedType()
		for typ.Elem != nil {
			typ = *typ.Elem
		}
		if f.Name == name[i+1:] && typ.Kind == reference.Inline {
			return typ.Values
		}
	}
	return nil
}

// wantUnion is wantType for a union: the type of all variants, or an interface, or a list with the
// tag jsonread:"object" if the other variant is an object.
func (c *checker) wantUnion(f *field, want reference.Type, got reflect.Type, jsonread string) string {
	if got.Kind() == reflect.Interface {
		return ""
	}
	if jsonread == "object" && want.Variants[0].Kind == reference.Array {
		return c.wantType(f, want.Variants[0], got, "")
	}
	for _, variant := range want.Variants {
		if variant.Kind == reference.Component && c.components[variant.Key()] == nil {
			return "an interface, or a struct for all variants"
		}
		if variant.Kind == reference.Enumeration && got.Kind() == reflect.String {
			continue
		}
		if problem := c.wantType(f, variant, got, ""); problem != "" {
			return "an interface, or " + problem
		}
	}
	return ""
}

func unless(ok bool, want string) string {
	if ok {
		return ""
	}
	return want
}

func prefixed(prefix, want string) string {
	if want == "" {
		return ""
	}
	return prefix + want
}

// typeName returns the name of a type in the source. Since Go 1.27 json.RawMessage is an alias, and
// reflect returns the name of its target.
func typeName(typ reflect.Type) string {
	return strings.ReplaceAll(typ.String(), rawMessage.String(), "json.RawMessage")
}
