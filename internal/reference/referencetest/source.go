// Deprecated fields and constants, from the source.

package referencetest

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
)

// source is the source of the package under test.
type source struct {
	name      string
	fields    map[string]bool                // "Type.Field" → deprecated
	constants map[string]map[string][]string // type → value → names
}

// ParsePackage parses the package under test, without its tests.
func ParsePackage(t testing.TB) (*token.FileSet, []*ast.File) {
	t.Helper()
	p, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return p.fset, p.files
}

type parsedPackage struct {
	fset  *token.FileSet
	files []*ast.File
}

// parsed parses once, because many tests need the package.
var parsed = sync.OnceValues(func() (p parsedPackage, err error) {
	paths, err := filepath.Glob("*.go")
	if err != nil {
		return p, err
	}
	p.fset = token.NewFileSet()
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(p.fset, path, nil, parser.ParseComments)
		if err != nil {
			return p, err
		}
		p.files = append(p.files, file)
	}
	return p, nil
})

func readSource(t testing.TB) *source {
	t.Helper()
	ParsePackage(t)
	return checkedSource()
}

// checkedSource is the source of what ParsePackage returns. No test changes it.
var checkedSource = sync.OnceValue(func() *source {
	s := &source{fields: map[string]bool{}, constants: map[string]map[string][]string{}}
	p, _ := parsed()
	fset, files := p.fset, p.files
	for _, file := range files {
		s.readFields(file)
	}
	if len(files) == 0 {
		return s
	}
	s.name = files[0].Name.Name
	// Imports are not followed: no constant depends on one.
	config := types.Config{IgnoreFuncBodies: true, Error: func(error) {}}
	pkg, _ := config.Check(s.name, fset, files, nil)
	for _, name := range pkg.Scope().Names() {
		object, ok := pkg.Scope().Lookup(name).(*types.Const)
		if !ok || !object.Exported() {
			continue
		}
		named, ok := object.Type().(*types.Named)
		if !ok {
			continue
		}
		value := object.Val().ExactString()
		if object.Val().Kind() == constant.String {
			value = constant.StringVal(object.Val())
		}
		if s.constants[named.Obj().Name()] == nil {
			s.constants[named.Obj().Name()] = map[string][]string{}
		}
		s.constants[named.Obj().Name()][value] = append(s.constants[named.Obj().Name()][value], name)
	}
	return s
})

func (s *source) readFields(file *ast.File) {
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.TYPE {
			continue
		}
		for _, spec := range gen.Specs {
			spec := spec.(*ast.TypeSpec)
			fields, ok := spec.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, f := range fields.Fields.List {
				for _, name := range f.Names {
					s.fields[spec.Name.Name+"."+name.Name] = isDeprecated(f.Doc)
				}
			}
		}
	}
}

func isDeprecated(doc *ast.CommentGroup) bool {
	for paragraph := range strings.SplitSeq(doc.Text(), "\n\n") {
		if strings.HasPrefix(paragraph, "Deprecated: ") {
			return true
		}
	}
	return false
}

// has reports whether the package under test declares typ.
func (s *source) has(typ reflect.Type) bool { return strings.HasPrefix(typ.String(), s.name+".") }

// deprecated reports whether a field has a Deprecated paragraph. ok is false for types of other
// packages.
func (s *source) deprecated(typ reflect.Type, field string) (deprecated, ok bool) {
	name, _, _ := strings.Cut(typ.Name(), "[")
	deprecated, ok = s.fields[name+"."+field]
	return deprecated, ok && s.has(typ)
}

// checkEnums compares the values of the enumerations of each Go type with its constants.
func (c *checker) checkEnums() {
	values := map[reflect.Type]map[string]bool{}
	names := map[reflect.Type][]string{}
	for name, typ := range c.enums {
		list := enumValues(name)
		if list == nil {
			c.t.Errorf("the reference has no enumeration %q", name)
			continue
		}
		if values[typ] == nil {
			values[typ] = map[string]bool{"": false}
		}
		for _, value := range list {
			values[typ][value] = value != ""
		}
		names[typ] = append(names[typ], name)
		c.summary.Enums++
	}
	for typ, want := range values {
		slices.Sort(names[typ])
		if !c.excepted(names[typ][0]) && c.source.has(typ) {
			c.checkConstants(typ, names[typ], want)
		}
	}
}

// checkConstants compares the constants of a type with values. Those that are false may be left
// out.
func (c *checker) checkConstants(typ reflect.Type, enums []string, want map[string]bool) {
	except := func(value string) bool {
		return slices.ContainsFunc(enums, func(name string) bool { return c.excepted(name + "." + value) })
	}
	declared := c.source.constants[typ.Name()]
	for value, needed := range want {
		if needed {
			c.summary.Values++
		}
		if needed && declared[value] == nil && !except(value) {
			c.t.Errorf("%s (%s) has no constant for %q", typ, enums[0], value)
		}
	}
	for value, constants := range declared {
		if _, ok := want[value]; !ok && !except(value) {
			c.t.Errorf("%s (%s): %v = %q is not in the reference", typ, enums[0], constants, value)
		}
	}
}
