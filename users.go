// UsersService, users, and the conflict with an existing user.

package labhealth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// User is a user of the team.
//
// Printed or logged, it shows only its ID. Its JSON encoding is not redacted.
type User struct {
	UserID uuid.UUID `json:"user_id"` // the service's ID of the user
	TeamID uuid.UUID `json:"team_id"` // team ID
	// ClientUserID is the application's own ID of the user. It may be any string.
	ClientUserID     string            `json:"client_user_id"`
	CreatedOn        time.Time         `json:"created_on"`        // when the user was created
	ConnectedSources []ConnectedSource `json:"connected_sources"` // connected wearable providers

	// FallbackBirthDate is a birth date that a data source reported, nil if unknown.
	FallbackBirthDate *FallbackBirthDate `json:"fallback_birth_date,omitzero"`
	// FallbackTimeZone is a time zone that a data source reported, nil if unknown.
	FallbackTimeZone *FallbackTimeZone `json:"fallback_time_zone"`
	// IngestionStart is the first day whose data is ingested, nil if there is no limit. Source:
	// public API reference only.
	IngestionStart *Date `json:"ingestion_start,omitzero"`
	// IngestionEnd is the last day whose data is ingested, nil if there is no limit. Source: public
	// API reference only.
	IngestionEnd *Date `json:"ingestion_end,omitzero"`

	RawObject `json:"-"`
}

// LogValue returns the service's ID of the user.
func (v User) LogValue() slog.Value {
	return slog.StringValue("labhealth.User{" + v.UserID.String() + ", redacted}")
}

func (u *User) verify() error { return requireID(u.UserID, "user") }

// ConnectedSource is a data source that a user has connected.
type ConnectedSource struct {
	CreatedOn time.Time `json:"created_on"` // when it was connected
	Source    Source    `json:"source"`     // which source
	// Provider is a newer name for Source, nil if the response has none. Source: public API
	// reference only.
	Provider *Source `json:"provider,omitzero"`

	RawObject `json:"-"`
}

// Source is a data source: a wearable provider.
type Source struct {
	Name string `json:"name"` // human-readable name
	Slug string `json:"slug"` // stable identifier
	Logo string `json:"logo"` // URL of an icon; other strings occur

	RawObject `json:"-"`
}

// FallbackBirthDate is a birth date that a data source reported.
type FallbackBirthDate struct {
	Value      Date      `json:"value"`       // the birth date
	SourceSlug string    `json:"source_slug"` // slug of the source
	UpdatedAt  time.Time `json:"updated_at"`  // when the source reported it

	RawObject `json:"-"`
}

// FallbackTimeZone is a time zone that a data source reported.
type FallbackTimeZone struct {
	ID         string    `json:"id"`          // IANA name, such as Europe/London
	SourceSlug string    `json:"source_slug"` // slug of the source
	UpdatedAt  time.Time `json:"updated_at"`  // when the source reported it

	RawObject `json:"-"`
}

// UsersService provides access to the team's users. See [Client.Users].
type UsersService struct{ core *core }

const (
	opListUsers       = "GET /v2/user/"
	opCreateUser      = "POST /v2/user"
	opGetUser         = "GET /v2/user/{user_id}"
	opResolveUser     = "GET /v2/user/resolve/{client_user_id}"
	opUpdateUser      = "PATCH /v2/user/{user_id}"
	opDeleteUser      = "DELETE /v2/user/{user_id}"
	opUndoDeletion    = "POST /v2/user/undo_delete"
	opHistoricalPulls = "GET /v2/introspect/historical_pull"
)

// ListUsersParams selects a page of users. Source: public API reference only.
type ListUsersParams struct {
	Offset int // number of users to skip; not negative
	Limit  int // users per page, 1 to 500; the service's default is 100
}

// UserPage is one page of users: the response of [UsersService.List]. A response that is a bare
// list, which older deployments send, is decoded as {"users": […]}, which RawJSON returns.
type UserPage struct {
	Users  []User `json:"users" jsonread:"own"` // the users of the page
	Total  int64  `json:"total"`                // number of users on all pages
	Offset int64  `json:"offset"`               // number of users before the page
	Limit  int64  `json:"limit"`                // users per page

	RawObject `json:"-"`
}

func (p ListUsersParams) validate(v *validator) {
	v.atLeast("offset", p.Offset, 0)
	v.between("limit", p.Limit, 0, 500)
}

func (p ListUsersParams) query() queryValues {
	q := newQuery()
	q.setInt("offset", p.Offset)
	q.setInt("limit", p.Limit)
	return q
}

func (p *UserPage) verify() error { return requireList(p.Users) }

func (*UserPage) fromList(document []byte, elements []json.RawMessage) []byte {
	return fmt.Appendf(nil, `{"users":%s,"total":%d}`, document, len(elements))
}

// List returns one page of the team's users: GET /v2/user/.
func (s *UsersService) List(ctx context.Context, params ListUsersParams, opts ...CallOption) (*UserPage, error) {
	return call(ctx, coreOf(s), new(UserPage), request{op: opListUsers, query: params}, opts)
}

// All returns an iterator over the users, page by page, starting at params.Offset. It holds one
// page at a time, and each range over it starts again. Iteration stops at the first error. The
// iterator returns an error if the service repeats a page or ignores the offset.
//
// You may delete users in the loop: when the total becomes smaller, the iterator reads the affected
// pages again and skips the last thousand users that it has returned. If more are deleted at once,
// a user may be returned twice; if as many are created meanwhile, one may be left out.
func (s *UsersService) All(ctx context.Context, params ListUsersParams, opts ...CallOption) iter.Seq2[*User, error] {
	id := func(u *User) uuid.UUID { return u.UserID }
	start := int64(params.Offset)
	return paginate(ctx, opts, opListUsers, params.Offset, id, func(ctx context.Context, offset int, opts []CallOption) (p page[int], err error) {
		params := params
		params.Offset = offset
		list, err := s.List(ctx, params, opts...)
		if err != nil {
			return p, err
		}
		if list.Offset != int64(offset) {
			return p, &unreadable{reason: "its offset is not the requested one"}
		}
		p.items, p.next, p.total = list.Users, offset+len(list.Users), -1
		if list.Total > 0 || len(list.Users) == 0 {
			p.total = list.Total
			p.earlier = func(elements int64) int { return int(max(int64(offset)-elements, start)) }
		}
		// A page with users and a total of 0 does not report its total. Then an empty page is the
		// last.
		p.last = int64(p.next) >= list.Total && (list.Total > 0 || len(list.Users) == 0)
		return p, nil
	})
}

// CreateUserBody is the request body of [UsersService.Create]. Source of all but ClientUserID:
// public API reference only.
type CreateUserBody struct {
	Redacted

	// ClientUserID is the application's own ID of the user. It is required.
	ClientUserID string `json:"client_user_id"`
	// FallbackTimeZone is an IANA time zone name, nil if unknown.
	FallbackTimeZone *string `json:"fallback_time_zone,omitzero"`
	// FallbackBirthDate is nil if unknown.
	FallbackBirthDate *Date `json:"fallback_birth_date,omitzero"`
	// IngestionStart is the first day whose data is ingested, nil for no limit.
	IngestionStart *Date `json:"ingestion_start,omitzero"`
	// IngestionEnd is the last day whose data is ingested, nil for no limit.
	IngestionEnd *Date `json:"ingestion_end,omitzero"`
}

func (b *CreateUserBody) validate(v *validator) { v.required("client_user_id", b.ClientUserID) }

// Create creates a user: POST /v2/user. If the client user ID belongs to another user, the error is
// a *[UserConflictError] with that user's ID; this makes the call idempotent. Source of the path:
// public API reference only.
func (s *UsersService) Create(ctx context.Context, body CreateUserBody, opts ...CallOption) (*User, error) {
	return call(ctx, coreOf(s), new(User), request{op: opCreateUser, body: &body, refine: userConflict}, opts)
}

// UserConflictError reports that the client user ID already belongs to a user. It wraps the
// *[APIError] of the response. Its text does not have the ID of the user; its JSON does.
type UserConflictError struct {
	UserID    uuid.UUID // ID of the existing user
	CreatedOn time.Time // when that user was created; zero if not reported

	api *APIError
}

// Error returns the message of the *[APIError].
func (e *UserConflictError) Error() string { return orZero(e).api.orReason(userExists) }

// Unwrap returns the *[APIError].
func (e *UserConflictError) Unwrap() error { return orZero(e).api.orNil() }

// Is reports whether target is [ErrConflict]. It ignores the status code: the interface
// specification documents 400.
func (e *UserConflictError) Is(target error) bool { return target == ErrConflict }

// userConflict returns e as a *UserConflictError if its body has the ID of the existing user.
func userConflict(e *APIError) error {
	if e.StatusCode != http.StatusBadRequest && e.StatusCode != http.StatusConflict {
		return e
	}
	for _, c := range e.conflicts() {
		if c.UserID != uuid.Nil {
			e.reason = userExists
			return &UserConflictError{c.UserID, c.CreatedOn, e}
		}
	}
	return e
}

// Format prints the error message under every verb.
func (e UserConflictError) Format(s fmt.State, _ rune) { fmt.Fprint(s, e.Error()) }

// GetOrCreate returns the user with the client user ID of body, and creates the user if there is
// none. It is the idempotent form of [UsersService.Create]: it may be called again after any error.
// The other fields of body are used only to create a user.
func (s *UsersService) GetOrCreate(ctx context.Context, body CreateUserBody, opts ...CallOption) (*User, error) {
	user, err := s.Create(ctx, body, opts...)
	var conflict *UserConflictError
	switch {
	case err == nil:
		return user, nil
	case errors.As(err, &conflict):
		return s.Get(ctx, conflict.UserID, opts...)
	case (OutcomeOf(err) == OutcomeUnknown || OutcomeOf(err) == OutcomeApplied) && ctx.Err() == nil:
		if user, found := s.Resolve(ctx, body.ClientUserID, opts...); found == nil {
			return user, nil
		}
	}
	return nil, err
}

// Get returns one user: GET /v2/user/{user_id}. The error for an unknown user matches
// [ErrNotFound]. Source: public API reference only.
func (s *UsersService) Get(ctx context.Context, userID uuid.UUID, opts ...CallOption) (*User, error) {
	return call(ctx, coreOf(s), new(User), request{op: opGetUser, ids: []string{userID.String()}}, opts)
}

// Resolve returns the user with a client user ID: GET /v2/user/resolve/{client_user_id}. The error
// for an unknown ID matches [ErrNotFound]. Source: public API reference only.
func (s *UsersService) Resolve(ctx context.Context, clientUserID string, opts ...CallOption) (*User, error) {
	return call(ctx, coreOf(s), new(User), request{op: opResolveUser, ids: []string{clientUserID}}, opts)
}

// UpdateUserBody is the request of [UsersService.Update]. Absent fields are unchanged, and at least
// one is required. [Null] clears a field. Source: public API reference only.
type UpdateUserBody struct {
	Redacted

	ClientUserID      *string          `json:"client_user_id,omitzero"`      // the application's own ID of the user
	FallbackTimeZone  Nullable[string] `json:"fallback_time_zone,omitzero"`  // an IANA time zone name
	FallbackBirthDate Nullable[Date]   `json:"fallback_birth_date,omitzero"` // date of birth
	IngestionStart    Nullable[Date]   `json:"ingestion_start,omitzero"`     // first day whose data is ingested
	IngestionEnd      Nullable[Date]   `json:"ingestion_end,omitzero"`       // last day whose data is ingested
}

func (b *UpdateUserBody) validate(v *validator) {
	if *b == (UpdateUserBody{}) {
		v.add("client_user_id", "missing", "or another field is required")
	}
}

// Update changes a user: PATCH /v2/user/{user_id}. The error for a client user ID that belongs to
// another user matches [ErrConflict]; it is a *[UserConflictError] if the response has that user's
// ID. Source: public API reference only.
func (s *UsersService) Update(ctx context.Context, userID uuid.UUID, body UpdateUserBody, opts ...CallOption) error {
	r := request{op: opUpdateUser, ids: []string{userID.String()}, body: &body, refine: userConflict}
	return callEmpty(ctx, coreOf(s), r, opts)
}

// UserDeletion is the response of [UsersService.Delete], [UsersService.UndoDelete] and
// [UsersService.Disconnect]. Source: public API reference only.
type UserDeletion struct {
	Success bool `json:"success"` // whether the operation succeeded

	RawObject `json:"-"`
}

// Delete deletes a user: DELETE /v2/user/{user_id}. [UsersService.UndoDelete] can undo it for 7
// days. Source of the path: public API reference only.
func (s *UsersService) Delete(ctx context.Context, userID uuid.UUID, opts ...CallOption) (*UserDeletion, error) {
	return call(ctx, coreOf(s), new(UserDeletion), request{op: opDeleteUser, ids: []string{userID.String()}}, opts)
}

// UndoDeleteParams identifies a deleted user. Exactly one of the two IDs must be set.
type UndoDeleteParams struct {
	Redacted

	UserID       uuid.UUID // the service's ID of the user
	ClientUserID string    // the application's own ID of the user
}

func (p UndoDeleteParams) validate(v *validator) {
	if (p.UserID == uuid.Nil) == (p.ClientUserID == "") {
		v.add("user_id", "value_error", "or client_user_id must be given, and not both")
	}
}

func (p UndoDeleteParams) query() queryValues {
	q := newQuery()
	q.setID("user_id", p.UserID)
	q.setString("client_user_id", p.ClientUserID)
	return q
}

// UndoDelete restores a user that was deleted less than 7 days ago: POST /v2/user/undo_delete.
// Connections to wearable providers are not restored. It fails once another user has the same
// client user ID. Source of all but the 7 days: public API reference only.
func (s *UsersService) UndoDelete(ctx context.Context, params UndoDeleteParams, opts ...CallOption) (*UserDeletion, error) {
	return call(ctx, coreOf(s), new(UserDeletion), request{op: opUndoDeletion, query: params}, opts)
}
