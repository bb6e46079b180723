// Command generate writes the repetitive code of a package:
//
//   - methods_gen.go has UnmarshalJSON and MarshalJSON for every exported struct that embeds
//     RawObject, unless it declares one of them: promoted methods cannot access the struct that
//     embeds them. Every exported type that declares LogValue for a value, without Format, gets a
//     Format that prints its result.
//   - operations_gen.go has the list of the constants that name operations. It is written for a
//     package with such constants only.
//   - vocabulary_gen.go has the words that errors and WithDebug may write, from the public API
//     reference. It is written for package labhealth only.
//
// It reads and writes the current directory. It is run by go generate.
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("generate: ")
	p, err := parsePackage(".")
	if err != nil {
		log.Fatal(err)
	}
	write("methods_gen.go", p.methods())
	if len(p.operations) > 0 {
		write("operations_gen.go", p.operationsFile())
	}
	if p.name == "labhealth" {
		write("vocabulary_gen.go", vocabularyFile())
	}
}

func write(file string, source []byte) {
	formatted, err := format.Source(source)
	if err == nil {
		err = os.WriteFile(file, formatted, 0o644)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// pkg holds the declarations of a package that the generated files need.
type pkg struct {
	name       string
	types      []string // exported structs that embed RawObject
	logged     []string // exported types that declare LogValue without Format
	operations []operation
}

// operation is a constant that names an operation, such as opGetOrder.
type operation struct{ constant, method, path string }

func parsePackage(dir string) (*pkg, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	p, handWritten := &pkg{}, map[string]bool{} // by method and type
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, "_gen.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.name = parsed.Name.Name
		for _, decl := range parsed.Decls {
			switch decl := decl.(type) {
			case *ast.GenDecl:
				p.addDecl(decl)
			case *ast.FuncDecl:
				handWritten[decl.Name.Name+" "+receiver(decl)] = true
				if decl.Name.Name == "LogValue" && hasValueReceiver(decl) && ast.IsExported(receiver(decl)) {
					p.logged = append(p.logged, receiver(decl))
				}
			}
		}
	}
	p.types = slices.DeleteFunc(p.types, func(name string) bool {
		return handWritten["UnmarshalJSON "+name] || handWritten["MarshalJSON "+name]
	})
	p.logged = slices.DeleteFunc(p.logged, func(name string) bool { return handWritten["Format "+name] })
	slices.Sort(p.logged)
	slices.Sort(p.types)
	return p, nil
}

// addDecl adds the types and operations that decl declares.
func (p *pkg) addDecl(decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() && embeds(spec, "RawObject") {
				p.types = append(p.types, spec.Name.Name)
			}
		case *ast.ValueSpec:
			if op, ok := operationOf(spec); ok {
				p.operations = append(p.operations, op)
			}
		}
	}
}

// embeds reports whether typ is a struct with an embedded type of this name, of this package or of
// an imported one.
func embeds(typ *ast.TypeSpec, embedded string) bool {
	structure, ok := typ.Type.(*ast.StructType)
	if !ok {
		return false
	}
	return slices.ContainsFunc(structure.Fields.List, func(field *ast.Field) bool {
		expr := field.Type
		if selector, ok := expr.(*ast.SelectorExpr); ok {
			expr = selector.Sel
		}
		name, ok := expr.(*ast.Ident)
		return ok && len(field.Names) == 0 && name.Name == embedded
	})
}

var operationValue = regexp.MustCompile(`^"(GET|POST|PUT|PATCH|DELETE) (/.*)"$`)

// operationOf returns the operation that a constant names, if it does.
func operationOf(spec *ast.ValueSpec) (op operation, ok bool) {
	if len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "op") {
		return op, false
	}
	value, ok := spec.Values[0].(*ast.BasicLit)
	if !ok {
		return op, false
	}
	m := operationValue.FindStringSubmatch(value.Value)
	if m == nil {
		return op, false
	}
	return operation{spec.Names[0].Name, m[1], m[2]}, true
}

// receiver returns the name of the type that a method belongs to, and "" for a function.
func receiver(decl *ast.FuncDecl) string {
	if decl.Recv == nil {
		return ""
	}
	expr := decl.Recv.List[0].Type
	if pointer, ok := expr.(*ast.StarExpr); ok {
		expr = pointer.X
	}
	if name, ok := expr.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

func hasValueReceiver(decl *ast.FuncDecl) bool {
	if decl.Recv == nil {
		return false
	}
	_, ok := decl.Recv.List[0].Type.(*ast.Ident)
	return ok
}

const header = "// Code generated by go generate; DO NOT EDIT.\n\npackage %s\n\n"

func (p *pkg) methods() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, header, p.name)
	fmt.Fprint(&b, "import (\n")
	if len(p.logged) > 0 {
		fmt.Fprint(&b, "\t\"fmt\"\n\n")
	}
	if len(p.types) > 0 {
		fmt.Fprint(&b, "\t\"github.com/labhealth/labhealth-go/internal/jsonread\"\n")
	}
	if len(p.logged) > 0 {
		fmt.Fprint(&b, "\t\"github.com/labhealth/labhealth-go/internal/redact\"\n")
	}
	fmt.Fprint(&b, ")\n")
	for _, name := range p.types {
		fmt.Fprintf(&b, `
func (v *%[1]s) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }
func (v %[1]s) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }
`, name)
	}
	for _, name := range p.logged {
		fmt.Fprintf(&b, "\nfunc (v %s) Format(s fmt.State, _ rune) { redact.Print(s, v.LogValue().String()) }\n", name)
	}
	return b.Bytes()
}

func (p *pkg) operationsFile() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, header, p.name)
	fmt.Fprint(&b, "// operations are the operations that have methods, by path.\nvar operations = []string{\n")
	slices.SortFunc(p.operations, func(x, y operation) int {
		return cmp.Or(cmp.Compare(x.path, y.path), cmp.Compare(x.method, y.method))
	})
	for _, op := range p.operations {
		fmt.Fprintf(&b, "\t%s,\n", op.constant)
	}
	fmt.Fprint(&b, "}\n")
	return b.Bytes()
}
