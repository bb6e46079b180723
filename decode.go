// The step that decodes a response, and what makes one unreadable.

package labhealth

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/jsonread"
	"github.com/labhealth/labhealth-go/internal/transport"
)

// reader is implemented by what a response is decoded into if that is no JSON object or array.
type reader interface {
	read(*transport.Response) error
}

// stream is a reader of a body that is not held in memory.
type stream interface {
	reader
	accepts() string // the media type
	check() error    // why nothing can be read
	// open reads the start of a body of at most limit bytes, and returns a reader of all of it. If
	// it rejects the body, it may return the part that it read.
	open(body io.Reader, limit int64) (all io.Reader, rejected []byte, err error)
}

// decode decodes a 2xx response into r.out.
func (r *request) decode(resp *transport.Response) error {
	if r.errorsIn200 && reportsError(resp.Body) {
		return errReported // even if the rest of it looks like a result
	}
	switch out := r.out.(type) {
	case nil:
		return readNothing(resp)
	case reader:
		return out.read(resp)
	}
	return readJSON(resp, func(document []byte) error {
		if reflect.TypeOf(r.out).Elem().Kind() == reflect.Slice && document[0] != '[' {
			return cmp.Or(jsonread.Valid(document), error(errNoList))
		}
		return decodeValue(document, r.out, func(value []byte) error { return jsonread.Unmarshal(value, r.out) })
	})
}

// complete returns an error if the body of a response is only the start of a document. One that has
// its last bracket, and as many that open as close, is taken for complete without a scan: in rare
// cases, the brackets that are missing are in strings, which decode finds out.
func complete(resp *transport.Response) error {
	document := bytes.TrimRight(jsonread.TrimStart(resp.Body), " \t\r\n")
	if len(document) == 0 {
		return nil
	}
	opening, closing := document[:1], document[len(document)-1:]
	if brackets := string(opening) + string(closing); brackets == "{}" || brackets == "[]" {
		if bytes.Count(document, opening) == bytes.Count(document, closing) {
			return nil
		}
	}
	if err := readJSON(resp, jsonread.Valid); errors.Is(err, transport.ErrTruncated) {
		return err
	}
	return nil
}

// unreadable reports a 2xx response that cannot be used, for a fixed reason.
type unreadable struct {
	reason    string
	cause     error   // nil if there is none
	truncated bool    // another attempt may get the whole response
	failure   Failure // in place of what the cause or the reason tell
}

// kind returns the kind of failure of a reason without a cause.
func (e *unreadable) kind() Failure {
	if e.truncated {
		return cmp.Or(e.failure, FailureTruncated)
	}
	return cmp.Or(e.failure, FailureUnreadable)
}

func (e *unreadable) Error() string        { return e.reason }
func (e *unreadable) Is(target error) bool { return e.truncated && target == transport.ErrTruncated }

var (
	errEmpty    = &unreadable{reason: "it is empty"}
	errHTML     = &unreadable{reason: "it is HTML, not JSON: a proxy sent it, or the base URL is wrong"}
	errNoObject = &unreadable{reason: "it is not a JSON object"}
	// errNoList rejects a 200 response whose body has no list: some deployments report errors that
	// way.
	errNoList = &unreadable{reason: "it has no list"}

	// errReported rejects a 200 response that reports an error. See request.errorsIn200.
	errReported = &unreadable{reason: "it reports an error"}
)

// readJSON decodes the body of a response with unmarshal. It rejects HTML. What looks like JSON is
// read whatever its content type, because some deployments send wrong ones.
func readJSON(resp *transport.Response, unmarshal func([]byte) error) error {
	document := jsonread.TrimStart(resp.Body)
	switch {
	case len(document) == 0:
		return errEmpty
	case isHTML(document, resp.Header):
		return errHTML
	}
	err := unmarshal(document)
	var syntax *jsonread.SyntaxError
	if errors.As(err, &syntax) {
		offset := syntax.Offset + len(resp.Body) - len(document)
		reason := fmt.Sprintf("it is not valid JSON at byte %d: %s", offset, syntax.Reason)
		return &unreadable{reason: reason, truncated: jsonread.Truncated(err)}
	}
	return err
}

// isHTML reports whether a body is HTML, or another document with tags: it looks like one, or its
// header says so and it does not look like JSON.
func isHTML(document []byte, h http.Header) bool {
	return bytes.HasPrefix(document, []byte("<")) ||
		strings.HasPrefix(strings.ToLower(h.Get("Content-Type")), "text/html") && !startsJSON(document)
}

// startsJSON reports whether a body starts as a JSON object, list or string does.
func startsJSON(document []byte) bool {
	return len(document) > 0 && strings.IndexByte(`{["`, document[0]) >= 0
}

// readNothing accepts an empty response, or JSON, which it ignores. Anything else may be the
// response of a proxy.
func readNothing(resp *transport.Response) error {
	if len(jsonread.TrimStart(resp.Body)) == 0 {
		return nil
	}
	return readJSON(resp, jsonread.Valid)
}

// listShaped is implemented by responses that some deployments send as a list. fromList returns the
// documented form of a list, nil if there is none.
type listShaped interface {
	fromList(document []byte, elements []json.RawMessage) []byte
}

// verified is implemented by responses that can be unusable although they are valid JSON objects.
type verified interface{ verify() error }

// requireList returns an error if a response has no list.
func requireList[E any](list []E) error {
	if list == nil {
		return errNoList
	}
	return nil
}

// requireID returns an error if a response has no readable ID of its resource.
func requireID(id uuid.UUID, resource string) error {
	if id == uuid.Nil {
		return &unreadable{reason: "it has no readable " + resource + " id"}
	}
	return nil
}

// decodeValue decodes a document into v with unmarshal and verifies it. The types of this package
// need an object.
func decodeValue(document []byte, v any, unmarshal func([]byte) error) error {
	if v, ok := v.(listShaped); ok && document[0] == '[' {
		var elements []json.RawMessage
		if jsonread.Valid(document) == nil && json.Unmarshal(document, &elements) == nil {
			if object := v.fromList(document, elements); object != nil {
				document = object
			}
		}
	}
	if _, ok := v.(interface{ RawJSON() json.RawMessage }); ok && document[0] != '{' {
		return cmp.Or(jsonread.Valid(document), error(errNoObject))
	}
	if err := unmarshal(document); err != nil {
		return err
	}
	if v, ok := v.(verified); ok {
		return v.verify()
	}
	return nil
}
