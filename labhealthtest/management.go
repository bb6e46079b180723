package labhealthtest

import (
	"bytes"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// managementPath is where all paths of the management API begin.
const managementPath = "/v1/org/"

// The server is the sandbox of its region: webhooks and keys of team API keys for another environment or region exist, but get no
// events and open nothing.
const (
	here       = "sandbox"
	hereRegion = "us"
)

// tokenLife is how long an access token opens the team API.
const tokenLife = 10 * time.Minute

// managementOperation is one row of what the management API can do.
type managementOperation struct {
	method, pattern string
	// orgOnly rows are refused to a Team Management Key.
	orgOnly bool
	// handle runs under Server.mu. The key is that of the caller.
	handle func(*Server, *request, *managementKey) answer
}

const (
	webhookPath     = "/v1/org/{org_id}/team/{team_id}/{environment}/webhook"
	apiKeyPath      = "/v1/org/{org_id}/team_api_keys/{env}/{region}"
	credentialsPath = "/v1/org/{org_id}/team_custom_credentials/{env}/{region}"
	pipelinesPath   = "/v1/org/{org_id}/team_etl_pipelines/{env}/{region}"
)

// managementOperations returns the table, which names what leads to itself: an operation starts servers.
func managementOperations() []managementOperation {
	return []managementOperation{
		{http.MethodGet, "/v1/org/{org_id}", true, (*Server).getOrganisation},
		{http.MethodPatch, "/v1/org/{org_id}", true, (*Server).patchOrganisation},

		{http.MethodGet, "/v1/org/{org_id}/management_key", true, (*Server).listManagementKeys},
		{http.MethodPost, "/v1/org/{org_id}/management_key", true, (*Server).createManagementKey},
		{http.MethodPatch, "/v1/org/{org_id}/management_key/{key_id}", true, (*Server).patchManagementKey},
		{http.MethodDelete, "/v1/org/{org_id}/management_key/{key_id}", true, (*Server).deleteManagementKey},

		{http.MethodGet, "/v1/org/{org_id}/team", false, (*Server).listTeams},
		{http.MethodPost, "/v1/org/{org_id}/team", true, (*Server).createTeam},
		{http.MethodGet, "/v1/org/{org_id}/team/{team_id}", false, (*Server).getTeam},
		{http.MethodPatch, "/v1/org/{org_id}/team/{team_id}", false, (*Server).patchTeam},
		{http.MethodDelete, "/v1/org/{org_id}/team/{team_id}", true, (*Server).deleteTeam},
		{http.MethodPost, "/v1/org/{org_id}/resolve_team", false, (*Server).resolveTeam},
		// The public reference has both paths.
		{http.MethodPost, "/v1/org/{org_id}/team/{team_id}/create_api_access_token", false, (*Server).createToken},
		{http.MethodPost, "/v1/org/{org_id}/team/{team_id}/create_access_token", false, (*Server).createToken},

		{http.MethodGet, webhookPath, false, (*Server).listWebhooks},
		{http.MethodPost, webhookPath, false, (*Server).createWebhook},
		{http.MethodGet, webhookPath + "/{webhook_id}", false, onWebhook((*Server).getWebhook)},
		{http.MethodPatch, webhookPath + "/{webhook_id}", false, onWebhook((*Server).patchWebhook)},
		{http.MethodDelete, webhookPath + "/{webhook_id}", false, onWebhook((*Server).deleteWebhook)},
		{http.MethodGet, webhookPath + "/{webhook_id}/headers", false, onWebhook((*Server).getWebhookHeaders)},
		{http.MethodPut, webhookPath + "/{webhook_id}/headers", false, onWebhook((*Server).putWebhookHeaders)},
		{http.MethodGet, webhookPath + "/{webhook_id}/secret", false, onWebhook((*Server).getWebhookSecret)},
		{http.MethodPost, webhookPath + "/{webhook_id}/secret/rotate", false, onWebhook((*Server).rotateWebhookSecret)},

		{http.MethodGet, apiKeyPath, false, (*Server).listAPIKeys},
		{http.MethodPost, apiKeyPath, false, (*Server).createAPIKey},
		{http.MethodDelete, apiKeyPath, false, (*Server).deleteAPIKeys},
		{http.MethodGet, credentialsPath, false, (*Server).listCredentials},
		{http.MethodPost, credentialsPath, false, (*Server).upsertCredentials},
		{http.MethodDelete, credentialsPath, false, (*Server).deleteCredentials},
		{http.MethodPost, "/v1/org/{org_id}/prepare_team_custom_credentials/{env}/{region}", false, (*Server).prepareCredentials},
		{http.MethodGet, pipelinesPath, false, (*Server).listPipelines},
		{http.MethodPost, pipelinesPath, false, (*Server).upsertPipelines},
		{http.MethodDelete, pipelinesPath, false, (*Server).deletePipelines},
	}
}

// organisation is what the management API manages. Server.mu of the server that listens guards it.
type organisation struct {
	ID        uuid.UUID `json:"id"`
	Name      string    `json:"name"`
	ExpiresAt *stamp    `json:"expires_at"`

	made        int // things that were given an id
	keys        []*managementKey
	teams       []*team
	apiKeys     []*apiKey
	credentials []*credentials
	pipelines   []*pipeline
	tokens      map[string]token
	gone        []*Server // of teams that were deleted
}

// managementKey is a key of the management API. Answers but that to its creation are without Key.
type managementKey struct {
	ID       uuid.UUID         `json:"id"`
	Label    string            `json:"label"`
	Role     string            `json:"role"`
	Bindings []binding         `json:"team_role_bindings"`
	Creator  map[string]string `json:"creator"`
	Created  stamp             `json:"created_at"`
	Key      string            `json:"key,omitempty"`
}

type binding struct {
	TeamID uuid.UUID `json:"team_id"`
}

// hidden is the key without what opens the door.
func (k managementKey) hidden() *managementKey {
	k.Key = ""
	return &k
}

// may reports whether the key has control of a team.
func (k *managementKey) may(team uuid.UUID) bool {
	return k.Role == "org_admin" || slices.Contains(k.Bindings, binding{team})
}

// organise makes the organisation of a server: one team, whose API key is the server's, and one Org Management Key.
func (s *Server) organise() {
	s.org = &organisation{Name: "Example Organisation", tokens: map[string]token{}}
	s.OrgID = s.madeID()
	s.org.ID = s.OrgID
	s.OrgKey = s.madeKey("mk_org_")
	now := stamp(s.now())
	s.org.keys = []*managementKey{{
		ID: s.madeID(), Label: "Organisation", Role: "org_admin", Bindings: []binding{}, Created: now, Key: s.OrgKey,
		Creator: map[string]string{"type": "org_member", "email": "admin@example.com"},
	}}
	s.org.teams = []*team{newTeam(s, "Example Team", hereRegion, now)}
	s.org.apiKeys = []*apiKey{{
		ID: s.madeID(), Label: "Default", Value: s.APIKey, TeamID: s.TeamID, CreatedAt: now, env: here, region: hereRegion,
	}}
}

// made is 32 bytes that are another for each thing that is made.
func (s *Server) made() []byte {
	s.org.made++
	b := s.derive("management", s.org.made)
	return b[:]
}

// madeID makes a uuid of version 4.
func (s *Server) madeID() (id uuid.UUID) {
	copy(id[:], s.made())
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}

func (s *Server) madeKey(prefix string) string { return prefix + hex.EncodeToString(s.made()[:20]) }

// AddTeamManagementKey makes a Team Management Key for some teams, as the web dashboard or an Org Management Key would, and
// returns it. It fails for a team that does not exist.
func (s *Server) AddTeamManagementKey(teams ...uuid.UUID) (key string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &managementKey{
		ID: s.madeID(), Label: "Team", Role: "team_admin", Created: stamp(s.now()), Key: s.madeKey("mk_team_"),
		Creator: map[string]string{"type": "org_member", "email": "admin@example.com"},
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

// teamWith returns the server that a team API key or an access token opens, nil if none.
func (s *Server) teamWith(key string) *Server {
	var found *Server
	for _, k := range s.org.apiKeys {
		t := s.team(k.TeamID)
		same := subtle.ConstantTimeCompare([]byte(key), []byte(k.Value)) == 1
		if same && t != nil && k.env == here && k.region == hereRegion {
			found = t.server
		}
	}
	return found
}

func (s *Server) teamWithToken(text string) *Server {
	t, ok := s.org.tokens[text]
	if team := s.team(t.team); ok && team != nil && s.now().Before(t.until) {
		return team.server
	}
	return nil
}

// enter finds the team of a request to the team API by its key or token.
func (s *Server) enter(r *request) (*Server, answer) {
	key := r.header.Get(keyHeader)
	bearer, isBearer := strings.CutPrefix(r.header.Get("Authorization"), "Bearer ")
	var found *Server
	switch {
	case key != "":
		found = s.teamWith(key)
	case isBearer:
		found = s.teamWithToken(bearer)
	default:
		return nil, refuse(http.StatusUnauthorized, "Missing token")
	}
	if found == nil {
		return nil, refuse(http.StatusUnauthorized, "Invalid token")
	}
	return found, answer{}
}

// manage answers a request to the management API.
func (s *Server) manage(r *request, readErr error) answer {
	text := r.header.Get("X-Management-Key")
	if text == "" {
		text = r.header.Get("X-Service-Org-Key")
	}
	if text == "" {
		return refuse(http.StatusUnauthorized, "Missing management key")
	}
	var caller *managementKey
	for _, k := range s.org.keys {
		if subtle.ConstantTimeCompare([]byte(text), []byte(k.Key)) == 1 {
			caller = k
		}
	}
	if caller == nil {
		return refuse(http.StatusUnauthorized, "Invalid management key")
	}
	if a, bad := unread(readErr); bad {
		return a
	}
	var allow []string
	for _, op := range managementOperations() {
		vars, ok := match(op.pattern, r.path)
		switch {
		case !ok:
			continue
		case op.method != r.method:
			allow = append(allow, op.method)
			continue
		}
		r.vars = vars
		id := r.pathUUID("org_id")
		for name, values := range map[string][]string{"environment": environments, "env": environments, "region": regions} {
			if v, has := vars[name]; has {
				oneOf(values...)(&r.checker, []any{"path", name}, encode(v))
			}
		}
		if a, bad := r.invalid(); bad {
			return a
		}
		if id != s.OrgID || op.orgOnly && caller.Role != "org_admin" {
			return forbidden
		}
		return op.handle(s, r, caller)
	}
	if len(allow) > 0 {
		a := refuse(http.StatusMethodNotAllowed, "Method Not Allowed")
		a.allow = strings.Join(allow, ", ")
		return a
	}
	return refuse(http.StatusNotFound, "Not Found")
}

var (
	forbidden = refuse(http.StatusForbidden, "The management key has no permission for this")
	noTeam    = refuse(http.StatusNotFound, "Team not found")
	noContent = answer{status: http.StatusNoContent}

	environments = []string{"production", "sandbox"}
	regions      = []string{"us", "eu"}
)

// managed returns a team that the caller has control of.
func (s *Server) managed(caller *managementKey, id uuid.UUID) (*team, answer) {
	if !caller.may(id) {
		return nil, forbidden
	}
	if t := s.team(id); t != nil {
		return t, answer{}
	}
	return nil, noTeam
}

// managedPath is managed for the team of the path.
func (s *Server) managedPath(r *request, caller *managementKey) (*team, answer) {
	id := r.pathUUID("team_id")
	if a, bad := r.invalid(); bad {
		return nil, a
	}
	return s.managed(caller, id)
}

// pageAfter returns the elements after the one that the parameter next_cursor names, limit at most, and the cursor of the page
// after them.
func pageAfter[E any](r *request, list []E, limit int, id func(E) string) (page []E, next *string, a answer, bad bool) {
	limit = r.queryRange("limit", limit, 1, 0)
	if a, bad := r.invalid(); bad {
		return nil, nil, a, true
	}
	from := 0
	if cursor, ok := r.queryLast("next_cursor"); ok {
		last, err := base64.RawURLEncoding.DecodeString(cursor)
		from = 1 + slices.IndexFunc(list, func(e E) bool { return err == nil && id(e) == string(last) })
		if from == 0 {
			return nil, nil, refuse(http.StatusBadRequest, "Invalid cursor"), true
		}
	}
	to := from + min(limit, len(list)-from)
	if to < len(list) {
		next = new(base64.RawURLEncoding.EncodeToString([]byte(id(list[to-1]))))
	}
	return append([]E{}, list[from:to]...), next, answer{}, false
}

// replyPage answers with a page of a list under name.
func replyPage[E any](r *request, name string, list []E, id func(E) string) answer {
	page, next, a, bad := pageAfter(r, list, 50, id)
	if bad {
		return a
	}
	return reply(map[string]any{name: page, "next_cursor": next})
}

// given reads the members of the body that was decoded before.
func (r *request) given() map[string]json.RawMessage {
	var members map[string]json.RawMessage
	json.Unmarshal(r.body, &members)
	return members
}

// sealed is the kind of an object that refuses members it does not know.
func sealed(fields ...field) kind {
	known := object(fields...)
	return func(c *checker, loc []any, in json.RawMessage) any {
		var members map[string]json.RawMessage
		json.Unmarshal(in, &members)
		for name, value := range members {
			if !slices.ContainsFunc(fields, func(f field) bool { return f.name == name }) {
				c.add("extra_forbidden", append(slices.Clone(loc), name), "Extra inputs are not permitted", value, nil)
			}
		}
		return known(c, loc, in)
	}
}

// anything is the kind of a value that is kept as it is.
func anything(_ *checker, _ []any, in json.RawMessage) any { return json.RawMessage(bytes.Clone(in)) }

var (
	bindingsBody = list(object(field{"team_id", required, aUUID, nil}))
	keyBody      = object(
		field{"label", required, text, nil},
		field{"role", required, oneOf("org_admin", "team_admin"), nil},
		field{"team_role_bindings", optional | nullable, bindingsBody, nil},
	)
	patchKeyBody = object(
		field{"label", optional | nullable, text, nil},
		field{"team_role_bindings", optional | nullable, bindingsBody, nil},
	)
)

func (s *Server) getOrganisation(*request, *managementKey) answer { return reply(s.org) }

func (s *Server) patchOrganisation(r *request, _ *managementKey) answer {
	var body struct {
		Name string `json:"name"`
	}
	r.decode(object(field{"name", required, text, nil}), &body)
	if a, bad := r.invalid(); bad {
		return a
	}
	s.org.Name = body.Name
	return reply(s.org)
}

func (s *Server) listManagementKeys(r *request, _ *managementKey) answer {
	teamID := r.queryOne("team_id", aUUID)
	role := r.queryOne("role", oneOf("org_admin", "team_admin"))
	var found []*managementKey
	for _, k := range s.org.keys {
		bound := slices.ContainsFunc(k.Bindings, func(b binding) bool { return b.TeamID.String() == teamID })
		if (teamID == "" || bound) && (role == "" || role == k.Role) {
			found = append(found, k.hidden())
		}
	}
	return replyPage(r, "data", found, func(k *managementKey) string { return k.ID.String() })
}

// bind checks the teams that a key is to be bound to.
func (s *Server) bind(r *request, role string, bindings []binding) (a answer, bad bool) {
	if (role == "team_admin") != (len(bindings) > 0) {
		r.addValueError([]any{"body", "team_role_bindings"}, "a team_admin is bound to one or more teams, an org_admin to none", []byte("null"))
		return r.invalid()
	}
	for _, b := range bindings {
		if s.team(b.TeamID) == nil {
			return noTeam, true
		}
	}
	return answer{}, false
}

func (s *Server) createManagementKey(r *request, caller *managementKey) answer {
	var body struct {
		Label    string    `json:"label"`
		Role     string    `json:"role"`
		Bindings []binding `json:"team_role_bindings"`
	}
	r.decode(keyBody, &body)
	if a, bad := r.invalid(); bad {
		return a
	}
	if a, bad := s.bind(r, body.Role, body.Bindings); bad {
		return a
	}
	prefix := strings.TrimSuffix(body.Role, "_admin")
	k := &managementKey{
		ID: s.madeID(), Label: body.Label, Role: body.Role, Bindings: append([]binding{}, body.Bindings...),
		Creator: map[string]string{"type": "management_key", "key_id": caller.ID.String()},
		Created: stamp(r.now), Key: s.madeKey("mk_" + prefix + "_"),
	}
	s.org.keys = append(s.org.keys, k)
	return reply(k)
}

var noKey = refuse(http.StatusNotFound, "Management key not found")

func (s *Server) pathKey(r *request) (int, answer) {
	id := r.pathUUID("key_id")
	if a, bad := r.invalid(); bad {
		return -1, a
	}
	return slices.IndexFunc(s.org.keys, func(k *managementKey) bool { return k.ID == id }), noKey
}

func (s *Server) patchManagementKey(r *request, _ *managementKey) answer {
	var body struct {
		Label    *string   `json:"label"`
		Bindings []binding `json:"team_role_bindings"`
	}
	r.decode(patchKeyBody, &body)
	i, a := s.pathKey(r)
	if i < 0 {
		return a
	}
	k := s.org.keys[i]
	if body.Bindings != nil {
		if a, bad := s.bind(r, k.Role, body.Bindings); bad {
			return a
		}
		k.Bindings = body.Bindings
	}
	if body.Label != nil {
		k.Label = *body.Label
	}
	return reply(k.hidden())
}

func (s *Server) deleteManagementKey(r *request, _ *managementKey) answer {
	i, a := s.pathKey(r)
	if i < 0 {
		return a
	}
	k := s.org.keys[i]
	s.org.keys = slices.Delete(s.org.keys, i, i+1)
	return reply(k.hidden())
}

// unread answers a request whose body could not be read.
func unread(err error) (a answer, bad bool) {
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return refuse(http.StatusRequestEntityTooLarge, "Request body too large"), true
	}
	if err != nil {
		return refuse(http.StatusBadRequest, "There was an error parsing the body"), true
	}
	return answer{}, false
}
