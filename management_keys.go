package labhealth

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"strconv"

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
type ManagementKeysService struct{ org *organisation }

// ManagementKeyRole says what a management key may do. Values other than the constants occur.
type ManagementKeyRole string

// Roles of a management key.
const (
	ManagementKeyRoleOrgAdmin  ManagementKeyRole = "org_admin"  // an Org Management Key
	ManagementKeyRoleTeamAdmin ManagementKeyRole = "team_admin" // a Team Management Key
)

// ManagementKey is a key of the management API. It redacts itself when printed, but for its id.
type ManagementKey struct {
	ID    uuid.UUID         `json:"id"`    // the id of the key, which is not secret
	Label string            `json:"label"` // what people call it
	Role  ManagementKeyRole `json:"role"`  // what it may do
	// TeamRoleBindings names the teams of a Team Management Key.
	TeamRoleBindings []TeamRoleBinding `json:"team_role_bindings,omitzero"`
	// Creator says who made the key, nil if not said.
	Creator *ManagementKeyCreator `json:"creator,omitzero"`
	// Key is the key itself. It comes only in the answer to [ManagementKeysService.Create] and is empty everywhere else.
	Key Secret `json:"key,omitzero"`

	RawObject `json:"-"`
}

func (v *ManagementKey) verify() error { return requireID(v.ID, "key") }

// LogValue shows the id of the key.
func (v ManagementKey) LogValue() slog.Value {
	return slog.StringValue("labhealth.ManagementKey{" + v.ID.String() + ", redacted}")
}

// Format prints what [ManagementKey.LogValue] returns.
func (v ManagementKey) Format(s fmt.State, _ rune) { printLogValue(s, v) }

// TeamRoleBinding binds a Team Management Key to a team.
type TeamRoleBinding struct {
	TeamID uuid.UUID `json:"team_id"` // the team

	RawObject `json:"-"`
}

// ManagementKeyCreatorType says what made a management key. Values other than the constants occur.
type ManagementKeyCreatorType string

// Those who make management keys.
const (
	ManagementKeyCreatorOrgMember        ManagementKeyCreatorType = "org_member"
	ManagementKeyCreatorRemovedOrgMember ManagementKeyCreatorType = "removed_org_member"
	ManagementKeyCreatorServiceStaff     ManagementKeyCreatorType = "service_staff"
	ManagementKeyCreatorManagementKey    ManagementKeyCreatorType = "management_key"
)

// ManagementKeyCreator is who made a management key. What it says beside the type differs with the type and is not published:
// [RawObject.RawJSON] has it.
type ManagementKeyCreator struct {
	Type ManagementKeyCreatorType `json:"type"` // what made it

	RawObject `json:"-"`
}

// ListManagementKeysParams choose management keys. Zero members are left out.
type ListManagementKeysParams struct {
	TeamID     uuid.UUID         // keys of one team
	Role       ManagementKeyRole // keys of one kind
	NextCursor string            // where the page begins: NextCursor of the page before; empty for the first
}

func (p ListManagementKeysParams) query() queryValues {
	q := newQuery()
	q.setID("team_id", p.TeamID)
	q.setString("role", string(p.Role))
	q.setString("next_cursor", p.NextCursor)
	return q
}

// ManagementKeyPage is one page of the list of management keys: the answer of [ManagementKeysService.List].
type ManagementKeyPage struct {
	Redacted[ManagementKeyPage]

	Data       []ManagementKey `json:"data" jsonread:"own"` // the keys of the page
	NextCursor *string         `json:"next_cursor"`         // where the next page begins; nil at the end of the list

	RawObject `json:"-"`
}

// CreateManagementKeyBody is the request of [ManagementKeysService.Create].
type CreateManagementKeyBody struct {
	Label string            `json:"label"` // what people call it
	Role  ManagementKeyRole `json:"role"`  // what it may do
	// TeamRoleBindings names the teams of a Team Management Key.
	TeamRoleBindings []TeamRoleBinding `json:"team_role_bindings,omitzero"`
}

func (b *CreateManagementKeyBody) validate(v *validator) {
	v.required("label", b.Label)
	v.required("role", string(b.Role))
	v.bindings(b.TeamRoleBindings)
}

// UpdateManagementKeyBody is the request of [ManagementKeysService.Update]. Members that are left out stay as they are.
type UpdateManagementKeyBody struct {
	Label *string `json:"label,omitzero"` // what people call it
	// TeamRoleBindings names all teams of a Team Management Key. Nil leaves them as they are.
	TeamRoleBindings []TeamRoleBinding `json:"team_role_bindings,omitzero"`
}

func (b *UpdateManagementKeyBody) validate(v *validator) {
	v.bindings(b.TeamRoleBindings)
}

// List reads one page of the management keys: GET /v1/org/{org_id}/management_key.
func (s *ManagementKeysService) List(ctx context.Context, params ListManagementKeysParams, opts ...CallOption) (*ManagementKeyPage, error) {
	r := s.org.request(opListManagementKeys)
	r.query = params
	return call[ManagementKeyPage](ctx, s.org.core, r, opts)
}

// All reads the management keys page by page, from params.NextCursor on, with the guarantees of [LabTestsService.All].
func (s *ManagementKeysService) All(ctx context.Context, params ListManagementKeysParams, opts ...CallOption) iter.Seq2[*ManagementKey, error] {
	id := func(k *ManagementKey) uuid.UUID { return k.ID }
	return cursorPages(opListManagementKeys, params.NextCursor, id, func(cursor string) ([]ManagementKey, *string, error) {
		params := params
		params.NextCursor = cursor
		page, err := s.List(ctx, params, opts...)
		if err != nil {
			return nil, nil, err
		}
		return page.Data, page.NextCursor, nil
	})
}

// Create makes a management key: POST /v1/org/{org_id}/management_key. Only its answer has the key itself, and only once: keep
// it. A Team Management Key for two or more teams can be made here only, not in the web dashboard.
func (s *ManagementKeysService) Create(ctx context.Context, body CreateManagementKeyBody, opts ...CallOption) (*ManagementKey, error) {
	r := s.org.request(opCreateManagementKey)
	r.body = &body
	return call[ManagementKey](ctx, s.org.core, r, opts)
}

func (v *validator) bindings(list []TeamRoleBinding) {
	v.within("team_role_bindings", func() {
		for i, b := range list {
			v.within(strconv.Itoa(i), func() { v.requiredID("team_id", b.TeamID) })
		}
	})
}

// Update changes the label or the teams of a management key: PATCH /v1/org/{org_id}/management_key/{key_id}.
func (s *ManagementKeysService) Update(ctx context.Context, keyID uuid.UUID, body UpdateManagementKeyBody, opts ...CallOption) (*ManagementKey, error) {
	r := s.org.request(opUpdateManagementKey, keyID.String())
	r.body = &body
	return call[ManagementKey](ctx, s.org.core, r, opts)
}

// Delete makes a management key void: DELETE /v1/org/{org_id}/management_key/{key_id}. The answer is the key or null and says
// nothing more; [WithResponse] has it.
func (s *ManagementKeysService) Delete(ctx context.Context, keyID uuid.UUID, opts ...CallOption) error {
	return callEmpty(ctx, s.org.core, s.org.request(opDeleteManagementKey, keyID.String()), opts)
}
