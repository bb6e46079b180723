// The service's ID of a request, if it looks like one.

package transport

import (
	"bytes"
	"net/http"
	"strings"
)

// RequestID returns the service's ID of a request, or "" if h has none. It appears in messages,
// logs and traces, so anything that does not look like an ID is ignored: names, dates, phone
// numbers.
func RequestID(h http.Header) string {
	for _, name := range [...]string{"Traceresponse", "X-Request-Id"} {
		if id := h.Get(name); isRequestID(id) {
			return id
		}
	}
	return ""
}

const (
	digits     = "0123456789"
	lowerCase  = "abcdefghijklmnopqrstuvwxyz"
	upperCase  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	hexLetters = "abcdefABCDEF"

	longID = 16 // shorter IDs are counters, such as req-12
)

// isRequestID reports whether s is an ID: a UUID, a trace context, or words of random letters and
// digits. A word without a digit is a prefix of at most three letters, or hexadecimal.
func isRequestID(s string) bool {
	if len(s) > 128 || !strings.ContainsAny(s, digits) || strings.Trim(s, lowerCase+upperCase+digits+"_-.") != "" {
		return false
	}
	isNumber := strings.Trim(s, digits+"_-.") == ""
	if len(s) < longID && (isNumber || strings.ContainsAny(s, upperCase)) {
		return false
	}
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool { return strings.ContainsRune("_-.", r) }) {
		switch {
		case len(s) < longID && len(word) > 4,
			len(word) > 3 && !strings.ContainsAny(word, digits) && strings.Trim(word, hexLetters) != "":
			return false
		}
	}
	return true
}

// requestID returns the [RequestID] of a response, unless the request had it already: a service
// that echoes may send the key or an ID of the caller. X-Request-Id and a trace are meant to be
// echoed.
func (c *call) requestID(received http.Header) string {
	id := RequestID(received)
	if id == "" || strings.Contains(c.request.URL, id) || bytes.Contains(c.request.Body, []byte(id)) {
		return ""
	}
	for name, values := range c.sent {
		for _, value := range values {
			_, token, _ := strings.Cut(value, " ") // after "Bearer"
			switch {
			case name == "X-Request-Id", name == "Traceparent", value == "":
			case strings.Contains(value, id), strings.Contains(id, value), token != "" && strings.Contains(id, token):
				return ""
			}
		}
	}
	return id
}
