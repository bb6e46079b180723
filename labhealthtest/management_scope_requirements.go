// The OAuth scopes that teams ask for.

package labhealthtest

import (
	"encoding/json"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/reference"
)

// scopes are the scope requirements of a team for a provider.
type scopes struct {
	Must     []string  `json:"user_must_grant"`
	May      []string  `json:"user_may_grant"`
	TeamID   uuid.UUID `json:"team_id"`
	Provider string    `json:"provider"`
}

// listScopes lists the requirements of a team that were set, in the order of the public API
// reference.
func (s *Server) listScopes(r *request, t *team) (any, error) {
	provider := r.queryOne("provider")
	found := []scopes{}
	for _, p := range reference.Components()["management UpsertTeamScopeRequirementsBody"] {
		if required, ok := t.scopes[p.Name]; ok && (provider == "" || provider == p.Name) {
			found = append(found, required)
		}
	}
	return map[string]any{"requirements": found}, nil
}

// upsertScopes replaces the requirements for the providers in the body. Null leaves those of a
// provider unchanged.
func (s *Server) upsertScopes(r *request, t *team) (any, error) {
	var body map[string]json.RawMessage
	r.decode(&body)
	for provider, raw := range body {
		required := scopes{TeamID: t.ID, Provider: provider}
		if json.Unmarshal(raw, &required); string(raw) != "null" {
			t.scopes[provider] = required
		}
	}
	return success, nil
}
