// The JSON methods of received types.

package referencetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// Lossless checks that every type of the source that embeds RawObject has its JSON methods, and is
// compared with the interface specification or the public API reference: it is one of types, or
// excepted.
func Lossless(t *testing.T, types []reflect.Type, excepted ...string) {
	t.Helper()
	specified := map[string]bool{}
	for _, typ := range types {
		specified[typ.Name()] = true
	}
	_, files := ParsePackage(t)
	methods := MethodDocs(files)
	n := 0
	for _, file := range files {
		ast.Inspect(file, func(node ast.Node) bool {
			typ, ok := node.(*ast.TypeSpec)
			if !ok || !typ.Name.IsExported() || !embedsRawObject(typ) {
				return true
			}
			n++
			name := typ.Name.Name
			_, reads := methods["*"+name+".UnmarshalJSON"]
			if _, writes := methods[name+".MarshalJSON"]; !reads || !writes {
				t.Errorf("%s embeds RawObject and lacks UnmarshalJSON of its pointer or MarshalJSON of its value", name)
			}
			if !specified[name] && !slices.Contains(excepted, name) {
				t.Errorf("%s is neither in the interface specification nor in the public API reference", name)
			}
			return false
		})
	}
	t.Logf("%d types", n)
}

func embedsRawObject(typ *ast.TypeSpec) bool {
	structure, ok := typ.Type.(*ast.StructType)
	return ok && slices.ContainsFunc(structure.Fields.List, func(f *ast.Field) bool {
		expr := f.Type
		if selector, ok := expr.(*ast.SelectorExpr); ok {
			expr = selector.Sel
		}
		name, ok := expr.(*ast.Ident)
		return ok && len(f.Names) == 0 && name.Name == "RawObject"
	})
}

// RoundTrips checks that each type that embeds RawObject decodes with encoding/json and encodes to
// the same JSON, unknown fields included. It returns the number of these types.
func RoundTrips(t *testing.T, types []reflect.Type) (n int) {
	t.Helper()
	const text = `{"left_over":[1.50,{"a":null,"b":"\u00e9"}]}`
	for _, typ := range types {
		if f, ok := typ.FieldByName("RawObject"); !ok || !f.Anonymous {
			continue
		}
		n++
		v := reflect.New(typ)
		if err := json.Unmarshal([]byte(text), v.Interface()); err != nil {
			t.Errorf("%s: %v", typ, err)
			continue
		}
		if got, err := json.Marshal(v.Elem().Interface()); err != nil || string(got) != text {
			t.Errorf("%s is written as %s, %v", typ, got, err)
		}
	}
	return n
}

// CheckReceived checks that text decodes into v, a pointer to a zero value, if it is JSON, encodes
// to the same JSON, and prints the redacted form.
func CheckReceived(t *testing.T, v any, text []byte) {
	t.Helper()
	given := slices.Clone(text)
	err := v.(json.Unmarshaler).UnmarshalJSON(given)
	clear(given) // the value must not share the caller's bytes
	if (err == nil) != (jsonread.Valid(text) == nil) && len(text) < 1<<16 {
		t.Fatalf("%T: %v", v, err)
	}
	if err != nil {
		return
	}
	if out, err := v.(json.Marshaler).MarshalJSON(); err != nil || !bytes.Equal(out, bytes.Trim(text, " \t\r\n")) {
		t.Fatalf("%T: %q became %q, %v", v, text, out, err)
	}
	if strings.Contains(fmt.Sprint(reflect.Zero(reflect.TypeOf(v).Elem())), "redacted") {
		for _, verb := range []string{"%v", "%#v", "%s", "%x"} {
			if out := fmt.Sprintf(verb, v); !strings.Contains(out, "redacted") || len(out) > 300 {
				t.Fatalf("%T prints %q", v, out)
			}
		}
	}
}

// Types returns the Go types of all components.
func Types(areas ...Area) []reflect.Type {
	var types []reflect.Type
	for _, area := range areas {
		for _, value := range area.Components {
			if typ := reflect.TypeOf(value); !slices.Contains(types, typ) {
				types = append(types, typ)
			}
		}
	}
	return types
}
