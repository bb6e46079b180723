package labhealthtest

import "github.com/google/uuid"

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
