package conformance

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

func TestListUsers(t *testing.T) {
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

func TestInvalidUsers(t *testing.T) {
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

func TestInvalidUserDeletion(t *testing.T) {
	client, s := scripted(t, nil)
	for _, params := range []labhealth.UndoDeleteParams{{}, {UserID: userID, ClientUserID: "ada"}} {
		_, err := client.Users.UndoDelete(t.Context(), params)
		equal(t, "labhealth: POST /v2/user/undo_delete: not sent: query.user_id or client_user_id must be given, and not both", errorText(err))
	}
	equal(t, 0, len(s.sent))
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
