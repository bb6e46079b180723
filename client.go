package labhealth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labhealth/labhealth-go/internal/jsonread"
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

// Option changes how a client works. An option that makes no sense is an error of [NewClient].
type Option func(*config) error

type config struct {
	core     core
	user     *http.Client
	base     string
	chosen   []string
	handlers []func(context.Context, Attempt)

	operations []string // what WithPath knows
}

// NewClient returns a client for the team API. apiKey is the team API key, sent as x-service-api-key with every request and to
// nobody else. One of [WithBaseURL] and [WithEnvironment] is required.
func NewClient(apiKey string, opts ...Option) (*Client, error) {
	c, err := newCore("x-service-api-key", apiKey, operations, opts)
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
	switch len(cfg.chosen) {
	case 1:
	case 0:
		return nil, errors.New("labhealth: no address: pass WithBaseURL(\"https://…\") or WithEnvironment(environment, addresses)")
	default:
		return nil, fmt.Errorf("labhealth: more than one address: %s", strings.Join(cfg.chosen, " and "))
	}
	base, err := checkBase(cfg.base)
	if err != nil {
		return nil, fmt.Errorf("labhealth: %w", err)
	}
	c := &cfg.core
	c.base, c.http, c.observers = base, transport.NewClient(cfg.user), cfg.handlers
	return c, nil
}

// checkBase returns the address without a slash at its end. It does not quote the address, which may hold a password.
func checkBase(base string) (string, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Hostname() == "" || u.Opaque != "":
		return "", errors.New("the base URL must look like https://host or https://host/path")
	case !validPort(u):
		return "", errors.New("the port of the base URL must be between 1 and 65535")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(base, "#"):
		return "", errors.New("the base URL must have no user info, query or fragment")
	case u.Scheme == "http" && !loopback(u.Hostname()), u.Scheme != "http" && u.Scheme != "https":
		return "", errors.New("the base URL must be https (http is for loopback addresses only)")
	}
	base = strings.TrimRight(u.String(), "/")
	if path := strings.TrimRight(u.EscapedPath(), "/"); path != "" && !validPath(path) {
		return "", errors.New("the path of the base URL must be escaped and have no . or .. segments")
	}
	return base, nil
}

func validPort(u *url.URL) bool {
	if u.Port() == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && n > 0
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// WithBaseURL sets the URL that every path is appended to. The paths hold their versions, such as
// /v3, which the base URL must not repeat. It must be https, loopback hosts excepted, with a port
// between 1 and 65535 if it has one, a path without dot segments if it has one, and no user info,
// query or fragment.
func WithBaseURL(base string) Option {
	return func(c *config) error {
		c.base, c.chosen = base, append(c.chosen, "WithBaseURL")
		return nil
	}
}

// WithEnvironment chooses one of the environments and says where they are. One without an address is an error; the address chosen
// must be as for [WithBaseURL].
func WithEnvironment(env Environment, addresses BaseURLs) Option {
	return func(c *config) error {
		base, ok := addresses[env]
		if !ok {
			known := slices.Sorted(maps.Keys(addresses))
			return fmt.Errorf("no address for the environment %q: the addresses given are for %q", env, known)
		}
		c.base, c.chosen = base, append(c.chosen, "WithEnvironment")
		return nil
	}
}

// WithHTTPClient sends requests through a copy of h: its transport, cookie jar and timeout are
// used, its redirect policy is not. Without this option the client has its own transport, with 64
// idle connections and Go's usual proxy settings.
//
// A transport that is an [*http.Transport], or nil for [http.DefaultTransport], is safe: the client
// uses a copy of it, whose connections [Client.CloseIdleConnections] closes. Through a proxy,
// HTTP/1.1 over TLS uses one connection per request.
//
// Any other [http.RoundTripper] is used as it is. It must send each request once, pass on the
// request's context, and have the hooks of [net/http/httptrace] fired, as one does that wraps an
// *http.Transport to sign, trace or count. If it retries, fails over or duplicates, a write is
// stopped before it is sent a second time, and its outcome is [OutcomeUnknown]. If it follows a
// redirect to another host, or fails over to one, the request is stopped before the key is sent
// there, also that of a read. Where no hooks are fired, as with a mock or a context of its own,
// nothing can be seen or stopped: the outcome of a write is OutcomeUnknown even if the response is
// a 4xx, and no write is repeated. What net/http itself writes to the default logger about a broken
// response, the response's bytes included, can be kept from it only for an *http.Transport that is
// passed here, not for one that is wrapped.
func WithHTTPClient(h *http.Client) Option {
	return func(c *config) error {
		if h == nil {
			return errors.New("WithHTTPClient needs an http.Client")
		}
		copied := *h
		c.user = &copied
		return nil
	}
}

// WithRetry sets how often and when requests are repeated. See [RetryPolicy].
func WithRetry(p RetryPolicy) Option {
	return func(c *config) (err error) {
		c.core.policy, err = p.over(c.core.policy)
		return err
	}
}

// WithBodyLimit caps the body of an answer, in bytes after decompression. The default is 8 MiB.
func WithBodyLimit(n int64) Option {
	return func(c *config) error {
		c.core.maxBody = n
		return positive("WithBodyLimit", n)
	}
}

func positive(name string, n int64) error {
	if n <= 0 {
		return fmt.Errorf("%s must be positive", name)
	}
	return nil
}

// WithObserver calls f after each attempt, in the goroutine of the call. It may be given more than once.
func WithObserver(f func(context.Context, Attempt)) Option {
	return func(c *config) error {
		if f == nil {
			return errors.New("WithObserver needs a function")
		}
		c.handlers = append(c.handlers, f)
		return nil
	}
}

// WithLogger writes a record for each attempt: at debug level if the service answered 2xx, as a warning otherwise. The record
// holds what [Attempt] holds and nothing else.
func WithLogger(l *slog.Logger) Option {
	return func(c *config) error {
		if l == nil {
			return errors.New("WithLogger needs a logger")
		}
		c.handlers = append(c.handlers, func(ctx context.Context, a Attempt) {
			level := slog.LevelWarn
			if a.StatusCode >= 200 && a.StatusCode <= 299 {
				level = slog.LevelDebug
			}
			l.LogAttrs(ctx, level, "labhealth request",
				slog.String("op", a.Op), slog.Int("attempt", a.Number), slog.Int("status", a.StatusCode),
				slog.Duration("duration", a.Duration), slog.String("request_id", a.RequestID), slog.String("outcome", a.Outcome.String()))
		})
		return nil
	}
}

// WithUserAgent replaces the user agent, which is "labhealth-go/" and [Version] by default.
func WithUserAgent(s string) Option {
	return func(c *config) error {
		c.core.userAgent = s
		if s == "" || !validHeader("User-Agent", s) {
			return errors.New("WithUserAgent needs text that can be sent in a header")
		}
		return nil
	}
}

// WithPath says where a deployment has an operation that the interface specification places
// elsewhere: WithPath("GET /orders", "/v3/orders"). The path must be as for [Client.Do] and have
// the same parameters in braces. An operation this client does not know is an error.
func WithPath(operation, path string) Option {
	return func(c *config) error {
		_, documented, _ := strings.Cut(operation, " ")
		if !slices.Contains(c.operations, operation) {
			return fmt.Errorf("WithPath: unknown operation %q: want one of %q", operation, c.operations)
		}
		// The braces of parameters are not sent.
		if !validPath(strings.NewReplacer("{", "", "}", "").Replace(path)) || !slices.Equal(parameters(path), parameters(documented)) {
			return fmt.Errorf("WithPath: the path of %q must begin with one /, be escaped, have no query and no . or .. segments, and have the parameters %q",
				operation, parameters(documented))
		}
		c.core.paths[operation] = path
		return nil
	}
}

// validPath reports whether path begins with one slash and is sent as it stands: net/url makes
// another path of one that is not escaped as it should be, in which %2F has become a slash, and dot
// segments or control characters may lead elsewhere.
func validPath(path string) bool {
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "?#") {
		return false
	}
	for segment := range strings.SplitSeq(path[1:], "/") {
		plain, err := url.PathUnescape(segment)
		if err != nil || plain == "." || plain == ".." || hasControl(plain) || hasControl(segment) || strings.Contains(segment, " ") {
			return false
		}
	}
	u, err := url.Parse(path)
	return err == nil && u.EscapedPath() == path
}

// parameters returns the names in braces, sorted.
func parameters(path string) []string {
	var names []string
	for {
		_, rest, ok := strings.Cut(path, "{")
		name, after, closed := strings.Cut(rest, "}")
		if !ok || !closed {
			slices.Sort(names)
			return names
		}
		names, path = append(names, name), after
	}
}

// RetryPolicy is how often a request is repeated, how long is waited before that, and how long an attempt may take. Members
// that are zero keep their defaults, or the client's values in [WithCallRetry].
//
// A GET is repeated after a lost connection, a timeout, 408, 429 and 5xx other than 501 and 505. Every other method is repeated
// only if the request provably never reached the service, or after a 429, unless it carries an idempotency key. A Retry-After is
// obeyed; without one the wait is a random time below a bound that doubles. A budget shared by all calls of a client keeps an
// outage from doubling the load: a thousand failing calls cost at most a hundred extra requests. Nothing waits past the context's
// deadline.
type RetryPolicy struct {
	MaxAttempts   int           // attempts in all; 3 by default, 1 turns retries off
	BaseWait      time.Duration // the most that is waited before the second attempt; twice that before the third, and so on; 250 ms by default
	MaxWait       time.Duration // the most that is waited before any attempt, a Retry-After aside; 10 s by default
	MaxRetryAfter time.Duration // if the service asks to wait longer, the call ends at once with the answer; 60 s by default
	ReadTimeout   time.Duration // of an attempt of a GET; 30 s by default
	WriteTimeout  time.Duration // of an attempt of anything else; 60 s by default
	// Strict repeats a write only if it was provably not sent: not after a 429 either. Every call of a strict client is strict.
	Strict bool
}

var defaultRetry = RetryPolicy{
	MaxAttempts: 3, BaseWait: 250 * time.Millisecond, MaxWait: 10 * time.Second, MaxRetryAfter: time.Minute,
	ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute,
}

// over fills what p leaves zero from base.
func (p RetryPolicy) over(base RetryPolicy) (RetryPolicy, error) {
	if p.MaxAttempts < 0 {
		return p, errors.New("RetryPolicy.MaxAttempts must not be negative")
	}
	if p.MaxAttempts == 0 {
		p.MaxAttempts = base.MaxAttempts
	}
	for _, d := range []struct {
		name string
		of   *time.Duration
		base time.Duration
	}{
		{"BaseWait", &p.BaseWait, base.BaseWait}, {"MaxWait", &p.MaxWait, base.MaxWait},
		{"MaxRetryAfter", &p.MaxRetryAfter, base.MaxRetryAfter},
		{"ReadTimeout", &p.ReadTimeout, base.ReadTimeout}, {"WriteTimeout", &p.WriteTimeout, base.WriteTimeout},
	} {
		if *d.of < 0 {
			return p, fmt.Errorf("RetryPolicy.%s must not be negative", d.name)
		}
		if *d.of == 0 {
			*d.of = d.base
		}
	}
	p.Strict = p.Strict || base.Strict
	return p, nil
}

// Attempt is one attempt of a call, as observers see it.
type Attempt struct {
	Op         string        // the operation, such as "POST /v3/order/import"
	Number     int           // 1 for the first attempt
	StatusCode int           // 0 if no answer came
	Duration   time.Duration // until the answer was read
	RequestID  string        // the id under which the service knows the request; empty if it sent none
	Outcome    Outcome       // what became of the call so far
}

// CloseIdleConnections closes the idle connections of the client's transport. Those of a transport
// given with [WithHTTPClient] are left alone, but not those of the client's copy of it.
func (c *Client) CloseIdleConnections() { c.core.http.CloseIdleConnections() }

// Do calls any endpoint of the team API, with the same safety as the methods. path begins with / and has its values escaped
// (url.PathEscape); parameters of the query are given with [WithQuery].
//
// body is nil for none, []byte or json.RawMessage for JSON as it is, or a value for encoding/json. out is nil to ignore the
// answer's content, a *json.RawMessage for JSON as it came, or a pointer for encoding/json; the types of this package are read
// as everywhere else.
func (c *Client) Do(ctx context.Context, method, path string, body, out any, opts ...CallOption) error {
	return c.core.doAny(ctx, method, path, body, out, opts)
}

func (c *core) doAny(ctx context.Context, method, path string, body, out any, opts []CallOption) error {
	r := request{op: method + " (Do)", method: method, path: path}
	refuse := func(name, msg string) error { return ofOperation(r.op, refused(msg, name)) }
	switch method {
	case http.MethodGet, http.MethodHead:
		if body != nil {
			return refuse("body", "must be nil for GET and HEAD")
		}
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		r.op = "Do"
		return refuse("method", "must be GET, HEAD, POST, PUT, PATCH or DELETE")
	}
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "?#") {
		return refuse("path", "must begin with one / and have no query or fragment (see WithQuery)")
	}
	if !validPath(path) {
		return refuse("path", "must be escaped and have no . or .. segments")
	}
	switch b := body.(type) {
	case nil:
	case []byte:
		r.body = b
	case json.RawMessage:
		r.body = b
	default:
		text, err := json.Marshal(b)
		if err != nil {
			return refuse("body", "cannot be written as JSON")
		}
		r.body = text
	}
	if r.body != nil {
		if jsonread.Valid(r.body) != nil {
			return refuse("body", "must be valid JSON in UTF-8")
		}
	}
	r.read = func(a *transport.Answer) error {
		if a.Status == http.StatusNoContent || method == http.MethodHead || (out == nil && len(a.Body) == 0) {
			return nil
		}
		if err := readable(a); err != nil {
			return err
		}
		if err := jsonread.Valid(a.Body); err != nil {
			return unreadableBy(a, err)
		}
		if out == nil {
			return nil
		}
		if err := json.Unmarshal(a.Body, out); err != nil {
			// The text of the error quotes the answer.
			return &unreadable{reason: "it does not fit the Go type it is to be read into"}
		}
		problem := ""
		switch v := out.(type) { // as for the methods, only an order id proves that there is an order
		case *PostOrderResponse:
			problem = hasOrder(v)
		case *Order:
			problem = orderProblem(v)
		}
		if problem != "" {
			return &unreadable{reason: problem}
		}
		return nil
	}
	return c.do(ctx, r, opts)
}
