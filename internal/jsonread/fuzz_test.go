package jsonread

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

// generator writes random documents from a type's tags: well-formed, and such that encoding/json
// reads them too, unless odd is true.
type generator struct {
	*rand.Rand
	strings.Builder

	odd     bool // names come twice, and values do not fit
	padding int  // spaces at some places of an odd document
}

func (g *generator) one(n int) bool { return g.IntN(n) == 0 }

func (g *generator) space() {
	if g.odd && g.one(100) {
		g.WriteString(strings.Repeat(" ", g.padding))
	}
	if g.one(8) {
		g.WriteString([]string{" ", "\n", "\t", "\r\n  "}[g.IntN(4)])
	}
}

func (g *generator) text() {
	g.WriteByte('"')
	for range g.IntN(12) {
		g.WriteString([]string{"a", "Z", "0", " ", "é", "😀", "<", "&", "\u2028", `\n`, `\"`, `\\`, `\/`, `\u00e9`, `\ud83d\ude00`, `\ud83d`, `\u0000`, "\x7f", "{", "]"}[g.IntN(20)])
	}
	g.WriteByte('"')
}

func (g *generator) any(depth int) {
	switch g.IntN(7 - min(depth, 2)) {
	case 0:
		g.text()
	case 1:
		g.WriteString(strconv.FormatFloat(g.NormFloat64()*1e6, 'g', -1, 64))
	case 2:
		g.WriteString("true")
	case 3:
		g.WriteString("false")
	case 4:
		g.WriteString("{}")
	case 5:
		g.list(func() { g.any(depth + 1) })
	case 6:
		g.object([]string{`"a"`, `"B"`, `""`, `"zz é"`}, func(int) { g.any(depth + 1) })
	}
}

func (g *generator) list(element func()) {
	g.WriteByte('[')
	length := g.IntN(4)
	if g.one(12) {
		length = g.IntN(90)
	}
	for i := range length {
		if i > 0 {
			g.WriteByte(',')
		}
		g.space()
		element()
		g.space()
	}
	g.WriteByte(']')
}

func (g *generator) object(names []string, value func(i int)) {
	g.WriteByte('{')
	order := g.Perm(len(names))
	if g.odd && g.one(2) {
		order = append(order, order[:g.IntN(len(order)+1)]...)
	}
	for k, i := range order {
		if k > 0 {
			g.WriteByte(',')
		}
		g.space()
		g.WriteString(names[i])
		g.space()
		g.WriteByte(':')
		g.space()
		value(i)
		g.space()
	}
	g.WriteByte('}')
}

func (g *generator) value(t reflect.Type, nullable bool) {
	if nullable && g.one(6) {
		g.WriteString("null")
		return
	}
	if g.odd && g.one(25) {
		g.WriteString([]string{"7", `"x"`, "[]", "{}", "true", "null"}[g.IntN(6)])
		return
	}
	switch t {
	case timeType:
		at := time.UnixMicro(g.Int64N(4e15)).In(time.FixedZone("", (g.IntN(48)-24)*1800))
		g.WriteString(strconv.Quote(at.Format([]string{time.RFC3339, time.RFC3339Nano, "2006-01-02T15:04:05.000Z07:00"}[g.IntN(3)])))
		return
	case uuidType:
		var id uuid.UUID
		for i := range id {
			id[i] = byte(g.Uint32())
		}
		text := id.String()
		if g.one(3) {
			text = strings.ToUpper(text)
		}
		g.WriteString(`"` + text + `"`)
		return
	case numberType:
		g.WriteString([]string{"0", "0.0", "45", "10.00", "-1e3", "1e400"}[g.IntN(6)])
		return
	case rawType:
		g.any(0)
		return
	case reflect.TypeFor[Day]():
		fmt.Fprintf(g, `"%04d-%02d-%02d"`, g.IntN(10000), g.IntN(100), g.IntN(100))
		return
	case reflect.TypeFor[Perhaps[int64]]():
		t = reflect.TypeFor[int64]()
	case reflect.TypeFor[Payload]():
		text := `{"type":"letter","data":null}` // encoding/json has no unions
		if g.odd {
			text = []string{`{"type":"letter","data":{"text":"t","text":"u"}}`, `{"data":{"text":"t"},"type":"letter"}`, `{"type":"new","data":{"text":"t"}}`}[g.IntN(3)]
		}
		g.WriteString(text)
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		g.value(t.Elem(), nullable)
	case reflect.String:
		g.text()
	case reflect.Bool:
		g.WriteString(strconv.FormatBool(g.one(2)))
	case reflect.Int64:
		n := g.Int64() >> g.IntN(64)
		if g.one(2) {
			n = -n
		}
		g.WriteString(strconv.FormatInt(n, 10))
	case reflect.Float64:
		g.WriteString([]string{"0", "-0.0", "1e5", "2.5E-3", "237", "39.518054167148996"}[g.IntN(6)])
	case reflect.Slice:
		g.list(func() { g.value(t.Elem(), t.Elem() != rawType) })
	case reflect.Map:
		g.object([]string{`"k"`, `"K"`, `"\u006b2"`, `""`}, func(int) { g.value(t.Elem(), t.Elem() != rawType) })
	case reflect.Struct:
		var names []string
		var fields []reflect.StructField
		for i := range t.NumField() {
			sf := t.Field(i)
			name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
			_, hasDefault := sf.Tag.Lookup("default") // encoding/json has no defaults
			if name != "-" && (hasDefault || !g.one(4)) {
				names, fields = append(names, strconv.Quote(name)), append(fields, sf)
			}
		}
		for n := range g.IntN(3) {
			names = append(names, fmt.Sprintf(`"zz%d"`, n))
		}
		g.object(names, func(i int) {
			if i >= len(fields) {
				g.any(0)
				return
			}
			_, hasDefault := fields[i].Tag.Lookup("default")
			g.value(fields[i].Type, !hasDefault && fields[i].Type != rawType)
		})
	}
}

func generate(seed1, seed2 uint64, t reflect.Type) string {
	g := generator{Rand: rand.New(rand.NewPCG(seed1, seed2))}
	g.space()
	g.value(t, false)
	g.space()
	return g.String()
}

func sameAsEncodingJSON(t *testing.T, text string) {
	t.Helper()
	var got, want Page
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		t.Fatalf("%s:\n%v", text, err)
	}
	input := []byte(text)
	if err := Unmarshal(input, &got); err != nil {
		t.Fatalf("%s:\n%v", text, err)
	}
	for i := range input { // nothing of it is kept
		input[i] = '#'
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s:\n%s", text, diff)
	}
	if odd := problems(got.RawObject); odd != nil {
		t.Fatalf("%s: %q", text, odd)
	}
	if b, err := Marshal(got); err != nil || string(b) != strings.Trim(text, " \t\r\n") {
		t.Fatalf("%s:\nwritten as %s, %v", text, b, err)
	}
}

func TestReadsLikeEncodingJSON(t *testing.T) {
	for n := range uint64(300) {
		sameAsEncodingJSON(t, generate(n, 1, reflect.TypeFor[Page]()))
	}
}

func FuzzReadsLikeEncodingJSON(f *testing.F) {
	for n := range uint64(10) {
		f.Add(n, n*n)
	}
	f.Fuzz(func(t *testing.T, seed1, seed2 uint64) {
		sameAsEncodingJSON(t, generate(seed1, seed2, reflect.TypeFor[Page]()))
	})
}

// FuzzRead reads any text: what is JSON is read without a panic, is written as it came, and with a
// change is that text with the change on top.
func FuzzRead(f *testing.F) {
	f.Add([]byte(thingText))
	for _, seed := range []string{
		`{}`, `null`, `[]`, `{"tags":[1,"a"],"tags":["b",2]}`, `{"payload":{"data":[],"type":"letter"}}`, `{"own":[{"id":"x"}],"own":7}`,
		`{"by_name":{"":{},"":7},"extra":{"a":1,"a":null}}`, `{"\u006eame":"x","name":7}`, `{"parts":[null,{"maker":{"city":1}}]}`,
		`{"at":"2025-03-01","day":"2025-03-01","id":"{9c0f2d52-3a3e-4a64-9b5e-1f2d3c4b5a69}"}`, `{"beats":[1,null,"x"],"count":1e2}`,
	} {
		f.Add([]byte(seed))
	}
	for n := range uint64(3) {
		f.Add([]byte(generate(n, 2, reflect.TypeFor[Thing]())))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var v Thing
		err := Unmarshal(text, &v)
		if err == nil != (Valid(text) == nil) {
			t.Fatalf("%q: read %v, valid %v", text, err, Valid(text))
		}
		if err != nil {
			return
		}
		if !utf8.Valid(text) || !json.Valid(text) {
			t.Fatalf("%q was read", text)
		}
		if b, err := Marshal(&v); err != nil || string(b) != strings.Trim(string(text), " \t\r\n") {
			t.Fatalf("%q: written as %q, %v", text, b, err)
		}
		if ref(v.RawObject).Raw()[0] != '{' {
			return
		}
		before := v
		v.Name, v.Tags, v.Parts, v.Main.ID = v.Name+"!", append(v.Tags[:len(v.Tags):len(v.Tags)], "!"), append(v.Parts[:len(v.Parts):len(v.Parts)], Part{ID: 7}), v.Main.ID+1
		b, err := Marshal(&v)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		var again Thing
		if err := Unmarshal(b, &again); err != nil {
			t.Fatalf("%q: %q: %v", text, b, err)
		}
		if diff := cmp.Diff(v, again); diff != "" {
			t.Fatalf("%q: written as %q:\n%s", text, b, diff)
		}
		// With the change undone, nothing else differs from the received JSON.
		again.Name, again.Tags, again.Parts, again.Main = before.Name, before.Tags, before.Parts, before.Main
		if diff := cmp.Diff(before, again); diff != "" {
			t.Fatalf("%q:\n%s", text, diff)
		}
		var was, is map[string]json.RawMessage
		if json.Unmarshal(text, &was) != nil || json.Unmarshal(b, &is) != nil {
			t.Fatalf("%q: %q is no object", text, b)
		}
		for name := range was {
			if _, still := is[name]; !still {
				t.Fatalf("%q: %q lost %q", text, b, name)
			}
		}
	})
}
