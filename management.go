package labhealth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
)

// ManagementClient calls the management API: the organisation, its teams, and their webhooks, keys,
// lab accounts, custom credentials, data pull preferences and ETL pipelines. It is separate from
// [Client] because each API has its own keys, and a key must never reach the other API. A
// ManagementClient is immutable and safe for concurrent use. Create one with [NewManagementClient].
//
// The interface specification lists what can be managed, how requests are authenticated and what
// the two kinds of keys permit. Source of everything else in the methods and their types: public
// API reference only. A deployment may differ: see [WithPath], [WithQuery] and
// [ManagementClient.Do]. Keys, signing secrets, tokens and connection strings are of type [Secret].
//
//	GET    /v1/org/{org_id}                                                              ManagementClient.Organisation.Get
//	PATCH  /v1/org/{org_id}                                                              ManagementClient.Organisation.Update
//	GET    /v1/org/{org_id}/team                                                         ManagementClient.Teams.List, All
//	POST   /v1/org/{org_id}/team                                                         ManagementClient.Teams.Create
//	GET    /v1/org/{org_id}/team/{team_id}                                               ManagementClient.Teams.Get
//	PATCH  /v1/org/{org_id}/team/{team_id}                                               ManagementClient.Teams.Update, UpdateBrandInformation
//	DELETE /v1/org/{org_id}/team/{team_id}                                               ManagementClient.Teams.Delete
//	POST   /v1/org/{org_id}/resolve_team                                                 ManagementClient.Teams.Resolve
//	POST   /v1/org/{org_id}/team/{team_id}/create_api_access_token                       ManagementClient.Teams.CreateAccessToken, Credentials
//	GET    /v1/org/{org_id}/team/{team_id}/scope_requirements                            ManagementClient.Teams.ScopeRequirements
//	POST   /v1/org/{org_id}/team/{team_id}/scope_requirements                            ManagementClient.Teams.UpsertScopeRequirements
//	GET    /v1/org/{org_id}/management_key                                               ManagementClient.Keys.List, All
//	POST   /v1/org/{org_id}/management_key                                               ManagementClient.Keys.Create
//	PATCH  /v1/org/{org_id}/management_key/{key_id}                                      ManagementClient.Keys.Update
//	DELETE /v1/org/{org_id}/management_key/{key_id}                                      ManagementClient.Keys.Delete
//	GET    /v1/org/{org_id}/team/{team_id}/{environment}/webhook                         ManagementClient.Webhooks.List, All
//	POST   /v1/org/{org_id}/team/{team_id}/{environment}/webhook                         ManagementClient.Webhooks.Create
//	GET    /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}            ManagementClient.Webhooks.Get
//	PATCH  /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}            ManagementClient.Webhooks.Update
//	DELETE /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}            ManagementClient.Webhooks.Delete
//	GET    /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}/headers    ManagementClient.Webhooks.Headers
//	PUT    /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}/headers    ManagementClient.Webhooks.ReplaceHeaders
//	GET    /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}/secret     ManagementClient.Webhooks.Secret
//	POST   /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}/secret/rotate   ManagementClient.Webhooks.RotateSecret
//	GET    /v1/org/{org_id}/team/{team_id}/{environment}/event_delivery_metric           ManagementClient.Webhooks.EventDeliveryMetric
//	GET    /v1/org/{org_id}/lab_account/{env}/{region}                                   ManagementClient.LabAccounts.List
//	PATCH  /v1/org/{org_id}/lab_account/{env}/{region}/{account_id}                      ManagementClient.LabAccounts.UpdateTeamIDAllowlist
//	GET    /v1/org/{org_id}/team_api_keys/{env}/{region}                                 ManagementClient.TeamAPIKeys.List, All
//	POST   /v1/org/{org_id}/team_api_keys/{env}/{region}                                 ManagementClient.TeamAPIKeys.Create
//	DELETE /v1/org/{org_id}/team_api_keys/{env}/{region}                                 ManagementClient.TeamAPIKeys.Delete
//	GET    /v1/org/{org_id}/team_custom_credentials/{env}/{region}                       ManagementClient.CustomCredentials.List, All
//	POST   /v1/org/{org_id}/team_custom_credentials/{env}/{region}                       ManagementClient.CustomCredentials.Upsert
//	DELETE /v1/org/{org_id}/team_custom_credentials/{env}/{region}                       ManagementClient.CustomCredentials.Delete
//	POST   /v1/org/{org_id}/prepare_team_custom_credentials/{env}/{region}               ManagementClient.CustomCredentials.Prepare
//	GET    /v1/org/{org_id}/team_etl_pipelines/{env}/{region}                            ManagementClient.Pipelines.List, All
//	POST   /v1/org/{org_id}/team_etl_pipelines/{env}/{region}                            ManagementClient.Pipelines.Upsert
//	DELETE /v1/org/{org_id}/team_etl_pipelines/{env}/{region}                            ManagementClient.Pipelines.Delete
//	GET    /v1/org/{org_id}/team_data_pull_preferences/{env}/{region}                    ManagementClient.DataPullPreferences.List, All
//	POST   /v1/org/{org_id}/team_data_pull_preferences/{env}/{region}                    ManagementClient.DataPullPreferences.Upsert
//	DELETE /v1/org/{org_id}/team_data_pull_preferences/{env}/{region}                    ManagementClient.DataPullPreferences.Delete
//	any other                                                                            ManagementClient.Do
type ManagementClient struct {
	// Organisation reads and renames the organisation.
	Organisation *OrganisationService
	// Teams lists, creates, updates and deletes the teams of the organisation.
	Teams *TeamsService
	// Keys lists, creates, updates and deletes management keys.
	Keys *ManagementKeysService
	// Webhooks manages the webhooks of a team, their headers and their signing secrets.
	Webhooks *WebhooksService
	// TeamAPIKeys lists, creates and deletes the keys of the team API.
	TeamAPIKeys *TeamAPIKeysService
	// CustomCredentials manages the teams' own credentials for providers.
	CustomCredentials *CustomCredentialsService
	// Pipelines manages the ETL pipelines of the teams, which deliver events in addition to
	// webhooks.
	Pipelines *PipelinesService
	// DataPullPreferences manages how many days of history the teams pull from providers.
	DataPullPreferences *DataPullPreferencesService
	// LabAccounts lists the organisation's accounts at labs and selects the teams that use them.
	LabAccounts *LabAccountsService

	core *core
}

// NewManagementClient returns a client for the management API, which is available on the Scale
// plan. It has one base URL for all environments, which is not published: pass [WithBaseURL]. All
// options of [NewClient] are accepted.
//
// Every request carries key, a management key, in the X-Management-Key header; the key is sent to
// the service only. With [WithCredentials], key must be empty. The service also accepts the
// deprecated header X-Service-Org-Key: see [WithServiceOrgKey]. There are two kinds of keys:
//
//   - An Org Management Key has full control of the organisation, including creating and deleting
//     teams.
//   - A Team Management Key has control of one or more teams. It cannot access the organisation
//     itself, and cannot create or delete teams. A key for two or more teams can only be created
//     with [ManagementKeysService.Create], not in the web dashboard.
//
// The team API rejects management keys. Create a key for it with [TeamAPIKeysService.Create].
func NewManagementClient(orgID uuid.UUID, key string, opts ...Option) (*ManagementClient, error) {
	if orgID == uuid.Nil {
		return nil, &setupError{errors.New("the organisation ID must not be the nil UUID")}
	}
	c, err := newCore(managementKeyHeader, key, managementOperations, opts)
	if err != nil {
		return nil, err
	}
	c.orgID = orgID.String()
	return &ManagementClient{
		Organisation:        &OrganisationService{c},
		Teams:               &TeamsService{c},
		Keys:                &ManagementKeysService{c},
		Webhooks:            &WebhooksService{c},
		TeamAPIKeys:         &TeamAPIKeysService{c},
		CustomCredentials:   &CustomCredentialsService{c},
		Pipelines:           &PipelinesService{c},
		DataPullPreferences: &DataPullPreferencesService{c},
		LabAccounts:         &LabAccountsService{c},
		core:                c,
	}, nil
}

// CloseIdleConnections closes the idle connections of the client's own transport, or of its copy of
// an http.Transport given with [WithHTTPClient]. The given transport itself is not affected.
func (c *ManagementClient) CloseIdleConnections() { c.shared().closeIdleConnections() }

func (c *ManagementClient) shared() *core {
	if c == nil {
		return nil
	}
	return c.core
}

// TeamEnvironment is one of the two environments of a team. [Environment] explains how it relates
// to the deployments of the team API. Values other than the constants occur.
type TeamEnvironment string

// Values of [TeamEnvironment].
const (
	TeamEnvironmentProduction TeamEnvironment = "production"
	TeamEnvironmentSandbox    TeamEnvironment = "sandbox"
)

// Region is the region that stores the data of a team. [Environment] explains how it relates to the
// deployments of the team API. Values other than the constants occur.
type Region string

// Values of [Region].
const (
	RegionUS Region = "us"
	RegionEU Region = "eu"
)

// Secret is a key, a signing secret, a token or a connection string. Under every verb of package
// fmt, and as an attribute of log/slog, it prints as "[redacted]". Use string(s) to get the value;
// its JSON encoding is not redacted.
type Secret string

// Format prints "[redacted]".
func (Secret) Format(s fmt.State, _ rune) { fmt.Fprint(s, "[redacted]") }

// LogValue returns "[redacted]".
func (Secret) LogValue() slog.Value { return slog.StringValue("[redacted]") }

const (
	opGetOrganisation    = "GET /v1/org/{org_id}"
	opUpdateOrganisation = "PATCH /v1/org/{org_id}"
)

// OrganisationService provides access to the organisation that owns the management key. A Team
// Management Key has no access to it. Source of its operations: public API reference only.
type OrganisationService struct{ core *core }

// Organisation is the owner of the teams: the response of [OrganisationService.Get] and
// [OrganisationService.Update].
type Organisation struct {
	ID        uuid.UUID  `json:"id"`         // ID of the organisation
	Name      string     `json:"name"`       // display name
	ExpiresAt *time.Time `json:"expires_at"` // expiry time, nil if it does not expire

	RawObject `json:"-"`
}

func (o *Organisation) verify() error { return requireID(o.ID, "organisation") }

// UpdateOrganisationBody is the request of [OrganisationService.Update].
type UpdateOrganisationBody struct {
	Name string `json:"name"` // display name, with the characters and the length of a team's
}

func (b *UpdateOrganisationBody) validate(v *validator) {
	v.required("name", b.Name)
	v.displayName("name", b.Name)
}

// Get returns the organisation: GET /v1/org/{org_id}.
func (s *OrganisationService) Get(ctx context.Context, opts ...CallOption) (*Organisation, error) {
	return call(ctx, coreOf(s), new(Organisation), request{op: opGetOrganisation}, opts)
}

// Update renames the organisation: PATCH /v1/org/{org_id}.
func (s *OrganisationService) Update(ctx context.Context, body UpdateOrganisationBody, opts ...CallOption) (*Organisation, error) {
	return call(ctx, coreOf(s), new(Organisation), request{op: opUpdateOrganisation, body: &body}, opts)
}

// BatchDeletion reports the result for each resource of a batch: the response of
// [TeamAPIKeysService.Delete] and [CustomCredentialsService.Delete].
type BatchDeletion struct {
	Success  []uuid.UUID `json:"success"`   // IDs of deleted resources
	Failure  []uuid.UUID `json:"failure"`   // IDs of resources that could not be deleted
	NotFound []uuid.UUID `json:"not_found"` // IDs that do not exist

	RawObject `json:"-"`
}

// batchParams selects resources by their IDs, each in a query parameter. An empty list is invalid,
// because it may mean all resources.
type batchParams struct {
	name string // of the parameter
	ids  []uuid.UUID
}

func (p batchParams) validate(v *validator) { v.requiredIDs(p.name, "id", p.ids) }

func (p batchParams) query() queryValues {
	q := newQuery()
	q.addIDs(p.name, p.ids)
	return q
}

// teamQuery encodes the parameters of a list that can be restricted to one team.
func teamQuery(teamID uuid.UUID, cursor string) queryValues {
	q := newQuery()
	q.setID("team_id", teamID)
	q.setString("next_cursor", cursor)
	return q
}
