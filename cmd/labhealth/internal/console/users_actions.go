package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
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

// userAction changes a user and returns what it did, in words.
type userAction func(c *Console, r *http.Request, id uuid.UUID) (done string, err error)

// userActions registers the actions of a sandbox.
func (c *Console) userActions() {
	c.mux.HandleFunc("POST /console/users", c.addUser)
	for name, action := range map[string]userAction{
		"connect": connectSource, "disconnect": disconnectSource, "break": breakSource, "pull": succeedPull,
		"delete": deleteUser, "undo": undoDeletion, "samples": addSamples, "summary": addSummary, "refresh": refreshUser,
	} {
		c.mux.HandleFunc("POST /console/users/{id}/"+name, func(w http.ResponseWriter, r *http.Request) {
			id, err := uuid.Parse(r.PathValue("id"))
			if err != nil {
				http.Error(w, "the user ID in the address is not a UUID", http.StatusNotFound)
				return
			}
			tone := "ok"
			done, err := action(c, r, id)
			if err != nil {
				tone, done = "bad", sentence(err)
			}
			c.back(w, r, userBack(id, r.PostFormValue("back")), tone, done)
		})
	}
}

// userBack returns the page to show after an action: the one it was on, if that shows the user.
func userBack(id uuid.UUID, back string) string {
	path := "/console/users/" + id.String()
	if strings.HasPrefix(back, path+"?") || back == "/console/users" || strings.HasPrefix(back, "/console/users?") {
		return back
	}
	return path
}

func (c *Console) addUser(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimSpace(r.PostFormValue("client_user_id"))
	if name == "" || len(name) > 200 {
		c.back(w, r, "/console/users", "bad", "The client user ID must have 1 to 200 bytes.")
		return
	}
	user, err := c.Client.Users.Create(r.Context(), labhealth.CreateUserBody{ClientUserID: name})
	var conflict *labhealth.UserConflictError
	switch {
	case errors.As(err, &conflict):
		c.back(w, r, userBack(conflict.UserID, ""), "warn", "There is such a user already: this is the one.")
	case err != nil:
		c.back(w, r, "/console/users", "bad", sentence(err))
	default:
		c.back(w, r, userBack(user.UserID, ""), "ok", "The user was created.")
	}
}

// provider returns the provider that a form names.
func provider(r *http.Request) (string, error) {
	slug := r.PostFormValue("provider")
	if slug == "" || len(slug) > 64 || strings.Trim(slug, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return "", errors.New("the provider must be a slug, such as oura")
	}
	return slug, nil
}

func connectSource(c *Console, r *http.Request, id uuid.UUID) (string, error) {
	slug, err := provider(r)
	if err != nil {
		return "", err
	}
	return slug + " is connected. The event provider.connection.created was sent.", c.Server.Connect(id, slug)
}

func disconnectSource(c *Console, r *http.Request, id uuid.UUID) (string, error) {
	slug, err := provider(r)
	if err != nil {
		return "", err
	}
	_, err = c.Client.Users.Disconnect(r.Context(), id, labhealth.Provider(slug))
	return slug + " is disconnected. The service sends no event.", err
}

func breakSource(c *Console, r *http.Request, id uuid.UUID) (string, error) {
	slug, err := provider(r)
	if err != nil {
		return "", err
	}
	return slug + " is broken. The event provider.connection.error was sent.", c.Server.SetConnectionError(id, slug, "token_refresh_failed")
}

func succeedPull(c *Console, r *http.Request, id uuid.UUID) (string, error) {
	slug, err := provider(r)
	if err != nil {
		return "", err
	}
	resource := r.PostFormValue("resource")
	return "The event historical.data." + resource + ".created was sent.", c.Server.SetHistoricalPull(id, slug, resource, "success", "")
}

func deleteUser(c *Console, r *http.Request, id uuid.UUID) (string, error) {
	_, err := c.Client.Users.Delete(r.Context(), id)
	return "The user was deleted. It can be undone for 7 days.", err
}

func undoDeletion(c *Console, r *http.Request, id uuid.UUID) (string, error) {
	_, err := c.Client.Users.UndoDelete(r.Context(), labhealth.UndoDeleteParams{UserID: id})
	return "The user is back. Its connections are not.", err
}

// maxAdded is the largest number of samples that are added at once.
const maxAdded = 5000

func addSamples(c *Console, r *http.Request, id uuid.UUID) (string, error) {
	n, err := strconv.Atoi(r.PostFormValue("n"))
	if err != nil || n < 1 || n > maxAdded {
		return "", fmt.Errorf("the number must be from 1 to %s", number(maxAdded))
	}
	opts, err := c.dataOptions(r, id, time.Duration(n)*5*time.Minute)
	if err != nil {
		return "", err
	}
	resource := r.PostFormValue("resource")
	done := fmt.Sprintf("%s samples of %s were added, and sent as one event.", number(n), resource)
	if n == 1 {
		done = "1 sample of " + resource + " was added and sent."
	}
	return done, c.Server.AddSamples(id, resource, n, opts...)
}

func addSummary(c *Console, r *http.Request, id uuid.UUID) (string, error) {
	opts, err := c.dataOptions(r, id, 0)
	if err != nil {
		return "", err
	}
	resource := r.PostFormValue("resource")
	_, err = c.Server.AddSummary(id, resource, opts...)
	return "A summary of " + resource + " was added and sent.", err
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
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return nil, errors.New("the day must be a date, such as 2026-11-20")
	}
	if at := day.Add(8 * time.Hour); at.Add(length).Before(c.Now()) {
		opts = append(opts, labhealthtest.StartingAt(at))
	}
	return opts, nil
}

func refreshUser(c *Console, r *http.Request, id uuid.UUID) (string, error) {
	ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
	defer cancel()
	done, err := c.Client.Users.Refresh(ctx, id, labhealth.RefreshUserParams{})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Refreshed: %s. Failed: %s.", list(done.RefreshedSources), list(done.FailedSources)), nil
}

func list(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}
