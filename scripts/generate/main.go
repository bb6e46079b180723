// Command generate writes the repetitive code of a package:
//
//   - methods_gen.go has UnmarshalJSON and MarshalJSON for every exported struct that embeds
//     RawObject, and Format and LogValue for every one that embeds Redacted, which print its name,
//     or, in package labhealth, RawObject alone, which print its fields. Promoted methods would not
//     work: those for JSON cannot access the struct that embeds them, and those of Redacted are
//     ambiguous beside a method that another embedded type has at the same depth. Types that
//     declare a method of a pair themselves are skipped, but every exported type that declares
//     LogValue alone, for a value, gets a Format that prints its result.
//   - operations_gen.go has the lists of the constants that name operations, with a separate list
//     for those in files management*.go. It is written for a package with such constants only.
//   - vocabulary_gen.go has the words that errors and WithDebug may write, from the public API
//     reference. It is written for the same package.
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
	if len(p.teamOperations) > 0 {
		write("operations_gen.go", p.operations())
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
	name                 string
	types                []string // exported structs that embed RawObject
	redacted             []string // exported structs that embed Redacted
	printed              []string // exported structs that embed RawObject without Redacted
	logged               []string // exported types that declare LogValue without Format
	teamOperations       []operation
	managementOperations []operation
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
				p.addDecl(decl, strings.HasPrefix(filepath.Base(file), "management"))
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
	formats := func(name string) bool { return handWritten["Format "+name] || handWritten["LogValue "+name] }
	p.redacted = slices.DeleteFunc(p.redacted, formats)
	p.printed = slices.DeleteFunc(p.printed, formats)
	if p.name != "labhealth" {
		p.printed = nil // what an event consists of belongs to a patient
	}
	p.logged = slices.DeleteFunc(p.logged, func(name string) bool { return handWritten["Format "+name] })
	slices.Sort(p.logged)
	slices.Sort(p.types)
	slices.Sort(p.redacted)
	slices.Sort(p.printed)
	return p, nil
}

// addDecl adds the types and operations that decl declares.
func (p *pkg) addDecl(decl *ast.GenDecl, management bool) {
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() && embeds(spec, "RawObject") {
				p.types = append(p.types, spec.Name.Name)
			}
			if spec.Name.IsExported() && embeds(spec, "Redacted") {
				p.redacted = append(p.redacted, spec.Name.Name)
			} else if spec.Name.IsExported() && embeds(spec, "RawObject") {
				p.printed = append(p.printed, spec.Name.Name)
			}
		case *ast.ValueSpec:
			list := &p.teamOperations
			if management {
				list = &p.managementOperations
			}
			if op, ok := operationOf(spec); ok {
				*list = append(*list, op)
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
	prefix := ""
	if p.name != "labhealth" {
		prefix = "labhealth."
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, header, p.name)
	fmt.Fprint(&b, "import (\n")
	if len(p.redacted)+len(p.printed)+len(p.logged) > 0 {
		fmt.Fprint(&b, "\t\"fmt\"\n")
	}
	if len(p.redacted)+len(p.printed) > 0 {
		fmt.Fprint(&b, "\t\"log/slog\"\n")
	}
	fmt.Fprint(&b, "\n")
	if len(p.types) > 0 {
		fmt.Fprint(&b, "\t\"github.com/labhealth/labhealth-go/internal/jsonread\"\n")
	}
	if len(p.redacted)+len(p.printed)+len(p.logged) > 0 {
		fmt.Fprint(&b, "\t\"github.com/labhealth/labhealth-go/internal/redact\"\n")
	}
	fmt.Fprint(&b, ")\n")
	for _, name := range p.types {
		fmt.Fprintf(&b, `
// UnmarshalJSON implements [encoding/json.Unmarshaler]. See [%[2]sRawObject].
func (v *%[1]s) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON implements [encoding/json.Marshaler]. See [%[2]sRawObject].
func (v %[1]s) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }
`, name, prefix)
	}
	for _, name := range p.redacted {
		fmt.Fprintf(&b, `
// Format implements [fmt.Formatter]. See [%[2]sRedacted].
func (v %[1]s) Format(s fmt.State, _ rune) { redact.Print(s, "%[3]s.%[1]s{redacted}") }

// LogValue implements [log/slog.LogValuer]. See [%[2]sRedacted].
func (v %[1]s) LogValue() slog.Value { return slog.StringValue("%[3]s.%[1]s{redacted}") }
`, name, prefix, p.name)
	}
	for _, name := range p.printed {
		fmt.Fprintf(&b, `
// Format prints the fields of v under every verb, with pointers dereferenced.
func (v %[1]s) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }

// LogValue returns what [%[1]s.Format] prints.
func (v %[1]s) LogValue() slog.Value { return redact.LogFields(v) }
`, name)
	}
	for _, name := range p.logged {
		fmt.Fprintf(&b, `
// Format prints the result of [%[1]s.LogValue] under every verb.
func (v %[1]s) Format(s fmt.State, _ rune) { redact.Print(s, v.LogValue().String()) }
`, name)
	}
	return b.Bytes()
}

func (p *pkg) operations() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, header, p.name)
	for _, list := range []struct {
		name, comment string
		operations    []operation
	}{
		{"teamOperations", "are the operations of the team API that have methods, by path.", p.teamOperations},
		{"managementOperations", "are the operations of the management API that have methods, by path.", p.managementOperations},
	} {
		fmt.Fprintf(&b, "// %s %s\nvar %s = []string{\n", list.name, list.comment, list.name)
		slices.SortFunc(list.operations, func(x, y operation) int {
			return cmp.Or(cmp.Compare(x.path, y.path), cmp.Compare(x.method, y.method))
		})
		for _, op := range list.operations {
			fmt.Fprintf(&b, "\t%s,\n", op.constant)
		}
		fmt.Fprint(&b, "}\n\n")
	}
	return b.Bytes()
}
