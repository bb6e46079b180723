// Paths: escaping, parameters and safety checks.

package labhealth

import (
	"net/url"
	"slices"
	"strings"
)

// isPath reports whether path starts with one slash and is sent unchanged. net/url re-escapes a
// path that is not escaped correctly, which turns %2F into a slash; dot segments and control
// characters may lead to another endpoint.
func isPath(path string) bool {
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "?#") {
		return false
	}
	for segment := range strings.SplitSeq(path[1:], "/") {
		plain, err := url.PathUnescape(segment)
		if err != nil || hasDots(plain) || hasControl(plain) || hasControl(segment) || strings.Contains(segment, " ") {
			return false
		}
	}
	u, err := url.Parse(path)
	return err == nil && u.EscapedPath() == path
}

// hasDots reports whether s has dot segments. A proxy that decodes %2F resolves those between
// slashes too, some treat a backslash as a slash, and some ignore what follows a semicolon.
func hasDots(s string) bool {
	return strings.Contains(s, ".") && slices.ContainsFunc(strings.FieldsFunc(s, isSlash), func(segment string) bool {
		segment, _, _ = strings.Cut(segment, ";")
		return segment == "." || segment == ".."
	})
}

func isSlash(r rune) bool { return r == '/' || r == '\\' }

// hasEscapedSlash reports whether a valid path has a slash or backslash within a segment.
func hasEscapedSlash(path string) bool {
	plain, _ := url.PathUnescape(path)
	return strings.Count(plain, "/") > strings.Count(path, "/") || strings.Contains(plain, `\`)
}

// hasControl reports whether s has control characters or is not valid UTF-8.
func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' })
}

// pathParameters returns the names in braces, in order.
func pathParameters(path string) []string {
	var names []string
	for {
		_, rest, ok := strings.Cut(path, "{")
		name, after, closed := strings.Cut(rest, "}")
		if !ok || !closed {
			return names
		}
		names, path = append(names, name), after
	}
}

// hasParameters reports whether path has the given parameters in any order.
func hasParameters(path string, names []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(pathParameters(path))), slices.Sorted(slices.Values(names)))
}

const nilID = "00000000-0000-0000-0000-000000000000"

// expandPath replaces the parameters named names in path by values.
func expandPath(path string, names, values []string) (string, error) {
	for i, value := range values {
		name := names[i]
		switch {
		case value == nilID:
			return "", invalid("must not be the nil UUID", "path", name)
		case value == "" || hasDots(value) || hasControl(value):
			return "", invalid("must not be empty, or hold dot segments or control characters", "path", name)
		}
		path = strings.Replace(path, "{"+name+"}", url.PathEscape(value), 1)
	}
	return path, nil
}
