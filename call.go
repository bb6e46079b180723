// The path of all calls, with its steps in order, and the request that they take.

package labhealth

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"time"

	"github.com/labhealth/labhealth-go/internal/transport"
)

// core is the state that the services of a client share.
type core struct {
	base      string
	authorize authorizer
	userAgent []string
	http      *transport.Client
	policy    RetryPolicy
	maxBody   int64             // of WithBodyLimit; 0 for the limit of the operation
	orgID     string            // the first path parameter; empty for the team API
	paths     map[string]string // operation → its path at this deployment

	callObservers []CallObserver
	observed      func(*core, context.Context, request, []CallOption) error   // set with callObservers
	host          string                                                      // host and port of base
	header        http.Header                                                 // of every request
	operations    []string                                                    // that have methods
	debug         []func(context.Context, *core, request, *transport.Request) // see WithDebug
}

// request is one call before it is encoded.
type request struct {
	op    string      // method and path of the operation
	ids   []string    // values of the path parameters, in order, without core.orgID
	query queryParams // nil for none
	body  any         // nil for none, json.RawMessage for a document, or a struct of this package
	out   any         // a pointer to the result, or a reader; nil for a response that is ignored

	// What few operations do differently.
	minTimeout  time.Duration         // raises the timeout of an attempt of a write
	errorsIn200 bool                  // a 200 response may report an error
	maxBody     int64                 // for large responses; 0 for the default
	repeatable  bool                  // accepts WithIdempotencyKey
	refine      func(*APIError) error // turns an APIError into a more specific error; nil for none
	target      *target               // of Do; nil for the operations
}

// call sends r, decodes the response, a JSON object, into the struct that v points to, and returns
// v, or nil with an error. Its type parameter is a pointer, because the compiler generates one
// function for all pointers, and one for each struct.
func call[P any](ctx context.Context, c *core, v P, r request, opts []CallOption) (P, error) {
	if err := c.callInto(ctx, r, v, opts); err != nil {
		var none P
		return none, err
	}
	return v, nil
}

// callList sends r and decodes the response, a JSON array of objects.
func callList[T any](ctx context.Context, c *core, r request, opts []CallOption) ([]T, error) {
	list := new([]T)
	err := c.callInto(ctx, r, list, opts)
	return *list, err
}

// callInto sends r and decodes the response into the struct or slice that v points to, which is
// zero after an error.
func (c *core) callInto(ctx context.Context, r request, v any, opts []CallOption) error {
	r.out = v
	err := c.do(ctx, r, opts)
	if err != nil {
		reflect.ValueOf(v).Elem().SetZero()
	}
	return err
}

// callEmpty sends r. The response must be empty or JSON, which is ignored.
func callEmpty(ctx context.Context, c *core, r request, opts []CallOption) error {
	return c.do(ctx, r, opts)
}

// coreOf returns the core of a service, nil if the service is nil or was not made by a client.
func coreOf[S ~struct{ core *core }](service *S) *core {
	if service == nil {
		return nil
	}
	return struct{ core *core }(*service).core
}

// usable returns an error if a call cannot start, because it has no client or no context.
func (c *core) usable(ctx context.Context) error {
	switch {
	case c == nil:
		return invalid("is nil or its zero value: create it with NewClient", "client")
	case ctx == nil:
		return invalid("must not be nil: use context.Background() if there is no other", "ctx")
	}
	return nil
}

// closeIdleConnections does nothing without a client.
func (c *core) closeIdleConnections() {
	if c != nil {
		c.http.CloseIdleConnections()
	}
}

// do performs every call, for the observers of calls if there are any.
func (c *core) do(ctx context.Context, r request, opts []CallOption) error {
	if err := c.usable(ctx); err != nil {
		return withOp(r.op, err)
	}
	if c.observed != nil {
		return c.observed(c, ctx, r, opts)
	}
	return c.perform(ctx, r, nil, opts)
}

// perform takes the steps of every call, each of which ends it with its error. The observation may
// be nil.
func (c *core) perform(ctx context.Context, r request, o *observation, opts []CallOption) error {
	q, cfg, err := c.prepare(&r, o, opts)
	if err != nil {
		return withOp(r.op, err)
	}
	if o != nil {
		q.Observe = func(a transport.Attempt) { o.observe(ctx, a) }
	}
	auth := c.authorize(q)
	for _, debug := range c.debug {
		debug(ctx, c, r, q)
	}
	result := c.http.Do(ctx, q, r.decode)
	if cfg.response != nil {
		*cfg.response = newResponse(result)
	}
	if err := resultError(&r, result); err != nil {
		return auth.explain(err)
	}
	result.Release() // what the call returns holds copies
	return nil
}

// prepare takes the steps before the first attempt: options, validation, encoding.
func (c *core) prepare(r *request, o *observation, opts []CallOption) (*transport.Request, *callConfig, error) {
	cfg, err := c.configure(r, o, opts)
	if err != nil {
		return nil, nil, err
	}
	if err := r.validate(cfg.skipValidation); err != nil {
		return nil, nil, err
	}
	q, err := c.encode(r, cfg)
	return q, cfg, err
}

// withOp sets the operation of a *ValidationError.
func withOp(op string, err error) error {
	var v *ValidationError
	if errors.As(err, &v) {
		v.Op = op
	}
	return err
}
