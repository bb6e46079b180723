// Which data was read and sent, and lists with one element per user.

package labhealthtest

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"
)

type resourceStatistics struct {
	LastAttempt *lastAttempt `json:"last_attempt"`
	OldestData  *timestamp   `json:"oldest_data"`
	NewestData  *timestamp   `json:"newest_data"`
	SentCount   int          `json:"sent_count"`
}

type lastAttempt struct {
	Timestamp timestamp `json:"timestamp"`
	Status    string    `json:"status"`
}

// attempted records an attempt to read the resource.
func (p *historicalPull) attempted(now time.Time, status string) {
	p.attempt = &lastAttempt{timestamp(now), status}
}

// statistics returns what was read and sent of a resource.
func (u *user) statistics(p *historicalPull) resourceStatistics {
	v := resourceStatistics{LastAttempt: p.attempt, SentCount: u.sent[sentKey{p.slug, p.resource}]}
	if p.state.Status == "success" {
		v.OldestData, v.NewestData = &p.state.RangeStart, &p.state.RangeEnd
	}
	return v
}

// sentKey identifies the events of a resource of a source.
type sentKey struct{ slug, resource string }

// countSent counts an event of wearable data that is sent. Other events are ignored.
func (s *Server) countSent(event []byte) {
	const prefix = "daily.data."
	if !bytes.Contains(event, []byte(prefix)) {
		return
	}
	var e struct {
		EventType string    `json:"event_type"`
		UserID    uuid.UUID `json:"user_id"`
		Data      struct {
			Source struct {
				Provider string `json:"provider"`
				Slug     string `json:"slug"`
			} `json:"source"`
		} `json:"data"`
	}
	if json.Unmarshal(event, &e) != nil || s.user(e.UserID) == nil {
		return
	}
	rest, ok := strings.CutPrefix(e.EventType, prefix)
	resource, _, found := strings.Cut(rest, ".")
	slug := e.Data.Source.Provider
	if slug == "" {
		slug = e.Data.Source.Slug
	}
	if !ok || !found || slug == "" {
		return
	}
	u := s.user(e.UserID)
	if u.sent == nil {
		u.sent = map[sentKey]int{}
	}
	u.sent[sentKey{slug, resource}]++
}

type userResources struct {
	UserID   uuid.UUID                                `json:"user_id"`
	Provider map[string]map[string]resourceStatistics `json:"provider"`
}

// resourcesFrom returns the resources of the sources that match. It includes resources that were
// sent although their source is not connected.
func (u *user) resourcesFrom(match func(slug string) bool) userResources {
	found := userResources{u.UserID, map[string]map[string]resourceStatistics{}}
	add := func(slug, resource string, v resourceStatistics) {
		if found.Provider[slug] == nil {
			found.Provider[slug] = map[string]resourceStatistics{}
		}
		found.Provider[slug][resource] = v
	}
	for key, n := range u.sent {
		if match(key.slug) {
			add(key.slug, key.resource, resourceStatistics{SentCount: n})
		}
	}
	for _, p := range u.pulls {
		if match(p.slug) {
			add(p.slug, p.resource, u.statistics(p))
		}
	}
	return found
}

// listResources omits users without a resource.
func (s *Server) listResources(r *request) (any, error) {
	return listUserPages(s, r, func(u *user, match func(string) bool) (userResources, bool) {
		v := u.resourcesFrom(match)
		return v, len(v.Provider) > 0
	})
}

// userPage is a page of a list that has one element per user.
type userPage[E any] struct {
	Data       []E     `json:"data"`
	Next       *string `json:"next"` // the former name of next_cursor
	NextCursor *string `json:"next_cursor"`
}

// listUserPages responds with a page of the elements that element returns for the users. Its cursor
// identifies the last user of the previous page, who may have been deleted since.
func listUserPages[E any](s *Server, r *request, element func(u *user, match func(slug string) bool) (E, bool)) (any, error) {
	userID := r.queryOne("user_id")
	provider, byProvider := r.queryLast("provider")
	last, err := s.lastListedUser(r)
	if err != nil {
		return nil, err
	}
	page, previous := userPage[E]{Data: []E{}}, uuid.Nil
	for _, u := range s.users {
		if u.number <= last || userID != "" && u.UserID.String() != userID {
			continue
		}
		v, ok := element(u, func(slug string) bool { return !byProvider || slug == provider })
		if !ok {
			continue
		}
		if len(page.Data) == r.queryInt("user_limit") {
			page.NextCursor = encodeCursor(string(previous[:]))
			page.Next = page.NextCursor
			break
		}
		page.Data, previous = append(page.Data, v), u.UserID
	}
	return page, nil
}
