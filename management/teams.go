// Teams, their settings, and access tokens.

package management

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/jsonread"
)

const (
	opListTeams         = "GET /v1/org/{org_id}/team"
	opCreateTeam        = "POST /v1/org/{org_id}/team"
	opGetTeam           = "GET /v1/org/{org_id}/team/{team_id}"
	opUpdateTeam        = "PATCH /v1/org/{org_id}/team/{team_id}"
	opDeleteTeam        = "DELETE /v1/org/{org_id}/team/{team_id}"
	opResolveTeam       = "POST /v1/org/{org_id}/resolve_team"
	opCreateAccessToken = "POST /v1/org/{org_id}/team/{team_id}/create_api_access_token"
)

// TeamsService provides access to the teams of the organisation. Only an Org Management Key can
// create and delete them. Source of its operations: public API reference only.
type TeamsService struct{ core sender }

// Team is a team of the organisation. Every user, order and event belongs to one team. In a list,
// a team has neither Environments nor settings.
type Team struct {
	ID        uuid.UUID        `json:"id"`         // ID of the team
	Name      string           `json:"name"`       // display name
	CreatedOn time.Time        `json:"created_on"` // creation time
	Region    labhealth.Region `json:"region"`     // region that stores the team's data
	// IntegrationTeamID is the application's own reference for the team, nil if there is none.
	IntegrationTeamID *string                     `json:"integration_team_id,omitzero"`
	Environments      []labhealth.TeamEnvironment `json:"environments,omitzero"` // environments of the team
	// Sandbox holds the settings of the sandbox, nil if not requested with [GetTeamParams].
	Sandbox *TeamSettings `json:"sandbox,omitzero"`
	// Production holds the settings of production, nil if not requested with [GetTeamParams].
	Production *TeamSettings `json:"production,omitzero"`

	labhealth.RawObject `json:"-"`
}

func (t *Team) verify() error { return requireID(t.ID, "team") }

// TeamSettings holds the settings of a team in one environment.
type TeamSettings struct {
	// LabTestsPatientSMSCommunicationEnabled reports whether patients receive text messages. The
	// default is true.
	LabTestsPatientSMSCommunicationEnabled bool `json:"lab_tests_patient_sms_communication_enabled" default:"true"`
	// LabTestsPatientEmailCommunicationEnabled reports whether patients receive email. The default
	// is true.
	LabTestsPatientEmailCommunicationEnabled bool `json:"lab_tests_patient_email_communication_enabled" default:"true"`
	// CriticalResultNotificationEmail is the email address that receives notifications of critical
	// results, nil for none.
	CriticalResultNotificationEmail *string `json:"critical_result_notification_email,omitzero"`
	// BrandInformation describes the team to patients, nil if not set.
	BrandInformation *BrandInformation `json:"brand_information,omitzero"`
	// LogoURL is the URL of the team's logo, nil if there is none.
	LogoURL *string `json:"logo_url,omitzero"`
	// RejectDuplicateConnection reports whether a source that one user has connected is rejected
	// for other users. The default is false.
	RejectDuplicateConnection bool `json:"reject_duplicate_connection" default:"false"`
	// SDKPerDeviceActivityTimeseries is not documented. The default is false.
	SDKPerDeviceActivityTimeseries bool `json:"sdk_per_device_activity_timeseries" default:"false"`
	// PartialWebhooksEnabled reports whether events are also sent for partial results. The default
	// is false. It is nil if it is null.
	PartialWebhooksEnabled *bool `json:"partial_webhooks_enabled" default:"false"`
	// MinorOrderingEnabled reports whether patients can be minors. The default is false. It is nil
	// if it is null.
	MinorOrderingEnabled *bool `json:"minor_ordering_enabled" default:"false"`

	labhealth.RawObject `json:"-"`
}

// BrandInformation describes a team to its patients. It is part of [TeamSettings]; change it with
// [TeamsService.UpdateBrandInformation].
type BrandInformation struct {
	// CompanyName is the name of the company.
	CompanyName string `json:"company_name"`
	// CompanyWebsite is the website of the company, nil or empty for none.
	CompanyWebsite *string `json:"company_website,omitzero"`
	// SupportEmail is the email address of patient support, nil for none.
	SupportEmail *string `json:"support_email,omitzero"`
	// SupportContact is another way to contact patient support, nil or empty for none.
	SupportContact *string `json:"support_contact,omitzero"`
	// CompanyAddress is the postal address of the company, nil or empty for none.
	CompanyAddress *string `json:"company_address,omitzero"`
	// BrandColor is the color of the brand, nil or empty for none.
	BrandColor *string `json:"brand_color,omitzero"`

	labhealth.RawObject `json:"-"`
}

// ListTeamsParams selects teams. Zero fields are not sent.
type ListTeamsParams struct {
	TeamID      uuid.UUID          // one team
	Region      []labhealth.Region // teams in one of these regions
	SearchQuery string             // free text, with the characters and the length of a team's name
	NextCursor  string             // NextCursor of the previous page; empty for the first
}

func (p ListTeamsParams) validate(v validator) { displayName(v, "search_query", p.SearchQuery) }

func (p ListTeamsParams) query() url.Values {
	return url.Values{
		"team_id": optional(p.TeamID), "region": each(p.Region), "search_query": optional(p.SearchQuery), "next_cursor": optional(p.NextCursor),
	}
}

// TeamPage is one page of teams: the response of [TeamsService.List].
type TeamPage struct {
	Teams      []Team  `json:"teams" jsonread:"own"` // the teams of the page
	NextCursor *string `json:"next_cursor"`          // nil on the last page

	labhealth.RawObject `json:"-"`
}

func (p *TeamPage) verify() error { return requireList(p.Teams) }

func (p *TeamPage) elements() (any, *string) { return p.Teams, p.NextCursor }

// GetTeamParams selects the settings that [TeamsService.Get] returns with the team.
type GetTeamParams struct {
	IncludeEnvironment []labhealth.TeamEnvironment // environments whose settings are returned
}

func (p GetTeamParams) query() url.Values {
	return url.Values{"include_environment": each(p.IncludeEnvironment)}
}

// CreateTeamBody is the request of [TeamsService.Create]. Its settings apply to both environments;
// nil settings have their defaults. [TeamSettings] describes them. The service rejects unknown
// fields.
type CreateTeamBody struct {
	// ID is the ID of the new team. If nil, the service chooses it.
	ID *uuid.UUID `json:"id,omitzero"`
	// Name is the display name: at most 80 letters, digits, spaces and (),/:'|&_-’.
	Name   string           `json:"name"`
	Region labhealth.Region `json:"region"` // region that stores the team's data
	// IntegrationTeamID is the application's own reference for the team, unique among teams, of at
	// most 256 characters.
	IntegrationTeamID *string `json:"integration_team_id,omitzero"`

	// LabTestsPatientSMSCommunicationEnabled enables text messages to patients. Nil means true.
	LabTestsPatientSMSCommunicationEnabled *bool `json:"lab_tests_patient_sms_communication_enabled,omitzero"`
	// LabTestsPatientEmailCommunicationEnabled enables email to patients. Nil means true.
	LabTestsPatientEmailCommunicationEnabled *bool `json:"lab_tests_patient_email_communication_enabled,omitzero"`
	// CriticalResultNotificationEmail receives notifications of critical results, nil for none.
	CriticalResultNotificationEmail *string `json:"critical_result_notification_email,omitzero"`
	// BrandInformation describes the team to patients, nil for none.
	BrandInformation *BrandInformation `json:"brand_information,omitzero"`
	// LogoURL is the URL of the team's logo, nil for none.
	LogoURL *string `json:"logo_url,omitzero"`
	// RejectDuplicateConnection rejects a source that another user has connected. Nil means false.
	RejectDuplicateConnection *bool `json:"reject_duplicate_connection,omitzero"`
	// SDKPerDeviceActivityTimeseries is not documented. Nil means false.
	SDKPerDeviceActivityTimeseries *bool `json:"sdk_per_device_activity_timeseries,omitzero"`
	// PartialWebhooksEnabled also enables events for partial results. Nil means false.
	PartialWebhooksEnabled *bool `json:"partial_webhooks_enabled,omitzero"`
	// MinorOrderingEnabled allows patients who are minors. Nil means false.
	MinorOrderingEnabled *bool `json:"minor_ordering_enabled,omitzero"`
}

func (b *CreateTeamBody) validate(v validator) {
	v.OptionalID("id", b.ID)
	v.Required("name", b.Name)
	displayName(v, "name", b.Name)
	v.Required("region", string(b.Region))
	optionalLength(v, "integration_team_id", b.IntegrationTeamID, 0, maxIntegrationTeamID)
	optionalLength(v, "logo_url", b.LogoURL, 1, maxLogoURL)
	if brand := b.BrandInformation; brand != nil {
		v.Within("brand_information", func() { v.Required("company_name", brand.CompanyName) })
	}
}

const (
	maxIntegrationTeamID = 256  // in characters
	maxLogoURL           = 2083 // in characters
	maxDisplayName       = 80   // in characters
)

// displayName validates the name of an organisation or of a team, or a search for one.
func displayName(v validator, name, s string) {
	isAllowed := func(r rune) bool {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return true
		case 'À' <= r && r <= 'ÿ':
			return r != '×' && r != '÷'
		}
		return strings.ContainsRune("(),/:'|&_- ’", r)
	}
	v.Length(name, s, 0, maxDisplayName)
	if strings.ContainsFunc(s, func(r rune) bool { return !isAllowed(r) }) {
		v.Add(name, "string_pattern_mismatch", "must hold only letters, digits, spaces and (),/:'|&_-’")
	}
}

// optionalLength validates a string that may be left out.
func optionalLength(v validator, name string, s *string, minimum, maximum int) {
	if s != nil {
		v.Length(name, *s, minimum, maximum)
	}
}

// UpdateTeamBody is the request of [TeamsService.Update]. Omitted fields are unchanged.
type UpdateTeamBody struct {
	// Name is the display name, with the characters and the length of [CreateTeamBody].
	Name *string `json:"name,omitzero"`
	// IntegrationTeamID is the application's own reference for the team; [labhealth.Null] removes
	// it.
	IntegrationTeamID labhealth.Nullable[string] `json:"integration_team_id,omitzero"`
	// Sandbox changes the settings of the sandbox. The effect of [labhealth.Null] is not
	// documented.
	Sandbox labhealth.Nullable[UpdateTeamSettings] `json:"sandbox,omitzero"`
	// Production changes the settings of production. The effect of [labhealth.Null] is not
	// documented.
	Production labhealth.Nullable[UpdateTeamSettings] `json:"production,omitzero"`
}

func (b *UpdateTeamBody) validate(v validator) {
	if b.Name != nil {
		displayName(v, "name", *b.Name)
	}
	if id, ok := b.IntegrationTeamID.Get(); ok {
		v.Length("integration_team_id", id, 0, maxIntegrationTeamID)
	}
	if s, ok := b.Sandbox.Get(); ok {
		v.Within("sandbox", func() { s.validate(v) })
	}
	if s, ok := b.Production.Get(); ok {
		v.Within("production", func() { s.validate(v) })
	}
}

// UpdateTeamSettings changes the settings that [TeamSettings] describes. Omitted fields are
// unchanged; [labhealth.Null] removes a value.
type UpdateTeamSettings struct {
	// LabTestsPatientSMSCommunicationEnabled enables text messages to patients.
	LabTestsPatientSMSCommunicationEnabled *bool `json:"lab_tests_patient_sms_communication_enabled,omitzero"`
	// LabTestsPatientEmailCommunicationEnabled enables email to patients.
	LabTestsPatientEmailCommunicationEnabled *bool `json:"lab_tests_patient_email_communication_enabled,omitzero"`
	// CriticalResultNotificationEmail receives notifications of critical results; [labhealth.Null]
	// for none.
	CriticalResultNotificationEmail labhealth.Nullable[string] `json:"critical_result_notification_email,omitzero"`
	// BrandInformation changes the given fields of the brand information; [labhealth.Null] removes
	// all of it.
	BrandInformation labhealth.Nullable[UpdateBrandInformationBody] `json:"brand_information,omitzero"`
	// LogoURL is the URL of the team's logo, of 1 to 2083 characters; [labhealth.Null] for none.
	LogoURL labhealth.Nullable[string] `json:"logo_url,omitzero"`
	// RejectDuplicateConnection rejects a source that another user has connected.
	RejectDuplicateConnection *bool `json:"reject_duplicate_connection,omitzero"`
	// SDKPerDeviceActivityTimeseries is not documented.
	SDKPerDeviceActivityTimeseries *bool `json:"sdk_per_device_activity_timeseries,omitzero"`
	// PartialWebhooksEnabled also enables events for partial results.
	PartialWebhooksEnabled *bool `json:"partial_webhooks_enabled,omitzero"`
	// MinorOrderingEnabled allows patients who are minors.
	MinorOrderingEnabled *bool `json:"minor_ordering_enabled,omitzero"`
	// PatientExperience is not documented. It is not part of [TeamSettings].
	PatientExperience *bool `json:"patient_experience,omitzero"`
}

func (s *UpdateTeamSettings) validate(v validator) {
	if url, ok := s.LogoURL.Get(); ok {
		v.Length("logo_url", url, 1, maxLogoURL)
	}
}

// UpdateBrandInformationBody is the request of [TeamsService.UpdateBrandInformation]. Omitted
// fields are unchanged; [labhealth.Null] clears a field. [BrandInformation] describes them.
type UpdateBrandInformationBody struct {
	// CompanyName is the name of the company. A team that has no brand information yet needs one.
	CompanyName labhealth.Nullable[string] `json:"company_name,omitzero"`
	// CompanyWebsite is the website of the company.
	CompanyWebsite labhealth.Nullable[string] `json:"company_website,omitzero"`
	// SupportEmail is the email address of patient support.
	SupportEmail labhealth.Nullable[string] `json:"support_email,omitzero"`
	// SupportContact is another way to contact patient support.
	SupportContact labhealth.Nullable[string] `json:"support_contact,omitzero"`
	// CompanyAddress is the postal address of the company.
	CompanyAddress labhealth.Nullable[string] `json:"company_address,omitzero"`
	// BrandColor is the color of the brand.
	BrandColor labhealth.Nullable[string] `json:"brand_color,omitzero"`
}

// resolveTeamBody is the request of [TeamsService.Resolve].
type resolveTeamBody struct {
	IntegrationTeamID string `json:"integration_team_id"`
}

func (b *resolveTeamBody) validate(v validator) {
	v.Required("integration_team_id", b.IntegrationTeamID)
	v.Length("integration_team_id", b.IntegrationTeamID, 0, maxIntegrationTeamID)
}

// createAccessTokenBody is the request of [TeamsService.CreateAccessToken].
type createAccessTokenBody struct {
	Env labhealth.TeamEnvironment `json:"env"`
}

func (b *createAccessTokenBody) validate(v validator) {
	v.Required("env", string(b.Env))
}

// AccessToken is a short-lived token for the team API, sent in the Authorization header as a bearer
// token. [TeamsService.Credentials] passes such tokens to a [labhealth.Client].
type AccessToken struct {
	AccessToken labhealth.Secret `json:"access_token"` // the token itself
	// ExpiresIn is the lifetime of the token in seconds, usually ten minutes. The unit is an
	// inference.
	ExpiresIn int64 `json:"expires_in"`

	labhealth.RawObject `json:"-"`
}

func (v *AccessToken) verify() error {
	if v.AccessToken == "" {
		return errors.New("it has no readable access token")
	}
	return nil
}

// List returns one page of the teams: GET /v1/org/{org_id}/team.
func (s *TeamsService) List(ctx context.Context, params ListTeamsParams, opts ...labhealth.CallOption) (*TeamPage, error) {
	return call(ctx, coreOf(s), new(TeamPage), request{Op: opListTeams, Params: params}, opts)
}

// All returns an iterator over the teams, page by page, starting at params.NextCursor. It behaves
// like [labhealth.LabTestsService.All].
func (s *TeamsService) All(ctx context.Context, params ListTeamsParams, opts ...labhealth.CallOption) iter.Seq2[*Team, error] {
	id := func(t *Team) uuid.UUID { return t.ID }
	return cursorPages(ctx, coreOf(s), opts, opListTeams, params.NextCursor, id, func(ctx context.Context, cursor string, opts []labhealth.CallOption) (any, error) {
		params := params
		params.NextCursor = cursor
		return s.List(ctx, params, opts...)
	})
}

// Create creates a team: POST /v1/org/{org_id}/team. If the integration team ID belongs to another
// team, the error is a *[labhealth.TeamConflictError] with that team's ID. With a Team Management
// Key the error is [labhealth.ErrForbidden].
func (s *TeamsService) Create(ctx context.Context, body CreateTeamBody, opts ...labhealth.CallOption) (*Team, error) {
	return call(ctx, coreOf(s), new(Team), request{Op: opCreateTeam, Body: &body, TeamConflict: true}, opts)
}

// Get returns one team: GET /v1/org/{org_id}/team/{team_id}. The error for an unknown team is
// [labhealth.ErrNotFound].
func (s *TeamsService) Get(ctx context.Context, teamID uuid.UUID, params GetTeamParams, opts ...labhealth.CallOption) (*Team, error) {
	return call(ctx, coreOf(s), new(Team), request{Op: opGetTeam, IDs: []string{teamID.String()}, Params: params}, opts)
}

// Update changes a team: PATCH /v1/org/{org_id}/team/{team_id}. If the new integration team ID
// belongs to another team, the error is a *[labhealth.TeamConflictError] with that team's ID.
func (s *TeamsService) Update(ctx context.Context, teamID uuid.UUID, body UpdateTeamBody, opts ...labhealth.CallOption) (*Team, error) {
	r := request{Op: opUpdateTeam, IDs: []string{teamID.String()}, Body: &body, TeamConflict: true}
	return call(ctx, coreOf(s), new(Team), r, opts)
}

// UpdateBrandInformation changes the brand information of a team in one environment, using
// [TeamsService.Update]. The fields that body omits are unchanged. To read the brand information
// back, call [TeamsService.Get] with that environment included.
func (s *TeamsService) UpdateBrandInformation(ctx context.Context, teamID uuid.UUID, env labhealth.TeamEnvironment, body UpdateBrandInformationBody, opts ...labhealth.CallOption) (*Team, error) {
	settings := labhealth.Value(UpdateTeamSettings{BrandInformation: labhealth.Value(body)})
	var update UpdateTeamBody
	switch env {
	case labhealth.TeamEnvironmentSandbox:
		update.Sandbox = settings
	case labhealth.TeamEnvironmentProduction:
		update.Production = settings
	default: // also with WithoutValidation: the body has no field for another environment
		return nil, invalid(opUpdateTeam, "must be production or sandbox", "environment")
	}
	return s.Update(ctx, teamID, update, opts...)
}

// Delete deletes a team: DELETE /v1/org/{org_id}/team/{team_id}. With a Team Management Key the
// error is [labhealth.ErrForbidden]. The response is not documented and not decoded: use
// [labhealth.WithResponse] to read it.
func (s *TeamsService) Delete(ctx context.Context, teamID uuid.UUID, opts ...labhealth.CallOption) error {
	return callEmpty(ctx, coreOf(s), request{Op: opDeleteTeam, IDs: []string{teamID.String()}}, opts)
}

// Resolve returns the team with an integration team ID: POST /v1/org/{org_id}/resolve_team. The
// error for an unknown ID is [labhealth.ErrNotFound]. On some deployments the returned team has
// only its ID.
func (s *TeamsService) Resolve(ctx context.Context, integrationTeamID string, opts ...labhealth.CallOption) (*Team, error) {
	r := request{Op: opResolveTeam, Body: &resolveTeamBody{integrationTeamID}}
	resolved, err := call(ctx, coreOf(s), new(resolvedTeam), r, opts)
	if err != nil {
		return nil, err
	}
	return resolved.team(), nil
}

// resolvedTeam is the response of [TeamsService.Resolve]: a team, one inside another object, or its
// ID alone.
type resolvedTeam struct {
	ID     uuid.UUID `json:"id"`
	TeamID uuid.UUID `json:"team_id"`
	Team   *Team     `json:"team"`

	labhealth.RawObject `json:"-"`
}

func (r *resolvedTeam) team() *Team {
	if r.ID == uuid.Nil && r.Team != nil {
		return r.Team
	}
	t := new(Team)
	_ = jsonread.Unmarshal(r.RawJSON(), t) // the JSON is valid: r was decoded from it
	t.ID = cmp.Or(t.ID, r.TeamID)
	return t
}

func (r *resolvedTeam) verify() error { return r.team().verify() }

// CreateAccessToken creates a short-lived token with the permissions of a team API key: POST
// /v1/org/{org_id}/team/{team_id}/create_api_access_token. The operation is rate limited. One page
// of the public API reference has a path that ends in create_access_token: see
// [labhealth.WithPath].
func (s *TeamsService) CreateAccessToken(ctx context.Context, teamID uuid.UUID, env labhealth.TeamEnvironment, opts ...labhealth.CallOption) (*AccessToken, error) {
	r := request{Op: opCreateAccessToken, IDs: []string{teamID.String()}, Body: &createAccessTokenBody{env}}
	return call(ctx, coreOf(s), new(AccessToken), r, opts)
}

// Credentials returns a source of credentials for [labhealth.WithCredentials]: a [labhealth.Client]
// with it uses tokens of [TeamsService.CreateAccessToken], each created with opts when the previous
// one is about to expire. If that fails, the error of the labhealth.Client wraps that of the
// [Client]: see [errors.As]. [labhealth.WithLogger] logs it only if it is an option of the Client
// too.
func (s *TeamsService) Credentials(teamID uuid.UUID, env labhealth.TeamEnvironment, opts ...labhealth.CallOption) func(context.Context) (labhealth.Credentials, error) {
	return func(ctx context.Context) (labhealth.Credentials, error) {
		now := time.Now()
		token, err := s.CreateAccessToken(ctx, teamID, env, opts...)
		if err != nil {
			return labhealth.Credentials{}, err
		}
		credentials := labhealth.Credentials{Token: token.AccessToken}
		if seconds := token.ExpiresIn; seconds > 0 && seconds < maxTokenLifetime {
			credentials.Expires = now.Add(time.Duration(seconds) * time.Second)
		}
		return credentials, nil
	}
}

// maxTokenLifetime is the longest plausible lifetime of a token in seconds, a year. Tokens whose
// lifetime is longer, or not known, are used until the service rejects them.
const maxTokenLifetime = 365 * 24 * 60 * 60
