package console

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
)

// userView is what a page shows of a user. Its live changes depend on the span, so each has its own
// topic.
type userView struct {
	span     span
	asValues bool
}

// viewTopic returns the topic of a page of a user.
func viewTopic(userID uuid.UUID, v userView) string {
	span, as := "day", "plots"
	if v.span.week {
		span = "week"
	}
	if v.asValues {
		as = "values"
	}
	return userTopics(userID) + v.span.day.Format(time.DateOnly) + ":" + span + ":" + as
}

// userTopics is the prefix of the topics of the pages of a user.
func userTopics(userID uuid.UUID) string { return "user:" + userID.String() + ":" }

// viewOf returns the page with a topic of a user.
func viewOf(userID uuid.UUID, topic string) (v userView, ok bool) {
	words := strings.Split(strings.TrimPrefix(topic, userTopics(userID)), ":")
	if len(words) != 3 {
		return v, false
	}
	day, err := parseDay(words[0])
	v = userView{span{day, words[1] == "week"}, words[2] == "values"}
	return v, err == nil
}

// userChanged updates the open pages after a change of a user, at most once a second.
func (c *Console) userChanged(_ context.Context, id uuid.UUID) {
	if id != uuid.Nil && c.live.watched("users") {
		c.live.soon("user "+id.String(), func(ctx context.Context) { c.publishUser(ctx, id) })
		c.live.soon("users total", c.publishUsersTotal)
	}
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

// publishUsersTotal sends the number of users.
func (c *Console) publishUsersTotal(ctx context.Context) {
	stored, err := c.Inspector.Users(ctx)
	var rows []userRow
	if err == nil {
		rows, err = c.allUsers(ctx, stored)
	}
	if err != nil {
		if ctx.Err() == nil {
			c.Log.Error("console: cannot count the users", "error", err)
		}
		return
	}
	c.live.publish("users", change{ID: "users-total", HTML: c.partial("users-total", newUsersTotal(c.sandbox(), rows))})
}

// newUsersTotal counts the users.
func newUsersTotal(sandbox bool, rows []userRow) *usersData {
	data := &usersData{Sandbox: sandbox, Total: len(rows)}
	for _, row := range rows {
		if len(row.Sources) > 0 {
			data.WithSource++
		}
	}
	return data
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
	for _, topic := range c.live.topics(userTopics(id)) {
		v, ok := viewOf(id, topic)
		if !ok {
			continue
		}
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
