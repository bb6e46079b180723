package labhealth

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// maxMessage is the length of a message in bytes, without the ellipsis of one that is cut.
const maxMessage = 1000

// Message returns the service's own words: the text of the field "detail" (a string, an object with
// a message, or a list of field errors with their paths), else of "message", "error_message" or
// "error", else a body in plain text. It is one line of printable characters, without quotation
// marks around it, and at most 1,000 bytes of it. It is empty if the body has no such text, or is
// HTML.
//
// It may quote the patient: show it to someone who may know, but do not log it.
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

// FromService reports whether the body is in one of the forms in which the service reports errors:
// a JSON object with a "detail" or an "error_type", or one that repeats its status as
// "status_code", or "success": false, beside its "error". A proxy or gateway on the way responds
// with HTML, text, nothing, or JSON of another form, such as {"message": "Not Found"}. What it
// says is not about the resource: its 404 does not mean that an order does not exist.
func (e *APIError) FromService() bool {
	var body struct {
		Detail     json.RawMessage `json:"detail"`
		ErrorType  string          `json:"error_type"`
		Error      string          `json:"error"`
		StatusCode int64           `json:"status_code"`
		Success    *bool           `json:"success"`
		// Of a problem of RFC 9457, which has a detail too.
		Title  json.RawMessage `json:"title"`
		Status json.RawMessage `json:"status"`
	}
	received := e.document()
	if !bytes.HasPrefix(received, []byte("{")) || jsonread.Unmarshal(received, &body) != nil {
		return false
	}
	switch {
	case body.ErrorType != "":
		return true
	case body.Title != nil || body.Status != nil:
		return false
	case body.Detail != nil:
		return string(body.Detail) != "null"
	}
	return body.Error != "" && (body.StatusCode == int64(e.StatusCode) || body.Success != nil && !*body.Success)
}
