// Link tokens, and connections to demo providers.

package labhealthtest

import (
	"errors"
	"net/http"
	"slices"

	"github.com/google/uuid"
)

// linkToken is a token with which a user connects a provider once.
type linkToken struct {
	userID  uuid.UUID
	allowed []string // slugs; empty for all

	pendingMFA string // the provider that has asked for a code
}

func (s *Server) createLinkToken(r *request) (any, error) {
	var body struct {
		UserID   uuid.UUID `json:"user_id"`
		Provider *string   `json:"provider"`
		Filter   []string  `json:"filter_on_providers"`
	}
	r.decode(&body)
	if s.user(body.UserID) == nil {
		return nil, userNotFound
	}
	t := &linkToken{userID: body.UserID, allowed: body.Filter}
	if body.Provider != nil {
		t.allowed = []string{*body.Provider}
	}
	value := s.deriveKey("lt_")
	s.linkTokens[value], s.lastLinkToken = t, value
	return map[string]string{"link_token": value, "link_web_url": "https://link.example.com/?token=" + value}, nil
}

// CompleteLink connects the user of a link token to a source, such as "oura", as the user does on
// the page of the token. It sends the event provider.connection.created. CompleteLink returns an
// error if the token is unknown or was used, or if it is for other sources.
func (s *Server) CompleteLink(token, slug string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.linkTokens[token]
	if t == nil {
		return errors.New("labhealthtest: no such link token")
	}
	if len(t.allowed) > 0 && !slices.Contains(t.allowed, slug) {
		return errors.New("labhealthtest: the link token is for other sources")
	}
	u := s.user(t.userID)
	if u == nil {
		return errNoUser
	}
	delete(s.linkTokens, token)
	s.connect(u, slug)
	return nil
}

// linkSource is a provider that a user can choose.
type linkSource struct {
	ID int `json:"id"`
	source
	Description string  `json:"description"`
	OAuthURL    *string `json:"oauth_url"`
	AuthType    string  `json:"auth_type"`
}

func newLinkSource(p provider) linkSource {
	v := linkSource{ID: p.id, source: sourceOf(p.slug), Description: p.description(), AuthType: p.authType}
	if p.authType == "oauth" {
		v.OAuthURL = new("https://oauth.example.com/" + p.slug)
	}
	return v
}

func (s *Server) listLinkProviders(*request) (any, error) {
	type choice struct {
		linkSource
		FormComponents map[string]any `json:"form_components"`
	}
	list := []choice{}
	for _, p := range providers {
		form := map[string]any{}
		if p.authType == "password" || p.authType == "email" {
			form[p.authType] = map[string]string{"type": "text"}
		}
		list = append(list, choice{newLinkSource(p), form})
	}
	return list, nil
}

// getOAuthProvider does not need a link token.
func (s *Server) getOAuthProvider(r *request) (any, error) {
	p := providerOf(r.vars["oauth_provider"])
	return struct {
		linkSource
		Group           *string `json:"group"`
		SourceType      string  `json:"source_type"`
		IsActive        bool    `json:"is_active"`
		BackfillNumDays int     `json:"backfill_num_days"`
	}{newLinkSource(p), nil, p.sourceType, true, 90}, nil
}

// connectDemo reports some errors with status 200, like the service. Demo connections have
// historical pulls and a device like others.
func (s *Server) connectDemo(r *request) (any, error) {
	var body struct {
		UserID   uuid.UUID `json:"user_id"`
		Provider string    `json:"provider"`
	}
	r.decode(&body)
	u := s.user(body.UserID)
	switch {
	case u == nil:
		return nil, userNotFound
	case u.isConnected(body.Provider):
		return demoConnection{false, "The demo provider is already connected"}, nil
	case s.ownTeam().Sandbox.Duplicate && s.isConnectedElsewhere(u, body.Provider):
		return &response{statusCode: http.StatusOK, body: encode(map[string]string{
			"state": "error", "error_type": "duplicate_connection", "error": "Another user has connected this provider account",
		})}, nil
	}
	s.connect(u, body.Provider)
	return demoConnection{true, "The demo provider is connected"}, nil
}

type demoConnection struct {
	Success bool   `json:"success"`
	Detail  string `json:"detail"`
}

// isConnectedElsewhere reports whether another user has connected the source. All demo connections
// have the same account.
func (s *Server) isConnectedElsewhere(u *user, slug string) bool {
	return slices.ContainsFunc(s.users, func(other *user) bool { return other != u && other.isConnected(slug) })
}
