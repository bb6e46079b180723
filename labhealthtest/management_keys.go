// Management keys and their role bindings.

package labhealthtest

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
)

const (
	orgAdmin  = "org_admin"
	teamAdmin = "team_admin"
)

// managementKey is a key of the management API. Only the response to its creation contains Key.
type managementKey struct {
	ID       uuid.UUID `json:"id"`
	Label    string    `json:"label"`
	Role     string    `json:"role"`
	Bindings []binding `json:"team_role_bindings"`
	Creator  creator   `json:"creator"`
	Created  timestamp `json:"created_at"`
	Key      string    `json:"key,omitempty"`
}

type binding struct {
	TeamID uuid.UUID `json:"team_id"`
}

// creator is the creator of a management key. Its fields depend on its type.
type creator map[string]string

var (
	// dashboardMember is the creator of keys that the management API did not create.
	dashboardMember = creator{
		"type": "org_member", "id": "5d2f8a41-7c3e-4b90-8f16-2a9c4e7b1d03", "name": "Ada Example", "email": "admin@example.com",
		"avatar": "https://example.com/avatars/ada.png",
	}
	keyCreator = creator{"type": "management_key"}
)

// withoutKey returns a copy for responses.
func (k managementKey) withoutKey() *managementKey {
	k.Key = ""
	return &k
}

// manages reports whether the key gives access to a team.
func (k *managementKey) manages(team uuid.UUID) bool {
	return k.Role == orgAdmin || k.isBoundTo(team)
}

func (k *managementKey) isBoundTo(team uuid.UUID) bool {
	return slices.Contains(k.Bindings, binding{team})
}

// AddTeamManagementKey creates a Team Management Key for one or more teams and returns it. It
// returns an error if a team does not exist. The management API can also create Team Management
// Keys.
func (s *Server) AddTeamManagementKey(teams ...uuid.UUID) (key string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &managementKey{
		ID: s.deriveID(), Label: "Team", Role: teamAdmin, Created: timestamp(s.now()), Key: s.deriveKey("mk_team_"),
		Creator: dashboardMember,
	}
	for _, id := range teams {
		if s.team(id) == nil {
			return "", errors.New("labhealthtest: the team does not exist")
		}
		k.Bindings = append(k.Bindings, binding{id})
	}
	if len(teams) == 0 {
		return "", errors.New("labhealthtest: a Team Management Key needs a team")
	}
	s.org.keys = append(s.org.keys, k)
	return k.Key, nil
}

var managementKeyFilters = []filter[*managementKey]{
	func(r *request) func(*managementKey) bool {
		teamID, ok := parseUUID(r.queryOne("team_id"))
		return func(k *managementKey) bool { return !ok || k.isBoundTo(teamID) }
	},
	equals("role", func(k *managementKey) string { return k.Role }),
}

func (s *Server) listManagementKeys(r *request) (any, error) {
	var keys []*managementKey
	for _, k := range selected(r, s.org.keys, managementKeyFilters) {
		keys = append(keys, k.withoutKey())
	}
	return page(r, "data", keys, func(k *managementKey) string { return k.ID.String() })
}

func (s *Server) createManagementKey(r *request) (any, error) {
	var body struct {
		Label    string    `json:"label"`
		Role     string    `json:"role"`
		Bindings []binding `json:"team_role_bindings"`
	}
	r.decode(&body)
	if err := s.checkBindings(r, body.Role, body.Bindings); err != nil {
		return nil, err
	}
	prefix := strings.TrimSuffix(body.Role, "_admin")
	k := &managementKey{
		ID: s.deriveID(), Label: body.Label, Role: body.Role, Bindings: append([]binding{}, body.Bindings...),
		Creator: keyCreator, Created: timestamp(r.now), Key: s.deriveKey("mk_" + prefix + "_"),
	}
	s.org.keys = append(s.org.keys, k)
	return k, nil
}

// checkBindings validates the teams of a key.
func (s *Server) checkBindings(r *request, role string, bindings []binding) error {
	if (role == teamAdmin) != (len(bindings) > 0) {
		r.addValueError([]any{"body", "team_role_bindings"},
			"a team_admin is bound to one or more teams, an org_admin to none", jsonNull)
		return r.err()
	}
	for _, b := range bindings {
		if s.team(b.TeamID) == nil {
			return teamNotFound
		}
	}
	return nil
}

// requestedKey returns the key in the path.
func (s *Server) requestedKey(r *request) (*managementKey, error) {
	if k, ok := first(s.org.keys, func(k *managementKey) bool { return k.ID == r.pathUUID("key_id") }); ok {
		return k, nil
	}
	return nil, reject(http.StatusNotFound, "Management key not found")
}

func (s *Server) patchManagementKey(r *request, k *managementKey) (any, error) {
	var body struct {
		Label    *string   `json:"label"`
		Bindings []binding `json:"team_role_bindings"`
	}
	r.decode(&body)
	if body.Bindings != nil {
		if err := s.checkBindings(r, k.Role, body.Bindings); err != nil {
			return nil, err
		}
		k.Bindings = body.Bindings
	}
	if body.Label != nil {
		k.Label = *body.Label
	}
	return k.withoutKey(), nil
}

func (s *Server) deleteManagementKey(_ *request, k *managementKey) (any, error) {
	removeFunc(&s.org.keys, func(other *managementKey) bool { return other == k })
	return k.withoutKey(), nil
}
