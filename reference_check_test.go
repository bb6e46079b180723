package labhealth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/httptracetest"
	"github.com/labhealth/labhealth-go/internal/reference"
	"github.com/labhealth/labhealth-go/internal/reference/referencetest"
)

func (a *referenceArea) check() referencetest.Area {
	return referencetest.Area{Components: a.components, Enums: a.enums, Operations: a.operations, Exceptions: a.exceptions}
}

func referenceChecks() []referencetest.Area {
	var areas []referencetest.Area
	for _, a := range referenceAreas {
		areas = append(areas, a.check())
	}
	return areas
}

// referenceTypes returns the Go types of all components.
func referenceTypes() []reflect.Type {
	var types []reflect.Type
	for _, area := range referenceAreas {
		for _, value := range area.components {
			if typ := reflect.TypeOf(value); !slices.Contains(types, typ) {
				types = append(types, typ)
			}
		}
	}
	return types
}

// The types have every field of the tables with its type, nullability and default, and every
// enumeration has its values. There are no others.
func TestReferenceTypes(t *testing.T) {
	s := referencetest.Check(t, referenceChecks()...)
	t.Logf("%d components, %d fields, %d enumerations, %d values", s.Components, s.Fields, s.Enums, s.Values)
}

// No operation, component or enumeration of the tables is left out.
func TestReferenceComplete(t *testing.T) {
	methods := referenceMethods()
	var types []reference.Type
	for _, o := range reference.Operations() {
		for _, text := range []string{o.Body, o.Response} {
			if text != "" {
				types = append(types, reference.ParseType(o.API, text))
			}
		}
		for _, p := range o.Parameters {
			types = append(types, reference.ParseType(o.API, p.Type))
		}
		if methods[o.String()] == "" && referenceException(o.String()) == "" {
			t.Errorf("%s has no method", o)
		}
	}
	for _, name := range referencetest.Missing(types, referenceChecks()...) {
		t.Errorf("%s has no Go type", name)
	}
}

// referenceMethods returns the methods of all areas by operation.
func referenceMethods() map[string]string {
	methods := map[string]string{}
	for _, a := range referenceAreas {
		maps.Copy(methods, a.operations)
	}
	return methods
}

func referenceException(name string) string {
	for _, a := range referenceAreas {
		if reason := a.exceptions[name]; reason != "" {
			return reason
		}
	}
	return ""
}

// The method of each operation exists, takes the body and returns the response of the table, sends
// its request to the path with every query parameter, and is deprecated if the operation is.
func TestReferenceOperations(t *testing.T) {
	operations := map[string]reference.Operation{}
	for _, o := range reference.Operations() {
		operations[o.String()] = o
	}
	types := map[string]reflect.Type{}
	for _, a := range referenceAreas {
		for name, value := range a.components {
			types[name] = reflect.TypeOf(value)
		}
	}
	deprecated := deprecatedMethods(t)
	checked := 0
	for name, method := range referenceMethods() {
		o, ok := operations[name]
		if !ok {
			t.Errorf("the reference has no operation %s", name)
			continue
		}
		checked++
		t.Run(method, func(t *testing.T) {
			call := findCall(t, o, method)
			checkSent(t, o, call.sent)
			checkSignature(t, o, call.method.Type(), types)
			if deprecated[call.service.Elem().Name()+method[strings.Index(method, "."):]] != o.Deprecated && referenceException(name) == "" {
				t.Errorf("%s: deprecated in the reference: %v, documentation: %v", name, o.Deprecated, !o.Deprecated)
			}
		})
	}
	t.Logf("%d operations", checked)
}

// Reads are repeated, and writes are not, whatever the operation.
func TestReferenceRepeats(t *testing.T) {
	methods := referenceMethods()
	for _, o := range reference.Operations() {
		if methods[o.String()] == "" {
			continue
		}
		call := findCall(t, o, methods[o.String()])
		call.args = append(call.args, reflect.ValueOf(WithCallRetry(RetryPolicy{MaxAttempts: 3, BaseWait: 1, MaxWait: 1})))
		for _, status := range []int{0, http.StatusBadGateway, http.StatusRequestTimeout} {
			call.status, call.requests = status, 0
			call.do(call.args)
			want := 1
			if o.Method == http.MethodGet {
				want = 3
			}
			if call.requests != want {
				t.Errorf("%s: %d requests after status %d, want %d", o, call.requests, status, want)
			}
		}
	}
}

// probe is a client whose requests are recorded. They fail if it has no status.
type probe struct {
	client   reflect.Value
	status   int
	response []byte
	sent     *http.Request
	requests int
}

func newProbe(t *testing.T, api string) *probe {
	t.Helper()
	p := &probe{}
	opts := []Option{WithBaseURL("https://api.example.com"), WithHTTPClient(&http.Client{Transport: p}), WithRetry(RetryPolicy{MaxAttempts: 1})}
	team, err := NewClient("key", opts...)
	management, managementErr := NewManagementClient(uuid.New(), "key", opts...)
	if err = errors.Join(err, managementErr); err != nil {
		t.Fatal(err)
	}
	p.client = reflect.ValueOf(team).Elem()
	if api == "management" {
		p.client = reflect.ValueOf(management).Elem()
	}
	return p
}

func (p *probe) RoundTrip(r *http.Request) (*http.Response, error) {
	p.sent = r
	p.requests++
	httptracetest.SendRequest(r)
	if p.status == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{
		StatusCode: p.status, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(bytes.NewReader(p.response)), ContentLength: int64(len(p.response)),
	}, nil
}

// operationCall is a call of the method of an operation, with arguments in which nothing is zero.
type operationCall struct {
	*probe
	service reflect.Type
	method  reflect.Value
	args    []reflect.Value
}

// findCall returns a call of a method. If an argument is an enumeration, it is the value with which
// the request is that of the operation.
func findCall(t *testing.T, o reference.Operation, name string) *operationCall {
	t.Helper()
	c := &operationCall{probe: newProbe(t, o.API)}
	service, method, _ := strings.Cut(name, ".")
	field := c.client.FieldByName(service)
	if !field.IsValid() || !field.MethodByName(method).IsValid() {
		t.Fatalf("no method %s", name)
	}
	c.service, c.method = field.Type(), field.MethodByName(method)
	for _, args := range argumentLists(t, o, c.method.Type()) {
		before := c.sent
		c.sent = nil
		c.do(args)
		if c.sent != nil {
			c.args = args
			if isRequestOf(o, c.sent) {
				return c
			}
		} else {
			c.sent = before
		}
	}
	if c.sent == nil {
		t.Fatalf("%s sent nothing", name)
	}
	return c
}

// do calls the method.
func (c *operationCall) do(args []reflect.Value) []reflect.Value {
	results := c.method.Call(args)
	if results[0].Kind() == reflect.Func { // an iterator
		for range results[0].Seq2() {
			break
		}
	}
	return results
}

// isRequestOf reports whether a request has the method and the path of an operation.
func isRequestOf(o reference.Operation, r *http.Request) bool {
	pattern := regexp.MustCompile(`\\\{[^}]*\\\}`).ReplaceAllString(regexp.QuoteMeta(o.Path), "[^/]+")
	return r.Method == o.Method && regexp.MustCompile("^"+pattern+"$").MatchString(r.URL.EscapedPath())
}

// argumentLists returns the arguments of calls of a method: every combination of the values of its
// enumerations and of the segments of the operation's path.
func argumentLists(t *testing.T, o reference.Operation, typ reflect.Type) [][]reflect.Value {
	t.Helper()
	lists := [][]reflect.Value{nil}
	for in := range typ.Ins() {
		choices := []reflect.Value{argument(t, in)}
		if in.Kind() == reflect.String {
			values := strings.Split(o.Path, "/")
			if in.PkgPath() != "" {
				values = slices.AppendSeq(values, maps.Values(constantsOf(t)[in.Name()]))
			}
			for _, value := range values {
				choices = append(choices, reflect.ValueOf(value).Convert(in))
			}
		}
		var longer [][]reflect.Value
		for _, list := range lists {
			for _, choice := range choices {
				longer = append(longer, append(slices.Clone(list), choice))
			}
		}
		lists = longer
	}
	return lists
}

var allConstants map[string]map[string]string

// constantsOf returns the constants of every string type of the package, by the name of the type.
func constantsOf(t *testing.T) map[string]map[string]string {
	t.Helper()
	if allConstants == nil {
		paths, err := filepath.Glob("*.go")
		if err != nil {
			t.Fatal(err)
		}
		allConstants = readConstants(t, paths...)
	}
	return allConstants
}

// argument returns an argument in which nothing is zero.
func argument(t *testing.T, typ reflect.Type) reflect.Value {
	switch typ {
	case reflect.TypeFor[context.Context]():
		return reflect.ValueOf(t.Context())
	case reflect.TypeFor[[]CallOption]():
		return reflect.ValueOf(WithoutValidation())
	case reflect.TypeFor[io.Writer]():
		return reflect.ValueOf(io.Discard)
	}
	arg := reflect.New(typ).Elem()
	fill(arg, 0)
	return arg
}

// fill sets a value and all of its parts to something that is not zero.
func fill(v reflect.Value, depth int) {
	switch value := v.Addr().Interface().(type) {
	case *uuid.UUID:
		*value = uuid.MustParse("0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b")
		return
	case *time.Time:
		*value = time.Date(2999, 1, 2, 3, 4, 5, 0, time.UTC)
		return
	case *Date:
		*value = Date{2999, time.January, 2}
		return
	case *json.RawMessage:
		*value = json.RawMessage(`{}`)
		return
	case *json.Number:
		*value = "1"
		return
	case json.Unmarshaler:
		if strings.HasPrefix(v.Type().Name(), "Nullable[") {
			inner := reflect.New(must(v.Type().FieldByName("value")).Type).Elem()
			fill(inner, depth+1)
			encoded, _ := json.Marshal(inner.Interface())
			_ = value.UnmarshalJSON(encoded)
			return
		}
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("a")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth+1)
	case reflect.Map:
		elem := reflect.New(v.Type().Elem()).Elem()
		fill(elem, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("a").Convert(v.Type().Key()), elem)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() && v.Type().Field(i).Name != "RawObject" && depth < 8 {
				fill(v.Field(i), depth+1)
			}
		}
	}
}

func must[T any](v T, ok bool) T {
	if !ok {
		panic("not found")
	}
	return v
}

// checkSent compares a request with the path, the query parameters and the body of an operation.
func checkSent(t *testing.T, o reference.Operation, sent *http.Request) {
	t.Helper()
	if referenceException(o.String()) == "" && !isRequestOf(o, sent) {
		t.Errorf("%s %s was sent, want %s", sent.Method, sent.URL.EscapedPath(), o)
	}
	want := map[string]bool{}
	for _, p := range o.Parameters {
		want[p.Name] = p.In == "query"
	}
	if want["next_cursor"] {
		want["cursor"] = false // its former name
	}
	query, _ := url.ParseQuery(sent.URL.RawQuery)
	excepted := func(parameter string) bool { return referenceException(o.String()+"."+parameter) != "" }
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if want[name] && !query.Has(name) && !excepted(name) {
			t.Errorf("%s: the query parameter %s is not sent; if that is intended, add the exception %q", o, name, o.String()+"."+name)
		}
	}
	for name := range query {
		if !want[name] && !excepted(name) {
			t.Errorf("%s: the query parameter %s is not in the reference", o, name)
		}
	}
	checkSentBody(t, o, sent)
}

func checkSentBody(t *testing.T, o reference.Operation, sent *http.Request) {
	t.Helper()
	var body []byte
	if sent.Body != nil {
		body, _ = io.ReadAll(sent.Body)
	}
	component := reference.ParseType(o.API, o.Body)
	var fields map[string]json.RawMessage
	if len(body) > 0 && json.Unmarshal(body, &fields) != nil {
		return // no object
	}
	if o.Body == "" {
		if len(body) > 0 && string(body) != "{}" && referenceException(o.String()+".body") == "" {
			t.Errorf("%s: a body was sent: %s", o, body)
		}
		return
	}
	for _, f := range reference.Components()[component.Key()] {
		if _, ok := fields[f.Name]; !ok && referenceException(f.Key()) == "" {
			t.Errorf("%s: the field %s is not sent", o, f.Name)
		}
		delete(fields, f.Name)
	}
	for name := range fields {
		if referenceException(component.Key()+"."+name) == "" {
			t.Errorf("%s: the field %s, which is sent, is not in the reference", o, name)
		}
	}
}

// checkSignature compares the result of a method with the response of an operation.
func checkSignature(t *testing.T, o reference.Operation, typ reflect.Type, types map[string]reflect.Type) {
	t.Helper()
	if o.Response == "" || o.Response == "any" || typ.NumOut() != 2 || referenceException(o.String()+".response") != "" {
		return
	}
	response := reference.ParseType(o.API, o.Response)
	got := typ.Out(0)
	switch response.Kind {
	case reference.Array:
		if got.Kind() != reflect.Slice {
			t.Errorf("%s returns %s, want a slice", o, got)
			return
		}
		response, got = *response.Elem, got.Elem()
	case reference.Component:
		if got.Kind() != reflect.Pointer {
			t.Errorf("%s returns %s, want a pointer", o, got)
			return
		}
		got = got.Elem()
	}
	if want := types[response.Key()]; response.Kind == reference.Component && want != nil && want != got {
		t.Errorf("%s returns %s, want %s; if that is intended, add the exception %q", o, got, want, o.String()+".response")
	}
}

// deprecatedMethods returns the methods with a Deprecated paragraph, as "Type.Method".
func deprecatedMethods(t *testing.T) map[string]bool {
	t.Helper()
	methods := map[string]bool{}
	_, files := referencetest.ParsePackage(t)
	for _, m := range methodDocs(files) {
		methods[m.name] = isDeprecated(m.doc)
	}
	return methods
}
