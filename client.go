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

// Version is the version of this module, as its user agent says it.
const Version = "0.1.0"

// Client calls the team API. It is safe for concurrent use and does not change once it is made. Make one with [NewClient] and
// keep it: it holds the connections and the retry budget.
type Client struct {
	// Orders imports, creates, reads and changes lab orders.
	Orders *OrdersService
	// LabTests is the catalogue of what can be ordered.
	LabTests *LabTestsService
	// Users lists, makes and deletes the team's users.
	Users *UsersService
	// Workouts reads what was recorded during workouts.
	Workouts *WorkoutsService

	core *core
}

// Environment is one of the four addresses of the service. The interface specification names them
// and publishes none, so [WithEnvironment] takes the addresses too.
type Environment string

// The environments. There is no default: sending a patient to the wrong region by omission is an incident.
const (
	ProductionUS Environment = "production US"
	ProductionEU Environment = "production EU"
	SandboxUS    Environment = "sandbox US"
	SandboxEU    Environment = "sandbox EU"
)

// BaseURLs is where each environment is. Those that are not used can be left out.
type BaseURLs map[Environment]string

// NewClient returns a client for the team API. apiKey is the team API key, sent as x-service-api-key with every request and to
// nobody else. One of [WithBaseURL] and [WithEnvironment] is required.
func NewClient(apiKey string, opts ...Option) (*Client, error) {
	c, err := newCore("x-service-api-key", apiKey, teamOperations, opts)
	if err != nil {
		return nil, err
	}
	return &Client{
		Orders: &OrdersService{c}, LabTests: &LabTestsService{c}, Users: &UsersService{c}, Workouts: &WorkoutsService{c}, core: c,
	}, nil
}

func newCore(header, key string, operations []string, opts []Option) (*core, error) {
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("labhealth: the API key must not be empty and may hold printable ASCII only")
	}
	cfg := config{operations: operations, core: core{
		auth:      func(h http.Header) { h.Set(header, key) }, // a closure, because %#v prints every field
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
	base, err := checkBase(cfg.baseURL)
	if err != nil {
		return nil, fmt.Errorf("labhealth: %w", err)
	}
	c := &cfg.core
	c.base, c.http = base, transport.NewClient(cfg.httpClient)
	return c, nil
}

// checkBase returns the address without a slash at its end. It does not quote the address, which may hold a password.
func checkBase(base string) (string, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Hostname() == "" || u.Opaque != "":
		return "", errors.New("the base URL must look like https://host or https://host/path")
	case !isPort(u):
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

func isPort(u *url.URL) bool {
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

// CloseIdleConnections closes the idle connections of the client's transport. Those of a transport
// given with [WithHTTPClient] are left alone, but not those of the client's copy of it.
func (c *Client) CloseIdleConnections() { c.core.http.CloseIdleConnections() }
