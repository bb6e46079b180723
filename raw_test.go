package labhealth

import (
	"encoding/json"
	"go/ast"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/labhealth/labhealth-go/internal/reference/referencetest"
)

// Every type that embeds RawObject has its JSON methods, and is compared with the interface
// specification or the public API reference. The types are those of the source, so that none is
// left out.
func TestResponsesAreLosslessAndSpecified(t *testing.T) {
	specified := map[string]bool{}
	for _, typ := range slices.AppendSeq(referenceTypes(), maps.Values(resourceTypes)) {
		specified[typ.Name()] = true
	}
	_, files := referencetest.ParsePackage(t)
	var names []string
	methods := map[string]bool{}
	for _, file := range files {
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					if typ, ok := spec.(*ast.TypeSpec); ok && typ.Name.IsExported() && embedsRawObject(typ) {
						names = append(names, typ.Name.Name)
					}
				}
			case *ast.FuncDecl:
				if decl.Recv == nil {
					continue
				}
				switch typ := decl.Recv.List[0].Type.(type) {
				case *ast.Ident:
					methods[typ.Name+"."+decl.Name.Name] = true
				case *ast.StarExpr:
					if name, ok := typ.X.(*ast.Ident); ok {
						methods["*"+name.Name+"."+decl.Name.Name] = true
					}
				}
			}
		}
	}
	for _, name := range names {
		if !methods["*"+name+".UnmarshalJSON"] || !methods[name+".MarshalJSON"] {
			t.Errorf("%s embeds RawObject and lacks UnmarshalJSON of its pointer or MarshalJSON of its value", name)
		}
		if !specified[name] && name != "UnknownOrderDetails" && name != "SummaryPage" { // which stand for what differs
			t.Errorf("%s is neither in the interface specification nor in the public API reference", name)
		}
	}
	t.Logf("%d types", len(names))
}

// Each type decodes with encoding/json and encodes to the same JSON, unknown fields included.
func TestEveryResponseRoundTrips(t *testing.T) {
	const text = `{"left_over":[1.50,{"a":null,"b":"\u00e9"}]}`
	n := 0
	for _, typ := range slices.AppendSeq(referenceTypes(), maps.Values(resourceTypes)) {
		if f, ok := typ.FieldByName("RawObject"); !ok || !f.Anonymous {
			continue
		}
		n++
		v := reflect.New(typ)
		if err := json.Unmarshal([]byte(text), v.Interface()); err != nil {
			t.Errorf("%s: %v", typ.Name(), err)
			continue
		}
		if got, err := json.Marshal(v.Elem().Interface()); err != nil || string(got) != text {
			t.Errorf("%s is written as %s, %v", typ.Name(), got, err)
		}
	}
	if n < 60 {
		t.Errorf("only %d types", n)
	}
}

func embedsRawObject(typ *ast.TypeSpec) bool {
	structure, ok := typ.Type.(*ast.StructType)
	if !ok {
		return false
	}
	for _, f := range structure.Fields.List {
		if name, ok := f.Type.(*ast.Ident); ok && len(f.Names) == 0 && name.Name == reflect.TypeFor[RawObject]().Name() {
			return true
		}
	}
	return false
}
