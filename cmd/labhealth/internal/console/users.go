package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

const usersPath = "/console/users"

func userPath(id uuid.UUID) string { return usersPath + "/" + id.String() }

func (c *Console) usersRoutes() {
	c.mux.HandleFunc("GET /console/users", c.usersPage)
	c.mux.HandleFunc("GET /console/users/{id}", c.usersPage)
	if c.sandbox() {
		c.act("POST /console/users", c.addUser)
		c.act("POST /console/users/{id}/{action}", c.changeUser)
	}
}

// usersData is what the template users shows.
type usersData struct {
	Sandbox    bool
	Total      int
	WithSource int // in a sandbox
	Query      query
	Rows       []userRow
	Hidden     int // users that match but are not listed

	Detail *userDetail
	Gone   *uuid.UUID // the user that does not exist
}

// userRow is what the template user-row shows.
type userRow struct {
	UserID  uuid.UUID
	Name    string
	Last    time.Time // of the last sample, zero if there is none
	Sources []string
	Warning string
	Current bool
}

// userDetail is what the template user shows.
type userDetail struct {
	UserID    uuid.UUID
	Name      string
	Sandbox   bool
	Sources   []userSource
	Notes     []pullNote
	MoreNotes int
	Connect   []labhealth.ProviderDetails
	Day       time.Time
	Path      string // of the page
	Set       *plotSet
	Cards     []summaryCard
	Empty     bool // nothing is stored of the user
}

type userSource struct {
	Slug, Name string
	Since      time.Time
	Reason     string // why it does not work; empty if it works
}

// pullNote is a historical pull that has brought nothing.
type pullNote struct {
	Resource, Provider, Status, Reason string
	Title                              string // of the resource
	Before                             time.Time
}

// Limits of what is listed.
const (
	maxRows  = 100
	maxNotes = 4
)

// usersPage lists the users and shows one: that of the path, or else the first.
func (c *Console) usersPage(w http.ResponseWriter, r *http.Request) {
	ctx, q := r.Context(), queryOf(r, usersPath, "q", "day", "span", "as")
	var wanted uuid.UUID
	if text := r.PathValue("id"); text != "" {
		id, err := uuid.Parse(text)
		if err != nil {
			http.Error(w, "the user ID in the address is not a UUID", http.StatusNotFound)
			return
		}
		wanted = id
	}
	s, given, err := spanOf(q)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	data, found, err := c.listUsers(ctx, q, wanted)
	if err == nil && found != nil {
		if !given {
			s.day, err = c.lastDay(ctx, found.UserID)
		}
		if err == nil {
			data.Detail, err = c.userDetail(ctx, found, s, q)
		}
	}
	if err != nil {
		c.fail(w, r, err)
		return
	}
	p := page{Title: "Users", Current: "users", Live: "users deliveries", Data: data}
	if data.Detail != nil {
		data.Detail.Path = r.URL.RequestURI()
		p.Title, p.Self = data.Detail.Name, q.with("day", s.day.Format(time.DateOnly)).Beside(found.UserID)
	} else if wanted != uuid.Nil {
		data.Gone, p.Status = &wanted, http.StatusNotFound
	}
	c.render(w, r, "users", p)
}

// spanOf returns the span of a query; given is false if it has no day.
func spanOf(q query) (s span, given bool, err error) {
	switch s.week = q.Get("span") == "week"; {
	case !s.week && q.Get("span") != "" && q.Get("span") != "day":
		return s, false, errors.New("span must be day or week")
	case q.Get("day") == "":
		return s, false, nil
	}
	s.day, err = parseDay(q.Get("day"))
	return s, true, err
}

// parseDay parses a day that can be shown.
func parseDay(text string) (time.Time, error) {
	day, err := time.Parse(time.DateOnly, text)
	if err != nil || day.Year() < 2 || day.Year() > 9998 {
		return time.Time{}, errors.New("day must be a date from 0002-01-01 to 9998-12-31, such as 2026-11-20")
	}
	return day, nil
}

// lastDay returns the last day with a sample, or today.
func (c *Console) lastDay(ctx context.Context, userID uuid.UUID) (time.Time, error) {
	last, ok, err := c.Inspector.LastSample(ctx, userID, c.Now().Add(24*time.Hour))
	if err != nil {
		return time.Time{}, err
	}
	if !ok {
		return midnight(c.Now()), nil
	}
	return midnight(last.At.Add(last.Offset)), nil
}

func midnight(t time.Time) time.Time {
	year, month, day := t.UTC().Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// nearestDay returns the last day with samples before a span without any, or else the first after
// it, or nil.
func (c *Console) nearestDay(ctx context.Context, userID uuid.UUID, s span, at func(span) string) *nearest {
	from, to := s.limits()
	found, ok, err := c.Inspector.LastSample(ctx, userID, to)
	if !ok {
		found, ok, err = c.Inspector.FirstSample(ctx, userID, from)
	}
	day := midnight(found.At.Add(found.Offset))
	if err != nil || !ok || day.Year() < 2 || day.Year() > 9998 {
		return nil
	}
	return &nearest{strings.ToLower(resourceName(found.Resource)), longDay(day), at(span{day, s.week})}
}

// countUsers returns the number of users, for the navigation.
func (c *Console) countUsers(ctx context.Context) int {
	if !c.sandbox() {
		n, err := c.Inspector.CountUsers(ctx)
		if err != nil {
			c.Log.Error("console: cannot count the users", "error", err)
		}
		return n
	}
	list, err := c.Client.Users.List(ctx, labhealth.ListUsersParams{Limit: 1})
	if err != nil {
		return 0
	}
	return int(list.Total)
}

// listUsers returns the users that match a query, those with the latest samples first, and the user
// that is wanted, or else the first, or nil.
func (c *Console) listUsers(ctx context.Context, q query, wanted uuid.UUID) (data *usersData, found *userRow, err error) {
	rows, err := c.allUsers(ctx)
	if err != nil {
		return nil, nil, err
	}
	data = &usersData{Sandbox: c.sandbox(), Total: len(rows), Query: q}
	for _, row := range rows {
		if row.UserID == wanted {
			found = &row
		}
		if len(row.Sources) > 0 {
			data.WithSource++
		}
		if matchesWords(row.Name+" "+row.UserID.String()+" "+strings.Join(row.Sources, " "), q.Get("q")) {
			data.Rows = append(data.Rows, row)
		}
	}
	slices.SortStableFunc(data.Rows, func(a, b userRow) int { return b.Last.Compare(a.Last) })
	if wanted == uuid.Nil && len(data.Rows) > 0 {
		found = &data.Rows[0]
	}
	for i := range data.Rows {
		data.Rows[i].Current = found != nil && data.Rows[i].UserID == found.UserID
		if i >= maxRows && data.Rows[i].Current { // the list has it in any case
			data.Rows[maxRows-1], data.Rows[i] = data.Rows[i], data.Rows[maxRows-1]
		}
	}
	data.Hidden = max(0, len(data.Rows)-maxRows)
	data.Rows = data.Rows[:len(data.Rows)-data.Hidden]
	for i := range data.Rows {
		if err := c.completeRow(ctx, &data.Rows[i]); err != nil {
			return nil, nil, err
		}
	}
	return data, found, nil
}

// allUsers returns the users of the sandbox, or those of whom data is stored.
func (c *Console) allUsers(ctx context.Context) (rows []userRow, err error) {
	stored, err := c.Inspector.Users(ctx)
	if err != nil {
		return nil, err
	}
	last := map[uuid.UUID]time.Time{}
	for _, u := range stored {
		last[u.UserID] = u.LastSample
		if !c.sandbox() {
			name, err := c.Inspector.ClientUserID(ctx, u.UserID)
			if err != nil {
				return nil, err
			}
			rows = append(rows, userRow{UserID: u.UserID, Name: cmp.Or(name, u.UserID.String()[:8]), Last: u.LastSample})
		}
	}
	if !c.sandbox() {
		return rows, nil
	}
	for u, err := range c.Client.Users.All(ctx, labhealth.ListUsersParams{Limit: 500}) {
		if err != nil {
			return nil, err
		}
		row := userRow{UserID: u.UserID, Name: u.ClientUserID, Last: last[u.UserID]}
		for _, s := range u.ConnectedSources {
			row.Sources = append(row.Sources, s.Source.Slug)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// completeRow adds what is read for listed users only: the sources and what is wrong with them.
func (c *Console) completeRow(ctx context.Context, row *userRow) error {
	if now := c.Now(); row.Last.After(now) { // for its age
		row.Last = now
	}
	if !c.sandbox() {
		var err error
		row.Sources, err = c.storedSources(ctx, row.UserID)
		return err
	}
	if len(row.Sources) == 0 {
		return nil
	}
	sources, err := c.userSources(ctx, row.UserID)
	if err != nil {
		return ignoreNotFound(err)
	}
	for _, s := range sources {
		if s.Reason != "" {
			row.Warning = s.Slug + " is broken"
			return nil
		}
	}
	notes, err := c.missingPulls(ctx, row.UserID, sources)
	if len(notes) > 0 {
		row.Warning = "historical pull: " + notes[0].Status
	}
	return ignoreNotFound(err)
}

// ignoreNotFound ignores that a user was deleted in the meantime.
func ignoreNotFound(err error) error {
	if errors.Is(err, labhealth.ErrNotFound) {
		return nil
	}
	return err
}

// userSources returns the connections of a user.
func (c *Console) userSources(ctx context.Context, userID uuid.UUID) (sources []userSource, err error) {
	lists, err := c.Client.Users.ConnectedProviders(ctx, userID)
	if err != nil {
		return nil, err
	}
	for _, list := range lists {
		for _, p := range list {
			s := userSource{Slug: p.Slug, Name: p.Name, Since: p.CreatedOn}
			if p.ErrorDetails != nil {
				s.Reason = cmp.Or(string(p.ErrorDetails.ErrorType), "unknown")
			} else if p.Status != "connected" {
				s.Reason = p.Status
			}
			sources = append(sources, s)
		}
	}
	slices.SortFunc(sources, func(a, b userSource) int { return a.Since.Compare(b.Since) })
	return sources, nil
}

// missingPulls returns the historical pulls of a user that were not successful.
func (c *Console) missingPulls(ctx context.Context, userID uuid.UUID, sources []userSource) (notes []pullNote, err error) {
	for u, err := range c.Client.Users.AllHistoricalPulls(ctx, labhealth.ListHistoricalPullsParams{UserID: userID}) {
		if err != nil {
			return nil, err
		}
		for slug, pulls := range u.Provider {
			i := slices.IndexFunc(sources, func(s userSource) bool { return s.Slug == slug })
			if i < 0 {
				continue
			}
			for resource, pull := range pulls.Pulled {
				if pull.Status == "success" {
					continue
				}
				note := pullNote{Resource: resource, Provider: slug, Status: string(pull.Status), Title: resourceName(resource), Before: sources[i].Since}
				if json.Unmarshal(pull.ErrorDetails, &note.Reason) != nil {
					note.Reason = firstChars(string(pull.ErrorDetails), 200)
				}
				notes = append(notes, note)
			}
		}
	}
	slices.SortFunc(notes, func(a, b pullNote) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Resource, b.Resource))
	})
	return notes, nil
}

// userDetail returns what is shown of a user, or nil if the user was deleted in the meantime.
func (c *Console) userDetail(ctx context.Context, row *userRow, s span, q query) (d *userDetail, err error) {
	d = &userDetail{UserID: row.UserID, Name: row.Name, Sandbox: c.sandbox(), Day: s.day}
	if c.sandbox() {
		err = c.addSources(ctx, d)
	} else {
		var slugs []string
		slugs, err = c.storedSources(ctx, d.UserID)
		for _, slug := range slugs {
			d.Sources = append(d.Sources, userSource{Slug: slug})
		}
	}
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	if d.Set, err = c.loadPlots(ctx, d.UserID, s, q); err != nil {
		return nil, err
	}
	if d.Cards, err = c.summaryCards(ctx, d.UserID, s.day, d.Set.Offset); err != nil {
		return nil, err
	}
	d.Empty = len(d.Sources)+len(d.Cards)+len(d.Set.Plots) == 0 && d.Set.Texts == "" && d.Set.Nearest == nil
	return d, nil
}

// addSources adds the state of the sources of a user, and those that can be connected.
func (c *Console) addSources(ctx context.Context, d *userDetail) (err error) {
	if d.Sources, err = c.userSources(ctx, d.UserID); err != nil {
		return err
	}
	if d.Notes, err = c.missingPulls(ctx, d.UserID, d.Sources); err != nil {
		return err
	}
	if len(d.Notes) > maxNotes {
		d.MoreNotes, d.Notes = len(d.Notes)-maxNotes, d.Notes[:maxNotes]
	}
	d.Connect, err = c.Client.Providers.List(ctx, labhealth.ListProvidersParams{})
	d.Connect = slices.DeleteFunc(d.Connect, func(p labhealth.ProviderDetails) bool {
		return slices.ContainsFunc(d.Sources, func(s userSource) bool { return s.Slug == p.Slug })
	})
	return err
}

// storedSources returns the providers of whose samples some are stored.
func (c *Console) storedSources(ctx context.Context, userID uuid.UUID) (slugs []string, err error) {
	all, err := c.Inspector.Store.Series(ctx, userID)
	for _, of := range all {
		if of.Provider != "" && !slices.Contains(slugs, of.Provider) {
			slugs = append(slugs, of.Provider)
		}
	}
	return slugs, err
}
