package labhealthtest

import (
	"fmt"
	"net/http"
	"strings"
	"unicode"

	"github.com/google/uuid"
)

// AddUser adds a user with the application's own reference and returns the user's id. Where there is such a user already it
// returns that one's id.
func (s *Server) AddUser(clientUserID string) uuid.UUID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.userByClient[clientUserID]; u != nil {
		return u.UserID
	}
	return s.addUser(clientUserID).UserID
}

// AddUsers adds n users, whose references are "user-1", "user-2" and so on, and returns their ids.
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
		CreatedOn:        stamp(s.now()),
		ConnectedSources: []connectedSource{},
	}
	s.users = append(s.users, u)
	s.userByID[u.UserID] = u
	s.userByClient[clientUserID] = u
	return u
}

// Connect connects a source, such as "oura" or "apple_health_kit", to a user, as if the user had allowed it, and sends the event
// provider.connection.created. It fails for a user that does not exist. Connecting a source again sends the event again.
func (s *Server) Connect(userID uuid.UUID, slug string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.user(userID)
	if u == nil {
		return errNoUser
	}
	src := source{Name: sourceName(slug), Slug: slug, Logo: "https://example.com/logos/" + slug + ".png"}
	known := false
	for _, c := range u.ConnectedSources {
		known = known || c.Source.Slug == slug
	}
	if !known {
		u.ConnectedSources = append(u.ConnectedSources, connectedSource{stamp(s.now()), src})
		s.pullHistory(u, slug)
	}
	s.emit(u, "provider.connection.created", map[string]any{
		"user_id":  u.UserID,
		"source":   src,
		"provider": src,
	})
	return nil
}

// sourceName makes "Apple Health Kit" of "apple_health_kit".
func sourceName(slug string) string {
	words := strings.FieldsFunc(slug, func(r rune) bool { return r == '_' || r == '-' })
	for i, w := range words {
		first := []rune(w)
		first[0] = unicode.ToUpper(first[0])
		words[i] = string(first)
	}
	return strings.Join(words, " ")
}

// listUsers pages by offset and limit. The service does not check their range: it fails.
func (s *Server) listUsers(r *request) answer {
	offset := r.queryInt("offset", 0)
	limit := r.queryInt("limit", 100)
	if a, bad := r.invalid(); bad {
		return a
	}
	if offset < 0 || limit < 1 || limit > 500 {
		return internalError
	}
	from := min(offset, len(s.users))
	to := min(from+limit, len(s.users))
	return reply(struct {
		Users  []*user `json:"users"`
		Total  int     `json:"total"`
		Offset int     `json:"offset"`
		Limit  int     `json:"limit"`
	}{append([]*user{}, s.users[from:to]...), len(s.users), offset, limit})
}

// createUser answers 400 with the existing user where the reference is taken.
func (s *Server) createUser(r *request) answer {
	var body struct {
		ClientUserID      string  `json:"client_user_id"`
		FallbackTimeZone  *string `json:"fallback_time_zone"`
		FallbackBirthDate *string `json:"fallback_birth_date"`
		IngestionStart    *string `json:"ingestion_start"`
		IngestionEnd      *string `json:"ingestion_end"`
	}
	r.decode(createUserBody, &body)
	if a, bad := r.invalid(); bad {
		return a
	}
	if u := s.userByClient[body.ClientUserID]; u != nil {
		return refuse(http.StatusBadRequest, struct {
			ErrorType    string    `json:"error_type"`
			ErrorMessage string    `json:"error_message"`
			UserID       uuid.UUID `json:"user_id"`
			CreatedOn    stamp     `json:"created_on"`
		}{"INVALID_REQUEST", "Client user id already exists.", u.UserID, u.CreatedOn})
	}
	u := s.addUser(body.ClientUserID)
	u.IngestionStart, u.IngestionEnd = body.IngestionStart, body.IngestionEnd
	if body.FallbackTimeZone != nil {
		u.FallbackTimeZone = &fallbackZone{*body.FallbackTimeZone, "manual", u.CreatedOn}
	}
	if body.FallbackBirthDate != nil {
		u.FallbackBirthDate = &fallbackDate{*body.FallbackBirthDate, "manual", u.CreatedOn}
	}
	return reply(u)
}

func (s *Server) getUser(r *request) answer {
	id := r.pathUUID("user_id")
	if a, bad := r.invalid(); bad {
		return a
	}
	if u := s.user(id); u != nil {
		return reply(u)
	}
	return s.noUser(id)
}

func (s *Server) resolveUser(r *request) answer {
	if u := s.userByClient[r.vars["client_user_id"]]; u != nil {
		return reply(u)
	}
	return noUser
}

var noUser = refuse(http.StatusNotFound, "User not found")

// user returns a user that is not deleted.
func (s *Server) user(id uuid.UUID) *user {
	if u := s.userByID[id]; u != nil && u.deletedAt.IsZero() {
		return u
	}
	return nil
}
