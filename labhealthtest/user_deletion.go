// Deleting users and undoing it.

package labhealthtest

import (
	"cmp"
	"net/http"
	"slices"
	"time"
)

// undoPeriod is how long a deletion can be undone.
const undoPeriod = 7 * 24 * time.Hour

var success = map[string]bool{"success": true}

// deleteUser removes a user from all lists and releases the client user ID. Orders remain.
func (s *Server) deleteUser(r *request, u *user) (any, error) {
	u.deletedAt = r.now
	u.ConnectedSources, u.pulls = []*connectedSource{}, nil
	i, _ := slices.BinarySearchFunc(s.users, u, compareNumber)
	s.users = slices.Delete(s.users, i, i+1)
	delete(s.userByClient, u.ClientUserID)
	s.deleted = append(s.deleted, u)
	s.reportUser(u)
	return success, nil
}

// undoDelete restores a user, in the former position in the list but without connected sources.
func (s *Server) undoDelete(r *request) (any, error) {
	id := r.queryOne("user_id")
	clientUserID, byClient := r.queryLast("client_user_id")
	if (id == "") != byClient {
		r.addValueError([]any{"query"}, "exactly one of user_id and client_user_id is required", jsonNull)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	i := lastIndexFunc(s.deleted, func(u *user) bool {
		if byClient {
			return u.ClientUserID == clientUserID
		}
		return u.UserID.String() == id
	})
	if i < 0 {
		return nil, userNotFound
	}
	u := s.deleted[i]
	if r.now.Sub(u.deletedAt) > undoPeriod {
		return nil, userNotFound
	}
	if s.userByClient[u.ClientUserID] != nil {
		return nil, reject(http.StatusBadRequest, "Client user id already exists.")
	}
	s.deleted = slices.Delete(s.deleted, i, i+1)
	u.deletedAt = time.Time{}
	at, _ := slices.BinarySearchFunc(s.users, u, compareNumber)
	s.users = slices.Insert(s.users, at, u)
	s.userByClient[u.ClientUserID] = u
	s.reportUser(u)
	return success, nil
}

func compareNumber(a, b *user) int { return cmp.Compare(a.number, b.number) }

func lastIndexFunc[E any](list []E, f func(E) bool) int {
	for i, e := range slices.Backward(list) {
		if f(e) {
			return i
		}
	}
	return -1
}
