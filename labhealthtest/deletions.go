package labhealthtest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
)

// graceLife is how long a deletion can be undone.
const graceLife = 7 * 24 * time.Hour

// success is the answer to deleting a user and to undoing that.
var success = reply(map[string]bool{"success": true})

// deleteUser takes a user out of all lists. The reference is free again; the orders stay.
func (s *Server) deleteUser(r *request) answer {
	id := r.pathUUID("user_id")
	if a, bad := r.invalid(); bad {
		return a
	}
	u := s.user(id)
	if u == nil {
		return s.noUser(id)
	}
	u.deletedAt = r.now
	u.ConnectedSources, u.pulls = []connectedSource{}, nil
	i, _ := slices.BinarySearchFunc(s.users, u, byNumber)
	s.users = slices.Delete(s.users, i, i+1)
	delete(s.userByClient, u.ClientUserID)
	s.deleted = append(s.deleted, u)
	return success
}

// undoDelete brings a user back, at the old place of the list but without connected sources.
func (s *Server) undoDelete(r *request) answer {
	id := r.queryOne("user_id", aUUID)
	clientUserID, byClient := r.queryLast("client_user_id")
	if (id == "") != byClient {
		r.addValueError([]any{"query"}, "exactly one of user_id and client_user_id is required", []byte("null"))
	}
	if a, bad := r.invalid(); bad {
		return a
	}
	for i, u := range slices.Backward(s.deleted) { // Of several with one reference the newest counts.
		if byClient && u.ClientUserID != clientUserID || !byClient && u.UserID.String() != id {
			continue
		}
		if r.now.Sub(u.deletedAt) > graceLife {
			break
		}
		if s.userByClient[u.ClientUserID] != nil {
			return refuse(http.StatusBadRequest, "Client user id already exists.")
		}
		s.deleted = slices.Delete(s.deleted, i, i+1)
		u.deletedAt = time.Time{}
		at, _ := slices.BinarySearchFunc(s.users, u, byNumber)
		s.users = slices.Insert(s.users, at, u)
		s.userByClient[u.ClientUserID] = u
		return success
	}
	return noUser
}

func byNumber(a, b *user) int { return cmp.Compare(a.number, b.number) }

// noUser is the answer about a user that does not exist or is deleted.
func (s *Server) noUser(id uuid.UUID) answer {
	if u := s.userByID[id]; u != nil && s.now().Sub(u.deletedAt) <= graceLife {
		return refuse(http.StatusNotFound, "User is scheduled for deletion")
	}
	return noUser
}

// patchUser changes the members that are given; null clears them. A reference that is taken is a 409 here, and a 400 where a user
// is created.
func (s *Server) patchUser(r *request) answer {
	id := r.pathUUID("user_id")
	var body map[string]*string
	r.decode(patchUserBody, &body)
	if a, bad := r.invalid(); bad {
		return a
	}
	u := s.user(id)
	if u == nil {
		return s.noUser(id)
	}
	var given map[string]json.RawMessage
	json.Unmarshal(r.body, &given) // It was decoded before.
	for name := range body {
		if _, ok := given[name]; !ok {
			delete(body, name)
		}
	}
	if len(body) == 0 {
		return refuse(http.StatusBadRequest, "Nothing to patch")
	}
	if v := body["client_user_id"]; v != nil {
		if other := s.userByClient[*v]; other != nil && other != u {
			return refuse(http.StatusConflict, "Client user id already exists.")
		}
		delete(s.userByClient, u.ClientUserID)
		u.ClientUserID = *v
		s.userByClient[*v] = u
	}
	for name, v := range body {
		switch name {
		case "fallback_time_zone":
			u.FallbackTimeZone = nil
			if v != nil {
				u.FallbackTimeZone = &fallbackZone{*v, "manual", stamp(r.now)}
			}
		case "fallback_birth_date":
			u.FallbackBirthDate = nil
			if v != nil {
				u.FallbackBirthDate = &fallbackDate{*v, "manual", stamp(r.now)}
			}
		case "ingestion_start":
			u.IngestionStart = v
		case "ingestion_end":
			u.IngestionEnd = v
		}
	}
	return answer{status: http.StatusNoContent}
}
