package console

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

// Environment variables of the keys in the code that is shown.
const (
	keyVariable           = "LABHEALTH_API_KEY"
	managementKeyVariable = "LABHEALTH_MANAGEMENT_KEY"
)

// maxArgument is the length of the longest body that is an argument of curl. Linux limits one to
// 128 KiB.
const maxArgument = 100_000

// sentHeaders are the headers that the code repeats.
var sentHeaders = []string{"Content-Type", "X-Idempotency-Key", "X-Idempotency-Error"}

// requestCode is a request as code.
type requestCode struct {
	base       string // of the service
	method     string
	target     string // path and query, which start with a slash
	header     http.Header
	body       []byte
	management bool
}

func newRequestCode(base string, r labhealthtest.Request) requestCode {
	c := requestCode{base: strings.TrimSuffix(base, "/"), method: r.Method, target: r.Path, header: http.Header{}, body: r.Body}
	// A client may send a whole URL. Its host would get the key.
	if !strings.HasPrefix(c.target, "/") {
		c.target = "/"
		if u, err := url.Parse(r.Path); err == nil && u.Host != "" {
			c.target = u.RequestURI()
		}
	}
	if !strings.HasPrefix(c.target, "/") {
		c.target = "/"
	}
	c.management = strings.HasPrefix(c.target, "/v1/org/")
	for _, name := range sentHeaders {
		for _, value := range r.Header.Values(name) {
			c.header.Add(name, value)
		}
	}
	return c
}

// key returns the header of the key and its environment variable.
func (c requestCode) key() (header, variable string) {
	if c.management {
		return "x-management-key", managementKeyVariable
	}
	return "x-service-api-key", keyVariable
}

// shellQuote quotes a text for a POSIX shell.
func shellQuote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

var plainMethod = regexp.MustCompile(`^[A-Z]+$`)

// isPrintable reports whether a text has no characters that a terminal or an editor interprets when
// they are pasted.
func isPrintable(text []byte) bool {
	if !utf8.Valid(text) {
		return false
	}
	for _, r := range string(text) {
		if r != '\n' && (isInvisible(r) || r == '\t') { // a shell completes names at a tab
			return false
		}
	}
	return true
}

// curlLines returns the command without the body, one argument in a line.
func (c requestCode) curlLines() []string {
	method := c.method
	if !plainMethod.MatchString(method) {
		method = shellQuote(method)
	}
	first := "curl"
	if c.method == http.MethodHead {
		first += " --head"
	} else if c.method != http.MethodGet || len(c.body) > 0 {
		first += " -X " + method
	}
	if strings.Contains(c.target, "/.") {
		first += " --path-as-is"
	}
	if strings.ContainsAny(c.target, "[]{}") {
		first += " --globoff"
	}
	header, variable := c.key()
	lines := []string{first + " " + shellQuote(c.base+c.target), `-H "` + header + `: $` + variable + `"`}
	for _, name := range sentHeaders {
		for _, value := range c.header.Values(name) {
			lines = append(lines, "-H "+shellQuote(strings.ToLower(name)+": "+value))
		}
	}
	return lines
}

// argument returns the body as an argument of curl: as it is, or the same JSON without the space
// that a terminal would interpret. Other bodies are in base64.
func (c requestCode) argument() (text string, ok bool) {
	if len(c.body) > maxArgument {
		return "", false
	}
	if isPrintable(c.body) {
		return string(c.body), true
	}
	var compact bytes.Buffer
	if json.Compact(&compact, c.body) != nil || !isPrintable(compact.Bytes()) {
		return "", false
	}
	return compact.String(), true
}

// curl returns a command for a POSIX shell that sends the request.
func (c requestCode) curl() string {
	text, isArgument := c.argument()
	lines := c.curlLines()
	switch {
	case len(c.body) == 0:
	case isArgument:
		lines = append(lines, "--data-raw "+shellQuote(text))
	default:
		lines[0] = "base64 -d <<'BODY' | " + lines[0]
		lines = append(lines, "--data-binary @-\n"+base64Lines(c.body)+"BODY")
	}
	return strings.Join(lines, " \\\n  ") + "\n"
}

// base64Lines returns the base64 of a body in lines.
func base64Lines(body []byte) string {
	text := base64.StdEncoding.EncodeToString(body)
	var b strings.Builder
	for line := range slices.Chunk([]byte(text), 76) {
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.String()
}

// golang returns statements that send the request. literal is the Go literal of its body.
func (c requestCode) golang(literal string) string {
	u, err := url.Parse(c.target)
	valid := err == nil && (len(c.body) == 0 || json.Valid(c.body)) && plainMethod.MatchString(c.method) &&
		(u.RawQuery == "" || queryOptions(u.RawQuery) != "")
	if !valid {
		return c.netHTTP(literal)
	}
	body := "nil"
	if len(c.body) > 0 {
		body = "json.RawMessage(" + literal + ")"
	}
	options := queryOptions(u.RawQuery)
	if key := c.header.Get("X-Idempotency-Key"); key != "" {
		options += ", labhealth.WithIdempotencyKey(" + strconv.Quote(key) + ")"
	}
	client := fmt.Sprintf("labhealth.NewClient(os.Getenv(%q),", keyVariable)
	if c.management {
		org, err := uuid.Parse(strings.Split(u.EscapedPath(), "/")[3])
		if err != nil {
			return c.netHTTP(literal)
		}
		client = fmt.Sprintf("management.NewClient(uuid.MustParse(%q), os.Getenv(%q),", org, managementKeyVariable)
	}
	return fmt.Sprintf(`client, err := %s
	labhealth.WithBaseURL(%q))
if err != nil {
	return err
}
var response json.RawMessage
err = client.Do(ctx, %q, %s, %s, &response%s)
`, client, c.base, c.method, strconv.Quote(u.EscapedPath()), body, options)
}

// queryOptions returns the options of a query, in its order, or nothing if it is malformed.
func queryOptions(query string) string {
	if query == "" {
		return ""
	}
	var b strings.Builder
	for part := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(part, "=")
		name, err1 := url.QueryUnescape(name)
		value, err2 := url.QueryUnescape(value)
		if err1 != nil || err2 != nil || strings.Contains(part, ";") || name == "" {
			return ""
		}
		fmt.Fprintf(&b, ", labhealth.WithQuery(%q, %q)", name, value)
	}
	return b.String()
}

// netHTTP returns statements for a request that the library does not send.
func (c requestCode) netHTTP(literal string) string {
	var b strings.Builder
	body := "nil"
	if len(c.body) > 0 {
		body = "strings.NewReader(" + literal + ")"
	}
	header, variable := c.key()
	fmt.Fprintf(&b, "req, err := http.NewRequestWithContext(ctx, %q, %q, %s)\nif err != nil {\n\treturn err\n}\n", c.method, c.base+c.target, body)
	fmt.Fprintf(&b, "req.Header.Set(%q, os.Getenv(%q))\n", header, variable)
	for _, name := range sentHeaders {
		for _, value := range c.header.Values(name) {
			fmt.Fprintf(&b, "req.Header.Add(%q, %q)\n", name, value)
		}
	}
	b.WriteString("response, err := http.DefaultClient.Do(req)\n")
	return b.String()
}

// headLines returns the first line and the headers of the request.
func (c requestCode) headLines() []string {
	header, variable := c.key()
	lines := []string{
		visible(c.method + " " + c.target + " HTTP/1.1"), "host: " + strings.TrimPrefix(c.base, "http://"), header + ": $" + variable,
	}
	for _, name := range sentHeaders {
		for _, value := range c.header.Values(name) {
			lines = append(lines, visible(strings.ToLower(name)+": "+value))
		}
	}
	if len(c.body) > 0 {
		lines = append(lines, fmt.Sprintf("content-length: %d", len(c.body)))
	}
	return lines
}

// script returns a shell script of several requests, each with a comment.
func script(base string, requests []labhealthtest.Request) string {
	var b strings.Builder
	b.WriteString("#!/bin/sh\n# Set " + keyVariable + " and, for the management API, " + managementKeyVariable + ".\nset -u\n")
	for _, r := range requests {
		fmt.Fprintf(&b, "\n# %d. %s, %s\n", r.Number, r.ReceivedAt.Format("15:04:05.000"), statusOf(r))
		b.WriteString(newRequestCode(base, r).curl())
		b.WriteString("echo\n")
	}
	return b.String()
}

func statusOf(r labhealthtest.Request) string {
	text := "not processed"
	if r.StatusCode != 0 {
		text = strconv.Itoa(r.StatusCode)
	}
	if r.Faulted {
		text += ", met a fault"
	}
	return text
}
