package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// fieldNames returns a file with a constant that has the names of all fields and parameters of the
// package in dir.
func fieldNames(dir string) ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	names := nameSet{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, "_gen.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		ast.Inspect(parsed, names.add)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, header, "labhealth")
	fmt.Fprint(&b, "// fieldNames are the names of all fields and parameters, separated by white space.\nconst fieldNames = `")
	width := 100
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if width += 1 + len(name); width > 98 {
			fmt.Fprint(&b, "\n")
			width = len(name)
		} else {
			fmt.Fprint(&b, " ")
		}
		fmt.Fprint(&b, name)
	}
	fmt.Fprint(&b, "`\n")
	return b.Bytes(), nil
}

type nameSet map[string]bool

var (
	jsonName  = regexp.MustCompile("json:\"([A-Za-z0-9_]+)[\",]")
	parameter = regexp.MustCompile(`\{([a-z_]+)\}`)
	isName    = regexp.MustCompile(`^"([A-Za-z0-9_]+)"$`)
)

// add adds the names of a node: the JSON names of fields, the parameters in the paths of
// operations, those of queries, which are the first argument of methods of q, and those in the
// paths of validation errors, which are arguments of methods of v and of invalid.
func (names nameSet) add(node ast.Node) bool {
	switch node := node.(type) {
	case *ast.Field:
		if node.Tag != nil {
			names.match(jsonName, node.Tag.Value)
		}
	case *ast.ValueSpec:
		if op, ok := operationOf(node); ok {
			names.match(parameter, op.path)
		}
	case *ast.CallExpr:
		for _, argument := range namingArguments(node) {
			if text, ok := argument.(*ast.BasicLit); ok {
				names.match(isName, text.Value)
			}
		}
	}
	return true
}

func (names nameSet) match(pattern *regexp.Regexp, text string) {
	for _, match := range pattern.FindAllStringSubmatch(text, -1) {
		names[match[1]] = true
	}
}

// namingArguments returns the arguments of a call that may be names.
func namingArguments(call *ast.CallExpr) []ast.Expr {
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		if of, ok := f.X.(*ast.Ident); ok && (of.Name == "q" || of.Name == "v") && len(call.Args) > 0 {
			return call.Args[:1]
		}
	case *ast.Ident:
		if f.Name == "invalid" && len(call.Args) > 0 {
			return call.Args[1:]
		}
	}
	return nil
}
