package labhealth

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Environment identifies one of the four deployments of the service. The interface specification
// names them but publishes no base URLs: see [WithEnvironment].
type Environment string

// Values of [Environment]. There is no default, so that a missing option cannot send patient data
// to the wrong region.
const (
	ProductionUS Environment = "production US"
	ProductionEU Environment = "production EU"
	SandboxUS    Environment = "sandbox US"
	SandboxEU    Environment = "sandbox EU"
)

// BaseURLs holds the base URL of each environment. Unused environments can be omitted.
type BaseURLs map[Environment]string

// WithBaseURL sets the URL that every path is appended to. The paths contain their versions, such
// as /v3, which the base URL must not repeat. The URL must be https, except for loopback hosts. It
// may have a port between 1 and 65535 and a path without dot segments, but no user info, query or
// fragment.
func WithBaseURL(base string) Option {
	return func(c *config) error {
		c.baseURL, c.chosenBy = base, append(c.chosenBy, "WithBaseURL")
		return nil
	}
}

// WithEnvironment uses the base URL of env in urls. It is an error if urls has none for env, or one
// that is invalid for [WithBaseURL].
func WithEnvironment(env Environment, urls BaseURLs) Option {
	return func(c *config) error {
		base, ok := urls[env]
		if !ok {
			return fmt.Errorf("no base URL for the environment %q: there are URLs for %q", env, slices.Sorted(maps.Keys(urls)))
		}
		c.baseURL, c.chosenBy = base, append(c.chosenBy, "WithEnvironment")
		return nil
	}
}

// parseBaseURL validates a base URL and returns it without trailing slashes. Its errors do not
// quote the URL, which may contain a password.
func parseBaseURL(base string) (string, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Hostname() == "" || u.Opaque != "":
		return "", errors.New("the base URL must look like https://host or https://host/path")
	case !hasValidPort(u):
		return "", errors.New("the port of the base URL must be between 1 and 65535")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(base, "#"):
		return "", errors.New("the base URL must have no user info, query or fragment")
	case u.Scheme == "http" && !isLoopback(u.Hostname()), u.Scheme != "http" && u.Scheme != "https":
		return "", errors.New("the base URL must be https (http is for loopback addresses only)")
	}
	base = strings.TrimRight(u.String(), "/")
	if path := strings.TrimRight(u.EscapedPath(), "/"); path != "" && !isPath(path) {
		return "", errors.New("the path of the base URL must be escaped and have no . or .. segments")
	}
	return base, nil
}

// hostOf returns the host and port of a base URL.
func hostOf(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	return u.Host
}

func hasValidPort(u *url.URL) bool {
	if u.Port() == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && n > 0
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}
