package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of the partial "json". Bodies are of any size and depth.
const (
	maxJSONLines  = 2000
	maxJSONToken  = 2000 // bytes of one string, number or line of text
	maxJSONIndent = 40   // levels; deeper lines are not indented further
	maxInline     = 110  // bytes of an object that is shown on one line
)

// mask is shown in place of a hidden value. It has the same length for all values.
const mask = "•••••"

// PatientFields are the names of the known fields whose values are hidden until they are asked for,
// with everything inside them. They are the fields that the library never prints: what names,
// locates or describes a patient, and what was measured by a lab. Only sample_id is shown, because
// applications find their orders by it. The last lines are the secrets of teams.
var PatientFields = set(
	"patient_details", "patient_address", "patient", "patient_id", "physician", "physicians", "ordering_physician",
	"first_name", "last_name", "dob", "date_of_birth", "fallback_birth_date", "gender", "phone_number", "phone", "email", "medical_proxy",
	"race", "ethnicity", "sexual_orientation", "gender_identity", "household_income", "household_size",
	"receiver_name", "address", "first_line", "second_line", "zip", "zip_code", "lat", "lng",
	"appointment_notes", "access_notes", "notes", "clinical_notes", "note", "clinical_information", "icd_codes", "passthrough", "npi", "requisition_form_url", "shipping_details", "shipping_address",
	"outbound_tracking_number", "outbound_tracking_url", "inbound_tracking_number", "inbound_tracking_url",
	"health_insurance", "insurance", "member_id", "group_id", "guarantor", "responsible_party", "signature_image", "aoe_answers",
	"specimen_number", "external_user_id", "result",
	"patient_first_name", "patient_last_name", "patient_signature_image", "front_image", "back_image", "birth_date", "sex", "fax_number",
	"first_line_address", "zipcode", "location", "map", "polyline", "summary_polyline", "avatar", "title", "description", "note", "content",
	"clinical_information", "default_clinical_notes", "assessment_plan", "diagnosis_codes", "icd_codes", "sample_information", "answer", "answers",
	"responsible_details", "insurance_id", "external_id", "account_number", "test_result", "device_id", "app_id", "source_device_id", "source_app_id",
	"error_message", "error_details",
	"access_token", "api_key", "api_keys", "client_secret", "client_secret_hash", "connection_string", "credentials", "key", "secret",
	"webhook_secret", "webhook_secret_key", "webhook_secret_token", "webhook_token",
)

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, name := range names {
		m[name] = true
	}
	return m
}

// jsonOptions configures viewJSON.
type jsonOptions struct {
	// Reveal shows the hidden values.
	Reveal bool
	// HideAll hides all values: the document is not what was expected.
	HideAll bool
	// Kept are the malformed and unknown fields by their path, such as "events.1.created_at", with
	// what is said of them. Their values are hidden too.
	Kept map[string]string
	// MaxLines is the number of lines that are shown; 0 means maxJSONLines.
	MaxLines int
}

// jsonView is the data of the partial "json": a body, or the difference of two.
type jsonView struct {
	Lines  []jsonLine
	More   int    // lines that are not shown
	Hidden bool   // whether a value is hidden
	Text   bool   // whether the body is not JSON
	Same   bool   // two bodies do not differ
	Note   string // why two bodies were not compared
}

// jsonLine is a line of a body. Op is del, ins, fold or empty.
type jsonLine struct {
	Tokens []jsonToken
	Kept   string // what is said of a field that is malformed or unknown, and kept by the library
	Op     string
}

// jsonToken is a piece of a line. Class is k (key), s (string), n (number, true, false, null), p
// (punctuation), pii-m (hidden value) or empty. Mark says that it differs from the other body.
type jsonToken struct {
	Class, Text string
	Mark        bool
}

// viewJSON turns a body into lines of tokens, indented; short objects and arrays are on one line
// each. A body that is not JSON is shown as text. Because its structure is unknown, all of it is
// hidden.
func viewJSON(body []byte, o jsonOptions) jsonView {
	o.MaxLines = cmp.Or(o.MaxLines, maxJSONLines)
	s := &jsonWriter{options: o}
	var indented bytes.Buffer
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		s.view.Text = true
	case json.Indent(&indented, body, "", "") == nil:
		s.write(bytes.Split(bytes.TrimSpace(indented.Bytes()), []byte("\n")))
	case !o.Reveal:
		s.view.Text, s.view.Hidden = true, true
		s.token("pii-m", fmt.Sprintf("%s %s bytes", mask, number(len(body))))
		s.endLine()
	default:
		s.view.Text = true
		for line := range bytes.Lines(body) {
			if len(s.view.Lines) == o.MaxLines {
				s.view.More++
				continue
			}
			s.token("", shorten(bytes.TrimRight(line, "\r\n")))
			s.endLine()
		}
	}
	return s.view
}

// jsonWriter writes the lines of a document in which each key, value and end of an object or array
// has its own line.
type jsonWriter struct {
	options jsonOptions
	view    jsonView
	line    jsonLine
	levels  []jsonLevel
}

// jsonLevel is an object or an array that is open.
type jsonLevel struct {
	array  bool
	index  int
	name   string // of the field whose value it is; the elements of an array have it too
	path   string
	hidden bool
}

func (s *jsonWriter) write(lines [][]byte) {
	for len(lines) > 0 && len(s.view.Lines) < s.options.MaxLines {
		depth := len(s.levels)
		if isEnd(lines[0]) {
			depth--
		}
		s.token("", strings.Repeat("  ", min(depth, maxJSONIndent)))
		n := inlineLength(lines)
		for i, line := range lines[:n] {
			if i > 1 && i < n-1 {
				s.token("p", " ")
			}
			s.element(line)
		}
		s.endLine()
		lines = lines[n:]
	}
	s.view.More = len(lines)
}

// inlineLength returns how many lines are shown on one: those of an object or array that has no
// other one inside and is short, or else the first.
func inlineLength(lines [][]byte) int {
	if !isStart(lines[0]) {
		return 1
	}
	size := 0
	for i, line := range lines[1:] {
		size += len(line)
		switch {
		case size > maxInline || isStart(line) || bytes.HasSuffix(line, []byte("{}")) || bytes.HasSuffix(line, []byte("[]")):
			return 1
		case isEnd(line):
			return i + 2
		}
	}
	return 1
}

func isStart(line []byte) bool {
	last := line[len(line)-1]
	return last == '{' || last == '['
}

func isEnd(line []byte) bool { return line[0] == '}' || line[0] == ']' }

// element adds the tokens of a line.
func (s *jsonWriter) element(line []byte) {
	if isEnd(line) {
		s.levels = s.levels[:len(s.levels)-1]
		s.token("p", string(line))
		return
	}
	value, comma := bytes.CutSuffix(line, []byte(","))
	own, value := s.level(value)
	note, kept := s.options.Kept[own.path]
	if kept {
		s.line.Kept = note
	}
	start := isStart(value)
	own.hidden = own.hidden || kept && !s.options.Reveal || s.hides(own.name, value, start)
	switch text := string(value); {
	case start:
		own.array = value[0] == '['
		s.levels = append(s.levels, own)
		s.token("p", text)
	case text == "{}" || text == "[]":
		s.token("p", text)
	case own.hidden && text != "null" && text != `""`:
		s.hide()
	case value[0] == '"':
		s.token("s", shorten(value))
	default:
		s.token("n", shorten(value))
	}
	if comma {
		s.token("p", ",")
	}
}

// level returns the level that a value is or would be, after it has added the tokens of its key.
func (s *jsonWriter) level(line []byte) (own jsonLevel, value []byte) {
	depth := len(s.levels)
	if depth == 0 {
		return jsonLevel{}, line
	}
	parent := &s.levels[depth-1]
	key := strconv.Itoa(parent.index)
	own.name, own.hidden, value = parent.name, parent.hidden, line
	parent.index++
	if !parent.array {
		key, value = s.key(line)
		own.name = key
	}
	own.path = "\x00" // is no path: paths of any depth would take too much memory
	if len(s.options.Kept) > 0 && depth < maxJSONIndent && !strings.HasPrefix(parent.path, "\x00") {
		own.path = strings.TrimPrefix(parent.path+"."+key, ".")
	}
	return own, value
}

// key adds the tokens of a key, and returns it and its value.
func (s *jsonWriter) key(line []byte) (key string, value []byte) {
	end := 1
	for ; line[end] != '"'; end++ {
		if line[end] == '\\' {
			end++
		}
	}
	raw, value := line[:end+1], line[end+3:]
	key = string(raw[1:end])
	if strings.Contains(key, `\`) {
		_ = json.Unmarshal(raw, &key)
	}
	if !s.options.Reveal && !IsKnownField(key) {
		s.hide()
	} else {
		s.token("k", shorten(raw))
	}
	s.token("p", ": ")
	return key, value
}

func (s *jsonWriter) hide() {
	s.view.Hidden = true
	s.token("pii-m", `"`+mask+`"`)
}

// hides reports whether the value of the field with a name is hidden, or of an element of an array
// that is the value of this field.
func (s *jsonWriter) hides(name string, value []byte, start bool) bool {
	switch depth := len(s.levels); {
	case s.options.Reveal:
		return false
	case s.options.HideAll:
		return true
	case depth == 0:
		return !start
	case !start && hidesText(name, string(value)):
		return true
	case s.levels[depth-1].array:
		return !start && name == ""
	default:
		return hidesKey(name) || hidesName(s.levels[depth-1].name, name)
	}
}

func (s *jsonWriter) token(class, text string) {
	if text != "" {
		s.line.Tokens = append(s.line.Tokens, jsonToken{Class: class, Text: text})
	}
}

func (s *jsonWriter) endLine() {
	s.view.Lines = append(s.view.Lines, s.line)
	s.line = jsonLine{}
}

// shorten limits a token, and shows characters that would be invisible, or would change the order
// of others, as escapes.
func shorten(raw []byte) string {
	more := 0
	if len(raw) > maxJSONToken {
		cut := maxJSONToken
		for cut > 0 && !utf8.RuneStart(raw[cut]) {
			cut--
		}
		raw, more = raw[:cut], len(raw)-cut
	}
	text := visible(string(raw))
	if more > 0 {
		text += fmt.Sprintf(" … %s more bytes", number(more))
	}
	return text
}

// visible replaces characters that are invisible, or change the order of others, and bytes that are
// not UTF-8.
func visible(text string) string {
	return escape(text, isInvisible)
}

// escape replaces characters by their escapes, and bytes that are not UTF-8.
func escape(text string, escapes func(rune) bool) string {
	if !strings.ContainsFunc(text, escapes) && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		if escapes(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func isInvisible(r rune) bool {
	return r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// visibleHTML is visible for the HTML of a page or a part of one, which has lines. It is the one
// place that all texts pass.
func visibleHTML(html string) string {
	return escape(html, func(r rune) bool { return r != '\n' && r != '\r' && isInvisible(r) })
}
