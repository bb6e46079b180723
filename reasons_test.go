package labhealth

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The embedded service sends no text that is not among the known reasons.
func TestKnownReasons(t *testing.T) {
	files, err := filepath.Glob("labhealthtest/*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || len(call.Args) != 2 {
				return true
			}
			if f, ok := call.Fun.(*ast.Ident); !ok || f.Name != "reject" {
				return true
			}
			if text := firstText(call.Args[1]); text != "" {
				found++
				if knownReason(text) == "" {
					t.Errorf("%s: %q is not known", file, text)
				}
			}
			return true
		})
	}
	if found < 80 {
		t.Errorf("found %d texts; is this still how they are sent?", found)
	}
}

// firstText returns the first string of an expression, such as "a" + b.
func firstText(e ast.Expr) (text string) {
	ast.Inspect(e, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING && text == "" {
			text, _ = strconv.Unquote(literal.Value)
		}
		return true
	})
	if strings.HasSuffix(text, " ") { // a variable follows
		text += "x"
	}
	if _, isCall := e.(*ast.CallExpr); isCall {
		text = strings.ReplaceAll(text, "%d", "7")
	}
	if _, isStruct := e.(*ast.CompositeLit); isStruct {
		return ""
	}
	return text
}

// Phrases are in the form that messages are compared in, and texts are short and without a period.
func TestReasonForm(t *testing.T) {
	var seen []string
	for _, reason := range knownReasons {
		if reason.text == "" || len(reason.text) > 100 || strings.HasSuffix(reason.text, ".") {
			t.Errorf("%q", reason.text)
		}
		for _, phrase := range reason.phrases {
			if plain := strings.Trim(phrase, "*"); normalize(plain+" x") != plain+" x" && normalize(plain) != strings.TrimSpace(plain) || slices.Contains(seen, phrase) {
				t.Errorf("%q", phrase)
			}
			seen = append(seen, phrase)
		}
	}
	for _, text := range []string{"Test does not exist", " test  DOES not exist. ", "Value error, Test does not exist"} {
		if got := knownReason(text); got != "test does not exist: choose one of LabTests.All" {
			t.Errorf("%q: %q", text, got)
		}
	}
	if got := knownReason(strings.Repeat("closed beta ", 100)); got != "" {
		t.Errorf("a long message: %q", got)
	}
}

// Only names and types of this package are printed.
func TestFieldNames(t *testing.T) {
	for text, want := range map[string]bool{
		"first_name": true, "body": true, "lab_test_ids": true, "consentType": true, "WithCallRetry": true, "order_id": true, "sample_id": true,
		"": false, " ": false, "Ada": false, "ada": false, "Ada_Example": false, "first_name last_name": false, "first": false, "irst_name": false, "SAMPLE": false,
	} {
		if isName(text) != want {
			t.Errorf("isName(%q) is %t", text, !want)
		}
	}
	for text, want := range map[string]bool{"0": true, "999": true, "1000": false, "94105": false, "": false, "-1": false, "1.5": false} {
		if isIndex(text) != want {
			t.Errorf("isIndex(%q) is %t", text, !want)
		}
	}
	if !isListed(fieldTypes, "missing") || !isListed(fieldTypes, "value_error") || isListed(fieldTypes, "Ada_Example") || isListed(fieldTypes, "value") {
		t.Error("fieldTypes")
	}
}
