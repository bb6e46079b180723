// Client, and the organisation.

package management

import (
	"context"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/bridge"
)

// Client calls the management API. It is immutable and safe for concurrent use. Create one with
// [NewClient].
type Client struct {
	// Organisation reads and renames the organisation.
	Organisation *OrganisationService
	// Teams lists, creates, updates and deletes the teams of the organisation.
	Teams *TeamsService
	// Keys lists, creates, updates and deletes management keys.
	Keys *KeysService
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

	core sender
}

// NewClient returns a client for the management API, which is available on the Scale plan. It has
// one base URL for all environments, which is not published: pass [labhealth.WithBaseURL]. All
// options of [labhealth.NewClient] are accepted.
//
// Every request carries key, a management key, in the X-Management-Key header; the key is sent to
// the service only. With [labhealth.WithCredentials], key must be empty. The service also accepts
// the deprecated header X-Service-Org-Key, which is never sent. There are two kinds of keys:
//
//   - An Org Management Key has full control of the organisation, including creating and deleting
//     teams.
//   - A Team Management Key has control of one or more teams. It cannot access the organisation
//     itself, and cannot create or delete teams. A key for two or more teams can only be created
//     with [KeysService.Create], not in the web dashboard.
//
// The team API rejects management keys. Create a key for it with [TeamAPIKeysService.Create].
func NewClient(orgID uuid.UUID, key string, opts ...labhealth.Option) (*Client, error) {
	c, err := labhealth.Internals(bridge.API{OrgID: orgID, Key: key, Operations: operations, Types: types{}}, opts...)
	if err != nil {
		return nil, err
	}
	return &Client{
		Organisation:        &OrganisationService{c},
		Teams:               &TeamsService{c},
		Keys:                &KeysService{c},
		Webhooks:            &WebhooksService{c},
		TeamAPIKeys:         &TeamAPIKeysService{c},
		CustomCredentials:   &CustomCredentialsService{c},
		Pipelines:           &PipelinesService{c},
		DataPullPreferences: &DataPullPreferencesService{c},
		LabAccounts:         &LabAccountsService{c},
		core:                c,
	}, nil
}

// Do calls any endpoint of the management API, as [labhealth.Client.Do] does. path is the whole
// path, such as "/v1/org/" + orgID.String() + "/team".
func (c *Client) Do(ctx context.Context, method, path string, body, out any, opts ...labhealth.CallOption) error {
	if c == nil || c.core == nil {
		return noClient(method + " (Do)")
	}
	return c.core.Do(ctx, method, path, body, out, opts)
}

// CloseIdleConnections closes the idle connections of the client's own transport, or of its copy of
// an http.Transport given with [labhealth.WithHTTPClient]. The given transport itself is not
// affected.
func (c *Client) CloseIdleConnections() {
	if c != nil && c.core != nil {
		c.core.CloseIdleConnections()
	}
}

const (
	opGetOrganisation    = "GET /v1/org/{org_id}"
	opUpdateOrganisation = "PATCH /v1/org/{org_id}"
)

// OrganisationService provides access to the organisation that owns the management key. A Team
// Management Key has no access to it. Source of its operations: public API reference only.
type OrganisationService struct{ core sender }

// Organisation is the owner of the teams: the response of [OrganisationService.Get] and
// [OrganisationService.Update].
type Organisation struct {
	ID        uuid.UUID  `json:"id"`         // ID of the organisation
	Name      string     `json:"name"`       // display name
	ExpiresAt *time.Time `json:"expires_at"` // expiry time, nil if it does not expire

	labhealth.RawObject `json:"-"`
}

func (o *Organisation) verify() error { return requireID(o.ID, "organisation") }

// UpdateOrganisationBody is the request of [OrganisationService.Update].
type UpdateOrganisationBody struct {
	Name string `json:"name"` // display name, with the characters and the length of a team's
}

func (b *UpdateOrganisationBody) validate(v validator) {
	v.Required("name", b.Name)
	displayName(v, "name", b.Name)
}

// Get returns the organisation: GET /v1/org/{org_id}.
func (s *OrganisationService) Get(ctx context.Context, opts ...labhealth.CallOption) (*Organisation, error) {
	return call(ctx, coreOf(s), new(Organisation), request{Op: opGetOrganisation}, opts)
}

// Update renames the organisation: PATCH /v1/org/{org_id}.
func (s *OrganisationService) Update(ctx context.Context, body UpdateOrganisationBody, opts ...labhealth.CallOption) (*Organisation, error) {
	return call(ctx, coreOf(s), new(Organisation), request{Op: opUpdateOrganisation, Body: &body}, opts)
}

// BatchDeletion reports the result for each resource of a batch: the response of
// [TeamAPIKeysService.Delete] and [CustomCredentialsService.Delete].
type BatchDeletion struct {
	Success  []uuid.UUID `json:"success"`   // IDs of deleted resources
	Failure  []uuid.UUID `json:"failure"`   // IDs of resources that could not be deleted
	NotFound []uuid.UUID `json:"not_found"` // IDs that do not exist

	labhealth.RawObject `json:"-"`
}

// batchParams selects resources by their IDs, each in a query parameter. An empty list is invalid,
// because it may mean all resources.
type batchParams struct {
	name string // of the parameter
	ids  []uuid.UUID
}

func (p batchParams) validate(v validator) { requiredIDs(v, p.name, "id", p.ids) }

func (p batchParams) query() url.Values { return url.Values{p.name: each(p.ids)} }
