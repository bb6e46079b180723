// The teams' own credentials for providers of wearable data.

package management

import (
	"context"
	"encoding/json"
	"iter"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

const (
	opListCustomCredentials    = "GET /v1/org/{org_id}/team_custom_credentials/{env}/{region}"
	opUpsertCustomCredentials  = "POST /v1/org/{org_id}/team_custom_credentials/{env}/{region}"
	opDeleteCustomCredentials  = "DELETE /v1/org/{org_id}/team_custom_credentials/{env}/{region}"
	opPrepareCustomCredentials = "POST /v1/org/{org_id}/prepare_team_custom_credentials/{env}/{region}"
)

// CustomCredentialsService provides access to the teams' own credentials for providers. Source of
// its operations: public API reference only.
type CustomCredentialsService struct{ core sender }

// TeamCustomCredentials are a team's own credentials for a provider.
type TeamCustomCredentials struct {
	ID        uuid.UUID          `json:"id"`                 // ID of the credentials
	TeamID    uuid.UUID          `json:"team_id"`            // ID of the team
	Source    labhealth.Provider `json:"source"`             // a provider, or the slug of a lab
	CreatedAt time.Time          `json:"created_at"`         // creation time
	UpdatedAt time.Time          `json:"updated_at"`         // time of the last change
	ClientID  *string            `json:"client_id,omitzero"` // client ID at the provider, nil for none
	// ClientSecretHash is a hash of the client secret, nil if there is none. The service never
	// returns the secret itself.
	ClientSecretHash *string `json:"client_secret_hash,omitzero"`
	// Details holds what only this provider has, nil if there is nothing.
	Details *CustomCredentialsDetails `json:"details,omitzero"`
	// AppURL is nil if there is none.
	AppURL *string `json:"app_url,omitzero"`
	// RedirectURLOverride replaces the service's own redirect URL. It is nil if that one is used.
	RedirectURLOverride *string `json:"redirect_url_override,omitzero"`

	labhealth.RawObject `json:"-"`
}

// CustomCredentialsDetails holds the fields of custom credentials that only some providers have.
// The other fields are nil or empty.
type CustomCredentialsDetails struct {
	// Fitbit is required for fitbit.
	Fitbit *FitbitCredentials `json:"fitbit,omitzero"`

	// RedirectURI is required for google_fit.
	RedirectURI *string `json:"redirect_uri,omitzero"`
	// DataScopes is required for google_fit.
	DataScopes []string `json:"data_scopes,omitzero"`

	// ProjectNumber is required for google_health.
	ProjectNumber *string `json:"project_number,omitzero"`
	// ServiceAccountEmail is required for google_health.
	ServiceAccountEmail *string `json:"service_account_email,omitzero"`

	// WebhookSecret is required for polar.
	WebhookSecret labhealth.Secret `json:"webhook_secret,omitzero"`

	// Client is required for my_fitness_pal_v2.
	Client *string `json:"client,omitzero"`

	// GetLabs is required for getlabs.
	GetLabs *GetLabsCredentials `json:"getlabs,omitzero"`

	// PhlebFinders is required for phlebfinders.
	PhlebFinders *PhlebFindersCredentials `json:"phlebfinders,omitzero"`

	// SubAccountID is the ID of the team's account at a lab, nil for none.
	SubAccountID *string `json:"sub_account_id,omitzero"`
	// SubAccountName is the name of the team's account at a lab, nil for none.
	SubAccountName *string `json:"sub_account_name,omitzero"`
	// AllowedBillingTypes lists who can pay for the orders of a lab. Nil is sent as absent, and
	// received for null.
	AllowedBillingTypes []labhealth.Billing `json:"allowed_billing_types,omitzero"`
	// DisallowedBillingStates lists the states in which a billing type is not available at a lab.
	DisallowedBillingStates map[string][]string `json:"disallowed_billing_states,omitzero"`

	// BioReference is a JSON object without a documented form. It is required for bioreference.
	BioReference json.RawMessage `json:"bioreference,omitzero"`

	// Quest is a JSON object without a documented form. It is required for quest.
	Quest json.RawMessage `json:"quest,omitzero"`
	// AllowedBusinessUnits lists the business units of quest, nil for none.
	AllowedBusinessUnits []string `json:"allowed_business_units,omitzero"`

	// LabCorp is one of two forms of labcorp.
	LabCorp *LabCorpCredentials `json:"labcorp,omitzero"`
	// SendingFacility is, with the next three fields, the other form of labcorp.
	SendingFacility *string `json:"sending_facility,omitzero"`
	// SendingApplication belongs to SendingFacility.
	SendingApplication *string `json:"sending_application,omitzero"`
	// ReceivingFacility belongs to SendingFacility.
	ReceivingFacility *string `json:"receiving_facility,omitzero"`
	// ReceivingApplication belongs to SendingFacility.
	ReceivingApplication *string `json:"receiving_application,omitzero"`

	labhealth.RawObject `json:"-"`
}

func (d *CustomCredentialsDetails) validate(v validator) {
	if d.RedirectURI != nil || d.DataScopes != nil {
		requiredPointer(v, "redirect_uri", d.RedirectURI)
		if d.DataScopes == nil {
			v.Add("data_scopes", "missing", "is required")
		}
	}
	if d.ProjectNumber != nil || d.ServiceAccountEmail != nil {
		requiredPointer(v, "project_number", d.ProjectNumber)
		requiredPointer(v, "service_account_email", d.ServiceAccountEmail)
	}
	if d.SendingFacility != nil || d.SendingApplication != nil || d.ReceivingFacility != nil || d.ReceivingApplication != nil {
		requiredPointer(v, "sending_facility", d.SendingFacility)
		requiredPointer(v, "sending_application", d.SendingApplication)
		requiredPointer(v, "receiving_facility", d.ReceivingFacility)
		requiredPointer(v, "receiving_application", d.ReceivingApplication)
	}
	if c := d.Fitbit; c != nil {
		v.Within("fitbit", func() { c.validate(v) })
	}
	if c := d.GetLabs; c != nil {
		v.Within("getlabs", func() {
			v.Required("webhook_secret_key", string(c.WebhookSecretKey))
			v.Required("webhook_secret_token", string(c.WebhookSecretToken))
		})
	}
	if c := d.LabCorp; c != nil {
		v.Within("labcorp", func() {
			v.Required("account_number", c.AccountNumber)
			v.Required("billing_method", string(c.BillingMethod))
		})
	}
	if c := d.PhlebFinders; c != nil {
		v.Within("phlebfinders", func() { c.validate(v) })
	}
}

// requiredPointer validates a string that is required only together with others.
func requiredPointer(v validator, name string, s *string) {
	if s == nil {
		v.Add(name, "missing", "is required")
	}
}

// FitbitCredentials is the part of [CustomCredentialsDetails] for fitbit.
type FitbitCredentials struct {
	// IsHREnabled reports whether heart rate data is read. The default is false.
	IsHREnabled        *bool            `json:"is_hr_enabled,omitzero" default:"false"`
	WorkoutVerifyToken labhealth.Secret `json:"workout_verify_token"` // verifies the endpoint of workouts
	SleepVerifyToken   labhealth.Secret `json:"sleep_verify_token"`   // verifies the endpoint of sleep
	BodyVerifyToken    labhealth.Secret `json:"body_verify_token"`    // verifies the endpoint of body data
	// FoodsVerifyToken verifies the endpoint of foods. It is empty for none.
	FoodsVerifyToken labhealth.Secret `json:"foods_verify_token,omitzero"`

	labhealth.RawObject `json:"-"`
}

func (c *FitbitCredentials) validate(v validator) {
	v.Required("workout_verify_token", string(c.WorkoutVerifyToken))
	v.Required("sleep_verify_token", string(c.SleepVerifyToken))
	v.Required("body_verify_token", string(c.BodyVerifyToken))
}

// GetLabsCredentials is the part of [CustomCredentialsDetails] for getlabs.
type GetLabsCredentials struct {
	WebhookSecretKey   labhealth.Secret `json:"webhook_secret_key"`   // signs the events of the provider
	WebhookSecretToken labhealth.Secret `json:"webhook_secret_token"` // authenticates them

	labhealth.RawObject `json:"-"`
}

// LabCorpBillingMethod is the billing method of an account at labcorp. The meaning of its values is
// not documented. Values other than the constants occur.
type LabCorpBillingMethod string

// Values of [LabCorpBillingMethod].
const (
	LabCorpBillingMethodCM LabCorpBillingMethod = "CM"
	LabCorpBillingMethodPT LabCorpBillingMethod = "PT"
	LabCorpBillingMethodPI LabCorpBillingMethod = "PI"
)

// LabCorpCredentials is the part of [CustomCredentialsDetails] for labcorp.
type LabCorpCredentials struct {
	AccountNumber string               `json:"account_number"` // number of the account
	BillingMethod LabCorpBillingMethod `json:"billing_method"` // how orders are billed

	labhealth.RawObject `json:"-"`
}

// PhlebFindersCredentials is the part of [CustomCredentialsDetails] for phlebfinders. Its IDs are
// those of the provider.
type PhlebFindersCredentials struct {
	AccountID    string           `json:"account_id"`    // ID of the account
	AccountName  string           `json:"account_name"`  // name of the account
	TeamID       string           `json:"team_id"`       // ID of the team
	TeamName     string           `json:"team_name"`     // name of the team
	WebhookToken labhealth.Secret `json:"webhook_token"` // authenticates the events of the provider
	Email        string           `json:"email"`         // email address of the account

	labhealth.RawObject `json:"-"`
}

func (c *PhlebFindersCredentials) validate(v validator) {
	v.Required("account_id", c.AccountID)
	v.Required("account_name", c.AccountName)
	v.Required("team_id", c.TeamID)
	v.Required("team_name", c.TeamName)
	v.Required("webhook_token", string(c.WebhookToken))
	v.Required("email", c.Email)
}

// ListTeamCustomCredentialsParams selects custom credentials. Zero fields are not sent.
type ListTeamCustomCredentialsParams struct {
	TeamID     []uuid.UUID        // credentials of these teams
	Provider   labhealth.Provider // one provider, or the slug of a lab
	NextCursor string             // NextCursor of the previous page; empty for the first
}

func (p ListTeamCustomCredentialsParams) validate(v validator) { v.ValidIDs("team_id", p.TeamID) }

func (p ListTeamCustomCredentialsParams) query() url.Values {
	return url.Values{"team_id": each(p.TeamID), "provider": optional(p.Provider), "next_cursor": optional(p.NextCursor)}
}

// TeamCustomCredentialsPage is one page of custom credentials: the response of
// [CustomCredentialsService.List].
type TeamCustomCredentialsPage struct {
	// Credentials holds the credentials of the page.
	Credentials []TeamCustomCredentials `json:"credentials" jsonread:"own"`
	// NextCursor is the cursor of the next page, nil on the last page.
	NextCursor *string `json:"next_cursor,omitzero"`

	labhealth.RawObject `json:"-"`
}

func (p *TeamCustomCredentialsPage) verify() error { return requireList(p.Credentials) }

func (p *TeamCustomCredentialsPage) elements() (any, *string) {
	return p.Credentials, p.NextCursor
}

// UpsertTeamCustomCredentialsBody is the request of [CustomCredentialsService.Upsert].
type UpsertTeamCustomCredentialsBody struct {
	labhealth.Redacted

	TeamID       uuid.UUID          `json:"team_id"`                // ID of the team
	Provider     labhealth.Provider `json:"provider"`               // a provider, or the slug of a lab
	ClientID     *string            `json:"client_id,omitzero"`     // nil if the provider has none
	ClientSecret labhealth.Secret   `json:"client_secret,omitzero"` // empty if the provider has none
	// Details holds what only this provider has, nil for nothing. For details of another form, use
	// [Client.Do].
	Details *CustomCredentialsDetails `json:"details,omitzero"`
	// RedirectURLOverride replaces the service's own redirect URL. Nil uses the service's own.
	RedirectURLOverride *string `json:"redirect_url_override,omitzero"`
}

func (b *UpsertTeamCustomCredentialsBody) validate(v validator) {
	v.RequiredID("team_id", b.TeamID)
	v.Required("provider", string(b.Provider))
	if b.Details != nil {
		v.Within("details", func() { b.Details.validate(v) })
	}
}

// prepareTeamCustomCredentialsBody is the request of [CustomCredentialsService.Prepare].
type prepareTeamCustomCredentialsBody struct {
	TeamID   uuid.UUID          `json:"team_id"`
	Provider labhealth.Provider `json:"provider"`
}

func (b *prepareTeamCustomCredentialsBody) validate(v validator) {
	v.RequiredID("team_id", b.TeamID)
	v.Required("provider", string(b.Provider))
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
	Status PreparationStatus `json:"status"` // whether steps are required
	// PreparationSteps lists the required steps, in order.
	PreparationSteps []PreparationStep `json:"preparation_steps,omitzero"`

	labhealth.RawObject `json:"-"`
}

// PreparationStepType is the kind of a [PreparationStep]. Values other than the constants occur.
type PreparationStepType string

// Values of [PreparationStepType].
const (
	PreparationStepTypeRedirectURI  PreparationStepType = "redirect_uri"
	PreparationStepTypeWebhookURI   PreparationStepType = "webhook_uri"
	PreparationStepTypeIAMPrincipal PreparationStepType = "iam_principal"
)

// PreparationStep is one setting to make at the provider.
type PreparationStep struct {
	Type        PreparationStepType `json:"type"`        // kind of step
	Key         *string             `json:"key"`         // name of the setting, nil if Type implies it
	Value       string              `json:"value"`       // value of the setting
	Description *string             `json:"description"` // human-readable text, nil if there is none

	labhealth.RawObject `json:"-"`
}

// List returns one page of the custom credentials of an environment:
// GET /v1/org/{org_id}/team_custom_credentials/{env}/{region}.
func (s *CustomCredentialsService) List(ctx context.Context, env labhealth.TeamEnvironment, region labhealth.Region, params ListTeamCustomCredentialsParams, opts ...labhealth.CallOption) (*TeamCustomCredentialsPage, error) {
	r := request{Op: opListCustomCredentials, IDs: []string{string(env), string(region)}, Params: params}
	return call(ctx, coreOf(s), new(TeamCustomCredentialsPage), r, opts)
}

// All returns an iterator over the custom credentials, page by page, starting at params.NextCursor.
// It behaves like [labhealth.LabTestsService.All].
func (s *CustomCredentialsService) All(ctx context.Context, env labhealth.TeamEnvironment, region labhealth.Region, params ListTeamCustomCredentialsParams, opts ...labhealth.CallOption) iter.Seq2[*TeamCustomCredentials, error] {
	id := func(v *TeamCustomCredentials) uuid.UUID { return v.ID }
	return cursorPages(ctx, coreOf(s), opts, opListCustomCredentials, params.NextCursor, id, func(ctx context.Context, cursor string, opts []labhealth.CallOption) (any, error) {
		params := params
		params.NextCursor = cursor
		return s.List(ctx, env, region, params, opts...)
	})
}

// Upsert creates or replaces a team's credentials for a provider:
// POST /v1/org/{org_id}/team_custom_credentials/{env}/{region}. It is idempotent: after any error
// it can be called again.
func (s *CustomCredentialsService) Upsert(ctx context.Context, env labhealth.TeamEnvironment, region labhealth.Region, body UpsertTeamCustomCredentialsBody, opts ...labhealth.CallOption) (*TeamCustomCredentials, error) {
	r := request{Op: opUpsertCustomCredentials, IDs: []string{string(env), string(region)}, Body: &body}
	return call(ctx, coreOf(s), new(TeamCustomCredentials), r, opts)
}

// Delete deletes custom credentials:
// DELETE /v1/org/{org_id}/team_custom_credentials/{env}/{region}. The response has the result for
// each ID. At least one ID is required.
func (s *CustomCredentialsService) Delete(ctx context.Context, env labhealth.TeamEnvironment, region labhealth.Region, credentialIDs []uuid.UUID, opts ...labhealth.CallOption) (*BatchDeletion, error) {
	r := request{
		Op: opDeleteCustomCredentials, IDs: []string{string(env), string(region)},
		Params: batchParams{"credential_id", credentialIDs},
	}
	return call(ctx, coreOf(s), new(BatchDeletion), r, opts)
}

// Prepare returns the steps that are required at a provider before a team can use its own
// credentials there: POST /v1/org/{org_id}/prepare_team_custom_credentials/{env}/{region}.
func (s *CustomCredentialsService) Prepare(ctx context.Context, teamID uuid.UUID, env labhealth.TeamEnvironment, region labhealth.Region, provider labhealth.Provider, opts ...labhealth.CallOption) (*TeamCustomCredentialsPreparation, error) {
	r := request{
		Op: opPrepareCustomCredentials, IDs: []string{string(env), string(region)},
		Body: &prepareTeamCustomCredentialsBody{teamID, provider},
	}
	return call(ctx, coreOf(s), new(TeamCustomCredentialsPreparation), r, opts)
}
