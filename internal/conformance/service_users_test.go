package conformance

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

// A 409 with the ID of the other user is a *UserConflictError.
func TestUpdateUserConflict(t *testing.T) {
	client, _ := respondingWith(t, 409, `{"detail":{"user_id":"11111111-2222-4333-8444-555555555555","created_on":"2025-03-04T12:00:00Z"}}`)
	err := client.Users.Update(t.Context(), orderID, labhealth.UpdateUserBody{ClientUserID: new("ada")})
	var conflict *labhealth.UserConflictError
	if !errors.As(err, &conflict) || conflict.UserID != userID || !errors.Is(err, labhealth.ErrConflict) {
		t.Errorf("%T: %v", err, err)
	}
}

func noErr(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// An attempt of a refresh takes longer than the service may, even if the timeout of the client is
// shorter.
func TestRefreshTimeout(t *testing.T) {
	for _, test := range []struct{ client, timeout, want time.Duration }{
		{time.Second, 0, 25 * time.Second},
		{time.Second, time.Minute, 75 * time.Second},
		{time.Second, 5 * time.Second, 20 * time.Second},
		{2 * time.Minute, time.Minute, 2 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			transport := roundTripper(func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, context.Cause(r.Context())
			})
			client := must[*labhealth.Client](t)(labhealth.NewClient(testKey, labhealth.WithBaseURL(testURL),
				labhealth.WithHTTPClient(&http.Client{Transport: transport}), labhealth.WithRetry(labhealth.RetryPolicy{WriteTimeout: test.client})))
			start := time.Now()
			_, err := client.Users.Refresh(t.Context(), userID, labhealth.RefreshUserParams{Timeout: test.timeout})
			equal(t, []any{test.want, labhealth.OutcomeUnknown}, []any{time.Since(start), labhealth.OutcomeOf(err)})
		})
	}
	client, s := scripted(t, nil)
	for _, timeout := range []time.Duration{-1, 1, 4999 * time.Millisecond, time.Minute + 1} {
		_, err := client.Users.Refresh(t.Context(), userID, labhealth.RefreshUserParams{Timeout: timeout})
		equal(t, "labhealth: POST /v2/user/refresh/{user_id}: not sent: query.timeout must be between 5 and 60 seconds", errorText(err))
	}
	equal(t, 0, len(s.sent))
}

// A link endpoint reports an error with status 200. It is an *APIError, not a result.
func TestLinkErrors(t *testing.T) {
	const body = `{"state": "error", "error_type": "invalid_token", "error": "The token of Ada Example has expired"}`
	for op, call := range map[string]func(*labhealth.Client) (any, error){
		"POST /v2/link/token": func(c *labhealth.Client) (any, error) {
			return c.Link.CreateToken(t.Context(), labhealth.CreateLinkTokenBody{UserID: userID})
		},
		"GET /v2/link/provider/oauth/{oauth_provider}": func(c *labhealth.Client) (any, error) {
			return c.Link.OAuth(t.Context(), labhealth.ProviderOura)
		},
		"GET /v2/link/providers": func(c *labhealth.Client) (any, error) { return c.Link.Providers(t.Context()) },
		"POST /v2/link/connect/demo": func(c *labhealth.Client) (any, error) {
			return c.Link.ConnectDemo(t.Context(), labhealth.ConnectDemoBody{UserID: userID, Provider: labhealth.ProviderOura})
		},
	} {
		t.Run(op, func(t *testing.T) {
			client, s := respondingWith(t, 200, body)
			value, err := call(client)
			if !isNothing(value) {
				t.Error("a value beside an error")
			}
			equal(t, "labhealth: "+op+": 200 OK, which reports an error: rejected (the link token is invalid, expired or used: create another with Link.CreateToken)", errorText(err))
			equal(t, labhealth.OutcomeRejected, labhealth.OutcomeOf(err))
			equal(t, body, string(apiError(t, err).Body()))
			s.only(t)

			// An error is not a result because it has some of a result's fields.
			client, _ = respondingWith(t, 200, `{"state": "error", "detail": "expired", "success": false, "slug": "oura", "link_token": "expired"}`)
			value, err = call(client)
			if !isNothing(value) {
				t.Error("a value beside an error")
			}
			equal(t, "labhealth: "+op+": 200 OK, which reports an error: rejected (APIError.Message has the service's text)", errorText(err))
			equal(t, labhealth.OutcomeRejected, labhealth.OutcomeOf(err))

			// Any other object is a response that cannot be read.
			client, _ = respondingWith(t, 200, `{"state": "ok"}`)
			value, err = call(client)
			var unreadable *labhealth.DecodeError
			if !isNothing(value) || !errors.As(err, &unreadable) {
				t.Errorf("%v, %T: %v", value, err, err)
			}
		})
	}
	client, _ := respondingWith(t, 200, body)
	_, err := client.Users.Refresh(t.Context(), userID, labhealth.RefreshUserParams{})
	equal(t, labhealth.OutcomeUnknown, labhealth.OutcomeOf(err)) // only link endpoints report errors so
}

// A field with a default has it if it is absent, and is nil if it is null.
func TestLinkDefaults(t *testing.T) {
	client, _ := respondingWith(t, 200, `{"slug": "oura"}`)
	got := must[*labhealth.LinkSource](t)(client.Link.OAuth(t.Context(), labhealth.ProviderOura))
	equal(t, []any{labhealth.SourceAuthTypeOAuth, labhealth.SourceTypeDevice, true}, []any{*got.AuthType, *got.SourceType, *got.IsActive})
	client, _ = respondingWith(t, 200, `{"slug": "oura", "auth_type": null, "source_type": null, "is_active": null}`)
	got = must[*labhealth.LinkSource](t)(client.Link.OAuth(t.Context(), labhealth.ProviderOura))
	equal(t, true, got.AuthType == nil && got.SourceType == nil && got.IsActive == nil)

	client, _ = respondingWith(t, 200, `{"id": "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"}`)
	team := must[*labhealth.TeamDetails](t)(client.Team.Get(t.Context(), teamID))
	equal(t, []any{"", labhealth.Secret("")}, []any{*team.ClientID, *team.APIKey})
	client, _ = respondingWith(t, 200, `{"id": "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee", "client_id": null, "api_key": null}`)
	team = must[*labhealth.TeamDetails](t)(client.Team.Get(t.Context(), teamID))
	equal(t, true, team.ClientID == nil && team.APIKey == nil)
}

// Calls that are invalid are not sent.
func TestInvalidUserCalls(t *testing.T) {
	client, s := scripted(t, nil)
	ctx := t.Context()
	get := func(_ any, err error) error { return err }
	for want, err := range map[string]error{
		"POST /v2/link/token: not sent: body.user_id is required: a UUID that is not nil; " +
			"body.filter_on_providers must be left out or have at least one provider": get(client.Link.CreateToken(ctx, labhealth.CreateLinkTokenBody{
			FilterOnProviders: []labhealth.Provider{},
		})),
		"POST /v2/link/connect/demo: not sent: body.user_id is required: a UUID that is not nil; body.provider is required": get(
			client.Link.ConnectDemo(ctx, labhealth.ConnectDemoBody{})),
		"DELETE /v2/user/{user_id}/{provider}: not sent: path.provider must not be empty, or hold dot segments or control characters": get(
			client.Users.Disconnect(ctx, userID, "")),
		"GET /v2/user/{user_id}/device/{device_id}: not sent: path.device_id must not be the nil UUID": get(
			client.Users.Device(ctx, userID, uuid.Nil)),
		"GET /v2/team/{team_id}: not sent: path.team_id must not be the nil UUID": get(client.Team.Get(ctx, uuid.Nil)),
		"GET /v2/team/users/search: not sent: query.query_id must have at least 2 characters": get(
			client.Team.SearchUsers(ctx, labhealth.SearchUsersParams{QueryID: "é"})),
		"PATCH /v2/user/{user_id}: not sent: body.client_user_id or another field is required": client.Users.Update(
			ctx, userID, labhealth.UpdateUserBody{}),
	} {
		equal(t, "labhealth: "+want, errorText(err))
		equal(t, labhealth.OutcomeNotSent, labhealth.OutcomeOf(err))
	}
	equal(t, 0, len(s.sent))
}

// A response without a list of connected providers is an error.
func TestConnectedProvidersUnreadable(t *testing.T) {
	for body, want := range map[string]string{
		`{"state": "error"}`: "it has no list", `{"providers": {}}`: "it has no list", `[]`: "it is not a JSON object",
		`{}, "a": {}`: "it is not valid JSON at byte 2: data after the JSON value",
	} {
		client, _ := respondingWith(t, 200, body)
		_, err := client.Users.ConnectedProviders(t.Context(), userID)
		equal(t, unreadableText("GET /v2/user/providers/{user_id}", want, err), errorText(err))
	}
	client, _ := respondingWith(t, 200, `{"providers": [], "other": null}`)
	equal(t, 2, len(must[map[string][]labhealth.ConnectedProvider](t)(client.Users.ConnectedProviders(t.Context(), userID))))
}
