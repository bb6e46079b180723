package labhealth

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

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
type TeamsService struct{ core *core }

// Team is a team of the organisation. Every user, order and event belongs to one team. In a list,
// a team has neither Environments nor settings.
type Team struct {
	ID        uuid.UUID `json:"id"`         // ID of the team
	Name      string    `json:"name"`       // display name
	CreatedOn time.Time `json:"created_on"` // creation time
	Region    Region    `json:"region"`     // region that stores the team's data
	// IntegrationTeamID is the application's own reference for the team, nil if there is none.
	IntegrationTeamID *string           `json:"integration_team_id,omitzero"`
	Environments      []TeamEnvironment `json:"environments,omitzero"` // environments of the team
	// Sandbox holds the settings of the sandbox, nil if not requested with [GetTeamParams].
	Sandbox *TeamSettings `json:"sandbox,omitzero"`
	// Production holds the settings of production, nil if not requested with [GetTeamParams].
	Production *TeamSettings `json:"production,omitzero"`

	RawObject `json:"-"`
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

	RawObject `json:"-"`
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

	RawObject `json:"-"`
}

// ListTeamsParams selects teams. Zero fields are not sent.
type ListTeamsParams struct {
	TeamID      uuid.UUID // one team
	Region      []Region  // teams in one of these regions
	SearchQuery string    // free text, with the characters and the length of a team's name
	NextCursor  string    // NextCursor of the previous page; empty for the first
}

func (p ListTeamsParams) validate(v *validator) { v.displayName("search_query", p.SearchQuery) }

func (p ListTeamsParams) query() queryValues {
	q := teamQuery(p.TeamID, p.NextCursor)
	addStrings(q, "region", p.Region)
	q.setString("search_query", p.SearchQuery)
	return q
}

// TeamPage is one page of teams: the response of [TeamsService.List].
type TeamPage struct {
	Teams      []Team  `json:"teams" jsonread:"own"` // the teams of the page
	NextCursor *string `json:"next_cursor"`          // nil on the last page

	RawObject `json:"-"`
}

func (p *TeamPage) verify() error { return requireList(p.Teams) }

func (p *TeamPage) elements() (any, *string) { return p.Teams, p.NextCursor }

// GetTeamParams selects the settings that [TeamsService.Get] returns with the team.
type GetTeamParams struct {
	IncludeEnvironment []TeamEnvironment // environments whose settings are returned
}

func (p GetTeamParams) query() queryValues {
	q := newQuery()
	addStrings(q, "include_environment", p.IncludeEnvironment)
	return q
}

// CreateTeamBody is the request of [TeamsService.Create]. Its settings apply to both environments;
// nil settings have their defaults. [TeamSettings] describes them. The service rejects unknown
// fields.
type CreateTeamBody struct {
	// ID is the ID of the new team. If nil, the service chooses it.
	ID *uuid.UUID `json:"id,omitzero"`
	// Name is the display name: at most 80 letters, digits, spaces and (),/:'|&_-’.
	Name   string `json:"name"`
	Region Region `json:"region"` // region that stores the team's data
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

func (b *CreateTeamBody) validate(v *validator) {
	v.optionalID("id", b.ID)
	v.required("name", b.Name)
	v.displayName("name", b.Name)
	v.required("region", string(b.Region))
	v.optionalLength("integration_team_id", b.IntegrationTeamID, 0, maxIntegrationTeamID)
	v.optionalLength("logo_url", b.LogoURL, 1, maxLogoURL)
	if brand := b.BrandInformation; brand != nil {
		v.within("brand_information", func() { v.required("company_name", brand.CompanyName) })
	}
}

const (
	maxIntegrationTeamID = 256  // in characters
	maxLogoURL           = 2083 // in characters
	maxDisplayName       = 80   // in characters
)

// displayName validates the name of an organisation or of a team, or a search for one.
func (v *validator) displayName(name, s string) {
	isAllowed := func(r rune) bool {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return true
		case 'À' <= r && r <= 'ÿ':
			return r != '×' && r != '÷'
		}
		return strings.ContainsRune("(),/:'|&_- ’", r)
	}
	v.length(name, s, 0, maxDisplayName)
	if strings.ContainsFunc(s, func(r rune) bool { return !isAllowed(r) }) {
		v.add(name, "string_pattern_mismatch", "must hold only letters, digits, spaces and (),/:'|&_-’")
	}
}

// optionalLength validates a string that may be left out.
func (v *validator) optionalLength(name string, s *string, minimum, maximum int) {
	if s != nil {
		v.length(name, *s, minimum, maximum)
	}
}

// UpdateTeamBody is the request of [TeamsService.Update]. Omitted fields are unchanged.
type UpdateTeamBody struct {
	// Name is the display name, with the characters and the length of [CreateTeamBody].
	Name *string `json:"name,omitzero"`
	// IntegrationTeamID is the application's own reference for the team; [Null] removes it.
	IntegrationTeamID Nullable[string] `json:"integration_team_id,omitzero"`
	// Sandbox changes the settings of the sandbox. The effect of [Null] is not documented.
	Sandbox Nullable[UpdateTeamSettings] `json:"sandbox,omitzero"`
	// Production changes the settings of production. The effect of [Null] is not documented.
	Production Nullable[UpdateTeamSettings] `json:"production,omitzero"`
}

func (b *UpdateTeamBody) validate(v *validator) {
	if b.Name != nil {
		v.displayName("name", *b.Name)
	}
	if id, ok := b.IntegrationTeamID.Get(); ok {
		v.length("integration_team_id", id, 0, maxIntegrationTeamID)
	}
	if s, ok := b.Sandbox.Get(); ok {
		v.within("sandbox", func() { s.validate(v) })
	}
	if s, ok := b.Production.Get(); ok {
		v.within("production", func() { s.validate(v) })
	}
}

// UpdateTeamSettings changes the settings that [TeamSettings] describes. Omitted fields are
// unchanged; [Null] removes a value.
type UpdateTeamSettings struct {
	// LabTestsPatientSMSCommunicationEnabled enables text messages to patients.
	LabTestsPatientSMSCommunicationEnabled *bool `json:"lab_tests_patient_sms_communication_enabled,omitzero"`
	// LabTestsPatientEmailCommunicationEnabled enables email to patients.
	LabTestsPatientEmailCommunicationEnabled *bool `json:"lab_tests_patient_email_communication_enabled,omitzero"`
	// CriticalResultNotificationEmail receives notifications of critical results; [Null] for none.
	CriticalResultNotificationEmail Nullable[string] `json:"critical_result_notification_email,omitzero"`
	// BrandInformation changes the given fields of the brand information; [Null] removes all of it.
	BrandInformation Nullable[UpdateBrandInformationBody] `json:"brand_information,omitzero"`
	// LogoURL is the URL of the team's logo, of 1 to 2083 characters; [Null] for none.
	LogoURL Nullable[string] `json:"logo_url,omitzero"`
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

func (s *UpdateTeamSettings) validate(v *validator) {
	if url, ok := s.LogoURL.Get(); ok {
		v.length("logo_url", url, 1, maxLogoURL)
	}
}

// UpdateBrandInformationBody is the request of [TeamsService.UpdateBrandInformation]. Omitted
// fields are unchanged; [Null] clears a field. [BrandInformation] describes them.
type UpdateBrandInformationBody struct {
	// CompanyName is the name of the company. A team that has no brand information yet needs one.
	CompanyName Nullable[string] `json:"company_name,omitzero"`
	// CompanyWebsite is the website of the company.
	CompanyWebsite Nullable[string] `json:"company_website,omitzero"`
	// SupportEmail is the email address of patient support.
	SupportEmail Nullable[string] `json:"support_email,omitzero"`
	// SupportContact is another way to contact patient support.
	SupportContact Nullable[string] `json:"support_contact,omitzero"`
	// CompanyAddress is the postal address of the company.
	CompanyAddress Nullable[string] `json:"company_address,omitzero"`
	// BrandColor is the color of the brand.
	BrandColor Nullable[string] `json:"brand_color,omitzero"`
}

// resolveTeamBody is the request of [TeamsService.Resolve].
type resolveTeamBody struct {
	IntegrationTeamID string `json:"integration_team_id"`
}

func (b *resolveTeamBody) validate(v *validator) {
	v.required("integration_team_id", b.IntegrationTeamID)
	v.length("integration_team_id", b.IntegrationTeamID, 0, maxIntegrationTeamID)
}

// createAccessTokenBody is the request of [TeamsService.CreateAccessToken].
type createAccessTokenBody struct {
	Env TeamEnvironment `json:"env"`
}

func (b *createAccessTokenBody) validate(v *validator) {
	v.required("env", string(b.Env))
}

// AccessToken is a short-lived token for the team API, sent in the Authorization header as a bearer
// token. [TeamsService.Credentials] passes such tokens to a [Client].
type AccessToken struct {
	AccessToken Secret `json:"access_token"` // the token itself
	// ExpiresIn is the lifetime of the token in seconds, usually ten minutes. The unit is an
	// inference.
	ExpiresIn int64 `json:"expires_in"`

	RawObject `json:"-"`
}

func (v *AccessToken) verify() error {
	if v.AccessToken == "" {
		return &unreadable{reason: "it has no readable access token"}
	}
	return nil
}

// TeamConflictError reports that a team could not be created or updated because its integration
// team ID belongs to another team. It wraps the *[APIError]. Its text does not have the ID of the
// team; its JSON does.
type TeamConflictError struct {
	TeamID uuid.UUID // ID of the team that the integration team ID belongs to

	api *APIError
}

// Error returns the message of the *[APIError].
func (e *TeamConflictError) Error() string { return orZero(e).api.orReason(teamExists) }

// Unwrap returns the *[APIError].
func (e *TeamConflictError) Unwrap() error { return orZero(e).api.orNil() }

// Format prints the result of [TeamConflictError.Error] under every verb.
func (e TeamConflictError) Format(s fmt.State, _ rune) { fmt.Fprint(s, e.Error()) }

// teamConflict returns a *TeamConflictError if the body of e has the existing team's ID.
func teamConflict(e *APIError) error {
	if e.StatusCode != http.StatusConflict {
		return e
	}
	for _, c := range e.conflicts() {
		if c.TeamID != uuid.Nil {
			e.reason = teamExists
			return &TeamConflictError{c.TeamID, e}
		}
	}
	return e
}

// List returns one page of the teams: GET /v1/org/{org_id}/team.
func (s *TeamsService) List(ctx context.Context, params ListTeamsParams, opts ...CallOption) (*TeamPage, error) {
	return call(ctx, coreOf(s), new(TeamPage), request{op: opListTeams, query: params}, opts)
}

// All returns an iterator over the teams, page by page, starting at params.NextCursor. It behaves
// like [LabTestsService.All].
func (s *TeamsService) All(ctx context.Context, params ListTeamsParams, opts ...CallOption) iter.Seq2[*Team, error] {
	id := func(t *Team) uuid.UUID { return t.ID }
	return cursorPages(ctx, opts, opListTeams, params.NextCursor, id, func(ctx context.Context, cursor string, opts []CallOption) (cursorPage, error) {
		params := params
		params.NextCursor = cursor
		return s.List(ctx, params, opts...)
	})
}

// Create creates a team: POST /v1/org/{org_id}/team. If the integration team ID belongs to another
// team, the error is a *[TeamConflictError] with that team's ID. With a Team Management Key the
// error is [ErrForbidden].
func (s *TeamsService) Create(ctx context.Context, body CreateTeamBody, opts ...CallOption) (*Team, error) {
	return call(ctx, coreOf(s), new(Team), request{op: opCreateTeam, body: &body, refine: teamConflict}, opts)
}

// Get returns one team: GET /v1/org/{org_id}/team/{team_id}. The error for an unknown team is
// [ErrNotFound].
func (s *TeamsService) Get(ctx context.Context, teamID uuid.UUID, params GetTeamParams, opts ...CallOption) (*Team, error) {
	return call(ctx, coreOf(s), new(Team), request{op: opGetTeam, ids: []string{teamID.String()}, query: params}, opts)
}

// Update changes a team: PATCH /v1/org/{org_id}/team/{team_id}. If the new integration team ID
// belongs to another team, the error is a *[TeamConflictError] with that team's ID.
func (s *TeamsService) Update(ctx context.Context, teamID uuid.UUID, body UpdateTeamBody, opts ...CallOption) (*Team, error) {
	r := request{op: opUpdateTeam, ids: []string{teamID.String()}, body: &body, refine: teamConflict}
	return call(ctx, coreOf(s), new(Team), r, opts)
}

// UpdateBrandInformation changes the brand information of a team in one environment, using
// [TeamsService.Update]. The fields that body omits are unchanged. To read the brand information
// back, call [TeamsService.Get] with that environment included.
func (s *TeamsService) UpdateBrandInformation(ctx context.Context, teamID uuid.UUID, env TeamEnvironment, body UpdateBrandInformationBody, opts ...CallOption) (*Team, error) {
	settings := Value(UpdateTeamSettings{BrandInformation: Value(body)})
	var update UpdateTeamBody
	switch env {
	case TeamEnvironmentSandbox:
		update.Sandbox = settings
	case TeamEnvironmentProduction:
		update.Production = settings
	default: // also with WithoutValidation: the body has no field for another environment
		return nil, withOp(opUpdateTeam, invalid("must be production or sandbox", "environment"))
	}
	return s.Update(ctx, teamID, update, opts...)
}

// Delete deletes a team: DELETE /v1/org/{org_id}/team/{team_id}. With a Team Management Key the
// error is [ErrForbidden]. The response is not documented and not decoded: use [WithResponse] to
// read it.
func (s *TeamsService) Delete(ctx context.Context, teamID uuid.UUID, opts ...CallOption) error {
	return callEmpty(ctx, coreOf(s), request{op: opDeleteTeam, ids: []string{teamID.String()}}, opts)
}

// Resolve returns the team with an integration team ID: POST /v1/org/{org_id}/resolve_team. The
// error for an unknown ID is [ErrNotFound]. On some deployments the returned team has only its ID.
func (s *TeamsService) Resolve(ctx context.Context, integrationTeamID string, opts ...CallOption) (*Team, error) {
	r := request{op: opResolveTeam, body: &resolveTeamBody{integrationTeamID}}
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

	RawObject `json:"-"`
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

// CreateAccessToken creates a short-lived token with the permissions of a team API key:
// POST /v1/org/{org_id}/team/{team_id}/create_api_access_token. The operation is rate limited. One
// page of the public API reference has a path that ends in create_access_token: see [WithPath].
func (s *TeamsService) CreateAccessToken(ctx context.Context, teamID uuid.UUID, env TeamEnvironment, opts ...CallOption) (*AccessToken, error) {
	r := request{op: opCreateAccessToken, ids: []string{teamID.String()}, body: &createAccessTokenBody{env}}
	return call(ctx, coreOf(s), new(AccessToken), r, opts)
}

// Credentials returns a source of credentials for [WithCredentials]: a [Client] with it uses tokens
// of [TeamsService.CreateAccessToken], each created with opts when the previous one is about to
// expire. If that fails, the error of the Client wraps that of the [ManagementClient]: see
// [errors.As]. [WithLogger] logs it only if it is an option of the ManagementClient too.
func (s *TeamsService) Credentials(teamID uuid.UUID, env TeamEnvironment, opts ...CallOption) func(context.Context) (Credentials, error) {
	return func(ctx context.Context) (Credentials, error) {
		now := time.Now()
		token, err := s.CreateAccessToken(ctx, teamID, env, opts...)
		if err != nil {
			return Credentials{}, err
		}
		credentials := Credentials{Token: token.AccessToken}
		if seconds := token.ExpiresIn; seconds > 0 && seconds < maxTokenLifetime {
			credentials.Expires = now.Add(time.Duration(seconds) * time.Second)
		}
		return credentials, nil
	}
}

// maxTokenLifetime is the longest plausible lifetime of a token in seconds, a year. Tokens whose
// lifetime is longer, or not known, are used until the service rejects them.
const maxTokenLifetime = 365 * 24 * 60 * 60
