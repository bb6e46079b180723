package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/management"
	"github.com/labhealth/labhealth-go/webhooks"
)

// A user changes: the new client user ID resolves, null clears, an ID in use is a conflict.
func TestServiceUpdateUser(t *testing.T) {
	srv, client := serve(t)
	ctx := t.Context()
	ada, grete := srv.AddUser("ada"), srv.AddUser("grete")
	born := labhealth.Date{Year: 1990, Month: time.January, Day: 31}
	noErr(t, client.Users.Update(ctx, ada, labhealth.UpdateUserBody{
		ClientUserID: new("ada-2"), FallbackTimeZone: labhealth.Value("Europe/London"), FallbackBirthDate: labhealth.Value(born),
		IngestionStart: labhealth.Value(born),
	}))
	user := must[*labhealth.User](t)(client.Users.Resolve(ctx, "ada-2"))
	equal(t, []any{ada, "Europe/London", born, born},
		[]any{user.UserID, user.FallbackTimeZone.ID, user.FallbackBirthDate.Value, *user.IngestionStart})
	_, err := client.Users.Resolve(ctx, "ada")
	equal(t, true, errors.Is(err, labhealth.ErrNotFound))

	// The fields that are absent stay, and null clears the others.
	noErr(t, client.Users.Update(ctx, ada, labhealth.UpdateUserBody{
		FallbackTimeZone: labhealth.Null[string](), IngestionStart: labhealth.Null[labhealth.Date](),
	}))
	user = must[*labhealth.User](t)(client.Users.Get(ctx, ada))
	equal(t, true, user.FallbackTimeZone == nil && user.IngestionStart == nil)
	equal(t, []any{"ada-2", born}, []any{user.ClientUserID, user.FallbackBirthDate.Value})

	const op = "PATCH /v2/user/{user_id}"
	err = client.Users.Update(ctx, ada, labhealth.UpdateUserBody{ClientUserID: new("grete")})
	checkRejected(t, err, op, 409, "Client user id already exists.")
	equal(t, true, errors.Is(err, labhealth.ErrConflict))
	equal(t, grete, must[*labhealth.User](t)(client.Users.Resolve(ctx, "grete")).UserID)

	// The service has nothing to change.
	err = client.Users.Update(ctx, ada, labhealth.UpdateUserBody{})
	equal(t, "labhealth: PATCH /v2/user/{user_id}: not sent: body.client_user_id or another field is required", errorText(err))
	err = client.Users.Update(ctx, ada, labhealth.UpdateUserBody{}, labhealth.WithoutValidation())
	checkRejected(t, err, op, 400, "Nothing to patch")
	checkRejected(t, client.Users.Update(ctx, uuid.New(), labhealth.UpdateUserBody{ClientUserID: new("x")}), op, 404, "User not found")
}

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

// The demographic data of a user is created, replaced and cleared.
func TestServiceUserInfo(t *testing.T) {
	srv, client := serve(t)
	ctx := t.Context()
	ada := srv.AddUser("ada")
	_, err := client.Users.Info(ctx, ada)
	equal(t, true, errors.Is(err, labhealth.ErrNotFound))

	body := labhealth.UpdateUserInfoBody{
		FirstName: "Ada", LastName: "Example", Email: "ada@example.com", PhoneNumber: "+14155550123", Gender: labhealth.GenderFemale,
		DOB:     labhealth.Date{Year: 1990, Month: time.January, Day: 31},
		Address: labhealth.Address{FirstLine: "1 Example St", Country: "US", Zip: "94105", City: "San Francisco", State: "CA"},
		Race:    labhealth.Value(labhealth.RaceAsian),
		MedicalProxy: labhealth.Value(labhealth.GuarantorDetails{
			FirstName: "Jane", LastName: "Example", PhoneNumber: "+14155550124",
			Address: labhealth.Address{FirstLine: "1 Example St", Country: "US", Zip: "94105", City: "San Francisco", State: "CA"},
		}),
	}
	saved := must[*labhealth.UserInfo](t)(client.Users.UpdateInfo(ctx, ada, body))
	equal(t, []any{"Ada", labhealth.GenderFemale, body.DOB, "94105", "", labhealth.RaceAsian, "Jane"}, []any{
		saved.FirstName, saved.Gender, saved.DOB, saved.Address.Zip, *saved.Address.SecondLine, *saved.Race, saved.MedicalProxy.FirstName,
	})
	equal(t, saved, must[*labhealth.UserInfo](t)(client.Users.Info(ctx, ada)))

	// The proxy of an order may be sent back: its unknown fields are not sent.
	proxy := *saved.MedicalProxy
	mustDecode(t, `{"first_name":"Jan","last_name":"Example","phone_number":"+14155550124","verified":true,
		"address":{"first_line":"1 Example St","country":"US","zip":"94105","city":"San Francisco","state":"CA","geo":1}}`, &proxy)
	body.MedicalProxy, body.Race = labhealth.Value(proxy), labhealth.Null[labhealth.Race]()
	saved = must[*labhealth.UserInfo](t)(client.Users.UpdateInfo(ctx, ada, body))
	equal(t, "Jan", saved.MedicalProxy.FirstName)
	equal(t, true, saved.Race == nil)
	requests := srv.Requests()
	if sent := string(requests[len(requests)-1].Body); strings.Contains(sent, "verified") || strings.Contains(sent, "geo") {
		t.Error("unknown fields of the proxy were sent")
	}

	_, err = client.Users.UpdateInfo(ctx, ada, labhealth.UpdateUserInfoBody{
		Email: "ada", MedicalProxy: labhealth.Value(labhealth.GuarantorDetails{}),
	})
	equal(t, []string{
		"body.address.city", "body.address.country", "body.address.first_line", "body.address.state", "body.address.zip",
		"body.dob", "body.email", "body.first_name", "body.gender", "body.last_name", "body.medical_proxy.address.city",
		"body.medical_proxy.address.country", "body.medical_proxy.address.first_line", "body.medical_proxy.address.state",
		"body.medical_proxy.address.zip", "body.medical_proxy.first_name", "body.medical_proxy.last_name",
		"body.medical_proxy.phone_number", "body.phone_number",
	}, validationPaths(t, err))
}

// validationPaths returns the paths of a *ValidationError.
func validationPaths(t testing.TB, err error) []string {
	t.Helper()
	var invalid *labhealth.ValidationError
	if !errors.As(err, &invalid) {
		t.Fatalf("%T: %v", err, err)
	}
	return paths(invalid.Fields)
}

// A user connects a provider with a link token. The connection breaks, is refreshed, and ends.
func TestServiceLink(t *testing.T) {
	srv, client := serve(t)
	ctx := t.Context()
	ada := srv.AddUser("ada")

	var catalog []string
	for _, p := range must[[]labhealth.ProviderDetails](t)(client.Providers.List(ctx, labhealth.ListProvidersParams{SourceType: labhealth.SourceTypeProvider})) {
		catalog = append(catalog, p.Slug)
	}
	equal(t, "oura fitbit garmin wahoo withings whoop", strings.Join(catalog, " "))

	token := must[*labhealth.LinkToken](t)(client.Link.CreateToken(ctx, labhealth.CreateLinkTokenBody{
		UserID: ada, FilterOnProviders: []labhealth.Provider{labhealth.ProviderOura, labhealth.ProviderFitbit},
		RedirectURL: new("https://app.example.com/back"), OnError: new("redirect"),
	}))
	equal(t, true, strings.HasSuffix(string(token.LinkWebURL), string(token.LinkToken)))
	choice := must[*labhealth.LinkSource](t)(client.Link.OAuth(ctx, labhealth.ProviderOura))
	equal(t, []any{"oura", labhealth.SourceAuthTypeOAuth, labhealth.SourceTypeProvider, true, int64(90)},
		[]any{choice.Slug, *choice.AuthType, *choice.SourceType, *choice.IsActive, *choice.BackfillNumDays})
	forms := 0
	for _, p := range must[[]labhealth.LinkProvider](t)(client.Link.Providers(ctx)) {
		if len(p.FormComponents) > len(`{}`) {
			forms++
		}
	}
	equal(t, 2, forms)

	// The user signs in at the provider.
	noErr(t, srv.CompleteLink(string(token.LinkToken), "oura"))
	list := must[map[string][]labhealth.ConnectedProvider](t)(client.Users.ConnectedProviders(ctx, ada))["providers"]
	equal(t, []any{1, "oura", "connected", labhealth.AvailabilityAvailable},
		[]any{len(list), list[0].Slug, list[0].Status, list[0].ResourceAvailability["sleep"].Status})
	user := must[*labhealth.User](t)(client.Users.Get(ctx, ada))
	equal(t, []any{"oura", "oura"}, []any{user.ConnectedSources[0].Source.Slug, user.ConnectedSources[0].Provider.Slug})
	devices := must[[]labhealth.Device](t)(client.Users.Devices(ctx, ada))
	equal(t, []any{1, "oura", labhealth.DeviceSourceTypeRing, "Oura Ring Gen3"},
		[]any{len(devices), devices[0].Provider, devices[0].SourceType, *devices[0].DeviceModel})
	equal(t, &devices[0], must[*labhealth.Device](t)(client.Users.Device(ctx, ada, devices[0].ID)))
	_, err := client.Users.Device(ctx, ada, ada)
	checkRejected(t, err, "GET /v2/user/{user_id}/device/{device_id}", 404, "Device not found")

	refreshed := must[*labhealth.UserRefresh](t)(client.Users.Refresh(ctx, ada, labhealth.RefreshUserParams{}))
	equal(t, []any{true, ada, []string{"oura/activity", "oura/sleep", "oura/workouts"}, 0},
		[]any{refreshed.Success, refreshed.UserID, refreshed.RefreshedSources, len(refreshed.FailedSources)})

	noErr(t, srv.SetConnectionError(ada, "oura", string(labhealth.ConnectionErrorTokenRefreshFailed)))
	list = must[map[string][]labhealth.ConnectedProvider](t)(client.Users.ConnectedProviders(ctx, ada))["providers"]
	equal(t, []any{"error", labhealth.ConnectionErrorTokenRefreshFailed, labhealth.AvailabilityUnavailable},
		[]any{list[0].Status, list[0].ErrorDetails.ErrorType, list[0].ResourceAvailability["sleep"].Status})
	_, err = client.Users.Refresh(ctx, ada, labhealth.RefreshUserParams{Timeout: 5 * time.Second})
	var failed *labhealth.UserRefreshError
	if !errors.As(err, &failed) {
		t.Fatalf("%T: %v", err, err)
	}
	equal(t, []string{"oura/activity", "oura/sleep", "oura/workouts"}, failed.FailedSources)
	equal(t, []any{400, labhealth.OutcomeRejected}, []any{apiError(t, err).StatusCode, labhealth.OutcomeOf(err)})
	equal(t, true, strings.Contains(err.Error(), ": rejected (no source was refreshed: see UserRefreshError.FailedSources) (request "))

	ended := must[*labhealth.UserDeletion](t)(client.Users.Disconnect(ctx, ada, labhealth.ProviderOura))
	equal(t, true, ended.Success)
	_, err = client.Users.Disconnect(ctx, ada, labhealth.ProviderOura)
	equal(t, true, errors.Is(err, labhealth.ErrNotFound))
	equal(t, 0, len(must[map[string][]labhealth.ConnectedProvider](t)(client.Users.ConnectedProviders(ctx, ada))["providers"]))
	equal(t, 0, len(must[[]labhealth.Device](t)(client.Users.Devices(ctx, ada))))
}

// The ninth refresh within an hour is rejected.
func TestServiceRefreshLimit(t *testing.T) {
	srv, client := serve(t, labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 1}))
	ada := srv.AddUser("ada")
	noErr(t, srv.Connect(ada, "oura"))
	noErr(t, srv.SetHistoricalPull(ada, "oura", "sleep", "in_progress", ""))
	for range 8 {
		var r labhealth.Response
		refreshed := must[*labhealth.UserRefresh](t)(client.Users.Refresh(t.Context(), ada, labhealth.RefreshUserParams{}, labhealth.WithResponse(&r)))
		equal(t, []any{202, []string{"oura/sleep"}}, []any{r.StatusCode, refreshed.InProgressSources})
	}
	_, err := client.Users.Refresh(t.Context(), ada, labhealth.RefreshUserParams{})
	equal(t, []any{true, labhealth.OutcomeRejected}, []any{errors.Is(err, labhealth.ErrRateLimited), labhealth.OutcomeOf(err)})
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
			equal(t, "labhealth: "+op+": 200 OK, which reports an error: rejected (APIError.Message has the service's text)", errorText(err))
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

// Demo connections have data. A team can reject the second user with the same account.
func TestServiceConnectDemo(t *testing.T) {
	srv, client := serve(t)
	ctx := t.Context()
	ada, grete := srv.AddUser("ada"), srv.AddUser("grete")
	events := receive(t, srv)
	body := labhealth.ConnectDemoBody{UserID: ada, Provider: labhealth.ProviderFitbit}
	equal(t, true, must[*labhealth.DemoConnection](t)(client.Link.ConnectDemo(ctx, body)).Success)
	again := must[*labhealth.DemoConnection](t)(client.Link.ConnectDemo(ctx, body))
	equal(t, []any{false, "The demo provider is already connected"}, []any{again.Success, again.Detail})
	noErr(t, srv.SetConnectionError(ada, "fitbit", "token_refresh_failed"))
	device := must[uuid.UUID](t)(srv.AddDevice(ada, "fitbit", "Aria"))
	noErr(t, srv.Flush(ctx))
	got := events()
	equal(t, []webhooks.EventType{"provider.connection.created", "provider.connection.error", "provider.device.created"},
		[]webhooks.EventType{got[0].Type, got[1].Type, got[2].Type})
	connected, ok := got[0].Data.(*webhooks.ProviderConnection)
	if !ok || connected.Provider.Slug != "fitbit" || connected.ResourceAvailability["sleep"].Status != labhealth.AvailabilityAvailable {
		t.Errorf("%+v", got[0])
	}
	equal(t, "Aria", *must[*labhealth.Device](t)(client.Users.Device(ctx, ada, device)).DeviceModel)

	manager := must[*management.Client](t)(management.NewClient(srv.OrgID, srv.OrgKey, labhealth.WithBaseURL(srv.URL)))
	defer manager.CloseIdleConnections()
	must[*management.Team](t)(manager.Teams.Update(ctx, srv.TeamID, management.UpdateTeamBody{
		Sandbox: labhealth.Value(management.UpdateTeamSettings{RejectDuplicateConnection: new(true)}),
	}))
	body.UserID = grete
	_, err := client.Link.ConnectDemo(ctx, body)
	equal(t, []any{200, labhealth.OutcomeRejected}, []any{apiError(t, err).StatusCode, labhealth.OutcomeOf(err)})
	equal(t, true, strings.Contains(string(apiError(t, err).Body()), "duplicate_connection"))
	body.UserID = uuid.New()
	_, err = client.Link.ConnectDemo(ctx, body)
	equal(t, true, errors.Is(err, labhealth.ErrNotFound))
}

// The resources tell what was read and sent, page by page.
func TestServiceResources(t *testing.T) {
	srv, client := serve(t)
	ids := srv.AddUsers(5)
	for _, id := range ids {
		noErr(t, srv.Connect(id, "oura"))
	}
	receive(t, srv)
	for range 3 {
		must[uuid.UUID](t)(srv.AddWorkout(ids[0], 2))
	}
	noErr(t, srv.Flush(t.Context()))
	var users []uuid.UUID
	for u, err := range client.Users.AllResources(t.Context(), labhealth.ListUserResourcesParams{UserLimit: 2}) {
		noErr(t, err)
		users = append(users, u.UserID)
		sleep := u.Provider["oura"][string(labhealth.ResourceSleep)]
		equal(t, []any{labhealth.AttemptStatusSuccess, int64(0), true}, []any{sleep.LastAttempt.Status, *sleep.SentCount, sleep.NewestData.After(*sleep.OldestData)})
	}
	equal(t, ids, users)
	page := must[*labhealth.UserResourcesPage](t)(client.Users.Resources(t.Context(), labhealth.ListUserResourcesParams{Provider: labhealth.ProviderWahoo}))
	equal(t, []any{1, int64(3)}, []any{len(page.Data), *page.Data[0].Provider["wahoo"]["workout_stream"].SentCount})
	_, err := client.Users.Resources(t.Context(), labhealth.ListUserResourcesParams{UserLimit: -1})
	equal(t, "labhealth: GET /v2/introspect/resources: not sent: query.user_limit must be at least 0", errorText(err))
}

// The team of the key has its settings, keys and physicians, and finds its users.
func TestServiceTeam(t *testing.T) {
	srv, client := serve(t)
	ctx := t.Context()
	srv.AddUser("ada-1")
	ada := srv.AddUser("ada-2")
	team := must[*labhealth.TeamDetails](t)(client.Team.Get(ctx, srv.TeamID))
	equal(t, []any{srv.TeamID, srv.OrgID, labhealth.Secret(srv.APIKey), labhealth.DelegatedFlowOrderAndResults, true},
		[]any{team.ID, team.OrgID, team.APIKeys[0].Value, team.DelegatedFlow, team.LabTestsPatientEmailCommunicationEnabled})
	equal(t, labhealth.EventDestinationSvix, team.Configuration.EDSPreferences.Preferred)
	_, err := client.Team.Get(ctx, ada)
	checkRejected(t, err, "GET /v2/team/{team_id}", 404, "Team not found")
	equal(t, 1, len(must[[]labhealth.OrderPhysician](t)(client.Team.Physicians(ctx, srv.TeamID))))

	found := must[[]labhealth.User](t)(client.Team.SearchUsers(ctx, labhealth.SearchUsersParams{QueryID: "A-2"}))
	equal(t, []any{1, ada}, []any{len(found), found[0].UserID})
	_, err = client.Team.SearchUsers(ctx, labhealth.SearchUsersParams{QueryID: "é"})
	equal(t, "labhealth: GET /v2/team/users/search: not sent: query.query_id must have at least 2 characters", errorText(err))

	const sleep = `{"data_type":"sleep","sources":["oura","fitbit"]}`
	saved := must[[]json.RawMessage](t)(client.Team.UpdateSourcePriorities(ctx, json.RawMessage(`[`+sleep+`]`)))
	equal(t, sleep, string(saved[0]))
	listed := must[[]json.RawMessage](t)(client.Team.SourcePriorities(ctx, labhealth.SourcePrioritiesParams{DataType: labhealth.PriorityResourceBody}))
	equal(t, 0, len(listed))
	_, err = client.Team.UpdateSourcePriorities(ctx, nil)
	equal(t, true, errors.Is(err, labhealth.ErrValidation))
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

// receive makes the server deliver its events, and returns a function that returns those delivered.
func receive(t testing.TB, srv *labhealthtest.Server) func() []*webhooks.Event {
	t.Helper()
	noErr(t, srv.DeliverTo(srv.URL))
	return func() (events []*webhooks.Event) {
		for _, d := range srv.Deliveries() {
			events = append(events, must[*webhooks.Event](t)(webhooks.Parse(d.Body)))
		}
		return events
	}
}
