// The organisation of the management API, its authentication and deployments.

package labhealthtest

import (
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
)

// managementPrefix is the prefix of all paths of the management API.
const managementPrefix = "/v1/org/"

// The server represents the sandbox of region us. Webhooks and team API keys for another
// environment or region exist, but have no effect.
const (
	serverEnv    = "sandbox"
	serverRegion = "us"
)

// organisation is the state of the management API. Server.mu of the listening server guards it.
type organisation struct {
	ID        uuid.UUID  `json:"id"`
	Name      string     `json:"name"`
	ExpiresAt *timestamp `json:"expires_at"`

	derived     int // number of IDs and keys
	keys        []*managementKey
	teams       []*team
	apiKeys     []*apiKey
	credentials []*credentials
	pipelines   []*pipeline
	preferences []*preferences
	labAccounts []*labAccount
	tokens      map[string]token
	removed     []*Server // servers of deleted teams
}

// createOrganisation creates the organisation of a server, with one team, which has the API key of
// the server, and one Org Management Key.
func (s *Server) createOrganisation() {
	s.org = &organisation{Name: "Example Organisation", tokens: map[string]token{}}
	s.OrgID = s.deriveID()
	s.org.ID = s.OrgID
	s.OrgKey = s.deriveKey("mk_org_")
	now := timestamp(s.now())
	s.org.keys = []*managementKey{{
		ID: s.deriveID(), Label: "Organisation", Role: orgAdmin, Bindings: []binding{}, Created: now, Key: s.OrgKey,
		Creator: dashboardMember,
	}}
	s.org.teams = []*team{newTeam(s, "Example Team", serverRegion, now, defaultSettings)}
	s.org.apiKeys = []*apiKey{{
		ID: s.deriveID(), Label: "Default", Value: s.APIKey, CreatedAt: now,
		owned: owned{s.TeamID, deployment{serverEnv, serverRegion}},
	}}
	s.org.labAccounts = s.newLabAccounts()
}

// deriveNext returns pseudorandom bytes that are different for each call.
func (s *Server) deriveNext() []byte {
	s.org.derived++
	b := s.derive("management", s.org.derived)
	return b[:]
}

func (s *Server) deriveID() uuid.UUID { return version4(uuid.UUID(s.deriveNext()[:16])) }

func (s *Server) deriveKey(prefix string) string {
	return prefix + hex.EncodeToString(s.deriveNext()[:20])
}

// deployment is the environment and the region of a team API key, custom credentials or a pipeline.
type deployment struct {
	env, region string
}

// deployment returns the environment and the region in the path.
func (r *request) deployment() deployment { return deployment{r.vars["env"], r.vars["region"]} }

var (
	forbidden    = reject(http.StatusForbidden, "The management key has no permission for this")
	teamNotFound = reject(http.StatusNotFound, "Team not found")
)

// authenticateManagement sets r.caller.
func (s *Server) authenticateManagement(r *request) error {
	key := r.header.Get(managementKeyHeader)
	if key == "" {
		key = r.header.Get(orgKeyHeader)
	}
	if key == "" {
		return reject(http.StatusUnauthorized, "Missing management key")
	}
	for _, k := range s.org.keys {
		if subtle.ConstantTimeCompare([]byte(key), []byte(k.Key)) == 1 {
			r.caller = k
		}
	}
	if r.caller == nil {
		return reject(http.StatusUnauthorized, "Invalid management key")
	}
	return nil
}

// checkOrg validates the path of a request to the management API, and rejects Team Management Keys
// where they cannot be used.
func (s *Server) checkOrg(r *request, o *operation) error {
	if err := r.err(); err != nil {
		return err
	}
	isOrgOnly := slices.ContainsFunc(orgOperations, func(other operation) bool { return other.String() == o.String() })
	if r.pathUUID("org_id") != s.OrgID || isOrgOnly && r.caller.Role != orgAdmin {
		return forbidden
	}
	return nil
}

// managedTeam returns a team that the caller may manage.
func (s *Server) managedTeam(r *request, id uuid.UUID) (*team, error) {
	if !r.caller.manages(id) {
		return nil, forbidden
	}
	if t := s.team(id); t != nil {
		return t, nil
	}
	return nil, teamNotFound
}

// requestedTeam returns the team in the path, which the caller may manage.
func (s *Server) requestedTeam(r *request) (*team, error) {
	return s.managedTeam(r, r.pathUUID("team_id"))
}

// localTeam returns a team that the caller may manage, in the region of the path.
func (s *Server) localTeam(r *request, id uuid.UUID) (*team, error) {
	t, err := s.managedTeam(r, id)
	if err == nil && t.Region != r.deployment().region {
		return nil, reject(http.StatusBadRequest, "The team is in another region")
	}
	return t, err
}

// isSelected reports whether a filter of values selects a value. An empty filter selects all.
func isSelected(filter []string, value string) bool {
	return len(filter) == 0 || slices.Contains(filter, value)
}

// removeFunc removes the elements that match from list and reports whether there were any.
func removeFunc[E any](list *[]E, match func(E) bool) bool {
	n := len(*list)
	*list = slices.DeleteFunc(*list, match)
	return len(*list) < n
}

func (s *Server) getOrganisation(*request) (any, error) { return s.org, nil }

func (s *Server) patchOrganisation(r *request) (any, error) {
	var body struct {
		Name string `json:"name"`
	}
	r.decode(&body)
	s.org.Name = body.Name
	return s.org, nil
}

// tokenLifetime is how long an access token is valid.
const tokenLifetime = 10 * time.Minute

// token is a valid access token of the team API.
type token struct {
	team  uuid.UUID
	until time.Time
}

// teamOfAPIKey returns the server of the team that a team API key belongs to, or nil.
func (s *Server) teamOfAPIKey(key string) *Server {
	var found *Server
	for _, k := range s.org.apiKeys {
		t := s.team(k.TeamID)
		same := subtle.ConstantTimeCompare([]byte(key), []byte(k.Value)) == 1
		if same && t != nil && k.deployment == (deployment{serverEnv, serverRegion}) {
			found = t.server
		}
	}
	return found
}

// teamOfToken returns the server of the team that an access token belongs to, or nil.
func (s *Server) teamOfToken(text string) *Server {
	t, ok := s.org.tokens[text]
	if team := s.team(t.team); ok && team != nil && s.now().Before(t.until) {
		return team.server
	}
	return nil
}

func (s *Server) createToken(r *request, t *team) (any, error) {
	var body struct {
		Env string `json:"env"`
	}
	r.decode(&body)
	text := s.deriveKey("at_" + body.Env + "_")
	if body.Env == serverEnv && t.Region == serverRegion {
		s.org.tokens[text] = token{t.ID, r.now.Add(tokenLifetime)}
	}
	return map[string]any{"access_token": text, "expires_in": int(tokenLifetime / time.Second)}, nil
}
