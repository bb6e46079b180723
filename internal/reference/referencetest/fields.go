// The Go type and the tag of a field.

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

var nonLetters = regexp.MustCompile(`[^0-9A-Za-z]`)

// fieldProblems returns how a field of a Go type differs from the reference.
func (c *checker) fieldProblems(f *field, owner reflect.Type, goField reflect.StructField, direction reference.Direction) []string {
	s := shapeOf(goField)
	var found []string
	if isExported := owner.Name()[0] < 'a'; isExported && !strings.EqualFold(nonLetters.ReplaceAllString(f.Name, ""), goField.Name) {
		found = append(found, fmt.Sprintf("%s is not the name %s in Go's spelling", goField.Name, f.Name))
	}
	if want := c.typeProblem(f, s); want != "" {
		found = append(found, fmt.Sprintf("%s %s: the reference has %s, so the type is %s", goField.Name, goField.Type, f.Type, want))
	}
	for _, problem := range shapeProblems(f, s, direction, c.reduced) {
		found = append(found, fmt.Sprintf("%s %s `%s` %s", goField.Name, goField.Type, goField.Tag, problem))
	}
	if declared, ok := c.source.deprecated(owner, goField.Name); ok && declared != f.deprecated {
		found = append(found, fmt.Sprintf("%s has a Deprecated paragraph: %v, deprecated in the reference: %v", goField.Name, declared, f.deprecated))
	}
	return found
}

// problems collects what is wrong with a field.
type problems []string

func (p *problems) add(wrong bool, text string) {
	if wrong {
		*p = append(*p, text)
	}
}

// shapeProblems returns how a field differs from the reference in how it can be absent or null.
func shapeProblems(f *field, s shape, direction reference.Direction, reduced bool) []string {
	var p problems
	p.add(s.nullable && (direction != reference.Request || !f.Nullable), "is Nullable, which is for nullable fields of requests")
	switch {
	case f.Required:
		p.required(f, s, direction, reduced)
	case direction == reference.Request:
		plain := f.Default != "" || s.typ.Kind() == reflect.String && s.typ.PkgPath() != ""
		p.add(!s.canBeNil() && !plain, "is optional, so it is a pointer")
		p.add(!s.omitzero, "is optional, so it has omitzero")
	case direction == reference.Response && f.Default != "":
		p.withDefault(f, s, reduced)
	default:
		p.add(!s.canBeNil() && !reduced, "is optional, so it is a pointer")
		p.add(!s.omitzero && !reduced, "is optional, so it has omitzero")
		p.defaultTag(f, s)
	}
	return p
}

func (s shape) canBeNil() bool { return s.pointer || s.nilable || s.nullable }

// required checks a field that is always there.
func (p *problems) required(f *field, s shape, direction reference.Direction, reduced bool) {
	p.add(f.Nullable && !s.canBeNil(), "may be null, so it is a pointer")
	if reduced {
		return
	}
	p.add(!f.Nullable && s.pointer, "is required and never null, so it is no pointer")
	p.add(s.omitzero, "is required, so it has no omitzero")
	isList := s.typ.Kind() == reflect.Slice && s.typ != rawMessage
	p.add(direction == reference.Response && f.Nullable && isList && s.jsonread != "nullable",
		`is an array that may be null, so it has the tag jsonread:"nullable"`)
}

// withDefault checks a field of a response that has a default.
func (p *problems) withDefault(f *field, s shape, reduced bool) {
	p.add(!f.Nullable && s.pointer, "has a default and is never null, so it is no pointer")
	p.add(f.Nullable && !s.canBeNil() && !reduced, "may be null, so it is a pointer")
	p.add(s.omitzero && !s.zeroIsDefault(f) && !s.pointer, "has a default, so it has no omitzero")
	p.defaultTag(f, s)
}

// defaultTag checks the tag default. It may be left out if the zero value is the default.
func (p *problems) defaultTag(f *field, s shape) {
	if f.Default == "" || s.nilable {
		p.add(s.filled, "has a default that the reference does not have")
		return
	}
	want := defaultTag(f.Default)
	p.add(s.filled && s.fallback != want || !s.filled && !s.zeroIsDefault(f), fmt.Sprintf("lacks the tag default:%q", want))
}

func (s shape) zeroIsDefault(f *field) bool {
	text := defaultTag(f.Default)
	return text == "" || text == "0" || s.nilable
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
	switch want.Kind {
	case reference.Basic:
		return wantBasic(f, want.Name, got)
	case reference.Const:
		return wantConst(want.Values[0], got)
	case reference.Inline:
		return c.wantInline(f, want, got)
	case reference.Enumeration:
		if typ := c.enums[want.Key()]; typ != nil {
			return unless(typ == got, typ.String())
		}
		return unless(isString(got) || got.Kind() == reflect.Int64, "string")
	case reference.Component:
		if typ := c.components[want.Key()]; typ != nil {
			return unless(typ == got, typ.String())
		}
		return unless(got == rawMessage || got.Kind() == reflect.Struct || got.Kind() == reflect.Interface, "a struct")
	case reference.Array:
		return c.wantArray(f, *want.Elem, got)
	case reference.Map:
		if got.Kind() != reflect.Map || got.Key().Kind() != reflect.String {
			return "a map with strings as keys"
		}
		return prefixed("map[string]", c.wantType(f, *want.Elem, got.Elem(), ""))
	default:
		return c.wantUnion(f, want, got, jsonread)
	}
}

func isString(typ reflect.Type) bool {
	return typ.Kind() == reflect.String && typ != reflect.TypeFor[json.Number]()
}

// wantBasic is wantType for a basic type.
func wantBasic(f *field, name string, got reflect.Type) string {
	types := basicTypes[name]
	if types == nil {
		return unless(isString(got), "string")
	}
	if name == "number" && money.MatchString(f.Name) {
		types = types[1:]
	}
	return unless(slices.Contains(types, typeName(got)), strings.Join(types, " or "))
}

// wantConst is wantType for a constant.
func wantConst(value string, got reflect.Type) string {
	switch {
	case value == "true" || value == "false":
		return unless(got.Kind() == reflect.Bool, "bool")
	case value[0] == '"':
		return unless(isString(got), "string")
	}
	return unless(typeName(got) == "int64", "int64")
}

// wantArray is wantType for a list.
func (c *checker) wantArray(f *field, want reference.Type, got reflect.Type) string {
	if got.Kind() != reflect.Slice || got == rawMessage {
		return "a slice"
	}
	elem := got.Elem()
	if elem.Kind() == reflect.Pointer && want.Kind == reference.Basic {
		elem = elem.Elem() // elements of streams may be null
	}
	return prefixed("[]", c.wantType(f, want, elem, ""))
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
		if typ == got && slices.Equal(enumValues(name), want.Values) {
			return ""
		}
	}
	return fmt.Sprintf("string, or a type listed as the enumeration %q", f.names[0])
}

// enumValues returns the values of an enumeration, or of the inline one of a field, or what the
// paths of the tables have in place of {resource}. It returns nil if there is none.
func enumValues(name string) []string {
	if values := reference.Enumerations()[name]; values != nil {
		return values
	}
	i := strings.LastIndex(name, ".")
	if i < 0 {
		return resourcesIn(name)
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
	return resourcesIn(name)
}

// resourcesIn returns what the paths of the tables have in place of {resource} in path.
func resourcesIn(path string) (resources []string) {
	before, after, ok := strings.Cut(path, "{resource}")
	if !ok {
		return nil
	}
	for _, o := range reference.Operations() {
		resource, hasPrefix := strings.CutPrefix(o.Path, before)
		resource, hasSuffix := strings.CutSuffix(resource, after)
		if hasPrefix && hasSuffix {
			resources = append(resources, resource)
		}
	}
	return resources
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
