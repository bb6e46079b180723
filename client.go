package labhealth

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/labhealth/labhealth-go/internal/transport"
)

// Version is the version of this module. It is part of the default user agent.
const Version = "0.1.0"

// Client calls the team API. It is immutable and safe for concurrent use. Create one with
// [NewClient] and reuse it: it holds the connections and the retry budget.
type Client struct {
	// Orders imports, creates, lists and updates lab orders.
	Orders *OrdersService
	// LabTests lists the lab tests that can be ordered.
	LabTests *LabTestsService
	// Users lists, creates and deletes users.
	Users *UsersService
	// Workouts returns the data of workouts.
	Workouts *WorkoutsService

	core *core
}

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

// NewClient returns a client for the team API. apiKey is the team API key, which is sent as
// x-service-api-key with every request, to the base URL only. One of [WithBaseURL] and
// [WithEnvironment] is required.
func NewClient(apiKey string, opts ...Option) (*Client, error) {
	c, err := newCore("x-service-api-key", apiKey, teamOperations, opts)
	if err != nil {
		return nil, err
	}
	return &Client{
		Orders: &OrdersService{c}, LabTests: &LabTestsService{c}, Users: &UsersService{c}, Workouts: &WorkoutsService{c}, core: c,
	}, nil
}

// newCore returns the core of a client that authenticates with key in the given header.
func newCore(header, key string, operations []string, opts []Option) (*core, error) {
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("labhealth: the API key must not be empty and may hold printable ASCII only")
	}
	cfg := config{operations: operations, core: core{
		// The key is in a closure, because %#v prints all fields.
		auth:      func(h http.Header) { h.Set(header, key) },
		userAgent: "labhealth-go/" + Version,
		policy:    defaultRetry,
		maxBody:   8 << 20,
		paths:     map[string]string{},
	}}
	for _, opt := range opts {
		if opt == nil {
			continue
		}
		if err := opt(&cfg); err != nil {
			return nil, fmt.Errorf("labhealth: %w", err)
		}
	}
	switch len(cfg.chosenBy) {
	case 1:
	case 0:
		return nil, errors.New("labhealth: no base URL: pass WithBaseURL(\"https://…\") or WithEnvironment(environment, urls)")
	default:
		return nil, fmt.Errorf("labhealth: more than one base URL: %s", strings.Join(cfg.chosenBy, " and "))
	}
	base, err := parseBaseURL(cfg.baseURL)
	if err != nil {
		return nil, fmt.Errorf("labhealth: %w", err)
	}
	c := &cfg.core
	c.base, c.http = base, transport.NewClient(cfg.httpClient)
	return c, nil
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

// CloseIdleConnections closes the idle connections of the client's own transport, or of its copy of
// the transport passed to [WithHTTPClient]. The passed transport itself is not affected.
func (c *Client) CloseIdleConnections() { c.core.http.CloseIdleConnections() }
