// The lab accounts of the organisation.

package labhealthtest

import (
	"net/http"

	"github.com/google/uuid"
)

func (s *Server) listOrgLabAccounts(r *request) (any, error) {
	team, byTeam := parseUUID(r.queryOne("team_id"))
	found := selectFunc(selected(r, s.org.labAccounts, accountFilters), func(a *labAccount) bool {
		return a.deployment == r.deployment() && (!byTeam || a.allows(team))
	})
	return map[string]any{"data": found}, nil
}

// patchLabAccount replaces the teams that can use an account.
func (s *Server) patchLabAccount(r *request) (any, error) {
	var body struct {
		TeamIDs []uuid.UUID `json:"team_id_allowlist"`
	}
	r.decode(&body)
	for _, id := range body.TeamIDs {
		if s.team(id) == nil {
			return nil, teamNotFound
		}
	}
	for _, a := range s.org.labAccounts {
		if a.ID == r.pathUUID("account_id") && a.deployment == r.deployment() {
			a.TeamIDAllowlist = body.TeamIDs
			return map[string]any{"lab_account": a}, nil
		}
	}
	return nil, reject(http.StatusNotFound, "Lab account not found")
}
