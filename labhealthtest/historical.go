package labhealthtest

import (
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
)

// pulledResources are pulled from every source that is connected.
var pulledResources = []string{"activity", "sleep", "workouts"}

// pull is one historical pull of a user.
type pull struct {
	slug, resource string
	state          pullState
}

type pullState struct {
	Status       string       `json:"status"`
	RangeStart   stamp        `json:"range_start"`
	RangeEnd     stamp        `json:"range_end"`
	Timeline     pullTimeline `json:"timeline"`
	DaysWithData int          `json:"days_with_data"`
	Release      string       `json:"release"`
	TraceID      *string      `json:"trace_id"`
	ErrorDetails *string      `json:"error_details"`
}

type pullTimeline struct {
	ScheduledAt stamp  `json:"scheduled_at"`
	StartedAt   *stamp `json:"started_at"`
	EndedAt     *stamp `json:"ended_at"`
}

// pullHistory pulls the older data of a source that was connected, with success.
func (s *Server) pullHistory(u *user, slug string) {
	now := s.now()
	for _, resource := range pulledResources {
		u.pulls = append(u.pulls, &pull{slug, resource, pullState{
			Status: "success", RangeStart: stamp(now.AddDate(0, 0, -90)), RangeEnd: stamp(now),
			Timeline:     pullTimeline{stamp(now), new(stamp(now)), new(stamp(now))},
			DaysWithData: 90, Release: "2025-05-09",
		}})
	}
}

// SetHistoricalPull changes the state of the pull of a resource, such as "sleep", from a source that a user has connected:
// "success", "failure", "in_progress", "scheduled", "retrying" or any other. details, such as "provider_rate_limit_exceeded",
// says why; it is null where it is empty. A success sends the event of the pull, such as historical.data.sleep.created. It fails
// for a user that does not exist and a source that is not connected.
func (s *Server) SetHistoricalPull(userID uuid.UUID, slug, resource, status, details string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.user(userID)
	if u == nil {
		return errNoUser
	}
	if !slices.ContainsFunc(u.ConnectedSources, func(c connectedSource) bool { return c.Source.Slug == slug }) {
		return errors.New("labhealthtest: the source is not connected")
	}
	i := slices.IndexFunc(u.pulls, func(p *pull) bool { return p.slug == slug && p.resource == resource })
	if i < 0 {
		i = len(u.pulls)
		now := stamp(s.now())
		u.pulls = append(u.pulls, &pull{slug, resource, pullState{
			RangeStart: stamp(time.Time(now).AddDate(0, 0, -90)), RangeEnd: now, Timeline: pullTimeline{ScheduledAt: now}, Release: "2025-05-09",
		}})
	}
	p := &u.pulls[i].state
	p.Status, p.ErrorDetails, p.DaysWithData = status, nil, 0
	p.Timeline.StartedAt, p.Timeline.EndedAt = new(stamp(s.now())), nil
	if details != "" {
		p.ErrorDetails = &details
	}
	switch status {
	case "scheduled":
		p.Timeline.StartedAt = nil
	case "failure":
		p.Timeline.EndedAt = p.Timeline.StartedAt
	case "success":
		p.DaysWithData = 90
		p.Timeline.EndedAt = p.Timeline.StartedAt
		s.emit(u, "historical.data."+resource+".created", map[string]any{
			"user_id": u.UserID, "start_date": p.RangeStart, "end_date": p.RangeEnd, "is_final": true, "provider": slug,
		})
	}
	return nil
}

// listHistoricalPulls pages by a cursor, which names the last user of the page before. Users without a connected source are left
// out.
func (s *Server) listHistoricalPulls(r *request) answer {
	type providerPulls struct {
		Pulled    map[string]pullState `json:"pulled"`
		NotPulled []string             `json:"not_pulled"`
	}
	type userPulls struct {
		UserID   uuid.UUID                `json:"user_id"`
		Provider map[string]providerPulls `json:"provider"`
	}
	userID := r.queryOne("user_id", aUUID)
	provider, byProvider := r.queryLast("provider")
	limit := r.queryRange("user_limit", 50, 1, 0)
	if a, bad := r.invalid(); bad {
		return a
	}
	after := 0
	if cursor, ok := r.queryLast("next_cursor"); ok {
		id, err := base64.RawURLEncoding.DecodeString(cursor)
		last, notID := uuid.FromBytes(id)
		if err != nil || notID != nil || s.userByID[last] == nil {
			return refuse(http.StatusBadRequest, "Invalid cursor")
		}
		after = s.userByID[last].number
	}
	page := struct {
		Data       []userPulls `json:"data"`
		NextCursor *string     `json:"next_cursor"`
	}{Data: []userPulls{}}
	for _, u := range s.users {
		if u.number <= after || userID != "" && u.UserID.String() != userID {
			continue
		}
		found := userPulls{u.UserID, map[string]providerPulls{}}
		for _, p := range u.pulls {
			if byProvider && p.slug != provider {
				continue
			}
			if found.Provider[p.slug].Pulled == nil {
				found.Provider[p.slug] = providerPulls{map[string]pullState{}, []string{}}
			}
			found.Provider[p.slug].Pulled[p.resource] = p.state
		}
		if len(found.Provider) == 0 {
			continue
		}
		if len(page.Data) == limit {
			page.NextCursor = new(base64.RawURLEncoding.EncodeToString(page.Data[limit-1].UserID[:]))
			break
		}
		page.Data = append(page.Data, found)
	}
	return reply(page)
}
