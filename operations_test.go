package labhealth

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/labhealth/labhealth-go/internal/reference"
	"github.com/labhealth/labhealth-go/internal/reference/referencetest"
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

// specifiedPaths are the operations that the interface specification has at another path than the
// public API reference.
var specifiedPaths = map[string]string{"GET /v2/user": "GET /v2/user/", "GET /v3/orders": "GET /orders"}

// referenceOperations returns the team operations of the public API reference as the table has
// them: one row for all summaries, and one for the samples of all resources. The value is whether
// the operation is deprecated.
func referenceOperations() map[string]bool {
	operations := map[string]bool{}
	for _, o := range reference.Operations() {
		if o.API != "team" {
			continue
		}
		if strings.HasPrefix(o.Path, "/v2/summary/") {
			o.Path = "/v2/summary/{resource}/{user_id}"
		}
		if strings.HasSuffix(o.Path, "/grouped") {
			o.Path = "/v2/timeseries/{user_id}/{resource}/grouped"
		}
		if specified, ok := specifiedPaths[o.String()]; ok {
			operations[specified] = o.Deprecated
			continue
		}
		operations[o.String()] = o.Deprecated
	}
	return operations
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
	fset, files := referencetest.ParsePackage(t)
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
		case strings.HasPrefix(line, "\t"):
			t.Errorf("row %q has another form", line)
		}
	}
	if others != 1 {
		t.Errorf("%d rows for any other operation", others)
	}
	return rows
}

// The table has the operations of the interface specification and of the public API reference, and
// no other.
func TestOperationsTable(t *testing.T) {
	known := referenceOperations()
	for _, d := range specifiedOperations {
		known[d.operation] = known[d.operation] || strings.HasSuffix(d.from, "deprecated")
	}
	var listed []string
	for _, r := range readOperations(t) {
		if slices.Contains(listed, r.operation) {
			t.Errorf("%s is there twice", r.operation)
		}
		listed = append(listed, r.operation)
		deprecated, ok := known[r.operation]
		if !ok {
			t.Errorf("%s is in neither the interface specification nor the public API reference", r.operation)
		}
		if deprecated != (r.note == "deprecated") {
			t.Errorf("%s has the note %q", r.operation, r.note)
		}
		if beta := r.operation == "POST /v3/order/import"; beta != (r.note == "closed beta") {
			t.Errorf("%s has the note %q", r.operation, r.note)
		}
	}
	for _, d := range specifiedOperations {
		if !slices.Contains(listed, d.operation) {
			t.Errorf("%s is missing; the interface specification has it under %s", d.operation, d.from)
		}
	}
	for operation := range known {
		if !slices.Contains(listed, operation) {
			t.Errorf("%s is missing", operation)
		}
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(operations)), slices.Sorted(slices.Values(listed))); diff != "" {
		t.Errorf("(-known to WithPath +listed):\n%s", diff)
	}
	t.Logf("%d operations", len(listed))
}

// The table has every exported method of every service, and no other. A method may have several
// operations.
func TestOperationsMethods(t *testing.T) {
	listed := map[string]string{}
	for _, r := range readOperations(t) {
		for _, m := range r.methods {
			listed[r.service+"."+m] = r.operation
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
	_, files := referencetest.ParsePackage(t)
	docs := referencetest.MethodDocs(files)
	client := reflect.TypeFor[Client]()
	for _, r := range readOperations(t) {
		field, ok := client.FieldByName(r.service)
		if !ok {
			t.Errorf("Client has no %s", r.service)
			continue
		}
		for i, m := range r.methods {
			doc := docs["*"+field.Type.Elem().Name()+"."+m]
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

// The package documentation names the operations of the interface specification, because the others
// have the public API reference as their source.
func TestSpecifiedOperations(t *testing.T) {
	_, files := referencetest.ParsePackage(t)
	var doc string
	for _, f := range files {
		doc += oneLine(f.Doc)
	}
	specified := map[string]bool{}
	for _, d := range specifiedOperations {
		specified[d.operation] = true
	}
	var names []string
	for _, r := range readOperations(t) {
		if !specified[r.operation] {
			continue
		}
		for _, method := range r.methods {
			names = append(names, r.service+"."+method)
		}
	}
	want := "The interface specification has these operations: " + strings.Join(names, ", ") + "."
	if !strings.Contains(doc, want) {
		t.Errorf("the package documentation does not say: %s", want)
	}
}
