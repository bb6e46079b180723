// Package bridge connects package labhealth with package management, which sends its calls with it.
package bridge

import (
	"context"
	"iter"
	"net/url"

	"github.com/google/uuid"
)

// API describes the client of package management.
type API struct {
	OrgID      uuid.UUID // the first parameter of every path
	Key        string
	Operations []string // that have methods
	Types      Types
}

// Types calls the methods that the types of package management do not export.
type Types interface {
	Query(params any) url.Values
	Validate(part any, v Validator)                     // the parameters or the body of a request
	Verify(response any) error                          // why a response cannot be used
	FromList(response any, list []byte) (object []byte) // the documented form of a list, nil if there is none
	Elements(page any) (items any, next *string)
}

// Validator collects the invalid fields of a request.
type Validator interface {
	Within(name string, validate func())
	Add(name, code, msg string)
	Required(name, s string)
	Length(name, s string, minimum, maximum int)
	RequiredID(name string, id uuid.UUID)
	OptionalID(name string, id *uuid.UUID)
	ValidIDs(name string, ids []uuid.UUID)
	AtLeast(name string, n, minimum int)
}

// Client sends calls. O is labhealth.CallOption.
type Client[O any] interface {
	Call(ctx context.Context, r Request, opts []O) error
	Do(ctx context.Context, method, path string, body, out any, opts []O) error
	// Pages returns an iterator over a list whose pages have the cursor of the next one.
	Pages(ctx context.Context, opts []O, op, start string, id func(item any) uuid.UUID, list List[O]) iter.Seq2[any, error]
	CloseIdleConnections()
}

// List returns the page at a cursor.
type List[O any] func(ctx context.Context, cursor string, opts []O) (page any, err error)

// Request is one call.
type Request struct {
	Op     string   // method and path of the operation
	IDs    []string // values of the path parameters, in order, without the organisation
	Params any      // nil for none
	Body   any      // nil for none
	Out    any      // what the response is decoded into; nil to ignore it

	TeamConflict bool // a 409 can be a *labhealth.TeamConflictError
}
