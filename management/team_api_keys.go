// The API keys of teams.

package management

import (
	"context"
	"iter"
	"log/slog"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

const (
	opListTeamAPIKeys   = "GET /v1/org/{org_id}/team_api_keys/{env}/{region}"
	opCreateTeamAPIKey  = "POST /v1/org/{org_id}/team_api_keys/{env}/{region}"
	opDeleteTeamAPIKeys = "DELETE /v1/org/{org_id}/team_api_keys/{env}/{region}"
)

// TeamAPIKeysService provides access to the keys of the team API, which [labhealth.NewClient]
// takes. They have no scopes. Source of its operations: public API reference only.
type TeamAPIKeysService struct{ core sender }

// TeamAPIKey is a key of the team API. Printed or logged, it shows only its type and ID.
type TeamAPIKey struct {
	ID        uuid.UUID        `json:"id"`         // ID of the key, not secret
	Label     string           `json:"label"`      // display name
	Value     labhealth.Secret `json:"value"`      // the key itself
	TeamID    uuid.UUID        `json:"team_id"`    // ID of the team that the key belongs to
	CreatedAt time.Time        `json:"created_at"` // creation time

	labhealth.RawObject `json:"-"`
}

func (v *TeamAPIKey) verify() error { return requireID(v.ID, "key") }

// LogValue returns the name of the type and the ID of the key.
func (v TeamAPIKey) LogValue() slog.Value {
	return slog.StringValue("management.TeamAPIKey{" + v.ID.String() + ", redacted}")
}

// ListTeamAPIKeysParams selects team API keys. Zero fields are not sent.
type ListTeamAPIKeysParams struct {
	TeamID     uuid.UUID // keys of one team
	NextCursor string    // NextCursor of the previous page; empty for the first
}

func (p ListTeamAPIKeysParams) query() url.Values {
	return url.Values{"team_id": optional(p.TeamID), "next_cursor": optional(p.NextCursor)}
}

// TeamAPIKeyPage is one page of team API keys: the response of [TeamAPIKeysService.List].
type TeamAPIKeyPage struct {
	APIKeys    []TeamAPIKey `json:"api_keys" jsonread:"own"` // the keys of the page
	NextCursor *string      `json:"next_cursor,omitzero"`    // nil on the last page

	labhealth.RawObject `json:"-"`
}

func (p *TeamAPIKeyPage) verify() error { return requireList(p.APIKeys) }

func (p *TeamAPIKeyPage) elements() (any, *string) { return p.APIKeys, p.NextCursor }

// CreateTeamAPIKeyBody is the request of [TeamAPIKeysService.Create].
type CreateTeamAPIKeyBody struct {
	Label  string    `json:"label"`   // display name
	TeamID uuid.UUID `json:"team_id"` // ID of the team that the key belongs to
}

func (b *CreateTeamAPIKeyBody) validate(v validator) {
	v.Required("label", b.Label)
	v.RequiredID("team_id", b.TeamID)
}

// List returns one page of the team API keys of an environment:
// GET /v1/org/{org_id}/team_api_keys/{env}/{region}.
func (s *TeamAPIKeysService) List(ctx context.Context, env labhealth.TeamEnvironment, region labhealth.Region, params ListTeamAPIKeysParams, opts ...labhealth.CallOption) (*TeamAPIKeyPage, error) {
	r := request{Op: opListTeamAPIKeys, IDs: []string{string(env), string(region)}, Params: params}
	return call(ctx, coreOf(s), new(TeamAPIKeyPage), r, opts)
}

// All returns an iterator over the team API keys, page by page, starting at params.NextCursor. It
// behaves like [labhealth.LabTestsService.All].
func (s *TeamAPIKeysService) All(ctx context.Context, env labhealth.TeamEnvironment, region labhealth.Region, params ListTeamAPIKeysParams, opts ...labhealth.CallOption) iter.Seq2[*TeamAPIKey, error] {
	id := func(k *TeamAPIKey) uuid.UUID { return k.ID }
	return cursorPages(ctx, coreOf(s), opts, opListTeamAPIKeys, params.NextCursor, id, func(ctx context.Context, cursor string, opts []labhealth.CallOption) (any, error) {
		params := params
		params.NextCursor = cursor
		return s.List(ctx, env, region, params, opts...)
	})
}

// Create creates a key of the team API: POST /v1/org/{org_id}/team_api_keys/{env}/{region}. The key
// is valid in that environment and region only.
func (s *TeamAPIKeysService) Create(ctx context.Context, env labhealth.TeamEnvironment, region labhealth.Region, body CreateTeamAPIKeyBody, opts ...labhealth.CallOption) (*TeamAPIKey, error) {
	r := request{Op: opCreateTeamAPIKey, IDs: []string{string(env), string(region)}, Body: &body}
	return call(ctx, coreOf(s), new(TeamAPIKey), r, opts)
}

// Delete revokes keys of the team API: DELETE /v1/org/{org_id}/team_api_keys/{env}/{region}. The
// response has the result for each key. At least one key is required.
func (s *TeamAPIKeysService) Delete(ctx context.Context, env labhealth.TeamEnvironment, region labhealth.Region, keyIDs []uuid.UUID, opts ...labhealth.CallOption) (*BatchDeletion, error) {
	r := request{Op: opDeleteTeamAPIKeys, IDs: []string{string(env), string(region)}, Params: batchParams{"api_key_id", keyIDs}}
	return call(ctx, coreOf(s), new(BatchDeletion), r, opts)
}
