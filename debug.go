// The requests and responses that WithDebug writes, redacted.

package labhealth

import (
	"bytes"
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/jsonread"
	"github.com/labhealth/labhealth-go/internal/transport"
)

const (
	// proofHeader is the response header in which the embedded service proves itself. Requests
	// never carry the token: a service that echoes them would prove itself too.
	proofHeader = "X-Labhealthtest-Proof"
	minProof    = 32 // characters of a token

	maxDebugBody  = 64 << 10 // bytes that are written for a body
	maxDebugDepth = 12       // of the values in a redacted body
	maxSmall      = 64       // bytes of values whose size is not shown
)

// WithDebug writes the request and the response of each attempt to w, redacted: the operation with
// the IDs of the service, the structure of the bodies, enumerations of the service, sizes and media
// types. What may belong to a patient, such as names, dates, numbers and free text, is replaced by
// its kind, such as <string>. A field name that the public API reference lacks becomes a question
// mark. A body that is not JSON is shown by its size. The base URL, the paths of [WithPath] and the
// request ID are written as they are; keys never are.
//
// In tests, pass the DebugToken of each labhealthtest.Server as tokens: what it responded to is
// written with the full path, query and bodies, up to 64 KiB each. Its responses carry the token as
// proof; the client never sends it. Any other attempt, and one whose bodies hold the key, is
// written redacted.
//
// Each attempt is one call of w.Write; those of one option never overlap. A slow w delays the
// client's call after each attempt, by at most 10 seconds and not beyond the end of its context.
// Errors of w are ignored. Attempts that are not written because w blocks are counted in the next
// text. The text is for people: its form may change.
func WithDebug(w io.Writer, tokens ...string) Option {
	return func(c *config) error {
		if w == nil {
			return errors.New("WithDebug needs a writer")
		}
		if slices.ContainsFunc(tokens, func(token string) bool { return len(token) < minProof }) {
			return errors.New("WithDebug needs the DebugToken of a labhealthtest.Server, or no token")
		}
		d := &debugger{w: w, tokens: slices.Clone(tokens), turn: make(chan struct{}, 1)}
		c.core.debug = append(c.core.debug, d.attach)
		return nil
	}
}

// debugger writes the attempts of a client.
type debugger struct {
	tokens []string
	w      io.Writer

	turn    chan struct{} // holds an element during a write
	writes  atomic.Int64  // how many are over
	blocked atomic.Int64  // writes at the start of the last one that its call no longer waits for, plus 1
	missing atomic.Int64  // attempts that were not written
}

const (
	maxWriterWait  = 10 * time.Second
	endedWriteWait = 50 * time.Millisecond // if the context of the call has ended
)

// write passes text to the writer and waits for it, but not beyond the end of the context: a writer
// may block, such as a pipe that nobody reads.
func (d *debugger) write(ctx context.Context, text string) {
	limit, ended := maxWriterWait, ctx.Done()
	if ctx.Err() != nil {
		limit, ended = endedWriteWait, nil
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	if !d.take(ended, timer.C) {
		d.missing.Add(1)
		return
	}
	number, panicked := d.writes.Load()+1, make(chan any, 1)
	go func() {
		defer func() {
			v := recover()
			d.writes.Add(1)
			<-d.turn
			panicked <- v
		}()
		if n := d.missing.Swap(0); n > 0 {
			text = fmt.Sprintf("(%d attempts are missing here: the writer was blocked)\n\n", n) + text
		}
		_, _ = io.WriteString(d.w, text)
	}()
	select {
	case v := <-panicked:
		if v != nil {
			panic(v) // in the goroutine of the call
		}
	case <-ended:
		d.blocked.Store(number)
	case <-timer.C:
		d.blocked.Store(number)
	}
}

// take waits for the turn to write. It reports whether there is one before the wait ends, and
// before the writer blocks.
func (d *debugger) take(ended <-chan struct{}, limit <-chan time.Time) bool {
	select {
	case d.turn <- struct{}{}:
		return true
	default:
	}
	if d.blocked.Load() == d.writes.Load()+1 {
		return false
	}
	select {
	case d.turn <- struct{}{}:
		return true
	case <-ended:
	case <-limit:
	}
	return false
}

// attach makes d write the attempts of q, a request of a call with the context ctx.
func (d *debugger) attach(ctx context.Context, c *core, r request, q *transport.Request) {
	var stream *countingReader // of the attempt; nil for none
	if open := q.Open; open != nil {
		q.Open = func(body io.Reader) (io.Reader, []byte, error) {
			stream = &countingReader{r: body}
			return open(stream)
		}
	}
	keys := q.Header
	if authorize := q.Authorize; authorize != nil {
		q.Authorize = func(ctx context.Context, h http.Header) error {
			keys = h
			return authorize(ctx, h)
		}
	}
	observe := q.Observe
	q.Observe = func(a transport.Attempt) {
		text := debugText{core: c, request: r, sent: q, attempt: a, streamed: -1}
		if stream != nil {
			text.streamed, stream = stream.n, nil
		}
		out := ""
		if text.full = d.proves(a.Header); text.full {
			out = text.String()
			if holdsSecret(out, keys) {
				text.full = false
			}
		}
		if !text.full {
			out = text.String()
		}
		d.write(ctx, out)
		if observe != nil {
			observe(a)
		}
	}
}

// proves reports whether the header of a response carries one of the tokens.
func (d *debugger) proves(h http.Header) bool {
	received := h.Values(proofHeader)
	if len(received) != 1 {
		return false
	}
	return slices.ContainsFunc(d.tokens, func(token string) bool {
		return subtle.ConstantTimeCompare([]byte(token), []byte(received[0])) == 1
	})
}

// secretHeaders are the request headers whose values are keys.
var secretHeaders = []string{"Authorization", "Cookie", "Proxy-Authorization", "X-Idempotency-Key", "X-Management-Key", "X-Service-Api-Key", orgKeyHeader}

// holdsSecret reports whether text holds the key of a request, even if it is escaped for JSON or a
// URL.
func holdsSecret(text string, h http.Header) bool {
	plain := func(s string) string { return strings.ReplaceAll(unescape(s, `\u00`), `\`, "") }
	forms := []string{text, unescape(text, "%"), plain(text)}
	for _, name := range secretHeaders {
		for _, value := range h.Values(name) {
			_, credential, _ := strings.Cut(value, " ") // after "Bearer"
			secret := cmp.Or(credential, value)
			for _, form := range forms {
				if secret != "" && (strings.Contains(form, secret) || strings.Contains(form, plain(secret))) {
					return true
				}
			}
		}
	}
	return false
}

// unescape replaces the escapes that begin with prefix and have two hexadecimal digits.
func unescape(text, prefix string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, prefix)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		text = rest
		if n, err := strconv.ParseUint(rest[:min(len(rest), 2)], 16, 8); err == nil && len(rest) >= 2 {
			b.WriteByte(byte(n))
			text = rest[2:]
		}
	}
}

type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// debugText is the text of one attempt.
type debugText struct {
	core     *core
	request  request
	sent     *transport.Request
	attempt  transport.Attempt
	streamed int64 // bytes of a streamed body; negative for none
	full     bool

	b strings.Builder
}

func (t *debugText) String() string {
	a := t.attempt
	t.b.Reset()
	fmt.Fprintf(&t.b, "--> %s %s (attempt %d)\n", t.sent.Method, t.target(), a.Number)
	t.header(t.sent.Header, "")
	t.body(t.sent.Header, t.sent.Body, -1)
	t.b.WriteString("<-- ")
	if a.StatusCode != 0 {
		t.b.WriteString(strings.TrimSpace(strconv.Itoa(a.StatusCode)+" "+http.StatusText(a.StatusCode)) + ", ")
	}
	if err := attemptError(&a); err != nil {
		t.b.WriteString(err.Error() + ", ")
	}
	fmt.Fprintf(&t.b, "outcome %s, %v\n", Outcome(a.Outcome), a.Duration.Round(10*time.Microsecond))
	if a.StatusCode != 0 {
		t.header(a.Header, a.RequestID)
		t.body(a.Header, a.Body, t.streamed)
	}
	t.b.WriteString("\n")
	return t.b.String()
}

// target returns the URL of the request.
func (t *debugText) target() string {
	if t.full {
		return t.sent.URL
	}
	return t.core.base + t.path() + t.query()
}

// path returns the path of the request, with the values of parameters that may be shown.
func (t *debugText) path() string {
	r := t.request
	if r.target != nil {
		segments := strings.Split(r.target.path, "/")
		for i, s := range segments {
			if s != "" && !words().paths[s] {
				segments[i] = "?"
				if id, ok := parseID(s); ok {
					segments[i] = id
				}
			}
		}
		return strings.Join(segments, "/")
	}
	_, documented, _ := strings.Cut(r.op, " ")
	ids := r.ids
	if t.core.orgID != "" {
		ids = append([]string{t.core.orgID}, ids...)
	}
	path := cmp.Or(t.core.paths[r.op], documented)
	for i, name := range pathParameters(documented) {
		if value, ok := shown(name, ids[i]); ok {
			path = strings.Replace(path, "{"+name+"}", value, 1)
		}
	}
	return path
}

// query returns the query of the request, with the names and values that may be shown.
func (t *debugText) query() string {
	u, err := url.Parse(t.sent.URL)
	if err != nil || u.RawQuery == "" {
		return ""
	}
	var parts []string
	query := u.Query()
	for _, name := range slices.Sorted(maps.Keys(query)) {
		for _, value := range query[name] {
			form, ok := shown(name, value)
			if !ok {
				form = kindOfText(value)
			}
			if slices.Contains([]string{"limit", "offset", "page", "size"}, name) && len(value) < 5 && strings.Trim(value, "0123456789") == "" {
				form = value
			}
			parts = append(parts, fieldName(name)+"="+form)
		}
	}
	return "?" + strings.Join(parts, "&")
}

// header writes the known headers, with the ID of the request, and the number of others.
func (t *debugText) header(h http.Header, requestID string) {
	others := 0
	for _, name := range slices.Sorted(maps.Keys(h)) {
		value, known := headerValue(name, h, requestID)
		if !known {
			others++
			continue
		}
		t.b.WriteString("    " + name + ": " + cmp.Or(value, "<redacted>") + "\n")
	}
	switch {
	case others == 1:
		t.b.WriteString("    and 1 other header\n")
	case others > 1:
		fmt.Fprintf(&t.b, "    and %d other headers\n", others)
	}
}

// headerValue reports whether the name of a header is written, and returns the value if it is
// written too.
func headerValue(name string, h http.Header, requestID string) (value string, known bool) {
	switch name {
	case "Accept", "Content-Type":
		return mediaType(h.Get(name)), true
	case "Retry-After":
		return retryAfterSeconds(h), true
	case "Traceresponse", "X-Request-Id":
		if requestID != h.Get(name) {
			requestID = ""
		}
		return requestID, true
	case "Content-Encoding", "Location", "Set-Cookie", "Traceparent", "Www-Authenticate", proofHeader:
		return "", true
	}
	return "", slices.Contains(secretHeaders, name)
}

// retryAfterSeconds returns a Retry-After of up to an hour, which cannot be a date of birth.
func retryAfterSeconds(h http.Header) string {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 || seconds > 3600 {
		return ""
	}
	return strconv.Itoa(seconds)
}

// mediaType returns a media type without its parameters, or "" if it is none of the usual ones.
func mediaType(s string) string {
	t, _, _ := mime.ParseMediaType(s)
	if slices.Contains([]string{"application/json", "application/pdf", "application/problem+json", "application/octet-stream", "text/html", "text/plain"}, t) {
		return t
	}
	return ""
}

// body writes a body. streamed is its size if it was not held in memory, and negative otherwise.
func (t *debugText) body(h http.Header, body []byte, streamed int64) {
	kind := cmp.Or(mediaType(h.Get("Content-Type")), "another media type")
	document := bytes.TrimSpace(jsonread.TrimStart(body))
	switch {
	case streamed >= 0 && len(body) == 0:
		fmt.Fprintf(&t.b, "\n    <%s of %s, streamed>\n", size(int(streamed)), kind)
	case len(body) == 0:
	case t.full && utf8.Valid(body):
		t.indented(fullBody(document))
	case len(document) > 0 && jsonread.Valid(document) == nil:
		var r redactor
		r.value("", document, 0)
		t.indented(r.b.String())
	default:
		fmt.Fprintf(&t.b, "\n    <%s of %s, not JSON>\n", size(len(body)), kind)
	}
}

func (t *debugText) indented(body string) {
	if len(body) > maxDebugBody {
		body = strings.ToValidUTF8(body[:maxDebugBody], "") + "\n… cut at 64 KiB"
	}
	t.b.WriteString("\n    " + strings.ReplaceAll(body, "\n", "\n    ") + "\n")
}

func fullBody(document []byte) string {
	var b bytes.Buffer
	if jsonread.Valid(document) != nil || json.Indent(&b, document, "", "  ") != nil {
		return string(document)
	}
	return b.String()
}

// size returns a bound of a size, so that the length of a name is not shown.
func size(n int) string {
	bound := maxSmall
	for bound < n {
		bound *= 2
	}
	if bound < 1<<10 {
		return "up to " + strconv.Itoa(bound) + " bytes"
	}
	return "up to " + strconv.Itoa(bound>>10) + " KiB"
}

// redactor writes the structure of a JSON document.
type redactor struct{ b strings.Builder }

// value writes a valid JSON value of the field name, or of a list there, depth levels deep.
func (r *redactor) value(name string, data []byte, depth int) {
	switch c := data[0]; {
	case r.b.Len() > maxDebugBody: // cut by the caller
	case c == '{':
		r.object(name, data, depth)
	case c == '[':
		r.array(name, data, depth)
	case c == 'n':
		r.b.WriteString("null")
	case c == 't', c == 'f': // such as fasting
		r.b.WriteString("<boolean>")
	case c != '"':
		r.b.WriteString("<number>")
	case len(data) > 256: // longer than any value that is shown
		r.b.WriteString("<string, " + size(len(data)) + ">")
	default:
		s, _ := jsonread.String(data)
		form, ok := shown(name, s)
		if !ok {
			form = kindOfText(s)
		} else {
			form = strconv.Quote(form)
		}
		r.b.WriteString(form)
	}
}

// maxFields limits how many fields of an object are written.
const maxFields = 200

func (r *redactor) object(name string, data []byte, depth int) {
	if depth == maxDebugDepth {
		r.b.WriteString("{…}")
		return
	}
	isData := words().maps[name] || name == "data" && hasObjectsOnly(data)
	indent, n := strings.Repeat("  ", depth+1), 0
	r.b.WriteString("{")
	for key, value := range jsonread.Fields(data) {
		if n++; n > maxFields || r.b.Len() > maxDebugBody {
			continue
		}
		field := "?"
		if !isData && len(key) <= maxSmall {
			field = fieldName(string(key))
		}
		if n > 1 {
			r.b.WriteString(",")
		}
		r.b.WriteString("\n" + indent + field + ": ")
		r.value(strings.TrimPrefix(field, "?"), value, depth+1)
	}
	if n > maxFields {
		r.b.WriteString(",\n" + indent + "… " + strconv.Itoa(n-maxFields) + " more fields")
	}
	if n > 0 {
		r.b.WriteString("\n" + indent[2:])
	}
	r.b.WriteString("}")
}

// hasObjectsOnly reports whether the values of an object are objects, as those of a meal by food.
func hasObjectsOnly(data []byte) bool {
	for _, value := range jsonread.Fields(data) {
		if value[0] != '{' {
			return false
		}
	}
	return true
}

func (r *redactor) array(name string, data []byte, depth int) {
	if depth == maxDebugDepth {
		r.b.WriteString("[…]")
		return
	}
	indent, n, most := strings.Repeat("  ", depth+1), 0, 8
	nested := false
	r.b.WriteString("[")
	for element := range jsonread.Elements(data) {
		if n == 0 && (element[0] == '{' || element[0] == '[') {
			nested, most = true, 3
		}
		if n++; n > most || r.b.Len() > maxDebugBody {
			continue
		}
		if n > 1 {
			r.b.WriteString(",")
		}
		switch {
		case nested:
			r.b.WriteString("\n" + indent)
		case n > 1:
			r.b.WriteString(" ")
		}
		r.value(name, element, depth+1)
	}
	if n > most {
		r.b.WriteString(", … " + strconv.Itoa(n-most) + " more")
	}
	if nested {
		r.b.WriteString("\n" + indent[2:])
	}
	r.b.WriteString("]")
}

// vocabulary holds the words of vocabulary_gen.go.
type vocabulary struct{ fields, ids, maps, enums, values, paths map[string]bool }

var (
	loaded     vocabulary
	loadedOnce sync.Once
)

// words returns the vocabulary. A variable with an initial value would be linked into programs that
// do not use WithDebug.
func words() *vocabulary {
	loadedOnce.Do(func() {
		set := func(list string) map[string]bool {
			words := map[string]bool{}
			for word := range strings.FieldsSeq(list) {
				words[word] = true
			}
			return words
		}
		loaded = vocabulary{set(fieldNames), set(idNames), set(mapNames), set(enumNames), set(enumValues), set(pathWords)}
	})
	return &loaded
}

// fieldName returns the name of a field or parameter, or "?" if the public API reference has no
// such name: it may be data, such as the name of a food.
func fieldName(name string) string {
	if words().fields[name] {
		return name
	}
	return "?"
}

// shown returns the text of a field or parameter if it says nothing about a patient: an ID or an
// enumeration of the service, or the name of an invalid field.
func shown(name, text string) (string, bool) {
	w := words()
	switch {
	case text == "":
		return "", true
	case w.ids[name]:
		return parseID(text)
	case w.enums[name] && w.values[text], name == "loc" && w.fields[text]:
		return text, true
	}
	return "", false
}

// parseID returns the usual form of a UUID.
func parseID(s string) (string, bool) {
	id, err := uuid.Parse(s)
	return id.String(), err == nil && len(s) == 36
}

// kindOfText returns the kind of a text.
func kindOfText(text string) string {
	if _, ok := parseID(text); ok {
		return "<uuid>"
	}
	if _, err := ParseDate(text); err == nil && len(text) == 10 {
		return "<date>"
	}
	if _, err := time.Parse(time.RFC3339, text); err == nil {
		return "<date-time>"
	}
	if len(text) > maxSmall {
		return "<string, " + size(len(text)) + ">"
	}
	return "<string>"
}
