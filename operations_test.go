package labhealth

import (
	"go/ast"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// specifiedOperations are the team operations of the interface specification, in its order, typed
// by hand. Where it has no method or path, they are those of the public API reference.
var specifiedOperations = []struct{ operation, from string }{
	{"POST /v3/order/import", "Endpoints"},
	{"PATCH /v3/order/{order_id}", "Endpoints"},
	{"GET /v2/user/", "Endpoints"},
	{"POST /v3/order", "Other operations"},
	{"GET /orders", "Other operations"},
	{"GET /v3/lab_test", "Other operations"},
	{"GET /v3/lab_tests", "Other operations: deprecated"},
	{"GET /v2/timeseries/workouts/{workout_id}/stream", "Other operations"},
	{"GET /v3/order/{order_id}/requisition/pdf", "Other operations: requisition PDF download"},
	{"POST /v2/user", "Other operations: create user"},
	{"POST /v2/user/undo_delete", "Other operations: undo user deletion"},
	{"DELETE /v2/user/{user_id}", "States and transitions: user deletion"},
	{"GET /v3/order/{order_id}/result", "Versioning: the results object"},
	{"GET /v2/introspect/historical_pull", "Versioning: historical data pull status"},
}

// furtherOperations are in the public API reference only, and have methods because most programs
// need them.
var furtherOperations = []string{
	"GET /v3/order/{order_id}",
	"GET /v2/user/{user_id}",
	"GET /v2/user/resolve/{client_user_id}",
}

type operationRow struct {
	operation string
	service   string   // field of Client
	methods   []string // of the service
	note      string
}

// readOperations reads the table of the team API's operations in the package documentation.
func readOperations(t *testing.T) []operationRow {
	t.Helper()
	fset, files := parsePackage(t)
	var doc string
	for _, f := range files {
		if fset.Position(f.Pos()).Filename == "doc.go" {
			doc = f.Doc.Text()
		}
	}
	_, table, ok := strings.Cut(doc, "\n# Operations\n")
	if !ok {
		t.Fatal("the package documentation has no operations")
	}
	table, _, _ = strings.Cut(table, "\n# ")
	row := regexp.MustCompile(`^\t(GET|POST|PUT|PATCH|DELETE) +(/\S*) +Client\.(\w+)\.(\w+(?:, \w+)*)(?: \((.+)\))?$`)
	var rows []operationRow
	others := 0
	for line := range strings.Lines(table) {
		line = strings.TrimRight(line, "\n")
		m := row.FindStringSubmatch(line)
		switch {
		case m != nil:
			rows = append(rows, operationRow{m[1] + " " + m[2], m[3], strings.Split(m[4], ", "), m[5]})
		case regexp.MustCompile(`^\tany other +Client\.Do$`).MatchString(line):
			others++
		case strings.HasPrefix(line, "\t") && !strings.Contains(line, "ManagementClient."):
			t.Errorf("row %q has another form", line)
		}
	}
	if others != 1 {
		t.Errorf("%d rows for any other operation", others)
	}
	return rows
}

// The table has the operations of the interface specification and those of the methods, and no
// other.
func TestOperationsTable(t *testing.T) {
	var listed []string
	for _, r := range readOperations(t) {
		if slices.Contains(listed, r.operation) {
			t.Errorf("%s is there twice", r.operation)
		}
		listed = append(listed, r.operation)
		if deprecated := r.operation == "GET /v3/lab_tests"; deprecated != (r.note == "deprecated") {
			t.Errorf("%s has the note %q", r.operation, r.note)
		}
		if beta := r.operation == "POST /v3/order/import"; beta != (r.note == "closed beta") {
			t.Errorf("%s has the note %q", r.operation, r.note)
		}
	}
	want := slices.Clone(furtherOperations)
	for _, d := range specifiedOperations {
		if !slices.Contains(listed, d.operation) {
			t.Errorf("%s is missing; the interface specification has it under %s", d.operation, d.from)
		}
		want = append(want, d.operation)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(listed))); diff != "" {
		t.Errorf("(-known +listed):\n%s", diff)
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(teamOperations)), slices.Sorted(slices.Values(listed))); diff != "" {
		t.Errorf("(-known to WithPath +listed):\n%s", diff)
	}
	t.Logf("%d operations", len(listed))
}

// The table has every exported method of every service once, and no other.
func TestOperationsMethods(t *testing.T) {
	listed := map[string]string{}
	for _, r := range readOperations(t) {
		for _, m := range r.methods {
			name := r.service + "." + m
			if listed[name] != "" {
				t.Errorf("%s is there twice", name)
			}
			listed[name] = r.operation
		}
	}
	client := reflect.TypeFor[Client]()
	for field := range client.Fields() {
		if !field.IsExported() {
			continue
		}
		for method := range field.Type.Methods() {
			name := field.Name + "." + method.Name
			if listed[name] == "" {
				t.Errorf("%s is not in the table", name)
			}
			delete(listed, name)
		}
	}
	for name, operation := range listed {
		t.Errorf("%s has the method %s, which does not exist", operation, name)
	}
}

// The documentation of the first method of each row names its operation, and whether it is
// deprecated.
func TestOperationsDocumentation(t *testing.T) {
	_, files := parsePackage(t)
	docs := map[string]*ast.CommentGroup{}
	for _, m := range methodDocs(files) {
		docs[m.name] = m.doc
	}
	client := reflect.TypeFor[Client]()
	for _, r := range readOperations(t) {
		field, ok := client.FieldByName(r.service)
		if !ok {
			t.Errorf("Client has no %s", r.service)
			continue
		}
		for i, m := range r.methods {
			doc := docs[field.Type.Elem().Name()+"."+m]
			text := strings.Join(strings.Fields(doc.Text()), " ")
			if text == "" || i == 0 && !regexp.MustCompile(regexp.QuoteMeta(r.operation)+`([,.: ]|$)`).MatchString(text) {
				t.Errorf("the documentation of %s.%s does not name %s", r.service, m, r.operation)
			}
			if isDeprecated(doc) != (r.note == "deprecated") {
				t.Errorf("%s.%s: deprecated is %v", r.service, m, isDeprecated(doc))
			}
		}
	}
}

// methodDoc is the documentation of a method, which is named "Type.Method".
type methodDoc struct {
	name string
	doc  *ast.CommentGroup
}

func methodDocs(files []*ast.File) []methodDoc {
	var docs []methodDoc
	for _, file := range files {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
				docs = append(docs, methodDoc{receiverName(f) + "." + f.Name.Name, f.Doc})
			}
		}
	}
	return docs
}
