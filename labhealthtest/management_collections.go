// Lists of what belongs to teams: API keys, credentials, pipelines.

package labhealthtest

import (
	"github.com/google/uuid"
)

// owned is embedded in what belongs to a team in a deployment.
type owned struct {
	TeamID     uuid.UUID `json:"team_id"`
	deployment deployment
}

func (o *owned) owner() *owned { return o }

// collection is a list of the organisation whose elements belong to teams.
type collection[E interface{ owner() *owned }] struct {
	name     string // of the list in responses
	elements func(*organisation) *[]E
	id       func(E) uuid.UUID
	provider func(E) string // nil if there is no parameter provider
}

var (
	apiKeys = collection[*apiKey]{
		"api_keys", func(o *organisation) *[]*apiKey { return &o.apiKeys }, func(k *apiKey) uuid.UUID { return k.ID }, nil,
	}
	allCredentials = collection[*credentials]{
		"credentials", func(o *organisation) *[]*credentials { return &o.credentials }, func(c *credentials) uuid.UUID { return c.ID },
		func(c *credentials) string { return c.Source },
	}
	pipelines = collection[*pipeline]{
		"pipelines", func(o *organisation) *[]*pipeline { return &o.pipelines }, func(p *pipeline) uuid.UUID { return p.TeamID }, nil,
	}
)

// isVisible returns a function that reports whether the caller may see an element, and the request
// selects it by its path and the parameter team_id.
func isVisible(r *request) func(*owned) bool {
	teams := r.queryList("team_id")
	return func(o *owned) bool {
		return r.caller.manages(o.TeamID) && o.deployment == r.deployment() && isSelected(teams, o.TeamID.String())
	}
}

// list lists the elements that the request selects.
func (c collection[E]) list(s *Server, r *request) (any, error) {
	visible, provider := isVisible(r), r.queryOne("provider")
	found := selectFunc(*c.elements(s.org), func(e E) bool {
		return visible(e.owner()) && (provider == "" || c.provider(e) == provider)
	})
	return page(r, c.name, found, func(e E) string { return c.id(e).String() })
}

// delete returns an operation that deletes the elements with the IDs in a parameter.
func (c collection[E]) delete(parameter string) handler {
	return func(s *Server, r *request) (any, error) {
		visible := isVisible(r)
		deleted, missing := []string{}, []string{}
		for _, id := range r.queryList(parameter) {
			if removeFunc(c.elements(s.org), func(e E) bool { return c.id(e).String() == id && visible(e.owner()) }) {
				deleted = append(deleted, id)
			} else {
				missing = append(missing, id)
			}
		}
		return map[string][]string{"success": deleted, "failure": {}, "not_found": missing}, nil
	}
}

// deleteTeam deletes what a deleted team had.
func (c collection[E]) deleteTeam(s *Server, team uuid.UUID) {
	removeFunc(c.elements(s.org), func(e E) bool { return e.owner().TeamID == team })
}
