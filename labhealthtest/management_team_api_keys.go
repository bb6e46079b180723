// API keys of teams.

package labhealthtest

import "github.com/google/uuid"

type apiKey struct {
	ID        uuid.UUID `json:"id"`
	Label     string    `json:"label"`
	Value     string    `json:"value"`
	CreatedAt timestamp `json:"created_at"`

	owned
}

func (s *Server) createAPIKey(r *request) (any, error) {
	k := &apiKey{ID: s.deriveID(), CreatedAt: timestamp(r.now), owned: owned{deployment: r.deployment()}}
	r.decode(k)
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
