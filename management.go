package labhealth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
)

// ManagementClient calls the management API: the organisation, its teams, their webhooks, keys, custom credentials and ETL
// pipelines. It is a client of its own, because its keys must never meet those of the team API. It is safe for concurrent use
// and does not change once it is made. Make one with [NewManagementClient].
//
// The interface specification says what can be managed, how requests are authenticated and what the
// two kinds of keys may do. Source of all else, in its methods and their types: public API
// reference only. A deployment may differ: see [WithPath], [WithQuery] and [ManagementClient.Do].
// Keys, signing secrets, tokens and connection strings are [Secret].
//
//	GET    /v1/org/{org_id}                                                              ManagementClient.Organisation.Get
//	PATCH  /v1/org/{org_id}                                                              ManagementClient.Organisation.Update
//	GET    /v1/org/{org_id}/team                                                         ManagementClient.Teams.List, All
//	POST   /v1/org/{org_id}/team                                                         ManagementClient.Teams.Create
//	GET    /v1/org/{org_id}/team/{team_id}                                               ManagementClient.Teams.Get
//	PATCH  /v1/org/{org_id}/team/{team_id}                                               ManagementClient.Teams.Update, SetBrandInformation
//	DELETE /v1/org/{org_id}/team/{team_id}                                               ManagementClient.Teams.Delete
//	POST   /v1/org/{org_id}/resolve_team                                                 ManagementClient.Teams.Resolve
//	POST   /v1/org/{org_id}/team/{team_id}/create_api_access_token                       ManagementClient.Teams.CreateAccessToken
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
//	any other                                                                            ManagementClient.Do
type ManagementClient struct {
	// Organisation reads and renames the organisation.
	Organisation *OrganisationService
	// Teams lists, makes, changes and deletes the teams of the organisation.
	Teams *TeamsService
	// Keys lists, makes, changes and deletes management keys.
	Keys *ManagementKeysService
	// Webhooks manages where the events of a team are delivered, and how they are signed.
	Webhooks *WebhooksService
	// TeamAPIKeys lists, makes and deletes the keys of the team API.
	TeamAPIKeys *TeamAPIKeysService
	// CustomCredentials manages a team's own credentials at providers.
	CustomCredentials *CustomCredentialsService
	// Pipelines manages where the data of a team is pushed, beside webhooks.
	Pipelines *PipelinesService

	core *core
}

// NewManagementClient returns a client for the management API, which is available on the Scale plan. It has an address of its
// own, which is not published: one of [WithBaseURL] and [WithEnvironment] is required. All options of [NewClient] work as there.
//
// key is a management key, sent as X-Management-Key with every request and to nobody else. (The service still accepts the older
// header X-Service-Org-Key, which is deprecated; this client never sends it.) There are two kinds:
//
//   - An Org Management Key has full control of the organisation. It can create and delete teams.
//   - A Team Management Key has control of one or more teams. It cannot reach what belongs to the organisation: it can neither
//     create nor delete teams. One that is bound to two or more teams can only be made with [ManagementKeysService.Create], not
//     in the web dashboard.
//
// A management key is no team API key: the team API refuses it. But it can make team API keys, with
// [TeamAPIKeysService.Create].
func NewManagementClient(orgID uuid.UUID, key string, opts ...Option) (*ManagementClient, error) {
	if orgID == uuid.Nil {
		return nil, errors.New("labhealth: the organisation's id must not be the nil UUID")
	}
	c, err := newCore("X-Management-Key", key, managementOperations, opts)
	if err != nil {
		return nil, err
	}
	o := &organisation{c, orgID.String()}
	return &ManagementClient{
		Organisation: &OrganisationService{o}, Teams: &TeamsService{o}, Keys: &ManagementKeysService{o}, Webhooks: &WebhooksService{o},
		TeamAPIKeys: &TeamAPIKeysService{o}, CustomCredentials: &CustomCredentialsService{o}, Pipelines: &PipelinesService{o}, core: c,
	}, nil
}

// CloseIdleConnections closes the idle connections of the client's transport. Those of a transport
// given with [WithHTTPClient] are left alone, but not those of the client's copy of it.
func (c *ManagementClient) CloseIdleConnections() { c.core.http.CloseIdleConnections() }

// organisation is what the services of a management client share.
type organisation struct {
	core *core
	id   string
}

// request returns a call of op, with the values of the path's parameters after the organisation's.
func (o *organisation) request(op string, ids ...string) request {
	return request{op: op, ids: append([]string{o.id}, ids...)}
}

// TeamEnvironment is one of the two environments that every team has. Values other than the constants occur.
type TeamEnvironment string

// The environments of a team.
const (
	TeamEnvironmentProduction TeamEnvironment = "production"
	TeamEnvironmentSandbox    TeamEnvironment = "sandbox"
)

// Region is where the data of a team is. Values other than the constants occur.
type Region string

// The regions.
const (
	RegionUS Region = "us"
	RegionEU Region = "eu"
)

// Secret is text that nobody should see by accident: a key, a signing secret, a token, a connection string. Printed under any
// verb of fmt, and as an attribute of slog, it is "[redacted]". string(s) gives the text, and encoding to JSON is complete.
type Secret string

// Format prints "[redacted]".
func (Secret) Format(s fmt.State, _ rune) { fmt.Fprint(s, "[redacted]") }

// LogValue returns "[redacted]".
func (Secret) LogValue() slog.Value { return slog.StringValue("[redacted]") }

const (
	opGetOrganisation    = "GET /v1/org/{org_id}"
	opUpdateOrganisation = "PATCH /v1/org/{org_id}"
)

// OrganisationService provides access to the organisation that the management key belongs to. A
// Team Management Key cannot reach it. Source of its operations: public API reference only.
type OrganisationService struct{ org *organisation }

// Organisation is who owns the teams: the answer of [OrganisationService.Get] and [OrganisationService.Update].
type Organisation struct {
	ID        uuid.UUID  `json:"id"`                  // the organisation's id
	Name      string     `json:"name"`                // what people call it
	ExpiresAt *time.Time `json:"expires_at,omitzero"` // when it ends, nil if it does not

	RawObject `json:"-"`
}

func (o *Organisation) verify() error { return requireID(o.ID, "organisation") }

// UpdateOrganisationBody is the request of [OrganisationService.Update].
type UpdateOrganisationBody struct {
	Name string `json:"name"` // what people call it
}

func (b *UpdateOrganisationBody) validate(v *validator) {
	v.required("name", b.Name)
}

// Get reads the organisation: GET /v1/org/{org_id}.
func (s *OrganisationService) Get(ctx context.Context, opts ...CallOption) (*Organisation, error) {
	return call[Organisation](ctx, s.org.core, s.org.request(opGetOrganisation), opts)
}

// Update renames the organisation: PATCH /v1/org/{org_id}.
func (s *OrganisationService) Update(ctx context.Context, body UpdateOrganisationBody, opts ...CallOption) (*Organisation, error) {
	r := s.org.request(opUpdateOrganisation)
	r.body = &body
	return call[Organisation](ctx, s.org.core, r, opts)
}

// BatchDeletion says what became of each of several things that were to be deleted: the response of
// [TeamAPIKeysService.Delete] and [CustomCredentialsService.Delete].
type BatchDeletion struct {
	Success  []uuid.UUID `json:"success"`   // deleted
	Failure  []uuid.UUID `json:"failure"`   // not deleted
	NotFound []uuid.UUID `json:"not_found"` // not there

	RawObject `json:"-"`
}

// batchParams selects resources by their IDs, each in a query parameter. An empty list is invalid,
// because it may mean all of them.
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

// batch returns a call of op for the resources in ids.
func (o *organisation) batch(op, name string, env TeamEnvironment, region Region, ids []uuid.UUID) request {
	r := o.request(op, string(env), string(region))
	r.query = batchParams{name: name, ids: ids}
	return r
}
