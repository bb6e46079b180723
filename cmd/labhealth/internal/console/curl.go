package console

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

// Environment variables of the keys in the commands that are shown.
const (
	keyVariable           = "LABHEALTH_API_KEY"
	managementKeyVariable = "LABHEALTH_MANAGEMENT_KEY"
)

// maxArgument is the length of the longest body that is an argument of curl. Linux limits one to
// 128 KiB.
const maxArgument = 100_000

// sentHeaders are the headers of requests that the commands repeat.
var sentHeaders = []string{"Content-Type", "X-Idempotency-Key", "X-Idempotency-Error"}

// curlCommand is an HTTP request as a command for a POSIX shell.
type curlCommand struct {
	method string
	url    string
	key    [2]string // a header and the environment variable that has its value, if any
	header http.Header
	body   []byte
}

// curlOfRequest returns the command that sends a request to the service again.
func curlOfRequest(base string, r labhealthtest.Request) curlCommand {
	target := r.Path
	// A client may send a whole URL. Its host would get the key.
	if !strings.HasPrefix(target, "/") {
		u, err := url.Parse(target)
		if target = "/"; err == nil && u.Host != "" && strings.HasPrefix(u.RequestURI(), "/") {
			target = u.RequestURI()
		}
	}
	c := curlCommand{r.Method, strings.TrimSuffix(base, "/") + target, [2]string{"x-service-api-key", keyVariable}, http.Header{}, r.Body}
	if strings.HasPrefix(target, "/v1/org/") {
		c.key = [2]string{"x-management-key", managementKeyVariable}
	}
	for _, name := range sentHeaders {
		if values := r.Header.Values(name); len(values) > 0 {
			c.header[name] = values
		}
	}
	return c
}

// curlOfDelivery returns the command that posts a signed delivery.
func curlOfDelivery(target string, header http.Header, body []byte) curlCommand {
	if target == "" {
		target = "http://localhost:3000/webhooks"
	}
	c := curlCommand{method: http.MethodPost, url: target, header: header.Clone(), body: body}
	maps.DeleteFunc(c.header, func(name string, _ []string) bool {
		return isSecretHeader(name) || slices.Contains([]string{"Content-Length", "Host", "Accept-Encoding", "Connection", "Transfer-Encoding"}, name)
	})
	return c
}

// shellQuote quotes a text for a POSIX shell.
func shellQuote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

var plainMethod = regexp.MustCompile(`^[A-Z]+$`)

// lines returns the command without the body, one argument in a line.
func (c curlCommand) lines() []string {
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
	if strings.Contains(c.url, "/.") {
		first += " --path-as-is"
	}
	if strings.ContainsAny(c.url, "[]{}") {
		first += " --globoff"
	}
	lines := []string{first + " " + shellQuote(c.url)}
	if name, variable := c.key[0], c.key[1]; name != "" {
		lines = append(lines, `-H "`+name+`: $`+variable+`"`)
	}
	for _, name := range slices.Sorted(maps.Keys(c.header)) {
		for _, value := range c.header[name] {
			lines = append(lines, "-H "+shellQuote(strings.ToLower(name)+": "+value))
		}
	}
	return lines
}

// isArgument reports whether the body can be an argument: it is short, and has no characters that a
// terminal interprets when they are pasted.
func (c curlCommand) isArgument() bool {
	return len(c.body) <= maxArgument && utf8.Valid(c.body) && !strings.ContainsFunc(string(c.body), func(r rune) bool {
		return r != '\n' && (isInvisible(r) || r == '\t') // a shell completes names at a tab
	})
}

// String returns the command, with the exact bytes of the body.
func (c curlCommand) String() string {
	lines := c.lines()
	switch {
	case len(c.body) == 0:
	case c.isArgument():
		lines = append(lines, "--data-raw "+shellQuote(string(c.body)))
	default:
		lines[0] = "base64 -d <<'BODY' | " + lines[0]
		var body strings.Builder
		for line := range slices.Chunk([]byte(base64.StdEncoding.EncodeToString(c.body)), 76) {
			body.Write(line)
			body.WriteByte('\n')
		}
		lines = append(lines, "--data-binary @-\n"+body.String()+"BODY")
	}
	return strings.Join(lines, " \\\n  ") + "\n"
}

// script returns a shell script of several requests, each with a comment.
func script(base string, requests []labhealthtest.Request) string {
	var b strings.Builder
	b.WriteString("#!/bin/sh\n# Set " + keyVariable + " and, for the management API, " + managementKeyVariable + ".\nset -u\n")
	for _, r := range requests {
		status := "not processed"
		if r.StatusCode != 0 {
			status = strconv.Itoa(r.StatusCode)
		}
		if r.Faulted {
			status += ", met a fault"
		}
		fmt.Fprintf(&b, "\n# %d. %s, %s\n%secho\n", r.Number, r.ReceivedAt.Format("15:04:05.000"), status, curlOfRequest(base, r))
	}
	return b.String()
}
