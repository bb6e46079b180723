// Compares the methods of a client with the operations.

package referencetest

import (
	"bytes"
	"context"
	"encoding/json"
	"go/ast"
	"io"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/labhealth/labhealth-go/internal/canarytest"
	"github.com/labhealth/labhealth-go/internal/httptracetest"
	"github.com/labhealth/labhealth-go/internal/reference"
)

// Methods compares the methods of a client with the operations of an API.
type Methods struct {
	API   string // "team" or "management"
	Areas []Area
	// Client returns a client that sends its requests with h, each once.
	Client func(h *http.Client) (any, error)
	// WithoutValidation and ThreeAttempts are options of calls, the second without waits.
	WithoutValidation, ThreeAttempts any
}

func (m Methods) operations() []reference.Operation {
	return slices.DeleteFunc(slices.Clone(reference.Operations()), func(o reference.Operation) bool { return o.API != m.API })
}

func (m Methods) byOperation() map[string]string {
	methods := map[string]string{}
	for _, a := range m.Areas {
		maps.Copy(methods, a.Operations)
	}
	return methods
}

func (m Methods) exception(name string) string {
	for _, a := range m.Areas {
		if reason := a.Exceptions[name]; reason != "" {
			return reason
		}
	}
	return ""
}

// Complete reports operations, components and enumerations of the tables that are left out.
func (m Methods) Complete(t *testing.T) {
	methods := m.byOperation()
	var types []reference.Type
	for _, o := range m.operations() {
		for _, text := range []string{o.Body, o.Response} {
			if text != "" {
				types = append(types, reference.ParseType(o.API, text))
			}
		}
		for _, p := range o.Parameters {
			types = append(types, reference.ParseType(o.API, p.Type))
		}
		if methods[o.String()] == "" && m.exception(o.String()) == "" {
			t.Errorf("%s has no method", o)
		}
	}
	for _, name := range Missing(types, m.Areas...) {
		t.Errorf("%s has no Go type", name)
	}
}

// Operations checks that the method of each operation exists, takes the body and returns the
// response of the table, sends its request to the path with every query parameter, and is
// deprecated if the operation is.
func (m Methods) Operations(t *testing.T) {
	operations := map[string]reference.Operation{}
	for _, o := range m.operations() {
		operations[o.String()] = o
	}
	types := map[string]reflect.Type{}
	for _, a := range m.Areas {
		for name, value := range a.Components {
			types[name] = reflect.TypeOf(value)
		}
	}
	deprecated := deprecatedMethods(t)
	checked := 0
	for name, method := range m.byOperation() {
		o, ok := operations[name]
		if !ok {
			t.Errorf("the reference has no operation %s", name)
			continue
		}
		checked++
		t.Run(method, func(t *testing.T) {
			call := m.findCall(t, o, method)
			m.checkSent(t, o, call.sent)
			m.checkSignature(t, o, call.method.Type(), types)
			if deprecated[call.service.Elem().Name()+method[strings.Index(method, "."):]] != o.Deprecated && m.exception(name) == "" {
				t.Errorf("%s: deprecated in the reference: %v, documentation: %v", name, o.Deprecated, !o.Deprecated)
			}
		})
	}
	t.Logf("%d operations", checked)
}

// Repeats checks that reads are repeated, and writes are not, whatever the operation, unless their
// method takes an idempotency key.
func (m Methods) Repeats(t *testing.T) {
	methods := m.byOperation()
	for _, o := range m.operations() {
		if methods[o.String()] == "" {
			continue
		}
		call := m.findCall(t, o, methods[o.String()])
		call.args = append(call.args, reflect.ValueOf(m.ThreeAttempts))
		for _, status := range []int{0, http.StatusBadGateway, http.StatusRequestTimeout} {
			call.status, call.requests = status, 0
			call.do(call.args)
			want := 1
			if o.Method == http.MethodGet || call.sent.Header.Get("X-Idempotency-Key") != "" {
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

func (m Methods) newProbe(t *testing.T) *probe {
	t.Helper()
	p := &probe{}
	client, err := m.Client(&http.Client{Transport: p})
	if err != nil {
		t.Fatal(err)
	}
	p.client = reflect.ValueOf(client).Elem()
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
func (m Methods) findCall(t *testing.T, o reference.Operation, name string) *operationCall {
	t.Helper()
	c := &operationCall{probe: m.newProbe(t)}
	service, method, _ := strings.Cut(name, ".")
	field := c.client.FieldByName(service)
	if !field.IsValid() || !field.MethodByName(method).IsValid() {
		t.Fatalf("no method %s", name)
	}
	c.service, c.method = field.Type(), field.MethodByName(method)
	for _, args := range m.argumentLists(t, o, c.method.Type()) {
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
func (m Methods) argumentLists(t *testing.T, o reference.Operation, typ reflect.Type) [][]reflect.Value {
	t.Helper()
	lists := [][]reflect.Value{nil}
	constants := readSource(t).constants
	for in := range typ.Ins() {
		choices := []reflect.Value{m.argument(t, in)}
		if in.Kind() == reflect.String {
			values := strings.Split(o.Path, "/")
			if in.PkgPath() != "" {
				values = slices.AppendSeq(values, maps.Keys(constants[in.Name()]))
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

// argument returns an argument in which nothing is zero.
func (m Methods) argument(t *testing.T, typ reflect.Type) reflect.Value {
	switch typ {
	case reflect.TypeFor[context.Context]():
		return reflect.ValueOf(t.Context())
	case reflect.SliceOf(reflect.TypeOf(m.WithoutValidation)):
		return reflect.ValueOf(m.WithoutValidation)
	case reflect.TypeFor[io.Writer]():
		return reflect.ValueOf(io.Discard)
	}
	arg := reflect.New(typ).Elem()
	new(canarytest.Filler).Fill(arg)
	return arg
}

// checkSent compares a request with the path, the query parameters and the body of an operation.
func (m Methods) checkSent(t *testing.T, o reference.Operation, sent *http.Request) {
	t.Helper()
	if m.exception(o.String()) == "" && !isRequestOf(o, sent) {
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
	excepted := func(parameter string) bool { return m.exception(o.String()+"."+parameter) != "" }
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
	m.checkSentBody(t, o, sent)
}

func (m Methods) checkSentBody(t *testing.T, o reference.Operation, sent *http.Request) {
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
		if len(body) > 0 && string(body) != "{}" && m.exception(o.String()+".body") == "" {
			t.Errorf("%s: a body was sent: %s", o, body)
		}
		return
	}
	for _, f := range reference.Components()[component.Key()] {
		if _, ok := fields[f.Name]; !ok && m.exception(f.Key()) == "" {
			t.Errorf("%s: the field %s is not sent", o, f.Name)
		}
		delete(fields, f.Name)
	}
	for name := range fields {
		if m.exception(component.Key()+"."+name) == "" {
			t.Errorf("%s: the field %s, which is sent, is not in the reference", o, name)
		}
	}
}

// checkSignature compares the result of a method with the response of an operation.
func (m Methods) checkSignature(t *testing.T, o reference.Operation, typ reflect.Type, types map[string]reflect.Type) {
	t.Helper()
	if o.Response == "" || o.Response == "any" || typ.NumOut() != 2 || m.exception(o.String()+".response") != "" {
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
	default:
	}
	if want := types[response.Key()]; response.Kind == reference.Component && want != nil && want != got {
		t.Errorf("%s returns %s, want %s; if that is intended, add the exception %q", o, got, want, o.String()+".response")
	}
}

// deprecatedMethods returns the methods with a Deprecated paragraph, as "Type.Method".
func deprecatedMethods(t *testing.T) map[string]bool {
	t.Helper()
	methods := map[string]bool{}
	_, files := ParsePackage(t)
	for name, doc := range MethodDocs(files) {
		methods[strings.TrimPrefix(name, "*")] = isDeprecated(doc)
	}
	return methods
}

// MethodDocs returns the documentation of all methods by "Type.Method", or "*Type.Method" if the
// receiver is a pointer.
func MethodDocs(files []*ast.File) map[string]*ast.CommentGroup {
	docs := map[string]*ast.CommentGroup{}
	for _, file := range files {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
				star, typ := "", f.Recv.List[0].Type
				if pointer, ok := typ.(*ast.StarExpr); ok {
					star, typ = "*", pointer.X
				}
				if generic, ok := typ.(*ast.IndexExpr); ok {
					typ = generic.X
				}
				if name, ok := typ.(*ast.Ident); ok {
					docs[star+name.Name+"."+f.Name.Name] = f.Doc
				}
			}
		}
	}
	return docs
}
