package labhealth

import (
	"context"
	"iter"
	"log/slog"
	"strconv"
	"time"

	"github.com/google/uuid"
)

const (
	opListManagementKeys  = "GET /v1/org/{org_id}/management_key"
	opCreateManagementKey = "POST /v1/org/{org_id}/management_key"
	opUpdateManagementKey = "PATCH /v1/org/{org_id}/management_key/{key_id}"
	opDeleteManagementKey = "DELETE /v1/org/{org_id}/management_key/{key_id}"
)

// ManagementKeysService provides access to the management keys of the organisation. See
// [NewManagementClient] for the two kinds. Source of its operations: public API reference only.
type ManagementKeysService struct{ core *core }

// ManagementKeyRole is the role of a management key, which defines its permissions. Values other
// than the constants occur.
type ManagementKeyRole string

// Values of [ManagementKeyRole].
const (
	ManagementKeyRoleOrgAdmin  ManagementKeyRole = "org_admin"  // an Org Management Key
	ManagementKeyRoleTeamAdmin ManagementKeyRole = "team_admin" // a Team Management Key
)

// ManagementKey is a key of the management API. Printed or logged, it shows only its type and ID.
type ManagementKey struct {
	ID    uuid.UUID         `json:"id"`    // ID of the key, not secret
	Label string            `json:"label"` // display name
	Role  ManagementKeyRole `json:"role"`  // role, which defines its permissions
	// CreatedAt is when the key was created.
	CreatedAt time.Time `json:"created_at"`
	// TeamRoleBindings lists the teams of a Team Management Key, nil for an Org Management Key.
	TeamRoleBindings []TeamRoleBinding `json:"team_role_bindings" jsonread:"nullable"`
	// Creator is the creator of the key.
	Creator ManagementKeyCreator `json:"creator"`
	// Key is the key itself. It is set only in the response of [ManagementKeysService.Create].
	Key Secret `json:"key,omitzero"`

	RawObject `json:"-"`
}

func (v *ManagementKey) verify() error { return requireID(v.ID, "key") }

// LogValue returns the name of the type and the ID of the key.
func (v ManagementKey) LogValue() slog.Value {
	return slog.StringValue("labhealth.ManagementKey{" + v.ID.String() + ", redacted}")
}

// TeamRoleBinding binds a Team Management Key to a team.
type TeamRoleBinding struct {
	TeamID uuid.UUID `json:"team_id"` // ID of the team

	RawObject `json:"-"`
}

// ManagementKeyCreatorType is the kind of creator of a management key. Values other than the
// constants occur.
type ManagementKeyCreatorType string

// Values of [ManagementKeyCreatorType].
const (
	ManagementKeyCreatorOrgMember        ManagementKeyCreatorType = "org_member"
	ManagementKeyCreatorRemovedOrgMember ManagementKeyCreatorType = "removed_org_member"
	ManagementKeyCreatorServiceStaff     ManagementKeyCreatorType = "service_staff"
	ManagementKeyCreatorManagementKey    ManagementKeyCreatorType = "management_key"
)

// ManagementKeyCreator is the creator of a management key. Its fields other than Type depend on the
// type.
type ManagementKeyCreator struct {
	Type ManagementKeyCreatorType `json:"type"` // kind of creator
	// ID is the ID of the member of the organisation, nil if the creator is none, or for a removed
	// member whose ID is not kept.
	ID *uuid.UUID `json:"id,omitzero"`
	// Name is the name of the member, nil if the creator is no current member.
	Name *string `json:"name,omitzero"`
	// Email is the email address of the member, nil if the creator is no current member.
	Email *string `json:"email,omitzero"`
	// Avatar is the picture of the member, nil if the creator is no current member.
	Avatar *string `json:"avatar,omitzero"`

	RawObject `json:"-"`
}

// ListManagementKeysParams selects management keys. Zero fields are not sent.
type ListManagementKeysParams struct {
	TeamID     uuid.UUID         // keys of one team
	Role       ManagementKeyRole // keys with this role
	NextCursor string            // NextCursor of the previous page; empty for the first
}

func (p ListManagementKeysParams) query() queryValues {
	q := teamQuery(p.TeamID, p.NextCursor)
	q.setString("role", string(p.Role))
	return q
}

// ManagementKeyPage is one page of management keys: the response of [ManagementKeysService.List].
type ManagementKeyPage struct {
	Data       []ManagementKey `json:"data" jsonread:"own"` // the keys of the page
	NextCursor *string         `json:"next_cursor"`         // nil on the last page

	RawObject `json:"-"`
}

func (p *ManagementKeyPage) verify() error { return requireList(p.Data) }

func (p *ManagementKeyPage) elements() (any, *string) { return p.Data, p.NextCursor }

// CreateManagementKeyBody is the request of [ManagementKeysService.Create].
type CreateManagementKeyBody struct {
	Label string            `json:"label"` // display name
	Role  ManagementKeyRole `json:"role"`  // role, which defines its permissions
	// TeamRoleBindings lists the teams of a Team Management Key.
	TeamRoleBindings []TeamRoleBinding `json:"team_role_bindings,omitzero"`
}

func (b *CreateManagementKeyBody) validate(v *validator) {
	v.required("label", b.Label)
	v.required("role", string(b.Role))
	v.teamRoleBindings(b.TeamRoleBindings)
}

// UpdateManagementKeyBody is the request of [ManagementKeysService.Update]. Omitted fields are
// unchanged.
type UpdateManagementKeyBody struct {
	Label *string `json:"label,omitzero"` // display name
	// TeamRoleBindings replaces the teams of a Team Management Key. If nil, they are unchanged.
	TeamRoleBindings []TeamRoleBinding `json:"team_role_bindings,omitzero"`
}

func (b *UpdateManagementKeyBody) validate(v *validator) { v.teamRoleBindings(b.TeamRoleBindings) }

func (v *validator) teamRoleBindings(list []TeamRoleBinding) {
	v.within("team_role_bindings", func() {
		for i, b := range list {
			v.within(strconv.Itoa(i), func() { v.requiredID("team_id", b.TeamID) })
		}
	})
}

// List returns one page of the management keys: GET /v1/org/{org_id}/management_key.
func (s *ManagementKeysService) List(ctx context.Context, params ListManagementKeysParams, opts ...CallOption) (*ManagementKeyPage, error) {
	return call(ctx, coreOf(s), new(ManagementKeyPage), request{op: opListManagementKeys, query: params}, opts)
}

// All returns an iterator over the management keys, page by page, starting at params.NextCursor. It
// behaves like [LabTestsService.All].
func (s *ManagementKeysService) All(ctx context.Context, params ListManagementKeysParams, opts ...CallOption) iter.Seq2[*ManagementKey, error] {
	id := func(k *ManagementKey) uuid.UUID { return k.ID }
	return cursorPages(ctx, opts, opListManagementKeys, params.NextCursor, id, func(ctx context.Context, cursor string, opts []CallOption) (cursorPage, error) {
		params := params
		params.NextCursor = cursor
		return s.List(ctx, params, opts...)
	})
}

// Create creates a management key: POST /v1/org/{org_id}/management_key. The key itself is returned
// only in this response and cannot be read later: store it. A Team Management Key for two or more
// teams can only be created here, not in the web dashboard.
func (s *ManagementKeysService) Create(ctx context.Context, body CreateManagementKeyBody, opts ...CallOption) (*ManagementKey, error) {
	return call(ctx, coreOf(s), new(ManagementKey), request{op: opCreateManagementKey, body: &body}, opts)
}

// Update changes the label or the teams of a management key:
// PATCH /v1/org/{org_id}/management_key/{key_id}.
func (s *ManagementKeysService) Update(ctx context.Context, keyID uuid.UUID, body UpdateManagementKeyBody, opts ...CallOption) (*ManagementKey, error) {
	return call(ctx, coreOf(s), new(ManagementKey), request{op: opUpdateManagementKey, ids: []string{keyID.String()}, body: &body}, opts)
}

// Delete revokes a management key: DELETE /v1/org/{org_id}/management_key/{key_id}. The response,
// the key or null, is not decoded: use [WithResponse] to read it.
func (s *ManagementKeysService) Delete(ctx context.Context, keyID uuid.UUID, opts ...CallOption) error {
	return callEmpty(ctx, coreOf(s), request{op: opDeleteManagementKey, ids: []string{keyID.String()}}, opts)
}
