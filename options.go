// The options of a client.

package labhealth

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/labhealth/labhealth-go/internal/transport"
)

// Option configures a client. If an option is invalid, [NewClient] and the NewClient of package
// management return an error.
type Option func(*config) error

// config holds the settings made by the options of a client.
type config struct {
	core         core
	httpClient   *http.Client
	chosenBy     []string    // the options that set the base URL
	environment  Environment // of the base URL; empty if it is not known
	insecureHost string      // see WithInsecureHTTP
	warnInsecure func(address string)
	logger       *slog.Logger                      // see WithLogger
	source       func(keyHeader string) authorizer // see WithCredentials
	operations   []string                          // those that WithPath accepts
	limit        func(*transport.Client)           // see WithRateLimit
}

// WithHTTPClient sends requests with a copy of h: it uses the transport, the cookie jar and the
// timeout of h, but not its redirect policy. Without this option the client has its own transport,
// with 64 idle connections and the proxy settings of [http.ProxyFromEnvironment].
//
// An [*http.Transport], or nil for [http.DefaultTransport], meets the requirements below: the
// client uses a copy of it, whose connections [Client.CloseIdleConnections] closes. Through a
// proxy, HTTP/1.1 over TLS does not reuse connections.
//
// Any other [http.RoundTripper] is used unchanged. It must send each request once, pass on the
// context of the request, and call the hooks of [net/http/httptrace]. A wrapper of an
// *[http.Transport] that signs, traces or counts requests meets these requirements. If a wrapper
// retries, fails over or duplicates, the client stops a write before it is sent a second time, with
// [OutcomeUnknown]. If a wrapper follows a redirect or fails over to another host, the client stops
// any request, including a read, before the key is sent there.
//
// A mock, or a wrapper that replaces the context, does not call the hooks. Then the client can stop
// nothing, the outcome of a failed write is OutcomeUnknown even after a 4xx, and no write is
// retried.
//
// net/http writes bytes of some broken responses, which may be patient data, to the default logger.
// The client prevents that only for an *http.Transport that is passed here itself, not wrapped.
func WithHTTPClient(h *http.Client) Option {
	return func(c *config) error {
		if h == nil {
			return errors.New("WithHTTPClient needs an http.Client")
		}
		copied := *h
		c.httpClient = &copied
		return nil
	}
}

// WithBodyLimit limits the size of a response body, in bytes after decompression. The default is 8
// MiB, and 64 MiB for the operations that return PDFs, summaries, samples and streams.
func WithBodyLimit(n int64) Option {
	return func(c *config) error {
		c.core.maxBody = n
		if n <= 0 {
			return errors.New("WithBodyLimit must be positive")
		}
		return nil
	}
}

// WithUserAgent replaces the user agent, which is "labhealth-go/" and [Version] by default.
func WithUserAgent(s string) Option {
	return func(c *config) error {
		c.core.userAgent = []string{s}
		if s == "" || !isHeader("User-Agent", s) {
			return errors.New("WithUserAgent needs text that can be sent in a header")
		}
		return nil
	}
}

// WithDefaultHeader adds a header to every request of the client. [WithHeader] replaces it for one
// call. Headers that WithHeader rejects are invalid, as is Accept, which depends on the operation.
// To give a header several values, repeat the option.
func WithDefaultHeader(name, value string) Option {
	name = textproto.CanonicalMIMEHeaderKey(name)
	return func(c *config) error {
		switch {
		case !isHeader(name, value):
			return errors.New("WithDefaultHeader needs a name and a value that can be sent")
		case !isDefaultHeader(name):
			return fmt.Errorf("WithDefaultHeader: %s is set by the client", name)
		}
		if c.core.header == nil {
			c.core.header = http.Header{}
		}
		c.core.header.Add(name, value)
		return nil
	}
}

// WithRateLimit limits the requests of all calls of the client together, so that the service has no
// reason for a 429: in any t seconds, the client sends at most burst + t×perSecond requests. Every
// attempt counts. Without the option there is no limit. perSecond is at least one per hour, and
// burst is at least 1.
//
// If the service permits n requests in any second, keep perSecond + burst somewhat below n: the
// network delays some requests more than others.
//
// Requests that must wait are sent first come, first served. A call that could not be sent before
// the deadline of its context returns at once, with [OutcomeNotSent] and [FailureRateLimit]. The
// wait is not part of an attempt, so it does not count toward its timeout. After a 429 with a
// Retry-After up to [RetryPolicy.MaxRetryAfter], all requests wait until that time has passed, and
// then start without a burst.
//
// The limit is for one client: share the client, or divide what the team may send among its clients
// and processes. Package bulk paces itself within this limit.
func WithRateLimit(perSecond float64, burst int) Option {
	return func(c *config) error {
		if !(perSecond >= 1./3600 && perSecond <= 1e9) || burst < 1 || burst > 1e6 {
			return errors.New("WithRateLimit needs at least one request per hour, and a burst between 1 and 1,000,000")
		}
		c.limit = func(h *transport.Client) { h.LimitRate(perSecond, burst) }
		return nil
	}
}

// WithPath sets the path of an operation, for a deployment that serves it at a different path than
// the one in the interface specification: WithPath("GET /orders", "/v3/orders"). The path must be
// valid for [Client.Do] and have the parameters of the operation in braces. An unknown operation is
// an error.
func WithPath(operation, path string) Option {
	return func(c *config) error {
		switch {
		case slices.Contains(c.operations, operation):
		case slices.Contains(operations, operation), isManagement(operation) && !isManagement(c.operations[0]):
			return fmt.Errorf("WithPath: %q is an operation of the other API", operation)
		default:
			return fmt.Errorf("WithPath: unknown operation %q: did you mean %q?", operation, closest(operation, c.operations))
		}
		_, documented, _ := strings.Cut(operation, " ")
		names := pathParameters(documented)
		// The braces of parameters are not sent.
		if !isPath(strings.NewReplacer("{", "", "}", "").Replace(path)) || hasEscapedSlash(path) || !hasParameters(path, names) {
			return fmt.Errorf("WithPath: the path of %q must begin with one /, be escaped, have no query, no escaped slash and no . or .. segments, and have the parameters %q",
				operation, names)
		}
		c.core.paths[operation] = path
		return nil
	}
}

func isManagement(operation string) bool { return strings.Contains(operation, " /v1/org/") }

// closest returns the name that has the longest start and end in common with s.
func closest(s string, names []string) string {
	common := func(name string) int {
		start, end := 0, 0
		for start < min(len(s), len(name)) && s[start] == name[start] {
			start++
		}
		for end < min(len(s), len(name))-start && s[len(s)-1-end] == name[len(name)-1-end] {
			end++
		}
		return 2*(start+end) - len(name)
	}
	return slices.MaxFunc(names, func(a, b string) int { return cmp.Compare(common(a), common(b)) })
}
