// The organisation's lab accounts, and the teams that use them.

package management

import (
	"context"
	"net/url"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/jsonread"
)

const (
	opListLabAccounts  = "GET /v1/org/{org_id}/lab_account/{env}/{region}"
	opUpdateLabAccount = "PATCH /v1/org/{org_id}/lab_account/{env}/{region}/{account_id}"
)

// LabAccountsService provides access to the organisation's accounts at labs, and to which teams can
// use them. [labhealth.LabTestsService.LabAccounts] lists those of one team. Source of its
// operations: public API reference only.
type LabAccountsService struct{ core sender }

// ListLabAccountsParams selects lab accounts. Zero fields are not sent.
type ListLabAccountsParams struct {
	LabAccountID uuid.UUID                  // one account
	TeamID       uuid.UUID                  // accounts that this team can use
	Status       labhealth.LabAccountStatus // accounts with this status
}

func (p ListLabAccountsParams) query() url.Values {
	return url.Values{"lab_account_id": optional(p.LabAccountID), "team_id": optional(p.TeamID), "status": optional(p.Status)}
}

// labAccountList is the response of [LabAccountsService.List].
type labAccountList struct {
	Data []labhealth.LabAccount `json:"data" jsonread:"own"`

	labhealth.RawObject `json:"-"`
}

// verify accepts an empty object too: the public API reference makes the list optional.
func (l *labAccountList) verify() error {
	for range jsonread.Fields(l.RawJSON()) {
		return requireList(l.Data)
	}
	return nil
}

// updateLabAccountBody is the request of [LabAccountsService.UpdateTeamIDAllowlist].
type updateLabAccountBody struct {
	TeamIDAllowlist []uuid.UUID `json:"team_id_allowlist"`
}

func (b *updateLabAccountBody) validate(v validator) {
	v.ValidIDs("team_id_allowlist", b.TeamIDAllowlist)
}

// LabAccountResponse is the response of [LabAccountsService.UpdateTeamIDAllowlist].
type LabAccountResponse struct {
	LabAccount *labhealth.LabAccount `json:"lab_account,omitzero"` // the changed account, may be nil

	labhealth.RawObject `json:"-"`
}

// List returns the lab accounts of an environment, all in one response:
// GET /v1/org/{org_id}/lab_account/{env}/{region}.
func (s *LabAccountsService) List(ctx context.Context, env labhealth.TeamEnvironment, region labhealth.Region, params ListLabAccountsParams, opts ...labhealth.CallOption) ([]labhealth.LabAccount, error) {
	r := request{Op: opListLabAccounts, IDs: []string{string(env), string(region)}, Params: params}
	list, err := call(ctx, coreOf(s), new(labAccountList), r, opts)
	if err != nil {
		return nil, err
	}
	return list.Data, nil
}

// UpdateTeamIDAllowlist replaces the list of the teams that can use a lab account:
// PATCH /v1/org/{org_id}/lab_account/{env}/{region}/{account_id}. An empty list is sent as such;
// whether it stands for no team or for all is not documented.
func (s *LabAccountsService) UpdateTeamIDAllowlist(ctx context.Context, env labhealth.TeamEnvironment, region labhealth.Region, accountID uuid.UUID, teamIDs []uuid.UUID, opts ...labhealth.CallOption) (*LabAccountResponse, error) {
	r := request{
		Op: opUpdateLabAccount, IDs: []string{string(env), string(region), accountID.String()},
		Body: &updateLabAccountBody{teamIDs},
	}
	return call(ctx, coreOf(s), new(LabAccountResponse), r, opts)
}
