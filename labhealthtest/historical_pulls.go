// Historical pulls.

package labhealthtest

import (
	"slices"
	"time"

	"github.com/google/uuid"
)

// pulledResources are pulled from every connected source.
var pulledResources = []string{"activity", "sleep", "workouts"}

// historicalPull is the pull of a resource's older data from a source of a user.
type historicalPull struct {
	slug, resource string
	state          pullState
	attempt        *lastAttempt // nil if there is none
}

type pullState struct {
	days         int
	Status       string       `json:"status"`
	RangeStart   timestamp    `json:"range_start"`
	RangeEnd     timestamp    `json:"range_end"`
	Timeline     pullTimeline `json:"timeline"`
	DaysWithData int          `json:"days_with_data"`
	Release      string       `json:"release"`
	TraceID      *string      `json:"trace_id"`
	ErrorDetails *string      `json:"error_details"`
}

type pullTimeline struct {
	ScheduledAt timestamp  `json:"scheduled_at"`
	StartedAt   *timestamp `json:"started_at"`
	EndedAt     *timestamp `json:"ended_at"`
}

// defaultPullDays is the length of a pull without data pull preferences.
const defaultPullDays = 90

func (s *Server) newHistoricalPull(slug, resource string, now time.Time) *historicalPull {
	days := s.daysToPull(slug, resource)
	return &historicalPull{slug: slug, resource: resource, state: pullState{
		days: days, RangeStart: timestamp(now.AddDate(0, 0, -days)), RangeEnd: timestamp(now),
		Timeline: pullTimeline{ScheduledAt: timestamp(now)}, Release: "2025-05-09",
	}}
}

// setStatus sets the status and the fields that depend on it.
func (p *pullState) setStatus(status string, now time.Time) {
	p.Status, p.DaysWithData = status, 0
	p.Timeline.StartedAt, p.Timeline.EndedAt = new(timestamp(now)), nil
	switch status {
	case "scheduled":
		p.Timeline.StartedAt = nil
	case "failure":
		p.Timeline.EndedAt = p.Timeline.StartedAt
	case "success":
		p.DaysWithData = p.days
		p.Timeline.EndedAt = p.Timeline.StartedAt
	}
}

// addHistoricalPulls adds successful pulls from a source that was connected.
func (s *Server) addHistoricalPulls(u *user, slug string) {
	now := s.now()
	for _, resource := range pulledResources {
		p := s.newHistoricalPull(slug, resource, now)
		p.state.setStatus("success", now)
		p.attempted(now, "success")
		u.pulls = append(u.pulls, p)
	}
}

// SetHistoricalPull sets the status of the historical pull of a resource, such as "sleep", from a
// connected source of a user. The status is "success", "failure", "in_progress", "scheduled",
// "retrying" or any other. details is the reason, such as "provider_rate_limit_exceeded"; it is
// null if empty. A success sends the event of the pull, such as historical.data.sleep.created.
// SetHistoricalPull returns an error if the user does not exist or the source is not connected.
func (s *Server) SetHistoricalPull(userID uuid.UUID, slug, resource, status, details string) error {
	return s.withSource(userID, slug, func(u *user, _ *connectedSource) error {
		i := slices.IndexFunc(u.pulls, func(p *historicalPull) bool { return p.slug == slug && p.resource == resource })
		if i < 0 {
			i = len(u.pulls)
			u.pulls = append(u.pulls, s.newHistoricalPull(slug, resource, s.now()))
		}
		if status == "success" || status == "failure" {
			u.pulls[i].attempted(s.now(), status)
		}
		p := &u.pulls[i].state
		p.setStatus(status, s.now())
		p.ErrorDetails = nil
		if details != "" {
			p.ErrorDetails = &details
		}
		s.reportUser(u)
		if status == "success" {
			s.emit(u, "historical.data."+resource+".created", map[string]any{
				"user_id": u.UserID, "start_date": p.RangeStart, "end_date": p.RangeEnd, "is_final": true, "provider": slug,
			})
		}
		return nil
	})
}

type userPulls struct {
	UserID   uuid.UUID                `json:"user_id"`
	Provider map[string]providerPulls `json:"provider"`
}

type providerPulls struct {
	Pulled    map[string]pullState `json:"pulled"`
	NotPulled []string             `json:"not_pulled"`
}

// pullsFrom returns the historical pulls of a user by provider. It includes those that match.
func (u *user) pullsFrom(match func(slug string) bool) userPulls {
	found := userPulls{u.UserID, map[string]providerPulls{}}
	for _, p := range u.pulls {
		if !match(p.slug) {
			continue
		}
		if found.Provider[p.slug].Pulled == nil {
			found.Provider[p.slug] = providerPulls{map[string]pullState{}, []string{}}
		}
		found.Provider[p.slug].Pulled[p.resource] = p.state
	}
	return found
}

// listHistoricalPulls omits users without a pull.
func (s *Server) listHistoricalPulls(r *request) (any, error) {
	return listUserPages(s, r, func(u *user, match func(string) bool) (userPulls, bool) {
		v := u.pullsFrom(match)
		return v, len(v.Provider) > 0
	})
}

// lastListedUser returns the number of the user that the cursor identifies, or 0 without a cursor.
func (s *Server) lastListedUser(r *request) (number int, err error) {
	cursor, ok := r.cursor()
	if !ok {
		return 0, nil
	}
	text, err := decodeCursor(cursor)
	id, idErr := uuid.FromBytes([]byte(text))
	if err != nil || idErr != nil || s.userByID[id] == nil {
		return 0, errInvalidCursor
	}
	return s.userByID[id].number, nil
}
