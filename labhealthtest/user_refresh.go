// The refresh of a user, which is limited.

package labhealthtest

import (
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
)

// maxRefreshes is the number of refreshes of a user in an hour.
const maxRefreshes = 8

type refreshed struct {
	Success           bool      `json:"success"`
	UserID            uuid.UUID `json:"user_id"`
	RefreshedSources  []string  `json:"refreshed_sources"`
	InProgressSources []string  `json:"in_progress_sources"`
	FailedSources     []string  `json:"failed_sources"`
}

// refreshUser responds at once. A source whose historical pull is not done is in progress, and one
// whose connection does not work has failed. The status of a response to more refreshes than are
// allowed is not documented.
func (s *Server) refreshUser(r *request, u *user) (any, error) {
	u.refreshes = slices.DeleteFunc(u.refreshes, func(t time.Time) bool { return r.now.Sub(t) >= time.Hour })
	if len(u.refreshes) >= maxRefreshes {
		return nil, reject(http.StatusTooManyRequests, "A user can be refreshed 8 times per hour")
	}
	u.refreshes = append(u.refreshes, r.now)
	s.reportUser(u)
	v := refreshed{true, u.UserID, []string{}, []string{}, []string{}}
	for _, p := range u.pulls {
		name := p.slug + "/" + p.resource
		switch {
		case u.connection(p.slug).err != nil:
			v.FailedSources = append(v.FailedSources, name)
			p.attempted(r.now, "failure")
		case p.state.Status == "success" || p.state.Status == "failure":
			v.RefreshedSources = append(v.RefreshedSources, name)
			p.attempted(r.now, "success")
		default:
			v.InProgressSources = append(v.InProgressSources, name)
		}
	}
	switch {
	case len(v.InProgressSources) > 0:
		return &response{statusCode: http.StatusAccepted, body: encode(v)}, nil
	case len(v.RefreshedSources) == 0:
		return nil, &response{statusCode: http.StatusBadRequest, body: encode(struct {
			Success       bool      `json:"success"`
			UserID        uuid.UUID `json:"user_id"`
			Error         string    `json:"error"`
			FailedSources []string  `json:"failed_sources"`
		}{false, u.UserID, "No source could be refreshed", v.FailedSources})}
	}
	return v, nil
}
