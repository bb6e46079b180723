package attack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/management"
)

// call is a method of a client. It is called with the arguments of its types.
type call struct {
	name     string // such as "Orders.Import"
	method   string // of HTTP
	response string // with $MARK where the mark of the commit is, and $ID for an ID
}

func (c *call) isWrite() bool { return c.method != http.MethodGet && c.method != http.MethodHead }

func (c *call) contentType() string {
	if strings.HasPrefix(c.response, "%PDF") {
		return "application/pdf"
	}
	return "application/json"
}

func (c *call) body(mark string) string {
	return strings.NewReplacer("$MARK", mark+"!", "$ID", anID.String()).Replace(c.response)
}

// takesKey reports whether the method accepts an idempotency key.
func (c *call) takesKey() bool {
	return c.hasKey() || slices.Contains([]string{"Orders.Create", "Orders.CreateTestkit", "Appointments.Book"}, c.name)
}

// hasKey reports whether the method always has an idempotency key.
func (c *call) hasKey() bool { return c.name == "UnmatchedResults.CreateTest" }

// isIterator reports whether a call sends a request for each page, of which the outcome is that of
// the last one.
func (c *call) isIterator() bool {
	return strings.Contains(c.name, ".All") || c.name == "Wearables.SamplePages"
}

// noCursor is the end of the last page of a list.
const noCursor = `"next_cursor":null`

// hasCursor reports whether a call is an iterator over pages with cursors.
func (c *call) hasCursor() bool { return c.isIterator() && strings.Contains(c.response, noCursor) }

// isManagement reports whether the method belongs to the client of package management.
func (c *call) isManagement() bool {
	service, _, _ := strings.Cut(c.name, ".")
	_, ok := reflect.TypeFor[management.Client]().FieldByName(service)
	return ok || strings.HasPrefix(c.name, "management Do")
}

var callsByName = func() map[string]*call {
	byName := map[string]*call{}
	for i := range calls {
		byName[calls[i].name] = &calls[i]
	}
	return byName
}()

func callNamed(name string) *call {
	if c := callsByName[name]; c != nil {
		return c
	}
	return &call{}
}

var anID = uuid.MustParse("3f0c9a52-7d1e-4b6a-9c58-2e41d7a6b803")

// doer is a client.
type doer interface {
	Do(ctx context.Context, method, path string, body, out any, opts ...labhealth.CallOption) error
	CloseIdleConnections()
}

// invoke calls the method of a client.
func (c *call) invoke(ctx context.Context, client doer, opts ...labhealth.CallOption) (value any, err error) {
	if _, method, ok := strings.Cut(c.name, "Do "); ok {
		var out json.RawMessage
		var content any
		if c.isWrite() {
			content = map[string]string{"name": patientCanary}
		}
		err := client.Do(ctx, method, "/v3/anything/"+anID.String(), content, &out, opts...)
		return out, err
	}
	service, name, _ := strings.Cut(c.name, ".")
	method := reflect.ValueOf(client).Elem().FieldByName(service).MethodByName(name)
	var written bytes.Buffer
	var arguments []reflect.Value
	for in := range method.Type().Ins() {
		switch in {
		case reflect.TypeFor[context.Context]():
			arguments = append(arguments, reflect.ValueOf(ctx))
		case reflect.TypeFor[io.Writer]():
			arguments = append(arguments, reflect.ValueOf(&written))
		case reflect.TypeFor[[]labhealth.CallOption]():
			arguments = append(arguments, reflect.ValueOf(opts))
		default:
			arguments = append(arguments, argumentOf(in))
		}
	}
	return resultOf(ctx, method.CallSlice(arguments), &written)
}

// thinkTime is how long the loop over an iterator takes for an element, so that the next page can
// be requested meanwhile.
const thinkTime = time.Millisecond

// resultOf returns what a method returned, and the elements of what is an iterator.
func resultOf(ctx context.Context, results []reflect.Value, written *bytes.Buffer) (value any, err error) {
	last := results[len(results)-1]
	switch {
	case len(results) == 2 && written.Len() > 0:
		err, _ = last.Interface().(error)
		return written.String(), err
	case len(results) == 2:
		err, _ = last.Interface().(error)
		if value = results[0].Interface(); results[0].IsZero() {
			value = nil
		}
		return value, err
	case last.Type() == reflect.TypeFor[error]():
		err, _ = last.Interface().(error)
		return nil, err
	}
	if source, ok := last.Interface().(func(context.Context) (labhealth.Credentials, error)); ok {
		credentials, err := source(ctx)
		if err != nil {
			return nil, err
		}
		return credentials.Token, nil
	}
	var list []any
	for element, err := range last.Seq2() {
		if err, _ := err.Interface().(error); err != nil {
			return list, err
		}
		list = append(list, element.Interface())
		time.Sleep(thinkTime)
	}
	return list, nil
}

// argumentOf returns a valid argument of a type.
func argumentOf(t reflect.Type) reflect.Value {
	for _, argument := range arguments {
		if v := reflect.ValueOf(argument); v.Type() == t {
			return v
		}
	}
	return reflect.Zero(t)
}

// encoded returns what identifies a value: it has the mark of its commit.
func encoded(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case json.RawMessage:
		return string(v)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint("cannot be encoded: ", err)
	}
	return string(text)
}

// The table has every method of both clients.
func TestCallsComplete(t *testing.T) {
	rows := map[string]bool{}
	for _, c := range calls {
		if rows[c.name] {
			t.Errorf("%s has two rows", c.name)
		}
		rows[c.name] = true
	}
	for _, client := range []reflect.Type{reflect.TypeFor[labhealth.Client](), reflect.TypeFor[management.Client]()} {
		for field := range client.Fields() {
			if !field.IsExported() {
				continue
			}
			for method := range field.Type.Methods() {
				name := field.Name + "." + method.Name
				if !rows[name] {
					t.Errorf("%s has no row", name)
				}
				delete(rows, name)
			}
		}
	}
	for name := range rows {
		if !strings.Contains(name, "Do ") {
			t.Errorf("%s does not exist", name)
		}
	}
}
