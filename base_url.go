// The environments and the base URL of a client.

package labhealth

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Environment identifies one of the four deployments of the service: production or sandbox, in the
// US or in the EU. Each has its own base URL, keys and data, and a key of one does not work in
// another. The interface specification names the deployments, but publishes no base URLs.
//
// The management API has one deployment for all of them. It names the two halves separately:
// [TeamEnvironment] is production or sandbox, [Region] is us or eu. A team has one Region, which
// stores its data, and both environments. [Environment.TeamEnvironment] and [Environment.Region]
// return the halves.
//
// Environment decodes from JSON, YAML and flags ([flag.TextVar]) in every spelling that
// [ParseEnvironment] accepts.
type Environment string

// Values of [Environment]. There is no default, so that a missing option cannot send patient data
// to the wrong region.
const (
	ProductionUS Environment = "production_us"
	ProductionEU Environment = "production_eu"
	SandboxUS    Environment = "sandbox_us"
	SandboxEU    Environment = "sandbox_eu"
)

// environments are the spellings of each environment in lower case, without separators.
var environments = map[string]Environment{
	"productionus": ProductionUS, "usproduction": ProductionUS, "produs": ProductionUS, "usprod": ProductionUS,
	"productioneu": ProductionEU, "euproduction": ProductionEU, "prodeu": ProductionEU, "euprod": ProductionEU,
	"sandboxus": SandboxUS, "ussandbox": SandboxUS,
	"sandboxeu": SandboxEU, "eusandbox": SandboxEU,
}

// ParseEnvironment returns the environment that s names, for a choice in a configuration file. The
// two words may be in any order and case, with or without a space, "_", "-", "." or "/" between
// them: "sandbox_us", "Production EU", "us-sandbox". "prod" stands for production. Anything else is
// an error, which does not quote s, because a key may have been set in its place.
func ParseEnvironment(s string) (Environment, error) {
	separators := strings.NewReplacer(" ", "", "_", "", "-", "", ".", "", "/", "")
	env, ok := environments[strings.ToLower(separators.Replace(s))]
	if !ok {
		return "", fmt.Errorf("labhealth: %w", errEnvironment)
	}
	return env, nil
}

var errEnvironment = errors.New("the environment must be production_us, production_eu, sandbox_us or sandbox_eu")

// UnmarshalText sets e as [ParseEnvironment] does.
func (e *Environment) UnmarshalText(text []byte) (err error) {
	*e, err = ParseEnvironment(string(text))
	return err
}

// MarshalText returns e as text, such as "sandbox_us".
func (e Environment) MarshalText() ([]byte, error) { return []byte(e), nil }

// TeamEnvironment returns the first half of e for the management API, such as
// [TeamEnvironmentSandbox].
func (e Environment) TeamEnvironment() TeamEnvironment {
	environment, _, _ := strings.Cut(string(e), "_")
	return TeamEnvironment(environment)
}

// Region returns the second half of e for the management API, such as [RegionUS].
func (e Environment) Region() Region {
	_, region, _ := strings.Cut(string(e), "_")
	return Region(region)
}

// TeamEnvironment is one of the two environments of a team. [Environment] explains how it relates
// to the deployments of the team API. Values other than the constants occur.
type TeamEnvironment string

// Values of [TeamEnvironment].
const (
	TeamEnvironmentProduction TeamEnvironment = "production"
	TeamEnvironmentSandbox    TeamEnvironment = "sandbox"
)

// Region is the region that stores the data of a team. [Environment] explains how it relates to the
// deployments of the team API. Values other than the constants occur.
type Region string

// Values of [Region].
const (
	RegionUS Region = "us"
	RegionEU Region = "eu"
)

// WithEnvironment sets the base URL of the deployment for env, such as [SandboxUS]: see
// [WithBaseURL]. Errors of the base URL name env, for example if your configuration has none for
// it. [ParseEnvironment] parses a configured name.
func WithEnvironment(env Environment, base string) Option {
	parsed, err := ParseEnvironment(string(env))
	if err != nil {
		return func(*config) error { return errEnvironment }
	}
	return withBaseURL("WithEnvironment", parsed, base)
}

// WithBaseURL sets the base URL, without naming its environment. Use it for the embedded service of
// package labhealthtest, a proxy or the management API. The paths contain their versions, such as
// /v3: do not repeat them in the base URL. The URL must be https, except for loopback hosts and
// that of [WithInsecureHTTP]. It may have a port between 1 and 65535 and a path without dot
// segments, but no user info, query or fragment.
func WithBaseURL(base string) Option { return withBaseURL("WithBaseURL", "", base) }

// withBaseURL returns the option with the given name, for an environment that may be unknown.
func withBaseURL(option string, env Environment, base string) Option {
	return func(c *config) (err error) {
		c.chosenBy = append(c.chosenBy, option)
		if len(c.chosenBy) > 1 {
			return fmt.Errorf("more than one base URL: %s: pass one of these options, once", strings.Join(c.chosenBy, " and "))
		}
		c.environment = env
		if c.core.base, err = parseBaseURL(base); err != nil {
			return c.ofEnvironment(err)
		}
		return nil
	}
}

// WithInsecureHTTP permits http instead of https for one host that is not loopback, such as the
// embedded service in another container, or a sidecar that encrypts. host is a name or an IP
// address, without scheme and port. Anyone who can read the network on the way sees the key and
// patient data. [NewClient] logs a warning, and returns an error if the requests would pass through
// a proxy. No other host is affected, and no redirect changes the scheme or the host.
func WithInsecureHTTP(host string) Option {
	return func(c *config) error {
		c.insecureHost = strings.Trim(host, "[]")
		c.warnInsecure = func(address string) { // here, so that other programs do not link a handler of slog
			cmp.Or(c.logger, slog.Default()).Warn("labhealth: the key and the data of patients are sent unencrypted", "host", address)
		}
		_, err := netip.ParseAddr(c.insecureHost)
		if err != nil && (host == "" || strings.Contains(host, ":") || !hasValidHost(&url.URL{Host: host})) {
			return errors.New("WithInsecureHTTP needs the name of a host or its IP address, without scheme and port")
		}
		return nil
	}
}

var errInsecure = errors.New("the base URL must be https (http is for loopback addresses, and for the host of WithInsecureHTTP)")

// checkScheme returns an error if the base URL must not be http, and warns if it is.
func (c *config) checkScheme() error {
	u, err := url.Parse(c.core.base)
	if err != nil {
		return err
	}
	insecure := u.Scheme == "http" && !isLoopback(u.Hostname())
	switch {
	case !insecure && c.insecureHost != "":
		return errors.New("WithInsecureHTTP: the base URL is not http, or of a loopback host: remove the option")
	case !insecure:
		return nil
	case c.insecureHost == "" || !strings.EqualFold(u.Hostname(), c.insecureHost):
		return c.ofEnvironment(errInsecure)
	case c.isProxied(u):
		return errors.New("WithInsecureHTTP: requests would pass through a proxy, which reads them: add the host to NO_PROXY, or pass WithHTTPClient a transport without a proxy")
	}
	c.warnInsecure(u.Host)
	return nil
}

// isProxied reports whether a request to u is known to pass through a proxy.
func (c *config) isProxied(u *url.URL) bool {
	transport := http.DefaultTransport
	if c.httpClient != nil && c.httpClient.Transport != nil {
		transport = c.httpClient.Transport
	}
	known, ok := transport.(*http.Transport)
	if !ok || known.Proxy == nil {
		return false
	}
	proxy, err := known.Proxy(&http.Request{URL: u})
	return proxy != nil || err != nil
}

// ofEnvironment adds the environment of the base URL to an error, if it is known.
func (c *config) ofEnvironment(err error) error {
	if c.environment == "" {
		return err
	}
	return fmt.Errorf("%s: %w", c.environment, err)
}

// parseBaseURL validates a base URL and returns it without trailing slashes. Its errors do not
// quote the URL, which may contain a password.
func parseBaseURL(base string) (string, error) {
	if why := whyNoURL(base); why != "" {
		return "", errors.New("the base URL " + why)
	}
	u, err := url.Parse(base)
	if why := whyNoTarget(u, err); why != "" {
		return "", errors.New(why)
	}
	if u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(base, "#") {
		return "", errors.New("the base URL must have no user info, query or fragment")
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return "", errInsecure
	}
	base = strings.TrimRight(u.String(), "/")
	if path := strings.TrimRight(u.EscapedPath(), "/"); path != "" && !isPath(path) {
		return "", errors.New("the path of the base URL must be escaped and have no . or .. segments")
	}
	if path := strings.TrimRight(u.EscapedPath(), "/"); slices.Contains(versions, path) {
		return "", fmt.Errorf("the base URL ends in %s: remove it, because every path has its version", path)
	}
	return base, nil
}

var versions = []string{"/v1", "/v2", "/v3"}

// whyNoURL returns why a base URL cannot be parsed, "" if that is not plain.
func whyNoURL(base string) string {
	switch {
	case base == "":
		return "is empty: is its environment variable set?"
	case strings.ContainsFunc(base, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return "has a space, a line break or a control character: remove it"
	case isQuoted(base):
		return "is in quotes: remove them"
	case !strings.Contains(base, "://"):
		return "has no scheme: it must look like https://host or https://host/path"
	}
	return ""
}

// whyNoTarget returns what is wrong with the host and port of a parsed URL, "" if nothing is.
func whyNoTarget(u *url.URL, err error) string {
	switch {
	case err != nil || u.Hostname() == "" || u.Opaque != "":
		return "the base URL must look like https://host or https://host/path"
	case !hasValidHost(u):
		return "the host of the base URL is not valid"
	case !hasValidPort(u):
		return "the port of the base URL must be between 1 and 65535"
	}
	return ""
}

// hasValidHost reports whether the host is an IP address or looks like a name. Names that are not
// ASCII are left to package net.
func hasValidHost(u *url.URL) bool {
	host := u.Hostname()
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return utf8.ValidString(host) && !strings.ContainsFunc(host, func(r rune) bool {
		return r <= 0x7f && !strings.ContainsRune(codeChars+"-.", r)
	})
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
