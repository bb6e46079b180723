package console

import (
	"bytes"
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
	// Kept are the paths of malformed and unknown fields, such as "events.1.created_at". Their
	// values are hidden too.
	Kept map[string]bool
	// Compact shows short objects and arrays on one line each.
	Compact bool
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
	Kept   bool // malformed or unknown, and kept by the library
	Op     string
}

// jsonToken is a piece of a line. Class is k (key), s (string), n (number, true, false, null), p
// (punctuation), pii-m (hidden value) or empty. Mark says that it differs from the other body.
type jsonToken struct {
	Class, Text string
	Mark        bool
}

// viewJSON turns a body into lines of tokens, indented. A body that is not JSON is shown as text.
// Because its structure is unknown, all of it is hidden.
func viewJSON(body []byte, o jsonOptions) jsonView {
	if o.MaxLines == 0 {
		o.MaxLines = maxJSONLines
	}
	s := &jsonScanner{options: o, body: body}
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		s.view.Text = true
	case json.Valid(body):
		s.scan()
	case !o.Reveal:
		s.view.Text, s.view.Hidden = true, true
		s.token("pii-m", fmt.Sprintf("%s %s bytes", mask, number(len(body))))
		s.endLine()
	default:
		s.view.Text = true
		for line := range bytes.Lines(body) {
			s.token("", shorten(bytes.TrimRight(line, "\r\n")))
			s.at += len(line)
			s.endLine()
		}
	}
	return s.view
}

// jsonScanner formats a valid document without recursion.
type jsonScanner struct {
	options jsonOptions
	body    []byte
	at      int
	view    jsonView
	line    jsonLine
	drop    bool // the lines shown are complete: count only
	inline  bool // within a short object or array
	levels  []jsonLevel
	masked  int    // the level within a hidden value, or 0
	key     string // of the current value
	isKey   bool   // the next string is a key
}

// jsonLevel is an object or an array that is open.
type jsonLevel struct {
	array bool
	index int
	name  string // of the field whose value it is
	path  string
}

func (s *jsonScanner) scan() {
	for s.at < len(s.body) {
		switch b := s.body[s.at]; b {
		case ' ', '\t', '\r', '\n':
			s.at++
		case '{', '[':
			s.open(b)
		case '}', ']':
			s.at++
			if !s.inline {
				s.breakLine(-1)
			}
			s.pop(b)
		case ',':
			s.at++
			s.token("p", ",")
			level := &s.levels[len(s.levels)-1]
			level.index++
			s.next(" ")
		case ':':
			s.at++
			s.token("p", ": ")
		case '"':
			s.text()
		default:
			start := s.at
			for s.at < len(s.body) && !bytes.ContainsRune([]byte(",]} \t\r\n"), rune(s.body[s.at])) {
				s.at++
			}
			s.value("n", s.body[start:s.at])
		}
	}
	s.endLine()
}

// next starts the next element of the current level, after a separator if it is on the same line.
func (s *jsonScanner) next(separator string) {
	level := s.levels[len(s.levels)-1]
	s.isKey = !level.array
	if s.inline {
		s.token("p", separator)
	} else {
		s.breakLine(0)
	}
	if level.array {
		s.mark()
	}
}

func (s *jsonScanner) open(b byte) {
	level := jsonLevel{array: b == '[', name: s.name()}
	switch {
	case s.drop || len(s.options.Kept) == 0:
	case len(s.levels) < maxJSONIndent:
		level.path = s.path()
	default:
		level.path = "\x00" // is no path: paths of any depth would take too much memory
	}
	hide := s.hides(nil)
	s.token("p", string(b))
	s.inline = s.options.Compact && s.isShort()
	s.levels = append(s.levels, level)
	if hide && s.masked == 0 {
		s.masked = len(s.levels)
	}
	for s.at++; bytes.IndexByte([]byte(" \t\r\n"), s.body[s.at]) >= 0; {
		s.at++
	}
	if next := s.body[s.at]; next == '}' || next == ']' {
		s.at++
		s.pop(next)
		return
	}
	s.next("")
}

// isShort reports whether the object or array at the current position has no other one inside, and
// fits on a line.
func (s *jsonScanner) isShort() bool {
	quoted := false
	for i := s.at + 1; i < min(len(s.body), s.at+maxInline); i++ {
		switch b := s.body[i]; {
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '{', b == '[':
			return false
		case b == '}', b == ']':
			return true
		}
	}
	return false
}

// pop closes the current object or array.
func (s *jsonScanner) pop(b byte) {
	if s.masked == len(s.levels) {
		s.masked = 0
	}
	s.levels, s.inline = s.levels[:len(s.levels)-1], false
	s.token("p", string(b))
}

// text reads a key or a string.
func (s *jsonScanner) text() {
	start := s.at
	for s.at++; s.body[s.at] != '"'; s.at++ {
		if s.body[s.at] == '\\' {
			s.at++
		}
	}
	s.at++
	raw := s.body[start:s.at]
	if !s.isKey {
		s.value("s", raw)
		return
	}
	s.isKey = false
	s.key = string(raw[1 : len(raw)-1])
	if strings.Contains(s.key, `\`) {
		_ = json.Unmarshal(raw, &s.key)
	}
	s.mark()
	switch {
	case s.drop:
	case !s.options.Reveal && !IsKnownField(s.key):
		s.hide()
	default:
		s.token("k", shorten(raw))
	}
}

// value adds a string, a number, true, false or null. Null is never hidden.
func (s *jsonScanner) value(class string, raw []byte) {
	switch hide := s.masked > 0 || s.hides(raw); {
	case hide && string(raw) != "null" && string(raw) != `""`:
		s.hide()
	case !s.drop:
		s.token(class, shorten(raw))
	}
}

func (s *jsonScanner) hide() {
	s.view.Hidden = true
	s.token("pii-m", `"`+mask+`"`)
}

// name returns the name of the current field. The elements of an array have the name of the array.
func (s *jsonScanner) name() string {
	if len(s.levels) == 0 {
		return ""
	}
	if level := s.levels[len(s.levels)-1]; level.array {
		return level.name
	}
	return s.key
}

// hides reports whether the current value is hidden. raw is nil for an object and an array.
func (s *jsonScanner) hides(raw []byte) bool {
	switch {
	case s.options.Reveal:
		return false
	case s.options.HideAll:
		return true
	case len(s.levels) == 0:
		return raw != nil
	case s.isKept(), raw != nil && hidesText(s.name(), string(raw)):
		return true
	}
	level := s.levels[len(s.levels)-1]
	if level.array {
		return raw != nil && level.name == ""
	}
	return hidesKey(s.key) || hidesName(level.name, s.key)
}

// path returns the path of the current value.
func (s *jsonScanner) path() string {
	if len(s.levels) == 0 {
		return ""
	}
	level := s.levels[len(s.levels)-1]
	name := s.key
	if level.array {
		name = strconv.Itoa(level.index)
	}
	if level.path != "" {
		return level.path + "." + name
	}
	return name
}

func (s *jsonScanner) isKept() bool {
	return !s.drop && len(s.options.Kept) > 0 && s.options.Kept[s.path()]
}

// mark marks the line if its value is malformed or unknown.
func (s *jsonScanner) mark() { s.line.Kept = s.line.Kept || s.isKept() }

func (s *jsonScanner) token(class, text string) {
	if !s.drop && text != "" {
		s.line.Tokens = append(s.line.Tokens, jsonToken{Class: class, Text: text})
	}
}

// breakLine starts a line that is indented like the current level, or by more.
func (s *jsonScanner) breakLine(more int) {
	s.endLine()
	s.token("", strings.Repeat("  ", min(len(s.levels)+more, maxJSONIndent)))
}

func (s *jsonScanner) endLine() {
	if s.drop {
		s.view.More++
		return
	}
	s.view.Lines = append(s.view.Lines, s.line)
	s.line = jsonLine{}
	s.drop = len(s.view.Lines) == s.options.MaxLines && s.at < len(s.body)
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
