package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// The resources of which the console offers to add data.
var (
	sampleResources = strings.Fields(`heartrate glucose steps blood_pressure blood_oxygen hrv respiratory_rate body_temperature weight
		calories_active distance water stress_level note`)
	summaryResources = strings.Fields(`sleep sleep_cycle activity workouts body meal electrocardiogram menstrual_cycle profile`)
)

// userAction changes a user and returns what it did. slug is the provider that the form names.
type userAction func(c *Console, r *http.Request, id uuid.UUID, slug string) (done string, err error)

var userActions = map[string]userAction{
	"connect": func(c *Console, _ *http.Request, id uuid.UUID, slug string) (string, error) {
		return slug + " is connected. The event provider.connection.created was sent.", c.Server.Connect(id, slug)
	},
	"disconnect": func(c *Console, r *http.Request, id uuid.UUID, slug string) (string, error) {
		_, err := c.Client.Users.Disconnect(r.Context(), id, labhealth.Provider(slug))
		return slug + " is disconnected. The service sends no event.", err
	},
	"break": func(c *Console, _ *http.Request, id uuid.UUID, slug string) (string, error) {
		return slug + " is broken. The event provider.connection.error was sent.", c.Server.SetConnectionError(id, slug, "token_refresh_failed")
	},
	"pull": func(c *Console, r *http.Request, id uuid.UUID, slug string) (string, error) {
		resource := r.PostFormValue("resource")
		return "The event historical.data." + resource + ".created was sent.", c.Server.SetHistoricalPull(id, slug, resource, "success", "")
	},
	"delete": func(c *Console, r *http.Request, id uuid.UUID, _ string) (string, error) {
		_, err := c.Client.Users.Delete(r.Context(), id)
		return "The user was deleted. It can be undone for 7 days.", err
	},
	"undo": func(c *Console, r *http.Request, id uuid.UUID, _ string) (string, error) {
		_, err := c.Client.Users.UndoDelete(r.Context(), labhealth.UndoDeleteParams{UserID: id})
		return "The user is back. Its connections are not.", err
	},
	"samples": addSamples,
	"summary": func(c *Console, r *http.Request, id uuid.UUID, _ string) (string, error) {
		resource := r.PostFormValue("resource")
		opts, err := c.dataOptions(r, id, 0)
		if err == nil {
			_, err = c.Server.AddSummary(id, resource, opts...)
		}
		return "A summary of " + resource + " was added and sent.", err
	},
	"refresh": func(c *Console, r *http.Request, id uuid.UUID, _ string) (string, error) {
		ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
		defer cancel()
		done, err := c.Client.Users.Refresh(ctx, id, labhealth.RefreshUserParams{})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("Refreshed: %s. Failed: %s.", listOf(done.RefreshedSources), listOf(done.FailedSources)), nil
	},
}

func listOf(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

// changeUser performs the action in the path. It leads to the page it was on, if that shows the
// user.
func (c *Console) changeUser(r *http.Request) (path, done string, err error) {
	id, err := uuid.Parse(r.PathValue("id"))
	if err != nil {
		return usersPath, "", errors.New("the user ID in the address is not a UUID")
	}
	slug, back := r.PostFormValue("provider"), r.PostFormValue("back")
	if path = userPath(id); strings.HasPrefix(back, path+"?") || back == usersPath || strings.HasPrefix(back, usersPath+"?") {
		path = back
	}
	do := userActions[r.PathValue("action")]
	switch {
	case do == nil:
		return path, "", fmt.Errorf("there is no action %q of users", r.PathValue("action"))
	case len(slug) > 64 || strings.Trim(slug, "abcdefghijklmnopqrstuvwxyz0123456789_") != "":
		return path, "", errors.New("the provider must be a slug, such as oura")
	}
	done, err = do(c, r, id, slug)
	return path, done, err
}

func (c *Console) addUser(r *http.Request) (path, done string, err error) {
	name := strings.TrimSpace(r.PostFormValue("client_user_id"))
	if name == "" || len(name) > maxUserID {
		return usersPath, "", fmt.Errorf("the client user ID must have 1 to %d bytes", maxUserID)
	}
	user, err := c.Client.Users.Create(r.Context(), labhealth.CreateUserBody{ClientUserID: name})
	var conflict *labhealth.UserConflictError
	switch {
	case errors.As(err, &conflict):
		return userPath(conflict.UserID), "", warning("There is such a user already: this is the one.")
	case err != nil:
		return usersPath, "", err
	}
	return userPath(user.UserID), "The user was created.", nil
}

// maxAdded is the largest number of samples that are added at once.
const maxAdded = 5000

func addSamples(c *Console, r *http.Request, id uuid.UUID, _ string) (string, error) {
	n, err := boundedForm(r, "n", 1, maxAdded)
	if err != nil {
		return "", err
	}
	opts, err := c.dataOptions(r, id, time.Duration(n)*5*time.Minute)
	if err != nil {
		return "", err
	}
	resource := r.PostFormValue("resource")
	return countOf(n, "sample") + " of " + resource + " added, and sent as one event.", c.Server.AddSamples(id, resource, n, opts...)
}

// dataOptions returns the source and the time of data that is added: the first source of the user,
// and the day that is shown, but not the future.
func (c *Console) dataOptions(r *http.Request, id uuid.UUID, length time.Duration) (opts []labhealthtest.DataOption, err error) {
	user, err := c.Client.Users.Get(r.Context(), id)
	if err != nil {
		return nil, err
	}
	if len(user.ConnectedSources) > 0 {
		opts = append(opts, labhealthtest.FromSource(user.ConnectedSources[0].Source.Slug, "unknown"))
	}
	text := r.PostFormValue("day")
	if text == "" {
		return opts, nil
	}
	day, err := parseDay(text)
	if at := day.Add(8 * time.Hour); err == nil && at.Add(length).Before(c.Now()) {
		opts = append(opts, labhealthtest.StartingAt(at))
	}
	return opts, err
}
