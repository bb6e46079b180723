// Command api lists the exported API of the public packages of this module in api/exported.txt,
// with one line per name, field and method, so that a diff shows each change of the API.
//
//	go run ./scripts/api           write the listing
//	go run ./scripts/api -check    print the differences from the listing; exit with 1 if any
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	check := flag.Bool("check", false, "compare with the listing instead of writing it")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	root, err := command("go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return err
	}
	file := filepath.Join(strings.TrimSpace(root), "api", "exported.txt")
	lines, err := exported(strings.TrimSpace(root))
	if err != nil {
		return err
	}
	if !check {
		return os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	listed := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	if slices.Equal(listed, lines) {
		fmt.Println(len(lines), "lines")
		return nil
	}
	printMissing("-", listed, lines)
	printMissing("+", lines, listed)
	return fmt.Errorf("api/exported.txt is not current: if the change is intended, run go run ./scripts/api")
}

// printMissing prints the lines of a that b does not have.
func printMissing(mark string, a, b []string) {
	for _, line := range a {
		if !slices.Contains(b, line) {
			fmt.Println(mark, line)
		}
	}
}

// exported returns the listing of the module in root. It reads the compiler's export data of the
// public packages from the build cache, so that no source has to be parsed.
func exported(root string) ([]string, error) {
	list, err := command("go", "list", "-C", root, "-export", "-deps",
		"-f", "{{.ImportPath}}\t{{.Export}}\t{{.Name}}\t{{with .Module}}{{.Main}}{{end}}", "./...")
	if err != nil {
		return nil, err
	}
	exportFiles := map[string]string{}
	var public []string
	for line := range strings.Lines(list) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		exportFiles[f[0]] = f[1]
		if f[3] == "true" && f[2] != "main" && !slices.Contains(strings.Split(f[0], "/"), "internal") {
			public = append(public, f[0])
		}
	}
	imports := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exportFiles[path]) })
	slices.Sort(public)
	var lines []string
	for _, path := range public {
		pkg, err := imports.Import(path)
		if err != nil {
			return nil, err
		}
		for _, name := range pkg.Scope().Names() {
			if token.IsExported(name) {
				lines = append(lines, describe(pkg.Scope().Lookup(name))...)
			}
		}
	}
	return lines, nil
}

// describe returns the lines of one name, followed by those of its fields and methods.
func describe(obj types.Object) []string {
	p := printer{obj.Pkg()}
	switch obj := obj.(type) {
	case *types.Const:
		return p.lines("const %s %s = %s", obj.Name(), p.typeString(obj.Type()), obj.Val().ExactString())
	case *types.Var:
		return p.lines("var %s %s", obj.Name(), p.typeString(obj.Type()))
	case *types.Func:
		return p.lines("func %s%s", obj.Name(), p.signature(obj.Type()))
	}
	if alias, ok := obj.Type().(*types.Alias); ok {
		return p.lines("type %s = %s", obj.Name(), p.typeString(alias.Rhs()))
	}
	named := obj.Type().(*types.Named)
	name := p.typeString(named)
	switch t := named.Underlying().(type) {
	case *types.Struct:
		return append(p.structLines(name, t), p.methodLines(name, named)...)
	case *types.Interface:
		return p.interfaceLines(name, t)
	default:
		return append(p.lines("type %s %s", name, p.typeString(t)), p.methodLines(name, named)...)
	}
}

// printer formats the API of a package.
type printer struct{ pkg *types.Package }

// lines returns one line, as a slice.
func (p printer) lines(format string, args ...any) []string {
	return []string{p.pkg.Name() + ": " + fmt.Sprintf(format, args...)}
}

func (p printer) typeString(t types.Type) string {
	return types.TypeString(t, func(other *types.Package) string {
		if other == p.pkg {
			return ""
		}
		return other.Name()
	})
}

func (p printer) signature(t types.Type) string {
	return strings.TrimPrefix(p.typeString(t), "func")
}

func (p printer) structLines(name string, t *types.Struct) []string {
	kind := "struct"
	if types.Comparable(t) {
		kind = "comparable struct"
	}
	lines := p.lines("type %s %s", name, kind)
	for f := range t.Fields() {
		switch {
		case f.Embedded() && f.Exported():
			lines = append(lines, p.lines("type %s struct, embeds %s", name, p.typeString(f.Type()))...)
		case f.Exported():
			lines = append(lines, p.lines("type %s struct, %s %s", name, f.Name(), p.typeString(f.Type()))...)
		}
	}
	return lines
}

func (p printer) interfaceLines(name string, t *types.Interface) []string {
	lines := p.lines("type %s interface", name)
	isSealed := false
	for m := range t.Methods() {
		if m.Exported() {
			lines = append(lines, p.lines("type %s interface, %s%s", name, m.Name(), p.signature(m.Type()))...)
		}
		isSealed = isSealed || !m.Exported()
	}
	if isSealed {
		lines = append(lines, p.lines("type %s interface, unexported methods", name)...)
	}
	return lines
}

// methodLines returns the methods of a type and its pointer. The methods of an embedded field are
// listed with its type, unless that type is unexported.
func (p printer) methodLines(name string, named *types.Named) (lines []string) {
	values := types.NewMethodSet(named)
	for m := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		if !m.Obj().Exported() || isPromoted(named, m.Index()) {
			continue
		}
		receiver := "*" + name
		if values.Lookup(p.pkg, m.Obj().Name()) != nil {
			receiver = name
		}
		lines = append(lines, p.lines("method (%s) %s%s", receiver, m.Obj().Name(), p.signature(m.Type()))...)
	}
	return lines
}

// isPromoted reports whether a method is reached only through exported embedded fields.
func isPromoted(t types.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		if pointer, ok := t.Underlying().(*types.Pointer); ok {
			t = pointer.Elem()
		}
		field := t.Underlying().(*types.Struct).Field(i)
		if !field.Exported() {
			return false
		}
		t = field.Type()
	}
	return len(index) > 1
}

// command runs a program and returns its output.
func command(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, stderr.Bytes())
	}
	return string(out), nil
}
