package console

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// userViews are the pages of users that are or were open, by topic. What they show of a user
// depends on the span, so each has its own topic.
type userViews struct {
	mu      sync.Mutex
	views   map[string]userView
	waiting map[uuid.UUID]bool // users whose pages are updated within a second
	updated map[uuid.UUID]time.Time
}

type userView struct {
	userID   uuid.UUID
	span     span
	asValues bool
	opened   time.Time
}

// viewInterval is the shortest time between two updates of the plots of a user.
const viewInterval = time.Second

// view returns the topic of the changes of a page.
func (l *live) view(userID uuid.UUID, s span, asValues bool, now time.Time) string {
	topic := fmt.Sprintf("user:%s:%s:%v:%v", userID, s.day.Format(time.DateOnly), s.week, asValues)
	l.users.mu.Lock()
	defer l.users.mu.Unlock()
	if l.users.views == nil {
		l.users.views = map[string]userView{}
	}
	for old, v := range l.users.views {
		if now.Sub(v.opened) > time.Minute && !l.watched(old) {
			delete(l.users.views, old)
		}
	}
	l.users.views[topic] = userView{userID, s, asValues, now}
	return topic
}

// userChanged updates the open pages after a change of a user: at once, and then at most once a
// second.
func (c *Console) userChanged(ctx context.Context, id uuid.UUID) {
	u := &c.live.users
	if id == uuid.Nil || !c.live.watched("users") {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.waiting[id] {
		return
	}
	if u.waiting == nil {
		u.waiting, u.updated = map[uuid.UUID]bool{}, map[uuid.UUID]time.Time{}
	}
	u.waiting[id] = true
	wait := max(0, viewInterval-time.Since(u.updated[id]))
	time.AfterFunc(wait, func() {
		u.mu.Lock()
		delete(u.waiting, id)
		for other, at := range u.updated {
			if time.Since(at) > viewInterval {
				delete(u.updated, other)
			}
		}
		u.updated[id] = time.Now()
		u.mu.Unlock()
		if ctx.Err() == nil {
			c.publishUser(ctx, id)
		}
	})
}

// wearablesChanged updates the open pages of the user of a delivery.
func (c *Console) wearablesChanged(ctx context.Context, number int64) {
	if !c.live.watched("users") {
		return
	}
	d, ok, err := c.Inspector.Get(ctx, number)
	if err == nil && ok && d.Applied && !strings.HasPrefix(d.Type, "labtest.") {
		c.userChanged(ctx, d.UserID)
	}
}

// publishUser sends the row of a user, and what each open page shows.
func (c *Console) publishUser(ctx context.Context, id uuid.UUID) {
	head, err := c.userHead(ctx, id)
	if err != nil {
		c.Log.Error("console: cannot update a user", "error", err)
		return
	}
	if head == nil {
		c.live.publish("users", change{ID: "user-" + id.String()})
		return
	}
	row, err := c.rowOf(ctx, head)
	if err != nil {
		c.Log.Error("console: cannot update a user", "error", err)
		return
	}
	c.publishUserRow("users", row)
	row.Current = true
	for topic, v := range c.live.openViews(id) {
		d := *head
		d.Day = v.span.day.Format(time.DateOnly)
		if d.Data, err = c.userWearables(ctx, &d, v.span, v.asValues); err != nil {
			c.Log.Error("console: cannot update a user", "error", err)
			return
		}
		c.publishUserRow(topic, row)
		c.live.publish(topic, change{ID: "user-notes", HTML: c.partial("user-notes", &d)})
		c.live.publish(topic, change{ID: "user-sources", HTML: c.partial("user-sources", &d)})
		c.live.publish(topic, change{ID: "user-data", HTML: c.partial("user-data", d.Data)})
	}
}

// rowOf returns the row of a user in the list.
func (c *Console) rowOf(ctx context.Context, head *userDetail) (userRow, error) {
	row := userRow{UserID: head.UserID, Name: head.Name, Sandbox: head.Sandbox}
	for _, s := range head.Sources {
		row.Sources = append(row.Sources, s.Slug)
	}
	last, _, err := c.Inspector.LastSample(ctx, head.UserID, c.Now())
	if err != nil {
		return row, err
	}
	row.Last = last.At
	return row, c.completeRow(ctx, &row)
}

func (c *Console) publishUserRow(topic string, row userRow) {
	c.live.publish(topic, change{ID: "user-" + row.UserID.String(), HTML: c.partial("user-row", row), Into: "users"})
}

// openViews returns the pages of a user that are open.
func (l *live) openViews(id uuid.UUID) map[string]userView {
	l.users.mu.Lock()
	defer l.users.mu.Unlock()
	open := map[string]userView{}
	for topic, v := range l.users.views {
		if v.userID == id && l.watched(topic) {
			open[topic] = v
		}
	}
	return open
}
