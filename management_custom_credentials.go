package labhealth

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/jsonread"
)

const (
	opListCustomCredentials    = "GET /v1/org/{org_id}/team_custom_credentials/{env}/{region}"
	opUpsertCustomCredentials  = "POST /v1/org/{org_id}/team_custom_credentials/{env}/{region}"
	opDeleteCustomCredentials  = "DELETE /v1/org/{org_id}/team_custom_credentials/{env}/{region}"
	opPrepareCustomCredentials = "POST /v1/org/{org_id}/prepare_team_custom_credentials/{env}/{region}"
)

// CustomCredentialsService is the credentials that teams have themselves at providers of wearable data.
type CustomCredentialsService struct{ org *organisation }

// TeamCustomCredentials is what a team has at a provider. Only id, team and provider are sure to come. It redacts itself when
// printed.
type TeamCustomCredentials struct {
	ID                  uuid.UUID       `json:"id"`                             // id of the credentials
	TeamID              uuid.UUID       `json:"team_id"`                        // the team
	Provider            string          `json:"provider"`                       // the provider's slug
	ClientID            *string         `json:"client_id,omitzero"`             // nil if there is none
	ClientSecretHash    *string         `json:"client_secret_hash,omitzero"`    // a hash of the client secret, which itself never comes back; nil if there is none
	Details             json.RawMessage `json:"details,omitzero"`               // differs with the provider; nil if there are none
	RedirectURLOverride *string         `json:"redirect_url_override,omitzero"` // nil if the service's own is used

	Kept `json:"-"`
}

// ListTeamCustomCredentialsParams choose custom credentials. Zero members are left out. They are those of team API keys, an
// inference.
type ListTeamCustomCredentialsParams struct {
	TeamID     uuid.UUID // credentials of one team
	NextCursor string    // where the page begins: NextCursor of the page before; empty for the first
}

// TeamCustomCredentialsPage is one page of the list of custom credentials: the answer of [CustomCredentialsService.List].
type TeamCustomCredentialsPage struct {
	// Credentials is the credentials of the page. The name of the member is not published: an answer without it that has one list
	// is read too.
	Credentials []TeamCustomCredentials `json:"credentials" jsonread:"own"`
	NextCursor  *string                 `json:"next_cursor,omitzero"` // where the next page begins; nil at the end of the list

	Kept `json:"-"`
}

// UpsertTeamCustomCredentialsBody is the request of [CustomCredentialsService.Upsert]. It redacts itself when printed.
type UpsertTeamCustomCredentialsBody struct {
	TeamID              uuid.UUID       `json:"team_id"`                        // the team
	Provider            string          `json:"provider"`                       // the provider's slug
	ClientID            *string         `json:"client_id,omitzero"`             // nil if the provider has none
	ClientSecret        Secret          `json:"client_secret,omitzero"`         // empty if the provider has none
	Details             json.RawMessage `json:"details,omitzero"`               // differs with the provider; nil for none
	RedirectURLOverride *string         `json:"redirect_url_override,omitzero"` // nil for the service's own
}

// prepareTeamCustomCredentialsBody is the request of [CustomCredentialsService.Prepare].
type prepareTeamCustomCredentialsBody struct {
	TeamID   uuid.UUID `json:"team_id"`
	Provider string    `json:"provider"`
}

// PreparationStatus says whether something is to be done before custom credentials can be used. Values other than the constants
// occur.
type PreparationStatus string

// What preparations can come to.
const (
	PreparationStatusNoActionNeeded       PreparationStatus = "no_action_needed"
	PreparationStatusPreparationsRequired PreparationStatus = "preparations_required"
)

// TeamCustomCredentialsPreparation is what is to be done at the provider before custom credentials can be used.
type TeamCustomCredentialsPreparation struct {
	Status           PreparationStatus `json:"status"`            // whether something is to be done
	PreparationSteps []PreparationStep `json:"preparation_steps"` // what, in order

	Kept `json:"-"`
}

// PreparationStep is one thing to do at the provider.
type PreparationStep struct {
	Type        string  `json:"type"`                 // what kind of thing
	Key         *string `json:"key,omitzero"`         // what to set there, nil if the type says it
	Value       string  `json:"value"`                // what to set it to
	Description *string `json:"description,omitzero"` // for people; nil if there is none

	Kept `json:"-"`
}

// List reads one page of the custom credentials in an environment: GET /v1/org/{org_id}/team_custom_credentials/{env}/{region}.
func (s *CustomCredentialsService) List(ctx context.Context, env TeamEnvironment, region Region, params ListTeamCustomCredentialsParams, opts ...CallOption) (*TeamCustomCredentialsPage, error) {
	q := newQuery()
	q.id("team_id", params.TeamID)
	q.text("next_cursor", params.NextCursor)
	r := s.org.request(opListCustomCredentials, string(env), string(region))
	r.query = q.Values
	return call(ctx, s.org.core, r, findCredentials, opts)
}

// findCredentials reads the list from whatever member has one.
func findCredentials(p *TeamCustomCredentialsPage) string {
	if p.Credentials != nil {
		return ""
	}
	for _, value := range jsonread.Members(p.RawJSON()) {
		if list := ([]TeamCustomCredentials)(nil); json.Unmarshal(value, &list) == nil && list != nil {
			p.Credentials = list
		}
	}
	return ""
}

// All reads the custom credentials page by page, from params.NextCursor on, with the guarantees of [LabTestsService.All].
func (s *CustomCredentialsService) All(ctx context.Context, env TeamEnvironment, region Region, params ListTeamCustomCredentialsParams, opts ...CallOption) iter.Seq2[*TeamCustomCredentials, error] {
	id := func(v *TeamCustomCredentials) uuid.UUID { return v.ID }
	return paged(opListCustomCredentials, params.NextCursor, id, func(cursor string) (p part[TeamCustomCredentials, string], err error) {
		params := params
		params.NextCursor = cursor
		page, err := s.List(ctx, env, region, params, opts...)
		if err != nil {
			return p, err
		}
		return cursorPart(page.Credentials, page.NextCursor), nil
	})
}

// Upsert sets what a team has at a provider, in place of what it had there: POST
// /v1/org/{org_id}/team_custom_credentials/{env}/{region}. It can be called again after any error.
func (s *CustomCredentialsService) Upsert(ctx context.Context, env TeamEnvironment, region Region, body UpsertTeamCustomCredentialsBody, opts ...CallOption) (*TeamCustomCredentials, error) {
	var c checker
	c.id("team_id", body.TeamID)
	c.text("provider", body.Provider)
	r := s.org.request(opUpsertCustomCredentials, string(env), string(region))
	r.value, r.problems = &body, c.in("body")
	return call[TeamCustomCredentials](ctx, s.org.core, r, nil, opts)
}

// Delete deletes custom credentials: DELETE /v1/org/{org_id}/team_custom_credentials/{env}/{region}. The answer says what became
// of each.
func (s *CustomCredentialsService) Delete(ctx context.Context, env TeamEnvironment, region Region, credentialIDs []uuid.UUID, opts ...CallOption) (*BatchDeletion, error) {
	return s.org.deleteBatch(ctx, opDeleteCustomCredentials, "credential_id", env, region, credentialIDs, opts)
}

// Prepare says what is to be done at a provider before a team can use credentials of its own there: POST
// /v1/org/{org_id}/prepare_team_custom_credentials/{env}/{region}.
func (s *CustomCredentialsService) Prepare(ctx context.Context, env TeamEnvironment, region Region, teamID uuid.UUID, provider string, opts ...CallOption) (*TeamCustomCredentialsPreparation, error) {
	var c checker
	c.id("team_id", teamID)
	c.text("provider", provider)
	r := s.org.request(opPrepareCustomCredentials, string(env), string(region))
	r.value, r.problems = &prepareTeamCustomCredentialsBody{teamID, provider}, c.in("body")
	return call[TeamCustomCredentialsPreparation](ctx, s.org.core, r, nil, opts)
}
