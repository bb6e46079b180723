// APIError.Message: the service's own words.

package labhealth

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/jsonread"
	"github.com/labhealth/labhealth-go/internal/transport"
)

// maxMessage is the length of a message in bytes, without the ellipsis of one that is cut.
const maxMessage = 1000

// Message returns the service's own words: the text of the field "detail" (a string, an object with
// a message, or a list of field errors with their paths), else of "message", "error_message" or
// "error", else a body in plain text. It is one line of printable characters, without surrounding
// quotation marks, cut after 1,000 bytes. It is empty if the body has no such text, or is HTML.
//
// It may contain patient data: show it only to people who may see that, and do not log it.
func (e *APIError) Message() string {
	body := bytes.TrimSpace(e.document())
	switch {
	case len(body) == 0 || e.isHTML():
		return ""
	case !startsJSON(body):
		return printable(plainText(body))
	}
	return printable(messageText(body, 3))
}

// messageText returns the text of a JSON value of an error, down to a depth.
func messageText(value json.RawMessage, depth int) string {
	value = bytes.TrimSpace(value)
	switch {
	case len(value) == 0 || depth < 0 || jsonread.Valid(value) != nil:
	case value[0] == '"':
		var text string
		_ = json.Unmarshal(value, &text) // which is valid
		return strings.TrimSpace(text)
	case value[0] == '[':
		return listText(value, depth)
	case value[0] == '{':
		var object struct {
			Detail       json.RawMessage `json:"detail"`
			ErrorMessage json.RawMessage `json:"error_message"`
			Message      json.RawMessage `json:"message"`
			Msg          json.RawMessage `json:"msg"`
			Error        json.RawMessage `json:"error"`
		}
		if jsonread.Unmarshal(value, &object) != nil {
			return ""
		}
		for _, field := range []json.RawMessage{object.Detail, object.Message, object.ErrorMessage, object.Msg, object.Error} {
			if text := messageText(field, depth-1); text != "" {
				return text
			}
		}
	}
	return ""
}

// listText returns the texts of a list: field errors with their paths, or other values with a text.
func listText(value json.RawMessage, depth int) string {
	var elements []json.RawMessage
	if json.Unmarshal(value, &elements) != nil {
		return ""
	}
	var texts []string
	length := 0
	for _, element := range elements {
		text := messageText(element, depth-1)
		if field, ok := fieldError(element); ok {
			text = strings.Trim(field.Path()+": "+field.Msg, ": ")
		}
		if text != "" {
			texts = append(texts, text)
			length += len(text)
		}
		if length > maxMessage {
			break
		}
	}
	return strings.Join(texts, "; ")
}

// plainText returns a body that is not JSON, if it is text.
func plainText(body []byte) string {
	body = body[:min(len(body), 4*maxMessage)]
	if bytes.IndexByte(body, 0) >= 0 || bytes.HasPrefix(body, []byte(pdfMagic)) || jsonread.Valid(body) == nil {
		return ""
	}
	return string(body)
}

// printable returns text as one line of printable characters, and cuts it after maxMessage bytes.
func printable(text string) string {
	text = strings.ToValidUTF8(text[:min(len(text), 4*maxMessage)], "")
	text = strings.Map(func(r rune) rune {
		if strconv.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return text
}

// isHTML reports whether the body is HTML. The service sends none.
func (e *APIError) isHTML() bool {
	return e != nil && e.received != nil && isHTML(e.document(), e.received.header)
}

// errorType returns the field "error_type" of the detail or of the body, "" if there is none.
func (e *APIError) errorType() string {
	var body struct {
		Detail struct {
			ErrorType string `json:"error_type"`
		} `json:"detail"`
		ErrorType string `json:"error_type"`
	}
	if jsonread.Unmarshal(e.document(), &body) != nil {
		return ""
	}
	if body.Detail.ErrorType != "" {
		return body.Detail.ErrorType
	}
	return body.ErrorType
}

// FromService reports whether the service itself responded, and not a proxy or gateway on the way,
// whose 404 says nothing about an order. The body must be in one of the forms in which the service
// reports errors: a JSON object with a "detail" that has a text, fields or elements, or with an
// "error_type"; one with an "error", a "message" and its status as "status_code"; one with "state":
// "error"; one with "success": false and "failed_sources" or a "user_id"; or a 400 or 409 with the
// ID of the user or team that exists already. Of a body larger than 64 KiB, the start counts. HTML,
// text, nothing, and JSON of another form, such as {"message": "Not Found"} or the problem of RFC
// 9457, are from a proxy.
func (e *APIError) FromService() bool {
	var body serviceError
	received := e.document()
	switch {
	case !bytes.HasPrefix(received, []byte("{")) || e.isProblem():
		return false
	case jsonread.Unmarshal(received, &body) != nil:
		return len(e.received.bytes()) >= transport.MaxErrorBody && startsServiceError(received)
	}
	return body.matches(e.StatusCode) || e.namesConflict()
}

// namesConflict reports whether the body has the ID of the user or team that exists already.
func (e *APIError) namesConflict() bool {
	return (e.StatusCode == http.StatusBadRequest || e.StatusCode == http.StatusConflict) &&
		slices.ContainsFunc(e.conflicts(), func(c conflict) bool { return c.UserID != uuid.Nil || c.TeamID != uuid.Nil })
}

// isProblem reports whether the body is labelled as a problem of RFC 9457, which the service does
// not send.
func (e *APIError) isProblem() bool {
	return strings.HasPrefix(strings.ToLower(e.received.header.Get("Content-Type")), "application/problem+")
}

// startsServiceError reports whether an object, whose end was not read, starts with a detail.
func startsServiceError(received []byte) bool {
	rest, ok := bytes.CutPrefix(jsonread.TrimStart(received[1:]), []byte(`"detail"`))
	rest, colon := bytes.CutPrefix(jsonread.TrimStart(rest), []byte(":"))
	return ok && colon && startsJSON(jsonread.TrimStart(rest))
}

// serviceError has the fields of the forms in which the service reports errors.
type serviceError struct {
	Detail        json.RawMessage `json:"detail"`
	ErrorType     string          `json:"error_type"`
	Error         string          `json:"error"`
	Message       string          `json:"message"`
	StatusCode    int64           `json:"status_code"`
	State         string          `json:"state"`
	Success       *bool           `json:"success"`
	FailedSources json.RawMessage `json:"failed_sources"`
	UserID        json.RawMessage `json:"user_id"`

	// Of a problem of RFC 9457, which has a detail too.
	Type     json.RawMessage `json:"type"`
	Title    json.RawMessage `json:"title"`
	Status   json.RawMessage `json:"status"`
	Instance json.RawMessage `json:"instance"`
}

// matches reports whether the fields are those of one of the forms.
func (b *serviceError) matches(statusCode int) bool {
	switch {
	case b.Type != nil, b.Title != nil, b.Status != nil, b.Instance != nil:
		return false
	case b.ErrorType != "", b.hasDetail(), b.State == "error":
		return true
	case b.Error == "":
		return false
	case b.Message != "" && b.StatusCode == int64(statusCode):
		return true
	}
	return b.Success != nil && !*b.Success && (b.FailedSources != nil || b.UserID != nil)
}

// hasDetail reports whether the detail is a text, an object or a list that is not empty.
func (b *serviceError) hasDetail() bool {
	if !startsJSON(b.Detail) {
		return false
	}
	text, isText := jsonread.String(b.Detail)
	inner := b.Detail[1 : len(b.Detail)-1]
	return isText && strings.TrimSpace(text) != "" || !isText && len(bytes.TrimSpace(inner)) > 0
}
