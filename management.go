package labhealth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/jsonread"
	"github.com/labhealth/labhealth-go/internal/transport"
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

// managementOperations are those the methods call, as WithPath names them. The team API has a table of its own.
var managementOperations = []string{
	opGetOrganisation, opUpdateOrganisation,
	opListTeams, opCreateTeam, opGetTeam, opUpdateTeam, opDeleteTeam, opResolveTeam, opCreateAccessToken,
	opListManagementKeys, opCreateManagementKey, opUpdateManagementKey, opDeleteManagementKey,
	opListWebhooks, opCreateWebhook, opGetWebhook, opUpdateWebhook, opDeleteWebhook,
	opGetWebhookHeaders, opReplaceWebhookHeaders, opGetWebhookSecret, opRotateWebhookSecret,
	opListTeamAPIKeys, opCreateTeamAPIKey, opDeleteTeamAPIKeys,
	opListCustomCredentials, opUpsertCustomCredentials, opDeleteCustomCredentials, opPrepareCustomCredentials,
	opListPipelines, opUpsertPipelines, opDeletePipelines,
}

// CloseIdleConnections closes the idle connections of the client's transport. Those of a transport
// given with [WithHTTPClient] are left alone, but not those of the client's copy of it.
func (c *ManagementClient) CloseIdleConnections() { c.core.http.CloseIdleConnections() }

// Do calls any endpoint of the management API. It works as [Client.Do] does; path is the whole path, such as
// "/v1/org/" + orgID.String() + "/team".
func (c *ManagementClient) Do(ctx context.Context, method, path string, body, out any, opts ...CallOption) error {
	return c.core.doAny(ctx, method, path, body, out, opts)
}

// organisation is what the services of a management client share.
type organisation struct {
	core *core
	id   string
}

// request is a call of op, with the values of the path's parameters after the organisation's.
func (o *organisation) request(op string, params ...string) request {
	return request{op: op, params: append([]string{o.id}, params...)}
}

// done sends r, whose answer has nothing to read. What a proxy might have sent is an error all the same.
func (o *organisation) done(ctx context.Context, r request, opts []CallOption) error {
	r.read = func(a *transport.Answer) error {
		if len(bytes.TrimSpace(a.Body)) == 0 {
			return nil
		}
		if err := readable(a); err != nil {
			return err
		}
		if err := jsonread.Valid(a.Body); err != nil {
			return unreadableBy(a, err)
		}
		return nil
	}
	return o.core.do(ctx, r, opts)
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

// UpdateOrganisationBody is the request of [OrganisationService.Update].
type UpdateOrganisationBody struct {
	Name string `json:"name"` // what people call it
}

// Get reads the organisation: GET /v1/org/{org_id}.
func (s *OrganisationService) Get(ctx context.Context, opts ...CallOption) (*Organisation, error) {
	return call(ctx, s.org.core, s.org.request(opGetOrganisation), hasOrganisation, opts)
}

// Update renames the organisation: PATCH /v1/org/{org_id}.
func (s *OrganisationService) Update(ctx context.Context, body UpdateOrganisationBody, opts ...CallOption) (*Organisation, error) {
	var c checker
	c.text("name", body.Name)
	r := s.org.request(opUpdateOrganisation)
	r.value, r.problems = &body, c.in("body")
	return call(ctx, s.org.core, r, hasOrganisation, opts)
}

// hasOrganisation refuses an answer that shows no organisation.
func hasOrganisation(o *Organisation) string {
	return unlessID(o.ID, "it has no readable organisation id")
}

func unlessID(id uuid.UUID, problem string) string {
	if id == uuid.Nil {
		return problem
	}
	return ""
}

// BatchDeletion says what became of each of several things that were to be deleted: the response of
// [TeamAPIKeysService.Delete] and [CustomCredentialsService.Delete].
type BatchDeletion struct {
	Success  []uuid.UUID `json:"success"`   // deleted
	Failure  []uuid.UUID `json:"failure"`   // not deleted
	NotFound []uuid.UUID `json:"not_found"` // not there

	RawObject `json:"-"`
}

// batch is a call of op with one parameter of the query for each ID.
func (o *organisation) batch(op, name string, env TeamEnvironment, region Region, ids []uuid.UUID) request {
	var c checker
	if len(ids) == 0 {
		c.add(name, "missing", "is required: at least one id")
	}
	q := newQuery()
	for i, id := range ids {
		c.at(name, func() { c.id(fmt.Sprint(i), id) })
		q.Add(name, id.String())
	}
	r := o.request(op, string(env), string(region))
	r.query, r.problems = q.Values, c.in("query")
	return r
}

func (o *organisation) deleteBatch(ctx context.Context, op, name string, env TeamEnvironment, region Region, ids []uuid.UUID, opts []CallOption) (*BatchDeletion, error) {
	return call[BatchDeletion](ctx, o.core, o.batch(op, name, env, region, ids), nil, opts)
}
