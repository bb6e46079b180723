package labhealth

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The documentation names the public API reference as the source of each deprecation and unit that
// the interface specification does not have, or the file does for all that is in it.
func TestSources(t *testing.T) {
	// Deprecations and units that are in the interface specification.
	specified := []string{
		"CreateOrderBody.LabTestID", "LabTest.IsActive", "LabTest.IsDelegated", "LabTestsService.ListDeprecated", "Order.RequisitionFormURL",
		"Order.Status", "Result.Value",
		"PatientDetailsWithValidation.HouseholdIncome", "GuarantorDetails.HouseholdIncome", "Activity.TimezoneOffset", "Sample.TimezoneOffset",
	}
	const onlyThere = "public API reference only."
	unit := regexp.MustCompile(`\b(meters|kilocalories|minutes|per minute|per second|watts|Celsius|degrees|seconds|USD)\b`)
	deprecations, units := 0, 0
	ofFile := "" // the comment that names the source of the file
	check := func(name, text, around string) {
		if slices.Contains(specified, name) {
			if strings.Contains(text, "Source: "+onlyThere) {
				t.Errorf("%s is in the interface specification", name)
			}
			return
		}
		if _, deprecated, ok := strings.Cut(text, "Deprecated: "); ok {
			if deprecations++; !strings.Contains(ofFile+deprecated, onlyThere) {
				t.Errorf("the deprecation of %s does not name its source", name)
			}
		}
		if found := unit.FindString(text); found != "" {
			if units++; !strings.Contains(ofFile+around+text, onlyThere) && !strings.Contains(text, "inference") {
				t.Errorf("the unit of %s, %q, has no source", name, found)
			}
		}
	}
	for _, dir := range []string{".", "management", "webhooks"} {
		paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			ofFile = ""
			for _, group := range file.Comments {
				if text := oneLine(group); strings.HasPrefix(text, "Source of this file") {
					ofFile = text
				}
				if text := oneLine(group); strings.Contains(text, "interface document") || strings.Contains(text, "the public reference") {
					t.Errorf("%s: the sources are the interface specification and the public API reference: %.60s", path, text)
				}
			}
			for _, decl := range file.Decls {
				switch decl := decl.(type) {
				case *ast.FuncDecl:
					if decl.Recv != nil && ast.IsExported(decl.Name.Name) && strings.Contains(oneLine(decl.Doc), "Deprecated: ") {
						check(receiverName(decl)+"."+decl.Name.Name, oneLine(decl.Doc), "")
					}
				case *ast.GenDecl:
					for _, spec := range decl.Specs {
						typ, ok := spec.(*ast.TypeSpec)
						if !ok || !ast.IsExported(typ.Name.Name) {
							continue
						}
						fields, ok := typ.Type.(*ast.StructType)
						if !ok || !strings.Contains(path, "webhooks/") && !hasTags(fields) {
							continue
						}
						around := oneLine(decl.Doc) // and what stands over groups of fields
						for _, group := range file.Comments {
							if fields.Pos() < group.Pos() && group.Pos() < fields.End() && strings.HasPrefix(oneLine(group), "Source of ") {
								around += oneLine(group)
							}
						}
						for _, field := range fields.Fields.List {
							for _, name := range field.Names {
								check(typ.Name.Name+"."+name.Name, oneLine(field.Doc)+" "+oneLine(field.Comment), around)
							}
						}
					}
				}
			}
		}
	}
	t.Logf("%d deprecations and %d units of the reference", deprecations, units)
	if deprecations < 7 || units < 15 {
		t.Error("are they still found?")
	}
}

// oneLine is the text of a comment without its line breaks.
func oneLine(group *ast.CommentGroup) string { return strings.Join(strings.Fields(group.Text()), " ") }

func receiverName(f *ast.FuncDecl) string {
	typ := f.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if generic, ok := typ.(*ast.IndexExpr); ok {
		typ = generic.X
	}
	name, _ := typ.(*ast.Ident)
	return name.Name
}

// hasTags reports whether a struct is read or written as JSON.
func hasTags(s *ast.StructType) bool {
	return slices.ContainsFunc(s.Fields.List, func(f *ast.Field) bool { return f.Tag != nil })
}
