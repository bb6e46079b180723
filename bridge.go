// What package management needs of this package.

package labhealth

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"reflect"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/bridge"
	"github.com/labhealth/labhealth-go/internal/jsonread"
	"github.com/labhealth/labhealth-go/internal/transport"
)

// Internals is for package management, which sends its calls with the client of this package. No
// other module can call it.
func Internals(api bridge.API, opts ...Option) (bridge.Client[CallOption], error) {
	if api.OrgID == uuid.Nil {
		return nil, &setupError{errors.New("the organisation ID must not be the nil UUID")}
	}
	c, err := newCore(managementKeyHeader, api.Key, api.Operations, opts)
	if err != nil {
		return nil, err
	}
	c.orgID = api.OrgID.String()
	return &bridged{c, api.Types}, nil
}

// bridged implements [bridge.Client].
type bridged struct {
	*core
	types bridge.Types
}

func (b *bridged) Call(ctx context.Context, q bridge.Request, opts []CallOption) error {
	r := request{op: q.Op, ids: q.IDs}
	if q.Params != nil {
		r.query = bridgedQuery{b.types, q.Params}
	}
	if q.Body != nil {
		r.body = &bridgedBody{b.types, q.Body}
	}
	if q.TeamConflict {
		r.refine = teamConflict
	}
	if q.Out != nil {
		r.out = &bridgedResponse{b.types, q.Out}
	}
	return b.do(ctx, r, opts)
}

func (b *bridged) Do(ctx context.Context, method, path string, body, out any, opts []CallOption) error {
	switch out.(type) {
	case verified, listShaped: // a type of this package
	case interface{ RawJSON() json.RawMessage }:
		if v := reflect.ValueOf(out); v.Kind() == reflect.Pointer && !v.IsNil() {
			out = &bridgedResponse{b.types, out}
		}
	}
	return b.doPath(ctx, method, path, body, out, opts)
}

func (b *bridged) Pages(ctx context.Context, opts []CallOption, op, start string, id func(item any) uuid.UUID, list bridge.List[CallOption]) iter.Seq2[any, error] {
	return cursorPages(ctx, opts, op, start, id, func(ctx context.Context, cursor string, opts []CallOption) (cursorPage, error) {
		page, err := list(ctx, cursor, opts)
		return bridgedPage{b.types, page}, err
	})
}

func (b *bridged) CloseIdleConnections() { b.closeIdleConnections() }

// The types below have the methods that this package looks for, and pass them on.

type bridgedQuery struct {
	types  bridge.Types
	params any
}

func (q bridgedQuery) query() queryValues    { return queryValues{q.types.Query(q.params)} }
func (q bridgedQuery) validate(v *validator) { q.types.Validate(q.params, bridgedValidator{v}) }

type bridgedBody struct {
	types bridge.Types
	value any
}

func (b *bridgedBody) unwrap() any           { return b.value }
func (b *bridgedBody) validate(v *validator) { b.types.Validate(b.value, bridgedValidator{v}) }

type bridgedResponse struct {
	types bridge.Types
	out   any
}

func (r *bridgedResponse) read(resp *transport.Response) error {
	return readJSON(resp, func(document []byte) error {
		return decodeValue(document, r, func(value []byte) error { return jsonread.Unmarshal(value, r.out) })
	})
}

func (r *bridgedResponse) RawJSON() json.RawMessage     { return nil }
func (r *bridgedResponse) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, r.out) }

func (r *bridgedResponse) fromList(document []byte, _ []json.RawMessage) []byte {
	return r.types.FromList(r.out, document)
}

func (r *bridgedResponse) verify() error {
	if err := r.types.Verify(r.out); err != nil {
		return &unreadable{reason: err.Error()}
	}
	return nil
}

type bridgedPage struct {
	types bridge.Types
	page  any
}

func (p bridgedPage) elements() (any, *string) { return p.types.Elements(p.page) }
func (p bridgedPage) Malformed() []Malformed {
	return p.page.(interface{ Malformed() []Malformed }).Malformed()
}

type bridgedValidator struct{ v *validator }

func (b bridgedValidator) Within(name string, validate func())    { b.v.within(name, validate) }
func (b bridgedValidator) Add(name, code, msg string)             { b.v.add(name, code, msg) }
func (b bridgedValidator) Required(name, s string)                { b.v.required(name, s) }
func (b bridgedValidator) Length(name, s string, least, most int) { b.v.length(name, s, least, most) }
func (b bridgedValidator) RequiredID(name string, id uuid.UUID)   { b.v.requiredID(name, id) }
func (b bridgedValidator) OptionalID(name string, id *uuid.UUID)  { b.v.optionalID(name, id) }
func (b bridgedValidator) ValidIDs(name string, ids []uuid.UUID)  { b.v.validIDs(name, ids) }
func (b bridgedValidator) AtLeast(name string, n, minimum int)    { b.v.atLeast(name, n, minimum) }
