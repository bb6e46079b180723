// Generates JSON documents of the types of the tables.

package reference

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Generator makes JSON documents that match types of the tables. Its zero value is invalid: use
// [NewGenerator]. It is not safe for concurrent use.
type Generator struct {
	// Plausible makes documents for people: every field is present and not null, lists are short,
	// and values suit the names of their fields. Otherwise documents have everything that the
	// tables allow: nulls, missing optional fields, edge values, unknown fields and values.
	Plausible bool
	// Now is around the times in plausible documents.
	Now time.Time
	// Fixed has the values of fields by name or by "Component.field", to be encoded as JSON. A
	// field with a fixed value is always present.
	Fixed map[string]any

	rand  *rand.Rand
	depth int
	index int // in the innermost array
}

// NewGenerator returns a generator that makes the same documents for the same seed.
func NewGenerator(seed uint64) *Generator {
	return &Generator{rand: rand.New(rand.NewPCG(seed, 0x7265666572656e63)), Now: time.Date(2026, 1, 31, 9, 30, 0, 0, time.UTC)}
}

// Document returns a document of a type as it is written in the tables, such as
// "array of ClientFacingUser".
func (g *Generator) Document(api, text string) []byte {
	var b bytes.Buffer
	g.value(&b, ParseType(api, text), Field{API: api})
	return b.Bytes()
}

// maxDepth is the number of levels from which on lists and maps are empty.
const maxDepth = 9

func (g *Generator) value(b *bytes.Buffer, t Type, f Field) {
	g.depth++
	defer func() { g.depth-- }()
	switch t.Kind {
	case Component:
		g.object(b, t.Key())
	case Array:
		g.array(b, *t.Elem, f)
	case Map:
		g.mapping(b, *t.Elem, f)
	case Union:
		variant := g.rand.IntN(len(t.Variants))
		if g.Plausible && t.Variants[0].Kind == Array {
			variant = 0 // an object in place of a list is a former shape
		}
		g.value(b, t.Variants[variant], f)
	case Const:
		b.WriteString(g.constant(t.Values[0]))
	case Enumeration, Inline:
		g.enum(b, t.Values)
	case Basic:
		g.basic(b, t.Name, f)
	}
}

// chance is true once in n times, and never in plausible documents.
func (g *Generator) chance(n int) bool { return !g.Plausible && g.rand.IntN(n) == 0 }

func (g *Generator) object(b *bytes.Buffer, component string) {
	b.WriteByte('{')
	first := true
	name := func(name string) {
		if !first {
			b.WriteByte(',')
		}
		first = false
		writeJSON(b, name)
		b.WriteByte(':')
	}
	for _, f := range g.fields(component) {
		fixed, ok := g.Fixed[f.Key()]
		if !ok {
			fixed, ok = g.Fixed[f.Name]
		}
		switch {
		case ok:
			name(f.Name)
			writeJSON(b, fixed)
		case !f.Required && g.chance(4):
		case f.Nullable && (g.chance(5) || g.depth > maxDepth):
			name(f.Name)
			b.WriteString("null")
		default:
			name(f.Name)
			g.value(b, f.ParsedType(), f)
		}
	}
	if g.chance(6) {
		name("x_" + strconv.Itoa(g.rand.IntN(10)))
		g.any(b)
	}
	b.WriteByte('}')
}

// fields returns the fields of a component, sometimes in another order. A source has two forms:
// that of the tables, and a former one.
func (g *Generator) fields(component string) []Field {
	fields := slices.Clone(Components()[component])
	if component == "ClientFacingSource" && g.chance(2) {
		fields = slices.DeleteFunc(fields, func(f Field) bool { return f.Name != "name" && f.Name != "slug" && f.Name != "logo" })
	}
	if g.chance(4) {
		g.rand.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	}
	return fields
}

func (g *Generator) array(b *bytes.Buffer, elem Type, f Field) {
	n := g.length(f)
	outer := g.index
	b.WriteByte('[')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		g.index = i
		g.value(b, elem, f)
	}
	b.WriteByte(']')
	g.index = outer
}

func (g *Generator) length(f Field) int {
	atLeast, atMost := int(Limit(f.Limits, "minItems", 0)), int(Limit(f.Limits, "maxItems", 1000))
	n := 2
	switch {
	case g.depth > maxDepth:
		n = 0
	case g.chance(30) && g.depth < 5:
		n = 20
	case !g.Plausible:
		n = g.rand.IntN(4)
	}
	return min(max(n, atLeast), atMost)
}

func (g *Generator) mapping(b *bytes.Buffer, elem Type, f Field) {
	b.WriteByte('{')
	keys := []string{"oura", "fitbit"}
	if !g.Plausible {
		keys = slices.Clone([]string{"oura", "", "a/b", "Größe", "sleep", "\u2028"}[:g.rand.IntN(7)])
	}
	if g.depth > maxDepth {
		keys = nil
	}
	for i, key := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		writeJSON(b, key)
		b.WriteByte(':')
		g.value(b, elem, f)
	}
	b.WriteByte('}')
}

// constant returns a constant, or sometimes one that did not exist before. The only constant of
// type boolean stays.
func (g *Generator) constant(value string) string {
	if value[0] == '"' && g.chance(30) {
		return `"new_value"`
	}
	return value
}

func (g *Generator) enum(b *bytes.Buffer, values []string) {
	value := values[g.rand.IntN(len(values))]
	integers := !slices.ContainsFunc(values, func(v string) bool { _, err := strconv.Atoi(v); return err != nil })
	switch {
	case integers && g.chance(15):
		b.WriteString("77")
	case integers:
		b.WriteString(value)
	case g.chance(15):
		b.WriteString(`"new_value"`)
	default:
		writeJSON(b, value)
	}
}

func (g *Generator) basic(b *bytes.Buffer, name string, f Field) {
	switch name {
	case "uuid", "uuid4":
		writeJSON(b, g.uuid())
	case "date":
		b.WriteString(g.date(f))
	case "date-time":
		b.WriteString(g.dateTime(f))
	case "integer", "int64":
		b.WriteString(g.integer(f))
	case "number":
		b.WriteString(g.number(f))
	case "boolean":
		b.WriteString(strconv.FormatBool(g.rand.IntN(2) == 0))
	case "object":
		if g.Plausible {
			b.WriteString("{}")
			return
		}
		b.WriteString(`{"a":`)
		g.any(b)
		b.WriteByte('}')
	case "any":
		g.any(b)
	default: // a kind of string
		g.string(b, name, f)
	}
}

func (g *Generator) uuid() string {
	const digits = "0123456789abcdef"
	id := []byte("xxxxxxxx-xxxx-4xxx-axxx-xxxxxxxxxxxx")
	for i, c := range id {
		if c == 'x' {
			id[i] = digits[g.rand.IntN(16)]
		}
	}
	if g.chance(20) {
		return strings.ToUpper(string(id))
	}
	return string(id)
}

// any writes any JSON.
func (g *Generator) any(b *bytes.Buffer) {
	if g.Plausible {
		b.WriteString(`"unknown"`)
		return
	}
	b.WriteString(anyValues[g.rand.IntN(len(anyValues))])
}

// writeJSON writes a value that can be encoded as JSON.
func writeJSON(b *bytes.Buffer, value any) {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err) // a fixed value of an invalid type
	}
	b.Write(encoded)
}
