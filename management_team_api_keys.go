package labhealth

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/google/uuid"
)

const (
	opListTeamAPIKeys   = "GET /v1/org/{org_id}/team_api_keys/{env}/{region}"
	opCreateTeamAPIKey  = "POST /v1/org/{org_id}/team_api_keys/{env}/{region}"
	opDeleteTeamAPIKeys = "DELETE /v1/org/{org_id}/team_api_keys/{env}/{region}"
)

// TeamAPIKeysService provides access to the keys of the team API, which [NewClient] takes. They have no
// scopes. Source of its operations: public API reference only.
type TeamAPIKeysService struct{ org *organisation }

// TeamAPIKey is a key of the team API. It redacts itself when printed, but for its id.
type TeamAPIKey struct {
	ID        uuid.UUID `json:"id"`         // the id of the key, which is not secret
	Label     string    `json:"label"`      // what people call it
	Value     Secret    `json:"value"`      // the key itself
	TeamID    uuid.UUID `json:"team_id"`    // the team whose key it is
	CreatedAt time.Time `json:"created_at"` // when it was created

	RawObject `json:"-"`
}

func (v *TeamAPIKey) verify() error { return requireID(v.ID, "key") }

// LogValue shows the id of the key.
func (v TeamAPIKey) LogValue() slog.Value {
	return slog.StringValue("labhealth.TeamAPIKey{" + v.ID.String() + ", redacted}")
}

// Format prints what [TeamAPIKey.LogValue] returns.
func (v TeamAPIKey) Format(s fmt.State, _ rune) { printLogValue(s, v) }

// ListTeamAPIKeysParams choose team API keys. Zero members are left out.
type ListTeamAPIKeysParams struct {
	TeamID     uuid.UUID // keys of one team
	NextCursor string    // where the page begins: NextCursor of the page before; empty for the first
}

func (p ListTeamAPIKeysParams) query() queryValues {
	q := newQuery()
	q.setID("team_id", p.TeamID)
	q.setString("next_cursor", p.NextCursor)
	return q
}

// TeamAPIKeyPage is one page of the list of team API keys: the answer of [TeamAPIKeysService.List].
type TeamAPIKeyPage struct {
	Redacted[TeamAPIKeyPage]

	APIKeys    []TeamAPIKey `json:"api_keys" jsonread:"own"` // the keys of the page
	NextCursor *string      `json:"next_cursor,omitzero"`    // where the next page begins; nil at the end of the list

	RawObject `json:"-"`
}

// CreateTeamAPIKeyBody is the request of [TeamAPIKeysService.Create].
type CreateTeamAPIKeyBody struct {
	Label  string    `json:"label"`   // what people call it
	TeamID uuid.UUID `json:"team_id"` // the team whose key it is to be
}

func (b *CreateTeamAPIKeyBody) validate(v *validator) {
	v.required("label", b.Label)
	v.requiredID("team_id", b.TeamID)
}

// List reads one page of the team API keys of an environment: GET /v1/org/{org_id}/team_api_keys/{env}/{region}.
func (s *TeamAPIKeysService) List(ctx context.Context, env TeamEnvironment, region Region, params ListTeamAPIKeysParams, opts ...CallOption) (*TeamAPIKeyPage, error) {
	r := s.org.request(opListTeamAPIKeys, string(env), string(region))
	r.query = params
	return call[TeamAPIKeyPage](ctx, s.org.core, r, opts)
}

// All reads the team API keys page by page, from params.NextCursor on, with the guarantees of [LabTestsService.All].
func (s *TeamAPIKeysService) All(ctx context.Context, env TeamEnvironment, region Region, params ListTeamAPIKeysParams, opts ...CallOption) iter.Seq2[*TeamAPIKey, error] {
	id := func(k *TeamAPIKey) uuid.UUID { return k.ID }
	return cursorPages(opListTeamAPIKeys, params.NextCursor, id, func(cursor string) ([]TeamAPIKey, *string, error) {
		params := params
		params.NextCursor = cursor
		page, err := s.List(ctx, env, region, params, opts...)
		if err != nil {
			return nil, nil, err
		}
		return page.APIKeys, page.NextCursor, nil
	})
}

// Create makes a key of the team API: POST /v1/org/{org_id}/team_api_keys/{env}/{region}. It opens that environment in that
// region only.
func (s *TeamAPIKeysService) Create(ctx context.Context, env TeamEnvironment, region Region, body CreateTeamAPIKeyBody, opts ...CallOption) (*TeamAPIKey, error) {
	r := s.org.request(opCreateTeamAPIKey, string(env), string(region))
	r.body = &body
	return call[TeamAPIKey](ctx, s.org.core, r, opts)
}

// Delete makes keys of the team API void: DELETE /v1/org/{org_id}/team_api_keys/{env}/{region}. The answer says what became of
// each.
func (s *TeamAPIKeysService) Delete(ctx context.Context, env TeamEnvironment, region Region, keyIDs []uuid.UUID, opts ...CallOption) (*BatchDeletion, error) {
	return call[BatchDeletion](ctx, s.org.core, s.org.batch(opDeleteTeamAPIKeys, "api_key_id", env, region, keyIDs), opts)
}
