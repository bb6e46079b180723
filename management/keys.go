// Management keys and their role bindings.

package management

import (
	"context"
	"iter"
	"log/slog"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

const (
	opListKeys  = "GET /v1/org/{org_id}/management_key"
	opCreateKey = "POST /v1/org/{org_id}/management_key"
	opUpdateKey = "PATCH /v1/org/{org_id}/management_key/{key_id}"
	opDeleteKey = "DELETE /v1/org/{org_id}/management_key/{key_id}"
)

// KeysService provides access to the management keys of the organisation. See
// [NewClient] for the two kinds. Source of its operations: public API reference only.
type KeysService struct{ core sender }

// KeyRole is the role of a management key, which defines its permissions. Values other
// than the constants occur.
type KeyRole string

// Values of [KeyRole].
const (
	KeyRoleOrgAdmin  KeyRole = "org_admin"  // an Org Management Key
	KeyRoleTeamAdmin KeyRole = "team_admin" // a Team Management Key
)

// Key is a key of the management API. Printed or logged, it shows only its type and ID.
type Key struct {
	ID    uuid.UUID `json:"id"`    // ID of the key, not secret
	Label string    `json:"label"` // display name
	Role  KeyRole   `json:"role"`  // role, which defines its permissions
	// CreatedAt is when the key was created.
	CreatedAt time.Time `json:"created_at"`
	// TeamRoleBindings lists the teams of a Team Management Key, nil for an Org Management Key.
	TeamRoleBindings []TeamRoleBinding `json:"team_role_bindings" jsonread:"nullable"`
	// Creator is the creator of the key.
	Creator KeyCreator `json:"creator"`
	// Key is the key itself. It is set only in the response of [KeysService.Create].
	Key labhealth.Secret `json:"key,omitzero"`

	labhealth.RawObject `json:"-"`
}

func (v *Key) verify() error { return requireID(v.ID, "key") }

// LogValue returns the name of the type and the ID of the key.
func (v Key) LogValue() slog.Value {
	return slog.StringValue("management.Key{" + v.ID.String() + ", redacted}")
}

// TeamRoleBinding binds a Team Management Key to a team.
type TeamRoleBinding struct {
	TeamID uuid.UUID `json:"team_id"` // ID of the team

	labhealth.RawObject `json:"-"`
}

// KeyCreatorType is the kind of creator of a management key. Values other than the
// constants occur.
type KeyCreatorType string

// Values of [KeyCreatorType].
const (
	KeyCreatorOrgMember        KeyCreatorType = "org_member"
	KeyCreatorRemovedOrgMember KeyCreatorType = "removed_org_member"
	KeyCreatorServiceStaff     KeyCreatorType = "service_staff"
	KeyCreatorManagementKey    KeyCreatorType = "management_key"
)

// KeyCreator is the creator of a management key. Its fields other than Type depend on the
// type.
type KeyCreator struct {
	Type KeyCreatorType `json:"type"` // kind of creator
	// ID is the ID of the member of the organisation, nil if the creator is none, or for a removed
	// member whose ID is not kept.
	ID *uuid.UUID `json:"id,omitzero"`
	// Name is the name of the member, nil if the creator is no current member.
	Name *string `json:"name,omitzero"`
	// Email is the email address of the member, nil if the creator is no current member.
	Email *string `json:"email,omitzero"`
	// Avatar is the picture of the member, nil if the creator is no current member.
	Avatar *string `json:"avatar,omitzero"`

	labhealth.RawObject `json:"-"`
}

// ListKeysParams selects management keys. Zero fields are not sent.
type ListKeysParams struct {
	TeamID     uuid.UUID // keys of one team
	Role       KeyRole   // keys with this role
	NextCursor string    // NextCursor of the previous page; empty for the first
}

func (p ListKeysParams) query() url.Values {
	return url.Values{"team_id": optional(p.TeamID), "role": optional(p.Role), "next_cursor": optional(p.NextCursor)}
}

// KeyPage is one page of management keys: the response of [KeysService.List].
type KeyPage struct {
	Data       []Key   `json:"data" jsonread:"own"` // the keys of the page
	NextCursor *string `json:"next_cursor"`         // nil on the last page

	labhealth.RawObject `json:"-"`
}

func (p *KeyPage) verify() error { return requireList(p.Data) }

func (p *KeyPage) elements() (any, *string) { return p.Data, p.NextCursor }

// CreateKeyBody is the request of [KeysService.Create].
type CreateKeyBody struct {
	Label string  `json:"label"` // display name
	Role  KeyRole `json:"role"`  // role, which defines its permissions
	// TeamRoleBindings lists the teams of a Team Management Key.
	TeamRoleBindings []TeamRoleBinding `json:"team_role_bindings,omitzero"`
}

func (b *CreateKeyBody) validate(v validator) {
	v.Required("label", b.Label)
	v.Required("role", string(b.Role))
	teamRoleBindings(v, b.TeamRoleBindings)
}

// UpdateKeyBody is the request of [KeysService.Update]. Omitted fields are
// unchanged.
type UpdateKeyBody struct {
	Label *string `json:"label,omitzero"` // display name
	// TeamRoleBindings replaces the teams of a Team Management Key. If nil, they are unchanged.
	TeamRoleBindings []TeamRoleBinding `json:"team_role_bindings,omitzero"`
}

func (b *UpdateKeyBody) validate(v validator) { teamRoleBindings(v, b.TeamRoleBindings) }

func teamRoleBindings(v validator, list []TeamRoleBinding) {
	v.Within("team_role_bindings", func() {
		for i, b := range list {
			v.Within(strconv.Itoa(i), func() { v.RequiredID("team_id", b.TeamID) })
		}
	})
}

// List returns one page of the management keys: GET /v1/org/{org_id}/management_key.
func (s *KeysService) List(ctx context.Context, params ListKeysParams, opts ...labhealth.CallOption) (*KeyPage, error) {
	return call(ctx, coreOf(s), new(KeyPage), request{Op: opListKeys, Params: params}, opts)
}

// All returns an iterator over the management keys, page by page, starting at params.NextCursor. It
// behaves like [labhealth.LabTestsService.All].
func (s *KeysService) All(ctx context.Context, params ListKeysParams, opts ...labhealth.CallOption) iter.Seq2[*Key, error] {
	id := func(k *Key) uuid.UUID { return k.ID }
	return cursorPages(ctx, coreOf(s), opts, opListKeys, params.NextCursor, id, func(ctx context.Context, cursor string, opts []labhealth.CallOption) (any, error) {
		params := params
		params.NextCursor = cursor
		return s.List(ctx, params, opts...)
	})
}

// Create creates a management key: POST /v1/org/{org_id}/management_key. The key itself is returned
// only in this response and cannot be read later: store it. A Team Management Key for two or more
// teams can only be created here, not in the web dashboard.
func (s *KeysService) Create(ctx context.Context, body CreateKeyBody, opts ...labhealth.CallOption) (*Key, error) {
	return call(ctx, coreOf(s), new(Key), request{Op: opCreateKey, Body: &body}, opts)
}

// Update changes the label or the teams of a management key:
// PATCH /v1/org/{org_id}/management_key/{key_id}.
func (s *KeysService) Update(ctx context.Context, keyID uuid.UUID, body UpdateKeyBody, opts ...labhealth.CallOption) (*Key, error) {
	return call(ctx, coreOf(s), new(Key), request{Op: opUpdateKey, IDs: []string{keyID.String()}, Body: &body}, opts)
}

// Delete revokes a management key: DELETE /v1/org/{org_id}/management_key/{key_id}. The response,
// the key or null, is not decoded: use [labhealth.WithResponse] to read it.
func (s *KeysService) Delete(ctx context.Context, keyID uuid.UUID, opts ...labhealth.CallOption) error {
	return callEmpty(ctx, coreOf(s), request{Op: opDeleteKey, IDs: []string{keyID.String()}}, opts)
}
