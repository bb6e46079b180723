package labhealth

import (
	"context"

	"github.com/google/uuid"
)

const (
	opListOrgLabAccounts = "GET /v1/org/{org_id}/lab_account/{env}/{region}"
	opUpdateLabAccount   = "PATCH /v1/org/{org_id}/lab_account/{env}/{region}/{account_id}"
)

// LabAccountsService provides access to the organisation's accounts at labs, and to which teams can
// use them. [LabTestsService.LabAccounts] lists those of one team. Source of its operations: public
// API reference only.
type LabAccountsService struct{ core *core }

// ListOrgLabAccountsParams selects lab accounts. Zero fields are not sent.
type ListOrgLabAccountsParams struct {
	LabAccountID uuid.UUID        // one account
	TeamID       uuid.UUID        // accounts that this team can use
	Status       LabAccountStatus // accounts with this status
}

func (p ListOrgLabAccountsParams) query() queryValues {
	q := teamQuery(p.TeamID, "")
	q.setID("lab_account_id", p.LabAccountID)
	q.setString("status", string(p.Status))
	return q
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
func (s *LabAccountsService) List(ctx context.Context, env TeamEnvironment, region Region, params ListOrgLabAccountsParams, opts ...CallOption) ([]LabAccount, error) {
	r := request{op: opListOrgLabAccounts, ids: []string{string(env), string(region)}, query: params}
	list, err := call(ctx, coreOf(s), new(labAccountList), r, opts)
	if err != nil {
		return nil, err
	}
	return list.Data, nil
}

// UpdateTeamIDAllowlist replaces the list of the teams that can use a lab account:
// PATCH /v1/org/{org_id}/lab_account/{env}/{region}/{account_id}. An empty list is sent as such;
// whether it stands for no team or for all is not documented.
func (s *LabAccountsService) UpdateTeamIDAllowlist(ctx context.Context, env TeamEnvironment, region Region, accountID uuid.UUID, teamIDs []uuid.UUID, opts ...CallOption) (*LabAccountResponse, error) {
	r := request{
		op: opUpdateLabAccount, ids: []string{string(env), string(region), accountID.String()},
		body: &updateLabAccountBody{teamIDs},
	}
	return call(ctx, coreOf(s), new(LabAccountResponse), r, opts)
}
