package conformance

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/reference"
	"github.com/labhealth/labhealth-go/internal/reference/referencetest"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// apiCall is one call of a method, with the request that it sends and the response that it gets.
type apiCall struct {
	method   string // such as "Orders.Cancel"
	op       string // the operation, such as "POST /v3/order/{order_id}/cancel"
	url      string // path and query of the request, as sent
	body     string // body of the request, as sent; empty for none
	response string // body of a 200 response with every field; empty for none
	// want is the value as JSON, if it is not the response itself: that of an iterator is a list,
	// that of a PDF is the string that was written.
	want string
	args []any // arguments of the method, without the context, the writer of a PDF and the options
}

// apiCalls has every method of the team API that has no literal test elsewhere.
var apiCalls = slices.Concat(teamCalls, orderCalls, labTestCalls, appointmentCalls, userCalls, teamAPICalls, wearableCalls, labCalls)

// testedElsewhere are the methods that make several calls, which other files of this package test.
var testedElsewhere = map[string]string{"Orders.All": "paging_test.go", "Users.All": "paging_test.go", "Users.GetOrCreate": "users_test.go"}

// isPDF reports whether a call streams a PDF.
func (c apiCall) isPDF() bool { return strings.HasPrefix(c.response, "%PDF") }

// call calls the method of the row.
func (c apiCall) call(ctx context.Context, client *labhealth.Client, opts ...labhealth.CallOption) (value any, err error) {
	return callMethod(ctx, client, c.method, c.args, opts...)
}

// callMethod calls a method of a client's service, such as "Orders.Get". The value of an iterator
// is the list of its elements, that of a PDF what was written.
func callMethod(ctx context.Context, client any, name string, args []any, opts ...labhealth.CallOption) (any, error) {
	service, name, _ := strings.Cut(name, ".")
	method := reflect.ValueOf(client).Elem().FieldByName(service).MethodByName(name)
	in := []reflect.Value{reflect.ValueOf(ctx)}
	for _, arg := range args {
		param := method.Type().In(len(in))
		if arg == nil {
			in = append(in, reflect.Zero(param))
			continue
		}
		in = append(in, reflect.ValueOf(arg).Convert(param))
	}
	var pdf bytes.Buffer
	isPDF := method.Type().In(len(in)) == reflect.TypeFor[io.Writer]()
	if isPDF {
		in = append(in, reflect.ValueOf(&pdf))
	}
	for _, opt := range opts {
		in = append(in, reflect.ValueOf(opt))
	}
	out := method.Call(in)
	if out[0].Kind() == reflect.Func {
		return collectAny(out[0])
	}
	err, _ := out[len(out)-1].Interface().(error)
	switch {
	case len(out) == 1:
		return nil, err
	case isPDF && out[0].Int() != int64(pdf.Len()):
		return "another number of bytes", err
	case isPDF:
		return pdf.String(), err
	}
	return out[0].Interface(), err
}

// isRepeatable reports whether a call may be repeated: it is a read, or sends an idempotency key.
func (c apiCall) isRepeatable(t *testing.T) bool {
	client, s := respondingWith(t, 404, "")
	c.call(t.Context(), client)
	return strings.HasPrefix(c.op, "GET ") || s.only(t).Header.Get("X-Idempotency-Key") != ""
}

// header is what every request of the call has.
func (c apiCall) header() http.Header {
	h := readHeader.Clone()
	if c.isPDF() {
		h.Set("Accept", "application/pdf")
	}
	switch {
	case strings.HasPrefix(c.body, `[{"name"`): // the parts of a form
		h.Set("Content-Type", formType)
	case c.body != "":
		h.Set("Content-Type", "application/json")
	}
	return h
}

// isNothing reports whether the value beside an error is one that a program cannot take for a
// result.
func isNothing(value any) bool {
	if value == nil {
		return true
	}
	v := reflect.ValueOf(value)
	return v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0
}

// collectAny returns the elements of an iterator, or its error.
func collectAny(all reflect.Value) (any, error) {
	list := reflect.MakeSlice(reflect.SliceOf(all.Type().In(0).In(0)), 0, 0)
	for e, err := range all.Seq2() {
		if !err.IsNil() {
			return nil, err.Interface().(error)
		}
		list = reflect.Append(list, e)
	}
	return list.Interface(), nil
}

// forEachCall runs a test for each row.
func forEachCall(t *testing.T, f func(*testing.T, apiCall)) {
	for i, c := range apiCalls {
		t.Run(c.method+"/"+strconv.Itoa(i), func(t *testing.T) { f(t, c) })
	}
}

// A call sends the literal request and returns every field of the response.
func TestCalls(t *testing.T) {
	forEachCall(t, func(t *testing.T, c apiCall) {
		client, s := respondingWith(t, 200, c.response)
		value, err := c.call(t.Context(), client)
		if err != nil {
			t.Fatal(err)
		}
		got := s.only(t)
		method, _, _ := cutOp(c.op)
		if contentType := got.Header.Get("Content-Type"); strings.HasPrefix(contentType, formType) {
			got.Body = formParts(t, contentType, got.Body)
			got.Header.Set("Content-Type", formType)
		}
		got.Header.Del("X-Idempotency-Key")
		got.Header.Del("X-Idempotency-Error")
		equal(t, []any{method, testURL + c.url, c.header()}, []any{got.Method, got.URL, got.Header})
		if c.body == "" || got.Body == "" {
			equal(t, c.body, got.Body)
		} else {
			equal(t, jsonData(t, c.body), jsonData(t, got.Body))
		}
		if c.response == "" {
			return
		}
		want := c.want
		if want == "" {
			want = c.response
		}
		equal(t, jsonData(t, want), jsonData(t, mustEncode(t, value)))
		checkMalformed(t, value)
		// Without the received JSON, what is encoded are the fields of the types.
		decoded := mustEncode(t, referencetest.WithoutReceived(value))
		for _, problem := range referencetest.LostFields(jsonData(t, want), jsonData(t, decoded)) {
			t.Error(problem)
		}
	})
	t.Logf("%d calls", len(apiCalls))
}

// checkMalformed reports the malformed fields of a value or its elements.
func checkMalformed(t *testing.T, value any) {
	t.Helper()
	if kept, ok := value.(interface{ Malformed() []labhealth.Malformed }); ok {
		equal(t, 0, len(kept.Malformed()))
		return
	}
	if v := reflect.ValueOf(value); v.Kind() == reflect.Slice {
		for i := range v.Len() {
			e := v.Index(i)
			if e.Kind() != reflect.Pointer && e.CanAddr() {
				e = e.Addr()
			}
			if _, ok := e.Interface().(interface{ Malformed() []labhealth.Malformed }); ok {
				checkMalformed(t, e.Interface())
			}
		}
	}
}

// Every rejection becomes an error with its class and outcome.
func TestCallsRejected(t *testing.T) {
	forEachCall(t, func(t *testing.T, c apiCall) {
		for _, r := range rejections {
			client, s := respondingWith(t, r.status, r.body, r.header...)
			var resp labhealth.Response
			value, err := c.call(t.Context(), client, labhealth.WithResponse(&resp))
			if !isNothing(value) {
				t.Errorf("%s: %v beside an error", r.name, value)
			}
			e := apiError(t, err)
			equal(t, "labhealth: "+c.op+": "+r.textOf(c.op), e.Error())
			equal(t, e.Error(), errorText(err))
			equal(t, c.op, e.Op)
			equal(t, r.body, string(e.Body()))
			equal(t, r.body, string(resp.Body))
			equal(t, r.outcome(), labhealth.OutcomeOf(err))
			s.only(t)
		}
	})
}

// The error of an unreadable response names the operation and quotes nothing.
func TestCallsUnreadable(t *testing.T) {
	tests := []struct{ name, body, contentType, text string }{
		{"HTML", "<html>Ada Example</html>", "text/html", "it is HTML, not JSON: a proxy sent it, or the base URL is wrong"},
		{"empty", "", "application/json", "it is empty"},
		{"null", "null", "application/json", "it is not a JSON object"},
		{"text", `"Ada Example"`, "application/json", "it is not a JSON object"},
		{"cut", `{"data":[{"id":"`, "application/json", "it is not valid JSON at byte 16: unexpected end of JSON"},
		{"two", `{}{}`, "application/json", "it is not valid JSON at byte 2: data after the JSON value"},
		{"not UTF-8", "{\"a\":\"\xff\"}", "application/json", "it is not valid JSON at byte 6: invalid UTF-8"},
	}
	forEachCall(t, func(t *testing.T, c apiCall) {
		for _, test := range tests {
			want := test.text
			notDocumented := test.name == "empty" || test.name == "null" || test.name == "text"
			switch {
			case c.response == "" && notDocumented:
				continue // the response is ignored
			case c.isPDF() && test.name == "empty":
				want = "it ended before the PDF began"
			case c.isPDF():
				want = "it is not a PDF"
			case strings.HasPrefix(strings.TrimSpace(c.response), "[") && notDocumented && test.name != "empty":
				want = "it has no list"
			}
			client, _ := respondingWith(t, 200, test.body, "Content-Type", test.contentType)
			value, err := c.call(t.Context(), client)
			if !isNothing(value) {
				t.Errorf("%s: %v beside an error", test.name, value)
			}
			equal(t, unreadableText(c.op, want, err), errorText(err))
		}
	})
}

// Reads are repeated, writes are not, unless they have an idempotency key.
func TestCallsRepeated(t *testing.T) {
	forEachCall(t, func(t *testing.T, c apiCall) {
		want := 1
		if c.isRepeatable(t) {
			want = 3
		}
		for _, r := range []reply{{status: 502}, {err: io.ErrUnexpectedEOF}} {
			client, s := scripted(t, []reply{r, r, r}, labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 3, BaseWait: 1, MaxWait: 1}))
			_, err := c.call(t.Context(), client)
			equal(t, want, len(s.sent))
			equal(t, labhealth.OutcomeUnknown, labhealth.OutcomeOf(err))
		}
	})
}

// callFaults are the faults of the fault table that depend on the operation.
func callFaults(c apiCall) []faultRow {
	rows := []faultRow{
		{"none", 1, 0, nil, result{1, 1, applied}, result{1, 1, applied}},
		{"closed", 1, 1, func(x exchange) bool { x.raw().Close(); return true }, result{2, 2, applied}, result{1, 1, unknown}},
		{"closed, always", 1, -1, func(x exchange) bool { x.raw().Close(); return true }, result{3, 3, unknown}, result{1, 1, unknown}},
		{"reset", 1, 1, func(x exchange) bool {
			conn := x.raw()
			tcpOf(conn).SetLinger(0)
			tcpOf(conn).Close()
			return true
		}, result{2, 2, applied}, result{1, 1, unknown}},
		{"429", 1, 1, respond(429, `{}`), result{2, 1, applied}, result{2, 1, applied}},
		{"429, always", 1, -1, respond(429, `{}`), result{3, 0, rejected}, result{3, 0, rejected}},
		{"500", 1, 1, respond(500, "Internal Server Error"), result{2, 2, applied}, result{1, 1, unknown}},
		{"503, always", 1, -1, respond(503, `{}`), result{3, 3, unknown}, result{1, 1, unknown}},
		{"422", 1, 1, respond(422, `{}`), result{1, 0, rejected}, result{1, 0, rejected}},
		{"302 to the same origin", 1, 1, respond(302, "", "Location", "/elsewhere"), result{1, 2, applied}, result{1, 1, unknown}},
		{"307 to elsewhere", 1, 1, respond(307, "", "Location", "https://elsewhere.example.com/"), result{1, 1, unknown}, result{1, 1, unknown}},
	}
	if c.response != "" && !c.isPDF() {
		rows = append(rows, faultRow{"half a response", 1, 1, func(x exchange) bool {
			x.Header().Set("Content-Type", "application/json")
			x.Header().Set("Content-Length", strconv.Itoa(len(c.response)))
			io.WriteString(x, c.response[:len(c.response)/2])
			http.NewResponseController(x.ResponseWriter).Flush()
			panic(http.ErrAbortHandler)
		}, result{2, 2, applied}, result{1, 1, applied}})
	}
	return rows
}

// The fault table holds for every operation: a write reaches the service at most once.
func TestCallsFaults(t *testing.T) {
	forEachCall(t, func(t *testing.T, c apiCall) {
		repeatable := c.isRepeatable(t)
		for _, row := range callFaults(c) {
			srv := startFaultsWith(t, nil, false, row.bad, row.inject, c.response)
			var r labhealth.Response
			client := faultClient(t, srv.URL, nil)
			_, err := c.call(t.Context(), client, labhealth.WithResponse(&r))
			client.CloseIdleConnections()
			srv.Close()
			want := row.write
			// A key does not make a write follow a redirect, or repeat what took effect.
			isSame := strings.HasPrefix(row.fault, "half") || strings.HasPrefix(row.fault, "302")
			if repeatable && (strings.HasPrefix(c.op, "GET ") || !isSame) {
				want = row.get
			}
			if got := (result{int64(r.Attempts), srv.commits.Load(), labhealth.OutcomeOf(err)}); got != want {
				t.Errorf("%s: %v, want %v: %v", row.fault, got, want, err)
			}
		}
	})
}

// Every method of every service has a literal test, and every operation of the reference a method
// with one.
func TestCallsComplete(t *testing.T) {
	methods, ops := map[string]bool{}, map[string]bool{}
	for _, c := range apiCalls {
		methods[c.method], ops[c.op] = true, true
	}
	for field := range reflect.TypeFor[labhealth.Client]().Fields() {
		if !field.IsExported() {
			continue
		}
		for method := range field.Type.Methods() {
			name := field.Name + "." + method.Name
			if !methods[name] && testedElsewhere[name] == "" {
				t.Errorf("%s has no row", name)
			}
			delete(methods, name)
		}
	}
	for name := range methods {
		t.Errorf("%s does not exist", name)
	}
	t.Logf("%d operations", len(ops))
}

// The embedded service has every operation of the reference.
func TestReferenceOperationsAreServed(t *testing.T) {
	srv := labhealthtest.NewServer(t)
	served := 0
	for _, o := range reference.Operations() {
		path := o.Path
		for _, p := range o.Parameters {
			if p.In == "path" {
				path = strings.Replace(path, "{"+p.Name+"}", pathValue(p, o.API), 1)
			}
		}
		req := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), o.Method, srv.URL+path, nil))
		req.Header.Set("X-Service-Api-Key", srv.APIKey)
		req.Header.Set("X-Management-Key", srv.OrgKey)
		resp := must[*http.Response](t)(http.DefaultClient.Do(req))
		body := must[[]byte](t)(io.ReadAll(resp.Body))
		resp.Body.Close()
		if resp.StatusCode == http.StatusMethodNotAllowed || strings.Contains(string(body), `"Not Found"`) {
			t.Errorf("%s is not served: %d %s", o, resp.StatusCode, body)
			continue
		}
		served++
	}
	http.DefaultClient.CloseIdleConnections()
	t.Logf("%d of %d operations", served, len(reference.Operations()))
}

// pathValue returns a valid value of a path parameter.
func pathValue(p reference.Parameter, api string) string {
	typ := reference.ParseType(api, p.Type)
	switch {
	case len(typ.Values) > 0:
		return typ.Values[0]
	case p.Type == "integer":
		return "1"
	}
	return orderID.String()
}
