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

// User is a user of the team: an element of the user list. It redacts itself when printed, but for its id.
type User struct {
	UserID           uuid.UUID         `json:"user_id"`           // the service's id of the user
	TeamID           uuid.UUID         `json:"team_id"`           // the team's id
	ClientUserID     string            `json:"client_user_id"`    // the application's own reference for the user; any text
	CreatedOn        time.Time         `json:"created_on"`        // when the user was created
	ConnectedSources []ConnectedSource `json:"connected_sources"` // the wearable providers the user has connected

	// FallbackBirthDate is a birth date that a source reported, nil if not known.
	FallbackBirthDate *FallbackBirthDate `json:"fallback_birth_date,omitzero"`
	// FallbackTimeZone is a time zone that a source reported, nil if not known.
	FallbackTimeZone *FallbackTimeZone `json:"fallback_time_zone"`
	// IngestionStart is the first day whose data is taken in, nil if there is no limit.
	// Source: public API reference only.
	IngestionStart *Date `json:"ingestion_start,omitzero"`
	// IngestionEnd is the last day whose data is taken in, nil if there is no limit.
	// Source: public API reference only.
	IngestionEnd *Date `json:"ingestion_end,omitzero"`

	RawObject `json:"-"`
}

// LogValue shows the service's id of the user.
func (v User) LogValue() slog.Value {
	return slog.StringValue("labhealth.User{" + v.UserID.String() + ", redacted}")
}

func (u *User) verify() error { return requireID(u.UserID, "user") }

// Format prints what [User.LogValue] returns.
func (v User) Format(s fmt.State, _ rune) { printLogValue(s, v) }

// ConnectedSource is a data source that a user has connected.
type ConnectedSource struct {
	CreatedOn time.Time `json:"created_on"` // when it was connected
	Source    Source    `json:"source"`     // which one
	// Provider is a newer name for Source, nil if the response has none. Source: public API reference only.
	Provider *Source `json:"provider,omitzero"`

	RawObject `json:"-"`
}

// Source is a data source: a wearable provider.
type Source struct {
	Name string `json:"name"` // what people call it
	Slug string `json:"slug"` // a short name that does not change
	Logo string `json:"logo"` // address of a picture; other text occurs

	RawObject `json:"-"`
}

// FallbackBirthDate is a birth date that a data source reported. It redacts itself when printed.
type FallbackBirthDate struct {
	Redacted[FallbackBirthDate]

	Value      Date      `json:"value"`       // the date
	SourceSlug string    `json:"source_slug"` // which source said so
	UpdatedAt  time.Time `json:"updated_at"`  // when it did

	RawObject `json:"-"`
}

// FallbackTimeZone is a time zone that a data source reported.
type FallbackTimeZone struct {
	ID         string    `json:"id"`          // a name of the time-zone database, such as Europe/London
	SourceSlug string    `json:"source_slug"` // which source said so
	UpdatedAt  time.Time `json:"updated_at"`  // when it did

	RawObject `json:"-"`
}

// UsersService is the users of the team: [Client.Users].
type UsersService struct{ core *core }

const (
	opListUsers    = "GET /v2/user/"
	opCreateUser   = "POST /v2/user"
	opGetUser      = "GET /v2/user/{user_id}"
	opResolveUser  = "GET /v2/user/resolve/{client_user_id}"
	opDeleteUser   = "DELETE /v2/user/{user_id}"
	opUndoDeletion = "POST /v2/user/undo_delete"
	opPullStatus   = "GET /v2/introspect/historical_pull"
)

// ListUsersParams selects a page of users. Source: public API reference only.
type ListUsersParams struct {
	Offset int // how many users are left out before the page; not negative
	Limit  int // users on a page, 1 to 500; the service takes 100 if it is 0
}

// UserPage is one page of the user list: the answer of [UsersService.List]. It redacts itself when printed. A bare list of users,
// which older deployments answer, is read as a page that holds it: RawJSON is then that page.
type UserPage struct {
	Redacted[UserPage]

	Users  []User `json:"users" jsonread:"own"` // the users of the page
	Total  int64  `json:"total"`                // how many users there are in all
	Offset int64  `json:"offset"`               // how many were left out before the page
	Limit  int64  `json:"limit"`                // how many a page has

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
	return call[UserPage](ctx, s.core, request{op: opListUsers, query: params}, opts)
}

// All returns an iterator over the users, page by page, from params.Offset on. It holds one page at a
// time, and each range over it starts again. An error stops it, and so does a service that repeats a
// page or ignores the offset. Users that are created or deleted meanwhile can move others between
// pages, so that one is returned twice or not at all.
func (s *UsersService) All(ctx context.Context, params ListUsersParams, opts ...CallOption) iter.Seq2[*User, error] {
	id := func(u *User) uuid.UUID { return u.UserID }
	return paginate(opListUsers, params.Offset, id, func(offset int) (p page[User, int], err error) {
		params := params
		params.Offset = offset
		list, err := s.List(ctx, params, opts...)
		if err != nil {
			return p, err
		}
		if list.Offset != int64(offset) {
			return p, &unreadable{reason: "its offset is not the one that was asked for"}
		}
		p.items, p.next = list.Users, offset+len(list.Users)
		// A page with users and a total of 0 does not report its total. Then an empty page is the end.
		p.last = int64(p.next) >= list.Total && (list.Total > 0 || len(list.Users) == 0)
		return p, nil
	})
}

// CreateUserBody is the request of [UsersService.Create]. It redacts itself when printed. Source of
// all but ClientUserID: public API reference only.
type CreateUserBody struct {
	Redacted[CreateUserBody]

	ClientUserID      string  `json:"client_user_id"`               // the application's own reference for the user
	FallbackTimeZone  *string `json:"fallback_time_zone,omitzero"`  // a name of the time-zone database, nil if not known
	FallbackBirthDate *Date   `json:"fallback_birth_date,omitzero"` // nil if not known
	IngestionStart    *Date   `json:"ingestion_start,omitzero"`     // the first day whose data is taken in, nil for no limit
	IngestionEnd      *Date   `json:"ingestion_end,omitzero"`       // the last day whose data is taken in, nil for no limit
}

func (b *CreateUserBody) validate(v *validator) { v.required("client_user_id", b.ClientUserID) }

// Create creates a user: POST /v2/user. If the client user ID belongs to another user, the error is a
// *[UserConflictError] with that user's ID; this makes the call idempotent. Source of the path: public
// API reference only.
func (s *UsersService) Create(ctx context.Context, body CreateUserBody, opts ...CallOption) (*User, error) {
	return call[User](ctx, s.core, request{op: opCreateUser, body: &body, refine: userConflict}, opts)
}

// UserConflictError is the answer to creating a user whose client user id belongs to a user already. It is also the *[APIError]
// that came.
type UserConflictError struct {
	UserID    uuid.UUID // the user who has the id
	CreatedOn time.Time // when that user was created; zero if the service did not say

	api *APIError
}

// Error is that of the *[APIError], and what it means.
func (e *UserConflictError) Error() string {
	return e.api.Error() + ": the client user id belongs to a user already"
}

// Unwrap returns the *[APIError].
func (e *UserConflictError) Unwrap() error { return e.api }

// Is reports true for [ErrConflict], whatever the status: the specification gives 400.
func (e *UserConflictError) Is(target error) bool { return target == ErrConflict }

// userConflict returns a *UserConflictError if the body of e has the existing user's ID.
func userConflict(e *APIError) error {
	if e.StatusCode != http.StatusBadRequest && e.StatusCode != http.StatusConflict {
		return e
	}
	for _, c := range e.conflicts() {
		if c.UserID != uuid.Nil {
			return &UserConflictError{c.UserID, c.CreatedOn, e}
		}
	}
	return e
}

// Format prints the error's text under every verb.
func (e UserConflictError) Format(s fmt.State, _ rune) { fmt.Fprint(s, e.Error()) }

// GetOrCreate returns the user with the client user id, and makes it if there is none: the idempotent form of
// [UsersService.Create]. It may be called again after any error. What body says beside the client user id counts only for a
// user that is made.
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

// Get reads one user: GET /v2/user/{user_id}. An unknown user is [ErrNotFound].
// Source: public API reference only.
func (s *UsersService) Get(ctx context.Context, userID uuid.UUID, opts ...CallOption) (*User, error) {
	return call[User](ctx, s.core, request{op: opGetUser, ids: []string{userID.String()}}, opts)
}

// Resolve reads the user with a client user id: GET /v2/user/resolve/{client_user_id}. An unknown ID
// is [ErrNotFound]. Source: public API reference only.
func (s *UsersService) Resolve(ctx context.Context, clientUserID string, opts ...CallOption) (*User, error) {
	return call[User](ctx, s.core, request{op: opResolveUser, ids: []string{clientUserID}}, opts)
}

// UserDeletion is the response of [UsersService.Delete] and [UsersService.UndoDelete].
// Source: public API reference only.
type UserDeletion struct {
	Success bool `json:"success"` // whether it was done

	RawObject `json:"-"`
}

// Delete deletes a user: DELETE /v2/user/{user_id}. For 7 days [UsersService.UndoDelete] brings the user back. Source of
// the path: public API reference only.
func (s *UsersService) Delete(ctx context.Context, userID uuid.UUID, opts ...CallOption) (*UserDeletion, error) {
	return call[UserDeletion](ctx, s.core, request{op: opDeleteUser, ids: []string{userID.String()}}, opts)
}

// UndoDeleteParams name a deleted user by exactly one of two ids.
type UndoDeleteParams struct {
	Redacted[UndoDeleteParams]

	UserID       uuid.UUID // the service's id of the user
	ClientUserID string    // the application's own reference for the user
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

// UndoDelete brings back a user that was deleted less than 7 days ago: POST /v2/user/undo_delete.
// Connections to wearable providers do not come back, and it is impossible once a new user has the same
// client user ID. Source of all but the 7 days: public API reference only.
func (s *UsersService) UndoDelete(ctx context.Context, params UndoDeleteParams, opts ...CallOption) (*UserDeletion, error) {
	return call[UserDeletion](ctx, s.core, request{op: opUndoDeletion, query: params}, opts)
}
