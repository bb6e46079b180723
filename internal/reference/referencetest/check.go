// Package referencetest compares the types of a package with the tables of internal/reference.
package referencetest

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/labhealth/labhealth-go/internal/reference"
)

// Area connects a part of the reference with the code. Components and enumerations of the
// management API have the prefix "management ".
type Area struct {
	// Components has the zero value of the Go type of each component. A type may stand for several
	// components: it has the fields of all of them.
	Components map[string]any
	// Enums has the zero value of the Go type of each enumeration. The inline enumeration of a
	// field is named "Component.field", and the resources in paths have the path with {resource}.
	Enums map[string]any
	// Operations has the method of each operation, such as "Orders.Cancel".
	Operations map[string]string
	// Exceptions has the reason of each intended difference, by component, "Component.field",
	// enumeration, "Enumeration.value" or operation. An exception that is not needed is an error.
	Exceptions map[string]string
	// Reduced is set if received fields may be missing whatever the reference says: a required
	// field may have omitzero, and an optional one need not be a pointer.
	Reduced bool
}

// Summary counts what was compared.
type Summary struct{ Components, Fields, Enums, Values int }

// Check compares the types of areas with the tables, both ways. The source of the package under
// test is in the working directory.
func Check(t testing.TB, areas ...Area) Summary {
	t.Helper()
	c := newChecker(t, areas)
	for _, group := range c.groups() {
		c.checkType(group)
	}
	c.checkEnums()
	for name := range c.exceptions {
		if !c.used[name] && !c.isWhole(name) {
			t.Errorf("exception %q is not needed, or names nothing", name)
		}
	}
	return c.summary
}

type checker struct {
	t          testing.TB
	components map[string]reflect.Type
	enums      map[string]reflect.Type
	exceptions map[string]string
	used       map[string]bool
	reduced    bool
	source     *source
	summary    Summary
}

func newChecker(t testing.TB, areas []Area) *checker {
	t.Helper()
	c := &checker{
		t: t, components: map[string]reflect.Type{}, enums: map[string]reflect.Type{}, exceptions: map[string]string{},
		used: map[string]bool{}, source: readSource(t),
	}
	once := func(name string, there bool) {
		if there {
			t.Errorf("%s is listed twice", name)
		}
	}
	for _, area := range areas {
		c.reduced = c.reduced || area.Reduced
		for name, value := range area.Components {
			once(name, c.components[name] != nil)
			c.components[name] = valueType(value)
			if reference.Components()[name] == nil {
				t.Errorf("the reference has no component %q", name)
			}
		}
		for name, value := range area.Enums {
			once(name, c.enums[name] != nil)
			c.enums[name] = valueType(value)
		}
		for name, reason := range area.Exceptions {
			once(name, c.exceptions[name] != "")
			c.exceptions[name] = reason
			if strings.TrimSpace(reason) == "" {
				t.Errorf("exception %q has no reason", name)
			}
		}
	}
	for _, area := range areas {
		for name := range c.exceptions {
			_, here := area.Exceptions[name]
			if !here && (area.Components[name] != nil || area.Enums[name] != nil) {
				t.Errorf("%q is an exception in one area and listed in another", name)
			}
		}
	}
	return c
}

func valueType(value any) reflect.Type {
	typ := reflect.TypeOf(value)
	if typ.Kind() == reflect.Pointer {
		return typ.Elem()
	}
	return typ
}

// isWhole reports whether an exception is about more than a difference: it is the reason why a
// component, an enumeration or an operation is not listed.
func (c *checker) isWhole(name string) bool {
	return c.components[name] == nil && reference.Components()[name] != nil ||
		c.enums[name] == nil && enumValues(name) != nil ||
		strings.Contains(name, " /")
}

// excepted reports whether name has an exception, which is then in use.
func (c *checker) excepted(name string) bool {
	_, ok := c.exceptions[name]
	c.used[name] = c.used[name] || ok
	return ok
}

// group is a Go type and the components that it stands for.
type group struct {
	typ        reflect.Type
	components []string
}

func (c *checker) groups() []group {
	byType := map[reflect.Type][]string{}
	for _, name := range slices.Sorted(maps.Keys(c.components)) {
		byType[c.components[name]] = append(byType[c.components[name]], name)
	}
	var groups []group
	for typ, names := range byType {
		groups = append(groups, group{typ, names})
	}
	slices.SortFunc(groups, func(a, b group) int { return strings.Compare(a.components[0], b.components[0]) })
	return groups
}

// field is a field of all components of a group.
type field struct {
	names []string // "Component.field" in each component, with the field or not
	reference.Field
	types      []reference.Type
	deprecated bool // in all components
}

// fields merges the fields of the components of a group. A field is required if it is in all of
// them, and nullable if it is in one.
func (g group) fields() []*field {
	var list []*field
	byName := map[string]*field{}
	count := map[string]int{}
	for _, component := range g.components {
		for _, f := range reference.Components()[component] {
			merged := byName[f.Name]
			count[f.Name]++
			if merged == nil {
				merged = &field{Field: f, deprecated: true}
				for _, name := range g.components {
					merged.names = append(merged.names, name+"."+f.Name)
				}
				byName[f.Name], list = merged, append(list, merged)
			}
			merged.Required = merged.Required && f.Required
			merged.Nullable = merged.Nullable || f.Nullable
			merged.deprecated = merged.deprecated && f.Deprecated
			if f.Default != merged.Default {
				merged.Default = ""
			}
			if typ := f.ParsedType(); !slices.ContainsFunc(merged.types, func(t reference.Type) bool { return reflect.DeepEqual(t, typ) }) {
				merged.types = append(merged.types, typ)
			}
		}
	}
	for _, f := range list {
		f.Required = f.Required && count[f.Name] == len(g.components)
	}
	return list
}

func (g group) direction() (d reference.Direction) {
	for _, name := range g.components {
		d |= reference.Directions()[name]
	}
	if d == 0 {
		d = reference.Response
	}
	return d
}

func (c *checker) checkType(g group) {
	c.summary.Components += len(g.components)
	name := strings.Join(g.components, ", ")
	if len(g.components) > 3 {
		name = g.components[0] + " and others"
	}
	for _, component := range g.components {
		if c.excepted(component) {
			return
		}
	}
	if g.typ.Kind() != reflect.Struct {
		c.t.Errorf("%s: %s is no struct", name, g.typ)
		return
	}
	goFields, direction := jsonFields(g.typ), g.direction()
	for _, f := range g.fields() {
		c.summary.Fields++
		goField, ok := goFields[f.Name]
		delete(goFields, f.Name)
		var problems []string
		if !ok {
			problems = []string{"is missing"}
		} else {
			problems = c.fieldProblems(f, g.typ, goField, direction)
		}
		c.report(f, g.typ, problems)
	}
	for json, goField := range goFields {
		if !slices.ContainsFunc(g.components, func(component string) bool { return c.excepted(component + "." + json) }) {
			c.t.Errorf("%s (%s): the field %s (%s) is not in the reference", g.typ, name, goField.Name, json)
		}
	}
	if direction&reference.Response != 0 {
		last := g.typ.Field(g.typ.NumField() - 1)
		if !last.Anonymous || last.Name != "RawObject" || last.Tag != `json:"-"` {
			c.t.Errorf("%s (%s): the last field of a response is an embedded RawObject with the tag json:\"-\"", g.typ, name)
		}
		_, reads := reflect.New(g.typ).Interface().(json.Unmarshaler)
		if _, writes := reflect.Zero(g.typ).Interface().(json.Marshaler); !reads || !writes {
			c.t.Errorf("%s (%s) has no UnmarshalJSON and MarshalJSON: run go generate", g.typ, name)
		}
	}
}

// report reports problems unless the field has an exception in one of its components.
func (c *checker) report(f *field, typ reflect.Type, problems []string) {
	if len(problems) == 0 {
		return
	}
	for _, name := range f.names {
		if c.excepted(name) {
			return
		}
	}
	for _, problem := range problems {
		c.t.Errorf("%s (%s): %s", typ, f.names[0], problem)
	}
}

// jsonFields returns the fields of a struct by their JSON names.
func jsonFields(typ reflect.Type) map[string]reflect.StructField {
	fields := map[string]reflect.StructField{}
	for f := range typ.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			fields[name] = f
		}
	}
	return fields
}
