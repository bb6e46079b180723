// How many days of history are pulled from providers.

package management

import (
	"context"
	"iter"
	"net/url"
	"strconv"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

const (
	opListDataPullPreferences   = "GET /v1/org/{org_id}/team_data_pull_preferences/{env}/{region}"
	opUpsertDataPullPreferences = "POST /v1/org/{org_id}/team_data_pull_preferences/{env}/{region}"
	opDeleteDataPullPreferences = "DELETE /v1/org/{org_id}/team_data_pull_preferences/{env}/{region}"
)

// DataPullPreferencesService provides access to the data pull preferences of the teams: how many
// days of history are pulled when a user connects a provider. Source of its operations: public API
// reference only.
type DataPullPreferencesService struct{ core sender }

// TeamDataPullPreferences are the data pull preferences of a team.
type TeamDataPullPreferences struct {
	TeamID uuid.UUID `json:"team_id"` // ID of the team
	// Providers holds the preferences by the slug of the provider.
	Providers map[string]ProviderDataPullPreferences `json:"providers"`

	labhealth.RawObject `json:"-"`
}

// ProviderDataPullPreferences are the data pull preferences of a team for one provider.
type ProviderDataPullPreferences struct {
	// Default applies to the resources without an override.
	Default HistoricalDaysToPull `json:"default"`
	// ResourceOverrides holds the overrides by the name of the resource, nil for none.
	ResourceOverrides map[string]HistoricalDaysToPull `json:"resource_overrides,omitzero"`

	labhealth.RawObject `json:"-"`
}

// HistoricalDaysToPull is the number of days of history that are pulled.
type HistoricalDaysToPull struct {
	HistoricalDaysToPull int64 `json:"historical_days_to_pull"` // the number of days
	// HistoricalDaysToPullLimit is the largest number of days that the provider permits.
	HistoricalDaysToPullLimit int64 `json:"historical_days_to_pull_limit"`

	labhealth.RawObject `json:"-"`
}

// ListTeamDataPullPreferencesParams selects data pull preferences. Zero fields are not sent.
type ListTeamDataPullPreferencesParams struct {
	TeamID     []uuid.UUID          // preferences of these teams
	Provider   []labhealth.Provider // preferences for these providers
	NextCursor string               // NextCursor of the previous page; empty for the first
	Limit      int                  // teams per page; the service uses 5 if it is 0
}

func (p ListTeamDataPullPreferencesParams) validate(v validator) {
	v.ValidIDs("team_id", p.TeamID)
	v.AtLeast("limit", p.Limit, 0)
}

func (p ListTeamDataPullPreferencesParams) query() url.Values {
	return url.Values{
		"team_id": each(p.TeamID), "provider": each(p.Provider), "next_cursor": optional(p.NextCursor), "limit": optional(p.Limit),
	}
}

// TeamDataPullPreferencesPage is one page of data pull preferences: the response of
// [DataPullPreferencesService.List] and [DataPullPreferencesService.Upsert].
type TeamDataPullPreferencesPage struct {
	// DataPullPreferences holds the preferences of the page, by team.
	DataPullPreferences []TeamDataPullPreferences `json:"data_pull_preferences" jsonread:"own"`
	// NextCursor is the cursor of the next page, nil on the last page.
	NextCursor *string `json:"next_cursor,omitzero"`

	labhealth.RawObject `json:"-"`
}

func (p *TeamDataPullPreferencesPage) verify() error { return requireList(p.DataPullPreferences) }

func (p *TeamDataPullPreferencesPage) elements() (any, *string) {
	return p.DataPullPreferences, p.NextCursor
}

// UpsertTeamDataPullPreferencesBody is the request of [DataPullPreferencesService.Upsert].
type UpsertTeamDataPullPreferencesBody struct {
	TeamIDs []uuid.UUID `json:"team_ids"` // IDs of the teams, which get the same preferences
	// Providers holds the preferences by the slug of the provider.
	Providers map[string]UpsertProviderDataPullPreferences `json:"providers"`
}

func (b *UpsertTeamDataPullPreferencesBody) validate(v validator) {
	requiredIDs(v, "team_ids", "team", b.TeamIDs)
	if b.Providers == nil {
		v.Add("providers", "missing", "is required")
	}
}

// UpsertProviderDataPullPreferences are the new data pull preferences for one provider: see
// [ProviderDataPullPreferences].
type UpsertProviderDataPullPreferences struct {
	// Default applies to the resources without an override.
	Default UpsertHistoricalDaysToPull `json:"default"`
	// ResourceOverrides holds the overrides by the name of the resource, nil for none.
	ResourceOverrides map[string]UpsertHistoricalDaysToPull `json:"resource_overrides,omitzero"`
}

// UpsertHistoricalDaysToPull is the new number of days of history that are pulled.
type UpsertHistoricalDaysToPull struct {
	HistoricalDaysToPull int64 `json:"historical_days_to_pull"` // the number of days
}

// deleteDataPullPreferencesParams selects the preferences that [DataPullPreferencesService.Delete]
// deletes. An empty list is invalid, because it may mean all teams or all providers.
type deleteDataPullPreferencesParams struct {
	teamIDs   []uuid.UUID
	providers []labhealth.Provider
}

func (p deleteDataPullPreferencesParams) validate(v validator) {
	requiredIDs(v, "team_id", "team", p.teamIDs)
	if p.providers != nil && len(p.providers) == 0 {
		v.Add("provider", "too_short", "must be nil for all providers, or have at least one provider")
	}
	v.Within("provider", func() {
		for i, provider := range p.providers {
			v.Required(strconv.Itoa(i), string(provider))
		}
	})
}

func (p deleteDataPullPreferencesParams) query() url.Values {
	return url.Values{"team_id": each(p.teamIDs), "provider": each(p.providers)}
}

// List returns one page of the data pull preferences of an environment:
// GET /v1/org/{org_id}/team_data_pull_preferences/{env}/{region}.
func (s *DataPullPreferencesService) List(ctx context.Context, env labhealth.TeamEnvironment, region labhealth.Region, params ListTeamDataPullPreferencesParams, opts ...labhealth.CallOption) (*TeamDataPullPreferencesPage, error) {
	r := request{Op: opListDataPullPreferences, IDs: []string{string(env), string(region)}, Params: params}
	return call(ctx, coreOf(s), new(TeamDataPullPreferencesPage), r, opts)
}

// All returns an iterator over the data pull preferences, page by page, starting at
// params.NextCursor. It behaves like [labhealth.LabTestsService.All].
func (s *DataPullPreferencesService) All(ctx context.Context, env labhealth.TeamEnvironment, region labhealth.Region, params ListTeamDataPullPreferencesParams, opts ...labhealth.CallOption) iter.Seq2[*TeamDataPullPreferences, error] {
	id := func(p *TeamDataPullPreferences) uuid.UUID { return p.TeamID }
	return cursorPages(ctx, coreOf(s), opts, opListDataPullPreferences, params.NextCursor, id, func(ctx context.Context, cursor string, opts []labhealth.CallOption) (any, error) {
		params := params
		params.NextCursor = cursor
		return s.List(ctx, env, region, params, opts...)
	})
}

// Upsert sets the data pull preferences of teams and returns them:
// POST /v1/org/{org_id}/team_data_pull_preferences/{env}/{region}. It is idempotent: after any
// error it can be called again. At least one team is required.
func (s *DataPullPreferencesService) Upsert(ctx context.Context, env labhealth.TeamEnvironment, region labhealth.Region, body UpsertTeamDataPullPreferencesBody, opts ...labhealth.CallOption) (*TeamDataPullPreferencesPage, error) {
	r := request{Op: opUpsertDataPullPreferences, IDs: []string{string(env), string(region)}, Body: &body}
	return call(ctx, coreOf(s), new(TeamDataPullPreferencesPage), r, opts)
}

// Delete deletes the data pull preferences of teams for the given providers, or for all providers
// if the list is nil: DELETE /v1/org/{org_id}/team_data_pull_preferences/{env}/{region}. A list
// that is empty but not nil is invalid. At least one team is required, because an empty list may
// mean all teams. The response is not documented and not decoded: use [labhealth.WithResponse] to
// read it.
func (s *DataPullPreferencesService) Delete(ctx context.Context, env labhealth.TeamEnvironment, region labhealth.Region, teamIDs []uuid.UUID, providers []labhealth.Provider, opts ...labhealth.CallOption) error {
	r := request{
		Op: opDeleteDataPullPreferences, IDs: []string{string(env), string(region)},
		Params: deleteDataPullPreferencesParams{teamIDs, providers},
	}
	return callEmpty(ctx, coreOf(s), r, opts)
}
