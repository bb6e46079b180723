// Command api lists what the public packages of this module export, one line for each name, field and method, in api/exported.txt.
// A change of the exported API so shows in the diff that makes it.
//
//	go run ./scripts/api           write the listing
//	go run ./scripts/api -check    say how the listing differs from the code, and exit with 1 if it does
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
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	listed := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if slices.Equal(listed, lines) {
		fmt.Println(len(lines), "lines")
		return nil
	}
	missing := func(from, in []string, mark string) {
		for _, line := range from {
			if !slices.Contains(in, line) {
				fmt.Println(mark, line)
			}
		}
	}
	missing(listed, lines, "-")
	missing(lines, listed, "+")
	return fmt.Errorf("api/exported.txt is not current: if the change is meant, run go run ./scripts/api")
}

// exported reads the compiler's export data of every package of the module in root that others can import. The build cache has it,
// and it knows all types, so that no source is parsed.
func exported(root string) ([]string, error) {
	list, err := command("go", "list", "-C", root, "-export", "-deps",
		"-f", "{{.ImportPath}}\t{{.Export}}\t{{.Name}}\t{{with .Module}}{{.Main}}{{end}}", "./...")
	if err != nil {
		return nil, err
	}
	data := map[string]string{}
	var public []string
	for line := range strings.Lines(list) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		data[f[0]] = f[1]
		if f[3] == "true" && f[2] != "main" && !slices.Contains(strings.Split(f[0], "/"), "internal") {
			public = append(public, f[0])
		}
	}
	imports := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(data[path]) })
	slices.Sort(public)
	var lines []string
	for _, p := range public {
		pkg, err := imports.Import(p)
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

// describe returns the lines of one name: its own, then those of its fields and methods.
func describe(obj types.Object) []string {
	pkg, name := obj.Pkg(), obj.Name()
	str := func(t types.Type) string {
		return types.TypeString(t, func(other *types.Package) string {
			if other == pkg {
				return ""
			}
			return other.Name()
		})
	}
	signature := func(t types.Type) string { return strings.TrimPrefix(str(t), "func") }
	line := func(format string, args ...any) string {
		return pkg.Name() + ": " + fmt.Sprintf(format, args...)
	}
	switch obj := obj.(type) {
	case *types.Const:
		return []string{line("const %s %s = %s", name, str(obj.Type()), obj.Val().ExactString())}
	case *types.Var:
		return []string{line("var %s %s", name, str(obj.Type()))}
	case *types.Func:
		return []string{line("func %s%s", name, signature(obj.Type()))}
	}

	if alias, ok := obj.Type().(*types.Alias); ok {
		return []string{line("type %s = %s", name, str(alias.Rhs()))}
	}
	named := obj.Type().(*types.Named)
	full := str(named)
	var lines []string
	switch t := named.Underlying().(type) {
	case *types.Struct:
		kind := "struct"
		if types.Comparable(t) {
			kind = "comparable struct"
		}
		lines = append(lines, line("type %s %s", full, kind))
		for f := range t.Fields() {
			switch {
			case f.Embedded() && f.Exported():
				lines = append(lines, line("type %s struct, embeds %s", full, str(f.Type())))
			case f.Exported():
				lines = append(lines, line("type %s struct, %s %s", full, f.Name(), str(f.Type())))
			}
		}
	case *types.Interface:
		lines = append(lines, line("type %s interface", full))
		sealed := false
		for m := range t.Methods() {
			if m.Exported() {
				lines = append(lines, line("type %s interface, %s%s", full, m.Name(), signature(m.Type())))
			}
			sealed = sealed || !m.Exported()
		}
		if sealed {
			lines = append(lines, line("type %s interface, unexported methods", full))
		}
		return lines
	default:
		lines = append(lines, line("type %s %s", full, str(t)))
	}

	// The methods of a pointer are all there are. Those of an embedded field are listed where they are declared, unless that is
	// a type that nobody sees.
	values := types.NewMethodSet(named)
	for m := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		if !m.Obj().Exported() || promoted(named, m.Index()) {
			continue
		}
		receiver := "*" + full
		if values.Lookup(pkg, m.Obj().Name()) != nil {
			receiver = full
		}
		lines = append(lines, line("method (%s) %s%s", receiver, m.Obj().Name(), signature(m.Type())))
	}
	return lines
}

// promoted tells whether a method is reached through embedded fields that are all exported.
func promoted(t types.Type, index []int) bool {
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
