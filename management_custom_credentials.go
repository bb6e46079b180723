package labhealth

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/google/uuid"
)

const (
	opListCustomCredentials    = "GET /v1/org/{org_id}/team_custom_credentials/{env}/{region}"
	opUpsertCustomCredentials  = "POST /v1/org/{org_id}/team_custom_credentials/{env}/{region}"
	opDeleteCustomCredentials  = "DELETE /v1/org/{org_id}/team_custom_credentials/{env}/{region}"
	opPrepareCustomCredentials = "POST /v1/org/{org_id}/prepare_team_custom_credentials/{env}/{region}"
)

// CustomCredentialsService provides access to the credentials that teams have themselves at providers.
// Source of its operations: public API reference only.
type CustomCredentialsService struct{ org *organisation }

// TeamCustomCredentials is what a team has at a provider. It redacts itself when printed.
type TeamCustomCredentials struct {
	Redacted[TeamCustomCredentials]

	ID                  uuid.UUID       `json:"id"`                             // ID of the credentials
	TeamID              uuid.UUID       `json:"team_id"`                        // the team
	Source              string          `json:"source"`                         // the provider's slug
	CreatedAt           time.Time       `json:"created_at"`                     // when they were created
	UpdatedAt           time.Time       `json:"updated_at"`                     // when they were last changed
	ClientID            *string         `json:"client_id,omitzero"`             // nil if there is none
	ClientSecretHash    *string         `json:"client_secret_hash,omitzero"`    // a hash of the client secret, which the service never returns; nil if there is none
	Details             json.RawMessage `json:"details,omitzero"`               // an object that differs with the provider; nil if there is none
	AppURL              *string         `json:"app_url,omitzero"`               // nil if there is none
	RedirectURLOverride *string         `json:"redirect_url_override,omitzero"` // nil if the service's own is used

	RawObject `json:"-"`
}

// ListTeamCustomCredentialsParams selects custom credentials. Zero fields are not sent.
type ListTeamCustomCredentialsParams struct {
	TeamID     uuid.UUID // credentials of one team
	NextCursor string    // where the page starts: NextCursor of the previous page; empty for the first
}

func (p ListTeamCustomCredentialsParams) query() queryValues {
	q := newQuery()
	q.setID("team_id", p.TeamID)
	q.setString("next_cursor", p.NextCursor)
	return q
}

// TeamCustomCredentialsPage is one page of the list of custom credentials: the response of
// [CustomCredentialsService.List].
type TeamCustomCredentialsPage struct {
	Redacted[TeamCustomCredentialsPage]

	Credentials []TeamCustomCredentials `json:"credentials" jsonread:"own"` // the credentials of the page
	NextCursor  *string                 `json:"next_cursor,omitzero"`       // where the next page starts; nil at the end of the list

	RawObject `json:"-"`
}

// UpsertTeamCustomCredentialsBody is the request of [CustomCredentialsService.Upsert]. It redacts itself when printed.
type UpsertTeamCustomCredentialsBody struct {
	Redacted[UpsertTeamCustomCredentialsBody]

	TeamID              uuid.UUID       `json:"team_id"`                        // the team
	Provider            string          `json:"provider"`                       // the provider's slug
	ClientID            *string         `json:"client_id,omitzero"`             // nil if the provider has none
	ClientSecret        Secret          `json:"client_secret,omitzero"`         // empty if the provider has none
	Details             json.RawMessage `json:"details,omitzero"`               // differs with the provider; nil for none
	RedirectURLOverride *string         `json:"redirect_url_override,omitzero"` // nil for the service's own
}

func (b *UpsertTeamCustomCredentialsBody) validate(v *validator) {
	v.requiredID("team_id", b.TeamID)
	v.required("provider", b.Provider)
}

// prepareTeamCustomCredentialsBody is the request of [CustomCredentialsService.Prepare].
type prepareTeamCustomCredentialsBody struct {
	TeamID   uuid.UUID `json:"team_id"`
	Provider string    `json:"provider"`
}

func (b *prepareTeamCustomCredentialsBody) validate(v *validator) {
	v.requiredID("team_id", b.TeamID)
	v.required("provider", b.Provider)
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

	RawObject `json:"-"`
}

// PreparationStep is one thing to do at the provider.
type PreparationStep struct {
	Type        string  `json:"type"`                 // what kind of thing
	Key         *string `json:"key,omitzero"`         // what to set there, nil if the type says it
	Value       string  `json:"value"`                // what to set it to
	Description *string `json:"description,omitzero"` // for people; nil if there is none

	RawObject `json:"-"`
}

// List reads one page of the custom credentials in an environment: GET /v1/org/{org_id}/team_custom_credentials/{env}/{region}.
func (s *CustomCredentialsService) List(ctx context.Context, env TeamEnvironment, region Region, params ListTeamCustomCredentialsParams, opts ...CallOption) (*TeamCustomCredentialsPage, error) {
	r := s.org.request(opListCustomCredentials, string(env), string(region))
	r.query = params
	return call[TeamCustomCredentialsPage](ctx, s.org.core, r, opts)
}

// All reads the custom credentials page by page, from params.NextCursor on, with the guarantees of [LabTestsService.All].
func (s *CustomCredentialsService) All(ctx context.Context, env TeamEnvironment, region Region, params ListTeamCustomCredentialsParams, opts ...CallOption) iter.Seq2[*TeamCustomCredentials, error] {
	id := func(v *TeamCustomCredentials) uuid.UUID { return v.ID }
	return cursorPages(opListCustomCredentials, params.NextCursor, id, func(cursor string) ([]TeamCustomCredentials, *string, error) {
		params := params
		params.NextCursor = cursor
		page, err := s.List(ctx, env, region, params, opts...)
		if err != nil {
			return nil, nil, err
		}
		return page.Credentials, page.NextCursor, nil
	})
}

// Upsert sets what a team has at a provider, in place of what it had there: POST
// /v1/org/{org_id}/team_custom_credentials/{env}/{region}. It can be called again after any error.
func (s *CustomCredentialsService) Upsert(ctx context.Context, env TeamEnvironment, region Region, body UpsertTeamCustomCredentialsBody, opts ...CallOption) (*TeamCustomCredentials, error) {
	r := s.org.request(opUpsertCustomCredentials, string(env), string(region))
	r.body = &body
	return call[TeamCustomCredentials](ctx, s.org.core, r, opts)
}

// Delete deletes custom credentials: DELETE /v1/org/{org_id}/team_custom_credentials/{env}/{region}. The answer says what became
// of each.
func (s *CustomCredentialsService) Delete(ctx context.Context, env TeamEnvironment, region Region, credentialIDs []uuid.UUID, opts ...CallOption) (*BatchDeletion, error) {
	r := s.org.batch(opDeleteCustomCredentials, "credential_id", env, region, credentialIDs)
	return call[BatchDeletion](ctx, s.org.core, r, opts)
}

// Prepare says what is to be done at a provider before a team can use credentials of its own there: POST
// /v1/org/{org_id}/prepare_team_custom_credentials/{env}/{region}.
func (s *CustomCredentialsService) Prepare(ctx context.Context, env TeamEnvironment, region Region, teamID uuid.UUID, provider string, opts ...CallOption) (*TeamCustomCredentialsPreparation, error) {
	r := s.org.request(opPrepareCustomCredentials, string(env), string(region))
	r.body = &prepareTeamCustomCredentialsBody{teamID, provider}
	return call[TeamCustomCredentialsPreparation](ctx, s.org.core, r, opts)
}
