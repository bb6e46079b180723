package labhealthtest

import (
	"slices"

	"github.com/google/uuid"
)

type apiKey struct {
	ID        uuid.UUID `json:"id"`
	Label     string    `json:"label"`
	Value     string    `json:"value"`
	TeamID    uuid.UUID `json:"team_id"`
	CreatedAt timestamp `json:"created_at"`

	deployment deployment
}

var createAPIKeySchema = object(
	required("label", stringSchema),
	required("team_id", uuidSchema),
)

// isVisible returns a function that reports whether the caller may see an object of a team in a
// deployment, and the request selects it by its path and the parameter team_id.
func isVisible(r *request) func(team uuid.UUID, d deployment) bool {
	teamID := r.queryOne("team_id", uuidSchema)
	return func(team uuid.UUID, d deployment) bool {
		return r.caller.manages(team) && d == r.deployment() && (teamID == "" || team.String() == teamID)
	}
}

// selectFunc returns the elements of list that match.
func selectFunc[E any](list []E, match func(E) bool) []E {
	return slices.DeleteFunc(slices.Clone(list), func(e E) bool { return !match(e) })
}

// removeFunc removes the elements that match from list and reports whether there were any.
func removeFunc[E any](list *[]E, match func(E) bool) bool {
	n := len(*list)
	*list = slices.DeleteFunc(*list, match)
	return len(*list) < n
}

// deleteByID calls remove with each ID in the parameter name.
func deleteByID(r *request, name string, remove func(uuid.UUID) bool) (any, error) {
	ids := r.queryList(name, uuidSchema)
	if len(ids) == 0 {
		r.add("missing", []any{"query", name}, "Field required", jsonNull, nil)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	deleted, missing := []string{}, []string{}
	for _, id := range ids {
		if remove(uuid.MustParse(id)) {
			deleted = append(deleted, id)
		} else {
			missing = append(missing, id)
		}
	}
	return map[string][]string{"success": deleted, "failure": {}, "not_found": missing}, nil
}

func (s *Server) listAPIKeys(r *request) (any, error) {
	visible := isVisible(r)
	found := selectFunc(s.org.apiKeys, func(k *apiKey) bool { return visible(k.TeamID, k.deployment) })
	return page(r, "api_keys", found, func(k *apiKey) string { return k.ID.String() })
}

func (s *Server) createAPIKey(r *request) (any, error) {
	k := &apiKey{ID: s.deriveID(), CreatedAt: timestamp(r.now), deployment: r.deployment()}
	r.decode(createAPIKeySchema, k)
	if err := r.err(); err != nil {
		return nil, err
	}
	if _, err := s.localTeam(r, k.TeamID); err != nil {
		return nil, err
	}
	prefix := "sk_"
	if k.deployment.env == "production" {
		prefix = "pk_"
	}
	k.Value = s.deriveKey(prefix + k.deployment.region + "_")
	s.org.apiKeys = append(s.org.apiKeys, k)
	return k, nil
}

func (s *Server) deleteAPIKeys(r *request) (any, error) {
	visible := isVisible(r)
	return deleteByID(r, "api_key_id", func(id uuid.UUID) bool {
		return removeFunc(&s.org.apiKeys, func(k *apiKey) bool { return k.ID == id && visible(k.TeamID, k.deployment) })
	})
}
