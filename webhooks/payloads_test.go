package webhooks

import (
	"encoding/json"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every type that keeps its raw bytes writes them again, every payload prints nothing of it, and
// every constant is known to the parser. All are read from the source, so that a new one cannot be
// left out.
func TestEveryTypeIsTested(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var kept, payloads []string
	methods := map[string]bool{}
	types := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := goparser.ParseFile(token.NewFileSet(), file, nil, goparser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv == nil {
					continue
				}
				receiver := ""
				switch typ := decl.Recv.List[0].Type.(type) {
				case *ast.Ident:
					receiver = typ.Name
				case *ast.StarExpr:
					if name, ok := typ.X.(*ast.Ident); ok {
						receiver = "*" + name.Name
					}
				}
				methods[receiver+"."+decl.Name.Name] = true
				if decl.Name.Name == "isPayload" {
					payloads = append(payloads, strings.TrimPrefix(receiver, "*"))
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						if structure, ok := spec.Type.(*ast.StructType); ok && ast.IsExported(spec.Name.Name) && embedsKept(structure) {
							kept = append(kept, spec.Name.Name)
						}
					case *ast.ValueSpec:
						if name, ok := spec.Type.(*ast.Ident); !ok || decl.Tok != token.CONST || name.Name != "EventType" {
							continue
						}
						types++
						value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
						if err != nil || !slices.Contains(constants, EventType(value)) {
							t.Errorf("%s is not in constants", spec.Names[0].Name)
						}
					}
				}
			}
		}
	}
	for _, name := range kept {
		if !methods["*"+name+".UnmarshalJSON"] || !methods[name+".MarshalJSON"] {
			t.Errorf("%s embeds RawObject and lacks UnmarshalJSON of its pointer or MarshalJSON of its value", name)
		}
	}
	for _, name := range payloads {
		// These have those of what they embed.
		embeds := name == "LabOrder" || name == "LabAppointment" || name == "ParsingJob"
		if !embeds && (!methods[name+".Format"] || !methods[name+".LogValue"]) {
			t.Errorf("%s lacks Format or LogValue of its value", name)
		}
	}
	t.Logf("%d types that keep what came, %d payloads, %d types of events", len(kept), len(payloads), types)
}

func embedsKept(structure *ast.StructType) bool {
	for _, f := range structure.Fields.List {
		if name, ok := f.Type.(*ast.SelectorExpr); ok && len(f.Names) == 0 && name.Sel.Name == "RawObject" {
			return true
		}
	}
	return false
}

// Each of them is read by encoding/json and written again with what it has no field for.
func TestEveryPayloadReadsItself(t *testing.T) {
	const text = `{"left_over":[1.50,{"a":null,"b":"\u00e9"}]}`
	values := []any{
		&Source{}, &Summary{}, &Samples{}, &Sample{}, &SampleDetails{}, &ContinuousQueryChanges{}, &LabOrder{}, &LabAppointment{}, &ProviderDevice{},
	}
	for _, component := range payloadReference.Components {
		values = append(values, reflect.New(reflect.TypeOf(component)).Interface())
	}
	for _, v := range values {
		if err := json.Unmarshal([]byte(text), v); err != nil {
			t.Errorf("%T: %v", v, err)
			continue
		}
		if got, err := json.Marshal(reflect.ValueOf(v).Elem().Interface()); err != nil || string(got) != text {
			t.Errorf("%T is written as %s, %v", v, got, err)
		}
	}
}
