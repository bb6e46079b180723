// The options of a call, and the Response that WithResponse fills.

package labhealth

import (
	"bytes"
	"cmp"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/labhealth/labhealth-go/internal/transport"
)

// CallOption configures one call. If an option is invalid, the call returns an error and sends
// nothing.
type CallOption func(*callConfig) error

// callConfig holds the settings made by the options of a call.
type callConfig struct {
	header         http.Header
	query          url.Values // nil for none
	response       *Response
	skipValidation bool
	policy         RetryPolicy
	maxBody        int64
	idempotencyKey string
	repeatable     bool // the operation accepts an idempotency key
}

// configure applies the options of a call. The observation may be nil.
func (c *core) configure(r *request, o *observation, opts []CallOption) (*callConfig, error) {
	cfg := &callConfig{
		header: http.Header{}, policy: c.policy,
		maxBody: cmp.Or(c.maxBody, r.maxBody, maxBody), repeatable: r.repeatable,
	}
	if r.query != nil {
		cfg.query = r.query.query().Values
	}
	for _, opt := range opts {
		if opt == nil {
			continue
		}
		if err := opt(cfg); err != nil {
			return nil, err
		}
	}
	cfg.header = c.headers(o, cfg.header)
	return cfg, nil
}

// headers returns the headers of a call: those of the client, replaced by those of the observers,
// replaced by those of the call. The observation may be nil.
func (c *core) headers(o *observation, call http.Header) http.Header {
	if len(c.header) == 0 && o == nil {
		return call
	}
	h := c.header.Clone()
	if h == nil {
		h = http.Header{}
	}
	if o != nil {
		for name, values := range o.header {
			name = textproto.CanonicalMIMEHeaderKey(name)
			values = slices.DeleteFunc(slices.Clone(values), func(value string) bool {
				return !isDefaultHeader(name) || !isHeader(name, value)
			})
			if len(values) > 0 {
				h[name] = values
			}
		}
	}
	maps.Copy(h, call)
	return h
}

// Response is the HTTP response of a call, in addition to the value that the call returns. See
// [WithResponse].
type Response struct {
	Redacted

	StatusCode int         // 0 without a response
	Header     http.Header // nil without a response
	// Body is the raw body after decompression. It has at most 64 KiB unless the status is 2xx.
	Body      []byte
	Attempts  int    // number of attempts
	RequestID string // the service's ID of the request; empty if it sent none
}

func newResponse(result *transport.Result) Response {
	response := Response{Attempts: result.Attempts}
	if r := result.Response; r != nil {
		response.StatusCode, response.Header = r.StatusCode, r.Header
		response.Body, response.RequestID = bytes.Clone(r.Body), r.RequestID
	}
	return response
}

// WithHeader adds a header to the request. It replaces the values of [WithDefaultHeader] and of a
// [CallObserver]. A header is a validation error if it carries a key, requests a range, or is set
// by the client or net/http (except Accept). Underscores in its name count as hyphens.
func WithHeader(name, value string) CallOption {
	name = textproto.CanonicalMIMEHeaderKey(name)
	return func(c *callConfig) error {
		if isReserved(name) {
			return invalid("is set by the client", "header", name)
		}
		if !isHeader(name, value) {
			return invalid("must be a name and a value that can be sent", "header")
		}
		c.header.Add(name, value)
		return nil
	}
}

var reservedHeaders = []string{
	"X-Service-Api-Key", "X-Management-Key", "X-Service-Org-Key", "Authorization", "Proxy-Authorization", "Host",
	"Connection", "Content-Length", "Content-Type", "Transfer-Encoding", "Accept-Encoding", "Expect", "Te", "Trailer",
	"Upgrade", "X-Idempotency-Key", "Idempotency-Key", "User-Agent", "Keep-Alive", "Proxy-Connection", "Http2-Settings",
	"Content-Encoding", "Content-Range", "Range", "If-Range",
	// A GET that some server takes for another method would be repeated.
	"X-Http-Method-Override", "X-Http-Method", "X-Method-Override",
}

// isReserved reports whether the client or net/http sets a header. Servers and gateways that pass
// headers on as variables read an underscore as a hyphen.
func isReserved(name string) bool {
	return slices.Contains(reservedHeaders, textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "_", "-")))
}

// isDefaultHeader reports whether a client or an observer may set a header for all operations.
func isDefaultHeader(name string) bool { return !isReserved(name) && name != "Accept" }

// isHeader reports whether name is a token of RFC 9110 and value has no control characters.
func isHeader(name, value string) bool {
	const token = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return name != "" && strings.Trim(name, token) == "" &&
		!strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// WithQuery adds a query parameter, for parameters that have no field yet. The same name may be
// given more than once.
func WithQuery(name, value string) CallOption {
	return func(c *callConfig) error {
		if c.query == nil {
			c.query = url.Values{}
		}
		c.query.Add(name, value)
		return nil
	}
}

// WithResponse fills r with the HTTP response, even if the call fails. With an iterator, r holds
// the latest page.
func WithResponse(r *Response) CallOption {
	return func(c *callConfig) error {
		if r == nil {
			return invalid("needs a *Response", "WithResponse")
		}
		c.response = r
		*r = Response{}
		return nil
	}
}

// WithoutValidation sends the request even if local validation fails. Path parameters are always
// validated.
func WithoutValidation() CallOption {
	return func(c *callConfig) error {
		c.skipValidation = true
		return nil
	}
}

// WithCallRetry changes the retry policy for one call. Zero fields keep the client's values.
func WithCallRetry(p RetryPolicy) CallOption {
	return func(c *callConfig) (err error) {
		if c.policy, err = p.withDefaults(c.policy); err != nil {
			return invalid(err.Error(), "WithCallRetry")
		}
		return nil
	}
}

// WithIdempotencyKey sends X-Idempotency-Key, and allows a retry after an unknown outcome. Only
// [OrdersService.Create], [OrdersService.CreateTestkit] and, with [AppointmentWalkIn],
// [AppointmentsService.Book] accept it: for any other operation it is a validation error. A key has
// 1 to 255 printable ASCII characters.
//
// Use it only with a deployment that honors the key, which the specification does not promise. Such
// a deployment stores the first outcome of a key, success or failure, and returns it again for
// every request with this key: for at least 24 hours if an order is created, and for 14 days if an
// appointment is booked. What it does if the body differs from the first one is not documented. For
// test kits, the service is reported to accept the key since September 2026; the public API
// reference does not say so.
//
// Choose a new key for every order or booking that you want to make, such as a random UUID that is
// stored with the record. Use a key again only to repeat the same request after an unknown outcome.
// After a rejection, a cancellation or a change of the body, use another key, because the old one
// may return the old outcome. If you derive the idempotency key of a booking from the order ID, add
// the booking key: otherwise a booking after a cancellation returns the canceled appointment. If a
// response may be a stored one, [OrdersService.Get] and [AppointmentsService.Get] return the
// current state. Source: public API reference only.
func WithIdempotencyKey(key string) CallOption {
	return func(c *callConfig) error {
		switch {
		case !c.repeatable:
			return invalid("is for Orders.Create, Orders.CreateTestkit, and Appointments.Book with AppointmentWalkIn; after an unknown outcome of another operation, check whether it took effect before you repeat it", "WithIdempotencyKey")
		case key == "" || len(key) > 255 || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
			return invalid("needs 1 to 255 printable ASCII characters", "WithIdempotencyKey")
		}
		c.idempotencyKey = key
		return nil
	}
}
