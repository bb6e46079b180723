// Data pull preferences, which decide the length of historical pulls.

package labhealthtest

import (
	"maps"
	"slices"

	"github.com/google/uuid"
)

// maxPullDays is the limit of historical_days_to_pull. The limits of the service are not
// documented.
const maxPullDays = 365

// preferences are the data pull preferences of a team in a deployment.
type preferences struct {
	Providers map[string]providerPreferences `json:"providers"`

	owned
}

type providerPreferences struct {
	Default   daysToPull            `json:"default"`
	Overrides map[string]daysToPull `json:"resource_overrides"`
}

type daysToPull struct {
	Days  int `json:"historical_days_to_pull"`
	Limit int `json:"historical_days_to_pull_limit"`
}

// withLimit returns the preferences with the limits that responses have, and reports days that are
// out of range.
func (p providerPreferences) withLimit(r *request, provider string) providerPreferences {
	limited := func(d daysToPull, path ...any) daysToPull {
		if d.Days < 0 || d.Days > maxPullDays {
			at := append([]any{"body", "providers", provider}, append(path, "historical_days_to_pull")...)
			r.addValueError(at, "the number of days is out of range", encode(d.Days))
		}
		d.Limit = maxPullDays
		return d
	}
	p.Default = limited(p.Default, "default")
	for _, resource := range slices.Sorted(maps.Keys(p.Overrides)) {
		p.Overrides[resource] = limited(p.Overrides[resource], "resource_overrides", resource)
	}
	return p
}

// pullProviders returns the schema of the providers that have preferences.
func pullProviders() schema {
	provider, _ := first(rulesOf("GET "+preferencesPath).parameters, func(p parameter) bool { return p.name == "provider" })
	return provider.schema
}

// listPreferences lists the preferences of teams, without the providers that the request does not
// select.
func (s *Server) listPreferences(r *request) (any, error) {
	visible, providers := isVisible(r), r.queryList("provider")
	var found []preferences
	for _, p := range s.org.preferences {
		selected := *p
		selected.Providers = maps.Clone(p.Providers)
		maps.DeleteFunc(selected.Providers, func(name string, _ providerPreferences) bool { return !isSelected(providers, name) })
		if visible(&p.owned) && len(selected.Providers) > 0 {
			found = append(found, selected)
		}
	}
	return page(r, "data_pull_preferences", found, func(p preferences) string { return p.TeamID.String() })
}

// upsertPreferences sets the preferences of teams for the given providers.
func (s *Server) upsertPreferences(r *request) (any, error) {
	var body struct {
		TeamIDs   []uuid.UUID                    `json:"team_ids"`
		Providers map[string]providerPreferences `json:"providers"`
	}
	r.decode(&body)
	for _, provider := range slices.Sorted(maps.Keys(body.Providers)) {
		pullProviders()(&r.validator, []any{"body", "providers", provider, "[key]"}, encode(provider))
		body.Providers[provider] = body.Providers[provider].withLimit(r, provider)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	for _, id := range body.TeamIDs {
		if _, err := s.localTeam(r, id); err != nil {
			return nil, err
		}
	}
	upserted := []*preferences{}
	for _, id := range body.TeamIDs {
		p := s.preferencesOf(owned{id, r.deployment()})
		maps.Copy(p.Providers, body.Providers)
		s.applyPreferences(p)
		upserted = append(upserted, p)
	}
	return map[string]any{"data_pull_preferences": upserted, "next_cursor": nil}, nil
}

// preferencesOf returns the preferences of a team, which it creates if needed.
func (s *Server) preferencesOf(owner owned) *preferences {
	for _, p := range s.org.preferences {
		if p.owned == owner {
			return p
		}
	}
	p := &preferences{owned: owner, Providers: map[string]providerPreferences{}}
	s.org.preferences = append(s.org.preferences, p)
	return p
}

// deletePreferences deletes the preferences of the teams in the query, or of all teams, for the
// providers in the query, or for all providers.
func (s *Server) deletePreferences(r *request) (any, error) {
	visible, providers := isVisible(r), r.queryList("provider")
	for _, p := range s.org.preferences {
		if visible(&p.owned) {
			maps.DeleteFunc(p.Providers, func(name string, _ providerPreferences) bool { return isSelected(providers, name) })
			s.applyPreferences(p)
		}
	}
	return success, nil
}

// applyPreferences applies the preferences of a team to the historical pulls of its server.
func (s *Server) applyPreferences(p *preferences) {
	t := s.team(p.TeamID)
	if t == nil || p.deployment != (deployment{serverEnv, serverRegion}) {
		return
	}
	s.withTeamServer(t, func(server *Server) { server.pullPreferences = maps.Clone(p.Providers) })
}

// daysToPull returns the length of a historical pull.
func (s *Server) daysToPull(provider, resource string) int {
	p, ok := s.pullPreferences[provider]
	if !ok {
		return defaultPullDays
	}
	if override, ok := p.Overrides[resource]; ok {
		return override.Days
	}
	return p.Default.Days
}
