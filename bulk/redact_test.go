package bulk_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
)

const canary = "CANARY-77182"

// No exported type prints a sample ID, or another value of a record, under any verb or in a log.
func TestRedaction(t *testing.T) {
	entry := bulk.Entry{Step: bulk.StepApplied, SampleID: canary, Record: 3, Digest: canary, RequestID: canary, Message: canary, Key: []byte(canary), Target: canary}
	rejection := bulk.Rejection{Outcome: "invalid", Record: 7, SampleID: canary, RequestID: canary, Message: canary, Fields: []bulk.Problem{{Path: "body.user_id", Reason: "missing"}}}
	unknownColumns := bulk.UnknownColumnsError{Columns: []bulk.UnknownColumn{{Number: 2, Name: canary}}}
	unreadable := bulk.RecordError{Line: 4, SampleID: canary, Problems: []bulk.Problem{{Path: "body.user_id", Reason: "missing"}}}
	memory := new(bulk.Memory)
	if err := memory.Append([]bulk.Entry{entry}); err != nil {
		t.Fatal(err)
	}
	file := open(t, filepath.Join(t.TempDir(), "run.journal"))
	if err := file.Append([]bulk.Entry{entry}); err != nil {
		t.Fatal(err)
	}
	opts := bulk.Options{Rejections: bytes.NewBufferString(canary), List: labhealth.ListOrdersParams{SearchInput: canary, PatientName: canary}}
	users := bulk.NewUsers(t.Context(), nil, bulk.Options{DryRun: true})
	if _, err := users.ID(labhealth.CreateUserBody{ClientUserID: canary}); err != nil {
		t.Fatal(err)
	}
	csvOpts := bulk.CSVOptions{Users: users, Defaults: labhealth.ImportOrderBody{Physician: &labhealth.PhysicianCreateRequest{LastName: canary}}}
	var row bulk.Row
	csvOpts.Row = func(r bulk.Row, _ *labhealth.ImportOrderBody) error {
		row = r
		return nil
	}
	var rowRecord bulk.Record
	for record := range bulk.CSV(strings.NewReader("sample_id,client_user_id\n"+canary+","+canary), csvOpts) {
		rowRecord = record
	}
	const message = "bulk: a record cannot be read, line 4: body.user_id missing"
	tests := map[string]struct {
		value, pointer any
		want           string // the output of %v; not checked if empty
	}{
		"Entry":               {entry, &entry, "bulk.Entry{applied, record 3, redacted}"},
		"Rejection":           {rejection, &rejection, "bulk.Rejection{invalid, record 7, redacted}"},
		"RecordError":         {unreadable, &unreadable, message},
		"Options":             {opts, &opts, "{redacted}"},
		"Memory":              {memory, &memory, ""},
		"File":                {*file, file, "{redacted}"},
		"Journal":             {[]bulk.Journal{memory, file}, []bulk.Journal{memory, file}, ""},
		"Problem":             {rejection.Fields[0], &rejection.Fields[0], "body.user_id missing"},
		"Report":              {bulk.Report{Records: 1}, &bulk.Report{Records: 1}, ""},
		"Progress":            {bulk.Progress{Records: 1}, &bulk.Progress{Records: 1}, ""},
		"Step":                {bulk.StepApplied, new(bulk.StepApplied), ""},
		"Phase":               {bulk.PhaseListing, new(bulk.PhaseListing), ""},
		"CSVOptions":          {csvOpts, &csvOpts, ""},
		"Record":              {rowRecord, &rowRecord, "{redacted}"},
		"Row":                 {row, &row, "{redacted}"},
		"UnknownColumn":       {bulk.UnknownColumn{Number: 2, Name: canary}, &bulk.UnknownColumn{Number: 2, Name: canary}, "{redacted}"},
		"UnknownColumnsError": {unknownColumns, &unknownColumns, ""},
		"Users":               {*users, users, "{redacted}"},
		"Source":              {from(records(canary)), new(from(records(canary))), ""},
	}
	if diff := cmp.Diff(exportedTypes(t), slices.Sorted(maps.Keys(tests))); diff != "" {
		t.Errorf("exported types (-package +test):\n%s", diff)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		var byValue struct{ Journal bulk.Memory }
		if err := byValue.Journal.Append([]bulk.Entry{entry}); err != nil {
			t.Fatal(err)
		}
		if printed := fmt.Sprintf(verb, reflect.ValueOf(&byValue).Elem()); strings.Contains(printed, canary) {
			t.Errorf("Memory within a struct, %s: %s", verb, printed)
		}
	}
	hidden := func(name, printed string) {
		t.Helper()
		for _, secret := range []string{canary, hex.EncodeToString([]byte(canary)), strings.Trim(fmt.Sprint([]byte(canary)), "[]"), "SYNB"} {
			if strings.Contains(strings.ToLower(printed), strings.ToLower(secret)) {
				t.Errorf("%s shows the sample ID: %s", name, printed)
			}
		}
	}
	for name, test := range tests {
		if test.want != "" {
			checkEqual(t, name, fmt.Sprint(test.value), test.want)
		}
		type holder struct{ Value any }
		for _, v := range []any{test.value, test.pointer, holder{test.value}, &holder{test.pointer}, []any{test.value, test.pointer}, map[string]any{"": test.value}} {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T"} {
				hidden(name+" "+verb, fmt.Sprintf(verb, v))
			}
			var log bytes.Buffer
			slog.New(slog.NewTextHandler(&log, nil)).Info("", "value", v)
			hidden(name+" in slog's text", log.String())
		}
		for _, v := range []any{test.value, test.pointer} {
			var log bytes.Buffer
			slog.New(slog.NewJSONHandler(&log, nil)).Info("", "value", v)
			hidden(name+" in slog's JSON", log.String())
		}
	}
	// As JSON they are complete.
	for _, v := range []any{entry, rejection} {
		if content, err := json.Marshal(v); err != nil || !bytes.Contains(content, []byte(canary)) {
			t.Errorf("%s, %v", content, err)
		}
	}
}

// exportedTypes returns the exported types of the package.
func exportedTypes(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, content, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.TypeSpec); ok && s.Name.IsExported() {
				names = append(names, s.Name.Name)
			}
			return true
		})
	}
	slices.Sort(names)
	return names
}
