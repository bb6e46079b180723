// The types of the tables, and what is sent and received.

package reference

import (
	"strings"
	"sync"
)

// Kind is the kind of a [Type].
type Kind int

// Kinds of types.
const (
	Basic       Kind = iota // Name is uuid, uuid4, date, date-time, string, email, uri, binary, integer, number, boolean, object or any
	Component               // Name is a component
	Enumeration             // Name is an enumeration, Values has its values
	Inline                  // an enumeration without a name: Values has its values
	Const                   // Values has the one value, as JSON
	Array                   // of Elem
	Map                     // of Elem, by strings
	Union                   // one of Variants
)

// Type is a parsed type of the tables.
type Type struct {
	Kind     Kind
	API      string
	Name     string
	Values   []string
	Elem     *Type
	Variants []Type
}

// Key returns the name of a component or an enumeration, with the prefix "management " if it
// belongs to the management API. Areas and [Components] use it.
func (t Type) Key() string { return key(t.API, t.Name) }

func key(api, name string) string {
	if api == "management" {
		return api + " " + name
	}
	return name
}

// Components returns the fields of each component, by key.
var Components = sync.OnceValue(func() map[string][]Field {
	components := map[string][]Field{}
	for _, f := range Fields() {
		components[key(f.API, f.Component)] = append(components[key(f.API, f.Component)], f)
	}
	return components
})

// Enumerations returns the values of each enumeration, by key.
var Enumerations = sync.OnceValue(func() map[string][]string {
	enums := map[string][]string{}
	for _, r := range rows("enums.tsv", 3) {
		enums[key(r[0], r[1])] = strings.Split(r[2], ", ")
	}
	return enums
})

// parsed caches ParseType by API and text.
var parsed sync.Map

// ParseType parses a type of a table. In "map of X|Y" the values are X or Y, and "array of
// X|object" is either.
func ParseType(api, text string) Type {
	if t, ok := parsed.Load([2]string{api, text}); ok {
		return t.(Type)
	}
	t := parseType(api, text)
	parsed.Store([2]string{api, text}, t)
	return t
}

func parseType(api, text string) Type {
	if elem, ok := strings.CutPrefix(text, "map of "); ok {
		e := ParseType(api, elem)
		return Type{Kind: Map, API: api, Elem: &e}
	}
	if values, ok := strings.CutPrefix(text, "enum("); ok {
		return Type{Kind: Inline, API: api, Values: strings.Split(strings.TrimSuffix(values, ")"), ",")}
	}
	if names := strings.Split(text, "|"); len(names) > 1 {
		union := Type{Kind: Union, API: api}
		for _, name := range names {
			union.Variants = append(union.Variants, ParseType(api, name))
		}
		return union
	}
	if elem, ok := strings.CutPrefix(text, "array of "); ok {
		e := ParseType(api, elem)
		return Type{Kind: Array, API: api, Elem: &e}
	}
	if value, ok := strings.CutPrefix(text, "const "); ok {
		return Type{Kind: Const, API: api, Values: []string{value}}
	}
	if text == "int64" {
		text = "integer"
	}
	named := Type{Kind: Basic, API: api, Name: text}
	if fields := Components()[named.Key()]; fields != nil {
		if fields[0].Name == "(itself)" {
			return ParseType(api, fields[0].Type)
		}
		named.Kind = Component
	} else if values := Enumerations()[named.Key()]; values != nil {
		named.Kind, named.Values = Enumeration, values
	} else if text == "" || text[0] < 'a' {
		named.Name = "any" // not documented, or a component that the tables leave out
	}
	return named
}

// ParsedType returns the type of the field.
func (f Field) ParsedType() Type { return ParseType(f.API, f.Type) }

// Key returns the component and the name of the field, such as "ClientFacingUser.user_id".
func (f Field) Key() string { return key(f.API, f.Component) + "." + f.Name }

// Direction is whether a type is sent, received, or both.
type Direction int

// Directions.
const (
	Request Direction = 1 << iota
	Response
)

// Reach calls visit for every component and enumeration that a type consists of, at any depth. It
// does not go into a type or a field whose visit returns false. field is nil for t itself.
func (t Type) Reach(visit func(t Type, field *Field) bool) {
	reach(t, nil, map[string]bool{}, visit)
}

func reach(t Type, field *Field, seen map[string]bool, visit func(Type, *Field) bool) {
	if !visit(t, field) {
		return
	}
	if t.Elem != nil {
		reach(*t.Elem, field, seen, visit)
	}
	for _, v := range t.Variants {
		reach(v, field, seen, visit)
	}
	if t.Kind != Component || seen[t.Key()] {
		return
	}
	seen[t.Key()] = true
	for _, f := range Components()[t.Key()] {
		reach(f.ParsedType(), &f, seen, visit)
	}
}

// Directions returns the direction of every component, by key: those of a request body are sent,
// those of a response or an event are received.
var Directions = sync.OnceValue(func() map[string]Direction {
	directions := map[string]Direction{}
	mark := func(api, text string, d Direction) {
		if text == "" {
			return
		}
		ParseType(api, text).Reach(func(t Type, _ *Field) bool {
			if t.Kind == Component {
				directions[t.Key()] |= d
			}
			return true
		})
	}
	for _, o := range Operations() {
		mark(o.API, o.Body, Request)
		mark(o.API, o.Response, Response)
	}
	for _, e := range Events() {
		mark("team", e.Data, Response)
	}
	return directions
})
