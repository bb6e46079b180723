// Links with a password, a code or an email address, and sign-in tokens.

package labhealthtest

import (
	"cmp"
	"strings"
)

// linkTokenHeader has the link token of a request. Its name at the service is not documented:
// without it, the token that was created last counts.
const linkTokenHeader = "X-Link-Token"

// The credentials with which a link fails or needs a code.
const (
	wrongPassword = "wrong" // any other is right
	mfaUser       = "mfa"   // prefix of the users of whom a code is required
	mfaCode       = "123456"
)

// linkProvider connects the user of a link token to a provider, if check returns no error. Errors
// have the status 200.
func (s *Server) linkProvider(r *request, check func(*linkToken) (errorType, message string)) (any, error) {
	value := cmp.Or(r.header.Get(linkTokenHeader), s.lastLinkToken)
	t, provider := s.linkTokens[value], r.vars["provider"]
	result := map[string]any{
		"state": "error", "redirect_url": nil, "error_type": nil, "error": nil, "provider_mfa": nil, "provider": provider, "connected": false, "provider_id": nil,
	}
	errorType, message := "invalid_token", "The link token is invalid"
	if t != nil && s.user(t.userID) != nil {
		errorType, message = check(t)
	}
	switch {
	case errorType == "pending":
		t.pendingMFA = provider
		result["state"], result["provider_mfa"] = "pending_provider_mfa", map[string]string{"method": "sms", "hint": "••• ••23"}
	case errorType != "":
		result["error_type"], result["error"] = errorType, message
	default:
		u := s.user(t.userID)
		s.connect(u, provider)
		delete(s.linkTokens, value)
		result["state"], result["connected"], result["provider_id"] = "success", true, u.connection(provider).externalUserID()
	}
	return result, nil
}

func (s *Server) connectPassword(r *request) (any, error) {
	var body struct {
		Username string `json:"username"`
		Password string `json:"password"`
	}
	r.decode(&body)
	return s.linkProvider(r, func(t *linkToken) (errorType, message string) {
		switch {
		case body.Password == wrongPassword:
			return "provider_credential_error", "The provider rejected the username or the password"
		case s.ownTeam().Sandbox.Duplicate && s.isConnectedElsewhere(s.user(t.userID), r.vars["provider"]):
			return "duplicate_connection", "Another user has connected this provider account"
		case strings.HasPrefix(body.Username, mfaUser):
			return "pending", ""
		}
		return "", ""
	})
}

func (s *Server) completeMFA(r *request) (any, error) {
	var body struct {
		Code string `json:"mfa_code"`
	}
	r.decode(&body)
	return s.linkProvider(r, func(t *linkToken) (errorType, message string) {
		switch {
		case t.pendingMFA != r.vars["provider"]:
			return "token_not_validated", "The provider has asked for no code"
		case body.Code != mfaCode:
			return "incorrect_mfa_code", "The code is wrong"
		}
		return "", ""
	})
}

// connectEmail responds in a form that is not documented.
func (s *Server) connectEmail(r *request) (any, error) {
	result, err := s.linkProvider(r, func(*linkToken) (errorType, message string) { return "", "" })
	if fields, ok := result.(map[string]any); ok && fields["state"] == "success" {
		return map[string]any{"success": true, "redirect_url": nil}, nil
	}
	return result, err
}

// createSignInToken returns another token each time.
func (s *Server) createSignInToken(_ *request, u *user) (any, error) {
	return map[string]any{"user_id": u.UserID, "sign_in_token": s.deriveKey("sit_")}, nil
}
