package conformance

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

func TestListUsers(t *testing.T) {
	for _, test := range []struct {
		name   string
		params labhealth.ListUsersParams
		query  string
	}{
		{"nothing", labhealth.ListUsersParams{}, ""},
		{"offset", labhealth.ListUsersParams{Offset: 200}, "?offset=200"},
		{"limit", labhealth.ListUsersParams{Limit: 500}, "?limit=500"},
		{"both", labhealth.ListUsersParams{Offset: 1, Limit: 1}, "?limit=1&offset=1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, s := respondingWith(t, 200, `{"users":[`+userJSON+`],"total":301,"offset":200,"limit":100}`)
			got, err := client.Users.List(t.Context(), test.params)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, &labhealth.UserPage{Users: []labhealth.User{wantUser()}, Total: 301, Offset: 200, Limit: 100}, got)
			equal(t, sent{Method: "GET", URL: "https://api.example.com/v2/user/" + test.query, Header: readHeader}, s.only(t))
		})
	}
	t.Run("bare list", func(t *testing.T) {
		client, _ := respondingWith(t, 200, `[`+userJSON+`]`)
		got, err := client.Users.List(t.Context(), labhealth.ListUsersParams{})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, &labhealth.UserPage{Users: []labhealth.User{wantUser()}, Total: 1}, got)
	})
	t.Run("invalid", func(t *testing.T) {
		client, s := scripted(t, nil)
		for want, params := range map[string]labhealth.ListUsersParams{
			"query.offset must be at least 0":                                        {Offset: -1},
			"query.limit must be between 0 and 500":                                  {Limit: 501},
			"query.offset must be at least 0; query.limit must be between 0 and 500": {Offset: -1, Limit: -1},
		} {
			_, err := client.Users.List(t.Context(), params)
			equal(t, "labhealth: GET /v2/user/: not sent: "+want, errorText(err))
			for u, err := range client.Users.All(t.Context(), params) {
				if u != nil || labhealth.OutcomeOf(err) != labhealth.OutcomeNotSent {
					t.Errorf("%v, %v", u, err)
				}
			}
		}
		equal(t, 0, len(s.sent))
	})
}

// The operations that return a user, with their requests.
func TestUserOperations(t *testing.T) {
	day := labhealth.Date{Year: 2025, Month: time.March, Day: 4}
	for _, test := range []struct {
		name string
		call func(*labhealth.Client) (*labhealth.User, error)
		sent sent
		body string
	}{
		{"Create", func(c *labhealth.Client) (*labhealth.User, error) {
			return c.Users.Create(t.Context(), labhealth.CreateUserBody{ClientUserID: "ada"})
		}, sent{Method: "POST", URL: "https://api.example.com/v2/user"}, `{"client_user_id":"ada"}`},
		{"Create with every field", func(c *labhealth.Client) (*labhealth.User, error) {
			return c.Users.Create(t.Context(), labhealth.CreateUserBody{
				ClientUserID: "ada", FallbackTimeZone: new("Europe/London"), FallbackBirthDate: &labhealth.Date{Year: 1950, Month: time.January, Day: 31},
				IngestionStart: &day, IngestionEnd: &future,
			})
		}, sent{Method: "POST", URL: "https://api.example.com/v2/user"}, `{"client_user_id":"ada","fallback_time_zone":"Europe/London",
			"fallback_birth_date":"1950-01-31","ingestion_start":"2025-03-04","ingestion_end":"2999-12-31"}`},
		{"GetOrCreate", func(c *labhealth.Client) (*labhealth.User, error) {
			return c.Users.GetOrCreate(t.Context(), labhealth.CreateUserBody{ClientUserID: "ada"})
		}, sent{Method: "POST", URL: "https://api.example.com/v2/user"}, `{"client_user_id":"ada"}`},
		{"Get", func(c *labhealth.Client) (*labhealth.User, error) { return c.Users.Get(t.Context(), userID) },
			sent{Method: "GET", URL: "https://api.example.com/v2/user/11111111-2222-4333-8444-555555555555"}, ""},
		{"Resolve", func(c *labhealth.Client) (*labhealth.User, error) { return c.Users.Resolve(t.Context(), "a/b c") },
			sent{Method: "GET", URL: "https://api.example.com/v2/user/resolve/a%2Fb%20c"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, s := respondingWith(t, 200, userJSON)
			got, err := test.call(client)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, new(wantUser()), got)
			request := s.only(t)
			test.sent.Header = readHeader
			if test.body != "" {
				test.sent.Header = http.Header{
					"Accept": {"application/json"}, "Content-Type": {"application/json"}, "User-Agent": {"labhealth-go/0.1.0"}, "X-Service-Api-Key": {testKey},
				}
				equal(t, jsonData(t, test.body), jsonData(t, request.Body))
				request.Body = ""
			}
			equal(t, test.sent, request)
		})
	}
	client, s := scripted(t, nil)
	_, err := client.Users.Create(t.Context(), labhealth.CreateUserBody{})
	equal(t, "labhealth: POST /v2/user: not sent: body.client_user_id is required", errorText(err))
	_, err = client.Users.GetOrCreate(t.Context(), labhealth.CreateUserBody{})
	equal(t, "labhealth: POST /v2/user: not sent: body.client_user_id is required", errorText(err))
	_, err = client.Users.Get(t.Context(), uuid.Nil)
	equal(t, "labhealth: GET /v2/user/{user_id}: not sent: path.user_id must not be the nil UUID", errorText(err))
	equal(t, 0, len(s.sent))
}

// Whatever happens to the creation, the user is found, and is never created twice.
func TestGetOrCreate(t *testing.T) {
	lost := errors.New("lost")
	for _, test := range []struct {
		name    string
		replies []reply
		paths   []string
		err     string
	}{
		{"made", []reply{{status: 200, body: userJSON}}, []string{"POST /v2/user"}, ""},
		{"there already", []reply{{status: 400, body: `{"detail":{"user_id":"11111111-2222-4333-8444-555555555555"}}`}, {status: 200, body: userJSON}},
			[]string{"POST /v2/user", "GET /v2/user/11111111-2222-4333-8444-555555555555"}, ""},
		{"response lost, made", []reply{{err: lost}, {status: 200, body: userJSON}}, []string{"POST /v2/user", "GET /v2/user/resolve/ada"}, ""},
		{"502, made", []reply{{status: 502}, {status: 200, body: userJSON}}, []string{"POST /v2/user", "GET /v2/user/resolve/ada"}, ""},
		{"502, not made", []reply{{status: 502}, {status: 404}}, []string{"POST /v2/user", "GET /v2/user/resolve/ada"}, "labhealth: POST /v2/user: 502 Bad Gateway: outcome unknown (check whether it took effect before you repeat it)"},
		{"response lost, nothing known", []reply{{err: lost}, {err: lost}}, []string{"POST /v2/user", "GET /v2/user/resolve/ada"},
			"labhealth: POST /v2/user: the http.RoundTripper failed: outcome unknown (see TransportError.Cause; check whether it took effect before you repeat it)"},
		{"rejected", []reply{{status: 403}}, []string{"POST /v2/user"}, "labhealth: POST /v2/user: 403 Forbidden: rejected (the team or the key has no access to this)"},
		{"there, and gone again", []reply{{status: 400, body: `{"detail":{"user_id":"11111111-2222-4333-8444-555555555555"}}`}, {status: 404}},
			[]string{"POST /v2/user", "GET /v2/user/11111111-2222-4333-8444-555555555555"}, "labhealth: GET /v2/user/{user_id}: 404 Not Found: rejected (the path or an ID does not exist: check the base URL, WithPath, the IDs and the environment)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, s := scripted(t, test.replies)
			got, err := client.Users.GetOrCreate(t.Context(), labhealth.CreateUserBody{ClientUserID: "ada"})
			equal(t, test.err, errorText(err))
			if test.err == "" {
				equal(t, new(wantUser()), got)
			} else if got != nil {
				t.Error("a value beside an error")
			}
			var paths []string
			for _, r := range s.sent {
				paths = append(paths, r.Method+" "+r.URL[len(testURL):])
			}
			equal(t, test.paths, paths)
		})
	}
}

func TestUserDeletion(t *testing.T) {
	for _, test := range []struct {
		name string
		call func(*labhealth.Client) (*labhealth.UserDeletion, error)
		sent sent
	}{
		{"Delete", func(c *labhealth.Client) (*labhealth.UserDeletion, error) { return c.Users.Delete(t.Context(), userID) },
			sent{Method: "DELETE", URL: "https://api.example.com/v2/user/11111111-2222-4333-8444-555555555555", Header: readHeader}},
		{"UndoDelete by user id", func(c *labhealth.Client) (*labhealth.UserDeletion, error) {
			return c.Users.UndoDelete(t.Context(), labhealth.UndoDeleteParams{UserID: userID})
		}, sent{Method: "POST", URL: "https://api.example.com/v2/user/undo_delete?user_id=11111111-2222-4333-8444-555555555555", Header: readHeader}},
		{"UndoDelete by client user id", func(c *labhealth.Client) (*labhealth.UserDeletion, error) {
			return c.Users.UndoDelete(t.Context(), labhealth.UndoDeleteParams{ClientUserID: "a&b"})
		}, sent{Method: "POST", URL: "https://api.example.com/v2/user/undo_delete?client_user_id=a%26b", Header: readHeader}},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, s := respondingWith(t, 200, `{"success":true}`)
			got, err := test.call(client)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, &labhealth.UserDeletion{Success: true}, got)
			equal(t, test.sent, s.only(t))
		})
	}
	client, s := scripted(t, nil)
	for _, params := range []labhealth.UndoDeleteParams{{}, {UserID: userID, ClientUserID: "ada"}} {
		_, err := client.Users.UndoDelete(t.Context(), params)
		equal(t, "labhealth: POST /v2/user/undo_delete: not sent: query.user_id or client_user_id must be given, and not both", errorText(err))
	}
	equal(t, 0, len(s.sent))
}

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

// A deletion cannot be undone if another user has the client user ID.
func TestUndoDeleteTooLate(t *testing.T) {
	srv := labhealthtest.NewServer(t)
	client := must[*labhealth.Client](t)(labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL)))
	defer client.CloseIdleConnections()
	ctx := t.Context()
	first := must[*labhealth.User](t)(client.Users.GetOrCreate(ctx, labhealth.CreateUserBody{ClientUserID: "ada"}))
	must[*labhealth.UserDeletion](t)(client.Users.Delete(ctx, first.UserID))
	second := must[*labhealth.User](t)(client.Users.GetOrCreate(ctx, labhealth.CreateUserBody{ClientUserID: "ada"}))
	if first.UserID == second.UserID {
		t.Error("a deleted user was restored without being asked for")
	}
	_, err := client.Users.UndoDelete(ctx, labhealth.UndoDeleteParams{UserID: first.UserID})
	equal(t, 400, apiError(t, err).StatusCode)
	third := must[*labhealth.User](t)(client.Users.GetOrCreate(ctx, labhealth.CreateUserBody{ClientUserID: "ada"}))
	equal(t, second.UserID, third.UserID)
	equal(t, second, must[*labhealth.User](t)(client.Users.Resolve(ctx, "ada")))
}

// After a damaged response the user exists, and is resolved.
func TestGetOrCreateDamagedResponse(t *testing.T) {
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
	// If the user does not exist then, the first error is returned.
	client, s := scripted(t, []reply{{status: 200, body: userJSON[:40]}, {status: 404}})
	_, err := client.Users.GetOrCreate(t.Context(), labhealth.CreateUserBody{ClientUserID: "ada"})
	equal(t, labhealth.OutcomeApplied, labhealth.OutcomeOf(err))
	equal(t, 2, len(s.sent))
}
