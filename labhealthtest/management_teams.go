package labhealthtest

import (
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// team is a team of the organisation. Its users, orders and events are those of its server.
type team struct {
	ID                uuid.UUID `json:"id"`
	Name              string    `json:"name"`
	CreatedOn         stamp     `json:"created_on"`
	Region            string    `json:"region"`
	IntegrationTeamID *string   `json:"integration_team_id"`
	Environments      []string  `json:"environments"`
	Sandbox           *settings `json:"sandbox"`
	Production        *settings `json:"production"`

	server   *Server
	webhooks []*webhook
}

// settings is how a team works in an environment.
type settings struct {
	SMS           bool    `json:"lab_tests_patient_sms_communication_enabled"`
	Email         bool    `json:"lab_tests_patient_email_communication_enabled"`
	CriticalEmail *string `json:"critical_result_notification_email"`
	Brand         *brand  `json:"brand_information"`
	LogoURL       *string `json:"logo_url"`
	Duplicate     bool    `json:"reject_duplicate_connection"`
	PerDevice     bool    `json:"sdk_per_device_activity_timeseries"`
	Partial       bool    `json:"partial_webhooks_enabled"`
	Minors        bool    `json:"minor_ordering_enabled"`
}

type brand struct {
	CompanyName    string  `json:"company_name"`
	CompanyWebsite string  `json:"company_website"`
	SupportEmail   *string `json:"support_email"`
	SupportContact *string `json:"support_contact"`
	CompanyAddress string  `json:"company_address"`
	BrandColor     string  `json:"brand_color"`
}

func newTeam(server *Server, name, region string, now stamp) *team {
	fresh := func() *settings { return &settings{SMS: true, Email: true} }
	return &team{
		ID: server.TeamID, Name: name, CreatedOn: now, Region: region, Environments: []string{"sandbox", "production"},
		Sandbox: fresh(), Production: fresh(), server: server,
	}
}

// Team returns the server of a team that was created through the management API, nil where there is none: its methods add users
// and orders to that team, name addresses for its events and wait for them. It has the same URL, and no APIKey: keys are created
// through the management API too. Its requests are in the log of s. It is closed with s.
func (s *Server) Team(id uuid.UUID) *Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.team(id); t != nil {
		return t.server
	}
	return nil
}

func (s *Server) team(id uuid.UUID) *team {
	for _, t := range s.org.teams {
		if t.ID == id {
			return t
		}
	}
	return nil
}

// startTeam starts a server that is handed its requests by s.
func (s *Server) startTeam() *Server {
	seed := s.derive("team", len(s.org.teams)+s.org.made)
	c, _ := Start(WithClock(s.clock), WithListener(&deaf{addr: s.listener.Addr(), closed: make(chan struct{})}),
		func(c *Server) { c.seed(seed) }) // It fails only without a listener.
	c.OrgID, c.OrgKey, c.APIKey = s.OrgID, s.OrgKey, ""
	return c
}

// deaf is a listener whom nobody calls.
type deaf struct {
	addr   net.Addr
	closed chan struct{}
	once   sync.Once
}

func (d *deaf) Accept() (net.Conn, error) {
	<-d.closed
	return nil, net.ErrClosed
}

func (d *deaf) Close() error {
	d.once.Do(func() { close(d.closed) })
	return nil
}

func (d *deaf) Addr() net.Addr { return d.addr }

// closeTeams closes the servers of other teams, when no request can make one any more.
func (s *Server) closeTeams() {
	for _, t := range s.org.teams {
		if t.server != s {
			t.server.Close()
		}
	}
	for _, server := range s.org.gone {
		server.Close()
	}
}

var (
	brandBody = object(
		field{"company_name", required, text, nil},
		field{"company_website", optional, text, ""},
		field{"support_email", optional | nullable, text, nil},
		field{"support_contact", optional | nullable, text, nil},
		field{"company_address", optional, text, ""},
		field{"brand_color", optional, text, ""},
	)
	settingFields = []field{
		{"lab_tests_patient_sms_communication_enabled", optional | nullable, aBoolean, nil},
		{"lab_tests_patient_email_communication_enabled", optional | nullable, aBoolean, nil},
		{"critical_result_notification_email", optional | nullable, anEmail, nil},
		{"brand_information", optional | nullable, brandBody, nil},
		{"logo_url", optional | nullable, text, nil},
		{"reject_duplicate_connection", optional | nullable, aBoolean, nil},
		{"sdk_per_device_activity_timeseries", optional | nullable, aBoolean, nil},
		{"partial_webhooks_enabled", optional | nullable, aBoolean, nil},
		{"minor_ordering_enabled", optional | nullable, aBoolean, nil},
	}
	createTeamBody = sealed(append([]field{
		{"name", required, text, nil},
		{"region", required, oneOf(regions...), nil},
		{"integration_team_id", optional | nullable, text, nil},
	}, settingFields...)...)
	patchTeamBody = sealed(
		field{"name", optional, text, nil},
		field{"integration_team_id", optional | nullable, text, nil},
		field{"sandbox", optional | nullable, sealed(settingFields...), nil},
		field{"production", optional | nullable, sealed(settingFields...), nil},
	)
)

// with is the team with the settings of some environments.
func (t team) with(environments []string) *team {
	if !slices.Contains(environments, "sandbox") {
		t.Sandbox = nil
	}
	if !slices.Contains(environments, "production") {
		t.Production = nil
	}
	return &t
}

func (s *Server) listTeams(r *request, caller *managementKey) answer {
	teamID := r.queryOne("team_id", aUUID)
	wanted := r.queryList("region", oneOf(regions...))
	search := strings.ToLower(r.query.Get("search_query"))
	var found []*team
	for _, t := range s.org.teams {
		if caller.may(t.ID) && (teamID == "" || teamID == t.ID.String()) &&
			(len(wanted) == 0 || slices.Contains(wanted, t.Region)) && strings.Contains(strings.ToLower(t.Name), search) {
			found = append(found, t.with(nil))
		}
	}
	return replyPage(r, "teams", found, func(t *team) string { return t.ID.String() })
}

// taken answers 409 with the team that has an integration team id.
func (s *Server) taken(id *string, but *team) (a answer, bad bool) {
	for _, t := range s.org.teams {
		if t != but && id != nil && t.IntegrationTeamID != nil && *t.IntegrationTeamID == *id {
			return answer{status: http.StatusConflict, body: encode(map[string]any{"team_id": t.ID})}, true
		}
	}
	return answer{}, false
}

// change sets the members of in. Null clears what may be null and changes nothing else.
func (v *settings) change(in []byte) {
	var members map[string]json.RawMessage
	json.Unmarshal(in, &members) // It was checked before.
	if members["brand_information"] != nil {
		v.Brand = nil // so that it is replaced, not changed
	}
	json.Unmarshal(in, v)
}

func (s *Server) createTeam(r *request, _ *managementKey) answer {
	var body struct {
		Name              string  `json:"name"`
		Region            string  `json:"region"`
		IntegrationTeamID *string `json:"integration_team_id"`
	}
	r.decode(createTeamBody, &body)
	if a, bad := r.invalid(); bad {
		return a
	}
	if a, bad := s.taken(body.IntegrationTeamID, nil); bad {
		return a
	}
	t := newTeam(s.startTeam(), body.Name, body.Region, stamp(r.now))
	t.IntegrationTeamID = body.IntegrationTeamID
	t.Sandbox.change(r.body)
	t.Production.change(r.body)
	s.org.teams = append(s.org.teams, t)
	return reply(t)
}

func (s *Server) getTeam(r *request, caller *managementKey) answer {
	included := r.queryList("include_environment", oneOf(environments...))
	t, a := s.managedPath(r, caller)
	if t == nil {
		return a
	}
	return reply(t.with(included))
}

func (s *Server) patchTeam(r *request, caller *managementKey) answer {
	var body struct {
		Name              *string `json:"name"`
		IntegrationTeamID *string `json:"integration_team_id"`
	}
	r.decode(patchTeamBody, &body)
	t, a := s.managedPath(r, caller)
	if t == nil {
		return a
	}
	if a, bad := s.taken(body.IntegrationTeamID, t); bad {
		return a
	}
	members := r.given()
	if body.Name != nil {
		t.Name = *body.Name
	}
	if members["integration_team_id"] != nil {
		t.IntegrationTeamID = body.IntegrationTeamID
	}
	t.Sandbox.change(members["sandbox"])
	t.Production.change(members["production"])
	return reply(t)
}

// deleteTeam deletes a team with its webhooks and keys. That of the server itself stays.
func (s *Server) deleteTeam(r *request, caller *managementKey) answer {
	t, a := s.managedPath(r, caller)
	switch {
	case t == nil:
		return a
	case t.server == s:
		return refuse(http.StatusBadRequest, "The team of the server cannot be deleted")
	}
	for _, w := range t.webhooks {
		s.unhook(t, w)
	}
	t.webhooks = nil
	s.org.teams = slices.DeleteFunc(s.org.teams, func(o *team) bool { return o == t })
	s.org.apiKeys = slices.DeleteFunc(s.org.apiKeys, func(k *apiKey) bool { return k.TeamID == t.ID })
	s.org.gone = append(s.org.gone, t.server)
	return reply(map[string]bool{"success": true})
}

func (s *Server) resolveTeam(r *request, caller *managementKey) answer {
	var body struct {
		IntegrationTeamID string `json:"integration_team_id"`
	}
	r.decode(object(field{"integration_team_id", required, text, nil}), &body)
	if a, bad := r.invalid(); bad {
		return a
	}
	for _, t := range s.org.teams {
		if t.IntegrationTeamID != nil && *t.IntegrationTeamID == body.IntegrationTeamID && caller.may(t.ID) {
			return reply(t.with(nil))
		}
	}
	return noTeam
}

func (s *Server) createToken(r *request, caller *managementKey) answer {
	var body struct {
		Env string `json:"env"`
	}
	r.decode(object(field{"env", required, oneOf(environments...), nil}), &body)
	t, a := s.managedPath(r, caller)
	if t == nil {
		return a
	}
	text := s.madeKey("at_" + body.Env + "_")
	if body.Env == here && t.Region == hereRegion {
		s.org.tokens[text] = token{t.ID, r.now.Add(tokenLife)}
	}
	return reply(map[string]any{"access_token": text, "expires_in": int(tokenLife / time.Second)})
}
