package labhealth

import (
	"context"

	"github.com/google/uuid"
)

const (
	opListLabAccounts     = "GET /v1/org/{org_id}/lab_account/{env}/{region}"
	opUpdateLabAccountIDs = "PATCH /v1/org/{org_id}/lab_account/{env}/{region}/{account_id}"
)

// LabAccountsService provides access to the organisation's accounts at labs, and to which teams can
// use them. [LabTestsService.LabAccounts] lists those of one team. Source of its operations: public
// API reference only.
type LabAccountsService struct{ core *core }

// ListLabAccountsParams selects lab accounts. Zero fields are not sent.
type ListLabAccountsParams struct {
	LabAccountID uuid.UUID        // one account
	TeamID       uuid.UUID        // accounts that this team can use
	Status       LabAccountStatus // accounts with this status
}

func (p ListLabAccountsParams) query() queryValues {
	q := teamQuery(p.TeamID, "")
	q.setID("lab_account_id", p.LabAccountID)
	q.setString("status", string(p.Status))
	return q
}

// LabAccountsResponse lists lab accounts: the response of [LabAccountsService.List].
type LabAccountsResponse struct {
	Data []LabAccount `json:"data" jsonread:"own"` // the accounts, nil if the response has none

	RawObject `json:"-"`
}

// updateLabAccountBody is the request of [LabAccountsService.UpdateTeamIDAllowlist].
type updateLabAccountBody struct {
	TeamIDAllowlist []uuid.UUID `json:"team_id_allowlist"`
}

func (b *updateLabAccountBody) validate(v *validator) {
	v.validIDs("team_id_allowlist", b.TeamIDAllowlist)
}

// LabAccountResponse is the response of [LabAccountsService.UpdateTeamIDAllowlist].
type LabAccountResponse struct {
	LabAccount *LabAccount `json:"lab_account,omitzero"` // the changed account, may be nil

	RawObject `json:"-"`
}

// List returns the lab accounts of an environment, all in one response:
// GET /v1/org/{org_id}/lab_account/{env}/{region}.
func (s *LabAccountsService) List(ctx context.Context, env TeamEnvironment, region Region, params ListLabAccountsParams, opts ...CallOption) (*LabAccountsResponse, error) {
	r := request{op: opListLabAccounts, ids: []string{string(env), string(region)}, query: params}
	return call(ctx, s.core, new(LabAccountsResponse), r, opts)
}

// UpdateTeamIDAllowlist replaces the list of the teams that can use a lab account:
// PATCH /v1/org/{org_id}/lab_account/{env}/{region}/{account_id}. An empty list is sent as such;
// whether it stands for no team or for all is not documented.
func (s *LabAccountsService) UpdateTeamIDAllowlist(ctx context.Context, env TeamEnvironment, region Region, accountID uuid.UUID, teamIDs []uuid.UUID, opts ...CallOption) (*LabAccountResponse, error) {
	r := request{
		op: opUpdateLabAccountIDs, ids: []string{string(env), string(region), accountID.String()},
		body: &updateLabAccountBody{teamIDs},
	}
	return call(ctx, s.core, new(LabAccountResponse), r, opts)
}
