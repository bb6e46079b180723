// The demographic data of users.

package labhealthtest

import (
	"maps"
	"net/http"
)

// updateUserInfo keeps optional fields that the body does not have. Null clears them.
func (s *Server) updateUserInfo(r *request, u *user) (any, error) {
	var body map[string]any
	r.decode(&body)
	if u.info == nil {
		u.info = map[string]any{
			"medical_proxy": nil, "race": nil, "ethnicity": nil, "sexual_orientation": nil, "gender_identity": nil,
		}
	}
	maps.Copy(u.info, body)
	s.reportUser(u)
	return u.info, nil
}

func (s *Server) getUserInfo(_ *request, u *user) (any, error) {
	if u.info == nil {
		return nil, reject(http.StatusNotFound, "User info not found")
	}
	return u.info, nil
}
