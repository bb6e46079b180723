package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
)

func (c *Console) usersRoutes() {
	c.mux.HandleFunc("GET /console/users", c.usersPage)
	c.mux.HandleFunc("GET /console/users/{id}", c.usersPage)
	if c.sandbox() {
		c.userActions()
	}
}

// usersData is what the template users shows.
type usersData struct {
	Sandbox    bool
	Total      int
	WithSource int // in a sandbox
	Query      string
	Rows       []userRow
	Hidden     int // users that match but are not listed
	Command    string

	Detail *userDetail
	Gone   *goneUser
}

// userRow is what the template user-row shows.
type userRow struct {
	UserID  uuid.UUID
	Name    string
	Last    time.Time // of the last sample, zero if there is none
	Sources []string
	Warning string
	Current bool
	Sandbox bool
}

// userDetail is what the template user shows.
type userDetail struct {
	UserID    uuid.UUID
	Name      string
	Sandbox   bool
	Sources   []userSource
	Notes     []pullNote
	MoreNotes int
	Connect   []offer
	Day       string
	Path      string // of the page
	Data      *userWearables
}

// userWearables is what the template user-data shows.
type userWearables struct {
	Sandbox   bool
	Name      string
	HasSource bool
	Empty     bool // nothing is stored of the user
	Set       *plotSet
	Day       string
	Cards     []summaryCard
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

// offer is a provider that can be connected.
type offer struct{ Slug, Name string }

type goneUser struct {
	UserID  uuid.UUID
	Sandbox bool
}

// Limits of what is listed.
const (
	maxRows  = 100
	maxUsers = 5000 // that are read
	maxNotes = 4
)

// usersPage lists the users and shows one: that of the path, or else the first.
func (c *Console) usersPage(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	var wanted uuid.UUID
	if text := r.PathValue("id"); text != "" {
		id, err := uuid.Parse(text)
		if err != nil {
			http.Error(w, "the user ID in the address is not a UUID", http.StatusNotFound)
			return
		}
		wanted = id
	}
	s, given, err := spanOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	data, err := c.listUsers(ctx, r.FormValue("q"), wanted)
	if err != nil {
		c.fail(w, r, err)
		return
	}
	p := page{Title: "Users", Current: "users", Live: "users deliveries", Data: data}
	if wanted == uuid.Nil && len(data.Rows) > 0 {
		wanted = data.Rows[0].UserID
		data.Rows[0].Current = true
	}
	if wanted != uuid.Nil {
		if !given {
			s.day, err = c.lastDay(ctx, wanted)
		}
		if err == nil {
			data.Detail, err = c.userDetail(ctx, wanted, s, r.FormValue("as") == "values")
		}
		switch {
		case err != nil:
			c.fail(w, r, err)
			return
		case data.Detail == nil:
			data.Gone, p.Status = &goneUser{wanted, c.sandbox()}, http.StatusNotFound
		default:
			p.Title, p.Self = data.Detail.Name, userPath(wanted, s, r.FormValue("as") == "values")
			if data.Query != "" {
				p.Self = withParameter(p.Self, "q", data.Query)
			}
			data.Detail.Path = r.URL.RequestURI()
		}
	}
	c.render(w, r, "users", p)
}

// spanOf returns the span of the query; given is false if it has no day.
func spanOf(r *http.Request) (s span, given bool, err error) {
	switch r.FormValue("span") {
	case "", "day":
	case "week":
		s.week = true
	default:
		return s, false, errors.New("span must be day or week")
	}
	day := r.FormValue("day")
	if day == "" {
		return s, false, nil
	}
	if s.day, err = parseDay(day); err != nil {
		return s, false, err
	}
	return s, true, nil
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

// nearestDay returns the day with samples that is nearest to a span without any, or nil.
func (c *Console) nearestDay(ctx context.Context, userID uuid.UUID, s span) *nearest {
	end := s.day.AddDate(0, 0, 1)
	var found *inspect.SampleTime
	var distance time.Duration
	try := func(sample inspect.SampleTime, ok bool, err error) {
		local := sample.At.Add(sample.Offset)
		if err != nil || !ok || local.Year() < 2 || local.Year() > 9998 {
			return
		}
		if d := max(s.start().Sub(local), local.Sub(end)); found == nil || d < distance {
			found, distance = &sample, d
		}
	}
	try(c.Inspector.LastSample(ctx, userID, s.start().Add(-easternmost)))
	try(c.Inspector.FirstSample(ctx, userID, end.Add(-westernmost)))
	try(c.Inspector.LastSample(ctx, userID, s.start()))
	try(c.Inspector.FirstSample(ctx, userID, end))
	if found == nil {
		return nil
	}
	day := midnight(found.At.Add(found.Offset))
	return &nearest{strings.ToLower(resourceName(found.Resource)), longDay(day), userPath(userID, span{day, s.week}, false)}
}

// userPath returns the address of a user and a span.
func userPath(userID uuid.UUID, s span, asValues bool) string {
	query := url.Values{"day": {s.day.Format(time.DateOnly)}}
	if s.week {
		query.Set("span", "week")
	}
	if asValues {
		query.Set("as", "values")
	}
	return "/console/users/" + userID.String() + "?" + query.Encode()
}

// newPlotSet returns a set without series.
func (c *Console) newPlotSet(userID uuid.UUID, s span) *plotSet {
	return &plotSet{
		UserID: userID, Span: s, Week: s.week, Title: s.title(),
		Earlier: userPath(userID, s.move(-1), false), Later: userPath(userID, s.move(1), false),
		DayPath: userPath(userID, span{s.day, false}, false), WeekPath: userPath(userID, span{s.day, true}, false),
		ValuesPath: userPath(userID, s, true), PlotsPath: userPath(userID, s, false),
	}
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

// listUsers returns the users that match a query, those with the latest samples first.
func (c *Console) listUsers(ctx context.Context, query string, current uuid.UUID) (*usersData, error) {
	stored, err := c.Inspector.Users(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := c.allUsers(ctx, stored)
	if err != nil {
		return nil, err
	}
	data := newUsersTotal(c.sandbox(), rows)
	data.Query, data.Command = query, "labhealth users create member-0001"
	words := strings.Fields(strings.ToLower(query))
	rows = slices.DeleteFunc(rows, func(row userRow) bool {
		text := strings.ToLower(row.Name + " " + row.UserID.String() + " " + strings.Join(row.Sources, " "))
		return slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
	})
	slices.SortStableFunc(rows, func(a, b userRow) int { return b.Last.Compare(a.Last) })
	for i := range rows {
		rows[i].Current = rows[i].UserID == current
		if i >= maxRows && rows[i].Current { // the list has it in any case
			rows[maxRows-1], rows[i] = rows[i], rows[maxRows-1]
		}
	}
	if len(rows) > maxRows {
		data.Hidden, rows = len(rows)-maxRows, rows[:maxRows]
	}
	for i := range rows {
		if err := c.completeRow(ctx, &rows[i]); err != nil {
			return nil, err
		}
	}
	data.Rows = rows
	return data, nil
}

// allUsers returns the users of the sandbox, or those of whom data is stored.
func (c *Console) allUsers(ctx context.Context, stored []inspect.StoredUser) (rows []userRow, err error) {
	if !c.sandbox() {
		for _, u := range stored {
			name, err := c.Inspector.ClientUserID(ctx, u.UserID)
			if err != nil {
				return nil, err
			}
			rows = append(rows, userRow{UserID: u.UserID, Name: name, Last: u.LastSample})
			if len(rows) == maxUsers {
				break
			}
		}
		return rows, nil
	}
	last := map[uuid.UUID]time.Time{}
	for _, u := range stored {
		last[u.UserID] = u.LastSample
	}
	for u, err := range c.Client.Users.All(ctx, labhealth.ListUsersParams{Limit: 500}) {
		if err != nil {
			return nil, err
		}
		row := userRow{UserID: u.UserID, Name: u.ClientUserID, Last: last[u.UserID], Sandbox: true}
		for _, s := range u.ConnectedSources {
			row.Sources = append(row.Sources, s.Source.Slug)
		}
		rows = append(rows, row)
		if len(rows) == maxUsers {
			break
		}
	}
	return rows, nil
}

// completeRow adds what is read for listed users only: the sources and what is wrong with them.
func (c *Console) completeRow(ctx context.Context, row *userRow) error {
	row.Last = earliest(row.Last, c.Now())
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

// earliest limits a time to now, for ages.
func earliest(t, now time.Time) time.Time {
	if t.After(now) {
		return now
	}
	return t
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

// userDetail returns what is shown of a user, or nil if there is no such user.
func (c *Console) userDetail(ctx context.Context, userID uuid.UUID, s span, asValues bool) (*userDetail, error) {
	d, err := c.userHead(ctx, userID)
	if err != nil || d == nil {
		return nil, err
	}
	d.Day = s.day.Format(time.DateOnly)
	d.Data, err = c.userWearables(ctx, d, s, asValues)
	return d, err
}

// userHead returns who a user is and the state of the sources.
func (c *Console) userHead(ctx context.Context, userID uuid.UUID) (*userDetail, error) {
	d := &userDetail{UserID: userID, Sandbox: c.sandbox()}
	if !c.sandbox() {
		return c.storedUserHead(ctx, d)
	}
	u, err := c.Client.Users.Get(ctx, userID)
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	d.Name = u.ClientUserID
	if d.Sources, err = c.userSources(ctx, userID); err != nil {
		return nil, ignoreNotFound(err)
	}
	if d.Notes, err = c.missingPulls(ctx, userID, d.Sources); err != nil {
		return nil, ignoreNotFound(err)
	}
	if len(d.Notes) > maxNotes {
		d.MoreNotes, d.Notes = len(d.Notes)-maxNotes, d.Notes[:maxNotes]
	}
	offers, err := c.Client.Providers.List(ctx, labhealth.ListProvidersParams{})
	if err != nil {
		return nil, err
	}
	for _, p := range offers {
		if !slices.ContainsFunc(d.Sources, func(s userSource) bool { return s.Slug == p.Slug }) {
			d.Connect = append(d.Connect, offer{p.Slug, p.Name})
		}
	}
	return d, nil
}

// storedUserHead does the same from what is stored, which does not have the connections.
func (c *Console) storedUserHead(ctx context.Context, d *userDetail) (*userDetail, error) {
	name, err := c.Inspector.ClientUserID(ctx, d.UserID)
	if err != nil {
		return nil, err
	}
	stored, err := c.Inspector.Users(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(stored, func(u inspect.StoredUser) bool { return u.UserID == d.UserID }) {
		return nil, nil
	}
	d.Name = cmp.Or(name, d.UserID.String()[:8])
	slugs, err := c.storedSources(ctx, d.UserID)
	for _, slug := range slugs {
		d.Sources = append(d.Sources, userSource{Slug: slug})
	}
	return d, err
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

// userWearables returns the series and the summaries of a span.
func (c *Console) userWearables(ctx context.Context, d *userDetail, s span, asValues bool) (*userWearables, error) {
	data := &userWearables{Sandbox: c.sandbox(), Name: d.Name, HasSource: len(d.Sources) > 0, Day: s.day.Format("Monday 2 January")}
	var err error
	if data.Set, err = c.loadPlots(ctx, d.UserID, s); err != nil {
		return nil, err
	}
	data.Set.AsValues = asValues
	if asValues {
		for _, path := range []*string{&data.Set.Earlier, &data.Set.Later, &data.Set.DayPath, &data.Set.WeekPath} {
			*path += "&as=values"
		}
	}
	if data.Cards, err = c.summaryCards(ctx, d.UserID, s.day, data.Set.Offset); err != nil {
		return nil, err
	}
	data.Empty = len(data.Cards) == 0 && len(data.Set.Plots) == 0 && len(data.Set.Texts) == 0 && data.Set.Nearest == nil
	return data, nil
}
