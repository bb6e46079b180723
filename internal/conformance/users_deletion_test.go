package conformance

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// A deletion can be undone for seven days, on the service's clock.
func TestUndoDeleteInTime(t *testing.T) {
	const week = 7 * 24 * time.Hour
	start := time.Date(2025, time.March, 4, 12, 0, 0, 0, time.UTC)
	var now atomic.Pointer[time.Time]
	now.Store(&start)
	srv := labhealthtest.NewServer(t, labhealthtest.WithClock(func() time.Time { return *now.Load() }))
	client := must[*labhealth.Client](t)(labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL)))
	defer client.CloseIdleConnections()
	ctx := t.Context()
	for _, test := range []struct {
		name   string
		waits  time.Duration
		byUser bool
		undone bool
	}{
		{"at once", 0, true, true},
		{"at the end of the seventh day", week, false, true},
		{"a moment later", week + time.Microsecond, true, false},
		{"a month later", 30 * 24 * time.Hour, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := srv.AddUser(test.name)
			must[any](t)(nil, srv.Connect(id, "oura"))
			equal(t, &labhealth.UserDeletion{Success: true}, must[*labhealth.UserDeletion](t)(client.Users.Delete(ctx, id)))
			_, err := client.Users.Get(ctx, id)
			equal(t, true, errors.Is(err, labhealth.ErrNotFound))
			_, err = client.Users.Resolve(ctx, test.name)
			equal(t, true, errors.Is(err, labhealth.ErrNotFound))
			_, err = client.Users.Delete(ctx, id)
			equal(t, true, errors.Is(err, labhealth.ErrNotFound))

			later := now.Load().Add(test.waits)
			now.Store(&later)
			params := labhealth.UndoDeleteParams{ClientUserID: test.name}
			if test.byUser {
				params = labhealth.UndoDeleteParams{UserID: id}
			}
			done, err := client.Users.UndoDelete(ctx, params)
			user, found := client.Users.Get(ctx, id)
			if !test.undone {
				equal(t, true, errors.Is(err, labhealth.ErrNotFound))
				equal(t, labhealth.OutcomeRejected, labhealth.OutcomeOf(err))
				equal(t, true, errors.Is(found, labhealth.ErrNotFound))
				return
			}
			equal(t, "", errorText(err))
			equal(t, &labhealth.UserDeletion{Success: true}, done)
			equal(t, "", errorText(found))
			equal(t, test.name, user.ClientUserID)
			equal(t, 0, len(user.ConnectedSources)) // they do not come back
		})
	}
}

// Once somebody else has the client user id, the user does not come back.
func TestUndoDeleteTooLate(t *testing.T) {
	srv := labhealthtest.NewServer(t)
	client := must[*labhealth.Client](t)(labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL)))
	defer client.CloseIdleConnections()
	ctx := t.Context()
	first := must[*labhealth.User](t)(client.Users.GetOrCreate(ctx, labhealth.CreateUserBody{ClientUserID: "ada"}))
	must[*labhealth.UserDeletion](t)(client.Users.Delete(ctx, first.UserID))
	second := must[*labhealth.User](t)(client.Users.GetOrCreate(ctx, labhealth.CreateUserBody{ClientUserID: "ada"}))
	if first.UserID == second.UserID {
		t.Error("a deleted user came back without being asked for")
	}
	_, err := client.Users.UndoDelete(ctx, labhealth.UndoDeleteParams{UserID: first.UserID})
	equal(t, 400, apiError(t, err).StatusCode)
	third := must[*labhealth.User](t)(client.Users.GetOrCreate(ctx, labhealth.CreateUserBody{ClientUserID: "ada"}))
	equal(t, second.UserID, third.UserID)
	equal(t, second, must[*labhealth.User](t)(client.Users.Resolve(ctx, "ada")))
}

// An answer that was damaged says that the user was made; who it is can be asked.
func TestGetOrCreateDamagedAnswer(t *testing.T) {
	for name, first := range map[string]reply{
		"cut":        {status: 200, body: userJSON[:40]},
		"no user id": {status: 200, body: `{"client_user_id":"ada"}`},
		"HTML":       {status: 200, body: "<html>", header: []string{"Content-Type", "text/html"}},
	} {
		t.Run(name, func(t *testing.T) {
			client, s := scripted(t, []reply{first, {status: 200, body: userJSON}})
			got, err := client.Users.GetOrCreate(t.Context(), labhealth.CreateUserBody{ClientUserID: "ada"})
			equal(t, "", errorText(err))
			equal(t, new(wantUser()), got)
			equal(t, 2, len(s.sent))
			equal(t, "GET https://api.example.com/v2/user/resolve/ada", s.sent[1].Method+" "+s.sent[1].URL)
		})
	}
	// If the service does not know the user then, the first error is the answer.
	client, s := scripted(t, []reply{{status: 200, body: userJSON[:40]}, {status: 404}})
	_, err := client.Users.GetOrCreate(t.Context(), labhealth.CreateUserBody{ClientUserID: "ada"})
	equal(t, labhealth.OutcomeApplied, labhealth.OutcomeOf(err))
	equal(t, 2, len(s.sent))
}
