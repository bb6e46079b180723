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

// CustomCredentialsService provides access to the teams' own credentials for providers. Source of
// its operations: public API reference only.
type CustomCredentialsService struct{ core *core }

// TeamCustomCredentials are a team's own credentials for a provider.
type TeamCustomCredentials struct {
	Redacted

	ID        uuid.UUID `json:"id"`                 // ID of the credentials
	TeamID    uuid.UUID `json:"team_id"`            // ID of the team
	Source    string    `json:"source"`             // slug of the provider
	CreatedAt time.Time `json:"created_at"`         // creation time
	UpdatedAt time.Time `json:"updated_at"`         // time of the last change
	ClientID  *string   `json:"client_id,omitzero"` // client ID at the provider, nil for none
	// ClientSecretHash is a hash of the client secret, nil if there is none. The service never
	// returns the secret itself.
	ClientSecretHash *string `json:"client_secret_hash,omitzero"`
	// Details is a JSON object whose fields depend on the provider, nil if there is none.
	Details json.RawMessage `json:"details,omitzero"`
	// AppURL is nil if there is none.
	AppURL *string `json:"app_url,omitzero"`
	// RedirectURLOverride replaces the service's own redirect URL. It is nil if that one is used.
	RedirectURLOverride *string `json:"redirect_url_override,omitzero"`

	RawObject `json:"-"`
}

// ListTeamCustomCredentialsParams selects custom credentials. Zero fields are not sent.
type ListTeamCustomCredentialsParams struct {
	TeamID     uuid.UUID // credentials of one team
	NextCursor string    // NextCursor of the previous page; empty for the first
}

func (p ListTeamCustomCredentialsParams) query() queryValues {
	return teamQuery(p.TeamID, p.NextCursor)
}

// TeamCustomCredentialsPage is one page of custom credentials: the response of
// [CustomCredentialsService.List].
type TeamCustomCredentialsPage struct {
	Redacted

	// Credentials holds the credentials of the page.
	Credentials []TeamCustomCredentials `json:"credentials" jsonread:"own"`
	// NextCursor is the cursor of the next page, nil on the last page.
	NextCursor *string `json:"next_cursor,omitzero"`

	RawObject `json:"-"`
}

func (p *TeamCustomCredentialsPage) verify() error { return requireList(p.Credentials) }

func (p *TeamCustomCredentialsPage) elements() (any, *string) {
	return p.Credentials, p.NextCursor
}

// UpsertTeamCustomCredentialsBody is the request of [CustomCredentialsService.Upsert].
type UpsertTeamCustomCredentialsBody struct {
	Redacted

	TeamID       uuid.UUID       `json:"team_id"`                // ID of the team
	Provider     string          `json:"provider"`               // slug of the provider
	ClientID     *string         `json:"client_id,omitzero"`     // nil if the provider has none
	ClientSecret Secret          `json:"client_secret,omitzero"` // empty if the provider has none
	Details      json.RawMessage `json:"details,omitzero"`       // provider-specific, nil for none
	// RedirectURLOverride replaces the service's own redirect URL. Nil uses the service's own.
	RedirectURLOverride *string `json:"redirect_url_override,omitzero"`
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

// PreparationStatus reports whether steps are required before custom credentials can be used.
// Values other than the constants occur.
type PreparationStatus string

// Values of [PreparationStatus].
const (
	PreparationStatusNoActionNeeded       PreparationStatus = "no_action_needed"
	PreparationStatusPreparationsRequired PreparationStatus = "preparations_required"
)

// TeamCustomCredentialsPreparation lists the steps that are required at a provider before custom
// credentials can be used: the response of [CustomCredentialsService.Prepare].
type TeamCustomCredentialsPreparation struct {
	Status           PreparationStatus `json:"status"`            // whether steps are required
	PreparationSteps []PreparationStep `json:"preparation_steps"` // required steps, in order

	RawObject `json:"-"`
}

// PreparationStep is one setting to make at the provider.
type PreparationStep struct {
	Type        string  `json:"type"`                 // kind of step
	Key         *string `json:"key,omitzero"`         // name of the setting, nil if Type implies it
	Value       string  `json:"value"`                // value of the setting
	Description *string `json:"description,omitzero"` // human-readable text, nil if there is none

	RawObject `json:"-"`
}

// List returns one page of the custom credentials of an environment:
// GET /v1/org/{org_id}/team_custom_credentials/{env}/{region}.
func (s *CustomCredentialsService) List(ctx context.Context, env TeamEnvironment, region Region, params ListTeamCustomCredentialsParams, opts ...CallOption) (*TeamCustomCredentialsPage, error) {
	r := request{op: opListCustomCredentials, ids: []string{string(env), string(region)}, query: params}
	return call(ctx, s.core, new(TeamCustomCredentialsPage), r, opts)
}

// All returns an iterator over the custom credentials, page by page, starting at params.NextCursor.
// It behaves like [LabTestsService.All].
func (s *CustomCredentialsService) All(ctx context.Context, env TeamEnvironment, region Region, params ListTeamCustomCredentialsParams, opts ...CallOption) iter.Seq2[*TeamCustomCredentials, error] {
	id := func(v *TeamCustomCredentials) uuid.UUID { return v.ID }
	return cursorPages(opListCustomCredentials, params.NextCursor, id, func(cursor string) (cursorPage, error) {
		params := params
		params.NextCursor = cursor
		return s.List(ctx, env, region, params, opts...)
	})
}

// Upsert creates or replaces a team's credentials for a provider:
// POST /v1/org/{org_id}/team_custom_credentials/{env}/{region}. It is idempotent: after any error
// it can be called again.
func (s *CustomCredentialsService) Upsert(ctx context.Context, env TeamEnvironment, region Region, body UpsertTeamCustomCredentialsBody, opts ...CallOption) (*TeamCustomCredentials, error) {
	r := request{op: opUpsertCustomCredentials, ids: []string{string(env), string(region)}, body: &body}
	return call(ctx, s.core, new(TeamCustomCredentials), r, opts)
}

// Delete deletes custom credentials:
// DELETE /v1/org/{org_id}/team_custom_credentials/{env}/{region}. The response has the result for
// each ID. At least one ID is required.
func (s *CustomCredentialsService) Delete(ctx context.Context, env TeamEnvironment, region Region, credentialIDs []uuid.UUID, opts ...CallOption) (*BatchDeletion, error) {
	r := request{
		op: opDeleteCustomCredentials, ids: []string{string(env), string(region)},
		query: batchParams{"credential_id", credentialIDs},
	}
	return call(ctx, s.core, new(BatchDeletion), r, opts)
}

// Prepare returns the steps that are required at a provider before a team can use its own
// credentials there: POST /v1/org/{org_id}/prepare_team_custom_credentials/{env}/{region}.
func (s *CustomCredentialsService) Prepare(ctx context.Context, env TeamEnvironment, region Region, teamID uuid.UUID, provider string, opts ...CallOption) (*TeamCustomCredentialsPreparation, error) {
	r := request{
		op: opPrepareCustomCredentials, ids: []string{string(env), string(region)},
		body: &prepareTeamCustomCredentialsBody{teamID, provider},
	}
	return call(ctx, s.core, new(TeamCustomCredentialsPreparation), r, opts)
}
