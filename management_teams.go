package labhealth

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/http"
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

// TeamsService provides access to the teams of the organisation. Only an Org Management Key can create
// and delete them. Source of its operations: public API reference only.
type TeamsService struct{ org *organisation }

// Team is a team of the organisation: users, orders and events belong to one.
type Team struct {
	ID                uuid.UUID         `json:"id"`                           // the team's id
	Name              string            `json:"name"`                         // what people call it
	CreatedOn         time.Time         `json:"created_on"`                   // when it was created
	Region            Region            `json:"region"`                       // where its data is
	IntegrationTeamID *string           `json:"integration_team_id,omitzero"` // the application's own reference for the team, nil if it has none
	Environments      []TeamEnvironment `json:"environments"`                 // the environments it has
	Sandbox           *TeamSettings     `json:"sandbox,omitzero"`             // nil if it was not asked for (see [GetTeamParams])
	Production        *TeamSettings     `json:"production,omitzero"`          // nil if it was not asked for (see [GetTeamParams])

	RawObject `json:"-"`
}

func (t *Team) verify() error { return requireID(t.ID, "team") }

// TeamSettings is how a team works in one environment.
type TeamSettings struct {
	// LabTestsPatientSMSCommunicationEnabled says whether patients get text messages; true by default.
	LabTestsPatientSMSCommunicationEnabled bool `json:"lab_tests_patient_sms_communication_enabled" default:"true"`
	// LabTestsPatientEmailCommunicationEnabled says whether patients get mail; true by default.
	LabTestsPatientEmailCommunicationEnabled bool `json:"lab_tests_patient_email_communication_enabled" default:"true"`
	// CriticalResultNotificationEmail is who is told of critical results, nil for nobody.
	CriticalResultNotificationEmail *string `json:"critical_result_notification_email,omitzero"`
	// BrandInformation is what patients see of the team, nil if nothing is set.
	BrandInformation *BrandInformation `json:"brand_information,omitzero"`
	// LogoURL is the address of a picture, nil if there is none.
	LogoURL *string `json:"logo_url,omitzero"`
	// RejectDuplicateConnection says whether a source that one user has connected is refused to another; false by default.
	RejectDuplicateConnection bool `json:"reject_duplicate_connection" default:"false"`
	// SDKPerDeviceActivityTimeseries is false by default; no more is published of it.
	SDKPerDeviceActivityTimeseries bool `json:"sdk_per_device_activity_timeseries" default:"false"`
	// PartialWebhooksEnabled says whether events come for partial results too; false by default.
	PartialWebhooksEnabled bool `json:"partial_webhooks_enabled" default:"false"`
	// MinorOrderingEnabled says whether minors can be patients; false by default.
	MinorOrderingEnabled bool `json:"minor_ordering_enabled" default:"false"`

	RawObject `json:"-"`
}

// BrandInformation is what patients see of the team. It is read as part of [TeamSettings] and set with
// [TeamsService.SetBrandInformation].
type BrandInformation struct {
	CompanyName    string  `json:"company_name"`             // the company's name
	CompanyWebsite *string `json:"company_website,omitzero"` // its website; nil or empty for none
	SupportEmail   *string `json:"support_email,omitzero"`   // where patients can write to; nil for none
	SupportContact *string `json:"support_contact,omitzero"` // how else patients get help; nil or empty if there is no other way
	CompanyAddress *string `json:"company_address,omitzero"` // the postal address; nil or empty for none
	BrandColor     *string `json:"brand_color,omitzero"`     // a color; nil or empty for none

	RawObject `json:"-"`
}

// ListTeamsParams choose teams. Zero members are left out.
type ListTeamsParams struct {
	TeamID      uuid.UUID // one team
	Region      []Region  // teams in one of these regions
	SearchQuery string    // free text
	NextCursor  string    // where the page begins: NextCursor of the page before; empty for the first
}

func (p ListTeamsParams) query() queryValues {
	q := newQuery()
	q.setID("team_id", p.TeamID)
	addStrings(q, "region", p.Region)
	q.setString("search_query", p.SearchQuery)
	q.setString("next_cursor", p.NextCursor)
	return q
}

// TeamPage is one page of the list of teams: the answer of [TeamsService.List].
type TeamPage struct {
	Teams      []Team  `json:"teams" jsonread:"own"` // the teams of the page
	NextCursor *string `json:"next_cursor"`          // where the next page begins; nil at the end of the list

	RawObject `json:"-"`
}

// GetTeamParams say what is read of a team beside its name.
type GetTeamParams struct {
	IncludeEnvironment []TeamEnvironment // the environments whose settings are read
}

func (p GetTeamParams) query() queryValues {
	q := newQuery()
	addStrings(q, "include_environment", p.IncludeEnvironment)
	return q
}

// CreateTeamBody is the request of [TeamsService.Create]. The settings hold in both environments; those that are nil have the
// defaults of [TeamSettings], which says what they mean. The service refuses members it does not know.
type CreateTeamBody struct {
	Name              string  `json:"name"`                         // what people call it
	Region            Region  `json:"region"`                       // where its data is to be
	IntegrationTeamID *string `json:"integration_team_id,omitzero"` // the application's own reference for the team; no two may have the same

	LabTestsPatientSMSCommunicationEnabled   *bool             `json:"lab_tests_patient_sms_communication_enabled,omitzero"`   // whether patients get text messages; nil for true
	LabTestsPatientEmailCommunicationEnabled *bool             `json:"lab_tests_patient_email_communication_enabled,omitzero"` // whether patients get mail; nil for true
	CriticalResultNotificationEmail          *string           `json:"critical_result_notification_email,omitzero"`            // who is told of critical results; nil for nobody
	BrandInformation                         *BrandInformation `json:"brand_information,omitzero"`                             // what patients see of the team; nil for none
	LogoURL                                  *string           `json:"logo_url,omitzero"`                                      // the address of a picture; nil for none
	RejectDuplicateConnection                *bool             `json:"reject_duplicate_connection,omitzero"`                   // whether a source is refused to a second user; nil for false
	SDKPerDeviceActivityTimeseries           *bool             `json:"sdk_per_device_activity_timeseries,omitzero"`            // see [TeamSettings]; nil for false
	PartialWebhooksEnabled                   *bool             `json:"partial_webhooks_enabled,omitzero"`                      // whether events come for partial results too; nil for false
	MinorOrderingEnabled                     *bool             `json:"minor_ordering_enabled,omitzero"`                        // whether minors can be patients; nil for false
}

func (b *CreateTeamBody) validate(v *validator) {
	v.required("name", b.Name)
	v.required("region", string(b.Region))
}

// UpdateTeamBody is the request of [TeamsService.Update]. Omitted fields are unchanged.
type UpdateTeamBody struct {
	Name              *string             `json:"name,omitzero"`                // what people call it
	IntegrationTeamID Nullable[string]    `json:"integration_team_id,omitzero"` // the application's own reference; [Null] removes it
	Sandbox           *UpdateTeamSettings `json:"sandbox,omitzero"`             // settings of the sandbox
	Production        *UpdateTeamSettings `json:"production,omitzero"`          // settings of production
}

func (b *UpdateTeamBody) validate(v *validator) {
	v.within("sandbox", func() { b.Sandbox.validate(v) })
	v.within("production", func() { b.Production.validate(v) })
}

// UpdateTeamSettings changes [TeamSettings], which says what the members mean. Those that are left out stay as they are; [Null]
// removes what is set.
type UpdateTeamSettings struct {
	LabTestsPatientSMSCommunicationEnabled   *bool                      `json:"lab_tests_patient_sms_communication_enabled,omitzero"`   // whether patients get text messages
	LabTestsPatientEmailCommunicationEnabled *bool                      `json:"lab_tests_patient_email_communication_enabled,omitzero"` // whether patients get mail
	CriticalResultNotificationEmail          Nullable[string]           `json:"critical_result_notification_email,omitzero"`            // who is told of critical results; [Null] for nobody
	BrandInformation                         Nullable[BrandInformation] `json:"brand_information,omitzero"`                             // what patients see of the team; [Null] for none
	LogoURL                                  Nullable[string]           `json:"logo_url,omitzero"`                                      // the address of a picture; [Null] for none
	RejectDuplicateConnection                *bool                      `json:"reject_duplicate_connection,omitzero"`                   // whether a source is refused to a second user
	SDKPerDeviceActivityTimeseries           *bool                      `json:"sdk_per_device_activity_timeseries,omitzero"`            // see [TeamSettings]
	PartialWebhooksEnabled                   *bool                      `json:"partial_webhooks_enabled,omitzero"`                      // whether events come for partial results too
	MinorOrderingEnabled                     *bool                      `json:"minor_ordering_enabled,omitzero"`                        // whether minors can be patients
}

func (s *UpdateTeamSettings) validate(v *validator) {
	if s == nil {
		return
	}
	if brand, ok := s.BrandInformation.Get(); ok {
		v.within("brand_information", func() { v.required("company_name", brand.CompanyName) })
	}
}

// resolveTeamBody is the request of [TeamsService.Resolve].
type resolveTeamBody struct {
	IntegrationTeamID string `json:"integration_team_id"`
}

func (b *resolveTeamBody) validate(v *validator) {
	v.required("integration_team_id", b.IntegrationTeamID)
}

// createAccessTokenBody is the request of [TeamsService.CreateAccessToken].
type createAccessTokenBody struct {
	Env TeamEnvironment `json:"env"`
}

func (b *createAccessTokenBody) validate(v *validator) {
	v.required("env", string(b.Env))
}

// AccessToken opens the team API for a short time, in the header Authorization as a bearer token. [NewClient] takes keys, not
// tokens. It redacts itself when printed.
type AccessToken struct {
	Redacted[AccessToken]

	AccessToken Secret `json:"access_token"` // the token itself
	ExpiresIn   int64  `json:"expires_in"`   // how long it is valid, in seconds; ten minutes are usual; the unit is an inference

	RawObject `json:"-"`
}

func (v *AccessToken) verify() error {
	if v.AccessToken == "" {
		return &unreadable{reason: "it has no readable access token"}
	}
	return nil
}

// TeamConflictError is the answer to creating or changing a team so that it has the integration team id of another. It is also
// the *[APIError] that came.
type TeamConflictError struct {
	TeamID uuid.UUID // the team that has the id

	api *APIError
}

// Error is that of the *[APIError], and what it means.
func (e *TeamConflictError) Error() string {
	return e.api.Error() + ": the integration team id belongs to a team already"
}

// Unwrap returns the *[APIError].
func (e *TeamConflictError) Unwrap() error { return e.api }

// Format prints the error's text under every verb.
func (e TeamConflictError) Format(s fmt.State, _ rune) { fmt.Fprint(s, e.Error()) }

// teamConflict finds the existing team at the top of the body or inside detail.
func teamConflict(e *APIError) error {
	type conflict struct {
		TeamID uuid.UUID `json:"team_id"`
	}
	var top conflict
	var within struct {
		Detail conflict `json:"detail"`
	}
	if e.StatusCode != http.StatusConflict || jsonread.Unmarshal(e.body, &top) != nil || jsonread.Unmarshal(e.body, &within) != nil {
		return e
	}
	for _, id := range []uuid.UUID{within.Detail.TeamID, top.TeamID} {
		if id != uuid.Nil {
			return &TeamConflictError{id, e}
		}
	}
	return e
}

// List reads one page of the teams: GET /v1/org/{org_id}/team.
func (s *TeamsService) List(ctx context.Context, params ListTeamsParams, opts ...CallOption) (*TeamPage, error) {
	r := s.org.request(opListTeams)
	r.query = params
	return call[TeamPage](ctx, s.org.core, r, opts)
}

// All reads the teams page by page, from params.NextCursor on, with the guarantees of [LabTestsService.All].
func (s *TeamsService) All(ctx context.Context, params ListTeamsParams, opts ...CallOption) iter.Seq2[*Team, error] {
	id := func(t *Team) uuid.UUID { return t.ID }
	return cursorPages(opListTeams, params.NextCursor, id, func(cursor string) ([]Team, *string, error) {
		params := params
		params.NextCursor = cursor
		page, err := s.List(ctx, params, opts...)
		if err != nil {
			return nil, nil, err
		}
		return page.Teams, page.NextCursor, nil
	})
}

// Create makes a team: POST /v1/org/{org_id}/team. If its integration team id belongs to a team already, the error is a
// *[TeamConflictError] that says which one. A Team Management Key is [ErrForbidden].
func (s *TeamsService) Create(ctx context.Context, body CreateTeamBody, opts ...CallOption) (*Team, error) {
	r := s.org.request(opCreateTeam)
	r.body, r.refine = &body, teamConflict
	return call[Team](ctx, s.org.core, r, opts)
}

// Get reads one team: GET /v1/org/{org_id}/team/{team_id}. An unknown one is [ErrNotFound].
func (s *TeamsService) Get(ctx context.Context, teamID uuid.UUID, params GetTeamParams, opts ...CallOption) (*Team, error) {
	r := s.org.request(opGetTeam, teamID.String())
	r.query = params
	return call[Team](ctx, s.org.core, r, opts)
}

// Update changes a team: PATCH /v1/org/{org_id}/team/{team_id}. If its new integration team id belongs to another team, the error
// is a *[TeamConflictError] that says which one.
func (s *TeamsService) Update(ctx context.Context, teamID uuid.UUID, body UpdateTeamBody, opts ...CallOption) (*Team, error) {
	r := s.org.request(opUpdateTeam, teamID.String())
	r.refine = teamConflict
	for _, settings := range []**UpdateTeamSettings{&body.Sandbox, &body.Production} {
		if *settings == nil {
			continue
		}
		if brand, ok := (*settings).BrandInformation.Get(); ok {
			changed := **settings
			brand.RawObject = RawObject{} // of a brand that was read, send what is known of it
			changed.BrandInformation = Value(brand)
			*settings = &changed
		}
	}
	r.body = &body
	return call[Team](ctx, s.org.core, r, opts)
}

// SetBrandInformation changes what patients see of a team in one environment. See [TeamsService.Update]; reading it back takes
// [TeamsService.Get] with that environment included.
func (s *TeamsService) SetBrandInformation(ctx context.Context, teamID uuid.UUID, env TeamEnvironment, brand BrandInformation, opts ...CallOption) (*Team, error) {
	settings := &UpdateTeamSettings{BrandInformation: Value(brand)}
	var body UpdateTeamBody
	switch env {
	case TeamEnvironmentSandbox:
		body.Sandbox = settings
	case TeamEnvironmentProduction:
		body.Production = settings
	default: // also with WithoutValidation: there is no field for it
		return nil, withOp(opUpdateTeam, invalid("must be production or sandbox", "environment"))
	}
	return s.Update(ctx, teamID, body, opts...)
}

// Delete deletes a team: DELETE /v1/org/{org_id}/team/{team_id}. A Team Management Key is [ErrForbidden]. What the service answers
// is not published; [WithResponse] has it.
func (s *TeamsService) Delete(ctx context.Context, teamID uuid.UUID, opts ...CallOption) error {
	return callEmpty(ctx, s.org.core, s.org.request(opDeleteTeam, teamID.String()), opts)
}

// Resolve reads the team with an integration team id: POST /v1/org/{org_id}/resolve_team. An unknown id is [ErrNotFound]. A
// deployment may answer with the team's id and nothing else.
func (s *TeamsService) Resolve(ctx context.Context, integrationTeamID string, opts ...CallOption) (*Team, error) {
	r := s.org.request(opResolveTeam)
	r.body = &resolveTeamBody{integrationTeamID}
	resolved, err := call[resolvedTeam](ctx, s.org.core, r, opts)
	if err != nil {
		return nil, err
	}
	return resolved.team(), nil
}

// resolvedTeam is the response of [TeamsService.Resolve]: a team, one inside another object, or its ID
// alone.
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
	_ = jsonread.Unmarshal(r.RawJSON(), t) // it was read before
	t.ID = cmp.Or(t.ID, r.TeamID)
	return t
}

func (r *resolvedTeam) verify() error { return r.team().verify() }

// CreateAccessToken makes a token that opens the team API for a short time: POST
// /v1/org/{org_id}/team/{team_id}/create_api_access_token. It may do what a team API key may. One page of the public API reference has
// the path end in create_access_token: see [WithPath]. The operation is rate limited.
func (s *TeamsService) CreateAccessToken(ctx context.Context, teamID uuid.UUID, env TeamEnvironment, opts ...CallOption) (*AccessToken, error) {
	r := s.org.request(opCreateAccessToken, teamID.String())
	r.body = &createAccessTokenBody{env}
	return call[AccessToken](ctx, s.org.core, r, opts)
}
