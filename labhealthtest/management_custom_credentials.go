// Custom credentials of teams.

package labhealthtest

import (
	"encoding/hex"
	"encoding/json"

	"github.com/google/uuid"
)

type credentials struct {
	ID          uuid.UUID       `json:"id"`
	Source      string          `json:"source"`
	ClientID    *string         `json:"client_id"`
	SecretHash  *string         `json:"client_secret_hash"`
	CreatedAt   timestamp       `json:"created_at"`
	UpdatedAt   timestamp       `json:"updated_at"`
	Details     json.RawMessage `json:"details"`
	AppURL      *string         `json:"app_url"`
	RedirectURL *string         `json:"redirect_url_override"`

	owned
}

// upsertCredentials creates or replaces the credentials of a team and a provider.
func (s *Server) upsertCredentials(r *request) (any, error) {
	var body struct {
		credentials
		Provider     string  `json:"provider"`
		ClientSecret *string `json:"client_secret"`
	}
	r.decode(&body)
	if _, err := s.localTeam(r, body.TeamID); err != nil {
		return nil, err
	}
	c := body.credentials
	c.Source, c.CreatedAt, c.UpdatedAt = body.Provider, timestamp(r.now), timestamp(r.now)
	c.deployment = r.deployment()
	if body.ClientSecret != nil {
		hash := s.derive("secret "+*body.ClientSecret, 0)
		c.SecretHash = new(hex.EncodeToString(hash[:]))
	}
	for _, old := range s.org.credentials {
		if old.owned == c.owned && old.Source == c.Source {
			c.ID, c.CreatedAt = old.ID, old.CreatedAt
			*old = c
			return old, nil
		}
	}
	c.ID = s.deriveID()
	s.org.credentials = append(s.org.credentials, &c)
	return c, nil
}

// prepareCredentials requires a redirect URL for the providers "oura" and "fitbit", and for nothing
// for others.
func (s *Server) prepareCredentials(r *request) (any, error) {
	var body struct {
		TeamID   uuid.UUID `json:"team_id"`
		Provider string    `json:"provider"`
	}
	r.decode(&body)
	if _, err := s.localTeam(r, body.TeamID); err != nil {
		return nil, err
	}
	if body.Provider != "oura" && body.Provider != "fitbit" {
		return map[string]any{"status": "no_action_needed", "preparation_steps": []any{}}, nil
	}
	return map[string]any{"status": "preparations_required", "preparation_steps": []map[string]any{{
		"type": "redirect_uri", "key": nil, "value": s.URL + "/oauth/" + body.Provider,
		"description": "Allow this redirect address.",
	}}}, nil
}
