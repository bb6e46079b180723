// Finds what no type stands for.

package referencetest

import (
	"maps"
	"reflect"
	"slices"

	"github.com/labhealth/labhealth-go/internal/reference"
)

// Missing returns the components and enumerations that types consist of and that no area lists as
// such or as an exception. What only an excepted component or a json.RawMessage leads to is not
// missing.
func Missing(types []reference.Type, areas ...Area) []string {
	listed := map[string]bool{}
	components := map[string]reflect.Type{}
	for _, area := range areas {
		for name, value := range area.Components {
			listed[name], components[name] = true, valueType(value)
		}
		for name := range area.Enums {
			listed[name] = true
		}
		for name := range area.Exceptions {
			listed[name] = true
		}
	}
	missing := map[string]bool{}
	for _, typ := range types {
		typ.Reach(func(t reference.Type, f *reference.Field) bool {
			if f != nil {
				if typ := components[ownerOf(*f)]; typ != nil && listed[f.Key()] && holdsRaw(typ, f.Name) {
					return false
				}
			}
			if t.Kind != reference.Component && t.Kind != reference.Enumeration {
				return true
			}
			if !listed[t.Key()] {
				missing[t.Key()] = true
			}
			return t.Kind == reference.Enumeration || !listed[t.Key()] || components[t.Key()] != nil
		})
	}
	return slices.Sorted(maps.Keys(missing))
}

func ownerOf(f reference.Field) string {
	return reference.Type{API: f.API, Name: f.Component}.Key()
}

// holdsRaw reports whether a type keeps the JSON of a field, or lacks it.
func holdsRaw(typ reflect.Type, name string) bool {
	if typ.Kind() != reflect.Struct {
		return true
	}
	f, ok := jsonFields(typ)[name]
	if !ok {
		return true
	}
	t := f.Type
	for t != rawMessage && (t.Kind() == reflect.Slice || t.Kind() == reflect.Map || t.Kind() == reflect.Pointer) {
		t = t.Elem()
	}
	return t == rawMessage
}
