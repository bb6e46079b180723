package labhealth_test

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const modulePath = "github.com/labhealth/labhealth-go"

// TestDocumentation checks every exported name of the public packages: it has a comment, which
// starts with the name if Go requires that, and links to names that exist.
func TestDocumentation(t *testing.T) {
	packages := publicPackages(t)
	symbols := map[string]map[string]bool{} // by import path: "Name" and "Type.Field"
	for _, p := range packages {
		symbols[p.ImportPath] = symbolsOf(p)
	}
	for _, p := range packages {
		c := &docChecker{t: t, p: p, symbols: symbols, counts: map[string]*[2]int{}}
		c.all()
		var total [2]int
		var kinds []string
		for _, kind := range slices.Sorted(maps.Keys(c.counts)) {
			n := c.counts[kind]
			kinds = append(kinds, fmt.Sprintf("%d/%d %s", n[0], n[1], kind))
			total[0], total[1] = total[0]+n[0], total[1]+n[1]
		}
		t.Logf("%s: %d of %d exported names documented (%s)", p.ImportPath, total[0], total[1], strings.Join(kinds, ", "))
	}
}

// publicPackages are all packages that others can import, also those of nested modules.
func publicPackages(t *testing.T) []*doc.Package {
	fset, found := publicFiles(t)
	var packages []*doc.Package
	for _, importPath := range slices.Sorted(maps.Keys(found)) {
		p, err := doc.NewFromFiles(fset, found[importPath], importPath)
		if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	return packages
}

// publicFiles are the files of all packages that others can import, by import path.
func publicFiles(t *testing.T) (*token.FileSet, map[string][]*ast.File) {
	fset, found := token.NewFileSet(), map[string][]*ast.File{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			hidden := strings.HasPrefix(d.Name(), ".") || d.Name() == "internal" || d.Name() == "testdata"
			if name != "." && hidden {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err == nil && f.Name.Name != "main" {
			dir := path.Join(modulePath, filepath.ToSlash(filepath.Dir(name)))
			found[dir] = append(found[dir], f)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 4 {
		t.Fatalf("found only %d packages", len(found))
	}
	return fset, found
}

func symbolsOf(p *doc.Package) map[string]bool {
	names := map[string]bool{}
	values := func(list []*doc.Value) {
		for _, v := range list {
			for _, name := range v.Names {
				names[name] = true
			}
		}
	}
	values(p.Consts)
	values(p.Vars)
	for _, f := range p.Funcs {
		names[f.Name] = true
	}
	for _, typ := range p.Types {
		names[typ.Name] = true
		values(typ.Consts)
		values(typ.Vars)
		for _, f := range typ.Funcs {
			names[f.Name] = true
		}
		for _, m := range typ.Methods {
			names[typ.Name+"."+m.Name] = true
		}
		for _, f := range members(typ) {
			for _, name := range f.Names {
				names[typ.Name+"."+name.Name] = true
			}
		}
	}
	return names
}

// fields are the exported fields of a struct or methods of an interface.
func members(typ *doc.Type) []*ast.Field {
	for _, spec := range typ.Decl.Specs {
		switch of := spec.(*ast.TypeSpec).Type.(type) {
		case *ast.StructType:
			return of.Fields.List
		case *ast.InterfaceType:
			return of.Methods.List
		}
	}
	return nil
}

// docChecker checks one package.
type docChecker struct {
	t       *testing.T
	p       *doc.Package
	symbols map[string]map[string]bool
	counts  map[string]*[2]int // by kind: documented, all
}

func (c *docChecker) all() {
	if !strings.HasPrefix(c.p.Doc, "Package "+c.p.Name+" ") {
		c.t.Errorf("%s: the package comment does not begin with \"Package %s\"", c.p.ImportPath, c.p.Name)
	}
	c.links("the package comment", c.p.Doc)
	c.values(c.p.Consts, "constants")
	c.values(c.p.Vars, "variables")
	c.funcs(c.p.Funcs, "", "functions")
	for _, typ := range c.p.Types {
		c.named(typ.Name, typ.Name, typ.Doc, "types")
		c.values(typ.Consts, "constants")
		c.values(typ.Vars, "variables")
		c.funcs(typ.Funcs, "", "functions")
		c.funcs(typ.Methods, typ.Name+".", "methods")
		for _, f := range members(typ) {
			kind := "fields"
			if _, ok := f.Type.(*ast.FuncType); ok && len(f.Names) == 1 && isInterface(typ) {
				kind = "interface methods"
			}
			for _, name := range f.Names { // none for what is embedded, which its own type documents
				c.count(typ.Name+"."+name.Name, f.Doc.Text()+f.Comment.Text(), kind)
			}
			c.links(typ.Name, f.Doc.Text()+f.Comment.Text())
		}
	}
}

func isInterface(typ *doc.Type) bool {
	_, ok := typ.Decl.Specs[0].(*ast.TypeSpec).Type.(*ast.InterfaceType)
	return ok
}

// values checks constants and variables. A comment on their group is enough.
func (c *docChecker) values(list []*doc.Value, kind string) {
	for _, v := range list {
		c.links(v.Names[0], v.Doc)
		for _, spec := range v.Decl.Specs {
			s := spec.(*ast.ValueSpec)
			own := s.Doc.Text() + s.Comment.Text()
			c.links(s.Names[0].Name, own)
			kind := kind
			if own == "" && v.Decl.Lparen.IsValid() {
				kind += " by their group"
			}
			for _, name := range s.Names {
				if name.IsExported() {
					c.count(name.Name, own+v.Doc, kind)
				}
			}
		}
	}
}

// uniformMethods are the same for each type, and documented at RawObject and Redacted.
var uniformMethods = []string{"UnmarshalJSON", "MarshalJSON", "Format", "LogValue"}

func (c *docChecker) funcs(list []*doc.Func, prefix, kind string) {
	for _, f := range list {
		if slices.Contains(uniformMethods, f.Name) && f.Doc == "" {
			continue
		}
		c.named(f.Name, prefix+f.Name, f.Doc, kind)
	}
}

// named checks a comment that must start with the name.
func (c *docChecker) named(name, full, text, kind string) {
	c.count(full, text, kind)
	c.links(full, text)
	first := regexp.MustCompile(`^(?:(?:A|An|The) )?` + name + `\b`)
	if text != "" && !first.MatchString(text) {
		c.t.Errorf("%s.%s: the comment does not begin with %s", c.p.Name, full, name)
	}
}

func (c *docChecker) count(name, text, kind string) {
	n := c.counts[kind]
	if n == nil {
		n = new([2]int)
		c.counts[kind] = n
	}
	n[1]++
	if strings.TrimSpace(text) == "" {
		c.t.Errorf("%s.%s (%s) has no comment", c.p.Name, name, kind)
		return
	}
	n[0]++
}

var bracketed = regexp.MustCompile(`\[\*?([A-Za-z]\w*(?:\.\w+)*)\]`)

// links checks that the names in brackets exist, with the package for names of other packages.
func (c *docChecker) links(where, text string) {
	var parts []string
	for _, block := range c.p.Parser().Parse(text).Content {
		if _, code := block.(*comment.Code); !code {
			parts = append(parts, string(new(comment.Printer).Comment(&comment.Doc{Content: []comment.Block{block}})))
		}
	}
	for _, match := range bracketed.FindAllStringSubmatch(strings.Join(parts, "\n"), -1) {
		name, of := match[1], c.p.ImportPath
		first, rest, _ := strings.Cut(name, ".")
		if !ast.IsExported(first) {
			of, name = "", rest
			for importPath := range c.symbols {
				if path.Base(importPath) == first || importPath == modulePath && first == "labhealth" {
					of = importPath
				}
			}
			if of == "" { // the standard library, or no link
				continue
			}
		}
		if !c.symbols[of][name] {
			c.t.Errorf("%s: %s: [%s] names nothing", c.p.Name, where, match[1])
		}
	}
}

// Every source file starts with a comment that says what it is for: that of its package, or one of
// its own.
func TestFilesSayWhatTheyAreFor(t *testing.T) {
	fset := token.NewFileSet()
	for _, name := range sourceFiles(t) {
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		if ast.IsGenerated(f) {
			continue
		}
		if len(f.Comments) == 0 || !strings.HasSuffix(strings.TrimSpace(f.Comments[0].Text()), ".") && f.Doc == nil {
			t.Errorf("%s does not start with a sentence that says what it is for", name)
		}
	}
}

// The files that docs/architecture.md names exist.
func TestArchitecture(t *testing.T) {
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([\\w./]+\\.go)`").FindAllStringSubmatch(string(text), -1)
	if len(named) < 15 {
		t.Errorf("it names %d files; is this still how they are found?", len(named))
	}
	for _, match := range named {
		if _, err := os.Stat(match[1]); err != nil {
			t.Errorf("it names %s, which does not exist", match[1])
		}
	}
}

// sourceFiles are the Go files of this module without tests.
func sourceFiles(t *testing.T) []string {
	var files []string
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || isModule(name)) {
				return filepath.SkipDir
			}
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			files = append(files, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// isModule reports whether a folder has a go.mod.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}
