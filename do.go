// Do, the call of any endpoint that has no method yet.

package labhealth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/labhealth/labhealth-go/internal/jsonread"
	"github.com/labhealth/labhealth-go/internal/transport"
)

// Do calls any endpoint of the team API, with the same guarantees as the methods. path starts with
// / and its values are escaped (see [net/url.PathEscape]); [WithQuery] adds query parameters.
//
// body is nil for no body, a []byte or json.RawMessage for JSON that is sent unchanged, or a value
// for encoding/json. out is nil to ignore the body of the response, a *json.RawMessage for the
// received JSON, or a pointer for encoding/json. Responses of this package's types are decoded and
// verified as by the methods.
//
// A 200 response of a path below /v2/link that reports an error is an *[APIError], as for
// [LinkService].
//
// In errors, logs and observers the operation is that of the method with the same path, such as
// "GET /v3/order/{order_id}", or, if there is none, "GET (Do)".
func (c *Client) Do(ctx context.Context, method, path string, body, out any, opts ...CallOption) error {
	return c.shared().doPath(ctx, method, path, body, out, opts)
}

func (c *core) doPath(ctx context.Context, method, path string, body, out any, opts []CallOption) error {
	if !slices.Contains(doMethods, method) {
		return withOp("Do", invalid("must be GET, HEAD, POST, PUT, PATCH or DELETE", "method"))
	}
	if err := c.usable(ctx); err != nil {
		return withOp(method+" (Do)", err)
	}
	withoutQuery, _, _ := strings.Cut(path, "?") // a query is an error, whose operation may be known
	encoded, err := encodeAny(method, body)
	r := request{
		op: c.operationOf(method, withoutQuery), out: &anyOut{method, out},
		target: &target{method, path, cmp.Or(checkPath(path), err, checkOut(out))},
	}
	if encoded != nil {
		r.body = json.RawMessage(encoded)
	}
	r.errorsIn200 = strings.Contains(r.op, linkPath) || strings.HasPrefix(path, linkPath)
	return c.do(ctx, r, opts)
}

// linkPath is the prefix of the operations that may report an error with status 200.
const linkPath = "/v2/link/"

// target is the endpoint of a call of Do.
type target struct {
	method, path string
	misuse       error // why the call cannot be sent; nil if it can
}

// anyOut is what Do decodes a response into. The value is nil for a response that is ignored.
type anyOut struct {
	method string
	value  any
}

func checkOut(out any) error {
	if v := reflect.ValueOf(out); out != nil && (v.Kind() != reflect.Pointer || v.IsNil()) {
		return invalid("must be nil or a pointer that is not nil", "out")
	}
	return nil
}

func (o *anyOut) read(resp *transport.Response) error {
	if resp.StatusCode == http.StatusNoContent || o.method == http.MethodHead {
		return nil
	}
	if o.value == nil {
		return readNothing(resp)
	}
	resp.Retain() // a method of the value may keep a part
	return readJSON(resp, func(document []byte) error {
		if err := jsonread.Valid(document); err != nil {
			return err
		}
		return decodeValue(document, o.value, func(b []byte) error {
			if json.Unmarshal(b, o.value) != nil { // whose error quotes the response
				return &unreadable{reason: "it does not fit the Go type it is to be read into"}
			}
			return nil
		})
	})
}

var doMethods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
}

// operationOf returns the operation that has a method and the given path, or that of Do. It never
// holds a value of the path.
func (c *core) operationOf(method, path string) string {
	op, most := method+" (Do)", -1
	for _, candidate := range c.operations {
		verb, documented, _ := strings.Cut(candidate, " ")
		if verb != method {
			continue
		}
		if n := matchPath(cmp.Or(c.paths[candidate], documented), path); n > most {
			op, most = candidate, n
		}
	}
	return op
}

// matchPath returns how many segments of path are those of the template, or -1 if the path has
// another form.
func matchPath(template, path string) int {
	if strings.Count(template, "/") != strings.Count(path, "/") {
		return -1
	}
	same := 0
	for more := true; more; {
		var want, got string
		want, template, more = strings.Cut(template, "/")
		got, path, _ = strings.Cut(path, "/")
		switch name, isParameter := strings.CutPrefix(want, "{"); {
		case want == got:
			same++
		case !isParameter, got == "", !isValueOf(strings.TrimSuffix(name, "}"), got):
			return -1
		}
	}
	return same
}

// isValueOf reports whether a segment looks like a value of the parameter. An ID has a digit: a
// segment without one may be part of another operation.
func isValueOf(parameter, segment string) bool {
	return !strings.HasSuffix(parameter, "_id") || parameter == "client_user_id" || strings.ContainsAny(segment, "0123456789")
}

// checkPath validates the path of a call of Do.
func checkPath(path string) error {
	switch {
	case strings.Contains(path, "://"):
		return invalid("must start with /: the base URL is put before it", "path")
	case !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//"):
		return invalid("must start with one /", "path")
	case strings.ContainsAny(path, "?#"):
		return invalid("must have no query and no fragment: use WithQuery", "path")
	case !isPath(path):
		return invalid("must be escaped and have no . or .. segments", "path")
	}
	return nil
}

// encodeAny returns the JSON of a body that was passed to Do, nil for none.
func encodeAny(method string, body any) ([]byte, error) {
	var encoded []byte
	switch b := body.(type) {
	case nil:
		return nil, nil
	case []byte:
		encoded = b
	case json.RawMessage:
		encoded = b
	default:
		var err error
		if encoded, err = json.Marshal(b); err != nil {
			return nil, invalid("cannot be written as JSON: "+whyNoJSON(err), "body")
		}
	}
	if method == http.MethodGet || method == http.MethodHead {
		return nil, invalid("must be nil for GET and HEAD", "body")
	}
	return encoded, nil
}

// whyNoJSON returns why encoding/json cannot encode a value. The messages of that package may quote
// the value.
func whyNoJSON(err error) string {
	if unsupported, ok := errors.AsType[*json.UnsupportedTypeError](err); ok {
		return "it has a " + unsupported.Type.String()
	}
	if isA[*json.UnsupportedValueError](err) {
		return "it has a cycle, or a number that is not finite"
	}
	return "a MarshalJSON or MarshalText method failed"
}
