// Users and their sources.

package labhealthtest

import (
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
)

type user struct {
	UserID           uuid.UUID          `json:"user_id"`
	TeamID           uuid.UUID          `json:"team_id"`
	ClientUserID     string             `json:"client_user_id"`
	CreatedOn        timestamp          `json:"created_on"`
	ConnectedSources []*connectedSource `json:"connected_sources"`
	// Omitted if unset: in the interface specification the fallbacks cannot be null, and it does
	// not have the dates of ingestion.
	FallbackBirthDate *fallbackDate `json:"fallback_birth_date,omitempty"`
	FallbackTimeZone  *fallbackZone `json:"fallback_time_zone,omitempty"`
	IngestionStart    *string       `json:"ingestion_start,omitempty"`
	IngestionEnd      *string       `json:"ingestion_end,omitempty"`

	number    int       // counts users from 1, in the order of creation
	deletedAt time.Time // zero unless deleted
	pulls     []*historicalPull
	wearables *wearables     // nil if none was added
	info      map[string]any // nil if there is none
	refreshes []time.Time    // those of the last hour
	sent      map[sentKey]int

	insurances []*insurance // oldest first
}

type fallbackDate struct {
	Value      string    `json:"value"`
	SourceSlug string    `json:"source_slug"`
	UpdatedAt  timestamp `json:"updated_at"`
}

type fallbackZone struct {
	ID         string    `json:"id"`
	SourceSlug string    `json:"source_slug"`
	UpdatedAt  timestamp `json:"updated_at"`
}

// manualTimeZone returns a time zone that the application has set, or nil.
func manualTimeZone(id *string, now timestamp) *fallbackZone {
	if id == nil {
		return nil
	}
	return &fallbackZone{*id, "manual", now}
}

// manualBirthDate returns a date of birth that the application has set, or nil.
func manualBirthDate(date *string, now timestamp) *fallbackDate {
	if date == nil {
		return nil
	}
	return &fallbackDate{*date, "manual", now}
}

var userNotFound = reject(http.StatusNotFound, "User not found")

// AddUser adds a user with the application's own user ID and returns the user's ID. If there is
// such a user, it returns the ID of that user.
func (s *Server) AddUser(clientUserID string) uuid.UUID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.userByClient[clientUserID]; u != nil {
		return u.UserID
	}
	return s.addUser(clientUserID).UserID
}

// AddUsers adds n users with the client user IDs "user-1", "user-2" and so on, and returns their
// IDs.
func (s *Server) AddUsers(n int) []uuid.UUID {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]uuid.UUID, 0, max(n, 0))
	for i := len(s.users) + 1; len(ids) < n; i++ {
		if clientUserID := fmt.Sprintf("user-%d", i); s.userByClient[clientUserID] == nil {
			ids = append(ids, s.addUser(clientUserID).UserID)
		}
	}
	return ids
}

func (s *Server) addUser(clientUserID string) *user {
	s.lastUser++
	u := &user{
		number:           s.lastUser,
		UserID:           s.newID(),
		TeamID:           s.TeamID,
		ClientUserID:     clientUserID,
		CreatedOn:        timestamp(s.now()),
		ConnectedSources: []*connectedSource{},
	}
	s.users = append(s.users, u)
	s.userByID[u.UserID] = u
	s.userByClient[clientUserID] = u
	s.reportUser(u)
	return u
}

// user returns a user that exists and is not deleted, or nil.
func (s *Server) user(id uuid.UUID) *user {
	if u := s.userByID[id]; u != nil && u.deletedAt.IsZero() {
		return u
	}
	return nil
}

// withUser calls f with a user.
func (s *Server) withUser(id uuid.UUID, f func(*user) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.user(id); u != nil {
		return f(u)
	}
	return errNoUser
}

// withSource calls f with a source that a user has connected.
func (s *Server) withSource(userID uuid.UUID, slug string, f func(*user, *connectedSource) error) error {
	return s.withUser(userID, func(u *user) error {
		if c := u.connection(slug); c != nil {
			return f(u, c)
		}
		return errNotConnected
	})
}

// requestedUser returns the user in the path.
func (s *Server) requestedUser(r *request) (*user, error) {
	id := r.pathUUID("user_id")
	if u := s.user(id); u != nil {
		return u, nil
	}
	if u := s.userByID[id]; u != nil && s.now().Sub(u.deletedAt) <= undoPeriod {
		return nil, reject(http.StatusNotFound, "User is scheduled for deletion")
	}
	return nil, userNotFound
}

// listUsers pages by offset and limit. The service does not validate their range but fails.
func (s *Server) listUsers(r *request) (any, error) {
	offset, limit := r.queryInt("offset"), r.queryInt("limit")
	if offset < 0 || limit < 1 || limit > 500 {
		return nil, errInternal
	}
	from := min(offset, len(s.users))
	to := min(from+limit, len(s.users))
	return struct {
		Users  []*user `json:"users"`
		Total  int     `json:"total"`
		Offset int     `json:"offset"`
		Limit  int     `json:"limit"`
	}{append([]*user{}, s.users[from:to]...), len(s.users), offset, limit}, nil
}

// createUser responds with the existing user if the client user ID is in use.
func (s *Server) createUser(r *request) (any, error) {
	var body struct {
		ClientUserID      string  `json:"client_user_id"`
		FallbackTimeZone  *string `json:"fallback_time_zone"`
		FallbackBirthDate *string `json:"fallback_birth_date"`
		IngestionStart    *string `json:"ingestion_start"`
		IngestionEnd      *string `json:"ingestion_end"`
	}
	r.decode(&body)
	if u := s.userByClient[body.ClientUserID]; u != nil {
		return nil, reject(http.StatusBadRequest, struct {
			ErrorType    string    `json:"error_type"`
			ErrorMessage string    `json:"error_message"`
			UserID       uuid.UUID `json:"user_id"`
			CreatedOn    timestamp `json:"created_on"`
		}{"INVALID_REQUEST", "Client user id already exists.", u.UserID, u.CreatedOn})
	}
	u := s.addUser(body.ClientUserID)
	u.IngestionStart, u.IngestionEnd = body.IngestionStart, body.IngestionEnd
	u.FallbackTimeZone = manualTimeZone(body.FallbackTimeZone, u.CreatedOn)
	u.FallbackBirthDate = manualBirthDate(body.FallbackBirthDate, u.CreatedOn)
	return u, nil
}

// patchUser changes the fields of the body. Null clears a field. A client user ID in use is a 409
// response here, and a 400 response in createUser.
func (s *Server) patchUser(r *request, u *user) (any, error) {
	var body map[string]*string
	r.decode(&body)
	if len(body) == 0 {
		return nil, reject(http.StatusBadRequest, "Nothing to patch")
	}
	if id := body["client_user_id"]; id != nil {
		if other := s.userByClient[*id]; other != nil && other != u {
			return nil, reject(http.StatusConflict, "Client user id already exists.")
		}
		delete(s.userByClient, u.ClientUserID)
		u.ClientUserID = *id
		s.userByClient[*id] = u
	}
	for name, value := range body {
		switch name {
		case "fallback_time_zone":
			u.FallbackTimeZone = manualTimeZone(value, timestamp(r.now))
		case "fallback_birth_date":
			u.FallbackBirthDate = manualBirthDate(value, timestamp(r.now))
		case "ingestion_start":
			u.IngestionStart = value
		case "ingestion_end":
			u.IngestionEnd = value
		}
	}
	s.reportUser(u)
	return noContent, nil
}

func (s *Server) getUser(r *request) (any, error) { return s.requestedUser(r) }

func (s *Server) resolveUser(r *request) (any, error) {
	if u := s.userByClient[r.vars["client_user_id"]]; u != nil {
		return u, nil
	}
	return nil, userNotFound
}
