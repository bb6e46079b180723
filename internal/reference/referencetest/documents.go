// Has methods decode every document that the tables allow.

package referencetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/labhealth/labhealth-go/internal/reference"
)

// referenceDocuments is the number of generated documents for each operation.
func referenceDocuments() uint64 {
	switch {
	case os.Getenv("LABHEALTH_TEST_LONG") != "":
		return 1000
	case testing.Short():
		return 4
	}
	return 20
}

// Documents checks that every document that the tables allow as a response is decoded by the method
// of its operation, has no malformed field, and is encoded again without a loss. The values of its
// fields are those of the Go value.
func (m Methods) Documents(t *testing.T) {
	var operations, documents atomic.Int64
	methods := m.byOperation()
	t.Run("operations", func(t *testing.T) {
		for i, o := range m.operations() {
			if methods[o.String()] == "" || o.Response == "" || o.Response == "any" {
				continue
			}
			t.Run(o.String(), func(t *testing.T) {
				t.Parallel()
				call := m.findCall(t, o, methods[o.String()])
				if call.method.Type().NumOut() != 2 {
					return
				}
				operations.Add(1)
				call.status = http.StatusOK
				for seed := range referenceDocuments() {
					documents.Add(1)
					if !m.checkDocument(t, o, call, uint64(i)<<32+seed, seed == 0) {
						return
					}
				}
			})
		}
	})
	t.Logf("%d operations, %d documents", operations.Load(), documents.Load())
}

// isExpected reports whether a generated response is one that the client must not accept.
func isExpected(t *testing.T, o reference.Operation, response []byte, err error) bool {
	t.Helper()
	if strings.Contains(err.Error(), "(it has no list)") && !hasList(t, o, response) {
		return true // some deployments report errors that way
	}
	if strings.Contains(err.Error(), "it has no readable ") && bytes.Contains(response, []byte(`:""`)) {
		return true // an empty ID, key or token is none
	}
	fields, _ := documentOf(t, response).(map[string]any)
	return fields["state"] == "error" // a link that failed
}

func (m Methods) checkDocument(t *testing.T, o reference.Operation, call *operationCall, seed uint64, plausible bool) bool {
	t.Helper()
	g := reference.NewGenerator(seed)
	g.Plausible = plausible
	call.response = g.Document(o.API, o.Response)
	results := call.do(call.args)
	if err, _ := results[1].Interface().(error); err != nil {
		if isExpected(t, o, call.response, err) {
			return true
		}
		t.Errorf("seed %d: %v: %s", seed, err, call.response)
		return false
	}
	value := results[0].Interface()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Errorf("seed %d: %v", seed, err)
		return false
	}
	if !isKept(documentOf(t, call.response), documentOf(t, encoded), m.exception(o.String()+".response") != "") {
		t.Errorf("seed %d: %s was encoded as %s", seed, call.response, encoded)
		return false
	}
	if list := malformedFields(results[0]); list != "" {
		t.Errorf("seed %d: malformed %s in %s", seed, list, call.response)
		return false
	}
	if m.exception(o.String()+".response") != "" {
		return true
	}
	if encoded, err = json.Marshal(WithoutReceived(value)); err != nil {
		t.Error(err)
		return false
	}
	for _, lost := range LostFields(documentOf(t, call.response), documentOf(t, encoded)) {
		path, difference, _ := strings.Cut(lost, ": ")
		isUnknown := strings.Contains(path, ".x_") // a field of no table
		// An object in place of a list is a former shape, which only the received JSON keeps.
		isFormer := strings.HasPrefix(difference, "[], want map[")
		if !isUnknown && !isFormer && !m.isExceptedPath(path) {
			t.Errorf("seed %d: %s in %s", seed, lost, call.response)
			return false
		}
	}
	return true
}

// hasList reports whether a document has one of the lists that the tables have in it.
func hasList(t *testing.T, o reference.Operation, document []byte) bool {
	t.Helper()
	fields, _ := documentOf(t, document).(map[string]any)
	return slices.ContainsFunc(reference.Components()[reference.ParseType(o.API, o.Response).Key()], func(f reference.Field) bool {
		return f.ParsedType().Kind == reference.Array && fields[f.Name] != nil
	})
}

// isKept reports whether a document was encoded again as it was, or as one of its fields if the
// method returns only that.
func isKept(document, encoded any, onlyField bool) bool {
	if reflect.DeepEqual(document, encoded) {
		return true
	}
	fields, _ := document.(map[string]any)
	hasList := false
	for _, value := range fields {
		if onlyField && reflect.DeepEqual(value, encoded) {
			return true
		}
		_, isList := value.([]any)
		hasList = hasList || isList
	}
	return onlyField && encoded == nil && !hasList // the list is optional
}

// isExceptedPath reports whether a field on the path has an exception in some component.
func (m Methods) isExceptedPath(path string) bool {
	names := strings.Split(path, ".")
	for _, a := range m.Areas {
		for name := range a.Exceptions {
			if i := strings.LastIndex(name, "."); i > 0 && slices.Contains(names, name[i+1:]) {
				return true
			}
		}
	}
	return false
}

func documentOf(t *testing.T, text []byte) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return value
}

// malformedFields returns the malformed fields of a response or the elements of a list or map, and
// "" if there are none.
func malformedFields(v reflect.Value) (list string) {
	if !v.IsValid() {
		return ""
	}
	if method := v.MethodByName("Malformed"); method.IsValid() {
		if fields := method.Call(nil)[0]; fields.Len() > 0 {
			list = fmt.Sprint(fields)
		}
		return list
	}
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			list += malformedFields(v.Index(i))
		}
	case reflect.Map:
		for _, elem := range v.Seq2() {
			list += malformedFields(elem)
		}
	}
	return list
}
