// Teams, each with its own server.

package labhealthtest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// teamSummary is a team in a list.
type teamSummary struct {
	ID                uuid.UUID `json:"id"`
	Name              string    `json:"name"`
	CreatedOn         timestamp `json:"created_on"`
	Region            string    `json:"region"`
	IntegrationTeamID *string   `json:"integration_team_id"`
}

// team is a team of the organisation. Its server has its users, orders and events.
type team struct {
	teamSummary
	Environments []string  `json:"environments"`
	Sandbox      *settings `json:"sandbox"`
	Production   *settings `json:"production"`

	server   *Server
	webhooks []*webhook
	scopes   map[string]scopes // by provider
}

// settings are the settings of a team in one environment.
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

var defaultSettings = settings{SMS: true, Email: true}

type brand struct {
	CompanyName    string  `json:"company_name"`
	CompanyWebsite string  `json:"company_website"`
	SupportEmail   *string `json:"support_email,omitempty"`
	SupportContact *string `json:"support_contact"`
	CompanyAddress string  `json:"company_address"`
	BrandColor     string  `json:"brand_color"`
}

func newTeam(server *Server, name, region string, now timestamp, s settings) *team {
	production := s
	server.partialEvents.Store(s.Partial)
	return &team{
		teamSummary:  teamSummary{ID: server.TeamID, Name: name, CreatedOn: now, Region: region},
		Environments: []string{"sandbox", "production"},
		Sandbox:      &s, Production: &production, server: server, scopes: map[string]scopes{},
	}
}

// withSettings returns a copy for responses with the settings of some environments.
func (t team) withSettings(environments []string) *team {
	if !slices.Contains(environments, "sandbox") {
		t.Sandbox = nil
	}
	if !slices.Contains(environments, "production") {
		t.Production = nil
	}
	return &t
}

// update changes the settings in the valid object patch. Null clears nullable settings only. The
// brand information is changed field by field: null clears a field other than the company name.
func (v *settings) update(patch json.RawMessage) {
	var fields map[string]json.RawMessage
	json.Unmarshal(patch, &fields)
	if raw := fields["brand_information"]; raw != nil {
		changed := brand{}
		if v.Brand != nil {
			changed = *v.Brand // A copy, because environments may share the old value.
		}
		changed.update(raw)
		v.Brand = &changed
	}
	json.Unmarshal(patch, v)
}

func (b *brand) update(patch json.RawMessage) {
	var fields map[string]*string
	json.Unmarshal(patch, &fields)
	for name, s := range map[string]*string{
		"company_website": &b.CompanyWebsite, "company_address": &b.CompanyAddress, "brand_color": &b.BrandColor,
	} {
		if value, ok := fields[name]; ok && value == nil {
			*s = ""
		}
	}
	json.Unmarshal(patch, b)
}

// checkBrand reports brand information without a company name.
func (v *settings) checkBrand(r *request, environment string, patch json.RawMessage) {
	var fields struct {
		Brand *struct {
			CompanyName *string `json:"company_name"`
		} `json:"brand_information"`
	}
	json.Unmarshal(patch, &fields)
	if v.Brand == nil && fields.Brand != nil && fields.Brand.CompanyName == nil {
		r.add("missing", []any{"body", environment, "brand_information", "company_name"}, "Field required", jsonNull, nil)
	}
}

// Team returns the server of a team that was created through the management API, or nil if there is
// no such team. Its methods add users and orders to the team and deliver the events of the team. It
// has the same URL but no APIKey: team API keys are created through the management API. The parent
// s logs its requests and closes it.
func (s *Server) Team(id uuid.UUID) *Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.team(id); t != nil {
		return t.server
	}
	return nil
}

func (s *Server) team(id uuid.UUID) *team {
	t, _ := first(s.org.teams, func(t *team) bool { return t.ID == id })
	return t
}

// newTeamServer returns a server that does not listen. s dispatches requests to it.
func (s *Server) newTeamServer() *Server {
	seed := s.derive("team", len(s.org.teams)+s.org.derived)
	server := newServer(WithClock(s.clock), func(server *Server) { server.seed(seed) })
	server.parent = s
	server.URL, server.OrgID, server.OrgKey, server.APIKey = s.URL, s.OrgID, s.OrgKey, ""
	server.DebugToken = s.DebugToken
	return server
}

// closeTeams closes the servers of other teams. No request may be in progress.
func (s *Server) closeTeams() {
	for _, t := range s.org.teams {
		if t.server != s {
			t.server.Close()
		}
	}
	for _, server := range s.org.removed {
		server.Close()
	}
}

var teamFilters = []filter[*team]{
	equals("team_id", func(t *team) string { return t.ID.String() }),
	equals("region", func(t *team) string { return t.Region }),
	contains("search_query", func(t *team) string { return strings.ToLower(t.Name) }),
}

func (s *Server) listTeams(r *request) (any, error) {
	var teams []teamSummary
	for _, t := range selected(r, s.org.teams, teamFilters) {
		if r.caller.manages(t.ID) {
			teams = append(teams, t.teamSummary)
		}
	}
	return page(r, "teams", teams, func(t teamSummary) string { return t.ID.String() })
}

// checkIntegrationID returns a 409 response with the team that has the ID, if it is another than t.
func (s *Server) checkIntegrationID(id *string, t *team) error {
	for _, other := range s.org.teams {
		if other != t && id != nil && other.IntegrationTeamID != nil && *other.IntegrationTeamID == *id {
			return teamConflict(other.ID)
		}
	}
	return nil
}

// teamConflict returns the response to a request for a team that exists already.
func teamConflict(id uuid.UUID) error {
	return &response{statusCode: http.StatusConflict, body: encode(map[string]any{"team_id": id})}
}

func (s *Server) createTeam(r *request) (any, error) {
	body := struct {
		ID                *uuid.UUID `json:"id"`
		Name              string     `json:"name"`
		Region            string     `json:"region"`
		IntegrationTeamID *string    `json:"integration_team_id"`
		settings
	}{settings: defaultSettings}
	r.decode(&body)
	if err := s.checkIntegrationID(body.IntegrationTeamID, nil); err != nil {
		return nil, err
	}
	server := s.newTeamServer()
	if body.ID != nil {
		if s.team(*body.ID) != nil {
			return nil, teamConflict(*body.ID)
		}
		server.TeamID = *body.ID
	}
	t := newTeam(server, body.Name, body.Region, timestamp(r.now), body.settings)
	t.IntegrationTeamID = body.IntegrationTeamID
	s.org.teams = append(s.org.teams, t)
	return t, nil
}

func (s *Server) getTeam(r *request, t *team) (any, error) {
	return t.withSettings(r.queryList("include_environment")), nil
}

func (s *Server) patchTeam(r *request, t *team) (any, error) {
	var body map[string]json.RawMessage
	r.decode(&body)
	t.Sandbox.checkBrand(r, "sandbox", body["sandbox"])
	t.Production.checkBrand(r, "production", body["production"])
	if err := r.err(); err != nil {
		return nil, err
	}
	if raw, ok := body["integration_team_id"]; ok {
		var id *string
		json.Unmarshal(raw, &id)
		if err := s.checkIntegrationID(id, t); err != nil {
			return nil, err
		}
		t.IntegrationTeamID = id
	}
	json.Unmarshal(body["name"], &t.Name)
	t.Sandbox.update(body["sandbox"])
	t.server.partialEvents.Store(t.Sandbox.Partial)
	t.Production.update(body["production"])
	return t, nil
}

// deleteTeam deletes a team with everything that belongs to it. The team of the server cannot be
// deleted.
func (s *Server) deleteTeam(_ *request, t *team) (any, error) {
	if t.server == s {
		return nil, reject(http.StatusBadRequest, "The team of the server cannot be deleted")
	}
	for _, w := range t.webhooks {
		s.stopWebhook(t, w)
	}
	t.webhooks = nil
	removeFunc(&s.org.teams, func(other *team) bool { return other == t })
	apiKeys.deleteTeam(s, t.ID)
	allCredentials.deleteTeam(s, t.ID)
	pipelines.deleteTeam(s, t.ID)
	removeFunc(&s.org.preferences, func(p *preferences) bool { return p.TeamID == t.ID })
	for _, a := range s.org.labAccounts {
		a.TeamIDAllowlist = slices.DeleteFunc(slices.Clone(a.TeamIDAllowlist), func(id uuid.UUID) bool { return id == t.ID })
	}
	s.org.removed = append(s.org.removed, t.server)
	return success, nil
}

func (s *Server) resolveTeam(r *request) (any, error) {
	var body struct {
		IntegrationTeamID string `json:"integration_team_id"`
	}
	r.decode(&body)
	for _, t := range s.org.teams {
		if t.IntegrationTeamID != nil && *t.IntegrationTeamID == body.IntegrationTeamID && r.caller.manages(t.ID) {
			return t.withSettings(nil), nil
		}
	}
	return nil, teamNotFound
}
