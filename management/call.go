// Calls, pages and parameters, by means of package labhealth.

package management

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/url"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/bridge"
)

type (
	sender    = bridge.Client[labhealth.CallOption]
	request   = bridge.Request
	validator = bridge.Validator
)

// call sends r, decodes the response into the struct that v points to, and returns v, or nil with
// an error.
func call[P any](ctx context.Context, c sender, v P, r request, opts []labhealth.CallOption) (P, error) {
	r.Out = v
	if err := callEmpty(ctx, c, r, opts); err != nil {
		var none P
		return none, err
	}
	return v, nil
}

// callEmpty sends r. The response must be empty or JSON, which is ignored.
func callEmpty(ctx context.Context, c sender, r request, opts []labhealth.CallOption) error {
	if c == nil {
		return noClient(r.Op)
	}
	return c.Call(ctx, r, opts)
}

func noClient(op string) error {
	return invalid(op, "is nil or its zero value: create it with NewClient", "client")
}

func invalid(op, msg, name string) error {
	return &labhealth.ValidationError{Op: op, Fields: []labhealth.FieldError{{Loc: []string{name}, Type: "value_error", Msg: msg}}}
}

// coreOf returns the client of a service, nil if the service is nil or was not made by a client.
func coreOf[S ~struct{ core sender }](service *S) sender {
	if service == nil {
		return nil
	}
	return struct{ core sender }(*service).core
}

// cursorPages returns an iterator over a list whose pages have the cursor of the next one. P is a
// pointer to an element.
func cursorPages[P any](ctx context.Context, c sender, opts []labhealth.CallOption, op, start string, id func(P) uuid.UUID, list bridge.List[labhealth.CallOption]) iter.Seq2[P, error] {
	return func(yield func(P, error) bool) {
		if c == nil {
			var none P
			yield(none, noClient(op))
			return
		}
		for item, err := range c.Pages(ctx, opts, op, start, func(item any) uuid.UUID { return id(item.(P)) }, list) {
			element, _ := item.(P) // nil with an error
			if !yield(element, err) {
				return
			}
		}
	}
}

// types implements [bridge.Types].
type types struct{}

func (types) Query(params any) url.Values {
	query := params.(interface{ query() url.Values }).query()
	maps.DeleteFunc(query, func(_ string, values []string) bool { return len(values) == 0 })
	return query
}

func (types) Validate(part any, v validator) {
	if part, ok := part.(interface{ validate(validator) }); ok {
		part.validate(v)
	}
}

func (types) Verify(response any) error {
	if response, ok := response.(interface{ verify() error }); ok {
		return response.verify()
	}
	return nil
}

func (types) FromList(response any, list []byte) []byte {
	if response, ok := response.(interface{ fromList([]byte) []byte }); ok {
		return response.fromList(list)
	}
	return nil
}

func (types) Elements(page any) (items any, next *string) {
	return page.(interface{ elements() (any, *string) }).elements()
}

// requireList returns an error if a response has no list.
func requireList[E any](list []E) error {
	if list == nil {
		return errors.New("it has no list")
	}
	return nil
}

// requireID returns an error if a response has no readable ID of its resource.
func requireID(id uuid.UUID, resource string) error {
	if id == uuid.Nil {
		return errors.New("it has no readable " + resource + " id")
	}
	return nil
}

// optional returns the value of a query parameter, which is omitted if it is zero.
func optional[T comparable](v T) []string {
	if v == *new(T) {
		return nil
	}
	return []string{fmt.Sprint(v)}
}

// each returns the values of a query parameter that is sent once for each element of list.
func each[T any](list []T) []string {
	values := make([]string, len(list))
	for i, v := range list {
		values[i] = fmt.Sprint(v)
	}
	return values
}

// requiredIDs validates a list that must not be empty. element names its elements.
func requiredIDs(v validator, name, element string, ids []uuid.UUID) {
	if len(ids) == 0 {
		v.Add(name, "missing", "is required: at least one "+element)
	}
	v.ValidIDs(name, ids)
}
