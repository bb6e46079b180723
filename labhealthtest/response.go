// Responses and rejections.

package labhealthtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
)

// response is an HTTP response. It is also the error of an operation that rejects its request.
type response struct {
	statusCode  int
	body        []byte
	contentType string // application/json if empty
	allow       string
	trace       string
}

// Error returns the text of the status code.
func (r *response) Error() string { return http.StatusText(r.statusCode) }

// reject returns an error response in the usual format of the service.
func reject(statusCode int, detail any) error {
	return &response{statusCode: statusCode, body: encode(map[string]any{"detail": detail})}
}

var (
	noContent      = &response{statusCode: http.StatusNoContent}
	errInvalidBody = reject(http.StatusBadRequest, "There was an error parsing the body")
	// errInternal is the response of the service where its own validation is incomplete.
	errInternal error = &response{
		statusCode:  http.StatusInternalServerError,
		contentType: "text/plain; charset=utf-8",
		body:        []byte("Internal Server Error"),
	}
)

// respond returns the response of an operation. The result is a *response or the body of a 200.
func respond(result any, err error) response {
	var r *response
	if errors.As(err, &r) {
		return *r
	}
	if r, ok := result.(*response); ok {
		return *r
	}
	return response{statusCode: http.StatusOK, body: encode(result)}
}

func (r response) write(w http.ResponseWriter) {
	h := w.Header()
	if r.contentType == "" {
		r.contentType = "application/json"
	}
	h.Set("Content-Type", r.contentType)
	h.Set("Content-Length", strconv.Itoa(len(r.body)))
	h.Set("Traceresponse", r.trace)
	if r.allow != "" {
		h.Set("Allow", r.allow)
	}
	w.WriteHeader(r.statusCode)
	w.Write(r.body)
}

// encode returns the JSON of v as the service writes it: compact, with <, > and & unescaped.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return []byte("null") // The values of this package are always valid.
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// contentTypeOf returns the content type of a body that a test provides.
func contentTypeOf(body string) string {
	if json.Valid([]byte(body)) {
		return "application/json"
	}
	return "text/plain; charset=utf-8"
}
